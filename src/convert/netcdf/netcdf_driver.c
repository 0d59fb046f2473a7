/* The driver as a table, see ../lib/convert.h. */
#include "netcdf_driver.h"

#include "netcdf_in.h"
#include "netcdf_out.h"

static void close_netcdf(void *state)
{
    brc_netcdf_run *run = state;
    if (run)
        run->close(run);
}

const brc_driver brc_netcdf_driver = {
    .names = BRC_NAMES_NETCDF,
    .format = "NetCDF",
    .classic = 1,
    .open = brc_netcdf_open,
    .walk = brc_netcdf_walk,
    .create = brc_netcdf_create,
    .begin = brc_netcdf_begin,
    .put = brc_netcdf_put,
    .end = brc_netcdf_end,
    .finish = brc_netcdf_finish,
    .close = close_netcdf,
};
