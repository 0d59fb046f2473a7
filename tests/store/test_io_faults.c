/*
 * Every operation on the file fails, one after the other, once or from then on:
 * a call then gives an error of the right kind, the file is what it was before (or,
 * where only the folder could not be synced, what it is behind), and when the fault
 * is over the same handle does the same call.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../../src/base/hash.h"
#include "../kit/fault_vfs.h"
#include "../kit/file_digest.h"
#include "../kit/store_kit.h"

Suite *io_faults_suite(void);

static store_kit kit; /* the folder, and kit.file: what every call starts from    */
static fault_vfs faults;
static char work[128], copy[128], npy[128];

typedef struct handles {
    breccia *repo;
    brc_session *s;
    brc_array *a;
    brc_array *made;
} handles;

#define OK(call) KIT_OK(&kit, call)
#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"

/* ---- the repository that every call starts from ------------------------------ */

static brc_oid commit_as(brc_session *s, const char *message, int64_t time)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    opts.message = message;
    opts.author = "a";
    opts.time_us = time;
    OK(brc_session_commit(&id, s, &opts, &kit.err));
    return id;
}

static brc_array *make_array(brc_session *s, const char *path, uint64_t n, uint64_t chunk,
                             int32_t from)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    spec.ndim = 1;
    spec.shape = &n;
    spec.chunk = &chunk;
    spec.dtype = "int32";
    spec.codecs_json = "[" LITTLE ",{\"name\":\"zstd\",\"configuration\":{\"level\":1,"
                       "\"checksum\":false}}]";
    OK(brc_array_create(&a, s, path, &spec, &kit.err));
    int32_t *data = malloc(n * 4);
    for (uint64_t i = 0; i < n; i++)
        data[i] = from + (int32_t)(i / 3);
    OK(brc_array_write(a, NULL, data, n * 4, &kit.err));
    free(data);
    return a;
}

/* Two branches, a tag, two arrays and a group; on main something uncommitted. */
static void make_base(void)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo;
    brc_session *s;
    int32_t three[3] = { 7, 8, 9 };
    brc_sel sel = { .size = sizeof(brc_sel), .ndim = 1,
                    .start = { 30 }, .count = { 3 }, .step = { 1 } };
    opts.flags = BRC_OPEN_CREATE;
    OK(brc_open(&repo, kit.file, &opts, &kit.err));
    OK(brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &kit.err));
    brc_array_free(make_array(s, "/a", 128, 32, 100));
    OK(brc_group_create(s, "/g/h", "{\"k\":1}", &kit.err));
    commit_as(s, "one", 1000);
    OK(brc_branch_create(repo, "other", NULL, &kit.err));
    brc_array_free(make_array(s, "/g/b", 40, 40, 5));
    commit_as(s, "two", 2000);
    OK(brc_tag_create(repo, "v1", NULL, "a tag", &kit.err));
    brc_array *a;
    OK(brc_array_open(&a, s, "/a", &kit.err));
    OK(brc_array_write(a, &sel, three, sizeof(three), &kit.err));
    OK(brc_attrs_set(s, "/a", "note", "\"draft\"", &kit.err));
    brc_array_free(a);
    brc_session_free(s);
    brc_free(repo);
}

static void faults_setup(void)
{
    static const uint8_t npy_file[] = "\x93NUMPY\1\0\x3c\0{'descr':'<i4','fortran_order':False,"
                                      "'shape':(3,),}        \n\1\0\0\0\2\0\0\0\3\0\0\0";
    store_kit_folder(&kit);
    snprintf(work, sizeof(work), "%s/work.brc", kit.dir);
    snprintf(copy, sizeof(copy), "%s/copy.brc", kit.dir);
    snprintf(npy, sizeof(npy), "%s/in.npy", kit.dir);
    OK(brc_file_write(npy, npy_file, sizeof(npy_file) - 1, &kit.err));
    make_base();
    fault_vfs_register(&faults);
}

static void faults_teardown(void)
{
    fault_vfs_unregister(&faults);
    store_kit_stop(&kit);
}

/* ---- the calls --------------------------------------------------------------- */

static int32_t numbers[160];

static int act_create(handles *h, brc_error *err)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    uint64_t shape = 10;
    spec.ndim = 1;
    spec.shape = &shape;
    spec.dtype = "float32";
    brc_array_free(h->made);
    return brc_array_create(&h->made, h->s, "/n/o/p", &spec, err);
}

static int act_write(handles *h, brc_error *err)
{
    return brc_array_write(h->a, NULL, numbers, 512, err);
}

static int act_write_part(handles *h, brc_error *err)
{
    brc_sel sel = { .size = sizeof(brc_sel), .ndim = 1,
                    .start = { 20 }, .count = { 60 }, .step = { 1 } };
    return brc_array_write(h->a, &sel, numbers, 240, err);
}

static int act_append(handles *h, brc_error *err)
{
    return brc_array_append(h->a, 0, 20, numbers, 80, err);
}

static int act_shrink(handles *h, brc_error *err)
{
    uint64_t shape = 50;
    return brc_array_resize(h->a, &shape, err);
}

static int act_recode(handles *h, brc_error *err)
{
    return brc_array_set_codecs(h->a, "[" LITTLE "]", 1, err);
}

static int act_restore(handles *h, brc_error *err)
{
    return brc_node_restore(h->s, "/a", "other", err);
}

static int act_group(handles *h, brc_error *err)
{
    return brc_group_create(h->s, "/m/n", "{}", err);
}

static int act_attribute(handles *h, brc_error *err)
{
    return brc_attrs_set(h->s, "/g", "x", "[1]", err);
}

static int act_move(handles *h, brc_error *err)
{
    return brc_node_move(h->s, "/a", "/g/h/moved", err);
}

static int act_copy(handles *h, brc_error *err)
{
    return brc_node_copy(h->s, "/g", "/copied", err);
}

static int act_remove(handles *h, brc_error *err)
{
    return brc_node_remove(h->s, "/g", err);
}

static int act_import(handles *h, brc_error *err)
{
    return brc_import(h->s, npy, "/imported", NULL, err);
}

static int commit_flags(handles *h, uint32_t flags, brc_error *err)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    opts.message = "three";
    opts.time_us = 3000;
    opts.flags = flags;
    return brc_session_commit(&id, h->s, &opts, err);
}

static int act_commit(handles *h, brc_error *err)
{
    return commit_flags(h, 0, err);
}

static int act_amend(handles *h, brc_error *err)
{
    return commit_flags(h, BRC_COMMIT_AMEND, err);
}

static int act_discard(handles *h, brc_error *err)
{
    return brc_session_discard(h->s, err);
}

static int act_branch(handles *h, brc_error *err)
{
    return brc_branch_create(h->repo, "new", "main~1", err);
}

static int act_branch_delete(handles *h, brc_error *err)
{
    return brc_branch_delete(h->repo, "other", 0, err);
}

static int act_branch_rename(handles *h, brc_error *err)
{
    return brc_branch_rename(h->repo, "other", "another", err);
}

static int act_tag(handles *h, brc_error *err)
{
    return brc_tag_create(h->repo, "v2", "v1", "again", err);
}

static int act_switch(handles *h, brc_error *err)
{
    return brc_switch(h->repo, "other", 1, err);
}

static int act_reset(handles *h, brc_error *err)
{
    return brc_reset(h->repo, "other", 0, NULL, err);
}

static int act_reset_hard(handles *h, brc_error *err)
{
    return brc_reset(h->repo, "other", 1, NULL, err);
}

static int act_batch(handles *h, brc_error *err)
{
    int rc = brc_begin(h->repo, err);
    if (rc < 0)
        return rc;
    rc = brc_array_write(h->a, NULL, numbers, 512, err);
    if (rc == BRC_OK)
        rc = brc_attrs_set(h->s, "/g", "x", "[1]", err);
    if (rc == BRC_OK)
        rc = commit_flags(h, 0, err);
    int end = brc_end(h->repo, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

/* These change nothing. */

static int act_read(handles *h, brc_error *err)
{
    int32_t all[128];
    int rc = brc_array_read(h->a, NULL, all, sizeof(all), err);
    ck_assert(rc < 0 || (all[0] == 100 && all[30] == 7 && all[127] == 142));
    return rc;
}

static int act_is_clean(handles *h, brc_error *err)
{
    int clean = 1;
    int rc = brc_session_clean(&clean, h->s, err);
    ck_assert(rc < 0 || !clean);
    return rc;
}

static int act_log(handles *h, brc_error *err)
{
    brc_iter *it;
    const brc_commit *c;
    int n = 0, rc = brc_log(&it, h->repo, NULL, "/g", err);
    while (rc >= 0 && (rc = brc_log_next(it, &c, err)) > 0)
        n++;
    brc_iter_free(it);
    ck_assert(rc < 0 || n == 2);
    return rc;
}

static int act_diff(handles *h, brc_error *err)
{
    brc_iter *it;
    const brc_change *c;
    int n = 0, rc = brc_diff(&it, h->repo, "other", NULL, NULL, err);
    while (rc >= 0 && (rc = brc_diff_next(it, &c, err)) > 0)
        n++;
    brc_iter_free(it);
    ck_assert(rc < 0 || n == 2);
    return rc;
}

static int no_damage(void *ctx, const brc_damage *damage)
{
    (void)ctx; /* SQLite's own check says it in its own way */
    if (strstr(damage->message, "unable to get the page") == NULL)
        ck_abort_msg("a fault of the disk is told as damage: %s", damage->message);
    return 0;
}

static int act_fsck(handles *h, brc_error *err)
{
    uint64_t checked;
    return brc_fsck(h->repo, 0, no_damage, NULL, &checked, err);
}

/* Opening and closing, in this place. */
static int act_reopen(handles *h, brc_error *err)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo;
    (void)h;
    opts.vfs = FAULT_VFS_NAME;
    opts.wait_ms = -1;
    int rc = brc_open(&repo, work, &opts, err);
    brc_free(repo);
    return rc;
}

static int act_reopen_to_read(handles *h, brc_error *err)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo;
    const brc_ref *ref;
    brc_iter *it = NULL;
    (void)h;
    opts.vfs = FAULT_VFS_NAME;
    opts.wait_ms = -1;
    opts.flags = BRC_OPEN_READONLY;
    int rc = brc_open(&repo, work, &opts, err);
    if (rc == BRC_OK)
        rc = brc_refs(&it, repo, err);
    while (rc == BRC_OK && (rc = brc_refs_next(it, &ref, err)) > 0)
        rc = BRC_OK;
    brc_iter_free(it);
    brc_free(repo);
    return rc;
}

static const struct {
    const char *name;
    int (*run)(handles *h, brc_error *err);
} acts[] = {
    { "array_create", act_create },
    { "array_write", act_write },
    { "array_write part", act_write_part },
    { "array_append", act_append },
    { "array_resize", act_shrink },
    { "set_codecs", act_recode },
    { "node_restore", act_restore },
    { "group_create", act_group },
    { "attrs_set", act_attribute },
    { "node_move", act_move },
    { "node_copy", act_copy },
    { "node_remove", act_remove },
    { "import", act_import },
    { "commit", act_commit },
    { "amend", act_amend },
    { "discard", act_discard },
    { "branch_create", act_branch },
    { "branch_delete", act_branch_delete },
    { "branch_rename", act_branch_rename },
    { "tag_create", act_tag },
    { "switch", act_switch },
    { "reset", act_reset },
    { "reset hard", act_reset_hard },
    { "begin, end", act_batch },
    { "array_read", act_read },
    { "session_clean", act_is_clean },
    { "log", act_log },
    { "diff", act_diff },
    { "fsck", act_fsck },
    { "open", act_reopen },
    { "open to read", act_reopen_to_read },
};
enum { ACTS = sizeof(acts) / sizeof(acts[0]) };

/* ---- running them ------------------------------------------------------------ */

static void copy_file(const char *from, const char *to)
{
    brc_buf bytes = BRC_BUF_INIT;
    unlink(to);
    if (brc_file_kind(from) != 2)
        return;
    OK(brc_file_read(&bytes, from, &kit.err));
    OK(brc_file_write(to, bytes.data, bytes.len, &kit.err));
    brc_buf_dispose(&bytes);
}

/* The file and a journal that was left behind, as if the process were dead. */
static void copy_both(const char *from, const char *to)
{
    char a[160], b[160];
    copy_file(from, to);
    snprintf(a, sizeof(a), "%s-journal", from);
    snprintf(b, sizeof(b), "%s-journal", to);
    copy_file(a, b);
}

static void open_work(handles *h)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    memset(h, 0, sizeof(*h));
    copy_both(kit.file, work);
    opts.vfs = FAULT_VFS_NAME;
    opts.wait_ms = -1;
    OK(brc_open(&h->repo, work, &opts, &kit.err));
    OK(brc_session_open(&h->s, h->repo, NULL, BRC_SESSION_WRITE, &kit.err));
    OK(brc_array_open(&h->a, h->s, "/a", &kit.err));
}

static void close_work(handles *h)
{
    brc_array_free(h->made);
    brc_array_free(h->a);
    brc_session_free(h->s);
    brc_free(h->repo);
}

typedef struct fault_case {
    unsigned kind;
    int for_ever, code;
} fault_case;

static const fault_case cases[] = {
    { FAULT_WRITE, 0, BRC_EIO },     { FAULT_FULL, 1, BRC_ENOSPACE }, { FAULT_SYNC, 0, BRC_EIO },
    { FAULT_SYNC, 1, BRC_EIO },      { FAULT_READ, 0, BRC_EIO },      { FAULT_READ, 1, BRC_EIO },
    { FAULT_TRUNCATE, 0, BRC_EIO },  { FAULT_SIZE, 0, BRC_EIO },      { FAULT_LOCK, 0, BRC_EIO },
    { FAULT_LOCK, 1, BRC_EIO },      { FAULT_OPEN, 0, BRC_EIO },      { FAULT_DELETE, 0, BRC_EIO },
    { FAULT_DELETE, 1, BRC_EIO },    { FAULT_DELETED, 0, BRC_EIO },   { FAULT_ACCESS, 0, BRC_EIO },
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

/* The first lines in which two digests differ. */
static const char *first_difference(const char *a, const char *b)
{
    static char text[400];
    size_t line = 0, at = 0;
    for (; a[at] != '\0' && a[at] == b[at]; at++)
        if (a[at] == '\n')
            line = at + 1;
    snprintf(text, sizeof(text), "\"%.*s\", not \"%.*s\"", (int)strcspn(a + line, "\n") % 150,
             a + line, (int)strcspn(b + line, "\n") % 150, b + line);
    return text;
}

/* One run with the n-th operation failing. 0 if there is no n-th. */
static int run_with_fault(int act, const fault_case *c, uint64_t n, const char *before,
                          const char *after)
{
    handles h;
    brc_error err = BRC_ERROR_INIT;
    char where[128];
    snprintf(where, sizeof(where), "%s, kind %u, %s %d", acts[act].name, c->kind,
             c->for_ever ? "from operation" : "operation", (int)n);
    open_work(&h);
    fault_vfs_arm(&faults, c->kind, n, c->for_ever);
    int rc = acts[act].run(&h, &err);
    int hits = faults.hits;
    fault_vfs_disarm(&faults);
    if (hits == 0 || rc == BRC_OK) { /* what SQLite can do without is no error */
        if (rc != BRC_OK)
            ck_abort_msg("%s: %s", where, err.message);
        close_work(&h);
        if (hits > 0) {
            char *now = file_digest(work);
            if (strcmp(now, after) != 0)
                ck_abort_msg("%s: all is well, and the file has %s", where,
                             first_difference(now, after));
            free(now);
        }
        return hits > 0;
    }
    if (rc != c->code || err.code != rc || err.message[0] == '\0')
        ck_abort_msg("%s: %d (%s) and not %d: %s", where, rc, brc_strerror(rc), c->code,
                     err.message);
    copy_both(work, copy);
    char *now = file_digest(copy);
    int is_done = c->kind == FAULT_DELETED && strcmp(now, after) == 0;
    if (!is_done && strcmp(now, before) != 0)
        ck_abort_msg("%s: it failed (%s), and the file has changed: %s", where, err.message,
                     first_difference(now, before));
    if (!file_is_whole(copy))
        ck_abort_msg("%s: the file is damaged", where);
    free(now);
    if (!is_done) { /* the fault is over: the same handle can go on */
        rc = acts[act].run(&h, &err);
        if (rc != BRC_OK)
            ck_abort_msg("%s, and then again: %s", where, err.message);
    }
    close_work(&h);
    now = file_digest(work);
    if (strcmp(now, after) != 0)
        ck_abort_msg("%s, and then again: the file has %s", where, first_difference(now, after));
    free(now);
    return 1;
}

START_TEST(a_failing_disk_gives_an_error_and_changes_nothing)
{
    handles h;
    char *before = file_digest(kit.file);
    ck_assert_uint_gt(strlen(before), 1000);
    for (int i = 0; i < 160; i++)
        numbers[i] = 1000 - i * i;
    open_work(&h);
    OK(acts[_i].run(&h, &kit.err));
    close_work(&h);
    char *after = file_digest(work);
    ck_assert_int_eq(strcmp(before, after) != 0,
                     acts[_i].run != act_read && acts[_i].run != act_is_clean &&
                         acts[_i].run != act_log && acts[_i].run != act_diff &&
                         acts[_i].run != act_fsck && acts[_i].run != act_reopen &&
                         acts[_i].run != act_reopen_to_read);
    for (size_t i = 0; i < CASES; i++) {
        uint64_t n = 1;
        while (run_with_fault(_i, &cases[i], n, before, after))
            n++;
        ck_assert_uint_lt(n, 2000);
    }
    free(before);
    free(after);
}
END_TEST

/* ---- a journal that was left behind ------------------------------------------ */

/* All pages of a commit are written, but it is not one yet: whoever opens the file,
 * and whatever fails then, must not take it for one. */
START_TEST(a_left_journal_is_never_passed_over)
{
    static const unsigned kinds[] = { FAULT_READ, FAULT_ACCESS, FAULT_OPEN, FAULT_SIZE, FAULT_LOCK,
                                      FAULT_WRITE, FAULT_SYNC, FAULT_TRUNCATE, FAULT_DELETE };
    handles h;
    brc_oid want, got;
    char *before = file_digest(kit.file);
    open_work(&h);
    OK(brc_resolve(&want, h.repo, "main", &kit.err));
    fault_vfs_arm(&faults, FAULT_DELETE, 1, 1);
    KIT_FAILS(&kit, BRC_EIO, "", act_commit(&h, &kit.err));
    copy_both(work, copy);
    close_work(&h);
    fault_vfs_disarm(&faults);
    for (size_t i = 0; i < 2 * sizeof(kinds) / sizeof(kinds[0]); i++) {
        for (uint64_t n = 1; faults.hits > 0 || n == 1; n++) {
            brc_open_opts opts = BRC_OPEN_OPTS_INIT;
            breccia *repo;
            opts.vfs = FAULT_VFS_NAME;
            opts.wait_ms = -1;
            opts.flags = _i == 0 ? BRC_OPEN_READONLY : 0;
            copy_both(copy, work);
            fault_vfs_arm(&faults, kinds[i / 2], n, i % 2);
            int rc = brc_open(&repo, work, &opts, &kit.err);
            if (rc == BRC_OK)
                rc = brc_resolve(&got, repo, "main", &kit.err);
            if (rc == BRC_OK && brc_oid_cmp(&got, &want) != 0)
                ck_abort_msg("kind %u, operation %d: half a commit is read", kinds[i / 2], (int)n);
            if (rc != BRC_OK && rc != BRC_EIO && rc != BRC_EREADONLY)
                ck_abort_msg("kind %u, operation %d: %s", kinds[i / 2], (int)n, kit.err.message);
            brc_free(repo);
            fault_vfs_disarm(&faults);
            char *now = file_digest(work);
            if (strcmp(now, before) != 0)
                ck_abort_msg("kind %u, operation %d: %s", kinds[i / 2], (int)n,
                             first_difference(now, before));
            free(now);
        }
    }
    free(before);
}
END_TEST

/* ---- a new file -------------------------------------------------------------- */

static int make_new(brc_error *err)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo;
    opts.flags = BRC_OPEN_CREATE;
    opts.vfs = FAULT_VFS_NAME;
    opts.wait_ms = -1;
    int rc = brc_open(&repo, work, &opts, err);
    brc_free(repo);
    return rc;
}

START_TEST(a_file_that_could_not_be_made_is_not_there)
{
    const fault_case *c = &cases[_i];
    brc_error err = BRC_ERROR_INIT;
    char journal[160];
    snprintf(journal, sizeof(journal), "%s-journal", work);
    for (uint64_t n = 1;; n++) {
        unlink(work);
        fault_vfs_arm(&faults, c->kind, n, c->for_ever);
        int rc = make_new(&err), hits = faults.hits;
        fault_vfs_disarm(&faults);
        if (rc < 0) {
            ck_assert_msg(rc == c->code, "operation %d: %s", (int)n, err.message);
            ck_assert_int_eq(brc_file_kind(work), 0);
            OK(make_new(&kit.err)); /* whatever journal was left behind */
        }
        ck_assert_int_eq(brc_file_kind(journal), 0);
        ck_assert(file_is_whole(work));
        if (hits == 0)
            break;
    }
}
END_TEST

Suite *io_faults_suite(void)
{
    Suite *s = suite_create("io_faults");
    TCase *tc = tcase_create("io_faults");
    tcase_add_checked_fixture(tc, faults_setup, faults_teardown);
    tcase_add_loop_test(tc, a_failing_disk_gives_an_error_and_changes_nothing, 0, ACTS);
    tcase_add_loop_test(tc, a_left_journal_is_never_passed_over, 0, 2);
    tcase_add_loop_test(tc, a_file_that_could_not_be_made_is_not_there, 0, CASES);
    suite_add_tcase(s, tc);
    return s;
}
