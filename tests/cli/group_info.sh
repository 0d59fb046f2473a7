# info of a group, as `ncdump -h` shows it; ls -l with the names of dimensions.
. "$CLI_TESTS/common.inc"

q init a.brc
q group a.brc /era5
q attrs a.brc /era5 'title="Reanalysis"' 'version=5' 'ratio=NaN'
q create a.brc /era5/time --shape 4 --dtype int32 --dimension-names time \
    --attrs '{"units": "days since 2020-01-01", "calendar": "noleap"}'
q create a.brc /era5/t --shape 4,6 --dtype int16 --dimension-names time,lat \
    --attrs '{"units": "K", "scale_factor": 0.1, "add_offset": 280.0}'
q create a.brc /era5/flag --shape 3,2 --dtype bool
q create a.brc /era5/lat --shape 6 --dtype float64 --dimension-names lat --attrs '{"_FillValue": "AAAAAAAA+H8="}'
q create a.brc /era5/p --shape 6 --dtype float64 --dimension-names lat --attrs '{"_FillValue": "AAAAAABYi8A="}'
q create a.brc /era5/when --shape 2 --dtype 'datetime64[s]'
q create a.brc /era5/crs --shape '' --dtype int8 --attrs '{"note": "a\u001bb"}'
q group a.brc /era5/daily
q create a.brc /era5/daily/t --shape 2 --dtype float32 --dimension-names time
t info a.brc /era5
t info a.brc /era5 --json
t info a.brc /
t ls a.brc /era5 -l
t ls a.brc /era5/t -l --json
t ls a.brc /era5/flag -l --json
echo '-- a dimension with two lengths, and a group without anything'
q create a.brc /era5/q --shape 5,6 --dtype int16 --dimension-names time,lat
t info a.brc /era5
q group a.brc /empty
t info a.brc /empty
t info a.brc /empty --json
echo '-- long attributes are cut'
q attrs a.brc /empty "history=\"$(printf 'x%.0s' $(seq 400))\""
t info a.brc /empty
