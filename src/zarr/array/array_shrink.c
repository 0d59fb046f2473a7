/* Makes arrays anew: copies elements from one array to another, puts a new array in the place of an
 * old one, and removes what a smaller shape cuts off. */
#include "array_shrink.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../flow/write.h"
#include "../../history/totals.h"
#include "../../store/change.h"
#include "../../store/collect.h"
#include "../../tree/map.h"
#include "../../work/bulk_write.h"
#include "../../work/fold.h"
#include "../stored/assembly.h"
#include "../stored/shard.h"
#include "array_write.h"
#include "chunk_cursor.h"
#include "region.h"

/* ==== array recut ================================ */

/* Chunks whose objects are looked up together. */
enum { RECUT_BATCH = 64 };

typedef struct array_pieces {
    brc_array *to, *from;
    brc_chunk_cursor cursor; /* all stored chunks of `from` ... */
    const brc_sel *sel;      /* ... or every chunk that meets this selection, stored or not */
    brc_region was, now;     /* the selection in both                             */
    uint64_t next;           /* the next chunk of `was`                           */
    int same_form;           /* chunks of one array are also chunks of the other  */
    int takes;               /* 1: takes whole chunks over; 0: that is done */
    size_t n, at;
    int ended;
    uint64_t indexes[RECUT_BATCH][BRC_MAX_NDIM];
    brc_object objects[RECUT_BATCH]; /* id zero: absent                           */
} array_pieces;

static void place_of_stored(const void *ctx, const uint64_t *element, uint64_t *at)
{
    const brc_grid *grid = &((const array_pieces *)ctx)->from->meta.grid;
    for (int i = 0; i < grid->ndim; i++)
        at[i] = brc_grid_find(grid, i, element[i]);
}

/* ---- taking chunks over by id -------------------------------- */

static int has_same_form(const brc_array *to, const brc_array *from)
{
    const brc_meta *a = &to->meta, *b = &from->meta;
    const size_t bytes = sizeof(uint64_t) * (size_t)a->ndim;
    const int regular = a->grid.regular && b->grid.regular;
    if (a->opaque || b->opaque || a->keeps_fill != b->keeps_fill || a->fill.len != b->fill.len ||
        memcmp(a->fill.data, b->fill.data, a->fill.len) != 0)
        return 0;
    if (regular)
        return memcmp(a->grid.chunk, b->grid.chunk, bytes) == 0;
    return memcmp(a->shape, b->shape, bytes) == 0 && brc_grid_same(&a->grid, &b->grid);
}

/* Takes a chunk over by id if it is selected as a whole on both sides. Returns 1 if the chunk needs
 * no more work: it was taken over, or steps skip it. */
static int take_chunk(array_pieces *p, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    brc_region_part was, now;
    brc_region_part_at(&was, p->from, &p->was, index);
    if (brc_shape_count(p->from->meta.ndim, was.overlap.count) == 0)
        return 1;
    if (!p->same_form)
        return 0;
    brc_region_part_at(&now, p->to, &p->now, index);
    if (!was.overlap.whole || !now.overlap.whole)
        return 0;
    if (!p->takes)
        return 1;
    BRC_TRY(brc_array_put_chunk(p->to, index, brc_oid_is_zero(id) ? NULL : id, err));
    const size_t item = p->to->meta.type->item_size;
    const uint64_t elements = brc_shape_count(p->to->meta.ndim, now.overlap.count);
    BRC_TRY(brc_task_step(p->to->session->repo, elements * (item > 0 ? item : 1), err));
    return 1;
}

static int list_selected(array_pieces *p, brc_error *err)
{
    uint64_t indexes[RECUT_BATCH * BRC_MAX_NDIM];
    brc_oid ids[RECUT_BATCH];
    const int ndim = p->from->meta.ndim;
    const uint64_t left = p->was.nchunks - p->next;
    const size_t n = left < RECUT_BATCH ? (size_t)left : RECUT_BATCH;
    for (size_t i = 0; i < n; i++)
        brc_region_chunk(&p->was, ndim, p->next++, indexes + i * (size_t)ndim);
    p->ended = p->next == p->was.nchunks;
    if (n > 0)
        BRC_TRY(brc_array_chunk_ids(p->from, n, indexes, ids, err));
    for (size_t i = 0; i < n; i++) {
        const uint64_t *index = indexes + i * (size_t)ndim;
        int taken = take_chunk(p, index, &ids[i], err);
        if (taken < 0)
            return taken;
        if (taken || p->takes)
            continue;
        memcpy(p->indexes[p->n], index, (size_t)ndim * sizeof(*index));
        memset(&p->objects[p->n], 0, sizeof(p->objects[0]));
        p->objects[p->n++].id = ids[i];
    }
    return brc_store_check_interrupt(brc_array_store(p->from), err);
}

static int list_all_stored(array_pieces *p, brc_error *err)
{
    while (p->n < RECUT_BATCH && !p->ended) {
        brc_object *o = &p->objects[p->n];
        memset(o, 0, sizeof(*o));
        int rc = brc_chunk_cursor_next(&p->cursor, p->indexes[p->n], &o->id, err);
        if (rc < 0)
            return rc;
        p->ended = rc == 0;
        p->n += (size_t)(rc > 0 && brc_grid_has(&p->from->meta.grid, p->indexes[p->n]));
    }
    return BRC_OK;
}

/* Takes whole chunks over, in a pass before all others: a bulk write decodes nothing while the rows
 * of a batch are not committed. */
static int take_whole(array_pieces *p, brc_error *err)
{
    brc_store *store = brc_array_store(p->to);
    if (!p->same_form)
        return BRC_OK;
    p->takes = 1;
    while (!p->ended) {
        BRC_TRY(list_selected(p, err));
        BRC_TRY(brc_store_rest(store, 0, err));
    }
    p->takes = p->ended = 0;
    p->next = 0;
    return brc_store_rest(store, 1, err);
}

static int look_up_pieces(array_pieces *p, brc_error *err)
{
    brc_object *asked[RECUT_BATCH];
    size_t n = 0;
    p->n = p->at = 0;
    while (p->n == 0 && !p->ended)
        BRC_TRY(p->sel != NULL ? list_selected(p, err) : list_all_stored(p, err));
    for (size_t i = 0; i < p->n; i++)
        if (!brc_oid_is_zero(&p->objects[i].id))
            asked[n++] = &p->objects[i];
    return brc_objects_find(brc_array_store(p->from), asked, n, err);
}

/* ---- pieces -------------------------------- */

/* Describes the object for the flow to fetch, and how it is decoded. */
static int describe_object(const array_pieces *p, brc_piece *piece, brc_error *err)
{
    brc_read_item item;
    memset(&item, 0, sizeof(item));
    item.object = p->objects[p->at];
    if (!item.object.found)
        return brc_object_missing(&item.object.id, err);
    item.len = (size_t)item.object.size;
    BRC_TRY(brc_chunk_item(&item, p->from, p->indexes[p->at], err));
    piece->object = item.object;
    piece->skip = item.skip;
    piece->chain = item.chain;
    piece->len = item.len;
    return BRC_OK;
}

/* Returns the next chunk of `from`, or of its selection; an absent chunk is one element
 * everywhere. */
static int next_stored_piece(void *ctx, brc_piece *piece, brc_buf *stored, brc_error *err)
{
    array_pieces *p = ctx;
    const brc_meta *m = &p->from->meta;
    brc_region_part part;
    if (p->at == p->n && !p->ended)
        BRC_TRY(look_up_pieces(p, err));
    if (p->at == p->n)
        return 0;
    const uint64_t *index = p->indexes[p->at];
    const int is_absent = brc_oid_is_zero(&p->objects[p->at].id);
    int rc = is_absent ? brc_buf_append(stored, m->fill.data, m->fill.len, err)
                       : describe_object(p, piece, err);
    if (rc < 0) {
        brc_array_name_chunk(p->from, index, err);
        return rc;
    }
    brc_region_part_at(&part, p->from, &p->was, index);
    piece->elements = is_absent ? 1 : part.elements;
    piece->offset = is_absent ? 0 : (size_t)part.in_chunk;
    if (is_absent) {
        piece->len = stored->len;
        memset(part.strides, 0, sizeof(part.strides));
    }
    brc_sel sel = p->was.sel;
    for (int i = 0; i < m->ndim; i++) {
        sel.start[i] += part.overlap.in_sel[i] * sel.step[i];
        sel.count[i] = part.overlap.count[i];
    }
    memcpy(piece->at, index, sizeof(piece->at));
    p->at++;
    BRC_TRY(brc_region_init(&piece->region, p->to, &sel, NULL, part.strides, err));
    return 1;
}

static void name_of_stored(void *ctx, const brc_piece *piece, brc_error *err)
{
    const array_pieces *p = ctx;
    brc_array_name_chunk(p->from, piece->at, err);
}

/* Copies the chunks within a transaction. */
static int recut_chunks(array_pieces *p, brc_error *err)
{
    const brc_meta *m = &p->from->meta;
    brc_piece_source pieces = {
        .ctx = p,
        .order = {.place = place_of_stored, .ctx = p, .uneven = p->sel || !m->grid.regular},
        .next = next_stored_piece,
        .name = name_of_stored,
    };
    for (int i = 0; i < m->ndim; i++) {
        pieces.order.axis[i] = i;
        pieces.order.per[i] = brc_grid_extent(m->grid.chunk[i], p->was.sel.step[i]);
    }
    BRC_TRY(take_whole(p, err));
    if (p->sel == NULL)
        BRC_TRY(brc_chunk_cursor_start(&p->cursor, p->from, err));
    return brc_array_assemble(p->to, p->sel, &pieces, err);
}

int brc_array_recut(brc_array *to, brc_array *from, const brc_sel *sel, brc_error *err)
{
    void *memory;
    BRC_TRY(brc_array_begin_read(from, err));
    int rc = brc_new(&memory, sizeof(array_pieces), err);
    if (rc == BRC_OK) {
        array_pieces *p = memory;
        p->to = to;
        p->from = from;
        p->sel = sel;
        p->same_form = sel != NULL && has_same_form(to, from);
        rc = brc_region_init(&p->was, from, sel, NULL, NULL, err);
        if (rc == BRC_OK)
            rc = brc_region_init(&p->now, to, sel, NULL, NULL, err);
        if (rc == BRC_OK)
            rc = recut_chunks(p, err);
        brc_chunk_cursor_end(&p->cursor);
        free(p);
    }
    brc_array_end_read(from);
    return rc;
}

/* ==== array replace ================================ */

/* ---- the array as it was -------------------------------- */

/* Makes sure, within a change of the array, that nobody writes into rows with chunks from now
 * on. */
static int hold_own_rows(brc_array *a, brc_draft_stack *rows, brc_error *err)
{
    brc_store *store = brc_array_store(a);
    const brc_draft_stack top = {.n = 1, .node = {a->row}};
    int64_t pushed;
    int any;
    *rows = a->stack;
    BRC_TRY(brc_draft_chunk_any(store, &top, &any, err));
    if (any)
        BRC_TRY(brc_draft_stack_push(store, a->row, a->path, &pushed, err));
    return brc_stack_used(store, rows, err);
}

/* Holds the rows within a write. BRC_CHANGE_AGAIN: savepoints leave no room for another row. */
static int hold_in_write(brc_replacing *r, brc_error *err)
{
    brc_draft_stack rows = {.n = 0};
    BRC_TRY(brc_array_begin(r->a, err));
    const int is_full = r->a->stack.n == BRC_DRAFT_STACK_MOST;
    int rc = is_full ? BRC_OK : hold_own_rows(r->a, &rows, err);
    if (rc == BRC_OK && !is_full) {
        r->still = rows.n > 0 ? rows.node[0] : 0;
        rc = brc_array_freeze_held(&r->from, r->a, &rows, err);
    }
    rc = brc_array_end(r->a, rc, err);
    return rc == BRC_OK && is_full ? BRC_CHANGE_AGAIN : rc;
}

/* Holds the rows in a transaction of its own, if the array has uncommitted chunks. */
static int hold_still(brc_replacing *r, brc_error *err)
{
    const brc_draft_stack none = {.n = 0};
    brc_array *a = r->a;
    r->still = 0;
    r->from = NULL;
    BRC_TRY(brc_gc_last(brc_array_store(a), &r->collected, err));
    BRC_TRY(brc_array_begin_read(a, err));
    const int has_chunks = a->row_has_chunks;
    int rc = has_chunks ? BRC_OK : brc_array_freeze_held(&r->from, a, &none, err);
    brc_array_end_read(a);
    if (rc < 0 || !has_chunks)
        return rc;
    if (a->stack.n == BRC_DRAFT_STACK_MOST)
        BRC_TRY(brc_stack_make_shorter(brc_array_store(a), a->row, err));
    return hold_in_write(r, err);
}

/* Within the caller's transaction the rows stay as they are. */
static int hold_within(brc_replacing *r, brc_error *err)
{
    BRC_TRY(brc_array_begin_read(r->a, err));
    int rc = brc_array_freeze_held(&r->from, r->a, &r->a->stack, err);
    brc_array_end_read(r->a);
    return rc;
}

/* ---- the new node -------------------------------- */

static int find_free_name(brc_session *s, brc_buf *name, brc_error *err)
{
    brc_entry there = {.kind = BRC_ARRAY};
    int64_t ignored;
    for (int i = 1; there.kind != 0; i++) {
        name->len = 0;
        BRC_TRY(brc_buf_printf(name, err, "/rewritten %d", i));
        BRC_TRY(brc_session_find(s, (const char *)name->data, &there, &ignored, err));
    }
    return BRC_OK;
}

/* Checks a map that was made ahead and is named from here on: a collection may have removed it. */
static int check_map(const brc_replacing *r, brc_error *err)
{
    int64_t last;
    brc_store *store = brc_array_store(r->a);
    BRC_TRY(brc_gc_last(store, &last, err));
    return last == r->collected ? BRC_OK
                                : brc_fail(err, BRC_ECONFLICT,
                                           "%s: garbage was collected meanwhile: try again",
                                           r->a->path);
}

static int fill_new(brc_replacing *r, const char *name, const brc_json *doc, const brc_oid *map,
                    brc_error *err)
{
    brc_array *to;
    brc_entry entry = r->from->entry;
    entry.map = *map;
    BRC_TRY(brc_session_put_doc(r->a->session, name, &entry, doc, NULL, err));
    BRC_TRY(brc_array_open(&to, r->a->session, name, err));
    int rc = brc_array_begin(to, err);
    if (rc == BRC_OK) {
        rc = brc_store_rest(brc_array_store(to), 1, err);
        if (rc == BRC_OK)
            rc = r->fill(r->ctx, to, r->from, err);
        rc = brc_array_end(to, rc, err);
    }
    brc_array_free(to);
    return rc;
}

static int make_new(brc_replacing *r, const brc_json *doc, const brc_oid *map, brc_buf *name,
                    brc_error *err)
{
    brc_session *s = r->a->session;
    BRC_TRY(brc_session_begin(s, err));
    int rc = check_map(r, err);
    if (rc == BRC_OK)
        rc = find_free_name(s, name, err);
    if (rc == BRC_OK && s->bulk != NULL)
        rc = brc_bulk_replaces(s, (const char *)name->data, r->a->path, &r->from->entry, r->still,
                               err);
    if (rc == BRC_OK)
        rc = fill_new(r, (const char *)name->data, doc, map, err);
    return brc_session_end(s, rc, err);
}

/* ---- in many transactions -------------------------------- */

/* Tells whether the array is no longer the one from which the new node was made. */
static int has_changed(const brc_replacing *r)
{
    int64_t still;
    brc_array *a = r->a;
    if (brc_array_begin_read(a, NULL) < 0)
        return 0;
    brc_draft_stack rows = a->stack;
    const int rc = brc_stack_used(brc_array_store(a), &rows, NULL);
    still = rows.n > 0 ? rows.node[0] : 0;
    brc_array_end_read(a);
    return rc == BRC_OK && (still != r->still || !brc_entry_equal(&a->entry, &r->from->entry));
}

typedef struct new_node {
    brc_replacing *r;
    const brc_json *doc;
    const brc_oid *map;
} new_node;

static int make_new_node(void *ctx, brc_error *err)
{
    const new_node *node = ctx;
    brc_buf name = BRC_BUF_INIT;
    int rc = make_new(node->r, node->doc, node->map, &name, err);
    brc_buf_dispose(&name);
    return rc;
}

static int replace_in_bulk(brc_replacing *r, const brc_json *doc, const brc_oid *map,
                           brc_error *err)
{
    new_node node = {r, doc, map};
    const int rc = brc_array_bulk_change(r->a, 0, make_new_node, &node, err);
    const int met = rc == BRC_ECONFLICT || rc == BRC_ESTALE ||
                    ((rc == BRC_ECORRUPT || rc == BRC_ENOTFOUND) && has_changed(r));
    return met ? BRC_CHANGE_AGAIN : rc;
}

static int replace_once(brc_replacing *r, brc_error *err)
{
    brc_json *doc = NULL;
    brc_oid map = {{0}};
    int rc = hold_still(r, err);
    if (rc != BRC_OK) {
        brc_array_free(r->from);
        return rc;
    }
    rc = r->begin(r->ctx, r->from, &doc, &map, err);
    if (rc > 0)
        rc = replace_in_bulk(r, doc, &map, err);
    else if (rc < 0 && has_changed(r))
        rc = BRC_CHANGE_AGAIN;
    brc_json_free(doc);
    brc_array_free(r->from);
    return rc;
}

/* ---- in one transaction -------------------------------- */

/* Removes the array's row, and gives its path to the new node. */
static int take_place(brc_array *a, const char *name, brc_error *err)
{
    brc_store *store = brc_array_store(a);
    brc_session *s = a->session;
    BRC_TRY(brc_draft_row_drop(store, a->row, err));
    BRC_TRY(brc_draft_node_move(store, s->draft.id, name, a->path, NULL, err));
    s->repo->changes++;
    s->changes = s->repo->changes; /* base and draft are still up to date */
    return brc_array_sync(a, err);
}

static int replace_now(brc_replacing *r, brc_error *err)
{
    brc_json *doc = NULL;
    brc_oid map = {{0}};
    brc_buf name = BRC_BUF_INIT;
    BRC_TRY(hold_within(r, err));
    int rc = r->begin(r->ctx, r->from, &doc, &map, err);
    if (rc > 0) {
        rc = make_new(r, doc, &map, &name, err);
        if (rc == BRC_OK)
            rc = brc_array_sync(r->a, err);
        if (rc == BRC_OK)
            rc = take_place(r->a, (const char *)name.data, err);
    }
    brc_buf_dispose(&name);
    brc_json_free(doc);
    brc_array_free(r->from);
    return rc;
}

static int replace_within(brc_replacing *r, brc_error *err)
{
    BRC_TRY(brc_bulk_check_none(r->a->session, "no array can be rewritten", err));
    BRC_TRY(brc_gc_last(brc_array_store(r->a), &r->collected, err));
    BRC_TRY(brc_array_begin(r->a, err));
    return brc_array_end(r->a, replace_now(r, err), err);
}

static int replace_steps(void *ctx, int insists, brc_error *err)
{
    return insists ? replace_within(ctx, err) : replace_once(ctx, err);
}

int brc_array_replace(brc_replacing *r, brc_error *err)
{
    const brc_file_change change = {.ctx = r, .steps = replace_steps};
    brc_store *store = brc_array_store(r->a);
    BRC_TRY(brc_session_can_change(r->a->session, err));
    BRC_TRY(brc_store_writable(store, err));
    return brc_change_run(store, &change, err);
}

/* ==== array shrink ================================ */

/* ---- chunks outside -------------------------------- */

/* The number of chunks that are removed from the map at once, in one transaction, so that memory
 * does not grow with the array. */
enum { DROP_BATCH = 8192 };

typedef struct outside_keys {
    brc_map_cursor cursor; /* of the old map */
    const uint64_t *grid;
    int ndim;
    size_t n;
    brc_edit edits[DROP_BATCH];
    uint8_t keys[DROP_BATCH][BRC_CHUNK_KEY_MAX];
} outside_keys;

static int is_outside(const outside_keys *o, brc_span key, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM];
    if (brc_chunk_key_decode(key.data, key.len, index) != o->ndim)
        return brc_fail(err, BRC_ECORRUPT, "a chunk's key is damaged; run 'breccia fsck'");
    for (int i = 0; i < o->ndim; i++)
        if (index[i] >= o->grid[i])
            return 1;
    return 0;
}

/* Lists the next of them; none at the end. */
static int list_outside(brc_store *store, outside_keys *o, brc_error *err)
{
    o->n = 0;
    while (o->n < DROP_BATCH) {
        BRC_TRY(brc_map_cursor_descend(&o->cursor, err));
        if (o->cursor.at_end)
            break;
        const brc_span key = {o->cursor.head.key, o->cursor.head.bits / 8};
        int rc = is_outside(o, key, err);
        if (rc < 0)
            return rc;
        if (rc > 0) {
            memcpy(o->keys[o->n], key.data, key.len);
            o->edits[o->n] = (brc_edit){o->keys[o->n], key.len, NULL, 0};
            o->n++;
        }
        BRC_TRY(brc_map_cursor_step(&o->cursor, err));
        brc_store_breathe(store);
    }
    return BRC_OK;
}

static int list_in_read(brc_store *store, outside_keys *o, brc_error *err)
{
    BRC_TRY(brc_store_begin_read(store, err));
    int rc = list_outside(store, o, err);
    brc_store_end_read(store);
    if (rc == BRC_OK)
        rc = brc_store_check_interrupt(store, err);
    return rc < 0 ? rc : o->n > 0;
}

static int drop_listed(brc_store *store, const outside_keys *o, brc_oid *map, brc_error *err)
{
    const brc_oid before = *map;
    BRC_TRY(brc_store_begin(store, err));
    int rc = brc_map_edit_total(store, &before, o->edits, o->n, NULL, map, err);
    const int ended = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : ended;
}

int brc_chunks_drop_outside(brc_store *store, int ndim, const uint64_t *grid, brc_oid *map,
                            brc_error *err)
{
    void *p;
    BRC_TRY(brc_new(&p, sizeof(outside_keys), err));
    outside_keys *o = p;
    o->grid = grid;
    o->ndim = ndim;
    int rc = brc_map_cursor_start(&o->cursor, store, map, err);
    while (rc >= 0 && (rc = list_in_read(store, o, err)) > 0)
        rc = drop_listed(store, o, map, err);
    brc_map_cursor_end(&o->cursor);
    free(o);
    return rc;
}

int brc_array_has_few_chunks(brc_array *a, int *few, brc_error *err)
{
    brc_node_total total;
    int large, found = 1;
    *few = 0;
    BRC_TRY(brc_stack_is_large(brc_array_store(a), &a->stack, &large, err));
    if (large)
        return BRC_OK;
    memset(&total, 0, sizeof(total));
    if (!brc_oid_is_zero(&a->entry.map))
        BRC_TRY(brc_total_row(brc_array_store(a), &a->entry.map, NULL, &found, &total, err));
    *few = found && total.chunks <= DROP_BATCH;
    return BRC_OK;
}

/* ---- chunks beyond the grid -------------------------------- */

/* The most chunks of a small edge, and the most places that are looked up in one transaction. */
#define SMALL_EDGE 65536
#define FEW_PLACES 4096
#define PLACES_MOST 256

static int drop_one(brc_array *a, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    BRC_TRY(brc_array_note_old(a, index, id, err));
    return brc_array_put_chunk(a, index, NULL, err);
}

static int drop_places(brc_array *a, const uint64_t *first, const uint64_t *count, uint64_t places,
                       brc_error *err)
{
    const int ndim = a->meta.ndim;
    uint64_t indexes[PLACES_MOST * BRC_MAX_NDIM];
    brc_oid ids[PLACES_MOST];
    for (uint64_t at = 0; at < places;) {
        size_t n = 0;
        for (; n < PLACES_MOST && at < places; n++, at++)
            brc_part_index(ndim, first, count, at, indexes + n * (size_t)ndim);
        BRC_TRY(brc_array_chunk_ids(a, n, indexes, ids, err));
        for (size_t i = 0; i < n; i++)
            if (!brc_oid_is_zero(&ids[i]))
                BRC_TRY(drop_one(a, indexes + i * (size_t)ndim, &ids[i], err));
        BRC_TRY(brc_store_rest(brc_array_store(a), 0, err));
    }
    return BRC_OK;
}

/* Drops by looking at all stored chunks from `first` on: there are too many places to look each one
 * up. */
static int drop_found(brc_array *a, int axis, const uint64_t *first, brc_error *err)
{
    brc_chunk_cursor c;
    uint64_t index[BRC_MAX_NDIM];
    brc_oid id;
    int rc = axis == 0 ? brc_chunk_cursor_start_at(&c, a, first, err)
                       : brc_chunk_cursor_start(&c, a, err);
    while (rc >= 0 && (rc = brc_chunk_cursor_next(&c, index, &id, err)) > 0)
        if (index[axis] >= first[axis])
            rc = drop_one(a, index, &id, err);
    brc_chunk_cursor_end(&c);
    return rc;
}

/* Counts the places beyond the grid along one axis, in all shards. */
static uint64_t places_beyond(const brc_array *a, int axis, const uint64_t *shape, uint64_t *first,
                              uint64_t *count)
{
    const brc_meta *m = &a->meta;
    uint64_t places = 1;
    memset(first, 0, BRC_MAX_NDIM * sizeof(*first));
    for (int i = 0; i < m->ndim; i++)
        count[i] = brc_mul_capped(m->outer.count[i], m->outer.chunk[i] / m->grid.chunk[i]);
    first[axis] = m->grid.count[axis];
    count[axis] -= first[axis];
    if (shape[axis] == m->shape[axis])
        return 0;
    for (int i = 0; i < m->ndim; i++)
        places = brc_mul_capped(places, count[i]);
    return places;
}

int brc_array_has_few_beyond(const brc_array *a, const uint64_t *shape)
{
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM], sum = 0;
    for (int i = 0; i < a->meta.ndim && a->meta.nlevels > 0; i++)
        if (!brc_add_u64(sum, places_beyond(a, i, shape, first, count), &sum))
            return 0;
    return sum <= FEW_PLACES;
}

int brc_array_drop_beyond(brc_array *a, const uint64_t *shape, brc_error *err)
{
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    for (int i = 0; i < a->meta.ndim && a->meta.nlevels > 0; i++) {
        const uint64_t places = places_beyond(a, i, shape, first, count);
        if (places > 0)
            BRC_TRY(places <= SMALL_EDGE ? drop_places(a, first, count, places, err)
                                         : drop_found(a, i, first, err));
    }
    return BRC_OK;
}

/* ---- the chunks of the edges -------------------------------- */

/* Lists the stored chunks that the array's end cuts, axis by axis: looks up each chunk of a small
 * edge, and searches all stored chunks for those of a large one. A chunk that lies in two edges is
 * listed with the first. */
struct brc_edges {
    brc_array *a;
    uint64_t keep[BRC_MAX_NDIM];  /* elements that stay; UINT64_MAX: this axis cuts no chunk */
    uint64_t count[BRC_MAX_NDIM]; /* the box of chunks that are kept               */
    int axis;                     /* the axis of the present edge; -1: none yet    */
    uint64_t box[BRC_MAX_NDIM];   /* the present edge: one chunk along `axis`      */
    uint64_t next[BRC_MAX_NDIM];
    int in_box, ended;
    brc_chunk_cursor cursor;
};

static int is_in_edge(const brc_edges *e, int axis, const uint64_t *index)
{
    return e->keep[axis] != UINT64_MAX && index[axis] == e->count[axis] - 1;
}

static uint64_t edge_chunks(const brc_edges *e, int axis)
{
    uint64_t chunks = 1;
    for (int i = 0; i < e->a->meta.ndim; i++)
        chunks = brc_mul_capped(chunks, i == axis ? 1 : e->count[i]);
    return chunks;
}

/* Moves to the next axis whose edge is cut; 0 at the end. */
static int edge_turn(brc_edges *e, brc_error *err)
{
    const int ndim = e->a->meta.ndim;
    if (e->axis >= 0 && !e->in_box)
        brc_chunk_cursor_end(&e->cursor);
    e->in_box = 1;
    do {
        if (++e->axis >= ndim)
            return 0;
    } while (e->keep[e->axis] == UINT64_MAX);
    memcpy(e->box, e->count, sizeof(e->box));
    e->box[e->axis] = 1;
    memset(e->next, 0, sizeof(e->next));
    e->ended = 0;
    if (edge_chunks(e, e->axis) <= SMALL_EDGE)
        return 1;
    e->in_box = 0;
    BRC_TRY(brc_chunk_cursor_start(&e->cursor, e->a, err));
    return 1;
}

/* Returns 1 with the next chunk of this axis' edge; *id is zero if it has not been looked up. */
static int edge_step(brc_edges *e, uint64_t *index, brc_oid *id, brc_error *err)
{
    const int ndim = e->a->meta.ndim;
    int rc = 0;
    memset(id, 0, sizeof(*id));
    if (!e->in_box) {
        while ((rc = brc_chunk_cursor_next(&e->cursor, index, id, err)) > 0)
            if (index[e->axis] == e->count[e->axis] - 1)
                break;
        return rc;
    }
    if (e->ended)
        return 0;
    memcpy(index, e->next, sizeof(e->next));
    index[e->axis] = e->count[e->axis] - 1;
    e->ended = !brc_index_next(ndim, e->next, e->box);
    return 1;
}

static int was_in_edge(const brc_edges *e, const uint64_t *index)
{
    int was = 0;
    for (int i = 0; i < e->axis; i++)
        was |= is_in_edge(e, i, index);
    return was;
}

/* Finds the next chunks of this axis' edge, at most cap; leaves out absent ones. */
static int edge_find(brc_edges *e, brc_write_item *items, size_t cap, size_t *n, brc_error *err)
{
    uint64_t indexes[BRC_WRITE_ITEMS * BRC_MAX_NDIM], index[BRC_MAX_NDIM];
    brc_oid ids[BRC_WRITE_ITEMS];
    const size_t ndim = (size_t)e->a->meta.ndim;
    size_t found = 0;
    int rc = 1;
    while (found < cap && found < BRC_WRITE_ITEMS) {
        rc = edge_step(e, index, &ids[found], err);
        if (rc <= 0)
            break;
        if (!was_in_edge(e, index))
            memcpy(indexes + found++ * ndim, index, ndim * sizeof(*indexes));
    }
    BRC_TRY(rc);
    if (e->in_box && found > 0)
        BRC_TRY(brc_array_chunk_ids(e->a, found, indexes, ids, err));
    for (size_t i = 0; i < found; i++) {
        brc_write_item *item = &items[*n];
        if (brc_oid_is_zero(&ids[i]))
            continue;
        memcpy(item->index, indexes + i * ndim, ndim * sizeof(*indexes));
        item->is_part = 1;
        item->was = item->old.id = ids[i];
        ++*n;
        BRC_TRY(brc_array_note_old(e->a, indexes + i * ndim, &ids[i], err));
    }
    return rc > 0;
}

static int edge_list(void *ctx, brc_write_item *items, size_t cap, size_t *n, brc_error *err)
{
    brc_edges *e = ctx;
    int rc = 1;
    *n = 0;
    BRC_TRY(brc_task_step(e->a->session->repo, 0, err));
    while (*n == 0 && rc > 0) {
        rc = e->axis >= 0 && e->axis < e->a->meta.ndim ? edge_find(e, items, cap, n, err) : 0;
        if (rc == 0 && *n == 0 && e->axis < e->a->meta.ndim)
            rc = edge_turn(e, err);
    }
    BRC_TRY(rc);
    for (size_t i = 0; i < *n; i++) {
        uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
        brc_grid_chunk(&e->a->meta.grid, items[i].index, corner, chunk);
        BRC_TRY(brc_array_item(e->a, chunk, &items[i], err));
    }
    return BRC_OK;
}

/* ---- on the pool -------------------------------- */

static int edge_gather_fixed(const brc_edges *e, brc_write_item *item, brc_scratch *scratch,
                             brc_error *err)
{
    const brc_meta *m = &e->a->meta;
    const size_t unit = m->type->item_size, len = (size_t)item->elements * unit;
    BRC_TRY(brc_buf_reserve(&item->own, len, err));
    if (item->old.found)
        BRC_TRY(brc_write_old(item, scratch, &item->own, err));
    else /* the chunk has been removed meanwhile */
        brc_fill_run(item->own.data, item->elements, unit, m->fill.data);
    if (item->old.found && item->own.len != len)
        return brc_fail(err, BRC_ECORRUPT, "its bytes have the wrong length");
    brc_fill_past(e->a, item->index, e->keep, item->own.data, unit, m->fill.data);
    item->own.len = item->len = len;
    item->data = item->own.data;
    return BRC_OK;
}

static int edge_gather(void *ctx, brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    const brc_edges *e = ctx;
    const brc_meta *m = &e->a->meta;
    const brc_span fill = {m->fill.data, m->fill.len};
    void *table;
    if (!brc_meta_is_variable(m))
        return edge_gather_fixed(e, item, scratch, err);
    BRC_TRY(brc_new_array(&table, (size_t)item->elements, sizeof(brc_span), err));
    brc_fill_past(e->a, item->index, e->keep, table, sizeof(brc_span), &fill);
    int rc = brc_gather_elements(item, table, m, scratch, err);
    free(table);
    return rc;
}

/* ---- after the flow -------------------------------- */

static int edge_done(void *ctx, const brc_write_item *item, brc_error *err)
{
    const brc_edges *e = ctx;
    return brc_array_put_chunk(e->a, item->index, item->is_fill ? NULL : &item->id, err);
}

static int edge_now(void *ctx, const brc_write_item *item, brc_oid *id, brc_error *err)
{
    const brc_edges *e = ctx;
    return brc_array_chunk_ids(e->a, 1, item->index, id, err);
}

static void edge_name(void *ctx, const brc_write_item *item, brc_error *err)
{
    const brc_edges *e = ctx;
    brc_array_name_chunk(e->a, item->index, err);
}

/* Returns the number of chunks that it may have to look at; 0: no edge is cut. */
static uint64_t plan_edges(brc_edges *e, const uint64_t *keep, const uint64_t *shape)
{
    const brc_meta *m = &e->a->meta;
    uint64_t chunks = 0;
    for (int i = 0; i < m->ndim; i++) {
        if (keep[i] == 0)
            return 0; /* nothing is left */
        e->count[i] = brc_grid_find(&m->grid, i, keep[i] - 1) + 1;
        const int cuts = brc_grid_round_up(&m->grid, i, keep[i]) != keep[i];
        e->keep[i] = cuts && shape[i] != m->shape[i] ? keep[i] : UINT64_MAX;
    }
    for (int i = 0; i < m->ndim; i++)
        if (e->keep[i] != UINT64_MAX &&
            !brc_add_u64(chunks, edge_chunks(e, i), &chunks))
            return UINT64_MAX;
    return chunks;
}

uint64_t brc_array_edge_chunks(brc_array *a, const uint64_t *keep, const uint64_t *shape)
{
    brc_edges e = {.a = a};
    return plan_edges(&e, keep, shape);
}

static brc_write_ops edge_ops(brc_edges *e)
{
    const brc_array *a = e->a;
    return (brc_write_ops){
        .ctx = e,
        .len = (size_t)brc_shape_count(a->meta.ndim, a->meta.grid.chunk) * brc_array_unit(a),
        .list = edge_list,
        .gather = edge_gather,
        .done = edge_done,
        .name = edge_name,
        .now = edge_now,
    };
}

/* Makes the edges; *chunks: the result of plan_edges(). */
static int new_edges(brc_edges **out, brc_array *a, const uint64_t *keep, const uint64_t *shape,
                     uint64_t *chunks, brc_error *err)
{
    void *p;
    BRC_TRY(brc_new(&p, sizeof(brc_edges), err));
    *out = p;
    (*out)->a = a;
    (*out)->axis = -1;
    *chunks = plan_edges(*out, keep, shape);
    return BRC_OK;
}

void brc_edges_free(brc_edges *e)
{
    if (e != NULL && e->axis >= 0 && !e->in_box)
        brc_chunk_cursor_end(&e->cursor);
    free(e);
}

int brc_array_clean_edges(brc_array *a, const uint64_t *keep, const uint64_t *shape, brc_error *err)
{
    brc_edges *e;
    uint64_t chunks;
    BRC_TRY(new_edges(&e, a, keep, shape, &chunks, err));
    const brc_write_ops ops = edge_ops(e);
    int rc = chunks > 0 ? brc_flow_write(&a->session->repo->pipe, brc_array_store(a), &ops, err)
                        : BRC_OK;
    brc_edges_free(e);
    return rc;
}

int brc_edges_prepare(brc_prepared **out, brc_edges **edges, brc_array *a, const uint64_t *keep,
                      const uint64_t *shape, brc_error *err)
{
    uint64_t chunks;
    *out = NULL;
    BRC_TRY(new_edges(edges, a, keep, shape, &chunks, err));
    if (chunks == 0)
        return BRC_OK;
    if (chunks > 1 && brc_chunks_memory(a, chunks) > BRC_SMALL_BYTES)
        return BRC_CHANGE_MUCH;
    const brc_write_ops ops = edge_ops(*edges);
    return brc_flow_prepare(out, &a->session->repo->pipe, brc_array_store(a), &ops, err);
}
