# SIGINT and SIGTERM: 130 and 143, and nothing changed.
. "$CLI_TESTS/common.inc"

env --default-signal=INT true 2>/dev/null || skip 'this env cannot make SIGINT work in the background'
q init r.brc
q create r.brc /a --shape 8 --dtype uint8
commit r.brc one 10
mkfifo input

interrupted() { # SIGNAL
    env --default-signal=INT breccia write r.brc /a --from - <input >log 2>&1 &
    pid=$!
    exec 3>input
    printf 'half' >&3
    sleep 0.5
    kill -"$1" $pid
    wait $pid
    echo "$1: status $?"
    exec 3>&-
    cat log
}
keep r.brc
interrupted INT
interrupted TERM
unchanged r.brc
t read r.brc /a
