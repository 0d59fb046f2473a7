# F8: an answer that cannot be written. What changes something ends with 6 and has
# changed it; what reads ends with 1, and dies of SIGPIPE where nobody reads.
. "$CLI_TESTS/common.inc"
[ -w /dev/full ] || skip 'there is no /dev/full'

printf 'abcdefgh' | npy eight.npy '|u1' '(8,)'
printf 'ab' | npy two.npy '|u1' '(2,)'
codecs='[{"name":"bytes"},{"name":"gzip","configuration":{"level":1}}]'

# Every command that changes something: a name, the call, how its change shows.
# `new` stands for a file that is not there yet.
writing() {
    cat <<'END'
init        | init new                               | ls new
create      | create r.brc /c --shape 4 --dtype int8 | info r.brc /c
group       | group r.brc /g                         | info r.brc /g
import      | import r.brc eight.npy /i              | info r.brc /i
write       | write r.brc /a --value 7               | diff r.brc -- /a
append      | append r.brc /a --from two.npy         | read r.brc /a [9]
resize      | resize r.brc /a --shape 12             | read r.brc /a [11]
rm          | rm r.brc /b                            | diff r.brc -- /b
mv          | mv r.brc /b /moved                     | info r.brc /moved
cp          | cp r.brc /b /copied                    | info r.brc /copied
attrs       | attrs r.brc /a k=1                     | attrs r.brc /a k
codecs      | codecs r.brc /a CODECS                 | diff r.brc -- /a
commit      | commit r.brc -m text --allow-empty     | show r.brc main~2
amend       | commit r.brc --amend -m other          | log r.brc --oneline
branch      | branch r.brc x                         | log r.brc --at x
branch-d    | branch r.brc -d side                   | branch r.brc
branch-m    | branch r.brc -m side new               | log r.brc --at new
tag         | tag r.brc t                            | log r.brc --at t
tag-d       | tag r.brc -d v1                        | tag r.brc
tag-m       | tag r.brc --rename v1 v2               | log r.brc --at v2
switch      | switch r.brc side                      | status r.brc
switch-c    | switch r.brc -c y                      | log r.brc --at y
merge       | merge r.brc apart                      | log r.brc --oneline
merge-c     | merge r.brc --continue                 | log r.brc --oneline
merge-a     | merge r.brc --abort                    | drafts r.brc
merge-o     | merge r.brc --ours                     | status r.brc
rebase      | rebase r.brc apart                     | log r.brc --oneline
cherry-pick | cherry-pick r.brc apart                | log r.brc --oneline
pick-c      | cherry-pick r.brc --continue           | log r.brc --oneline
pick-a      | cherry-pick r.brc --abort              | drafts r.brc
pick-o      | cherry-pick r.brc --ours               | status r.brc
revert      | revert r.brc HEAD                      | log r.brc --oneline
bisect      | bisect r.brc start main side           | bisect r.brc status
restore     | restore r.brc /a --from HEAD~1         | diff r.brc -- /a
reset       | reset r.brc HEAD~1 --hard              | log r.brc
export      | export r.brc /a new.npy                | import z.brc new.npy /z
undo        | undo r.brc                             | tag r.brc
drafts      | drafts r.brc --drop DRAFT              | drafts r.brc
config      | config r.brc journal wal               | config r.brc
backup      | backup r.brc new                       | ls new
expire      | expire r.brc --keep-last 1             | log r.brc
gc          | gc r.brc                               | fsck r.brc
repack      | repack r.brc --backend pack            | backend r.brc
read-o      | read r.brc /a -o new.npy --json        | import z.brc new.npy /z
END
}
# Every command that changes nothing.
reading() {
    cat <<'END'
attrs  | attrs r.brc /a
bisect | bisect r.brc status
blame  | blame r.brc /a
branch | branch r.brc
codecs | codecs r.brc /a
codecs | codecs --list
backend | backend r.brc /a
backend | backend --list
diff   | diff r.brc HEAD~1 HEAD
drafts | drafts r.brc
config | config r.brc
du     | du r.brc
fsck   | fsck r.brc
completion | completion bash
completion | completion words -- read r.brc /
help   | help
info   | info r.brc
info   | info r.brc /a
log    | log r.brc
oplog  | oplog r.brc
ls     | ls r.brc
read   | read r.brc /a
read   | read r.brc /a --format csv
read   | read r.brc /a --format json
read   | read r.brc /a --format raw
read   | read r.brc /a --format npy
show   | show r.brc HEAD
status | status r.brc
tag    | tag r.brc
END
}

q init base.brc
q create base.brc /a --shape 8 --dtype uint8 --chunks 4
q create base.brc /b --shape 8 --dtype uint8 --chunks 4
commit base.brc one 10
q write base.brc /a --value 1
commit base.brc two 11
q branch base.brc side HEAD~1
q tag base.brc v1
q init empty.brc
cp base.brc long.brc
for n in 12 13; do q commit long.brc -m $n --allow-empty --date @$n --author a; done

q init apart.brc
q create apart.brc /a --shape 8 --dtype uint8
commit apart.brc one 10
q switch apart.brc -c apart
q attrs apart.brc /a x=1
commit apart.brc two 11
q switch apart.brc main
q attrs apart.brc /a y=1
commit apart.brc three 12

q init merging.brc
q create merging.brc /a --shape 8 --dtype uint8
commit merging.brc one 10
q switch merging.brc -c apart
q attrs merging.brc /a x=1
commit merging.brc two 11
q switch merging.brc main
q attrs merging.brc /a x=2
commit merging.brc three 12
breccia merge merging.brc apart --quiet >merging.log 2>&1
cp merging.brc settled.brc
q merge settled.brc --ours
cp merging.brc picking.brc
q merge picking.brc --abort
breccia cherry-pick picking.brc apart --quiet >picking.log 2>&1
cp picking.brc picked.brc
q cherry-pick picked.brc --theirs

q init dirty.brc
q create dirty.brc /b --shape 8 --dtype uint8

# fresh [NAME]: base.brc, for the call of that name
fresh() {
    rm -rf new new.npy r.brc z.brc
    cp base.brc r.brc
    [ "${1:-}" != drafts ] || cp dirty.brc r.brc
    case "${1:-}" in
        merge | rebase | cherry-pick) cp apart.brc r.brc ;;
        merge-a | merge-o) cp merging.brc r.brc ;;
        merge-c) cp settled.brc r.brc ;;
        pick-a | pick-o) cp picking.brc r.brc ;;
        pick-c) cp picked.brc r.brc ;;
        expire) cp long.brc r.brc ;;
    esac
    cp empty.brc z.brc
}
# call WORDS: the words of a table's column
call() {
    set -- $1
    for word in "$@"; do
        shift
        [ "$word" = CODECS ] && word=$codecs
        [ "$word" = DRAFT ] && word=1
        set -- "$@" "$word"
    done
    breccia "$@"
}
shown() { call "$1" 2>&1 | grep -v '^Date:'; }

# A pipe whose reader has gone.
mkfifo pipe
exec 4<>pipe 5>pipe 4>&-

echo '# changing: status, sentences, is the change there?'
writing | while IFS='|' read -r name words check; do
    name=$(echo $name)
    [ "$name" != '' ] || continue
    fresh "$name"
    before=$(shown "$check")
    for output in full pipe json; do
        fresh "$name"
        if [ $output = full ]; then
            call "$words" >/dev/full 2>err
        elif [ $output = pipe ]; then
            call "$words" >&5 2>err
        else
            call "$words --json" >/dev/full 2>err
        fi
        status=$?
        told=$(grep -c '^breccia: error: .*done and stored, but the answer could not be written: ' err)
        [ "$(shown "$check")" != "$before" ] && done=there || done=MISSING
        [ "$status $told $(wc -l <err) $done" = '6 1 1 there' ] ||
            echo "$name $output: status $status, change $done: $(cat err)"
    done
done
fresh
breccia commit r.brc -m x --allow-empty 2>&1 >/dev/full
breccia attrs r.brc /a k=1 2>&1 >&5

echo '# --quiet has no answer to lose'
breccia tag r.brc quiet --quiet >/dev/full
show_status $?

echo '# a change that fails is none'
breccia rm r.brc /nowhere 2>&1 >/dev/full
show_status $?

echo '# reading: 1, and the signal of a pipe without a word'
reading | while IFS='|' read -r name words; do
    fresh
    call "$words" >/dev/full 2>err
    [ "$? $(grep -c '^breccia: error: .*standard output: ' err)" = '1 1' ] || echo "$words: $(cat err)"
    call "$words" >&- 2>err
    [ "$? $(grep -c '^breccia: error: .*standard output: ' err)" = '1 1' ] || echo "$words, closed: $(cat err)"
    call "$words" >&5 2>err
    [ "$? $(wc -l <err)" = '141 0' ] || echo "$words: pipe: $(cat err)"
    cmp r.brc base.brc
done

echo '# every command is in one of the tables'
{ writing; reading; echo 'serve and ui: see serve.sh'; echo ui; } | sed 's/[-| ].*//' | sort -u >known
breccia help | awk '/^  [a-z-]+ / && !/breccia/ { sub(/-.*/, "", $1); print $1 }' | sort -u >all
comm -13 known all
breccia help | tail -n 2
