/*
 * Writes dimension scales and attributes.
 *
 * An array of one axis that has its axis's name, such as the coordinate x with the axis "x",
 * becomes a dimension scale. The scale is attached to axes of this name and length in the same
 * group and below. Every other name becomes the label of its axis.
 */
#include <hdf5_hl.h> /* behind hdf5.h, as hdf5_lib.h asks for it */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/node_path.h"
#include "../../codec/registry.h"
#include "../../nd/dtype_text.h"
#include "hdf5_out.h"
#include "hdf5_tree.h"

/* ==== hdf5 out scale ================================ */

int brc_hdf5_item_add(brc_hdf5_out *out, const char *inner, int ndim, const uint64_t *shape,
                      const brc_json *names, int scales, brc_error *err)
{
    BRC_TRY(brc_grow_array((void **)&out->items, &out->cap, out->n + 1, sizeof(*out->items), err));
    brc_hdf5_item *item = &out->items[out->n];
    memset(item, 0, sizeof(*item));
    BRC_TRY(brc_dup(&item->inner, inner, err));
    out->n++; /* from now on the item is freed with the others */
    item->ndim = ndim;
    memcpy(item->shape, shape, (size_t)ndim * sizeof(*item->shape));
    item->scales = scales;
    if (!names)
        return BRC_OK;
    BRC_TRY(brc_new_array((void **)&item->names, (size_t)ndim, sizeof(*item->names), err));
    const brc_json *name = brc_json_first(names);
    const char *text;
    for (int i = 0; name && i < ndim; i++, name = brc_json_next(name))
        if (brc_json_text(name, &text))
            BRC_TRY(brc_dup(&item->names[i], text, err));
    return BRC_OK;
}

static int compare_items(const void *a, const void *b)
{
    return strcmp(((const brc_hdf5_item *)a)->inner, ((const brc_hdf5_item *)b)->inner);
}

static const char *last_name(const char *inner)
{
    const char *slash = strrchr(inner, '/');
    return slash ? slash + 1 : inner;
}

static int is_coordinate(const brc_hdf5_item *item)
{
    return item->scales && item->ndim == 1 && item->names && item->names[0] &&
           strcmp(item->names[0], last_name(item->inner)) == 0;
}

/* Finds the coordinate of this name and length in the group of `inner` or in a group around it. */
static int find_coordinate(const brc_hdf5_item **found, const brc_hdf5_out *out, const char *inner,
                           const char *name, uint64_t length, brc_error *err)
{
    size_t len = (size_t)(last_name(inner) - inner);
    brc_buf path = BRC_BUF_INIT;
    int rc = BRC_OK;

    *found = NULL;
    for (;;) {
        path.len = 0;
        BRC_GO(brc_buf_append(&path, inner, len, err));
        BRC_GO(brc_buf_text(&path, name, err));
        BRC_GO(brc_buf_terminate(&path, err));
        brc_hdf5_item key = { .inner = (char *)path.data };
        const brc_hdf5_item *item =
            bsearch(&key, out->items, out->n, sizeof(*out->items), compare_items);
        if (item && is_coordinate(item) && item->shape[0] == length) {
            *found = item;
            break;
        }
        if (len == 0)
            break;
        for (len--; len > 0 && inner[len - 1] != '/'; len--)
            ;
    }
done:
    brc_buf_dispose(&path);
    return rc;
}

static int scale_failed(const brc_hdf5_item *item, const char *name,
                        brc_error *err)
{
    return brc_hdf5_fail(err, BRC_EIO,
                         "/%s: the name \"%.80s\" of an axis cannot be "
                         "written",
                         item->inner, name);
}

static int name_axis(const brc_hdf5_out *out, const brc_hdf5_item *item, hid_t dataset, int axis,
                     brc_error *err)
{
    const char *name = item->names[axis];
    const brc_hdf5_item *coordinate;

    BRC_TRY(find_coordinate(&coordinate, out, item->inner, name, item->shape[axis], err));
    if (!coordinate)
        return H5DSset_label(dataset, (unsigned)axis, name) < 0
                   ? scale_failed(item, name, err)
                   : BRC_OK;
    hid_t scale = H5Dopen2(out->id, coordinate->inner, H5P_DEFAULT);
    int failed = scale < 0 || H5DSattach_scale(dataset, scale, (unsigned)axis) < 0;
    int rc = failed ? scale_failed(item, name, err) : BRC_OK;
    brc_hdf5_close(scale);
    return rc;
}

static int name_axes(const brc_hdf5_out *out, const brc_hdf5_item *item, int coordinates,
                     brc_error *err)
{
    int rc = BRC_OK;
    if (!item->names || is_coordinate(item) != coordinates)
        return BRC_OK;
    hid_t dataset = H5Dopen2(out->id, item->inner, H5P_DEFAULT);
    if (dataset < 0)
        return scale_failed(item, "", err);
    if (coordinates && H5DSset_scale(dataset, item->names[0]) < 0)
        rc = scale_failed(item, item->names[0], err);
    for (int i = 0; !coordinates && i < item->ndim && rc == BRC_OK; i++)
        if (item->names[i])
            rc = name_axis(out, item, dataset, i, err);
    brc_hdf5_close(dataset);
    return rc;
}

int brc_hdf5_scales_write(const brc_hdf5_out *out, brc_error *err)
{
    if (out->n > 0)
        qsort(out->items, out->n, sizeof(*out->items), compare_items);
    /* coordinates first, because other arrays need them */
    for (int coordinates = 1; coordinates >= 0; coordinates--)
        for (size_t i = 0; i < out->n; i++)
            BRC_TRY(name_axes(out, &out->items[i], coordinates, err));
    return BRC_OK;
}

/* ==== hdf5 out value ================================ */

/* Converts JSON to values of any type, see hdf5_out.h. */

/* ---- paths -------------------------------- */

/* Returns the length of the path without its last name. */
static size_t parent_len(const char *path, size_t len)
{
    while (len > 0 && path[len - 1] != '/')
        len--;
    return len > 0 ? len - 1 : 0;
}

/* Removes names from the ends of both paths as long as the last names are equal. */
static void drop_common(const char *a, size_t *a_len, const char *b, size_t *b_len)
{
    while (*a_len > 0 && *b_len > 0) {
        size_t a_at = parent_len(a, *a_len), b_at = parent_len(b, *b_len);
        if (*a_len - a_at != *b_len - b_at || memcmp(a + a_at, b + b_at, *a_len - a_at) != 0)
            return;
        *a_len = a_at;
        *b_len = b_at;
    }
}

/* Finds the path in this file of an object whose path in its first file is given. Returns 1 with
 * the path, which ends with a zero byte; 0 if this file does not have the object; or a negative
 * error code. */
static int path_here(const brc_hdf5_writer *w, const char *path, size_t len, brc_buf *out,
                     brc_error *err)
{
    const char *at = w->at && w->at[0] == '/' ? w->at : "/";
    char *inner;
    int rc;
    BRC_TRY(brc_node_join(&inner, "/", w->inner, err));
    size_t at_len = at[1] ? strlen(at) : 0, here_len = inner[1] ? strlen(inner) : 0;
    if (at_len > 0 && here_len > 0) { /* the object that refers may have another name now */
        at_len = parent_len(at, at_len);
        here_len = parent_len(inner, here_len);
        drop_common(at, &at_len, inner, &here_len);
    }
    out->len = 0;
    if (path[0] != '/' || len < at_len || memcmp(path, at, at_len) != 0 ||
        (len > at_len && path[at_len] != '/')) {
        rc = 0;
        goto done;
    }
    BRC_GO(brc_buf_append(out, inner, here_len, err));
    BRC_GO(brc_buf_append(out, path + at_len, len - at_len, err));
    if (out->len == 0)
        BRC_GO(brc_buf_byte(out, '/', err));
    BRC_GO(brc_buf_terminate(out, err));
    rc = strcmp((char *)out->data, "/") == 0 ||
         H5Oexists_by_name(w->out->id, (char *)out->data, H5P_DEFAULT) > 0;
done:
    free(inner);
    return rc;
}

int brc_hdf5_reference_put(const brc_hdf5_writer *w, int is_region, const char *text,
                           void *reference, brc_error *err)
{
    const char *end = is_region ? strrchr(text, '#') : text + strlen(text);
    brc_buf path = BRC_BUF_INIT;
    int rc = 1;
    memset(reference, 0, is_region ? sizeof(hdset_reg_ref_t) : sizeof(hobj_ref_t));
    if (!*text)
        return 1;
    if (!end)
        return 0;
    rc = path_here(w, text, (size_t)(end - text), &path, err);
    if (rc == 1)
        rc = brc_hdf5_reference_make(w->out->id, is_region, (char *)path.data, text, reference,
                                     w->label, err);
    brc_buf_dispose(&path);
    return rc;
}

/* ---- types -------------------------------- */

/* Uses the committed type at this path of the first file, if it is the same type. */
static int use_committed(const brc_hdf5_writer *w, hid_t *type, const char *path, brc_error *err)
{
    brc_buf here = BRC_BUF_INIT;
    int rc = path_here(w, path, strlen(path), &here, err);
    if (rc == 1) {
        hid_t committed = H5Topen2(w->out->id, (char *)here.data, H5P_DEFAULT);
        if (committed >= 0 && H5Tequal(committed, *type) > 0) {
            brc_hdf5_close(*type);
            *type = committed;
        } else {
            brc_hdf5_close(committed);
        }
    }
    brc_buf_dispose(&here);
    return rc < 0 ? rc : BRC_OK;
}

int brc_hdf5_type_committed(const brc_hdf5_writer *w, hid_t *type, const brc_json *committed,
                            brc_error *err)
{
    const char *path;
    return brc_json_text(committed, &path) ? use_committed(w, type, path, err) : BRC_OK;
}

/* Makes the type of a noted tree, or uses the committed type as use_committed() does. */
static int hdf5_type_noted(const brc_hdf5_writer *w, hid_t *out, const brc_json *tree,
                           const brc_json *committed, brc_error *err)
{
    BRC_TRY(brc_hdf5_tree_make(out, w->out->reg, tree, BRC_HDF5_WRITING, w->label, err));
    int rc = brc_hdf5_type_committed(w, out, committed, err);
    if (rc < 0) {
        brc_hdf5_close(*out);
        *out = BRC_HDF5_NONE;
    }
    return rc;
}

/* ---- values -------------------------------- */

/* Writes text that is padded with zeros. */
static int put_fixed_text(const brc_hdf5_tree *leaf, const brc_json *value, uint8_t *at)
{
    const char *text;
    if (!brc_json_text(value, &text) || strlen(text) > leaf->type.item)
        return 0;
    memset(at, 0, leaf->type.item);
    memcpy(at, text, strlen(text));
    return 1;
}

static int put_fixed_value(const brc_hdf5_tree *leaf, const brc_json *value, uint8_t *at,
                           brc_error *err)
{
    const brc_dtype *type = leaf->dtype;
    brc_buf element = BRC_BUF_INIT;
    if (type->klass == BRC_CLASS_BYTES)
        return put_fixed_text(leaf, value, at);
    int rc = type->ops->parse(type, value, &element, NULL);
    if (rc == BRC_OK && element.len == leaf->type.item) {
        brc_dtype_native(type, element.data, element.len);
        if (leaf->type.swap)
            brc_dtype_swap(type, element.data, element.data, 1);
        memcpy(at, element.data, element.len);
    }
    int ok = rc == BRC_OK && element.len == leaf->type.item;
    brc_buf_dispose(&element);
    return rc == BRC_ENOMEM ? brc_nomem(err) : ok;
}

static int put_byte_list(const brc_hdf5_writer *w, const brc_dtype *type, const brc_json *value,
                         uint8_t *at, brc_error *err)
{
    brc_buf element = BRC_BUF_INIT;
    hvl_t list = { 0, NULL };
    uint8_t *copy = NULL;
    int rc = type->ops->parse(type, value, &element, NULL);
    if (rc == BRC_OK)
        rc = brc_arena_copy(w->arena, element.data, element.len, &copy, err);
    if (rc == BRC_OK && element.len > 4)
        list = (hvl_t){ element.len - 4, copy + 4 };
    brc_buf_dispose(&element);
    if (rc < 0)
        return rc == BRC_ENOMEM ? brc_nomem(err) : 0;
    memcpy(at, &list, sizeof(list));
    return 1;
}

static int put_item_value(const brc_hdf5_writer *w, const brc_hdf5_tree *leaf,
                          const brc_json *value, uint8_t *at, brc_error *err)
{
    const char *text;
    uint8_t *copy;
    switch (leaf->type.kind) {
    case BRC_HDF5_FIXED:
        return put_fixed_value(leaf, value, at, err);
    case BRC_HDF5_BYTES:
        return put_byte_list(w, leaf->dtype, value, at, err);
    case BRC_HDF5_STRING:
        if (!brc_json_text(value, &text))
            return 0;
        BRC_TRY(brc_arena_copy(w->arena, text, strlen(text) + 1, &copy, err));
        memcpy(at, &copy, sizeof(copy));
        return 1;
    default:
        if (!brc_json_text(value, &text))
            return 0;
        return brc_hdf5_reference_put(w, leaf->type.kind == BRC_HDF5_REGION, text, at, err);
    }
}

/* Lists of lists of this shape: elements of the tree `each`, or items of a leaf if `each` is
 * NULL. */
typedef struct put_box {
    const brc_hdf5_writer *w;
    const brc_hdf5_tree *tree, *each;
    int ndim;
    const uint64_t *shape;
    uint8_t *at;
    size_t step;
} put_box;

static int put_boxed(put_box *box, int axis, const brc_json *value, brc_error *err)
{
    if (axis == box->ndim) {
        uint8_t *at = box->at;
        box->at += box->step;
        return box->each ? brc_hdf5_value_read(box->w, box->each, value, at, err)
                         : put_item_value(box->w, box->tree, value, at, err);
    }
    if (brc_json_kind(value) != BRC_JSON_ARRAY || brc_json_count(value) != box->shape[axis])
        return 0;
    for (const brc_json *item = brc_json_first(value); item; item = brc_json_next(item)) {
        int fits = put_boxed(box, axis + 1, item, err);
        if (fits != 1)
            return fits;
    }
    return 1;
}

static int put_field_values(const brc_hdf5_writer *w, const brc_hdf5_tree *tree,
                            const brc_json *value, uint8_t *element, brc_error *err)
{
    if (brc_json_kind(value) != BRC_JSON_OBJECT || brc_json_count(value) != tree->n)
        return 0;
    for (size_t i = 0; i < tree->n; i++) {
        const brc_hdf5_tree *field = &tree->items[i];
        const brc_json *member = brc_json_member(value, field->name);
        int fits = member ? brc_hdf5_value_read(w, field, member, element + field->at, err) : 0;
        if (fits != 1)
            return fits;
    }
    return 1;
}

static int put_list_value(const brc_hdf5_writer *w, const brc_hdf5_tree *tree,
                          const brc_json *value, void *element, brc_error *err)
{
    uint64_t n = brc_json_count(value), bytes;
    put_box box = {
        .w = w, .each = tree->items, .ndim = 1, .shape = &n, .step = tree->items->size
    };
    if (brc_json_kind(value) != BRC_JSON_ARRAY)
        return 0;
    if (!brc_mul_u64(n, box.step, &bytes) || bytes >= SIZE_MAX)
        return brc_nomem(err);
    box.at = brc_arena_take(w->arena, (size_t)bytes + 1);
    if (!box.at)
        return brc_nomem(err);
    memset(box.at, 0, (size_t)bytes + 1);
    hvl_t list = { n, n > 0 ? box.at : NULL };
    memcpy(element, &list, sizeof(list));
    return put_boxed(&box, 0, value, err);
}

int brc_hdf5_value_read(const brc_hdf5_writer *w, const brc_hdf5_tree *tree, const brc_json *value,
                        void *element, brc_error *err)
{
    put_box box = { .w = w, .tree = tree, .at = element };
    switch (tree->kind) {
    case BRC_HDF5_COMPOUND:
        return put_field_values(w, tree, value, element, err);
    case BRC_HDF5_LIST:
        return put_list_value(w, tree, value, element, err);
    case BRC_HDF5_ARRAY:
        box.each = tree->items;
        box.ndim = tree->ndim;
        box.shape = tree->shape;
        box.step = tree->items->size;
        return put_boxed(&box, 0, value, err);
    default:
        box.ndim = tree->type.ndim;
        box.shape = tree->type.shape;
        box.step = tree->type.item;
        return put_boxed(&box, 0, value, err);
    }
}

/* ==== hdf5 out attr ================================ */

/*
 * Writes attributes of HDF5. If a type is noted and the value still fits it, the attribute has this
 * type. Otherwise integers become int64 (uint64 where needed), other numbers float64, truth values
 * an enum, texts UTF-8 of variable length, lists simple dataspaces with as many axes as the lists
 * are deep, and null a null dataspace. All other values (objects, mixed lists, texts with U+0000)
 * become JSON text, and BRC_HDF5_ZARR names them, so that an import parses them again.
 */

typedef struct attr_writer {
    const brc_hdf5_out *out;
    hid_t object;
    const char *label, *name;
    const char *inner, *at; /* as in brc_hdf5_writer */
    const brc_dtype *array; /* the array's type; NULL: the attribute is a group's */
    int ndim;               /* -1: a null dataspace */
    hsize_t shape[BRC_MAX_NDIM];
} attr_writer;

static int attr_not_written(const attr_writer *w, brc_error *err)
{
    return brc_hdf5_fail(err, BRC_EINVAL,
                         "%s: its attribute \"%.80s\" cannot be "
                         "written to HDF5",
                         w->label, w->name);
}

/* Writes an attribute of the type `file`. If `memory` is NULL, the data has the type `file` too. */
static int put_attribute(const attr_writer *w, hid_t file, hid_t memory, const void *data,
                         brc_error *err)
{
    hid_t space = w->ndim < 0    ? H5Screate(H5S_NULL)
                  : w->ndim == 0 ? H5Screate(H5S_SCALAR)
                                 : H5Screate_simple(w->ndim, w->shape, NULL);
    hid_t attribute = space < 0 ? BRC_HDF5_NONE
                                : H5Acreate2(w->object, w->name, file, space,
                                                  w->out->attr_names, H5P_DEFAULT);
    int rc = BRC_OK;
    if (attribute < 0 || (data && H5Awrite(attribute, memory, data) < 0))
        rc = attr_not_written(w, err);
    brc_hdf5_close(attribute);
    brc_hdf5_close(space);
    return rc;
}

static int put_typed(const attr_writer *w, const char *dtype, const brc_json *note,
                     const void *data, brc_error *err)
{
    hid_t file = BRC_HDF5_NONE;
    brc_hdf5_type type;
    brc_json *json;

    BRC_TRY(brc_convert_dtype_json(&json, dtype, err));
    int rc = brc_hdf5_type_make(&file, w->out->reg, json, note, BRC_HDF5_WRITING, w->label, err);
    brc_json_free(json);
    BRC_TRY(rc);
    rc = brc_hdf5_type_read(&type, w->out->reg, file, BRC_HDF5_WRITING, w->label, err);
    if (rc == BRC_OK) {
        rc = put_attribute(w, file, type.memory, data, err);
        brc_hdf5_type_close(&type);
    }
    brc_hdf5_close(file);
    return rc;
}

/* ---- lists in lists -------------------------------- */

/* Takes a value that ends the descent. Returns 1 if it takes the value, 0 if it does not, below 0
 * on failure. */
typedef int (*leaf_fn)(void *ctx, const brc_json *value);

/* Returns 1 if the lists are a box, and hands its values on in order. */
static int walk_lists(attr_writer *w, const brc_json *value, int depth, leaf_fn leaf, void *ctx)
{
    int taken = leaf(ctx, value);
    if (taken != 0 || brc_json_kind(value) != BRC_JSON_ARRAY) {
        if (w->ndim < 0)
            w->ndim = depth;
        return taken > 0 && depth == w->ndim;
    }
    size_t n = brc_json_count(value);
    if (depth == BRC_MAX_NDIM || (w->ndim >= 0 && (depth >= w->ndim || w->shape[depth] != n)))
        return 0;
    if (w->ndim < 0)
        w->shape[depth] = n;
    if (n == 0) {
        if (w->ndim < 0)
            w->ndim = depth + 1;
        return depth + 1 == w->ndim;
    }
    for (const brc_json *item = brc_json_first(value); item; item = brc_json_next(item))
        if (!walk_lists(w, item, depth + 1, leaf, ctx))
            return 0;
    return 1;
}

/* ---- a noted type -------------------------------- */

typedef struct typed_values {
    const brc_dtype *type;
    brc_buf data; /* canonical elements */
    int nomem;
} typed_values;

static int is_number_type(const brc_dtype *type)
{
    return type->klass == BRC_CLASS_FLOAT || type->klass == BRC_CLASS_COMPLEX;
}

static int has_text(const brc_json *value)
{
    for (const brc_json *v = brc_json_first(value); v; v = brc_json_next(v))
        if (has_text(v))
            return 1;
    return brc_json_kind(value) == BRC_JSON_STRING;
}

/* Takes one value. Complex numbers and raw bytes are lists themselves, so each list is tried as a
 * value first. A text is not a number here, although fill values may be texts. */
static int take_typed(void *ctx, const brc_json *value)
{
    typed_values *v = ctx;
    if (is_number_type(v->type) && brc_json_kind(value) == BRC_JSON_STRING)
        return -1;
    if (v->type->klass == BRC_CLASS_COMPLEX && brc_json_count(value) == 2 && has_text(value))
        return -1;
    int rc = v->type->ops->parse(v->type, value, &v->data, NULL);
    v->nomem |= rc == BRC_ENOMEM;
    if (rc == BRC_OK)
        return 1;
    return brc_json_kind(value) == BRC_JSON_ARRAY ? 0 : -1;
}

/* Returns whether a float, or a part of a complex number, is NaN. Small floats have no complex
 * type. */
static int is_nan_at(const brc_dtype *type, const uint8_t *at)
{
    double value;
    float narrow;
    if (type->klass == BRC_CLASS_FLOAT)
        return isnan(type->ops->number(type, at));
    memcpy(&value, at, type->item_size == 16 ? sizeof(value) : sizeof(narrow));
    memcpy(&narrow, at, sizeof(narrow));
    return type->item_size == 16 ? isnan(value) : isnan(narrow);
}

/* Takes the noted elements where their values are still those of the JSON, because the bits of some
 * NaNs have no text. `data` is in native memory. */
static int take_noted_bits(const brc_dtype *type, const brc_json *noted, uint8_t *data, size_t len,
                           brc_error *err)
{
    const size_t size = type->item_size / (type->klass == BRC_CLASS_COMPLEX ? 2 : 1);
    brc_buf bytes = BRC_BUF_INIT;
    const char *text;
    if (!is_number_type(type) || !brc_json_text(brc_json_member(noted, "base64"), &text))
        return BRC_OK;
    int rc = brc_base64_read(&bytes, text, NULL);
    int same = rc == BRC_OK && bytes.len == len && len > 0;
    if (same)
        brc_dtype_native(type, bytes.data, bytes.len);
    for (size_t at = 0; same && at < len; at += size)
        same = memcmp(bytes.data + at, data + at, size) == 0 ||
               (is_nan_at(type, bytes.data + at) && is_nan_at(type, data + at));
    if (same)
        memcpy(data, bytes.data, len);
    brc_buf_dispose(&bytes);
    return rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK;
}

static int put_as_noted(attr_writer *w, const brc_json *value, const brc_json *data_type,
                        const brc_json *noted, int *done, brc_error *err)
{
    typed_values v = { 0 };
    brc_dtype *type = NULL;
    brc_buf json = BRC_BUF_INIT;
    int rc = brc_dtype_open(&type, w->out->reg, data_type, NULL, NULL);
    if (rc == BRC_ENOMEM)
        return brc_nomem(err);
    v.type = type;
    w->ndim = -1;
    if (rc < 0 || type->item_size == 0 || !walk_lists(w, value, 0, take_typed, &v)) {
        rc = v.nomem ? brc_nomem(err) : BRC_OK;
        goto done;
    }
    brc_dtype_native(type, v.data.data, v.data.len);
    BRC_GO(take_noted_bits(type, noted, v.data.data, v.data.len, err));
    BRC_GO(brc_json_write(&json, data_type, 0, err));
    BRC_GO(brc_buf_terminate(&json, err));
    BRC_GO(put_typed(w, (char *)json.data, brc_json_member(noted, "note"), v.data.data, err));
    *done = 1;
done:
    brc_dtype_free(type);
    brc_buf_dispose(&v.data);
    brc_buf_dispose(&json);
    return rc;
}

/* ---- a noted tree of types -------------------------------- */

/* Measures the lists, which must be as deep as the attribute has axes. */
static int measure_lists(attr_writer *w, const brc_json *value, uint64_t ndim)
{
    w->ndim = 0;
    for (uint64_t i = 0; i < ndim; i++) {
        if (i == BRC_MAX_NDIM || brc_json_kind(value) != BRC_JSON_ARRAY)
            return 0;
        w->shape[w->ndim++] = brc_json_count(value);
        value = brc_json_item(value, 0);
    }
    return 1;
}

typedef struct tree_values {
    const brc_hdf5_tree *tree;
    brc_hdf5_writer writer;
    uint8_t *at;
} tree_values;

static int take_tree_values(const attr_writer *w, tree_values *v, int axis, const brc_json *value,
                            brc_error *err)
{
    if (axis == w->ndim) {
        uint8_t *at = v->at;
        v->at += v->tree->size;
        return brc_hdf5_value_read(&v->writer, v->tree, value, at, err);
    }
    if (brc_json_kind(value) != BRC_JSON_ARRAY || brc_json_count(value) != w->shape[axis])
        return 0;
    for (const brc_json *item = brc_json_first(value); item; item = brc_json_next(item)) {
        int fits = take_tree_values(w, v, axis + 1, item, err);
        if (fits != 1)
            return fits;
    }
    return 1;
}

/* Writes values of a noted tree. Returns 1, or 0 if the value does not fit the type any more. */
static int put_tree_values(attr_writer *w, const brc_json *value, const brc_json *noted, hid_t file,
                           const brc_hdf5_tree *tree, brc_error *err)
{
    brc_arena arena = BRC_ARENA_INIT;
    tree_values v = { tree, { w->out, w->inner, w->at, w->label, &arena }, NULL };
    uint64_t n = 1;
    uint8_t *data;
    int rc;
    const int is_leaf = tree->kind == BRC_HDF5_LEAF && tree->type.kind == BRC_HDF5_FIXED;
    if (is_leaf && is_number_type(tree->dtype) && has_text(value))
        return 0;
    for (int i = 0; i < w->ndim; i++)
        if (!brc_mul_u64(n, w->shape[i], &n))
            return 0;
    BRC_TRY(brc_new_array((void **)&data, n > 0 ? n : 1, tree->size, err));
    v.at = data;
    rc = n > brc_json_count(value) && n > UINT32_MAX ? 0 : take_tree_values(w, &v, 0, value, err);
    if (rc == 1 && is_leaf && !tree->type.swap) {
        int bits = take_noted_bits(tree->dtype, noted, data, (size_t)n * tree->size, err);
        rc = bits < 0 ? bits : rc;
    }
    if (rc == 1) {
        rc = put_attribute(w, file, tree->memory, n > 0 ? data : NULL, err);
        rc = rc < 0 ? rc : 1;
    }
    free(data);
    brc_arena_dispose(&arena);
    return rc;
}

/* Writes an attribute of a noted type; `noted` is the object that brc_hdf5_attrs_read() makes. */
static int put_as_tree(attr_writer *w, const brc_json *value, const brc_json *noted, int *done,
                       brc_error *err)
{
    brc_hdf5_tree tree;
    hid_t file = BRC_HDF5_NONE;
    uint64_t ndim = 0;
    if (!brc_json_uint(brc_json_member(noted, "ndim"), BRC_MAX_NDIM, &ndim) ||
        !measure_lists(w, value, ndim))
        return BRC_OK;
    brc_hdf5_writer writer = { w->out, w->inner, w->at, w->label, NULL };
    int rc = hdf5_type_noted(&writer, &file, brc_json_member(noted, "type"),
                             brc_json_member(noted, "committed"), NULL);
    if (rc < 0)
        return rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK;
    rc = brc_hdf5_tree_read(&tree, w->out->reg, file, BRC_HDF5_WRITING, w->label, err);
    if (rc == BRC_OK) {
        rc = put_tree_values(w, value, noted, file, &tree, err);
        brc_hdf5_tree_close(&tree);
    }
    brc_hdf5_close(file);
    *done = rc == 1;
    return rc < 0 ? rc : BRC_OK;
}

/* ---- what JSON says -------------------------------- */

static int put_texts(const attr_writer *w, char **texts, brc_error *err)
{
    return put_typed(w, "string", NULL, texts, err);
}

static int put_bools(const attr_writer *w, const brc_attr *attr, brc_error *err)
{
    uint8_t *bools;
    BRC_TRY(brc_new((void **)&bools, attr->n, err));
    for (size_t i = 0; i < attr->n; i++)
        bools[i] = (uint8_t)attr->ints[i];
    int rc = put_typed(w, "bool", NULL, bools, err);
    free(bools);
    return rc;
}

static int put_values(const attr_writer *w, const brc_attr *attr, brc_error *err)
{
    switch (attr->kind) {
    case BRC_ATTR_TEXT:
        return put_texts(w, attr->texts, err);
    case BRC_ATTR_BOOL:
        return put_bools(w, attr, err);
    case BRC_ATTR_INT:
        return put_typed(w, "int64", NULL, attr->ints, err);
    case BRC_ATTR_UINT:
        return put_typed(w, "uint64", NULL, attr->uints, err);
    default:
        return put_typed(w, "float64", NULL, attr->floats, err);
    }
}

typedef struct flat_list {
    brc_json *list;
    int rc;
    int fraction; /* a number has a point or an exponent, or is NaN or infinite */
    int past_53;  /* an integer that float64 may not hold */
    int past_64;  /* an integer that no integer type of HDF5 holds */
} flat_list;

static void look_at_number(flat_list *flat, const brc_json *value)
{
    const int64_t most = INT64_C(1) << 53;
    int64_t i;
    uint64_t u;
    if (brc_json_kind(value) != BRC_JSON_NUMBER)
        return;
    if (brc_json_is_nan(value) || strpbrk(brc_json_literal(value), ".eE"))
        flat->fraction = 1;
    else if (!brc_json_int(value, INT64_MIN, INT64_MAX, &i) &&
             !brc_json_uint(value, UINT64_MAX, &u))
        flat->past_64 = 1;
    else
        flat->past_53 |= !brc_json_int(value, -most, most, &i);
}

/* Adds one value to the list of all values. */
static int take_flat(void *ctx, const brc_json *value)
{
    flat_list *flat = ctx;
    brc_json *copy;
    if (brc_json_kind(value) == BRC_JSON_ARRAY)
        return 0;
    if (brc_json_kind(value) == BRC_JSON_OBJECT || flat->rc < 0)
        return -1;
    look_at_number(flat, value);
    flat->rc = brc_json_clone(&copy, value, NULL);
    if (flat->rc == BRC_OK)
        flat->rc = brc_json_push(flat->list, copy, NULL);
    return flat->rc == BRC_OK ? 1 : -1;
}

/* Writes an attribute without a noted type. Sets *done to 0 if HDF5 has no such value. */
static int put_plain(attr_writer *w, const brc_json *value, int *done, brc_error *err)
{
    flat_list flat = { .list = brc_json_new_array() };
    brc_attr attr;
    int rc = BRC_OK;

    w->ndim = -1;
    if (!flat.list)
        return brc_nomem(err);
    int is_box = walk_lists(w, value, 0, take_flat, &flat);
    if (flat.rc < 0)
        rc = brc_nomem(err);
    if (rc < 0 || !is_box || flat.past_64 || (flat.fraction && flat.past_53))
        goto done;
    if (brc_json_count(flat.list) == 0) {
        *done = 1;
        rc = put_typed(w, "float64", NULL, NULL, err);
        goto done;
    }
    BRC_GO(brc_attr_open(&attr, flat.list, err));
    if (attr.kind != BRC_ATTR_JSON) {
        *done = 1;
        rc = put_values(w, &attr, err);
    }
    brc_attr_close(&attr);
done:
    brc_json_free(flat.list);
    return rc;
}

static int put_json(attr_writer *w, const brc_json *value, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    w->ndim = 0;
    BRC_GO(brc_json_write(&text, value, 0, err));
    BRC_GO(brc_buf_terminate(&text, err));
    char *pointer = (char *)text.data;
    rc = put_texts(w, &pointer, err);
done:
    brc_buf_dispose(&text);
    return rc;
}

/* ---- all of an object -------------------------------- */

static int check_name(const attr_writer *w, const brc_json *value, int is_array, brc_error *err)
{
    static const char *const structure[] = { "DIMENSION_LIST", "DIMENSION_LABELS",
                                             "REFERENCE_LIST" };
    int taken = strcmp(w->name, BRC_HDF5_ZARR) == 0;
    for (size_t i = 0; is_array && i < sizeof(structure) / sizeof(structure[0]); i++)
        taken |= strcmp(w->name, structure[i]) == 0;
    if (is_array && strcmp(w->name, "CLASS") == 0)
        taken |= brc_json_is(value, "DIMENSION_SCALE");
    if (strstr(w->name, BRC_JSON_NUL))
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s: the name of an attribute contains U+0000, which HDF5 does not allow: "
                        "rename or remove the attribute",
                        w->label);
    if (taken)
        return brc_fail(
            err, BRC_EINVAL,
            "%s: its attribute %s has a meaning of its own in HDF5: rename or remove it", w->label,
            w->name);
    return BRC_OK;
}

/* Returns the data type in an attribute's note. The note is a data type, or an object that has a
 * data type and a note or elements. */
static const brc_json *noted_type(const brc_json *noted)
{
    const brc_json *data_type = brc_json_member(noted, "data_type");
    return data_type ? data_type : noted;
}

/* Writes an attribute that has a form of its own in Zarr. Sets *done to 1 if it did so. */
static int put_fill_attr(attr_writer *w, const brc_json *value, const brc_json *notes, int *done,
                         brc_error *err)
{
    const brc_json *note = brc_json_member(brc_json_member(notes, "attributes"), w->name);
    brc_json *own, *type;
    BRC_TRY(brc_hdf5_fill_attr_out(&own, &type, value, note, w->array, err));
    int rc = own ? put_as_noted(w, own, type, NULL, done, err) : BRC_OK;
    brc_json_free(own);
    brc_json_free(type);
    return rc;
}

/* Writes an attribute. Sets *as_text to 1 if the value was written as JSON text. */
static int write_attribute(attr_writer *w, const brc_json *value, const brc_json *notes,
                           int *as_text, brc_error *err)
{
    const brc_json *noted = brc_json_member(brc_json_member(notes, "attributes"), w->name);
    int done = 0;
    *as_text = 0;
    if (brc_json_kind(value) == BRC_JSON_NULL) {
        w->ndim = -1;
        return put_typed(w,
                         "{\"name\":\"null_terminated_bytes\",\"configuration\":"
                         "{\"length_bytes\":1}}",
                         NULL, NULL, err);
    }
    if (w->array && strcmp(w->name, BRC_ATTR_FILL) == 0)
        BRC_TRY(put_fill_attr(w, value, notes, &done, err));
    if (!done && brc_json_member(noted, "type"))
        BRC_TRY(put_as_tree(w, value, noted, &done, err));
    else if (!done && noted)
        BRC_TRY(put_as_noted(w, value, noted_type(noted), noted, &done, err));
    if (!done)
        BRC_TRY(put_plain(w, value, &done, err));
    if (done)
        return BRC_OK;
    *as_text = 1;
    return put_json(w, value, err);
}

static int note_text(brc_json **texts, const char *name, brc_error *err)
{
    if (!*texts)
        *texts = brc_json_new_array();
    if (!*texts)
        return brc_nomem(err);
    return brc_json_push(*texts, brc_json_new_string(name), err);
}

/* Writes the attribute that holds the facts that only Zarr has. */
static int write_zarr(attr_writer *w, brc_json **zarr, brc_json **texts, brc_error *err)
{
    w->name = BRC_HDF5_ZARR;
    if (*texts) {
        if (!*zarr && !(*zarr = brc_json_new_object()))
            return brc_nomem(err);
        brc_json *given = *texts;
        *texts = NULL;
        BRC_TRY(brc_json_set(*zarr, "json", given, err));
    }
    return *zarr ? put_json(w, *zarr, err) : BRC_OK;
}

int brc_hdf5_attrs_write(const brc_hdf5_out *out, hid_t object, const char *inner,
                         const brc_json *doc, const brc_dtype *array, brc_json *zarr,
                         const char *label, brc_error *err)
{
    attr_writer w = {
        .out = out, .object = object, .label = label, .array = array, .inner = inner
    };
    const brc_json *attrs = brc_json_member(doc, "attributes");
    const brc_json *notes =
        array ? brc_json_member(doc, BRC_HDF5_NOTE) : brc_json_member(attrs, BRC_HDF5_GROUP_NOTE);
    brc_json *texts = NULL;
    int rc = BRC_OK, as_text;

    if (brc_json_kind(notes) != BRC_JSON_OBJECT)
        notes = NULL;
    if (!brc_json_text(brc_json_member(notes, "at"), &w.at))
        w.at = NULL;
    for (const brc_json *a = brc_json_first(attrs); a; a = brc_json_next(a)) {
        w.name = brc_json_name(a);
        if (a == notes)
            continue;
        BRC_GO(check_name(&w, a, array != NULL, err));
        BRC_GO(write_attribute(&w, a, notes, &as_text, err));
        if (as_text)
            BRC_GO(note_text(&texts, w.name, err));
    }
    BRC_GO(write_zarr(&w, &zarr, &texts, err));
done:
    brc_json_free(texts);
    brc_json_free(zarr);
    return rc;
}
