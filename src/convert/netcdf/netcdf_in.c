/*
 * Reading NetCDF: groups become groups, variables arrays. Dimensions are names of axes;
 * which of them are unlimited, those that no variable has, and, where there are groups
 * within the root, which group has which of them, are noted in an attribute of the group:
 *
 *   "_nc_note": { "dimensions": { "time": { "unlimited": true, "length": 3 } } }
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/node_path.h"
#include "../../base/alloc.h"
#include "netcdf_ragged.h"

#define MAX_GROUP_DEPTH 64

typedef struct group_in {
    brc_netcdf_in *in;
    int id, depth;
    const char *path;  /* in the file, and of the group that it becomes: "/a" */
    const char *label; /* "x.nc: /a" */
} group_in;

static int import_netcdf_group(const group_in *g, brc_error *err);

static int bad_group(const group_in *g, int status, brc_error *err)
{
    return brc_netcdf_fail(status, BRC_EINVAL, "cannot read", g->label, err);
}

/* ---- dimensions --------------------------------------- */

/* A list that the library gives the length of first. The caller frees it. */
typedef int (*list_ids_fn)(int group, int *n, int *ids);

static int list_dims(int group, int *n, int *ids)
{
    return nc_inq_dimids(group, n, ids, 0);
}

static int list_ids(int **out, int *n, const group_in *g, list_ids_fn list, brc_error *err)
{
    *out = NULL;
    *n = 0;
    int status = list(g->id, n, NULL);
    if (status || *n < 0)
        return bad_group(g, status ? status : NC_EINVAL, err);
    BRC_TRY(brc_new_array((void **)out, (size_t)*n + 1, sizeof(int), err));
    status = *n > 0 ? list(g->id, n, *out) : 0;
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
        int status = nc_inq_varndims(g->id, vars[i], &n);
        if (!status && n <= NC_MAX_VAR_DIMS)
            status = nc_inq_vardimid(g->id, vars[i], ids);
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
    BRC_GO(list_ids(&vars, &nvars, g, nc_inq_varids, err));
    BRC_GO(list_ids(&unlimited, &nunlimited, g, nc_inq_unlimdims, err));
    for (int i = 0; i < ndims; i++) {
        int status = nc_inq_dim(g->id, dims[i], name, &length);
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
        .convert = g->in->convert, .group = g->id, .var = NC_GLOBAL, .label = g->label
    };
    brc_buf text = BRC_BUF_INIT;
    int rc;

    BRC_GO(brc_netcdf_read_atts(&atts, err));
    BRC_GO(note_dims(&atts.note, g, err));
    if (atts.note) {
        rc = brc_json_set(atts.attrs, BRC_NETCDF_GROUP_NOTE, atts.note, err);
        atts.note = NULL;
        BRC_GO(rc);
    }
    BRC_GO(brc_json_write(&text, atts.attrs, err));
    BRC_GO(brc_buf_terminate(&text, err));
    BRC_GO(brc_convert_group(g->in->convert, g->path, (const char *)text.data, err));
done:
    brc_buf_dispose(&text);
    brc_json_free(atts.attrs);
    brc_json_free(atts.note);
    return rc;
}

/* A child of a group: where it is, and what it is called in messages. */
typedef struct child_in {
    char *path, *label;
    int excluded;
} child_in;

static void child_free(child_in *child)
{
    free(child->path);
    free(child->label);
}

/* By its path in the file, where names are not escaped. */
static int settle_child(const group_in *g, const child_in *child, int rc, brc_error *err)
{
    brc_convert *c = g->in->convert;
    return brc_convert_settle(c, rc, brc_convert_path(c, child->label), NULL, err);
}

static int child_open(child_in *out, const group_in *g, const char *name, brc_error *err)
{
    int rc;

    memset(out, 0, sizeof(*out));
    brc_convert *c = g->in->convert;
    BRC_GO(brc_node_join(&out->label, g->label, name, err));
    BRC_GO(brc_convert_node_path(&out->path, c, g->path, name, err));
    out->excluded = brc_convert_is_excluded(c, brc_convert_path(c, out->label));
    if (out->excluded)
        goto done;
    rc = settle_child(g, out, brc_convert_place_check(out->label, out->path, err), err);
    out->excluded = rc == 1;
done:
    if (rc < 0)
        child_free(out);
    return rc < 0 ? rc : BRC_OK;
}

/* What the first round has seen of a variable that stays out does not count in the second. */
static int bring_var(const group_in *g, int var, const child_in *child, brc_error *err)
{
    size_t seen = g->in->nvars;
    int rc = brc_netcdf_is_ragged(g->id, var, child->label, err);
    if (rc == 1)
        rc = brc_netcdf_import_ragged(g->in, g->id, var, child->label, child->path, err);
    else if (rc == 0)
        rc = brc_netcdf_import_var(g->in, g->id, var, child->label, child->path, err);
    rc = settle_child(g, child, rc, err);
    if (rc == 1 && brc_convert_phase(g->in->convert) == BRC_CONVERT_DOCS)
        g->in->nvars = seen;
    return rc;
}

static int import_vars(const group_in *g, brc_error *err)
{
    char name[BRC_NETCDF_NAME_MAX];
    int *ids, n;
    int rc = list_ids(&ids, &n, g, nc_inq_varids, err);
    for (int i = 0; i < n && rc >= 0; i++) {
        child_in child;
        int status = nc_inq_varname(g->id, ids[i], name);
        rc = status ? bad_group(g, status, err) : child_open(&child, g, name, err);
        if (rc < 0)
            break;
        if (!child.excluded)
            rc = bring_var(g, ids[i], &child, err);
        child_free(&child);
    }
    free(ids);
    return rc < 0 ? rc : BRC_OK;
}

static int import_groups(const group_in *g, brc_error *err)
{
    char name[BRC_NETCDF_NAME_MAX];
    int *ids, n;
    int rc = list_ids(&ids, &n, g, nc_inq_grps, err);
    for (int i = 0; i < n && rc >= 0; i++) {
        child_in child;
        int status = nc_inq_grpname(ids[i], name);
        rc = status ? bad_group(g, status, err) : child_open(&child, g, name, err);
        if (rc < 0)
            break;
        group_in below = { g->in, ids[i], g->depth + 1, child.path, child.label };
        if (!child.excluded)
            rc = settle_child(g, &child, import_netcdf_group(&below, err), err);
        child_free(&child);
    }
    free(ids);
    return rc < 0 ? rc : BRC_OK;
}

static int import_netcdf_group(const group_in *g, brc_error *err)
{
    if (g->depth > MAX_GROUP_DEPTH)
        return brc_part_refuse(err, BRC_PART_SIZE, NULL, "%s: its groups are nested too deep",
                               g->label);
    if (brc_convert_phase(g->in->convert) == BRC_CONVERT_DOCS)
        BRC_TRY(make_netcdf_group(g, err));
    BRC_TRY(import_vars(g, err));
    return g->in->is_netcdf4 ? import_groups(g, err) : BRC_OK;
}

/* ---- the file ------------------------------------------ */

static int read_format(brc_netcdf_in *in, brc_error *err)
{
    int format = 0;
    int status = nc_inq_format(in->id, &format);

    in->is_netcdf4 =
        !status && (format == NC_FORMAT_NETCDF4 || format == NC_FORMAT_NETCDF4_CLASSIC);
    if (in->is_netcdf4)
        status = nc_inq_grps(in->id, &in->has_groups, NULL);
    const char *name = brc_convert_file(in->convert);
    return status ? brc_netcdf_fail(status, BRC_EINVAL, "cannot read", name, err) : BRC_OK;
}

static void close_in(void *state)
{
    brc_netcdf_in *in = state;
    if (in->id >= 0)
        (void)nc_close(in->id);
    brc_netcdf_places_free(&in->places);
    free(in->local);
    free(in->vars);
    free(in);
}

int brc_netcdf_open(void **state, brc_convert *c, const char *file, brc_error *err)
{
    brc_netcdf_in *in;

    BRC_TRY(brc_new(state, sizeof(*in), err));
    in = *state;
    *in = (brc_netcdf_in){ .run = { close_in }, .convert = c, .id = -1 };
    BRC_TRY(brc_netcdf_is_hdf5(file) ? brc_netcdf_check_links(file, err)
                                     : brc_netcdf_check_length(&in->places, file, err));
    BRC_TRY(brc_netcdf_path(&in->local, file, err));
    int status = nc_open(in->local, NC_NOWRITE, &in->id);
    if (status) {
        in->id = -1;
        return brc_netcdf_fail(status, BRC_EINVAL, "cannot open", brc_convert_file(c), err);
    }
    return read_format(in, err);
}

int brc_netcdf_walk(void *state, brc_error *err)
{
    brc_netcdf_in *in = state;
    brc_buf label = BRC_BUF_INIT;
    int rc;

    BRC_GO(brc_buf_printf(&label, err, "%s: /", brc_convert_file(in->convert)));
    BRC_GO(brc_buf_terminate(&label, err));
    group_in root = { in, in->id, 0, "/", (const char *)label.data };
    BRC_GO(import_netcdf_group(&root, err));
done:
    brc_buf_dispose(&label);
    return rc;
}
