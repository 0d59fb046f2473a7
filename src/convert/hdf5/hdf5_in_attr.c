/*
 * Attributes of HDF5 as JSON.
 *
 * A value is what the elements of an array with this type print as a fill value, in
 * lists as deep as it has axes; texts are texts, and an attribute without a value is
 * null. Where JSON alone would be written as another type (int64, float64, bool and
 * text are what it is written as), the data type is noted.
 */
#include <stdlib.h>
#include <string.h>

#include "../../codec/registry.h"
#include "hdf5_in.h"

#define ATTR_MAX_VALUES 1000000
#define ATTR_MAX_BYTES ((uint64_t)64 << 20)

typedef struct attr_reader {
    const brc_hdf5_in *in;
    const char *label;
    hid_t id, space;
    brc_hdf5_type type;
    brc_dtype *dtype;
    int ndim, is_null;
    uint64_t shape[2 * BRC_MAX_NDIM]; /* the type's own axes behind */
    uint64_t n;                       /* elements                   */
    size_t step;                      /* bytes of an item in data   */
    uint8_t *data;
    uint8_t *at; /* the next item to print     */
    brc_buf text;
} attr_reader;

static int attr_failed(const attr_reader *r, brc_error *err)
{
    return brc_hdf5_fail(err, BRC_EINVAL, "%s: the attribute cannot be read",
                         r->label);
}

static int open_dtype(brc_dtype **out, const brc_registry *reg, const char *dtype, brc_error *err)
{
    brc_json *json;
    BRC_TRY(brc_hdf5_dtype_json(&json, dtype, err));
    int rc = brc_dtype_open(out, reg, json, err);
    brc_json_free(json);
    return rc;
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
    for (int i = 0; i < r->type.ndim; i++)
        r->shape[r->ndim++] = r->type.shape[i];
    uint64_t bytes;
    if (r->n > ATTR_MAX_VALUES || !brc_mul_u64(r->n, r->type.size, &bytes) ||
        bytes > ATTR_MAX_BYTES)
        return brc_fail(err, BRC_ELIMIT, "%s: the attribute has more than %d values, or %d MiB",
                        r->label, ATTR_MAX_VALUES, (int)(ATTR_MAX_BYTES >> 20));
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
    int rc = brc_hdf5_type_read(&r->type, r->in->reg, type, 0, r->label, err);
    brc_hdf5_close(type);
    BRC_TRY(rc);
    BRC_TRY(open_dtype(&r->dtype, r->in->reg, r->type.dtype, err));
    BRC_TRY(read_extent(r, err));
    if (r->n == 0)
        return BRC_OK;
    int fixed = r->type.kind == BRC_HDF5_FIXED;
    r->step = fixed ? r->type.item : r->type.size;
    BRC_TRY(brc_new_array((void **)&r->data, r->n, r->type.size, err));
    if (H5Aread(r->id, r->type.memory, r->data) < 0)
        return attr_failed(r, err);
    if (fixed)
        return brc_hdf5_canonical(&r->type, r->dtype, r->data, r->n, r->label, err);
    return BRC_OK;
}

static void close_attribute(attr_reader *r)
{
    if (r->data && r->type.kind != BRC_HDF5_FIXED)
        (void)H5Dvlen_reclaim(r->type.memory, r->space, H5P_DEFAULT, r->data);
    free(r->data);
    brc_dtype_free(r->dtype);
    brc_hdf5_type_close(&r->type);
    brc_hdf5_close(r->space);
    brc_hdf5_close(r->id);
    brc_buf_dispose(&r->text);
}

/* ---- printing -------------------------------- */

static int print_text(attr_reader *r, const char *text, size_t len, brc_error *err)
{
    brc_json *json = brc_attr_text(text, len);
    if (!json)
        return brc_nomem(err);
    int rc = brc_json_write(&r->text, json, err);
    brc_json_free(json);
    return rc;
}

static int is_fixed_text(const brc_dtype *type)
{
    return type->klass == BRC_CLASS_BYTES && type->item_size > 0;
}

static int print_item(attr_reader *r, brc_error *err)
{
    const uint8_t *item = r->at;
    brc_buf element = BRC_BUF_INIT;
    int rc;

    r->at += r->step;
    if (r->type.kind == BRC_HDF5_STRING) {
        const char *text = *(char *const *)(const void *)item;
        return print_text(r, text ? text : "", text ? strlen(text) : 0, err);
    }
    if (is_fixed_text(r->dtype))
        return print_text(r, (const char *)item, r->type.item, err);
    if (r->type.kind == BRC_HDF5_FIXED)
        return r->dtype->ops->print(r->dtype, item, r->type.item, BRC_PRINT_FILL, &r->text, err);
    BRC_GO(brc_hdf5_memory_span(&r->type, item, &element, r->label, err));
    BRC_GO(
        r->dtype->ops->print(r->dtype, element.data, element.len, BRC_PRINT_FILL, &r->text, err));
done:
    brc_buf_dispose(&element);
    return rc;
}

static int print_lists(attr_reader *r, int axis, brc_error *err)
{
    if (axis == r->ndim)
        return print_item(r, err);
    BRC_TRY(brc_buf_byte(&r->text, '[', err));
    for (uint64_t i = 0; i < r->shape[axis]; i++) {
        if (i > 0)
            BRC_TRY(brc_buf_byte(&r->text, ',', err));
        if (r->text.len > ATTR_MAX_BYTES)
            return brc_fail(err, BRC_ELIMIT, "%s: the attribute is too long", r->label);
        BRC_TRY(print_lists(r, axis + 1, err));
    }
    return brc_buf_byte(&r->text, ']', err);
}

/* 1 if JSON by itself is written as this type again. */
static int is_plain_attr(const attr_reader *r)
{
    const char *name = r->type.dtype;
    if (r->is_null || r->type.kind == BRC_HDF5_STRING || is_fixed_text(r->dtype))
        return 1;
    if (r->n == 0)
        return strcmp(name, "float64") == 0;
    if (strcmp(name, "float64") == 0) /* what is not finite is a string */
        return memchr(r->text.data, '"', r->text.len) == NULL;
    return strcmp(name, "int64") == 0 || strcmp(name, "bool") == 0;
}

/* *type: the data type to be noted, or NULL. */
static int print_attribute(attr_reader *r, brc_json **value, brc_json **type, brc_error *err)
{
    *value = *type = NULL;
    if (r->is_null) {
        *value = brc_json_new_null();
        return *value ? BRC_OK : brc_nomem(err);
    }
    r->at = r->data;
    BRC_TRY(print_lists(r, 0, err));
    BRC_TRY(brc_json_parse(value, (const char *)r->text.data, r->text.len, err));
    if (is_plain_attr(r) || !type)
        return BRC_OK;
    brc_json *data_type;
    BRC_TRY(brc_hdf5_dtype_json(&data_type, r->type.dtype, err));
    if (!r->type.note) {
        *type = data_type;
        return BRC_OK;
    }
    *type = brc_json_new_object();
    if (!*type) {
        brc_json_free(data_type);
        return brc_nomem(err);
    }
    BRC_TRY(brc_json_set(*type, "data_type", data_type, err));
    brc_json *note = r->type.note;
    r->type.note = NULL;
    return brc_json_set(*type, "note", note, err);
}

static int read_value(const brc_hdf5_in *in, hid_t object, const char *name, const char *label,
                      brc_json **value, brc_json **type, brc_error *err)
{
    attr_reader r = { .in = in, .space = BRC_HDF5_NONE };
    brc_buf text = BRC_BUF_INIT;
    int rc;

    *value = *type = NULL;
    r.type.memory = r.id = BRC_HDF5_NONE;
    BRC_GO(brc_buf_printf(&text, err, "%s, attribute %s", label, name));
    r.label = (const char *)text.data;
    r.id = H5Aopen(object, name, H5P_DEFAULT);
    if (r.id < 0) {
        rc = attr_failed(&r, err);
        goto done;
    }
    BRC_GO(open_attribute(&r, err));
    BRC_GO(print_attribute(&r, value, type, err));
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

int brc_hdf5_attr_value(brc_json **out, const brc_hdf5_in *in, hid_t object, const char *name,
                        const char *label, brc_error *err)
{
    brc_json *type;
    *out = NULL;
    htri_t exists = H5Aexists(object, name);
    if (exists == 0)
        return BRC_OK;
    BRC_TRY(read_value(in, object, name, label, out, &type, err));
    brc_json_free(type);
    return BRC_OK;
}

/* ---- all of an object -------------------------------- */

typedef struct attrs_walk {
    const brc_hdf5_in *in;
    brc_hdf5_attrs *out;
    const char *label;
    int is_array, rc;
    brc_error *err;
} attrs_walk;

/* Part of the machinery of dimension scales: said by the names of the axes. */
static int is_structure(const attrs_walk *w, const char *name)
{
    if (!w->is_array)
        return 0;
    if (strcmp(name, "DIMENSION_LIST") == 0 || strcmp(name, "DIMENSION_LABELS") == 0 ||
        strcmp(name, "REFERENCE_LIST") == 0)
        return 1;
    return w->out->is_scale && (strcmp(name, "CLASS") == 0 || strcmp(name, "NAME") == 0);
}

/* Zarr's own words in the file; 0 if it is an attribute like any other. */
static int take_zarr(attrs_walk *w, const char *name, const brc_json *value)
{
    const char *text;
    brc_json *object = NULL;
    if (strcmp(name, BRC_HDF5_ZARR) != 0 || !brc_json_text(value, &text) ||
        brc_json_parse(&object, text, strlen(text), NULL) < 0)
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
    if (is_structure(w, name))
        return BRC_OK;
    if (!brc_utf8_valid(name, strlen(name)))
        return brc_fail(err, BRC_EINVAL, "%s: the name of an attribute is not UTF-8", w->label);
    BRC_TRY(read_value(w->in, object, name, w->label, &value, &type, err));
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
    (void)info;
    w->rc = take_attribute(w, object, name, w->err);
    return w->rc < 0 ? -1 : 0;
}

/* Attributes that are JSON text become what the text says. */
static int parse_texts(brc_hdf5_attrs *attrs, brc_error *err)
{
    const brc_json *names = brc_json_member(attrs->zarr, "json");
    for (const brc_json *n = brc_json_first(names); n; n = brc_json_next(n)) {
        const char *name, *text;
        brc_json *value;
        if (!brc_json_text(n, &name) ||
            !brc_json_text(brc_json_member(attrs->values, name), &text) ||
            brc_json_parse(&value, text, strlen(text), NULL) < 0)
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
    BRC_TRY(brc_hdf5_attr_value(&class, w->in, object, "CLASS", w->label, err));
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
    rc = w.rc;
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
    BRC_GO(brc_json_write(&text, attrs->values, err));
    BRC_GO(brc_buf_take_text(&text, out, err));
done:
    brc_buf_dispose(&text);
    return rc;
}
