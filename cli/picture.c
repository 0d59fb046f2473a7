/*
 * picture.c - colour maps and limits.
 *
 * A value v between the limits has colour number floor(256 * (v - low) / (high - low)), and the
 * value `high` itself has the last, as matplotlib has it.
 */
#include "picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* ---- colour maps ---------------------------- */

/* The 256 colours of viridis, as published by its authors (CC0). */
static const uint32_t viridis_table[256] = {
    0x440154, 0x440256, 0x450457, 0x450559, 0x46075a, 0x46085c, 0x460a5d, 0x460b5e, 0x470d60,
    0x470e61, 0x471063, 0x471164, 0x471365, 0x481467, 0x481668, 0x481769, 0x48186a, 0x481a6c,
    0x481b6d, 0x481c6e, 0x481d6f, 0x481f70, 0x482071, 0x482173, 0x482374, 0x482475, 0x482576,
    0x482677, 0x482878, 0x482979, 0x472a7a, 0x472c7a, 0x472d7b, 0x472e7c, 0x472f7d, 0x46307e,
    0x46327e, 0x46337f, 0x463480, 0x453581, 0x453781, 0x453882, 0x443983, 0x443a83, 0x443b84,
    0x433d84, 0x433e85, 0x423f85, 0x424086, 0x424186, 0x414287, 0x414487, 0x404588, 0x404688,
    0x3f4788, 0x3f4889, 0x3e4989, 0x3e4a89, 0x3e4c8a, 0x3d4d8a, 0x3d4e8a, 0x3c4f8a, 0x3c508b,
    0x3b518b, 0x3b528b, 0x3a538b, 0x3a548c, 0x39558c, 0x39568c, 0x38588c, 0x38598c, 0x375a8c,
    0x375b8d, 0x365c8d, 0x365d8d, 0x355e8d, 0x355f8d, 0x34608d, 0x34618d, 0x33628d, 0x33638d,
    0x32648e, 0x32658e, 0x31668e, 0x31678e, 0x31688e, 0x30698e, 0x306a8e, 0x2f6b8e, 0x2f6c8e,
    0x2e6d8e, 0x2e6e8e, 0x2e6f8e, 0x2d708e, 0x2d718e, 0x2c718e, 0x2c728e, 0x2c738e, 0x2b748e,
    0x2b758e, 0x2a768e, 0x2a778e, 0x2a788e, 0x29798e, 0x297a8e, 0x297b8e, 0x287c8e, 0x287d8e,
    0x277e8e, 0x277f8e, 0x27808e, 0x26818e, 0x26828e, 0x26828e, 0x25838e, 0x25848e, 0x25858e,
    0x24868e, 0x24878e, 0x23888e, 0x23898e, 0x238a8d, 0x228b8d, 0x228c8d, 0x228d8d, 0x218e8d,
    0x218f8d, 0x21908d, 0x21918c, 0x20928c, 0x20928c, 0x20938c, 0x1f948c, 0x1f958b, 0x1f968b,
    0x1f978b, 0x1f988b, 0x1f998a, 0x1f9a8a, 0x1e9b8a, 0x1e9c89, 0x1e9d89, 0x1f9e89, 0x1f9f88,
    0x1fa088, 0x1fa188, 0x1fa187, 0x1fa287, 0x20a386, 0x20a486, 0x21a585, 0x21a685, 0x22a785,
    0x22a884, 0x23a983, 0x24aa83, 0x25ab82, 0x25ac82, 0x26ad81, 0x27ad81, 0x28ae80, 0x29af7f,
    0x2ab07f, 0x2cb17e, 0x2db27d, 0x2eb37c, 0x2fb47c, 0x31b57b, 0x32b67a, 0x34b679, 0x35b779,
    0x37b878, 0x38b977, 0x3aba76, 0x3bbb75, 0x3dbc74, 0x3fbc73, 0x40bd72, 0x42be71, 0x44bf70,
    0x46c06f, 0x48c16e, 0x4ac16d, 0x4cc26c, 0x4ec36b, 0x50c46a, 0x52c569, 0x54c568, 0x56c667,
    0x58c765, 0x5ac864, 0x5cc863, 0x5ec962, 0x60ca60, 0x63cb5f, 0x65cb5e, 0x67cc5c, 0x69cd5b,
    0x6ccd5a, 0x6ece58, 0x70cf57, 0x73d056, 0x75d054, 0x77d153, 0x7ad151, 0x7cd250, 0x7fd34e,
    0x81d34d, 0x84d44b, 0x86d549, 0x89d548, 0x8bd646, 0x8ed645, 0x90d743, 0x93d741, 0x95d840,
    0x98d83e, 0x9bd93c, 0x9dd93b, 0xa0da39, 0xa2da37, 0xa5db36, 0xa8db34, 0xaadc32, 0xaddc30,
    0xb0dd2f, 0xb2dd2d, 0xb5de2b, 0xb8de29, 0xbade28, 0xbddf26, 0xc0df25, 0xc2df23, 0xc5e021,
    0xc8e020, 0xcae11f, 0xcde11d, 0xd0e11c, 0xd2e21b, 0xd5e21a, 0xd8e219, 0xdae319, 0xdde318,
    0xdfe318, 0xe2e418, 0xe5e419, 0xe7e419, 0xeae51a, 0xece51b, 0xefe51c, 0xf1e51d, 0xf4e61e,
    0xf6e620, 0xf8e621, 0xfbe723, 0xfde725
};

/* Blue, white in the middle, and red; the colours between these lie on straight lines. */
static const uint8_t diverging_ends[5][3] = {
    { 23, 50, 140 }, { 90, 150, 220 }, { 247, 247, 247 }, { 225, 115, 80 }, { 140, 10, 35 }
};

static void diverging_color(unsigned index, uint8_t rgb[3])
{
    double at = index <= 127 ? index / 127.0 * 2 : 2 + (index - 128) / 127.0 * 2;
    unsigned first = at >= 4 ? 3 : (unsigned)at;

    for (int i = 0; i < 3; i++) {
        double a = diverging_ends[first][i], b = diverging_ends[first + 1][i];

        rgb[i] = (uint8_t)lround(a + (b - a) * (at - first));
    }
}

void cli_map_color(enum cli_map map, unsigned index, uint8_t rgb[3])
{
    if (map == CLI_DIVERGING) {
        diverging_color(index, rgb);
    } else if (map == CLI_GREY) {
        memset(rgb, (int)index, 3);
    } else {
        rgb[0] = (uint8_t)(viridis_table[index] >> 16);
        rgb[1] = (uint8_t)(viridis_table[index] >> 8);
        rgb[2] = (uint8_t)viridis_table[index];
    }
}

unsigned cli_shade_index(const struct cli_shade *shade, double value)
{
    /* halves, since the difference of two large numbers may be infinite */
    double at = (value / 2 - shade->low / 2) / (shade->high / 2 - shade->low / 2) * 256;

    return !(at > 0) ? 0 : at >= 255 ? 255 : (unsigned)at;
}

void cli_shade_pixel(const struct cli_shade *shade, double value, uint8_t rgba[4])
{
    if (isnan(value)) {
        memset(rgba, 0, 4);
        return;
    }
    cli_map_color(shade->map, cli_shade_index(shade, value), rgba);
    rgba[3] = 255;
}

/* ---- options -------------------------------- */

int cli_map_option(struct cli *cli, enum cli_map *out)
{
    static const char *const names[] = { "viridis", "grey", "diverging" };
    const char *name = cli_value(cli, "cmap");

    if (name && strcmp(name, "gray") == 0) {
        *out = CLI_GREY;
        return BRC_OK;
    }
    CLI_TRY(cli_choice_option(cli, "cmap", "viridis|grey|diverging", &name));
    for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            *out = (enum cli_map)i;
    return BRC_OK;
}

/* Reads the number before `ends`; an empty one is NaN. Returns NULL if the text is wrong. */
static const char *read_limit(const char *text, char ends, double *out)
{
    char *end;

    *out = NAN;
    if (*text == ends)
        return text;
    *out = strtod(text, &end);
    return end == text || *end != ends || !isfinite(*out) || strchr(" \t", *text) ? NULL : end;
}

int cli_limits_option(struct cli *cli, struct cli_limits *out)
{
    const char *text = cli_value(cli, "limits"), *end;

    *out = (struct cli_limits){ 0, NAN, NAN };
    if (!text)
        return BRC_OK;
    end = read_limit(text, ':', &out->low);
    end = end ? read_limit(end + 1, '\0', &out->high) : NULL;
    if (!end)
        return cli_usage(cli, "option --limits: '%s' is not LOW:HIGH, such as 0:255 or -1.5:1.5",
                         text);
    if (out->low >= out->high)
        return cli_usage(cli, "option --limits: in '%s', the low limit is not below the high one",
                         text);
    out->given = 1;
    return BRC_OK;
}

/* ---- limits --------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Returns the value below which this part of the sorted values lies, as NumPy's percentile does. */
static double value_at(const double *sorted, size_t n, double part)
{
    double at = part * (double)(n - 1), low = floor(at);
    size_t i = (size_t)low;

    return i + 1 < n ? sorted[i] + (sorted[i + 1] - sorted[i]) * (at - low) : sorted[n - 1];
}

/* Moves two equal limits apart, so that the value has the middle colour. */
static void part_limits(struct cli_shade *shade)
{
    double half = fabs(shade->low) * 1e-6;

    if (shade->low < shade->high)
        return;
    half = half > 0.5 ? half : 0.5;
    shade->low -= half;
    shade->high += half;
}

void cli_shade_choose(struct cli_shade *out, enum cli_map map, const struct cli_limits *asked,
                      double *values, size_t n)
{
    size_t finite = 0;

    *out = (struct cli_shade){ map, NAN, NAN };
    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i]))
            values[finite++] = values[i];
    qsort(values, finite, sizeof(*values), compare_doubles);
    if (finite > 0) {
        out->low = value_at(values, finite, asked->given ? 0 : 0.02);
        out->high = value_at(values, finite, asked->given ? 1 : 0.98);
        if (out->low == out->high) {
            out->low = values[0];
            out->high = values[finite - 1];
        }
    }
    if (map == CLI_DIVERGING && !asked->given) {
        out->high = fmax(fabs(out->low), fabs(out->high));
        out->low = -out->high;
    }
    if (asked->given) {
        out->low = isnan(asked->low) ? out->low : asked->low;
        out->high = isnan(asked->high) ? out->high : asked->high;
        if (out->low > out->high) /* one is asked for, and all values are beyond it */
            out->low = out->high = isnan(asked->low) ? out->high : out->low;
    }
    part_limits(out);
}

/* ---- pixels --------------------------------- */

void cli_pixels_begin(struct cli_pixels *out, size_t width, size_t height)
{
    *out = (struct cli_pixels){ width, height, cli_regrow(NULL, width * height, 4) };
    memset(out->rgba, 0, width * height * 4);
}

void cli_pixels_dispose(struct cli_pixels *pixels)
{
    free(pixels->rgba);
    pixels->rgba = NULL;
}
