/* A table of ids, each with a value of fixed size. Open addressing, with a seed that
 * each process draws: whoever writes a file chooses its ids, but cannot make them
 * collide here. */
#ifndef BRC_BASE_ID_TABLE_H
#define BRC_BASE_ID_TABLE_H

#include "error.h"

typedef struct brc_id_table {
    size_t value_size;
    size_t max;      /* past it all are forgotten; 0: no limit                 */
    size_t n, cap;
    void *slots;
    uint64_t seed[2];
} brc_id_table;
#define BRC_ID_TABLE_INIT(size_of_value) { (size_of_value), 0, 0, 0, 0, { 0, 0 } }

/* The value of an id, valid until the next is added; NULL if it is not there. The zero
 * id is not allowed. */
void *brc_id_table_find(const brc_id_table *table, const brc_oid *id);
/* The same; a new id is added with a value of zeroes. */
BRC_MUST_USE int brc_id_table_add(brc_id_table *table, const brc_oid *id, void **value, brc_error *err);
void brc_id_table_dispose(brc_id_table *table);

#endif
