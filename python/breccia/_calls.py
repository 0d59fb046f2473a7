"""Calls of the C library that repositories and sessions share, structures for them, and records of their results."""
from __future__ import annotations

import datetime
import importlib
import json
import operator
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, cast

from . import _errors, _html
from ._breccia import ffi, lib
from ._native import Handle, Handles, T, sized, string, text

Progress = bool | Callable[[str, int, int], None] | None
Paths = str | Sequence[str] | None
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)

if TYPE_CHECKING:
    from . import _records
    records = _records
else:
    class Later:
        """The module of records, which is imported when the first name is used, because making records takes
        milliseconds."""

        def __getattr__(self, name):
            return getattr(importlib.import_module("breccia._records"), name)

    records = Later()


def to_json(value: Any) -> str:
    """Writes a value as JSON, also NumPy's scalars and arrays. NaN and infinities are words, which attributes may
    have."""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def json_of(value: Any) -> str:
    """Like to_json(), except that text is JSON already."""
    return value if isinstance(value, str) else to_json(value)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "items"):
        return dict(value)
    if hasattr(value, "to_dict"):  # a codec of zarr-python
        return value.to_dict()
    raise _errors.WrongTypeError(f"{type(value).__name__} cannot be written as JSON: use numbers, text, lists, dicts")


def flags(prefix: str, **named: bool | None) -> int:
    """Joins the flags BRC_PREFIX_NAME of all names that are true."""
    return sum(getattr(lib, f"BRC_{prefix}_{name.upper()}") for name, on in named.items() if on)


def options(struct: str, **members: Any) -> Any:
    """Makes a structure of the library, and keeps the Python objects that its members point to: text; JSON of any
    value for `..._json`, and a time for `..._us`, whose ends may be left out; an array from a sequence (or from one
    text), with its length in `n...`. None stays 0."""
    types, made, keep = {name: member.type for name, member in ffi.typeof(struct).fields}, sized(struct), []
    for name, value in members.items():
        name = next((n for n in (name, name + "_json", name + "_us") if n in types), name)
        if name.endswith("_json") and value is not None:
            value = json_of(value)
        if isinstance(value, str) and "n" + name in types:
            value = [value]
        try:
            if value is None or isinstance(value, str):
                value = text(value)
            elif isinstance(value, datetime.datetime):
                value = (value.astimezone(EPOCH.tzinfo) - EPOCH) // datetime.timedelta(microseconds=1) or 1  # 0: now
            elif hasattr(value, "__len__") and not isinstance(value, ffi.CData):
                if name == "paths" and not len(value):  # an empty list does not mean everywhere
                    raise _errors.InvalidError("paths is empty: None settles everything")
                if "n" + name in types:
                    setattr(made, "n" + name, len(value))
                keep.append([text(v) if v is None or isinstance(v, str) else operator.index(v) for v in value])
                value = ffi.new(ffi.getctype(types[name].item, "[]"), keep[-1] or 1)
            keep.append(value)
            if value != ffi.NULL:
                setattr(made, name, value)
        except (TypeError, OverflowError) as error:
            kind = _errors.WrongTypeError if isinstance(error, TypeError) else _errors.InvalidError
            raise kind(f"{name.removesuffix('_us')} cannot be {members[name]!r}") from None
    return ffi.gc(made, lambda _: keep.clear())


class Caller:
    """Calls functions of the library on one of its objects: function(self, *args, err)."""

    path = "/"  # of a group
    _pool: Handles

    def _working(self, progress: Progress = None) -> AbstractContextManager[Handle]:
        """Takes a handle for a block. `progress` reports this block's calls, instead of the function that reports all
        calls."""
        return self._pool.at_work(self._pool.progress if progress is None else progress)

    def _repr_html_(self) -> str:
        return _html.html_of(self)

    def _at(self, path: str) -> str:
        if not isinstance(path, str):
            raise _errors.WrongTypeError(f"a path must be str, not {path!r}")
        return f"{self.path.rstrip('/')}/{names}" if (names := path.strip("/")) else self.path

    def _call(self, function: Callable[..., int], *args: Any, progress: Progress = None) -> None:
        with self._working(progress) as handle:
            handle.call(function, handle.own, *args)

    def _buf(self, function: Callable[..., int], *args: Any) -> bytes:
        """Returns the bytes that function(buffer, self, *args, err) appends."""
        with self._working() as handle:
            return handle.take_buf(function, handle.own, *args)

    def _oid(self, rev: str | None) -> Any:
        """Returns the id of a version of a repository; NULL for None."""
        return ffi.NULL if rev is None else self._out("brc_oid", lib.brc_resolve, text(rev))

    def _out(self, kind: str, function: Callable[..., int], *args: Any) -> Any:
        """Returns the memory that function(out, self, *args, err) writes to."""
        out = ffi.new(kind + " *")
        with self._working() as handle:
            handle.call_out(function, out, *args)
        return out

    def _text(self, function: Callable[..., int]) -> str:
        """Returns the text that function(out, self, err) lends: another call on the handle takes it back."""
        out = ffi.new("const char **")
        with self._working() as handle:
            handle.call_out(function, out)
            return string(out[0])

    def _list(self, kind: type[T], function: Callable[..., int], *args: Any, limit: int | None = None,
              progress: Progress = None) -> list[T]:
        """Lists the items of the iterator that function(iterator, self, *args, err) makes."""
        out = ffi.new("brc_iter **")
        with self._working(progress) as handle:
            handle.call_out(function, out, *args)
            return items(handle, kind, out, limit)

    def _report(self, kind: type[T], function: Callable[..., int], *args: Any, progress: Progress = None,
                last: bool = False) -> T:
        """Returns the structure that function(structure, [iterator,] self, *args, err) fills in, as a record; with
        `last`, the order is function(self, *args, structure, err)."""
        struct, item = records.KINDS[kind.__name__]
        out, more, made = sized(struct), [ffi.new("brc_iter **")] if item else [], kind  # type: Any, Any, Any
        with self._working(progress) as handle:
            handle.call(function, *([handle.own, *args, out] if last else [out, *more, handle.own, *args]))
            listed = [tuple(items(handle, getattr(records, item), found)) for found in more]
        return cast(T, made.of(out, *listed))

    def _settled(self, made: T, free: bool = False) -> T:
        """Returns the result of a merge, pick or the like, or raises ConflictError."""
        found: Any = made
        if found.result == "conflict" and not free:
            places = "1 place is" if len(found.conflicts) == 1 else f"{len(found.conflicts)} places are"
            error = _errors.ConflictError(f"{places} in conflict: settle with ours=, theirs= or merge_settle()")
            error.conflicts = found.conflicts
            raise error
        return made


def items(handle: Handle, kind: Any, out: Any, limit: int | None = None) -> list[Any]:
    """Lists the items of an iterator as records, and frees the iterator."""
    return handle.items(out, records.KINDS[kind.__name__][0], kind.of, limit)
