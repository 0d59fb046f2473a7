# Codecs that are not known but may be ignored: for reading only.
. "$CLI_TESTS/common.inc"

array() {
    mkdir -p "$1/c"
    cat >"$1/zarr.json"
    u1 1 2 3 4 >"$1/c/0"
}

members='"zarr_format":3,"node_type":"array","shape":[6],"data_type":"uint8","fill_value":7,
 "chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4]}},"chunk_key_encoding":{"name":"default"}'
note='{"name":"org.example.note","configuration":{"level":1.50},"must_understand":false}'
echo "{$members,\"codecs\":[{\"name\":\"bytes\"},$note]}" | array in.zarr

q init r.brc
q import r.brc in.zarr /a
t read r.brc /a
t read r.brc /a '[2:5]' --json
t info r.brc /a | grep -e readable -e writable
commit r.brc first 10
t write r.brc /a '[0]' --value 1
t resize r.brc /a --shape 3
t resize r.brc /a --shape 12
u1 1 | npy one.npy '|u1' '(1,)'
t append r.brc /a --from one.npy
t codecs r.brc /a '[{"name":"bytes"}]'
t codecs r.brc /a '[{"name":"bytes"}]' --rewrite
t status r.brc
q export r.brc /a out.zarr
cmp in.zarr/c/0 out.zarr/c/0 && echo 'the same chunk'
grep -c '"must_understand": false' out.zarr/zarr.json
t export r.brc /a a.h5
t export r.brc /a a.nc
t export r.brc /a a.nc --format netcdf3
ls a.* 2>/dev/null
q export r.brc /a a.npy
q import r.brc a.npy /copy
t write r.brc /copy '[0]' --value 9
t read r.brc /copy
t export r.brc /copy copy.h5
t create r.brc /new --shape 6 --dtype uint8 --codecs "[{\"name\":\"bytes\"},$note]"

echo '# storage transformers'
echo "{$members,\"codecs\":[{\"name\":\"bytes\"}],\"storage_transformers\":[$note]}" | array may.zarr
q import r.brc may.zarr /may
t read r.brc /may
echo "{$members,\"codecs\":[{\"name\":\"bytes\"}],\"storage_transformers\":[{\"name\":\"org.example.pack\"}]}" |
    array must.zarr
t import r.brc must.zarr /must
t fsck r.brc
