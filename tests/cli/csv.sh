# CSV: elements by their coordinates, arrays from tables and tables from arrays. What is wrong is named by its line.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /grid --shape 4,5 --dtype float32 --chunks 2,2 --dimension-names lat,lon
commit r.brc first 10

# points TEXT: writes the rows to /grid.
points() {
    echo "$1" | sed 's/^/> /'
    printf "$1" | breccia write r.brc /grid --csv - 2>&1
    show_status $?
}

echo '# write --csv'
printf 'lat,lon,value\n0,1,2.5\n-1,-1,.5\n2, 2 ,\n' >fixes.csv
t write r.brc /grid --csv fixes.csv
t read r.brc /grid
echo '# names of dimensions in another order; CR LF, empty lines, no end of the last line; the later of two counts'
points 'lon,lat,T\r\n1,0,7\r\n\r\n1,1,+8\n1,1,nan\n0,0,"1e2"'
t read r.brc /grid
keep r.brc
echo '# all or nothing'
points '0,0,1\n1,1,1\n4,0,1\n'
points '0,0,1\n0,-6,1\n'
points '0,1\n'
points '0,0,1\n0,1,2,3\n'
points '0,x,1\n'
points '0,1.5,1\n'
points '"0\n0",0,1\n'
points '0,0,abc\n'
points 'lat,depth,value\n0,0,1\n'
points 'lat,lat,value\n'
points '0,0,"1\n0,0,2\n'
points '0,0,"1"2\n'
printf '0,0,1\n0,1,2\0\n' | breccia write r.brc /grid --csv - 2>&1
show_status $?
t write r.brc /grid '[0]' --csv fixes.csv
t write r.brc /grid --csv fixes.csv --value 1
t write r.brc /grid --csv missing.csv
t write r.brc /grid --csv r.brc
unchanged r.brc
points ''
t write r.brc /grid --csv fixes.csv --json

echo '# other types: numbers without names of dimensions, texts, one element, structs'
q create r.brc /cube --shape 2,3,4 --dtype int64
printf 'i,j,k,v\n1,2,3,9223372036854775807\n0,0,0,-1\n' >cube.csv
t write r.brc /cube --csv cube.csv
t read r.brc /cube --format csv
q create r.brc /names --shape 2,2 --dtype string --chunks 1,1
printf '0,0,"two\nlines"\n0,1,"""quoted"""\n1,0, a blank\n1,1,"[1,2]"\n' >names.csv
t write r.brc /names --csv names.csv
t read r.brc /names --format json
q create r.brc /one --shape '' --dtype int8
echo 5 >one.csv
t write r.brc /one --csv one.csv
t read r.brc /one --format csv --coordinates
printf '6\n7\n' >one.csv
t write r.brc /one --csv one.csv
t read r.brc /one
q create r.brc /far --shape 9 --dtype string --chunks 4
printf '8,last\n0,first\n5,middle\n0,again\n3,\n8,"a longer one"\n' >far.csv
t write r.brc /far --csv far.csv
t read r.brc /far --format json
fix='{"name":"struct","configuration":{"fields":[{"name":"id","data_type":"int32"},{"name":"t","data_type":"float64"},{"name":"at","data_type":{"name":"fixed_length_utf32","configuration":{"length_bytes":16}}}]}}'
q create r.brc /fixes --shape 3 --dtype "$fix"
printf '1,2,.5,"a,b"\n2,7,nan,\n-3,5,-inf,x\n' >structs.csv
t write r.brc /fixes --csv structs.csv
t read r.brc /fixes

echo '# read --format csv'
t read r.brc /fixes --format csv
t read r.brc /fixes '[1:]' --format csv --coordinates
t read r.brc /grid '[1::2, ::2]' --format csv --coordinates
t read r.brc /cube '[1, 2]' --format csv --coordinates
t read r.brc /names --format csv
q create r.brc /none --shape 0,3 --dtype int8
t read r.brc /none --format csv --coordinates
t read r.brc /grid --coordinates
echo '# what --coordinates prints, write --csv reads'
for array in grid cube names fixes; do
    breccia read r.brc /$array --format raw >before.raw
    breccia read r.brc /$array --format csv --coordinates -o all.csv >/dev/null
    breccia write r.brc /$array --csv all.csv
    breccia read r.brc /$array --format raw | cmp - before.raw
done

echo '# import'
printf 'a,"b ""c""",d\n1,2,3\n4,-5,6\n' >table.csv
t import r.brc table.csv
t read r.brc /table
t attrs r.brc /table
t ls r.brc /table -l
q create r.brc /group/other --shape 1 --dtype int8
printf '\357\273\2771.5,2\r,-4e3\r' >real.csv
printf 'temperature\n1\n2\n' >column.CSV
printf '1,2,3\n' >row.csv
printf '18446744073709551615\n0\n' >large.csv
printf '18446744073709551615\n-1\n' >both.csv
printf 'True\nfalse\n' >truth.csv
printf 'nan,inf\n-Infinity,0\n' >special.csv
printf '1,\n,4\n' >holes.csv
t import r.brc holes.csv real.csv column.CSV row.csv large.csv both.csv truth.csv t2=special.csv /group
for name in holes real column row large both truth t2; do
    breccia ls r.brc /group/$name -l | sed 's/ bytes.*//'
    breccia read r.brc /group/$name
done
echo '# --dtype, --header, --chunks, --compress'
printf 'x,1990\n1,abc\n' >words.csv
t import r.brc words.csv /words
t import r.brc words.csv /words --dtype string
t read r.brc /words
t import r.brc words.csv /words2 --dtype U4 --header yes
t read r.brc /words2
printf '1990,1991\n1,2\n' >years.csv
t import r.brc years.csv /years --header yes --dtype float32 --chunks 1,2 --compress zstd:9
t ls r.brc /years -l
t attrs r.brc /years columns
t import r.brc table.csv /x --chunks 2
t import r.brc years.csv /x --header perhaps
t import r.brc years.csv /x --dtype int9
t import r.brc table.csv /x --dtype uint8
npy two.npy '|u1' '(2,)' </dev/null
t import r.brc two.npy /x --dtype uint8
breccia read r.brc /fixes --format csv -o structs.csv --quiet
t import r.brc structs.csv /fixes2 --dtype "$fix"
t read r.brc /fixes2 --format csv
t import r.brc table.csv /x --dtype "$fix" --header yes
t import r.brc table.csv /x --exclude /a
echo '# a new version, and a new file'
t import new.brc table.csv -m 'as it came' --author 'Ada <ada@example.org>' --date 2026-11-20
printf 'a,"b ""c""",d\n1,2,3\n4,-5,7\n' >table.csv
t import new.brc table.csv
t import new.brc table.csv --replace -m corrected --author 'Ada <ada@example.org>' --date 2026-11-21
t diff new.brc HEAD~1 HEAD --elements
printf '1,2.5\n' >table.csv
t import new.brc table.csv --replace
printf '1\n' >table.csv
t import new.brc table.csv --replace
t ls new.brc -l
t import none.brc words.csv
[ -e none.brc ] && echo 'none.brc IS THERE'

echo '# what is wrong with a table'
# bad TEXT: tries to import the table.
bad() {
    printf "$1" >bad.csv
    breccia import r.brc bad.csv 2>&1
    show_status $?
}
keep r.brc
bad '1,2\n3\n'
bad '1,2\n\n\n3,4,5\n'
bad '"a\nb",c\n1,2\n3\n'
bad '1,2\n3,"4\n5,6\n'
bad '1,2\n3,"4"5\n'
bad '1,2\n3,four\n'
bad '1,2\n3,0x10\n'
bad '1,2\n3,007\n'
bad 'true,1\n'
bad ''
bad '\n\r\n'
bad 'a,b\n'
printf '1,2\n3,\0004\n' >bad.csv
t import r.brc bad.csv
mkdir folder.csv
t import r.brc folder.csv
mkfifo pipe.csv
cat fixes.csv >pipe.csv &
t import r.brc pipe.csv
unchanged r.brc

echo '# export'
t export r.brc /table table2.csv
cat table2.csv
t export r.brc /table table2.csv
t export r.brc /group/column column2.csv
cat column2.csv
t export r.brc /fixes fixes2.csv --json
cmp fixes2.csv structs.csv
t export r.brc /group/row table3 --format csv
cat table3
t export r.brc /cube cube2.csv --at HEAD
t export r.brc / all.csv
t export r.brc /table - --format csv

echo '# ends of lines within quotes count as elsewhere: CR alone, LF, and CR LF once'
printf '"a\rb",1\nx\n' >cr.csv
t import r.brc cr.csv /text --dtype string
printf '"a\r\nb\nc\r",1\nx\n' >cr.csv
t import r.brc cr.csv /text --dtype string

echo '# dates in a struct: in CSV as people write them, in JSON too; as a fill value a number'
dated='{"name":"struct","configuration":{"fields":[{"name":"at","data_type":{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":1}}},{"name":"in","data_type":{"name":"struct","configuration":{"fields":[{"name":"day","data_type":{"name":"numpy.datetime64","configuration":{"unit":"D","scale_factor":1}}},{"name":"n","data_type":"int8"}]}}}]}}'
q create r.brc /dated --shape 3 --dtype "$dated"
t write r.brc /dated '[0]' --value '{"at":"2020-01-01T12:00:00","in":{"day":"2020-02-29","n":1}}'
t write r.brc /dated '[1]' --value '{"at":1577880001,"in":{"day":"NaT","n":2}}'
t write r.brc /dated '[2]' --value '{"at":"noon","in":{"day":1,"n":2}}'
t write r.brc /dated '[2]' --value '{"at":0,"in":{"day":"2020-02-30","n":2}}'
t read r.brc /dated --format csv
t read r.brc /dated --format json
flat='{"name":"struct","configuration":{"fields":[{"name":"at","data_type":{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":1}}},{"name":"x","data_type":"float32"}]}}'
printf 'at,x\n2020-01-01T00:00:00,1.5\nNaT,2\n60,\n ,3\n' >dates.csv
t import r.brc dates.csv /flat --dtype "$flat"
t read r.brc /flat --format csv
breccia read r.brc /flat --format csv >again.csv
t import r.brc again.csv /flat2 --dtype "$flat"
t diff r.brc HEAD --stat -- /flat2
printf '2020-01-01\n""\n' >days.csv
t import r.brc days.csv /days --dtype 'datetime64[D]'
t read r.brc /days
