"""What is stored as it changes: the attributes of a node, and the settings of a file."""
from __future__ import annotations

import json
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from ._breccia import ffi, lib
from ._calls import to_json
from ._native import text

if TYPE_CHECKING:
    from .repository import Repository
    from .session import Session


class Stored(MutableMapping[str, Any]):
    def asdict(self) -> dict[str, Any]:
        """All of them, read once."""
        raise NotImplementedError

    def __getitem__(self, name: str) -> Any:
        return self.asdict()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.asdict())

    def __len__(self) -> int:
        return len(self.asdict())

    def __eq__(self, other: object) -> bool:
        return self.asdict() == (other.asdict() if isinstance(other, Stored) else other)

    def __repr__(self) -> str:
        return repr(self.asdict())


class Attributes(Stored):
    """Names and values that JSON has: None, booleans, numbers (integers of any size), text, lists, dicts.
    Values are copies: change one, then set it again."""

    def __init__(self, session: Session, path: str) -> None:
        self._session, self._path = session, path

    def asdict(self) -> dict[str, Any]:
        """All of them, read once."""
        return dict(json.loads(self._session._buf(lib.brc_attrs_get, text(self._path), ffi.NULL) or "{}"))

    def __setitem__(self, name: str, value: Any) -> None:
        self._session._sessions.call(lib.brc_attrs_set, text(self._path), text(name), text(to_json(value)))

    def __delitem__(self, name: str) -> None:
        self[name]
        self._session._sessions.call(lib.brc_attrs_set, text(self._path), text(name), ffi.NULL)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Sets several in one transaction."""
        with self._session.transaction():
            for name, value in dict(*args, **kwargs).items():
                self[name] = value

    def put(self, attributes: dict[str, Any]) -> None:
        """These and no others, in one transaction."""
        with self._session.transaction():
            for name in set(self) - set(attributes):
                del self[name]
            self.update(attributes)


class Config(Stored):
    """Settings by name. Deleting one sets its default."""

    NAMES = "journal", "window", "codecs", "verify", "backend"

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def asdict(self) -> dict[str, Any]:
        """All of them, read once."""
        return {name: self[name] for name in self.NAMES}

    def __getitem__(self, name: str) -> str:
        return self._repository._buf(lib.brc_config_get, text(name)).decode()

    def __setitem__(self, name: str, value: Any) -> None:
        given = value if isinstance(value, str) else json.dumps(value)
        self._repository._call(lib.brc_config_set, text(name), text(given))

    def __delitem__(self, name: str) -> None:
        self._repository._call(lib.brc_config_set, text(name), ffi.NULL)
