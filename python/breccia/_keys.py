"""Zarr keys on a native session, which the caller has taken, and URLs. A text that cannot be a key counts as missing.
"""
from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ._breccia import ffi, lib
from ._errors import AmbiguousError, InvalidError, NotFoundError
from ._native import Handle, sized, string, text
from .repository import Repository

RANGE = ffi.sizeof("brc_key_range")
SMALL = 1024  # bytes that are copied, because that is faster than keeping their owner
SCHEME = "breccia://"


def name(key: str) -> Any:
    """Returns a key for C, to read. A key has neither a NUL nor two slashes side by side."""
    return text(key.replace("\0", "//"))


def value_of(out: Any, owner: Any) -> Any:
    """Returns the content of a brc_buf, whose memory `owner` keeps until the last view of it is gone."""
    if out.len < SMALL:
        data = bytes(ffi.buffer(out.data, out.len)) if out.len else b""
        lib.brc_buf_dispose(out)
        return data
    memory = ffi.gc(out.data, lambda _, out=out, owner=owner: lib.brc_buf_dispose(out), out.cap)
    return ffi.buffer(memory, out.len)


def get(native: Handle, keys: Sequence[str], ranges: Sequence[Sequence[int]]) -> list[Any]:
    """Reads the bytes at keys, which may repeat, from one state; None for a missing key. A range is a BRC_RANGE_* and
    its numbers."""
    n, names = len(keys), [name(key) for key in keys]
    out, found = ffi.new("brc_buf[]", n), ffi.new("uint8_t[]", n)
    try:
        native.call(lib.brc_key_get_many, out, found, native.session, ffi.new("char *[]", names),
                           ffi.new("brc_key_range[]", [(RANGE, *part) for part in ranges]), n)
        return [value_of(out + i, out) if found[i] else None for i in range(n)]
    finally:
        for i in range(n):
            if not found[i]:
                lib.brc_buf_dispose(out + i)


def stat(native: Handle, key: str) -> tuple[int, str]:
    """Returns the number of bytes at a key, and their tag. FileNotFoundError."""
    info = sized("brc_key_info")
    try:
        native.call_out(lib.brc_key_get, ffi.NULL, name(key), ffi.NULL, info)
    except NotFoundError:
        raise FileNotFoundError(key) from None
    return int(info.length), string(info.etag)


def exists(native: Handle, key: str) -> bool:
    with suppress(NotFoundError):
        return native.call_out(lib.brc_key_get, ffi.NULL, name(key), ffi.NULL, ffi.NULL) == 0
    return False


def size(native: Handle, prefix: str) -> int:
    native.call_out(lib.brc_keys_size, out := ffi.new("uint64_t *"), name(prefix))
    return int(out[0])


def names(native: Handle, prefix: str, folder: bool = False, limit: int | None = None) -> list[tuple[str, bool]]:
    """Lists the keys that begin with a text. With `folder`, lists the names in that directory, and whether each is a
    directory."""
    native.call_out(lib.brc_keys, it := ffi.new("brc_iter **"), name(prefix), lib.BRC_KEYS_DIR if folder else 0)
    return [(key.rstrip("/"), key[-1] == "/") for key in native.items(it, "char", string, limit)]


def write(native: Handle, changes: Sequence[tuple[str, Any]]) -> None:
    """Sets keys to the bytes of arrays, or deletes them (None), in one transaction."""
    names = [text(key) for key, _ in changes]
    data = [ffi.NULL if value is None else ffi.from_buffer(value) for _, value in changes]
    native.call(lib.brc_key_set_many, native.session, ffi.new("char *[]", names), ffi.new("void *[]", data),
                [0 if value is None else value.nbytes for _, value in changes], len(changes))


def delete_under(native: Handle, prefix: str) -> None:
    native.call(lib.brc_key_delete, native.session, name(prefix), lib.BRC_KEY_PREFIX)


def split(url: str, rev: str | None = None) -> tuple[str, str, str]:
    """Splits [breccia://]FILE::REV/PATH, or FILE/PATH for `rev` (None: "main"), into file, revision and path. A
    branch's name may contain "/": the shortest beginning that names a revision counts."""
    file, marked, rest = url.removeprefix(SCHEME).rstrip("/").partition("::")
    if not marked:
        words = file.split("/")
        n = next((n for n in range(1, len(words)) if os.path.isfile("/".join(words[:n]))), len(words))
        file, rev, rest = "/".join(words[:n]), rev or "main", "/".join(words[n:])
    elif rev is not None:
        raise InvalidError(f"{url} names a revision: leave out rev={rev!r}")
    if not os.path.isfile(file):
        raise FileNotFoundError(f"there is no file {file}")
    if rev is not None:
        return file, rev, rest
    words = rest.strip("/").split("/")
    with Repository(file, read_only=True) as repo:
        branches = repo.branches()  # a branch may lack commits
        for n in range(1, len(words) + 1):
            with suppress(NotFoundError, InvalidError, AmbiguousError):
                found = "/".join(words[:n])
                found in branches or repo.resolve(found)
                return file, found, "/".join(words[n:])
    raise NotFoundError(f"there is no branch, tag or commit {rest!r} in {file}")
