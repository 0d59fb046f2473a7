/* Values of any type as JSON, see hdf5_in.h. */
#include <string.h>

#include "hdf5_in.h"

static int print_span(const brc_hdf5_in *in, const brc_hdf5_tree *leaf, const void *item,
                      brc_buf *out, const char *label, brc_error *err)
{
    brc_buf span = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_hdf5_memory_span(in, &leaf->type, item, &span, label, err));
    BRC_GO(leaf->dtype->ops->print(leaf->dtype, span.data, span.len, BRC_PRINT_FILL, out, err));
done:
    brc_buf_dispose(&span);
    return rc;
}

static int print_text(const char *text, size_t len, brc_buf *out, brc_error *err)
{
    brc_json *json = brc_attr_text(text, len);
    if (!json)
        return brc_nomem(err);
    int rc = brc_json_write(out, json, err);
    brc_json_free(json);
    return rc;
}

int brc_hdf5_is_fixed_text(const brc_dtype *type)
{
    return type->klass == BRC_CLASS_BYTES && type->item_size > 0;
}

static int print_item(const brc_hdf5_in *in, const brc_hdf5_tree *leaf, const uint8_t *item,
                      brc_buf *out, const char *label, brc_error *err)
{
    if (leaf->type.kind == BRC_HDF5_STRING) {
        const char *text = *(char *const *)(const void *)item;
        return print_text(text ? text : "", text ? strlen(text) : 0, out, err);
    }
    if (leaf->type.kind != BRC_HDF5_FIXED)
        return print_span(in, leaf, item, out, label, err);
    if (brc_hdf5_is_fixed_text(leaf->dtype))
        return print_text((const char *)item, leaf->type.item, out, err);
    return leaf->dtype->ops->print(leaf->dtype, item, leaf->type.item, BRC_PRINT_FILL, out, err);
}

/* Values to print in order: elements of the type `each`, or, if that is NULL, items of a leaf. */
typedef struct value_box {
    const brc_hdf5_in *in;
    const brc_hdf5_tree *tree, *each;
    int ndim;
    const uint64_t *shape;
    uint8_t *at;
    size_t step;
    const char *label;
} value_box;

static int print_box(value_box *box, int axis, brc_buf *out, brc_error *err)
{
    if (axis == box->ndim) {
        uint8_t *at = box->at;
        box->at += box->step;
        return box->each ? brc_hdf5_value_print(box->in, box->each, at, out, box->label, err)
                         : print_item(box->in, box->tree, at, out, box->label, err);
    }
    BRC_TRY(brc_buf_byte(out, '[', err));
    for (uint64_t i = 0; i < box->shape[axis]; i++) {
        if (i > 0)
            BRC_TRY(brc_buf_byte(out, ',', err));
        if (out->len > BRC_HDF5_VALUE_BYTES)
            return brc_fail(err, BRC_ELIMIT, "%s: a value in it is too long", box->label);
        BRC_TRY(print_box(box, axis + 1, out, err));
    }
    return brc_buf_byte(out, ']', err);
}

static int print_fields(const brc_hdf5_in *in, const brc_hdf5_tree *tree, uint8_t *element,
                        brc_buf *out, const char *label, brc_error *err)
{
    for (size_t i = 0; i < tree->n; i++) {
        const brc_hdf5_tree *field = &tree->items[i];
        BRC_TRY(brc_buf_byte(out, i > 0 ? ',' : '{', err));
        BRC_TRY(brc_json_quote(out, field->name, strlen(field->name), err));
        BRC_TRY(brc_buf_byte(out, ':', err));
        BRC_TRY(brc_hdf5_value_print(in, field, element + field->at, out, label, err));
    }
    return brc_buf_byte(out, '}', err);
}

int brc_hdf5_value_print(const brc_hdf5_in *in, const brc_hdf5_tree *tree, void *element,
                         brc_buf *out, const char *label, brc_error *err)
{
    value_box box = { .in = in, .tree = tree, .at = element, .label = label };
    hvl_t list;
    uint64_t len;
    switch (tree->kind) {
    case BRC_HDF5_COMPOUND:
        return print_fields(in, tree, element, out, label, err);
    case BRC_HDF5_LIST:
        memcpy(&list, element, sizeof(list));
        len = list.p ? list.len : 0;
        box.each = tree->items;
        box.ndim = 1;
        box.shape = &len;
        box.at = list.p;
        box.step = tree->items->size;
        return print_box(&box, 0, out, err);
    case BRC_HDF5_ARRAY:
        box.each = tree->items;
        box.ndim = tree->ndim;
        box.shape = tree->shape;
        box.step = tree->items->size;
        return print_box(&box, 0, out, err);
    default:
        if (tree->type.kind == BRC_HDF5_FIXED)
            BRC_TRY(brc_hdf5_canonical(&tree->type, tree->dtype, element, 1, label, err));
        box.ndim = tree->type.ndim;
        box.shape = tree->type.shape;
        box.step = tree->type.item;
        return print_box(&box, 0, out, err);
    }
}

const char *brc_hdf5_committed(const brc_hdf5_in *in, hid_t type)
{
    return H5Tcommitted(type) > 0 && !in->paths.from ? brc_hdf5_path_of_object(&in->paths, type)
                                                     : NULL;
}
