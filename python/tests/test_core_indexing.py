"""Selections of every kind, read and written, against NumPy."""
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import breccia


@pytest.fixture(scope="module")
def draft(tmp_path_factory):
    with breccia.open(tmp_path_factory.mktemp("indexing") / "data.brc", create=True) as repo:
        yield repo.session("main")


SHAPES = [(), (0,), (1,), (23,), (7, 9), (0, 4), (6, 5, 8), (3, 1, 4, 5)]


def chunks_of(shape):
    return tuple(max(1, n // 3 + 1) for n in shape)


def filled(shape, dtype="i4"):
    return (np.arange(np.prod(shape, dtype=int)) * 3 + 1).reshape(shape).astype(dtype)


@pytest.fixture(scope="module")
def pairs(draft):
    """Makes for each shape an array, and NumPy's with the same elements."""
    made = {}
    for i, shape in enumerate(SHAPES):
        data = filled(shape)
        made[shape] = draft.create_array(f"a{i}", data=data, chunks=chunks_of(shape)), data
    return made


def slices(n):
    edge = st.none() | st.integers(-n - 2, n + 2)
    step = st.none() | st.integers(1, n + 2) | st.integers(-n - 2, -1)
    return st.builds(slice, edge, edge, step)


@st.composite
def basic_keys(draw, shape):
    items = [draw(slices(n) | st.integers(-n, n - 1)) if n else draw(slices(n)) for n in shape]
    items = items[:draw(st.integers(0, len(items)))]
    if draw(st.booleans()):
        cut = draw(st.integers(0, len(items)))
        items[cut:] = [Ellipsis, *items[cut + draw(st.integers(0, len(items) - cut)):]]
        missing = len(shape) - (len(items) - 1)
        assert missing >= 0
        tail = items[cut + 1:]  # what stands behind the dots belongs to the last axes
        items[cut + 1:] = [i if isinstance(i, slice) or -n <= i < n else 0
                           for i, n in zip(tail, shape[len(shape) - len(tail):])] if tail else []
        if any(isinstance(i, int) and n == 0 for i,
               n in zip(items[cut + 1:], shape[len(shape) - len(tail):])):
            items = items[:cut + 1]
    for _ in range(draw(st.integers(0, 2))):
        items.insert(draw(st.integers(0, len(items))), None)
    return items[0] if len(items) == 1 and draw(st.booleans()) else tuple(items)


@st.composite
def indices(draw, n, shape=None):
    size = draw(st.integers(0, 12)) if shape is None else int(np.prod(shape))
    values = draw(st.lists(st.integers(-n, n - 1), min_size=size, max_size=size)) if n else []
    kind = draw(st.sampled_from(["i8", "i4", "i1"]))
    return np.array(values, kind).reshape(shape or -1)


@st.composite
def orthogonal_keys(draw, shape):
    items = []
    for n in shape:
        which = draw(st.sampled_from("aims"))
        if which == "a":
            items.append(draw(indices(n)))
        elif which == "m":
            items.append(np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool))
        elif which == "i" and n:
            items.append(draw(st.integers(-n, n - 1)))
        else:
            items.append(slice(draw(st.none() | st.integers(-n, n)), draw(st.none() | st.integers(-n, n)),
                               draw(st.none() | st.integers(1, 3))))
    return tuple(items)


def as_ix(key, shape):
    """NumPy's spelling of an orthogonal selection, and how to get rid of the axes that integers drop."""
    axes = []
    for item, n in zip(key, shape):
        if isinstance(item, slice):
            axes.append(np.arange(n)[item])
        elif isinstance(item, np.ndarray):
            axes.append(np.flatnonzero(item) if item.dtype == bool else item.astype("i8"))
        else:
            axes.append(np.array([item]))
    return np.ix_(*axes), tuple(slice(None) if not isinstance(i, int) else 0 for i in key)


@pytest.mark.parametrize("shape", SHAPES)
@given(st.data())
def test_basic_read(pairs, shape, data):
    array, oracle = pairs[shape]
    key = data.draw(basic_keys(shape))
    want = oracle[key]
    got = array[key]
    assert np.shape(got) == np.shape(want)
    np.testing.assert_array_equal(got, want)
    out = np.full(np.shape(want) + (3,), -1, "i4")[..., 1]
    assert array.get(key, out=out) is out
    np.testing.assert_array_equal(out, want)
    cast = np.empty(np.shape(want), "f8")
    np.testing.assert_array_equal(array.get(key, out=cast), want)


@pytest.mark.parametrize("shape", SHAPES)
@given(st.data())
def test_basic_write(draft, shape, data):
    oracle = filled(shape)
    array = draft.create_array("w", data=oracle, chunks=chunks_of(shape), overwrite=True)
    key = data.draw(basic_keys(shape))
    want = np.shape(oracle[key])
    value = data.draw(st.sampled_from(["scalar", "whole", "row", "strided"]))
    if value == "scalar":
        new = 77
    elif value == "row" and want:
        new = filled(want[-1:], "i2") - 1000
    elif value == "strided":
        new = (filled(want + (2,)) - 1000)[..., 0]
    else:
        new = filled(want, "f8") - 1000.5
    oracle[key] = new
    array.set(key, new, casting="unsafe")
    np.testing.assert_array_equal(array[...], oracle)
    oracle[key] += 2
    array[key] += 2
    np.testing.assert_array_equal(array[...], oracle)


@pytest.mark.parametrize("shape", [s for s in SHAPES if s])
@given(st.data())
def test_orthogonal(draft, pairs, shape, data):
    array, oracle = pairs[shape]
    key = data.draw(orthogonal_keys(shape))
    at, squeeze = as_ix(key, shape)
    want = oracle[at][squeeze]
    before = [k.copy() if isinstance(k, np.ndarray) else k for k in key]
    got = array.oindex[key]
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)
    out = np.zeros(want.shape + (2,), "i4")[..., 0]
    np.testing.assert_array_equal(array.oindex.get(key, out=out), want)
    for was, now in zip(before, key):
        if isinstance(was, np.ndarray):
            np.testing.assert_array_equal(was, now)

    changed = oracle.copy()
    new = filled(want.shape) - 5000
    full = changed[at].shape
    for where, value in zip(np.ndindex(full), new.reshape(full).ravel()):  # C order: the last one wins
        changed[tuple(np.broadcast_to(a, full)[where] for a in at)] = value
    written = draft.create_array("o", data=oracle, chunks=chunks_of(shape), overwrite=True)
    written.oindex[key] = new
    np.testing.assert_array_equal(written[...], changed)


@pytest.mark.parametrize("shape", [s for s in SHAPES if s])
@given(st.data())
def test_coordinates(draft, pairs, shape, data):
    array, oracle = pairs[shape]
    size = data.draw(st.sampled_from([(5,), (2, 3), (0,), (1,), (40,)])) if all(shape) else (0,)
    key = tuple(data.draw(indices(n, size)) if data.draw(st.booleans()) or i == 0 or not n
                else data.draw(st.integers(-n, n - 1)) for i, n in enumerate(shape))
    want = oracle[key]
    np.testing.assert_array_equal(array.vindex[key], want)
    if len(shape) > 1 or key[0].ndim == 1:
        np.testing.assert_array_equal(array[key], want)
    out = np.zeros(want.shape, "i8")
    np.testing.assert_array_equal(array.vindex.get(key, out=out), want)

    changed, new = oracle.copy(), filled(want.shape) - 5000
    places = [p.ravel() for p in np.broadcast_arrays(*key)]
    for i, value in enumerate(new.ravel()):
        changed[tuple(p[i] for p in places)] = value
    written = draft.create_array("c", data=oracle, chunks=chunks_of(shape), overwrite=True)
    written.vindex[key] = new
    np.testing.assert_array_equal(written[...], changed)


@pytest.mark.parametrize("shape", [s for s in SHAPES if s])
@given(st.data())
def test_mask(draft, pairs, shape, data):
    array, oracle = pairs[shape]
    size = int(np.prod(shape))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool).reshape(shape)
    for got in array[mask], array.vindex[mask]:
        np.testing.assert_array_equal(got, oracle[mask])
    written = draft.create_array("m", data=oracle, chunks=chunks_of(shape), overwrite=True)
    changed, new = oracle.copy(), filled((int(mask.sum()),)) - 9000
    changed[mask] = new
    written[mask] = new
    np.testing.assert_array_equal(written[...], changed)
    changed[mask] = 5
    written[mask] = 5
    np.testing.assert_array_equal(written[...], changed)


def test_blocks(pairs, draft):
    array, oracle = pairs[(7, 9)]
    assert array.chunks == (3, 4)
    np.testing.assert_array_equal(array.blocks[1], oracle[3:6])
    np.testing.assert_array_equal(array.blocks[-1, 1:], oracle[6:7, 4:9])
    np.testing.assert_array_equal(array.blocks[0:9, 2], oracle[:, 8:9])
    with pytest.raises(IndexError):
        array.blocks[3]
    for wrong in slice(None, None, 2), slice(None, None, -1), None, [0, 1]:
        with pytest.raises(IndexError):
            array.blocks[wrong]
    sharded = draft.create_array("sharded", data=oracle, chunks=(1, 3), shards=(2, 6))
    assert sharded.shards == (2, 6) and sharded.chunks == (1, 3)
    np.testing.assert_array_equal(sharded.blocks[1, 0], oracle[2:4, 0:6])
    sharded.blocks[0, 1] = 0
    changed = oracle.copy()
    changed[0:2, 6:] = 0
    np.testing.assert_array_equal(sharded[...], changed)


def test_blocks_of_several_lengths(draft, tmp_path):
    """The lengths are as in zarr.json: for each axis one length, or a list of lengths and [length, how many]."""
    oracle = filled((10, 7))
    draft.create_array("like", data=oracle, chunks=(10, 7))
    draft.export(tmp_path / "like.zarr", "like")
    where = tmp_path / "like.zarr" / "zarr.json"
    document = json.loads(where.read_text())
    document["chunk_grid"] = {"name": "rectilinear", "configuration": {
        "kind": "inline", "chunk_shapes": [[[3, 2], 1, 5, 5], 4]}}  # the last begins where the array ends no more
    (tmp_path / "like.zarr" / "c" / "0" / "0").unlink()
    where.write_text(json.dumps(document))
    draft.import_(tmp_path / "like.zarr", "uneven")
    array = draft["uneven"]
    array[...] = oracle
    assert array.cdata_shape == (4, 2)
    rows = slice(0, 3), slice(3, 6), slice(6, 7), slice(7, 10)
    for i, row in enumerate(rows):
        for j, column in enumerate([slice(0, 4), slice(4, 7)]):
            np.testing.assert_array_equal(array.blocks[i, j], oracle[row, column])
            np.testing.assert_array_equal(array.blocks[i - 4, j:], oracle[row, column.start:])
    np.testing.assert_array_equal(array.blocks[1:3], oracle[3:7])
    np.testing.assert_array_equal(array.blocks[2:2], oracle[7:7])
    array.blocks[2, 1] = oracle[6:7, 4:] = 0
    np.testing.assert_array_equal(array[...], oracle)
    with pytest.raises(IndexError):
        array.blocks[4]
    array.resize(0, 7)
    with pytest.raises(IndexError):
        array.blocks[0]


@pytest.mark.parametrize("key", [
    23, -24, True, 1.5, (0, 0), (..., ...), "name", np.array([1.5]), np.array([23]), np.array([-24]),
    np.ones(22, bool), {}, np.array([[True]])])
def test_index_errors(pairs, key):
    array, _ = pairs[(23,)]
    with pytest.raises(IndexError):
        array[key]
    with pytest.raises(IndexError):
        array[key] = 1


@pytest.mark.parametrize("key", [([0, 1], [0, 1], slice(None)), (..., [0], [1])])
def test_what_numpy_has_and_zarr_has_not(pairs, key):
    with pytest.raises(IndexError, match="oindex"):
        pairs[(6, 5, 8)][0][key]


def test_dispatch(pairs):
    """Plain brackets by Zarr's rules, which are not NumPy's where integers and arrays are apart."""
    array, oracle = pairs[(6, 5, 8)]
    np.testing.assert_array_equal(array[[0, 2]], oracle[[0, 2]])
    np.testing.assert_array_equal(array[:, [3, 1, 1]], oracle[:, [3, 1, 1]])
    np.testing.assert_array_equal(array[[4, 0], :, 2], oracle[[4, 0], :, 2])
    np.testing.assert_array_equal(array[[0, 2], [1, 3], [4, 4]], oracle[[0, 2], [1, 3], [4, 4]])
    for key in ([0, 2], [1, 3], [4, 4], ...), (..., [[0, 2]], 1, [4, 4]):  # "..." that stands for no axis
        np.testing.assert_array_equal(array[key], oracle[key])
    two, flat = pairs[(7, 9)]
    np.testing.assert_array_equal(two[[0, 2], [1, 3]], flat[[0, 2], [1, 3]])
    np.testing.assert_array_equal(two[[0, 2], ..., [1, 3]], flat[[0, 2], [1, 3]])
    rows, columns = np.arange(7) % 2 == 0, np.arange(9) < 3
    np.testing.assert_array_equal(two[rows, columns], flat[np.ix_(rows, columns)])
    np.testing.assert_array_equal(two[..., [0, 8]], flat[:, [0, 8]])
    np.testing.assert_array_equal(two[np.array(3)], flat[3])
    np.testing.assert_array_equal(two[None, [3, 0]], flat[None, [3, 0]])
    np.testing.assert_array_equal(two[[]], flat[[]])
    np.testing.assert_array_equal(two[2, range(1, 4)], flat[2, 1:4])
    np.testing.assert_array_equal(two[memoryview(np.array([5, 1]))], flat[[5, 1]])
    np.testing.assert_array_equal(two[::2**70], flat[::2**70])
    np.testing.assert_array_equal(two[[3, 0], None, ::-2], flat[[3, 0], None, ::-2])
    assert two[np.int64(2), np.uint8(1)] == flat[2, 1]
    assert isinstance(two[2, 1], np.int32) and two[2, 1].shape == ()


def test_writes_that_do_not_fit(draft):
    array = draft.create_array("fit", shape=(4, 5), dtype="u1", fill_value=9)
    with pytest.raises(ValueError):
        array[0] = [1, 2, 3]
    for wrong in 300, -1, "text", 1.9, np.arange(5.0), np.arange(5):
        with pytest.raises(breccia.InvalidError):
            array[0] = wrong
    array.set(np.s_[1], np.arange(5.0) + 0.5, casting="unsafe")
    assert array[1].tolist() == [0, 1, 2, 3, 4]
    assert array[2:].tolist() == [[9] * 5] * 2


def test_an_array_that_another_session_resized(tmp_path):
    """An index is of the shape that the array has by now."""
    with breccia.open(tmp_path / "data.brc", create=True) as repo:
        mine, other = repo.draft("main"), repo.draft("main")
        array = mine.create_array("a", shape=10, dtype="i4")
        other["a"].resize(20)
        other["a"][15:] = 7
        assert array[15] == 7
        other["a"].resize(30)
        assert array.oindex[[29, 15]].tolist() == [0, 7] and array[20:].shape == (10,)
        other["a"].resize(5)
        assert array[:].shape == (5,)
        with pytest.raises(IndexError):
            array[5]


def test_points_are_written_with_an_ellipsis_too(draft):
    array = draft.create_array("dots", shape=(3, 3), dtype="i4")
    array[[0, 1], [2, 0], ...] = [5, 6]
    assert array[...].tolist() == [[0, 0, 5], [6, 0, 0], [0, 0, 0]]


def test_many_duplicates_in_many_chunks(draft):
    random = np.random.default_rng(7)
    at, values = random.integers(0, 100, 5000), random.integers(0, 1 << 30, 5000)
    oracle = np.zeros(100, "i8")
    oracle[at] = values
    for name in "oindex", "vindex":
        array = draft.create_array(name, shape=100, dtype="i8", chunks=7)
        getattr(array, name)[at] = values
        np.testing.assert_array_equal(array[...], oracle)


def test_many_small_boxes(draft):
    """More boxes than go into one call, and so small that they are read as points."""
    random = np.random.default_rng(3)
    oracle = random.integers(0, 1 << 40, (300, 310))
    array = draft.create_array("many", data=oracle, chunks=(37, 41))
    rows, columns = random.permutation(300)[:150], random.permutation(310)[:160]
    np.testing.assert_array_equal(array.oindex[rows, columns], oracle[np.ix_(rows, columns)])
    array.oindex[rows, columns] = 5
    oracle[np.ix_(rows, columns)] = 5
    np.testing.assert_array_equal(array[...], oracle)
    wide = random.permutation(310)
    for size in 4, 310:
        np.testing.assert_array_equal(array.oindex[:, wide[:size]], oracle[:, wide[:size]])
    at = random.integers(0, 300, 20000), random.integers(0, 310, 20000)
    np.testing.assert_array_equal(array.vindex[at], oracle[at])
    array.vindex[at] = np.arange(20000)
    oracle[at] = np.arange(20000)
    np.testing.assert_array_equal(array[...], oracle)


def test_points_far_apart_need_little_memory(draft):
    array = draft.create_array("far", shape=(1 << 40, 1 << 20), dtype="f4", chunks=(1 << 10, 1 << 10))
    at = np.array([0, 1 << 39, (1 << 40) - 1]), np.array([5, 9, (1 << 20) - 1])
    array.vindex[at] = [1, 2, 3]
    np.testing.assert_array_equal(array.vindex[at], [1, 2, 3])
    np.testing.assert_array_equal(array.oindex[at[0], at[1]], np.diag([1, 2, 3]))
    assert array.nchunks_initialized == 3


def test_fields(draft):
    dtype = np.dtype([("a", "i4"), ("b", "f8"), ("c", "S3")])
    oracle = np.array([(i, i / 2, b"x" * (i % 4)) for i in range(9)], dtype)
    array = draft.create_array("records", data=oracle, chunks=4)
    np.testing.assert_array_equal(array["a"], oracle["a"])
    np.testing.assert_array_equal(array[["c", "a"]], oracle[["c", "a"]])
    np.testing.assert_array_equal(array["b", 2:5], oracle["b"][2:5])
    array["b", [1, 3]] = 7
    oracle["b"][[1, 3]] = 7
    np.testing.assert_array_equal(array[...], oracle)
    with pytest.raises(IndexError, match="no field 'd'"):
        array["d"]
    with pytest.raises(IndexError, match="no fields"):
        draft.create_array("plain", shape=3, dtype="i4")["a"]


def test_reads_go_into_the_destination(pairs, monkeypatch):
    """The library writes to the caller's memory, whatever its strides, if it is of the array's type."""
    array, oracle = pairs[(6, 5, 8)]
    monkeypatch.setattr(np, "empty", lambda *_: pytest.fail("it is read into memory of its own"))
    for out in (np.zeros((6, 5, 8), "i4"), np.zeros((8, 5, 6), "i4").T, np.zeros((12, 5, 8), "i4")[::-2]):
        array.get(..., out=out)
        np.testing.assert_array_equal(out, oracle)
        array.oindex.get(([5, 0, 1],), out=out[:3])
        np.testing.assert_array_equal(out[:3], oracle[[5, 0, 1]])
    with pytest.raises(pytest.fail.Exception, match="memory of its own"):
        array.get(..., out=np.zeros((6, 5, 8), "i8"))


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_out_is_checked(pairs):
    array, oracle = pairs[(7, 9)]
    matrix = np.asmatrix(np.zeros((7, 9), oracle.dtype))
    np.testing.assert_array_equal(array.get(..., out=matrix), oracle)
    with pytest.raises(ValueError):
        array.get(..., out=np.zeros((7, 8), "i4"))
    with pytest.raises(ValueError):
        fixed = np.zeros((7, 9), "i4")
        fixed.flags.writeable = False
        array.get(..., out=fixed)


def test_numpys_protocols(pairs):
    array, oracle = pairs[(7, 9)]
    np.testing.assert_array_equal(np.asarray(array), oracle)
    assert np.asarray(array, "f4").dtype == "f4"
    with pytest.raises(ValueError):
        np.array(array, copy=False)
    np.testing.assert_array_equal(np.from_dlpack(array), oracle)
    assert len(array) == 7 and [r.tolist() for r in array] == oracle.tolist()
    np.testing.assert_array_equal(np.sum(array, axis=0), oracle.sum(axis=0))
    assert (array == array) is True
    zero, _ = pairs[()]
    assert float(zero) == 1.0 and int(zero) == 1
    for wrong in len, iter, list:
        with pytest.raises(TypeError):
            wrong(zero)
    with pytest.raises(ValueError):
        bool(array)
