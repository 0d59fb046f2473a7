/* A table of ids, each with a value of fixed size. Open addressing under a seed of the
 * process: whoever writes a file chooses its ids, but cannot make them collide here. */
#ifndef BRC_BASE_ID_TABLE_H
#define BRC_BASE_ID_TABLE_H

#include "error.h"

typedef struct brc_id_table {
    size_t value_size;
    size_t max;      /* where there would be more, all are forgotten; 0: no limit */
    size_t n, cap;
    void *slots;
    uint64_t seed[2];
} brc_id_table;
#define BRC_ID_TABLE_INIT(size_of_value) { (size_of_value), 0, 0, 0, 0, { 0, 0 } }

/* The value of an id, valid until the next is added; NULL where it is not there. Never
 * the zero id. */
void *brc_id_table_find(const brc_id_table *table, const brc_oid *id);
/* The same, added with a value of zeroes where it is new. */
BRC_MUST_USE int brc_id_table_add(brc_id_table *table, const brc_oid *id, void **value, brc_error *err);
void brc_id_table_dispose(brc_id_table *table);

#endif
