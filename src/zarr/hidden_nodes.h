/* Nodes of a draft whose documents have no key of the Zarr store view: nobody wrote them, or a client
 * deleted them. Such a node is there as long as something is in it. */
#ifndef BRC_ZARR_HIDDEN_NODES_H
#define BRC_ZARR_HIDDEN_NODES_H

#include "../store/store.h"

typedef struct brc_hidden_nodes {
    void *paths; /* char *[], sorted */
    size_t n, cap;
} brc_hidden_nodes;

BRC_MUST_USE int brc_hidden_nodes_read(brc_hidden_nodes *out, brc_store *store, int64_t draft, brc_error *err);
int brc_is_hidden_node(const brc_hidden_nodes *nodes, const char *path);
void brc_hidden_nodes_dispose(brc_hidden_nodes *nodes);

#endif
