# A file that cannot be written is read all the same.
. "$CLI_TESTS/common.inc"

[ "$(id -u)" -ne 0 ] || skip 'to root every file can be written'
q init r.brc
q create r.brc /a --shape 2 --dtype int8
commit r.brc one 10
q switch r.brc -c side
q write r.brc /a --value 3
commit r.brc two 11
q switch r.brc main
chmod a-w r.brc
t read r.brc /a
t log r.brc --oneline
t fsck r.brc --quiet
t write r.brc /a --value 1
t commit r.brc -m x
t branch r.brc x
t merge r.brc side --dry-run
t merge r.brc side
chmod a-w .
t read r.brc /a
chmod u+w .
