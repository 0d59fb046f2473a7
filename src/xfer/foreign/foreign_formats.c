/* The formats in the table of formats that have converters: HDF5, whose converter reads NetCDF-4
 * files too, and the classic formats of NetCDF. */
#include <string.h>
#include <unistd.h>

#include "../xfer.h"
#include "foreign.h"

static int foreign_import(const char *converter, brc_session *s, const brc_source *source,
                          const char *path, const brc_xfer_opts *opts, brc_error *err)
{
    const brc_foreign what = {.session = s, .converter = converter, .file = source->name,
                              .opts = opts, .parts = source->parts};
    return brc_foreign_import(&what, path, err);
}

/* ==== HDF5 ================================ */

/* An HDF5 file may begin with something else, of 512 bytes or a power of two times
 * that: its signature follows there. */
static int probe_hdf5(int *is, const brc_source *source, brc_error *err)
{
    static const char signature[] = "\x89HDF\r\n\x1a\n";
    char head[8];
    uint64_t size;
    int fd;

    *is = 0;
    if (source->is_dir || source->is_gzip)
        return BRC_OK;
    BRC_TRY(brc_regular_open(&fd, &size, source->name, 1, err));
    for (uint64_t at = 0; at < size && !*is; at = at ? at * 2 : 512)
        *is = pread(fd, head, sizeof(head), (off_t)at) == (ssize_t)sizeof(head) &&
              memcmp(head, signature, sizeof(head)) == 0;
    close(fd);
    return BRC_OK;
}

static int import_hdf5(brc_session *s, const brc_source *source, const char *path,
                       const brc_xfer_opts *opts, brc_error *err)
{
    return foreign_import("hdf5", s, source, path, opts, err);
}

static int size_hdf5(uint64_t *bytes, brc_session *s, const brc_source *source,
                     const brc_xfer_opts *opts, brc_error *err)
{
    brc_foreign what = { .session = s, .converter = "hdf5", .file = source->name, .opts = opts };
    return brc_foreign_bytes(bytes, &what, err);
}

static int export_hdf5(brc_session *s, const char *path, const char *dest,
                       const brc_xfer_opts *opts, brc_error *err)
{
    brc_foreign what = { .session = s, .converter = "hdf5", .file = dest, .opts = opts };
    return brc_foreign_export(&what, path, 0, err);
}

static const char *const hdf5_endings[] = { ".h5", ".hdf5", NULL };

const brc_format brc_format_hdf5 = {
    .name = "hdf5",
    .source_text = "HDF5",
    .endings = hdf5_endings,
    .probe = probe_hdf5,
    .is_group = brc_foreign_is_group,
    .import = import_hdf5,
    .size = size_hdf5,
    .tells_progress = 1,
    .export = export_hdf5,
};

/* ==== NetCDF ================================ */

/* Recognizes a classic file. NetCDF-4 is HDF5, whose converter reads it. */
static int probe_netcdf(int *is, const brc_source *source, brc_error *err)
{
    (void)err;
    *is = !source->is_gzip && source->head_len >= 4 && memcmp(source->head, "CDF", 3) == 0 &&
          (source->head[3] == 1 || source->head[3] == 2 || source->head[3] == 5);
    return BRC_OK;
}

static int import_netcdf(brc_session *s, const brc_source *source, const char *path,
                         const brc_xfer_opts *opts, brc_error *err)
{
    return foreign_import("netcdf", s, source, path, opts, err);
}

static int size_netcdf(uint64_t *bytes, brc_session *s, const brc_source *source,
                       const brc_xfer_opts *opts, brc_error *err)
{
    brc_foreign what = { .session = s, .converter = "netcdf", .file = source->name, .opts = opts };
    return brc_foreign_bytes(bytes, &what, err);
}

/* NetCDF-4 is HDF5, whose converter writes it. */
static int export_netcdf4(brc_session *s, const char *path, const char *dest,
                          const brc_xfer_opts *opts, brc_error *err)
{
    brc_foreign what = { .session = s, .converter = "hdf5", .file = dest, .opts = opts };
    return brc_foreign_export(&what, path, 1, err);
}

static int export_netcdf3(brc_session *s, const char *path, const char *dest,
                          const brc_xfer_opts *opts, brc_error *err)
{
    brc_foreign what = { .session = s, .converter = "netcdf", .file = dest, .opts = opts };
    return brc_foreign_export(&what, path, 0, err);
}

/* Nothing is written to ".cdf", which is the name of another format too. */
static size_t netcdf_stem(const char *name, size_t len)
{
    return brc_without_ending(name, len, ".cdf");
}

static const char *const netcdf_endings[] = { ".nc", ".nc4", NULL };

const brc_format brc_format_netcdf = {
    .name = "netcdf",
    .source_text = "NetCDF",
    .endings = netcdf_endings,
    .stem = netcdf_stem,
    .probe = probe_netcdf,
    .is_group = brc_foreign_is_group,
    .import = import_netcdf,
    .size = size_netcdf,
    .tells_progress = 1,
    .dimensions = BRC_DIMENSIONS_NETCDF,
    .export = export_netcdf4,
};

const brc_format brc_format_netcdf3 = {
    .name = "netcdf3",
    .dimensions = BRC_DIMENSIONS_NETCDF,
    .export = export_netcdf3,
};
