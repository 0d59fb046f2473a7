/* Documents of one node on three sides, and what is done where members clash. For merge_node.c and
 * merge_array.c. */
#ifndef BRC_ZARR_MERGE_MEMBER_H
#define BRC_ZARR_MERGE_MEMBER_H

#include "../history/merge_doc.h"
#include "merge_node.h"

enum { BRC_FORM_BASE, BRC_FORM_OURS, BRC_FORM_THEIRS, BRC_FORM_MERGED, BRC_FORMS };

typedef struct brc_node_docs {
    brc_json *doc[BRC_FORMS]; /* NULL: there is none */
} brc_node_docs;
void brc_node_docs_dispose(brc_node_docs *docs);
BRC_MUST_USE int brc_node_docs_read(brc_node_docs *docs, const brc_merge_how *how, const brc_merge_place *place, brc_error *err);

typedef struct brc_member_merge {
    brc_merge_how *how;
    const brc_merge_place *place;
    brc_clash_list *clashes;
    int favour;
    int clashed; /* some member did, settled or not */
} brc_member_merge;
/* Who is favoured at a path. */
int brc_merge_favour(const brc_merge_how *how, const char *path);
/* A brc_doc_clash_fn of a brc_member_merge. */
BRC_MUST_USE int brc_member_clash(void *ctx, const char *pointer, const brc_json *base, const brc_json *ours,
                                  const brc_json *theirs, brc_json **instead, brc_error *err);
/* The merged document goes into `out`, if it is not that of one side. */
BRC_MUST_USE int brc_merged_doc(brc_merged_node *out, const brc_merge_place *place, const brc_node_docs *docs, brc_error *err);
/* The member "shape" of an array's document; 0: it is none. */
int brc_shape_member(const brc_json *doc, int *ndim, uint64_t *shape);
/* Whether two arrays cut what they store the same way, whatever the shards around it. */
BRC_MUST_USE int brc_docs_same_grid(const brc_merge_how *how, const brc_json *a, const brc_json *b, int *same, brc_error *err);

#endif
