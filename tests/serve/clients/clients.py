"""clients.py TOOLS: arrays of every kind and their old versions, read over HTTP by zarr-python (fsspec), TensorStore,
zarrita, GDAL, rclone, neuroglancer and vizarr, and compared with what was written. BRECCIA: the command. In an empty
folder."""
from __future__ import annotations

import http.client
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin

import numpy as np
import tensorstore as ts
import zarr
from served import Served, breccia, commits, expect
from zarr.storage import FsspecStore

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
GZIP = {"name": "gzip", "configuration": {"level": 5}}
ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
BLOSC = {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "bitshuffle", "typesize": 4, "blocksize": 0}}
CRC = {"name": "crc32c"}
TURN = {"name": "transpose", "configuration": {"order": [1, 0]}}


def shards(chunk: list[int], *codecs: dict[str, Any], at: str = "end") -> dict[str, Any]:
    return {"name": "sharding_indexed", "configuration": {"chunk_shape": chunk, "codecs": list(codecs),
                                                          "index_codecs": [LITTLE, CRC], "index_location": at}}


# name: type, shape, chunks, codecs. "strings" and what is imported come besides.
KINDS: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], list[dict[str, Any]]]] = {
    "plain": ("<i4", (60, 50), (25, 20), [LITTLE]),
    "big": ("<i4", (60, 50), (25, 20), [BIG, ZSTD]),
    "gzip": ("<f8", (60, 50), (25, 20), [LITTLE, GZIP]),
    "zstd": ("<f4", (60, 50), (60, 50), [LITTLE, ZSTD]),
    "blosc": ("<f4", (60, 50), (7, 50), [LITTLE, BLOSC]),
    "checked": ("<u2", (60, 50), (25, 20), [LITTLE, CRC]),
    "turned": ("<i8", (60, 50), (25, 20), [TURN, LITTLE, GZIP]),
    "sharded": ("<f4", (60, 50), (60, 40), [shards([15, 10], LITTLE, ZSTD)]),
    "sharded_start": ("<u2", (60, 50), (30, 50), [shards([15, 10], LITTLE, GZIP, at="start")]),
    "bools": ("|b1", (60, 50), (25, 20), [{"name": "bytes"}, BLOSC | {"configuration": BLOSC["configuration"] | {"typesize": 1}}]),
    "bytes": ("|u1", (300,), (77,), [{"name": "bytes"}]),
    "single": ("<f8", (), (), [LITTLE]),
    "sparse": ("<i4", (60, 50), (10, 10), [LITTLE, ZSTD]),
    "packed": ("<i4", (60, 50), (25, 20), [LITTLE, ZSTD]),  # in files beside the repository
    # Written with one list of codecs and served with another: the server encodes.
    "recoded": ("<i4", (60, 50), (25, 20), [LITTLE, GZIP]),
}
SHARDED = {"sharded", "sharded_start"}


def values_of(name: str, version: int) -> np.ndarray[Any, Any]:
    kind, shape, _, _ = KINDS[name]
    noise = np.random.default_rng([version, len(name), ord(name[0])])
    out = np.cumsum(noise.integers(0, 3, shape if shape else (1,)), axis=-1).reshape(shape).astype(kind)
    if name == "sparse":
        out[10:50, 10:40] = 0
    return out


TEXTS = [["a", "", "b\u00e9", "\u4e2d\u6587", "x" * 300, "z"], ["a", "new", "b\u00e9", "\U0001f600", "", "zz"]]
Expected = dict[str, np.ndarray[Any, Any]]


def make() -> list[Expected]:
    """The repository, of two versions, and what each of them has."""
    versions: list[Expected] = [{}, {}]
    breccia("init", "a.brc", "--quiet")
    for name, (kind, shape, chunks, codecs) in KINDS.items():
        first = [LITTLE, ZSTD] if name == "recoded" else codecs
        document = {"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": np.dtype(kind).name,
                    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
                    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
                    "fill_value": False if kind == "|b1" else 0, "codecs": first, "attributes": {"name": name}}
        Path("zarr.json").write_text(json.dumps(document))
        breccia("create", "a.brc", f"/g/{name}", "--metadata", "@zarr.json", "--quiet")
        if name == "packed":
            breccia("backend", "a.brc", "/g/packed", '"pack"', "--quiet")
    breccia("create", "a.brc", "/g/strings", "--shape", "6", "--dtype", "string", "--chunks", "4", "--compress", "zstd", "--quiet")
    old = zarr.create_group("old.zarr", zarr_format=2)
    for name, dtype in (("two", "<i4"), ("big", ">f8")):
        array = old.create_array(name, shape=(40, 30), chunks=(20, 20), dtype=dtype, order="F" if name == "big" else "C")
        array[:] = np.arange(1200).reshape(40, 30)
    breccia("import", "a.brc", "old.zarr", "/old", "--quiet")
    for version in (0, 1):
        for name in KINDS:
            values = values_of(name, version)
            np.save("v.npy", values)
            breccia("write", "a.brc", f"/g/{name}", "--from", "v.npy", "--quiet")
            versions[version][f"g/{name}"] = values
        raw = b"".join(len(text.encode()).to_bytes(4, "little") + text.encode() for text in TEXTS[version])
        breccia("write", "a.brc", "/g/strings", "--from", "-", "--quiet", data=raw)
        versions[version]["g/strings"] = np.array(TEXTS[version], object)
        for name in ("two", "big"):
            versions[version][f"old/{name}"] = np.arange(1200).reshape(40, 30)
        breccia("commit", "a.brc", "-m", str(version), "--quiet")
        if version == 0:
            breccia("codecs", "a.brc", "/g/recoded", json.dumps(KINDS["recoded"][3]), "--quiet")
            breccia("tag", "a.brc", "v0", "--quiet")
    return versions


def same(got: Any, want: np.ndarray[Any, Any], *what: Any) -> None:
    got = np.asarray(got)
    if want.dtype == object:
        expect(list(map(str, got.ravel())) == list(want.ravel()), *what, got)
    else:
        expect(got.shape == want.shape and np.array_equal(got, want), *what)


def places(served: Served) -> Iterator[tuple[str, int, int]]:
    """Where a version is: its address, the number of the version, the format of Zarr."""
    newest, oldest = commits("a.brc")
    for rev, version in ((newest, 1), (oldest, 0), ("main", 1), ("v0", 0), ("main~1", 0)):
        yield f"{served.url}{rev}/a.zarr/", version, 3
    for rev, version in (("main", 1), (oldest, 0)):
        yield f"{served.url}v2/{rev}/a.zarr/", version, 2


def of_format(names: Expected, format: int) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """The arrays that the format can express."""
    for path, want in names.items():
        if format == 3 or not set(path.split("/")) & SHARDED:
            yield path, want


def in_zarr_python(served: Served, versions: list[Expected], _: Path) -> int:
    n = 0
    for url, version, format in places(served):
        group = zarr.open_group(FsspecStore.from_url(url, read_only=True), mode="r", zarr_format=format)  # type: ignore[arg-type]
        members = {name for name, node in group.members(max_depth=None) if isinstance(node, zarr.Array)}
        expect(members == {path for path, _ in of_format(versions[version], format)}, url, "consolidated:", sorted(members))
        for path, want in of_format(versions[version], format):
            array = group[path]
            assert isinstance(array, zarr.Array)
            same(array[...], want, "zarr-python", url, path)
            expect(not path.startswith("g/") or path == "g/strings" or array.attrs["name"] == path[2:], "attributes", path)
            n += 1
    return n


def in_tensorstore(served: Served, versions: list[Expected], _: Path) -> int:
    n = 0
    for url, version, format in places(served):
        for path, want in of_format(versions[version], format):
            if want.dtype == object or (format == 2 and path == "g/checked") or (format, path) == (3, "old/big"):
                continue  # it has no strings, nor crc32c in format 2
            spec = {"driver": "zarr3" if format == 3 else "zarr", "kvstore": {"driver": "http", "base_url": url, "path": f"{path}/"}}
            same(ts.open(spec, open=True, read=True).result().read().result(), want, "TensorStore", url, path)
            n += 1
    return n


def in_zarrita(served: Served, versions: list[Expected], tools: Path) -> int:
    jobs, wanted = [], {}
    for i, (url, version, format) in enumerate(places(served)):
        for path, want in of_format(versions[version], format):
            if (format, path) in {(2, "g/checked"), (2, "g/strings")} or path == "g/sharded_start":
                continue  # it does not know them; of a shard it takes the index to be at the end
            name = f"{i}-{path.replace('/', '-')}"
            jobs.append(json.dumps({"name": name, "url": url + path, "format": format}))
            wanted[name] = want
    os.makedirs("zarrita", exist_ok=True)
    script = tools / "zarrita_http.mjs"
    shutil.copy(Path(__file__).parent / "zarrita_http.mjs", script)
    done = subprocess.run(["node", str(script), "zarrita"], input="\n".join(jobs), capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        answer = json.loads(line)
        expect("error" not in answer, "zarrita", line)
    for name, want in wanted.items():
        raw = (Path("zarrita") / name).read_bytes()
        if want.dtype == object:
            texts = []
            while raw:
                size = int.from_bytes(raw[:4], "little")
                texts.append(raw[4:4 + size].decode())
                raw = raw[4 + size:]
            expect(texts == list(want), "zarrita", name, texts)
        else:
            dtype = ">f8" if name.endswith("old-big") and raw[:8] != want.astype("<f8").tobytes()[:8] else want.dtype.newbyteorder("<")
            kind = "<f8" if name.endswith("old-big") else "<i4" if name.endswith("old-two") else dtype
            same(np.frombuffer(raw, kind).reshape(want.shape), want, "zarrita", name)
    return len(wanted)


def in_gdal(served: Served, versions: list[Expected], _: Path) -> int:
    """GDAL of Debian reads format 2."""
    n = 0
    if shutil.which("gdal_translate") is None:
        return -1
    for url, version, format in places(served):
        for name in ("plain", "gzip", "blosc", "zstd", "turned", "sparse") if format == 2 else ():
            want = versions[version][f"g/{name}"]
            if want.dtype == np.int64:
                continue
            subprocess.run(["gdal_translate", "-q", "-of", "ENVI", f'ZARR:"/vsicurl/{url}g/{name}"', "gdal.raw"], check=True)
            same(np.fromfile("gdal.raw", want.dtype).reshape(want.shape), want, "GDAL", url, name)
            n += 1
    return n


def in_rclone(served: Served, _: list[Expected], tools: Path) -> int:
    """A copy by the lists in HTML is what an export has."""
    if shutil.which("rclone") is None:
        return -1
    n = 0
    env = os.environ | {"RCLONE_CONFIG": str(tools / "rclone.conf"), "NO_PROXY": "127.0.0.1"}
    for rev in ("main", "v0"):
        for view, format in (("", "zarr3"), ("v2/", "zarr2")):
            copy, export = Path(f"copy-{rev}-{format}"), Path(f"export-{rev}-{format}")
            subprocess.run(["rclone", "copy", "-q", ":http:", str(copy), "--http-url", f"{served.url}{view}{rev}/a.zarr/"], check=True,
                           env=env)
            path = ["/old"] if format == "zarr2" else []
            breccia("export", "a.brc", *path, str(export), "--format", format, "--at", rev, "--quiet")
            base = copy / "old" if path else copy
            files = {file.relative_to(export) for file in export.rglob("*") if file.is_file()}
            made = {file.relative_to(base) for file in base.rglob("*") if file.is_file()}
            expect({file for file in made if file.name != ".zmetadata"} == files, "rclone", rev, format, made ^ files)
            for file in files:
                got, want = (base / file).read_bytes(), (export / file).read_bytes()
                if file.name.startswith(".z") or file.name == "zarr.json":
                    document = json.loads(got)
                    document.pop("consolidated_metadata", None)
                    expect(document == json.loads(want), "rclone", rev, file)
                else:
                    expect(got == want, "rclone", rev, file)
                n += 1
    return n


def in_s3(served: Served, versions: list[Expected], _: Path) -> int:
    """TensorStore's driver of S3 lists and reads the path-style bucket that the token is."""
    base = served.url.removesuffix("/")
    endpoint, bucket = base.rsplit("/", 1)
    if not 3 <= len(bucket) <= 63:
        return -1
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "none")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "none")
    store = ts.KvStore.open({"driver": "s3", "endpoint": endpoint, "bucket": bucket, "aws_region": "us-east-1",
                             "aws_credentials": {"type": "anonymous"}, "path": "main/a.zarr/g/sparse/"}).result()
    keys = sorted(key.decode() for key in store.list().result())
    breccia("export", "a.brc", "/g/sparse", "s3", "--at", "main", "--quiet")
    want = sorted(str(file.relative_to("s3")) for file in Path("s3").rglob("*") if file.is_file())
    expect(keys == want, "S3", keys, want)
    spec = {"driver": "zarr3", "kvstore": store.spec().to_json()}
    same(ts.open(spec, open=True, read=True).result().read().result(), versions[1]["g/sparse"], "S3")
    return len(keys)


def in_slowhttptest(served: Served, versions: list[Expected], _: Path) -> int:
    """1,000 connections at a time that send or read slowly, in each way that the tool knows."""
    if shutil.which("slowhttptest") is None:
        return -1
    ways = (["-H", "-i", "2"], ["-B", "-i", "2", "-t", "GET"], ["-R"], ["-X", "-w", "1", "-y", "20", "-n", "1", "-z", "8"])
    want = versions[1]["g/plain"][:25, :20].tobytes()
    for way in ways:
        tool = subprocess.Popen(["slowhttptest", "-c", "1000", *way, "-r", "500", "-l", "5", "-p", "3", "-u",
                                 f"{served.url}main/a.zarr/g/plain/c/0/0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while tool.poll() is None:
            begun = time.monotonic()
            expect(served.ask("main/a.zarr/g/plain/c/0/0").body == want, "beside slowhttptest", way)
            expect(time.monotonic() - begun < 5, "slow beside slowhttptest", way)
            time.sleep(0.2)
    expect(served.memory() <= 128 << 20, "memory", served.memory() >> 20, "MiB")
    return len(ways)


VALUE = """([y, x]) => {
    const layer = window.viewer?.layerManager.managedLayers[0]?.layer;
    const value = layer?.getValueAt(new Float32Array([y + 0.5, x + 0.5]), { pickedRenderLayer: null });
    return value === undefined || value === null ? null : String(value.value ?? value);
}"""


@contextmanager
def browser_of(folder: str) -> Iterator[tuple[Any, int]]:
    """Chromium, and the port at which it finds the folder: another origin than that of the data."""
    from playwright.sync_api import sync_playwright
    web = subprocess.Popen([sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory", folder, "0"],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert web.stdout is not None
    port = int(re.findall(r"port (\d+)", web.stdout.readline())[0])
    try:
        with sync_playwright() as tool:
            browser = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--use-angle=swiftshader",
                                                                           "--enable-unsafe-swiftshader"])
            yield browser, port
            browser.close()
    finally:
        web.terminate()
        web.wait(20)


def in_neuroglancer(served: Served, versions: list[Expected], tools: Path) -> int:
    """A page of another origin shows arrays in Chromium, and knows the values of their elements."""
    if CHROMIUM is None:
        return -1
    subprocess.run(["node", str(Path(__file__).parent / "neuroglancer.mjs"), str(tools / "node_modules"), "viewer"], check=True)
    kinds = ("plain", "big", "zstd", "blosc", "checked", "sharded", "sharded_start", "packed", "recoded")
    shown = [("", "zarr3", "main", 1, kinds), ("", "zarr3", "v0", 0, ("plain", "sharded")), ("v2/", "zarr2", "main~1", 0, ("plain", "blosc"))]
    n = 0
    with browser_of("viewer") as (browser, port):
        for view, source, rev, version, names in shown:
            for name in names:
                page = browser.new_page()
                faults: list[str] = []
                page.on("pageerror", lambda error: faults.append(str(error)))
                layer = {"type": "image", "name": name, "source": f"{served.url}{view}{rev}/a.zarr/g/{name}/|{source}:"}
                state = {"layers": [layer], "layout": "xy", "position": [30.5, 25.5]}
                page.goto(f"http://127.0.0.1:{port}/#!{quote(json.dumps(state))}")
                for place in ((3, 4), (59, 49), (30, 25)):
                    value = None
                    until = time.monotonic() + 20
                    while value is None and time.monotonic() < until:
                        value = page.evaluate(VALUE, place)
                        page.wait_for_timeout(50)
                    want = versions[version][f"g/{name}"][place]
                    expect(value is not None and float(value) == float(want), "neuroglancer", rev, name, place, value, want, faults)
                expect(not faults, "neuroglancer", name, faults)
                page.close()
                n += 1
    return n


def make_images() -> list[np.ndarray[Any, Any]]:
    """images.brc with an image of red and green, two sizes of it, as OME-Zarr 0.5 and 0.4, in two versions."""
    axes = [{"name": "c", "type": "channel"}, {"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
    sizes = [{"path": str(n), "coordinateTransformations": [{"type": "scale", "scale": [1, 2**n, 2**n]}]} for n in (0, 1)]
    window = {"start": 0, "end": 65535, "min": 0, "max": 65535}
    omero = {"channels": [{"label": color, "color": color, "active": True, "window": window} for color in ("FF0000", "00FF00")]}
    y, x = np.mgrid[:512, :768]
    both = np.stack([20000 + 58 * x, 20000 + 88 * y]).astype("<u2")
    versions = [both, both[:, ::-1]]
    breccia("init", "images.brc", "--quiet")
    for n, image in enumerate(versions):
        scales = {"axes": axes, "datasets": sizes, "name": "image"}
        for name, form, about in (("new", 3, {"ome": {"version": "0.5", "multiscales": [scales], "omero": omero}}),
                                  ("old", 2, {"multiscales": [{**scales, "version": "0.4"}], "omero": omero})):
            group = zarr.create_group(f"{name}{n}.zarr", zarr_format=form, attributes=about)  # type: ignore[arg-type]
            for size in (0, 1):
                small = np.ascontiguousarray(image[:, ::2**size, ::2**size])
                group.create_array(str(size), data=small, chunks=(1, 128, 128), fill_value=0)
            breccia("import", "images.brc", f"{name}{n}.zarr", f"/{name}", "--quiet", *(["--replace"] if n else []))
        breccia("commit", "images.brc", "-m", str(n), "--quiet")
    return versions


def colors_of(shot: bytes, image: np.ndarray[Any, Any]) -> list[tuple[Any, Any]]:
    """(seen, wanted) at some places of the image, which the picture shows whole; a corner has the viewer's controls."""
    from PIL import Image
    pixels = np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).astype(int)
    rows, columns = (np.flatnonzero((pixels[220:, 220:].sum(axis=2) > 60).any(axis=axis)) + 220 for axis in (1, 0))
    bottom, right = int(rows[-1]) + 1, int(columns[-1]) + 1
    width = 2 * right - pixels.shape[1]  # it is in the middle
    height = 2 * bottom - pixels.shape[0]
    out = []
    for at_y, at_x in ((0.75, 0.25), (0.6, 0.6), (0.9, 0.9), (0.4, 0.8), (0.1, 0.7)):
        seen = pixels[int(bottom - height + at_y * height), int(right - width + at_x * width)]
        value = image[:, int(at_y * image.shape[1]), int(at_x * image.shape[2])]
        out.append((seen, [value[0] // 257, value[1] // 257, 0]))
    return out


def in_vizarr(_served: Served, _versions: list[Expected], _tools: Path) -> int:
    """The pixels that vizarr shows. VIZARR: the folder that `npm install && npx vite build` makes of its source."""
    folder = os.environ.get("VIZARR")
    if not folder or CHROMIUM is None:
        return -1
    images, n = make_images(), 0
    with Served("images.brc") as served, browser_of(folder) as (browser, port):
        for at, version in (("main/images.zarr/new", 1), ("main~1/images.zarr/new/", 0), ("v2/main/images.zarr/old", 1)):
            page = browser.new_page(viewport={"width": 900, "height": 700})
            page.goto(f"http://127.0.0.1:{port}/?source={quote(served.url + at)}")
            seen: list[tuple[Any, Any]] = [([0], [99])]
            until = time.monotonic() + 40
            while time.monotonic() < until and any(np.abs(np.subtract(a, b)).max() > 6 for a, b in seen):
                page.wait_for_timeout(500)
                shot = page.screenshot()
                with suppress(IndexError):  # nothing is shown yet
                    seen = colors_of(shot, images[version])
            expect(all(np.abs(np.subtract(a, b)).max() <= 6 for a, b in seen), "vizarr", at, seen)
            page.close()
            n += 1
    return n


def in_servers_in_front(served: Served, versions: list[Expected], _: Path) -> int:
    """The configurations of docs/SERVING.md, for nginx and Caddy, without TLS and with our token and ports."""
    page = (Path(__file__).parents[3] / "docs" / "SERVING.md").read_text()
    want = versions[0]["g/plain"][:25, :20].tobytes()
    breccia("branch", "a.brc", "of/ada", "v0", "--quiet")
    n = 0
    for tool in "nginx", "caddy":
        program = shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin")
        if program is None:
            continue
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        block = re.findall(f"```{tool}\n(.*?)```", page, re.S)[0].replace("TOKEN", served.token.strip("/"))
        block = block.replace("127.0.0.1:8080", f"127.0.0.1:{served.port}")
        here = os.getcwd()
        if tool == "nginx":
            block = re.sub(r"ssl_certificate\w* .*", "", block).replace("listen 443 ssl", f"listen 127.0.0.1:{port}")
            temp = "".join(f"{what}_temp_path {here}/front;" for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
            Path("front.conf").write_text(f"daemon off; pid {here}/front.pid; error_log {here}/front.log; events {{}} "
                                          f"http {{ access_log off; {temp} {block} }}")
            words = [program, "-p", here, "-c", f"{here}/front.conf", "-g", "user root;" if os.getuid() == 0 else ""]
        else:
            block = block.replace("data.example.org", f"http://127.0.0.1:{port}")
            Path("Caddyfile").write_text("{\n    admin off\n}\n" + block)
            words = [program, "run", "--adapter", "caddyfile", "--config", "Caddyfile"]
        with open(f"{tool}.said", "wb") as said:
            front = subprocess.Popen([word for word in words if word], stdout=said, stderr=said,
                                     env=os.environ | {"HOME": here, "XDG_CONFIG_HOME": here, "XDG_DATA_HOME": here})
        try:
            for _ in range(100):
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    time.sleep(0.1)
            for rev in "v0", "of%2Fada":
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
                connection.request("GET", f"/data/{rev}/a.zarr/g/plain/c/0/0", headers={"Range": "bytes=0-99"})
                got = connection.getresponse()
                expect(got.status == 206 and got.read() == want[:100], tool, rev, got.status, Path(f"{tool}.said").read_text())
                expect(got.headers["Access-Control-Allow-Origin"] == "*" and "Content-Range" in got.headers, tool, "headers")
                place = urljoin(f"/data/{rev}/a.zarr/g/plain/c/0/0", got.headers["Content-Location"])
                connection.request("GET", place)
                got = connection.getresponse()
                expect(got.read() == want and "immutable" in got.headers["Cache-Control"], tool, place)
                expect(served.token.strip("/") not in str(got.headers), tool, "tells the token")
                connection.close()
            url = f"http://127.0.0.1:{port}/data/v0/a.zarr/"
            same(zarr.open_group(FsspecStore.from_url(url, read_only=True), mode="r")["g/sharded"][...],  # type: ignore[index]
                 versions[0]["g/sharded"], "through", tool)
            n += 1
        finally:
            front.terminate()
            front.wait(20)
    return n or -1


CLIENTS: list[Callable[[Served, list[Expected], Path], int]] = [in_zarr_python, in_tensorstore, in_zarrita, in_gdal, in_rclone, in_s3, in_neuroglancer, in_vizarr,
                                                                    in_servers_in_front, in_slowhttptest]


def main(tools: Path) -> None:
    versions = make()
    with Served("a.brc") as served:
        for client in CLIENTS:
            n = client(served, versions, tools)
            print(f"{client.__name__.removeprefix('in_')}: " + (f"{n} read as written" if n >= 0 else "not here"), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
