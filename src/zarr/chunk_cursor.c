#include "chunk_cursor.h"

#include <string.h>

#include "../tree/chunk_key.h"

static int cursor_key_order(brc_span a, brc_span b)
{
    size_t min = a.len < b.len ? a.len : b.len;
    int order = min > 0 ? memcmp(a.data, b.data, min) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* ---- rows -------------------------------- */

static int cursor_keep_row(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id,
                           brc_error *err)
{
    brc_chunk_cursor *c = ctx;
    brc_chunk_row *row = &c->page[c->n];
    uint8_t *copy;
    BRC_TRY(brc_arena_copy(&c->arena, key, key_len, &copy, err));
    memset(row, 0, sizeof(*row));
    row->key = (brc_span){copy, key_len};
    if (id != NULL)
        row->id = *id;
    c->n++;
    return BRC_OK;
}

/* The next page of rows, behind the last of this one. */
static int cursor_read_rows(brc_chunk_cursor *c, brc_error *err)
{
    brc_arena old = c->arena;
    /* Keys behind `from` without its last byte are from it on, but for a few. */
    brc_span after = c->n > 0 ? c->rows[c->n - 1].key
                     : c->from_len > 0 ? (brc_span){c->from, c->from_len - 1} : (brc_span){NULL, 0};
    c->arena = (brc_arena)BRC_ARENA_INIT;
    c->n = c->at = 0;
    int rc = brc_draft_chunk_page(brc_array_store(c->a), &c->a->stack, after, BRC_CHUNK_ROWS,
                                  cursor_keep_row, c, err);
    brc_arena_dispose(&old);
    c->rows_end = c->n < BRC_CHUNK_ROWS;
    return rc;
}

static int cursor_look_at_rows(brc_chunk_cursor *c, const brc_chunk_row **row, brc_error *err)
{
    const brc_span from = {c->from, c->from_len};
    for (;; c->at++) {
        if (c->at == c->n && !c->rows_end)
            BRC_TRY(cursor_read_rows(c, err));
        *row = c->at < c->n ? &c->rows[c->at] : NULL;
        if (*row == NULL || c->from_len == 0 || cursor_key_order((*row)->key, from) >= 0)
            return BRC_OK;
    }
}

/* ---- both -------------------------------- */

int brc_chunk_cursor_start(brc_chunk_cursor *c, const brc_array *a, brc_error *err)
{
    memset(c, 0, sizeof(*c));
    c->a = a;
    c->rows = a->frozen != NULL ? a->frozen->rows : c->page;
    c->n = a->frozen != NULL ? a->frozen->n : 0;
    c->rows_end = a->frozen != NULL || !a->row_has_chunks;
    return brc_map_cursor_start(&c->map, brc_array_store(a), &a->entry.map, err);
}

int brc_chunk_cursor_start_at(brc_chunk_cursor *c, const brc_array *a, const uint64_t *from,
                              brc_error *err)
{
    BRC_TRY(brc_chunk_cursor_start(c, a, err));
    c->from_len = brc_chunk_key_encode(c->from, a->meta.ndim, from);
    return brc_map_cursor_seek(&c->map, c->from, c->from_len, err);
}

void brc_chunk_cursor_end(brc_chunk_cursor *c)
{
    brc_map_cursor_end(&c->map);
    brc_arena_dispose(&c->arena);
}

static int cursor_index(const brc_chunk_cursor *c, brc_span key, uint64_t *index, brc_error *err)
{
    if (brc_chunk_key_decode(key.data, key.len, index) == c->a->meta.ndim)
        return BRC_OK;
    return brc_fail(err, BRC_ECORRUPT, "%s: a chunk's key is damaged; run 'breccia fsck'",
                    c->a->path);
}

/* What comes next in the map, in the rows, or in both, where the row says what is. */
static int cursor_take(brc_chunk_cursor *c, const brc_chunk_row *row, uint64_t *index, brc_oid *id,
                       brc_error *err)
{
    brc_span key = {c->map.head.key, c->map.head.bits / 8};
    int order = row == NULL ? 1 : c->map.at_end ? -1 : brc_chunk_key_order(row->key, key);
    if (order > 0) {
        BRC_TRY(cursor_index(c, key, index, err));
        BRC_TRY(brc_chunk_id_of(c->map.head.value, brc_store_id_len(brc_array_store(c->a)), id,
                                err));
    } else {
        BRC_TRY(cursor_index(c, row->key, index, err));
        *id = row->id;
        c->at++;
    }
    return order >= 0 ? brc_map_cursor_step(&c->map, err) : BRC_OK;
}

int brc_chunk_cursor_next(brc_chunk_cursor *c, uint64_t *index, brc_oid *id, brc_error *err)
{
    const brc_chunk_row *row;
    do {
        BRC_TRY(brc_store_check_interrupt(brc_array_store(c->a), err));
        BRC_TRY(brc_map_cursor_descend(&c->map, err));
        BRC_TRY(cursor_look_at_rows(c, &row, err));
        if (c->map.at_end && row == NULL)
            return 0;
        BRC_TRY(cursor_take(c, row, index, id, err));
    } while (brc_oid_is_zero(id)); /* dropped */
    if (!brc_meta_has_place(&c->a->meta, index))
        return brc_fail(err, BRC_ECORRUPT,
                        "%s: a chunk is outside the array's grid; run 'breccia fsck'", c->a->path);
    return 1;
}
