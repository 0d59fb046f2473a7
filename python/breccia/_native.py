"""The one place that knows the C library: calls, handles on the file, and what happens after a fork.

A handle of the library belongs to one thread at a time, so a repository of this package keeps several, and a
call borrows one. `Handles` are those of one file, `Sessions` those of one view of it: each of these has a
handle of its own, one native session on it, and the arrays that were opened there.
"""
from __future__ import annotations

import collections
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from . import _errors
from ._breccia import ffi, lib

OK = 0
T = TypeVar("T")
_LOCK = threading.RLock()
_OPEN: weakref.WeakSet[Handle] = weakref.WeakSet()  # what interrupt() may look at


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
    said.detail = err.detail
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
    """One handle on the file: of one thread at a time. Closed by its owner, or when nobody has it any
    more."""

    __slots__ = ("repo", "err", "pid", "told", "__weakref__")

    def __init__(self, repo: Any, told: Progress | None = None) -> None:
        self.repo, self.told = repo, told
        self.err = new_error()
        self.pid = os.getpid()
        with _LOCK:
            _OPEN.add(self)

    @classmethod
    def first(cls, path: str, options: Any, told: Progress | None = None) -> Handle:
        out, err = ffi.new("breccia **"), new_error()
        check(lib.brc_open(out, os.fsencode(path), options, err), err)
        return cls(out[0], told)

    @classmethod
    def again(cls, other: Handle) -> Handle:
        out, err = ffi.new("breccia **"), new_error()
        check(lib.brc_reopen(out, other.repo, err), err)
        return cls(out[0])

    def close(self) -> None:
        with _LOCK:
            repo, self.repo = self.repo, ffi.NULL
            _OPEN.discard(self)
        if repo:
            lib.py_leave(repo)
            lib.brc_free(repo)

    def __del__(self) -> None:
        if lib is not None and getattr(self, "repo", None):
            self.close()

    def call(self, function: Callable[..., int], *args: Any) -> int:
        """function(*args, err), where a negative result is an exception. Ctrl-C ends it in the main
        thread."""
        repo = self.repo
        try:
            lib.py_enter(repo)
            rc = function(*args, self.err)
        finally:
            lib.py_leave(repo)
        if rc < 0:
            raise self.failed(rc)
        return rc

    def failed(self, rc: int) -> BaseException:
        """The exception for a result. What a callback of Python raised comes out again here."""
        said = self.told.take() if self.told is not None else None
        return said or failure(rc, self.err)

    def take_buf(self, function: Callable[..., int], *args: Any) -> bytes:
        """The bytes that function(out, *args, err) appends to a buffer."""
        out = sized("brc_buf")
        try:
            self.call(function, out, *args)
            return bytes(ffi.buffer(out.data, out.len)) if out.len else b""
        finally:
            lib.brc_buf_dispose(out)

    def take_buf_of(self, function: Callable[..., int], *args: Any) -> bytes:
        """The same of function(*args, out, err)."""
        return self.take_buf(lambda out, *rest: function(*rest[:-1], out, rest[-1]), *args)

    def items(self, made: Any, step: Callable[..., int], kind: str, convert: Callable[[Any], T],
              limit: int | None = None) -> list[T]:
        """What an iterator lists, each converted; the iterator is freed. `made` is what its maker wrote
        to."""
        out = ffi.new(f"const {kind} **")
        found: list[T] = []
        try:
            while made[0] and (limit is None or len(found) < limit):
                if self.call(step, made[0], out) == 0:
                    break
                found.append(convert(out[0]))
            return found
        finally:
            lib.brc_iter_free(made[0])


class Native:
    """A session of the library on a handle of its own, and the arrays that were opened there."""

    __slots__ = ("handle", "session", "arrays", "pid", "era", "scratch", "owner", "__weakref__")

    def __init__(self, handle: Handle, session: Any, era: int) -> None:
        self.handle, self.session, self.era = handle, session, era
        self.arrays: dict[str, Any] = {}
        self.pid = handle.pid
        self.scratch: Any = None
        self.owner = 0  # of a private session the thread that has it

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

    def call(self, function: Callable[..., int], *args: Any) -> int:
        """function(session, *args, err)."""
        return self.handle.call(function, self.session, *args)

    def call_out(self, function: Callable[..., int], out: Any, *args: Any) -> int:
        """function(out, session, *args, err)."""
        return self.handle.call(function, out, self.session, *args)

    def close(self) -> None:
        self.forget()
        session, self.session = self.session, ffi.NULL
        if session:
            lib.brc_session_free(session)
        self.handle.close()

    def __del__(self) -> None:
        if lib is not None and getattr(self, "session", None):
            self.close()


class Handles:
    """The handles on one file, for as many threads as work at once.

    Nothing is opened before the first call. After a fork the child opens the file again: what its parent
    had is of no use there, and is left alone.
    """

    def __init__(self, path: str | os.PathLike[str], *, flags: int = 0, wait: float | None = None,
                 memory: int = 0, threads: int = 0) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.flags, self.wait, self.memory, self.threads = flags, wait, memory, threads
        self._lock = threading.RLock()
        self._root: Handle | None = None
        self._idle: collections.deque[Handle] = collections.deque()
        self._pid = 0
        self._mine: weakref.WeakSet[Handle] = weakref.WeakSet()
        self._stopped = False

    def open(self) -> Handle:
        """A handle for the caller alone, who closes it."""
        pid = os.getpid()
        if self._pid != pid:  # a lock that another thread held when it forked would stay locked here
            self._lock = threading.RLock()
            self._root, self._idle, self._pid = None, collections.deque(), pid
            self._mine, self._stopped = weakref.WeakSet(), False
        with self._lock:
            if self._root is None:
                self._root = self._first()
                self.flags &= ~lib.BRC_OPEN_CREATE
            made = Handle.again(self._root)
            with _LOCK:
                self._mine.add(made)
                if self._stopped:
                    lib.brc_interrupt(made.repo)
            return made

    def _first(self, told: Progress | None = None) -> Handle:
        options = sized("brc_open_opts", flags=self.flags, memory=self.memory, pool=pool(self.threads))
        libexec = text(LIBEXEC) if LIBEXEC else ffi.NULL
        options.libexec = libexec
        if told is not None:
            options.progress, options.progress_ctx = lib.py_report, told.struct
        if self.wait is not None:
            options.wait_ms = max(1, int(self.wait * 1000)) if self.wait > 0 else -1
        return Handle.first(self.path, options, told)

    def take(self) -> Handle:
        """A handle for the caller alone, until it is given back."""
        if self._pid == os.getpid():
            try:
                return self._idle.pop()
            except IndexError:
                pass
        return self.open()

    def give(self, handle: Handle) -> None:
        if handle.pid == os.getpid() and self._root is not None:
            self._idle.append(handle)
        else:
            handle.close()

    @contextmanager
    def at_work(self, progress: Any = None) -> Iterator[Handle]:
        """A handle for a block; with `progress` (true, or a function) one that reports to it."""
        if progress:
            told = Progress(progress)
            handle = self._first(told)
            try:
                yield handle
            finally:
                handle.close()
                told.close()
        else:
            handle = self.take()
            try:
                yield handle
            finally:
                self.give(handle)

    def interrupt(self) -> None:
        """Stops what all threads do with this file, and what they begin, until clear(). From any thread."""
        with _LOCK:
            self._stopped = True
            for handle in list(self._mine):
                if handle.repo and handle.pid == os.getpid():
                    lib.brc_interrupt(handle.repo)

    def clear(self) -> None:
        """Ends what interrupt() began. The threads have come out of their calls by then."""
        with _LOCK:
            self._stopped = False
            for handle in list(self._mine):
                if handle.repo and handle.pid == os.getpid():
                    lib.brc_interrupt_clear(handle.repo)

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
        self.pinned: dict[int, Native] = {}  # by thread: in a transaction all its calls are on one session

    def take(self) -> Native:
        if self.pinned:
            native = self.pinned.get(threading.get_ident())
            if native is not None:  # in a child of fork() the library says that it is another process's
                return native
        pid = os.getpid()
        if pid != self._pid:
            self._idle, self._pid = collections.deque(), pid
        try:
            native = self._idle.pop()
        except IndexError:
            return self._open()
        if native.era != self.era:
            native.forget()
            native.era = self.era
        return native

    def _open(self) -> Native:
        handle = self.handles.open()
        try:
            return Native(handle, self._opener(handle), self.era)
        except BaseException:
            handle.close()
            raise

    def give(self, native: Native) -> None:
        if native.pid == self._pid and not (self.pinned and native in self.pinned.values()):
            self._idle.append(native)

    def call(self, function: Callable[..., int], *args: Any) -> int:
        """function(session, *args, err) on a session of its own."""
        native = self.take()
        try:
            return native.handle.call(function, native.session, *args)
        finally:
            self.give(native)

    def call_out(self, function: Callable[..., int], out: Any, *args: Any) -> int:
        """function(out, session, *args, err) on a session of its own."""
        return self.call(lambda session, *rest: function(out, session, *rest), *args)

    @contextmanager
    def at_work(self) -> Iterator[Native]:
        """A native session for a block."""
        native = self.take()
        try:
            yield native
        finally:
            self.give(native)

    @contextmanager
    def pin(self) -> Iterator[Native]:
        """A native session that all calls of this thread use in the block."""
        me = threading.get_ident()
        outer = self.pinned.get(me)
        native = outer or self.take()
        self.pinned[me] = native
        try:
            yield native
        finally:
            if outer is None:
                del self.pinned[me]
                self.give(native)

    def close(self) -> None:
        """Closes the sessions that nobody uses. What is uncommitted stays in the file."""
        while self._idle and self._pid == os.getpid():
            self._idle.pop().close()


class Private(Sessions):
    """The native sessions of a private draft. The first begins it, where no token says which it is; others,
    in any process, are opened by its token."""

    def __init__(self, handles: Handles, branch: str, token: str = "") -> None:
        super().__init__(handles, self._begin)
        self._branch, self.known = branch, token
        self._ready = threading.Condition()
        self._first: Native | None = None

    def _begin(self, handle: Handle) -> Any:
        out = ffi.new("brc_session **")
        if self.known or self._first is not None:
            handle.call(lib.brc_session_attach, out, handle.repo, text(self.known))
        else:
            handle.call(lib.brc_session_open, out, handle.repo, text(self._branch), lib.BRC_SESSION_PRIVATE)
        return out[0]

    def take(self) -> Native:
        native = super().take()
        native.owner = threading.get_ident()
        return native

    def give(self, native: Native) -> None:
        if not self.pinned or native not in self.pinned.values():
            native.owner = 0
        super().give(native)

    def _open(self) -> Native:
        if not self.known:
            self._check_process()
            with self._ready:
                if self._first is None:
                    self._first = super()._open()
                    return self._first
            self.token()
        return super()._open()

    def _check_process(self) -> None:
        if self._first is not None and self._first.pid != os.getpid():
            raise _errors.MisuseError("a private session belongs to the process that began it: pickle it, or "
                                      "give this process a child of session.fork()")

    def token(self) -> str:
        """The draft's token, with which it begins. The first session is asked when no other thread has it."""
        if not self.known and self._first is None:
            self.give(self.take())
        if not self.known:
            self._check_process()
            with self._ready:
                while not self.known:
                    self._ask()
        return self.known

    def _ask(self) -> None:
        first = self._first
        assert first is not None
        mine = first.owner == threading.get_ident()  # between two calls of this thread
        try:
            if not mine:
                self._idle.remove(first)
        except (ValueError, IndexError):
            self._ready.wait(0.005)
            return
        try:
            self.known = token_of(first, first.session)
        finally:
            if not mine:
                self._idle.append(first)

    def close(self) -> None:
        """Closes the sessions that nobody uses. Changes stay in the file, and this view finds them again."""
        with self._ready:
            first = self._first
            mine = first is not None and first.pid == os.getpid() and first in list(self._idle)
            if first is not None and mine and not self.known:
                clean = ffi.new("int *")
                first.call_out(lib.brc_session_clean, clean)
                if clean[0]:
                    self._first = None
                else:
                    self.known = token_of(first, first.session)
            super().close()


def token_of(native: Native, session: Any) -> str:
    """Names the draft of a session of the library on the same handle, which stays when that is closed."""
    return native.handle.take_buf(lib.brc_session_token, session).decode()


class Progress:
    """Who is told how far a call is, and what that raised."""

    def __init__(self, who: Any) -> None:
        self._bar: Any = None
        self._tell = who if callable(who) else self._draw
        self.raised: BaseException | None = None
        self._self = ffi.new_handle(self)
        self.struct = ffi.new("py_progress *", {"self": self._self})

    def report(self, phase: str, done: int, total: int) -> int:
        try:
            self._tell(phase, done, total)
            return 0
        except BaseException as error:
            self.raised = error
            return 1

    def take(self) -> BaseException | None:
        raised, self.raised = self.raised, None
        return raised

    def _draw(self, phase: str, done: int, total: int) -> None:
        if self._bar is None or self._bar.desc != phase + ": ":
            self.close()
            try:
                from tqdm.auto import tqdm
            except ImportError:
                self._tell = lambda *_: None
                return
            self._bar = tqdm(total=total or None, desc=phase, unit="B", unit_scale=True)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _progress_raised(kind: Any, error: Any, trace: Any) -> int:
    """Ctrl-C came in the callback itself: told to the handle, not printed."""
    self = trace.tb_frame.f_locals.get("self") if trace is not None else None
    if self is not None and self != ffi.NULL:
        ffi.from_handle(self).raised = error
    return 1


@ffi.def_extern(name="py_progress_call", error=1, onerror=_progress_raised)
def _progress_call(self: Any, phase: Any, done: int, total: int) -> int:
    return int(ffi.from_handle(self).report(string(phase), done, total))


os.register_at_fork(after_in_child=lib.py_forked)

# The programs that read and write HDF5 and NetCDF lie beside this file in a wheel.
_BESIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libexec")
LIBEXEC = _BESIDE if os.path.isdir(_BESIDE) else None
_POOLS: dict[int, Any] = {}


def pool(threads: int) -> Any:
    """The worker threads that repositories share: `threads` in all, 0: one per core. 1: none."""
    if threads == 1:
        return ffi.NULL
    made = _POOLS.get(threads)
    if made is None:
        out, err = ffi.new("brc_pool **"), new_error()
        check(lib.brc_pool_new(out, threads, err), err)
        made = _POOLS.setdefault(threads, out[0])
    return made
