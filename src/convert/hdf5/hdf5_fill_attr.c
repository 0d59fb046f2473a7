/*
 * The attribute _FillValue of an array. In HDF5 it is of the array's type, and often a list
 * of one value; xarray, where it reads Zarr, wants one number for integers and base64 of a
 * little-endian double for floats, and fails on a whole group where it finds anything else.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5_type.h"

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
    return name ? brc_dtype_open_name(out, reg, name, NULL) : BRC_EINVAL;
}

/* ---- in -------------------------------- */

/* The name of the type that the attribute had; NULL: none that matters here. */
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

/* *out: the value as xarray has it; NULL if it is left as it is. */
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

/* Where an export of the array would not write this type, or a list, it is noted. */
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
    BRC_GO(brc_json_parse(&note, (const char *)text.data, text.len, err));
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
    BRC_GO(brc_dup(&name, noted, err)); /* the note is replaced */
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

/* Whether the number is one of the type as well. */
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

/* Of the array's type, if no other is noted. */
static int choose_fill_type(brc_json **out, const brc_dtype *array, const brc_json *noted,
                            const brc_json *json, double value, brc_error *err)
{
    if (noted)
        return brc_json_clone(out, noted, err);
    int fits = is_integer_type(array) || type_holds(array, json, value);
    return brc_hdf5_dtype_json(out, fits ? array->name : "float64", err);
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
