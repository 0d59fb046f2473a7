/*
 * Writes classic NetCDF, in the lowest version that has all types: 2, or 5 for unsigned and 64-bit
 * integers and very large arrays. A node that the format cannot hold is refused before anything is
 * written.
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../lib/netcdf_plan.h"
#include "netcdf_driver.h"
#include "netcdf_lib.h"

/* The most bytes of a variable, or of one record of it, in a file of version 2. */
#define MAX_VAR_BYTES_2 (UINT64_C(0xFFFFFFFF) - 3)

typedef struct netcdf_out {
    brc_netcdf_run run;
    const brc_convert *convert;
    const char *path;     /* of the file, for messages */
    brc_netcdf_plan plan; /* netCDF-C numbers dimensions and variables in the planned order */
    int version;
    int file;                  /* the id of the open file; negative: closed */
    const brc_netcdf_var *var; /* the variable that is being written */
} netcdf_out;

/* ---- the plan -------------------------------- */

/* Chooses the version that has the attribute's type: the put function of brc_netcdf_atts_out. */
static int look_at_att(void *ctx, const char *name, const brc_netcdf_values *values, brc_error *err)
{
    netcdf_out *out = ctx;
    (void)name, (void)err;
    if (values->type > NC_DOUBLE)
        out->version = 5;
    return BRC_OK;
}

static void look_at_var(netcdf_out *out, const brc_netcdf_var *v)
{
    uint64_t bytes;
    int large = !brc_shape_bytes(v->ndim, v->shape, brc_netcdf_atomic_size(v->type.id), &bytes) ||
                bytes > MAX_VAR_BYTES_2;
    for (int k = 0; k < v->ndim; k++)
        large |= v->shape[k] > INT32_MAX;
    if (large || v->type.id > NC_DOUBLE)
        out->version = 5;
}

typedef int put_fn(void *ctx, const char *name, const brc_netcdf_values *values, brc_error *err);

/* Calls put() with the attributes of the root group. */
static int group_atts(const netcdf_out *out, void *ctx, put_fn *put, brc_error *err)
{
    const brc_node_out *root = out->plan.groups[0].node;
    brc_netcdf_atts_out atts = { .of = { .is_classic = 1 }, .ctx = ctx, .put = put };
    if (!root)
        return BRC_OK;
    atts.label = root->path;
    return brc_netcdf_each_att(&atts, root->doc, err);
}

static int var_atts(const brc_netcdf_var *v, void *ctx, put_fn *put, brc_error *err)
{
    brc_netcdf_atts_out atts = { .of = { .is_classic = 1 }, .ctx = ctx, .put = put };
    return brc_netcdf_var_atts(&atts, v, err);
}

static int make_plan(netcdf_out *out, brc_error *err)
{
    BRC_TRY(brc_netcdf_plan_nodes(&out->plan, out->convert, 1, err));
    for (size_t i = 0; i < out->plan.nvars; i++) {
        const brc_netcdf_var *v = &out->plan.vars[i];
        look_at_var(out, v);
        BRC_TRY(var_atts(v, out, look_at_att, err));
    }
    BRC_TRY(group_atts(out, out, look_at_att, err));
    return brc_netcdf_plan_dims(&out->plan, err);
}

/* ---- the file -------------------------------- */

typedef struct att_place {
    const netcdf_out *out;
    int var;
} att_place;

static int put_att(void *ctx, const char *name, const brc_netcdf_values *values, brc_error *err)
{
    const att_place *p = ctx;
    int status = nc_put_att(p->out->file, p->var, name, values->type, values->n, values->data);
    return status
               ? brc_netcdf_fail(status, BRC_EUNSUPPORTED,
                                 "remove or rename it: NetCDF cannot have the attribute", name, err)
               : BRC_OK;
}

static int define_dims(const netcdf_out *out, brc_error *err)
{
    for (size_t i = 0; i < out->plan.ndims; i++) {
        const brc_netcdf_dim *d = &out->plan.dims[i];
        int id, status = nc_def_dim(out->file, d->name,
                                    d->unlimited ? NC_UNLIMITED : (size_t)d->length, &id);
        if (status)
            return brc_netcdf_fail(status, BRC_EUNSUPPORTED, "NetCDF cannot have the dimension",
                                   d->name, err);
    }
    return BRC_OK;
}

static int define_var(const netcdf_out *out, const brc_netcdf_var *v, brc_error *err)
{
    att_place place = { out, -1 };
    int status = nc_def_var(out->file, v->name, v->type.id, v->ndim, v->dims, &place.var);
    if (status)
        return brc_netcdf_fail(status, BRC_EUNSUPPORTED,
                               "move or rename it: NetCDF cannot have the variable", v->node->path,
                               err);
    return var_atts(v, &place, put_att, err);
}

static int define_all(const netcdf_out *out, brc_error *err)
{
    att_place place = { out, NC_GLOBAL };
    int before;
    BRC_TRY(define_dims(out, err));
    BRC_TRY(group_atts(out, &place, put_att, err));
    for (size_t i = 0; i < out->plan.nvars; i++)
        BRC_TRY(define_var(out, &out->plan.vars[i], err));
    (void)nc_set_fill(out->file, NC_NOFILL, &before); /* all elements are written */
    int status = nc_enddef(out->file);
    return status ? brc_netcdf_fail(status, BRC_EUNSUPPORTED, "cannot write", "NetCDF", err)
                  : BRC_OK;
}

static int make_file(netcdf_out *out, brc_error *err)
{
    char *local;
    BRC_TRY(brc_netcdf_path(&local, out->path, err));
    int status = nc_create(
        local, (out->version == 5 ? NC_64BIT_DATA : NC_64BIT_OFFSET) | NC_NOCLOBBER, &out->file);
    free(local);
    if (status) {
        out->file = -1;
        return brc_netcdf_fail(status, BRC_EIO, "cannot make", brc_convert_file(out->convert), err);
    }
    return define_all(out, err);
}

static void close_out(void *state)
{
    netcdf_out *out = state;
    if (out->file >= 0)
        (void)nc_abort(out->file); /* drops unfinished definitions */
    brc_netcdf_plan_free(&out->plan);
    free(out);
}

static int netcdf_create(void **state, brc_convert *c, const char *file, int netcdf, brc_error *err)
{
    netcdf_out *out;
    (void)netcdf;
    BRC_TRY(brc_new(state, sizeof(*out), err));
    out = *state;
    *out =
        (netcdf_out){ .run = { close_out }, .convert = c, .path = file, .version = 2, .file = -1 };
    BRC_TRY(make_plan(out, err));
    return make_file(out, err);
}

/* ---- elements -------------------------------- */

static int netcdf_begin(void *state, const brc_node_out *array, int *all, brc_error *err)
{
    netcdf_out *out = state;
    *all = 1;
    out->var = brc_netcdf_plan_var(&out->plan, array);
    return out->var ? BRC_OK : brc_fail(err, BRC_EINTERNAL, "%s was not planned", array->path);
}

static int put_vara(const netcdf_out *out, const brc_sel *box, const void *data, brc_error *err)
{
    size_t start[BRC_MAX_NDIM + 1] = { 0 }, count[BRC_MAX_NDIM + 1] = { 0 };
    for (int k = 0; k < box->ndim; k++) {
        start[k] = (size_t)box->start[k];
        count[k] = (size_t)box->count[k];
    }
    count[box->ndim] = out->var->type.chars;
    int var = (int)(out->var - out->plan.vars);
    int status = nc_put_vara(out->file, var, start, count, data);
    return status ? brc_netcdf_fail(status, BRC_EIO, "cannot write", out->var->node->path, err)
                  : BRC_OK;
}

static int netcdf_put(void *state, const brc_sel *box, const void *data, size_t len, brc_error *err)
{
    const netcdf_out *out = state;
    const brc_netcdf_type *type = &out->var->type;
    size_t n = len / type->from->item_size;
    void *wide;

    if (type->how != BRC_NETCDF_WIDER)
        return put_vara(out, box, data, err);
    BRC_TRY(brc_new_array(&wide, n, brc_netcdf_atomic_size(type->id), err));
    brc_netcdf_widen(type, wide, data, n);
    int rc = put_vara(out, box, wide, err);
    free(wide);
    return rc;
}

static int netcdf_end(void *state, brc_error *err)
{
    netcdf_out *out = state;
    (void)err;
    out->var = NULL;
    return BRC_OK;
}

static int netcdf_finish(void *state, brc_error *err)
{
    netcdf_out *out = state;
    int status = nc_close(out->file);
    out->file = -1;
    return status ? brc_netcdf_fail(status, BRC_EIO, "cannot write", brc_convert_file(out->convert),
                                    err)
                  : BRC_OK;
}

/* ==== the driver ================================ */

static void close_netcdf(void *state)
{
    brc_netcdf_run *run = state;
    if (run)
        run->close(run);
}

const brc_driver brc_netcdf_driver = {
    .names = BRC_NAMES_NETCDF,
    .format = "NetCDF",
    .open = brc_netcdf_open,
    .walk = brc_netcdf_walk,
    .create = netcdf_create,
    .begin = netcdf_begin,
    .put = netcdf_put,
    .end = netcdf_end,
    .finish = netcdf_finish,
    .close = close_netcdf,
};
