"""zarr-python on a breccia file: `Store`, and `CodecPipeline`, which reads and writes whole selections in C.

`Store(path, rev)` shows a branch with its shared uncommitted changes, or a commit or tag, which cannot be
changed. With `zarr.config.set({"codec_pipeline.path": "breccia.zarr.CodecPipeline"})` the arrays of such a
store are read and written by the library's own pipeline, and those of other stores as before.

zarr imports this module with the first array that it opens, whatever the store.
"""
from __future__ import annotations

import asyncio
import copy
import json
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import astuple
from functools import partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, Store as ZarrStore, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype, NDBuffer, default_buffer_prototype
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.registry import register_pipeline

from . import _keys, _pipeline
from ._breccia import ffi, lib
from ._credentials import Credentials, Giver, secret
from ._errors import Error, ExistsError, InvalidError
from ._native import Handle, Handles, Sessions, file_and_rev, sized, string, text
from .repository import Repository
from .session import Session

__all__ = ["CodecPipeline", "Store"]
T = TypeVar("T")
KEPT = ("path", "rev", "_read_only", "_draft", "_create", "_fixed", "_shown", "_session", "_given",
        "_cache")  # copied too
DOCUMENTS = "zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata"
AT_ONCE = min(8, 2 * (os.cpu_count() or 1))  # calls, and so native sessions, of one store at a time
RANGES = {type(None): lib.BRC_RANGE_ALL, RangeByteRequest: lib.BRC_RANGE_BETWEEN,
          OffsetByteRequest: lib.BRC_RANGE_FROM, SuffixByteRequest: lib.BRC_RANGE_LAST}


def range_of(request: Any) -> tuple[int, ...]:
    """Returns one of zarr's ranges in the form of `_keys.get`."""
    kind = RANGES.get(type(request))
    numbers = () if request is None or kind is None else astuple(request)
    if kind is None or min(numbers, default=0) < 0:
        raise ValueError(f"Unexpected byte_range, got {request!r}.")
    return kind, *numbers


def get(native: Handle, wanted: Sequence[tuple[str, Any, Any]], needed: bool = False) -> list[Buffer | None]:
    found = _keys.get(native, [key for key, _, _ in wanted], [range_of(request) for _, _, request in wanted])
    if needed and None in found:
        raise BaseExceptionGroup("no range was read", [FileNotFoundError(wanted[0][0])])
    return [None if value is None else (kind or default_buffer_prototype()).buffer.from_bytes(value)
            for value, (_, kind, _) in zip(found, wanted)]


def data_of(value: Any) -> Any:
    """Returns the value's own memory, which the library reads."""
    if not isinstance(value, Buffer):
        raise TypeError(f"`value` must be a Buffer instance. Got an instance of {type(value)} instead.")
    return np.ascontiguousarray(value.as_numpy_array())


def folder(prefix: str) -> str:
    """Returns the beginning of keys in a directory: "a/" for "a", "" for the root."""
    return prefix.strip("/") + "/" if prefix.strip("/") else ""


def opened(rev: str, read_only: bool, draft: bool, fixed: list[str], handle: Handle) -> Any:
    """Opens a native session on a revision, or on the commit that the revision was at first."""
    out, mode = ffi.new("brc_session **"), lib.BRC_SESSION_VIEW if read_only else lib.BRC_SESSION_WRITE
    mode = lib.BRC_SESSION_AT if fixed else mode | lib.BRC_SESSION_ANY_REV | (0 if draft else lib.BRC_SESSION_COMMITS)
    handle.call(lib.brc_session_open, out, handle.repo, text(fixed[0] if fixed else rev), mode)
    return out[0]


class Store(ZarrStore):
    """One version of a breccia file as a Zarr store.

    path: the file, or FILE@REV, which is read-only. rev (None: "main"): a branch, which is shown with the
    uncommitted changes that its users share, and can be changed; with `read_only` it is shown as its newest
    commit is, or with `draft` too as a store that can be changed shows it. Or a tag, a commit's id or another
    revision, which is read-only from when the store is opened, and stays that commit. create: makes the file
    where there is none. credentials, cache, cache_bytes: for chunks in buckets, as breccia.open() takes them.

    Nothing is opened before the first use. A store may be used by several threads, and in a child of fork(),
    which opens the file again. Stores of equal arguments are equal. A store pickles by its arguments and what
    it shows. Keys that are set or deleted at once become one transaction; each call returns when its own is
    durable.

    Errors are those that zarr expects (ValueError, TypeError, FileNotFoundError), and else breccia's.
    """

    supports_writes = supports_deletes = supports_listing = True
    supports_partial_writes: Any = False

    def __init__(self, path: str | os.PathLike[str], rev: str | None = None, *, read_only: bool = False,
                 draft: bool = False, create: bool = False, credentials: Credentials = None,
                 cache: str | os.PathLike[str] | None = None, cache_bytes: int = 0) -> None:
        path, at = file_and_rev(path)
        if at is not None:
            if rev is not None:
                raise InvalidError(f"{os.fsdecode(path)}@{at} names a version: leave out rev={rev!r}")
            rev, read_only = at, True
        super().__init__(read_only=read_only)
        self.path, self.rev = os.path.abspath(path), rev or "main"
        self._create, self._draft, self._given = create, draft or not read_only, secret(credentials)
        self._cache = dict[str, Any](cache=cache, cache_bytes=cache_bytes)
        self._fixed: list[str] = []  # the commit that the store shows forever; empty: it shows a branch
        self._shown: Any = None  # the state that the store showed when it was last asked
        self._session: Session | None = None
        self._begin()

    def _begin(self) -> None:
        """Resets the members that other stores do not copy: nothing is open."""
        self._is_open = False
        giver = None if self._given is None else Giver(self._given)
        made = Handles(self.path, flags=lib.BRC_OPEN_READONLY * self._read_only, giver=giver, **self._cache), partial(
            opened, self.rev, self._read_only, self._draft, self._fixed)
        self._sessions = Sessions(*made) if self._session is None else self._session._sessions
        self._places: WeakKeyDictionary[Any, asyncio.Semaphore] = WeakKeyDictionary()  # by loop
        self._changes: dict[int, tuple[threading.Lock, deque[Any]]] = {}

    @classmethod
    def of_session(cls, session: Session) -> Store:
        """Makes a store of a session's hierarchy with its uncommitted changes. The store pickles as the session does:
        copies write the same draft."""
        made = cls(session.repository.path, session.rev, read_only=session.read_only)
        made._session = session
        made._begin()
        return made

    @property
    def read_only(self) -> bool:
        return self._read_only or bool(self._fixed)

    def __repr__(self) -> str:
        more = (", read_only=True" + ", draft=True" * self._draft * (not self._fixed)) if self.read_only else ""
        return f"breccia.zarr.Store({self.path!r}, {self.rev!r}{more})"

    def __eq__(self, other: object) -> bool:
        same = "path", "rev", "_read_only", "_draft", "_session", "_given", "_cache"
        return isinstance(other, Store) and all(getattr(self, name) == getattr(other, name) for name in same)

    def __hash__(self) -> int:
        return hash((self.path, self.rev, self._read_only))

    def __getstate__(self) -> dict[str, Any]:
        """Pickles the state that the store shows too: dask makes its tokens of the pickle, so they change with the
        state."""
        if self._is_open:
            self._look()
        return {name: getattr(self, name) for name in KEPT}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    def with_read_only(self, read_only: bool = False) -> Store:
        """Returns an unopened copy of the store, to read what this one shows, or to change the branch that it shows.
        """
        if self._fixed and not read_only:
            raise ValueError(f"{self.rev!r} is a commit, which cannot be changed: open a branch")
        made = copy.copy(self)
        made._read_only, made._draft = read_only, self._draft or not read_only
        made._begin()
        return made

    def _look(self) -> None:
        info = sized("brc_session_info")
        with self._sessions.at_work() as native:
            native.call_out(lib.brc_session_stat, info)
        commit = string(lib.brc_oid_format(ffi.new("char[65]"), ffi.addressof(info, "commit")))
        self._fixed[:] = [commit] if getattr(self._session, "fixed", info.mode == lib.BRC_SESSION_AT) else []
        self._shown = commit, info.draft, info.changes

    def _ensure(self) -> Sessions:
        """Opens the store unless it is open. MisuseError if another thread's block would have to wait for the caller.
        """
        if not self._is_open:
            if self._create:
                Repository(self.path, create=True).close()
            if not os.path.exists(self.path):
                raise FileNotFoundError(f"there is no file {self.path}: create=True makes one")
            self._look()
            self._is_open, self._create = True, False
        self._sessions.pinned()
        return self._sessions

    async def _open(self) -> None:
        if self._is_open:
            await super()._open()  # zarr's own method refuses
        self._ensure()

    def close(self) -> None:
        """Closes the file's handles. A later call opens the store again."""
        super().close()
        if self._session is None:
            self._sessions.close()
            self._sessions.handles.close()

    def _use(self, function: Callable[..., T], *args: Any) -> T:
        """Calls function(native, *args) on a native session."""
        with self._ensure().at_work() as native:
            return function(native, *args)

    async def _peek(self, function: Callable[..., T], *args: Any) -> T:
        """Calls it at once, because a call of microseconds takes longer in another thread."""
        return self._use(function, *args)

    async def _run(self, function: Callable[..., T], *args: Any) -> T:
        """Calls it in a thread. If this is cancelled, the library's call ends, and then this call."""
        loop, used = asyncio.get_running_loop(), list[Handle]()
        cancelled: asyncio.CancelledError | None = None

        def work() -> T:
            used.append(self._ensure().take())
            return function(used[0], *args)

        self._ensure()
        async with self._places.setdefault(loop, asyncio.Semaphore(AT_ONCE)):
            done = loop.run_in_executor(None, work)
            while not done.done():
                try:
                    await asyncio.wait([done], timeout=0.01 if cancelled else None)
                except asyncio.CancelledError as error:
                    cancelled = error
                for native in used if cancelled else []:
                    lib.brc_interrupt(native.repo, 1)
            for native in used:  # no other call has used them
                if cancelled:
                    lib.brc_interrupt(native.repo, 0)
                self._sessions.give(native)
            if cancelled:
                done.cancelled() or done.exception()  # nobody else waits
                raise cancelled
            return done.result()

    def _waiting(self) -> tuple[threading.Lock, deque[Any]]:
        """The changes that wait. There is one list per process: in a child of fork() the lock may be held by a thread
        that does not exist."""
        return self._changes.setdefault(os.getpid(), (threading.Lock(), deque()))

    def _change(self, key: str, data: Any) -> Future[None]:
        """Sets a key, or deletes it (data None), with the next _settle()."""
        done: Future[None] = Future()
        self._waiting()[1].append((key, data, done))
        return done

    def _settle(self, own: Future[None] | None = None) -> None:
        """Makes all waiting changes. Raises the exception of its own change."""
        lock, waiting = self._waiting()
        with lock:
            due = [waiting.popleft() for _ in range(len(waiting))]
            if due := [change for change in due if change[2].set_running_or_notify_cancel()]:
                self._make(due)
        if own is not None:
            own.result()

    def _make(self, due: Sequence[tuple[str, Any, Future[None]]]) -> None:
        """Makes changes in one transaction; if it fails, in halves, so that only the wrong changes fail."""
        try:
            self._use(_keys.write, [change[:2] for change in due])
            for change in due:
                change[2].set_result(None)
        except BaseException as error:
            half = len(due) // 2 if isinstance(error, Error) else 0
            for part in [due[:half], due[half:]] if half else []:
                self._make(part)
            for change in [] if half else due:
                change[2].set_exception(error)

    async def get(self, key: str, prototype: BufferPrototype | None = None, byte_range: Any = None) -> Buffer | None:
        how = self._peek if key.endswith(DOCUMENTS) else self._run
        return (await how(get, [(key, prototype, byte_range)]))[0]

    def get_sync(self, key: str, *, prototype: BufferPrototype | None = None, byte_range: Any = None) -> Buffer | None:
        return self._use(get, [(key, prototype, byte_range)])[0]

    async def get_partial_values(self, prototype: BufferPrototype,
                                 key_ranges: Iterable[tuple[str, Any]]) -> list[Buffer | None]:
        return await self._run(get, [(key, prototype, request) for key, request in key_ranges])

    async def get_ranges(self, key: str, byte_ranges: Sequence[Any], *, prototype: BufferPrototype,
                         **limits: Any) -> AsyncIterator[Sequence[tuple[int, Buffer | None]]]:
        """Reads all ranges in one call, which neither merges nor limits them."""
        if byte_ranges:
            yield list(enumerate(await self._run(get, [(key, prototype, one) for one in byte_ranges], True)))

    def get_ranges_sync(self, key: str, byte_ranges: Sequence[Any], *, prototype: BufferPrototype,
                        **limits: Any) -> Sequence[tuple[int, Buffer | None]]:
        return list(enumerate(self._use(get, [(key, prototype, one) for one in byte_ranges], True)))

    async def exists(self, key: str) -> bool:
        return await self._peek(_keys.exists, key)

    async def getsize(self, key: str) -> int:
        return (await self._run(_keys.stat, key))[0]

    async def getsize_prefix(self, prefix: str) -> int:
        return await self._run(_keys.size, folder(prefix))

    async def is_empty(self, prefix: str) -> bool:
        return not await self._peek(_keys.names, folder(prefix), True, 1)

    def list(self) -> AsyncIterator[str]:
        return self.list_prefix("")

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        for key in dict(await self._run(_keys.names, prefix)):
            yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        for name in dict(await self._run(_keys.names, folder(prefix), True)):
            yield name

    def _check_writable(self) -> None:
        self._ensure()
        super()._check_writable()

    async def set(self, key: str, value: Buffer) -> None:
        self._check_writable()
        await self._changed(key, data_of(value))

    async def delete(self, key: str) -> None:
        self._check_writable()
        if await self.exists(key):
            await self._changed(key, None)

    async def _changed(self, key: str, data: Any) -> None:
        change = self._change(key, data)
        asyncio.get_running_loop().run_in_executor(None, self._settle)
        await asyncio.wrap_future(change)

    def _change_now(self, key: str, data: Any) -> None:
        if self._sessions.pinned() is None:
            self._settle(self._change(key, data))
        else:  # changes of other tasks do not belong to this block
            self._use(_keys.write, [(key, data)])

    def set_sync(self, key: str, value: Buffer) -> None:
        self._check_writable()
        self._change_now(key, data_of(value))

    def delete_sync(self, key: str) -> None:
        self._check_writable()
        if self._use(_keys.exists, key):
            self._change_now(key, None)

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        self._check_writable()
        data = ffi.from_buffer(data_of(value))
        with suppress(ExistsError):
            await self._run(lambda n: n.call(lib.brc_key_set, n.session, text(key), data, len(data), lib.BRC_KEY_NEW))

    async def _set_many(self, values: Iterable[tuple[str, Buffer]]) -> None:
        """Sets all values, or none."""
        self._check_writable()
        await self._run(_keys.write, [(key, data_of(value)) for key, value in values])

    async def delete_dir(self, prefix: str) -> None:
        self._check_writable()
        await self._run(_keys.delete_under, folder(prefix))

    async def set_partial_values(self, key_start_values: Iterable[tuple[str, int, Any]]) -> None:
        raise NotImplementedError("no part of a value can be set: write to the array")


def is_zarrs(codec: Any) -> bool:
    """Returns whether a codec, and all codecs inside a shard, belong to classes of zarr or numcodecs."""
    inner = (*getattr(codec, "codecs", ()), *getattr(codec, "index_codecs", ()))
    return type(codec).__module__.partition(".")[0] in ("zarr", "numcodecs") and all(map(is_zarrs, inner))


class CodecPipeline(BatchedCodecPipeline):
    """Reads and writes a selection of an array in a `Store` as one batch of the library.

    `out` and the prototype are the caller's, whatever memory order or byte order they have. What the library
    does not know (format 2, codecs of others), arrays with a codec for which zarr's registry has another class than
    zarr's, whole chunks of strings of any length, `array.write_empty_chunks` and every other store are left to zarr's
    own pipeline. That reads, changes and writes a chunk of which a part
    is written: two who do so at once lose elements.
    """

    async def read(self, batch_info: Any, out: NDBuffer, drop_axes: tuple[int, ...] = ()) -> Any:
        """Fills `out`. From zarr 3.2 on, also returns whether each chunk existed."""
        batch = list(batch_info)
        if self._is_ours(batch):
            with suppress(*_pipeline.ELSEWHERE):
                return await _pipeline.read(batch, out, drop_axes)
        return await super().read(batch, out, drop_axes)

    async def write(self, batch_info: Any, value: NDBuffer, drop_axes: tuple[int, ...] = ()) -> None:
        batch = list(batch_info)
        if self._is_ours(batch):
            with suppress(*_pipeline.ELSEWHERE):
                return await _pipeline.write(batch, value, drop_axes)
        await super().write(batch, value, drop_axes)

    def _is_ours(self, batch: Sequence[Any]) -> bool:
        """Returns whether the store is our Store itself, and not a wrapper, which needs to see every key, and all
        codecs are known."""
        return bool(batch) and type(getattr(batch[0][0], "store", None)) is Store and all(map(is_zarrs, self))


register_pipeline(CodecPipeline)
