/* Committing, and reading one commit. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "../base/sized.h"
#include "../history/commit.h"
#include "../history/walk.h"
#include "../merge/steps.h"
#include "../store/change.h"
#include "../work/bulk_write.h"
#include "../work/fold.h"
#include "../work/session.h"
#include "../work/session_nodes.h"
#include "../work/uncommitted.h"
#include "../zarr/key/key_rows.h"
#include "children.h"

/* ==== commits ================================ */

/* ---- committing -------------------------------- */

static int take_commit_opts(brc_commit_opts *out, const brc_commit_opts *given, brc_error *err)
{
    BRC_TRY(brc_sized_in(out, sizeof(*out), offsetof(brc_commit_opts, author), given,
                         "brc_commit_opts", err));
    BRC_TRY(brc_message_check(out->message, err));
    return brc_flags_check(out->flags, BRC_COMMIT_AMEND | BRC_COMMIT_ALLOW_EMPTY |
                               BRC_COMMIT_NO_MERGE | BRC_COMMIT_DRY_RUN,
                           "brc_commit_opts", err);
}

/* Checks meta_json and returns it without white space. */
static int commit_meta(const char *json, char **out, brc_error *err)
{
    brc_json *value;
    brc_buf text = BRC_BUF_INIT;
    *out = NULL;
    if (json == NULL)
        return BRC_OK;
    int rc = brc_json_parse(&value, json, strlen(json), 0, err);
    if (rc < 0) {
        brc_context(err, "the commit's meta");
        return rc;
    }
    if (brc_json_kind(value) != BRC_JSON_OBJECT)
        rc = brc_fail(err, BRC_EINVAL, "the commit's meta must be a JSON object");
    if (rc == BRC_OK)
        rc = brc_json_write(&text, value, 0, err);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&text, out, err);
    brc_buf_dispose(&text);
    brc_json_free(value);
    return rc;
}

/* Copies from the replaced commit what the amended commit keeps. */
static void amend_from(brc_commit *commit, const brc_commit *old, const brc_commit_opts *opts)
{
    commit->parents = old->parents;
    commit->nparents = old->nparents;
    if (opts->message == NULL)
        commit->message = old->message;
    if (opts->author == NULL)
        commit->author = old->author;
    if (opts->meta_json == NULL)
        commit->meta_json = old->meta_json;
}

static int commit_is_empty(brc_session *s, brc_error *err)
{
    return brc_fail(err, BRC_EMISUSE, "nothing to commit on branch '%s': nothing has changed",
                    s->branch);
}

static int check_amend(brc_session *s, const brc_commit_opts *opts, int has, brc_error *err)
{
    if ((opts->flags & BRC_COMMIT_AMEND) && !has)
        return brc_fail(err, BRC_EMISUSE, "branch '%s' has no commit to amend", s->branch);
    if (opts->message == NULL && !(opts->flags & BRC_COMMIT_AMEND))
        return brc_fail(err, BRC_EINVAL, "a commit needs a message");
    return BRC_OK;
}

/* Fails if the branch has moved, because this commit would undo the branch's newer commits: the
 * caller then merges the changes onto them (replay.h), or returns this error. */
static int check_follows(brc_session *s, int has, const brc_oid *tip, int *moved, brc_error *err)
{
    *moved = !brc_draft_follows(&s->draft, has, tip);
    if (!*moved)
        return BRC_OK;
    return brc_fail(err, BRC_ESTALE,
                    "%s: branch '%s' has moved since these changes began (draft %lld): they are "
                    "kept; a plain commit, without amending and outside a transaction, merges them "
                    "onto the branch's new commits",
                    brc_store_path(s->repo->store), s->branch, (long long)s->draft.id);
}

/* Finds the moves since the first parent, which an amended commit takes from the old commit. */
static int commit_moves(brc_move_set *out, brc_session *s, const brc_commit *commit, brc_error *err)
{
    brc_oid snapshot;
    if (commit->nparents == 0)
        return BRC_OK;
    BRC_TRY(brc_commit_root(s->repo->store, &commit->parents[0], &snapshot, err));
    return brc_session_moves(out, s, 1, &commit->parents[0], &snapshot, &commit->root, err);
}

/* Ends the uncommitted changes after their commit. */
static int end_draft(brc_session *s, const brc_oid *commit, brc_error *err)
{
    s->is_read = 0;
    return s->mode == BRC_SESSION_PRIVATE ? brc_session_rest(s, commit, err)
                                          : brc_draft_rest(s->repo->store, s->draft.id, err);
}

/* Commits within one transaction. */
static int commit_steps(brc_session *s, const brc_commit_opts *opts, const char *meta,
                        brc_fold *fold, int *moved, brc_oid *out, brc_error *err)
{
    brc_store *store = s->repo->store;
    int has, rc, amend = (opts->flags & BRC_COMMIT_AMEND) != 0;
    brc_oid tip, tip_root;
    brc_commit commit = {.message = opts->message, .meta_json = meta, .time_us = opts->time_us};
    brc_commit *old = NULL;
    brc_move_set moves = {0};
    char *full = NULL;
    BRC_GO(brc_fork_check_commit(s, err));
    BRC_GO(brc_session_tip(s, &has, &tip, &tip_root, err));
    commit.parents = &tip;
    commit.nparents = has ? 1 : 0;
    if (s->draft.kind == BRC_DRAFT_MERGE)
        BRC_GO(brc_merge_is_open(store, s->branch, err));
    BRC_GO(check_follows(s, has, &tip, moved, err));
    BRC_GO(check_amend(s, opts, has, err));
    BRC_GO(brc_keys_ready(s, err));
    BRC_GO(brc_snapshot_normal(store, &tip_root, err));
    BRC_GO(brc_session_fold(s, fold, &commit.root, err));
    if (!amend && !(opts->flags & BRC_COMMIT_ALLOW_EMPTY) &&
        brc_oid_cmp(&commit.root, &tip_root) == 0) {
        rc = commit_is_empty(s, err);
        goto done;
    }
    commit.author = opts->author != NULL ? opts->author : "unknown";
    if (commit.time_us == 0)
        commit.time_us = brc_now_us();
    if (amend) {
        BRC_GO(brc_commit_get(&old, store, &tip, err));
        amend_from(&commit, old, opts);
    }
    BRC_GO(commit_moves(&moves, s, &commit, err));
    BRC_GO(brc_commit_put(store, &commit, &moves, err));
    BRC_GO(brc_ref_full(&full, "heads", s->branch, err));
    BRC_GO(brc_ref_put(store, full, &commit.id, NULL, amend ? "amend" : "commit", 1,
                       has ? &tip : NULL, brc_now_us(), err));
    BRC_GO(end_draft(s, &commit.id, err));
    *out = commit.id;
done:
    brc_move_set_dispose(&moves);
    brc_commit_free(old);
    free(full);
    return rc;
}

/* Says whether changes that began before the branch moved are merged onto it. */
static int may_replay(const brc_session *s, const brc_commit_opts *opts)
{
    return s->draft.kind != BRC_DRAFT_MERGE &&
           (opts->flags & (BRC_COMMIT_AMEND | BRC_COMMIT_NO_MERGE)) == 0;
}

typedef struct commit_call {
    brc_session *s;
    const brc_commit_opts *opts;
    const char *meta;
    brc_oid *out;
    int is_part; /* the call is part of the caller's transaction */
    brc_folding folding;
    int is_behind; /* the branch has moved: the changes are merged onto it */
} commit_call;

static int commit_work(void *ctx, brc_error *err)
{
    commit_call *c = ctx;
    return c->is_behind ? BRC_CHANGE_MUCH : brc_folding_work(&c->folding, c->s, err);
}

/* Merges the changes onto the moved branch. */
static int commit_behind(void *ctx, int insists, brc_error *err)
{
    const commit_call *c = ctx;
    const brc_commit_opts *opts = c->opts;
    const brc_commit like = {.message = opts->message,
                             .meta_json = c->meta,
                             .author = opts->author != NULL ? opts->author : "unknown",
                             .time_us = opts->time_us != 0 ? opts->time_us : brc_now_us()};
    (void)insists;
    return brc_replay_commit(c->out, c->s, &like, (opts->flags & BRC_COMMIT_ALLOW_EMPTY) != 0, err);
}

static int commit_commit(void *ctx, int insists, brc_error *err)
{
    commit_call *c = ctx;
    int moved = 0; /* the branch has moved since the changes began */
    BRC_TRY(brc_session_begin(c->s, err));
    brc_folding_begin(&c->folding, insists);
    const int rc = brc_session_end(c->s,
                                   commit_steps(c->s, c->opts, c->meta, &c->folding.fold,
                                                &moved, c->out, err),
                                   err);
    if (rc != BRC_ESTALE || !moved || c->is_part || !may_replay(c->s, c->opts))
        return brc_folding_end(&c->folding, rc);
    if (c->opts->message == NULL)
        return brc_fail(err, BRC_EINVAL, "a commit needs a message");
    c->is_behind = 1;
    return BRC_CHANGE_MUCH;
}

static int commit_is_late(const brc_session *s, brc_error *err)
{
    char doing[200];
    snprintf(doing, sizeof(doing), "these changes (draft %lld) were merged onto branch '%.100s'",
             (long long)s->draft.id, s->branch);
    return brc_change_is_late(s->repo->store, doing, "they are kept; commit again", err);
}

static int commit_run(commit_call *c, brc_error *err)
{
    const brc_file_change change = {.about = c->s->branch, .ctx = c, .is_ahead = 1,
                                    .work = commit_work, .commit = commit_commit,
                                    .steps = commit_behind};
    brc_store *store = c->s->repo->store;
    c->is_part = brc_store_in_write(store);
    const int rc = brc_change_run(store, &change, err);
    brc_folding_dispose(&c->folding);
    if (!c->is_part)
        brc_session_changed(c->s, rc);
    return rc == BRC_CHANGE_AGAIN ? commit_is_late(c->s, err) : rc;
}

static int commit_dry_run(brc_session *s, const brc_commit_opts *opts, brc_error *err)
{
    if (opts->conflicts == NULL)
        return brc_fail(err, BRC_EINVAL, "a dry run of a commit needs a place for the list of "
                                         "conflicts");
    const int rc = brc_replay_conflicts(opts->conflicts, s, err);
    return rc < 0 ? rc : BRC_OK;
}

/* Lists the conflicts on which a commit failed, if it failed on any. */
static void list_why(brc_iter **out, brc_session *s)
{
    const int any = brc_store_in_write(s->repo->store) ? 0 : brc_replay_conflicts(out, s, NULL);
    if (any <= 0) {
        brc_iter_free(*out);
        *out = NULL;
    }
}

int brc_session_commit(brc_oid *out, brc_session *s, const brc_commit_opts *given, brc_error *err)
{
    brc_commit_opts opts;
    char *meta;
    brc_oid unused;
    if (out == NULL)
        out = &unused;
    memset(out, 0, sizeof(*out));
    BRC_TRY(take_commit_opts(&opts, given, err));
    if (opts.conflicts != NULL)
        *opts.conflicts = NULL;
    BRC_TRY(brc_bulk_check_none(s, "nothing can be committed", err));
    if ((opts.flags & BRC_COMMIT_DRY_RUN) != 0)
        return commit_dry_run(s, &opts, err);
    BRC_TRY(commit_meta(opts.meta_json, &meta, err));
    commit_call call = {.s = s, .opts = &opts, .meta = meta, .out = out};
    const int rc = commit_run(&call, err);
    free(meta);
    if (rc == BRC_ECONFLICT && opts.conflicts != NULL)
        list_why(opts.conflicts, s);
    return rc;
}
