"""How `breccia.zarr.CodecPipeline` turns what zarr asks of chunks into one selection of the array.

zarr gives a selection chunk by chunk: for each its key, what is selected in it, and where that lies in
the caller's array. Along each axis these parts are put together again, in the order of the caller's
elements; the library does the rest.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import zarr.abc.codec
from zarr.core.buffer.cpu import NDBuffer

from . import _elements
from ._breccia import ffi, lib
from ._elements import Form
from ._errors import InvalidError, NotFoundError, UnsupportedError
from ._indexing import AnyArray, Selection
from ._native import Native, text

INLINE = 256 << 10  # bytes of chunks that are read without another thread
ZEROS_DIFFER = not NDBuffer.from_numpy_array(np.array([-0.0])).all_equal(0.0)  # from zarr 3.1 on
HAS_STATUS = hasattr(zarr.abc.codec, "GetResult")  # from zarr 3.2 on


class Aside(Exception):
    """It is for zarr's own pipeline."""


ELSEWHERE = Aside, NotFoundError, UnsupportedError, InvalidError  # not known here, or changed since


# ---- the array ----


class Target:
    """The array that zarr means, and where the chunks are in its grid."""

    def __init__(self, native: Native, batch: Sequence[Any], flag: int, ask: bool = False) -> None:
        spec, n = batch[0][1], len(batch)
        ndim = len(spec.shape)
        names = [text(getter.path) for getter, *_ in batch]
        index, there = ffi.new("uint64_t[]", n * ndim + 1), ffi.new("uint8_t[]", n) if ask else ffi.NULL
        self.path = native.handle.take_buf(lib.brc_key_places, index, there, native.session,
                                           ffi.new("char *[]", names), n, ndim).decode()
        self.places = [tuple(index[i * ndim:(i + 1) * ndim]) for i in range(n)]
        self.there = bytes(ffi.buffer(there)) if ask else b""
        self.form = Form.of(native, self.path)
        info = lib.brc_array_describe(native.array(self.path))
        asked = spec.dtype if isinstance(spec.dtype, np.dtype) else spec.dtype.to_native_dtype()
        outer = tuple((info.shard or info.chunk)[0:ndim])
        if (not self.form.item or self.form.dtype != asked.newbyteorder("=") or outer != tuple(spec.shape)
                or not info.flags & flag or not info.flags & lib.BRC_ARRAY_REGULAR
                or any(other is not spec and other.shape != spec.shape for _, other, *_ in batch)):
            raise Aside
        self.fill = bytes(ffi.buffer(info.fill, self.form.item))


# ---- the selection ----


def is_integer(item: Any) -> bool:
    return isinstance(item, (int, np.integer)) and not isinstance(item, (bool, np.bool_))


def positions(item: Any, length: int) -> Any:
    """One of zarr's selectors of an axis: a range, or an index array."""
    if isinstance(item, slice):
        return range(*item.indices(length))
    if isinstance(item, np.ndarray) and item.size:
        return np.flatnonzero(item) if item.dtype == bool else item.reshape(-1).astype(np.int64)
    raise Aside


def in_order(parts: Sequence[tuple[Any, Any]], length: int | None) -> Any:
    """What is selected along an axis, as Selection has it, in the order of the caller's elements. A part has
    positions in the array and where they go; all are `length`, None: one value is for all."""
    (first, _), n = parts[0], 0
    for index, to in parts:
        if type(index) is not range or index.step != first.step or index.start != first.start + n * first.step or (
                length is not None and (type(to) is not range or (to.start, to.step) != (n, 1))):
            break
        n += len(index)
    else:
        if length is not None and length != n:
            raise Aside
        return first.start, n, first.step
    made = np.concatenate([np.asarray(index, np.int64) for index, _ in parts])
    if length is None:
        return made
    places = np.concatenate([np.asarray(to, np.int64) for _, to in parts])
    if len(made) != len(places) or len(places) != length or np.bincount(places, minlength=length).max() != 1:
        raise Aside
    ordered = np.empty(length, np.int64)
    ordered[places] = made
    return ordered


class Parts:
    """What zarr selects, collected from chunks. `shape`: of the caller's array; None: one value is for all."""

    def __init__(self, chunk: Sequence[int], shape: tuple[int, ...] | None, drop: tuple[int, ...]) -> None:
        self.chunk, self.shape, self.drop = chunk, shape, drop
        self.axes: list[dict[int, tuple[Any, Any]]] = [{} for _ in chunk]
        self.kept: list[int] | None = None
        self.chunks: set[tuple[int, ...]] = set()
        self.points: list[tuple[list[AnyArray], Any]] = []

    def length(self, axis: int) -> int | None:
        if self.shape is None:
            return None
        if axis >= len(self.shape):
            raise Aside
        return self.shape[axis]

    def place(self, item: Any, axis: int) -> Any:
        return None if self.shape is None else positions(item, self.length(axis) or 0)

    def add(self, place: tuple[int, ...], items: Any, out: Any) -> None:
        items, out = (one if isinstance(one, tuple) else (one,) for one in (items, out))
        if len(items) != len(self.chunk):
            raise Aside
        if len(items) > 1 and all(isinstance(i, np.ndarray) and i.ndim == 1 for i in items):
            if len(out) != 1 or len({len(i) for i in items}) != 1 or items[0].dtype == bool:
                raise Aside
            self.points.append(([i.astype(np.int64) + at * n for i, at, n in zip(items, place, self.chunk)],
                                self.place(out[0], 0)))
            return
        kept = [axis for axis, item in enumerate(items) if not is_integer(item) and axis not in self.drop]
        if len(kept) != len(out) or self.kept not in (None, kept):
            raise Aside
        self.kept = kept
        self.chunks.add(place)
        for axis, (at, item, n) in enumerate(zip(place, items, self.chunk)):
            if at not in self.axes[axis]:
                index = range(int(item), int(item) + 1) if is_integer(item) else positions(item, n)
                if type(index) is range:
                    index = range(index.start + at * n, index.stop + at * n, index.step)
                else:
                    index = index + at * n
                to = self.place(out[kept.index(axis)], kept.index(axis)) if axis in kept else None
                self.axes[axis][at] = index, to

    def selection(self) -> Selection:
        """Points, or a product of the axes' parts."""
        if self.points:
            if self.chunks:
                raise Aside
            axes = [in_order([(where[axis], to) for where, to in self.points], self.length(0))
                    for axis in range(len(self.chunk))]
            axes = [np.arange(a[0], a[0] + a[1] * a[2], a[2]) if type(a) is tuple else a for a in axes]
            return Selection(axes, (len(axes[0]),), None)
        kept = self.kept or []
        if math.prod(map(len, self.axes)) != len(self.chunks) or len(kept) != len(self.shape or kept):
            raise Aside
        axes = [in_order(list(found.values()), self.length(kept.index(axis)) if axis in kept else None)
                for axis, found in enumerate(self.axes)]
        sizes = [axis[1] if type(axis) is tuple else len(axis) for axis in axes]
        if any(n != 1 for axis, n in enumerate(sizes) if axis not in kept):
            raise Aside
        return Selection(axes, tuple(sizes[axis] for axis in kept),
                         (*(slice(None) if axis in kept else None for axis in range(len(axes))), ...),
                         any(type(axis) is not tuple for axis in axes))


def selection_of(batch: Sequence[Any], target: Target, shape: tuple[int, ...] | None,
                 drop: tuple[int, ...]) -> Selection:
    made = Parts(batch[0][1].shape, shape, drop)
    for (_, _, items, out, _), place in zip(batch, target.places):
        made.add(place, items, out)
    return made.selection()


# ---- reading and writing ----


def read_now(native: Native, batch: Sequence[Any], out: Any, drop: tuple[int, ...]) -> Any:
    target = Target(native, batch, lib.BRC_ARRAY_READABLE, HAS_STATUS)
    whole = out.as_ndarray_like()
    if out.dtype.newbyteorder("=") != target.form.dtype:
        raise Aside  # a field
    plain = type(whole) in (np.ndarray, np.memmap) and whole.dtype == target.form.dtype and whole.flags.writeable
    selection = selection_of(batch, target, tuple(out.shape), drop)
    found = _elements.read(native, target.path, selection, target.form, whole if plain else None, False)
    if found is None:
        raise Aside  # it has become another array
    if not plain:
        nd_buffer = batch[0][1].prototype.nd_buffer
        out[(slice(None),) * len(out.shape)] = nd_buffer.from_numpy_array(np.asarray(found))
    return tuple({"status": "present" if one else "missing"} for one in target.there) if HAS_STATUS else None


def write_now(native: Native, batch: Sequence[Any], value: Any, drop: tuple[int, ...]) -> None:
    target = Target(native, batch, lib.BRC_ARRAY_WRITABLE)
    memory = value.as_numpy_array()
    if memory.dtype.newbyteorder("=") != target.form.dtype:
        raise Aside
    memory = np.asarray(memory, target.form.dtype)
    selection = selection_of(batch, target, memory.shape if memory.ndim else None, drop)
    if any(is_doubtful(memory, target.fill, spec, to, whole) for _, spec, _, to, whole in batch):
        raise Aside
    _elements.write(native, target.path, selection, target.form, np.broadcast_to(memory, selection.shape))


def is_doubtful(memory: AnyArray, bits: bytes, spec: Any, out: Any, complete: bool) -> bool:
    """Whether the chunk may become one that zarr takes for fill value, and leaves out, although its bits are
    others than those of the array's: zarr compares numbers, so that all NaNs are one, and zeros may be."""
    fill, dtype = spec.fill_value, memory.dtype
    if dtype.kind not in "fc" and dtype.names is None:
        return False
    if dtype.kind == "f" and fill == fill and (fill != 0 or ZEROS_DIFFER):
        return False
    part = memory[out] if memory.ndim else memory
    one, first = np.asarray(fill, dtype)[()], part[(0,) * part.ndim]
    if not (first == one or (first != first and one != one)):
        return False
    if not spec.prototype.nd_buffer.from_numpy_array(part).all_equal(fill):
        return False
    return not complete or part.tobytes() != bits * part.size


async def read(batch: Sequence[Any], out: Any, drop: tuple[int, ...]) -> tuple[bool, Any]:
    """Whether it was done here, and what there is to say of each chunk."""
    store, spec = batch[0][0].store, batch[0][1]
    small = len(batch) * math.prod(spec.shape) * out.dtype.itemsize <= INLINE
    try:
        return True, await (store._peek if small else store._run)(read_now, batch, out, drop)
    except ELSEWHERE:
        return False, None


async def write(batch: Sequence[Any], value: Any, drop: tuple[int, ...]) -> bool:
    """Whether it was done here."""
    if batch[0][1].config.write_empty_chunks:
        return False
    store = batch[0][0].store
    await store._ensure_open()
    store._check_writable()
    try:
        await store._run(write_now, batch, value, drop)
        return True
    except ELSEWHERE:
        return False
