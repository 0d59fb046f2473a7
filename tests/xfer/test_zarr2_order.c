/* Structures of Zarr v2 whose fields differ in byte order: of seeded random types, an array in
 * mixed order and one with the same elements in little-endian become the same, and go out so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/json.h"
#include "../../src/nd/dtype_text.h"
#include "../kit/codec_kit.h"
#include "../kit/exchange_kit.h"
#include "../kit/suite.h"

TEST_SUITE(zarr2_order);

enum { UNITS_MOST = 600, ELEMENTS = 6 };

/* A type as two texts, and the parts of an element that have a byte order of their own. */
typedef struct random_type {
    uint64_t seed;
    brc_buf mixed, little;
    size_t size[UNITS_MOST];
    int big[UNITS_MOST];
    size_t n;
} random_type;

static unsigned pick(random_type *t, unsigned n)
{
    return (unsigned)(codec_kit_random(&t->seed) % n);
}

static void both(random_type *t, const char *text)
{
    ck_assert_int_eq(brc_buf_text(&t->mixed, text, NULL), BRC_OK);
    ck_assert_int_eq(brc_buf_text(&t->little, text, NULL), BRC_OK);
}

static void leaf(random_type *t)
{
    static const struct {
        const char *name;
        size_t size, times;
        int has_order;
    } leaves[] = {
        {"i2", 2, 1, 1}, {"u4", 4, 1, 1}, {"f8", 8, 1, 1},     {"c8", 4, 2, 1}, {"c16", 8, 2, 1},
        {"u1", 1, 1, 0}, {"V3", 1, 3, 0}, {"M8[ns]", 8, 1, 1}, {"f2", 2, 1, 1}, {"S5", 1, 5, 0},
    };
    const unsigned i = pick(t, sizeof(leaves) / sizeof(leaves[0]));
    const int big = leaves[i].has_order && pick(t, 2);
    char text[24];
    snprintf(text, sizeof(text), "\"%c%s\"", !leaves[i].has_order ? '|' : big ? '>' : '<',
             leaves[i].name);
    ck_assert_int_eq(brc_buf_text(&t->mixed, text, NULL), BRC_OK);
    text[1] = leaves[i].has_order ? '<' : '|';
    ck_assert_int_eq(brc_buf_text(&t->little, text, NULL), BRC_OK);
    for (size_t k = 0; k < leaves[i].times; k++, t->n++) {
        t->size[t->n] = leaves[i].size;
        t->big[t->n] = big;
    }
}

static void fields(random_type *t, int depth)
{
    const unsigned n = 1 + pick(t, 4);
    both(t, "[");
    for (unsigned i = 0; i < n; i++) {
        char text[40];
        const size_t first = t->n;
        snprintf(text, sizeof(text), "%s[\"f%u\",", i > 0 ? "," : "", i);
        both(t, text);
        if (depth > 0 && pick(t, 3) == 0)
            fields(t, depth - 1);
        else
            leaf(t);
        const size_t end = t->n;
        const unsigned rows = 1 + pick(t, 2), columns = 1 + pick(t, 3);
        if (pick(t, 3) == 0 && end + (end - first) * 5 < UNITS_MOST - 100) {
            snprintf(text, sizeof(text), ",[%u,%u]", rows, columns);
            both(t, text);
            for (unsigned k = 1; k < rows * columns; k++)
                for (size_t u = first; u < end; u++, t->n++) {
                    t->size[t->n] = t->size[u];
                    t->big[t->n] = t->big[u];
                }
        }
        both(t, "]");
    }
    both(t, "]");
}

/* One element in the type's order, of one that is little-endian. */
static void to_mixed(const random_type *t, uint8_t *to, const uint8_t *from)
{
    size_t at = 0;
    for (size_t u = 0; u < t->n; at += t->size[u], u++)
        for (size_t k = 0; k < t->size[u]; k++)
            to[at + k] = from[at + (t->big[u] ? t->size[u] - 1 - k : k)];
}

static void put_array(exchange_kit *kit, const char *name, const brc_buf *dtype,
                      const uint8_t *data, size_t item, int fortran, int packed)
{
    char path[80];
    brc_buf doc = BRC_BUF_INIT, chunk = BRC_BUF_INIT;
    int rc = brc_buf_printf(&doc, NULL,
                            "{\"zarr_format\":2,\"shape\":[2,4],\"chunks\":[2,3],\"order\":\"%s\","
                            "\"filters\":null,\"compressor\":%s,\"mine\":[1],\"dtype\":%.*s,"
                            "\"fill_value\":\"",
                            fortran ? "F" : "C", packed ? "{\"id\":\"gzip\",\"level\":1}" : "null",
                            (int)dtype->len, (const char *)dtype->data);
    ck_assert_int_eq(rc, BRC_OK);
    ck_assert_int_eq(brc_base64_write(&doc, data, item, NULL), BRC_OK);
    ck_assert_int_eq(brc_buf_text(&doc, "\"}", NULL), BRC_OK);
    snprintf(path, sizeof(path), "%s/.zarray", name);
    exchange_file(kit, path, doc.data, doc.len);
    if (packed)
        exchange_gzip(&chunk, data, item * ELEMENTS);
    else
        ck_assert_int_eq(brc_buf_append(&chunk, data, item * ELEMENTS, NULL), BRC_OK);
    snprintf(path, sizeof(path), "%s/0.0", name);
    exchange_file(kit, path, chunk.data, chunk.len);
    brc_buf_dispose(&chunk);
    brc_buf_dispose(&doc);
}

static brc_buf document(exchange_kit *kit, const char *path)
{
    brc_buf doc = BRC_BUF_INIT;
    int rc = brc_node_json(&doc, kit->session, path, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
    return doc;
}

/* Both documents and all 8 elements are the same. */
static void check_same(exchange_kit *kit, const char *a, const char *b, size_t item)
{
    brc_buf x = document(kit, a), y = document(kit, b);
    ck_assert_msg(x.len == y.len && memcmp(x.data, y.data, x.len) == 0, "%.*s\n%.*s", (int)x.len,
                  (const char *)x.data, (int)y.len, (const char *)y.data);
    uint8_t *seen = exchange_elements(kit->session, a, 8 * item);
    uint8_t *expected = exchange_elements(kit->session, b, 8 * item);
    ck_assert_mem_eq(seen, expected, 8 * item);
    free(seen);
    free(expected);
    brc_buf_dispose(&x);
    brc_buf_dispose(&y);
}

static void import_array(exchange_kit *kit, const char *name, const brc_xfer_opts *opts)
{
    char path[40];
    snprintf(path, sizeof(path), "/%s", name);
    int rc = brc_import(kit->session, exchange_path(kit, name), path, opts, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
}

static void export_array(exchange_kit *kit, const char *path, const char *name)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    opts.format = "zarr2";
    int rc = brc_export(kit->session, path, exchange_path(kit, name), &opts, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
}

/* Random elements of the type, and those in its own order. */
static size_t make_elements(random_type *t, uint8_t **little, uint8_t **mixed)
{
    size_t item = 0;
    for (size_t u = 0; u < t->n; u++)
        item += t->size[u];
    *little = malloc(item * ELEMENTS);
    *mixed = malloc(item * ELEMENTS);
    ck_assert(*little != NULL && *mixed != NULL);
    for (size_t i = 0; i < item * ELEMENTS; i++)
        (*little)[i] = (uint8_t)codec_kit_random(&t->seed);
    for (size_t i = 0; i < ELEMENTS; i++)
        to_mixed(t, *mixed + i * item, *little + i * item);
    return item;
}

CASE("order", .timeout = 60);

LOOP(fields_of_different_byte_order_are_read, 0, 40)
{
    exchange_kit kit;
    random_type t = {.seed = 0x10DE + (uint64_t)_i};
    const uint64_t chunk[2] = {1, 2};
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    uint8_t *little, *mixed;

    exchange_start(&kit);
    fields(&t, 2);
    const size_t item = make_elements(&t, &little, &mixed);
    put_array(&kit, "mixed", &t.mixed, mixed, item, _i % 2, _i % 3 == 0);
    put_array(&kit, "little", &t.little, little, item, _i % 2, _i % 3 == 0);
    if (_i % 4 == 3) { /* with chunks of another shape, too */
        opts.chunk = chunk;
        opts.nchunk = 2;
    }
    import_array(&kit, "mixed", &opts);
    import_array(&kit, "little", &opts);
    const int has_little = memchr(t.mixed.data, '<', t.mixed.len) != NULL;
    if (has_little) { /* whose order a document can say, which is kept */
        check_same(&kit, "/mixed", "/little", item);
        export_array(&kit, "/mixed", "out.mixed");
        export_array(&kit, "/little", "out.little");
        ck_assert(exchange_same_tree(exchange_path(&kit, "out.mixed"),
                                     exchange_path(&kit, "out.little")));
    } else {
        uint8_t *seen = exchange_elements(kit.session, "/mixed", 8 * item);
        uint8_t *expected = exchange_elements(kit.session, "/little", 8 * item);
        ck_assert_mem_eq(seen, expected, 8 * item);
        free(seen);
        free(expected);
    }
    free(little);
    free(mixed);
    brc_buf_dispose(&t.mixed);
    brc_buf_dispose(&t.little);
    exchange_stop(&kit);
}

#define MIXED(name, filters, fill) \
    "{\"zarr_format\":2,\"shape\":[1],\"chunks\":[1],\"order\":\"C\",\"compressor\":null," \
    "\"filters\":" filters ",\"fill_value\":" fill ",\"dtype\":[[\"a\",\"<i4\"]," \
    "[" name "]]}"

static brc_json *read_zarray(exchange_kit *kit, const char *name)
{
    brc_json *doc;
    brc_buf text = exchange_read(exchange_path(kit, name));
    ck_assert_int_eq(brc_json_parse(&doc, (const char *)text.data, text.len, 0, NULL), BRC_OK);
    brc_json_remove(doc, "dimension_separator");
    brc_buf_dispose(&text);
    return doc;
}

/* Chunks that no type or codec here reads are kept byte for byte, as with fields of one order. */
LOOP(what_cannot_be_read_is_kept_as_it_is, 0, 4)
{
    static const char *const documents[] = {
        MIXED("\"b\",\">i4\"", "[{\"id\":\"nobody.knows\"}]", "null"),
        MIXED("\"b\",\">i4\"", "[{\"id\":\"bitround\",\"keepbits\":3}]", "null"),
        MIXED("\"b\",\">i4\",[64,65]", "null", "null"),
        MIXED("\"b\",[[\"c\",\">i4\",0],[\"d\",\"|u1\"]]", "null", "null"),
    };
    exchange_kit kit;
    exchange_start(&kit);
    exchange_text(&kit, "a/.zarray", documents[_i]);
    exchange_file(&kit, "a/0", "\1\0\0\0\0\0\0\2", 8);
    import_array(&kit, "a", NULL);
    export_array(&kit, "/a", "out");
    brc_json *before = read_zarray(&kit, "a/.zarray"), *after = read_zarray(&kit, "out/.zarray");
    ck_assert(brc_json_equal(before, after));
    brc_buf chunk = exchange_read(exchange_path(&kit, "out/0"));
    ck_assert_uint_eq(chunk.len, 8);
    ck_assert_mem_eq(chunk.data, "\1\0\0\0\0\0\0\2", 8);
    brc_buf_dispose(&chunk);
    brc_json_free(before);
    brc_json_free(after);
    exchange_stop(&kit);
}

LOOP(what_is_wrong_is_refused_by_name, 0, 6)
{
    static const struct {
        const char *doc, *says;
    } wrong[] = {
        {MIXED("\"b\",\">i4\"", "null", "\"AQID\""), "/fill_value: is 3 bytes"},
        {MIXED("\"b\",\">i4\"", "null", "\"!!\""), "/fill_value: is not valid base64"},
        {MIXED("\"a\",\">i4\"", "null", "null"), "two fields \"a\""},
        {MIXED("\"b\",\">i4\"", "[{\"id\":\"delta\",\"dtype\":\"<i8\"}]", "null"),
         "/filters/0: \"delta\""}, /* works on elements as they are stored */
        {MIXED("\"b\",\">i3\"", "null", "null"), "/dtype: \">i3\""},
        {MIXED("\"b\",\">i4\",-1", "null", "null"), "/dtype: the shape of a field"},
    };
    exchange_kit kit;
    exchange_start(&kit);
    exchange_text(&kit, "a/.zarray", wrong[_i].doc);
    ck_assert_int_lt(brc_import(kit.session, exchange_path(&kit, "a"), "/a", NULL, &kit.err), 0);
    ck_assert_msg(strstr(kit.err.message, wrong[_i].says) != NULL, "%s", kit.err.message);
    exchange_stop(&kit);
}

/* A chunk that is cut fails the import, as any other's does. */
TEST(a_chunk_that_is_too_short_is_damage)
{
    exchange_kit kit;
    exchange_start(&kit);
    exchange_text(&kit, "a/.zarray", MIXED("\"b\",\">i4\"", "null", "null"));
    exchange_file(&kit, "a/0", "\1\0\0\0\0\0\0", 7);
    ck_assert_int_eq(brc_import(kit.session, exchange_path(&kit, "a"), "/a", NULL, &kit.err),
                     BRC_ECORRUPT);
    exchange_stop(&kit);
}
