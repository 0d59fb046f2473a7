/*
 * cmd_bisect.c - bisect.
 */
#include "../cli.h"
#include "commands.h"
#include "history.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { RUN_SKIP = 125, RUN_STOP = 128 };

/* ---- telling ------------------------------------------------------------------------ */

static int put_subject(struct cli *cli, const brc_oid *id)
{
    brc_commit *commit;

    CLI_TRY(brc_commit_read(&commit, cli->repo, id, &cli->err));
    cli_say(cli, "  %s", cli_subject(cli, commit->message));
    brc_commit_free(commit);
    return BRC_OK;
}

static unsigned steps_left(uint64_t left)
{
    unsigned n = 0;

    for (; left > 1; left = (left + 1) / 2)
        n++;
    return n;
}

static int say_bisect(struct cli *cli, const brc_bisect_result *r)
{
    const char *id = cli_short_id(cli, &r->at);

    switch (r->state) {
    case BRC_BISECT_NONE:
        cli_say(cli, "no bisection");
        return BRC_OK;
    case BRC_BISECT_WAITING:
        cli_say(cli, r->flags & BRC_BISECT_HAS_BAD ? "which version is good?"
                     : r->good > 0                 ? "which version is bad?"
                                                   : "which version is bad, and which is good?");
        return BRC_OK;
    case BRC_BISECT_FOUND:
        cli_say(cli, "first bad commit: %s", id);
        return put_subject(cli, &r->at);
    case BRC_BISECT_OPEN:
        cli_say(cli, "the first bad commit is one of %llu: all but the bad one were skipped",
                (unsigned long long)r->left);
        return BRC_OK;
    default:
        cli_say(cli, "look at %s: %llu versions are left, about %u step%s", id,
                (unsigned long long)r->left, steps_left(r->left), r->left > 2 ? "s" : "");
        return put_subject(cli, &r->at);
    }
}

static int report_bisect(struct cli *cli, const brc_bisect_result *r)
{
    static const char *const names[] = { "none", "waiting", "next", "found", "open" };
    const int has_commit = r->state == BRC_BISECT_NEXT || r->state == BRC_BISECT_FOUND;

    cli_put_record(cli, CLI_FIELDS({ "state", CLI_OF(names[r->state]) },
                                   { has_commit ? "commit" : NULL, CLI_OF(r->at) },
                                   { "left", CLI_OF(r->left) }, { "good", CLI_OF(r->good) },
                                   { "bad", CLI_OF((r->flags & BRC_BISECT_HAS_BAD) != 0) },
                                   { "skipped", CLI_OF(r->skipped) }));
    return cli->json ? BRC_OK : say_bisect(cli, r);
}

/* ---- run ---------------------------------------------------------------------------- */

/* Sets *status to the exit status of the command, or to 256 and the number of the signal that
 * ended it. */
static int wait_for_judge(struct cli *cli, pid_t pid, int *status)
{
    int how;

    while (waitpid(pid, &how, 0) < 0)
        if (errno != EINTR)
            return cli_fail_errno(cli, errno, "bisect run: waiting for the command");
    *status = WIFEXITED(how) ? WEXITSTATUS(how) : 256 + WTERMSIG(how);
    return BRC_OK;
}

/* Runs one word as a line for the shell, and several as a program and its arguments. With
 * --json, the output of the program goes to standard error, since standard output is for the
 * document. */
static int run_judge(struct cli *cli, int *status)
{
    const char *line[] = { "sh", "-c", NULL, NULL };
    const size_t n = cli->args.noperands - 2;
    posix_spawn_file_actions_t actions;
    const char **words = line;
    pid_t pid;
    int rc;

    line[2] = cli_operand(cli, 2);
    if (n > 1) {
        words = cli_alloc(cli, n + 1, sizeof(*words));
        memcpy(words, cli->args.operands + 2, n * sizeof(*words));
        words[n] = NULL;
    }
    rc = posix_spawn_file_actions_init(&actions);
    if (rc == 0 && cli->json)
        rc = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    if (rc == 0)
        rc = posix_spawnp(&pid, words[0], &actions, NULL, (char *const *)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (rc != 0)
        return cli_fail(cli, BRC_EIO, "bisect run: cannot run '%s': %s", cli_escaped(cli, words[0]),
                        strerror(rc));
    return wait_for_judge(cli, pid, status);
}

static int judge(struct cli *cli, const brc_oid *at, int *what)
{
    const char *id = cli_long_id(cli, at);
    int status = RUN_STOP;

    if (setenv("BRECCIA_REV", id, 1) < 0 || setenv("BRECCIA_FILE", cli->file, 1) < 0)
        return cli_fail_errno(cli, errno, "bisect run");
    if (!cli->json)
        CLI_TRY(cli_out_flush(cli));
    CLI_TRY(run_judge(cli, &status));
    if (status >= RUN_STOP)
        return cli_fail(cli, BRC_EMISUSE,
                        status >= 256 ? "bisect run: the command was ended by signal %d; the "
                                        "bisection stays as it is"
                                      : "bisect run: the command ended with status %d; the "
                                        "bisection stays as it is",
                        status & 255);
    *what = status == 0 ? BRC_BISECT_GOOD : status == RUN_SKIP ? BRC_BISECT_SKIP : BRC_BISECT_BAD;
    if (!cli->json)
        cli_say(cli, "%s is %s", cli_short_id(cli, at),
                status == 0          ? "good"
                : status == RUN_SKIP ? "skipped"
                                     : "bad");
    return BRC_OK;
}

static int run_to_the_end(struct cli *cli, brc_bisect_result *r)
{
    int what = BRC_BISECT_SKIP;

    CLI_TRY(brc_bisect(r, cli->repo, BRC_BISECT_LOOK, NULL, &cli->err));
    if (r->state == BRC_BISECT_NONE || r->state == BRC_BISECT_WAITING)
        return cli_fail(cli, BRC_EMISUSE,
                        "bisect run: say which version is good and which is bad first");
    while (r->state == BRC_BISECT_NEXT) {
        CLI_TRY(judge(cli, &r->at, &what));
        CLI_TRY(brc_bisect(r, cli->repo, what, cli_long_id(cli, &r->at), &cli->err));
    }
    return BRC_OK;
}

/* ---- the command -------------------------------------------------------------------- */

/* Runs `start [BAD [GOOD...]]`. */
static int start_bisection(struct cli *cli, brc_bisect_result *r)
{
    CLI_TRY(brc_bisect(r, cli->repo, BRC_BISECT_START, NULL, &cli->err));
    for (size_t i = 2; i < cli->args.noperands; i++)
        CLI_TRY(brc_bisect(r, cli->repo, i == 2 ? BRC_BISECT_BAD : BRC_BISECT_GOOD,
                           cli_operand(cli, i), &cli->err));
    return BRC_OK;
}

static int say_of_each(struct cli *cli, brc_bisect_result *r, int what)
{
    if (cli->args.noperands == 2)
        return brc_bisect(r, cli->repo, what, NULL, &cli->err);
    for (size_t i = 2; i < cli->args.noperands; i++)
        CLI_TRY(brc_bisect(r, cli->repo, what, cli_operand(cli, i), &cli->err));
    return BRC_OK;
}

static int run_bisect(struct cli *cli)
{
    static const char *const words[] = { "status", "start", "good", "bad", "skip", "reset",
                                         "run" };
    enum { NWORDS = sizeof(words) / sizeof(words[0]), RUN = NWORDS - 1 };
    const size_t n = cli->args.noperands;
    brc_bisect_result r = BRC_BISECT_RESULT_INIT;
    int what = 0;

    while (what < NWORDS && strcmp(words[what], cli_operand(cli, 1)) != 0)
        what++;
    if (what == NWORDS)
        return cli_usage(cli, "bisect: '%s' is not start, good, bad, skip, run, status or reset",
                         cli_escaped(cli, cli_operand(cli, 1)));
    if ((what == RUN) != (n > 2) && (what == RUN || what == BRC_BISECT_LOOK ||
                                     what == BRC_BISECT_RESET))
        return cli_usage(cli, what == RUN ? "bisect run needs a command"
                                          : "bisect %s takes no further argument",
                         words[what]);
    CLI_TRY(cli_open(cli, what == BRC_BISECT_LOOK ? BRC_OPEN_READONLY : 0));
    if (what == RUN)
        CLI_TRY(run_to_the_end(cli, &r));
    else if (what == BRC_BISECT_START)
        CLI_TRY(start_bisection(cli, &r));
    else
        CLI_TRY(say_of_each(cli, &r, what));
    if (what != BRC_BISECT_LOOK)
        cli_done(cli);
    return report_bisect(cli, &r);
}

static const struct cli_option bisect_options[] = {
    CLI_OPTIONS_END
};

const struct cli_command cli_command_bisect = {
    .name = "bisect",
    .group = "Versions",
    .summary = "find the commit that brought a change",
    .usage = "FILE start [BAD [GOOD...]]\nFILE good|bad|skip [REV...]\nFILE run CMD\n"
             "FILE run -- PROGRAM ARGUMENTS...\nFILE status|reset",
    .details = "Say which version is good and which is bad. The command then names the version\n"
               "between them to look at next, with '--at', until one is left. Without REV,\n"
               "good, bad and skip are about that version. The answers stay in FILE until\n"
               "reset; no branch moves.\n"
               "\n"
               "'run' asks a program instead of you: CMD is a line for the shell, or PROGRAM is\n"
               "run with its ARGUMENTS; the version is in $BRECCIA_REV and the repository in\n"
               "$BRECCIA_FILE. Status 0 means good, 125 skip, and any other status up to 127\n"
               "bad. A higher status or a signal stops the bisection.",
    .examples = "breccia bisect climate.brc start main v1\n"
                "breccia bisect climate.brc run -- ./check.sh --strict",
    .options = bisect_options,
    .min_operands = 2,
    .max_operands = 10000,
    .flags = 0,
    .run = run_bisect,
};
