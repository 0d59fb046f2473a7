"""Elements in memory of any kind, which other libraries take over without a copy: DLPack and Arrow."""
from __future__ import annotations

import ctypes
from typing import Any

from . import _errors
from ._breccia import ffi, lib
from ._elements import at_of, fresh
from ._indexing import FORWARDS, Selection
from ._native import Handle, failure, sized, string, text

_capsules = ctypes.PyDLL(None)
_new, _pointer, _named, _rename = (getattr(_capsules, "PyCapsule_" + name) for name in
                                   ("New", "GetPointer", "IsValid", "SetName"))
_new.restype, _new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_named.argtypes = _rename.argtypes = (ctypes.py_object, ctypes.c_char_p)
_end = int(ffi.cast("intptr_t", ffi.addressof(lib, "py_end_capsule")))

HOST = 1
VERSIONED, OLD, TAKEN = b"dltensor_versioned", b"dltensor", {b"dltensor_versioned": b"used_dltensor_versioned",
                                                              b"dltensor": b"used_dltensor"}
ARROW = b"arrow_schema", b"arrow_array", b"arrow_array_stream"


def capsule(pointer: Any, name: bytes) -> Any:
    return _new(int(ffi.cast("intptr_t", pointer)), name, _end)


class Tensor:
    """Elements that were read into memory of a kind: of the host, page-locked, of a device. Other libraries take it as
    it is (`torch.from_dlpack`, `numpy.from_dlpack`, `cupy.from_dlpack`). It stays when the repository is closed."""

    def __init__(self, made: Any) -> None:
        self._made = ffi.gc(made, lib.brc_tensor_free)
        info = self._info = lib.brc_tensor_describe(made)
        self.shape: tuple[int, ...] = tuple(info.shape[0:info.ndim]) if info.ndim else ()
        self.dtype, self.memory = string(info.dtype), string(info.prototype)
        self.nbytes: int = info.bytes
        self.spilled = bool(info.flags & lib.BRC_TENSOR_SPILLED)

    @property
    def device(self) -> tuple[int, int]:
        """The device, as DLPack numbers it: (1, 0) is the host, (2, 1) the second of CUDA's."""
        return self._info.device or HOST, self._info.device_id

    def __repr__(self) -> str:
        return f"<breccia.Tensor {self.shape} {self.dtype} in {self.memory or 'memory of others'}>"

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """Gives the tensor out as the array API says. Elements are there for every stream since the read. A copy is
        made to the host alone."""
        made, wants = self, tuple(map(int, dl_device)) if dl_device is not None else self.device
        if wants != self.device:
            if wants[0] != HOST:
                raise BufferError(f"{self!r} is not copied to the device {wants}: read it there")
            if copy is False:
                raise BufferError(f"{self!r} cannot be had in the host's memory without a copy")
            made = self.to_host()
        elif copy:
            raise BufferError(f"{self!r} is not copied: read it again instead")
        versioned = max_version is not None and max_version[0] >= 1
        out, err = ffi.new("void **"), sized("brc_error")
        rc = lib.brc_tensor_to_dlpack(out, made._made, 0 if versioned else lib.BRC_DLPACK_OLD, err)
        if rc < 0:
            raise BufferError(str(failure(rc, err)))
        return capsule(out[0], VERSIONED if versioned else OLD)

    def to_host(self) -> Tensor:
        """Returns a copy in the host's memory, or itself if it is there."""
        out, err = ffi.new("brc_tensor **"), sized("brc_error")
        rc = lib.brc_tensor_to_host(out, self._made, ffi.NULL, ffi.NULL, err)
        if rc < 0:
            raise failure(rc, err)
        return Tensor(out[0])


def _options(sel: Selection, memory: str | None, **members: Any) -> tuple[Any, Any]:
    """Makes the library's options, and returns the objects that they point to."""
    box, drop = sel.box is not None, 0
    for axis, item in enumerate(sel.back or ()):
        if item is None and box:
            drop |= 1 << axis  # an integer
        elif item not in (FORWARDS, ...):
            raise _errors.InvalidError("a tensor has the array's axes, forwards: steps are positive, and integers do "
                                       "not stand beside index arrays")
    (made, keep), name = at_of(sel, "brc_sel" if box else "brc_at"), text(memory)
    if box:
        made.drop = drop
    return sized("brc_tensor_opts", prototype=name, **{"sel" if box else "at": made}, **members), (made, keep, name)


def read(native: Handle, path: str, sel: Selection, memory: str | None, device: int | None, spill: bool) -> Tensor:
    stream = ffi.cast("void *", device or 0)
    options, keep = _options(sel, memory, stream=stream, flags=lib.BRC_READ_SPILL if spill else 0)
    out = ffi.new("brc_tensor **")
    native.call(lib.brc_tensor_read, out, fresh(native, path), options)
    return Tensor(out[0])


def taken(value: Any) -> Any:
    """Returns the tensor of any object with __dlpack__, as the library has it; a CUDA stream has no part in it: what
    gives the object waits for its own default one."""
    try:
        given = value.__dlpack__(max_version=(1, 1))
    except TypeError:  # of before version 1
        given = value.__dlpack__()
    name = VERSIONED if _named(given, VERSIONED) else OLD
    out, err = ffi.new("brc_tensor **"), sized("brc_error")
    pointer = ffi.cast("void *", _pointer(given, name))
    rc = lib.brc_tensor_of_dlpack(out, pointer, 0 if name is VERSIONED else lib.BRC_DLPACK_OLD, err)
    if rc < 0:
        raise failure(rc, err)
    _rename(given, TAKEN[name])
    return ffi.gc(out[0], lib.brc_tensor_free)


def write(native: Handle, path: str, sel: Selection, value: Any) -> None:
    options, keep = _options(sel, None)
    native.call(lib.brc_tensor_write, native.array(path), taken(value), options)


def arrow(native: Handle, path: str, *kinds: int) -> Any:
    """Returns capsules of a whole array: 0 is a schema, 1 an array, 2 a stream, which has been read."""
    made = {kind: ffi.gc(lib.py_new_arrow(kind), lambda made, kind=kind: lib.py_drop_arrow(made, kind))
            for kind in kinds}
    if ffi.NULL in made.values():
        raise MemoryError
    a = fresh(native, path)
    if 2 in made:
        options = sized("brc_tensor_opts", flags=lib.BRC_READ_NOW)
        native.call(lib.brc_arrow_stream, ffi.cast("struct ArrowArrayStream *", made[2]), a, options)
    else:
        native.call(lib.brc_arrow_read, ffi.cast("struct ArrowArray *", made.get(1, ffi.NULL)),
                    ffi.cast("struct ArrowSchema *", made[0]), a, ffi.NULL)
    found = tuple(capsule(pointer, ARROW[kind]) for kind, pointer in made.items())
    for pointer in made.values():
        ffi.gc(pointer, None)  # its capsule has it now
    return found if len(found) > 1 else found[0]


def write_arrow(native: Handle, path: str, sel: Any, value: Any) -> None:
    """Writes an object with __arrow_c_array__."""
    schema, array = value.__arrow_c_array__()
    if not (_named(schema, ARROW[0]) and _named(array, ARROW[1])):
        raise _errors.InvalidError("__arrow_c_array__ gave no capsules of a schema and an array")
    options = sized("brc_tensor_opts", sel=sel)
    native.call(lib.brc_arrow_write, native.array(path), ffi.cast("struct ArrowSchema *", _pointer(schema, ARROW[0])),
                ffi.cast("struct ArrowArray *", _pointer(array, ARROW[1])), options)
