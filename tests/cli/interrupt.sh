# F15: SIGTERM in the middle of long work: 143, the file whole, nothing left beside it,
# and what was printed ends soon after the signal.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 4096,4096 --dtype uint16 --chunks 256,256 --compress none
head -c 33554432 /dev/urandom >noise
breccia write r.brc /a --from - --quiet <noise
commit r.brc one 10
keep r.brc
ls >before

# stopped OUTPUT ARGUMENT...: the signal comes when the reader has 64 KiB of the output
stopped() {
    rm -f pipe
    mkfifo pipe
    breccia "$@" >pipe 2>err &
    pid=$!
    exec 3<pipe
    head -c 65536 <&3 >/dev/null
    kill -TERM $pid
    after=$(wc -c <&3)
    exec 3<&-
    wait $pid
    status=$?
    [ $after -lt 1000000 ] && printed=stopped || printed="WENT ON for $after bytes"
    echo "$1 $4 $5: status $status, output $printed: $(cat err)"
    rm pipe
}
stopped read r.brc /a --format csv
stopped read r.brc /a --format raw
stopped read r.brc /a --format npy
unchanged r.brc
rm -f err
ls | diff before - && echo 'nothing is left'
