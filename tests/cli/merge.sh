# merge: fast-forward, three ways, conflicts.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 8 --dtype int32 --chunks 2
q create r.brc /g/b --shape 8 --dtype int32 --chunks 2
commit r.brc one 10
q branch r.brc side

echo '# fast-forward, and nothing to do'
q write r.brc /a '[0:2]' --value 1
q attrs r.brc /a x=1
commit r.brc two 11
q switch r.brc side
t merge r.brc main --dry-run
t merge r.brc main --dry-run --json
t merge r.brc main
t merge r.brc main
t merge r.brc main --json
t merge r.brc main --no-ff

echo '# three ways'
q write r.brc /a '[4:6]' --value 2
q attrs r.brc /a y=2
q mv r.brc /g /h
q create r.brc /h/n --shape 3 --dtype int8
commit r.brc side 12
q switch r.brc main
q write r.brc /g/b '[0:2]' --value 9
q attrs r.brc /a z=3
t merge r.brc side
commit r.brc main 13
t merge r.brc side --date @14 --author 'Ada <ada@example.org>' -m 'both'
t ls -r r.brc
t read r.brc /a
t read r.brc /h/b
t attrs r.brc /a
t log r.brc --graph --oneline
t show r.brc HEAD
t fsck r.brc

echo '# conflicts'
q branch r.brc other
q attrs r.brc /a x=2
q rm r.brc /h/n
commit r.brc ours 20
q switch r.brc other
q attrs r.brc /a x=3
q write r.brc /h/n --value 1
commit r.brc theirs 21
q switch r.brc main
t merge r.brc other
q merge r.brc --abort
t merge r.brc other --json
q merge r.brc --abort
t merge r.brc other --theirs -- /h
q merge r.brc --abort
t merge r.brc other --ours --date @22
t attrs r.brc /a
t merge r.brc side
t log r.brc --oneline -n 3

echo '# both append'
q create r.brc /log --shape 2 --chunks 2 --dtype int32
q write r.brc /log --value 1
commit r.brc log 22
q branch r.brc appender
q resize r.brc /log --shape 3
q write r.brc /log '[2:]' --value 2
commit r.brc appends 22
q switch r.brc appender
q resize r.brc /log --shape 4
q write r.brc /log '[2:]' --value 3
commit r.brc "they append" 23
q switch r.brc main
t merge r.brc appender
q merge r.brc --abort
t merge r.brc appender --concat --dry-run
t merge r.brc appender --concat --date @33
t read r.brc /log
t drafts r.brc
t fsck r.brc

echo '# usage'
t merge r.brc
t merge r.brc other --ours --theirs
t merge r.brc other -- /a
t merge r.brc nowhere
