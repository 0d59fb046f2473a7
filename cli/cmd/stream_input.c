/*
 * stream_input.c - raw elements from standard input.
 */
#include "../cli.h"
#include "stream_array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER = 64 << 10, COUNTED_BEYOND = 64 << 20 };

struct input {
    struct cli *cli;
    uint64_t want, done; /* bytes of the selection, 0 where that is not known; and of them so far */
    char *buffer;        /* for requests that are smaller than it */
    size_t at, filled;
};

/* Reads `len` bytes, or fewer if the input ends. */
static int read_input(struct cli *cli, char *data, size_t len, size_t *got)
{
    *got = 0;
    while (*got < len) {
        ssize_t n = read(STDIN_FILENO, data + *got, len - *got);

        if (n == 0)
            break;
        if (n < 0 && errno == EINTR && !cli_signal())
            continue;
        if (n < 0)
            return cli_fail_errno(cli, errno, "standard input");
        *got += (size_t)n;
        cli_progress_read(cli, (size_t)n);
    }
    return BRC_OK;
}

/* The elements of variable length are asked for one at a time. */
static int read_buffered(struct input *in, char *dst, size_t len, size_t *got)
{
    size_t n;

    if (in->at == in->filled && len >= BUFFER)
        return read_input(in->cli, dst, len, got);
    for (*got = 0; *got < len; *got += n) {
        if (in->at == in->filled) {
            in->at = 0;
            CLI_TRY(read_input(in->cli, in->buffer, BUFFER, &in->filled));
        }
        n = in->filled - in->at < len - *got ? in->filled - in->at : len - *got;
        if (n == 0)
            break;
        memcpy(dst + *got, in->buffer + in->at, n);
        in->at += n;
    }
    return BRC_OK;
}

static int fail_input_size(struct cli *cli, const char *at_least, uint64_t got, uint64_t want)
{
    return cli_fail(cli, BRC_EINVAL,
                    "--from -: standard input has %s%llu bytes but the selection takes %llu",
                    at_least, (unsigned long long)got, (unsigned long long)want);
}

/* The input must end here. */
static int expect_input_end(struct input *in)
{
    char waste[65536];
    uint64_t over = in->filled - in->at;
    size_t got = 1;

    while (got > 0 && over < COUNTED_BEYOND) {
        CLI_TRY(read_input(in->cli, waste, sizeof(waste), &got));
        over += got;
    }
    if (over == 0)
        return BRC_OK;
    return fail_input_size(in->cli, got > 0 ? "more than " : "", in->want + over - (got > 0),
                           in->want);
}

/* A file of the wrong length is an error before any work is done. */
static int check_input_length(struct cli *cli, uint64_t want)
{
    struct stat status;
    off_t at;

    if (fstat(STDIN_FILENO, &status) != 0 || !S_ISREG(status.st_mode))
        return BRC_OK;
    at = lseek(STDIN_FILENO, 0, SEEK_CUR);
    if (at < 0 || (uint64_t)(status.st_size - at) == want)
        return BRC_OK;
    return fail_input_size(cli, "", (uint64_t)(status.st_size - at), want);
}

/* The library asks for as many bytes as the selection takes, then for one more. */
static int get_elements(void *ctx, void *dst, size_t len, size_t *got)
{
    struct input *in = ctx;

    CLI_TRY(read_buffered(in, dst, len, got));
    in->done += *got;
    if (in->want == 0)
        return BRC_OK;
    if (*got < len && in->done < in->want)
        return fail_input_size(in->cli, "", in->done, in->want);
    return in->done == in->want && *got > 0 ? expect_input_end(in) : BRC_OK;
}

static int load_input(struct cli *cli, const brc_sel *sel, uint64_t want)
{
    struct input in = { .cli = cli, .want = want };
    brc_error err = BRC_ERROR_INIT;

    in.buffer = cli_regrow(NULL, BUFFER, 1);
    int rc = cli_called(cli, brc_array_load_stream(cli->array, sel, get_elements, &in, &err), &err);
    free(in.buffer);
    return rc;
}

int cli_stream_input(struct cli *cli, const brc_sel *sel)
{
    const brc_array_info *info = brc_array_describe(cli->array);
    uint64_t count = brc_sel_count(sel), want;
    int rc;

    CLI_TRY(cli_check_raw(cli, "--from -"));
    CLI_TRY(brc_check_file(cli->file, "/dev/stdin", &cli->err));
    if (info->item_size == 0)
        return load_input(cli, sel, 0);
    if (__builtin_mul_overflow(count, (uint64_t)info->item_size, &want) || want > INT64_MAX)
        return cli_fail(cli, BRC_ELIMIT, "--from -: the selection is larger than 8 EiB");
    CLI_TRY(check_input_length(cli, want));
    if (want == 0)
        return expect_input_end(&(struct input){ .cli = cli });
    cli_progress_total(cli, sel);
    rc = load_input(cli, sel, want);
    brc_progress_end(cli->repo, rc);
    return rc;
}
