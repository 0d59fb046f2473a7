# import and export.
. "$CLI_TESTS/common.inc"

q init r.brc
i4 1 2 3 4 5 6 | npy m.npy '<i4' '(2, 3)'

echo '# .npy'
t import r.brc m.npy /m
t read r.brc /m
t import r.brc m.npy --json
t ls r.brc -r
t import r.brc m.npy /m
t import r.brc m.npy deep/er --chunks 1,3 --compress zstd:3
t codecs r.brc /deep/er
t info r.brc /deep/er --json | sed 's/"stored_bytes":[0-9]*/"stored_bytes":N/'
t import r.brc m.npy /bad --chunks 1
t import r.brc m.npy /bad --compress rar
t import r.brc m.npy /bad --codecs '['
t export r.brc /m out.npy
cmp m.npy out.npy && echo 'the same bytes'
t export r.brc /m out.npy
t export r.brc /deep/er deep.npy --json

echo '# truncated and foreign files'
head -c 140 m.npy >cut.npy
t import r.brc cut.npy /cut
head -c 20 m.npy >head.npy
t import r.brc head.npy /cut
(cat m.npy; printf x) >long.npy
t import r.brc long.npy /cut
printf hello >what.bin
t import r.brc what.bin /cut
t import r.brc missing.npy /cut
t ls r.brc /cut

echo '# a Zarr directory and back'
q attrs r.brc /deep k='"v"'
t export r.brc /deep deep.zarr
find deep.zarr -type f | sort
t export r.brc all.zarr
t export r.brc /deep deep.zarr
t import r.brc deep.zarr /again
t read r.brc /again/er
t attrs r.brc /again
commit r.brc all 10
q write r.brc /m --value 0
t export r.brc /m old.npy --at HEAD
cmp m.npy old.npy && echo 'the version, not the work'
t export r.brc /m m.other --format npy
cmp -s m.npy m.other || echo 'the work, not the version'
t export r.brc /m m.xyz --format nonesuch
t export r.brc /nowhere x.npy
t export r.brc /deep group.npy

echo '# broken Zarr directories: the error names the file, nothing comes in'
broken() { # NAME TEXT
    mkdir -p "$1"
    printf '%s' "$2" >"$1/zarr.json"
    t import r.brc "$1" "/broken"
}
array='"zarr_format":3,"node_type":"array","data_type":"int8","chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"bytes"}]'
grid='"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2]}}'
broken b1 '{"zarr_format": 3, "node_type"'
broken b2 '[]'
broken b3 '{"zarr_format": 4, "node_type": "group"}'
broken b4 '{"zarr_format": 3, "node_type": "tree"}'
broken b5 "{$array,$grid}"
broken b6 "{$array,$grid,\"shape\":[99999999999999999999]}"
broken b7 "{$array,\"shape\":[4294967296,4294967296,4294967296],\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4294967296,4294967296,4294967296]}}}"
broken b8 "{$array,$grid,\"shape\":[-1]}"
broken b9 "{$array,$grid,\"shape\":[4],\"shape\":[5]}"
mkdir -p b10/ok b10/bad
printf '{"zarr_format":3,"node_type":"group"}' >b10/zarr.json
cp b10/zarr.json b10/ok/zarr.json
printf '{' >b10/bad/zarr.json
t import r.brc b10 /broken
mkdir b11
t import r.brc b11 /broken
mkdir -p b12/c
printf '{%s,%s,"shape":[4]}' "$array" "$grid" >b12/zarr.json
printf 'abc' >b12/c/0
t import r.brc b12 /broken
t ls r.brc /broken
