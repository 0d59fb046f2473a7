"""Metadata documents that must be accepted or refused, and chunks that are damaged."""
import functools
import json
import os
import re
import struct

from arrays import load
from command import Fail

NAMES = {'v3-array': 'zarr.json', 'v3-group': 'zarr.json', 'v2-array': '.zarray'}


def put_text(work, name, text):
    top = os.path.join(work, 'node')
    os.makedirs(top)
    with open(os.path.join(top, name), 'w', encoding='utf-8') as file:
        file.write(text)
    return top


def offer(command, work, name, text):
    """(imported, read, error): whether a document was taken, and whether its array reads."""
    repo = os.path.join(work, 'r.brc')
    command.must('init', repo)
    status, _, error = command.run('import', repo, put_text(work, name, text), '/a')
    if status:
        return False, False, error
    if command.json('info', repo, '/a')['node_type'] == 'group':
        return True, True, ''
    command.must('ls', repo, '-l')
    status, _, error = command.run('read', repo, '/a', '[:3]' if '"shape": []' not in text else '...')
    return True, status == 0, error


def accept(command, work, name, text):
    imported, read, error = offer(command, work, name, text)
    if not imported or not read:
        raise Fail(('read' if imported else 'import') + ' refused it: ' + error)


# Unknown codecs and data types are kept as opaque chunks, and refused when they are read.
OPAQUE = ('codecs_unknown', 'dtype_uint17', 'dtype_char')
# Texts whose error can name no member.
NOT_JSON = ('trailing_comma', 'empty_text', 'not_object', 'nan_literal_fill', 'nan_literal_attr',
            'dup_key')


def check_case(case, command, work):
    text = case['text'] if 'text' in case else json.dumps(case['doc'])
    name = NAMES[case['kind']]
    if case['expect'] == 'accept':
        return accept(command, work, name, text)
    imported, read, error = offer(command, work, name, text)
    if case['expect'] == 'either':
        return None
    if imported and (read or case['name'] not in OPAQUE):
        raise Fail('imported, but must be refused' + (f' ({case["note"]})' if case['note'] else ''))
    if case['name'] not in NOT_JSON and not re.search(r'/[a-z_]+', error.replace(work, '')):
        raise Fail('the refusal names no member: ' + error)
    return None


def check_document(path, command, work):
    """A whole document of zarr-metadata/."""
    with open(path, encoding='utf-8') as file:
        text = file.read()
    doc = json.loads(text)
    if 'kind' in doc:  # the consolidated metadata of a group
        doc = {'zarr_format': 3, 'node_type': 'group', 'consolidated_metadata': doc}
        return accept(command, work, 'zarr.json', json.dumps(doc))
    if 'zarr_consolidated_format' in doc:
        top = put_text(work, '.zmetadata', text)
        with open(os.path.join(top, '.zgroup'), 'w', encoding='utf-8') as file:
            file.write('{"zarr_format": 2}')
        repo = os.path.join(work, 'r.brc')
        command.must('init', repo)
        command.must('import', repo, top, '/a')
        return None
    if doc['zarr_format'] == 3:
        name = 'zarr.json'
    else:
        name = '.zarray' if 'shape' in doc else '.zgroup'
    return accept(command, work, name, text)


def wrap(kind, name, part, folder):
    """A document around one codec, grid, key encoding or fill value."""
    doc = {'zarr_format': 3, 'node_type': 'array', 'shape': [128], 'data_type': 'uint8',
           'chunk_grid': {'name': 'regular', 'configuration': {'chunk_shape': [128]}},
           'chunk_key_encoding': {'name': 'default'}, 'fill_value': 0, 'codecs': ['bytes']}
    conf = part.get('configuration', {}) if isinstance(part, dict) else {}
    if kind == 'codec':
        rank = len(conf.get('order', conf.get('chunk_shape', [0])))
        doc['shape'] = doc['chunk_grid']['configuration']['chunk_shape'] = [128] * rank
        if name in ('bytes', 'sharding_indexed'):
            doc['codecs'] = [part]
        elif name in ('transpose', 'scale_offset', 'cast_value'):
            doc['data_type'] = 'uint8' if name == 'transpose' else 'float32'
            doc['codecs'] = [part, {'name': 'bytes', 'configuration': {'endian': 'little'}}]
        else:
            doc['codecs'].append(part)
    elif kind == 'chunk_grid':
        doc['chunk_grid'] = part
        sizes = conf.get('chunk_shapes', conf.get('chunk_shape'))
        doc['shape'] = [1] * len(sizes)
    elif kind == 'chunk_key_encoding':
        doc['chunk_key_encoding'] = part
    else:
        own = os.path.join(folder, 'data_type.json')
        full = {'numpy_datetime64': 'numpy.datetime64', 'numpy_timedelta64': 'numpy.timedelta64'}
        doc['data_type'] = load(own) if os.path.exists(own) else \
            {'raw': 'r32'}.get(name, full.get(name, name))
        doc['fill_value'] = part
        doc['codecs'] = [{'string': 'vlen-utf8', 'bytes': 'vlen-bytes'}.get(
            name, {'name': 'bytes', 'configuration': {'endian': 'little'}})]
    return doc


def check_part(kind, name, part, folder, command, work):
    accept(command, work, 'zarr.json', json.dumps(wrap(kind, name, part, folder)))


def metadata_rows(folder):
    for top, _, files in sorted(os.walk(os.path.join(folder, 'zarr-metadata'))):
        for file in sorted(files):
            path = os.path.join(top, file)
            short = os.path.relpath(path, os.path.join(folder, 'zarr-metadata'))[:-5]
            kind, _, name = os.path.relpath(top, os.path.join(folder, 'zarr-metadata/v3')).partition('/')
            if file in ('cases.json', 'fill_values.json'):
                for case, part in load(path).items():
                    yield 'zarr-metadata', f'{short}/{case}', functools.partial(
                        check_part, kind, name, part, top)
            elif file.endswith('.json') and file != 'data_type.json':
                yield 'zarr-metadata', short, functools.partial(check_document, path)


def check_unsupported(path, command, work):
    """A document that zarrs refuses is refused cleanly or supported."""
    offer(command, work, 'zarr.json', json.dumps(load(path)['array_metadata']))


def canonical(words, dtype):
    """The elements of a row of the index's text, e.g. "0 1 2 3" or "a,,e,dd"."""
    if dtype == 'string':
        texts = [text.encode() for text in words.split(',')]
        return b''.join(struct.pack('<I', len(text)) + text for text in texts)
    if dtype == 'bool':
        return bytes(word == 'T' for word in words.split())
    return struct.pack('<4i', *map(int, words.split()))


def check_chunk(path, dtype, expected, command, work):
    repo = os.path.join(work, 'r.brc')
    command.must('init', repo)
    status, data, error = command.run('import', repo, path, '/a')
    if status == 0:
        status, data, error = command.run('read', repo, '/a', '--format', 'raw')
    words = expected.replace(' (or error)', '')
    if status:
        if 'error' not in expected:
            raise Fail(error)
    elif expected == 'error':
        raise Fail(f'read without an error: {data.hex()}')
    elif 'error' not in words and data != canonical(words, dtype):
        raise Fail(f'other values: {data.hex()}, not {words}')


def chunk_rows(folder):
    with open(os.path.join(folder, 'INDEX.md'), encoding='utf-8') as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip('| \n').split('|')]
            if cells[0].startswith('corrupt-chunks/'):
                path = os.path.join(folder, cells[0])
                dtype = cells[1].partition(';')[0]
                yield 'corrupt-chunks', cells[0][15:], functools.partial(
                    check_chunk, path, dtype, cells[-1])


def rows(folder):
    with open(os.path.join(folder, 'metadata-cases', 'cases.jsonl'), encoding='utf-8') as file:
        for line in file:
            case = json.loads(line)
            yield f'metadata-cases ({case["expect"]})', case['name'], functools.partial(
                check_case, case)
    yield from metadata_rows(folder)
    yield from chunk_rows(folder)
    for top, _, files in sorted(os.walk(os.path.join(folder, 'zarrs-snapshots', 'unsupported'))):
        for file in files:
            yield 'zarrs-snapshots (unsupported)', os.path.relpath(
                os.path.join(top, file), folder)[28:-5], functools.partial(
                    check_unsupported, os.path.join(top, file))
