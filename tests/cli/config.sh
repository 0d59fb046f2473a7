# config: settings of a repository. WAL mode: when a file is in it, and what is said of it.
. "$CLI_TESTS/common.inc"

mode() { od -An -tu1 -j18 -N2 "$1" | tr -d ' '; }

q init r.brc
t config r.brc
t config r.brc journal
t config r.brc --json
t config r.brc journal wal
t config r.brc journal --json
echo '# at rest it is one file'
mode r.brc
q create r.brc /a --shape 4 --dtype int32 --chunks 2
q write r.brc /a --value 7
commit r.brc one 10
mode r.brc
ls r.brc*
breccia info r.brc | grep -e journal -e log
t fsck r.brc
echo '# back'
t config r.brc journal --unset
t config r.brc journal
q write r.brc /a --value 9
ls r.brc*
echo '# a log that is in the way is left alone'
echo precious >r.brc-wal
t config r.brc journal wal
t config r.brc journal
cat r.brc-wal
rm r.brc-wal
q config r.brc journal wal
echo precious >r.brc-wal
q write r.brc /a --value 11
cat r.brc-wal
mode r.brc
rm r.brc-wal
echo '# usage'
t config r.brc journal off
t config r.brc colour
t config r.brc colour blue
t config r.brc --unset
t config r.brc journal wal --unset
echo '# codecs of new arrays, and what reading verifies'
t config r.brc codecs '["zstd"]'
q create r.brc /c --shape 4 --dtype int16
t codecs r.brc /c
t config r.brc codecs '["nope"]'
t config r.brc verify full
t config r.brc verify never
t config r.brc --json
t read r.brc /a
t config r.brc codecs --unset
t config r.brc verify --unset
echo '# what writing reads back'
t config r.brc readback sampled
t config r.brc readback
t config r.brc readback most
t create r.brc /checked --shape 4 --dtype i4 --readback all
t create r.brc /again --shape 4 --dtype i4 --readback some
t config r.brc readback --unset
