"""Whole hierarchies both ways: groups with attributes, consolidated metadata, zips.

zarr-python makes one, in a directory or a zip, of Zarr v2 or v3; the command imports it,
commits it and exports it in every container, and as a tar stream, which tarfile unpacks;
zarr-python reads all of that. A zip of zarr-python holds an entry twice where something was
written twice.
"""
import io
import json
import os
import tarfile

import numpy as np
import zarr
from zarr.storage import LocalStore, ZipStore

import elements
import generate
from generate import pick

TYPES = ['bool', 'int8', 'uint16', 'int32', 'uint64', 'float32', 'float64', 'complex64', 'string']
NAMES = ['a', 'B', 'temperature', '\u6e29\u5ea6', 'with space', 'x.y', 'c', '0', '-1', 'caf\u00e9', '1.0']


class Tree:
    """Random groups and arrays, by path."""

    def __init__(self, seed, number):
        rng = np.random.default_rng([seed, number, 5])
        self.name, self.codec_names = f't{number:05}', []
        self.version = pick(rng, [2, 3])
        self.consolidated = bool(rng.integers(2))
        self.zip = bool(rng.integers(2))
        self.groups, self.arrays = {'': generate.attributes(rng)}, {}
        for _ in range(int(rng.integers(1, 5))):
            self.groups[self.free(rng)] = generate.attributes(rng)
        for _ in range(int(rng.integers(1, 5))):
            shape, chunk = generate.random_shape(rng)
            name = pick(rng, TYPES)
            numbers = rng.integers(0, 100, size=shape)
            values = np.empty(shape, object)
            values[...] = numbers.astype(str) if name == 'string' and shape else str(numbers)
            self.arrays[self.free(rng)] = (name, chunk, generate.attributes(rng),
                                           values if name == 'string' else numbers.astype(name))

    def free(self, rng):
        while True:
            above, name = pick(rng, list(self.groups)), pick(rng, NAMES)
            path = f'{above}/{name}' if above else name
            if path not in self.groups and path not in self.arrays:
                return path

    def describe(self):
        return json.dumps([self.version, self.consolidated, self.zip, list(self.groups), [
            [path, name, chunk, list(values.shape)] for path, (name, chunk, _, values) in self.arrays.items()]])

    def write(self, place):
        store = ZipStore(place, mode='w') if self.zip else LocalStore(place)
        root = zarr.create_group(store, zarr_format=self.version, attributes=self.groups[''])
        for path, attributes in self.groups.items():
            if path:
                root.create_group(path, attributes=attributes)
        for path, (name, chunk, attributes, values) in self.arrays.items():
            array = root.create_array(path, shape=values.shape, dtype='str' if name == 'string' else name,
                                      chunks=tuple(chunk))
            array.attrs.update(attributes)
            if values.size:
                array[...] = values[()] if values.shape else values.item()
                array[...] = values[()] if values.shape else values.item()
        if self.consolidated:
            zarr.consolidate_metadata(store)
        store.close()

    @staticmethod
    def attributes_of(array):
        """Returns the attributes without the one that xarray needs for a scalar of v2, which is not ours."""
        seen = array.attrs.asdict()
        if array.shape == () and array.metadata.zarr_format == 2 and \
                seen.get('_ARRAY_DIMENSIONS') == []:
            del seen['_ARRAY_DIMENSIONS']
        return seen

    def compare(self, root):
        """Returns what zarr-python sees otherwise, or None."""
        found = {path: node for path, node in root.members(max_depth=None)}
        wanted = sorted([*self.groups, *self.arrays])[1:]
        if sorted(found) != wanted:
            return f'nodes {sorted(found)}, not {wanted}'
        found[''] = root
        for path, attributes in self.groups.items():
            if found[path].attrs.asdict() != attributes:
                return 'other attributes of a group'
        for path, (_, _, attributes, values) in self.arrays.items():
            if self.attributes_of(found[path]) != attributes:
                return 'other attributes of an array'
            if np.asarray(found[path][...]).astype(values.dtype).tolist() != values.tolist():
                return 'other values'
        return None

    def compare_ours(self, run, repo):
        listed = run('ls', repo, '/t', '-r', '--json')
        paths = sorted(node['path'] for node in json.loads(listed))
        wanted = sorted('/t' + ('/' + path if path else '') for path in [*self.groups, *self.arrays])
        if paths not in (wanted, [path for path in wanted if path != '/t']):
            return f'nodes {paths}, not {wanted}'
        documents = {**self.groups, **{path: part[2] for path, part in self.arrays.items()}}
        for path, attributes in documents.items():
            if json.loads(run('attrs', repo, f'/t/{path}'.rstrip('/'), '--json')) != attributes:
                return 'other attributes'
        for path, (name, _, _, values) in self.arrays.items():
            kind = elements.Type('string' if name == 'string' else 'number', name, name, values.dtype)
            if run('read', repo, f'/t/{path}', '--format', 'raw') != kind.canonical(values):
                return 'other values'
        return None


def open_tree(place, consolidated):
    store = ZipStore(place, mode='r') if place.endswith('.zip') else LocalStore(place, read_only=True)
    return zarr.open_group(store, mode='r', use_consolidated=consolidated)


def containers(tree):
    """The options of `export` that can say it, and the ending; no ending: a stream."""
    yield [], ''
    yield [], '.zarr'
    yield ['--consolidated'], '.consolidated.zarr'
    yield ['--consolidated'], '.zarr.zip'
    yield ['--format', 'zarr2'], '.v2.zarr'
    yield ['--format', 'zarr2', '--consolidated'], '.v2.zarr.zip'


def export(run, repo, out, ending, options):
    if ending:
        run('export', repo, '/t', out, '--unequal-dimensions', *options)
        return
    with tarfile.open(fileobj=io.BytesIO(run('export', repo, '/t', '-', *options)), mode='r|') as tar:
        tar.extractall(out)


def check(run, refused, seed, number, work, results):
    """`run` runs the command, and raises `refused`."""
    tree = Tree(seed, number)
    came = f'zarr-python hierarchy (v{tree.version}) -> breccia'
    place = os.path.join(work, tree.name + ('.zip' if tree.zip else ''))
    repo = os.path.join(work, tree.name + '.brc')
    try:
        tree.write(place)
        run('init', repo)
        run('import', repo, place, '/t')
        reason = tree.compare_ours(run, repo)
    except refused as why:
        reason = str(why)
    results.note(came, tree, reason)
    if reason is not None:
        return
    for options, ending in containers(tree):
        out = os.path.join(work, tree.name + (ending or '.untarred'))
        try:
            export(run, repo, out, ending, options)
            reason = tree.compare(open_tree(out, '--consolidated' in options))
        except Exception as why:  # whatever zarr-python may raise
            reason = f'{type(why).__name__}: {str(why)[:160]}'
        way = ' (v2)' if '.v2' in ending else '' if ending else ' (tar stream)'
        results.note('breccia -> zarr-python hierarchy' + way, tree, reason)
