"""Random arrays: a metadata document, what is written to it, and what must be read.

The same seed gives the same arrays, whatever the count.
"""
import json

import numpy as np

import elements


class Case:
    """One array. `writes` are (start, values); `then` is what only breccia does after
    them: ('resize', shape), ('write', start, values, step), ('codecs', list) or
    ('commit',)."""

    def __init__(self, name, kind, doc, writes, then, fill):
        self.name, self.type, self.doc, self.writes, self.then = name, kind, doc, writes, then
        self.fill = fill
        self.options = None  # of `breccia create`, which then makes the document

    @property
    def shape(self):
        return self.doc['shape']

    def content(self, steps):
        """Returns the values that must be read after some steps."""
        now = self.type.filled(self.shape, self.fill)
        for what, *rest in steps:
            if what == 'resize':
                grown = self.type.filled(rest[0], self.fill)
                kept = tuple(slice(0, min(a, b)) for a, b in zip(rest[0], now.shape))
                grown[kept] = now[kept]
                now = grown
            elif what == 'write':
                start, values, *step = rest
                box = boxed(start, values.shape, *step)
                # A text is an object: an array of rank 0 would be put in as one.
                now[box] = values.item() if self.type.variable and not box else values
        return now

    @property
    def written(self):
        return [('write', *write) for write in self.writes]

    @property
    def codec_names(self):
        return [codec['name'] for codec in all_codecs(self.doc['codecs'])]

    def describe(self):
        told = ('shape', 'data_type', 'chunk_grid', 'codecs', 'fill_value')
        return json.dumps({key: self.doc.get(key) for key in told}) + ' '.join(self.options or [])


def boxed(start, count, step=None):
    """Slices of so many elements of each axis, `step` apart."""
    step = step or [1] * len(start)
    return tuple(slice(s, s + (n - 1) * k + 1 if n else s, k) for s, n, k in zip(start, count, step))


def all_codecs(codecs):
    """The codecs of a list, and of the lists within."""
    for codec in codecs:
        yield codec
        conf = codec.get('configuration', {})
        for key in ('codecs', 'index_codecs'):
            yield from all_codecs(conf.get(key, []))


def codec_lists(codecs):
    """The names of a list of codecs, and of every list of an inner chunk within."""
    yield [codec['name'] for codec in codecs]
    for codec in codecs:
        if 'codecs' in codec.get('configuration', {}):
            yield from codec_lists(codec['configuration']['codecs'])


def codec(name, **conf):
    """A named configuration; zarr-python wants one of all that numcodecs brought."""
    if conf or name.startswith('numcodecs.'):
        return {'name': name, 'configuration': conf}
    return {'name': name}


def pick(rng, items):
    return items[rng.integers(len(items))]


def bytes_codec(rng, kind):
    if kind.variable and rng.integers(8) == 0:
        return codec(pick(rng, ['vlen-array', 'zarrs.vlen_v2']))
    if kind.kind == 'string':
        return codec('vlen-utf8')
    if kind.kind == 'bytes':
        return codec('vlen-bytes')
    if kind.kind in ('small', 'pair') and rng.integers(3) == 0 or \
            kind.kind == 'number' and rng.integers(20) == 0:
        padding = pick(rng, [None, 'none', 'first_byte', 'last_byte'])
        return codec('packbits', padding_encoding=padding) if padding else codec('packbits')
    if kind.name == 'structured':
        return codec('bytes') if rng.integers(2) else codec('bytes', endian='little')
    if kind.wide or rng.integers(4) == 0:
        return codec('bytes', endian=pick(rng, ['little', 'little', 'big']))
    return codec('bytes')


def takes_zfpy(kind, chunk):
    """numcodecs has no zfpy of scalars, nor of elements in another than C order."""
    return kind.kind == 'number' and kind.name in ('int32', 'int64', 'float32', 'float64') and \
        0 < len(chunk) <= 4


def zfpy(rng, kind):
    """Without loss: -1 stands for "not given"."""
    mode = int(pick(rng, [2, 3, 4]))
    return codec('numcodecs.zfpy', mode=mode, tolerance=-1, rate=-1, precision=-1)


def compressor(rng, kind):
    which = rng.integers(14)
    if which < 3:
        return codec('zstd', level=int(rng.integers(-5, 10)), checksum=bool(rng.integers(2)))
    if which < 5:
        return codec('gzip', level=int(rng.integers(10)))
    if which < 8:
        shuffle = pick(rng, ['noshuffle', 'shuffle', 'bitshuffle'])
        return codec('blosc', cname=pick(rng, ['blosclz', 'lz4', 'lz4hc', 'zlib', 'zstd']),
                     clevel=int(rng.integers(10)), shuffle=shuffle, typesize=kind.size or 1,
                     blocksize=int(pick(rng, [0, 0, 256])))
    if which < 10:
        return codec('crc32c')
    return pick(rng, [codec('numcodecs.zlib', level=3), codec('numcodecs.bz2', level=2),
                      codec('numcodecs.lz4', acceleration=1), codec('numcodecs.adler32'),
                      codec('numcodecs.crc32'), codec('numcodecs.fletcher32'),
                      codec('numcodecs.lzma', format=1, check=-1, preset=1, filters=None),
                      codec('numcodecs.lzma', format=3, check=-1, preset=None,
                            filters=[{'id': 33, 'preset': 1}]),
                      codec('numcodecs.zstd', level=3), codec('numcodecs.gzip', level=2),
                      codec('numcodecs.crc32c'), codec('numcodecs.jenkins_lookup3', initval=7, prefix=None),
                      codec('numcodecs.base64'),
                      codec('numcodecs.blosc', cname=pick(rng, ['lz4', 'zstd']), clevel=4,
                            shuffle=int(rng.integers(-1, 3)), blocksize=0)])


# Codecs that decode to other values than were encoded; see odd in case().
LOSSY = {'bitround', 'scale_offset', 'cast_value', 'numcodecs.bitround', 'numcodecs.quantize',
         'numcodecs.fixedscaleoffset', 'numcodecs.astype'}


def numpy_name(name):
    dtype = np.dtype(name)
    return '<' + dtype.str[1:] if dtype.itemsize > 1 else dtype.str


def reshaped(rng, chunk):
    """A reshape, and the shape after it."""
    how = rng.integers(3)
    if how == 0:
        shape, after = [[*range(len(chunk))]], [int(np.prod(chunk))]
    elif how == 1:
        shape, after = [-1, chunk[-1]], [int(np.prod(chunk[:-1])), chunk[-1]]
    else:
        shape, after = [[axis] for axis in range(len(chunk))] + [1], chunk + [1]
    return codec('reshape', shape=shape), after


def lossy_codec(rng, kind):
    """One that keeps 1 and 2 as they are, and the data type after it."""
    if kind.name not in ('int16', 'int32', 'int64', 'uint32', 'float16', 'float32', 'float64'):
        return None, None
    narrow = pick(rng, ['int8', 'uint8', 'int16', 'float32', 'float64'])
    dtype = numpy_name(kind.name)
    found = [(codec('cast_value', data_type=narrow), narrow),
             (codec('numcodecs.astype', encode_dtype=numpy_name(narrow), decode_dtype=dtype), narrow),
             (codec('scale_offset', offset=0 if kind.name == 'uint32' else int(rng.integers(-20, 20)),
                    scale=1), kind.name)]
    if kind.name.startswith('float'):
        found += [(codec('bitround', keepbits=int(rng.integers(1, 10))), kind.name),
                  (codec('numcodecs.bitround', keepbits=int(rng.integers(1, 10))), kind.name),
                  (codec('numcodecs.quantize', digits=1, dtype=dtype, astype=dtype), kind.name),
                  (codec('numcodecs.fixedscaleoffset', offset=-3, scale=2, dtype=dtype,
                         astype=numpy_name('int16')), 'int16')]
    return pick(rng, found)


def array_codecs(rng, kind, chunk):
    """Array-to-array codecs, the shape after them, and the data type where it is another."""
    codecs, other = [], None
    if len(chunk) > 0 and rng.integers(3) == 0:
        order = [int(i) for i in rng.permutation(len(chunk))]
        codecs.append(codec('transpose', order=order))
        chunk = [chunk[i] for i in order]
    if kind.kind == 'number' and kind.dtype.kind in 'iu' and rng.integers(12) == 0:
        codecs.append(codec('numcodecs.delta', dtype=numpy_name(kind.dtype)))
    if len(chunk) > 1 and rng.integers(16) == 0:
        part, chunk = reshaped(rng, chunk)
        codecs.append(part)
    if 1 in chunk and rng.integers(8) == 0:
        codecs.append(codec('zarrs.squeeze'))
        chunk = [n for n in chunk if n != 1]
    if rng.integers(9) == 0 and not {'numcodecs.delta'} & {part['name'] for part in codecs}:
        part, name = lossy_codec(rng, kind)
        if part:
            codecs.append(part)
            other = elements.Type('number', name, name, np.dtype(name))
    return codecs, chunk, other


def chain(rng, kind, chunk, depth):
    codecs, chunk, other = array_codecs(rng, kind, chunk)
    kind = other or kind
    if depth > 0:
        inner = [pick(rng, divisors(n)) for n in chunk]
        index = [codec('bytes', endian=pick(rng, ['little', 'little', 'big']))]
        if rng.integers(4):
            index.append(codec('crc32c'))
        conf = dict(chunk_shape=inner, codecs=chain(rng, kind, inner, depth - 1), index_codecs=index)
        if rng.integers(2):
            conf['index_location'] = pick(rng, ['start', 'end'])
        codecs.append(codec('sharding_indexed', **conf))
        if rng.integers(20):
            return codecs
    elif kind.name == 'bool' and rng.integers(4) == 0:
        codecs += [codec('numcodecs.packbits'), codec('bytes')]
    else:
        is_zfp = not codecs and takes_zfpy(kind, chunk) and rng.integers(6) == 0
        codecs.append(zfpy(rng, kind) if is_zfp else bytes_codec(rng, kind))
        if kind.size > 1 and rng.integers(12) == 0 and codecs[-1]['name'] == 'bytes':
            codecs.append(codec('numcodecs.shuffle', elementsize=kind.size))
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        codecs.append(compressor(rng, kind))
    return codecs


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def random_shape(rng):
    rank = int(rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4]))
    top = [0, 60, 20, 9, 6][rank]
    shape = [int(rng.integers(1, top + 1)) for _ in range(rank)]
    if rank and rng.integers(15) == 0:
        shape[rng.integers(rank)] = 0
    chunk = [int(rng.integers(1, max(2, top))) if rng.integers(4) else max(n, 1) for n in shape]
    return shape, [min(c, [0, 24, 12, 6, 6][rank]) for c in chunk]


def rectilinear(rng, shape):
    """Edges per axis, some as runs, some beyond the shape, or one length for all."""
    sizes = []
    for n in shape:
        if rng.integers(3) == 0:
            sizes.append(int(rng.integers(1, 8)))
            continue
        edges, total = [], 0
        while total < n or not edges:
            length, count = int(rng.integers(1, 7)), int(rng.integers(1, 4))
            edges += [[length, count]] if rng.integers(2) else [length]
            total += length * count if isinstance(edges[-1], list) else length
        sizes.append(edges)
    return {'name': 'rectilinear', 'configuration': {'kind': 'inline', 'chunk_shapes': sizes}}


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


def furthest(doc):
    """How far each axis can grow: a list of edges has an end."""
    conf = doc['chunk_grid']['configuration']
    for n, sizes in zip(doc['shape'], conf.get('chunk_shapes', doc['shape'])):
        if isinstance(sizes, int):
            yield n + 8
        else:
            yield sum(e[0] * e[1] if isinstance(e, list) else e for e in sizes)


def attributes(rng):
    pool = [('units', 'K'), ('n', 2 ** 53 - 1), ('pi', 3.141592653589793), ('tiny', 5e-324),
            ('big', 2 ** 63 + 1), ('huge', -10 ** 30), ('max', 1.7976931348623157e308),
            ('e\u0301', 'a name in two code points'), ('\u00e9', 'and in one'), ('null', None),
            ('deep', {'a': {'b': {'c': [[[{'d': False}]]]}}}), ('_ARRAY_DIMENSIONS', 'no list'),
            ('unicode \u00e9', '\u4e16\U0001f30d'), ('nested', {'a': [1, 2.5, None, {'b': True}]}),
            ('empty', {}), ('list', []), ('', 'empty name'), ('escape', '\\ " / \n \u0001')]
    return {key: value for key, value in pool if rng.integers(3) == 0}


def boxes(rng, shape, count):
    for _ in range(count):
        start = [int(rng.integers(0, max(n, 1))) for n in shape]
        yield start, [int(rng.integers(0 if n == s else 1, n - s + 1)) for n, s in zip(shape, start)]


def random_values(rng, kind, count, odd, fill):
    """Elements of a type; `odd` None asks for 1 and 2 alone."""
    number = int(np.prod(count, dtype=int))
    if odd is None:
        values = rng.integers(1, 3, size=number).astype(kind.dtype).reshape(count)
    else:
        values = kind.random(rng, number, odd).reshape(count)
    if rng.integers(6) == 0:  # nothing but the fill value: such a chunk need not be stored
        values = kind.filled(count, fill)
    return values


def metadata(rng, kind, shape, chunk, fill_json):
    doc = {'zarr_format': 3, 'node_type': 'array', 'shape': shape, 'data_type': kind.json}
    depth = int(rng.choice([0, 0, 0, 0, 1, 1, 2]))
    if depth == 0 and rng.integers(14) == 0:
        doc['chunk_grid'] = rectilinear(rng, shape)
        codecs = [bytes_codec(rng, kind)] + [compressor(rng, kind)] * int(rng.integers(2))
    else:
        doc['chunk_grid'] = {'name': 'regular', 'configuration': {'chunk_shape': chunk}}
        codecs = chain(rng, kind, chunk, depth)
    doc['chunk_key_encoding'] = pick(rng, [
        codec('default', separator='/'), codec('default', separator='.'), codec('default'),
        codec('v2', separator='.'), codec('v2', separator='/')])
    doc['fill_value'] = fill_json
    doc['codecs'] = codecs
    if rng.integers(2):
        doc['attributes'] = attributes(rng)
    if rng.integers(3) == 0:
        doc['dimension_names'] = [pick(rng, ['x', 'y', 'z', None]) for _ in shape]
    return doc


def case(seed, number):
    rng = np.random.default_rng([seed, number])
    kind = elements.choose(rng, pick(rng, ['number'] * 8 + ['small', 'small', 'other', 'other', 'other',
                                           'pair', 'record']))
    odd = bool(rng.integers(3) == 0)
    shape, chunk = random_shape(rng)
    fill, fill_json = kind.fill(rng, odd)
    doc = metadata(rng, kind, shape, chunk, fill_json)
    if LOSSY & {part['name'] for part in all_codecs(doc['codecs'])}:
        fill = kind.dtype.type(1)  # small numbers, which these codecs keep as they are
        doc['fill_value'], odd = fill.item(), None
    writes = []
    if rng.integers(3):
        writes.append(([0] * len(shape), random_values(rng, kind, shape, odd, fill)))
    for start, count in boxes(rng, shape, rng.integers(3)):
        writes.append((start, random_values(rng, kind, count, odd, fill)))
    return Case(f'a{number:05}', kind, doc, writes, afterwards(rng, kind, doc, odd, fill), fill)


def strided(rng, shape):
    """A box of every step-th element."""
    for start, count in boxes(rng, shape, 1):
        step = [int(pick(rng, [1, 1, 2, 3])) for _ in shape]
        return start, [-(-n // k) for n, k in zip(count, step)], step


def afterwards(rng, kind, doc, odd, fill):
    """Returns the steps that are done to an array in breccia alone."""
    shape, then = doc['shape'], []
    chunk = doc['chunk_grid']['configuration'].get('chunk_shape')
    for _ in range(rng.choice([0, 0, 1, 3])):
        what = rng.integers(6)
        if what < 2 and shape:
            shape = [int(rng.integers(0, n + 1)) for n in furthest({**doc, 'shape': shape})]
            then.append(('resize', shape))
        elif what == 2:
            then.append(('commit',))
        elif what == 3 and chunk is not None and odd is not None:
            codecs = chain(rng, kind, chunk, int(rng.integers(3)))
            if not LOSSY & {part['name'] for part in all_codecs(codecs)}:
                then.append(('codecs', codecs))
        else:
            start, count, step = strided(rng, shape)
            then.append(('write', start, random_values(rng, kind, count, odd, fill), step))
    return then


def by_options(seed, number):
    """An array whose metadata breccia makes: by the options of `create`."""
    rng = np.random.default_rng([seed, number, 3])
    kind = elements.choose(rng, 'number')
    if rng.integers(8) == 0:
        kind = elements.Type('string', 'string', 'string', np.dtype(object))
    shape, chunk = random_shape(rng)
    fill, fill_json = kind.fill(rng, False)
    made = Case(f'o{number:05}', kind, {'shape': shape}, [], [], fill)
    made.writes.append(([0] * len(shape), random_values(rng, kind, shape, True, fill)))
    made.options = ['--shape', ','.join(map(str, shape)), '--dtype', kind.name,
                    '--chunks', ','.join(map(str, chunk)),
                    '--fill=' + json.dumps(fill_json)]
    if shape and rng.integers(3) == 0:
        made.options += ['--shards', ','.join(str(n * int(rng.integers(1, 4))) for n in chunk)]
    if rng.integers(3):
        made.options += ['--compress', pick(rng, ['none', 'zstd', 'zstd:7', 'gzip', 'gzip:2', 'blosc',
                                                  'blosc:lz4', 'blosc:zstd:5:bitshuffle'])]
    return made
