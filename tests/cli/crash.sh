# A writer that is killed in the middle leaves nothing behind: the next one that
# opens the file, be it to read, finds it as it was.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 160,1048576 --dtype uint8 --chunks 1,65536 --compress none
commit r.brc one 10
mkfifo input
breccia write r.brc /a --from - <input >log 2>&1 &
pid=$!
exec 3>input
head -c 100000000 /dev/urandom >&3 # more than one part, less than all
sleep 1
kill -KILL $pid
wait $pid 2>/dev/null
exec 3>&-
t status r.brc
t read r.brc /a
t fsck r.brc | sed 's/[0-9]* objects/N objects/'
t write r.brc /a '[0, 0]' --value 1
t status r.brc
ls r.brc*
