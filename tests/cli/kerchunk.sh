# import of Kerchunk's references
. "$CLI_TESTS/common.inc"

echo '# a set beside its file'
printf '\001\000\002\000\003\000\004\000\005\000' >data
zarray='{"zarr_format":2,"shape":[6],"chunks":[2],"dtype":"<i2","fill_value":0,"order":"C","filters":null,"compressor":null}'
echo "{\"version\":1,\"templates\":{\"u\":\"data\"},\"refs\":{\".zgroup\":{\"zarr_format\":2},\"a/.zarray\":$zarray,\"a/0\":[\"{{u}}\",0,4],\"a/1\":[\"{{u}}\",4,4]}}" >set.json
q init r.brc
t import r.brc set.json /e --external -m 'where it lies'
t read r.brc /e/a
t import r.brc set.json /p
t fsck r.brc
t backend r.brc

echo '# what lies elsewhere'
echo "{\"version\":1,\"refs\":{\".zgroup\":{\"zarr_format\":2},\"a/.zarray\":$zarray,\"a/0\":[\"https://example.org/data\",0,4]}}" >far.json
t import r.brc far.json /f
t import r.brc far.json /f --skip-unsupported
t ls r.brc /f

echo '# other JSON, and Parquet'
echo '{"a":1}' >other.json
t import r.brc other.json /o
mkdir set.parquet
echo '{"metadata":{".zgroup":{"zarr_format":2}},"record_size":10}' >set.parquet/.zmetadata
t import r.brc set.parquet /q
