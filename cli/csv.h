/*
 * csv.h - reads CSV, as RFC 4180 describes it, record by record in bounded memory.
 *
 * Lines end with LF, CR LF or CR, and the last may lack its end. A byte order mark at the beginning and lines without a
 * character are passed over. Blanks belong to their field. A quote within a field that does not begin with one is an
 * ordinary character, as in pandas.
 */
#ifndef BRC_CLI_CSV_H
#define BRC_CLI_CSV_H

#include <stddef.h>
#include <stdint.h>

struct cli;

struct cli_csv {
    struct cli *cli;
    const char *name;  /* for messages                                        */
    int fd;
    uint64_t line;     /* where the record begins, from 1                     */
    size_t n;          /* fields of the record                                */
    const char **fields; /* texts, which last until the next record; NULL before the first */
    char *text;        /* all fields, each with a NUL behind it               */
    size_t *starts;
    size_t text_cap, starts_cap;
    uint64_t next_line;
    char *buffer;
    size_t at, filled;
};

/* Opens a file; "-" is standard input. The caller closes it in any case. */
int cli_csv_open(struct cli_csv *csv, struct cli *cli, const char *name);
/* Reads a record. Returns 1, or 0 at the end. */
int cli_csv_next(struct cli_csv *csv);
/* Goes back to the beginning of a file. */
int cli_csv_rewind(struct cli_csv *csv);
void cli_csv_close(struct cli_csv *csv);
/* Fails with an error that names the file, the record's line and, unless `field` is SIZE_MAX, the field's number, in front
 * of `why`. */
int cli_csv_fail(const struct cli_csv *csv, int code, size_t field, const char *why);

#endif
