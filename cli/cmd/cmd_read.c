/*
 * cmd_read.c - read: elements to standard output or a file.
 */
#include "../cli.h"
#include "../decode.h"
#include "../output.h"
#include "commands.h"
#include "pictures.h"
#include "print_array.h"
#include "table_out.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define FORMATS "text|json|csv|npy|raw|png"

static const struct cli_option read_options[] = {
    { "format", 0, 1, FORMATS, "the format; otherwise by FILE's ending, or text" },
    { "output", 'o', 1, "FILE", "write to this file instead of standard output" },
    { "coordinates", 0, 0, NULL, "CSV: a row for each element, as write --csv reads it" },
    { "decode", 0, 0, NULL, "show what is meant: times, scale_factor, missing values (CF)" },
    { "image", 0, 0, NULL, "draw two dimensions" },
    { "plot", 0, 0, NULL, "draw one dimension as a line" },
    CLI_PICTURE_OPTIONS,
    { "at", 0, 1, "REV", "read this version instead of the current branch" },
    CLI_OPTIONS_END
};

enum {
    FORMAT_SHORT = 1,    /* shows or reads little of the selection            */
    FORMAT_DOCUMENT = 2, /* is JSON, for which --json asks                    */
    FORMAT_ROWS = 4,     /* takes --coordinates                               */
    FORMAT_BINARY = 8,   /* cannot go to a terminal                           */
    FORMAT_PICTURE = 16, /* takes --image, --cmap and --limits, but no --draw */
};

struct read_format {
    const char *name;
    const char *endings[2]; /* of files that are written in it                 */
    int (*put)(struct cli *cli, const brc_sel *sel);
    int flags;
};

/* Formats after "png" are chosen by the option of their name, the others by --format. */
static const struct read_format read_formats[] = {
    { "text", { ".txt" }, cli_print_array, FORMAT_SHORT },
    { "json", { ".json" }, cli_stream_json, FORMAT_DOCUMENT },
    { "csv", { ".csv" }, cli_put_csv, FORMAT_ROWS },
    { "npy", { ".npy" }, cli_stream_npy, FORMAT_BINARY },
    { "raw", { ".raw", ".bin" }, cli_stream_raw, FORMAT_BINARY },
    { "png", { ".png" }, cli_put_png, FORMAT_BINARY | FORMAT_PICTURE },
    { "image", { NULL }, cli_put_image, FORMAT_SHORT },
    { "plot", { NULL }, cli_put_plot, FORMAT_SHORT },
};

enum { READ_FORMATS = sizeof(read_formats) / sizeof(read_formats[0]) };

struct reading {
    const struct read_format *format;
    const char *file; /* NULL for standard output */
    brc_sel sel;
};

static const struct read_format *format_named(const char *name)
{
    size_t i = 0;

    while (strcmp(read_formats[i].name, name) != 0)
        i++;
    return &read_formats[i];
}

static int read_as_file(struct cli *cli, const void *ctx)
{
    const struct reading *what = ctx;

    CLI_TRY(what->format->put(cli, &what->sel));
    if (what->format->flags & FORMAT_DOCUMENT)
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

/* Sets *name to the format of FILE's ending. *name stays as it is for a FILE without an ending. */
static int format_by_name(struct cli *cli, const char *file, const char **name)
{
    const char *ending = name_ending(file);

    if (!ending)
        return BRC_OK;
    for (size_t i = 0; i < READ_FORMATS; i++) {
        for (size_t k = 0; k < 2 && read_formats[i].endings[k]; k++) {
            if (strcasecmp(ending, read_formats[i].endings[k]) == 0) {
                *name = read_formats[i].name;
                return BRC_OK;
            }
        }
    }
    return cli_fail(cli, BRC_EINVAL,
                    "%s: unknown ending %s; use .npy, .json, .csv, .txt, .raw, .bin or .png, or "
                    "give --format",
                    file, ending);
}

/* Sets the format to that of --image or --plot, where one is given. */
static int choose_drawing(struct cli *cli, struct reading *what)
{
    int image = cli_has(cli, "image"), plot = cli_has(cli, "plot");

    if ((what->format->flags & FORMAT_PICTURE) && !plot) {
        if (cli_has(cli, "draw"))
            return cli_usage(cli, "--draw is for the terminal, and a PNG goes to a file");
        return BRC_OK;
    }
    if (!image && !plot)
        return cli_has(cli, "cmap") || cli_has(cli, "limits") || cli_has(cli, "draw")
                   ? cli_usage(cli, "--cmap, --limits and --draw need --image or --plot")
                   : BRC_OK;
    if (image && plot)
        return cli_usage(cli, "--image and --plot: give one of them");
    if (cli_has(cli, "format") || (image && what->file))
        return cli_usage(cli, "--%s: leave out --format, and give a name with -o that ends with "
                              ".png, or none", image ? "image" : "plot");
    if (what->file)
        return cli_usage(cli, "--plot draws in the terminal: leave out -o");
    if (cli->json)
        return cli_usage(cli, "--%s has no JSON: leave out --json", image ? "image" : "plot");
    what->format = format_named(image ? "image" : "plot");
    return BRC_OK;
}

static int choose_format(struct cli *cli, struct reading *what)
{
    const char *name = cli->json ? "json" : "text";

    what->file = cli_value(cli, "output");
    if (what->file && strcmp(what->file, "-") == 0)
        what->file = NULL;
    if (what->file && !cli_has(cli, "format"))
        CLI_TRY(format_by_name(cli, what->file, &name));
    CLI_TRY(cli_choice_option(cli, "format", FORMATS, &name));
    what->format = format_named(name);
    CLI_TRY(choose_drawing(cli, what));
    int flags = what->format->flags;
    if (cli_has(cli, "coordinates") && !(flags & FORMAT_ROWS))
        return cli_usage(cli, "--coordinates is for --format csv");
    if (what->file)
        return BRC_OK;
    if (cli->json && !(flags & FORMAT_DOCUMENT))
        return cli_usage(cli, "--json and --format %s both need standard output: add -o FILE",
                         name);
    if (cli->out.terminal && (flags & FORMAT_BINARY))
        return cli_usage(cli, "--format %s cannot go to a terminal: add -o FILE or use a pipe",
                         name);
    return BRC_OK;
}

static int check_selection(struct cli *cli, const struct reading *what, const char *path)
{
    const brc_array_info *info = brc_array_describe(cli->array);

    if (!(what->format->flags & FORMAT_SHORT) && brc_sel_count(&what->sel) > (uint64_t)1 << 56)
        return cli_fail(cli, BRC_ELIMIT, "%s: the selection has more than 2^56 elements", path);
    if (!(info->flags & BRC_ARRAY_READABLE))
        return cli_fail(cli, BRC_EUNSUPPORTED, "%s cannot be read: %s", path, info->why);
    return BRC_OK;
}

static int read_to_output(struct cli *cli, const struct reading *what)
{
    if (what->format->flags & FORMAT_DOCUMENT) {
        cli->out.hold = 1; /* a document appears complete or not at all */
        cli->doc.pretty = cli->out.terminal;
    }
    return what->format->put(cli, &what->sel);
}

static int run_read(struct cli *cli)
{
    const char *path = cli_path(cli, cli_operand(cli, 1)), *slice = cli_operand(cli, 2);
    struct reading what = { .sel = BRC_SEL_INIT };
    struct cli_decoder *decoder = cli_alloc(cli, 1, sizeof(*decoder));
    int rc;

    CLI_TRY(choose_format(cli, &what));
    CLI_TRY(cli_open_view(cli));
    CLI_TRY(cli_open_sliced(cli, &path, &slice));
    CLI_TRY(cli_select(cli, slice, &what.sel));
    CLI_TRY(check_selection(cli, &what, path));
    if (cli_has(cli, "decode")) {
        CLI_TRY(cli_decoder_open(cli, decoder));
        cli->decoder = cli_decoder_changes(decoder) ? decoder : NULL;
    }
    if (!what.file && (what.format->flags & FORMAT_SHORT)) /* little is read */
        return what.format->put(cli, &what.sel);
    cli_progress_total(cli, &what.sel);
    rc = what.file ? cli_to_file(cli, what.file, read_as_file, &what) : read_to_output(cli, &what);
    brc_progress_end(cli->repo, rc);
    CLI_TRY(rc);
    if (what.file) {
        cli_done(cli);
        cli_put_record(cli, CLI_FIELDS({ "file", CLI_OF(what.file) },
                                       { "format", CLI_OF(what.format->name) }));
    }
    return BRC_OK;
}

const struct cli_command cli_command_read = {
    .name = "read",
    .group = "Looking",
    .summary = "show or save elements",
    .usage = "FILE PATH [SLICE] [--format text|json|csv|npy|raw|png] [-o FILE] "
             "[--decode] [--at REV]\n"
             "FILE PATH [SLICE] --image|--plot [OPTIONS]",
    .details = "SLICE is the whole array if it is left out. Text is shortened beyond 1000\n"
               "elements, the other formats never are. json: {shape, data_type, data}; csv: the\n"
               "last axis is a line, and an element of a struct is a row with a column for each\n"
               "field; raw: C order, little-endian, without gaps. With -o and\n"
               "without --format, the ending of FILE gives the format: .npy, .json, .csv, .txt,\n"
               ".raw, .bin or .png; a name without an ending is text. A picture has two\n"
               "dimensions, or three whose last is red, green and blue (and opacity) as uint8.\n"
               "--image fits it into the terminal; in a PNG each element is a pixel. Without\n"
               "--limits, the colours reach from 2 to 98 % of the values that are shown; NaN is\n"
               "transparent. --coordinates has a header: the names of the dimensions (axis0, ...\n"
               "without names), and value; each row has the positions and the element.\n"
               "--decode applies the conventions CF, as xarray does: \"days since 1900-01-01\" in\n"
               "any calendar becomes a date, scale_factor, add_offset and _Unsigned are applied,\n"
               "_FillValue and missing_value become nan. As .npy, dates are datetime64[ns].\n"
               "Numbers of days to nanoseconds are elapsed time (36h) where the attribute dtype\n"
               "says timedelta64, as xarray writes it.",
    .examples = "breccia read climate.brc /t2m '[-1, ::10, ::10]'\n"
                "breccia read climate.brc /t2m '[0:24]' -o day.npy --at v1.0\n"
                "breccia read climate.brc /t2m '[0, :2]' --format csv --coordinates\n"
                "breccia read climate.brc /t2m '[-1]' --image --limits 250:310\n"
                "breccia read climate.brc /t2m '[:, 120, 240]' --plot\n"
                "breccia read climate.brc /t2m '[-1]' -o t2m.png --cmap grey\n"
                "breccia read climate.brc /era5/t '[time=0]' --decode",
    .options = read_options,
    .min_operands = 2,
    .max_operands = 3,
    .flags = CLI_POOL | CLI_PATH | CLI_PAGED,
    .run = run_read,
};
