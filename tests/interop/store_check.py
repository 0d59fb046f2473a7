#!/usr/bin/env python3
"""store_check.py COMMAND LIBRARY [COUNT]: zarr-python writes through the key view and to a directory.

1. The same steps on both, COUNT (60) random ones a pipeline: arrays and groups are made, written,
   resized, appended to and deleted, v2 and consolidated metadata among them. After each step all
   keys are the same, documents are equal as JSON, and chunks decode to the same; commits come between.
   COMMAND reads the same elements.
2. A shape in zarr.json that shrinks and grows clears what it cuts, and chunks and shards keep the rest.
3. Many gets and sets at once, from several threads.
4. Versions whose chunks are stored as differences of each other.
5. zarr-python's machines of random operations on stores and hierarchies, against its store in memory.
"""
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import warnings

import numpy as np

COMMAND, LIBRARY = map(os.path.abspath, sys.argv[1:3])
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 60
os.environ['BRECCIA_LIB'] = LIBRARY
sys.path.append(os.path.join(os.path.dirname(__file__), '..', '..', 'python', 'tests'))

import zarr  # noqa: E402
from hierarchy import Hierarchy  # noqa: E402
from hypothesis import HealthCheck, Phase, settings  # noqa: E402
from hypothesis.stateful import run_state_machine_as_test  # noqa: E402
from key_store import BrecciaError, Handle, KeyStore  # noqa: E402
from zarr.core.buffer import cpu, default_buffer_prototype  # noqa: E402
from zarr.core.sync import sync  # noqa: E402
from zarr.storage import LocalStore  # noqa: E402
from zarr.testing.stateful import ZarrStoreStateMachine  # noqa: E402

warnings.simplefilter('ignore')
DOCUMENTS = 'zarr.json', '.zarray', '.zgroup', '.zattrs', '.zmetadata'
PIPELINES = {
    'plain': dict(zarr_format=3, chunks=(5, 4)),
    'empty chunks': dict(zarr_format=3, chunks=(5, 4), config={'write_empty_chunks': True}),
    'shards': dict(zarr_format=3, chunks=(5, 4), shards=(10, 12)),
    'v2 keys': dict(zarr_format=3, chunks=(5, 4), chunk_key_encoding={'name': 'v2', 'separator': '.'}),
    'v2': dict(zarr_format=2, chunks=(5, 4)),
}


def run(*args):
    return subprocess.run([COMMAND, *args], check=True, capture_output=True).stdout


def keys_of(store):
    async def collect():
        return sorted([key async for key in store.list()])
    return sync(collect())


def value_of(store, key):
    value = sync(store.get(key, prototype=default_buffer_prototype()))
    assert value is not None, key
    return value.to_bytes()


def chunks_of_shard(shard):
    """Its inner chunks in C order, None where there is none: zarr-python stores them in another order."""
    index = np.frombuffer(shard[-6 * 16 - 4:-4], '<u8').reshape(6, 2)
    return [None if at == 2**64 - 1 else shard[at:at + size] for at, size in index.tolist()]


class Both:
    """A file and a directory."""

    def __init__(self, folder):
        self.file, self.path = os.path.join(folder, 'b.brc'), os.path.join(folder, 'd')
        run('init', self.file, '-q')
        self.view, self.directory = KeyStore(self.file), LocalStore(self.path)
        sync(self.view._open())

    def each(self, step):
        """Done to both; the same comes out, or the same kind of failure."""
        results = []
        for store in self.view, self.directory:
            try:
                results.append(step(store))
            except (ValueError, KeyError, FileNotFoundError, TypeError) as error:
                results.append(type(error))
        assert np.array_equal(*results) if results[0] is not None else results[1] is None, results

    def commit(self, message):
        """Commits. Loose keys cannot be committed: the error must say so, and name a key."""
        handle = Handle(self.file)
        try:
            handle.commit(message)
            return True
        except BrecciaError as error:
            loose = [key for key in keys_of(self.view) if f"'{key}'" in str(error)]
            assert loose or 'nothing' in str(error), error
            return False
        finally:
            handle.close()

    def same(self, of_chunk=None):
        """of_chunk: what of a chunk's bytes must be the same; None: nothing."""
        ours, theirs = keys_of(self.view), keys_of(self.directory)
        assert ours == theirs, (set(ours) ^ set(theirs))
        for key in ours:
            mine, other = value_of(self.view, key), value_of(self.directory, key)
            if os.path.basename(key) in DOCUMENTS:
                assert json.loads(mine) == json.loads(other), key
            elif of_chunk:
                assert of_chunk(mine) == of_chunk(other), key

    def close(self):
        self.view.close()
        self.directory.close()


def resize(store, array, shape):
    """A smaller shape clears what it cuts in the file (docs/PYTHON.md); a directory keeps it, so it is cleared there."""
    if isinstance(store, LocalStore):
        for axis, size in enumerate(shape):
            array[(slice(None),) * axis + (slice(size, None),)] = array.fill_value
    array.resize(shape)


def step_of(rng, options):
    """A step, which gives what it reads; and its name."""
    name = f'g{rng.randrange(2)}/a{rng.randrange(3)}'
    kind = rng.choice(['make'] * 4 + ['write'] * 6 + ['resize', 'append', 'attribute', 'group', 'read'] * 2 +
                      ['delete', 'delete group', 'consolidate'])
    shape = rng.randrange(1, 25), rng.randrange(1, 25)
    seed, fill, version = rng.randrange(1 << 30), rng.choice([0, 7]), options['zarr_format']

    def step(store):
        numbers = np.random.default_rng(seed)
        if kind == 'make':
            zarr.create_array(store, name=name, shape=shape, dtype='int32', fill_value=fill,
                              overwrite=True, **options)
        elif kind == 'group':
            zarr.create_group(store, path=f'g{seed % 2}/h{seed % 3}', zarr_format=version, overwrite=False)
        elif kind == 'delete group':
            sync(store.delete_dir(f'g{seed % 2}'))
        elif kind == 'consolidate':
            zarr.consolidate_metadata(store, zarr_format=version)
        else:
            if kind == 'delete':
                sync(store.delete_dir(name))
                return None
            array = zarr.open_array(store, path=name, mode='r+', zarr_format=version,
                                    config=options.get('config'))
            if kind == 'write':
                at = [slice(*sorted((int(numbers.integers(0, n + 1)), int(numbers.integers(0, n + 1)))))
                      for n in array.shape]
                part = array[tuple(at)].shape
                array[tuple(at)] = numbers.integers(0, 3, part) if seed % 3 else fill
            elif kind == 'resize':
                resize(store, array, shape)
            elif kind == 'append':
                array.append(numbers.integers(0, 9, (seed % 4, *array.shape[1:])))
            elif kind == 'attribute':
                array.attrs['seed'] = seed
            return array[...]
        return None
    return step, f'{kind} {name} {shape} {seed}'


def hierarchies(count):
    steps = commits = arrays = 0
    for pipeline, options in PIPELINES.items():
        rng = random.Random(pipeline)
        with tempfile.TemporaryDirectory() as folder:
            both = Both(folder)
            if options['zarr_format'] == 2:
                both.each(lambda store: zarr.create_group(store, zarr_format=2) and None)
            for _ in range(count):
                step, what = step_of(rng, options)
                try:
                    both.each(step)
                    both.same()
                except AssertionError:
                    print(f'{pipeline}: {what}', file=sys.stderr)
                    raise
                steps += 1
                if rng.randrange(8) == 0:
                    commits += both.commit(what)
            both.same()
            for key in keys_of(both.directory):
                path, _, last = ('/' + key).rpartition('/')
                if last != 'zarr.json' or json.loads(value_of(both.directory, key))['node_type'] != 'array':
                    continue
                elements = run('read', both.file, path, '--format', 'raw')
                array = zarr.open_array(both.directory, path=path.strip('/'), mode='r')
                assert elements == array[...].astype('<i4').tobytes(), path
                arrays += 1
            run('fsck', both.file)
            both.close()
    print(f'{steps} steps on a file and on a directory, {commits} commits, {arrays} arrays read by the command')


def edges():
    """The document's shape alone changes: what a smaller one cuts is gone, and all else stays."""
    tried = 0
    for pipeline, options in PIPELINES.items():
        if options['zarr_format'] != 3:
            continue
        rng, content = random.Random(pipeline), chunks_of_shard if 'shards' in options else bytes
        with tempfile.TemporaryDirectory() as folder:
            both = Both(folder)
            numbers = np.arange(1, 20 * 24 + 1, dtype='int32').reshape(20, 24)
            least = numbers.copy()

            def make(store):
                array = zarr.create_array(store, name='a', shape=(20, 24), dtype='int32', compressors=None,
                                          filters=None, fill_value=0, **options)
                array[...] = numbers

            both.each(make)
            both.same(content)
            for i in range(12):
                shape = [rng.randrange(11, 21), rng.randrange(13, 25)] if i < 10 else [20, 24]
                least[shape[0]:, :] = least[:, shape[1]:] = 0

                def reshape(store):
                    if store is both.directory:
                        resize(store, zarr.open_array(store, path='a'), [min(pair) for pair in zip(shape, (20, 24))])
                    document = json.loads(value_of(store, 'a/zarr.json'))
                    document['shape'] = shape
                    sync(store.set('a/zarr.json', cpu.Buffer.from_bytes(json.dumps(document).encode())))
                    return zarr.open_array(store, path='a', mode='r')[...]

                both.each(reshape)
                both.same(content)
                if 'shards' in options:
                    assert both.commit(f'shape {shape}') or i >= 10
                tried += 1
            run('fsck', both.file)
            assert np.array_equal(zarr.open_array(both.view, path='a', mode='r')[...], least)
            both.close()
    print(f'{tried} shapes set by key')


def at_once():
    """Gets and sets that overlap."""
    with tempfile.TemporaryDirectory() as folder:
        both = Both(folder)
        array = zarr.create_array(both.view, name='a', shape=(400,), chunks=(10,), dtype='int64',
                                  fill_value=-1)

        async def work():
            await asyncio.gather(*[array._async_array.setitem(slice(i, i + 10), np.arange(i, i + 10))
                                   for i in range(0, 400, 10)])
            return await asyncio.gather(*[array._async_array.getitem(slice(i % 391, i % 391 + 10))
                                          for i in range(0, 4000, 7)])

        parts = sync(work())
        for i, part in zip(range(0, 4000, 7), parts):
            assert np.array_equal(part, np.arange(i % 391, i % 391 + 10)), i
        both.commit('all')
        raw = run('read', both.file, '/a', '--format', 'raw')
        assert raw == np.arange(400, dtype='<i8').tobytes()
        both.close()
    print(f'{len(parts)} reads at once, after 40 writes at once')


def deltas():
    """Versions of which most chunks are stored as differences, through the key view and by the command."""
    tried = 0
    for pipeline, options in PIPELINES.items():
        if options['zarr_format'] != 3:  # its keys are loose, and are not committed
            continue
        options = options | dict(chunks=(50, 40)) | (dict(shards=(100, 120)) if 'shards' in options else {})
        rng = np.random.default_rng(7)
        with tempfile.TemporaryDirectory() as folder:
            both = Both(folder)
            array = zarr.create_array(both.view, name='a', shape=(200, 240), dtype='int32', fill_value=0, **options)
            versions = [rng.integers(-1 << 31, 1 << 31, array.shape, dtype='int32')]
            for i in range(4):
                array[...] = versions[-1]
                assert both.commit(f'v{i}')
                run('tag', both.file, f'v{i}', '-q')
                versions.append(np.where(rng.random(array.shape) < 0.01, i, versions[-1]).astype('int32'))
            run('repack', both.file, '--delta', '-q')
            assert json.loads(run('info', both.file, '--json'))['deltas'] >= 3 * 24
            for i in range(4):
                run('switch', both.file, '-c', f'at{i}', f'v{i}', '-q')
                view = KeyStore(both.file)
                assert np.array_equal(zarr.open_array(view, path='a', mode='r')[...], versions[i])
                view.close()
                assert run('read', both.file, '/a', '--format', 'raw') == versions[i].astype('<i4').tobytes()
                tried += 1
            run('fsck', both.file)
            both.close()
    print(f'{tried} versions read, most of their chunks stored as differences')


def machines(count):
    limits = settings(max_examples=max(2, count // 12), stateful_step_count=25, deadline=None, derandomize=True,
                      database=None, phases=[Phase.generate],
                      suppress_health_check=list(HealthCheck))
    for machine in ZarrStoreStateMachine, Hierarchy:
        with tempfile.TemporaryDirectory() as folder:
            both = Both(folder)
            run_state_machine_as_test(lambda: machine(both.view), settings=limits)
            both.close()
    print(f"zarr-python's machines of store and of hierarchy operations: {limits.max_examples} runs each")


def main():
    hierarchies(COUNT)
    edges()
    at_once()
    deltas()
    machines(COUNT)


if __name__ == '__main__':
    main()
