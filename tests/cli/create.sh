# create: every option, and what is refused.
. "$CLI_TESTS/common.inc"

q init r.brc
show() { breccia info r.brc "$1" --json | sed 's/.*"metadata"://; s/,"chunks_stored".*//'; }

t create r.brc /plain --shape 10000,28,28 --dtype uint8 --chunks 100,28,28
show /plain
t create r.brc deep/er/a --shape 10 --dtype float32 --json
t ls r.brc -r
t create r.brc /scalar --shape '' --dtype float64 --fill 1.5
t read r.brc /scalar
t create r.brc /empty --shape 0,3 --dtype int16
t read r.brc /empty --json

echo '# fill values'
for fill in 0 1.5 -2 NaN Infinity -Infinity 0x7fc00001; do
    q create r.brc "/fill/$fill" --shape 1 --dtype float32 --fill "$fill"
    t read r.brc "/fill/$fill" --json
done
t create r.brc /fill/bool --shape 2 --dtype bool --fill true
t read r.brc /fill/bool
t create r.brc /fill/complex --shape 1 --dtype complex64 --fill '[1, 2]'
t read r.brc /fill/complex --json
t create r.brc /bad --shape 1 --dtype int8 --fill 300
t create r.brc /bad --shape 1 --dtype int8 --fill 1.5
t create r.brc /bad --shape 1 --dtype float32 --fill red

echo '# codecs'
t create r.brc /c/list --shape 8 --dtype int16 --codecs \
    '[{"name":"bytes","configuration":{"endian":"big"}}]'
t codecs r.brc /c/list
echo '[{"name":"bytes","configuration":{"endian":"little"}},{"name":"gzip","configuration":{"level":1}}]' >codecs.json
t create r.brc /c/file --shape 8 --dtype int16 --codecs @codecs.json
t codecs r.brc /c/file
for compress in none zstd zstd:3 zstd:-5 gzip gzip:9 blosc blosc:lz4 blosc:zstd:5 \
    blosc:zlib:9:bitshuffle blosc:blosclz:0:noshuffle; do
    q create r.brc "/c/$compress" --shape 8 --dtype float64 --compress "$compress"
    t codecs r.brc "/c/$compress"
done
t create r.brc /bad --shape 8 --dtype int8 --compress lzma
t create r.brc /bad --shape 8 --dtype int8 --compress zstd:fast
t create r.brc /bad --shape 8 --dtype int8 --compress zstd:99
t create r.brc /bad --shape 8 --dtype int8 --compress zstd:1:2
t create r.brc /bad --shape 8 --dtype int8 --compress blosc:lz4:5:shuffle:more
t create r.brc /bad --shape 8 --dtype int8 --compress blosc:brotli
t create r.brc /bad --shape 8 --dtype int8 --compress none:1
t create r.brc /bad --shape 8 --dtype int8 --codecs '[]' --compress none
t create r.brc /bad --shape 8 --dtype int8 --codecs '[{'
t create r.brc /bad --shape 8 --dtype int8 --codecs '[{"name":"nonesuch"}]'

echo '# names, attributes, keys'
t create r.brc /n --shape 2,3,4 --dtype int8 --chunks 1,3,4 --dimension-names time,,lon \
    --attrs '{"units": "K", "n": 12345678901234567890}' --chunk-key-encoding v2 --compress none
show /n
t create r.brc /bad --shape 2,3 --dtype int8 --dimension-names x
t create r.brc /bad --shape 2,3 --dtype int8 --attrs '[1]'
t create r.brc /bad --shape 2,3 --dtype int8 --attrs '{units: K}'
t create r.brc /bad --shape 2,3 --dtype int8 --chunk-key-encoding v3

echo '# backends and shards'
t create r.brc /inline --shape 2 --dtype int8 --backend '{"name":"inline"}'
t create r.brc /inline2 --shape 2 --dtype int8 --backend inline
t create r.brc /bad --shape 2 --dtype int8 --backend '{"name":"s4"}'
t create r.brc /bad --shape 8 --dtype int8 --shards 4,4

echo '# a whole document'
cat >zarr.json <<'END'
{
  "zarr_format": 3, "node_type": "array", "shape": [4, 6], "data_type": "uint16",
  "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
  "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
  "fill_value": 7,
  "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
  "attributes": {"from": "a document"}
}
END
t create r.brc /document --metadata @zarr.json
show /document
t read r.brc /document '[0]'
t create r.brc /bad --metadata @zarr.json --shape 3
t create r.brc /bad --metadata @missing.json
t create r.brc /bad --metadata '{"zarr_format": 2}'

echo '# refused'
t create r.brc /bad --dtype int8
t create r.brc /bad --shape 3
t create r.brc /bad --shape 3 --dtype int7
t create r.brc /bad --shape 3,x --dtype int8
t create r.brc /bad --shape 3, --dtype int8
t create r.brc /bad --shape -3 --dtype int8
t create r.brc /bad --shape 3 --dtype int8 --chunks 0
t create r.brc /bad --shape 3 --dtype int8 --chunks 1,1
t create r.brc /bad --shape 99999999999999999999 --dtype int8
t create r.brc /bad --shape 4294967296,4294967296,4294967296 --dtype int8 --chunks 1,1,1
t create r.brc /bad --shape 4294967296,4294967296 --dtype float64 --chunks 4294967296,4294967296
t create r.brc /plain --shape 3 --dtype int8
t create r.brc /plain/below --shape 3 --dtype int8
t create r.brc / --shape 3 --dtype int8
t create r.brc /a//b --shape 3 --dtype int8
t create r.brc /a/../b --shape 3 --dtype int8
t ls r.brc /bad
