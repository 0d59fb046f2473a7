/*
 * help.c - the options that every command takes, and the help pages.
 */
#include "help.h"
#include "topics.h"

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
    { "no-pager", 'P', 0, NULL, "show long output without a pager" },
    { "color", 0, 1, "auto|always|never", "colour text; auto: only on a terminal" },
    { "threads", 0, 1, "N", "how many worker threads to use (0: one for each core)" },
    { "readback", 0, 1, "all|sampled|none", "which new chunks are decoded and compared before"
                                            " they are stored" },
    { "pipeline", 0, 1, "NAME", "run codecs by this pipeline: batched, serial (the reference), or a"
                                " plug-in's" },
    { "plugin", 0, 1, "FILE", "load codecs, types, backends and pipelines from this shared library;"
                              " repeatable" },
    { "implementation", 0, 1, "CODEC=NAME", "run this implementation of a codec, which codecs"
                                            " --list names; repeatable" },
    { "wait", 0, 1, "SECONDS", "how long to wait for a file that is in use (30; 0: not at all)" },
    { "max-nodes", 0, 1, "N", "visit no more groups and arrays than this (10000000)" },
    { "no-recover", 0, 0, NULL, "read FILE as it is and leave an old journal alone" },
    { "help", 'h', 0, NULL, "show this page" },
    CLI_OPTIONS_END
};

const struct cli_option cli_leading_options[] = {
    { "file", 'f', 1, "FILE", "the repository: the command then has no FILE argument" },
    { "version", 'V', 0, NULL, "print the version" },
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

/* Takes a setting as if the user had given it as an option. */
static int setting_as_option(struct cli *cli, const char *name)
{
    const char *value;

    if (!cli->command || cli->command->flags & CLI_USER || cli_has(cli, name))
        return BRC_OK; /* config can mend a setting that is wrong */
    CLI_TRY(cli_setting(cli, name, &value, NULL));
    if (value)
        cli_args_add(cli, name, value);
    return BRC_OK;
}

int cli_globals_read(struct cli *cli)
{
    const char *color = "auto";
    uint64_t threads = 0;

    cli->json = cli_has(cli, "json"); /* first: errors follow it too */
    CLI_TRY(setting_as_option(cli, "color"));
    CLI_TRY(setting_as_option(cli, "threads"));
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

enum { HELP_WIDTH = 80, HELP_COLUMN = 33 };

/* Prints the first n bytes of `text`, of which the line already has `column` columns before it, in
 * as many lines as they need; those after the first begin at `column` too. */
static void print_wrapped(struct cli *cli, int column, const char *text, size_t n)
{
    const size_t most = (size_t)(HELP_WIDTH - column);

    while (n > most) {
        size_t len = most;

        while (len > 0 && text[len] != ' ')
            len--;
        if (len == 0) /* one long word */
            len = strcspn(text, " ");
        if (len >= n)
            break;
        cli_printf(cli, "%.*s\n%*s", (int)len, text, column, "");
        text += len + 1;
        n -= len + 1;
    }
    cli_printf(cli, "%.*s\n", (int)n, text);
}

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
    cli_put_padded(cli, left, HELP_COLUMN - 2);
    print_wrapped(cli, HELP_COLUMN, option->help, strlen(option->help));
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

/* Prints the forms of a command's arguments, one per line of its `usage`. */
static void print_usage(struct cli *cli, const struct cli_command *command)
{
    for (const char *form = command->usage; *form;) {
        size_t len = strcspn(form, "\n");

        cli_printf(cli, "  breccia %s ", command->name);
        print_wrapped(cli, 11 + (int)strlen(command->name), form, len);
        form += len + (form[len] == '\n');
    }
}

void cli_help_command(struct cli *cli, const struct cli_command *command)
{
    cli_printf(cli, "breccia %s: %s\n\nUsage:\n", command->name, command->summary);
    print_usage(cli, command);
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

static const char about_arguments[] =
    "FILE is the repository; where BRECCIA_FILE is set, that is the repository,\n"
    "and there is no FILE argument. FILE@REV reads that version. PATH names a\n"
    "node; / is the root group. SLICE is written as in Python: '[0:10, :, ::2]'.\n"
    "REV is a branch, a tag, a commit id or its first digits, or HEAD, and ~N or\n"
    "^N may follow; or it is BRANCH@{TIME}. JSON is JSON text, or @FILE to read it\n"
    "from a file.\n";
static const char about_status[] =
    "Exit status: 0 done, 1 failed, 2 usage, 3 conflict, 4 damaged, 5 busy,\n"
    "6 done and stored, but the answer could not be written.\n";
static const char about_forms[] = "  breccia COMMAND FILE [ARGUMENTS] [OPTIONS]\n"
                                  "  breccia -f FILE COMMAND [ARGUMENTS] [OPTIONS]\n"
                                  "  breccia help [COMMAND|TOPIC]\n  breccia --version\n";

void cli_help_all(struct cli *cli)
{
    const char *group = "";

    cli_printf(cli, "breccia: versioned Zarr arrays in one SQLite file\n\nUsage:\n%s", about_forms);
    for (const struct cli_command *const *c = cli->commands; *c; c++) {
        if (strcmp(group, (*c)->group) != 0)
            cli_printf(cli, "\n%s:\n", (*c)->group);
        group = (*c)->group;
        cli_printf(cli, "  %-12s%s\n", (*c)->name, (*c)->summary);
    }
    cli_puts(cli, "\n'breccia help' also explains:");
    for (const struct cli_topic *t = cli_topics(); t->name; t++)
        cli_printf(cli, "%s %s", t == cli_topics() ? "" : ",", t->name);
    cli_puts(cli, "\n");
    cli_printf(cli, "\n%s", about_arguments);
    print_options(cli, "Options before the command:", cli_leading_options);
    print_options(cli, "Options of every command:", cli_global_options);
    cli_printf(cli, "\n%s", about_status);
}

/* ==== manual pages ======================================= */

/* Prints text of a page: no character of it is an instruction to the formatter. */
static void put_roff(struct cli *cli, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((i == 0 || text[i - 1] == '\n') && (text[i] == '.' || text[i] == '\''))
            cli_puts(cli, "\\&");
        if (text[i] == '\\')
            cli_puts(cli, "\\e");
        else if (text[i] == '-')
            cli_puts(cli, "\\-");
        else
            cli_put(cli, text + i, 1);
    }
}

/* Prints lines as they are, under a heading. */
static void put_man_lines(struct cli *cli, const char *heading, const char *text)
{
    cli_printf(cli, ".SH %s\n.nf\n", heading);
    put_roff(cli, text, strlen(text));
    cli_puts(cli, text[0] && text[strlen(text) - 1] == '\n' ? ".fi\n" : "\n.fi\n");
}

static void put_man_options(struct cli *cli, const char *heading, const struct cli_option *options)
{
    if (!options || !options->name)
        return;
    cli_printf(cli, ".SH \"%s\"\n", heading);
    for (; options->name; options++) {
        cli_puts(cli, ".TP\n");
        if (options->letter)
            cli_printf(cli, "\\fB\\-%c\\fR, ", options->letter);
        cli_puts(cli, "\\fB\\-\\-");
        put_roff(cli, options->name, strlen(options->name));
        cli_puts(cli, "\\fR");
        if (options->value) {
            cli_puts(cli, " \\fI");
            put_roff(cli, options->value, strlen(options->value));
            cli_puts(cli, "\\fR");
        }
        cli_puts(cli, "\n");
        put_roff(cli, options->help, strlen(options->help));
        cli_puts(cli, "\n");
    }
}

static void man_of_command(struct cli *cli, const struct cli_command *command)
{
    cli_printf(cli, ".TH BRECCIA\\-%s 1 \"\" \"breccia %s\" \"breccia\"\n", command->name,
               brc_version());
    cli_printf(cli, ".SH NAME\nbreccia\\-%s \\- ", command->name);
    put_roff(cli, command->summary, strlen(command->summary));
    cli_puts(cli, "\n.SH SYNOPSIS\n");
    for (const char *form = command->usage; *form;) {
        size_t len = strcspn(form, "\n");

        cli_printf(cli, ".HP\n\\fBbreccia %s\\fR ", command->name);
        put_roff(cli, form, len);
        cli_puts(cli, "\n");
        form += len + (form[len] == '\n');
    }
    if (command->details)
        put_man_lines(cli, "DESCRIPTION", command->details);
    put_man_options(cli, "OPTIONS", command->options);
    put_man_options(cli, "OPTIONS OF EVERY COMMAND", cli_global_options);
    if (command->examples)
        put_man_lines(cli, "EXAMPLES", command->examples);
    cli_puts(cli, ".SH \"SEE ALSO\"\n\\fBbreccia\\fR(1)\n");
}

void cli_help_man(struct cli *cli, const struct cli_command *command)
{
    if (command) {
        man_of_command(cli, command);
        return;
    }
    cli_printf(cli, ".TH BRECCIA 1 \"\" \"breccia %s\" \"breccia\"\n.SH NAME\n"
                    "breccia \\- versioned Zarr arrays in one SQLite file\n", brc_version());
    put_man_lines(cli, "SYNOPSIS", about_forms);
    put_man_lines(cli, "DESCRIPTION", about_arguments);
    cli_puts(cli, ".SH COMMANDS\n");
    for (const struct cli_command *const *c = cli->commands; *c; c++) {
        cli_printf(cli, ".TP\n\\fBbreccia\\-%s\\fR(1)\n", (*c)->name);
        put_roff(cli, (*c)->summary, strlen((*c)->summary));
        cli_puts(cli, "\n");
    }
    put_man_options(cli, "OPTIONS BEFORE THE COMMAND", cli_leading_options);
    put_man_options(cli, "OPTIONS OF EVERY COMMAND", cli_global_options);
    put_man_lines(cli, "EXIT STATUS", about_status);
}
