/* Bytes that are no node or chunk yet; chunks that become such. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "key_rows.h"
#include "outer_cursor.h"
#include "stored_chunk.h"
#include "transfer.h"

int brc_loose_put(brc_session *s, const char *key, brc_span data, brc_error *err)
{
    brc_oid id;
    if (data.len > BRC_MAX_CHUNK_BYTES)
        return brc_fail(err, BRC_ELIMIT, "a value has at most 2^31-1 bytes, not %zu", data.len);
    BRC_TRY(brc_store_put(s->repo->store, BRC_KIND_LOOSE,
                          data.len > 0 ? data.data : (const uint8_t *)"", data.len, &id, err));
    return brc_draft_key_put(s->repo->store, s->draft.id, key, &id, err);
}

static int is_beyond(const brc_array *a, const brc_meta *meta, const uint64_t *outer)
{
    for (int i = 0; meta != NULL && i < a->meta.ndim; i++)
        if (outer[i] >= meta->outer.count[i])
            return 1;
    return meta == NULL;
}

static int loosen_one(brc_array *a, const uint64_t *outer, brc_buf *key, brc_buf *value,
                      brc_error *err)
{
    brc_buf full = BRC_BUF_INIT;
    int there, rc;
    key->len = 0;
    BRC_GO(brc_chunk_key_format(a, outer, key, err));
    BRC_GO(brc_stored_chunk(a, outer, value, &there, err));
    BRC_GO(brc_buf_printf(&full, err, "%s%s%s", a->path + 1, a->path[1] != '\0' ? "/" : "",
                          (const char *)key->data));
    if (there)
        BRC_GO(brc_loose_put(a->session, (const char *)full.data,
                             (brc_span){value->data, value->len}, err));
    rc = brc_put_drop(a, outer, err);
done:
    brc_buf_dispose(&full);
    return rc;
}

/* Chunks within a shard that stays, but outside of the shape: no key names them. */
static int drop_inner(brc_array *a, const brc_meta *meta, const uint64_t *outer, brc_error *err)
{
    uint64_t first[BRC_MAX_NDIM] = {0}, count[BRC_MAX_NDIM], index[BRC_MAX_NDIM] = {0}, n;
    brc_oid id;
    BRC_TRY(brc_outer_box(&a->meta, outer, first, count, &n, err));
    for (uint64_t i = 0; i < n; i++) {
        int outside = 0;
        brc_part_index(a->meta.ndim, first, count, i, index);
        for (int d = 0; d < a->meta.ndim; d++)
            outside |= index[d] >= meta->grid.count[d];
        if (!outside)
            continue;
        BRC_TRY(brc_array_chunk_ids(a, 1, index, &id, err));
        if (!brc_oid_is_zero(&id))
            BRC_TRY(brc_array_put_chunk(a, index, NULL, err));
    }
    return BRC_OK;
}

int brc_loose_chunks(brc_array *a, const brc_meta *meta, brc_error *err)
{
    brc_outer_cursor c;
    brc_buf key = BRC_BUF_INIT, value = BRC_BUF_INIT;
    uint64_t outer[BRC_MAX_NDIM] = {0};
    brc_oid id;
    int rc = brc_outer_cursor_start(&c, a, NULL, err);
    while (rc >= 0 && (rc = brc_outer_cursor_next(&c, outer, &id, err)) > 0) {
        if (is_beyond(a, meta, outer))
            rc = loosen_one(a, outer, &key, &value, err);
        else if (a->meta.nlevels > 0)
            rc = drop_inner(a, meta, outer, err);
        if (rc >= 0)
            rc = 1;
    }
    brc_outer_cursor_end(&c);
    brc_buf_dispose(&key);
    brc_buf_dispose(&value);
    return rc;
}
