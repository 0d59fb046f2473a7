/*
 * write_decoded.c - write --decode.
 *
 * The values of a .npy file go through a temporary file: the library hands over the elements of one
 * array, and asks for those of the other.
 */
#include "write_decoded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cli.h"
#include "../decode.h"
#include "source.h"

enum { AT_ONCE = 4096, ITEM_MOST = 16 };

int cli_decoder_to_write(struct cli *cli, const struct cli_decoder **out)
{
    struct cli_decoder *decoder = cli_alloc(cli, 1, sizeof(*decoder));

    CLI_TRY(cli_decoder_open(cli, decoder));
    if (decoder->stored == CLI_NO_NUMBER)
        return cli_fail(cli, BRC_EUNSUPPORTED, "%s has neither numbers nor times: write without "
                                               "--decode", decoder->path);
    *out = decoder;
    return BRC_OK;
}

int cli_encoded_element(struct cli *cli, const char *text, const void **out)
{
    const struct cli_decoder *decoder;
    struct cli_value value;
    void *element = cli_alloc(cli, ITEM_MOST, 1);

    CLI_TRY(cli_decoder_to_write(cli, &decoder));
    if (cli_value_read(cli, decoder, text, &value) < 0)
        return cli_fail(cli, BRC_EINVAL, "option --value: %s",
                        cli_text(cli, "%s", cli->err.message));
    *out = element;
    return cli_encode(cli, decoder, &value, element);
}

int cli_note_packed(struct cli *cli)
{
    const char *path = brc_array_describe(cli->array)->path;
    struct cli_variable variable;
    int rc = cli_variable_read(cli, cli->session, path, &variable);

    if (rc >= 0 && (brc_json_member(variable.attributes, "scale_factor") ||
                    brc_json_member(variable.attributes, "add_offset")))
        cli_note(cli, cli_text(cli, "%s is packed (scale_factor, add_offset), and what was written "
                               "are the stored numbers; --decode takes the values that they mean",
                               cli_escaped(cli, path)));
    cli_variable_free(&variable);
    return rc;
}

/* ---- values that come as elements of another type ---------------- */

struct values {
    struct cli *cli;
    FILE *file;
    struct cli_decoder from, to;
};

/* Turns a time of one calendar into the same date of another. */
static int change_calendar(const struct values *values, struct cli_moment *moment)
{
    char text[CLI_MOMENT_CAP];
    struct cli_moment to;

    if (values->from.units.calendar == values->to.units.calendar)
        return 1;
    cli_moment_text(text, values->from.units.calendar, moment);
    return cli_moment_read(moment, &to, values->to.units.calendar, text);
}

static int encode_value(const struct values *values, const void *from, void *to)
{
    struct cli *cli = values->cli;
    struct cli_value value;

    if (!cli_decode(&values->from, from, &value) ||
        (values->to.seen == CLI_TIME && !value.is_missing &&
         !change_calendar(values, &value.moment)))
        return cli_fail(cli, BRC_EINVAL, "the calendar of %s, %s, lacks a date that is to be "
                        "written", values->to.path, cli_decoder_calendar(&values->to));
    return cli_encode(cli, &values->to, &value, to);
}

/* brc_array_load_stream() */
static int get_encoded(void *ctx, void *dst, size_t len, size_t *got)
{
    const struct values *values = ctx;
    size_t from = values->from.item, to = values->to.item, n = 1;
    uint8_t bytes[AT_ONCE * ITEM_MOST];

    if (len < to) { /* the library asks whether there is more */
        *got = fgetc(values->file) != EOF;
        return BRC_OK;
    }
    for (*got = 0; *got < len && n > 0; *got += n * to) {
        size_t want = (len - *got) / to, read;

        want = want > AT_ONCE ? AT_ONCE : want;
        read = fread(bytes, 1, want * from, values->file);
        if (ferror(values->file))
            return cli_fail_errno(values->cli, errno, "option --from");
        n = read / from;
        if (read % from != 0)
            return cli_fail(values->cli, BRC_EINVAL, "--from -: standard input ends within an "
                            "element: with --decode each has %zu bytes", from);
        for (size_t i = 0; i < n; i++)
            CLI_TRY(encode_value(values, bytes + i * from, (uint8_t *)dst + *got + i * to));
    }
    return BRC_OK;
}

static int load_values(struct values *values, const brc_sel *sel)
{
    struct cli *cli = values->cli;
    brc_error err = BRC_ERROR_INIT;
    int is_time = values->to.seen == CLI_TIME, is_span = values->to.seen == CLI_SPAN;

    if (is_time != (values->from.seen == CLI_TIME) || is_span != (values->from.seen == CLI_SPAN) ||
        values->from.stored == CLI_NO_NUMBER)
        return cli_fail(cli, BRC_EINVAL, "%s has %s, and what is to be written %s", values->to.path,
                        is_time   ? "times"
                        : is_span ? "durations"
                                  : "numbers",
                        is_time   ? "does not: give datetime64"
                        : is_span ? "does not: give timedelta64"
                                  : "is something else");
    return cli_called(cli, brc_array_load_stream(cli->array, sel, get_encoded, values, &err), &err);
}

/* ---- .npy -------------------------------- */

/* brc_array_stream() */
static int keep_run(void *ctx, const void *data, size_t len)
{
    return fwrite(data, 1, len, ctx) == len ? 0 : 1;
}

/* Fails unless the array has the shape of the selection, with or without the axes that have one
 * index. */
static int check_shape(struct cli *cli, const brc_array_info *info, const brc_sel *sel,
                       const char *from)
{
    uint64_t kept[BRC_MAX_NDIM];
    int n = 0;

    for (int i = 0; i < sel->ndim; i++)
        if (!(sel->drop >> i & 1))
            kept[n++] = sel->count[i];
    if ((info->ndim == n && memcmp(kept, info->shape, (size_t)n * sizeof(kept[0])) == 0) ||
        (info->ndim == sel->ndim &&
         memcmp(sel->count, info->shape, (size_t)info->ndim * sizeof(kept[0])) == 0))
        return BRC_OK;
    return cli_fail(cli, BRC_EINVAL, "%s has shape (%s), and the selection (%s)", from,
                    cli_dims_text(cli, info->shape, info->ndim), cli_dims_text(cli, kept, n));
}

static int load_array(struct cli *cli, const struct cli_source *source, brc_array *array,
                      const brc_sel *sel, struct values *values)
{
    struct cli_variable variable = { .path = source->name };
    int rc;

    CLI_TRY(check_shape(cli, brc_array_describe(array), sel, source->name));
    CLI_TRY(cli_decoder_read(cli, &variable, brc_array_describe(array), &values->from));
    values->file = tmpfile();
    if (!values->file)
        return cli_fail_errno(cli, errno, "a temporary file");
    rc = brc_array_stream(array, NULL, 0, keep_run, values->file, &cli->err);
    if (ferror(values->file) || fflush(values->file) != 0)
        rc = cli_fail_errno(cli, errno, "a temporary file");
    rewind(values->file);
    if (rc >= 0)
        rc = load_values(values, sel);
    fclose(values->file);
    return rc;
}

static int load_npy(struct cli *cli, const brc_sel *sel, const char *from, struct values *values)
{
    struct cli_source source;
    brc_array *array = NULL;
    int rc = cli_source_open(cli, from, &source);

    if (rc >= 0)
        rc = brc_array_open(&array, source.session, source.root, &cli->err);
    if (rc >= 0)
        rc = load_array(cli, &source, array, sel, values);
    brc_array_free(array);
    cli_source_close(cli, &source);
    return rc;
}

int cli_load_decoded(struct cli *cli, const brc_sel *sel, const char *from)
{
    struct values values = { .cli = cli, .file = stdin };

    CLI_TRY(cli_decoder_open(cli, &values.to));
    if (strcmp(from, "-") != 0)
        return load_npy(cli, sel, from, &values);
    CLI_TRY(brc_check_file(cli->file, "/dev/stdin", &cli->err));
    values.from = values.to;
    values.from.stored = cli_decoder_has_times(&values.to) ? CLI_I64 : values.to.seen;
    values.from.read = values.from.stored;
    values.from.item = cli_number_size(values.from.stored);
    values.from.is_packed = 0;
    values.from.nmissing = 0;
    if (cli_decoder_has_times(&values.to)) {
        values.from.units = (struct cli_time_units){ .calendar = CLI_PROLEPTIC, .unit = 1 };
        values.from.missing[values.from.nmissing++] = (long double)INT64_MIN;
    }
    return load_values(&values, sel);
}
