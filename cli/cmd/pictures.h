/*
 * pictures.h - slices of arrays as pictures and lines, for read and diff.
 */
#ifndef BRC_CLI_CMD_PICTURES_H
#define BRC_CLI_CMD_PICTURES_H

#include "../../src/breccia.h"

struct cli;

/* The options of pictures, for the tables of commands. */
#define CLI_PICTURE_OPTIONS                                                                                            \
    { "cmap", 0, 1, "viridis|grey|diverging", "the colours of --image (viridis)" },                                    \
    { "limits", 0, 1, "LOW:HIGH", "the values of the first and last colour; one that is left out is the extreme" },    \
    { "draw", 0, 1, "kitty|sixel|blocks|text", "how to draw, instead of the best that the terminal is known to show" }

/* Draws the slice of cli->array on standard output. */
int cli_put_image(struct cli *cli, const brc_sel *sel);
/* Draws the slice, which has one dimension, as a line. */
int cli_put_plot(struct cli *cli, const brc_sel *sel);
/* Writes the slice to cli->out as a PNG with a pixel for each element. */
int cli_put_png(struct cli *cli, const brc_sel *sel);
/* Draws the old and the new version of an array, or of SLICE of it, and the difference, or writes the PNG `file`. `a`
 * and `b` are as in brc_diff(). */
int cli_put_difference(struct cli *cli, const char *path, const char *slice, const char *a, const char *b,
                       const char *file);

#endif
