/*
 * zarrs.optional: elements of another type, each of which may be missing.
 *
 * The configuration is the other type, {"name": ..., "configuration": {...}}. A fill
 * value is null, or [value]. Canonical elements:
 *
 *     of a type of fixed size    | 0 or 1: is it there | the element, zero where missing |
 *     of variable length         | uint32 n | n = 0: it is missing
 *                                | uint32 n | 1 | n - 1 bytes of the element
 *
 * As JSON and as text a missing element is null, and a present one is written as itself; in
 * [...] where that could be taken for one of these: [null] is an optional that is there and
 * holds one that is missing.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "dtype_ops.h"

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
                        "what its elements are",
                        name);
    BRC_TRY(brc_json_allow(config, members, 2, err));
    int rc = brc_dtype_open(&state->inner, out->registry, config, err);
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

/* What the inner type has appended becomes an element that is there: of a variable
 * length, its uint32 is moved before the mark.      */
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

/* The inner element as its own type has it, behind `out->len`; 0 if it is missing. */
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
    if (len == 0) /* out->data may be NULL then */
        return 0;
    const uint8_t *text = out->data + start;
    return text[0] == '[' || (len == 4 && memcmp(text, "null", 4) == 0);
}

static int print_there(const brc_dtype *type, const brc_buf *inner, int how, brc_buf *out,
                       brc_error *err)
{
    size_t start = out->len;
    if (how == BRC_PRINT_TEXT) /* quotes tell the text "null" from what is missing */
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
