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
gzip -dc a.gz >a.npy
breccia read r.brc /n '[0,0]' 2>&1 | sed 's|: /.*/a.npy has|: DIR/a.npy has|'
t read r.brc /g/a '[0,0]'

echo '# a file that moved'
t backend r.brc --rebase a.npy a.npy
t read r.brc /n '[0,0]'
mkdir sub
mv g.zarr sub
t backend r.brc --rebase g.zarr sub/g.zarr --json
t read r.brc /g/a '[0,0]'
t backend r.brc --rebase g.zarr sub/g.zarr
t backend r.brc --rebase g.zarr
