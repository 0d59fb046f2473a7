"""Moves elements between a native session and NumPy's memory, whatever its strides."""
from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from . import _dtypes, _errors
from ._breccia import ffi, lib
from ._casting import fit
from ._indexing import AnyArray, Selection
from ._native import Handle, printable, sized, string, text


class Form(NamedTuple):
    """The remembered facts about an array. `native` has them for the library, which says when they are out of date.
    """

    shape: tuple[int, ...]
    name: str
    item: int  # bytes of an element; 0: the length varies
    dtype: np.dtype[Any] | None  # None: NumPy has no such type
    native: Any
    keep: Any

    @classmethod
    def of(cls, native: Handle, path: str, old: Form | None = None) -> Form:
        """Reads the array's form; returns `old` if it still applies."""
        array = fresh(native, path)
        if old is not None and lib.py_same(array, old.native):
            return old
        info = lib.brc_array_describe(array)
        shape, name, dtype = tuple(info.shape[0:info.ndim]) if info.ndim else (), string(info.dtype), None
        with suppress(_errors.UnsupportedError):
            dtype = _dtypes.to_numpy(name)
        if dtype is not None and (not info.fill or info.item_size not in (0, dtype.itemsize)):
            dtype = None
        keep = text(name)
        made = ffi.new("py_form *", {"ndim": len(shape), "dtype": keep, "shape": shape})
        return cls(shape, name, info.item_size, dtype, made, keep)

    def check(self, path: str) -> np.dtype[Any]:
        """Returns the elements' type. UnsupportedError if elements cannot be read here."""
        if self.dtype is None:
            _dtypes.to_numpy(self.name)
            raise _errors.UnsupportedError(printable(f"{path}: elements of {self.name} cannot be read here"))
        return self.dtype


def fresh(native: Handle, path: str) -> Any:
    """Returns the library's array, up to date. If another node has replaced the array, returns that node's."""
    array = native.arrays.get(path)
    if array and lib.brc_array_refresh(array, native.err) < 0:
        native.forget(path)
    return native.array(path)


def at_of(sel: Selection, kind: str = "brc_at") -> tuple[Any, Any]:
    """Makes a selection for the library (brc_sel: without index arrays), and returns the objects that it points to.
    """
    made, keep, axes = sized(kind, ndim=len(sel.axes)), [], []
    for i, axis in enumerate(sel.axes):
        if type(axis) is not tuple:
            if kind == "brc_sel":
                raise IndexError("index arrays cannot be used here: use integers and slices")
            keep.append(ffi.from_buffer("int64_t[]", np.ascontiguousarray(axis, np.int64)))
            made.index[i] = keep[-1]
            axis = (0, len(axis), 1)
        axes.append(axis)
    if axes:
        made.start, made.count, made.step = zip(*axes)
    if sel.back is None:
        made.flags = lib.BRC_AT_POINTS
    return made, keep


def memory_of(a: AnyArray) -> tuple[Any, Any]:
    """Describes an array's memory for the library, and returns the objects that it points to."""
    if a.flags.c_contiguous:
        flat = np.asarray(a).reshape(-1).view(np.uint8)
        return sized("brc_buffer", data=ffi.from_buffer(flat), len=len(flat)), flat
    ends = [(n - 1) * stride for n, stride in zip(a.shape, a.strides)]
    low, length = sum(min(end, 0) for end in ends), sum(map(abs, ends)) + a.itemsize
    strides = ffi.new("int64_t[]", a.strides)
    address = ffi.cast("void *", a.__array_interface__["data"][0] + low)
    return sized("brc_buffer", data=address, len=length, offset=-low, strides=strides), strides


def read(native: Handle, path: str, sel: Selection, form: Form, out: AnyArray | None, fixed: bool) -> Any:
    """Reads the selected elements into an array, `out` if it is given. Returns None if the array has changed its
    form."""
    dtype = form.check(path)
    if out is not None and (not isinstance(out, np.ndarray) or out.shape != sel.shape):
        raise _errors.InvalidError(f"out must be an array of NumPy's of shape {sel.shape}, not {np.shape(out)}")
    if out is not None and not out.flags.writeable:
        raise _errors.InvalidError("out is read-only")
    target = out
    if out is None or not form.item or out.dtype != dtype or not (
            out.flags.c_contiguous or sel.back is not None and 0 not in out.strides):
        target = np.empty(sel.shape, dtype)
    assert target is not None
    full, box = sel.full(target), sel.box
    if form.item:
        same = ffi.NULL if fixed else form.native
        if box is not None and full.flags.c_contiguous:
            flat = np.asarray(full).reshape(-1).view(np.uint8)
            rc = lib.py_take_box(native.repo, native.array(path), len(sel.axes), box, ffi.from_buffer(flat), len(flat),
                                 same, native.err)
        else:
            (at, keep), (buffer, memory) = at_of(sel), memory_of(full)
            rc = lib.py_take(native.repo, native.array(path), at, buffer, same, native.err)
        if rc < 0:
            raise native.failed(rc)
        if rc > 0:
            return None
    else:
        (at, keep), to = at_of(sel), native.array(path)
        data = native.take_buf(lambda out, err: lib.brc_read(sized("brc_io", array=to, at=at, out=out), 1, err))
        full[...] = _dtypes.unpack(data, target.size, form.name).reshape(full.shape)
    if out is None or target is out:
        return target
    out[...] = target
    return out


def write(native: Handle, path: str, sel: Selection, form: Form, source: AnyArray) -> None:
    """Writes elements of the array's type, in the shape of the selection."""
    if 0 not in sel.shape:
        full, (at, keep) = sel.full(source), at_of(sel)
        buffer, memory = memory_of(full if form.item else np.frombuffer(_dtypes.pack(full, form.name), np.uint8))
        native.call(lib.brc_write, sized("brc_io", array=native.array(path), at=at, buffer=buffer), 1)


def as_type(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any], casting: str) -> AnyArray:
    """Returns a value as a type, broadcast to a shape, without a copy if none is needed."""
    made = fit(value, dtype, casting)
    while made.ndim > len(shape) and made.shape[0] == 1:
        made = made[0]
    try:
        return np.broadcast_to(made, shape)
    except ValueError:
        raise _errors.InvalidError(f"a value of shape {made.shape} does not fit a selection of {shape}") from None
