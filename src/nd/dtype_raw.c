/*
 * r<bits>: opaque bytes. No byte order applies to them, and their fill value is
 * bits / 8 bytes: an array of integers, or base64 (RFC 4648, with padding).
 */
#include "dtype_ops.h"

#include "../base/alloc.h"
#include "bytes_json.h"

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

static const brc_dtype_ops raw_ops = { .size = sizeof(brc_dtype_ops),
                                       .parse = raw_parse,
                                       .print = raw_print,
                                       .scan = brc_exact_bytes_scan };

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
