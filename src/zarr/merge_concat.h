/*
 * Arrays that both sides of a merge have appended to, along one axis:
 *
 *      base     | 0 .. b |
 *      ours     | 0 .. b | ours appended   |
 *      theirs   | 0 .. b | theirs appended |
 *      result   | 0 .. b | ours appended | theirs appended |
 *
 * A first merge lists them and looks no further. Then each side is laid out as the result has it
 * (api/concat.c), with fill value where the other one appended, and a second merge takes these for the
 * sides: their shapes are one, and no element is changed by both.
 */
#ifndef BRC_ZARR_MERGE_CONCAT_H
#define BRC_ZARR_MERGE_CONCAT_H

#include "merge_member.h"

typedef struct brc_concat {
    char *path;              /* in ours                                           */
    int axis;
    uint64_t base;           /* lengths of the axis: of the base,                 */
    uint64_t ours, theirs;   /* of what is appended to it                         */
    brc_entry side[2];       /* ours and theirs as they are, ...                  */
    brc_entry laid_out[2];   /* ... and as the result has them; kind 0: not yet   */
} brc_concat;

typedef struct brc_concat_list {
    brc_concat *items;
    size_t n, cap;
} brc_concat_list;
void brc_concat_list_dispose(brc_concat_list *list);

/* 1 if both sides have appended to the array: it is listed, and is not to be merged now. */
BRC_MUST_USE int brc_concat_look(brc_concat_list *list, const brc_merge_place *place, const brc_node_docs *docs, brc_error *err);
/* The place with the sides as they were laid out, in *out, or itself. */
const brc_merge_place *brc_concat_place(const brc_concat_list *list, const brc_merge_place *place, brc_merge_place *out);

#endif
