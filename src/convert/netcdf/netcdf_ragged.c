/* Groups that stand for a variable, see netcdf_ragged.h. */
#include "netcdf_ragged.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"

/* ==== netcdf ragged ================================ */

_Static_assert(sizeof(brc_ragged_list) == sizeof(nc_vlen_t),
               "lists lie in memory as NetCDF has them");

/* The leaf of a type; the data type's text is copied. type->how: how its items lie in memory. */
static int netcdf_ragged_leaf(brc_ragged *out, const brc_registry *reg, const char *dtype,
                              brc_netcdf_leaf **leaf, brc_error *err)
{
    brc_netcdf_leaf *own;
    BRC_TRY(brc_new((void **)&own, sizeof(*own), err));
    *leaf = own;
    out->kind = BRC_RAGGED_LEAF;
    out->own = own;
    BRC_TRY(brc_dup(&own->text, dtype, err));
    BRC_TRY(brc_convert_dtype_open(&own->dtype, reg, dtype, err));
    out->dtype = own->text;
    out->type = own->dtype;
    return BRC_OK;
}

/* Its leaves and names too. */
static void netcdf_ragged_free(brc_ragged *type)
{
    for (size_t i = 0; i < type->n && type->items; i++)
        netcdf_ragged_free(&type->items[i]);
    free(type->items);
    free((void *)(uintptr_t)type->name);
    brc_netcdf_leaf *leaf = (brc_netcdf_leaf *)(uintptr_t)type->own;
    if (leaf) {
        brc_netcdf_type_free(&leaf->type);
        brc_dtype_free(leaf->dtype);
        free(leaf->text);
        free(leaf);
    }
    memset(type, 0, sizeof(*type));
}

/* ==== netcdf ragged out ================================ */

/* Groups that stand for one variable, see netcdf_ragged.h. */

#define MOST_NESTED 12
#define MOST_ITEMS ((uint64_t)1 << 28)

typedef struct brc_netcdf_ragged {
    const brc_node_out *group;
    const brc_json *note;
    char *name; /* of a group by itself */
    brc_ragged type;
    brc_ragged_out *arrays;
    int ndim, chunked, file_group, id;
    uint64_t shape[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
} brc_netcdf_ragged;

static const brc_json *noted_variable(const brc_node_out *node)
{
    const brc_json *attrs = brc_json_member(node->doc, "attributes");
    return brc_json_member(brc_json_member(attrs, BRC_NETCDF_GROUP_NOTE), BRC_NETCDF_RAGGED);
}

int brc_netcdf_has_ragged(const brc_node_out *node)
{
    return !node->meta && noted_variable(node) != NULL;
}

static int not_noted(const brc_netcdf_ragged *d, const char *member, brc_error *err)
{
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "%s: \"%s\" of its attribute " BRC_NETCDF_GROUP_NOTE
                    " is not what an import makes: remove that attribute to export a group",
                    d->group->path, member);
}

/* ---- the type -------------------------------- */

typedef struct tree_in {
    const brc_netcdf_ragged *d;
    brc_netcdf_types *types;
} tree_in;

/* Lays the type out as a compiler does: *align is the multiple on which it must lie. */
static int open_noted_tree(const tree_in *in, const brc_json *tree, int depth, brc_ragged *out,
                           size_t *align, brc_error *err);

static int open_noted_leaf(const tree_in *in, const brc_json *data_type, brc_ragged *out,
                           size_t *align, brc_error *err)
{
    brc_netcdf_leaf *leaf;
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_json_write(&text, data_type, err));
    BRC_GO(brc_buf_terminate(&text, err));
    rc = netcdf_ragged_leaf(out, in->types->registry, (const char *)text.data, &leaf, NULL);
    if (rc == BRC_OK)
        rc = brc_netcdf_type_out(&leaf->type, in->types, leaf->dtype, 0, NULL);
    if (rc == BRC_ENOMEM) {
        rc = brc_nomem(err);
        goto done;
    }
    if (rc < 0 || leaf->type.how == BRC_NETCDF_UTF32 || leaf->type.how == BRC_NETCDF_WIDER) {
        rc = not_noted(in->d, "type", err);
        goto done;
    }
    out->size = leaf->type.how == BRC_NETCDF_LISTS ? sizeof(nc_vlen_t) : leaf->type.file_size;
    *align = leaf->type.how == BRC_NETCDF_LISTS ? sizeof(size_t) : leaf->type.align;
done:
    brc_buf_dispose(&text);
    return rc;
}

static int open_noted_list(const tree_in *in, const brc_json *of, int depth, brc_ragged *out,
                           size_t *align, brc_error *err)
{
    size_t inner;
    out->kind = BRC_RAGGED_LIST;
    out->size = sizeof(nc_vlen_t);
    *align = sizeof(size_t);
    BRC_TRY(brc_new_array((void **)&out->items, 1, sizeof(*out->items), err));
    out->n = 1;
    return open_noted_tree(in, of, depth, out->items, &inner, err);
}

static int open_noted_array(const tree_in *in, const brc_json *tree, int depth, brc_ragged *out,
                            size_t *align, brc_error *err)
{
    uint64_t n = 1;
    out->kind = BRC_RAGGED_ARRAY;
    const brc_json *shape = brc_json_member(tree, "array");
    for (const brc_json *s = brc_json_first(shape); s; s = brc_json_next(s)) {
        uint64_t length = 0;
        if (out->ndim == BRC_MAX_NDIM || !brc_json_uint(s, INT32_MAX, &length) || length == 0 ||
            !brc_mul_u64(n, length, &n) || n > MOST_ITEMS)
            return not_noted(in->d, "type", err);
        out->shape[out->ndim++] = length;
    }
    BRC_TRY(brc_new_array((void **)&out->items, 1, sizeof(*out->items), err));
    out->n = 1;
    BRC_TRY(open_noted_tree(in, brc_json_member(tree, "of"), depth, out->items, align, err));
    out->size = (size_t)n * out->items->size;
    return out->ndim == 0 || out->size > MOST_ITEMS ? not_noted(in->d, "type", err) : BRC_OK;
}

static int open_noted_fields(const tree_in *in, const brc_json *fields, int depth, brc_ragged *out,
                             size_t *align, brc_error *err)
{
    size_t n = brc_json_count(fields), inner;
    const char *name;
    out->kind = BRC_RAGGED_COMPOUND;
    *align = 1;
    if (n == 0)
        return not_noted(in->d, "type", err);
    BRC_TRY(brc_new_array((void **)&out->items, n, sizeof(*out->items), err));
    for (const brc_json *f = brc_json_first(fields); f; f = brc_json_next(f)) {
        brc_ragged *field = &out->items[out->n++];
        char *own;
        if (!brc_json_text(brc_json_member(f, "name"), &name))
            return not_noted(in->d, "type", err);
        BRC_TRY(brc_dup(&own, name, err));
        field->name = own;
        BRC_TRY(open_noted_tree(in, brc_json_member(f, "type"), depth, field, &inner, err));
        field->at = (out->size + inner - 1) / inner * inner;
        out->size = field->at + field->size;
        if (out->size > MOST_ITEMS)
            return not_noted(in->d, "type", err);
        *align = inner > *align ? inner : *align;
    }
    out->size = (out->size + *align - 1) / *align * *align;
    return BRC_OK;
}

static int open_noted_tree(const tree_in *in, const brc_json *tree, int depth, brc_ragged *out,
                           size_t *align, brc_error *err)
{
    const brc_json *data_type = brc_json_member(tree, "data_type");
    const brc_json *list = brc_json_member(tree, "list");
    const brc_json *fields = brc_json_member(tree, "fields");
    if (!tree || depth > MOST_NESTED)
        return not_noted(in->d, "type", err);
    if (list)
        return open_noted_list(in, list, depth + 1, out, align, err);
    if (brc_json_member(tree, "array"))
        return open_noted_array(in, tree, depth + 1, out, align, err);
    if (fields)
        return open_noted_fields(in, fields, depth + 1, out, align, err);
    return open_noted_leaf(in, data_type ? data_type : tree, out, align, err);
}

/* ---- the type in the file -------------------------------- */

/* A field, or what a list is of: characters and arrays are axes of a field. */
static int define_tree(brc_netcdf_types *types, const brc_ragged *type, const brc_json *tree,
                       nc_type *id, brc_error *err);

static int cannot_be_in_list(const brc_ragged *type)
{
    const brc_netcdf_leaf *leaf = type->own;
    return type->kind == BRC_RAGGED_ARRAY ||
           (type->kind == BRC_RAGGED_LEAF && leaf->type.chars > 0);
}

static int define_noted_fields(brc_netcdf_types *types, const brc_ragged *type,
                               const brc_json *tree, const char *key, const char *name, nc_type *id,
                               brc_error *err)
{
    brc_netcdf_field *fields;
    const brc_json *f = brc_json_first(brc_json_member(tree, "fields"));
    BRC_TRY(brc_new_array((void **)&fields, type->n, sizeof(*fields), err));
    int rc = BRC_OK;
    for (size_t i = 0; i < type->n && rc == BRC_OK; i++, f = brc_json_next(f)) {
        const brc_ragged *item = &type->items[i];
        const brc_json *of = brc_json_member(f, "type");
        fields[i].name = item->name;
        fields[i].offset = item->at;
        if (item->kind == BRC_RAGGED_ARRAY) {
            for (; fields[i].ndims < item->ndim; fields[i].ndims++)
                fields[i].sizes[fields[i].ndims] = (int)item->shape[fields[i].ndims];
            of = brc_json_member(of, "of");
            item = item->items;
        }
        const brc_netcdf_leaf *leaf = item->own;
        if (leaf && leaf->type.chars > 0 && fields[i].ndims < BRC_MAX_NDIM)
            fields[i].sizes[fields[i].ndims++] = (int)leaf->type.chars;
        rc = define_tree(types, item, of, &fields[i].type, err);
    }
    if (rc == BRC_OK)
        rc = brc_netcdf_define_compound(id, types, key, name, type->size, fields, type->n, err);
    free(fields);
    return rc;
}

static int define_tree(brc_netcdf_types *types, const brc_ragged *type, const brc_json *tree,
                       nc_type *id, brc_error *err)
{
    const brc_netcdf_leaf *leaf = type->own;
    brc_netcdf_type made;
    brc_buf key = BRC_BUF_INIT;
    const char *name;
    nc_type base;
    int rc;
    if (type->kind == BRC_RAGGED_LEAF) { /* again, as now the file is there */
        BRC_TRY(brc_netcdf_type_out(&made, types, leaf->dtype, 0, err));
        *id = made.id;
        brc_netcdf_type_free(&made);
        return BRC_OK;
    }
    if (!brc_json_text(brc_json_member(tree, "name"), &name) || !*name)
        name = type->kind == BRC_RAGGED_LIST ? "list" : "row";
    BRC_GO(brc_json_write(&key, tree, err));
    BRC_GO(brc_buf_terminate(&key, err));
    if (type->kind == BRC_RAGGED_COMPOUND) {
        rc = define_noted_fields(types, type, tree, (const char *)key.data, name, id, err);
        goto done;
    }
    BRC_GO(define_tree(types, type->items, brc_json_member(tree, "list"), &base, err));
    rc = brc_netcdf_define_list(id, types, (const char *)key.data, name, base, err);
done:
    brc_buf_dispose(&key);
    return rc;
}

/* NetCDF has no lists of arrays, nor arrays in arrays. */
static int check_noted_lists(const brc_netcdf_ragged *d, const brc_ragged *type, brc_error *err)
{
    for (size_t i = 0; i < type->n; i++) {
        if (type->kind != BRC_RAGGED_COMPOUND && cannot_be_in_list(&type->items[i]))
            return not_noted(d, "type", err);
        BRC_TRY(check_noted_lists(d, &type->items[i], err));
    }
    return BRC_OK;
}

/* ---- which groups -------------------------------- */

static int ragged_numbers(const brc_json *list, uint64_t *out)
{
    int n = 0;
    for (const brc_json *item = brc_json_first(list); item; item = brc_json_next(item))
        if (n == BRC_MAX_NDIM || !brc_json_uint(item, INT64_MAX, &out[n++]))
            return -1;
    return brc_json_kind(list) == BRC_JSON_ARRAY ? n : -1;
}

int brc_netcdf_add_ragged(brc_netcdf_out *out, const brc_node_out *group, brc_error *err)
{
    size_t align;
    BRC_TRY(brc_grow_array((void **)&out->ragged, &out->ragged_cap, out->nragged + 1,
                           sizeof(*out->ragged), err));
    brc_netcdf_ragged *d;
    BRC_TRY(brc_new((void **)&d, sizeof(*d), err)); /* what is made of it points to it */
    out->ragged[out->nragged++] = d;
    *d = (brc_netcdf_ragged){ .group = group, .note = noted_variable(group) };
    const char *slash = strrchr(group->path, '/');
    if (!*group->inner)
        BRC_TRY(brc_path_unescape(&d->name, slash && slash[1] ? slash + 1 : "data",
                                  BRC_NAMES_NETCDF, err));
    if (out->classic)
        return brc_fail(
            err, BRC_EUNSUPPORTED,
            "%s is a variable of lists or texts in compounds, which classic NetCDF does "
            "not have: write NetCDF-4 (--format netcdf)",
            group->path);
    d->ndim = ragged_numbers(brc_json_member(d->note, "shape"), d->shape);
    if (d->ndim < 0)
        return not_noted(d, "shape", err);
    d->chunked =
        d->ndim > 0 && ragged_numbers(brc_json_member(d->note, "chunk"), d->chunk) == d->ndim;
    for (int i = 0; i < d->ndim && d->chunked; i++)
        if (d->chunk[i] == 0)
            return not_noted(d, "chunk", err);
    tree_in in = { d, &out->types };
    BRC_TRY(open_noted_tree(&in, brc_json_member(d->note, "type"), 0, &d->type, &align, err));
    if (d->type.kind != BRC_RAGGED_LIST && d->type.kind != BRC_RAGGED_COMPOUND)
        return not_noted(d, "type", err);
    BRC_TRY(check_noted_lists(d, &d->type, err));
    return brc_ragged_out_open(&d->arrays, out->convert, group, &d->type, BRC_NETCDF_GROUP_NOTE,
                               d->ndim, d->shape, err);
}

static int compare_numbers(const void *key, const void *item)
{
    size_t number = *(const size_t *)key;
    const brc_netcdf_ragged *d = *(brc_netcdf_ragged *const *)item;
    if (number < d->group->number)
        return -1;
    return number > d->group->number + brc_ragged_out_nodes(d->arrays);
}

brc_netcdf_ragged *brc_netcdf_ragged_of(const brc_netcdf_out *out, const brc_node_out *node)
{
    brc_netcdf_ragged **found = out->nragged == 0
                                    ? NULL
                                    : bsearch(&node->number, out->ragged, out->nragged,
                                              sizeof(*out->ragged), compare_numbers);
    return found ? *found : NULL;
}

const char *brc_netcdf_ragged_name(const brc_netcdf_ragged *ragged)
{
    return ragged->name;
}

void brc_netcdf_free_ragged(brc_netcdf_out *out)
{
    for (size_t i = 0; i < out->nragged; i++) {
        brc_netcdf_ragged *d = out->ragged[i];
        brc_ragged_out_free(d->arrays);
        netcdf_ragged_free(&d->type);
        free(d->name);
        free(d);
    }
    free(out->ragged);
}

/* ---- the variable -------------------------------- */

static int put_ragged_atts(brc_netcdf_out *out, const brc_netcdf_ragged *d, int group, int id,
                           brc_error *err)
{
    brc_netcdf_att_place place = { out, group, id, NC_NAT, d->group->path };
    brc_netcdf_atts_out atts = {
        .label = d->group->path, .of = { .is_var = 1 }, .ctx = &place, .put = brc_netcdf_put_att
    };
    return brc_netcdf_each_att(&atts, d->group->doc, err);
}

int brc_netcdf_plan_ragged(brc_netcdf_out *out, brc_netcdf_var *var, brc_netcdf_axes *axes,
                           brc_error *err)
{
    const brc_netcdf_ragged *d = brc_netcdf_ragged_of(out, var->node);
    const brc_node_out *leaf = brc_ragged_out_leaf(d->arrays);
    const brc_json *names =
        brc_json_member(leaf ? leaf->doc : d->note, leaf ? "dimension_names" : "names");
    const char *text;
    var->ndim = d->ndim;
    memcpy(var->shape, d->shape, (size_t)d->ndim * sizeof(*d->shape));
    const brc_json *name = brc_json_kind(names) == BRC_JSON_ARRAY ? brc_json_first(names) : NULL;
    for (int k = 0; k < d->ndim && name; k++, name = brc_json_next(name))
        if (brc_json_text(name, &text) && *text)
            BRC_TRY(brc_dup(&axes->names[k], text, err));
    return put_ragged_atts(out, d, -1, 0, err);
}

static int ragged_refused(const brc_netcdf_ragged *d, int status, const char *what, brc_error *err)
{
    return brc_netcdf_fail(status, BRC_EUNSUPPORTED, what, d->group->path, err);
}

/* The noted chunks, no longer than a dimension that does not grow. */
static int set_ragged_storage(const brc_netcdf_out *out, const brc_netcdf_ragged *d,
                              const brc_netcdf_var *var, brc_error *err)
{
    size_t chunk[BRC_MAX_NDIM];
    if (!d->chunked)
        return BRC_OK;
    for (int k = 0; k < d->ndim; k++) {
        const brc_netcdf_dim *dim = brc_netcdf_dim_at(out, var->dims[k]);
        uint64_t n = d->chunk[k];
        if (n > dim->length && (!dim->unlimited || n > INT32_MAX))
            n = dim->length;
        chunk[k] = n > 0 ? (size_t)n : 1;
    }
    int status = nc_def_var_chunking(d->file_group, d->id, NC_CHUNKED, chunk);
    return status ? ragged_refused(d, status, "NetCDF cannot have the chunks of", err) : BRC_OK;
}

int brc_netcdf_define_ragged(brc_netcdf_out *out, brc_netcdf_var *var, brc_error *err)
{
    brc_netcdf_ragged *d = brc_netcdf_ragged_of(out, var->node);
    int ids[BRC_MAX_NDIM + 1] = { 0 };
    nc_type type;
    d->file_group = brc_netcdf_group_at(out, var->group)->id;
    for (int k = 0; k < d->ndim; k++)
        ids[k] = brc_netcdf_dim_at(out, var->dims[k])->id;
    BRC_TRY(define_tree(&out->types, &d->type, brc_json_member(d->note, "type"), &type, err));
    int status = nc_def_var(d->file_group, var->name, type, d->ndim, ids, &var->id);
    if (status)
        return ragged_refused(d, status, "move or rename it: NetCDF cannot have the variable", err);
    d->id = var->id;
    BRC_TRY(put_ragged_atts(out, d, d->file_group, d->id, err));
    return set_ragged_storage(out, d, var, err);
}

/* ---- elements -------------------------------- */

static int place_value(void *ctx, const brc_ragged *leaf, const uint8_t *item, size_t len, void *to,
                       brc_arena *arena, brc_error *err)
{
    const brc_netcdf_ragged *d = ctx;
    const brc_netcdf_type *type = &((const brc_netcdf_leaf *)leaf->own)->type;
    nc_vlen_t list = { len, len > 0 ? (void *)(uintptr_t)item : NULL };
    (void)arena;
    switch (type->how) {
    case BRC_NETCDF_STRINGS:
        if (len > 0 && memchr(item, 0, len))
            return brc_fail(err, BRC_EUNSUPPORTED,
                            "%s: it has text with U+0000, which NetCDF cannot store",
                            d->group->path);
        memcpy(to, &item, sizeof(item));
        return BRC_OK;
    case BRC_NETCDF_LISTS:
        memcpy(to, &list, sizeof(list));
        return BRC_OK;
    default:
        if (type->nmoves > 0)
            brc_netcdf_move_out(type, to, item, 1);
        else
            memcpy(to, item, len);
        return BRC_OK;
    }
}

static int write_values(void *ctx, const brc_sel *box, const void *elements, brc_error *err)
{
    const brc_netcdf_ragged *d = ctx;
    size_t start[BRC_MAX_NDIM + 1] = { 0 }, count[BRC_MAX_NDIM + 1] = { 0 };
    for (int k = 0; k < box->ndim; k++) {
        start[k] = (size_t)box->start[k];
        count[k] = (size_t)box->count[k];
    }
    int status = nc_put_vara(d->file_group, d->id, start, count, elements);
    return status ? brc_netcdf_fail(status, BRC_EIO, "cannot write", d->group->path, err) : BRC_OK;
}

int brc_netcdf_put_ragged(brc_netcdf_ragged *ragged, const brc_node_out *array, const brc_sel *box,
                          const void *data, size_t len, brc_error *err)
{
    return brc_ragged_out_put(ragged->arrays, array, box, data, len, err);
}

int brc_netcdf_end_ragged(brc_netcdf_ragged *d, const brc_node_out *array, brc_error *err)
{
    brc_ragged_writer writer = { d->chunked ? d->chunk : NULL, d, place_value, write_values };
    return array->number == d->group->number + brc_ragged_out_nodes(d->arrays)
               ? brc_ragged_out_write(d->arrays, &writer, err)
               : BRC_OK;
}
