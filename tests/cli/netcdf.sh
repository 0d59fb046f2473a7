# NetCDF out and in.
. "$CLI_TESTS/common.inc"

q init r.brc
i4 1 2 3 4 5 6 | npy m.npy '<i4' '(2, 3)'
q import r.brc m.npy /run/t
q attrs r.brc /run/t units='"K"' valid_range='[0, 9]' _FillValue=-1
q attrs r.brc /run title='"a run"'
q create r.brc /run/time --shape 2 --dtype float64 --dimension-names time
q attrs r.brc /run/time units='"days since 2000-01-01"'
q create r.brc /run/name --shape 2 --dtype string
q write r.brc /run/name '[0]' --value 'æ'

echo '# NetCDF-4'
t export r.brc /run run.nc
t export r.brc /run run.nc
t import r.brc run.nc /back
t ls r.brc /back -r
t read r.brc /back/t
t read r.brc /back/name
t attrs r.brc /back/t
t attrs r.brc /back
t export r.brc run2.nc4 --json
t export r.brc /run/t one.nc
t import r.brc one.nc
t ls r.brc /one

echo '# classic'
t export r.brc /run run3.nc --format netcdf3
t export r.brc run3.nc --format netcdf3
t export r.brc /run/t t3.nc --format netcdf3
head -c 4 t3.nc | od -An -c | tr -s ' '
t import r.brc t3.nc /t3 --chunks 1,3
t read r.brc /t3/t
head -c 90 t3.nc >cut.nc
t import r.brc cut.nc /cut
printf 'CDF\001\377\377\377\377' >lies.nc
t import r.brc lies.nc /cut
t ls r.brc /cut

echo '# left out, refused'
t import r.brc run.nc /some --exclude /name --exclude time
t ls r.brc /some
q create r.brc /odd --shape 2 --dtype complex_bfloat16
t export r.brc /odd odd.nc
t export r.brc /run consolidated.nc --consolidated
ls *.nc
