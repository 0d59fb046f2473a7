"""The one place that knows the C library: calls, handles on the file, and what happens after a fork.

A handle of the library belongs to one thread at a time, so a repository of this package keeps several, and a
call borrows one. `Handles` are those of one file, `Sessions` those of one view of it: each of these has a
handle of its own, one native session on it, and the arrays that were opened there.
"""
from __future__ import annotations

import collections
import os
import threading
from collections.abc import Callable
from typing import Any

from . import _errors
from ._breccia import ffi, lib

OK = 0


def text(value: str | None) -> Any:
    """A string for C: NULL for None. A NUL within it would cut it short."""
    if value is None:
        return ffi.NULL
    raw = value.encode("utf-8")
    if b"\0" in raw:
        raise _errors.InvalidError(f"{value!r} has a NUL character, which no name or text may have")
    return ffi.new("char[]", raw)


def string(value: Any) -> str:
    """C's text as a string; "" for NULL."""
    return ffi.string(value).decode("utf-8", "replace") if value else ""


def failure(rc: int, err: Any) -> _errors.Error:
    """The exception for a negative result and what the library wrote about it."""
    kind = _errors.BY_CODE.get(rc, _errors.Error)
    said = kind(string(err.message) or string(lib.brc_strerror(rc)))
    said.detail = err.detail  # type: ignore[attr-defined]
    return said


def check(rc: int, err: Any) -> int:
    """The result of a call, if it is none that failed."""
    if rc < 0:
        raise failure(rc, err)
    return rc


def new_error() -> Any:
    err = ffi.new("brc_error *")
    err.size = ffi.sizeof("brc_error")
    return err


def sized(kind: str, **members: Any) -> Any:
    """A structure of the library's that says how long it is."""
    made = ffi.new(kind + " *", members)
    made.size = ffi.sizeof(kind)
    return made


class Handle:
    """One handle on the file: of one thread at a time. Its owner closes it."""

    __slots__ = ("repo", "err", "pid", "__weakref__")

    def __init__(self, repo: Any) -> None:
        self.repo = repo
        self.err = new_error()
        self.pid = os.getpid()

    @classmethod
    def first(cls, path: str, options: Any) -> Handle:
        out, err = ffi.new("breccia **"), new_error()
        check(lib.brc_open(out, os.fsencode(path), options, err), err)
        return cls(out[0])

    @classmethod
    def again(cls, other: Handle) -> Handle:
        out, err = ffi.new("breccia **"), new_error()
        check(lib.brc_reopen(out, other.repo, err), err)
        return cls(out[0])

    def close(self) -> None:
        if self.repo:
            lib.brc_free(self.repo)
            self.repo = ffi.NULL

    def call(self, function: Callable[..., int], *args: Any) -> int:
        """function(*args, err), where a negative result is an exception."""
        rc = function(*args, self.err)
        if rc < 0:
            raise failure(rc, self.err)
        return rc

    def take_buf(self, function: Callable[..., int], *args: Any) -> bytes:
        """The bytes that function(out, *args, err) appends to a buffer."""
        out = sized("brc_buf")
        try:
            self.call(function, out, *args)
            return bytes(ffi.buffer(out.data, out.len)) if out.len else b""
        finally:
            lib.brc_buf_dispose(out)


class Native:
    """A session of the library on a handle of its own, and the arrays that were opened there."""

    __slots__ = ("handle", "session", "arrays", "pid", "era")

    def __init__(self, handle: Handle, session: Any, era: int) -> None:
        self.handle, self.session, self.era = handle, session, era
        self.arrays: dict[str, Any] = {}
        self.pid = os.getpid()

    def array(self, path: str) -> Any:
        """The open array at a path."""
        found = self.arrays.get(path)
        if found is None:
            out = ffi.new("brc_array **")
            self.handle.call(lib.brc_array_open, out, self.session, text(path))
            found = self.arrays[path] = out[0]
        return found

    def forget(self, path: str | None = None) -> None:
        """Closes the array at a path, or all."""
        for name in list(self.arrays) if path is None else [path]:
            array = self.arrays.pop(name, None)
            if array is not None:
                lib.brc_array_free(array)

    def close(self) -> None:
        self.forget()
        if self.session:
            lib.brc_session_free(self.session)
            self.session = ffi.NULL
        self.handle.close()


class Handles:
    """The handles on one file, for as many threads as work at once.

    Nothing is opened before the first call. After a fork the child opens the file again: what its parent
    had is of no use there, and is left alone.
    """

    def __init__(self, path: str | os.PathLike[str], *, flags: int = 0, wait: float | None = None,
                 memory: int = 0, threads: int = 0) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.flags, self.wait, self.memory, self.threads = flags, wait, memory, threads
        self._lock = threading.Lock()
        self._root: Handle | None = None
        self._idle: collections.deque[Handle] = collections.deque()
        self._pid = 0

    def open(self) -> Handle:
        """A handle for the caller alone, who closes it."""
        with self._lock:
            if self._pid != os.getpid():
                self._root, self._idle, self._pid = None, collections.deque(), os.getpid()
            if self._root is None:
                self._root = self._first()
                self.flags &= ~lib.BRC_OPEN_CREATE
            return Handle.again(self._root)

    def _first(self) -> Handle:
        options = sized("brc_open_opts", flags=self.flags, memory=self.memory, pool=pool(self.threads))
        libexec = text(LIBEXEC) if LIBEXEC else ffi.NULL
        options.libexec = libexec
        if self.wait is not None:
            options.wait_ms = max(1, int(self.wait * 1000)) if self.wait > 0 else -1
        return Handle.first(self.path, options)

    def take(self) -> Handle:
        """A handle for the caller alone, until it is given back."""
        if self._pid == os.getpid():
            try:
                return self._idle.pop()
            except IndexError:
                pass
        return self.open()

    def give(self, handle: Handle) -> None:
        if handle.pid == os.getpid():
            self._idle.append(handle)

    def close(self) -> None:
        """Closes the handles that nobody uses; a later call opens new ones."""
        with self._lock:
            if self._pid == os.getpid():
                while self._idle:
                    self._idle.pop().close()
                if self._root is not None:
                    self._root.close()
            self._root = None


class Sessions:
    """The native sessions of one view: a thread that works takes one and gives it back."""

    def __init__(self, handles: Handles, opener: Callable[[Handle], Any]) -> None:
        self.handles, self._opener = handles, opener
        self._idle: collections.deque[Native] = collections.deque()
        self._pid = os.getpid()
        self.era = 0  # grows where the arrays that are open may be out of date

    def take(self) -> Native:
        pid = os.getpid()
        if pid != self._pid:
            self._idle, self._pid = collections.deque(), pid
        try:
            native = self._idle.pop()
        except IndexError:
            handle = self.handles.open()
            try:
                return Native(handle, self._opener(handle), self.era)
            except BaseException:
                handle.close()
                raise
        if native.era != self.era:
            native.forget()
            native.era = self.era
        return native

    def give(self, native: Native) -> None:
        if native.pid == self._pid:
            self._idle.append(native)

    def call(self, function: Callable[..., int], *args: Any) -> int:
        """function(session, *args, err) on a session of its own."""
        native = self.take()
        try:
            return native.handle.call(function, native.session, *args)
        finally:
            self.give(native)

    def close(self) -> None:
        """Closes the sessions that nobody uses. What is uncommitted stays in the file."""
        while self._idle and self._pid == os.getpid():
            self._idle.pop().close()


# The programs that read and write HDF5 and NetCDF lie beside this file in a wheel.
_BESIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libexec")
LIBEXEC = _BESIDE if os.path.isdir(_BESIDE) else None
_POOLS: dict[int, Any] = {}


def pool(threads: int) -> Any:
    """The worker threads that repositories share: `threads` in all, 0: one per core."""
    made = _POOLS.get(threads)
    if made is None:
        out, err = ffi.new("brc_pool **"), new_error()
        check(lib.brc_pool_new(out, threads, err), err)
        made = _POOLS.setdefault(threads, out[0])
    return made
