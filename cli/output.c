/*
 * output.c - buffered, checked writing to standard output.
 */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN_AT = 1 << 16, HELD_IN_MEMORY = 1 << 24, WRITTEN_AT_ONCE = 1 << 18 };

void cli_out_begin(struct cli_out *out, int fd, const char *name)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

    memset(out, 0, sizeof(*out));
    out->fd = fd;
    out->name = name;
    out->terminal = isatty(fd);
    out->color = out->terminal && !(no_color && no_color[0]) && term && strcmp(term, "dumb") != 0;
}

void cli_out_dispose(struct cli_out *out)
{
    if (out->spill)
        fclose(out->spill);
    free(out->data);
    memset(out, 0, sizeof(*out));
}

static void write_bytes(struct cli_out *out, const char *bytes, size_t len)
{
    while (len > 0 && !out->failure) {
        ssize_t n = write(out->fd, bytes, len < WRITTEN_AT_ONCE ? len : WRITTEN_AT_ONCE);

        if (n < 0 && errno == EINTR && !cli_signal())
            continue;
        if (n < 0) {
            out->failure = errno;
            return;
        }
        bytes += n;
        len -= (size_t)n;
        if (len > 0 && cli_signal() && !out->answers)
            out->failure = EINTR;
    }
}

/* Output that is held and outgrows its buffer goes to a temporary file. */
static void spill_bytes(struct cli_out *out)
{
    errno = 0;
    if (!out->spill)
        out->spill = tmpfile();
    if (!out->spill || fwrite(out->data, 1, out->len, out->spill) != out->len)
        out->failure = errno ? errno : EIO;
    out->len = 0;
}

static void show_spilled(struct cli_out *out)
{
    size_t n;

    if (!out->spill || out->failure)
        return;
    spill_bytes(out);
    errno = 0;
    if (!out->failure && (fflush(out->spill) != 0 || fseek(out->spill, 0, SEEK_SET) != 0))
        out->failure = errno ? errno : EIO;
    while (!out->failure && (n = fread(out->data, 1, out->cap, out->spill)) > 0) {
        if (cli_signal() && !out->answers)
            out->failure = EINTR;
        write_bytes(out, out->data, n);
    }
    if (!out->failure && ferror(out->spill))
        out->failure = EIO;
    fclose(out->spill);
    out->spill = NULL;
}

int cli_out_check(struct cli *cli)
{
    if (cli->out.failure)
        return cli_fail_errno(cli, cli->out.failure, cli->out.name);
    if (cli_signal())
        return cli_fail(cli, BRC_EINTERRUPT, "interrupted");
    return BRC_OK;
}

int cli_out_flush(struct cli *cli)
{
    struct cli_out *out = &cli->out;

    show_spilled(out);
    write_bytes(out, out->data, out->len);
    out->len = 0;
    return out->failure ? cli_fail_errno(cli, out->failure, out->name) : BRC_OK;
}

void cli_put(struct cli *cli, const char *bytes, size_t len)
{
    struct cli_out *out = &cli->out;
    size_t limit = out->hold ? HELD_IN_MEMORY : SHOWN_AT;

    if (out->failure || len == 0)
        return;
    if (out->len + len > out->cap) {
        size_t cap = out->cap ? out->cap : 4096;

        while (cap < out->len + len)
            cap *= 2;
        out->data = cli_regrow(out->data, cap, 1);
        out->cap = cap;
    }
    memcpy(out->data + out->len, bytes, len);
    out->len += len;
    if (out->len < limit)
        return;
    if (out->hold) {
        spill_bytes(out);
    } else {
        write_bytes(out, out->data, out->len);
        out->len = 0;
    }
}

void cli_puts(struct cli *cli, const char *text)
{
    cli_put(cli, text, strlen(text));
}

static void put_formatted(struct cli *cli, const char *format, va_list args)
{
    char small[512];
    char *large;
    va_list again;
    int len;

    va_copy(again, args);
    len = vsnprintf(small, sizeof(small), format, args);
    if (len >= 0 && (size_t)len < sizeof(small)) {
        cli_put(cli, small, (size_t)len);
    } else if (len >= 0) {
        large = cli_regrow(NULL, (size_t)len + 1, 1);
        vsnprintf(large, (size_t)len + 1, format, again);
        cli_put(cli, large, (size_t)len);
        free(large);
    }
    va_end(again);
}

void cli_printf(struct cli *cli, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    put_formatted(cli, format, args);
    va_end(args);
}

void cli_say(struct cli *cli, const char *format, ...)
{
    va_list args;

    if (cli->quiet || cli->json)
        return;
    va_start(args, format);
    put_formatted(cli, format, args);
    va_end(args);
    cli_puts(cli, "\n");
}

void cli_color(struct cli *cli, enum cli_color color)
{
    static const char *const codes[] = { "0", "1", "31", "32", "33", "36", "2" };

    if (cli->out.color)
        cli_printf(cli, "\033[%sm", codes[color]);
}

void cli_color_end(struct cli *cli)
{
    cli_color(cli, CLI_PLAIN);
}

void cli_put_padded(struct cli *cli, const char *text, size_t width)
{
    cli_puts(cli, text);
    for (size_t n = cli_text_width(text); n < width; n++)
        cli_put(cli, " ", 1);
}
