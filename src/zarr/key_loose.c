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

int brc_loose_chunks(brc_array *a, brc_error *err)
{
    brc_outer_cursor c;
    brc_buf key = BRC_BUF_INIT, value = BRC_BUF_INIT;
    uint64_t outer[BRC_MAX_NDIM] = {0};
    brc_oid id;
    int rc = brc_outer_cursor_start(&c, a, NULL, err);
    while (rc >= 0 && (rc = brc_outer_cursor_next(&c, outer, &id, err)) > 0) {
        rc = loosen_one(a, outer, &key, &value, err);
        if (rc >= 0)
            rc = 1;
    }
    brc_outer_cursor_end(&c);
    brc_buf_dispose(&key);
    brc_buf_dispose(&value);
    return rc;
}

static int is_beyond(const brc_meta *meta, const uint64_t *outer)
{
    for (int i = 0; i < meta->ndim; i++)
        if (outer[i] >= meta->outer.count[i])
            return 1;
    return 0;
}

int brc_drop_chunks_beyond(brc_array *a, const brc_meta *meta, brc_error *err)
{
    brc_outer_cursor c;
    uint64_t outer[BRC_MAX_NDIM] = {0};
    brc_oid id;
    int rc = brc_outer_cursor_start(&c, a, NULL, err);
    while (rc >= 0 && (rc = brc_outer_cursor_next(&c, outer, &id, err)) > 0)
        if (is_beyond(meta, outer) && (rc = brc_put_drop(a, outer, err)) < 0)
            break;
    brc_outer_cursor_end(&c);
    return rc < 0 ? rc : BRC_OK;
}
