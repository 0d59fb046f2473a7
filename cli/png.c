/*
 * png.c - PNG files, row by row, by libpng.
 */
#include "picture.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#ifdef __has_include
#if __has_include(<png.h>)
#define HAS_PNG 1
#endif
#endif

static int png_is_small(uint64_t width, uint64_t height)
{
    return width > 0 && height > 0 && width <= CLI_PNG_SIDE && height <= CLI_PNG_SIDE &&
           width * height <= CLI_PNG_PIXELS;
}

#ifndef HAS_PNG

struct cli_png {
    struct cli *cli;
};

int cli_png_check(struct cli *cli, uint64_t width, uint64_t height)
{
    (void)png_is_small(width, height);
    return cli_fail(cli, BRC_EUNSUPPORTED,
                    "this breccia was built without libpng, so it writes no PNG: use -o "
                    "NAME.npy, or install libpng and build it again");
}

int cli_png_begin(struct cli *cli, struct cli_png **out, size_t width, size_t height,
                  enum cli_png_kind kind, enum cli_map map)
{
    (void)kind;
    (void)map;
    *out = NULL;
    return cli_png_check(cli, width, height);
}

int cli_png_row(struct cli_png *png, const uint8_t *row)
{
    (void)row;
    return cli_png_check(png->cli, 0, 0);
}

int cli_png_end(struct cli_png *png)
{
    return cli_png_check(png->cli, 0, 0);
}

void cli_png_free(struct cli_png *png)
{
    (void)png;
}

#else

#include <png.h>

struct cli_png {
    struct cli *cli;
    png_structp writer;
    png_infop info;
    char why[80]; /* the last message of libpng                                */
};

int cli_png_check(struct cli *cli, uint64_t width, uint64_t height)
{
    if (png_is_small(width, height))
        return BRC_OK;
    return cli_fail(cli, BRC_ELIMIT,
                    "a PNG of %llu×%llu pixels is too large: one has at most %u pixels a side and "
                    "2^30 in all; take fewer elements, such as every tenth by [::10, ::10]",
                    (unsigned long long)width, (unsigned long long)height, CLI_PNG_SIDE);
}

/* ---- what libpng calls ---------------------- */

static void png_put(png_structp writer, png_bytep data, png_size_t len)
{
    struct cli_png *png = png_get_io_ptr(writer);

    cli_put(png->cli, (const char *)data, len);
}

static void png_flush_nothing(png_structp writer)
{
    (void)writer;
}

static void png_failed(png_structp writer, png_const_charp message)
{
    struct cli_png *png = png_get_error_ptr(writer);

    snprintf(png->why, sizeof(png->why), "%s", message);
    longjmp(png_jmpbuf(writer), 1);
}

static void png_warned(png_structp writer, png_const_charp message)
{
    (void)writer;
    (void)message;
}

/* ---- rows ----------------------------------- */

static int fail_png(struct cli_png *png)
{
    return cli_fail(png->cli, BRC_EIO, "libpng: %s", png->why);
}

static void png_set_map(struct cli_png *png, enum cli_map map)
{
    png_color palette[256];
    uint8_t rgb[3];

    for (unsigned i = 0; i < 256; i++) {
        cli_map_color(map, i, rgb);
        palette[i] = (png_color){ rgb[0], rgb[1], rgb[2] };
    }
    png_set_PLTE(png->writer, png->info, palette, 256);
}

/* Functions of libpng leave by longjmp() where they fail, so each call of some has a function of
 * its own that changes none of its variables. */
static int png_write_head(struct cli_png *png, size_t width, size_t height, enum cli_png_kind kind,
                          enum cli_map map)
{
    static const int types[] = { PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                 PNG_COLOR_TYPE_PALETTE, PNG_COLOR_TYPE_RGB,
                                 PNG_COLOR_TYPE_RGB_ALPHA };

    if (setjmp(png_jmpbuf(png->writer)))
        return fail_png(png);
    png_set_write_fn(png->writer, png, png_put, png_flush_nothing);
    png_set_IHDR(png->writer, png->info, (png_uint_32)width, (png_uint_32)height, 8, types[kind],
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    /* Colours of a map are smallest as they are; grey, and colours of an image, as differences. The
     * default of libpng tries five ways for each row, and takes four times as long. */
    png_set_compression_level(png->writer, 4);
    png_set_filter(png->writer, PNG_FILTER_TYPE_BASE,
                   kind == CLI_PNG_PALETTE || kind == CLI_PNG_RGBA ? PNG_FILTER_NONE
                                                                   : PNG_FILTER_SUB);
    if (kind == CLI_PNG_PALETTE)
        png_set_map(png, map);
    png_write_info(png->writer, png->info);
    return BRC_OK;
}

int cli_png_begin(struct cli *cli, struct cli_png **out, size_t width, size_t height,
                  enum cli_png_kind kind, enum cli_map map)
{
    struct cli_png *png;
    int rc;

    *out = NULL;
    CLI_TRY(cli_png_check(cli, width, height));
    png = cli_regrow(NULL, 1, sizeof(*png));
    memset(png, 0, sizeof(*png));
    png->cli = cli;
    png->writer = png_create_write_struct(PNG_LIBPNG_VER_STRING, png, png_failed, png_warned);
    png->info = png->writer ? png_create_info_struct(png->writer) : NULL;
    rc = png->info ? png_write_head(png, width, height, kind, map)
                   : cli_fail(cli, BRC_ENOMEM, "out of memory");
    if (rc < 0)
        cli_png_free(png);
    else
        *out = png;
    return rc;
}

int cli_png_row(struct cli_png *png, const uint8_t *row)
{
    if (setjmp(png_jmpbuf(png->writer)))
        return fail_png(png);
    png_write_row(png->writer, row);
    return cli_out_check(png->cli);
}

int cli_png_end(struct cli_png *png)
{
    if (setjmp(png_jmpbuf(png->writer)))
        return fail_png(png);
    png_write_end(png->writer, NULL);
    return BRC_OK;
}

void cli_png_free(struct cli_png *png)
{
    if (!png)
        return;
    png_destroy_write_struct(&png->writer, &png->info);
    free(png);
}

#endif
