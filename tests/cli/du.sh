# du: what the bytes are for.
. "$CLI_TESTS/common.inc"

q init r.brc
t du r.brc
q create r.brc /a --shape 8 --dtype int32 --chunks 4 --compress none
i4 1 2 3 4 5 6 7 8 | breccia write r.brc /a --from - --quiet
q cp r.brc /a /b
commit r.brc one 10
q write r.brc /a '[0:1]' --value 9
commit r.brc two 11
q create r.brc /g/c --shape 4 --dtype int32 --compress none
commit r.brc three 12
q write r.brc /b '[0:1]' --value 10
t du r.brc
t du r.brc --json
t expire r.brc --keep-last 1 --dry-run --json
q expire r.brc --keep-last 1
t du r.brc
q config r.brc window 0
t gc r.brc | sed "s|[0-9.]* [KM]iB|SIZE|"
t du r.brc
t du r.brc x
t du none.brc
