/*
 * cmd_read.c - read: elements to standard output or a file.
 */
#include "../cli.h"
#include "../output.h"
#include "commands.h"
#include "print_array.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const struct cli_option read_options[] = {
    { "format", 0, 1, "text|json|csv|npy|raw", "the format; otherwise by FILE's ending, or text" },
    { "output", 'o', 1, "FILE", "write to this file instead of standard output" },
    { "at", 0, 1, "REV", "read this version instead of the current branch" },
    CLI_OPTIONS_END
};

struct reading {
    const char *format, *file; /* file is NULL for standard output */
    brc_sel sel;
};

static int read_as(struct cli *cli, const struct reading *what)
{
    if (strcmp(what->format, "json") == 0)
        return cli_stream_json(cli, &what->sel);
    if (strcmp(what->format, "csv") == 0)
        return cli_stream_csv(cli, &what->sel);
    if (strcmp(what->format, "raw") == 0)
        return cli_stream_raw(cli, &what->sel);
    if (strcmp(what->format, "npy") == 0)
        return cli_stream_npy(cli, &what->sel);
    return cli_print_array(cli, &what->sel);
}

static int read_as_file(struct cli *cli, const void *ctx)
{
    const struct reading *what = ctx;

    CLI_TRY(read_as(cli, what));
    if (strcmp(what->format, "json") == 0)
        cli_puts(cli, "\n");
    return BRC_OK;
}

/* Returns the ending of a file's name, such as ".npy"; NULL for a name without one, such as ".x"
 * or "v1.2". */
static const char *name_ending(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *base = slash ? slash + 1 : name, *dot = strrchr(base, '.');

    return dot && dot > base && isalpha((unsigned char)dot[1]) ? dot : NULL;
}

/* Sets *format by the ending of FILE. *format stays as it is for a name without an ending. */
static int format_by_name(struct cli *cli, const char *file, const char **format)
{
    static const char *const endings[][2] = { { ".npy", "npy" },  { ".json", "json" },
                                              { ".csv", "csv" },  { ".txt", "text" },
                                              { ".raw", "raw" },  { ".bin", "raw" } };
    const char *ending = name_ending(file);

    if (!ending)
        return BRC_OK;
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        if (strcasecmp(ending, endings[i][0]) == 0) {
            *format = endings[i][1];
            return BRC_OK;
        }
    }
    return cli_fail(cli, BRC_EINVAL,
                    "%s: unknown ending %s; use .npy, .json, .csv, .txt, .raw or .bin, or give "
                    "--format",
                    file, ending);
}

static int choose_format(struct cli *cli, struct reading *what)
{
    const char **format = &what->format;

    *format = cli->json ? "json" : "text";
    what->file = cli_value(cli, "output");
    if (what->file && strcmp(what->file, "-") == 0)
        what->file = NULL;
    if (what->file && !cli_has(cli, "format"))
        CLI_TRY(format_by_name(cli, what->file, format));
    CLI_TRY(cli_choice_option(cli, "format", "text|json|csv|npy|raw", format));
    if (what->file)
        return BRC_OK;
    if (cli->json && strcmp(*format, "json") != 0)
        return cli_usage(cli, "--json and --format %s both need standard output: add -o FILE",
                         *format);
    if (cli->out.terminal && (strcmp(*format, "npy") == 0 || strcmp(*format, "raw") == 0))
        return cli_usage(cli, "--format %s cannot go to a terminal: add -o FILE or use a pipe",
                         *format);
    return BRC_OK;
}

static int check_selection(struct cli *cli, const struct reading *what, const char *path)
{
    const brc_array_info *info = brc_array_describe(cli->array);

    if (strcmp(what->format, "text") != 0 && brc_sel_count(&what->sel) > (uint64_t)1 << 56)
        return cli_fail(cli, BRC_ELIMIT, "%s: the selection has more than 2^56 elements", path);
    if (!(info->flags & BRC_ARRAY_READABLE))
        return cli_fail(cli, BRC_EUNSUPPORTED, "%s cannot be read: %s", path, info->why);
    return BRC_OK;
}

static int read_to_output(struct cli *cli, const struct reading *what)
{
    if (strcmp(what->format, "json") == 0) {
        cli->out.hold = 1; /* a document appears complete or not at all */
        cli->doc.pretty = cli->out.terminal;
    }
    return read_as(cli, what);
}

static int run_read(struct cli *cli)
{
    const char *path = cli_path(cli, cli_operand(cli, 1));
    struct reading what = { .sel = BRC_SEL_INIT };
    int rc;

    CLI_TRY(choose_format(cli, &what));
    CLI_TRY(cli_open_view(cli));
    CLI_TRY(cli_open_array(cli, path));
    CLI_TRY(cli_select(cli, cli_operand(cli, 2), &what.sel));
    CLI_TRY(check_selection(cli, &what, path));
    if (!what.file && strcmp(what.format, "text") == 0) /* little is read */
        return read_as(cli, &what);
    cli_progress_total(cli, &what.sel);
    rc = what.file ? cli_to_file(cli, what.file, read_as_file, &what) : read_to_output(cli, &what);
    brc_progress_end(cli->repo, rc);
    CLI_TRY(rc);
    if (what.file) {
        cli_done(cli);
        cli_put_record(cli, CLI_FIELDS({ "file", CLI_OF(what.file) },
                                       { "format", CLI_OF(what.format) }));
    }
    return BRC_OK;
}

const struct cli_command cli_command_read = {
    .name = "read",
    .group = "Looking",
    .summary = "show or save elements",
    .usage = "FILE PATH [SLICE] [--format text|json|csv|npy|raw] [-o FILE] [--at REV]",
    .details = "SLICE is the whole array if it is left out. Text is shortened beyond 1000\n"
               "elements, the other formats never are. json: {shape, data_type, data}; csv: the\n"
               "last axis is a line; raw: C order, little-endian, without gaps. With -o and\n"
               "without --format, the ending of FILE gives the format: .npy, .json, .csv, .txt,\n"
               ".raw or .bin; a name without an ending is text.",
    .examples = "breccia read climate.brc /t2m '[-1, ::10, ::10]'\n"
                "breccia read climate.brc /t2m '[0:24]' -o day.npy --at v1.0",
    .options = read_options,
    .min_operands = 2,
    .max_operands = 3,
    .flags = CLI_POOL | CLI_PATH,
    .run = run_read,
};
