/* NetCDF in the table of formats: NetCDF-4, which is HDF5, and the classic formats. */
#include "netcdf_format.h"

#include <string.h>

#include "../xfer.h"

static int is_classic(const brc_source *source)
{
    return !source->is_gzip && source->head_len >= 4 && memcmp(source->head, "CDF", 3) == 0 &&
           (source->head[3] == 1 || source->head[3] == 2 || source->head[3] == 5);
}

/* NetCDF-4 is HDF5, whose converter tells the two apart. */
static int probe_netcdf(int *is, const brc_source *source, brc_error *err)
{
    (void)err;
    *is = is_classic(source);
    return BRC_OK;
}

static int is_netcdf_group(int *is, brc_session *s, const brc_source *source, brc_error *err)
{
    (void)s;
    (void)source;
    (void)err;
    *is = 1;
    return BRC_OK;
}

static int import_netcdf(brc_session *s, const brc_source *source, const char *path,
                         const brc_xfer_opts *opts, brc_error *err)
{
    return brc_netcdf_import(s, source->name, path, opts, err);
}

static int size_netcdf(uint64_t *bytes, brc_session *s, const brc_source *source,
                       const brc_xfer_opts *opts, brc_error *err)
{
    return brc_netcdf_bytes(bytes, s, source->name, opts, err);
}

static int export_netcdf4(brc_session *s, const char *path, const char *dest,
                          const brc_xfer_opts *opts, brc_error *err)
{
    (void)opts;
    return brc_netcdf_export(s, path, dest, 0, err);
}

static int export_netcdf3(brc_session *s, const char *path, const char *dest,
                          const brc_xfer_opts *opts, brc_error *err)
{
    (void)opts;
    return brc_netcdf_export(s, path, dest, 1, err);
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
    .is_group = is_netcdf_group,
    .import = import_netcdf,
    .size = size_netcdf,
    .export = export_netcdf4,
};

const brc_format brc_format_netcdf3 = {
    .name = "netcdf3",
    .export = export_netcdf3,
};
