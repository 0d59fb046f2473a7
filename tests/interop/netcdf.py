#!/usr/bin/env python3
"""NetCDF files that go both ways between breccia and its peers.

    netcdf.py COMMAND [--count N] [--seed S] [--first N] [--only NUMBER] [--keep FOLDER]

Of every generated number, netCDF4-python writes a file (classic of three versions, or
NetCDF-4), which the command imports and exports as NetCDF and as Zarr: the NetCDF file
must be the first again (dimensions, variables, chunks, fill values, attributes with their
types, values bit for bit), and xarray must decode all three to the same. zarr-python
writes arrays, which are imported and exported as NetCDF: netCDF4-python must read their
values. xarray writes a data set as Zarr, and must read the same from the NetCDF file that
the command makes of it. BRECCIA_TEST_DATA: a folder whose .nc files go the first way, too.
"""
import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
import warnings

import netCDF4
import numpy as np
import xarray
import zarr

warnings.simplefilter('ignore')

CLASSIC = ['NETCDF3_CLASSIC', 'NETCDF3_64BIT_OFFSET', 'NETCDF3_64BIT_DATA']
MODEL_3 = CLASSIC + ['NETCDF4_CLASSIC']
TYPES_3 = ['i1', 'i2', 'i4', 'f4', 'f8', 'S1']
TYPES_5 = TYPES_3 + ['u1', 'u2', 'u4', 'i8', 'u8']


class Differs(Exception):
    """The command lost something, or said no."""


def run(command, *args):
    done = subprocess.run([command, *args], capture_output=True, check=False, timeout=300)
    if done.returncode:
        raise Differs(f'{args[0]}: {done.stderr.decode("utf-8", "replace").strip()[-300:]}')


def pick(rng, items):
    return items[int(rng.integers(len(items)))]


# ---- files that netCDF4-python writes ---------------------------------------------------


def numbers(rng, dtype, shape):
    """Any bits: NaNs with payloads, -0.0 and the extremes among them."""
    dtype = np.dtype(dtype)
    n = int(np.prod(shape, dtype=int))
    if dtype.kind == 'S':
        return rng.choice(np.frombuffer(b'abc \0\xe6z', 'S1'), size=shape)
    data = np.frombuffer(rng.bytes(n * dtype.itemsize), dtype).reshape(shape).copy()
    if n and rng.integers(2):
        data = (np.arange(n) % 7).astype(dtype).reshape(shape)
    if n and dtype.kind == 'f' and rng.integers(2):
        data.flat[0] = pick(rng, [np.nan, -0.0, np.inf, -np.inf, 9.969209968386869e36])
    if n and dtype.kind in 'iu' and rng.integers(2):
        data.flat[0] = pick(rng, [np.iinfo(dtype).min, np.iinfo(dtype).max])
    return data


TEXTS = ['m s-1', '', 'æøå – 漢字', 'a\nb', ' x ', 'NaN', '[1, 2]', 'NaNs']


def attribute(rng, classic, five):
    kind = rng.integers(8)
    if kind < 3:
        return pick(rng, TEXTS)
    if kind == 3 and not classic:
        return pick(rng, [['a', 'b'], ['one'], ['', 'æ', 'NaN']])
    types = TYPES_3[:-1] if classic and not five else TYPES_5[:5] + TYPES_5[6:]
    dtype = pick(rng, types)
    n = int(pick(rng, [1, 1, 1, 2, 5]))
    values = numbers(rng, dtype, (n,))
    return values[0] if n == 1 else values


def set_attributes(rng, target, classic, five):
    for name in ['units', 'long name', 'scale_x', 'æ', 'history', 'valid_min', 'missing_value',
                 'flag_values', 'gridtype']:
        if rng.integers(3):
            continue
        value = attribute(rng, classic, five)
        if name == 'missing_value' and isinstance(value, np.ndarray) and \
                not np.isfinite(value.astype('f8')).all():
            continue  # JSON has texts for some of them, which xarray does not compare
        if isinstance(value, list):
            target.setncattr_string(name, value if len(value) > 1 else value[0])
        elif isinstance(value, str) and not classic and rng.integers(5) == 0:
            target.setncattr_string(name, value)
        else:
            target.setncattr(name, value)


def visible_dims(group):
    found = {}
    while group is not None:
        for name, dim in group.dimensions.items():
            found.setdefault(name, dim)
        group = group.parent
    return found


def add_variable(rng, group, name, file_format):
    classic, four = file_format in CLASSIC, file_format == 'NETCDF4'
    types = TYPES_5 if file_format in ('NETCDF4', CLASSIC[2]) else TYPES_3
    dtype = pick(rng, types + ([str] if four else []))
    dims = visible_dims(group)
    rank = int(pick(rng, [0, 1, 1, 2, 2, 3, 4]))
    chosen = [str(d) for d in rng.permutation(list(dims))[:rank]]
    if classic:  # the record dimension is the first
        chosen.sort(key=lambda d: not dims[d].isunlimited())
    extra = {}
    if dtype is not str and rng.integers(3) == 0:
        extra['fill_value'] = False if rng.integers(3) == 0 else numbers(rng, dtype, (1,))[0]
        if extra['fill_value'] is not False and np.dtype(dtype).kind == 'S':
            extra['fill_value'] = pick(rng, [b'\0', b' ', b'x'])
    if not classic and chosen and rng.integers(2):
        if rng.integers(2):
            extra['chunksizes'] = [int(rng.integers(1, max(2, len(dims[d]) + 1))) for d in chosen]
        if dtype is not str and rng.integers(2):
            extra['zlib'] = True
            extra['shuffle'] = bool(rng.integers(2))
        if dtype is not str and np.dtype(dtype).itemsize > 1 and rng.integers(3) == 0:
            extra['endian'] = 'big'
    variable = group.createVariable(name, dtype, chosen, **extra)
    variable.set_auto_maskandscale(False)
    variable.set_auto_chartostring(False)
    set_attributes(rng, variable, file_format in MODEL_3, types is TYPES_5)
    shape = tuple(len(dims[d]) or (int(rng.integers(4)) if dims[d].isunlimited() else 0)
                  for d in chosen)
    if 0 in shape or (rng.integers(10) == 0 and extra.get('fill_value') is not False):
        return  # nothing is written
    if dtype is str:
        data = np.array([pick(rng, TEXTS) for _ in range(int(np.prod(shape, dtype=int)))],
                        object).reshape(shape)
        variable[...] = data if shape else data.item()
    else:
        variable[...] = numbers(rng, dtype, shape)


def fill_group(rng, group, file_format, depth):
    unlimited = 0
    for name in ['time', 'x', 'y', 'a b', 'n5'][:int(rng.integers(1, 6))]:
        grows = name == 'time' and rng.integers(2) or (
            file_format == 'NETCDF4' and rng.integers(6) == 0)
        if grows and file_format != 'NETCDF4' and unlimited:
            grows = False
        unlimited += bool(grows)
        group.createDimension(name, None if grows else int(rng.integers(1, 7)))
    set_attributes(rng, group, file_format in MODEL_3, file_format == 'NETCDF3_64BIT_DATA' or
                   file_format == 'NETCDF4')
    for i in range(int(rng.integers(5))):
        add_variable(rng, group, f'v{i}', file_format)
    for name in list(group.dimensions):  # coordinates
        if rng.integers(3) == 0:
            v = group.createVariable(name, pick(rng, ['f8', 'i4']), (name,))
            v[:] = np.arange(len(group.dimensions[name]))
    if file_format == 'NETCDF4' and depth < 3:
        for name in ['g', 'h'][:int(rng.integers(3))]:
            fill_group(rng, group.createGroup(name), file_format, depth + 1)


def make_file(rng, path):
    file_format = pick(rng, CLASSIC + ['NETCDF4', 'NETCDF4', 'NETCDF4', 'NETCDF4_CLASSIC'])
    with netCDF4.Dataset(path, 'w', format=file_format) as dataset:
        fill_group(rng, dataset, file_format, 0)
    return file_format


# ---- comparing ----------------------------------------------------------------------------


def bits(value):
    """Type and bits of an attribute or a variable's values."""
    if isinstance(value, (str, bytes)):
        return ('text', value)
    if isinstance(value, list):
        return ('texts', value)
    value = np.asarray(value)
    if value.dtype.kind == 'O':
        return ('objects', value.shape, [str(v) for v in value.ravel()])
    value = value.astype(value.dtype.newbyteorder('='))
    return (value.dtype.str, value.shape, value.tobytes())


def native(dtype):
    return dtype if dtype is str else dtype.newbyteorder('=')


def check(what, a, b):
    if a != b:
        raise Differs(f'{what}: {str(a)[:200]} became {str(b)[:200]}')


def compare_attributes(where, a, b):
    check(f'{where}: names of attributes', sorted(a.ncattrs()), sorted(b.ncattrs()))
    for name in a.ncattrs():
        check(f'{where}: {name}', bits(a.getncattr(name)), bits(b.getncattr(name)))


def variable_values(variable):
    variable.set_auto_maskandscale(False)
    variable.set_auto_chartostring(False)
    return bits(variable[...])


def compare_variable(where, a, b, same_kind):
    check(f'{where}: type', native(a.dtype), native(b.dtype))
    check(f'{where}: dimensions', (a.dimensions, a.shape), (b.dimensions, b.shape))
    check(f'{where}: values', variable_values(a), variable_values(b))
    compare_attributes(where, a, b)
    if same_kind and a.chunking() not in (None, 'contiguous') and b.chunking() != 'contiguous':
        clipped = [min(n, len(d)) if not d.isunlimited() else n
                   for n, d in zip(a.chunking(), a.get_dims())]
        check(f'{where}: chunks', clipped, b.chunking())
    # A missing fill value of characters is a zero byte; the peer swaps the fill value of big-endian numbers.
    if same_kind and a.dtype not in (str, 'S1') and a.dtype.isnative:
        check(f'{where}: fill', bits(a.get_fill_value()) if a.get_fill_value() is not None else None,
              bits(b.get_fill_value()) if b.get_fill_value() is not None else None)


def compare_groups(where, a, b, same_kind):
    dims = [{name: (len(d), d.isunlimited()) for name, d in g.dimensions.items()} for g in (a, b)]
    check(f'{where}: dimensions', *dims)
    check(f'{where}: variables', sorted(a.variables), sorted(b.variables))
    check(f'{where}: groups', sorted(a.groups), sorted(b.groups))
    compare_attributes(where, a, b)
    for name, variable in a.variables.items():
        compare_variable(f'{where}/{name}', variable, b.variables[name], same_kind)
    for name, group in a.groups.items():
        compare_groups(f'{where}/{name}', group, b.groups[name], same_kind)


def compare_files(a, b, same_kind):
    with netCDF4.Dataset(a) as first, netCDF4.Dataset(b) as second:
        compare_groups('', first, second, same_kind)


def decoded(dataset, leave_out):
    """Returns the variables as xarray decodes them."""
    found = {}
    for name, v in dataset.variables.items():
        if name in leave_out:
            continue
        data = v.values
        kind = 'O' if data.dtype.kind in 'UT' or not data.size else data.dtype.kind
        if kind == 'O':
            values = [str(x) for x in data.ravel()]
        else:
            values = np.nan_to_num(data.astype('f8'), nan=7).tolist() if kind in 'iufb' else data.tolist()
        found[name] = (v.dims, data.shape, kind, values, name in dataset.coords)
    return found


def plain(value):
    """An attribute as a Zarr reader has it."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    return ('number', str(value)) if isinstance(value, float) and not np.isfinite(value) else value


def xarray_groups(path, engine):
    if engine == 'zarr':
        documents = [p for p in glob.glob(path + '/**/zarr.json', recursive=True)
                     if '"node_type": "group"' in open(p, encoding='utf-8').read()]
        documents += glob.glob(path + '/**/.zgroup', recursive=True)
        with_groups = [''] + [os.path.relpath(os.path.dirname(p), path) for p in documents]
        return sorted({'' if g == '.' else g for g in with_groups})
    found = []

    def walk(group, name):
        found.append(name)
        for child in group.groups:
            walk(group.groups[child], f'{name}/{child}'.strip('/'))
    with netCDF4.Dataset(path) as dataset:
        walk(dataset, '')
    return sorted(found)


def open_xarray(path, engine, group):
    extra = {'consolidated': False} if engine == 'zarr' else {}
    with xarray.open_dataset(path, engine=engine, group=group or None, decode_times=False,
                             mask_and_scale=engine != 'raw', **extra) as dataset:
        return dataset.load()


def compare_xarray(original, other, engine):
    groups = xarray_groups(original, 'netcdf4')
    check('xarray groups', groups, xarray_groups(other, engine))
    for group in groups:
        try:
            a = open_xarray(original, 'netcdf4', group)
        except Exception:  # pylint: disable=broad-except
            continue  # xarray cannot read the original
        b = open_xarray(other, engine, group)
        # xarray has no form for the _FillValue of characters in Zarr
        masked = {name for name, v in a.variables.items()
                  if engine == 'zarr' and v.encoding.get('dtype') == 'S1' and
                  '_FillValue' in v.encoding}
        first, second = decoded(a, masked), decoded(b, masked)
        check(f'xarray {engine} {group}: variables', sorted(first), sorted(second))
        for name, found in first.items():
            check(f'xarray {engine} {group} {name}: values', found, second[name])
        for name, v in [('', a), *a.variables.items()]:
            other_attrs = b.attrs if name == '' else b[name].attrs
            check(f'xarray {engine} {group} {name}: attributes',
                  {k: plain(x) for k, x in v.attrs.items()},
                  {k: plain(x) for k, x in other_attrs.items()})


def documents(path, **how):
    """The documents of a Zarr hierarchy by name; `how`: of json.loads()."""
    found = {}
    for folder, _, files in os.walk(path):
        for name in files:
            if name in ('zarr.json', '.zarray', '.zgroup', '.zattrs'):
                file = os.path.join(folder, name)
                with open(file, encoding='utf-8') as f:
                    found[os.path.relpath(file, path)] = json.loads(f.read(), **how)
    return found


def no_word(word):
    raise Differs(f'{word} in a document that any reader of JSON should read')


def strict_and_back(command, folder, repo, tokens, version):
    """Without --nan-tokens documents are JSON, and an import of them has what it was made from."""
    strict, other, again = (os.path.join(folder, n + version) for n in ('strict', 'other', 'again'))
    run(command, 'export', repo, strict, '--format', version)
    documents(strict, parse_constant=no_word)
    run(command, 'init', other)
    run(command, 'import', other, strict)
    run(command, 'export', other, again, '--format', version, '--nan-tokens')
    check(f'documents of {version} that were JSON',
          *(documents(p, parse_constant=lambda word: ('number', word)) for p in (tokens, again)))


# ---- the two ways ---------------------------------------------------------------------------


def through(command, folder, original, classic):
    """NetCDF, breccia, NetCDF and Zarr of both versions."""
    repo, back, store, older = (os.path.join(folder, n)
                                for n in ('r.brc', 'back.nc', 'back.zarr', 'older.zarr'))
    run(command, 'init', repo)
    run(command, 'import', repo, original)
    run(command, 'export', repo, back, '--format', 'netcdf3' if classic else 'netcdf')
    run(command, 'export', repo, store, '--nan-tokens')
    run(command, 'export', repo, older, '--format', 'zarr2', '--nan-tokens')
    compare_files(original, back, True)
    compare_xarray(original, back, 'netcdf4')
    compare_xarray(original, store, 'zarr')
    compare_xarray(original, older, 'zarr')
    strict_and_back(command, folder, repo, store, 'zarr3')
    strict_and_back(command, folder, repo, older, 'zarr2')
    if classic:  # and as NetCDF-4, which says no less
        run(command, 'export', repo, back + '4', '--format', 'netcdf')
        compare_files(original, back + '4', False)


ZARR_TYPES = ['bool', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64',
              'float16', 'float32', 'float64', 'complex64', 'complex128', 'datetime64[ns]',
              'datetime64[D]', 'timedelta64[s]', 'S1', 'S5', 'U3', 'struct']


def zarr_data(rng, name, shape):
    n = int(np.prod(shape, dtype=int))
    if name == 'struct':
        dtype = np.dtype([('a', '<i2'), ('b', '<f8'), ('c', [('d', '<u1'), ('e', '<f4')])])
        return np.frombuffer(rng.bytes(n * dtype.itemsize), dtype).reshape(shape)
    dtype = np.dtype(name)
    if dtype.kind == 'b':
        return rng.integers(2, size=shape).astype(bool)
    if dtype.kind in 'SU':
        words = np.array(['a', 'bc', '', 'æøå' if dtype.kind == 'U' else 'hello'], dtype)
        return rng.choice(words, size=shape)
    if dtype.kind in 'mM':
        return rng.integers(-10**9, 10**9, size=shape).astype(dtype)
    data = np.frombuffer(rng.bytes(n * dtype.itemsize), dtype).reshape(shape).copy()
    return data


def make_zarr(rng, path):
    """Arrays of every type, over axes of few names."""
    lengths = {name: int(rng.integers(1, 6)) for name in 'xyz'}
    content = {}
    group = zarr.open_group(path, mode='w', zarr_format=3)
    for i in range(4):
        dims = [str(d) for d in rng.permutation(list('xyz'))[:int(rng.integers(4))]]
        shape = tuple(lengths[d] for d in dims)
        kind = pick(rng, ZARR_TYPES)
        name = f"{pick(rng, ['', 'g/', 'g/h/', 'k/'])}a{i}"
        data = zarr_data(rng, kind, shape)
        array = group.create_array(
            name, shape=shape, dtype=data.dtype, dimension_names=dims,
            chunks=tuple(int(rng.integers(1, n + 1)) for n in shape),
            attributes={'units_of': 'K', 'n': i, 'list': [1, 2.5], 'o': {'a': [1]}},
            compressors=None if rng.integers(2) else 'auto')
        if shape or kind != 'struct':
            array[...] = data
        else:
            array[()] = data[()]
        content[name] = (kind, dims, data)
    return content


def as_netcdf(kind, data):
    """The values that a NetCDF file has for them."""
    if kind == 'bool':
        return data.astype('i1')
    if kind == 'float16':
        return data.astype('f4')
    if kind[:4] in ('date', 'time'):
        return data.astype('i8')
    if kind == 'U3':
        return data.astype(object)
    if kind == 'S5':
        return np.frombuffer(data.tobytes(), 'S1').reshape(*data.shape, 5)
    return data


def same_records(a, b):
    """Field by field: a compound's are aligned in a file, and a complex number is one."""
    if a.dtype.names is None:
        return a.shape == b.shape and a.tobytes() == b.tobytes()
    return a.dtype.names == b.dtype.names and all(
        same_records(np.ascontiguousarray(a[f]), np.ascontiguousarray(b[f])) for f in a.dtype.names)


def from_zarr(command, folder, rng):
    source, repo, dest = (os.path.join(folder, n) for n in ('z.zarr', 'z.brc', 'z.nc'))
    content = make_zarr(rng, source)
    run(command, 'init', repo)
    run(command, 'import', repo, source)
    run(command, 'export', repo, dest)
    with netCDF4.Dataset(dest, auto_complex=True) as dataset:
        for name, (kind, dims, data) in content.items():
            variable = dataset[name]
            variable.set_auto_maskandscale(False)
            variable.set_auto_chartostring(False)
            check(f'{name} {kind}: dimensions', dims,
                  list(variable.dimensions)[:len(dims)])
            want, got = as_netcdf(kind, data), np.asarray(variable[...])
            if kind == 'float16':
                check(f'{name}: values', np.nan_to_num(want, nan=7.0).tolist(),
                      np.nan_to_num(got, nan=7.0).tolist())
            elif kind == 'U3':
                check(f'{name}: values', want.tolist(), got.tolist())
            elif not same_records(np.ascontiguousarray(want), np.ascontiguousarray(got)):
                raise Differs(f'{name} {kind}: other values: {want!r} became {got!r}')
            check(f'{name}: an object', '{"a":[1]}', variable.getncattr('o'))
    again, store = os.path.join(folder, 'again.brc'), os.path.join(folder, 'again.zarr')
    run(command, 'init', again)
    run(command, 'import', again, dest)
    run(command, 'export', again, store)
    same = ('bool', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64',
            'float32', 'float64', 'complex64', 'complex128', 'S1')
    group = zarr.open_group(store, mode='r')
    for name, (kind, dims, data) in content.items():
        if kind in same:
            array = group[name]
            check(f'{name} {kind}: type', data.dtype, array.dtype)
            check(f'{name} {kind}: names', tuple(dims), tuple(array.metadata.dimension_names or ()))
            if np.asarray(array[...]).tobytes() != data.tobytes():
                raise Differs(f'{name} {kind}: other values after both ways')


def make_dataset(rng):
    """Makes a dataset that xarray encodes by its own conventions, which must then be NetCDF's."""
    n = int(rng.integers(1, 6))
    start = np.datetime64('2000-01-01T00:00:00', pick(rng, ['s', 'ms', 'us', 'ns']))
    time = start + np.cumsum(rng.integers(1, 10**6, size=n)).astype('m8[s]')
    some = rng.normal(size=(n, 3))
    some[0, 0] = np.nan
    late = time.copy()
    late[0] = 'NaT'
    return xarray.Dataset(
        {'f': (('time', 'x'), some.astype(pick(rng, ['f4', 'f8'])), {'units': 'K'}),
         'packed': (('time', 'x'), np.round(some, 1), {},
                    {'dtype': 'i2', 'scale_factor': 0.1, 'add_offset': 1.5, '_FillValue': -999}),
         'truth': ('x', rng.integers(2, size=3).astype(bool)),
         'text': ('x', np.array(['æ', '', 'zz'])),
         'z': ('x', rng.normal(size=3) + 1j),
         'late': ('time', late),
         'span': ('time', late - late[-1]),
         'one': ((), np.int64(rng.integers(-9, 9)))},
        coords={'time': time, 'x': [1, 2, 3], 'lat': ('x', [1.5, 2.5, 3.5])},
        attrs={'title': 'æ', 'n': [1, 2], 'f': 0.1})


def identical(what, first, second, but=()):
    with first, second:
        try:
            xarray.testing.assert_identical(first.drop_vars(but).load(),
                                            second.drop_vars(but).load())
        except AssertionError as fault:
            raise Differs(f'{what}: {fault}') from fault


def from_xarray(command, folder, rng):
    """A dataset that xarray wrote as Zarr, read by it as NetCDF."""
    source, repo, dest = (os.path.join(folder, n) for n in ('x.zarr', 'x.brc', 'x.nc'))
    make_dataset(rng).to_zarr(source, zarr_format=3, consolidated=False)
    run(command, 'init', repo)
    run(command, 'import', repo, source)
    run(command, 'export', repo, dest)
    identical('xarray', xarray.open_dataset(source, engine='zarr', consolidated=False),
              xarray.open_dataset(dest, engine='netcdf4', auto_complex=True))


def older_from_xarray(command, folder, rng):
    """The same as Zarr of version 2, where the fill value is what xarray takes for missing
    and most of its arrays have none: zeros, False and the first of 1970 are values. What
    has one (packed) has it in version 2 alone: elsewhere an attribute would have to say so."""
    source, repo, back, newer, dest = (os.path.join(folder, n) for n in (
        'old.zarr', 'old.brc', 'old2.zarr', 'old3.zarr', 'old.nc'))
    n = int(rng.integers(1, 4))
    data = make_dataset(rng).assign(
        zero_time=('zero', np.zeros(n, 'M8[ns]')), never=('zero', np.zeros(n, bool)),
        none=(('zero', 'x'), np.zeros((n, 3), pick(rng, ['i1', 'u2', 'i8', 'f4']))),
        empty=('zero', np.array([''] * n)), still=('zero', np.zeros(n, 'm8[s]')))
    for name in data.variables:
        if rng.integers(2):
            data[name].encoding['chunks'] = (1,) * data[name].ndim
    data.to_zarr(source, zarr_format=2, consolidated=False)
    run(command, 'init', repo)
    run(command, 'import', repo, source)
    run(command, 'export', repo, back, '--format', 'zarr2')
    run(command, 'export', repo, newer)
    run(command, 'export', repo, dest)
    for other, engine, more in ((back, 'zarr', {'consolidated': False}),
                                (newer, 'zarr', {'consolidated': False}),
                                (dest, 'netcdf4', {'auto_complex': True})):
        identical(f'{other} of Zarr v2',
                  xarray.open_dataset(source, engine='zarr', consolidated=False),
                  xarray.open_dataset(other, engine=engine, **more),
                  () if other == back else ['packed'])


def one(command, number, seed, folder):
    rng = np.random.default_rng([seed, number])
    original = os.path.join(folder, 'original.nc')
    file_format = make_file(rng, original)
    through(command, folder, original, file_format in CLASSIC)
    from_zarr(command, folder, rng)
    from_xarray(command, folder, rng)
    older_from_xarray(command, folder, rng)
    return 5


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('command')
    parser.add_argument('--count', type=int, default=100)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--first', type=int, default=0)
    parser.add_argument('--only', type=int)
    parser.add_argument('--keep')
    args = parser.parse_args()
    numbers_ = [args.only] if args.only is not None else range(args.first, args.first + args.count)
    jobs = [(f'number {n} of seed {args.seed}',
             lambda folder, n=n: one(args.command, n, args.seed, folder)) for n in numbers_]
    data = os.environ.get('BRECCIA_TEST_DATA', '')
    for path in sorted(glob.glob(os.path.join(data, '*.nc'))) if data and args.only is None else []:
        with netCDF4.Dataset(path) as dataset:
            classic = dataset.data_model in CLASSIC
        jobs.append((os.path.basename(path),
                     lambda folder, p=path, c=classic: through(args.command, folder, p, c) or 3))
    compared = differ = 0
    for what, job in jobs:
        folder = args.keep or tempfile.mkdtemp(prefix='netcdf-interop-')
        os.makedirs(folder, exist_ok=True)
        try:
            compared += job(folder)
        except Differs as fault:
            differ += 1
            print(f'netcdf: {what}: {fault}')
        except Exception:  # pylint: disable=broad-except
            differ += 1
            print(f'netcdf: {what}: {traceback.format_exc()[-1500:]}')
        if not args.keep:
            shutil.rmtree(folder)
    print(f'netcdf: {compared} compared, {differ} differ')
    return differ > 0


if __name__ == '__main__':
    sys.exit(main())
