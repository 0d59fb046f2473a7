# F10: branches and tags that alone hold commits; what deleting and resetting say.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 4 --dtype int32
commit r.brc one 10
q branch r.brc merged
q branch r.brc behind
q write r.brc /a --value 1
commit r.brc two 11
q switch r.brc -c alone
q write r.brc /a --value 2
commit r.brc three 12
q tag r.brc mark
q write r.brc /a --value 3
commit r.brc four 13
time=$(date -u +%Y-%m-%dT%H:%M:%S.%NZ | sed 's/...Z$/Z/')
q switch r.brc main
q init unborn.brc
q switch unborn.brc -c later

echo '# reached by another: at its commit, or behind it'
t branch r.brc -d merged
t branch r.brc -d behind --json
t tag r.brc -d mark
q tag r.brc mark alone~1

echo '# the only way to its commits'
keep r.brc
t branch r.brc -d alone
t branch r.brc -d alone --json
unchanged r.brc
t branch r.brc -D main
t branch r.brc -D nowhere
t branch r.brc -D alone -d alone
t branch r.brc -D alone
breccia log r.brc --oneline --at "alone@{$time}"
t branch r.brc

echo '# the way back that was said'
line=$(breccia branch r.brc again "alone@{$time}" && breccia branch r.brc -D again)
echo "$line"
eval "$(echo "$line" | sed -n "s/.*; '\(.*\)' restores it/\1/p")"
t log r.brc --oneline --at again
q branch r.brc -D again

echo '# tags likewise: this one is now alone'
t tag r.brc -d mark
t tag r.brc -D mark --json
t tag r.brc -D mark

echo '# a branch without a commit'
t branch unborn.brc -d main

echo '# reset'
t reset r.brc HEAD~1 --hard
t log r.brc --oneline
eval "$(breccia reset r.brc HEAD | sed -n "s/.*; '\(.*\)' goes back/\1/p")"
q branch r.brc kept "main@{$time}"
t reset r.brc kept --json
t reset r.brc HEAD
line=$(breccia reset r.brc HEAD~1 --hard)
eval "$(echo "$line" | sed -n "s/.*; '\(.*\)' goes back/\1/p")"
t log r.brc --oneline
t fsck r.brc | sed 's/[0-9]* objects/N objects/'
