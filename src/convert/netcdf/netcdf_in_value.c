/*
 * Attributes of types that a NetCDF-4 file defines, as JSON:
 *
 *   enumeration   the integer            opaque   base64 of the bytes
 *   compound      an object              vlen     a list
 *
 * A field that is an array is a list of its elements in C order, of characters a text.
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/json.h"
#include "../../nd/bytes_json.h"
#include "netcdf_att.h"

#define MAX_DEPTH 16

typedef struct user_value {
    int group;
    const char *label;
} user_value;

typedef struct user_type {
    size_t size;
    nc_type base;
    size_t nfields;
    int kind; /* NC_ENUM ..., 0: a type of every file */
} user_type;

typedef struct user_field {
    char name[BRC_NETCDF_NAME_MAX];
    size_t offset, n; /* n: elements of an array, 1 of none */
    nc_type type;
    user_type is;
} user_field;

static int inquire_type(const user_value *v, nc_type type, user_type *out, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    out->size = brc_netcdf_atomic_size(type);
    if (out->size > 0)
        return BRC_OK;
    int status = nc_inq_user_type(v->group, type, NULL, &out->size, &out->base,
                                          &out->nfields, &out->kind);
    return status
               ? brc_netcdf_fail(status, BRC_EINVAL, "cannot read a type of", v->label, err)
               : BRC_OK;
}

static int inquire_field(const user_value *v, nc_type type, int i, user_field *out, brc_error *err)
{
    int ndims = 0, sizes[NC_MAX_VAR_DIMS];
    uint64_t n = 1;
    int status = nc_inq_compound_field(v->group, type, i, out->name, &out->offset,
                                               &out->type, &ndims, sizes);
    if (status)
        return brc_netcdf_fail(status, BRC_EINVAL, "cannot read a type of", v->label, err);
    for (int k = 0; k < ndims; k++)
        if (sizes[k] < 0 || !brc_mul_u64(n, (uint64_t)sizes[k], &n) || n > (uint64_t)1 << 31)
            return brc_fail(err, BRC_EINVAL, "%s: the field %s has an impossible shape", v->label,
                            out->name);
    out->n = (size_t)n;
    return inquire_type(v, out->type, &out->is, err);
}

/* ---- memory of the library's ---------------------- */

static void drop_values(const user_value *v, nc_type type, size_t n, uint8_t *at, int depth)
{
    user_type is;
    if (depth > MAX_DEPTH || inquire_type(v, type, &is, NULL) < 0)
        return;
    for (; n > 0; n--, at += is.size) {
        if (type == NC_STRING) {
            char *text;
            memcpy(&text, at, sizeof(text));
            free(text);
        } else if (is.kind == NC_VLEN) {
            nc_vlen_t list;
            memcpy(&list, at, sizeof(list));
            drop_values(v, is.base, list.len, list.p, depth + 1);
            free(list.p);
        } else if (is.kind == NC_COMPOUND) {
            for (size_t i = 0; i < is.nfields; i++) {
                user_field field;
                if (inquire_field(v, type, (int)i, &field, NULL) == BRC_OK)
                    drop_values(v, field.type, field.n, at + field.offset, depth + 1);
            }
        }
    }
}

void brc_netcdf_drop(int group, nc_type type, size_t n, uint8_t *data)
{
    user_value v = { group, "" };
    drop_values(&v, type, n, data, 0);
}

/* ---- to JSON -------------------------------------- */

static int values_json(brc_json **out, const user_value *v, nc_type type, int list, size_t n,
                       const uint8_t *at, int depth, brc_error *err);

static int compound_json(brc_json **out, const user_value *v, nc_type type, size_t nfields,
                         const uint8_t *at, int depth, brc_error *err)
{
    brc_json *object = brc_json_new_object(), *value;
    int rc = object ? BRC_OK : brc_nomem(err);
    for (size_t i = 0; rc == BRC_OK && i < nfields; i++) {
        user_field field;
        rc = inquire_field(v, type, (int)i, &field, err);
        if (rc == BRC_OK && !brc_utf8_valid(field.name, strlen(field.name)))
            rc = brc_fail(err, BRC_EINVAL, "%s: a field's name is not UTF-8", v->label);
        if (rc == BRC_OK)
            rc = values_json(&value, v, field.type, field.n != 1, field.n, at + field.offset,
                             depth + 1, err);
        if (rc == BRC_OK)
            rc = brc_json_set(object, field.name, value, err);
    }
    if (rc < 0) {
        brc_json_free(object);
        return rc;
    }
    *out = object;
    return BRC_OK;
}

static int opaque_json(brc_json **out, const uint8_t *at, size_t size, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_base64_write(&text, at, size, err));
    BRC_GO(brc_buf_terminate(&text, err));
    *out = brc_json_new_string((const char *)text.data);
    rc = *out ? BRC_OK : brc_nomem(err);
done:
    brc_buf_dispose(&text);
    return rc;
}

/* Numbers, characters and texts, by the rules for attributes of such types. */
static int plain_json(brc_json **out, nc_type type, size_t n, const uint8_t *at, brc_error *err)
{
    static const brc_netcdf_of nothing = { 0 };
    brc_netcdf_values values = { type, n, (void *)(uintptr_t)at, NULL };
    if (type == NC_STRING)
        values.texts = values.data;
    return brc_netcdf_att_json(out, &nothing, "", &values, err);
}

static int one_json(brc_json **out, const user_value *v, nc_type type, const user_type *is,
                    const uint8_t *at, int depth, brc_error *err)
{
    nc_vlen_t list;
    switch (is->kind) {
    case NC_ENUM:
        return plain_json(out, is->base, 1, at, err);
    case NC_OPAQUE:
        return opaque_json(out, at, is->size, err);
    case NC_COMPOUND:
        return compound_json(out, v, type, is->nfields, at, depth, err);
    default:
        memcpy(&list, at, sizeof(list));
        return values_json(out, v, is->base, 1, list.len, list.p, depth + 1, err);
    }
}

static int values_json(brc_json **out, const user_value *v, nc_type type, int list, size_t n,
                       const uint8_t *at, int depth, brc_error *err)
{
    user_type is;
    *out = NULL;
    if (depth > MAX_DEPTH)
        return brc_part_refuse(err, BRC_PART_TYPE, NULL, "%s: its types are nested too deep",
                               v->label);
    BRC_TRY(inquire_type(v, type, &is, err));
    if (is.kind == 0 && (n == 1 || !list || type == NC_CHAR))
        return plain_json(out, type, n, at, err);
    if (!list)
        return one_json(out, v, type, &is, at, depth, err);
    brc_json *all = brc_json_new_array(), *item;
    int rc = all ? BRC_OK : brc_nomem(err);
    for (size_t i = 0; rc == BRC_OK && i < n; i++, at += is.size) {
        rc = is.kind == 0 ? plain_json(&item, type, 1, at, err)
                          : one_json(&item, v, type, &is, at, depth, err);
        if (rc == BRC_OK)
            rc = brc_json_push(all, item, err);
    }
    if (rc < 0) {
        brc_json_free(all);
        return rc;
    }
    *out = all;
    return BRC_OK;
}

int brc_netcdf_user_json(brc_json **out, int group, nc_type type, size_t n,
                         uint8_t *data, const char *label, brc_error *err)
{
    user_value v = { group, label };
    int rc = values_json(out, &v, type, n != 1, n, data, 0, err);
    drop_values(&v, type, n, data, 0);
    return rc;
}
