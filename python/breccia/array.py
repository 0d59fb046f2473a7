"""Arrays: NumPy's indexing on an array of a session."""
from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _display, _dtypes, _errors, _indexing, _tensors
from ._breccia import ffi, lib
from ._calls import Progress, items, records
from ._casting import fit
from ._elements import Form, as_type, at_of, fresh, read, write
from ._indexing import AnyArray, Selection
from ._made.calls import ArrayCalls
from ._native import printable, sized, string, text
from ._tensors import Tensor

if TYPE_CHECKING:
    from .session import Session

Select = Callable[[Any, tuple[int, ...]], Selection]


class Array(ArrayCalls):
    """One array of a session. Indexing reads and writes the file; what comes back is NumPy's and yours.

    `a[...]` takes integers, slices (also with negative steps), `...`, None, one index array or mask among
    them, index arrays for all axes (points), or a mask of the array's shape. `a.oindex`, `a.vindex` and
    `a.blocks` say which is meant. Integers drop their axis, so `a[3]` of one dimension is a scalar. Writes
    broadcast, and of elements that are written twice the last in C order stays. An operation needs memory for
    what is selected. May be used from several threads at once; a call that selects nothing wrong but finds
    another array than before (another process resized it) works with what is there.
    """

    def __init__(self, session: Session, path: str) -> None:
        self.session, self.path = session, path
        self._pool, self._fixed = session._pool, session.fixed  # of a commit, which never changes
        self._known: Form | None = None

    def _now(self) -> Form:
        if self._known is None or not self._fixed:
            with self._pool.at_work() as native:
                self._known = Form.of(native, self.path, self._known)
        return self._known

    @property
    def _form(self) -> Form:
        return self._known or self._now()

    def _call(self, function: Callable[..., int], *args: Any, progress: Progress = None) -> None:
        with self._working(progress) as native:
            native.call(function, fresh(native, self.path), *args)

    def _told(self, name: str) -> Any:
        """Returns a member of the library's description: a value of JSON, or a number for each axis; None if it is
        missing."""
        with self._working() as native:
            info = lib.brc_array_describe(fresh(native, self.path))
            found = getattr(info, name)
            if name.endswith("_json"):
                return json.loads(string(found))
            return tuple(found[0:info.ndim]) if found else None

    # ---- what it is ----

    @property
    def fill_value(self) -> Any:
        """The value of elements that were never written, as NumPy's scalar, bit for bit."""
        dtype, item = self.dtype, self._form.item
        with self._working() as native:
            fill = lib.brc_array_describe(fresh(native, self.path)).fill
            raw = bytes(ffi.buffer(fill, item or 4 + int.from_bytes(ffi.buffer(fill, 4), "little")))
        return (np.frombuffer(raw, dtype) if item else _dtypes.unpack(raw, 1, self._form.name))[0]

    def _stat(self) -> tuple[int, int]:
        out = ffi.new("uint64_t[2]")
        with self._working() as native:
            native.call(lib.brc_array_stat, out, out + 1, native.array(self.path))
        return out[0], out[1]

    @property
    def info(self) -> str:
        """A description of the array, in lines for people."""
        return _display.array_info(self)

    # ---- elements ----

    def _get(self, select: Select, key: Any, out: AnyArray | None = None) -> Any:
        while True:
            form = self._form if self._fixed or out is None else self._now()
            try:
                sel = select(key, form.shape)
            except IndexError:  # perhaps the array has another shape now
                if self._now() is form:
                    raise
                continue
            native = self._pool.take()
            try:
                found = read(native, self.path, sel, form, out, self._fixed)
            finally:
                self._pool.give(native)
            if found is not None:
                return found if out is not None or sel.shape else found[()]
            self._now()

    def _set(self, select: Select, key: Any, value: Any, casting: str = "same_kind") -> None:
        form = self._now()
        sel = select(key, form.shape)
        source = as_type(value, sel.shape, form.check(self.path), casting)
        with self._pool.at_work() as native:
            write(native, self.path, sel, form, source)

    def __getitem__(self, key: Any) -> Any:
        for item in key if type(key) is tuple else (key,):
            if type(item) is not slice and type(item) is not int and item is not Ellipsis:
                return self.get(key)
        return self._get(_indexing.by_axis, key)

    def get(self, key: Any = ..., *, out: AnyArray | None = None) -> Any:
        """Returns `a[key]`, in `out` if it is given: any NumPy array of the same shape, also with strides. If it has
        another type, elements are cast as in NumPy's assignment."""
        names, key = self._names_in(key)
        if names is None:
            return self._get(_indexing.plain, key, out)
        found = self.get(key)[names]
        if out is None:
            return found
        out[...] = found
        return out

    def set(self, key: Any, value: Any, *, casting: str = "same_kind") -> None:
        """Sets `a[key] = value`, casting by NumPy's rule "same_kind", or by another of NumPy's rules: "unsafe" allows
        any cast. Python's numbers, and lists of them, go into every type of their kind, and integers into floats too.
        If an element would become another number, time or text, the call raises InvalidError, unless `casting` is
        "unsafe"; only floats are rounded. A masked element raises InvalidError too: fill it first."""
        names, key = self._names_in(key)
        if names is not None:
            whole = np.asarray(self.get(key))
            whole[names] = fit(value, whole[names].dtype, casting)
            value = whole
        self._set(_indexing.plain, key, value, casting)

    __setitem__ = set

    def _names_in(self, key: Any) -> tuple[Any, Any]:
        """Returns the fields in an index, "a" or ["a", "b"], and the rest of the index."""
        items = key if isinstance(key, tuple) else (key,)
        found = [i for i in items if isinstance(i, str) or type(i) is list and i and isinstance(i[0], str)]
        if not found:
            return None, key
        known = self.dtype.names or ()
        for name in [found[0]] if isinstance(found[0], str) else found[0]:
            if name not in known or len(found) > 1:
                raise IndexError(f"{printable(self.path)} has no " + (f"field {name!r}" if known else "fields"))
        return found[0], tuple(i for i in items if i is not found[0]) or ...

    def tensor(self, key: Any = ..., *, memory: str | None = None, stream: int | None = None,
               spill: bool = False) -> Tensor:
        """Reads `a[key]` into new memory that other libraries take over without a copy, by DLPack: "host", "pool"
        (which is given out again), "locked" (page-locked), "managed", or "cuda" and "cuda:1". With `spill` the elements
        may be in the host's memory if the device is full, and the tensor says so. `stream`: of the device."""
        sel = _indexing.plain(key, self._now().shape)
        with self._pool.at_work() as native:
            return _tensors.read(native, self.path, sel, memory, stream, spill)

    def set_tensor(self, key: Any, value: Any) -> None:
        """Sets `a[key]` to any object with __dlpack__, on any device, or to one with __arrow_c_array__. Data type and
        shape must be those of the selection: nothing is cast or broadcast."""
        with self._pool.at_work() as native:
            if hasattr(value, "__arrow_c_array__"):
                _tensors.write_arrow(native, self.path, self._box(key), value)
            else:
                _tensors.write(native, self.path, _indexing.plain(key, self._now().shape), value)

    def resize(self, *shape: Any) -> None:
        """Changes the shape. Elements that are cut off are lost: an array that grows again shows the fill value."""
        new = _indexing.extents(shape[0] if len(shape) == 1 else shape)
        if len(new) != self.ndim:
            raise _errors.InvalidError(f"{printable(self.path)} has {self.ndim} dimensions, and {new} has {len(new)}")
        self._call(lib.brc_array_resize, ffi.new("uint64_t[]", new or [0]))
        self._now()

    def append(self, data: Any, axis: int = 0, *, casting: str = "same_kind") -> tuple[int, ...]:
        """Grows the array along an axis by `data`, which has the array's shape along the other axes. Either both
        happen or neither. Returns the new shape. `casting` is that of set()."""
        form = self._now()
        axis = _indexing.integer(axis, self.ndim, 0)
        given = fit(data, form.check(self.path), casting)
        want = form.shape[:axis] + given.shape[axis:axis + 1] + form.shape[axis + 1:]
        if given.shape != want or not want:
            raise _errors.InvalidError(f"shape {given.shape} does not go behind {form.shape} along axis {axis}")
        flat = given.ravel()
        raw = flat.view(np.uint8) if form.item else _dtypes.pack(flat, form.name)
        self._call(lib.brc_array_append, axis, want[axis], ffi.from_buffer(raw), len(raw))
        return self.shape

    def restore(self, rev: str | None = None, key: Any = ...) -> None:
        """Gives the elements of a basic selection the values of a version (None: the branch's tip)."""
        self._call(lib.brc_array_restore, self._box(key), text(rev))

    def blame(self, key: Any = ..., *, elements: bool = False) -> list[records.Blamed]:
        """Returns which commit last changed each stored chunk that a basic selection meets; with `elements`, each run
        of elements along the last axis. Uncommitted changes do not count."""
        if not self._fixed:
            repository = self.session.repository
            tip = repository.view(repository.resolve(self.session.rev))
            return Array(tip, self.path).blame(key, elements=elements)
        out, sel = ffi.new("brc_iter **"), self._box(key)
        with self._working() as native:
            native.call(lib.brc_blame, out, native.array(self.path), sel, elements * lib.BRC_BLAME_ELEMENTS)
            return items(native, records.Blamed, out)

    def log(self, key: Any = ..., *, values: int = 10, limit: int | None = None) -> list[records.Shown]:
        """Commits, the newest first, that changed elements of a basic selection, with how: `elements` of the one change
        counts them, and its `values` are the first of them, as they were before and are then (None: not there yet, or
        no more). The array is followed to where it was before it was moved. A merge is listed if its values are those
        of none of its parents. Uncommitted changes do not count."""
        repository, sel = self.session.repository, self._box(key)
        rev = self.session._key if self._fixed else repository.resolve(self.session.rev)
        return [records.Shown(found, tuple(repository._diff(
                    found.parents[0] if found.parents else None, found.id, path=found.path, sel=sel, elements=True,
                    moved=True, added=True, values=values)))
                for found in repository._log(rev, path=self.path, sel=sel, limit=limit)]

    def stats(self, key: Any = ..., *, field: str | None = None, progress: Progress = None) -> records.Stats:
        """How many elements a basic selection has, NaN and the fill value among them, the least and the greatest,
        mean, standard deviation (of all, not of a sample) and a histogram, without NaN. Complex numbers count with
        their magnitudes, texts and bytes with their lengths in bytes, and elements with fields with the one that
        `field` names: "x", or "position.x" where a field has fields itself. What whole chunks come to is kept in
        the file where it can be written, so a second call reads none that it knows."""
        dtype, out, bins = self._now().dtype, sized("brc_array_summary"), ffi.new("brc_iter **")
        sel, name = self._box(key), text(field)
        options = sized("brc_array_stats_opts", sel=sel, field=name)
        with self._working(progress) as native:
            native.call(lib.brc_array_stats, out, bins, fresh(native, self.path), options)
            dtype = _dtypes.field(dtype, field) if field and dtype is not None else dtype
            listed = native.items(bins, "brc_stats_bin", lambda b: (string(getattr(b, "from")), string(b.to), b.count))
        return records.Stats.of_array(out, listed, dtype)

    def _box(self, key: Any) -> Any:
        return at_of(_indexing.by_axis(key, self._form.shape), "brc_sel")[0]

    # ---- as NumPy's ----

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        if copy is False:
            raise ValueError("the elements are in a file: they cannot be had without a copy")
        found = np.asarray(self[()], self.dtype)  # a scalar would have its own type
        return found if dtype is None else found.astype(dtype, copy=False)

    def __dlpack__(self, **options: Any) -> Any:
        options.pop("copy", None)
        return self.__array__().__dlpack__(**options)

    def __arrow_c_schema__(self) -> Any:
        return self._arrow(0)

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._arrow(0, 1)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """A table with one column, in batches of rows: further axes are lists of fixed length."""
        return self._arrow(2)

    def _arrow(self, *kinds: int) -> Any:
        with self._pool.at_work() as native:
            return _tensors.arrow(native, self.path, *kinds)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self._form.shape[0]

    def __iter__(self) -> Iterator[Any]:
        length, ahead = len(self), self.chunks[0]
        return (row for begin in range(0, length, ahead) for row in self[begin:begin + ahead])

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(f"an array of {self.size} elements is neither true nor false")
        return bool(np.asarray(self).item())

    @property
    def oindex(self) -> Accessor:
        """Selects along each axis by itself: integers, slices, index arrays and masks of one axis."""
        return Accessor(self, _indexing.by_axis)

    @property
    def vindex(self) -> Accessor:
        """Selects points, by an index array for each axis, or by a mask of the array's shape."""
        return Accessor(self, _indexing.points)

    @property
    def blocks(self) -> Accessor:
        """Selects chunks by their numbers; in a sharded array, shards."""
        config = self.metadata["chunk_grid"]["configuration"]
        return Accessor(self, partial(_indexing.blocks, grid=config.get("chunk_shapes", config.get("chunk_shape"))))


class Accessor:
    """`a.oindex`, `a.vindex` and `a.blocks`: each reads the brackets in its own way."""

    def __init__(self, array: Array, select: Select) -> None:
        self.array, self.select = array, select

    def get(self, key: Any, *, out: AnyArray | None = None) -> Any:
        return self.array._get(self.select, key, out)

    __getitem__ = get

    def set(self, key: Any, value: Any, *, casting: str = "same_kind") -> None:
        """Sets elements like Array.set()."""
        self.array._set(self.select, key, value, casting)

    __setitem__ = set
