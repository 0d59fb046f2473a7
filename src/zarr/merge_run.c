#include "merge_run.h"

#include <string.h>

#include "../history/commit.h"
#include "../history/merge_doc.h"

void brc_merge_run_dispose(brc_merge_run *run)
{
    brc_merge_tree_free(run->tree);
    run->tree = NULL;
    brc_move_set_dispose(&run->ours_moves);
    brc_move_set_dispose(&run->theirs_moves);
    brc_base_chunks_dispose(&run->how.made);
    if (run->has_scratch)
        brc_store_scratch_end(run->how.repo->store);
    run->has_scratch = 0;
}

/* ---- bases -------------------------------- */

/* One snapshot of two bases; into memory. */
static int merge_two_bases(void *ctx, const brc_oid *base, const brc_oid *ours,
                           const brc_oid *theirs, brc_oid *out, brc_error *err)
{
    brc_merge_how *how = ctx;
    const brc_merge_three in = {.base = *base, .ours = *ours, .theirs = *theirs};
    brc_merge_ops ops;
    brc_merge_tree *tree;
    brc_merge_how_ops(&ops, how);
    BRC_TRY(brc_merge_tree_new(&tree, how->repo->store, &in, &ops, err));
    int rc = brc_merge_tree_put(tree, out, err);
    brc_merge_tree_free(tree);
    return rc;
}

static int fold_bases(brc_merge_run *run, const brc_commit_set *bases, brc_error *err)
{
    static const char text[] = "{\"" BRC_UNKNOWN_MEMBER "\":null}";
    brc_store *store = run->how.repo->store;
    brc_store_scratch_begin(store);
    run->has_scratch = 1;
    run->how.is_virtual = 1;
    run->how.unknown = (brc_entry){.kind = BRC_GROUP};
    int rc = brc_store_put(store, BRC_KIND_DOCUMENT, text, sizeof(text) - 1,
                           &run->how.unknown.doc, err);
    if (rc == BRC_OK)
        rc = brc_merge_base_root(store, bases, merge_two_bases, &run->how, &run->in.base, err);
    run->how.is_virtual = 0;
    brc_store_scratch_pause(store);
    return rc;
}

int brc_moves_along(brc_move_set *out, brc_store *store, const brc_oid *older,
                    const brc_oid *newer, brc_error *err)
{
    int known;
    brc_oid from, to;
    BRC_TRY(brc_commit_root(store, older, &from, err));
    BRC_TRY(brc_commit_root(store, newer, &to, err));
    BRC_TRY(brc_move_set_along(out, &known, store, older, newer, err));
    if (!known)
        brc_move_set_dispose(out);
    int rc = brc_move_set_reduce(out, store, &from, &to, err);
    if (rc < 0)
        brc_move_set_dispose(out);
    return rc;
}

static int find_base(brc_merge_run *run, const brc_oid *ours, const brc_oid *theirs,
                     brc_commit_set *bases, brc_error *err)
{
    brc_store *store = run->how.repo->store;
    brc_commit_set mine = {0};
    BRC_TRY(brc_commit_root(store, ours, &run->in.ours, err));
    BRC_TRY(brc_commit_root(store, theirs, &run->in.theirs, err));
    int rc = brc_commit_set_add(&mine, ours, err);
    if (rc == BRC_OK)
        rc = brc_merge_bases(bases, store, &mine, theirs, err);
    brc_commit_set_dispose(&mine);
    if (rc < 0 || bases->n == 0)
        return rc;
    if (bases->n > 1)
        return fold_bases(run, bases, err);
    BRC_TRY(brc_commit_root(store, &bases->ids[0], &run->in.base, err));
    BRC_TRY(brc_moves_along(&run->ours_moves, store, &bases->ids[0], ours, err));
    return brc_moves_along(&run->theirs_moves, store, &bases->ids[0], theirs, err);
}

int brc_merge_find_base(brc_merge_run *run, const brc_oid *ours, const brc_oid *theirs,
                        brc_commit_set *bases, brc_error *err)
{
    brc_store *store = run->how.repo->store;
    memset(bases, 0, sizeof(*bases));
    BRC_TRY(brc_store_begin_read(store, err));
    int rc = find_base(run, ours, theirs, bases, err);
    brc_store_end_read(store);
    return rc;
}

int brc_merge_work(brc_merge_run *run, brc_error *err)
{
    run->in.ours_moves = &run->ours_moves;
    run->in.theirs_moves = &run->theirs_moves;
    brc_merge_how_ops(&run->ops, &run->how);
    return brc_merge_tree_new(&run->tree, run->how.repo->store, &run->in, &run->ops, err);
}
