/* Attributes of a NetCDF file, read: see netcdf_att.h. */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/json.h"
#include "../../nd/bytes_json.h"
#include "netcdf_att.h"

#define MAX_ATT_BYTES ((size_t)64 << 20)

typedef struct att_type {
    nc_type type; /* an enumeration's base */
    size_t size, n;
    int is_user; /* and no enumeration */
} att_type;

static int cannot_read(int status, const char *name, const char *label,
                       brc_error *err)
{
    brc_netcdf_fail(status, BRC_EINVAL, "cannot read an attribute of", label, err);
    brc_context(err, "%s", name);
    return status == NC_ENOMEM ? BRC_ENOMEM : status > 0 ? BRC_EIO : BRC_EINVAL;
}

static int inquire_att(att_type *out, int group, int var, const char *name,
                       const char *label, brc_error *err)
{
    nc_type base = NC_NAT;
    int kind = 0;
    int status = nc_inq_att(group, var, name, &out->type, &out->n);

    out->size = status ? 0 : brc_netcdf_atomic_size(out->type);
    if (!status && out->size == 0) {
        status = nc_inq_user_type(group, out->type, NULL, &out->size, &base, NULL, &kind);
        out->is_user = kind != NC_ENUM;
        if (kind == NC_ENUM)
            out->type = base;
    }
    if (status)
        return cannot_read(status, name, label, err);
    if (out->size == 0 || out->n > MAX_ATT_BYTES / out->size)
        return brc_part_refuse(err, BRC_PART_SIZE, NULL,
                               "%s: the attribute %s is longer than %lu bytes", label, name,
                               (unsigned long)MAX_ATT_BYTES);
    return BRC_OK;
}

/* Texts of the library's become ours. */
static int take_strings(brc_netcdf_values *out, brc_error *err)
{
    char **theirs = out->data;
    int rc = brc_new_array((void **)&out->texts, out->n + 1, sizeof(char *), err);
    for (size_t i = 0; rc == BRC_OK && i < out->n; i++)
        rc = brc_dup(&out->texts[i], theirs[i] ? theirs[i] : "", err);
    if (out->n > 0)
        nc_free_string(out->n, theirs);
    for (size_t i = 0; rc == BRC_OK && i < out->n; i++)
        theirs[i] = out->texts[i];
    return rc;
}

static int get_att(brc_netcdf_values *out, int group, int var,
                   const char *name, const att_type *is, const char *label, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    BRC_TRY(brc_new_array(&out->data, is->n + 1, is->size, err));
    int status = is->n > 0 ? nc_get_att(group, var, name, out->data) : 0;
    if (status) {
        brc_netcdf_values_free(out);
        return cannot_read(status, name, label, err);
    }
    out->type = is->type;
    out->n = is->n;
    int rc = out->type == NC_STRING ? take_strings(out, err) : BRC_OK;
    if (rc < 0)
        brc_netcdf_values_free(out);
    return rc;
}

int brc_netcdf_read_att(brc_netcdf_values *out, int group, int var,
                        const char *name, const char *label, brc_error *err)
{
    att_type is = { 0 };
    memset(out, 0, sizeof(*out));
    if (nc_inq_att(group, var, name, NULL, NULL) != NC_NOERR)
        return BRC_OK;
    BRC_TRY(inquire_att(&is, group, var, name, label, err));
    return is.is_user ? BRC_OK : get_att(out, group, var, name, &is, label, err);
}

/* ---- what is noted -------------------------------- */

static int same_values(const brc_netcdf_values *a, const brc_netcdf_values *b)
{
    if (a->type != b->type || a->n != b->n)
        return 0;
    if (a->type != NC_STRING)
        return memcmp(a->data, b->data, a->n * brc_netcdf_atomic_size(a->type)) == 0;
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->texts[i], b->texts[i]) != 0)
            return 0;
    return 1;
}

/* Whether an export with this note would write the attribute as it was. */
static int comes_back(int *does, const brc_netcdf_atts_in *in, const char *name,
                      const brc_json *value, nc_type noted, const brc_netcdf_values *was,
                      brc_error *err)
{
    brc_netcdf_values back;
    BRC_TRY(brc_netcdf_att_values(&back, &in->of, name, value, noted, err));
    *does = same_values(&back, was);
    brc_netcdf_values_free(&back);
    return BRC_OK;
}

static int note_type(brc_netcdf_atts_in *in, const char *name, const char *type, brc_error *err)
{
    return brc_netcdf_note_att(&in->note, name, brc_json_new_string(type), err);
}

static int note_bytes(brc_netcdf_atts_in *in, const char *name, const brc_netcdf_values *was,
                      brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    brc_json *entry = brc_json_new_object();
    size_t size = brc_netcdf_atomic_size(was->type);
    int rc = entry ? BRC_OK : brc_nomem(err);

    if (rc == BRC_OK)
        rc = brc_json_set(entry, "type", brc_json_new_string(brc_netcdf_type_name(was->type)), err);
    if (rc == BRC_OK)
        rc = brc_base64_write(&text, was->data, was->n * size, err);
    if (rc == BRC_OK)
        rc = brc_buf_terminate(&text, err);
    if (rc == BRC_OK)
        rc = brc_json_set(entry, "base64", brc_json_new_string((const char *)text.data), err);
    brc_buf_dispose(&text);
    if (rc < 0) {
        brc_json_free(entry);
        return rc;
    }
    return brc_netcdf_note_att(&in->note, name, entry, err);
}

static int note_own(brc_netcdf_atts_in *in, brc_error *err)
{
    brc_json *entry;
    BRC_TRY(brc_json_parse(&entry, "{\"type\":\"own\"}", 14, err));
    return brc_netcdf_note_att(&in->note, BRC_NETCDF_FILL, entry, err);
}

static int note_if_needed(brc_netcdf_atts_in *in, const char *name, const brc_json *value,
                          const brc_netcdf_values *was, brc_error *err)
{
    int does = 0;
    if (value)
        BRC_TRY(comes_back(&does, in, name, value, NC_NAT, was, err));
    if (does)
        return BRC_OK;
    if (value)
        BRC_TRY(comes_back(&does, in, name, value, was->type, was, err));
    if (does || was->type == NC_STRING)
        return note_type(in, name, brc_netcdf_type_name(was->type), err);
    return note_bytes(in, name, was, err);
}

/* ---- one, and all ---------------------------------- */

static int take_att(brc_netcdf_atts_in *in, const char *name, const att_type *is, brc_error *err)
{
    brc_netcdf_values values;
    brc_json *value = NULL;
    int is_fill = in->of.is_var && strcmp(name, BRC_NETCDF_FILL) == 0 && is->n == 1;

    if (is_fill && is->type == in->var_type && in->var_type == NC_CHAR)
        return note_own(in, err);
    BRC_TRY(get_att(&values, in->group, in->var, name, is, in->label, err));
    int rc = brc_netcdf_att_json(&value, &in->of, name, &values, err);
    if (rc == BRC_OK)
        rc = note_if_needed(in, name, value, &values, err);
    brc_netcdf_values_free(&values);
    if (rc < 0) {
        brc_json_free(value);
        return rc;
    }
    return value ? brc_json_add(in->attrs, name, value, err) : BRC_OK;
}

/* A complex number's _FillValue: two numbers, as floats have one. */
static int pair_json(brc_json **out, nc_type of, const uint8_t *data, brc_error *err)
{
    brc_netcdf_of number = { .type = of, .is_var = 1 };
    size_t size = brc_netcdf_atomic_size(of);
    brc_json *list = brc_json_new_array(), *part;
    int rc = list ? BRC_OK : brc_nomem(err);

    for (size_t i = 0; rc == BRC_OK && i < 2; i++) {
        brc_netcdf_values value = { of, 1, (void *)(uintptr_t)(data + i * size), NULL };
        rc = brc_netcdf_att_json(&part, &number, BRC_NETCDF_FILL, &value, err);
        if (rc == BRC_OK)
            rc = brc_json_push(list, part, err);
    }
    if (rc < 0) {
        brc_json_free(list);
        return rc;
    }
    *out = list;
    return BRC_OK;
}

static int take_user_att(brc_netcdf_atts_in *in, const char *name, const att_type *is,
                         brc_error *err)
{
    int is_fill = in->of.is_var && strcmp(name, BRC_NETCDF_FILL) == 0 && is->n == 1 &&
                  is->type == in->var_type;
    brc_json *value = NULL;
    void *data;

    if (is_fill && !in->of.is_complex)
        return note_own(in, err);
    BRC_TRY(brc_new_array(&data, is->n + 1, is->size, err));
    int status = is->n > 0 ? nc_get_att(in->group, in->var, name, data) : 0;
    int rc = status ? cannot_read(status, name, in->label, err) : BRC_OK;
    if (rc == BRC_OK && is_fill)
        rc = pair_json(&value, is->size == 8 ? NC_FLOAT : NC_DOUBLE, data, err);
    else if (rc == BRC_OK)
        rc =
            brc_netcdf_user_json(&value, in->group, is->type, is->n, data, in->label, err);
    free(data);
    return rc < 0 ? rc : brc_json_add(in->attrs, name, value, err);
}

static int take_any_att(brc_netcdf_atts_in *in, const char *name, brc_error *err)
{
    att_type is = { 0 };
    if (!brc_utf8_valid(name, strlen(name)))
        return brc_part_refuse(err, BRC_PART_NAME, "rename it",
                               "%s: an attribute's name is not UTF-8", in->label);
    BRC_TRY(inquire_att(&is, in->group, in->var, name, in->label, err));
    return is.is_user ? take_user_att(in, name, &is, err) : take_att(in, name, &is, err);
}

int brc_netcdf_read_atts(brc_netcdf_atts_in *in, brc_error *err)
{
    char name[BRC_NETCDF_NAME_MAX];
    int n = 0;
    int status = in->var == NC_GLOBAL ? nc_inq_natts(in->group, &n)
                                      : nc_inq_varnatts(in->group, in->var, &n);
    if (status)
        return brc_netcdf_fail(status, BRC_EINVAL, "cannot read the attributes of",
                               in->label, err);
    BRC_TRY(brc_attr_check_count((uint64_t)n, in->label, err));
    in->attrs = brc_json_new_object();
    if (!in->attrs)
        return brc_nomem(err);
    const char *path = brc_convert_path(in->convert, in->label);
    for (int i = 0; i < n; i++) {
        status = nc_inq_attname(in->group, in->var, i, name);
        if (status)
            return brc_netcdf_fail(status, BRC_EINVAL, "cannot read the attributes of",
                                   in->label, err);
        if (brc_convert_lacks_attribute(in->convert, path, name))
            continue;
        int rc = brc_convert_settle(in->convert, take_any_att(in, name, err), path, name, err);
        if (rc < 0)
            return rc;
    }
    return BRC_OK;
}
