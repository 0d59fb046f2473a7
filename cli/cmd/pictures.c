/*
 * pictures.c - slices of arrays as pictures and lines.
 */
#include "pictures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../cli.h"
#include "../draw.h"
#include "../picture.h"
#include "../select.h"
#include "raster.h"

/* ==== what all pictures share ============================ */

enum { CHOSEN_BY = 1 << 20 /* elements choose the limits of a PNG */, PANELS = 3, SIDES = 2 };

/* The colours and limits that the options ask for. */
struct look {
    enum cli_map map;
    struct cli_limits limits;
};

static int read_look(struct cli *cli, struct look *out)
{
    out->map = CLI_VIRIDIS;
    CLI_TRY(cli_map_option(cli, &out->map));
    return cli_limits_option(cli, &out->limits);
}

static int check_look(struct cli *cli, const struct cli_raster *r)
{
    if (r->channels == 1 || (!cli_has(cli, "cmap") && !cli_has(cli, "limits")))
        return BRC_OK;
    return cli_usage(cli, "%s has red, green and blue, which are drawn as they are: leave out "
                          "--cmap and --limits",
                     brc_array_describe(r->array)->path);
}

/* Chooses limits by these numbers, in a copy. Truth values are 0 and 1 whatever is there. */
static void choose_shade(const struct cli_raster *r, const struct look *look, const double *values,
                         size_t n, struct cli_shade *out)
{
    const struct cli_limits truth = { 1, 0, 1 };
    double *sorted = cli_regrow(NULL, n, sizeof(*sorted));
    int is_truth = r->number == CLI_BOOL && !look->limits.given;

    memcpy(sorted, values, n * sizeof(*sorted));
    cli_shade_choose(out, look->map, is_truth ? &truth : &look->limits, sorted, n);
    free(sorted);
}

static uint8_t channel_byte(double value)
{
    return value > 0 ? value < 255 ? (uint8_t)lround(value) : 255 : 0;
}

/* Writes the pixel of one element: a value or its channels. */
static void element_pixel(const double *values, int channels, const struct cli_shade *shade,
                          uint8_t rgba[4])
{
    if (channels == 1) {
        cli_shade_pixel(shade, values[0], rgba);
        return;
    }
    rgba[3] = 255;
    for (int k = 0; k < channels; k++)
        rgba[k] = channel_byte(values[k]);
}

/* ---- labels --------------------------------- */

/* Returns a value as the array's elements are printed. */
static const char *value_label(struct cli *cli, const struct cli_raster *r, double value)
{
    int64_t time = value >= 9e18 ? INT64_MAX : value <= -9e18 ? -INT64_MAX : (int64_t)value;
    brc_buf text = BRC_BUF_INIT;
    const char *label;

    if (isnan(value))
        return "NaN";
    if (r->number != CLI_TIME)
        return fabs(value) < 1e6 && value == floor(value) ? cli_text(cli, "%.0f", value)
                                                          : cli_text(cli, "%.5g", value);
    if (brc_element_format(&text, r->array, &time, 0, &cli->err) < 0)
        label = cli_text(cli, "%.5g", value);
    else
        label = cli_escaped_bytes(cli, (const char *)text.data, text.len);
    brc_buf_dispose(&text);
    return label;
}

/* Returns "/t2m 241×480 float32"; "/t2m 241 float32" for a column. */
static const char *raster_label(struct cli *cli, const struct cli_raster *r)
{
    const brc_array_info *info = brc_array_describe(r->array);
    const char *type = info->dtype[0] == '{' ? "" : info->dtype;
    const char *colors = r->channels == 4 ? " RGBA" : r->channels == 3 ? " RGB" : "";

    const char *width = r->column_axis < 0 ? ""
                                           : cli_text(cli, "×%llu", (unsigned long long)r->width);

    return cli_text(cli, "%s %llu%s%s%s%s", cli_escaped(cli, info->path),
                    (unsigned long long)r->height, width, colors, *type ? " " : "",
                    cli_escaped(cli, type));
}

/* Returns "4×6 elements", or "about" so many. */
static const char *box_label(struct cli *cli, const struct cli_raster *r, size_t height,
                             size_t width)
{
    double y = (double)r->height / (double)height, x = (double)r->width / (double)width;
    int is_whole = y == floor(y) && x == floor(x);

    return cli_text(cli, "%s%.3g×%.3g elements", is_whole ? "" : "about ", y, x);
}

static void put_scale(struct cli *cli, const struct cli_screen *screen,
                      const struct cli_raster *r, const struct cli_shade *shade)
{
    if (isnan(shade->low))
        cli_puts(cli, "no finite value");
    else
        cli_draw_map(cli, screen, shade->map, value_label(cli, r, shade->low),
                     value_label(cli, r, shade->high));
}

/* ---- panels --------------------------------- */

/* A picture on the screen: the numbers that are shown, and how many pixels they take. */
struct panel {
    const struct cli_raster *raster;
    struct cli_shade shade;
    size_t height, width;             /* of the numbers                        */
    size_t pixel_height, pixel_width; /* those, or more where each is enlarged */
    double *values;
    const char *title;
};

/* Sizes the panel for a part of the screen. */
static void panel_begin(struct cli *cli, struct panel *panel, const struct cli_raster *r,
                        const struct cli_screen *screen, size_t columns, size_t rows)
{
    memset(panel, 0, sizeof(*panel));
    panel->raster = r;
    cli_screen_fit(screen, columns, rows, r->width, r->height, &panel->pixel_width,
                   &panel->pixel_height);
    panel->width = panel->pixel_width < r->width ? panel->pixel_width : (size_t)r->width;
    panel->height = panel->pixel_height < r->height ? panel->pixel_height : (size_t)r->height;
    panel->values = cli_alloc(cli, panel->width * panel->height * (size_t)r->channels,
                              sizeof(*panel->values));
}

static size_t panel_numbers(const struct panel *panel)
{
    return panel->width * panel->height * (size_t)panel->raster->channels;
}

/* Draws the panel into pixels, from column x on. */
static void panel_into(const struct panel *panel, struct cli_pixels *pixels, size_t x)
{
    size_t channels = (size_t)panel->raster->channels;

    for (size_t y = 0; y < panel->pixel_height; y++) {
        const double *row =
            panel->values + y * panel->height / panel->pixel_height * panel->width * channels;
        uint8_t *out = pixels->rgba + (y * pixels->width + x) * 4;

        for (size_t i = 0; i < panel->pixel_width; i++)
            element_pixel(row + i * panel->width / panel->pixel_width * channels, (int)channels,
                          &panel->shade, out + i * 4);
    }
}

/* Draws panels beside each other, with their titles above them. */
static void put_panels(struct cli *cli, const struct cli_screen *screen, const struct panel *panels,
                       size_t n)
{
    enum { GAP = 2 };
    size_t at[PANELS + 1] = { 0 }, height = 0, cell = cli_screen_cell(screen);
    struct cli_pixels pixels;

    for (size_t i = 0; i < n; i++) {
        size_t cells = (panels[i].pixel_width + cell - 1) / cell;
        size_t title = panels[i].title ? cli_text_width(panels[i].title) : 0;

        cells = title > cells ? title : cells;
        at[i + 1] = at[i] + cells + (i + 1 < n ? GAP : 0);
        height = panels[i].pixel_height > height ? panels[i].pixel_height : height;
        if (panels[i].title && i + 1 < n)
            cli_put_padded(cli, panels[i].title, cells + GAP);
        else if (panels[i].title)
            cli_printf(cli, "%s\n", panels[i].title);
    }
    cli_pixels_begin(&pixels, n == 1 ? panels[0].pixel_width : at[n] * cell, height);
    for (size_t i = 0; i < n; i++)
        panel_into(&panels[i], &pixels, at[i] * cell);
    cli_draw_pixels(cli, screen, &pixels);
    cli_pixels_dispose(&pixels);
}

/* Says what a pixel is, where the picture has fewer than the slice has elements, and `more`. */
static void put_reduced(struct cli *cli, const struct cli_screen *screen,
                        const struct panel *panel, const char *more)
{
    const struct cli_raster *r = panel->raster;
    const char *words;

    if (panel->width == r->width && panel->height == r->height)
        return;
    words = cli_text(cli, "each pixel is %s %s",
                     cli_raster_is_averaged(r, panel->height, panel->width) ? "the mean of"
                                                                            : "one of",
                     box_label(cli, r, panel->height, panel->width));
    cli_puts(cli, words);
    if (*more)
        cli_printf(cli, ",%s%s",
                   cli_text_width(words) + cli_text_width(more) + 2 > screen->columns ? "\n" : " ",
                   more);
    cli_puts(cli, "\n");
}

/* ==== read --image ======================================= */

/* Two lines are below a picture, and the one of the next prompt. */
enum { LINES_BESIDE = 3 };

static size_t rows_for(const struct cli_screen *screen)
{
    return screen->rows > LINES_BESIDE + 4 ? screen->rows - LINES_BESIDE : 4;
}

int cli_put_image(struct cli *cli, const brc_sel *sel)
{
    struct cli_screen screen;
    struct cli_raster raster;
    struct panel panel;
    struct look look;

    CLI_TRY(read_look(cli, &look));
    CLI_TRY(cli_screen_find(cli, &screen));
    CLI_TRY(cli_raster_picture(cli, cli->array, sel, &raster));
    CLI_TRY(check_look(cli, &raster));
    if (screen.how == CLI_DRAW_TEXT) /* only grey says how bright a value is */
        look.map = look.map == CLI_DIVERGING ? CLI_DIVERGING : CLI_GREY;
    panel_begin(cli, &panel, &raster, &screen, screen.columns, rows_for(&screen));
    CLI_TRY(cli_raster_sample(cli, &raster, panel.height, panel.width, panel.values));
    choose_shade(&raster, &look, panel.values, panel_numbers(&panel), &panel.shade);
    if (screen.how == CLI_DRAW_TEXT)
        panel.shade.map = CLI_GREY;
    put_panels(cli, &screen, &panel, 1);
    if (raster.channels == 1) {
        put_scale(cli, &screen, &raster, &panel.shade);
        cli_puts(cli, "  ");
    }
    cli_printf(cli, "%s\n", raster_label(cli, &raster));
    put_reduced(cli, &screen, &panel, "");
    return cli_out_check(cli);
}

/* ==== read -o NAME.png =================================== */

/* Sets how many rows and columns of numbers choose the limits: all, or evenly spread ones. */
static void choosing_size(const struct cli_raster *r, uint64_t *height, uint64_t *width)
{
    const uint64_t side = 1024; /* its square is CHOSEN_BY */

    *height = r->height;
    *width = r->width;
    if (r->height <= CHOSEN_BY / r->width)
        return;
    if (r->height > side && r->width > side) {
        *height = *width = side;
    } else if (r->height > r->width) {
        *height = CHOSEN_BY / r->width;
    } else {
        *width = CHOSEN_BY / r->height;
    }
}

/* Chooses limits by at most CHOSEN_BY elements. */
static int choose_png_shade(struct cli *cli, const struct cli_raster *r, const struct look *look,
                            struct cli_shade *out)
{
    uint64_t height, width;
    double *values;
    int rc;

    *out = (struct cli_shade){ look->map, 0, 1 };
    if (r->channels > 1)
        return BRC_OK;
    choosing_size(r, &height, &width);
    values = cli_regrow(NULL, (size_t)(height * width), sizeof(*values));
    rc = cli_raster_pick(cli, r, height, width, values);
    if (rc >= 0)
        choose_shade(r, look, values, (size_t)(height * width), out);
    free(values);
    return rc;
}

/* A PNG has no transparent pixels where no element can be NaN. */
static enum cli_png_kind png_kind(const struct cli_raster *r, enum cli_map map)
{
    int is_whole = r->number >= CLI_BOOL && r->number <= CLI_U64;

    if (r->channels > 1)
        return r->channels == 4 ? CLI_PNG_RGBA : CLI_PNG_RGB;
    if (map == CLI_GREY)
        return is_whole ? CLI_PNG_GREY : CLI_PNG_GREY_ALPHA;
    return is_whole ? CLI_PNG_PALETTE : CLI_PNG_RGBA;
}

/* Writes a row of numbers as the bytes of a row of the PNG. */
static void png_bytes(const struct cli_raster *r, const struct cli_shade *shade,
                      enum cli_png_kind kind, const double *row, uint8_t *out)
{
    size_t n = (size_t)r->width;

    if (r->channels > 1) {
        for (size_t i = 0; i < n * (size_t)r->channels; i++)
            out[i] = channel_byte(row[i]);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (kind == CLI_PNG_RGBA) {
            cli_shade_pixel(shade, row[i], out + 4 * i);
        } else if (kind == CLI_PNG_GREY_ALPHA) {
            out[2 * i] = isnan(row[i]) ? 0 : (uint8_t)cli_shade_index(shade, row[i]);
            out[2 * i + 1] = isnan(row[i]) ? 0 : 255;
        } else {
            out[i] = (uint8_t)cli_shade_index(shade, row[i]);
        }
    }
}

static int put_png_rows(struct cli *cli, const struct cli_raster *r, const struct cli_shade *shade,
                        enum cli_png_kind kind, struct cli_png *png)
{
    uint8_t *bytes = cli_alloc(cli, (size_t)r->width, 4);
    struct cli_rows rows;
    const double *row;
    int rc = BRC_OK;

    cli_rows_begin(&rows, r);
    for (uint64_t y = 0; y < r->height && rc >= 0; y++) {
        rc = cli_rows_at(cli, &rows, y, &row);
        if (rc < 0)
            break;
        png_bytes(r, shade, kind, row, bytes);
        rc = cli_png_row(png, bytes);
    }
    cli_rows_dispose(&rows);
    return rc < 0 ? rc : cli_png_end(png);
}

int cli_put_png(struct cli *cli, const brc_sel *sel)
{
    struct cli_raster raster;
    struct cli_shade shade;
    struct cli_png *png;
    enum cli_png_kind kind;
    struct look look;
    int rc;

    CLI_TRY(read_look(cli, &look));
    CLI_TRY(cli_raster_picture(cli, cli->array, sel, &raster));
    CLI_TRY(check_look(cli, &raster));
    CLI_TRY(cli_png_check(cli, raster.width, raster.height));
    CLI_TRY(choose_png_shade(cli, &raster, &look, &shade));
    kind = png_kind(&raster, look.map);
    CLI_TRY(cli_png_begin(cli, &png, (size_t)raster.width, (size_t)raster.height, kind, look.map));
    rc = put_png_rows(cli, &raster, &shade, kind, png);
    cli_png_free(png);
    return rc;
}

/* ==== read --plot ======================================== */

enum { PLOTTED_MOST = 1 << 24, PICKED_A_DOT = 16 };

/* Adds a value to a column of dots. NaN leaves the column as it is. */
static void widen_line(struct cli_line *line, size_t x, double value)
{
    if (isnan(value))
        return;
    if (isnan(line->low[x]) || value < line->low[x])
        line->low[x] = value;
    if (isnan(line->high[x]) || value > line->high[x])
        line->high[x] = value;
}

/* Draws straight lines between values that are further from each other than a dot. */
static void line_between(struct cli_line *line, const double *values, size_t n)
{
    for (size_t x = 0; x < line->n; x++) {
        double at = n > 1 ? (double)x * (double)(n - 1) / (double)(line->n - 1) : 0;
        size_t i = (size_t)at;

        if (i + 1 < n && isfinite(values[i]) && isfinite(values[i + 1]))
            widen_line(line, x, values[i] + (values[i + 1] - values[i]) * (at - (double)i));
    }
    for (size_t i = 0; i < n; i++)
        widen_line(line,
                   n > 1 ? (size_t)lround((double)i * (double)(line->n - 1) / (double)(n - 1)) : 0,
                   values[i]);
}

/* Reads all elements. Of many, each column of dots has the lowest and the highest. */
static int line_of_all(struct cli *cli, const struct cli_raster *r, struct cli_line *line)
{
    int is_short = r->height <= line->n;
    double *values = is_short ? cli_alloc(cli, (size_t)r->height, sizeof(*values)) : NULL;
    struct cli_rows rows;
    const double *value;
    size_t x = 0;
    int rc = BRC_OK;

    cli_rows_begin(&rows, r);
    for (uint64_t i = 0; i < r->height && rc >= 0; i++) {
        rc = cli_rows_at(cli, &rows, i, &value);
        if (rc < 0)
            break;
        while (!values && i >= cli_box_begin(r->height, line->n, x + 1))
            x++;
        if (values)
            values[i] = *value;
        else
            widen_line(line, x, *value);
    }
    if (rc >= 0 && values)
        line_between(line, values, (size_t)r->height);
    cli_rows_dispose(&rows);
    return rc;
}

/* Reads a few elements for each column of dots. */
static int line_of_some(struct cli *cli, const struct cli_raster *r, struct cli_line *line)
{
    size_t n = line->n * PICKED_A_DOT;
    double *values = cli_alloc(cli, n, sizeof(*values));

    CLI_TRY(cli_raster_pick(cli, r, n, 1, values));
    for (size_t i = 0; i < n; i++)
        widen_line(line, i / PICKED_A_DOT, values[i]);
    return BRC_OK;
}

/* Chooses limits: those asked for, or the extremes. */
static void choose_line_limits(const struct cli_line *line, struct look look,
                               struct cli_shade *out)
{
    double *ends = cli_regrow(NULL, 2 * line->n, sizeof(*ends));

    memcpy(ends, line->low, line->n * sizeof(*ends));
    memcpy(ends + line->n, line->high, line->n * sizeof(*ends));
    look.limits.given = 1;
    cli_shade_choose(out, CLI_VIRIDIS, &look.limits, ends, 2 * line->n);
    free(ends);
}

/* Makes an empty line as wide as the screen. Labels take 12 characters, more than most do. */
static void line_begin(struct cli *cli, const struct cli_screen *screen, struct cli_line *line)
{
    enum { LABEL = 12 };

    line->n = cli_plot_width(screen, LABEL);
    line->low = cli_alloc(cli, line->n, sizeof(double));
    line->high = cli_alloc(cli, line->n, sizeof(double));
    for (size_t x = 0; x < line->n; x++)
        line->low[x] = line->high[x] = NAN;
}

int cli_put_plot(struct cli *cli, const brc_sel *sel)
{
    const char *labels[2], *ends[2];
    struct cli_screen screen;
    struct cli_raster r;
    struct cli_shade limits;
    struct cli_line line;
    struct look look;
    uint64_t first, step;
    int all;

    if (cli_has(cli, "cmap"))
        return cli_usage(cli, "--plot has no colours: leave out --cmap");
    CLI_TRY(read_look(cli, &look));
    CLI_TRY(cli_screen_find(cli, &screen));
    if (!cli_has(cli, "draw")) /* lines have no colours that could be missing */
        screen.how = CLI_DRAW_BLOCKS;
    CLI_TRY(cli_raster_column(cli, cli->array, sel, &r));
    line_begin(cli, &screen, &line);
    all = r.height <= PLOTTED_MOST;
    CLI_TRY(all ? line_of_all(cli, &r, &line) : line_of_some(cli, &r, &line));
    choose_line_limits(&line, look, &limits);
    if (isnan(limits.low)) {
        cli_printf(cli, "no finite value  %s\n", raster_label(cli, &r));
        return cli_out_check(cli);
    }
    first = sel->start[r.row_axis];
    step = sel->step[r.row_axis];
    labels[0] = value_label(cli, &r, limits.low);
    labels[1] = value_label(cli, &r, limits.high);
    ends[0] = cli_text(cli, "%llu", (unsigned long long)first);
    ends[1] = cli_text(cli, "%llu", (unsigned long long)(first + (r.height - 1) * step));
    cli_draw_plot(cli, &screen, &line, &limits, labels, ends);
    cli_printf(cli, "%s%s\n", raster_label(cli, &r), all ? "" : "; some elements of each column");
    return cli_out_check(cli);
}

/* ==== diff --image ======================================= */

enum { BESIDE_FROM = 72, PNG_GAP = 8 };

/* Two versions of an array. */
struct sides {
    const char *path;
    const char *a, *b;     /* as brc_diff() takes them                         */
    const char *old_path;  /* of an array that was moved; NULL: the same path  */
    const char *name[SIDES];
    brc_session *session[SIDES];
    brc_array *array[SIDES]; /* NULL: there is none in this version             */
    struct cli_raster raster[SIDES];
    struct look look;
};

static double one_difference(double old, double new, int channels)
{
    if (old == new || (isnan(old) && isnan(new)))
        return 0;
    return channels > 1 ? fabs(new - old) : new - old;
}

/* Keeps the difference that is further from 0; NaN, where a number came or went, is furthest. */
static void keep_further(double *kept, double difference)
{
    if (!isnan(*kept) && !(fabs(difference) <= fabs(*kept)))
        *kept = difference;
}

/* Writes the largest difference of each box. */
static int largest_differences(struct cli *cli, const struct sides *sides, struct panel *out)
{
    const struct cli_raster *r = out->raster;
    size_t channels = (size_t)r->channels;
    struct cli_rows rows[SIDES];
    const double *row[SIDES];
    int rc = BRC_OK;

    cli_rows_begin(&rows[0], &sides->raster[0]);
    cli_rows_begin(&rows[1], &sides->raster[1]);
    for (uint64_t y = 0, box = 0; y < r->height && rc >= 0; y++) {
        rc = cli_rows_at(cli, &rows[0], y, &row[0]);
        if (rc >= 0)
            rc = cli_rows_at(cli, &rows[1], y, &row[1]);
        while (y >= cli_box_begin(r->height, out->height, box + 1))
            box++;
        for (size_t x = 0, at = 0; x < r->width && rc >= 0; x++) {
            while (x >= cli_box_begin(r->width, out->width, at + 1))
                at++;
            for (size_t k = 0; k < channels; k++)
                keep_further(&out->values[((size_t)box * out->width + at) * channels + k],
                             one_difference(row[0][x * channels + k], row[1][x * channels + k],
                                            r->channels));
        }
    }
    cli_rows_dispose(&rows[0]);
    cli_rows_dispose(&rows[1]);
    return rc;
}

static int is_compared_whole(const struct cli_raster *r)
{
    return r->height <= PLOTTED_MOST / ((uint64_t)r->channels * r->width + 1);
}

/* Fills in the difference: all elements are compared, or those that both panels show. */
static int fill_difference(struct cli *cli, const struct sides *sides, struct panel *panels)
{
    struct panel *out = &panels[2];

    if (is_compared_whole(out->raster))
        return largest_differences(cli, sides, out);
    for (size_t i = 0; i < panel_numbers(out); i++)
        out->values[i] =
            one_difference(panels[0].values[i], panels[1].values[i], out->raster->channels);
    return BRC_OK;
}

/* The limits of a difference are its largest one on both sides of 0. */
static struct cli_shade shade_of_difference(const double *values, size_t n)
{
    double most = 0;

    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i]) && fabs(values[i]) > most)
            most = fabs(values[i]);
    return (struct cli_shade){ CLI_DIVERGING, most > 0 ? -most : -1, most > 0 ? most : 1 };
}

static int has_difference(const struct panel *panel)
{
    for (size_t i = 0; i < panel_numbers(panel); i++)
        if (panel->values[i] != 0)
            return 1;
    return 0;
}

/* Chooses the same limits for both versions. */
static void choose_both(const struct sides *sides, struct panel *panels)
{
    size_t n = panel_numbers(&panels[0]), m = panel_numbers(&panels[1]);
    double *values = cli_regrow(NULL, n + m, sizeof(*values));

    n = sides->raster[0].channels == 1 ? n : 0;
    m = sides->raster[1].channels == 1 ? m : 0;
    memcpy(values, panels[0].values, n * sizeof(*values));
    memcpy(values + n, panels[1].values, m * sizeof(*values));
    choose_shade(&sides->raster[0], &sides->look, values, n + m, &panels[0].shade);
    panels[1].shade = panels[0].shade;
    free(values);
}

static int is_same_shape(const struct sides *sides)
{
    const struct cli_raster *a = &sides->raster[0], *b = &sides->raster[1];

    return a->height == b->height && a->width == b->width && a->channels == b->channels;
}

static void put_all_panels(struct cli *cli, const struct cli_screen *screen,
                           const struct panel *panels, size_t n)
{
    if (screen->columns >= BESIDE_FROM) {
        put_panels(cli, screen, panels, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        put_panels(cli, screen, panels + i, 1);
}

/* The lines below the pictures: the colours, the array, and what a pixel is. */
static void put_legend(struct cli *cli, const struct cli_screen *screen, const struct sides *sides,
                       const struct panel *panels, size_t n)
{
    const struct cli_raster *r = &sides->raster[1];
    const char *more = is_compared_whole(r) ? "in the difference the largest one"
                                            : "and only these elements are compared";

    const int has[SIDES] = { sides->raster[0].channels == 1, r->channels == 1 };

    if (has[0] || has[1]) {
        put_scale(cli, screen, has[1] ? r : &sides->raster[0], &panels[0].shade);
        cli_printf(cli, "  %s\n", has[0] && has[1] ? "old and new" : has[0] ? "old" : "new");
    }
    if (n == PANELS && !has_difference(&panels[2])) {
        cli_puts(cli, "no element differs\n");
    } else if (n == PANELS && r->channels == 1) {
        cli_draw_map(cli, screen, panels[2].shade.map,
                     cli_text(cli, "%.5g", panels[2].shade.low),
                     cli_text(cli, "%.5g", panels[2].shade.high));
        cli_puts(cli, "  difference\n");
    }
    cli_puts(cli, raster_label(cli, r));
    if (sides->old_path)
        cli_printf(cli, ", moved from %s", cli_escaped(cli, sides->old_path));
    cli_printf(cli, "%s\n", n < PANELS ? "; the shapes differ, so there is no difference" : "");
    put_reduced(cli, screen, &panels[1], n == PANELS ? more : "");
}

static int put_both(struct cli *cli, struct sides *sides)
{
    size_t n = is_same_shape(sides) ? PANELS : SIDES, columns;
    struct panel panels[PANELS];
    struct cli_screen screen;

    CLI_TRY(cli_screen_find(cli, &screen));
    columns = screen.columns >= BESIDE_FROM ? (screen.columns - 2 * (PANELS - 1)) / PANELS
                                            : screen.columns;
    for (size_t i = 0; i < n; i++)
        panel_begin(cli, &panels[i], &sides->raster[i < SIDES ? i : 1], &screen, columns,
                    rows_for(&screen) - 1);
    for (size_t i = 0; i < SIDES; i++)
        CLI_TRY(cli_raster_sample(cli, &sides->raster[i], panels[i].height, panels[i].width,
                                  panels[i].values));
    choose_both(sides, panels);
    panels[0].title = cli_text(cli, "old (%s)", sides->name[0]);
    panels[1].title = cli_text(cli, "new (%s)", sides->name[1]);
    if (n == PANELS) {
        CLI_TRY(fill_difference(cli, sides, panels));
        panels[2].shade = shade_of_difference(panels[2].values, panel_numbers(&panels[2]));
        panels[2].title = "difference";
    }
    for (size_t i = 0; i < n && screen.how == CLI_DRAW_TEXT; i++)
        panels[i].shade.map = CLI_GREY;
    put_all_panels(cli, &screen, panels, n);
    put_legend(cli, &screen, sides, panels, n);
    return cli_out_check(cli);
}

/* ---- as a PNG ------------------------------- */

/* Chooses the limits of both versions, and of the difference, by at most CHOSEN_BY elements. */
static int choose_both_png(struct cli *cli, const struct sides *sides, struct cli_shade shades[2])
{
    const struct cli_raster *r = &sides->raster[0];
    uint64_t height, width;
    size_t n;
    double *values;
    int rc;

    choosing_size(r, &height, &width);
    n = (size_t)(height * width) * (size_t)r->channels;
    values = cli_regrow(NULL, 3 * n, sizeof(*values));
    rc = cli_raster_pick(cli, r, height, width, values);
    if (rc >= 0)
        rc = cli_raster_pick(cli, &sides->raster[1], height, width, values + n);
    if (rc >= 0) {
        for (size_t i = 0; i < n; i++)
            values[2 * n + i] = one_difference(values[i], values[n + i], r->channels);
        choose_shade(r, &sides->look, values, 2 * n, &shades[0]);
        shades[1] = shade_of_difference(values + 2 * n, n);
    }
    free(values);
    return rc;
}

/* Writes a row of old, new and difference, with transparent pixels between them. */
static void three_in_row(const struct cli_raster *r, const struct cli_shade shades[2],
                         const double *const row[SIDES], uint8_t *out)
{
    size_t channels = (size_t)r->channels, width = (size_t)r->width;

    for (size_t x = 0; x < width; x++) {
        double difference[4];

        for (size_t k = 0; k < channels; k++)
            difference[k] =
                one_difference(row[0][x * channels + k], row[1][x * channels + k], r->channels);
        if (channels == 4)
            difference[3] = 255;
        for (size_t i = 0; i < SIDES; i++)
            element_pixel(row[i] + x * channels, r->channels, &shades[0],
                          out + (i * (width + PNG_GAP) + x) * 4);
        element_pixel(difference, r->channels, &shades[1],
                      out + (SIDES * (width + PNG_GAP) + x) * 4);
    }
}

static int put_three_rows(struct cli *cli, const struct sides *sides,
                          const struct cli_shade shades[2], struct cli_png *png, size_t width)
{
    uint8_t *bytes = cli_alloc(cli, width, 4);
    struct cli_rows rows[SIDES];
    const double *row[SIDES];
    int rc = BRC_OK;

    for (size_t i = 0; i < SIDES; i++)
        cli_rows_begin(&rows[i], &sides->raster[i]);
    for (uint64_t y = 0; y < sides->raster[0].height && rc >= 0; y++) {
        for (size_t i = 0; i < SIDES && rc >= 0; i++)
            rc = cli_rows_at(cli, &rows[i], y, &row[i]);
        if (rc < 0)
            break;
        three_in_row(&sides->raster[0], shades, row, bytes);
        rc = cli_png_row(png, bytes);
    }
    for (size_t i = 0; i < SIDES; i++)
        cli_rows_dispose(&rows[i]);
    return rc < 0 ? rc : cli_png_end(png);
}

static int put_three_png(struct cli *cli, const void *ctx)
{
    const struct sides *sides = ctx;
    const struct cli_raster *r = &sides->raster[0];
    struct cli_shade shades[2];
    struct cli_png *png;
    size_t width;
    int rc;

    CLI_TRY(cli_png_check(cli, r->width, r->height));
    width = PANELS * (size_t)r->width + SIDES * PNG_GAP;
    CLI_TRY(cli_png_check(cli, width, r->height));
    CLI_TRY(choose_both_png(cli, sides, shades));
    CLI_TRY(cli_png_begin(cli, &png, width, (size_t)r->height, CLI_PNG_RGBA, CLI_VIRIDIS));
    rc = put_three_rows(cli, sides, shades, png, width);
    cli_png_free(png);
    return rc;
}

/* ---- the two versions ----------------------- */

/* Returns a version's name, shortened to fit above a picture. */
static const char *side_name(struct cli *cli, const char *rev, const char *otherwise)
{
    rev = rev ? cli_escaped(cli, rev) : otherwise;
    return strlen(rev) <= 12 ? rev : cli_text(cli, "%.9s...", rev);
}

/* Sets sides->old_path if the array, or a group above it, was moved. */
static int find_old_path(struct cli *cli, struct sides *sides)
{
    const brc_change *change;
    int rc;

    CLI_TRY(brc_diff(&cli->iter, cli->repo, sides->a, sides->b, NULL, &cli->err));
    while ((rc = brc_next(cli->iter, &change, &cli->err)) == 1) {
        size_t len = strlen(change->path);
        const char *rest = sides->path + len;

        if (change->what == BRC_MOVED && strncmp(sides->path, change->path, len) == 0 &&
            (*rest == '\0' || *rest == '/'))
            sides->old_path = cli_text(cli, "%s%s", change->from, rest);
    }
    brc_iter_free(cli->iter);
    cli->iter = NULL;
    return rc;
}

static int open_side(struct cli *cli, struct sides *sides, int i, const char *rev,
                     const char *slice)
{
    const char *path = i == 0 && sides->old_path ? sides->old_path : sides->path;
    brc_sel sel = BRC_SEL_INIT;
    int kind;

    if (!sides->session[i])
        CLI_TRY(brc_session_open(&sides->session[i], cli->repo, rev,
                                 rev ? BRC_SESSION_AT : BRC_SESSION_VIEW, &cli->err));
    CLI_TRY(brc_node_kind(&kind, sides->session[i], path, &cli->err));
    if (kind == 0)
        return BRC_OK;
    CLI_TRY(brc_array_open(&sides->array[i], sides->session[i], path, &cli->err));
    CLI_TRY(cli_select_in(cli, sides->session[i], sides->array[i], slice, &sel));
    CLI_TRY(cli_raster_picture(cli, sides->array[i], &sel, &sides->raster[i]));
    return check_look(cli, &sides->raster[i]);
}

/* Draws the array of the only version that has it. */
static int put_one_side(struct cli *cli, struct sides *sides, int i)
{
    int rc;

    cli_printf(cli, "%s is not in %s; %s (%s):\n", cli_escaped(cli, sides->path),
               sides->name[1 - i], i == 0 ? "old" : "new", sides->name[i]);
    cli->array = sides->array[i];
    rc = cli_put_image(cli, &sides->raster[i].sel);
    cli->array = NULL;
    return rc;
}

static int put_sides(struct cli *cli, struct sides *sides, const char *file)
{
    if (!sides->array[0] && !sides->array[1])
        return cli_fail(cli, BRC_ENOTFOUND, "%s is in neither version", sides->path);
    if (file && (!sides->array[0] || !sides->array[1]))
        return cli_fail(cli, BRC_EINVAL,
                        "%s is not in %s, so there is no difference: 'read --at REV -o %s' writes "
                        "the other version",
                        sides->path, sides->name[sides->array[0] ? 1 : 0], file);
    if (!sides->array[0] || !sides->array[1])
        return put_one_side(cli, sides, sides->array[0] ? 0 : 1);
    if (!file)
        return put_both(cli, sides);
    if (!is_same_shape(sides))
        return cli_fail(cli, BRC_EINVAL,
                        "%s has other shapes in %s and %s, so there is no difference: 'read --at "
                        "REV -o NAME.png' writes each by itself",
                        sides->path, sides->name[0], sides->name[1]);
    CLI_TRY(cli_to_file(cli, file, put_three_png, sides));
    cli_done(cli);
    return BRC_OK;
}

int cli_put_difference(struct cli *cli, const char *path, const char *slice, const char *a,
                       const char *b, const char *file)
{
    struct sides sides = { .path = path, .a = a, .b = b };
    int rc = read_look(cli, &sides.look);

    sides.name[0] = side_name(cli, a, "HEAD");
    sides.name[1] = side_name(cli, b, "uncommitted");
    if (rc >= 0)
        rc = open_side(cli, &sides, 0, a ? a : "HEAD", slice);
    if (rc >= 0)
        rc = open_side(cli, &sides, 1, b, slice);
    if (rc >= 0 && !sides.array[0] && sides.array[1]) {
        rc = find_old_path(cli, &sides);
        if (rc >= 0 && sides.old_path)
            rc = open_side(cli, &sides, 0, a ? a : "HEAD", slice);
    }
    if (rc >= 0)
        rc = put_sides(cli, &sides, file);
    for (int i = 0; i < SIDES; i++) {
        brc_array_free(sides.array[i]);
        brc_session_free(sides.session[i]);
    }
    return rc;
}
