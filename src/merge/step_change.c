#include "step_change.h"

#include <string.h>

#include "../history/commit.h"
#include "../work/session.h"

/* Finds the moves from one commit back to a commit that it follows. */
static int moves_against(brc_move_set *out, brc_store *store, const brc_oid *from,
                         const brc_oid *to, brc_error *err)
{
    brc_move_set along = {0};
    brc_oid from_root, to_root;
    int rc;
    memset(out, 0, sizeof(*out));
    BRC_GO(brc_commit_root(store, from, &from_root, err));
    BRC_GO(brc_commit_root(store, to, &to_root, err));
    BRC_GO(brc_moves_along(&along, store, to, from, err));
    BRC_GO(brc_move_set_turn(out, &along, err));
    rc = brc_move_set_reduce(out, store, &from_root, &to_root, err);
done:
    brc_move_set_dispose(&along);
    if (rc < 0)
        brc_move_set_dispose(out);
    return rc;
}

static int moves_via(brc_move_set *out, brc_store *store, const brc_oid *from, const brc_oid *via,
                     const brc_oid *to, brc_error *err)
{
    brc_move_set back = {0}, along = {0};
    brc_oid from_root, to_root;
    int rc;
    BRC_GO(brc_commit_root(store, from, &from_root, err));
    BRC_GO(brc_commit_root(store, to, &to_root, err));
    BRC_GO(moves_against(&back, store, from, via, err));
    BRC_GO(brc_moves_along(&along, store, via, to, err));
    BRC_GO(brc_move_set_join(out, &back, &along, err));
    rc = brc_move_set_reduce(out, store, &from_root, &to_root, err);
done:
    brc_move_set_dispose(&back);
    brc_move_set_dispose(&along);
    if (rc < 0)
        brc_move_set_dispose(out);
    return rc;
}

/* Finds the moves from one commit to any other: back to their common ancestor and then forward.
 * There are none if they have several common ancestors. */
static int moves_across(brc_move_set *out, brc_store *store, const brc_oid *from,
                        const brc_oid *to, brc_error *err)
{
    brc_commit_set one = {0}, bases = {0};
    int rc;
    memset(out, 0, sizeof(*out));
    BRC_GO(brc_commit_set_add(&one, from, err));
    BRC_GO(brc_merge_bases(&bases, store, &one, to, err));
    if (bases.n == 1)
        rc = moves_via(out, store, from, &bases.ids[0], to, err);
done:
    brc_commit_set_dispose(&one);
    brc_commit_set_dispose(&bases);
    return rc;
}

/* ---- carried from step to step -------------------------------- */

void brc_moves_carried_dispose(brc_moves_carried *carried)
{
    brc_move_set_dispose(&carried->moves);
    memset(carried, 0, sizeof(*carried));
}

/* Sets *is to 1 if the commit has exactly this one parent. */
static int has_one_parent(brc_store *store, const brc_oid *id, const brc_oid *parent, int *is,
                          brc_error *err)
{
    brc_commit *commit;
    BRC_TRY(brc_commit_get(&commit, store, id, err));
    *is = commit->nparents == 1 && brc_oid_cmp(&commit->parents[0], parent) == 0;
    brc_commit_free(commit);
    return BRC_OK;
}

/* Says whether each end is where it was, or one commit further. */
static int is_next(const brc_moves_carried *carried, brc_store *store, const brc_oid *from,
                   const brc_oid *to, int *is, brc_error *err)
{
    *is = 0;
    if (!carried->is_known)
        return BRC_OK;
    *is = 1;
    if (brc_oid_cmp(from, &carried->from) != 0)
        BRC_TRY(has_one_parent(store, from, &carried->from, is, err));
    if (*is && brc_oid_cmp(to, &carried->to) != 0)
        BRC_TRY(has_one_parent(store, to, &carried->to, is, err));
    return BRC_OK;
}

static int carry_on(brc_moves_carried *carried, brc_store *store, const brc_oid *from,
                    const brc_oid *to, brc_error *err)
{
    brc_move_set back = {0}, along = {0}, half = {0}, whole = {0};
    brc_oid from_root, to_root;
    int rc;
    BRC_GO(brc_commit_root(store, from, &from_root, err));
    BRC_GO(brc_commit_root(store, to, &to_root, err));
    BRC_GO(moves_against(&back, store, from, &carried->from, err));
    BRC_GO(brc_moves_along(&along, store, &carried->to, to, err));
    BRC_GO(brc_move_set_join(&half, &back, &carried->moves, err));
    BRC_GO(brc_move_set_join(&whole, &half, &along, err));
    BRC_GO(brc_move_set_reduce(&whole, store, &from_root, &to_root, err));
    brc_move_set_dispose(&carried->moves);
    carried->moves = whole;
    memset(&whole, 0, sizeof(whole));
done:
    brc_move_set_dispose(&back);
    brc_move_set_dispose(&along);
    brc_move_set_dispose(&half);
    brc_move_set_dispose(&whole);
    return rc;
}

static int moves_copied(brc_move_set *out, const brc_move_set *moves, brc_error *err)
{
    for (size_t i = 0; i < moves->n; i++)
        BRC_TRY(brc_move_set_add(out, moves->items[i].from, moves->items[i].to, err));
    return brc_move_set_seal(out, err);
}

static int moves_carried(brc_move_set *out, brc_moves_carried *carried, brc_store *store,
                         const brc_oid *from, const brc_oid *to, brc_error *err)
{
    int next;
    BRC_TRY(is_next(carried, store, from, to, &next, err));
    if (next) {
        BRC_TRY(carry_on(carried, store, from, to, err));
    } else {
        brc_move_set_dispose(&carried->moves);
        carried->is_known = 0;
        carried->searches++;
        BRC_TRY(moves_across(&carried->moves, store, from, to, err));
    }
    carried->is_known = 1;
    carried->from = *from;
    carried->to = *to;
    return moves_copied(out, &carried->moves, err);
}

/* ---- the change -------------------------------- */

int brc_step_change_read(brc_merge_run *run, const brc_step_change *change, const brc_oid *ours,
                         brc_moves_carried *carried, brc_error *err)
{
    brc_store *store = run->how.repo->store;
    if (ours != NULL)
        BRC_TRY(brc_commit_root(store, ours, &run->in.ours, err));
    if (change->has_base)
        BRC_TRY(brc_commit_root(store, &change->base, &run->in.base, err));
    if (change->has_theirs)
        BRC_TRY(brc_commit_root(store, &change->theirs, &run->in.theirs, err));
    if (change->has_base && ours != NULL)
        BRC_TRY(carried != NULL ? moves_carried(&run->ours_moves, carried, store, &change->base,
                                                ours, err)
                                : moves_across(&run->ours_moves, store, &change->base, ours, err));
    if (!change->has_base || !change->has_theirs)
        return BRC_OK;
    return change->is_back
               ? moves_against(&run->theirs_moves, store, &change->base, &change->theirs, err)
               : brc_moves_along(&run->theirs_moves, store, &change->base, &change->theirs, err);
}
