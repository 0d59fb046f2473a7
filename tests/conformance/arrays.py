"""The arrays of INDEX.jsonl: import, read, hash, export. Zips beside their directories."""
import functools
import hashlib
import json
import os
import zipfile

from command import Fail, Skip, Unreadable


def load(path):
    with open(path, encoding='utf-8-sig') as file:
        return json.load(file, parse_constant=lambda word: word)


def index(folder):
    with open(os.path.join(folder, 'INDEX.jsonl'), encoding='utf-8') as file:
        return [json.loads(line) for line in file]


def flat(value, depth):
    return value if depth == 0 else [leaf for item in value for leaf in flat(item, depth - 1)]


def content_hash(command, repo, path, row):
    """The hash that INDEX.md defines: of canonical bytes, or of a JSON list for optionals."""
    if not row['sha256'].endswith('(of JSON)'):
        return hashlib.sha256(command.must('read', repo, path, '--format', 'raw')).hexdigest()
    read = json.loads(command.must('read', repo, path, '--format', 'json'))
    values = flat(read['data'] if isinstance(read, dict) else read, len(row['shape']) - 1)
    while any(isinstance(value, list) for value in values):  # [x]: an optional that is there
        values = [value[0] if isinstance(value, list) else value for value in values]
    # The survey took all numbers for floats, those of uint8 as well.
    values = [float(value) if isinstance(value, int) else value for value in values]
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def is_sharded(codecs):
    return any((c if isinstance(c, str) else c.get('name')) == 'sharding_indexed' for c in codecs)


def files_of(top):
    found = {}
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, 'rb') as file:
                found[os.path.relpath(path, top)] = file.read()
    return found


def equal_json(a, b):
    """Equal as JSON, where 1 and 1.0 and true are three things."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal_json(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(equal_json, a, b))
    return type(a) is type(b) and a == b


METADATA = ('zarr.json', '.zarray', '.zattrs', '.zgroup', '.zmetadata', 'attributes.json')


def check_export(command, repo, source, work, row):
    """Checks that an export equals the import: metadata as JSON, chunks byte for byte."""
    out = os.path.join(work, 'out')
    version = ['--format', 'zarr2'] if row['format'] == 2 else []
    command.must('export', repo, '/a', out, *version)
    ours, theirs = files_of(out), files_of(source)
    if row['format'] == 3:
        before, after = json.loads(theirs['zarr.json']), json.loads(ours['zarr.json'])
        if not equal_json(before, after):
            wrong = [key for key in {**before, **after}
                     if not equal_json(before.get(key, ''), after.get(key, ''))]
            raise Fail(f'exported metadata differs in {", ".join(wrong)}')
        if is_sharded(before['codecs']):
            return check_again(command, repo, out, row)
    missing = False  # a chunk of nothing but the fill value, or outside of the array
    for key, data in theirs.items():
        if os.path.basename(key) in METADATA or data == ours.get(key):
            continue
        if key in ours:
            raise Fail(f'exported chunk {key} differs')
        missing = True
    return check_again(command, repo, out, row) if missing else None


def check_again(command, repo, exported, row):
    """Where the bytes may be others, what was exported must hold the same values."""
    command.must('import', repo, exported, '/again')
    if 'sha256' in row and content_hash(command, repo, '/again', row) != row['sha256'].split()[0]:
        raise Fail('what was exported holds other values')


def check_opaque(command, repo, source, work, row):
    """A row without a hash: kept and exported as it was, whether it can be read or not."""
    status, _, error = command.run('read', repo, '/a', '--format', 'raw')
    check_export(command, repo, source, work, row)
    if status == 0:
        raise Skip('read, but the index has no hash to compare with')
    raise Skip('not decoded by the survey either; kept as it is and refused: ' +
               error.rpartition(': ')[2][:60])


def check_array(folder, row, command, work):
    source = os.path.join(folder, row['path'])
    repo = os.path.join(work, 'r.brc')
    command.must('init', repo)
    if row['verified'] == 'reject case':
        status, _, _ = command.run('import', repo, source, '/a')
        if status == 0:
            raise Fail('imported, but must be refused')
        return
    command.must('import', repo, source, '/a')
    if 'sha256' not in row:
        return check_opaque(command, repo, source, work, row)
    try:
        got = content_hash(command, repo, '/a', row)
    except Fail as why:  # then the chunks are kept as they are
        check_export(command, repo, source, work, row)
        raise Unreadable(str(why)) from why
    if got != row['sha256'].split()[0]:
        raise Fail(f'other values: {row["dtype"]}, {row["codecs"]}, {row["rule"]}')
    info = command.json('info', repo, '/a')['metadata']
    if info['shape'] != row['shape']:
        raise Fail(f'shape {info["shape"]}, not {row["shape"]}')
    check_export(command, repo, source, work, row)
    return None


def check_n5(folder, row, command, work):
    repo = os.path.join(work, 'r.brc')
    command.must('init', repo)
    status, _, error = command.run('import', repo, os.path.join(folder, row['path']), '/a')
    if status == 0:
        raise Fail('imported, though it is no Zarr array')
    raise Skip('N5, not a Zarr array (refused)')


def check_tree(folder, tree, hashes, command, work):
    """A whole hierarchy at once, from a directory or a zip: every array below it."""
    repo = os.path.join(work, 'r.brc')
    command.must('init', repo)
    source = os.path.join(folder, tree)
    if tree.endswith('.zip') and not zipfile.is_zipfile(source):
        raise Skip('no zip file')
    command.must('import', repo, source, '/t')
    found = [node['path'] for node in command.json('ls', repo, '/t', '-r')
             if node['node_type'] == 'array']
    wrong = []
    for path in found:
        row = next((row for name, row in hashes.items() if path == '/t/' + name), None)
        if row is None:  # below a folder of the zip's own
            row = next((row for name, row in hashes.items() if path.endswith('/' + name)), None)
        if row is not None and content_hash(command, repo, path, row) != row['sha256']:
            wrong.append(path)
    if wrong:
        raise Fail('other values in ' + ', '.join(wrong[:3]))
    if not found:
        raise Fail('no array was imported')
    if not tree.endswith('.zip') and len(found) < len(hashes):
        raise Fail(f'{len(found)} arrays of {len(hashes)}')


def is_group(names, top):
    if '.zgroup' in names:
        return True
    return 'zarr.json' in names and load(os.path.join(top, 'zarr.json')).get('node_type') == 'group'


def tree_rows(folder, entries):
    trees = []
    for top, _, names in sorted(os.walk(folder)):
        inside = any(os.path.relpath(top, folder).startswith(tree + '/') for tree in trees)
        if not inside and is_group(names, top):
            trees.append(os.path.relpath(top, folder))
        trees += [os.path.relpath(os.path.join(top, name), folder)
                  for name in sorted(names) if name.endswith('.zip')]
    for tree in trees:
        base = tree if not tree.endswith('.zip') else os.path.dirname(tree) + '/data.zarr'
        hashes = {row['path'][len(base) + 1:]: row for row in entries
                  if row['path'].startswith(base + '/') and 'sha256' in row}
        if hashes:
            yield 'hierarchies', tree, functools.partial(
                check_tree, folder, tree, hashes)


def rows(folder):
    entries = index(folder)
    for row in entries:
        if row['format'] in (2, 3):
            yield row['source'], os.path.relpath(row['path'], row['source']), functools.partial(check_array, folder, row)
        elif row['format'] == 'n5':
            yield row['source'], os.path.relpath(row['path'], row['source']), functools.partial(check_n5, folder, row)
    yield from tree_rows(folder, entries)
