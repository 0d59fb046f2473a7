/*
 * stream_array.c - elements as JSON, CSV and raw bytes, run by run, so that
 * memory stays bounded whatever the selection.
 */
#include "../cli.h"
#include "stream_array.h"

#include <string.h>

enum { CHECKED_EVERY = 1024 };

/* The shape of the result: without the axes that were indexed by an integer. */
struct seen_shape {
    int ndim;
    uint64_t dims[BRC_MAX_NDIM];
};

struct streamed {
    struct cli *cli;
    const brc_array_info *info;
    int (*each)(struct streamed *out, const uint8_t *element);
    struct seen_shape shape;
    uint64_t next; /* the number of the next element                          */
    brc_buf text;
};

size_t cli_element_len(const brc_array_info *info, const uint8_t *at)
{
    if (info->item_size > 0)
        return info->item_size;
    return 4 + ((size_t)at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24);
}

int cli_check_raw(struct cli *cli, const char *what)
{
    const uint16_t probe = 1;

    if (*(const uint8_t *)&probe != 1)
        return cli_fail(cli, BRC_EUNSUPPORTED, "%s needs a little-endian machine", what);
    return BRC_OK;
}

static struct seen_shape shape_seen(const brc_sel *sel)
{
    struct seen_shape shape = { 0, { 0 } };

    for (int i = 0; i < sel->ndim; i++)
        if (!(sel->drop >> i & 1))
            shape.dims[shape.ndim++] = sel->count[i];
    return shape;
}

/* Text takes long to make: whether it is still wanted is looked at in between. */
static int put_text_run(void *ctx, const void *data, size_t len)
{
    struct streamed *out = ctx;
    const uint8_t *at = data, *end = at + len;

    for (; at < end; at += cli_element_len(out->info, at)) {
        if (out->next % CHECKED_EVERY == 0)
            CLI_TRY(cli_out_check(out->cli));
        out->text.len = 0;
        CLI_TRY(out->each(out, at));
    }
    return cli_out_check(out->cli);
}

/* Calls `each` for one element after the other. */
static int stream_text(struct cli *cli, const brc_sel *sel,
                       int (*each)(struct streamed *out, const uint8_t *element))
{
    struct streamed out = { cli, brc_array_describe(cli->array), each, shape_seen(sel), 0,
                            BRC_BUF_INIT };
    brc_error err = BRC_ERROR_INIT;
    int rc = brc_array_stream(cli->array, sel, put_text_run, &out, &err);

    brc_buf_dispose(&out.text);
    return cli_called(cli, rc, &err);
}

/* ---- raw -------------------------------- */

static int put_raw_run(void *ctx, const void *data, size_t len)
{
    cli_put(ctx, data, len);
    return cli_out_check(ctx);
}

int cli_stream_raw(struct cli *cli, const brc_sel *sel)
{
    brc_error err = BRC_ERROR_INIT;

    CLI_TRY(cli_check_raw(cli, "--format raw"));
    return cli_called(cli, brc_array_stream(cli->array, sel, put_raw_run, cli, &err), &err);
}

/* ---- npy -------------------------------- */

int cli_stream_npy(struct cli *cli, const brc_sel *sel)
{
    brc_error err = BRC_ERROR_INIT;

    return cli_called(cli, brc_array_stream_npy(cli->array, sel, put_raw_run, cli, &err), &err);
}

/* ---- CSV -------------------------------- */

/* Programs get the bytes as they are; a terminal must not be steered by them. */
static void put_csv_field(struct cli *cli, const char *text, size_t len)
{
    if (cli->out.terminal && cli_has_steering(text, len)) {
        text = cli_escaped_bytes(cli, text, len);
        len = strlen(text);
    }
    if (!memchr(text, ',', len) && !memchr(text, '"', len) && !memchr(text, '\n', len) &&
        !memchr(text, '\r', len)) {
        cli_put(cli, text, len);
        return;
    }
    cli_puts(cli, "\"");
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"')
            cli_puts(cli, "\"");
        cli_put(cli, text + i, 1);
    }
    cli_puts(cli, "\"");
}

static int put_csv_element(struct streamed *out, const uint8_t *element)
{
    struct cli *cli = out->cli;
    uint64_t line = out->shape.ndim ? out->shape.dims[out->shape.ndim - 1] : 1;

    CLI_TRY(brc_element_format(&out->text, cli->array, element, 0, &cli->err));
    put_csv_field(cli, (const char *)out->text.data, out->text.len);
    cli_put(cli, ++out->next % line == 0 ? "\n" : ",", 1);
    return BRC_OK;
}

int cli_stream_csv(struct cli *cli, const brc_sel *sel)
{
    return stream_text(cli, sel, put_csv_element);
}

/* ---- JSON -------------------------------- */

/* How many lists begin before element number `at`, or end before it. */
static int lists_at(const struct seen_shape *shape, uint64_t at)
{
    uint64_t block = 1;
    int lists = 0;

    for (int i = shape->ndim - 1; i >= 0; i--) {
        block *= shape->dims[i];
        if (at % block != 0)
            break;
        lists++;
    }
    return lists;
}

static int put_json_element(struct streamed *out, const uint8_t *element)
{
    struct cli *cli = out->cli;

    for (int lists = lists_at(&out->shape, out->next); lists > 0; lists--)
        cli_json_open_line(cli, '[');
    CLI_TRY(brc_element_format(&out->text, cli->array, element, 1, &cli->err));
    cli_json_token(cli, (const char *)out->text.data, out->text.len);
    for (int lists = lists_at(&out->shape, ++out->next); lists > 0; lists--)
        cli_json_close(cli, '[');
    return BRC_OK;
}

/* Lists without elements: [], [[], []]. */
static void put_empty_lists(struct cli *cli, const struct seen_shape *shape, int axis)
{
    cli_json_open_line(cli, '[');
    if (axis + 1 < shape->ndim)
        for (uint64_t i = 0; i < shape->dims[axis] && !cli->out.failure && !cli_signal(); i++)
            put_empty_lists(cli, shape, axis + 1);
    cli_json_close(cli, '[');
}

int cli_stream_json(struct cli *cli, const brc_sel *sel)
{
    const char *dtype = brc_array_describe(cli->array)->dtype;
    struct seen_shape shape = shape_seen(sel);

    cli_json_open(cli, '{');
    cli_json_member_dims(cli, "shape", shape.dims, shape.ndim);
    cli_json_key(cli, "data_type");
    cli_json_dtype(cli, dtype);
    cli_json_key(cli, "data");
    if (brc_sel_count(sel) == 0)
        put_empty_lists(cli, &shape, 0);
    else
        CLI_TRY(stream_text(cli, sel, put_json_element));
    cli_json_close(cli, '{');
    return cli_out_check(cli);
}
