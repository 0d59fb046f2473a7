# import --exclude: nodes of a source that stay out.
. "$CLI_TESTS/common.inc"

q init a.brc
i4 1 2 3 4 5 6 | npy m.npy '<i4' '(2, 3)'
for node in /keep /drop /g/keep /g/drop /g/drop2 /h/x; do q import a.brc m.npy "$node"; done
q export a.brc a.zarr
q export a.brc a.zarr.zip
q export a.brc a.npz

for source in a.zarr a.zarr.zip a.npz; do
    echo "# from $source"
    q init "b-$source.brc"
    t import "b-$source.brc" "$source" / --exclude /drop --exclude g/drop/
    t ls "b-$source.brc" -r
done

echo '# a group, with all under it; also where what is in it cannot be imported'
echo '{' >a.zarr/h/zarr.json
q init c.brc
t import c.brc a.zarr /
t import c.brc a.zarr / --exclude h
t ls c.brc -r

echo '# a group of a .npz, which has its members alone'
t import d.brc a.npz / --exclude g
t ls d.brc -r

echo '# only on import'
t export c.brc c.zarr --exclude h
