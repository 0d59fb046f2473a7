# import: arrays of Zarr v2 whose objects are texts in lists, json2 and msgpack2.
. "$CLI_TESTS/common.inc"

put() { # put NAME ID MORE CHUNK: an array with one chunk of two elements
    mkdir -p "v2/$1"
    printf '{"zarr_format":2,"shape":[3],"chunks":[2],"dtype":"|O","compressor":null,"fill_value":null,"order":"C","filters":[{"id":"%s"%s}]}' \
        "$2" "$3" >"v2/$1/.zarray"
    printf "$4" >"v2/$1/0"
}
echo '{"zarr_format":2}' >v2.zgroup
mkdir v2 && mv v2.zgroup v2/.zgroup
put json json2 ',"strict":true' '["a","b\\u00e9","|O",[2]]'
put pack msgpack2 '' '\224\241a\300\242|O\221\002'
put mixed json2 '' '["a",1.5,"|O",[2]]'
put torn msgpack2 '' '\224\241a'
mkdir v2/numbers
echo '{"zarr_format":2,"shape":[2],"chunks":[2],"dtype":"<i4","compressor":null,"fill_value":0,"order":"C","filters":[{"id":"json2"}]}' >v2/numbers/.zarray
printf '[1,2,"<i4",[2]]' >v2/numbers/0
q init r.brc
q import r.brc v2 /v
echo '# texts are read'
breccia read r.brc /v/json --format json
breccia read r.brc /v/pack --format json
echo '# other objects are kept as they are'
t read r.brc /v/mixed
t read r.brc /v/torn
t read r.brc /v/numbers
echo '# a text is written, and all comes back as Zarr v2'
breccia write r.brc /v/json 2 --value new
q export r.brc /v out --format zarr2
cat out/json/0 out/json/1 out/mixed/0 out/numbers/0
echo
cmp v2/pack/0 out/pack/0 && cmp v2/torn/0 out/torn/0 && echo same
echo '# rewritten for readers of Zarr v3'
q codecs r.brc /v/pack '["vlen-utf8"]' --rewrite
breccia read r.brc /v/pack --format json
