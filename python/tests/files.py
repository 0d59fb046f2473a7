"""Small repositories for tests, made through the C library alone."""
import json
import pathlib

import numpy as np
from breccia import _native
from breccia._native import ffi, lib, sized, text

# The converters of a build that is not installed.
BUILT = pathlib.Path(__file__).parents[2] / "build" / "libexec" / "breccia"
if _native.LIBEXEC is None and BUILT.is_dir():
    _native.LIBEXEC = str(BUILT)


class File:
    """A file that a test writes to. Each call is on one handle, which `close` gives up."""

    def __init__(self, path, *, create=True):
        self.path = str(path)
        self.handles = _native.Handles(self.path, flags=lib.BRC_OPEN_CREATE if create else 0, threads=1)
        self.handle = self.handles.take()
        out = ffi.new("brc_session **")
        self.handle.call(lib.brc_session_open, out, self.handle.repo, text("main"), lib.BRC_SESSION_PRIVATE)
        self.session = out[0]

    def array(self, path, data, chunks=None, dtype=None, codecs=None, dimension_names=None, attributes=None):
        """Makes an array and writes it."""
        data = np.ascontiguousarray(data)
        held = [ffi.new("uint64_t[]", list(map(int, shape))) for shape in (data.shape, chunks or data.shape)]
        names = [text(n) for n in dimension_names or ()]
        keep = text(dtype or data.dtype.name), text(codecs), text(json.dumps(attributes) if attributes else None)
        spec = sized("brc_array_spec", ndim=data.ndim, shape=held[0], chunk=held[1], dtype=keep[0],
                     codecs_json=keep[1], attrs_json=keep[2])
        listed = ffi.new("char *[]", names) if names else ffi.NULL
        spec.dimension_names = ffi.cast("const char *const *", listed)
        out = ffi.new("brc_array **")
        self.handle.call(lib.brc_array_create, out, self.session, text(path), spec)
        if data.nbytes:
            self.handle.call(lib.brc_array_write, out[0], ffi.NULL, ffi.cast("void *", data.ctypes.data), data.nbytes)
        lib.brc_array_free(out[0])
        return self

    def empty(self, path, shape, dtype):
        """Makes an array of elements of any type, without writing it."""
        sizes, keep = ffi.new("uint64_t[]", list(shape)), text(dtype)
        spec = sized("brc_array_spec", ndim=len(shape), shape=sizes, dtype=keep)
        out = ffi.new("brc_array **")
        self.handle.call(lib.brc_array_create, out, self.session, text(path), spec)
        lib.brc_array_free(out[0])
        return self

    def write(self, path, data):
        """Writes a whole array that is there."""
        data, out = np.ascontiguousarray(data), ffi.new("brc_array **")
        self.handle.call(lib.brc_array_open, out, self.session, text(path))
        self.handle.call(lib.brc_array_write, out[0], ffi.NULL, ffi.cast("void *", data.ctypes.data), data.nbytes)
        lib.brc_array_free(out[0])
        return self

    def commit(self, message):
        out, keep = ffi.new("brc_oid *"), text(message)
        self.handle.call(lib.brc_session_commit, out, self.session, sized("brc_commit_opts", message=keep))
        return _native.string(lib.brc_oid_format(ffi.new("char[65]"), out))

    def tag(self, name):
        self.handle.call(lib.brc_ref_create, self.handle.repo, text(name), ffi.NULL, ffi.NULL, lib.BRC_REF_TAG)

    def import_file(self, source, path):
        self.handle.call(lib.brc_import, self.session, text(str(source)), text(path), ffi.NULL)
        return self

    def close(self):
        lib.brc_session_free(self.session)
        self.handle.close()
        self.handles.close()
