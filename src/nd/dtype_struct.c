/*
 * struct: records of named fields, packed in their order, without padding. A field
 * is of any type of fixed size, a struct among them; the other byte order reverses
 * each field by itself.
 *
 *   struct      fields [{"name": N, "data_type": T}, ...]; the fill value is an
 *               object with every field
 *   structured  what zarr-python 3.0 and 3.1 wrote: fields [[N, T], ...]; the fill
 *               value is base64 of the little-endian record, and may be an array or
 *               an object. It is read as it is and keeps its form.
 *
 * As JSON a record is an object, as text a tuple.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "bytes_json.h"
#include "dtype_ops.h"

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

/* The two parts of a field in either form. */
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

/* The field is in state->fields, and freed with them, once it has its name. */
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
    int rc = brc_dtype_open(&field->type, registry, type, err);
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
    state->normalizes |= brc_dtype_normalizes(field->type);
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

/* A name that can be written in quotes in NumPy's header unchanged. */
static int is_plain_name(const char *name)
{
    for (const char *p = name; *p != '\0'; p++)
        if (*p < 0x20 || *p >= 0x7f || *p == '\'' || *p == '\\')
            return 0;
    return 1;
}

/* "[('a', '<i4'), ('p', [('x', '<f4')])]"; left NULL if NumPy lacks a type. */
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

/* Fields whose types have two spellings are written in one. */
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

/* ---- fill values ------------------------------------------------------------------- */

static int struct_parse_field(const struct struct_field *field, const brc_json *value, brc_buf *out,
                              brc_error *err)
{
    int rc = field->type->ops->parse(field->type, value, out, err);
    if (rc < 0)
        brc_context(err, "the field \"%.60s\"", field->name);
    return rc;
}

/* As many members as fields, and every field is there: so none is left over. */
static int struct_parse_object(const brc_dtype *type, const brc_json *json, brc_buf *out,
                               brc_error *err)
{
    const struct struct_state *state = struct_of(type);
    for (size_t i = 0; i < state->n; i++) {
        const brc_json *value = brc_json_member(json, state->fields[i].name);
        if (value == NULL)
            return brc_fail(err, BRC_EINVAL, "the fill value for %s lacks the field \"%.60s\"",
                            type->name, state->fields[i].name);
        BRC_TRY(struct_parse_field(&state->fields[i], value, out, err));
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
        BRC_TRY(struct_parse_field(&state->fields[i], value, out, err));
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
        rc = struct_parse_object(type, json, out, err);
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

/* A tuple of one has a comma, as in Python. */
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
        BRC_TRY(field->type->ops->print(field->type, element + field->offset,
                                        field->type->item_size, how, out, err));
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

/* Whether a comma in the field's text separates nothing: records and complex numbers have brackets
 * of their own, and texts quotes. Of a text without quotes nobody knows where it ends. */
static int is_enclosed(const struct struct_field *field, const char *text)
{
    const int klass = field->type->klass;
    return klass == BRC_CLASS_STRUCT ||
           ((klass == BRC_CLASS_STRING || klass == BRC_CLASS_BYTES) &&
            brc_printed_quotes(text) > 0);
}

/* The length of a field's text at the beginning of `text`. */
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

/* "(1, 2.5)" */
static int struct_scan(const brc_dtype *type, const char *text, const brc_json *json, brc_buf *out,
                       brc_error *err)
{
    const struct struct_state *state = struct_of(type);
    size_t start = out->len, all = strlen(text);
    int rc = BRC_OK;
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
