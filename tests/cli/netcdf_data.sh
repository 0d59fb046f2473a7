# Real NetCDF files: packed winds in a classic one, a mask of ocean basins in NetCDF-4.
. "$CLI_TESTS/common.inc"

data=$BRECCIA_TEST_DATA
for file in eraint_uvz.nc basin_mask.nc era-z-packed-i16.npy; do
    [ -f "$data/$file" ] || skip "there is no $data/$file"
    cp "$data/$file" .
done

q init r.brc
t import r.brc eraint_uvz.nc /era
t import r.brc basin_mask.nc /basin
breccia ls r.brc -rl | sed 's| *[0-9.]* [KMG]*i*B\>||'
t attrs r.brc /era/z
t attrs r.brc /basin/X
t read r.brc /era/z '[0, 0, ::60, ::96]'
t read r.brc /basin/basin '[0, ::30, ::60]'
t import r.brc era-z-packed-i16.npy /z
breccia read r.brc /z --format raw | cksum
breccia read r.brc /era/z --format raw | cksum

echo '# and out: what was classic comes back byte for byte in its data'
t export r.brc /era era.nc --format netcdf3
t import r.brc era.nc /again
breccia read r.brc /again/z --format raw | cksum
t attrs r.brc /again/z
t export r.brc /basin basin.nc
t import r.brc basin.nc /basin2
breccia read r.brc /basin/basin --format raw | cksum
breccia read r.brc /basin2/basin --format raw | cksum
