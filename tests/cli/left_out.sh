# import: what cannot be kept is all named, and --skip-unsupported brings the rest; patterns of --exclude.
. "$CLI_TESTS/common.inc"
command -v python3 >/dev/null || skip 'there is no python3'

q init a.brc
i4 1 2 3 4 5 6 | npy m.npy '<i4' '(2, 3)'
for node in /keep /g/keep /g/drop /h/drop; do q import a.brc m.npy "$node"; done
q attrs a.brc /keep units='"m"' long_name='"kept"'
q attrs a.brc / history='"all of it"'
q export a.brc a.zarr

# A part of each kind that a hierarchy can have.
mkdir outside
ln -s ../../outside a.zarr/g/link
odd='{"zarr_format":3,"node_type":"array","shape":[2],"data_type":"int32","fill_value":0,
    "chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2]}},
    "chunk_key_encoding":{"name":"default"},"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],
    "storage_transformers":[{"name":"indirect"}]}'
mkdir a.zarr/odd a.zarr/odd/below
echo "$odd" >a.zarr/odd/zarr.json
echo "$odd" >a.zarr/odd/below/zarr.json
(cd a.zarr && rm g/link && python3 -m zipfile -c ../a.zip ./* && ln -s ../../outside g/link) || exit 1
(cd a.zarr && { find . -name zarr.json | sort; find . -type f ! -name zarr.json | sort; } | tar cf ../a.tar -T -)

echo '# a directory: both are named, and nothing is imported'
q init b.brc
t import b.brc a.zarr
t import b.brc a.zarr /x --json
t status b.brc
t import b.brc a.zarr --skip-unsupported
t ls b.brc -r

echo '# a single one is the error itself'
q init zip.brc
t import zip.brc a.zip
t import zip.brc a.zip --skip-unsupported --json
t import zip.brc a.zip /two --exclude odd --json

echo '# a stream'
q init tar.brc
t import tar.brc - <a.tar
t import tar.brc - --skip-unsupported <a.tar
t ls tar.brc -r

echo '# .npz'
mkdir npz && cp m.npy npz/good.npy && echo text >npz/readme.txt && echo more >npz/notes
(cd npz && python3 -m zipfile -c ../n.npz good.npy readme.txt notes)
q init npz.brc
t import npz.brc n.npz /n
t import npz.brc n.npz /n --skip-unsupported
t ls npz.brc /n

echo '# several sources: those of all are named'
q init many.brc
t import many.brc a.zip n.npz m.npy /
t ls many.brc
t import many.brc a.zip n.npz m.npy / --skip-unsupported --json
t ls many.brc

echo '# patterns, and attributes'
rm a.zarr/g/link
for given in '**/drop' '*/*' '[gh]' '/g/?eep' '**'; do
    rm -f p.brc
    q init p.brc
    t import p.brc a.zarr --exclude "$given" --exclude odd
    breccia ls p.brc -r
done
for given in /keep@units 'keep@*' '**@*' '@history'; do
    rm -f p.brc
    q init p.brc
    t import p.brc a.zarr --exclude "$given" --exclude '/od?'
    breccia attrs p.brc / && breccia attrs p.brc /keep
done
t import p.brc a.zarr /no --exclude 'nothing*' --exclude odd
t import p.brc a.zarr /no2 --exclude '/keep@nothing' --exclude odd
