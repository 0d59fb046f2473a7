/*
 * Children that are merged with their parent, one after the other in the order in which they
 * began: base is what the child began from, ours the parent with those before, theirs the child.
 * Everything is computed without the lock; the last, short transaction looks whether all of them
 * are still what was merged, makes a commit of the result that no ref names, and lays the parent
 * over it.
 */
#include <stdlib.h>
#include <string.h>

#include "../history/commit.h"
#include "../store/collect.h"
#include "../zarr/key_rows.h"
#include "../zarr/node_moves.h"
#include "fork.h"
#include "join.h"

/* ---- what is merged -------------------------------- */

/* Where no row is to be folded, it is what it lies over. */
static int take_base(brc_session *s, brc_folded *folded, brc_error *err)
{
    int empty;
    BRC_TRY(brc_session_begin_read(s, err));
    int rc = brc_draft_is_empty(s->repo->store, s->draft.id, &empty, err);
    if (rc == BRC_OK && empty && !brc_oid_is_zero(&s->base)) {
        folded->has_root = 1;
        folded->draft = s->draft.id;
        folded->changes = s->draft.changes;
        folded->root = s->base;
    }
    brc_session_end_read(s);
    return rc;
}

static int fold_one(brc_session *s, brc_folded *folded, brc_error *err)
{
    BRC_TRY(take_base(s, folded, err));
    if (folded->has_root)
        return BRC_OK;
    do
        BRC_TRY(brc_fold_ahead(s, 1, folded, err));
    while (!folded->has_root);
    return BRC_OK;
}

/* Whether it is what was folded: within a read, or a change. */
static int is_folded(const brc_session *s, const brc_folded *folded)
{
    return s->draft.id == folded->draft && s->draft.changes == folded->changes;
}

static int read_keys(brc_join *j, brc_error *err)
{
    BRC_TRY(brc_fork_keys_read(&j->keys_before, j->store, j->s->draft.id, err));
    BRC_TRY(brc_fork_keys_read(&j->keys, j->store, j->s->draft.id, err));
    for (size_t i = 0; i < j->n; i++) {
        brc_join_child *child = &j->children[i];
        BRC_TRY(brc_fork_keys_parse(&child->keys_before,
                                    brc_json_member(child->known.plan, "keys"), err));
        BRC_TRY(brc_fork_keys_read(&child->keys, j->store, child->s->draft.id, err));
    }
    return BRC_OK;
}

/* In one read, so that it is one state: 1; 0 where somebody has written. */
static int look_at_all(brc_join *j, brc_error *err)
{
    BRC_TRY(brc_session_follow(j->s, err));
    int same = is_folded(j->s, &j->folded);
    for (size_t i = 0; i < j->n && same; i++) {
        BRC_TRY(brc_session_follow(j->children[i].s, err));
        same = is_folded(j->children[i].s, &j->children[i].folded);
    }
    if (same)
        BRC_TRY(read_keys(j, err));
    return same;
}

static int fold_them(brc_join *j, brc_error *err)
{
    BRC_TRY(brc_gc_last(j->store, &j->collected, err));
    BRC_TRY(fold_one(j->s, &j->folded, err));
    for (size_t i = 0; i < j->n; i++)
        BRC_TRY(fold_one(j->children[i].s, &j->children[i].folded, err));
    BRC_TRY(brc_store_begin_read(j->store, err));
    const int same = look_at_all(j, err);
    brc_store_end_read(j->store);
    j->root = j->folded.root;
    return same;
}

/* ---- keys that are in no snapshot -------------------------------- */

typedef struct key_clash {
    brc_join *j;
    int64_t draft;
} key_clash;

static int key_value(brc_buf *out, const brc_fork_key *key, size_t id_len, brc_error *err)
{
    if (key == NULL)
        return BRC_OK;
    BRC_TRY(brc_buf_append(out, key->id.bytes, key->has_id ? id_len : 0, err));
    return brc_buf_terminate(out, err);
}

static int note_key(void *ctx, const char *key, const brc_fork_key *base, const brc_fork_key *ours,
                    const brc_fork_key *theirs, brc_error *err)
{
    const key_clash *where = ctx;
    const size_t id_len = brc_store_id_len(where->j->store);
    brc_clash *clash;
    brc_buf path = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_buf_printf(&path, err, "/%s", key));
    BRC_GO(brc_buf_terminate(&path, err));
    BRC_GO(brc_clash_add(&where->j->clashes, (const char *)path.data, BRC_CLASH_NODE, &clash, err));
    clash->draft = where->draft;
    BRC_GO(key_value(&clash->base, base, id_len, err));
    BRC_GO(key_value(&clash->ours, ours, id_len, err));
    rc = key_value(&clash->theirs, theirs, id_len, err);
done:
    brc_buf_dispose(&path);
    return rc;
}

static int join_keys(brc_join *j, brc_join_child *child, brc_error *err)
{
    brc_fork_keys out = {0};
    key_clash where = {j, child->s->draft.id};
    int rc = brc_fork_keys_join(&out, &child->keys_before, &j->keys, &child->keys, note_key, &where,
                                err);
    brc_fork_keys_dispose(rc < 0 ? &out : &j->keys);
    if (rc == BRC_OK)
        j->keys = out;
    return rc;
}

/* ---- one child -------------------------------- */

/* What has moved on both sides since the child began. Within a read. */
static int read_moves(brc_join *j, brc_join_child *child, brc_merge_run *run, brc_error *err)
{
    const brc_draft_child *known = &child->known;
    brc_move_set own = {0};
    int rc;
    BRC_GO(brc_session_moves(&own, j->s, known->has_fork, &known->fork, &child->fork_root,
                             &j->folded.root, err));
    BRC_GO(brc_move_set_join(&run->ours_moves, &own, &j->moves, err));
    BRC_GO(brc_move_set_reduce(&run->ours_moves, j->store, &child->fork_root, &j->root, err));
    rc = brc_session_moves(&run->theirs_moves, child->s, known->has_fork, &known->fork,
                           &child->fork_root, &child->folded.root, err);
done:
    brc_move_set_dispose(&own);
    return rc;
}

/* They are the call's from now on. */
static int keep_clashes(brc_join *j, brc_clash_list *list, int64_t draft, brc_error *err)
{
    void *p = j->clashes.items;
    int rc = brc_grow_array(&p, &j->clashes.cap, j->clashes.n + list->n, sizeof(brc_clash), err);
    j->clashes.items = p;
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < list->n; i++) {
        list->items[i].draft = draft;
        j->clashes.items[j->clashes.n++] = list->items[i];
    }
    list->n = 0;
    return BRC_OK;
}

static int add_moves(brc_join *j, brc_merge_tree *tree, const brc_oid *root, brc_error *err)
{
    brc_move_set more = {0}, all = {0};
    int rc;
    BRC_GO(brc_merge_tree_moves(tree, root, &more, err));
    BRC_GO(brc_move_set_join(&all, &j->moves, &more, err));
    brc_move_set_dispose(&j->moves);
    j->moves = all;
    all = (brc_move_set){0};
done:
    brc_move_set_dispose(&more);
    brc_move_set_dispose(&all);
    return rc;
}

static int put_merged(brc_join *j, brc_merge_tree *tree, brc_error *err)
{
    brc_oid root;
    BRC_TRY(brc_merge_tree_ahead(tree, err));
    BRC_TRY(brc_store_begin(j->store, err));
    int rc = brc_merge_tree_put(tree, &root, err);
    if (rc == BRC_OK)
        rc = add_moves(j, tree, &root, err);
    const int ended = brc_store_end(j->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    BRC_TRY(rc < 0 ? rc : ended);
    j->root = root;
    return BRC_OK;
}

/* Where some of it is in conflict the rest is merged: with that the children behind it may be. */
static int merge_child(brc_join *j, brc_join_child *child, brc_error *err)
{
    brc_merge_run run = BRC_MERGE_RUN_INIT;
    int rc;
    run.how.repo = j->s->repo;
    run.in.base = child->fork_root;
    run.in.ours = j->root;
    run.in.theirs = child->folded.root;
    BRC_GO(join_keys(j, child, err));
    if (brc_oid_cmp(&child->folded.root, &child->fork_root) == 0)
        goto done; /* it has changed nothing else */
    BRC_GO(brc_store_begin_read(j->store, err));
    rc = read_moves(j, child, &run, err);
    brc_store_end_read(j->store);
    if (rc == BRC_OK)
        BRC_GO(brc_merge_work(&run, err));
    if (rc < 0)
        goto done;
    BRC_GO(keep_clashes(j, brc_merge_tree_clashes(run.tree), child->s->draft.id, err));
    rc = put_merged(j, run.tree, err);
done:
    brc_merge_run_dispose(&run);
    return rc;
}

/* ---- the end -------------------------------- */

/* Within a change: 1, or 0 where somebody has written, or a collection may have taken what was
 * made. */
static int is_as_merged(brc_join *j, brc_error *err)
{
    int64_t last;
    brc_draft_head now;
    int same = is_folded(j->s, &j->folded);
    for (size_t i = 0; i < j->n && same; i++) {
        const brc_folded *folded = &j->children[i].folded;
        BRC_TRY(brc_draft_get(j->store, folded->draft, &now, err));
        same = now.id == folded->draft && now.changes == folded->changes;
    }
    BRC_TRY(brc_gc_last(j->store, &last, err));
    return same && last == j->collected;
}

/* Since the commit that the next one follows, up to the result. */
static int moves_since(brc_join *j, const brc_oid *since, brc_move_set *out, brc_error *err)
{
    brc_move_set own = {0};
    brc_oid start;
    int rc;
    BRC_GO(brc_commit_root(j->store, since, &start, err));
    BRC_GO(brc_session_moves(&own, j->s, 1, since, &start, &j->folded.root, err));
    BRC_GO(brc_move_set_join(out, &own, &j->moves, err));
    rc = brc_move_set_reduce(out, j->store, &start, &j->root, err);
done:
    brc_move_set_dispose(&own);
    return rc;
}

static int lay_over_joined(brc_join *j, brc_error *err)
{
    brc_move_set moves = {0};
    brc_oid since;
    int has, rc;
    BRC_GO(brc_fork_since(j->s, &has, &since, err));
    if (has)
        BRC_GO(moves_since(j, &since, &moves, err));
    rc = brc_fork_lay(j->s, has, &since, &j->root, &moves, err);
done:
    brc_move_set_dispose(&moves);
    return rc;
}

/* Loose keys of one child may be chunks of an array of another. */
static int change_keys(brc_join *j, brc_error *err)
{
    brc_session *s = j->s;
    BRC_TRY(brc_fork_keys_change(&j->keys_before, &j->keys, j->store, s->draft.id, err));
    if (j->keys.n == 0)
        return BRC_OK;
    BRC_TRY(brc_keys_settle(s, "", err));
    return brc_keys_check_adopted(s, j->children[0].folded.draft, err);
}

static int join_last_steps(brc_join *j, brc_error *err)
{
    BRC_TRY(brc_fork_check_saves(j->s, err));
    const int same = is_as_merged(j, err);
    if (same <= 0)
        return same;
    for (size_t i = 0; i < j->n; i++)
        BRC_TRY(brc_draft_delete(j->store, j->children[i].folded.draft, err));
    if (brc_oid_cmp(&j->root, &j->folded.root) != 0)
        BRC_TRY(lay_over_joined(j, err));
    BRC_TRY(change_keys(j, err));
    return 1;
}

static int finish_join(brc_join *j, brc_error *err)
{
    BRC_TRY(brc_session_begin(j->s, err));
    const int done = join_last_steps(j, err);
    j->s->is_read = 0;
    const int rc = brc_session_end(j->s, done < 0 ? done : BRC_OK, err);
    return rc < 0 ? rc : done;
}

static int in_conflict(const brc_join *j, brc_error *err)
{
    const brc_clash_list *list = &j->clashes;
    return brc_fail(err, BRC_ECONFLICT,
                    "%s: %zu changes of the children of draft %lld are in conflict with each other "
                    "or with the session's own, first at %.300s (draft %lld): all are kept as they "
                    "were; change one side, or drop a child, and join again",
                    brc_store_path(j->store), list->n, (long long)j->s->draft.id,
                    list->items[0].path, (long long)list->items[0].draft);
}

int brc_join_merge(brc_join *j, brc_error *err)
{
    const int same = fold_them(j, err);
    if (same <= 0)
        return same;
    for (size_t i = 0; i < j->n; i++)
        BRC_TRY(merge_child(j, &j->children[i], err));
    brc_clash_list_sort(&j->clashes);
    return j->clashes.n > 0 ? in_conflict(j, err) : finish_join(j, err);
}
