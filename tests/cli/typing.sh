# Less to type: import -m and NAME=SOURCE, several slices, append of values and streams, create --like.
. "$CLI_TESTS/common.inc"

u1 1 2 3 4 5 6 | npy a.npy '|u1' '(2, 3)'
u1 7 8 9 | npy b.npy '|u1' '(3,)'
u1 1 2 3 4 5 6 | npy 'c=d.npy' '|u1' '(6,)'
ada='Ada <ada@example.org>'

echo '# import -m makes the file, imports and commits'
t import new.brc a.npy b.npy -m raw --author "$ada" --date 2026-11-20
t log new.brc
t status new.brc
t import new.brc x=b.npy /more -m 'a second' --author "$ada" --date 2026-11-21 --json
t import new.brc one=a.npy deep/two=b.npy /named -m 'two named' --author "$ada" --date 2026-11-22
t ls new.brc -r
t read new.brc /named/deep/two

echo '# a file of that very name is a source; a name needs a source'
t import new.brc c=d.npy /there
t ls new.brc /there
t import new.brc c=e.npy
t import new.brc =a.npy
t import new.brc x= /
t import new.brc one=a.npy one=b.npy /twice

echo '# -m would commit what was there'
t import new.brc y=b.npy -m more
t import new.brc y=b.npy -m ''
t import new.brc y=b.npy --author "$ada"
t import other.brc y=missing.npy -m more
test -e other.brc && echo 'other.brc is there'
t import other.brc y=b.npy -m more --date soon
test -e other.brc && echo 'other.brc is there'

echo '# several slices get one value: all, or none'
q init r.brc
q create r.brc /a --shape 4,5 --dtype int16 --chunks 2,2 --dimension-names time,x
t write r.brc /a '[0]' '[:, 4]' '[3, 0:2]' --value 7
t read r.brc /a
t write r.brc /a '[1]' '[9]' --value 1
t write r.brc /a '[1]' '[0]' --value many
t read r.brc /a '[0:2]'
t write r.brc /a '[1]' '[2]' --from a.npy

echo '# append of one value, and of a stream'
t append r.brc /a --value -1
t append r.brc /a --axis x --value 9 --count 2
t read r.brc /a
t append r.brc /a --axis y --value 9
t append r.brc /a --axis 2 --value 9
t append r.brc /a --value 1 --from a.npy
t append r.brc /a
t append r.brc /a --from a.npy --count 2
t append r.brc /a --value 1000000
t info r.brc /a
q create r.brc /s --shape 0,3 --dtype uint8 --chunks 2,2
u1 1 2 3 4 5 6 7 8 9 | t append r.brc /s --from -
u1 10 11 12 | t append r.brc /s --axis 0 --from -
t append r.brc /s --from - </dev/null
t read r.brc /s
u1 1 2 3 4 | t append r.brc /s --from -
u1 1 2 3 4 | t append r.brc /s --axis 1 --from -
t read r.brc /s
q create r.brc /long --shape 10,4 --dtype uint8 --chunks 1000000,4
head -c 36000000 /dev/zero | t append r.brc /long --axis 0 --from -
q create r.brc /texts --shape 0 --dtype string
t append r.brc /texts --from - </dev/null
t append r.brc /texts --value hello --count 3
t read r.brc /texts
q create r.brc /point --shape '' --dtype uint8
t append r.brc /point --value 1
q create r.brc /none --shape 2,0 --dtype uint8
u1 1 | t append r.brc /none --axis 0 --from -

echo '# create --like'
q create r.brc /model --shape 6,8 --dtype float32 --chunks 2,4 --shards 6,8 --fill NaN \
    --compress blosc:lz4:5 --dimension-names y,x --attrs '{"units":"K"}'
t create r.brc /same --like /model
t create r.brc /deep/longer --like model --shape 60,8 --attrs '{"units":"degC"}'
breccia info r.brc /model --json | sed 's/.*"metadata"://;s/"attributes":{[^}]*},*//' >model
breccia info r.brc /same --json | sed 's/.*"metadata"://;s/"attributes":{[^}]*},*//' | cmp - model && echo 'the documents agree'
t attrs r.brc /same
t attrs r.brc /deep/longer
t codecs r.brc /deep/longer
t create r.brc /x --like /nowhere
t create r.brc /x --like /deep
t create r.brc /x --like /model --shape 6
t create r.brc /x --like /model --dtype int8
t create r.brc /same --like /model
