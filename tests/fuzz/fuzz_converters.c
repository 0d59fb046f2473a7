/*
 * Whole HDF5 and NetCDF files, through the code of their converters and libraries, in this
 * process: nothing here stands between them and a finding, as the converter's own process and
 * its sandbox do.
 */
#include "fuzz.h"

#include <string.h>

#include "../../src/convert/hdf5/hdf5_driver.h"
#include "../../src/convert/lib/convert_program.h"
#include "../../src/convert/netcdf/netcdf_driver.h"

static int count_bytes(void *ctx, const uint8_t *from, size_t len, brc_error *err)
{
    (void)from, (void)err;
    *(uint64_t *)ctx += len;
    return BRC_OK;
}

static int is_hdf5(const uint8_t *data, size_t len)
{
    return len >= 8 && memcmp(data, "\x89HDF\r\n\x1a\n", 8) == 0;
}

static void convert_file(const brc_driver *driver, const char *file)
{
    brc_convert c = { .path = "/", .file = file, .parts = BRC_PARTS_INIT };
    brc_error err = BRC_ERROR_INIT;
    uint64_t written = 0;
    brc_tar_sink sink = { &written, count_bytes };

    FUZZ_TRUE(brc_registry_new(&c.registry, &err) == BRC_OK, &err);
    FUZZ_TRUE(brc_scratch_new(&c.scratch, &err) == BRC_OK, &err);
    FUZZ_TRUE(brc_tar_out_open(&c.out, &sink, "x", &err) == BRC_OK, &err);
    int rc = brc_convert_import(&c, driver, &err);
    FUZZ_TRUE(rc != BRC_EINTERNAL && rc != BRC_EMISUSE, &err);
    FUZZ_TRUE(rc < 0 || written > 0, &err);
    brc_parts_dispose(&c.parts);
    brc_tar_out_free(c.out);
    brc_scratch_free(c.scratch);
    brc_registry_free(c.registry);
}

void fuzz_hdf5(const uint8_t *data, size_t len)
{
    if (is_hdf5(data, len))
        convert_file(&brc_hdf5_driver, fuzz_file("in.h5", data, len));
}

/* Classic files; NetCDF-4 is HDF5. */
void fuzz_netcdf(const uint8_t *data, size_t len)
{
    if (len >= 8 && memcmp(data, "CDF", 3) == 0)
        convert_file(&brc_netcdf_driver, fuzz_file("in.nc", data, len));
}
