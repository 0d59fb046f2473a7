/* Open merges and the like: their state, and settling one for a side. */
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
#include "../work/session_nodes.h"
#include "../zarr/array/array.h"
#include "../zarr/key/key_rows.h"
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
                    "%s: branch '%s' has an open %s instead: 'breccia %s --continue' commits it, "
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
    int side; /* BRC_SETTLED_OURS or BRC_SETTLED_THEIRS */
    char **paths;
    size_t npaths;
    brc_session *s;
    brc_open_merge merge;
    char *chosen;        /* of each conflict: 1 if this call settles it */
    uint64_t n;          /* number of these conflicts */
    char **places;       /* their places in ours, because the favoured side is asked by these
                          * paths */
    size_t nplaces;
    const char **whole;  /* arrays that are in conflict as a whole, and chosen */
    int64_t collected;
    /* For theirs: the merge as it was, and the merge with their side where it is chosen, each with
     * its moves from ours. */
    brc_oid was_root, now_root;
    brc_move_set was_moves, now_moves;
    brc_folded folded;  /* the folded draft */
    brc_merge_run over; /* a merge of the draft onto the new merge */
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

/* Fails for a path that is in no conflict, so that a mistyped path does not look settled. */
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

/* Merges again with a favoured side, into a snapshot that nothing names yet. */
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

/* Finds the places of the chosen conflicts in ours. Conflicts are named by paths in the merge, but
 * the favoured side is asked by paths in ours. A node that ours does not have is named by its path
 * in theirs. */
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

/* Finds the moves from the old merge, by way of ours. */
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

/* Must be called within a read. */
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

/* Folds the draft into a snapshot. Folding may settle rows of the draft, so the merge is read
 * again. */
static int fold_merge(settling *t, brc_error *err)
{
    BRC_TRY(brc_fold_whole(t->s, &t->folded, err));
    brc_open_merge_dispose(&t->merge);
    BRC_TRY(brc_session_begin_read(t->s, err));
    int rc = brc_open_merge_read(&t->merge, t->s, err);
    brc_session_end_read(t->s);
    return rc == BRC_OK && t->merge.draft.id == 0 ? brc_none_is_open(t->s, err) : rc;
}

/* Finds the arrays that are in conflict as a whole. What was written to the side that is not chosen
 * is replaced, because an array cannot have chunks of two grids or types. */
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

/* Merges the draft's later writes onto the new merge. */
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
                        "the values written at %.300s since the merge began conflict with their "
                        "side: settle it by writing, or drop the merge and begin again",
                        left->items[0].path);
    return brc_merge_tree_ahead(t->over.tree, err);
}

/* Records the conflicts that were settled by hand so far, because after this call they can no
 * longer be recognized by what was written. */
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

/* Finds the chunk that a snapshot has at a conflict's place; zero if it is absent. *is_array 0: the
 * snapshot has no array at the path. */
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

/* Keeps the chunks that were written to settle conflicts. Sides are favoured by path, so theirs
 * would also reach those chunks of an array, wherever an element is as ours had it. */
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

/* ==== merge end ================================ */

/*
 * Ends an open merge, cherry-pick or revert. The settled result becomes a commit, as the last step
 * of a sequence. If nothing is left of a cherry-pick or revert, no commit is made.
 *
 * If the branch has moved since, the settled result is put as a commit that nothing names, and its
 * change is merged onto the new tip. If that merge has conflicts, the merge is open again on the
 * new tip, and its plan names that commit.
 */

typedef struct open_end {
    brc_aim aim; /* first: for brc_sequence_change() */
    breccia *repo;
    int is_merge;
    const char *message, *author; /* of the commit; NULL: as in the plan */
    int64_t time_us;              /* 0: as in the plan                     */
    brc_iter **conflicts;
    /* The result. */
    brc_oid commit, at;
    int made;
    uint64_t left;
    int64_t draft; /* 0: nothing is open any more */
} open_end;

/* One try. */
typedef struct open_ending {
    open_end *end;
    brc_session *s;
    brc_open_merge merge;
    brc_commit *like; /* of a cherry-pick: the commit whose author, time, message and meta are
                       * kept; or NULL */
    brc_sequence q;
    brc_step step;
    brc_folded folded; /* the settled result */
    brc_move_set moves;
} open_ending;

static void open_ending_dispose(open_ending *e)
{
    brc_sequence_dispose(&e->q);
    brc_folded_dispose(&e->folded);
    brc_move_set_dispose(&e->moves);
    brc_commit_free(e->like);
    brc_open_merge_dispose(&e->merge);
    brc_session_free(e->s);
}

/* ---- what was settled -------------------------------- */

/* Must be called within a read. */
static int check_folded(brc_session *s, brc_sequence *q, const brc_folded *folded,
                        brc_move_set *moves, brc_error *err)
{
    brc_open_merge now;
    BRC_TRY(brc_keys_ready(s, err));
    BRC_TRY(brc_open_merge_read(&now, s, err));
    q->again = now.draft.id != q->draft.id || now.draft.id != folded->draft ||
               now.draft.changes != folded->changes || brc_open_merge_left(&now) > 0;
    q->draft = now.draft;
    brc_open_merge_dispose(&now);
    if (q->again)
        return brc_fail(err, BRC_ESTALE, "%s: the open merge or rebase on branch '%s' was changed",
                        brc_store_path(s->repo->store), s->branch);
    return brc_session_moves(moves, s, q->has_now, &q->now, &q->root, &folded->root, err);
}

int brc_open_fold(brc_session *s, brc_sequence *q, brc_folded *folded, brc_move_set *moves,
                  brc_error *err)
{
    BRC_TRY(brc_fold_whole(s, folded, err));
    BRC_TRY(brc_session_begin_read(s, err));
    const int rc = check_folded(s, q, folded, moves, err);
    brc_session_end_read(s);
    return rc;
}

/* ---- the commit -------------------------------- */

/* Returns the text that is given now, else the one that was given at the beginning, else that of
 * the commit whose change is applied. */
static const char *text_of_end(const open_ending *e, const char *given, const char *name,
                               const char *kept)
{
    if (given != NULL)
        return given;
    return brc_json_member(e->merge.plan, name) != NULL ? brc_open_merge_text(&e->merge, name)
                                                        : kept;
}

static int64_t time_of_end(const open_ending *e)
{
    int64_t time = e->end->time_us;
    if (time == 0 &&
        !brc_json_int(brc_json_member(e->merge.plan, "time"), INT64_MIN, INT64_MAX, &time))
        time = e->like != NULL ? e->like->time_us : 0;
    return time != 0 ? time : brc_now_us();
}

static int read_like(open_ending *e, brc_error *err)
{
    if (strcmp(brc_open_merge_op(&e->merge), "pick") != 0)
        return BRC_OK;
    BRC_TRY(brc_store_begin_read(e->end->repo->store, err));
    int rc = brc_commit_get(&e->like, e->end->repo->store, &e->end->at, err);
    brc_store_end_read(e->end->repo->store);
    return rc;
}

static int plan_end(open_ending *e, brc_error *err)
{
    brc_commit *like = &e->step.like;
    BRC_TRY(read_like(e, err));
    like->message = text_of_end(e, e->end->message, "message",
                                e->like != NULL ? e->like->message : "");
    like->author = text_of_end(e, e->end->author, "author",
                               e->like != NULL ? e->like->author : "unknown");
    like->meta_json = e->like != NULL ? e->like->meta_json : NULL;
    like->time_us = time_of_end(e);
    e->step.other = e->merge.has_other ? &e->merge.other : NULL;
    return BRC_OK;
}

/* ---- onto a tip that has moved -------------------------------- */

/* Checks whether the tip already has the other side, which then does not become a parent. */
static int tip_has_other(const open_ending *e, int *has, brc_error *err)
{
    brc_reach *reach;
    *has = 0;
    if (e->step.other == NULL || !e->q.has_tip)
        return BRC_OK;
    BRC_TRY(brc_reach_new(&reach, e->q.store, err));
    int rc = brc_reach_from(reach, &e->q.tip, err);
    if (rc == BRC_OK)
        rc = brc_reach_find(reach, e->step.other, err);
    brc_reach_free(reach);
    *has = rc > 0;
    return rc < 0 ? rc : BRC_OK;
}

/* Copies the parts of the plan that describe the future commit. */
static int plan_again(const open_ending *e, brc_buf *plan, brc_error *err)
{
    static const char *const texts[] = {"op", "rev", "at", "message", "author"};
    const brc_step_change *change = &e->step.change;
    int64_t time;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (brc_json_member(e->merge.plan, texts[i]) != NULL)
            BRC_TRY(brc_plan_text(plan, texts[i], brc_open_merge_text(&e->merge, texts[i]), err));
    if (brc_json_int(brc_json_member(e->merge.plan, "time"), INT64_MIN, INT64_MAX, &time))
        BRC_TRY(brc_plan_number(plan, "time", time, err));
    if (change->has_base)
        BRC_TRY(brc_plan_id(plan, "base", &change->base, err));
    BRC_TRY(brc_plan_id(plan, "theirs", &change->theirs, err));
    BRC_TRY(brc_plan_true(plan, "settled", err));
    BRC_TRY(brc_plan_number(plan, "conflicts", (int64_t)brc_merge_tree_clashes(e->q.run.tree)->n,
                            err));
    return brc_plan_end(plan, err);
}

static int open_again(open_ending *e, brc_error *err)
{
    brc_buf plan = BRC_BUF_INIT;
    brc_open_merge_new what = {.change = &e->step.change};
    what.other = e->merge.has_other ? &e->merge.other : NULL;
    int rc = plan_again(e, &plan, err);
    what.plan = (const char *)plan.data;
    if (rc == BRC_OK)
        rc = brc_sequence_keep(&e->q, &what, &e->end->draft, err);
    brc_buf_dispose(&plan);
    return rc;
}

static int put_onto_tip(open_ending *e, int *result, brc_error *err)
{
    brc_sequence *q = &e->q;
    brc_step_change *change = &e->step.change;
    int has;
    *change = (brc_step_change){.has_base = q->has_now, .base = q->now, .has_theirs = 1};
    BRC_TRY(brc_sequence_add(q, &e->step, &e->folded.root, &e->moves, result, err));
    change->theirs = q->now;
    BRC_TRY(brc_sequence_go_to_tip(q, err));
    BRC_TRY(tip_has_other(e, &has, err));
    if (has)
        e->step.other = NULL;
    e->step.is_last = 1;
    BRC_TRY(brc_sequence_step(q, &e->step, result, err));
    return *result == BRC_STEP_CONFLICT ? open_again(e, err) : BRC_OK;
}

/* ---- one try -------------------------------- */

static int put_settled(open_ending *e, int *result, brc_error *err)
{
    brc_sequence *q = &e->q;
    BRC_TRY(brc_sequence_resume(q, e->s->branch, &e->merge.draft, err));
    BRC_TRY(brc_open_fold(e->s, q, &e->folded, &e->moves, err));
    if (!brc_draft_follows(&e->merge.draft, q->has_tip, &q->tip))
        return put_onto_tip(e, result, err);
    e->step.is_last = 1;
    return brc_sequence_add(q, &e->step, &e->folded.root, &e->moves, result, err);
}

static int commit_open(open_ending *e, brc_error *err)
{
    int result;
    const brc_task task = brc_task_begin(e->end->repo, brc_open_merge_command(&e->merge), 0);
    int rc = plan_end(e, err);
    if (rc == BRC_OK)
        rc = put_settled(e, &result, err);
    brc_task_end(e->end->repo, &task, rc);
    BRC_TRY(rc);
    e->end->made = result == BRC_STEP_DONE;
    if (result != BRC_STEP_CONFLICT) {
        e->end->commit = e->q.now;
        return BRC_OK;
    }
    brc_open_merge_dispose(&e->merge);
    BRC_TRY(brc_session_begin_read(e->s, err));
    rc = brc_open_merge_read(&e->merge, e->s, err);
    brc_session_end_read(e->s);
    return rc;
}

/* Lists the conflicts that are not settled. */
static int tell_left(open_ending *e, brc_error *err)
{
    open_end *end = e->end;
    end->left = brc_open_merge_left(&e->merge);
    end->draft = end->left > 0 ? e->merge.draft.id : 0;
    return end->conflicts != NULL ? brc_conflict_list_open(end->conflicts, &e->merge.conflicts, err)
                                  : BRC_OK;
}

static int check_what_is_open(open_ending *e, brc_error *err)
{
    if (e->merge.draft.id == 0)
        return brc_none_is_open(e->s, err);
    const char *open = brc_open_merge_command(&e->merge);
    if ((strcmp(open, "merge") == 0) != e->end->is_merge || strcmp(open, "rebase") == 0)
        return brc_other_is_open(e->s, &e->merge, err);
    if (e->end->is_merge)
        return BRC_OK;
    const int rc = brc_open_merge_id(&e->merge, "at", &e->end->at, err);
    return rc != 0 ? (rc < 0 ? rc : BRC_OK)
                   : brc_fail(err, BRC_ECORRUPT,
                              "the plan of draft %lld is damaged: it names no commit",
                              (long long)e->merge.draft.id);
}

static int try_end(open_ending *e, brc_error *err)
{
    BRC_TRY(brc_look_at_open(&e->s, &e->merge, e->end->repo, BRC_SESSION_WRITE, err));
    BRC_TRY(check_what_is_open(e, err));
    e->q.op = brc_open_merge_op(&e->merge);
    if (brc_open_merge_left(&e->merge) == 0)
        BRC_TRY(commit_open(e, err));
    return tell_left(e, err);
}

static int end_in_steps(void *ctx, int insists, brc_error *err)
{
    open_ending e = {.end = ctx};
    (void)insists;
    e.q.repo = e.end->repo;
    e.q.on = e.end->aim.branch;
    e.q.doing = "it was ended";
    const int rc = try_end(&e, err), again = rc < 0 && e.q.again;
    open_ending_dispose(&e);
    return again ? BRC_CHANGE_AGAIN : rc;
}

static int end_open(open_end *end, brc_error *err)
{
    if (end->conflicts != NULL)
        *end->conflicts = NULL;
    BRC_TRY(brc_can_end_open(end->repo, err));
    return brc_sequence_change(&end->aim, end->repo, "what is open on the branch was ended",
                               end_in_steps, err);
}

/* ---- a merge -------------------------------- */

int brc_merge_continue(brc_merge_result *out, brc_iter **conflicts, breccia *repo,
                       const brc_merge_opts *given, brc_error *err)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result own = BRC_MERGE_RESULT_INIT;
    if (conflicts != NULL)
        *conflicts = NULL;
    BRC_TRY(brc_sized_in(&opts, sizeof(opts), offsetof(brc_merge_opts, reserved), given,
                         "brc_merge_opts", err));
    BRC_TRY(brc_message_check(opts.message, err));
    open_end end = {.repo = repo, .is_merge = 1, .message = opts.message, .author = opts.author,
                    .time_us = opts.time_us, .conflicts = conflicts};
    BRC_TRY(end_open(&end, err));
    own.commit = end.commit;
    own.conflicts = end.left;
    own.draft = end.draft;
    own.result = end.left > 0 ? BRC_MERGE_CONFLICT : BRC_MERGE_MERGED;
    return brc_sized_out(out, &own, sizeof(own), offsetof(brc_merge_result, conflicts),
                         "brc_merge_result", err);
}

/* ---- a cherry-pick or revert -------------------------------- */

int brc_pick_continue(brc_pick_result *out, brc_iter **conflicts, breccia *repo,
                      const brc_pick_opts *given, brc_error *err)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result own = BRC_PICK_RESULT_INIT;
    if (conflicts != NULL)
        *conflicts = NULL;
    BRC_TRY(brc_pick_opts_take(&opts, given, 0, err));
    if (opts.flags != 0 || opts.npaths != 0 || opts.mainline != 0)
        return brc_fail(err, BRC_EINVAL,
                        "brc_pick_continue() takes only a message, author and time");
    open_end end = {.repo = repo, .message = opts.message, .author = opts.author,
                    .time_us = opts.time_us, .conflicts = conflicts};
    BRC_TRY(end_open(&end, err));
    own.commit = end.commit;
    own.conflicts = end.left;
    own.draft = end.draft;
    own.made = end.made != 0;
    own.result = own.made      ? BRC_PICK_COMMITTED
                 : end.left == 0 ? BRC_PICK_NOTHING
                                 : BRC_PICK_CONFLICT;
    if (end.left > 0)
        own.at = end.at;
    return brc_sized_out(out, &own, sizeof(own), offsetof(brc_pick_result, conflicts),
                         "brc_pick_result", err);
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
