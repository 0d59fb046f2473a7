# import --rename: nodes of a source that get another name.
. "$CLI_TESTS/common.inc"

q init a.brc
i4 1 2 3 4 5 6 | npy m.npy '<i4' '(2, 3)'
for node in /a /b /g/a /g/h/a; do q import a.brc m.npy "$node"; done
q write a.brc /b --value 7
q export a.brc a.zarr
q export a.brc a.zarr.zip
q export a.brc a2.zarr --format zarr2
q export a.brc a.npz
q export a.brc a.h5
q export a.brc a.nc
breccia export a.brc - >a.tar

seen() {
    breccia ls "$1" -r
    breccia read "$1" /a '[0]'
    breccia read "$1" /b '[0]'
}
names() { t import "$1" "$2" / --rename /a=b --rename b=a --rename g=group --rename /g/h/a/=x; }
for source in a.zarr a.zarr.zip a2.zarr a.npz a.h5 a.nc; do
    echo "# from $source"
    names "$source.brc" "$source"
    seen "$source.brc" >"$source.seen"
    cmp a.zarr.seen "$source.seen" && breccia fsck "$source.brc"
done
echo '# from a stream'
names tar.brc - <a.tar
seen tar.brc >tar.seen
cmp a.zarr.seen tar.seen && cat tar.seen
echo '# below another path, and of several sources'
t import c.brc a.npz /here --rename g/a=z --exclude g/h
t ls c.brc -r
t import d.brc a.npz a2.zarr / --rename g/a=z
t ls d.brc -r

echo '# all or nothing'
for source in a.zarr a.npz a.h5; do
    t import e.brc "$source" / --rename /a=b
    t import e.brc "$source" / --rename /g=a
    t import e.brc "$source" / --rename /nowhere=x
    ls e.brc 2>/dev/null
done
t import e.brc a.zarr / --rename /a=g/x
t import e.brc a.zarr / --rename /a=
t import e.brc a.zarr / --rename /a=..
t import e.brc a.zarr / --rename /=x
t import e.brc a.zarr / --rename /a
t import e.brc a.zarr / --rename /a=x --rename a/=y
t import e.brc a.zarr / --rename /a=c --exclude /a
t export a.brc e.zarr --rename /a=c
