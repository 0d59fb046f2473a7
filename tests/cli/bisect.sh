# bisect.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 4 --dtype int32
commit r.brc c0 10
for n in 1 2 3 4 5 6 7 8; do
    q attrs r.brc /a n=$n
    [ $n != 6 ] || q write r.brc /a '[0]' --value 1
    q commit r.brc -m c$n --author a --date @2$n
done
q tag r.brc v0 HEAD~8

echo '# by hand'
t bisect r.brc status
t bisect r.brc good
t bisect r.brc start
t bisect r.brc bad
t bisect r.brc good v0
t bisect r.brc status --json
t bisect r.brc good
t bisect r.brc skip
t bisect r.brc status
t bisect r.brc bad
t bisect r.brc good
t bisect r.brc bad --json
t bisect r.brc good HEAD~2
t gc r.brc | sed "s|[0-9.]* [KM]iB|SIZE|"
t status r.brc
t bisect r.brc reset
t bisect r.brc status
t bisect r.brc status --json

echo '# by a command'
check='test "$(breccia read "$BRECCIA_FILE" /a --at $BRECCIA_REV | cut -c2)" = 0'
t bisect r.brc run true
t bisect r.brc start HEAD v0
t bisect r.brc run "$check"
t bisect r.brc run "$check" --json
t bisect r.brc start HEAD v0 --quiet
t bisect r.brc run "echo on standard output; $check" --json 2>/dev/null
q bisect r.brc start HEAD v0
printf '#!/bin/sh\n[ "$1" = --at ] && breccia attrs r.brc /a n --at "$BRECCIA_REV" >n && exit $(( $(cat n) == 4 ? 125 : $(cat n) > 2 ))\n' >check.sh
chmod +x check.sh
t bisect r.brc run -- ./check.sh --at

echo '# a command that does not say'
q bisect r.brc start HEAD v0
t bisect r.brc run 'exit 128'
t bisect r.brc run 'kill -9 $$'
t bisect r.brc run -- ./nowhere.sh at all
t bisect r.brc status

echo '# only skipped ones are left'
t bisect r.brc skip HEAD~7 HEAD~6 HEAD~5 HEAD~4 HEAD~3 HEAD~2 HEAD~1
t bisect r.brc status --json

echo '# contradictions'
t bisect r.brc start HEAD~4 HEAD~2
t bisect r.brc bad HEAD~4
t bisect r.brc start HEAD
t bisect r.brc good HEAD

echo '# a good version elsewhere: first what they have in common'
q switch r.brc -c side HEAD~4
q attrs r.brc / x=1
commit r.brc side 11
t bisect r.brc start main side
t bisect r.brc good
t bisect r.brc run "$check"

echo '# what it knows of is not collected'
q config r.brc window 0
q switch r.brc -c gone
q attrs r.brc / x=2
commit r.brc gone 12
q switch r.brc main
t bisect r.brc start gone main
q branch r.brc -D gone
t gc r.brc | sed "s|[0-9.]* [KM]iB|SIZE|"
t bisect r.brc status --json
t bisect r.brc good
t bisect r.brc reset
t gc r.brc | sed "s|[0-9.]* [KM]iB|SIZE|"
t fsck r.brc

echo '# usage'
t bisect r.brc
t bisect r.brc again
t bisect r.brc run
t bisect r.brc reset now
t bisect r.brc bad nowhere
