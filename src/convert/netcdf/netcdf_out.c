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
#include "netcdf_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/json.h"
#include "../../base/utf8.h"
#include "netcdf_ragged.h"

/* ==== netcdf out dims ================================ */

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

/* Adds the dimension of a coordinate to the coordinate's group. */
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

static int netcdf_plan_dims(brc_netcdf_out *out, const brc_netcdf_axes *axes, brc_error *err)
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

/* ==== netcdf out data ================================ */

/* The elements of a variable that is written. */

static int put_vara(const brc_netcdf_out *out, const brc_sel *box, const void *data, brc_error *err)
{
    size_t start[BRC_MAX_NDIM + 1] = { 0 }, count[BRC_MAX_NDIM + 1] = { 0 };
    int group = brc_netcdf_group_at(out, out->data.var->group)->id;

    for (int k = 0; k < box->ndim; k++) {
        start[k] = (size_t)box->start[k];
        count[k] = (size_t)box->count[k];
    }
    if (out->data.type.chars)
        count[box->ndim] = out->data.type.chars;
    int status = nc_put_vara(group, out->data.var->id, start, count, data);
    return status
               ? brc_netcdf_fail(status, BRC_EIO, "cannot write", out->data.var->node->path, err)
               : BRC_OK;
}

static int put_fixed(const brc_netcdf_out *out, const brc_sel *box, const void *data, size_t len,
                     brc_error *err)
{
    size_t n = len / out->data.type.here_size;
    void *other;

    if (out->data.type.how != BRC_NETCDF_WIDER && out->data.type.nmoves == 0)
        return put_vara(out, box, data, err);
    BRC_TRY(brc_new_array(&other, n, out->data.type.file_size, err));
    if (out->data.type.how == BRC_NETCDF_WIDER)
        brc_netcdf_widen(&out->data.type, other, data, n);
    else
        brc_netcdf_move_out(&out->data.type, other, data, n);
    int rc = put_vara(out, box, other, err);
    free(other);
    return rc;
}

/* ---- texts and lists ---------------------------------------- */

static int no_text(const brc_netcdf_out *out, const char *what, brc_error *err)
{
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "%s: it has text with %s, which NetCDF cannot store: "
                    "write Zarr, or take the array out first",
                    out->data.var->node->path, what);
}

/* Copies an element's text; *at is where the next one may go. */
static int copy_text(const brc_netcdf_out *out, char **at, const uint8_t *text, size_t len,
                     brc_error *err)
{
    if (len > 0 && memchr(text, 0, len))
        return no_text(out, "U+0000", err);
    if (len > 0)
        memcpy(*at, text, len);
    (*at)[len] = 0;
    *at += len + 1;
    return BRC_OK;
}

static int put_strings(const brc_netcdf_out *out, const brc_sel *box, const uint8_t *data,
                       size_t len, brc_error *err)
{
    brc_reader r = brc_reader_of(data, len);
    size_t n = (size_t)brc_shape_count(box->ndim, box->count);
    char **texts = NULL, *bytes = NULL, *at;
    int rc;

    BRC_GO(brc_new_array((void **)&texts, n + 1, sizeof(char *), err));
    BRC_GO(brc_new((void **)&bytes, len + 1, err)); /* each has four bytes of its length here */
    at = bytes;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *size = brc_read_bytes(&r, 4);
        uint32_t text_len = size ? brc_get_u32le(size) : 0;
        const uint8_t *text = brc_read_bytes(&r, text_len);
        texts[i] = at;
        BRC_GO(copy_text(out, &at, text, r.bad ? 0 : text_len, err));
    }
    rc = r.bad ? brc_fail(err, BRC_EINTERNAL, "%s: its elements are truncated",
                          out->data.var->node->path)
               : put_vara(out, box, texts, err);
done:
    free(texts);
    free(bytes);
    return rc;
}

static int put_lists(const brc_netcdf_out *out, const brc_sel *box, const uint8_t *data, size_t len,
                     brc_error *err)
{
    brc_reader r = brc_reader_of(data, len);
    size_t n = (size_t)brc_shape_count(box->ndim, box->count);
    nc_vlen_t *lists;

    BRC_TRY(brc_new_array((void **)&lists, n + 1, sizeof(*lists), err));
    for (size_t i = 0; i < n; i++) {
        const uint8_t *size = brc_read_bytes(&r, 4);
        lists[i].len = size ? brc_get_u32le(size) : 0;
        lists[i].p = (void *)(uintptr_t)brc_read_bytes(&r, lists[i].len);
    }
    const char *path = out->data.var->node->path;
    int rc = r.bad ? brc_fail(err, BRC_EINTERNAL, "%s: its elements are truncated", path)
                   : put_vara(out, box, lists, err);
    free(lists);
    return rc;
}

/* Whether the library's texts can hold the code point: zero ends them, and surrogates are not
 * characters. */
static int is_character(uint32_t c)
{
    return c != 0 && c <= 0x10FFFF && (c < 0xD800 || c >= 0xE000);
}

static int put_utf32(const brc_netcdf_out *out, const brc_sel *box, const uint8_t *data, size_t len,
                     brc_error *err)
{
    size_t n = len / out->data.type.here_size, units = out->data.type.here_size / 4;
    char **texts = NULL, *bytes = NULL, *at;
    uint32_t c;
    int rc;

    BRC_GO(brc_new_array((void **)&texts, n + 1, sizeof(char *), err));
    BRC_GO(brc_new_array((void **)&bytes, len + n, 1, err)); /* UTF-8 is no longer than UTF-32 */
    at = bytes;
    for (size_t i = 0; i < n; i++, data += out->data.type.here_size) {
        size_t used = units;
        texts[i] = at;
        for (; used > 0; used--) {
            memcpy(&c, data + 4 * (used - 1), sizeof(c));
            if (c != 0)
                break;
        }
        for (size_t k = 0; k < used; k++) {
            memcpy(&c, data + 4 * k, sizeof(c));
            if (!is_character(c)) {
                rc = no_text(out, c ? "something that is not a character" : "U+0000", err);
                goto done;
            }
            at += brc_utf8_encode((uint8_t *)at, c);
        }
        *at++ = 0;
    }
    rc = put_vara(out, box, texts, err);
done:
    free(texts);
    free(bytes);
    return rc;
}

int brc_netcdf_put(void *state, const brc_sel *box, const void *data, size_t len, brc_error *err)
{
    const brc_netcdf_out *out = state;
    if (out->filled)
        return brc_netcdf_put_ragged(out->filled, out->array, box, data, len, err);
    switch (out->data.type.how) {
    case BRC_NETCDF_STRINGS:
        return put_strings(out, box, data, len, err);
    case BRC_NETCDF_LISTS:
        return put_lists(out, box, data, len, err);
    case BRC_NETCDF_UTF32:
        return put_utf32(out, box, data, len, err);
    default:
        return put_fixed(out, box, data, len, err);
    }
}

/* Finds a node's variable: variables are in the order of their nodes. */
static const brc_netcdf_var *find_var(const brc_netcdf_out *out, const brc_node_out *node)
{
    size_t low = 0, high = out->nvars;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (brc_netcdf_var_at(out, mid)->node->number < node->number)
            low = mid + 1;
        else
            high = mid;
    }
    const brc_netcdf_var *found = low < out->nvars ? brc_netcdf_var_at(out, low) : NULL;
    return found && found->node == node ? found : NULL;
}

/* *may: chunks that have the array's fill value alone need not be written, since they read as
 * that. An unlimited dimension is as long as what is written. */
static int may_leave_gaps(int *may, const brc_netcdf_out *out, brc_error *err)
{
    const brc_netcdf_var *v = out->data.var;
    const brc_netcdf_type *type = &out->data.type;
    const brc_buf *fill = &v->node->meta->fill;
    int group = brc_netcdf_group_at(out, v->group)->id, storage = NC_CONTIGUOUS, no_fill = 1;
    uint8_t *memory;

    *may = !out->classic && type->how == BRC_NETCDF_PLAIN && !type->chars &&
           fill->len == type->here_size &&
           nc_inq_var_chunking(group, v->id, &storage, NULL) == NC_NOERR && storage == NC_CHUNKED;
    for (int k = 0; k < v->ndim; k++)
        *may &= !brc_netcdf_dim_at(out, v->dims[k])->unlimited;
    if (!*may)
        return BRC_OK;
    BRC_TRY(brc_new_array((void **)&memory, 3, type->file_size + type->here_size, err));
    uint8_t *theirs = memory, *ours = theirs + type->file_size;
    brc_netcdf_lay_out(type, ours, fill->data, ours + type->file_size);
    *may = nc_inq_var_fill(group, v->id, &no_fill, theirs) == NC_NOERR && !no_fill &&
           memcmp(theirs, ours, type->file_size) == 0;
    free(memory);
    return BRC_OK;
}

int brc_netcdf_begin(void *state, const brc_node_out *array, int *all, brc_error *err)
{
    brc_netcdf_out *out = state;
    int gaps;

    out->array = array;
    out->filled = brc_netcdf_ragged_of(out, array);
    *all = 1;
    if (out->filled)
        return BRC_OK;
    out->data.var = find_var(out, array);
    if (!out->data.var)
        return brc_fail(err, BRC_EINTERNAL, "%s was not planned", array->path);
    BRC_TRY(
        brc_netcdf_type_out(&out->data.type, &out->types, array->meta->type, out->classic, err));
    BRC_TRY(may_leave_gaps(&gaps, out, err));
    *all = !gaps;
    return BRC_OK;
}

int brc_netcdf_end(void *state, brc_error *err)
{
    brc_netcdf_out *out = state;
    if (out->filled)
        return brc_netcdf_end_ragged(out->filled, out->array, err);
    brc_netcdf_type_free(&out->data.type);
    out->data.var = NULL;
    return BRC_OK;
}

/* ==== netcdf out ================================ */

/*
 * Writing NetCDF: NetCDF-4, or a classic file of the least version that can say what is
 * written: 2, or 5 where there are unsigned or 64-bit integers or very large arrays.
 *
 * Everything is looked at before anything is written: what cannot be said is refused then.
 */

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
    BRC_GO(netcdf_plan_dims(out, axes, err));
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
