"""Credentials for servers of chunks, where the program gives its own instead of those that the command would use
(cli/credentials.c)."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from . import _errors
from ._breccia import ffi, lib
from ._calls import records
from ._native import raised, text

Credentials = Mapping[str, Any] | Callable[[Any], Mapping[str, Any]] | None

# By a member of brc_credentials: the names that s3fs, boto3, obstore and Amazon's tools have for it, in lower case,
# without "_" and "aws" in front.
NAMES = {"key": ("key", "accesskey", "accesskeyid"), "secret": ("secret", "secretkey", "secretaccesskey"),
         "token": ("token", "sessiontoken")}
LENGTHS = {name: member.type.length for name, member in ffi.typeof("brc_credentials").fields if name in NAMES}
LEFT_OUT = "endpointurl", "expiresat", "expiration", "expirytime"  # nothing to show to a server
KEPT = 64  # the most exceptions that wait for their callers
_numbers = itertools.count(1)


class Secret(dict[str, Any]):
    """A mapping that a program gave, which is not printed."""

    def __repr__(self) -> str:
        return "<secret>"

    __str__ = __repr__


class Giver:
    """Answers the library's questions: what a function says about a server, or a mapping for one server."""

    def __init__(self, given: Any) -> None:
        self.given, self.me = given, ffi.new_handle(self)

    def answer(self, server: Any) -> dict[str, bytes]:
        """Returns the texts that a server is to be shown."""
        asked = records.Server.of(server)
        if callable(self.given):
            given = self.given(asked)
            if isinstance(given, Mapping):
                return members(given)
            raise _errors.InvalidError(f"the function for credentials returned {type(given).__name__} and no mapping: "
                                       f"nothing is sent to {asked.endpoint}")
        if not lib.cli_is_chosen(server, text(self.given.get("endpoint_url"))):
            raise _errors.ConflictError(
                f"the chunks lie on the server {asked.endpoint}, and the credentials that were given are not for it: "
                f'nothing is sent there before they have "endpoint_url": "{asked.endpoint}"')
        return members(self.given)


def members(given: Mapping[str, Any]) -> dict[str, bytes]:
    """Returns the members of brc_credentials. No message has a value: that may be the secret."""
    found = dict[str, bytes]()
    for name, value in given.items():
        plain = str(name).replace("_", "").lower().removeprefix("aws")
        member = next((m for m, names in NAMES.items() if plain in names), None)
        if member is None and plain not in LEFT_OUT:
            raise _errors.InvalidError(f'credentials have "key", "secret", "token" and "endpoint_url", not "{name}"')
        if member is None or value is None:
            continue
        if not isinstance(value, str):
            raise _errors.WrongTypeError(f'"{name}" of credentials must be text, not {type(value).__name__}')
        found[member] = value.encode()
        if len(found[member]) >= LENGTHS[member] or "\0" in value:
            raise _errors.InvalidError(f'"{name}" of credentials is too long, or has a NUL character')
    if bool(found.get("key")) != bool(found.get("secret")):
        raise _errors.InvalidError('credentials need "key" and "secret", or neither of them: then nothing is signed')
    return found


def _kept(error: BaseException | None, err: Any) -> int:
    """Keeps an exception until the library's call that failed by it returns. The library is stopped, as by a function
    that is told the progress, and gets no text."""
    number = next(_numbers)
    raised[number] = error
    for old in list(raised)[:-KEPT]:  # the library has gone on without what they were to bring
        raised.pop(old, None)
    err.code, err.detail, err.source = lib.BRC_EINTERRUPT, number, b"python"
    err.message = b"the function for credentials has raised an exception"
    return int(lib.BRC_EINTERRUPT)


def _raised(kind: Any, error: Any, trace: Any) -> int:
    err = trace.tb_frame.f_locals.get("err") if trace is not None else None
    return _kept(error, err) if err else int(lib.BRC_EINTERRUPT)


@ffi.def_extern(name="py_credentials", error=lib.BRC_EINTERRUPT, onerror=_raised)
def _give(me: Any, server: Any, out: Any, err: Any) -> int:
    for member, value in ffi.from_handle(me).answer(server).items():
        setattr(out, member, value)
    return 0


def secret(given: Credentials) -> Any:
    """Returns what can be kept of the argument `credentials`."""
    if given is None or callable(given):
        return given
    if not isinstance(given, Mapping):
        raise _errors.WrongTypeError(f"credentials must be a mapping or a function, not {type(given).__name__}")
    members(given)
    return Secret(given)
