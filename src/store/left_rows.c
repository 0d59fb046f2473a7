/*
 * Rows of stored bytes that objects have left: an object that is encoded again gets new bytes, and
 * the old ones stay in the row that it shared. When the transaction ends, rows that no object has
 * are dropped. Nothing is indexed by place: the search reads every object's row once, which only
 * a rewrite of codecs pays for.
 */
#include <stdlib.h>

#include "db.h"

int brc_row_left(brc_store *store, int64_t seq, brc_error *err)
{
    void *p = store->left.seq;
    if (store->left.n > 0 && store->left.seq[store->left.n - 1] == seq)
        return BRC_OK;
    int rc = brc_grow_array(&p, &store->left.cap, store->left.n + 1, sizeof(*store->left.seq), err);
    store->left.seq = p;
    if (rc == BRC_OK)
        store->left.seq[store->left.n++] = seq;
    return rc;
}

static int seq_order(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Sorted, each once. */
static void left_sort(brc_store *store)
{
    int64_t *seq = store->left.seq;
    size_t n = 0;
    qsort(seq, store->left.n, sizeof(*seq), seq_order);
    for (size_t i = 0; i < store->left.n; i++)
        if (n == 0 || seq[i] != seq[n - 1])
            seq[n++] = seq[i];
    store->left.n = n;
}

/* used[i]: an object has bytes in the row left.seq[i]. */
static int left_used(brc_store *store, uint8_t *used, brc_error *err)
{
    int rc;
    sqlite3_stmt *st;
    const int64_t *seq = store->left.seq, *found;
    BRC_TRY(brc_stmt(store, "SELECT place FROM object WHERE backend=0 AND place BETWEEN ?1 AND ?2",
                     &st, err));
    sqlite3_bind_int64(st, 1, seq[0]);
    sqlite3_bind_int64(st, 2, seq[store->left.n - 1]);
    while ((rc = brc_step(store, st, err)) > 0) {
        int64_t place = sqlite3_column_int64(st, 0);
        found = bsearch(&place, seq, store->left.n, sizeof(*seq), seq_order);
        if (found != NULL)
            used[found - seq] = 1;
    }
    return rc;
}

int brc_rows_drop_left(brc_store *store, brc_error *err)
{
    int rc;
    void *used = NULL;
    sqlite3_stmt *st;
    if (store->left.n == 0)
        return BRC_OK;
    left_sort(store);
    BRC_GO(brc_new_array(&used, store->left.n, 1, err));
    BRC_GO(left_used(store, used, err));
    for (size_t i = 0; i < store->left.n; i++) {
        if (((const uint8_t *)used)[i])
            continue;
        BRC_GO(brc_stmt(store, "DELETE FROM blob WHERE seq=?1", &st, err));
        sqlite3_bind_int64(st, 1, store->left.seq[i]);
        BRC_GO(brc_run(store, st, err));
    }
    rc = BRC_OK;
    store->left.n = 0;
done:
    free(used);
    return rc;
}
