/*
 * The collection of garbage, with somebody else at each of its pauses in turn: what he names then
 * is whole, or he is told that it is gone; when both are done, nothing is left that nobody names.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../../src/base/hash.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(gc_pauses);

/* More chunks than are marked between two pauses, so that there are some while it marks. */
enum { MANY = 4200, MOST_PAUSES = 400 };

static scenario base, work;
static brc_oid first_old, second_old; /* two commits that nothing names: child and parent */

/* Garbage: /b and /c in two commits of a branch that is gone. An uncommitted /late has /many of the
 * second, so it is marked late; an uncommitted /d is to be written to. */
static void pauses_setup(void)
{
    scenario_start(&base);
    scenario_no_window(&base);
    scenario_numbers(&base, "/a", 64, 4, 0);
    scenario_commit(&base, "main");
    brc_session *main = base.session, *side;
    OK(&base, brc_ref_create(base.repo, "side", NULL, NULL, 0, &base.err));
    OK(&base, brc_session_open(&side, base.repo, "side", BRC_SESSION_WRITE, &base.err));
    base.session = side;
    scenario_numbers(&base, "/b", 64, 4, 100000);
    first_old = scenario_commit(&base, "first on the side");
    scenario_set_number(&base, "/b", 0, 7);
    scenario_numbers(&base, "/c", 64, 4, 200000);
    scenario_numbers(&base, "/many", MANY, 1, 300000);
    second_old = scenario_commit(&base, "second on the side");
    base.session = main;
    brc_session_free(side);
    OK(&base, brc_node_restore(base.session, "/many", "side", &base.err));
    OK(&base, brc_node_move(base.session, "/many", "/late", 0, &base.err));
    scenario_numbers(&base, "/d", 64, 4, 400000);
    OK(&base, brc_ref_delete(base.repo, "side", BRC_DELETE_FORCE, &base.err));
    scenario_close(&base);
}

static void pauses_teardown(void)
{
    scenario_stop(&base);
}

/* ---- what the other does -------------------------------- */

static char *old_name(const brc_oid *id)
{
    static char hex[65];
    return brc_oid_format(hex, id);
}

static int is_gone(const scenario *o, int rc)
{
    ck_assert_msg(rc == BRC_OK || rc == BRC_ENOTFOUND || rc == BRC_ESTALE, "%s", o->err.message);
    return rc != BRC_OK;
}

static void numbers_are(scenario *t, brc_session *s, const char *path, int32_t zeroth,
                        int32_t first)
{
    int32_t got[64];
    brc_array *a = scenario_array_at(t, s, path);
    OK(t, brc_array_read(a, NULL, got, sizeof(got), &t->err));
    ck_assert_int_eq(got[0], zeroth);
    for (int32_t i = 1; i < 64; i++)
        ck_assert_int_eq(got[i], first + i);
    brc_array_free(a);
}

static void at_version(scenario *t, const char *rev, const char *path, int32_t zeroth,
                       int32_t first)
{
    brc_session *s = scenario_session(t, t->repo, rev, BRC_SESSION_AT);
    numbers_are(t, s, path, zeroth, first);
    brc_session_free(s);
}

static int tag_it(scenario *o)
{
    return is_gone(o, brc_ref_create(o->repo, "again", old_name(&second_old), NULL, BRC_REF_TAG,
                                     &o->err));
}

static void tag_is_whole(scenario *t)
{
    at_version(t, "again", "/b", 7, 100000);
    at_version(t, "again", "/c", 200000, 200000);
    at_version(t, "again~1", "/b", 100000, 100000);
}

static int restore_it(scenario *o)
{
    return is_gone(o, brc_node_restore(o->session, "/b", old_name(&second_old), &o->err));
}

static void b_is_restored(scenario *t)
{
    numbers_are(t, t->session, "/b", 7, 100000);
}

/* The chunks alone, in a row that has been looked at already. */
static int write_its_values(scenario *o)
{
    int32_t data[64];
    for (int32_t i = 0; i < 64; i++)
        data[i] = 100000 + i;
    scenario_write(o, o->session, "/d", data, sizeof(data));
    return 0;
}

static void d_has_its_values(scenario *t)
{
    numbers_are(t, t->session, "/d", 100000, 100000);
}

/* Named, and not any more when the collection looks. */
static int tag_and_untag(scenario *o)
{
    if (!tag_it(o))
        OK(o, brc_ref_delete(o->repo, "again", BRC_REF_TAG | BRC_DELETE_FORCE, &o->err));
    return 1;
}

static brc_oid forgotten;

static int commit_on_it_and_forget(scenario *o)
{
    scenario on = *o;
    memset(&forgotten, 0, sizeof(forgotten));
    if (is_gone(o, brc_ref_create(o->repo, "again", old_name(&second_old), NULL, 0, &o->err)))
        return 1;
    OK(&on, brc_session_open(&on.session, on.repo, "again", BRC_SESSION_WRITE, &on.err));
    scenario_set_number(&on, "/c", 0, 8);
    forgotten = scenario_commit(&on, "over it");
    brc_session_free(on.session);
    OK(o, brc_ref_delete(o->repo, "again", BRC_DELETE_FORCE, &o->err));
    return 1;
}

/* A forgotten commit that can still be named is whole. */
static void forgotten_is_whole_or_gone(scenario *o)
{
    char parent[80];
    brc_oid id;
    if (brc_oid_is_zero(&forgotten) ||
        is_gone(o, brc_resolve(&id, o->repo, old_name(&forgotten), &o->err)))
        return;
    at_version(o, old_name(&forgotten), "/c", 8, 200000);
    at_version(o, old_name(&forgotten), "/b", 7, 100000);
    snprintf(parent, sizeof(parent), "%s~2", old_name(&forgotten));
    at_version(o, parent, "/b", 100000, 100000);
}

static int commit_on_it(scenario *o)
{
    scenario on = *o;
    if (is_gone(o, brc_ref_create(o->repo, "again", old_name(&second_old), NULL, 0, &o->err)))
        return 1;
    OK(&on, brc_session_open(&on.session, on.repo, "again", BRC_SESSION_WRITE, &on.err));
    scenario_set_number(&on, "/c", 0, 8);
    scenario_commit(&on, "over it");
    brc_session_free(on.session);
    return 0;
}

static void branch_is_whole(scenario *t)
{
    at_version(t, "again", "/c", 8, 200000);
    at_version(t, "again~1", "/c", 200000, 200000);
    at_version(t, "again~2", "/b", 100000, 100000);
}

/* A new root: what the collection was about to do, it begins again. */
static void disturb(scenario *o)
{
    OK(o, brc_attrs_set(o->session, "/d", "n", "1", &o->err));
}

static int discard_all(scenario *o)
{
    OK(o, brc_session_discard(o->session, &o->err));
    return 1;
}

static const struct {
    const char *name;
    int (*act)(scenario *o);    /* 1: there is nothing to check */
    void (*check)(scenario *t);
    void (*later)(scenario *o); /* at the pauses behind it; then the one before it is disturbed */
    int drops_draft;
} acts[] = {
    {"tag", tag_it, tag_is_whole, NULL, 0},
    {"restore", restore_it, b_is_restored, NULL, 0},
    {"write", write_its_values, d_has_its_values, NULL, 0},
    {"tag and untag", tag_and_untag, NULL, NULL, 0},
    {"commit on it and forget", commit_on_it_and_forget, NULL,
     forgotten_is_whole_or_gone, 0},
    {"commit on it", commit_on_it, branch_is_whole, NULL, 0},
    {"discard", discard_all, NULL, NULL, 1},
};
enum { ACTS = sizeof(acts) / sizeof(acts[0]) };

/* ---- the pauses -------------------------------- */

static struct {
    int act, at, n, is_done, is_nothing, stops;
} pausing;

static int on_pause(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    scenario other = {.repo = NULL};
    (void)ctx, (void)phase, (void)done, (void)total;
    const int n = pausing.n++ - pausing.at, now = n == 0;
    if (!now && (acts[pausing.act].later == NULL || n < -1 || n > 3))
        return 0;
    memcpy(other.file, work.file, sizeof(other.file));
    scenario_open(&other, NULL, 0);
    if (now)
        pausing.is_nothing = acts[pausing.act].act(&other);
    else if (n < 0)
        disturb(&other);
    else
        acts[pausing.act].later(&other);
    scenario_close(&other);
    pausing.is_done |= n >= 0;
    return now && pausing.stops;
}

static void work_begins(int act, int at, int stops)
{
    brc_buf all = BRC_BUF_INIT;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    memset(&pausing, 0, sizeof(pausing));
    pausing.act = act;
    pausing.at = at;
    pausing.stops = stops;
    work = base;
    work.repo = NULL;
    snprintf(work.file, sizeof(work.file), "%s/work.brc", base.dir);
    unlink(work.file);
    OK(&base, brc_file_read(&all, base.file, &base.err));
    OK(&base, brc_file_write(work.file, all.data, all.len, &base.err));
    brc_buf_dispose(&all);
    opts.progress = on_pause;
    scenario_open(&work, &opts, 0);
}

static void work_is_right(int act)
{
    numbers_are(&work, work.session, "/a", 0, 0);
    if (!acts[act].drops_draft)
        ck_assert_int_eq(scenario_number(&work, work.session, "/late", MANY - 1),
                         300000 + MANY - 1);
    if (!pausing.is_nothing)
        acts[act].check(&work);
}

/* 0: there are not so many pauses. */
static int collect_with_pause(int act, int at, int stops)
{
    brc_gc_report report = BRC_GC_REPORT_INIT;
    brc_gc_opts dry = BRC_GC_OPTS_INIT;
    dry.flags = BRC_GC_DRY_RUN;
    work_begins(act, at, stops);
    const int rc = brc_gc(work.repo, NULL, NULL, &work.err);
    ck_assert_msg(rc == BRC_OK || (stops && pausing.is_done && rc == BRC_EINTERRUPT),
                  "%s at pause %d: %s", acts[act].name, at, work.err.message);
    if (pausing.is_done) {
        brc_interrupt(work.repo, 0);
        work_is_right(act);
        scenario_whole(&work);
        OK(&work, brc_gc(work.repo, NULL, NULL, &work.err));
        work_is_right(act);
        OK(&work, brc_gc(work.repo, &dry, &report, &work.err));
        ck_assert_uint_eq(report.objects_removed, 0);
    }
    scenario_close(&work);
    return pausing.is_done;
}

CASE("pauses", .setup_once = pauses_setup, .teardown_once = pauses_teardown, .timeout = 300);

LOOP(whatever_others_do_at_a_pause, 0, 2 * ACTS)
{
    const int act = _i / 2, stops = _i % 2;
    int at = 0;
    while (at < MOST_PAUSES && collect_with_pause(act, at, stops))
        at += 1 + stops;
    ck_assert_int_ge(at, 8);
    ck_assert_int_lt(at, MOST_PAUSES);
}
