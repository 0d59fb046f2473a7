"""Ten versions of one array in which one element in a hundred changed each time: bytes on the disk, and times.

The winds of ERA-Interim, where BRECCIA_TEST_DATA has them, or a smooth field of the same size; each version adds
a little to 1 % of the elements, anywhere. Beside breccia, plain and after `repack --delta`: a .npy file of each
version that zstd has compressed, git, whose packs have deltas too, and Icechunk.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import sides as libraries

COUNT = 10
FILE = "era-u-wind-f32.npy"
CHUNKS = (1, 1, 61, 240)  # 57 KiB


def made() -> list[Any]:
    path = os.path.join(os.environ.get("BRECCIA_TEST_DATA", ""), FILE)
    random = np.random.default_rng(1)
    if os.path.isfile(path):
        first = np.load(path)
    else:
        print(f"there is no {FILE}: a smooth field instead")
        x, y = np.meshgrid(np.linspace(0, 9, 480), np.linspace(0, 5, 241))
        first = np.stack([[np.sin(x + i) * np.cos(y + k) for k in range(3)] for i in range(2)]).astype("f4")
    versions = [first]
    for _ in range(COUNT - 1):
        flat = versions[-1].ravel().copy()
        at = random.choice(flat.size, flat.size // 100, replace=False)
        flat[at] += random.normal(0, .1, at.size).astype("f4")
        versions.append(flat.reshape(first.shape))
    return versions


def bytes_in(folder: str) -> int:
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)


class Plain(libraries.Ours):
    name = "breccia"

    def begin(self, data: Any) -> None:
        self.make("v", data, CHUNKS)

    def add(self, data: Any) -> None:
        opened = self.open("v", write=True)
        self.write(opened, data)
        self.close(opened)

    def end(self) -> None:
        pass

    def get(self, back: int) -> Any:
        import breccia

        with breccia.open(self.path("v") + ".brc") as repo:
            return repo.view(f"main~{back}" if back else "main")["a"][...]


class Deltas(Plain):
    """The first of ten versions is nine differences away from the last: it stays whole."""

    name = "breccia, repack --delta"
    depth = 8

    def end(self) -> None:
        import breccia

        with breccia.open(self.path("v") + ".brc") as repo:
            repo.repack(delta=True, delta_depth=self.depth)
            repo.gc(keep="0")


class Deeper(Deltas):
    name = "breccia, repack --delta --depth 9"
    depth = 9


class Icechunk(libraries.Icechunk):
    def begin(self, data: Any) -> None:
        self.make("v", data, CHUNKS)

    def add(self, data: Any) -> None:
        self.write(self.open("v", write=True), data)

    def end(self) -> None:
        pass

    def get(self, back: int) -> Any:
        import zarr

        repository = self.repository("v")
        ids = [one.id for one in repository.ancestry(branch="main")]
        return zarr.open_array(repository.readonly_session(snapshot_id=ids[back]).store, path="a", mode="r")[...]


class Files(libraries.Side):
    """A program that everybody has: zstd."""

    name = "zstd, a file for each version"

    def begin(self, data: Any) -> None:
        if shutil.which("zstd") is None:
            raise ImportError("there is no program zstd")
        self.count = 0
        self.add(data)

    def add(self, data: Any) -> None:
        path = self.path(f"{self.count}.npy")
        np.save(path, data)
        subprocess.run(["zstd", "-q", "-3", "--rm", path], check=True)
        self.count += 1

    def end(self) -> None:
        pass

    def get(self, back: int) -> Any:
        path = self.path(f"{self.count - 1 - back}.npy.zst")
        out = self.path("out.npy")
        subprocess.run(["zstd", "-q", "-d", "-f", path, "-o", out], check=True)
        data = np.load(out)
        os.unlink(out)
        return data


class Git(libraries.Side):
    """A .npy file in a repository, whose objects `git gc` packs at the end."""

    name = "git, after git gc"

    def git(self, *args: str) -> bytes:
        who = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
        return subprocess.run(["git", "-C", self.folder, *who, *args], check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout

    def begin(self, data: Any) -> None:
        if shutil.which("git") is None:
            raise ImportError("there is no program git")
        self.git("init", "-q")
        self.add(data)

    def add(self, data: Any) -> None:
        np.save(self.path("a.npy"), data)
        self.git("add", "a.npy")
        self.git("commit", "-q", "-m", "written")

    def end(self) -> None:
        self.git("gc", "-q")
        os.unlink(self.path("a.npy"))  # only the history counts

    def get(self, back: int) -> Any:
        import io

        return np.load(io.BytesIO(self.git("show", f"HEAD~{back}:a.npy")))


SIDES: tuple[Any, ...] = Plain, Deltas, Deeper, Files, Git, Icechunk


def timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def show(folder: str, rounds: int) -> None:
    versions = made()
    print(f"\n### Ten versions of {versions[0].nbytes / 1e6:.1f} MB of float32, 1 % of the elements changed in each\n\n"
          f"| | MB | of one version | write all, ms | then, ms | read the newest, ms | read the oldest, ms |\n"
          "| --- | --- | --- | --- | --- | --- | --- |")
    for kind in SIDES:
        try:
            side = kind(os.path.join(folder, "versions"), "zstd")
            took = timed(lambda: side.begin(versions[0]))
        except ImportError as error:
            print(f"{kind.name} is left out: {error}")
            continue
        for data in versions[1:]:
            took += timed(lambda data=data: side.add(data))
        after = timed(side.end)
        size = bytes_in(side.folder)
        reads = []
        for back in 0, COUNT - 1:
            if not np.array_equal(side.get(back), versions[COUNT - 1 - back]):
                raise SystemExit(f"bench: {side.name} gave other values than were written")
            reads.append(min(timed(lambda back=back: side.get(back)) for _ in range(rounds)))
        times = [f"{seconds * 1e3:.1f}" for seconds in (took, after, *reads)]
        print(f"| {side.name} | {size / 1e6:.2f} | {size / versions[0].nbytes:.2f} | {' | '.join(times)} |", flush=True)
        side.remove()
