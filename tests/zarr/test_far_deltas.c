/*
 * Differences whose chunks lie in a bucket: a chain is fetched in one round, from a server or from
 * the cache, before and after packs were put together, and what is damaged or missing is named.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../kit/fsck_kit.h"
#include "../kit/s3_server.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(far_deltas);

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "[" LITTLE ",{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}]"

/* Differences of one version are together shorter than what the backend reads along between two. */
enum { VERSIONS = 9, CHUNKS = 8, EACH_CHUNK = 1024, ALL = CHUNKS * EACH_CHUNK, DELAY_MS = 150 };

static scenario t;
static s3_server *server;
static char cache[128];
static int has_cache;
static int32_t values[VERSIONS][ALL];

/* ---- versions in a bucket -------------------------------- */

static void make_values(void)
{
    uint64_t random = 11;
    for (int i = 0; i < ALL; i++)
        values[0][i] = (int32_t)scenario_random(&random);
    for (int v = 1; v < VERSIONS; v++) {
        memcpy(values[v], values[v - 1], sizeof(values[v]));
        for (int i = 0; i < ALL; i += EACH_CHUNK / 8)
            values[v][i + (int)scenario_below(&random, EACH_CHUNK / 8)] += 1;
    }
}

static void open_far(uint32_t flags)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.credentials = scenario_give;
    opts.cache = has_cache ? cache : NULL;
    scenario_open(&t, &opts, flags);
}

/* A new handle: nothing that an earlier one has in memory helps. */
static void again(void)
{
    scenario_close(&t);
    open_far(0);
}

static void repack(uint32_t flags)
{
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    opts.flags = flags;
    OK(&t, brc_repack(t.repo, &opts, NULL, &t.err));
}

static uint64_t deltas(void)
{
    brc_stats out = BRC_STATS_INIT;
    OK(&t, brc_stat(t.repo, &out, &t.err));
    return out.deltas;
}

static void start(void)
{
    static const uint64_t shape = ALL, chunk = EACH_CHUNK;
    char backend[300];
    make_values();
    has_cache = 0;
    server = s3_server_start();
    scenario_folder(&t);
    snprintf(cache, sizeof(cache), "%s/cache.brc", t.dir);
    snprintf(backend, sizeof(backend),
             "{\"name\":\"s3\",\"configuration\":{\"endpoint\":\"%s\",\"bucket\":\"box\"}}",
             s3_server_endpoint(server));
    open_far(BRC_OPEN_CREATE);
    scenario_no_window(&t);
    brc_array_free(scenario_array(&t, "/a", "int32", 1, &shape, &chunk, NULL, ZSTD));
    scenario_set_backend(&t, t.session, "/a", backend);
    for (int v = 0; v < VERSIONS; v++) {
        scenario_write(&t, t.session, "/a", values[v], sizeof(values[v]));
        scenario_commit(&t, "one more");
    }
    repack(BRC_REPACK_DELTA);
    ck_assert_uint_eq(deltas(), (VERSIONS - 1) * CHUNKS);
    again();
}

static void stop(void)
{
    scenario_stop(&t);
    s3_server_stop(server);
}

static int get_version(int v)
{
    char rev[20];
    static int32_t got[ALL];
    snprintf(rev, sizeof(rev), "main~%d", VERSIONS - 1 - v);
    brc_session *s = scenario_session(&t, t.repo, rev, BRC_SESSION_AT);
    brc_array *a = scenario_array_at(&t, s, "/a");
    const int rc = brc_array_read(a, NULL, got, sizeof(got), &t.err);
    if (rc == BRC_OK)
        ck_assert_mem_eq(got, values[v], sizeof(got));
    brc_array_free(a);
    brc_session_free(s);
    return rc;
}

/* Reads a version, which must be right, and returns how many requests that took. */
static int read_version(int v)
{
    const int before = s3_server_requests(server);
    OK(&t, get_version(v));
    return s3_server_requests(server) - before;
}

static void check_all(void)
{
    for (int v = 0; v < VERSIONS; v++)
        read_version(v);
}

CASE("far deltas", .setup = start, .teardown = stop, .timeout = 120);

/* ---- rounds -------------------------------- */

/* Link by link this is a round for each of 8 chunks and each of 9 links. */
TEST(a_read_waits_once_for_all_chains)
{
    s3_server_delay(server, DELAY_MS);
    read_version(0);
    ck_assert_int_le(s3_server_rounds(server), 3); /* on a machine that is slow, too */
    s3_server_delay(server, 0);
    scenario_whole(&t);
}

/* A write of a part of a chunk reads its old content. */
TEST(so_does_a_write_that_needs_the_old_content)
{
    OK(&t, brc_ref_create(t.repo, "old", "main~8", NULL, 0, &t.err));
    brc_session *s = scenario_session(&t, t.repo, "old", BRC_SESSION_WRITE);
    s3_server_delay(server, DELAY_MS);
    scenario_put(&t, s, "/a", 3, -3);
    ck_assert_int_le(s3_server_rounds(server), 3); /* the last one is the new chunk's */
    s3_server_delay(server, 0);
    ck_assert_int_eq(scenario_number(&t, s, "/a", 3), -3);
    ck_assert_int_eq(scenario_number(&t, s, "/a", 4), values[0][4]);
    brc_session_free(s);
}

static const char *const lies[] = {
    "DELETE FROM delta",
    "UPDATE delta SET base=(SELECT min(id) FROM delta)",
    "UPDATE delta SET base=id",
    "UPDATE delta SET base=x'00112233445566778899aabbccddeeff'",
    "UPDATE delta SET base=7",
};

/* The stored bytes say what an object builds on, and the table only what to fetch along. */
EACH(a_table_that_lies_costs_time_and_nothing_else, lies)
{
    scenario_close(&t);
    scenario_sql(&t, lies[_i]);
    open_far(0);
    check_all();
}

TEST(a_server_that_stops_in_between_is_named)
{
    s3_server_code(server, "AccessDenied", "");
    for (int n = 0; n < 3; n++) {
        again();
        s3_server_fail(server, n, 1000, S3_STATUS + 303);
        const int rc = get_version(0);
        ck_assert(rc == BRC_EIO || (n > 0 && rc == BRC_OK));
        if (rc < 0)
            ck_assert_msg(strstr(t.err.message, "s3://box") && strstr(t.err.message, "right to"),
                          "%s", t.err.message);
        s3_server_fail(server, 0, 0, S3_FINE);
        check_all();
    }
}

/* ---- with a cache -------------------------------- */

TEST(chains_are_kept_and_not_asked_for_again)
{
    has_cache = 1;
    again();
    ck_assert_int_gt(read_version(0), 0);
    ck_assert_int_eq(read_version(0), 0);
    again();
    s3_server_fail(server, 0, 1000, S3_CLOSED);
    check_all(); /* the oldest version builds on all */
    s3_server_fail(server, 0, 0, S3_FINE);
    scenario_whole(&t);
}

/* Keys of the cache follow what is stored and not where. */
TEST(packs_that_are_put_together_are_in_the_cache_already)
{
    has_cache = 1;
    again();
    check_all();
    repack(0);
    scenario_collect_held(&t);
    again();
    s3_server_fail(server, 0, 1000, S3_CLOSED);
    check_all();
    s3_server_fail(server, 0, 0, S3_FINE);
    scenario_whole(&t);
}

TEST(a_damaged_cache_is_a_miss)
{
    struct stat at;
    has_cache = 1;
    again();
    check_all();
    scenario_close(&t);
    ck_assert_int_eq(stat(cache, &at), 0);
    FILE *f = fopen(cache, "r+");
    ck_assert_ptr_nonnull(f);
    for (long i = at.st_size / 4; i < at.st_size; i += 999) {
        fseek(f, i, SEEK_SET);
        fputc(0x55, f);
    }
    fclose(f);
    open_far(0);
    check_all();
}

/* A base that has become whole, or is encoded otherwise, is another entry. */
TEST(what_is_stored_again_is_not_taken_from_the_cache)
{
    has_cache = 1;
    again();
    check_all();
    repack(BRC_REPACK_WHOLE);
    ck_assert_uint_eq(deltas(), 0);
    again();
    check_all();
    repack(BRC_REPACK_DELTA);
    again();
    check_all();
    scenario_whole(&t);
}

/* ---- packs that were put together -------------------------------- */

static void join(void)
{
    const int before = s3_server_objects(server, "");
    repack(0);
    scenario_collect_held(&t);
    ck_assert_int_lt(s3_server_objects(server, ""), before);
    again();
}

TEST(joined_packs_have_the_differences)
{
    const uint64_t n = deltas();
    join();
    ck_assert_int_eq(s3_server_objects(server, ""), 1);
    ck_assert_uint_eq(deltas(), n);
    ck_assert_int_le(read_version(0), 2);
    check_all();
    scenario_whole(&t);
    scenario_collect_held(&t);
    check_all();
    ck_assert_int_eq(s3_server_objects(server, ""), 1);
}

/* Only the first version is left, and what its chunks build on goes without a trace. */
TEST(joined_packs_lose_what_is_expunged)
{
    join();
    OK(&t, brc_ref_create(t.repo, "first", "main~8", NULL, 0, &t.err));
    scenario_be_on(&t, "first");
    OK(&t, brc_ref_delete(t.repo, "main", BRC_DELETE_FORCE, &t.err));
    scenario_collect(&t, 0);
    static int32_t got[ALL];
    scenario_read(&t, t.session, "/a", got, sizeof(got));
    ck_assert_mem_eq(got, values[0], sizeof(got));
    ck_assert_uint_gt(deltas(), 0);
    scenario_collect(&t, BRC_GC_EXPUNGE);
    ck_assert_uint_eq(deltas(), 0);
    scenario_collect_held(&t);
    again();
    scenario_read(&t, t.session, "/a", got, sizeof(got));
    ck_assert_mem_eq(got, values[0], sizeof(got));
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM object WHERE kind=1"), CHUNKS);
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(DISTINCT place) FROM object WHERE"
                                           " backend<>0"),
                     s3_server_objects(server, ""));
    scenario_whole(&t);
}

typedef struct said {
    const char *pack;
    int n, names_base, names_pack;
} said;

static int hear(void *ctx, const brc_damage *damage)
{
    said *s = ctx;
    s->n++;
    s->names_base += strstr(damage->message, "is a difference from object") != NULL;
    s->names_pack += s->pack != NULL && strstr(damage->message, s->pack) != NULL;
    return 0;
}

/* A pack that is gone takes all that lies in it, and fsck says for each what it builds on. */
LOOP(a_pack_that_is_cut_off_or_missing_is_named, 0, 2)
{
    uint64_t checked;
    char key[700];
    said s = { .pack = key + 5 };
    join();
    snprintf(key, sizeof(key), "%s", s3_server_object(server, 0));
    s3_server_damage(server, key, _i == 0 ? 64 : -1);
    FAILS(&t, BRC_ECORRUPT, get_version(0));
    ck_assert_msg(strstr(t.err.message, key + 5) != NULL, "%s", t.err.message);
    int rc = brc_fsck(t.repo, 0, hear, NULL, &s, &checked, &t.err);
    ck_assert(rc >= 0 || rc == BRC_ECORRUPT);
    ck_assert_int_ge(s.n, VERSIONS * CHUNKS);
    ck_assert_int_eq(s.names_pack, s.n);
}

/* A base whose bytes are wrong damages all that builds on it. */
TEST(wrong_bytes_of_a_base_are_found)
{
    uint64_t checked;
    said s = { 0 };
    join();
    again();
    s3_server_fail(server, 0, 1000, S3_WRONG);
    FAILS(&t, BRC_ECORRUPT, get_version(0));
    s3_server_fail(server, 0, 0, S3_FINE);
    check_all();
    s3_server_damage(server, s3_server_object(server, 0), 0); /* a byte in the middle */
    int rc = brc_fsck(t.repo, 0, hear, NULL, &s, &checked, &t.err);
    ck_assert(rc >= 0 || rc == BRC_ECORRUPT);
    ck_assert_int_ge(s.n, 1);
    ck_assert_int_ge(s.names_base + 1, s.n);
}
