"""Elements between a native session and NumPy's memory: straight into it and out of it, whatever its strides."""
from __future__ import annotations

import math
import struct
from typing import Any, NamedTuple

import numpy as np

from . import _dtypes, _errors
from ._breccia import ffi, lib
from ._indexing import AnyArray, Selection
from ._native import Native, sized, string, text

_START, _COUNT, _STEP = (ffi.offsetof("brc_at", name) for name in ("start", "count", "step"))


class Form(NamedTuple):
    """What is remembered of an array. `native` is the same for the library, which says when it is out of date."""

    shape: tuple[int, ...]
    name: str
    item: int  # bytes of an element; 0: they vary
    dtype: np.dtype[Any] | None  # None: NumPy has none
    native: Any
    pack: Any  # writes as many numbers as there are axes
    keep: Any

    @classmethod
    def of(cls, native: Native, path: str) -> Form:
        """As the array is now."""
        info = fresh(native, path)
        shape, name, dtype = tuple(info.shape[0:info.ndim]) if info.ndim else (), string(info.dtype), None
        try:
            dtype = _dtypes.to_numpy(name)
        except _errors.UnsupportedError:
            pass
        if dtype is not None and (not info.fill or info.item_size not in (0, dtype.itemsize)):
            dtype = None
        keep = text(name)
        made = ffi.new("py_form *", {"ndim": len(shape), "dtype": keep, "shape": shape})
        return cls(shape, name, info.item_size, dtype, made, struct.Struct(f"={len(shape)}Q").pack_into, keep)

    def check(self, path: str) -> np.dtype[Any]:
        """The elements' type. UnsupportedError if they cannot be read here."""
        if self.dtype is None:
            _dtypes.to_numpy(self.name)
            raise _errors.UnsupportedError(f"{path}: elements of {self.name} cannot be read here")
        return self.dtype


def fresh(native: Native, path: str) -> Any:
    """The library's description, up to date; of a node that took the array's place, its own."""
    array = native.array(path)
    if lib.brc_array_refresh(array, native.handle.err) < 0:
        native.forget(path)
        array = native.array(path)
    return lib.brc_array_describe(array)


def box_of(sel: Selection) -> Any:
    """A brc_sel of a selection without index arrays."""
    if sel.fancy:
        raise IndexError("index arrays cannot be used here: use integers and slices")
    start, count, step = zip(*sel.axes) if sel.axes else ((), (), ())
    return sized("brc_sel", ndim=len(sel.axes), start=start, count=count, step=step)


class Scratch:
    """Structures of the library's that a native session keeps, for selections without index arrays."""

    __slots__ = "at", "memory", "buffer"

    def __init__(self) -> None:
        self.at, self.buffer = sized("brc_at"), sized("brc_buffer")
        self.memory = ffi.buffer(self.at)


def scratch_of(native: Native) -> Scratch:
    if native.scratch is None:
        native.scratch = Scratch()
    made: Scratch = native.scratch
    return made


def at_of(native: Native, sel: Selection, form: Form) -> tuple[Any, Any]:
    """A selection for the library, and what keeps it."""
    if not sel.fancy:
        scratch = scratch_of(native)
        scratch.at.ndim = len(sel.axes)
        for offset, numbers in zip((_START, _COUNT, _STEP), zip(*sel.axes)):
            form.pack(scratch.memory, offset, *numbers)
        return scratch.at, None
    made, keep = sized("brc_at", ndim=len(sel.axes), flags=0 if sel.back else lib.BRC_AT_POINTS), []
    for i, axis in enumerate(sel.axes):
        if type(axis) is tuple:
            made.start[i], made.count[i], made.step[i] = axis
        else:
            keep.append(ffi.from_buffer("int64_t[]", np.ascontiguousarray(axis, np.int64)))
            made.index[i], made.count[i] = keep[-1], len(axis)
    return made, keep


def memory_of(a: AnyArray) -> tuple[Any, Any]:
    """An array's memory for the library, and what keeps its strides."""
    ends = [(n - 1) * stride for n, stride in zip(a.shape, a.strides)] if a.size else []
    low, length = sum(min(end, 0) for end in ends), sum(map(abs, ends)) + a.itemsize * bool(a.size)
    strides = ffi.new("int64_t[]", a.strides or [0])
    address = a.__array_interface__["data"][0] + low
    return sized("brc_buffer", data=ffi.cast("void *", address), len=length, offset=-low, strides=strides), strides


def read(native: Native, path: str, sel: Selection, form: Form, out: AnyArray | None, fixed: bool) -> Any:
    """What is selected, in `out` where that has the shape; None: the array has another form by now."""
    dtype = form.check(path)
    if out is not None and (not isinstance(out, np.ndarray) or out.shape != sel.shape):
        raise ValueError(f"out must be an array of NumPy's of shape {sel.shape}, not {np.shape(out)}")
    if out is not None and not out.flags.writeable:
        raise ValueError("out is read-only")
    target = out
    if out is None or not form.item or out.dtype != dtype or sel.back is None and not out.flags.c_contiguous or any(
            stride == 0 and n > 1 for stride, n in zip(out.strides, out.shape)):
        raw = np.empty(math.prod(sel.shape) * form.item, np.uint8)
        target = raw.view(dtype).reshape(sel.shape) if form.item else np.empty(sel.shape, dtype)
    assert target is not None
    at, keep = at_of(native, sel, form)
    if not form.item:
        data = native.handle.take_buf_of(lib.brc_array_take_elements, native.array(path), at)
        sel.full(target)[...] = _dtypes.unpack(data, target.size, form.name).reshape(sel.full(target).shape)
    else:
        if target is out or sel.backwards:
            buffer, strides = memory_of(sel.full(target))
        else:
            buffer = scratch_of(native).buffer
            buffer.data, buffer.len = ffi.from_buffer(raw), len(raw)
        rc = lib.py_take(native.handle.repo, native.array(path), at, buffer, ffi.NULL if fixed else form.native,
                         native.handle.err)
        if rc < 0:
            raise native.handle.failed(rc)
        if rc > 0:
            return None
    if out is None:
        return target if sel.shape else target[()]
    if target is not out:
        out[...] = target
    return out


def write(native: Native, path: str, sel: Selection, form: Form, source: AnyArray) -> None:
    """Writes elements of the array's type, in the shape of the selection."""
    if 0 in sel.shape:
        return
    at, keep = at_of(native, sel, form)
    full = sel.full(source)
    if not form.item:
        full = np.frombuffer(_dtypes.pack(full, form.name), np.uint8)
    buffer, strides = memory_of(full)
    if not form.item:
        buffer.strides = ffi.NULL
    native.handle.call(lib.brc_array_put, native.array(path), at, buffer)


def cast(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> AnyArray:
    """A value as a type, broadcast to a shape, without a copy where none is needed."""
    if dtype.kind == "O" and not isinstance(value, np.ndarray):
        made: AnyArray = np.empty((), object)
        if isinstance(value, (list, tuple)):
            made = np.array(value, object)
        else:
            made[()] = value
    elif hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        made = np.asarray(value).astype(dtype, copy=False)
    else:
        made = np.array(value, dtype)
    while made.ndim > len(shape) and made.shape[0] == 1:
        made = made[0]
    try:
        return np.broadcast_to(made, shape)
    except ValueError:
        raise ValueError(f"a value of shape {made.shape} does not fit a selection of {shape}") from None
