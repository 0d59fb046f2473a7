# read --decode and write --decode: the conventions CF, as xarray has them.
. "$CLI_TESTS/common.inc"

# array FILE PATH DTYPE ATTRIBUTES NUMBER...: a 1-d array, written as it is stored.
array() {
    file=$1 path=$2 i=0
    q create "$file" "$path" --shape $(($# - 4)) --dtype "$3" --attrs "$4"
    shift 4
    for n in "$@"; do
        q write "$file" "$path" "[$i]" --value "$n"
        i=$((i + 1))
    done
}

q init a.brc
array a.brc /t int16 '{"scale_factor": 0.5, "add_offset": 280, "_FillValue": -999, "missing_value": -998}' \
    0 1 -999 -998 40
echo '-- read'
t read a.brc /t
t read a.brc /t --decode
t read a.brc /t '[4]' --decode
t read a.brc /t --decode --json
t read a.brc /t --decode --format csv
breccia read a.brc /t --decode -o t.npy && od -c t.npy | head -6
breccia read a.brc /t --decode --format raw | od -A n -t f8 -w8
t read a.brc /t --decode --image
array a.brc /u int8 '{"_Unsigned": "true", "_FillValue": -1}' -1 -2 5
t read a.brc /u --decode
array a.brc /raw int8 '{"_Unsigned": "true"}' -1 -2 5
t read a.brc /raw --decode --json
array a.brc /f float32 '{"_FillValue": "AAAA4DUkH0I=", "missing_value": [7, 8]}' 0.1 7 8 9
t read a.brc /f --decode --json
array a.brc /same int8 '{"units": "K"}' 1 2
t read a.brc /same --decode

echo '-- times in all calendars'
for calendar in standard gregorian proleptic_gregorian noleap 365_day all_leap 366_day 360_day julian; do
    q create a.brc "/time/$calendar" --shape 5 --dtype int32 \
        --attrs "{\"units\": \"days since 1582-10-01\", \"calendar\": \"$calendar\"}"
    i=0
    for n in 3 4 147 -1 159000; do
        q write a.brc "/time/$calendar" "[$i]" --value $n
        i=$((i + 1))
    done
    t read a.brc "/time/$calendar" --decode --format csv
done
array a.brc /hours float64 '{"units": "hours since 2000-2-28 12:00:00 +01:30", "_FillValue": "AAAAAAAA+H8="}' \
    0 0.1 nan 24.75
t read a.brc /hours --decode --json
t read a.brc /hours --decode
breccia read a.brc /hours --decode --format raw | od -A n -t d8 -w8
t read a.brc /time/360_day --decode -o x.npy
test -e x.npy && echo 'x.npy IS THERE'
array a.brc /odd int8 '{"units": "months since 2000-01-01"}' 1
t read a.brc /odd --decode
array a.brc /bad int8 '{"scale_factor": "0.1"}' 1
t read a.brc /bad --decode
array a.brc /zero int8 '{"scale_factor": 0}' 1
t read a.brc /zero --decode
array a.brc /far int64 '{"units": "days since 2000-01-01"}' 9000000000000000000
t read a.brc /far --decode
array a.brc /later int64 '{"units": "days since 2000-01-01"}' 900000
t read a.brc /later --decode
t read a.brc /later --decode --format raw

echo '-- write'
t write a.brc /t '[0]' --value 300 --decode
t write a.brc /t '[1]' --value nan --decode
t write a.brc /t '[2]' '[3]' --value 281.2 --decode
t read a.brc /t
t write a.brc /t '[0]' --value 1e6 --decode
t write a.brc /t '[0]' --value warm --decode
t write a.brc /t '[0]' --value=-219.5 --decode
t write a.brc /same '[0]' --value nan --decode
t write a.brc /u '[1]' --value 254 --decode
t read a.brc /u
t write a.brc /time/noleap '[0]' --value 1582-10-05 --decode
t write a.brc /time/noleap '[0]' --value 1584-02-29 --decode
t write a.brc /time/noleap '[0]' --value 1582-10-05T06 --decode
t write a.brc /hours '[0]' --value 2000-02-28T11:00 --decode
t read a.brc /time/noleap '[0]'
t read a.brc /hours '[0]'

echo '-- write: from a file'
breccia read a.brc /t --decode -o t.npy --quiet
t write a.brc /t '[::-1]' --from t.npy --decode
t write a.brc /t --from t.npy --decode
breccia read a.brc /t
t write a.brc /t '[0:4]' --from t.npy --decode
t write a.brc /hours '[0:4]' --from t.npy --decode
breccia read a.brc /hours --decode -o h.npy --quiet
t write a.brc /hours --from h.npy --decode
t read a.brc /hours
t write a.brc /t '[0:4]' --from h.npy --decode
breccia read a.brc /t --decode --format raw >t.raw
t write a.brc /t --from - --decode <t.raw
head -c 39 t.raw | t write a.brc /t --from - --decode
head -c 32 t.raw | t write a.brc /t --from - --decode
cat t.raw t.raw | t write a.brc /t --from - --decode
t read a.brc /t
breccia read a.brc /hours --decode --format raw | t write a.brc /hours --from - --decode
t write a.brc /t --from missing.npy --decode
t write a.brc /t --from a.brc --decode

echo '-- a plain write to a packed array says so'
t write a.brc /t '[0]' --value 300
t write a.brc /same '[0]' --value 3
t write a.brc /t '[0]' --value 300 --quiet
ls

echo '# CSV of elements with their positions'
q init rows.brc
q create rows.brc /t --shape 2,3 --dtype int16 --dimension-names time,x --fill -999 \
    --attrs '{"scale_factor": 0.5, "add_offset": 270, "_FillValue": -999}'
q create rows.brc /time --shape 2 --dtype int32 --dimension-names time --attrs '{"units": "hours since 2020-05-01"}'
q write rows.brc /t '[0]' --value 4
q write rows.brc /time '[1]' --value 30
t read rows.brc /t --decode --coordinates --format csv
t read rows.brc /time --decode --coordinates --format csv
printf 'x,time,value\n1,0,280.5\n2,0,\n0,1, 270 \n1,1,nan\n' >fixes.csv
t write rows.brc /t --csv fixes.csv --decode
t read rows.brc /t
printf '0,2020-05-03T06:00\n' | t write rows.brc /time --csv - --decode
t read rows.brc /time --decode
printf '0,2020-05-03T06:30\n' | t write rows.brc /time --csv - --decode
printf '0,0,1\n0,1,warm\n' | t write rows.brc /t --csv - --decode
printf '0,0,9999999\n' | t write rows.brc /t --csv - --decode
q create rows.brc /s --shape 2 --dtype string
printf '0,a\n' | t write rows.brc /s --csv - --decode
t read rows.brc /t

echo '-- elapsed time, where the attribute dtype says so'
q init lead.brc
span='"dtype": "timedelta64[ns]"'
q create lead.brc /lead --shape 4 --dtype int32 --dimension-names lead --attrs "{\"units\": \"hours\", $span, \"_FillValue\": -9}"
printf '0,0\n1,36\n2,-48\n3,-9\n' | q write lead.brc /lead --csv -
q create lead.brc /v --shape 4 --dtype int8 --dimension-names lead
printf '0,10\n1,11\n2,12\n3,13\n' | q write lead.brc /v --csv -
t read lead.brc /lead --decode
t read lead.brc /lead --decode --json
t read lead.brc /lead --decode --format csv
breccia read lead.brc /lead --decode --format raw | od -A n -t d8 -w8
breccia read lead.brc /lead --decode -o lead.npy && head -c 60 lead.npy | tr -d '\200-\377\000-\037' && echo
array lead.brc /half float64 "{\"units\": \"days\", $span}" 1.5 nan 0.000011574074074074074 1e300
t read lead.brc /half '[:3]' --decode
t read lead.brc /half --decode
array lead.brc /nat int64 "{\"units\": \"days\", $span}" 1 -9223372036854775808
t read lead.brc /nat --decode
t write lead.brc /nat '[0]' --value NaT --decode
t read lead.brc /nat
array lead.brc /date int64 '{"units": "days since 2020-01-01"}' 1 -9223372036854775808
t read lead.brc /date --decode
array lead.brc /plain int8 '{"units": "days"}' 1
t read lead.brc /plain --decode
array lead.brc /other int8 "{\"units\": \"months\", $span}" 1
t read lead.brc /other --decode
echo '-- written'
t write lead.brc /lead '[0]' --value 2D --decode
t write lead.brc /lead '[1]' --value 90m --decode
t write lead.brc /lead '[1]' --value 7 --decode
t write lead.brc /lead '[2]' --value 1y --decode
t write lead.brc /lead '[2]' --value -9 --decode
t write lead.brc /lead '[2]' --value 99999999999D --decode
t write lead.brc /lead '[3]' --value NaT --decode
t write lead.brc /half '[0]' --value 90m --decode
t read lead.brc /lead
t read lead.brc /half '[0]'
t write lead.brc /lead --from lead.npy --decode
t read lead.brc /lead
breccia read lead.brc /lead --decode --format raw | breccia write lead.brc /half --from - --decode
t read lead.brc /half --decode
t write lead.brc /v --from lead.npy --decode
t write lead.brc /lead --from t.npy --decode
echo '-- and looked up'
t read lead.brc /v '{lead=36h}'
t read lead.brc /v '{lead=1.5D}'
t read lead.brc /v '{lead=36}'
t read lead.brc /v '{lead=0h:2D}'
t read lead.brc /v '{lead=1h}'
t read lead.brc /v '{lead=1y}'
t write lead.brc /lead '[0]' --value '"24h"' --decode
t write lead.brc /date '[0]' --value "'2020-05-01'" --decode
t write lead.brc /date '[0]' --value "'2020-05-01" --decode
t read lead.brc /date --decode
t read lead.brc /lead '[lead=0'
t read lead.brc /lead '{lead=0h'
t read lead.brc /lead '[lead=0]'
t read lead.brc /lead 'lead=0'
