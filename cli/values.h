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

/* ---- calendar -------------------------------- */

/*
 * values.h - times as text and back.
 */

enum { CLI_TIME_CAP = 48 };

/* 2026-11-20T12:00:00.000000Z */
const char *cli_format_time(char out[CLI_TIME_CAP], int64_t time_us);

/* ---- values -------------------------------- */

struct cli;

/* Reads decimal digits and nothing else. 0 if it is not such a number or does not fit. */
int cli_read_u64(uint64_t *out, const char *text);
int cli_read_i64(int64_t *out, const char *text);
/* An option that is a whole number from `low` to `high`; *out stays as it
 * is if the option was not given. */
int cli_uint_option(struct cli *cli, const char *name, uint64_t low, uint64_t high, uint64_t *out);
/* "10000,28,28"; "" has no dimensions. */
int cli_dims_option(struct cli *cli, const char *name, uint64_t dims[BRC_MAX_NDIM], int *ndim);
/* One of the words of `choices`, separated by '|'. */
int cli_choice_option(struct cli *cli, const char *name, const char *choices, const char **out);
/* ISO 8601 or @SECONDS, in microseconds. */
int cli_time_option(struct cli *cli, const char *name, int64_t *out);
/* brc_json_parse(), or brc_json_parse_nan() where attributes are given. */
typedef int (*cli_json_reader)(brc_json **out, const char *text, size_t len, brc_error *err);
/* A JSON text, or @FILE to read it from. `what` names it in messages. */
int cli_json_text_argument(struct cli *cli, const char *what, const char *text,
                           cli_json_reader read, const char **out);
/* Splits KEY=JSON. `what` comes before the key in messages: "attribute ". */
int cli_key_json(struct cli *cli, const char *what, const char *text, cli_json_reader read,
                 const char **key, const char **json);

/* "a/b/" as "/a/b". */
const char *cli_path(struct cli *cli, const char *operand);

#endif
