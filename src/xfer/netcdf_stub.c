/* Holds the place of the NetCDF driver: its author removes this file. */
#include "xfer.h"

int brc_netcdf_import(brc_session *s, const char *file, const char *path, const brc_xfer_opts *opts,
                      brc_error *err)
{
    (void)s, (void)path, (void)opts;
    return brc_fail(err, BRC_EUNSUPPORTED, "%s is NetCDF, which cannot be imported yet", file);
}

int brc_netcdf_export(brc_session *s, const char *path, const char *dest, int classic,
                      brc_error *err)
{
    (void)s, (void)path, (void)classic;
    return brc_fail(err, BRC_EUNSUPPORTED, "%s cannot be written yet", dest);
}
