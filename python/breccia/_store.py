"""The class `breccia.zarr.Store`."""
from __future__ import annotations

import asyncio
import collections
import errno
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from zarr.abc.store import Store as ZarrStore
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype

from . import _keys
from ._breccia import ffi, lib
from ._errors import ExistsError, InvalidError, NotFoundError
from ._keys import Change
from ._native import Handle, Handles, Native, Sessions, string, text

if TYPE_CHECKING:
    from .session import Session

T = TypeVar("T")
DOCUMENTS = "zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata"
AT_ONCE = min(8, 2 * (os.cpu_count() or 1))  # calls, and so native sessions, of one store


class View:
    """What a store shows, and how a native session on it is opened."""

    def __init__(self, path: str, rev: str, read_only: bool) -> None:
        self.path, self.rev, self.read_only = path, rev, read_only
        self.commit = ""  # that a fixed revision is; that a branch was when somebody asked last
        self.fixed = False  # it is no branch

    def open(self, handle: Handle) -> Any:
        out = ffi.new("brc_session **")
        if not self.fixed:
            mode = lib.BRC_SESSION_VIEW if self.read_only else lib.BRC_SESSION_WRITE
            try:
                handle.call(lib.brc_session_open, out, handle.repo, text(self.rev), mode)
                return out[0]
            except (NotFoundError, InvalidError):
                self.commit = self.resolve(handle)
                self.fixed = True
        handle.call(lib.brc_session_open, out, handle.repo, text(self.commit), lib.BRC_SESSION_AT)
        return out[0]

    def resolve(self, handle: Handle) -> str:
        """The id of the revision's commit."""
        oid = ffi.new("brc_oid *")
        handle.call(lib.brc_resolve, oid, handle.repo, text(self.rev))
        return string(lib.brc_oid_format(ffi.new("char[65]"), oid))


class Call:
    """A call in another thread, which stop() interrupts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._native: Native | None = None
        self._stopped = False

    def begin(self, native: Native) -> None:
        with self._lock:
            if self._stopped:
                raise asyncio.CancelledError
            self._native = native

    def end(self) -> None:
        with self._lock:
            if self._stopped and self._native is not None:
                lib.brc_interrupt_clear(self._native.handle.repo)
            self._native = None

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if self._native is not None:
                lib.brc_interrupt(self._native.handle.repo)


class Locks:
    """Of one store in one process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.opening = threading.Lock()
        self.places = threading.BoundedSemaphore(AT_ONCE)
        self.writing = threading.Lock()
        self.changes: collections.deque[Change] = collections.deque()


class Store(ZarrStore):
    """One version of a breccia file as a Zarr store.

    path: the file. rev: a branch, which is shown with the uncommitted changes that its users share, and can
    be changed unless `read_only`; or a tag, a commit's id or another revision, which is read-only from when
    the store is opened, and stays that commit. create: makes the file where there is none.

    Nothing is opened before the first use. A store may be used by several threads, and in a child of fork(),
    which opens the file again. Stores of equal arguments are equal. A store pickles by its arguments and the
    commit that it shows. Keys that are set or deleted at once become one transaction; each call returns when
    its own is durable.

    Errors are those that zarr expects (ValueError, TypeError, FileNotFoundError), and else breccia's.
    """

    def __init__(self, path: str | os.PathLike[str], rev: str = "main", *, read_only: bool = False,
                 create: bool = False) -> None:
        super().__init__(read_only=read_only)
        self._create = create
        self._view = View(os.path.abspath(os.fspath(path)), rev, read_only)
        self._session: Session | None = None
        self._handles: Handles | None = None
        self._sessions: Sessions | None = None
        self._locks = Locks()

    @classmethod
    def of_session(cls, session: Session) -> Store:
        """The hierarchy of a session with its own uncommitted changes. It pickles as the session does:
        its copies write the same draft."""
        made = cls(session.repository.path, session.rev, read_only=session.read_only)
        made._session = session
        return made

    # ---- what it is ----

    @property
    def path(self) -> str:
        return self._view.path

    @property
    def rev(self) -> str:
        return self._view.rev

    @property
    def read_only(self) -> bool:
        return self._read_only or self._view.fixed

    def __repr__(self) -> str:
        more = ", read_only=True" if self.read_only else ""
        return f"breccia.zarr.Store({self.path!r}, {self.rev!r}{more})"

    __str__ = __repr__

    def _identity(self) -> tuple[Any, ...]:
        return self.path, self.rev, self._read_only, self._session

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity()[:3])

    def __getstate__(self) -> dict[str, Any]:
        """The commit is part of it: dask's tokens come from the pickle, and change when a branch does."""
        view = self._view
        if self._is_open and self._session is None and not view.fixed:
            self._use(self._look)
        return {"path": view.path, "rev": view.rev, "read_only": self._read_only, "commit": view.commit,
                "create": self._create and not self._is_open, "fixed": view.fixed, "session": self._session}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Store.__init__(self, **{name: state[name] for name in ("path", "rev", "read_only", "create")})
        self._session = state["session"]
        self._view.commit, self._view.fixed = state["commit"], state["fixed"]

    def with_read_only(self, read_only: bool = False) -> Store:
        """The same, not opened: to be read, or to be changed where it shows a branch."""
        if self._view.fixed and not read_only:
            raise ValueError(f"{self.rev!r} is a commit, which cannot be changed: open a branch")
        made = type(self)(self.path, self.rev, read_only=read_only, create=self._create)
        made._session = self._session
        made._view.commit, made._view.fixed = self._view.commit, self._view.fixed
        if self._read_only == read_only:
            made._handles = self._handles
        return made

    @property
    def supports_writes(self) -> bool:
        return True

    @property
    def supports_deletes(self) -> bool:
        return True

    @property
    def supports_listing(self) -> bool:
        return True

    @property
    def supports_partial_writes(self) -> Any:
        return False

    async def set_partial_values(self, key_start_values: Iterable[tuple[str, int, Any]]) -> None:
        raise NotImplementedError("no part of a value can be set: write to the array")

    # ---- opening ----

    async def _open(self) -> None:
        await super()._open()
        try:
            self._use(self._look)
        except BaseException:
            self._is_open = False
            raise

    def _ensure(self) -> None:
        """As _ensure_open(), for the methods that are not asynchronous."""
        if not self._is_open:
            self._use(self._look)
            self._is_open = True

    def close(self) -> None:
        """Closes the file's handles. A later call opens the store again."""
        super().close()
        sessions, self._sessions, self._handles = self._sessions, None, None
        if sessions is not None:
            sessions.close()

    def _natives(self, locks: Locks) -> Sessions:
        if self._session is not None:
            return self._session._sessions
        sessions = self._sessions
        if sessions is None:
            with locks.opening:
                if self._sessions is None:
                    self._sessions = self._first()
                sessions = self._sessions
        return sessions

    def _first(self) -> Sessions:
        if not os.path.exists(self.path):
            if not self._create:
                raise FileNotFoundError(errno.ENOENT, "no such file (create=True makes one)", self.path)
            made = Handles(self.path, flags=lib.BRC_OPEN_CREATE)
            try:
                made.open().close()
                made.close()
            except ExistsError:
                pass  # somebody else was first
        if self._handles is None:
            self._handles = Handles(self.path, flags=lib.BRC_OPEN_READONLY * self._read_only)
        return Sessions(self._handles, self._view.open)

    def _look(self, native: Native) -> None:
        """What the branch's commit is now."""
        if self._session is None and not self._view.fixed:
            try:
                self._view.commit = self._view.resolve(native.handle)
            except NotFoundError:  # it has none yet
                self._view.commit = ""

    # ---- calls ----

    def _mine(self) -> Locks:
        if self._locks.pid != os.getpid():  # in a child the locks may be held by threads that are not there
            self._locks = Locks()
        return self._locks

    def _use(self, function: Callable[..., T], *args: Any, call: Call | None = None,
             short: bool = False) -> T:
        """function(native, *args) on a native session. A short call does not wait for others to end."""
        locks = self._mine()
        if not short:
            locks.places.acquire()
        try:
            natives = self._natives(locks)
            native = natives.take()
            try:
                if call is None:
                    return function(native, *args)
                call.begin(native)
                try:
                    return function(native, *args)
                finally:
                    call.end()
            finally:
                natives.give(native)
        finally:
            if not short:
                locks.places.release()

    async def _run(self, function: Callable[..., T], *args: Any) -> T:
        """_use() in a thread. When this is cancelled the library's call ends, and then so does this."""
        await self._ensure_open()
        call = Call()
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(None, partial(self._use, function, *args, call=call))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            call.stop()
            await asyncio.wait([work])
            work.cancelled() or work.exception()
            raise

    async def _peek(self, function: Callable[..., T], *args: Any) -> T:
        """_use() at once: what takes microseconds takes longer in another thread."""
        await self._ensure_open()
        return self._use(function, *args, short=True)

    def _settle(self, change: Change) -> None:
        """Writes the change, with those that wait."""
        locks = self._mine()
        with locks.writing:
            if not change.done:
                waiting = [locks.changes.popleft() for _ in range(len(locks.changes))]
                self._use(_keys.change_all, waiting if change in waiting else [*waiting, change])
        if change.error is not None:
            raise change.error

    async def _change(self, change: Change) -> None:
        self._mine().changes.append(change)
        try:
            await asyncio.get_running_loop().run_in_executor(None, self._settle, change)
        except asyncio.CancelledError:
            change.done = True
            raise

    def _data(self, value: Any, of: str = "set") -> Any:
        """The value's own memory, as the library reads it."""
        if not isinstance(value, Buffer):
            raise TypeError(f"Store.{of}(): `value` must be a Buffer instance."
                            f" Got an instance of {type(value)} instead.")
        return np.ascontiguousarray(value.as_numpy_array())

    # ---- reading ----

    async def get(self, key: str, prototype: BufferPrototype | None = None,
                  byte_range: Any = None) -> Buffer | None:
        how = self._peek if key.endswith(DOCUMENTS) else self._run
        return await how(_keys.get, key, prototype or default_buffer_prototype(), byte_range)

    def get_sync(self, key: str, *, prototype: BufferPrototype | None = None,
                 byte_range: Any = None) -> Buffer | None:
        self._ensure()
        return self._use(_keys.get, key, prototype or default_buffer_prototype(), byte_range)

    async def get_partial_values(self, prototype: BufferPrototype,
                                 key_ranges: Iterable[tuple[str, Any]]) -> list[Buffer | None]:
        wanted = [(key, prototype, request) for key, request in key_ranges]
        return await self._run(_keys.get_many, wanted) if wanted else []

    async def _get_many(self, requests: Iterable[tuple[str, BufferPrototype, Any]]
                        ) -> AsyncGenerator[tuple[str, Buffer | None], None]:
        wanted = list(requests)
        for one, found in zip(wanted, await self._run(_keys.get_many, wanted) if wanted else []):
            yield one[0], found

    async def get_ranges(self, key: str, byte_ranges: Sequence[Any], *, prototype: BufferPrototype,
                         **limits: Any) -> AsyncIterator[Sequence[tuple[int, Buffer | None]]]:
        """All ranges in one call, so nothing is merged or limited."""
        if byte_ranges:
            yield await self._run(_keys.get_ranges, key, byte_ranges, prototype)

    def get_ranges_sync(self, key: str, byte_ranges: Sequence[Any], *, prototype: BufferPrototype,
                        **limits: Any) -> Sequence[tuple[int, Buffer | None]]:
        self._ensure()
        return self._use(_keys.get_ranges, key, byte_ranges, prototype) if byte_ranges else []

    async def exists(self, key: str) -> bool:
        return await self._peek(_keys.exists, key)

    async def getsize(self, key: str) -> int:
        return await self._run(_keys.size, key)

    async def getsize_prefix(self, prefix: str) -> int:
        return await self._run(_keys.size_under, _keys.folder(prefix))

    async def is_empty(self, prefix: str) -> bool:
        return await self._peek(_keys.is_empty, prefix)

    async def list(self) -> AsyncIterator[str]:
        for key in await self._run(_keys.names, ""):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        for key in await self._run(_keys.names, prefix):
            yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        for name in await self._run(_keys.names, _keys.folder(prefix), True):
            yield name

    # ---- writing ----

    async def _to_write(self) -> None:
        await self._ensure_open()
        self._check_writable()

    async def set(self, key: str, value: Buffer) -> None:
        await self._to_write()
        await self._change(Change(key, self._data(value)))

    def set_sync(self, key: str, value: Buffer) -> None:
        self._ensure()
        self._check_writable()
        self._settle(Change(key, self._data(value, "set_sync")))

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        await self._to_write()
        await self._run(_keys.set_new, key, self._data(value, "set_if_not_exists"))

    async def _set_many(self, values: Iterable[tuple[str, Buffer]]) -> None:
        """All or none."""
        await self._to_write()
        changes = [Change(key, self._data(value, "_set_many")) for key, value in values]
        if changes:
            await self._run(_keys.set_many, changes)

    async def delete(self, key: str) -> None:
        await self._to_write()
        if self._use(_keys.exists, key, short=True):
            await self._change(Change(key, None))

    def delete_sync(self, key: str) -> None:
        self._ensure()
        self._check_writable()
        if self._use(_keys.exists, key):
            self._settle(Change(key, None))

    async def delete_dir(self, prefix: str) -> None:
        await self._to_write()
        await self._run(_keys.delete_under, _keys.folder(prefix))

    async def clear(self) -> None:
        await self.delete_dir("")
