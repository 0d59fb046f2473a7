/* Laying out what both sides of a merge have appended to arrays, ours first: see zarr/merge_concat.h. */
#ifndef BRC_API_CONCAT_H
#define BRC_API_CONCAT_H

#include "../zarr/merge_concat.h"

/* Fills in `laid_out` of every item. `tip`: the commit of the branch that the entries of ours are of;
 * BRC_ESTALE if it has moved. It works in private drafts, which it drops: what it has stored is named by
 * nothing then. Outside of any transaction. */
BRC_MUST_USE int brc_concat_lay_out(brc_concat_list *list, breccia *repo, const char *branch, const brc_oid *tip,
                                    brc_error *err);

#endif
