"""The engine "breccia" of xarray, on NetCDF files that others read too."""
import json
import os
import pathlib
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

xr = pytest.importorskip("xarray")
pytest.importorskip("zarr")

import breccia  # noqa: E402
import zarr  # noqa: E402
from breccia.xarray import Backend  # noqa: E402
from files import File  # noqa: E402

REAL = pathlib.Path(os.environ.get("BRECCIA_TEST_DATA", pathlib.Path(__file__).parents[3] / "shared" / "data"))
POINTS = "[xarray.backends]\nbreccia = breccia.xarray:Backend\n[fsspec.specs]\nbreccia = breccia._fsspec:FileSystem\n"


def weather():
    """Packed numbers, times, a scalar, text in attributes, missing values."""
    time = np.datetime64("2001-01-01", "ns") + np.arange(9).astype("m8[D]")
    values = np.round(np.random.default_rng(1).normal(280, 9, (9, 7, 5)), 1)
    values[2, 3, 4] = np.nan
    made = xr.Dataset({"t": (("time", "lat", "lon"), values, {"units": "K"}), "n": ((), np.int64(7))},
                      {"time": time, "lat": np.linspace(-30, 30, 7), "lon": np.arange(5.0)}, {"title": "weather"})
    made.t.encoding = {"dtype": "i2", "scale_factor": 0.1, "add_offset": 280.0, "_FillValue": -9999,
                       "chunks": (4, 3, 5)}
    return made


@pytest.fixture
def path(tmp_path):
    """v1: weather at the root, and at /deep/er its mean; then t is 1 everywhere, not committed."""
    file = str(tmp_path / "data.brc")
    repo = breccia.open(file, create=True)
    with repo.session("main", message="first") as session:
        weather().to_zarr(session.store, mode="a", consolidated=False)
        weather().mean("lon").to_zarr(session.store, group="deep/er", mode="a", consolidated=False)
    repo.tag("v1")
    shared = repo.store("main", mode="r+")
    zarr.open_group(shared)["n"][...] = 1
    shared.close()
    repo.close()
    return file


def opened(path, **options):
    return xr.open_dataset(path, engine=Backend, **options)


# ---- what it shows --------------------------------

def test_what_was_written_comes_back(path):
    with opened(path, rev="v1") as got:
        xr.testing.assert_allclose(got, weather())
        assert got.attrs == {"title": "weather"} and got.t.attrs == {"units": "K"}
        assert got.t.encoding["dtype"] == np.int16
        assert got.t.encoding["preferred_chunks"] == {"time": 4, "lat": 3, "lon": 5}
    with opened(path, rev="v1", group="/deep/er") as got:
        xr.testing.assert_allclose(got, weather().mean("lon"))
    with opened(path, rev="v1", mask_and_scale=False, decode_times=False, drop_variables="n") as raw:
        assert raw.t.dtype == np.int16 and raw.t[2, 3, 4] == -9999 and "n" not in raw
        assert np.issubdtype(raw.time.dtype, np.integer)


def test_options_are_those_of_open_zarr(path, monkeypatch):
    for options in {"consolidated": False}, {"zarr_format": 3}, {"use_zarr_fill_value_as_mask": True}:
        with opened(path, rev="v1", **options) as got:
            assert got.n == 7
    with pytest.raises(ValueError, match="[Cc]onsolidated"):
        opened(path, consolidated=True)
    monkeypatch.setenv("HOME", os.path.dirname(path))
    assert opened("~/data.brc", rev="v1").n == xr.open_dataset(pathlib.Path("~/data.brc"), engine=Backend, rev="v1").n


def test_a_branch_shows_its_commits_and_a_session_what_it_has(path):
    assert opened(path).n == 7 and opened(path, rev="main").n == 7 and opened(path, rev="v1").n == 7
    assert opened(f"breccia://{path}::v1").n == 7
    assert list(opened(f"breccia://{path}::v1/deep", group="er").t.dims) == ["time", "lat"]
    repo = breccia.open(path)
    assert opened(repo, rev="v1").n == 7 and opened(repo.draft("main")).n == 1
    with repo.session("main") as session:
        session["n"][...] = 3
        assert opened(session).n == 3 and opened(session.store).n == 3
        with pytest.raises(ValueError, match="rev is for files"):
            opened(session, rev="v1")
        session.discard()
    repo.close()


def test_a_name_of_a_file_and_a_version(path):
    with breccia.open(path) as repo, repo.session("main", message="eight") as session:
        session["n"][...] = 8
    for name in f"{path}@v1", breccia.open(f"{path}@v1"), pathlib.Path(f"{path}@v1"):
        assert opened(name).n == 7 and opened(path).n == 8
        assert Backend().guess_can_open(name)
    with pytest.raises(breccia.InvalidError, match="names a version"):
        opened(f"{path}@v1", rev="main")


def test_trees(path):
    tree = xr.open_datatree(path, engine=Backend, rev="v1")
    assert [node.path for node in tree.subtree] == ["/", "/deep", "/deep/er"]
    xr.testing.assert_allclose(tree["deep/er"].to_dataset().drop_vars("lon"), weather().mean("lon"))
    tree.close()
    groups = xr.open_groups(path, engine=Backend, rev="v1")
    assert set(groups) == {"/", "/deep", "/deep/er"}
    with breccia.open(path) as repo:
        expected = set(xr.open_groups(repo.store("v1"), engine="zarr", group="deep"))
    assert len(expected) == 2 and set(xr.open_groups(path, engine=Backend, group="deep")) == expected


def test_errors(path, tmp_path):
    with pytest.raises(breccia.NotFoundError, match="nowhere"):
        opened(path, rev="nowhere")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        opened(path, group="nowhere")
    with pytest.raises(FileNotFoundError, match="other.brc"):
        opened(tmp_path / "other.brc")
    assert not (tmp_path / "other.brc").exists()


# ---- how it is found --------------------------------

def test_it_says_what_it_can_open(path, tmp_path):
    can = Backend().guess_can_open
    os.link(path, tmp_path / "without_ending")
    os.link(path, tmp_path / "data.db")
    for yes in path, pathlib.Path(path), "no/such.BRC", "breccia://a::main", tmp_path / "without_ending",\
            str(tmp_path / "data.db"), breccia.open(path):
        assert can(yes), yes
    import sqlite3
    sqlite3.connect(tmp_path / "other.db").executescript("CREATE TABLE t (a)")
    (tmp_path / "short").write_bytes(b"SQLite format 3\0")
    (tmp_path / "a\udcff").write_bytes(b"")
    for no in tmp_path, str(tmp_path / "other.db"), tmp_path / "short", "a.zarr", "a\0b", b"a.brc", None, 7, object(),\
            str(tmp_path / "a\udcff"), [], "http://example.org/b.nc", \
            open(os.devnull, "rb"), np.zeros(3), type, breccia:
        assert can(no) is False, no


@pytest.mark.parametrize("form", ["zarr3", "zarr2", "netcdf"])
def test_what_xarray_cannot_open_is_not_exported(tmp_path, form):
    """A data set of which one variable was appended to."""
    out = tmp_path / ("d.nc" if form == "netcdf" else "d.zarr")
    zarr_form = {"zarr3": 3, "zarr2": 2}.get(form)
    with breccia.open(tmp_path / "r.brc", create=True) as repo:
        with repo.session("main", message="grown alone") as s:
            for name, length in ("month", 12), ("rain", 13):
                s.create_array(name, shape=length, dtype="i4", dimension_names=["month"])[...] = np.arange(length)
        with pytest.raises(breccia.Error, match=r"12 in /month .* 13 in /rain.* unequal_dimensions=True"):
            repo.export(out, format=form)
        assert not out.exists()
        if zarr_form:
            repo.export(out, format=form, unequal_dimensions=True)
            with pytest.raises(ValueError, match="month"):
                xr.open_zarr(out, consolidated=False, zarr_format=zarr_form)
            out = tmp_path / "whole.zarr"
        with repo.session("main", message="both") as s:
            s["month"].resize((13,))
        repo.export(out, format=form)
    with xr.open_zarr(out, consolidated=False, zarr_format=zarr_form) if zarr_form else xr.open_dataset(out) as got:
        assert dict(got.sizes) == {"month": 13}


def test_the_entry_points(path, tmp_path):
    """The entry points are found as those of an installed package."""
    info = tmp_path / "site" / "breccia_test-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: breccia-test\nVersion: 0\n")
    (info / "entry_points.txt").write_text(POINTS)
    script = ("import sys, xarray as xr, fsspec\n"
              "assert 'breccia' in xr.backends.list_engines()\n"
              "assert xr.open_dataset(sys.argv[1], engine='breccia', rev='v1').n == 7\n"
              "assert xr.open_dataset(sys.argv[1]).n == 7\n"
              "assert fsspec.open('breccia://' + sys.argv[1] + '::v1/zarr.json').open().read(1) == b'{'\n"
              "print('good')")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), *sys.path])}
    said = subprocess.run([sys.executable, "-W", "error::RuntimeWarning", "-c", script, path], env=env,
                          capture_output=True, text=True)
    assert said.stdout == "good\n", said.stderr


# ---- lazily, elsewhere, at once --------------------------------

def test_nothing_is_read_before_it_is_used(path):
    from breccia.zarr import Store
    keys = []

    class Watched(Store):
        async def get(self, key, *args, **kwargs):
            keys.append(key)
            return await super().get(key, *args, **kwargs)

    got = opened(Watched(path, "v1", read_only=True), decode_times=False)
    assert keys and not [k for k in keys if k.startswith("t/c/")]
    got.t[0, 0].load()
    assert {k for k in keys if k.startswith("t/c/")} == {"t/c/0/0/0"}


def test_reads_are_the_librarys(path):
    """The pipeline is ours, also in a copy, and the setting of the process is as before."""
    before = zarr.config.get("codec_pipeline.path")
    got = opened(path, rev="v1")
    assert zarr.config.get("codec_pipeline.path") == before
    for one in got, pickle.loads(pickle.dumps(got)):
        array = one.t.variable._data
        while not hasattr(array, "_array"):
            array = array.array
        assert type(array._array.async_array.codec_pipeline).__module__ == "breccia.zarr"
        xr.testing.assert_allclose(one.load(), weather())
    got.close()


def test_a_closed_data_set_closes_the_file(path):
    before = len(os.listdir("/proc/self/fd"))
    with opened(path) as got:
        got.load()
        assert len(os.listdir("/proc/self/fd")) > before
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("scheduler", ["threads", "processes", "synchronous"])
def test_dask(path, scheduler):
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler=scheduler, num_workers=3):
        got = opened(path, rev="v1", chunks={})
        assert got.t.chunks == ((4, 4, 1), (3, 3, 1), (5,))
        xr.testing.assert_allclose(got.mean("time").compute(), weather().mean("time"))
        assert float(got.t.sum()) == pytest.approx(float(weather().t.sum()))


def test_tokens_follow_the_version(path):
    pytest.importorskip("dask")
    repo = breccia.open(path)

    def name(rev):
        return opened(path, rev=rev, chunks={}).t.data.name

    old, branch = name("v1"), name("main")
    assert name("v1") == old and name("main") == branch != old
    with repo.session("main", message="more") as session:
        session["t"][0] = 9
    repo.tag("v2")
    assert name("v2") != old and name("main") != branch
    repo.close()


def test_indexing_is_like_numpys(path):
    got, expected = opened(path, rev="v1"), weather()
    rng = np.random.default_rng(3)
    for _ in range(60):
        key = {}
        for name, n in ("time", 9), ("lat", 7), ("lon", 5):
            key[name] = [slice(None), int(rng.integers(-n, n)), rng.integers(0, n, rng.integers(0, 6)),
                         slice(*sorted(rng.integers(0, n, 2).tolist()), int(rng.integers(1, 4))),
                         slice(None, None, -int(rng.integers(1, 3))),
                         xr.DataArray(rng.integers(0, n, 4), dims="points")][rng.integers(0, 6)]
        xr.testing.assert_allclose(got.t.isel(key).load(), expected.t.isel(key))


# ---- real data --------------------------------

@pytest.mark.skipif(not (REAL / "eraint_uvz.nc").exists(), reason="the NetCDF files are not there")
@pytest.mark.parametrize("name, peer", [("eraint_uvz.nc", "netcdf4"), ("basin_mask.nc", "netcdf4"),
                                        ("basin_mask.nc", "h5netcdf"), ("eraint_uvz.nc", "scipy")])
@pytest.mark.parametrize("how", ["imported", "written"])
@pytest.mark.parametrize("chunks", [None, {}])
def test_real_netcdf(tmp_path, name, peer, how, chunks):
    pytest.importorskip({"netcdf4": "netCDF4"}.get(peer, peer))
    if chunks is not None:
        pytest.importorskip("dask")
    expected = xr.open_dataset(REAL / name, engine=peer)
    path = tmp_path / "real.brc"
    if how == "imported":
        file = File(path)
        file.import_file(REAL / name, "x")
        file.commit("imported")
        file.close()
    else:
        repo = breccia.open(path, create=True)
        with repo.session("main", message="written") as session:
            expected.to_zarr(session.store, group="x", mode="a", consolidated=False)
        repo.close()
    with opened(path, group="x", chunks=chunks) as got:
        xr.testing.assert_equal(got.compute(), expected)
        assert {k: v.attrs for k, v in got.variables.items()} == {k: v.attrs for k, v in expected.variables.items()}
        assert {k: v.dtype for k, v in got.variables.items()} == {k: v.dtype for k, v in expected.variables.items()}
        xr.testing.assert_equal(got.isel({d: slice(None, None, 3) for d in got.dims}).compute(),
                                expected.isel({d: slice(None, None, 3) for d in expected.dims}))
    expected.close()


# ---- fsspec --------------------------------

@pytest.fixture
def fs():
    fsspec = pytest.importorskip("fsspec")
    from breccia._fsspec import FileSystem
    fsspec.register_implementation("breccia", FileSystem, clobber=True)
    FileSystem.clear_instance_cache()
    return fsspec.filesystem("breccia")


def test_files_of_a_version(path, fs):
    top = f"{path}::v1"
    assert sorted(fs.ls(top, detail=False)) == [f"{top}/{n}" for n in (
        "deep", "lat", "lon", "n", "t", "time", "zarr.json")]
    assert fs.ls(f"breccia://{top}/deep/er/", detail=False) == [f"{top}/deep/er/{n}" for n in
                                                              ("lat", "n", "t", "time", "zarr.json")]
    document = json.loads(fs.cat(f"{top}/t/zarr.json"))
    assert document["shape"] == [9, 7, 5]
    info = fs.info(f"{top}/t/c/0/0/0")
    data = fs.cat_file(f"{top}/t/c/0/0/0")
    assert info["type"] == "file" and info["size"] == len(data) and info["etag"]
    assert fs.info(top)["type"] == fs.info(f"{top}/deep")["type"] == "directory"
    assert fs.exists(f"{top}/deep/er/zarr.json") and not fs.exists(f"{top}/deep/e") and not fs.exists(f"{path}::v9/n")
    assert fs.isdir(f"{top}/t/c") and fs.isfile(f"{top}/zarr.json")
    assert fs.glob(f"{top}/*/zarr.json") == [f"{top}/{n}/zarr.json" for n in ("deep", "lat", "lon", "n", "t", "time")]
    found = fs.find(top)
    assert f"{top}/deep/er/t/c/0/0" in found and fs.du(top) == sum(len(fs.cat_file(f)) for f in found)
    with fs.open(f"{top}/t/c/0/0/0", block_size=7) as file:
        assert file.read(5) + file.read() == data
        file.seek(-4, 2)
        assert file.read() == data[-4:]


def test_parts_of_files(path, fs):
    name = f"{path}::v1/zarr.json"
    whole = fs.cat_file(name)
    for start, end in (None, None), (0, 4), (3, None), (-5, None), (None, -5), (-9, -3), (10, 5), \
            (10 ** 6, None), (2, 10 ** 6):
        assert fs.cat_file(name, start, end) == whole[start:end]
    other = f"{path}/zarr.json"
    got = fs.cat_ranges([name, other, name, f"{path}::v1/none", "none.brc/a", f"{path}::v1/deep"], [0, 1, -3, 0, 0, 0],
                        [2, 3, None, 1, 1, 1])
    assert got[:3] == [whole[:2], whole[1:3], whole[-3:]]
    assert [type(e) for e in got[3:]] == [FileNotFoundError] * 3
    with pytest.raises(FileNotFoundError):
        fs.cat_ranges([name, f"{path}::v1/none"], 0, 1, on_error="raise")
    assert fs.cat([name, other]) == {name: whole, other: fs.cat_file(other)}


def test_urls(path, fs, monkeypatch):
    import fsspec
    monkeypatch.chdir(os.path.dirname(path))
    whole = fs.cat_file(f"{path}::v1/zarr.json")
    for url, options in (("breccia://data.brc::v1/zarr.json", {}), (f"breccia://{path}::v1/zarr.json", {}),
                         ("breccia://data.brc/zarr.json", {"rev": "v1"}), ("breccia://data.brc::main~0/zarr.json", {})):
        with fsspec.open(url, **options) as file:
            assert file.read() == whole, url
    for url in "breccia://data.brc::v1/", "breccia://data.brc::main~0":
        mapper = fsspec.get_mapper(url)
        assert mapper["zarr.json"] == whole and "t/c/0/0/0" in mapper and "deep/er/zarr.json" in set(mapper)
    assert opened("breccia://data.brc::v1/deep/er").sizes == {"time": 9, "lat": 7}
    assert pickle.loads(pickle.dumps(fs)).cat_file(f"{path}::v1/zarr.json") == whole


def test_files_are_those_of_the_folder(path, fs, tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    with breccia.open(tmp_path / "other" / "data.brc", create=True) as repo, repo.session("main", message="m") as s:
        s["b"] = [1]
    for folder, there in (tmp_path, "t"), (tmp_path / "other", "b"), (tmp_path, "t"):
        monkeypatch.chdir(folder)
        for at in "data.brc", "data.brc::main":
            assert f"{at}/{there}" in fs.ls(at, detail=False) and fs.exists(f"{at}/{there}/zarr.json")


def test_files_are_those_of_now(path, fs):
    """fsspec keeps a file system as long as the process lives."""
    names = [f"{path}::{rev}/new/zarr.json" for rev in ("HEAD", "v1", "main", "main~1")]
    assert [fs.exists(one) for one in names] == [False] * 4
    with breccia.open(path) as repo:
        repo.draft("main").discard()
        with repo.session("main", message="new") as s:
            s["new"] = [1]
        assert [fs.exists(one) for one in names] == [True, False, True, False]
        repo.delete_tag("v1")
        repo.tag("v1")
        with repo.session("main", message="more") as s:
            s["more"] = [1]
        assert [fs.exists(one) for one in names] == [True] * 4
        repo.delete_tag("v1")
        with pytest.raises(breccia.NotFoundError):
            fs.cat_file(names[1])
    for name in (path, path + "-wal", path + "-shm"):
        if os.path.exists(name):
            os.remove(name)
    with pytest.raises(FileNotFoundError):
        fs.cat_file(names[0])
    with breccia.open(path, create=True) as repo:
        assert not fs.exists(names[2]) and fs.ls(f"{path}::main/", detail=False) == []
        with repo.draft("main", message="new") as draft:
            draft["new"] = [1]
            assert not fs.exists(names[2])  # a branch without a commit
        assert fs.exists(names[2]) and zarr.open_array(f"breccia://{path}::main/new", mode="r")[0] == 1


def test_only_some_files_stay_open(path, fs):
    """fsspec keeps a file system as long as the process lives."""
    for i in range(40):
        os.link(path, f"{path}.{i}.brc")
        assert fs.exists(f"{path}.{i}.brc::v1/zarr.json")
    open_files = {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                  if os.path.exists(f"/proc/self/fd/{fd}")}
    assert 20 < len([f for f in open_files if f.startswith(path)]) <= 32
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda i: fs.exists(f"{path}.{i % 40}.brc::main/zarr.json"), range(400)))


def test_zarr_reads_through_fsspec(path, fs, monkeypatch):
    monkeypatch.chdir(os.path.dirname(path))
    group = zarr.open_group("breccia://data.brc::v1/deep", mode="r")
    assert group["er/t"].shape == (9, 7)
    got = xr.open_zarr("breccia://data.brc::v1/", consolidated=False)
    xr.testing.assert_allclose(got.load(), weather())


def test_a_branch_with_a_slash_in_its_name(path, fs):
    repo = breccia.open(path)
    repo.branch("try/this", "v1")
    repo.close()
    assert fs.cat_file(f"{path}::try/this/n/zarr.json") == fs.cat_file(f"{path}::v1/n/zarr.json")


def test_it_is_only_to_be_read(path, fs):
    with pytest.raises(breccia.ReadOnlyError, match="only to be read"):
        fs.open(f"{path}::main/a", "wb")
    name, other = f"{path}::main/zarr.json", f"{path}::main/b"
    for refused in lambda: fs.rm(name), lambda: fs.mv(name, other), lambda: fs.pipe_file(other, b"1"):
        with pytest.raises(breccia.ReadOnlyError, match="only to be read"):
            refused()
    with pytest.raises(IsADirectoryError):
        fs.open(f"{path}::main/deep").read()
    for wrong in f"{path}::main/a/../b", f"{path}::main//a", f"{path}::main/a\0b":
        with pytest.raises(FileNotFoundError):
            fs.cat_file(wrong)
    with pytest.raises(FileNotFoundError):
        fs.ls(f"{path}::main/nothing")
