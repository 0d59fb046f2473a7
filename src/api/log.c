/*
 * The log. Commits are read in batches, each in one read transaction: a transaction for
 * each statement would cost more than the statement, and one for all of them would keep
 * writers out while somebody reads page after page. The commits of a batch are then given
 * one by one.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/iter.h"
#include "../history/commit.h"
#include "../zarr/session.h"

/* Commits of a batch: few at first, so that the first page comes soon. */
enum { BATCH_FIRST = 16, BATCH_MOST = 512 };

/* The node at the path in one commit: this commit's parent is usually the next one asked for. */
typedef struct log_seen {
    brc_oid commit, root;
    brc_entry entry;
    int entry_known;
} log_seen;

typedef struct log_state {
    breccia *repo;
    brc_walk *walk;
    char *path; /* NULL: every commit */
    int met;    /* a commit that was read has the path */
    log_seen seen;
    brc_commit *found[BATCH_MOST];
    size_t n, at;
    size_t batch;
    brc_commit *given;
    int ended;      /* 0, 1 at the end, or a failure: */
    brc_error why;
} log_state;

static void log_dispose(void *state)
{
    log_state *log = state;
    while (log->at < log->n)
        brc_commit_free(log->found[log->at++]);
    brc_commit_free(log->given);
    brc_walk_free(log->walk);
    free(log->path);
    brc_store_walk_end(log->repo->store);
    brc_repo_unref(log->repo);
}

static int log_path(log_state *log, const char *path, brc_error *err)
{
    brc_buf normal = BRC_BUF_INIT;
    int rc = brc_path_normal(&normal, path, err);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&normal, &log->path, err);
    brc_buf_dispose(&normal);
    return rc;
}

/* The tip that a log starts from: a branch without a commit has an empty log. */
static int log_tip(breccia *repo, const char *rev, brc_oid *tip, brc_error *err)
{
    int has;
    char *full;
    memset(tip, 0, sizeof(*tip));
    if (rev != NULL)
        return brc_rev_resolve(repo->store, rev, tip, err);
    BRC_TRY(brc_head_get(repo->store, &rev, err));
    BRC_TRY(brc_ref_full(&full, "heads", rev, err));
    int rc = brc_ref_get(repo->store, full, &has, tip, err);
    free(full);
    return rc;
}

/* A walk from `rev`, or through the commits of the range "A..B". */
static int log_walk_new(log_state *log, const char *rev, brc_error *err)
{
    brc_store *store = log->repo->store;
    brc_oid tip, hidden;
    int rc, is_range = 0;
    char *from = NULL, *to = NULL;
    if (rev != NULL)
        BRC_TRY(brc_rev_range(rev, &is_range, &from, &to, err));
    BRC_GO(log_tip(log->repo, is_range ? to : rev, &tip, err));
    BRC_GO(brc_walk_new(&log->walk, store, &tip, err));
    if (is_range) {
        BRC_GO(brc_rev_resolve(store, from, &hidden, err));
        BRC_GO(brc_walk_hide(log->walk, &hidden, err));
    }
done:
    free(from);
    free(to);
    return rc;
}

int brc_log(brc_iter **out, breccia *repo, const char *rev, const char *path, brc_error *err)
{
    int rc;
    BRC_TRY(brc_iter_new(out, BRC_ITER_LOG, sizeof(log_state), log_dispose, err));
    log_state *log = brc_iter_state(*out);
    log->repo = brc_repo_ref(repo);
    brc_store_walk_begin(repo->store);
    log->batch = BATCH_FIRST;
    if (path != NULL)
        BRC_GO(log_path(log, path, err));
    BRC_GO(brc_store_begin_read(repo->store, err));
    rc = log_walk_new(log, rev, err);
    brc_store_end_read(repo->store);
done:
    if (rc < 0) {
        brc_iter_free(*out);
        *out = NULL;
    }
    return rc;
}

/* ---- a path -------------------------------- */

/* The root of a commit, and its node at the path where it is known already. */
static int log_root_of(const log_state *log, const brc_oid *id, log_seen *out, brc_error *err)
{
    if (brc_oid_cmp(&log->seen.commit, id) == 0) {
        *out = log->seen;
        return BRC_OK;
    }
    memset(out, 0, sizeof(*out));
    out->commit = *id;
    return brc_commit_root(log->repo->store, id, &out->root, err);
}

static int log_entry_of(const log_state *log, log_seen *at, brc_error *err)
{
    if (!at->entry_known)
        BRC_TRY(brc_snapshot_find(log->repo->store, &at->root, log->path, &at->entry, err));
    at->entry_known = 1;
    return BRC_OK;
}

/* 1 if the parent has another node there; equal roots have equal nodes. */
static int log_differs(const log_state *log, const log_seen *now, log_seen *before,
                       brc_error *err)
{
    if (brc_oid_cmp(&now->root, &before->root) == 0) {
        before->entry = now->entry;
        before->entry_known = 1;
        return 0;
    }
    BRC_TRY(log_entry_of(log, before, err));
    return !brc_entry_equal(&now->entry, &before->entry);
}

/* 1 if the commit's node at the path differs from that of every parent. */
static int log_touches(log_state *log, const brc_commit *commit, brc_error *err)
{
    log_seen now, before;
    int differs = 1;
    BRC_TRY(log_root_of(log, &commit->id, &now, err));
    BRC_TRY(log_entry_of(log, &now, err));
    for (size_t i = 0; i < commit->nparents && differs > 0; i++) {
        BRC_TRY(log_root_of(log, &commit->parents[i], &before, err));
        differs = log_differs(log, &now, &before, err);
        log->seen = before;
    }
    if (differs > 0 && commit->nparents == 0)
        differs = now.entry.kind != 0;
    log->met |= now.entry.kind != 0 || differs > 0; /* also if it was removed: a parent has it */
    return differs;
}

/* ---- batches -------------------------------- */

/* Within a transaction. 1 if there is more, 0 at the end. */
static int log_look(log_state *log, brc_error *err)
{
    const brc_commit *commit;
    int rc = 1;
    log->n = log->at = 0;
    for (size_t i = 0; i < log->batch && rc > 0; i++) {
        rc = brc_walk_next(log->walk, &commit, err);
        int wanted = rc > 0 && log->path != NULL ? log_touches(log, commit, err) : rc;
        if (wanted > 0)
            log->found[log->n++] = brc_walk_take(log->walk);
        else if (wanted < 0)
            rc = wanted;
    }
    if (rc == 0 && log->path != NULL && !log->met)
        return brc_fail(err, BRC_ENOTFOUND, "%s: no commit here has a node %s",
                        brc_store_path(log->repo->store), log->path);
    return rc;
}

/* A failure is reported after what was found before it has been given. */
static void log_fill(log_state *log)
{
    int rc = brc_store_begin_read(log->repo->store, &log->why);
    if (rc == BRC_OK) {
        rc = log_look(log, &log->why);
        brc_store_end_read(log->repo->store);
    }
    log->ended = rc > 0 ? 0 : rc == 0 ? 1 : rc;
    log->batch = log->batch * 2 < BATCH_MOST ? log->batch * 2 : BATCH_MOST;
}

int brc_log_next(brc_iter *it, const brc_commit **out, brc_error *err)
{
    BRC_TRY(brc_iter_check(it, BRC_ITER_LOG, err));
    log_state *log = brc_iter_state(it);
    brc_commit_free(log->given);
    log->given = NULL;
    while (log->at == log->n && log->ended == 0)
        log_fill(log);
    if (log->at < log->n) {
        BRC_TRY(brc_store_check_interrupt(log->repo->store, err));
        *out = log->given = log->found[log->at++];
        return 1;
    }
    if (log->ended < 0 && err != NULL)
        brc_error_copy(err, &log->why);
    return log->ended < 0 ? log->ended : 0;
}
