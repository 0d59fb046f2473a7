"""Data types of generated arrays: random values, fill values and canonical bytes.

A canonical element is what `breccia read --format raw` writes: little-endian, packed,
one byte an element below a byte (sign-extended); of variable length a little-endian
uint32 and so many bytes.
"""
import base64
import struct

import ml_dtypes
import numpy as np

NUMBERS = ['bool', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64',
           'float16', 'float32', 'float64', 'complex64', 'complex128']
# Types of the registry beyond the core that numpy knows through ml_dtypes.
SMALL = ['bfloat16', 'int2', 'int4', 'uint2', 'uint4', 'float8_e3m4', 'float8_e4m3',
         'float8_e4m3b11fnuz', 'float8_e4m3fnuz', 'float8_e5m2', 'float8_e5m2fnuz',
         'float8_e8m0fnu', 'float6_e2m3fn', 'float6_e3m2fn', 'float4_e2m1fn', 'float8_e4m3fn']
# The types that complex_<...> is made of; the registry has none for float8_e4m3fn.
PARTS = ['float16', 'float32', 'float64', *(name for name in SMALL if 'int' not in name)][:-1]
BITS = {'int2': 2, 'uint2': 2, 'int4': 4, 'uint4': 4, 'float6_e2m3fn': 6, 'float6_e3m2fn': 6,
        'float4_e2m1fn': 4}
# The canonical NaN's bits.
NAN = {'float16': 0x7e00, 'float32': 0x7fc00000, 'float64': 0x7ff8000000000000,
       'bfloat16': 0x7fc0, 'float8_e3m4': 0x78, 'float8_e4m3': 0x7c, 'float8_e5m2': 0x7e,
       'float8_e4m3b11fnuz': 0x80, 'float8_e4m3fnuz': 0x80, 'float8_e5m2fnuz': 0x80,
       'float8_e8m0fnu': 0xff, 'float8_e4m3fn': 0x7f}
UNITS = ['Y', 'M', 'W', 'D', 'h', 'm', 's', 'ms', 'us', 'ns', 'ps', 'fs', 'as', 'generic']
WORDS = ['', 'a', 'Zarr', 'h\u00e9llo', '\u4e16\u754c', '\U0001f30d', 'line\nbreak', '"quoted"', 'x' * 40]


class Type:
    """A data type of an array: its name in zarr.json, and how numpy keeps it.

    kind: number, small, pair (complex numbers of those that are not numpy's), raw, time,
    utf32, chars, string, bytes, struct (of v2) or record (of v3; `fields` are types)."""

    def __init__(self, kind, name, json_type, dtype):
        self.kind, self.name, self.json, self.dtype = kind, name, json_type, dtype
        self.variable = kind in ('string', 'bytes')

    @property
    def size(self):
        """Bytes of an element; 0 where they vary."""
        return 0 if self.variable else self.dtype.itemsize

    @property
    def wide(self):
        """Returns whether an order of bytes has to be given."""
        if self.kind in ('raw', 'chars', 'struct') or self.variable:
            return False
        if self.kind == 'pair':
            return self.dtype.itemsize > 2
        if self.kind == 'record':
            return any(field.wide for field in self.fields.values())
        return self.kind in ('utf32', 'time') or self.dtype.itemsize > 1

    def canonical(self, values):
        """The elements of an array, one after the other in C order."""
        values = np.ascontiguousarray(values)
        if self.variable:
            texts = [v.encode() if isinstance(v, str) else bytes(v) for v in values.ravel()]
            return b''.join(struct.pack('<I', len(text)) + text for text in texts)
        if self.name in ('int2', 'int4'):
            return values.astype(np.int8).tobytes()
        if self.name in ('uint2', 'uint4'):
            return values.astype(np.uint8).tobytes()
        return values.tobytes()

    def empty(self, shape):
        return np.empty(shape, dtype=object if self.variable else self.dtype)

    def filled(self, shape, element):
        """An array of one element, bit for bit."""
        out = self.empty(shape)
        if self.variable:
            out[...] = element
        elif out.size:
            out.reshape(-1).view(np.uint8).reshape(-1, self.size)[...] = \
                np.frombuffer(np.array([element], self.dtype).tobytes(), np.uint8)
        return out

    def random(self, rng, count, odd):
        """`count` elements; `odd` adds infinities, NaN with payloads and the like."""
        if self.variable:
            out = np.empty(count, dtype=object)
            for i in range(count):
                word = WORDS[rng.integers(len(WORDS))] + str(rng.integers(100)) * int(rng.integers(2))
                out[i] = word if self.kind == 'string' else word.encode() + bytes(rng.bytes(2))
            return out
        if self.kind == 'utf32':
            width = self.size // 4
            return np.array([WORDS[i][:width].rstrip('\0') for i in rng.integers(len(WORDS), size=count)],
                            dtype=self.dtype).reshape(count)
        if self.kind == 'chars':
            letters = rng.integers(1, 256, size=count * self.size, dtype=np.uint8)
            return letters.view(self.dtype).copy()
        if self.kind == 'struct':
            out = np.empty(count, self.dtype)
            for name in self.dtype.names:
                field = self.dtype[name]
                out[name] = Type('number', field.name, field.name, field).random(rng, count, odd)
            return out
        if self.kind == 'pair':
            return self.part.random(rng, 2 * count, odd).view(self.dtype).copy()
        if self.kind == 'record':
            out = np.zeros(count, self.dtype)
            for name, field in self.fields.items():
                out[name] = field.random(rng, count, odd)
            return out
        if self.name == 'bool':
            return rng.integers(2, size=count).astype(bool)
        if self.kind == 'small':
            return self.random_small(rng, count, odd)
        bits = np.frombuffer(rng.bytes(count * self.size), np.uint8)
        if self.dtype.kind not in 'fc':
            plain = bits.view(self.dtype).copy()
            if self.kind == 'number' and rng.integers(2):  # small numbers, as data has them
                plain = (np.arange(count) % 100).astype(self.dtype)
            return plain
        part = np.dtype(f'f{self.size // (2 if self.dtype.kind == "c" else 1)}')
        parts = rng.normal(size=count * self.size // part.itemsize).astype(part) * part.type(100)
        if odd:
            strange = rng.integers(3, size=parts.size) == 0
            parts[strange] = bits.view(part)[strange]
            special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, np.finfo(part).smallest_subnormal,
                                np.finfo(part).max], part)
            strange = rng.integers(5, size=parts.size) == 0
            parts[strange] = special[rng.integers(special.size, size=parts.size)][strange]
        return parts.view(self.dtype).copy()

    def random_small(self, rng, count, odd):
        if self.name == 'bfloat16':
            if odd:
                return np.frombuffer(rng.bytes(count * 2), np.uint8).view(self.dtype).copy()
            return rng.normal(size=count).astype(np.float32).astype(self.dtype)
        bits = BITS.get(self.name, 8)
        codes = rng.integers(2 ** bits, size=count, dtype=np.uint16).astype(np.uint8)
        if self.name.startswith('int'):  # sign-extended
            codes = np.where(codes >> (bits - 1), codes | (0xff << bits) & 0xff, codes).astype(np.uint8)
        return codes.view(self.dtype).copy()

    def fill(self, rng, odd):
        """(element, JSON of it); the element is a numpy scalar, str or bytes."""
        if self.variable:
            word = WORDS[rng.integers(len(WORDS))] if rng.integers(2) else ''
            if self.kind == 'string':
                return word, word
            return word.encode(), base64.b64encode(word.encode()).decode()
        if rng.integers(3) == 0 and self.kind != 'record':
            element = np.zeros(1, self.dtype)[0]
            if self.name == 'float8_e8m0fnu':
                element = np.ones(1, self.dtype)[0]
        else:
            element = self.random(rng, 1, odd)[0]
        return element, self.fill_json(element, rng)

    def fill_json(self, element, rng):
        if self.name == 'bool':
            return bool(element)
        if self.kind == 'utf32':
            return str(element)
        if self.kind == 'chars':
            return base64.b64encode(element.ljust(self.size, b'\0')).decode()
        if self.kind == 'struct':
            return None  # of v2 alone, where version2 says it
        if self.kind == 'pair':
            parts = np.array([element], self.dtype).view(self.part.dtype)
            in_bits = bool(rng.integers(2))  # as zarrs has them of the small types
            return [float_json(self.part.name, np.array(part), rng, in_bits) for part in parts]
        if self.name == 'structured':
            return base64.b64encode(element.tobytes()).decode()
        if self.kind == 'record':
            return {name: field.fill_json(element[name], rng) for name, field in self.fields.items()}
        if self.kind == 'raw':
            raw = list(element.tobytes())
            return base64.b64encode(bytes(raw)).decode() if self.name == 'raw_bytes' else raw
        if self.kind == 'time':
            number = int(np.array(element).view(np.int64))
            return 'NaT' if number == -2 ** 63 and rng.integers(2) else number
        if self.dtype.kind == 'c':
            part = 'float32' if self.size == 8 else 'float64'
            return [float_json(part, np.array(p), rng) for p in (element.real, element.imag)]
        if self.dtype.kind in 'iu' or self.name in ('int2', 'int4', 'uint2', 'uint4'):
            return int(element)
        return float_json(self.name, np.array(element), rng)


def float_json(name, element, rng, in_bits=False):
    code = int.from_bytes(element.tobytes(), 'little')
    digits = f'0x{code:0{2 * element.itemsize}x}'
    value = float(element)
    if in_bits:
        return digits
    if value != value:
        return 'NaN' if code == NAN.get(name) else digits
    if value in (np.inf, -np.inf):
        return 'Infinity' if value > 0 else '-Infinity'
    return digits if rng.integers(2 if name in SMALL else 6) == 0 else value


def choose_pair(rng):
    part = PARTS[rng.integers(len(PARTS))]
    kind = Type('pair', f'complex_{part}', f'complex_{part}', None)
    kind.part = Type('number' if part in NUMBERS else 'small', part, part,
                     np.dtype(part if part in NUMBERS else getattr(ml_dtypes, part)))
    kind.dtype = np.dtype(f'V{2 * kind.part.size}')
    return kind


def choose_record(rng, old, depth=1):
    """struct, or the structured that zarr-python wrote before it: a field is a number, a
    text of fixed length, a time, or a struct."""
    fields = {}
    for number in range(int(rng.integers(1, 5))):
        field = choose(rng, 'number')
        if rng.integers(3) == 0:
            field = choose(rng, 'other')
        if field.variable or field.kind == 'raw' or field.kind == 'time' and 'generic' in str(field.json):
            field = choose_record(rng, old, depth - 1) if depth else choose(rng, 'number')
        fields[f'f{number}' if number else 'name'] = field
    name = 'structured' if old else 'struct'
    told = [[key, field.json] if old else {'name': key, 'data_type': field.json}
            for key, field in fields.items()]
    kind = Type('record', name, {'name': name, 'configuration': {'fields': told}},
                np.dtype([(key, field.dtype) for key, field in fields.items()]))
    kind.fields = fields
    return kind


def choose(rng, what):
    """A random data type of a kind: 'number', 'small', 'pair', 'record' or 'other'."""
    if what == 'pair':
        return choose_pair(rng)
    if what == 'record':
        return choose_record(rng, rng.integers(2) == 0)
    if what == 'number':
        name = NUMBERS[rng.integers(len(NUMBERS))]
        return Type('number', name, name, np.dtype(name))
    if what == 'small':
        name = SMALL[rng.integers(len(SMALL))]
        return Type('small', name, name, np.dtype(getattr(ml_dtypes, name)))
    kind = ('raw', 'time', 'utf32', 'chars', 'string', 'bytes')[rng.integers(6)]
    if kind == 'raw':
        size = int(rng.integers(1, 9))
        name = ('raw_bytes', f'r{8 * size}')[rng.integers(2)]
        doc = name if name != 'raw_bytes' else {'name': name, 'configuration': {'length_bytes': size}}
        return Type(kind, name, doc, np.dtype(f'V{size}'))
    if kind == 'time':
        unit, count = UNITS[rng.integers(len(UNITS))], int(rng.choice([1, 10, 25]))
        name = ('numpy.datetime64', 'numpy.timedelta64')[rng.integers(2)]
        count = 1 if unit == 'generic' else count
        suffix = '' if unit == 'generic' else f'[{count}{unit}]'
        doc = {'name': name, 'configuration': {'unit': unit, 'scale_factor': count}}
        return Type(kind, name, doc, np.dtype(('M8' if 'date' in name else 'm8') + suffix))
    if kind in ('utf32', 'chars'):
        width = int(rng.integers(1, 8))
        name = 'fixed_length_utf32' if kind == 'utf32' else 'null_terminated_bytes'
        dtype = np.dtype(f'U{width}' if kind == 'utf32' else f'S{width}')
        return Type(kind, name, {'name': name, 'configuration': {'length_bytes': dtype.itemsize}}, dtype)
    name = 'string' if kind == 'string' else ('bytes', 'variable_length_bytes')[rng.integers(2)]
    return Type(kind, name, name, np.dtype(object))
