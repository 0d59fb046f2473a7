/* Functions that formats share: names of nodes and files, and the nodes under a path. */
#ifndef BRC_XFER_XFER_H
#define BRC_XFER_XFER_H

#include "../base/json.h"
#include "../base/part.h"

/* Returns 1 if `name` is a valid name of a node, and of a file on export. */
int brc_name_is_safe(const char *name, size_t len);
/* Checks each part of a path "a/b/c" without a leading slash. */
int brc_path_is_safe(const char *path);
/* Returns the length of a name without this ending, which is compared without case; `len` if nothing is left before
 * the ending. */
size_t brc_without_ending(const char *name, size_t len, const char *ending);
/* Returns the length of a name without its ending: a dot and a letter, with something before them. "v1.2" and ".x"
 * have no ending: returns `len`. */
size_t brc_before_ending(const char *name, size_t len);
/* Tells whether the name has this ending. */
int brc_has_ending(const char *name, const char *ending);

/* Returns 1 if the caller excludes the node of the source with this path, "a/b" or "/a/b". */
int brc_is_excluded(const brc_xfer_opts *opts, const char *path, size_t len);
/* Tells whether a user's path, "a/b", "/a/b" or "a/b/", equals this path, "a/b" of `len` bytes. */
int brc_path_given_is(const char *given, const char *path, size_t len);
/* Renames the path of a node below `above` ("/" or "/x") as the caller wants, with the groups above the node.
 * Replaces *path. */
BRC_MUST_USE int brc_path_rename(char **path, const char *above, const brc_xfer_opts *opts, brc_error *err);
/* Removes the attributes that the caller excludes from a node's document. */
BRC_MUST_USE int brc_attributes_pick(const brc_xfer_opts *opts, const char *path, brc_json *doc, brc_error *err);
/* Handles the result (rc, *err) of importing a node of the source. Returns 1 if the node cannot be kept
 * (BRC_EUNSUPPORTED), after adding it to the list; otherwise rc. parts NULL: there is no list. */
BRC_MUST_USE int brc_part_settle(brc_parts *parts, int rc, const char *path, brc_error *err);
/* Adds the decoded bytes of one array, counting one byte for an element of variable length (item 0); adds nothing
 * if the sum exceeds 64 bits. */
void brc_add_array_bytes(uint64_t *sum, int ndim, const uint64_t *shape, size_t item);

/* Called for each node under a path; `inner` is its path below the first node, "a/b", and "" for the first node
 * itself. */
typedef int (*brc_node_fn)(void *ctx, const char *path, const char *inner, int kind,
                           brc_error *err);
/* Visits every node, the one at the path first. A first round visits all of them before `each` is called: damage or
 * an exceeded limit is reported before anything is written. */
BRC_MUST_USE int brc_nodes_each(brc_session *s, const char *path, brc_node_fn each, void *ctx,
                                brc_error *err);

/* ---- dimensions -------------------------------- */

/*
 * Names of dimensions in an export: within a data set, one name has one length.
 *
 * In Zarr every array has its own shape and names, so two arrays of a group may have one name with
 * two lengths, as after an append to one of them. xarray does not open such a group, and in NetCDF,
 * where the group has the dimensions, one of the two would get a name that nobody gave it.
 *
 * A dimension belongs to the nearest group, from the array's own upwards, that has a coordinate for
 * it (an array of its name along it) or for which an import has noted it; otherwise to the array's
 * own group. A group may therefore have a dimension of its own with the name of one above, as in
 * NetCDF, and dimensions of sibling groups are independent.
 */

typedef enum brc_dimensions_rule {
    BRC_DIMENSIONS_FREE = 0, /* arrays of the format do not share names of dimensions             */
    BRC_DIMENSIONS_ZARR,     /* except in groups that say "multiscales": OME-Zarr has one picture in several sizes
                              * in one group, and names its axes itself */
    BRC_DIMENSIONS_NETCDF
} brc_dimensions_rule;

/* Fails with BRC_EINVAL if dimensions of one name differ in two arrays under the path; the message names the
 * arrays, the lengths and the remedy. For NetCDF, also refuses one array that has two such dimensions, which is
 * valid in Zarr. */
BRC_MUST_USE int brc_dimensions_check(brc_session *s, const char *path, brc_dimensions_rule rule, brc_error *err);

#endif
