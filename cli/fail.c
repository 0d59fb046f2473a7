/*
 * fail.c - the memory, the signals and the error of a run. The process ends when memory runs
 * out, which undoes an open transaction: nothing stays half done.
 */
#include "fail.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* ==== memory ================================ */

struct cli_block {
    struct cli_block *next;
    max_align_t memory[];
};

static void out_of_memory(void)
{
    static const char message[] = "breccia: error: out of memory\n";

    if (write(STDERR_FILENO, message, sizeof(message) - 1) < 0)
        _exit(1);
    _exit(1);
}

void *cli_alloc(struct cli *cli, size_t n, size_t size)
{
    struct cli_block *block;

    if (size && n > (SIZE_MAX - sizeof(*block)) / size)
        out_of_memory();
    block = calloc(1, sizeof(*block) + n * size);
    if (!block)
        out_of_memory();
    block->next = cli->blocks;
    cli->blocks = block;
    return block->memory;
}

char *cli_text(struct cli *cli, const char *format, ...)
{
    va_list args;
    int len;
    char *text;

    va_start(args, format);
    len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    text = cli_alloc(cli, len < 0 ? 1 : (size_t)len + 1, 1);
    va_start(args, format);
    if (len > 0)
        vsnprintf(text, (size_t)len + 1, format, args);
    va_end(args);
    return text;
}

void *cli_regrow(void *memory, size_t n, size_t size)
{
    void *grown;

    if (size && n > SIZE_MAX / size)
        out_of_memory();
    grown = realloc(memory, n > 0 && size > 0 ? n * size : 1);
    if (!grown)
        out_of_memory();
    return grown;
}

void *cli_grow(void *list, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return list;
    *cap = n < 16 ? 16 : 2 * n;
    return cli_regrow(list, *cap, size);
}

struct cli_block *cli_memory_mark(const struct cli *cli)
{
    return cli->blocks;
}

void cli_memory_release(struct cli *cli, struct cli_block *mark)
{
    while (cli->blocks != mark) {
        struct cli_block *next = cli->blocks->next;

        free(cli->blocks);
        cli->blocks = next;
    }
}

/* ==== signals: SIGINT and SIGTERM stop the command ======= */

/* A signal handler can reach only globals. */
static volatile sig_atomic_t caught_signal;
static volatile sig_atomic_t signals_held;
static breccia *volatile signal_target;

static void stop_on_signal(int number)
{
    caught_signal = number;
    if (signal_target)
        brc_interrupt(signal_target, 1);
    else if (!signals_held)
        _exit(128 + number);
}

int cli_signal(void)
{
    return caught_signal;
}

void cli_signal_target(breccia *repo)
{
    signal_target = repo;
    signals_held = 0;
    if (caught_signal && repo)
        brc_interrupt(repo, 1);
}

void cli_signal_hold(void)
{
    signals_held = 1;
    signal_target = NULL;
}

/* A shell ignores SIGINT in background jobs, and the command does not change that. */
static void handle_unless_ignored(int number, const struct sigaction *action)
{
    struct sigaction now;

    if (sigaction(number, NULL, &now) == 0 && now.sa_handler != SIG_IGN)
        sigaction(number, action, NULL);
}

void cli_signal_install(void)
{
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    sigemptyset(&action.sa_mask);
    action.sa_handler = stop_on_signal; /* without SA_RESTART: a signal ends a wait for input */
    handle_unless_ignored(SIGINT, &action);
    handle_unless_ignored(SIGTERM, &action);
    action.sa_handler = SIG_IGN; /* a write to a closed pipe fails instead */
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL); /* a write beyond a file size limit fails instead */
}

/* ==== the error of a run ================================= */

int cli_fail(struct cli *cli, int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    cli->err.code = code;
    cli->err.detail = 0;
    cli->err.source[0] = '\0';
    vsnprintf(cli->err.message, sizeof(cli->err.message), format, args);
    va_end(args);
    return code;
}

int cli_usage(struct cli *cli, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    cli->usage = 1;
    cli->err.code = BRC_EINVAL;
    cli->err.source[0] = '\0';
    vsnprintf(cli->err.message, sizeof(cli->err.message), format, args);
    va_end(args);
    return BRC_EINVAL;
}

int cli_called(struct cli *cli, int rc, const brc_error *err)
{
    if (rc >= 0)
        return rc;
    if (rc == BRC_EINTERRUPT && cli->err.code < 0)
        return cli->err.code;
    cli->err = *err;
    return rc;
}

int cli_fail_errno(struct cli *cli, int number, const char *what)
{
    int code = BRC_EIO;

    if (number == ENOSPC || number == EDQUOT || number == EFBIG)
        code = BRC_ENOSPACE;
    else if (number == ENOENT)
        code = BRC_ENOTFOUND;
    else if (number == EINTR && cli_signal())
        code = BRC_EINTERRUPT;
    return cli_fail(cli, code, "%s: %s", what, strerror(number));
}
