/*
 * Text and bytes of a fixed length, which the configuration gives in bytes:
 *
 *   fixed_length_utf32      NumPy's U: code points of four bytes each, zeros behind
 *   null_terminated_bytes   NumPy's S: bytes, zeros behind
 *   raw_bytes               NumPy's V: bytes, all of them
 *
 * Zeros at the end of the first two are padding, so a text cannot end in U+0000.
 * A fill value that is too long is refused, not cut. As JSON, bytes are base64; as
 * text, see brc_bytes_print().
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "dtype_ops.h"
#include "dtype_text.h"

/* ==== dtype fixed ================================ */

/* Returns the length of the element without the padding. */
static size_t fixed_content(const uint8_t *element, size_t len, size_t unit)
{
    while (len > 0 && element[len - 1] == 0)
        len--;
    return (len + unit - 1) / unit * unit;
}

static int fixed_pad(const brc_dtype *type, brc_buf *out, size_t start, brc_error *err)
{
    size_t missing = type->item_size - (out->len - start);
    if (missing == 0)
        return BRC_OK;
    BRC_TRY(brc_buf_reserve(out, missing, err));
    memset(out->data + out->len, 0, missing);
    out->len += missing;
    return BRC_OK;
}

/* ---- UTF-32 ---------------------------------------------------------------------------- */

/* Returns the code point of the `step` bytes of valid UTF-8 at `at`. */
static uint32_t utf8_code(const uint8_t *at, size_t step)
{
    static const uint8_t first[5] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    uint32_t code = at[0] & first[step];
    for (size_t i = 1; i < step; i++)
        code = code << 6 | (at[i] & 0x3fu);
    return code;
}

static int utf32_append(const brc_dtype *type, const uint8_t *text, size_t len, brc_buf *out,
                        brc_error *err)
{
    size_t start = out->len;
    while (len > 0) {
        uint8_t code[4];
        size_t step = brc_utf8_step(text, len);
        if (step == 0 || out->len - start == type->item_size) {
            out->len = start;
            return brc_fail(err, BRC_EINVAL,
                            step == 0 ? "the value for %s is not UTF-8 text" :
                                        "the value is too long for %s of %zu code points",
                            type->name, type->item_size / 4);
        }
        brc_put_u32le(code, utf8_code(text, step));
        BRC_TRY(brc_buf_append(out, code, sizeof(code), err));
        text += step;
        len -= step;
    }
    return fixed_pad(type, out, start, err);
}

static int utf32_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    char label[BRC_VALUE_LABEL];
    brc_buf text = BRC_BUF_INIT;
    size_t start = out->len;
    int rc;
    if (brc_json_kind(json) != BRC_JSON_STRING)
        return brc_fail(err, BRC_EINVAL, "fill value %s does not fit %s (a JSON string)",
                        brc_value_label(label, json), type->name);
    BRC_GO(brc_string_read(&text, json, err));
    rc = utf32_append(type, text.data, text.len, out, err);
done:
    brc_buf_dispose(&text);
    if (rc < 0)
        out->len = start;
    return rc;
}

/* NumPy stores any 32 bits; a value that is not a character is shown as U+FFFD, and cannot be
 * written as a fill value. */
static int utf32_to_utf8(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                         brc_buf *out, brc_error *err)
{
    for (size_t at = 0; at < len; at += 4) {
        uint8_t utf8[4];
        uint32_t code = brc_get_u32le(element + at);
        if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
            if (how == BRC_PRINT_FILL)
                return brc_fail(err, BRC_EINVAL,
                                "an element of %s has the code %lu, which is not a character",
                                type->name, (unsigned long)code);
            code = 0xFFFD;
        }
        BRC_TRY(brc_buf_append(out, utf8, brc_utf8_encode(utf8, code), err));
    }
    return BRC_OK;
}

static int utf32_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                       brc_buf *out, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_TRY(brc_element_length_fits(type, len, err));
    BRC_GO(utf32_to_utf8(type, element, fixed_content(element, len, 4), how, &text, err));
    if (how == BRC_PRINT_TEXT)
        rc = brc_buf_append(out, text.data, text.len, err);
    else
        rc = brc_json_quote(out, (const char *)text.data, text.len, err);
done:
    brc_buf_dispose(&text);
    return rc;
}

/* ---- bytes -------------------------------- */

static int padded_append(const brc_dtype *type, const uint8_t *data, size_t len, brc_buf *out,
                         brc_error *err)
{
    size_t start = out->len;
    if (len > type->item_size)
        return brc_fail(err, BRC_EINVAL, "the value has %zu bytes, too many for %s of %zu", len,
                        type->name, type->item_size);
    BRC_TRY(brc_buf_append(out, data, len, err));
    return fixed_pad(type, out, start, err);
}

static int padded_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    char label[BRC_VALUE_LABEL];
    brc_buf bytes = BRC_BUF_INIT;
    int rc = brc_bytes_read(&bytes, json, err);
    if (rc == BRC_OK)
        rc = padded_append(type, bytes.data, bytes.len, out, err);
    else if (rc == BRC_EINVAL)
        rc = brc_fail(err, rc, "fill value %s does not fit %s (base64 of at most %zu bytes)",
                      brc_value_label(label, json), type->name, type->item_size);
    brc_buf_dispose(&bytes);
    return rc;
}

static int exact_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    char label[BRC_VALUE_LABEL];
    size_t start = out->len;
    int rc = brc_bytes_read(out, json, err);
    if (rc == BRC_OK && out->len - start == type->item_size)
        return BRC_OK;
    out->len = start;
    if (rc < 0 && rc != BRC_EINVAL)
        return rc;
    return brc_fail(
        err, BRC_EINVAL,
        "fill value %s does not fit %s (base64 of %zu bytes, or as many integers from 0 to 255)",
        brc_value_label(label, json), type->name, type->item_size);
}

static int fixed_bytes_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                             brc_buf *out, brc_error *err)
{
    BRC_TRY(brc_element_length_fits(type, len, err));
    if (how == BRC_PRINT_TEXT)
        return brc_bytes_print(
            out, element,
            type->klass == BRC_CLASS_RAW ? len : fixed_content(element, len, 1), err);
    BRC_TRY(brc_buf_byte(out, '"', err));
    BRC_TRY(brc_base64_write(out, element, len, err));
    return brc_buf_byte(out, '"', err);
}

/* ---- text as people type it -------------------------------- */

/* Reads a string: text in quotes is JSON; other text, also 12 and true, is the string itself. */
static int utf32_scan(const brc_dtype *type, const char *text, const brc_json *json, brc_buf *out,
                      brc_error *err)
{
    if (brc_json_kind(json) == BRC_JSON_STRING)
        return 0;
    BRC_TRY(utf32_append(type, (const uint8_t *)text, strlen(text), out, err));
    return 1;
}

/* Reads bytes: text in quotes or a list is JSON; all other text is that of brc_bytes_print(). */
static int padded_scan(const brc_dtype *type, const char *text, const brc_json *json, brc_buf *out,
                       brc_error *err)
{
    int kind = brc_json_kind(json);
    brc_buf bytes = BRC_BUF_INIT;
    if (kind == BRC_JSON_STRING || kind == BRC_JSON_ARRAY)
        return 0;
    int rc = brc_bytes_scan(&bytes, text, err);
    if (rc == BRC_OK)
        rc = padded_append(type, bytes.data, bytes.len, out, err);
    brc_buf_dispose(&bytes);
    return rc < 0 ? rc : 1;
}

/* The ops.scan of types whose elements are plain bytes: reads "\\x00a", the printed form, if the
 * text has the type's length once escapes are read. parse reads shorter text, such as base64. */
static int exact_bytes_scan(const brc_dtype *type, const char *text, const brc_json *json,
                            brc_buf *out, brc_error *err)
{
    int kind = brc_json_kind(json);
    size_t start = out->len;
    if (kind == BRC_JSON_STRING || kind == BRC_JSON_ARRAY)
        return 0;
    int rc = brc_bytes_scan(out, text, err);
    if (rc == BRC_OK && out->len - start == type->item_size)
        return 1;
    out->len = start;
    return rc;
}

/* ---- the table and opening -------------------------------- */

static const brc_dtype_ops utf32_ops = { .size = sizeof(brc_dtype_ops),
                                         .parse = utf32_parse,
                                         .print = utf32_print,
                                         .scan = utf32_scan };
static const brc_dtype_ops padded_ops = { .size = sizeof(brc_dtype_ops),
                                          .parse = padded_parse,
                                          .print = fixed_bytes_print,
                                          .scan = padded_scan };
static const brc_dtype_ops exact_ops = { .size = sizeof(brc_dtype_ops),
                                         .parse = exact_parse,
                                         .print = fixed_bytes_print,
                                         .scan = exact_bytes_scan };

struct fixed_kind {
    const char *name;
    int klass;
    size_t unit; /* length_bytes is a multiple of this                            */
    char npy;
    const brc_dtype_ops *ops;
};

static const struct fixed_kind fixed_kinds[] = {
    { "fixed_length_utf32", BRC_CLASS_STRING, 4, 'U', &utf32_ops },
    { "null_terminated_bytes", BRC_CLASS_BYTES, 1, 'S', &padded_ops },
    { "raw_bytes", BRC_CLASS_RAW, 1, 'V', &exact_ops },
};

static const struct fixed_kind *fixed_kind_of(const char *name)
{
    const struct fixed_kind *kind = fixed_kinds;
    while (strcmp(kind->name, name) != 0)
        kind++;
    return kind;
}

struct fixed_state {
    char npy[24];
};

int brc_fixed_open(void *ctx, brc_dtype *out, const char *name, const brc_json *config,
                   brc_error *err)
{
    static const char *const members[] = { "length_bytes" };
    const struct fixed_kind *kind = fixed_kind_of(ctx);
    struct fixed_state *state = NULL;
    uint64_t len = 0;
    if (config != NULL)
        BRC_TRY(brc_json_allow(config, members, 1, err));
    if (!brc_json_uint(brc_json_member(config, "length_bytes"), UINT64_MAX, &len) || len == 0 ||
        len % kind->unit != 0)
        return brc_fail(err, BRC_EINVAL, "data type %s needs \"length_bytes\", a%s above 0", name,
                        kind->unit > 1 ? " multiple of 4" : "n integer");
    if (len > BRC_MAX_ITEM_SIZE)
        return brc_fail(err, BRC_EUNSUPPORTED, "data type %s has more than %zu bytes per element",
                        name, BRC_MAX_ITEM_SIZE);
    BRC_TRY(brc_new((void **)&state, sizeof(*state), err));
    snprintf(state->npy, sizeof(state->npy), "%c%c%llu", kind->unit > 1 ? '<' : '|', kind->npy,
             (unsigned long long)(len / kind->unit));
    *out = (brc_dtype){ .size = sizeof(brc_dtype),
                        .name = kind->name,
                        .klass = kind->klass,
                        .item_size = (size_t)len,
                        .swap_unit = kind->unit,
                        .bits = (unsigned)(8 * len),
                        .npy = state->npy,
                        .ops = kind->ops,
                        .state = state };
    return BRC_OK;
}

void brc_fixed_close(void *ctx, brc_dtype *type)
{
    (void)ctx;
    free(type->state);
    type->state = NULL;
}

/* ==== dtype raw ================================ */

/*
 * r<bits>: opaque bytes. No byte order applies to them, and their fill value is
 * bits / 8 bytes: an array of integers, or base64 (RFC 4648, with padding).
 */

/* Half the number of values that a document may have, so that a fill value can be written. */
#define RAW_MAX_BYTES ((size_t)1 << 19)

struct raw_names { /* a type's state: what its name and npy point to */
    char name[24];
    char npy[24];
};

/* Matches "r" and digits, also names that open() refuses, so that users see open()'s message. */
int brc_raw_match(void *ctx, const char *name)
{
    (void)ctx;
    size_t digits = name[0] == 'r' ? strspn(name + 1, "0123456789") : 0;
    return digits > 0 && name[1 + digits] == '\0';
}

static int raw_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err);
static int raw_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                     brc_buf *out, brc_error *err);

static const brc_dtype_ops raw_ops = { .size = sizeof(brc_dtype_ops),
                                       .parse = raw_parse,
                                       .print = raw_print,
                                       .scan = exact_bytes_scan };

int brc_raw_open(void *ctx, brc_dtype *out, const char *name, const brc_json *config,
                 brc_error *err)
{
    struct raw_names *names = NULL;
    if (!brc_raw_match(ctx, name))
        return brc_fail(err, BRC_EINVAL, "data type \"%.40s\" is not r and a number of bits", name);
    unsigned long bits = strlen(name) <= 10 ? strtoul(name + 1, NULL, 10) : (RAW_MAX_BYTES + 1) * 8;
    if (name[1] == '0' || bits % 8 != 0)
        return brc_fail(err, BRC_EINVAL,
                        "data type %.40s: the number of bits must be a multiple of 8 above 0, "
                        "without leading zeros",
                        name);
    if (bits / 8 > RAW_MAX_BYTES)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "data type %.40s has more than %zu bytes per element", name,
                        RAW_MAX_BYTES);
    BRC_TRY(brc_dtype_no_config(name, config, err));
    BRC_TRY(brc_new((void **)&names, sizeof(*names), err));
    snprintf(names->name, sizeof(names->name), "r%lu", bits);
    snprintf(names->npy, sizeof(names->npy), "|V%lu", bits / 8);
    const char *json = out->json;
    *out = (brc_dtype){ .size = sizeof(brc_dtype),
                        .json = json,
                        .name = names->name,
                        .klass = BRC_CLASS_RAW,
                        .item_size = bits / 8,
                        .swap_unit = 1,
                        .bits = (unsigned)bits,
                        .npy = names->npy,
                        .ops = &raw_ops,
                        .state = names };
    return BRC_OK;
}

void brc_raw_close(void *ctx, brc_dtype *type)
{
    (void)ctx;
    free(type->state);
    type->state = NULL;
}

/* ---- fill values ---------------------------------------------------------------- */

static int raw_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    char label[BRC_VALUE_LABEL];
    size_t start = out->len;
    int rc = brc_bytes_read(out, json, err);
    if (rc == BRC_OK && out->len - start == type->item_size)
        return BRC_OK;
    out->len = start;
    if (rc < 0 && rc != BRC_EINVAL)
        return rc;
    return brc_fail(
        err, BRC_EINVAL,
        "fill value %s does not fit %s (%zu integers from 0 to 255, or base64 of %zu bytes)",
        brc_value_label(label, json), type->name, type->item_size, type->item_size);
}

static int raw_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                     brc_buf *out, brc_error *err)
{
    BRC_TRY(brc_element_length_fits(type, len, err));
    if (how == BRC_PRINT_TEXT) {
        for (size_t i = 0; i < len; i++)
            BRC_TRY(brc_buf_printf(out, err, "\\x%02x", element[i]));
        return BRC_OK;
    }
    for (size_t i = 0; i < len; i++)
        BRC_TRY(brc_buf_printf(out, err, "%c%d", i == 0 ? '[' : ',', element[i]));
    return brc_buf_append(out, "]", 1, err);
}

/* ==== dtype struct ================================ */

/*
 * struct: records of named fields, packed in their order, without padding. A field
 * is of any type of fixed size, a struct among them; the other byte order reverses
 * each field by itself.
 *
 *   struct      fields [{"name": N, "data_type": T}, ...]; the fill value is an
 *               object with every field
 *   structured  the form of zarr-python 3.0 and 3.1: fields [[N, T], ...]; the fill
 *               value is base64 of the little-endian record, and may be an array or
 *               an object. breccia reads this form and keeps it.
 *
 * As JSON a record is an object, as text a tuple.
 */

#define STRUCT_MAX_FIELDS 4096

struct struct_field {
    const char *name; /* own memory                                             */
    brc_dtype *type;
    size_t offset;
};

struct struct_state {
    struct struct_field *fields;
    size_t n;
    int legacy, swaps, normalizes;
    char *npy, *json;
    brc_dtype_ops ops;
};

static const struct struct_state *struct_of(const brc_dtype *type)
{
    return type->state;
}

/* ---- opening ----------------------------------------------------------------------- */

static void struct_free(struct struct_state *state)
{
    if (state == NULL)
        return;
    for (size_t i = 0; i < state->n; i++) {
        free((void *)(uintptr_t)state->fields[i].name);
        brc_dtype_free(state->fields[i].type);
    }
    free(state->fields);
    free(state->npy);
    free(state->json);
    free(state);
}

/* Reads the two parts of a field in either form. */
static int field_parts(const char *name, int legacy, const brc_json *item, const brc_json **field,
                       const brc_json **type, brc_error *err)
{
    static const char *const members[] = { "name", "data_type" };
    if (legacy) {
        if (brc_json_kind(item) != BRC_JSON_ARRAY || brc_json_count(item) != 2)
            return brc_fail(err, BRC_EINVAL, "data type %s: a field must be [name, data type]",
                            name);
        *field = brc_json_first(item);
        *type = brc_json_next(*field);
        return BRC_OK;
    }
    if (brc_json_kind(item) != BRC_JSON_OBJECT)
        return brc_fail(err, BRC_EINVAL,
                        "data type %s: a field must be {\"name\": ..., \"data_type\": ...}", name);
    BRC_TRY(brc_json_allow(item, members, 2, err));
    *field = brc_json_member(item, "name");
    *type = brc_json_member(item, "data_type");
    return BRC_OK;
}

static int field_read_name(const char **out, const char *name, const struct struct_state *state,
                           const brc_json *field, brc_error *err)
{
    if (!brc_json_text(field, out) || **out == '\0')
        return brc_fail(err, BRC_EINVAL,
                        "data type %s: a field's name must be a string, not empty and without "
                        "U+0000",
                        name);
    for (size_t i = 0; i < state->n; i++)
        if (strcmp(state->fields[i].name, *out) == 0)
            return brc_fail(err, BRC_EINVAL, "data type %s has two fields \"%.60s\"", name, *out);
    return BRC_OK;
}

static int field_check_type(const char *name, const char *field, const brc_dtype *type,
                            brc_error *err)
{
    if (type->item_size == 0)
        return brc_fail(err, BRC_EINVAL,
                        "data type %s: the field \"%.60s\" is %s, which has no fixed size", name,
                        field, type->name);
    if (type->klass == BRC_CLASS_OPTIONAL)
        return brc_fail(err, BRC_EINVAL,
                        "data type %s: the field \"%.60s\" is %s, but a field cannot be missing",
                        name, field, type->name);
    return BRC_OK;
}

/* Adds a field. Once it has its name, the field is in state->fields and is freed with them. */
static int struct_add_field(struct struct_state *state, const char *name,
                            const brc_registry *registry, const brc_json *item, size_t *size,
                            brc_error *err)
{
    struct struct_field *field = &state->fields[state->n];
    const brc_json *field_name = NULL, *type = NULL;
    const char *given;
    char *text = NULL;
    BRC_TRY(field_parts(name, state->legacy, item, &field_name, &type, err));
    BRC_TRY(field_read_name(&given, name, state, field_name, err));
    if (type == NULL)
        return brc_fail(err, BRC_EINVAL, "data type %s: a field has no \"data_type\"", name);
    BRC_TRY(brc_dup(&text, given, err));
    field->name = text;
    state->n++;
    int rc = brc_dtype_open(&field->type, registry, type, NULL, err);
    if (rc < 0) {
        brc_context(err, "data type %s: the field \"%.60s\"", name, text);
        return rc;
    }
    BRC_TRY(field_check_type(name, text, field->type, err));
    field->offset = *size;
    *size += field->type->item_size;
    if (field->type->item_size > BRC_MAX_ITEM_SIZE || *size > BRC_MAX_ITEM_SIZE)
        return brc_fail(err, BRC_EUNSUPPORTED, "data type %s has more than %zu bytes per element",
                        name, BRC_MAX_ITEM_SIZE);
    state->swaps |= field->type->swap_unit > 1;
    state->normalizes |= brc_dtype_normalize(field->type, NULL, 0);
    return BRC_OK;
}

static int struct_read_config(struct struct_state *state, const char *name,
                              const brc_registry *registry, const brc_json *config, size_t *size,
                              brc_error *err)
{
    static const char *const members[] = { "fields" };
    const brc_json *fields = brc_json_member(config, "fields");
    size_t n = brc_json_count(fields);
    if (config != NULL)
        BRC_TRY(brc_json_allow(config, members, 1, err));
    if (brc_json_kind(fields) != BRC_JSON_ARRAY || n == 0)
        return brc_fail(err, BRC_EINVAL, "data type %s needs \"fields\", a list of one or more",
                        name);
    if (n > STRUCT_MAX_FIELDS)
        return brc_fail(err, BRC_ELIMIT, "data type %s has more than %d fields", name,
                        STRUCT_MAX_FIELDS);
    BRC_TRY(brc_new_array((void **)&state->fields, n, sizeof(*state->fields), err));
    for (const brc_json *v = brc_json_first(fields); v != NULL; v = brc_json_next(v))
        BRC_TRY(struct_add_field(state, name, registry, v, size, err));
    return BRC_OK;
}

/* Returns whether NumPy's header can have the name in quotes unchanged. */
static int is_plain_name(const char *name)
{
    for (const char *p = name; *p != '\0'; p++)
        if (*p < 0x20 || *p >= 0x7f || *p == '\'' || *p == '\\')
            return 0;
    return 1;
}

/* "[('a', '<i4'), ('p', [('x', '<f4')])]"; stays NULL if NumPy lacks a type. */
static int struct_write_npy(struct struct_state *state, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    for (size_t i = 0; i < state->n; i++)
        if (state->fields[i].type->npy == NULL || !is_plain_name(state->fields[i].name))
            return BRC_OK;
    for (size_t i = 0; i < state->n; i++) {
        const char *npy = state->fields[i].type->npy;
        const char *quote = npy[0] == '[' ? "" : "'";
        BRC_GO(brc_buf_text(&text, i == 0 ? "[('" : ", ('", err));
        BRC_GO(brc_buf_text(&text, state->fields[i].name, err));
        BRC_GO(brc_buf_text(&text, "', ", err));
        BRC_GO(brc_buf_text(&text, quote, err));
        BRC_GO(brc_buf_text(&text, npy, err));
        BRC_GO(brc_buf_text(&text, quote, err));
        BRC_GO(brc_buf_text(&text, ")", err));
    }
    BRC_GO(brc_buf_text(&text, "]", err));
    BRC_GO(brc_buf_take_text(&text, &state->npy, err));
done:
    brc_buf_dispose(&text);
    return rc;
}

/* Writes fields whose types have two spellings in one of them. */
static int struct_write_json(struct struct_state *state, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    if (state->legacy)
        return BRC_OK;
    BRC_GO(brc_buf_text(&text, "{\"name\":\"struct\",\"configuration\":{\"fields\":[", err));
    for (size_t i = 0; i < state->n; i++) {
        const char *name = state->fields[i].name;
        BRC_GO(brc_buf_text(&text, i == 0 ? "{\"name\":" : ",{\"name\":", err));
        BRC_GO(brc_json_quote(&text, name, strlen(name), err));
        BRC_GO(brc_buf_text(&text, ",\"data_type\":", err));
        BRC_GO(brc_buf_text(&text, state->fields[i].type->json, err));
        BRC_GO(brc_buf_text(&text, "}", err));
    }
    BRC_GO(brc_buf_text(&text, "]}}", err));
    BRC_GO(brc_buf_take_text(&text, &state->json, err));
done:
    brc_buf_dispose(&text);
    return rc;
}

static int struct_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err);
static int struct_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                        brc_buf *out, brc_error *err);
static int struct_scan(const brc_dtype *type, const char *text, const brc_json *json, brc_buf *out,
                       brc_error *err);
static void struct_swap(const brc_dtype *type, uint8_t *dst, const uint8_t *src, size_t n);
static void struct_normalize(const brc_dtype *type, uint8_t *data, size_t n);

int brc_struct_open(void *ctx, brc_dtype *out, const char *name, const brc_json *config,
                    brc_error *err)
{
    struct struct_state *state = NULL;
    size_t size = 0;
    const char *own_name = ctx;
    int rc;
    BRC_TRY(brc_new((void **)&state, sizeof(*state), err));
    state->legacy = strcmp(own_name, "structured") == 0;
    BRC_GO(struct_read_config(state, name, out->registry, config, &size, err));
    BRC_GO(struct_write_npy(state, err));
    BRC_GO(struct_write_json(state, err));
    state->ops = (brc_dtype_ops){ .size = sizeof(brc_dtype_ops),
                                  .parse = struct_parse,
                                  .print = struct_print,
                                  .scan = struct_scan,
                                  .swap = state->swaps ? struct_swap : NULL,
                                  .normalize = state->normalizes ? struct_normalize : NULL };
    *out = (brc_dtype){ .size = sizeof(brc_dtype),
                        .json = state->json,
                        .name = own_name,
                        .klass = BRC_CLASS_STRUCT,
                        .item_size = size,
                        .swap_unit = state->swaps ? size : 1,
                        .bits = (unsigned)(8 * size),
                        .npy = state->npy,
                        .ops = &state->ops,
                        .state = state };
    return BRC_OK;
done:
    struct_free(state);
    return rc;
}

void brc_struct_close(void *ctx, brc_dtype *type)
{
    (void)ctx;
    struct_free(type->state);
    type->state = NULL;
}

/* Returns the field that `text` names, or begins with before a dot; the whole text comes first. */
static const struct struct_field *struct_find(const struct struct_state *state, const char *text)
{
    const struct struct_field *found = NULL;
    for (size_t i = 0; i < state->n; i++) {
        const size_t len = strlen(state->fields[i].name);
        if (strncmp(state->fields[i].name, text, len) != 0)
            continue;
        if (text[len] == '\0')
            return &state->fields[i];
        if (text[len] == '.' && state->fields[i].type->klass == BRC_CLASS_STRUCT)
            found = &state->fields[i];
    }
    return found;
}

const brc_dtype *brc_dtype_field(const brc_dtype *type, const char *field, size_t *offset)
{
    *offset = 0;
    for (;;) {
        if (type->ops->print != struct_print) /* a plug-in's type may be of this class, too */
            return NULL;
        const struct struct_field *found = struct_find(struct_of(type), field);
        if (found == NULL)
            return NULL;
        *offset += found->offset;
        field += strlen(found->name);
        if (*field == '\0')
            return found->type;
        type = found->type;
        field++;
    }
}

const brc_dtype *brc_dtype_field_at(const brc_dtype *type, size_t i, size_t *offset)
{
    if (type->ops->print != struct_print || i >= struct_of(type)->n)
        return NULL;
    *offset = struct_of(type)->fields[i].offset;
    return struct_of(type)->fields[i].type;
}

/* ---- fill values ------------------------------------------------------------------- */

/* With `typed`, a person wrote the value: a time may be a date. */
static int struct_parse_field(const struct struct_field *field, const brc_json *value, int typed,
                              brc_buf *out, brc_error *err)
{
    const brc_dtype *type = field->type;
    const char *text;
    int rc = 0;
    if (typed && type->klass == BRC_CLASS_TIME && brc_json_text(value, &text))
        rc = brc_dtype_parse_text(type, text, out, err);
    else if (!typed || type->ops->scan != struct_scan ||
             (rc = struct_scan(type, "", value, out, err)) == 0)
        rc = type->ops->parse(type, value, out, err);
    if (rc < 0)
        brc_context(err, "the field \"%.60s\"", field->name);
    return rc;
}

/* There are as many members as fields, and every field is there, so no member is left over. */
static int struct_parse_object(const brc_dtype *type, const brc_json *json, int typed, brc_buf *out,
                               brc_error *err)
{
    const struct struct_state *state = struct_of(type);
    for (size_t i = 0; i < state->n; i++) {
        const brc_json *value = brc_json_member(json, state->fields[i].name);
        if (value == NULL)
            return brc_fail(err, BRC_EINVAL, "the fill value for %s lacks the field \"%.60s\"",
                            type->name, state->fields[i].name);
        BRC_TRY(struct_parse_field(&state->fields[i], value, typed, out, err));
    }
    if (brc_json_count(json) != state->n)
        return brc_fail(err, BRC_EINVAL, "the fill value for %s has %zu members, not %zu",
                        type->name, brc_json_count(json), state->n);
    return BRC_OK;
}

static int struct_parse_array(const brc_dtype *type, const brc_json *json, brc_buf *out,
                              brc_error *err)
{
    const struct struct_state *state = struct_of(type);
    const brc_json *value = brc_json_first(json);
    if (brc_json_count(json) != state->n)
        return brc_fail(err, BRC_EINVAL, "the fill value for %s has %zu items, not %zu",
                        type->name, brc_json_count(json), state->n);
    for (size_t i = 0; i < state->n; i++, value = brc_json_next(value))
        BRC_TRY(struct_parse_field(&state->fields[i], value, 0, out, err));
    return BRC_OK;
}

static int struct_parse_base64(const brc_dtype *type, const brc_json *json, brc_buf *out,
                               brc_error *err)
{
    char label[BRC_VALUE_LABEL];
    size_t start = out->len;
    int rc = brc_bytes_read(out, json, err);
    if (rc < 0 && rc != BRC_EINVAL)
        return rc;
    if (rc < 0 || out->len - start != type->item_size)
        return brc_fail(err, BRC_EINVAL, "fill value %s does not fit %s (base64 of %zu bytes)",
                        brc_value_label(label, json), type->name, type->item_size);
    brc_dtype_normalize(type, out->data + start, 1);
    return BRC_OK;
}

static int struct_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    const struct struct_state *state = struct_of(type);
    char label[BRC_VALUE_LABEL];
    size_t start = out->len;
    int kind = brc_json_kind(json), rc;
    if (kind == BRC_JSON_OBJECT)
        rc = struct_parse_object(type, json, 0, out, err);
    else if (kind == BRC_JSON_STRING && state->legacy)
        rc = struct_parse_base64(type, json, out, err);
    else if (kind == BRC_JSON_ARRAY && state->legacy)
        rc = struct_parse_array(type, json, out, err);
    else
        rc = brc_fail(err, BRC_EINVAL, "fill value %s does not fit %s (an object with each field)",
                      brc_value_label(label, json), type->name);
    if (rc < 0)
        out->len = start;
    return rc;
}

/* ---- printing ---------------------------------------------------------------------- */

/* A tuple of one element has a comma, as in Python. */
static int struct_print_tuple(const struct struct_state *state, const uint8_t *element,
                              brc_buf *out, brc_error *err)
{
    for (size_t i = 0; i < state->n; i++) {
        const struct struct_field *field = &state->fields[i];
        BRC_TRY(brc_buf_text(out, i == 0 ? "(" : ", ", err));
        BRC_TRY(brc_dtype_print_quoted(field->type, element + field->offset,
                                       field->type->item_size, out, err));
    }
    return brc_buf_text(out, state->n == 1 ? ",)" : ")", err);
}

static int struct_print_object(const struct struct_state *state, const uint8_t *element, int how,
                               brc_buf *out, brc_error *err)
{
    for (size_t i = 0; i < state->n; i++) {
        const struct struct_field *field = &state->fields[i];
        BRC_TRY(brc_buf_byte(out, i == 0 ? '{' : ',', err));
        BRC_TRY(brc_json_quote(out, field->name, strlen(field->name), err));
        BRC_TRY(brc_buf_byte(out, ':', err));
        BRC_TRY(brc_dtype_print(field->type, element + field->offset, field->type->item_size, how,
                                field->type->ops->print == struct_print, out, err));
    }
    return brc_buf_byte(out, '}', err);
}

static int struct_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                        brc_buf *out, brc_error *err)
{
    const struct struct_state *state = struct_of(type);
    BRC_TRY(brc_element_length_fits(type, len, err));
    if (how == BRC_PRINT_TEXT)
        return struct_print_tuple(state, element, out, err);
    if (how != BRC_PRINT_FILL || !state->legacy)
        return struct_print_object(state, element, how, out, err);
    BRC_TRY(brc_buf_byte(out, '"', err));
    BRC_TRY(brc_base64_write(out, element, len, err));
    return brc_buf_byte(out, '"', err);
}

/* ---- reading what is printed ---------------------------------------------------------- */

/* Returns whether commas in the field's text belong to the field: a record has brackets of its own,
 * and a text may have quotes. The end of a text without quotes is unknown. */
static int is_enclosed(const struct struct_field *field, const char *text)
{
    const int klass = field->type->klass;
    return klass == BRC_CLASS_STRUCT ||
           ((klass == BRC_CLASS_STRING || klass == BRC_CLASS_BYTES) &&
            brc_printed_quotes(text) > 0);
}

/* Returns the length of the field's text with which `text` begins. */
static size_t field_text_length(const struct struct_field *field, const char *text, int is_last)
{
    const int klass = field->type->klass;
    const int nests = klass == BRC_CLASS_STRUCT || klass == BRC_CLASS_COMPLEX;
    size_t len = 0, depth = 0;
    if (nests && text[0] == '(')
        do {
            depth += text[len] == '(';
            depth -= text[len] == ')';
        } while (text[len++] != '\0' && depth > 0 && text[len] != '\0');
    if (!nests && is_enclosed(field, text))
        len = brc_printed_quotes(text);
    const char *end = is_last ? strchr(text + len, '\0') : strstr(text + len, ", ");
    return end ? (size_t)(end - text) : strlen(text);
}

static int scan_field(const struct struct_field *field, const char *text, size_t len, brc_buf *out,
                      brc_error *err)
{
    char *copy;
    BRC_TRY(brc_dup_n(&copy, text, len, err));
    int rc = brc_dtype_parse_text(field->type, copy, out, err);
    free(copy);
    if (rc < 0)
        brc_context(err, "the field \"%.60s\"", field->name);
    return rc;
}

/* Reads "(1, 2.5)", and a JSON object whose times may be dates. */
static int struct_scan(const brc_dtype *type, const char *text, const brc_json *json, brc_buf *out,
                       brc_error *err)
{
    const struct struct_state *state = struct_of(type);
    size_t start = out->len, all = strlen(text);
    int rc = BRC_OK;
    if (json != NULL && brc_json_kind(json) == BRC_JSON_OBJECT) {
        rc = struct_parse_object(type, json, 1, out, err);
        out->len = rc < 0 ? start : out->len;
        return rc < 0 ? rc : 1;
    }
    if (json != NULL || all < 2 || text[0] != '(' || text[all - 1] != ')')
        return 0;
    const char *p = text + 1, *end = text + all - 1;
    end -= state->n == 1 && end[-1] == ',';
    for (size_t i = 0; rc == BRC_OK && i < state->n; i++) {
        size_t len = field_text_length(&state->fields[i], p, i + 1 == state->n);
        if (len > (size_t)(end - p))
            len = (size_t)(end - p);
        const char *comma = strstr(p, ", ");
        const int is_short = i + 1 < state->n && end - p < (ptrdiff_t)len + 2;
        const int is_long = i + 1 == state->n && state->n > 1 && comma != NULL && comma < p + len &&
                            !is_enclosed(&state->fields[i], p);
        if (is_short || is_long)
            rc = brc_fail(err, BRC_EINVAL,
                          "%.60s does not have %zu fields with a comma and a blank between "
                          "them: write the value as a JSON object with each field",
                          text, state->n);
        else
            rc = scan_field(&state->fields[i], p, len, out, err);
        if (rc == BRC_OK && i + 1 < state->n)
            p += len + 2;
    }
    if (rc < 0)
        out->len = start;
    return rc < 0 ? rc : 1;
}

/* ---- byte order --------------------------------------------------------------------- */

static void struct_swap(const brc_dtype *type, uint8_t *dst, const uint8_t *src, size_t n)
{
    const struct struct_state *state = struct_of(type);
    for (; n > 0; n--, dst += type->item_size, src += type->item_size)
        for (size_t i = 0; i < state->n; i++) {
            const struct struct_field *field = &state->fields[i];
            brc_dtype_swap(field->type, dst + field->offset, src + field->offset, 1);
        }
}

static void struct_normalize(const brc_dtype *type, uint8_t *data, size_t n)
{
    const struct struct_state *state = struct_of(type);
    for (; n > 0; n--, data += type->item_size)
        for (size_t i = 0; i < state->n; i++)
            brc_dtype_normalize(state->fields[i].type, data + state->fields[i].offset, 1);
}

/* ==== dtype optional ================================ */

/*
 * zarrs.optional: elements of another type, each of which may be missing.
 *
 * The configuration is the other type, {"name": ..., "configuration": {...}}. A fill
 * value is null, or [value]. Canonical elements:
 *
 *     of a type of fixed size    | 0 or 1: present | the element, zero if missing |
 *     of variable length         | uint32 n | n = 0: missing
 *                                | uint32 n | 1 | n - 1 bytes of the element
 *
 * As JSON and as text a missing element is null, and a present one is written as itself; in
 * [...] where the value itself could be read as null or a list: [null] is a present optional
 * that holds a missing one.
 */

struct optional_state {
    brc_dtype *inner;
    char *json;
    brc_dtype_ops ops;
};

/* ---- opening ----------------------------------------------------------------------- */

static void optional_free(struct optional_state *state)
{
    if (state == NULL)
        return;
    brc_dtype_free(state->inner);
    free(state->json);
    free(state);
}

/* The inner type's configuration is written even if it is empty: zarrs requires it. */
static int optional_write_json(struct optional_state *state, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc, is_bare = state->inner->json[0] == '"';
    BRC_GO(brc_buf_text(&text, "{\"name\":\"zarrs.optional\",\"configuration\":", err));
    if (is_bare)
        BRC_GO(brc_buf_text(&text, "{\"name\":", err));
    BRC_GO(brc_buf_text(&text, state->inner->json, err));
    BRC_GO(brc_buf_text(&text, is_bare ? ",\"configuration\":{}}}" : "}", err));
    BRC_GO(brc_buf_take_text(&text, &state->json, err));
done:
    brc_buf_dispose(&text);
    return rc;
}

static int optional_open_inner(struct optional_state *state, const brc_dtype *out, const char *name,
                               const brc_json *config, brc_error *err)
{
    static const char *const members[] = { "name", "configuration" };
    if (config == NULL)
        return brc_fail(err, BRC_EINVAL,
                        "data type %s needs a configuration: the \"name\" and \"configuration\" of "
                        "its elements' data type",
                        name);
    BRC_TRY(brc_json_allow(config, members, 2, err));
    int rc = brc_dtype_open(&state->inner, out->registry, config, NULL, err);
    if (rc < 0) {
        brc_context(err, "data type %s", name);
        return rc;
    }
    if (state->inner->item_size >= BRC_MAX_ITEM_SIZE)
        return brc_fail(err, BRC_EUNSUPPORTED, "data type %s has more than %zu bytes per element",
                        name, BRC_MAX_ITEM_SIZE);
    return BRC_OK;
}

static int optional_parse(const brc_dtype *type, const brc_json *json, brc_buf *out,
                          brc_error *err);
static int optional_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                          brc_buf *out, brc_error *err);
static void optional_swap(const brc_dtype *type, uint8_t *dst, const uint8_t *src, size_t n);
static void optional_normalize(const brc_dtype *type, uint8_t *data, size_t n);
static int optional_scan(const brc_dtype *type, const char *text, const brc_json *json,
                         brc_buf *out, brc_error *err);

int brc_optional_open(void *ctx, brc_dtype *out, const char *name, const brc_json *config,
                      brc_error *err)
{
    struct optional_state *state = NULL;
    int rc;
    BRC_TRY(brc_new((void **)&state, sizeof(*state), err));
    BRC_GO(optional_open_inner(state, out, name, config, err));
    BRC_GO(optional_write_json(state, err));
    const brc_dtype *inner = state->inner;
    const size_t size = inner->item_size > 0 ? 1 + inner->item_size : 0;
    const int swaps = inner->swap_unit > 1;
    state->ops = (brc_dtype_ops){ .size = sizeof(brc_dtype_ops),
                                  .parse = optional_parse,
                                  .print = optional_print,
                                  .swap = swaps ? optional_swap : NULL,
                                  .normalize = size > 0 ? optional_normalize : NULL,
                                  .scan = optional_scan };
    *out = (brc_dtype){ .size = sizeof(brc_dtype),
                        .json = state->json,
                        .name = ctx,
                        .klass = BRC_CLASS_OPTIONAL,
                        .item_size = size,
                        .swap_unit = swaps ? size : 1,
                        .bits = (unsigned)(8 * size),
                        .ops = &state->ops,
                        .state = state,
                        .inner = inner };
    return BRC_OK;
done:
    optional_free(state);
    return rc;
}

void brc_optional_close(void *ctx, brc_dtype *type)
{
    (void)ctx;
    optional_free(type->state);
    type->state = NULL;
}

/* ---- reading ------------------------------------------------------------------------ */

/* Makes the bytes that the inner type has appended an element with a value: inserts the mark, after
 * the uint32 of a type of variable length. */
static int optional_wrap(const brc_dtype *type, brc_buf *out, size_t start, brc_error *err)
{
    size_t n = out->len - start, at = type->item_size > 0 ? start : start + 4;
    if (type->item_size == 0 && n - 4 >= UINT32_MAX)
        return brc_fail(err, BRC_ELIMIT, "a value for %s is too long", type->name);
    BRC_TRY(brc_buf_reserve(out, 1, err));
    memmove(out->data + at + 1, out->data + at, out->len - at);
    out->data[at] = 1;
    out->len++;
    if (type->item_size == 0)
        brc_store_le(out->data + start, 4, n - 4 + 1);
    return BRC_OK;
}

static int optional_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    char label[BRC_VALUE_LABEL];
    size_t start = out->len;
    int kind = brc_json_kind(json);
    if (kind == BRC_JSON_NULL)
        return brc_dtype_default(type, out, err); /* zeros: missing */
    if (kind != BRC_JSON_ARRAY || brc_json_count(json) != 1)
        return brc_fail(err, BRC_EINVAL, "fill value %s does not fit %s (null, or a list of one)",
                        brc_value_label(label, json), type->name);
    int rc = type->inner->ops->parse(type->inner, brc_json_first(json), out, err);
    if (rc == BRC_OK)
        rc = optional_wrap(type, out, start, err);
    if (rc < 0)
        out->len = start;
    return rc;
}

static int optional_scan(const brc_dtype *type, const char *text, const brc_json *json,
                         brc_buf *out, brc_error *err)
{
    int kind = brc_json_kind(json);
    size_t start = out->len;
    if (kind == BRC_JSON_NULL || (kind == BRC_JSON_ARRAY && brc_json_count(json) == 1))
        return 0;
    int rc = brc_dtype_parse_text(type->inner, text, out, err);
    if (rc == BRC_OK)
        rc = optional_wrap(type, out, start, err);
    if (rc < 0)
        out->len = start;
    return rc < 0 ? rc : 1;
}

/* ---- printing ----------------------------------------------------------------------- */

/* Appends the inner element in its own type's form. Returns 1, or 0 if the element is missing. */
static int optional_inner(const brc_dtype *type, const uint8_t *element, size_t len, brc_buf *out,
                          brc_error *err)
{
    uint8_t count[4];
    if (type->item_size > 0) {
        BRC_TRY(brc_element_length_fits(type, len, err));
        if (element[0] == 0)
            return 0;
        BRC_TRY(brc_buf_append(out, element + 1, len - 1, err));
        return 1;
    }
    if (len < 4 || brc_load_le(element, 4) != len - 4 || (len > 4 && element[4] != 1))
        return brc_fail(err, BRC_EINVAL, "an element of %s contradicts its mark", type->name);
    if (len == 4)
        return 0;
    brc_store_le(count, 4, len - 5);
    BRC_TRY(brc_buf_append(out, count, 4, err));
    BRC_TRY(brc_buf_append(out, element + 5, len - 5, err));
    return 1;
}

static int is_ambiguous(const brc_buf *out, size_t start)
{
    size_t len = out->len - start;
    if (len == 0) /* out->data may be NULL here */
        return 0;
    const uint8_t *text = out->data + start;
    return text[0] == '[' || (len == 4 && memcmp(text, "null", 4) == 0);
}

static int print_there(const brc_dtype *type, const brc_buf *inner, int how, brc_buf *out,
                       brc_error *err)
{
    size_t start = out->len;
    if (how == BRC_PRINT_TEXT) /* quotes tell the text "null" from a missing element */
        BRC_TRY(brc_dtype_print_quoted(type->inner, inner->data, inner->len, out, err));
    else
        BRC_TRY(type->inner->ops->print(type->inner, inner->data, inner->len, how, out, err));
    if (how != BRC_PRINT_FILL && !is_ambiguous(out, start))
        return BRC_OK;
    BRC_TRY(brc_buf_reserve(out, 2, err));
    memmove(out->data + start + 1, out->data + start, out->len - start);
    out->data[start] = '[';
    out->len++;
    return brc_buf_byte(out, ']', err);
}

static int optional_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                          brc_buf *out, brc_error *err)
{
    brc_buf inner = BRC_BUF_INIT;
    int rc = optional_inner(type, element, len, &inner, err);
    if (rc == 0)
        rc = brc_buf_text(out, "null", err);
    else if (rc > 0)
        rc = print_there(type, &inner, how, out, err);
    brc_buf_dispose(&inner);
    return rc;
}

/* ---- byte order --------------------------------------------------------------------- */

static void optional_swap(const brc_dtype *type, uint8_t *dst, const uint8_t *src, size_t n)
{
    for (; n > 0; n--, dst += type->item_size, src += type->item_size) {
        dst[0] = src[0];
        brc_dtype_swap(type->inner, dst + 1, src + 1, 1);
    }
}

static void optional_normalize(const brc_dtype *type, uint8_t *data, size_t n)
{
    for (; n > 0; n--, data += type->item_size) {
        if (data[0] == 0) {
            memset(data, 0, type->item_size);
        } else {
            data[0] = 1;
            brc_dtype_normalize(type->inner, data + 1, 1);
        }
    }
}
