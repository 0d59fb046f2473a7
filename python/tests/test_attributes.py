"""Attributes on every way in and out: NaN and infinities are numbers, names have any character, and what is set is
what comes back, or is refused where it is set."""
import json
import math
import shutil
import warnings

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

xr = pytest.importorskip("xarray")
zarr = pytest.importorskip("zarr")

import breccia  # noqa: E402
from breccia.xarray import Backend  # noqa: E402
from zarr.core.buffer import default_buffer_prototype  # noqa: E402
from zarr.core.sync import sync  # noqa: E402

ODD = {"missing": math.nan, "range": [-math.inf, math.inf], "deep": {"a": [1, {"b": math.nan}]}, "word": "NaN",
       "none": None, "nul\0": "\0", "nul": 1, "\0": math.inf}
WRITES_WORDS = pytest.mark.skipif(zarr.__version__ < "3.1", reason="before, it made texts of them")


def same(a, b):
    """Equal, also where it is NaN; and of the same types."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or a != a and b != b)


def strict(text):
    def refuse(word):
        raise AssertionError(f"{word} in a document")

    return json.loads(text, parse_constant=refuse)


def documents(folder):
    names = ("zarr.json", ".zattrs", ".zarray", ".zgroup", ".zmetadata")
    return [file for file in folder.rglob("*") if file.name in names]


def with_odd(repo):
    with repo.session("main", message="odd") as s:
        s.create_group("g", attributes=ODD)
        s.create_array("g/a", shape=3, dtype="f4", attributes=ODD)
    return repo


# ---- inside --------------------------------

def test_numbers_and_names_are_what_was_set(repo):
    with_odd(repo)
    view = repo.view("main")
    for node in view["g"], view["g/a"]:
        assert same(node.attrs.asdict(), ODD) and math.isnan(node.attrs["missing"])
    with repo.session("main", message="one by one") as s:
        attrs = s["g"].attrs
        attrs["new\0"] = np.float32("nan")
        attrs["new"] = -math.inf
        attrs["nul"] = 2
        del attrs["nul\0"]
    assert same(repo.view("main")["g"].attrs.asdict(), {
        **{k: v for k, v in ODD.items() if k != "nul\0"}, "new\0": math.nan, "new": -math.inf, "nul": 2})
    changes = repo.diff("main~1", "main")
    assert {"/attributes/new\0", "/attributes/nul\0", "/attributes/new"} <= set(changes[0].metadata)


@WRITES_WORDS
def test_the_store_gives_back_what_zarr_wrote(repo):
    store = repo.store("main", mode="r+")
    group = zarr.create_group(store, path="g", attributes={k: v for k, v in ODD.items() if k.isprintable()})
    group.create_array("a", shape=(3,), dtype="f4", attributes={"nan": math.nan, "nul\0": 1})
    memory = zarr.storage.MemoryStore()
    other = zarr.create_group(memory, path="g", attributes={k: v for k, v in ODD.items() if k.isprintable()})
    other.create_array("a", shape=(3,), dtype="f4", attributes={"nan": math.nan, "nul\0": 1})
    for key in "g/zarr.json", "g/a/zarr.json":
        ours, theirs = (sync(s.get(key, default_buffer_prototype())).to_bytes() for s in (store, memory))
        assert ours == theirs and b"NaN" in ours
    repo.draft().commit("by zarr")
    read = zarr.open_group(repo.store("main"), mode="r", path="g")
    assert math.isnan(read.attrs["missing"]) and read.attrs["range"] == [-math.inf, math.inf]
    assert same(repo.view("main")["g/a"].attrs.asdict(), {"nan": math.nan, "nul\0": 1})


def dataset():
    values = np.array([1, np.nan, 3], "f4")
    made = xr.Dataset({"t": ("x", values, {"valid_min": -math.inf, "units": "K"})}, attrs={"g": math.nan})
    made.t.encoding["missing_value"] = np.float32("nan")
    return made


@WRITES_WORDS
def test_xarray_through_the_store_and_the_engine(repo):
    with repo.session("main", message="xarray") as s:
        dataset().to_zarr(s.store, consolidated=False)
    for got in (xr.open_zarr(repo.store("main"), consolidated=False), xr.open_dataset(repo.path, engine=Backend)):
        assert got.t.attrs["valid_min"] == -math.inf and math.isnan(got.attrs["g"])
        assert math.isnan(got.t.encoding["missing_value"]) and np.isnan(got.t.values[1])
        got.close()


# ---- in --------------------------------

@WRITES_WORDS
@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize("kind", ["folder", "zip"])
@pytest.mark.parametrize("consolidated", [False, True])
def test_what_zarr_wrote_is_imported(repo, tmp_path, form, kind, consolidated):
    place = tmp_path / ("in.zarr" if kind == "folder" else "in.zarr.zip")
    store = zarr.storage.LocalStore(place) if kind == "folder" else zarr.storage.ZipStore(place, mode="w")
    group = zarr.create_group(store, attributes=ODD, zarr_format=form)
    group.create_array("a", shape=(3,), dtype="f4", attributes=ODD, fill_value=math.nan)
    if consolidated:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            zarr.consolidate_metadata(store)
    store.close()
    with repo.session("main", message="import") as s:
        s.import_(place, "/g")
    for node in repo.view("main")["g"], repo.view("main")["g/a"]:
        assert same(node.attrs.asdict(), ODD)
    assert math.isnan(repo.view("main")["g/a"].fill_value)


# ---- out --------------------------------

@pytest.mark.parametrize("form", ["zarr3", "zarr2"])
@pytest.mark.parametrize("consolidated", [False, True])
def test_exports_are_strict_and_lead_back(repo, tmp_path, form, consolidated):
    with_odd(repo)
    with pytest.warns(UserWarning, match=r"^/g, /g/a: attributes .* nan_tokens=True$") as told:
        repo.export(tmp_path / "out", "/g", format=form, consolidated=consolidated)
    assert len(told) == 1
    assert len([strict(file.read_text()) for file in documents(tmp_path / "out")]) >= 2
    with repo.session("main", message="back") as s:
        s.import_(tmp_path / "out", "/back")
    for path in "back", "back/a":
        assert same(repo.view("main")[path].attrs.asdict(), ODD)


@pytest.mark.parametrize("form", [3, 2])
def test_xarray_opens_and_saves_exports(repo, tmp_path, form):
    """By default without the numbers, and with them where it may be no strict JSON."""
    with repo.session("main", message="xarray") as s:
        s.create_array("x", shape=3, dtype="f4", dimension_names=["x"])[...] = [0, 1, 2]
        s.create_array("t", shape=3, dtype="f4", dimension_names=["x"], fill_value=math.nan, attributes={
            "missing_value": math.nan, "_FillValue": "AAAAAAAA+H8=", "valid_min": -math.inf})[...] = [1, math.nan, 3]
    for words in False, True:
        out, saved = tmp_path / f"out{words}", tmp_path / f"saved{words}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if not words else "error")
            repo.export(out, "/", format=f"zarr{form}", nan_tokens=words)
        got = xr.open_zarr(out, consolidated=False, zarr_format=form)
        assert np.array_equal(got.t.values, [1, np.nan, 3], equal_nan=True)
        assert math.isnan(got.t.encoding["_FillValue"])
        if words:
            assert got.t.attrs["valid_min"] == -math.inf and math.isnan(got.t.encoding["missing_value"])
        got.load().to_zarr(saved, consolidated=False, zarr_format=form)
        again = xr.open_zarr(saved, consolidated=False, zarr_format=form)
        assert np.array_equal(again.t.values, [1, np.nan, 3], equal_nan=True)


# ---- anything --------------------------------

NAMES = st.text(max_size=4) | st.sampled_from(["", "\0", "a\0", "\1n1", "_breccia_numbers", "missing_value", "é"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | NAMES
    | st.sampled_from(["NaN", "-Infinity", "AAAAAAAA+H8="]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8)


@hypothesis.given(st.dictionaries(NAMES | st.just("s\ud800"), VALUES, max_size=4))
def test_any_attributes_come_back_or_are_refused_where_they_are_set(tmp_path_factory, given):
    folder = tmp_path_factory.mktemp("any")
    with breccia.open(folder / "data.brc", create=True) as repo, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        document = {"zarr_format": 3, "node_type": "group", "attributes": given}
        data = default_buffer_prototype().buffer.from_bytes(json.dumps(document).encode())
        if any("\ud800" in name for name in given):
            with pytest.raises(ValueError):
                sync(repo.store("main", mode="r+").set("g/zarr.json", data))
            return
        sync(repo.store("main", mode="r+").set("g/zarr.json", data))
        repo.draft().commit("by key")
        with repo.session("main", message="by attribute") as s:
            s.create_group("h")
            for name, value in given.items():
                s["h"].attrs[name] = value
        for path in "g", "h":
            assert same(repo.view("main")[path].attrs.asdict(), given)
        got = sync(repo.store("main").get("g/zarr.json", default_buffer_prototype())).to_bytes()
        assert same(json.loads(got), document)
        repo.export(folder / "out", "/g")
        strict((folder / "out" / "zarr.json").read_text())
        with repo.session("main", message="back") as s:
            s.import_(folder / "out", "/back")
        assert same(repo.view("main")["back"].attrs.asdict(), given)


# ---- consolidated metadata --------------------------------

def sources(path, version):
    """A hierarchy of zarr's with consolidated metadata, and a copy without the documents of its nodes."""
    whole, bare = path / "whole", path / "bare"
    group = zarr.create_group(whole, zarr_format=version, attributes={"root": 1})
    group.create_group("g", attributes={"missing": math.nan, "n": 2})
    for name in "a", "g/b":
        array = group.create_array(name, shape=(4,), chunks=(2,), dtype="i4", attributes={"in": name})
        array[:] = np.arange(4)
    group.create_array("g/never_written", shape=(3,), dtype="f8", fill_value=math.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(whole)
    shutil.copytree(whole, bare)
    for file in documents(bare):
        if file.name != ".zmetadata" and file != bare / "zarr.json":
            file.unlink()
    shutil.rmtree(bare / "g" / "never_written")
    return whole, bare


@WRITES_WORDS
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("zipped", [False, True])
def test_i24_1_documents_may_be_consolidated_alone(repo, tmp_path, version, zipped):
    whole, bare = sources(tmp_path, version)
    if zipped:
        bare = shutil.make_archive(str(tmp_path / "bare"), "zip", bare)
    with repo.session("main", message="in") as s, warnings.catch_warnings():
        warnings.simplefilter("error")
        s.import_(whole, "whole")
        s.import_(bare, "bare")
    view = repo.view("main")
    for name in "", "g", "a", "g/b", "g/never_written":
        one, other = (view[f"{root}/{name}".rstrip("/")] for root in ("whole", "bare"))
        assert same(one.attrs.asdict(), other.attrs.asdict())
        if isinstance(one, breccia.Array):
            np.testing.assert_array_equal(one[...], other[...])


@pytest.mark.parametrize("version", [2, 3])
def test_i24_1_documents_win_and_a_warning_says_so(repo, tmp_path, version):
    whole, bare = sources(tmp_path, version)
    zarr.open_group(whole, mode="r+", use_consolidated=False)["a"].attrs["in"] = "changed"
    with repo.session("main", message="in") as s:
        with pytest.warns(UserWarning, match=r"differ from the consolidated metadata.*\(1 in all\): a$") as told:
            s.import_(whole, "whole")
        assert told[0].filename == __file__
        (bare / ("zarr.json" if version == 3 else ".zmetadata")).write_text(
            '{"zarr_format": 3, "node_type": "group"}' if version == 3 else '{"metadata": {}}')
        with pytest.raises(breccia.InvalidError, match="no document of an array"):
            s.import_(bare, "bare")
        assert "bare" not in s
    assert repo.view("main")["whole/a"].attrs["in"] == "changed"


# ---- notes for the way back --------------------------------

def test_i24_14_what_xarray_appends_to_stays_netcdf(repo, tmp_path):
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        file.createDimension("unused", 7)
        file.title = "before"
        file.createVariable("t", "f4", ("time", "x"))[:] = np.arange(6).reshape(2, 3)
        file.createVariable("time", "i4", ("time",))[:] = [0, 1]
    with repo.session("main", message="in") as s:
        s.import_(tmp_path / "in.nc", "/")
    more = xr.Dataset({"t": (("time", "x"), np.full((1, 3), 9, "f4")), "time": ("time", np.array([2], "i4"))},
                      attrs={"title": "after"})
    with repo.session("main", message="append") as s:
        more.to_zarr(s.store, append_dim="time", consolidated=False)
    repo.export(tmp_path / "out.nc")
    with netCDF4.Dataset(tmp_path / "out.nc") as file:
        assert file.dimensions["time"].isunlimited() and len(file.dimensions["time"]) == 3
        assert len(file.dimensions["unused"]) == 7 and file.title == "after"
        np.testing.assert_array_equal(file["t"][:], [[0, 1, 2], [3, 4, 5], [9, 9, 9]])
