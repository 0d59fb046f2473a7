/*
* Summaries of elements: the least and the greatest element, mean, spread, and a histogram. Summaries of
 * parts are merged into a summary of the whole.
 *
* A histogram's bins are 2^scale wide and begin at multiples of 2^scale, so two bins of one scale make
 * one bin of the next, and histograms of different scales are merged exactly. Each part chooses
 * the finest scale at which its values take at most BRC_SUMMARY_BINS bins. If the elements are integers
 * and the scale is 0, each bin is one value.
 */
#ifndef BRC_ND_SUMMARY_H
#define BRC_ND_SUMMARY_H

#include "../base/buf.h"
#include "dtype.h"

#define BRC_SUMMARY_BINS 256

__extension__ typedef __int128 brc_wide_int;

/* How elements of a data type are summed up. */
typedef struct brc_summary_kind {
    const brc_dtype *type;
    int of;             /* BRC_STATS_*: the number that is summed up: the element, or one computed from it */
    int is_integer;     /* the numbers are integers, and the summary is exact                 */
    int has_nat;        /* the least integer is "not a time"                                  */
    uint64_t offset;    /* an integer is this much above the number in the summary: 2^63 for
                           uint64, else 0                                                     */
    int load;           /* the kernel's own */
} brc_summary_kind;

typedef struct brc_summary {
    uint64_t count;       /* elements                                                         */
    uint64_t nan, fill;   /* elements that are NaN; elements with the bits of the fill value  */
    uint64_t low, high;   /* -Infinity, Infinity                                              */
    uint64_t n;           /* all other elements, which the fields below summarize             */
    int64_t least, greatest;  /* of integers, less the kind's offset, like the sum            */
    brc_wide_int sum;
    double min, max, mean;    /* of floats                                                    */
    double m2;            /* the sum of squared differences from the mean                     */
    int scale;
    int64_t first;        /* the first bin begins at first * 2^scale; of integers, less the offset */
    size_t nbins;         /* 0 if n is 0                                                      */
    uint64_t bins[BRC_SUMMARY_BINS];
} brc_summary;

/* Returns 0 if there is no summary of elements of this type. */
int brc_summary_kind_of(brc_summary_kind *out, const brc_dtype *type);
/* Sums up n packed canonical elements of a fixed length; `fill` is one element. */
BRC_MUST_USE int brc_summary_make(brc_summary *out, const brc_summary_kind *kind, const uint8_t *data, uint64_t n,
                                  const uint8_t *fill, brc_error *err);
/* Sums up n numbers that are not negative: lengths of elements. `fill` of them have the fill value. */
void brc_summary_of_numbers(brc_summary *out, const int64_t *numbers, size_t n, uint64_t fill);
/* Counts each element `times` times. */
void brc_summary_repeat(brc_summary *s, uint64_t times);
/* Adds a summary of other elements of the same kind. The counts must not exceed 64 bits. */
void brc_summary_merge(brc_summary *into, const brc_summary_kind *kind, const brc_summary *from);
/* Makes the bins twice as wide until there are at most `most`. */
void brc_summary_coarsen(brc_summary *s, size_t most);
/* Returns the mean of the n elements, and their standard deviation; NaN if n is 0. */
double brc_summary_mean(const brc_summary *s, const brc_summary_kind *kind);
double brc_summary_std(const brc_summary *s);

/* Appends the summary as bytes, in the form of table chunk_stats. */
BRC_MUST_USE int brc_summary_pack(brc_buf *out, const brc_summary_kind *kind, const brc_summary *s, brc_error *err);
/* Reads such bytes. Returns 0 if they cannot be a summary of `count` elements. */
int brc_summary_unpack(brc_summary *out, const brc_summary_kind *kind, brc_span packed, uint64_t count);

#endif
