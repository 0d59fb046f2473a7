/*
 * Writing NetCDF: NetCDF-4, or a classic file of the least version that can say what is
 * written: 2, or 5 where there are unsigned or 64-bit integers or very large arrays.
 *
 * Everything is looked at before anything is written: what cannot be said is refused then.
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "netcdf_ragged.h"

/* ---- the nodes ---------------------------------------------- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int add_group(brc_netcdf_out *out, const brc_node_out *node, int parent, brc_error *err)
{
    BRC_TRY(brc_grow_array(&out->groups, &out->groups_cap, out->ngroups + 1,
                           sizeof(brc_netcdf_group), err));
    brc_netcdf_group *g = brc_netcdf_group_at(out, (int)out->ngroups);
    *g = (brc_netcdf_group){ .node = node, .parent = parent };
    if (node)
        g->name = last_part(node->inner);
    out->ngroups++;
    return BRC_OK;
}

static int add_var(brc_netcdf_out *out, const brc_node_out *node, int group, brc_error *err)
{
    BRC_TRY(
        brc_grow_array(&out->vars, &out->vars_cap, out->nvars + 1, sizeof(brc_netcdf_var), err));
    brc_netcdf_var *v = brc_netcdf_var_at(out, out->nvars);
    *v = (brc_netcdf_var){ .node = node, .group = group };
    v->name = last_part(node->inner);
    out->nvars++;
    return BRC_OK;
}

/* The group that the path is right in, going up from the one of the node before: nodes
 * come with all that is under them before their next sibling. */
static int group_holding(const brc_netcdf_out *out, int from, const char *inner)
{
    for (; from > 0; from = brc_netcdf_group_at(out, from)->parent) {
        const char *above = brc_netcdf_group_at(out, from)->node->inner;
        size_t len = strlen(above);
        if (strncmp(inner, above, len) == 0 && inner[len] == '/')
            return from;
    }
    return 0;
}

/* The group that it is in is the last one or above that. */
static int plan_node(brc_netcdf_out *out, const brc_node_out *node, brc_error *err)
{
    int is_ragged = brc_netcdf_has_ragged(node);
    if (brc_netcdf_ragged_of(out, node))
        return BRC_OK; /* in the group of one */
    if (is_ragged)
        BRC_TRY(brc_netcdf_add_ragged(out, node, err));
    if (node->number == 0 && is_ragged) {
        BRC_TRY(add_group(out, NULL, -1, err));
        BRC_TRY(add_var(out, node, 0, err));
        brc_netcdf_var_at(out, 0)->name = brc_netcdf_ragged_name(brc_netcdf_ragged_of(out, node));
        return BRC_OK;
    }
    if (node->number == 0) { /* the root group, or the one array of a file */
        BRC_TRY(add_group(out, node->meta ? NULL : node, -1, err));
        return node->meta ? add_var(out, node, 0, err) : BRC_OK;
    }
    int group = group_holding(out, (int)out->ngroups - 1, node->inner);
    if (node->meta || is_ragged)
        return add_var(out, node, group, err);
    if (out->classic)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s is a group, and classic NetCDF has no groups: write NetCDF-4 "
                        "(--format netcdf), or export the group by itself",
                        node->path);
    return add_group(out, node, group, err);
}

/* Whether the root group has a node or a dimension of this name. */
static int name_is_taken(const void *ctx, const char *name)
{
    const brc_netcdf_out *out = ctx;
    for (size_t i = 1; i < out->ngroups; i++) {
        const brc_netcdf_group *g = brc_netcdf_group_at(out, (int)i);
        if (g->parent == 0 && strcmp(g->name, name) == 0)
            return 1;
    }
    for (size_t i = 0; i < out->nvars; i++) {
        const brc_netcdf_var *v = brc_netcdf_var_at(out, i);
        if (v->group == 0 && strcmp(v->name, name) == 0)
            return 1;
    }
    for (size_t i = 0; i < out->ndims; i++) {
        const brc_netcdf_dim *d = brc_netcdf_dim_at(out, (int)i);
        if (d->group == 0 && d->name && strcmp(d->name, name) == 0)
            return 1;
    }
    return 0;
}

/* ---- the plan ------------------------------------------------- */

static int put_group_atts(brc_netcdf_out *out, const brc_netcdf_group *g, int id, brc_error *err)
{
    const char *label = g->node ? g->node->path : "/";
    brc_netcdf_att_place place = { out, id, NC_GLOBAL, NC_NAT, label };
    brc_netcdf_atts_out atts = { .label = label,
                                 .of = { .is_classic = out->classic },
                                 .ctx = &place,
                                 .put = brc_netcdf_put_att };
    return g->node ? brc_netcdf_each_att(&atts, g->node->doc, err) : BRC_OK;
}

static int make_plan(brc_netcdf_out *out, brc_error *err)
{
    brc_netcdf_axes *axes = NULL;
    int rc = BRC_OK;

    for (size_t i = 0; i < brc_convert_nodes(out->convert); i++)
        BRC_GO(plan_node(out, brc_convert_node(out->convert, i), err));
    BRC_GO(brc_new_array((void **)&axes, out->nvars + 1, sizeof(*axes), err));
    for (size_t i = 0; i < out->nvars; i++) {
        brc_netcdf_var *v = brc_netcdf_var_at(out, i);
        BRC_GO(v->node->meta ? brc_netcdf_plan_var(out, v, &axes[i], err)
                             : brc_netcdf_plan_ragged(out, v, &axes[i], err));
    }
    for (size_t i = 0; i < out->ngroups; i++)
        BRC_GO(put_group_atts(out, brc_netcdf_group_at(out, (int)i), -1, err));
    BRC_GO(brc_netcdf_plan_dims(out, axes, err));
done:
    for (size_t i = 0; axes && i < out->nvars; i++)
        for (int k = 0; k <= BRC_MAX_NDIM; k++)
            free(axes[i].names[k]);
    free(axes);
    return rc;
}

static void free_plan(brc_netcdf_out *out)
{
    for (size_t i = 0; i < out->ndims; i++)
        free(brc_netcdf_dim_at(out, (int)i)->name);
    free(out->groups);
    free(out->vars);
    free(out->dims);
    brc_netcdf_types_free(&out->types);
    brc_netcdf_free_ragged(out);
}

/* ---- the file ------------------------------------------------- */

static int define_groups(brc_netcdf_out *out, brc_error *err)
{
    for (size_t i = 0; i < out->ngroups; i++) {
        brc_netcdf_group *g = brc_netcdf_group_at(out, (int)i);
        g->id = out->file;
        if (g->parent < 0)
            continue;
        int status = nc_def_grp(brc_netcdf_group_at(out, g->parent)->id, g->name, &g->id);
        if (status)
            return brc_netcdf_fail(status, BRC_EUNSUPPORTED,
                                   "move or rename it: NetCDF cannot have the group",
                                   g->node->path, err);
    }
    return BRC_OK;
}

static int define_dims(brc_netcdf_out *out, brc_error *err)
{
    for (size_t i = 0; i < out->ndims; i++) {
        brc_netcdf_dim *d = brc_netcdf_dim_at(out, (int)i);
        int status = nc_def_dim(brc_netcdf_group_at(out, d->group)->id, d->name,
                                         d->unlimited ? NC_UNLIMITED : (size_t)d->length, &d->id);
        if (status)
            return brc_netcdf_fail(status, BRC_EUNSUPPORTED,
                                   "NetCDF cannot have the dimension", d->name, err);
    }
    return BRC_OK;
}

static int define_any(brc_netcdf_out *out, brc_netcdf_var *var, brc_error *err)
{
    return var->node->meta ? brc_netcdf_define_var(out, var, err)
                           : brc_netcdf_define_ragged(out, var, err);
}

static int define_all(brc_netcdf_out *out, brc_error *err)
{
    int before;
    out->types.root = out->file;
    BRC_TRY(define_groups(out, err));
    BRC_TRY(define_dims(out, err));
    for (size_t i = 0; i < out->ngroups; i++) {
        const brc_netcdf_group *g = brc_netcdf_group_at(out, (int)i);
        BRC_TRY(put_group_atts(out, g, g->id, err));
    }
    for (size_t i = 0; i < out->nvars; i++)
        BRC_TRY(define_any(out, brc_netcdf_var_at(out, i), err));
    if (out->classic) /* every element is written: none is filled in before */
        (void)nc_set_fill(out->file, NC_NOFILL, &before);
    int status = nc_enddef(out->file);
    return status
               ? brc_netcdf_fail(status, BRC_EUNSUPPORTED, "cannot write", "NetCDF", err)
               : BRC_OK;
}

static int make_file(brc_netcdf_out *out, brc_error *err)
{
    int mode = out->version == 4 ? NC_NETCDF4 : out->version == 5 ? NC_64BIT_DATA : NC_64BIT_OFFSET;
    char *local;

    BRC_TRY(brc_netcdf_path(&local, out->path, err));
    int status = nc_create(local, mode | NC_NOCLOBBER, &out->file);
    free(local);
    if (status) {
        out->file = -1;
        return brc_netcdf_fail(status, BRC_EIO, "cannot make", brc_convert_file(out->convert), err);
    }
    return define_all(out, err);
}

static void close_out(void *state)
{
    brc_netcdf_out *out = state;
    if (out->file >= 0)
        (void)nc_abort(out->file); /* removes what it was defining */
    free_plan(out);
    free(out);
}

int brc_netcdf_create(void **state, brc_convert *c, const char *file, int classic, brc_error *err)
{
    brc_netcdf_out *out;

    BRC_TRY(brc_new(state, sizeof(*out), err));
    out = *state;
    out->run.close = close_out;
    out->convert = c;
    out->path = file;
    out->classic = classic;
    out->version = classic ? 2 : 4;
    out->file = -1;
    out->types = (brc_netcdf_types){ .registry = brc_convert_registry(c),
                                     .root = -1,
                                     .ctx = out,
                                     .taken = name_is_taken };
    BRC_TRY(make_plan(out, err));
    return make_file(out, err);
}

int brc_netcdf_finish(void *state, brc_error *err)
{
    brc_netcdf_out *out = state;
    int status = nc_close(out->file);
    out->file = -1;
    return status ? brc_netcdf_fail(status, BRC_EIO, "cannot write",
                                    brc_convert_file(out->convert), err) : BRC_OK;
}
