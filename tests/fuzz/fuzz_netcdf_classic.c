/* The header of a classic NetCDF file, as its converter reads it before netCDF-C does. */
#include "fuzz.h"

#include "../../src/convert/netcdf/netcdf_lib.h"

void fuzz_netcdf_classic(const uint8_t *data, size_t len)
{
    brc_error err = BRC_ERROR_INIT;
    int rc = brc_netcdf_check_length(fuzz_file("in.nc", data, len), &err);
    FUZZ_TRUE(rc == BRC_OK || rc == BRC_EINVAL, &err);
}
