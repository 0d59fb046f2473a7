# import --external: chunks stay in the files of the source.
. "$CLI_TESTS/common.inc"

echo '# a hierarchy, and one of its arrays as HDF5 and as .npy'
q init s.brc
q create s.brc /g/a --shape 64,64 --dtype int32 --chunks 32,64 --codecs '[{"name":"bytes","configuration":{"endian":"big"}}]'
q write s.brc /g/a --value 7
q write s.brc /g/a '[40:50]' --value 3
q export s.brc /g g.zarr
q export s.brc / all.h5
q export s.brc /g/a a.npy

echo '# nothing is stored'
t import r.brc g.zarr /g --external -m 'where it lies'
t import r.brc all.h5 /h --external -m 'the same content'
t import r.brc n=a.npy --external -m 'other chunks'
t read r.brc /g/a '[39:42,0]'
t read r.brc /n '[39:42,0]'
t fsck r.brc
t import r.brc all.h5 /h --external --replace --json

echo '# what cannot stay'
gzip -n a.npy
t import r.brc a.npy.gz /z --external
t import r.brc - /s --external </dev/null
t import r.brc g.zarr /s --external --chunks 8,8
printf '1,2\n' >t.csv
t import r.brc t.csv /s --external
t backend r.brc /g/a external

echo '# a file goes, and comes again'
mv a.npy.gz a.gz
breccia read r.brc /n '[0,0]' 2>&1 | sed 's|file /.*/a.npy|file DIR/a.npy|'
breccia status r.brc 2>&1 | sed 's|/[^ ]*/a.npy|DIR/a.npy|'
breccia backend r.brc 2>&1 | sed -e 's|/[^ ]*/a.npy|DIR/a.npy|' -e 's/ [0-9]* a.npy/ TIME a.npy/'
breccia info r.brc 2>&1 | grep -i 'lie\|missing\|a.npy' | sed 's|/[^ ]*/a.npy|DIR/a.npy|'
breccia fsck r.brc 2>&1 | sed 's|/[^ ]*/a.npy|DIR/a.npy|'
gzip -dc a.gz >a.npy
breccia read r.brc /n '[0,0]' 2>&1 | sed 's|: /.*/a.npy has|: DIR/a.npy has|'
t read r.brc /g/a '[0,0]'

echo '# a file with many chunks goes: one line for all of them'
awk 'BEGIN { for (i = 0; i < 400; i++) { for (k = 0; k < 100; k++) printf "%s%d", k ? "," : "", i * 100 + k; print "" } }' >many.csv
q import s.brc many.csv /csv --dtype int32
q export s.brc /csv many.npy
q import s.brc many.npy /many --chunks 20,100 --compress none
q export s.brc /many many.h5
q import m.brc many.h5 /m --external -m many
mv many.h5 gone
breccia fsck m.brc 2>&1 | sed 's|/[^ ]*/many.h5|DIR/many.h5|'
breccia fsck m.brc --json | tr ',' '\n' | grep -c '"kind"'

echo '# a file that moved'
t backend r.brc --rebase a.npy a.npy
t read r.brc /n '[0,0]'
mkdir sub
mv g.zarr sub
t backend r.brc --rebase g.zarr sub/g.zarr --json
t read r.brc /g/a '[0,0]'
t backend r.brc --rebase g.zarr sub/g.zarr
t backend r.brc --rebase g.zarr
