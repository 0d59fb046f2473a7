/* The header of a classic NetCDF file, as its converter reads it before netCDF-C does. */
#include "fuzz.h"

#include "../../src/convert/netcdf/netcdf_lib.h"

void fuzz_netcdf_classic(const uint8_t *data, size_t len)
{
    brc_error err = BRC_ERROR_INIT;
    brc_netcdf_places places;
    uint64_t bytes;
    int rc = brc_netcdf_check_length(&places, fuzz_file("in.nc", data, len), &err);
    FUZZ_TRUE(rc == BRC_OK || rc == BRC_EINVAL, &err);
    for (size_t i = 0; i < places.n; i++) {
        const brc_tar_range *r = &places.ranges[i];
        if (r->len > 0 && r->pieces > 0)
            FUZZ_TRUE(brc_tar_range_bytes(r, &bytes) &&
                          r->at + r->step * (r->pieces - 1) + r->len <= len,
                      NULL);
    }
    brc_netcdf_places_free(&places);
}
