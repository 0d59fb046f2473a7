# Backends: what lies outside of the file, with the example of docs/EXTENDING.md.
. "$CLI_TESTS/common.inc"

plugin dirstore
dir='{"name":"org.example.dir","configuration":{"folder":"r.chunks"}}'

echo '# the listing'
breccia backend --list --plugin ./dirstore.so | tr -s ' '
breccia backend --list --json

echo '# an array that lies outside'
q init r.brc
t create r.brc /a --shape 8 --dtype int16 --chunks 2 --backend "$dir" --plugin ./dirstore.so
t write r.brc /a --value 7 --plugin ./dirstore.so
t write r.brc /a '[2:4]' --value 3 --plugin ./dirstore.so
ls r.chunks | wc -l | tr -d ' '
commit r.brc first 10
t backend r.brc /a
t info r.brc /a
breccia info r.brc /a --json | grep -o '"backend":.*'
t read r.brc /a --plugin ./dirstore.so
t fsck r.brc --plugin ./dirstore.so

echo '# another place for what comes'
t backend r.brc /a inline
t status r.brc
t diff r.brc
t write r.brc /a '[0:2]' --value 9 --plugin ./dirstore.so
commit r.brc second 11
t read r.brc /a --plugin ./dirstore.so
t read r.brc /a --at main~1 --plugin ./dirstore.so
t backend r.brc /a --at main~1
t show r.brc main

echo '# without the plug-in'
t read r.brc /a
t read r.brc /a '[0:2]'
t ls r.brc
q branch r.brc side
t create r.brc /b --shape 8 --dtype int16 --backend org.example.dir
t fsck r.brc

echo '# without the folder'
mkdir away
cp r.brc away/copy.brc
t read away/copy.brc /a --plugin ./dirstore.so 2>&1 | sed 's,/[^ ]*/away/,AWAY/,'
mv r.chunks away/r.chunks
t read away/copy.brc /a --plugin ./dirstore.so
t fsck away/copy.brc --plugin ./dirstore.so

echo '# damage'
for file in away/r.chunks/*; do
    printf x | dd of="$file" conv=notrunc 2>/dev/null
    break
done
breccia fsck away/copy.brc --plugin ./dirstore.so | sed 's/[0-9a-f]\{8\}:/ID:/'
rm away/r.chunks/*
breccia fsck away/copy.brc --plugin ./dirstore.so | sed 's/[0-9a-f]\{32\}-[0-9a-f]\{16\}/NAME/;s,/[^ ]*/away/,AWAY/,;s/[0-9a-f]\{8\}:/ID:/' | sort | uniq -c | sed 's/^ *//'

echo '# the default of new arrays'
q init d.brc
t config d.brc backend org.example.none
t config d.brc backend org.example.dir
t config d.brc backend org.example.dir --plugin ./dirstore.so
t config d.brc backend
t config d.brc --json
q create d.brc /made --shape 8 --dtype int16 --chunks 2 --plugin ./dirstore.so
t backend d.brc /made
t create d.brc /b --shape 8 --dtype int16
q create d.brc /file --shape 8 --dtype int16 --backend inline
t backend d.brc /file
u1 1 2 3 | npy n.npy '|u1' '(3,)'
q import d.brc n.npy /imported --plugin ./dirstore.so
t backend d.brc /imported
ls chunks | wc -l | tr -d ' '
t read d.brc /imported --plugin ./dirstore.so
t config d.brc backend --unset
t backend d.brc /made
t fsck d.brc --plugin ./dirstore.so

echo '# refused'
t backend r.brc /a '{"name":"org.example.dir","configuration":{"folder":"../up"}}' --plugin ./dirstore.so
t backend r.brc /a '{"name":"org.example.dir","options":{}}' --plugin ./dirstore.so
t backend r.brc /a '[1]'
t backend r.brc /a --at main~1 inline
t backend
t backend r.brc /none inline

echo '# without the plug-in, what lies where is still counted'
breccia backend d.brc 2>&1 | sed 's/known: [^)]*/known: SOME/'
t backend d.brc --check --plugin ./dirstore.so
