/* Trees of types, see hdf5_tree.h. */
#include "hdf5_tree.h"

#include <stdlib.h>
#include <string.h>

#include "../../codec/registry.h"

#define TREE_DEPTH 12
#define MOST_COMPOUND ((uint64_t)1 << 28) /* bytes that a note can ask for */

typedef struct tree_reader {
    const brc_registry *reg;
    const char *label;
    int writing, depth;
} tree_reader;

static int read_tree(tree_reader *r, brc_hdf5_tree *out, hid_t type, brc_error *err);

static int tree_failed(const char *label, brc_error *err)
{
    return brc_hdf5_fail(err, BRC_EINVAL, "%s: its data type cannot be read", label);
}

/* ---- which types are one data type -------------------------------- */

/* How many items one of the type has, the arrays in it counted out, up to a limit. */
static uint64_t count_items(hid_t type, int depth)
{
    uint64_t n = 1;
    hsize_t dims[H5S_MAX_RANK];
    if (H5Tget_class(type) != H5T_ARRAY || depth == TREE_DEPTH ||
        H5Tget_array_ndims(type) > H5S_MAX_RANK || H5Tget_array_dims2(type, dims) < 0)
        return 1;
    hid_t base = H5Tget_super(type);
    n = count_items(base, depth + 1);
    brc_hdf5_close(base);
    for (int i = 0; i < H5Tget_array_ndims(type); i++)
        if (!brc_mul_u64(n, dims[i], &n) || n > BRC_HDF5_FIELD_ITEMS)
            return UINT64_MAX;
    return n;
}

/* 1 if it can be a part of one data type. */
static int is_part_type(hid_t type, int depth)
{
    int is = 1;
    switch (H5Tget_class(type)) {
    case H5T_VLEN:
    case H5T_REFERENCE:
        return 0;
    case H5T_STRING:
        return H5Tis_variable_str(type) <= 0;
    case H5T_ARRAY: {
        hid_t base = H5Tget_super(type);
        is = count_items(type, depth) <= BRC_HDF5_FIELD_ITEMS &&
             (depth == TREE_DEPTH || is_part_type(base, depth + 1));
        brc_hdf5_close(base);
        return is;
    }
    case H5T_COMPOUND:
        for (int i = 0; i < H5Tget_nmembers(type) && is && depth < TREE_DEPTH; i++) {
            hid_t member = H5Tget_member_type(type, (unsigned)i);
            is = member < 0 || is_part_type(member, depth + 1);
            brc_hdf5_close(member);
        }
        return is;
    default:
        return 1;
    }
}

/* By itself: an array's axes become the dataset's, so it may be large. */
int brc_hdf5_is_one_type(hid_t type)
{
    switch (H5Tget_class(type)) {
    case H5T_STRING:
    case H5T_REFERENCE:
        return 1;
    case H5T_VLEN:
        return brc_hdf5_is_byte_list(type);
    case H5T_ARRAY: {
        hid_t base = H5Tget_super(type);
        int is = is_part_type(base, 0);
        brc_hdf5_close(base);
        return is;
    }
    default:
        return is_part_type(type, 0);
    }
}

/* ---- reading -------------------------------- */

static int read_tree_leaf(const tree_reader *r, brc_hdf5_tree *out, hid_t type, brc_error *err)
{
    brc_json *json = NULL;
    out->kind = BRC_HDF5_LEAF;
    BRC_TRY(brc_hdf5_type_read(&out->type, r->reg, type, r->writing, r->label, err));
    out->size = out->type.size;
    out->memory = H5Tcopy(out->type.memory);
    if (out->memory < 0)
        return tree_failed(r->label, err);
    BRC_TRY(brc_hdf5_dtype_json(&json, out->type.dtype, err));
    int rc = brc_dtype_open(&out->dtype, r->reg, json, err);
    if (rc < 0)
        brc_context(err, "%s", r->label);
    brc_json_free(json);
    return rc;
}

static size_t align_place(size_t at)
{
    return (at + 7) / 8 * 8;
}

static int read_tree_field(tree_reader *r, brc_hdf5_tree *out, hid_t compound, unsigned i,
                           brc_error *err)
{
    char *name = H5Tget_member_name(compound, i);
    hid_t type = H5Tget_member_type(compound, i);
    size_t whole = H5Tget_size(compound), at = H5Tget_member_offset(compound, i);
    int rc;
    if (!name || type < 0 || at > whole || H5Tget_size(type) > whole - at) {
        rc = tree_failed(r->label, err);
        goto done;
    }
    if (!brc_utf8_valid(name, strlen(name))) {
        rc = brc_fail(err, BRC_EINVAL, "%s: the name of a field is not UTF-8", r->label);
        goto done;
    }
    rc = read_tree(r, out, type, err);
    out->file_at = at;
    if (rc == BRC_OK)
        rc = brc_dup(&out->name, name, err);
    if (rc < 0)
        brc_context(err, "the field \"%.60s\"", name);
done:
    if (name)
        (void)H5free_memory(name);
    brc_hdf5_close(type);
    return rc;
}

static int read_tree_fields(tree_reader *r, brc_hdf5_tree *out, hid_t type, brc_error *err)
{
    int n = H5Tget_nmembers(type);
    out->kind = BRC_HDF5_COMPOUND;
    if (n <= 0)
        return tree_failed(r->label, err);
    BRC_TRY(brc_new_array((void **)&out->items, (size_t)n, sizeof(*out->items), err));
    for (int i = 0; i < n; i++) {
        brc_hdf5_tree *field = &out->items[out->n++];
        field->memory = field->type.memory = BRC_HDF5_NONE;
        BRC_TRY(read_tree_field(r, field, type, (unsigned)i, err));
        field->at = align_place(out->size);
        out->size = field->at + field->size;
    }
    out->size = align_place(out->size);
    out->memory = H5Tcreate(H5T_COMPOUND, out->size);
    for (size_t i = 0; i < out->n; i++)
        if (out->memory < 0 ||
            H5Tinsert(out->memory, out->items[i].name, out->items[i].at, out->items[i].memory) < 0)
            return tree_failed(r->label, err);
    return BRC_OK;
}

/* Of a list, or an array. */
static int read_tree_base(tree_reader *r, brc_hdf5_tree *out, hid_t type, brc_error *err)
{
    BRC_TRY(brc_new_array((void **)&out->items, 1, sizeof(*out->items), err));
    out->n = 1;
    out->items->memory = out->items->type.memory = BRC_HDF5_NONE;
    hid_t base = H5Tget_super(type);
    int rc = base < 0 ? tree_failed(r->label, err) : read_tree(r, out->items, base, err);
    brc_hdf5_close(base);
    return rc;
}

static int read_tree_list(tree_reader *r, brc_hdf5_tree *out, hid_t type, brc_error *err)
{
    out->kind = BRC_HDF5_LIST;
    BRC_TRY(read_tree_base(r, out, type, err));
    out->size = sizeof(hvl_t);
    out->memory = H5Tvlen_create(out->items->memory);
    return out->memory < 0 ? tree_failed(r->label, err) : BRC_OK;
}

static int read_tree_array(tree_reader *r, brc_hdf5_tree *out, hid_t type, brc_error *err)
{
    hsize_t dims[H5S_MAX_RANK];
    uint64_t bytes;
    out->kind = BRC_HDF5_ARRAY;
    out->ndim = H5Tget_array_ndims(type);
    if (out->ndim < 1 || out->ndim > H5S_MAX_RANK || out->ndim > BRC_MAX_NDIM ||
        H5Tget_array_dims2(type, dims) < 0)
        return tree_failed(r->label, err);
    for (int i = 0; i < out->ndim; i++)
        out->shape[i] = dims[i];
    BRC_TRY(read_tree_base(r, out, type, err));
    if (!brc_shape_bytes(out->ndim, out->shape, out->items->size, &bytes) || bytes > UINT32_MAX)
        return brc_fail(err, BRC_ELIMIT, "%s: its elements have more than 2^32 bytes", r->label);
    out->size = (size_t)bytes;
    out->memory = H5Tarray_create2(out->items->memory, (unsigned)out->ndim, dims);
    return out->memory < 0 ? tree_failed(r->label, err) : BRC_OK;
}

static int read_tree(tree_reader *r, brc_hdf5_tree *out, hid_t type, brc_error *err)
{
    int rc;
    if (r->depth == TREE_DEPTH)
        return brc_fail(err, BRC_ELIMIT, "%s: its data type is nested more than %d deep", r->label,
                        TREE_DEPTH);
    r->depth++;
    out->file_size = H5Tget_size(type);
    if (brc_hdf5_is_one_type(type))
        rc = read_tree_leaf(r, out, type, err);
    else if (H5Tget_class(type) == H5T_COMPOUND)
        rc = read_tree_fields(r, out, type, err);
    else if (H5Tget_class(type) == H5T_VLEN)
        rc = read_tree_list(r, out, type, err);
    else
        rc = read_tree_array(r, out, type, err);
    r->depth--;
    return rc;
}

int brc_hdf5_tree_read(brc_hdf5_tree *out, const brc_registry *reg, hid_t type, int writing,
                       const char *label, brc_error *err)
{
    tree_reader r = { reg, label, writing, 0 };
    memset(out, 0, sizeof(*out));
    out->memory = out->type.memory = BRC_HDF5_NONE;
    int rc = read_tree(&r, out, type, err);
    if (rc < 0)
        brc_hdf5_tree_close(out);
    return rc;
}

int brc_hdf5_tree_refers(const brc_hdf5_tree *tree)
{
    if (tree->kind == BRC_HDF5_LEAF)
        return tree->type.kind == BRC_HDF5_OBJECT || tree->type.kind == BRC_HDF5_REGION;
    for (size_t i = 0; i < tree->n; i++)
        if (brc_hdf5_tree_refers(&tree->items[i]))
            return 1;
    return 0;
}

void brc_hdf5_tree_close(brc_hdf5_tree *tree)
{
    for (size_t i = 0; i < tree->n; i++)
        brc_hdf5_tree_close(&tree->items[i]);
    free(tree->items);
    free(tree->name);
    brc_dtype_free(tree->dtype);
    brc_hdf5_type_close(&tree->type);
    brc_hdf5_close(tree->memory);
    memset(tree, 0, sizeof(*tree));
    tree->memory = tree->type.memory = BRC_HDF5_NONE;
}

/* ---- as JSON -------------------------------- */

/* A new object with one member; *out NULL on failure. */
static int new_with(brc_json **out, const char *name, brc_json *value, brc_error *err)
{
    *out = brc_json_new_object();
    if (!*out) {
        brc_json_free(value);
        return brc_nomem(err);
    }
    return brc_json_set(*out, name, value, err);
}

static int leaf_json(brc_json **out, const brc_hdf5_tree *tree, brc_error *err)
{
    brc_json *data_type, *note;
    BRC_TRY(brc_hdf5_dtype_json(&data_type, tree->type.dtype, err));
    if (!tree->type.note && tree->type.ndim == 0) {
        *out = data_type;
        return BRC_OK;
    }
    BRC_TRY(new_with(out, "data_type", data_type, err));
    if (!tree->type.note)
        return BRC_OK;
    BRC_TRY(brc_json_clone(&note, tree->type.note, err));
    return brc_json_set(*out, "note", note, err);
}

/* `end`: where the field before it ends. */
static int field_json(brc_json **out, const brc_hdf5_tree *tree, size_t end, brc_error *err)
{
    brc_json *type;
    BRC_TRY(new_with(out, "name", brc_json_new_string(tree->name), err));
    int rc = brc_hdf5_tree_json(&type, tree, err);
    if (rc == BRC_OK)
        rc = brc_json_set(*out, "type", type, err);
    if (rc == BRC_OK && tree->file_at != end)
        rc = brc_json_set(*out, "at", brc_json_new_uint(tree->file_at), err);
    if (rc < 0)
        brc_json_free(*out);
    return rc;
}

static int fields_json(brc_json **out, const brc_hdf5_tree *tree, brc_error *err)
{
    brc_json *fields = brc_json_new_array(), *field;
    size_t end = 0;
    if (!fields)
        return brc_nomem(err);
    BRC_TRY(new_with(out, "fields", fields, err));
    for (size_t i = 0; i < tree->n; i++) {
        BRC_TRY(field_json(&field, &tree->items[i], end, err));
        BRC_TRY(brc_json_push(fields, field, err));
        end = tree->items[i].file_at + tree->items[i].file_size;
    }
    return tree->file_size != end
               ? brc_json_set(*out, "size", brc_json_new_uint(tree->file_size), err)
               : BRC_OK;
}

/* {"array": shape, "of": type}; `type` is consumed. */
static int array_json(brc_json **out, int ndim, const uint64_t *shape, brc_json *type,
                      brc_error *err)
{
    brc_json *dims = brc_json_new_array();
    int rc = dims ? BRC_OK : brc_nomem(err);
    for (int i = 0; i < ndim && rc == BRC_OK; i++)
        rc = brc_json_push(dims, brc_json_new_uint(shape[i]), err);
    if (rc < 0) {
        brc_json_free(dims);
        brc_json_free(type);
        return rc;
    }
    rc = new_with(out, "array", dims, err);
    if (rc < 0) {
        brc_json_free(type);
        return rc;
    }
    return brc_json_set(*out, "of", type, err);
}

int brc_hdf5_tree_json(brc_json **out, const brc_hdf5_tree *tree, brc_error *err)
{
    brc_json *type = NULL;
    int rc;
    *out = NULL;
    switch (tree->kind) {
    case BRC_HDF5_COMPOUND:
        rc = fields_json(out, tree, err);
        break;
    case BRC_HDF5_LIST:
        rc = brc_hdf5_tree_json(&type, tree->items, err);
        if (rc == BRC_OK)
            rc = new_with(out, "list", type, err);
        break;
    case BRC_HDF5_ARRAY:
        rc = brc_hdf5_tree_json(&type, tree->items, err);
        if (rc == BRC_OK)
            rc = array_json(out, tree->ndim, tree->shape, type, err);
        break;
    default:
        rc = leaf_json(&type, tree, err);
        if (rc < 0 || tree->type.ndim == 0)
            *out = type;
        else
            rc = array_json(out, tree->type.ndim, tree->type.shape, type, err);
    }
    if (rc < 0) {
        brc_json_free(*out);
        *out = NULL;
    }
    return rc;
}

/* ---- from JSON -------------------------------- */

static int make_tree(hid_t *out, const brc_registry *reg, const brc_json *json, int depth,
                     const char *label, brc_error *err);

static int cannot_make(const char *label, brc_error *err)
{
    return brc_hdf5_fail(err, BRC_EINVAL, "%s: its data type cannot be made in HDF5", label);
}

/* A noted place or size, where it is not before `least`; else that. */
static size_t noted_place(const brc_json *json, const char *name, size_t least)
{
    uint64_t n;
    return brc_json_uint(brc_json_member(json, name), MOST_COMPOUND, &n) && n > least ? (size_t)n
                                                                                      : least;
}

static int make_compound(hid_t *out, const brc_registry *reg, const brc_json *json, int depth,
                         const char *label, brc_error *err)
{
    const brc_json *fields = brc_json_member(json, "fields");
    size_t at = 0;
    *out = H5Tcreate(H5T_COMPOUND, 1);
    for (const brc_json *f = brc_json_first(fields); f; f = brc_json_next(f)) {
        hid_t field;
        const char *name;
        if (*out < 0 || !brc_json_text(brc_json_member(f, "name"), &name))
            return cannot_make(label, err);
        BRC_TRY(make_tree(&field, reg, brc_json_member(f, "type"), depth, label, err));
        size_t size = H5Tget_size(field);
        at = noted_place(f, "at", at);
        int ok = H5Tset_size(*out, at + size) >= 0 && H5Tinsert(*out, name, at, field) >= 0;
        brc_hdf5_close(field);
        if (!ok)
            return cannot_make(label, err);
        at += size;
    }
    size_t size = noted_place(json, "size", at);
    return size > at && H5Tset_size(*out, size) < 0 ? cannot_make(label, err) : BRC_OK;
}

static int make_tree_array(hid_t *out, const brc_registry *reg, const brc_json *json, int depth,
                           const char *label, brc_error *err)
{
    const brc_json *shape = brc_json_member(json, "array");
    hsize_t dims[H5S_MAX_RANK];
    unsigned ndim = 0;
    hid_t item;
    for (const brc_json *d = brc_json_first(shape); d; d = brc_json_next(d), ndim++) {
        uint64_t n = 0;
        if (ndim == H5S_MAX_RANK || !brc_json_uint(d, UINT32_MAX, &n))
            return cannot_make(label, err);
        dims[ndim] = n;
    }
    BRC_TRY(make_tree(&item, reg, brc_json_member(json, "of"), depth, label, err));
    *out = H5Tarray_create2(item, ndim, dims);
    brc_hdf5_close(item);
    return *out < 0 ? cannot_make(label, err) : BRC_OK;
}

static int make_any_tree(hid_t *out, const brc_registry *reg, const brc_json *json, int depth,
                         const char *label, brc_error *err)
{
    const brc_json *list = brc_json_member(json, "list");
    const brc_json *data_type = brc_json_member(json, "data_type");
    hid_t item;
    if (depth > TREE_DEPTH)
        return brc_fail(err, BRC_ELIMIT, "%s: its data type is nested more than %d deep", label,
                        TREE_DEPTH);
    if (brc_json_member(json, "fields"))
        return make_compound(out, reg, json, depth, label, err);
    if (brc_json_member(json, "array"))
        return make_tree_array(out, reg, json, depth, label, err);
    if (!list)
        return brc_hdf5_type_make(out, reg, data_type ? data_type : json,
                                  brc_json_member(json, "note"), label, err);
    BRC_TRY(make_tree(&item, reg, list, depth, label, err));
    *out = H5Tvlen_create(item);
    brc_hdf5_close(item);
    return *out < 0 ? cannot_make(label, err) : BRC_OK;
}

static int make_tree(hid_t *out, const brc_registry *reg, const brc_json *json, int depth,
                     const char *label, brc_error *err)
{
    *out = BRC_HDF5_NONE;
    if (!json)
        return cannot_make(label, err);
    int rc = make_any_tree(out, reg, json, depth + 1, label, err);
    if (rc < 0) {
        brc_hdf5_close(*out);
        *out = BRC_HDF5_NONE;
    }
    return rc;
}

int brc_hdf5_tree_make(hid_t *out, const brc_registry *reg, const brc_json *json, const char *label,
                       brc_error *err)
{
    return make_tree(out, reg, json, 0, label, err);
}
