/*
 * A process is killed before each system call that changes a file or a folder or sends something,
 * while it puts chunks into a backend, moves them, or collects garbage there. Then the array has
 * its values from before the call or after it, no fault is found, the call can be made again, and
 * what the dead process has put and no row names is collected.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/file.h"
#include "../kit/dirs_kit.h"
#include "../kit/effort.h"
#include "../kit/process_kit.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(backend_killed);

static dirs d;
static const family *f;

/* ---- what is done -------------------------------- */

/* An act that is done again may change nothing. */
static void commit_changes(void)
{
    if (!scenario_clean(&d.t))
        scenario_commit(&d.t, "changed");
}

static void put_and_commit(int32_t first)
{
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    dirs_put(&d, a, first);
    brc_array_free(a);
    commit_changes();
}

static void move_to(const char *backend)
{
    static const char big[] = "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]";
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    OK(&d.t, brc_array_set_backend(a, backend, &d.t.err));
    OK(&d.t, brc_array_set_codecs(a, big, 1, &d.t.err));
    brc_array_free(a);
    commit_changes();
}

static void expire_and_collect(void)
{
    brc_expire_opts rules = BRC_EXPIRE_OPTS_INIT;
    rules.keep_last = 1;
    OK(&d.t, brc_expire(NULL, NULL, d.t.repo, &rules, &d.t.err));
    OK(&d.t, brc_gc(d.t.repo, NULL, NULL, &d.t.err));
}

/* Nothing lies outside of the file. */
static void prepare_inline(void)
{
    brc_array_free(dirs_new(&d, "/a", NULL));
    put_and_commit(100);
}

static void prepare_outside(void)
{
    brc_array_free(dirs_new(&d, "/a", f->a));
    put_and_commit(100);
}

/* Most of what lies outside belongs to versions that will be removed. */
static void prepare_garbage(void)
{
    prepare_outside();
    for (int i = 2; i < 5; i++) {
        brc_array *a = dirs_array(&d, d.t.session, "/a");
        dirs_put(&d, a, 1000 * i);
        dirs_put_chunk(&d, a, (uint64_t)i, -i);
        brc_array_free(a);
        scenario_commit(&d.t, "old");
    }
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    OK(&d.t, brc_array_set_backend(a, INLINE, &d.t.err));
    for (uint64_t i = 0; i < CHUNKS - 2; i++)
        dirs_put_chunk(&d, a, i, 7);
    brc_array_free(a);
    scenario_commit(&d.t, "inline");
}

static void act_put_first(void)
{
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    OK(&d.t, brc_array_set_backend(a, f->a, &d.t.err));
    brc_array_free(a);
    put_and_commit(500);
}

static void act_put_more(void)
{
    put_and_commit(500);
}

static void act_move_out(void)
{
    move_to(f->a);
}

static void act_move_in(void)
{
    move_to(INLINE);
}

static void act_move_over(void)
{
    move_to(f->b);
}

static const struct {
    const char *name;
    void (*prepare)(void), (*act)(void);
} acts[] = {
    { "the first put", prepare_inline, act_put_first },
    { "a later put", prepare_outside, act_put_more },
    { "a move out of the file", prepare_inline, act_move_out },
    { "a move into the file", prepare_outside, act_move_in },
    { "a move to another configuration", prepare_outside, act_move_over },
    { "a collection", prepare_garbage, expire_and_collect },
};
enum { ACTS = sizeof(acts) / sizeof(acts[0]) };

/* ---- a folder and a bucket that are made anew for each death -------------------------------- */

static char base[256], work[256];

/* The file stays the same one: a bucket knows its writer by it. */
static void start_anew(void)
{
    char command[1200];
    snprintf(command, sizeof(command),
             "find '%s' -mindepth 1 -maxdepth 1 ! -name test.brc -exec rm -rf {} + &&"
             " cp -a '%s/.' '%s'",
             work, base, work);
    ck_assert_int_eq(system(command), 0);
    s3_server_restore(dirs_server());
}

static void make_base(int act)
{
    char command[800];
    dirs_start(&d);
    scenario_no_window(&d.t);
    acts[act].prepare();
    dirs_close(&d);
    snprintf(work, sizeof(work), "%s", d.t.dir);
    snprintf(base, sizeof(base), "%s.base", d.t.dir);
    snprintf(command, sizeof(command), "cp -a '%s' '%s'", work, base);
    ck_assert_int_eq(system(command), 0);
    s3_server_keep(dirs_server());
}

static void remove_base(void)
{
    brc_tree_remove(base);
    dirs_stop(&d);
}

static int do_act(void *ctx)
{
    const int *act = ctx;
    dirs_open(&d, 0);
    acts[*act].act();
    dirs_close(&d);
    return 0;
}

/* ---- what is found -------------------------------- */

static void read_values(int32_t out[N])
{
    brc_array *a = dirs_array(&d, d.t.session, "/a");
    OK(&d.t, brc_array_read(a, NULL, out, N * sizeof(*out), &d.t.err));
    brc_array_free(a);
}

static void look(const char *what, uint64_t n, int32_t values[N])
{
    dirs_open(&d, 0);
    read_values(values);
    const finding found = dirs_fsck(&d);
    ck_assert_msg(found.n == 0, "%s, killed at %d: %s", what, (int)n, found.text);
    dirs_close(&d);
}

/* Each pack in the bucket has an object that a row names. Other backends are looked at by gc_strays
 * and pack. */
static void check_bucket(const char *what)
{
    if (strcmp(f->name, "s3") != 0)
        return;
    scenario_collect_held(&d.t);
    const int packs = s3_server_objects(dirs_server(), "");
    const int named = (int)scenario_ask(
        &d.t, "SELECT count(DISTINCT place) FROM object WHERE backend<>0");
    ck_assert_msg(packs == named, "%s: %d packs, and %d of them are named", what, packs, named);
}

/* The act succeeds after the death of its process, and what it left behind can be collected. */
static void go_on(int act, const int32_t after[N])
{
    int32_t now[N];
    do_act((void *)&act);
    dirs_open(&d, 0);
    expire_and_collect();
    OK(&d.t, brc_gc(d.t.repo, NULL, NULL, &d.t.err));
    check_bucket(acts[act].name);
    dirs_close(&d);
    look(acts[act].name, 0, now);
    ck_assert_mem_eq(now, after, N * sizeof(*now));
}

CASE("killed", .timeout = UNTIMED);

LOOP(whenever_it_is_killed_no_chunk_is_lost, 0, FAMILIES * ACTS)
{
    const uint64_t each = effort_step(5, 20);
    const int act = _i % ACTS;
    int32_t before[N], after[N], now[N];
    uint64_t n = 1 + (uint64_t)_i % each, killed = 0;
    f = &families[_i / ACTS];
    make_base(act);
    look(acts[act].name, 0, before);
    do_act((void *)&act);
    look(acts[act].name, 0, after);
    for (start_anew(); !process_survives_calls(do_act, (void *)&act, n); n += each, start_anew()) {
        look(acts[act].name, n, now);
        ck_assert_msg(memcmp(now, before, sizeof(now)) == 0 || memcmp(now, after, sizeof(now)) == 0,
                      "%s, killed at %d: a part of it is visible", acts[act].name, (int)n);
        if (killed++ % 3 == 0)
            go_on(act, after);
    }
    ck_assert_uint_ge(killed, 15 / each);
    remove_base();
}
