# Warnings of import and export, on standard error and in their JSON.
. "$CLI_TESTS/common.inc"

put() { # NAME TEXT
    mkdir -p "$(dirname "$1")"
    printf '%s' "$2" >"$1"
}
group='{"zarr_format":3,"node_type":"group"}'

echo '# structures whose fields differ in byte order come in as others do'
put two/.zgroup '{"zarr_format":2}'
put two/t/.zarray '{"zarr_format":2,"shape":[2],"chunks":[2],"order":"C","filters":null,"compressor":null,"fill_value":null,"dtype":[["n","<i2"],["x",">i2"]]}'
printf '\001\000\000\001\002\000\000\002' >two/t/0
for i in 1 2 3 4 5; do cp -r two/t two/t$i; done
put two/plain/.zarray '{"zarr_format":2,"shape":[1],"chunks":[1],"order":"C","filters":null,"compressor":null,"fill_value":7,"dtype":"|u1"}'
q init r.brc
t import r.brc two / --json
t read r.brc /t

echo '# with consolidated metadata, older readers cannot open their group'
t export r.brc plain.zarr
t export r.brc / all.zarr --consolidated
t export r.brc / all.zip --consolidated --json
t export r.brc / quiet.zarr --consolidated --quiet
t export r.brc /t t.zarr
t export r.brc two.zarr --format zarr2 --consolidated
t import r.brc two.zarr /again
t read r.brc /again/t1

echo '# documents and their copies'
put a/zarr.json '{"zarr_format":3,"node_type":"group","attributes":{},"consolidated_metadata":{"kind":"inline","must_understand":false,"metadata":{"g":{"zarr_format":3,"node_type":"group","attributes":{"n":1}},"..":{}}}}'
put a/g/zarr.json "$group"
put a/g/0 x
mkdir b
put b/zarr.json "$group"
t import r.brc a /a --json
t import r.brc a b /many --json
