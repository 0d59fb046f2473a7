#include "fault_acts.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "fault_vfs.h"

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"

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

static brc_array *make_array(fault_base *b, brc_session *s, const char *path, uint64_t n,
                             uint64_t chunk, int32_t from)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    spec.ndim = 1;
    spec.shape = &n;
    spec.chunk = &chunk;
    spec.dtype = "int32";
    spec.codecs_json = "[" LITTLE ",{\"name\":\"zstd\",\"configuration\":{\"level\":1,"
                       "\"checksum\":false}}]";
    KIT_OK(b->kit, brc_array_create(&a, s, path, &spec, &b->kit->err));
    int32_t *data = malloc(n * 4);
    for (uint64_t i = 0; i < n; i++)
        data[i] = from + (int32_t)(i / 3);
    KIT_OK(b->kit, brc_array_write(a, NULL, data, n * 4, &b->kit->err));
    free(data);
    return a;
}

/* Two branches, a tag, two arrays and a group; on main something uncommitted. */
static void make_versions(fault_base *b)
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
    brc_array_free(make_array(b, s, "/a", 128, 32, 100));
    KIT_OK(b->kit, brc_group_create(s, "/g/h", "{\"k\":1}", &b->kit->err));
    commit_as(b, s, "one", 1000);
    KIT_OK(b->kit, brc_branch_create(repo, "other", NULL, &b->kit->err));
    brc_array_free(make_array(b, s, "/g/b", 40, 40, 5));
    commit_as(b, s, "two", 2000);
    KIT_OK(b->kit, brc_tag_create(repo, "v1", NULL, "a tag", &b->kit->err));
    brc_array *a;
    KIT_OK(b->kit, brc_array_open(&a, s, "/a", &b->kit->err));
    KIT_OK(b->kit, brc_array_write(a, &sel, three, sizeof(three), &b->kit->err));
    KIT_OK(b->kit, brc_attrs_set(s, "/a", "note", "\"draft\"", &b->kit->err));
    brc_array_free(a);
    brc_session_free(s);
    brc_free(repo);
}

/* A private draft on a branch of its own, of a process that is dead. */
static void leave_draft(fault_base *b)
{
    breccia *repo;
    brc_session *s;
    brc_iter *it;
    const brc_draft *draft;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        if (brc_open(&repo, b->kit->file, NULL, NULL) < 0 ||
            brc_branch_create(repo, "left", NULL, NULL) < 0 ||
            brc_session_open(&s, repo, "left", BRC_SESSION_PRIVATE, NULL) < 0 ||
            brc_attrs_set(s, "/a", "mine", "7", NULL) < 0 ||
            brc_node_move(s, "/g", "/away", NULL) < 0)
            _exit(1);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    KIT_OK(b->kit, brc_open(&repo, b->kit->file, NULL, &b->kit->err));
    KIT_OK(b->kit, brc_drafts(&it, repo, &b->kit->err));
    while (brc_drafts_next(it, &draft, &b->kit->err) > 0)
        if (draft->flags & BRC_DRAFT_OWNED)
            b->left_draft = draft->id;
    brc_iter_free(it);
    brc_free(repo);
    ck_assert_int_ne(b->left_draft, 0);
}

void fault_base_make(fault_base *b, store_kit *kit)
{
    static const uint8_t npy_file[] = "\x93NUMPY\1\0\x3c\0{'descr':'<i4','fortran_order':False,"
                                      "'shape':(3,),}        \n\1\0\0\0\2\0\0\0\3\0\0\0";
    *b = (fault_base){ .kit = kit };
    snprintf(b->work, sizeof(b->work), "%s/work.brc", kit->dir);
    snprintf(b->npy, sizeof(b->npy), "%s/in.npy", kit->dir);
    for (int i = 0; i < 160; i++)
        b->numbers[i] = 1000 - i * i;
    KIT_OK(kit, brc_file_write(b->npy, npy_file, sizeof(npy_file) - 1, &kit->err));
    make_versions(b);
    leave_draft(b);
}

/* ---- the calls --------------------------------------------------------------- */

static int act_create(fault_handles *h, brc_error *err)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    uint64_t shape = 10;
    spec.ndim = 1;
    spec.shape = &shape;
    spec.dtype = "float32";
    brc_array_free(h->made);
    return brc_array_create(&h->made, h->s, "/n/o/p", &spec, err);
}

static int act_write(fault_handles *h, brc_error *err)
{
    return brc_array_write(h->a, NULL, h->base->numbers, 512, err);
}

static int act_write_part(fault_handles *h, brc_error *err)
{
    brc_sel sel = { .size = sizeof(brc_sel), .ndim = 1,
                    .start = { 20 }, .count = { 60 }, .step = { 1 } };
    return brc_array_write(h->a, &sel, h->base->numbers, 240, err);
}

static int act_append(fault_handles *h, brc_error *err)
{
    return brc_array_append(h->a, 0, 20, h->base->numbers, 80, err);
}

static int act_shrink(fault_handles *h, brc_error *err)
{
    uint64_t shape = 50;
    return brc_array_resize(h->a, &shape, err);
}

static int act_recode(fault_handles *h, brc_error *err)
{
    return brc_array_set_codecs(h->a, "[" LITTLE "]", 1, err);
}

static int act_restore(fault_handles *h, brc_error *err)
{
    return brc_node_restore(h->s, "/a", "other", err);
}

static int act_group(fault_handles *h, brc_error *err)
{
    return brc_group_create(h->s, "/m/n", "{}", err);
}

static int act_attribute(fault_handles *h, brc_error *err)
{
    return brc_attrs_set(h->s, "/g", "x", "[1]", err);
}

static int act_move(fault_handles *h, brc_error *err)
{
    return brc_node_move(h->s, "/a", "/g/h/moved", err);
}

static int act_copy(fault_handles *h, brc_error *err)
{
    return brc_node_copy(h->s, "/g", "/copied", err);
}

static int act_remove(fault_handles *h, brc_error *err)
{
    return brc_node_remove(h->s, "/g", err);
}

static int act_import(fault_handles *h, brc_error *err)
{
    return brc_import(h->s, h->base->npy, "/imported", NULL, err);
}

static int commit_flags(fault_handles *h, uint32_t flags, brc_error *err)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    opts.message = "three";
    opts.time_us = 3000;
    opts.flags = flags;
    return brc_session_commit(&id, h->s, &opts, err);
}

int fault_act_commit(fault_handles *h, brc_error *err)
{
    return commit_flags(h, 0, err);
}

static int act_amend(fault_handles *h, brc_error *err)
{
    return commit_flags(h, BRC_COMMIT_AMEND, err);
}

static int act_discard(fault_handles *h, brc_error *err)
{
    return brc_session_discard(h->s, err);
}

static int act_branch(fault_handles *h, brc_error *err)
{
    return brc_branch_create(h->repo, "new", "main~1", err);
}

static int act_branch_delete(fault_handles *h, brc_error *err)
{
    return brc_branch_delete(h->repo, "other", 0, err);
}

static int act_branch_rename(fault_handles *h, brc_error *err)
{
    return brc_branch_rename(h->repo, "other", "another", err);
}

static int act_tag(fault_handles *h, brc_error *err)
{
    return brc_tag_create(h->repo, "v2", "v1", "again", err);
}

static int act_switch(fault_handles *h, brc_error *err)
{
    return brc_switch(h->repo, "other", BRC_SWITCH_DISCARD, err);
}

static int act_reset(fault_handles *h, brc_error *err)
{
    return brc_reset(h->repo, "other", 0, NULL, err);
}

static int act_reset_hard(fault_handles *h, brc_error *err)
{
    return brc_reset(h->repo, "other", BRC_RESET_HARD, NULL, err);
}

static int act_batch(fault_handles *h, brc_error *err)
{
    int rc = brc_begin(h->repo, err);
    if (rc < 0)
        return rc;
    rc = brc_array_write(h->a, NULL, h->base->numbers, 512, err);
    if (rc == BRC_OK)
        rc = brc_attrs_set(h->s, "/g", "x", "[1]", err);
    if (rc == BRC_OK)
        rc = commit_flags(h, 0, err);
    int end = brc_end(h->repo, rc == BRC_OK ? BRC_END_KEEP : 0, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

/* ---- private drafts: of a session, and one that the dead have left ------------ */

static int open_private(fault_handles *h, brc_error *err)
{
    return h->private != NULL ? BRC_OK
                              : brc_session_open(&h->private, h->repo, NULL,
                                                 BRC_SESSION_PRIVATE, err);
}

static int act_private_write(fault_handles *h, brc_error *err)
{
    brc_array *a = NULL;
    brc_sel sel = BRC_SEL_INIT;
    sel.ndim = 1;
    sel.start[0] = 100;
    sel.count[0] = 20;
    sel.step[0] = 1;
    int rc = open_private(h, err);
    if (rc == BRC_OK)
        rc = brc_array_open(&a, h->private, "/a", err);
    if (rc == BRC_OK)
        rc = brc_array_write(a, &sel, h->base->numbers, 80, err);
    brc_array_free(a);
    return rc;
}

/* A change of the private draft and what is done with it, as one. */
static int private_batch(fault_handles *h, int (*then)(fault_handles *h, brc_error *err),
                         brc_error *err)
{
    int rc = open_private(h, err);
    if (rc == BRC_OK)
        rc = brc_begin(h->repo, err);
    if (rc < 0)
        return rc;
    rc = act_private_write(h, err);
    if (rc == BRC_OK)
        rc = brc_node_move(h->private, "/g/b", "/g/moved", err);
    if (rc == BRC_OK)
        rc = then(h, err);
    int end = brc_end(h->repo, rc == BRC_OK ? BRC_END_KEEP : 0, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

static int commit_private(fault_handles *h, brc_error *err)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    opts.message = "private";
    opts.time_us = 4000;
    return brc_session_commit(&id, h->private, &opts, err);
}

static int hand_over_private(fault_handles *h, brc_error *err)
{
    return brc_session_hand_over(h->private, h->s, err);
}

static int act_private_commit(fault_handles *h, brc_error *err)
{
    return private_batch(h, commit_private, err);
}

static int act_hand_over(fault_handles *h, brc_error *err)
{
    return private_batch(h, hand_over_private, err);
}

static int act_adopt(fault_handles *h, brc_error *err)
{
    return brc_draft_adopt(h->repo, h->base->left_draft, err);
}

static int act_drop(fault_handles *h, brc_error *err)
{
    return brc_draft_drop(h->repo, h->base->left_draft, err);
}

/* These change nothing. */

static int act_read(fault_handles *h, brc_error *err)
{
    int32_t all[128];
    int rc = brc_array_read(h->a, NULL, all, sizeof(all), err);
    ck_assert(rc < 0 || (all[0] == 100 && all[30] == 7 && all[127] == 142));
    return rc;
}

static int act_is_clean(fault_handles *h, brc_error *err)
{
    int clean = 1;
    int rc = brc_session_clean(&clean, h->s, err);
    ck_assert(rc < 0 || !clean);
    return rc;
}

static int act_log(fault_handles *h, brc_error *err)
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

static int act_diff(fault_handles *h, brc_error *err)
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

static int act_fsck(fault_handles *h, brc_error *err)
{
    uint64_t checked;
    return brc_fsck(h->repo, 0, no_damage, NULL, &checked, err);
}

/* Opening and closing, in this place. */
static int act_reopen(fault_handles *h, brc_error *err)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo;
    opts.vfs = FAULT_VFS_NAME;
    opts.wait_ms = -1;
    int rc = brc_open(&repo, h->base->work, &opts, err);
    brc_free(repo);
    return rc;
}

static int act_reopen_to_read(fault_handles *h, brc_error *err)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo;
    const brc_ref *ref;
    brc_iter *it = NULL;
    opts.vfs = FAULT_VFS_NAME;
    opts.wait_ms = -1;
    opts.flags = BRC_OPEN_READONLY;
    int rc = brc_open(&repo, h->base->work, &opts, err);
    if (rc == BRC_OK)
        rc = brc_refs(&it, repo, err);
    while (rc == BRC_OK && (rc = brc_refs_next(it, &ref, err)) > 0)
        rc = BRC_OK;
    brc_iter_free(it);
    brc_free(repo);
    return rc;
}

const fault_act fault_acts[] = {
    { "array_create", act_create, 1 },
    { "array_write", act_write, 1 },
    { "array_write part", act_write_part, 1 },
    { "array_append", act_append, 1 },
    { "array_resize", act_shrink, 1 },
    { "set_codecs", act_recode, 1 },
    { "node_restore", act_restore, 1 },
    { "group_create", act_group, 1 },
    { "attrs_set", act_attribute, 1 },
    { "node_move", act_move, 1 },
    { "node_copy", act_copy, 1 },
    { "node_remove", act_remove, 1 },
    { "import", act_import, 1 },
    { "commit", fault_act_commit, 1 },
    { "amend", act_amend, 1 },
    { "discard", act_discard, 1 },
    { "branch_create", act_branch, 1 },
    { "branch_delete", act_branch_delete, 1 },
    { "branch_rename", act_branch_rename, 1 },
    { "tag_create", act_tag, 1 },
    { "switch", act_switch, 1 },
    { "reset", act_reset, 1 },
    { "reset hard", act_reset_hard, 1 },
    { "begin, end", act_batch, 1 },
    { "private write", act_private_write, 1 },
    { "private commit", act_private_commit, 1 },
    { "hand_over", act_hand_over, 1 },
    { "draft_adopt", act_adopt, 1 },
    { "draft_drop", act_drop, 1 },
    { "array_read", act_read, 0 },
    { "session_clean", act_is_clean, 0 },
    { "log", act_log, 0 },
    { "diff", act_diff, 0 },
    { "fsck", act_fsck, 0 },
    { "open", act_reopen, 0 },
    { "open to read", act_reopen_to_read, 0 },
};
const int fault_nacts = sizeof(fault_acts) / sizeof(fault_acts[0]);
