/*
 * Variables of vlen types, and of compounds with texts or lists in them, as groups: see
 * ../lib/ragged.h. The group has the variable's attributes. Its note (BRC_NETCDF_GROUP_NOTE) is that of
 * a variable and a group, and
 *
 *   "variable": { "type": TREE, "shape": [n, ...], "chunk": [n, ...], "names": [text or null, ...] }
 *
 * names: of the dimensions. A TREE is as in ../hdf5/hdf5_tree.h; a list and a compound have the "name" of their type.
 */
#ifndef BRC_CONVERT_NETCDF_NETCDF_RAGGED_H
#define BRC_CONVERT_NETCDF_NETCDF_RAGGED_H

#include "../lib/ragged.h"
#include "netcdf_out.h"

/* The driver's data of a leaf (`own`). */
typedef struct brc_netcdf_leaf {
    brc_netcdf_type type;
    brc_dtype *dtype;
    char *text; /* the data type as in a brc_array_spec */
} brc_netcdf_leaf;

/* Whether the group stands for a variable, by its note. */
int brc_netcdf_has_ragged(const brc_node_out *node);
/* The variable of a group; it is kept in out->ragged. */
BRC_MUST_USE int brc_netcdf_add_ragged(brc_netcdf_out *out, const brc_node_out *group, brc_error *err);
/* The one that a node belongs to, as its group or in it; NULL: none. */
struct brc_netcdf_ragged *brc_netcdf_ragged_of(const brc_netcdf_out *out, const brc_node_out *node);
/* The variable's name where its group has none, being all that is exported. */
const char *brc_netcdf_ragged_name(const struct brc_netcdf_ragged *ragged);
BRC_MUST_USE int brc_netcdf_plan_ragged(brc_netcdf_out *out, brc_netcdf_var *var, brc_netcdf_axes *axes, brc_error *err);
BRC_MUST_USE int brc_netcdf_define_ragged(brc_netcdf_out *out, brc_netcdf_var *var, brc_error *err);
BRC_MUST_USE int brc_netcdf_put_ragged(struct brc_netcdf_ragged *ragged, const brc_node_out *array, const brc_sel *box,
                                       const void *data, size_t len, brc_error *err);
/* After an array's elements: with its last array's the variable is written. */
BRC_MUST_USE int brc_netcdf_end_ragged(struct brc_netcdf_ragged *ragged, const brc_node_out *array, brc_error *err);
void brc_netcdf_free_ragged(brc_netcdf_out *out);

#endif
