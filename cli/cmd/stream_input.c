/*
 * stream_input.c - raw elements from standard input, part by part.
 */
#include "../cli.h"
#include "parts.h"
#include "stream_array.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WRITE_BUDGET = 64 << 20, COUNTED_BEYOND = 64 << 20 };

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

static int fail_input_size(struct cli *cli, const char *at_least, uint64_t got, uint64_t want)
{
    return cli_fail(cli, BRC_EINVAL,
                    "--from -: standard input has %s%llu bytes but the selection takes %llu",
                    at_least, (unsigned long long)got, (unsigned long long)want);
}

/* The input must end here, after `want` bytes. */
static int expect_input_end(struct cli *cli, uint64_t want)
{
    char waste[65536];
    uint64_t over = 0;
    size_t got = 1;

    while (got > 0 && over < COUNTED_BEYOND) {
        CLI_TRY(read_input(cli, waste, sizeof(waste), &got));
        over += got;
    }
    if (over == 0)
        return BRC_OK;
    return fail_input_size(cli, got > 0 ? "more than " : "", want + over - (got > 0), want);
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

static int write_parts(struct cli *cli, struct cli_parts *parts, size_t item_size, uint64_t want)
{
    uint64_t done = 0;
    char *data = NULL;
    int rc = BRC_OK;

    while (rc >= 0 && cli_parts_next(parts)) {
        size_t len = (size_t)parts->count * item_size, got;

        data = cli_regrow(data, len, 1);
        rc = read_input(cli, data, len, &got);
        if (rc >= 0 && got < len)
            rc = fail_input_size(cli, "", done + got, want);
        if (rc >= 0 && done + len == want)
            rc = expect_input_end(cli, want);
        if (rc >= 0)
            rc = brc_array_write(cli->array, &parts->part, data, len, &cli->err);
        done += len;
    }
    free(data);
    return rc;
}

/* Several parts are one transaction; a single one needs no lock while it is read. */
static int write_all_parts(struct cli *cli, struct cli_parts *parts, size_t item_size,
                           uint64_t want)
{
    if (parts->axis < 0)
        return write_parts(cli, parts, item_size, want);
    CLI_TRY(brc_begin(cli->repo, &cli->err));
    return cli_end(cli, write_parts(cli, parts, item_size, want));
}

/* Elements of variable length up to the end of the input: each a count and its bytes. */
static int write_variable(struct cli *cli, const brc_sel *sel)
{
    size_t len = 0, cap = 1 << 20, got;
    char *data = NULL;
    int rc;

    do {
        cap *= 2;
        data = cli_regrow(data, cap, 1);
        rc = read_input(cli, data + len, cap - len, &got);
        len += got;
    } while (rc >= 0 && len == cap);
    if (rc >= 0)
        rc = brc_array_write(cli->array, sel, data, len, &cli->err);
    free(data);
    return rc;
}

int cli_stream_input(struct cli *cli, const brc_sel *sel)
{
    const brc_array_info *info = brc_array_describe(cli->array);
    uint64_t count = brc_sel_count(sel), want;
    struct cli_parts parts;
    int rc;

    CLI_TRY(cli_check_raw(cli, "--from -"));
    CLI_TRY(brc_check_file(cli->file, "/dev/stdin", &cli->err));
    if (info->item_size == 0)
        return write_variable(cli, sel);
    if (__builtin_mul_overflow(count, (uint64_t)info->item_size, &want) || want > INT64_MAX)
        return cli_fail(cli, BRC_ELIMIT, "--from -: the selection is larger than 8 EiB");
    CLI_TRY(check_input_length(cli, want));
    if (want == 0)
        return expect_input_end(cli, 0);
    cli_parts_begin(&parts, sel, info, WRITE_BUDGET);
    cli_progress_total(cli, sel);
    rc = write_all_parts(cli, &parts, info->item_size, want);
    brc_progress_end(cli->repo, rc);
    return rc;
}
