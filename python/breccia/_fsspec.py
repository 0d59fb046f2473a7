"""fsspec's protocol "breccia": the keys of a version as files that can be read.

    fs = fsspec.filesystem("breccia")
    fs.ls("data.brc::v1.0/images"); fs.cat("data.brc::main/zarr.json")
    zarr.open_group(fsspec.get_mapper("breccia://data.brc::main/images"))  # and whatever else takes URLs

Where fsspec itself takes a URL apart, "::" begins another URL for it, so that a revision alone needs a "/"
behind it: `breccia://data.brc::main/`. Or it is an option: `fsspec.open("breccia://data.brc/a/zarr.json",
rev="v1.0")`. A branch shows its shared uncommitted changes.
"""
from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from fsspec import spec  # type: ignore[import-untyped, unused-ignore]

from . import _keys
from ._breccia import lib
from ._errors import NotFoundError, ReadOnlyError
from ._keys import split
from .repository import Repository
from .session import Session


class FileSystem(spec.AbstractFileSystem):  # type: ignore[misc, unused-ignore]
    """Paths are FILE::REV/KEY, or FILE/KEY for `rev`. `fo` is fsspec's name for the text after "::"."""

    protocol = "breccia"

    def __init__(self, rev: str | None = None, fo: str | None = None, target_protocol: str | None = None,
                 target_options: Any = None, **options: Any) -> None:
        super().__init__(rev=rev, fo=fo, **options)
        # Otherwise fsspec takes the name for a path in the current folder.
        self._rev, self._within = rev, fo and fo.removeprefix(os.getcwd() + "/").strip("/")
        self._views: dict[str, tuple[Session, os.stat_result]] = {}  # with the file's stat, by FILE::REV or FILE

    def _at(self, path: str) -> tuple[Session, str]:
        """Returns the version, and the key in it."""
        if self._within and "::" not in path:
            file, _, key = split(path)
            path = f"{file}::{self._within}/{key}"
        path = os.path.join(os.getcwd(), path).rstrip("/")
        for top, (view, found) in self._views.items():
            if (path + "/").startswith(top + "/") and _is_now(view, found):
                return view, path[len(top) + 1:]
        file, rev, key = split(path, None if "::" in path else self._rev)
        top, found, view = path.removesuffix(key).rstrip("/"), os.stat(file), Repository(file, read_only=True).view(rev)
        self._views = {**dict([*self._views.items()][-31:]), top: (view, found)}  # others may iterate over the old one
        return view, path[len(top) + 1:]

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        """Returns name, size in bytes (None for a directory), type and, for a file, the tag of its bytes."""
        name = self._strip_protocol(path)
        view, key = self._at(name)
        with view._sessions.at_work() as native:
            with suppress(FileNotFoundError):
                size, etag = _keys.stat(native, key)
                return {"name": name, "size": size, "type": "file", "etag": etag}
            if key and not _keys.names(native, key, True, 1):
                raise FileNotFoundError(path)
        return {"name": name, "size": None, "type": "directory"}

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        name = self._strip_protocol(path)
        view, key = self._at(name)
        with view._sessions.at_work() as native:
            children = sorted(_keys.names(native, key, True))
        found = [self.info(name)] if key and not children else []
        for child, is_dir in children:
            with suppress(FileNotFoundError):  # the key was deleted meanwhile
                entry: dict[str, Any] = {"name": f"{name}/{child}", "size": None, "type": "directory"}
                found.append(self.info(entry["name"]) if detail and not is_dir else entry)
        return found if detail else [one["name"] for one in found]

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> Any:
        return self.cat_ranges([path], start, end, on_error="raise")[0]

    def cat_ranges(self, paths: list[str], starts: Any, ends: Any, max_gap: int | None = None,
                   on_error: str = "return", **options: Any) -> list[Any]:
        """Reads all paths of one version in one call."""
        n, got = len(paths), list[Any]()
        starts, ends = (one if isinstance(one, (list, tuple)) else [one] * n for one in (starts, ends))
        views: dict[Session, list[tuple[Any, ...]]] = {}
        for path, start, end in zip(paths, starts, ends, strict=True):
            got.append(FileNotFoundError(path))
            try:
                view, key = self._at(self._strip_protocol(path))
                views.setdefault(view, []).append((len(got) - 1, key, *_part(start or 0, end)))
            except (OSError, NotFoundError) as error:
                got[-1] = error
        for view, wanted in views.items():
            places, keys, parts, cuts = zip(*wanted)
            with view._sessions.at_work() as native:
                for place, value, cut in zip(places, _keys.get(native, keys, parts), cuts):
                    got[place] = got[place] if value is None else bytes(value)[cut]
        failed = [one for one in got if isinstance(one, Exception)]
        if failed and on_error == "raise":
            raise failed[0]
        return got

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if mode != "rb":
            self._rm(path)
        if (size := self.info(path)["size"]) is None:
            raise IsADirectoryError(path)
        return File(self, path, mode, **{**options, "size": size})

    def _rm(self, *paths: str, **options: Any) -> None:
        raise ReadOnlyError("breccia:// is only to be read: write to a session or a breccia.zarr.Store")

    cp_file = _rm


def _is_now(view: Session, file: os.stat_result) -> bool:
    """Returns whether the view still shows what its name says. fsspec keeps file systems as long as the process
    lives: meanwhile the file may have been replaced, and a tag or HEAD may have moved."""
    repo = view.repository
    return os.path.samestat(file, os.stat(repo.path)) and (not view.fixed or repo.resolve(view.rev) == view.commit_id)


def _part(start: int, end: int | None) -> tuple[tuple[int, ...], slice]:
    """Returns the range to read for data[start:end], and the slice to take of it."""
    if end is None or end < 0:
        return (lib.BRC_RANGE_LAST, -start) if start < 0 else (lib.BRC_RANGE_FROM, start), slice(None, end)
    if start < 0:
        return (lib.BRC_RANGE_ALL,), slice(start, end)
    return (lib.BRC_RANGE_BETWEEN, start, end), slice(None)


class File(spec.AbstractBufferedFile):  # type: ignore[misc, unused-ignore]
    """A key that is read in pieces."""

    def _fetch_range(self, start: int, end: int) -> Any:
        return self.fs.cat_file(self.path, start, end)
