/* The elements of a chunk in conflict, one by one. */
#ifndef BRC_MERGE_CONFLICT_ELEMENTS_H
#define BRC_MERGE_CONFLICT_ELEMENTS_H

#include "../history/merge_list.h"
#include "../nd/box.h"
#include "../zarr/array/array.h"

/* The elements of a chunk that both sides changed, to different values. */
enum { BRC_CLASH_VALUES = 10 };
typedef struct brc_clash_elements {
    uint64_t elements;     /* their number                                    */
    brc_differing *values; /* the first ones                                  */
    size_t nvalues;
    brc_array *array;      /* names their type                                */
    uint8_t *memory;       /* of the values                                   */
    size_t at[BRC_CLASH_VALUES][BRC_SIDES + 1]; /* where an index and its elements are in it */
} brc_clash_elements;
void brc_clash_elements_dispose(brc_clash_elements *e);
/* Reads them from the chunks that the conflict names, as the branch (NULL: the current one) describes the array now.
 * None are found if it has no such array, or if it is not known how. `out` may hold those of another conflict. Must
 * not be called within a transaction. */
BRC_MUST_USE int brc_clash_elements_read(brc_clash_elements *out, breccia *repo, const char *branch,
                                         const brc_clash *clash, brc_error *err);

#endif
