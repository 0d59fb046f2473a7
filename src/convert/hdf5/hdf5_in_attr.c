/* Reads the elements and attributes of HDF5's objects: how a dataset is stored and whether all of
 * it exists, elements in Zarr's form, values as JSON, the names of axes, and attributes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../codec/registry.h"
#include "../../nd/dtype_text.h"
#include "hdf5_heap.h"
#include "hdf5_in.h"
#include "hdf5_tree.h"
#include "hdf5_type.h"

static int hdf5_attr_value(brc_json **out, const brc_hdf5_in *in, hid_t object, const char *name,
                           const char *label, brc_error *err);

/* ==== hdf5 in storage ================================ */

int brc_hdf5_storage_check(int *chunked, hid_t plist, const char *label, brc_error *err)
{
    H5D_layout_t layout = H5Pget_layout(plist);
    if (layout < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: its storage layout cannot be read", label);
    *chunked = layout == H5D_CHUNKED;
    return BRC_OK;
}

/* In the file an element of variable length is a length of 4 bytes, an address and a number of 4
 * bytes ("Global Heap ID" in the format's specification): at least as many bytes as its pointers
 * have in memory. */
#define HEAP_ID_BYTES 16 /* with addresses of 8 bytes */
static int has_long_addresses(hid_t dataset)
{
    size_t address = 0, length;
    hid_t file = H5Iget_file_id(dataset), plist = file < 0 ? -1 : H5Fget_create_plist(file);
    if (plist < 0 || H5Pget_sizes(plist, &address, &length) < 0)
        address = 0;
    brc_hdf5_close(plist);
    brc_hdf5_close(file);
    return address == 8;
}

int brc_hdf5_size_check(hid_t dataset, hid_t type, int ndim, const uint64_t *shape,
                        const char *label, brc_error *err)
{
    if (brc_hdf5_is_virtual(dataset)) /* the size of its sources is checked instead */
        return BRC_OK;
    uint64_t bytes, stored = H5Dget_storage_size(dataset);
    int is_one = H5Tget_class(type) == H5T_VLEN || H5Tis_variable_str(type) > 0;
    int varies = H5Tdetect_class(type, H5T_VLEN) > 0 || H5Tdetect_class(type, H5T_STRING) > 0;
    if (stored == 0 || (varies && !has_long_addresses(dataset)) ||
        (brc_shape_bytes(ndim, shape, is_one ? HEAP_ID_BYTES : H5Tget_size(type), &bytes) &&
         bytes <= stored))
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL, "%s: its elements have %llu bytes, fewer than its shape needs",
                    label, (unsigned long long)stored);
}

/* ==== hdf5 in elements ================================ */

/* Turns elements from the library's form into Zarr's canonical form, see hdf5_in.h. */

/* The most memory that elements of variable length may take at once. */
#define VARIABLE_BYTES ((size_t)1 << 30)

/* Turns the lowest `bits` bits of the integer into a signed number of its whole size. */
static void extend_sign(uint8_t *at, size_t size, unsigned bits)
{
    uint64_t sign = UINT64_C(1) << (bits - 1), value = 0;
    size_t first = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 8 - size : 0;
    uint8_t bytes[8] = { 0 };
    memcpy(bytes + first, at, size);
    memcpy(&value, bytes, sizeof(value));
    value = ((value & (2 * sign - 1)) ^ sign) - sign;
    memcpy(bytes, &value, sizeof(value));
    memcpy(at, bytes + first, size);
}

static int mend_part(const struct brc_hdf5_part *part, uint8_t *data, uint64_t items, size_t step,
                     const char *label, brc_error *err)
{
    uint8_t *at = data + part->at;
    for (uint64_t i = 0; i < items; i++, at += step) {
        if (part->bits > 0)
            extend_sign(at, part->size, part->bits);
        else if (*at > 1)
            return brc_part_refuse(
                err, BRC_PART_VALUE, NULL,
                "%s: an element of FALSE = 0 and TRUE = 1 is %d, which is neither", label, *at);
    }
    return BRC_OK;
}

int brc_hdf5_is_doubtful(const brc_hdf5_type *type)
{
    int is = type->kind == BRC_HDF5_STRING || type->kind == BRC_HDF5_OBJECT ||
             type->kind == BRC_HDF5_REGION; /* a region may lead nowhere */
    for (size_t i = 0; i < type->nparts; i++)
        is |= type->parts[i].bits == 0;
    return is;
}

int brc_hdf5_canonical(const brc_hdf5_type *type, const brc_dtype *dtype, uint8_t *data, uint64_t n,
                       const char *label, brc_error *err)
{
    uint64_t items = n * (type->size / type->item);
    for (size_t i = 0; i < type->nparts; i++)
        BRC_TRY(mend_part(&type->parts[i], data, items, type->item, label, err));
    if (type->swap)
        brc_dtype_swap(dtype, data, data, items);
    brc_dtype_native(dtype, data, items * type->item);
    brc_dtype_normalize(dtype, data, items);
    return BRC_OK;
}

static int append_span(brc_buf *out, const void *data, size_t len, const char *label,
                       brc_error *err)
{
    uint8_t count[4];
    if (len > UINT32_MAX)
        return brc_part_refuse(err, BRC_PART_SIZE, NULL,
                               "%s: an element has more than 2^32-1 bytes", label);
    brc_put_u32le(count, (uint32_t)len);
    BRC_TRY(brc_buf_append(out, count, sizeof(count), err));
    return len > 0 ? brc_buf_append(out, data, len, err) : BRC_OK;
}

/* Appends a text, which ends at its first zero byte. */
static int append_checked(brc_buf *out, const brc_hdf5_type *type, brc_span bytes,
                          const char *label, brc_error *err)
{
    if (type->kind == BRC_HDF5_STRING) {
        bytes.len = strnlen((const char *)bytes.data, bytes.len);
        if (!brc_utf8_valid((const char *)bytes.data, bytes.len))
            return brc_part_refuse(err, BRC_PART_VALUE, "convert it first",
                                   "%s: one of its strings is not UTF-8", label);
    }
    return append_span(out, bytes.data, bytes.len, label, err);
}

static int append_reference(const brc_hdf5_in *in, const brc_hdf5_type *type, const void *element,
                            brc_buf *out, const char *label, brc_error *err)
{
    static const uint8_t count[4];
    size_t start = out->len;
    BRC_TRY(brc_buf_append(out, count, sizeof(count), err));
    BRC_TRY(brc_hdf5_reference_text(&in->paths, in->id, type->kind == BRC_HDF5_REGION, element, out,
                                    label, err));
    brc_put_u32le(out->data + start, (uint32_t)(out->len - start - 4));
    return BRC_OK;
}

int brc_hdf5_memory_span(const brc_hdf5_in *in, const brc_hdf5_type *type, const void *element,
                         brc_buf *out, const char *label, brc_error *err)
{
    if (type->kind == BRC_HDF5_OBJECT || type->kind == BRC_HDF5_REGION)
        return append_reference(in, type, element, out, label, err);
    const char *text = type->kind == BRC_HDF5_STRING ? *(char *const *)element : NULL;
    const hvl_t *list = element;
    brc_span bytes = { (const uint8_t *)text, text ? strlen(text) : 0 };
    if (type->kind == BRC_HDF5_BYTES)
        bytes = (brc_span){ list->p, list->p ? list->len : 0 };
    if (bytes.len == 0)
        bytes.data = (const uint8_t *)"";
    return append_checked(out, type, bytes, label, err);
}

/* ---- elements of variable length in memory -------------------------------- */

static void *take_memory(size_t size, void *ctx)
{
    brc_hdf5_memory *memory = ctx;
    memory->is_full |= size > memory->most - memory->taken;
    if (memory->is_full)
        return NULL;
    memory->taken += size;
    return brc_arena_take(&memory->arena, size);
}

static void give_memory_back(void *at, void *ctx)
{
    (void)at, (void)ctx; /* the arena frees everything at once */
}

int brc_hdf5_read_lists(brc_hdf5_memory *taken, hid_t dataset, hid_t type, hid_t memory,
                        hid_t space, void *elements, const char *label, brc_error *err)
{
    BRC_TRY(brc_hdf5_heap_check(dataset, space, label, err));
    hid_t plist = H5Pcreate(H5P_DATASET_XFER);
    int rc = 1;
    if (plist < 0 ||
        H5Pset_vlen_mem_manager(plist, take_memory, taken, give_memory_back, taken) < 0 ||
        H5Dread(dataset, type, memory, space, plist, elements) < 0)
        rc = taken->is_full
                 ? 0
                 : brc_hdf5_fail(err, BRC_EINVAL, "%s: its elements cannot be read", label);
    brc_hdf5_close(plist);
    return rc;
}

int brc_hdf5_spans(const brc_hdf5_in *in, const brc_hdf5_type *type, hid_t dataset, hid_t memory,
                   hid_t space, uint64_t n, brc_buf *out, const char *label, brc_error *err)
{
    brc_hdf5_memory taken = { BRC_ARENA_INIT, 0, VARIABLE_BYTES, 0 };
    uint8_t *elements = NULL;
    int rc;

    BRC_GO(brc_new_array((void **)&elements, n, type->size, err));
    BRC_GO(brc_hdf5_read_lists(&taken, dataset, type->memory, memory, space, elements, label, err));
    if (rc == 0) {
        rc = brc_fail(err, BRC_ELIMIT, "%s: the elements of a few chunks have more than %zu MiB",
                      label, VARIABLE_BYTES >> 20);
        goto done;
    }
    rc = BRC_OK;
    for (uint64_t i = 0; i < n * (type->size / type->item); i++)
        BRC_GO(brc_hdf5_memory_span(in, type, elements + i * type->item, out, label, err));
done:
    free(elements);
    brc_arena_dispose(&taken.arena);
    return rc;
}

/* ==== hdf5 in value ================================ */

/* Prints values of any type as JSON, see hdf5_in.h. */

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
    int rc = brc_json_write(out, json, 0, err);
    brc_json_free(json);
    return rc;
}

/* Returns whether the type is text of a fixed length. */
static int hdf5_is_fixed_text(const brc_dtype *type)
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
    if (hdf5_is_fixed_text(leaf->dtype))
        return print_text((const char *)item, leaf->type.item, out, err);
    return leaf->dtype->ops->print(leaf->dtype, item, leaf->type.item, BRC_PRINT_FILL, out, err);
}

/* Values to print in order: elements of the type `each`, or items of a leaf if `each` is NULL. */
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
            return brc_fail(err, BRC_ELIMIT, "%s: one of its values is too long", box->label);
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

/* ==== hdf5 fill attr ================================ */

/*
 * The attribute _FillValue of an array. In HDF5 the attribute has the array's type, and is often a
 * list of one value. xarray's reader of Zarr expects one number for integers, and the base64 of a
 * little-endian double for floats; it fails on a whole group where it finds anything else.
 */

static int is_integer_type(const brc_dtype *type)
{
    return (type->klass == BRC_CLASS_INT || type->klass == BRC_CLASS_UINT) && type->npy;
}

static int is_float_type(const brc_dtype *type)
{
    return brc_attr_fill_is_packed(type->name) && type->ops->number;
}

static int open_named(brc_dtype **out, const brc_registry *reg, const char *name)
{
    *out = NULL;
    return name ? brc_dtype_open(out, reg, NULL, name, NULL) : BRC_EINVAL;
}

/* ---- in -------------------------------- */

/* Returns the name of the type that the attribute had; NULL if the attribute needs no
 * conversion. */
static const char *type_of_value(const brc_json *types, const brc_json *value)
{
    const brc_json *noted = brc_json_member(types, BRC_ATTR_FILL);
    const char *text;
    if (noted)
        return brc_json_text(noted, &text) ? text : NULL;
    if (brc_json_kind(value) != BRC_JSON_NUMBER)
        return NULL;
    return brc_json_is_nan(value) || strpbrk(brc_json_literal(value), ".eE") ? "float64" : "int64";
}

/* Sets *out to the value in xarray's form, or to NULL if the value stays as it is. */
static int value_for_zarr(brc_json **out, const brc_json *value, const brc_dtype *array,
                          const brc_dtype *own, brc_error *err)
{
    brc_buf element = BRC_BUF_INIT;
    int rc = BRC_OK;
    *out = NULL;
    if (is_integer_type(array) && is_integer_type(own))
        return brc_json_clone(out, value, err);
    if (!is_float_type(array) || !is_float_type(own) ||
        own->ops->parse(own, value, &element, NULL) < 0)
        goto done;
    *out = brc_attr_fill(own->ops->number(own, element.data));
    rc = *out ? BRC_OK : brc_nomem(err);
done:
    brc_buf_dispose(&element);
    return rc;
}

/* Notes the attribute's type, unless an export of the array would write this type, and no list,
 * anyway. */
static int note_fill_type(brc_json **types, const char *own, int list, const brc_dtype *array,
                          brc_error *err)
{
    brc_json *note;
    brc_buf text = BRC_BUF_INIT;
    int rc;
    if (!list && strcmp(own, array->name) == 0) {
        if (*types)
            brc_json_remove(*types, BRC_ATTR_FILL);
        return BRC_OK;
    }
    BRC_GO(
        brc_buf_printf(&text, err, list ? "{\"data_type\":\"%s\",\"shape\":[1]}" : "\"%s\"", own));
    BRC_GO(brc_json_parse(&note, (const char *)text.data, text.len, 0, err));
    if (!*types && !(*types = brc_json_new_object())) {
        brc_json_free(note);
        rc = brc_nomem(err);
        goto done;
    }
    rc = brc_json_set(*types, BRC_ATTR_FILL, note, err);
done:
    brc_buf_dispose(&text);
    return rc;
}

int brc_hdf5_fill_attr_in(brc_json *values, brc_json **types, const brc_dtype *array,
                          const brc_registry *reg, brc_error *err)
{
    const brc_json *value = brc_json_member(values, BRC_ATTR_FILL);
    int list = brc_json_kind(value) == BRC_JSON_ARRAY && brc_json_count(value) == 1, rc = BRC_OK;
    brc_json *changed = NULL;
    brc_dtype *own = NULL;
    char *name = NULL;

    if (list)
        value = brc_json_first(value);
    const char *noted = type_of_value(*types, value);
    if (open_named(&own, reg, noted) < 0)
        return BRC_OK;
    BRC_GO(brc_dup(&name, noted, err)); /* the noted text is replaced */
    BRC_GO(value_for_zarr(&changed, value, array, own, err));
    if (!changed)
        goto done;
    BRC_GO(brc_json_set(values, BRC_ATTR_FILL, changed, err));
    BRC_GO(note_fill_type(types, name, list, array, err));
done:
    brc_dtype_free(own);
    free(name);
    return rc;
}

/* ---- out -------------------------------- */

/* Returns whether the type has the number. */
static int type_holds(const brc_dtype *type, const brc_json *json, double value)
{
    brc_buf element = BRC_BUF_INIT;
    double back = 0;
    int parsed = type->ops->parse(type, json, &element, NULL) == BRC_OK;
    if (parsed)
        back = type->ops->number(type, element.data);
    brc_buf_dispose(&element);
    return parsed && (back == value || (isnan(back) && isnan(value)));
}

/* Chooses the noted type, or the array's if there is no note. */
static int choose_fill_type(brc_json **out, const brc_dtype *array, const brc_json *noted,
                            const brc_json *json, double value, brc_error *err)
{
    if (noted)
        return brc_json_clone(out, noted, err);
    int fits = is_integer_type(array) || type_holds(array, json, value);
    return brc_convert_dtype_json(out, fits ? array->name : "float64", err);
}

int brc_hdf5_fill_attr_out(brc_json **value, brc_json **type, const brc_json *given,
                           const brc_json *note, const brc_dtype *array, brc_error *err)
{
    const brc_json *noted = brc_json_member(note, "data_type");
    double number = 0;
    int rc = BRC_OK;

    *value = *type = NULL;
    if (!noted)
        noted = note;
    if (is_float_type(array) && brc_attr_fill_value(given, &number)) {
        *value = brc_attr_float(number);
        if (!*value)
            return brc_nomem(err);
    } else if (is_integer_type(array) && brc_json_kind(given) == BRC_JSON_NUMBER) {
        BRC_TRY(brc_json_clone(value, given, err));
    } else {
        return BRC_OK;
    }
    BRC_GO(choose_fill_type(type, array, noted, *value, number, err));
    if (brc_json_member(note, "shape")) {
        brc_json *list = brc_json_new_array(), *item = *value;
        *value = list;
        if (!list) {
            brc_json_free(item);
            rc = brc_nomem(err);
            goto done;
        }
        rc = brc_json_push(list, item, err);
    }
done:
    if (rc < 0) {
        brc_json_free(*value);
        brc_json_free(*type);
        *value = *type = NULL;
    }
    return rc;
}

/* ==== hdf5 in scale ================================ */

/*
 * Reads the names of a dataset's axes from HDF5's dimension scales. An axis has a label
 * (DIMENSION_LABELS), or a scale is attached to it (DIMENSION_LIST: a list of references for each
 * axis): then the axis is called as the scale is, by its attribute NAME or by its link. A dataset
 * of one axis that is a scale gives its own axis its name.
 */

typedef struct scale_reader {
    const brc_hdf5_in *in;
    const char *label;
    int ndim;
    char **names;
    brc_hdf5_scale_fn *take; /* is called with each scale */
    void *ctx;
} scale_reader;

static int set_axis_name(const scale_reader *r, int axis, const char *text, brc_error *err)
{
    if (r->names[axis] || !*text)
        return BRC_OK;
    return brc_dup(&r->names[axis], text, err);
}

/* ---- labels -------------------------------- */

static int read_labels(const scale_reader *r, hid_t dataset, brc_error *err)
{
    brc_json *labels;
    const char *text;
    BRC_TRY(hdf5_attr_value(&labels, r->in, dataset, "DIMENSION_LABELS", r->label, err));
    int rc = BRC_OK;
    if (labels && brc_json_count(labels) != (size_t)r->ndim)
        rc = brc_fail(err, BRC_EINVAL, "%s: DIMENSION_LABELS has %zu labels for %d axes", r->label,
                      brc_json_count(labels), r->ndim);
    const brc_json *item = rc == BRC_OK ? brc_json_first(labels) : NULL;
    for (int i = 0; item && rc == BRC_OK; i++, item = brc_json_next(item))
        if (brc_json_text(item, &text))
            rc = set_axis_name(r, i, text, err);
    brc_json_free(labels);
    return rc;
}

/* ---- scales -------------------------------- */

/* Returns the last part of a path: "b" for "/a/b". */
static const char *part_after_slash(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Names the axis after the scale, which lies at `path`. */
static int scale_name(const scale_reader *r, hid_t scale, const char *path, int axis,
                      brc_error *err)
{
    brc_json *name;
    BRC_TRY(hdf5_attr_value(&name, r->in, scale, "NAME", r->label, err));
    const char *text;
    if (!brc_json_text(name, &text) || !*text ||
        strncmp(text, BRC_HDF5_NO_VARIABLE, strlen(BRC_HDF5_NO_VARIABLE)) == 0)
        text = part_after_slash(path);
    int rc = brc_utf8_valid(text, strlen(text)) ? set_axis_name(r, axis, text, err) : BRC_OK;
    brc_json_free(name);
    return rc;
}

static int referred_name(void *ctx, hid_t dataset, const void *reference, int axis, brc_error *err)
{
    const scale_reader *r = ctx;
    char path[1024] = "";
    if (r->names[axis])
        return BRC_OK;
    hid_t scale = H5Rdereference2(dataset, H5P_DEFAULT, H5R_OBJECT, reference);
    if (scale < 0)
        return brc_hdf5_fail(err, BRC_EINVAL,
                             "%s: the dimension scale of axis %d cannot be opened", r->label, axis);
    int rc = BRC_OK;
    if (H5Iget_type(scale) == H5I_DATASET) {
        if (H5Iget_name(scale, path, sizeof(path)) < 0)
            path[0] = 0;
        rc = scale_name(r, scale, path, axis, err);
    }
    brc_hdf5_close(scale);
    return rc;
}

/* Checks that DIMENSION_LIST is one list of references for each axis. */
static int check_lists(const scale_reader *r, hid_t type, hid_t space, brc_error *err)
{
    hid_t base = H5Tget_class(type) == H5T_VLEN ? H5Tget_super(type) : BRC_HDF5_NONE;
    hsize_t n = 0;
    int fits = base >= 0 && H5Tequal(base, H5T_STD_REF_OBJ) > 0 &&
               H5Sget_simple_extent_ndims(space) == 1 &&
               H5Sget_simple_extent_dims(space, &n, NULL) == 1 && n == (hsize_t)r->ndim;
    brc_hdf5_close(base);
    return fits ? BRC_OK
                : brc_fail(err, BRC_EINVAL,
                           "%s: DIMENSION_LIST is not one list of references per axis", r->label);
}

/* Takes the first scale of each axis. */
static int take_lists(const scale_reader *r, hid_t dataset, const hvl_t *lists, brc_error *err)
{
    for (int i = 0; i < r->ndim; i++)
        if (lists[i].len > 0 && lists[i].p)
            BRC_TRY(r->take(r->ctx, dataset, lists[i].p, i, err));
    return BRC_OK;
}

static int read_lists(const scale_reader *r, hid_t dataset, hid_t attribute, brc_error *err)
{
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    hid_t memory = H5Tvlen_create(H5T_STD_REF_OBJ);
    hvl_t lists[BRC_MAX_NDIM] = { { 0, NULL } };
    int rc;

    if (type < 0 || space < 0 || memory < 0) {
        rc = brc_hdf5_fail(err, BRC_EINVAL, "%s: DIMENSION_LIST cannot be read", r->label);
        goto done;
    }
    BRC_GO(check_lists(r, type, space, err));
    if (H5Aread(attribute, memory, lists) < 0) {
        rc = brc_hdf5_fail(err, BRC_EINVAL, "%s: DIMENSION_LIST cannot be read", r->label);
        goto done;
    }
    rc = take_lists(r, dataset, lists, err);
    (void)H5Dvlen_reclaim(memory, space, H5P_DEFAULT, lists);
done:
    brc_hdf5_close(memory);
    brc_hdf5_close(type);
    brc_hdf5_close(space);
    return rc;
}

int brc_hdf5_scales_read(hid_t dataset, int ndim, brc_hdf5_scale_fn *take, void *ctx,
                         const char *label, brc_error *err)
{
    scale_reader r = { .label = label, .ndim = ndim, .take = take, .ctx = ctx };
    if (H5Aexists(dataset, "DIMENSION_LIST") == 0)
        return BRC_OK;
    hid_t attribute = H5Aopen(dataset, "DIMENSION_LIST", H5P_DEFAULT);
    if (attribute < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: DIMENSION_LIST cannot be opened", label);
    int rc = read_lists(&r, dataset, attribute, err);
    brc_hdf5_close(attribute);
    return rc;
}

int brc_hdf5_names_read(char **names, const brc_hdf5_in *in, hid_t dataset, int ndim, int is_scale,
                        const char *path, const char *label, brc_error *err)
{
    scale_reader r = { .in = in, .label = label, .ndim = ndim, .names = names };
    brc_convert *c = in->convert;
    if (ndim == 0)
        return BRC_OK;
    BRC_TRY(read_labels(&r, dataset, err));
    if (!brc_convert_lacks_attribute(c, brc_convert_path(c, label), "DIMENSION_LIST"))
        BRC_TRY(brc_hdf5_scales_read(dataset, ndim, referred_name, &r, label, err));
    if (is_scale && ndim == 1)
        BRC_TRY(scale_name(&r, dataset, path, 0, err));
    return BRC_OK;
}

/* ==== hdf5 in attr ================================ */

/*
 * Reads attributes of HDF5 as JSON.
 *
 * A value is written as the fill value of an array with its type would be, in lists as deep as the
 * attribute has axes, with these exceptions: NaN and the infinities of floats and complex numbers
 * are numbers, texts are JSON texts, and an attribute without a value is null. An export writes
 * JSON as int64, float64, bool or text. Where the attribute has another type, its type is noted;
 * where a NaN has bits that the export would not write, its elements are noted too.
 */

#define ATTR_MAX_VALUES 1000000
#define ATTR_MAX_BYTES ((uint64_t)64 << 20)

typedef struct attr_reader {
    const brc_hdf5_in *in;
    const char *label;
    hid_t id, space;
    brc_hdf5_tree tree;
    const char *committed; /* the path of the committed type, or NULL */
    int ndim, is_null;
    uint64_t shape[BRC_MAX_NDIM];
    uint64_t n;         /* how many elements there are */
    uint8_t *data, *at; /* all elements, and the next to print */
    int odd;            /* a NaN has bits that its text does not give */
    brc_buf text;
} attr_reader;

static int attr_failed(const attr_reader *r, brc_error *err)
{
    return brc_hdf5_fail(err, BRC_EINVAL, "%s: the attribute cannot be read",
                         r->label);
}

/* ---- reading -------------------------------- */

static int read_extent(attr_reader *r, brc_error *err)
{
    hsize_t dims[H5S_MAX_RANK];
    H5S_class_t class = H5Sget_simple_extent_type(r->space);
    int ndim = H5Sget_simple_extent_ndims(r->space);
    r->is_null = class == H5S_NULL;
    if (r->is_null)
        return BRC_OK;
    if (class == H5S_NO_CLASS || ndim < 0 || ndim > BRC_MAX_NDIM ||
        H5Sget_simple_extent_dims(r->space, dims, NULL) < 0)
        return attr_failed(r, err);
    r->ndim = ndim;
    for (int i = 0; i < ndim; i++)
        r->shape[i] = dims[i];
    r->n = brc_shape_count(ndim, r->shape);
    uint64_t bytes;
    if (r->n > ATTR_MAX_VALUES || !brc_mul_u64(r->n, r->tree.size, &bytes) ||
        bytes > ATTR_MAX_BYTES)
        return brc_part_refuse(err, BRC_PART_SIZE, NULL,
                               "%s: the attribute has more than %d values, or %d MiB", r->label,
                               ATTR_MAX_VALUES, (int)(ATTR_MAX_BYTES >> 20));
    return BRC_OK;
}

static int open_attribute(attr_reader *r, brc_error *err)
{
    r->space = H5Aget_space(r->id);
    hid_t type = H5Aget_type(r->id);
    if (type < 0 || r->space < 0) {
        brc_hdf5_close(type);
        return attr_failed(r, err);
    }
    int rc = brc_hdf5_tree_read(&r->tree, r->in->reg, type, r->in->how, r->label, err);
    r->committed = brc_hdf5_committed(r->in, type);
    brc_hdf5_close(type);
    BRC_TRY(rc);
    BRC_TRY(read_extent(r, err));
    if (r->n == 0)
        return BRC_OK;
    BRC_TRY(brc_new_array((void **)&r->data, r->n, r->tree.size, err));
    if (H5Aread(r->id, r->tree.memory, r->data) < 0)
        return attr_failed(r, err);
    return BRC_OK;
}

static void close_attribute(attr_reader *r)
{
    if (r->data)
        (void)H5Dvlen_reclaim(r->tree.memory, r->space, H5P_DEFAULT, r->data);
    free(r->data);
    brc_hdf5_tree_close(&r->tree);
    brc_hdf5_close(r->space);
    brc_hdf5_close(r->id);
    brc_buf_dispose(&r->text);
}

/* ---- printing -------------------------------- */

static int print_lists(attr_reader *r, int axis, brc_error *err)
{
    if (axis == r->ndim) {
        uint8_t *element = r->at;
        r->at += r->tree.size;
        return brc_hdf5_value_print(r->in, &r->tree, element, &r->text, r->label, err);
    }
    BRC_TRY(brc_buf_byte(&r->text, '[', err));
    for (uint64_t i = 0; i < r->shape[axis]; i++) {
        if (i > 0)
            BRC_TRY(brc_buf_byte(&r->text, ',', err));
        if (r->text.len > ATTR_MAX_BYTES)
            return brc_part_refuse(err, BRC_PART_SIZE, NULL, "%s: the attribute is too long",
                                   r->label);
        BRC_TRY(print_lists(r, axis + 1, err));
    }
    return brc_buf_byte(&r->text, ']', err);
}

/* Returns 1 if an export of the JSON alone writes this type again. */
static int is_plain_attr(const attr_reader *r)
{
    const brc_hdf5_type *type = &r->tree.type;
    if (r->is_null)
        return 1;
    if (r->committed || r->tree.kind != BRC_HDF5_LEAF || type->kind == BRC_HDF5_OBJECT ||
        type->kind == BRC_HDF5_REGION)
        return 0;
    if (type->kind == BRC_HDF5_STRING || hdf5_is_fixed_text(r->tree.dtype))
        return 1;
    if (r->n == 0)
        return strcmp(type->dtype, "float64") == 0;
    if (strcmp(type->dtype, "float64") == 0)
        return !r->odd;
    return strcmp(type->dtype, "int64") == 0 || strcmp(type->dtype, "bool") == 0;
}

/* Replaces texts by numbers. Floats print values that JSON lacks as texts: names, and the bits of
 * odd NaNs. */
static int words_to_numbers(attr_reader *r, brc_json *value, brc_error *err)
{
    static const char *const words[] = { "NaN", "Infinity", "-Infinity" };
    for (const brc_json *v = brc_json_first(value); v; v = brc_json_next(v))
        BRC_TRY(words_to_numbers(r, (brc_json *)(uintptr_t)v, err)); /* this file made the value */
    if (brc_json_kind(value) != BRC_JSON_STRING)
        return BRC_OK;
    const int which = brc_json_choice(value, words, 3);
    r->odd |= which < 0;
    return brc_json_replace(value, brc_json_new_number(words[which < 0 ? 0 : which]), err);
}

/* Notes the elements of an attribute with odd NaNs. */
static int note_elements(const attr_reader *r, brc_json *type, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_base64_write(&text, r->data, (size_t)r->n * r->tree.size, err));
    BRC_GO(brc_buf_terminate(&text, err));
    rc = brc_json_set(type, "base64", brc_json_new_string((const char *)text.data), err);
done:
    brc_buf_dispose(&text);
    return rc;
}

/* Describes the type as the note has it: the type's tree (hdf5_tree.h), or {"type": tree, "ndim":
 * number of the attribute's axes, "committed": path}. */
static int describe_type(const attr_reader *r, brc_json **out, brc_error *err)
{
    brc_json *tree;
    BRC_TRY(brc_hdf5_tree_json(&tree, &r->tree, err));
    const int is_simple = !r->committed && r->tree.kind == BRC_HDF5_LEAF &&
                          r->tree.type.ndim == 0 && r->tree.type.kind == BRC_HDF5_FIXED;
    if (is_simple && (!r->odd || brc_json_member(tree, "data_type"))) {
        *out = tree;
        return BRC_OK;
    }
    *out = brc_json_new_object();
    if (!*out) {
        brc_json_free(tree);
        return brc_nomem(err);
    }
    BRC_TRY(brc_json_set(*out, is_simple ? "data_type" : "type", tree, err));
    if (is_simple)
        return BRC_OK;
    BRC_TRY(brc_json_set(*out, "ndim", brc_json_new_uint((uint64_t)r->ndim), err));
    return r->committed ? brc_json_set(*out, "committed", brc_json_new_string(r->committed), err)
                        : BRC_OK;
}

/* Prints an attribute. Sets *type to the type to note, or to NULL. */
static int print_attribute(attr_reader *r, brc_json **value, brc_json **type, brc_error *err)
{
    *value = *type = NULL;
    if (r->is_null) {
        *value = brc_json_new_null();
        return *value ? BRC_OK : brc_nomem(err);
    }
    r->at = r->data;
    BRC_TRY(print_lists(r, 0, err));
    BRC_TRY(brc_json_parse(value, (const char *)r->text.data, r->text.len, 0, err));
    if (r->tree.kind == BRC_HDF5_LEAF && r->tree.type.kind == BRC_HDF5_FIXED &&
        (r->tree.dtype->klass == BRC_CLASS_FLOAT || r->tree.dtype->klass == BRC_CLASS_COMPLEX))
        BRC_TRY(words_to_numbers(r, *value, err));
    if (is_plain_attr(r))
        return BRC_OK;
    BRC_TRY(describe_type(r, type, err));
    return r->odd ? note_elements(r, *type, err) : BRC_OK;
}

int brc_hdf5_attr_read(const brc_hdf5_in *in, hid_t object, const char *name, const char *label,
                       brc_json **value, brc_json **type, int *has_paths, brc_error *err)
{
    attr_reader r = { .in = in, .space = BRC_HDF5_NONE };
    brc_buf text = BRC_BUF_INIT;
    int rc;

    *value = *type = NULL;
    r.tree.memory = r.tree.type.memory = r.id = BRC_HDF5_NONE;
    BRC_GO(brc_buf_printf(&text, err, "%s, attribute %s", label, name));
    r.label = (const char *)text.data;
    r.id = H5Aopen(object, name, H5P_DEFAULT);
    if (r.id < 0) {
        rc = attr_failed(&r, err);
        goto done;
    }
    BRC_GO(open_attribute(&r, err));
    BRC_GO(print_attribute(&r, value, type, err));
    if (has_paths && (r.committed || brc_hdf5_tree_refers(&r.tree)))
        *has_paths = 1;
done:
    if (rc < 0) {
        brc_json_free(*value);
        brc_json_free(*type);
        *value = *type = NULL;
    }
    close_attribute(&r);
    brc_buf_dispose(&text);
    return rc;
}

/* Reads the value of one attribute. Sets *out to NULL if there is no such attribute, or if the
 * import leaves it out. */
static int hdf5_attr_value(brc_json **out, const brc_hdf5_in *in, hid_t object,
                           const char *name, const char *label, brc_error *err)
{
    const char *path = brc_convert_path(in->convert, label);
    brc_json *type;
    *out = NULL;
    htri_t exists = H5Aexists(object, name);
    if (exists == 0 || brc_convert_lacks_attribute(in->convert, path, name))
        return BRC_OK;
    int rc = brc_hdf5_attr_read(in, object, name, label, out, &type, NULL, err);
    if (rc == BRC_OK)
        brc_json_free(type);
    rc = brc_convert_settle(in->convert, rc, path, name, err);
    return rc < 0 ? rc : BRC_OK;
}

/* ---- all of an object -------------------------------- */

typedef struct attrs_walk {
    const brc_hdf5_in *in;
    brc_hdf5_attrs *out;
    const char *label;
    int is_array, rc;
    brc_error *err;
} attrs_walk;

/* Returns whether the attribute belongs to HDF5's dimension scales, which the names of axes
 * replace. */
static int is_structure(const attrs_walk *w, const char *name)
{
    if (!w->is_array)
        return 0;
    if (strcmp(name, "DIMENSION_LIST") == 0 || strcmp(name, "DIMENSION_LABELS") == 0 ||
        strcmp(name, "REFERENCE_LIST") == 0)
        return 1;
    return w->out->is_scale && (strcmp(name, "CLASS") == 0 || strcmp(name, "NAME") == 0);
}

/* Takes the attribute in which an export kept what only Zarr has. Returns 0 for any other
 * attribute. */
static int take_zarr(attrs_walk *w, const char *name, const brc_json *value)
{
    const char *text;
    brc_json *object = NULL;
    if (strcmp(name, BRC_HDF5_ZARR) != 0 || !brc_json_text(value, &text) ||
        brc_json_parse(&object, text, strlen(text), 0, NULL) < 0)
        return 0;
    if (brc_json_kind(object) != BRC_JSON_OBJECT || w->out->zarr) {
        brc_json_free(object);
        return 0;
    }
    w->out->zarr = object;
    return 1;
}

static int take_attribute(attrs_walk *w, hid_t object, const char *name, brc_error *err)
{
    brc_json *value, *type;
    if (!brc_utf8_valid(name, strlen(name)))
        return brc_part_refuse(err, BRC_PART_NAME, "rename it",
                               "%s: the name of an attribute is not UTF-8", w->label);
    BRC_TRY(brc_hdf5_attr_read(w->in, object, name, w->label, &value, &type, &w->out->has_paths,
                               err));
    if (take_zarr(w, name, value)) {
        brc_json_free(value);
        brc_json_free(type);
        return BRC_OK;
    }
    int rc = brc_json_add(w->out->values, name, value, err);
    if (rc == BRC_OK && type && !w->out->types && !(w->out->types = brc_json_new_object()))
        rc = brc_nomem(err);
    if (rc == BRC_OK && type)
        return brc_json_add(w->out->types, name, type, err);
    brc_json_free(type);
    return rc;
}

static herr_t each_attribute(hid_t object, const char *name, const H5A_info_t *info, void *ctx)
{
    attrs_walk *w = ctx;
    brc_convert *c = w->in->convert;
    const char *path = brc_convert_path(c, w->label);
    (void)info;
    if (is_structure(w, name) || brc_convert_lacks_attribute(c, path, name))
        return 0;
    w->rc = brc_convert_settle(c, take_attribute(w, object, name, w->err), path, name, w->err);
    return w->rc < 0 ? -1 : 0;
}

/* Parses the attributes that an export wrote as JSON text. */
static int parse_texts(brc_hdf5_attrs *attrs, brc_error *err)
{
    const brc_json *names = brc_json_member(attrs->zarr, "json");
    for (const brc_json *n = brc_json_first(names); n; n = brc_json_next(n)) {
        const char *name, *text;
        brc_json *value;
        if (!brc_json_text(n, &name) ||
            !brc_json_text(brc_json_member(attrs->values, name), &text) ||
            brc_json_parse(&value, text, strlen(text), BRC_JSON_NAN, NULL) < 0)
            continue;
        BRC_TRY(brc_json_set(attrs->values, name, value, err));
    }
    return BRC_OK;
}

static int find_scale(attrs_walk *w, hid_t object, brc_error *err)
{
    brc_json *class;
    if (!w->is_array)
        return BRC_OK;
    BRC_TRY(hdf5_attr_value(&class, w->in, object, "CLASS", w->label, err));
    w->out->is_scale = brc_json_is(class, "DIMENSION_SCALE");
    brc_json_free(class);
    return BRC_OK;
}

int brc_hdf5_attrs_read(brc_hdf5_attrs *out, const brc_hdf5_in *in, hid_t object, int is_array,
                        const char *label, brc_error *err)
{
    attrs_walk w = { in, out, label, is_array, BRC_OK, err };
    H5O_info_t info;
    int rc;

    memset(out, 0, sizeof(*out));
    if (H5Oget_info2(object, &info, H5O_INFO_NUM_ATTRS) < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: its attributes cannot be read", label);
    BRC_TRY(brc_attr_check_count(info.num_attrs, label, err));
    BRC_GO(find_scale(&w, object, err));
    out->values = brc_json_new_object();
    if (!out->values) {
        rc = brc_nomem(err);
        goto done;
    }
    herr_t walked =
        H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, each_attribute, &w);
    rc = w.rc < 0 ? w.rc : BRC_OK;
    if (rc == BRC_OK && walked < 0)
        rc = brc_hdf5_fail(err, BRC_EINVAL, "%s: its attributes cannot be read", label);
    if (rc == BRC_OK && out->zarr)
        rc = parse_texts(out, err);
done:
    if (rc < 0)
        brc_hdf5_attrs_free(out);
    return rc;
}

void brc_hdf5_attrs_free(brc_hdf5_attrs *attrs)
{
    brc_json_free(attrs->values);
    brc_json_free(attrs->types);
    brc_json_free(attrs->zarr);
    memset(attrs, 0, sizeof(*attrs));
}

int brc_hdf5_attrs_text(char **out, const brc_hdf5_attrs *attrs, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    *out = NULL;
    if (brc_json_count(attrs->values) == 0)
        return BRC_OK;
    BRC_GO(brc_json_write(&text, attrs->values, 0, err));
    BRC_GO(brc_buf_take_text(&text, out, err));
done:
    brc_buf_dispose(&text);
    return rc;
}

int brc_hdf5_note_attrs(brc_json *note, brc_hdf5_attrs *attrs, const char *path, brc_error *err)
{
    if (brc_json_count(attrs->types) > 0) {
        brc_json *types = attrs->types;
        attrs->types = NULL;
        BRC_TRY(brc_json_set(note, "attributes", types, err));
    }
    return attrs->has_paths ? brc_json_set(note, "at", brc_json_new_string(path), err) : BRC_OK;
}

int brc_hdf5_note_group(brc_hdf5_attrs *attrs, brc_json *note, const char *label, brc_error *err)
{
    if (brc_json_count(note) == 0) {
        brc_json_free(note);
        return BRC_OK;
    }
    if (!brc_json_member(attrs->values, BRC_HDF5_GROUP_NOTE))
        return brc_json_set(attrs->values, BRC_HDF5_GROUP_NOTE, note, err);
    brc_json_free(note);
    return brc_fail(err, BRC_EINVAL,
                    "%s has an attribute " BRC_HDF5_GROUP_NOTE ", a name that is reserved for "
                    "notes about HDF5: rename it",
                    label);
}
