/*
 * print_array.c - prints arrays as NumPy does.
 *
 * More than THRESHOLD elements are summarised: of each axis longer than 2 * EDGE
 * only EDGE elements at both ends are read and shown, with "..." between them.
 * Floating-point numbers are aligned at their decimal point, all else to the
 * right; texts are quoted, to show where each ends, and not aligned. Lines break at
 * LINE_WIDTH.
 */
#include "print_array.h"
#include "stream_array.h"

#include "../cli.h"

#include <string.h>

enum { THRESHOLD = 1000, EDGE = 3, LINE_WIDTH = 75, CHECKED_EVERY = 1024 };

struct printed {
    struct cli *cli;
    int ndim;                    /* axes that are shown                       */
    uint64_t count[BRC_MAX_NDIM]; /* elements along each that were read        */
    int cut[BRC_MAX_NDIM];       /* "..." is in the middle                    */
    const char **texts;          /* of all elements, C order                  */
    size_t before, after;        /* widest text before the point, and after it */
    int by_point;                /* aligned at the decimal point              */
    int ragged;                  /* not aligned                               */
    size_t next;                 /* element to print                          */
    size_t column;
};

/* ---- reading the corners -------------------------------- */

/* Shape of what is read: all, or the edges of long axes. */
static void edge_counts(const brc_sel *sel, int summarise, uint64_t count[BRC_MAX_NDIM],
                        int cut[BRC_MAX_NDIM])
{
    for (int i = 0; i < sel->ndim; i++) {
        cut[i] = summarise && sel->count[i] > 2 * EDGE;
        count[i] = cut[i] ? 2 * EDGE : sel->count[i];
    }
}

/* Box number `corner`: bit k says which end of the k-th cut axis. `offset` is where its
 * first element is in the block of all that is shown. */
static void corner_box(const brc_sel *sel, const int cut[BRC_MAX_NDIM],
                       const size_t strides[BRC_MAX_NDIM], size_t corner, brc_sel *box,
                       size_t *offset)
{
    *box = *sel;
    *offset = 0;
    for (int i = 0; i < sel->ndim; i++) {
        if (!cut[i])
            continue;
        box->count[i] = EDGE;
        if (corner & 1) {
            box->start[i] += (sel->count[i] - EDGE) * sel->step[i];
            *offset += EDGE * strides[i];
        }
        corner >>= 1;
    }
}

/* Steps `index` through a box, and with it the number of its element in the block. */
static void next_in_box(const brc_sel *box, const size_t strides[BRC_MAX_NDIM],
                        uint64_t index[BRC_MAX_NDIM], size_t *number)
{
    for (int i = box->ndim - 1; i >= 0; i--) {
        *number += strides[i];
        if (++index[i] < box->count[i])
            return;
        *number -= strides[i] * (size_t)box->count[i];
        index[i] = 0;
    }
}

/* Whether `write --value` makes the element of this text. */
static int is_read_back(struct cli *cli, const char *text, const uint8_t *element, size_t len)
{
    brc_buf again = BRC_BUF_INIT;
    int rc = brc_element_parse(&again, cli->array, text, NULL);
    int is = rc == BRC_OK && again.len == len && memcmp(again.data, element, len) == 0;

    brc_buf_dispose(&again);
    return is;
}

/* A single text is shown as it is, unless it then reads as another one. */
static int format_element(struct printed *p, const uint8_t *element, size_t len, brc_buf *text,
                          const char **out)
{
    struct cli *cli = p->cli;
    int form = p->ndim > 0 ? BRC_ELEMENT_QUOTED : BRC_ELEMENT_TEXT;

    for (;; form = BRC_ELEMENT_QUOTED) {
        text->len = 0;
        CLI_TRY(brc_element_format(text, cli->array, element, form, &cli->err));
        *out = cli_escaped_bytes(cli, (const char *)text->data, text->len);
        if (form == BRC_ELEMENT_QUOTED || is_read_back(cli, *out, element, len))
            return BRC_OK;
    }
}

static int format_corner(struct printed *p, const brc_sel *box, size_t number,
                         const size_t strides[BRC_MAX_NDIM], const brc_buf *data)
{
    struct cli *cli = p->cli;
    const brc_array_info *info = brc_array_describe(cli->array);
    uint64_t index[BRC_MAX_NDIM] = { 0 };
    brc_buf text = BRC_BUF_INIT;
    const uint8_t *at = data->data;
    int rc = BRC_OK;

    for (uint64_t n = brc_sel_count(box); rc >= 0 && n > 0; n--) {
        size_t len = cli_element_len(info, at);

        rc = format_element(p, at, len, &text, &p->texts[number]);
        if (rc >= 0 && n % CHECKED_EVERY == 0)
            rc = cli_out_check(cli);
        at += len;
        next_in_box(box, strides, index, &number);
    }
    brc_buf_dispose(&text);
    return rc;
}

/* Reads the corners of the selection and turns their n elements into text. */
static int format_corners(struct printed *p, const brc_sel *sel, const uint64_t count[BRC_MAX_NDIM],
                          const int cut[BRC_MAX_NDIM], size_t n)
{
    size_t strides[BRC_MAX_NDIM], offset, stride = 1, corners = 1;
    brc_buf data = BRC_BUF_INIT;
    brc_sel box = BRC_SEL_INIT;
    int rc = BRC_OK;

    p->texts = cli_alloc(p->cli, n + 1, sizeof(*p->texts));
    for (int i = sel->ndim - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= (size_t)count[i];
        corners <<= cut[i] != 0;
    }
    for (size_t corner = 0; rc >= 0 && corner < corners; corner++) {
        corner_box(sel, cut, strides, corner, &box, &offset);
        data.len = 0;
        rc = brc_array_read_elements(p->cli->array, &box, &data, &p->cli->err);
        if (rc >= 0)
            rc = format_corner(p, &box, offset, strides, &data);
    }
    brc_buf_dispose(&data);
    return rc;
}

static int is_quoted(const char *text)
{
    text += text[0] == 'b';
    return *text == '\'' || *text == '"';
}

/* ---- widths -------------------------------- */

/* The columns before the decimal point, if texts are aligned at it. */
static size_t width_before(const struct printed *p, const char *text)
{
    return p->by_point && strchr(text, '.') ? strcspn(text, ".") : 0;
}

static void measure_texts(struct printed *p, size_t n, const char *dtype)
{
    if (p->ragged)
        return;
    p->by_point = strstr(dtype, "float") != NULL;
    for (size_t i = 0; i < n && p->by_point; i++)
        p->by_point = !strpbrk(p->texts[i], "eE");
    for (size_t i = 0; i < n; i++) {
        size_t before = width_before(p, p->texts[i]);
        size_t after = before ? cli_text_width(p->texts[i]) - before : 0;

        p->before = before > p->before ? before : p->before;
        p->after = after > p->after ? after : p->after;
    }
    for (size_t i = 0; i < n; i++) { /* "nan" and others without a point */
        size_t width = cli_text_width(p->texts[i]);

        if (width > p->before + p->after)
            p->before = width - p->after;
    }
}

/* ---- printing -------------------------------- */

static void put_element(struct printed *p)
{
    const char *text = p->texts[p->next++];
    size_t width = cli_text_width(text), before = width_before(p, text);
    size_t left = before ? p->before - before : p->before + p->after - width;

    if (p->ragged) {
        cli_puts(p->cli, text);
        p->column += width;
        return;
    }
    cli_printf(p->cli, "%*s%s%*s", (int)left, "", text,
               (int)(p->before + p->after - left - width), "");
    p->column += p->before + p->after;
}

/* A space, or a new line if `width` more columns and the brackets do not fit. */
static void put_separator(struct printed *p, size_t width)
{
    if (p->column + 1 + width + (size_t)p->ndim > LINE_WIDTH) {
        cli_printf(p->cli, "\n%*s", p->ndim, "");
        p->column = (size_t)p->ndim;
    } else {
        cli_puts(p->cli, " ");
        p->column++;
    }
}

static void print_row(struct printed *p)
{
    int axis = p->ndim - 1;

    for (uint64_t i = 0; i < p->count[axis]; i++) {
        size_t width = p->ragged ? cli_text_width(p->texts[p->next]) : p->before + p->after;

        if (i > 0)
            put_separator(p, width);
        if (p->cut[axis] && i == EDGE) {
            cli_puts(p->cli, "...");
            p->column += 3;
            put_separator(p, width);
        }
        put_element(p);
    }
}

/* Between two blocks of `axis`: one new line for each axis after it. */
static void put_block_break(struct printed *p, int axis)
{
    for (int i = axis; i < p->ndim - 1; i++)
        cli_puts(p->cli, "\n");
    cli_printf(p->cli, "%*s", axis + 1, "");
    p->column = (size_t)axis + 1;
}

static void print_axis(struct printed *p, int axis)
{
    cli_puts(p->cli, "[");
    p->column++;
    if (axis == p->ndim - 1)
        print_row(p);
    for (uint64_t i = 0; axis < p->ndim - 1 && i < p->count[axis] && !cli_signal(); i++) {
        if (i > 0)
            put_block_break(p, axis);
        if (p->cut[axis] && i == EDGE) {
            cli_puts(p->cli, "...");
            put_block_break(p, axis);
        }
        print_axis(p, axis + 1);
    }
    cli_puts(p->cli, "]");
    p->column++;
}

/* An axis that was indexed by an integer is not shown. */
static void keep_shown_axes(struct printed *p, const brc_sel *sel,
                            const uint64_t count[BRC_MAX_NDIM], const int cut[BRC_MAX_NDIM])
{
    for (int i = 0; i < sel->ndim; i++) {
        if ((sel->drop >> i & 1))
            continue;
        p->count[p->ndim] = count[i];
        p->cut[p->ndim++] = cut[i];
    }
}

int cli_print_array(struct cli *cli, const brc_sel *sel)
{
    const brc_array_info *info = brc_array_describe(cli->array);
    struct printed p = { .cli = cli };
    uint64_t count[BRC_MAX_NDIM], n = 1;
    int cut[BRC_MAX_NDIM];

    if (brc_sel_count(sel) == 0) {
        cli_puts(cli, "[]\n");
        return BRC_OK;
    }
    edge_counts(sel, brc_sel_count(sel) > THRESHOLD, count, cut);
    for (int i = 0; i < sel->ndim; i++)
        if (__builtin_mul_overflow(n, count[i], &n) || n > UINT32_MAX)
            return cli_fail(cli, BRC_ELIMIT,
                            "%s has too many dimensions to be shown as text: use --format json",
                            info->path);
    keep_shown_axes(&p, sel, count, cut);
    CLI_TRY(format_corners(&p, sel, count, cut, (size_t)n));
    p.ragged = p.ndim > 0 && is_quoted(p.texts[0]);
    measure_texts(&p, (size_t)n, info->dtype);
    if (p.ndim == 0)
        put_element(&p);
    else
        print_axis(&p, 0);
    cli_puts(cli, "\n");
    return cli_out_check(cli);
}
