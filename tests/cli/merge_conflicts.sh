# merge: conflicts that stay open, and how they are settled.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 8 --dtype int32 --chunks 4
q create r.brc /g/b --shape 8 --dtype int32 --chunks 4
q attrs r.brc /a x=1
commit r.brc one 10
q branch r.brc side
q write r.brc /a '[0:2]' --value 1
q write r.brc /a '[5]' --value 1
q attrs r.brc /a x=2
q rm r.brc /g/b
q mv r.brc /g /h
commit r.brc ours 11
q switch r.brc side
q write r.brc /a '[1:4]' --value 2
q write r.brc /a '[5:7]' --value 2
q attrs r.brc /a x=3
q write r.brc /g/b --value 3
q mv r.brc /g /k
commit r.brc theirs 12
q switch r.brc main

echo '# it stays open'
t merge r.brc side --dry-run
t merge r.brc side --date @13 --author 'Ada <ada@example.org>'
cp r.brc open.brc
t status r.brc
t status r.brc --json
breccia drafts r.brc | sed 's/2[0-9-]*T[0-9:.]*Z/TIME/'
t fsck r.brc
t gc r.brc | sed "s|[0-9.]* [KM]iB|SIZE|"
t commit r.brc -m no
t merge r.brc side
t switch r.brc side
t cherry-pick r.brc side
t mv r.brc /a /z
t merge r.brc --continue --json
t cherry-pick r.brc --continue
t revert r.brc --abort

echo '# settled by side and by writing'
t merge r.brc --ours --json -- /k /h
t attrs r.brc /a x=7
t merge r.brc --theirs -- /a
t status r.brc
t merge r.brc --continue --date @14 --author 'Ada <ada@example.org>'
t read r.brc /a
t attrs r.brc /a
t ls -r r.brc
t show r.brc HEAD
t status r.brc
t fsck r.brc

echo '# all for theirs'
cp open.brc r.brc
t merge r.brc --theirs
t merge r.brc --continue --json --date @15 --author 'Ada <ada@example.org>' -m mine
t show r.brc HEAD
t fsck r.brc

echo '# dropped'
cp open.brc r.brc
t merge r.brc --abort
t status r.brc
t merge r.brc --abort
t merge r.brc --continue
t merge r.brc --theirs
t merge r.brc side --json
t merge r.brc --abort --json
t fsck r.brc

echo '# usage'
t merge r.brc --continue --abort
t merge r.brc --continue --ours
t merge r.brc side --continue
t merge r.brc --ours --dry-run

echo '# the branch moves meanwhile'
cp open.brc r.brc
t merge r.brc --abort
q write r.brc /a '[2]' --value 8
commit r.brc more 16
t merge r.brc side
q write r.brc /a '[1:3]' --value 9
t merge r.brc --theirs
t undo r.brc
t merge r.brc --continue --json
q undo r.brc --redo
t merge r.brc --theirs
t merge r.brc --continue
t merge r.brc --theirs
t merge r.brc --continue --date @17 --author 'Ada <ada@example.org>'
t read r.brc /a
t status r.brc
t fsck r.brc

echo '# criss-cross, where the two merge bases have an array in chunks of different shape'
q init cross.brc
q create cross.brc /keep --shape 1 --dtype int8
commit cross.brc base 10
q branch cross.brc side
q create cross.brc /n --shape 12 --dtype int32 --chunks 4
q write cross.brc /n --value 1
commit cross.brc 'in fours' 11
q switch cross.brc side
q create cross.brc /n --shape 12 --dtype int32 --chunks 7
q write cross.brc /n --value 2
commit cross.brc 'in sevens' 12
q tag cross.brc sevens
t merge cross.brc main --ours -m 'sevens stay' --author 'Ada <ada@example.org>' --date 2026-11-20T13:00:00Z
q switch cross.brc main
t merge cross.brc sevens --ours -m 'fours stay' --author 'Ada <ada@example.org>' --date 2026-11-20T14:00:00Z
t merge cross.brc side --dry-run
t merge cross.brc side --theirs --author 'Ada <ada@example.org>' --date 2026-11-20T15:00:00Z
t read cross.brc /n
t fsck cross.brc

echo '# conflicts by element: base, ours and theirs'
q init e.brc
q create e.brc /a --shape 4,20 --dtype int32 --chunks 4,5
q create e.brc /s --shape 3 --dtype string --chunks 2
q write e.brc /a --value 1
commit e.brc one 10
q branch e.brc side
q write e.brc /a '[1, 15:18]' --value 4
q write e.brc /a '[:, 0]' --value 5
q write e.brc /s '[1]' --value ours
commit e.brc two 11
q switch e.brc side
q write e.brc /a '[1, 16:]' --value 7
q write e.brc /a '[:, :5]' --value 6
q write e.brc /s '[1:]' --value theirs
commit e.brc three 12
t merge e.brc main --dry-run
t merge e.brc main --dry-run --json
t merge e.brc main
t status e.brc
t merge e.brc --ours -- /s
t status e.brc --json
t merge e.brc --abort
t rebase e.brc main
t rebase e.brc --abort
q create e.brc /b --shape 300 --dtype uint8 --chunks 10
commit e.brc four 13
q branch e.brc again
q write e.brc /b --value 2
commit e.brc five 14
q switch e.brc again
q write e.brc /b --value 3
commit e.brc six 15
t merge e.brc side --dry-run
