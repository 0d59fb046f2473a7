"""Stored values that change: the attributes of a node, and the settings of a file."""
from __future__ import annotations

import json
from collections.abc import Iterator, MutableMapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ._breccia import ffi, lib
from ._calls import Caller, to_json
from ._native import Handle, text


class Owner(Protocol):
    """A session, as far as the attributes of its nodes need it."""

    def _buf(self, function: Any, *args: Any) -> bytes: ...

    def _working(self) -> AbstractContextManager[Handle]: ...

    def transaction(self) -> AbstractContextManager[None]: ...


class Stored(MutableMapping[str, Any]):
    """Values by name. A subclass reads all values by asdict(), and sets one by _put() (None deletes it)."""

    def __getitem__(self: Any, name: str) -> Any:
        return self.asdict()[name]

    def __delitem__(self: Any, name: str) -> None:
        self[name]
        self._put(name, None)

    def clear(self) -> None:  # settings still exist afterwards
        for name in self:
            del self[name]

    def __iter__(self: Any) -> Iterator[str]:
        return iter(self.asdict())

    def __len__(self: Any) -> int:
        return len(self.asdict())

    def __eq__(self: Any, other: object) -> bool:
        return bool(self.asdict() == getattr(other, "asdict", lambda: other)())

    def __repr__(self: Any) -> str:
        return repr(self.asdict())


class Attributes(Stored):
    """Names and values that JSON has: None, booleans, numbers (integers of any size, also NaN), text, lists, dicts.
    Values are copies: change a copy, then set it again."""

    def __init__(self, session: Owner, path: str) -> None:
        self._session, self._path = session, path

    def asdict(self) -> dict[str, Any]:
        """Reads all attributes at once."""
        return dict(json.loads(self._session._buf(lib.brc_attrs_get, text(self._path), ffi.NULL) or "{}"))

    def _put(self, name: str, value: str | None) -> None:
        with self._session._working() as native:
            key = text(name.encode().replace(b"\0", b"\xc0\x80"))  # C's form of NUL in a name, see breccia_json.h
            native.call(lib.brc_attrs_set, native.session, text(self._path), key, text(value))

    def __setitem__(self, name: str, value: Any) -> None:
        self._put(name, to_json(value))

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Sets several attributes in one transaction."""
        with self._session.transaction():
            super().update(*args, **kwargs)

    def put(self, attributes: dict[str, Any]) -> None:
        """Replaces all attributes, in one transaction."""
        with self._session.transaction():
            for name in set(self) - set(attributes):
                del self[name]
            self.update(attributes)


class Config(Stored):
    """Settings by name. Deleting a setting restores its default."""

    def __init__(self, repository: Caller) -> None:
        self._repository = repository

    def asdict(self) -> dict[str, Any]:
        """Reads all settings at once."""
        names = "journal", "window", "codecs", "verify", "backend"
        return {n: self._repository._buf(lib.brc_config_get, text(n)).decode() for n in names}

    def _put(self, name: str, value: str | None) -> None:
        self._repository._call(lib.brc_config_set, text(name), text(value))

    def __setitem__(self, name: str, value: Any) -> None:
        self._put(name, value if isinstance(value, str) else to_json(value))
