# expire: what stays, what is said, and what others make of it.
. "$CLI_TESTS/common.inc"
sized() { t "$@" | sed 's/[0-9.]* [KM]iB/SIZE/'; }

q init r.brc
q create r.brc /a --shape 8 --dtype int32 --chunks 4
n=0
for day in 01 02 03 04; do
    for hour in 08 12; do
        n=$((n + 1))
        q write r.brc /a '[0:1]' --value $n
        q commit r.brc -m "$day-$hour" --author 'Ada <ada@example.org>' --date "2026-11-${day}T$hour:00:00Z"
    done
done
q tag r.brc v1 HEAD~4
sized expire r.brc
sized expire r.brc --keep-daily 0
sized expire r.brc --dry-run
keep r.brc
sized expire r.brc --keep-last 1 --keep-daily 2 --dry-run
unchanged r.brc
sized expire r.brc --keep-weekly 2 --dry-run --json
sized expire r.brc --keep-last 1 --keep-daily 2
t log r.brc --oneline
t log r.brc -n 1
t blame r.brc /a
t show r.brc HEAD~1
breccia fsck r.brc | sed 's/^[0-9]* //'
echo '# what the log does not need any more goes'
q config r.brc window 0
q gc r.brc
t log r.brc --oneline
t show r.brc v1~1
t undo r.brc
breccia fsck r.brc | sed 's/^[0-9]* //'
sized expire r.brc --keep-last 9
sized expire none.brc --keep-last 9
echo '# an open merge keeps what it stands on'
q init m.brc
q create m.brc /a --shape 8 --dtype int32 --chunks 4
q commit m.brc -m first
q write m.brc /a '[7:8]' --value 9
q commit m.brc -m base
q branch m.brc side
q write m.brc /a '[0:1]' --value 1
q write m.brc /a '[4:5]' --value 1
q commit m.brc -m ours
q switch m.brc side
q write m.brc /a '[0:1]' --value 2
q commit m.brc -m theirs
q switch m.brc main
breccia merge m.brc side > /dev/null 2>&1
sized expire m.brc --keep-last 1
q config m.brc window 0
q gc m.brc
q merge m.brc --theirs
q merge m.brc --continue
t read m.brc /a
echo '# a commit that the log still names and gc has removed is not damage'
q init kept.brc
q create kept.brc /a --shape 4 --dtype int32
for hour in 10 11 12 13; do
    q write kept.brc /a --value $hour
    commit kept.brc "at $hour" $hour
    sleep 0.01
    breccia log kept.brc --json | grep -o '"id":"[^"]*"' | head -n 1 | cut -d '"' -f 4 >"id.$hour"
    breccia oplog kept.brc --json | grep -o '"time":"[^"]*"' | head -n 1 | cut -d '"' -f 4 >"time.$hour"
done
then=$(cat time.11)
q expire kept.brc --keep-last 1
q gc kept.brc --keep 0
for command in "read kept.brc /a --at main@{$then}" "log kept.brc --at main@{$then}" "diff kept.brc main@{$then}" \
    "show kept.brc main@{$then}" "blame kept.brc /a --at main@{$then}" "restore kept.brc /a --from main@{$then}" \
    "log kept.brc --at main@{$then}~1" "branch kept.brc old main@{$then}" "ls kept.brc --at main@{$then}"; do
    echo "\$ breccia ${command%%@*}"
    breccia $command 2>&1 | sed "s/$then/TIME/"
    breccia $command >/dev/null 2>&1
    show_status $?
done
echo '# nor is what is named by its id, or as the ancestor of another'
gone=$(cat id.11)
short=$(echo "$gone" | cut -c 1-12)
last=$(cat id.13)
for command in "read kept.brc /a --at $gone" "log kept.brc --at $gone" "diff kept.brc $short" "show kept.brc $short" \
    "read kept.brc /a --at $gone~1" "diff kept.brc $last~2" "log kept.brc --at HEAD~1" "diff kept.brc HEAD^2" \
    "tag kept.brc old $gone" "blame kept.brc /a --at main~3"; do
    echo "\$ breccia $command" | sed "s/$gone/GONE/; s/$short/SHORT/; s/$last/LAST/"
    breccia $command 2>&1 | sed "s/$gone/GONE/; s/$short/SHORT/; s/$last/LAST/"
    breccia $command >/dev/null 2>&1
    show_status $?
done
t read kept.brc /a --at 0123456789ab
breccia fsck kept.brc | sed 's/^[0-9]* //'
