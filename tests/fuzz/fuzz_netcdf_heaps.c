/* The global heaps of a NetCDF-4 file, as they are looked through before netCDF-C reads it. */
#include "fuzz.h"

#include "../../src/xfer/netcdf/netcdf_lib.h"

void fuzz_netcdf_heaps(const uint8_t *data, size_t len)
{
    brc_error err = BRC_ERROR_INIT;
    int rc = brc_netcdf_check_heaps(fuzz_file("in.nc", data, len), &err);
    FUZZ_TRUE(rc == BRC_OK || rc == BRC_EINVAL, &err);
}
