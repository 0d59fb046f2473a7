"""Selections as Zarr has them (basic, orthogonal, coordinate, mask, block): which elements they select, and the shape
of the result. Index arrays of the caller are never changed."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ._errors import InvalidError, WrongTypeError

AnyArray = np.ndarray[Any, Any]
OTHERS = {type(None), type(...)}  # items of an index that select along no axis
FORWARDS, BACKWARDS = slice(None), slice(None, None, -1)


class Selection(NamedTuple):
    """The elements that an index selects. An axis has an index array, or the first element, the number and the step.
    """

    axes: Sequence[Any]
    shape: tuple[int, ...]  # of the result
    back: tuple[Any, ...] | None  # the index that gives a result all axes of the array; None: a selection of points
    box: list[int] | None = None  # first, number and step of each axis; None: there are index arrays

    def full(self, result: AnyArray) -> AnyArray:
        """Returns the result with all axes of the array, in the array's direction; a selection of points has one
        axis."""
        return result[self.back] if self.back is not None else result.reshape(-1)


def expand(key: Any, ndim: int) -> Sequence[Any]:
    """Returns the items of an index without `...`, one for each axis (and for each new axis)."""
    if type(key) is tuple and len(key) == ndim and OTHERS.isdisjoint(map(type, key)):
        return key
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
    """Returns a single index, counted from the end if negative."""
    if isinstance(item, (bool, np.bool_)):
        raise IndexError("True and False select nothing here: use a mask of the array's shape")
    try:
        value = operator.index(item)
    except TypeError:
        raise IndexError(f"{item!r} is not a valid index: use an integer, a slice, '...', None, or an array") from None
    if not -length <= value < length:
        raise IndexError(f"index {value} is out of bounds for axis {axis} with size {length}")
    return value + length if value < 0 else value


def extents(shape: Any) -> tuple[int, ...]:
    """Returns a shape, which is given as a length or as one length for each axis."""
    try:
        made = tuple(map(operator.index, shape if np.iterable(shape) else (shape,)))
    except TypeError:
        raise WrongTypeError(f"a shape has integers, and cannot be {shape!r}") from None
    if made and not 0 <= min(made) <= max(made) < 1 << 63:
        raise InvalidError(f"a shape cannot be {made}: no length is negative, or 2**63 and more")
    return made


def is_fancy(item: Any) -> bool:
    """Returns whether an item is an index array, or becomes one in NumPy."""
    return isinstance(item, (list, range)) or getattr(item, "ndim", 0) > 0 or (
        isinstance(item, np.ndarray) and item.dtype == bool)


def index_array(item: Any, length: int, axis: int) -> AnyArray:
    """Returns an index array, or a mask of one axis, as positions, which may be negative."""
    given = np.asarray(item, np.int64 if isinstance(item, list) and not item else None)
    if given.dtype == bool:
        if given.shape != (length,):
            raise IndexError(f"the mask of axis {axis} has shape {given.shape}, but needs {length} elements")
        return np.flatnonzero(given)
    if given.dtype.kind not in "iu":
        raise IndexError(f"index arrays are of integers or booleans, not {given.dtype}")
    for value in (given.min(), given.max()) if given.size else ():
        integer(value, length, axis)
    return given.astype(np.int64, order="C", copy=False)


def by_axis(key: Any, shape: tuple[int, ...]) -> Selection:
    """Selects along each axis by itself: integers, slices, `...`, None, index arrays and masks of one axis."""
    axes: list[Any] = []
    out: list[int] = []
    back: list[Any] = []
    simple = True
    for item in expand(key, len(shape)):
        axis = len(axes)
        if item is None:
            out.append(1)
            back.append(0)
        elif type(item) is slice:
            start, stop, step = item.indices(shape[axis])
            n = len(range(start, stop, step))
            back.append(FORWARDS if step > 0 else BACKWARDS)
            if step < 0:  # the last element comes first
                start, step = start + (n - 1) * step, -step
            axes.append((start if n else 0, n, step if n > 1 else 1))
            out.append(n)
        elif is_fancy(item):
            axes.append(index_array(item, shape[axis], axis))
            simple = False
            if axes[-1].ndim != 1:
                raise IndexError(f"the index array of axis {axis} has {axes[-1].ndim} dimensions, not one")
            out.append(len(axes[-1]))
            back.append(FORWARDS)
        else:
            axes.append((integer(item, shape[axis], axis), 1, 1))
            back.append(None)
    return Selection(axes, tuple(out), (*back, ...), [n for axis in axes for n in axis] if simple else None)


def points(key: Any, shape: tuple[int, ...]) -> Selection:
    """Selects points, by integers and index arrays that are broadcast together, or by a mask of the array's shape."""
    items = key if isinstance(key, tuple) else (key,)
    mask = np.asarray(items[0] if len(items) == 1 else 0)
    if mask.dtype == bool:
        if mask.shape != shape or not shape:
            raise IndexError(f"the mask has shape {mask.shape}: it must have the array's shape {shape}")
        return Selection(np.nonzero(mask), (int(np.count_nonzero(mask)),), None)
    if len(items) != len(shape):
        raise IndexError(f"points need an index for each of the {len(shape)} axes, or a mask of the array's shape")
    if any(isinstance(item, slice) or item is None or item is Ellipsis for item in items):
        raise IndexError("points take integers and index arrays: use .oindex for slices")
    found = [index_array(item, n, axis) if is_fancy(item) else np.asarray(integer(item, n, axis))
             for axis, (item, n) in enumerate(zip(items, shape))]
    try:
        together = np.broadcast_arrays(*found)
    except ValueError:
        raise IndexError(f"index arrays of shapes {' '.join(str(f.shape) for f in found)} do not go together") from None
    return by_axis((), shape) if not found else Selection([f.reshape(-1) for f in together], together[0].shape, None)


def begins(lengths: Any, extent: int) -> Any:
    """Returns where the chunks of an axis begin, and where the last ends. `lengths`: one for all, or one for each, as
    in zarr.json."""
    if isinstance(lengths, int):
        return range(0, extent + lengths, lengths)
    runs = [one if isinstance(one, list) else (one, 1) for one in lengths]
    found = np.append(0, np.cumsum(np.repeat(*np.transpose(runs))))
    return found[:np.searchsorted(found, extent) + 1]


def blocks(key: Any, shape: tuple[int, ...], grid: Sequence[Any]) -> Selection:
    """Selects chunks by their numbers. `grid` has the lengths of chunks along each axis."""
    at = [begins(lengths, extent) for lengths, extent in zip(grid, shape)]
    sel = by_axis(key, tuple(len(axis) - 1 for axis in at))
    if any(type(axis) is not tuple or axis[2] != 1 for axis in sel.axes) or any(
            item not in (None, FORWARDS, ...) for item in sel.back or ()):
        raise IndexError("blocks are integers and slices without a step")
    return by_axis(tuple(slice(axis[first], axis[first + n]) for (first, n, _), axis in zip(sel.axes, at)), shape)


def plain(key: Any, shape: tuple[int, ...]) -> Selection:
    """Returns the selection of plain brackets."""
    given = tuple(item for item in key if item is not Ellipsis) if isinstance(key, tuple) else (key,)
    items = [item for item in given if item is not None]
    fancy = [item for item in items if is_fancy(item)]
    flat = all(np.ndim(item) == 1 for item in fancy)
    if flat and len(fancy) < 2:
        return by_axis(key, shape)
    if len(items) == 1 or len(items) == len(shape) and all(
            np.asarray(item).dtype != bool if is_fancy(item) else hasattr(item, "__index__") for item in items):
        return points(given, shape)
    if flat and len(fancy) == len(shape):
        return by_axis(key, shape)
    raise IndexError("index arrays and slices do not go together: use .oindex for each axis, or .vindex for points")
