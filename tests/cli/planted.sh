# F1, F6, F15: a journal that is not the file's own deletes and changes nothing; a file in
# WAL mode is refused; what is said about a file that was cut short.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 4 --dtype int32
commit r.brc one 10
mkdir elsewhere
echo precious >elsewhere/victim

be32() { printf "\\$(printf %03o $(($1 >> 24 & 255)))\\$(printf %03o $(($1 >> 16 & 255)))\\$(printf %03o $(($1 >> 8 & 255)))\\$(printf %03o $(($1 & 255)))"; }
mark() { printf '\331\325\005\371\040\241\143\327'; }

# journal PAGES [NAME]: without records; with NAME it names that file to be deleted.
journal() {
    mark
    for n in 0 7 "$1" 512 16384; do be32 "$n"; done
    head -c 484 /dev/zero
    [ $# -gt 1 ] || return 0
    be32 65537
    printf %s "$2"
    be32 ${#2}
    be32 "$(printf %s "$2" | od -An -v -tu1 | tr -s ' ' '\n' | awk '{ n += $1 } END { print n }')"
    mark
}

pages=$(($(wc -c <r.brc) / 16384))
journal "$pages" "$PWD/elsewhere/victim" >r.brc-journal
keep r.brc
keep r.brc-journal
t log r.brc
t status r.brc
t fsck r.brc
t commit r.brc -m two
t write r.brc /a --value 1
t ls r.brc --no-recover
t write r.brc /a --value 1 --no-recover
t init new.brc --no-recover
unchanged r.brc
unchanged r.brc-journal
cat elsewhere/victim

echo '# a link'
rm r.brc-journal
ln -s elsewhere/victim r.brc-journal
t log r.brc
t write r.brc /a --value 1
cat elsewhere/victim

echo '# another state'
rm r.brc-journal
journal 1 >r.brc-journal
t status r.brc
unchanged r.brc
mv r.brc-journal moved
t status r.brc

echo '# WAL'
printf '\002\002' | dd of=r.brc bs=1 seek=18 conv=notrunc 2>/dev/null
t log r.brc
t write r.brc /a --value 1
t ls r.brc --no-recover
ls r.brc*

echo '# cut short'
head -c 100000 r.brc.kept >short.brc
t log short.brc
t fsck short.brc
