# The draft of a killed write is adopted after its branch has moved: the draft then lies over the new commits, or the
# command says where both conflict. No commit of others is taken back.
. "$CLI_TESTS/common.inc"

# The amount that was written before the kill differs from run to run, as times and process ids do.
s() {
    sed 's/[0-9]\{4\}-[0-9-]*T[0-9:.]*Z/TIME/; s/process [0-9]*/process N/; s/[0-9]* added/N added/
        s/[0-9]* changed/N changed/; s/[0-9]* objects/N objects/; s/[0-9]* bytes/N bytes/'
}

# killed FILE: a write of /big ends in the middle, with a part of it in the file.
killed() {
    breccia write "$1" /big --from - <input >log 2>&1 &
    pid=$!
    exec 3>input
    head -c 134217728 bytes >&3
    until breccia drafts "$1" 2>&1 | grep -q private; do
        kill -0 $pid 2>/dev/null || { echo 'it came to its end'; cat log; break; }
    done
    kill -KILL $pid
    wait $pid 2>/dev/null
    exec 3>&-
}

mkfifo input
seq 1 17000000 | head -c 134217728 >bytes
q init r.brc
q create r.brc /big --shape 160,1048576 --dtype uint8 --chunks 1,65536 --compress none
q create r.brc /a --shape 4 --dtype int32 --chunks 2
commit r.brc base 10
killed r.brc
cp r.brc conflict.brc
t drafts r.brc | s
q write r.brc /a --value 3
commit r.brc other 11
t drafts r.brc | s
q write r.brc /a '[0]' --value 4
t drafts r.brc --adopt 4
q commit r.brc -m more
t drafts r.brc --adopt 4
t read r.brc /a
t status r.brc | s
t fsck r.brc | s
q commit r.brc -m 'what was left'
t read r.brc /a
t log r.brc --oneline
t diff r.brc HEAD~1 | s
t drafts r.brc
t fsck r.brc | s

echo '# a conflict'
q write conflict.brc /big '[0, 0:65536]' --value 7
q write conflict.brc /a --value 3
commit conflict.brc other 11
t drafts conflict.brc --adopt 4
t status conflict.brc | s
t drafts conflict.brc | s
t commit conflict.brc -m both
t commit conflict.brc -m both --json
t commit conflict.brc --amend
t merge conflict.brc main~1
t fsck conflict.brc | s
q restore conflict.brc /big --slice '[0, 0:65536]' --from HEAD
q commit conflict.brc -m both
t read conflict.brc /a
t read conflict.brc /big '[0, 0:4]'
t status conflict.brc
t diff conflict.brc HEAD~1 | s
t fsck conflict.brc | s

echo '# a commit that is undone beneath uncommitted changes'
q write r.brc /a '[0]' --value 10
q commit r.brc -m ten
unlogged write r.brc /a '[3]' --value 13
t undo r.brc | sed 's/operation [0-9]*/operation N/'
t status r.brc
t status r.brc --json
q commit r.brc -m thirteen
t read r.brc /a
q write r.brc /a '[1]' --value 11
q commit r.brc -m eleven
unlogged write r.brc /a '[1]' --value 12
q undo r.brc
t commit r.brc -m twelve
t restore r.brc /a --from HEAD
t commit r.brc -m twelve
t read r.brc /a
t status r.brc
t fsck r.brc | s
