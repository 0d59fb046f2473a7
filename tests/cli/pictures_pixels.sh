# The pixels of pictures, decoded by programs that know nothing of breccia: PNG, kitty, sixel and half blocks.
. "$CLI_TESTS/common.inc"

command -v python3 >/dev/null || skip 'there is no Python'

q init r.brc
q create r.brc /probe --shape 2,2 --dtype uint8
breccia read r.brc /probe -o probe.png

cat >decode.py <<'P'
"""decode.py KIND FILE: the pixels, a row a line: RRGGBB, and .AA where they are not opaque."""
import base64, re, struct, sys, zlib


def unfilter(raw, height, stride, bpp):
    out, before, at = [], bytearray(stride), 0
    for _ in range(height):
        kind, row, at = raw[at], bytearray(raw[at + 1:at + 1 + stride]), at + 1 + stride
        for i in range(stride):
            left = row[i - bpp] if i >= bpp else 0
            up, corner = before[i], before[i - bpp] if i >= bpp else 0
            p = left + up - corner
            near = min((abs(p - left), 0, left), (abs(p - up), 1, up), (abs(p - corner), 2, corner))[2]
            row[i] = row[i] + (0, left, up, (left + up) // 2, near)[kind] & 255
        out.append(row)
        before = row
    assert at == len(raw)
    return out


def png(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, parts = 8, {}
    while at < len(data):
        n, kind = struct.unpack(">I4s", data[at:at + 8])
        body, crc = data[at + 8:at + 8 + n], data[at + 8 + n:at + 12 + n]
        assert struct.unpack(">I", crc)[0] == zlib.crc32(kind + body)
        parts[kind] = parts.get(kind, b"") + body
        at += 12 + n
    width, height, depth, kind, *rest = struct.unpack(">IIBBBBB", parts[b"IHDR"])
    assert depth == 8 and rest == [0, 0, 0]
    bpp = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind]
    rows = unfilter(zlib.decompress(parts[b"IDAT"]), height, width * bpp, bpp)
    palette = parts.get(b"PLTE", b"")
    print({0: "grey", 2: "RGB", 3: "palette", 4: "grey and opacity", 6: "RGBA"}[kind], f"{width}x{height}")
    for row in rows:
        cells = [bytes(row[i:i + bpp]) for i in range(0, len(row), bpp)]
        yield [c if kind == 6 else c + b"\xff" if kind == 2 else palette[c[0] * 3:c[0] * 3 + 3] + b"\xff" if kind == 3
               else c[:1] * 3 + (c[1:] or b"\xff") for c in cells]


def kitty(data):
    parts = re.findall(rb"\x1b_G([^;]*);([^\x1b]*)\x1b\\", data)
    keys = dict(k.split(b"=") for k in parts[0][0].split(b","))
    assert keys[b"a"] == b"T" and keys[b"f"] == b"32" and keys[b"q"] == b"2"
    assert all(len(p) <= 4096 for _, p in parts)
    assert [dict(k.split(b"=") for k in head.split(b","))[b"m"] for head, _ in parts] == [b"1"] * (len(parts) - 1) + [b"0"]
    width, height = int(keys[b"s"]), int(keys[b"v"])
    pixels = b"".join(base64.b64decode(p) for _, p in parts)
    assert len(pixels) == width * height * 4
    print(f"kitty {width}x{height}")
    for y in range(height):
        yield [pixels[(y * width + x) * 4:][:4] for x in range(width)]


def sixel(data):
    body = re.search(rb"\x1bP0;1;0q(.*?)\x1b\\", data, re.S)[1]
    width, height = map(int, re.match(rb'"1;1;(\d+);(\d+)', body).groups())
    print(f"sixel {width}x{height}")
    grid, colors, x, y, color = [[b"\0" * 4] * width for _ in range(height)], {}, 0, 0, None
    for token in re.finditer(rb"#(\d+)(?:;2;(\d+);(\d+);(\d+))?|!(\d+)([?-~])|([?-~])|([$-])", body[body.index(b"#"):]):
        number, r, g, b, times, run, one, move = token.groups()
        if r is not None:
            colors[int(number)] = bytes(round(int(v) * 255 / 100) for v in (r, g, b)) + b"\xff"
        elif number is not None:
            color = colors[int(number)]
        elif move:
            x, y = 0, y + 6 * (move == b"-")
        else:
            for _ in range(int(times or 1)):
                bits = (run or one)[0] - 63
                for i in range(6):
                    if bits >> i & 1:
                        grid[y + i][x] = color
                x += 1
    yield from grid


def blocks(data):
    for line in data.decode().splitlines():
        if not re.search("[▀▄]|^ *$", line) or line.startswith("each"):
            return
        top, low, fore, back = [], [], b"\0" * 4, b"\0" * 4
        for codes, char in re.findall(r"\x1b\[([\d;]*)m|([ ▀▄])", line):
            if codes in ("0", "39", "49"):
                fore, back = b"\0" * 4 if codes != "49" else fore, b"\0" * 4 if codes != "39" else back
            if codes[:4] in ("38;2", "48;2"):
                value = bytes(map(int, codes[5:].split(";"))) + b"\xff"
                fore, back = (value, back) if codes[0] == "3" else (fore, value)
            if char:
                top.append(fore if char == "▀" else back)
                low.append(fore if char == "▄" else back)
        yield top
        yield low


for row in globals()[sys.argv[1]](open(sys.argv[2], "rb").read()):
    print(*("-" if c[3] == 0 else c[:3].hex() if c[3] == 255 else f"{c[:3].hex()}.{c[3]:02x}" for c in row))
P
decode() { python3 decode.py "$1" "$2"; }
# shrunk: each element of a picture whose pixels are enlarged so many times: every so-manieth pixel of such lines.
shrunk() { awk -v n="$1" 'NR == 1 && NF < 3 { print; next } NR == 1 { line = 0 } { if (line++ % n == int(n / 2)) { s = ""; for (i = int(n / 2) + 1; i <= NF; i += n) s = s (s ? " " : "") $i; print s } }'; }

echo '# colours of viridis that are published: 0, 64, 128, 192 and 255 of 255'
u1 0 64 128 192 255 0 1 2 253 254 | npy scale.npy '|u1' '(2,5)'
q import r.brc scale.npy /scale
t read r.brc /scale -o v.png --limits 0:255
decode png v.png
t read r.brc /scale -o g.png --limits 0:255 --cmap grey
decode png g.png
t read r.brc /scale -o d.png --limits 0:255 --cmap diverging
decode png d.png

echo '# percentiles 2 and 98: those of 0 to 100 are 2 and 98'
u1 $(seq 0 99) 100 0 | head -c 101 | npy to100.npy '|u1' '(1,101)'
q import r.brc to100.npy /to100
t read r.brc /to100 -o p.png --cmap grey
decode png p.png | cut -d' ' -f1-6,98-

echo '# NaN is transparent, infinite values have the last colours; bool and dates'
q create r.brc /f --shape 2,3 --dtype float32 --fill NaN
q write r.brc /f '[0, 0]' --value -Infinity
q write r.brc /f '[0, 1]' --value 0
q write r.brc /f '[0, 2]' --value 1
q write r.brc /f '[1, 2]' --value Infinity
t read r.brc /f -o f.png
decode png f.png
t read r.brc /f -o f.png --cmap grey
decode png f.png
q create r.brc /b --shape 1,2 --dtype bool
q write r.brc /b '[0, 1]' --value true
t read r.brc /b --image -o b.png
decode png b.png
q create r.brc /date --shape 1,3 --dtype 'datetime64[D]'
q write r.brc /date '[0, 1]' --value 2026-11-20
q write r.brc /date '[0, 2]' --value 2026-11-21
t read r.brc /date -o date.png --limits :
decode png date.png

echo '# colours go straight'
u1 1 2 3 4 5 6 7 8 9 10 11 12 | npy rgb.npy '|u1' '(2,2,3)'
u1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 0 | npy rgba.npy '|u1' '(1,2,2,4)'
q import r.brc rgb.npy /rgb
q import r.brc rgba.npy /rgba
t read r.brc /rgb -o c.png
decode png c.png
t read r.brc /rgba -o c.png
decode png c.png
breccia read r.brc /rgba '[0]' --format png | decode png /dev/stdin
t read r.brc /rgb '[:, :, 0:2]' -o no.png
t read r.brc /rgb '[:, :, 2]' -o c.png --limits 0:255 --cmap grey
decode png c.png

echo '# a picture of many parts: each row comes from its place'
q create r.brc /many --shape 3000,700 --dtype float64 --chunks 7,700
for i in 0 1 2 3 4; do q write r.brc /many "[$((i * 600)):$((i * 600 + 600)), ::2]" --value $i; done
t read r.brc /many -o many.png --cmap grey --limits 0:4
decode png many.png | cut -d' ' -f1-3 | uniq -c
t read r.brc /many -o many.png --cmap grey --limits 0:4 --threads 1
decode png many.png | sort | uniq -c | sort -n | cut -c1-40

echo '# kitty, sixel and half blocks of the same array'
for how in kitty sixel; do
    breccia read r.brc /f --image --draw $how --limits 0:1 >said
    decode $how said | shrunk 80
    tail -n 1 said | sed 's/.*  //'
done
COLORTERM=truecolor breccia read r.brc /f --image --draw blocks --limits 0:1 >said
decode blocks said | shrunk 8
u1 $(seq 0 15) | npy odd.npy '|u1' '(2,8)'
q import r.brc odd.npy /odd
COLORTERM=truecolor breccia read r.brc /odd --image --draw blocks --limits 0:255 --cmap grey >said
decode blocks said | shrunk 3
decode blocks said | cut -d' ' -f1 | uniq -c
breccia read r.brc /scale --image --draw sixel --limits 0:255 --cmap grey >said
decode sixel said | shrunk 48

echo '# diff: old, new, difference; changes of few elements show in the difference of many'
commit r.brc first 10
q write r.brc /f '[0, 1]' --value 3
q write r.brc /f '[1, 0]' --value 2
q write r.brc /many '[1234, 345]' --value 100
t diff r.brc --image --limits 0:4 -o d.png -- /f
decode png d.png
COLUMNS=24 COLORTERM=truecolor breccia diff r.brc --image --draw blocks -- /many >said
tail -n 4 said | sed 's/\x1b\[[0-9;]*m//g'
q write r.brc /rgb '[0, 0]' --value 9
t diff r.brc --image -o d.png -- /rgb
decode png d.png

echo '# what is too large, and what was not made'
q create r.brc /wide --shape 2,1000001 --dtype uint8
q create r.brc /large --shape 40000,40000 --dtype uint8
t read r.brc /wide -o no.png
t read r.brc /large -o no.png
t read r.brc /large '[::100, ::1000]' -o yes.png
t diff r.brc --image -o no.png -- /large
t read r.brc /f -o r.brc --format png
ls no.png 2>/dev/null || echo "there is no such file"
