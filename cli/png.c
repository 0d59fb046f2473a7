/*
 * png.c - PNG files, row by row: eight bits a sample, not interlaced.
 *
 * A file is a signature and chunks, each with its length, its name, and a CRC of name and bytes.
 * The rows, each with a filter's number in front, are one zlib stream, cut into chunks of `out`.
 */
#include "picture.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "cli.h"

enum { FILTER_NONE, FILTER_SUB };

struct cli_png {
    struct cli *cli;
    z_stream z;
    int filter;
    size_t pixel, row; /* bytes of each                                          */
    uint8_t *line;     /* a filtered row, after its filter's number              */
    uint8_t out[8192];
};

/* Each kind of picture by the format's colour type and the samples of a pixel. */
static const struct {
    uint8_t type, samples;
} kinds[] = {
    [CLI_PNG_GREY] = { 0, 1 }, [CLI_PNG_GREY_ALPHA] = { 4, 2 }, [CLI_PNG_PALETTE] = { 3, 1 },
    [CLI_PNG_RGB] = { 2, 3 },  [CLI_PNG_RGBA] = { 6, 4 },
};

int cli_png_check(struct cli *cli, uint64_t width, uint64_t height)
{
    if (width > 0 && height > 0 && width <= CLI_PNG_SIDE && height <= CLI_PNG_SIDE &&
        width * height <= CLI_PNG_PIXELS)
        return BRC_OK;
    return cli_fail(cli, BRC_ELIMIT,
                    "a PNG of %llu×%llu pixels is too large: one has at most %u pixels a side and "
                    "2^30 in all; take fewer elements, such as every tenth by [::10, ::10]",
                    (unsigned long long)width, (unsigned long long)height, CLI_PNG_SIDE);
}

/* ---- chunks --------------------------------- */

static void put_be32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Puts a chunk of up to 8192 bytes. */
static void png_put(struct cli_png *png, const char *name, const uint8_t *data, size_t len)
{
    uint8_t head[8], tail[4];
    uLong sum;

    put_be32(head, (uint32_t)len);
    memcpy(head + 4, name, 4);
    sum = crc32(crc32(0, head + 4, 4), data, (uInt)len);
    put_be32(tail, (uint32_t)sum);
    cli_put(png->cli, (const char *)head, sizeof(head));
    cli_put(png->cli, (const char *)data, len);
    cli_put(png->cli, (const char *)tail, sizeof(tail));
}

static void png_put_head(struct cli_png *png, size_t width, size_t height, enum cli_png_kind kind,
                         enum cli_map map)
{
    uint8_t head[13] = { 0 }, palette[256 * 3];

    cli_put(png->cli, "\211PNG\r\n\032\n", 8);
    put_be32(head, (uint32_t)width);
    put_be32(head + 4, (uint32_t)height);
    head[8] = 8;
    head[9] = kinds[kind].type;
    png_put(png, "IHDR", head, sizeof(head));
    if (kind != CLI_PNG_PALETTE)
        return;
    for (unsigned i = 0; i < 256; i++)
        cli_map_color(map, i, palette + (size_t)3 * i);
    png_put(png, "PLTE", palette, sizeof(palette));
}

/* ---- rows ----------------------------------- */

/* Compresses `len` bytes, and puts what is complete; with Z_FINISH all that is left. */
static int png_deflate(struct cli_png *png, uint8_t *data, size_t len, int flush)
{
    int rc;

    png->z.next_in = data;
    png->z.avail_in = (uInt)len;
    do {
        if (png->z.avail_out == 0) {
            png_put(png, "IDAT", png->out, sizeof(png->out));
            png->z.next_out = png->out;
            png->z.avail_out = sizeof(png->out);
        }
        rc = deflate(&png->z, flush);
    } while (rc == Z_OK && png->z.avail_out == 0);
    if (rc != (flush == Z_FINISH ? Z_STREAM_END : Z_OK))
        return cli_fail(png->cli, BRC_EIO, "zlib cannot compress the picture (%d)", rc);
    return cli_out_check(png->cli);
}

int cli_png_begin(struct cli *cli, struct cli_png **out, size_t width, size_t height,
                  enum cli_png_kind kind, enum cli_map map)
{
    struct cli_png *png;

    *out = NULL;
    CLI_TRY(cli_png_check(cli, width, height));
    png = cli_regrow(NULL, 1, sizeof(*png));
    memset(png, 0, sizeof(*png));
    png->cli = cli;
    png->pixel = kinds[kind].samples;
    png->row = width * png->pixel;
    png->line = cli_regrow(NULL, png->row + 1, 1);
    /* Colours of a map are smallest as they are; grey, and colours of an image, as differences.
     * Trying all five filters for each row would take four times as long. */
    png->filter = kind == CLI_PNG_PALETTE || kind == CLI_PNG_RGBA ? FILTER_NONE : FILTER_SUB;
    if (deflateInit2(&png->z, 4, Z_DEFLATED, 15, 8,
                     png->filter == FILTER_NONE ? Z_DEFAULT_STRATEGY : Z_FILTERED) != Z_OK) {
        cli_png_free(png);
        return cli_fail(cli, BRC_ENOMEM, "out of memory");
    }
    png->z.next_out = png->out;
    png->z.avail_out = sizeof(png->out);
    png_put_head(png, width, height, kind, map);
    *out = png;
    return BRC_OK;
}

int cli_png_row(struct cli_png *png, const uint8_t *row)
{
    uint8_t *line = png->line + 1;

    png->line[0] = (uint8_t)png->filter;
    memcpy(line, row, png->row);
    for (size_t i = png->pixel; png->filter == FILTER_SUB && i < png->row; i++)
        line[i] = (uint8_t)(row[i] - row[i - png->pixel]);
    return png_deflate(png, png->line, png->row + 1, Z_NO_FLUSH);
}

int cli_png_end(struct cli_png *png)
{
    CLI_TRY(png_deflate(png, NULL, 0, Z_FINISH));
    png_put(png, "IDAT", png->out, sizeof(png->out) - png->z.avail_out);
    png_put(png, "IEND", png->out, 0); /* crc32() takes no NULL */
    return cli_out_check(png->cli);
}

void cli_png_free(struct cli_png *png)
{
    if (!png)
        return;
    deflateEnd(&png->z);
    free(png->line);
    free(png);
}
