# rebase.
. "$CLI_TESTS/common.inc"
BRECCIA_AUTHOR='Rev <rev@example.org>'
export BRECCIA_AUTHOR

q init r.brc
q create r.brc /a --shape 8 --dtype int32 --chunks 4
q create r.brc /g/b --shape 4 --dtype int32 --chunks 2
commit r.brc base 10
q branch r.brc side
q branch r.brc merged
q write r.brc /a '[7]' --value 7
q mv r.brc /g /h
commit r.brc main 11
q switch r.brc side
q write r.brc /a '[0]' --value 1
q commit r.brc -m one --date @12 --author 'Ada <ada@example.org>' --meta 'run=7'
q write r.brc /g/b '[0]' --value 2
commit r.brc two 13
q write r.brc /a '[7]' --value 7
commit r.brc 'what main has' 14
q commit r.brc -m 'nothing' --allow-empty --date @15 --author 'Ada <ada@example.org>'
q attrs r.brc /g k=3
commit r.brc three 16
q branch r.brc before

echo '# its commits, on top of main: authors and times stay, a move is followed'
t rebase r.brc main
t log r.brc
t ls -r r.brc
t read r.brc /a
t read r.brc /h/b
t rebase r.brc main
t rebase r.brc main --json
t rebase r.brc HEAD~2
breccia oplog r.brc | head -n 1 | sed 's,^.*  rebase,rebase,'
t fsck r.brc

echo '# taken back whole'
t undo r.brc
t log r.brc --oneline
t undo r.brc --redo
t log r.brc --oneline

echo '# fast-forward, and commits that are in place already'
q switch r.brc merged
t rebase r.brc main --json
t undo r.brc
t rebase r.brc side
t rebase r.brc main

echo '# merges are left out'
q reset r.brc side~4 --hard
q attrs r.brc / x=1
commit r.brc x 17
t merge r.brc before --date @18 --no-ff
q attrs r.brc / y=2
commit r.brc y 19
t rebase r.brc side
t log r.brc --graph --oneline
t attrs r.brc /

echo '# at a conflict it stops, and stays open'
q switch r.brc before
q write r.brc /a '[1]' --value 5
commit r.brc five 20
q write r.brc /a '[0]' --value 6
commit r.brc six 21
q switch r.brc main
q write r.brc /a '[0]' --value 8
commit r.brc eight 22
q switch r.brc before
t rebase r.brc main
t status r.brc
t status r.brc --json
breccia drafts r.brc | sed 's/2[0-9-]*T[0-9:.]*Z/TIME/'
t log r.brc --oneline -n 2
t fsck r.brc
t rebase r.brc main
t commit r.brc -m no
t merge r.brc --continue
t cherry-pick r.brc --continue
t switch r.brc main
t rebase r.brc --continue --json

echo '# settled for a side, and the next by hand'
t rebase r.brc --ours
t rebase r.brc --continue
t status r.brc
t gc r.brc | sed "s|[0-9.]* [KM]iB|SIZE|"
q write r.brc /a '[0]' --value 9
t rebase r.brc --continue --json
t log r.brc --oneline -n 8
t read r.brc /a
breccia oplog r.brc | head -n 1 | sed 's,^.*  rebase,rebase,'
t fsck r.brc
t undo r.brc

echo '# without the commit that is in conflict'
t rebase r.brc main --json
t rebase r.brc --skip
t rebase r.brc --skip --json
t read r.brc /a
t undo r.brc

echo '# dropped'
t rebase r.brc main --quiet
t rebase r.brc --ours --json -- /a
t rebase r.brc --continue --quiet
t rebase r.brc --abort --json
t status r.brc
t log r.brc --oneline -n 2
t rebase r.brc --abort
t rebase r.brc --continue
t rebase r.brc --skip
t rebase r.brc --ours

echo '# sides that are given first count to the end'
t rebase r.brc main --ours -- /a
t read r.brc /a
t undo r.brc
t rebase r.brc main --theirs
t read r.brc /a
t fsck r.brc

echo '# the branch has moved'
q undo r.brc
q reset r.brc HEAD~1 --hard
t rebase r.brc main --quiet
q rebase r.brc --theirs
t undo r.brc
t rebase r.brc --continue
t fsck r.brc
q undo r.brc

echo '# refused'
q attrs r.brc / z=1
t rebase r.brc side
q switch r.brc before --discard
t rebase r.brc nowhere
t rebase r.brc
t rebase r.brc a b
t rebase r.brc main --ours --theirs
t rebase r.brc main -- /a
t rebase r.brc main --continue
t rebase r.brc --skip --abort
t rebase r.brc --continue --ours
