"""How `breccia.zarr.CodecPipeline` turns what zarr asks of chunks into one selection of the array.

zarr gives a selection chunk by chunk: for each its key, what is selected in it, and where that lies in
the caller's array. Along each axis these parts are put together again, in the order of the caller's
elements; the rest is what arrays do with an orthogonal selection, or with one of points.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import zarr.abc.codec
from zarr.core.buffer.cpu import NDBuffer

from . import _keys
from ._breccia import ffi, lib
from ._elements import AnyArray, Elements
from ._errors import Error, InvalidError, NotFoundError, UnsupportedError
from ._indexing import Index, Orthogonal, pieces_of_points
from ._native import Native, string

INLINE = 256 << 10  # bytes of chunks that are read without another thread
ZEROS_DIFFER = not NDBuffer.from_numpy_array(np.array([-0.0])).all_equal(0.0)  # from zarr 3.1 on
HAS_STATUS = hasattr(zarr.abc.codec, "GetResult")  # from zarr 3.2 on
ANY = 1 << 62  # the length of an axis that one value is for


class Aside(Exception):
    """It is for zarr's own pipeline."""


ELSEWHERE = Aside, NotFoundError, UnsupportedError, InvalidError  # not known here, or changed since


# ---- the array ----


class Held:
    """What Elements needs of a session: here it is one native session, which the caller has taken."""

    fixed = False

    def __init__(self, native: Native) -> None:
        self.native = native

    @property
    def _sessions(self) -> Held:
        return self

    @contextmanager
    def at_work(self) -> Iterator[Native]:
        yield self.native

    @contextmanager
    def _changing(self, together: bool) -> Iterator[None]:
        handle, flags = self.native.handle, 0
        if together:
            handle.call(lib.brc_begin, handle.repo)
        try:
            yield
            flags = lib.BRC_END_KEEP
        finally:
            if together:
                handle.call(lib.brc_end, handle.repo, flags)


def places_of(key: str, ndim: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """What array and chunk a key may be of: with two axes "a/c/0/1", "a/c.0.1", "a/0.1", "a/0/1" of a."""
    parts = key.split("/")
    for n in sorted({1, max(1, ndim), ndim + 1}, reverse=True):
        if n <= len(parts):
            fields = "/".join(parts[-n:]).replace(".", "/").split("/")
            fields = fields[1:] if fields[0] == "c" else [] if ndim == 0 and fields == ["0"] else fields
            if len(fields) == ndim and all(field.isdecimal() for field in fields):
                yield "/".join(parts[:-n]), tuple(map(int, fields))


def known(native: Native, path: str, spec: Any, flag: int) -> Elements | None:
    """The array at a path, if it is one that zarr could mean."""
    try:
        array = Elements(Held(native), path)  # type: ignore[arg-type]
    except (Error, TypeError, ValueError):
        return None
    form, info = array._form, lib.brc_array_describe(native.array(path))
    asked = spec.dtype if isinstance(spec.dtype, np.dtype) else spec.dtype.to_native_dtype()
    outer = info.shard or info.chunk
    if (form.item and form.dtype == asked.newbyteorder("=") and info.flags & flag
            and info.flags & lib.BRC_ARRAY_REGULAR and len(form.shape) == len(spec.shape)
            and all(outer[i] == n for i, n in enumerate(spec.shape))):
        return array
    return None


def array_of(native: Native, batch: Sequence[Any], flag: int) -> tuple[Elements, list[tuple[int, ...]]]:
    """The array, and where the chunks are in its grid."""
    spec = batch[0][1]
    for path, first in places_of(batch[0][0].path, len(spec.shape)):
        array = known(native, path, spec, flag)
        if array is not None:
            places = [first]
            for getter, other, *_ in batch[1:]:
                found = [at for of, at in places_of(getter.path, len(spec.shape)) if of == path]
                if not found or not (other is spec or other.shape == spec.shape):
                    raise Aside
                places.append(found[0])
            return array, places
    raise Aside


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


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and np.array_equal(a, b)
    return bool(a == b)


def in_order(parts: Sequence[tuple[Any, Any]], length: int) -> Index | range:
    """What is selected along an axis, element by element of the caller's: a range where it is one. Each part
    has positions in the array, and where they go; together they are all of `length` (ANY: anywhere)."""
    (first, _), n = parts[0], 0
    if isinstance(first, range):
        for index, to in parts:
            if (not isinstance(index, range) or index.step != first.step or not isinstance(to, range)
                    or index.start != first.start + n * first.step or (to.start, to.step) != (n, 1)):
                break
            n += len(index)
        else:
            if length in (n, ANY):
                return range(first.start, first.start + n * first.step, first.step)
    if length == ANY:
        made = np.concatenate([np.asarray(index, np.int64) for index, _ in parts])
    else:
        made = np.full(length, -1, np.int64)
        for index, to in parts:
            made[slice(to.start, to.stop, to.step) if isinstance(to, range) else to] = index
        if (made < 0).any():
            raise Aside
    step = int(made[1] - made[0]) if len(made) > 1 else 1
    if step > 0 and (np.diff(made) == step).all():
        return range(int(made[0]), int(made[0]) + len(made) * step, step)
    return made


class Selection:
    """What zarr selects of an array, collected from chunks. out_shape None: one value is for all of it."""

    def __init__(self, chunk: Sequence[int], out_shape: tuple[int, ...] | None,
                 drop: tuple[int, ...]) -> None:
        self.chunk, self.out_shape, self.drop = tuple(chunk), out_shape, drop
        self.axes: list[dict[int, tuple[Any, Any, Any, Any]]] = [{} for _ in chunk]
        self.chunks: set[tuple[int, ...]] = set()
        self.points: list[tuple[list[Index], Any]] = []

    def length(self, out_axis: int) -> int:
        if self.out_shape is None:
            return ANY
        if out_axis >= len(self.out_shape):
            raise Aside
        return self.out_shape[out_axis]

    def add(self, place: tuple[int, ...], items: Any, out: Any) -> None:
        items = items if isinstance(items, tuple) else (items,)
        out = out if isinstance(out, tuple) else (out,)
        if len(items) != len(self.chunk):
            raise Aside
        if len(items) > 1 and all(isinstance(i, np.ndarray) and i.ndim == 1 for i in items):
            if len(out) != 1 or len({len(i) for i in items}) != 1 or items[0].dtype == bool:
                raise Aside
            where = [np.asarray(i, np.int64) + at * n for i, at, n in zip(items, place, self.chunk)]
            self.points.append((where, positions(out[0], self.length(0))))
            return
        kept = 0
        for axis, item in enumerate(items):
            to = None
            if not is_integer(item) and axis not in self.drop:
                if kept == len(out):
                    raise Aside
                to, kept = out[kept], kept + 1
            there = self.axes[axis].get(place[axis])
            if there is None:
                self.axes[axis][place[axis]] = item, to, *self.located(axis, place[axis], item, to, kept - 1)
            elif not (same(there[0], item) and same(there[1], to)):
                raise Aside
        if kept != len(out):
            raise Aside
        self.chunks.add(place)

    def located(self, axis: int, at: int, item: Any, to: Any, out_axis: int) -> tuple[Any, Any]:
        """Where a chunk's part of an axis is in the array and in the caller's (None: it has no such axis)."""
        index = range(int(item), int(item) + 1) if is_integer(item) else positions(item, self.chunk[axis])
        first = at * self.chunk[axis]
        if isinstance(index, range):
            index = range(index.start + first, index.stop + first, index.step)
        else:
            index = index + first
        place = None if to is None else positions(to, self.length(out_axis))
        if len(index) == 0 or len(index) != (1 if place is None else len(place)):
            raise Aside
        return index, place

    def orthogonal(self, shape: tuple[int, ...], turns: dict[int, Index] | None = None) -> Orthogonal:
        """It has to be a product of the axes' parts, in the array. With `turns` index arrays are in zarr's
        order, and `turns` says of the caller's axes in which one that is: of what is written twice the last
        stays."""
        if self.points or math.prod(map(len, self.axes)) != len(self.chunks):
            raise Aside
        made: list[Index | range] = []
        kept = [axis for axis, found in enumerate(self.axes) if next(iter(found.values()))[3] is not None]
        if self.out_shape is not None and len(self.out_shape) != len(kept):
            raise Aside
        for axis, found in enumerate(self.axes):
            parts = [found[at][2:] for at in sorted(found)]
            if axis in kept:
                to = kept.index(axis)
                made.append(in_order(parts, self.length(to)))
                if turns is not None and not isinstance(made[-1], range) and self.out_shape is not None:
                    turns[to] = np.concatenate([np.asarray(place, np.int64) for _, place in parts])
                    made[-1] = made[-1][turns[to]]
            elif len(parts) == 1:
                made.append(range(int(parts[0][0][0]), int(parts[0][0][0]) + 1))
            else:
                raise Aside
        if any(max(index[0], index[-1]) >= n if isinstance(index, range) else index.max() >= n
               for index, n in zip(made, shape)):
            raise Aside  # the array has become smaller
        return Orthogonal(made, tuple(kept))

    def coordinates(self, shape: tuple[int, ...], turns: dict[int, Index] | None = None) -> tuple[Index, ...]:
        """The points, one by one of the caller's elements, or with `turns` as orthogonal()."""
        if self.chunks or (self.out_shape is not None and len(self.out_shape) != 1):
            raise Aside
        made = tuple(np.asarray(in_order([(where[axis], to) for where, to in self.points], self.length(0)))
                     for axis in range(len(shape)))
        if any(index.max() >= n for index, n in zip(made, shape)):
            raise Aside
        if turns is None or self.out_shape is None:
            return made
        turns[0] = np.concatenate([np.asarray(to, np.int64) for _, to in self.points])
        return tuple(index[turns[0]] for index in made)


def selection_of(batch: Sequence[Any], places: Sequence[tuple[int, ...]], out_shape: tuple[int, ...] | None,
                 drop: tuple[int, ...]) -> Selection:
    made = Selection(batch[0][1].shape, out_shape, drop)
    for (_, _, items, out, _), place in zip(batch, places):
        made.add(place, items, out)
    return made


# ---- reading and writing ----


def is_plain(memory: Any, dtype: np.dtype[Any]) -> bool:
    return type(memory) in (np.ndarray, np.memmap) and memory.dtype == dtype


def read_now(native: Native, batch: Sequence[Any], out: Any, drop: tuple[int, ...]) -> Any:
    array, places = array_of(native, batch, lib.BRC_ARRAY_READABLE)
    form, whole = array._form, out.as_ndarray_like()
    if out.dtype.newbyteorder("=") != form.dtype:
        raise Aside  # a field
    selection = selection_of(batch, places, tuple(out.shape), drop)
    plain = is_plain(whole, out.dtype) and out.dtype == form.dtype and whole.flags.writeable
    memory = whole if plain else np.empty(out.shape, form.dtype)
    if selection.points:
        array._gather(pieces_of_points(selection.coordinates(form.shape), form.chunks), memory, form)
    else:
        sel = selection.orthogonal(form.shape)
        array._read_orthogonal(sel, memory[sel.spread], form)
    if string(lib.brc_array_describe(native.array(array.path)).dtype) != form.name:
        raise Aside  # it has become another array
    if memory is not whole:
        out[(slice(None),) * memory.ndim] = batch[0][1].prototype.nd_buffer.from_numpy_array(memory)
    if HAS_STATUS:
        there = _keys.there(native, [getter.path for getter, *_ in batch])
        return tuple({"status": "present" if found else "missing"} for found in there)
    return None


def write_now(native: Native, batch: Sequence[Any], value: Any, drop: tuple[int, ...]) -> None:
    array, places = array_of(native, batch, lib.BRC_ARRAY_WRITABLE)
    form, memory = array._form, value.as_numpy_array()
    if memory.dtype.newbyteorder("=") != form.dtype:
        raise Aside
    if not is_plain(memory, form.dtype):
        memory = np.asarray(memory).astype(form.dtype)
    selection = selection_of(batch, places, memory.shape if memory.ndim else None, drop)
    fill = bytes(ffi.buffer(lib.brc_array_describe(native.array(array.path)).fill, form.item))
    if any(is_doubtful(memory, fill, spec, to, whole) for _, spec, _, to, whole in batch):
        raise Aside
    turns: dict[int, Index] = {}
    points = selection.coordinates(form.shape, turns) if selection.points else None
    sel = selection.orthogonal(form.shape, turns) if points is None else Orthogonal([], ())
    for axis, order in turns.items():
        memory = np.take(memory, order, axis)
    if points is not None:
        source = np.broadcast_to(memory, points[0].shape)
        array._scatter(pieces_of_points(points, form.chunks), source, form)
    else:
        source = np.broadcast_to(memory, [len(sel.axes[axis]) for axis in sel.kept])
        array._write_orthogonal(sel, source[sel.spread], form)


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
