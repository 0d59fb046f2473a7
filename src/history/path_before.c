#include "path_before.h"

#include <string.h>

#include "commit.h"
#include "merge_base.h"

static int set_path(brc_buf *out, const char *path, brc_error *err)
{
    out->len = 0;
    BRC_TRY(brc_buf_text(out, path, err));
    return brc_buf_terminate(out, err);
}

/* The one merge base of two parents: *has 0: there is none, or more. */
static int single_base(brc_store *store, const brc_commit *commit, size_t i, brc_oid *base,
                       int *has, brc_error *err)
{
    brc_commit_set bases = { 0 }, first = { 0 };
    int rc = brc_commit_set_add(&first, &commit->parents[0], err);
    if (rc == BRC_OK)
        rc = brc_merge_bases(&bases, store, &first, &commit->parents[i], err);
    *has = rc == BRC_OK && bases.n == 1;
    if (*has)
        *base = bases.ids[0];
    brc_commit_set_dispose(&bases);
    brc_commit_set_dispose(&first);
    return rc;
}

/* From the commit to its first parent, to the base, and from there to the other parent. */
static int follow_moves(brc_buf *out, int *has, brc_store *store, const brc_commit *commit,
                        size_t i, const brc_oid *base, const char *path, brc_error *err)
{
    brc_move_set back = { 0 }, forth = { 0 };
    brc_buf first = BRC_BUF_INIT, then = BRC_BUF_INIT;
    int rc, known, known_too;
    BRC_GO(brc_move_origin(&first, has, brc_commit_moves(commit), path, err));
    if (!*has)
        goto done;
    BRC_GO(brc_move_set_between(&back, &known, store, 1, base, &commit->parents[0], err));
    BRC_GO(brc_move_set_between(&forth, &known_too, store, 1, base, &commit->parents[i], err));
    *has = known && known_too;
    if (*has)
        BRC_GO(brc_move_origin(&then, has, &back, (const char *)first.data, err));
    out->len = 0;
    if (*has)
        rc = brc_move_target(out, &forth, (const char *)then.data, 0, err);
done:
    brc_move_set_dispose(&back);
    brc_move_set_dispose(&forth);
    brc_buf_dispose(&first);
    brc_buf_dispose(&then);
    return rc;
}

int brc_path_before(brc_buf *out, int *has, brc_store *store, const brc_commit *commit, size_t i,
                    const char *path, brc_oid *root, brc_entry *entry, brc_error *err)
{
    const brc_move_set *moves = brc_commit_moves(commit);
    brc_oid base;
    *has = 1;
    out->len = 0;
    memset(entry, 0, sizeof(*entry));
    BRC_TRY(brc_commit_root(store, &commit->parents[i], root, err));
    if (i == 0 && moves->n > 0) {
        BRC_TRY(brc_move_origin(out, has, moves, path, err));
        return *has ? brc_snapshot_find(store, root, (const char *)out->data, entry, err) : BRC_OK;
    }
    BRC_TRY(set_path(out, path, err));
    BRC_TRY(brc_snapshot_find(store, root, path, entry, err));
    if (i == 0 || entry->kind != 0)
        return BRC_OK;
    BRC_TRY(single_base(store, commit, i, &base, has, err));
    if (*has)
        BRC_TRY(follow_moves(out, has, store, commit, i, &base, path, err));
    if (*has)
        return brc_snapshot_find(store, root, (const char *)out->data, entry, err);
    *has = 1; /* nothing, at the same path */
    return set_path(out, path, err);
}
