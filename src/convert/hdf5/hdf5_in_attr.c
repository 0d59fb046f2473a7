/*
 * Attributes of HDF5 as JSON.
 *
 * A value is what the elements of an array with this type print as a fill value, in
 * lists as deep as it has axes, but NaN and the infinities of floats and complex numbers
 * are numbers; texts are texts, and an attribute without a value is null. Where JSON alone
 * would be written as another type (int64, float64, bool and text are what it is written
 * as), the data type is noted, and where a NaN has other bits than it would have again, the
 * elements too.
 */
#include <stdlib.h>
#include <string.h>

#include "../../codec/registry.h"
#include "../../nd/bytes_json.h"
#include "hdf5_in.h"

#define ATTR_MAX_VALUES 1000000
#define ATTR_MAX_BYTES ((uint64_t)64 << 20)

typedef struct attr_reader {
    const brc_hdf5_in *in;
    const char *label;
    hid_t id, space;
    brc_hdf5_tree tree;
    const char *committed; /* the path of its type, or NULL */
    int ndim, is_null;
    uint64_t shape[BRC_MAX_NDIM];
    uint64_t n;         /* elements                      */
    uint8_t *data, *at; /* the next to print             */
    int odd;            /* a NaN has bits of its own     */
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
    int rc = brc_hdf5_tree_read(&r->tree, r->in->reg, type, 0, r->label, err);
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

/* 1 if JSON by itself is written as this type again. */
static int is_plain_attr(const attr_reader *r)
{
    const brc_hdf5_type *type = &r->tree.type;
    if (r->is_null)
        return 1;
    if (r->committed || r->tree.kind != BRC_HDF5_LEAF || type->kind == BRC_HDF5_OBJECT ||
        type->kind == BRC_HDF5_REGION)
        return 0;
    if (type->kind == BRC_HDF5_STRING || brc_hdf5_is_fixed_text(r->tree.dtype))
        return 1;
    if (r->n == 0)
        return strcmp(type->dtype, "float64") == 0;
    if (strcmp(type->dtype, "float64") == 0)
        return !r->odd;
    return strcmp(type->dtype, "int64") == 0 || strcmp(type->dtype, "bool") == 0;
}

/* Floats print what JSON has no number for as texts: names, and the bits of odd NaNs. */
static int words_to_numbers(attr_reader *r, brc_json *value, brc_error *err)
{
    static const char *const words[] = { "NaN", "Infinity", "-Infinity" };
    for (const brc_json *v = brc_json_first(value); v; v = brc_json_next(v))
        BRC_TRY(words_to_numbers(r, (brc_json *)(uintptr_t)v, err)); /* the value is ours */
    if (brc_json_kind(value) != BRC_JSON_STRING)
        return BRC_OK;
    const int which = brc_json_choice(value, words, 3);
    r->odd |= which < 0;
    return brc_json_replace(value, brc_json_new_number(words[which < 0 ? 0 : which]), err);
}

/* The elements of an attribute with odd NaNs. */
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

/* The type as it stands in the note: its tree (hdf5_tree.h), or {"type": tree, "ndim": the
 * attribute's axes, "committed": path}. */
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

/* *type: the type to be noted, or NULL. */
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
    if (r->tree.kind == BRC_HDF5_LEAF && r->tree.type.kind == BRC_HDF5_FIXED &&
        (r->tree.dtype->klass == BRC_CLASS_FLOAT || r->tree.dtype->klass == BRC_CLASS_COMPLEX))
        BRC_TRY(words_to_numbers(r, *value, err));
    if (is_plain_attr(r))
        return BRC_OK;
    BRC_TRY(describe_type(r, type, err));
    return r->odd ? note_elements(r, *type, err) : BRC_OK;
}

/* *has_paths (NULL: nobody asks) is set to 1 where paths of the file are in value or type. */
static int read_value(const brc_hdf5_in *in, hid_t object, const char *name, const char *label,
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

int brc_hdf5_attr_value(brc_json **out, const brc_hdf5_in *in, hid_t object, const char *name,
                        const char *label, brc_error *err)
{
    const char *path = brc_convert_path(in->convert, label);
    brc_json *type;
    *out = NULL;
    htri_t exists = H5Aexists(object, name);
    if (exists == 0 || brc_convert_lacks_attribute(in->convert, path, name))
        return BRC_OK;
    int rc = read_value(in, object, name, label, out, &type, NULL, err);
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
    if (!brc_utf8_valid(name, strlen(name)))
        return brc_part_refuse(err, BRC_PART_NAME, "rename it",
                               "%s: the name of an attribute is not UTF-8", w->label);
    BRC_TRY(read_value(w->in, object, name, w->label, &value, &type, &w->out->has_paths, err));
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

/* Attributes that are JSON text become what the text says. */
static int parse_texts(brc_hdf5_attrs *attrs, brc_error *err)
{
    const brc_json *names = brc_json_member(attrs->zarr, "json");
    for (const brc_json *n = brc_json_first(names); n; n = brc_json_next(n)) {
        const char *name, *text;
        brc_json *value;
        if (!brc_json_text(n, &name) ||
            !brc_json_text(brc_json_member(attrs->values, name), &text) ||
            brc_json_parse_nan(&value, text, strlen(text), NULL) < 0)
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
    BRC_GO(brc_json_write(&text, attrs->values, err));
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
                    "what only HDF5 says: rename it",
                    label);
}
