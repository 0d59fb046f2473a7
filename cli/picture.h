/*
 * picture.h - numbers as pixels: colour maps, limits and PNG files.
 */
#ifndef BRC_CLI_PICTURE_H
#define BRC_CLI_PICTURE_H

#include <stddef.h>
#include <stdint.h>

struct cli;

/* ---- colours -------------------------------- */

enum cli_map { CLI_VIRIDIS, CLI_GREY, CLI_DIVERGING };

/* The values that have the first and the last of a map's 256 colours. Values beyond them have these colours too. */
struct cli_shade {
    enum cli_map map;
    double low, high; /* NaN: there is no value at all                        */
};

/* The limits that the user asks for. NaN stands for the lowest or the highest value. */
struct cli_limits {
    int given;
    double low, high;
};

/* Reads --cmap; *out stays as it is without it. */
int cli_map_option(struct cli *cli, enum cli_map *out);
/* Reads --limits LOW:HIGH, where each may be left out. */
int cli_limits_option(struct cli *cli, struct cli_limits *out);

/* Chooses limits for `n` values: those asked for, else the percentiles 2 and 98 of the finite values, or the extremes
 * where these two are equal. The diverging map gets limits that are as far from 0 on both sides. `values` is sorted. */
void cli_shade_choose(struct cli_shade *out, enum cli_map map, const struct cli_limits *asked, double *values, size_t n);
/* Returns the number of the value's colour, from 0 to 255. */
unsigned cli_shade_index(const struct cli_shade *shade, double value);
/* Writes red, green, blue and opacity. NaN is transparent. */
void cli_shade_pixel(const struct cli_shade *shade, double value, uint8_t rgba[4]);
/* Writes a colour of the map. */
void cli_map_color(enum cli_map map, unsigned index, uint8_t rgb[3]);

/* ---- pixels -------------------------------- */

struct cli_pixels {
    size_t width, height;
    uint8_t *rgba; /* row by row, from the top                                 */
};

/* Makes transparent pixels. cli_pixels_dispose() releases them. */
void cli_pixels_begin(struct cli_pixels *out, size_t width, size_t height);
void cli_pixels_dispose(struct cli_pixels *pixels);

/* ---- PNG files ------------------------------ */

enum cli_png_kind { CLI_PNG_GREY, CLI_PNG_GREY_ALPHA, CLI_PNG_PALETTE, CLI_PNG_RGB, CLI_PNG_RGBA };

/* The longest side of a PNG, and the most pixels. */
#define CLI_PNG_SIDE 1000000u
#define CLI_PNG_PIXELS ((uint64_t)1 << 30)

struct cli_png;

/* Fails with BRC_ELIMIT if the picture is too large. */
int cli_png_check(struct cli *cli, uint64_t width, uint64_t height);
/* Begins a PNG on cli->out. A palette has the colours of `map`. The caller ends it by cli_png_free(). */
int cli_png_begin(struct cli *cli, struct cli_png **out, size_t width, size_t height, enum cli_png_kind kind,
                  enum cli_map map);
/* Writes the next row: 8 bits for each channel. */
int cli_png_row(struct cli_png *png, const uint8_t *row);
/* Writes the end of the file, after all rows. */
int cli_png_end(struct cli_png *png);
void cli_png_free(struct cli_png *png);

#endif
