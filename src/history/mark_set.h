/*
 * A set of ids within a limit of memory: those of a range. Where they become too many, the upper
 * end of the range comes down, and the ids beyond it are forgotten: they are for another pass.
 *
 * So nothing is written anywhere, however many there are, and what the set says of its range is
 * exact.
 */
#ifndef BRC_HISTORY_MARK_SET_H
#define BRC_HISTORY_MARK_SET_H

#include "../base/error.h"
#include "../base/hash.h"

typedef struct brc_mark_set {
    size_t id_len;
    size_t most;        /* ids that are held                                       */
    brc_oid above;      /* the range begins behind this one                        */
    int has_end;        /* and ends with `end`, else with the last there can be    */
    brc_oid end;
    uint8_t *ids;
    size_t n, cap;
    size_t sorted;      /* so many are in order, each once                         */
} brc_mark_set;

/* `bytes`: about what it may hold. */
void brc_mark_set_init(brc_mark_set *set, size_t id_len, size_t bytes);
void brc_mark_set_dispose(brc_mark_set *set);
/* Empty, with the range behind `above`, as long as it can be. */
void brc_mark_set_begin(brc_mark_set *set, const brc_oid *above);
BRC_MUST_USE int brc_mark_set_add(brc_mark_set *set, const brc_oid *id, brc_error *err);
/* Of an id within the range: 1 if it was added. */
int brc_mark_set_has(brc_mark_set *set, const brc_oid *id);
int brc_mark_set_covers(const brc_mark_set *set, const brc_oid *id);

#endif
