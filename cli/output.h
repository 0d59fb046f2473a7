/*
 * output.h - standard output.
 *
 * Output is buffered and every write is checked; the first failure is kept and
 * reported at the end.  Held output (a JSON document) appears only when the command
 * has succeeded: until then, the output waits in memory, and beyond 16 MiB in a
 * temporary file without a name.
 */
#ifndef BRC_CLI_OUTPUT_H
#define BRC_CLI_OUTPUT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "../src/breccia.h"
#include "pager.h"

/* ---- numbers, shapes and ids as text -------------------- */

struct cli;

enum { CLI_SIZE_CAP = 32, CLI_DOUBLE_CAP = 32 };

/* Returns "10000,28,28", as --shape takes it. The text lasts as long as `cli`, as do the ids. */
const char *cli_dims_text(struct cli *cli, const uint64_t *dims, int ndim);
const char *cli_long_id(struct cli *cli, const brc_oid *id);
/* Returns the first 8 digits. */
const char *cli_short_id(struct cli *cli, const brc_oid *id);
/* Returns "1 chunk" or "3 chunks" where `what` is "chunk". The text lasts as long as `cli`. */
const char *cli_count(struct cli *cli, uint64_t n, const char *what);
/* Writes "3.4 MiB". */
const char *cli_format_size(char out[CLI_SIZE_CAP], uint64_t bytes);
/* Writes the shortest decimal that reads back as the same number. */
const char *cli_format_double(char out[CLI_DOUBLE_CAP], double value);

/* ---- text that is safe on a terminal -------------------- */

/* Returns the text with control characters and invalid UTF-8 written as \n, \x1b ..., so that
 * a name from a file cannot control the terminal.  The result lasts as long as `cli`. */
const char *cli_escaped(struct cli *cli, const char *text);
/* Does the same for `len` bytes, which may contain NUL. */
const char *cli_escaped_bytes(struct cli *cli, const char *text, size_t len);
/* Does the same for the first line of a message. */
const char *cli_subject(struct cli *cli, const char *message);
/* Returns 0 only if the text has neither such a character nor invalid UTF-8. */
int cli_has_steering(const char *text, size_t len);
/* Returns the columns that the text takes on a terminal if each character takes one. */
size_t cli_text_width(const char *text);

/* ---- output -------------------------------- */

struct cli_out {
    int fd;
    const char *name; /* for messages                                         */
    int hold;         /* nothing is shown before cli_out_flush()              */
    int color;
    int terminal;
    size_t columns;   /* of the terminal, or of COLUMNS; 0: not a terminal    */
    struct cli_pager pager;
    int answers; /* the work is done: a signal does not cut off the answer */
    int failure; /* errno of the first write that failed                      */
    char *data;
    size_t len, cap;
    FILE *spill;
};

enum cli_color { CLI_PLAIN, CLI_BOLD, CLI_RED, CLI_GREEN, CLI_YELLOW, CLI_CYAN, CLI_DIM };

/* Returns a number of the environment from 1 to 100000, or `otherwise`. */
size_t cli_env_number(const char *name, size_t otherwise);
void cli_out_begin(struct cli_out *out, int fd, const char *name);
/* Writes the rest of the output. The error names `name`. */
int cli_out_flush(struct cli *cli);
void cli_out_dispose(struct cli_out *out);
/* Drops what was not written yet, and begins a new document. */
void cli_out_restart(struct cli *cli);
/* Returns the failure so far, if any. A loop that writes much calls this function. */
int cli_out_check(struct cli *cli);

void cli_put(struct cli *cli, const char *bytes, size_t len);
void cli_puts(struct cli *cli, const char *text);
void cli_printf(struct cli *cli, const char *format, ...) BRC_PRINTF(2, 3);
/* Prints one line about what was done, unless --json or --quiet was given. */
void cli_say(struct cli *cli, const char *format, ...) BRC_PRINTF(2, 3);
void cli_vsay(struct cli *cli, const char *format, va_list args);
void cli_color(struct cli *cli, enum cli_color color);
void cli_color_end(struct cli *cli);

/* Prints the text, padded with spaces to `width` columns. */
void cli_put_padded(struct cli *cli, const char *text, size_t width);

/* ---- a file in place of standard output ----------------- */

/* Runs put(cli, ctx) with cli->out writing to the file `name`. A regular file appears
 * complete or not at all, since the file gets its name at the end. A pipe, a device or a link is
 * written to directly. BRC_EINVAL if `name` is the repository. */
int cli_to_file(struct cli *cli, const char *name,
                int (*put)(struct cli *cli, const void *ctx), const void *ctx);

/* ---- the JSON document ---------------------------------- */

/*
 * The document is indented on a terminal, and on one line elsewhere.  Numbers are
 * written exactly, and strings are always valid UTF-8.
 */

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
/* Does the same, and keeps the container on one line: for shapes and rows of numbers. */
void cli_json_open_line(struct cli *cli, char bracket);
void cli_json_close(struct cli *cli, char bracket);
/* Writes the first member of a document of --json that is an object: the version of its members. */
void cli_json_schema(struct cli *cli);
void cli_json_key(struct cli *cli, const char *key);
void cli_json_string(struct cli *cli, const char *text);
/* Writes an id, or null. */
void cli_json_id(struct cli *cli, const brc_oid *id);
void cli_json_uint(struct cli *cli, uint64_t value);
void cli_json_int(struct cli *cli, int64_t value);
void cli_json_bool(struct cli *cli, int value);
void cli_json_dims(struct cli *cli, const uint64_t *dims, int ndim);
/* Writes the shortest decimal that reads back as the same number, or "NaN", "Infinity" ... */
void cli_json_double(struct cli *cli, double value);
/* Writes a complete JSON text with the spacing of the document; the tokens stay as they are. */
void cli_json_raw(struct cli *cli, const char *json, size_t len);
/* Writes a complete JSON text as it is: for the many values of an array. */
void cli_json_token(struct cli *cli, const char *json, size_t len);
/* Writes a complete JSON text as the whole answer, with or without --json. */
void cli_json_document(struct cli *cli, const char *json, size_t len);
/* Writes a data type as zarr.json has it: a name in quotes, an object as it is. */
void cli_json_dtype(struct cli *cli, const char *dtype);
/* Returns `text` as a JSON string, which lasts as long as `cli`. */
const char *cli_json_quoted(struct cli *cli, const char *text);

#endif
