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
/* Returns "0.5" for ".5", "-5.0" for "-5.", "5" for "+5", and other texts as they are: JSON has fewer forms of numbers than
 * people write. */
const char *cli_plain_number(struct cli *cli, const char *text);
/* Reads an option that is a whole number from `low` to `high`. *out stays as it
 * is if the option was not given. */
int cli_uint_option(struct cli *cli, const char *name, uint64_t low, uint64_t high, uint64_t *out);
/* Reads an option that is a number from 0 on. *out stays as it is if the option was not given. */
int cli_double_option(struct cli *cli, const char *name, double *out);
/* Reads "10000,28,28", also as "(10000, 28, 28)" or "10000x28x28"; "" has no dimensions. */
int cli_dims_option(struct cli *cli, const char *name, uint64_t dims[BRC_MAX_NDIM], int *ndim);
/* Reads one of the words of `choices`, which are separated by '|'. */
int cli_choice_option(struct cli *cli, const char *name, const char *choices, const char **out);
/* Reads a time as brc_time_parse() does. */
int cli_time_option(struct cli *cli, const char *name, int64_t *out);
/* Reads --date, which is not 0. */
int cli_date_option(struct cli *cli, int64_t *out);
/* Reads a whole file as text of at most `limit` bytes, which lasts as long as `cli`. */
int cli_file_text(struct cli *cli, const char *name, size_t limit, char **out);
/* Reads a JSON text, or the file of @FILE. Messages call the argument `what`. `flags`: BRC_JSON_NAN for
 * attributes. */
int cli_json_text_argument(struct cli *cli, const char *what, const char *text, uint32_t flags,
                           const char **out);
/* Splits KEY=JSON. `what` comes before the key in messages: "attribute ". */
int cli_key_json(struct cli *cli, const char *what, const char *text, uint32_t flags,
                 const char **key, const char **json);

/* Returns "/a/b" for "a/b/". */
const char *cli_path(struct cli *cli, const char *operand);

/* Returns the text without the quotes around it, if it has such. */
const char *cli_unquoted(struct cli *cli, const char *text);

#endif
