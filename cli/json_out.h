/*
 * json_out.h - writes one JSON document to standard output.
 *
 * Indented on a terminal, else on one line.  Numbers are written exactly, and strings
 * are always valid UTF-8.
 */
#ifndef BRECCIA_CLI_JSON_OUT_H
#define BRECCIA_CLI_JSON_OUT_H

#include "../src/breccia.h"

#include <stddef.h>
#include <stdint.h>

struct cli;

enum { CLI_JSON_DEPTH = 1100 }; /* more than any parser accepts */

struct cli_json {
    int pretty;
    int depth;
    int after_key;
    unsigned char filled[CLI_JSON_DEPTH]; /* a member was written at this depth */
    unsigned char on_line[CLI_JSON_DEPTH]; /* this container stays on one line  */
};

/* `bracket` is '{' or '['. */
void cli_json_open(struct cli *cli, char bracket);
/* The same, kept on one line: shapes, rows of numbers. */
void cli_json_open_line(struct cli *cli, char bracket);
void cli_json_close(struct cli *cli, char bracket);
void cli_json_key(struct cli *cli, const char *key);
void cli_json_string(struct cli *cli, const char *text);
/* An id, or null. */
void cli_json_id(struct cli *cli, const brc_oid *id);
/* Shortest decimal that reads back as the same number; "NaN", "Infinity" ... */
void cli_json_double(struct cli *cli, double value);
/* A complete JSON text: its spacing becomes ours, its tokens stay as they are. */
void cli_json_raw(struct cli *cli, const char *json, size_t len);
/* The same, spacing and all: for the many values of an array. */
void cli_json_token(struct cli *cli, const char *json, size_t len);
/* A complete JSON text as the whole answer, with or without --json. */
void cli_json_document(struct cli *cli, const char *json, size_t len);
/* A data type as zarr.json has it: a name gets quotes, an object stays as it is. */
void cli_json_dtype(struct cli *cli, const char *dtype);
/* A key and its value. */
void cli_json_member(struct cli *cli, const char *key, const char *text);
void cli_json_member_uint(struct cli *cli, const char *key, uint64_t value);
void cli_json_member_int(struct cli *cli, const char *key, int64_t value);
void cli_json_member_bool(struct cli *cli, const char *key, int value);
void cli_json_member_dims(struct cli *cli, const char *key, const uint64_t *dims, int ndim);
/* With --json, an object of texts: key, text, key, text ..., NULL. */
void cli_json_answer(struct cli *cli, ...) __attribute__((sentinel));

/* `text` as a JSON string; lasts as long as `cli`. */
const char *cli_json_quoted(struct cli *cli, const char *text);

#endif
