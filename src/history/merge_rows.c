#include "merge_rows.h"

#include <string.h>

static brc_span value_span(const brc_buf *value)
{
    return (brc_span){value->data, value->len};
}

int brc_clash_put(brc_store *store, int64_t draft, const brc_clash *clash, int in_memory,
                  brc_error *err)
{
    static const uint8_t nothing[1];
    const int is_object = strcmp(clash->member, BRC_CLASH_NODE) == 0 ||
                          strcmp(clash->member, BRC_CLASH_CHUNK) == 0 ||
                          strcmp(clash->member, BRC_CLASH_STORAGE) == 0;
    brc_conflict_row row = {.path = clash->path, .member = clash->member,
                            .key = value_span(&clash->key), .base = value_span(&clash->base),
                            .ours = value_span(&clash->ours), .theirs = value_span(&clash->theirs),
                            .state = clash->settled};
    if (in_memory && is_object && row.base.data != NULL)
        row.base = (brc_span){nothing, 0};
    return brc_conflict_put(store, draft, &row, err);
}

int brc_clash_list_put(brc_store *store, int64_t draft, const brc_clash_list *list, int in_memory,
                       brc_error *err)
{
    for (size_t i = 0; i < list->n; i++)
        BRC_TRY(brc_clash_put(store, draft, &list->items[i], in_memory, err));
    return BRC_OK;
}

static int take_side(brc_buf *out, brc_span value, brc_error *err)
{
    if (value.data == NULL)
        return BRC_OK;
    BRC_TRY(brc_buf_append(out, value.data, value.len, err));
    return brc_buf_terminate(out, err);
}

static int add_conflict(void *ctx, const brc_conflict_row *row, brc_error *err)
{
    brc_clash *clash;
    BRC_TRY(brc_clash_add(ctx, row->path, row->member, &clash, err));
    clash->settled = row->state;
    BRC_TRY(take_side(&clash->key, row->key, err));
    BRC_TRY(take_side(&clash->base, row->base, err));
    BRC_TRY(take_side(&clash->ours, row->ours, err));
    return take_side(&clash->theirs, row->theirs, err);
}

int brc_clash_list_read(brc_clash_list *out, brc_store *store, int64_t draft, brc_error *err)
{
    int rc = brc_conflict_each(store, draft, add_conflict, out, err);
    if (rc < 0)
        brc_clash_list_dispose(out);
    return rc;
}
