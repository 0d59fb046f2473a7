/* Derived rows of map nodes: what hangs under each. */
#include "db.h"

int brc_node_total_add(brc_node_total *sum, const brc_node_total *more)
{
    return brc_add_u64(sum->arrays, more->arrays, &sum->arrays) &&
           brc_add_u64(sum->groups, more->groups, &sum->groups) &&
           brc_add_u64(sum->chunks, more->chunks, &sum->chunks) &&
           brc_add_u64(sum->size, more->size, &sum->size) &&
           brc_add_u64(sum->stored, more->stored, &sum->stored) && sum->arrays <= INT64_MAX &&
           sum->groups <= INT64_MAX && sum->chunks <= INT64_MAX && sum->size <= INT64_MAX &&
           sum->stored <= INT64_MAX;
}

int brc_node_total_subtract(brc_node_total *sum, const brc_node_total *less)
{
    if (less->arrays > sum->arrays || less->groups > sum->groups || less->chunks > sum->chunks ||
        less->size > sum->size || less->stored > sum->stored)
        return 0;
    sum->arrays -= less->arrays;
    sum->groups -= less->groups;
    sum->chunks -= less->chunks;
    sum->size -= less->size;
    sum->stored -= less->stored;
    return 1;
}

int brc_node_total_equal(const brc_node_total *a, const brc_node_total *b)
{
    return a->arrays == b->arrays && a->groups == b->groups && a->chunks == b->chunks &&
           a->size == b->size && a->stored == b->stored;
}

int brc_store_keeps_totals(const brc_store *store)
{
    return store->write_depth > 0 && !store->scratch;
}

int brc_node_total_get(brc_store *store, const brc_oid *id, int *state, brc_node_total *out,
                       brc_error *err)
{
    sqlite3_stmt *st;
    uint64_t *const columns[] = { &out->arrays, &out->groups, &out->chunks, &out->size,
                                  &out->stored };
    *state = BRC_TOTAL_NONE;
    *out = (brc_node_total){ 0 };
    BRC_TRY(brc_stmt(store,
                     "SELECT arrays, groups, chunks, size, stored FROM node_total WHERE id=?1", &st,
                     err));
    brc_bind_id(store, st, 1, id);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    *state = BRC_TOTAL_FOUND;
    for (int i = 0; i < (int)(sizeof(columns) / sizeof(columns[0])); i++) {
        int64_t value = sqlite3_column_int64(st, i);
        if (sqlite3_column_type(st, i) != SQLITE_INTEGER || value < 0)
            *state = BRC_TOTAL_WRONG;
        *columns[i] = (uint64_t)value;
    }
    sqlite3_reset(st);
    return BRC_OK;
}

int brc_node_total_put(brc_store *store, const brc_oid *id, const brc_node_total *total,
                       brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "INSERT OR REPLACE INTO node_total(id, arrays, groups, chunks, size, stored)"
                     " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                     &st, err));
    brc_bind_id(store, st, 1, id);
    sqlite3_bind_int64(st, 2, (int64_t)total->arrays);
    sqlite3_bind_int64(st, 3, (int64_t)total->groups);
    sqlite3_bind_int64(st, 4, (int64_t)total->chunks);
    sqlite3_bind_int64(st, 5, (int64_t)total->size);
    sqlite3_bind_int64(st, 6, (int64_t)total->stored);
    store->totals_dropped = 0;
    return brc_run(store, st, err);
}

int brc_node_totals_drop(brc_store *store, brc_error *err)
{
    if (store->totals_dropped)
        return BRC_OK;
    BRC_TRY(brc_exec(store, "DELETE FROM node_total", err));
    store->totals_dropped = 1;
    return BRC_OK;
}
