# append and resize.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 0,2 --dtype int32 --chunks 2,2 --fill -1
i4 1 2 3 4 5 6 | npy three.npy '<i4' '(3, 2)'
i4 7 8 9 | npy column.npy '<i4' '(3, 1)'
t append r.brc /a --axis 0 --from three.npy
t append r.brc /a --axis 0 --from three.npy --json
t read r.brc /a
t resize r.brc /a --shape 3,2
t append r.brc /a --axis 1 --from column.npy
t read r.brc /a
t append r.brc /a --axis -1 --from column.npy
t append r.brc /a --axis 0 --from column.npy
t append r.brc /a --axis 2 --from column.npy
t append r.brc /a --axis x --from column.npy
t append r.brc /a --axis 0
t append r.brc /a --from missing.npy
t append r.brc /missing --from three.npy

echo '# what is cut off is gone'
t resize r.brc /a --shape 1,1 --json
t resize r.brc /a --shape 3,3
t read r.brc /a
t resize r.brc /a --shape 3
t resize r.brc /a
t resize r.brc /a --shape 3,many
t resize r.brc /a --shape 18446744073709551615,18446744073709551615
t resize r.brc /missing --shape 1

echo '# in shards, and over edges of several lengths'
q create r.brc /shards --shape 5,2 --dtype int32 --chunks 2,2 --shards 4,4 --fill -1
t write r.brc /shards --value 8
t resize r.brc /shards --shape 3,1
t resize r.brc /shards --shape 6,2
t read r.brc /shards
t append r.brc /shards --from three.npy
t read r.brc /shards '[5:]'
mkdir edges.zarr
echo '{"zarr_format":3,"node_type":"array","shape":[4],"data_type":"int32","fill_value":-1,
"chunk_grid":{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[1,3,[2,2]]]}},
"chunk_key_encoding":{"name":"default"},
"codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}' >edges.zarr/zarr.json
q import r.brc edges.zarr /edges
t write r.brc /edges --value 8
t resize r.brc /edges --shape 2
t resize r.brc /edges --shape 5
t read r.brc /edges
i4 1 2 3 | npy row.npy '<i4' '(3,)'
t append r.brc /edges --from row.npy
t read r.brc /edges
t append r.brc /edges --from row.npy
t resize r.brc /edges --shape 9
t resize r.brc /edges --shape 0
t resize r.brc /edges --shape 8
t read r.brc /edges
t fsck r.brc
