/*
 * csv.c - reads CSV.
 */
#include "csv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

enum { READ_AT_ONCE = 64 << 10, RECORD_MOST = 64 << 20, FIELDS_MOST = 1 << 20 };

int cli_csv_fail(const struct cli_csv *csv, int code, size_t field, const char *why)
{
    const char *place = field == SIZE_MAX ? ""
                                          : cli_text(csv->cli, ", column %llu",
                                                     (unsigned long long)field + 1);

    return cli_fail(csv->cli, code, "%s, line %llu%s: %s", csv->name,
                    (unsigned long long)csv->line, place, why);
}

/* ---- bytes -------------------------------- */

/* Sets *c to the next byte, or to -1 at the end. */
static int csv_peek(struct cli_csv *csv, int *c)
{
    while (csv->at == csv->filled) {
        ssize_t n = read(csv->fd, csv->buffer, READ_AT_ONCE);

        if (n < 0 && errno == EINTR && !cli_signal())
            continue;
        if (n < 0)
            return cli_fail_errno(csv->cli, errno, csv->name);
        if (cli_signal())
            return cli_fail(csv->cli, BRC_EINTERRUPT, "interrupted");
        *c = -1;
        csv->at = 0;
        csv->filled = (size_t)n;
        cli_progress_read(csv->cli, (size_t)n);
        if (n == 0)
            return BRC_OK;
    }
    *c = (unsigned char)csv->buffer[csv->at];
    return BRC_OK;
}

/* Passes over the end of a line that begins with `c`. */
static int pass_line_end(struct cli_csv *csv, int c)
{
    csv->at++;
    csv->next_line++;
    if (c == '\r') {
        CLI_TRY(csv_peek(csv, &c));
        csv->at += c == '\n';
    }
    return BRC_OK;
}

/* ---- fields -------------------------------- */

/* The record so far. */
struct record_text {
    size_t len; /* of csv->text                                               */
    size_t n;   /* fields that have begun                                     */
};

static int add_byte(struct cli_csv *csv, struct record_text *so_far, int c)
{
    if (so_far->len >= RECORD_MOST)
        return cli_csv_fail(csv, BRC_ELIMIT, SIZE_MAX, "the record is longer than 64 MiB");
    csv->text = cli_grow(csv->text, so_far->len, &csv->text_cap, 1);
    csv->text[so_far->len++] = (char)c;
    return BRC_OK;
}

static int begin_field(struct cli_csv *csv, struct record_text *so_far)
{
    if (so_far->n >= FIELDS_MOST)
        return cli_csv_fail(csv, BRC_ELIMIT, SIZE_MAX, "the record has more than 1048576 fields");
    csv->starts = cli_grow(csv->starts, so_far->n, &csv->starts_cap, sizeof(*csv->starts));
    csv->starts[so_far->n++] = so_far->len;
    return BRC_OK;
}

/* Reads the rest of a field behind its opening quote, with the closing one. */
static int read_quoted(struct cli_csv *csv, struct record_text *so_far)
{
    int c;

    for (;;) {
        CLI_TRY(csv_peek(csv, &c));
        if (c < 0)
            return cli_csv_fail(csv, BRC_EINVAL, so_far->n - 1, "the closing quote is missing");
        if (c == '\0')
            return cli_csv_fail(csv, BRC_EINVAL, so_far->n - 1, "there is a NUL byte");
        csv->at++;
        csv->next_line += c == '\n';
        if (c == '\r') { /* alone, the end of a line too */
            int next;

            CLI_TRY(csv_peek(csv, &next));
            csv->next_line += next != '\n';
        }
        if (c == '"') {
            CLI_TRY(csv_peek(csv, &c));
            if (c != '"')
                return BRC_OK;
            csv->at++;
        }
        CLI_TRY(add_byte(csv, so_far, c));
    }
}

/* Reads a field up to the comma or the end of the line, which is `*c` then. */
static int read_csv_field(struct cli_csv *csv, struct record_text *so_far, int *c)
{
    int quoted;

    CLI_TRY(begin_field(csv, so_far));
    CLI_TRY(csv_peek(csv, c));
    quoted = *c == '"';
    if (quoted) {
        csv->at++;
        CLI_TRY(read_quoted(csv, so_far));
        CLI_TRY(csv_peek(csv, c));
    }
    while (*c >= 0 && *c != ',' && *c != '\n' && *c != '\r') {
        if (quoted || *c == '\0')
            return cli_csv_fail(csv, BRC_EINVAL, so_far->n - 1,
                                quoted ? "there is text behind the closing quote"
                                       : "there is a NUL byte");
        CLI_TRY(add_byte(csv, so_far, *c));
        csv->at++;
        CLI_TRY(csv_peek(csv, c));
    }
    return add_byte(csv, so_far, '\0');
}

/* ---- records -------------------------------- */

/* Passes over lines without a character. */
static int pass_empty_lines(struct cli_csv *csv, int *c)
{
    CLI_TRY(csv_peek(csv, c));
    while (*c == '\n' || *c == '\r') {
        CLI_TRY(pass_line_end(csv, *c));
        CLI_TRY(csv_peek(csv, c));
    }
    return BRC_OK;
}

/* Passes over a byte order mark. The first read of a file brings all its bytes. */
static int pass_mark(struct cli_csv *csv)
{
    int c;

    CLI_TRY(csv_peek(csv, &c));
    if (csv->filled >= 3 && memcmp(csv->buffer, "\xef\xbb\xbf", 3) == 0)
        csv->at = 3;
    return BRC_OK;
}

int cli_csv_next(struct cli_csv *csv)
{
    struct record_text so_far = { 0, 0 };
    int c;

    if (csv->next_line == 1 && csv->at == 0 && !csv->fields)
        CLI_TRY(pass_mark(csv));
    CLI_TRY(pass_empty_lines(csv, &c));
    csv->line = csv->next_line;
    if (c < 0)
        return 0;
    for (;;) {
        CLI_TRY(read_csv_field(csv, &so_far, &c));
        if (c != ',')
            break;
        csv->at++;
    }
    if (c >= 0)
        CLI_TRY(pass_line_end(csv, c));
    if (so_far.n > csv->n || !csv->fields)
        csv->fields = cli_regrow(csv->fields, so_far.n, sizeof(*csv->fields));
    csv->n = so_far.n;
    for (size_t i = 0; i < csv->n; i++)
        csv->fields[i] = csv->text + csv->starts[i];
    return 1;
}

int cli_csv_open(struct cli_csv *csv, struct cli *cli, const char *name)
{
    const int is_input = strcmp(name, "-") == 0;

    *csv = (struct cli_csv){ .cli = cli, .name = is_input ? "standard input" : name, .fd = -1,
                             .next_line = 1 };
    CLI_TRY(brc_check_file(cli->file, is_input ? "/dev/stdin" : name, &cli->err));
    csv->fd = is_input ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    if (csv->fd < 0)
        return cli_fail_errno(cli, errno, name);
    csv->buffer = cli_regrow(NULL, READ_AT_ONCE, 1);
    return BRC_OK;
}

int cli_csv_rewind(struct cli_csv *csv)
{
    if (lseek(csv->fd, 0, SEEK_SET) < 0)
        return cli_fail(csv->cli, BRC_EINVAL,
                        "%s is read twice, and so must be a file: save it first", csv->name);
    csv->at = csv->filled = csv->n = 0;
    csv->next_line = 1;
    free(csv->fields);
    csv->fields = NULL;
    return BRC_OK;
}

void cli_csv_close(struct cli_csv *csv)
{
    if (csv->fd > STDIN_FILENO)
        close(csv->fd);
    free(csv->fields);
    free(csv->text);
    free(csv->starts);
    free(csv->buffer);
    *csv = (struct cli_csv){ .fd = -1 };
}
