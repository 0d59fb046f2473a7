/* Chunk keys of a Zarr store: "c/0/1" (default) or "0.1" (v2), by the document's encoding. */
#include <inttypes.h>
#include <string.h>

#include "../base/alloc.h"
#include "meta.h"

int brc_meta_key_format(const brc_meta *m, const uint64_t *index, brc_buf *out, brc_error *err)
{
    if (!m->v2_keys)
        BRC_TRY(brc_buf_text(out, "c", err));
    else if (m->ndim == 0)
        BRC_TRY(brc_buf_text(out, "0", err));
    for (int i = 0; i < m->ndim; i++) {
        if (i > 0 || !m->v2_keys)
            BRC_TRY(brc_buf_byte(out, (uint8_t)m->separator, err));
        BRC_TRY(brc_buf_printf(out, err, "%" PRIu64, index[i]));
    }
    return brc_buf_terminate(out, err);
}

/* A decimal number without sign or leading zeros. */
static const char *read_coordinate(const char *at, uint64_t *out)
{
    uint64_t v = 0;
    if (*at < '0' || *at > '9' || (*at == '0' && at[1] >= '0' && at[1] <= '9'))
        return NULL;
    for (; *at >= '0' && *at <= '9'; at++)
        if (!brc_mul_u64(v, 10, &v) || !brc_add_u64(v, (uint64_t)(*at - '0'), &v))
            return NULL;
    *out = v;
    return at;
}

int brc_meta_key_parse(const brc_meta *m, const char *key, uint64_t *index, int *inside)
{
    *inside = 1;
    if (m->ndim == 0)
        return strcmp(key, m->v2_keys ? "0" : "c") == 0;
    if (!m->v2_keys) {
        if (key[0] != 'c' || key[1] != m->separator)
            return 0;
        key += 2;
    }
    for (int i = 0; i < m->ndim; i++) {
        if (i > 0 && *key++ != m->separator)
            return 0;
        key = read_coordinate(key, &index[i]);
        if (key == NULL)
            return 0;
        *inside &= index[i] < m->outer.count[i];
    }
    return *key == '\0';
}
