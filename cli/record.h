/*
 * record.h - one table for both outputs.
 *
 * A record describes one thing, such as a commit or a branch. It is a table of fields: each has a value, the
 * name of its JSON member, and the text before and after the value. The functions below print a record as
 * a JSON object with --json, and as a line of text otherwise:
 *
 *     CLI_FIELDS({ "operation", CLI_OF(op->operation), .lead = "" },
 *                { "op", CLI_OF(op->what), .lead = "  ", .width = 8 })
 */
#ifndef BRC_CLI_RECORD_H
#define BRC_CLI_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "../src/breccia.h"
#include "output.h"

struct cli;
struct cli_block;

/* ---- values ------------------------------ */

/* A shape. Text: (2,3). */
struct cli_dims {
    const uint64_t *dims;
    int ndim;
};

/* A list of texts. Text: "a, b". */
struct cli_texts {
    const char *const *texts;
    size_t n;
};

/* The texts, escaped, with `between` between them; lasts as long as `cli`. */
const char *cli_joined(struct cli *cli, const struct cli_texts *list, const char *between);

/* A list of ids. Text: the short ids with spaces between them. */
struct cli_ids {
    const brc_oid *ids;
    size_t n;
};

/* The type of a value; CLI_OF() derives it from the C type. */
enum cli_type {
    CLI_END,
    CLI_TEXT,  /* const char *; NULL: empty                                    */
    CLI_UINT,  /* uint64_t                                                     */
    CLI_INT,   /* int64_t                                                      */
    CLI_REAL,  /* double; has no text                                          */
    CLI_FLAG,  /* int: true or false; has no text but the field's `lead`        */
    CLI_ID,    /* brc_oid; zero: null, empty                                   */
    CLI_DIMS,  /* struct cli_dims                                              */
    CLI_TEXTS, /* struct cli_texts                                             */
    CLI_IDS    /* struct cli_ids                                               */
};

/* How a value is printed, where the type alone does not say. */
enum cli_form {
    CLI_AS_IT_IS,
    CLI_AS_TIME,    /* int64_t: microseconds since 1970                        */
    CLI_AS_JSON,    /* const char *: JSON has an object or a list as it is, other text as a string */
    CLI_AS_SUBJECT, /* const char *: text is the first line                    */
    CLI_AS_SIZE,    /* uint64_t: text is "3.4 MiB"                             */
    CLI_AS_BYTES,   /* uint64_t: text is "3565158 bytes (3.4 MiB)"             */
    CLI_AS_LINES    /* struct cli_texts: one a line in JSON on a terminal; text repeats `lead` */
};

/* ---- tables ------------------------------ */

enum { CLI_FIT = 10000 }; /* more than any width */

/* The ways to change a value of a line that is wider than the terminal. Elsewhere nothing is ever left out. */
enum cli_narrow {
    CLI_WHOLE,     /* the value stays                                          */
    CLI_CUT_END,   /* "..." stands for its end                                 */
    CLI_CUT_START, /* "..." stands for its beginning: of paths                 */
    CLI_WRAPPED,   /* the last value of a line goes on below                   */
    CLI_LEFT_OUT   /* of a list: the column goes, before any value is cut      */
};

/* A member that an initializer does not name is 0 or NULL. */
struct cli_field {
    const char *json;   /* the name of the JSON member; NULL: only in text     */
    enum cli_type type; /* CLI_OF() fills in these two                         */
    const void *value;
    enum cli_form form;
    int optional;       /* an empty value (NULL, zero, false) is left out      */
    const char *lead;   /* the text before the value; NULL: only in JSON       */
    const char *tail;   /* the text after it                                   */
    const char *none;   /* the text of an empty value, which is left out where this is NULL,
                           unless it is a number; of a flag, the text in place of `lead` */
    const char *noun;   /* a number is text as "1 chunk", "3 chunks"           */
    int width;          /* columns of the value, negative: it is on the right; CLI_FIT: as wide
                           as the widest value of a list, at most `most`        */
    size_t most;
    enum cli_color color;
    enum cli_narrow narrow; /* of several values that can be cut, the last is cut first */
};

/* The value lasts as long as the block around it. */
#define CLI_OF(x)                                                                                  \
    .type = _Generic((x), const char *: CLI_TEXT, uint64_t: CLI_UINT, int64_t: CLI_INT,            \
                     double: CLI_REAL, int: CLI_FLAG, brc_oid: CLI_ID, struct cli_dims: CLI_DIMS,  \
                     struct cli_texts: CLI_TEXTS, struct cli_ids: CLI_IDS),                        \
    .value = (__typeof__(x)[1]){ x }
/* The same for literals. */
#define CLI_WORD(text) .type = CLI_TEXT, .value = (const char *[1]){ text }
#define CLI_DIMS_OF(dims, ndim) CLI_OF(((struct cli_dims){ dims, ndim }))
#define CLI_FIELDS(...) ((const struct cli_field[]){ __VA_ARGS__, { .type = CLI_END } })

/* ---- printing ---------------------------- */

/* With --json, cli_begin() opens an object '{' or a list '[', as the member `key` of the open object unless
 * `key` is NULL, and cli_finish() closes the object or list. */
void cli_begin(struct cli *cli, const char *key, char bracket);
void cli_finish(struct cli *cli, char bracket);

/* Prints the record as a JSON object, or as a line if the record has text. */
void cli_put_record(struct cli *cli, const struct cli_field *fields);
/* Prints the record as members of the open object, or as a line. */
void cli_put_members(struct cli *cli, const struct cli_field *fields);
/* Prints the record as members of the open object, or as a line for each field: `prefix`, the field's lead in
 * `color`, padded to `width`, and the value. */
void cli_put_lines(struct cli *cli, const struct cli_field *fields, const char *prefix, int width,
                   enum cli_color color);
/* Prints the record as a JSON object, or a sentence about what was done, which --quiet leaves out. */
void cli_answer(struct cli *cli, const struct cli_field *fields, const char *format, ...)
    BRC_PRINTF(3, 4);

/* ---- lists ------------------------------- */

enum { /* flags of a list */
    CLI_ON_LINE = 1, /* each object of a list of JSON stays on one line */
    CLI_SAID = 2     /* --quiet leaves out the lines                    */
};

/* A list with a column of width CLI_FIT is printed at the end; any other list is printed record by record. All
 * records of a list have the same fields. */
struct cli_list {
    int flags;
    size_t n; /* records so far */
    struct cli_field *columns;
    size_t ncolumns;
    struct cli_row *first, **last;
    struct cli_block *before; /* the memory that is older than the list */
};

void cli_list_begin(struct cli *cli, struct cli_list *list, const char *key, int flags);
/* Fails if the output cannot be written any more. A record that is printed at once is forgotten: the memory that
 * cli_alloc() and cli_text() returned since the list began is released. */
int cli_list_put(struct cli *cli, struct cli_list *list, const struct cli_field *fields);
/* Ends the list. Returns `rc`, the result of the loop that made the records; if that is an error, the list stays
 * open. */
int cli_list_end(struct cli *cli, struct cli_list *list, int rc);

#endif
