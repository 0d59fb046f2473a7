# F2: U+0000 in the JSON that commands take, and in documents that are imported.
. "$CLI_TESTS/common.inc"

q init r.brc
echo '# kept where text is free'
t create r.brc /a --shape 2 --dtype int8 --attrs '{"a": "x\u0000y"}'
t attrs r.brc /a b='["\u0000", {"c": "\u0000z"}]'
t attrs r.brc /a
t attrs r.brc /a a --json
t commit r.brc -m 'with meta' --meta note='"p\u0000q"'
t log r.brc --json -n 1 | grep -o 'meta":{.*}'
t attrs r.brc /a c='{"k\u0000": 1, "k": 2, "\u0000k": {"\u0000": 3}}'
t create r.brc /named --shape 2 --dtype int8 --attrs '{"k\u0000": 1, "k": 2}'
t diff r.brc --json
t commit r.brc -m 'names' --meta 'n={"\u0000": 1}'
t log r.brc --json -n 1 | grep -o 'meta":{.*}'
t attrs r.brc /named k
t attrs r.brc /named --unset k
t attrs r.brc /named
t diff r.brc --json
t export r.brc /a out
t import r.brc out /back
t attrs r.brc /back
t export r.brc /named out2
t import r.brc out2 /back2
t attrs r.brc /back2
t export r.brc /named out.h5
t export r.brc /named out.nc

echo '# refused where it names something'
keep r.brc
t create r.brc /b --shape 2 --dtype '{"name": "int8\u0000"}'
t create r.brc /b --shape 2 --dtype '{"name": "struct", "configuration": {"fields": [{"name": "f\u0000", "data_type": "int8"}]}}'
for codec in '"\u0000"' '{"name": "bytes\u0000"}' \
    '{"name": "bytes", "configuration": {"endian": "little\u0000"}}' \
    '{"name": "transpose", "configuration": {"order": "C\u0000"}}, "bytes"'; do
    t create r.brc /b --shape 2 --dtype int16 --codecs "[$codec]"
done
for codec in '"crc32c\u0000"' '{"name": "numcodecs.crc32", "configuration": {"location": "end\u0000"}}' \
    '{"name": "blosc", "configuration": {"cname": "lz4\u0000", "clevel": 1, "shuffle": "noshuffle"}}' \
    '{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 1, "shuffle": "\u0000"}}'; do
    t create r.brc /b --shape 2 --dtype int16 --codecs "[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"big\"}}, $codec]"
    t codecs r.brc /a "[{\"name\": \"bytes\"}, $codec]"
done
unchanged r.brc

echo '# in Zarr v2'
mkdir v2
zarray() {
    echo '{"zarr_format": 2, "shape": [2], "chunks": [2], "fill_value": 0, "order": "C"' "$1}" >v2/.zarray
    rm -f g.brc
    q init g.brc
    t import g.brc v2 /v2
}
zarray ', "dtype": "<i2\u0000", "filters": null, "compressor": null'
zarray ', "dtype": [["f\u0000", "<i2"]], "filters": null, "compressor": null'
zarray ', "dtype": "<i2", "filters": [{"id": "delta\u0000"}], "compressor": null'
zarray ', "dtype": "<i2", "filters": [{"id": "delta", "dtype": "<i2\u0000"}], "compressor": null'
zarray ', "dtype": "<i2", "filters": null, "compressor": {"id": "\u0000"}'
zarray ', "dtype": "<i2", "filters": null, "compressor": {"id": "blosc", "cname": "lz4\u0000"}'
zarray ', "dtype": "<i2", "filters": null, "compressor": null, "dimension_separator": "/\u0000"'
echo '# and kept beside a copy of documents that is none'
echo '{"zarr_consolidated_format": 1, "metadata": {".zarray": "\u0000"}}' >v2/.zmetadata
echo '{"_ARRAY_DIMENSIONS": ["x\u0000"], "note": "\u0000"}' >v2/.zattrs
zarray ', "dtype": "<i2", "filters": null, "compressor": null, "mine": "\u0000"'
t export g.brc /v2 back --format zarr2
cat back/.zattrs
grep mine back/.zarray
