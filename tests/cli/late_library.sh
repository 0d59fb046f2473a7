# A library that is loaded at its first use and is not there: what needs it names it, and all else works.
. "$CLI_TESTS/common.inc"

zfp='[{"name":"zfp","configuration":{"mode":"reversible"}}]'
q init r.brc
breccia create r.brc /a --shape 4 --dtype float32 --codecs "$zfp" --quiet 2>/dev/null || skip 'built without libzfp'
q write r.brc /a --value 2.5
commit r.brc first 10

# Empty files stand in front of those that are.
mkdir none
for name in libzfp.so.1 libzfp.so.0 libcurl.so.4 libcurl-gnutls.so.4; do : >none/$name; done
LD_LIBRARY_PATH=$PWD/none
export LD_LIBRARY_PATH
t read r.brc /a
t write r.brc /a '[1]' --value 3
t info r.brc /a
t ls r.brc -l
t diff r.brc HEAD~0
t status r.brc
t fsck r.brc --no-decode
t fsck r.brc

unset LD_LIBRARY_PATH
t write r.brc /a '[1]' --value 3
t read r.brc /a
t fsck r.brc
