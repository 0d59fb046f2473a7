/*
 * The strict pass over JSON text, its limits, and how values that cJSON cannot hold are
 * marked. Only json.c uses the pass and the marks.
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

#include "buf.h"

#define BRC_JSON_MAX_BYTES ((size_t)64 << 20)
#define BRC_JSON_MAX_DEPTH 64
#define BRC_JSON_MAX_VALUES 1000000

#define BRC_JSON_MARK '\1'
enum { BRC_JSON_MARK_NUMBER = 'n', BRC_JSON_MARK_TEXT = 't', BRC_JSON_MARK_RAW = 'r' };

/* Checks `text` and appends the JSON that cJSON is to read. `lenient`: see
 * brc_json_parse_lenient(). */
BRC_MUST_USE int brc_json_lex(brc_buf *out, const char *text, size_t len, int lenient,
                              brc_error *err);

#endif
