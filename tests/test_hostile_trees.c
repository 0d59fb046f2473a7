/* Small files that would exhaust stack, time or memory, every hash in them right. Each runs
 * in a process with little of them: what goes wrong fails a test and not the machine. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../src/base/file.h"
#include "kit/hostile_kit.h"

Suite *hostile_trees_suite(void);

typedef struct attack {
    const char *file;
    uint64_t max_nodes;
    int code;            /* that walks by path end with                            */
    const char *says;
    int faults;          /* that fsck finds, at most                               */
    uint64_t chunk_refs; /* that info counts, where it is not damaged              */
} attack;

/* In the confined process an exit status tells what failed. */
#define EXPECT(condition, status)                                                        \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "%s:%d: %s\n%s\n", __FILE__, __LINE__, #condition, err.message); \
            _exit(status);                                                               \
        }                                                                                \
    } while (0)

static int count_damage(void *ctx, const brc_damage *damage)
{
    (void)damage;
    ++*(int *)ctx;
    return 0;
}

static void look(void *ctx)
{
    const attack *a = ctx;
    brc_error err = BRC_ERROR_INIT;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo;
    brc_session *s;
    brc_iter *it;
    brc_node node;
    const char *key;
    brc_stats stats;
    brc_oid id;
    char dest[160];
    int rc, faults = 0;
    opts.max_nodes = a->max_nodes;
    EXPECT(brc_open(&repo, a->file, &opts, &err) == BRC_OK, 1);
    EXPECT(brc_session_open(&s, repo, "main", BRC_SESSION_AT, &err) == BRC_OK, 2);
    EXPECT(brc_list(&it, s, "/", 1, &err) == BRC_OK, 3);
    while ((rc = brc_list_next(it, &node, &err)) > 0)
        EXPECT(node.kind != 0, 4);
    EXPECT(rc == a->code && (rc == 0 || strstr(err.message, a->says) != NULL), 5);
    brc_iter_free(it);
    EXPECT(brc_keys(&it, s, "/", &err) == BRC_OK, 6);
    while ((rc = brc_keys_next(it, &key, &err)) > 0)
        EXPECT(*key != 0, 7);
    EXPECT(rc == a->code, 8);
    brc_iter_free(it);
    snprintf(dest, sizeof(dest), "%s.zip", a->file);
    rc = brc_export(s, "/", dest, NULL, &err);
    EXPECT(rc == a->code && (rc == 0 || strstr(err.message, a->says) != NULL), 9);
    EXPECT(rc == 0 || access(dest, F_OK) != 0, 10);
    brc_session_free(s);
    EXPECT(brc_fsck(repo, 0, count_damage, &faults, NULL, &err) == BRC_OK, 11);
    EXPECT(faults <= a->faults && (faults > 0) == (a->code == BRC_ECORRUPT), 12);
    rc = brc_stat(repo, &stats, &err);
    /* it counts by object, and need not see what only a path shows */
    EXPECT(rc == BRC_OK || (rc == BRC_ECORRUPT && a->code == BRC_ECORRUPT), 13);
    EXPECT(a->code == BRC_ECORRUPT || stats.chunk_refs == a->chunk_refs, 14);
    EXPECT(brc_resolve(&id, repo, "main", &err) == BRC_OK, 15);
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

START_TEST(f04_nested_groups)
{
    static const int depths[] = { 64, 65, 30000 };
    store_kit k;
    store_kit_start(&k);
    hostile_begin(&k);
    brc_entry root = hostile_nest(&k, depths[_i]);
    attack a = { .code = _i == 0 ? 0 : BRC_ECORRUPT, .says = "64", .faults = 1 };
    attack_with(&k, &root, a);
}
END_TEST

START_TEST(f04_shared_children)
{
    store_kit k;
    store_kit_start(&k);
    hostile_begin(&k);
    brc_entry array = hostile_array(&k), root = hostile_shared(&k, 30, &array);
    attack a = { .max_nodes = 5000, .code = BRC_ELIMIT, .says = "--max-nodes",
                 .chunk_refs = UINT64_C(1) << 30 };
    attack_with(&k, &root, a);
}
END_TEST

/* The same, and what is at the bottom cannot be: it is looked at a few times, and not once
 * for each path. */
START_TEST(f04_shared_children_that_are_bad)
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
END_TEST

/* Sixty levels around sixty: each is right by itself, and seen from the top too deep. */
START_TEST(f04_depth_counts_through_shared_groups)
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
END_TEST

START_TEST(f04_long_paths)
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
    attack a = { .code = _i == 0 ? 0 : BRC_ECORRUPT, .says = "4096", .faults = 1 };
    attack_with(&k, &root, a);
}
END_TEST

START_TEST(f05_names_that_are_none)
{
    static const char *const wrong[] = { "..", ".", "a/b", "", "\xff\xfe", "zarr.json", "__x" };
    store_kit k;
    store_kit_start(&k);
    hostile_begin(&k);
    brc_entry group = hostile_nest(&k, 1), root = hostile_group(&k, &wrong[_i], &group, 1);
    attack a = { .code = BRC_ECORRUPT, .says = "name", .faults = 1 };
    attack_with(&k, &root, a);
}
END_TEST

Suite *hostile_trees_suite(void)
{
    Suite *s = suite_create("hostile_trees");
    TCase *t = tcase_create("paths");
    tcase_set_timeout(t, 240);
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, f04_nested_groups, 0, 3);
    tcase_add_test(t, f04_shared_children);
    tcase_add_test(t, f04_shared_children_that_are_bad);
    tcase_add_test(t, f04_depth_counts_through_shared_groups);
    tcase_add_loop_test(t, f04_long_paths, 0, 2);
    tcase_add_loop_test(t, f05_names_that_are_none, 0, 7);
    return s;
}
