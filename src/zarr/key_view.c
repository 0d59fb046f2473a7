/* The Zarr store view: a repository as the keys and values of a Zarr directory. */
#include <string.h>

#include "../base/alloc.h"
#include "key_list.h"
#include "key_value.h"

int brc_key_get(brc_buf *out, brc_session *s, const char *key, brc_error *err)
{
    return brc_key_value(out, s, key, NULL, NULL, err);
}

int brc_key_get_range(brc_buf *out, brc_session *s, const char *key, const brc_key_range *range,
                      brc_key_info *info, brc_error *err)
{
    return brc_key_value(out, s, key, range, info, err);
}

int brc_key_stat(brc_key_info *out, brc_session *s, const char *key, brc_error *err)
{
    return brc_key_value(NULL, s, key, NULL, out, err);
}

/* ---- many -------------------------------- */

/* What a session sees: if two are equal, so is everything in between. */
typedef struct seen_state {
    brc_oid base;
    int64_t draft, changes;
} seen_state;

static int look_at_state(brc_session *s, seen_state *out, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    BRC_TRY(brc_session_begin_read(s, err));
    out->base = s->base;
    out->draft = s->draft.id;
    out->changes = s->draft.id != 0 ? s->draft.changes : 0;
    brc_session_end_read(s);
    return BRC_OK;
}

/* Items of arrays, as long as the caller's version has them. */
static brc_buf *buf_at(brc_buf *out, size_t i)
{
    return (brc_buf *)((char *)out + i * (out->size != 0 ? out->size : sizeof(*out)));
}

static const brc_key_range *range_at(const brc_key_range *ranges, size_t i)
{
    return ranges == NULL ? NULL : (const brc_key_range *)((const char *)ranges + i * ranges->size);
}

static int get_all(brc_buf *out, uint8_t *found, brc_session *s, const char *const *keys,
                   const brc_key_range *ranges, size_t n, brc_error *err)
{
    for (size_t i = 0; i < n; i++) {
        brc_error why = BRC_ERROR_INIT;
        int rc = brc_key_value(buf_at(out, i), s, keys[i], range_at(ranges, i), NULL, &why);
        found[i] = rc == BRC_OK;
        if (rc == BRC_OK || rc == BRC_ENOTFOUND)
            continue;
        if (err != NULL)
            brc_error_copy(err, &why);
        return rc;
    }
    return BRC_OK;
}

/* Each takes a transaction of its own, so that nobody waits while chunks are decoded. Where
 * somebody has changed something in between, all are read again, at last in one transaction. */
int brc_key_get_many(brc_buf *out, uint8_t *found, brc_session *s, const char *const *keys,
                     const brc_key_range *ranges, size_t n, brc_error *err)
{
    seen_state before, after;
    for (int i = 0; i < 3; i++) {
        BRC_TRY(look_at_state(s, &before, err));
        BRC_TRY(get_all(out, found, s, keys, ranges, n, err));
        BRC_TRY(look_at_state(s, &after, err));
        if (memcmp(&before, &after, sizeof(before)) == 0)
            return BRC_OK;
    }
    BRC_TRY(brc_session_begin_read(s, err));
    int rc = get_all(out, found, s, keys, ranges, n, err);
    brc_session_end_read(s);
    return rc;
}

/* ---- is it there -------------------------------- */

int brc_key_exists(int *exists, brc_session *s, const char *key, brc_error *err)
{
    brc_key_place place;
    *exists = 0;
    BRC_TRY(brc_session_begin_read(s, err));
    int rc = brc_key_find(&place, s, key, err);
    if (rc == BRC_OK && place.what == BRC_KEY_IS_CHUNK)
        rc = brc_key_chunk_exists(exists, &place.array->array, place.outer, err);
    else if (rc == BRC_OK)
        *exists = place.what != BRC_KEY_NONE;
    brc_session_end_read(s);
    return rc;
}

int brc_keys_empty(int *empty, brc_session *s, const char *dir, brc_error *err)
{
    const size_t len = strlen(dir);
    brc_buf prefix = BRC_BUF_INIT;
    int any = 0;
    int rc = brc_buf_printf(&prefix, err, "%s%s", dir, len > 0 && dir[len - 1] != '/' ? "/" : "");
    if (rc == BRC_OK)
        rc = brc_keys_any(&any, s, (const char *)prefix.data, 1, err);
    *empty = !any;
    brc_buf_dispose(&prefix);
    return rc;
}
