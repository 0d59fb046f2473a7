/*
 * Totals of everything under a map node: arrays, groups, chunks and their bytes, from the derived
 * rows of nodes (node_total). The values in a node say what kind of map it belongs to: an id is a
 * chunk, and an entry is a child of a group, with everything in the child's own map. So the total
 * is a property of the node, whichever array or version leads to it, until chunks are stored again
 * in other encodings.
 *
 * A row is kept only for a node under which every object was found. A row that contradicts the node
 * above it is ignored.
 */
#ifndef BRC_HISTORY_TOTALS_H
#define BRC_HISTORY_TOTALS_H

#include "../base/hash.h"
#include "../tree/map.h"
#include "snapshot.h"

/* Totals that were computed while nothing could be written. Memory is bounded: of very large maps
 * only a part is kept, and the last row, which is that of the root. */
typedef struct brc_total_rows {
    void *rows;
    size_t n, cap;
} brc_total_rows;
/* Puts the rows if that is possible without waiting and nobody has written since `version`. Never
 * fails. */
void brc_total_rows_put(brc_store *store, brc_total_rows *rows, uint64_t version);
void brc_total_rows_dispose(brc_total_rows *rows);

/* Returns the total of a map, from rows where they exist. Rows that cannot be put now are added to
 * `kept` (may be NULL). *whole is 0 if an object under the map is missing, or the row of a map that
 * an entry leads to; missing objects count no bytes. */
BRC_MUST_USE int brc_map_total(brc_store *store, const brc_oid *root, brc_total_rows *kept, brc_node_total *out, int *whole,
                               brc_error *err);
/* Returns the total of a node of the hierarchy, itself and all groups and arrays under it
 * included. */
BRC_MUST_USE int brc_entry_total(brc_store *store, const brc_entry *entry, brc_total_rows *kept, brc_node_total *out, int *whole,
                                 brc_error *err);

/* Finds one row, if it is plausible for the node: `claim` (may be NULL) is what the node above says
 * about the node. */
BRC_MUST_USE int brc_total_row(brc_store *store, const brc_oid *id, const brc_item *claim, int *found, brc_node_total *out,
                               brc_error *err);

/* Sizes of chunks that are looked up before they are needed: a look-up of many in the index's order
 * costs less, and outside of a transaction nobody waits for it. */
typedef struct brc_chunk_sizes {
    brc_id_table table;
} brc_chunk_sizes;
#define BRC_CHUNK_SIZES_INIT { BRC_ID_TABLE_INIT(2 * sizeof(uint64_t)) }
/* Looks up the sizes of the chunks that the edits name. Within a read it lets go of the lock now
 * and then. */
BRC_MUST_USE int brc_chunk_sizes_read(brc_chunk_sizes *sizes, brc_store *store, const brc_edit *edits, size_t n, brc_error *err);
void brc_chunk_sizes_dispose(brc_chunk_sizes *sizes);

/* Edits the map of an array as brc_map_edit() does, and puts the rows of the new nodes, derived from those of the old
 * nodes, in the same transaction. `sizes` has the sizes of the edits' chunks, or is NULL. Totals that would need more
 * than the nodes on the edits' paths are left for later callers. Damage that only the totals meet is not reported. */
BRC_MUST_USE int brc_map_edit_total(brc_store *store, const brc_oid *root, const brc_edit *edits, size_t n,
                                    const brc_chunk_sizes *sizes, brc_oid *out, brc_error *err);

/* Puts the rows of the nodes of a hierarchy `root` that was made from `before` (zero: from nothing), as
 * brc_map_edit_total() does. */
BRC_MUST_USE int brc_map_total_follow(brc_store *store, const brc_oid *before, const brc_oid *root, brc_error *err);

#endif
