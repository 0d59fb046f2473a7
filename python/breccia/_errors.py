"""Failures of the library as exceptions: one class for each code of breccia.h, named after it.

Where Python has a habit, the class is also what Python's users catch: a node that is not there is a KeyError,
a wrong argument a ValueError, a file that cannot be read an OSError.
"""


class Error(Exception):
    """A call of the library failed. The text names the thing and the remedy."""

    code = 0

    def __str__(self) -> str:  # KeyError would print it in quotes
        return str(self.args[0]) if self.args else type(self).__name__


class InvalidError(Error, ValueError):
    """BRC_EINVAL: an argument is wrong."""

    code = -1


class MisuseError(Error, RuntimeError):
    """BRC_EMISUSE: the call is not allowed in this state."""

    code = -2


class NotFoundError(Error, KeyError):
    """BRC_ENOTFOUND: no such file, branch, version, node or key."""

    code = -3


class ExistsError(Error, FileExistsError):
    """BRC_EEXISTS: it is there already."""

    code = -4


class AmbiguousError(Error, ValueError):
    """BRC_EAMBIGUOUS: an abbreviation matches more than one."""

    code = -5


class ConflictError(Error):
    """BRC_ECONFLICT: something has to be decided first. `conflicts` lists what, where that is known."""

    code = -6

    def __init__(self, message: str = "", conflicts: "tuple[object, ...]" = ()) -> None:
        super().__init__(message)
        self.conflicts = conflicts


class StaleError(Error):
    """BRC_ESTALE: a branch or a version is not where it was."""

    code = -7


class BusyError(Error, TimeoutError):
    """BRC_EBUSY: another process held the file for longer than `wait`."""

    code = -8


class ReadOnlyError(Error, PermissionError):
    """BRC_EREADONLY: the file or the session cannot be written."""

    code = -9


class CorruptError(Error):
    """BRC_ECORRUPT: stored bytes contradict their hash or format."""

    code = -10


class FormatError(Error, ValueError):
    """BRC_EFORMAT: the file is no repository, or newer than this library."""

    code = -11


class UnsupportedError(Error, NotImplementedError):
    """BRC_EUNSUPPORTED: a codec, data type or option that is not in this build."""

    code = -12


class LimitError(Error, ValueError):
    """BRC_ELIMIT: a documented limit would be exceeded."""

    code = -13


class NoMemoryError(Error, MemoryError):
    """BRC_ENOMEM."""

    code = -14


class InputOutputError(Error, OSError):
    """BRC_EIO: the file could not be read or written. `detail` is errno, or SQLite's code."""

    code = -15


class NoSpaceError(Error, OSError):
    """BRC_ENOSPACE: the disk is full."""

    code = -16


class InterruptError(Error):
    """BRC_EINTERRUPT: the call was stopped."""

    code = -17


class InternalError(Error, RuntimeError):
    """BRC_EINTERNAL: a fault of breccia."""

    code = -18


class CollisionError(Error):
    """BRC_ECOLLISION: two different contents have one hash."""

    code = -19


BY_CODE: "dict[int, type[Error]]" = {c.code: c for c in Error.__subclasses__()}
