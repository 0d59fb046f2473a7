"""Zarr keys on a native session, which the caller has taken, and URLs. What no key can be is not there."""
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
SMALL = 1024  # bytes that are sooner copied than owned
SCHEME = "breccia://"


def name(key: str) -> Any:
    """A key for C, to read. None has a NUL in it, nor two slashes side by side."""
    return text(key.replace("\0", "//"))


def value_of(out: Any, owner: Any) -> Any:
    """What is in a brc_buf, which `owner` keeps: the library's own memory, which goes with its last view."""
    if out.len < SMALL:
        data = bytes(ffi.buffer(out.data, out.len)) if out.len else b""
        lib.brc_buf_dispose(out)
        return data
    memory = ffi.gc(out.data, lambda _, out=out, owner=owner: lib.brc_buf_dispose(out), out.cap)
    return ffi.buffer(memory, out.len)


def get(native: Handle, keys: Sequence[str], ranges: Sequence[Sequence[int]]) -> list[Any]:
    """The bytes at keys, which may repeat, as of one state; None where there are none. A range is a
    BRC_RANGE_* and what that asks for."""
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
    """Bytes at a key, and their tag. FileNotFoundError."""
    info = sized("brc_key_info")
    try:
        native.call_out(lib.brc_key_stat, info, name(key))
    except NotFoundError:
        raise FileNotFoundError(key) from None
    return int(info.length), string(info.etag)


def number(native: Handle, kind: str, function: Any, key: str) -> int:
    """What function(out, session, key, err) says, to read, in a number."""
    out = ffi.new(kind + " *")
    native.call_out(function, out, name(key))
    return int(out[0])


def names(native: Handle, prefix: str, folder: bool = False) -> list[tuple[str, bool]]:
    """Keys that begin with a text. `folder`: what is in that directory, and whether it is one itself."""
    it, is_dir = ffi.new("brc_iter **"), ffi.new("int *")
    native.call_out(lib.brc_keys_dir if folder else lib.brc_keys_prefix, it, name(prefix))
    step = (lambda it, out, err: lib.brc_keys_dir_next(it, out, is_dir, err)) if folder else lib.brc_keys_next
    return native.items(it, step, "char", lambda found: (string(found), bool(is_dir[0])))


def write(native: Handle, changes: Sequence[tuple[str, Any]]) -> None:
    """Sets keys to the bytes of arrays, or deletes them (None), in one transaction."""
    names = [text(key) for key, _ in changes]
    data = [ffi.NULL if value is None else ffi.from_buffer(value) for _, value in changes]
    native.call(lib.brc_key_set_many, native.session, ffi.new("char *[]", names), ffi.new("void *[]", data),
                [0 if value is None else value.nbytes for _, value in changes], len(changes))


def delete_under(native: Handle, prefix: str) -> None:
    native.call(lib.brc_key_delete_prefix, native.session, name(prefix))


def split(url: str, rev: str | None = None) -> tuple[str, str, str]:
    """File, revision and path of [breccia://]FILE::REV/PATH, or of FILE/PATH for `rev` (None: "main"). A
    branch may have a "/" in its name: the first words that name a revision are it."""
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
        branches = repo.branches()  # one may have no commit
        for n in range(1, len(words) + 1):
            with suppress(NotFoundError, InvalidError, AmbiguousError):
                found = "/".join(words[:n])
                found in branches or repo.resolve(found)
                return file, found, "/".join(words[n:])
    raise NotFoundError(f"{file} has no branch, tag or commit {rest}")
