# Every option that takes a number, with 0 and with what is not a number: each does what its help page says, and a
# number that an option cannot take is refused by the option's name. An option that is added needs a line here.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 3 --dtype uint8
q write r.brc /a --value 1
commit r.brc first 10
q write r.brc /a --value 2
commit r.brc second 11
i4 1 2 | npy two.npy '<i4' '(2,)'
u1 1 2 | npy bytes.npy '|u1' '(2,)'

tried='--threads --wait --max-nodes append--axis append--count cherry-pick--mainline create--chunks create--shape create--shards
diff--values expire--keep-daily expire--keep-last expire--keep-monthly expire--keep-weekly import--chunks log--number oplog--number
repack--depth resize--shape revert--mainline serve--budget serve--connections serve--port serve--queue serve--seconds
ui--port undo--expect'
for command in $(breccia help | sed -n 's/^  \([a-z-]*\) .*/\1/p'); do
    for option in $(breccia help "$command" 2>/dev/null |
        sed -n 's/^ *\(-[a-zA-Z], \)\{0,1\}\(--[a-z-]*\) \(N\|SECONDS\|N,N,[.]*\|BYTES\|LEVEL\|DAYS\) .*/\2/p'); do
        case " $(echo $tried) " in
        *" $option "* | *" $command$option "*) ;;
        *) echo "$command $option takes a number and is not tried here" ;;
        esac
    done
done

# bad ARGUMENT... OPTION: tries values that are not numbers or are too large; each must end with status 2.
bad() {
    for value in '' -1 1e3 0x10 18446744073709551616 ' 1' 1x; do
        breccia "$@" "$value" >said 2>&1
        status=$?
        eval "option=\${$#}"
        grep -q -e "option $option: '$value' is not\|option $option: '.*' is not" said || {
            echo "$* '$value': status $status"
            cat said
        }
        [ $status -eq 2 ] || echo "$* '$value': status $status"
    done
}

t read r.brc /a --threads 0
bad read r.brc /a --threads
t read r.brc /a --wait 0
t read r.brc /a --wait .5
bad read r.brc /a --wait
t read r.brc /a --wait .
t read r.brc /a --wait 1.2.3
t ls r.brc --max-nodes 0
bad ls r.brc --max-nodes
t diff r.brc HEAD~1 --values 0
bad diff r.brc --values
t log r.brc --oneline -n 0
t log r.brc --oneline -0
bad log r.brc --number
t oplog r.brc -n 0
bad oplog r.brc --number
t undo r.brc --expect 0
bad undo r.brc --expect
t repack r.brc --delta --depth 0
bad repack r.brc --delta --depth
t repack r.brc --delta --depth 65
t cherry-pick r.brc HEAD --mainline 0
bad cherry-pick r.brc HEAD --mainline
t revert r.brc HEAD --mainline 0
bad revert r.brc HEAD --mainline
for rule in last daily weekly monthly; do
    t expire r.brc --keep-$rule 0 --dry-run
    bad expire r.brc --keep-$rule
done
t expire r.brc --keep-last 1 --keep-daily 0 --dry-run | sed "s|[0-9.]* [KM]iB|SIZE|"
for option in port connections queue budget seconds; do
    bad serve r.brc --$option
done
t serve r.brc --connections 0
t serve r.brc --seconds 0
for option in port queue budget; do # a free port, nobody waits, nothing is decoded
    breccia serve r.brc --watch-stdin --$option 0 </dev/null | sed 's|:[0-9].*|: served|'
done
bad ui r.brc --port
BROWSER=true breccia ui r.brc --watch-stdin --port 0 </dev/null | sed 's|:[0-9].*|: served|'
t append r.brc /a --axis 0 --from bytes.npy
t append r.brc /a --axis 1 --from bytes.npy
bad append r.brc /a --value 1 --count
t append r.brc /a --value 1 --count 0
t create r.brc /none --shape 0 --dtype uint8
t read r.brc /none
t create r.brc /x --shape 3 --chunks 0 --dtype uint8
t create r.brc /x --shape 4 --chunks 2 --shards 0 --dtype uint8
t import r.brc bytes.npy /y --chunks 0
t resize r.brc /a --shape 0
t read r.brc /a
t resize r.brc /a --shape -1
