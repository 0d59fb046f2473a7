/*
 * text.h - numbers, shapes and ids as text.
 */
#ifndef BRECCIA_CLI_TEXT_H
#define BRECCIA_CLI_TEXT_H

#include "../src/breccia.h"

#include <stdint.h>

struct cli;

enum { CLI_SIZE_CAP = 32, CLI_DOUBLE_CAP = 32 };

/* "10000,28,28", as --shape takes it; lasts as long as `cli`, as do the ids. */
const char *cli_dims_text(struct cli *cli, const uint64_t *dims, int ndim);
const char *cli_long_id(struct cli *cli, const brc_oid *id);
/* The first 8 digits. */
const char *cli_short_id(struct cli *cli, const brc_oid *id);
/* "1 chunk", "3 chunks": `what` gets its s. Lasts as long as `cli`. */
const char *cli_count(struct cli *cli, uint64_t n, const char *what);
/* "3.4 MiB" */
const char *cli_format_size(char out[CLI_SIZE_CAP], uint64_t bytes);
/* Shortest decimal that reads back as the same number. */
const char *cli_format_double(char out[CLI_DOUBLE_CAP], double value);

#endif
