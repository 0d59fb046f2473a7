# backup: a new one, one that is brought up to date, standard output, and what is refused.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 4000 --dtype int32 --chunks 1000
q write r.brc /a --value 1
commit r.brc one 10
q write r.brc /a [0] --value 2
t backup r.brc b.brc
t fsck b.brc
t status b.brc
t log b.brc --oneline
commit r.brc two 11
breccia backup r.brc b.brc --json | sed 's/"file_bytes":[0-9]*/"file_bytes":N/; s/"bytes_copied":[0-9]*/"bytes_copied":N/'
t log b.brc --oneline
t backup r.brc b.brc
echo '# standard output'
breccia backup r.brc - >p.brc
t log p.brc --oneline
breccia backup r.brc - | cat >p.brc
t fsck p.brc
t backup r.brc - --json
ls
echo '# what is left as it was'
keep b.brc
keep r.brc
t backup r.brc r.brc
q init other.brc
t backup r.brc other.brc
echo text >text.brc
t backup r.brc text.brc
mkdir folder
t backup r.brc folder
t backup r.brc nowhere/b.brc
t backup none.brc c.brc
t backup r.brc
unchanged b.brc
q write b.brc /a [1] --value 7
t backup r.brc b.brc
unchanged r.brc
echo '# a copy that was made in mid-write'
head -c 65536 r.brc >torn.brc
q create r.brc /b --shape 400000 --dtype int32 --chunks 1000 --compress none
seq 1 400000 | awk '{ printf "%04d", $1 % 10000 }' | breccia write r.brc /b --from - --quiet
commit r.brc three 12
tail -c +65537 r.brc >>torn.brc
t log torn.brc
t ls torn.brc --no-recover | head -n 3
