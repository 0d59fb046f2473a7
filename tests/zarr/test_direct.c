/* Direct reads: workers read chunks from the pages of the file, without SQLite and without a lock.
 * Whatever the pages hold, and whatever others do meanwhile, elements are right. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/store/db.h"
#include "../../src/store/direct.h"
#include "../../src/work/session.h"
#include "../kit/effort.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(direct);

#define PLAIN "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]"
enum { PAGE = 16384 };

static scenario t;

static uint64_t effort(uint64_t test, uint64_t many)
{
    return effort_is_long() ? many : test;
}

static int64_t sql_number(const char *sql)
{
    brc_buf text = BRC_BUF_INIT;
    scenario_rows(&t, sql, &text);
    const int64_t n = strtoll((const char *)text.data, NULL, 10);
    brc_buf_dispose(&text);
    return n;
}

static void start(void)
{
    scenario_start(&t);
}

static void stop(void)
{
    scenario_stop(&t);
}

/* Noise, which no codec makes smaller; a value says which version it is of. */
static uint64_t *noise(size_t n, uint64_t version)
{
    uint64_t random = version * 977 + 1, *out = malloc(n * sizeof(*out));
    ck_assert_ptr_nonnull(out);
    for (size_t i = 0; i < n; i++)
        out[i] = store_kit_random(&random);
    return out;
}

static brc_array *noisy(const char *path, uint64_t chunks, uint64_t chunk, uint64_t version)
{
    uint64_t shape = chunks * chunk, *data = noise((size_t)shape, version);
    brc_array *a = scenario_array(&t, path, "uint64", 1, &shape, &chunk, "0", PLAIN);
    OK(&t, brc_array_write(a, NULL, data, (size_t)shape * 8, &t.err));
    free(data);
    return a;
}

static void must_have(brc_array *a, uint64_t n, uint64_t version)
{
    uint64_t *want = noise((size_t)n, version), *got = malloc((size_t)n * 8);
    ck_assert_ptr_nonnull(got);
    OK(&t, brc_array_read(a, NULL, got, (size_t)n * 8, &t.err));
    ck_assert_mem_eq(got, want, (size_t)n * 8);
    free(got);
    free(want);
}

static void reopen(void)
{
    scenario_close(&t);
    scenario_open(&t, NULL, 0);
}

CASE("direct", .setup = start, .teardown = stop, .timeout = 120);

/* Elements of a chunk, which is stored alone in a row, or with others. */
static const uint64_t lengths[] = {4096, 4200, 5000, 8191, 16384, 65536, 131072 + 3, 700000};

EACH(chunks_of_every_length_are_read_from_their_pages, lengths)
{
    const uint64_t n = lengths[_i], chunks = 9;
    brc_array *a = noisy("/a", chunks, n, 1);
    must_have(a, chunks * n, 1);
    ck_assert_uint_eq(t.repo->store->direct.good, chunks);
    brc_array_free(a);
    scenario_commit(&t, "noise");
    reopen();
    a = scenario_array_at(&t, t.session, "/a");
    for (int i = 1; i <= 3; i++) {
        must_have(a, chunks * n, 1);
        ck_assert_uint_eq(t.repo->store->direct.good, (uint64_t)i * chunks);
    }
    ck_assert_uint_eq(t.repo->store->direct.bad, 0);
    brc_array_free(a);
}

TEST(small_chunks_and_logs_are_read_by_sqlite)
{
    brc_array *a = noisy("/small", 20, 4000, 1), *b = noisy("/b", 20, 8000, 2);
    must_have(a, 20 * 4000, 1);
    ck_assert_uint_eq(t.repo->store->direct.good, 0);
    must_have(b, 20 * 8000, 2);
    ck_assert_uint_eq(t.repo->store->direct.good, 20);
    OK(&t, brc_config_set(t.repo, "journal", "wal", &t.err));
    brc_array *c = noisy("/c", 20, 8000, 3);
    must_have(b, 20 * 8000, 2);
    must_have(c, 20 * 8000, 3);
    ck_assert_uint_eq(t.repo->store->direct.good, 20);
    ck_assert_uint_eq(t.repo->store->direct.bad, 0);
    brc_array_free(a);
    brc_array_free(b);
    brc_array_free(c);
}

/* Pages that were free are used again in any order: then SQLite reads them, and soon is asked at
 * once. */
TEST(pages_that_do_not_follow_each_other_are_read_by_sqlite)
{
    enum { N = 40, LEN = 8000 };
    brc_array *keep[N];
    char path[32];
    OK(&t, brc_config_set(t.repo, "window", "0", &t.err));
    for (int i = 0; i < 2 * N; i++) { /* every other one goes */
        snprintf(path, sizeof(path), "/n%d", i);
        brc_array *a = noisy(path, 1, LEN, (uint64_t)i);
        if (i % 2 == 0)
            keep[i / 2] = a;
        else
            brc_array_free(a);
    }
    for (int i = 1; i < 2 * N; i += 2) {
        snprintf(path, sizeof(path), "/n%d", i);
        OK(&t, brc_node_remove(t.session, path, &t.err));
    }
    OK(&t, brc_gc(t.repo, NULL, NULL, &t.err));
    brc_array *big = noisy("/big", 10, 20000, 99);
    for (int round = 0; round < 4; round++) {
        must_have(big, 10 * 20000, 99);
        for (int i = 0; i < N; i++)
            must_have(keep[i], LEN, (uint64_t)i * 2);
    }
    ck_assert_uint_gt(t.repo->store->direct.bad, 0);
    ck_assert_uint_le(t.repo->store->direct.bad, 8 + t.repo->store->direct.good / 4 + 10);
    for (int i = 0; i < N; i++)
        brc_array_free(keep[i]);
    brc_array_free(big);
}

/* ---- damage -------------------------------- */

static void objects_of(brc_object *out, size_t n)
{
    sqlite3_stmt *st;
    brc_store *store = t.repo->store;
    brc_object *each[64];
    OK(&t, brc_store_begin_read(store, &t.err));
    OK(&t, brc_stmt(store, "SELECT id FROM object WHERE kind=1 AND stored>=32768", &st, &t.err));
    for (size_t i = 0; i < n; i++) {
        ck_assert_int_eq(brc_step(store, st, &t.err), 1);
        memset(&out[i], 0, sizeof(out[i]));
        OK(&t, brc_column_id(store, st, 0, &out[i].id, &t.err));
        each[i] = &out[i];
    }
    sqlite3_reset(st);
    OK(&t, brc_objects_find(store, each, n, &t.err));
    brc_store_end_read(store);
}

static void at_page(int fd, uint64_t number, uint8_t *page, int writes)
{
    const off_t at = (off_t)((number - 1) * PAGE);
    ck_assert_int_eq(writes ? pwrite(fd, page, PAGE, at) : pread(fd, page, PAGE, at), PAGE);
}

/* Pages of the tree are believed as little as those of chunks: a spot may be wrong, and then the
 * bytes there are not the object. */
LOOP(damaged_pages_of_the_tree_are_no_danger, 0, 4)
{
    enum { N = 24 };
    brc_object objects[N];
    uint64_t random = (uint64_t)_i + 7, found = 0, right = 0;
    uint8_t *into = malloc(1 << 20), page[PAGE], spoiled[PAGE];
    brc_array_free(noisy("/a", N, 8000, 1));
    brc_array_free(noisy("/small", 6000, 300, 2)); /* rows enough for an interior page */
    scenario_commit(&t, "noise");
    objects_of(objects, N);
    brc_store *store = t.repo->store;
    const int fd = open(t.file, O_RDWR);
    ck_assert(fd >= 0 && into != NULL);
    const int64_t root = sql_number("SELECT rootpage FROM sqlite_master WHERE name='blob'");
    const int64_t pages = sql_number("PRAGMA page_count");
    const uint64_t rounds = effort(400, 4000);
    for (uint64_t i = 0; i < rounds; i++) {
        /* the root, or a page that is a leaf of a table */
        const uint64_t any = 2 + store_kit_random(&random) % ((uint64_t)pages - 1);
        const uint64_t number = i % 3 == 0 ? (uint64_t)root : any;
        uint8_t counter[4];
        at_page(fd, number, page, 0);
        if (page[0] != 13 && page[0] != 5)
            continue;
        memcpy(spoiled, page, PAGE);
        for (uint64_t flips = 1 + store_kit_random(&random) % 6; flips > 0; flips--) {
            const uint64_t r = store_kit_random(&random);
            spoiled[r % 2 == 0 ? r / 2 % 64 : r / 2 % PAGE] = (uint8_t)(r >> 40);
        }
        at_page(fd, number, spoiled, 1);
        ck_assert_int_eq(pread(fd, counter, 4, 24), 4);
        counter[3]++; /* others have changed the file */
        ck_assert_int_eq(pwrite(fd, counter, 4, 24), 4);
        for (int k = 0; k < N; k++) {
            brc_spot spot;
            if (!brc_direct_find(store, &objects[k], &spot))
                continue;
            found++;
            if (brc_direct_read(store, &objects[k], &spot, into)) {
                right++;
                ck_assert_int_eq(brc_object_verify(&objects[k], into, NULL), BRC_OK);
            }
        }
        at_page(fd, number, page, 1);
    }
    ck_assert_uint_gt(found, right); /* some were wrong, */
    ck_assert_uint_gt(right, 0);     /* and some right   */
    close(fd);
    free(into);
}

/* ---- others -------------------------------- */

static atomic_int is_over;

/* Replaces all chunks again and again, and removes those of before. */
static void *replace_all(void *ctx)
{
    breccia *repo = ctx;
    brc_error err = BRC_ERROR_INIT;
    brc_session *s;
    brc_array *a;
    int rc = brc_session_open(&s, repo, "main", BRC_SESSION_WRITE, &err);
    for (uint64_t version = 2; rc == BRC_OK && version < effort(14, 100); version++) {
        uint64_t *data = noise(12 * 40000, version);
        rc = brc_array_open(&a, s, "/a", &err);
        if (rc == BRC_OK) {
            rc = brc_array_write(a, NULL, data, 12 * 40000 * 8, &err);
            brc_array_free(a);
        }
        free(data);
        if (rc == BRC_OK)
            rc = brc_session_discard(s, &err); /* chunks that nobody has any more */
        data = noise(12 * 40000, version);
        if (rc == BRC_OK)
            rc = brc_array_open(&a, s, "/a", &err);
        if (rc == BRC_OK) {
            rc = brc_array_write(a, NULL, data, 12 * 40000 * 8, &err);
            brc_array_free(a);
        }
        free(data);
        if (rc == BRC_OK)
            rc = brc_gc(repo, NULL, NULL, &err);
    }
    if (rc < 0)
        fprintf(stderr, "%s\n", err.message);
    brc_session_free(s);
    atomic_store(&is_over, 1);
    return rc == BRC_OK ? NULL : ctx;
}

TEST(readers_see_one_version_while_others_replace_and_collect)
{
    enum { LEN = 12 * 40000 };
    breccia *other;
    pthread_t thread;
    void *failed;
    uint64_t rounds = 0, *got = malloc(LEN * 8);
    OK(&t, brc_config_set(t.repo, "window", "0", &t.err));
    brc_array_free(noisy("/a", 12, 40000, 1));
    scenario_commit(&t, "noise");
    OK(&t, brc_reopen(&other, t.repo, &t.err));
    ck_assert_ptr_nonnull(got);
    atomic_store(&is_over, 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, replace_all, other), 0);
    while (!atomic_load(&is_over)) {
        brc_array *a;
        const int rc = brc_array_open(&a, t.session, "/a", &t.err);
        if (rc == BRC_ENOTFOUND) /* between the discard and the write */
            continue;
        OK(&t, rc);
        const int read = brc_array_read(a, NULL, got, LEN * 8, &t.err);
        brc_array_free(a);
        if (read == BRC_ENOTFOUND || read == BRC_ESTALE)
            continue;
        OK(&t, read);
        rounds++;
        int is_known = 0;
        for (uint64_t version = 1; version < effort(14, 100) && !is_known; version++) {
            uint64_t random = version * 977 + 1;
            if (got[0] != store_kit_random(&random))
                continue;
            uint64_t *want = noise(LEN, version);
            ck_assert_mem_eq(got, want, LEN * 8);
            free(want);
            is_known = 1;
        }
        ck_assert_int_eq(is_known, 1);
    }
    pthread_join(thread, &failed);
    ck_assert_ptr_null(failed);
    ck_assert_uint_gt(rounds, 2);
    ck_assert_uint_gt(t.repo->store->direct.good, 0);
    brc_free(other);
    free(got);
}
