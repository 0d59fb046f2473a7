# F13: names that do not exist are errors; log and diff take what git takes.
. "$CLI_TESTS/common.inc"

q init r.brc
t log r.brc
t log r.brc nosuch
q create r.brc /a --shape 4 --dtype int32 --chunks 2
t log r.brc /a
commit r.brc one 10
q create r.brc /main --shape 4 --dtype int32
q create r.brc /old --shape 4 --dtype int32
commit r.brc two 11
q branch r.brc side
q rm r.brc /old
commit r.brc three 12
q write r.brc /a --value 1
commit r.brc four 13
q switch r.brc side
q write r.brc /a --value 2
commit r.brc five 14
q tag r.brc v5
q group r.brc /fresh

echo '# a word is a node, else a version, else a node that was there'
t log r.brc main --oneline
t log r.brc /main --oneline
t log r.brc --oneline -- main
t log r.brc v5 --oneline
t log r.brc v5~1 --oneline
t log r.brc main main --oneline
t log r.brc --oneline main -- old
t log r.brc main old --oneline
q switch r.brc main --discard
t log r.brc old --oneline
t log r.brc side --oneline
q group r.brc /fresh
t log r.brc fresh

echo '# ranges: in a line, between branches, empty, with HEAD left out'
t log r.brc main~2..main --oneline
t log r.brc main..side --oneline
t log r.brc side..main --oneline
t log r.brc side.. --oneline
t log r.brc ..side --oneline
t log r.brc main..main~1
t log r.brc .. --json
t log r.brc main~3..main /a --oneline
t log r.brc --at main~2..main --oneline --graph
t log r.brc main...side
t log r.brc nosuch..main
t log r.brc main..nosuch

echo '# -N'
t log r.brc -1 --oneline
t log r.brc -2 --oneline side
t log r.brc -n 1 --oneline

echo '# names that are nothing'
t log r.brc nosuch
t log r.brc nosuch --json
t log r.brc /nosuch
t log r.brc main nosuch
t log r.brc main -- nosuch
t log r.brc nosuch main
t log r.brc main..side /nosuch
t log r.brc --at main side
t log r.brc a b c

echo '# diff'
t diff r.brc main~1..main --stat
t diff r.brc side.. --stat
t diff r.brc ..side --stat
t diff r.brc main~1 main --stat -- /a
t diff r.brc main~2 main --stat -- /old
t diff r.brc main~1 main -- /nosuch
t diff r.brc --json main~1..main -- /nosuch
t diff r.brc -- /nosuch
t diff r.brc main /a
t diff r.brc main...side
t diff r.brc main~1..nosuch

echo '# everything else that names something'
breccia export r.brc /a a.zarr --quiet
for call in 'ls NO' 'info NO' 'read NO' 'attrs NO' 'attrs a NO' 'attrs a --unset NO' \
    'codecs NO' 'rm NO' 'mv NO x' 'cp NO x' 'resize NO --shape 1' 'write NO --value 1' \
    'restore NO' 'restore a --from NO' 'export NO new' 'show NO' 'reset NO' 'switch NO' \
    'branch x NO' 'branch -d NO' 'branch -D NO' 'branch -m NO x' 'tag x NO' 'tag -d NO' \
    'tag -D NO' 'tag --rename NO x' 'import NO' 'import a.zarr /z --exclude NO' \
    'ls / --at NO' 'log --at NO' 'diff NO' 'diff main NO'; do
    set -- $(echo "$call" | sed 's/NO/nosuch/')
    command=$1
    shift
    breccia "$command" r.brc "$@" >out 2>&1
    status=$?
    [ $status -eq 1 ] && grep -q '^breccia: error: .*nosuch' out || echo "$call: status $status: $(cat out)"
done
