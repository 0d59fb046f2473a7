#!/usr/bin/env python3
"""Kerchunk references that others make, imported and compared with what they are made of.

    references.py COMMAND [--count N] [--seed S]

Of every generated number, h5py writes two HDF5 files with chunks and filters. kerchunk makes a
set of references to one, which is imported both ways (copied, and left where it lies), and one
of both together, which MultiZarrToZarr joins along the first axis. VirtualiZarr makes another
set. kerchunk writes references in Parquet, which the command must refuse by name, and which the
Python package makes a set in JSON. The values of all of them must be those of the files.
"""
import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
import types
import warnings

import h5py
import numpy as np
import zarr
from kerchunk.combine import MultiZarrToZarr
from kerchunk.df import refs_to_dataframe
from kerchunk.hdf import SingleHdf5ToZarr
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore
from virtualizarr import open_virtual_dataset
from virtualizarr.parsers import HDFParser

warnings.simplefilter('ignore')


class Differs(Exception):
    """The command lost something, or said no."""


def run(command, *args):
    done = subprocess.run([command, *args], capture_output=True, check=False, timeout=300)
    if done.returncode:
        raise Differs(f'{args[0]}: {done.stderr.decode("utf-8", "replace").strip()[-300:]}')


def write_file(path, rng, shape, chunk, dtype, options, first, texts):
    data = np.frombuffer(rng.bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize),
                         np.dtype(dtype).newbyteorder('=').str.replace('f', 'i'))
    data = (data % 100).astype(dtype).reshape(shape)
    with h5py.File(path, 'w') as file:
        file.attrs['title'] = 'números'
        values = file.create_dataset('v', data=data, chunks=chunk, **options)
        time = file.create_dataset('time', data=np.arange(first, first + shape[0], dtype='f8'))
        time.make_scale('time')
        for axis in range(1, len(shape)):
            other = file.create_dataset(f'x{axis}', data=np.arange(shape[axis], dtype='i4'))
            other.make_scale(f'x{axis}')
            values.dims[axis].attach_scale(other)
        values.dims[0].attach_scale(time)
        if texts:
            file['small/text'] = np.array(['a', 'bb', ''], dtype=h5py.string_dtype())
    return data


def dump(path, references):
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(references, file, default=int)


def compare(command, folder, name, want, both=True):
    """Imports the set, exports what came, and compares the array 'v'; returns how many."""
    source = os.path.join(folder, name)
    for flags in ([], ['--external']) if both else ([],):
        repo, out = os.path.join(folder, 'r.brc'), os.path.join(folder, 'out.zarr')
        run(command, 'import', repo, source, '/', *flags)
        run(command, 'export', repo, '/', out)
        got = zarr.open_group(out, mode='r')['v'][...]
        if got.shape != want.shape or got.tobytes() != want.astype(got.dtype).tobytes():
            raise Differs(f'{name} {flags}: other values')
        if flags:
            told = subprocess.run([command, 'backend', repo, '--json'], capture_output=True,
                                  check=True).stdout
            if b'external' not in told:
                raise Differs(f'{name}: nothing lies where it was')
        os.remove(repo)
        shutil.rmtree(out)
    return 2 if both else 1


def virtual(path, out):
    registry = ObjectStoreRegistry({'file://': LocalStore()})
    with open_virtual_dataset(url=f'file://{path}', registry=registry, parser=HDFParser(),
                              loadable_variables=[]) as dataset:
        dataset[['v', 'time']].vz.to_kerchunk(out, format='json')


def kerchunk_module():
    """The module of the Python package that reads Parquet, by itself: the package need not be built."""
    file = os.path.join(os.path.dirname(__file__), '..', '..', 'python', 'breccia', '_kerchunk.py')
    package, errors = types.ModuleType('alone'), types.ModuleType('alone._errors')
    package.__path__, package._errors = [], errors
    sys.modules.update({'alone': package, 'alone._errors': errors})
    spec = importlib.util.spec_from_file_location('alone._kerchunk', file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_parquet(command, folder, references, want):
    parquet = os.path.join(folder, 'set.parquet')
    os.makedirs(parquet)
    refs_to_dataframe(references, parquet, record_size=10)
    done = subprocess.run([command, 'import', os.path.join(folder, 'p.brc'), parquet, '/x'],
                          capture_output=True, check=False)
    if done.returncode != 1 or b'Parquet' not in done.stderr:
        raise Differs(f'Parquet was not refused: {done.stderr}')
    dump(os.path.join(folder, 'parquet.json'), kerchunk_module().references(parquet))
    return 1 + compare(command, folder, 'parquet.json', want, False)


def one(command, number, seed, folder):
    rng = np.random.default_rng([seed, number])
    ndim = int(rng.integers(1, 4))
    chunk = tuple(int(rng.integers(2, 9)) for _ in range(ndim))
    shape = tuple(c * int(rng.integers(1, 4)) for c in chunk)
    dtype = ['<i4', '>i2', '<f8', '<u1'][int(rng.integers(4))]
    options = [{}, {'compression': 'gzip'}, {'compression': 'gzip', 'shuffle': True},
               {'shuffle': True}][int(rng.integers(4))]
    paths = [os.path.join(folder, name) for name in ('one.h5', 'two.h5')]
    data = [write_file(path, rng, shape, chunk, dtype, options, i * shape[0], number % 2)
            for i, path in enumerate(paths)]
    threshold = int(rng.choice([0, 100]))
    sets = [SingleHdf5ToZarr(path, inline_threshold=threshold).translate() for path in paths]
    dump(os.path.join(folder, 'single.json'), sets[0])
    compared = compare(command, folder, 'single.json', data[0], threshold == 0)
    joined = MultiZarrToZarr(sets, concat_dims=['time'],
                             identical_dims=[f'x{i}' for i in range(1, ndim)]).translate()
    dump(os.path.join(folder, 'joined.json'), joined)
    compared += compare(command, folder, 'joined.json', np.concatenate(data), False)
    if number % 2 == 0:  # VirtualiZarr stops at texts
        virtual(paths[0], os.path.join(folder, 'virtual.json'))
        compared += compare(command, folder, 'virtual.json', data[0], False)
    return compared + in_parquet(command, folder, sets[0], data[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('command')
    parser.add_argument('--count', type=int, default=20)
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    compared = differ = 0
    for number in range(args.count):
        folder = tempfile.mkdtemp(prefix='references-interop-')
        try:
            compared += one(args.command, number, args.seed, folder)
        except Differs as fault:
            differ += 1
            print(f'references: number {number}: {fault}')
        except Exception:  # pylint: disable=broad-except
            differ += 1
            print(f'references: number {number}: {traceback.format_exc()[-1500:]}')
        shutil.rmtree(folder)
    print(f'references: {compared} compared, {differ} differ')
    return differ > 0


if __name__ == '__main__':
    sys.exit(main())
