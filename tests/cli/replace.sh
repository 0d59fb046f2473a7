# import --replace: a new version over an old one, of which only what differs is stored.
. "$CLI_TESTS/common.inc"

ada='Ada <ada@example.org>'
q init src.brc
q create src.brc /grid/t --shape 8 --dtype int16 --chunks 2 --attrs '{"units":"K"}'
q create src.brc /grid/old --shape 2 --dtype int16
q attrs src.brc /grid 'title="first"'
q write src.brc /grid/t --value 5
q export src.brc /grid one.zarr
q write src.brc /grid/t '[3]' --value 6
q rm src.brc /grid/old
q create src.brc /grid/new --shape 2 --dtype int16
q attrs src.brc /grid 'title="second"'
q export src.brc /grid two.zarr

echo '# a group with a path'
t import r.brc one.zarr /g -m one --author "$ada" --date 2026-11-20
t import r.brc two.zarr /g -m two
t import r.brc two.zarr /g --replace -m two --author "$ada" --date 2026-11-21
t show r.brc HEAD
t diff r.brc HEAD~1 HEAD --elements -- /g/t
t read r.brc /g/t
t read r.brc@HEAD~1 /g/t
t attrs r.brc /g
t ls r.brc -r
breccia info r.brc --json | sed 's/.*\("chunks":[0-9]*\).*/\1/'
t import r.brc two.zarr /g --replace -m again
t import r.brc two.zarr /g --replace
t status r.brc

echo '# without a path: the root, or the node of that name'
t import root.brc one.zarr -m one --author "$ada" --date 2026-11-20
t ls root.brc
t import root.brc two.zarr --replace -m two
t import root.brc two.zarr / --replace -m two --author "$ada" --date 2026-11-21
t ls root.brc
t attrs root.brc /
t show root.brc HEAD --stat
i4 1 2 3 | npy a.npy '<i4' '(3,)'
t import root.brc a.npy
i4 1 2 4 5 | npy a.npy '<i4' '(4,)'
t import root.brc a.npy
t import root.brc a.npy --replace
q commit root.brc -m a
t import root.brc a.npy --replace
t read root.brc /a
t import root.brc a.npy /deep/a --replace
t import root.brc one.zarr /two -q
q commit root.brc -m two
t import root.brc two.zarr --replace
t attrs root.brc /two

echo '# what fails leaves the old one'
q commit root.brc -m rest --author "$ada" --date 2026-11-22
echo '{"zarr_format":3,"node_type":"array","shape":[4]}' >two.zarr/t/zarr.json
t import root.brc two.zarr /two --replace
t import root.brc missing.zarr /a --replace
t import root.brc a.npy missing.npy --replace
t status root.brc
t fsck root.brc
t import root.brc - /a --replace </dev/null
t status root.brc
breccia export root.brc /new - | breccia import root.brc - /a --replace
t ls root.brc /a

echo '# several sources, or names to leave out: all, or none'
i4 9 9 | npy x.npy '<i4' '(2,)'
i4 8 8 8 | npy y.npy '<i4' '(3,)'
t import many.brc x.npy y.npy -m one --author "$ada" --date 2026-11-20
i4 9 7 | npy x.npy '<i4' '(2,)'
i4 8 8 | npy y.npy '<i4' '(2,)'
t import many.brc x.npy y.npy --replace -m two --author "$ada" --date 2026-11-21
t read many.brc /x
t read many.brc /y
t import many.brc x.npy broken.npy / --replace
t import many.brc x=y.npy y=x.npy --replace --exclude /nothing
t status many.brc
t import many.brc one.zarr /z --replace --exclude /old --rename /t=u
t ls many.brc /z

echo '# over uncommitted work'
t write many.brc /x '[0]' --value 1
t import many.brc y.npy /x --replace
t read many.brc /x
t import many.brc y.npy /y --replace
t read many.brc /x
breccia drafts many.brc | awk '{ print $NF, NR }'
