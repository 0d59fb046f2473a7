/*
 * cmd_serve.c - serve and ui: both become the server, a program of its own (src/serve), since the
 * command is not linked with what that needs.
 */
#include "../cli.h"
#include "commands.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define SERVE_COMMON                                                                   \
    { "port", 0, 1, "N", "listen on this port (a free one)" },                         \
        { "token", 0, 1, "TEXT", "the secret part of the address (128 random bits)" }, \
    {                                                                                  \
        "watch-stdin", 0, 0, NULL, "end when standard input ends"                      \
    }

static const struct cli_option serve_options[] = {
    { "root", 0, 1, "DIR", "serve all files beneath DIR that end in .brc" },
    { "bind", 0, 1, "ADDRESS", "listen on this address (127.0.0.1)" },
    { "host", 0, 1, "NAME", "answer under this name too; may be repeated" },
    { "public", 0, 0, NULL, "let other machines in; needs --host" },
    { "connections", 0, 1, "N", "the most connections at once (4096)" },
    { "queue", 0, 1, "N", "the most requests that wait for a worker (256)" },
    { "budget", 0, 1, "BYTES", "the most bytes that a request may decode (2^28)" },
    { "seconds", 0, 1, "N", "the most seconds that a request may take (30)" },
    SERVE_COMMON,
    CLI_OPTIONS_END
};

static const struct cli_option ui_options[] = { { "at", 0, 1, "REV", "show this version first" },
                                                SERVE_COMMON,
                                                CLI_OPTIONS_END };

/* The arguments of the program, ended by NULL. */
struct words {
    const char **words;
    size_t n;
};

static void pass_word(struct words *w, const char *word)
{
    w->words[w->n++] = word;
}

/* Passes an option on, as often as it was given. */
static void pass_option(struct cli *cli, struct words *w, const struct cli_option *option)
{
    const char *value;

    if (option->nvalues == 0 && cli_has(cli, option->name))
        pass_word(w, cli_text(cli, "--%s", option->name));
    for (size_t i = 0; option->nvalues == 1 && (value = cli_nth_value(cli, option->name, i)); i++)
        pass_word(w, cli_text(cli, "--%s=%s", option->name, value));
}

static int pass_settings(struct cli *cli, struct words *w)
{
    const char *cache, *bytes, *plugin;
    uint64_t most = 0;

    CLI_TRY(cli_setting(cli, "cache", &cache, NULL));
    CLI_TRY(cli_setting(cli, "cache-bytes", &bytes, NULL));
    if (bytes)
        CLI_TRY(cli_cache_bytes(cli, bytes, &most));
    if (cache)
        pass_word(w, cli_text(cli, "--cache=%s", cache));
    if (bytes)
        pass_word(w, cli_text(cli, "--cache-bytes=%llu", (unsigned long long)most));
    for (size_t i = 0; (plugin = cli_nth_value(cli, "plugin", i)) != NULL; i++)
        pass_word(w, cli_text(cli, "--plugin=%s", plugin));
    if (cli->threads > 0)
        pass_word(w, cli_text(cli, "--threads=%u", cli->threads));
    if (cli->wait_ms > 0)
        pass_word(w, cli_text(cli, "--wait-ms=%d", cli->wait_ms));
    if (cli->json)
        pass_word(w, "--json");
    return BRC_OK;
}

/* Opens each file, so that one that cannot be served fails as it does in other commands. */
static int open_all_files(struct cli *cli)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;

    CLI_TRY(cli_load_plugins(cli));
    opts.flags = BRC_OPEN_READONLY;
    opts.registry = cli->registry;
    opts.wait_ms = cli->wait_ms;
    for (size_t i = 0; i < cli->args.noperands; i++) {
        breccia *repo;
        CLI_TRY(brc_open(&repo, cli_operand(cli, i), &opts, &cli->err));
        brc_free(repo);
    }
    return BRC_OK;
}

/* Checks the options that are numbers, which the program reads. */
static int check_limits(struct cli *cli)
{
    static const struct {
        const char *name;
        uint64_t low, high;
    } numbers[] = { { "port", 0, 65535 },
                    { "connections", 1, 100000 },
                    { "queue", 0, 100000 },
                    { "budget", 0, UINT64_MAX / 2 },
                    { "seconds", 1, 86400 } };
    uint64_t ignored;

    for (const struct cli_option *o = cli->command->options; o->name; o++)
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
            if (strcmp(o->name, numbers[i].name) == 0)
                CLI_TRY(cli_uint_option(cli, o->name, numbers[i].low, numbers[i].high, &ignored));
    return BRC_OK;
}

/* Becomes the server. `more`: an option besides those that were given, or NULL. */
static int become_server(struct cli *cli, const char *more, const char *last)
{
    const char *folder = cli_libexec(cli);
    const char *program = cli_text(cli, "%s/serve", folder ? folder : "libexec/breccia");
    struct words w = {
        cli_alloc(cli, cli->args.ngiven + cli->args.noperands + 32, sizeof(*w.words)), 0
    };

    CLI_TRY(check_limits(cli));
    CLI_TRY(open_all_files(cli));
    if (!folder || access(program, X_OK) != 0)
        return cli_fail(cli, BRC_EUNSUPPORTED,
                        "%s is not there: breccia was built without libmicrohttpd (Debian: "
                        "libmicrohttpd-dev); install it and build breccia again",
                        program);
    pass_word(&w, program);
    for (const struct cli_option *o = cli->command->options; o->name; o++)
        if (strcmp(o->name, "at") != 0)
            pass_option(cli, &w, o);
    CLI_TRY(pass_settings(cli, &w));
    if (more)
        pass_word(&w, more);
    if (last)
        pass_word(&w, last);
    pass_word(&w, "--");
    for (size_t i = 0; i < cli->args.noperands; i++)
        pass_word(&w, cli_operand(cli, i));
    pass_word(&w, NULL);
    execv(program, (char *const *)w.words);
    return cli_fail_errno(cli, errno, program);
}

static int run_serve(struct cli *cli)
{
    if (cli_has(cli, "root") && cli->args.noperands > 0)
        return cli_usage(cli, "give files or --root, not both");
    if (!cli_has(cli, "root") && cli->args.noperands == 0)
        return cli_usage(cli, "serve needs FILE, the repository, or --root");
    if (cli_has(cli, "public") && !cli_has(cli, "host"))
        return cli_usage(
            cli, "--public needs --host NAME, the name under which others reach this machine");
    return become_server(
        cli, cli_has(cli, "public") && !cli_has(cli, "bind") ? "--bind=0.0.0.0" : NULL, NULL);
}

/* Percent-encodes a version for a query. */
static const char *encode_version(struct cli *cli, const char *rev)
{
    const char *out = "";

    for (; *rev; rev++)
        out = strchr("-._~", *rev) || (*rev >= '0' && *rev <= '9') ||
                      (*rev >= 'A' && *rev <= 'Z') || (*rev >= 'a' && *rev <= 'z')
                  ? cli_text(cli, "%s%c", out, *rev)
                  : cli_text(cli, "%s%%%02X", out, (unsigned)(unsigned char)*rev);
    return out;
}

static int run_ui(struct cli *cli)
{
    const char *at = cli_value(cli, "at");

    return become_server(cli, "--open",
                         at ? cli_text(cli, "--query=rev=%s", encode_version(cli, at)) : NULL);
}

const struct cli_command cli_command_serve = {
    .name = "serve",
    .group = "Looking",
    .summary = "let programs read any version over HTTP",
    .usage = "FILE... [--port N] [--token TEXT]\n"
             "--root DIR [--port N] [--token TEXT]\n"
             "FILE... --public --host NAME [--bind ADDRESS]",
    .details = "Prints an address and serves until it is stopped. Below that address, every\n"
               "version is a folder and FILE in it a Zarr hierarchy: ADDRESS/main/climate.zarr\n"
               "is climate.brc at the tip of main, and ADDRESS/v2/main/climate.zarr the same in\n"
               "the form of Zarr 2. REV may be a branch, a tag or a commit's id. ADDRESS itself\n"
               "is the page of 'breccia ui'. Nothing can be changed through the server. With\n"
               "--root, files that come later are served too.\n"
               "\n"
               "Whoever knows the address can read the file: it has a secret part, the token.\n"
               "Without --public only this machine is let in. With it, anyone is who reaches\n"
               "NAME and knows the token, and nothing is encrypted: docs/SERVING.md shows how\n"
               "to put nginx or Caddy in front.",
    .examples = "breccia serve climate.brc\n"
                "breccia serve --root /data --port 8080\n"
                "breccia serve climate.brc --public --host data.example.org",
    .options = serve_options,
    .min_operands = 0,
    .max_operands = 10000,
    .flags = CLI_ROOT,
    .run = run_serve,
};

const struct cli_command cli_command_ui = {
    .name = "ui",
    .group = "Looking",
    .summary = "show a file's history, arrays and changes in a browser",
    .usage = "FILE [--at REV] [--port N]",
    .details = "Starts 'breccia serve' for FILE and opens its page in a browser, $BROWSER or\n"
               "the one that xdg-open chooses. Where there is no screen, only the address is\n"
               "printed. The page lasts as long as the command runs.",
    .examples = "breccia ui climate.brc\n"
                "breccia ui climate.brc@v1",
    .options = ui_options,
    .min_operands = 1,
    .max_operands = 1,
    .flags = 0,
    .run = run_ui,
};
