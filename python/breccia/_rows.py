"""Rows of several arrays of one committed version, read into memory of the caller's: what breccia.torch stands on."""
from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _errors
from ._breccia import ffi, lib
from ._native import Handle, Handles, Native, Sessions, string, text

Names = str | Sequence[str] | Mapping[str, str]


class Field(NamedTuple):
    """One of the arrays. A row is what lies at one index of its first axis."""

    path: str
    dtype: str  # Zarr's name, or JSON
    shape: tuple[int, ...]  # of a row
    nbytes: int  # of a row
    chunk: int  # how many rows a chunk has
    length: int  # how many there are


def _members(kind: str, *names: str) -> Any:
    """NumPy's view of some members of the library's structure."""
    members = dict(ffi.typeof(kind).fields)
    forms = {8: "u8", 4: "u4"}
    return np.dtype({"names": list(names), "itemsize": ffi.sizeof(kind),
                     "formats": [(forms.get(ffi.sizeof(members[n].type)) or ("u8", 32)) for n in names],
                     "offsets": [members[n].offset for n in names]})


_SEL = _members("brc_sel", "size", "ndim", "start", "count", "step")
_BUFFER = _members("brc_buffer", "size", "data", "len")
_IO = _members("brc_io", "size", "array", "sel", "buffer")


class Rows:
    """Pickles as its arguments and the commit; each process opens the file by itself, where it first reads."""

    def __init__(self, source: Any, names: Names, rev: str, group: str, rows: slice | None, threads: int,
                 one_thread: Callable[[], bool]) -> None:
        self.path = os.path.abspath(os.fspath(getattr(source, "path", source)))
        self.names = names if isinstance(names, str) else dict(names) if isinstance(names, Mapping) else tuple(names)
        self.threads, self._one_thread = threads, one_thread
        paths = [names] if isinstance(names, str) else list(names.values() if isinstance(names, Mapping) else names)
        if not paths:
            raise ValueError("no array was named, and samples come from one at least")
        handles = Handles(self.path, threads=1)
        handle = handles.take()
        try:
            out = ffi.new("brc_oid *")
            handle.call(lib.brc_resolve, out, handle.repo, text(rev))
            self.version = string(lib.brc_oid_format(ffi.new("char[65]"), out))
        finally:
            handle.close()
            handles.close()
        self._sessions, self._pid = self._open(), os.getpid()
        native = self._sessions.take()
        try:
            self.fields = [_field(native, f"{group.strip('/')}/{path.strip('/')}".strip("/")) for path in paths]
        finally:
            self._sessions.give(native)
        lengths = {f.length for f in self.fields}
        if len(lengths) > 1:
            raise ValueError("the arrays differ in their first axis, so that they are no samples: "
                             + ", ".join(f"{f.path} has {f.length}" for f in self.fields))
        self.first, self.stop, step = (rows or slice(None)).indices(lengths.pop())
        self.stop = max(self.first, self.stop)
        if step != 1:
            raise ValueError(f"rows with a step of {step} are not taken: give a slice without one")

    def __len__(self) -> int:
        return self.stop - self.first

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_sessions": None, "_pid": 0}

    def _open(self) -> Sessions:
        version = text(self.version)

        def opener(handle: Handle) -> Any:
            out = ffi.new("brc_session **")
            handle.call(lib.brc_session_open, out, handle.repo, version, lib.BRC_SESSION_AT)
            return out[0]

        made = Sessions(Handles(self.path, threads=1 if self._one_thread() else self.threads), opener)
        weakref.finalize(self, _close, made)
        return made

    def close(self) -> None:
        if self._sessions is not None and self._pid == os.getpid():
            _close(self._sessions)

    def _take(self) -> Native:
        if self._sessions is None or self._pid != os.getpid():
            self._sessions, self._pid = self._open(), os.getpid()
        return self._sessions.take()

    def read_scattered(self, rows: Any, memory: Sequence[int]) -> None:
        """Row rows[i] of each array to place i of its memory (addresses), in one call."""
        at = np.argsort(rows, kind="stable")
        self._read([(rows[at], np.ones(len(at), np.int64), at)] * len(self.fields), memory)

    def read_blocks(self, blocks: Any, block: int, memory: Sequence[int]) -> None:
        """Blocks of `block` rows each, one behind the other, in one call. Of those at the ends only what is taken."""
        start, stop = np.maximum(blocks * block, self.first), np.minimum((blocks + 1) * block, self.stop)
        place = np.arange(len(blocks)) * block + start - blocks * block
        self._read([(start, stop - start, place)] * len(self.fields), memory)

    def _read(self, parts: Sequence[tuple[Any, Any, Any]], memory: Sequence[int]) -> None:
        """Of each array: first rows, how many, and at which places of its memory."""
        total = sum(len(p[0]) for p, f in zip(parts, self.fields) if f.nbytes)
        if total == 0:
            return
        kinds = ("brc_sel", _SEL), ("brc_buffer", _BUFFER), ("brc_io", _IO)
        held = [ffi.new(kind + "[]", total) for kind, _ in kinds]
        sel, buffer, io = (np.frombuffer(ffi.buffer(one), kind) for one, (_, kind) in zip(held, kinds))
        for one, view in zip(held, (sel, buffer, io)):
            view["size"] = view.dtype.itemsize
        io["sel"], io["buffer"] = (int(ffi.cast("uintptr_t", one)) + np.arange(total, dtype=np.uint64)
                                   * np.uint64(view.dtype.itemsize) for one, view in zip(held, (sel, buffer)))
        native = self._take()
        try:
            at = 0
            for field, (start, count, place), address in zip(self.fields, parts, memory):
                if field.nbytes:
                    own, ndim = slice(at, at + len(start)), 1 + len(field.shape)
                    sel["ndim"][own], sel["step"][own, :ndim], sel["count"][own, 1:ndim] = ndim, 1, field.shape
                    sel["start"][own, 0], sel["count"][own, 0] = start, count
                    buffer["data"][own], buffer["len"][own] = address + place * field.nbytes, count * field.nbytes
                    io["array"][own] = int(ffi.cast("uintptr_t", native.array(field.path)))
                    at = own.stop
            native.handle.call(lib.brc_read_batch, held[2], total)
        finally:
            if self._sessions is not None:
                self._sessions.give(native)


def _close(sessions: Sessions) -> None:
    sessions.close()
    sessions.handles.close()


def _field(native: Native, path: str) -> Field:
    try:
        info = lib.brc_array_describe(native.array(path))
    except _errors.NotFoundError:
        raise _errors.NotFoundError(f"there is no array {path} in this version of the file") from None
    dtype, ndim = string(info.dtype), info.ndim
    if not info.flags & lib.BRC_ARRAY_READABLE:
        raise _errors.UnsupportedError(f"{path} cannot be read: {string(info.why)}")
    if ndim == 0:
        raise ValueError(f"{path} has no axis, so that it has no samples")
    if info.item_size == 0:
        raise TypeError(f"{path} has elements of type {dtype}, of variable length, which no tensor can hold: "
                        "leave it out, or store numbers")
    shape = tuple(info.shape[i] for i in range(ndim))
    grid = max(1, info.grid[0])
    chunk = info.chunk[0] if info.flags & lib.BRC_ARRAY_REGULAR else -(-shape[0] // grid)
    nbytes = int(np.prod(shape[1:], dtype=np.int64)) * info.item_size
    return Field(path, dtype, shape[1:], nbytes, max(1, min(chunk, shape[0])), shape[0])
