# blame.
. "$CLI_TESTS/common.inc"

q init r.brc
t blame r.brc /a
q create r.brc /a --shape 4,6 --dtype int32 --chunks 2,3
q write r.brc /a --value 3
commit r.brc one 10
q write r.brc /a '[0, 0:2]' --value 1
commit r.brc two 11
q mv r.brc /a /g/b
commit r.brc moved 12
q write r.brc /g/b '[3, 2:5]' --value 9
commit r.brc three 13
q write r.brc /g/b --value 0

t blame r.brc /g/b
t blame r.brc /g/b '[0]' --json
t blame r.brc /g/b --elements
t blame r.brc /g/b '[0, ::2]' --elements
t blame r.brc /g/b '[3, 1::2]' --elements --json
t blame r.brc /a --at HEAD~2
t blame r.brc /a
t blame r.brc /g
t blame r.brc /g/b '[9]'
t blame r.brc /g/b --at nowhere
