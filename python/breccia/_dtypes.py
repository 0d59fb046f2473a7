"""Converts data types between Zarr and NumPy, and elements to and from the library's form."""
from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np

from . import _errors
from ._casting import fit

_PLAIN = {np.dtype(code).name for code in "?bhiqBHIQefdFD"}
_SMALL = {"bfloat16", "int2", "int4", "uint2", "uint4", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
          "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
          "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"}
_VARIABLE = {"string", "bytes", "variable_length_bytes", "binary"}
_COMPLEX = {"complex_float32": "c8", "complex_float64": "c16"}
_OF_LENGTH = {"fixed_length_utf32": ("U", 4), "null_terminated_bytes": ("S", 1), "raw_bytes": ("V", 1)}
_TIMES = {"numpy.datetime64": "M8", "numpy.timedelta64": "m8"}
STRING: np.dtype[Any] = np.dtypes.StringDType() if hasattr(np.dtypes, "StringDType") else np.dtype(object)


@functools.lru_cache(maxsize=512)
def to_numpy(name: str) -> np.dtype[Any]:
    """Returns NumPy's type for a data type of Zarr: its name, or the JSON object in zarr.json. Strings become
    StringDType (object before NumPy 2), and bytes of variable length object. UnsupportedError if NumPy has no such
    type: such an array can be listed, copied and versioned, but not read here."""
    said: Any = json.loads(name) if name[:1] in '{"' else name
    given, config = (said.get("name"), said.get("configuration")) if isinstance(said, dict) else (said, None)
    try:
        found: np.dtype[Any] = np.dtype(_found(str(given), config or {}))
        return found
    except (KeyError, TypeError, ValueError):
        raise _errors.UnsupportedError(f"the data type {name!r} is not known here: elements cannot be read") from None


def _found(name: str, config: dict[str, Any]) -> Any:
    """Looks up the type. KeyError, TypeError or ValueError if NumPy has no such type."""
    if name in _PLAIN:
        return name
    if name in _SMALL:
        try:
            import ml_dtypes
            return getattr(ml_dtypes, name)
        except (ImportError, AttributeError):
            raise _errors.UnsupportedError(f"the data type {name} needs ml_dtypes, or a newer one") from None
    if name in _VARIABLE:
        return STRING if name == "string" else object
    if name[:1] == "r" and name[1:].isdigit():
        return f"V{int(name[1:]) // 8}"
    if name in _OF_LENGTH:
        kind, unit = _OF_LENGTH[name]
        return f"{kind}{config['length_bytes'] // unit}"
    if name in _TIMES:
        unit = config["unit"].replace("\u03bc", "u").replace("\u00b5", "u")
        return _TIMES[name] + ("" if unit == "generic" else f"[{config.get('scale_factor', 1)}{unit}]")
    if name in ("struct", "structured"):
        fields = [(f["name"], f["data_type"]) if isinstance(f, dict) else tuple(f) for f in config["fields"]]
        return [(n, to_numpy(json.dumps(t))) for n, t in fields]
    if name == "zarrs.optional":
        inner = to_numpy(json.dumps(config))
        return object if inner.kind in "OT" else [("present", "?"), ("value", inner)]
    if name in _COMPLEX or not name.startswith("complex_"):
        return _COMPLEX[name]
    part = to_numpy(name.removeprefix("complex_"))  # NumPy lacks this type: a pair
    return [("real", part), ("imag", part)]


def field(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    """Returns the type of a field that the library knows by this name: "x", or "position.x"."""
    if name in (dtype.names or ()):
        return dtype[name]
    outer = [n for n in dtype.names or () if name.startswith(n + ".") and dtype[n].names]
    return field(dtype[outer[-1]], name[len(outer[-1]) + 1:])


def to_zarr(dtype: Any) -> str:
    """Returns Zarr's name or JSON object for a type: a NumPy type, or a name or object of Zarr. The byte order is
    dropped: codecs decide how elements are stored, and reading gives the machine's order."""
    if isinstance(dtype, dict):
        return json.dumps(dtype)
    if isinstance(dtype, str) and (dtype in _SMALL | _VARIABLE or dtype.startswith(("{", "complex_"))
                                   or dtype[:1] == "r" and dtype[1:].isdigit()):
        return dtype
    try:
        made = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):
        import difflib
        known = sorted({*_PLAIN, *_SMALL, *_VARIABLE, "datetime64[ns]", "timedelta64[ns]"})
        near = " or ".join(map(repr, difflib.get_close_matches(str(dtype).lower(), known, 2, 0.7)))
        raise _errors.WrongTypeError(f"{dtype!r} is not a data type" + f"; did you mean {near}?" * bool(near)) from None
    if made.kind in "US" and not made.itemsize:
        return "string" if made.kind == "U" else "bytes"
    config: dict[str, Any] = {}
    if made.kind == "T" or made.name in _PLAIN | _SMALL:
        return "string" if made.kind == "T" else str(made.name)
    if made.kind == "O":
        raise _errors.InvalidError('an array of objects needs a data type: dtype="string" or dtype="bytes"')
    if made.names is not None:
        types = ((n, to_zarr(made[n])) for n in made.names)
        fields = [{"name": n, "data_type": json.loads(t) if t[0] == "{" else t} for n, t in types]
        name, config = "struct", {"fields": fields}
    elif made.kind in "Mm":
        name = "numpy.datetime64" if made.kind == "M" else "numpy.timedelta64"
        config["unit"], config["scale_factor"] = np.datetime_data(made)
    elif made.kind in "US" or made.subdtype is None and made.type is np.void:
        name = next(name for name, (kind, _) in _OF_LENGTH.items() if kind == made.kind)
        config["length_bytes"] = made.itemsize
    else:
        raise _errors.UnsupportedError(f"NumPy's {made} has no data type in Zarr: convert it first")
    return json.dumps({"name": name, "configuration": config})


def type_of_data(data: np.ndarray[Any, Any]) -> Any:
    """Returns the type of data for to_zarr(): objects are strings, or bytes if all of them are bytes."""
    kinds = {type(value) for value in data.flat} if data.dtype.kind == "O" else set()
    if kinds and kinds <= {bytes, bytearray}:
        return "bytes"
    return "string" if data.dtype.kind == "O" and kinds <= {str, np.str_} else data.dtype


def fits(data: np.ndarray[Any, Any], name: str) -> bool:
    """Returns whether data has this type."""
    try:
        made = to_zarr(type_of_data(data))
        return made == name or to_numpy(made) == to_numpy(name)
    except _errors.Error:
        return False


def element(value: Any, name: str) -> bytes:
    """Returns one element of a type in the library's form, bit for bit."""
    made = fit(value, to_numpy(name), "fill")
    if made.ndim:
        raise _errors.InvalidError(f"a fill value is one element, and {value!r:.80} are {made.size}")
    return pack(made, name) if made.dtype.kind in "OT" else made.tobytes()


def unpack(data: bytes, count: int, name: str) -> np.ndarray[Any, Any]:
    """Converts elements of variable length, each after its length, to a flat array."""
    items, at, optional, is_text = list[Any](), 0, "zarrs.optional" in name, "string" in name
    for _ in range(count):
        first = at + 4
        at = first + int.from_bytes(data[at:first], "little")
        raw = data[first + optional:at]
        items.append(None if optional and first == at else raw.decode() if is_text else raw)
    out = np.empty(count, to_numpy(name))
    out[:] = items
    return out


def pack(values: np.ndarray[Any, Any], name: str) -> bytes:
    """The reverse of unpack(): writes each element after its length in bytes."""
    parts, optional, is_text = list[bytes](), "zarrs.optional" in name, "string" in name
    kinds = str if is_text else (bytes, bytearray, memoryview)
    for value in values.ravel().tolist():
        if not isinstance(value, kinds) and not (optional and value is None):
            raise _errors.WrongTypeError(f"an element of {name} cannot be {value!r}")
        raw = value.encode() if isinstance(value, str) else bytes(value or b"")
        raw = b"\1" * (optional and value is not None) + raw
        parts += [len(raw).to_bytes(4, "little"), raw]
    return b"".join(parts)
