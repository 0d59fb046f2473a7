"""Failures of the library as exceptions: one class for each code of breccia.h, made by the build. A class is also an
exception that Python's users expect: a missing node is a KeyError, a wrong argument a ValueError, an unreadable file
an OSError."""
from ._made.errors import *
from ._made.errors import BY_CODE as BY_CODE, __all__ as __all__, said as said
