"""Zarr keys on a native session: what `_store.Store` asks for, one call of the library each, or a few.

The first argument is a `_native.Native`, whose owner has taken it for this call.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.core.buffer.cpu import Buffer as HostBuffer

from ._breccia import ffi, lib
from ._errors import Error, InvalidError, LimitError, NotFoundError
from ._native import Native, sized, string, text

NO_KEY = InvalidError, LimitError  # of a text that no key can be
SIZES = ffi.sizeof("brc_buf"), ffi.sizeof("brc_key_range")
SMALL = 1024  # bytes that are sooner copied than owned


class Change:
    """A key that is to be set, or deleted (data None)."""

    __slots__ = ("key", "data", "done", "error")

    def __init__(self, key: str, data: Any) -> None:
        self.key, self.data, self.done = key, data, False
        self.error: Exception | None = None


def folder(prefix: str) -> str:
    """The beginning of the keys in a directory: "a/" of "a", "" of the topmost."""
    return prefix.strip("/") + "/" if prefix.strip("/") else ""


def range_of(request: Any) -> dict[str, int]:
    """The members of a brc_key_range."""
    found = {}
    if request is None:
        return {"kind": lib.BRC_RANGE_ALL}
    if isinstance(request, RangeByteRequest):
        found = {"kind": lib.BRC_RANGE_BETWEEN, "start": request.start, "end": request.end}
    elif isinstance(request, OffsetByteRequest):
        found = {"kind": lib.BRC_RANGE_FROM, "start": request.offset}
    elif isinstance(request, SuffixByteRequest):
        found = {"kind": lib.BRC_RANGE_LAST, "start": request.suffix}
    if not found or min(found.values()) < 0:
        raise ValueError(f"Unexpected byte_range, got {request!r}.")
    return found


def buffer_of(prototype: BufferPrototype, out: Any, owner: Any) -> Buffer:
    """What the library put into a brc_buf, which `owner` keeps: its own memory, if the host's will do."""
    kind: Any = prototype.buffer
    if out.len < SMALL or not issubclass(kind, HostBuffer):
        data = bytes(ffi.buffer(out.data, out.len)) if out.len else b""
        lib.brc_buf_dispose(out)
        return kind.from_bytes(data)  # type: ignore[no-any-return]
    memory = ffi.gc(out.data, lambda _, out=out, owner=owner: lib.brc_buf_dispose(out), out.cap)
    array = np.frombuffer(ffi.buffer(memory, out.len), "B")
    return kind.from_array_like(array)  # type: ignore[no-any-return]


# ---- reading ----


def get(native: Native, key: str, prototype: BufferPrototype, request: Any) -> Buffer | None:
    out = sized("brc_buf")
    part = ffi.NULL
    if request is not None:
        part = ffi.new("brc_key_range *", {"size": SIZES[1], **range_of(request)})
    try:
        native.handle.call(lib.brc_key_get_range, out, native.session, text(key), part, ffi.NULL)
    except (NotFoundError, *NO_KEY):
        return None
    return buffer_of(prototype, out, None)


def get_many(native: Native, wanted: Sequence[tuple[str, BufferPrototype, Any]]) -> list[Buffer | None]:
    """Values as of one state. Keys may repeat."""
    n = len(wanted)
    out, found, parts = ffi.new("brc_buf[]", n), ffi.new("uint8_t[]", n), ffi.new("brc_key_range[]", n)
    try:
        names = [text(key) for key, _, _ in wanted]
        for i, (_, _, request) in enumerate(wanted):
            out[i].size, parts[i] = SIZES[0], {"size": SIZES[1], **range_of(request)}
        texts = ffi.new("char *[]", names)
        native.handle.call(lib.brc_key_get_many, out, found, native.session, texts, parts, n)
    except NO_KEY:  # one of them is no key
        return [get(native, *one) for one in wanted]
    got: list[Buffer | None] = []
    for i, (_, prototype, _) in enumerate(wanted):
        if not found[i]:
            lib.brc_buf_dispose(out + i)
        got.append(buffer_of(prototype, out + i, out) if found[i] else None)
    return got


def there(native: Native, keys: Sequence[str]) -> list[bool]:
    """Which keys there are."""
    n = len(keys)
    out, found, parts = ffi.new("brc_buf[]", n), ffi.new("uint8_t[]", n), ffi.new("brc_key_range[]", n)
    names = [text(key) for key in keys]
    for i in range(n):
        out[i].size, parts[i].size, parts[i].kind = *SIZES, lib.BRC_RANGE_BETWEEN
    native.handle.call(lib.brc_key_get_many, out, found, native.session, ffi.new("char *[]", names), parts, n)
    for i in range(n):
        lib.brc_buf_dispose(out + i)
    return [bool(one) for one in found]


def get_ranges(native: Native, key: str, requests: Sequence[Any], prototype: BufferPrototype
               ) -> list[tuple[int, Buffer | None]]:
    got = get_many(native, [(key, prototype, request) for request in requests])
    if None in got:
        raise BaseExceptionGroup("no range was read", [FileNotFoundError(key)])
    return list(enumerate(got))


def ask(native: Native, function: Any, name: str) -> bool:
    answer = ffi.new("int *")
    native.handle.call(function, answer, native.session, text(name))
    return bool(answer[0])


def exists(native: Native, key: str) -> bool:
    try:
        return ask(native, lib.brc_key_exists, key)
    except NO_KEY:
        return False


def is_empty(native: Native, prefix: str) -> bool:
    try:
        return ask(native, lib.brc_keys_empty, folder(prefix))
    except NO_KEY:
        return True


def size(native: Native, key: str) -> int:
    info = sized("brc_key_info")
    try:
        native.handle.call(lib.brc_key_stat, info, native.session, text(key))
    except (NotFoundError, *NO_KEY):
        raise FileNotFoundError(key) from None
    return int(info.length)


def size_under(native: Native, prefix: str) -> int:
    """Bytes of all keys that begin with a text."""
    total = 0
    for key in names(native, prefix):
        try:
            total += size(native, key)
        except FileNotFoundError:  # it went meanwhile
            pass
    return total


def names(native: Native, prefix: str, of_folder: bool = False) -> list[str]:
    """Keys that begin with a text, or what is in a directory, each once."""
    it, name, is_dir = ffi.new("brc_iter **"), ffi.new("const char **"), ffi.new("int *")
    first, step, more = (lib.brc_keys_dir, lib.brc_keys_dir_next, [is_dir]) if of_folder else (
        lib.brc_keys_prefix, lib.brc_keys_next, [])
    found: dict[str, None] = {}
    try:
        native.handle.call(first, it, native.session, text(prefix))
        while native.handle.call(step, it[0], name, *more) > 0:
            found[string(name[0])] = None
    except NO_KEY:
        if it[0]:
            raise
    finally:
        lib.brc_iter_free(it[0])
    return list(found)


# ---- changing ----


def set_many(native: Native, changes: Sequence[Change]) -> None:
    """Sets keys in one transaction."""
    texts, data = [text(c.key) for c in changes], [ffi.from_buffer(c.data) for c in changes]
    names, values = ffi.new("char *[]", texts), ffi.new("void *[]", data)
    lengths = ffi.new("size_t[]", [len(d) for d in data])
    native.handle.call(lib.brc_key_set_many, native.session, names, values, lengths, len(changes))


def delete(native: Native, key: str) -> None:
    native.handle.call(lib.brc_key_delete, native.session, text(key))


def delete_under(native: Native, prefix: str) -> None:
    native.handle.call(lib.brc_key_delete_prefix, native.session, text(prefix))


def set_new(native: Native, key: str, data: Any) -> None:
    memory = ffi.from_buffer(data)
    native.handle.call(lib.brc_key_set_new, ffi.new("int *"), native.session, text(key), memory, len(memory))


def change_all(native: Native, changes: Sequence[Change]) -> None:
    """Makes changes that belong to several callers, in one transaction; where that fails, each in its own."""
    due = [change for change in changes if not change.done]
    try:
        change_together(native, due)
    except Error as error:
        for change in due:
            try:
                if len(due) > 1:
                    change_together(native, [change])
                else:
                    change.error = error
            except Error as own:
                change.error = own
    for change in due:
        change.done = True


def change_together(native: Native, changes: Sequence[Change]) -> None:
    sets, deletes = [c for c in changes if c.data is not None], [c for c in changes if c.data is None]
    if deletes:
        native.handle.call(lib.brc_begin, native.handle.repo)
    flags = 0
    try:
        if sets:
            set_many(native, sets)
        for change in deletes:
            delete(native, change.key)
        flags = lib.BRC_END_KEEP
    finally:
        if deletes:
            native.handle.call(lib.brc_end, native.handle.repo, flags)
