/* JSON as values of any type, see hdf5_out.h. */
#include <stdlib.h>
#include <string.h>

#include "../../base/node_path.h"
#include "hdf5_out.h"
#include "hdf5_reference.h"

/* ---- paths -------------------------------- */

/* The length of what is before the last name. */
static size_t parent_len(const char *path, size_t len)
{
    while (len > 0 && path[len - 1] != '/')
        len--;
    return len > 0 ? len - 1 : 0;
}

/* Takes names off the ends of both as long as they are the same. */
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

/* 1 and, with a zero behind, what a path of the file that an object came from is in this one; 0: it
 * is not in this one; below 0: an error. */
static int path_here(const brc_hdf5_writer *w, const char *path, size_t len, brc_buf *out,
                     brc_error *err)
{
    const char *at = w->at && w->at[0] == '/' ? w->at : "/";
    char *inner;
    int rc;
    BRC_TRY(brc_node_join(&inner, "/", w->inner, err));
    size_t at_len = at[1] ? strlen(at) : 0, here_len = inner[1] ? strlen(inner) : 0;
    if (at_len > 0 && here_len > 0) { /* the object itself may have got another name */
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

/* The committed type of that path, if it is the same type. */
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

int brc_hdf5_type_noted(const brc_hdf5_writer *w, hid_t *out, const brc_json *tree,
                        const brc_json *committed, brc_error *err)
{
    BRC_TRY(brc_hdf5_tree_make(out, w->out->reg, tree, w->label, err));
    int rc = brc_hdf5_type_committed(w, out, committed, err);
    if (rc < 0) {
        brc_hdf5_close(*out);
        *out = BRC_HDF5_NONE;
    }
    return rc;
}

/* ---- values -------------------------------- */

/* Text with zeros behind. */
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

/* Lists in lists of a shape: `each` elements of a tree, or items of a leaf (NULL). */
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
