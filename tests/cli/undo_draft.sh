# undo of what is not committed.
. "$CLI_TESTS/common.inc"

# Times of the log are those of the clock.
log() { breccia oplog "$@" --uncommitted | sed 's/[0-9-]*T[0-9:.]*Z/TIME/; s/"time":"[^"]*"/"time":"TIME"/g'; }

q init r.brc
q create r.brc /a --shape 4 --dtype int32 --chunks 2 --compress none
q group r.brc /g --attrs '{"x":1}'

echo '# each command is taken back as a whole, the last one first'
q write r.brc /a --value 1
q write r.brc /a '[1]' --value 7
q rm r.brc /a
log r.brc
t undo r.brc --dry-run
t undo r.brc --dry-run --json
t undo r.brc
t read r.brc /a
t undo r.brc
t read r.brc /a
t undo r.brc --json
t read r.brc /a
log r.brc
log r.brc --json
log r.brc -n 1
t drafts r.brc | sed 's/[0-9-]*T[0-9:.]*Z/TIME/'
t fsck r.brc

echo '# and done again'
t undo r.brc --redo --dry-run
t undo r.brc --redo
t read r.brc /a
t undo r.brc --redo --json
t read r.brc /a
t undo r.brc --redo
t read r.brc /a
t undo r.brc --redo
t fsck r.brc
t undo r.brc

echo '# until another change'
q undo r.brc
q attrs r.brc /g y=2
t undo r.brc --redo
log r.brc
t read r.brc /a

echo '# every command that changes something'
commit r.brc one 10
log r.brc
q attrs r.brc /g y=3
q mv r.brc /g /h
q resize r.brc /a --shape 6
q cp r.brc /a /h/b
i4 1 2 3 | npy n.npy '<i4' '(3,)'
q append r.brc /a --from n.npy
q codecs r.brc /a '[{"name":"bytes","configuration":{"endian":"big"}}]' --rewrite
q import r.brc n.npy /n
q restore r.brc /a
log r.brc
t diff r.brc
for n in 1 2 3 4 5 6 7 8; do
    t undo r.brc
    q fsck r.brc
done
t status r.brc
for n in 1 2 3 4 5 6 7 8; do
    t undo r.brc --redo
    q fsck r.brc
done
t diff r.brc

echo '# the first import makes the whole draft'
q reset r.brc --hard
q import r.brc n.npy /n
q rm r.brc /n
q undo r.brc
t undo r.brc
t status r.brc
t undo r.brc --redo
t read r.brc /n
t fsck r.brc

echo '# one order with branches and tags'
q reset r.brc --hard
q write r.brc /a '[0]' --value 5
q tag r.brc v1
q write r.brc /a '[0]' --value 6
for n in 1 2 3; do t undo r.brc --dry-run; t undo r.brc --json; done
for n in 1 2 3 4; do t undo r.brc --redo; done
t undo r.brc --expect 3
t read r.brc /a

echo '# what came after an undo ends what can be done again'
q undo r.brc
q tag r.brc v2
t undo r.brc --redo
q undo r.brc
q undo r.brc
q write r.brc /a '[0]' --value 8
t undo r.brc --redo
q undo r.brc
t undo r.brc --redo
t read r.brc /a

echo '# an undo that moves the branch keeps what can be done again'
q undo r.brc
q undo r.brc
log r.brc
t undo r.brc
log r.brc
t status r.brc
t fsck r.brc
for n in 1 2 3 4; do t undo r.brc --redo; done
t read r.brc /a
t diff r.brc
t fsck r.brc
echo '# until another change'
cp r.brc e.brc
for n in 1 2 3; do q undo e.brc; done
q create e.brc /other --shape 2 --dtype int8
log e.brc
t undo e.brc --redo
q undo e.brc
t undo e.brc --redo
commit e.brc other 20
t undo e.brc --redo
t fsck e.brc

echo '# a collection forgets what is older than the window'
q write r.brc /a --value 12
q gc r.brc
log r.brc
q gc r.brc --keep 0
log r.brc
t undo r.brc --dry-run
t fsck r.brc

echo '# only the last operations are kept'
unlogged write r.brc /a --value 3
t undo r.brc --dry-run
log r.brc
t fsck r.brc

echo '# gc forgets what could be taken back, and says so before'
q init log.brc
q create log.brc /a --shape 100 --dtype int32 --chunks 10
q write log.brc /a --value 1
q commit log.brc -m one
for n in 2 3 4; do q write log.brc /a "[0:$((10 * n))]" --value $n; done
q undo log.brc
forecast() { grep -o '"objects_removed":[0-9]*,"bytes_freed":[0-9]*'; }
would=$(breccia gc log.brc --keep 0 --dry-run --json | forecast)
[ "$would" = "$(breccia gc log.brc --keep 0 --json | forecast)" ] && echo 'as the dry run said'
t undo log.brc --redo
t fsck log.brc
