# FILE named before the command, by BRECCIA_FILE, and with a version as FILE@REV.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 4 --dtype int8
q write r.brc /a --value 1
commit r.brc one 10
q tag r.brc v1
q write r.brc /a --value 2
commit r.brc two 11
q write r.brc /a --value 3

echo '# -f and --file stand before the command'
t -f r.brc read /a
t --file r.brc log --oneline
t -f r.brc --json ls
t -f r.brc diff -- /a
t -f r.brc diff v1
t -f r.brc help init
t -f
t log -f r.brc
t ls --file r.brc
t -f '' ls
t -f nothing.brc ls

echo '# BRECCIA_FILE: no FILE operand is read'
BRECCIA_FILE=r.brc
export BRECCIA_FILE
t read /a '[0]'
t write /a '[0]' --value 9
t read /a
t diff v1 HEAD -- /a
t codecs /a
t codecs /a --at v1
breccia codecs --list | head -1
t backend /a
t export /a a.npy
t branch side
t log r.brc
t -f other.brc init
t -f other.brc ls -l
t ls other.brc
t status other.brc
echo '# ... but a first argument that is that very file is FILE'
t read ./r.brc /a '[0]'
t diff r.brc v1 HEAD -- /a
echo '# empty is as not set'
BRECCIA_FILE=
t read r.brc /a

echo '# FILE@REV where a version is read'
unset BRECCIA_FILE
t read r.brc@v1 /a
t read r.brc@HEAD /a
t read r.brc@main~1 /a
t -f r.brc@v1 read /a
BRECCIA_FILE=r.brc@v1 breccia read /a
t ls r.brc@v1 -l
t info r.brc@v1
t info r.brc@v1 /a
t attrs r.brc@v1 /a
t log r.brc@v1 --oneline
t show r.brc@v1 --stat
t diff r.brc@v1 --stat
t diff r.brc@v1 HEAD --stat
t blame r.brc@v1 /a
t export r.brc@v1 /a one.npy
t read 'r.brc@main@{2099-01-01T00:00:00Z}' /a

echo '# and where not'
t write r.brc@v1 /a --value 4
t status r.brc@v1
t read r.brc@v1 /a --at HEAD
t read r.brc@ /a
t read r.brc@nowhere /a
t read nothing.brc@v1 /a
t attrs r.brc@v1 /a x=1

echo '# unless a file has that very name'
cp r.brc r.brc@v1
t read r.brc@v1 /a
t write r.brc@v1 /a --value 5 --quiet
t read r.brc@v1 /a
t read r.brc@v1@v1 /a

echo '# init --if-missing'
t init new.brc --if-missing
t init new.brc --if-missing
t init new.brc --if-missing --json
t init new.brc
echo text >text
t init text --if-missing
