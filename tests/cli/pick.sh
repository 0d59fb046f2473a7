# cherry-pick and revert.
. "$CLI_TESTS/common.inc"
BRECCIA_AUTHOR='Rev <rev@example.org>'
export BRECCIA_AUTHOR

q init r.brc
q create r.brc /a --shape 8 --dtype int32 --chunks 4
q create r.brc /g/b --shape 4 --dtype int32 --chunks 2
commit r.brc one 10
q branch r.brc side
q switch r.brc side
q write r.brc /a '[0:2]' --value 1
q commit r.brc -m 'two' --date @11 --author 'Ada <ada@example.org>' --meta 'run=7'
q write r.brc /a '[2:4]' --value 2
commit r.brc three 12
q mv r.brc /g /h
q attrs r.brc /h k=1
commit r.brc moved 13

echo '# picked: an element of the same chunk, with message, author, time and meta'
q switch r.brc main
q write r.brc /a '[7]' --value 7
commit r.brc main 20
t cherry-pick r.brc side~2
t read r.brc /a
t show r.brc HEAD
t cherry-pick r.brc side~2
t cherry-pick r.brc side~2 --json
t cherry-pick r.brc side --json
t ls -r r.brc
t cherry-pick r.brc side~1 -m 'another message' --author 'Bob <bob@example.org>' --date @30
t log r.brc -n 1
t read r.brc /a
t fsck r.brc

echo '# reverted: the changes of one commit alone'
t revert r.brc HEAD~2 --date @31
t read r.brc /a
t log r.brc -n 1
t revert r.brc HEAD~2 --date @32
t ls -r r.brc
t revert r.brc HEAD~1 --date @33 --json
t revert r.brc HEAD~3 --date @33
breccia oplog r.brc | head -n 3 | sed 's,^.*  revert,revert,'
t undo r.brc
t read r.brc /a

echo '# the revert of the revert'
t revert r.brc HEAD~1 --date @34
t read r.brc /a
t log r.brc --oneline -n 2

echo '# uncommitted'
t revert r.brc HEAD --no-commit
t status r.brc
t read r.brc /a
t cherry-pick r.brc side
t undo r.brc
t status r.brc
t undo r.brc --redo
t status r.brc
t commit r.brc -m 'by hand' --date @35
t status r.brc
t gc r.brc | sed "s|[0-9.]* [KM]iB|SIZE|"
t fsck r.brc

echo '# conflicts stay open'
q write r.brc /a '[0]' --value 5
commit r.brc five 15
t cherry-pick r.brc side~2 --no-commit
t status r.brc
t cherry-pick r.brc side~2
t status r.brc
t status r.brc --json
breccia drafts r.brc | sed 's/2[0-9-]*T[0-9:.]*Z/TIME/'
t fsck r.brc
t gc r.brc | sed "s|[0-9.]* [KM]iB|SIZE|"
t commit r.brc -m no
t cherry-pick r.brc side~2
t rebase r.brc side
t merge r.brc --continue
t merge r.brc --abort
t merge r.brc --theirs
t revert r.brc --continue
t revert r.brc --abort
t cherry-pick r.brc --continue --json
t cherry-pick r.brc --theirs --json -- /a
t cherry-pick r.brc --continue --date @40
t read r.brc /a
t show r.brc HEAD
breccia oplog r.brc | head -n 1 | sed 's,^.*  pick,pick,'
t fsck r.brc
t undo r.brc
t read r.brc /a

echo '# dropped, and settled so that nothing is left'
t cherry-pick r.brc side~2 --json
t cherry-pick r.brc --abort --json
t status r.brc
t cherry-pick r.brc --abort
t cherry-pick r.brc --continue
t cherry-pick r.brc --ours
q cherry-pick r.brc side~2 --theirs
t read r.brc /a
t revert r.brc HEAD~1 --ours -- /a
t revert r.brc HEAD~1 --date @41
q write r.brc /a '[0]' --value 9
commit r.brc nine 16
t revert r.brc HEAD~2 --date @41
t status r.brc
t cherry-pick r.brc --abort
t revert r.brc --ours
t revert r.brc --continue
t revert r.brc HEAD~2 --date @41 --quiet
q write r.brc /a '[0]' --value 8
t revert r.brc --continue
t show r.brc HEAD
t read r.brc /a
t fsck r.brc
q reset r.brc HEAD~2 --hard

echo '# a merge has several parents'
q switch r.brc -c fork HEAD~3
q attrs r.brc / x=1
commit r.brc x 16
q switch r.brc main
t merge r.brc fork --date @51
t revert r.brc HEAD
t cherry-pick r.brc HEAD
t revert r.brc HEAD --mainline 3
t revert r.brc HEAD --mainline 1 --date @52
t attrs r.brc /
t log r.brc -n 1
t merge r.brc fork
t revert r.brc HEAD --date @53
t attrs r.brc /

echo '# the first commit'
q init new.brc
q create new.brc /a --shape 2 --dtype int8
commit new.brc one 10
t revert new.brc HEAD --date @11
t ls -r new.brc
t cherry-pick new.brc HEAD~1 --date @12
t ls -r new.brc

echo '# onto a branch without a commit'
q init unborn.brc
q switch unborn.brc -c x
q create unborn.brc /a --shape 2 --dtype int8
commit unborn.brc one 10
q write unborn.brc /a --value 1
commit unborn.brc two 11
q switch unborn.brc main
t cherry-pick unborn.brc x
t fsck unborn.brc
t cherry-pick unborn.brc --theirs
t cherry-pick unborn.brc --continue
t read unborn.brc /a
t log unborn.brc --oneline
t fsck unborn.brc

echo '# usage'
t cherry-pick r.brc
t cherry-pick r.brc a b
t cherry-pick r.brc nowhere
t cherry-pick r.brc HEAD --ours --theirs
t cherry-pick r.brc HEAD -- /a
t revert r.brc HEAD --mainline 0
t cherry-pick r.brc HEAD -m ''
t cherry-pick r.brc --continue --abort
t cherry-pick r.brc --continue --ours
t cherry-pick r.brc HEAD --continue
t cherry-pick r.brc --ours --no-commit
t revert r.brc --continue --mainline 1
