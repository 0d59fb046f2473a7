/* See hdf5_ragged.h. */
#include "hdf5_ragged.h"

#include <string.h>

#include "hdf5_in.h"

_Static_assert(sizeof(brc_ragged_list) == sizeof(hvl_t), "lists lie in memory as HDF5 has them");

static int fill_ragged(brc_ragged *out, const brc_hdf5_tree *tree, brc_error *err)
{
    static const int kinds[] = { [BRC_HDF5_LEAF] = BRC_RAGGED_LEAF,
                                 [BRC_HDF5_COMPOUND] = BRC_RAGGED_COMPOUND,
                                 [BRC_HDF5_LIST] = BRC_RAGGED_LIST,
                                 [BRC_HDF5_ARRAY] = BRC_RAGGED_ARRAY };
    int is_leaf = tree->kind == BRC_HDF5_LEAF;
    out->kind = kinds[tree->kind];
    out->name = tree->name;
    out->size = tree->size;
    out->at = tree->at;
    out->own = tree;
    out->ndim = is_leaf ? tree->type.ndim : tree->ndim;
    memcpy(out->shape, is_leaf ? tree->type.shape : tree->shape, sizeof(out->shape));
    out->dtype = tree->type.dtype;
    out->type = tree->dtype;
    out->note = tree->type.note;
    out->doubtful = is_leaf && (brc_hdf5_is_doubtful(&tree->type) || brc_hdf5_tree_refers(tree));
    if (tree->n == 0)
        return BRC_OK;
    BRC_TRY(brc_new_array((void **)&out->items, tree->n, sizeof(*out->items), err));
    out->n = tree->n;
    for (size_t i = 0; i < tree->n; i++)
        BRC_TRY(fill_ragged(&out->items[i], &tree->items[i], err));
    return BRC_OK;
}

int brc_hdf5_ragged_of(brc_ragged *out, const brc_hdf5_tree *tree, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    int rc = fill_ragged(out, tree, err);
    if (rc < 0)
        brc_ragged_free(out, 0);
    return rc;
}
