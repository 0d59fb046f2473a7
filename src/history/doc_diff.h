/* The members in which two zarr.json documents differ. */
#ifndef BRC_HISTORY_DOC_DIFF_H
#define BRC_HISTORY_DOC_DIFF_H

#include "../base/json.h"

/* A list of JSON pointers: attributes are compared member by member. */
typedef struct brc_pointers {
    char **items;
    size_t n, cap;
} brc_pointers;

BRC_MUST_USE int brc_doc_diff(brc_pointers *out, const brc_json *a, const brc_json *b, brc_error *err);
void brc_pointers_dispose(brc_pointers *pointers);

#endif
