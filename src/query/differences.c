/* One element, as text. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/buf.h"
#include "../base/sized.h"
#include "../history/tree_diff.h"
#include "../nd/dtype.h"
#include "../work/bulk_write.h"
#include "../work/fold.h"
#include "../work/session_nodes.h"
#include "../zarr/array/array.h"
#include "../work/uncommitted.h"
#include "../zarr/array/chunk_pairs.h"
#include "element_diff.h"

/* ==== element text ================================ */

int brc_element_parse(brc_buf *out, const brc_array *a, const char *text, brc_error *err)
{
    size_t at = out->len;
    BRC_TRY(brc_meta_must_decode(&a->meta, err));
    BRC_TRY(brc_dtype_parse_text(a->meta.type, text, out, err));
    brc_dtype_native(a->meta.type, out->data + at, out->len - at);
    return BRC_OK;
}

int brc_element_format(brc_buf *out, const brc_array *a, const void *element, int form,
                       brc_error *err)
{
    const brc_dtype *type = a->meta.type;
    BRC_TRY(brc_meta_must_decode(&a->meta, err));
    size_t len = type->item_size > 0 ? type->item_size : 4 + (size_t)brc_get_u32le(element);
    if (form == BRC_ELEMENT_QUOTED)
        return brc_dtype_print_quoted(type, element, len, out, err);
    return type->ops->print(type, element, len,
                            form == BRC_ELEMENT_JSON ? BRC_PRINT_JSON : BRC_PRINT_TEXT, out, err);
}

/* ==== differences ================================ */

/* Compares two versions, or a version and the uncommitted state. */

/* An element diff whose boxes are only as long as they need to be, because there may be many. */
typedef struct kept_elements {
    int known, ndim;
    const char *why;
    uint64_t added, removed, changed;
    double max_abs;
    uint64_t *box; /* the first corner, then the last; NULL if no element differs */
} kept_elements;

typedef struct change_list {
    brc_change now; /* the item that was returned last */
    brc_tree_diff diff;
    kept_elements *elements; /* one for each change, if the caller wants them */
    size_t at;
} change_list;

static void change_list_dispose(void *state)
{
    change_list *list = state;
    for (size_t i = 0; list->elements != NULL && i < list->diff.n; i++)
        free(list->elements[i].box);
    free(list->elements);
    brc_tree_diff_dispose(&list->diff);
}

/* The compared snapshots, and the moves from one to the other. */
typedef struct compared {
    int has_a;
    brc_oid commit_a;
    brc_oid a, b;
    brc_move_set moves;
} compared;

typedef struct diff_request {
    breccia *repo;
    brc_session *s; /* NULL, if `b` is NULL too: the current branch with its shared changes */
    const char *a, *b, *path;
    uint32_t flags;
} diff_request;

/* The request. `b` is a version, or the current branch as it is; `a` is a version, or what b is
 * based on. */
typedef struct draft_compared {
    compared *out;
    brc_session *s;
    const char *a;
} draft_compared;

/* Finds the commit that the changes follow: the branch's commit, or the branch's commit when the
 * changes began, or for an open rebase the last commit that it made. */
static int draft_began(brc_session *s, compared *c, brc_error *err)
{
    if (s->draft.kind != BRC_DRAFT_MERGE) {
        c->has_a = s->draft.has_tip;
        c->commit_a = s->draft.tip;
        return c->has_a ? brc_commit_root(s->repo->store, &c->commit_a, &c->a, err) : BRC_OK;
    }
    c->has_a = s->draft.has_base;
    c->commit_a = s->draft.base;
    c->a = s->base;
    return BRC_OK;
}

static int draft_sides(void *ctx, brc_error *err)
{
    const draft_compared *d = ctx;
    compared *c = d->out;
    brc_session *s = d->s;
    brc_store *store = s->repo->store;
    brc_fold how = {.way = BRC_FOLD_SHORT_READS};
    brc_move_set_dispose(&c->moves); /* of an earlier try */
    memset(c, 0, sizeof(*c));
    brc_store_scratch_end(store);
    brc_store_scratch_begin(store);
    if (d->a != NULL) {
        c->has_a = 1;
        BRC_TRY(brc_rev_resolve(store, d->a, &c->commit_a, err));
        BRC_TRY(brc_commit_root(store, &c->commit_a, &c->a, err));
    } else {
        BRC_TRY(draft_began(s, c, err));
    }
    BRC_TRY(brc_session_fold(s, &how, &c->b, err));
    BRC_TRY(d->a != NULL
                ? brc_session_moves_across(&c->moves, s, &c->commit_a, &c->a, &c->b, err)
                : brc_session_moves(&c->moves, s, c->has_a, &c->commit_a, &c->a, &c->b, err));
    return brc_move_set_without_made(&c->moves, err);
}

static int version_sides(compared *c, brc_store *store, const char *a, const char *b,
                         brc_error *err)
{
    brc_oid id;
    int known;
    brc_commit *commit;
    BRC_TRY(brc_rev_resolve(store, b, &id, err));
    BRC_TRY(brc_commit_get(&commit, store, &id, err));
    c->b = commit->root;
    c->has_a = a != NULL || commit->nparents > 0;
    int rc = BRC_OK;
    if (a != NULL)
        rc = brc_rev_resolve(store, a, &c->commit_a, err);
    else if (c->has_a)
        c->commit_a = commit->parents[0];
    brc_commit_free(commit);
    if (rc < 0 || !c->has_a)
        return rc;
    BRC_TRY(brc_commit_root(store, &c->commit_a, &c->a, err));
    BRC_TRY(brc_move_set_across(&c->moves, &known, store, &c->commit_a, &id, err));
    BRC_TRY(brc_move_set_reduce(&c->moves, store, &c->a, &c->b, err));
    return brc_move_set_without_made(&c->moves, err);
}

static int keep_elements(kept_elements *out, const brc_element_diff *e, brc_error *err)
{
    void *p;
    const size_t ndim = (size_t)e->tally.ndim;
    *out = (kept_elements){.known = e->known, .ndim = e->tally.ndim, .why = e->why,
                           .added = e->added, .removed = e->removed,
                           .changed = e->tally.elements, .max_abs = e->tally.max_abs};
    if (e->tally.elements == 0)
        return BRC_OK;
    BRC_TRY(brc_new_array(&p, 2 * ndim, sizeof(uint64_t), err));
    out->box = p;
    if (ndim > 0) {
        memcpy(out->box, e->tally.first, ndim * sizeof(uint64_t));
        memcpy(out->box + ndim, e->tally.last, ndim * sizeof(uint64_t));
    }
    return BRC_OK;
}

static int element_diffs(change_list *list, breccia *repo, brc_error *err)
{
    void *p;
    brc_element_diff one;
    BRC_TRY(brc_new_array(&p, list->diff.n, sizeof(*list->elements), err));
    list->elements = p;
    brc_task task = brc_task_begin(repo, "compare", 0);
    int rc = BRC_OK;
    for (size_t i = 0; i < list->diff.n && rc == BRC_OK; i++) {
        rc = brc_element_diff_run(&one, repo, &list->diff.changes[i], err);
        if (rc == BRC_OK)
            rc = keep_elements(&list->elements[i], &one, err);
    }
    brc_task_end(repo, &task, rc);
    return rc;
}

/* Fails for a path that neither version has, because that is a mistake and not a difference. */
static int check_diff_path(brc_store *store, const brc_oid *root_a, const brc_oid *root_b,
                           const char *path, brc_error *err)
{
    brc_entry a, b;
    if (path == NULL)
        return BRC_OK;
    BRC_TRY(brc_snapshot_find(store, root_a, path, &a, err));
    BRC_TRY(brc_snapshot_find(store, root_b, path, &b, err));
    return a.kind != 0 || b.kind != 0
               ? BRC_OK
               : brc_fail(err, BRC_ENOTFOUND, "%s: neither version has a node %s",
                          brc_store_path(store), path);
}

static int compare_both(change_list *list, const diff_request *q, const compared *c,
                        brc_error *err)
{
    brc_store *store = q->repo->store;
    BRC_TRY(check_diff_path(store, &c->a, &c->b, q->path, err));
    BRC_TRY(brc_tree_diff_run(&list->diff, store, &c->a, &c->b, q->path, &c->moves, err));
    for (size_t i = 0; i < list->diff.n; i++)
        BRC_TRY(brc_same_chunks_discount(&list->diff.changes[i], q->repo, err));
    return q->flags & BRC_DIFF_ELEMENTS ? element_diffs(list, q->repo, err) : BRC_OK;
}

/* Compares with the uncommitted state, which is folded in memory: comparing changes nothing. */
static int diff_draft(change_list *list, const diff_request *q, compared *c, brc_error *err)
{
    brc_session *own = NULL;
    brc_store *store = q->repo->store;
    int rc;
    if (q->s == NULL)
        BRC_TRY(brc_session_open(&own, q->repo, NULL, BRC_SESSION_VIEW, err));
    draft_compared d = {c, q->s != NULL ? q->s : own, q->a};
    BRC_GO(brc_session_read_steady(d.s, draft_sides, &d, err));
    BRC_GO(brc_store_begin_read(store, err));
    rc = compare_both(list, q, c, err);
    brc_store_end_read(store);
done:
    brc_session_free(own);
    return rc;
}

static int diff_versions(change_list *list, const diff_request *q, compared *c, brc_error *err)
{
    brc_store *store = q->repo->store;
    BRC_TRY(brc_store_begin_read(store, err));
    int rc = version_sides(c, store, q->a, q->b, err);
    if (rc == BRC_OK)
        rc = compare_both(list, q, c, err);
    brc_store_end_read(store);
    return rc;
}

static int diff_run(change_list *list, const diff_request *q, brc_error *err)
{
    compared c;
    memset(&c, 0, sizeof(c));
    brc_store_scratch_begin(q->repo->store);
    int rc = q->b == NULL ? diff_draft(list, q, &c, err) : diff_versions(list, q, &c, err);
    brc_store_scratch_end(q->repo->store);
    brc_move_set_dispose(&c.moves);
    return rc;
}

static int diff_with(brc_iter **out, const diff_request *asked, const brc_diff_opts *given,
                     brc_error *err)
{
    brc_diff_opts opts;
    brc_buf path = BRC_BUF_INIT;
    diff_request q = *asked;
    int rc;
    *out = NULL;
    BRC_TRY(brc_sized_in(&opts, sizeof(opts), offsetof(brc_diff_opts, flags), given,
                         "brc_diff_opts", err));
    BRC_TRY(brc_flags_check(opts.flags, BRC_DIFF_ELEMENTS, "brc_diff_opts", err));
    BRC_TRY(brc_iter_new(out, BRC_ITER_CHANGES, sizeof(change_list), change_list_dispose, err));
    if (opts.path != NULL)
        BRC_GO(brc_path_normal(&path, opts.path, err));
    q.path = opts.path != NULL ? (const char *)path.data : NULL;
    q.flags = opts.flags;
    rc = diff_run(brc_iter_state(*out), &q, err);
done:
    brc_buf_dispose(&path);
    if (rc < 0) {
        brc_iter_free(*out);
        *out = NULL;
    }
    return rc;
}

int brc_diff(brc_iter **out, breccia *repo, const char *a, const char *b,
             const brc_diff_opts *opts, brc_error *err)
{
    const diff_request q = {.repo = repo, .a = a, .b = b};
    return diff_with(out, &q, opts, err);
}

int brc_session_diff(brc_iter **out, brc_session *s, const char *a, const brc_diff_opts *opts,
                     brc_error *err)
{
    char id[65];
    diff_request q = {.repo = s->repo, .s = s, .a = a};
    *out = NULL;
    BRC_TRY(brc_bulk_check_none(s, "there is no list of changes", err));
    if (s->mode == BRC_SESSION_AT)
        q.b = brc_oid_format(id, &s->draft.base);
    return diff_with(out, &q, opts, err);
}

static void give_elements(brc_change *out, const kept_elements *e)
{
    const size_t ndim = (size_t)e->ndim;
    out->flags |= e->known ? BRC_CHANGE_ELEMENTS : 0;
    out->elements_why = e->why;
    out->elements_changed = e->changed;
    out->elements_added = e->added;
    out->elements_removed = e->removed;
    out->max_abs = e->max_abs;
    out->ndim = e->ndim;
    if (e->box == NULL)
        return;
    memcpy(out->first, e->box, ndim * sizeof(uint64_t));
    memcpy(out->last, e->box + ndim, ndim * sizeof(uint64_t));
}

int brc_diff_next(brc_iter *it, const brc_change **out_item, brc_error *err)
{
    *out_item = NULL;
    BRC_TRY(brc_iter_check(it, BRC_ITER_CHANGES, err));
    change_list *list = brc_iter_state(it);
    if (list->at == list->diff.n)
        return 0;
    const brc_node_change *c = &list->diff.changes[list->at];
    brc_change *out = &list->now;
    memset(out, 0, sizeof(*out));
    out->path = c->path;
    out->from = c->from;
    out->what = c->what;
    out->kind = c->what == BRC_REMOVED ? c->a.kind : c->b.kind;
    out->flags = c->storage_only ? BRC_CHANGE_STORAGE : 0;
    out->metadata = (const char *const *)c->metadata;
    out->nmetadata = c->nmetadata;
    out->chunks_added = c->chunks_added;
    out->chunks_removed = c->chunks_removed;
    out->chunks_changed = c->chunks_changed;
    if (list->elements != NULL)
        give_elements(out, &list->elements[list->at]);
    list->at++;
    *out_item = out;
    return 1;
}
