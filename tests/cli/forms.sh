# Forms in which people write shapes, slices and values.
. "$CLI_TESTS/common.inc"

q init r.brc
echo '# shapes'
n=0
for shape in 3,4 3x4 '(3,4)' '(3, 4)' '[3, 4]' '(3,)' '()' 3x4x5; do
    n=$((n + 1))
    t create r.brc /s$n --shape "$shape" --dtype int8
done
for shape in 3, x3 3x '(3,4' '(3,,4)' '3 4' 0x10 '((3,4))' '3x 4'; do
    t create r.brc /wrong --shape "$shape" --dtype int8
done
t resize r.brc /s1 --shape 5x6

echo '# slices'
q create r.brc /a --shape 20,600 --dtype float32
for slice in '[0:5' '0:5]' '[[17,512]]' '[0:5][1]' '[17,[512]]' ']' '[' '(17,512)' '17 512' '[1.5]' '[0:5]]' '[[0:5]'; do
    t read r.brc /a "$slice"
done
t read r.brc /a '17, 512'
t read r.brc /a '[:, :, :]'
t read r.brc /s1 '[:, :, :]'
q create r.brc /line --shape 3 --dtype int8
t read r.brc /line '[:, :]'

echo '# values'
for value in nan inf -inf NaN -Infinity .5 5. -.5 +5 1.e3 .5e-1 +.25; do
    t write r.brc /a '[0, 0]' --value "$value"
    t read r.brc /a '[0, 0]'
done
for value in . + - 1_000 '"5"' 1,5 five ..5 .e1 5.5. ''; do
    t write r.brc /a '[0, 0]' --value "$value"
done
t write r.brc /line --value +5
t write r.brc /line --value 5.
t write r.brc /line --value .5
t read r.brc /line
q create r.brc /dates --shape 3 --dtype 'datetime64[s]'
for value in 2020-05-01 '"2020-05-01"' "'2020-05-02'" '2020-05-03 12:00' NaT; do
    t write r.brc /dates '[0]' --value "$value"
    t read r.brc /dates '[0]'
done

echo '# --mainline is for merges'
commit r.brc one 10
q write r.brc /line --value 7
commit r.brc two 11
t revert r.brc HEAD --mainline 1
t cherry-pick r.brc HEAD --mainline 1
