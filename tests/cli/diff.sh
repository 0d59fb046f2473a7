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

# A node that was moved and changed is shown as moved, and a node that takes its place as new.
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

echo '# values, tolerances, boxes, chunks'
q init v.brc
q create v.brc /a --shape 100,100 --dtype int32 --chunks 50,50
q create v.brc /f --shape 20 --dtype float64 --chunks 5 --fill 1
q create v.brc /s --shape 3 --dtype string
q create v.brc /z --shape '' --dtype int8
q create v.brc /t --shape 2 --dtype 'datetime64[s]'
commit v.brc one 10
q write v.brc /a '[0, 0]' --value 3
q write v.brc /a '[98:, 97:99]' --value -4
q write v.brc /f '[2]' --value 1.5
q write v.brc /f '[3]' --value NaN
q write v.brc /f '[17]' --value 1.000001
q write v.brc /s '[1]' --value 'a "b" ä'
q write v.brc /z --value 7
q write v.brc /t '[1]' --value 2026-01-02
t diff v.brc
t diff v.brc --values 0
t diff v.brc --stat
t diff v.brc --values 2 -- /a
t diff v.brc --elements --chunks -- /a
t diff v.brc --elements --json -- /a
t diff v.brc --elements --chunks --json -- /f
t diff v.brc --atol 1e-5 -- /f
t diff v.brc --rtol 1e-5 --exit-code -- /f
t diff v.brc --atol 0.5 --exit-code -- /f '[:3]'
t diff v.brc --atol 0.4 --exit-code -- /f '[:3]'
t diff v.brc -- /a '[98:, ::97]'
t diff v.brc --json -- /a '[200:]'
t diff v.brc --values -1
t diff v.brc --values x
t diff v.brc --atol -1

echo '# complex numbers by their distance, records by their fields'
q init c.brc
q create c.brc /z --shape 4 --dtype complex128
q create c.brc /r --shape 3 --dtype \
    '{"name":"struct","configuration":{"fields":[{"name":"id","data_type":"int32"},{"name":"x","data_type":"float64"}]}}'
q write c.brc /z --value 3+4j
q write c.brc /r --value '{"id":1,"x":2.0}'
q commit c.brc -m first
q write c.brc /z '[1]' --value 3.3+4.4j
q write c.brc /z '[2]' --value 3.6+4.8j
q write c.brc /z '[3]' --value '["NaN", 4]'
q write c.brc /r '[1]' --value '{"id":1,"x":2.5}'
q write c.brc /r '[2]' --value '{"id":3,"x":2.0}'
t diff c.brc --atol 0.6 -- /z
t diff c.brc --rtol 0.5 -- /z
t diff c.brc --atol 0.6 -- /r
t diff c.brc --atol 2 -- /r
t diff v.brc --rtol nan
t diff v.brc -- /a '[0'
t diff v.brc -- /nowhere '[0]'
t diff v.brc --image --values 3 -- /a

echo '# exit codes: 0 the same, 1 different, 2 or more an error'
t diff v.brc HEAD HEAD --exit-code
t diff v.brc --exit-code --quiet
t diff v.brc nowhere --exit-code
t diff nowhere.brc --exit-code
t diff v.brc nowhere

echo '# boxes where the chunks are cut differently'
q init cut.brc
q create cut.brc /a --shape 400,400 --dtype int32 --chunks 200,200
q write cut.brc /a --value 1
commit cut.brc one 10
q init other.brc
q create other.brc /a --shape 400,400 --dtype int32 --chunks 120,400
q write other.brc /a --value 1
q write other.brc /a '[0, 0]' --value 3
q write other.brc /a '[1, 300]' --value 3
q write other.brc /a '[398:, 397:399]' --value -4
q export other.brc /a a.zarr
q import cut.brc a.zarr /a --replace
t diff cut.brc --elements -- /a
t diff cut.brc --elements --json -- /a
t diff cut.brc -- /a '[50:]'
t diff cut.brc --atol 3 --elements --json -- /a
