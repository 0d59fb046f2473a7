#include "merge_layers.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "../history/commit.h"
#include "../store/change.h"
#include "../store/collect.h"
#include "../work/session_nodes.h"
#include "../zarr/key/key_rows.h"
#include "merge_array.h"
#include "steps.h"

/* ---- what a session shows, as a commit -------------------------------- */

int brc_layer_since(brc_session *s, int *has, brc_oid *since, brc_error *err)
{
    brc_draft_row *rows;
    size_t n;
    int any;
    BRC_TRY(brc_draft_has_children(s->repo->store, s->draft.id, &any, err));
    *has = any ? s->draft.has_base : s->draft.has_tip;
    *since = any ? s->draft.base : s->draft.tip;
    if (any || s->draft.parent == 0)
        return BRC_OK;
    BRC_TRY(brc_draft_list(s->repo->store, BRC_DRAFTS_ONE, s->draft.id, &rows, &n, err));
    *has = n > 0 && rows[0].has_other;
    if (*has)
        *since = rows[0].other;
    brc_draft_rows_free(rows, n);
    return BRC_OK;
}

int brc_layer_shown(brc_session *s, int has, const brc_oid *since, const brc_oid *root,
                     const brc_move_set *moves, brc_oid *out, brc_error *err)
{
    brc_commit commit = {.message = "uncommitted", .author = "unknown", .time_us = brc_now_us()};
    brc_oid parent = *since;
    commit.parents = &parent;
    commit.nparents = has ? 1 : 0;
    commit.root = *root;
    BRC_TRY(brc_commit_put(s->repo->store, &commit, moves, err));
    *out = commit.id;
    return BRC_OK;
}

int brc_layer_lay(brc_session *s, int has, const brc_oid *since, const brc_oid *root,
                    const brc_move_set *moves, brc_error *err)
{
    brc_oid base = s->draft.base;
    int has_base = s->draft.has_base;
    if (!has_base || brc_oid_cmp(root, &s->base) != 0) {
        BRC_TRY(brc_layer_shown(s, has, since, root, moves, &base, err));
        has_base = 1;
    }
    s->is_read = 0;
    BRC_TRY(brc_draft_lay(s->repo->store, s->draft.id, &base, err));
    s->draft.has_base = 1;
    s->draft.base = base;
    s->base = *root;
    return BRC_OK;
}

/* ---- the layers -------------------------------- */

void brc_layers_start(brc_layers *m, brc_session *s)
{
    *m = (brc_layers){.s = s, .store = s->repo->store};
}

void brc_layers_dispose(brc_layers *m)
{
    for (size_t i = 0; i < m->n; i++) {
        brc_layer *layer = &m->items[i];
        brc_session_unref(layer->s);
        brc_folded_dispose(&layer->folded);
        brc_fork_keys_dispose(&layer->keys_before);
        brc_fork_keys_dispose(&layer->keys);
    }
    free(m->items);
    brc_folded_dispose(&m->folded);
    brc_move_set_dispose(&m->moves);
    brc_fork_keys_dispose(&m->keys_before);
    brc_fork_keys_dispose(&m->keys);
    brc_clash_list_dispose(&m->clashes);
    brc_layers_start(m, m->s);
}

int brc_layers_add(brc_layers *m, const brc_draft_row *row, int has_fork, const brc_oid *fork,
                   brc_error *err)
{
    void *p = m->items;
    const int grown = brc_grow_array(&p, &m->cap, m->n + 1, sizeof(brc_layer), err);
    m->items = p;
    BRC_TRY(grown);
    brc_layer *layer = &m->items[m->n];
    memset(layer, 0, sizeof(*layer));
    layer->has_fork = has_fork;
    layer->fork = *fork;
    if (has_fork)
        BRC_TRY(brc_commit_root(m->store, fork, &layer->fork_root, err));
    BRC_TRY(brc_session_take(&layer->s, m->s->repo, row, err));
    m->n++; /* brc_layers_dispose() ends it */
    return row->draft.parent != 0 ? brc_fork_keys_parse(&layer->keys_before, row->plan, err)
                                  : BRC_OK;
}

/* ---- what is merged -------------------------------- */

/* If a session has no rows to fold, takes the snapshot on which it is based. */
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
    if (!brc_store_in_write(s->repo->store))
        return brc_fold_whole(s, folded, err);
    folded->draft = s->draft.id;
    folded->changes = s->draft.changes;
    BRC_TRY(brc_session_fold(s, NULL, &folded->root, err));
    folded->has_root = 1;
    return BRC_OK;
}

/* Says whether the session is still as it was folded. Must be called within a read or a change. */
static int is_folded(const brc_session *s, const brc_folded *folded)
{
    return s->draft.id == folded->draft && s->draft.changes == folded->changes;
}

static int read_keys(brc_layers *m, brc_error *err)
{
    BRC_TRY(brc_fork_keys_read(&m->keys_before, m->store, m->s->draft.id, err));
    BRC_TRY(brc_fork_keys_read(&m->keys, m->store, m->s->draft.id, err));
    for (size_t i = 0; i < m->n; i++) {
        brc_layer *layer = &m->items[i];
        BRC_TRY(brc_fork_keys_read(&layer->keys, m->store, layer->s->draft.id, err));
    }
    return BRC_OK;
}

/* Checks all sessions in one read, so that they are one state. Returns 1, or 0 if somebody has
 * written. */
static int look_at_all(brc_layers *m, brc_error *err)
{
    BRC_TRY(brc_session_follow(m->s, err));
    int same = is_folded(m->s, &m->folded);
    for (size_t i = 0; i < m->n && same; i++) {
        BRC_TRY(brc_session_follow(m->items[i].s, err));
        same = is_folded(m->items[i].s, &m->items[i].folded);
    }
    if (same)
        BRC_TRY(read_keys(m, err));
    return same;
}

static int fold_them(brc_layers *m, brc_error *err)
{
    BRC_TRY(brc_gc_last(m->store, &m->collected, err));
    BRC_TRY(fold_one(m->s, &m->folded, err));
    for (size_t i = 0; i < m->n; i++)
        BRC_TRY(fold_one(m->items[i].s, &m->items[i].folded, err));
    BRC_TRY(brc_store_begin_read(m->store, err));
    const int same = look_at_all(m, err);
    brc_store_end_read(m->store);
    m->root = m->folded.root;
    return same;
}

/* ---- keys that are in no snapshot -------------------------------- */

typedef struct key_clash {
    brc_layers *m;
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
    const size_t id_len = brc_store_id_len(where->m->store);
    brc_clash *clash;
    brc_buf path = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_buf_printf(&path, err, "/%s", key));
    BRC_GO(brc_buf_terminate(&path, err));
    BRC_GO(brc_clash_add(&where->m->clashes, (const char *)path.data, BRC_CLASH_NODE, &clash, err));
    clash->draft = where->draft;
    BRC_GO(key_value(&clash->base, base, id_len, err));
    BRC_GO(key_value(&clash->ours, ours, id_len, err));
    rc = key_value(&clash->theirs, theirs, id_len, err);
done:
    brc_buf_dispose(&path);
    return rc;
}

static int merge_loose_keys(brc_layers *m, brc_layer *layer, brc_error *err)
{
    brc_fork_keys out = {0};
    key_clash where = {m, layer->s->draft.id};
    int rc = brc_fork_keys_join(&out, &layer->keys_before, &m->keys, &layer->keys, note_key, &where,
                                err);
    brc_fork_keys_dispose(rc < 0 ? &out : &m->keys);
    if (rc == BRC_OK)
        m->keys = out;
    return rc;
}

/* ---- one layer -------------------------------- */

/* Finds the moves on both sides since the layer began. Must be called within a read. */
static int read_moves(brc_layers *m, brc_layer *layer, brc_merge_run *run, brc_error *err)
{
    brc_move_set own = {0};
    int rc;
    BRC_GO(brc_session_moves(&own, m->s, layer->has_fork, &layer->fork, &layer->fork_root,
                             &m->folded.root, err));
    BRC_GO(brc_move_set_join(&run->ours_moves, &own, &m->moves, err));
    BRC_GO(brc_move_set_reduce(&run->ours_moves, m->store, &layer->fork_root, &m->root, err));
    rc = brc_session_moves(&run->theirs_moves, layer->s, layer->has_fork, &layer->fork,
                           &layer->fork_root, &layer->folded.root, err);
done:
    brc_move_set_dispose(&own);
    return rc;
}

/* Moves the conflicts into the list of the call. */
static int keep_clashes(brc_layers *m, brc_clash_list *list, int64_t draft, brc_error *err)
{
    void *p = m->clashes.items;
    int rc = brc_grow_array(&p, &m->clashes.cap, m->clashes.n + list->n, sizeof(brc_clash), err);
    m->clashes.items = p;
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < list->n; i++) {
        list->items[i].draft = draft;
        m->clashes.items[m->clashes.n++] = list->items[i];
    }
    list->n = 0;
    return BRC_OK;
}

static int add_moves(brc_layers *m, brc_merge_tree *tree, const brc_oid *root, brc_error *err)
{
    brc_move_set more = {0}, all = {0};
    int rc;
    BRC_GO(brc_merge_tree_moves(tree, root, &more, err));
    BRC_GO(brc_move_set_join(&all, &m->moves, &more, err));
    brc_move_set_dispose(&m->moves);
    m->moves = all;
    all = (brc_move_set){0};
done:
    brc_move_set_dispose(&more);
    brc_move_set_dispose(&all);
    return rc;
}

static int put_merged(brc_layers *m, brc_merge_tree *tree, brc_error *err)
{
    brc_oid root;
    BRC_TRY(brc_merge_tree_ahead(tree, err));
    BRC_TRY(brc_store_begin(m->store, err));
    int rc = brc_merge_tree_put(tree, &root, err);
    if (rc == BRC_OK)
        rc = add_moves(m, tree, &root, err);
    const int ended = brc_store_end(m->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    BRC_TRY(rc < 0 ? rc : ended);
    m->root = root;
    return BRC_OK;
}

/* Merges one layer. Its changes without conflicts are merged even if it has conflicts, so that the
 * layers after it can be merged with them. */
static int merge_layer(brc_layers *m, brc_layer *layer, brc_error *err)
{
    brc_merge_run run = BRC_MERGE_RUN_INIT;
    int rc;
    run.how.repo = m->s->repo;
    run.in.base = layer->fork_root;
    run.in.ours = m->root;
    run.in.theirs = layer->folded.root;
    BRC_GO(merge_loose_keys(m, layer, err));
    if (brc_oid_cmp(&layer->folded.root, &layer->fork_root) == 0)
        goto done; /* the layer has changed nothing else */
    BRC_GO(brc_store_begin_read(m->store, err));
    rc = read_moves(m, layer, &run, err);
    brc_store_end_read(m->store);
    if (rc == BRC_OK)
        BRC_GO(brc_merge_work(&run, err));
    if (rc < 0)
        goto done;
    BRC_GO(keep_clashes(m, brc_merge_tree_clashes(run.tree), layer->s->draft.id, err));
    rc = put_merged(m, run.tree, err);
done:
    brc_merge_run_dispose(&run);
    return rc;
}

/* ---- the end -------------------------------- */

/* Returns 1, or 0 if somebody has written since the merge, or if a collection may have removed the
 * merge's objects. Must be called within a change. */
static int is_as_merged(brc_layers *m, brc_error *err)
{
    int64_t last;
    brc_draft_head now;
    int same = is_folded(m->s, &m->folded);
    for (size_t i = 0; i < m->n && same; i++) {
        const brc_folded *folded = &m->items[i].folded;
        BRC_TRY(brc_draft_get(m->store, folded->draft, &now, err));
        same = now.id == folded->draft && now.changes == folded->changes;
    }
    BRC_TRY(brc_gc_last(m->store, &last, err));
    return same && last == m->collected;
}

/* Finds the moves from the commit that the next commit follows up to the result. */
static int moves_since(brc_layers *m, const brc_oid *since, brc_move_set *out, brc_error *err)
{
    brc_move_set own = {0};
    brc_oid start;
    int rc;
    BRC_GO(brc_commit_root(m->store, since, &start, err));
    BRC_GO(brc_session_moves(&own, m->s, 1, since, &start, &m->folded.root, err));
    BRC_GO(brc_move_set_join(out, &own, &m->moves, err));
    rc = brc_move_set_reduce(out, m->store, &start, &m->root, err);
done:
    brc_move_set_dispose(&own);
    return rc;
}

static int lay_over_merged(brc_layers *m, brc_error *err)
{
    brc_move_set moves = {0};
    brc_oid since;
    int has, rc;
    BRC_GO(brc_layer_since(m->s, &has, &since, err));
    if (has)
        BRC_GO(moves_since(m, &since, &moves, err));
    rc = brc_layer_lay(m->s, has, &since, &m->root, &moves, err);
done:
    brc_move_set_dispose(&moves);
    return rc;
}

/* Stores the result as a row of the root node. */
static int lay_as_row(brc_layers *m, brc_error *err)
{
    const brc_draft_head *draft = &m->s->draft;
    brc_move_set moves = {0};
    int rc;
    if (draft->has_base)
        BRC_GO(moves_since(m, &draft->base, &moves, err));
    rc = brc_open_merge_lay(m->s, &m->root, &moves, err);
done:
    brc_move_set_dispose(&moves);
    return rc;
}

static int are_children(const brc_layers *m)
{
    return m->n > 0 && m->items[0].s->draft.parent == m->s->draft.id;
}

/* Stores the keys of the result. Loose keys of one layer may be chunks of an array of another
 * layer. */
static int change_keys(brc_layers *m, brc_error *err)
{
    brc_session *s = m->s;
    BRC_TRY(brc_fork_keys_change(&m->keys_before, &m->keys, m->store, s->draft.id, err));
    if (m->keys.n == 0)
        return BRC_OK;
    BRC_TRY(brc_keys_settle(s, "", err));
    return brc_keys_check_adopted(s, m->items[0].folded.draft, err);
}

int brc_layers_check_saves(const brc_session *s, brc_error *err)
{
    if (!s->draft.saves)
        return BRC_OK;
    return brc_fail(err, BRC_EMISUSE,
                    "draft %lld has a savepoint that is open: release it or roll back to it before "
                    "other changes are merged into it",
                    (long long)s->draft.id);
}

int brc_layers_commit(brc_layers *m, brc_error *err)
{
    if (are_children(m))
        BRC_TRY(brc_layers_check_saves(m->s, err));
    const int same = is_as_merged(m, err);
    if (same <= 0)
        return same < 0 ? same : BRC_CHANGE_AGAIN;
    for (size_t i = 0; i < m->n; i++)
        BRC_TRY(brc_draft_delete(m->store, m->items[i].folded.draft, err));
    if (brc_oid_cmp(&m->root, &m->folded.root) != 0)
        BRC_TRY(are_children(m) ? lay_over_merged(m, err) : lay_as_row(m, err));
    return change_keys(m, err);
}

int brc_layers_work(brc_layers *m, brc_error *err)
{
    const int same = fold_them(m, err);
    if (same <= 0)
        return same < 0 ? same : BRC_CHANGE_AGAIN;
    for (size_t i = 0; i < m->n; i++)
        BRC_TRY(merge_layer(m, &m->items[i], err));
    brc_clash_list_sort(&m->clashes);
    return BRC_OK;
}
