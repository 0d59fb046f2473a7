"""hdf5_import.py COMMAND [MIB]: how long the import of HDF5 takes, as a ratio.

The other side of the ratio is h5py's read of the same file and our own write of the same
elements (the import of a .npy) together, in the same run. At most 1 is what is wanted. Needs
h5py, in a virtual environment below build/, say; each is done three times, and the best counts.
"""
import os
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

KINDS = {
    'gzip and shuffle': dict(chunks=(256, 1024), compression='gzip', compression_opts=1, shuffle=True),
    'contiguous': {},
    'chunks without a filter': dict(chunks=(256, 1024)),
}


def best(action, times=3):
    seen = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        seen.append(time.perf_counter() - start)
    return min(seen)


def import_new(command, folder, source):
    repo = os.path.join(folder, 'r.brc')
    if os.path.exists(repo):
        os.remove(repo)
    subprocess.run([command, 'init', repo], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([command, 'import', repo, source, '/x'], check=True, stdout=subprocess.DEVNULL)


def main():
    command = os.path.abspath(sys.argv[1])
    rows = int(sys.argv[2] if len(sys.argv) > 2 else 500) * 32  # of 32 KiB
    steps = np.random.default_rng(0).standard_normal((rows, 8192)).astype('f4')
    data = np.cumsum(steps, axis=1, dtype='f4')
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, 'x.npy')
        np.save(plain, data)
        write = best(lambda: import_new(command, folder, plain))
        for kind, options in KINDS.items():
            file = os.path.join(folder, 'x.h5')
            with h5py.File(file, 'w') as f:
                f.create_dataset('d', data=data, **options)
            with h5py.File(file) as f:
                read = best(lambda: f['d'][...])
            took = best(lambda: import_new(command, folder, file))
            print(f'{kind:24} import {took:.2f} s, h5py reads in {read:.2f} s, our write {write:.2f} s: '
                  f'ratio {took / (read + write):.2f}')
            os.remove(file)


if __name__ == '__main__':
    main()
