/*
 * Plans the dimensions of a NetCDF file that is to be written. In Zarr each array names its own
 * axes. In NetCDF a group has dimensions, which the variables in the group and below share.
 *
 * Axes of one name and one length share a dimension. It belongs to the nearest group that holds all
 * of its variables. If others there or below have another length under that name, each group has a
 * dimension of its own. There are two exceptions:
 *
 *   - if the import noted a group that has the dimension, it belongs to this group, and is
 *     unlimited if it was unlimited
 *   - if a group has an array of the dimension's own name along the dimension, a coordinate,
 *     the dimension belongs to this group
 *
 * If a group would have two dimensions of one name, or if one would hide the other from a variable,
 * the later dimension gets another name, with a number at its end. Axes without a name get
 * "phony_dim_0" and so on, which an import does not take for names.
 *
 * A dimension of length 0 is unlimited, because NetCDF has no other dimension of this length.
 */
#include "netcdf_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/node_path.h"

/* ---- types -------------------------------- */

int brc_netcdf_no_type(const brc_dtype *from, brc_error *err)
{
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "NetCDF has no type for %s: write Zarr, or take the array out first",
                    from->name);
}

static int choose_netcdf_number(brc_netcdf_type *out, const brc_dtype *from, brc_error *err)
{
    int is_float = from->klass == BRC_CLASS_FLOAT;
    int is_small = is_float ? from->item_size < 4 : from->bits < 8 * from->item_size;
    if (is_float && strcmp(from->name, "float64") == 0)
        out->id = NC_DOUBLE;
    else if (is_float && (is_small || strcmp(from->name, "float32") == 0))
        out->id = NC_FLOAT;
    else if (!is_float)
        out->id = brc_netcdf_integer(from->item_size, from->klass == BRC_CLASS_UINT);
    if (is_small)
        out->how = BRC_NETCDF_WIDER;
    return out->id == NC_NAT || (is_small && !from->ops->number) ? brc_netcdf_no_type(from, err)
                                                                 : BRC_OK;
}

static int is_netcdf_complex(const brc_dtype *from)
{
    static const char *const names[] = { "complex64", "complex_float32", "complex128",
                                         "complex_float64" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(from->name, names[i]) == 0)
            return 1;
    return 0;
}

static int choose_netcdf_type(brc_netcdf_type *out, const brc_dtype *from, brc_error *err)
{
    switch (from->klass) {
    case BRC_CLASS_BOOL:
        out->id = NC_BYTE;
        return BRC_OK;
    case BRC_CLASS_TIME:
        out->id = NC_INT64;
        return BRC_OK;
    case BRC_CLASS_INT:
    case BRC_CLASS_UINT:
    case BRC_CLASS_FLOAT:
        return choose_netcdf_number(out, from, err);
    case BRC_CLASS_COMPLEX:
        return is_netcdf_complex(from) ? BRC_OK : brc_netcdf_no_type(from, err);
    case BRC_CLASS_STRING:
        out->how = from->item_size ? BRC_NETCDF_UTF32 : BRC_NETCDF_PLAIN;
        out->id = NC_STRING;
        return BRC_OK;
    case BRC_CLASS_BYTES:
        out->id = from->item_size > 0 ? NC_CHAR : NC_NAT;
        out->chars = from->item_size > 1 ? from->item_size : 0;
        return BRC_OK;
    case BRC_CLASS_RAW:
    case BRC_CLASS_STRUCT:
        return BRC_OK;
    default:
        return brc_netcdf_no_type(from, err);
    }
}

int brc_netcdf_type_of(brc_netcdf_type *out, const brc_dtype *from, int classic, brc_error *err)
{
    *out = (brc_netcdf_type){ .id = NC_NAT, .from = from };
    BRC_TRY(choose_netcdf_type(out, from, err));
    if (classic && (out->id == NC_NAT || out->id == NC_STRING))
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "classic NetCDF has no type for %s: write NetCDF-4 (--format netcdf)",
                        from->name);
    return BRC_OK;
}

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Returns an element as float32, which has every value of the smaller floats, and the bits of their
 * NaNs. */
static float widened(const brc_dtype *from, const uint8_t *element)
{
    uint32_t bits = element[0];
    if (from->item_size == 2)
        bits |= (uint32_t)element[1] << 8;
    if (strcmp(from->name, "bfloat16") == 0)
        return float_of_bits(bits << 16);
    if (strcmp(from->name, "float16") == 0 && (bits & 0x7C00) == 0x7C00)
        return float_of_bits((bits & 0x8000) << 16 | 0x7F800000 | (bits & 0x3FF) << 13);
    return (float)from->ops->number(from, element);
}

void brc_netcdf_widen(const brc_netcdf_type *type, uint8_t *file, const uint8_t *here, size_t n)
{
    const size_t here_size = type->from->item_size, file_size = brc_netcdf_atomic_size(type->id);
    for (; n > 0; n--, file += file_size, here += here_size) {
        uint8_t canonical[8];
        memcpy(canonical, here, here_size);
        brc_dtype_native(type->from, canonical, here_size);
        if (type->id == NC_FLOAT) {
            float value = widened(type->from, canonical);
            memcpy(file, &value, sizeof(value));
        } else {
            int value = (int)type->from->ops->number(type->from, canonical);
            *file = (uint8_t)value;
        }
    }
}

/* ==== dimensions ================================ */

/* Returns whether `above` is the group itself or holds the group. */
static int is_group_within(const brc_netcdf_plan *plan, int group, int above)
{
    while (group >= 0 && group != above)
        group = plan->groups[group].parent;
    return group == above;
}

static int common_group(const brc_netcdf_plan *plan, int a, int b)
{
    while (!is_group_within(plan, b, a))
        a = plan->groups[a].parent;
    return a;
}

/* Adds a dimension. Sets *dim to its index. */
static int add_dim(int *dim, brc_netcdf_plan *plan, const char *name, uint64_t length, int group,
                   brc_error *err)
{
    BRC_TRY(brc_grow_array((void **)&plan->dims, &plan->dims_cap, plan->ndims + 1,
                           sizeof(brc_netcdf_dim), err));
    brc_netcdf_dim *d = &plan->dims[plan->ndims];
    *d = (brc_netcdf_dim){ .length = length, .group = group, .hidden_by = -1 };
    if (name)
        BRC_TRY(brc_dup(&d->name, name, err));
    *dim = (int)plan->ndims++;
    return BRC_OK;
}

static int is_called(const brc_netcdf_dim *dim, const char *name)
{
    return dim->name && strcmp(dim->name, name) == 0;
}

/* ---- places that are given ------------------------------ */

static int add_noted(brc_netcdf_plan *plan, int group, brc_error *err)
{
    const brc_node_out *node = plan->groups[group].node;
    const brc_json *dims = node ? brc_netcdf_note_part(node->doc, "dimensions") : NULL;
    uint64_t length;
    int dim;

    for (const brc_json *v = brc_json_first(dims); v; v = brc_json_next(v)) {
        if (!brc_json_uint(brc_json_member(v, "length"), INT64_MAX, &length))
            continue;
        BRC_TRY(add_dim(&dim, plan, brc_json_name(v), length, group, err));
        brc_netcdf_dim *d = &plan->dims[dim];
        d->fixed_place = 1;
        brc_json_bool(brc_json_member(v, "unlimited"), &d->unlimited);
    }
    return BRC_OK;
}

/* Returns the nearest dimension of this name and length that a variable in the group sees, among
 * the dimensions that have a group; -1 if there is none. */
static int visible_dim(const brc_netcdf_plan *plan, int group, const char *name, uint64_t length)
{
    for (; group >= 0; group = plan->groups[group].parent)
        for (size_t i = 0; i < plan->ndims; i++) {
            const brc_netcdf_dim *d = &plan->dims[i];
            if (d->fixed_place && d->group == group && d->length == length && is_called(d, name))
                return (int)i;
        }
    return -1;
}

/* Returns the nearest dimension of this name, whatever its length; -1 if there is none. */
static int nearest_dim(const brc_netcdf_plan *plan, int group, const char *name)
{
    for (; group >= 0; group = plan->groups[group].parent)
        for (size_t i = 0; i < plan->ndims; i++) {
            const brc_netcdf_dim *d = &plan->dims[i];
            if (d->fixed_place && d->group == group && is_called(d, name))
                return (int)i;
        }
    return -1;
}

/* Changes the length of a noted dimension whose array has grown since the import. If no variable
 * that sees the dimension has its noted length any more, the dimension gets the length of the first
 * variable whose axis has no other dimension. */
static void regrow_dim(brc_netcdf_plan *plan, int dim)
{
    brc_netcdf_dim *d = &plan->dims[dim];
    const uint64_t *grown = NULL;

    for (size_t i = 0; i < plan->nvars; i++) {
        const brc_netcdf_var *v = &plan->vars[i];
        for (int k = 0; k < v->ndim; k++) {
            const char *name = v->names[k];
            if (!name || !is_called(d, name) || !is_group_within(plan, v->group, d->group))
                continue;
            int exact = visible_dim(plan, v->group, name, v->shape[k]);
            if (exact == dim)
                return;
            if (!grown && exact < 0 && nearest_dim(plan, v->group, name) == dim)
                grown = &v->shape[k];
        }
    }
    if (grown)
        d->length = *grown;
}

/* Returns whether a variable directly in a group above has such an axis: then the two share a
 * dimension. */
static int used_above(const brc_netcdf_plan *plan, int group, const char *name, uint64_t length)
{
    for (size_t i = 0; i < plan->nvars; i++) {
        const brc_netcdf_var *v = &plan->vars[i];
        if (v->group == group || !is_group_within(plan, group, v->group))
            continue;
        for (int k = 0; k < v->ndim; k++)
            if (v->names[k] && strcmp(v->names[k], name) == 0 && v->shape[k] == length)
                return 1;
    }
    return 0;
}

/* Adds the dimension of a coordinate to the coordinate's group. */
static int add_coordinate(brc_netcdf_plan *plan, size_t i, brc_error *err)
{
    const brc_netcdf_var *v = &plan->vars[i];
    int dim;

    if (v->ndim != 1 || !v->names[0] || strcmp(v->names[0], v->name) != 0 ||
        visible_dim(plan, v->group, v->name, v->shape[0]) >= 0 ||
        used_above(plan, v->group, v->name, v->shape[0]))
        return BRC_OK;
    BRC_TRY(add_dim(&dim, plan, v->name, v->shape[0], v->group, err));
    plan->dims[dim].fixed_place = 1;
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

/* Returns whether a variable in the group or below has an axis of this name and another length. A
 * dimension of the group would hide the dimension of that axis. */
static int differs_within(const brc_netcdf_plan *plan, int group, const char *name, uint64_t length)
{
    for (size_t i = 0; i < plan->nvars; i++) {
        const brc_netcdf_var *v = &plan->vars[i];
        for (int k = 0; k < v->ndim; k++)
            if (v->names[k] && v->shape[k] != length && strcmp(v->names[k], name) == 0 &&
                is_group_within(plan, v->group, group))
                return 1;
    }
    return 0;
}

/* Returns a dimension of this name and length that has no group yet. Each axis of an array without
 * a name gets a dimension of its own. */
static int shared_dim(const brc_netcdf_plan *plan, const brc_netcdf_var *v, int axis,
                      const char *name, int hidden_by)
{
    const uint64_t length = v->shape[axis];
    for (size_t i = 0; i < plan->ndims; i++) {
        const brc_netcdf_dim *d = &plan->dims[i];
        if (d->fixed_place || d->length != length || d->hidden_by != hidden_by)
            continue;
        if (name && is_called(d, name) && d->group != v->group &&
            differs_within(plan, common_group(plan, d->group, v->group), name, length))
            continue;
        if (name ? is_called(d, name) : !d->name && !is_among_dims(v, axis, (int)i))
            return (int)i;
    }
    return -1;
}

static int bind_axis(brc_netcdf_plan *plan, size_t i, int axis, brc_error *err)
{
    brc_netcdf_var *v = &plan->vars[i];
    const char *name = v->names[axis];
    int dim = name ? visible_dim(plan, v->group, name, v->shape[axis]) : -1;
    if (dim < 0) {
        int hidden_by = name ? nearest_dim(plan, v->group, name) : -1;
        dim = shared_dim(plan, v, axis, name, hidden_by);
        if (dim < 0)
            BRC_TRY(add_dim(&dim, plan, name, v->shape[axis], v->group, err));
        brc_netcdf_dim *d = &plan->dims[dim];
        d->group = common_group(plan, d->group, v->group);
        d->hidden_by = hidden_by;
    }
    v->dims[axis] = dim;
    return BRC_OK;
}

/* ---- names that are taken ------------------------------------ */

static int has_user_within(const brc_netcdf_plan *plan, int dim, int group)
{
    for (size_t i = 0; i < plan->nvars; i++) {
        const brc_netcdf_var *v = &plan->vars[i];
        if (is_among_dims(v, v->ndim, dim) && is_group_within(plan, v->group, group))
            return 1;
    }
    return 0;
}

/* Returns whether the name clashes with that of another dimension, in the same group or where one
 * would hide the other from a variable; or with a group in the dimension's group, since both are
 * objects of the same HDF5 group. Dimensions from `before` on that have no group yet do not count,
 * because their names are still to be chosen. */
static int clashes(const brc_netcdf_plan *plan, int dim, const char *name, size_t before)
{
    const brc_netcdf_dim *d = &plan->dims[dim];
    for (size_t i = 0; i < plan->ndims; i++) {
        const brc_netcdf_dim *e = &plan->dims[i];
        if ((int)i == dim || !is_called(e, name) || (i >= before && !e->fixed_place))
            continue;
        if (e->group == d->group ||
            (is_group_within(plan, d->group, e->group) &&
             has_user_within(plan, (int)i, d->group)) ||
            (is_group_within(plan, e->group, d->group) && has_user_within(plan, dim, e->group)))
            return 1;
    }
    for (size_t i = 1; i < plan->ngroups; i++) {
        const brc_netcdf_group *g = &plan->groups[i];
        if (g->parent == d->group && strcmp(g->name, name) == 0)
            return 1;
    }
    return 0;
}

static int choose_name(brc_netcdf_plan *plan, int dim, unsigned *nameless, brc_error *err)
{
    brc_netcdf_dim *d = &plan->dims[dim];
    char name[NC_MAX_NAME + 1];
    char *base = d->name;
    unsigned n = 1;

    if (base && !clashes(plan, dim, base, (size_t)dim))
        return BRC_OK;
    d->name = NULL;
    do {
        if (base)
            snprintf(name, sizeof(name), "%.200s_%u", base, ++n);
        else
            snprintf(name, sizeof(name), "%s%u", BRC_NETCDF_NAMELESS, (*nameless)++);
    } while (clashes(plan, dim, name, plan->ndims));
    free(base);
    return brc_dup(&d->name, name, err);
}

/* ---- unlimited ones ------------------------------------------- */

/* Returns whether the dimension is the first one of each variable that has it, as a classic file
 * requires of its unlimited dimension. */
static int is_leading(const brc_netcdf_plan *plan, int dim)
{
    for (size_t i = 0; i < plan->nvars; i++) {
        const brc_netcdf_var *v = &plan->vars[i];
        for (int k = 1; k < v->ndim; k++)
            if (v->dims[k] == dim)
                return 0;
    }
    return 1;
}

static int limit_classic(brc_netcdf_plan *plan, brc_error *err)
{
    int found = -1;
    /* dimensions of length 0 first, because they must be unlimited */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < (int)plan->ndims; i++) {
            brc_netcdf_dim *d = &plan->dims[i];
            if (!d->unlimited || (d->length == 0) != (pass == 0) || i == found)
                continue;
            int can = found < 0 && is_leading(plan, i);
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

int brc_netcdf_plan_dims(brc_netcdf_plan *plan, brc_error *err)
{
    unsigned nameless = 0;

    for (size_t i = 0; i < plan->ngroups; i++)
        BRC_TRY(add_noted(plan, (int)i, err));
    for (size_t i = 0; i < plan->ndims; i++)
        regrow_dim(plan, (int)i);
    for (size_t i = 0; i < plan->nvars; i++)
        BRC_TRY(add_coordinate(plan, i, err));
    for (size_t i = 0; i < plan->nvars; i++)
        for (int k = 0; k < plan->vars[i].ndim; k++)
            BRC_TRY(bind_axis(plan, i, k, err));
    for (size_t i = 0; i < plan->ndims; i++) {
        brc_netcdf_dim *d = &plan->dims[i];
        if (!d->fixed_place)
            BRC_TRY(choose_name(plan, (int)i, &nameless, err));
        d->unlimited |= d->length == 0;
    }
    return plan->classic ? limit_classic(plan, err) : BRC_OK;
}

/* ==== nodes ================================ */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int add_group(brc_netcdf_plan *plan, const brc_node_out *node, int parent, brc_error *err)
{
    BRC_TRY(brc_grow_array((void **)&plan->groups, &plan->groups_cap, plan->ngroups + 1,
                           sizeof(brc_netcdf_group), err));
    brc_netcdf_group *g = &plan->groups[plan->ngroups];
    *g = (brc_netcdf_group){ .node = node, .parent = parent };
    if (node)
        g->name = last_part(node->inner);
    plan->ngroups++;
    return BRC_OK;
}

static int add_var(brc_netcdf_plan *plan, const brc_node_out *node, int group, brc_error *err)
{
    BRC_TRY(brc_grow_array((void **)&plan->vars, &plan->vars_cap, plan->nvars + 1,
                           sizeof(brc_netcdf_var), err));
    brc_netcdf_var *v = &plan->vars[plan->nvars];
    *v = (brc_netcdf_var){ .node = node, .group = group };
    plan->nvars++;
    if (*node->inner)
        return brc_dup(&v->name, last_part(node->inner), err);
    /* a variable that is exported alone has the group's name */
    const char *name = last_part(node->path);
    return brc_path_unescape(&v->name, *name ? name : "data", BRC_NAMES_NETCDF, err);
}

/* Returns the group that holds the path, going up from the group of the node before. A node is
 * followed by all nodes below it. */
static int group_holding(const brc_netcdf_plan *plan, int from, const char *inner)
{
    for (; from > 0; from = plan->groups[from].parent) {
        const char *above = plan->groups[from].node->inner;
        size_t len = strlen(above);
        if (strncmp(inner, above, len) == 0 && inner[len] == '/')
            return from;
    }
    return 0;
}

const brc_json *brc_netcdf_noted_variable(const brc_node_out *node)
{
    const brc_json *attrs = brc_json_member(node->doc, "attributes");
    return node->meta
               ? NULL
               : brc_json_member(brc_json_member(attrs, BRC_NETCDF_GROUP_NOTE), BRC_NETCDF_RAGGED);
}

/* Returns whether the node lies in the group that was planned last, as a variable. */
static int is_in_variable(const brc_netcdf_plan *plan, const brc_node_out *node)
{
    const brc_netcdf_var *last = plan->nvars > 0 ? &plan->vars[plan->nvars - 1] : NULL;
    size_t len = last ? strlen(last->node->key) : 0;
    return last && !last->node->meta &&
           (len == 0 || (strncmp(node->key, last->node->key, len) == 0 && node->key[len] == '/'));
}

/* Plans a node, whose group is the last one or one above it. */
static int plan_node(brc_netcdf_plan *plan, const brc_node_out *node, brc_error *err)
{
    int is_group = !node->meta && !brc_netcdf_noted_variable(node);
    if (is_in_variable(plan, node))
        return BRC_OK;
    if (plan->classic && is_group && node->number > 0)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s is a group, and classic NetCDF has no groups: write NetCDF-4 "
                        "(--format netcdf), or export the group by itself",
                        node->path);
    if (plan->classic && !is_group && !node->meta)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s is a variable of lists or texts in compounds, which classic NetCDF "
                        "does not have: write NetCDF-4 (--format netcdf)",
                        node->path);
    if (node->number == 0) { /* the root group, or the only variable of the file */
        BRC_TRY(add_group(plan, is_group ? node : NULL, -1, err));
        return is_group ? BRC_OK : add_var(plan, node, 0, err);
    }
    int group = group_holding(plan, (int)plan->ngroups - 1, node->inner);
    return is_group ? add_group(plan, node, group, err) : add_var(plan, node, group, err);
}

static int take_axis_name(char **out, const brc_json *name, brc_error *err)
{
    const char *text;
    return brc_json_text(name, &text) && text[0] ? brc_dup(out, text, err) : BRC_OK;
}

/* Takes the names of axes from dimension_names, or from xarray's attribute of Zarr v2. */
static int take_axis_names(brc_netcdf_var *v, brc_error *err)
{
    const int ndim = v->node->meta->ndim;
    const brc_json *names = brc_json_member(v->node->doc, "dimension_names");
    char text[32];

    if (brc_json_kind(names) != BRC_JSON_ARRAY)
        names = brc_json_member(brc_json_member(v->node->doc, "attributes"), "_ARRAY_DIMENSIONS");
    if (brc_json_kind(names) == BRC_JSON_ARRAY && brc_json_count(names) == (size_t)ndim)
        for (int k = 0; k < ndim; k++)
            BRC_TRY(take_axis_name(&v->names[k], brc_json_item(names, (size_t)k), err));
    if (v->type.chars == 0)
        return BRC_OK;
    snprintf(text, sizeof(text), "string%zu", v->type.chars);
    return brc_dup(&v->names[ndim], text, err);
}

static int plan_array(const brc_netcdf_plan *plan, brc_netcdf_var *v, brc_error *err)
{
    const brc_meta *meta = v->node->meta;
    int rc = brc_netcdf_type_of(&v->type, meta->type, plan->classic, err);
    if (rc < 0) {
        brc_context(err, "%s", v->node->path);
        return rc;
    }
    v->ndim = meta->ndim + (v->type.chars > 0);
    memcpy(v->shape, meta->shape, (size_t)meta->ndim * sizeof(*meta->shape));
    if (v->type.chars)
        v->shape[meta->ndim] = v->type.chars;
    return take_axis_names(v, err);
}

int brc_netcdf_plan_nodes(brc_netcdf_plan *plan, const brc_convert *c, int classic, brc_error *err)
{
    plan->classic = classic;
    for (size_t i = 0; i < brc_convert_nodes(c); i++)
        BRC_TRY(plan_node(plan, brc_convert_node(c, i), err));
    for (size_t i = 0; i < plan->nvars; i++)
        if (plan->vars[i].node->meta)
            BRC_TRY(plan_array(plan, &plan->vars[i], err));
    return BRC_OK;
}

void brc_netcdf_plan_free(brc_netcdf_plan *plan)
{
    for (size_t i = 0; i < plan->ndims; i++)
        free(plan->dims[i].name);
    for (size_t i = 0; i < plan->nvars; i++) {
        free(plan->vars[i].name);
        for (int k = 0; k <= BRC_MAX_NDIM; k++)
            free(plan->vars[i].names[k]);
    }
    free(plan->groups);
    free(plan->vars);
    free(plan->dims);
    *plan = (brc_netcdf_plan){ 0 };
}

const brc_netcdf_var *brc_netcdf_plan_var(const brc_netcdf_plan *plan, const brc_node_out *node)
{
    size_t low = 0, high = plan->nvars;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (plan->vars[mid].node->number < node->number)
            low = mid + 1;
        else
            high = mid;
    }
    return low < plan->nvars && plan->vars[low].node == node ? &plan->vars[low] : NULL;
}

int brc_netcdf_plan_has_dim(const brc_netcdf_plan *plan, int group, const char *name, int *dim)
{
    for (size_t i = 0; i < plan->ndims; i++)
        if (plan->dims[i].group == group && is_called(&plan->dims[i], name)) {
            *dim = (int)i;
            return 1;
        }
    return 0;
}

int brc_netcdf_is_coordinate(const brc_netcdf_plan *plan, const brc_netcdf_var *var)
{
    const brc_netcdf_dim *d = var->ndim > 0 ? &plan->dims[var->dims[0]] : NULL;
    return d && d->group == var->group && is_called(d, var->name);
}

/* ==== attributes ================================ */

/* Writes an attribute that tells the original type. An attribute of that name with another value
 * would be lost or wrong, so it is refused. */
static int put_text(const brc_netcdf_var *v, const brc_netcdf_atts_out *atts, const char *name,
                    const char *text, brc_error *err)
{
    const brc_json *there = brc_json_member(brc_json_member(v->node->doc, "attributes"), name);
    brc_netcdf_values values = { NC_CHAR, strlen(text), (void *)(uintptr_t)text, NULL };

    if (there && !brc_json_is(there, text))
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s: as %s it is written with the attribute %s \"%s\", but has another "
                        "one of that name: remove that",
                        v->node->path, v->type.from->name, name, text);
    return there ? BRC_OK : atts->put(atts->ctx, name, &values, err);
}

static int put_time(const brc_netcdf_var *v, const brc_netcdf_atts_out *atts, brc_error *err)
{
    static const struct {
        const char *unit, *word, *resolution;
    } units[] = {
        { "D", "days", "s" },           { "h", "hours", "s" },
        { "m", "minutes", "s" },        { "s", "seconds", "s" },
        { "ms", "milliseconds", "ms" }, { "us", "microseconds", "us" },
        { "ns", "nanoseconds", "ns" },
    };
    const brc_dtype *type = v->type.from;
    const char *npy = type->npy ? strchr(type->npy, '[') : NULL; /* as in "<M8[ns]" */
    int is_date = strcmp(type->name, "numpy.datetime64") == 0;
    int64_t missing = INT64_MIN;
    brc_netcdf_values none = { NC_INT64, 1, &missing, NULL };
    char text[64];
    size_t i = 0, n = sizeof(units) / sizeof(units[0]);

    for (; i < n; i++)
        if (npy && strncmp(npy + 1, units[i].unit, strlen(units[i].unit)) == 0 &&
            npy[1 + strlen(units[i].unit)] == ']')
            break;
    if (i == n)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s: CF has no unit for %s: days, hours, minutes, seconds and their parts "
                        "down to nanoseconds can be written",
                        v->node->path, type->npy ? type->npy : type->name);
    snprintf(text, sizeof(text), "%s%s", units[i].word, is_date ? " since 1970-01-01" : "");
    BRC_TRY(put_text(v, atts, "units", text, err));
    if (!atts->has_fill)
        BRC_TRY(atts->put(atts->ctx, BRC_ATTR_FILL, &none, err));
    if (is_date)
        return put_text(v, atts, "calendar", "proleptic_gregorian", err);
    snprintf(text, sizeof(text), "timedelta64[%s]", units[i].resolution);
    return put_text(v, atts, "dtype", text, err);
}

/* Writes the array's fill value as _FillValue, if its type is one that every file has. */
static int put_own_fill(brc_netcdf_atts_out *atts, const brc_netcdf_var *v, brc_error *err)
{
    const uint8_t *fill = v->node->meta->fill.data;
    uint8_t element[8] = { 0 };
    brc_netcdf_values values = { v->type.id, 1, element, NULL };

    if (!fill || v->type.id == NC_NAT)
        return BRC_OK;
    atts->own_fill = 0;
    if (v->type.id == NC_STRING || v->type.how != BRC_NETCDF_PLAIN || v->type.chars)
        return BRC_OK;
    memcpy(element, fill, v->type.from->item_size);
    brc_dtype_native(v->type.from, element, v->type.from->item_size);
    return atts->put(atts->ctx, BRC_ATTR_FILL, &values, err);
}

int brc_netcdf_var_atts(brc_netcdf_atts_out *atts, const brc_netcdf_var *var, brc_error *err)
{
    const brc_dtype *from = var->type.from; /* NULL: the variable is a group */

    atts->label = var->node->path;
    atts->of.type = var->type.id;
    atts->of.is_var = 1;
    atts->of.is_complex = from && from->klass == BRC_CLASS_COMPLEX;
    BRC_TRY(brc_netcdf_each_att(atts, var->node->doc, err));
    if (!from)
        return BRC_OK;
    if (atts->own_fill)
        BRC_TRY(put_own_fill(atts, var, err));
    if (from->klass == BRC_CLASS_BOOL)
        return put_text(var, atts, "dtype", "bool", err);
    if (var->type.how == BRC_NETCDF_WIDER)
        return put_text(var, atts, "dtype", from->name, err);
    if (from->klass != BRC_CLASS_TIME)
        return BRC_OK;
    BRC_TRY(put_time(var, atts, err));
    atts->has_fill = 1;
    return BRC_OK;
}

int brc_netcdf_has_no_fill(const brc_netcdf_var *var, int has_fill)
{
    const brc_dtype *from = var->type.from;
    const uint8_t *fill = var->node->meta ? var->node->meta->fill.data : NULL;
    uint8_t standard[8], element[8];
    size_t n = brc_netcdf_default_fill(var->type.id, standard);

    if (has_fill || !from || from->item_size == 0 || var->type.id == NC_STRING)
        return 0;
    if (var->type.how != BRC_NETCDF_PLAIN || n == 0 || n != from->item_size || !fill)
        return 1;
    memcpy(element, fill, n);
    brc_dtype_native(from, element, n);
    return memcmp(element, standard, n) != 0;
}
