/* Runs of packed elements: how many differ, and the largest difference. */
#ifndef BRC_ND_COMPARE_RUNS_H
#define BRC_ND_COMPARE_RUNS_H

#include "dtype.h"

typedef struct brc_run_diff {
    size_t elements;
    double max_abs; /* 0 if no two numbers differ */
} brc_run_diff;

/* Compares n elements side by side. */
typedef void (*brc_compare_run_fn)(const brc_dtype *type, const uint8_t *x, const uint8_t *y, size_t n, brc_run_diff *out);
/* What does it for this type of fixed length. */
brc_compare_run_fn brc_compare_run_of(const brc_dtype *type);

#endif
