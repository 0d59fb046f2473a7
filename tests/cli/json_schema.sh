# Documents of --json that are objects begin with "schema": 1, and a failure is one, of every command.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 4 --dtype int8
q write r.brc /a --value 1
commit r.brc first 10
q write r.brc /a '[0]' --value 2
printf '0,5\n' >point.csv
printf '1,2\n' >table.csv

# begins CALL: how the document begins.
begins() {
    case $(sed -n 1p) in
    '{"schema":1,'* | '{"schema":1}') echo "$1: an object" ;;
    '['*) echo "$1: a list" ;;
    *) echo "$1: SOMETHING ELSE" ;;
    esac
}

echo '# answers; what attrs and backend print is the value itself, to be given back'
while read -r call; do
    breccia $call --json 2>&1 | begins "$call"
done <<'END'
ls r.brc
info r.brc
info r.brc /a
info r.brc /a --stats
info r.brc / --stats
read r.brc /a
read r.brc /a -o out.npy
du r.brc
status r.brc
log r.brc
show r.brc
diff r.brc
diff r.brc --elements
blame r.brc /a
branch r.brc
tag r.brc
oplog r.brc
drafts r.brc
config r.brc
config r.brc --show-origin
config --user
codecs r.brc /a
codecs --list
backend --list
write r.brc /a --csv point.csv
import r.brc table.csv
export r.brc /table out.csv
create r.brc /b --like /a
append r.brc /a --value 3
resize r.brc /a --shape 4
cp r.brc /a /c
mv r.brc /c /d
rm r.brc /d
commit r.brc -m second
tag r.brc v1
branch r.brc side
switch r.brc side
merge r.brc main
restore r.brc /a
undo r.brc --dry-run
backup r.brc copy.brc
gc r.brc --dry-run
fsck r.brc
expire r.brc --keep-last 5 --dry-run
bisect r.brc status
END

echo '# failures: an option that no command has, a file that is not there'
n=0
for command in $(breccia help | sed -n 's/^  \([a-z-]*\) .*/\1/p'); do
    [ "$command" = breccia ] && continue
    for call in '--no-such-option' 'missing.brc x y z w v --json'; do
        breccia $command $call --json >said 2>said.err
        status=$?
        n=$((n + 1))
        [ $status -eq 0 ] && continue
        [ "$(cut -c 1-28 said | sed 1q)" = '{"schema":1,"error":{"code":' ] && [ -s said.err ] || {
            echo "$command $call: status $status"
            cat said said.err
        }
    done
done
[ $n -gt 60 ] && echo 'every command was tried'
