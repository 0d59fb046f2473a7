/* The sizes of arrays and commits, against sets of ids that come from walking each by itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/history/closure.h"
#include "../../src/work/session.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(usage);

SCENARIO_FIXTURE(t)
static uint64_t state;

static void usage_setup(void)
{
    scenario_start(&t);
    state = 7;
}

/* ---- sets -------------------------------- */

typedef struct id_set {
    char name[200]; /* a path, or a commit's id */
    brc_oid *ids;
    size_t n;
} id_set;

static void set_put(id_set *set, const brc_oid *id)
{
    if (brc_oid_is_zero(id))
        return;
    for (size_t i = 0; i < set->n; i++)
        if (memcmp(&set->ids[i], id, sizeof(*id)) == 0)
            return;
    set->ids = realloc(set->ids, (set->n + 1) * sizeof(*id));
    ck_assert_ptr_nonnull(set->ids);
    set->ids[set->n++] = *id;
}

static int set_has(const id_set *set, const brc_oid *id)
{
    for (size_t i = 0; i < set->n; i++)
        if (memcmp(&set->ids[i], id, sizeof(*id)) == 0)
            return 1;
    return 0;
}

static uint64_t stored_of(const brc_oid *id)
{
    brc_object o = {.id = *id}, *one = &o;
    OK(&t, brc_objects_find(t.repo->store, &one, 1, &t.err));
    ck_assert(o.found);
    return o.stored;
}

static void set_take(id_set *set, brc_closure *walk)
{
    brc_closure_step at;
    while (brc_closure_next(walk, &at, &t.err) > 0) {
        if (at.what == BRC_AT_NODE)
            set_put(set, &at.node.id);
        else if (at.what == BRC_AT_CHUNK)
            set_put(set, &at.node.chunk);
        if (at.what == BRC_AT_ENTRY) {
            set_put(set, &at.node.entry.doc);
            set_put(set, &at.node.entry.storage);
        }
    }
}

static id_set sets[200];
static size_t nsets;

static id_set *set_of(const char *name)
{
    for (size_t i = 0; i < nsets; i++)
        if (strcmp(sets[i].name, name) == 0)
            return &sets[i];
    memset(&sets[nsets], 0, sizeof(sets[0]));
    snprintf(sets[nsets].name, sizeof(sets[0].name), "%s", name);
    return &sets[nsets++];
}

static void sets_free(void)
{
    while (nsets > 0)
        free(sets[--nsets].ids);
}

/* Arrays of one version, each with the set of its path. */
static void take_arrays(const brc_oid *root)
{
    brc_iter *it;
    const brc_node *node;
    (void)root;
    brc_session *s = scenario_session(&t, t.repo, sets[0].name, BRC_SESSION_AT);
    OK(&t, brc_list(&it, s, "/", BRC_LIST_RECURSE, &t.err));
    while (brc_next(it, &node, &t.err) > 0) {
        brc_entry entry;
        brc_closure *walk;
        if (node->kind != BRC_ARRAY)
            continue;
        id_set *set = set_of(node->path);
        OK(&t, brc_snapshot_find(t.repo->store, root, node->path, &entry, &t.err));
        set_put(set, &entry.doc);
        set_put(set, &entry.storage);
        OK(&t, brc_closure_new(&walk, t.repo->store, 0, &t.err));
        OK(&t, brc_closure_entry(walk, node->path, &entry, &t.err));
        set_take(set, walk);
        brc_closure_free(walk);
    }
    brc_iter_free(it);
    brc_session_free(s);
}

/* Every commit that a version reaches, into sets by id; arrays: into sets by path instead. */
static void take_versions(const char *rev, int arrays)
{
    brc_iter *it;
    const brc_commit *c;
    char hex[65];
    OK(&t, brc_log(&it, t.repo, rev, NULL, &t.err));
    while (brc_next(it, &c, &t.err) > 0) {
        brc_closure *walk;
        if (arrays) {
            snprintf(sets[0].name, sizeof(sets[0].name), "%s", brc_oid_format(hex, &c->id));
            take_arrays(&c->root);
            continue;
        }
        id_set *set = set_of(brc_oid_format(hex, &c->id));
        set_put(set, &c->id);
        OK(&t, brc_closure_new(&walk, t.repo->store, 0, &t.err));
        OK(&t, brc_closure_snapshot(walk, &c->root, &t.err));
        set_take(set, walk);
        brc_closure_free(walk);
    }
    brc_iter_free(it);
}

static void compare_item(const brc_du_item *item)
{
    char hex[65];
    uint64_t bytes = 0, alone = 0;
    const id_set *set = set_of(item->path != NULL ? item->path : brc_oid_format(hex, &item->id));
    ck_assert_uint_gt(set->n, 0);
    for (size_t i = 0; i < set->n; i++) {
        int others = 0;
        for (size_t k = 0; k < nsets; k++)
            others |= &sets[k] != set && set_has(&sets[k], &set->ids[i]);
        bytes += stored_of(&set->ids[i]);
        alone += others ? 0 : stored_of(&set->ids[i]);
    }
    ck_assert_msg(bytes == item->bytes && alone == item->alone,
                  "%s: %llu and %llu, not %llu and %llu", set->name,
                  (unsigned long long)bytes, (unsigned long long)alone,
                  (unsigned long long)item->bytes, (unsigned long long)item->alone);
}

/* brc_du() agrees with the sets, of commits (arrays 0) or of arrays. */
static void compare_with_sets(int arrays)
{
    brc_iter *it;
    const brc_du_item *item;
    size_t met = 0;
    brc_du_report report = BRC_DU_REPORT_INIT;
    if (arrays)
        set_of("the version that is looked at");
    take_versions("main", arrays);
    take_versions("side", arrays);
    OK(&t, brc_du(&report, &it, t.repo, &t.err));
    while (brc_next(it, &item, &t.err) > 0)
        if ((item->path != NULL) == arrays) {
            compare_item(item);
            met++;
        }
    brc_iter_free(it);
    ck_assert_uint_eq(met, nsets - (size_t)arrays);
    ck_assert_uint_eq(report.versions + report.uncommitted + report.log + report.garbage,
                      report.stored);
    sets_free();
}

/* ---- a history -------------------------------- */

static void change_at_random(int i)
{
    static const char *const paths[] = {"/a", "/b", "/g/c", "/g/d"};
    const char *path = paths[scenario_random(&state) % 4];
    const char *other = paths[scenario_random(&state) % 4];
    int kind;
    OK(&t, brc_node_kind(&kind, t.session, path, &t.err));
    if (kind == 0) {
        scenario_numbers(&t, path, 64, 4, (int32_t)(scenario_random(&state) % 3));
    } else if (scenario_random(&state) % 4 == 0) {
        int there;
        OK(&t, brc_node_kind(&there, t.session, other, &t.err));
        if (there == 0)
            OK(&t, brc_node_move(t.session, path, other, BRC_NODE_COPY, &t.err));
    } else {
        scenario_set_number(&t, path, scenario_random(&state) % 64,
                            (int32_t)(scenario_random(&state) % 5) + i);
    }
}

static void commit_at_random(int commits)
{
    OK(&t, brc_group_create(t.session, "/g", NULL, &t.err));
    for (int i = 0; i < commits; i++) {
        brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
        brc_oid id;
        for (int k = 0; k < 3; k++)
            change_at_random(i);
        opts.message = "x";
        opts.flags = BRC_COMMIT_ALLOW_EMPTY;
        OK(&t, brc_session_commit(&id, t.session, &opts, &t.err));
        if (i == commits / 2)
            OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    }
}

CASE("usage", .setup = usage_setup, .teardown = t_stop, .timeout = 60);

TEST(commits_and_arrays_hold_what_walking_them_finds)
{
    commit_at_random(14);
    compare_with_sets(0);
    compare_with_sets(1);
}

TEST(a_whole_history_of_one_commit_is_alone)
{
    brc_iter *it;
    const brc_du_item *item;
    brc_du_report report = BRC_DU_REPORT_INIT;
    OK(&t, brc_du(&report, &it, t.repo, &t.err)); /* none yet */
    ck_assert_int_eq(brc_next(it, &item, &t.err), 0);
    brc_iter_free(it);
    ck_assert_uint_eq(report.versions, 0);
    scenario_numbers(&t, "/a", 64, 4, 0);
    scenario_commit(&t, "one");
    OK(&t, brc_du(&report, &it, t.repo, &t.err));
    ck_assert_int_eq(brc_next(it, &item, &t.err), 1);
    ck_assert_str_eq(item->path, "/a");
    ck_assert_uint_eq(item->bytes, item->alone);
    ck_assert_int_eq(brc_next(it, &item, &t.err), 1);
    ck_assert_ptr_null(item->path);
    ck_assert_uint_eq(item->bytes, report.versions);
    ck_assert_uint_eq(item->alone, report.versions);
    brc_iter_free(it);
}

/* A collection frees as much as brc_du() foretold. */
TEST(what_gc_removes_was_foretold)
{
    brc_du_report report = BRC_DU_REPORT_INIT;
    brc_gc_report gc = BRC_GC_REPORT_INIT;
    brc_expire_opts opts = BRC_EXPIRE_OPTS_INIT;
    brc_expire_report would = BRC_EXPIRE_REPORT_INIT;
    commit_at_random(20);
    scenario_set_number(&t, "/a", 5, 77);
    scenario_no_window(&t);
    OK(&t, brc_du(&report, NULL, t.repo, &t.err));
    OK(&t, brc_gc(t.repo, NULL, &gc, &t.err));
    ck_assert_uint_eq(gc.bytes_freed, report.garbage);
    opts.keep_last = 2;
    opts.flags = BRC_EXPIRE_DRY_RUN;
    OK(&t, brc_expire(&would, NULL, t.repo, &opts, &t.err));
    ck_assert_uint_gt(would.bytes, 0);
    opts.flags = 0;
    OK(&t, brc_expire(NULL, NULL, t.repo, &opts, &t.err));
    OK(&t, brc_du(&report, NULL, t.repo, &t.err));
    ck_assert_uint_eq(report.garbage, would.bytes);
    OK(&t, brc_gc(t.repo, NULL, &gc, &t.err));
    ck_assert_uint_eq(gc.bytes_freed, would.bytes);
    OK(&t, brc_du(&report, NULL, t.repo, &t.err));
    ck_assert_uint_eq(report.garbage, 0);
    compare_with_sets(0);
}

/* Uncommitted changes of a process that is gone go with the garbage. */
TEST(what_the_dead_left_is_garbage)
{
    brc_du_report report = BRC_DU_REPORT_INIT;
    brc_gc_report gc = BRC_GC_REPORT_INIT;
    scenario_close(&t);
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        scenario_open(&t, NULL, 0);
        brc_session_free(t.session);
        if (brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_PRIVATE, &t.err) < 0)
            _exit(1);
        scenario_numbers(&t, "/left", 64, 4, 5000);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    scenario_open(&t, NULL, 0);
    OK(&t, brc_du(&report, NULL, t.repo, &t.err));
    ck_assert_uint_eq(report.uncommitted, 0);
    ck_assert_uint_ge(report.garbage, 64 * 4);
    OK(&t, brc_gc(t.repo, NULL, &gc, &t.err));
    ck_assert_uint_eq(gc.bytes_freed, report.garbage);
}

/* The objects that undo may need, and those of drafts. */
TEST(the_log_and_drafts_are_told_apart)
{
    brc_du_report before = BRC_DU_REPORT_INIT, after = BRC_DU_REPORT_INIT;
    commit_at_random(6);
    OK(&t, brc_du(&before, NULL, t.repo, &t.err));
    scenario_numbers(&t, "/new", 64, 4, 5000);
    OK(&t, brc_du(&after, NULL, t.repo, &t.err));
    ck_assert_uint_eq(after.versions, before.versions);
    ck_assert_uint_ge(after.uncommitted, before.uncommitted + 64);
    scenario_commit(&t, "new");
    OK(&t, brc_reset(t.repo, NULL, "HEAD~1", BRC_RESET_HARD, NULL, &t.err));
    OK(&t, brc_du(&after, NULL, t.repo, &t.err));
    ck_assert_uint_eq(after.versions, before.versions);
    ck_assert_uint_ge(after.log, 64);
}

/* A draft that lies over a commit that no branch has leads to commits that a branch has: they are
 * held once, so that a version still says what it holds alone. */
TEST(what_comes_before_a_left_version_counts_once)
{
    brc_iter *it;
    const brc_du_item *item;
    int32_t number = 9;
    uint64_t alone = 0;
    brc_sel sel = BRC_SEL_INIT;
    brc_array *a;
    scenario_numbers(&t, "/a", 64, 64, 0);
    scenario_commit(&t, "one");
    scenario_numbers(&t, "/b", 64, 64, 500);
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
    scenario_commit(&t, "two");
    brc_session *s = scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE);
    OK(&t, brc_array_open(&a, s, "/b", &t.err));
    sel.ndim = 1;
    sel.count[0] = sel.step[0] = 1;
    OK(&t, brc_array_write(a, &sel, &number, sizeof(number), &t.err));
    brc_array_free(a);
    OK(&t, brc_reset(t.repo, NULL, "HEAD~1", BRC_RESET_HARD, NULL, &t.err));
    OK(&t, brc_du(NULL, &it, t.repo, &t.err));
    while (brc_next(it, &item, &t.err) > 0)
        alone += item->path == NULL ? item->alone : 0;
    brc_iter_free(it);
    brc_session_free(s);
    ck_assert_uint_ge(alone, 64);
}
