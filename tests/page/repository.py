"""The repository that the tests of the page look at: all kinds of arrays, branches, and names that mean harm."""

import json
import pathlib
import subprocess

import numpy as np

HOSTILE = "/<script>alert('path')<"
AUTHOR = "<script>alert('author')</script> <x@example.org>"
LATITUDES = np.linspace(-88, 88, 45)
LONGITUDES = np.arange(0, 360, 5.0)


def field(month: int) -> np.ndarray:
    """Returns a made-up temperature of a month, in K."""
    lat, lon = np.meshgrid(np.radians(LATITUDES), np.radians(LONGITUDES), indexing="ij")
    wave = 6 * np.sin(3 * lon + month / 2) * np.cos(lat) ** 2
    return 255 + 45 * np.cos(lat) ** 2 - 12 * np.sin(lat) * np.cos(month * np.pi / 6) + wave


def packed(month: int) -> np.ndarray:
    """Returns the field as int16, with scale 0.01 and offset 273.15; a corner is missing."""
    out = np.round((field(month) - 273.15) / 0.01).astype(np.int16)
    out[:3, :5] = -32768
    return out


class Maker:
    """Runs the command on one file."""

    def __init__(self, breccia: str, folder: pathlib.Path, name: str):
        self.breccia = breccia
        self.folder = folder
        self.file = folder / name
        self.clock = 1_790_000_000

    def run(self, command: str, *arguments: str) -> None:
        subprocess.run([self.breccia, command, str(self.file), *arguments, "--quiet"], check=True)

    def write(self, path: str, values: np.ndarray, *slices: str) -> None:
        source = self.folder / "values.npy"
        np.save(source, values)
        self.run("write", path, *slices, "--from", str(source))

    def create(self, path: str, values: np.ndarray, *options: str) -> None:
        shape = ",".join(map(str, values.shape))
        self.run("create", path, "--shape", shape, *options)
        self.write(path, values)

    def commit(self, message: str, author: str = "Ada Lovelace <ada@example.org>") -> None:
        self.clock += 40_000
        self.run("commit", "-m", message, "--author", author, "--date", f"@{self.clock}")


def coordinates(make: Maker) -> None:
    make.create("/lat", LATITUDES, "--dtype", "float64", "--dimension-names", "lat",
                "--attrs", json.dumps({"units": "degrees_north"}))
    make.create("/lon", LONGITUDES, "--dtype", "float64", "--dimension-names", "lon",
                "--attrs", json.dumps({"units": "degrees_east"}))
    days = np.array([15, 46, 74, 105, 135, 166], dtype=np.int32)
    make.create("/time", days, "--dtype", "int32", "--dimension-names", "time",
                "--attrs", json.dumps({"units": "days since 2026-01-01", "calendar": "noleap"}))


def arrays(make: Maker) -> None:
    months = np.stack([packed(m) for m in range(6)])
    make.create("/temperature", months, "--dtype", "int16", "--chunks", "1,15,24",
                "--fill", "-32768", "--dimension-names", "time,lat,lon", "--attrs",
                json.dumps({"units": "K", "scale_factor": 0.01, "add_offset": 273.15,
                            "_FillValue": -32768, "long_name": "air temperature"}))
    y, x = np.mgrid[0:64, 0:96]
    picture = np.stack([x * 2, y * 3, 255 - x], axis=-1).astype(np.uint8)
    make.create("/photo", picture, "--dtype", "uint8", "--chunks", "32,32,3")
    make.create("/series", np.where(np.arange(500) % 50 == 7, np.nan, np.sin(np.arange(500) / 25)),
                "--dtype", "float64")
    make.run("create", "/stations", "--shape", "3", "--dtype", "string")
    for i, name in enumerate(["Reykjav\u00edk", "<img src=x onerror=alert(1)>", "\u202eabc"]):
        make.run("write", "/stations", f"[{i}]", "--value", name)
    make.run("create", "/labels", "--shape", "40,12", "--dtype", "string")
    make.run("write", "/labels", "[33, 2]", "--value", "far below")
    make.run("create", "/one", "--shape", "", "--dtype", "int64")
    make.run("write", "/one", "--value", "9007199254740993")
    records = np.array([(1, 2.5), (2, -1.0)], dtype=[("id", "<i4"), ("height", "<f8")])
    make.run("create", "/records", "--shape", "2", "--dtype",
             json.dumps({"name": "struct", "configuration": {"fields": [
                 {"name": "id", "data_type": "int32"}, {"name": "height", "data_type": "float64"}]}}))
    make.write("/records", records)
    make.run("create", "/sparse", "--shape", "100,100", "--chunks", "20,20", "--dtype", "float32",
             "--fill", "NaN")
    make.write("/sparse", np.arange(1600, dtype=np.float32).reshape(40, 40), "[20:60, 40:80]")


def large(make: Maker) -> None:
    """More chunks than the server decodes for one picture."""
    at = np.arange(5120, dtype=np.float32) / 2
    make.create("/large", at[:, None] + at[None, :], "--dtype", "float32", "--chunks", "512,512")


def pyramid(make: Maker) -> None:
    datasets = [{"path": str(i)} for i in range(3)]
    make.run("group", "/cells", "--attrs", json.dumps(
        {"ome": {"version": "0.5", "multiscales": [{"axes": [
            {"name": "y", "type": "space"}, {"name": "x", "type": "space"}], "datasets": datasets}]}}))
    y, x = np.mgrid[0:1600, 0:1600]
    full = ((np.hypot(x - 800, y - 700) / 4) % 256).astype(np.uint8)
    for i in range(3):
        level = full[:: 2**i, :: 2**i]
        make.create(f"/cells/{i}", np.ascontiguousarray(level), "--dtype", "uint8", "--chunks", "200,200")


CALENDARS = {
    "standard": "days since 1500-03-01 06:30:00", "proleptic_gregorian": "hours since 0001-01-01",
    "julian": "seconds since 1970-01-01T00:00:00Z", "noleap": "days since 2000-02-28",
    "all_leap": "minutes since 1850-01-01 00:00", "360_day": "days since 0001-01-30 12:00:00 +02:00",
    "gregorian": "days since 0001-01-01"}
MOMENTS = [-400000.25, -1000.5, 0, 0.75, 1, 30, 31, 59, 60, 365, 366, 30165, 30166, 30167.5, 577736,
           577737, 800000]


def calendars(make: Maker) -> None:
    for name, units in CALENDARS.items():
        scale = {"hours": 24, "minutes": 1440, "seconds": 86400}.get(units.split()[0], 1)
        make.create(f"/calendars/{name}", np.array(MOMENTS) * scale, "--dtype", "float64",
                    "--attrs", json.dumps({"units": units, "calendar": name}))


def build_long(breccia: str, folder: pathlib.Path) -> pathlib.Path:
    """Makes long.brc, with more commits than the page shows at once, and a branch far below."""
    make = Maker(breccia, folder, "long.brc")
    make.run("init")
    make.run("create", "/a", "--shape", "4", "--dtype", "int32")
    calendars(make)
    for i in range(60):
        make.run("write", "/a", f"[{i % 4}]", "--value", str(i))
        make.commit(f"Write number {i}")
        if i == 2:
            make.run("branch", "early")
    return make.file


def build(breccia: str, folder: pathlib.Path) -> pathlib.Path:
    """Makes climate.brc in the folder."""
    make = Maker(breccia, folder, "climate.brc")
    make.run("init")
    coordinates(make)
    arrays(make)
    pyramid(make)
    large(make)
    make.run("attrs", "/", "readme=" + json.dumps("A made-up climate.\nIt shows what the page can show."))
    make.commit("Import the first six months")
    make.run("tag", "v1.0")
    make.run("branch", "calibration")
    changed = packed(2)
    changed[10:20, 30:50] += 150
    changed[40, 2] += 90
    make.write("/temperature", changed, "[2]")
    make.run("write", "/photo", "[4:8, 10:20, 1]", "--value", "255")
    make.commit("Correct March over the ocean", "Grace Hopper <grace@example.org>")
    make.run("attrs", "/temperature", 'long_name="air temperature at 2 m"')
    make.create(HOSTILE, np.arange(12, dtype=np.int32).reshape(3, 4), "--dtype", "int32")
    make.commit("<img src=x onerror=alert('message')> \u202e" + "long " * 2000, AUTHOR)
    make.run("switch", "calibration")
    make.write("/series", np.cos(np.arange(500) / 25))
    make.commit("Another series")
    make.run("switch", "main")
    make.run("merge", "calibration", "--author", "Ada Lovelace <ada@example.org>")
    make.run("codecs", "/sparse", "--compress", "gzip:9", "--rewrite")
    make.commit("Store the sparse array smaller")
    make.run("write", "/temperature", "[0, 0:10, 0:10]", "--value", "0")
    return make.file
