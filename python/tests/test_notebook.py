"""Pages for notebooks: what they say, that what comes from a file stays text, and how little is read. And the
command's pictures, against NumPy's pixels."""
import base64
import html.parser
import pathlib
import re
import struct
import subprocess
import zlib

import numpy as np
import pytest

import breccia
from breccia import _html, _pictures

COMMAND = pathlib.Path(breccia.__file__).parent / "bin" / "breccia"
EVIL = "<script>alert(1)</script>'\"&<img src=x onerror=alert(2)>"
TAGS = {"div", "b", "table", "tr", "th", "td", "details", "summary", "pre", "img", "svg", "title", "polygon", "path",
        "polyline"}
ATTRIBUTES = {"style", "src", "width", "height", "title", "alt", "role", "stroke", "stroke-width", "fill", "points",
              "d", "open"}


class Page(html.parser.HTMLParser):
    """A page: its tags are closed in order, and it has none that can do something."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.tags = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []
        self.text = " ".join(self.texts)

    def handle_starttag(self, tag, attrs):
        assert tag in TAGS and {name for name, _ in attrs} <= ATTRIBUTES
        for name, value in attrs:
            assert name != "src" or value.startswith("data:image/png;base64,")
        self.tags.append(tag)
        if tag not in ("img", "path"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in ("img", "path"):
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def decoded(png):
    """Pixels of a PNG with 8 bits a channel, by a reader that knows nothing of breccia: numbers of colours with the
    palette and its opacities, else channels."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, parts = 8, {}
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + size]
        assert struct.unpack(">I", png[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + body)
        parts[kind] = parts.get(kind, b"") + body
        at += 12 + size
    width, height, depth, kind, *rest = struct.unpack(">IIBBBBB", parts[b"IHDR"])
    assert depth == 8 and rest == [0, 0, 0] and list(parts)[-1] == b"IEND"
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind]
    lines = np.frombuffer(zlib.decompress(parts[b"IDAT"]), "u1").reshape(height, 1 + width * channels)
    rows = np.zeros((height, width * channels), "u1")
    above = np.zeros(width * channels, int)
    for y in range(height):
        filtered, line = lines[y, 0], lines[y, 1:].astype(int)
        if filtered == 2:
            line = line + above
        elif filtered:
            for x in range(len(line)):
                left = line[x - channels] if x >= channels else 0
                corner = above[x - channels] if x >= channels else 0
                nearest = min((left, above[x], corner), key=lambda v: abs(left + above[x] - corner - v))
                line[x] = line[x] + {1: left, 3: (left + above[x]) // 2, 4: nearest}[int(filtered)] & 255
        above = line & 255
        rows[y] = above
    palette = np.frombuffer(parts.get(b"PLTE", b""), "u1").reshape(-1, 3)
    return rows.reshape(height, width, channels), palette, parts.get(b"tRNS", b"")


def image_in(page):
    found = re.findall("base64,([^']*)'", page)
    assert len(found) == 1 and len(found[0]) <= 1 << 16
    return decoded(base64.b64decode(found[0]))


def in_colors(data, low, high, colors=256):
    """Numbers of colours, as matplotlib has them."""
    with np.errstate(invalid="ignore"):
        return np.clip(np.floor((data / 2 - low / 2) / (high / 2 - low / 2) * colors), 0, colors - 1)


@pytest.fixture
def climate(repo):
    with repo.session("main", message="climate") as s:
        s.create_array("t2m", data=np.random.default_rng(0).random((4, 60, 90)).astype("f4"), chunks=(2, 20, 40),
                       dimension_names=["time", "lat", None], attributes={"units": "K", "long_name": "2 m temperature"})
        s.create_array("lat", data=np.linspace(-90, 90, 60), attributes={"units": "degrees_north"})
        s.create_group("run/deep", attributes={"institute": "A & B"})
    return repo.view("main")


def test_an_array_has_dimensions_type_units_chunks_and_a_picture(climate):
    page = climate["t2m"]._repr_html_()
    read = Page(page)
    assert "(time: 4, lat: 60, 90) float32, K" in read.text
    assert re.search(r"time\s+4\s+2\s+2", read.text) and re.search(r"lat\s+60\s+20\s+3\s+degrees_north", read.text)
    assert "2 m temperature" in read.text and "Attributes (2)" in read.text and "/t2m" in read.text
    assert "time 4 × lat 60 × 90, in chunks of 2 × 20 × 40" in read.text
    pixels, palette, opacity = image_in(page)
    plane = climate["t2m"][0].astype("f8")
    assert pixels.shape == (60, 90, 1) and not opacity and palette.shape == (256, 3)
    assert (pixels[..., 0] == in_colors(plane, *np.percentile(plane, [2, 98]))).all()
    assert repr(climate["t2m"]).startswith("<breccia.Array")


def test_a_group_lists_its_arrays(climate):
    page = climate._repr_html_()
    read = Page(page)
    assert "Arrays (2)" in read.text and "Groups (1)" in read.text and "deep" in read.text
    assert "(time: 4, lat: 60, 90) float32, K" in read.text and read.tags.count("img") == 1
    assert "A & B" in Page(climate["run/deep"]._repr_html_()).text
    assert Page(climate["run"]._repr_html_()).text.count("deep") == 1


def test_names_and_values_of_a_file_stay_text(repo):
    with repo.session("main", message=EVIL, author=EVIL) as s:
        name = EVIL.replace("/", "|")
        group = s.create_group(name, attributes={EVIL: EVIL, "n": {EVIL: [EVIL]}})
        group.create_array(name, data=np.eye(4), dimension_names=[EVIL, "\x1b[31m\u202e"],
                           attributes={"units": EVIL, EVIL: "x" * 100000})
        group.create_array("records", shape=2, dtype=[(name, "i4")], attributes={"units": 7})
        group.create_array("up", data=np.eye(2), dimension_names=["..", ""])
        group[name + "2"] = [EVIL]
    repo.tag("v1")
    view = repo.view("main")
    for thing in [repo, view, *view.walk()]:
        page = thing._repr_html_()
        read = Page(page)
        assert "\x1b" not in page and "\u202e" not in page and len(page) < 60000
        assert "script" not in read.tags
    assert "alert(1)" in read.text or "records" in read.text


def test_colours_of_pictures(repo):
    rng = np.random.default_rng(1)
    with repo.session("main", message="m") as s:
        for n in (3, 4):
            s[f"c{n}"] = rng.integers(0, 256, (300, 200, n)).astype("u1")
            s[f"stack{n}"] = rng.integers(0, 256, (2, 10, 20, n)).astype("u1")
        holes = np.arange(400.0).reshape(20, 20)
        holes[3, 4:7], holes[0, 0], holes[19, 19] = np.nan, -np.inf, np.inf
        s["holes"], s["none"], s["same"] = holes, np.full((3, 3), np.nan), np.full((3, 3), 7)
        s["truth"], s["large"] = np.eye(5, dtype=bool), np.array([[-1.7e308, 1.7e308]])
        s["thin"], s["tall"] = np.zeros((3, 100000)), np.zeros((100000, 3), "u1")
    view = repo.view("main")
    for n in (3, 4):
        pixels, _, _ = image_in(view[f"c{n}"]._repr_html_())
        assert (pixels == view[f"c{n}"][::4, ::4]).all()
        assert (image_in(view[f"stack{n}"]._repr_html_())[0] == view[f"stack{n}"][0]).all()
    pixels, palette, opacity = image_in(view["holes"]._repr_html_())
    assert opacity == b"\xff" * 255 + b"\0" and ((pixels[..., 0] == 255) == np.isnan(holes)).all()
    low, high = np.percentile(holes[np.isfinite(holes)], [2, 98])
    assert (pixels[..., 0] == np.where(np.isnan(holes), 255, in_colors(holes, low, high, 255))).all()
    assert [bytes(palette[i]).hex() for i in (0, 51, 102, 153, 204, 255)] == [
        "440154", "414487", "2a788e", "22a884", "7ad151", "fde725"]
    assert "<img" not in view["none"]._repr_html_()
    for name in "same", "truth", "large":
        image_in(view[name]._repr_html_())
    assert image_in(view["thin"]._repr_html_())[0].shape == (3, 160, 1)
    assert image_in(view["tall"]._repr_html_())[0].shape[0] == 160


def test_little_is_read(repo, monkeypatch):
    with repo.session("main", message="m") as s:
        s.create_array("huge", shape=(2**40, 2**40), dtype="f4", chunks=(1000, 1000))
        s.create_array("few", shape=(10, 4000, 4000), dtype="u1", chunks=(1, 4000, 4000))
        s.create_array("deep", shape=(2,) * 32, dtype="u1", chunks=(1,) * 32)
        s.create_array("long", shape=2**62, dtype="f8", chunks=2**20)
        with s.transaction():
            for i in range(103):
                s.create_array(f"many/a{i:03}", shape=(3, 3), dtype="f4")
        s["words"], s["times"], s["complex"] = ["a"], np.zeros((2, 2), "M8[s]"), np.zeros((2, 2), "c8")
        s["scalar"], s["empty"] = np.float32(2), np.zeros((0, 3))
    view = repo.view("main")
    read, get = [], breccia.Array.__getitem__

    def counted(array, key):
        read.append(np.size(found := get(array, key)))
        return found

    monkeypatch.setattr(breccia.Array, "__getitem__", counted)
    for thing in view.walk():
        Page(thing._repr_html_())
    assert read and max(read) <= _pictures.SIDE**2
    del read[:]
    page = Page(view["many"]._repr_html_())
    assert "and 3 more" in page.text and page.tags.count("img") == _html.MOST_PICTURES == len(read)
    assert all("<img" not in view[name]._repr_html_() for name in ("huge", "words", "times", "complex", "empty"))
    assert "2 of 2" not in Page(view["scalar"]._repr_html_()).text
    assert "<img" in view["few"]._repr_html_() and "1099511627776" in view["huge"]._repr_html_()


def test_damage_hides_nothing_else(climate):
    import sqlite3
    path = climate.repository.path
    climate.repository.close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE blob SET data = zeroblob(length(data)) WHERE length(data) > 2000")
    db.close()
    with breccia.open(path) as again:
        page = Page(again.view("main")["t2m"]._repr_html_())
        assert "is damaged" in page.text and "2 m temperature" in page.text and "img" not in page.tags
        page = Page(again.view("main")._repr_html_())
        assert "is damaged" in page.text and "degrees_north" in page.text


@pytest.mark.skipif(not COMMAND.exists(), reason="the package has no command here")
def test_the_command_draws_what_numpy_computes(repo, tmp_path):
    rng = np.random.default_rng(2)
    arrays = {"f4": rng.normal(size=(70, 50)).astype("f4"), "f8": rng.normal(size=(3, 1500)), "i2": rng.integers(
        -300, 300, (40, 60)).astype("i2"), "u1": rng.integers(0, 256, (33, 44)).astype("u1"),
        "f2": rng.normal(size=(9, 9)).astype("f2"), "u8": rng.integers(0, 2**63, (9, 9)).astype("u8"),
        "b1": rng.integers(0, 2, (6, 7)).astype("?"), "rgb": rng.integers(0, 256, (12, 13, 3)).astype("u1")}
    arrays["f4"][3:9, 4:8] = np.nan
    with repo.session("main", message="m") as s:
        for name, data in arrays.items():
            s.create_array(name, data=data, chunks=tuple(min(n, 16) for n in data.shape))
    path = repo.path
    repo.close()

    def drawn(*options):
        done = subprocess.run([COMMAND, "read", path, *options, "-o", str(tmp_path / "x.png")], capture_output=True,
                              text=True)
        assert done.returncode == 0, done.stderr
        return decoded((tmp_path / "x.png").read_bytes())

    colors = set()
    assert (drawn("rgb")[0] == arrays.pop("rgb")).all()
    for name, data in arrays.items():
        values = data.astype("f8")
        limits = np.percentile(values[np.isfinite(values)], [2, 98]) if name != "b1" else (0, 1)
        right, missing = in_colors(values, *limits), np.isnan(values)
        grey = drawn(name, "--cmap", "grey")[0]
        assert (grey[..., 0][~missing] == right[~missing]).all()
        assert grey.shape[2] == 1 or (grey[..., 1] == np.where(missing, 0, 255)).all()
        pixels, palette, _ = drawn(name)
        if len(palette):
            assert (pixels[..., 0] == right).all()
            viridis = palette
        else:
            assert (pixels[..., 3] == np.where(missing, 0, 255)).all()
            pairs = {(int(i), bytes(c)) for i, c in zip(right[~missing], pixels[..., :3][~missing], strict=True)}
            colors.update(pairs)
        assert (drawn(name, "--cmap", "grey", "--limits", "0:1")[0][..., 0][~missing] == in_colors(
            values, 0, 1)[~missing]).all()
    assert colors <= {(i, bytes(c)) for i, c in enumerate(viridis)}
    assert abs(viridis.astype(int) - _pictures.palette()).max() <= 8
    assert [bytes(viridis[i]).hex() for i in (0, 64, 128, 192, 255)] == [
        "440154", "3b528b", "21918c", "5ec962", "fde725"]
