/* brc_import() and brc_export(): which format, which node, and all or nothing. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../base/alloc.h"
#include "../base/json.h"
#include "../zarr/repo.h"
#include "../zarr/transfer.h"
#include "npy/npy_out.h"
#include "xfer.h"

/* ---- nodes under a path -------------------------------- */

static int visit_nodes(brc_session *s, const char *path, brc_node_fn each, void *ctx,
                       brc_error *err)
{
    brc_iter *it = NULL;
    brc_node node;
    size_t base = 0, n = 0;
    int rc;

    BRC_GO(brc_list(&it, s, path, 1, err));
    while ((rc = brc_list_next(it, &node, err)) > 0) {
        if (n++ == 0)
            base = strlen(node.path);
        const char *inner = node.path + base;
        if (each)
            BRC_GO(each(ctx, node.path, inner + (*inner == '/'), node.kind, err));
    }
done:
    brc_iter_free(it);
    return rc;
}

int brc_nodes_each(brc_session *s, const char *path, brc_node_fn each, void *ctx, brc_error *err)
{
    BRC_TRY(visit_nodes(s, path, NULL, NULL, err));
    return visit_nodes(s, path, each, ctx, err);
}

void brc_add_array_bytes(uint64_t *sum, int ndim, const uint64_t *shape, size_t item)
{
    uint64_t bytes, more;
    if (brc_shape_bytes(ndim, shape, item > 0 ? item : 1, &bytes) &&
        brc_add_u64(*sum, bytes, &more))
        *sum = more;
}

/* ---- import -------------------------------- */

int brc_is_excluded(const brc_xfer_opts *opts, const char *path)
{
    path += strspn(path, "/");
    size_t len = strlen(path);
    for (size_t i = 0; opts && i < opts->nexclude; i++) {
        const char *other = opts->exclude[i] + strspn(opts->exclude[i], "/");
        size_t n = strlen(other);
        while (n > 0 && other[n - 1] == '/')
            n--;
        if (n > 0 && n == len && memcmp(path, other, n) == 0) {
            if (opts->excluded)
                opts->excluded[i] = 1;
            return 1;
        }
    }
    return 0;
}

static int group_is_empty(int *empty, brc_session *s, const char *path, brc_error *err)
{
    brc_iter *it;
    brc_node child;
    BRC_TRY(brc_list(&it, s, path, 0, err));
    int rc = brc_list_next(it, &child, err);
    brc_iter_free(it);
    *empty = rc == 0;
    return rc < 0 ? rc : BRC_OK;
}

/* Where the source goes when no path is named. */
static int choose_path(char **out, brc_session *s, int kind, const char *source, brc_error *err)
{
    int is_group = 0, empty = 0;
    char *name;

    *out = NULL;
    if (kind == BRC_SOURCE_ZARR)
        BRC_TRY(brc_zarr_is_group(&is_group, s, source, err));
    else
        is_group = kind == BRC_SOURCE_NETCDF || kind == BRC_SOURCE_HDF5;
    if (is_group)
        BRC_TRY(group_is_empty(&empty, s, "/", err));
    if (empty)
        return brc_dup(out, "/", err);
    BRC_TRY(brc_source_name(&name, source, err));
    int rc = brc_node_join(out, "/", name, err);
    free(name);
    return rc;
}

/* "a/b/" to "/a/b" */
static int given_path(char **out, const char *path, brc_error *err)
{
    size_t len = strlen(path);
    while (len > 0 && path[len - 1] == '/')
        len--;
    while (len > 0 && *path == '/') {
        path++;
        len--;
    }
    char *inner;
    BRC_TRY(brc_dup_n(&inner, path, len, err));
    int rc = brc_node_join(out, "/", inner, err);
    free(inner);
    return rc;
}

/* The place in a group that is named after the source. */
static int place_in(char **out, const char *group, const char *source, brc_error *err)
{
    char *above, *name = NULL;
    int rc;

    *out = NULL;
    BRC_TRY(given_path(&above, group, err));
    BRC_GO(brc_source_name(&name, source, err));
    BRC_GO(brc_node_join(out, above, name, err));
done:
    free(name);
    free(above);
    return rc;
}

static int check_absent(brc_session *s, const char *path, brc_error *err)
{
    int kind;
    if (strcmp(path, "/") == 0)
        return BRC_OK; /* always there: empty, it can be taken over */
    BRC_TRY(brc_node_kind(&kind, s, path, err));
    if (kind != 0)
        return brc_fail(err, BRC_EEXISTS,
                        "%s is already there: import to another path, or remove it", path);
    return BRC_OK;
}

static int import_as(brc_session *s, int kind, const char *source, const char *path,
                     const brc_xfer_opts *opts, brc_error *err)
{
    switch (kind) {
    case BRC_SOURCE_ZARR:
        return brc_zarr_import(s, source, path, opts, err);
    case BRC_SOURCE_NPZ:
        return brc_npz_import(s, source, path, opts, err);
    case BRC_SOURCE_NETCDF:
        return brc_netcdf_import(s, source, path, opts, err);
    case BRC_SOURCE_HDF5:
        return brc_hdf5_import(s, source, path, opts, err);
    default:
        return brc_single_import(s, kind, source, path, opts, err);
    }
}

static int bytes_as(uint64_t *bytes, brc_session *s, int kind, const char *source,
                    const brc_xfer_opts *given, brc_error *err)
{
    brc_xfer_opts copy = *given, *opts = &copy;
    copy.excluded = NULL; /* that is for the import to tell */
    switch (kind) {
    case BRC_SOURCE_ZARR:
        return brc_zarr_bytes(bytes, s, source, opts, err);
    case BRC_SOURCE_NPZ:
        return brc_npz_bytes(bytes, s, source, opts, err);
    case BRC_SOURCE_NETCDF:
        return brc_netcdf_bytes(bytes, s, source, opts, err);
    case BRC_SOURCE_HDF5:
        return brc_hdf5_bytes(bytes, s, source, opts, err);
    default:
        return brc_single_bytes(bytes, s, kind, source, err);
    }
}

/* 0 where nobody asks, or asks for the total of more than this; and where it cannot be
 * said: the import will say why. */
static uint64_t bytes_to_import(brc_session *s, int kind, const char *source,
                                const brc_xfer_opts *opts)
{
    const breccia *repo = brc_session_repo(s);
    uint64_t bytes;
    if (!repo->progress || repo->task_depth > 0 || bytes_as(&bytes, s, kind, source, opts, NULL))
        return 0;
    return bytes;
}

static int import_new(brc_session *s, int kind, const char *source, const char *path,
                      const brc_xfer_opts *opts, brc_error *err)
{
    BRC_TRY(check_absent(s, path, err));
    breccia *repo = brc_session_repo(s);
    brc_task task = brc_task_begin(repo, "import", bytes_to_import(s, kind, source, opts));
    int rc = import_as(s, kind, source, path, opts, err);
    brc_task_end(repo, &task, rc);
    return rc;
}

/* The caller's structure may be of an older version, and so shorter. */
static void take_opts(brc_xfer_opts *out, const brc_xfer_opts *given)
{
    *out = (brc_xfer_opts)BRC_XFER_OPTS_INIT;
    if (given)
        memcpy(out, given, given->size < sizeof(*out) ? given->size : sizeof(*out));
}

int brc_import(brc_session *s, const char *source, const char *path, const brc_xfer_opts *given,
               brc_error *err)
{
    brc_xfer_opts opts;
    char *node = NULL;
    int kind, rc, begun = 0;
    breccia *repo = NULL;

    if (!s || !source)
        return brc_fail(err, BRC_EINVAL, "a session and a source are needed");
    take_opts(&opts, given);
    if (opts.format || opts.consolidated)
        return brc_fail(err, BRC_EINVAL,
                        "a format is for export: a source is known by its content");
    repo = brc_session_repo(s);
    BRC_GO(brc_check_file(brc_store_path(repo->store), source, err));
    BRC_GO(brc_source_kind(&kind, source, err));
    BRC_GO(brc_begin(repo, err));
    begun = 1;
    if (opts.into)
        BRC_GO(place_in(&node, path ? path : "/", source, err));
    else
        BRC_GO(path ? given_path(&node, path, err) : choose_path(&node, s, kind, source, err));
    if (opts.placed) {
        BRC_GO(brc_buf_text(opts.placed, node, err));
        BRC_GO(brc_buf_terminate(opts.placed, err));
    }
    BRC_GO(import_new(s, kind, source, node, &opts, err));
done:
    if (begun) {
        int ended = brc_end(repo, rc == BRC_OK, rc == BRC_OK ? err : NULL);
        rc = rc < 0 ? rc : ended;
    }
    free(node);
    return rc;
}

int brc_import_bytes(uint64_t *bytes, brc_session *s, const char *source,
                     const brc_xfer_opts *given, brc_error *err)
{
    brc_xfer_opts opts;
    int kind;

    if (!bytes || !s || !source)
        return brc_fail(err, BRC_EINVAL, "a number, a session and a source are needed");
    *bytes = 0;
    take_opts(&opts, given);
    BRC_TRY(brc_check_file(brc_store_path(brc_session_repo(s)->store), source, err));
    BRC_TRY(brc_source_kind(&kind, source, err));
    return bytes_as(bytes, s, kind, source, &opts, err);
}

/* ---- export -------------------------------- */

enum {
    EXPORT_ZARR3 = 1,
    EXPORT_ZARR2,
    EXPORT_NPY,
    EXPORT_NPZ,
    EXPORT_NETCDF4,
    EXPORT_NETCDF3,
    EXPORT_HDF5
};

typedef struct export_format {
    const char *name, *ending;
    int format;
} export_format;

static const export_format export_formats[] = {
    { "zarr3", ".zarr", EXPORT_ZARR3 }, { "zarr2", NULL, EXPORT_ZARR2 },
    { "zip", ".zip", EXPORT_ZARR3 },    { "npy", ".npy", EXPORT_NPY },
    { "npz", ".npz", EXPORT_NPZ },      { "netcdf", ".nc", EXPORT_NETCDF4 },
    { NULL, ".nc4", EXPORT_NETCDF4 },   { "netcdf3", NULL, EXPORT_NETCDF3 },
    { "hdf5", ".h5", EXPORT_HDF5 },     { NULL, ".hdf5", EXPORT_HDF5 },
};

static int has_ending(const char *text, const char *ending)
{
    size_t n = strlen(text), m = strlen(ending);
    return n > m && strcasecmp(text + n - m, ending) == 0;
}

/* The ending of the last name in a path: a dot and a letter, with something in front.
 * "v1.2" has none, nor has ".x". NULL: none. */
static const char *ending_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path, *dot = strrchr(base, '.');
    return dot && dot > base && (dot[1] | 0x20) >= 'a' && (dot[1] | 0x20) <= 'z' ? dot : NULL;
}

/* The format that was named; else what the ending says; else a directory. */
static int export_format_of(int *out, const char *dest, const char *name, brc_error *err)
{
    const char *ending = ending_of(dest);
    *out = name || ending ? 0 : EXPORT_ZARR3;
    for (size_t i = 0; i < sizeof(export_formats) / sizeof(export_formats[0]); i++) {
        const export_format *f = &export_formats[i];
        int found =
            name ? f->name && strcmp(f->name, name) == 0 : f->ending && has_ending(dest, f->ending);
        if (found)
            *out = f->format;
    }
    if (*out == 0 && !name)
        return brc_fail(err, BRC_EINVAL,
                        "%s: nothing is known to write with the ending %s; known are .zarr or none "
                        "(a directory), .zip, .npy, .npz, .nc, .nc4, .h5 and .hdf5; a format that "
                        "is named writes to any name",
                        dest, ending);
    if (*out == 0)
        return brc_fail(err, BRC_EINVAL,
                        "there is no format %s: zarr3, zarr2, zip, npy, npz, netcdf, netcdf3 and "
                        "hdf5 can be written",
                        name);
    return BRC_OK;
}

static int export_zarr(brc_session *s, int format, const char *path, const char *dest,
                       const brc_xfer_opts *opts, brc_error *err)
{
    brc_zarr_out_opts out = { format == EXPORT_ZARR2 ? 2 : 3, 0, opts->consolidated };
    out.zip = has_ending(dest, ".zip") || (opts->format && strcmp(opts->format, "zip") == 0);
    return brc_zarr_export(s, path, dest, &out, err);
}

static int export_npy(brc_session *s, const char *path, const char *dest, brc_error *err)
{
    brc_array *a;
    int kind;

    BRC_TRY(brc_node_kind(&kind, s, path, err));
    if (kind == BRC_GROUP)
        return brc_fail(err, BRC_EINVAL,
                        "%s is a group and .npy holds one array: write a .npz, or name an array",
                        path);
    BRC_TRY(brc_array_open(&a, s, path, err));
    int rc = brc_npy_save(a, NULL, dest, 0, err);
    brc_array_free(a);
    return rc;
}

static int export_as(brc_session *s, int format, const char *path, const char *dest,
                     const brc_xfer_opts *opts, brc_error *err)
{
    if (format == EXPORT_ZARR3 || format == EXPORT_ZARR2)
        return export_zarr(s, format, path, dest, opts, err);
    if (opts->consolidated)
        return brc_fail(err, BRC_EINVAL, "consolidated metadata is for Zarr: %s is none", dest);
    switch (format) {
    case EXPORT_NPY:
        return export_npy(s, path, dest, err);
    case EXPORT_NPZ:
        return brc_npz_export(s, path, dest, err);
    case EXPORT_HDF5:
        return brc_hdf5_export(s, path, dest, err);
    default:
        return brc_netcdf_export(s, path, dest, format == EXPORT_NETCDF3, err);
    }
}

/* ---- how much there is to export -------------------------------- */

typedef struct export_size {
    brc_session *s;
    uint64_t bytes;
} export_size;

/* brc_nodes_each() */
static int add_array_bytes(void *ctx, const char *path, const char *inner, int kind, brc_error *err)
{
    export_size *sum = ctx;
    brc_array *a;
    (void)inner;
    if (kind != BRC_ARRAY)
        return BRC_OK;
    BRC_TRY(brc_array_open(&a, sum->s, path, err));
    const brc_array_info *info = brc_array_describe(a);
    brc_add_array_bytes(&sum->bytes, info->ndim, info->shape, info->item_size);
    brc_array_free(a);
    return BRC_OK;
}

/* 0 where nobody asks, or where it cannot be said: the export will say why. */
static uint64_t bytes_to_export(brc_session *s, const char *path)
{
    export_size sum = { s, 0 };
    if (!brc_session_repo(s)->progress || brc_nodes_each(s, path, add_array_bytes, &sum, NULL) < 0)
        return 0;
    return sum.bytes;
}

static int export_checked(brc_session *s, const char *path, const char *dest,
                          const brc_xfer_opts *opts, brc_error *err)
{
    char *node;
    int format;

    if (opts->chunk || opts->codecs_json || opts->nexclude)
        return brc_fail(err, BRC_EINVAL,
                        "chunks, codecs and what to leave out are for import: an export is as "
                        "the array is stored");
    BRC_TRY(export_format_of(&format, dest, opts->format, err));
    BRC_TRY(given_path(&node, path ? path : "/", err));
    breccia *repo = brc_session_repo(s);
    brc_task task = brc_task_begin(repo, "export", bytes_to_export(s, node));
    int rc = export_as(s, format, node, dest, opts, err);
    brc_task_end(repo, &task, rc);
    free(node);
    return rc;
}

int brc_export(brc_session *s, const char *path, const char *dest, const brc_xfer_opts *given,
               brc_error *err)
{
    brc_xfer_opts opts;
    char *place; /* dest without slashes at its end */

    if (!s || !dest)
        return brc_fail(err, BRC_EINVAL, "a session and a name to write to are needed");
    take_opts(&opts, given);
    size_t len = strlen(dest);
    while (len > 1 && dest[len - 1] == '/')
        len--;
    BRC_TRY(brc_dup_n(&place, dest, len, err));
    int rc = export_checked(s, path, place, &opts, err);
    free(place);
    return rc;
}
