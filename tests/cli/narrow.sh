# Terminals of 60, 80 and 200 columns: columns fit, rows of arrays are one line where they can be, and nothing is left
# out of what goes to a pipe.
. "$CLI_TESTS/common.inc"


q init r.brc
q create r.brc /a --shape 300 --dtype int16
q create r.brc /a_group/with/an/array/of/temperatures --shape 100,200,300 --dtype float32 --chunks 10,20,30
q create r.brc /times --shape 3 --dtype 'datetime64[s]'
q create r.brc /steps --shape 3 --dtype 'timedelta64[10us]'
q create r.brc /names --shape 2 --dtype U12
q create r.brc /codes --shape 2 --dtype S4
q create r.brc /blobs --shape 2 --dtype V3
q create r.brc /fixes --shape 3 --dtype \
    '{"name":"struct","configuration":{"fields":[{"name":"x","data_type":"int32"},{"name":"y","data_type":"float64"}]}}'
q create r.brc /grid --shape 4,30 --dtype int16
q create r.brc /named --shape 2,3,4,5 --dtype float32 --dimension-names month,level,latitude,longitude
q write r.brc /grid --value 1000
q write r.brc /a '[3:7]' --value 2
commit r.brc 'a message that is too long for the line of a tag in sixty columns' 10
q tag r.brc a-tag -m 'a message that is too long for the line of a tag in sixty columns'
q write r.brc /a '[5:70]' --value 3
q commit r.brc -m second --author 'Somebody with a rather long name <somebody@mail.example.org>' --date 2026-11-21

q tag r.brc not-for-long
q undo r.brc
q undo r.brc --redo
q undo r.brc

# every COMMAND: the calls whose lines have columns.
every() {
    "$@" ls r.brc -rl
    "$@" tag r.brc
    "$@" diff r.brc HEAD~1 HEAD --elements
    "$@" show r.brc a-tag --stat
    "$@" blame r.brc /a --elements
    "$@" du r.brc
    "$@" oplog r.brc
    "$@" info r.brc /a --stats
    "$@" info r.brc /a_group --stats
    "$@" info r.brc / --stats
    "$@" read r.brc /grid
    "$@" codecs --list | sed '/zfp/d; s/  *$//' | head -n 4
    "$@" codecs --list --types | head -n 4
}
# on ARGUMENT...: the call on a terminal of $columns.
on() {
    on_terminal $columns 24 "breccia $*" | tr -d '\r'
}
bare() { sed 's/\x1b\[[0-9;]*m//g'; }
no_times() { sed 's/20[0-9-]*T[0-9:]*[.][0-9]*Z/TIME-ON-THE-CLOCK-IN-UTC-27/; s/20[0-9-]*T[0-9:]*Z/TIME-IN-SECONDS-20--/'; }

for columns in 60 80 200; do
    for term in TERM=xterm TERM=dumb 'TERM=xterm NO_COLOR=1'; do
        export $term
        echo "# $columns columns, $term"
        every on >said
        echo "lines with colours: $(grep -c "$(printf '\033')" said); wider than the terminal:"
        bare <said | no_times | awk -v most=$columns 'length > most'
        [ "$term" = TERM=dumb ] && no_times <said
        unset NO_COLOR
    done
done

echo '# a pipe, whatever COLUMNS is'
TERM=xterm COLUMNS=20
export TERM COLUMNS
every breccia >piped
grep -c '[^ ][.][.][.]\|[.][.][.][^ ]' piped
unset COLUMNS
every breccia | cmp - piped && breccia ls r.brc -rl && breccia tag r.brc
breccia info r.brc /times | sed -n 3p
breccia ls r.brc /times -l --json | grep -o '"data_type":{[^}]*}}'

echo '# COLUMNS comes before the size of the terminal'
columns=200
COLUMNS=40 on ls r.brc -rl | bare | awk "length > 60" | wc -l
