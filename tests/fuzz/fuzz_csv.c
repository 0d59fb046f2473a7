/*
 * CSV, as the command reads it. What was read is written with every field in quotes, and must read
 * back as the same records, on lines that do not go back.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "../../cli/cli.h"
#include "../../cli/csv.h"
#include "../../src/base/buf.h"

static void keep_byte(brc_buf *out, char c)
{
    FUZZ_TRUE(brc_buf_append(out, &c, 1, NULL) == BRC_OK, NULL);
}

static void keep_record(brc_buf *out, const struct cli_csv *csv)
{
    for (size_t i = 0; i < csv->n; i++) {
        keep_byte(out, i > 0 ? ',' : '"');
        if (i > 0)
            keep_byte(out, '"');
        for (const char *c = csv->fields[i]; *c != '\0'; c++) {
            if (*c == '"')
                keep_byte(out, '"');
            keep_byte(out, *c);
        }
        keep_byte(out, '"');
    }
    keep_byte(out, '\n');
}

/* Appends all records of a file. Returns the result of the last step. */
static int read_records(struct cli *cli, const char *file, brc_buf *out)
{
    struct cli_csv csv;
    uint64_t line = 0;
    int rc = cli_csv_open(&csv, cli, file);
    while (rc >= 0 && (rc = cli_csv_next(&csv)) > 0) {
        FUZZ_TRUE(csv.line > line && csv.n > 0, NULL);
        line = csv.line;
        keep_record(out, &csv);
    }
    cli_csv_close(&csv);
    return rc;
}

void fuzz_csv(const uint8_t *data, size_t len)
{
    struct cli cli = { .file = "none.brc", .err = BRC_ERROR_INIT };
    brc_buf first = BRC_BUF_INIT, second = BRC_BUF_INIT;
    int rc = read_records(&cli, fuzz_file("in.csv", data, len), &first);
    FUZZ_TRUE(rc == 0 || rc == BRC_EINVAL || rc == BRC_ELIMIT, &cli.err);
    FUZZ_TRUE(read_records(&cli, fuzz_file("again.csv", first.data, first.len), &second) == 0,
              &cli.err);
    FUZZ_TRUE(second.len == first.len &&
                  (first.len == 0 || memcmp(first.data, second.data, first.len) == 0),
              NULL);
    brc_buf_dispose(&first);
    brc_buf_dispose(&second);
    cli_memory_release(&cli, NULL);
}
