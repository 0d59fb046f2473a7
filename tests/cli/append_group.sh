# append to a group: every array that has the dimension grows, or none does.
. "$CLI_TESTS/common.inc"

# part FILE GROUP FIRST COUNT: a group with COUNT steps of time.
part() {
    q create "$1" "$2/time" --shape "$4" --dtype int32 --dimension-names time \
        --attrs '{"units": "days since 2020-01-01"}'
    q create "$1" "$2/lat" --shape 3 --dtype float32 --dimension-names lat
    q create "$1" "$2/t" --shape "$4,3" --dtype int16 --dimension-names time,lat --chunks 2,3 \
        --attrs '{"units": "K", "scale_factor": 0.1}'
    q create "$1" "$2/late" --shape "3,$4" --dtype int8 --dimension-names lat,time --chunks 2,2
    q create "$1" "$2/day/note" --shape "$4" --dtype string --dimension-names time
    q create "$1" "$2/crs" --shape '' --dtype int8 --fill "$4"
    for i in 0 1 2; do
        q write "$1" "$2/lat" "[$i]" --value $((30 * i))
    done
    i=0
    while [ $i -lt "$4" ]; do
        q write "$1" "$2/time" "[$i]" --value $(($3 + i))
        q write "$1" "$2/t" "[$i]" --value $(($3 + i))
        q write "$1" "$2/late" "[:, $i]" --value $(($3 + i))
        q write "$1" "$2/day/note" "[$i]" --value "day $(($3 + i))"
        i=$((i + 1))
    done
}

shown() {
    for array in time t late day/note crs; do
        t read a.brc "/era5/$array"
    done
}

q init a.brc
part a.brc /era5 0 3
commit a.brc January 09
q init b.brc
part b.brc /next 3 4
q export b.brc /next next.zarr
q export b.brc /next next.nc
q init next.brc
q import next.brc next.zarr /
commit next.brc next 10
keep a.brc

echo '-- all arrays grow'
for from in next.zarr next.nc next.brc; do
    cp a.brc.kept a.brc
    t append a.brc /era5 --axis time --from $from
    shown
done
t append a.brc /era5 --axis time --from next.zarr --json
t read a.brc /era5/time '{time=2020-01-03:}' --decode
t fsck a.brc
ls /tmp/breccia-?????? 2>/dev/null

echo '-- times in other units become times in the units here'
other() {
    cp a.brc.kept a.brc
    cp next.brc other.brc
    q attrs other.brc /time "units=\"$1\""
    [ -z "${3:-}" ] || q attrs other.brc /time "$3"
    for i in 0 1 2 3; do
        q write other.brc /time "[$i]" --value $(($2 + 24 * i))
    done
    commit other.brc x 11
    t append a.brc /era5 --axis time --from other.brc
}
other 'hours since 2020-01-10' 48
t read a.brc /era5/time
t read a.brc /era5/time --decode
t read a.brc /era5/t
other 'hours since 2020-01-10' 49
t status a.brc
t read a.brc /era5/t
other 'minutes since 1950-03-01' -2147483648
other 'days since 1950-03-01 12:00' 25000
other 'days since 2020-02-01' 0 'calendar="noleap"'
other 'days since 2020-02-01' 0 'bounds="time_bnds"'
other 'days since 2020-13-01' 0
other 'metres' 0
other 'days since 2020-02-01' -2147483648
t status a.brc
rm other.brc

echo '-- what does not fit'
cp a.brc.kept a.brc
keep a.brc
refused() {
    t append a.brc /era5 --axis time --from bad.brc
    unchanged a.brc
    rm bad.brc
}
bad() { cp next.brc bad.brc; }
bad && q rm bad.brc /late && commit bad.brc x 11 && refused
bad && q create bad.brc /q --shape 4 --dtype int8 --dimension-names time && commit bad.brc x 11 && refused
bad && q attrs bad.brc /time 'units="metres"' && commit bad.brc x 11 && refused
bad && q attrs bad.brc /t --unset scale_factor && commit bad.brc x 11 && refused
bad && q attrs bad.brc /t scale_factor=0.2 && commit bad.brc x 11 && refused
bad && q write bad.brc /lat '[1]' --value 31 && commit bad.brc x 11 && refused
bad && q resize bad.brc /t --shape 4,5 && commit bad.brc x 11 && refused
bad && q resize bad.brc /t --shape 5,3 && commit bad.brc x 11 && refused
bad && q rm bad.brc /t && q create bad.brc /t --shape 4,3 --dtype int32 --dimension-names time,lat &&
    commit bad.brc x 11 && refused
bad && q rm bad.brc /t && q create bad.brc /t --shape 4,3 --dtype int16 --dimension-names time,lon \
    --attrs '{"units": "K", "scale_factor": 0.1}' && commit bad.brc x 11 && refused
q resize a.brc /era5/t --shape 4,3
keep a.brc
bad && refused
cp a.brc.kept a.brc

echo '-- wrong calls'
t append a.brc /era5 --axis level --from next.zarr
t append a.brc /era5 --axis 0 --from next.zarr
t append a.brc /era5 --from next.zarr
t append a.brc /era5 --axis time --value 1
t append a.brc /era5 --axis time --from -
t append a.brc /era5 --axis time --from missing.nc
t append a.brc /era5 --axis time --from a.brc
u1 1 2 | npy one.npy '|u1' '(2,)'
t append a.brc /era5 --axis time --from one.npy
echo text >note.txt
t append a.brc /era5 --axis time --from note.txt
echo "a text of more than ten bytes" >note.txt
t append a.brc /era5/time --from note.txt
