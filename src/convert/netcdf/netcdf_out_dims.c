/*
 * The dimensions of a NetCDF file that is written. In Zarr each array names its own axes;
 * in NetCDF a group has dimensions, which the variables in it and below share.
 *
 * Axes of one name and one length share a dimension. It is in the nearest group that
 * holds all of its variables, or, where others there or below have another length under that name,
 * each group has its own; except where
 *
 *   - the import noted a group that has it: there, unlimited if it was so
 *   - a group has an array of the dimension's own name along it, a coordinate: there
 *
 * Where two dimensions of one name would be in one group, or one would hide the other
 * from a variable, the later gets another name, with a number behind it. Axes without a
 * name get "phony_dim_0" and so on, which an import takes for no name.
 *
 * A dimension of length 0 is an unlimited one: NetCDF has no other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/json.h"
#include "netcdf_out.h"

/* 1: `above` is the group or one that holds it. */
static int is_group_within(const brc_netcdf_out *out, int group, int above)
{
    while (group >= 0 && group != above)
        group = brc_netcdf_group_at(out, group)->parent;
    return group == above;
}

static int common_group(const brc_netcdf_out *out, int a, int b)
{
    while (!is_group_within(out, b, a))
        a = brc_netcdf_group_at(out, a)->parent;
    return a;
}

/* *dim: its index. */
static int add_dim(int *dim, brc_netcdf_out *out, const char *name, uint64_t length, int group,
                   brc_error *err)
{
    BRC_TRY(
        brc_grow_array(&out->dims, &out->dims_cap, out->ndims + 1, sizeof(brc_netcdf_dim), err));
    brc_netcdf_dim *d = brc_netcdf_dim_at(out, (int)out->ndims);
    *d = (brc_netcdf_dim){ .length = length, .group = group, .hidden_by = -1 };
    if (name)
        BRC_TRY(brc_dup(&d->name, name, err));
    *dim = (int)out->ndims++;
    return BRC_OK;
}

static int is_called(const brc_netcdf_dim *dim, const char *name)
{
    return dim->name && strcmp(dim->name, name) == 0;
}

/* ---- places that are given ------------------------------ */

static int add_noted(brc_netcdf_out *out, int group, brc_error *err)
{
    const brc_json *dims = brc_netcdf_note_part(
        brc_netcdf_group_doc(brc_netcdf_group_at(out, group)), "dimensions");
    uint64_t length;
    int dim;

    for (const brc_json *v = brc_json_first(dims); v; v = brc_json_next(v)) {
        if (!brc_json_uint(brc_json_member(v, "length"), INT64_MAX, &length))
            continue;
        BRC_TRY(add_dim(&dim, out, brc_json_own_name(v), length, group, err));
        brc_netcdf_dim *d = brc_netcdf_dim_at(out, dim);
        d->fixed_place = 1;
        brc_json_bool(brc_json_member(v, "unlimited"), &d->unlimited);
    }
    return BRC_OK;
}

/* The nearest dimension of this name and length that a variable in the group sees, of
 * those whose places are given; -1: none. */
static int visible_dim(const brc_netcdf_out *out, int group, const char *name, uint64_t length)
{
    for (; group >= 0; group = brc_netcdf_group_at(out, group)->parent)
        for (size_t i = 0; i < out->ndims; i++) {
            const brc_netcdf_dim *d = brc_netcdf_dim_at(out, (int)i);
            if (d->fixed_place && d->group == group && d->length == length && is_called(d, name))
                return (int)i;
        }
    return -1;
}

/* The nearest of this name, whatever its length. */
static int nearest_dim(const brc_netcdf_out *out, int group, const char *name)
{
    for (; group >= 0; group = brc_netcdf_group_at(out, group)->parent)
        for (size_t i = 0; i < out->ndims; i++) {
            const brc_netcdf_dim *d = brc_netcdf_dim_at(out, (int)i);
            if (d->fixed_place && d->group == group && is_called(d, name))
                return (int)i;
        }
    return -1;
}

/* A noted dimension has the length that it had when it came in. Where no variable that
 * sees it has that any more, it has grown: it gets the length of the first whose axis has
 * no other dimension. */
static void regrow_dim(brc_netcdf_out *out, const brc_netcdf_axes *axes, int dim)
{
    brc_netcdf_dim *d = brc_netcdf_dim_at(out, dim);
    const uint64_t *grown = NULL;

    for (size_t i = 0; i < out->nvars; i++) {
        const brc_netcdf_var *v = brc_netcdf_var_at(out, i);
        for (int k = 0; k < v->ndim; k++) {
            const char *name = axes[i].names[k];
            if (!name || !is_called(d, name) || !is_group_within(out, v->group, d->group))
                continue;
            int exact = visible_dim(out, v->group, name, v->shape[k]);
            if (exact == dim)
                return;
            if (!grown && exact < 0 && nearest_dim(out, v->group, name) == dim)
                grown = &v->shape[k];
        }
    }
    if (grown)
        d->length = *grown;
}

/* Whether a variable right in a group above has such an axis: then they share it. */
static int used_above(const brc_netcdf_out *out, const brc_netcdf_axes *axes, int group,
                      const char *name, uint64_t length)
{
    for (size_t i = 0; i < out->nvars; i++) {
        const brc_netcdf_var *v = brc_netcdf_var_at(out, i);
        if (v->group == group || !is_group_within(out, group, v->group))
            continue;
        for (int k = 0; k < v->ndim; k++)
            if (axes[i].names[k] && strcmp(axes[i].names[k], name) == 0 && v->shape[k] == length)
                return 1;
    }
    return 0;
}

/* A coordinate has its dimension beside it. */
static int add_coordinate(brc_netcdf_out *out, const brc_netcdf_axes *axes, size_t i,
                          brc_error *err)
{
    const brc_netcdf_var *v = brc_netcdf_var_at(out, i);
    int dim;

    if (v->ndim != 1 || !axes[i].names[0] || strcmp(axes[i].names[0], v->name) != 0 ||
        visible_dim(out, v->group, v->name, v->shape[0]) >= 0 ||
        used_above(out, axes, v->group, v->name, v->shape[0]))
        return BRC_OK;
    BRC_TRY(add_dim(&dim, out, v->name, v->shape[0], v->group, err));
    brc_netcdf_dim_at(out, dim)->fixed_place = 1;
    return BRC_OK;
}

/* ---- each axis --------------------------------------------- */

static int is_among_dims(const brc_netcdf_var *v, int ndim, int dim)
{
    for (int k = 0; k < ndim; k++)
        if (v->dims[k] == dim)
            return 1;
    return 0;
}

/* Whether a variable in the group or below has an axis of this name and another length: a dimension
 * of the group would be in that one's way. */
static int differs_within(const brc_netcdf_out *out, const brc_netcdf_axes *axes, int group,
                          const char *name, uint64_t length)
{
    for (size_t i = 0; i < out->nvars; i++) {
        const brc_netcdf_var *v = brc_netcdf_var_at(out, i);
        for (int k = 0; k < v->ndim; k++)
            if (axes[i].names[k] && v->shape[k] != length && strcmp(axes[i].names[k], name) == 0 &&
                is_group_within(out, v->group, group))
                return 1;
    }
    return 0;
}

/* One of those whose place is not given, of this name and length; each axis of an array
 * without a name has its own. */
static int shared_dim(const brc_netcdf_out *out, const brc_netcdf_axes *axes,
                      const brc_netcdf_var *v, int axis, const char *name, int hidden_by)
{
    const uint64_t length = v->shape[axis];
    for (size_t i = 0; i < out->ndims; i++) {
        const brc_netcdf_dim *d = brc_netcdf_dim_at(out, (int)i);
        if (d->fixed_place || d->length != length || d->hidden_by != hidden_by)
            continue;
        if (name && is_called(d, name) && d->group != v->group &&
            differs_within(out, axes, common_group(out, d->group, v->group), name, length))
            continue;
        if (name ? is_called(d, name) : !d->name && !is_among_dims(v, axis, (int)i))
            return (int)i;
    }
    return -1;
}

static int bind_axis(brc_netcdf_out *out, const brc_netcdf_axes *axes, size_t i, int axis,
                     brc_error *err)
{
    brc_netcdf_var *v = brc_netcdf_var_at(out, i);
    const char *name = axes[i].names[axis];
    int dim = name ? visible_dim(out, v->group, name, v->shape[axis]) : -1;
    if (dim < 0) {
        int hidden_by = name ? nearest_dim(out, v->group, name) : -1;
        dim = shared_dim(out, axes, v, axis, name, hidden_by);
        if (dim < 0)
            BRC_TRY(add_dim(&dim, out, name, v->shape[axis], v->group, err));
        brc_netcdf_dim *d = brc_netcdf_dim_at(out, dim);
        d->group = common_group(out, d->group, v->group);
        d->hidden_by = hidden_by;
    }
    v->dims[axis] = dim;
    return BRC_OK;
}

/* ---- names that are taken ------------------------------------ */

static int has_user_within(const brc_netcdf_out *out, int dim, int group)
{
    for (size_t i = 0; i < out->nvars; i++) {
        const brc_netcdf_var *v = brc_netcdf_var_at(out, i);
        if (is_among_dims(v, v->ndim, dim) && is_group_within(out, v->group, group))
            return 1;
    }
    return 0;
}

/* Whether the name is another dimension's, in the same group or such that one of them
 * would hide the other from a variable that has it; or a group's in that group, since
 * both are objects of the same HDF5 group. Of the dimensions from `before` on those
 * alone count whose place is given: the others are still to get their names. */
static int clashes(const brc_netcdf_out *out, int dim, const char *name, size_t before)
{
    const brc_netcdf_dim *d = brc_netcdf_dim_at(out, dim);
    for (size_t i = 0; i < out->ndims; i++) {
        const brc_netcdf_dim *e = brc_netcdf_dim_at(out, (int)i);
        if ((int)i == dim || !is_called(e, name) || (i >= before && !e->fixed_place))
            continue;
        if (e->group == d->group ||
            (is_group_within(out, d->group, e->group) &&
             has_user_within(out, (int)i, d->group)) ||
            (is_group_within(out, e->group, d->group) &&
             has_user_within(out, dim, e->group)))
            return 1;
    }
    for (size_t i = 1; i < out->ngroups; i++) {
        const brc_netcdf_group *g = brc_netcdf_group_at(out, (int)i);
        if (g->parent == d->group && strcmp(g->name, name) == 0)
            return 1;
    }
    return 0;
}

static int choose_name(brc_netcdf_out *out, int dim, unsigned *nameless, brc_error *err)
{
    brc_netcdf_dim *d = brc_netcdf_dim_at(out, dim);
    char name[NC_MAX_NAME + 1];
    char *base = d->name;
    unsigned n = 1;

    if (base && !clashes(out, dim, base, (size_t)dim))
        return BRC_OK;
    d->name = NULL;
    do {
        if (base)
            snprintf(name, sizeof(name), "%.200s_%u", base, ++n);
        else
            snprintf(name, sizeof(name), "%s%u", BRC_NETCDF_NAMELESS, (*nameless)++);
    } while (clashes(out, dim, name, out->ndims));
    free(base);
    return brc_dup(&d->name, name, err);
}

/* ---- unlimited ones ------------------------------------------- */

/* A classic file has one, which is the first of each variable that has it. */
static int is_leading(const brc_netcdf_out *out, int dim)
{
    for (size_t i = 0; i < out->nvars; i++) {
        const brc_netcdf_var *v = brc_netcdf_var_at(out, i);
        for (int k = 1; k < v->ndim; k++)
            if (v->dims[k] == dim)
                return 0;
    }
    return 1;
}

static int limit_classic(brc_netcdf_out *out, brc_error *err)
{
    int found = -1;
    /* those of length 0 first: they can be nothing else */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < (int)out->ndims; i++) {
            brc_netcdf_dim *d = brc_netcdf_dim_at(out, i);
            if (!d->unlimited || (d->length == 0) != (pass == 0) || i == found)
                continue;
            int can = found < 0 && is_leading(out, i);
            if (can)
                found = i;
            else if (d->length == 0)
                return brc_fail(err, BRC_EUNSUPPORTED,
                                "the dimension %s has length 0, which classic NetCDF allows only "
                                "for one dimension, the first of its variables: write NetCDF-4 "
                                "(--format netcdf)",
                                d->name);
            else
                d->unlimited = 0;
        }
    return BRC_OK;
}

int brc_netcdf_plan_dims(brc_netcdf_out *out, const brc_netcdf_axes *axes, brc_error *err)
{
    unsigned nameless = 0;

    for (size_t i = 0; i < out->ngroups; i++)
        BRC_TRY(add_noted(out, (int)i, err));
    for (size_t i = 0; i < out->ndims; i++)
        regrow_dim(out, axes, (int)i);
    for (size_t i = 0; i < out->nvars; i++)
        BRC_TRY(add_coordinate(out, axes, i, err));
    for (size_t i = 0; i < out->nvars; i++)
        for (int k = 0; k < brc_netcdf_var_at(out, i)->ndim; k++)
            BRC_TRY(bind_axis(out, axes, i, k, err));
    for (size_t i = 0; i < out->ndims; i++) {
        brc_netcdf_dim *d = brc_netcdf_dim_at(out, (int)i);
        if (!d->fixed_place)
            BRC_TRY(choose_name(out, (int)i, &nameless, err));
        d->unlimited |= d->length == 0;
    }
    return out->classic ? limit_classic(out, err) : BRC_OK;
}
