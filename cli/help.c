/*
 * help.c - the options that every command takes, and the help pages.
 */
#include "help.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* ==== globals ================================ */

const struct cli_option cli_global_options[] = {
    { "json", 0, 0, NULL, "print one JSON document on standard output" },
    { "quiet", 'q', 0, NULL, "print no line about what was done" },
    { "verbose", 'v', 0, NULL, "print more, also in errors" },
    { "no-progress", 0, 0, NULL, "show no progress line" },
    { "color", 0, 1, "auto|always|never", "colour text; auto: only on a terminal" },
    { "threads", 0, 1, "N", "how many worker threads to use (0: one for each core)" },
    { "plugin", 0, 1, "FILE", "load codecs, types and backends from this shared library;"
                              " repeatable" },
    { "wait", 0, 1, "SECONDS", "how long to wait for a file that is in use (30; 0: not at all)" },
    { "max-nodes", 0, 1, "N", "visit no more groups and arrays than this (10000000)" },
    { "no-recover", 0, 0, NULL, "read FILE as it is and leave an old journal alone" },
    { "help", 'h', 0, NULL, "show this page" },
    CLI_OPTIONS_END
};

/* Reads seconds, written as digits with or without a point. */
static int read_wait(struct cli *cli)
{
    const char *text = cli_value(cli, "wait");
    double seconds;

    if (!text)
        return BRC_OK;
    seconds = strtod(text, NULL);
    if (!strpbrk(text, "0123456789") || text[strspn(text, "0123456789.")] ||
        strchr(text, '.') != strrchr(text, '.') || !(seconds >= 0 && seconds <= 1e6))
        return cli_usage(cli, "option --wait: '%s' is not a number of seconds from 0 to 1000000",
                         text);
    cli->wait_ms = seconds > 0 ? (int)(seconds * 1000) + (seconds < 0.001) : -1;
    return BRC_OK;
}

int cli_globals_read(struct cli *cli)
{
    const char *color = "auto";
    uint64_t threads = 0;

    cli->json = cli_has(cli, "json");
    cli->quiet = cli_has(cli, "quiet");
    cli->verbose = cli_has(cli, "verbose");
    cli->no_progress = cli_has(cli, "no-progress");
    cli->help = cli_has(cli, "help");
    CLI_TRY(cli_choice_option(cli, "color", "auto|always|never", &color));
    CLI_TRY(cli_uint_option(cli, "threads", 0, 1024, &threads));
    cli->threads = (unsigned)threads;
    CLI_TRY(cli_uint_option(cli, "max-nodes", 1, UINT64_MAX, &cli->max_nodes));
    if (strcmp(color, "auto") != 0)
        cli->out.color = strcmp(color, "always") == 0;
    return read_wait(cli);
}

/* ==== help pages, made from the tables =================== */

static void print_option(struct cli *cli, const struct cli_option *option)
{
    char left[80];

    if (option->letter)
        snprintf(left, sizeof(left), "-%c, --%s %s", option->letter, option->name,
                 option->value ? option->value : "");
    else
        snprintf(left, sizeof(left), "    --%s %s", option->name,
                 option->value ? option->value : "");
    cli_puts(cli, "  ");
    if (strlen(left) > 30) {
        cli_printf(cli, "%s\n", left);
        left[0] = '\0';
        cli_puts(cli, "  ");
    }
    cli_put_padded(cli, left, 31);
    cli_printf(cli, "%s\n", option->help);
}

static void print_options(struct cli *cli, const char *title, const struct cli_option *options)
{
    if (!options || !options->name)
        return;
    cli_printf(cli, "\n%s\n", title);
    for (; options->name; options++)
        print_option(cli, options);
}

/* Prints `text` with `prefix` before each line. */
static void print_lines(struct cli *cli, const char *prefix, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");

        cli_printf(cli, "%s%.*s\n", prefix, (int)len, text);
        text += len + (text[len] == '\n');
    }
}

void cli_help_command(struct cli *cli, const struct cli_command *command)
{
    char prefix[48];

    cli_printf(cli, "breccia %s: %s\n\nUsage:\n", command->name, command->summary);
    snprintf(prefix, sizeof(prefix), "  breccia %s ", command->name);
    print_lines(cli, prefix, command->usage);
    if (command->details) {
        cli_puts(cli, "\n");
        print_lines(cli, "", command->details);
    }
    print_options(cli, "Options:", command->options);
    print_options(cli, "Options of every command:", cli_global_options);
    if (command->examples) {
        cli_puts(cli, "\nExamples:\n");
        print_lines(cli, "  ", command->examples);
    }
}

void cli_help_all(struct cli *cli)
{
    const char *group = "";

    cli_puts(cli, "breccia: versioned Zarr arrays in one SQLite file\n\n"
                  "Usage:\n  breccia COMMAND FILE [ARGUMENTS] [OPTIONS]\n"
                  "  breccia help [COMMAND]\n  breccia --version\n");
    for (const struct cli_command *const *c = cli->commands; *c; c++) {
        if (strcmp(group, (*c)->group) != 0)
            cli_printf(cli, "\n%s:\n", (*c)->group);
        group = (*c)->group;
        cli_printf(cli, "  %-12s%s\n", (*c)->name, (*c)->summary);
    }
    cli_puts(cli, "\nFILE is the repository. PATH names a node; / is the root group. SLICE is\n"
                  "written as in Python: '[0:10, :, ::2]'. REV is a branch, a tag, a commit id\n"
                  "or its first digits, or HEAD, and ~N or ^N may follow; or it is BRANCH@{TIME}.\n"
                  "JSON is JSON text, or @FILE to read it from a file.\n");
    print_options(cli, "Options of every command:", cli_global_options);
    cli_puts(cli, "\nExit status: 0 done, 1 failed, 2 usage, 3 conflict, 4 damaged, 5 busy,\n"
                  "6 done and stored, but the answer could not be written.\n");
}
