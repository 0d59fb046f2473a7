#include "hand_written.h"

#include <string.h>

#include "../history/merge_doc.h"
#include "array.h"

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

/* Attributes may have been set meanwhile. */
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

/* Whether a key is the same box in both; shards within are taken apart. */
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

/* What an array holds of the chunk's box, as it was cut then; 0: nothing. */
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

/* Elements of both are compared by their bits. */
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

/* Of a chunk with another id, or in another grid. */
static int look_at_elements(hand_look *l, int *is, brc_error *err)
{
    brc_sel then, now;
    const int was_there = box_of_chunk(l, THEN, &then);
    const int is_there = box_of_chunk(l, NOW, &now);
    if (!was_there || !is_there) {
        *is = was_there || is_there; /* it was cut off, or is part of what the array has grown by */
        return BRC_OK;
    }
    for (int i = 0; i < now.ndim; i++) {
        if (now.count[i] > then.count[i]) /* only what was written changes an edge that moves out */
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
    *is = then->opaque || now->opaque; /* no element can be told */
    return *is ? BRC_OK : look_at_elements(l, is, err);
}

int brc_chunk_is_hand_written(brc_session *s, const brc_clash *clash, const brc_entry *then,
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
