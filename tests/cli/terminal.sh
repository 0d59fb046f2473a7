# Output on a terminal: colours, columns as wide as their widest value, JSON over several lines.
. "$CLI_TESTS/common.inc"


# terminal ARGUMENT...: the call on a terminal that has colours; ids and times are not shown.
terminal() {
    echo "\$ breccia $*"
    on_terminal 0 0 "TERM=xterm breccia $*" | tr -d '\r' | cat -v |
        sed 's/[0-9a-f]\{64\}/ID/g
             s/\(\[33m\|before \|commit \| \|(\)[0-9a-f]\{8\}\(\^\| \|)\|$\)/\1ID\2/g
             s/[0-9a-f]\{8\} -> [0-9a-f]\{8\}/ID -> ID/g; s/20[0-9-]*T[0-9:.]*Z/TIME/g'
}

q init r.brc
q create r.brc /wind/east --shape 6 --dtype int16 --chunks 2
q create r.brc /t --shape 4,4 --dtype float32 --chunks 2,2
q write r.brc /wind/east --value 1
commit r.brc 'the first' 10
q branch r.brc a-longer-name
q tag r.brc v1 -m 'as published'
q write r.brc /wind/east '[0:3]' --value 5
q create r.brc /wind/north --shape 6 --dtype int16 --chunks 2
commit r.brc 'the second' 11
q mv r.brc /t /temperature

echo '# lists'
terminal ls r.brc -r
terminal ls r.brc -rl
terminal branch r.brc
terminal tag r.brc
terminal oplog r.brc -n 2
terminal log r.brc
terminal blame r.brc /wind/east
terminal diff r.brc HEAD~1 --elements
terminal status r.brc
terminal info r.brc /wind/east

echo '# JSON'
terminal ls r.brc -r --json
terminal tag r.brc --json
terminal log r.brc -n 1 --json
terminal blame r.brc /wind/east --json
terminal diff r.brc HEAD~1 HEAD --elements --json
terminal mv r.brc /temperature /t --json
