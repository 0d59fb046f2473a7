# info --stats.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /numbers --shape 8,10 --dtype int32 --chunks 4,5 --fill -9
i4 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 200 201 202 203 204 | breccia write r.brc /numbers '[0:2]' --from - --quiet
t info r.brc /numbers --stats
t info r.brc /numbers --stats --json
commit r.brc one 10

# Few values are listed one by one, dates as dates, lengths of texts, magnitudes.
q create r.brc /labels --shape 1000 --dtype uint8 --chunks 100 --fill 2
q write r.brc /labels '[0:700]' --value 0
q write r.brc /labels '[3:9]' --value 7
t info r.brc /labels --stats
t info r.brc /labels --stats --json
q create r.brc /flags --shape 6 --dtype bool
q write r.brc /flags '[1]' --value true
t info r.brc /flags --stats
q create r.brc /times --shape 5 --dtype 'datetime64[D]' --fill '"NaT"'
q write r.brc /times '[0]' --value 2026-11-20
q write r.brc /times '[2]' --value 2026-12-01
t info r.brc /times --stats
t info r.brc /times --stats --json
q create r.brc /texts --shape 4 --dtype string
q write r.brc /texts '[1]' --value four
t info r.brc /texts --stats
q create r.brc /waves --shape 3 --dtype complex64
q write r.brc /waves '[0]' --value '[3, 4]'
t info r.brc /waves --stats

# NaN, infinity, and nothing at all.
q create r.brc /floats --shape 6 --dtype float32 --fill '"NaN"'
q write r.brc /floats '[0]' --value 0.1
q write r.brc /floats '[1]' --value 0.3
t info r.brc /floats --stats
q write r.brc /floats '[2]' --value Infinity
t info r.brc /floats --stats
t info r.brc /floats --stats --json
q create r.brc /none --shape 0 --dtype float64
t info r.brc /none --stats
t info r.brc /none --stats --json
q create r.brc /sparse --shape 1000000000000 --dtype int16 --chunks 1000
q write r.brc /sparse '[77]' --value 5
t info r.brc /sparse --stats

# An array without statistics says so; in the table of a group it has a dash.
q create r.brc /raw --shape 2 --dtype r24
t info r.brc /raw --stats
q group r.brc /empty
t info r.brc /empty --stats
t info r.brc /empty --stats --json
t info r.brc / --stats
t info r.brc --stats --json
commit r.brc two 11

# Versions; of these only new chunks are read.
q write r.brc /numbers --value 4
t info r.brc /numbers --stats --at HEAD~1
t info r.brc@HEAD /numbers --stats
t info r.brc /numbers --stats
t info r.brc /nowhere --stats
t info r.brc /numbers --stats --at nowhere

# A part: of an axis by its name, with steps, and nothing of it.
# Rows 0 and 1 from column 4 on are 5 to 10, 15 and 200 to 204: their sum is 1070.
t info r.brc /numbers '[0:2,4:]' --stats --at HEAD~1
t info r.brc '/numbers[1:8:3,::5]' --stats --at HEAD~1 --json
t info r.brc '/labels[0:10]' --stats
t info r.brc /texts '[0:2]' --stats
t info r.brc /labels '[4:4]' --stats
t info r.brc /labels '[1000]' --stats
t info r.brc / '[0]' --stats
t info r.brc /labels '[0]'

# Fields: each by itself, those of a field with dots; others are left out.
q create r.brc /table --shape 6 --dtype '{"name":"struct","configuration":{"fields":[{"name":"depth","data_type":"float32"},{"name":"name","data_type":{"name":"fixed_length_utf32","configuration":{"length_bytes":16}}},{"name":"at","data_type":{"name":"struct","configuration":{"fields":[{"name":"x","data_type":"int16"},{"name":"when","data_type":{"name":"numpy.datetime64","configuration":{"unit":"D","scale_factor":1}}}]}}}]}}'
q write r.brc /table '[1]' --value '{"depth":0.5,"name":"ab","at":{"x":-3,"when":7}}'
q write r.brc /table '[3]' --value '{"depth":"NaN","name":"c","at":{"x":4,"when":"NaT"}}'
t info r.brc /table --stats
t info r.brc /table '[1:3]' --stats --json
t info r.brc / --stats
q create r.brc /names --shape 2 --dtype '{"name":"struct","configuration":{"fields":[{"name":"name","data_type":{"name":"fixed_length_utf32","configuration":{"length_bytes":16}}}]}}'
t info r.brc /names --stats

# A file that cannot be written is not.
keep r.brc
chmod a-w r.brc
breccia info r.brc /labels --stats >first.txt
t info r.brc /labels --stats | tail -n +2 | cmp - first.txt && echo the same
chmod u+w r.brc
t fsck r.brc

echo '# one value has no width; small integers are listed one by one'
q create r.brc /zeros --shape 5 --dtype float64
q create r.brc /same --shape 5 --dtype complex64 --fill '[3, 4]'
q create r.brc /many --shape 64 --dtype int8
i=0
while [ $i -lt 64 ]; do echo "$i,$((i - 20))"; i=$((i + 1)); done | breccia write r.brc /many --csv - --quiet
t info r.brc /zeros --stats
t info r.brc /same --stats
breccia info r.brc /many --stats | tail -n 65 | sed -n '1p;2p;3p;65p'
