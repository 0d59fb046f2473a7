/* One element, as text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/buf.h"
#include "../base/sized.h"
#include "../history/commit.h"
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
    size_t offset;
    if (form == BRC_ELEMENT_DATED)
        return brc_dtype_print(type, element, len, BRC_PRINT_DATED,
                               brc_dtype_field_at(type, 0, &offset) != NULL, out, err);
    if (form == BRC_ELEMENT_QUOTED)
        return brc_dtype_print_quoted(type, element, len, out, err);
    return type->ops->print(type, element, len,
                            form == BRC_ELEMENT_JSON ? BRC_PRINT_JSON : BRC_PRINT_TEXT, out, err);
}

/* ==== differences ================================ */

/* Compares two versions, or a version and the uncommitted state. */

/* An element diff in memory that is only as long as it needs to be, because there may be many. */
typedef struct kept_elements {
    int known, ndim, more;
    const char *why;
    uint64_t added, removed, changed;
    double max_abs, mean_abs, rms;
    uint64_t *boxes;  /* the box of all, then its parts: the first corner of each, then the last;
                       * NULL if no element differs */
    uint64_t *chunks; /* of each chunk its index, then the number of its elements */
    size_t nboxes, nchunks, nvalues;
    brc_picks picks;
    brc_differing *values; /* point into the picks */
    brc_array *array;
} kept_elements;

typedef struct change_list {
    brc_change now; /* the item that was returned last */
    brc_tree_diff diff;
    kept_elements *elements; /* one for each change, if the caller wants them */
    size_t at;
} change_list;

static void kept_dispose(kept_elements *kept)
{
    free(kept->boxes);
    free(kept->chunks);
    free(kept->values);
    brc_picks_dispose(&kept->picks);
    brc_element_array_free(kept->array);
}

static void change_list_dispose(void *state)
{
    change_list *list = state;
    for (size_t i = 0; list->elements != NULL && i < list->diff.n; i++)
        kept_dispose(&list->elements[i]);
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
    int follow; /* the node at `path` to where it came from */
    brc_element_wanted wanted;
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

/* ---- what is kept of the elements -------------------------------- */

static void keep_box(uint64_t *out, int ndim, const uint64_t *first, const uint64_t *last)
{
    for (int i = 0; i < ndim; i++) {
        out[i] = first[i];
        out[ndim + i] = last[i];
    }
}

static int keep_boxes(kept_elements *out, const brc_element_diff *e, brc_error *err)
{
    void *p;
    const size_t each = 2 * (size_t)out->ndim;
    if (e->tally.elements == 0)
        return BRC_OK;
    out->nboxes = (size_t)e->boxes.n;
    BRC_TRY(brc_new_array(&p, (1 + out->nboxes) * each, sizeof(uint64_t), err));
    out->boxes = p;
    keep_box(out->boxes, out->ndim, e->tally.first, e->tally.last);
    for (size_t i = 0; i < out->nboxes; i++)
        keep_box(out->boxes + (1 + i) * each, out->ndim, e->boxes.box[i].first,
                 e->boxes.box[i].last);
    return BRC_OK;
}

/* Points to the picks in the form that users read. The last pick only says that there are more. */
static int keep_values(kept_elements *out, size_t most, brc_error *err)
{
    void *p;
    const brc_picked *picked = out->picks.heap;
    out->more = out->picks.n > most;
    out->nvalues = out->more ? most : out->picks.n;
    if (out->nvalues == 0)
        return BRC_OK;
    BRC_TRY(brc_new_array(&p, out->nvalues, sizeof(brc_differing), err));
    out->values = p;
    for (size_t i = 0; i < out->nvalues; i++) {
        const brc_span *side = picked[i].side;
        for (int k = 0; k < 2; k++)
            if (side[k].data != NULL)
                brc_dtype_native(out->array->meta.type, (uint8_t *)side[k].data, side[k].len);
        out->values[i] = (brc_differing){picked[i].index, side[0].data, side[1].data, NULL};
    }
    return BRC_OK;
}

/* Takes over what `e` has. */
static int keep_elements(kept_elements *out, brc_element_diff *e, size_t most, brc_error *err)
{
    const brc_tally *t = &e->tally;
    const double n = (double)t->numbers;
    *out = (kept_elements){.known = e->known, .ndim = t->ndim, .why = e->why, .added = e->added,
                           .removed = e->removed, .changed = t->elements, .max_abs = t->max_abs,
                           .mean_abs = n > 0 ? brc_sum_of(&t->apart) / n : NAN,
                           .rms = n > 0 ? sqrt(brc_sum_of(&t->squares) / n) : NAN,
                           .chunks = e->chunks, .nchunks = e->nchunks, .picks = e->picks,
                           .array = e->array};
    BRC_TRY(keep_boxes(out, e, err));
    return keep_values(out, most, err);
}

static int element_diffs(change_list *list, const diff_request *q, brc_error *err)
{
    void *p;
    brc_element_diff one;
    BRC_TRY(brc_new_array(&p, list->diff.n, sizeof(*list->elements), err));
    list->elements = p;
    brc_task task = brc_task_begin(q->repo, "compare", 0);
    int rc = BRC_OK;
    for (size_t i = 0; i < list->diff.n && rc == BRC_OK; i++) {
        rc = brc_element_diff_run(&one, q->repo, &list->diff.changes[i], &q->wanted, err);
        if (rc == BRC_OK)
            rc = keep_elements(&list->elements[i], &one, q->wanted.values, err);
    }
    brc_task_end(q->repo, &task, rc);
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
    BRC_TRY(brc_tree_diff_run(&list->diff, store, &c->a, &c->b, q->path, q->follow, &c->moves,
                              err));
    for (size_t i = 0; i < list->diff.n; i++)
        BRC_TRY(brc_same_chunks_discount(&list->diff.changes[i], q->repo, err));
    return q->wanted.figures || q->wanted.values > 0 ? element_diffs(list, q, err) : BRC_OK;
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

static void give_elements(brc_change *out, const kept_elements *e)
{
    const size_t ndim = (size_t)e->ndim;
    out->flags |= (e->known ? BRC_CHANGE_ELEMENTS : 0) | (e->more ? BRC_CHANGE_MORE : 0);
    out->elements_why = e->why;
    out->values = e->values;
    out->nvalues = e->nvalues;
    out->array = e->array;
    if (!e->known)
        return;
    out->elements_changed = e->changed;
    out->elements_added = e->added;
    out->elements_removed = e->removed;
    out->max_abs = e->max_abs;
    out->mean_abs = e->mean_abs;
    out->rms = e->rms;
    out->chunks = e->chunks;
    out->nchunks = e->nchunks;
    out->ndim = e->ndim;
    if (e->boxes == NULL)
        return;
    memcpy(out->first, e->boxes, ndim * sizeof(uint64_t));
    memcpy(out->last, e->boxes + ndim, ndim * sizeof(uint64_t));
    out->boxes = e->boxes + 2 * ndim;
    out->nboxes = e->nboxes;
}

static int change_next(void *state, const void **out_item, brc_error *err)
{
    change_list *list = state;
    (void)err;
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

static int diff_with(brc_iter **out, diff_request *q, const brc_diff_opts *opts, brc_error *err)
{
    brc_buf path = BRC_BUF_INIT;
    int rc;
    BRC_TRY(brc_iter_new(out, change_next, sizeof(change_list), change_list_dispose, err));
    if (opts->path != NULL)
        BRC_GO(brc_path_normal(&path, opts->path, err));
    q->path = opts->path != NULL ? (const char *)path.data : NULL;
    q->follow = (opts->flags & BRC_DIFF_MOVED) != 0;
    q->wanted = (brc_element_wanted){
        .rule = {.is_close = opts->flags & BRC_DIFF_CLOSE || opts->atol > 0 || opts->rtol > 0,
                 .atol = opts->atol, .rtol = opts->rtol, .sel = opts->sel},
        .figures = (opts->flags & BRC_DIFF_ELEMENTS) != 0,
        .chunks = (opts->flags & BRC_DIFF_CHUNKS) != 0,
        .added = (opts->flags & BRC_DIFF_ADDED) != 0,
        .values = opts->values < SIZE_MAX / 2 ? (size_t)opts->values : SIZE_MAX / 2};
    rc = diff_run(brc_iter_state(*out), q, err);
done:
    brc_buf_dispose(&path);
    if (rc < 0) {
        brc_iter_free(*out);
        *out = NULL;
    }
    return rc;
}

/* Compares with what a session shows. `id` is memory for the id of a version that never changes. */
static int diff_session(diff_request *q, char *id, brc_error *err)
{
    const brc_session *s = q->s;
    if (q->b != NULL)
        return brc_fail(err, BRC_EINVAL, "give the second version or a session, not both");
    if (q->repo != NULL && s->repo != q->repo)
        return brc_fail(err, BRC_EINVAL, "the session belongs to another handle");
    BRC_TRY(brc_bulk_check_none(s, "there is no list of changes", err));
    q->repo = s->repo;
    if (s->mode == BRC_SESSION_AT)
        q->b = brc_oid_format(id, &s->draft.base);
    return BRC_OK;
}

int brc_diff(brc_iter **out, breccia *repo, const char *a, const char *b,
             const brc_diff_opts *given, brc_error *err)
{
    brc_diff_opts opts;
    diff_request q = {.repo = repo, .a = a, .b = b};
    char id[65];
    *out = NULL;
    BRC_TRY(brc_sized_in(&opts, sizeof(opts), offsetof(brc_diff_opts, flags), given,
                         "brc_diff_opts", err));
    BRC_TRY(brc_flags_check(opts.flags, BRC_DIFF_ELEMENTS | BRC_DIFF_CHUNKS | BRC_DIFF_CLOSE |
                                            BRC_DIFF_MOVED | BRC_DIFF_ADDED,
                            "brc_diff_opts", err));
    if (!(opts.atol >= 0 && opts.rtol >= 0))
        return brc_fail(err, BRC_EINVAL, "a tolerance is a number from 0 on");
    q.s = opts.session;
    if (q.s != NULL)
        BRC_TRY(diff_session(&q, id, err));
    return diff_with(out, &q, &opts, err);
}
