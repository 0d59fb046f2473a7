"""Reading and writing the elements of an array, by any selection.

A box goes straight between the file and the caller's memory, with its strides. Index arrays are taken chunk
by chunk, so that no chunk is decoded twice: the box around what is selected of it is read into temporary
memory of a bounded size.
"""
from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _dtypes, _errors, _indexing
from ._breccia import ffi, lib
from ._indexing import Box, Boxes, Orthogonal, Piece
from ._native import Native, sized, string, text

if TYPE_CHECKING:
    from .session import Session

AnyArray = np.ndarray[Any, Any]
_BUFFERED = "?bhilqBHILQefdFD"  # types that ffi.from_buffer takes as they are
_START, _COUNT, _STEP = (ffi.offsetof("brc_sel", name) for name in ("start", "count", "step"))


class Form(NamedTuple):
    """What is remembered of an array. `native` is the same for the library, which says when it is out of
    date."""

    shape: tuple[int, ...]
    name: str
    item: int  # bytes of an element; 0: they vary
    dtype: np.dtype[Any] | None  # None: NumPy has none
    plain: bool
    chunks: tuple[int, ...]
    pack: Any
    native: Any
    keep: Any

    @classmethod
    def of(cls, info: Any) -> Form:
        shape = tuple(info.shape[i] for i in range(info.ndim))
        name, item = string(info.dtype), info.item_size
        dtype: np.dtype[Any] | None
        try:
            dtype = _dtypes.to_numpy(name)
        except _errors.UnsupportedError:
            dtype = None
        if dtype is None or not info.fill or item and dtype.itemsize != item:
            dtype = None
        if info.chunk:
            chunks = tuple(max(1, info.chunk[i]) for i in range(info.ndim))
        else:  # of several lengths: about so
            chunks = tuple(-(-n // info.grid[i]) if info.grid[i] else 1 for i, n in enumerate(shape))
        keep = text(name)
        native = ffi.new("py_form *", {"ndim": len(shape), "dtype": keep, "shape": shape})
        return cls(shape, name, item, dtype, bool(item) and dtype is not None and dtype.char in _BUFFERED,
                   chunks, struct.Struct(f"={len(shape)}Q").pack_into, native, keep)


class Elements:
    """What Array is made of: it knows where the array is, and reads and writes."""

    __slots__ = ("session", "path", "_form", "_sessions", "_fixed", "__weakref__")

    def __init__(self, session: Session, path: str) -> None:
        self.session, self.path = session, path
        self._sessions, self._fixed = session._sessions, session.fixed  # of a commit, which nobody changes
        with self._sessions.at_work() as native:
            self._form = self._read_form(native)

    def _read_form(self, native: Native) -> Form:
        return Form.of(self._fresh_info(native))

    def _fresh_info(self, native: Native) -> Any:
        """The library's description, which any call brings up to date: reading nothing is one."""
        array = native.array(self.path)
        info = lib.brc_array_describe(array)
        if not self._fixed and info.ndim and info.item_size and info.flags & lib.BRC_ARRAY_READABLE:
            sel = sized("brc_sel")
            lib.brc_sel_all(sel, array)
            sel.count[0] = 0
            if lib.brc_array_read(array, sel, ffi.NULL, 0, native.handle.err) < 0:
                native.forget(self.path)
                array = native.array(self.path)
            info = lib.brc_array_describe(array)
        return info

    def _now(self, readable: bool = False) -> Form:
        """What the array is now. `readable`: UnsupportedError if its elements have no type here."""
        if not self._fixed:
            with self._sessions.at_work() as native:
                self._fresh_info(native)
                if not lib.py_same(native.array(self.path), self._form.native):
                    self._form = self._read_form(native)
        if readable and self._form.dtype is None:
            raise self._unreadable()
        return self._form

    def _unreadable(self) -> Exception:
        name = self._form.name
        try:
            _dtypes.to_numpy(name)
        except _errors.UnsupportedError as error:
            return error
        return _errors.UnsupportedError(f"{self.path}: elements of {name} cannot be read here")

    @contextmanager
    def _working(self, together: bool) -> Iterator[Native]:
        """A native session; all that is done with it is one transaction if it has to be `together`."""
        with self.session._changing(together), self._sessions.at_work() as native:
            yield native

    def _ran(self, native: Native, function: Any, made: Boxes) -> None:
        rc = function(native.handle.repo, made.io, made.n, native.handle.err)
        if rc < 0:
            raise native.handle.failed(rc)

    # ---- reading ----

    def _get(self, kind: str, key: Any, out: AnyArray | None) -> Any:
        if kind == "basic":
            return self._get_box(key, out)
        form = self._now(readable=True)
        dtype = form.dtype
        assert dtype is not None
        if kind == "orthogonal":
            sel = _indexing.orthogonal(key, form.shape)
            shape = tuple(len(sel.axes[i]) for i in sel.kept)
            fits = out is not None and out.dtype == dtype and out.shape == shape and out.flags.writeable
            target = out if fits and out is not None else np.empty(shape, dtype)
            if target.size:
                self._read_orthogonal(sel, target[sel.spread], form)
        else:
            points = (_indexing.mask if kind == "mask" else _indexing.coordinates)(key, form.shape)
            target = np.empty(points[0].shape if points else (), dtype)
            if target.size:
                self._gather(_indexing.pieces_of_points(points, form.chunks), target.reshape(-1), form)
        if out is not None:
            return out if target is out else self._filled(out, target)
        return target if target.shape else target[()]

    def _read_orthogonal(self, sel: Orthogonal, target: AnyArray, form: Form) -> None:
        if form.item == 0 or not _indexing.is_in_runs(sel, form.chunks):
            return self._gather(_indexing.pieces_of(sel, form.chunks), target, form)
        with self._sessions.at_work() as native:
            for made in _indexing.boxes_of(sel, target, native.array(self.path)):
                self._ran(native, lib.py_read, made)

    def _gather(self, pieces: Iterable[Piece], out: AnyArray, form: Form) -> None:
        with self._sessions.at_work() as native:
            for some in _indexing.in_batches(pieces, form.item or 64):
                for piece, found in zip(some, self._read_boxes(native, [p.box for p in some], form)):
                    out[piece.outer] = found[piece.inner]

    def _read_boxes(self, native: Native, boxes: list[Box], form: Form) -> list[AnyArray]:
        """Boxes in one call, into memory that they share."""
        if form.item == 0:
            return [self._read_elements(native, box, form) for box in boxes]
        if not boxes:
            return []
        raw, targets = _indexing.memory_for([b.many for b in boxes], form.item)
        self._ran(native, lib.py_read, Boxes.packed(native.array(self.path), boxes, targets))
        assert form.dtype is not None
        return [t.view(form.dtype).reshape(b.many) for t, b in zip(targets, boxes)]

    def _read_elements(self, native: Native, box: Box, form: Form) -> AnyArray:
        data = native.handle.take_buf_of(lib.brc_array_read_elements, native.array(self.path),
                                         self._sel(native, box, form))
        return _dtypes.unpack(data, math.prod(box.many), form.name).reshape(box.shape)

    @staticmethod
    def _filled(out: AnyArray, value: Any) -> AnyArray:
        if out.shape != np.shape(value):
            raise ValueError(f"out has shape {out.shape}, but {np.shape(value)} is selected")
        out[...] = value
        return out

    def _get_box(self, key: Any, out: AnyArray | None) -> Any:
        if out is not None:
            return self._get_box_into(key, out)
        while True:
            form = self._form
            box = _indexing.basic(key, form.shape)
            if form.dtype is None:
                raise self._unreadable()
            native = self._sessions.take()
            try:
                if form.item == 0:
                    target, rc = self._read_elements(native, box, form), 0
                else:
                    if form.plain:
                        target = np.empty(box.shape, form.dtype)
                        memory = ffi.from_buffer(target)
                    else:
                        raw = np.empty(math.prod(box.many) * form.item, np.uint8)
                        target, memory = raw.view(form.dtype).reshape(box.shape), ffi.from_buffer(raw)
                    handle = native.handle
                    rc = lib.py_read_box(handle.repo, native.array(self.path), self._sel(native, box, form),
                                         memory, target.nbytes, ffi.NULL if self._fixed else form.native,
                                         handle.err)
                if rc == 0:
                    if box.after is not None:
                        return target[box.after]
                    return target if box.shape else target[()]
                if rc < 0:
                    raise native.handle.failed(rc)
                self._form = self._read_form(native)  # it has another form by now
            finally:
                self._sessions.give(native)

    @staticmethod
    def _sel(native: Native, box: Box, form: Form) -> Any:
        """The box for the library, in memory that the native session keeps for it."""
        scratch = native.scratch
        if scratch is None:
            sel = sized("brc_sel")
            scratch = native.scratch = sel, ffi.buffer(sel)
        sel, memory = scratch
        sel.ndim = len(box.start)
        pack = form.pack
        pack(memory, _START, *box.start)
        pack(memory, _COUNT, *box.many)
        pack(memory, _STEP, *box.step)
        return sel

    def _get_box_into(self, key: Any, out: AnyArray) -> AnyArray:
        form = self._now(readable=True)
        box = _indexing.basic(key, form.shape)
        target = self._target(out, box, form)
        if target is None:
            return self._filled(out, self._get_box(key, None))
        with self._sessions.at_work() as native:
            self._ran(native, lib.py_read, Boxes.laid(native.array(self.path), [box], [box.full(target)]))
        return out

    def _target(self, out: AnyArray, box: Box, form: Form) -> AnyArray | None:
        """`out` seen as a box is read into it; None if its type or memory do not allow that."""
        shape = box.shape if box.after is None else np.broadcast_to(np.False_, box.shape)[box.after].shape
        if not isinstance(out, np.ndarray) or out.shape != shape:
            raise ValueError(f"out must be an array of NumPy's of shape {shape}, not {np.shape(out)}")
        if not out.flags.writeable:
            raise ValueError("out is read-only")
        if form.item == 0 or out.dtype != form.dtype or any(s == 0 and n > 1 for s,
                                                            n in zip(out.strides, out.shape)):
            return None
        return out if box.after is None else out[_indexing.undo(box.after)]

    def _read_batch(self, selections: Sequence[Any], buffers: Sequence[AnyArray]) -> None:
        """Reads several basic selections into arrays of this array's type and the selections' shapes, also
        strided, in one call of the library, which sees one state."""
        form = self._now(readable=True)
        boxes = [_indexing.basic(key, form.shape) for key in selections]
        if form.item == 0 or not boxes:
            for key, out in zip(selections, buffers):
                self._get_box(key, out)
            return
        fulls = []
        for box, out in zip(boxes, buffers):
            target = self._target(out, box, form)
            if target is None:
                raise ValueError(f"a buffer has type {out.dtype}, but {form.dtype} is needed")
            fulls.append(box.full(target))
        with self._sessions.at_work() as native:
            self._ran(native, lib.py_read, Boxes.laid(native.array(self.path), boxes, fulls))

    # ---- writing ----

    def _set(self, kind: str, key: Any, value: Any) -> None:
        form = self._now(readable=True)
        if kind == "basic":
            self._set_box(_indexing.basic(key, form.shape), value, form)
        elif kind == "orthogonal":
            sel = _indexing.orthogonal(key, form.shape)
            source = self._cast(value, tuple(len(sel.axes[i]) for i in sel.kept), form)
            if source.size:
                self._write_orthogonal(sel, source[sel.spread], form)
        else:
            points = (_indexing.mask if kind == "mask" else _indexing.coordinates)(key, form.shape)
            source = self._cast(value, points[0].shape if points else (), form)
            if source.size:
                self._scatter(_indexing.pieces_of_points(points, form.chunks), source.reshape(-1), form)

    def _cast(self, value: Any, shape: tuple[int, ...], form: Form) -> AnyArray:
        """A value as the array's type, broadcast to a shape, without a copy where none is needed."""
        dtype = form.dtype
        assert dtype is not None
        if isinstance(value, Elements):
            value = value._get_box((), None)
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

    def _set_box(self, box: Box, value: Any, form: Form) -> None:
        shape = box.shape if box.after is None else np.broadcast_to(np.False_, box.shape)[box.after].shape
        source = self._cast(value, shape, form)
        if box.after is not None:
            source = source[_indexing.undo(box.after)]
        if 0 not in box.many:
            with self._sessions.at_work() as native:
                self._write_boxes(native, [box], [box.full(source)], form)

    def _write_boxes(self, native: Native, boxes: list[Box], sources: list[AnyArray], form: Form) -> None:
        array = native.array(self.path)
        if form.item:
            self._ran(native, lib.py_write, Boxes.laid(array, boxes, sources))
            return
        packed = [np.frombuffer(_dtypes.pack(s, form.name), np.uint8) for s in sources]
        self._ran(native, lib.py_write, Boxes.packed(array, boxes, packed))

    def _write_orthogonal(self, sel: Orthogonal, source: AnyArray, form: Form) -> None:
        axes = list(sel.axes)
        for i, axis in enumerate(axes):
            if not isinstance(axis, range):
                last = _indexing.last_of_each(axis)  # of what is written twice the last stays
                if len(last) != len(axis) or bool(np.any(np.diff(axis) < 0)):
                    axes[i], source = axis[last], np.take(source, last, axis=i)
        sel = Orthogonal(axes, sel.kept)
        if form.item == 0 or not _indexing.is_in_runs(sel, form.chunks):
            return self._scatter(_indexing.pieces_of(sel, form.chunks), source, form)
        with self._working(sel.boxes > _indexing.BLOCK) as native:
            for made in _indexing.boxes_of(sel, source, native.array(self.path)):
                self._ran(native, lib.py_write, made)

    def _scatter(self, pieces: Iterable[Piece], source: AnyArray, form: Form) -> None:
        """Writes pieces into what is there around them, in one transaction."""
        with self._working(True) as native:
            for some in _indexing.in_batches(pieces, form.item or 64):
                there = self._read_boxes(native, [p.box for p in some], form)
                for piece, found in zip(some, there):
                    found[piece.inner] = source[piece.outer]
                self._write_boxes(native, [p.box for p in some], there, form)
