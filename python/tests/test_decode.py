"""`breccia read --decode`, `write --decode` and slices by value, beside xarray and cftime."""
import json
import pathlib
import subprocess

import numpy as np
import pytest

xr = pytest.importorskip("xarray")
cftime = pytest.importorskip("cftime")
pytest.importorskip("zarr")

import breccia  # noqa: E402
import zarr  # noqa: E402
from breccia.xarray import Backend  # noqa: E402

COMMAND = pathlib.Path(__file__).parents[2] / "build" / "breccia"
pytestmark = pytest.mark.skipif(not COMMAND.exists(), reason="the command is not built")

CALENDARS = ["standard", "gregorian", "proleptic_gregorian", "noleap", "365_day", "all_leap", "366_day", "360_day",
             "julian"]


def run(*arguments, fails=False):
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True)
    assert fails == (done.returncode != 0), done.stderr
    return done.stderr if fails else done.stdout


def made(tmp_path, arrays):
    """A file with arrays of one dimension: name -> (elements, attributes)."""
    file = tmp_path / "data.brc"
    with breccia.open(str(file), create=True) as repo, repo.session("main", message="made") as session:
        group = zarr.open_group(session.store, mode="a")
        for name, (elements, attributes) in arrays.items():
            array = group.create_array(name, shape=elements.shape, dtype=elements.dtype, dimension_names=[f"{name}_n"],
                                       attributes=attributes)
            array[...] = elements
    return file


def texts(dates):
    """Writes dates as the command does: with a T, and as many digits of a second as they need."""
    def text(date):
        whole = f"{date.year:04d}-{date.month:02d}-{date.day:02d}T{date.hour:02d}:{date.minute:02d}:{date.second:02d}"
        part = f".{date.microsecond:06d}".rstrip("0") if date.microsecond else ""
        return whole + part
    return [text(date) for date in dates]


@pytest.mark.parametrize("calendar", CALENDARS)
@pytest.mark.parametrize("unit", ["seconds", "minutes", "hours", "days", "milliseconds", "microseconds"])
def test_dates_are_those_of_cftime(tmp_path, calendar, unit):
    random = np.random.default_rng(len(calendar) + len(unit))
    days = {"days": 1, "hours": 24, "minutes": 1440, "seconds": 86400, "milliseconds": 86400_000,
            "microseconds": 86400_000_000}[unit]
    since = f"{unit} since 1850-3-1 06:30:00"
    numbers = np.concatenate([random.integers(-180000 * days, 200000 * days, 40), np.arange(-3, 400, 13) * days])
    file = made(tmp_path, {"time": (numbers, {"units": since, "calendar": calendar})})
    got = json.loads(run("read", file, "/time", "--decode", "--json"))
    want = cftime.num2date(numbers, since, calendar, only_use_cftime_datetimes=True)
    assert got["data"] == texts(want)
    for i in 0, 41, 60:  # and back
        run("write", file, "/time", f"[{i}]", "--value", got["data"][i], "--decode")
    assert json.loads(run("read", file, "/time", "--json"))["data"] == numbers.tolist()


def base64(number):
    import base64
    import struct
    return base64.b64encode(struct.pack("<d", number)).decode()


PACKED = {
    "i1": (np.array([1, 2, -128], "i1"), {"scale_factor": 0.5}),
    "offset": (np.array([1, 2, 3], "i4"), {"add_offset": 0.1}),
    "both": (np.array([1, -9, 30000], "i2"), {"scale_factor": 0.1, "add_offset": 280.0, "_FillValue": -9}),
    "missing": (np.array([1, -9, 30000], "i2"), {"missing_value": -9}),
    "wide": (np.array([1, -9, 2**31 - 1], "i4"), {"_FillValue": -9}),
    "long": (np.array([1, -9, 2**53 - 1], "i8"), {"_FillValue": -9, "missing_value": 1}),
    "u1": (np.array([1, 255, 3], "u1"), {"_FillValue": 255}),
    "unsigned": (np.array([1, -1, -2], "i1"), {"_Unsigned": "true"}),
    "masked": (np.array([1, -1, -2], "i2"), {"_Unsigned": "true", "_FillValue": -1, "scale_factor": 2.0}),
    "signed": (np.array([1, 127, 254], "u1"), {"_Unsigned": "false", "_FillValue": 127}),
    "f4": (np.array([0.1, 1e20, np.nan], "f4"), {"_FillValue": base64(np.float32(1e20))}),
    "f8": (np.array([0.1, -999.0, np.inf]), {"missing_value": -999.0, "scale_factor": 3.0}),
    "days": (np.array([0, 31, -9]), {"units": "days since 2000-01-01", "_FillValue": -9}),
    "hours": (np.array([0.1, 24.75, np.nan]), {"units": "hours since 1999-12-31 12:00:00"}),
    "packed_time": (np.array([0, 31, 5], "i2"), {"units": "hours since 2000-01-01", "scale_factor": 0.5}),
    "plain": (np.array([1, 2, 3], "i2"), {"units": "K"}),
}


@pytest.mark.parametrize("name", PACKED)
def test_values_and_types_are_those_of_xarray(tmp_path, name):
    file = made(tmp_path, {name: PACKED[name]})
    with xr.open_dataset(str(file), engine=Backend, rev="main") as data:
        want = data[name].values
    run("read", file, f"/{name}", "--decode", "-o", tmp_path / "got.npy")
    got = np.load(tmp_path / "got.npy")
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    if name not in ("long", "plain", "missing"):  # what was decoded is stored as it was
        run("write", file, f"/{name}", "--from", tmp_path / "got.npy", "--decode")
        with breccia.open(str(file)) as repo, repo.session("main") as session:
            stored = zarr.open_group(session.store, mode="r")[name][...]
        np.testing.assert_array_equal(stored, PACKED[name][0])


def test_slices_select_what_xarray_selects(tmp_path):
    time = np.datetime64("2020-01-01T00", "ns") + np.arange(240).astype("m8[h]") * 6
    lat = np.linspace(90, -90, 73)
    data = xr.Dataset({"t": (("time", "lat"), np.arange(240 * 73.0).reshape(240, 73))}, {"time": time, "lat": lat})
    data.time.encoding = {"units": "hours since 1900-01-01", "dtype": "i4"}
    file = tmp_path / "data.brc"
    with breccia.open(str(file), create=True) as repo, repo.session("main", message="made") as session:
        data.to_zarr(session.store, mode="a", consolidated=False)
    for words, labels in [
        ("time=2020-01-05", {"time": "2020-01-05"}),
        ("time=2020-01-05T06", {"time": "2020-01-05T06"}),
        ("time=2020-02", {"time": "2020-02"}),
        ("time=2020-01-05:2020-01-07", {"time": slice("2020-01-05", "2020-01-07")}),
        ("time=2020-01-05T05:2020-01-05T18", {"time": slice("2020-01-05T05", "2020-01-05T18")}),
        ("time=2020-02-20:", {"time": slice("2020-02-20", None)}),
        ("lat=60:30", {"lat": slice(60, 30)}),
        ("lat=30:60", {"lat": slice(60, 30)}),
        ("lat=61:-1:3", {"lat": slice(61, -1, 3)}),
        ("lat=-80:", {"lat": slice(-80, None)}),
        ("lat=:80", {"lat": slice(None, 80)}),
        ("lat=2.5, time=2020-01-01T12:00", {"lat": 2.5, "time": "2020-01-01T12:00"}),
    ]:
        got = json.loads(run("read", file, "/t", "{" + words + "}", "--json"))
        want = data.t.sel(**labels).values
        assert got["shape"] == list(want.shape) and got["data"] == want.tolist(), words
    assert "the nearest are 30.0 and 32.5" in run("read", file, "/t", "{lat=31}", fails=True)
