/*
 * progress.c - warnings and the progress line.
 */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

/* ==== warnings =========================================== */

/* Returns the line at *from, which lasts as long as `cli`, and moves *from behind it. */
static const char *next_line(struct cli *cli, const brc_buf *lines, size_t *from, size_t to)
{
    const char *line = (const char *)lines->data + *from;
    const char *stop = memchr(line, '\n', to - *from);
    size_t len = stop ? (size_t)(stop - line) : to - *from;

    *from += len + (stop != NULL);
    return cli_text(cli, "%.*s", (int)len, line);
}

void cli_warn(struct cli *cli, const brc_buf *lines)
{
    if (cli->quiet || lines->len == 0)
        return;
    cli_progress_end(cli);
    for (size_t from = 0; from < lines->len;)
        fprintf(stderr, "breccia: warning: %s\n",
                cli_escaped(cli, next_line(cli, lines, &from, lines->len)));
}

void cli_note(struct cli *cli, const char *text)
{
    if (cli->quiet)
        return;
    cli_progress_end(cli);
    fprintf(stderr, "breccia: note: %s\n", text);
}

struct cli_texts cli_warnings(struct cli *cli, const brc_buf *lines, size_t from, size_t to)
{
    const char **texts;
    size_t n = 0;

    for (size_t i = from; i < to; i++)
        n += lines->data[i] == '\n' || i + 1 == to;
    texts = cli_alloc(cli, n, sizeof(*texts));
    for (size_t i = 0; from < to; i++)
        texts[i] = next_line(cli, lines, &from, to);
    return (struct cli_texts){ texts, n };
}

/* ==== the progress line ================================== */

/*
 * The line appears once a command has run for a second, is redrawn in place five times
 * a second, and is wiped before anything else is printed.
 */

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
    cli->progress.read = cli->progress.done = cli->progress.total = 0;
}

void cli_progress_total(struct cli *cli, const brc_sel *sel)
{
    size_t item = brc_array_describe(cli->array)->item_size;
    uint64_t bytes;

    if (__builtin_mul_overflow(brc_sel_count(sel), (uint64_t)(item ? item : 1), &bytes))
        bytes = 0;
    cli->progress.total = bytes; /* until the library reports a total */
    brc_progress_begin(cli->repo, cli->command->name, bytes);
}

void cli_progress_end(struct cli *cli)
{
    if (cli->progress.shown)
        fputs("\r\033[K", stderr);
    cli->progress.shown = 0;
}

const char *cli_progress_text(char *out, size_t cap, const char *name, uint64_t done,
                              uint64_t total, int64_t ms)
{
    char size[CLI_SIZE_CAP], all[CLI_SIZE_CAP], speed[CLI_SIZE_CAP];
    double rate = ms > 0 ? (double)done * 1000 / (double)ms : 0, left;
    int at, seconds;

    cli_format_size(speed, rate < 1e18 ? (uint64_t)rate : 0);
    if (total == 0) {
        snprintf(out, cap, "%s: %s, %s/s", name, cli_format_size(size, done), speed);
        return out;
    }
    at = snprintf(out, cap, "%s: %s of %s (%d %%), %s/s", name, cli_format_size(size, done),
                  cli_format_size(all, total), (int)(100.0 * (double)done / (double)total), speed);
    left = rate > 0 ? (double)(total - done) / rate : 0;
    if (at < 0 || (size_t)at >= cap || rate <= 0 || left > 360000)
        return out;
    seconds = (int)left + (left > (int)left);
    if (seconds < 90)
        snprintf(out + at, cap - (size_t)at, ", %d s left", seconds);
    else
        snprintf(out + at, cap - (size_t)at, ", %d min left", (seconds + 59) / 60);
    return out;
}

int cli_progress_line(struct cli_progress *progress, char *out, size_t cap, const char *name,
                      int64_t now_ms)
{
    uint64_t done = progress->read > progress->done ? progress->read : progress->done;

    if (!progress->enabled || now_ms - progress->began_ms < APPEARS_AFTER_MS ||
        (progress->shown && now_ms - progress->last_ms < REDRAWN_EVERY_MS))
        return 0;
    if (progress->total > 0 && done > progress->total)
        done = progress->total;
    cli_progress_text(out, cap, name, done, progress->total, now_ms - progress->began_ms);
    progress->shown = 1;
    progress->last_ms = now_ms;
    return 1;
}

/* Returns the room for a line that fits the terminal: a longer one would wrap and could not be
 * wiped. */
static size_t room_for_line(size_t most)
{
    struct winsize window;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) < 0 || window.ws_col < 2)
        return most;
    return window.ws_col < most ? window.ws_col : most;
}

static void draw(struct cli *cli)
{
    char line[160];

    if (!cli->progress.enabled ||
        !cli_progress_line(&cli->progress, line, room_for_line(sizeof(line)), cli->command->name,
                           now_ms()))
        return;
    fprintf(stderr, "\r%s\033[K", line);
    fflush(stderr);
}

void cli_progress_read(struct cli *cli, size_t bytes)
{
    cli->progress.read += bytes;
    draw(cli);
}

int cli_progress_step(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    struct cli *cli = ctx;

    (void)phase; /* the name of the command says more */
    if (cli_signal())
        return 1;
    cli->progress.done = done;
    cli->progress.total = total;
    draw(cli);
    return 0;
}
