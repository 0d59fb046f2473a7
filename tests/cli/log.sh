# log and show.
. "$CLI_TESTS/common.inc"

q init r.brc
t log r.brc
t log r.brc --json
q create r.brc /a --shape 4 --dtype int32 --chunks 2 --compress none
commit r.brc one 10
q create r.brc /b --shape 4 --dtype float32 --chunks 2 --compress none
q tag r.brc v1 -m 'the first'
commit r.brc two 11
q write r.brc /a '[0:3]' --value 5
commit r.brc 'three

with a body
of two lines' 12
q branch r.brc side v1
q tag r.brc v3

echo '# log'
t log r.brc
t log r.brc --oneline
t log r.brc --oneline -n 2
t log r.brc -n 0
t log r.brc --oneline --at v1
t log r.brc --oneline --at HEAD~1
t log r.brc --oneline --at 'main@{2099-01-01T00:00:00Z}'
t log r.brc --oneline --at 'main@{2001-01-01T00:00:00Z}'
t log r.brc /a --oneline
t log r.brc b --oneline
t log r.brc /nowhere --oneline
t log r.brc --graph --oneline
t log r.brc --graph -n 2
t log r.brc --json
t log r.brc --at nowhere
t log r.brc --at abc
echo '# colours'
breccia log r.brc --oneline --color always | sed "s/$(printf '\033')\[\([0-9]*\)m/<\1>/g"
breccia log r.brc --oneline --color never -n 1
breccia log r.brc --oneline --color auto -n 1

echo '# show'
t show r.brc HEAD
t show r.brc HEAD~1 --json
t show r.brc v1
t show r.brc main --stat
t show r.brc main --elements
t show r.brc main --elements --json
t show r.brc nowhere
t show r.brc

echo '# a commit by its first digits'
id=$(breccia log r.brc -n 1 --json | sed 's/.*"id":"\([0-9a-f]*\)".*/\1/')
breccia show r.brc "$(echo "$id" | cut -c 1-12)" --stat | tail -n 1
breccia show r.brc "$(echo "$id" | cut -c 1-3)" >/dev/null 2>&1
echo "3 digits are too few: status $?"

echo '# a path that was moved, and a merge'
q init m.brc
q group m.brc /a
commit m.brc made 01
q branch m.brc side
q attrs m.brc /a v=1
commit m.brc ours 02
q mv m.brc /a /b
commit m.brc moved 03
q switch m.brc side
q attrs m.brc /a v=2
commit m.brc theirs 04
q switch m.brc main
q merge m.brc side --ours -m merge --author 'Ada <ada@example.org>' --date 2026-11-20T05:00:00Z
t log m.brc /b
breccia log m.brc /b --json | grep -o '"message":"[^"]*"\|"path":"[^"]*"'
t log m.brc /b --oneline --full | sed 's/^[0-9a-f]* //'
