# branch, tag, switch, reset, restore.
. "$CLI_TESTS/common.inc"

q init r.brc
t branch r.brc
t branch r.brc --json
t tag r.brc
t tag r.brc --json
q create r.brc /a --shape 4 --dtype int32 --chunks 2
commit r.brc one 10
q write r.brc /a --value 1
commit r.brc two 11

echo '# branch'
t branch r.brc side
t branch r.brc old HEAD~1 --json
t branch r.brc side
t branch r.brc 'bad name'
t branch r.brc x nowhere
t branch r.brc
t branch r.brc --json
t branch r.brc -m old older
t branch r.brc --rename older oldest --json
t branch r.brc -m nowhere x
t branch -d oldest r.brc
t branch r.brc -d oldest
t branch r.brc -d main
t branch r.brc -m main
t branch r.brc -d side -m a b
t branch r.brc x -d side
t branch r.brc

echo '# tag'
t tag r.brc v1 HEAD~1 -m 'the first one'
t tag r.brc v2 --json
t tag r.brc v2
t tag r.brc
t tag r.brc --json
t tag r.brc --rename v2 v2.0
t tag r.brc -d v2.0
t tag r.brc -d v2.0
t tag r.brc -m 'without a name'
t log r.brc --oneline --at v1

echo '# an id is not a valid name'
id=$(breccia log r.brc -n 1 --json | sed 's/.*"id":"\([0-9a-f]*\)".*/\1/')
t branch r.brc "$id" HEAD~1
t tag r.brc "$id" HEAD~1
t tag r.brc --rename v1 "$id"

echo '# switch'
t switch r.brc side
t status r.brc
t switch r.brc main --json
t switch r.brc nowhere
t switch r.brc -c work
t switch r.brc -c work
t switch r.brc fromold v1
t switch r.brc fromold v1 -c
t read r.brc /a
q write r.brc /a --value 9
t switch r.brc main
t switch r.brc -c other main
t branch r.brc
t read r.brc /a
t switch r.brc main --discard
t read r.brc /a
t switch r.brc fromold
t status r.brc

echo '# reset'
t switch r.brc work
q write r.brc /a '[0]' --value 5
t reset r.brc HEAD~1
t status r.brc
t read r.brc /a
t reset r.brc main --hard --json
t status r.brc
t read r.brc /a
t reset r.brc nowhere

echo '# restore'
q write r.brc /a '[0:2]' --value 7
q create r.brc /new --shape 1 --dtype int8
t restore r.brc /a
t read r.brc /a
t restore r.brc /new
t ls r.brc
t restore r.brc a --from v1 --slice '[1:3]' --json
t read r.brc /a
t restore r.brc /a --slice '[1]'
t read r.brc /a
t restore r.brc /a --from v1
t read r.brc /a
t restore r.brc /
t status r.brc
t restore r.brc /nowhere
t restore r.brc /a --from nowhere
t restore r.brc /a --slice '[9]'
