"""URLs of what is in a file: breccia://FILE::REV/PATH, or breccia://FILE/PATH for branch main."""
from __future__ import annotations

import os

from ._errors import AmbiguousError, InvalidError, NotFoundError
from .repository import Repository

SCHEME = "breccia://"


def split(url: str, rev: str | None = None) -> tuple[str, str, str]:
    """File, revision and path of a URL, with or without its scheme. A branch may have a "/" in its name: the first
    words that name a revision are it. `rev`: where the URL names none; None: "main"."""
    url = url.removeprefix(SCHEME)
    if "::" in url:
        file, rest = url.split("::", 1)
        if rev is not None:
            raise InvalidError(f"{url} names a revision: leave out rev={rev!r}")
        return file, *split_rev(file, rest.strip("/"))
    words = url.rstrip("/").split("/")
    for n in range(1, len(words) + 1):
        if os.path.isfile("/".join(words[:n])):
            return "/".join(words[:n]), rev or "main", "/".join(words[n:])
    return url, rev or "main", ""


def split_rev(file: str, text: str) -> tuple[str, str]:
    """Revision and path of "REV/PATH"."""
    words = text.split("/")
    if not os.path.isfile(file):
        raise FileNotFoundError(f"there is no file {file}")
    with Repository(file, read_only=True) as repo:
        for n in range(1, len(words) + 1):
            try:
                repo.resolve("/".join(words[:n]))
                return "/".join(words[:n]), "/".join(words[n:])
            except (NotFoundError, InvalidError, AmbiguousError):
                continue
    raise NotFoundError(f"{file} has no branch, tag or commit {text}")
