"""The other implementations: what each can say, how it writes and how it reads.

A peer's `cannot(case, writing)` is the reason why it does not take an array, or None.
`read` returns what it saw: (canonical bytes, shape, fill element's bytes, attributes);
None where the peer does not tell.
"""
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import warnings

import numpy as np
import tensorstore
import zarr
from zarr.core.array import AsyncArray
from zarr.core.buffer import default_buffer_prototype
from zarr.core.metadata import ArrayV3Metadata
from zarr.core.sync import sync
from zarr.storage import LocalStore, StorePath
from zarrs import _internal as zarrs

import generate

warnings.filterwarnings('ignore')


def chunk_key(doc, index):
    encoding = doc['chunk_key_encoding']
    words = [str(i) for i in index]
    separator = encoding.get('configuration', {}).get('separator')
    if encoding['name'] == 'v2':
        return (separator or '.').join(words) if words else '0'
    return (separator or '/').join(['c'] + words)


def edges(doc):
    """Chunk lengths per axis, as far as the shape goes."""
    conf = doc['chunk_grid']['configuration']
    regular = doc['chunk_grid']['name'] == 'regular'
    for n, size in zip(doc['shape'], conf['chunk_shape' if regular else 'chunk_shapes']):
        if isinstance(size, int):
            yield [size] * -(-n // size)
            continue
        lengths, total = [], 0
        for item in size:
            for length in [item[0]] * item[1] if isinstance(item, list) else [item]:
                if total < n:
                    lengths.append(length)
                    total += length
        yield lengths


def chunks(doc):
    """(index, start, shape) of every chunk that the array reaches."""
    axes = [list(zip(range(len(lengths)), itertools.accumulate([0] + lengths), lengths))
            for lengths in edges(doc)]
    for parts in itertools.product(*axes):
        yield tuple(zip(*parts)) if parts else ((), (), ())


def write_document(root, case):
    top = os.path.join(root, case.name)
    os.makedirs(top)
    with open(os.path.join(top, 'zarr.json'), 'w', encoding='utf-8') as file:
        json.dump(case.doc, file)


GENERIC_TIME = {'name': 'numpy.datetime64', 'configuration': {'unit': 'generic', 'scale_factor': 1}}


def divides_untransposed(doc):
    """Whether every shard's inner chunks also divide it as if nothing were transposed."""
    shape, codecs = doc['chunk_grid']['configuration']['chunk_shape'], doc['codecs']
    while codecs is not None:
        inner = None
        for part in codecs:
            if part['name'] == 'sharding_indexed':
                inner = part['configuration']
        if inner is None:
            return True
        if any(n % c for n, c in zip(shape, inner['chunk_shape'])):
            return False
        shape, codecs = inner['chunk_shape'], inner['codecs']
    return True


class ZarrPython:
    name = 'zarr-python'

    def cannot(self, case, writing):
        names = case.codec_names
        if case.type.name == 'raw_bytes' and 'sharding_indexed' in names:
            return 'no shards of raw_bytes'
        if case.type.kind == 'time' and case.type.json['configuration']['unit'] == 'generic' and \
                'sharding_indexed' in names:
            return 'no shards of times without a unit'
        if case.type.json == GENERIC_TIME and case.doc['fill_value'] != 'NaT':
            return 'no fill value but NaT of dates without a unit'
        unknown = {'packbits', 'bitround', 'scale_offset'} & set(names)
        if unknown:
            return f'no codec {min(unknown)}'
        if case.type.kind == 'small' or case.type.name.startswith('r') and case.type.name[1:].isdigit():
            return 'no data type ' + ('r<bits>' if case.type.kind == 'raw' else case.type.name)
        if case.doc['chunk_grid']['name'] != 'regular':
            return 'no rectilinear grid'
        if 'sharding_indexed' in names and not case.shape:
            return 'no shards of rank 0'
        if {'numcodecs.delta', 'sharding_indexed'} <= {part['name'] for part in case.doc['codecs']}:
            return 'flattens what it puts into shards'
        if 'numcodecs.delta' in names and any(
                codec.get('configuration', {}).get('endian') == 'big'
                for codec in generate.all_codecs(case.doc['codecs']) if codec['name'] == 'bytes'):
            return 'takes big-endian numbers for little-endian ones after numcodecs.delta'
        flattening = {'vlen-utf8', 'vlen-bytes', 'numcodecs.delta'} & set(names)
        if 'transpose' in names and flattening:
            return 'flattens transposed chunks in memory order (zarr-python #3558)'
        if not divides_untransposed(case.doc):
            return 'checks shards against the untransposed shape'
        return None

    def write(self, root, case):
        metadata = ArrayV3Metadata.from_dict(json.loads(json.dumps(case.doc)))
        path = sync(StorePath.open(LocalStore(root), case.name, mode='w'))
        for key, buffer in metadata.to_buffer_dict(default_buffer_prototype()).items():
            sync((path / key).set(buffer))
        array = zarr.Array(AsyncArray(metadata, path))
        for start, values in case.writes:
            if values.size:
                array[tuple(slice(s, s + n) for s, n in zip(start, values.shape))] = \
                    values.item() if case.type.variable and not values.shape else values

    def read(self, root, case):
        array = zarr.open_array(os.path.join(root, case.name), mode='r')
        values = np.asarray(array[...])
        if case.type.variable:
            values = values.astype(object)
            fill = np.array([array.fill_value], dtype=object)
        else:
            values = values.astype(case.type.dtype, copy=False)  # of rank 0: a text as long as it is
            fill = np.array([array.fill_value], dtype=case.type.dtype)
        return (case.type.canonical(values), list(array.shape), case.type.canonical(fill),
                array.attrs.asdict())


class Zarrs:
    """zarrs through its pipeline for zarr-python; without zarr-python around it, which
    would narrow what it takes."""
    name = 'zarrs'

    def cannot(self, case, writing):
        if case.type.variable:
            return 'no variable length through its pipeline'
        try:
            self.open(tempfile.gettempdir(), case.doc)
        except TypeError as why:
            if 'is not supported' in str(why):
                return str(why).replace(' is not supported', '').join(('no ', ''))
            if case.type.kind == 'small' and 'fill value' in str(why):
                return 'no fill values of ' + case.type.name + ' in decimal'
        return None

    def open(self, root, doc):
        return zarrs.CodecPipelineImpl(json.dumps(doc), LocalStore(root), validate_checksums=True)

    def items(self, name, doc):
        """Whole chunks: decoding parts of them, the pipeline swaps the bytes of complex
        numbers as if each were one number."""
        full = self.full_shape(doc)
        for index, start, shape in chunks(doc):
            yield zarrs.ChunkItem(
                f'{name}/{chunk_key(doc, index)}', [slice(0, n) for n in shape], list(shape),
                [slice(s, s + n) for s, n in zip(start, shape)], full)

    def full_shape(self, doc):
        return [sum(lengths) for lengths in edges(doc)]

    def write(self, root, case):
        write_document(root, case)
        content = case.content(case.written)
        if content.size and case.writes:
            full = case.type.filled(self.full_shape(case.doc), case.fill)
            full[tuple(slice(0, n) for n in content.shape)] = content
            self.open(root, case.doc).store_chunks_with_indices(
                list(self.items(case.name, case.doc)), self.raw(case, full), False)

    def raw(self, case, values):
        plain = np.frombuffer(case.type.canonical(values), f'V{case.type.size}')
        return plain.reshape(values.shape)

    def read(self, root, case):
        with open(os.path.join(root, case.name, 'zarr.json'), encoding='utf-8') as file:
            doc = json.load(file)
        pipeline = self.open(root, doc)
        full = np.zeros(self.full_shape(doc), f'V{case.type.size}')
        if full.size:
            pipeline.retrieve_chunks_and_apply_index(list(self.items(case.name, doc)), full)
        out = full[tuple(slice(0, n) for n in doc['shape'])]
        return out.tobytes(), list(out.shape), None, None


TENSORSTORE_LACKS = ('packbits', 'bitround', 'scale_offset', 'vlen-utf8', 'vlen-bytes')
TENSORSTORE_TYPES = ('bfloat16', 'int2', 'int4', 'float8_e3m4', 'float8_e4m3b11fnuz',
                     'float8_e4m3fnuz', 'float8_e5m2', 'float8_e5m2fnuz', 'float8_e8m0fnu',
                     'float4_e2m1fn')


class TensorStore:
    name = 'tensorstore'

    def cannot(self, case, writing):
        lacks = [name for name in case.codec_names
                 if name in TENSORSTORE_LACKS or name.startswith('numcodecs.')]
        if lacks:
            return f'no codec {lacks[0]}'
        if case.type.kind != 'number' and case.type.name not in TENSORSTORE_TYPES:
            return f'no data type {case.type.name}'
        if case.type.name == 'float8_e8m0fnu':
            return 'reads fill values of float8_e8m0fnu wrongly'
        if case.doc['chunk_grid']['name'] != 'regular':
            return 'no rectilinear grid'
        labels = [label for label in case.doc.get('dimension_names', []) if label is not None]
        if len(set(labels)) < len(labels):
            return 'no equal dimension names'
        if writing and len(labels) < len(case.doc.get('dimension_names', [])):
            return 'no null among dimension names when it creates'
        if any('sharding_indexed' in names and names[-1] != 'sharding_indexed'
               for names in generate.codec_lists(case.doc['codecs'])):
            return 'no codec after sharding_indexed'
        return None

    def spec(self, root, case):
        return {'driver': 'zarr3', 'kvstore': {'driver': 'file', 'path': os.path.join(root, case.name)}}

    def write(self, root, case):
        array = tensorstore.open({**self.spec(root, case), 'metadata': case.doc}, create=True,
                                 delete_existing=True).result()
        for start, values in case.writes:
            array[tuple(slice(s, s + n) for s, n in zip(start, values.shape))].write(values).result()

    def read(self, root, case):
        array = tensorstore.open(self.spec(root, case), read=True).result()
        fill = np.array(array.fill_value, dtype=case.type.dtype)
        metadata = array.spec(retain_context=False).to_json().get('metadata', {})
        return (case.type.canonical(array.read().result()), list(array.shape),
                case.type.canonical(fill.reshape(1)), metadata.get('attributes', {}))


ZARRITA_CODECS = {'bytes', 'transpose', 'gzip', 'zstd', 'blosc', 'crc32c', 'sharding_indexed', 'vlen-utf8',
                  'bitround', 'scale_offset', 'numcodecs.lz4', 'numcodecs.zlib', 'numcodecs.zstd',
                  'numcodecs.gzip', 'numcodecs.shuffle', 'numcodecs.delta'}


def codec_of(case, name):
    """The configuration of the first codec of that name."""
    return next((part.get('configuration', {}) for part in generate.all_codecs(case.doc['codecs'])
                 if part['name'] == name), {})


class Zarrita:
    """zarrita.js; a whole hierarchy in one process."""
    name = 'zarrita'

    def __init__(self, folder):
        """`folder`: where npm put the packages; the script must lie beside them."""
        here = os.path.dirname(os.path.abspath(__file__))
        self.script = shutil.copy(os.path.join(here, 'zarrita.mjs'), folder)
        self.found = {}

    def cannot(self, case, writing):
        if writing and not self.creates(case.doc):
            return 'does not create such arrays'
        lacks = set(case.codec_names) - ZARRITA_CODECS
        if lacks:
            return f'no codec {min(lacks)}'
        shards = [part['configuration'] for part in generate.all_codecs(case.doc['codecs'])
                  if part['name'] == 'sharding_indexed']
        if len(shards) > 1:
            return 'no shards within shards'
        if shards and not case.shape:
            return 'no shards of rank 0'
        if shards and len(case.doc['codecs']) > 1:
            return 'reads shards as if no codec stood before or after them (zarrita.js #427)'
        if any(conf.get('index_location') == 'start' for conf in shards):
            return 'no shard index at the start'
        if case.type.name in ('int64', 'uint64') and abs(case.doc['fill_value']) > 2 ** 53:
            return 'no fill value beyond 2^53'
        if '"0x' in json.dumps(case.doc['fill_value']):
            return 'no fill value in hexadecimal'
        if case.type.name == 'bool' and codec_of(case, 'bytes').get('endian') == 'big':
            return 'turns booleans round where the order of bytes is big'
        numbers = case.type.kind == 'number' and case.type.dtype.kind != 'c' and \
            case.type.name != 'float16'
        if not numbers and case.type.name != 'string':
            return f'no data type {case.type.name}'
        if case.doc['chunk_grid']['name'] != 'regular':
            return 'no rectilinear grid'
        return None

    def creates(self, doc):
        encodes = {'bytes', 'transpose', 'zstd', 'blosc', 'numcodecs.zstd', 'numcodecs.lz4'}
        return doc['shape'] and doc['chunk_key_encoding']['name'] == 'default' and \
            None not in doc.get('dimension_names', []) and \
            doc['data_type'] not in ('int64', 'uint64') and \
            {codec['name'] for codec in doc['codecs']} <= encodes

    def run(self, mode, root, folder, lines):
        os.makedirs(folder, exist_ok=True)
        done = subprocess.run(['node', self.script, mode, root, folder], input='\n'.join(lines), text=True,
                              capture_output=True, check=False)
        if done.returncode:
            raise RuntimeError(f'zarrita: {done.stderr[-500:]}')
        self.found = {told['name']: told for told in map(json.loads, done.stdout.splitlines())}
        self.folder = folder

    def write_all(self, root, cases, folder):
        """Writes every array in one process; `write` then says how it went."""
        os.makedirs(folder)
        for case in cases:
            with open(os.path.join(folder, case.name), 'wb') as file:
                file.write(case.type.canonical(case.content(case.written)))
        self.run('write', root, folder, [json.dumps({'name': case.name, 'doc': case.doc})
                                         for case in cases])

    def write(self, root, case):
        if 'error' in self.found[case.name]:
            raise RuntimeError(self.found[case.name]['error'])

    def read_all(self, root, cases, folder):
        """Reads every array in one process; `read` then takes what it left."""
        self.run('read', root, folder, [case.name for case in cases])

    def read(self, root, case):
        told = self.found[case.name]
        if 'error' in told:
            raise RuntimeError(told['error'])
        with open(os.path.join(self.folder, case.name), 'rb') as file:
            return file.read(), told['shape'], None, told.get('attributes', {})
