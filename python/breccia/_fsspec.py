"""fsspec's protocol "breccia": the keys of a version as files that can be read.

    fs = fsspec.filesystem("breccia")
    fs.ls("data.brc::v1.0/images"); fs.cat("data.brc::main/zarr.json")
    zarr.open_group(fsspec.get_mapper("breccia://data.brc::main/images"))  # and whatever else takes URLs

Where fsspec itself takes a URL apart, "::" begins another URL for it, so that a revision alone needs a "/" behind it:
`breccia://data.brc::main/`. Or name it as an option: `fsspec.open("breccia://data.brc/zarr.json", rev="v1.0")`.
A branch shows its shared uncommitted changes.
"""
from __future__ import annotations

import os
from typing import Any

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem  # type: ignore[import-untyped, unused-ignore]

from ._breccia import ffi, lib
from ._errors import InvalidError, LimitError, NotFoundError, ReadOnlyError
from ._native import sized, string, text
from ._urls import SCHEME, split, split_rev
from .repository import Repository
from .session import Session


class FileSystem(AbstractFileSystem):  # type: ignore[misc, unused-ignore]
    """Paths are FILE::REV/KEY, or FILE/KEY for the revision `rev`. `fo` is fsspec's: what stood behind "::"."""

    protocol = "breccia"

    def __init__(self, rev: str | None = None, fo: str | None = None, target_protocol: str | None = None,
                 target_options: Any = None, **options: Any) -> None:
        super().__init__(rev=rev, fo=fo, **options)
        # fsspec takes it for the path of a file in the current folder.
        self._within = None if fo is None else fo.removeprefix(os.getcwd() + "/").strip("/")
        self._rev = rev
        self._views: dict[tuple[str, str], Session] = {}

    def _at(self, path: str) -> tuple[Session, str]:
        """The version and the key in it."""
        path = self._strip_protocol(path)
        file, rev, key = split(path, None if "::" in path else self._rev)
        if self._within is not None and "::" not in path:
            rev, before = split_rev(file, self._within)
            key = "/".join(p for p in (before, key) if p)
        if not os.path.isfile(file):
            raise FileNotFoundError(path)
        file = os.path.abspath(file)
        view = self._views.get((file, rev))
        if view is None:
            view = self._views.setdefault((file, rev), Repository(file, read_only=True).view(rev))
        return view, key

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        return os.fspath(path).removeprefix(SCHEME).rstrip("/")

    def _stat(self, view: Session, key: str, name: str) -> dict[str, Any] | None:
        info = sized("brc_key_info")
        try:
            with view._sessions.at_work() as native:
                native.handle.call(lib.brc_key_stat, info, native.session, text(key))
        except (NotFoundError, InvalidError, LimitError):
            return None
        return {"name": name, "size": int(info.length), "type": "file", "etag": string(info.etag)}

    def _children(self, view: Session, key: str) -> list[tuple[str, bool]]:
        it, name, is_dir = ffi.new("brc_iter **"), ffi.new("const char **"), ffi.new("int *")
        found = []
        with view._sessions.at_work() as native:
            try:
                native.handle.call(lib.brc_keys_dir, it, native.session, text(key))
                while native.handle.call(lib.brc_keys_dir_next, it[0], name, is_dir) > 0:
                    found.append((string(name[0]), bool(is_dir[0])))
            except (InvalidError, LimitError):  # no key can have this name
                return []
            finally:
                lib.brc_iter_free(it[0])
        return sorted(found)

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        """Name, size in bytes (None of a directory), type and, of a file, the tag of its bytes."""
        name = self._strip_protocol(path)
        view, key = self._at(name)
        found = self._stat(view, key, name) if key else None
        if found is None and (not key or self._children(view, key)):
            found = {"name": name, "size": None, "type": "directory"}
        if found is None:
            raise FileNotFoundError(path)
        return found

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        name = self._strip_protocol(path)
        view, key = self._at(name)
        found: list[dict[str, Any]] = []
        for child, is_dir in self._children(view, key):
            at = f"{name}/{child}"
            one = None if is_dir or not detail else self._stat(view, f"{key}/{child}".strip("/"), at)
            found.append(one or {"name": at, "size": None, "type": "directory" if is_dir else "file"})
        if not found and key:
            found = [self.info(name)]
        return found if detail else [one["name"] for one in found]

    def created(self, path: str) -> Any:
        raise NotImplementedError("keys have no times: the log of commits has")

    modified = created

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        data: bytes = self._get([(path, start, end)])[0]
        return data

    def cat_ranges(self, paths: list[str], starts: Any, ends: Any, max_gap: int | None = None,
                   on_error: str = "return", **options: Any) -> list[Any]:
        """All that are of one version in one call."""
        n = len(paths)
        starts, ends = (one if isinstance(one, (list, tuple)) else [one] * n for one in (starts, ends))
        if not n == len(starts) == len(ends):
            raise ValueError("as many starts and ends are needed as paths")
        return self._get(list(zip(paths, starts, ends)), on_error)

    def _get(self, wanted: list[tuple[str, int | None, int | None]], on_error: str = "raise") -> list[Any]:
        got: list[Any] = [FileNotFoundError(path) for path, _, _ in wanted]
        groups: dict[int, tuple[Session, list[tuple[int, str]]]] = {}
        for i, (path, _, _) in enumerate(wanted):
            try:
                view, key = self._at(path)
                groups.setdefault(id(view), (view, []))[1].append((i, key))
            except (OSError, NotFoundError) as error:
                got[i] = error
        for view, keys in groups.values():
            for (i, key), data in zip(keys, self._read(view, [(key, *wanted[i][1:]) for i, key in keys])):
                got[i] = got[i] if data is None else data
        failed = next((one for one in got if isinstance(one, Exception)), None)
        if failed is not None and on_error == "raise":
            raise failed
        return got

    def _read(self, view: Session, wanted: list[tuple[str, int | None, int | None]]) -> list[bytes | None]:
        parts = []
        for key, start, end in wanted:
            size = 0
            if (start or 0) < 0 or (end or 0) < 0:  # they count from the end
                size = (self._stat(view, key, key) or {"size": 0})["size"]
            first = _from_begin(start or 0, size)
            parts.append({"size": ffi.sizeof("brc_key_range"), "start": first,
                          "kind": lib.BRC_RANGE_FROM if end is None else lib.BRC_RANGE_BETWEEN,
                          "end": 0 if end is None else max(first, _from_begin(end, size))})
        n = len(wanted)
        out, found, ranges = ffi.new("brc_buf[]", n), ffi.new("uint8_t[]", n), ffi.new("brc_key_range[]", parts)
        for i in range(n):
            out[i].size = ffi.sizeof("brc_buf")
        try:
            names = [text(key) for key, _, _ in wanted]
            with view._sessions.at_work() as native:
                native.handle.call(lib.brc_key_get_many, out, found, native.session, ffi.new("char *[]", names),
                                   ranges, n)
            return [(bytes(ffi.buffer(one.data, one.len)) if one.len else b"") if there else None
                    for one, there in zip(out, found)]
        except (InvalidError, LimitError):  # one of them is no key
            return [None] if n == 1 else [self._read(view, [one])[0] for one in wanted]
        finally:
            for i in range(n):
                lib.brc_buf_dispose(out + i)

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if mode != "rb":
            raise ReadOnlyError("breccia:// is only to be read: write through a session or breccia.zarr.Store")
        return File(self, path, mode, **options)


def _from_begin(at: int, size: int) -> int:
    return max(0, at + size) if at < 0 else at


class File(AbstractBufferedFile):  # type: ignore[misc, unused-ignore]
    """A key that is read in pieces."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        return bytes(self.fs.cat_file(self.path, start, end))
