/* What import and export of them share, see netcdf_ragged.h. */
#include "netcdf_ragged.h"

#include "netcdf_stored.h"

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
    brc_json *json = NULL;
    brc_netcdf_leaf *own;
    int rc;
    BRC_TRY(brc_new((void **)&own, sizeof(*own), err));
    *leaf = own;
    out->kind = BRC_RAGGED_LEAF;
    out->own = own;
    BRC_TRY(brc_dup(&own->text, dtype, err));
    if (dtype[0] == '{' || dtype[0] == '"')
        BRC_GO(brc_json_parse(&json, dtype, strlen(dtype), err));
    else if (!(json = brc_json_new_string(dtype)))
        return brc_nomem(err);
    BRC_GO(brc_dtype_open(&own->dtype, reg, json, err));
    out->dtype = own->text;
    out->type = own->dtype;
done:
    brc_json_free(json);
    return rc;
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

/* ==== netcdf ragged in ================================ */

/* A variable of a vlen type, or of a compound with texts or lists, as a group: netcdf_ragged.h. */

#define MOST_NESTED 12
/* The library takes memory for all lists and texts of a piece, of at most 1,024 elements. */
#define ELEMENT_WEIGHT ((size_t)1 << 10)
#define ITEM_BYTES ((size_t)1 << 30)

typedef struct ragged_var {
    const brc_netcdf_in *in;
    int group, var;
    const char *label;
    nc_type id;
    size_t size; /* of an element in memory */
    brc_ragged type;
    brc_json *attrs, *note, *tree, *own; /* own: the note's member */
    brc_buf attrs_text;
    char *names[BRC_MAX_NDIM];
    uint8_t *read; /* what the library has put its memory into */
    size_t nread;
    brc_buf item;
    brc_ragged_in ragged;
} ragged_var;

static int ragged_var_failed(const ragged_var *v, int status, const char *what, brc_error *err)
{
    return brc_netcdf_fail(status, BRC_EINVAL, what, v->label, err);
}

/* ---- types -------------------------------- */

typedef struct any_type {
    size_t size, nfields;
    nc_type base;
    int kind; /* NC_VLEN ...; 0: a type of every file */
    char name[BRC_NETCDF_NAME_MAX];
} any_type;

static int inquire_any(int group, nc_type type, any_type *out)
{
    memset(out, 0, sizeof(*out));
    out->size = brc_netcdf_atomic_size(type);
    return out->size > 0 ? NC_NOERR
                         : nc_inq_user_type(group, type, out->name, &out->size, &out->base,
                                            &out->nfields, &out->kind);
}

static int is_byte(nc_type type)
{
    return type == NC_BYTE || type == NC_UBYTE || type == NC_CHAR;
}

/* Whether there are texts or lists in it; a status below 0. */
static int has_lists(int group, nc_type type, int depth)
{
    any_type is;
    int status = inquire_any(group, type, &is);
    if (status || depth > MOST_NESTED)
        return status ? status : NC_EBADTYPE;
    if (type == NC_STRING || is.kind == NC_VLEN)
        return 1;
    for (size_t i = 0; is.kind == NC_COMPOUND && i < is.nfields; i++) {
        nc_type field;
        status = nc_inq_compound_fieldtype(group, type, (int)i, &field);
        int has = status ? status : has_lists(group, field, depth + 1);
        if (has != 0)
            return has;
    }
    return 0;
}

int brc_netcdf_is_ragged(int group, int var, const char *label, brc_error *err)
{
    nc_type type;
    any_type is;
    int status = nc_inq_vartype(group, var, &type);
    if (!status)
        status = inquire_any(group, type, &is);
    if (status)
        return brc_netcdf_fail(status, BRC_EINVAL, "cannot read", label, err);
    if (is.kind == NC_VLEN)
        return !is_byte(is.base);
    return is.kind == NC_COMPOUND && has_lists(group, type, 0) == 1;
}

static int read_var_type(ragged_var *v, nc_type type, int depth, brc_ragged *out, brc_json **tree,
                         brc_error *err);

/* {NAME: value}, with the type's name; `value` is consumed. */
static int tree_with(brc_json **out, const char *member, brc_json *value, const char *name,
                     brc_error *err)
{
    *out = brc_json_new_object();
    if (!*out) {
        brc_json_free(value);
        return brc_nomem(err);
    }
    int rc = brc_json_set(*out, member, value, err);
    if (rc == BRC_OK && name && brc_utf8_valid(name, strlen(name)))
        rc = brc_json_set(*out, "name", brc_json_new_string(name), err);
    if (rc < 0) {
        brc_json_free(*out);
        *out = NULL;
    }
    return rc;
}

static int finish_var_leaf(const ragged_var *v, brc_ragged *out, const char *dtype,
                           brc_netcdf_type *type, brc_json **tree, brc_error *err)
{
    brc_netcdf_leaf *leaf;
    brc_json *json;
    int rc = netcdf_ragged_leaf(out, brc_convert_registry(v->in->convert), dtype, &leaf, err);
    if (rc < 0) {
        brc_netcdf_type_free(type);
        return rc;
    }
    leaf->type = *type;
    out->size = type->file_size;
    out->doubtful = type->how == BRC_NETCDF_STRINGS;
    if (dtype[0] == '{')
        BRC_TRY(brc_json_parse(&json, dtype, strlen(dtype), err));
    else
        json = brc_json_new_string(dtype);
    return tree_with(tree, "data_type", json, NULL, err);
}

static int read_var_leaf(const ragged_var *v, nc_type id, brc_ragged *out, brc_json **tree,
                         brc_error *err)
{
    brc_netcdf_type type;
    BRC_TRY(brc_netcdf_type_in(&type, v->group, id, v->label, err));
    return finish_var_leaf(v, out, (const char *)type.dtype.data, &type, tree, err);
}

/* A field of characters is a text of a fixed length. */
static int read_chars(const ragged_var *v, size_t n, brc_ragged *out, brc_json **tree,
                      brc_error *err)
{
    brc_netcdf_type type = { .id = NC_CHAR, .number = NC_CHAR, .file_size = n, .here_size = n };
    char dtype[128];
    snprintf(dtype, sizeof(dtype),
             "{\"name\":\"null_terminated_bytes\",\"configuration\":{\"length_bytes\":%zu}}", n);
    return finish_var_leaf(v, out, dtype, &type, tree, err);
}

typedef struct var_field {
    char name[BRC_NETCDF_NAME_MAX];
    size_t offset;
    nc_type type;
    int ndims, sizes[NC_MAX_VAR_DIMS];
} var_field;

static int read_field_shape(const ragged_var *v, const var_field *field, brc_ragged *out,
                            uint64_t *n, brc_error *err)
{
    *n = 1;
    if (field->ndims > BRC_MAX_NDIM)
        return brc_part_refuse(err, BRC_PART_SIZE, NULL, "%s: the field %s has more than %d axes",
                               v->label, field->name, BRC_MAX_NDIM);
    for (int i = 0; i < field->ndims; i++) {
        if (field->sizes[i] < 1 || !brc_mul_u64(*n, (uint64_t)field->sizes[i], n) || *n > INT32_MAX)
            return brc_fail(err, BRC_EINVAL, "%s: the field %s has an impossible shape", v->label,
                            field->name);
        out->shape[i] = (uint64_t)field->sizes[i];
    }
    out->ndim = field->ndims;
    return BRC_OK;
}

static int read_field_type(ragged_var *v, const var_field *field, int depth, brc_ragged *out,
                           brc_json **tree, brc_error *err)
{
    brc_json *shape, *of = NULL;
    uint64_t n;
    if (field->ndims == 0)
        return read_var_type(v, field->type, depth, out, tree, err);
    BRC_TRY(read_field_shape(v, field, out, &n, err));
    if (field->type == NC_CHAR && field->ndims == 1) {
        out->ndim = 0;
        return read_chars(v, (size_t)n, out, tree, err);
    }
    out->kind = BRC_RAGGED_ARRAY;
    BRC_TRY(brc_new_array((void **)&out->items, 1, sizeof(*out->items), err));
    out->n = 1;
    BRC_TRY(read_var_type(v, field->type, depth, out->items, &of, err));
    out->size = (size_t)n * out->items->size;
    shape = brc_json_new_array();
    int rc = shape ? BRC_OK : brc_nomem(err);
    for (int i = 0; i < out->ndim && rc == BRC_OK; i++)
        rc = brc_json_push(shape, brc_json_new_uint(out->shape[i]), err);
    if (rc == BRC_OK) {
        rc = tree_with(tree, "array", shape, NULL, err);
        shape = NULL;
    }
    if (rc == BRC_OK)
        return brc_json_set(*tree, "of", of, err);
    brc_json_free(shape);
    brc_json_free(of);
    return rc;
}

static int read_var_field(ragged_var *v, nc_type compound, size_t i, size_t whole, int depth,
                          brc_ragged *out, brc_json *fields, brc_error *err)
{
    var_field field = { .ndims = 0 };
    brc_json *item, *tree = NULL;
    char *name;
    int status = nc_inq_compound_field(v->group, compound, (int)i, field.name, &field.offset,
                                       &field.type, &field.ndims, field.sizes);
    if (status)
        return ragged_var_failed(v, status, "cannot read a type of", err);
    if (!brc_utf8_valid(field.name, strlen(field.name)))
        return brc_fail(err, BRC_EINVAL, "%s: a field's name is not UTF-8", v->label);
    BRC_TRY(brc_dup(&name, field.name, err));
    out->name = name;
    out->at = field.offset;
    int rc = read_field_type(v, &field, depth, out, &tree, err);
    if (rc == BRC_OK && (out->at > whole || out->size > whole - out->at))
        rc = brc_fail(err, BRC_EINVAL, "%s: its type has fields outside itself", v->label);
    if (rc == BRC_OK)
        rc = tree_with(&item, "type", tree, field.name, err);
    else
        brc_json_free(tree);
    return rc < 0 ? rc : brc_json_push(fields, item, err);
}

static int read_var_compound(ragged_var *v, nc_type type, const any_type *is, int depth,
                             brc_ragged *out, brc_json **tree, brc_error *err)
{
    brc_json *fields = brc_json_new_array();
    if (!fields)
        return brc_nomem(err);
    out->kind = BRC_RAGGED_COMPOUND;
    out->size = is->size;
    int rc = brc_new_array((void **)&out->items, is->nfields, sizeof(*out->items), err);
    for (size_t i = 0; i < is->nfields && rc == BRC_OK; i++)
        rc = read_var_field(v, type, i, is->size, depth, &out->items[out->n++], fields, err);
    if (rc < 0) {
        brc_json_free(fields);
        return rc;
    }
    return tree_with(tree, "fields", fields, is->name, err);
}

static int read_var_list(ragged_var *v, const any_type *is, int depth, brc_ragged *out,
                         brc_json **tree, brc_error *err)
{
    brc_json *of = NULL;
    out->kind = BRC_RAGGED_LIST;
    out->size = sizeof(nc_vlen_t);
    BRC_TRY(brc_new_array((void **)&out->items, 1, sizeof(*out->items), err));
    out->n = 1;
    int rc = read_var_type(v, is->base, depth, out->items, &of, err);
    if (rc == BRC_OK)
        return tree_with(tree, "list", of, is->name, err);
    brc_json_free(of);
    return rc;
}

static int read_var_type(ragged_var *v, nc_type type, int depth, brc_ragged *out, brc_json **tree,
                         brc_error *err)
{
    any_type is;
    int status = inquire_any(v->group, type, &is);
    if (status)
        return ragged_var_failed(v, status, "cannot read the type of", err);
    if (depth > MOST_NESTED)
        return brc_part_refuse(err, BRC_PART_TYPE, NULL, "%s: its type is nested more than %d deep",
                               v->label, MOST_NESTED);
    if (is.kind == NC_VLEN && !is_byte(is.base))
        return read_var_list(v, &is, depth + 1, out, tree, err);
    if (is.kind == NC_COMPOUND && has_lists(v->group, type, 0) == 1)
        return read_var_compound(v, type, &is, depth + 1, out, tree, err);
    return read_var_leaf(v, type, out, tree, err);
}

/* ---- shape and note -------------------------------- */

static int read_ragged_dims(ragged_var *v, brc_error *err)
{
    char name[BRC_NETCDF_NAME_MAX];
    int ids[NC_MAX_VAR_DIMS], ndim = 0;
    size_t length;
    int status = nc_inq_varndims(v->group, v->var, &ndim);
    if (!status && ndim > BRC_MAX_NDIM)
        return brc_part_refuse(err, BRC_PART_SIZE, NULL,
                               "%s has %d dimensions, but an array has at most %d", v->label, ndim,
                               BRC_MAX_NDIM);
    if (!status)
        status = nc_inq_vardimid(v->group, v->var, ids);
    for (int k = 0; k < ndim && !status; k++) {
        status = nc_inq_dim(v->group, ids[k], name, &length);
        if (status)
            break;
        v->ragged.shape[k] = length;
        if (!brc_utf8_valid(name, strlen(name)))
            return brc_fail(err, BRC_EINVAL, "%s: a dimension's name is not UTF-8", v->label);
        if (strncmp(name, BRC_NETCDF_NAMELESS, strlen(BRC_NETCDF_NAMELESS)) == 0)
            continue;
        BRC_TRY(brc_dup(&v->names[k], name, err));
        v->ragged.names = (const char *const *)v->names;
    }
    v->ragged.ndim = ndim;
    return status ? ragged_var_failed(v, status, "cannot read the dimensions of", err) : BRC_OK;
}

static int read_ragged_storage(ragged_var *v, brc_error *err)
{
    size_t chunk[NC_MAX_VAR_DIMS];
    int storage = NC_CONTIGUOUS;
    if (v->ragged.ndim == 0)
        return BRC_OK;
    int status = nc_inq_var_chunking(v->group, v->var, &storage, chunk);
    if (status)
        return ragged_var_failed(v, status, "cannot read the chunks of", err);
    v->ragged.chunked = storage == NC_CHUNKED;
    for (int k = 0; k < v->ragged.ndim && v->ragged.chunked; k++) {
        v->ragged.chunk[k] = chunk[k];
        v->ragged.chunked &= chunk[k] > 0;
    }
    return BRC_OK;
}

static int note_ragged_var(ragged_var *v, brc_error *err)
{
    brc_json *given = v->tree;
    v->own = brc_json_new_object();
    if (!v->own)
        return brc_nomem(err);
    v->tree = NULL;
    BRC_TRY(brc_json_set(v->own, "type", given, err));
    BRC_TRY(brc_note_numbers(v->own, "shape", v->ragged.shape, v->ragged.ndim, err));
    BRC_TRY(brc_note_texts(v->own, "names", v->names, v->ragged.ndim, err));
    if (v->ragged.chunked)
        BRC_TRY(brc_note_numbers(v->own, "chunk", v->ragged.chunk, v->ragged.ndim, err));
    if (!v->note && !(v->note = brc_json_new_object()))
        return brc_nomem(err);
    given = v->own;
    v->own = NULL;
    BRC_TRY(brc_json_set(v->note, BRC_NETCDF_RAGGED, given, err));
    given = v->note;
    v->note = NULL;
    return brc_json_set(v->attrs, BRC_NETCDF_GROUP_NOTE, given, err);
}

/* A fill value is one of the type, which an attribute's JSON is not made again from. */
static int check_ragged_fill(const ragged_var *v, brc_error *err)
{
    const brc_convert *c = v->in->convert;
    const char *path = brc_convert_path(c, v->label);
    nc_type type;
    if (nc_inq_att(v->group, v->var, BRC_NETCDF_FILL, &type, NULL) != NC_NOERR ||
        brc_convert_lacks_attribute(v->in->convert, path, BRC_NETCDF_FILL))
        return BRC_OK;
    return brc_part_refuse(err, BRC_PART_VALUE, "leave it out with --exclude 'NAME@_FillValue'",
                           "%s has a _FillValue, and its elements are lists or have texts",
                           v->label);
}

static int read_ragged_attrs(ragged_var *v, brc_error *err)
{
    brc_netcdf_atts_in atts = { .group = v->group,
                                .var = v->var,
                                .var_type = v->id,
                                .convert = v->in->convert,
                                .label = v->label,
                                .of = { .is_var = 1 } };
    BRC_TRY(check_ragged_fill(v, err));
    int rc = brc_netcdf_read_atts(&atts, err);
    v->attrs = atts.attrs;
    v->note = atts.note;
    BRC_TRY(rc);
    BRC_TRY(note_ragged_var(v, err));
    BRC_TRY(brc_json_write(&v->attrs_text, v->attrs, err));
    BRC_TRY(brc_buf_terminate(&v->attrs_text, err));
    v->ragged.attrs_json = (const char *)v->attrs_text.data;
    return BRC_OK;
}

/* ---- elements -------------------------------- */

/* The library has no way to read a part of each element. */
static int select_all(void *ctx, const brc_ragged_steps *steps, brc_error *err)
{
    (void)ctx, (void)steps, (void)err;
    return BRC_OK;
}

static void release_read(void *ctx)
{
    ragged_var *v = ctx;
    if (v->read)
        brc_netcdf_drop(v->group, v->id, v->nread, v->read);
    v->read = NULL;
}

static int read_ragged_box(void *ctx, const brc_sel *box, void *elements, size_t most,
                           brc_error *err)
{
    ragged_var *v = ctx;
    size_t start[BRC_MAX_NDIM + 1] = { 0 }, count[BRC_MAX_NDIM + 1] = { 0 };
    (void)most;
    for (int k = 0; k < box->ndim; k++) {
        start[k] = (size_t)box->start[k];
        count[k] = (size_t)box->count[k];
    }
    int status = nc_get_vara(v->group, v->var, start, count, elements);
    if (status)
        return ragged_var_failed(v, status, "cannot read", err);
    v->read = elements;
    v->nread = (size_t)brc_shape_count(box->ndim, box->count);
    return 1;
}

static int append_ragged_bytes(const ragged_var *v, const void *data, size_t len, brc_buf *out,
                               brc_error *err)
{
    uint8_t count[4];
    if (len > ITEM_BYTES)
        return brc_part_refuse(err, BRC_PART_SIZE, NULL, "%s: an element has more than %zu MiB",
                               v->label, ITEM_BYTES >> 20);
    brc_put_u32le(count, (uint32_t)len);
    BRC_TRY(brc_buf_append(out, count, sizeof(count), err));
    return len > 0 ? brc_buf_append(out, data, len, err) : BRC_OK;
}

static int append_leaf(void *ctx, const brc_ragged *leaf, void *element, brc_buf *out,
                       brc_error *err)
{
    ragged_var *v = ctx;
    const brc_netcdf_type *type = &((const brc_netcdf_leaf *)leaf->own)->type;
    nc_vlen_t list;
    const char *text;
    switch (type->how) {
    case BRC_NETCDF_STRINGS:
        memcpy(&text, element, sizeof(text));
        if (text && !brc_utf8_valid(text, strlen(text)))
            return brc_part_refuse(err, BRC_PART_VALUE, "convert it first",
                                   "%s: a text in it is not UTF-8", v->label);
        return append_ragged_bytes(v, text, text ? strlen(text) : 0, out, err);
    case BRC_NETCDF_LISTS:
        memcpy(&list, element, sizeof(list));
        return append_ragged_bytes(v, list.p, list.p ? list.len : 0, out, err);
    default:
        if (type->nmoves == 0)
            return brc_buf_append(out, element, type->here_size, err);
        v->item.len = 0;
        BRC_TRY(brc_buf_reserve(&v->item, type->here_size, err));
        brc_netcdf_move_in(type, v->item.data, element, 1);
        return brc_buf_append(out, v->item.data, type->here_size, err);
    }
}

/* ---- the variable -------------------------------- */

static int take_ragged_var(ragged_var *v, const char *path, brc_error *err)
{
    int status = nc_inq_vartype(v->group, v->var, &v->id);
    if (status)
        return ragged_var_failed(v, status, "cannot read", err);
    BRC_TRY(read_var_type(v, v->id, 0, &v->type, &v->tree, err));
    BRC_TRY(read_ragged_dims(v, err));
    BRC_TRY(read_ragged_storage(v, err));
    if (brc_convert_phase(v->in->convert) == BRC_CONVERT_DOCS)
        BRC_TRY(read_ragged_attrs(v, err));
    v->ragged.path = path;
    v->ragged.label = v->label;
    v->ragged.note_name = BRC_NETCDF_NOTE;
    v->ragged.type = &v->type;
    v->ragged.weight = ELEMENT_WEIGHT;
    v->ragged.ctx = v;
    v->ragged.select = select_all;
    v->ragged.read = read_ragged_box;
    v->ragged.release = release_read;
    v->ragged.append = append_leaf;
    return brc_convert_ragged(v->in->convert, &v->ragged, err);
}

int brc_netcdf_import_ragged(brc_netcdf_in *in, int group, int var, const char *label,
                             const char *path, brc_error *err)
{
    const brc_array_in set = { .path = path, .label = label };
    ragged_var *v;
    BRC_TRY(brc_netcdf_set_check(in->convert, in->local, &set, err));
    BRC_TRY(brc_new((void **)&v, sizeof(*v), err));
    v->in = in;
    v->group = group;
    v->var = var;
    v->label = label;
    int rc = take_ragged_var(v, path, err);
    netcdf_ragged_free(&v->type);
    brc_json_free(v->attrs);
    brc_json_free(v->note);
    brc_json_free(v->tree);
    brc_json_free(v->own);
    for (int k = 0; k < BRC_MAX_NDIM; k++)
        free(v->names[k]);
    brc_buf_dispose(&v->attrs_text);
    brc_buf_dispose(&v->item);
    free(v);
    return rc;
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

/* In memory as the compiler has it: *align is what its place is a multiple of. */
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
    if (depth > MOST_NESTED)
        return not_noted(in->d, "type", err);
    if (data_type)
        return open_noted_leaf(in, data_type, out, align, err);
    if (list)
        return open_noted_list(in, list, depth + 1, out, align, err);
    if (brc_json_member(tree, "array"))
        return open_noted_array(in, tree, depth + 1, out, align, err);
    return open_noted_fields(in, fields, depth + 1, out, align, err);
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
