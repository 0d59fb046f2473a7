/* Holds the place of the HDF5 driver: its author removes this file. */
#include "xfer.h"

int brc_hdf5_is_netcdf(int *is, const char *file, brc_error *err)
{
    (void)file, (void)err;
    *is = 1;
    return BRC_OK;
}

int brc_hdf5_import(brc_session *s, const char *file, const char *path, const brc_xfer_opts *opts,
                    brc_error *err)
{
    (void)s, (void)path, (void)opts;
    return brc_fail(err, BRC_EUNSUPPORTED, "%s is HDF5, which cannot be imported yet", file);
}

int brc_hdf5_export(brc_session *s, const char *path, const char *dest, brc_error *err)
{
    (void)s, (void)path;
    return brc_fail(err, BRC_EUNSUPPORTED, "%s cannot be written yet", dest);
}
