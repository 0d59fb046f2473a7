# Places without room: nothing changes, and the error says where.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 4194304 --dtype uint8 --chunks 65536 --compress none
commit r.brc one 10
head -c 4194304 /dev/urandom >noise.raw
keep r.brc

echo '# the repository'
(
    ulimit -f 1024 # blocks of 512 bytes
    breccia write r.brc /a --from - <noise.raw >full.log 2>&1
    echo "status $?"
)
sed 's/: [^:]*$/: .../' full.log | cut -c 1-30
wc -l <full.log
breccia status r.brc
breccia read r.brc /a --format raw | tr -d '\000' | wc -c
t fsck r.brc | sed 's/[0-9]* objects/N objects/'

echo '# with room it goes on'
breccia write r.brc /a --from - --quiet <noise.raw
breccia read r.brc /a --format raw | cmp - noise.raw && echo 'all there'

echo '# the file that is written to'
(
    ulimit -f 1024
    breccia read r.brc /a --format raw -o out.raw
    echo "status $?"
    breccia export r.brc /a out.npy >full.log 2>&1
    echo "status $?"
    grep -c '^breccia: error: .*out.npy' full.log
) 2>&1
ls out* 2>/dev/null

if [ -w /dev/full ]; then
    echo '# standard output'
    breccia ls r.brc >/dev/full
    echo "status $?"
    breccia read r.brc /a --format raw >/dev/full
    echo "status $?"
    breccia info r.brc --json >/dev/full
    echo "status $?"
fi

echo '# a reader that stops reading: no word about it'
breccia read r.brc /a --format csv | head -c 0
