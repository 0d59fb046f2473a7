/* Open merges and the like: what is left of one, and settling it for a side. */
#include "merge_end.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "../base/sized.h"
#include "../history/ancestry.h"
#include "../history/commit.h"
#include "../store/change.h"
#include "../store/collect.h"
#include "../tree/map.h"
#include "../zarr/array.h"
#include "../zarr/fold.h"
#include "../zarr/session_nodes.h"
#include "replay.h"
#include "sequence.h"

/* ==== merge draft ================================ */

int brc_none_is_open(const brc_session *s, brc_error *err)
{
    return brc_fail(err, BRC_EMISUSE,
                    "%s: no merge, rebase, cherry-pick or revert is open on branch '%s'",
                    brc_store_path(s->repo->store), s->branch);
}

int brc_other_is_open(const brc_session *s, const brc_open_merge *merge, brc_error *err)
{
    const char *open = brc_open_merge_command(merge);
    return brc_fail(err, BRC_EMISUSE,
                    "%s: what is open on branch '%s' is a %s: 'breccia %s --continue' commits it, "
                    "and --abort drops it",
                    brc_store_path(s->repo->store), s->branch, open, open);
}

int brc_look_at_open(brc_session **s, brc_open_merge *out, breccia *repo, int mode, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    BRC_TRY(brc_session_open(s, repo, NULL, mode, err));
    int rc = brc_session_begin_read(*s, err);
    if (rc == BRC_OK) {
        rc = brc_open_merge_read(out, *s, err);
        brc_session_end_read(*s);
    }
    return rc;
}

int brc_can_end_open(breccia *repo, brc_error *err)
{
    if (brc_store_in_write(repo->store))
        return brc_fail(err, BRC_EMISUSE, "an open merge is not settled or ended within a "
                                          "transaction");
    return brc_store_writable(repo->store, err);
}

/* ---- what is open -------------------------------- */

int brc_merge_state(brc_open_state *out, brc_iter **conflicts, breccia *repo, brc_error *err)
{
    brc_open_state own = BRC_OPEN_STATE_INIT;
    brc_open_merge merge = {0};
    brc_session *s = NULL;
    int rc;
    if (conflicts != NULL)
        *conflicts = NULL;
    BRC_GO(brc_look_at_open(&s, &merge, repo, BRC_SESSION_VIEW, err));
    rc = brc_open_merge_id(&merge, "at", &own.at, err);
    if (rc < 0)
        goto done;
    own.draft = merge.draft.id;
    own.has_other = merge.has_other;
    own.other = merge.other;
    own.conflicts = merge.conflicts.n;
    own.open = brc_open_merge_left(&merge);
    own.made = brc_open_merge_number(&merge, "made");
    own.skipped = brc_open_merge_number(&merge, "skipped");
    own.left = brc_json_count(brc_json_member(merge.plan, "todo"));
    if (merge.plan != NULL)
        snprintf(own.op, sizeof(own.op), "%s", brc_open_merge_command(&merge));
    snprintf(own.rev, sizeof(own.rev), "%s", brc_open_merge_text(&merge, "rev"));
    BRC_GO(brc_sized_out(out, &own, sizeof(own), offsetof(brc_open_state, rev), "brc_open_state",
                         err));
    if (conflicts != NULL)
        rc = brc_conflict_list(conflicts, &merge.conflicts, err);
done:
    brc_open_merge_dispose(&merge);
    brc_session_free(s);
    return rc;
}

/* ---- settling for a side -------------------------------- */

typedef struct settling {
    breccia *repo;
    brc_store *store;
    int side; /* BRC_SETTLED_OURS or _THEIRS */
    char **paths;
    size_t npaths;
    brc_session *s;
    brc_open_merge merge;
    char *chosen;        /* of each conflict: whether it is settled now */
    uint64_t n;          /* how many that are   */
    char **places;       /* where ours has them: whom to favour is asked by these paths */
    size_t nplaces;
    const char **whole;  /* arrays that are in conflict as a whole, and chosen */
    int64_t collected;
    /* For theirs: the merge as it was, and with their side where it is chosen; what moved
     * from ours to each. */
    brc_oid was_root, now_root;
    brc_move_set was_moves, now_moves;
    brc_folded folded;  /* what the draft is */
    brc_merge_run over; /* that, over what the merge becomes */
    brc_oid ours_root;
} settling;

static void settling_dispose(settling *t)
{
    brc_merge_run_dispose(&t->over);
    brc_move_set_dispose(&t->was_moves);
    brc_move_set_dispose(&t->now_moves);
    brc_folded_dispose(&t->folded);
    brc_open_merge_dispose(&t->merge);
    brc_session_free(t->s);
    brc_paths_free(t->paths, t->npaths);
    brc_paths_free(t->places, t->nplaces);
    free(t->chosen);
    free(t->whole);
}

static int is_asked_for(const settling *t, const char *path)
{
    return t->npaths == 0 ||
           brc_paths_cover((const char *const *)t->paths, t->npaths, path, NULL);
}

/* A path that was mistyped must not look as if it had been settled. */
static int check_asked(const settling *t, brc_error *err)
{
    for (size_t k = 0; k < t->npaths; k++) {
        const char *const one[] = {t->paths[k]};
        int met = t->paths[k][1] == '\0';
        for (size_t i = 0; i < t->merge.conflicts.n && !met; i++)
            met = brc_paths_cover(one, 1, t->merge.conflicts.items[i].path, NULL);
        if (!met)
            return brc_fail(err, BRC_ENOTFOUND,
                            "%.300s is in no conflict of the open %s: 'breccia status' lists them",
                            t->paths[k], brc_open_merge_command(&t->merge));
    }
    return BRC_OK;
}

static int choose_conflicts(settling *t, brc_error *err)
{
    const size_t n = t->merge.conflicts.n;
    void *p;
    BRC_TRY(brc_new_array(&p, n + 1, sizeof(char), err));
    t->chosen = p;
    for (size_t i = 0; i < n; i++) {
        const brc_clash *clash = &t->merge.conflicts.items[i];
        if (clash->settled != BRC_SETTLED_NOT || !is_asked_for(t, clash->path))
            continue;
        t->chosen[i] = 1;
        t->n++;
    }
    return BRC_OK;
}

/* The merge again, as a snapshot that nothing names yet. */
static int merge_as(settling *t, int favour, brc_oid *root, brc_move_set *moves, brc_error *err)
{
    brc_merge_run run = BRC_MERGE_RUN_INIT;
    int rc;
    run.how.repo = t->repo;
    run.how.favour = favour;
    run.how.paths = (const char *const *)t->places;
    run.how.npaths = t->nplaces;
    run.how.is_exact = 1;
    BRC_GO(brc_open_merge_run(&run, &t->merge, err));
    BRC_GO(brc_merge_tree_ahead(run.tree, err));
    BRC_GO(brc_store_begin(t->store, err));
    rc = brc_merge_tree_put(run.tree, root, err);
    if (rc == BRC_OK)
        rc = brc_merge_tree_moves(run.tree, root, moves, err);
    rc = brc_end_with(t->repo, rc, err);
done:
    brc_merge_run_dispose(&run);
    return rc;
}

/* Conflicts are named by where the merge has them; who is favoured is asked by where ours has them.
 * What ours does not have is named as theirs has it. */
static int find_places(settling *t, brc_error *err)
{
    brc_buf source = BRC_BUF_INIT;
    void *p;
    int rc;
    BRC_TRY(brc_new_array(&p, 2 * t->merge.conflicts.n + 1, sizeof(char *), err));
    t->places = p;
    for (size_t i = 0; i < t->merge.conflicts.n; i++) {
        const brc_clash *clash = &t->merge.conflicts.items[i];
        if (!t->chosen[i])
            continue;
        if (strcmp(clash->member, BRC_CLASH_NODE) == 0)
            BRC_GO(brc_dup(&t->places[t->nplaces++], clash->path, err));
        source.len = 0;
        BRC_GO(brc_move_source(&source, &t->was_moves, clash->path, 0, err));
        BRC_GO(brc_dup(&t->places[t->nplaces++], (const char *)source.data, err));
    }
    brc_paths_sort((const char **)t->places, t->nplaces);
    rc = BRC_OK;
done:
    brc_buf_dispose(&source);
    return rc;
}

/* From what the merge was, by way of ours. */
static int moves_from_was(const settling *t, const brc_move_set *then, const brc_oid *to,
                          brc_move_set *out, brc_error *err)
{
    brc_move_set back = {0};
    int rc;
    BRC_GO(brc_move_set_turn(&back, &t->was_moves, err));
    BRC_GO(brc_move_set_join(out, &back, then, err));
    rc = brc_move_set_reduce(out, t->store, &t->was_root, to, err);
done:
    brc_move_set_dispose(&back);
    return rc;
}

/* In a read. */
static int read_over(settling *t, brc_error *err)
{
    brc_move_set moves = {0};
    brc_merge_three *in = &t->over.in;
    const brc_draft_head *draft = &t->merge.draft;
    int rc;
    *in = (brc_merge_three){.base = t->was_root, .ours = t->now_root, .theirs = t->folded.root};
    if (draft->has_base)
        BRC_GO(brc_commit_root(t->store, &draft->base, &t->ours_root, err));
    BRC_GO(moves_from_was(t, &t->now_moves, &in->ours, &t->over.ours_moves, err));
    BRC_GO(brc_session_moves(&moves, t->s, draft->has_base, &draft->base, &t->ours_root,
                             &in->theirs, err));
    rc = moves_from_was(t, &moves, &in->theirs, &t->over.theirs_moves, err);
done:
    brc_move_set_dispose(&moves);
    return rc;
}

/* The draft as a snapshot. That may make rows of it stand still, so the merge is read again. */
static int fold_merge(settling *t, brc_error *err)
{
    do
        BRC_TRY(brc_fold_ahead(t->s, 1, &t->folded, err));
    while (!t->folded.has_root);
    brc_open_merge_dispose(&t->merge);
    BRC_TRY(brc_session_begin_read(t->s, err));
    int rc = brc_open_merge_read(&t->merge, t->s, err);
    brc_session_end_read(t->s);
    return rc == BRC_OK && t->merge.draft.id == 0 ? brc_none_is_open(t->s, err) : rc;
}

/* Of an array that is in conflict as a whole, what was written to the side that goes is replaced:
 * chunks of two grids or types cannot both be there. */
static int find_whole(settling *t, brc_error *err)
{
    static const char *const members[] = {"/shape", "/data_type", "/chunk_grid", "/fill_value",
                                          "/codecs"};
    void *p;
    BRC_TRY(brc_new_array(&p, t->merge.conflicts.n + 1, sizeof(char *), err));
    t->whole = p;
    for (size_t i = 0; i < t->merge.conflicts.n; i++)
        for (size_t k = 0; t->chosen[i] && k < sizeof(members) / sizeof(members[0]); k++)
            if (strcmp(t->merge.conflicts.items[i].member, members[k]) == 0)
                t->whole[t->over.how.nwhole++] = t->merge.conflicts.items[i].path;
    t->over.how.whole = t->whole;
    return BRC_OK;
}

/* What the merge becomes, and over it what was written since. */
static int merge_over(settling *t, brc_error *err)
{
    t->over.how.repo = t->repo;
    t->over.how.favour = BRC_FAVOUR_THEIRS;
    BRC_TRY(merge_as(t, BRC_FAVOUR_NONE, &t->was_root, &t->was_moves, err));
    BRC_TRY(find_places(t, err));
    BRC_TRY(find_whole(t, err));
    BRC_TRY(merge_as(t, BRC_FAVOUR_THEIRS, &t->now_root, &t->now_moves, err));
    BRC_TRY(brc_session_begin_read(t->s, err));
    int rc = read_over(t, err);
    brc_session_end_read(t->s);
    BRC_TRY(rc);
    BRC_TRY(brc_merge_work(&t->over, err));
    const brc_clash_list *left = brc_merge_tree_clashes(t->over.tree);
    if (left->n > 0)
        return brc_fail(err, BRC_ECONFLICT,
                        "what was written at %.300s since the merge began does not go with their "
                        "side: settle it by writing, or drop the merge and begin again",
                        left->items[0].path);
    return brc_merge_tree_ahead(t->over.tree, err);
}

/* What was settled by hand until now can no longer be told by what is written. */
static int note_settled(const settling *t, brc_error *err)
{
    for (size_t i = 0; i < t->merge.conflicts.n; i++) {
        brc_clash *clash = &t->merge.conflicts.items[i];
        if (t->chosen[i])
            clash->settled = t->side;
        if (clash->settled != BRC_SETTLED_NOT)
            BRC_TRY(brc_clash_put(t->store, t->s->draft.id, clash, 0, err));
    }
    return BRC_OK;
}

/* What a snapshot has at a chunk's place; zero: nothing. *is_array 0: there is no array. */
static int chunk_in(brc_store *store, const brc_oid *root, const brc_clash *clash, brc_oid *out,
                    int *is_array, brc_error *err)
{
    brc_entry entry;
    brc_span value;
    int found;
    memset(out, 0, sizeof(*out));
    BRC_TRY(brc_snapshot_find(store, root, clash->path, &entry, err));
    *is_array = entry.kind == BRC_ARRAY;
    if (!*is_array || brc_oid_is_zero(&entry.map))
        return BRC_OK;
    BRC_TRY(brc_map_get(store, &entry.map, clash->key.data, clash->key.len, &found, &value, err));
    return found ? brc_chunk_id_of(value, brc_store_id_len(store), out, err) : BRC_OK;
}

static int put_chunk_back(brc_session *s, const brc_clash *clash, const brc_oid *id,
                          brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM];
    brc_array *a;
    BRC_TRY(brc_array_open(&a, s, clash->path, err));
    int rc = brc_array_begin(a, err);
    if (rc == BRC_OK) {
        if (brc_chunk_key_decode(clash->key.data, clash->key.len, index) == a->meta.ndim)
            rc = brc_array_put_chunk(a, index, brc_oid_is_zero(id) ? NULL : id, err);
        rc = brc_array_end(a, rc, err);
    }
    brc_array_free(a);
    return rc;
}

/* Sides are favoured by path: of an array, theirs comes also to chunks that were written to settle
 * them, wherever an element there is as ours had it. These chunks stay what was written. */
static int keep_written_chunks(settling *t, const brc_oid *root, brc_error *err)
{
    brc_oid was, now;
    int was_array, is_array;
    for (size_t i = 0; i < t->merge.conflicts.n; i++) {
        const brc_clash *clash = &t->merge.conflicts.items[i];
        if (clash->settled != BRC_SETTLED_HAND || strcmp(clash->member, BRC_CLASH_CHUNK) != 0)
            continue;
        BRC_TRY(chunk_in(t->store, &t->folded.root, clash, &was, &was_array, err));
        BRC_TRY(chunk_in(t->store, root, clash, &now, &is_array, err));
        if (was_array && is_array && brc_oid_cmp(&was, &now) != 0)
            BRC_TRY(put_chunk_back(t->s, clash, &was, err));
    }
    return BRC_OK;
}

static int lay_settled(settling *t, brc_error *err)
{
    brc_move_set more = {0}, moves = {0};
    brc_oid root;
    int rc;
    BRC_GO(brc_merge_tree_put(t->over.tree, &root, err));
    BRC_GO(brc_merge_tree_moves(t->over.tree, &root, &more, err));
    BRC_GO(brc_move_set_join(&moves, &t->now_moves, &more, err));
    BRC_GO(brc_move_set_reduce(&moves, t->store, &t->ours_root, &root, err));
    BRC_GO(brc_open_merge_lay(t->s, &root, &moves, err));
    rc = keep_written_chunks(t, &root, err);
done:
    brc_move_set_dispose(&more);
    brc_move_set_dispose(&moves);
    return rc;
}

static int settle_steps(settling *t, brc_error *err)
{
    const brc_draft_head *now = &t->s->draft;
    const int64_t as_of =
        t->side == BRC_SETTLED_THEIRS ? t->folded.changes : t->merge.draft.changes;
    int64_t last;
    BRC_TRY(brc_gc_last(t->store, &last, err));
    if (now->id != t->merge.draft.id || now->changes != as_of ||
        now->changes != t->merge.draft.changes ||
        (t->side == BRC_SETTLED_THEIRS && last != t->collected))
        return brc_fail(err, BRC_ESTALE,
                        "%s: the merge on branch '%s' was changed while it was settled: nothing "
                        "was done; settle again",
                        brc_store_path(t->store), t->s->branch);
    if (t->side == BRC_SETTLED_THEIRS)
        BRC_TRY(lay_settled(t, err));
    return note_settled(t, err);
}

static int settle_once(settling *t, const char *const *paths, size_t npaths, brc_error *err)
{
    t->npaths = npaths;
    BRC_TRY(brc_paths_normal(&t->paths, paths, npaths, err));
    BRC_TRY(brc_store_begin_read(t->store, err));
    int rc = brc_gc_last(t->store, &t->collected, err);
    brc_store_end_read(t->store);
    BRC_TRY(rc);
    BRC_TRY(brc_look_at_open(&t->s, &t->merge, t->repo, BRC_SESSION_WRITE, err));
    if (t->merge.draft.id == 0)
        return brc_none_is_open(t->s, err);
    if (t->side == BRC_SETTLED_THEIRS)
        BRC_TRY(fold_merge(t, err));
    BRC_TRY(check_asked(t, err));
    BRC_TRY(choose_conflicts(t, err));
    if (t->n == 0)
        return BRC_OK;
    if (t->side == BRC_SETTLED_THEIRS)
        BRC_TRY(merge_over(t, err));
    BRC_TRY(brc_session_begin(t->s, err));
    return brc_session_end(t->s, settle_steps(t, err), err);
}

int brc_merge_settle(uint64_t *settled, breccia *repo, uint32_t side, const char *const *paths,
                     size_t npaths, brc_error *err)
{
    const brc_merge_run none = BRC_MERGE_RUN_INIT;
    settling t = {.repo = repo, .store = repo->store, .over = none};
    *settled = 0;
    if (side != BRC_MERGE_OURS && side != BRC_MERGE_THEIRS)
        return brc_fail(err, BRC_EINVAL, "conflicts are settled for one side: ours or theirs");
    t.side = side == BRC_MERGE_OURS ? BRC_SETTLED_OURS : BRC_SETTLED_THEIRS;
    BRC_TRY(brc_can_end_open(repo, err));
    int rc = settle_once(&t, paths, npaths, err);
    if (rc == BRC_OK)
        *settled = t.n;
    settling_dispose(&t);
    return rc;
}

/* ==== merge onto ================================ */

/*
 * The end of an open merge, cherry-pick or revert whose branch has moved since it began. What was
 * settled is merged onto the new tip, as the changes of a private session are (replay.h): base is
 * the commit over which the draft lies. Where nothing overlaps, that is the commit. Else the merge
 * is open again, over the new tip: theirs is what was settled, as a commit that the new draft's
 * plan names.
 */

typedef struct onto_tip {
    brc_session *s;
    brc_store *store;
    const brc_open_merge *merge;
    const brc_commit *like;
    brc_onto_tip *out;
    brc_replay r;
} onto_tip;

/* ---- the commit -------------------------------- */

/* The tip may have the other side by now: then that is no parent. */
static int needs_other(const onto_tip *o, int *needs, brc_error *err)
{
    brc_reach *reach;
    *needs = o->merge->has_other;
    if (!*needs || !o->r.has_tip)
        return BRC_OK;
    BRC_TRY(brc_reach_new(&reach, o->store, err));
    int rc = brc_reach_from(reach, &o->r.tip, err);
    if (rc == BRC_OK)
        rc = brc_reach_find(reach, &o->merge->other, err);
    brc_reach_free(reach);
    *needs = rc == 0;
    return rc < 0 ? rc : BRC_OK;
}

static int put_onto_tip(onto_tip *o, brc_error *err)
{
    brc_commit commit = *o->like;
    brc_oid parents[2];
    brc_move_set moves = {0};
    char *full = NULL;
    int rc, needs;
    commit.parents = parents;
    if (o->r.has_tip)
        parents[commit.nparents++] = o->r.tip;
    BRC_GO(needs_other(o, &needs, err));
    if (needs)
        parents[commit.nparents++] = o->merge->other;
    BRC_GO(brc_merge_tree_put(o->r.run.tree, &commit.root, err));
    o->out->commit = o->r.tip;
    o->out->is_made = needs || brc_oid_cmp(&commit.root, &o->r.run.in.ours) != 0;
    if (o->out->is_made) {
        BRC_GO(brc_merge_tree_moves(o->r.run.tree, &commit.root, &moves, err));
        BRC_GO(brc_commit_put(o->store, &commit, &moves, err));
        BRC_GO(brc_ref_full(&full, "heads", o->s->branch, err));
        BRC_GO(brc_ref_put(o->store, full, &commit.id, NULL, brc_open_merge_op(o->merge), 1,
                           o->r.has_tip ? &o->r.tip : NULL, brc_now_us(), err));
        o->out->commit = commit.id;
    }
    rc = brc_draft_delete(o->store, o->s->draft.id, err);
done:
    brc_move_set_dispose(&moves);
    free(full);
    return rc;
}

/* ---- open again -------------------------------- */

/* What was settled, over the commit over which it was. */
static int put_settled(onto_tip *o, brc_step_change *change, brc_error *err)
{
    const brc_draft_head *draft = &o->r.draft;
    brc_commit commit = *o->like;
    brc_oid parents[2];
    commit.parents = parents;
    if (draft->has_tip)
        parents[commit.nparents++] = draft->tip;
    if (o->merge->has_other)
        parents[commit.nparents++] = o->merge->other;
    commit.root = o->r.folded.root;
    BRC_TRY(brc_commit_put(o->store, &commit, &o->r.run.theirs_moves, err));
    *change = (brc_step_change){.has_base = draft->has_tip, .base = draft->tip,
                                .has_theirs = 1, .theirs = commit.id};
    return BRC_OK;
}

/* What the plan says of the commit that is to come stays. */
static int plan_again(const onto_tip *o, const brc_step_change *change, brc_buf *plan,
                      brc_error *err)
{
    static const char *const texts[] = {"op", "rev", "at", "message", "author"};
    int64_t time;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (brc_json_member(o->merge->plan, texts[i]) != NULL)
            BRC_TRY(brc_plan_text(plan, texts[i], brc_open_merge_text(o->merge, texts[i]), err));
    if (brc_json_int(brc_json_member(o->merge->plan, "time"), INT64_MIN, INT64_MAX, &time))
        BRC_TRY(brc_plan_number(plan, "time", time, err));
    if (change->has_base)
        BRC_TRY(brc_plan_id(plan, "base", &change->base, err));
    BRC_TRY(brc_plan_id(plan, "theirs", &change->theirs, err));
    BRC_TRY(brc_plan_true(plan, "settled", err));
    BRC_TRY(brc_plan_number(plan, "conflicts",
                            (int64_t)brc_merge_tree_clashes(o->r.run.tree)->n, err));
    return brc_plan_end(plan, err);
}

static int open_again(onto_tip *o, brc_error *err)
{
    brc_step_change change;
    brc_buf plan = BRC_BUF_INIT;
    brc_open_merge_new what = {.branch = o->s->branch, .change = &change};
    int64_t draft;
    int rc;
    what.tip = o->r.has_tip ? &o->r.tip : NULL;
    what.other = o->merge->has_other ? &o->merge->other : NULL;
    BRC_GO(put_settled(o, &change, err));
    BRC_GO(plan_again(o, &change, &plan, err));
    what.plan = (const char *)plan.data;
    BRC_GO(brc_draft_delete(o->store, o->s->draft.id, err));
    rc = brc_open_merge_start(&draft, &o->r.run, &what, err);
    o->out->is_open = rc == BRC_OK;
done:
    brc_buf_dispose(&plan);
    return rc;
}

/* ---- the call -------------------------------- */

/* It must be the same, and still be settled: others may have written meanwhile. */
static int check_same_merge(onto_tip *o, brc_error *err)
{
    brc_open_merge now;
    BRC_TRY(brc_open_merge_read(&now, o->s, err));
    const int same = now.draft.id == o->merge->draft.id && brc_open_merge_left(&now) == 0;
    brc_open_merge_dispose(&now);
    if (same)
        return BRC_OK;
    const char *open = brc_open_merge_command(o->merge);
    return brc_fail(err, BRC_ESTALE,
                    "%s: the %s on branch '%s' was changed while it went on: nothing was done; "
                    "call 'breccia %s --continue' again",
                    brc_store_path(o->store), open, o->s->branch, open);
}

static int onto_steps(onto_tip *o, brc_error *err)
{
    BRC_TRY(check_same_merge(o, err));
    const int same = brc_replay_is_current(&o->r, err);
    if (same <= 0)
        return same < 0 ? same : BRC_CHANGE_AGAIN;
    o->s->is_read = 0;
    return brc_merge_tree_clashes(o->r.run.tree)->n > 0 ? open_again(o, err)
                                                        : put_onto_tip(o, err);
}

static int onto_work(void *ctx, brc_error *err)
{
    onto_tip *o = ctx;
    memset(o->out, 0, sizeof(*o->out));
    brc_replay_end(&o->r);
    brc_replay_start(&o->r, o->s);
    BRC_TRY(brc_replay_work(&o->r, err));
    return brc_merge_tree_ahead(o->r.run.tree, err);
}

static int onto_commit(void *ctx, int insists, brc_error *err)
{
    onto_tip *o = ctx;
    (void)insists;
    BRC_TRY(brc_session_begin(o->s, err));
    const int done = onto_steps(o, err);
    const int rc = brc_session_end(o->s, done < 0 ? done : BRC_OK, err);
    if (rc < 0 || done > 0)
        o->s->is_read = 0;
    return rc < 0 ? rc : done;
}

static int onto_is_late(const onto_tip *o, brc_error *err)
{
    char doing[160], remedy[80];
    const char *open = brc_open_merge_command(o->merge);
    snprintf(doing, sizeof(doing), "the %s was merged onto branch '%.100s'", open, o->s->branch);
    snprintf(remedy, sizeof(remedy), "it is open as it was; call 'breccia %s --continue' again",
             open);
    return brc_change_is_late(o->store, doing, remedy, err);
}

static int open_merge_onto_tip(brc_onto_tip *out, brc_session *s, const brc_open_merge *merge,
                               const brc_commit *like, brc_error *err)
{
    onto_tip o = {.s = s, .store = s->repo->store, .merge = merge, .like = like, .out = out};
    const brc_task task = brc_task_begin(s->repo, brc_open_merge_command(merge), 0);
    const brc_file_change change = {.about = s->branch, .ctx = &o, .work = onto_work,
                                    .commit = onto_commit};
    brc_replay_start(&o.r, s);
    int rc = brc_change_run(o.store, &change, err);
    brc_replay_end(&o.r);
    brc_session_changed(s, rc);
    if (rc == BRC_CHANGE_AGAIN)
        rc = onto_is_late(&o, err);
    brc_task_end(s->repo, &task, rc);
    return rc;
}

/* ==== merge end ================================ */

/* The end of an open merge, cherry-pick or revert: a commit; and of these and a rebase: nothing. */

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
    BRC_TRY(open_merge_onto_tip(&end, e->s, &e->merge, &like, err));
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
