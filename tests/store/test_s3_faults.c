/*
 * The server of a bucket fails at each request in turn, once or from then on, while a repository is
 * committed to, read, checked, collected and repacked: nothing is lost, nothing is wrong, the
 * sentence names place and remedy, and the call can be made again. (Kinds of faults that only
 * requests for bytes meet are in suite s3.)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../kit/effort.h"
#include "../kit/fsck_kit.h"
#include "../kit/s3_server.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(s3_faults);

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "[" LITTLE ",{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}]"

enum { VERSIONS = 6, EACH_CHUNK = 256, ALL = 4 * EACH_CHUNK };

static scenario t;
static s3_server *server;
static int32_t values[VERSIONS][ALL];
static char backend[300], other[300];

/* ---- a repository with versions, differences and garbage -------------------------------- */

static void open_far(uint32_t flags)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.credentials = scenario_give;
    scenario_open(&t, &opts, flags);
}

static int repack_to(uint32_t flags, const char *to)
{
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    opts.flags = flags;
    opts.backend_json = to;
    return brc_repack(t.repo, &opts, NULL, &t.err);
}

static void make_version(int v)
{
    uint64_t random = 5 + (uint64_t)v;
    char tag[16];
    for (int i = 0; i < ALL; i++)
        values[v][i] = v == 0 ? (int32_t)scenario_random(&random) : values[v - 1][i];
    for (int i = 0; v > 0 && i < ALL; i += EACH_CHUNK / 4)
        values[v][i + (int)scenario_below(&random, EACH_CHUNK / 4)] += 1;
    scenario_write(&t, t.session, "/a", values[v], sizeof(values[v]));
    scenario_commit(&t, "one more");
    snprintf(tag, sizeof(tag), "v%d", v);
    OK(&t, brc_ref_create(t.repo, tag, "main", NULL, BRC_REF_TAG, &t.err));
}

static uint8_t *kept_file;
static size_t kept_len;

static void keep(void)
{
    scenario_close(&t);
    FILE *f = fopen(t.file, "rb");
    ck_assert_ptr_nonnull(f);
    fseek(f, 0, SEEK_END);
    kept_len = (size_t)ftell(f);
    rewind(f);
    kept_file = malloc(kept_len);
    ck_assert_uint_eq(fread(kept_file, 1, kept_len, f), kept_len);
    fclose(f);
    s3_server_keep(server);
}

/* Makes file and bucket what they were. The file stays the same one: a bucket knows its writer by
 * it. */
static void start_anew(void)
{
    char beside[120];
    static const char *const ends[] = { "-journal", "-wal", "-shm" };
    if (t.repo != NULL)
        scenario_close(&t);
    for (int i = 0; i < 3; i++) {
        snprintf(beside, sizeof(beside), "%s%s", t.file, ends[i]);
        unlink(beside);
    }
    FILE *f = fopen(t.file, "r+b");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(kept_file, 1, kept_len, f), kept_len);
    fclose(f);
    ck_assert_int_eq(truncate(t.file, (off_t)kept_len), 0);
    s3_server_restore(server);
    open_far(0);
}

static void start(void)
{
    static const uint64_t shape = ALL, chunk = EACH_CHUNK;
    static const char text[] = "{\"name\":\"s3\",\"configuration\":{\"endpoint\":\"%s\",\"bucket\":"
                               "\"box\",\"prefix\":\"%s\"}}";
    server = s3_server_start();
    scenario_folder(&t);
    snprintf(backend, sizeof(backend), text, s3_server_endpoint(server), "one");
    snprintf(other, sizeof(other), text, s3_server_endpoint(server), "two");
    open_far(BRC_OPEN_CREATE);
    scenario_no_window(&t);
    brc_array_free(scenario_array(&t, "/a", "int32", 1, &shape, &chunk, NULL, ZSTD));
    scenario_set_backend(&t, t.session, "/a", backend);
    for (int v = 0; v < VERSIONS - 2; v++)
        make_version(v);
    OK(&t, repack_to(BRC_REPACK_DELTA, NULL));
    for (int v = VERSIONS - 2; v < VERSIONS; v++)
        make_version(v);
    scenario_put(&t, t.session, "/a", 7, 70); /* garbage, after the session is discarded */
    OK(&t, brc_session_discard(t.session, &t.err));
    keep();
    start_anew();
}

static void stop(void)
{
    scenario_stop(&t);
    s3_server_stop(server);
    free(kept_file);
}

static int read_versions(void)
{
    static int32_t got[ALL];
    int rc = BRC_OK;
    for (int v = 0; v < VERSIONS && rc == BRC_OK; v++) {
        char tag[16];
        snprintf(tag, sizeof(tag), "v%d", v);
        brc_session *s = scenario_session(&t, t.repo, tag, BRC_SESSION_AT);
        brc_array *a = scenario_array_at(&t, s, "/a");
        rc = brc_array_read(a, NULL, got, sizeof(got), &t.err);
        if (rc == BRC_OK)
            ck_assert_mem_eq(got, values[v], sizeof(got));
        brc_array_free(a);
        brc_session_free(s);
    }
    return rc;
}

/* ---- what is done -------------------------------- */

static int act_commit(void)
{
    const int32_t value = 4711;
    brc_sel sel = BRC_SEL_INIT;
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    OK(&t, brc_sel_parse(&sel, a, "[5:600:300]", &t.err));
    int rc = brc_array_fill(a, &sel, &value, &t.err);
    brc_array_free(a);
    if (rc == BRC_OK && !scenario_clean(&t))
        rc = scenario_commit_of(&t, t.session, "changed", NULL);
    return rc;
}

static int act_collect(void)
{
    int rc = brc_gc(t.repo, NULL, NULL, &t.err);
    if (rc < 0)
        return rc;
    scenario_sql(&t,
                 "UPDATE removed SET due_us=1, checksum=row_sum('removed', backend, place, name, "
                 "bytes, total, state, since_us, 1) WHERE due_us>0");
    return brc_gc(t.repo, NULL, NULL, &t.err);
}

static int act_join(void)
{
    return repack_to(0, NULL);
}

static int act_make_deltas(void)
{
    return repack_to(BRC_REPACK_DELTA, NULL);
}

static int act_make_whole(void)
{
    return repack_to(BRC_REPACK_WHOLE, NULL);
}

static int act_move_in(void)
{
    return repack_to(0, "inline");
}

static int act_move_over(void)
{
    return repack_to(0, other);
}

static const struct {
    const char *name;
    int (*act)(void);
} acts[] = {
    { "commit", act_commit },         { "read", read_versions },
    { "gc", act_collect },            { "repack", act_join },
    { "repack --delta", act_make_deltas }, { "repack --depth 0", act_make_whole },
    { "repack --backend inline", act_move_in }, { "repack --backend s3", act_move_over },
};
enum { ACTS = sizeof(acts) / sizeof(acts[0]) };

/* Faults that stay until the call fails. A word of the place and one of the remedy must be in the
 * sentence. */
static const struct {
    int how;
    const char *code;
    int most; /* so many faulty requests come; then the server is fine */
    const char *place, *remedy;
} faults[] = {
    { S3_CLOSED, "", 1, NULL, NULL },
    { S3_LOST, "", 1, NULL, NULL },
    { S3_CUT, "", 1, NULL, NULL },
    { S3_LONG, "", 1, NULL, NULL },
    { S3_OTHER, "", 1, NULL, NULL },
    { S3_STATUS + 400, "", 1, NULL, NULL },
    { S3_STATUS + 403, "SlowDown", 1, NULL, NULL },
    { S3_CLOSED, "", 1000, "s3://box", "try again" },
    { S3_CUT, "", 1000, "s3://box", "try again" },
    { S3_STATUS + 303, "AccessDenied", 1000, "s3://box", "right to" },
    { S3_STATUS + 407, "", 1000, "s3://box", "full" },
    { S3_STATUS + 304, "NoSuchBucket", 1000, "s3://box", "make it" },
    { S3_WHOLE, "", 1000, "s3://box", "range" },
    { S3_OTHER, "", 1000, "s3://box", "range" },
    { S3_WRONG, "", 1000, "", "damaged" },
};
enum { FAULTS = sizeof(faults) / sizeof(faults[0]) };

/* ---- what holds -------------------------------- */

CASE("each request in turn", .setup = start, .teardown = stop, .timeout = UNTIMED);

/* All versions are there, each pack has its reason, and the act succeeds. */
static void go_on(int act)
{
    s3_server_fail(server, 0, 0, S3_FINE);
    scenario_close(&t);
    open_far(0);
    OK(&t, read_versions());
    scenario_whole(&t);
    OK(&t, acts[act].act());
    scenario_close(&t);
    open_far(0);
    OK(&t, read_versions());
    scenario_collect_held(&t);
    OK(&t, read_versions());
    scenario_whole(&t);
}

static void check_sentence(int act, int fault, int n)
{
    const char *said = t.err.message, *remedy = faults[fault].remedy;
    if (acts[act].act == act_collect && strstr(said, "is not a list") != NULL)
        remedy = "the next gc tries again";
    ck_assert_msg(strstr(said, faults[fault].place) && strstr(said, remedy),
                  "%s, request %d: not \"%s\" and \"%s\": %s", acts[act].name, n,
                  faults[fault].place, remedy, said);
}

/* The client tries again for seconds. */
static int is_slow(int fault)
{
    const int how = faults[fault].how;
    return faults[fault].most > 1 && (how == S3_CLOSED || how == S3_CUT || how == S3_OTHER);
}

/* Each act meets a third of the faults; in the long form it meets all, a slow one at two of its
 * requests. A slow one is for the first three acts, because it waits seven seconds at each. */
static int is_left_out(int act, int fault)
{
    return (is_slow(fault) && act > 2) || (!effort_is_long() && act % 3 != fault % 3);
}

LOOP(nothing_is_lost_and_the_sentence_says_what_to_do, 0, ACTS * FAULTS)
{
    const int act = _i / FAULTS, fault = _i % FAULTS, before = s3_server_requests(server);
    int step = (int)effort_step(8, 15), failed = 0;
    if (is_left_out(act, fault))
        return;
    OK(&t, acts[act].act());
    const int requests = s3_server_requests(server) - before;
    ck_assert_int_ge(requests, 1);
    if (is_slow(fault))
        step = effort_is_long() ? (requests + 1) / 2 : requests;
    for (int n = _i % (step < requests ? step : requests); n < requests; n += step) {
        start_anew();
        s3_server_code(server, faults[fault].code, "");
        s3_server_fail(server, n, faults[fault].most, faults[fault].how);
        const int rc = acts[act].act();
        failed += rc < 0;
        if (faults[fault].remedy == NULL)
            ck_assert_msg(rc == BRC_OK, "%s, request %d: %s", acts[act].name, n, t.err.message);
        else if (rc < 0)
            check_sentence(act, fault, n);
        go_on(act);
    }
    if (faults[fault].how == S3_STATUS + 303)
        ck_assert_int_ge(failed, 1);
}
