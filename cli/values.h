/*
 * values.h - values in arguments: numbers, shapes, times, paths, JSON.
 *
 * Every cli_*_option() is strict and its error is a usage error that names the
 * option.
 */
#ifndef BRC_CLI_VALUES_H
#define BRC_CLI_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "../src/breccia.h"
#include "../src/breccia_json.h"

/* ---- times as text and back ----------------------------- */

enum { CLI_TIME_CAP = 48 };

/* 2026-11-20T12:00:00.000000Z */
const char *cli_format_time(char out[CLI_TIME_CAP], int64_t time_us);

/* ---- values -------------------------------- */

struct cli;

/* Reads decimal digits and nothing else. Returns 0 if `text` is not such a number or does not fit. */
int cli_read_u64(uint64_t *out, const char *text);
int cli_read_i64(int64_t *out, const char *text);
/* Reads an option that is a whole number from `low` to `high`. *out stays as it
 * is if the option was not given. */
int cli_uint_option(struct cli *cli, const char *name, uint64_t low, uint64_t high, uint64_t *out);
/* Reads "10000,28,28"; "" has no dimensions. */
int cli_dims_option(struct cli *cli, const char *name, uint64_t dims[BRC_MAX_NDIM], int *ndim);
/* Reads one of the words of `choices`, which are separated by '|'. */
int cli_choice_option(struct cli *cli, const char *name, const char *choices, const char **out);
/* Reads ISO 8601 or @SECONDS, as microseconds since 1970. */
int cli_time_option(struct cli *cli, const char *name, int64_t *out);
/* A parser: brc_json_parse(), or brc_json_parse_nan() for attributes. */
typedef int (*cli_json_reader)(brc_json **out, const char *text, size_t len, brc_error *err);
/* Reads a JSON text, or the file of @FILE. Messages call the argument `what`. */
int cli_json_text_argument(struct cli *cli, const char *what, const char *text,
                           cli_json_reader read, const char **out);
/* Splits KEY=JSON. `what` comes before the key in messages: "attribute ". */
int cli_key_json(struct cli *cli, const char *what, const char *text, cli_json_reader read,
                 const char **key, const char **json);

/* Returns "/a/b" for "a/b/". */
const char *cli_path(struct cli *cli, const char *operand);

#endif
