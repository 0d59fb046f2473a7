/*
 * progress.c - the progress line.
 *
 * It appears once a command has run for a second, is redrawn in place five times
 * a second and is wiped before anything else is said.
 */
#include "cli.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { APPEARS_AFTER_MS = 1000, REDRAWN_EVERY_MS = 200 };

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void cli_progress_begin(struct cli *cli)
{
    cli->progress.enabled = !cli->quiet && !cli->no_progress && isatty(STDERR_FILENO);
    cli->progress.shown = 0;
    cli->progress.began_ms = now_ms();
    cli->progress.last_ms = cli->progress.began_ms;
}

void cli_progress_end(struct cli *cli)
{
    if (cli->progress.shown)
        fputs("\r\033[K", stderr);
    cli->progress.shown = 0;
}

int cli_progress_step(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    struct cli *cli = ctx;
    struct cli_progress *progress = &cli->progress;
    int64_t now;

    if (cli_signal())
        return 1;
    if (!progress->enabled)
        return 0;
    now = now_ms();
    if (now - progress->began_ms < APPEARS_AFTER_MS ||
        now - progress->last_ms < REDRAWN_EVERY_MS)
        return 0;
    if (total > 0)
        fprintf(stderr, "\r%s: %llu of %llu %s (%d %%)\033[K", cli->command->name,
                (unsigned long long)done, (unsigned long long)total, what,
                (int)(100.0 * (double)done / (double)total));
    else
        fprintf(stderr, "\r%s: %llu %s\033[K", cli->command->name, (unsigned long long)done, what);
    fflush(stderr);
    progress->shown = 1;
    progress->last_ms = now;
    return 0;
}
