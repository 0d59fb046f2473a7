/*
 * Finding the data type of a NumPy descr.
 *
 *   '<f4'                    a type whose own descr it is; "|V3" is r24
 *   '<M8[10us]' '|S5' '<U7'  a type with a configuration, made from the descr
 *   [('a', '<i4'), ...]      struct: tuples of a name and a descr, or a list again
 *
 * The descr comes from a file. Nothing in it is evaluated, and depth is bounded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"

#define NPY_RECORD_DEPTH 12

/* ---- a type whose descr it is -------------------------------- */

/* NumPy writes "|" for types without a byte order, but "<u1" is read as well. */
static int npy_is(const brc_dtype *type, const char *descr)
{
    return type->npy != NULL && strcmp(type->npy + 1, descr + 1) == 0 &&
           (descr[0] != '|' || type->swap_unit == 1);
}

/* NumPy's "|V3" is "r24": a family has no list that could be searched. */
static int npy_raw_name(char *out, size_t size, const char *descr)
{
    size_t digits = strspn(descr + 1 + (descr[1] == 'V'), "0123456789");

    if (descr[1] != 'V' || digits == 0 || digits > 9 || descr[2 + digits] != '\0')
        return 0;
    snprintf(out, size, "r%llu", 8 * strtoull(descr + 2, NULL, 10));
    return 1;
}

/* Opens the type that this slot gives for the descr; *out is NULL if there is none. */
static int npy_try_slot(brc_dtype **out, const brc_registry *reg, const brc_dtype_slot *slot,
                        const char *descr, brc_error *err)
{
    brc_dtype *type = NULL;
    brc_error why = BRC_ERROR_INIT;
    char raw[32];
    const char *name = slot->spec.name;

    *out = NULL;
    if (slot->spec.match != NULL) {
        if (!npy_raw_name(raw, sizeof(raw), descr) || !slot->spec.match(slot->spec.ctx, raw))
            return BRC_OK;
        name = raw;
    }
    int rc = brc_dtype_bind(&type, reg, slot, name, NULL, &why);
    if (rc == BRC_ENOMEM)
        return brc_fail(err, rc, "%s", why.message);
    if (rc < 0)
        return BRC_OK; /* needs a configuration, so no descr means this type     */
    if (npy_is(type, descr))
        *out = type;
    else
        brc_dtype_free(type);
    return BRC_OK;
}

/* Keeps the first of two types if both are breccia's own: complex64 and complex_float32 are two
 * names of one layout, and the descr means the first. Otherwise fails with BRC_EAMBIGUOUS. */
static int npy_pick(brc_dtype **found, int *found_core, brc_dtype *other, int other_core,
                    const char *descr, brc_error *err)
{
    if (*found == NULL) {
        *found = other;
        *found_core = other_core;
        return BRC_OK;
    }
    int rc = BRC_OK;
    if (!*found_core || !other_core)
        rc = brc_fail(
            err, BRC_EAMBIGUOUS,
            "NumPy's \"%s\" may be the data type \"%s\" or \"%s\": give one of these names",
            descr, (*found)->name, other->name);
    brc_dtype_free(other);
    return rc;
}

static int npy_search(brc_dtype **out, const brc_registry *reg, const char *descr, brc_error *err)
{
    brc_dtype *other = NULL;
    int core = 0;
    const brc_dtype_registry *types = brc_dtypes_of(reg);

    for (size_t i = 0; i < types->n; i++) {
        int rc = npy_try_slot(&other, reg, types->slots[i], descr, err);
        if (rc == BRC_OK && other != NULL)
            rc = npy_pick(out, &core, other, types->slots[i]->origin.core, descr, err);
        if (rc < 0) {
            brc_dtype_free(*out);
            *out = NULL;
            return rc;
        }
    }
    if (*out == NULL)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "NumPy's data type \"%.80s\" has no counterpart in this build", descr);
    return BRC_OK;
}

/* ---- a type made from the descr -------------------------------- */

/* Reads up to nine digits at *p. Returns 0 if there are none. */
static unsigned long npy_digits(const char **p)
{
    size_t n = strspn(*p, "0123456789");
    unsigned long value = n > 0 && n <= 9 ? strtoul(*p, NULL, 10) : 0;

    *p += n;
    return value;
}

/* Writes the JSON of "S5" and "U7". */
static int npy_text_json(brc_buf *out, const char *descr, brc_error *err)
{
    const char *p = descr + 2;
    unsigned long n = npy_digits(&p);

    if (n == 0 || *p != '\0' || (descr[1] == 'U' && descr[0] == '|'))
        return BRC_OK;
    return brc_buf_printf(
        out, err, "{\"name\":\"%s\",\"configuration\":{\"length_bytes\":%lu}}",
        descr[1] == 'U' ? "fixed_length_utf32" : "null_terminated_bytes",
        descr[1] == 'U' ? 4 * n : n);
}

/* Writes the JSON of "M8[10us]", "m8[s]", and "M8" for the generic unit. */
static int npy_time_json(brc_buf *out, const char *descr, brc_error *err)
{
    const char *p = descr + 3, *unit = "generic";
    unsigned long scale = 1;
    size_t len = strlen(unit);

    if (descr[0] == '|' || descr[2] != '8')
        return BRC_OK;
    if (*p == '[') {
        p++;
        if (*p >= '0' && *p <= '9')
            scale = npy_digits(&p);
        unit = p;
        len = strspn(p, "abcdefghijklmnopqrstuvwxyzYMWD");
        p += len;
        if (len == 0 || scale == 0 || *p++ != ']')
            return BRC_OK;
    }
    if (*p != '\0')
        return BRC_OK;
    return brc_buf_printf(out, err,
                          "{\"name\":\"numpy.%s\",\"configuration\":"
                          "{\"unit\":\"%.*s\",\"scale_factor\":%lu}}",
                          descr[1] == 'M' ? "datetime64" : "timedelta64", (int)len, unit, scale);
}

static int npy_open_json(brc_dtype **out, const brc_registry *reg, const brc_buf *text,
                         brc_error *err)
{
    brc_json *json = NULL;

    BRC_TRY(brc_json_parse(&json, (const char *)text->data, text->len, 0, err));
    int rc = brc_dtype_open(out, reg, json, NULL, err);
    brc_json_free(json);
    return rc;
}

static int npy_open_simple(brc_dtype **out, const brc_registry *reg, const char *descr,
                           brc_error *err)
{
    brc_buf json = BRC_BUF_INIT;
    int rc = BRC_OK;

    if (descr[1] == 'S' || descr[1] == 'U')
        BRC_GO(npy_text_json(&json, descr, err));
    else if (descr[1] == 'M' || descr[1] == 'm')
        BRC_GO(npy_time_json(&json, descr, err));
    if (json.len > 0)
        rc = npy_open_json(out, reg, &json, err);
    else
        rc = npy_search(out, reg, descr, err);
done:
    brc_buf_dispose(&json);
    return rc;
}

/* ---- records -------------------------------- */

/* A Python literal on its way to the JSON of a struct. */
struct npy_record {
    const brc_registry *reg;
    const char *at;
    brc_buf *json;
    int order; /* of fields with a byte order: 0 not known yet, '<' or '>'        */
    int depth;
};

static void record_skip_blanks(struct npy_record *r)
{
    r->at += strspn(r->at, " \t\r\n");
}

static int record_take(struct npy_record *r, char c)
{
    record_skip_blanks(r);
    if (*r->at != c)
        return 0;
    r->at++;
    return 1;
}

static int record_bad(const char *what, brc_error *err)
{
    return brc_fail(err, BRC_EINVAL, "NumPy's list of fields: %s", what);
}

/* Reads the inside of a quoted string without escapes. */
static int record_string(struct npy_record *r, const char **text, size_t *len, brc_error *err)
{
    record_skip_blanks(r);
    char quote = *r->at;
    if (quote != '\'' && quote != '"')
        return record_bad("a string is expected", err);
    *text = ++r->at;
    while (*r->at != '\0' && *r->at != quote && *r->at != '\\')
        r->at++;
    *len = (size_t)(r->at - *text);
    if (*r->at == '\\')
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "NumPy's list of fields: a string with a backslash cannot be read");
    if (*r->at != quote)
        return record_bad("a string has no end", err);
    r->at++;
    return BRC_OK;
}

static int record_name(struct npy_record *r, brc_error *err)
{
    const char *name = NULL;
    size_t len = 0;

    record_skip_blanks(r);
    if (*r->at == '(')
        return brc_fail(err, BRC_EUNSUPPORTED, "NumPy's list of fields: a field with a title");
    BRC_TRY(record_string(r, &name, &len, err));
    if (len == 0)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "NumPy's list of fields: a field without a name is padding, and Zarr's "
                        "struct has none; pack the fields first");
    if (!brc_utf8_valid(name, len))
        return brc_fail(err, BRC_EUNSUPPORTED, "NumPy's list of fields: a name is not UTF-8");
    BRC_TRY(brc_buf_text(r->json, "{\"name\":", err));
    BRC_TRY(brc_json_quote(r->json, name, len, err));
    return brc_buf_text(r->json, ",\"data_type\":", err);
}

static int record_leaf(struct npy_record *r, brc_error *err)
{
    const char *text = NULL;
    char descr[64];
    size_t len = 0;
    brc_dtype *type = NULL;
    int big = 0;

    BRC_TRY(record_string(r, &text, &len, err));
    if (len >= sizeof(descr))
        return brc_fail(err, BRC_EUNSUPPORTED, "NumPy has no data type like %.60s", text);
    memcpy(descr, text, len);
    descr[len] = '\0';
    BRC_TRY(brc_dtype_open_npy(&type, &big, r->reg, descr, err));
    int order = type->swap_unit == 1 ? r->order : big ? '>' : '<';
    int rc = brc_buf_text(r->json, type->json, err);
    brc_dtype_free(type);
    if (rc == BRC_OK && r->order != 0 && order != r->order)
        rc = brc_fail(err, BRC_EUNSUPPORTED,
                      "NumPy's list of fields: the fields have different byte orders");
    r->order = order;
    return rc;
}

static int record_list(struct npy_record *r, brc_error *err);

/* Reads ('name', '<f4') or ('name', [...]); a third part is the shape of a sub-array. */
static int record_field(struct npy_record *r, brc_error *err)
{
    if (!record_take(r, '('))
        return record_bad("a tuple is expected", err);
    BRC_TRY(record_name(r, err));
    if (!record_take(r, ','))
        return record_bad("a comma is expected", err);
    record_skip_blanks(r);
    BRC_TRY(*r->at == '[' ? record_list(r, err) : record_leaf(r, err));
    int comma = record_take(r, ',');
    if (!record_take(r, ')'))
        return comma ? brc_fail(err, BRC_EUNSUPPORTED,
                                "NumPy's list of fields: a field that is an array has no "
                                "counterpart") :
                       record_bad("a tuple has no end", err);
    return brc_buf_text(r->json, "}", err);
}

static int record_list(struct npy_record *r, brc_error *err)
{
    int n = 0, comma = 1;

    if (!record_take(r, '['))
        return record_bad("a list is expected", err);
    if (++r->depth > NPY_RECORD_DEPTH)
        return brc_fail(err, BRC_ELIMIT, "NumPy's list of fields is nested too deep");
    BRC_TRY(brc_buf_text(r->json, "{\"name\":\"struct\",\"configuration\":{\"fields\":[", err));
    for (; !record_take(r, ']'); n++) {
        if (!comma)
            return record_bad("a comma is expected", err);
        if (n > 0)
            BRC_TRY(brc_buf_text(r->json, ",", err));
        BRC_TRY(record_field(r, err));
        comma = record_take(r, ',');
    }
    r->depth--;
    return brc_buf_text(r->json, "]}}", err);
}

static int npy_open_record(brc_dtype **out, int *big, const brc_registry *reg, const char *descr,
                           brc_error *err)
{
    brc_buf json = BRC_BUF_INIT;
    struct npy_record record = { reg, descr, &json, 0, 0 };
    int rc;

    BRC_GO(record_list(&record, err));
    record_skip_blanks(&record);
    if (*record.at != '\0') {
        rc = record_bad("there is text after it", err);
        goto done;
    }
    BRC_GO(npy_open_json(out, reg, &json, err));
    *big = record.order == '>';
done:
    brc_buf_dispose(&json);
    return rc;
}

int brc_dtype_open_npy(brc_dtype **out, int *big, const brc_registry *reg, const char *descr,
                       brc_error *err)
{
    *out = NULL;
    *big = 0;
    if (descr[0] == '[')
        return npy_open_record(out, big, reg, descr, err);
    if (descr[0] == '\0' || strchr("<>|=", descr[0]) == NULL)
        return brc_fail(err, BRC_EINVAL, "\"%.80s\" is not a NumPy data type such as \"<f4\"",
                        descr);
    BRC_TRY(npy_open_simple(out, reg, descr, err));
    int native_big = descr[0] == '=' && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    *big = (*out)->swap_unit > 1 && (descr[0] == '>' || native_big);
    return BRC_OK;
}
