/* An open rebase goes on: with what was settled, or without the commit that was in conflict. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/sized.h"
#include "../history/commit.h"
#include "../history/reach.h"
#include "../zarr/fold.h"
#include "../zarr/key_rows.h"
#include "../zarr/node_moves.h"
#include "conflicts.h"
#include "merge_draft.h"
#include "pick.h"
#include "rebase_steps.h"

typedef struct open_rebase {
    brc_session *s;
    brc_open_merge merge; /* as it was when it went on                             */
    void *paths;          /* const char *[]: where a side is favoured, of its plan */
    brc_commit *at;       /* the commit that was in conflict                       */
    brc_folded folded;
    brc_rebasing *all;
} open_rebase;

static void open_rebase_dispose(open_rebase *o)
{
    brc_folded_dispose(&o->folded);
    brc_commit_free(o->at);
    free(o->paths);
    brc_open_merge_dispose(&o->merge);
    brc_session_free(o->s);
}

/* ---- its plan -------------------------------- */

static int plan_lacks(const open_rebase *o, const char *name, brc_error *err)
{
    return brc_fail(err, BRC_ECORRUPT, "the plan of draft %lld is damaged: '%s' is not there",
                    (long long)o->merge.draft.id, name);
}

static int need_id(const open_rebase *o, const char *name, brc_oid *out, brc_error *err)
{
    const int rc = brc_open_merge_id(&o->merge, name, out, err);
    return rc == 0 ? plan_lacks(o, name, err) : rc < 0 ? rc : BRC_OK;
}

/* With which options it began. */
static int sides_of_plan(open_rebase *o, brc_error *err)
{
    static const char *const sides[] = {"ours", "theirs"};
    const brc_json *list = brc_json_member(o->merge.plan, "paths");
    brc_sequence *q = &o->all->q;
    const int side = brc_json_choice(brc_json_member(o->merge.plan, "side"), sides, 2);
    if (side < 0)
        return BRC_OK;
    q->favour = side == 0 ? BRC_FAVOUR_OURS : BRC_FAVOUR_THEIRS;
    BRC_TRY(brc_new_array(&o->paths, brc_json_count(list) + 1, sizeof(char *), err));
    const char **paths = o->paths;
    for (const brc_json *at = brc_json_first(list); at != NULL; at = brc_json_next(at)) {
        if (!brc_json_text(at, &paths[q->npaths]))
            return plan_lacks(o, "paths", err);
        BRC_TRY(brc_path_is_normal(paths[q->npaths++], err));
    }
    brc_paths_sort(paths, q->npaths);
    q->paths = paths;
    return BRC_OK;
}

/* The commits that it names, in a read. */
static int plan_commits(open_rebase *o, const brc_oid *at, const brc_oid *todo, size_t n,
                        brc_error *err)
{
    brc_store *store = o->all->repo->store;
    brc_commit *commit;
    BRC_TRY(brc_commit_get(&o->at, store, at, err));
    for (size_t i = 0; i < n; i++) {
        BRC_TRY(brc_commit_get(&commit, store, &todo[i], err));
        BRC_TRY(brc_rebasing_add(o->all, commit, err));
    }
    return BRC_OK;
}

static int read_rest(open_rebase *o, brc_error *err)
{
    brc_store *store = o->all->repo->store;
    brc_rebasing *r = o->all;
    void *todo;
    size_t n;
    brc_oid at;
    r->onto = brc_open_merge_text(&o->merge, "rev");
    r->result.made = brc_open_merge_number(&o->merge, "made");
    r->result.skipped = brc_open_merge_number(&o->merge, "skipped");
    BRC_TRY(need_id(o, "onto", &r->target, err));
    BRC_TRY(need_id(o, "at", &at, err));
    BRC_TRY(sides_of_plan(o, err));
    if (brc_json_kind(brc_json_member(o->merge.plan, "todo")) != BRC_JSON_ARRAY)
        return plan_lacks(o, "todo", err);
    BRC_TRY(brc_open_merge_ids(&o->merge, "todo", &todo, &n, err));
    int rc = brc_store_begin_read(store, err);
    if (rc == BRC_OK) {
        rc = plan_commits(o, &at, todo, n, err);
        brc_store_end_read(store);
    }
    free(todo);
    return rc;
}

/* ---- what was settled -------------------------------- */

/* In a read: that the snapshot is what the draft says, and that all of it is settled. */
static int check_folded(open_rebase *o, brc_move_set *moves, brc_error *err)
{
    brc_session *s = o->s;
    brc_sequence *q = &o->all->q;
    brc_open_merge now;
    BRC_TRY(brc_keys_ready(s, err));
    BRC_TRY(brc_open_merge_read(&now, s, err));
    const int same = now.draft.id == q->draft.id && now.draft.id == o->folded.draft &&
                     now.draft.changes == o->folded.changes && brc_open_merge_left(&now) == 0;
    q->draft = now.draft;
    brc_open_merge_dispose(&now);
    if (!same)
        return brc_fail(err, BRC_ESTALE,
                        "%s: the rebase on branch '%s' was changed while it went on: nothing was "
                        "done; call again",
                        brc_store_path(s->repo->store), s->branch);
    return brc_session_moves(moves, s, 1, &q->now, &q->root, &o->folded.root, err);
}

/* The draft as a commit, over what was made before; nothing names it yet. */
static int commit_settled(open_rebase *o, brc_error *err)
{
    brc_rebasing *r = o->all;
    brc_move_set moves = {0};
    int result;
    do
        BRC_TRY(brc_fold_ahead(o->s, 1, &o->folded, err));
    while (!o->folded.has_root);
    BRC_TRY(brc_session_begin_read(o->s, err));
    int rc = check_folded(o, &moves, err);
    brc_session_end_read(o->s);
    if (rc == BRC_OK)
        rc = brc_sequence_add(&r->q, o->at, &o->folded.root, &moves, &result, err);
    brc_move_set_dispose(&moves);
    BRC_TRY(rc);
    r->result.made += result == BRC_STEP_DONE;
    r->result.skipped += result == BRC_STEP_EMPTY;
    return BRC_OK;
}

/* ---- the branch has moved -------------------------------- */

static int left_its_line(const open_rebase *o, brc_error *err)
{
    return brc_fail(err, BRC_ESTALE,
                    "%s: branch '%s' does not have the commits any more that are rebased: undo "
                    "what moved it, or drop the rebase with 'breccia rebase --abort'",
                    brc_store_path(o->s->repo->store), o->s->branch);
}

/* What was committed on the branch since is a part of it: it is done again behind the rest. In a
 * read. */
static int add_newer(open_rebase *o, brc_error *err)
{
    const brc_draft_head *draft = &o->merge.draft;
    brc_sequence *q = &o->all->q;
    brc_reach *reach;
    if (brc_draft_follows(draft, q->has_tip, &q->tip))
        return BRC_OK;
    if (!draft->has_tip || !q->has_tip)
        return left_its_line(o, err);
    BRC_TRY(brc_reach_new(&reach, q->store, err));
    int rc = brc_reach_from(reach, &q->tip, err);
    if (rc == BRC_OK)
        rc = brc_reach_find(reach, &draft->tip, err);
    brc_reach_free(reach);
    if (rc <= 0)
        return rc < 0 ? rc : left_its_line(o, err);
    return brc_rebasing_add_line(o->all, &q->tip, &draft->tip, err);
}

static int catch_up(open_rebase *o, brc_error *err)
{
    brc_store *store = o->all->repo->store;
    BRC_TRY(brc_store_begin_read(store, err));
    int rc = add_newer(o, err);
    brc_store_end_read(store);
    return rc;
}

/* ---- the call -------------------------------- */

static int must_be_rebase(const open_rebase *o, brc_error *err)
{
    if (o->merge.draft.id == 0)
        return brc_none_is_open(o->s, err);
    return strcmp(brc_open_merge_command(&o->merge), "rebase") == 0
               ? BRC_OK
               : brc_other_is_open(o->s, &o->merge, err);
}

static int go_on(open_rebase *o, int skips, brc_error *err)
{
    brc_rebasing *r = o->all;
    BRC_TRY(brc_sequence_resume(&r->q, o->s->branch, &o->merge.draft, err));
    BRC_TRY(catch_up(o, err));
    const brc_task task = brc_task_begin(r->repo, "rebase", 0);
    int rc = BRC_OK;
    if (skips)
        r->result.skipped++;
    else
        rc = commit_settled(o, err);
    if (rc == BRC_OK)
        rc = brc_rebasing_run(r, err);
    brc_task_end(r->repo, &task, rc);
    return rc;
}

/* Nothing has changed. */
static int still_open(open_rebase *o, brc_pick_result *out, brc_iter **conflicts, brc_error *err)
{
    brc_pick_result *result = &o->all->result;
    result->result = BRC_PICK_CONFLICT;
    result->draft = o->merge.draft.id;
    result->at = o->at->id;
    result->left = o->all->n;
    result->conflicts = brc_open_merge_left(&o->merge);
    BRC_TRY(brc_sized_out(out, result, sizeof(*result), offsetof(brc_pick_result, conflicts),
                          "brc_pick_result", err));
    return conflicts != NULL ? brc_conflict_list_open(conflicts, &o->merge.conflicts, err)
                             : BRC_OK;
}

static int continue_open(open_rebase *o, const brc_rebase_turn *turn, brc_error *err)
{
    brc_rebasing *r = o->all;
    BRC_TRY(brc_look_at_open(&o->s, &o->merge, r->repo, BRC_SESSION_WRITE, err));
    if (strcmp(o->s->branch, r->q.on) != 0)
        return brc_fail(err, BRC_ESTALE,
                        "%s: the current branch is '%s' now, and not '%s': nothing was changed; "
                        "call again",
                        brc_store_path(r->repo->store), o->s->branch, r->q.on);
    BRC_TRY(must_be_rebase(o, err));
    BRC_TRY(read_rest(o, err));
    if (!turn->skips && brc_open_merge_left(&o->merge) > 0)
        return still_open(o, turn->out, turn->conflicts, err);
    BRC_TRY(go_on(o, turn->skips, err));
    return brc_pick_answer(turn->out, turn->conflicts, &r->q, &r->result, &r->result.at, err);
}

static int continue_once(brc_rebase_turn *turn, brc_rebasing *r, brc_error *err)
{
    open_rebase o = {.all = r};
    r->may_keep = 1;
    int rc = continue_open(&o, turn, err);
    open_rebase_dispose(&o);
    return rc;
}

int brc_rebase_continue(brc_pick_result *out, brc_iter **conflicts, breccia *repo, uint32_t flags,
                        brc_error *err)
{
    brc_rebase_turn turn = {.out = out, .conflicts = conflicts, .repo = repo,
                            .once = continue_once};
    turn.skips = (flags & BRC_REBASE_SKIP) != 0;
    if (conflicts != NULL)
        *conflicts = NULL;
    BRC_TRY(brc_flags_check(flags, BRC_REBASE_SKIP, "brc_rebase_continue()", err));
    BRC_TRY(brc_can_end_open(repo, err));
    return brc_rebasing_in_turn(&turn, err);
}
