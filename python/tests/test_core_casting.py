"""Values that the type cannot hold: of fill values and of every way to write, none changes without a word."""
import contextlib
import datetime
import warnings

import ml_dtypes
import numpy as np
import pytest

import breccia
from breccia import _casting

STRUCT = np.dtype([("a", "i4"), ("b", "f4")])
TEXT = np.dtypes.StringDType() if hasattr(np.dtypes, "StringDType") else np.dtype(object)
TYPES = ["?", "i1", "u1", "i2", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "S3", "U3", "V3", "M8[s]", "M8[ns]",
"m8[s]",
         "m8[ns]", STRUCT, ml_dtypes.int4, ml_dtypes.uint2, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2]

# Values that no element of the type can have, in any form: alone, in a list, and in an array of objects.
WRONG = [
    ("u1", 300), ("u1", -1), ("i1", 128), ("i8", 2**63), ("i8", 2**200), ("u8", -1), ("u8", 2**64), ("i4", 1.5),
    ("i4", float("nan")), ("i4", 1j), ("f8", 1j), ("f4", 1e300), ("f4", -1e39), ("f2", 70000), ("f2", 1e5),
    ("f8", 10**400),
    ("?", 2), ("?", -1), ("?", "yes"), ("f8", "1.5"), ("i4", "5"), ("f8", None), ("i4", object()),
    ("S3", "abcdef"), ("S3", b"abcd"), ("S3", "äö"), ("S3", b"ab\0"), ("S3", 5), ("U3", "abcd"), ("U3", "a\0"),
    ("U3", 5),
    ("V3", b"ab"), ("V3", b"abcd"), ("V3", 5), ("string", 5), ("string", None), ("bytes", "text"), ("bytes", 5),
    ("M8[ns]", "3000-01-01"), ("M8[ns]", "1500-01-01"), ("M8[ns]", datetime.datetime(3000, 1, 1)),
    ("M8[ns]", datetime.date(1, 1, 1)), ("M8[ns]", 2**63), ("M8[s]", "2020-01-01T00:00:00.5"), ("M8[D]", "no day"),
    ("M8[s]", datetime.datetime(2020, 1, 1, 0, 0, 0, 5)), ("M8[ns]", datetime.timedelta(1)),
    ("m8[ns]", datetime.timedelta(400000)), ("m8[h]", datetime.timedelta(minutes=5)),
    ("m8[s]", datetime.date(2020, 1, 1)),
    (STRUCT, (1.5, 2)), (STRUCT, (2**31, 2)), (STRUCT, (1, 1e300)), (STRUCT, (1, "x")), (STRUCT, (1, 2, 3)),
    (STRUCT, 5),
    (ml_dtypes.int4, 8), (ml_dtypes.uint2, -1), (ml_dtypes.uint2, 4), (ml_dtypes.bfloat16, 1e39),
    (ml_dtypes.float8_e4m3fn, 1e5), (ml_dtypes.float4_e2m1fn, float("inf")), (ml_dtypes.float4_e2m1fn, float("nan"))]
# The same of arrays that have a type.
ARRAYS = [
    ("u1", np.int64(3)), ("u1", np.array([1, 2])), ("i4", np.array([2**40])), ("i8", np.array([2**63], "u8")),
    ("i4", np.array([1.0])), ("?", np.array([1])), ("f4", np.array([1e300])), ("f2", np.array([70000])),
    ("f8", np.array([1j])), ("U3", np.array(["abcd"])), ("S3", np.array([b"abcd"])), ("S3", np.array(["abc"])),
    ("U3", np.array([5])), ("string", np.array([5])), ("V3", np.array([b"abcd"], "V4")),
    ("V3", np.array([b"ab"], "V2")),
    ("M8[ns]", np.datetime64("3000-01-01")), ("M8[ns]", np.array(["0001-01-01"], "M8[D]")),
    ("M8[s]", np.array(["2020-01-01T00:00:00.5"], "M8[ms]")), ("M8[s]", np.array([5])),
    ("i8", np.array([5], "m8[s]")),
    ("m8[ns]", np.array([400000], "m8[D]")), (STRUCT, np.array([(2**40, 1)], [("x", "i8"), ("y", "f8")])),
    (STRUCT, np.array([(1, 1e300)], [("x", "i8"), ("y", "f8")])), (STRUCT, np.array([1, 2])),
    (ml_dtypes.int4, np.array([8])), ("i1", np.array([7.0], "f4"))]


def made(session, dtype, shape=4, **options):
    return session.create_array("a", shape=shape, dtype=dtype, overwrite=True, chunks=2, **options)


def ways(array, value):
    """Every way to write a value into the array, which has four elements."""
    one = np.asarray(value).reshape(-1)[:1] if hasattr(value, "dtype") else [value]
    s, dtype = array.session, array.dtype if array._form.item else array.data_type
    yield lambda: array.__setitem__(0, value)
    yield lambda: array.__setitem__(slice(0, 1), one)
    yield lambda: array.__setitem__([0], one)
    yield lambda: array.__setitem__(np.array([True, False, False, False]), one)
    yield lambda: array.oindex.__setitem__([0], one)
    yield lambda: array.vindex.__setitem__([0], one)
    yield lambda: array.blocks.__setitem__(0, value)
    yield lambda: array.set(slice(2), value, casting="same_kind")
    yield lambda: array.append(one)
    yield lambda: s.create_array("new", data=one, dtype=dtype)
    if not hasattr(value, "dtype"):
        cell = np.empty(1, object)
        cell[0] = value
        yield lambda: array.__setitem__(slice(1), cell)


@pytest.mark.parametrize("dtype, value", WRONG + ARRAYS, ids=repr)
def test_what_does_not_fit_is_an_error_whatever_writes_it(session, dtype, value):
    array = made(session, dtype)
    before = array[...]
    for i, way in enumerate(ways(array, value)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(breccia.InvalidError):
                way()
                print(f"way {i} took it")
        assert array.shape == (4,) and np.array_equal(array[...].astype(object),
        before.astype(object)) and "new" not in session


def test_the_message_has_the_number_as_it_was_given(session):
    with pytest.raises(breccia.InvalidError, match="^300 does not fit uint8:"):
        made(session, "u1")[0] = 300


@pytest.mark.parametrize("dtype, value", WRONG, ids=repr)
def test_a_fill_value_that_does_not_fit_is_an_error(session, dtype, value):
    if value is None:
        return  # the type's own
    with pytest.raises(breccia.InvalidError):
        made(session, dtype, fill_value=value)
    assert "a" not in session


FILLS = [("i4", 1.0, 1), ("u1", np.float64(2), 2), ("u1", np.int64(255), 255), ("f4", 0.1, np.float32(0.1)),
         ("?", 1, True),
         ("f8", 2**53, 2.0**53), ("M8[ns]", 5, np.datetime64(5, "ns")),
         ("M8[ns]", "2020-01-01", np.datetime64("2020-01-01")),
         ("M8[s]", datetime.date(2020, 1, 1), np.datetime64("2020-01-01")), ("S3", "abc", b"abc"),
         ("V3", b"a\0\0", b"a\0\0")]


@pytest.mark.parametrize("dtype, value, want", FILLS, ids=repr)
def test_a_fill_value_that_is_an_element(session, dtype, value, want):
    got = made(session, dtype, fill_value=value).fill_value
    assert (got.tobytes() if dtype == "V3" else got) == want


@pytest.mark.parametrize("dtype, value", [("f8", 2**53 + 1), ("f4", 2**24 + 1), ("f4", np.int64(2**24 + 1)),
    ("i4", "1"),
                                          ("f8", 1 + 0j), ("i4", [1, 2]), ("u1", np.int64(256))], ids=repr)
def test_an_integer_is_exact_in_a_fill_value(session, dtype, value):
    with pytest.raises(breccia.InvalidError):
        made(session, dtype, fill_value=value)


@pytest.mark.parametrize("target", TYPES, ids=str)
def test_the_rule_is_numpys(target):
    """Between numbers, and between times: what it forbids is an error, and what it allows is NumPy's own cast."""
    target = np.dtype(target)
    for source in TYPES:
        source = np.dtype(source)
        for casting in "no", "equiv", "safe", "same_kind", "unsafe":
            if any(t.names or t.num < 256 and t.kind in "SUV" for t in (source, target)):
                continue  # no number becomes a text, and no text a number
            given, want = np.zeros(3, source), None
            with contextlib.suppress(TypeError), warnings.catch_warnings():  # there are casts that NumPy only promises
                warnings.simplefilter("ignore")
                want = given.astype(target)
            if want is None:
                continue
            if np.can_cast(source, target, casting):
                got = _casting.fit(given, target, casting)
                assert got.dtype == target and got.tobytes() == want.tobytes()
            else:
                with pytest.raises(breccia.WrongTypeError, match='casting="unsafe"'):
                    _casting.fit(given, target, casting)


@pytest.mark.parametrize("dtype, value, want", [
    ("u1", 300, 44), ("u1", np.array([300, -1]), [44, 255]), ("i4", [1.9, -1.9], [1, -1]), ("S3", "abcdef", b"abc"),
    ("f4", np.array([1e300]), [np.inf]),
    ("M8[s]", np.datetime64("2020-01-01T00:00:00.5"), np.datetime64("2020-01-01T00:00:00"))],
    ids=repr)
def test_casting_asks_for_more(session, dtype, value, want):
    n, want = np.size(value), np.atleast_1d(np.array(want, dtype)).tolist()
    array = made(session, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for write, key in (array.set, slice(n)), (array.oindex.set, slice(n)), (array.blocks.set, slice(1)):
            write(key, value, casting="unsafe")
            assert array[:n].tolist() == want
            array[:] = array.fill_value
        array.append(np.atleast_1d(value), casting="unsafe")
        assert array[4:].tolist() == want
        other = session.create_array("b", data=np.atleast_1d(value), dtype=dtype, casting="unsafe")
        assert other[...].tolist() == want
    for call in array.set, array.vindex.set:
        with pytest.raises(breccia.InvalidError, match="casting must be 'same_kind'"):
            call(0, 1, casting="any")


def test_a_mask_is_an_error_unless_it_is_filled(session):
    masked, none = np.ma.masked_array([1, 2, 3, 4], [0, 1, 0, 0]), np.ma.masked_array([1, 2, 3, 4])
    array = made(session, "i8")
    for value in masked, [masked], (masked[1], 1), np.ma.masked:
        for write in (lambda: array.__setitem__(..., value), lambda: array.append(value),
        lambda: array.vindex.__setitem__([0], value),
                      lambda: session.__setitem__("new", value), lambda: session.__setitem__("a", value),
                      lambda: session.create_array("new", data=value),
                      lambda: array.set(..., value, casting="unsafe"),
                      lambda: session.create_array("new", shape=1, dtype="i8", fill_value=value)):
            with pytest.raises(breccia.InvalidError, match="filled"):
                write()
            assert not array[...].any() and array.shape == (4,) and "new" not in session
    array[...] = none
    session["new"] = masked.filled(9)
    assert array[...].tolist() == [1, 2, 3, 4] and session["new"][...].tolist() == [1, 9, 3, 4]


def test_an_array_that_is_made_of_a_list_has_its_elements(session):
    for value in ["a", 1], [1, "a"], [b"a", "b"], [2**53 + 1, -1.5], [2**63 + 1, -1], [[1], [1, 2]]:
        with pytest.raises(breccia.InvalidError):
            session["new"] = value
        with pytest.raises(breccia.InvalidError):
            session.create_array("new", data=value)
    assert "new" not in session
    session["new"] = ["a\0", "nul\0in"]
    assert session["new"][...].tolist() == ["a\0", "nul\0in"]
    session["new"] = [1, 2.5, True]
    assert session["new"][...].tolist() == [1.0, 2.5, 1.0]


def test_fields_are_cast_by_the_same_rule(session):
    array = session.create_array("s", data=np.zeros(3, STRUCT))
    for names, value in ("a", 1.5), ("a", [2**31, 0, 0]), (["a", "b"], (1.5, 1)), ("b", "x"), ("a", np.ones(3)):
        with pytest.raises(breccia.InvalidError):
            array[names] = value
    array["a"] = [1, 2, 3]
    array[["a", "b"], 1] = (7, 0.5)
    array[0] = (9, 0.25)
    assert array[...].tolist() == [(9, 0.25), (7, 0.5), (3, 0.0)]
    array.set("a", 1.5, casting="unsafe")
    assert array["a"].tolist() == [1, 1, 1]
    array[...] = np.array([(4, 1.5)], [("x", "i2"), ("y", "f8")])
    assert array[2].tolist() == (4, 1.5)


def test_times_that_fit(session):
    array = made(session, "M8[ns]")
    array[:3] = ["2020-01-01", "NaT", "1999-12-31T23:59:59.5"]
    array[3] = datetime.datetime(2001, 2, 3, 4, 5, 6, 7)
    assert array[...].tolist() == np.array(["2020-01-01", "NaT", "1999-12-31T23:59:59.5",
    "2001-02-03T04:05:06.000007"],
                                           "M8[ns]").tolist()
    array[0] = np.datetime64("NaT")
    assert np.isnat(array[0])


# ---- names of types ----


@pytest.mark.parametrize("name, want", [("f8", "float64"), ("<i4", "int32"), (">u2", "uint16"),
    ("datetime64[ns]", "M8[ns]"),
                                        ("timedelta64[s]", "m8[s]"), ("<M8[us]", "M8[us]"), ("|S5", "S5"),
                                        ("<U3", "U3"),
                                        ("b1", "bool"), ("complex64", "c8"), ("float16", "f2"), ("V3", "V3"),
                                        (float, "f8")])
def test_numpys_names(session, name, want):
    assert made(session, name).dtype == np.dtype(want)


@pytest.mark.parametrize("name, near", [("flaot32", "'float32'"), ("Float64", "'float64'"), ("uint23", "'uint32'"),
                                        ("datetime[ns]", "'datetime64[ns]'"), ("strnig", "'string'"),
                                        ("bfloat61", "'bfloat16'"),
                                        ("int33", "'int32'"), ("complex46", "'complex64'"), ("zzz", ""), (7, ""),
                                        ("", "")])
def test_near_misses_of_names(session, name, near):
    with pytest.raises(breccia.InvalidError, match="is not a data type") as refused:
        made(session, name)
    assert isinstance(refused.value, TypeError) and ("did you mean" in str(refused.value)) is bool(near)
    assert near in str(refused.value)


@pytest.mark.parametrize("name", ["U", "str", str, np.str_, np.dtype("U"), "S", bytes, np.bytes_, np.dtype("S")])
def test_text_without_a_length_is_of_any(session, name):
    assert made(session, name).data_type == ("string" if np.dtype(name).kind == "U" else "bytes")
