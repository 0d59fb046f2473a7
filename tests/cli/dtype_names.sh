# NumPy's names of data types, names that were meant, and values that are typed as they are printed.
. "$CLI_TESTS/common.inc"
q init r.brc
for name in '?' b1 bool_ i1 i2 i4 i8 int u1 u2 u4 u8 uint f2 f4 f8 half single float double \
    c8 c16 complex complex128 str '<i4' '>i4' '=f8' '|u1' '<float32' S10 U5 '<U5' '|V8' r64 \
    'datetime64[ns]' 'M8[10us]' '<M8[D]' 'timedelta64[s]' 'm8[generic]'; do
    echo "$name: $(breccia create r.brc "/n/$name" --shape 1 --dtype "$name" 2>&1 | sed 's/.*: \(.*\), shape.*/\1/') $(breccia ls r.brc "/n/$name" --json | grep -o '"data_type":{[^}]*}}')" | sed 's/ $//'
done
for name in int23 flaot32 unit8 Float64 datetime64 m8 U S0 'datetime64[parsec]' '>>i4' datetime46 strnig; do
    t create r.brc /near --shape 1 --dtype "$name"
done
t create r.brc /quoted --shape 1 --dtype '"float8_e4m3b11fnuz"'
t create r.brc /near --shape 1 --dtype int23 --json
# The text that read prints for an element is a value that write takes, with equal bits.
back() { # TYPE VALUE...
    type=$1
    shift
    q create r.brc /back --shape $# --dtype "$type"
    q create r.brc /again --shape $# --dtype "$type"
    q create r.brc /listed --shape $# --dtype "$type"
    i=0
    for value; do
        q write r.brc /back "[$i]" --value "$value"
        q write r.brc /again "[$i]" --value "$(breccia read r.brc /back "[$i]")"
        listed=$(breccia read r.brc /back "[$i:$((i + 1))]")
        listed=${listed#\[}
        q write r.brc /listed "[$i]" --value "${listed%]}"
        i=$((i + 1))
    done
    breccia read r.brc /back --format raw >back.raw
    breccia read r.brc /again --format raw >again.raw
    breccia read r.brc /listed --format raw >listed.raw
    cmp back.raw listed.raw
    cmp back.raw again.raw && printf '%s: ' "$type" && breccia read r.brc /again
    q rm r.brc /back
    q rm r.brc /again
    q rm r.brc /listed
}
back bool true False
back int8 -128 5
back uint64 18446744073709551615
back int4 -8
for type in float16 float32 float64 bfloat16 float8_e5m2; do
    back $type nan -inf Infinity 1e-5 -0.0 0.1
done
back complex128 '[1, -2]' '(nan-infj)' NaN+4j Infinity-1j 5 -0.5 nan 2j '(1e-30+1e+20j)' '[0, "NaN"]'
back complex_bfloat16 '[1, 2]' '(-0-2j)'
back 'datetime64[D]' 2020-02-29 '"2020-02-29"' "'1969-12-31'" NaT '"NaT"' 18000
back 'datetime64[Y]' 2020 '"1950"' -001 12345 5
back 'datetime64[ns]' 2020-02-29T12:34:56.123456789 '"1970-01-01 00:00:01"'
back 'timedelta64[s]' 90 '"-90"' "'7'" NaT
back S4 'ab' '\x00\xff' '"aGk="' '\x22x' '\x5b1]'
back U4 'ab' '"a b"' 12 true
back V3 '\x01\x02\x03' 'AQID' '[1, 2, 3]' '\x5b1]'
back r16 '\x01\x02' '[255, 0]'
back string 'ab' '12' 'a, b' '' "'abc'" '"\"q\""' '"it'"'"'s \"x\""' '"a\nb\t\u0000\u001b"' 'a\nb' '"\\"' '"\u2028\u202ex"' '{"a":1}' "b'x'"
back bytes '\x00a\\b' 'true' "b'it\\'s'" '"JyI="' "b'\\x62\\x27x\\x27'" ''
back U8 "'abc'" '"\u0007"' '"\"\\"' "''"
back S8 "b'a'" "b'\\x27'" '"YidhJw=="'
back '{"name":"zarrs.optional","configuration":{"name":"string","configuration":{}}}' null "'null'" 'x' '["y"]'
back '{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int16"},{"name":"z","data_type":"complex64"},{"name":"in","data_type":{"name":"struct","configuration":{"fields":[{"name":"t","data_type":{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":1}}},{"name":"b","data_type":"bool"}]}}}]}}' \
    '(1, (1+2j), (2020-01-01T00:00:00, True))' '{"a":-1,"z":[0,"NaN"],"in":{"t":"NaT","b":false}}'
back '{"name":"struct","configuration":{"fields":[{"name":"one","data_type":{"name":"fixed_length_utf32","configuration":{"length_bytes":16}}}]}}' \
    '(abc,)' '(a, b,)' '{"one":"()"}' "('a, b',)" '{"one":"'"'"', "}' '{"one":"\n"}'
q create r.brc /two --shape 1 --dtype '{"name":"struct","configuration":{"fields":[{"name":"p","data_type":{"name":"fixed_length_utf32","configuration":{"length_bytes":16}}},{"name":"q","data_type":{"name":"fixed_length_utf32","configuration":{"length_bytes":16}}}]}}'
t write r.brc /two --value '(a, b)'
t read r.brc /two
t write r.brc /two --value '(a, b, c)'
t write r.brc /two --value '(a)'
t write r.brc /two --value '{"p":"a, b","q":"c"}'
t read r.brc /two

echo '# what is not a date'
q create r.brc /no-date --shape 3 --dtype 'datetime64[s]'
t write r.brc /no-date --value 'may 1'
t write r.brc /no-date --value 2020-13-01
t create r.brc /no-day --shape 3 --dtype 'datetime64[D]' --fill yesterday
