"""Selections as Zarr has them (basic, orthogonal, coordinate, mask, block), made into boxes for the library.

A basic selection is one `Box`. All others become `Boxes`: boxes with the place of each in one array of
NumPy's, built as NumPy arrays that have the layout of brc_sel, brc_buffer and brc_io, so that a million
of them need no million Python objects. Index arrays of the caller are never changed.
"""
from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ._breccia import ffi

Index = np.ndarray[Any, np.dtype[np.int64]]
BLOCK = 4096       # boxes for one call
TEMPORARY = 1 << 25  # bytes that selections by index arrays are collected in

_SEL = np.dtype([("size", "u8"), ("ndim", "i4"), ("drop", "u4"), ("start", "u8", 32), ("count", "u8", 32),
                 ("step", "u8", 32)])
_BUFFER = np.dtype([("size", "u8"), ("data", "u8"), ("len", "u8"), ("offset", "u8"), ("strides", "u8"),
                    ("device", "u4"), ("flags", "u4"), ("owner", "u8")])
_IO = np.dtype([("size", "u8"), ("array", "u8"), ("sel", "u8"), ("buffer", "u8")])
for _name, _made in (("brc_sel", _SEL), ("brc_buffer", _BUFFER), ("brc_io", _IO)):
    assert ffi.sizeof(_name) == _made.itemsize, f"{_name} has another layout: build the package anew"


class Box(NamedTuple):
    """A box with steps, as brc_sel has it."""

    start: list[int]
    many: list[int]
    step: list[int]
    shape: tuple[int, ...]        # what NumPy's result has, without new axes
    after: tuple[Any, ...] | None  # to index that with, for negative steps and new axes; None: nothing
    kept: tuple[int, ...] | None   # axes that are in the result; None: all

    def full(self, a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The box's array with the axes that integers dropped."""
        if self.kept is None:
            return a
        return a[tuple(slice(None) if i in self.kept else None for i in range(len(self.start)))]


def expand(key: Any, ndim: int) -> list[Any]:
    """The items of an index, one for each axis (and the new axes), without `...`."""
    items = list(key) if isinstance(key, tuple) else [key]
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    given = sum(1 for item in items if item is not None) - len(dots)
    if given > ndim:
        raise IndexError(f"too many indices: the array has {ndim} dimensions, but {given} were indexed")
    at = dots[0] if dots else len(items)
    return items[:at] + [slice(None)] * (ndim - given) + items[at + len(dots):]


def integer(item: Any, length: int, axis: int) -> int:
    """One index, counted from the end if negative."""
    if isinstance(item, (bool, np.bool_)):
        raise IndexError("True and False select nothing here: use a mask of the array's shape")
    try:
        value = operator.index(item)
    except TypeError:
        raise IndexError(f"{item!r} is no index: use an integer, a slice, '...', None, or an array of "
                         "integers or booleans") from None
    if not -length <= value < length:
        raise IndexError(f"index {value} is out of bounds for axis {axis} with size {length}")
    return value + length if value < 0 else value


def basic(key: Any, shape: tuple[int, ...]) -> Box:
    """The box for integers, slices, `...` and None. Negative steps read it backwards."""
    start: list[int] = []
    count: list[int] = []
    step: list[int] = []
    out: list[int] = []
    after: list[Any] = []
    kept: list[int] = []
    special = False
    axis = 0
    simple = type(key) is tuple and len(key) == len(shape) and Ellipsis not in key and None not in key
    for item in key if simple else expand(key, len(shape)):
        if item is None:
            special = True
            after.append(None)
            continue
        length = shape[axis]
        if type(item) is slice:
            first, stop, stride = item.indices(length)
            if stride > 0:
                n = (stop - first + stride - 1) // stride if stop > first else 0
                after.append(slice(None))
            else:
                n = (first - stop - stride - 1) // -stride if first > stop else 0
                first, stride, special = first + (n - 1) * stride if n else 0, -stride, True
                after.append(slice(None, None, -1))
            start.append(first if n else 0)
            count.append(n)
            step.append(stride)
            out.append(n)
            kept.append(axis)
        else:
            start.append(integer(item, length, axis))
            count.append(1)
            step.append(1)
        axis += 1
    return Box(start, count, step, tuple(out), tuple(after) if special else None,
               tuple(kept) if len(kept) != axis else None)


def undo(after: tuple[Any, ...]) -> tuple[Any, ...]:
    """The index that makes an array of the result's shape one of the box's again."""
    return (*(0 if item is None else item for item in after), ...)


def is_fancy(item: Any) -> bool:
    return isinstance(item, (list, np.ndarray)) and not (isinstance(item, np.ndarray) and item.ndim == 0
                                                         and item.dtype != bool)


def kind_of(key: Any, ndim: int) -> str:
    """Which selection plain brackets mean: "basic", "orthogonal", "coordinate" or "mask"."""
    items = key if isinstance(key, tuple) else (key,)
    fancy = [item for item in items if is_fancy(item)]
    if not fancy:
        return "basic"
    if len(items) == 1 and np.ndim(fancy[0]) == ndim and np.asarray(fancy[0]).dtype == bool:
        return "mask"
    if any(item is None for item in items):
        raise IndexError("None and an index array do not go together: add the axis to the result")
    masks = any(np.asarray(item).dtype == bool for item in fancy)
    if len(items) == ndim and not masks and all(is_fancy(i) or hasattr(i, "__index__") for i in items):
        return "coordinate"
    if len(fancy) == 1 or all(np.ndim(item) == 1 for item in fancy) and len(fancy) == ndim:
        return "orthogonal"
    raise IndexError("several index arrays and slices do not go together: use .oindex for each axis by "
                     "itself, or .vindex for points")


def index_array(item: Any, length: int, axis: int, flat: bool = False) -> Index:
    """An array of indices (or a mask of one axis) as positions."""
    given = np.asarray(item)
    if given.dtype == bool:
        if given.ndim != 1 or given.shape[0] != length:
            raise IndexError(f"the mask of axis {axis} has shape {given.shape}, but needs {length} elements")
        return np.flatnonzero(given)
    if given.size == 0 and isinstance(item, list):
        raise IndexError("an empty list selects nothing: use an empty array of integers")
    if given.dtype.kind not in "iu":
        raise IndexError(f"index arrays are of integers or booleans, not {given.dtype}")
    if flat and given.ndim != 1:
        raise IndexError(f"the index array of axis {axis} has {given.ndim} dimensions: here it must have one")
    if given.size and (int(given.max()) >= length or int(given.min()) < -length):
        bad = int(given.max()) if int(given.max()) >= length else int(given.min())
        raise IndexError(f"index {bad} is out of bounds for axis {axis} with size {length}")
    made = given.astype(np.int64)
    made[made < 0] += length
    return made


class Orthogonal(NamedTuple):
    """For each axis the positions, and which axes are in the result."""

    axes: list[Index | range]
    kept: tuple[int, ...]

    @property
    def spread(self) -> tuple[Any, ...]:
        """The index that gives a result the axes that integers dropped; `...`, so that it stays an array."""
        return (*(slice(None) if i in self.kept else None for i in range(len(self.axes))), ...)

    @property
    def boxes(self) -> int:
        """How many boxes boxes_of() makes."""
        return math.prod(len(runs(a)[0]) for a in self.axes)


def orthogonal(key: Any, shape: tuple[int, ...]) -> Orthogonal:
    axes: list[Index | range] = []
    kept = []
    for axis, item in enumerate(expand(key, len(shape))):
        if item is None:
            raise IndexError("None adds no axis here: add it to the result")
        if isinstance(item, slice):
            if item.step is not None and item.step < 1:
                raise IndexError("a negative step does not go with index arrays: reverse the result")
            axes.append(range(*item.indices(shape[axis])))
        elif is_fancy(item):
            axes.append(index_array(item, shape[axis], axis, flat=True))
        else:
            at = integer(item, shape[axis], axis)
            axes.append(range(at, at + 1))
            continue
        kept.append(axis)
    return Orthogonal(axes, tuple(kept))


def coordinates(key: Any, shape: tuple[int, ...]) -> tuple[Index, ...]:
    """The positions of points, one array for each axis, broadcast together."""
    items = key if isinstance(key, tuple) else (key,)
    if len(items) == 1 and len(shape) != 1 or len(items) != len(shape):
        raise IndexError(f"points need an index or an index array for each of the {len(shape)} dimensions, "
                         "or a mask of the array's shape")
    if any(isinstance(item, slice) or item is None or item is Ellipsis for item in items):
        raise IndexError("points take integers and index arrays: use .oindex for slices")
    found = [index_array(item, n, axis) if is_fancy(item) else np.asarray(integer(item, n, axis), np.int64)
             for axis, (item, n) in enumerate(zip(items, shape))]
    try:
        return tuple(np.broadcast_arrays(*found))
    except ValueError:
        raise IndexError("the index arrays do not go together: their shapes are "
                         + " ".join(str(f.shape) for f in found)) from None


def mask(key: Any, shape: tuple[int, ...]) -> tuple[Index, ...]:
    """The positions where a mask of the array's shape is true, in C order."""
    given = np.asarray(key[0] if isinstance(key, tuple) and len(key) == 1 else key)
    if given.dtype != bool or given.shape != shape:
        raise IndexError(f"the mask has shape {given.shape} and type {given.dtype}: it must be of booleans "
                         f"with the array's shape {shape}")
    return np.nonzero(given)


def blocks(key: Any, shape: tuple[int, ...], grid: tuple[int, ...]) -> tuple[slice, ...]:
    """The slices that integers or slices of chunk numbers mean. Chunks are all of one shape."""
    made = []
    for axis, item in enumerate(expand(key, len(shape))):
        n = -(-shape[axis] // grid[axis]) if grid[axis] else 0
        if isinstance(item, slice):
            if item.step not in (None, 1):
                raise IndexError("slices of blocks have step 1")
            first, stop, _ = item.indices(n)
        else:
            first = integer(item, n, axis)
            stop = first + 1
        made.append(slice(min(first * grid[axis], shape[axis]),
                          min(max(first, stop) * grid[axis], shape[axis])))
    return tuple(made)


# ---- boxes for the library ----------------------------------------------------

def memory_of(a: np.ndarray[Any, Any]) -> tuple[int, int, int]:
    """The lowest address of an array's memory, its length in bytes, and where the first element is in it."""
    at: int = a.__array_interface__["data"][0]
    low = high = 0
    for n, stride in zip(a.shape, a.strides):
        if n == 0:
            return at, 0, 0
        if stride < 0:
            low += (n - 1) * stride
        else:
            high += (n - 1) * stride
    return at + low, high - low + a.itemsize, -low


def memory_for(shapes: list[Any], item: int) -> tuple[np.ndarray[Any, Any], list[np.ndarray[Any, Any]]]:
    """Memory for boxes one after the other, and that of each."""
    sizes = [math.prod(shape) * item for shape in shapes]
    raw = np.empty(sum(sizes), np.uint8)
    return raw, np.split(raw, np.cumsum(sizes)[:-1])


class Boxes:
    """n boxes of one array and their memory, for py_read and py_write. Keep it until the call is over."""

    def __init__(self, array: Any, start: Any, count: Any, step: Any, data: Any, length: Any, offset: Any,
                 strides: Any, keep: Any = None) -> None:
        n, ndim = np.shape(start)
        self.n, self.keep = n, keep
        self.sels, self.buffers, self.ios = np.zeros(n, _SEL), np.zeros(n, _BUFFER), np.zeros(n, _IO)
        self.sels["size"], self.sels["ndim"] = _SEL.itemsize, ndim
        self.sels["start"][:, :ndim], self.sels["count"][:, :ndim] = start, count
        self.sels["step"][:, :ndim] = step
        self.buffers["size"] = _BUFFER.itemsize
        self.buffers["data"], self.buffers["len"], self.buffers["offset"] = data, length, offset
        if strides is not None:  # one row for all, or one for each
            self.strides = np.zeros((len(strides), max(ndim, 1)), np.int64)
            self.strides[:, :ndim] = strides
            self.buffers["strides"] = _addresses(self.strides, n if len(strides) > 1 else 1)
        self.ios["size"], self.ios["array"] = _IO.itemsize, int(ffi.cast("uintptr_t", array))
        self.ios["sel"], self.ios["buffer"] = _addresses(self.sels, n), _addresses(self.buffers, n)
        self.io = ffi.cast("brc_io *", ffi.from_buffer(self.ios))

    @classmethod
    def laid(cls, array: Any, boxes: list[Box], fulls: list[np.ndarray[Any, Any]]) -> Boxes:
        """Boxes and arrays with all their axes, also strided."""
        memory = np.array([memory_of(f) for f in fulls], np.int64)
        return cls(array, *_corners(boxes), memory[:, 0], memory[:, 1], memory[:, 2],
                   [f.strides for f in fulls], fulls)

    @classmethod
    def packed(cls, array: Any, boxes: list[Box], raw: list[np.ndarray[Any, Any]]) -> Boxes:
        """Boxes and flat arrays of their elements' bytes."""
        data = np.array([r.__array_interface__["data"][0] for r in raw], np.uint64)
        return cls(array, *_corners(boxes), data, [len(r) for r in raw], 0, None, raw)


def _corners(boxes: list[Box]) -> tuple[Any, Any, Any]:
    n = len(boxes)
    return (np.array([b.start for b in boxes]).reshape(n, -1),
            np.array([b.many for b in boxes]).reshape(n, -1),
            np.array([b.step for b in boxes]).reshape(n, -1))


def _addresses(a: np.ndarray[Any, Any], n: int) -> Any:
    return a.__array_interface__["data"][0] + np.arange(n, dtype=np.uint64) * np.uint64(a.strides[0])


def in_batches(pieces: Iterable[Piece], item: int) -> Iterator[list[Piece]]:
    """So many pieces at once as temporary memory is for."""
    some: list[Piece] = []
    size = 0
    for piece in pieces:
        if some and (size + piece.size * item > TEMPORARY or len(some) == BLOCK):
            yield some
            some, size = [], 0
        some.append(piece)
        size += piece.size * item
    if some:
        yield some


def runs(axis: Index | range) -> tuple[Index, Index, int]:
    """Where runs of positions begin and how long they are, and their step: slices are one run, an index array
    as many as it has runs of neighbours."""
    if isinstance(axis, range):
        return np.array([axis.start]), np.array([len(axis)]), axis.step
    breaks = np.flatnonzero(np.diff(axis) != 1) + 1
    first = np.concatenate(([0], breaks))
    return first, np.diff(np.concatenate((first, [len(axis)]))), 1


def is_in_runs(sel: Orthogonal, chunk: tuple[int, ...]) -> bool:
    """Whether it is as well to read and write each run by itself: no chunk has more than one, or about so."""
    many = one = 1
    for axis, size in zip(sel.axes, chunk):
        if not isinstance(axis, range):
            many *= 1 + int(np.count_nonzero(np.diff(axis) != 1))
            one *= 1 + int(np.count_nonzero(np.diff(axis // size)))
    return many <= one


def boxes_of(sel: Orthogonal, target: np.ndarray[Any, Any], array: Any) -> Iterator[Boxes]:
    """The boxes of an orthogonal selection that is not empty, in C order, each laid down where it belongs in
    `target`, which has all axes."""
    parts = [runs(a) for a in sel.axes]
    shape = tuple(len(p[0]) for p in parts)
    low, length, origin = memory_of(target)
    total = math.prod(shape)
    for begin in range(0, total, BLOCK):
        n = min(BLOCK, total - begin)
        which = np.unravel_index(np.arange(begin, begin + n), shape) if shape else ()
        start, count = np.empty((n, len(shape)), np.int64), np.empty((n, len(shape)), np.int64)
        offset = np.full(n, origin, np.int64)
        for i, (axis, (first, many, _), w) in enumerate(zip(sel.axes, parts, which)):
            count[:, i] = many[w]
            if isinstance(axis, range):
                start[:, i] = axis.start
            else:
                start[:, i] = axis[first[w]]
                offset += first[w] * target.strides[i]
        yield Boxes(array, start, count, [p[2] for p in parts], low, length, offset, [target.strides])


class Piece(NamedTuple):
    """The part of a selection that lies in one chunk: a box around it, and what is where in the box and
    the result."""

    box: Box
    inner: Any
    outer: Any

    @property
    def size(self) -> int:
        return math.prod(self.box.many)


def _groups(axis: Index | range, size: int) -> list[tuple[int, int, int, Any, Any]]:
    """Of one axis, chunk by chunk: (start, count, step, places in the box, places in the result)."""
    if isinstance(axis, range):
        made, at = [], 0
        while at < len(axis):
            n = min(len(axis) - at, ((axis[at] // size + 1) * size - axis[at] - 1) // axis.step + 1)
            made.append((axis[at], n, axis.step, slice(0, n), slice(at, at + n)))
            at += n
        return made
    order = np.argsort(axis // size, kind="stable")
    found = []
    for places in np.split(order, np.flatnonzero(np.diff(axis[order] // size)) + 1):
        part = axis[places]
        low = int(part.min())
        found.append((low, int(part.max()) - low + 1, 1, part - low, places))
    return found


def pieces_of(sel: Orthogonal, chunk: tuple[int, ...]) -> Iterator[Piece]:
    """An orthogonal selection that is not empty, chunk by chunk; the result has all axes."""
    several = sum(not isinstance(a, range) for a in sel.axes) > 1

    def index(items: tuple[Any, ...]) -> Any:
        if not several:
            return items
        return np.ix_(*(np.arange(i.start, i.stop) if isinstance(i, slice) else i for i in items))

    for parts in itertools.product(*(_groups(a, c) for a, c in zip(sel.axes, chunk))):
        start, many, step, inner, outer = zip(*parts) if parts else ((), (), (), (), ())
        yield Piece(Box(list(start), list(many), list(step), many, None, None), index(inner), index(outer))


def pieces_of_points(points: tuple[Index, ...], chunk: tuple[int, ...]) -> Iterator[Piece]:
    """Points chunk by chunk, in C order within each; the result is flat."""
    flat = [np.ascontiguousarray(p).ravel() for p in points]
    columns = [f // c for f, c in zip(flat, chunk)]
    order = np.lexsort(columns[::-1])
    ends = np.zeros(max(len(order) - 1, 0), bool)
    for column in columns:
        ends |= np.diff(column[order]) != 0
    for places in np.split(order, np.flatnonzero(ends) + 1):
        parts = [f[places] for f in flat]
        low = [int(p.min()) for p in parts]
        many = [int(p.max()) - n + 1 for p, n in zip(parts, low)]
        yield Piece(Box(low, many, [1] * len(low), tuple(many), None, None),
                    tuple(p - n for p, n in zip(parts, low)), places)


def last_of_each(axis: Index) -> Index:
    """Positions within an index array: of each index the last one, ordered by index."""
    _, found = np.unique(axis[::-1], return_index=True)
    return len(axis) - 1 - found
