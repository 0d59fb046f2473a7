#!/usr/bin/env python3
"""A second reader of breccia repositories, written from docs/FORMAT.md.

    reader.py FILE ls [REV]          every node: path, kind, data type, shape
    reader.py FILE read PATH [REV]   an array's elements on standard output, in
                                     C order, little-endian, without gaps
    reader.py FILE unknown           a line for each chunk that lies in a backend which this
                                     reader does not know: it says where
    reader.py FILE keys [REV]        of a draft: keys that are not nodes or chunks yet, with
                                     their bytes; keys of documents that are hidden

REV is a branch, a tag or a whole commit id; without it, the current branch is read
with its shared uncommitted changes; with draft:N, those of the draft with this number.
Regular grids and elements of a fixed length only. The standard library does all but the
hashes (xxhash) and the codecs zstd (zstandard) and blosc (blosc). Every object is checked
against its checksum and its id, and every row that has a checksum against that.
"""
import functools
import itertools
import json
import math
import os
import sqlite3
import struct
import sys
import zlib
from importlib import import_module

CHUNK, DOCUMENT, NODE, COMMIT, LOOSE, GROUP, ARRAY, ID_LEN = 1, 2, 3, 4, 5, 1, 2, 16
SHARED, LIVE = 1, 1  # a draft's kind and state
DELTA, DEPTH_MOST = '{"codecs":[{"name":"breccia.delta","configuration":{"codec":"zstd"}}]}', 64

# Tables whose rows have a checksum over these columns, in this order.
SUMMED = dict(
    meta='key value',
    ref='name target message',
    draft='id kind state branch base tip other plan owner parent time_us changes parts',
    draft_node='node draft path below level entry',
    draft_chunk='node key id',
    draft_move='draft path source',
    draft_key='draft key id',
    backend='id spec',
    place='seq backend name size facts')


def need(condition, message):
    if not condition:
        raise ValueError('damaged: ' + message)


class Unknown(Exception):
    """Bytes that are in a backend that this reader does not know."""


def part_of(folder, conf, name, offset, stored):
    need(name not in ('', '.', '..') and '/' not in name + conf['folder'], 'a name of a file')
    with open(os.path.join(folder, conf['folder'], name), 'rb') as file:
        file.seek(offset)
        return file.read(stored)


def dir_part(folder, conf, canonical, place, offset, stored):
    """docs/extending/dirstore.c"""
    need(place is None, 'a place in a backend that has none')
    return part_of(folder, conf, canonical, 0, stored)


def pack_part(folder, conf, canonical, place, offset, stored):
    """tests/plugins/packs.h"""
    need(place is not None, 'a chunk in no pack')
    return part_of(folder, conf, place, offset, stored)


BACKENDS = {'org.example.dir': dir_part, 'org.example.pack': pack_part}


class Repository:
    def __init__(self, path):
        self.folder = os.path.dirname(os.path.abspath(path))
        self.xxhash = import_module('xxhash')
        self.db = sqlite3.connect(f'file:{path}?mode=ro', uri=True)
        self.db.executescript('PRAGMA trusted_schema=OFF; BEGIN')  # one view of refs and drafts
        need(self.row('PRAGMA application_id') == (0x62726331,), 'no breccia repository')
        need(self.row('PRAGMA user_version') == (2,), 'another format')
        meta = {row['key']: row['value'] for row in self.rows('meta')}
        need(meta['hash'] == 'xxh128', 'another hash')
        need(meta['must-understand'] == '', 'features that this reader lacks')
        self.head = meta['head']

    @functools.cache
    def there(self, table):
        """A table that is not there is empty."""
        return self.row('SELECT 1 FROM sqlite_schema WHERE name=?', table) is not None

    def row(self, sql, *values):
        return self.db.execute(sql, values).fetchone()

    def rows(self, table, where='1', *values):
        """Rows of a table that has checksums, each by its columns' names: none of one that is not there."""
        if not self.there(table):
            return []
        columns = SUMMED[table].split()
        sql = f'SELECT {", ".join(columns)}, checksum FROM {table} WHERE {where}'
        found = self.db.execute(sql, values).fetchall()
        for *row, checksum in found:
            low = self.xxhash.xxh3_64_intdigest(row_bytes(table, *row)) & 0xffffffff
            need(checksum == low - (low >> 31 << 32), f'a row of {table}')
        return [dict(zip(columns, row)) for row in found]

    def object(self, kind, oid, depth=0):
        """The canonical bytes of an object, from which so many differences lead to the one that was asked for."""
        row = self.row('SELECT kind, encoding, backend, place, offset, size, stored, checksum'
                       ' FROM object WHERE id=?', oid)
        need(row is not None and row[0] == kind, f'object {oid.hex()} is missing')
        _, encoding, backend, place, offset, size, stored, checksum = row
        if backend != 0:
            need(kind == CHUNK, f'object {oid.hex()} lies outside of the file')
            data = self.elsewhere(oid, backend, place, offset, stored, checksum)
        else:
            row = self.row('SELECT data FROM blob WHERE seq=?', place)
            need(row is not None, f'the bytes of {oid.hex()} are missing')
            data = row[0][offset:offset + stored]
        seed, spec = int.from_bytes(oid[:8], 'big'), None
        if encoding != 0:
            spec, = self.row('SELECT spec FROM encoding WHERE id=?', encoding)
            seed ^= self.xxhash.xxh3_64_intdigest(spec.encode())
        sum64 = self.xxhash.xxh3_64_intdigest(data, seed)
        need((len(data), sum64) == (stored, checksum % (1 << 64)), f'stored bytes of {oid.hex()}')
        base = self.row('SELECT base FROM delta WHERE id=?', oid) if self.there('delta') else None
        need((base is None) == (spec != DELTA), f'table delta says something else of {oid.hex()}')
        if spec == DELTA:
            need(kind == CHUNK and depth < DEPTH_MOST, f'{oid.hex()} is not a chunk, or builds on too many others')
            need(base == (data[:ID_LEN],), f'{oid.hex()} builds on another object than table delta says')
            data = decode_delta(self.object(CHUNK, data[:ID_LEN], depth + 1), data[ID_LEN:])
        elif spec is not None:
            data = decode(json.loads(spec), data)
        need(len(data) == size, f'length of {oid.hex()}')
        return self.content(kind, oid, data)

    def elsewhere(self, oid, backend, place, offset, stored, checksum):
        """The stored bytes of a chunk that lies in a backend."""
        found = self.rows('backend', 'id=?', backend)
        need(found, f'backend {backend} is missing')
        spec, name = json.loads(found[0]['spec']), None
        if place != 0:
            found = self.rows('place', 'seq=? AND backend=?', place, backend)
            need(found, f'place {place} of backend {backend} is missing')
            name = found[0]['name']
        else:
            need(offset == 0, f'{oid.hex()} begins at an offset of nothing')
        canonical = f'{oid.hex()}-{checksum % (1 << 64):016x}'
        if spec['name'] not in BACKENDS:
            where = f'place "{name}" from {offset}' if name is not None else canonical
            raise Unknown(f'chunk {oid.hex()} lies in the backend "{spec["name"]}", which this'
                          f' reader does not know: {where}, {stored} bytes')
        read = BACKENDS[spec['name']]
        return read(self.folder, spec.get('configuration', {}), canonical, name, offset, stored)

    def unknown(self):
        """Yields a line for each object that lies in a backend that this reader does not know."""
        for kind, oid in self.db.execute('SELECT kind, id FROM object WHERE backend<>0 ORDER BY id'):
            try:
                self.object(kind, oid)
            except Unknown as error:
                yield str(error)

    def content(self, kind, oid, data):
        """Returns these canonical bytes, if their id is `oid`."""
        seed = int.from_bytes(b'brc', 'big') << 40 | kind
        need(self.xxhash.xxh3_128_digest(data, seed) == oid, f'content of {oid.hex()}')
        return data

    def draft_document(self, oid):
        """Returns a document that only uncommitted changes have; None if it is an object, or nowhere."""
        row = self.row('SELECT encoding, data FROM draft_doc WHERE id=?'
                       ' AND id NOT IN (SELECT id FROM object)', oid)
        if row is None:
            return None
        encoding, data = row
        if encoding != 0:
            spec, = self.row('SELECT spec FROM encoding WHERE id=?', encoding)
            data = decode(json.loads(spec), data)
        return self.content(DOCUMENT, oid, data)

    def items(self, root):
        """(key, value) of a map in order; root None is the empty map."""
        if root is None:
            return
        node = self.object(NODE, root)
        level, key = node[0], b''
        count, at = varint(node, 1)
        width, at = varint(node, at) if level == 0 else (0, at)
        for _ in range(count):
            shared, at = varint(node, at)
            size, at = varint(node, at)
            length = shared + size if level == 0 else (size + 7) // 8
            key = key[:shared] + node[at:at + length - shared]
            at += length - shared
            if level == 0:
                length, at = (width, at) if width else varint(node, at)
                yield key, node[at:at + length]
                at += length
                continue
            need(node[at] < level, 'a child is not below its parent')
            _, at = varint(node, at + 1)  # its items
            _, at = varint(node, at)  # keys under it
            yield from self.items(node[at:at + ID_LEN])
            at += ID_LEN
        need(at == len(node), 'bytes follow the last item')

    def open(self, rev=None):
        """The snapshot of a version, and the number of the draft that lies over it."""
        draft = target = None
        if rev is None:
            draft = self.rows('draft', 'branch=? AND kind=? AND state=?', self.head, SHARED, LIVE)
        elif rev.startswith('draft:'):
            draft = self.rows('draft', 'id=? AND state=?', int(rev[6:]), LIVE)
            need(draft and not is_savepoint(draft[0]), f'there is no {rev}')
        if draft:
            return self.snapshot(draft[0]['base']), draft[0]['id']
        for name in f'tags/{rev}', f'heads/{rev or self.head}':
            target = self.rows('ref', 'name=?', name) or target
        return self.snapshot(target[0]['target'] if target else bytes.fromhex(rev)), None

    def snapshot(self, commit):
        """Returns the snapshot of a commit; None is the empty one."""
        if commit is None:
            return None
        first = self.object(COMMIT, commit).decode().split('\n')[0].split(' ')
        return bytes.fromhex(first[1]) if first[0] == 'root' else None

    def walk(self, rev=None):
        """(path, entry, draft node) of every node, the root first."""
        snapshot, draft = self.open(rev)
        root, node = (GROUP, None, None), None
        if snapshot:
            root = entry(dict(self.items(snapshot))[b'\0'])
        found = self.rows('draft_node', 'draft=? AND path IS NOT NULL', draft)
        rows = {row['path']: (row['node'], row['entry']) for row in found}
        self.rows('draft_move', 'draft=?', draft)  # for their checksums: notes for diff and merge
        self.keys(draft)  # likewise: bytes that are not nodes or chunks
        if '/' in rows:
            node, raw = rows['/']
            root = entry(raw)
        yield from self.walk_under('/', root, node, rows)

    def keys(self, draft):
        """Key -> its bytes; None: of a node's document, which no client has written, or one has deleted."""
        return {row['key']: None if row['id'] is None else self.object(LOOSE, row['id'])
                for row in self.rows('draft_key', 'draft=?', draft)}

    def walk_under(self, path, at, node, rows):
        yield path, at, node
        if at[0] != GROUP:
            return
        below = path.rstrip('/') + '/'
        children = {below + key[:-1].decode(): (None, raw) for key, raw in self.items(at[2])}
        children.update((name, row) for name, row in rows.items()
                        if name.rpartition('/')[0] + '/' == below and name != '/')
        for name, (node, raw) in sorted(children.items()):
            if raw is not None:  # else it was removed
                yield from self.walk_under(name, entry(raw), node, rows)

    def document(self, at):
        plain = '{"zarr_format":3,"node_type":"group"}'
        if not at[1]:
            return json.loads(plain)
        return json.loads(self.draft_document(at[1]) or self.object(DOCUMENT, at[1]))

    def chunks(self, at, node):
        """Chunk index -> object id."""
        found, met = {}, set()
        while node is not None:  # a row, and those that it lies on
            need(node not in met, 'a row lies on itself')
            met.add(node)
            for row in self.rows('draft_chunk', 'node=?', node):
                found.setdefault(row['key'], row['id'])
            (upper,) = self.rows('draft_node', 'node=?', node)
            node = upper['below']
        found = dict(self.items(at[2])) | found
        return {chunk_index(key): oid for key, oid in found.items() if oid is not None}

    def read(self, path, rev=None):
        for name, at, node in self.walk(rev):
            if name == path and at[0] == ARRAY:
                return self.elements(self.document(at), self.chunks(at, node))
        raise SystemExit(f'there is no array {path}')

    def elements(self, doc, chunks):
        shape = doc['shape']
        grid_shape = doc['chunk_grid']['configuration']['chunk_shape']
        codecs = doc['codecs']
        while [codec['name'] for codec in codecs] == ['sharding_indexed']:
            grid_shape = codecs[0]['configuration']['chunk_shape']
            codecs = codecs[0]['configuration']['codecs']
        fill = element(doc['data_type'], doc['fill_value'])
        size = len(fill)
        out = bytearray(fill * math.prod(shape))
        for index, oid in chunks.items():
            data = self.object(CHUNK, oid)
            need(len(data) == size * math.prod(grid_shape), 'the length of a chunk')
            start = [i * c for i, c in zip(index, grid_shape)]
            if any(b >= s for b, s in zip(start, shape)):
                continue  # a chunk of a shard, beyond the array's grid
            count = [min(c, s - b) for c, s, b in zip(grid_shape, shape, start)]
            run = math.prod(count[-1:]) * size  # of the last axis, at once
            for row in itertools.product(*map(range, count[:-1])):
                corner = (row + (0,))[:len(count)]
                source = offset(corner, grid_shape) * size
                target = offset([b + i for b, i in zip(start, corner)], shape) * size
                out[target:target + run] = data[source:source + run]
        return bytes(out)


def offset(index, shape):
    return functools.reduce(lambda at, axis: at * axis[1] + axis[0], zip(index, shape), 0)


def is_savepoint(draft):
    """A row of draft with a parent is a savepoint, or a child, which is a draft like others."""
    return draft['parent'] is not None and (draft['plan'] or '').startswith('{"savepoint":')


def row_bytes(*values):
    """Returns the bytes that the checksum of a row covers: the table's name, then the columns."""
    out = b''
    for value in values:
        if value is None:
            out += b'\0'
        elif isinstance(value, int):
            out += struct.pack('>Bq', 1, value)
        elif isinstance(value, float):
            out += struct.pack('>Bd', 2, value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += struct.pack('>BQ', 3 if isinstance(value, str) else 4, len(data)) + data
    return out


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def entry(raw):
    """kind, document's id, map's root"""
    kind, parts = raw[0], raw[1]
    ids = [raw[i:i + ID_LEN] for i in range(2, len(raw), ID_LEN)]
    need(kind in (GROUP, ARRAY) and len(ids) == 1 + (parts & 1) + (parts >> 1), 'an entry')
    return kind, ids[0], ids[1] if parts & 1 else None


def chunk_index(key):
    index, at = [], 0
    while at < len(key):
        index.append(int.from_bytes(key[at + 1:at + 1 + key[at]], 'big'))
        at += 1 + key[at]
    return tuple(index)


NUMBERS = dict(bool='?', int8='b', int16='h', int32='i', int64='q', uint8='B', uint16='H',
               uint32='I', uint64='Q', float16='e', float32='f', float64='d', complex64='f',
               complex128='d')


def element(dtype, value):
    """One element of a fill value; of r<bits>, complex and numbers in hexadecimal too."""
    if dtype not in NUMBERS:
        return bytes(value)  # r8, r16 ...: a list of bytes
    code = NUMBERS[dtype]
    if dtype.startswith('complex'):
        return b''.join(element('float' + str(int(dtype[7:]) // 2), part) for part in value)
    if isinstance(value, str) and value.startswith('0x'):
        return int(value, 16).to_bytes(struct.calcsize(code), 'little')
    if value == 'NaN':
        return {'e': b'\0\x7e', 'f': b'\0\0\xc0\x7f', 'd': b'\0\0\0\0\0\0\xf8\x7f'}[code]
    return struct.pack('<' + code, float(value) if code in 'efd' else value)


def decode(spec, data):
    """Stored bytes to canonical bytes: the codecs backwards."""
    for codec in reversed(spec['codecs']):
        name, conf = codec['name'], codec.get('configuration', {})
        if name == 'zstd':
            data = import_module('zstandard').ZstdDecompressor().decompressobj().decompress(data)
        elif name == 'gzip':
            data = zlib.decompress(data, 31)
        elif name == 'blosc':
            data = import_module('blosc').decompress(data)
        elif name == 'crc32c':
            data = data[:-4]  # the checksum of the object covers it
        elif name != 'bytes':
            raise SystemExit(f'this reader has no codec {name}')
        elif conf.get('endian') == 'big':
            width = struct.calcsize(NUMBERS[spec['data_type']])
            data = b''.join(data[i:i + width][::-1] for i in range(0, len(data), width))
    return data


def decode_delta(base, frame):
    """The content of a difference: a frame of zstd whose prefix is the base's content."""
    zstandard = import_module('zstandard')
    prefix = zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    need(zstandard.get_frame_parameters(frame).has_checksum, 'a difference without a checksum')
    return zstandard.ZstdDecompressor(dict_data=prefix).decompress(frame)


def main(argv):
    if len(argv) < 3 or argv[2] not in ('ls', 'read', 'keys', 'unknown') or (argv[2] == 'read' and len(argv) < 4):
        raise SystemExit(__doc__)
    repo = Repository(argv[1])
    if argv[2] == 'unknown':
        return print(*repo.unknown(), sep='\n')
    if argv[2] == 'read':
        return sys.stdout.buffer.write(repo.read(*argv[3:5]))
    if argv[2] == 'keys':
        for key, value in sorted(repo.keys(repo.open(*argv[3:4])[1]).items(), key=lambda item: item[0].encode()):
            print(key, 'hidden' if value is None else value.hex())
        return
    for path, at, _ in repo.walk(*argv[3:4]):
        doc = repo.document(at)
        print(path, doc['node_type'], doc.get('data_type', ''), doc.get('shape', ''))


if __name__ == '__main__':
    main(sys.argv)
