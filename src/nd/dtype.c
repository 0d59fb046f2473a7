/*
 * What is the same for all data types.
 *
 * An element in canonical form is little-endian and packed; complex numbers are
 * real part, then imaginary part, each with its own byte order.
 */
#include "dtype_ops.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A plug-in built against an older header has a shorter table. */
#define OPS_HAVE(ops, member)                                                       \
    ((ops)->size >= offsetof(brc_dtype_ops, member) + sizeof((ops)->member) &&      \
     (ops)->member != NULL)

/* ---- values -------------------------------- */

/* JSON where the text is JSON, else NULL in *out; BRC_EINVAL is not a failure here. */
static int text_as_json(brc_json **out, const char *text, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    int rc = brc_json_parse(out, text, strlen(text), &why);
    if (rc < 0 && rc != BRC_EINVAL && err != NULL)
        brc_error_copy(err, &why);
    return rc == BRC_EINVAL ? BRC_OK : rc;
}

/* Appends what the type makes of it, or of the text as a JSON string. */
static int scan_text(const brc_dtype *type, brc_json **value, const char *text, brc_buf *out,
                     brc_error *err)
{
    int taken = OPS_HAVE(type->ops, scan) ? type->ops->scan(type, text, *value, out, err) : 0;
    if (taken != 0)
        return taken < 0 ? taken : BRC_OK;
    if (*value == NULL) {
        BRC_TRY(brc_text_is_utf8(type, text, err));
        *value = brc_json_new_string(text);
        if (*value == NULL)
            return brc_nomem(err);
    }
    return type->ops->parse(type, *value, out, err);
}

/* A text in quotes: a string becomes a JSON string, which may hold U+0000. */
static int scan_quoted(const brc_dtype *type, const brc_buf *bare, brc_buf *out, brc_error *err)
{
    brc_json *value = NULL;
    brc_buf json = BRC_BUF_INIT;
    int rc;
    if (type->klass == BRC_CLASS_STRING) {
        BRC_GO(brc_json_quote(&json, (const char *)bare->data, bare->len, err));
        BRC_GO(brc_json_parse(&value, (const char *)json.data, json.len, err));
    }
    rc = scan_text(type, &value, (const char *)bare->data, out, err);
done:
    brc_buf_dispose(&json);
    brc_json_free(value);
    return rc;
}

static int scan_bare(const brc_dtype *type, const char *text, brc_buf *out, brc_error *err)
{
    brc_json *value = NULL;
    char *bare = NULL;
    int rc;
    if (type->klass == BRC_CLASS_TIME)
        BRC_GO(brc_printed_unquote(&bare, text, err));
    if (bare != NULL)
        text = bare;
    BRC_GO(text_as_json(&value, text, err));
    if (value == NULL)
        BRC_GO(brc_printed_json(&value, type->klass, text, err));
    rc = scan_text(type, &value, text, out, err);
done:
    free(bare);
    brc_json_free(value);
    return rc;
}

/* What is JSON in double quotes is read as JSON: the escapes are the same but for \x and \U. */
int brc_dtype_parse_text(const brc_dtype *type, const char *text, brc_buf *out, brc_error *err)
{
    brc_buf bare = BRC_BUF_INIT;
    brc_json *json = NULL;
    int rc, is_quoted = 0;
    BRC_GO(text_as_json(&json, text, err));
    if (json == NULL)
        BRC_GO(brc_printed_unescape(&bare, &is_quoted, type->klass, text, err));
    rc = is_quoted ? scan_quoted(type, &bare, out, err) : scan_bare(type, text, out, err);
done:
    brc_json_free(json);
    brc_buf_dispose(&bare);
    return rc;
}

int brc_dtype_default(const brc_dtype *type, brc_buf *out, brc_error *err)
{
    size_t len = type->item_size > 0 ? type->item_size : 4; /* no bytes: their count alone */
    BRC_TRY(brc_buf_reserve(out, len, err));
    memset(out->data + out->len, 0, len);
    out->len += len;
    return BRC_OK;
}

/* ---- byte order and canonical form -------------------------------- */

/* One loop per width, so that the compiler can use vectors. */
#define SWAP_LOOP(type_, swap)                                 \
    do {                                                       \
        for (size_t at = 0; at < whole; at += sizeof(type_)) { \
            type_ v;                                           \
            memcpy(&v, src + at, sizeof(v));                   \
            v = swap(v);                                       \
            memcpy(dst + at, &v, sizeof(v));                   \
        }                                                      \
    } while (0)

void brc_swap_units(uint8_t *dst, const uint8_t *src, size_t len, size_t unit)
{
    if (len == 0)
        return;
    size_t whole = unit > 1 ? len - len % unit : 0;
    if (unit == 2) {
        SWAP_LOOP(uint16_t, __builtin_bswap16);
    } else if (unit == 4) {
        SWAP_LOOP(uint32_t, __builtin_bswap32);
    } else if (unit == 8) {
        SWAP_LOOP(uint64_t, __builtin_bswap64);
    } else {
        for (size_t at = 0; at < whole; at += unit) {
            for (size_t i = 0, j = unit - 1; i <= j; i++, j--) {
                uint8_t first = src[at + i], last = src[at + j];
                dst[at + i] = last;
                dst[at + j] = first;
            }
        }
    }
    if (dst != src && whole < len)
        memcpy(dst + whole, src + whole, len - whole);
}

void brc_dtype_swap(const brc_dtype *type, uint8_t *dst, const uint8_t *src, size_t n)
{
    if (OPS_HAVE(type->ops, swap))
        type->ops->swap(type, dst, src, n);
    else
        brc_swap_units(dst, src, n * type->item_size, type->swap_unit);
}

int brc_dtype_normalizes(const brc_dtype *type)
{
    return OPS_HAVE(type->ops, normalize);
}

void brc_dtype_normalize(const brc_dtype *type, uint8_t *data, size_t n)
{
    if (brc_dtype_normalizes(type))
        type->ops->normalize(type, data, n);
}

void brc_dtype_native(const brc_dtype *type, uint8_t *data, size_t len)
{
    if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ && type->swap_unit > 1 && type->item_size > 0)
        brc_dtype_swap(type, data, data, len / type->item_size);
}
