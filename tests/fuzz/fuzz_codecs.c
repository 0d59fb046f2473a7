/*
 * A codec list and bytes: decoded as what the list says they are, and encoded as
 * elements. The first line is what stands in a repository's `encoding` table,
 *
 *   {"codecs":[...],"data_type":...,"shape":[...],"fill_value":...}  \n  the bytes
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "../../src/base/json.h"
#include "../../src/nd/shape.h"

#define DECODED_MAX ((uint64_t)1 << 18)

typedef struct codec_case {
    brc_dtype *type;
    brc_chain *chain;
    int ndim;
    uint64_t shape[BRC_MAX_NDIM], count;
    brc_buf fill;
} codec_case;

static int read_shape(codec_case *c, const brc_json *shape)
{
    size_t n = brc_json_count(shape);
    if (brc_json_kind(shape) != BRC_JSON_ARRAY || n > BRC_MAX_NDIM)
        return BRC_EINVAL;
    c->ndim = (int)n;
    for (size_t i = 0; i < n; i++)
        if (!brc_json_uint(brc_json_item(shape, i), UINT64_MAX, &c->shape[i]))
            return BRC_EINVAL;
    c->count = brc_shape_count(c->ndim, c->shape);
    return BRC_OK;
}

static int open_case(codec_case *c, const brc_json *spec, brc_error *err)
{
    const brc_json *fill = brc_json_member(spec, "fill_value");
    brc_span given = { NULL, 0 };
    BRC_TRY(read_shape(c, brc_json_member(spec, "shape")));
    BRC_TRY(brc_dtype_open(&c->type, fuzz_registry(), brc_json_member(spec, "data_type"), NULL,
                           err));
    if (brc_json_kind(fill) != BRC_JSON_ABSENT) {
        BRC_TRY(c->type->ops->parse(c->type, fill, &c->fill, err));
        given = (brc_span){ c->fill.data, c->fill.len };
    }
    return brc_chain_open(&c->chain, fuzz_registry(), brc_json_member(spec, "codecs"), c->ndim,
                          c->shape, c->type, given, err);
}

static void close_case(codec_case *c)
{
    brc_chain_free(c->chain);
    brc_dtype_free(c->type);
    brc_buf_dispose(&c->fill);
}

/* Its full form opens again, and is its own. */
static void check_full_form(const codec_case *c)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf full = BRC_BUF_INIT, again = BRC_BUF_INIT;
    brc_json *list;
    brc_chain *chain;
    FUZZ_TRUE(brc_chain_write(c->chain, &full, &err) == BRC_OK, &err);
    int rc = brc_json_parse(&list, (const char *)full.data, full.len, 0, &err);
    FUZZ_TRUE(rc == BRC_OK, &err);
    rc = brc_chain_open(&chain, fuzz_registry(), list, c->ndim, c->shape, c->type,
                        (brc_span){ c->fill.data, c->fill.len }, &err);
    FUZZ_TRUE(rc == BRC_OK, &err);
    FUZZ_TRUE(brc_chain_write(chain, &again, &err) == BRC_OK, &err);
    FUZZ_TRUE(again.len == full.len && memcmp(again.data, full.data, full.len) == 0, NULL);
    brc_chain_free(chain);
    brc_json_free(list);
    brc_buf_dispose(&full);
    brc_buf_dispose(&again);
}

/* A box of the chunk, other than the whole where there is one. */
static void choose_box(const codec_case *c, uint8_t by, brc_box *box)
{
    for (int d = 0; d < c->ndim; d++) {
        box->start[d] = (uint64_t)(by >> d % 7) % c->shape[d];
        box->count[d] = 1 + (uint64_t)by % (c->shape[d] - box->start[d]);
    }
}

/* The elements in the box are the same, whether all or only the box is decoded. */
static void check_box(const codec_case *c, brc_span src, const brc_buf *whole)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf part = BRC_BUF_INIT;
    brc_box box = BRC_BOX_INIT;
    int64_t strides[BRC_MAX_NDIM], packed[BRC_MAX_NDIM];
    uint64_t at = 0;
    size_t item = c->type->item_size;

    if (item == 0 || c->count == 0)
        return;
    choose_box(c, src.len > 0 ? src.data[src.len - 1] : 0, &box);
    int rc = brc_chain_decode(c->chain, fuzz_scratch(), src, &box, &part, &err);
    FUZZ_TRUE(rc == BRC_OK && part.len == whole->len, &err);
    brc_strides_packed(c->ndim, c->shape, item, strides);
    for (int d = 0; d < c->ndim; d++)
        at += box.start[d] * (uint64_t)strides[d];
    size_t len = (size_t)brc_shape_count(c->ndim, box.count) * item;
    uint8_t *a = calloc(len, 1), *b = calloc(len, 1);
    FUZZ_TRUE(a != NULL && b != NULL, NULL);
    brc_strides_packed(c->ndim, box.count, item, packed);
    brc_copy_box(c->ndim, box.count, item, a, packed, whole->data + at, strides);
    brc_copy_box(c->ndim, box.count, item, b, packed, part.data + at, strides);
    FUZZ_TRUE(memcmp(a, b, len) == 0, NULL);
    free(a);
    free(b);
    brc_buf_dispose(&part);
}

/* Elements that can be encoded come back: but for lossy codecs, as they were. */
static void check_round_trip(const codec_case *c, const uint8_t *elements, size_t len)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf stored = BRC_BUF_INIT, back = BRC_BUF_INIT;
    brc_span src = { elements, len };
    int rc = brc_chain_encode(c->chain, fuzz_scratch(), src, &stored, &err);
    FUZZ_TRUE(rc == BRC_OK || rc == BRC_EINVAL || rc == BRC_EUNSUPPORTED || rc == BRC_ELIMIT, &err);
    if (rc == BRC_OK) {
        FUZZ_TRUE(stored.len <= brc_chain_describe(c->chain)->encoded_max, NULL);
        src = (brc_span){ stored.data, stored.len };
        rc = brc_chain_decode(c->chain, fuzz_scratch(), src, NULL, &back, &err);
        FUZZ_TRUE(rc == BRC_OK, &err);
        FUZZ_TRUE(back.len == len, NULL);
        if (!(brc_chain_describe(c->chain)->flags & BRC_CODEC_LOSSY))
            FUZZ_TRUE(len == 0 || memcmp(back.data, elements, len) == 0, NULL);
        check_box(c, src, &back);
    }
    brc_buf_dispose(&stored);
    brc_buf_dispose(&back);
}

static void check_decode(const codec_case *c, brc_span src)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf out = BRC_BUF_INIT;
    int rc = brc_chain_decode(c->chain, fuzz_scratch(), src, NULL, &out, &err);
    FUZZ_TRUE(rc == BRC_OK || rc == BRC_ECORRUPT || rc == BRC_ELIMIT || rc == BRC_EUNSUPPORTED,
              &err);
    FUZZ_TRUE(rc != BRC_OK || brc_chain_describe(c->chain)->decoded_len == BRC_LEN_VARIES ||
                  out.len == brc_chain_describe(c->chain)->decoded_len,
              NULL);
    if (rc == BRC_OK) {
        check_box(c, src, &out);
        if (out.len <= DECODED_MAX)
            check_round_trip(c, out.data, out.len);
    }
    brc_buf_dispose(&out);
}

/* The bytes as elements, again and again. */
static void check_encode(const codec_case *c, brc_span src)
{
    uint64_t len = brc_chain_describe(c->chain)->decoded_len;
    uint8_t mask = c->type->klass == BRC_CLASS_BOOL ? 1 : UINT8_MAX;
    /* of optional elements not every byte is one */
    if (len == BRC_LEN_VARIES || src.len == 0 || c->type->klass == BRC_CLASS_OPTIONAL)
        return;
    uint8_t *elements = malloc(len > 0 ? (size_t)len : 1);
    FUZZ_TRUE(elements != NULL, NULL);
    for (size_t i = 0; i < len; i++)
        elements[i] = src.data[i % src.len] & mask;
    brc_dtype_normalize(c->type, elements, (size_t)c->count);
    check_round_trip(c, elements, (size_t)len);
    free(elements);
}

static int is_small(const codec_case *c)
{
    uint64_t len = brc_chain_describe(c->chain)->decoded_len;
    return len == BRC_LEN_VARIES ? c->count <= 4096 : len <= DECODED_MAX;
}

void fuzz_codecs(const uint8_t *data, size_t len)
{
    brc_error err = BRC_ERROR_INIT;
    codec_case c = { 0 };
    brc_json *spec;
    const uint8_t *end = len > 0 ? memchr(data, '\n', len) : NULL;

    if (end == NULL || brc_json_parse(&spec, (const char *)data, (size_t)(end - data), 0, &err) < 0)
        return;
    if (open_case(&c, spec, &err) == BRC_OK) {
        size_t rest = len - (size_t)(end + 1 - data);
        uint8_t *own = fuzz_bytes(end + 1, rest);
        check_full_form(&c);
        if (is_small(&c)) {
            check_decode(&c, (brc_span){ own, rest });
            check_encode(&c, (brc_span){ own, rest });
        }
        free(own);
    }
    brc_json_free(spec);
    close_case(&c);
}
