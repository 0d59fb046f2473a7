# F22: what no other script would notice: the last of two options counts, names behind
# --, numbers past 64 bits, a command that fails half-way, closed standard output.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 6 --dtype int32 --chunks 2
i4 1 2 3 4 5 6 | breccia write r.brc a --from - --quiet
commit r.brc one 10
q attrs r.brc / first=1
commit r.brc two 11

echo '# of an option given twice the last one counts'
t log r.brc --oneline -n 2 -n 1
t log r.brc --oneline -n 1 -n 2

echo '# behind -- a name may begin with -'
t ls r.brc -- --long
breccia create --quiet --shape 2 --dtype int8 r.brc -- --long
t ls r.brc -- --long

echo '# past 64 bits'
t log r.brc --oneline -n 18446744073709551615
t log r.brc --oneline -n 18446744073709551616
t log r.brc --oneline -n 18446744073709551617
t log r.brc --oneline -n 36893488147419103233
t create r.brc /b --shape 18446744073709551617 --dtype int8

echo '# of several settings one is wrong: none is made'
q reset r.brc HEAD --hard
t attrs r.brc / second=2 third={
t attrs r.brc /
t status r.brc

echo '# a step that only reads fails behind one that wrote: that is undone'
q tag r.brc first -m 'as it was'
LC_ALL=C sed -i 's/as it was/as it wax/' r.brc
t tag r.brc second
LC_ALL=C sed -i 's/as it wax/as it was/' r.brc
t tag r.brc
q tag r.brc -d first

echo '# input that ends early: nothing is written'
i4 7 8 9 | breccia write r.brc a --from - 2>&1
show_status $?
t read r.brc a
t status r.brc

echo '# the same where a part was stored before the end came'
q create r.brc /big --shape 120000000 --dtype uint8 --chunks 10000000
commit r.brc three 12
yes | head -c 110000000 | breccia write r.brc big --from - 2>&1
show_status $?
t read r.brc big '[0:4]'
t status r.brc

echo '# reading changes nothing, so an answer that was lost is a failure and no more'
breccia ls r.brc 2>&1 >/dev/full
show_status $?

echo '# standard output is closed: what is written is the same all the same'
q export r.brc a one.npy
breccia export r.brc a two.npy >&- 2>closed.log
show_status $?
cmp one.npy two.npy && echo same
