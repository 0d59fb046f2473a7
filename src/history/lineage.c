/* Moves along the first parents of a commit, and through a merge from one of its others. */
#include "commit.h"

#include <string.h>

#include "made_again.h"
#include "merge_base.h"

/* A diff of versions further apart finds moves by equal entries. */
#define LINEAGE_MOST 1000

static int is_reached(int has_older, const brc_oid *older, int has_at, const brc_oid *at)
{
    return has_older == has_at && (!has_older || brc_oid_cmp(older, at) == 0);
}

/* A branch that is merged again and again leads back to its earlier merges, each of which asks for
 * the one before: so deep at most. */
#define ACROSS_MOST 100

typedef struct lineage {
    brc_store *store;
    int has_older;
    const brc_oid *older;
    int looks;          /* also for what was made again */
    int depth;
    int has_at;
    brc_oid at;         /* how far back it has come */
    brc_move_set moves; /* from there on            */
    int known;
} lineage;

static int between(brc_move_set *out, int *known, const lineage *like, const brc_oid *older,
                   const brc_oid *newer, brc_error *err);

/* `before` comes before the moves that there are. */
static int lay_under(lineage *l, const brc_move_set *before, brc_error *err)
{
    brc_move_set joined = {0};
    if (before->n == 0)
        return BRC_OK;
    int rc = brc_move_set_join(&joined, before, &l->moves, err);
    brc_move_set_dispose(rc < 0 ? &joined : &l->moves);
    if (rc == BRC_OK)
        l->moves = joined;
    return rc;
}

/* From a commit to one that follows it, without what is not in both. */
static int between_roots(brc_move_set *out, int *known, const lineage *like, const brc_oid *older,
                         const brc_oid *newer, brc_error *err)
{
    brc_oid from, to;
    BRC_TRY(between(out, known, like, older, newer, err));
    if (!*known)
        return BRC_OK;
    BRC_TRY(brc_commit_root(like->store, older, &from, err));
    BRC_TRY(brc_commit_root(like->store, newer, &to, err));
    return brc_move_set_reduce(out, like->store, &from, &to, err);
}

/* From one parent of a merge to another: back to their base, and on from there. Not known where
 * they have several. */
static int across(brc_move_set *out, int *known, const lineage *like, const brc_oid *from,
                  const brc_oid *to, brc_error *err)
{
    brc_commit_set one = {0}, bases = {0};
    brc_move_set there = {0}, back = {0}, here = {0};
    int rc;
    *known = 0;
    if (like->depth == ACROSS_MOST)
        return BRC_OK;
    BRC_GO(brc_commit_set_add(&one, to, err));
    BRC_GO(brc_merge_bases(&bases, like->store, &one, from, err));
    if (bases.n != 1)
        goto done;
    BRC_GO(between_roots(&there, known, like, &bases.ids[0], from, err));
    if (*known)
        BRC_GO(between_roots(&here, known, like, &bases.ids[0], to, err));
    if (*known) {
        BRC_GO(brc_move_set_turn(&back, &there, err));
        rc = brc_move_set_join(out, &back, &here, err);
    }
done:
    brc_move_set_dispose(&there);
    brc_move_set_dispose(&back);
    brc_move_set_dispose(&here);
    brc_commit_set_dispose(&one);
    brc_commit_set_dispose(&bases);
    return rc;
}

/* From another parent of a merge to the merge. These moves are joined first, and then with what
 * comes later: a node that is new to the first parent has no place there to be led through. */
static int through_merge(lineage *l, const brc_commit *merge, const brc_oid *parent,
                         brc_error *err)
{
    brc_move_set beside = {0}, whole = {0};
    int rc;
    BRC_GO(across(&beside, &l->known, l, parent, &merge->parents[0], err));
    if (l->known) {
        BRC_GO(brc_move_set_join(&whole, &beside, brc_commit_moves(merge), err));
        rc = lay_under(l, &whole, err);
    }
done:
    brc_move_set_dispose(&beside);
    brc_move_set_dispose(&whole);
    return rc;
}

/* Also of nodes that the commit has made where one of `older` was, which another commit removed. */
static int lay_commit(lineage *l, const brc_commit *commit, brc_error *err)
{
    brc_move_set made = {0}, whole = {0};
    brc_oid older, before;
    int rc;
    if (!l->looks || commit->nparents == 0 || brc_oid_cmp(&commit->parents[0], l->older) == 0)
        return lay_under(l, brc_commit_moves(commit), err);
    BRC_GO(brc_commit_root(l->store, l->older, &older, err));
    BRC_GO(brc_commit_root(l->store, &commit->parents[0], &before, err));
    BRC_GO(brc_made_again(&made, l->store, &older, &before, &commit->root, brc_commit_moves(commit),
                          err));
    BRC_GO(brc_move_set_seal(&made, err));
    BRC_GO(brc_move_set_join(&whole, brc_commit_moves(commit), &made, err));
    rc = lay_under(l, &whole, err);
done:
    brc_move_set_dispose(&made);
    brc_move_set_dispose(&whole);
    return rc;
}

/* Lays the moves of `at` under those that are there, and goes on to its first parent; or, where
 * `older` is another one of its parents, to that. */
static int lineage_step(lineage *l, brc_error *err)
{
    brc_commit *commit;
    int rc = BRC_OK;
    BRC_TRY(brc_commit_get(&commit, l->store, &l->at, err));
    for (size_t i = 1; l->has_older && i < commit->nparents && rc == BRC_OK && !l->known; i++)
        if (brc_oid_cmp(&commit->parents[i], l->older) == 0)
            rc = through_merge(l, commit, l->older, err);
    if (rc == BRC_OK && !l->known)
        rc = lay_commit(l, commit, err);
    l->has_at = commit->nparents > 0;
    if (l->has_at)
        l->at = commit->parents[0];
    brc_commit_free(commit);
    return rc;
}

static int walk_lineage(lineage *l, brc_error *err)
{
    int rc = BRC_OK;
    l->known = is_reached(l->has_older, l->older, l->has_at, &l->at);
    for (int i = 0; i < LINEAGE_MOST && l->has_at && !l->known && rc == BRC_OK; i++) {
        rc = lineage_step(l, err);
        l->known |= is_reached(l->has_older, l->older, l->has_at, &l->at);
    }
    if (rc < 0 || !l->known || !l->has_older)
        brc_move_set_dispose(&l->moves);
    return rc;
}

static int between(brc_move_set *out, int *known, const lineage *like, const brc_oid *older,
                   const brc_oid *newer, brc_error *err)
{
    lineage l = {.store = like->store, .has_older = 1, .older = older, .looks = like->looks,
                 .depth = like->depth + 1, .has_at = 1, .at = *newer};
    int rc = walk_lineage(&l, err);
    *out = l.moves;
    *known = l.known;
    return rc;
}

int brc_move_set_between(brc_move_set *out, int *known, brc_store *store, int has_older,
                         const brc_oid *older, const brc_oid *newer, brc_error *err)
{
    lineage l = {.store = store, .has_older = has_older, .older = older, .has_at = 1,
                 .at = *newer};
    int rc = walk_lineage(&l, err);
    *out = l.moves;
    *known = l.known;
    return rc;
}

int brc_move_set_across(brc_move_set *out, int *known, brc_store *store, const brc_oid *from,
                        const brc_oid *to, brc_error *err)
{
    const lineage like = {.store = store, .looks = 1, .depth = -1};
    BRC_TRY(brc_move_set_between(out, known, store, 1, from, to, err));
    return *known ? BRC_OK : across(out, known, &like, from, to, err);
}

int brc_move_set_along(brc_move_set *out, int *known, brc_store *store, const brc_oid *older,
                       const brc_oid *newer, brc_error *err)
{
    const lineage like = {.store = store, .looks = 1, .depth = -1};
    return between(out, known, &like, older, newer, err);
}
