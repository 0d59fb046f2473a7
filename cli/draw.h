/*
 * draw.h - pictures and lines on a terminal.
 */
#ifndef BRC_CLI_DRAW_H
#define BRC_CLI_DRAW_H

#include <stddef.h>
#include <stdint.h>

#include "picture.h"

struct cli;

enum cli_draw { CLI_DRAW_KITTY, CLI_DRAW_SIXEL, CLI_DRAW_BLOCKS, CLI_DRAW_TEXT };

/* The abilities and the size of standard output. */
struct cli_screen {
    enum cli_draw how;
    int true_color;          /* 24 bits a colour, not one of 256               */
    size_t columns, rows;    /* characters                                    */
    size_t cell_width, cell_height; /* the pixels of a character               */
};

/* Reads --draw, the environment and the size of the terminal. Colours turned off mean CLI_DRAW_TEXT. */
int cli_screen_find(struct cli *cli, struct cli_screen *out);

/* Chooses how many pixels a picture of `height` rows and `width` columns of elements has in a part of the screen, which
 * is `columns` wide and `rows` high. The ratio of the sides stays, but no side of a long picture is shorter than 8
 * pixels for that reason; small pictures grow. */
void cli_screen_fit(const struct cli_screen *screen, size_t columns, size_t rows, uint64_t width, uint64_t height,
                    size_t *pixel_width, size_t *pixel_height);
/* Returns how many pixels a character is wide. */
size_t cli_screen_cell(const struct cli_screen *screen);

/* Draws pixels, and ends the line. Text shows how bright a pixel is. */
void cli_draw_pixels(struct cli *cli, const struct cli_screen *screen, const struct cli_pixels *pixels);
/* Draws the colours of the map between two texts, without the end of the line. */
void cli_draw_map(struct cli *cli, const struct cli_screen *screen, enum cli_map map, const char *low, const char *high);

/* A line over `n` columns of dots, each from `low` to `high`, or NaN where there is none. */
struct cli_line {
    size_t n;
    double *low, *high;
};

/* Returns how many columns of dots fit beside labels of this width. */
size_t cli_plot_width(const struct cli_screen *screen, size_t label);
/* Draws the line with the values at the bottom and the top, and below it the numbers of the first and last element. */
void cli_draw_plot(struct cli *cli, const struct cli_screen *screen, const struct cli_line *line,
                   const struct cli_shade *limits, const char *const labels[2], const char *const ends[2]);

#endif
