# An append to one variable of a data set: an export as a data set is refused, with the remedy.
. "$CLI_TESTS/common.inc"
q init r.brc
q group r.brc /d
t create r.brc /d/month --shape 2 --dtype int32 --dimension-names month
t create r.brc /d/rain --shape 2 --dtype int32 --dimension-names month
i4 7 | npy one.npy '<i4' '(1,)'
t append r.brc /d/rain --from one.npy
t export r.brc /d d.zarr
t export r.brc /d d.zarr.zip --format zarr2
t export r.brc /d d.nc
t export r.brc /d d.nc --format netcdf3
ls
t export r.brc /d/rain rain.zarr
t export r.brc /d any.zarr --unequal-dimensions
t export r.brc /d d.npz
t append r.brc /d/month --from one.npy
t export r.brc /d d.zarr
t export r.brc /d d.nc

echo '# groups in groups: what is exported is what counts'
q create r.brc /n/time --shape 2 --dtype int32 --dimension-names time
q create r.brc /n/daily/snow --shape 3 --dtype int32 --dimension-names time
t export r.brc /n n.zarr
t export r.brc /n n.nc
t export r.brc n.zip
t export r.brc /n/daily daily.zarr
t export r.brc /n/daily daily.nc
t export r.brc /n n.h5
