# oplog, undo.
. "$CLI_TESTS/common.inc"

# Times of the log are those of the clock.
log() { breccia oplog "$@" | sed 's/[0-9-]*T[0-9:.]*Z/TIME/'; }

q init r.brc
t undo r.brc
log r.brc
q create r.brc /a --shape 4 --dtype int32 --chunks 2
commit r.brc one 10
q write r.brc /a --value 1
commit r.brc two 11

echo '# back and forth'
t undo r.brc
t read r.brc /a
t undo r.brc --redo --json
t read r.brc /a
t undo r.brc --redo
t undo r.brc --expect 1
t undo r.brc --expect 3
t undo r.brc --expect x
t undo r.brc --redo --expect 3
log r.brc
breccia oplog r.brc -n 1 --json | sed 's/"time":"[^"]*"/"time":"TIME"/'

echo '# reset, and what is uncommitted'
q reset r.brc HEAD~1 --hard
t undo r.brc
t read r.brc /a
unlogged write r.brc /a '[3]' --value 9
t undo r.brc
t undo r.brc
t read r.brc /a
t commit r.brc -m 'over another commit'
t undo r.brc --redo
t undo r.brc --redo --json
q commit r.brc -m three
t read r.brc /a

echo '# branches and tags'
q tag r.brc v1 HEAD~1 -m 'the first'
q tag r.brc -d v1
t undo r.brc
t tag r.brc
q branch r.brc side
q switch r.brc side
unlogged write r.brc /a --value 5
t undo r.brc
t undo r.brc
q switch r.brc side
unlogged restore r.brc /a # now they are clean, but have a row
t undo r.brc
t undo r.brc
t branch r.brc
t undo r.brc --redo
t undo r.brc --redo
t branch r.brc
q write r.brc /a --value 6
commit r.brc side 12
q switch r.brc main
q branch r.brc -D side
t undo r.brc
t log r.brc --oneline --at side -1
q branch r.brc -m side lateral
t undo r.brc
t branch r.brc
t drafts r.brc
t fsck r.brc

echo '# changes that are not committed'
q init u.brc
q create u.brc /a --shape 2 --dtype int8
q commit u.brc -m one
q rm u.brc /a
t undo u.brc --dry-run
t undo u.brc --dry-run --json
t undo u.brc
t undo u.brc --redo
t undo u.brc --dry-run --expect 7
t undo u.brc --quiet
t undo u.brc --redo
q restore u.brc /a
t undo u.brc
