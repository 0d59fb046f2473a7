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

/* ---- how much is there -------------------------------- */

static int add_key_size(uint64_t *bytes, brc_session *s, const char *key, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    brc_key_info info = BRC_KEY_INFO_INIT;
    int rc = brc_key_stat(&info, s, key, &why);
    if (rc == BRC_ENOTFOUND) /* it has just gone */
        return BRC_OK;
    if (rc < 0 && err != NULL)
        brc_error_copy(err, &why);
    if (rc == BRC_OK && !brc_add_u64(*bytes, info.length, bytes))
        rc = brc_fail(err, BRC_ELIMIT, "the keys have more bytes than 64 bits can count");
    return rc;
}

int brc_keys_size(uint64_t *bytes, brc_session *s, const char *prefix, brc_error *err)
{
    brc_iter *it;
    const char *key;
    int rc;
    *bytes = 0;
    BRC_TRY(brc_keys_prefix(&it, s, prefix, err));
    while ((rc = brc_keys_next(it, &key, err)) > 0) {
        rc = add_key_size(bytes, s, key, err);
        if (rc < 0)
            break;
    }
    brc_iter_free(it);
    return rc;
}
