"""What repositories and sessions share: calls of C, structures for it, and records of what it gives."""
from __future__ import annotations

import datetime
import importlib
import json
import operator
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, cast

from . import _errors
from ._breccia import ffi, lib
from ._native import Handle, Handles, T, sized, text

Progress = bool | Callable[[str, int, int], None] | None
Paths = str | Sequence[str] | None
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)

if TYPE_CHECKING:
    from . import _records
    records = _records
else:
    class Later:
        """The module, imported when the first name in it is needed: to make records takes milliseconds."""

        def __getattr__(self, name):
            return getattr(importlib.import_module("breccia._records"), name)

    records = Later()


def to_json(value: Any) -> str:
    """JSON of a value, also of NumPy's scalars and arrays. NaN and infinities are words, as attributes may have."""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def json_of(value: Any) -> str:
    """As to_json(), but text is JSON already."""
    return value if isinstance(value, str) else to_json(value)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "items"):
        return dict(value)
    raise _errors.WrongTypeError(f"an attribute cannot be {type(value).__name__}: use what JSON has")


def flags(prefix: str, **named: bool | None) -> int:
    """BRC_PREFIX_NAME of each name that is true, together."""
    return sum(getattr(lib, f"BRC_{prefix}_{name.upper()}") for name, on in named.items() if on)


def options(struct: str, **members: Any) -> Any:
    """A structure of the library's, which keeps what Python's values become in it: text; JSON of any value
    for `..._json`; a time; an array of a sequence (or of one text), its length in `n...`. None stays 0."""
    types, made, keep = {name: member.type for name, member in ffi.typeof(struct).fields}, sized(struct), []
    for name, value in members.items():
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
                if name == "paths" and not len(value):  # not everywhere
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
    """Calls functions of the library on one object of it: function(self, *args, err)."""

    path = "/"  # of a group
    _pool: Handles

    def _working(self, progress: Progress = None) -> AbstractContextManager[Handle]:
        """A handle for a block, on which `progress` is told, or who is told of all calls."""
        return self._pool.at_work(self._pool.progress if progress is None else progress)

    def _repr_html_(self) -> str:
        from ._display import html_of
        return html_of(self)

    def _at(self, path: str) -> str:
        if not isinstance(path, str):
            raise _errors.WrongTypeError(f"a path must be str, not {path!r}")
        return f"{self.path.rstrip('/')}/{names}" if (names := path.strip("/")) else self.path

    def _call(self, function: Callable[..., int], *args: Any, progress: Progress = None) -> None:
        with self._working(progress) as handle:
            handle.call(function, handle.own, *args)

    def _buf(self, function: Callable[..., int], *args: Any) -> bytes:
        """What function(buffer, self, *args, err) appends."""
        with self._working() as handle:
            return handle.take_buf(function, handle.own, *args)

    def _oid(self, rev: str | None) -> Any:
        """The id of a version of a repository; NULL for none."""
        return ffi.NULL if rev is None else self._out("brc_oid", lib.brc_resolve, text(rev))

    def _out(self, kind: str, function: Callable[..., int], *args: Any) -> Any:
        """Where function(out, self, *args, err) writes."""
        out = ffi.new(kind + " *")
        with self._working() as handle:
            handle.call_out(function, out, *args)
        return out

    def _list(self, kind: type[T], function: Callable[..., int], *args: Any, limit: int | None = None,
              progress: Progress = None) -> list[T]:
        """What function(iterator, self, *args, err) lists."""
        out = ffi.new("brc_iter **")
        with self._working(progress) as handle:
            handle.call_out(function, out, *args)
            return items(handle, kind, out, limit)

    def _report(self, kind: type[T], function: Callable[..., int], *args: Any, progress: Progress = None,
                last: bool = False) -> T:
        """What function(structure, [iterator,] self, *args, err) writes; `last`: or function(self, *args,
        structure, err)."""
        struct, _, item = records.KINDS[kind.__name__]
        out, more, made = sized(struct), [ffi.new("brc_iter **")] if item else [], kind  # type: Any, Any, Any
        with self._working(progress) as handle:
            handle.call(function, *([handle.own, *args, out] if last else [out, *more, handle.own, *args]))
            listed = [tuple(items(handle, getattr(records, item), found)) for found in more]
        return cast(T, made.of(out, *listed))

    def _settled(self, made: T, free: bool = False) -> T:
        """The result of a merge or the like, if it is not in conflict."""
        found: Any = made
        if found.result == "conflict" and not free:
            places = "1 place is" if len(found.conflicts) == 1 else f"{len(found.conflicts)} places are"
            error = _errors.ConflictError(f"{places} in conflict: settle with ours=, theirs= or merge_settle()")
            error.conflicts = found.conflicts
            raise error
        return made


def items(handle: Handle, kind: Any, out: Any, limit: int | None = None) -> list[Any]:
    """What an iterator lists, as records; it is freed."""
    struct, step, _ = records.KINDS[kind.__name__]
    return handle.items(out, step, struct, kind.of, limit)
