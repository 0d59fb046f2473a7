/* The rules of merging an array's chunks, a row each, in both directions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../../src/store/db.h"
#include "../../src/tree/map.h"
#include "../../src/work/session.h"
#include "../kit/hook_codec.h"
#include "../kit/merge_kit.h"
#include "../kit/step_count.h"
#include "../kit/suite.h"

TEST_SUITE(merge_chunks);

#define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"

/* Elements are the digits 0 to 3; '9' is none of them: the first is 0. */
static const merge_type numbers = { "\"int32\"", BYTES, { "0", "1", "2", "3" } };
static const merge_type floats = { "\"float32\"", BYTES,
                                   { "0", "-0.0", "\"0x7fc00001\"", "\"0x7fc00002\"" } };
static const merge_type pairs = {
    "{\"name\":\"struct\",\"configuration\":{\"fields\":["
    "{\"name\":\"a\",\"data_type\":\"int8\"},{\"name\":\"b\",\"data_type\":\"int8\"}]}}",
    BYTES,
    { "{\"a\":0,\"b\":0}", "{\"a\":1,\"b\":0}", "{\"a\":0,\"b\":1}", "{\"a\":1,\"b\":1}" }
};
static const merge_type strings = { "\"string\"", "{\"name\":\"vlen-utf8\"}",
                                    { "\"\"", "\"a\"", "\"b\"", "\"longer\"" } };

/* "f1 0123": a fill value, and the elements; without "f1 " the first is 0. NULL: none. */
typedef struct merge_row {
    const char *name;
    const merge_type *type;
    const char *base, *ours, *theirs;
    const char *result; /* with ours where they conflict                          */
    int conflicts;      /* chunks that have one ...                               */
    int kind;           /* ... of this kind                                       */
} merge_row;

static const merge_row rows[] = {
    { "the same change", &numbers, "0000", "0100", "0100", "0100", 0, 0 },
    { "nothing", &numbers, "0123", "0123", "0123", "0123", 0, 0 },
    { "one side", &numbers, "0123", "0123", "0120", "0120", 0, 0 },
    { "different chunks", &numbers, "00000000", "10000000", "00000002", "10000002", 0, 0 },
    { "different elements of a chunk", &numbers, "0000", "1000", "0002", "1002", 0, 0 },
    { "one element", &numbers, "0000", "0100", "0200", "0100", 1, BRC_CHUNK_ELEMENTS },
    { "one element of several", &numbers, "1111", "1213", "0311", "0213", 1, BRC_CHUNK_ELEMENTS },
    { "two chunks with a conflict", &numbers, "00000000", "10001000", "20002000", "10001000", 2,
      BRC_CHUNK_ELEMENTS },
    { "dropped, and fill value changed", &numbers, "1100", "0000", "1102", "0002", 0, 0 },
    { "dropped, and an element changed", &numbers, "1111", "0000", "1112", "0000", 1,
      BRC_CHUNK_ELEMENTS },
    { "merged to nothing but fill", &numbers, "1010", "0010", "1000", "0000", 0, 0 },
    { "no base, apart", &numbers, NULL, "1100", "1100", "1100", 0, 0 },
    { "no base, a chunk of one", &numbers, NULL, "1100", "0000", "1100", 1, BRC_CHUNK_ELEMENTS },
    { "no base, two chunks", &numbers, NULL, "11000000", "00000011", "11000000", 2,
      BRC_CHUNK_ELEMENTS },
    { "-0.0", &floats, "0000", "1000", "0000", "1000", 0, 0 },
    { "-0.0 and back", &floats, "1000", "0000", "1100", "0100", 0, 0 },
    { "two NaNs", &floats, "2222", "2223", "2222", "2223", 0, 0 },
    { "NaNs of both", &floats, "0000", "2000", "3000", "2000", 1, BRC_CHUNK_ELEMENTS },
    { "a structure is one value", &pairs, "0000", "1000", "2000", "1000", 1, BRC_CHUNK_ELEMENTS },
    { "structures side by side", &pairs, "0000", "1000", "0200", "1200", 0, 0 },
    { "strings", &strings, "1111", "3111", "1121", "3121", 0, 0 },
    { "one string", &strings, "1111", "3111", "2111", "3111", 1, BRC_CHUNK_ELEMENTS },
    /* shapes */
    { "one grows, the other writes", &numbers, "1111111111", "11111111112222",
      "1111111113", "11111111132222", 0, 0 },
    { "one grows, the chunk at the edge of both", &numbers, "1111111111", "111111111122",
      "1111111131", "111111113122", 0, 0 },
    { "both grow alike, one writes there", &numbers, "1111", "11110000", "11110020", "11110020", 0,
      0 },
    { "both grow alike, and write there", &numbers, "1111", "11110300", "11110200", "11110300", 1,
      BRC_CHUNK_ELEMENTS },
    { "both grow alike, to the same", &numbers, "1111", "11112200", "11112200", "11112200", 0, 0 },
    { "one shrinks, the other writes before that", &numbers, "1111111111", "11111", "1131111111",
      "11311", 0, 0 },
    { "one shrinks, the other writes in what is lost", &numbers, "1111111111", "11111",
      "1111111211", "11111", 1, BRC_CHUNK_LOST },
    { "one shrinks, the other drops what is lost", &numbers, "1111111111", "11111", "1111100000",
      "11111", 2, BRC_CHUNK_LOST },
    { "one shrinks, the other has it as it was", &numbers, "1111111111", "11111", "2111111111",
      "21111", 0, 0 },
    { "to 5 and back to 10", &numbers, "1111111111", "1111100000", "1131111111", "1131100000", 0,
      0 },
    { "both shrink alike", &numbers, "11111111", "1112", "3111", "3112", 0, 0 },
    { "shrunk to nothing", &numbers, "1111", "", "1111", "", 0, 0 },
    /* fill values */
    { "another fill value alone", &numbers, "11110000", "f3 11113333", "11110000", "f3 11113333", 0,
      0 },
    { "... and a chunk written", &numbers, "11110000", "f3 11113333", "11110002", "f3 11113333", 1,
      BRC_CHUNK_FILL },
    { "... and a chunk changed", &numbers, "11110000", "f3 11113333", "11120000", "f3 11113333", 1,
      BRC_CHUNK_FILL },
    { "... and a chunk dropped", &numbers, "11110000", "f3 11113333", "00000000", "f3 11113333", 1,
      BRC_CHUNK_FILL },
    { "the same new one", &numbers, "11110000", "f3 11113333", "f3 11123332", "f3 11123332", 0, 0 },
    { "the same new one, and both write", &numbers, "11110000", "f3 11113323", "f3 11113332",
      "f3 11113322", 0, 0 },
    { "another fill value, and the other grows", &numbers, "1111", "f3 1111", "11110000",
      "f3 11113333", 0, 0 },
    { "another fill value, and the other shrinks", &numbers, "1111111111", "f3 1111111111", "11111",
      "f3 11111", 0, 0 },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void version_of(merge_version *v, const char *text)
{
    memset(v, 0, sizeof(*v));
    v->ndim = 1;
    v->chunk[0] = 4;
    v->is_there = text != NULL;
    if (text == NULL)
        return;
    if (text[0] == 'f') {
        v->fill = text[1] - '0';
        text += 3;
    }
    v->shape[0] = strlen(text);
    for (size_t i = 0; text[i] != '\0'; i++)
        v->values[i] = (uint8_t)(text[i] - '0');
}

static void store_row(merge_kit *k, const merge_row *row)
{
    const char *texts[BRC_SIDES] = { row->base, row->ours, row->theirs };
    for (int s = 0; s < BRC_SIDES; s++) {
        version_of(&k->v[s], texts[s]);
        merge_kit_store(k, s);
    }
}

CASE("merge_chunks", .timeout = 120);

LOOP(each_rule_both_ways, 0, ROWS)
{
    static merge_kit k;
    static merge_version want;
    const merge_row *row = &rows[_i];
    merge_kit_start(&k, row->type);
    store_row(&k, row);
    version_of(&want, row->result);
    for (int swapped = 0; swapped < 2; swapped++) {
        k.swapped = swapped;
        k.favour = 0;
        merge_kit_run(&k, &want);
        ck_assert_int_ne(k.merge.map, BRC_CHUNKS_APART);
        ck_assert_msg((int)k.conflicts == row->conflicts, "%s: %zu conflicts", row->name,
                      k.conflicts);
        ck_assert_msg(row->kind == 0 || (int)k.kinds[row->kind] == row->conflicts, "%s: the kind",
                      row->name);
        ck_assert_uint_eq(k.merge.conflicts + k.kinds[BRC_CHUNK_LOST], k.conflicts);
        if (!swapped)
            merge_kit_check(&k, &want, row->name);
        k.favour = swapped ? BRC_SIDE_THEIRS : BRC_SIDE_OURS;
        merge_kit_run(&k, &want);
        ck_assert_uint_eq(k.conflicts, 0);
        merge_kit_check(&k, &want, row->name);
    }
    scenario_whole(&k.t);
    merge_kit_stop(&k);
}

/* The box and the mask of a conflict, in two dimensions. */
TEST(conflicts_say_where)
{
    static merge_kit k;
    static const uint64_t places[] = { 5 * 6 + 4, 5 * 6 + 5, 4 * 6 + 5 };
    merge_kit_start(&k, &numbers);
    for (int s = 0; s < BRC_SIDES; s++) {
        merge_version *v = &k.v[s];
        *v = (merge_version){ .is_there = 1, .ndim = 2, .shape = { 6, 6 }, .chunk = { 4, 4 } };
        memset(v->values, 1, 36);
        for (size_t i = 0; i < 3 && s > 0; i++)
            v->values[places[i]] = (uint8_t)(s == BRC_SIDE_OURS ? 2 : 3);
        merge_kit_store(&k, s);
    }
    merge_kit_run(&k, &k.v[BRC_SIDE_OURS]);
    ck_assert_uint_eq(k.conflicts, 1);
    ck_assert_uint_eq(k.elements, 3);
    ck_assert(k.first[0] == 4 && k.first[1] == 4 && k.last[0] == 5 && k.last[1] == 5);
    const uint8_t mask[] = { 1, 1, 2, 2 }; /* of the chunk at (4, 4): 1 is, 4 and 5 are */
    ck_assert_uint_eq(k.mask.len, sizeof(mask));
    ck_assert_mem_eq(k.mask.data, mask, sizeof(mask));
    merge_kit_stop(&k);
}

/* ---- padding -------------------------------- */

/* A smaller shape for /a by its document; its chunks are set again with what is beyond it. */
static void cut_by_document(merge_kit *k, const char *shape, const char *chunk)
{
    enum { KEYS = 8 };
    char doc[600], *keys[KEYS];
    brc_buf bytes[KEYS] = { BRC_BUF_INIT };
    brc_iter *it;
    const char *key;
    size_t n = 0;
    OK(&k->t, brc_keys(&it, k->t.session, "a/c/", 0, &k->t.err));
    while (brc_next(it, &key, &k->t.err) > 0) {
        ck_assert_uint_lt(n, KEYS);
        OK(&k->t, brc_key_get(&bytes[n], k->t.session, key, NULL, NULL, &k->t.err));
        keys[n++] = strdup(key);
    }
    brc_iter_free(it);
    int len = snprintf(doc, sizeof(doc),
                       "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[%s],"
                       "\"data_type\":\"int32\",\"chunk_grid\":{\"name\":\"regular\","
                       "\"configuration\":{\"chunk_shape\":[%s]}},"
                       "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,"
                       "\"codecs\":[" BYTES "]}",
                       shape, chunk);
    OK(&k->t, brc_key_set(k->t.session, "a/zarr.json", doc, (size_t)len, 0, &k->t.err));
    for (size_t i = 0; i < n; i++) {
        OK(&k->t, brc_key_set(k->t.session, keys[i], bytes[i].data, bytes[i].len, 0, &k->t.err));
        brc_buf_dispose(&bytes[i]);
        free(keys[i]);
    }
}

TEST(padding_is_nobodys)
{
    static merge_kit k;
    static merge_version want;
    merge_kit_start(&k, &numbers);
    version_of(&k.v[BRC_SIDE_BASE], "111111111122");
    merge_kit_store(&k, BRC_SIDE_BASE);
    cut_by_document(&k, "10", "4");
    merge_kit_keep(&k, BRC_SIDE_BASE); /* 10, and 22 beyond that */
    version_of(&k.v[BRC_SIDE_THEIRS], "111111111333");
    merge_kit_store(&k, BRC_SIDE_THEIRS);
    cut_by_document(&k, "10", "4");
    merge_kit_keep(&k, BRC_SIDE_THEIRS); /* writes at 9, and has 33 beyond its shape */
    version_of(&k.v[BRC_SIDE_OURS], "211111111100");
    merge_kit_store(&k, BRC_SIDE_OURS); /* grows to 12 */
    for (k.swapped = 0; k.swapped < 2; k.swapped++) {
        version_of(&want, "211111111300");
        merge_kit_run(&k, &want);
        ck_assert_uint_eq(k.conflicts, 0);
        merge_kit_check(&k, &want, "padding");
    }
    scenario_whole(&k.t);
    merge_kit_stop(&k);
}

/* Elements that neither side has are fill value, also where both have the same garbage there. */
TEST(a_new_corner_is_fill)
{
    static merge_kit k;
    static merge_version want;
    const uint64_t shapes[BRC_SIDES][2] = { { 2, 2 }, { 4, 2 }, { 2, 4 } };
    merge_kit_start(&k, &numbers);
    for (int s = 0; s < BRC_SIDES; s++) {
        k.v[s] = (merge_version){ .is_there = 1, .ndim = 2, .chunk = { 4, 4 } };
        memcpy(k.v[s].shape, (uint64_t[]){ 4, 4 }, 16);
        memset(k.v[s].values, 1, 16);
        merge_kit_store(&k, s);
        char shape[24];
        snprintf(shape, sizeof(shape), "%d,%d", (int)shapes[s][0], (int)shapes[s][1]);
        cut_by_document(&k, shape, "4,4");
        merge_kit_keep(&k, s);
    }
    want = k.v[BRC_SIDE_OURS];
    for (int i = 0; i < 16; i++)
        want.values[i] = (uint8_t)(i / 4 < 2 || i % 4 < 2);
    merge_kit_run(&k, &want);
    ck_assert_uint_eq(k.conflicts, 0);
    merge_kit_check(&k, &want, "corner");
    merge_kit_stop(&k);
}

/* ---- what is not taken apart -------------------------------- */

/* A shard within another codec is one chunk. */
TEST(a_shard_within_a_codec_is_one)
{
    static merge_kit k;
    static merge_version want;
    merge_kit_start(&k, &numbers);
    const char *texts[BRC_SIDES] = { "1111111111111111", "2111111111111111", "1111111211111113" };
    for (int s = 0; s < BRC_SIDES; s++) {
        version_of(&k.v[s], texts[s]);
        k.v[s].shard = 2;
        k.v[s].more = ",{\"name\":\"crc32c\"}";
        merge_kit_store(&k, s);
    }
    want = k.v[BRC_SIDE_OURS];
    want.values[15] = 3; /* the other shard is theirs */
    merge_kit_run(&k, &want);
    ck_assert_uint_eq(k.conflicts, 1);
    ck_assert_uint_eq(k.kinds[BRC_CHUNK_UNIT], 1);
    ck_assert_uint_eq(k.elements, 8);
    merge_kit_check(&k, &want, "ours");
    want = k.v[BRC_SIDE_THEIRS];
    k.favour = BRC_SIDE_THEIRS;
    merge_kit_run(&k, &want);
    merge_kit_check(&k, &want, "theirs");
    for (int s = 0; s < BRC_SIDES; s++) { /* a shard with chunks of its own is not */
        k.v[s].more = NULL;
        merge_kit_store(&k, s);
    }
    k.favour = 0;
    want = k.v[BRC_SIDE_THEIRS];
    want.values[0] = 2;
    merge_kit_run(&k, &want);
    ck_assert_uint_eq(k.conflicts, 0);
    merge_kit_check(&k, &want, "inner chunks");
    merge_kit_stop(&k);
}

/* Grids and types: the side that alone has changed chunks wins, else nothing is mixed. */
TEST(grids_and_types_are_not_mixed)
{
    static merge_kit k;
    merge_kit_start(&k, &numbers);
    version_of(&k.v[0], "11111111");
    version_of(&k.v[1], "11111111");
    k.v[1].chunk[0] = 3;
    version_of(&k.v[2], "11111112");
    for (int s = 0; s < BRC_SIDES; s++)
        merge_kit_store(&k, s);
    for (k.swapped = 0; k.swapped < 2; k.swapped++) {
        OK(&k.t, merge_kit_try(&k, &k.v[1]));
        ck_assert_int_eq(k.merge.map, BRC_CHUNKS_APART);
        ck_assert_ptr_nonnull(k.merge.why);
        ck_assert_uint_eq(k.calls, 0);
    }
    version_of(&k.v[2], "11111111");
    merge_kit_store(&k, 2);
    for (k.swapped = 0; k.swapped < 2; k.swapped++) {
        merge_kit_run(&k, &k.v[1]);
        ck_assert_int_eq(k.merge.map, k.swapped ? BRC_CHUNKS_THEIRS : BRC_CHUNKS_OURS);
        merge_kit_check(&k, &k.v[1], "another grid");
    }
    merge_kit_stop(&k);
}

/* Storage is not data: sides with other codecs have the same chunks. */
TEST(codecs_block_nothing)
{
    static merge_kit k;
    static merge_version want;
    merge_kit_start(&k, &numbers);
    version_of(&k.v[0], "11111111");
    version_of(&k.v[1], "21111111");
    k.v[1].more = ",{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}";
    version_of(&k.v[2], "13111112");
    k.v[2].more = ",{\"name\":\"gzip\",\"configuration\":{\"level\":1}}";
    for (int s = 0; s < BRC_SIDES; s++)
        merge_kit_store(&k, s);
    want = k.v[1];
    want.values[1] = 3;
    want.values[7] = 2;
    merge_kit_run(&k, &want);
    ck_assert_uint_eq(k.conflicts, 0);
    ck_assert_uint_eq(k.merge.merged_chunks, 1);
    ck_assert_uint_eq(k.calls, 2);
    merge_kit_check(&k, &want, "codecs");
    scenario_whole(&k.t);
    merge_kit_stop(&k);
}

/* ---- bases that do not agree -------------------------------- */

static int some_unknown(void *ctx, brc_span key, brc_span *mask, brc_error *err)
{
    static const uint8_t second[] = { 1, 1 };
    (void)err;
    (void)ctx;
    if (key.len > 1) /* the second chunk: all of it */
        return BRC_BASE_UNKNOWN;
    *mask = (brc_span){ second, sizeof(second) };
    return BRC_BASE_UNKNOWN;
}

TEST(unknown_is_unequal_to_both)
{
    static merge_kit k;
    const merge_row row = { "unknown", &numbers, "11111111", "11111112", "12221112", "12221112", 0,
                            0 };
    merge_kit_start(&k, &numbers);
    store_row(&k, &row);
    k.unknown = some_unknown;
    for (k.swapped = 0; k.swapped < 2; k.swapped++) {
        /* theirs changed 1 to 3; of these only 1 is unknown. 7 is alike in both. */
        merge_kit_run(&k, &k.v[BRC_SIDE_THEIRS]);
        ck_assert_uint_eq(k.conflicts, 1);
        ck_assert_uint_eq(k.elements, 1);
        ck_assert_uint_eq(k.first[0], 1);
        static merge_version want;
        version_of(&want, k.swapped ? "12221112" : "11221112");
        merge_kit_check(&k, &want, "unknown");
    }
    version_of(&k.v[BRC_SIDE_THEIRS], "11111113");
    merge_kit_store(&k, BRC_SIDE_THEIRS);
    k.swapped = 0;
    merge_kit_run(&k, &k.v[BRC_SIDE_OURS]);
    ck_assert_uint_eq(k.elements, 1);
    ck_assert_uint_eq(k.first[0], 7);
    merge_kit_stop(&k);
}

/* ---- many chunks -------------------------------- */

#define MANY 100000
#define CHANGES 50

static void many_keys(merge_kit *k, brc_oid *map)
{
    enum { STEP = 1000 };
    static brc_edit edits[STEP];
    static uint8_t keys[STEP][BRC_CHUNK_KEY_MAX];
    brc_oid ids[STEP];
    memset(map, 0, sizeof(*map));
    for (uint64_t i = 0; i < MANY; i += STEP) {
        const brc_oid before = *map;
        for (uint64_t j = 0; j < STEP; j++) {
            const uint64_t index = i + j;
            ids[j] = (brc_oid){ .bytes = { 1, (uint8_t)index, (uint8_t)(index >> 8),
                                           (uint8_t)(index >> 16) } };
            edits[j] = (brc_edit){ keys[j], brc_chunk_key_encode(keys[j], 1, &index), ids[j].bytes,
                                   brc_store_id_len(k->t.repo->store) };
        }
        OK(&k->t, brc_map_edit(k->t.repo->store, &before, edits, STEP, map, &k->t.err));
    }
}

static void change_keys(merge_kit *k, const brc_oid *from, uint64_t first, brc_oid *map)
{
    *map = *from;
    for (uint64_t i = 0; i < CHANGES; i++) {
        const brc_oid before = *map;
        const uint64_t index = first + i * (MANY / CHANGES);
        uint8_t key[BRC_CHUNK_KEY_MAX];
        const brc_oid id = { .bytes = { 2, (uint8_t)i, (uint8_t)first } };
        const brc_edit edit = { key, brc_chunk_key_encode(key, 1, &index), id.bytes,
                                brc_store_id_len(k->t.repo->store) };
        OK(&k->t, brc_map_edit(k->t.repo->store, &before, &edit, 1, map, &k->t.err));
    }
}

/* Chunks that did not change are not read: 100 differences in 100,000 chunks. */
TEST(the_work_is_the_difference)
{
    static merge_kit k;
    step_count count;
    merge_kit_start(&k, &numbers);
    version_of(&k.v[0], "1111");
    k.v[0].shape[0] = MERGE_ELEMENTS;
    for (int s = 0; s < BRC_SIDES; s++) {
        k.v[s] = k.v[0];
        merge_kit_store(&k, s);
    }
    merge_version large = k.v[0];
    large.shape[0] = (uint64_t)4 * MANY;
    brc_array *a = scenario_array_at(&k.t, k.t.session, "/a");
    OK(&k.t, brc_array_resize(a, large.shape, &k.t.err));
    brc_array_free(a);
    merge_kit_keep(&k, BRC_SIDE_BASE);
    k.side[1] = k.side[2] = k.side[0];
    OK(&k.t, brc_begin(k.t.repo, &k.t.err));
    many_keys(&k, &k.side[0].map);
    change_keys(&k, &k.side[0].map, 7, &k.side[1].map);
    change_keys(&k, &k.side[0].map, 1234, &k.side[2].map);
    OK(&k.t, brc_end(k.t.repo, BRC_END_KEEP, &k.t.err));
    scenario_reopen(&k.t);
    step_count_start(&count, k.t.repo->store->db);
    OK(&k.t, merge_kit_try(&k, &large));
    step_count_stop(&count);
    ck_assert_int_eq(k.merge.map, BRC_CHUNKS_MIXED);
    ck_assert_uint_eq(k.calls, CHANGES);
    ck_assert_uint_eq(k.conflicts, 0);
    ck_assert_uint_eq(k.merge.merged_chunks, 0);
    ck_assert_msg(count.transaction < 20000, "%lld steps", (long long)count.transaction);
    merge_kit_stop(&k);
}

/* ---- failures -------------------------------- */

/* Chunks that both changed: 64 of them, with a budget for very few at a time. */
static void store_many(merge_kit *k)
{
    for (int s = 0; s < BRC_SIDES; s++) {
        merge_version *v = &k->v[s];
        *v = (merge_version){ .is_there = 1, .ndim = 1, .shape = { 256 }, .chunk = { 4 } };
        for (int i = 0; i < 256; i++)
            v->values[i] = (uint8_t)(i % 4 == s ? i / 4 % 3 + 1 : 0);
        merge_kit_store(k, s);
    }
}

static void merge_of_many(const merge_kit *k, merge_version *out)
{
    *out = k->v[BRC_SIDE_OURS];
    for (int i = 0; i < 256; i++)
        if (i % 4 == BRC_SIDE_THEIRS)
            out->values[i] = k->v[BRC_SIDE_THEIRS].values[i];
}

TEST(memory_is_bounded)
{
    static merge_kit k;
    static merge_version want;
    merge_kit_start(&k, &numbers);
    store_many(&k);
    merge_of_many(&k, &want);
    k.t.repo->pipe.memory = 64;
    merge_kit_run(&k, &want);
    ck_assert_uint_eq(k.conflicts, 0);
    ck_assert_uint_eq(k.merge.merged_chunks, 64);
    merge_kit_check(&k, &want, "a small budget");
    scenario_whole(&k.t);
    merge_kit_stop(&k);
}

/* A merge that stops leaves nothing but objects; the next one goes through. */
TEST(interrupted)
{
    static merge_kit k;
    static merge_version want;
    merge_kit_start(&k, &numbers);
    store_many(&k);
    merge_of_many(&k, &want);
    for (k.stops_after = 1; k.stops_after < 64; k.stops_after += 9) {
        FAILS(&k.t, BRC_EINTERRUPT, merge_kit_try(&k, &want));
        scenario_whole(&k.t);
    }
    k.stops_after = 0;
    brc_interrupt(k.t.repo, 1);
    FAILS(&k.t, BRC_EINTERRUPT, merge_kit_try(&k, &want));
    brc_interrupt(k.t.repo, 0);
    merge_kit_run(&k, &want);
    merge_kit_check(&k, &want, "at last");
    merge_kit_stop(&k);
}

static void while_it_works(void *ctx)
{
    scenario *t = ctx;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *other;
    brc_error err = BRC_ERROR_INIT;
    ck_assert_msg(brc_open(&other, t->file, &opts, &err) == BRC_OK, "%s", err.message);
    ck_assert_msg(brc_ref_create(other, "beside", "main", NULL, 0,
                                 &err) == BRC_OK, "%s", err.message);
    brc_free(other);
}

/* Another handle writes while chunks are encoded: no lock is held. */
TEST(nothing_is_locked_meanwhile)
{
    static merge_kit k;
    static merge_version want;
    static const merge_type hooked = { "\"int32\"", BYTES "," HOOK_CODEC, { "0", "1", "2", "3" } };
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    merge_kit_start(&k, &hooked);
    brc_registry *reg = hook_registry(&k.t.err);
    ck_assert_ptr_nonnull(reg);
    opts.registry = reg;
    opts.wait_ms = 1;
    scenario_close(&k.t);
    scenario_open(&k.t, &opts, 0);
    store_many(&k);
    merge_of_many(&k, &want);
    hook_encode(while_it_works, &k.t, 1);
    merge_kit_run(&k, &want);
    ck_assert_int_eq(hook_calls(), 1);
    ck_assert_int_eq((int)scenario_ask(&k.t, "SELECT count(*) FROM ref WHERE name='heads/beside'"),
                     1);
    merge_kit_check(&k, &want, "beside another");
    scenario_close(&k.t);
    brc_registry_free(reg);
    scenario_open(&k.t, NULL, 0);
    merge_kit_stop(&k);
}

TEST(damage_is_named)
{
    static merge_kit k;
    merge_kit_start(&k, &numbers);
    store_many(&k);
    scenario_close(&k.t);
    scenario_open(&k.t, NULL, 0);
    scenario_sql(&k.t, "UPDATE blob SET data=zeroblob(length(data)) WHERE seq IN "
                       "(SELECT place FROM object WHERE kind=1)");
    FAILS(&k.t, BRC_ECORRUPT, merge_kit_try(&k, &k.v[1]));
    ck_assert_ptr_nonnull(strstr(k.t.err.message, "/a"));
    merge_kit_stop(&k);
}
