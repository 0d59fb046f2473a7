#include "key_chunks.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "transfer.h"

/* The indexes that the prefix has in full: each is a number and the separator. What is no chunk key
 * is left to the comparison of texts. */
static void read_fixed(brc_key_chunks *c)
{
    const brc_meta *m = &c->array->meta;
    const char *at = c->prefix;
    c->nfixed = 0;
    if (!m->v2_keys) {
        if (at[0] != 'c' || at[1] != m->separator)
            return;
        at += 2;
    }
    while (c->nfixed < c->ndim) {
        uint64_t value = 0;
        const char *digit = at;
        for (; *digit >= '0' && *digit <= '9'; digit++)
            if (!brc_mul_u64(value, 10, &value) ||
                !brc_add_u64(value, (uint64_t)(*digit - '0'), &value))
                return;
        if (digit == at || *digit != m->separator)
            return;
        c->fixed[c->nfixed++] = value;
        at = digit + 1;
    }
}

int brc_key_chunks_open(brc_key_chunks *c, brc_session *s, const char *path, const char *prefix,
                        brc_error *err)
{
    memset(c, 0, sizeof(*c));
    BRC_TRY(brc_array_open(&c->array, s, path, err));
    int rc = brc_dup(&c->prefix, prefix, err);
    if (rc < 0) {
        brc_key_chunks_close(c);
        return rc;
    }
    c->ndim = c->array->meta.ndim;
    read_fixed(c);
    return BRC_OK;
}

static void close_cursor(brc_key_chunks *c)
{
    if (c->has_cursor)
        brc_outer_cursor_end(&c->cursor);
    c->has_cursor = 0;
}

void brc_key_chunks_close(brc_key_chunks *c)
{
    close_cursor(c);
    brc_array_free(c->array);
    free(c->prefix);
    memset(c, 0, sizeof(*c));
}

int brc_key_chunks_begin(brc_key_chunks *c, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    int rc = brc_array_begin_read(c->array, &why);
    if (rc == BRC_ENOTFOUND || rc == BRC_EINVAL)
        return 0;
    if (rc < 0) {
        if (err != NULL)
            brc_error_copy(err, &why);
        return rc;
    }
    if (c->array->meta.ndim == c->ndim)
        return 1;
    brc_array_end_read(c->array);
    return 0;
}

void brc_key_chunks_end(brc_key_chunks *c)
{
    brc_array_end_read(c->array);
}

/* After a change the cursor starts anew, where it was. */
static int follow_array(brc_key_chunks *c, brc_error *err)
{
    const brc_array *a = c->array;
    uint64_t from[BRC_MAX_NDIM] = {0};
    if (c->has_cursor && a->version == c->version && a->changes == c->changes)
        return BRC_OK;
    close_cursor(c);
    if (c->any)
        memcpy(from, c->last, sizeof(from));
    if (c->any && a->meta.nlevels > 0 && c->ndim > 1 && from[1] == UINT64_MAX)
        from[0]++; /* the row is done */
    if (!c->any)
        memcpy(from, c->fixed, (size_t)c->nfixed * sizeof(*from));
    c->has_cursor = 1;
    c->version = a->version;
    c->changes = a->changes;
    return brc_outer_cursor_start(&c->cursor, a, from, err);
}

/* 0 where it is behind all that have the prefix's indexes. */
static int is_within(const brc_key_chunks *c, const uint64_t *index)
{
    return brc_index_order(c->nfixed, index, c->fixed) <= 0;
}

int brc_key_chunks_next(brc_key_chunks *c, brc_buf *key, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM] = {0};
    brc_oid id;
    int rc;
    BRC_TRY(follow_array(c, err));
    while ((rc = brc_outer_cursor_next(&c->cursor, index, &id, err)) > 0) {
        if (c->any && brc_index_order(c->ndim, index, c->last) <= 0)
            continue;
        if (!is_within(c, index))
            return 0;
        memcpy(c->last, index, sizeof(index));
        c->any = 1;
        key->len = 0;
        BRC_TRY(brc_chunk_key_format(c->array, index, key, err));
        if (strncmp((const char *)key->data, c->prefix, strlen(c->prefix)) == 0)
            return 1;
    }
    return rc;
}

void brc_key_chunks_skip(brc_key_chunks *c, int n)
{
    if (n >= c->ndim)
        return;
    for (int i = n; i < c->ndim; i++)
        c->last[i] = UINT64_MAX;
    /* Shards of one row are sorted in memory: within it they are passed over one by one. */
    if (c->array->meta.nlevels == 0 || n == 1)
        close_cursor(c);
}
