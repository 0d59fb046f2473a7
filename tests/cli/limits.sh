# Every command over a small file whose groups share their children: 2^30 paths. What walks through paths ends at
# --max-nodes, and nothing takes memory or time for the rest.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /g/x --shape 8 --dtype int32 --chunks 4
q write r.brc /g/x --value 1
commit r.brc before 10
i=0
while [ $i -lt 30 ]; do
    i=$((i + 1))
    q cp r.brc /g /n/a
    q cp r.brc /g /n/b
    q rm r.brc /g
    q mv r.brc /n /g
    commit r.brc "level $i" 11
done

q tag r.brc v1

# call ARGUMENT...: on a copy; 2 GiB and a minute of processor time are enough for each.
call() {
    cp r.brc work.brc
    (
        [ -n "${ASAN_OPTIONS:-}" ] || ulimit -v 2097152 # the sanitizer reserves terabytes
        ulimit -t 60
        exec breccia "$@" --max-nodes 1000
    ) >said 2>&1 </dev/null
    status=$?
    if grep -q -e '--max-nodes' said; then
        echo "$1: --max-nodes, status $status"
    else
        echo "$1: status $status"
    fi
}

i4 1 2 | npy b.npy '<i4' '(2,)'
array=/g$(printf '/a%.0s' $(seq 30))/x
for command in $(breccia help | sed -n 's/^  \([a-z-]*\) .*/\1/p'); do
    case $command in
    breccia) ;; # how to call it
    serve | ui) ;; # answers have limits of their own
    init) call init new.brc && rm -f new.brc ;;
    create) call create work.brc /new --shape 4 --dtype int32 ;;
    group) call group work.brc /new ;;
    import) call import work.brc b.npy /new ;;
    export) call export work.brc out.zarr && rm -rf out.zarr ;;
    write) call write work.brc $array --value 1 ;;
    append) call append work.brc $array --axis 0 --from b.npy ;;
    resize) call resize work.brc $array --shape 4 ;;
    rm) call rm work.brc /g ;;
    mv) call mv work.brc /g /h ;;
    cp) call cp work.brc /g /h ;;
    attrs) call attrs work.brc /g k=1 ;;
    codecs) call codecs work.brc $array ;;
    backend) call backend work.brc $array ;;
    ls) call ls work.brc -r ;;
    info) call info work.brc && call info work.brc /g ;;
    read) call read work.brc $array ;;
    du) call du work.brc ;;
    status) call status work.brc ;;
    commit) call commit work.brc -m more --allow-empty ;;
    log) call log work.brc /g ;;
    show) call show work.brc HEAD ;;
    diff) call diff work.brc HEAD~1 HEAD && call diff work.brc HEAD HEAD~1 --elements ;;
    blame) call blame work.brc $array ;;
    branch) call branch work.brc side ;;
    tag) call tag work.brc v2 ;;
    switch) call switch work.brc -c side ;;
    merge) call merge work.brc v1 ;;
    restore) call restore work.brc /g --from HEAD~1 ;;
    rebase) call rebase work.brc v1 ;;
    cherry-pick) call cherry-pick work.brc HEAD ;;
    revert) call revert work.brc HEAD ;;
    bisect) call bisect work.brc start HEAD HEAD~1 ;;
    reset) call reset work.brc HEAD~1 && call reset work.brc HEAD~1 --hard ;;
    oplog) call oplog work.brc ;;
    undo) call undo work.brc ;;
    drafts) call drafts work.brc ;;
    config) call config work.brc ;;
    backup) call backup work.brc copy.brc && rm -f copy.brc ;;
    expire) call expire work.brc --keep-last 1 --dry-run ;;
    fsck) call fsck work.brc ;;
    gc) call gc work.brc ;;
    repack) call repack work.brc --codecs '["zstd"]' ;;
    completion) call completion words -- read work.brc / ;;
    help) call help ;;
    *) echo "$command: this test does not call it" ;;
    esac
done
