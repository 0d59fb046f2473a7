/* Moves along the first parents of a commit. */
#include "commit.h"

#include <string.h>

/* A diff of versions further apart finds moves by equal entries. */
#define LINEAGE_MOST 1000

static int is_reached(int has_older, const brc_oid *older, int has_at, const brc_oid *at)
{
    return has_older == has_at && (!has_older || brc_oid_cmp(older, at) == 0);
}

/* Lays the moves of `at` under those that are there, and goes on to its first parent. */
static int lineage_step(brc_move_set *moves, brc_store *store, int *has_at, brc_oid *at,
                        brc_error *err)
{
    brc_commit *commit;
    brc_move_set joined = {0};
    BRC_TRY(brc_commit_get(&commit, store, at, err));
    int rc = BRC_OK;
    const brc_move_set *own = brc_commit_moves(commit);
    if (own->n > 0) {
        rc = brc_move_set_join(&joined, own, moves, err);
        brc_move_set_dispose(rc < 0 ? &joined : moves);
        if (rc == BRC_OK)
            *moves = joined;
    }
    *has_at = commit->nparents > 0;
    if (*has_at)
        *at = commit->parents[0];
    brc_commit_free(commit);
    return rc;
}

int brc_move_set_between(brc_move_set *out, int *known, brc_store *store, int has_older,
                         const brc_oid *older, const brc_oid *newer, brc_error *err)
{
    int has_at = 1, rc = BRC_OK;
    brc_oid at = *newer;
    memset(out, 0, sizeof(*out));
    *known = is_reached(has_older, older, has_at, &at);
    for (int i = 0; i < LINEAGE_MOST && has_at && !*known && rc == BRC_OK; i++) {
        rc = lineage_step(out, store, &has_at, &at, err);
        *known = is_reached(has_older, older, has_at, &at);
    }
    if (rc < 0 || !*known || !has_older)
        brc_move_set_dispose(out);
    return rc;
}
