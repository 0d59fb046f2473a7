/* The header of a classic NetCDF file, as it is looked through before netCDF-C reads it. */
#include "fuzz.h"

#include "../../src/xfer/netcdf/netcdf_lib.h"

void fuzz_netcdf_classic(const uint8_t *data, size_t len)
{
    brc_error err = BRC_ERROR_INIT;
    int rc = brc_netcdf_check_classic(fuzz_file("in.nc", data, len), &err);
    FUZZ_TRUE(rc != BRC_EINTERNAL && rc != BRC_ENOMEM, &err);
}
