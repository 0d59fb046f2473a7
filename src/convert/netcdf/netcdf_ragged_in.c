/* A variable of a vlen type, or of a compound with texts or lists, as a group: netcdf_ragged.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "netcdf_ragged.h"

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
    int rc = brc_netcdf_ragged_leaf(out, brc_convert_registry(v->in->convert), dtype, &leaf, err);
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
    ragged_var *v;
    BRC_TRY(brc_new((void **)&v, sizeof(*v), err));
    v->in = in;
    v->group = group;
    v->var = var;
    v->label = label;
    int rc = take_ragged_var(v, path, err);
    brc_netcdf_ragged_free(&v->type);
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
