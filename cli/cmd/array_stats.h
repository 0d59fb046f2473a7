/*
 * array_stats.h - statistics of arrays, for `info --stats`.
 */
#ifndef BRC_CLI_ARRAY_STATS_H
#define BRC_CLI_ARRAY_STATS_H

#include <stddef.h>

#include "../../src/breccia.h"

struct cli;

/* A result of brc_array_stats(), and a copy of its list: bins, then values. */
struct array_stats {
    const char *field; /* of elements with fields; NULL: they have none */
    int is_time;
    brc_array_summary sums;
    brc_stats_bin *bins;
    size_t n, nbins;
};
/* The results of one array: one, or one for each field that has statistics. */
struct array_stats_list {
    struct array_stats *all;
    size_t n;
};

/* Sums up the selected elements of cli->array, field by field where these have fields. The list lasts as long as
 * `cli`. */
int gather_array_stats(struct cli *cli, const brc_sel *sel, struct array_stats_list *out);
/* Prints the JSON member "stats", or lines whose values begin at column `width`, and the histograms. */
void print_array_stats(struct cli *cli, const struct array_stats_list *list, int width);
/* Prints a line for each array in the group and below, or the JSON member "stats", a list. */
int print_group_stats(struct cli *cli, const char *path);

#endif
