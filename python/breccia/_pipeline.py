"""Turns the chunks that zarr asks `breccia.zarr.CodecPipeline` for into one selection of the array. zarr gives a
selection chunk by chunk: for each chunk its key, the elements that are selected in it, and their place in the
caller's array. Along each axis these parts are joined again, in the order of the caller's elements; the library does
the rest."""
from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import zarr.abc.codec
from zarr.core.buffer.cpu import NDBuffer

from . import _elements
from ._breccia import ffi, lib
from ._elements import Form
from ._errors import InvalidError, NotFoundError, UnsupportedError
from ._indexing import AnyArray, Selection
from ._native import Handle, text

INLINE = 256 << 10  # the most bytes of chunks that are read without another thread
ZEROS_DIFFER = not NDBuffer.from_numpy_array(np.array([-0.0])).all_equal(0.0)  # from zarr 3.1 on
HAS_STATUS = hasattr(zarr.abc.codec, "GetResult")  # from zarr 3.2 on


class Aside(Exception):
    """Raised for a selection that zarr's own pipeline must handle."""


ELSEWHERE = Aside, NotFoundError, UnsupportedError, InvalidError  # unknown to the library, or changed since


# ---- the array ----


def native_order(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if dtype.kind == "T" else dtype.newbyteorder("=")


class Target:
    """The array that zarr means, and the places of the chunks in its grid."""

    def __init__(self, native: Handle, batch: Sequence[Any], flag: int, ask: bool = False) -> None:
        spec, n, ndim = batch[0][1], len(batch), len(batch[0][1].shape)
        names = [text(getter.path) for getter, *_ in batch]
        index, there = ffi.new("uint64_t[]", n * ndim + 1), ffi.new("uint8_t[]", n) if ask else ffi.NULL
        self.path = native.take_buf(lib.brc_key_places, index, there, native.session,
                                    ffi.new("char *[]", names), n, ndim).decode()
        self.places = [tuple(index[i * ndim:(i + 1) * ndim]) for i in range(n)]
        self.there = bytes(ffi.buffer(there)) if ask else b""
        self.form = Form.of(native, self.path)
        info = lib.brc_array_describe(native.array(self.path))
        asked = spec.dtype if isinstance(spec.dtype, np.dtype) else spec.dtype.to_native_dtype()
        outer, self.chunk = tuple((info.shard or info.chunk)[0:ndim]), tuple(info.chunk[0:ndim])
        if (self.form.dtype != native_order(asked) or outer != tuple(spec.shape)
                or not info.flags & flag or not info.flags & lib.BRC_ARRAY_REGULAR
                or any(other is not spec and other.shape != spec.shape for _, other, *_ in batch)):
            raise Aside
        self.fill = bytes(ffi.buffer(info.fill, self.form.item))


# ---- the selection ----


def positions(item: Any, length: int, first: int = 0) -> Any:
    """Returns one of zarr's selectors of an axis as a range or an index array, counted from `first` on."""
    if isinstance(item, (int, np.integer)):
        return range(first + int(item), first + int(item) + 1)
    if isinstance(item, slice):
        start, stop, step = item.indices(length)
        return range(first + start, first + stop, step)
    if isinstance(item, np.ndarray) and item.size:
        return (np.flatnonzero(item) if item.dtype == bool else item.reshape(-1).astype(np.int64)) + first
    raise Aside


def in_order(parts: Sequence[Any], goes: Sequence[Any], length: int | None) -> Any:
    """Joins the parts of a selection along an axis, in the order of the caller's elements, in the form of Selection.
    `length` is that of all parts; None: one value is for all."""
    n, start, step = 0, getattr(parts[0], "start", 0), getattr(parts[0], "step", 0)
    for index, to in zip(parts, goes or parts):
        if type(index) is not range or (index.start, index.step) != (start + n * step, step) or (
                length is not None and to != range(n, n + len(index))):
            break
        n += len(index)
    else:
        if length not in (None, n):
            raise Aside
        return start, n, step
    made = np.concatenate([np.asarray(index, np.int64) for index in parts])
    if length is None:
        return made
    places = np.concatenate([np.asarray(to, np.int64) for to in goes])
    ordered = np.full(length, -1)
    if not len(made) == len(places) == length:
        raise Aside
    ordered[places] = made
    if ordered.min() < 0:
        raise Aside
    return ordered


def selected(batch: Sequence[Any], target: Target, shape: tuple[int, ...] | None, drop: tuple[int, ...]) -> Selection:
    """Returns the selection that zarr means: points, or a product of the axes' parts. `shape` is that of the caller's
    array; None: one value is for all."""
    _, spec, items, *_ = batch[0]
    items = items if isinstance(items, tuple) else (items,)
    points = len(items) > 1 and all(isinstance(i, np.ndarray) and i.ndim == 1 for i in items)
    kept = [i for i, item in enumerate(items) if i not in drop and not isinstance(item, (int, np.integer))]
    where = [0 if points else kept.index(i) if i in kept else None for i in range(len(items))]
    wanted = 1 if points else len(kept)
    if shape is not None and len(shape) != wanted:
        raise Aside
    parts: list[dict[int, Any]] = [{} for _ in where]  # by axis and chunk
    goes: list[dict[int, Any]] = [{} for _ in range(wanted)]
    for number, ((_, _, items, out, _), place) in enumerate(zip(batch, target.places)):
        items, out = (one if isinstance(one, tuple) else (one,) for one in (items, out))
        if len(items) != len(spec.shape) or len(out) != wanted:
            raise Aside
        for item, at, n, to, found in zip(items, place, spec.shape, where, parts):
            key = number if points else at
            if key not in found:
                found[key] = positions(item, n, at * n)
                if shape is not None and to is not None and key not in goes[to]:
                    goes[to][key] = positions(out[to], shape[to])
    axes = [in_order([*found.values()], [] if to is None else [*goes[to].values()],
                     None if shape is None or to is None else shape[to]) for found, to in zip(parts, where)]
    sizes = [axis[1] if type(axis) is tuple else len(axis) for axis in axes]
    if points and len({*sizes}) == 1:
        return Selection(axes, (sizes[0],), None)
    if points or math.prod(map(len, parts)) != len({*target.places}) or any(
            n != 1 for n, to in zip(sizes, where) if to is None):
        raise Aside
    return Selection(axes, tuple(n for n, to in zip(sizes, where) if to is not None),
                     (*(None if to is None else slice(None) for to in where), ...))


# ---- reading and writing ----


def read_now(native: Handle, batch: Sequence[Any], out: Any, drop: tuple[int, ...]) -> Any:
    target = Target(native, batch, lib.BRC_ARRAY_READABLE, HAS_STATUS)
    whole = out.as_ndarray_like()
    if not target.form.item or native_order(out.dtype) != target.form.dtype:
        raise Aside  # a field, or strings, which zarr's own pipeline reads faster
    plain = type(whole) in (np.ndarray, np.memmap)
    selection = selected(batch, target, tuple(out.shape), drop)
    found = _elements.read(native, target.path, selection, target.form, whole if plain else None, False)
    if found is None:
        raise Aside  # the array was replaced
    if not plain:
        out[(slice(None),) * len(out.shape)] = batch[0][1].prototype.nd_buffer.from_numpy_array(found)
    return tuple({"status": "present" if one else "missing"} for one in target.there) if HAS_STATUS else None


def write_now(native: Handle, batch: Sequence[Any], value: Any, drop: tuple[int, ...]) -> None:
    target = Target(native, batch, lib.BRC_ARRAY_WRITABLE)
    memory, form = value.as_numpy_array(), target.form
    # zarr's own pipeline is faster for strings, but may overwrite the rest of a chunk that others wrote meanwhile.
    if batch[0][1].config.write_empty_chunks or (
            native_order(memory.dtype) != form.dtype if form.item else all(whole for *_, whole in batch)):
        raise Aside
    memory = np.asarray(memory, form.dtype)
    selection = selected(batch, target, memory.shape if memory.ndim else None, drop)
    doubtful = [at for (_, spec, _, to, _), at in zip(batch, target.places) if is_doubtful(memory, target, spec, to)]
    with native.transaction() if doubtful else nullcontext():
        _elements.write(native, target.path, selection, form, np.broadcast_to(memory, selection.shape))
        for at in doubtful:
            settle(native, target, batch[0][1], at)


def is_doubtful(memory: AnyArray, target: Target, spec: Any, out: Any) -> bool:
    """Returns whether zarr may take the chunk for fill value, and leave it out, although its bits differ from
    those of the fill value: zarr compares numbers, for which all NaNs, and perhaps both zeros, are equal."""
    fill, dtype = spec.fill_value, memory.dtype
    if dtype.kind not in "fc" and not dtype.names or dtype.kind == "f" and fill == fill and (fill != 0 or ZEROS_DIFFER):
        return False
    part = memory[out] if memory.ndim else memory
    one, first = np.asarray(fill, dtype)[()], next(iter(part.flat), None)
    return bool(first == one or first != first and one != one) and part.tobytes() != target.fill * part.size and (
        bool(spec.prototype.nd_buffer.from_numpy_array(part).all_equal(fill)))


def settle(native: Handle, target: Target, spec: Any, place: tuple[int, ...]) -> None:
    """Gives a chunk (each one in a shard) that zarr takes for fill value the bits of the fill value."""
    axes = [(at * n, min(n, length - at * n), 1) for at, n, length in zip(place, spec.shape, target.form.shape)]
    selection = Selection(axes, tuple(n for _, n, _ in axes), (...,))
    found = _elements.read(native, target.path, selection, target.form, None, True)
    for first in np.ndindex(*(-(-n // chunk) for n, chunk in zip(found.shape, target.chunk))):
        part = found[(*(slice(i * n, (i + 1) * n) for i, n in zip(first, target.chunk)), ...)]
        if spec.prototype.nd_buffer.from_numpy_array(part).all_equal(spec.fill_value):
            part[...] = np.frombuffer(target.fill, part.dtype)[0]
    _elements.write(native, target.path, selection, target.form, found)


async def read(batch: Sequence[Any], out: Any, drop: tuple[int, ...]) -> Any:
    """Returns zarr's status of each chunk."""
    store, spec = batch[0][0].store, batch[0][1]
    small = len(batch) * math.prod(spec.shape) * out.dtype.itemsize <= INLINE
    return await (store._peek if small else store._run)(read_now, batch, out, drop)


async def write(batch: Sequence[Any], value: Any, drop: tuple[int, ...]) -> None:
    store = batch[0][0].store
    store._check_writable()
    await store._run(write_now, batch, value, drop)
