# import FILE -, import --with CMD and export FILE -: hierarchies through pipes.
. "$CLI_TESTS/common.inc"

q init a.brc
i4 1 2 3 4 5 6 | npy m.npy '<i4' '(2, 3)'
for node in /m /g/m /g/deep/m; do q import a.brc m.npy "$node"; done
q attrs a.brc /g 'title="first"'
commit a.brc one 09

echo '# from repository to repository: the same snapshot'
breccia export a.brc - >a.tar
tar tf a.tar
t init b.brc
t import b.brc - <a.tar
commit b.brc one 09
breccia export a.brc - | cmp - a.tar && echo 'equal trees are equal streams'
breccia export b.brc - | cmp - a.tar && echo 'and the copy is equal'
breccia log a.brc --json >a.log
breccia log b.brc --json | cmp - a.log && echo 'and so is its commit'

echo '# a part, to a place'
breccia export a.brc /g - | breccia import b.brc - /copy/of/g
t ls b.brc -r
t read b.brc /copy/of/g/deep/m

echo '# as other tars write it'
mkdir dir && (cd dir && tar xf ../a.tar)
(cd dir && { find . -name zarr.json; find . -type f ! -name zarr.json; } | tar cf - -T -) >again.tar
t init c.brc
t import c.brc - --exclude /g/deep <again.tar
t ls c.brc -r

echo '# with other codecs'
t import c.brc - /raw --compress none <a.tar
t read c.brc /raw/m

echo '# what a command writes'
t import c.brc a.tar /with --with 'cat "$1"'
t import c.brc a.tar --with 'cat "$1"'
cp a.tar run.v2.grib && t import c.brc run.v2.grib --with 'cat "$1"'
t import c.brc a.tar /none --with 'head -c 3000 "$1"; echo "it broke" >&2; exit 3'
t import c.brc a.tar /none --with 'kill -SEGV $$'
t ls c.brc

echo '# what is wrong'
t import c.brc - /x </dev/null
head -c 2000 a.tar | t import c.brc - /x
echo 'not a tar, and long enough to be looked at' | t import c.brc - /x
t import c.brc - m.npy /x <a.tar
t import c.brc - <a.tar
t import c.brc - /m <a.tar
t import c.brc - /m --exclude /nothing <a.tar
t export a.brc - --json
t export a.brc - --format npy
t export a.brc - --consolidated
t export a.brc /none -
t export a.brc - --with cat
breccia export a.brc - >/dev/full
show_status $?
echo '# a file that is not there is made, and goes again where nothing comes'
breccia export c.brc - | breccia import made.brc -
show_status $?
t ls made.brc
echo junk | breccia import unmade.brc - 2>&1
t import unmade.brc nowhere.npy /a
t import unmade.brc a.tar /a --no-recover
ls | grep unmade
t import . nowhere.npy
