"""Versioned Zarr arrays in one SQLite file.

    import breccia, numpy as np

    repo = breccia.open("data.brc", create=True)
    with repo.session("main", message="first") as s:
        s["images"] = np.zeros((1000, 28, 28), "u1")
    repo.view("main")["images"][10:20]
"""
from typing import TYPE_CHECKING

from . import _calls, _errors
from ._errors import *
from ._native import use_nvcomp
from .array import Array
from .repository import Repository, open
from .session import Group, Session

if TYPE_CHECKING:
    from ._records import (Bisection, Blamed, Change, Commit, Conflict, Damage, Draft, DraftOperation, Elements, Info,
                           MergeResult, Operation, PickResult, Ref, Server)

__version__ = "0.1.0"

# Names are listed in full, because type checkers need them.
__all__ = [*_errors.__all__, "Array", "Bisection", "Blamed", "Change", "Commit", "Conflict", "Damage", "Draft",
           "DraftOperation", "Elements", "Group", "Info", "MergeResult", "Operation", "PickResult", "Ref", "Repository",
           "Server", "Session", "open", "use_nvcomp"]

if not TYPE_CHECKING:
    def __getattr__(name):
        """Gives the records, whose module is imported when the first one is used."""
        if name not in __all__:
            raise AttributeError(f"module 'breccia' has no attribute {name!r}")
        return getattr(_calls.records, name)

    def __dir__():
        return sorted({*globals(), *__all__})
