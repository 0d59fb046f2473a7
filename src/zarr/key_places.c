/* Where the chunks are that keys name: for clients who know arrays by their keys alone. */
#include <string.h>

#include "key_arrays.h"

/* Looked up in one transaction. */
#define PLACES_MOST 512

typedef struct key_places {
    brc_session *s;
    const char *const *keys;
    int ndim;
    brc_buf *path; /* of the first key's array, from `start` on, without a NUL */
    size_t start;
    uint64_t *index;
    uint8_t *there;
} key_places;

static int is_same_array(const key_places *p, const brc_array *a)
{
    const size_t len = strlen(a->path);
    return p->path->len - p->start == len && memcmp(p->path->data + p->start, a->path, len) == 0;
}

static int place_key(const key_places *p, size_t i, brc_error *err)
{
    brc_key_place place;
    int exists = 0;
    BRC_TRY(brc_key_find(&place, p->s, p->keys[i], err));
    if (place.what != BRC_KEY_IS_CHUNK)
        return brc_fail(err, BRC_ENOTFOUND, "the key '%.200s' is not a chunk's", p->keys[i]);
    brc_array *a = &place.array->array;
    if (a->meta.ndim != p->ndim)
        return brc_fail(err, BRC_EINVAL, "%s has %d dimensions, not %d", a->path, a->meta.ndim,
                        p->ndim);
    if (i == 0)
        BRC_TRY(brc_buf_append(p->path, a->path, strlen(a->path), err));
    if (!is_same_array(p, a))
        return brc_fail(err, BRC_EINVAL, "the key '%.200s' is not of the array of '%.200s'",
                        p->keys[i], p->keys[0]);
    memcpy(p->index + i * (size_t)p->ndim, place.outer, (size_t)p->ndim * sizeof(*p->index));
    if (p->there == NULL)
        return BRC_OK;
    BRC_TRY(brc_key_chunk_exists(&exists, a, place.outer, err));
    p->there[i] = (uint8_t)exists;
    return BRC_OK;
}

int brc_key_places(brc_buf *path, uint64_t *index, uint8_t *there, brc_session *s,
                   const char *const *keys, size_t n, int ndim, brc_error *err)
{
    const key_places p = {s, keys, ndim, path, path->len, index, there};
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK;) {
        const size_t end = n - i < PLACES_MOST ? n : i + PLACES_MOST;
        BRC_TRY(brc_session_begin_read(s, err));
        for (; i < end && rc == BRC_OK; i++)
            rc = place_key(&p, i, err);
        brc_session_end_read(s);
    }
    return rc;
}
