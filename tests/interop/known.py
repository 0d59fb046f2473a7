"""Where a peer is wrong, in the smallest terms found: not compared as the rest, but
tried all the same, so that a peer that was mended is told.

Each was seen with the versions of requirements.txt and package.json; where the peer's
project knows of it, the issue is named. A case may meet several; any of them excuses
it, and each counts.
"""
import numpy as np

import elements
import generate


class Entry:
    """`way`: 'reads', 'writes' or 'both'. `where(case)`: whether it may differ."""

    def __init__(self, peer, way, why, where):
        self.peer, self.way, self.why, self.where = peer, way, why, where


def find(peer, case, way):
    """The entries for what a peer does with a case."""
    return [entry for entry in ENTRIES if entry.peer == peer and
            entry.way in (way, 'both') and entry.where(case)]


def has(*names):
    return lambda case: set(names) <= set(case.codec_names)


def configured(case, name):
    """The configurations of all codecs of that name."""
    return [part.get('configuration', {}) for part in generate.all_codecs(case.doc['codecs'])
            if part['name'] == name]


def is_big(case):
    return any(conf.get('endian') == 'big' for conf in big_parts(case.doc['codecs']))


def big_parts(codecs):
    """The configurations of "bytes" for elements, not those for the index of a shard."""
    for part in codecs:
        conf = part.get('configuration', {})
        if part['name'] == 'bytes':
            yield conf
        yield from big_parts(conf.get('codecs', []))


def unit(case):
    return case.type.json['configuration']['unit'] if case.type.kind == 'time' else None


def effective(order, shape):
    """An order without the axes of one element, which move nothing."""
    return [axis for axis in order if shape[axis] > 1]


def reversed_before(codecs, shape, names, turned=False):
    """Returns whether a chunk of reversed axes comes to one of these codecs, in any list."""
    for part in codecs:
        conf = part.get('configuration', {})
        if part['name'] == 'transpose':
            order = effective(conf['order'], shape)
            turned = turned or len(order) > 1 and order == sorted(order, reverse=True)
        if turned and part['name'] in names:
            return True
        if 'chunk_shape' in conf and reversed_before(conf['codecs'], conf['chunk_shape'], names, turned):
            return True
    return False


def chunk_shape(case):
    """The longest chunk there may be."""
    conf = case.doc['chunk_grid']['configuration']
    return conf.get('chunk_shape') or [max(lengths, default=1) for lengths in generate.edges(case.doc)]


def flattened_reversed(case):
    return reversed_before(case.doc['codecs'], chunk_shape(case),
                           {'vlen-utf8', 'vlen-bytes', 'numcodecs.delta', 'numcodecs.packbits',
                            'numcodecs.fixedscaleoffset'})


def stored(case):
    """Returns whether an element differs from the fill value, so that a chunk has to be there."""
    content = case.content(case.written)
    return case.type.canonical(content) != case.type.canonical(
        case.type.filled(content.shape, case.fill))


def written(case):
    return any(values.size for _, values in case.writes)


def delta_before_shards(case):
    return any('sharding_indexed' in names and 'numcodecs.delta' in names
               for names in generate.codec_lists(case.doc['codecs']))


def checked_untransposed(case):
    """Returns whether the inner chunks divide the shard, but would not divide it if it were not transposed."""
    shards = configured(case, 'sharding_indexed')
    return shards and case.doc['codecs'][0]['name'] == 'transpose' and \
        any(n % c for n, c in zip(chunk_shape(case), shards[0]['chunk_shape']))


def beside_shards(case):
    """Returns whether a codec in front of shards or behind them changes anything."""
    others = [part for part in case.doc['codecs'] if part['name'] != 'sharding_indexed']
    return has('sharding_indexed')(case) and any(
        part['name'] != 'transpose' or moves(part['configuration']['order'], chunk_shape(case))
        for part in others)


def moves(order, shape):
    return effective(order, shape) != sorted(effective(order, shape))


def big_numcodecs(codecs, seen=False):
    """Returns whether big-endian elements are written behind a codec of numcodecs."""
    for part in codecs:
        conf = part.get('configuration', {})
        seen = seen or part['name'] in NUMCODECS_ARRAYS
        if seen and part['name'] == 'bytes' and conf.get('endian') == 'big':
            return True
        if big_numcodecs(conf.get('codecs', []), seen):
            return True
    return False


def shows_inexact_fill(case):
    """Returns whether an element is the fill value, and float64 cannot hold that value."""
    fill = case.doc['fill_value']
    return case.type.name in ('int64', 'uint64') and int(float(fill)) != fill and \
        (case.content(case.written) == case.fill).any()


def counts_padding(case):
    """Returns whether packbits counts the padding of elements of whole bytes, which have no padding."""
    return any(conf.get('padding_encoding', 'none') != 'none' for conf in configured(case, 'packbits')) \
        and case.type.name != 'bool' and not any(name in case.type.name for name in elements.BITS)


def squeezed_within(case):
    """Returns whether zarrs.squeeze comes before shards within a shard."""
    lists = list(generate.codec_lists(case.doc['codecs']))[1:]
    return any({'zarrs.squeeze', 'sharding_indexed'} <= set(names) for names in lists)


def nearly_fill(case):
    """Returns whether an element equals the fill value but has other bits: -0.0, a NaN of other bits."""
    if case.type.kind != 'number' or case.type.dtype.kind not in 'fc':
        return False
    content = case.content(case.written).reshape(-1)
    fill = case.type.filled(content.shape, case.fill)
    alike = (content == fill) | (np.isnan(content) & np.isnan(fill))
    bits = [np.frombuffer(part.tobytes(), f'V{case.type.size}') for part in (content, fill)]
    return bool((alike & (bits[0] != bits[1])).any())


NUMCODECS_ARRAYS = {'numcodecs.delta', 'numcodecs.quantize', 'numcodecs.bitround', 'numcodecs.astype',
                    'numcodecs.fixedscaleoffset'}

ENTRIES = [
    # ---- zarr-python 3.1.6
    Entry('zarr-python', 'both', 'raw_bytes and structured in a shard: "unhashable type" of a fill value',
          lambda case: case.type.name in ('raw_bytes', 'structured') and
          has('sharding_indexed')(case) and written(case)),
    Entry('zarr-python', 'both', 'times without a unit in a shard',
          lambda case: unit(case) == 'generic' and has('sharding_indexed')(case)),
    Entry('zarr-python', 'both', 'a date without a unit has no other fill value than NaT',
          lambda case: unit(case) == 'generic' and case.type.name == 'numpy.datetime64' and
          case.doc['fill_value'] not in ('NaT', -2 ** 63)),
    Entry('zarr-python', 'writes', 'times without a unit are little-endian whatever "endian" says',
          lambda case: unit(case) == 'generic' and is_big(case) and written(case)),
    Entry('zarr-python', 'writes', 'a chunk that equals the fill value is left out, be it -0.0 for 0.0 (#3144)',
          nearly_fill),
    Entry('zarr-python', 'writes', 'shards of rank 0 (#3751)',
          lambda case: has('sharding_indexed')(case) and not case.shape and written(case)),
    Entry('zarr-python', 'writes', 'numcodecs.delta in front of shards gives them one axis',
          lambda case: delta_before_shards(case) and written(case)),
    Entry('zarr-python', 'both', 'codecs of numcodecs take big-endian numbers for little-endian ones',
          lambda case: big_numcodecs(case.doc['codecs']) and written(case)),
    Entry('zarr-python', 'writes', 'codecs of numcodecs take a chunk of reversed axes in the order of '
          'memory (#3558, numcodecs #850)', lambda case: flattened_reversed(case) and written(case)),
    Entry('zarr-python', 'both', 'shards are checked against the shape that is not transposed',
          checked_untransposed),
    # ---- TensorStore 0.1.86
    Entry('tensorstore', 'reads', 'a fill value of float8_e8m0fnu in decimal is read with half its exponent: '
          '1.0 as 0x3f', lambda case: case.type.name == 'float8_e8m0fnu' and
          isinstance(case.doc['fill_value'], float) and not 0 < case.doc['fill_value'] < 1e-38),
    Entry('tensorstore', 'writes', 'a fill value of float8_e8m0fnu above 0x7f is written as a negative number',
          lambda case: case.type.name == 'float8_e8m0fnu' and
          str(case.doc['fill_value']).startswith('0x') and int(case.doc['fill_value'], 16) > 0x7f),
    Entry('tensorstore', 'both', 'the fill value of a struct of one field is taken for that of the field',
          lambda case: case.type.kind == 'record' and len(case.type.fields) == 1),
    # ---- zarrs 0.2.3
    Entry('zarrs', 'reads', 'packbits of whole bytes has no byte for the number of padding bits, '
          'which the registry asks for', lambda case: counts_padding(case) and stored(case)),
    Entry('zarrs', 'both', 'zarrs.squeeze within a shard, in front of shards: "Length of transpose codec '
          '`order`", "Subset [] is out of bounds"',
          lambda case: squeezed_within(case) and written(case)),
    # ---- zarrita 0.7.5
    Entry('zarrita', 'reads', 'shards are read as if no codec stood before or after them (#427)',
          lambda case: beside_shards(case) and stored(case)),
    Entry('zarrita', 'reads', 'fill values are float64, though they be of int64 (#342)',
          shows_inexact_fill),
    Entry('zarrita', 'both', 'booleans are turned round where the order of bytes is big',
          lambda case: case.type.name == 'bool' and is_big(case) and written(case)),
]
