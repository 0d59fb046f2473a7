/*
 * Chunks that were made to have one XXH3-128: whichever way the two come in, the second
 * is refused with BRC_ECOLLISION, and nothing of that write is stored.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/file.h"
#include "../../src/breccia.h"
#include "../kit/collide.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/seal.h"
#include "../kit/suite.h"

TEST_SUITE(collision);

/* Chunks of this size; with the planted secret the guards are equal as well, and the
 * bytes must be compared: so up to 4,096 of them. */
static const struct {
    size_t len;
    int guards_equal;
} pairs[] = {
    { 32, 0 }, { 32, 1 }, { 1000, 0 }, { 1000, 1 }, { 4096, 0 }, { 4096, 1 },
    { 4100, 0 }, { 65536, 0 }, { 400000, 0 },
};
#define NPAIRS ((int)(sizeof(pairs) / sizeof(pairs[0])))

typedef struct twins {
    scenario t;
    uint64_t elements; /* of a chunk: int32 */
    size_t len;
    uint8_t *a, *b;
} twins;

static void twins_start(twins *w, int which)
{
    char sql[BRC_SECRET_LEN * 2 + 200];
    uint8_t secret[BRC_SECRET_LEN];
    scenario_start(&w->t);
    w->len = pairs[which].len;
    w->elements = w->len / 4;
    w->a = malloc(w->len);
    w->b = malloc(w->len);
    ck_assert(w->a != NULL && w->b != NULL);
    collide_pair(BRC_KIND_CHUNK, w->a, w->b, w->len);
    if (!pairs[which].guards_equal)
        return;
    scenario_close(&w->t);
    collide_secret(BRC_KIND_CHUNK, secret);
    ck_assert(brc_hash_guard(secret, w->a, w->len) == brc_hash_guard(secret, w->b, w->len));
    size_t n = (size_t)snprintf(sql, sizeof(sql), "UPDATE meta SET value=x'");
    for (size_t i = 0; i < sizeof(secret); i++)
        n += (size_t)snprintf(sql + n, sizeof(sql) - n, "%02x", secret[i]);
    snprintf(sql + n, sizeof(sql) - n, "' WHERE key='secret';" SEAL_META);
    scenario_sql(&w->t, sql);
    scenario_open(&w->t, NULL, 0);
}

static void twins_stop(twins *w)
{
    free(w->a);
    free(w->b);
    scenario_stop(&w->t);
}

static brc_array *array_of_chunks(twins *w, const char *path, uint64_t n)
{
    uint64_t shape = n * w->elements;
    return scenario_array(&w->t, path, "int32", 1, &shape, &w->elements, "0", NULL);
}

/* n chunks, all fill. */
static uint8_t *chunks_of(const twins *w, size_t n)
{
    uint8_t *data = calloc(n, w->len);
    ck_assert_ptr_nonnull(data);
    return data;
}

static int64_t stored_chunks(twins *w)
{
    return scenario_ask(&w->t, "SELECT count(*) FROM object WHERE kind=1");
}

static void refused(twins *w, int rc)
{
    const char *hash = strstr(w->t.err.message, "hash");
    ck_assert_msg(rc == BRC_ECOLLISION, "%d, %s", rc, rc < 0 ? w->t.err.message : "it was stored");
    ck_assert_int_eq(w->t.err.code, BRC_ECOLLISION);
    ck_assert_msg(strstr(w->t.err.message, "nothing was stored") != NULL, "%s",
                  w->t.err.message);
    ck_assert_msg(hash != NULL && strstr(hash, "cryptographic hash") != NULL, "%s",
                  w->t.err.message);
}

/* The array has these n chunks. */
static void has_chunks(twins *w, brc_array *a, const uint8_t *data, size_t n)
{
    uint8_t *got = chunks_of(w, n);
    OK(&w->t, brc_array_read(a, NULL, got, n * w->len, &w->t.err));
    ck_assert(memcmp(got, data, n * w->len) == 0);
    free(got);
}

/* In one write: side by side and apart in one batch (the first has 32 chunks at most),
 * in two batches, and in both orders. */
LOOP(f22_twins_of_one_write, 0, NPAIRS)
{
    static const size_t places[][2] = { { 0, 1 }, { 1, 0 }, { 3, 29 }, { 2, 38 }, { 38, 2 } };
    twins w;
    twins_start(&w, _i);
    for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
        char path[16];
        size_t n = places[k][0] + places[k][1] > 1 ? 40 : 2;
        uint8_t *data = chunks_of(&w, n), *zero = chunks_of(&w, n);
        snprintf(path, sizeof(path), "/a%zu", k);
        brc_array *a = array_of_chunks(&w, path, n);
        for (size_t i = 0; n > 2 && i < n; i++)
            memset(data + i * w.len, (int)i + 1, w.len);
        memcpy(data + places[k][0] * w.len, w.a, w.len);
        memcpy(data + places[k][1] * w.len, w.b, w.len);
        refused(&w, brc_array_write(a, NULL, data, n * w.len, &w.t.err));
        ck_assert_ptr_nonnull(strstr(w.t.err.message, path));
        ck_assert_int_eq(stored_chunks(&w), 0);
        has_chunks(&w, a, zero, n);
        brc_array_free(a);
        free(data);
        free(zero);
    }
    scenario_whole(&w.t);
    twins_stop(&w);
}

LOOP(f22_twins_of_two_arrays_in_one_batch, 0, NPAIRS)
{
    twins w;
    twins_start(&w, _i);
    brc_array *a = array_of_chunks(&w, "/a", 1), *b = array_of_chunks(&w, "/b", 1);
    uint8_t *zero = chunks_of(&w, 1);
    const brc_io io[] = { IO_OF(a, NULL, w.a, w.len), IO_OF(b, NULL, w.b, w.len) };
    refused(&w, brc_write(io, 2, &w.t.err));
    ck_assert_int_eq(stored_chunks(&w), 0);
    has_chunks(&w, a, zero, 1);
    has_chunks(&w, b, zero, 1);
    scenario_whole(&w.t);
    free(zero);
    brc_array_free(a);
    brc_array_free(b);
    twins_stop(&w);
}

LOOP(f22_a_twin_of_what_is_stored, 0, NPAIRS)
{
    twins w;
    twins_start(&w, _i);
    brc_array *a = array_of_chunks(&w, "/a", 1), *b = array_of_chunks(&w, "/b", 1);
    uint8_t *zero = chunks_of(&w, 1);
    OK(&w.t, brc_array_write(a, NULL, w.a, w.len, &w.t.err));
    scenario_commit(&w.t, "one");
    refused(&w, brc_array_write(b, NULL, w.b, w.len, &w.t.err));
    refused(&w, brc_array_append(b, 0, w.elements, w.b, w.len, &w.t.err));
    ck_assert_uint_eq(brc_array_describe(b)->shape[0], w.elements); /* not grown either */
    ck_assert_int_eq(stored_chunks(&w), 1);
    has_chunks(&w, a, w.a, 1);
    has_chunks(&w, b, zero, 1);
    OK(&w.t, brc_array_write(b, NULL, w.a, w.len, &w.t.err)); /* and all is well */
    has_chunks(&w, b, w.a, 1);
    scenario_whole(&w.t);
    free(zero);
    brc_array_free(a);
    brc_array_free(b);
    twins_stop(&w);
}

LOOP(f22_equal_twins_are_one_object, 0, NPAIRS)
{
    twins w;
    twins_start(&w, _i);
    brc_array *a = array_of_chunks(&w, "/a", 40), *b = array_of_chunks(&w, "/b", 40);
    uint8_t *data = chunks_of(&w, 40);
    for (size_t i = 0; i < 40; i++)
        memcpy(data + i * w.len, w.a, w.len);
    size_t len = 40 * w.len;
    const brc_io io[] = { IO_OF(a, NULL, data, len), IO_OF(b, NULL, data, len) };
    OK(&w.t, brc_write(io, 2, &w.t.err));
    ck_assert_int_eq(stored_chunks(&w), 1);
    has_chunks(&w, a, data, 40);
    has_chunks(&w, b, data, 40);
    scenario_whole(&w.t);
    free(data);
    brc_array_free(a);
    brc_array_free(b);
    twins_stop(&w);
}

static void put_file(twins *w, const char *name, const void *data, size_t len)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", w->t.dir, name);
    OK(&w->t, brc_dir_make_parents(path, strlen(w->t.dir), &w->t.err));
    OK(&w->t, brc_file_write(path, data, len, &w->t.err));
}

/* Chunk files of somebody else are kept as they are, and known by what they decode to. */
LOOP(f22_twins_of_one_import, 0, NPAIRS)
{
    twins w;
    char json[600], source[128];
    twins_start(&w, _i);
    snprintf(json, sizeof(json),
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[%llu],\"data_type\":\"int32\","
             "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[%llu]}},"
             "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,\"codecs\":["
             "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]}",
             2 * (unsigned long long)w.elements, (unsigned long long)w.elements);
    put_file(&w, "in.zarr/zarr.json", json, strlen(json));
    put_file(&w, "in.zarr/c/0", w.a, w.len);
    put_file(&w, "in.zarr/c/1", w.b, w.len);
    snprintf(source, sizeof(source), "%s/in.zarr", w.t.dir);
    refused(&w, brc_import(w.t.session, source, "/a", NULL, &w.t.err));
    ck_assert_int_eq(stored_chunks(&w), 0);
    ck_assert_int_eq(scenario_clean(&w.t), 1);
    scenario_whole(&w.t);
    twins_stop(&w);
}
