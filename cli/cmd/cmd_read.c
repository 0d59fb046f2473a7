/*
 * cmd_read.c - read: elements to standard output or a file.
 */
#include "../cli.h"
#include "../out_file.h"
#include "commands.h"
#include "print_array.h"

#include <string.h>
#include <strings.h>

static const struct cli_option read_options[] = {
    { "format", 0, 1, "text|json|csv|npy|raw", "else by FILE's ending, else text" },
    { "output", 'o', 1, "FILE", "to this file instead of standard output" },
    { "at", 0, 1, "REV", "that version instead of the current branch as it is" },
    CLI_OPTIONS_END
};

static int read_as(struct cli *cli, const char *format, const brc_sel *sel)
{
    if (strcmp(format, "json") == 0)
        return cli_stream_json(cli, sel);
    if (strcmp(format, "csv") == 0)
        return cli_stream_csv(cli, sel);
    if (strcmp(format, "raw") == 0)
        return cli_stream_raw(cli, sel);
    if (strcmp(format, "npy") == 0)
        return cli_stream_npy(cli, sel);
    return cli_print_array(cli, sel);
}

static int read_as_file(struct cli *cli, const char *format, const brc_sel *sel)
{
    CLI_TRY(read_as(cli, format, sel));
    if (strcmp(format, "json") == 0)
        cli_puts(cli, "\n");
    return BRC_OK;
}

/* What is named outweighs what is guessed: --format, else FILE's ending, else text. */
static int format_by_name(struct cli *cli, const char *file, const char **format)
{
    static const char *const endings[][2] = { { ".npy", "npy" },  { ".json", "json" },
                                              { ".csv", "csv" },  { ".txt", "text" },
                                              { ".raw", "raw" },  { ".bin", "raw" } };
    const char *ending = cli_name_ending(file);

    if (!ending)
        return BRC_OK;
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        if (strcasecmp(ending, endings[i][0]) == 0) {
            *format = endings[i][1];
            return BRC_OK;
        }
    }
    return cli_fail(cli, BRC_EINVAL,
                    "%s: nothing is known to write with the ending %s; known are .npy, .json, "
                    ".csv, .txt, .raw and .bin; --format writes to any name",
                    file, ending);
}

static int choose_format(struct cli *cli, const char **format, const char **file)
{
    *format = cli->json ? "json" : "text";
    *file = cli_value(cli, "output");
    if (*file && strcmp(*file, "-") == 0)
        *file = NULL;
    if (*file && !cli_has(cli, "format"))
        CLI_TRY(format_by_name(cli, *file, format));
    CLI_TRY(cli_choice_option(cli, "format", "text|json|csv|npy|raw", format));
    if (cli->json && !*file && strcmp(*format, "json") != 0)
        return cli_usage(cli, "--json and --format %s both want standard output: add -o FILE",
                         *format);
    if (!*file && cli->out.terminal && (strcmp(*format, "npy") == 0 || strcmp(*format, "raw") == 0))
        return cli_usage(cli, "--format %s is not for a terminal: add -o FILE, or a pipe", *format);
    return BRC_OK;
}

static void print_output_file(struct cli *cli, const char *format, const char *file)
{
    if (!cli->json)
        return;
    cli_json_open(cli, '{');
    cli_json_member(cli, "file", file);
    cli_json_member(cli, "format", format);
    cli_json_close(cli, '{');
}

static int run_read(struct cli *cli)
{
    const char *path = cli_path(cli, cli_operand(cli, 1)), *slice = cli_operand(cli, 2);
    const char *format, *file;
    brc_sel sel;
    int rc;

    CLI_TRY(choose_format(cli, &format, &file));
    CLI_TRY(cli_open_view(cli));
    CLI_TRY(cli_open_array(cli, path));
    if (slice)
        CLI_TRY(brc_sel_parse(&sel, cli->array, slice, &cli->err));
    else
        brc_sel_all(&sel, cli->array);
    if (strcmp(format, "text") != 0 && brc_sel_count(&sel) > (uint64_t)1 << 56)
        return cli_fail(cli, BRC_ELIMIT, "%s: the selection has more than 2^56 elements", path);
    if (!brc_array_describe(cli->array)->readable)
        return cli_fail(cli, BRC_EUNSUPPORTED, "%s cannot be read: %s", path,
                        brc_array_describe(cli->array)->why);
    if (file) {
        cli_progress_total(cli, &sel);
        rc = cli_to_file(cli, file, read_as_file, format, &sel);
        brc_progress_end(cli->repo, rc);
        CLI_TRY(rc);
        cli_done(cli);
        print_output_file(cli, format, file);
        return BRC_OK;
    }
    if (strcmp(format, "json") == 0) {
        cli->out.hold = 1; /* a document is whole, or not there */
        cli->doc.pretty = cli->out.terminal;
    }
    if (strcmp(format, "text") == 0) /* of which little is read */
        return read_as(cli, format, &sel);
    cli_progress_total(cli, &sel);
    rc = read_as(cli, format, &sel);
    brc_progress_end(cli->repo, rc);
    return rc;
}

const struct cli_command cli_command_read = {
    .name = "read",
    .group = "Looking",
    .summary = "show or save elements",
    .usage = "FILE PATH [SLICE] [--format text|json|csv|npy|raw] [-o FILE] [--at REV]",
    .details = "SLICE is the whole array where it is left out. Text is shortened past 1000\n"
               "elements, the other formats never are. json: {shape, data_type, data}; csv: the\n"
               "last axis is a line; raw: C order, little-endian, without gaps. With -o the\n"
               "ending says the format where --format does not: .npy, .json, .csv, .txt, .raw or\n"
               ".bin, none for text.",
    .examples = "breccia read climate.brc /t2m '[-1, ::10, ::10]'\n"
                "breccia read climate.brc /t2m '[0:24]' -o day.npy --at v1.0",
    .options = read_options,
    .min_operands = 2,
    .max_operands = 3,
    .flags = CLI_POOL | CLI_PATH,
    .run = run_read,
};
