#include "open_merge.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "../history/commit.h"
#include "../history/merge_list.h"
#include "../store/collect.h"
#include "../work/session.h"
#include "../zarr/array/array.h"
#include "merge_doc.h"

/* ==== hand written ================================ */

enum { THEN, NOW, MOMENTS };

typedef struct hand_look {
    brc_store *store;
    brc_array array[MOMENTS];
    uint64_t index[BRC_MAX_NDIM];
    brc_oid id[MOMENTS];
    brc_draft_stack rows;
    int has_row;
    int same_form;
} hand_look;

/* ---- the array -------------------------------- */

/* Compares the forms of two arrays. Attributes may have been set meanwhile, and do not count. */
static int compare_forms(hand_look *l, const brc_entry *then, const brc_entry *now, brc_error *err)
{
    static const char *const names[] = {"chunk_grid", "data_type", "shape", "fill_value", "codecs"};
    brc_json *a = NULL, *b = NULL;
    int rc;
    l->same_form = 1;
    if (brc_oid_cmp(&then->doc, &now->doc) == 0)
        return BRC_OK;
    BRC_GO(brc_entry_doc(l->store, then, &a, err));
    BRC_GO(brc_entry_doc(l->store, now, &b, err));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        l->same_form &= brc_json_same(brc_json_member(a, names[i]), brc_json_member(b, names[i]));
done:
    brc_json_free(a);
    brc_json_free(b);
    return rc;
}

/* Says whether a key stands for the same box in both grids. Shards within codecs are compared
 * separately. */
static int cut_same(const brc_grid *a, const brc_grid *b)
{
    for (int i = 0; i < a->ndim; i++)
        if (a->starts[i] != NULL || b->starts[i] != NULL || a->chunk[i] != b->chunk[i])
            return 0;
    return 1;
}

static int open_moments(hand_look *l, brc_session *s, const brc_clash *clash,
                        const brc_entry *const *entries, brc_error *err)
{
    for (int i = 0; i < MOMENTS; i++)
        BRC_TRY(brc_array_of_entry(&l->array[i], s, clash->path, entries[i], err));
    l->array[NOW].stack = l->rows;
    return brc_draft_chunk_any(l->store, &l->rows, &l->array[NOW].row_has_chunks, err);
}

/* ---- the chunk -------------------------------- */

static int find_hand_row(hand_look *l, const brc_clash *clash, int64_t row, brc_error *err)
{
    brc_oid id;
    BRC_TRY(brc_draft_stack_get(l->store, row, &l->rows, err));
    return brc_draft_chunk_get(l->store, &l->rows, clash->key.data, clash->key.len, &l->has_row,
                               &id, err);
}

/* Finds how much of the chunk's original box an array has at one moment. Returns 0 if it has
 * nothing. */
static int box_of_chunk(const hand_look *l, int moment, brc_sel *sel)
{
    const brc_meta *m = &l->array[moment].meta;
    const brc_grid *grid = &l->array[THEN].meta.grid;
    int any = 1;
    *sel = (brc_sel){.size = sizeof(*sel), .ndim = m->ndim};
    for (int i = 0; i < m->ndim; i++)
        if (grid->starts[i] != NULL && l->index[i] >= grid->edges[i])
            return 0;
    brc_grid_chunk(grid, l->index, sel->start, sel->count);
    for (int i = 0; i < m->ndim; i++) {
        const uint64_t left = m->shape[i] > sel->start[i] ? m->shape[i] - sel->start[i] : 0;
        sel->step[i] = 1;
        if (left < sel->count[i])
            sel->count[i] = left;
        any &= sel->count[i] > 0;
    }
    return any;
}

/* Compares the elements of both moments bit by bit. */
static int elements_differ(hand_look *l, const brc_sel *sel, int *differ, brc_error *err)
{
    brc_buf data[MOMENTS] = {BRC_BUF_INIT, BRC_BUF_INIT};
    int rc;
    for (int i = 0; i < MOMENTS; i++)
        BRC_GO(brc_array_read_canonical(&l->array[i], sel, &data[i], err));
    *differ = data[THEN].len != data[NOW].len ||
              (data[NOW].len > 0 && memcmp(data[THEN].data, data[NOW].data, data[NOW].len) != 0);
    rc = BRC_OK;
done:
    for (int i = 0; i < MOMENTS; i++)
        brc_buf_dispose(&data[i]);
    return rc;
}

/* Examines the elements of a chunk that has another id, or that is in another grid. */
static int look_at_elements(hand_look *l, int *is, brc_error *err)
{
    brc_sel then, now;
    const int was_there = box_of_chunk(l, THEN, &then);
    const int is_there = box_of_chunk(l, NOW, &now);
    if (!was_there || !is_there) {
        *is = was_there || is_there; /* the chunk was cut off, or the array has grown by it */
        return BRC_OK;
    }
    for (int i = 0; i < now.ndim; i++) {
        if (now.count[i] > then.count[i]) /* an edge that moves out is changed only by writes */
            *is = 1;
        if (now.count[i] > then.count[i])
            now.count[i] = then.count[i];
    }
    return *is ? BRC_OK : elements_differ(l, &now, is, err);
}

static int look_at_chunk(hand_look *l, const brc_clash *clash, int *is, brc_error *err)
{
    const brc_meta *then = &l->array[THEN].meta, *now = &l->array[NOW].meta;
    brc_sel box;
    *is = then->ndim != now->ndim || strcmp(then->dtype, now->dtype) != 0;
    if (*is || brc_chunk_key_decode(clash->key.data, clash->key.len, l->index) != then->ndim)
        return BRC_OK;
    if (box_of_chunk(l, THEN, &box) && !box_of_chunk(l, NOW, &box)) {
        *is = 1;
        return BRC_OK;
    }
    const int same_grid = cut_same(&then->grid, &now->grid);
    for (int i = 0; i < MOMENTS && same_grid; i++)
        BRC_TRY(brc_array_chunk_ids(&l->array[i], 1, l->index, &l->id[i], err));
    if (same_grid && brc_oid_cmp(&l->id[THEN], &l->id[NOW]) == 0)
        return BRC_OK;
    *is = then->opaque || now->opaque; /* elements cannot be compared */
    return *is ? BRC_OK : look_at_elements(l, is, err);
}

/*
 * Says whether a chunk was written by hand. `then` is the array as the merge left it, and `now` the
 * array as the session has it, with its row of the draft (0: none). Both must be arrays. Must be
 * called within a read or a change of the session.
 *
 * As long as chunks are divided and encoded as they were then, a row of the chunk means that the
 * chunk was written, whatever its contents. An array that was resized or re-encoded since has other
 * rows too, and earlier writes no longer have rows: then elements count that differ from those that
 * the merge left. A chunk that is outside the new shape needs no decision.
 */
static int chunk_is_hand_written(brc_session *s, const brc_clash *clash, const brc_entry *then,
                                 const brc_entry *now, int64_t row, int *is, brc_error *err)
{
    const brc_entry *const entries[MOMENTS] = {then, now};
    hand_look l = {.store = s->repo->store};
    *is = 0;
    if (row == 0 && brc_entry_equal(then, now))
        return BRC_OK;
    if (row != 0)
        BRC_TRY(find_hand_row(&l, clash, row, err));
    BRC_TRY(compare_forms(&l, then, now, err));
    *is = l.has_row && l.same_form;
    if (*is || (l.same_form && brc_oid_cmp(&then->map, &now->map) == 0))
        return BRC_OK;
    int rc = open_moments(&l, s, clash, entries, err);
    if (rc == BRC_OK)
        rc = look_at_chunk(&l, clash, is, err);
    for (int i = 0; i < MOMENTS; i++)
        brc_meta_dispose(&l.array[i].meta);
    return rc;
}

/* ==== open merge ================================ */

/* ---- the rows -------------------------------- */

static int put_moves(brc_store *store, int64_t draft, const brc_move_set *moves, brc_error *err)
{
    for (size_t i = 0; i < moves->n; i++)
        BRC_TRY(brc_draft_move_put(store, draft, moves->items[i].to,
                                   brc_move_is_made(&moves->items[i]) ? "" : moves->items[i].from,
                                   err));
    return BRC_OK;
}

/* Puts the row of "/". The root of the empty snapshot gets a document. */
static int put_root(brc_store *store, int64_t draft, const brc_oid *root, brc_error *err)
{
    uint8_t bytes[BRC_ENTRY_MAX];
    brc_entry entry;
    int64_t node;
    BRC_TRY(brc_snapshot_find(store, root, "/", &entry, err));
    if (brc_oid_is_zero(&entry.doc)) {
        brc_span text;
        BRC_TRY(brc_entry_text(store, &entry, &text, err));
        BRC_TRY(brc_store_put(store, BRC_KIND_DOCUMENT, text.data, text.len, &entry.doc, err));
    }
    const size_t len = brc_entry_encode(bytes, &entry, brc_store_id_len(store));
    return brc_draft_node_put(store, draft, "/", bytes, len, &node, err);
}

/* Keeps the objects that the plan names from garbage collection. */
static int keep_named(brc_store *store, const brc_open_merge_new *what, brc_error *err)
{
    if (what->change != NULL && what->change->has_base)
        BRC_TRY(brc_gc_keep_commit(store, &what->change->base, err));
    if (what->change != NULL && what->change->has_theirs)
        BRC_TRY(brc_gc_keep_commit(store, &what->change->theirs, err));
    for (size_t i = 0; i < what->nmore; i++)
        BRC_TRY(brc_gc_keep_commit(store, &what->more[i], err));
    return BRC_OK;
}

int brc_open_merge_start(int64_t *draft, brc_merge_run *run, const brc_open_merge_new *what,
                         brc_error *err)
{
    brc_store *store = run->how.repo->store;
    brc_draft_row row = {.branch = what->branch};
    const brc_oid *base = what->base != NULL ? what->base : what->tip;
    brc_move_set moves = {0};
    brc_oid root;
    row.draft.kind = BRC_DRAFT_MERGE;
    row.draft.time_us = brc_now_us();
    row.draft.has_base = base != NULL;
    row.draft.has_tip = what->tip != NULL;
    if (base != NULL)
        row.draft.base = *base;
    if (what->tip != NULL)
        row.draft.tip = *what->tip;
    BRC_TRY(keep_named(store, what, err));
    BRC_TRY(brc_merge_tree_put(run->tree, &root, err));
    BRC_TRY(brc_draft_merge_start(store, &row, what->other, what->plan, draft, err));
    BRC_TRY(put_root(store, *draft, &root, err));
    int rc = brc_merge_tree_moves(run->tree, &root, &moves, err);
    if (rc == BRC_OK)
        rc = put_moves(store, *draft, &moves, err);
    brc_move_set_dispose(&moves);
    if (rc < 0)
        return rc;
    return brc_clash_list_put(store, *draft, brc_merge_tree_clashes(run->tree), run->has_scratch,
                              err);
}

int brc_open_merge_lay(brc_session *s, const brc_oid *root, const brc_move_set *moves,
                       brc_error *err)
{
    brc_store *store = s->repo->store;
    const int64_t draft = s->draft.id;
    BRC_TRY(brc_draft_node_clear(store, draft, "/", err));
    BRC_TRY(put_root(store, draft, root, err));
    s->repo->changes++;
    s->is_read = 0;
    if (moves == NULL)
        return BRC_OK;
    BRC_TRY(brc_draft_move_clear(store, draft, "/", err));
    return put_moves(store, draft, moves, err);
}

/* ---- what is settled by hand -------------------------------- */

typedef struct hand_check {
    brc_session *s;
    brc_entry root; /* the root's entry as the merge left it */
} hand_check;

/* Reads the next step of a pointer from *at, which begins with '/'. */
static int pointer_next(brc_buf *out, const char **at, brc_error *err)
{
    const char *p = *at + 1;
    out->len = 0;
    for (; *p != '\0' && *p != '/'; p++) {
        char c = *p;
        if (c == '~' && (p[1] == '0' || p[1] == '1'))
            c = *++p == '0' ? '~' : '/';
        BRC_TRY(brc_buf_append(out, &c, 1, err));
    }
    *at = p;
    return brc_buf_terminate(out, err);
}

static int member_of(const brc_json *doc, const char *pointer, const brc_json **out, brc_error *err)
{
    brc_buf name = BRC_BUF_INIT;
    int rc = BRC_OK;
    *out = doc;
    while (rc == BRC_OK && *pointer == '/' && *out != NULL) {
        rc = pointer_next(&name, &pointer, err);
        if (rc == BRC_OK)
            *out = brc_json_member(*out, (const char *)name.data);
    }
    brc_buf_dispose(&name);
    return rc;
}

/* Says whether a metadata member in conflict was set: until then it is as in ours. */
static int member_is_other(brc_store *store, const brc_entry *now, const brc_clash *clash,
                           int *is_other, brc_error *err)
{
    brc_json *doc = NULL, *ours = NULL;
    const brc_json *value;
    int rc;
    BRC_GO(brc_entry_doc(store, now, &doc, err));
    if (clash->ours.data != NULL)
        BRC_GO(brc_json_parse_nan(&ours, (const char *)clash->ours.data, clash->ours.len, err));
    BRC_GO(member_of(doc, clash->member, &value, err));
    *is_other = !brc_json_same(value, ours);
done:
    brc_json_free(doc);
    brc_json_free(ours);
    return rc;
}

static int id_is_other(const brc_oid *now, const brc_buf *ours, size_t id_len)
{
    brc_oid was;
    memset(&was, 0, sizeof(was));
    if (ours->data != NULL && ours->len == id_len)
        memcpy(was.bytes, ours->data, id_len);
    return brc_oid_cmp(now, &was) != 0;
}

/* Says whether a node, or something under it, has rows: the merge itself makes only the row of
 * "/". */
static int node_is_written(const hand_check *h, const brc_clash *clash, int *written,
                           brc_error *err)
{
    brc_draft_node *rows;
    size_t n;
    brc_store *store = h->s->repo->store;
    BRC_TRY(brc_draft_node_list(store, h->s->draft.id, clash->path, 1, &rows, &n, err));
    *written = n > 0;
    brc_draft_nodes_free(rows, n);
    return BRC_OK;
}

static int is_settled_by_hand(const hand_check *h, const brc_clash *clash, int *is, brc_error *err)
{
    brc_store *store = h->s->repo->store;
    brc_entry now, then;
    int64_t row;
    *is = 0;
    BRC_TRY(brc_path_is_normal(clash->path, err));
    if (strcmp(clash->member, BRC_CLASH_NODE) == 0 || strcmp(clash->member, BRC_CLASH_PLACE) == 0)
        return node_is_written(h, clash, is, err);
    BRC_TRY(brc_session_find(h->s, clash->path, &now, &row, err));
    BRC_TRY(brc_entry_find(store, &h->root, clash->path + 1, &then, err));
    *is = now.kind != then.kind;
    if (*is)
        return BRC_OK;
    if (strcmp(clash->member, BRC_CLASH_STORAGE) == 0) {
        *is = id_is_other(&now.storage, &clash->ours, brc_store_id_len(store));
        return BRC_OK;
    }
    if (strcmp(clash->member, BRC_CLASH_CHUNK) != 0)
        return member_is_other(store, &now, clash, is, err);
    return now.kind == BRC_ARRAY
               ? chunk_is_hand_written(h->s, clash, &then, &now, row, is, err) : BRC_OK;
}

/* ---- reading -------------------------------- */

static int read_hands(brc_open_merge *merge, brc_session *s, brc_error *err)
{
    hand_check h = {.s = s};
    int64_t row;
    int is;
    BRC_TRY(brc_session_find(s, "/", &h.root, &row, err));
    for (size_t i = 0; i < merge->conflicts.n; i++) {
        brc_clash *clash = &merge->conflicts.items[i];
        if (clash->settled != BRC_SETTLED_NOT)
            continue;
        BRC_TRY(is_settled_by_hand(&h, clash, &is, err));
        if (is)
            clash->settled = BRC_SETTLED_HAND;
    }
    return BRC_OK;
}

int brc_open_merge_read(brc_open_merge *out, brc_session *s, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    if (s->draft.id == 0 || s->draft.kind != BRC_DRAFT_MERGE)
        return BRC_OK;
    BRC_TRY(brc_open_merge_rows(out, s->repo->store, &s->draft, err));
    int rc = read_hands(out, s, err);
    if (rc < 0)
        brc_open_merge_dispose(out);
    return rc;
}

int brc_open_merge_may_move(brc_session *s, const char *path, brc_error *err)
{
    brc_open_merge merge;
    const size_t len = strlen(path);
    BRC_TRY(brc_open_merge_read(&merge, s, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < merge.conflicts.n && rc == BRC_OK; i++) {
        const brc_clash *clash = &merge.conflicts.items[i];
        if (clash->settled == BRC_SETTLED_NOT && strncmp(clash->path, path, len) == 0 &&
            (clash->path[len] == '/' || clash->path[len] == '\0'))
            rc = brc_fail(err, BRC_ECONFLICT,
                          "%s cannot be moved while a conflict at %.300s is open: settle it first",
                          path, clash->path);
    }
    brc_open_merge_dispose(&merge);
    return rc;
}

/* ---- again -------------------------------- */

static int run_of_sides(brc_merge_run *run, const brc_open_merge *merge, brc_error *err)
{
    brc_commit_set bases;
    if (!merge->draft.has_base)
        return brc_fail(err, BRC_ECORRUPT, "the open merge (draft %lld) has no version of ours",
                        (long long)merge->draft.id);
    int rc = brc_merge_find_base(run, &merge->draft.base, &merge->other, &bases, err);
    brc_commit_set_dispose(&bases);
    return rc;
}

/* Says whether theirs is what was settled before the branch moved. */
static int is_of_settled(const brc_open_merge *merge)
{
    return brc_json_member(merge->plan, "settled") != NULL;
}

static int run_of_change(brc_merge_run *run, const brc_open_merge *merge, brc_error *err)
{
    brc_store *store = run->how.repo->store;
    brc_step_change change = {.is_back = !is_of_settled(merge) &&
                                         strcmp(brc_open_merge_op(merge), "revert") == 0};
    int rc = change.has_base = brc_open_merge_id(merge, "base", &change.base, err);
    if (rc >= 0)
        rc = change.has_theirs = brc_open_merge_id(merge, "theirs", &change.theirs, err);
    BRC_TRY(rc);
    BRC_TRY(brc_store_begin_read(store, err));
    rc = brc_step_change_read(run, &change, merge->draft.has_base ? &merge->draft.base : NULL, NULL,
                              err);
    brc_store_end_read(store);
    return rc;
}

int brc_open_merge_run(brc_merge_run *run, const brc_open_merge *merge, brc_error *err)
{
    if (brc_json_member(merge->plan, "concat") != NULL)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "this merge joined what both sides appended, and cannot join it again: "
                        "settle by writing, or drop the merge and use --concat --theirs");
    BRC_TRY(merge->has_other && !is_of_settled(merge) ? run_of_sides(run, merge, err)
                                                      : run_of_change(run, merge, err));
    return brc_merge_work(run, err);
}
