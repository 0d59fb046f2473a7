# init, and files that are not repositories.
. "$CLI_TESTS/common.inc"

t init r.brc
t init r.brc
t init j.brc --json
t init quiet.brc --quiet
t init no/such/folder/r.brc
t status r.brc
t status r.brc --json
t ls r.brc
t ls r.brc -r
t ls r.brc --json
t info r.brc / --json

echo '# no repository'
t ls missing.brc
test -e missing.brc && echo 'missing.brc WAS MADE'
echo 'a text that is not a database and is long enough to have a header' >text.brc
t ls text.brc
t commit text.brc -m x
t fsck text.brc
: >empty.brc
t ls empty.brc
mkdir folder.brc
t ls folder.brc
head -c 4096 r.brc >cut.brc
breccia ls cut.brc >cut.log 2>&1
echo "a file that was cut off: status $(($? != 0)) and one line:"
grep -c '^breccia: error: .*cut.brc' cut.log

echo '# it is one file'
ls r.brc*
