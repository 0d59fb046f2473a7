# Slices by the names of dimensions and by the values of coordinates.
. "$CLI_TESTS/common.inc"

f4() { for n in "$@"; do printf %s "$n"; done; }
# numbers FILE PATH NUMBER...: writes a 1-d array number by number.
numbers() {
    file=$1 path=$2 i=0
    shift 2
    for n in "$@"; do
        q write "$file" "$path" "[$i]" --value "$n"
        i=$((i + 1))
    done
}

# coordinate FILE PATH DTYPE ATTRIBUTES NUMBER...
coordinate() {
    file=$1 path=$2 dtype=$3 attrs=$4
    shift 4
    q create "$file" "$path" --shape $# --dtype "$dtype" --dimension-names "${path##*/}" --attrs "$attrs"
    numbers "$file" "$path" "$@"
}

q init a.brc
coordinate a.brc /time int32 '{"units": "hours since 2020-05-01", "calendar": "standard"}' 0 6 12 18 24 30
coordinate a.brc /lat float32 '{}' 60 45 30.1 15
coordinate a.brc /lon float64 '{}' 0 0.25 0.5
q create a.brc /t --shape 6,4,3 --dtype int16 --dimension-names time,lat,lon
i4() { for n in "$@"; do printf "\\$(printf %03o $((n % 256)))\\000"; done; }
i4 $(seq 0 71) | breccia write a.brc /t --from - --quiet

echo '-- by name'
t read a.brc /t '[time=0, lat=1:3]'
t read a.brc /t '[lon=-1,time=::2]'
t read a.brc /t 'lat=0, lon=0'
t read a.brc /t '[time=5, lat=3, lon=2]'
t read a.brc /t '[tiem=0]'
t read a.brc /t '[time=0, time=1]'
t read a.brc /t '[0, lat=1]'
t read a.brc /t '[time=]'
t read a.brc /t '[time=9]'
t read a.brc /t '[time=0.5]'
q create a.brc /plain --shape 3 --dtype int8
t read a.brc /plain '[x=0]'

echo '-- by value'
t read a.brc /t '{time=2020-05-01T12:00, lat=45}'
t read a.brc /t '{lat=30:60, time=2020-05-01T06, lon=0.25}'
t read a.brc /t '{lat=60:30, time=2020-05-01T06, lon=0.25}'
t read a.brc /t '{lat=30.1, lon=0.5}'
t read a.brc /t '{time=2020-05-02, lat=15, lon=0}'
t read a.brc /t '{time=2020-05-01T12:00:2020-05-02T00:00, lat=15, lon=0}'
t read a.brc /t '{time=2020-05-01:2020-05-01T06:00, lat=15, lon=0}'
t read a.brc /t '{time=2020, lat=15, lon=0}'
t read a.brc /t '{time=2020-05-01:2020-05-02:2, lat=15, lon=0}'
t read a.brc /t '{lat=:30, time=2020-05-01T00:00, lon=0}'
t read a.brc /t '{lat=40:, time=2020-05-01T00:00, lon=0}'
t read a.brc /t '{lon=0.2:, lat=15, time=2020-05-01T00:00}'
t read a.brc /time '{time=2020-05-01T18:00}'

echo '-- what is not there'
t read a.brc /t '{time=2020-05-01T13:00}'
t read a.brc /t '{time=2021}'
t read a.brc /t '{lat=44}'
t read a.brc /t '{lat=70}'
t read a.brc /t '{lat=31:44}'
t read a.brc /t '{lat=north}'
t read a.brc /t '{time=0}'
t read a.brc /t '{level=1}'
t read a.brc /t '{45}'
t read a.brc /plain '{x=0}'
q create a.brc /u --shape 6,2 --dtype int8 --dimension-names time,level
t read a.brc /u '{level=1}'
q create a.brc /v --shape 5 --dtype int8 --dimension-names time
t read a.brc /v '{time=2020}'
coordinate a.brc /mixed int8 '{}' 3 1 2
t read a.brc /mixed '{mixed=1:2}'
t read a.brc /mixed '{mixed=2:3}'

echo '-- texts, and times by their data type'
q create a.brc /name --shape 3 --dtype string --dimension-names name
q write a.brc /name '[0]' --value Rome
q write a.brc /name '[1]' --value 'Paris, TX'
q write a.brc /name '[2]' --value Oslo
q create a.brc /w --shape 3 --dtype int8 --dimension-names name --fill 4
t read a.brc /w '{name=Oslo}'
t read a.brc /name '{name="Paris, TX":Oslo}'
t read a.brc /name '{name=Pariss}'
q create a.brc /day --shape 3 --dtype 'datetime64[D]' --dimension-names day
q write a.brc /day '[0]' --value 2020-02-28
q write a.brc /day '[1]' --value 2020-02-29
q write a.brc /day '[2]' --value 2020-03-01
t read a.brc /day '{day=2020-02}'
t read a.brc /day '{day=2020-02-29}'

echo '-- in a group: the nearest coordinate above'
q create a.brc /deep/er/t --shape 4 --dtype int8 --dimension-names lat --fill 1
t read a.brc /deep/er/t '{lat=45:}'
coordinate a.brc /deep/lat int8 '{}' 1 2 3 4
t read a.brc /deep/er/t '{lat=3}'

echo '-- wherever a slice is read'
commit a.brc first 09
t write a.brc /t '{time=2020-05-02, lat=45, lon=0.25}' '[time=0, lat=0, lon=0]' --value 99
t read a.brc /t '[lat=0:2, lon=:, time=4]'
t restore a.brc /t --from HEAD --slice '{time=2020-05-02T00}'
t blame a.brc /t '{time=2020-05-02T00}'

echo '# a slice that follows its path at once'
q init at.brc
q create at.brc /a --shape 4,3 --dtype int16
q create at.brc '/b[0]' --shape 2 --dtype int16
commit at.brc one 11
t write at.brc '/a[1:3, 0]' --value 7
t write at.brc '/a[0]' '[3]' --value 8
t write at.brc '/b[0]' --value 5
t read at.brc '/a[1:]'
t read at.brc 'a[1]' '[0]'
t read at.brc '/b[0]'
t read at.brc '/b[0][1]'
t read at.brc '/c[0]'
t diff at.brc -- '/a[1]'
t diff at.brc HEAD --stat -- '/b[0]'
t diff at.brc -- '/c[0]'
breccia diff at.brc --image -- '/a[:2]' | head -n 1
commit at.brc two 12
breccia blame at.brc '/a[2]' --elements | sed 's/^[0-9a-f]*  [^ ]*/ID TIME/'
