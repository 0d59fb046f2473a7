"""How `breccia.zarr.CodecPipeline` turns what zarr asks of chunks into boxes of one array, and these into one batch.

zarr gives a selection chunk by chunk: for each its key, what is selected in it, and where that lies in the caller's
array. Along each axis the chunks' parts are put together again. Where they make an evenly spaced run in both arrays
the library works on the caller's memory; where they do not (index arrays), it works on the smallest box in each
inner chunk that has the selected elements, and NumPy copies these.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import zarr.abc.codec
from zarr.core.buffer.cpu import NDBuffer

from . import _keys
from ._dtypes import to_numpy
from ._errors import Error, InvalidError, NotFoundError, UnsupportedError
from ._breccia import ffi, lib
from ._native import Native, string

ANY = 1 << 62  # the length of an axis that one value is for
INLINE = 256 << 10  # bytes of chunks that are read without another thread
SCRATCH = 64 << 20  # bytes of boxes at a time
ZEROS_DIFFER = not NDBuffer.from_numpy_array(np.array([-0.0])).all_equal(0.0)  # from zarr 3.1 on
HAS_STATUS = hasattr(zarr.abc.codec, "GetResult")  # from zarr 3.2 on

Array = np.ndarray[Any, Any]


class Aside(Exception):
    """It is for zarr's own pipeline."""


ELSEWHERE = Aside, NotFoundError, UnsupportedError, InvalidError  # the array is none that both know, or has changed


class Run(NamedTuple):
    """Elements start, start + step ... of an axis, and where they lie in the caller's array (None: no axis there).

    `pick` (of a box with step 1): which of them are meant, and `at` where each of these lies."""

    start: int
    length: int
    step: int
    to: range | None
    pick: Array | None = None
    at: Array | None = None


class Box(NamedTuple):
    """Elements of the array, and of the caller's: `picked` of the box, as an array of this shape, are at `target`
    there. picked None: all, as they lie."""

    runs: Sequence[Run]
    target: Any
    shape: tuple[int, ...]
    picked: Any = None


# -- from chunks to axes ----------------------------------------------------------------------------------------


def coordinates(key: str, ndim: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """What array and chunk a key may be of: "a/c/0/1", "a/c.0.1", "a/0.1" or "a/0/1" of a with two axes."""
    parts = key.split("/")
    for n in sorted({1, max(1, ndim), ndim + 1}, reverse=True):
        if n <= len(parts):
            fields = "/".join(parts[-n:]).replace(".", "/").split("/")
            fields = fields[1:] if fields[0] == "c" else [] if ndim == 0 and fields == ["0"] else fields
            if len(fields) == ndim and all(field.isdecimal() for field in fields):
                yield "/".join(parts[:-n]), tuple(map(int, fields))


def even(index: Any) -> range | None:
    """The index array as a range, where it is one."""
    if isinstance(index, range):
        return index
    step = int(index[1] - index[0]) if len(index) > 1 else 1
    if step == 0 or (len(index) > 2 and (np.diff(index) != step).any()):
        return None
    return range(int(index[0]), int(index[0]) + step * len(index), step)


def part_of(item: Any, length: int) -> Any:
    """A selector of zarr's along one axis: a range, or an index array."""
    if isinstance(item, slice):
        return range(*item.indices(length))
    if isinstance(item, np.ndarray) and item.size:
        return np.flatnonzero(item) if item.dtype == bool else item.reshape(-1).astype(np.int64)
    raise Aside


def is_integer(item: Any) -> bool:
    return isinstance(item, (int, np.integer)) and not isinstance(item, (bool, np.bool_))


class Axes:
    """The selection along each axis, collected from the chunks: it must be a product of them."""

    def __init__(self, shape: tuple[int, ...], out_shape: tuple[int, ...] | None, drop: tuple[int, ...]) -> None:
        self.shape, self.out_shape, self.drop = shape, out_shape, drop
        self.axes: list[dict[int, tuple[Any, Any, Any, Any]]] = [{} for _ in shape]
        self.chunks: set[tuple[int, ...]] = set()

    def add(self, chunk: tuple[int, ...], selection: tuple[Any, ...], out: tuple[Any, ...]) -> None:
        at = 0
        for axis, item in enumerate(selection):
            to = None
            if not is_integer(item) and axis not in self.drop:
                if at == len(out):
                    raise Aside
                to, at = out[at], at + 1
            known = self.axes[axis].get(chunk[axis])
            if known is None:
                self.axes[axis][chunk[axis]] = item, to, *self.placed(axis, chunk[axis], item, to, at - 1)
            elif not (same(known[0], item) and same(known[1], to)):
                raise Aside
        if at != len(out):
            raise Aside
        self.chunks.add(chunk)

    def placed(self, axis: int, chunk: int, item: Any, to: Any, out_axis: int) -> tuple[Any, Any]:
        length = self.shape[axis]
        index = range(int(item), int(item) + 1) if is_integer(item) else part_of(item, length)
        first = chunk * length
        index = (range(index.start + first, index.stop + first, index.step) if isinstance(index, range)
                 else index + first)
        place = None if to is None else part_of(to, self.length(out_axis))
        if len(index) == 0 or (len(index) != 1 if place is None else len(index) != len(place)):
            raise Aside
        return index, place

    def length(self, out_axis: int) -> int:
        if self.out_shape is None:
            return ANY
        if out_axis >= len(self.out_shape):
            raise Aside
        return self.out_shape[out_axis]

    def runs(self, axis: int, inner: int) -> list[Run]:
        """The axis in as few runs as it has."""
        parts = [self.axes[axis][chunk][2:] for chunk in sorted(self.axes[axis])]
        indices, places = [p[0] for p in parts], [p[1] for p in parts]
        if len(parts) > 1 or not isinstance(indices[0], range):
            whole = even(joined(indices)) if places[0] is not None else None
            place = even(joined(places)) if whole is not None and whole.step > 0 else None
            if whole is not None and place is not None:
                indices, places = [whole], [place]
        return [run for index, place in zip(indices, places) for run in runs_of(index, place, inner)]

    def boxes(self, inner: Sequence[int]) -> Iterator[Box]:
        if math.prod(map(len, self.axes)) != len(self.chunks):
            raise Aside
        kept = [axis for axis, found in enumerate(self.axes) if next(iter(found.values()))[3] is not None]
        covered = tuple(sum(len(part[3]) for part in self.axes[axis].values()) for axis in kept)
        if self.out_shape is not None and covered != self.out_shape:
            raise Aside
        for runs in itertools.product(*(self.runs(axis, inner[axis]) for axis in range(len(self.axes)))):
            yield box_of(runs, kept)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and np.array_equal(a, b)
    return bool(a == b)


def joined(parts: Sequence[Any]) -> Any:
    """Index arrays and ranges one after the other: a range where they go on evenly."""
    first, n = parts[0], sum(map(len, parts))
    if all(isinstance(p, range) for p in parts):
        whole = range(first.start, first.start + first.step * n, first.step)
        ends = itertools.accumulate(map(len, parts))
        if all(p.step == first.step and p.start == whole.start + (end - len(p)) * whole.step
               for p, end in zip(parts, ends)):
            return whole
    return np.concatenate([np.asarray(p, np.int64) for p in parts])


def runs_of(index: Any, place: Any, inner: int) -> Iterator[Run]:
    """Of one chunk: an even run, or the smallest one in each inner chunk with what is picked there."""
    whole, to = even(index), None if place is None else even(place)
    if whole is not None and whole.step > 0 and (place is None or to is not None):
        yield Run(whole.start, len(whole), whole.step, to)
        return
    index, place = np.asarray(index, np.int64), np.asarray(place, np.int64)
    inside = index // inner
    for chunk in np.unique(inside):
        here, at = index[inside == chunk], place[inside == chunk]
        first = int(here.min())
        yield Run(first, int(here.max()) - first + 1, 1, None, here - first, at)


def box_of(runs: Sequence[Run], kept: Sequence[int]) -> Box:
    """Where the elements of a product of runs lie in the caller's array, which has the axes `kept`."""
    mine = [runs[axis] for axis in kept]
    uneven = sum(run.pick is not None for run in mine)
    if uneven < 2:
        target = tuple(slice_of(run.to) if run.to is not None else run.at for run in mine)
        picked = tuple(slice(None) if run.pick is None else run.pick for run in mine)
        return Box(runs, target, tuple(run.length for run in mine), picked if uneven else None)
    target = np.ix_(*(run.at if run.at is not None else np.asarray(run.to) for run in mine))
    picked = np.ix_(*(run.pick if run.pick is not None else np.arange(run.length) for run in mine))
    return Box(runs, target, tuple(run.length for run in mine), picked)


def slice_of(to: range) -> slice:
    return slice(to.start, to.stop if to.stop >= 0 else None, to.step)


def boxes_of_points(first: Sequence[int], selection: Sequence[Array], out: Any, length: int,
                    inner: Sequence[int]) -> Iterator[Box]:
    """Of coordinates in the chunk that begins at `first`: a box in each inner chunk."""
    points = np.stack([np.asarray(index, np.int64) + at for index, at in zip(selection, first)])
    places = np.asarray(part_of(out, length), np.int64)
    if len(places) != points.shape[1]:
        raise Aside
    group = np.unique(points // np.asarray(inner)[:, None], axis=1, return_inverse=True)[1].reshape(-1)
    order = np.argsort(group, kind="stable")
    for here in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        low, high = points[:, here].min(1), points[:, here].max(1) + 1
        counts = tuple(map(int, high - low))
        yield Box([Run(int(at), n, 1, None) for at, n in zip(low, counts)], (places[here],), counts,
                  tuple(points[:, here] - low[:, None]))


# -- the array --------------------------------------------------------------------------------------------------


class Target(NamedTuple):
    """An array of the library's that zarr's chunks are of."""

    array: Any
    path: str
    dtype: np.dtype[Any]
    name: str
    shape: tuple[int, ...]
    inner: tuple[int, ...]


def described(native: Native, path: str, spec: Any, flag: int) -> Target | None:
    """The array at a path, if it is one that zarr could mean."""
    try:
        array = native.array(path)
        info = lib.brc_array_describe(array)
        name, n = string(info.dtype), info.ndim
        dtype = to_numpy(name)
    except (Error, TypeError, ValueError):
        return None
    asked = spec.dtype if isinstance(spec.dtype, np.dtype) else spec.dtype.to_native_dtype()
    outer = info.shard or info.chunk
    if not info.flags & flag or not info.flags & lib.BRC_ARRAY_REGULAR or info.item_size == 0 or dtype.hasobject or (
            n and tuple(outer[0:n]) != tuple(spec.shape)) or n != len(spec.shape) or dtype != asked.newbyteorder("="):
        return None
    return Target(array, path, dtype, name, tuple(info.shape[0:n]) if n else (), tuple(info.chunk[0:n]) if n else ())


def target_of(native: Native, batch: Sequence[Any], flag: int) -> tuple[Target, list[tuple[int, ...]]]:
    """The array, and the places of the chunks in its grid."""
    spec = batch[0][1]
    for path, first in coordinates(batch[0][0].path, len(spec.shape)):
        found = described(native, path, spec, flag)
        if found is None:  # it may have been another when it was opened
            native.forget(path)
            found = described(native, path, spec, flag)
        if found is not None:
            places = [first]
            for setter, other, *_ in batch[1:]:
                same_array = [at for at_path, at in coordinates(setter.path, len(spec.shape)) if at_path == path]
                if not same_array or not (other is spec or other.shape == spec.shape):
                    raise Aside
                places.append(same_array[0])
            return found, places
    raise Aside


def boxes_of(target: Target, batch: Sequence[Any], places: Sequence[tuple[int, ...]], out_shape: tuple[int, ...] | None,
             drop: tuple[int, ...]) -> list[Box]:
    """What zarr selects, in as few boxes as it takes. out_shape None: one value for all of it."""
    outer, ndim, length = tuple(batch[0][1].shape), len(target.shape), out_shape[0] if out_shape else ANY
    axes, count = Axes(outer, out_shape, drop), 0
    boxes: list[Box] = []
    for (_, _, selection, out, _), place in zip(batch, places):
        selection = selection if isinstance(selection, tuple) else (selection,)
        out = out if isinstance(out, tuple) else (out,)
        if len(selection) != ndim:
            raise Aside
        if ndim > 1 and all(isinstance(item, np.ndarray) and item.ndim == 1 and item.dtype != bool
                            for item in selection):
            if len(out) != 1 or (out_shape is not None and len(out_shape) != 1):
                raise Aside
            boxes += boxes_of_points([c * n for c, n in zip(place, outer)], selection, out[0], length, target.inner)
            count += len(selection[0])
        else:
            axes.add(place, selection, out)
    if boxes and (axes.chunks or length not in (count, ANY)):
        raise Aside
    boxes = boxes or list(axes.boxes(target.inner))
    for box in boxes:
        if any(run.start < 0 or run.start + (run.length - 1) * run.step >= n for run, n in zip(box.runs, target.shape)):
            raise Aside  # the array has become smaller
    return boxes


# -- reading and writing ----------------------------------------------------------------------------------------


class Batch:
    """Boxes and the memory that they are read to or written from."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.parts: list[tuple[Sequence[Run], Array, list[int]]] = []

    def add(self, runs: Sequence[Run], memory: Array, strides: list[int]) -> None:
        self.parts.append((runs, memory, strides))

    def run(self, native: Native, function: Any) -> None:
        n, ndim = len(self.parts), len(self.target.shape)
        ios, sels, buffers = ffi.new("brc_io[]", n), ffi.new("brc_sel[]", n), ffi.new("brc_buffer[]", n)
        steps = ffi.new("int64_t[]", max(1, n * ndim))
        for i, (runs, memory, strides) in enumerate(self.parts):
            sel, buffer = sels[i], buffers[i]
            sel.size, sel.ndim = ffi.sizeof("brc_sel"), ndim
            for axis, run in enumerate(runs):
                sel.start[axis], sel.count[axis], sel.step[axis] = run.start, run.length, run.step
                steps[i * ndim + axis] = strides[axis]
            before = -sum(min(0, (run.length - 1) * s) for run, s in zip(runs, strides))
            behind = sum(max(0, (run.length - 1) * s) for run, s in zip(runs, strides)) + self.target.dtype.itemsize
            buffer.size, buffer.offset, buffer.len = ffi.sizeof("brc_buffer"), before, before + behind
            buffer.data = ffi.cast("void *", memory.__array_interface__["data"][0] - before)
            buffer.strides = steps + i * ndim
            ios[i] = {"size": ffi.sizeof("brc_io"), "array": self.target.array, "sel": sels + i, "buffer": buffers + i}
        if n:
            native.handle.call(function, ios, n)


def strides_of(runs: Sequence[Run], view: Array) -> list[int]:
    """For each axis of the array; the view has those that are not dropped."""
    its = iter(view.strides)
    return [0 if run.to is None else next(its) for run in runs]


def portions(target: Target, boxes: Iterable[Box],
             memory: Array) -> Iterator[tuple[Batch, Batch, list[tuple[Box, Array]]]]:
    """Boxes by the memory that they take: those that lie in the caller's, and those for which there is other memory."""
    direct, apart, picked, used = Batch(target), Batch(target), list[tuple[Box, Array]](), 0
    for box in boxes:
        if box.picked is None:
            view = memory[box.target] if memory.ndim else memory
            direct.add(box.runs, view, strides_of(box.runs, view) if memory.ndim else [0] * len(box.runs))
        else:
            scratch = np.empty([run.length for run in box.runs], target.dtype)
            apart.add(box.runs, scratch, list(scratch.strides))
            picked.append((box, scratch))
            used += scratch.nbytes
        if used >= SCRATCH or len(direct.parts) + len(picked) >= 4096:
            yield direct, apart, picked
            direct, apart, picked, used = Batch(target), Batch(target), [], 0
    yield direct, apart, picked


def is_plain(memory: Any, dtype: np.dtype[Any]) -> bool:
    return type(memory) in (np.ndarray, np.memmap) and memory.dtype == dtype


def read_now(native: Native, batch: Sequence[Any], out: Any, drop: tuple[int, ...]) -> Any:
    target, places = target_of(native, batch, lib.BRC_ARRAY_READABLE)
    whole = out.as_ndarray_like()
    if out.dtype.newbyteorder("=") != target.dtype:
        raise Aside
    boxes = boxes_of(target, batch, places, tuple(out.shape), drop)
    memory = whole if is_plain(whole, target.dtype) and whole.flags.writeable else np.empty(out.shape, target.dtype)
    for direct, apart, picked in portions(target, boxes, memory):
        direct.parts += apart.parts
        direct.run(native, lib.brc_read_batch)
        for box, scratch in picked:
            memory[box.target] = scratch.reshape(box.shape)[box.picked]
    if string(lib.brc_array_describe(target.array).dtype) != target.name:
        raise Aside  # it has become another array
    if memory is not whole:
        out[(slice(None),) * memory.ndim] = batch[0][1].prototype.nd_buffer.from_numpy_array(memory)
    if HAS_STATUS:
        there = _keys.there(native, [getter.path for getter, *_ in batch])
        return tuple({"status": "present" if found else "missing"} for found in there)
    return None


async def read(batch: Sequence[Any], out: Any, drop: tuple[int, ...]) -> tuple[bool, Any]:
    """Whether it was done here, and what there is to say of each chunk."""
    store, spec = batch[0][0].store, batch[0][1]
    how = store._peek if len(batch) * math.prod(spec.shape) * out.dtype.itemsize <= INLINE else store._run
    try:
        return True, await how(read_now, batch, out, drop)
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


def is_doubtful(memory: Array, dtype: np.dtype[Any], spec: Any, out: Any, complete: bool) -> bool:
    """Whether the chunk may become one that zarr takes for fill value, and leaves out, although its bits are not: it
    compares numbers, so that all NaNs are one, and zeros may be."""
    fill = spec.fill_value
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
    return not complete or part.tobytes() != one.tobytes() * part.size


def write_now(native: Native, batch: Sequence[Any], value: Any, drop: tuple[int, ...]) -> None:
    target, places = target_of(native, batch, lib.BRC_ARRAY_WRITABLE)
    memory = value.as_numpy_array()
    if memory.dtype.newbyteorder("=") != target.dtype:
        raise Aside
    memory = memory if is_plain(memory, target.dtype) else np.asarray(memory).astype(target.dtype)
    boxes = boxes_of(target, batch, places, tuple(memory.shape) if memory.ndim else None, drop)
    if any(is_doubtful(memory, target.dtype, spec, to, whole) for _, spec, _, to, whole in batch):
        raise Aside
    within = any(box.picked is not None for box in boxes)
    if within:
        native.handle.call(lib.brc_begin, native.handle.repo)
    flags = 0
    try:
        for direct, apart, picked in portions(target, boxes, memory):
            apart.run(native, lib.brc_read_batch)
            for box, scratch in picked:
                scratch.reshape(box.shape)[box.picked] = memory[box.target] if memory.ndim else memory
            direct.parts += apart.parts
            direct.run(native, lib.brc_write_batch)
        flags = lib.BRC_END_KEEP
    finally:
        if within:
            native.handle.call(lib.brc_end, native.handle.repo, flags)
