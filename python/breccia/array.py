"""Arrays: NumPy's indexing on what a session shows."""
from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _dtypes, _errors, _indexing
from ._attributes import Attributes
from ._breccia import ffi, lib
from ._indexing import Boxes
from ._native import Native, sized, string, text

if TYPE_CHECKING:
    from .session import Session

AnyArray = np.ndarray[Any, Any]
_BUFFERED = "?bhilqBHILQefdFD"  # what ffi.from_buffer takes as it is
_AT = ffi.offsetof("brc_sel", "start"), ffi.offsetof("brc_sel", "count"), ffi.offsetof("brc_sel", "step")


class _Form(NamedTuple):
    """What is remembered of an array. `native` is the same for the library, which says when it is out of date."""

    shape: tuple[int, ...]
    name: str
    item: int
    dtype: np.dtype[Any]
    plain: bool
    packers: struct.Struct
    native: Any
    keep: Any


class Array:
    """One array of a session. Indexing reads and writes the file; what comes back is NumPy's and yours.

    `a[...]` takes integers, slices (also with negative steps), `...`, None, one index array or mask among them,
    index arrays for all axes (points), or a mask of the array's shape. `a.oindex`, `a.vindex` and `a.blocks` say
    which is meant. Integers drop their axis, so `a[3]` of one dimension is a scalar. Writes broadcast, and of
    elements that are written twice the last in C order stays. An operation needs memory for what is selected.
    May be used from several threads at once; a call that selects nothing wrong but finds another array than
    before (another process resized it) works with what is there.
    """

    __slots__ = ("session", "path", "_form", "_sessions", "_fixed", "__weakref__")

    def __init__(self, session: Session, path: str) -> None:
        self.session, self.path = session, path
        self._sessions = session._sessions
        self._fixed = session.fixed  # a commit: nobody changes it
        self._form = self._read_form()

    # ---- what it is ----

    def _read_form(self, native: Native | None = None) -> _Form:
        if native is None:
            with self._sessions.at_work() as native:
                return self._read_form(native)
        info = self._fresh_info(native)
        shape = tuple(info.shape[i] for i in range(info.ndim))
        name, item = string(info.dtype), info.item_size
        try:
            dtype = _dtypes.to_numpy(name)
        except _errors.UnsupportedError:
            dtype = np.dtype("V0")
        if item and dtype.itemsize != item:
            dtype = np.dtype("V0")
        keep = text(name)
        form = ffi.new("py_form *", {"ndim": len(shape), "dtype": keep, "shape": shape})
        return _Form(shape, name, item, dtype, bool(item) and dtype.char in _BUFFERED,
                     struct.Struct(f"={len(shape)}Q"), form, keep)

    def _fresh_info(self, native: Native) -> Any:
        """The library's description, which a call brings up to date: reading nothing is one."""
        array = native.array(self.path)
        info = lib.brc_array_describe(array)
        if not self._fixed and info.flags & lib.BRC_ARRAY_READABLE and info.item_size:
            sel = sized("brc_sel")
            lib.brc_sel_all(sel, array)
            if info.ndim:
                sel.count[0] = 0
                rc = lib.brc_array_read(array, sel, ffi.NULL, 0, native.handle.err)
                if rc < 0:
                    native.forget(self.path)
                    array = native.array(self.path)
            info = lib.brc_array_describe(array)
        return info

    def _now(self) -> _Form:
        """What the array is now."""
        if not self._fixed:
            with self._sessions.at_work() as native:
                if not lib.py_same(native.array(self.path), self._form.native) or self._fresh_info(native) and \
                        not lib.py_same(native.array(self.path), self._form.native):
                    self._form = self._read_form(native)
        return self._form

    @property
    def shape(self) -> tuple[int, ...]:
        return self._now().shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of the elements. Raises UnsupportedError where there is none."""
        return self._readable(self._form).dtype

    @property
    def data_type(self) -> str:
        """Zarr's name of the type, or its JSON object."""
        return self._form.name

    @property
    def ndim(self) -> int:
        return len(self._form.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements in memory; of variable length, of NumPy's array of them."""
        return self.size * self.dtype.itemsize

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def _described(self, read: Any) -> Any:
        with self._sessions.at_work() as native:
            return read(self._fresh_info(native))

    @property
    def chunks(self) -> tuple[int, ...]:
        """The shape of the chunks; of a sharded array, of those within the shards."""
        n = len(self._form.shape)
        return tuple(self._described(lambda info: [info.chunk[i] for i in range(n)]))

    @property
    def shards(self) -> tuple[int, ...] | None:
        n = len(self._form.shape)
        found = self._described(lambda info: [info.shard[i] for i in range(n)] if info.shard else None)
        return None if found is None else tuple(found)

    @property
    def cdata_shape(self) -> tuple[int, ...]:
        """How many chunks there are along each axis."""
        n = len(self._form.shape)
        return tuple(self._described(lambda info: [info.grid[i] for i in range(n)]))

    @property
    def codecs(self) -> list[dict[str, Any]]:
        """The codecs of chunks that are written from now on, as zarr.json has them. Setting them leaves stored
        chunks as they are; `set_codecs(codecs, rewrite=True)` stores them anew."""
        return list(json.loads(self._described(lambda info: string(info.codecs_json))))

    @codecs.setter
    def codecs(self, value: Any) -> None:
        self.set_codecs(value)

    def set_codecs(self, value: Any, *, rewrite: bool = False) -> None:
        """Codecs for chunks that are written from now on; with `rewrite` also for those that are stored."""
        given = value if isinstance(value, str) else json.dumps(value)
        self._change(lib.brc_array_set_codecs, text(given), int(rewrite))

    @property
    def backend(self) -> dict[str, Any]:
        """Where chunks go that are written from now on: {"name": ..., "configuration": ...}. Can be set, also by
        the name alone."""
        return dict(json.loads(self._described(lambda info: string(info.backend_json))))

    @backend.setter
    def backend(self, value: Any) -> None:
        given = value if value is None or isinstance(value, str) else json.dumps(value)
        self._change(lib.brc_array_set_backend, text(given))

    @property
    def fill_value(self) -> Any:
        """What elements are that were never written, as NumPy's scalar, to the bit."""
        dtype, name, item = self.dtype, self._form.name, self._form.item
        with self._sessions.at_work() as native:
            info = self._fresh_info(native)
            size = item or 4 + int.from_bytes(ffi.buffer(info.fill, 4), "little")
            raw = bytes(ffi.buffer(info.fill, size))
        return (np.frombuffer(raw, dtype) if item else _dtypes.unpack(raw, 1, name))[0]

    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        found = self.metadata.get("dimension_names")
        return None if found is None else tuple(found)

    @property
    def metadata(self) -> dict[str, Any]:
        """The array's zarr.json."""
        with self._sessions.at_work() as native:
            return dict(json.loads(native.handle.take_buf(lib.brc_node_json, native.session, text(self.path))))

    @property
    def attrs(self) -> Attributes:
        """The attributes, as a mapping that can be changed."""
        return Attributes(self.session, self.path)

    def _stat(self) -> tuple[int, int]:
        out = ffi.new("uint64_t[2]")
        with self._sessions.at_work() as native:
            native.handle.call(lib.brc_array_stat, out, out + 1, native.array(self.path))
        return int(out[0]), int(out[1])

    @property
    def nchunks_initialized(self) -> int:
        """How many chunks are stored: those of fill values alone are not."""
        return self._stat()[0]

    @property
    def nbytes_stored(self) -> int:
        """How many bytes the chunks take in the file."""
        return self._stat()[1]

    @property
    def info(self) -> str:
        """What the array is, in lines for people."""
        from ._display import array_info
        return array_info(self)

    # ---- reading ----

    def __getitem__(self, key: Any) -> Any:
        for item in key if type(key) is tuple else (key,):
            if type(item) is not slice and type(item) is not int and item is not Ellipsis:
                return self._get(key, None)
        return self._get_box(key, None)

    def get(self, key: Any = ..., *, out: AnyArray | None = None) -> Any:
        """What `a[key]` gives, in `out` where it is given: any array of NumPy's of the same shape, also with
        strides. If it has another type, elements are cast as by NumPy's assignment."""
        return self._get(key, out)

    def _get(self, key: Any, out: AnyArray | None) -> Any:
        names, key = self._names_in(key)
        if names is not None:
            found = self._get(key, None)[names]
            return found if out is None else self._filled(out, found)
        kind = _indexing.kind_of(key, self.ndim)
        if kind == "basic":
            return self._get_box(key, out)
        if kind == "orthogonal":
            return self._get_orthogonal(key, out)
        return self._get_points(kind, key, out)

    def _names_in(self, key: Any) -> tuple[Any, Any]:
        """The fields in an index, "a" or ["a", "b"], and what is left of it."""
        items = key if isinstance(key, tuple) else (key,)
        found = [i for i in items if isinstance(i, str) or isinstance(i, list) and i
                 and all(isinstance(n, str) for n in i)]
        if not found:
            return None, key
        if self.dtype.names is None or len(found) > 1:
            raise IndexError(f"{self.path} has no fields" if len(found) == 1 else "fields are one name or one list")
        for name in [found[0]] if isinstance(found[0], str) else found[0]:
            if name not in self.dtype.names:
                raise IndexError(f"{self.path} has no field {name!r}")
        rest = tuple(i for i in items if i is not found[0])
        return found[0], rest or ...

    @staticmethod
    def _filled(out: AnyArray, value: Any) -> AnyArray:
        if out.shape != np.shape(value):
            raise ValueError(f"out has shape {out.shape}, but {np.shape(value)} is selected")
        out[...] = value
        return out

    def _readable(self, form: _Form) -> _Form:
        if form.dtype.itemsize == 0 and form.dtype.char == "V":
            _dtypes.to_numpy(form.name)
            raise _errors.UnsupportedError(f"{self.path}: elements of {form.name} cannot be read here")
        return form

    def _get_box(self, key: Any, out: AnyArray | None) -> Any:
        while True:
            form = self._form
            box = _indexing.basic(key, form.shape)
            native = self._sessions.take()
            try:
                if form.item == 0:
                    self._readable(form)
                    found = self._read_elements(native, box, form)
                    if out is None:
                        return found[()] if box.after is None else found[box.after]
                    return self._filled(out, found if box.after is None else found[box.after])
                if out is None:
                    if form.plain:
                        target = np.empty(box.shape, form.dtype)
                        memory = ffi.from_buffer(target)
                    else:
                        self._readable(form)
                        raw = np.empty(math.prod(box.count) * form.item, np.uint8)
                        target, memory = raw.view(form.dtype).reshape(box.shape), ffi.from_buffer(raw)
                    rc = lib.py_read_box(native.handle.repo, native.array(self.path), self._sel(native, box, form), memory,
                                         target.nbytes, ffi.NULL if self._fixed else form.native, native.handle.err)
                else:
                    target = self._target(out, box, form)
                    rc = self._read_into(native, box, target)
                if rc == 0:
                    if out is not None:
                        if target.base is not out and target is not out and not np.shares_memory(target, out):
                            return self._filled(out, target if box.after is None else target[box.after])
                        return out
                    if box.after is not None:
                        return target[box.after]
                    return target if box.shape else target[()]
                if rc < 0:
                    raise native.handle.failed(rc)
                self._form = self._read_form(native)
            finally:
                self._sessions.give(native)

    @staticmethod
    def _sel(native: Native, box: _indexing.Box, form: _Form) -> Any:
        """The box for the library, in memory that the native session keeps for it."""
        scratch = native.scratch
        if scratch is None:
            sel = sized("brc_sel")
            scratch = native.scratch = sel, ffi.buffer(sel)
        sel, memory = scratch
        sel.ndim = len(box.start)
        pack = form.packers.pack_into
        pack(memory, _AT[0], *box.start)
        pack(memory, _AT[1], *box.count)
        pack(memory, _AT[2], *box.step)
        return sel

    def _target(self, out: AnyArray, box: _indexing.Box, form: _Form) -> AnyArray:
        """Where a box is read to for `out`: that itself, seen as the box, if its type and memory allow."""
        self._readable(form)
        shape = box.shape if box.after is None else np.empty(box.shape, "V0")[box.after].shape
        if not isinstance(out, np.ndarray) or out.shape != shape:
            raise ValueError(f"out must be an array of NumPy's of shape {shape}, not {np.shape(out)}")
        if not out.flags.writeable:
            raise ValueError("out is read-only")
        if out.dtype != form.dtype or not out.dtype.isnative or any(s == 0 and n > 1 for s, n in
                                                                    zip(out.strides, out.shape)):
            return np.empty(box.shape, form.dtype)
        return out if box.after is None else out[_indexing.undo(box.after)]

    def _read_into(self, native: Native, box: _indexing.Box, target: AnyArray) -> int:
        full = self._full(box, target)
        low, length, origin = _indexing.memory_of(full)
        made = Boxes(native.array(self.path), np.array([box.start]), np.array([box.count]), np.array([box.step]),
                     low, length, origin, list(full.strides))
        return int(lib.py_read(native.handle.repo, made.io, 1, native.handle.err))

    @staticmethod
    def _full(box: _indexing.Box, target: AnyArray) -> AnyArray:
        """A box's array with the axes that integers dropped."""
        if box.kept is None:
            return target
        return target[tuple(slice(None) if i in box.kept else None for i in range(len(box.start)))]

    def _read_elements(self, native: Native, box: _indexing.Box, form: _Form) -> AnyArray:
        data = native.handle.take_buf_of(lib.brc_array_read_elements, native.array(self.path),
                                         self._sel(native, box, form))
        return _dtypes.unpack(data, math.prod(box.count), form.name).reshape(box.shape)

    def _get_orthogonal(self, key: Any, out: AnyArray | None) -> Any:
        form = self._readable(self._now())
        sel = _indexing.orthogonal(key, form.shape)
        size = math.prod(sel.full)
        shape = tuple(len(sel.axes[i]) for i in sel.kept)
        boxes = _indexing.count_of_runs(sel) if size else 0
        if form.item == 0 or boxes > 256 and size < 4 * boxes:
            points = tuple(np.broadcast_to(a, sel.full) for a in np.ix_(*(np.asarray(a) for a in sel.axes)))
            found = self._read_points(points, form).reshape(shape)
            return found if out is None else self._filled(out, found)
        direct = out is not None and out.dtype == form.dtype and out.shape == shape and out.dtype.isnative
        target = out if direct else np.empty(shape, form.dtype)
        assert target is not None
        if size:
            full = target[tuple(slice(None) if i in sel.kept else None for i in range(len(sel.axes)))]
            with self._sessions.at_work() as native:
                for made in _indexing.boxes_of(sel, full, native.array(self.path)):
                    self._ran(native, lib.py_read, made)
        return target if out is None or direct else self._filled(out, target)

    def _ran(self, native: Native, function: Any, made: Boxes) -> None:
        rc = function(native.handle.repo, made.io, made.n, native.handle.err)
        if rc < 0:
            raise native.handle.failed(rc)

    def _points(self, kind: str, key: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
        return (_indexing.mask if kind == "mask" else _indexing.coordinates)(key, shape)

    def _get_points(self, kind: str, key: Any, out: AnyArray | None) -> Any:
        form = self._readable(self._now())
        points = self._points(kind, key, form.shape)
        shape = points[0].shape if points else ()
        found = self._read_points(points, form).reshape(shape)
        if out is not None:
            return self._filled(out, found)
        return found if shape else found[()]

    def _read_points(self, points: tuple[Any, ...], form: _Form) -> AnyArray:
        """Elements at points, chunk by chunk: of each chunk the box around its points is read, and they are
        taken from that."""
        n = points[0].size
        out = np.empty(n, form.dtype)
        if n == 0:
            return out
        flat = [np.ascontiguousarray(p).ravel() for p in points]
        order, firsts = _indexing.by_chunk(points, self.chunks)
        ordered = [f[order] for f in flat]
        low = np.stack([np.minimum.reduceat(o, firsts) for o in ordered], axis=1)
        count = np.stack([np.maximum.reduceat(o, firsts) for o in ordered], axis=1) - low + 1
        sizes = np.prod(count, axis=1)
        ends = np.append(firsts[1:], n)
        item = form.item or 64
        begin = 0
        with self._sessions.at_work() as native:
            while begin < len(firsts):
                total = np.cumsum(sizes[begin:begin + _indexing.BLOCK]) * item
                end = begin + max(1, int(np.searchsorted(total, _indexing.TEMPORARY, side="right")))
                base = np.concatenate(([0], np.cumsum(sizes[begin:end])))
                temporary = self._read_boxes(native, low[begin:end], count[begin:end], sizes[begin:end], base, form)
                at = slice(firsts[begin], ends[end - 1])
                which = np.repeat(np.arange(end - begin), ends[begin:end] - firsts[begin:end])
                place = np.zeros(at.stop - at.start, np.int64)
                for axis, column in enumerate(ordered):
                    place = place * count[begin:end][which, axis] + column[at] - low[begin:end][which, axis]
                out[order[at]] = temporary[base[:-1][which] + place]
                begin = end
        return out

    def _read_boxes(self, native: Native, low: Any, count: Any, sizes: Any, base: Any, form: _Form) -> AnyArray:
        """Boxes one after the other, packed."""
        array = native.array(self.path)
        if form.item == 0:
            found = np.empty(int(base[-1]), form.dtype)
            for i in range(len(low)):
                box = _indexing.Box(low[i].tolist(), count[i].tolist(), [1] * len(low[i]), (int(sizes[i]),), None, None)
                found[base[i]:base[i + 1]] = self._read_elements(native, box, form)
            return found
        raw = np.empty(int(base[-1]) * form.item, np.uint8)
        made = Boxes(array, low, count, np.ones_like(low), raw.__array_interface__["data"][0] + base[:-1] * form.item,
                     sizes * form.item, 0, None)
        self._ran(native, lib.py_read, made)
        return raw.view(form.dtype)

    def _read_batch(self, selections: Sequence[Any], buffers: Sequence[AnyArray]) -> None:
        """Reads several basic selections into arrays of this array's type and the selections' shapes, also strided,
        in one call of the library that sees one state."""
        form = self._readable(self._now())
        if form.item == 0:
            for key, out in zip(selections, buffers):
                self._get(key, out)
            return
        boxes = [_indexing.basic(key, form.shape) for key in selections]
        fulls = []
        for box, out in zip(boxes, buffers):
            target = self._target(out, box, form)
            if not np.shares_memory(target, out) and target.size:
                raise ValueError(f"a buffer has type {out.dtype}, but {form.dtype} is needed")
            fulls.append(self._full(box, target))
        if not boxes:
            return
        memory = np.array([_indexing.memory_of(f) for f in fulls], np.int64)
        strides = np.array([f.strides for f in fulls], np.int64).reshape(len(fulls), -1)
        with self._sessions.at_work() as native:
            made = Boxes(native.array(self.path), *(np.array([getattr(b, n) for b in boxes], np.int64).reshape(
                len(boxes), -1) for n in ("start", "count", "step")), memory[:, 0], memory[:, 1], memory[:, 2], [0])
            made.buffers["strides"] = strides.__array_interface__["data"][0] + np.arange(len(boxes)) * strides.strides[0]
            self._ran(native, lib.py_read, made)

    # ---- writing ----

    def __setitem__(self, key: Any, value: Any) -> None:
        self._set(key, value)

    def _set(self, key: Any, value: Any) -> None:
        names, key = self._names_in(key)
        if names is not None:
            records = np.array(self._get(key, None), dtype=self.dtype)
            records[names] = value
            value = records
        kind = _indexing.kind_of(key, self.ndim)
        if kind == "basic":
            self._set_box(key, value)
        elif kind == "orthogonal":
            self._set_orthogonal(key, value)
        else:
            self._set_points(kind, key, value)

    def _cast(self, value: Any, shape: tuple[int, ...], form: _Form) -> AnyArray:
        """A value as the array's type, broadcast to a shape, without a copy where none is needed."""
        dtype = self._readable(form).dtype
        if isinstance(value, Array):
            value = value[...]
        if dtype.kind == "O":
            made = np.empty((), object) if isinstance(value, (bytes, str)) or value is None else np.asarray(value, object)
            if made.shape == () and not isinstance(value, np.ndarray):
                made[()] = value
        elif isinstance(value, (np.ndarray, np.generic)):
            made = np.asarray(value).astype(dtype, copy=False)
        elif hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
            made = np.asarray(value).astype(dtype, copy=False)
        else:
            made = np.array(value, dtype)
        while made.ndim > len(shape) and made.shape[0] == 1:
            made = made[0]
        try:
            return np.broadcast_to(made, shape)
        except ValueError:
            raise ValueError(f"could not broadcast a value of shape {made.shape} into a selection of {shape}") from None

    def _set_box(self, key: Any, value: Any) -> None:
        form = self._readable(self._now())
        box = _indexing.basic(key, form.shape)
        shape = box.shape if box.after is None else np.broadcast_to(0, box.shape)[box.after].shape
        source = self._cast(value, shape, form)
        if box.after is not None:
            source = source[_indexing.undo(box.after)]
        if 0 in box.count:
            return
        with self._sessions.at_work() as native:
            array = native.array(self.path)
            if form.item == 0:
                data = _dtypes.pack(source, form.name)
                native.handle.call(lib.brc_array_write, array, self._sel(native, box, form), data, len(data))
                return
            full = self._full(box, source)
            low, length, origin = _indexing.memory_of(full)
            made = Boxes(array, np.array([box.start]), np.array([box.count]), np.array([box.step]), low, length, origin,
                         list(full.strides))
            self._ran(native, lib.py_write, made)

    def _set_orthogonal(self, key: Any, value: Any) -> None:
        form = self._readable(self._now())
        sel = _indexing.orthogonal(key, form.shape)
        source = self._cast(value, tuple(len(sel.axes[i]) for i in sel.kept), form)
        source = source[tuple(slice(None) if i in sel.kept else None for i in range(len(sel.axes)))]
        axes = list(sel.axes)
        for i, axis in enumerate(axes):
            if not isinstance(axis, range):
                last = _indexing.last_of_each(axis)
                if len(last) != len(axis) or bool(np.any(np.diff(axis) < 0)):
                    axes[i], source = axis[last], np.take(source, last, axis=i)
        sel = _indexing.Orthogonal(axes, sel.kept)
        size = source.size
        boxes = _indexing.count_of_runs(sel) if size else 0
        if form.item == 0 or boxes > 256 and size < 4 * boxes:
            points = tuple(np.broadcast_to(a, sel.full) for a in np.ix_(*(np.asarray(a) for a in axes)))
            self._write_points(points, source, form)
        elif size:
            with self._transaction(boxes > _indexing.BLOCK) as native:
                for made in _indexing.boxes_of(sel, source, native.array(self.path)):
                    self._ran(native, lib.py_write, made)

    def _set_points(self, kind: str, key: Any, value: Any) -> None:
        form = self._readable(self._now())
        points = self._points(kind, key, form.shape)
        self._write_points(points, self._cast(value, points[0].shape if points else (), form), form)

    def _write_points(self, points: tuple[Any, ...], source: AnyArray, form: _Form) -> None:
        """Writes elements at points in one transaction, as runs along the last axis."""
        order = _indexing.last_points(points, self.chunks)
        if len(order) == 0:
            return
        values = source.ravel()[order]
        at = np.stack([np.ascontiguousarray(p).ravel()[order] for p in points], axis=1)
        together = np.all(np.diff(at[:, :-1], axis=0) == 0, axis=1) & (np.diff(at[:, -1]) == 1)
        first = np.concatenate(([0], np.flatnonzero(~together) + 1))
        many = np.diff(np.concatenate((first, [len(at)])))
        if form.item == 0:
            packed = [_dtypes.pack(values[f:f + m], form.name) for f, m in zip(first, many)]
            sizes = np.array([len(p) for p in packed])
            raw = np.frombuffer(b"".join(packed), np.uint8)
            offsets = np.cumsum(sizes) - sizes
        else:
            raw, offsets, sizes = values.view(np.uint8), first * form.item, many * form.item
        address = raw.__array_interface__["data"][0]
        with self._transaction(len(first) > _indexing.BLOCK) as native:
            for begin in range(0, len(first), _indexing.BLOCK):
                part = slice(begin, begin + _indexing.BLOCK)
                count = np.ones((len(first[part]), at.shape[1]), np.int64)
                count[:, -1] = many[part]
                made = Boxes(native.array(self.path), at[first[part]], count, np.ones_like(count),
                             address + offsets[part], sizes[part], 0, None)
                self._ran(native, lib.py_write, made)

    def _transaction(self, many: bool) -> Any:
        return self.session.transaction() if many else self._sessions.at_work()

    def _change(self, function: Any, *args: Any) -> None:
        with self._sessions.at_work() as native:
            native.handle.call(function, native.array(self.path), *args)
            self._form = self._read_form(native)

    def resize(self, *shape: Any) -> None:
        """Another shape. What is cut off is lost: growing again shows the fill value."""
        new = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
        if len(new) != self.ndim:
            raise ValueError(f"{self.path} has {self.ndim} dimensions: the new shape has {len(new)}")
        self._change(lib.brc_array_resize, ffi.new("uint64_t[]", new or [0]))

    def append(self, data: Any, axis: int = 0) -> tuple[int, ...]:
        """Grows the array along an axis by `data`, whose other axes are as the array's: both or neither. The new
        shape."""
        form = self._readable(self._now())
        axis = _indexing.integer(axis, self.ndim, 0)
        given = data if isinstance(data, np.ndarray) else np.asarray(data, None if form.item else form.dtype)
        want = form.shape[:axis] + given.shape[axis:axis + 1] + form.shape[axis + 1:]
        if given.shape != want:
            raise ValueError(f"data of shape {given.shape} cannot be appended along axis {axis} to {form.shape}")
        cast = np.ascontiguousarray(self._cast(given, want, form))
        raw = cast.reshape(-1).view(np.uint8) if form.item and cast.size else _dtypes.pack(cast, form.name) if cast.size else b""
        self._change(lib.brc_array_append, axis, want[axis], ffi.from_buffer(raw), len(raw))
        return self._form.shape

    def restore(self, rev: str | None = None, key: Any = ...) -> None:
        """Makes what a basic selection has what it was at a version (None: the branch's tip)."""
        with self._sessions.at_work() as native:
            sel = self._sel(native, _indexing.basic(key, self._form.shape), self._form)
            native.handle.call(lib.brc_array_restore, native.array(self.path), sel, text(rev))

    def blame(self, key: Any = ..., *, elements: bool = False) -> list[Any]:
        """Which commit changed each stored chunk that a basic selection meets last; with `elements`, each run of
        elements along the last axis. For arrays of a view of a commit or tag. A list of `Blamed`."""
        from ._records import Blamed
        with self._sessions.at_work() as native:
            out = ffi.new("brc_iter **")
            sel = self._sel(native, _indexing.basic(key, self._form.shape), self._form)
            native.handle.call(lib.brc_blame, out, native.array(self.path), sel, int(elements))
            return native.handle.items(out, lib.brc_blame_next, "brc_blamed", Blamed.of)

    # ---- as NumPy's ----

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        if copy is False:
            raise ValueError("the elements are in a file: they cannot be had without a copy")
        found = np.asarray(self._get_box((), None))
        return found if dtype is None else found.astype(dtype, copy=False)

    def __dlpack__(self, **options: Any) -> Any:
        options.pop("copy", None)
        return self.__array__().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __len__(self) -> int:
        if not self._now().shape:
            raise TypeError("len() of an array without dimensions")
        return self._form.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self._now().shape:
            raise TypeError("iteration over an array without dimensions")
        ahead = max(1, self.chunks[0])
        for begin in range(0, self._form.shape[0], ahead):
            yield from self[begin:begin + ahead]

    def __contains__(self, value: object) -> bool:
        return any(bool(np.any(part == value)) for part in self) if self.ndim else bool(self[()] == value)

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError("an array of several elements is neither true nor false")
        return bool(np.asarray(self).item())

    def __float__(self) -> float:
        return float(np.asarray(self).item())

    def __int__(self) -> int:
        return int(np.asarray(self).item())

    @property
    def oindex(self) -> Accessor:
        """Each axis by itself: integers, slices, index arrays and masks of one axis."""
        return Accessor(self, "orthogonal")

    @property
    def vindex(self) -> Accessor:
        """Points, by an index array for each axis, or a mask of the array's shape."""
        return Accessor(self, "points")

    @property
    def blocks(self) -> Accessor:
        """Chunks by their numbers; of a sharded array, shards."""
        return Accessor(self, "blocks")

    def __reduce__(self) -> tuple[Any, ...]:
        return Array, (self.session, self.path)

    def __repr__(self) -> str:
        shape = "×".join(map(str, self._form.shape)) or "scalar"
        return f"<breccia.Array {self.path} {shape} {self._form.name}>"

    def _repr_html_(self) -> str:
        from ._display import array_html
        return array_html(self)


class Accessor:
    """`a.oindex`, `a.vindex` and `a.blocks`: what is in the brackets is read in that way."""

    __slots__ = ("array", "kind")

    def __init__(self, array: Array, kind: str) -> None:
        self.array, self.kind = array, kind

    def _key(self, key: Any) -> tuple[str, Any]:
        if self.kind == "blocks":
            return "basic", _indexing.blocks(key, self.array.shape, self.array.shards or self.array.chunks)
        if self.kind == "points":
            only = key[0] if isinstance(key, tuple) and len(key) == 1 else key
            is_mask = isinstance(only, (list, np.ndarray)) and np.asarray(only).dtype == bool
            return "mask" if is_mask else "coordinate", key
        return self.kind, key

    def __getitem__(self, key: Any) -> Any:
        return self.get(key)

    def get(self, key: Any, *, out: AnyArray | None = None) -> Any:
        kind, key = self._key(key)
        if kind == "basic":
            return self.array._get_box(key, out)
        if kind == "orthogonal":
            return self.array._get_orthogonal(key, out)
        return self.array._get_points(kind, key, out)

    def __setitem__(self, key: Any, value: Any) -> None:
        kind, key = self._key(key)
        if kind == "basic":
            self.array._set_box(key, value)
        elif kind == "orthogonal":
            self.array._set_orthogonal(key, value)
        else:
            self.array._set_points(kind, key, value)
