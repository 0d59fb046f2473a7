/* Whole NetCDF files, classic and NetCDF-4, through netCDF-C. */
#include "fuzz.h"

#include <string.h>

void fuzz_netcdf(const uint8_t *data, size_t len)
{
    if (len >= 8 && (memcmp(data, "CDF", 3) == 0 || memcmp(data, "\x89HDF\r\n\x1a\n", 8) == 0))
        fuzz_import(fuzz_file("in.nc", data, len));
}
