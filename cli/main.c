/*
 * main.c - the command `breccia`: finds the command, runs it, reports.
 *
 * Exit status: 0 done, 1 failed, 2 usage, 3 conflict, 4 damaged, 5 busy, 6 done but
 * not reported, 130 and 143 after SIGINT and SIGTERM.  An error is one line on standard
 * error.
 */
#include "cli.h"
#include "cmd/commands.h"
#include "help.h"
#include "pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STATUS_FAILED = 1, STATUS_USAGE = 2, STATUS_CONFLICT = 3, STATUS_DAMAGED = 4,
       STATUS_BUSY = 5, STATUS_UNTOLD = 6 };

/* ---- errors ------------------------------------------------------------------ */

static int status_of(const struct cli *cli, int rc)
{
    if (rc >= 0)
        return rc;
    if (cli->done)
        return STATUS_UNTOLD;
    if (cli->usage)
        return STATUS_USAGE;
    if (rc == BRC_EINTERRUPT && cli_signal())
        return 128 + cli_signal();
    switch (rc) {
    case BRC_ECONFLICT:
        return STATUS_CONFLICT;
    case BRC_ECORRUPT:
        return STATUS_DAMAGED;
    case BRC_EBUSY:
        return STATUS_BUSY;
    default:
        return cli->failed_status ? cli->failed_status : STATUS_FAILED;
    }
}

/* Returns the message with "PATH: " in front and " (FILE)" behind, each unless the message already
 * names it: what the reader asked for comes first, and the file last, which the library's messages
 * put in front. */
static const char *with_place(struct cli *cli, const char *message, const char *suggestion)
{
    const char *path = cli->command && cli->command->flags & CLI_PATH ? cli_operand(cli, 1) : NULL;
    const char *whole = cli_text(cli, "%s%s", message, suggestion);
    const size_t file = cli->file ? strlen(cli->file) : 0;

    if (cli->usage || !cli->file || strncmp(message, "--", 2) == 0 ||
        strncmp(message, "option --", 9) == 0 || strncmp(message, cli->out.name, 8) == 0)
        return whole;
    if (strncmp(message, cli->file, file) == 0 && strncmp(message + file, ": ", 2) == 0) {
        message += file + 2;
        whole += file + 2;
    }
    while (path && *path == '/')
        path++;
    if (path && *path && !strstr(message, path) && strncmp(message, "there is no ", 12) != 0)
        whole = cli_text(cli, "/%s: %s", path, whole);
    return strstr(message, cli->file) ? whole : cli_text(cli, "%s (%s)", whole, cli->file);
}

/* Returns the name of a BRC_E* code without BRC_. */
static const char *code_name(int code)
{
    static const char *const names[] = {
        "EINVAL", "EMISUSE", "ENOTFOUND", "EEXISTS", "EAMBIGUOUS", "ECONFLICT", "ESTALE",
        "EBUSY", "EREADONLY", "ECORRUPT", "EFORMAT", "EUNSUPPORTED", "ELIMIT", "ENOMEM",
        "EIO", "ENOSPACE", "EINTERRUPT", "EINTERNAL", "ECOLLISION",
    };

    return code < 0 && code >= -(int)(sizeof(names) / sizeof(names[0])) ? names[-code - 1]
                                                                         : "EINTERNAL";
}

/* Prints the document of --json for an error, unless standard output is what failed. */
static void put_json_error(struct cli *cli, int rc, const char *message)
{
    if (!cli->json || cli->done || cli->out.failure)
        return;
    cli_out_restart(cli);
    cli_begin(cli, NULL, '{');
    cli_begin(cli, "error", '{');
    cli_put_members(cli, CLI_FIELDS({ "code", CLI_OF(code_name(rc)) },
                                    { "message", CLI_OF(message) }));
    cli_finish(cli, '{');
    cli_finish(cli, '{');
    cli_puts(cli, "\n");
    (void)cli_out_flush(cli);
}

static void report_error(struct cli *cli, int rc)
{
    const char *message = cli->err.message[0] ? cli->err.message : brc_strerror(rc);

    if (rc == BRC_EINTERRUPT && cli_signal())
        message = "interrupted";
    if (cli->done)
        message =
            cli_text(cli, "done and stored, but the answer could not be written: %s", message);
    message = with_place(cli, message, cli_suggestion(cli, message));
    cli_progress_end(cli);
    put_json_error(cli, rc, message);
    fprintf(stderr, "breccia: error: %s", cli_escaped(cli, message));
    if (cli->verbose && cli->err.source[0])
        fprintf(stderr, " (%s: %d)", cli->err.source, cli->err.detail);
    fputs("\n", stderr);
    if (cli->usage && cli->command)
        fprintf(stderr, "see 'breccia help %s'\n", cli->command->name);
    else if (cli->usage)
        fputs("see 'breccia help'\n", stderr);
}

/* ---- one run ------------------------------------------------------------------ */

static int check_operands(struct cli *cli)
{
    const struct cli_command *command = cli->command;
    size_t n = cli->args.noperands;

    if (n > command->max_operands)
        return cli_usage(cli, "%s: '%s' is one argument too many%s", command->name,
                         cli->args.operands[command->max_operands],
                         cli->file_is_set ? ": FILE is left out where BRECCIA_FILE is set" : "");
    if (n == 0 && command->min_operands > 0 && cli_needs_file(cli))
        return cli_usage(cli, "%s needs FILE, the repository", command->name);
    if (n < command->min_operands)
        return cli_usage(cli, "%s needs more arguments: breccia %s %.*s", command->name,
                         command->name, (int)strcspn(command->usage, "\n"), command->usage);
    return BRC_OK;
}

static int run_command(struct cli *cli, int argc, char **argv)
{
    int rc;

    CLI_TRY(cli_args_parse(cli, cli->command->options, cli_global_options, argc, argv));
    CLI_TRY(cli_globals_read(cli));
    CLI_TRY(cli_pager_choose(cli));
    if (cli->help) {
        cli_help_command(cli, cli->command);
        return 0;
    }
    CLI_TRY(cli_place_file(cli));
    CLI_TRY(check_operands(cli));
    cli->out.hold = cli->json;
    cli->doc.pretty = cli->json && cli->out.terminal;
    CLI_TRY(rc = cli->command->run(cli));
    if (cli->changes)
        cli_done(cli);
    return rc;
}

/* Runs the command that an alias of the user stands for, with the arguments behind the alias. */
static int run_alias(struct cli *cli, int argc, char **argv)
{
    const char *const *words;
    char **all;
    size_t n;

    CLI_TRY(cli_alias(cli, argv[0], &words, &n));
    if (n == 0)
        return cli_command_unknown(cli, argv[0]);
    cli->command = cli_command_find(cli, words[0]);
    if (!cli->command)
        return cli_fail(cli, BRC_EINVAL, "alias '%s' stands for '%s', which is not a command",
                        argv[0], words[0]);
    all = cli_alloc(cli, n + (size_t)argc, sizeof(*all));
    for (size_t i = 1; i < n; i++)
        all[i - 1] = cli_text(cli, "%s", words[i]);
    memcpy(all + n - 1, argv + 1, (size_t)(argc - 1) * sizeof(*all));
    return run_command(cli, (int)n + argc - 2, all);
}

static int run_line(struct cli *cli, int argc, char **argv)
{
    int used = 0;

    CLI_TRY(cli_args_leading(cli, cli_leading_options, cli_global_options, argc - 1, argv + 1,
                             &used));
    CLI_TRY(cli_globals_read(cli));
    argc -= used + 1;
    argv += used + 1;
    if (cli_has(cli, "version")) {
        cli_printf(cli, "breccia %s\n", brc_version());
        return 0;
    }
    if (argc == 0) {
        cli_help_all(cli);
        return 0;
    }
    cli->command = cli_command_find(cli, argv[0]);
    if (!cli->command)
        return run_alias(cli, argc, argv);
    return run_command(cli, argc - 1, argv + 1);
}

/* Writes the gathered output. After an error, a held document is dropped. */
static int finish_output(struct cli *cli, int rc)
{
    int flushed;

    if (rc < 0 && cli->out.hold)
        return rc;
    if (cli->out.hold && (cli->out.len > 0 || cli->out.spill))
        cli_put(cli, "\n", 1);
    cli_progress_end(cli);
    flushed = rc < 0 && cli->out.failure ? rc : cli_out_flush(cli);
    return rc < 0 ? rc : flushed < 0 ? flushed : rc;
}

/* Opens a stand-in for each standard descriptor that the caller closed, so that no other file
 * gets that number. The stand-in cannot be used: writing to standard output still fails. */
static void fill_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return;
}

int main(int argc, char **argv)
{
    struct cli cli = { .commands = cli_commands };
    struct cli_pager pager;
    int rc, status, pipe_closed;

    fill_standard_descriptors();
    cli_signal_install();
    cli_out_begin(&cli.out, STDOUT_FILENO, "standard output");
    rc = finish_output(&cli, run_line(&cli, argc, argv));
    for (int i = 1; i < argc && rc < 0; i++) /* also where the error comes before the option */
        cli.json |= strcmp(argv[i], "--json") == 0;
    if (rc >= 0 && close(STDOUT_FILENO) != 0 && errno != EBADF)
        rc = cli_fail_errno(&cli, errno, "standard output");
    status = status_of(&cli, rc);
    pipe_closed = cli.out.failure == EPIPE && !cli.done;
    if (rc < 0 && !pipe_closed)
        report_error(&cli, rc);
    pager = cli.out.pager;
    cli_close(&cli); /* first: nobody waits for the repository while the user reads */
    if (cli_pager_end(&pager))
        return pipe_closed ? 0 : status;
    if (pipe_closed) { /* nobody reads the output: end by SIGPIPE, as other programs do */
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }
    return status;
}
