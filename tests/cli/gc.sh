# gc: what goes, what stays, what is said.
. "$CLI_TESTS/common.inc"
sized() { t "$@" | sed 's/[0-9.]* [KM]iB/SIZE/'; }

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
sized gc r.brc --dry-run --keep 1x
sized gc r.brc --dry-run --keep 2w
breccia gc r.brc --dry-run --keep 0 | sed 's/ [0-9].*//'
t config r.brc window 0
sized gc r.brc --keep 7d
before=$(breccia info r.brc --json | sed 's/.*"objects":\([0-9]*\).*/\1/')
would=$(breccia gc r.brc --dry-run --json | sed 's/.*"objects_removed":\([0-9]*\).*/\1/')
[ "$would" -gt 100 ] && echo 'many would go'
did=$(breccia gc r.brc --json | sed 's/.*"objects_removed":\([0-9]*\).*/\1/')
[ "$would" = "$did" ] && echo 'as many went'
after=$(breccia info r.brc --json | sed 's/.*"objects":\([0-9]*\).*/\1/')
[ $((before - did)) = "$after" ] && echo 'and are not there'
sized gc r.brc
sized gc r.brc --dry-run
breccia fsck r.brc | sed 's/^[0-9]* //'
t read r.brc /a [0:4]
t config r.brc window 90x
t config r.brc window --unset
t config r.brc window
sized gc r.brc --dry-run --expunge
sized gc r.brc --expunge
sized gc none.brc

echo '# what the file will be'
q init size.brc
q create size.brc /a --shape 8000000 --dtype uint8 --chunks 500000 --compress none
head -c 8000000 /dev/urandom >random
q write size.brc /a --from - <random
q commit size.brc -m random
q write size.brc /a --value 0
q commit size.brc -m zeros
member() { sed "s/.*\"$1\":\([0-9]*\).*/\1/"; }
near() { # NAME GUESS BYTES
    [ $(($2 - $3)) -lt 200000 ] && [ $(($3 - $2)) -lt 200000 ] && echo "$1 says the length" ||
        echo "$1 says $2 of $3 bytes"
}
sized gc size.brc
sized expire size.brc --keep-last 1
dry=$(breccia gc size.brc --keep 0 --dry-run --json | member file_bytes)
after=$(breccia gc size.brc --keep 0 --json | member file_bytes)
near 'a dry run' "$dry" "$after"
[ "$after" = "$(wc -c <size.brc)" ] && echo 'gc says the length'
near 'free pages have gone: it' 300000 "$after"
t gc size.brc --json | sed 's/"file_bytes":[0-9]*/"file_bytes":SIZE/'
echo '# a first collection makes its tables: a dry run counts them'
q init small.brc
q create small.brc /a --shape 4 --dtype int32
commit small.brc one 10
dry=$(breccia gc small.brc --dry-run --json | member file_bytes)
[ "$dry" = "$(breccia gc small.brc --json | member file_bytes)" ] && echo 'to the byte'
