/*
 * The strict pass over JSON text, its limits, and how values that cJSON cannot hold are
 * marked. Only json.c uses the pass and the marks.
 *
 * cJSON holds a string as a C string. Three kinds of strings begin with U+0001:
 *   01 'n' literal      a number: its literal
 *   01 't' text         a string whose text begins with U+0001
 *   01 'r' escaped      a string that contains U+0000: its text, escaped as
 *                       brc_json_quote() does, without the quotes
 * All other strings are their text. Names of members carry no marks: U+0000 in a name is the
 * two bytes C0 80, which no UTF-8 has, so that names are C strings that differ where names do.
 */
#ifndef BRC_BASE_JSON_LEX_H
#define BRC_BASE_JSON_LEX_H

#include "buf.h"

#define BRC_JSON_MAX_BYTES ((size_t)64 << 20)
#define BRC_JSON_MAX_DEPTH 64
/* The levels above a copy of a document in consolidated metadata, which do not count. */
#define BRC_JSON_COPY_DEPTH 3
#define BRC_JSON_MAX_VALUES 1000000

#define BRC_JSON_MARK '\1'
enum { BRC_JSON_MARK_NUMBER = 'n', BRC_JSON_MARK_TEXT = 't', BRC_JSON_MARK_RAW = 'r' };

/* Where NaN, Infinity and -Infinity are numbers: nowhere, within the attributes of a node's
 * document, or everywhere. */
enum { BRC_JSON_NAN_NOWHERE = 0, BRC_JSON_NAN_IN_ATTRIBUTES, BRC_JSON_NAN_ANYWHERE };

/* Checks `text` and appends the JSON that cJSON is to read. */
BRC_MUST_USE int brc_json_lex(brc_buf *out, const char *text, size_t len, int nan, brc_error *err);

#endif
