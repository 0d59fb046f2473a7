/*
 * Structures of Zarr v2 whose fields differ in byte order. Zarr v3 has one order for all fields of
 * an element, so such an array is imported with little-endian fields: its .zarray is rewritten,
 * with the fill value, and its chunks are decoded by a codec that knows which bytes are reversed
 * (codecs/reversed_bytes.c), and encoded again.
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../nd/dtype_text.h"
#include "zarr2.h"

#define RUNS_MOST ((size_t)65536) /* an array with more is kept as it is */

/* Adjacent big-endian parts of an element: `count` of `size` bytes each. */
typedef struct big_run {
    uint64_t offset, size, count;
} big_run;

typedef struct order_walk {
    big_run *runs;
    size_t n, cap;
    uint64_t bytes; /* of the fields so far             */
    int little;     /* some of them are little-endian   */
    int unknown;    /* some of them are of unknown size */
} order_walk;

static int add_run(order_walk *w, uint64_t offset, uint64_t size, uint64_t count, brc_error *err)
{
    if (w->n == RUNS_MOST) {
        w->unknown = 1;
        return BRC_OK;
    }
    BRC_TRY(brc_grow_array((void **)&w->runs, &w->cap, w->n + 1, sizeof(*w->runs), err));
    w->runs[w->n++] = (big_run){ offset, size, count };
    return BRC_OK;
}

static brc_json *changeable(const brc_json *value)
{
    return (brc_json *)(uintptr_t)value;
}

/* Changes ">f8" to "<f8". */
static int make_little(brc_json *dtype, brc_error *err)
{
    const char *text;
    char *copy;
    if (!brc_json_text(dtype, &text))
        return BRC_OK;
    BRC_TRY(brc_dup(&copy, text, err));
    copy[0] = '<';
    int rc = brc_json_replace(dtype, brc_json_new_string(copy), err);
    free(copy);
    return rc;
}

static int walk_leaf(order_walk *w, brc_json *dtype, brc_error *err)
{
    brc_zarr2_type type;
    BRC_TRY(brc_zarr2_type_read(&type, dtype, err));
    brc_buf_dispose(&type.json);
    const uint64_t unit = type.kind == 'U' ? 4 : type.kind == 'c' ? type.size / 2 : type.size;
    w->unknown |= type.size == 0;
    w->little |= type.order == '<';
    if (type.order == '>' && type.size > 0) {
        BRC_TRY(add_run(w, w->bytes, unit, type.size / unit, err));
        BRC_TRY(make_little(dtype, err));
    }
    w->bytes += type.size;
    return BRC_OK;
}

static int walk_type_order(order_walk *w, brc_json *dtype, brc_error *err);

/* Repeats the runs from `first` on, of the field that begins at `start`, `times` times in all. */
static int repeat_runs(order_walk *w, size_t first, uint64_t start, uint64_t times, brc_error *err)
{
    const uint64_t size = w->bytes - start;
    const size_t end = w->n;

    if (times == 0 || size > UINT32_MAX || times > UINT32_MAX / (size + 1)) {
        w->unknown = 1;
        return BRC_OK;
    }
    w->bytes += size * (times - 1);
    if (end - first == 1 && w->runs[first].size * w->runs[first].count == size) {
        w->runs[first].count *= times;
        return BRC_OK;
    }
    for (uint64_t k = 1; k < times && end > first && !w->unknown; k++)
        for (size_t i = first; i < end; i++)
            BRC_TRY(add_run(w, w->runs[i].offset + k * size, w->runs[i].size, w->runs[i].count,
                            err));
    return BRC_OK;
}

/* Returns the number of elements of a field's shape, an integer or a list of integers; 0: it is not
 * valid. */
static uint64_t subarray_count(const brc_json *shape)
{
    uint64_t total = 1, n;
    if (brc_json_kind(shape) != BRC_JSON_ARRAY)
        return brc_json_uint(shape, UINT32_MAX, &n) ? n : 0;
    for (const brc_json *v = brc_json_first(shape); v; v = brc_json_next(v))
        if (!brc_json_uint(v, UINT32_MAX, &n) || !brc_mul_u64(total, n, &total))
            return 0;
    return total;
}

static int walk_field(order_walk *w, const brc_json *field, brc_error *err)
{
    const size_t first = w->n, parts = brc_json_count(field);
    const uint64_t start = w->bytes;

    if (brc_json_kind(field) != BRC_JSON_ARRAY || parts < 2 || parts > 3) {
        w->unknown = 1;
        return BRC_OK;
    }
    BRC_TRY(walk_type_order(w, changeable(brc_json_item(field, 1)), err));
    return parts == 2 || w->unknown
               ? BRC_OK
               : repeat_runs(w, first, start, subarray_count(brc_json_item(field, 2)), err);
}

/* Makes all fields little-endian, and notes which were not. */
static int walk_type_order(order_walk *w, brc_json *dtype, brc_error *err)
{
    if (brc_json_kind(dtype) != BRC_JSON_ARRAY)
        return walk_leaf(w, dtype, err);
    for (const brc_json *f = brc_json_first(dtype); f && !w->unknown; f = brc_json_next(f))
        BRC_TRY(walk_field(w, f, err));
    return BRC_OK;
}

static void reverse_element(const order_walk *w, uint8_t *element)
{
    for (size_t i = 0; i < w->n; i++) {
        const big_run *run = &w->runs[i];
        for (uint64_t k = 0; k < run->count; k++) {
            uint8_t *low = element + run->offset + k * run->size, *high = low + run->size - 1;
            for (; low < high; low++, high--) {
                uint8_t byte = *low;
                *low = *high;
                *high = byte;
            }
        }
    }
}

/* Rewrites one element in base64; leaves a value that is not an element to the reader of the
 * document. */
static int rewrite_fill(const order_walk *w, brc_json *zarray, brc_error *err)
{
    brc_buf element = BRC_BUF_INIT, base64 = BRC_BUF_INIT;
    brc_error why = BRC_ERROR_INIT;
    const char *text;
    int rc;

    if (!brc_json_text(brc_json_member(zarray, "fill_value"), &text))
        return BRC_OK;
    rc = brc_base64_read(&element, text, &why);
    if (rc < 0 || element.len != w->bytes) {
        rc = rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK;
        goto done;
    }
    reverse_element(w, element.data);
    BRC_GO(brc_base64_write(&base64, element.data, element.len, err));
    BRC_GO(brc_buf_terminate(&base64, err));
    rc = brc_json_set(zarray, "fill_value", brc_json_new_string((const char *)base64.data), err);
done:
    brc_buf_dispose(&base64);
    brc_buf_dispose(&element);
    return rc;
}

static int write_codec(brc_json **out, const order_walk *w, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;

    BRC_GO(brc_buf_text(&text, "{\"name\":\"breccia.reversed_bytes\",\"configuration\":{\"runs\":[",
                        err));
    for (size_t i = 0; i < w->n; i++)
        BRC_GO(brc_buf_printf(&text, err, "%s[%llu,%llu,%llu]", i ? "," : "",
                              (unsigned long long)w->runs[i].offset,
                              (unsigned long long)w->runs[i].size,
                              (unsigned long long)w->runs[i].count));
    BRC_GO(brc_buf_text(&text, "]}}", err));
    rc = brc_json_parse(out, (const char *)text.data, text.len, 0, err);
done:
    brc_buf_dispose(&text);
    return rc;
}

/* Makes the .zarray with all fields little-endian, and in *codec the codec that decodes elements as
 * they are stored. NULL if the fields do not differ, or cannot be separated. */
static int unify_order(brc_json **out, brc_json **codec, const brc_json *zarray, brc_error *err)
{
    order_walk w = { 0 };
    brc_error why = BRC_ERROR_INIT;
    brc_json *copy = NULL;
    int rc;

    *out = *codec = NULL;
    if (brc_json_kind(brc_json_member(zarray, "dtype")) != BRC_JSON_ARRAY)
        return BRC_OK;
    BRC_GO(brc_json_clone(&copy, zarray, err));
    rc = walk_type_order(&w, changeable(brc_json_member(copy, "dtype")), &why);
    if (rc < 0 || w.unknown || !w.little || w.n == 0) { /* a bad type is reported later */
        rc = rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK;
        goto done;
    }
    BRC_GO(rewrite_fill(&w, copy, err));
    BRC_GO(write_codec(codec, &w, err));
    *out = copy;
    copy = NULL;
done:
    brc_json_free(copy);
    free(w.runs);
    return rc;
}

/* Returns "bytes" of a list of codecs in which no filter works on elements before it; NULL for any
 * other list. */
static brc_json *bytes_of_list(const brc_json *codecs)
{
    const brc_json *item = brc_json_first(codecs);
    if (brc_json_is(brc_json_member(item, "name"), "transpose"))
        item = brc_json_next(item);
    return brc_json_is(brc_json_member(item, "name"), "bytes") ? changeable(item) : NULL;
}

/* Makes the document with this codec (consumed) in place of "bytes". BRC_EUNSUPPORTED if its chunks
 * cannot be taken over. */
static int source_of(brc_json **out, const brc_json *doc, brc_json *codec, const brc_registry *reg,
                     brc_error *err)
{
    brc_meta meta;
    int rc = brc_json_clone(out, doc, err);
    brc_json *bytes = bytes_of_list(brc_json_member(*out, "codecs"));
    if (rc == BRC_OK && !bytes)
        rc = brc_fail(err, BRC_EUNSUPPORTED, "/codecs: a filter works on elements");
    if (rc < 0) {
        brc_json_free(codec);
        return rc;
    }
    BRC_TRY(brc_json_replace(bytes, codec, err));
    BRC_TRY(brc_meta_open(&meta, reg, *out, err));
    rc = brc_meta_must_encode(&meta, err);
    brc_meta_dispose(&meta);
    return rc;
}

int brc_zarr2_array_import(brc_json **out, brc_json **source, const brc_json *zarray,
                           const brc_json *zattrs, char separator, const brc_registry *reg,
                           brc_error *err)
{
    brc_json *unified, *codec;
    brc_error why = BRC_ERROR_INIT;

    *out = *source = NULL;
    BRC_TRY(unify_order(&unified, &codec, zarray, err));
    if (!unified)
        return brc_zarr2_array_read(out, zarray, zattrs, separator, reg, err);
    int rc = brc_zarr2_array_read(out, unified, zattrs, separator, reg, &why);
    brc_json_free(unified);
    if (rc == BRC_OK)
        rc = source_of(source, *out, codec, reg, &why);
    else
        brc_json_free(codec);
    if (rc == BRC_OK)
        return rc;
    brc_json_free(*source);
    brc_json_free(*out);
    *out = *source = NULL;
    if (rc == BRC_ENOMEM)
        return brc_nomem(err);
    if (rc == BRC_EINVAL) {
        if (err)
            *err = why;
        return rc;
    }
    return brc_zarr2_array_read(out, zarray, zattrs, separator, reg, err);
}
