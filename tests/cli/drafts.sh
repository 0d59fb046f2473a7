# drafts: uncommitted changes of the whole file.
. "$CLI_TESTS/common.inc"

# Times are of today.
d() {
    echo "$ breccia drafts $*"
    breccia drafts "$@" 2>&1 | sed 's/[0-9]\{4\}-[0-9-]*T[0-9:.]*Z/TIME/'
}

q init r.brc
d r.brc
d r.brc --json
q create r.brc /a --shape 4 --dtype int32 --chunks 2
d r.brc
commit r.brc one 10
d r.brc
q write r.brc /a --value 1
q switch r.brc -c side --discard
q write r.brc /a --value 2
d r.brc
d r.brc --json
t drafts r.brc --adopt 9
t drafts r.brc --adopt x
t drafts r.brc --drop 4 --adopt 4
t drafts r.brc --adopt 4
t drafts r.brc --drop 4
t status r.brc
t drafts r.brc --drop 4 --json
q write r.brc /a --value 2
t drafts r.brc --drop 6 --json
d r.brc
