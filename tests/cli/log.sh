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

echo '# the history of values'
q init l.brc
t log l.brc --values /a
q create l.brc /a --shape 20 --dtype int32 --chunks 5
q write l.brc /a --value 1
commit l.brc one 10
q write l.brc /a '[17]' --value 4
commit l.brc two 11
q write l.brc /a '[3]' --value 9
commit l.brc three 12
q branch l.brc side
q write l.brc /a '[17]' --value 3
commit l.brc four 13
q switch l.brc side
q write l.brc /a '[:12]' --value 5
commit l.brc five 14
q merge l.brc main
q mv l.brc /a /b
commit l.brc six 15
t log l.brc '/b[17]' --values
t log l.brc 'b[17]' --values --oneline
t log l.brc b --values --oneline
t log l.brc b '[17]' --values --oneline
t log l.brc HEAD~1.. /b '[17]' --values --oneline
t log l.brc --values --oneline -- b '[17]'
t log l.brc b '[17]'
t log l.brc '/b[3]' --values --json
t log l.brc '/b[3]' --values -n 1 --oneline
t log l.brc 'HEAD~1..' '/b[17]' --values
t log l.brc '/b[5]' --values --oneline --grep fi
t log l.brc --values
t log l.brc '/b[3' --values
t log l.brc '/b[99]' --values
t log l.brc '/c[3]' --values
t log l.brc '/b[3]' --values --stat

echo '# values of what a commit moved and changed, grew, cut and moved with its group'
q init m2.brc
q create m2.brc /g/a --shape 6,2 --dtype int16 --chunks 2,2 --fill 0
q write m2.brc /g/a --value 1
commit m2.brc made 10
q mv m2.brc /g/a /g/b
q write m2.brc /g/b '[1]' --value 7
commit m2.brc 'moved and changed' 11
q resize m2.brc /g/b --shape 8,3
q write m2.brc /g/b '[6:,2]' --value 9
commit m2.brc grown 12
q mv m2.brc /g /h
commit m2.brc 'moved alone' 13
q resize m2.brc /h/b --shape 8,2
q write m2.brc /h/b '[7,0]' --value 4
commit m2.brc 'cut' 14
t log m2.brc '/h/b[1,0]' --values --oneline
t log m2.brc '/h/b[5:,:]' --values --oneline
t log m2.brc /h/b --values --oneline -n 2
t log m2.brc HEAD~1 '/h/b[:,2]' --values --oneline
q create m2.brc /s --shape 3 --dtype string
q write m2.brc /s '[1]' --value word
q rm m2.brc /h/b
commit m2.brc 'texts' 15
t log m2.brc /s --values --oneline
t log m2.brc HEAD~1 '/h/b[7,0]' --values --oneline

echo '# values of elements that were cut off, and of an array that was removed'
q init cut.brc
q create cut.brc /a --shape 8 --dtype int8 --chunks 4
q write cut.brc /a --value 1
commit cut.brc first 10
q write cut.brc /a '[7]' --value 5
commit cut.brc second 11
q resize cut.brc /a --shape 4
commit cut.brc third 12
t log cut.brc '/a[7]' --values --oneline
t log cut.brc '/a[2:7]' --values --oneline
t log cut.brc '/a[6:7]' --values --oneline
t log cut.brc '/a[8:9]' --values --oneline
t log cut.brc '/a[-1]' --values --oneline
t log cut.brc '/a[8]' --values --oneline
t log cut.brc HEAD~1 '/a[8]' --values --oneline
t log cut.brc '/a[7' --values --oneline
q mv cut.brc /a /b
q write cut.brc /b '[0]' --value 9
commit cut.brc fourth 13
t log cut.brc '/b[6]' --values --oneline
q rm cut.brc /b
commit cut.brc fifth 14
t log cut.brc '/b[0]' --values --oneline
t log cut.brc '/b[7]' --values --oneline
t log cut.brc '/c[7]' --values --oneline
