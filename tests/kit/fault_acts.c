#include "fault_acts.h"

#include <check.h>
#include <string.h>

#include "fault_vfs.h"
#include "fsck_kit.h"

void fault_open(fault_handles *h, const fault_base *base, const char *vfs, int wait_ms)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    store_kit *kit = base->kit;
    *h = (fault_handles){ .base = base };
    opts.vfs = vfs;
    opts.wait_ms = wait_ms;
    KIT_OK(kit, brc_open(&h->repo, base->work, &opts, &kit->err));
    KIT_OK(kit, brc_session_open(&h->s, h->repo, NULL, BRC_SESSION_WRITE, &kit->err));
    KIT_OK(kit, brc_array_open(&h->a, h->s, "/a", &kit->err));
}

void fault_close(fault_handles *h)
{
    brc_array_free(h->made);
    brc_array_free(h->a);
    brc_session_free(h->private);
    brc_session_free(h->s);
    brc_free(h->repo);
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
    return brc_array_set_codecs(h->a, "[" FAULT_LITTLE "]", 1, err);
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

/* In place of the one that is uncommitted, and long enough to be compressed. */
static int act_document(fault_handles *h, brc_error *err)
{
    char json[2000];
    memset(json, 'x', sizeof(json) - 1);
    json[0] = json[sizeof(json) - 2] = '"';
    json[sizeof(json) - 1] = '\0';
    return brc_attrs_set(h->s, "/a", "note", json, err);
}

static int act_move(fault_handles *h, brc_error *err)
{
    return brc_node_move(h->s, "/a", "/g/h/moved", 0, err);
}

static int act_copy(fault_handles *h, brc_error *err)
{
    return brc_node_move(h->s, "/g", "/copied", BRC_NODE_COPY, err);
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
    return brc_ref_create(h->repo, "new", "main~1", NULL, 0, err);
}

static int act_branch_delete(fault_handles *h, brc_error *err)
{
    return brc_ref_delete(h->repo, "other", 0, err);
}

static int act_branch_rename(fault_handles *h, brc_error *err)
{
    return brc_ref_rename(h->repo, "other", "another", 0, err);
}

static int act_tag(fault_handles *h, brc_error *err)
{
    return brc_ref_create(h->repo, "v2", "v1", "again", BRC_REF_TAG, err);
}

static int act_switch(fault_handles *h, brc_error *err)
{
    return brc_switch(h->repo, "other", BRC_SWITCH_DISCARD, err);
}

static int act_reset(fault_handles *h, brc_error *err)
{
    return brc_reset(h->repo, NULL, "other", 0, NULL, err);
}

static int act_reset_hard(fault_handles *h, brc_error *err)
{
    return brc_reset(h->repo, NULL, "other", BRC_RESET_HARD, NULL, err);
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
        rc = brc_node_move(h->private, "/g/b", "/g/moved", 0, err);
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

static int act_adopt_over(fault_handles *h, brc_error *err)
{
    return brc_draft_adopt(h->repo, h->base->over_draft, err);
}

static int act_adopt_deep(fault_handles *h, brc_error *err)
{
    return brc_draft_adopt(h->repo, h->base->deep_draft, err);
}

static int act_drop(fault_handles *h, brc_error *err)
{
    return brc_draft_drop(h->repo, h->base->left_draft, err);
}

/* ---- bulk writes: each call is a batch ---------------------------------------- */

static int write_over(fault_handles *h, brc_error *err)
{
    return brc_array_write(h->a, NULL, h->base->numbers, 512, err);
}

static int write_new(fault_handles *h, brc_error *err)
{
    return brc_array_write(h->made, NULL, h->base->numbers, 40, err);
}

static int (*const batches[])(fault_handles *h, brc_error *err) = {
    act_write_part, act_create, write_new, act_attribute, write_over,
};

static int bulk_steps(fault_handles *h, uint32_t flags, brc_error *err)
{
    int rc = brc_bulk_begin(h->s, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < sizeof(batches) / sizeof(batches[0]) && rc == BRC_OK; i++) {
        rc = batches[i](h, err);
        if (h->ended != NULL && rc == BRC_OK)
            h->ended(h);
    }
    int end = brc_bulk_end(h->s, rc == BRC_OK ? flags : 0, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

static int act_bulk(fault_handles *h, brc_error *err)
{
    return bulk_steps(h, BRC_END_KEEP, err);
}

/* The next two change nothing. */

/* A bulk write that is dropped at its end. */
static int act_bulk_in_vain(fault_handles *h, brc_error *err)
{
    return bulk_steps(h, 0, err);
}

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
    const brc_log_opts opts = { .size = sizeof(opts), .path = "/g" };
    int n = 0, rc = brc_log(&it, h->repo, NULL, &opts, err);
    while (rc >= 0 && (rc = brc_next(it, &c, err)) > 0)
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
    while (rc >= 0 && (rc = brc_next(it, &c, err)) > 0)
        n++;
    brc_iter_free(it);
    ck_assert(rc < 0 || n == 2);
    return rc;
}

static int act_fsck(fault_handles *h, brc_error *err)
{
    uint64_t checked;
    return brc_fsck(h->repo, 0, fsck_finds_nothing, NULL, NULL, &checked, err);
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
    while (rc == BRC_OK && (rc = brc_next(it, &ref, err)) > 0)
        rc = BRC_OK;
    brc_iter_free(it);
    brc_free(repo);
    return rc;
}

/* ---- savepoints -------------------------------- */

static int save_x(fault_handles *h, brc_error *err)
{
    return brc_savepoint(h->s, BRC_SAVEPOINT_SET, "x", err);
}

static int back_to_x(fault_handles *h, brc_error *err)
{
    return brc_savepoint(h->s, BRC_SAVEPOINT_ROLLBACK, "x", err);
}

static int release_any(fault_handles *h, brc_error *err)
{
    return brc_savepoint(h->s, BRC_SAVEPOINT_RELEASE, NULL, err);
}

static int set_loose_key(fault_handles *h, brc_error *err)
{
    return brc_key_set(h->s, "loose", "bytes", 5, 0, err);
}

/* The last attribute and the last part are all that stays of these steps. */
int (*const fault_save_steps[])(fault_handles *h, brc_error *err) = {
    act_write_part, save_x, act_attribute, write_over, act_create, save_x, act_append,
    set_loose_key, save_x, act_move, act_remove, release_any, back_to_x, act_shrink, release_any,
    back_to_x, write_over, back_to_x, act_attribute, release_any, act_write_part,
};
const int fault_nsave_steps = sizeof(fault_save_steps) / sizeof(fault_save_steps[0]);

/* In one transaction. */
static int act_savepoints(fault_handles *h, brc_error *err)
{
    int rc = brc_begin(h->repo, err);
    if (rc < 0)
        return rc;
    for (int i = 0; i < fault_nsave_steps && rc == BRC_OK; i++)
        rc = fault_save_steps[i](h, err);
    int end = brc_end(h->repo, rc == BRC_OK ? BRC_END_KEEP : 0, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

const fault_act fault_acts[] = {
    { "array_create", act_create, 1, 0 },
    { "array_write", act_write, 1, 0 },
    { "array_write part", act_write_part, 1, 0 },
    { "array_append", act_append, 1, 0 },
    { "array_resize", act_shrink, 1, 0 },
    { "set_codecs", act_recode, 1, 0 },
    { "node_restore", act_restore, 1, 0 },
    { "group_create", act_group, 1, 0 },
    { "attrs_set", act_attribute, 1, 0 },
    { "node_move", act_move, 1, 0 },
    { "node_copy", act_copy, 1, 0 },
    { "node_remove", act_remove, 1, 0 },
    { "import", act_import, 1, 0 },
    { "commit", fault_act_commit, 1, 0 },
    { "amend", act_amend, 1, 0 },
    { "discard", act_discard, 1, 0 },
    { "branch_create", act_branch, 1, 0 },
    { "branch_delete", act_branch_delete, 1, 0 },
    { "branch_rename", act_branch_rename, 1, 0 },
    { "tag_create", act_tag, 1, 0 },
    { "switch", act_switch, 1, 0 },
    { "reset", act_reset, 1, 0 },
    { "reset hard", act_reset_hard, 1, 0 },
    { "begin, end", act_batch, 1, 0 },
    { "private write", act_private_write, 1, 0 },
    { "private commit", act_private_commit, 1, 0 },
    { "hand_over", act_hand_over, 1, 0 },
    { "draft_adopt", act_adopt, 1, 0 },
    { "draft_adopt over changes", act_adopt_over, 1, 2 },
    { "draft_adopt over a full stack", act_adopt_deep, 1, 2 },
    { "draft_drop", act_drop, 1, 0 },
    { "attrs_set again", act_document, 1, 0 },
    { "bulk", act_bulk, 1, 1 },
    { "bulk in vain", act_bulk_in_vain, 0, 1 },
    { "savepoints", act_savepoints, 1, 0 },
    { "array_read", act_read, 0, 0 },
    { "session_clean", act_is_clean, 0, 0 },
    { "log", act_log, 0, 0 },
    { "diff", act_diff, 0, 0 },
    { "fsck", act_fsck, 0, 0 },
    { "open", act_reopen, 0, 0 },
    { "open to read", act_reopen_to_read, 0, 0 },
};
const int fault_nacts = sizeof(fault_acts) / sizeof(fault_acts[0]);
