#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "fault_acts.h"

/* ---- the repository that every call starts from ------------------------------ */

static brc_oid commit_as(fault_base *b, brc_session *s, const char *message, int64_t time)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    opts.message = message;
    opts.author = "a";
    opts.time_us = time;
    KIT_OK(b->kit, brc_session_commit(&id, s, &opts, &b->kit->err));
    return id;
}

static brc_array *fault_array(fault_base *b, brc_session *s, const char *path, uint64_t n,
                             uint64_t chunk, int32_t from)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    spec.ndim = 1;
    spec.shape = &n;
    spec.chunk = &chunk;
    spec.dtype = "int32";
    spec.codecs_json = "[" FAULT_LITTLE ",{\"name\":\"zstd\",\"configuration\":{\"level\":1,"
                       "\"checksum\":false}}]";
    KIT_OK(b->kit, brc_array_create(&a, s, path, &spec, &b->kit->err));
    int32_t *data = malloc(n * 4);
    for (uint64_t i = 0; i < n; i++)
        data[i] = from + (int32_t)(i / 3);
    KIT_OK(b->kit, brc_array_write(a, NULL, data, n * 4, &b->kit->err));
    free(data);
    return a;
}

/* ---- drafts of processes that are dead ---------------------------------------- */

static int change_left(brc_session *s)
{
    int rc = brc_attrs_set(s, "/a", "mine", "7", NULL);
    return rc < 0 ? rc : brc_node_move(s, "/g", "/away", 0, NULL);
}

static int write_numbers(brc_session *s, const char *path, uint64_t from, uint64_t n)
{
    int32_t numbers[32];
    brc_array *a;
    brc_sel sel = BRC_SEL_INIT;
    sel.ndim = 1;
    sel.start[0] = from;
    sel.count[0] = n;
    sel.step[0] = 1;
    for (int i = 0; i < 32; i++)
        numbers[i] = (int32_t)from + 100 * i;
    int rc = brc_array_open(&a, s, path, NULL);
    if (rc == BRC_OK)
        rc = brc_array_write(a, &sel, numbers, n * 4, NULL);
    brc_array_free(a);
    return rc;
}

/* Another chunk than the one that is uncommitted. */
static int change_over(brc_session *s)
{
    return write_numbers(s, "/a", 96, 32);
}

static int change_deep(brc_session *s)
{
    return write_numbers(s, "/deep", FAULT_STACK + 3, 1);
}

static int64_t leave_draft(fault_base *b, const char *branch, int (*change)(brc_session *s))
{
    breccia *repo;
    brc_session *s;
    brc_iter *it;
    const brc_draft *draft;
    int64_t id = 0;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(brc_open(&repo, b->kit->file, NULL, NULL) < 0 ||
              brc_session_open(&s, repo, branch, BRC_SESSION_PRIVATE, NULL) < 0 || change(s) < 0);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    KIT_OK(b->kit, brc_open(&repo, b->kit->file, NULL, &b->kit->err));
    KIT_OK(b->kit, brc_drafts(&it, repo, &b->kit->err));
    while (brc_next(it, &draft, &b->kit->err) > 0)
        if ((draft->flags & BRC_DRAFT_OWNED) && strcmp(draft->branch, branch) == 0)
            id = draft->id;
    brc_iter_free(it);
    brc_free(repo);
    ck_assert_int_ne(id, 0);
    return id;
}

/* Uncommitted chunks in as many rows as may lie over each other. */
static void make_stack(fault_base *b, breccia *repo)
{
    brc_session *s, *mine;
    KIT_OK(b->kit, brc_ref_create(repo, "deep", NULL, NULL, 0, &b->kit->err));
    KIT_OK(b->kit, brc_session_open(&s, repo, "deep", BRC_SESSION_WRITE, &b->kit->err));
    brc_array_free(fault_array(b, s, "/deep", FAULT_STACK + 8, 1, 0));
    commit_as(b, s, "deep", 2500);
    KIT_OK(b->kit, brc_session_open(&mine, repo, "deep", BRC_SESSION_PRIVATE, &b->kit->err));
    for (uint64_t i = 0; i < FAULT_STACK; i++) {
        KIT_OK(b->kit, write_numbers(mine, "/deep", i, 1));
        KIT_OK(b->kit, brc_session_hand_over(mine, s, &b->kit->err));
    }
    brc_session_free(mine);
    brc_session_free(s);
}

/* ---- all of it --------------------------------------------------------------- */

/* Two branches, a tag, two arrays and a group; on main something uncommitted. */
static void fault_versions(fault_base *b)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo;
    brc_session *s;
    int32_t three[3] = { 7, 8, 9 };
    brc_sel sel = { .size = sizeof(brc_sel), .ndim = 1,
                    .start = { 30 }, .count = { 3 }, .step = { 1 } };
    opts.flags = BRC_OPEN_CREATE;
    KIT_OK(b->kit, brc_open(&repo, b->kit->file, &opts, &b->kit->err));
    KIT_OK(b->kit, brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &b->kit->err));
    brc_array_free(fault_array(b, s, "/a", 128, 32, 100));
    KIT_OK(b->kit, brc_group_create(s, "/g/h", "{\"k\":1}", &b->kit->err));
    commit_as(b, s, "one", 1000);
    KIT_OK(b->kit, brc_ref_create(repo, "other", NULL, NULL, 0, &b->kit->err));
    brc_array_free(fault_array(b, s, "/g/b", 40, 40, 5));
    commit_as(b, s, "two", 2000);
    KIT_OK(b->kit, brc_ref_create(repo, "v1", NULL, "a tag", BRC_REF_TAG, &b->kit->err));
    brc_array *a;
    KIT_OK(b->kit, brc_array_open(&a, s, "/a", &b->kit->err));
    KIT_OK(b->kit, brc_array_write(a, &sel, three, sizeof(three), &b->kit->err));
    KIT_OK(b->kit, brc_attrs_set(s, "/a", "note", "\"draft\"", &b->kit->err));
    brc_array_free(a);
    brc_session_free(s);
    make_stack(b, repo);
    KIT_OK(b->kit, brc_ref_create(repo, "left", NULL, NULL, 0, &b->kit->err));
    brc_free(repo);
}

static void into_wal_mode(fault_base *b)
{
    breccia *repo;
    KIT_OK(b->kit, brc_open(&repo, b->kit->file, NULL, &b->kit->err));
    KIT_OK(b->kit, brc_config_set(repo, "journal", "wal", &b->kit->err));
    brc_free(repo);
}

void fault_base_make(fault_base *b, store_kit *kit, int wal)
{
    static const uint8_t npy_file[] = "\x93NUMPY\1\0\x3c\0{'descr':'<i4','fortran_order':False,"
                                      "'shape':(3,),}        \n\1\0\0\0\2\0\0\0\3\0\0\0";
    *b = (fault_base){ .kit = kit };
    snprintf(b->work, sizeof(b->work), "%s/work.brc", kit->dir);
    snprintf(b->npy, sizeof(b->npy), "%s/in.npy", kit->dir);
    for (int i = 0; i < 160; i++)
        b->numbers[i] = 1000 - i * i;
    KIT_OK(kit, brc_file_write(b->npy, npy_file, sizeof(npy_file) - 1, &kit->err));
    fault_versions(b);
    b->left_draft = leave_draft(b, "left", change_left);
    b->over_draft = leave_draft(b, "main", change_over);
    b->deep_draft = leave_draft(b, "deep", change_deep);
    if (wal)
        into_wal_mode(b);
}
