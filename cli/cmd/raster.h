/*
 * raster.h - a slice of an array as rows of numbers.
 */
#ifndef BRC_CLI_CMD_RASTER_H
#define BRC_CLI_CMD_RASTER_H

#include <stddef.h>
#include <stdint.h>

#include "../../src/breccia.h"
#include "../scalar.h"

struct cli;

/* A slice whose elements are the rows and columns of a picture, or one column. Its array outlives it. */
struct cli_raster {
    brc_array *array;
    brc_sel sel;
    int row_axis, column_axis, channel_axis; /* of the array; -1: none         */
    uint64_t height, width;
    int channels;  /* 1: values; 3 and 4: red, green, blue and opacity, from 0 to 255 */
    enum cli_number number;
};

/* Takes a slice as a picture: two dimensions, or three whose last has 3 or 4 elements of uint8. Dimensions of one
 * element in front of these are left out. Fails with an error that says what to do if the slice is something else. */
int cli_raster_picture(struct cli *cli, brc_array *array, const brc_sel *sel, struct cli_raster *out);
/* Takes a slice with one dimension as a column. */
int cli_raster_column(struct cli *cli, brc_array *array, const brc_sel *sel, struct cli_raster *out);

/* Returns whether a smaller raster is made of all elements; otherwise it is made of one element of each box. */
int cli_raster_is_averaged(const struct cli_raster *raster, uint64_t height, uint64_t width);
/* Writes `height` rows of `width` numbers (of each channel): the mean of the numbers of each box of elements, or the
 * element in the middle of the box. It is the middle for integers, and where more than 2^24 elements would be read. */
int cli_raster_sample(struct cli *cli, const struct cli_raster *raster, uint64_t height, uint64_t width, double *out);
/* Writes the element in the middle of each box, however few elements there are. */
int cli_raster_pick(struct cli *cli, const struct cli_raster *raster, uint64_t height, uint64_t width, double *out);

/* Reads rows one after the other, some at once, within bounded memory. */
struct cli_rows {
    const struct cli_raster *raster;
    uint64_t first, n;  /* the rows that `values` has                          */
    size_t cap;         /* how many rows there is room for                     */
    void *bytes;
    size_t room;        /* of bytes                                            */
    double *values;
};
/* The raster outlives the rows. */
void cli_rows_begin(struct cli_rows *rows, const struct cli_raster *raster);
/* Sets *out to the numbers of row y, which last until the next call. */
int cli_rows_at(struct cli *cli, struct cli_rows *rows, uint64_t y, const double **out);
void cli_rows_dispose(struct cli_rows *rows);

/* Returns where box number i of `n` begins along an axis of `whole` elements. */
uint64_t cli_box_begin(uint64_t whole, uint64_t n, uint64_t i);

#endif
