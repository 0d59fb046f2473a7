"""Failures of the library as exceptions: one class for each code of breccia.h, made by the build.

Where Python has a habit, the class is also what Python's users catch: a node that is not there is a KeyError,
a wrong argument a ValueError, a file that cannot be read an OSError.
"""
from ._made.errors import *
from ._made.errors import BY_CODE as BY_CODE, __all__ as __all__, said as said
