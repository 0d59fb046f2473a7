# F7: no output replaces the repository or its journals, and no input opens them.
# F12: the ending of a name says the format; one that is not known is refused.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 4 --dtype uint8 --attrs '{"x": 1}'
q write r.brc /a --value 7
commit r.brc one 10
ln r.brc hard.npy
ln -s r.brc soft.json
ln -s soft.json softer.csv
mkdir dir
ln -s ../r.brc dir/link.raw
ln -s . self
keep r.brc
ls >names.before

refused() { # ARGUMENT...: fails with 1, says why, leaves all as it is
    breccia "$@" >said 2>&1
    status=$?
    [ $status -eq 1 ] && grep -q "is the repository" said || {
        echo "breccia $*: status $status: $(cat said)"
    }
    cmp -s r.brc r.brc.kept || echo "breccia $*: THE REPOSITORY CHANGED"
}

echo '# outputs: under every name, in every format'
for name in r.brc ./r.brc self/r.brc "$PWD/r.brc" hard.npy soft.json softer.csv dir/link.raw \
    r.brc-journal r.brc-wal self/r.brc-shm "$PWD/r.brc-journal"; do
    for format in text json csv npy raw; do
        refused read r.brc /a --format $format -o "$name"
    done
    for format in zarr3 zarr2 zip npy npz netcdf netcdf3 hdf5; do
        refused export r.brc /a "$name" --format $format
    done
done
refused read soft.json /a --format npy -o r.brc
refused read soft.json /a --format csv -o r.brc-journal
refused read dir/link.raw /a --format csv -o r.brc-wal
refused export hard.npy /a r.brc --format zarr3
rm -f hard.npy-journal
ln r.brc-journal x 2>/dev/null && echo 'there is a journal'
touch r.brc-journal && ln r.brc-journal j.npy
refused read r.brc /a -o j.npy
refused read r.brc /a --format csv -o j.npy
rm -f r.brc-journal j.npy
breccia read r.brc /a -o dir/
show_status $?
breccia read r.brc /a --format raw -o .
show_status $?

echo '# inputs'
for name in r.brc hard.npy soft.json self/r.brc; do
    refused import r.brc "$name" /b
    refused write r.brc /a --from "$name"
    refused append r.brc /a --from "$name"
    refused attrs r.brc /a k="@$name"
    refused codecs r.brc /a "@$name"
    refused create r.brc /c --metadata "@$name"
done

echo '# a Zarr directory with the repository among its chunks'
q export r.brc /a evil.zarr
rm evil.zarr/c/0
ln r.brc evil.zarr/c/0
refused import r.brc evil.zarr /b
rm -r evil.zarr

echo '# standard output and standard error'
breccia log r.brc 1<>r.brc
show_status $?
breccia log r.brc >>r.brc
show_status $?
breccia log r.brc --json >>r.brc
show_status $?
breccia log nowhere.brc 2>&1 | head -n 1
breccia tag r.brc v1 2>>r.brc
show_status $?
unchanged r.brc
rm -f names.before2
ls | grep -v names | grep -v said

echo '# endings of read -o'
for name in x.npy x.NPY x.json x.csv x.txt x.raw x.bin x v1.2 .hidden; do
    breccia read r.brc /a -o "$name" --json | sed 's/.*"format"/format/'
done
head -c 6 x.npy | tr '\223' '?'; echo
cat x.json x.csv x.txt x x.bin | od -An -c | tail -n 4
cmp x.raw x.bin
t read r.brc /a -o x.parquet
t read r.brc /a -o y.tar.gz
t read r.brc /a -o y.parquet --format csv
cat y.parquet
t read r.brc /a -o y.npy --format csv
cat y.npy
t read r.brc /a -o -

echo '# endings of export'
for name in a.zarr A.ZARR b.zip c.npy d.npz e.nc f.nc4 g.h5 h.hdf5 out/ v1.3 my.data.zarr .x 2024.01; do
    breccia export r.brc /a "$name" --quiet || echo "$name: status $?"
    if [ -d "$name" ]; then echo "$name: a directory"; else echo "$name: $(head -c 4 "$name" | tr -c 'A-Z\n' '?')"; fi
done
t export r.brc /a x.parquet
t export r.brc /a my.data
t export r.brc /a k.tar/
t export r.brc /a my.data --format zarr2
ls -A my.data
breccia export r.brc /a - | tar tf - | head -n 1
breccia export r.brc /a - 2>said >>r.brc
show_status $?
cat said
breccia info r.brc --quiet >said && echo 'it is as it was'
ls -d x.parquet - 2>&1 | wc -l

echo '# standard input'
q init in.brc
q create in.brc /a --shape "$(wc -c <in.brc)" --dtype uint8
breccia write in.brc /a --from - <in.brc
echo "status $?"
breccia status in.brc --json | grep -c '"chunks_added":0'
