# F11: several sources are one import, and a file's name is never taken for a place.
. "$CLI_TESTS/common.inc"

u1 1 2 3 | npy a.npy '|u1' '(3,)'
u1 4 5 6 | npy b.npy '|u1' '(3,)'
mkdir sub data old.zarr
cp b.npy z.npy
cp a.npy sub/a.npy
cp b.npy typo
q init g.brc

echo '# two sources, each at its own place'
t import g.brc a.npy b.npy
t ls g.brc -r
t read g.brc /b
q commit g.brc -m two

echo '# in a group, with options for all, as JSON'
t import g.brc a.npy b.npy /deep/group --chunks 2
t ls g.brc /deep -r -l --json | grep -o '"chunk_shape":[^]]*]'
t import g.brc a.npy b.npy more --json
t import g.brc a.npy /one --json
t import g.brc b.npy a.npy / --exclude /x
t ls g.brc

echo '# all or nothing; what was stored before the failure stays in the file, and nothing shows it'
seen() { breccia ls g.brc -r -l; breccia status g.brc; breccia drafts g.brc; breccia log g.brc; }
seen >seen.before
t import g.brc sub/a.npy missing.npy /new
t import g.brc z.npy typo data
t import g.brc a.npy sub/a.npy /new
t import g.brc b.npy a.npy
t import g.brc a.npy b.npy /new --exclude /x
seen | cmp -s - seen.before && echo 'nothing of it shows'
q fsck g.brc

echo '# the last name: a file, a file that is not there, a place'
t import g.brc a.npy b.npyy
t import g.brc a.npy c.npy
t import g.brc z.npy data
t import g.brc z.npy "$PWD/old.zarr" 2>&1 | sed "s|$PWD|DIR|g"
t import g.brc a.npy "$PWD/b.npy" 2>&1 | sed "s|$PWD|DIR|g"
t import g.brc a.npy "$PWD/b.npy" /abs 2>&1 | sed "s|$PWD|DIR|g"
t import g.brc a.npy "/c.npy"
t ls g.brc -r

echo '# a group does not take the root over where it is not alone'
q init h.brc
q export g.brc /more more.zarr
t import h.brc more.zarr a.npy
t ls h.brc -r
