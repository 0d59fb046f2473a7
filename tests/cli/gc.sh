# gc: what goes, what stays, what is said.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 40 --dtype int32 --chunks 4
q write r.brc /a --value 1
commit r.brc one 10
q switch r.brc -c side
q create r.brc /b --shape 400 --dtype int32 --chunks 4
seq 1 400 | awk '{ printf "%04d", $1 }' | breccia write r.brc /b --from - --quiet
commit r.brc two 20
q switch r.brc main
q branch r.brc -D side
echo '# the log has it'
breccia gc r.brc --json | grep -o '"dry_run":false'
t gc r.brc --dry-run --keep 1x
t gc r.brc --dry-run --keep 2w
breccia gc r.brc --dry-run --keep 0 | sed 's/ [0-9].*//'
t config r.brc window 0
t gc r.brc --keep 7d
before=$(breccia info r.brc --json | sed 's/.*"objects":\([0-9]*\).*/\1/')
would=$(breccia gc r.brc --dry-run --json | sed 's/.*"objects_removed":\([0-9]*\).*/\1/')
[ "$would" -gt 100 ] && echo 'many would go'
did=$(breccia gc r.brc --json | sed 's/.*"objects_removed":\([0-9]*\).*/\1/')
[ "$would" = "$did" ] && echo 'as many went'
after=$(breccia info r.brc --json | sed 's/.*"objects":\([0-9]*\).*/\1/')
[ $((before - did)) = "$after" ] && echo 'and are not there'
t gc r.brc
t gc r.brc --dry-run
breccia fsck r.brc | sed 's/^[0-9]* //'
t read r.brc /a [0:4]
t config r.brc window 90x
t config r.brc window --unset
t config r.brc window
t gc r.brc --dry-run --expunge
t gc r.brc --expunge
t gc none.brc
