/* Small files that would exhaust stack, time or memory, every hash in them right. Each runs
 * in a process with little of them: what goes wrong fails a test and not the machine. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../kit/fsck_kit.h"
#include "../kit/hostile_kit.h"
#include "../kit/seal.h"
#include "../kit/suite.h"

TEST_SUITE(hostile_trees);

typedef struct attack {
    const char *file;
    uint64_t max_nodes;
    int code;            /* that walks by path end with                            */
    const char *says;
    int faults;          /* that fsck finds, at most                               */
    uint64_t chunk_refs; /* that info counts, where it is not damaged              */
    int too_long;        /* for paths of files: no folder can hold it              */
} attack;

/* In the confined process an exit status tells what failed. */
#define EXPECT(condition, status)                                                        \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "%s:%d: %s\n%s\n", __FILE__, __LINE__, #condition, err.message); \
            _exit(status);                                                               \
        }                                                                                \
    } while (0)

/* The call ended as the attack expects, with words that tell the limit. */
static int ended(const attack *a, int rc, const brc_error *err)
{
    return rc == a->code && (rc == 0 || strstr(err->message, a->says) != NULL);
}

static void look_at_list(const attack *a, brc_session *s)
{
    brc_error err = BRC_ERROR_INIT;
    brc_iter *it;
    const brc_node *node;
    const char *key;
    int rc;
    EXPECT(brc_list(&it, s, "/", BRC_LIST_RECURSE, &err) == BRC_OK, 3);
    while ((rc = brc_next(it, &node, &err)) > 0)
        EXPECT(node->kind != 0, 4);
    EXPECT(ended(a, rc, &err), 5);
    brc_iter_free(it);
    EXPECT(brc_keys(&it, s, "", 0, &err) == BRC_OK, 6);
    while ((rc = brc_next(it, &key, &err)) > 0)
        EXPECT(*key != 0, 7);
    EXPECT(rc == a->code, 8);
    brc_iter_free(it);
}

static void look_at_exports(const attack *a, brc_session *s)
{
    static const char *const endings[] = { "zip", "zarr" };
    brc_error err = BRC_ERROR_INIT;
    char dest[160];
    for (size_t i = 0; i < 2; i++) {
        snprintf(dest, sizeof(dest), "%s.%s", a->file, endings[i]);
        int rc = brc_export(s, "/", dest, NULL, &err);
        EXPECT(i == 1 && a->too_long ? rc == BRC_EIO : ended(a, rc, &err), 9);
        EXPECT((access(dest, F_OK) == 0) == (rc == 0), 10);
    }
}

/* du lists arrays by path, as they are in every version. */
static void look_at_usage(const attack *a, breccia *repo)
{
    brc_error err = BRC_ERROR_INIT;
    brc_du_report report = BRC_DU_REPORT_INIT;
    EXPECT(ended(a, brc_du(&report, NULL, repo, &err), &err), 30);
}

static void look_at_whole(const attack *a, breccia *repo)
{
    brc_error err = BRC_ERROR_INIT;
    brc_stats stats = BRC_STATS_INIT;
    brc_oid id;
    int faults = 0;
    EXPECT(brc_fsck(repo, 0, fsck_counts, NULL, &faults, NULL, &err) == BRC_OK, 11);
    EXPECT(faults <= a->faults && (faults > 0) == (a->code == BRC_ECORRUPT), 12);
    int rc = brc_stat(repo, &stats, &err);
    /* it counts by object, and need not see what only a path shows */
    EXPECT(rc == BRC_OK || (rc == BRC_ECORRUPT && a->code == BRC_ECORRUPT), 13);
    EXPECT(a->code == BRC_ECORRUPT || stats.chunk_refs == a->chunk_refs, 14);
    EXPECT(brc_resolve(&id, repo, "main", &err) == BRC_OK, 15);
}

/* Everything came, or went: what `from` to `to` (as brc_diff() has them) ends with, and how
 * many nodes differ. */
static int differences(breccia *repo, const char *from, const char *to, uint64_t *n, brc_error *err)
{
    brc_iter *it;
    const brc_change *change;
    int rc = brc_diff(&it, repo, from, to, NULL, err);
    *n = 0;
    if (rc < 0)
        return rc;
    while ((rc = brc_next(it, &change, err)) > 0)
        ++*n;
    brc_iter_free(it);
    return rc;
}

static void look_at_differences(const attack *a, breccia *repo)
{
    static const char *const pairs[][2] = { { "main~1", "main" }, { "main", "main~1" },
                                            { NULL, "main" }, { "main~1", NULL } };
    brc_error err = BRC_ERROR_INIT;
    uint64_t n;
    for (size_t i = 0; i < 4; i++) {
        int rc = differences(repo, pairs[i][0], pairs[i][1], &n, &err);
        EXPECT(ended(a, rc, &err), 16);
        EXPECT(rc < 0 || n > 0, 17);
    }
    EXPECT(differences(repo, NULL, NULL, &n, &err) == 0 && n == 0, 18);
}

/* Its removal needs no look at it, though the list of what went may be too long. */
static void remove_it(const attack *a, breccia *repo, brc_session *s, const brc_commit_opts *opts)
{
    brc_error err = BRC_ERROR_INIT;
    brc_oid id;
    uint64_t n;
    int kind;
    if (brc_node_kind(&kind, s, "/a", &err) != BRC_OK || kind == 0)
        return;
    EXPECT(brc_node_remove(s, "/a", &err) == BRC_OK, 26);
    int rc = differences(repo, NULL, NULL, &n, &err);
    EXPECT(rc == BRC_OK ? n > 0 : ended(a, rc, &err), 27);
    EXPECT(brc_session_commit(&id, s, opts, &err) == BRC_OK, 28);
    EXPECT(brc_node_kind(&kind, s, "/a", &err) == BRC_OK && kind == 0, 29);
}

/* A change beside the hostile tree is reported and committed: only changed nodes are looked at. */
static void change_beside(const attack *a, breccia *repo)
{
    brc_error err = BRC_ERROR_INIT;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_session *s;
    brc_oid id;
    int clean;
    uint64_t n;
    opts.message = "beside";
    EXPECT(brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &err) == BRC_OK, 19);
    EXPECT(brc_group_create(s, "/beside", NULL, &err) == BRC_OK, 20);
    EXPECT(brc_session_clean(&clean, s, &err) == BRC_OK && !clean, 21);
    EXPECT(differences(repo, NULL, NULL, &n, &err) == 0 && n == 1, 22);
    EXPECT(ended(a, differences(repo, "main~1", NULL, &n, &err), &err), 23);
    look_at_list(a, s);
    EXPECT(brc_session_commit(&id, s, &opts, &err) == BRC_OK, 24);
    EXPECT(differences(repo, NULL, "main", &n, &err) == 0 && n == 1, 25);
    remove_it(a, repo, s, &opts);
    brc_session_free(s);
}

static void look(void *ctx)
{
    const attack *a = ctx;
    brc_error err = BRC_ERROR_INIT;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo;
    brc_session *s;
    opts.max_nodes = a->max_nodes;
    EXPECT(brc_open(&repo, a->file, &opts, &err) == BRC_OK, 1);
    EXPECT(brc_session_open(&s, repo, "main", BRC_SESSION_AT, &err) == BRC_OK, 2);
    look_at_list(a, s);
    look_at_exports(a, s);
    brc_session_free(s);
    look_at_whole(a, repo);
    look_at_usage(a, repo);
    look_at_differences(a, repo);
    change_beside(a, repo);
    brc_free(repo);
}

static void attack_with(store_kit *k, const brc_entry *root, attack a)
{
    hostile_commit(k, root);
    store_kit_close(k);
    a.file = k->file;
    ck_assert_int_eq(hostile_confined(look, &a), 0);
    store_kit_stop(k);
}

CASE("paths", .timeout = 240);

LOOP(f04_nested_groups, 0, 3)
{
    static const int depths[] = { 64, 65, 200000 };
    store_kit k;
    store_kit_start(&k);
    hostile_begin(&k);
    brc_entry root = hostile_nest(&k, depths[_i]);
    attack a = { .code = _i == 0 ? 0 : BRC_ECORRUPT, .says = "64", .faults = 1 };
    attack_with(&k, &root, a);
}

TEST(f04_shared_children)
{
    store_kit k;
    store_kit_start(&k);
    hostile_begin(&k);
    brc_entry array = hostile_array(&k), root = hostile_shared(&k, 30, &array);
    attack a = { .max_nodes = 5000, .code = BRC_ELIMIT, .says = "--max-nodes",
                 .chunk_refs = UINT64_C(1) << 30 };
    attack_with(&k, &root, a);
}

/* The same, and what is at the bottom cannot be: it is looked at a few times, and not once
 * for each path. */
TEST(f04_shared_children_that_are_bad)
{
    static const char *const wrong[] = { ".." };
    store_kit k;
    store_kit_start(&k);
    hostile_begin(&k);
    brc_entry array = hostile_array(&k), bad = hostile_group(&k, wrong, &array, 1);
    brc_entry root = hostile_shared(&k, 30, &bad);
    attack a = { .max_nodes = 5000, .code = BRC_ECORRUPT, .says = "dots", .faults = 1 };
    attack_with(&k, &root, a);
}

/* Sixty levels around sixty: each is right by itself, and seen from the top too deep. */
TEST(f04_depth_counts_through_shared_groups)
{
    static const char *const names[] = { "a", "b" };
    store_kit k;
    store_kit_start(&k);
    hostile_begin(&k);
    brc_entry inner = hostile_nest(&k, 40), outer = inner;
    for (int i = 0; i < 40; i++)
        outer = hostile_group(&k, names, &outer, 1);
    brc_entry both[2] = { inner, outer }; /* the inner one is met first, and is right */
    brc_entry root = hostile_group(&k, names, both, 2);
    attack a = { .code = BRC_ECORRUPT, .says = "64", .faults = 1 };
    attack_with(&k, &root, a);
}

LOOP(f04_long_paths, 0, 2)
{
    char name[256];
    const char *const names[] = { name };
    store_kit k;
    memset(name, 'n', 255);
    name[255] = 0;
    store_kit_start(&k);
    hostile_begin(&k);
    brc_entry root = hostile_group(&k, NULL, NULL, 0);
    for (int i = 0; i < 16 + _i; i++)
        root = hostile_group(&k, names, &root, 1);
    attack a = { .code = _i == 0 ? 0 : BRC_ECORRUPT, .says = "4096", .faults = 1,
                 .too_long = _i == 0 };
    attack_with(&k, &root, a);
}

LOOP(f05_names_that_are_none, 0, 7)
{
    static const char *const wrong[] = { "..", ".", "a/b", "", "\xff\xfe", "zarr.json", "__x" };
    store_kit k;
    store_kit_start(&k);
    hostile_begin(&k);
    brc_entry group = hostile_nest(&k, 1), root = hostile_group(&k, &wrong[_i], &group, 1);
    attack a = { .code = BRC_ECORRUPT, .says = "name", .faults = 1 };
    attack_with(&k, &root, a);
}

/* ---- uncommitted changes -------------------------------- */

/* The hostile draft is refused with words that tell the limit, and can be dropped. */
static void look_at_draft(void *ctx)
{
    const attack *a = ctx;
    brc_error err = BRC_ERROR_INIT;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    breccia *repo;
    brc_session *s;
    brc_oid id;
    int faults = 0;
    uint64_t n;
    opts.message = "no";
    EXPECT(brc_open(&repo, a->file, NULL, &err) == BRC_OK, 1);
    EXPECT(ended(a, differences(repo, NULL, NULL, &n, &err), &err), 2);
    EXPECT(brc_fsck(repo, 0, fsck_counts, NULL, &faults, NULL, &err) == BRC_OK && faults > 0, 3);
    EXPECT(brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &err) == BRC_OK, 4);
    look_at_list(a, s);
    look_at_exports(a, s);
    EXPECT(ended(a, brc_session_commit(&id, s, &opts, &err), &err), 5);
    EXPECT(brc_session_discard(s, &err) == BRC_OK, 6);
    EXPECT(differences(repo, NULL, NULL, &n, &err) == 0 && n == 0, 7);
    brc_session_free(s);
    brc_free(repo);
}

/* A row whose path goes down all the groups but the last: folding goes by its names. */
LOOP(f04_a_deep_uncommitted_path, 0, 2)
{
    static const int depths[] = { 67, 200000 };
    char sql[1200];
    store_kit k;
    store_kit_start(&k);
    hostile_begin(&k);
    brc_entry root = hostile_nest(&k, depths[_i]);
    hostile_commit(&k, &root);
    store_kit_close(&k);
    store_kit_sql_shared(&k, "INSERT INTO draft(kind, state, branch, base, tip, time_us, changes,"
                      " parts, checksum) SELECT 1, 1, 'main', target, target, 1, 1, 0, 0 FROM ref"
                      " WHERE name='heads/main'");
    snprintf(sql, sizeof(sql), "INSERT INTO draft_node(draft, path, below, level, checksum)"
             " VALUES (1, replace(hex(zeroblob(%d)), '00', '/a'), NULL, 0, 0);" SEAL_ALL,
             depths[_i] - 1);
    store_kit_sql_shared(&k, sql);
    attack a = { .file = k.file, .code = BRC_ECORRUPT, .says = "64" };
    ck_assert_int_eq(hostile_confined(look_at_draft, &a), 0);
    store_kit_stop(&k);
}
