/* Settles the conflicts of an open merge, cherry-pick, revert or rebase for one side. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../history/commit.h"
#include "../store/collect.h"
#include "../tree/map.h"
#include "../work/session_nodes.h"
#include "../zarr/array/array.h"
#include "../zarr/key/key_rows.h"
#include "steps.h"

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
