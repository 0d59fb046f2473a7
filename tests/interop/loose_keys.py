#!/usr/bin/env python3
"""loose_keys.py FILE: sets keys of all kinds through libbreccia.so, for reader.py, and prints what
reader.py must find: keys that are not nodes or chunks, with their bytes, and hidden documents."""
import json
import sys

from key_store import Handle

ARRAY = dict(zarr_format=3, node_type='array', data_type='uint8', fill_value=0, attributes={},
             chunk_grid=dict(name='regular', configuration=dict(chunk_shape=[12])),
             chunk_key_encoding=dict(name='default'), codecs=[dict(name='sharding_indexed', configuration=dict(
                 chunk_shape=[4], codecs=[dict(name='bytes')],
                 index_codecs=[dict(name='bytes', configuration=dict(endian='little'))]))])
GROUP = b'{"zarr_format":3,"node_type":"group"}'
ABSENT = (1 << 64) - 1


def shard(parts):
    index, at = b'', 0
    for part in parts:
        for number in (at, len(part)) if part else (ABSENT, ABSENT):
            index += number.to_bytes(8, 'little')
        at += len(part)
    return b''.join(parts) + index


def main(path):
    handle = Handle(path)
    loose = {'copy/c/99/99/99': b'beyond the grid', 'no/array/c/0': b'\0\1\2', 'a': b'', 'a/b': b'below a key',
             'many/.zattrs': b'{}', 'bad/zarr.json': b'{', 'ä/ö': 'ß'.encode(), 'twice': b'first', 'empty/c/0': b''}
    handle.set_many(list(loose.items()))
    loose['twice'] = b'second'
    handle.set_many([('twice', b'second'), ('gone', b'x'), ('hid/den/zarr.json', GROUP),
                     ('sharded/zarr.json', json.dumps(ARRAY | dict(shape=[3])).encode()),
                     ('sharded/c/0', shard([b'\1\2\3\4', b'', b'\5\6\7\10']))])
    handle.delete('gone')
    handle.delete('copy/zarr.json')  # its chunks stay
    for key, value in loose.items():
        assert handle.get(key) == value, key
    rows = {key: value.hex() for key, value in loose.items()}
    rows |= {'hid/zarr.json': 'hidden', 'copy/zarr.json': 'hidden'}
    for key in sorted(rows, key=str.encode):
        assert (handle.get(key) is None) == (rows[key] == 'hidden'), key
        print(key, rows[key])
    handle.close()


if __name__ == '__main__':
    main(sys.argv[1])
