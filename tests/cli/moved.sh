# Uncommitted changes under which the branch has moved: who reads them is told.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 4 --dtype int32 --chunks 2 --compress none
commit r.brc one 10
q create r.brc /new --shape 2 --dtype int8 --compress none
q write r.brc /a '[0]' --value 1
commit r.brc two 11
unlogged write r.brc /a '[3]' --value 5
t ls r.brc
q undo r.brc

echo '# the branch is not where it was when they began'
t status r.brc
t status r.brc --json
t ls r.brc
t ls r.brc --json
t ls r.brc --quiet
t info r.brc | grep -v bytes
t info r.brc --json | sed 's/.*"stale"/"stale"/'
t info r.brc --quiet | tail -n 1
t info r.brc /a | tail -n 1
t info r.brc /a --json | sed 's/.*"stale"/"stale"/'
t read r.brc /a
t read r.brc /a --json 2>&1
breccia read r.brc /a --json 2>/dev/null
t attrs r.brc /a

echo '# a version is what it is'
t ls r.brc --at main
t ls r.brc --at main --json
t info r.brc /a --at main --json | grep -c stale
t read r.brc /a --at main

echo '# committed, and there is nothing to say'
q commit r.brc -m both
t ls r.brc
t info r.brc --json | grep -c stale
t status r.brc
