/* NetCDF files as sources and as what is written: the file's root group becomes the group
 * `path`, and the other way round; an array becomes the one variable in it. */
#ifndef BRC_XFER_NETCDF_FORMAT_H
#define BRC_XFER_NETCDF_FORMAT_H

#include "../formats.h"

BRC_MUST_USE int brc_netcdf_import(brc_session *s, const char *file, const char *path,
                                   const brc_xfer_opts *opts, brc_error *err);
BRC_MUST_USE int brc_netcdf_bytes(uint64_t *bytes, brc_session *s, const char *file,
                                  const brc_xfer_opts *opts, brc_error *err);
/* classic: in the smallest of the formats before NetCDF-4 that can hold it. */
BRC_MUST_USE int brc_netcdf_export(brc_session *s, const char *path, const char *dest, int classic,
                                   brc_error *err);

#endif
