"""Data types of Zarr as NumPy's, and back; fill values as JSON, to the bit; elements of variable length."""
from __future__ import annotations

import base64
import functools
import json
import struct
from typing import Any

import numpy as np

from . import _errors

_PLAIN = {"bool", *(f"{k}{n}" for k in ("int", "uint") for n in (8, 16, 32, 64)),
          "float16", "float32", "float64", "complex64", "complex128"}
_SMALL = {"bfloat16", "int2", "int4", "uint2", "uint4", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
          "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
          "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"}
_TEXT = {"string"}
_BYTES = {"bytes", "variable_length_bytes", "binary"}
STRING: np.dtype[Any] = np.dtypes.StringDType() if hasattr(np.dtypes, "StringDType") else np.dtype(object)


def unknown(name: str) -> _errors.UnsupportedError:
    return _errors.UnsupportedError(f"the data type {name} is not known here: its array can be listed, "
                                    "copied and versioned, but its elements cannot be read")


@functools.lru_cache(maxsize=512)
def to_numpy(name: str) -> np.dtype[Any]:
    """NumPy's type for a data type of Zarr: its name, or the JSON object that zarr.json has.

    Strings are StringDType (object before NumPy 2), bytes of variable length object. Raises UnsupportedError
    for a type that NumPy has nothing for: such an array can be listed, copied and versioned, but not read
    here.
    """
    if name[:1] in "{\"":
        document = json.loads(name)
        if isinstance(document, str):
            return to_numpy(document)
        return _configured(document.get("name", ""), document.get("configuration") or {}, name)
    if name in _PLAIN:
        return np.dtype(name)
    if name in _SMALL:
        return _ml_dtype(name)
    if name in _TEXT:
        return STRING
    if name in _BYTES:
        return np.dtype(object)
    if name[:1] == "r" and name[1:].isdigit():
        return np.dtype(f"V{int(name[1:]) // 8}")
    if name in ("complex_float32", "complex_float64"):
        return np.dtype("c8" if name[-2:] == "32" else "c16")
    if name.startswith("complex_"):  # NumPy has none: a pair
        part = to_numpy(name[len("complex_"):])
        return np.dtype([("real", part), ("imag", part)])
    raise unknown(name)


def _configured(name: str, given: dict[str, Any], whole: str) -> np.dtype[Any]:
    size = given.get("length_bytes", 0)
    if name == "fixed_length_utf32":
        return np.dtype(f"U{size // 4}")
    if name == "null_terminated_bytes":
        return np.dtype(f"S{size}")
    if name == "raw_bytes":
        return np.dtype(f"V{size}")
    if name in ("numpy.datetime64", "numpy.timedelta64"):
        kind, unit = "M8" if name[6] == "d" else "m8", given["unit"].replace("\u03bc", "u").replace("\u00b5",
                                                                                                    "u")
        return np.dtype(kind if unit == "generic" else f"{kind}[{given.get('scale_factor', 1)}{unit}]")
    if name in ("struct", "structured"):
        fields = [(f["name"], f["data_type"]) if isinstance(f, dict) else tuple(f) for f in given["fields"]]
        return np.dtype([(n, to_numpy(t if isinstance(t, str) else json.dumps(t))) for n, t in fields])
    if name == "zarrs.optional":
        inner = to_numpy(json.dumps(given))
        if inner.kind in "OT":
            return np.dtype(object)
        return np.dtype([("present", "?"), ("value", inner)])
    if not given:
        return to_numpy(name)
    raise unknown(whole)


def _ml_dtype(name: str) -> np.dtype[Any]:
    try:
        import ml_dtypes
    except ImportError:
        raise _errors.UnsupportedError(f"the data type {name} needs ml_dtypes: install it") from None
    if not hasattr(ml_dtypes, name):
        raise _errors.UnsupportedError(f"the data type {name} needs a newer ml_dtypes: upgrade it")
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return found


def to_zarr(dtype: Any) -> str:
    """The name, or the JSON object, for anything that names a type: a NumPy type, a name or an object of
    Zarr.

    Zarr has no byte order in its types: elements are stored as the codecs say, and read in the machine's.
    """
    if isinstance(dtype, dict):
        return json.dumps(dtype)
    if dtype in (str, bytes):
        return "string" if dtype is str else "bytes"
    if isinstance(dtype, str) and (dtype in _SMALL | _TEXT | _BYTES or dtype.startswith(("{", "complex_"))
                                   or dtype[:1] == "r" and dtype[1:].isdigit()):
        return dtype
    made = np.dtype(dtype)
    if made.kind == "T":
        return "string"
    if made.names is not None:
        assert made.fields is not None
        fields = [{"name": n, "data_type": _loaded(to_zarr(made.fields[n][0]))} for n in made.names]
        return json.dumps({"name": "struct", "configuration": {"fields": fields}})
    if made.kind in "Mm":
        unit, count = np.datetime_data(made)
        name = "numpy.datetime64" if made.kind == "M" else "numpy.timedelta64"
        return json.dumps({"name": name, "configuration": {"unit": unit, "scale_factor": count}})
    if made.kind in "US":
        name = "fixed_length_utf32" if made.kind == "U" else "null_terminated_bytes"
        return json.dumps({"name": name,
                           "configuration": {"length_bytes": max(made.itemsize,
                                                                 1 if made.kind == "S" else 4)}})
    if made.name in _PLAIN | _SMALL:
        return str(made.name)
    if made.kind == "V" and made.subdtype is None and made.type is np.void:
        return f"r{8 * made.itemsize}"
    if made.kind == "O":
        raise _errors.InvalidError('an array of objects needs a data type: dtype="string" or dtype="bytes"')
    raise _errors.UnsupportedError(f"NumPy's {made} has no data type in Zarr: convert it first")


def _loaded(name: str) -> Any:
    return json.loads(name) if name.startswith("{") else name


def type_of_data(data: np.ndarray[Any, Any]) -> Any:
    """What to_zarr() is to be asked about data: objects are strings, or bytes, if all of them are."""
    if data.dtype.kind != "O":
        return data.dtype
    kinds = {type(value) for value in data.flat}
    if kinds and kinds <= {bytes, bytearray}:
        return "bytes"
    return "string" if kinds <= {str, np.str_} else data.dtype


def fill_json(value: Any, name: str) -> str:
    """A fill value as the JSON of zarr.json, without a bit lost."""
    dtype = to_numpy(name)
    if name in _TEXT:
        return json.dumps(str(value))
    if dtype.kind == "O":
        return json.dumps(base64.b64encode(bytes(value)).decode())
    made = np.zeros((), dtype)
    made[()] = value
    return json.dumps(_value_json(made))


def _value_json(value: np.ndarray[Any, Any]) -> Any:
    dtype = value.dtype
    if dtype.names is not None:
        if dtype.names == ("real", "imag"):
            return [_value_json(value["real"]), _value_json(value["imag"])]
        if dtype.names == ("present", "value"):
            return [_value_json(value["value"])] if value["present"] else None
        return {n: _value_json(value[n]) for n in dtype.names}
    if dtype.kind == "b":
        return bool(value)
    if dtype.kind in "iu" or dtype.name in ("int2", "int4", "uint2", "uint4"):
        return int(value)
    if dtype.kind == "c":
        return [_value_json(value.real), _value_json(value.imag)]
    if dtype.kind == "f" or dtype.name in _SMALL:
        number = float(value)
        if np.isfinite(number):
            return number
        if number != number:
            return "0x" + value.tobytes()[::-1].hex()
        return "Infinity" if number > 0 else "-Infinity"
    if dtype.kind in "Mm":
        return "NaT" if np.isnat(value) else int(value.astype("i8"))
    if dtype.kind == "U":
        return str(value)
    return base64.b64encode(value.tobytes().rstrip(b"\0") if dtype.kind == "S" else value.tobytes()).decode()


def unpack(data: bytes | memoryview, count: int, name: str) -> np.ndarray[Any, Any]:
    """Elements of variable length, each after its length, as a flat array."""
    items: list[Any] = []
    at, optional, is_text = 0, "zarrs.optional" in name, "string" in name
    for _ in range(count):
        (size,) = struct.unpack_from("<I", data, at)
        at += 4
        item: Any = bytes(data[at + 1 if optional and size else at:at + size])
        items.append(None if optional and not size else item.decode() if is_text else item)
        at += size
    out = np.empty(count, to_numpy(name))
    out[:] = items
    return out


def pack(values: np.ndarray[Any, Any], name: str) -> bytes:
    """The same back: each element after its length in bytes."""
    parts: list[bytes] = []
    optional, is_text = "zarrs.optional" in name, "string" in name
    for value in values.ravel().tolist():
        if optional and value is None:
            parts += [b"\0\0\0\0"]
            continue
        if not isinstance(value, str if is_text else (bytes, bytearray, memoryview)):
            raise TypeError(f"an element of {name} cannot be {value!r}")
        raw = (b"\1" if optional else b"") + (value.encode() if isinstance(value, str) else bytes(value))
        parts += [struct.pack("<I", len(raw)), raw]
    return b"".join(parts)
