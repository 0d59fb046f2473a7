/* Objects: what is stored under an id is that, or an error that says what is wrong. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/store/db.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(store);

STORE_KIT_FIXTURE(kit)

#define GET_FAILS(kind, id, code, words)                                                  \
    do {                                                                                  \
        brc_span span_;                                                                   \
        KIT_FAILS(&kit, (code), (words),                                                  \
                  brc_store_get(kit.store, (kind), (id), &span_, &kit.err));              \
    } while (0)

#define SPEC "{\"codecs\":[{\"name\":\"bytes\"}],\"data_type\":\"uint8\",\"shape\":[4]}"

static brc_oid put(int kind, const void *data, size_t len)
{
    brc_oid id, want = brc_hash_object(BRC_HASH_XXH128, kind, data, len);
    KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
    KIT_OK(&kit, brc_store_put(kit.store, kind, data, len, &id, &kit.err));
    KIT_OK(&kit, brc_store_end(kit.store, 1, &kit.err));
    ck_assert_int_eq(brc_oid_cmp(&id, &want), 0);
    return id;
}

static void holds(int kind, const brc_oid *id, const void *data, size_t len)
{
    brc_span span;
    KIT_OK(&kit, brc_store_get(kit.store, kind, id, &span, &kit.err));
    ck_assert_uint_eq(span.len, len);
    ck_assert(len == 0 || memcmp(span.data, data, len) == 0);
}

static uint8_t *noise(size_t len, uint64_t seed)
{
    uint8_t *data = malloc(len + 1);
    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)store_kit_random(&seed);
    return data;
}

/* Runs a change of the file beside the store, which is opened again: nothing that it
 * remembers hides the change. %1 and %2 stand for the ids as blobs. */
static void change(const char *sql, const brc_oid *a, const brc_oid *b)
{
    brc_buf text = BRC_BUF_INIT;
    char hex[65];
    for (; *sql != '\0'; sql++) {
        if (*sql != '%') {
            KIT_OK(&kit, brc_buf_append(&text, sql, 1, &kit.err));
            continue;
        }
        sql++;
        KIT_OK(&kit,
               brc_buf_printf(&text, &kit.err, "x'%s'", brc_oid_format(hex, *sql == '1' ? a : b)));
    }
    KIT_OK(&kit, brc_buf_terminate(&text, &kit.err));
    store_kit_close(&kit);
    store_kit_sql(&kit, (const char *)text.data);
    store_kit_open(&kit);
    brc_buf_dispose(&text);
}

CASE("store", .setup = kit_start, .teardown = kit_stop);

/* ---- putting and getting ---------------------------------------------------------- */

TEST(what_was_put_is_got)
{
    static const size_t sizes[] = { 0, 1, 2, 100, 4095, 4096, 4097, 16384, 140000, 3000000 };
    brc_oid ids[BRC_KIND_MAX + 1][10], again;
    for (int round = 0; round < 2; round++) {
        KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
        for (int kind = 1; kind <= BRC_KIND_MAX; kind++) {
            for (size_t i = 0; i < 10; i++) {
                uint8_t *data = noise(sizes[i], 7);
                if (round == 1)
                    holds(kind, &ids[kind][i], data, sizes[i]);
                again = put(kind, data, sizes[i]);
                ck_assert(round == 0 || brc_oid_cmp(&ids[kind][i], &again) == 0);
                ids[kind][i] = again;
                holds(kind, &again, data, sizes[i]);
                free(data);
            }
        }
        KIT_OK(&kit, brc_store_end(kit.store, 1, &kit.err));
        store_kit_reopen(&kit);
    }
    /* Each content once for each kind: an id belongs to a kind. */
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM object"), 10 * BRC_KIND_MAX);
    /* The small ones share a row; nothing but objects' bytes is in rows. */
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM blob"), 1 + 2 * BRC_KIND_MAX);
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(DISTINCT place) FROM object"),
                     1 + 2 * BRC_KIND_MAX);
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT (SELECT sum(stored) FROM object) ="
                                         " (SELECT sum(length(data)) FROM blob)"), 1);
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM object WHERE backend<>0"), 0);
}

TEST(an_id_that_is_not_there_is_named)
{
    brc_oid id = store_kit_id(0xab);
    char hex[65];
    GET_FAILS(BRC_KIND_COMMIT, &id, BRC_ECORRUPT, brc_oid_format(hex, &id));
    ck_assert_ptr_nonnull(strstr(kit.err.message, "commit"));
    GET_FAILS(BRC_KIND_NODE, &id, BRC_ECORRUPT, "map node");
    brc_oid doc = put(BRC_KIND_DOCUMENT, "[]", 2);
    GET_FAILS(BRC_KIND_NODE, &doc, BRC_ECORRUPT, "is missing");
    store_kit_reopen(&kit);
    GET_FAILS(BRC_KIND_NODE, &doc, BRC_ECORRUPT, "is missing");
}

TEST(many_are_found_in_any_order)
{
    enum { N = 300 };
    brc_object objects[N], *pointers[N];
    uint64_t random = 3;
    KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
    for (uint32_t i = 0; i < N; i++) {
        objects[i] = (brc_object){ .id = store_kit_id((uint8_t)i), .found = 7 };
        if (i % 3 != 0)
            objects[i].id = put(BRC_KIND_CHUNK, &i, sizeof(i));
        objects[i].size = i;
        pointers[i] = &objects[i];
    }
    KIT_OK(&kit, brc_store_end(kit.store, 1, &kit.err));
    for (size_t i = N; i-- > 1;) {
        size_t j = store_kit_below(&random, i + 1);
        brc_object *swap = pointers[i];
        pointers[i] = pointers[j];
        pointers[j] = swap;
    }
    KIT_OK(&kit, brc_objects_find(kit.store, pointers, 0, &kit.err));
    KIT_OK(&kit, brc_objects_find(kit.store, pointers, N, &kit.err));
    for (uint32_t i = 0; i < N; i++) {
        uint32_t stored = 0;
        ck_assert_int_eq(objects[i].found, i % 3 != 0);
        if (i % 3 == 0)
            continue;
        ck_assert_int_eq(objects[i].kind, BRC_KIND_CHUNK);
        ck_assert_uint_eq(objects[i].size, sizeof(i));
        ck_assert_uint_eq(objects[i].guard,
                          brc_hash_guard(brc_store_secret(kit.store), &i, sizeof(i)));
        KIT_OK(&kit, brc_object_fetch(kit.store, &objects[i], (uint8_t *)&stored, &kit.err));
        KIT_OK(&kit, brc_object_verify(&objects[i], &stored, &kit.err));
        ck_assert_uint_eq(stored, i);
    }
    /* Nothing holds the file now: no open blob, no statement. */
    store_kit_sql(&kit, "CREATE TABLE x(a); DROP TABLE x");
}

TEST(pages_and_prefixes_and_totals_see_all)
{
    brc_object page[7];
    brc_oid after, found[2], ids[40];
    size_t n, seen = 0;
    char hex[65];
    brc_stats stats = { 0 };
    KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
    for (uint32_t i = 0; i < 40; i++)
        ids[i] = put(i % 2 ? BRC_KIND_COMMIT : BRC_KIND_CHUNK, &i, sizeof(i));
    KIT_OK(&kit, brc_store_end(kit.store, 1, &kit.err));
    memset(&after, 0, sizeof(after));
    for (;;) {
        KIT_OK(&kit, brc_objects_page(kit.store, &after, page, 7, &n, &kit.err));
        if (n == 0)
            break;
        for (size_t i = 0; i < n; i++) {
            ck_assert_int_lt(brc_oid_cmp(&after, &page[i].id), 0);
            after = page[i].id;
            seen++;
        }
    }
    ck_assert_uint_eq(seen, 40);
    KIT_OK(&kit, brc_store_totals(kit.store, &stats, &kit.err));
    ck_assert_uint_eq(stats.objects, 40);
    ck_assert_uint_eq(stats.chunks, 20);
    ck_assert_uint_eq(stats.logical_bytes, 160);
    ck_assert_uint_eq(stats.stored_bytes, 160);
    for (size_t i = 0; i < 40; i++) {
        brc_oid_format(hex, &ids[i]);
        for (size_t len = 32; len >= 6; len--) { /* 24 bits are enough for 40 ids here */
            hex[len] = '\0';
            KIT_OK(&kit,
                   brc_objects_by_prefix(kit.store, BRC_KIND_COMMIT, hex, found, &n, &kit.err));
            ck_assert_uint_eq(n, i % 2);
            ck_assert(n == 0 || brc_oid_cmp(&found[0], &ids[i]) == 0);
        }
    }
    KIT_OK(&kit, brc_objects_by_prefix(kit.store, BRC_KIND_COMMIT, "", found, &n, &kit.err));
    ck_assert_uint_eq(n, 2);
    KIT_OK(&kit, brc_objects_by_prefix(kit.store, BRC_KIND_COMMIT, "12g4", found, &n, &kit.err));
    ck_assert_uint_eq(n, 0);
    memset(hex, 'a', 33);
    hex[33] = '\0';
    KIT_OK(&kit, brc_objects_by_prefix(kit.store, BRC_KIND_COMMIT, hex, found, &n, &kit.err));
    ck_assert_uint_eq(n, 0);
}

/* ---- damage ------------------------------------------------------------------ */

LOOP(a_damaged_row_or_blob_is_an_error, 0, 39)
{
    static const struct {
        const char *sql, *words;
    } damages[] = {
        { "UPDATE object SET checksum=checksum+1 WHERE id=%1", "do not match their checksum" },
        { "UPDATE object SET checksum='x' WHERE id=%1", "contradicts itself" },
        { "UPDATE blob SET data=substr(data,1,length(data)-1) WHERE seq=1", "are missing" },
        { "UPDATE blob SET data=x'00'||data WHERE seq=1", "their checksum" },
        { "UPDATE blob SET data=x'' WHERE seq=1", "are missing" },
        { "UPDATE blob SET data=7 WHERE seq=1", "are missing" },
        { "DELETE FROM blob WHERE seq=1", "are missing" },
        { "UPDATE object SET place=77 WHERE id=%1", "are missing" },
        { "UPDATE object SET place=-1 WHERE id=%1", "are missing" },
        { "UPDATE object SET place='x' WHERE id=%1", "contradicts itself" },
        { "UPDATE blob SET data=zeroblob(length(data)) WHERE seq=1", "their checksum" },
        /* the other one's bytes, alone or with all that is said of them */
        { "UPDATE object SET place=2 WHERE id=%1", "their checksum" },
        { "UPDATE object SET (place,checksum,guard)=(SELECT place,checksum,guard FROM object"
          " WHERE id=%2) WHERE id=%1", "their checksum" },
        { "UPDATE object SET kind=3 WHERE id=%1", "is missing" },
        { "UPDATE object SET kind=0 WHERE id=%1", "contradicts itself" },
        { "UPDATE object SET kind=5 WHERE id=%1", "is missing" },
        { "UPDATE object SET kind=6 WHERE id=%1", "contradicts itself" },
        { "UPDATE object SET kind='two' WHERE id=%1", "contradicts itself" },
        { "UPDATE object SET encoding=-1 WHERE id=%1", "contradicts itself" },
        { "UPDATE object SET encoding=9 WHERE id=%1", "encoding 9 is missing" },
        { "UPDATE object SET encoding=1 WHERE id=%1", "it has an encoding of chunks" },
        { "UPDATE object SET size=size+1 WHERE id=%1", "contradicts itself" },
        { "UPDATE object SET stored=stored-1 WHERE id=%1", "contradicts itself" },
        { "UPDATE object SET stored=stored-1, size=size-1 WHERE id=%1", "their checksum" },
        { "UPDATE object SET stored=stored+1, size=size+1 WHERE id=%1", "are missing" },
        { "UPDATE object SET offset=1 WHERE id=%1", "are missing" },
        { "UPDATE object SET offset=-1 WHERE id=%1", "wrong size" },
        { "UPDATE object SET offset='x' WHERE id=%1", "wrong size" },
        { "UPDATE object SET offset=0.5 WHERE id=%1", "wrong size" },
        { "UPDATE object SET offset=1<<32 WHERE id=%1", "are missing" },
        { "UPDATE object SET offset=9223372036854775807 WHERE id=%1", "are missing" },
        { "UPDATE object SET offset=7, stored=0, size=0 WHERE id=%1", "their checksum" },
        { "UPDATE object SET size=-5, stored=-5 WHERE id=%1", "wrong size" },
        { "UPDATE object SET size='x' WHERE id=%1", "wrong size" },
        { "UPDATE object SET stored=1.5 WHERE id=%1", "wrong size" },
        /* lengths that nobody should try to allocate */
        { "UPDATE object SET size=1<<40, stored=1<<40 WHERE id=%1", "contradicts itself" },
        { "UPDATE object SET encoding=1, stored=1<<40 WHERE id=%1", "contradicts itself" },
        { "UPDATE object SET encoding=1, size=1<<62 WHERE id=%1", "too large" },
        { "UPDATE object SET size=1<<62, stored=1<<62 WHERE id=%1", "contradicts itself" },
        { "DELETE FROM object WHERE id=%1", "is missing" },
    };
    int64_t encoding;
    KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
    KIT_OK(&kit, brc_encoding_intern(kit.store, SPEC, &encoding, &kit.err));
    KIT_OK(&kit, brc_store_end(kit.store, 1, &kit.err));
    ck_assert_int_eq(encoding, 1);
    brc_oid a = put(BRC_KIND_DOCUMENT, "{\"a\":1}", 7), b = put(BRC_KIND_DOCUMENT, "{\"b\":2}", 7);
    change(damages[_i].sql, &a, &b);
    GET_FAILS(BRC_KIND_DOCUMENT, &a, BRC_ECORRUPT, damages[_i].words);
    holds(BRC_KIND_DOCUMENT, &b, "{\"b\":2}", 7);
}

/* Someone who changes the content, and the checksum with it, cannot change the id. */
TEST(other_content_with_the_right_checksum_has_another_hash)
{
    char sql[300];
    brc_oid id = put(BRC_KIND_DOCUMENT, "{\"a\":1}", 7);
    uint64_t checksum = brc_hash_stored(&id, 0, "{\"a\":9}", 7);
    snprintf(sql, sizeof(sql), "UPDATE blob SET data=CAST('{\"a\":9}' AS BLOB);"
                               "UPDATE object SET checksum=%" PRId64, (int64_t)checksum);
    change(sql, &id, &id);
    GET_FAILS(BRC_KIND_DOCUMENT, &id, BRC_ECORRUPT, "its content does not match its id");
}

TEST(ids_of_a_wrong_length_are_damage)
{
    brc_object page[4];
    brc_oid after, found[2], id = put(BRC_KIND_COMMIT, "c", 1);
    size_t n;
    memset(&after, 0, sizeof(after));
    change("UPDATE object SET id=substr(id,1,15)", &id, &id);
    KIT_OK(&kit, brc_objects_page(kit.store, &after, page, 4, &n, &kit.err));
    ck_assert_uint_eq(n, 0); /* the check of rows tells of it */
    KIT_FAILS(&kit, BRC_ECORRUPT, "an id is malformed",
              brc_objects_by_prefix(kit.store, BRC_KIND_COMMIT, "", found, &n, &kit.err));
    change("UPDATE object SET id='text'", &id, &id);
    KIT_OK(&kit, brc_objects_page(kit.store, &after, page, 4, &n, &kit.err)); /* sorts before */
    ck_assert_uint_eq(n, 0);
}

/* A write must not lean on a row that cannot be read as what is written. */
TEST(putting_again_what_is_stored_under_a_wrong_kind_fails)
{
    brc_oid out, id = put(BRC_KIND_DOCUMENT, "{}", 2);
    change("UPDATE object SET kind=1 WHERE id=%1", &id, &id);
    KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
    KIT_FAILS(&kit, BRC_ECORRUPT, "",
              brc_store_put(kit.store, BRC_KIND_DOCUMENT, "{}", 2, &out, &kit.err));
    KIT_OK(&kit, brc_store_end(kit.store, 0, &kit.err));
}

TEST(putting_again_what_is_damaged_fails)
{
    brc_oid out, id = put(BRC_KIND_DOCUMENT, "{}", 2);
    change("UPDATE blob SET data=CAST('[]' AS BLOB)", &id, &id);
    KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
    KIT_FAILS(&kit, BRC_ECORRUPT, "their checksum",
              brc_store_put(kit.store, BRC_KIND_DOCUMENT, "{}", 2, &out, &kit.err));
    KIT_OK(&kit, brc_store_end(kit.store, 0, &kit.err));
}

/* ---- collisions -------------------------------------------------------------- */

/* Data of one object under the id of other data of `len` bytes: what a collision of
 * the hash would look like. */
static void plant_collision(const uint8_t *there, const uint8_t *comes, size_t len, int same_guard)
{
    char sql[400], hex[65];
    brc_oid a = put(BRC_KIND_CHUNK, there, len);
    brc_oid b = brc_hash_object(BRC_HASH_XXH128, BRC_KIND_CHUNK, comes, len);
    uint64_t guard = brc_hash_guard(brc_store_secret(kit.store), same_guard ? comes : there, len);
    snprintf(sql, sizeof(sql), "UPDATE object SET id=x'%s', checksum=%" PRId64 ", guard=%" PRId64
                               " WHERE id=%%1",
             brc_oid_format(hex, &b), (int64_t)brc_hash_stored(&b, 0, there, len), (int64_t)guard);
    change(sql, &a, &a);
}

LOOP(a_collision_is_refused_and_nothing_changes, 0, 6)
{
    static const struct {
        size_t len;
        int same_guard; /* then only comparing shows it */
    } cases[] = { { 1, 0 }, { 1, 1 }, { 4096, 0 }, { 4096, 1 }, { 4097, 0 }, { 100000, 0 } };
    size_t len = cases[_i].len;
    uint8_t *there = noise(len, 1), *comes = noise(len, 2);
    brc_oid out;
    there[0] = (uint8_t)(comes[0] + 1);
    plant_collision(there, comes, len, cases[_i].same_guard);
    brc_buf before = store_kit_bytes(&kit), after;

    KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
    KIT_FAILS(&kit, BRC_ECOLLISION, "already holds other content",
              brc_store_put(kit.store, BRC_KIND_CHUNK, comes, len, &out, &kit.err));
    KIT_OK(&kit, brc_store_end(kit.store, 0, &kit.err));
    after = store_kit_bytes(&kit);
    ck_assert_uint_eq(before.len, after.len);
    ck_assert_mem_eq(before.data, after.data, before.len);
    brc_buf_dispose(&before);
    brc_buf_dispose(&after);
    free(there);
    free(comes);
}

LOOP(a_collision_of_chunks_is_refused_by_the_array, 0, 2)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    uint64_t shape = _i == 0 ? 500 : 5000; /* 4 bytes each: compared, or by the guard */
    size_t len = 4 * (size_t)shape;
    uint8_t *there = noise(len, 1), *comes = noise(len, 2), *back = malloc(len);
    breccia *repo;
    brc_session *s;
    brc_array *a;
    plant_collision(there, comes, len, _i == 0);
    store_kit_close(&kit);

    KIT_OK(&kit, brc_open(&repo, kit.file, &opts, &kit.err));
    KIT_OK(&kit, brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &kit.err));
    spec.ndim = 1;
    spec.shape = spec.chunk = &shape;
    spec.dtype = "int32";
    KIT_OK(&kit, brc_array_create(&a, s, "/a", &spec, &kit.err));
    memset(back, 1, len);
    KIT_OK(&kit, brc_array_write(a, NULL, back, len, &kit.err));
    KIT_FAILS(&kit, BRC_ECOLLISION, "other content",
              brc_array_write(a, NULL, comes, len, &kit.err));
    memset(back, 9, len);
    KIT_OK(&kit, brc_array_read(a, NULL, back, len, &kit.err));
    for (size_t i = 0; i < len; i++)
        KIT_TRUE(back[i] == 1);
    brc_array_free(a);
    brc_session_free(s);
    brc_free(repo);
    free(there);
    free(comes);
    free(back);
}

/* ---- scratch mode, rollback, transactions ------------------------------------ */

TEST(scratch_mode_leaves_the_file_as_it_is)
{
    brc_oid a = put(BRC_KIND_DOCUMENT, "{}", 2), b, c;
    brc_buf before = store_kit_bytes(&kit), after;
    KIT_OK(&kit, brc_store_begin_read(kit.store, &kit.err));
    brc_store_scratch_begin(kit.store);
    KIT_OK(&kit, brc_store_put(kit.store, BRC_KIND_DOCUMENT, "{}", 2, &c, &kit.err));
    ck_assert_int_eq(brc_oid_cmp(&a, &c), 0);
    KIT_OK(&kit, brc_store_put(kit.store, BRC_KIND_NODE, "not in the file", 15, &b, &kit.err));
    holds(BRC_KIND_NODE, &b, "not in the file", 15);
    holds(BRC_KIND_DOCUMENT, &a, "{}", 2);
    brc_store_scratch_end(kit.store);
    brc_store_end_read(kit.store);
    GET_FAILS(BRC_KIND_NODE, &b, BRC_ECORRUPT, "is missing");
    holds(BRC_KIND_DOCUMENT, &a, "{}", 2);
    after = store_kit_bytes(&kit);
    ck_assert_uint_eq(before.len, after.len);
    ck_assert_mem_eq(before.data, after.data, before.len);
    brc_buf_dispose(&before);
    brc_buf_dispose(&after);
    put(BRC_KIND_NODE, "not in the file", 15); /* now it is */
    store_kit_reopen(&kit);
    holds(BRC_KIND_NODE, &b, "not in the file", 15);
}

TEST(a_rollback_forgets_what_it_had_added)
{
    brc_oid id;
    int64_t encoding, again;
    const brc_chain *chain;
    KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
    KIT_OK(&kit, brc_store_put(kit.store, BRC_KIND_NODE, "gone", 4, &id, &kit.err));
    KIT_OK(&kit, brc_encoding_intern(kit.store, SPEC, &encoding, &kit.err));
    KIT_OK(&kit, brc_encoding_chain(kit.store, encoding, &chain, &kit.err));
    ck_assert_ptr_nonnull(chain);
    holds(BRC_KIND_NODE, &id, "gone", 4);
    KIT_OK(&kit, brc_store_end(kit.store, 0, &kit.err));
    GET_FAILS(BRC_KIND_NODE, &id, BRC_ECORRUPT, "is missing");
    KIT_OK(&kit, brc_encoding_find(kit.store, SPEC, &again, &kit.err));
    ck_assert_int_eq(again, -1);
    KIT_FAILS(&kit, BRC_ECORRUPT, "missing",
              brc_encoding_chain(kit.store, encoding, &chain, &kit.err));

    KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
    KIT_OK(&kit, brc_store_put(kit.store, BRC_KIND_NODE, "gone", 4, &id, &kit.err));
    KIT_OK(&kit, brc_encoding_intern(kit.store, SPEC, &encoding, &kit.err));
    KIT_OK(&kit, brc_store_end(kit.store, 1, &kit.err));
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM object"), 1);
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM encoding"), 1);
}

TEST(transactions_nest)
{
    brc_oid id;
    KIT_FAILS(&kit, BRC_EMISUSE, "no transaction", brc_store_end(kit.store, 1, &kit.err));
    KIT_OK(&kit, brc_store_end(kit.store, 0, &kit.err));
    KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
    KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
    KIT_OK(&kit, brc_store_put(kit.store, BRC_KIND_NODE, "1", 1, &id, &kit.err));
    KIT_OK(&kit, brc_store_end(kit.store, 1, &kit.err));
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM object"), 0); /* not yet */
    KIT_OK(&kit, brc_store_begin_read(kit.store, &kit.err)); /* reading inside is all right */
    brc_store_end_read(kit.store);
    KIT_OK(&kit, brc_store_end(kit.store, 1, &kit.err));
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM object"), 1);

    /* An inner one that fails takes all with it, whatever the outer one wants. */
    KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
    KIT_OK(&kit, brc_store_put(kit.store, BRC_KIND_NODE, "2", 1, &id, &kit.err));
    KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
    KIT_OK(&kit, brc_store_end(kit.store, 0, &kit.err));
    KIT_FAILS(&kit, BRC_EMISUSE, "so everything was undone", brc_store_end(kit.store, 1, &kit.err));
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM object"), 1);
    GET_FAILS(BRC_KIND_NODE, &id, BRC_ECORRUPT, "is missing");

    KIT_OK(&kit, brc_store_begin_read(kit.store, &kit.err));
    KIT_FAILS(&kit, BRC_EMISUSE, "inside a read", brc_store_begin(kit.store, &kit.err));
    brc_store_end_read(kit.store);
    put(BRC_KIND_NODE, "3", 1); /* and all is well again */
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM object"), 2);
}

TEST(closing_undoes_an_open_transaction)
{
    brc_oid id;
    KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
    KIT_OK(&kit, brc_store_put(kit.store, BRC_KIND_NODE, "1", 1, &id, &kit.err));
    store_kit_reopen(&kit);
    GET_FAILS(BRC_KIND_NODE, &id, BRC_ECORRUPT, "is missing");
}

TEST(the_version_tells_of_every_change)
{
    uint64_t v[4];
    KIT_OK(&kit, brc_store_version(kit.store, &v[0], &kit.err));
    KIT_OK(&kit, brc_store_version(kit.store, &v[1], &kit.err));
    ck_assert_uint_eq(v[0], v[1]);
    put(BRC_KIND_NODE, "1", 1);
    KIT_OK(&kit, brc_store_version(kit.store, &v[2], &kit.err));
    ck_assert_uint_ne(v[1], v[2]);
    store_kit_sql(&kit, "UPDATE ref SET message='x'");
    KIT_OK(&kit, brc_store_version(kit.store, &v[3], &kit.err));
    ck_assert_uint_ne(v[2], v[3]);
}

TEST(interrupted_is_interrupted)
{
    brc_oid id;
    KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
    KIT_OK(&kit, brc_store_put(kit.store, BRC_KIND_NODE, "1", 1, &id, &kit.err));
    brc_store_interrupt(kit.store);
    KIT_FAILS(&kit, BRC_EINTERRUPT, "as it was", brc_store_end(kit.store, 1, &kit.err));
    KIT_FAILS(&kit, BRC_EINTERRUPT, "as it was", brc_store_begin(kit.store, &kit.err));
    KIT_FAILS(&kit, BRC_EINTERRUPT, "as it was", brc_store_begin_read(kit.store, &kit.err));
    store_kit_reopen(&kit);
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM object"), 0);
}

/* ---- two at once ------------------------------------------------------------- */

LOOP(a_second_writer_waits_and_gives_up, 0, 2)
{
    store_kit other = kit;
    other.store = NULL;
    KIT_OK(&other, store_kit_try(&other, 0, _i == 0 ? -1 : 40));
    KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
    KIT_FAILS(&other, BRC_EBUSY, _i == 0 ? "(waited 0 s)" : "(waited 0.04 s)",
              brc_store_begin(other.store, &other.err));
    ck_assert_str_eq(other.err.source, "sqlite");
    KIT_OK(&other, brc_store_begin_read(other.store, &other.err)); /* reading it can */
    brc_store_end_read(other.store);
    KIT_OK(&kit, brc_store_end(kit.store, 1, &kit.err));
    KIT_OK(&other, brc_store_begin(other.store, &other.err));
    KIT_OK(&other, brc_store_end(other.store, 1, &other.err));
    brc_store_close(other.store);
}

TEST(a_writer_that_a_reader_keeps_from_committing_is_undone)
{
    store_kit reader = kit;
    brc_oid id;
    int has;
    store_kit_close(&kit);
    KIT_OK(&kit, store_kit_try(&kit, 0, -1));
    reader.store = NULL;
    KIT_OK(&reader, store_kit_try(&reader, 0, -1));
    KIT_OK(&reader, brc_store_begin_read(reader.store, &reader.err));
    KIT_OK(&reader, brc_ref_get(reader.store, "heads/main", &has, &id, &reader.err));
    KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
    KIT_OK(&kit, brc_store_put(kit.store, BRC_KIND_NODE, "1", 1, &id, &kit.err));
    KIT_FAILS(&kit, BRC_EBUSY, "in use by another", brc_store_end(kit.store, 1, &kit.err));
    GET_FAILS(BRC_KIND_NODE, &id, BRC_ECORRUPT, "is missing");
    brc_store_end_read(reader.store);
    brc_store_close(reader.store);
    put(BRC_KIND_NODE, "1", 1);
}

TEST(another_process_s_lock_is_waited_for)
{
    int ready[2], go[2];
    char byte = 0;
    ck_assert_int_eq(pipe(ready) + pipe(go), 0);
    store_kit_close(&kit);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        sqlite3 *db;
        int bad = sqlite3_open(kit.file, &db) != SQLITE_OK ||
                  sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL) != SQLITE_OK;
        bad |= write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1;
        usleep(30000);
        bad |= sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK;
        _exit(bad);
    }
    ck_assert_int_eq((int)read(ready[0], &byte, 1), 1);
    KIT_FAILS(&kit, BRC_EBUSY, "in use by another", store_kit_try(&kit, 0, -1));
    KIT_FAILS(&kit, BRC_EBUSY, "in use by another", store_kit_try(&kit, BRC_OPEN_READONLY, 20));
    ck_assert_int_eq((int)write(go[1], &byte, 1), 1);
    store_kit_open(&kit); /* waits up to 30 s */
    put(BRC_KIND_NODE, "1", 1);
    int status = 1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(go[i]);
    }
}
