/*
 * The collection of garbage: DESIGN, decision 7, sentence by sentence. What others do in the middle
 * of it they do in its progress function, which is called between its steps.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kit/hook_codec.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(gc);

static scenario t;
static brc_registry *reg;

/* The function that is called between the steps of t.repo's calls. */
static brc_progress_fn between;
static void *between_ctx;

static int dispatch(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    (void)ctx;
    return between != NULL ? between(between_ctx, phase, done, total) : 0;
}

static void set_between(brc_progress_fn fn, void *ctx)
{
    between = fn;
    between_ctx = ctx;
}

static void gc_open(uint32_t flags)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.registry = reg;
    opts.progress = dispatch;
    scenario_open(&t, &opts, flags);
}

static void gc_setup(void)
{
    between = NULL;
    scenario_folder(&t);
    reg = hook_registry(&t.err);
    gc_open(BRC_OPEN_CREATE);
    scenario_numbers(&t, "/a", 64, 4, 0);
    scenario_commit(&t, "first");
}

static void gc_teardown(void)
{
    scenario_whole(&t);
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM object WHERE backend=0 AND"
                                           " place NOT IN (SELECT seq FROM blob)"), 0);
    scenario_stop(&t);
    brc_registry_free(reg);
}

static uint64_t collect_with(uint32_t flags, size_t memory)
{
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    brc_gc_report report = BRC_GC_REPORT_INIT;
    opts.flags = flags;
    opts.memory = memory;
    OK(&t, brc_gc(t.repo, &opts, &report, &t.err));
    return report.objects_removed;
}

static uint64_t collect(void)
{
    return collect_with(0, 0);
}

static int64_t objects(void)
{
    return scenario_ask(&t, "SELECT count(*) FROM object");
}

/* Another handle on the file, as another process would have it. */
static breccia *another(void)
{
    breccia *repo;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.registry = reg;
    OK(&t, brc_open(&repo, t.file, &opts, &t.err));
    return repo;
}

/* A commit on branch side with an array /b of its own, and the branch gone again: garbage. */
static brc_oid make_garbage(int32_t first)
{
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    brc_session *s = scenario_session(&t, t.repo, "side", BRC_SESSION_WRITE);
    brc_session *main = t.session;
    t.session = s;
    scenario_numbers(&t, "/b", 64, 4, first);
    const brc_oid id = scenario_commit(&t, "on the side");
    t.session = main;
    brc_session_free(s);
    OK(&t, brc_ref_delete(t.repo, "side", BRC_DELETE_FORCE, &t.err));
    return id;
}

static char *hex_of(const brc_oid *id)
{
    static char hex[65];
    return brc_oid_format(hex, id);
}

/* Every element of /b at a version. */
static void b_is_whole(const char *rev, int32_t first)
{
    brc_session *s = scenario_session(&t, t.repo, rev, BRC_SESSION_AT);
    for (uint64_t i = 0; i < 64; i++)
        ck_assert_int_eq(scenario_number(&t, s, "/b", i), first + (int32_t)i);
    brc_session_free(s);
}

CASE("decision 7", .setup = gc_setup, .teardown = gc_teardown, .timeout = 120);

/* ---- roots ---------------------------------------------------------------- */

TEST(what_nothing_reaches_goes_and_all_else_stays)
{
    const int64_t before = objects();
    const brc_oid id = make_garbage(1000);
    scenario_no_window(&t);
    ck_assert_int_gt(objects(), before);
    collect();
    ck_assert_int_le(objects(), before);
    ck_assert(!scenario_has_commit(&t, &id));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 63), 63);
    ck_assert_int_eq((int)collect(), 0);
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM gc"), 0);
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM gc_kept"), 0);
}

TEST(roots_are_refs_the_log_s_window_live_drafts_and_pins)
{
    const brc_oid id = make_garbage(1000);
    collect();
    ck_assert(scenario_has_commit(&t, &id)); /* the log has it */
    OK(&t, brc_ref_create(t.repo, "v1", hex_of(&id), NULL, BRC_REF_TAG, &t.err));
    scenario_no_window(&t);
    collect();
    b_is_whole("v1", 1000); /* a tag */
    OK(&t, brc_reset(t.repo, NULL, "v1", 0, NULL, &t.err));
    brc_session *s; /* a draft over it */
    OK(&t, brc_session_open(&s, t.repo, NULL, BRC_SESSION_PRIVATE, &t.err));
    brc_session *main = t.session;
    t.session = s;
    scenario_set_number(&t, "/b", 0, 1000000);
    OK(&t, brc_reset(t.repo, NULL, "HEAD~1", 0, NULL, &t.err));
    OK(&t, brc_ref_delete(t.repo, "v1", BRC_REF_TAG | BRC_DELETE_FORCE, &t.err));
    collect();
    ck_assert(scenario_has_commit(&t, &id));
    ck_assert_int_eq(scenario_number(&t, s, "/b", 0), 1000000);
    ck_assert_int_eq(scenario_number(&t, s, "/b", 63), 1063);
    t.session = main;
    brc_session_free(s);
}

TEST(the_window_is_also_the_last_1000_entries)
{
    const brc_oid id = make_garbage(1000);
    scenario_sql(&t, "UPDATE oplog SET time_us=1; UPDATE oplog SET checksum=row_sum('oplog', seq,"
                     " time_us, op, name, old, new, first, undoes, restores, draft)");
    collect();
    ck_assert(scenario_has_commit(&t, &id));
    for (int i = 0; i < 500; i++) { /* two entries each */
        OK(&t, brc_ref_create(t.repo, "x", NULL, NULL, BRC_REF_TAG, &t.err));
        OK(&t, brc_ref_delete(t.repo, "x", BRC_REF_TAG | BRC_DELETE_FORCE, &t.err));
    }
    scenario_sql(&t, "UPDATE oplog SET time_us=1; UPDATE oplog SET checksum=row_sum('oplog', seq,"
                     " time_us, op, name, old, new, first, undoes, restores, draft)");
    collect();
    ck_assert(!scenario_has_commit(&t, &id));
}

TEST(drafts_that_the_dead_have_left_go)
{
    const pid_t pid = fork();
    if (pid == 0) {
        brc_session *s;
        t.repo = another();
        if (brc_session_open(&s, t.repo, NULL, BRC_SESSION_PRIVATE, &t.err) < 0)
            _exit(1);
        t.session = s;
        scenario_numbers(&t, "/left", 64, 4, 5000);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    scenario_set_number(&t, "/a", 1, 77);
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM draft WHERE kind=2"), 1);
    ck_assert_uint_gt(collect(), 15);
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM draft WHERE kind=2"), 0);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 77);
}

TEST(the_mark_set_has_a_memory_budget)
{
    scenario_no_window(&t);
    make_garbage(1000);
    const uint64_t most = collect_with(BRC_GC_DRY_RUN, 0);
    ck_assert_uint_gt(most, 17);
    ck_assert_uint_eq(collect_with(BRC_GC_DRY_RUN, 1), most); /* 64 ids: several passes */
    scenario_numbers(&t, "/more", 1024, 4, 20000);
    scenario_commit(&t, "more");
    ck_assert_uint_eq(collect_with(0, 1), most);
    ck_assert_int_eq(scenario_number(&t, t.session, "/more", 1023), 21023);
}

TEST(a_dry_run_counts_and_changes_nothing)
{
    scenario_no_window(&t);
    make_garbage(1000);
    const int64_t before = objects();
    const uint64_t would = collect_with(BRC_GC_DRY_RUN, 0);
    ck_assert_int_eq(objects(), before);
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM sqlite_schema WHERE name='gc'"),
                     0);
    ck_assert_uint_eq(collect(), would);
    ck_assert_int_eq(objects(), before - (int64_t)would);
}

/* ---- others meanwhile -------------------------------- */

static void (*act)(breccia *repo);
static int acted;

static int run_act(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    (void)ctx, (void)phase, (void)done, (void)total;
    if (acted || act == NULL || scenario_ask(&t, "SELECT count(*) FROM gc WHERE phase=2") == 0)
        return 0;
    acted = 1;
    breccia *other = another();
    act(other);
    brc_free(other);
    return 0;
}

/* Does it when the first objects have been removed. */
static uint64_t collect_beside(void (*what)(breccia *repo))
{
    act = what;
    acted = 0;
    set_between(run_act, NULL);
    const uint64_t n = collect();
    set_between(NULL, NULL);
    act = NULL;
    ck_assert_int_eq(acted, 1);
    return n;
}

static void write_b_again(breccia *repo)
{
    const scenario was = t;
    t.repo = repo;
    OK(&t, brc_session_open(&t.session, repo, NULL, BRC_SESSION_WRITE, &t.err));
    scenario_numbers(&t, "/b", 64, 4, 1000);
    scenario_commit(&t, "the same again");
    brc_session_free(t.session);
    t = was;
}

TEST(an_object_that_is_met_again_after_the_mark_is_kept)
{
    scenario_no_window(&t);
    make_garbage(1000);
    collect_beside(write_b_again);
    b_is_whole("main", 1000);
}

static brc_oid old;

static void tag_old(breccia *repo)
{
    brc_error err = BRC_ERROR_INIT;
    const int rc = brc_ref_create(repo, "late", hex_of(&old), NULL, BRC_REF_TAG, &err);
    ck_assert_msg(rc == BRC_ENOTFOUND || rc == BRC_ESTALE, "%s", err.message);
}

TEST(an_old_root_is_refused_when_it_is_gone)
{
    scenario_no_window(&t);
    old = make_garbage(1000);
    collect_beside(tag_old);
}

/* Before the first step: the row is there, and it marks. */
static int tag_while_it_marks(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    (void)ctx, (void)phase, (void)done, (void)total;
    if (acted || scenario_ask(&t, "SELECT count(*) FROM sqlite_schema WHERE name='gc'") == 0 ||
        scenario_ask(&t, "SELECT count(*) FROM gc WHERE phase=1") == 0)
        return 0;
    acted = 1;
    breccia *other = another();
    OK(&t, brc_ref_create(other, "late", hex_of(&old), NULL, BRC_REF_TAG, &t.err));
    brc_free(other);
    return 0;
}

TEST(a_root_that_names_an_old_version_has_its_closure_marked)
{
    scenario_no_window(&t);
    old = make_garbage(1000);
    acted = 0;
    set_between(tag_while_it_marks, NULL);
    collect();
    set_between(NULL, NULL);
    ck_assert_int_eq(acted, 1);
    b_is_whole("late", 1000);
}

static void collect_in_the_middle(void *ctx)
{
    brc_gc_report report = BRC_GC_REPORT_INIT;
    breccia *other = another();
    OK(&t, brc_gc(other, NULL, &report, &t.err));
    ck_assert_uint_gt(report.objects_removed, 0);
    brc_free(other);
    (void)ctx;
}

#define HOOKED                                                                                \
    "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}," HOOK_CODEC                \
    ",{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]"

/* A write has found its chunks among garbage, which goes before it stores them. */
TEST(a_hit_counts_only_in_the_transaction_that_names_it)
{
    static const uint64_t shape[] = { 64 }, chunk[] = { 32 };
    int32_t numbers[64];
    brc_sel sel = BRC_SEL_INIT;
    scenario_no_window(&t);
    for (int i = 0; i < 64; i++)
        numbers[i] = 90000 + i / 32;
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    brc_session *s, *main = t.session;
    OK(&t, brc_session_open(&s, t.repo, "side", BRC_SESSION_WRITE, &t.err));
    t.session = s;
    brc_array *a = scenario_array(&t, "/h", "int32", 1, shape, chunk, NULL,
                                  HOOKED);
    sel_all(&sel, a);
    OK(&t, brc_array_write(a, &sel, numbers, sizeof(numbers), &t.err));
    scenario_commit(&t, "on the side");
    brc_array_free(a);
    brc_session_free(s);
    t.session = main;
    OK(&t, brc_ref_delete(t.repo, "side", BRC_DELETE_FORCE, &t.err));
    a = scenario_array(&t, "/h", "int32", 1, shape, chunk, NULL,
                       HOOKED);
    /* Known ones of this size are compared: they are decoded when they have been looked up. */
    hook_decode(collect_in_the_middle, NULL, 1);
    OK(&t, brc_array_write(a, &sel, numbers, sizeof(numbers), &t.err));
    ck_assert_int_gt(hook_calls(), 0);
    brc_array_free(a);
    for (uint64_t i = 0; i < 64; i++)
        ck_assert_int_eq(scenario_number(&t, t.session, "/h", i), 90000 + (int32_t)(i / 32));
}

static int stop_soon(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    (void)phase, (void)done, (void)total;
    return scenario_ask(&t, "SELECT count(*) FROM sqlite_schema WHERE name='gc'") > 0 &&
           scenario_ask(&t, "SELECT count(*) FROM gc WHERE phase=2") > 0 && --*(int *)ctx <= 0;
}

TEST(it_is_interrupted_and_gone_on_with)
{
    scenario_no_window(&t);
    make_garbage(1000);
    const uint64_t all = collect_with(BRC_GC_DRY_RUN, 0);
    brc_gc_report report = BRC_GC_REPORT_INIT;
    int steps = 1;
    set_between(stop_soon, &steps);
    FAILS(&t, BRC_EINTERRUPT, brc_gc(t.repo, NULL, &report, &t.err));
    ck_assert_ptr_nonnull(strstr(t.err.message, "the next gc continues"));
    set_between(NULL, NULL);
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM gc WHERE owner=''"), 1);
    scenario_whole(&t);
    ck_assert_uint_lt(report.objects_removed, all);
    ck_assert_uint_eq(collect() + report.objects_removed, all);
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM gc"), 0);
}

static void collect_too(breccia *repo)
{
    brc_error err = BRC_ERROR_INIT;
    ck_assert_int_eq(brc_gc(repo, NULL, NULL, &err), BRC_EBUSY);
    ck_assert_ptr_nonnull(strstr(err.message, "collecting garbage already"));
}

TEST(of_two_at_once_the_second_says_so)
{
    scenario_no_window(&t);
    make_garbage(1000);
    ck_assert_uint_gt(collect_beside(collect_too), 0);
}

/* ---- stored bytes -------------------------------- */

TEST(survivors_of_a_half_empty_row_move_and_seq_is_never_used_again)
{
    scenario_inline(&t);
    scenario_no_window(&t);
    brc_session *s, *main = t.session;
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    OK(&t, brc_session_open(&s, t.repo, "side", BRC_SESSION_WRITE, &t.err));
    t.session = s;
    scenario_numbers(&t, "/m", 1024, 4, 70000); /* chunks that share rows */
    scenario_commit(&t, "many");
    brc_session_free(s);
    t.session = main;
    /* 10 of its chunks are needed elsewhere. */
    scenario_numbers(&t, "/few", 40, 4, 70000);
    scenario_commit(&t, "few of them");
    OK(&t, brc_ref_delete(t.repo, "side", BRC_DELETE_FORCE, &t.err));
    const int64_t last = scenario_ask(&t, "SELECT max(seq) FROM blob");
    const int64_t row = scenario_ask(&t, "SELECT place FROM object WHERE kind=1 GROUP BY place"
                                         " ORDER BY count(*) DESC LIMIT 1");
    char sql[100];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM blob WHERE seq=%d AND length(data)>0",
             (int)row);
    ck_assert_int_eq((int)scenario_ask(&t, sql), 1);
    ck_assert_uint_gt(collect(), 240);
    ck_assert_int_eq((int)scenario_ask(&t, sql), 0); /* the survivors have moved */
    ck_assert_int_gt(scenario_ask(&t, "SELECT max(seq) FROM blob"), last);
    for (uint64_t i = 0; i < 40; i++)
        ck_assert_int_eq(scenario_number(&t, t.session, "/few", i), 70000 + (int32_t)i);
    (void)scenario_unused(&t);
}

static void expunged(const char *journal)
{
    static const uint64_t shape[] = { 100000 }, chunk[] = { 50000 };
    static const char secret[] = "this is not to be found any more, by anybody";
    static uint8_t data[100000];
    uint64_t random = 1;
    brc_sel sel = BRC_SEL_INIT;
    scenario_no_window(&t);
    OK(&t, brc_config_set(t.repo, "journal", journal, &t.err));
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)scenario_random(&random);
    memcpy(data + 30000, secret, sizeof(secret));
    memcpy(data + 80000, secret, sizeof(secret));
    brc_array *a = scenario_array(&t, "/s", "uint8", 1, shape, chunk, NULL,
                                  "[{\"name\":\"bytes\"}]");
    sel_all(&sel, a);
    OK(&t, brc_array_write(a, &sel, data, sizeof(data), &t.err));
    brc_array_free(a);
    OK(&t, brc_attrs_set(t.session, "/s", "note",
                         "\"this is not to be found any more, by anybody\"", &t.err));
    ck_assert(store_kit_holds(t.file, secret, 20));
    OK(&t, brc_session_discard(t.session, &t.err));
    collect_with(BRC_GC_EXPUNGE, 0);
    ck_assert(!store_kit_holds(t.file, secret, 20));
    ck_assert(!store_kit_holds(t.file, data + 40000, 20));
    ck_assert_int_eq((int)scenario_ask(&t, "PRAGMA freelist_count"), 0);
}

TEST(expunged_bytes_leave_the_file)
{
    expunged("rollback");
}

TEST(expunged_bytes_leave_the_log_too)
{
    expunged("wal");
}

TEST(damage_stops_it_before_anything_goes)
{
    scenario_no_window(&t);
    make_garbage(1000);
    scenario_sql(&t, "DELETE FROM object WHERE kind=3"); /* of the commit's maps, too */
    const int64_t before = objects();
    brc_gc_report report = BRC_GC_REPORT_INIT;
    scenario_close(&t);
    gc_open(0);
    const int rc = brc_gc(t.repo, NULL, &report, &t.err);
    ck_assert_int_eq(rc, BRC_ECORRUPT);
    ck_assert_int_eq(objects(), before);
    scenario_stop(&t); /* it is not whole */
    brc_registry_free(reg);
    gc_setup();
}
