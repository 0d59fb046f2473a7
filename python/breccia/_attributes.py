"""The attributes of a node, as a mapping that is stored as it changes."""
from __future__ import annotations

import json
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from ._breccia import ffi, lib
from ._native import text

if TYPE_CHECKING:
    from .session import Session


def to_json(value: Any) -> str:
    """JSON of a value, also of NumPy's scalars and arrays. NaN has no JSON: ValueError."""
    return json.dumps(value, allow_nan=False, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "items"):
        return dict(value)
    raise TypeError(f"an attribute cannot be {type(value).__name__}: use what JSON has")


class Attributes(MutableMapping[str, Any]):
    """Names and values that JSON has: None, booleans, numbers (integers of any size), text, lists, dicts.
    Values are copies: change one, then set it again."""

    __slots__ = ("_session", "_path")

    def __init__(self, session: Session, path: str) -> None:
        self._session, self._path = session, path

    def asdict(self) -> dict[str, Any]:
        """All of them, read once."""
        sessions = self._session._sessions
        with sessions.at_work() as native:
            raw = native.handle.take_buf(lib.brc_attrs_get, native.session, text(self._path), ffi.NULL)
        return dict(json.loads(raw)) if raw else {}

    def __getitem__(self, name: str) -> Any:
        found = self.asdict()
        return found[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._session._sessions.call(lib.brc_attrs_set, text(self._path), text(name), text(to_json(value)))

    def __delitem__(self, name: str) -> None:
        self[name]
        self._session._sessions.call(lib.brc_attrs_set, text(self._path), text(name), ffi.NULL)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Sets several in one transaction."""
        new = dict(*args, **kwargs)
        with self._session.transaction():
            for name, value in new.items():
                self[name] = value

    def put(self, attributes: dict[str, Any]) -> None:
        """These and no others, in one transaction."""
        with self._session.transaction():
            for name in set(self) - set(attributes):
                del self[name]
            self.update(attributes)

    def __iter__(self) -> Iterator[str]:
        return iter(self.asdict())

    def __len__(self) -> int:
        return len(self.asdict())

    def __eq__(self, other: object) -> bool:
        return self.asdict() == (other.asdict() if isinstance(other, Attributes) else other)

    def __repr__(self) -> str:
        return repr(self.asdict())
