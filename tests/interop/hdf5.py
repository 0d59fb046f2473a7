#!/usr/bin/env python3
"""HDF5 files that go both ways between breccia and h5py.

    hdf5.py COMMAND [--count N] [--seed S] [--keep FOLDER]

Random datasets of h5py are imported, read with the command, and exported; what h5py
reads of the export must be what it reads of its own file: values, type, fill value,
chunks, largest shape, attributes, labels and scales. And random arrays are exported,
read by h5py, and imported again: the same values and the same zarr.json. Virtual datasets
and external links of h5py, to up to four files each, are imported with the values that their
sources have. Exit 1: something differed.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np

import generate
from generate import pick

WORDS = ['', 'a', 'Zarr', 'h\u00e9llo', '\u4e16\u754c', '\U0001f30d', 'line\nbreak', 'x' * 40]


def run(command, *args, data=None):
    done = subprocess.run([command, *args, '--threads', '1'], input=data, capture_output=True,
                          check=False, timeout=600)
    if done.returncode:
        raise RuntimeError(f'{args[0]} {args[-1]}: {done.stderr.decode("utf-8", "replace")[-300:]}')
    return done.stdout


# ---- datasets of h5py ----------------------------------------------------------------------


def custom_float(size, exponent, fraction, bias, big):
    kind = h5py.h5t.IEEE_F32BE.copy() if big else h5py.h5t.IEEE_F32LE.copy()
    kind.set_fields(8 * size - 1, fraction, exponent, 0, fraction)
    kind.set_size(size)
    kind.set_ebias(bias)
    return kind


def odd_integer(rng):
    """Fewer bits than bytes, at an offset."""
    size = int(pick(rng, [1, 2, 4, 8]))
    bits = int(rng.integers(4 * size + 1, 8 * size + 1))  # HDF5 2 refuses fewer
    kind = h5py.h5t.py_create(np.dtype(pick(rng, '<>') + pick(rng, 'iu') + str(size))).copy()
    kind.set_precision(bits)
    kind.set_offset(int(rng.integers(0, 8 * size - bits + 1)))
    return kind


def bitfield(rng):
    return pick(rng, [h5py.h5t.STD_B8LE, h5py.h5t.STD_B16BE, h5py.h5t.STD_B32LE, h5py.h5t.STD_B64BE])


def fixed_text(rng):
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(int(rng.integers(1, 9)))
    kind.set_strpad(pick(rng, [h5py.h5t.STR_NULLTERM, h5py.h5t.STR_NULLPAD, h5py.h5t.STR_SPACEPAD]))
    if rng.integers(2):
        kind.set_cset(h5py.h5t.CSET_UTF8)
    return kind


def random_dtype(rng, depth=0):
    """A NumPy dtype that h5py writes."""
    which = int(rng.integers(0, 10 if depth < 2 else 7))
    order = pick(rng, '<>')
    if which < 3:
        return np.dtype(order + pick(rng, ['i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8']))
    if which < 5:
        return np.dtype(order + pick(rng, ['f2', 'f4', 'f8', 'c8', 'c16']))
    if which < 6:
        return np.dtype(bool)
    if which < 7:
        base = order + pick(rng, ['i1', 'i2', 'u4', 'i8', 'u8'])
        return h5py.enum_dtype({'RED': 0, 'GREEN': 1, 'bl\u00fc': 100}, basetype=base)
    if which < 8:
        return np.dtype(f'S{rng.integers(1, 9)}')
    if which < 9:
        return np.dtype(f'V{rng.integers(1, 12)}')
    return np.dtype([(f'f{i} \u00e9'[:2 + int(rng.integers(3))], random_dtype(rng, depth + 1))
                     for i in range(int(rng.integers(1, 4)))])


def opaque_time(rng):
    unit = pick(rng, ['Y', 'M', 'D', 'h', 's', '10ms', 'us', 'ns', 'as'])
    return h5py.opaque_dtype(np.dtype(f'{pick(rng, "<>")}{pick(rng, "Mm")}8[{unit}]'))


def random_type(rng):
    """The file's type, how h5py reads it, and whether it is of a variable length."""
    which = int(rng.integers(0, 20))
    if which == 0:
        return odd_integer(rng), None, False
    if which == 1:
        return bitfield(rng), None, False
    if which in (2, 3):
        return fixed_text(rng), None, False
    if which == 4:
        text = h5py.string_dtype(pick(rng, ['utf-8', 'ascii']))
        return h5py.h5t.py_create(text, logical=True), text, True
    if which == 5:
        text = h5py.vlen_dtype(np.uint8)
        return h5py.h5t.py_create(text, logical=True), text, True
    if which == 6:
        dtype = opaque_time(rng)
    elif which == 7 and rng.integers(2):
        return custom_float(2, 5, 10, 15, bool(rng.integers(2))), None, False
    else:
        dtype = random_dtype(rng)
    return h5py.h5t.py_create(dtype, logical=True), dtype, False


def random_elements(rng, dtype, shape):
    """Returns values of a fixed size: random bits, except for booleans."""
    number = int(np.prod(shape, dtype=int))
    data = rng.integers(0, 256, size=number * dtype.itemsize, dtype=np.uint8)
    if rng.integers(3) == 0:
        data &= np.uint8(1)
    values = np.frombuffer(data.tobytes(), dtype=dtype).reshape(shape).copy()
    make_booleans(values)
    return values


def make_booleans(values):
    if values.dtype.fields:
        for name in values.dtype.fields:
            make_booleans(values[name])
    elif values.dtype == bool:
        values[...] = values.view(np.uint8) & 1


def random_texts(rng, kind, dtype, shape):
    number = int(np.prod(shape, dtype=int))
    out = np.empty(number, dtype=object)
    for i in range(number):
        if h5py.check_string_dtype(dtype):
            words = WORDS if h5py.check_string_dtype(dtype).encoding == 'utf-8' else ['', 'ascii', 'b' * 30]
            out[i] = pick(rng, words)
        else:
            out[i] = rng.integers(0, 256, size=int(rng.integers(0, 9)), dtype=np.uint8)
    return out.reshape(shape)


def random_shape(rng):
    rank = int(rng.choice([0, 1, 1, 1, 2, 2, 3, 4]))
    shape = tuple(int(rng.integers(1, [0, 50, 12, 7, 5][rank] + 1)) for _ in range(rank))
    if rank and rng.integers(15) == 0:
        shape = (0,) + shape[1:]
    return shape


def creation(rng, space, shape, most, variable, size):
    """A property list: layout, filters, when the fill value is written."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if shape and (most != shape or rng.integers(2)):
        chunk = tuple(int(rng.integers(1, n + 3)) if m is None or m > n else int(rng.integers(1, max(n, 1) + 1))
                      for n, m in zip(shape, most))
        chunk = tuple(min(c, m) if m else c for c, m in zip(chunk, most))
        if 0 not in chunk and not (0 in shape and 0 in [m for m in most if m is not None]):
            plist.set_chunk(chunk)
            if not variable:
                if rng.integers(2):
                    plist.set_shuffle()
                if rng.integers(2):
                    plist.set_deflate(int(rng.integers(0, 10)))
                if rng.integers(4) == 0:
                    plist.set_fletcher32()
            return plist
    if 0 not in shape and rng.integers(4) == 0 and size * int(np.prod(shape, dtype=int)) < 60000:
        plist.set_layout(h5py.h5d.COMPACT)
    return plist


def write_dataset(rng, group, name):
    """A random dataset; its path."""
    kind, dtype, variable = random_type(rng)
    shape = random_shape(rng)
    most = tuple(pick(rng, [n, n, n + 5, None]) for n in shape) if rng.integers(3) == 0 else shape
    if rng.integers(40) == 0:
        space = h5py.h5s.create(h5py.h5s.NULL)
        shape = None
    elif shape:
        space = h5py.h5s.create_simple(shape, tuple(h5py.h5s.UNLIMITED if m is None else m for m in most))
    else:
        space = h5py.h5s.create(h5py.h5s.SCALAR)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if shape is not None:
        plist = creation(rng, space, shape, most, variable, kind.get_size())
        if plist.get_layout() != h5py.h5d.CHUNKED:
            space = h5py.h5s.create_simple(shape) if shape else space
    number = dtype if dtype is not None else kind.dtype
    if not variable and rng.integers(2) and shape is not None:
        plist.set_fill_value(random_elements(rng, number, (1,)))
    if variable and shape is not None and dtype == object and h5py.check_string_dtype(dtype) and rng.integers(3) == 0:
        return group.create_dataset(name, data=random_texts(rng, kind, dtype, shape), dtype=dtype, fillvalue='fill',
                                    chunks=True if shape and 0 not in shape else None)
    made = h5py.h5d.create(group.id, name.encode(), kind, space, plist)
    dataset = h5py.Dataset(made)
    if shape is not None and 0 not in shape:
        fill_dataset(rng, dataset, kind, number, variable, shape)
    return dataset


def fill_dataset(rng, dataset, kind, dtype, variable, shape):
    values = random_texts(rng, kind, dtype, shape) if variable else random_elements(rng, dtype, shape)
    if not shape:
        dataset[()] = values[()]
    elif variable and not h5py.check_string_dtype(dtype):  # h5py guesses at lists of one length
        for index in np.ndindex(shape):
            dataset[index] = values[index]
    elif rng.integers(4) == 0:  # parts are never written
        part = tuple(slice(0, int(rng.integers(0, n + 1))) for n in shape)
        if values[part].size:
            dataset[part] = values[part]
    else:
        dataset[...] = values


def write_attributes(rng, attrs):
    pool = [('title', 'h\u00e9llo'), ('n', 5), ('big', np.uint64(2 ** 64 - 1)), ('f4', np.float32(0.1)),
            ('f8', 1e300), ('nan', float('nan')), ('inf4', np.array([np.inf, -np.inf, 1], 'f4')),
            ('bits', np.array([0x7fc00123, 0xffc00000], '<u4').view('f4')), ('i2', np.array([1, -2], '>i2')),
            ('bool', True), ('bools', np.array([[True, False]])), ('texts', ['a', '\u4e16', '']),
            ('bytes', np.bytes_(b'fixed')), ('nd', np.arange(6).reshape(1, 2, 3)), ('c', 1 + 2j),
            ('none', h5py.Empty('f4')), ('no', np.zeros(0)), ('one', [7]), ('f16', np.float16(-0.0)),
            ('record', np.array((1, -2.5, b'x'), dtype=[('a', '<u2'), ('b', '>f8'), ('s', 'S3')])),
            ('CLASS', 'IMAGE'), ('_FillValue', pick(rng, [np.int16(-5), np.float32(-9999), np.array([1e20]), np.float64('nan')])), ('e\u0301 \u00e9', 'name')]
    for name, value in pool:
        if rng.integers(4) == 0:
            attrs[name] = value
    if rng.integers(6) == 0:
        attrs.create('enum', 1, dtype=h5py.enum_dtype({'A': 0, 'B': 1}, basetype='i2'))
    if rng.integers(6) == 0:
        attrs.create('when', np.array('2020-01-01', 'M8[s]').astype(h5py.opaque_dtype('M8[s]')))


def write_file(seed, count, path):
    rng = np.random.default_rng([seed, 5])
    names = []
    with h5py.File(path, 'w') as file:
        write_attributes(rng, file.attrs)
        for i in range(count):
            group = file.require_group(f'g{i % 7}/h{i % 3}' if i % 2 else f'g{i % 7}')
            dataset = write_dataset(rng, group, f'd{i}')
            names.append(dataset.name)
            write_attributes(rng, dataset.attrs)
            if dataset.shape and rng.integers(3) == 0:
                dataset.dims[0].label = pick(rng, ['time', 'x \u00e9', 'lat'])
        for group in list(file.values()):  # coordinates, with what they belong to
            group['x'] = np.arange(6, dtype='f4')
            group['x'].make_scale('x')
            group['y'] = np.arange(4)
            group['y'].make_scale()
            data = group.create_dataset('xy', data=np.arange(24).reshape(6, 4))
            data.dims[0].attach_scale(group['x'])
            data.dims[1].attach_scale(group['y'])
            names += [group['x'].name, group['y'].name, data.name]
    return names


# ---- comparing ----------------------------------------------------------------------


def little(dtype):
    """Packed, little-endian, without what h5py notes."""
    if dtype.fields:
        return np.dtype([(name, little(dtype.fields[name][0])) for name in dtype.names])
    if dtype.subdtype:
        return np.dtype((little(dtype.subdtype[0]), dtype.subdtype[1]))
    return np.dtype(dtype.str.replace('>', '<'))


def canonical(values):
    """Bytes, as the command gives them."""
    if values.dtype == object:
        out = b''
        for value in values.ravel():
            text = value.encode() if isinstance(value, str) else bytes(value)
            out += len(text).to_bytes(4, 'little') + text
        return out
    kept = values.astype(little(values.dtype))  # changes the order of bytes, and nothing else
    return kept.tobytes()


def elements_of(dataset):
    """Returns the elements as an array, of any rank."""
    values = dataset[()]
    if dataset.dtype == object and not dataset.shape:
        out = np.empty((), dtype=object)
        out[()] = values
        return out
    return values if dataset.shape else np.asarray(values, dataset.dtype)


def same(a, b):
    if isinstance(a, h5py.Empty) or isinstance(b, h5py.Empty):
        return isinstance(a, h5py.Empty) and isinstance(b, h5py.Empty)
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and canonical(as_objects(a)) == canonical(as_objects(b))


def as_objects(values):
    """Texts of either length as one kind."""
    if values.dtype.kind in 'OSU':
        texts = [v if isinstance(v, bytes) else v.encode() if isinstance(v, str) else bytes(v)
                 for v in values.ravel()]
        out = np.empty(len(texts), dtype=object)
        out[:] = texts
        return out
    return values


def compare_attributes(a, b):
    names = set(b.attrs) - {'_zarr'}
    if set(a.attrs) != names:
        return f'attributes {sorted(set(a.attrs) ^ names)}'
    for name in a.attrs:
        if name in ('DIMENSION_LIST', 'REFERENCE_LIST') or name == 'NAME' and not a.attrs[name]:
            continue  # a scale without a name is called what its dataset is
        if not same(a.attrs[name], b.attrs[name]):
            return f'attribute {name}: {a.attrs[name]!r}, {b.attrs[name]!r}'
        kind, other = a.attrs.get_id(name).dtype, b.attrs.get_id(name).dtype
        if kind.kind not in 'OS' and not isinstance(a.attrs[name], h5py.Empty) and little(kind) != little(other):
            return f'attribute {name}: {kind}, {other}'
    return None


def same_type(a, b):
    if a == b:
        return True
    if a.fields:
        return a.names == b.names and all(same_type(a.fields[n][0], b.fields[n][0]) for n in a.names)
    return little(a) == little(b) and h5py.check_enum_dtype(a) == h5py.check_enum_dtype(b)


def compare_datasets(a, b):
    """Returns what differs, or None."""
    if isinstance(a[()], h5py.Empty):
        return None if isinstance(b[()], h5py.Empty) and same_type(a.dtype, b.dtype) else 'no null dataspace'
    if a.shape != b.shape:
        return f'shape {a.shape}, {b.shape}'
    if not same_type(a.dtype, b.dtype):
        return f'type {a.dtype}, {b.dtype}'
    if a.chunks and a.chunks != b.chunks:
        return f'chunks {a.chunks}, {b.chunks}'
    if a.chunks and any(m != n and m != max(n or 0, c) for m, n, c in zip(b.maxshape, a.maxshape, a.chunks)):
        return f'largest shape {a.maxshape}, {b.maxshape}'
    if a.shape and not same(a[...], b[...]) or not a.shape and not same(a[()], b[()]):
        return 'values'
    if a.dtype != object and not same(a.fillvalue, b.fillvalue):
        return f'fill value {a.fillvalue!r}, {b.fillvalue!r}'
    for one, other in zip(a.dims, b.dims):
        if one.label != other.label or [scale.name for scale in one.values()] != \
                [scale.name for scale in other.values()]:
            return f'axis {one.label!r} {one.values()}, {other.label!r} {other.values()}'
    return compare_attributes(a, b)


def from_h5py(command, folder, seed, count):
    """Yields what differs after import, and after import and export."""
    source, out, repo = (os.path.join(folder, name) for name in ('a.h5', 'b.h5', 'a.brc'))
    names = write_file(seed, count, source)
    run(command, 'init', repo)
    run(command, 'import', repo, source, '/')
    run(command, 'export', repo, '/', out)
    with h5py.File(source) as a, h5py.File(out) as b:
        for name in names:
            wrong = compare_datasets(a[name], b[name])
            if wrong is None and not isinstance(a[name][()], h5py.Empty):
                values = elements_of(a[name])
                if run(command, 'read', repo, name, '--format', 'raw') != canonical(values):
                    wrong = 'values of the command'
            yield name, wrong, f'{a[name].dtype} {a[name].shape} {a[name].chunks}'
        yield '/', compare_attributes(a, b), ''


# ---- elements in other files ---------------------------------------------------------------------


def slices(rng, length, n):
    """A slice of n of so many, with a step where there is room."""
    step = int(rng.integers(1, length // n + 1))
    first = int(rng.integers(0, length - (n - 1) * step))
    return slice(first, first + (n - 1) * step + 1, step)


def write_virtual(rng, group, name, folder):
    """A virtual dataset of up to four sources, some of which are virtual, or beneath a folder."""
    dtype = np.dtype(pick(rng, ['<i2', '>i4', '<f8', '>f4', '|u1', '<c16']))
    shape = tuple(int(n) for n in rng.integers(2, 13, 2))
    layout = h5py.VirtualLayout(shape, dtype)
    expected = np.full(shape, 7, dtype)
    for i in range(int(rng.integers(1, 5))):
        path = pick(rng, ['', 'below/']) + f'{name}-{i}.h5'
        given = tuple(int(n) for n in rng.integers(2, 13, 2))
        taken = tuple(int(rng.integers(1, min(a, b) + 1)) for a, b in zip(shape, given))
        with h5py.File(os.path.join(folder, path), 'w') as file:
            values = rng.integers(0, 100, given).astype(dtype)
            options = {'chunks': (2, 2), 'compression': 'gzip'} if rng.random() < 0.5 else {}
            file.create_dataset('x', data=values, **options)
            if rng.random() < 0.3:
                inner = h5py.VirtualLayout(given, dtype)
                inner[...] = h5py.VirtualSource('.', 'x', given)
                file.create_virtual_dataset('y', inner, fillvalue=1)
            names = list(file)
        source = h5py.VirtualSource(path, pick(rng, names), given)
        into = tuple(slices(rng, a, n) for a, n in zip(shape, taken))
        out_of = tuple(slices(rng, a, n) for a, n in zip(given, taken))
        layout[into] = source[out_of]
        expected[into] = values[out_of]
        group[f'{name}-{i}'] = h5py.ExternalLink(path, 'x')
    group.create_virtual_dataset(name, layout, fillvalue=7)
    return expected


def from_sources(command, folder, seed, count):
    """Yields what differs in virtual datasets and external links.

    h5py reads the links. h5py cannot say what virtual datasets should have: where sources
    overlap, the library leaves elements that no source has as they were in memory.
    """
    rng = np.random.default_rng([seed, 3])
    source, repo = (os.path.join(folder, name) for name in ('v.h5', 'v.brc'))
    os.makedirs(os.path.join(folder, 'below'), exist_ok=True)
    with h5py.File(source, 'w') as file:
        expected = {name: write_virtual(rng, file, name, folder)
                    for name in (f'v{i}' for i in range(max(1, count // 10)))}
    run(command, 'init', repo)
    run(command, 'import', repo, source, '/')
    with h5py.File(source) as file:
        for name in file:
            values = expected[name] if name in expected else elements_of(file[name])
            same_bytes = run(command, 'read', repo, name, '--format', 'raw') == canonical(values)
            yield name, None if same_bytes else 'values', f'{file[name].dtype} {file[name].shape}'


# ---- arrays of the command ----------------------------------------------------------------------


def nodes(command, repo):
    found = json.loads(run(command, 'ls', repo, '-r', '--json'))
    return found


def h5py_values(case, dataset):
    """The elements' canonical bytes, where h5py has the type."""
    kind = case.type
    values = elements_of(dataset)
    if kind.kind in ('pair', 'record'):
        return None
    if kind.kind == 'small' and 'int' not in kind.name and values.dtype.kind == 'f':
        values = np.where(np.isnan(values), np.nan, values)  # h5py has it in the next float of NumPy
        return values.astype(kind.dtype).tobytes()
    if values.dtype.kind == 'V' and kind.kind != 'raw':
        return None
    return canonical(values)


def from_command(command, folder, seed, count):
    """Arrays to HDF5 and back; cases that HDF5 refuses, with the reason."""
    repo, again, out = (os.path.join(folder, name) for name in ('c.brc', 'd.brc', 'c.h5'))
    run(command, 'init', repo)
    run(command, 'init', again)
    cases = {}
    for number in range(count):
        case = generate.case(seed, number)
        if case.doc['chunk_grid']['name'] != 'regular' or case.options or 'structured' in str(case.doc['data_type']):
            continue
        name = f'/a{number}'
        doc = os.path.join(folder, 'zarr.json')
        case.doc.get('attributes', {}).pop('', None)  # HDF5 has no such name
        with open(doc, 'w', encoding='utf-8') as file:
            json.dump(case.doc, file)
        run(command, 'create', repo, name, '--metadata', '@' + doc)
        for start, values, *_ in case.writes:
            where = ','.join(f'{s}:{s + n}' for s, n in zip(start, values.shape))
            run(command, 'write', repo, name, f'[{where}]', '--from', '-', data=case.type.canonical(values))
        cases[name] = case
    run(command, 'export', repo, '/', out)
    run(command, 'import', again, out, '/')
    with h5py.File(out) as file:
        for name, case in cases.items():
            yield name, compare_back(command, repo, again, name, case, file), case.describe()


def chunk_shape(doc):
    """Returns the shape of the pieces that are stored: within shards, the inner chunks."""
    shape, codecs = doc['chunk_grid']['configuration']['chunk_shape'], doc['codecs']
    while len(codecs) == 1 and codecs[0]['name'] == 'sharding_indexed':
        shape, codecs = (codecs[0]['configuration'][key] for key in ('chunk_shape', 'codecs'))
    return shape


def fill_bytes(command, repo, doc):
    """An element that was never written: a value has several forms in JSON."""
    run(command, 'create', repo, '/fill', '--shape', '1', '--dtype', json.dumps(doc['data_type']),
        '--fill', json.dumps(doc['fill_value']))
    element = run(command, 'read', repo, '/fill', '--format', 'raw')
    run(command, 'rm', repo, '/fill')
    return element


def compare_back(command, repo, again, name, case, file):
    one, other = (json.loads(run(command, 'info', r, name, '--json')) for r in (repo, again))
    one, other = one.get('metadata', one), other.get('metadata', other)
    if one['fill_value'] != other['fill_value'] and \
            fill_bytes(command, repo, one) != fill_bytes(command, repo, other):
        return f'fill value {one["fill_value"]}, {other["fill_value"]}'
    for member in ('shape', 'data_type', 'dimension_names'):
        if one.get(member) != other.get(member) and not (
                member == 'dimension_names' and not any(one.get(member) or [])):
            return f'{member} {one.get(member)}, {other.get(member)}'
    if json.dumps(one.get('attributes', {}), sort_keys=True) != \
            json.dumps(other.get('attributes', {}), sort_keys=True):
        return f'attributes {one.get("attributes")}, {other.get("attributes")}'
    values = run(command, 'read', repo, name, '--format', 'raw')
    if values != run(command, 'read', again, name, '--format', 'raw'):
        return 'values'
    inner = chunk_shape(one)
    if inner != other['chunk_grid']['configuration']['chunk_shape']:
        return f'chunks {inner}, {other["chunk_grid"]}'
    seen = h5py_values(case, file[name])
    if seen is not None and case.type.kind == 'small' and file[name].dtype.kind == 'f':
        numbers = np.frombuffer(values, case.type.dtype)
        values = np.where(np.isnan(numbers.astype('f4')), np.nan, numbers.astype('f4')).astype(case.type.dtype).tobytes()
    if seen is not None and seen != values:
        return f'h5py reads other values, {file[name].dtype}'
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('command')
    parser.add_argument('--count', type=int, default=400)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--keep')
    args = parser.parse_args()
    folder = args.keep or tempfile.mkdtemp(prefix='breccia-hdf5-')
    os.makedirs(folder, exist_ok=True)
    command = os.path.abspath(args.command)
    failed = compared = 0
    for way, function in (('from h5py', from_h5py), ('from sources', from_sources),
                          ('from breccia', from_command)):
        for name, wrong, what in function(command, folder, args.seed, args.count):
            compared += 1
            if wrong:
                failed += 1
                print(f'{way} {name}: {wrong}: {what}'[:500])
    print(f'hdf5: {compared} compared, {failed} differ (h5py {h5py.__version__}, seed {args.seed})')
    if not args.keep:
        shutil.rmtree(folder)
    sys.exit(failed > 0)


if __name__ == '__main__':
    main()
