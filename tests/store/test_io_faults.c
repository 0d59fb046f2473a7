/*
 * Every operation on the file fails, one after the other, once or from then on:
 * a call then gives an error of the right kind, the file is what it was before (or,
 * where only the folder could not be synced, what it is behind), and when the fault
 * is over the same handle does the same call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../../src/base/hash.h"
#include "../kit/effort.h"
#include "../kit/fault_acts.h"
#include "../kit/fault_vfs.h"
#include "../kit/file_digest.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(io_faults);

static store_kit kit; /* the folder, and kit.file: what every call starts from    */
static fault_vfs faults;
static fault_base base;
static char copy[128];

#define OK(call) KIT_OK(&kit, call)

/* The verdict on the bytes of a file without a journal, which those bytes alone decide: most runs
 * end in one of a few. */
typedef struct verdict {
    brc_oid bytes;
    int is_before, is_after, is_whole;
} verdict;

static verdict verdicts[512];
static size_t nverdicts;

static void faults_setup(void)
{
    store_kit_folder(&kit);
    nverdicts = 0;
    snprintf(copy, sizeof(copy), "%s/copy.brc", kit.dir);
    fault_base_make(&base, &kit, 0);
    fault_vfs_register(&faults);
}

static void faults_teardown(void)
{
    fault_vfs_unregister(&faults);
    store_kit_stop(&kit);
}

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

static void open_fresh_copy(fault_handles *h)
{
    copy_both(kit.file, base.work);
    fault_open(h, &base, FAULT_VFS_NAME, -1);
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

static char *digest_after(int act, const char *file)
{
    return fault_acts[act].batches ? file_digest_seen(file) : file_digest(file);
}

static verdict *verdict_of(const char *file)
{
    static verdict unknown;
    char journal[160];
    unknown = (verdict){ .is_whole = 0 };
    snprintf(journal, sizeof(journal), "%s-journal", file);
    if (brc_file_kind(journal) != 0)
        return &unknown;
    brc_buf all = store_kit_read(file);
    const brc_oid bytes = brc_hash_object(BRC_HASH_XXH128, BRC_KIND_CHUNK, all.data, all.len);
    brc_buf_dispose(&all);
    for (size_t i = 0; i < nverdicts; i++)
        if (brc_oid_cmp(&verdicts[i].bytes, &bytes) == 0)
            return &verdicts[i];
    if (nverdicts == sizeof(verdicts) / sizeof(verdicts[0]))
        return &unknown;
    verdicts[nverdicts] = (verdict){ .bytes = bytes };
    return &verdicts[nverdicts++];
}

/* Returns whether the file has the contents of after the call. The contents of before are allowed
 * where may_be_before is set; any others fail the test. */
static int says_after(int act, const char *file, int may_be_before, const char *before,
                      const char *after, const char *where)
{
    verdict *v = verdict_of(file);
    if (v->is_after || (may_be_before && v->is_before))
        return v->is_after;
    char *now = digest_after(act, file);
    v->is_after = strcmp(now, after) == 0;
    v->is_before = strcmp(now, before) == 0;
    if (!v->is_after && !(may_be_before && v->is_before))
        ck_abort_msg("%s: the file has %s", where,
                     first_difference(now, may_be_before ? before : after));
    free(now);
    return v->is_after;
}

static void check_whole(const char *file, const char *where)
{
    verdict *v = verdict_of(file);
    if (!v->is_whole && !file_is_whole(file))
        ck_abort_msg("%s: the file is damaged", where);
    v->is_whole = 1;
}

/* While its handle is open: it is whole, and as it was before the call, or, where only the folder
 * could not be synced, as it is behind it. */
static int is_done_in_spite(int act, unsigned kind, const char *before, const char *after,
                            const char *where)
{
    const verdict *v = verdict_of(base.work);
    if (v->is_before && v->is_whole)
        return 0;
    copy_both(base.work, copy);
    const int is_done = says_after(act, copy, 1, before, after, where) &&
                        strcmp(before, after) != 0;
    if (is_done && kind != FAULT_DELETED)
        ck_abort_msg("%s: it failed, and is done", where);
    check_whole(copy, where);
    return is_done;
}

/* One run with the n-th operation failing. 0 if there is no n-th. */
static int run_with_fault(int act, const fault_case *c, uint64_t n, const char *before,
                          const char *after)
{
    fault_handles h;
    brc_error err = BRC_ERROR_INIT;
    char where[128];
    snprintf(where, sizeof(where), "%s, kind %u, %s %d", fault_acts[act].name, c->kind,
             c->for_ever ? "from operation" : "operation", (int)n);
    open_fresh_copy(&h);
    fault_vfs_arm(&faults, c->kind, n, c->for_ever);
    int rc = fault_acts[act].run(&h, &err);
    int hits = faults.hits;
    fault_vfs_disarm(&faults);
    if (hits == 0 || rc == BRC_OK) { /* SQLite can do without this operation */
        if (rc != BRC_OK)
            ck_abort_msg("%s: %s", where, err.message);
        fault_close(&h);
        if (hits > 0)
            (void)says_after(act, base.work, 0, before, after, where);
        return hits > 0;
    }
    if (rc != c->code || err.code != rc || err.message[0] == '\0')
        ck_abort_msg("%s: %d (%s) and not %d: %s", where, rc, brc_strerror(rc), c->code,
                     err.message);
    if (!is_done_in_spite(act, c->kind, before, after, where)) {
        rc = fault_acts[act].run(&h, &err); /* the fault is over: the same handle can go on */
        if (rc != BRC_OK)
            ck_abort_msg("%s, and then again: %s", where, err.message);
    }
    fault_close(&h);
    strncat(where, ", and then again", sizeof(where) - strlen(where) - 1);
    (void)says_after(act, base.work, 0, before, after, where);
    return 1;
}

CASE("io_faults", .setup = faults_setup, .teardown = faults_teardown);

LOOP(a_failing_disk_gives_an_error_and_changes_nothing, 0, fault_nacts)
{
    fault_handles h;
    char *before = digest_after(_i, kit.file);
    ck_assert_uint_gt(strlen(before), 1000);
    open_fresh_copy(&h);
    OK(fault_acts[_i].run(&h, &kit.err));
    fault_close(&h);
    char *after = digest_after(_i, base.work);
    ck_assert_int_eq(strcmp(before, after) != 0, fault_acts[_i].changes);
    for (size_t i = 0; i < CASES; i++) {
        const uint64_t step = effort_step(4, 4);
        uint64_t n = 1 + (i + (size_t)_i) % step;
        while (run_with_fault(_i, &cases[i], n, before, after))
            n += step;
        ck_assert_uint_lt(n, 2000);
    }
    free(before);
    free(after);
}

/* ---- a journal that was left behind ------------------------------------------ */

/* All pages of a commit are written, but it is not one yet: whoever opens the file,
 * and whatever fails then, must not take it for one. */
LOOP(a_left_journal_is_never_passed_over, 0, 2)
{
    static const unsigned kinds[] = { FAULT_READ, FAULT_ACCESS, FAULT_OPEN, FAULT_SIZE, FAULT_LOCK,
                                      FAULT_WRITE, FAULT_SYNC, FAULT_TRUNCATE, FAULT_DELETE };
    fault_handles h;
    brc_oid want, got;
    char *before = file_digest(kit.file);
    open_fresh_copy(&h);
    OK(brc_resolve(&want, h.repo, "main", &kit.err));
    fault_vfs_arm(&faults, FAULT_DELETE, 1, 1);
    KIT_FAILS(&kit, BRC_EIO, "", fault_act_commit(&h, &kit.err));
    copy_both(base.work, copy);
    fault_close(&h);
    fault_vfs_disarm(&faults);
    for (size_t i = 0; i < 2 * sizeof(kinds) / sizeof(kinds[0]); i++) {
        for (uint64_t n = 1; faults.hits > 0 || n == 1; n++) {
            brc_open_opts opts = BRC_OPEN_OPTS_INIT;
            breccia *repo;
            opts.vfs = FAULT_VFS_NAME;
            opts.wait_ms = -1;
            opts.flags = _i == 0 ? BRC_OPEN_READONLY : 0;
            copy_both(copy, base.work);
            fault_vfs_arm(&faults, kinds[i / 2], n, i % 2);
            int rc = brc_open(&repo, base.work, &opts, &kit.err);
            if (rc == BRC_OK)
                rc = brc_resolve(&got, repo, "main", &kit.err);
            if (rc == BRC_OK && brc_oid_cmp(&got, &want) != 0)
                ck_abort_msg("kind %u, operation %d: half a commit is read", kinds[i / 2], (int)n);
            if (rc != BRC_OK && rc != BRC_EIO && rc != BRC_EREADONLY)
                ck_abort_msg("kind %u, operation %d: %s", kinds[i / 2], (int)n, kit.err.message);
            brc_free(repo);
            fault_vfs_disarm(&faults);
            char *now = file_digest(base.work);
            if (strcmp(now, before) != 0)
                ck_abort_msg("kind %u, operation %d: %s", kinds[i / 2], (int)n,
                             first_difference(now, before));
            free(now);
        }
    }
    free(before);
}

/* ---- a new file -------------------------------------------------------------- */

static int make_new(brc_error *err)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo;
    opts.flags = BRC_OPEN_CREATE;
    opts.vfs = FAULT_VFS_NAME;
    opts.wait_ms = -1;
    int rc = brc_open(&repo, base.work, &opts, err);
    brc_free(repo);
    return rc;
}

LOOP(a_file_that_could_not_be_made_is_not_there, 0, CASES)
{
    const fault_case *c = &cases[_i];
    brc_error err = BRC_ERROR_INIT;
    char journal[160];
    snprintf(journal, sizeof(journal), "%s-journal", base.work);
    for (uint64_t n = 1;; n++) {
        unlink(base.work);
        fault_vfs_arm(&faults, c->kind, n, c->for_ever);
        int rc = make_new(&err), hits = faults.hits;
        fault_vfs_disarm(&faults);
        if (rc < 0) {
            ck_assert_msg(rc == c->code, "operation %d: %s", (int)n, err.message);
            ck_assert_int_eq(brc_file_kind(base.work), 0);
            OK(make_new(&kit.err)); /* whatever journal was left behind */
        }
        ck_assert_int_eq(brc_file_kind(journal), 0);
        ck_assert(file_is_whole(base.work));
        if (hits == 0)
            break;
    }
}
