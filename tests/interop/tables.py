"""CSV between the command and NumPy, pandas and xarray: what one writes the other reads, value for value.

tables.py COMMAND [--count N] [--seed N]"""
import argparse
import io
import os
import subprocess
import sys
import tempfile

import numpy as np
import pandas as pd
import xarray as xr

TYPES = ['bool', 'int8', 'int32', 'int64', 'uint64', 'float32', 'float64']


class Table:
    """A random array, and a repository for it."""

    def __init__(self, command, folder, random):
        self.command, self.folder, self.random = command, folder, random
        self.type = np.dtype(random.choice(TYPES))
        self.shape = tuple(int(n) for n in random.integers(1, 8, random.integers(1, 4)))
        self.values = self.make_values()

    def make_values(self):
        size = int(np.prod(self.shape))
        if self.type.kind == 'b':
            out = self.random.integers(0, 2, size).astype(bool)
        elif self.type.kind == 'f':
            out = (self.random.standard_normal(size) * 10.0 ** self.random.integers(-30, 30, size)).astype(self.type)
            out[self.random.random(size) < 0.1] = self.random.choice([np.nan, np.inf, -np.inf])
        else:
            limits = np.iinfo(self.type)
            out = self.random.integers(limits.min, limits.max, size, dtype=self.type, endpoint=True)
        return out.reshape(self.shape)

    def run(self, *words, data=None):
        done = subprocess.run([self.command, *words], cwd=self.folder, input=data, capture_output=True, check=False)
        if done.returncode:
            raise AssertionError(f'{words}: {done.stderr.decode()}')
        return done.stdout

    def elements(self, path):
        return np.frombuffer(self.run('read', 'r.brc', path, '--format', 'raw'), self.type.newbyteorder('<'))

    def same(self, what, values):
        """The values are those of the array, bit for bit but for NaN."""
        np.testing.assert_array_equal(np.asarray(values).astype(self.type).reshape(self.shape), self.values, what)

    def frame(self):
        """Returns the table that xarray makes: a row for each element."""
        dims = [f'd{i}' for i in range(len(self.shape))]
        return xr.Dataset({'value': (dims, self.values)}).to_dataframe().reset_index()

    def check(self):
        dims = ','.join(f'd{i}' for i in range(len(self.shape)))
        self.run('init', 'r.brc')
        for path in ('/a', '/b'):
            self.run('create', 'r.brc', path, '--shape', ','.join(map(str, self.shape)), '--dtype', self.type.name,
                     '--dimension-names', dims, '--chunks', ','.join(str(max(1, n // 2)) for n in self.shape))
        self.run('write', 'r.brc', '/a', '--from', '-', data=self.values.astype(self.type.newbyteorder('<')).tobytes())

        rows = io.BytesIO(self.run('read', 'r.brc', '/a', '--format', 'csv'))
        if self.type.kind != 'b':  # NumPy has no text of them
            self.same('numpy.loadtxt', np.loadtxt(rows, delimiter=',', dtype=self.type, ndmin=2))
        rows.seek(0)
        read = {'header': None, 'dtype': self.type}
        self.same('pandas.read_csv', pd.read_csv(rows, **read).to_numpy())

        ours = pd.read_csv(io.BytesIO(self.run('read', 'r.brc', '/a', '--format', 'csv', '--coordinates')),
                           dtype={'value': self.type})
        theirs = self.frame()
        pd.testing.assert_frame_equal(ours, theirs, check_exact=True)
        # rows and columns in another order
        columns = [*self.random.permutation(list(theirs.columns[:-1])), 'value']
        shuffled = theirs.sample(frac=1, random_state=int(self.random.integers(1 << 31)))[columns]
        self.run('write', 'r.brc', '/b', '--csv', '-', data=shuffled.to_csv(index=False).encode())
        self.same('write --csv of DataFrame.to_csv', self.elements('/b'))

        table = self.values.reshape(self.shape[0], -1)
        named = bool(self.random.integers(2))
        pd.DataFrame(table, columns=[f'c{i}' for i in range(table.shape[1])]).to_csv(
            os.path.join(self.folder, 'x.csv'), index=False, header=named,
            lineterminator=self.random.choice(['\n', '\r\n']))
        self.run('import', 'r.brc', 'x.csv', '/c', '--dtype', self.type.name)
        self.same('import of DataFrame.to_csv', self.elements('/c'))
        self.run('export', 'r.brc', '/c', 'y.csv')
        again = pd.read_csv(os.path.join(self.folder, 'y.csv'), **{**read, 'header': 0 if named else None})
        self.same('pandas.read_csv of an export', again.to_numpy())
        assert not named or list(again.columns) == [f'c{i}' for i in range(table.shape[1])], again.columns


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('command')
    parser.add_argument('--count', type=int, default=100)
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    for number in range(options.count):
        with tempfile.TemporaryDirectory() as folder:
            table = Table(os.path.abspath(options.command), folder, np.random.default_rng([options.seed, number]))
            try:
                table.check()
            except AssertionError as error:
                sys.exit(f'tables: --seed {options.seed}, table {number}, {table.type} {table.shape}: {error}')
    print(f'tables: {options.count} tables are the same to NumPy, pandas and xarray')


if __name__ == '__main__':
    main()
