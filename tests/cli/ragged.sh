# Lists of variable length, and texts in compounds: groups that are one data set of HDF5 or NetCDF.
. "$CLI_TESTS/common.inc"

fields='{"fields": [{"name": "n", "type": {"data_type": "int32"}}, {"name": "name", "type": {"data_type": "string"}},
    {"name": "list", "type": {"list": {"data_type": "int32"}, "name": "row_t"}}], "name": "person_t"}'
q init r.brc
q create r.brc /run/p/n --shape 2 --dtype int32
q create r.brc /run/p/name --shape 2 --dtype string
q create r.brc /run/p/list/offsets --shape 3 --dtype int64
q create r.brc /run/p/list/values --shape 3 --dtype int32
i4 7 8 | breccia write r.brc /run/p/n --from - --quiet
q write r.brc /run/p/name '[0]' --value 'æ'
i4 1 2 3 | breccia write r.brc /run/p/list/values --from - --quiet
q write r.brc /run/p/list/offsets '[1]' --value 2
q write r.brc /run/p/list/offsets '[2]' --value 3
q attrs r.brc /run/p units='"K"' _nc_hdf5="{\"dataset\": {\"type\": $fields, \"shape\": [2]}}" \
    _nc_note="{\"variable\": {\"type\": $fields, \"shape\": [2], \"names\": [\"i\"]}}"
q commit r.brc -m 'two people'

echo '# out and in'
for file in run.h5 run.nc; do
    q export r.brc /run $file
    t import r.brc $file /back
    t ls r.brc /back -r
    t read r.brc /back/p/name
    t read r.brc /back/p/list/offsets
    t read r.brc /back/p/list/values
    t attrs r.brc /back/p units
    q rm r.brc /back
done

echo '# one by itself'
q export r.brc /run/p one.h5
t import r.brc one.h5 /one
t ls r.brc /one

echo '# what no longer fits'
q write r.brc /run/p/list/offsets '[1]' --value 4
t export r.brc /run bad.h5
t export r.brc /run bad.nc
q resize r.brc /run/p/name --shape 3
t export r.brc /run bad.h5
q resize r.brc /run/p/name --shape 2
q write r.brc /run/p/list/offsets '[1]' --value 2
q attrs r.brc /run/p/n units='"m"'
t export r.brc /run bad.nc
ls bad.* 2>/dev/null
q attrs r.brc /run/p --unset _nc_hdf5
t export r.brc /run group.h5
t import r.brc group.h5 /group
t attrs r.brc /group/p/n
