"""Arrays of Zarr v2: a peer writes them, breccia imports them, writes into them and
exports them with --format zarr2, and the peers read what came of it."""
import json
import os

import numpy as np
import tensorstore
import zarr
from zarr.core.array import AsyncArray
from zarr.core.buffer import default_buffer_prototype
from zarr.core.metadata.v2 import ArrayV2Metadata
from zarr.core.sync import sync
from zarr.storage import LocalStore, StorePath

import elements
import generate
from generate import pick


def dtype_text(rng, kind):
    """The type's name in v2, and whether its bytes are swapped."""
    if kind.variable:
        return '|O'
    if kind.kind == 'struct':  # of one order, or of one for each field
        orders = pick(rng, ['<', '>', '<>'])
        return [[name, pick(rng, orders) + kind.dtype[name].str[1:] if kind.dtype[name].itemsize > 1
                 else kind.dtype[name].str] for name in kind.dtype.names]
    text = kind.dtype.str
    big = kind.wide and rng.integers(3) == 0
    return '>' + text[1:] if big else text


def compressor(rng, kind, is_plain):
    """`is_plain`: elements come to it in C order, little-endian."""
    which = rng.integers(10)
    if which < 2:
        return None
    if which == 2 and is_plain:
        return {'id': 'zfpy', 'mode': 4, 'tolerance': -1, 'rate': -1, 'precision': -1}
    if which < 5:
        return {'id': 'blosc', 'cname': pick(rng, ['lz4', 'zstd', 'blosclz', 'zlib']),
                'clevel': int(rng.integers(10)), 'shuffle': int(rng.integers(-1, 3)), 'blocksize': 0}
    return pick(rng, [{'id': 'zlib', 'level': 1}, {'id': 'gzip', 'level': 5}, {'id': 'zstd', 'level': 3},
                      {'id': 'bz2', 'level': 1}, {'id': 'lz4', 'acceleration': 1},
                      {'id': 'lzma', 'format': 1, 'check': -1, 'preset': 1, 'filters': None}])


def filters(rng, kind, dtype):
    if kind.variable:
        return [{'id': 'vlen-utf8' if kind.kind == 'string' else 'vlen-bytes'}]
    found = []
    if kind.kind == 'number' and kind.dtype.kind in 'iu' and rng.integers(5) == 0:
        found.append({'id': 'delta', 'dtype': dtype, 'astype': dtype})
    if rng.integers(6) == 0:
        found.append(pick(rng, [{'id': 'shuffle', 'elementsize': kind.size}, {'id': 'fletcher32'},
                                {'id': 'adler32'}, {'id': 'crc32'},
                                {'id': 'crc32c'}, {'id': 'jenkins_lookup3', 'initval': 0, 'prefix': None},
                                {'id': 'base64'}]))
    return found or pick(rng, [None, None, []])


def struct(rng):
    """A record of numbers."""
    fields = [(f'f{i}', pick(rng, ['u1', '<i2', '<i4', '<u8', '<f4', '<f8', '<c8', '?']))
              for i in range(rng.integers(1, 4))]
    return elements.Type('struct', 'struct', 'struct', np.dtype(fields))


def fill_json(kind, element, rng, dtype):
    if kind.kind == 'struct':  # the bytes as they are stored
        stored = np.array([element], kind.dtype).astype(np.dtype([tuple(field) for field in dtype]))
        return elements.base64.b64encode(stored.tobytes()).decode()
    if kind.kind == 'raw':
        return elements.base64.b64encode(element.tobytes()).decode()
    text = kind.fill_json(element, rng) if not kind.variable else element
    if kind.kind == 'bytes':
        return elements.base64.b64encode(element).decode()
    return text


def in_bits(value):
    """Returns whether a fill value, or a part of it, is in hexadecimal, which v2 does not have."""
    if isinstance(value, list):
        return any(map(in_bits, value))
    return isinstance(value, str) and value.startswith('0x')


class Case(generate.Case):
    @property
    def codec_names(self):
        compressor_id = [self.doc['compressor']['id']] if self.doc['compressor'] else []
        return [f['id'] for f in self.doc['filters'] or []] + compressor_id

    def describe(self):
        return json.dumps(self.doc)


def case(seed, number):
    rng = np.random.default_rng([seed, number, 2])
    kind = elements.choose(rng, pick(rng, ['number'] * 3 + ['other']))
    if kind.kind == 'raw' and kind.name != 'raw_bytes':
        kind = elements.Type('raw', 'raw_bytes', kind.json, kind.dtype)
    kind = struct(rng) if rng.integers(8) == 0 else kind
    odd = bool(rng.integers(3) == 0)
    shape, chunk = generate.random_shape(rng)
    element, _ = kind.fill(rng, odd)
    dtype = dtype_text(rng, kind)
    fill = fill_json(kind, element, rng, dtype)
    while kind.kind == 'number' and in_bits(fill):
        element, _ = kind.fill(rng, False)
        fill = fill_json(kind, element, rng, dtype)
    order, found = pick(rng, ['C', 'F']), filters(rng, kind, dtype)
    is_plain = order == 'C' and not found and dtype[0] == '<' and generate.takes_zfpy(kind, chunk)
    doc = {'zarr_format': 2, 'shape': shape, 'chunks': chunk, 'dtype': dtype,
           'compressor': compressor(rng, kind, is_plain), 'fill_value': fill, 'order': order,
           'filters': found, 'dimension_separator': pick(rng, ['.', '/'])}
    attributes = generate.attributes(rng)
    writes = [([0] * len(shape), generate.random_values(rng, kind, shape, odd, element))] \
        if rng.integers(3) else []
    for start, count in generate.boxes(rng, shape, rng.integers(2)):
        writes.append((start, generate.random_values(rng, kind, count, odd, element)))
    then = [('write', start, generate.random_values(rng, kind, count, odd, element))
            for start, count in generate.boxes(rng, shape, rng.integers(2))]
    made = Case(f'v{number:05}', kind, doc, writes, then, element)
    made.attributes = attributes
    return made


class ZarrPython:
    name = 'zarr-python (v2)'

    def cannot(self, case, writing):
        if case.type.json == {'name': 'numpy.datetime64', 'configuration':
                              {'unit': 'generic', 'scale_factor': 1}}:
            return 'no dates without a unit'
        return None

    def write(self, root, case):
        metadata = ArrayV2Metadata.from_dict({**json.loads(json.dumps(case.doc)),
                                              'attributes': case.attributes})
        path = sync(StorePath.open(LocalStore(root), case.name, mode='w'))
        for key, buffer in metadata.to_buffer_dict(default_buffer_prototype()).items():
            sync((path / key).set(buffer))
        array = zarr.Array(AsyncArray(metadata, path))
        for start, values in case.writes:
            if values.size:
                array[tuple(slice(s, s + n) for s, n in zip(start, values.shape))] = \
                    values.item() if case.type.variable and not values.shape else values

    def read(self, root, case):
        array = zarr.open_array(os.path.join(root, case.name), mode='r', zarr_format=2)
        values = np.asarray(array[...])
        if case.type.variable:
            values = values.astype(object)
        else:
            values = values.astype(case.type.dtype, copy=False)
        return case.type.canonical(values), list(array.shape), None, array.attrs.asdict()


class TensorStore:
    name = 'tensorstore (v2)'

    def cannot(self, case, writing):
        if writing and case.doc['order'] == 'F' and len(case.shape) < 2:
            return 'no order F of rank 0 and 1 when it creates'
        if case.type.kind != 'number':
            return f'no data type {case.type.name}'
        if case.doc['filters']:
            return 'no filters'
        if (case.doc['compressor'] or {}).get('id') in ('lz4', 'lzma', 'zfpy'):
            return f'no codec {case.doc["compressor"]["id"]}'
        return None

    def spec(self, root, case):
        return {'driver': 'zarr', 'kvstore': {'driver': 'file', 'path': os.path.join(root, case.name)}}

    def write(self, root, case):
        doc = {key: value for key, value in case.doc.items() if key != 'filters'}
        array = tensorstore.open({**self.spec(root, case), 'metadata': {**doc, 'filters': None}},
                                 create=True, delete_existing=True).result()
        for start, values in case.writes:
            array[tuple(slice(s, s + n) for s, n in zip(start, values.shape))].write(values).result()
        with open(os.path.join(root, case.name, '.zattrs'), 'w', encoding='utf-8') as file:
            json.dump(case.attributes, file)

    def read(self, root, case):
        array = tensorstore.open(self.spec(root, case), read=True).result()
        return case.type.canonical(array.read().result()), list(array.shape), None, None


PEERS = [ZarrPython(), TensorStore()]


def compare(case, content, seen):
    values, shape, _, attributes = seen
    if shape != list(content.shape):
        return f'shape {shape}, not {list(content.shape)}'
    if values != case.type.canonical(content):
        return 'other values'
    if attributes is not None and json.dumps(attributes, sort_keys=True) != \
            json.dumps(case.attributes, sort_keys=True):
        return 'other attributes'
    return None
