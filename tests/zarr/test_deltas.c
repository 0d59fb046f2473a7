/*
 * Chunks of older versions are stored as differences from newer ones: every version reads as
 * before, whatever reads it, and whatever removes, moves, kills, damages or forges what it builds
 * on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/hash.h"
#include "../../src/codec/delta_frame.h"
#include "../../src/store/bases.h"
#include "../kit/dirs_kit.h"
#include "../kit/effort.h"
#include "../kit/fault_vfs.h"
#include "../kit/fsck_kit.h"
#include "../kit/plugin_kit.h"
#include "../kit/process_kit.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(deltas);

#define PACK "{\"name\":\"pack\"}"
#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "[" LITTLE ",{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}]"

/* /a and /b have 4 chunks of 1024 random numbers, of which a few change in each version. */
enum { VERSIONS = 12, EACH_CHUNK = 1024, ALL = 4 * EACH_CHUNK, OLDER = 4 * (VERSIONS - 1) };

static dirs d;
static int32_t values[VERSIONS][ALL];

static void make_values(void)
{
    uint64_t random = 7;
    for (int i = 0; i < ALL; i++)
        values[0][i] = (int32_t)scenario_random(&random);
    for (int v = 1; v < VERSIONS; v++) {
        memcpy(values[v], values[v - 1], sizeof(values[v]));
        for (int i = 0; i < ALL; i += EACH_CHUNK / 8)
            values[v][i + (int)scenario_below(&random, EACH_CHUNK / 8)] += 1;
    }
}

static void commit_version(const char *path, int v)
{
    scenario_write(&d.t, d.t.session, path, values[v], sizeof(values[v]));
    scenario_commit(&d.t, "one more");
}

static void make_array(const char *path)
{
    const uint64_t shape[] = {ALL}, chunk[] = {EACH_CHUNK};
    brc_array_free(scenario_array(&d.t, path, "int32", 1, shape, chunk, NULL, ZSTD));
}

static void deltas_start(void)
{
    make_values();
    dirs_start(&d);
    scenario_no_window(&d.t);
    make_array("/a");
    for (int v = 0; v < VERSIONS; v++)
        commit_version("/a", v);
}

static void deltas_stop(void)
{
    dirs_stop(&d);
}

/* The version `back` commits before the tip of `branch` has these values. */
static void check_version(const char *branch, int back, const char *path, int v)
{
    char rev[64];
    static int32_t got[ALL];
    snprintf(rev, sizeof(rev), "%s~%d", branch, back);
    brc_session *s = scenario_session(&d.t, d.t.repo, rev, BRC_SESSION_AT);
    scenario_read(&d.t, s, path, got, sizeof(got));
    ck_assert_mem_eq(got, values[v], sizeof(got));
    brc_session_free(s);
}

static void check_all(void)
{
    for (int v = 0; v < VERSIONS; v++)
        check_version("main", VERSIONS - 1 - v, "/a", v);
}

static int repack_call(uint32_t flags, uint32_t depth, const char *path, brc_repack_report *report)
{
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    opts.flags = flags;
    opts.delta_depth = depth;
    opts.path = path;
    return brc_repack(d.t.repo, &opts, report, &d.t.err);
}

static brc_repack_report deltas(uint32_t flags, uint32_t depth)
{
    brc_repack_report report = BRC_REPACK_REPORT_INIT;
    OK(&d.t, repack_call(flags, depth, NULL, &report));
    return report;
}

static void move_to(const char *backend, const char *codecs)
{
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    opts.backend_json = backend;
    opts.codecs_json = codecs;
    OK(&d.t, brc_repack(d.t.repo, &opts, NULL, &d.t.err));
}

static brc_stats stats(void)
{
    brc_stats out = BRC_STATS_INIT;
    OK(&d.t, brc_stat(d.t.repo, &out, &d.t.err));
    return out;
}

static int64_t rows_of_deltas(void)
{
    return scenario_ask(&d.t, "SELECT count(*) FROM sqlite_schema WHERE name='delta'") == 0
               ? 0
               : scenario_ask(&d.t, "SELECT count(*) FROM delta");
}

static void check_whole(void)
{
    const finding f = dirs_fsck(&d);
    ck_assert_msg(f.n == 0, "%s", f.text);
}

static void new_branch(const char *name, const char *rev)
{
    OK(&d.t, brc_ref_create(d.t.repo, name, rev, NULL, 0, &d.t.err));
}

CASE("deltas", .setup = deltas_start, .teardown = deltas_stop);

/* ---- storing -------------------------------- */

TEST(the_encoding_has_the_digest_that_the_code_says)
{
    ck_assert_uint_eq(brc_hash_encoding(BRC_DELTA_SPEC), BRC_DELTA_DIGEST);
}

TEST(older_versions_become_differences_and_read_the_same)
{
    const brc_oid tip = scenario_id(&d.t, "main");
    const brc_repack_report told = deltas(BRC_REPACK_DELTA | BRC_REPACK_DRY_RUN, 0);
    ck_assert_int_eq((int)rows_of_deltas(), 0);
    const brc_repack_report report = deltas(BRC_REPACK_DELTA, 0);
    ck_assert_uint_eq(report.objects, told.objects);
    ck_assert_uint_eq(report.bytes_before, told.bytes_before);
    ck_assert_uint_lt(report.bytes_after * 4, report.bytes_before);
    ck_assert_uint_lt(report.bytes_after, told.bytes_after * 2);
    ck_assert_uint_lt(told.bytes_after, report.bytes_after * 2);
    /* of 11 older versions, one is 9 differences away from the newest */
    ck_assert_uint_eq(report.objects, OLDER - 4);
    ck_assert_int_eq((int)rows_of_deltas(), OLDER - 4);
    ck_assert_uint_eq(stats().deltas, OLDER - 4);
    ck_assert_uint_eq(stats().delta_depth, 8);
    check_all();
    check_whole();
    ck_assert(scenario_same(tip, scenario_id(&d.t, "main")));
    dirs_reopen(&d);
    check_all();
    scenario_collect(&d.t, 0);
    check_all();
    check_whole();
}

TEST(a_second_call_does_nothing)
{
    deltas(BRC_REPACK_DELTA, 0);
    const brc_repack_report again = deltas(BRC_REPACK_DELTA, 0);
    ck_assert_uint_eq(again.objects, 0);
    ck_assert_uint_eq(deltas(BRC_REPACK_DELTA | BRC_REPACK_DRY_RUN, 0).unreadable, 0);
    check_all();
}

/* The chunks of the last version are needed most. */
TEST(the_newest_stays_whole)
{
    deltas(BRC_REPACK_DELTA, 0);
    ck_assert_int_eq((int)scenario_ask(&d.t, "SELECT count(*) FROM delta WHERE base NOT IN (SELECT"
                                             " id FROM delta)"),
                     8); /* 4 newest chunks, and 4 that are too deep */
    new_branch("old", "main~4");
    deltas(BRC_REPACK_DELTA, 0);
    check_version("old", 0, "/a", VERSIONS - 5);
    check_all();
    ck_assert_uint_eq(deltas(BRC_REPACK_DELTA, 0).objects, 0);
    ck_assert_int_eq((int)scenario_ask(&d.t, "SELECT count(*) FROM delta WHERE base NOT IN (SELECT"
                                             " id FROM delta)"),
                     8); /* 4 newest chunks of each branch; no others are too deep now */
}

/* Every run lets newer versions be built upon, and none is deeper than it may be. */
LOOP(after_each_commit, 1, 4)
{
    dirs_stop(&d);
    dirs_start(&d);
    scenario_no_window(&d.t);
    make_array("/a");
    for (int v = 0; v < VERSIONS; v++) {
        commit_version("/a", v);
        deltas(BRC_REPACK_DELTA, (uint32_t)_i);
        ck_assert_uint_le(stats().delta_depth, (uint64_t)_i);
    }
    check_all();
    check_whole();
    ck_assert_uint_ge(stats().deltas, 4 * (VERSIONS / 2 - 1));
}

TEST(a_smaller_depth_is_kept_too)
{
    deltas(BRC_REPACK_DELTA, 0);
    ck_assert_uint_gt(deltas(BRC_REPACK_DELTA, 3).objects, 0);
    ck_assert_uint_eq(stats().delta_depth, 3);
    check_all();
    ck_assert_uint_eq(deltas(BRC_REPACK_DELTA, 3).objects, 0);
    const uint64_t n = stats().deltas;
    const brc_repack_report told = deltas(BRC_REPACK_WHOLE | BRC_REPACK_DRY_RUN, 0);
    const brc_repack_report report = deltas(BRC_REPACK_WHOLE, 0);
    ck_assert_uint_eq(report.objects, n);
    ck_assert_uint_eq(told.objects, n);
    ck_assert_uint_eq(stats().deltas, 0);
    ck_assert_int_eq((int)rows_of_deltas(), 0);
    check_all();
    check_whole();
}

TEST(an_array_of_its_own)
{
    make_array("/b");
    for (int v = 0; v < 3; v++)
        commit_version("/b", VERSIONS - 1 - v);
    brc_repack_report report = BRC_REPACK_REPORT_INIT;
    OK(&d.t, repack_call(BRC_REPACK_DELTA, 0, "/b", &report));
    /* both arrays share these objects, and the last version of /a has the newest of them */
    ck_assert_uint_eq(report.objects, 4);
    for (int v = 0; v < VERSIONS; v++)
        check_version("main", VERSIONS - 1 - v + 3, "/a", v);
    for (int v = 0; v < 3; v++)
        check_version("main", 2 - v, "/b", VERSIONS - 1 - v);
    FAILS(&d.t, BRC_ENOTFOUND, repack_call(BRC_REPACK_DELTA, 0, "/none", NULL));
    check_whole();
}

/* A version has the content of an earlier one again. */
TEST(what_comes_again_makes_no_circle)
{
    for (int v = VERSIONS - 1; v-- > 0;)
        commit_version("/a", v);
    deltas(BRC_REPACK_DELTA, 0);
    for (int v = 0; v < VERSIONS; v++) {
        check_version("main", 2 * (VERSIONS - 1) - v, "/a", v);
        check_version("main", v, "/a", v);
    }
    check_whole();
    ck_assert_uint_gt(stats().deltas, 0);
}

TEST(branches_share_objects)
{
    new_branch("side", "main~6");
    scenario_be_on(&d.t, "side");
    scenario_fill(&d.t, d.t.session, "/a", "[5:6]", &(int32_t){-5});
    scenario_commit(&d.t, "on the side");
    deltas(BRC_REPACK_DELTA, 0);
    check_all();
    check_version("side", 1, "/a", VERSIONS - 7);
    ck_assert_int_eq(scenario_number(&d.t, d.t.session, "/a", 5), -5);
    check_whole();
}

static const struct {
    uint32_t flags, depth;
    const char *backend, *words;
} refused[] = {
    { BRC_REPACK_DELTA | BRC_REPACK_WHOLE, 0, NULL, "not both" },
    { BRC_REPACK_DELTA, 65, NULL, "64 is the most" },
    { 0, 2, NULL, "a depth belongs to chunks" },
    { BRC_REPACK_DELTA, 0, "inline", "in a call of their own" },
};

EACH(options_that_do_not_go_together, refused)
{
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    opts.flags = refused[_i].flags;
    opts.delta_depth = refused[_i].depth;
    opts.backend_json = refused[_i].backend;
    FAILS(&d.t, BRC_EINVAL, brc_repack(d.t.repo, &opts, NULL, &d.t.err));
    dirs_say(&d, refused[_i].words);
}

/* Numbers that have nothing to do with those before gain nothing. */
TEST(what_gains_nothing_stays)
{
    dirs_stop(&d);
    dirs_start(&d);
    make_array("/a");
    uint64_t random = 3;
    static int32_t other[ALL];
    for (int v = 0; v < 3; v++) {
        model_bytes(&random, other, sizeof(other));
        scenario_write(&d.t, d.t.session, "/a", other, sizeof(other));
        scenario_commit(&d.t, "all new");
    }
    ck_assert_uint_eq(deltas(BRC_REPACK_DELTA, 0).objects, 0);
    ck_assert_int_eq((int)rows_of_deltas(), 0);
    dirs_stop(&d);
    deltas_start();
}

/* ---- others that read -------------------------------- */

TEST(every_reader_decodes_them)
{
    deltas(BRC_REPACK_DELTA, 0);
    OK(&d.t, brc_config_set(d.t.repo, "verify", "full", &d.t.err));
    check_all();
    /* a part of a chunk changes: its old content is read by the write */
    new_branch("part", "main~7");
    scenario_be_on(&d.t, "part");
    scenario_fill(&d.t, d.t.session, "/a", "[3:4]", &(int32_t){-3});
    ck_assert_int_eq(scenario_number(&d.t, d.t.session, "/a", 3), -3);
    ck_assert_int_eq(scenario_number(&d.t, d.t.session, "/a", 4), values[VERSIONS - 8][4]);
    scenario_commit(&d.t, "a part");
    /* the content of an older version is written again: the object stays a difference */
    const uint64_t before = stats().deltas;
    scenario_write(&d.t, d.t.session, "/a", values[0], sizeof(values[0]));
    scenario_commit(&d.t, "an old content");
    check_version("part", 0, "/a", 0);
    ck_assert_uint_eq(stats().deltas, before);
    /* another form of the array */
    scenario_resize(&d.t, d.t.session, "/a", ALL - 10);
    scenario_commit(&d.t, "shorter");
    check_all();
    check_whole();
}

TEST(they_are_moved_and_encoded_again)
{
    deltas(BRC_REPACK_DELTA, 0);
    move_to(PACK, NULL);
    ck_assert_uint_eq(stats().deltas, OLDER - 4);
    ck_assert_int_eq((int)scenario_ask(&d.t, "SELECT count(*) FROM object WHERE kind=1 AND"
                                             " backend=0"),
                     0);
    check_all();
    check_whole();
    scenario_collect(&d.t, 0);
    dirs_reopen(&d);
    check_all();
    ck_assert_uint_eq(deltas(BRC_REPACK_DELTA, 0).objects, 0);
    move_to("inline", NULL);
    check_all();
    move_to(NULL, "[" LITTLE ",{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]");
    ck_assert_uint_eq(stats().deltas, 0);
    ck_assert_int_eq((int)rows_of_deltas(), 0);
    check_all();
    scenario_collect(&d.t, 0);
    check_whole();
}

TEST(they_are_made_in_a_pack)
{
    move_to(PACK, NULL);
    deltas(BRC_REPACK_DELTA, 0);
    ck_assert_uint_eq(stats().deltas, OLDER - 4);
    check_all();
    scenario_collect(&d.t, 0);
    check_all();
    check_whole();
    deltas(BRC_REPACK_WHOLE, 0);
    check_all();
    ck_assert_int_eq((int)scenario_ask(&d.t, "SELECT count(*) FROM object WHERE kind=1 AND"
                                             " backend=0"),
                     0);
    check_whole();
}

TEST(a_backup_has_them)
{
    char path[200];
    breccia *copy;
    deltas(BRC_REPACK_DELTA, 0);
    dirs_path(&d, path, sizeof(path), "copy.brc");
    OK(&d.t, brc_backup(NULL, d.t.repo, path, &d.t.err));
    OK(&d.t, brc_open(&copy, path, NULL, &d.t.err));
    OK(&d.t, brc_fsck(copy, 0, fsck_finds_nothing, NULL, NULL, NULL, &d.t.err));
    brc_session *s = scenario_session(&d.t, copy, "main~11", BRC_SESSION_AT);
    static int32_t got[ALL];
    scenario_read(&d.t, s, "/a", got, sizeof(got));
    ck_assert_mem_eq(got, values[0], sizeof(got));
    brc_session_free(s);
    brc_free(copy);
}

/* ---- collections -------------------------------- */

/* Only the first version is left: what it builds on stays with it. */
static void leave_the_first(void)
{
    new_branch("first", "main~11");
    scenario_be_on(&d.t, "first");
    OK(&d.t, brc_ref_delete(d.t.repo, "main", BRC_DELETE_FORCE, &d.t.err));
}

TEST(what_marked_objects_build_on_stays)
{
    deltas(BRC_REPACK_DELTA, 0);
    const int64_t chain = scenario_ask(
        &d.t, "WITH RECURSIVE up(id) AS (SELECT id FROM delta WHERE id NOT IN (SELECT base FROM"
              " delta) UNION SELECT base FROM delta JOIN up ON delta.id=up.id)"
              " SELECT count(*) FROM up");
    ck_assert_int_ge((int)chain, OLDER);
    leave_the_first();
    const uint64_t told = scenario_collect(&d.t, BRC_GC_DRY_RUN);
    ck_assert_uint_eq(scenario_collect(&d.t, 0), told);
    check_version("first", 0, "/a", 0);
    check_whole();
    ck_assert_uint_eq(scenario_collect(&d.t, 0), 0);
    /* what the first version does not build on is gone */
    ck_assert_uint_lt(stats().chunks, OLDER);
    ck_assert_uint_gt(stats().chunks, 4);
    deltas(BRC_REPACK_DELTA, 0); /* it is a branch's last version now: whole */
    ck_assert_uint_eq(stats().deltas, 4); /* garbage */
    scenario_collect(&d.t, 0);
    ck_assert_uint_eq(stats().deltas, 0);
    ck_assert_uint_eq(stats().chunks, 4);
    check_version("first", 0, "/a", 0);
}

/* A collection with little memory marks and sweeps one range of ids after the other. */
TEST(all_garbage_goes_at_once)
{
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    brc_expire_opts thin = BRC_EXPIRE_OPTS_INIT;
    deltas(BRC_REPACK_DELTA, 0);
    OK(&d.t, brc_node_remove(d.t.session, "/a", &d.t.err));
    scenario_commit(&d.t, "all is gone");
    thin.keep_last = 1;
    OK(&d.t, brc_expire(NULL, NULL, d.t.repo, &thin, &d.t.err));
    opts.memory = 1;
    OK(&d.t, brc_gc(d.t.repo, &opts, NULL, &d.t.err));
    ck_assert_uint_eq(stats().chunks, 0);
    ck_assert_int_eq((int)rows_of_deltas(), 0);
    check_whole();
}

static const char marker[] = "NOBODY-IS-TO-FIND-THIS";

static int file_has_marker(void)
{
    static uint8_t bytes[8 << 20];
    FILE *f = fopen(d.t.file, "rb");
    ck_assert_ptr_nonnull(f);
    const size_t n = fread(bytes, 1, sizeof(bytes), f);
    fclose(f);
    ck_assert_uint_lt(n, sizeof(bytes));
    return memmem(bytes, n, marker, sizeof(marker) - 1) != NULL;
}

/* An older version stays, and the newer ones that its chunks build on go. */
TEST(no_trace_is_left_of_what_they_built_on)
{
    const uint64_t shape[] = {ALL}, chunk[] = {ALL};
    new_branch("other", "main");
    brc_array_free(scenario_array(&d.t, "/plain", "int32", 1, shape, chunk, NULL, "[" LITTLE "]"));
    commit_version("/plain", 0);
    OK(&d.t, brc_ref_create(d.t.repo, "kept", "main", NULL, BRC_REF_TAG, &d.t.err));
    commit_version("/plain", 1);
    memcpy(values[2] + 100, marker, sizeof(marker));
    commit_version("/plain", 2);
    brc_repack_report report = BRC_REPACK_REPORT_INIT;
    OK(&d.t, repack_call(BRC_REPACK_DELTA, 0, "/plain", &report));
    ck_assert_uint_eq(report.objects, 2);
    scenario_be_on(&d.t, "other");
    OK(&d.t, brc_ref_delete(d.t.repo, "main", BRC_DELETE_FORCE, &d.t.err));
    scenario_collect(&d.t, 0);
    check_version("kept", 0, "/plain", 0);
    ck_assert_int_eq((int)rows_of_deltas(), 2);
    ck_assert_int_eq(file_has_marker(), 1);
    scenario_collect(&d.t, BRC_GC_EXPUNGE);
    check_version("kept", 0, "/plain", 0);
    ck_assert_int_eq((int)rows_of_deltas(), 0);
    ck_assert_int_eq(file_has_marker(), 0);
    check_whole();
    ck_assert_uint_eq(scenario_collect(&d.t, 0), 0);
}

/* ---- damage and forgery -------------------------------- */

/* Changes a stored byte of the object that the statement gives. */
static void damage(const char *which)
{
    char sql[600];
    snprintf(sql, sizeof(sql),
             "UPDATE blob SET data=CAST(substr(data,1,(SELECT offset+20 FROM object WHERE id=(%s)))"
             " || x'5a5b5c' || substr(data,(SELECT offset+24 FROM object WHERE id=(%s))) AS BLOB)"
             " WHERE seq=(SELECT place FROM object WHERE id=(%s))",
             which, which, which);
    dirs_close(&d);
    scenario_sql(&d.t, sql);
    dirs_open(&d, 0);
}

#define A_ROOT "SELECT min(base) FROM delta WHERE base NOT IN (SELECT id FROM delta)"
#define ON_THE_ROOT "SELECT min(id) FROM delta WHERE base=(" A_ROOT ")"

TEST(a_damaged_base_damages_what_builds_on_it)
{
    char id[33], on[33];
    brc_buf row = BRC_BUF_INIT;
    deltas(BRC_REPACK_DELTA, 0);
    scenario_rows(&d.t, "SELECT lower(hex(min(base))) FROM delta WHERE base=(" A_ROOT ")", &row);
    snprintf(id, sizeof(id), "%.32s", (const char *)row.data);
    row.len = 0;
    scenario_rows(&d.t, "SELECT lower(hex((" ON_THE_ROOT ")))", &row);
    snprintf(on, sizeof(on), "%.32s", (const char *)row.data);
    brc_buf_dispose(&row);
    const int64_t all = scenario_ask(
        &d.t, "WITH RECURSIVE up(id) AS (VALUES((" A_ROOT ")) UNION ALL SELECT delta.id FROM delta"
              " JOIN up ON delta.base=up.id) SELECT count(*) FROM up");
    damage(A_ROOT);
    const finding f = dirs_fsck(&d);
    ck_assert_int_eq(f.n, (int)all);
    ck_assert_ptr_nonnull(strstr(f.text, id));
    ck_assert_ptr_nonnull(strstr(f.text, on));
    ck_assert_ptr_nonnull(strstr(f.text, "is a difference from object"));
    /* nothing that cannot be read is lost by trying again */
    FAILS(&d.t, BRC_ECORRUPT, repack_call(BRC_REPACK_WHOLE, 0, NULL, NULL));
    ck_assert_int_eq(dirs_fsck(&d).n, (int)all);
}

static const struct {
    const char *sql, *words;
} forged[] = {
    /* a row that belongs to no difference */
    { "INSERT INTO delta(id, base) SELECT base, id FROM delta WHERE base=(" A_ROOT ") LIMIT 1",
      "names an object that is stored whole" },
    /* differences without rows */
    { "DELETE FROM delta", "table delta does not say" },
    /* another base than the bytes say: a circle in the table */
    { "UPDATE delta SET base=(SELECT min(id) FROM delta)", "table delta" },
    { "UPDATE delta SET base=x'00112233445566778899aabbccddeeff'", "missing" },
    { "UPDATE delta SET base=7 WHERE id=(" ON_THE_ROOT ")", "a row of table delta is damaged" },
    /* the base is gone */
    { "DELETE FROM object WHERE id=(" A_ROOT ")", "missing" },
    /* lengths that are not those of the content */
    { "UPDATE object SET size=size+1 WHERE id=(" ON_THE_ROOT ")", "length" },
    { "UPDATE object SET size=4000000000 WHERE id=(" ON_THE_ROOT ")", "length" },
    { "UPDATE object SET kind=1, encoding=(SELECT encoding FROM object WHERE id=(" ON_THE_ROOT
      ")) WHERE kind=2",
      "" },
};

/* Every forged row is an error with words, and no call goes round for ever. */
EACH(what_a_stranger_writes_is_found, forged)
{
    deltas(BRC_REPACK_DELTA, 0);
    dirs_close(&d);
    scenario_sql(&d.t, forged[_i].sql);
    dirs_open(&d, 0);
    const finding f = dirs_fsck(&d);
    ck_assert_int_gt(f.n, 0);
    ck_assert_msg(strstr(f.text, forged[_i].words) != NULL, "%s", f.text);
    brc_repack_report report = BRC_REPACK_REPORT_INIT;
    int rc = repack_call(BRC_REPACK_DELTA, 2, NULL, &report);
    ck_assert(rc == BRC_OK || rc == BRC_ECORRUPT || rc == BRC_EUNSUPPORTED);
    rc = repack_call(BRC_REPACK_WHOLE, 0, NULL, &report);
    ck_assert(rc == BRC_OK || rc == BRC_ECORRUPT || rc == BRC_EUNSUPPORTED);
    brc_stats out = BRC_STATS_INIT;
    rc = brc_stat(d.t.repo, &out, &d.t.err);
    ck_assert(rc == BRC_OK || rc == BRC_ECORRUPT);
}

/* ---- the table is made anew -------------------------------- */

#define ALL_ROWS "SELECT group_concat(hex(id) || hex(base)) FROM (SELECT * FROM delta ORDER BY id)"

static void change(const char *sql)
{
    dirs_close(&d);
    scenario_sql(&d.t, sql);
    dirs_open(&d, 0);
}

static brc_repair_report repaired(breccia *from)
{
    brc_repair_report report = BRC_REPAIR_REPORT_INIT;
    OK(&d.t, brc_repair(&report, d.t.repo, from, 0, &d.t.err));
    return report;
}

static const char *lies[] = {
    "DELETE FROM delta",
    "DELETE FROM delta WHERE id=(" ON_THE_ROOT ")",
    "DROP TABLE delta",
    "UPDATE delta SET base=(SELECT min(id) FROM delta)",
    "UPDATE delta SET base=x'00112233445566778899aabbccddeeff'",
    "UPDATE delta SET base=7",
    "INSERT INTO delta(id, base) SELECT base, id FROM delta WHERE base=(" A_ROOT ") LIMIT 1",
    "INSERT INTO delta(id, base) VALUES(7, 8)",
};

/* The stored bytes say all that the table says. */
EACH(repair_makes_a_table_that_lies_anew, lies)
{
    brc_buf before = BRC_BUF_INIT, after = BRC_BUF_INIT;
    deltas(BRC_REPACK_DELTA, 0);
    scenario_rows(&d.t, ALL_ROWS, &before);
    change(lies[_i]);
    ck_assert_int_gt(dirs_fsck(&d).n, 0);
    if (_i < 3) { /* a row is missing: what the difference builds on would go */
        FAILS(&d.t, BRC_ECORRUPT, brc_gc(d.t.repo, NULL, NULL, &d.t.err));
        ck_assert_ptr_nonnull(strstr(d.t.err.message, "fsck --repair"));
    }
    const brc_repair_report report = repaired(NULL);
    ck_assert_uint_eq(report.replaced + report.dropped + report.missing + report.damaged, 0);
    check_whole();
    scenario_rows(&d.t, ALL_ROWS, &after);
    ck_assert_uint_eq(after.len, before.len);
    ck_assert_mem_eq(after.data, before.data, before.len);
    brc_buf_dispose(&before);
    brc_buf_dispose(&after);
    (void)scenario_collect(&d.t, 0);
    check_whole();
    check_all();
}

/* A difference whose stored bytes are damaged keeps the row that it has, for nothing else says what
 * it builds on; without that, a good copy brings it back whole. */
TEST(repair_of_damaged_differences)
{
    breccia *from;
    char path[600];
    snprintf(path, sizeof(path), "%s/good.brc", d.t.dir);
    deltas(BRC_REPACK_DELTA, 0);
    OK(&d.t, brc_backup(NULL, d.t.repo, path, &d.t.err));
    const int64_t rows = rows_of_deltas();
    damage(ON_THE_ROOT);
    const finding f = dirs_fsck(&d);
    ck_assert_int_gt(f.n, 0);
    ck_assert_int_eq((int)repaired(NULL).damaged, f.n);
    ck_assert_int_eq(rows_of_deltas(), rows);
    change("DELETE FROM delta");
    ck_assert_int_eq((int)repaired(NULL).damaged, f.n);
    ck_assert_int_eq(rows_of_deltas(), rows - 1);
    ck_assert_ptr_nonnull(strstr(dirs_fsck(&d).text, "is a difference from object"));
    OK(&d.t, brc_open(&from, path, NULL, &d.t.err));
    const brc_repair_report report = repaired(from);
    brc_free(from);
    ck_assert_uint_gt(report.replaced, 0);
    check_whole();
    check_all();
    (void)scenario_collect(&d.t, 0);
    check_whole();
    check_all();
}

/* Sets bytes to those that the text has in hexadecimal digits. Returns their number. */
static size_t read_hex(const char *text, uint8_t *bytes, size_t cap)
{
    size_t n = 0;
    unsigned byte;
    while (n < cap && sscanf(text + 2 * n, "%2x", &byte) == 1)
        bytes[n++] = (uint8_t)byte;
    return n;
}

/* The stored bytes of a difference say that it builds on itself, under the right checksum. */
static void build_on_itself(void)
{
    static uint8_t stored[65536];
    char sql[600];
    brc_oid id;
    brc_buf row = BRC_BUF_INIT;
    memset(&id, 0, sizeof(id));
    scenario_rows(&d.t, "SELECT hex((" ON_THE_ROOT "))", &row);
    const size_t id_len = read_hex((const char *)row.data, id.bytes, 16);
    ck_assert_uint_eq(id_len, 16);
    row.len = 0;
    scenario_rows(&d.t,
                  "SELECT hex(substr(data,offset+1,stored)) FROM object JOIN blob ON seq=place"
                  " WHERE id=(" ON_THE_ROOT ")",
                  &row);
    const size_t len = read_hex((const char *)row.data, stored, sizeof(stored));
    brc_buf_dispose(&row);
    ck_assert_uint_gt(len, id_len);
    memcpy(stored, id.bytes, id_len);
    const uint64_t sum = brc_hash_stored(&id, BRC_DELTA_DIGEST, stored, len);
    snprintf(sql, sizeof(sql),
             "UPDATE blob SET data=CAST(substr(data,1,o.offset)||o.id||substr(data,o.offset+17) AS"
             " BLOB) FROM object o WHERE seq=o.place AND o.id=(" ON_THE_ROOT ")");
    dirs_close(&d);
    scenario_sql(&d.t, sql);
    snprintf(sql, sizeof(sql), "UPDATE object SET checksum=%lld WHERE id=(" ON_THE_ROOT ")",
             (long long)sum);
    scenario_sql(&d.t, sql);
    scenario_sql(&d.t, "UPDATE delta SET base=id WHERE id=(" ON_THE_ROOT ")");
    dirs_open(&d, 0);
}

TEST(a_circle_in_the_stored_bytes_ends)
{
    deltas(BRC_REPACK_DELTA, 0);
    build_on_itself();
    const finding f = dirs_fsck(&d);
    ck_assert_int_gt(f.n, 0);
    ck_assert_msg(strstr(f.text, "is more than 64 differences away") != NULL, "%s", f.text);
}

/* ---- killed -------------------------------- */

typedef struct delta_victim {
    uint32_t flags;
    uint64_t moment;
    fault_vfs disk;
} delta_victim;

static int run_delta_victim(void *ctx)
{
    delta_victim *v = ctx;
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    fault_vfs_register(&v->disk);
    scenario_open_vfs(&d.t, FAULT_VFS_NAME);
    fault_vfs_kill(&v->disk, FAULT_CHANGES, v->moment);
    if (v->flags != 0)
        return repack_call(v->flags, 0, NULL, NULL);
    opts.flags = BRC_GC_EXPUNGE;
    return brc_gc(d.t.repo, &opts, NULL, &d.t.err);
}

static const uint32_t delta_deaths[] = { BRC_REPACK_DELTA, BRC_REPACK_WHOLE, 0 };

CASE("killed", .setup = deltas_start, .teardown = deltas_stop, .timeout = 240);

EACH(whenever_it_is_killed_nothing_is_lost, delta_deaths)
{
    delta_victim v = { .flags = delta_deaths[_i] };
    const uint64_t each = effort_step(5, 7);
    uint64_t killed = 0;
    for (v.moment = 1;; v.moment += each, killed++) {
        deltas(v.flags == BRC_REPACK_DELTA ? BRC_REPACK_WHOLE : BRC_REPACK_DELTA, 0);
        dirs_close(&d);
        const int survived = process_survives(run_delta_victim, &v);
        dirs_open(&d, 0);
        check_all();
        check_whole();
        if (killed % 3 == 0)
            scenario_collect(&d.t, 0);
        check_all();
        if (survived)
            break;
    }
    ck_assert_uint_ge(killed, 3);
    deltas(BRC_REPACK_DELTA, 0);
    check_all();
    check_whole();
}

/* ---- others meanwhile -------------------------------- */

enum { ROUNDS = 6 };

static int read_many(void *ctx)
{
    (void)ctx;
    dirs_open(&d, 0);
    for (int i = 0; i < 4 * ROUNDS; i++)
        check_all();
    return BRC_OK;
}

static int repack_many(void *ctx)
{
    (void)ctx;
    dirs_open(&d, 0);
    for (int i = 0; i < ROUNDS; i++) {
        const int rc = repack_call(i % 2 ? BRC_REPACK_WHOLE : BRC_REPACK_DELTA, 0, NULL, NULL);
        if (rc != BRC_OK)
            return rc;
    }
    return BRC_OK;
}

static int collect_many(void *ctx)
{
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    (void)ctx;
    dirs_open(&d, 0);
    for (int i = 0; i < ROUNDS; i++) {
        opts.flags = i % 2 ? BRC_GC_EXPUNGE : 0;
        const int rc = brc_gc(d.t.repo, &opts, NULL, &d.t.err);
        if (rc != BRC_OK && rc != BRC_EBUSY)
            return rc;
    }
    return BRC_OK;
}

static int write_many(void *ctx)
{
    (void)ctx;
    dirs_open(&d, 0);
    brc_session *s = scenario_session(&d.t, d.t.repo, "theirs", BRC_SESSION_WRITE);
    for (int i = 0; i < ROUNDS; i++) {
        /* contents that others make differences of, or whole */
        scenario_write(&d.t, s, "/a", values[i], sizeof(values[i]));
        brc_oid id;
        const int rc = scenario_commit_of(&d.t, s, "one of many", &id);
        if (rc != BRC_OK)
            return rc;
    }
    brc_session_free(s);
    return BRC_OK;
}

static pid_t begin_process(int (*work)(void *ctx))
{
    const pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        _exit(-work(NULL)); /* BRC_OK is 0 */
    return pid;
}

TEST(processes_read_write_collect_and_repack_at_once)
{
    static int (*const works[])(void *) = { read_many, repack_many, collect_many, write_many,
                                            repack_many };
    enum { WORKS = sizeof(works) / sizeof(works[0]) };
    pid_t pids[WORKS];
    new_branch("theirs", "main");
    dirs_close(&d);
    for (int i = 0; i < WORKS; i++)
        pids[i] = begin_process(works[i]);
    for (int i = 0; i < WORKS; i++) {
        int status;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d: %d", i, status);
    }
    dirs_open(&d, 0);
    check_all();
    for (int i = 0; i < ROUNDS; i++)
        check_version("theirs", ROUNDS - 1 - i, "/a", i);
    check_whole();
}
