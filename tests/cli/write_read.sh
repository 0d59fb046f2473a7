# write and read: values, files, standard input, slices, formats.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 4,6 --dtype int32 --chunks 3,4 --fill -1

echo '# one value'
t write r.brc /a '[1:3, ::2]' --value 7
t read r.brc /a
t write r.brc /a '[0, 0]' --value -2147483648 --json
t write r.brc /a '[..., -1]' --value 9
t write r.brc /a '[5:9]' --value 1
t read r.brc /a
t write r.brc /a --value 2147483648
t write r.brc /a --value seven
t write r.brc /a --value 1.5

echo '# a .npy file'
i4 10 11 12 13 14 15 | npy row.npy '<i4' '(6,)'
t write r.brc /a '[2]' --from row.npy
t read r.brc /a '[2]'
t write r.brc /a '[:, 0]' --from row.npy
t write r.brc /a '[2]' --from missing.npy
head -c 140 row.npy >cut.npy
t write r.brc /a '[2]' --from cut.npy
echo 'not an array' >text.npy
t write r.brc /a '[2]' --from text.npy

echo '# raw elements on standard input'
i4 1 2 3 4 >four.raw
keep r.brc
breccia write r.brc /a '[0:2, 0:2]' --from - <four.raw
breccia read r.brc /a '[0:2, 0:2]'
i4 1 2 3 | breccia write r.brc /a '[0:2, 0:2]' --from -; show_status $?
i4 1 2 3 4 5 | breccia write r.brc /a '[0:2, 0:2]' --from -; show_status $?
breccia write r.brc /a --from - <four.raw; show_status $?
breccia write r.brc /a --from - </dev/null; show_status $?
t write r.brc /a
t write r.brc /a --value 1 --from row.npy
t write r.brc /a '[0]' --value 1 '[1]' --value 2
t write r.brc /missing --value 1
t write r.brc / --value 1

echo '# slices'
t read r.brc /a '[1]'
t read r.brc a '1, 2'
t read r.brc /a '[-1, -2:]'
t read r.brc /a '[..., 0]'
t read r.brc /a '[1:1]'
t read r.brc /a '[9]'
t read r.brc /a '[::0]'
t read r.brc /a '[::-1]'
t read r.brc /a '[0, 0, 0]'
t read r.brc /a '[nope'
t read r.brc /missing
t read r.brc /

echo '# formats'
t read r.brc /a '[0:2, 0:3]' --json
t read r.brc /a '[0:2, 0:3]' --format json
t read r.brc /a '[0, 0]' --json
t read r.brc /a '[0:2, 0:3]' --format csv
t read r.brc /a '[0]' --format csv
t read r.brc /a '[0, 1]' --format csv
breccia read r.brc /a '[0, 0:3]' --format raw | od -An -tx1
breccia read r.brc /a '[0, 0:3]' --format npy | od -An -c | head -n 3
breccia read r.brc /a '[0, 0:3]' --format npy | tail -c 12 | od -An -tx1
t read r.brc /a --json --format csv

echo '# -o'
t read r.brc /a '[0]' -o row.txt
cat row.txt
t read r.brc /a '[0]' --format csv -o row.txt --json
cat row.txt
t read r.brc /a '[0]' --format npy -o out.npy
t write r.brc /a '[3]' --from out.npy
t read r.brc /a '[3]'
t read r.brc /a '[0]' --format json --output=doc.json
t read r.brc /a '[0]' -o doc.json --json # two documents, each by itself
cat doc.json
t read r.brc /a --format raw -o no/such/folder/x
t read r.brc /a -o - --format csv
ls

echo '# types'
q create r.brc /bool --shape 3 --dtype bool
q write r.brc /bool '[1]' --value true
t read r.brc /bool
t read r.brc /bool --json
q create r.brc /f --shape 2,4 --dtype float64
q write r.brc /f '[0, 0]' --value 0.1
q write r.brc /f '[0, 1]' --value NaN
q write r.brc /f '[0, 2]' --value -Infinity
q write r.brc /f '[0, 3]' --value -0.0
q write r.brc /f '[1, 0]' --value 123.25
t read r.brc /f
t read r.brc /f --json
q write r.brc /f '[1, 1]' --value 1e300
t read r.brc /f
q create r.brc /i8 --shape 2 --dtype int64 --fill 9007199254740993
q write r.brc /i8 '[0]' --value -9223372036854775808
t read r.brc /i8 --json
q create r.brc /u8 --shape 1 --dtype uint64 --fill 18446744073709551615
t read r.brc /u8 --json
q create r.brc /c --shape 2 --dtype complex128 --fill '[1.5, "NaN"]'
t read r.brc /c
t read r.brc /c --json
t read r.brc /c --format csv

echo '# long arrays are shortened in text alone'
q create r.brc /long --shape 1001 --dtype uint16 --fill 3
t read r.brc /long
q create r.brc /wide --shape 4,40 --dtype uint8 --fill 200
t read r.brc /wide
q create r.brc /cube --shape 20,2,30 --dtype int8
q write r.brc /cube '[-1, -1, -1]' --value -100
t read r.brc /cube
breccia read r.brc /long --format csv | tr , '\n' | sort | uniq -c

echo '# texts are quoted where there are several'
q create r.brc /words --shape 2,2 --dtype string
q write r.brc /words '[0, 0]' --value 'a b'
q write r.brc /words '[1, 0]' --value "it's"
q write r.brc /words '[1, 1]' --value "it's \"x\""
t read r.brc /words
t read r.brc /words '[1, 0]'
t read r.brc /words '[0]' --format csv
q create r.brc /octets --shape 2 --dtype bytes
q write r.brc /octets '[0]' --value YWL/
t read r.brc /octets
