# Habits that users bring from git: switch -c takes changes along; show, reset and commit -a.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 4 --dtype int8
q commit r.brc -m first
q write r.brc /a --value 1
q commit r.brc -m second

echo '# changes go along to a new branch'
q write r.brc /a '[0]' --value 9
t switch r.brc -c work
t status r.brc
t read r.brc /a
t read r.brc /a --at main
t undo r.brc
t status r.brc
t read r.brc /a
t branch r.brc
t undo r.brc --redo
t status r.brc
t commit r.brc -m 'on work'
t switch r.brc main
t read r.brc /a

echo '# but only to one at the same commit'
q write r.brc /a '[1]' --value 8
t switch r.brc work
t switch r.brc -c old HEAD~1
t branch r.brc
t switch r.brc -c same main
t status r.brc
t switch r.brc -c dropped --discard
t status r.brc

echo '# new changes that were made later do not keep an undo from going back'
q switch r.brc main
q branch r.brc -d same
q branch r.brc -d dropped
t switch r.brc -c later
unlogged write r.brc /a '[2]' --value 7
t undo r.brc
t status r.brc
t read r.brc /a
t reset r.brc --hard
t status r.brc

echo '# an open merge stays where it is'
q switch r.brc -c other HEAD~1
q write r.brc /a --value 5
q commit r.brc -m five
t merge r.brc main
t switch r.brc -c away
q merge r.brc --abort

echo '# without REV'
t show r.brc --stat | sed '/^commit\|^Author\|^Date/d'
q write r.brc /a --value 6
t reset r.brc
t read r.brc /a
t commit r.brc -a -m six
q write r.brc /a --value 7
t commit r.brc -am seven
q write r.brc /a --value 8
t commit r.brc -am eight --quiet
q init empty.brc
t show empty.brc
t reset empty.brc --hard
