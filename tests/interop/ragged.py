#!/usr/bin/env python3
"""Lists of variable length, and compounds with texts and lists, between breccia, h5py and netCDF4.

    ragged.py COMMAND [--count N] [--seed S] [--keep FOLDER]

Random datasets of h5py, and variables of netCDF4, are imported and exported: what these libraries
read of the export must be what they read of their own files. zarr-python opens the groups, and
awkward-array and pyarrow make lists of their arrays, as the example of docs/RAGGED.md has it: the
same lists. Exit 1: something differed.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

import awkward
import h5py
import netCDF4
import numpy as np
import pyarrow
import zarr

from generate import pick

WORDS = ['', 'a', 'Zarr', 'h\u00e9llo', '\u4e16\u754c', '\U0001f30d', 'x' * 40]
NUMBERS = ['i1', 'u2', 'i4', 'u8', 'f4', 'f8']
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'docs', 'RAGGED.md')


def run(command, *args):
    done = subprocess.run([command, *args, '--threads', '1'], capture_output=True, check=False, timeout=600)
    if done.returncode:
        raise RuntimeError(f'{args[0]} {args[-1]}: {done.stderr.decode("utf-8", "replace")[-300:]}')


def random_list(rng, dtype):
    n = int(pick(rng, [0, 0, 1, 2, 5, 30]))
    return rng.integers(0, 100, size=n).astype(dtype)


def random_shape(rng, least=0):
    return tuple(int(n) for n in rng.integers(0 if rng.integers(5) == 0 else 1, 7, size=int(rng.integers(least, 4))))


def lists_of(rng, dtype, shape):
    out = np.empty(int(np.prod(shape, dtype=int)), dtype=object)
    for i in range(out.size):
        out[i] = random_list(rng, dtype)
    return out.reshape(shape)


# ---- h5py ----------------------------------------------------------------------


def random_storage(rng, shape):
    if not shape or 0 in shape or rng.integers(3) == 0:
        return {}
    chunks = tuple(int(rng.integers(1, n + 1)) for n in shape)
    return {'chunks': chunks, 'maxshape': tuple(None if rng.integers(2) else n for n in shape)}


def write_lists(rng, file, name):
    dtype, shape = np.dtype(pick(rng, NUMBERS)), random_shape(rng)
    made = file.create_dataset(name, shape, dtype=h5py.vlen_dtype(dtype), **random_storage(rng, shape))
    values = lists_of(rng, dtype, shape)
    for index in np.ndindex(shape):  # h5py guesses at lists of one length
        if rng.integers(8):
            made[index] = values[index]
    made.attrs['units'] = 'm'


def write_rows(rng, file, name):
    inner = np.dtype(pick(rng, NUMBERS))
    fields = [('n', inner), ('text', h5py.string_dtype()), ('list', h5py.vlen_dtype(inner)), ('pair', 'f4', (2,)),
              ('code', 'S4'), ('at', [('x', 'f8'), ('y', 'i2')])]
    chosen = [fields[i] for i in rng.permutation(len(fields))[:int(rng.integers(2, 7))]]
    if not {'text', 'list'} & {field[0] for field in chosen}:
        chosen.append(fields[1])
    dtype, shape = np.dtype(chosen), random_shape(rng)
    rows = np.zeros(shape, dtype=dtype)
    for field in dtype.names:
        if field == 'text':
            for index in np.ndindex(shape):
                rows[field][index] = pick(rng, WORDS)
        elif field == 'list':
            for index in np.ndindex(shape):
                rows[field][index] = random_list(rng, inner)
        elif field == 'code':
            rows[field] = b'ab'
        elif field != 'at':
            rows[field] = rng.integers(0, 100, size=rows[field].shape)
    made = file.create_dataset(name, shape, dtype=dtype, **random_storage(rng, shape))
    if rows.size:
        made[...] = rows


def plain(value):
    """Returns the value as lists, numbers and bytes, which can be compared."""
    if isinstance(value, np.void):
        return {name: plain(value[name]) for name in value.dtype.names}
    if isinstance(value, np.ndarray):
        return [plain(v) for v in value] if value.shape else plain(value[()])
    return value.encode() if isinstance(value, str) else value


def compare_sets(a, b):
    if a.shape != b.shape or a.maxshape != b.maxshape or a.chunks != b.chunks:
        return f'{a.shape} {a.maxshape} {a.chunks}, {b.shape} {b.maxshape} {b.chunks}'
    if a.id.get_type() != b.id.get_type():
        return f'type {a.dtype}, {b.dtype}'
    if plain(a[()]) != plain(b[()]):
        return 'values'
    return None if dict(a.attrs) == dict(b.attrs) else 'attributes'


def from_h5py(command, folder, seed, count):
    rng = np.random.default_rng([seed, 11])
    source, out, repo = (os.path.join(folder, name) for name in ('a.h5', 'b.h5', 'a.brc'))
    with h5py.File(source, 'w') as file:
        for i in range(count):
            (write_lists if i % 2 else write_rows)(rng, file, f'd{i}')
    run(command, 'init', repo)
    run(command, 'import', repo, source, '/')
    run(command, 'export', repo, '/', out)
    with h5py.File(source) as a, h5py.File(out) as b:
        for name in a:
            yield name, compare_sets(a[name], b[name]), str(a[name].dtype)


# ---- netCDF4 ----------------------------------------------------------------------


def from_netcdf4(command, folder, seed, count):
    rng = np.random.default_rng([seed, 12])
    source, out, repo = (os.path.join(folder, name) for name in ('a.nc', 'b.nc', 'n.brc'))
    with netCDF4.Dataset(source, 'w') as file:
        for i in range(count):
            dtype, shape = np.dtype(pick(rng, ['i2', 'i4', 'f4', 'f8'])), (int(rng.integers(1, 5)), int(rng.integers(1, 5)))
            kind = file.createVLType(dtype, f'list_{i}')
            for k, n in enumerate(shape):
                file.createDimension(f'd{i}_{k}', None if k == 0 and rng.integers(2) else n)
            made = file.createVariable(f'v{i}', kind, (f'd{i}_0', f'd{i}_1'))
            values = lists_of(rng, dtype, shape)
            for index in np.ndindex(shape):
                made[index] = values[index]
            made.units = 'm'
    run(command, 'init', repo)
    run(command, 'import', repo, source, '/')
    run(command, 'export', repo, '/', out)
    with netCDF4.Dataset(source) as a, netCDF4.Dataset(out) as b:
        for name in a.variables:
            one, other = a[name], b[name]
            wrong = None
            if one.dimensions != other.dimensions or one.datatype.name != other.datatype.name or \
                    one.datatype.dtype != other.datatype.dtype or one.chunking() != other.chunking():
                wrong = f'{one.dimensions} {one.datatype} {one.chunking()}, {other.dimensions} {other.datatype} {other.chunking()}'
            elif plain(one[:]) != plain(other[:]):
                wrong = 'values'
            elif one.__dict__ != other.__dict__:
                wrong = 'attributes'
            yield name, wrong, str(one.datatype)


# ---- the page's example ----------------------------------------------------------------------


def blocks(language):
    with open(PAGE, encoding='utf-8') as file:
        return re.findall(rf'^```{language}\n(.*?)^```$', file.read(), re.M | re.S)


def by_the_page(command, folder, seed, _):
    rng = np.random.default_rng([seed, 13])
    values = lists_of(rng, np.dtype('f8'), (9,))
    with h5py.File(os.path.join(folder, 'tracks.h5'), 'w') as file:
        made = file.create_dataset('tracks', (9,), dtype=h5py.vlen_dtype('f8'))
        for i in range(9):
            made[i] = values[i]
    for line in blocks('sh')[0].splitlines():
        word, *args = line.split()
        assert word == 'breccia'
        run(command, *[os.path.join(folder, arg) if '.' in arg else arg for arg in args])
    seen = {}
    os.chdir(folder)
    exec(blocks('python')[0], seen)  # pylint: disable=exec-used
    lists = [list(value) for value in values]
    yield 'NumPy', None if list(seen['third']) == lists[2] else 'values', ''
    yield 'awkward-array', None if seen['in_awkward'].tolist() == lists else 'values', awkward.__version__
    yield 'pyarrow', None if seen['in_arrow'].to_pylist() == lists else 'values', pyarrow.__version__
    yield 'zarr-python', None if zarr.open_group('tracks.zarr')['offsets'].shape == (10,) else 'shape', zarr.__version__


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('command')
    parser.add_argument('--count', type=int, default=200)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--keep')
    args = parser.parse_args()
    folder = args.keep or tempfile.mkdtemp(prefix='breccia-ragged-')
    os.makedirs(folder, exist_ok=True)
    command = os.path.abspath(args.command)
    failed = compared = 0
    for way in (from_h5py, from_netcdf4, by_the_page):
        for name, wrong, what in way(command, folder, args.seed, args.count):
            compared += 1
            if wrong:
                failed += 1
                print(f'{way.__name__} {name}: {wrong}: {what}'[:500])
    print(f'ragged: {compared} compared, {failed} differ (h5py {h5py.__version__}, netCDF4 {netCDF4.__version__}, '
          f'seed {args.seed})')
    if not args.keep:
        os.chdir('/')
        shutil.rmtree(folder)
    sys.exit(failed > 0)


if __name__ == '__main__':
    main()
