"""`breccia.zarr.CodecPipeline` beside zarr's own pipeline: the same elements, keys and errors.

Each random array is made twice: in a breccia file with our pipeline, and in memory with zarr's own.
"""
from __future__ import annotations

import asyncio
import math
import os

import numpy as np
import pytest

pytest.importorskip("zarr")
import hypothesis.strategies as st
import zarr
from hypothesis import HealthCheck, given, settings
from zarr.core.buffer import NDBuffer, cpu, default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import LocalStore, MemoryStore, WrapperStore

import breccia._native
import breccia._pipeline
from breccia import _elements
from breccia.zarr import CodecPipeline, Store

pytestmark = pytest.mark.filterwarnings("ignore")
OURS, OWN = "breccia.zarr.CodecPipeline", "zarr.core.codec_pipeline.BatchedCodecPipeline"
NEW = hasattr(zarr, "dtype")  # from zarr 3.1 on
DTYPES = ["bool", "int8", "<i2", "int32", "uint64", "float16", "float32", "float64", "complex64"]
DTYPES += [">i4", ">f8", "U3", "S4", "datetime64[s]", "timedelta64[ms]"] if NEW else []
COMMON = settings(max_examples=int(os.environ.get("BRECCIA_EXAMPLES", "80")), deadline=None, database=None,
                  derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("pipeline") / "data.brc"


@pytest.fixture
def calls(monkeypatch):
    """Lists the calls that our pipeline made itself."""
    done = []
    for name in "read_now", "write_now":
        function = getattr(breccia._pipeline, name)

        def noted(*args, function=function, name=name):
            result = function(*args)
            done.append(name)
            return result

        monkeypatch.setattr(breccia._pipeline, name, noted)
    return done


def pair(path, **spec):
    """An array in a file with our pipeline, and its like in memory with zarr's."""
    with zarr.config.set({"codec_pipeline.path": OURS}):
        store = Store(path, create=True)
        sync(store.clear())
        ours = zarr.create_array(store, name="a/x", **spec)
    with zarr.config.set({"codec_pipeline.path": OWN}):
        own = zarr.create_array(MemoryStore(), name="a/x", **spec)
    assert type(ours._async_array.codec_pipeline) is CodecPipeline or (NEW and ours.metadata.zarr_format == 2)
    return ours, own


def chunks_of(array):
    async def names():
        listed = array.store_path.store.list_prefix("a/x/")
        return sorted([key async for key in listed if "zarr.json" not in key])
    return sync(names())


def check(ours, own):
    np.testing.assert_array_equal(ours[...], own[...])
    assert chunks_of(ours) == chunks_of(own)


def elements(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 5, shape)
    if np.dtype(dtype).kind in "US":
        return raw.astype(str).astype(dtype)
    return raw.astype("i8").astype(dtype) if np.dtype(dtype).kind in "mM" else (raw - 1).astype(dtype)


@st.composite
def specs(draw):
    ndim = draw(st.integers(0, 3))
    shape = tuple(draw(st.lists(st.integers(1, 12), min_size=ndim, max_size=ndim)))
    chunks = tuple(draw(st.integers(1, n + 1)) for n in shape)
    dtype = draw(st.sampled_from(DTYPES))
    spec = {"shape": shape, "chunks": chunks, "dtype": dtype}
    if ndim and draw(st.booleans()):
        spec["shards"] = tuple(c * draw(st.integers(1, 3)) for c in chunks)
    spec["compressors"] = draw(st.sampled_from(["auto", None]))
    spec["config"] = {"order": draw(st.sampled_from("CF"))}
    spec["chunk_key_encoding"] = draw(st.sampled_from([
        {"name": name, "separator": separator} for name in ("default", "v2") for separator in "./"]))
    return spec


def slices(n):
    return st.slices(n).map(lambda s: slice(*(lambda i: (min(i), max(i) + 1, abs(s.step or 1)))(
        list(range(*s.indices(n))) or [0])))


@st.composite
def selections(draw, shape):
    """How, and with what."""
    how = draw(st.sampled_from(["basic", "oindex", "vindex", "mask"])) if shape else "basic"
    if how == "basic":
        given = shape[:draw(st.integers(0, len(shape)))]
        return how, tuple(draw(slices(n) | st.integers(-n, n - 1)) for n in given)
    if how == "oindex":
        def index(n):
            return st.lists(st.integers(0, n - 1), min_size=1, max_size=6).map(np.array)

        def flags(n):
            return st.lists(st.booleans(), min_size=n, max_size=n).map(
                lambda bits: np.array(bits if any(bits) else [True] * n))
        return how, tuple(draw(slices(n) | st.integers(0, n - 1) | index(n) | flags(n)) for n in shape)
    if how == "vindex":
        n = draw(st.integers(1, 8))
        lists = [st.lists(st.integers(0, m - 1), min_size=n, max_size=n) for m in shape]
        return how, tuple(np.array(draw(one)) for one in lists)
    bits = draw(st.lists(st.booleans(), min_size=math.prod(shape), max_size=math.prod(shape)))
    return how, np.array(bits if any(bits) else [True] * len(bits)).reshape(shape)


def read(array, how, selection):
    if how == "basic":
        return array[selection]
    return getattr(array, "oindex" if how == "oindex" else "vindex")[selection]


def write(array, how, selection, value):
    if how == "basic":
        array[selection] = value
    else:
        getattr(array, "oindex" if how == "oindex" else "vindex")[selection] = value


def in_numpy(array, how, selection):
    """The selection as NumPy has it."""
    if how == "oindex":
        drop = tuple(axis for axis, item in enumerate(selection) if isinstance(item, int))
        index = np.ix_(*(np.arange(n)[item] if not isinstance(item, int) else [item]
                         for item, n in zip(selection, array.shape)))
        return index, drop
    return selection, ()


@COMMON
@given(data=st.data(), spec=specs())
def test_as_zarrs_own(path, data, spec):
    """And as NumPy. (zarr itself fails in some uses of oindex on shards; then there is only NumPy.)"""
    ours, own = pair(path, **spec)
    dtype = np.dtype(spec["dtype"])
    model = np.array(own[...])
    for step in range(data.draw(st.integers(1, 4))):
        how, selection = data.draw(selections(spec["shape"]))
        shape = np.shape(read(ours, how, selection))
        if data.draw(st.booleans()):
            value = elements(shape, dtype, step)
            if value.ndim and data.draw(st.booleans()):
                value = np.asfortranarray(value)
            if value.ndim and data.draw(st.booleans()):
                value = np.repeat(value, 2, axis=-1)[..., ::2]
        else:
            value = elements((), dtype, step)[()]
        if how != "basic" and np.ndim(value):  # nobody says which of several values of one element stays
            value = np.full(shape, elements((), dtype, step + 10), dtype)
        write(ours, how, selection, value)
        index, drop = in_numpy(model, how, selection)
        model[index] = np.expand_dims(value, drop) if np.ndim(value) else value
        try:
            write(own, how, selection, value)
        except (IndexError, ValueError):
            assert how == "oindex" and spec.get("shards")
            own[...] = model
        np.testing.assert_array_equal(ours[...], model)
        check(ours, own)
        how, selection = data.draw(selections(spec["shape"]))
        mine = read(ours, how, selection)
        index, drop = in_numpy(model, how, selection)
        np.testing.assert_array_equal(mine, np.squeeze(model[index], drop) if drop else model[index])
        try:
            theirs = read(own, how, selection)
        except (IndexError, ValueError):
            assert how == "oindex" and spec.get("shards")
            continue
        assert type(mine) is type(theirs) and np.asarray(mine).dtype == np.asarray(theirs).dtype
        assert np.asarray(mine).flags.f_contiguous == np.asarray(theirs).flags.f_contiguous


@COMMON
@given(data=st.data())
def test_of_what_is_written_twice_the_last_stays(path, data):
    """The last value in C order stays, as with NumPy. zarr's own pipeline leaves open which: it sorts by chunk with a
    sort that may swap equals."""
    ours, _ = pair(path, shape=(12, 9), chunks=(data.draw(st.integers(1, 12)), 5), dtype="i4")
    oracle = np.asarray(ours[...])
    for _ in range(3):
        n = data.draw(st.integers(1, 30))
        rows = data.draw(st.lists(st.integers(-12, 11), min_size=n, max_size=n))
        rows = data.draw(st.sampled_from([rows, sorted(rows), sorted(rows, reverse=True)]))
        columns = data.draw(st.lists(st.integers(-9, 8), min_size=n, max_size=n))
        if data.draw(st.booleans()):
            ours.vindex[np.array(rows), np.array(columns)] = np.arange(1, n + 1)
            for k, where in enumerate(zip(rows, columns)):
                oracle[where] = k + 1
        else:
            ours.oindex[np.array(rows), np.array(columns)] = np.arange(1, n * n + 1).reshape(n, n)
            for k in range(n * n):
                oracle[rows[k // n], columns[k % n]] = k + 1
        np.testing.assert_array_equal(ours[...], oracle)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shards", [None, (8, 12)])
def test_is_used(path, calls, dtype, shards):
    """The tests here would all pass with a pipeline that always steps aside."""
    ours, own = pair(path, shape=(20, 30), chunks=(4, 6), shards=shards, dtype=dtype)
    value = elements((20, 30), dtype, 0)
    ours[:] = own[:] = value
    assert calls == ["write_now"]
    check(ours, own)
    ours.oindex[[3, 17, 4], 2:9:3] = own.oindex[[3, 17, 4], 2:9:3] = value[0, 0]
    ours.vindex[[3, 17, 4], [2, 9, 3]] = own.vindex[[3, 17, 4], [2, 9, 3]] = value[1, 0]
    check(ours, own)
    assert (ours.vindex[[3, 17, 4], [2, 9, 3]] == own.vindex[[3, 17, 4], [2, 9, 3]]).all()
    assert calls == ["write_now", "read_now", "write_now", "write_now", "read_now", "read_now"]


# ---- the caller's memory ----


def into(array, selection, out):
    """Returns `out` after a selection has been read into it."""
    array.get_basic_selection(selection, out=NDBuffer.from_ndarray_like(out) if type(out) is not np.ndarray
                              else cpu.NDBuffer.from_ndarray_like(out))
    return out


@pytest.mark.parametrize("made", [
    lambda: np.empty((20, 30), "f4"),
    lambda: np.empty((20, 30), "f4", order="F"),
    lambda: np.empty((40, 90), "f4")[::2, ::3],
    lambda: np.empty((20, 30), "f4")[::-1, ::-1],
    lambda: np.empty((30, 20), "f4").T,
    lambda: np.empty((20, 30), ">f4"),
    lambda: np.empty((20, 30), [("a", "u1"), ("b", "f4")])["b"],
], ids=["c", "fortran", "strided", "backwards", "transposed", "swapped", "field"])
def test_out_is_obeyed(path, calls, made):
    ours, _ = pair(path, shape=(20, 30), chunks=(4, 7), dtype="f4")
    value = elements((20, 30), "f4", 0)
    ours[:10] = value[:10]  # the rest is fill value
    out = made()
    out[...] = 7
    assert into(ours, ..., out) is out
    np.testing.assert_array_equal(out, np.where(np.arange(20)[:, None] < 10, value, 0))
    assert calls == ["write_now", "read_now"]


def test_straight_from_and_into_the_callers_memory(path, monkeypatch):
    """The memory that the library gets is that of `out`, and of the value."""
    ours, _ = pair(path, shape=(20, 30), chunks=(4, 7), dtype="f4")
    ours[...] = elements((20, 30), "f4", 0)
    got, real = [], _elements.memory_of
    monkeypatch.setattr(_elements, "memory_of", lambda a: got.append(a.__array_interface__["data"][0]) or real(a))
    out = np.empty((20, 30), "f4")
    into(ours, ..., out)
    value = np.asfortranarray(elements((7, 30), "f4", 1))
    ours[2:9] = value
    assert got == [a.__array_interface__["data"][0] for a in (out, value)]


def test_a_read_only_out_is_refused(path):
    ours, own = pair(path, shape=(4,), chunks=(2,), dtype="i4")
    out = np.zeros(4, "i4")
    out.flags.writeable = False
    for array in ours, own:
        with pytest.raises(ValueError, match="read-only"):
            into(array, ..., out)


def test_prototype_is_obeyed(path, calls):
    from zarr.core.buffer import BufferPrototype

    class Mine(np.ndarray):
        pass

    class Buffers(cpu.NDBuffer):
        @classmethod
        def create(cls, *, shape, dtype, order="C", fill_value=None):
            made = super().create(shape=shape, dtype=dtype, order=order, fill_value=fill_value)
            return cls(made._data.view(Mine))

        @classmethod
        def empty(cls, shape, dtype, order="C"):
            return cls.create(shape=shape, dtype=dtype, order=order)

        @classmethod
        def from_numpy_array(cls, array_like):
            return cls(np.asarray(array_like).view(Mine))

    ours, _ = pair(path, shape=(20, 30), chunks=(4, 7), dtype="f4")
    ours[...] = value = elements((20, 30), "f4", 0)
    found = ours.get_basic_selection(..., prototype=BufferPrototype(cpu.Buffer, Buffers))
    assert type(found) is Mine
    np.testing.assert_array_equal(found, value)
    assert calls == ["write_now", "read_now"]


def test_the_value_stays(path):
    ours, own = pair(path, shape=(20, 30), chunks=(4, 7), dtype="f4", compressors=None)
    value = elements((20, 30), "f4", 0)
    before = value.copy()
    ours[...] = value
    np.testing.assert_array_equal(value, before)
    value[...] = 9
    np.testing.assert_array_equal(ours[...], before)


# ---- chunks that are fill value ----

FLOATS = [0.0, -0.0, float("nan"), 1.5]
ODD = np.array([0x7FF8000000000001], "u8").view("f8")[0]  # a NaN that is not the canonical one


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("fill", FLOATS)
@pytest.mark.parametrize("value", [*FLOATS, ODD])
@pytest.mark.parametrize("shards", [None, (8,)])
def test_chunks_of_fill_value(path, empty, fill, value, shards):
    """Listed or not as zarr has it in this version, with the same bits."""
    ours, own = pair(path, shape=(16,), chunks=(4,), shards=shards, dtype="f8", fill_value=fill,
                     config={"write_empty_chunks": empty})
    for array in ours, own:
        array[0:8] = value
        array[8:12] = 1
        array[8:10] = value
        array[10:12] = value
        array[13] = fill
    assert chunks_of(ours) == chunks_of(own)
    assert ours[...].tobytes() == own[...].tobytes()
    for array in ours, own:
        array[...] = fill
    check(ours, own)


@pytest.mark.parametrize("dtype", ["f4", "c16", [("a", "i4"), ("b", "f8")]] if NEW else ["f4", "c16"])
def test_nothing_is_written(path, dtype):
    ours, _ = pair(path, shape=(6, 4), chunks=(4, 2), dtype=dtype)
    ours[...] = np.ones((6, 4), dtype)
    ours[3:1] = ours[0][0]
    ours[3:1] = np.ones((0, 4), dtype)
    ours[2:2, 1] = np.ones(0, dtype)
    ours.oindex[np.zeros(6, bool), 1:3] = ours[0][0]
    if np.dtype(dtype).names:
        ours.set_basic_selection(slice(3, 1), np.ones((0, 4)), fields="b")
    np.testing.assert_array_equal(ours[...], np.ones((6, 4), dtype))


@pytest.mark.parametrize("fill, value", [(0, complex(0.0, -0.0)), (complex("nan"), complex(1, float("nan")))])
def test_complex_chunks_of_fill_value(path, fill, value):
    ours, own = pair(path, shape=(8,), chunks=(4,), dtype="c16", fill_value=fill)
    ours[...] = own[...] = np.full(8, value)
    assert chunks_of(ours) == chunks_of(own)
    assert ours[...].tobytes() == own[...].tobytes()


def test_a_fill_value_of_which_its_document_says_less(path):
    """zarr.json does not have the sign of a NaN."""
    value = np.complex128(complex(-float("nan"), 5))
    ours, own = pair(path, shape=(8,), chunks=(4,), dtype="c16", fill_value=value)
    ours[...] = own[...] = np.full(8, value)
    check(ours, own)


def test_a_chunk_of_zeros_set_by_key_goes_with_a_write(path):
    ours, own = pair(path, shape=(8,), chunks=(4,), dtype="i4", compressors=None)
    for array in ours, own:
        sync(array.store_path.store.set("a/x/c/0", cpu.Buffer.from_bytes(bytes(16))))
    assert chunks_of(ours) == chunks_of(own) == ["a/x/c/0"]
    ours[1] = own[1] = 0
    assert chunks_of(ours) == chunks_of(own) == []


# ---- what each version wants back ----


def test_statuses(path):
    ours, own = pair(path, shape=(12,), chunks=(4,), dtype="i4")
    ours[4:8] = own[4:8] = 1
    if not breccia._pipeline.HAS_STATUS:
        pytest.skip("from zarr 3.2 on")
    found = []
    for array in ours, own:
        pipeline, store = array._async_array.codec_pipeline, array.store_path
        spec = zarr.core.array_spec.ArraySpec(
            shape=(4,), dtype=array.metadata.data_type, fill_value=0,
            config=zarr.core.array_spec.ArrayConfig.from_dict({}), prototype=default_buffer_prototype())
        batch = [(store / f"c/{i}", spec, (slice(0, 4),), (slice(4 * i, 4 * i + 4),), True) for i in range(3)]
        out = cpu.NDBuffer.create(shape=(12,), dtype="i4")
        found.append(sync(pipeline.read(iter(batch), out)))
    assert found[0] == found[1] == ({"status": "missing"}, {"status": "present"}, {"status": "missing"})


def test_missing_chunks_are_refused_where_that_is_asked(path):
    if not breccia._pipeline.HAS_STATUS:
        pytest.skip("from zarr 3.2 on")
    ours, own = pair(path, shape=(12,), chunks=(4,), dtype="i4", config={"read_missing_chunks": False})
    ours[4:8] = own[4:8] = 1
    for array in ours, own:
        assert array[5] == 1
        with pytest.raises(zarr.errors.ChunkNotFoundError):
            array[...]


# ---- what it steps aside for ----


class Wrapped(WrapperStore):
    pass


@pytest.mark.parametrize("where", ["local", "memory", "wrapped ours", "wrapped local"])
def test_other_stores(tmp_path, calls, where):
    inner = Store(tmp_path / "a.brc", create=True) if "ours" in where else LocalStore(tmp_path / "a")
    store = MemoryStore() if where == "memory" else Wrapped(inner) if "wrapped" in where else inner
    with zarr.config.set({"codec_pipeline.path": OURS}):
        array = zarr.create_array(store, name="x", shape=(20, 30), chunks=(4, 6), shards=(8, 12), dtype="f4")
        value = elements((20, 30), "f4", 0)
        array[...] = value
        array[3:5, ::7] = 1
        value[3:5, ::7] = 1
        np.testing.assert_array_equal(array[...], value)
        np.testing.assert_array_equal(zarr.open_array(store, path="x", mode="r")[1:19:3], value[1:19:3])
    assert calls == []


@pytest.mark.parametrize("spec", [
    {"zarr_format": 2, "dtype": "f4"},
    {"dtype": str, "chunks": (7, 9)},
    {"dtype": "f4", "config": {"write_empty_chunks": True}},
], ids=["format 2", "strings", "empty chunks"])
def test_what_is_zarrs_own(path, calls, spec):
    ours, own = pair(path, **{"shape": (7, 9), "chunks": (3, 4), **spec})
    value = elements((7, 9), "U3", 0).astype(object) if spec["dtype"] is str else elements((7, 9), "f4", 0)
    for array in ours, own:
        array[...] = value
        if spec["dtype"] is not str:  # see test_writers_of_one_chunk_lose_nothing
            array[2:5, 1] = value[0, 0]
    np.testing.assert_array_equal(np.asarray(ours[...], object), np.asarray(own[...], object))
    assert chunks_of(ours) == chunks_of(own)
    assert "write_now" not in calls


def test_an_array_that_others_changed(path):
    """zarr's array is of the document that it has read; the file has another by now."""
    ours, own = pair(path, shape=(20,), chunks=(4,), dtype="i4")
    for array in ours, own:
        array[...] = np.arange(20)
        zarr.open_array(array.store_path.store, path="a/x").resize((12,))  # between chunks: a directory cuts none
    np.testing.assert_array_equal(ours[...], own[...])
    for array in ours, own:
        array[4:20] = 5
    np.testing.assert_array_equal(ours[...], own[...])
    assert chunks_of(ours) == chunks_of(own)
    with zarr.config.set({"codec_pipeline.path": OURS}):
        zarr.create_array(ours.store_path.store, name="a/x", shape=(20,), chunks=(4,), dtype="f4",
                          overwrite=True)[...] = 2
    with zarr.config.set({"codec_pipeline.path": OWN}):
        zarr.create_array(own.store_path.store, name="a/x", shape=(20,), chunks=(4,), dtype="f4",
                          overwrite=True)[...] = 2
    try:
        wanted = own[...]
    except Exception as error:
        wanted = error
    if not isinstance(wanted, Exception):
        np.testing.assert_array_equal(ours[...], wanted)


def test_a_store_that_is_read_only(path):
    ours, _ = pair(path, shape=(20,), chunks=(4,), dtype="i4")
    ours[...] = 1
    with zarr.config.set({"codec_pipeline.path": OURS}):
        array = zarr.open_array(Store(path, read_only=True, draft=True), path="a/x", mode="r")
    with pytest.raises(ValueError, match="read-only mode"):
        array[...] = 2
    assert (ours[...] == 1).all()


PARTS = {
    "integers": (np.arange(1, 65), {}),
    "NaN": (np.where(np.arange(64) % 4 < 2, np.nan, np.arange(64.0)), {"fill_value": float("nan")}),
    "odd NaN": (np.where(np.arange(64) % 4 < 2, ODD, np.arange(64.0)), {"fill_value": float("nan")}),
    "complex": (np.where(np.arange(64) % 4 < 2, -0.0, np.arange(64) * 1j), {}),
    "shards": (np.where(np.arange(64) % 4 < 2, ODD, np.arange(64.0)), {"fill_value": float("nan"), "shards": (32,)}),
    "strings": (np.array(["" if i % 4 < 2 else "ä" * i for i in range(64)], object), {"dtype": str}),
}
if NEW:
    PARTS["records"] = np.array([(i % 4 // 2, 0.0) for i in range(64)], [("a", "i4"), ("b", "f8")]), {}


@pytest.mark.parametrize("kind", PARTS)
def test_writers_of_one_chunk_lose_nothing(path, kind):
    """Each writes its elements of chunks that all share: the library merges them. Also where a part of a chunk is
    fill value to zarr, and of strings, which its own pipeline would read, change and write."""
    from concurrent.futures import ThreadPoolExecutor

    values, spec = PARTS[kind]
    ours, _ = pair(path, **{"shape": (64,), "chunks": (16,), "dtype": values.dtype, **spec})

    def write_mine(first):
        for i in range(first * 2, 64, 16):
            ours[i:i + 2] = values[i:i + 2]

    for _ in range(4):
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(write_mine, range(8)))
        np.testing.assert_array_equal(np.asarray(ours[...], values.dtype), values)
        ours[...] = "b" if kind == "strings" else np.ones(64, values.dtype)


def test_cancelling_stops_the_library(path, monkeypatch):
    ours, _ = pair(path, shape=(64,), chunks=(16,), dtype="i4")
    ours[...] = 1
    store, began = ours.store_path.store, []

    def endless(native):
        from breccia import _keys
        began.append(native)
        while True:
            _keys.exists(native, "x")

    async def run():
        task = asyncio.ensure_future(store._run(endless))
        while not began:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        many = [asyncio.ensure_future(store._run(endless)) for _ in range(20)]  # most of them wait for a place
        while len(began) < 3:
            await asyncio.sleep(0.001)
        for _ in range(2):  # the second time while it ends
            for task in many:
                task.cancel()
            await asyncio.sleep(0)
        assert all(isinstance(one, asyncio.CancelledError)
                   for one in await asyncio.gather(*many, return_exceptions=True))

    sync(run())
    assert len(began) < 10
    assert (ours[...] == 1).all()  # the handles work again
    assert len({sync(store.getsize("a/x/zarr.json")) for _ in range(20)}) == 1


@pytest.mark.parametrize("shards", [None, (8,)])
def test_it_steps_aside_for_another_implementation_of_a_codec(path, calls, shards):
    """A user may have a faster zstd, or one that counts: that codec then reads and writes, in shards too."""
    from zarr.codecs import ZstdCodec
    from zarr.registry import register_codec

    used = []

    class Counting(ZstdCodec):
        async def _decode_single(self, data, spec):
            used.append("decode")
            return await super()._decode_single(data, spec)

        async def _encode_single(self, data, spec):
            used.append("encode")
            return await super()._encode_single(data, spec)

    spec = dict(shape=(8,), chunks=(4,), shards=shards, dtype="i4", compressors=ZstdCodec(), overwrite=True)
    name = f"{Counting.__module__}.{Counting.__qualname__}"
    register_codec("zstd", Counting)
    with zarr.config.set({"codec_pipeline.path": OURS, "codecs.zstd": name}):
        store = Store(path, create=True)
        theirs = zarr.create_array(store, name="theirs", **{**spec, "compressors": Counting()})
        theirs[:] = np.arange(8)
        opened = zarr.open_array(store, path="theirs", mode="r+")
        assert opened[:].tolist() == list(range(8)) and opened[2:5].tolist() == [2, 3, 4]
        opened[1:3] = 7
        assert calls == [] and {*used} == {"encode", "decode"}
    used.clear()  # the setting names zarr's own from here on
    with zarr.config.set({"codec_pipeline.path": OURS}):
        ours = zarr.open_array(store, path="theirs", mode="r+")
        assert ours[:].tolist() == [0, 7, 7, 3, 4, 5, 6, 7]
        ours[0] = 9
    assert calls == ["read_now", "write_now"] and used == []
