"""Converts values to elements of a type. NumPy casts many values silently; here a value that would change is an
error."""
from __future__ import annotations

import datetime
from typing import Any

import numpy as np

from ._errors import Error, InvalidError, WrongTypeError

AnyArray = np.ndarray[Any, Any]
REMEDY = ': cast it before, or say casting="unsafe"'
NUMBER, TEXT = "biufc", "USTOV"
# By the kind that NumPy gives Python's objects, which have no type yet: the kinds that accept them.
GOES = {"b": NUMBER, "i": NUMBER + "mM", "u": NUMBER + "mM", "f": "fc", "U": "USTO", "T": "USTO", "S": TEXT}
# By the common type of several objects: the type of their array. Integers: those that only a float can hold.
OBJECTS: dict[Any, str] = {(int, np.integer): "f8", (datetime.date, np.datetime64): "M8", str: "U", bytes: "S",
                           (datetime.timedelta, np.timedelta64): "m8", object: "O"}


def array_of(value: Any) -> AnyArray:
    """Makes an array of a value, as NumPy does. InvalidError if an element is masked, or would change."""
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, (list, tuple)):
            parts += [one for one in part if isinstance(one, (list, tuple)) or hasattr(one, "mask")]
        elif hasattr(part, "mask") and isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part):
            raise InvalidError("a masked element has no value: fill it first, as by value.filled(0)")
    try:
        made = np.asarray(value)
    except (ValueError, OverflowError) as error:  # of several lengths
        raise InvalidError(str(error)) from None
    if isinstance(value, (list, tuple)) and made.dtype.kind in "fUS":
        for given, now in zip(np.array(value, object).flat, made.astype(object).flat):
            if given == given != now if made.dtype.kind == "f" else not isinstance(given, type(now)):
                raise WrongTypeError(f"{given!r} would become {now!r} beside the others: give them one type")
    return made


def kind_of(dtype: np.dtype[Any]) -> str:
    """Returns NumPy's letter for a kind, also for the types of ml_dtypes."""
    return ("f" if "float" in dtype.name else dtype.name[0]) if dtype.num >= 256 and dtype.kind == "V" else dtype.kind


def fit(value: Any, dtype: np.dtype[Any], casting: str = "same_kind") -> AnyArray:
    """Returns a value as an array of a type, without a copy if none is needed. Arrays and NumPy's scalars are cast by
    one of NumPy's rules. Python's objects, alone, in lists or in an array of objects, become elements of types of
    their kind. InvalidError if the rule forbids the cast and, unless it is "unsafe", if an element would become
    another value: a float may be rounded, but must not become infinite. "fill" accepts a number of any type if the
    type can hold it."""
    if casting not in (known := ("same_kind", "unsafe", "safe", "equiv", "no", "fill")):
        raise InvalidError(f"casting must be {', '.join(map(repr, known[:-1]))}, not {casting!r}")
    value = bytes(value) if isinstance(value, (bytearray, memoryview)) and dtype.kind == "O" else value
    typed = hasattr(value, "__array__") or hasattr(value, "__array_interface__")
    if typed and dtype.kind != "O" and np.asarray(value).dtype == object:
        typed, value = False, np.asarray(value).tolist()
    try:
        with np.errstate(over="ignore" if casting == "unsafe" or dtype.num >= 256 else "raise", invalid="ignore"):
            given = np.array(value, dtype) if dtype.names and not typed else array_of(value)
            if dtype.names and not typed:
                items = [value]
                for _ in range(given.ndim):
                    items = [one for some in items for one in some]
                columns: Any = [[tuple(one)[i] for one in items] for i in range(len(dtype.names))]
            elif given.dtype == dtype and (typed or dtype.kind not in "US"):
                return given
            else:
                columns = [given[name] for name in given.dtype.names or ()]
            if dtype.names and len(columns) == len(dtype.names):
                made = np.empty(given.shape, dtype)
                for name, column in zip(dtype.names, columns):
                    made[name] = fit(column, dtype[name], casting).reshape(given.shape)
                return made
            made, same = _cast(value, given, dtype, casting, typed)
    except (TypeError, ValueError, OverflowError, FloatingPointError) as error:
        raise error if isinstance(error, Error) else InvalidError(f"{value!r:.80} is no {dtype}: {error}") from None
    if not np.all(same):
        wrong = given[~np.broadcast_to(same, given.shape)].flat[0]
        shown = str(wrong) if isinstance(wrong, np.number) else repr(wrong)  # NumPy 2 says np.int64(300)
        raise InvalidError(f"{shown} does not fit {dtype}" + REMEDY * (casting != "fill"))
    return made


def _cast(value: Any, given: AnyArray, dtype: np.dtype[Any], casting: str, typed: bool) -> tuple[AnyArray, Any]:
    """Returns the elements as the type, and which of them did not change."""
    kind = kind_of(dtype)
    if not typed and given.dtype.kind == "O" and kind != "O":
        given = given.astype(next(c for types, c in OBJECTS.items() if all(isinstance(v, types) for v in given.flat)))
    elif not typed and kind == "M" and given.dtype.kind == "U":
        given = given.astype("M8")
    if not typed and given.dtype.kind == "u" and kind in "mM":
        given = fit(given, np.dtype("i8"), "fill")
    of = kind_of(given.dtype)
    goes = kind in GOES.get(of, of) or casting == "fill" and of in "biuf" and kind in NUMBER
    if typed and casting != "fill":
        goes = np.can_cast(given.dtype, dtype, casting) and (of in TEXT) == (kind in TEXT)  # type: ignore[arg-type]
    if given.size and not goes and casting != "unsafe":
        raise WrongTypeError(f"{given.dtype} does not go into {dtype}" + f" by {casting}{REMEDY}" * (casting != "fill"))
    made = np.array(value, dtype) if not typed and kind in "OTV" else given.astype(dtype)
    inexact = kind in "fc" and not (casting == "fill" and of in "iu")
    if casting == "unsafe" or kind in "OT" or inexact and dtype.num < 256:
        return made, True
    if kind == "V":
        return made, given.dtype.itemsize == dtype.itemsize
    back = made.astype(given.dtype)
    same = (back == given) | (back != back) & (given != given)
    if inexact:
        import ml_dtypes
        same |= np.abs(given) <= float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call, unused-ignore]
    if kind in "iu" and of in "iu":
        same &= (made < 0) == (given < 0)
    elif kind in "US" and not typed:  # NumPy cuts off a NUL at the end
        same &= np.array([v[-1:] not in ("\0", b"\0") for v in np.array(value, object).flat], bool).reshape(same.shape)
    return made, same
