/*
 * Reading NetCDF: groups become groups, variables arrays. Dimensions are names of axes;
 * which of them are unlimited, those that no variable has, and, where there are groups
 * within the root, which group has which of them, are noted in an attribute of the group:
 *
 *   "_nc_note": { "dimensions": { "time": { "unlimited": true, "length": 3 } } }
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/json.h"
#include "../../zarr/meta.h"
#include "../../zarr/transfer.h"
#include "netcdf_format.h"
#include "netcdf_in.h"

#define MAX_GROUP_DEPTH 64

typedef struct group_in {
    const brc_netcdf_in *in;
    int id, depth;
    const char *inner; /* its path in the file: "" for the root, "/a" */
    const char *path;  /* of the group that it becomes               */
    const char *label;
} group_in;

static int import_netcdf_group(const group_in *g, brc_error *err);

static int netcdf_label(char **out, const brc_netcdf_in *in, const char *inner, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_buf_printf(&text, err, "%s: %s", in->file, inner[0] ? inner : "/"));
    BRC_GO(brc_buf_take_text(&text, out, err));
done:
    brc_buf_dispose(&text);
    return rc;
}

static int bad_group(const group_in *g, int status, brc_error *err)
{
    return brc_netcdf_fail(&g->in->lib, status, BRC_EINVAL, "cannot read", g->label, err);
}

/* ---- dimensions --------------------------------------- */

/* A list that the library gives the length of first. The caller frees it. */
typedef int (*list_ids_fn)(const brc_netcdf *lib, int group, int *n, int *ids);

static int list_dims(const brc_netcdf *lib, int group, int *n, int *ids)
{
    return lib->nc_inq_dimids(group, n, ids, 0);
}

static int list_unlimited(const brc_netcdf *lib, int group, int *n, int *ids)
{
    return lib->nc_inq_unlimdims(group, n, ids);
}

static int list_vars(const brc_netcdf *lib, int group, int *n, int *ids)
{
    return lib->nc_inq_varids(group, n, ids);
}

static int list_groups(const brc_netcdf *lib, int group, int *n, int *ids)
{
    return lib->nc_inq_grps(group, n, ids);
}

static int list_ids(int **out, int *n, const group_in *g, list_ids_fn list, brc_error *err)
{
    *out = NULL;
    *n = 0;
    int status = list(&g->in->lib, g->id, n, NULL);
    if (status || *n < 0)
        return bad_group(g, status ? status : NC_EINVAL, err);
    BRC_TRY(brc_new_array((void **)out, (size_t)*n + 1, sizeof(int), err));
    status = *n > 0 ? list(&g->in->lib, g->id, n, *out) : 0;
    return status ? bad_group(g, status, err) : BRC_OK;
}

static int is_among(int id, const int *ids, int n)
{
    for (int i = 0; i < n; i++)
        if (ids[i] == id)
            return 1;
    return 0;
}

/* *used: whether a variable of this very group has the dimension. */
static int dim_is_used(int *used, const group_in *g, int dim, const int *vars, int nvars,
                       brc_error *err)
{
    int ids[NC_MAX_VAR_DIMS], n = 0;
    *used = 0;
    for (int i = 0; i < nvars && !*used; i++) {
        int status = g->in->lib.nc_inq_varndims(g->id, vars[i], &n);
        if (!status && n <= NC_MAX_VAR_DIMS)
            status = g->in->lib.nc_inq_vardimid(g->id, vars[i], ids);
        if (status)
            return bad_group(g, status, err);
        *used = n <= NC_MAX_VAR_DIMS && is_among(dim, ids, n);
    }
    return BRC_OK;
}

static int note_dims(brc_json **note, const group_in *g, brc_error *err)
{
    int *dims = NULL, *unlimited = NULL, *vars = NULL, ndims, nunlimited = 0, nvars, used, rc;
    char name[BRC_NETCDF_NAME_MAX];
    size_t length;

    BRC_GO(list_ids(&dims, &ndims, g, list_dims, err));
    BRC_GO(list_ids(&vars, &nvars, g, list_vars, err));
    BRC_GO(list_ids(&unlimited, &nunlimited, g, list_unlimited, err));
    for (int i = 0; i < ndims; i++) {
        int status = g->in->lib.nc_inq_dim(g->id, dims[i], name, &length);
        int grows = is_among(dims[i], unlimited, nunlimited);
        if (status || !brc_utf8_valid(name, strlen(name))) {
            rc = bad_group(g, status ? status : NC_EBADNAME, err);
            goto done;
        }
        if (strncmp(name, BRC_NETCDF_NAMELESS, strlen(BRC_NETCDF_NAMELESS)) == 0)
            continue;
        BRC_GO(dim_is_used(&used, g, dims[i], vars, nvars, err));
        if (grows || !used || g->in->has_groups)
            BRC_GO(brc_netcdf_note_dim(note, name, length, grows, err));
    }
done:
    free(dims);
    free(vars);
    free(unlimited);
    return rc;
}

/* ---- groups ------------------------------------------- */

static int make_netcdf_group(const group_in *g, brc_error *err)
{
    brc_netcdf_atts_in atts = {
        .lib = &g->in->lib, .group = g->id, .var = NC_GLOBAL, .label = g->label
    };
    brc_json *doc = NULL;
    int rc;

    BRC_GO(brc_netcdf_read_atts(&atts, err));
    BRC_GO(note_dims(&atts.note, g, err));
    BRC_GO(brc_meta_new_group(&doc, NULL, err));
    if (atts.note) {
        rc = brc_json_set(atts.attrs, BRC_NETCDF_GROUP_NOTE, atts.note, err);
        atts.note = NULL;
        BRC_GO(rc);
    }
    rc = brc_json_set(doc, "attributes", atts.attrs, err);
    atts.attrs = NULL;
    if (rc == BRC_OK)
        rc = brc_group_create_doc(g->in->session, g->path, doc, err);
done:
    brc_json_free(doc);
    brc_json_free(atts.attrs);
    brc_json_free(atts.note);
    return rc;
}

/* A child of a group: where it is in the file, where it goes, and what it is called in
 * messages. */
typedef struct child_in {
    char *inner, *path, *label;
    int excluded;
} child_in;

static void child_free(child_in *child)
{
    free(child->inner);
    free(child->path);
    free(child->label);
}

static int child_open(child_in *out, const group_in *g, const char *name, brc_error *err)
{
    brc_buf inner = BRC_BUF_INIT;
    int rc;

    memset(out, 0, sizeof(*out));
    BRC_GO(brc_buf_printf(&inner, err, "%s/%s", g->inner, name));
    BRC_GO(brc_buf_take_text(&inner, &out->inner, err));
    out->excluded = brc_is_excluded(g->in->opts, out->inner, strlen(out->inner));
    if (out->excluded)
        goto done;
    BRC_GO(brc_container_name_check(g->label, name, err));
    BRC_GO(netcdf_label(&out->label, g->in, out->inner, err));
    BRC_GO(brc_node_join(&out->path, g->path, name, err));
done:
    brc_buf_dispose(&inner);
    if (rc < 0)
        child_free(out);
    return rc;
}

static int import_vars(const group_in *g, brc_error *err)
{
    char name[BRC_NETCDF_NAME_MAX];
    int *ids, n;
    int rc = list_ids(&ids, &n, g, list_vars, err);
    for (int i = 0; i < n && rc == BRC_OK; i++) {
        child_in child;
        int status = g->in->lib.nc_inq_varname(g->id, ids[i], name);
        rc = status ? bad_group(g, status, err) : child_open(&child, g, name, err);
        if (rc < 0)
            break;
        if (!child.excluded)
            rc = g->in->bytes
                     ? brc_netcdf_count_var(g->in, g->id, ids[i], child.label, err)
                     : brc_netcdf_import_var(g->in, g->id, ids[i], child.label, child.path, err);
        child_free(&child);
    }
    free(ids);
    return rc;
}

static int import_groups(const group_in *g, brc_error *err)
{
    char name[BRC_NETCDF_NAME_MAX];
    int *ids, n;
    int rc = list_ids(&ids, &n, g, list_groups, err);
    for (int i = 0; i < n && rc == BRC_OK; i++) {
        child_in child;
        int status = g->in->lib.nc_inq_grpname(ids[i], name);
        rc = status ? bad_group(g, status, err) : child_open(&child, g, name, err);
        if (rc < 0)
            break;
        group_in below = { g->in, ids[i], g->depth + 1, child.inner, child.path, child.label };
        if (!child.excluded)
            rc = import_netcdf_group(&below, err);
        child_free(&child);
    }
    free(ids);
    return rc;
}

static int import_netcdf_group(const group_in *g, brc_error *err)
{
    if (g->depth > MAX_GROUP_DEPTH)
        return brc_fail(err, BRC_ELIMIT, "%s: its groups are nested too deep", g->label);
    if (!g->in->bytes)
        BRC_TRY(make_netcdf_group(g, err));
    BRC_TRY(import_vars(g, err));
    return g->in->is_netcdf4 ? import_groups(g, err) : BRC_OK;
}

/* ---- the file ------------------------------------------ */

static int import_file(brc_netcdf_in *in, const char *path, brc_error *err)
{
    char *local = NULL, *label = NULL;
    int id = -1, format = 0, status, rc;

    BRC_GO(brc_netcdf_path(&local, in->file, err));
    status = in->lib.nc_open(local, NC_NOWRITE, &id);
    if (status) {
        rc = brc_netcdf_fail(&in->lib, status, BRC_EINVAL, "cannot open", in->file, err);
        goto done;
    }
    status = in->lib.nc_inq_format(id, &format);
    in->is_netcdf4 =
        !status && (format == NC_FORMAT_NETCDF4 || format == NC_FORMAT_NETCDF4_CLASSIC);
    BRC_GO(netcdf_label(&label, in, "", err));
    group_in root = { in, id, 0, "", path, label };
    if (in->is_netcdf4) {
        status = in->lib.nc_inq_grps(id, &in->has_groups, NULL);
        if (status) {
            rc = bad_group(&root, status, err);
            goto done;
        }
    }
    BRC_GO(import_netcdf_group(&root, err));
done:
    if (id >= 0)
        (void)in->lib.nc_close(id);
    free(local);
    free(label);
    return rc;
}

static int walk_netcdf(brc_session *s, const char *file, const char *path,
                       const brc_xfer_opts *opts, uint64_t *bytes, brc_error *err)
{
    brc_netcdf_in in = { .session = s, .file = file, .opts = opts, .bytes = bytes };
    int is_classic;

    BRC_TRY(brc_netcdf_is_classic(&is_classic, file, err));
    if (is_classic) {
        BRC_TRY(brc_netcdf_check_classic(file, err));
    } else {
        BRC_TRY(brc_netcdf_check_heaps(file, err));
        BRC_TRY(brc_netcdf_check_links(file, err));
    }
    BRC_TRY(brc_netcdf_load(&in.lib, err));
    return import_file(&in, path, err);
}

int brc_netcdf_import(brc_session *s, const char *file, const char *path, const brc_xfer_opts *opts,
                      brc_error *err)
{
    return walk_netcdf(s, file, path, opts, NULL, err);
}

int brc_netcdf_bytes(uint64_t *bytes, brc_session *s, const char *file, const brc_xfer_opts *opts,
                     brc_error *err)
{
    *bytes = 0;
    return walk_netcdf(s, file, "/", opts, bytes, err);
}
