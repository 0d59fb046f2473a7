"""A store for zarr-python over the key view of libbreccia.so, by ctypes: for these tests alone.

A store has some handles on its file, each used by one call at a time on any thread. What one call
has set the next one sees, whichever handle it gets.
"""
import asyncio
import ctypes
import os
import queue
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p

from zarr.abc.store import OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import Buffer, default_buffer_prototype

OK, NOT_FOUND, EXISTS, WRITE = 0, -3, -4, 2
NEW = PREFIX = DIR = 1  # flags of setting, deleting and listing keys
HANDLES = 4


class Error(ctypes.Structure):
    _fields_ = [('size', c_size_t), ('code', c_int), ('detail', c_int), ('source', c_char * 16),
                ('message', c_char * 488)]


class Buf(ctypes.Structure):
    _fields_ = [('size', c_size_t), ('data', POINTER(c_uint8)), ('len', c_size_t), ('cap', c_size_t),
                ('limit', c_size_t), ('flags', c_uint32), ('reserved', c_uint32)]


class Range(ctypes.Structure):
    _fields_ = [('size', c_size_t), ('kind', c_int), ('start', c_uint64), ('end', c_uint64)]


class Info(ctypes.Structure):
    _fields_ = [('size', c_size_t), ('length', c_uint64), ('etag', c_char * 40)]


class CommitOptions(ctypes.Structure):
    _fields_ = [('size', c_size_t), ('message', c_char_p), ('author', c_char_p), ('meta_json', c_char_p),
                ('time_us', c_int64), ('flags', c_uint32), ('reserved', c_uint32)]


class BrecciaError(RuntimeError):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


LIB = ctypes.CDLL(os.environ.get('BRECCIA_LIB', 'build/libbreccia.so'))
for _name in 'brc_free', 'brc_session_free', 'brc_iter_free', 'brc_buf_dispose':
    getattr(LIB, _name).restype = None


def call(name, *args, may_be=()):
    """BRC_OK, 1, or one of the codes that may be; else raises."""
    error = Error(size=ctypes.sizeof(Error))
    rc = getattr(LIB, name)(*args, byref(error))
    if rc < 0 and rc not in may_be:
        raise BrecciaError(rc, f'{name}: {error.message.decode()}')
    return rc


def text(key):
    if '\0' in key:
        raise ValueError('a key has no NUL')
    return key.encode()


def byte_range(request):
    kinds = {None: (0, 0, 0)}
    if isinstance(request, RangeByteRequest):
        kinds = {request: (1, request.start, request.end)}
    elif isinstance(request, OffsetByteRequest):
        kinds = {request: (2, request.offset, 0)}
    elif isinstance(request, SuffixByteRequest):
        kinds = {request: (3, request.suffix, 0)}
    elif request is not None:
        raise ValueError(f'Unexpected byte_range, got {request}.')
    return Range(ctypes.sizeof(Range), *kinds[request])


class Handle:
    """A handle and a session on the branch's shared draft."""

    def __init__(self, path):
        self.repo, self.session = c_void_p(), c_void_p()
        if call('brc_open', byref(self.repo), os.fsencode(path), None, may_be=(NOT_FOUND,)) < 0:
            raise FileNotFoundError(path)
        call('brc_session_open', byref(self.session), self.repo, None, WRITE)

    def close(self):
        LIB.brc_session_free(self.session)
        LIB.brc_free(self.repo)

    @staticmethod
    def taken(buf):
        data = ctypes.string_at(buf.data, buf.len) if buf.len else b''
        LIB.brc_buf_dispose(byref(buf))
        return data

    def get(self, key, request=None):
        out = Buf(size=ctypes.sizeof(Buf))
        rc = call('brc_key_get', byref(out), self.session, text(key),
                  byref(byte_range(request)), None, may_be=(NOT_FOUND,))
        return self.taken(out) if rc == OK else None

    def get_many(self, keys, requests):
        n = len(keys)
        out = (Buf * n)(*[Buf(size=ctypes.sizeof(Buf)) for _ in keys])
        found = (c_uint8 * n)()
        names = (c_char_p * n)(*map(text, keys))
        ranges = (Range * n)(*map(byte_range, requests))
        call('brc_key_get_many', out, found, self.session, names, ranges, c_size_t(n))
        return [self.taken(buf) if there else None for buf, there in zip(out, found)]

    def info(self, key):
        info = Info(size=ctypes.sizeof(Info))
        rc = call('brc_key_get', None, self.session, text(key), None, byref(info), may_be=(NOT_FOUND,))
        return (info.length, info.etag.decode()) if rc == OK else None

    def set_many(self, items):
        n = len(items)
        names = (c_char_p * n)(*[text(key) for key, _ in items])
        values = (c_char_p * n)(*[value for _, value in items])
        lengths = (c_size_t * n)(*[len(value) for _, value in items])
        call('brc_key_set_many', self.session, names, values, lengths, c_size_t(n))

    def set_new(self, key, value):
        return call('brc_key_set', self.session, text(key), value, c_size_t(len(value)), NEW, may_be=(EXISTS,)) == OK

    def exists(self, key):
        return call('brc_key_get', None, self.session, text(key), None, None, may_be=(NOT_FOUND,)) == OK

    def listed(self, prefix, flags=0):
        it, key, found = c_void_p(), c_char_p(), []
        call('brc_keys', byref(it), self.session, text(prefix), flags)
        try:
            while call('brc_next', it, byref(key)) > 0:
                found.append(key.value.decode())
        finally:
            LIB.brc_iter_free(it)
        return found

    def delete(self, key):
        call('brc_key_delete', self.session, text(key), 0)

    def delete_prefix(self, prefix):
        call('brc_key_delete', self.session, text(prefix), PREFIX)

    def commit(self, message):
        oid = (c_uint8 * 64)()
        options = CommitOptions(size=ctypes.sizeof(CommitOptions), message=message.encode(), author=b'a')
        call('brc_session_commit', oid, self.session, byref(options))


class KeyStore(Store):
    """A breccia file as a store: its current branch, with what is uncommitted."""
    supports_writes = supports_deletes = supports_listing = True
    supports_partial_writes = False

    def __init__(self, path, *, read_only=False):
        super().__init__(read_only=read_only)
        self.path = os.fspath(path)
        self._handles = None

    def __eq__(self, other):
        return isinstance(other, KeyStore) and self.path == other.path and self.read_only == other.read_only

    def __repr__(self):
        return f"KeyStore('{self.path}')"

    def __getstate__(self):
        return self.path, self.read_only

    def __setstate__(self, state):
        self.__init__(state[0], read_only=state[1])

    def with_read_only(self, read_only=False):
        return KeyStore(self.path, read_only=read_only)

    async def _open(self):
        await super()._open()
        self._handles = queue.Queue()
        for _ in range(HANDLES):
            self._handles.put(Handle(self.path))

    def close(self):
        super().close()
        while self._handles is not None and not self._handles.empty():
            self._handles.get().close()
        self._handles = None

    def use(self, function, *args):
        handle = self._handles.get()
        try:
            return function(handle, *args)
        finally:
            self._handles.put(handle)

    async def run(self, function, *args):
        await self._ensure_open()
        return await asyncio.to_thread(self.use, function, *args)

    async def get(self, key, prototype=None, byte_range=None):
        prototype = prototype or default_buffer_prototype()
        data = await self.run(Handle.get, key, byte_range)
        return None if data is None else prototype.buffer.from_bytes(data)

    async def get_partial_values(self, prototype, key_ranges):
        wanted = list(key_ranges)
        if not wanted:
            return []
        found = await self.run(Handle.get_many, *map(list, zip(*wanted)))
        return [None if data is None else prototype.buffer.from_bytes(data) for data in found]

    async def exists(self, key):
        return await self.run(Handle.exists, key)

    async def getsize(self, key):
        info = await self.run(Handle.info, key)
        if info is None:
            raise FileNotFoundError(key)
        return info[0]

    @staticmethod
    def checked(value):
        if not isinstance(value, Buffer):
            raise TypeError(f'{KeyStore.__name__}.set(): `value` must be a Buffer instance.'
                            f' Got an instance of {type(value)} instead.')
        return value.to_bytes()

    async def set(self, key, value):
        await self._ensure_open()
        self._check_writable()
        await self.run(Handle.set_many, [(key, self.checked(value))])

    async def _set_many(self, values):
        await self._ensure_open()
        self._check_writable()
        items = [(key, self.checked(value)) for key, value in values]
        if items:
            await self.run(Handle.set_many, items)

    async def set_if_not_exists(self, key, value):
        await self._ensure_open()
        self._check_writable()
        await self.run(Handle.set_new, key, self.checked(value))

    async def delete(self, key):
        await self._ensure_open()
        self._check_writable()
        await self.run(Handle.delete, key)

    async def delete_dir(self, prefix):
        await self._ensure_open()
        self._check_writable()
        prefix = prefix.rstrip('/') + '/' if prefix.strip('/') else ''
        await self.run(Handle.delete_prefix, prefix)

    async def clear(self):
        await self.delete_dir('')

    async def is_empty(self, prefix):
        return not await self.run(Handle.listed, prefix, DIR)

    async def list(self):
        async for key in self.list_prefix(''):
            yield key

    async def list_prefix(self, prefix):
        for key in await self.run(Handle.listed, prefix):
            yield key

    async def list_dir(self, prefix):
        names = await self.run(Handle.listed, prefix, DIR)
        for name in dict.fromkeys(name.rstrip('/') for name in names):
            yield name
