/* HDF5 files as sources and as what is written: the file's root group becomes the group
 * `path`, and the other way round; an array becomes the one array in it. */
#ifndef BRC_XFER_HDF5_FORMAT_H
#define BRC_XFER_HDF5_FORMAT_H

#include "../formats.h"

/* Whether the file has HDF5's signature, at its start or further on. */
BRC_MUST_USE int brc_hdf5_is_signed(int *is, const brc_source *source, brc_error *err);
/* Whether an HDF5 file was written as NetCDF-4. */
BRC_MUST_USE int brc_hdf5_is_netcdf(int *is, const char *file, brc_error *err);
BRC_MUST_USE int brc_hdf5_import(brc_session *s, const char *file, const char *path,
                                 const brc_xfer_opts *opts, brc_error *err);
BRC_MUST_USE int brc_hdf5_bytes(uint64_t *bytes, brc_session *s, const char *file,
                                const brc_xfer_opts *opts, brc_error *err);
BRC_MUST_USE int brc_hdf5_export(brc_session *s, const char *path, const char *dest,
                                 brc_error *err);

#endif
