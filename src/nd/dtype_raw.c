/*
 * r<bits>: opaque bytes. No byte order applies to them, and their fill value is
 * bits / 8 bytes: an array of integers, or base64 (RFC 4648, with padding).
 */
#include "dtype_ops.h"

#include "../base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Half as many as a document may have values, so that a fill value can be written. */
#define RAW_MAX_BYTES ((size_t)1 << 19)

struct raw_names { /* a type's state: what its name and npy point to */
    char name[24];
    char npy[24];
};

/* "r" and digits: what open() refuses is ours too, so that its sentence is seen. */
int brc_raw_match(void *ctx, const char *name)
{
    (void)ctx;
    size_t digits = name[0] == 'r' ? strspn(name + 1, "0123456789") : 0;
    return digits > 0 && name[1 + digits] == '\0';
}

static int raw_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err);
static int raw_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                     brc_buf *out, brc_error *err);

static const brc_dtype_ops raw_ops = { sizeof(brc_dtype_ops), raw_parse, raw_print, NULL };

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
        return brc_fail(err, BRC_EUNSUPPORTED, "data type %.40s has more than %zu bytes an element",
                        name, RAW_MAX_BYTES);
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

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Exactly n bytes, or 0. Unused bits of the last digit must be zero. */
static int base64_decode(uint8_t *dst, size_t n, const char *text)
{
    size_t pad = (3 - n % 3) % 3, digits = (n + 2) / 3 * 4 - pad;
    uint32_t held = 0;
    unsigned nheld = 0;
    if (strlen(text) != digits + pad)
        return 0;
    for (size_t i = 0; i < digits; i++) {
        int digit = base64_digit(text[i]);
        if (digit < 0)
            return 0;
        held = held << 6 | (uint32_t)digit;
        nheld += 6;
        if (nheld >= 8) {
            nheld -= 8;
            *dst++ = (uint8_t)(held >> nheld);
            held &= (1u << nheld) - 1;
        }
    }
    return held == 0 && strspn(text + digits, "=") == pad;
}

/* "[1,2,255]", exactly n. The list's text is read once from front to end, because
 * the i-th item of a JSON array may cost i steps. */
static int byte_list_decode(uint8_t *dst, size_t n, const char *text)
{
    const char *p = text;
    for (size_t i = 0; i < n; i++) {
        unsigned value = 0;
        if (*p++ != (i == 0 ? '[' : ','))
            return 0;
        size_t digits = strspn(p, "0123456789");
        if (digits < 1 || digits > 3)
            return 0;
        for (size_t k = 0; k < digits; k++)
            value = value * 10 + (unsigned)(*p++ - '0');
        if (value > 255)
            return 0;
        dst[i] = (uint8_t)value;
    }
    return p[0] == ']' && p[1] == '\0';
}

static int raw_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    char label[BRC_VALUE_LABEL];
    brc_buf list = BRC_BUF_INIT;
    int ok = 0, rc;
    BRC_GO(brc_buf_reserve(out, type->item_size, err));
    if (brc_json_kind(json) == BRC_JSON_STRING) {
        const char *text = brc_json_text(json);
        ok = text != NULL && base64_decode(out->data + out->len, type->item_size, text);
    } else if (brc_json_kind(json) == BRC_JSON_ARRAY && brc_json_count(json) == type->item_size) {
        BRC_GO(brc_json_write(&list, json, err));
        BRC_GO(brc_buf_terminate(&list, err));
        ok = byte_list_decode(out->data + out->len, type->item_size, (const char *)list.data);
    }
    if (ok)
        out->len += type->item_size;
    else
        rc = brc_fail(
            err, BRC_EINVAL,
            "fill value %s does not fit %s (%zu integers from 0 to 255, or base64 of %zu bytes)",
            brc_value_label(label, json), type->name, type->item_size, type->item_size);
done:
    brc_buf_dispose(&list);
    return rc;
}

static int raw_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                     brc_buf *out, brc_error *err)
{
    if (len != type->item_size)
        return brc_fail(err, BRC_EINVAL, "an element of %s has %zu bytes, not %zu", type->name,
                        type->item_size, len);
    if (how == BRC_PRINT_TEXT) {
        for (size_t i = 0; i < len; i++)
            BRC_TRY(brc_buf_printf(out, err, "\\x%02x", element[i]));
        return BRC_OK;
    }
    for (size_t i = 0; i < len; i++)
        BRC_TRY(brc_buf_printf(out, err, "%c%d", i == 0 ? '[' : ',', element[i]));
    return brc_buf_append(out, "]", 1, err);
}
