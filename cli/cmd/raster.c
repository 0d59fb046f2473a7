/*
 * raster.c - a slice of an array as rows of numbers.
 *
 * A slice is never read as a whole: it is read some rows at a time, or only the elements that are
 * shown.
 */
#include "raster.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cli.h"
#include "../decode.h"
#include "new_array.h"

/* The bytes that are read at once, and the most elements of which all are read to make means. */
enum { AT_ONCE = 64 << 20, AVERAGED_MOST = 1 << 24 };

static int check_numbers(struct cli *cli, const brc_array_info *info, enum cli_number number)
{
    if (strstr(info->dtype, "complex"))
        return cli_fail(cli, BRC_EUNSUPPORTED,
                        "%s has complex numbers, which have no picture: draw their absolute "
                        "values or parts in Python", info->path);
    if (number == CLI_NO_NUMBER)
        return cli_fail(cli, BRC_EUNSUPPORTED,
                        "%s has elements of type %s, which are not numbers: read it as text",
                        info->path, cli_dtype_words(cli, info->dtype));
    return BRC_OK;
}

/* ---- which axes are rows and columns -------- */

/* Lists the axes that the slice keeps. Down to `wanted`, it leaves out those of one element in
 * front. */
static int kept_axes(const struct cli_raster *r, int wanted, int axes[BRC_MAX_NDIM])
{
    int n = 0, drop;

    for (int i = 0; i < r->sel.ndim; i++)
        if (!(r->sel.drop >> i & 1))
            axes[n++] = i;
    for (drop = 0; n - drop > wanted && r->sel.count[axes[drop]] == 1; drop++)
        continue;
    memmove(axes, axes + drop, (size_t)(n - drop) * sizeof(axes[0]));
    return n - drop;
}

/* Returns "[0, :, :]" for an array of three dimensions of which `keep` are wanted. */
static const char *example_slice(struct cli *cli, int ndim, int keep)
{
    const char *out = "[";

    for (int i = 0; i < ndim; i++)
        out = cli_text(cli, "%s%s%s", out, i ? ", " : "", i < ndim - keep ? "0" : ":");
    return cli_text(cli, "%s]", out);
}

static int fail_dimensions(struct cli *cli, const brc_array_info *info, int has, int wanted)
{
    const char *path = info->path;

    if (wanted == 2 && has == 1)
        return cli_fail(cli, BRC_EINVAL, "the slice of %s has one dimension: --plot draws it",
                        path);
    if (wanted == 2 && has > 2)
        return cli_fail(cli, BRC_EINVAL,
                        "the slice of %s has %d dimensions, and a picture has 2, or 3 whose last "
                        "one is red, green and blue as uint8: give a SLICE such as '%s'",
                        path, has, example_slice(cli, info->ndim, 2));
    if (wanted == 1 && has > 1)
        return cli_fail(cli, BRC_EINVAL,
                        "the slice of %s has %d dimensions, and a line has 1: give a SLICE such as "
                        "'%s'%s", path, has, example_slice(cli, info->ndim, 1),
                        has == 2 ? ", or draw all of it by --image" : "");
    return cli_fail(cli, BRC_EINVAL, "the slice of %s is a single value: nothing can be drawn",
                    path);
}

static int raster_begin(struct cli *cli, brc_array *array, const brc_sel *sel,
                        struct cli_raster *out)
{
    const brc_array_info *info = brc_array_describe(array);

    memset(out, 0, sizeof(*out));
    out->array = array;
    out->sel = *sel;
    out->row_axis = out->column_axis = out->channel_axis = -1;
    out->width = 1;
    out->channels = 1;
    if (!(info->flags & BRC_ARRAY_READABLE))
        return cli_fail(cli, BRC_EUNSUPPORTED, "%s cannot be read: %s", info->path, info->why);
    out->number = cli_number_of(info);
    return check_numbers(cli, info, out->number);
}

static int check_not_empty(struct cli *cli, const struct cli_raster *r)
{
    if (r->height > 0 && r->width > 0)
        return BRC_OK;
    return cli_fail(cli, BRC_EINVAL, "the slice of %s has no elements: nothing can be drawn",
                    brc_array_describe(r->array)->path);
}

int cli_raster_picture(struct cli *cli, brc_array *array, const brc_sel *sel,
                       struct cli_raster *out)
{
    const brc_array_info *info = brc_array_describe(array);
    int axes[BRC_MAX_NDIM], n;
    uint64_t last;

    CLI_TRY(raster_begin(cli, array, sel, out));
    n = kept_axes(out, 3, axes);
    last = n == 3 ? sel->count[axes[2]] : 0;
    if (out->number == CLI_U8 && (last == 3 || last == 4)) {
        out->channel_axis = axes[2];
        out->channels = (int)last;
    } else {
        n = kept_axes(out, 2, axes);
        if (n != 2)
            return fail_dimensions(cli, info, n, 2);
    }
    out->row_axis = axes[0];
    out->column_axis = axes[1];
    out->height = sel->count[axes[0]];
    out->width = sel->count[axes[1]];
    return check_not_empty(cli, out);
}

int cli_raster_column(struct cli *cli, brc_array *array, const brc_sel *sel,
                      struct cli_raster *out)
{
    int axes[BRC_MAX_NDIM], n;

    CLI_TRY(raster_begin(cli, array, sel, out));
    n = kept_axes(out, 1, axes);
    if (n != 1)
        return fail_dimensions(cli, brc_array_describe(array), n, 1);
    out->row_axis = axes[0];
    out->height = sel->count[axes[0]];
    return check_not_empty(cli, out);
}

/* ---- elements as numbers -------------------- */

#define EACH_AS(type, expression)                                                                  \
    for (size_t i = 0; i < n; i++) {                                                               \
        type v;                                                                                    \
        memcpy(&v, at + i * sizeof(v), sizeof(v));                                                 \
        out[i] = (double)(expression);                                                             \
    }                                                                                              \
    return BRC_OK

/* Reads numbers from their texts; what is not there (null, NaT) is NaN. */
static int numbers_by_text(struct cli *cli, brc_array *array, const uint8_t *at, size_t n,
                           double *out)
{
    const brc_array_info *info = brc_array_describe(array);
    brc_buf text = BRC_BUF_INIT;
    char words[64], *end;
    int rc = BRC_OK;

    for (size_t i = 0; i < n && rc >= 0; i++) {
        text.len = 0;
        rc = brc_element_format(&text, array, at + i * info->item_size, 0, &cli->err);
        if (rc < 0)
            break;
        snprintf(words, sizeof(words), "%.*s", (int)text.len, (const char *)text.data);
        out[i] = strcmp(words, "true") == 0 ? 1 : strtod(words, &end);
        if (strcmp(words, "null") == 0 || strcmp(words, "NaT") == 0)
            out[i] = NAN;
        else if (strcmp(words, "true") != 0 && strcmp(words, "false") != 0 &&
                 (end == words || *end))
            rc = cli_fail(cli, BRC_EUNSUPPORTED,
                          "%s has elements of type %s, which are not numbers: read it as text",
                          info->path, cli_dtype_words(cli, info->dtype));
    }
    brc_buf_dispose(&text);
    return rc;
}

/* Reads numbers as --decode means them. */
static int decoded_numbers(const struct cli_decoder *decoder, const uint8_t *at, size_t n,
                           double *out)
{
    struct cli_value value;

    for (size_t i = 0; i < n; i++) {
        (void)cli_decode(decoder, at + i * decoder->item, &value); /* fails for times alone */
        out[i] = (double)value.number;
    }
    return BRC_OK;
}

static int to_numbers(struct cli *cli, const struct cli_raster *r, const void *bytes, size_t n,
                      double *out)
{
    const uint8_t *at = bytes;

    if (cli->decoder && cli->decoder->seen != CLI_TIME)
        return decoded_numbers(cli->decoder, at, n, out);
    switch (r->number) {
    case CLI_BOOL:
        EACH_AS(uint8_t, v != 0);
    case CLI_I8:
        EACH_AS(int8_t, v);
    case CLI_I16:
        EACH_AS(int16_t, v);
    case CLI_I32:
        EACH_AS(int32_t, v);
    case CLI_I64:
        EACH_AS(int64_t, v);
    case CLI_U8:
        EACH_AS(uint8_t, v);
    case CLI_U16:
        EACH_AS(uint16_t, v);
    case CLI_U32:
        EACH_AS(uint32_t, v);
    case CLI_U64:
        EACH_AS(uint64_t, v);
    case CLI_F16:
        EACH_AS(uint16_t, cli_half_number(v));
    case CLI_F32:
        EACH_AS(float, v);
    case CLI_F64:
        EACH_AS(double, v);
    case CLI_TIME:
        EACH_AS(int64_t, v == INT64_MIN ? NAN : (double)v);
    default:
        return numbers_by_text(cli, r->array, at, n, out);
    }
}

/* ---- rows ----------------------------------- */

void cli_rows_begin(struct cli_rows *rows, const struct cli_raster *raster)
{
    memset(rows, 0, sizeof(*rows));
    rows->raster = raster;
}

void cli_rows_dispose(struct cli_rows *rows)
{
    free(rows->bytes);
    free(rows->values);
    memset(rows, 0, sizeof(*rows));
}

static size_t numbers_in_row(const struct cli_raster *r)
{
    return (size_t)r->width * (size_t)r->channels;
}

/* Returns how many rows to read from row y: what is read at once, to the end of a chunk if that is
 * nearer. */
static uint64_t rows_at_once(const struct cli_raster *r, uint64_t y)
{
    const brc_array_info *info = brc_array_describe(r->array);
    uint64_t most = AT_ONCE / 2 / (numbers_in_row(r) * sizeof(double)), at, over;

    most = most > 0 ? most : 1;
    if (most >= r->height - y)
        return r->height - y;
    if (r->sel.step[r->row_axis] != 1 || !(info->flags & BRC_ARRAY_REGULAR))
        return most;
    at = r->sel.start[r->row_axis] + y;
    over = (at + most) % info->chunk[r->row_axis];
    return over < most ? most - over : most;
}

int cli_rows_at(struct cli *cli, struct cli_rows *rows, uint64_t y, const double **out)
{
    const struct cli_raster *r = rows->raster;
    size_t item = brc_array_describe(r->array)->item_size, per_row = numbers_in_row(r), n, len;
    brc_sel sel = r->sel;

    if (y < rows->first || y >= rows->first + rows->n) {
        n = (size_t)rows_at_once(r, y);
        if (n > rows->cap) {
            rows->values = cli_regrow(rows->values, n * per_row, sizeof(double));
            rows->bytes = cli_regrow(rows->bytes, n * per_row, item);
            rows->cap = n;
        }
        len = n * per_row * item;
        sel.start[r->row_axis] += y * sel.step[r->row_axis];
        sel.count[r->row_axis] = n;
        rows->n = 0;
        CLI_TRY(brc_array_read(r->array, &sel, rows->bytes, len, &cli->err));
        CLI_TRY(to_numbers(cli, r, rows->bytes, n * per_row, rows->values));
        rows->first = y;
        rows->n = n;
    }
    *out = rows->values + (size_t)(y - rows->first) * per_row;
    return BRC_OK;
}

/* ---- fewer elements ------------------------- */

uint64_t cli_box_begin(uint64_t whole, uint64_t n, uint64_t i)
{
    return whole / n * i + whole % n * i / n;
}

static uint64_t box_middle(uint64_t whole, uint64_t n, uint64_t i)
{
    uint64_t begin = cli_box_begin(whole, n, i), end = cli_box_begin(whole, n, i + 1);

    return begin + (end - begin) / 2;
}

static int is_few(uint64_t height, uint64_t width, int channels)
{
    return width <= AVERAGED_MOST && height <= AVERAGED_MOST / (width * (uint64_t)channels);
}

int cli_raster_is_averaged(const struct cli_raster *r, uint64_t height, uint64_t width)
{
    return (height < r->height || width < r->width) && is_few(r->height, r->width, r->channels) &&
           (r->channels > 1 || r->number == CLI_F16 || r->number == CLI_F32 ||
            r->number == CLI_F64);
}

/* Adds a row of elements to the sums of its boxes. */
static void add_to_boxes(const struct cli_raster *r, const double *row, uint64_t width,
                         double *sums, uint32_t *counts)
{
    size_t channels = (size_t)r->channels;

    for (uint64_t box = 0; box < width; box++) {
        uint64_t end = cli_box_begin(r->width, width, box + 1);

        for (uint64_t x = cli_box_begin(r->width, width, box); x < end; x++) {
            for (size_t k = 0; k < channels; k++) {
                double value = row[x * channels + k];

                if (isnan(value))
                    continue;
                sums[box * channels + k] += value;
                counts[box * channels + k]++;
            }
        }
    }
}

/* Writes the means of boxes, without the elements that are NaN. */
static int average(struct cli *cli, const struct cli_raster *r, uint64_t height, uint64_t width,
                   double *out)
{
    size_t per_row = (size_t)width * (size_t)r->channels;
    uint32_t *counts = cli_alloc(cli, per_row, sizeof(*counts));
    struct cli_rows rows;
    const double *row;
    int rc = BRC_OK;

    cli_rows_begin(&rows, r);
    for (uint64_t box = 0; box < height && rc >= 0; box++) {
        double *sums = out + (size_t)box * per_row;
        uint64_t end = cli_box_begin(r->height, height, box + 1);

        memset(sums, 0, per_row * sizeof(*sums));
        memset(counts, 0, per_row * sizeof(*counts));
        for (uint64_t y = cli_box_begin(r->height, height, box); y < end && rc >= 0; y++) {
            rc = cli_rows_at(cli, &rows, y, &row);
            if (rc >= 0)
                add_to_boxes(r, row, width, sums, counts);
        }
        for (size_t i = 0; i < per_row; i++)
            sums[i] = counts[i] ? sums[i] / counts[i] : NAN;
    }
    cli_rows_dispose(&rows);
    return rc;
}

/* Lists the positions of the middles of boxes along an axis. */
static int middles(struct cli *cli, const struct cli_raster *r, int axis, uint64_t whole,
                   uint64_t n, const int64_t **out)
{
    int64_t *places = cli_alloc(cli, (size_t)n, sizeof(*places));

    for (uint64_t i = 0; i < n; i++) {
        uint64_t at =
            r->sel.start[axis] + box_middle(whole, n, i) * r->sel.step[axis];

        if (at > INT64_MAX)
            return cli_fail(cli, BRC_ELIMIT, "%s has more than 2^63 elements along axis %d",
                            brc_array_describe(r->array)->path, axis);
        places[i] = (int64_t)at;
    }
    *out = places;
    return BRC_OK;
}

int cli_raster_pick(struct cli *cli, const struct cli_raster *r, uint64_t height, uint64_t width,
                    double *out)
{
    size_t n = (size_t)height * (size_t)width * (size_t)r->channels;
    size_t item = brc_array_describe(r->array)->item_size;
    brc_buffer buffer = BRC_BUFFER_INIT;
    brc_at at = BRC_AT_INIT;
    brc_io io = BRC_IO_INIT;
    int rc;

    at.ndim = r->sel.ndim;
    memcpy(at.start, r->sel.start, sizeof(at.start));
    memcpy(at.count, r->sel.count, sizeof(at.count));
    memcpy(at.step, r->sel.step, sizeof(at.step));
    CLI_TRY(middles(cli, r, r->row_axis, r->height, height, &at.index[r->row_axis]));
    at.count[r->row_axis] = height;
    if (r->column_axis >= 0) {
        CLI_TRY(middles(cli, r, r->column_axis, r->width, width, &at.index[r->column_axis]));
        at.count[r->column_axis] = width;
    }
    buffer.len = n * item;
    buffer.data = cli_regrow(NULL, n, item);
    io.array = r->array;
    io.at = &at;
    io.buffer = &buffer;
    rc = brc_read(&io, 1, &cli->err);
    if (rc >= 0)
        rc = to_numbers(cli, r, buffer.data, n, out);
    free(buffer.data);
    return rc;
}

int cli_raster_sample(struct cli *cli, const struct cli_raster *r, uint64_t height, uint64_t width,
                      double *out)
{
    if (cli_raster_is_averaged(r, height, width))
        return average(cli, r, height, width, out);
    return cli_raster_pick(cli, r, height, width, out);
}
