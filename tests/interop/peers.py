"""The other implementations: what each can say, how it writes and how it reads.

A peer's `cannot(case, writing)` is what it lacks to take an array, or None; what it takes
and gets wrong stands in known.py.
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


def chunks(doc):
    """(index, start, shape) of every chunk that the array reaches."""
    axes = [list(zip(range(len(lengths)), itertools.accumulate([0] + lengths), lengths))
            for lengths in generate.edges(doc)]
    for parts in itertools.product(*axes):
        yield tuple(zip(*parts)) if parts else ((), (), ())


def write_document(root, case):
    top = os.path.join(root, case.name)
    os.makedirs(top)
    with open(os.path.join(top, 'zarr.json'), 'w', encoding='utf-8') as file:
        json.dump(case.doc, file)


ZARR_PYTHON_LACKS = {'packbits', 'bitround', 'scale_offset', 'cast_value', 'reshape', 'vlen-array',
                     'zarrs.squeeze', 'zarrs.vlen_v2', 'numcodecs.base64'}


class Peer:
    doubles = False  # whether it keeps the numbers of attributes in float64
    def ends_at(self, case):
        """Returns whether the case would end the peer's process: such a case is not tried."""
        return False


class ZarrPython(Peer):
    name = 'zarr-python'

    def cannot(self, case, writing):
        unknown = ZARR_PYTHON_LACKS & set(case.codec_names)
        if unknown:
            return f'no codec {min(unknown)}'
        if case.type.kind in ('small', 'pair') or case.type.name == 'struct':
            return f'no data type {case.type.name}'
        if case.type.kind == 'raw' and case.type.name != 'raw_bytes':
            return 'no data type r<bits>'
        if case.doc['chunk_grid']['name'] != 'regular':
            return 'no rectilinear grid'
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
        if case.type.variable:
            values = np.empty(array.shape, dtype=object)
            got = array[...]
            # A value of rank 0 may be an array of numpy's "S" within another array; the elements of
            # "S" leave out zeros at their ends.
            while isinstance(got, np.ndarray) and not got.shape and got.dtype == object:
                got = got.item()
            is_chars = isinstance(got, np.ndarray) and got.dtype.kind == 'S'
            values[...] = got.tobytes() if is_chars else got
            fill = np.array([array.fill_value], dtype=object)
        else:
            # A text of rank 0 comes with its own length.
            values = np.asarray(array[...]).astype(case.type.dtype, copy=False)
            fill = np.array([array.fill_value], dtype=case.type.dtype)
        return (case.type.canonical(values), list(array.shape), case.type.canonical(fill),
                array.attrs.asdict())


class Zarrs(Peer):
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
            if case.type.kind in ('small', 'pair') and 'fill value' in str(why):
                return 'no fill values of ' + case.type.name + ' in decimal'
        if case.type.name == 'float16' and 'numcodecs.fixedscaleoffset' in case.codec_names:
            return 'no numcodecs.fixedscaleoffset of float16'
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
        return [sum(lengths) for lengths in generate.edges(doc)]

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


TENSORSTORE_CODECS = {'bytes', 'transpose', 'sharding_indexed', 'gzip', 'zstd', 'blosc', 'crc32c'}
TENSORSTORE_TYPES = ('bfloat16', 'int2', 'int4', 'float8_e3m4', 'float8_e4m3b11fnuz',
                     'float8_e4m3fnuz', 'float8_e5m2', 'float8_e5m2fnuz', 'float8_e8m0fnu',
                     'float4_e2m1fn', 'float8_e4m3fn')


class TensorStore(Peer):
    name = 'tensorstore'
    doubles = True

    def ends_at(self, case):
        """0.1.86: "Check failed: it != last range size mismatch", then abort()."""
        return case.type.kind == 'raw'

    def cannot(self, case, writing):
        lacks = set(case.codec_names) - TENSORSTORE_CODECS
        if lacks:
            return f'no codec {min(lacks)}'
        if case.type.kind == 'record':
            others = [field.name for field in case.type.fields.values() if field.kind != 'number']
            if others:
                return f'no field of {others[0]} in a {case.type.name}'
        elif case.type.kind != 'number' and case.type.name not in TENSORSTORE_TYPES:
            return f'no data type {case.type.name}'
        if case.doc['chunk_grid']['name'] != 'regular':
            return 'no rectilinear grid'
        labels = [label for label in case.doc.get('dimension_names', []) if label is not None]
        if len(set(labels)) < len(labels):
            return 'no equal dimension names'
        if writing and 'huge' in case.doc.get('attributes', {}):
            return 'no integers beyond 64 bits when it creates'
        if writing and len(labels) < len(case.doc.get('dimension_names', [])):
            return 'no null among dimension names when it creates'
        if any('sharding_indexed' in names and names[-1] != 'sharding_indexed'
               for names in generate.codec_lists(case.doc['codecs'])):
            return 'no codec after sharding_indexed'
        return None

    def spec(self, root, case):
        return {'driver': 'zarr3', 'kvstore': {'driver': 'file', 'path': os.path.join(root, case.name)}}

    def fields(self, case):
        """(the spec's words, the numpy words) for each part that is an array of its own."""
        if case.type.kind != 'record':
            return [({}, ...)]
        return [({'field': name}, name) for name in case.type.fields]

    def write(self, root, case):
        for spec, field in self.fields(case):
            array = tensorstore.open({**self.spec(root, case), 'metadata': case.doc, **spec},
                                     open=True, create=True).result()
            for start, values in case.writes:
                box = tuple(slice(s, s + n) for s, n in zip(start, values.shape))
                array[box].write(values[field]).result()

    def read(self, root, case):
        out, fill = None, np.zeros(1, case.type.dtype)
        for spec, field in self.fields(case):
            array = tensorstore.open({**self.spec(root, case), **spec}, read=True).result()
            out = np.zeros(array.shape, case.type.dtype) if out is None else out
            out[field] = array.read().result()
            fill[field] = np.array(array.fill_value)
        metadata = array.spec(retain_context=False).to_json().get('metadata', {})
        return (case.type.canonical(out), list(array.shape), case.type.canonical(fill),
                metadata.get('attributes', {}))


ZARRITA_CODECS = {'bytes', 'transpose', 'gzip', 'zstd', 'blosc', 'crc32c', 'sharding_indexed', 'vlen-utf8',
                  'bitround', 'scale_offset', 'cast_value', 'numcodecs.bitround', 'numcodecs.blosc',
                  'numcodecs.lz4', 'numcodecs.zlib', 'numcodecs.zstd',
                  'numcodecs.gzip', 'numcodecs.shuffle', 'numcodecs.delta'}


class Zarrita(Peer):
    """zarrita.js; a whole hierarchy in one process."""
    name = 'zarrita'
    doubles = True

    def __init__(self, folder):
        """`folder`: where npm put the packages; the script must lie beside them."""
        here = os.path.dirname(os.path.abspath(__file__))
        self.script = shutil.copy(os.path.join(here, 'zarrita.mjs'), folder)
        self.found = {}

    def ends_at(self, case):
        """0.7.5 looks for each index at the end, takes what is there for lengths, and runs out
        of memory."""
        return any(part['configuration'].get('index_location') == 'start'
                   for part in generate.all_codecs(case.doc['codecs'])
                   if part['name'] == 'sharding_indexed')

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
        if '"0x' in json.dumps(case.doc['fill_value']):
            return 'no fill value in hexadecimal'
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
        """One line told for each: where the process ends, the next begins behind it."""
        os.makedirs(folder, exist_ok=True)
        self.found, self.folder = {}, folder
        while lines:
            done = subprocess.run(['node', self.script, mode, root, folder], input='\n'.join(lines),
                                  text=True, capture_output=True, check=False)
            told = [json.loads(line) for line in done.stdout.splitlines()]
            self.found.update((one['name'], one) for one in told)
            if done.returncode == 0:
                return
            line = lines[len(told)]
            name = json.loads(line)['name'] if mode == 'write' else line
            self.found[name] = {'error': f'the process ended: {done.stderr.strip()[-300:]}'}
            lines = lines[len(told) + 1:]

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
