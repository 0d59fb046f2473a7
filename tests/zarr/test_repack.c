/*
 * Objects are stored again, elsewhere or encoded otherwise: no id and no value changes, whatever
 * kills, stops or meets the call, and a call that follows goes on. The backends are "pack" and
 * those of tests/plugins/dirs.c.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../kit/dirs_kit.h"
#include "../kit/effort.h"
#include "../kit/fault_vfs.h"
#include "../kit/plugin_kit.h"
#include "../kit/process_kit.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(repack);

#define PACK "{\"name\":\"pack\"}"
#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "[" LITTLE ",{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}]"
#define GZIP "[" LITTLE ",{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]"

static dirs d;

/* /a has three versions and something uncommitted, /g/b one version that lies in a folder. */
static void repack_start(void)
{
    dirs_start(&d);
    scenario_no_window(&d.t);
    for (int i = 0; i < 3; i++) {
        brc_array *a = i == 0 ? dirs_new(&d, "/a", NULL) : dirs_array(&d, d.t.session, "/a");
        if (i == 0)
            OK(&d.t, brc_array_set_codecs(a, "[" LITTLE "]", 0, &d.t.err));
        if (i == 0)
            dirs_put(&d, a, 1000);
        else
            dirs_put_chunk(&d, a, (uint64_t)i, 7 * i);
        brc_array_free(a);
        if (i == 0) {
            brc_array *b = dirs_new(&d, "/g/b", DIR_B);
            OK(&d.t, brc_array_set_codecs(b, "[" LITTLE "]", 0, &d.t.err));
            dirs_put(&d, b, 5000);
            brc_array_free(b);
        }
        scenario_commit(&d.t, "one of three");
    }
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    dirs_put_chunk(&d, a, 5, -1);
    brc_array_free(a);
}

static void repack_stop(void)
{
    dirs_stop(&d);
}

/* ---- what there is -------------------------------- */

enum { IN_ALL = 2 * CHUNKS + 3 };

static void check_array(const char *rev, const char *path, int32_t first, int second, int third,
                        int draft)
{
    brc_session *s = rev == NULL ? d.t.session
                                 : scenario_session(&d.t, d.t.repo, rev, BRC_SESSION_AT);
    int32_t want[N], got[N];
    dirs_values(want, first);
    for (int i = 0; i < CHUNK; i++) {
        want[CHUNK + i] = second ? 7 : want[CHUNK + i];
        want[2 * CHUNK + i] = third ? 14 : want[2 * CHUNK + i];
        want[5 * CHUNK + i] = draft ? -1 : want[5 * CHUNK + i];
    }
    brc_array *a = dirs_array(&d, s, path);
    OK(&d.t, brc_array_read(a, NULL, got, sizeof(got), &d.t.err));
    ck_assert_mem_eq(got, want, sizeof(got));
    brc_array_free(a);
    if (rev != NULL)
        brc_session_free(s);
}

static void check_values(void)
{
    check_array("main~2", "/a", 1000, 0, 0, 0);
    check_array("main~1", "/a", 1000, 1, 0, 0);
    check_array("main", "/a", 1000, 1, 1, 0);
    check_array(NULL, "/a", 1000, 1, 1, 1);
    check_array("main~2", "/g/b", 5000, 0, 0, 0);
}

static int repack_with(const brc_repack_opts *opts, brc_repack_report *report)
{
    return brc_repack(d.t.repo, opts, report, &d.t.err);
}

static brc_repack_report repack(const char *backend, const char *codecs, const char *path)
{
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    brc_repack_report report = BRC_REPACK_REPORT_INIT;
    opts.backend_json = backend;
    opts.codecs_json = codecs;
    opts.path = path;
    OK(&d.t, repack_with(&opts, &report));
    return report;
}

static int repack_fails(const char *backend)
{
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    opts.backend_json = backend;
    return repack_with(&opts, NULL);
}

static int64_t lie_elsewhere(void)
{
    return scenario_ask(&d.t, "SELECT count(*) FROM object WHERE backend<>0");
}

/* ---- moving -------------------------------- */

static const char *const everywhere[] = {
    PACK,
    DIR_A,
    IN("workers", "w.chunks"),
    IN("pack", "p.chunks"),
    IN("packs", "q.chunks"),
    IN("repacks", "r.chunks"),
    IN("held", "h.chunks"),
    IN("meets", "m.chunks"),
};

CASE("moving", .setup = repack_start, .teardown = repack_stop);

EACH(everything_goes_there_and_back, everywhere)
{
    const brc_oid tip = scenario_id(&d.t, "main");
    brc_repack_report report = repack(everywhere[_i], NULL, NULL);
    ck_assert_uint_eq(report.objects, IN_ALL);
    ck_assert_uint_eq(report.bytes_before, (uint64_t)IN_ALL * CHUNK * 4);
    ck_assert_uint_eq(report.bytes_after, report.bytes_before);
    ck_assert_int_eq((int)lie_elsewhere(), IN_ALL);
    check_values();
    ck_assert_uint_eq(repack(everywhere[_i], NULL, NULL).objects, 0);
    scenario_collect(&d.t, 0);
    dirs_reopen(&d);
    check_values();
    ck_assert_int_eq(dirs_fsck(&d).n, 0);
    ck_assert_uint_eq(repack("inline", NULL, NULL).objects, IN_ALL);
    ck_assert_int_eq((int)lie_elsewhere(), 0);
    dirs_reopen(&d);
    check_values();
    scenario_collect(&d.t, 0);
    ck_assert_int_eq(dirs_fsck(&d).n, 0);
    ck_assert(scenario_same(tip, scenario_id(&d.t, "main")));
    ck_assert_int_eq((int)scenario_ask(&d.t, "SELECT count(*) FROM blob WHERE length(data)>0 AND"
                                             " seq NOT IN (SELECT place FROM object WHERE"
                                             " backend=0)"), 0);
}

/* From one backend to another, with the first one's folder away afterwards. */
TEST(nothing_is_left_behind)
{
    char path[300];
    repack(DIR_A, NULL, NULL);
    repack(PACK, NULL, NULL);
    dirs_path(&d, path, sizeof(path), "a.chunks");
    brc_tree_remove(path);
    dirs_path(&d, path, sizeof(path), "b.chunks");
    brc_tree_remove(path);
    dirs_reopen(&d);
    check_values();
}

TEST(one_array_moves_and_the_others_stay)
{
    brc_buf before = BRC_BUF_INIT, after = BRC_BUF_INIT;
    static const char others[] = "SELECT hex(id), backend, place, offset, encoding, checksum FROM"
                                 " object WHERE kind<>1 OR backend IN (SELECT id FROM backend WHERE"
                                 " spec LIKE '%b.chunks%') ORDER BY id";
    scenario_rows(&d.t, others, &before);
    ck_assert_uint_eq(repack(PACK, NULL, "/a").objects, CHUNKS + 3);
    scenario_rows(&d.t, others, &after);
    ck_assert_uint_eq(before.len, after.len);
    ck_assert_mem_eq(before.data, after.data, before.len);
    ck_assert_uint_eq(repack(PACK, NULL, "g/").objects, CHUNKS);
    check_values();
    brc_buf_dispose(&before);
    brc_buf_dispose(&after);
}

TEST(what_is_uncommitted_moves_too)
{
    brc_session *private = scenario_session(&d.t, d.t.repo, NULL, BRC_SESSION_PRIVATE);
    scenario_put(&d.t, private, "/a", 63, 99);
    ck_assert_uint_eq(repack(PACK, NULL, "/a").objects, CHUNKS + 4);
    ck_assert_int_eq(scenario_number(&d.t, private, "/a", 63), 99);
    brc_session_free(private);
}

TEST(chunks_that_nothing_names_move_too)
{
    OK(&d.t, brc_session_discard(d.t.session, &d.t.err));
    ck_assert_uint_eq(repack(PACK, NULL, NULL).objects, IN_ALL);
}

TEST(arrays_go_on_where_their_own_backend_says)
{
    repack(PACK, NULL, NULL);
    brc_array *b = dirs_array(&d, d.t.session, "/g/b");
    ck_assert_str_eq(brc_array_describe(b)->backend_json, DIR_B);
    dirs_put_chunk(&d, b, 3, 1);
    brc_array_free(b);
    ck_assert_int_eq((int)dirs_chunks(&d, "%b.chunks%"), 1);
}

/* ---- codecs -------------------------------- */

static int64_t encoded(const char *like)
{
    char sql[300];
    snprintf(sql, sizeof(sql),
             "SELECT count(*) FROM object o JOIN encoding e ON e.id=o.encoding WHERE o.kind=1 AND"
             " e.spec LIKE '%s'",
             like);
    return scenario_ask(&d.t, sql);
}

TEST(chunks_get_other_codecs_where_that_makes_them_shorter)
{
    const brc_oid tip = scenario_id(&d.t, "main");
    brc_array *a = dirs_new(&d, "/even", NULL); /* of these all chunks become shorter */
    for (uint64_t i = 0; i < CHUNKS; i++)
        dirs_put_chunk(&d, a, i, 70000 + (int32_t)i);
    brc_array_free(a);
    brc_repack_report report = repack(NULL, ZSTD, NULL);
    ck_assert_uint_lt(report.bytes_after, report.bytes_before);
    ck_assert_int_ge((int)encoded("%zstd%"), CHUNKS);
    check_values();
    const int64_t zstd = encoded("%zstd%");
    ck_assert_uint_eq(repack(NULL, ZSTD, NULL).objects, 0); /* what gains nothing is left alone */
    repack(PACK, GZIP, NULL);
    ck_assert_int_eq((int)encoded("%zstd%"), 0);
    ck_assert_int_le((int)encoded("%gzip%"), (int)zstd);
    ck_assert_int_eq((int)scenario_ask(&d.t, "SELECT count(*) FROM object WHERE kind=1 AND"
                                             " backend=0"), 0);
    dirs_reopen(&d);
    check_values();
    ck_assert_int_eq(dirs_fsck(&d).n, 0);
    ck_assert(scenario_same(tip, scenario_id(&d.t, "main")));
}

TEST(codecs_of_one_array)
{
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    repack(NULL, "[\"zstd\"]", "/g");
    ck_assert_int_eq((int)scenario_ask(&d.t, "SELECT count(*) FROM object WHERE kind=1 AND"
                                             " encoding<>0 AND backend=0"), 0);
    opts.codecs_json = "[\"none\"]";
    FAILS(&d.t, BRC_EUNSUPPORTED, repack_with(&opts, NULL));
    dirs_say(&d, "fit no array");
    opts.codecs_json = "[zstd";
    FAILS(&d.t, BRC_EINVAL, repack_with(&opts, NULL));
    opts.codecs_json = "[\"zstd\"]";
    opts.path = "/none";
    FAILS(&d.t, BRC_ENOTFOUND, repack_with(&opts, NULL));
    check_values();
}

/* More documents than are kept at a time: each commit has another. */
TEST(the_documents_of_many_versions_are_read_in_turn)
{
    char value[32];
    brc_array *a;
    OK(&d.t, brc_session_discard(d.t.session, &d.t.err));
    for (int i = 0; i < 150; i++) {
        snprintf(value, sizeof(value), "%d", i);
        OK(&d.t, brc_attrs_set(d.t.session, "/a", "n", value, &d.t.err));
        a = dirs_array(&d, d.t.session, "/a");
        dirs_put_chunk(&d, a, (uint64_t)i % CHUNKS, 100000 + i);
        brc_array_free(a);
        scenario_commit(&d.t, "another document");
    }
    repack(PACK, ZSTD, NULL);
    ck_assert_int_ge((int)encoded("%zstd%"), 150);
    check_array("main~150", "/a", 1000, 1, 1, 0);
    ck_assert_int_eq(dirs_fsck(&d).n, 0);
}

/* ---- choosing by time -------------------------------- */

TEST(only_what_newer_versions_do_not_use)
{
    static const int64_t hour = INT64_C(3600000000);
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    brc_repack_report report = BRC_REPACK_REPORT_INIT;
    brc_commit *tip = scenario_commit_at(&d.t, "main");
    opts.backend_json = PACK;
    opts.older_than_us = tip->time_us + hour; /* the last version of a branch counts as new */
    brc_commit_free(tip);
    OK(&d.t, repack_with(&opts, &report));
    ck_assert_uint_eq(report.objects, 2); /* of chunks 1 and 2 of /a as they were first */
    check_values();
    opts.older_than_us = 1;
    OK(&d.t, repack_with(&opts, &report));
    ck_assert_uint_eq(report.objects, 0);
    opts.backend_json = NULL;
    FAILS(&d.t, BRC_EINVAL, repack_with(&opts, &report));
}

/* ---- counting -------------------------------- */

TEST(a_dry_run_changes_no_byte_and_is_near_the_truth)
{
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    brc_repack_report told = BRC_REPACK_REPORT_INIT, done = BRC_REPACK_REPORT_INIT;
    brc_buf before = BRC_BUF_INIT, after = BRC_BUF_INIT;
    static int32_t data[300000];
    const uint64_t shape = 300000, chunk = 500;
    uint64_t state = 1;
    brc_array *a = scenario_array(&d.t, "/large", "int32", 1, &shape, &chunk, NULL,
                                  "[" LITTLE "]");
    for (size_t i = 0; i < shape; i++)
        data[i] = (int32_t)(scenario_random(&state) % (1 + i / 300));
    OK(&d.t, brc_array_write(a, NULL, data, sizeof(data), &d.t.err));
    brc_array_free(a);
    opts.codecs_json = ZSTD;
    opts.path = "/large";
    opts.flags = BRC_REPACK_DRY_RUN;
    OK(&d.t, brc_file_read(&before, d.t.file, &d.t.err));
    OK(&d.t, repack_with(&opts, &told));
    OK(&d.t, brc_file_read(&after, d.t.file, &d.t.err));
    ck_assert_uint_eq(before.len, after.len);
    ck_assert_mem_eq(before.data, after.data, before.len);
    opts.flags = 0;
    OK(&d.t, repack_with(&opts, &done));
    ck_assert_uint_eq(told.objects, 600);
    ck_assert_uint_gt(told.sampled, 100);
    ck_assert_uint_lt(told.sampled, 600);
    ck_assert_uint_ge(told.objects, done.objects);
    ck_assert_uint_lt(done.bytes_after, done.bytes_before * 3 / 4);
    ck_assert_double_eq_tol((double)told.bytes_after / (double)told.bytes_before,
                            (double)done.bytes_after / (double)done.bytes_before, 0.1);
    brc_buf_dispose(&before);
    brc_buf_dispose(&after);
}

TEST(a_dry_run_counts_what_moves)
{
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    brc_repack_report report = BRC_REPACK_REPORT_INIT;
    opts.backend_json = PACK;
    opts.flags = BRC_REPACK_DRY_RUN;
    OK(&d.t, repack_with(&opts, &report));
    ck_assert_uint_eq(report.objects, IN_ALL);
    ck_assert_uint_eq(report.bytes_after, (uint64_t)IN_ALL * CHUNK * 4);
    ck_assert_int_eq((int)scenario_ask(&d.t, "SELECT count(*) FROM backend"), 1);
}

/* ---- what goes wrong -------------------------------- */

TEST(where_it_is_refused)
{
    FAILS(&d.t, BRC_EUNSUPPORTED, repack_fails("org.example.none"));
    FAILS(&d.t, BRC_EUNSUPPORTED, repack_fails(IN("old", "o.chunks")));
    FAILS(&d.t, BRC_EINVAL, repack_fails("[1]"));
    OK(&d.t, brc_begin(d.t.repo, &d.t.err));
    FAILS(&d.t, BRC_EMISUSE, repack_fails("inline"));
    OK(&d.t, brc_end(d.t.repo, BRC_END_KEEP, &d.t.err));
    dirs_close(&d);
    dirs_open(&d, BRC_OPEN_READONLY);
    FAILS(&d.t, BRC_EREADONLY, repack_fails("inline"));
    dirs_close(&d);
    dirs_open(&d, 0);
}

static const char *const full[] = { IN("full", "f.chunks"), IN("late", "l.chunks") };

EACH(a_full_backend_changes_nothing, full)
{
    FAILS(&d.t, BRC_ENOSPACE, repack_fails(full[_i]));
    check_values();
    ck_assert_int_eq((int)dirs_chunks(&d, "%f.chunks%") + (int)dirs_chunks(&d, "%l.chunks%"), 0);
    repack(PACK, NULL, NULL);
    check_values();
}

TEST(what_cannot_be_read_stays_and_is_named)
{
    char path[512];
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    brc_repack_report report = BRC_REPACK_REPORT_INIT;
    repack(DIR_A, NULL, NULL);
    dirs_files(&d, "a.chunks", path);
    ck_assert_int_eq(unlink(path), 0);
    opts.backend_json = "inline";
    FAILS(&d.t, BRC_ECORRUPT, repack_with(&opts, &report));
    dirs_say(&d, "1 object cannot be read and stays as it is");
    ck_assert_uint_eq(report.unreadable, 1);
    ck_assert_uint_eq(report.objects, IN_ALL - 1);
    ck_assert_int_eq((int)lie_elsewhere(), 1);
}

/* Bytes that are not what was stored never get a new checksum. */
TEST(wrong_bytes_are_not_taken_over)
{
    repack(DIR_A, NULL, NULL);
    dirs_reopen(&d);
    scenario_sql(&d.t, "UPDATE backend SET spec='" IN("liar", "a.chunks") "',"
                       " checksum=row_sum('backend', id, '" IN("liar", "a.chunks") "')"
                       " WHERE spec LIKE '%a.chunks%'");
    dirs_reopen(&d);
    FAILS(&d.t, BRC_ECORRUPT, repack_fails("inline"));
    ck_assert_int_eq((int)lie_elsewhere(), IN_ALL);
    scenario_sql(&d.t, "UPDATE backend SET spec='" DIR_A "', checksum=row_sum('backend', id, '"
                       DIR_A "') WHERE spec LIKE '%a.chunks%'");
    dirs_reopen(&d);
    check_values();
    repack("inline", NULL, NULL);
    check_values();
}

static int stops_at;

static int stop_soon(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    (void)ctx, (void)phase, (void)done, (void)total;
    return --stops_at < 0;
}

static void open_with(brc_progress_fn progress, const char *vfs)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    dirs_close(&d);
    char path[4096];
    plugin_path(path, sizeof(path), "dirs");
    OK(&d.t, brc_registry_new(&d.reg, &d.t.err));
    OK(&d.t, brc_registry_load(d.reg, path, &d.t.err));
    opts.registry = d.reg;
    opts.progress = progress;
    opts.vfs = vfs;
    scenario_open(&d.t, &opts, 0);
}

TEST(a_call_that_is_stopped_goes_on_when_it_is_made_again)
{
    int stopped = 0, rc;
    open_with(stop_soon, NULL);
    for (int n = 0;; n++) {
        stops_at = n;
        rc = repack_fails(n % 2 ? PACK : DIR_A);
        if (rc == BRC_OK)
            break;
        FAILS(&d.t, BRC_EINTERRUPT, rc);
        stopped++;
        stops_at = 1000000;
        check_values();
        repack(n % 2 ? PACK : DIR_A, NULL, NULL);
        ck_assert_int_eq((int)lie_elsewhere(), IN_ALL);
        repack("inline", NULL, NULL);
    }
    ck_assert_int_ge(stopped, 3);
    stops_at = 1000000;
    check_values();
}

/* ---- killed -------------------------------- */

typedef struct victim {
    const char *backend, *codecs;
    uint64_t moment;
    fault_vfs disk;
} victim;

/* In a process of its own, which has no handle of this one open. */
static int run_victim(void *ctx)
{
    victim *v = ctx;
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    fault_vfs_register(&v->disk);
    dirs_open(&d, 0);
    open_with(NULL, FAULT_VFS_NAME);
    opts.backend_json = v->backend;
    opts.codecs_json = v->codecs;
    fault_vfs_kill(&v->disk, FAULT_CHANGES, v->moment);
    return repack_with(&opts, NULL);
}

static const victim deaths[] = {
    { .backend = PACK },
    { .backend = DIR_A },
    { .backend = IN("repacks", "r.chunks") },
    { .backend = PACK, .codecs = ZSTD },
    { .backend = "inline" },
    { .codecs = ZSTD },
};

CASE("killed", .setup = repack_start, .teardown = repack_stop, .timeout = 240);

EACH(whenever_it_is_killed_the_next_call_goes_on, deaths)
{
    victim v = deaths[_i];
    const int is_home = v.backend != NULL && strcmp(v.backend, "inline") == 0;
    const uint64_t each = effort_step(5, 15);
    uint64_t killed = 0;
    const brc_oid tip = scenario_id(&d.t, "main");
    for (v.moment = 1;; v.moment += each, killed++) {
        repack(is_home ? PACK : "inline", "[" LITTLE "]", NULL);
        dirs_close(&d);
        const int survived = process_survives(run_victim, &v);
        dirs_open(&d, 0);
        check_values();
        ck_assert_int_eq(dirs_fsck(&d).n, 0);
        if (killed % 3 == 0)
            scenario_collect(&d.t, 0);
        repack(v.backend, v.codecs, NULL);
        check_values();
        ck_assert(scenario_same(tip, scenario_id(&d.t, "main")));
        if (v.backend != NULL)
            ck_assert_int_eq((int)lie_elsewhere(), is_home ? 0 : IN_ALL);
        if (survived)
            break;
    }
    ck_assert_uint_ge(killed, 10 / each);
    scenario_collect(&d.t, 0);
    check_values();
    ck_assert_int_eq(dirs_fsck(&d).n, 0);
}

static const char *const dying[] = { IN("dies", "x.chunks"), IN("packdies", "x.chunks") };

/* Between put and flush. */
EACH(killed_before_the_bytes_are_durable, dying)
{
    victim v = { .backend = dying[_i] };
    dirs_close(&d);
    ck_assert_int_eq(process_survives(run_victim, &v), 0);
    dirs_open(&d, 0);
    check_values();
    ck_assert_int_eq((int)dirs_chunks(&d, "%x.chunks%"), 0);
    scenario_collect(&d.t, 0);
    check_values();
    ck_assert_int_eq(dirs_fsck(&d).n, 0);
}

/* ---- a full disk -------------------------------- */

static fault_vfs disk;

TEST(a_full_disk_loses_nothing)
{
    int failed = 0;
    repack(PACK, NULL, NULL);
    fault_vfs_register(&disk);
    open_with(NULL, FAULT_VFS_NAME);
    for (uint64_t n = 1;; n += 3) {
        fault_vfs_arm(&disk, FAULT_FULL, n, 1);
        const int rc = repack_fails("inline");
        fault_vfs_disarm(&disk);
        check_values();
        if (rc == BRC_OK)
            break;
        ck_assert_int_eq(rc, BRC_ENOSPACE);
        failed++;
    }
    ck_assert_int_ge(failed, 2);
    ck_assert_int_eq((int)lie_elsewhere(), 0);
    dirs_close(&d);
    dirs_open(&d, 0);
    fault_vfs_unregister(&disk);
    check_values();
}

/* ---- others meanwhile -------------------------------- */

static scenario others; /* does not wait for the file */
static int acts, done[4];

static int other_acts(int which)
{
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    const int32_t value = acts;
    brc_sel sel = BRC_SEL_INIT;
    brc_array *c = NULL;
    int rc;
    sel.ndim = 1;
    sel.start[0] = (uint64_t)acts % N;
    sel.count[0] = 1;
    sel.step[0] = 1;
    opts.backend_json = acts % 8 == 3 ? PACK : DIR_A;
    opts.path = "/g/b";
    switch (which) {
    case 0:
        return brc_gc(others.repo, NULL, NULL, &others.err);
    case 1:
        rc = brc_array_open(&c, others.session, "/c", &others.err);
        if (rc == BRC_OK)
            rc = brc_array_write(c, &sel, &value, sizeof(value), &others.err);
        brc_array_free(c);
        return rc;
    case 2:
        return scenario_commit_of(&others, others.session, "theirs", NULL);
    default:
        return brc_repack(others.repo, &opts, NULL, &others.err);
    }
}

/* The backend "meets" calls this while it puts, flushes, fetches or lists: others collect garbage,
 * write, commit, and repack too, unless the file is locked just then. */
static void meet_others(const char *what)
{
    static int inside;
    if (inside || strcmp(what, "half") == 0)
        return;
    inside = 1;
    const int which = acts % 4, rc = other_acts(which);
    ck_assert_msg(rc == BRC_OK || rc == BRC_EBUSY || rc == BRC_EMISUSE, "%s", others.err.message);
    done[which] += rc == BRC_OK;
    acts++;
    inside = 0;
}

static void set_hook(void (*hook)(const char *what))
{
    char path[4096];
    plugin_path(path, sizeof(path), "dirs");
    void *plugin = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    ck_assert_ptr_nonnull(plugin);
    *(void (**)(const char *))dlsym(plugin, "dirs_meet") = hook;
    dlclose(plugin);
}

static const char *const meeting[] = { IN("meets", "m.chunks"), IN("repackmeets", "m.chunks") };

CASE("others", .setup = repack_start, .teardown = repack_stop, .timeout = 240);

EACH(others_write_collect_and_repack_meanwhile, meeting)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_array *c = dirs_new(&d, "/c", NULL);
    OK(&d.t, brc_array_set_codecs(c, "[" LITTLE "]", 0, &d.t.err));
    brc_array_free(c);
    scenario_commit(&d.t, "all that was uncommitted");
    memset(&others, 0, sizeof(others));
    memcpy(others.file, d.t.file, sizeof(others.file));
    opts.registry = d.reg;
    opts.wait_ms = -1;
    scenario_open(&others, &opts, 0);
    acts = 0;
    set_hook(meet_others);
    for (int i = 0; i < 6; i++) {
        repack(meeting[_i], NULL, NULL);
        repack("inline", NULL, NULL);
    }
    set_hook(NULL);
    for (int i = 0; i < 4; i++)
        ck_assert_int_ge(done[i], _i == 0); /* the second is met less often */
    scenario_close(&others);
    repack("inline", NULL, NULL);
    ck_assert_int_eq((int)lie_elsewhere(), 0);
    scenario_collect(&d.t, 0);
    ck_assert_int_eq(dirs_fsck(&d).n, 0);
}

enum { ROUNDS = 12 };

/* Commits numbers one after the other; the last one is looked at. */
static int commit_many(void *ctx)
{
    dirs_open(&d, 0);
    for (int i = 1; i <= ROUNDS; i++) {
        scenario_set_number(&d.t, ctx, (uint64_t)i % N, i);
        const int rc = scenario_commit_of(&d.t, d.t.session, "one of many", NULL);
        if (rc != BRC_OK && rc != BRC_EMISUSE) /* the other writer has committed both */
            return rc;
    }
    return BRC_OK;
}

static int collect_many(void *ctx)
{
    (void)ctx;
    dirs_open(&d, 0);
    for (int i = 0; i < ROUNDS; i++) {
        const int rc = brc_gc(d.t.repo, NULL, NULL, &d.t.err);
        if (rc != BRC_OK && rc != BRC_EBUSY)
            return rc;
    }
    return BRC_OK;
}

static int repack_many(void *ctx)
{
    static const char *const places[] = { PACK, "inline", DIR_A, "inline" };
    (void)ctx;
    dirs_open(&d, 0);
    for (int i = 0; i < ROUNDS; i++) {
        const int rc = repack_fails(places[i % 4]);
        if (rc != BRC_OK)
            return rc;
    }
    return BRC_OK;
}

static pid_t begin_process(int (*work)(void *ctx), void *ctx)
{
    const pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        _exit(-work(ctx)); /* BRC_OK is 0 */
    return pid;
}

TEST(processes_write_collect_and_repack_at_once)
{
    pid_t pids[5];
    int status;
    static char path[] = "/g/b", other[] = "/e";
    brc_array_free(dirs_new(&d, "/e", PACK));
    scenario_commit(&d.t, "for two writers");
    dirs_close(&d);
    pids[0] = begin_process(repack_many, NULL);
    pids[1] = begin_process(commit_many, path);
    pids[2] = begin_process(collect_many, NULL);
    pids[3] = begin_process(repack_many, NULL);
    pids[4] = begin_process(commit_many, other);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "process %d: %d", i, status);
    }
    dirs_open(&d, 0);
    for (int i = 1; i <= ROUNDS; i++) {
        ck_assert_int_eq(scenario_number(&d.t, d.t.session, "/g/b", (uint64_t)i), i);
        ck_assert_int_eq(scenario_number(&d.t, d.t.session, "/e", (uint64_t)i), i);
    }
    repack("inline", NULL, NULL);
    scenario_collect(&d.t, 0);
    ck_assert_int_eq(dirs_fsck(&d).n, 0);
    ck_assert_int_eq((int)lie_elsewhere(), 0);
}

/* ---- rows of stored bytes -------------------------------- */

static const size_t small_sizes[] = { 100, 1000, 4096, 8400, 16384, 24576, 70000, 90000, 131072 };

/* The bytes that pages of `blob` have beyond all stored bytes, in thousandths of these. */
static int64_t waste(void)
{
    const int64_t stored = scenario_ask(&d.t, "SELECT sum(stored) FROM object WHERE backend=0");
    const int64_t pages = scenario_ask(&d.t, "SELECT sum(pgsize) FROM dbstat WHERE name='blob'");
    return 1000 * (pages - stored) / stored;
}

/* A commit for each chunk of so many random bytes. */
static void small_commits(size_t len, int n)
{
    const uint64_t shape = (uint64_t)n * len, chunk = len;
    brc_sel sel = BRC_SEL_INIT;
    uint64_t state = len;
    uint8_t *data = malloc(len);
    ck_assert_ptr_nonnull(data);
    brc_array *a = scenario_array(&d.t, "/small", "uint8", 1, &shape, &chunk, NULL, "[\"bytes\"]");
    sel.ndim = 1;
    sel.count[0] = len;
    sel.step[0] = 1;
    for (int i = 0; i < n; i++) {
        for (size_t k = 0; k < len; k++)
            data[k] = (uint8_t)scenario_random(&state);
        sel.start[0] = (uint64_t)i * len;
        OK(&d.t, brc_array_write(a, &sel, data, len, &d.t.err));
        scenario_commit(&d.t, "a small one");
    }
    brc_array_free(a);
    free(data);
}

static void check_small(size_t len, int n)
{
    uint64_t state = len;
    uint8_t *got = malloc(len * (size_t)n);
    ck_assert_ptr_nonnull(got);
    scenario_read(&d.t, d.t.session, "/small", got, len * (size_t)n);
    for (size_t k = 0; k < len * (size_t)n; k++)
        ck_assert(got[k] == (uint8_t)scenario_random(&state));
    free(got);
}

static int64_t blob_rows(void)
{
    return scenario_ask(&d.t, "SELECT count(*) FROM blob WHERE length(data)>0");
}

static void fill_start(void)
{
    dirs_start(&d);
    scenario_no_window(&d.t);
}

CASE("rows", .setup = fill_start, .teardown = repack_stop, .timeout = 240);

EACH(rows_of_small_commits_are_put_together, small_sizes)
{
    const size_t len = small_sizes[_i];
    const int n = 40;
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    brc_repack_report report = BRC_REPACK_REPORT_INIT, told = BRC_REPACK_REPORT_INIT;
    small_commits(len, n);
    scenario_collect(&d.t, 0);
    const brc_oid tip = scenario_id(&d.t, "main");
    const int64_t before = waste(), rows = blob_rows();
    opts.flags = BRC_REPACK_DRY_RUN;
    OK(&d.t, repack_with(&opts, &told));
    opts.flags = 0;
    OK(&d.t, repack_with(&opts, &report));
    ck_assert_uint_eq(told.rows, report.rows);
    ck_assert_uint_eq(told.objects, report.objects);
    ck_assert_uint_eq(told.bytes_before, report.bytes_before);
    ck_assert_uint_gt(report.rows, 1);
    const int64_t after = waste();
    if (len < 1000) /* one row, of which a page is not full */
        ck_assert_int_le((int)scenario_ask(&d.t, "SELECT (SELECT sum(pgsize) FROM dbstat WHERE"
                                                 " name='blob') - (SELECT sum(stored) FROM"
                                                 " object)"), 3 * 16384);
    else
        ck_assert_msg(after <= 100, "%zu bytes: %d permille before, %d after", len, (int)before,
                      (int)after);
    ck_assert_int_lt((int)after, (int)before);
    ck_assert_int_lt((int)blob_rows(), (int)rows);
    dirs_reopen(&d);
    check_small(len, n);
    OK(&d.t, repack_with(&opts, &report));
    ck_assert_uint_eq(report.rows, 0); /* there is nothing more to do */
    ck_assert_int_eq(dirs_fsck(&d).n, 0);
    ck_assert(scenario_same(tip, scenario_id(&d.t, "main")));
}

static int run_rows(void *ctx)
{
    victim *v = ctx;
    fault_vfs_register(&v->disk);
    dirs_open(&d, 0);
    open_with(NULL, FAULT_VFS_NAME);
    fault_vfs_kill(&v->disk, FAULT_CHANGES, v->moment);
    return repack_fails(NULL);
}

TEST(killed_while_rows_are_put_together)
{
    victim v = {.moment = 1};
    const int n = 12;
    uint64_t killed = 0;
    brc_buf whole = BRC_BUF_INIT;
    small_commits(9000, n);
    dirs_close(&d);
    OK(&d.t, brc_file_read(&whole, d.t.file, &d.t.err));
    for (;; v.moment += effort_step(3, 9), killed++) {
        const int survived = process_survives(run_rows, &v);
        dirs_open(&d, 0);
        check_small(9000, n);
        ck_assert_int_eq(dirs_fsck(&d).n, 0);
        ck_assert_int_eq(repack_fails(NULL), BRC_OK);
        check_small(9000, n);
        ck_assert_int_eq((int)blob_rows(), 1);
        dirs_close(&d);
        if (survived)
            break;
        ck_assert_int_eq(unlink(d.t.file), 0);
        OK(&d.t, brc_file_write(d.t.file, whole.data, whole.len, &d.t.err));
    }
    ck_assert_uint_ge(killed, 2);
    brc_buf_dispose(&whole);
    dirs_open(&d, 0);
}

/* ---- what lies where -------------------------------- */

/* Returns the facts of the backend with such a specification. */
static brc_backend_facts facts_of(uint32_t flags, const char *like, char *why, size_t size)
{
    brc_iter *it;
    const brc_backend_facts *one;
    brc_backend_facts found = {0};
    OK(&d.t, brc_backends(&it, d.t.repo, flags, &d.t.err));
    while (brc_next(it, &one, &d.t.err) == 1)
        if (strstr(one->backend_json, like) != NULL) {
            found = *one;
            snprintf(why, size, "%s", one->nfaults > 0 ? one->faults[0].why : "");
        }
    brc_iter_free(it);
    return found;
}

CASE("places", .setup = repack_start, .teardown = repack_stop);

TEST(backends_say_what_lies_there_and_what_is_missing)
{
    char why[400], path[512];
    brc_stats stats = BRC_STATS_INIT;
    brc_backend_facts facts = facts_of(0, "inline", why, sizeof(why));
    ck_assert_uint_eq(facts.places, 0);
    ck_assert_uint_eq(facts.objects,
                      (uint64_t)scenario_ask(&d.t, "SELECT count(*) FROM object WHERE backend=0"));
    facts = facts_of(BRC_BACKENDS_CHECK, "b.chunks", why, sizeof(why));
    ck_assert_uint_eq(facts.objects, CHUNKS);
    ck_assert_uint_eq(facts.nfaults, 0);
    dirs_files(&d, "b.chunks", path);
    ck_assert_int_eq(unlink(path), 0);
    dirs_reopen(&d);
    facts = facts_of(BRC_BACKENDS_CHECK, "b.chunks", why, sizeof(why));
    ck_assert_uint_eq(facts.nfaults, 1); /* each has a place of its own */
    repack_fails(PACK);
    facts = facts_of(BRC_BACKENDS_CHECK, "\"pack\"", why, sizeof(why));
    ck_assert_uint_eq(facts.objects, IN_ALL - 1);
    ck_assert_uint_eq(facts.bytes, (IN_ALL - 1) * CHUNK * 4);
    ck_assert_uint_eq(facts.places, 1);
    ck_assert_uint_eq(facts.nfaults, 0);
    OK(&d.t, brc_stat(d.t.repo, &stats, &d.t.err));
    ck_assert_uint_eq(stats.outside_chunks, IN_ALL);
    ck_assert_uint_eq(stats.outside_bytes, IN_ALL * CHUNK * 4);
}

/* Cut off, a pack exists and cannot be read; away, it is missing, which a quick look sees too. */
TEST(a_check_reads_what_a_look_finds)
{
    char why[400], path[512];
    repack(PACK, NULL, NULL);
    dirs_reopen(&d);
    dirs_files(&d, "test.brc.packs", path);
    ck_assert_int_eq(truncate(path, 100), 0);
    ck_assert_uint_eq(facts_of(0, "\"pack\"", why, sizeof(why)).nfaults, 0);
    ck_assert_uint_eq(facts_of(BRC_BACKENDS_CHECK, "\"pack\"", why, sizeof(why)).nfaults, 1);
    ck_assert_ptr_nonnull(strstr(why, "cut off"));
    ck_assert_int_eq(unlink(path), 0);
    dirs_reopen(&d);
    ck_assert_uint_eq(facts_of(BRC_BACKENDS_QUICK, "\"pack\"", why, sizeof(why)).nfaults, 1);
    ck_assert_ptr_nonnull(strstr(why, "is missing"));
    ck_assert_uint_eq(facts_of(0, "\"pack\"", why, sizeof(why)).nfaults, 1);
    FAILS(&d.t, BRC_EINVAL, brc_backends(&(brc_iter *){NULL}, d.t.repo, 64, &d.t.err));
}

/* A place that nothing needs any more may be gone. */
TEST(a_place_without_objects_is_not_missing)
{
    char why[400], path[512];
    repack(PACK, NULL, NULL);
    repack("inline", NULL, NULL);
    dirs_reopen(&d);
    dirs_files(&d, "test.brc.packs", path);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_uint_eq(facts_of(0, "\"pack\"", why, sizeof(why)).nfaults, 0);
    ck_assert_uint_eq(facts_of(BRC_BACKENDS_QUICK, "\"pack\"", why, sizeof(why)).nfaults, 0);
    scenario_collect(&d.t, 0);
    ck_assert_uint_eq(facts_of(BRC_BACKENDS_QUICK, "\"pack\"", why, sizeof(why)).nfaults, 0);
}
