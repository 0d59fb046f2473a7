"""Calls of the C library, handles on the file, and what fork() does to them. A handle of the library belongs
to one thread at a time, so several are open: a thread takes one and gives it back. `Handles` has those of a file, and
`Sessions` those of one view of the file, each with a session and its arrays."""
from __future__ import annotations

import json
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, partial
from typing import Any, Literal, TypeVar

from . import _errors
from ._breccia import ffi, lib

T = TypeVar("T")
Readback = bool | Literal["sampled"] | None
KEPT = 8  # the most handles of a file that stay open unused
raised: dict[int, BaseException | None] = {}  # what functions for credentials raised, by number, for their callers


def text(value: str | bytes | None) -> Any:
    """Returns a string for C; NULL for None. A NUL inside would end it early."""
    if value is None:
        return ffi.NULL
    if not isinstance(value, (str, bytes)):
        raise _errors.WrongTypeError(f"{value!r} is not text")
    raw = value if isinstance(value, bytes) else value.encode()
    if b"\0" in raw:
        raise _errors.InvalidError(f"{value!r} has a NUL character, which no name or text may have")
    return ffi.new("char[]", raw)


def string(value: Any) -> str:
    """Returns C's text as a string, also an attribute's name; "" for NULL."""
    return ffi.string(value).replace(b"\xc0\x80", b"\0").decode("utf-8", "replace") if value else ""


def printable(text: str) -> str:
    """Returns a name for a terminal: characters that could control the terminal are escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def file_and_rev(name: str | os.PathLike[str]) -> tuple[str | os.PathLike[str], str | None]:
    """Splits FILE@REV as the command does: a file that has the whole name comes first, then the last "@" after the
    name of a file."""
    words = os.fsdecode(name).split("@")
    for n in range(len(words) - 1, 0, -1) if not os.path.exists(name) else ():
        if os.path.isfile(file := "@".join(words[:n])):
            return file, "@".join(words[n:])
    return name, None


def sized(kind: str, **members: Any) -> Any:
    """Makes a structure of the library, which begins with its size."""
    made = ffi.new(kind + " *", members)
    made.size = ffi.sizeof(kind)
    return made


def failure(rc: int, err: Any) -> BaseException:
    """Returns the exception for a negative result and the library's message, or the one that a function for credentials
    raised."""
    if string(err.source) == "python" and (error := raised.pop(err.detail, None)) is not None:
        return error
    made = _errors.BY_CODE.get(rc, _errors.Error)(_errors.said(string(err.message)) or string(lib.brc_strerror(rc)))
    made.detail = err.detail
    return made


def _made(function: Callable[..., int], kind: str, *args: Any) -> Any:
    """Returns the object that function(out, *args, err) makes."""
    out, err = ffi.new(kind + " **"), sized("brc_error")
    rc = function(out, *args, err)
    if rc < 0:
        raise failure(rc, err)
    return out[0]


class Handle:
    """One handle on the file, used by one thread at a time. A handle of Sessions also has a session and its open
    arrays. Its owner closes it, or Python does when it is unused."""

    __slots__ = ("repo", "err", "home", "giver", "told", "session", "arrays", "era", "opener", "ended")

    def __init__(self, repo: Any, home: int, giver: Any = None) -> None:
        self.repo, self.home, self.err, self.era, self.ended = repo, home, sized("brc_error"), 0, False
        self.giver = giver  # the library may ask it until the handle is closed
        self.session, self.arrays = ffi.NULL, dict[str, Any]()
        self.told, self.opener = None, None  # type: Progress | None, Callable[[Handle], Any] | None

    @property
    def own(self) -> Any:
        """The object that calls work on: the session, or else the repository."""
        return self.session or self.repo

    def close(self) -> None:
        self.leave()
        repo, self.repo = self.repo, ffi.NULL
        if repo:
            lib.py_leave(repo)
            lib.brc_free(repo)

    def leave(self) -> None:
        """Closes the session and the arrays."""
        self.forget()
        session, self.session = self.session, ffi.NULL
        lib.brc_session_free(session)

    def __del__(self) -> None:
        if lib is not None and self.repo:
            self.close()

    def call(self, function: Callable[..., int], *args: Any) -> int:
        """Calls function(*args, err); a negative result raises an exception. Ctrl-C interrupts the call in the main
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
        """Returns the exception for a result, or the one that a Python callback raised."""
        raised = None
        if self.told is not None:
            raised, self.told.raised = self.told.raised, None
        if self.ended and rc == lib.BRC_EREADONLY:
            raised = _errors.ReadOnlyError("this session has ended: what it is to write belongs in its `with` block")
        return raised or failure(rc, self.err)

    def call_out(self, function: Callable[..., int], out: Any, *args: Any) -> int:
        """Calls function(out, session, *args, err)."""
        return self.call(function, out, self.own, *args)

    def made(self, function: Callable[..., int], kind: str, *args: Any) -> Any:
        """Returns the object that function(out, session, *args, err) makes."""
        out = ffi.new(kind + " **")
        self.call_out(function, out, *args)
        return out[0]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Makes all changes of the block, or none if the block fails."""
        self.call(lib.brc_begin, self.repo)
        done = 0
        try:
            yield
            done = lib.BRC_END_KEEP
        finally:
            self.call(lib.brc_end, self.repo, done)
            if not done:
                self.forget()

    @contextmanager
    def bulk(self) -> Iterator[None]:
        """Makes all writes of the block, in steps between which others go on, or none if the block fails."""
        self.call(lib.brc_bulk_begin, self.session)
        done = 0
        try:
            yield
            done = lib.BRC_END_KEEP
        finally:
            try:
                self.call(lib.brc_bulk_end, self.session, done)
            except BaseException:
                done = 0
                raise
            finally:
                if not done:
                    self.forget()

    def take_buf(self, function: Callable[..., int], *args: Any) -> bytes:
        """Returns the bytes that function(out, *args, err) appends to a buffer."""
        out = sized("brc_buf")
        try:
            self.call(function, out, *args)
            return bytes(ffi.buffer(out.data, out.len)) if out.len else b""
        finally:
            lib.brc_buf_dispose(out)

    def items(self, made: Any, kind: str, convert: Callable[[Any], T], limit: int | None = None) -> list[T]:
        """Lists the converted items of an iterator, and frees it. `made` is the memory that its maker wrote to."""
        out, found, repo = ffi.new(f"const {kind} **"), list[T](), self.repo
        if limit is not None and limit < 0:
            raise OverflowError
        try:
            lib.py_enter(repo)  # once, because it asks the system thrice what Ctrl-C does
            while made[0] and (limit is None or len(found) < limit) and (rc := lib.brc_next(made[0], out, self.err)):
                if rc < 0:
                    raise self.failed(rc)
                found.append(convert(out[0]))
            return found
        finally:
            lib.py_leave(repo)
            lib.brc_iter_free(made[0])

    def array(self, path: str) -> Any:
        """Returns the open array at a path."""
        found = self.arrays.get(path)
        if found is None:
            found = self.arrays[path] = self.made(lib.brc_array_open, "brc_array", text(path))
        return found

    def forget(self, path: str | None = None) -> None:
        """Closes the array at a path, or all arrays."""
        for name in list(self.arrays) if path is None else [path]:
            lib.brc_array_free(self.arrays.pop(name, ffi.NULL))


def _readback_of(readback: Readback) -> int:
    if readback not in (names := {None: "", True: "ALL", False: "NONE", "sampled": "SAMPLED"}):
        raise _errors.InvalidError(f"readback is True, False, 'sampled' or None, not {readback!r}")
    return int(getattr(lib, f"BRC_READBACK_{names[readback]}")) if names[readback] else 0


def _cache_bytes_of(given: int | str) -> int:
    try:
        if 0 <= (number := int(given)) < 1 << 63:
            return number
    except (TypeError, ValueError):
        pass
    raise _errors.InvalidError(f"cache_bytes is a number of bytes, not {given!r}")


class Handles:
    """The handles on one file, one for each thread that works. A child of fork() begins anew, and leaves the parent's
    handles alone. `progress` reports long calls that name no function of their own. `giver` gives credentials for
    servers (_credentials.py); None: what the command would give. `cache`: a file that keeps what servers sent, of at
    most `cache_bytes`; None: what the environment says, as for the command."""

    home = era = 0  # home grows with close(): older handles are not kept
    progress: Any = None

    def __init__(self, path: str | os.PathLike[str], *, flags: int = 0, wait: float | None = None,
                 memory: int = 0, threads: int = 0, readback: Readback = None, giver: Any = None,
                 cache: str | os.PathLike[str] | None = None, cache_bytes: int = 0,
                 pipeline: str | dict[str, Any] | None = None) -> None:
        self.path, self.giver = os.path.abspath(os.fsdecode(path)), giver
        self.flags, self.wait, self.memory, self.threads = flags, wait, memory, threads
        self.readback = _readback_of(readback)
        self.pipeline = pipeline if pipeline is None or isinstance(pipeline, str) else json.dumps(pipeline)
        named = os.environ.get("BRECCIA_CACHE", "") if cache is None else cache
        self.cache = os.fsencode(os.path.abspath(named)) if os.fspath(named) else None
        self.cache_bytes = _cache_bytes_of(cache_bytes or os.environ.get("BRECCIA_CACHE_BYTES") or 0)
        self._begin()

    @property
    def handles(self) -> Handles:
        return self

    def _begin(self) -> None:
        self._pid, self.home = os.getpid(), self.home + 1
        self._lock = threading.Lock()  # a lock that another thread held at fork() would stay locked
        self._root: Handle | None = None  # the first handle, from which the others are opened
        self._idle: deque[Handle] = deque()

    def _new(self) -> Handle:
        with self._lock:
            if self._root is not None and self._root.repo:
                return Handle(_made(lib.brc_reopen, "breccia", self._root.repo), self.home, self.giver)
            pool = shared("pool", self.threads) if self.threads != 1 else ffi.NULL
            options = sized("brc_open_opts", flags=self.flags, memory=self.memory, pool=pool,
                            registry=shared("registry"), credentials=lib.cli_credentials,
                            readback=self.readback, cache_bytes=self.cache_bytes)
            if self.giver is not None:
                options.credentials, options.credentials_ctx = lib.py_credentials, self.giver.me
            kept = options.libexec, options.cache = text(LIBEXEC), text(self.cache)
            pipeline = text(self.pipeline)
            options.pipeline = how = sized("brc_pipeline_opts", pipeline=pipeline)
            if self.wait is not None:
                options.wait_ms = max(1, int(min(self.wait, 2e6) * 1000)) if self.wait > 0 else -1
            try:
                made = _made(lib.brc_open, "breccia", text(os.fsencode(self.path)), options)
            except _errors.ExistsError:  # another process was first
                if not os.path.exists(self.path):
                    raise  # no file: something is in its way
                options.flags &= ~lib.BRC_OPEN_CREATE
                made = _made(lib.brc_open, "breccia", text(os.fsencode(self.path)), options)
            self.flags, self._root = options.flags, Handle(made, self.home, self.giver)
            return self._root

    def _drop(self, handle: Handle) -> None:
        """Closes a handle that is not used any more."""
        handle.close()

    def take(self) -> Handle:
        """Takes a handle for the caller alone, until it is given back."""
        if self._pid != os.getpid():
            self._begin()
        try:
            return self._idle.pop()
        except IndexError:
            return self._new()

    def give(self, handle: Handle) -> None:
        if handle.home != self.handles.home:
            handle.close()
        elif handle is self._root or len(self._idle) < KEPT:
            self._idle.append(handle)
        else:
            self._drop(handle)

    @contextmanager
    def at_work(self, progress: Any = None) -> Iterator[Handle]:
        """Takes a handle for a block. `progress` (true, or a function) reports the block's calls."""
        handle = self.take()
        try:
            if progress:
                handle.told = Progress(progress)
                lib.brc_progress_set(handle.repo, lib.py_report, handle.told.struct)
            yield handle
        finally:
            if progress and handle.told is not None:
                lib.brc_progress_set(handle.repo, ffi.NULL, ffi.NULL)
                handle.told.close()
                handle.told = None
            self.give(handle)

    def close(self) -> None:
        """Closes the unused handles now, and the others when they are given back; a later call opens new ones.
        Uncommitted changes stay in the file."""
        if self._pid == os.getpid():
            with self._lock:
                self.home, self._root = self.home + 1, None
                with suppress(IndexError):  # other threads may take handles meanwhile
                    while True:
                        self._drop(self._idle.pop())


# The thread whose transaction or savepoint this context is in: a context goes along into threads that it starts.
_owner: ContextVar[int] = ContextVar("breccia's block", default=0)


class Sessions(Handles):
    """The native sessions of one view, each on a handle of its own."""

    def __init__(self, handles: Handles, opener: partial[Any]) -> None:
        self._of, self.opener, self.progress = handles, opener, handles.progress
        self.era = 0  # grows when open arrays may be out of date
        self._pinned: dict[int, Handle] = {}  # by thread: all calls of a transaction use one session
        self._begin()

    @property
    def handles(self) -> Handles:
        return self._of

    def _new(self) -> Handle:
        handle = self.handles.take()
        try:
            handle.opener = self.opener
            handle.session = handle.opener(handle)
            return handle
        except BaseException:
            self.handles.give(handle)
            raise

    def _drop(self, handle: Handle) -> None:
        """Gives the handle back as another object: Python's collector of cycles may finish a Handle together with its
        Sessions even if the handle has been given back and is in use."""
        handle.leave()
        if handle.repo:  # the handle was open
            made, handle.repo = Handle(handle.repo, handle.home, handle.giver), ffi.NULL
            if self.handles._root is handle:
                self.handles._root = made
            self.handles.give(made)

    def pinned(self) -> Handle | None:
        """Returns the handle of the transaction or savepoint of this thread. MisuseError in a thread that works for
        that thread."""
        own = self._pinned.get(threading.get_ident())
        if own is None and _owner.get() in self._pinned:
            raise _errors.MisuseError("other threads, and so zarr, take no part in a transaction or savepoint: fork()")
        return own

    def take(self) -> Handle:
        # In a child of fork(), the library reports that a pinned handle belongs to another process.
        native = self._pinned and self.pinned() or super().take()
        if native.era != self.era:
            native.forget()
            native.era = self.era
        return native

    def give(self, native: Handle) -> None:
        if not self._pinned or self._pinned.get(threading.get_ident()) is not native:
            (super().give if native.opener is self.opener else self._drop)(native)  # an old handle is not kept

    @contextmanager
    def pin(self) -> Iterator[Handle]:
        """Gives all calls of this thread in the block one native session."""
        me, before = threading.get_ident(), _owner.get()
        with self.at_work() as native:
            outer = self._pinned.get(me)
            self._pinned[me] = native
            _owner.set(me)
            try:
                yield native
            finally:
                _owner.set(before)
                if outer is None:
                    del self._pinned[me]

    def __del__(self) -> None:
        if lib is not None:
            self.close()


class Progress:
    """Reports the progress of a call, and keeps the exception that the report raised."""

    def __init__(self, who: Any) -> None:
        self._bar, self._phase = None, ""  # type: Any, str
        self.tell = who if callable(who) else self._draw
        self.raised: BaseException | None = None
        self._self = ffi.new_handle(self)
        self.struct = ffi.new("py_progress *", {"self": self._self})

    def _draw(self, phase: str, done: int, total: int) -> None:
        if self._bar is None or self._phase != phase:
            self.close()
            self._phase = phase
            try:
                from tqdm.auto import tqdm
            except ImportError:
                self.tell = lambda *_: None
                return
            self._bar = tqdm(total=total or None, desc=phase, unit="B", unit_scale=True)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _raised(kind: Any, error: Any, trace: Any) -> int:
    """Keeps the exception for the caller, and prints nothing; also Ctrl-C in the callback itself."""
    me = trace.tb_frame.f_locals.get("me") if trace is not None else None
    if me:
        ffi.from_handle(me).raised = error
    return 1


@ffi.def_extern(name="py_progress_call", error=1, onerror=_raised)
def _report(me: Any, phase: Any, done: int, total: int) -> int:
    ffi.from_handle(me).tell(string(phase), done, total)
    return 0


os.register_at_fork(after_in_child=lib.py_forked)

# In a wheel, the programs that read and write HDF5 and NetCDF lie beside this file.
_BESIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libexec", "breccia")
LIBEXEC = _BESIDE if os.path.isdir(_BESIDE) else None


@cache
def shared(kind: str, *args: int) -> Any:
    """Returns the objects that all repositories of the process share: "registry", of codecs; "pool", N: N worker
    threads (0: one per core)."""
    return _made(getattr(lib, f"brc_{kind}_new"), f"brc_{kind}", *args)


def use_nvcomp(library: str | os.PathLike[str] | None = None) -> None:
    """Lets nvCOMP decode chunks that are read into memory of CUDA devices, where that costs less than the host: before
    this process opens its first repository, and for files that are trusted, because damaged chunks may have any effect
    on the device. `library`: a path or a name of nvCOMP's shared object; None: libnvcomp.so.6, .5 or .4."""
    err, name = sized("brc_error"), text(None if library is None else os.fsencode(library))
    if (rc := lib.brc_registry_use_nvcomp(shared("registry"), name, err)) < 0:
        raise failure(rc, err)
