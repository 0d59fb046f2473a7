#include "frozen_rows.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

#define FROZEN_PAGE 4096

static int frozen_keep(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id,
                       brc_error *err)
{
    brc_frozen_rows *out = ctx;
    uint8_t *copy;
    BRC_TRY(brc_grow_array(&out->rows, &out->cap, out->n + 1, sizeof(brc_chunk_row), err));
    BRC_TRY(brc_arena_copy(&out->arena, key, key_len, &copy, err));
    brc_chunk_row *row = &((brc_chunk_row *)out->rows)[out->n++];
    memset(row, 0, sizeof(*row));
    row->key = (brc_span){copy, key_len};
    if (id != NULL)
        row->id = *id;
    return BRC_OK;
}

int brc_frozen_rows_read(brc_frozen_rows *out, brc_store *store, const brc_draft_stack *stack,
                         size_t most, int *all, brc_error *err)
{
    brc_span after = {NULL, 0};
    size_t before;
    int rc = BRC_OK;
    memset(out, 0, sizeof(*out));
    do {
        before = out->n;
        rc = brc_draft_chunk_page(store, stack, after, FROZEN_PAGE, frozen_keep, out, err);
        if (rc == BRC_OK && out->n > 0)
            after = ((const brc_chunk_row *)out->rows)[out->n - 1].key;
    } while (rc == BRC_OK && out->n - before == FROZEN_PAGE && out->n <= most);
    *all = rc == BRC_OK && out->n <= most;
    if (!*all)
        brc_frozen_rows_dispose(out);
    return rc;
}

void brc_frozen_rows_dispose(brc_frozen_rows *rows)
{
    brc_arena_dispose(&rows->arena);
    free(rows->rows);
    memset(rows, 0, sizeof(*rows));
}

int brc_chunk_key_order(brc_span a, brc_span b)
{
    size_t min = a.len < b.len ? a.len : b.len;
    int order = min > 0 ? memcmp(a.data, b.data, min) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int frozen_order(const void *key, const void *row)
{
    return brc_chunk_key_order(*(const brc_span *)key, ((const brc_chunk_row *)row)->key);
}

const brc_chunk_row *brc_frozen_rows_find(const brc_frozen_rows *rows, const void *key, size_t len)
{
    const brc_span wanted = {key, len};
    return rows->n > 0
               ? bsearch(&wanted, rows->rows, rows->n, sizeof(brc_chunk_row), frozen_order)
               : NULL;
}
