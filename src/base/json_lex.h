/*
 * The strict pass over JSON text, and how values that cJSON cannot hold are
 * marked. Only json*.c use this.
 *
 * cJSON holds a string as a C string. Three kinds of strings begin with U+0001:
 *   01 'n' literal      a number: its literal
 *   01 't' text         a string whose text begins with U+0001
 *   01 'r' escaped      a string that contains U+0000: its text, escaped as
 *                       brc_json_quote() does, without the quotes
 * All other strings are their text. Names of members carry no marks; a name with
 * U+0000 is refused, because names are C strings everywhere.
 */
#ifndef BRC_BASE_JSON_LEX_H
#define BRC_BASE_JSON_LEX_H

#include "json.h"

#define BRC_JSON_MARK '\1'
enum { BRC_JSON_MARK_NUMBER = 'n', BRC_JSON_MARK_TEXT = 't', BRC_JSON_MARK_RAW = 'r' };

/* Checks `text` and appends the JSON that cJSON is to read. `lenient`: see
 * brc_json_parse_lenient(). */
BRC_MUST_USE int brc_json_lex(brc_buf *out, const char *text, size_t len, int lenient,
                              brc_error *err);
/* Appends text escaped as inside a JSON string: only what must be is. */
BRC_MUST_USE int brc_json_escape(brc_buf *out, const char *text, size_t len, brc_error *err);

/* The escaped text of a string that contains U+0000; of all other values "". */
const char *brc_json_escaped(const brc_json *value);

#endif
