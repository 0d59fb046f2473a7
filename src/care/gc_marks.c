#include "gc.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

enum { LEAST_IDS = 64 };

/* Makes an empty set that may use about `bytes` bytes. */
void brc_mark_set_init(brc_mark_set *set, size_t id_len, size_t bytes)
{
    memset(set, 0, sizeof(*set));
    set->id_len = id_len;
    set->most = bytes / id_len;
    if (set->most < LEAST_IDS)
        set->most = LEAST_IDS;
}

void brc_mark_set_dispose(brc_mark_set *set)
{
    free(set->ids);
    set->ids = NULL;
    set->n = set->cap = set->sorted = 0;
}

/* Empties the set. Its range begins after `above` and has no end yet. */
void brc_mark_set_begin(brc_mark_set *set, const brc_oid *above)
{
    set->above = *above;
    set->has_end = 0;
    set->n = set->sorted = 0;
}

static int mark_compare(const brc_mark_set *set, const void *a, const void *b)
{
    return memcmp(a, b, set->id_len);
}

int brc_mark_set_covers(const brc_mark_set *set, const brc_oid *id)
{
    return mark_compare(set, id->bytes, set->above.bytes) > 0 &&
           (!set->has_end || mark_compare(set, id->bytes, set->end.bytes) <= 0);
}

static int order_16(const void *a, const void *b)
{
    return memcmp(a, b, 16);
}

static int order_32(const void *a, const void *b)
{
    return memcmp(a, b, 32);
}

/* Sorts the ids and removes duplicates. */
static void mark_sort(brc_mark_set *set)
{
    size_t n = 0;
    if (set->sorted == set->n)
        return;
    qsort(set->ids, set->n, set->id_len, set->id_len == 16 ? order_16 : order_32);
    for (size_t i = 0; i < set->n; i++) {
        const uint8_t *id = set->ids + i * set->id_len;
        if (n == 0 || mark_compare(set, id, set->ids + (n - 1) * set->id_len) != 0)
            memmove(set->ids + n++ * set->id_len, id, set->id_len);
    }
    set->n = set->sorted = n;
}

/* Makes room: removes duplicates, and if too many ids remain, drops the upper half and ends the
 * range there. */
static void mark_cut(brc_mark_set *set)
{
    mark_sort(set);
    if (set->n <= set->most / 4 * 3)
        return;
    set->n = set->sorted = set->n / 2;
    memset(&set->end, 0, sizeof(set->end));
    memcpy(set->end.bytes, set->ids + (set->n - 1) * set->id_len, set->id_len);
    set->has_end = 1;
}

int brc_mark_set_add(brc_mark_set *set, const brc_oid *id, brc_error *err)
{
    if (set->n == set->most)
        mark_cut(set);
    if (!brc_mark_set_covers(set, id))
        return BRC_OK;
    void *p = set->ids;
    int rc = brc_grow_array(&p, &set->cap, set->n + 1, set->id_len, err);
    set->ids = p;
    if (rc == BRC_OK)
        memcpy(set->ids + set->n++ * set->id_len, id->bytes, set->id_len);
    return rc;
}

/* Returns 1 if an id within the range was added. */
int brc_mark_set_has(brc_mark_set *set, const brc_oid *id)
{
    size_t low = 0, high;
    mark_sort(set);
    high = set->n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const int order = mark_compare(set, id->bytes, set->ids + mid * set->id_len);
        if (order == 0)
            return 1;
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return 0;
}
