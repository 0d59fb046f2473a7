/* Exports to a directory, whose files several threads write: the same bytes as the keys of the
 * array have, all or nothing whatever fails, and nothing outside of the directory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../../src/breccia.h"
#include "../../src/xfer/zarr/zarr_hierarchy.h"
#include "../kit/effort.h"
#include "../kit/exchange_kit.h"
#include "../kit/process_kit.h"
#include "../kit/suite.h"

TEST_SUITE(export_dir);

static exchange_kit kit;

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":3,\"checksum\":false}}"
#define SHARDS                                                                                \
    "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[4,4],\"codecs\":[" LITTLE \
    "," ZSTD "],\"index_codecs\":[" LITTLE                                                    \
    ",{\"name\":\"crc32c\"}],\"index_location\":\"%s\"}}]"

/* ---- arrays -------------------------------- */

/* Numbers that zstd shortens by different amounts, and a chunk that is absent. */
static void fill_array(const char *path, const uint64_t shape[2], const uint64_t chunk[2],
                       const char *codecs)
{
    const size_t n = (size_t)(shape[0] * shape[1]);
    int32_t *data = calloc(n, sizeof(*data));
    uint64_t state = 7;
    ck_assert_ptr_nonnull(data);
    for (size_t i = n / 5; i < n; i++)
        data[i] = (int32_t)scenario_below(&state, 2 + i % 1000);
    brc_array_free(scenario_array(&kit, path, "int32", 2, shape, chunk, NULL, codecs));
    scenario_write(&kit, kit.session, path, data, n * sizeof(*data));
    free(data);
}

static const uint64_t grid_shape[2] = { 120, 96 }, grid_chunk[2] = { 4, 12 };
static const uint64_t big_shard[2] = { 24, 48 };

/* Each way in which stored bytes become those of a file, and more folders than stay open. */
static void make_arrays(void)
{
    char text[600];
    fill_array("/plain", grid_shape, grid_chunk, "[" LITTLE "]");
    fill_array("/zstd", grid_shape, grid_chunk, "[" LITTLE "," ZSTD "]");
    fill_array("/g/recoded", grid_shape, grid_chunk, "[" LITTLE "," ZSTD "]");
    scenario_recode(&kit, kit.session, "/g/recoded", "[{\"name\":\"bytes\",\"configuration\":"
                                                     "{\"endian\":\"big\"}}," ZSTD "]", 0);
    fill_array("/g/decoded", grid_shape, grid_chunk, "[" LITTLE "," ZSTD "]");
    scenario_recode(&kit, kit.session, "/g/decoded", "[" LITTLE "]", 0);
    snprintf(text, sizeof(text), SHARDS, "end");
    fill_array("/shards", grid_shape, big_shard, text);
    snprintf(text, sizeof(text), SHARDS, "start");
    fill_array("/h/first", grid_shape, big_shard, text);
}

static void open_with(unsigned threads, size_t memory)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    scenario_close(&kit);
    brc_pool *pool = NULL;
    if (threads > 1)
        OK(&kit, brc_pool_new(&pool, threads, &kit.err));
    opts.pool = pool;
    opts.memory = memory;
    scenario_open(&kit, &opts, 0);
}

static void start(void)
{
    exchange_start(&kit);
    make_arrays();
    scenario_commit(&kit, "made");
}

static void stop(void)
{
    exchange_stop(&kit);
}

/* ---- the bytes -------------------------------- */

typedef struct walk {
    const char *above; /* of the directory, and of the keys */
    int files;
} walk;

static int compare_with_key(void *ctx, const char *name, brc_error *err)
{
    walk *w = ctx;
    char path[600];
    (void)err;
    snprintf(path, sizeof(path), "%s%s%s", w->above, *w->above ? "/" : "", name);
    const char *file = exchange_path(&kit, path);
    if (brc_file_kind(file) == 1) {
        walk below = { path, 0 };
        ck_assert_int_eq(brc_dir_each(file, compare_with_key, &below, NULL), BRC_OK);
        w->files += below.files;
        return BRC_OK;
    }
    if (strcmp(name, "zarr.json") == 0)
        return BRC_OK;
    brc_buf want = BRC_BUF_INIT, got = exchange_read(file);
    OK(&kit, brc_key_get(&want, kit.session, path + strlen("out/"), NULL, NULL, &kit.err));
    ck_assert_msg(got.len == want.len && memcmp(got.data, want.data, want.len) == 0,
                  "%s has other bytes than its key", path);
    brc_buf_dispose(&want);
    brc_buf_dispose(&got);
    w->files++;
    return BRC_OK;
}

CASE("bytes", .setup = start, .teardown = stop);

/* Documents are compared by the suites of import and export. */
LOOP(each_file_has_the_bytes_of_its_key, 0, 4)
{
    open_with(_i % 2 == 0 ? 1 : 4, _i < 2 ? 0 : 4096);
    exchange_export_ok(&kit, "/", exchange_path(&kit, "out"), NULL, 0);
    walk w = { "out", 0 };
    ck_assert_int_eq(brc_dir_each(exchange_path(&kit, "out"), compare_with_key, &w, NULL), BRC_OK);
    /* 30 by 8 chunks without 6 by 8; 5 by 2 shards without the first 2 */
    ck_assert_int_eq(w.files, 4 * (30 - 6) * 8 + 2 * (5 - 1) * 2);
}

TEST(threads_write_the_same_tree)
{
    static const char *const formats[] = { "zarr3", "zarr2" };
    OK(&kit, brc_node_remove(kit.session, "/shards", &kit.err));
    OK(&kit, brc_node_remove(kit.session, "/h", &kit.err)); /* zarr2 has no shards */
    for (int i = 0; i < 2; i++) {
        char one[32], four[32];
        snprintf(one, sizeof(one), "one-%d", i);
        snprintf(four, sizeof(four), "four-%d", i);
        open_with(1, 0);
        exchange_export_ok(&kit, "/", exchange_path(&kit, one), formats[i], 0);
        open_with(4, 0);
        exchange_export_ok(&kit, "/", exchange_path(&kit, four), formats[i], 0);
        ck_assert_int_eq(exchange_same_tree(exchange_path(&kit, one), exchange_path(&kit, four)),
                         1);
    }
}

/* ---- failures -------------------------------- */

static int *exported; /* what the last export of a process gave; shared with it */
static const char *says; /* in the message of an export that fails; NULL: it must not fail */

/* In a process of its own. A failure's message names a file of the export. */
static int export_all(void *ctx)
{
    brc_pool *pool;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    exchange_kit own = kit;
    if (brc_pool_new(&pool, 3, &own.err) < 0)
        return 1;
    opts.pool = pool;
    scenario_open(&own, &opts, BRC_OPEN_READONLY);
    const int rc = *exported = brc_export(own.session, "/", ctx, NULL, &own.err);
    const int is_right = rc == BRC_OK || (says != NULL && strstr(own.err.message, says) != NULL &&
                                          strstr(own.err.message, ctx) != NULL);
    if (!is_right)
        fprintf(stderr, "export: %d: %s\n", rc, own.err.message);
    scenario_close(&own);
    brc_pool_free(pool);
    return !is_right;
}

static int count_name(void *ctx, const char *name, brc_error *err)
{
    (void)name;
    (void)err;
    ++*(int *)ctx;
    return BRC_OK;
}

static int entries_of(const char *dir)
{
    int n = 0;
    ck_assert_int_eq(brc_dir_each(dir, count_name, &n, NULL), BRC_OK);
    return n;
}

static char dest[200], aside[200], trap[200];

/* Less of everything: each call is tried. `expected` is the whole export, made by one thread. */
static void start_small(void)
{
    static const uint64_t shape[2] = { 16, 8 }, chunk[2] = { 4, 4 }, shard[2] = { 8, 8 };
    char text[600];
    exchange_start(&kit);
    fill_array("/g/a", shape, chunk, "[" LITTLE "," ZSTD "]");
    snprintf(text, sizeof(text), SHARDS, "end");
    fill_array("/b", shape, shard, text);
    scenario_commit(&kit, "made");
    exchange_export_ok(&kit, "/", exchange_path(&kit, "expected"), NULL, 0);
    scenario_close(&kit);
    exported = mmap(NULL, sizeof(*exported), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                    0);
    ck_assert_ptr_ne(exported, MAP_FAILED);
    snprintf(dest, sizeof(dest), "%s", exchange_path(&kit, "out"));
    snprintf(aside, sizeof(aside), "%s", exchange_path(&kit, "aside"));
    snprintf(trap, sizeof(trap), "%s", exchange_path(&kit, "trap"));
}

static void must_be_whole(void)
{
    ck_assert_int_eq(exchange_same_tree(exchange_path(&kit, "expected"), dest), 1);
}

CASE("failures", .setup = start_small, .teardown = stop, .timeout = UNTIMED);

static const int errors[] = { ENOSPC, EACCES, EDQUOT };

/* SQLite can do without some of its calls; then the export is whole. */
EACH(a_call_that_fails_is_named_and_leaves_nothing, errors)
{
    const uint64_t each = effort_step(1, 5);
    const int before = entries_of(kit.dir);
    uint64_t failed = 0;
    int done = 0;
    says = strerror(errors[_i]);
    for (uint64_t n = 1; done == 0; n += each) {
        done = process_refused_call(export_all, dest, n, errors[_i]);
        if (done != 0)
            break;
        failed += brc_file_kind(dest) == 0;
        if (brc_file_kind(dest) != 0) {
            must_be_whole();
            brc_tree_remove(dest);
        }
        ck_assert_msg(entries_of(kit.dir) == before, "refused at %d, it left something", (int)n);
    }
    if (done < 0)
        return; /* this processor's calls cannot be changed */
    must_be_whole();
    ck_assert_uint_ge(failed, 20 / each);
}

/* Nothing is to be seen under the name until all is there. */
TEST(whenever_it_is_killed_the_name_is_free_or_whole)
{
    const uint64_t each = effort_step(2, 9);
    uint64_t killed = 0;
    const int before = entries_of(kit.dir);
    says = NULL;
    for (uint64_t n = 1; !process_survives_calls(export_all, dest, n); n += each, killed++) {
        if (brc_file_kind(dest) == 0) {
            ck_assert_int_le(entries_of(kit.dir), before + (int)killed + 1);
            continue;
        }
        must_be_whole();
        brc_tree_remove(dest);
    }
    must_be_whole();
    ck_assert_uint_ge(killed, 20 / each);
}

/* ---- folders that are replaced -------------------------------- */

typedef struct replacer {
    const char *below; /* the folder of the tree to replace, "/g/a"; "": the top */
    int calls, at;     /* when: before the at-th call                            */
    int is_done;
} replacer;

static int find_part(void *ctx, const char *name, brc_error *err)
{
    (void)err;
    if (strncmp(name, "out.part-", 9) == 0)
        snprintf(ctx, 200, "%s", name);
    return BRC_OK;
}

/* Puts a link to a folder elsewhere in the place of a folder of the tree. */
static void replace_folder(void *to, long call, const char *path)
{
    replacer *r = to;
    char name[200] = "", folder[512];
    (void)call;
    (void)path;
    if (r->is_done || r->calls++ < r->at)
        return;
    ck_assert_int_eq(brc_dir_each(kit.dir, find_part, name, NULL), BRC_OK);
    snprintf(folder, sizeof(folder), "%s/%s%s", kit.dir, name, r->below);
    if (name[0] == '\0' || rename(folder, aside) != 0)
        return;
    ck_assert_int_eq(symlink(trap, folder), 0);
    r->is_done = 1;
}

static const char *const replaced[] = { "", "/g", "/g/a", "/g/a/c", "/b" };

EACH(nothing_is_written_behind_a_link, replaced)
{
    int tried = 0;
    says = "";
    for (int at = 1; at < 60; at += (int)effort_step(3, 11)) {
        replacer r = { replaced[_i], 0, at, 0 };
        ck_assert_int_eq(mkdir(trap, 0700), 0);
        process_watch(export_all, dest, replace_folder, &r);
        ck_assert_msg(entries_of(trap) == 0, "%s was left by way of a link", replaced[_i]);
        if (r.is_done && *replaced[_i] == '\0') { /* another's link stays, whatever its name is */
            char part[200] = "";
            ck_assert_int_lt(*exported, 0);
            ck_assert_int_eq(brc_dir_each(kit.dir, find_part, part, NULL), BRC_OK);
            ck_assert(part[0] != '\0' || exchange_exists(dest));
        }
        tried += r.is_done;
        char command[1000];
        snprintf(command, sizeof(command), "rm -rf '%s' '%s' '%s' '%s'.part-*", dest, aside, trap,
                 dest);
        ck_assert_int_eq(system(command), 0);
    }
    ck_assert_int_gt(tried, 0);
}

/* ---- names and limits -------------------------------- */

CASE("rules", .setup = start_small, .teardown = stop);

TEST(names_that_lead_elsewhere_are_refused)
{
    char name[300];
    const char *const names[] = { "",  "/",   "..", ".",  "../x", "g/../../x", "g//x",
                                  "g/.", "g/", "/x", name };
    const brc_span one = { (const uint8_t *)"x", 1 };
    brc_tree_out *tree;
    const int before = entries_of(kit.dir);
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    scenario_open(&kit, NULL, 0);
    OK(&kit, brc_tree_out_dir(&tree, kit.session, dest, &kit.err));
    OK(&kit, tree->folder(tree, "", &kit.err));
    OK(&kit, tree->folder(tree, "g", &kit.err));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ck_assert_msg(tree->put(tree, names[i], one, &kit.err) < 0, "%s", names[i]);
        ck_assert_msg(tree->folder(tree, names[i], &kit.err) < 0, "%s", names[i]);
    }
    OK(&kit, tree->put(tree, "g/c/0", one, &kit.err));
    FAILS(&kit, BRC_EEXISTS, tree->put(tree, "g/c/0", one, &kit.err));
    FAILS(&kit, BRC_EEXISTS, tree->folder(tree, "g/c", &kit.err));
    ck_assert_int_lt(tree->put(tree, "g/c/0/1", one, &kit.err), 0);
    ck_assert_int_eq(entries_of(kit.dir), before + 1);
    brc_tree_out_free(tree);
    ck_assert_int_eq(entries_of(kit.dir), before);
}

/* A callback of progress that stops the export after some chunks. */
static int stop_later(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    int *left = ctx;
    (void)phase;
    (void)done;
    (void)total;
    return --*left <= 0;
}

TEST(a_stopped_export_leaves_nothing)
{
    const int before = entries_of(kit.dir);
    int stopped = 0;
    for (int n = 1;; n++) {
        brc_pool *pool;
        brc_open_opts opts = BRC_OPEN_OPTS_INIT;
        int left = n;
        OK(&kit, brc_pool_new(&pool, 3, &kit.err));
        opts.pool = pool;
        opts.progress = stop_later;
        opts.progress_ctx = &left;
        scenario_open(&kit, &opts, 0);
        const int rc = brc_export(kit.session, "/", dest, NULL, &kit.err);
        scenario_close(&kit);
        brc_pool_free(pool);
        if (rc == BRC_OK)
            break;
        ck_assert_int_eq(rc, BRC_EINTERRUPT);
        ck_assert_int_eq(entries_of(kit.dir), before);
        stopped++;
    }
    must_be_whole();
    ck_assert_int_ge(stopped, 8);
}

/* Folders that stay open are few. */
TEST(few_descriptors_are_enough)
{
    static const uint64_t shape[2] = { 300, 4 }, chunk[2] = { 1, 4 };
    struct rlimit old, few;
    scenario_open(&kit, NULL, 0);
    fill_array("/many", shape, chunk, "[" LITTLE "]");
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = old;
    few.rlim_cur = 64;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    exchange_export_ok(&kit, "/many", dest, NULL, 0);
    few.rlim_cur = 12;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    const int rc = brc_export(kit.session, "/many", exchange_path(&kit, "again"), NULL, &kit.err);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    ck_assert_int_eq(rc, BRC_EIO);
    ck_assert_msg(strstr(kit.err.message, "Too many open files") != NULL, "%s", kit.err.message);
    ck_assert_int_eq(exchange_exists(exchange_path(&kit, "again")), 0);
}
