"""Versioned Zarr arrays in one SQLite file.

    import breccia, numpy as np

    repo = breccia.open("data.brc", create=True)
    with repo.session("main", message="first") as s:
        s["images"] = np.zeros((1000, 28, 28), "u1")
    repo.view("main")["images"][10:20]
"""
from ._errors import (AmbiguousError, BusyError, CollisionError, ConflictError, CorruptError, Error,
                      ExistsError, FormatError, InputOutputError, InternalError, InterruptError, InvalidError,
                      LimitError, MisuseError, NoMemoryError, NoSpaceError, NotFoundError, ReadOnlyError,
                      StaleError, UnsupportedError)
from ._records import (Bisection, Blamed, Change, Commit, Conflict, Damage, Draft, Elements, Info,
                       MergeResult, Operation, PickResult, Ref)
from .array import Array
from .repository import Repository, open
from .session import Group, Session

__version__ = "0.1.0"

__all__ = [
    "AmbiguousError", "Array", "Bisection", "Blamed", "BusyError", "Change", "CollisionError", "Commit",
           "Conflict",
    "ConflictError", "CorruptError", "Damage", "Draft", "Elements", "Error", "ExistsError", "FormatError",
           "Group",
    "Info", "InputOutputError", "InternalError", "InterruptError", "InvalidError", "LimitError",
           "MergeResult",
    "MisuseError", "NoMemoryError", "NoSpaceError", "NotFoundError", "Operation", "PickResult",
           "ReadOnlyError", "Ref",
    "Repository", "Session", "StaleError", "UnsupportedError", "open",
]
