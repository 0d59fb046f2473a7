/* The end of an open merge, cherry-pick or revert: a commit; and of these and a rebase: nothing. */
#include <stddef.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/sized.h"
#include "../history/commit.h"
#include "conflicts.h"
#include "merge_draft.h"
#include "pick.h"

typedef struct open_end {
    breccia *repo;
    brc_session *s;
    brc_open_merge merge;
    brc_commit *like; /* whose author, time, message and meta are kept; or NULL */
} open_end;

static void open_end_dispose(open_end *e)
{
    brc_commit_free(e->like);
    brc_open_merge_dispose(&e->merge);
    brc_session_free(e->s);
}

static int open_end_begin(open_end *e, int is_merge, brc_error *err)
{
    BRC_TRY(brc_can_end_open(e->repo, err));
    BRC_TRY(brc_look_at_open(&e->s, &e->merge, e->repo, BRC_SESSION_WRITE, err));
    if (e->merge.draft.id == 0)
        return brc_none_is_open(e->s, err);
    const char *open = brc_open_merge_command(&e->merge);
    if ((strcmp(open, "merge") == 0) == is_merge && strcmp(open, "rebase") != 0)
        return BRC_OK;
    return brc_other_is_open(e->s, &e->merge, err);
}

/* ---- its commit, or what is left -------------------------------- */

/* Where the branch has moved, what was settled is merged onto it; of that conflicts may be left. */
static int commit_onto_tip(open_end *e, const brc_commit_opts *opts, brc_oid *out, int *made,
                           brc_error *err)
{
    const brc_commit like = {.message = opts->message,
                             .meta_json = opts->meta_json,
                             .author = opts->author != NULL ? opts->author : "unknown",
                             .time_us = opts->time_us != 0 ? opts->time_us : brc_now_us()};
    brc_onto_tip end;
    BRC_TRY(brc_open_merge_onto_tip(&end, e->s, &e->merge, &like, err));
    *out = end.commit;
    *made = end.is_made;
    if (!end.is_open)
        return BRC_OK;
    brc_open_merge_dispose(&e->merge);
    BRC_TRY(brc_session_begin_read(e->s, err));
    int rc = brc_open_merge_read(&e->merge, e->s, err);
    brc_session_end_read(e->s);
    return rc;
}

static int commit_open(open_end *e, const brc_commit_opts *opts, brc_oid *out, int *made,
                       brc_error *err)
{
    int moved;
    int rc = brc_session_commit_merge(out, &moved, e->s, opts, err);
    if (rc == BRC_ESTALE && moved)
        return commit_onto_tip(e, opts, out, made, err);
    *made = brc_oid_cmp(out, &e->merge.draft.tip) != 0;
    return rc;
}

/* What is not settled. */
static int tell_left(open_end *e, brc_iter **conflicts, uint64_t *left, int64_t *draft,
                     brc_error *err)
{
    *left = brc_open_merge_left(&e->merge);
    *draft = *left > 0 ? e->merge.draft.id : 0;
    return conflicts != NULL ? brc_conflict_list_open(conflicts, &e->merge.conflicts, err)
                             : BRC_OK;
}

/* ---- a merge -------------------------------- */

static int end_merge(open_end *e, brc_merge_result *out, brc_iter **conflicts,
                     const brc_merge_opts *opts, brc_error *err)
{
    brc_commit_opts commit = BRC_COMMIT_OPTS_INIT;
    int made;
    commit.message =
        opts->message != NULL ? opts->message : brc_open_merge_text(&e->merge, "message");
    commit.author = opts->author;
    commit.time_us = opts->time_us;
    if (brc_open_merge_left(&e->merge) == 0)
        BRC_TRY(commit_open(e, &commit, &out->commit, &made, err));
    BRC_TRY(tell_left(e, conflicts, &out->conflicts, &out->draft, err));
    out->result = out->conflicts > 0 ? BRC_MERGE_CONFLICT : BRC_MERGE_MERGED;
    return BRC_OK;
}

int brc_merge_continue(brc_merge_result *out, brc_iter **conflicts, breccia *repo,
                       const brc_merge_opts *given, brc_error *err)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result own = BRC_MERGE_RESULT_INIT;
    open_end e = {.repo = repo};
    int rc;
    if (conflicts != NULL)
        *conflicts = NULL;
    BRC_GO(brc_sized_in(&opts, sizeof(opts), offsetof(brc_merge_opts, reserved), given,
                        "brc_merge_opts", err));
    BRC_GO(brc_message_check(opts.message, err));
    BRC_GO(open_end_begin(&e, 1, err));
    BRC_GO(end_merge(&e, &own, conflicts, &opts, err));
    rc = brc_sized_out(out, &own, sizeof(own), offsetof(brc_merge_result, conflicts),
                       "brc_merge_result", err);
done:
    open_end_dispose(&e);
    return rc;
}

/* ---- a cherry-pick or revert -------------------------------- */

static int read_like(open_end *e, const brc_oid *at, brc_error *err)
{
    if (strcmp(brc_open_merge_op(&e->merge), "pick") != 0)
        return BRC_OK;
    BRC_TRY(brc_store_begin_read(e->repo->store, err));
    int rc = brc_commit_get(&e->like, e->repo->store, at, err);
    brc_store_end_read(e->repo->store);
    return rc;
}

/* What is given now; else what was given at the beginning; else that of the commit whose change it
 * is. */
static const char *text_of_end(const open_end *e, const char *given, const char *name,
                               const char *kept)
{
    if (given != NULL)
        return given;
    return brc_json_member(e->merge.plan, name) != NULL ? brc_open_merge_text(&e->merge, name)
                                                        : kept;
}

static int commit_change(open_end *e, const brc_pick_opts *opts, brc_oid *out, int *made,
                         brc_error *err)
{
    brc_commit_opts commit = BRC_COMMIT_OPTS_INIT;
    const brc_commit *like = e->like;
    commit.message = text_of_end(e, opts->message, "message", like != NULL ? like->message : "");
    commit.author = text_of_end(e, opts->author, "author", like != NULL ? like->author : NULL);
    commit.meta_json = like != NULL ? like->meta_json : NULL;
    commit.time_us = opts->time_us;
    if (commit.time_us == 0 &&
        !brc_json_int(brc_json_member(e->merge.plan, "time"), INT64_MIN, INT64_MAX,
                      &commit.time_us))
        commit.time_us = like != NULL ? like->time_us : 0;
    return commit_open(e, &commit, out, made, err);
}

static int end_change(open_end *e, brc_pick_result *out, brc_iter **conflicts,
                      const brc_pick_opts *opts, brc_error *err)
{
    brc_oid at;
    int made = 0, rc = brc_open_merge_id(&e->merge, "at", &at, err);
    if (rc == 0)
        rc = brc_fail(err, BRC_ECORRUPT, "the plan of draft %lld is damaged: it names no commit",
                      (long long)e->merge.draft.id);
    if (rc < 0)
        return rc;
    if (brc_open_merge_left(&e->merge) == 0) {
        BRC_TRY(read_like(e, &at, err));
        BRC_TRY(commit_change(e, opts, &out->commit, &made, err));
    }
    BRC_TRY(tell_left(e, conflicts, &out->conflicts, &out->draft, err));
    out->made = made != 0;
    out->result = out->made             ? BRC_PICK_COMMITTED
                  : out->conflicts == 0 ? BRC_PICK_NOTHING
                                        : BRC_PICK_CONFLICT;
    if (out->conflicts > 0)
        out->at = at;
    return BRC_OK;
}

int brc_pick_continue(brc_pick_result *out, brc_iter **conflicts, breccia *repo,
                      const brc_pick_opts *given, brc_error *err)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result own = BRC_PICK_RESULT_INIT;
    open_end e = {.repo = repo};
    int rc;
    if (conflicts != NULL)
        *conflicts = NULL;
    BRC_GO(brc_pick_opts_take(&opts, given, 0, err));
    if (opts.flags != 0 || opts.npaths != 0 || opts.mainline != 0) {
        rc = brc_fail(err, BRC_EINVAL, "what is open goes on with message, author and time alone");
        goto done;
    }
    BRC_GO(open_end_begin(&e, 0, err));
    BRC_GO(end_change(&e, &own, conflicts, &opts, err));
    rc = brc_sized_out(out, &own, sizeof(own), offsetof(brc_pick_result, conflicts),
                       "brc_pick_result", err);
done:
    open_end_dispose(&e);
    return rc;
}

/* ---- nothing -------------------------------- */

static int abort_steps(breccia *repo, brc_error *err)
{
    const char *branch;
    brc_draft_head draft;
    BRC_TRY(brc_head_get(repo->store, &branch, err));
    BRC_TRY(brc_draft_merge(repo->store, branch, &draft, err));
    if (draft.id == 0)
        return brc_fail(err, BRC_EMISUSE,
                        "%s: no merge, rebase, cherry-pick or revert is open on branch '%s'",
                        brc_store_path(repo->store), branch);
    return brc_draft_delete(repo->store, draft.id, err);
}

int brc_merge_abort(breccia *repo, brc_error *err)
{
    BRC_TRY(brc_can_end_open(repo, err));
    BRC_TRY(brc_store_begin(repo->store, err));
    int rc = abort_steps(repo, err);
    repo->changes++;
    return brc_end_with(repo, rc, err);
}
