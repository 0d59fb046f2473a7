/*
 * pager.c - the pager.
 *
 * Standard error goes to the pager too, if it is a terminal: otherwise a message would be drawn
 * over the page. The pager is a word, which is run as it is, or a command for sh.
 */
#include "pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

extern char **environ;

/* On a terminal that cannot move its cursor, less asks before each page. */
static int is_capable(void)
{
    const char *term = getenv("TERM");

    return term && strcmp(term, "dumb") != 0;
}

/* Starts the program with `input` as standard input. Returns an errno, or 0. */
static int spawn_pager(const char *pager, int input, pid_t *pid)
{
    const int is_word = !strpbrk(pager, "|&;<>()$`\\\"' \t\n*?[#~=%");
    const char *const words[] = { is_word ? pager : "sh", is_word ? NULL : "-c", pager, NULL };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    int failed;

    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGXFSZ);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    failed = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    if (!failed)
        failed = posix_spawnp(pid, words[0], &actions, &attributes, (char *const *)words, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

/* Sends what is written from now on to the pager. */
static void write_to_pager(struct cli *cli, int fd)
{
    cli_progress_end(cli);
    cli->progress.enabled = 0;
    fflush(stderr);
    cli->out.pager.has_errors = isatty(STDERR_FILENO) && dup2(fd, STDERR_FILENO) >= 0;
    cli->out.pager.fd = cli->out.fd = fd;
}

/* Starts the pager. If that is not possible, prints a note, and the output goes to the terminal. */
static void start_pager(struct cli *cli)
{
    const char *program = cli->out.pager.program;
    int ends[2], failed = 0;

    cli->out.pager.start = NULL;
    if (pipe2(ends, O_CLOEXEC) != 0)
        failed = errno;
    setenv("LESS", "FRX", 0);
    setenv("LV", "-c", 0);
    if (!failed) {
        failed = spawn_pager(program, ends[0], &cli->out.pager.pid);
        close(ends[0]);
        if (!failed)
            write_to_pager(cli, ends[1]);
        else
            close(ends[1]);
    }
    if (failed && strcmp(program, "less") != 0)
        cli_note(cli, cli_text(cli, "the pager '%s' cannot be run: %s", cli_escaped(cli, program),
                               strerror(failed)));
}

int cli_pager_choose(struct cli *cli)
{
    const char *pager = getenv("BRECCIA_PAGER");

    if (!(cli->command->flags & CLI_PAGED || cli->help) || !cli->out.terminal ||
        cli_has(cli, "no-pager") || cli_has(cli, "image") || cli_has(cli, "plot") ||
        cli_has(cli, "output") || (pager && !pager[0]))
        return BRC_OK;
    CLI_TRY(cli_setting(cli, "pager", &pager, NULL));
    if (!pager)
        pager = getenv("PAGER");
    if (!pager && is_capable())
        pager = "less";
    if (pager && pager[0] && strcmp(pager, "cat") != 0)
        cli->out.pager = (struct cli_pager){ .program = pager, .start = start_pager };
    return BRC_OK;
}

int cli_pager_end(const struct cli_pager *pager)
{
    int status;

    if (pager->pid == 0)
        return 0;
    fflush(stderr);
    close(pager->fd);
    if (pager->has_errors)
        close(STDERR_FILENO);
    while (waitpid(pager->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return 1;
}
