/*
 * globals.c - the options that every command takes, and what they set.
 */
#include "globals.h"

#include "cli.h"

#include <stdlib.h>
#include <string.h>

const struct cli_option cli_global_options[] = {
    { "json", 0, 0, NULL, "print one JSON document on standard output" },
    { "quiet", 'q', 0, NULL, "say nothing about what was done" },
    { "verbose", 'v', 0, NULL, "say more, in errors too" },
    { "no-progress", 0, 0, NULL, "show no progress line" },
    { "color", 0, 1, "auto|always|never", "colour text; auto: only on a terminal" },
    { "threads", 0, 1, "N", "how many worker threads to use (one for each core)" },
    { "plugin", 0, 1, "FILE", "load codecs, types and backends from this shared library;"
                              " repeatable" },
    { "wait", 0, 1, "SECONDS", "how long to wait for a file that is in use (30)" },
    { "max-nodes", 0, 1, "N", "visit no more groups and arrays than this (10000000)" },
    { "no-recover", 0, 0, NULL, "read FILE as it is and leave an old journal alone" },
    { "help", 'h', 0, NULL, "show this page" },
    CLI_OPTIONS_END
};

int cli_globals_read(struct cli *cli)
{
    const char *color = "auto";
    uint64_t threads = 0;
    const char *wait = cli_value(cli, "wait");

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
    if (wait) {
        char *end = NULL;
        double seconds = strtod(wait, &end);

        if (!strchr("0123456789.", wait[0]) || *end || !(seconds >= 0 && seconds <= 1e6))
            return cli_usage(cli, "option --wait: '%s' is not a number of seconds",
                             wait);
        cli->wait_ms = seconds > 0 ? (int)(seconds * 1000) + (seconds < 0.001) : -1;
    }
    return BRC_OK;
}
