/*
 * cmd_read.c - read: elements to standard output or a file.
 *
 * With -o everything goes to a new file beside the named one, which takes its
 * name at the end: a read that fails leaves what was there.
 */
#include "cli.h"
#include "print_array.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct cli_option read_options[] = {
    { "format", 0, 1, "text|json|csv|npy|raw", "text where not given" },
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
    return cli_print_array(cli, sel);
}

/* ---- to a file -------------------------------------------------------------------- */

/* Standard output of this run becomes the open file. */
static int read_into_fd(struct cli *cli, const char *format, const brc_sel *sel, int fd,
                        const char *name)
{
    struct cli_out saved = cli->out;
    int rc, pretty = cli->doc.pretty;

    cli_out_begin(&cli->out, fd, name);
    cli->out.color = 0;
    cli->doc.pretty = 0;
    rc = read_as(cli, format, sel);
    if (rc >= 0 && strcmp(format, "json") == 0)
        cli_puts(cli, "\n");
    if (rc >= 0)
        rc = cli_out_flush(cli);
    cli_out_dispose(&cli->out);
    cli->out = saved;
    cli->doc.pretty = pretty;
    return rc;
}

/* `partial` is what the file is called until it is whole, `name` what errors say. */
static int read_into_new_file(struct cli *cli, const char *format, const brc_sel *sel,
                              const char *partial, const char *name)
{
    int fd, rc;

    if (strcmp(format, "npy") == 0)
        return brc_array_save_npy(cli->array, sel, partial, &cli->err);
    fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return cli_fail_errno(cli, errno, name);
    rc = read_into_fd(cli, format, sel, fd, name);
    if (close(fd) != 0 && rc >= 0)
        rc = cli_fail_errno(cli, errno, name);
    return rc;
}

/* /dev/stdout, a pipe: what is there and no ordinary file is written to as it is. */
static int is_device(const char *name)
{
    struct stat status;

    return stat(name, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

static int read_into_device(struct cli *cli, const char *format, const brc_sel *sel,
                            const char *name)
{
    int fd = open(name, O_WRONLY | O_CLOEXEC), rc;

    if (fd < 0)
        return cli_fail_errno(cli, errno, name);
    rc = read_into_fd(cli, format, sel, fd, name);
    close(fd);
    return rc;
}

static int read_into_file(struct cli *cli, const char *format, const brc_sel *sel,
                          const char *name)
{
    const char *partial = cli_text(cli, "%s.%ld.partial", name, (long)getpid());
    int rc;

    if (is_device(name) && strcmp(format, "npy") != 0)
        return read_into_device(cli, format, sel, name);
    rc = read_into_new_file(cli, format, sel, partial, name);
    if (rc >= 0 && rename(partial, name) != 0)
        rc = cli_fail_errno(cli, errno, name);
    if (rc < 0)
        unlink(partial);
    return rc;
}

/* ---- npy on standard output --------------------------------------------------------- */

static int copy_file_out(struct cli *cli, const char *name)
{
    FILE *file = fopen(name, "rb");
    char block[65536];
    size_t n;
    int rc = BRC_OK;

    if (!file)
        return cli_fail_errno(cli, errno, name);
    while (rc >= 0 && (n = fread(block, 1, sizeof(block), file)) > 0) {
        cli_put(cli, block, n);
        rc = cli_out_check(cli);
    }
    if (rc >= 0 && ferror(file))
        rc = cli_fail_errno(cli, errno, name);
    fclose(file);
    return rc;
}

/* The library writes .npy files by name, so there is one for a moment. */
static int read_npy_out(struct cli *cli, const brc_sel *sel)
{
    const char *tmp = getenv("TMPDIR");
    char *folder = cli_text(cli, "%s/breccia-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
    const char *name;
    int rc;

    if (!mkdtemp(folder))
        return cli_fail_errno(cli, errno, folder);
    name = cli_text(cli, "%s/elements.npy", folder);
    rc = brc_array_save_npy(cli->array, sel, name, &cli->err);
    if (rc >= 0)
        rc = copy_file_out(cli, name);
    unlink(name);
    rmdir(folder);
    return rc;
}

/* ---- the command --------------------------------------------------------------------- */

static int choose_format(struct cli *cli, const char **format, const char **file)
{
    *format = cli->json ? "json" : "text";
    *file = cli_value(cli, "output");
    CLI_TRY(cli_choice_option(cli, "format", "text|json|csv|npy|raw", format));
    if (*file && strcmp(*file, "-") == 0)
        *file = NULL;
    if (cli->json && !*file && strcmp(*format, "json") != 0)
        return cli_usage(cli, "--json and --format %s both want standard output: add -o FILE",
                         *format);
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
        CLI_TRY(read_into_file(cli, format, &sel, file));
        cli_done(cli);
        print_output_file(cli, format, file);
        return BRC_OK;
    }
    if (strcmp(format, "npy") == 0)
        return read_npy_out(cli, &sel);
    if (strcmp(format, "json") != 0)
        return read_as(cli, format, &sel);
    cli->out.hold = 1; /* a document is whole, or not there */
    cli->doc.pretty = cli->out.terminal;
    return read_as(cli, format, &sel);
}

const struct cli_command cli_command_read = {
    .name = "read",
    .group = "Looking",
    .summary = "show or save elements",
    .usage = "FILE PATH [SLICE] [--format text|json|csv|npy|raw] [-o FILE] [--at REV]",
    .details = "SLICE is the whole array where it is left out. Text is shortened past 1000\n"
               "elements, the other formats never are. json: {shape, data_type, data}; csv: the\n"
               "last axis is a line; raw: C order, little-endian, without gaps.",
    .examples = "breccia read climate.brc /t2m '[-1, ::10, ::10]'\n"
                "breccia read climate.brc /t2m '[0:24]' --format npy -o day.npy --at v1.0",
    .options = read_options,
    .min_operands = 2,
    .max_operands = 3,
    .flags = CLI_POOL | CLI_PATH,
    .run = run_read,
};
