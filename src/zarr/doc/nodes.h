/* Changes of the node at a path: the common part of the functions that make, remove, move and copy nodes. */
#ifndef BRC_ZARR_NODES_H
#define BRC_ZARR_NODES_H

#include "../../work/session.h"

/* A function that changes the node at a path in normal form. */
typedef int (*brc_node_change_fn)(brc_session *s, const char *path, const void *arg, brc_error *err);
/* Brings the path into normal form and calls change() within a change of the session. */
BRC_MUST_USE int brc_node_change(brc_session *s, const char *path, brc_node_change_fn change, const void *arg,
                                 brc_error *err);
/* Remove, copy or move the keys below a path that are rows of the draft. Within a change. */
BRC_MUST_USE int brc_node_forget_keys(brc_session *s, const char *path, brc_error *err);
BRC_MUST_USE int brc_node_carry_keys(brc_session *s, const char *from, const char *to, int copy, brc_error *err);

#endif
