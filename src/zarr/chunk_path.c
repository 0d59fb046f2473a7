/* Chunk keys of an array, and lists of indexes. */
#include <stdlib.h>

#include "array.h"
#include "stored_chunk.h"
#include "transfer.h"

int brc_chunk_key_format(const brc_array *a, const uint64_t *index, brc_buf *out, brc_error *err)
{
    return brc_meta_key_format(&a->meta, index, out, err);
}

int brc_chunk_key_parse(const brc_array *a, const char *key, uint64_t *index, int *inside)
{
    return brc_meta_key_parse(&a->meta, key, index, inside);
}

static int index_order(const void *a, const void *b, void *width)
{
    return brc_index_order((int)*(const size_t *)width, a, b);
}

void brc_sort_indexes(uint64_t *indexes, size_t n, size_t width)
{
    qsort_r(indexes, n, width * sizeof(*indexes), index_order, &width);
}
