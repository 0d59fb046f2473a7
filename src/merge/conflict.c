/* Conflicts: which of an open merge were settled by hand, and lists in the form that users see. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/sized.h"
#include "../work/session_nodes.h"
#include "../zarr/array/array.h"
#include "conflict_elements.h"
#include "merge_doc.h"
#include "steps.h"

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

/* ==== settled by hand ================================ */

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
        BRC_GO(brc_json_parse(&ours, (const char *)clash->ours.data, clash->ours.len, BRC_JSON_NAN,
                              err));
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

/* ==== conflict list ================================ */

enum { SHOWN_CHUNKS = 10 }; /* chunks in conflict whose elements are read */

typedef struct conflict_iter {
    brc_clash_list list;
    size_t at;
    brc_buf key;
    brc_conflict now; /* the conflict that was returned last */
    breccia *repo;
    char *branch; /* NULL: the current one */
    size_t shown; /* conflicts whose elements were read */
    brc_clash_elements elements;
} conflict_iter;

static void conflict_iter_dispose(void *state)
{
    conflict_iter *it = state;
    brc_clash_list_dispose(&it->list);
    brc_buf_dispose(&it->key);
    brc_clash_elements_dispose(&it->elements);
    free(it->branch);
}

int brc_conflict_list_open(brc_iter **out, brc_clash_list *list, breccia *repo, brc_error *err)
{
    brc_clash_list settled = {0};
    size_t open = 0;
    void *p;
    BRC_TRY(brc_new_array(&p, list->n + 1, sizeof(brc_clash), err));
    settled.items = p;
    for (size_t i = 0; i < list->n; i++) {
        if (list->items[i].settled == 0)
            list->items[open++] = list->items[i];
        else
            settled.items[settled.n++] = list->items[i];
    }
    list->n = open;
    brc_clash_list_dispose(&settled);
    return brc_conflict_list(out, list, repo, NULL, err);
}

static const char *conflict_kind(const brc_clash *clash)
{
    if (strcmp(clash->member, BRC_CLASH_CHUNK) == 0)
        return "chunk";
    if (strcmp(clash->member, BRC_CLASH_PLACE) == 0)
        return "moved";
    if (strcmp(clash->member, BRC_CLASH_STORAGE) == 0 || strcmp(clash->member, "/codecs") == 0)
        return "storage";
    if (*clash->member != '\0')
        return "metadata";
    if (clash->base.data == NULL)
        return "added";
    return clash->ours.data == NULL || clash->theirs.data == NULL ? "deleted" : "replaced";
}

static int conflict_key(const brc_clash *clash, brc_buf *out, const char **key, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM];
    *key = *clash->member == '/' ? clash->member : NULL;
    if (strcmp(clash->member, BRC_CLASH_CHUNK) != 0)
        return BRC_OK;
    out->len = 0;
    const int ndim = brc_chunk_key_decode(clash->key.data, clash->key.len, index);
    BRC_TRY(brc_buf_text(out, "c", err));
    for (int i = 0; i < ndim; i++)
        BRC_TRY(brc_buf_printf(out, err, "/%" PRIu64, index[i]));
    *key = (const char *)out->data;
    return brc_buf_terminate(out, err);
}

/* Returns how a conflict is settled, from the state in its row; a conflict of a new merge is
 * open. */
static int settled_as(int state)
{
    static const int as[] = {0, BRC_MERGE_OURS, BRC_MERGE_THEIRS, 1};
    return state >= 0 && state <= 3 ? as[state] : 0;
}

/* Adds the elements to a chunk in conflict, if it is one of the first. A conflict whose elements
 * cannot be read is listed all the same. */
static void add_elements(conflict_iter *list, const brc_clash *clash)
{
    const brc_clash_elements *e = &list->elements;
    if (strcmp(clash->member, BRC_CLASH_CHUNK) != 0 || list->shown++ >= SHOWN_CHUNKS ||
        brc_clash_elements_read(&list->elements, list->repo, list->branch, clash, NULL) < 0)
        return;
    list->now.elements = e->elements;
    list->now.values = e->values;
    list->now.nvalues = e->nvalues;
    list->now.array = e->array;
}

static int conflict_next(void *state, const void **out, brc_error *err)
{
    conflict_iter *list = state;
    if (list->at == list->list.n)
        return 0;
    const brc_clash *clash = &list->list.items[list->at++];
    list->now = (brc_conflict){.path = clash->path, .kind = conflict_kind(clash),
                               .settled = settled_as(clash->settled),
                               .draft = clash->draft};
    BRC_TRY(conflict_key(clash, &list->key, &list->now.key, err));
    list->now.key = strcmp(clash->member, BRC_CLASH_CHUNK) == 0 ? (const char *)list->key.data
                                                                : list->now.key;
    add_elements(list, clash);
    *out = &list->now;
    return 1;
}

int brc_conflict_list(brc_iter **out, brc_clash_list *list, breccia *repo, const char *branch,
                      brc_error *err)
{
    static const brc_buf empty = BRC_BUF_INIT;
    BRC_TRY(brc_iter_new(out, conflict_next, sizeof(conflict_iter), conflict_iter_dispose,
                         err));
    conflict_iter *it = brc_iter_state(*out);
    it->key = empty;
    it->repo = repo;
    if (branch != NULL && brc_dup(&it->branch, branch, err) < 0) {
        brc_iter_free(*out);
        *out = NULL;
        return BRC_ENOMEM;
    }
    if (list != NULL) {
        it->list = *list;
        memset(list, 0, sizeof(*list));
    }
    return BRC_OK;
}
