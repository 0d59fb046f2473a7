"""Data types, fill values and attributes, to the bit."""
import base64
import json
import warnings

import ml_dtypes
import numpy as np
import pytest

import breccia
from breccia import _dtypes

SMALL = sorted(_dtypes._SMALL)
PLAIN = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
         "float32", "float64", "complex64", "complex128"]
OTHERS = ["<U7", "S5", "V6", "M8[ns]", "M8[D]", "M8[25us]", "m8[s]", "m8[h]",
          [("a", "<i2"), ("b", "<f8"), ("c", "M8[ms]"), ("d", "S2"), ("e", [("x", "?"), ("y", "<u8")])]]


def random_of(dtype, shape=(11, 6), seed=1):
    """Elements with any bits that the type allows."""
    random = np.random.default_rng(seed)
    if dtype.names:
        made = np.zeros(shape, dtype)
        for name in dtype.names:
            made[name] = random_of(dtype[name], shape, seed + 1)
        return made
    if dtype.kind == "U":
        words = ["", "a", "äöü", "日本語", "\U0001f600x", "1234567"]
        return np.array(words, dtype)[random.integers(0, len(words), shape)]
    if dtype.kind == "S":
        return np.array([b"", b"a", b"ab"], dtype)[random.integers(0, 3, shape)]
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    raw = random.integers(0, 256, (*shape, dtype.itemsize), dtype=np.uint8)
    if dtype.name in SMALL and dtype.name[:3] in ("int", "uin") or dtype.name[:6] in ("float4", "float6"):
        return random.integers(-2 if dtype.name[0] == "i" else 0, 2, shape).astype(dtype)
    return raw.view(dtype).reshape(shape)


def same_bits(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape
    if a.dtype.name in ("int2", "int4"):  # the bits above a sign are nobody's
        a, b = a.astype("i1"), b.astype("i1")
    assert np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


@pytest.mark.parametrize("dtype", PLAIN + SMALL + OTHERS, ids=str)
def test_round_trip(session, dtype):
    dtype = np.dtype(getattr(ml_dtypes, dtype) if dtype in SMALL else dtype)
    assert _dtypes.to_numpy(_dtypes.to_zarr(dtype)) == dtype
    data = random_of(dtype)
    array = session.create_array("a", data=data, chunks=(4, 5))
    assert array.dtype == dtype
    same_bits(array[...], data)
    same_bits(array[3:9:2, 1], data[3:9:2, 1])
    same_bits(array[[7, 0, 7]], data[[7, 0, 7]])
    same_bits(array.vindex[[1, 10], [5, 0]], data[[1, 10], [5, 0]])
    out = np.zeros((2, 11, 6), dtype)
    same_bits(array.get(..., out=out[1]), data)
    array[2] = data[0]
    same_bits(array[2], data[0])
    array[[4, 1]] = data[[0, 3]]
    same_bits(array[[4, 1]], data[[0, 3]])
    array.append(data[:3])
    same_bits(array[-3:], data[:3])
    assert array[0, 0].dtype == data[0, 0].dtype


def test_other_byte_order(session):
    data = np.arange(6, dtype=">f8").reshape(2, 3)
    array = session.create_array("a", data=data)
    assert array.dtype == np.dtype("f8") and array.dtype.isnative
    np.testing.assert_array_equal(array[...], data)
    out = np.zeros((2, 3), ">f8")
    np.testing.assert_array_equal(array.get(..., out=out), data)
    assert out.dtype == ">f8"


WORDS = np.array([["", "a", "äöü", "x" * 300], ["日本語", "nul\0in", "\U0001f600", "end"]], object)


@pytest.mark.parametrize("name, data", [
    ("string", WORDS), ("bytes", np.array([[b"", b"a\0b", b"\xff" * 70], [b"1", b"22", b"333"]], object))])
def test_variable_length(session, name, data):
    array = session.create_array("a", data=data, chunks=(1, 2))
    assert array.data_type == name
    assert array[...].tolist() == data.tolist()
    assert array[1, ::-1].tolist() == data[1, ::-1].tolist()
    assert array[0, 2] == data[0, 2]
    assert array.oindex[[1, 0], [2, 0]].tolist() == data[np.ix_([1, 0], [2, 0])].tolist()
    assert array.vindex[[0, 1], [1, 2]].tolist() == data[[0, 1], [1, 2]].tolist()
    new = data[0, 1]
    array[0, 0] = new
    array.vindex[[1, 0, 1], [1, 2, 1]] = data[0, [0, 1, 2]]
    want = data.copy()
    want[0, 0] = new
    want[[1, 0, 1], [1, 2, 1]] = data[0, [0, 1, 2]]
    assert array[...].tolist() == want.tolist()
    array.append(data)
    assert array[2:].tolist() == data.tolist()
    array.resize(6, data.shape[1])
    assert array.fill_value == ("" if name == "string" else b"")
    assert set(array[5].tolist()) == {array.fill_value}
    if name == "bytes":
        for wrong in 3, "text":
            with pytest.raises(TypeError):
                array[0, 0] = wrong


@pytest.mark.parametrize("data", [
    np.array("äö", getattr(np.dtypes, "StringDType", lambda: object)()), np.array(b"a\0b\0", object),
    np.array(b"ab", "S4"), np.array("xy", "U5"), np.array(7, "i2"), np.array((1, 2.5), [("a", "i4"), ("b", "f8")])],
    ids=lambda d: str(d.dtype))
def test_an_array_without_dimensions_keeps_its_type(session, data):
    """Its element as a scalar has a type of its own, or none."""
    array = session.create_array("a", data=data)
    session["b"] = array
    for made in array, session["b"], session.create_array("c", data=array):
        assert np.asarray(made).dtype == data.dtype == made.dtype and np.asarray(made).shape == ()
        assert np.asarray(made).item() == data.item() and made.data_type == array.data_type


def test_strings_are_numpys(session):
    session["s"] = ["one", "three"]
    assert session["s"].dtype == np.dtypes.StringDType()
    assert session["s"].data_type == "string"
    session["s"][1] = "two"
    assert session["s"][...].tolist() == ["one", "two"]
    fixed = session.create_array("f", data=np.array(["ab", "c"]))
    assert fixed.dtype == "<U2"


FILLS = [("float32", np.uint32(0x7fc12345).view("f4")), ("float32", np.uint32(0xff800001).view("f4")),
         ("float64", np.uint64(0x7ff8deadbeef0001).view("f8")), ("float64", -0.0), ("float64", np.inf),
         ("float32", np.float32(0.1)), ("float16", np.float16(-np.inf)), ("int64", -2**63),
         ("uint64", 2**64 - 1), ("bool", True), ("complex64", 1 + 2j),
         ("complex128", complex(np.nan, -np.inf)), ("M8[ns]", np.datetime64("NaT")),
         ("M8[D]", np.datetime64("2020-02-29")), ("m8[s]", np.timedelta64(-5, "s")), ("S4", b"ab"),
         ("<U3", "äx"), ("V3", b"\0\1\2"), ("bfloat16", 1.5), ("float8_e5m2", -np.inf), ("int4", -8),
         ("uint2", 3), ("float4_e2m1fn", 1.5), ([("a", "i4"), ("b", "f8")], (3, np.nan)), ("string", "fill"),
         ("bytes", b"\0fill")]


@pytest.mark.parametrize("dtype, value", FILLS, ids=str)
def test_fill_values(session, dtype, value):
    array = session.create_array("a", shape=(3,), dtype=dtype, fill_value=value)
    want = value
    if array._form.item:
        want = np.zeros((), array.dtype)
        want[()] = value
        same_bits(np.asarray(array.fill_value, array.dtype), want)
        same_bits(array[1:2].reshape(()), want)
        array[0] = value
        same_bits(array[:1].reshape(()), want)
    else:
        assert array.fill_value == value and array[2] == value


@pytest.mark.parametrize("dtype", ["M8[ns]", "m8[s]"])
def test_a_time_that_was_never_written_is_none(session, dtype):
    array = session.create_array("a", shape=(3,), dtype=dtype)
    array[1] = 5
    assert np.isnat(array.fill_value) and np.isnat(array[...]).tolist() == [True, False, True]


def test_optional(session):
    inner = {"name": "zarrs.optional", "configuration": {"name": "int32", "configuration": {}}}
    try:
        array = session.create_array("a", shape=3, dtype=inner)
    except breccia.Error:
        pytest.skip("no codec takes it by default")
    assert array[0]["present"] == np.False_


def test_unknown_types_are_opaque(tmp_path, session):
    """An array of an unknown type comes from elsewhere: it can be listed, moved and committed, and says why it
    cannot be read."""
    folder = tmp_path / "z"
    (folder / "a").mkdir(parents=True)
    (folder / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group"}))
    (folder / "a" / "zarr.json").write_text(json.dumps({
        "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "vendor.decimal", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}, "attributes": {},
        "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}]}))
    session.import_(folder, "z")
    array = session["z/a"]
    assert array.shape == (4,) and array.data_type == "vendor.decimal" and "vendor.decimal" in repr(array)
    for use in (lambda: array[...], lambda: array.dtype, lambda: array[[1]], lambda: array.vindex[[1]],
                lambda: array.__setitem__(0, 1), lambda: array.fill_value):
        with pytest.raises(breccia.UnsupportedError, match="vendor.decimal"):
            use()
    session.move("z/a", "b")
    session.commit("an opaque one")


@pytest.mark.parametrize("name", [
    "float999", "r²", "complex_", '{"name": "numpy.datetime64", "configuration": {"unit": "x"}}', '{"name": 3}',
    '{"name": "fixed_length_utf32", "configuration": {"other": 1}}', '{"configuration": {"length_bytes": 3}}',
    '{"name": "struct", "configuration": {"fields": [["a", "int8"], ["a", "int8"]]}}'])
def test_names_that_mean_no_type(name):
    with pytest.raises(breccia.UnsupportedError):
        _dtypes.to_numpy(name)


def test_an_optional_element_that_is_missing(session):
    inner = {"name": "zarrs.optional", "configuration": {"name": "string", "configuration": {}}}
    codec = {"mask_codecs": [{"name": "packbits"}], "data_codecs": [{"name": "vlen-utf8"}]}
    array = session.create_array("a", shape=3, dtype=inner, codecs=[{"name": "zarrs.optional", "configuration": codec}])
    array[1:] = ["ab", ""]
    assert array[0] is None and array[...].tolist() == [None, "ab", ""]
    array[1] = None
    assert array[:2].tolist() == [None, None]


def test_types_that_zarr_has_not():
    for wrong in object, np.dtype("f4,(2,)i4"), "float128":
        with pytest.raises((breccia.UnsupportedError, breccia.InvalidError)):
            _dtypes.to_zarr(wrong)


def test_attributes(session):
    array = session.create_array("g/a", shape=3, dtype="f4", attributes={"units": "K"})
    attrs = array.attrs
    big = {"n": 2**64 + 1, "small": -(2**63), "f": 0.1, "t": "äöü\"\\\n", "l": [1, None, True, {"x": []}],
           "e": 1e300}
    attrs.update(big)
    assert attrs == {"units": "K", **big}
    assert json.dumps(dict(attrs)["n"]) == "18446744073709551617"
    attrs["numpy"] = np.int64(2**62)
    attrs["list"] = np.arange(3)
    assert attrs["numpy"] == 2**62 and attrs["list"] == [0, 1, 2]
    del attrs["units"]
    with pytest.raises(KeyError):
        attrs["units"]
    with pytest.raises(KeyError):
        del attrs["units"]
    with pytest.raises(TypeError):
        attrs["object"] = object()
    with pytest.raises((TypeError, ValueError)):
        attrs.update({"good": 1, "bad": object()})
    assert "good" not in attrs
    attrs.put({"only": 1})
    assert dict(attrs) == {"only": 1} and len(attrs) == 1 and "only" in attrs
    session["g"].attrs["on"] = "group"
    session.attrs["on"] = "root"
    assert session["g"].attrs["on"] == "group" and session.attrs.asdict() == {"on": "root"}


# ---- structures in other files --------------------------------

def test_i24_10_structs_of_both_byte_orders_are_read(repo, tmp_path):
    """The structs are those of zarr-python 2: the fill value too is in the byte order of the fields."""
    dtype = np.dtype([("n", "<i2"), ("x", ">f8"), ("p", [("s", ">u4"), ("u", ">U2")]), ("b", "?")])
    data = np.array([(i, i / 4, (i << 20, "ä€"), i % 2) for i in range(6)], dtype)
    (tmp_path / "a").mkdir()
    (tmp_path / "a/0").write_bytes(data[:4].tobytes())
    (tmp_path / "a/.zarray").write_text(json.dumps({
        "zarr_format": 2, "shape": [6], "chunks": [4], "order": "C", "filters": None, "compressor": None,
        "dtype": dtype.descr, "fill_value": base64.b64encode(data[5:].tobytes()).decode()}))
    with repo.session("main", message="in") as s:
        s.import_(tmp_path / "a", "a")
    data[4] = data[5]
    read = repo.view("main")["a"][...]
    assert read.dtype.newbyteorder("<") == dtype.newbyteorder("<")
    assert (read == data).all()


def test_i24_10_consolidated_structs_are_a_warning(repo, tmp_path):
    with repo.session("main", message="in") as s:
        s.create_array("t", shape=(2,), dtype=[("n", "<i2"), ("x", "<f4")])
        with pytest.warns(UserWarning, match=r"^/t: zarr-python before 3\.2\.0 .* without --consolidated") as told:
            s.export(tmp_path / "all.zarr", consolidated=True)
        assert len(told) == 1 and told[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            s.export(tmp_path / "plain.zarr")
            s.export(tmp_path / "two.zarr", format="zarr2", consolidated=True)
