/*
 * What hangs under a map node: arrays, groups, chunks and their bytes, as the derived rows of
 * nodes have it (node_total). A node says by its values what map it is of: an id is a chunk, an
 * entry is a child of a group, with all that its own map has. So the sum is a fact of the node,
 * whichever array or version leads to it, until chunks are stored anew in other encodings.
 *
 * A row is kept only of a node under which every object was found. A row that contradicts the
 * node above it is passed over, as if it were not there.
 */
#ifndef BRC_HISTORY_TOTALS_H
#define BRC_HISTORY_TOTALS_H

#include "../base/hash.h"
#include "../tree/map.h"
#include "snapshot.h"

/* Sums that were found while nothing could be written. Memory is bounded: of very large maps
 * only a part is kept, with the last, which is the root. */
typedef struct brc_total_rows {
    void *rows;
    size_t n, cap;
} brc_total_rows;
/* Puts them if that is possible at once, and nobody has written since `version`. Never fails. */
void brc_total_rows_put(brc_store *store, brc_total_rows *rows, uint64_t version);
void brc_total_rows_dispose(brc_total_rows *rows);

/* The sum of a map, from rows as far as they are there; `kept` (may be NULL) gets the others
 * where they cannot be put at once. *whole 0: an object is missing under it, or the row of a map
 * that an entry leads to; what is missing counts no bytes. */
BRC_MUST_USE int brc_map_total(brc_store *store, const brc_oid *root, brc_total_rows *kept, brc_node_total *out, int *whole,
                               brc_error *err);
/* The same of a node of the hierarchy with itself and all groups and arrays under it. */
BRC_MUST_USE int brc_entry_total(brc_store *store, const brc_entry *entry, brc_total_rows *kept, brc_node_total *out, int *whole,
                                 brc_error *err);

/* One row, if it could be that of the node: `claim` (may be NULL) is what the node above says of it. */
BRC_MUST_USE int brc_total_row(brc_store *store, const brc_oid *id, const brc_item *claim, int *found, brc_node_total *out,
                               brc_error *err);

/* Sizes of chunks, looked up before they are needed: in the index's order many cost less, and outside of a
 * transaction nobody waits for them. */
typedef struct brc_chunk_sizes {
    brc_id_table table;
} brc_chunk_sizes;
#define BRC_CHUNK_SIZES_INIT { BRC_ID_TABLE_INIT(2 * sizeof(uint64_t)) }
/* Those of the chunks that the edits name; in a read it lets go of the lock now and then. */
BRC_MUST_USE int brc_chunk_sizes_read(brc_chunk_sizes *sizes, brc_store *store, const brc_edit *edits, size_t n, brc_error *err);
void brc_chunk_sizes_dispose(brc_chunk_sizes *sizes);

/* After these edits have made `root` of `before` (zero: of nothing), in the same transaction: puts the rows of
 * the new nodes, from those that the old ones have. `sizes` of the edits' chunks, or NULL. What would need
 * more than the nodes on the edits' paths is left for whoever asks. Damage that is found is not this
 * call's to report. */
BRC_MUST_USE int brc_map_total_follow(brc_store *store, const brc_oid *before, const brc_oid *root, const brc_edit *edits,
                                      size_t n, const brc_chunk_sizes *sizes, brc_error *err);

#endif
