"""The encoded buffers of numcodecs: each becomes the only chunk of a Zarr v2 array."""
import ast
import functools
import glob
import json
import math
import os
import re
import struct

from arrays import index, load
from command import Fail, Skip

FILTERS = ('delta', 'fixedscaleoffset', 'quantize', 'astype', 'packbits', 'base64', 'bitround')
TEXT = {'vlen-utf8': '|O', 'vlen-bytes': '|O', 'json2': '|O', 'json': '|O', 'categorize': '|O'}


def read_npy(path):
    """(descr, Fortran order, shape, data bytes in file order) of a .npy that is not a pickle."""
    with open(path, 'rb') as file:
        head = file.read(10)
        size = struct.unpack('<H', head[8:10])[0]
        header = ast.literal_eval(file.read(size).decode('latin-1'))
        return header['descr'], header['fortran_order'], header['shape'], file.read()


def c_order(elements, shape):
    """Elements that lie in Fortran order, in C order."""
    strides = [math.prod(shape[:axis]) for axis in range(len(shape))]
    out = []
    for at in range(math.prod(shape)):
        source = 0
        for axis in reversed(range(len(shape))):
            at, i = divmod(at, shape[axis])
            source += i * strides[axis]
        out.append(elements[source])
    return out


def text_element(value):
    """A canonical element of variable length."""
    if isinstance(value, str):
        data = value.encode()
    elif isinstance(value, dict) and 'hex' in value:
        data = bytes.fromhex(value['hex'])
    else:
        raise Skip('Python objects other than texts and bytes')
    return struct.pack('<I', len(data)) + data


def expected(array):
    """(descr, Fortran order, shape, canonical bytes) of what a buffer decodes to."""
    descr, fortran, shape, data = read_npy(array)
    if '|O' in descr:
        told = array[:-4] + '.expected.json'
        if not os.path.exists(told):
            raise Skip('a pickle without a list of what it holds')
        told = load(told)
        shape, fortran = told['shape'], told['memory_order'] == 'F'
        elements = [text_element(value) for value in told['elements_in_memory_order']]
    else:
        size = int(re.search('[0-9]+', descr).group()) * (4 if 'U' in descr else 1)
        elements = [data[at:at + size] for at in range(0, len(data), size)]
    return descr, fortran, shape, b''.join(c_order(elements, shape) if fortran else elements)


def put_array(folder, config, descr, fortran, shape, chunk):
    doc = {'zarr_format': 2, 'shape': list(shape), 'chunks': [max(n, 1) for n in shape],
           'dtype': descr, 'compressor': None, 'filters': None, 'fill_value': None,
           'order': 'F' if fortran else 'C'}
    if config['id'] in FILTERS or config['id'] in TEXT:
        doc['filters'] = [config]
    else:
        doc['compressor'] = config
    os.makedirs(folder)
    with open(os.path.join(folder, '.zarray'), 'w', encoding='utf-8') as file:
        json.dump(doc, file)
    with open(os.path.join(folder, '.'.join('0' for _ in shape) or '0'), 'wb') as file:
        file.write(chunk)


FORMATS = {'f2': 'e', 'f4': 'f', 'f8': 'd'}


def numbers(data, descr):
    size = int(descr[2:])
    code = FORMATS.get(descr[1:]) or {'i': 'bhiq', 'u': 'BHIQ'}[descr[1]][size.bit_length() - 1]
    return struct.unpack(f'<{len(data) // size}{code}', data)


def near(got, want, descr, config):
    """Equal within what a lossy codec may change."""
    if config['id'] == 'quantize':
        allowed = 0.5 * 10.0 ** -config['digits']
    elif config['id'] == 'fixedscaleoffset':
        allowed = 0.5 / config['scale']
    else:
        allowed = 1e-8
    relative = 1e-3 if 'f2' in config.get('astype', '') else 1e-5  # half of a float16's last bit
    for a, b in zip(numbers(got, descr), numbers(want, descr)):
        if abs(a - b) > allowed + relative * abs(b):
            return False
    return len(got) == len(want)


def check_buffer(array, encoded, config, exact, command, work):
    descr, fortran, shape, want = expected(array)
    with open(encoded, 'rb') as file:
        put_array(os.path.join(work, 'a'), config, descr, fortran, shape, file.read())
    repo = os.path.join(work, 'r.brc')
    command.must('init', repo)
    command.must('import', repo, os.path.join(work, 'a'), '/a')
    got = command.must('read', repo, '/a', '--format', 'raw')
    if got != want and (exact or not near(got, want, descr, config)):
        raise Fail(f'other values: {descr}, {json.dumps(config)}')


def rows(folder):
    for row in index(folder):
        if row['format'] != 'numcodecs codec fixture':
            continue
        top = os.path.join(folder, row['path'])
        with open(os.path.join(top, 'config.json'), encoding='utf-8') as file:
            config = json.load(file)
        exact = 'allclose' not in row['verified'] and 'within' not in row['verified'] \
            and 'float32(x)' not in row['verified']
        for encoded in sorted(glob.glob(os.path.join(glob.escape(top), 'encoded.*'))):
            number = os.path.basename(encoded).split('.')[1]
            array = os.path.join(os.path.dirname(top), f'array.{number}.npy')
            if os.path.exists(array):
                yield 'numcodecs', f'{row["path"][10:]}/{number}', functools.partial(
                    check_buffer, array, encoded, config, exact)
