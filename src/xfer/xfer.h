/* What formats share: the names of nodes and files, and the nodes under a path. */
#ifndef BRC_XFER_XFER_H
#define BRC_XFER_XFER_H

#include "../base/json.h"
#include "../base/part.h"

/* 1 if `name` can be a node's, and a file's on export. */
int brc_name_is_safe(const char *name, size_t len);
/* The same for each part of a path "a/b/c" without a leading slash. */
int brc_path_is_safe(const char *path);
/* The length of a name without the ending, which is compared without case; if nothing is
 * left before it, `len` is the result. */
size_t brc_without_ending(const char *name, size_t len, const char *ending);
/* The length of a name without the ending that it has: a dot and a letter, with something
 * before them. "v1.2" has none, nor has ".x": `len`. */
size_t brc_before_ending(const char *name, size_t len);
/* Whether there is such an ending. */
int brc_has_ending(const char *name, const char *ending);

/* 1 if the caller wants the node of the source with this path left out; "a/b" or "/a/b". */
int brc_is_excluded(const brc_xfer_opts *opts, const char *path, size_t len);
/* Whether a path that a user gave, "a/b", "/a/b" or "a/b/", is this one, "a/b" of `len` bytes. */
int brc_path_given_is(const char *given, const char *path, size_t len);
/* The path of a node below `above` ("/" or "/x") with the names that the caller wants for it and for the groups
 * above it. *path is replaced. */
BRC_MUST_USE int brc_path_rename(char **path, const char *above, const brc_xfer_opts *opts, brc_error *err);
/* Removes the attributes that the caller wants left out from a node's document. */
BRC_MUST_USE int brc_attributes_pick(const brc_xfer_opts *opts, const char *path, brc_json *doc, brc_error *err);
/* What became (rc, *err) of importing a node of the source: 1 if it cannot be kept (BRC_EUNSUPPORTED) and is
 * in the list now; else rc. parts NULL: nobody wants to know. */
BRC_MUST_USE int brc_part_settle(brc_parts *parts, int rc, const char *path, brc_error *err);
/* Adds the decoded bytes of one array, with one byte for an element of variable length
 * (item 0); what exceeds 64 bits counts as nothing. */
void brc_add_array_bytes(uint64_t *sum, int ndim, const uint64_t *shape, size_t item);

/* One of the nodes under a path; `inner` is its path below that of the first, "a/b", and ""
 * of the first itself. */
typedef int (*brc_node_fn)(void *ctx, const char *path, const char *inner, int kind,
                           brc_error *err);
/* Every node, the one at the path first. A first round visits them all before `each`
 * is called: damage or an exceeded limit is reported before anything is written. */
BRC_MUST_USE int brc_nodes_each(brc_session *s, const char *path, brc_node_fn each, void *ctx,
                                brc_error *err);

#endif
