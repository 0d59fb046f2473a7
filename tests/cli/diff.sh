# diff.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 4,4 --dtype int32 --chunks 2,2 --compress none
q create r.brc /f --shape 4 --dtype float32 --chunks 2 --compress none
q create r.brc /gone --shape 4 --dtype int8 --compress none
q group r.brc /old/name
commit r.brc one 10
q write r.brc /a '[0:3, 1]' --value 5
q write r.brc /f '[1]' --value 2.5
q attrs r.brc /a units='"K"'
q rm r.brc /gone
q mv r.brc /old /new
q create r.brc /fresh --shape 3 --dtype int8 --compress none
q write r.brc /fresh --value 1

echo '# uncommitted'
t diff r.brc
t diff r.brc --json
t diff r.brc --stat
t diff r.brc --elements
t diff r.brc --elements --json -- /a
t diff r.brc -- f
t diff r.brc --exit-code --quiet
t status r.brc
commit r.brc two 11
t diff r.brc
t diff r.brc --exit-code
t diff r.brc --json

echo '# versions'
t diff r.brc HEAD~1
t diff r.brc HEAD~1 HEAD
t diff r.brc HEAD HEAD~1
t diff r.brc HEAD~1 HEAD --stat -- /a
t diff r.brc HEAD~1 main --exit-code -- /f
t diff r.brc main main --exit-code
q write r.brc /a '[3, 3]' --value -7
t diff r.brc HEAD~1 --elements -- /a
t diff r.brc nowhere
t diff r.brc a b c
t diff r.brc -- /a /b
t diff -- r.brc

echo '# NaN and infinity'
q write r.brc /f '[0]' --value NaN
q write r.brc /f '[2]' --value Infinity
t diff r.brc --elements -- /f
t diff r.brc --elements --json -- /f

echo '# stored otherwise, the same values'
q reset r.brc HEAD --hard
t codecs r.brc /f '[{"name":"bytes","configuration":{"endian":"big"}}]' --rewrite
t diff r.brc --exit-code
t diff r.brc --exit-code --json

echo '# F14: elements that came and went, other chunks, another fill value'
q reset r.brc HEAD --hard
q create r.brc /grown --shape 2,3 --dtype int16 --chunks 2,2
q write r.brc /grown --value 4
q create r.brc /empty --shape 5 --dtype int8 --chunks 2
commit r.brc three 12
q resize r.brc /grown --shape 4,2
q write r.brc /grown '[1, 1]' --value 3
q rm r.brc /fresh
t diff r.brc --elements
t diff r.brc --elements --stat
t diff r.brc --elements --json
q rm r.brc /grown
q create r.brc /grown --shape 2,3 --dtype int16 --chunks 1,3 --fill 4
q rm r.brc /empty
q create r.brc /empty --shape 5 --dtype int8 --chunks 2 --fill -1
t diff r.brc --elements
q rm r.brc /empty
q create r.brc /empty --shape 5 --dtype uint8 --chunks 2
q rm r.brc /grown
q create r.brc /grown --shape 2 --dtype int16
t diff r.brc --elements
t diff r.brc --elements --json -- /empty
commit r.brc four 13
t show r.brc HEAD --elements

# What moved and was changed as well has moved, and what takes its place is new.
q mv r.brc /grown "/has grown"
q attrs r.brc "/has grown" units='"m"'
q write r.brc "/has grown" --value 9
q create r.brc /grown --shape 2 --dtype int16
t status r.brc
t diff r.brc --elements

echo '# moves between versions of which neither follows the other, and backwards'
q init moved.brc
q create moved.brc /a --shape 10 --dtype int32 --chunks 5
q write moved.brc /a --value 3
commit moved.brc base 10
q branch moved.brc side
q branch moved.brc again
q mv moved.brc /a /z
q write moved.brc /z '[0]' --value 9
commit moved.brc moved 11
t diff moved.brc HEAD HEAD~1
q switch moved.brc side
q write moved.brc /a '[9]' --value 7
commit moved.brc edited 12
t diff moved.brc main side --elements
t diff moved.brc side main
t diff moved.brc main
q mv moved.brc /a /q
t diff moved.brc main
q switch moved.brc again --discard
q rm moved.brc /a
commit moved.brc removed 13
q create moved.brc /a --shape 4 --dtype int8
commit moved.brc 'made again' 14
t diff moved.brc main again
