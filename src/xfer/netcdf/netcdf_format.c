/* NetCDF in the table of formats: NetCDF-4, which is HDF5, and the classic formats. */
#include "../formats.h"

#include <string.h>

#include "../foreign/foreign.h"
#include "../xfer.h"

/* Of a classic file. NetCDF-4 is HDF5, whose converter reads it. */
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
    brc_foreign what = { .session = s,
                         .converter = "netcdf",
                         .file = source->name,
                         .opts = opts,
                         .parts = source->parts };
    return brc_foreign_import(&what, path, err);
}

static int size_netcdf(uint64_t *bytes, brc_session *s, const brc_source *source,
                       const brc_xfer_opts *opts, brc_error *err)
{
    brc_foreign what = { .session = s, .converter = "netcdf", .file = source->name, .opts = opts };
    return brc_foreign_bytes(bytes, &what, err);
}

static int export_netcdf(brc_session *s, const char *path, const char *dest,
                         const brc_xfer_opts *opts, int classic, brc_error *err)
{
    brc_foreign what = { .session = s, .converter = "netcdf", .file = dest, .opts = opts };
    return brc_foreign_export(&what, path, classic, err);
}

static int export_netcdf4(brc_session *s, const char *path, const char *dest,
                          const brc_xfer_opts *opts, brc_error *err)
{
    return export_netcdf(s, path, dest, opts, 0, err);
}

static int export_netcdf3(brc_session *s, const char *path, const char *dest,
                          const brc_xfer_opts *opts, brc_error *err)
{
    return export_netcdf(s, path, dest, opts, 1, err);
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
