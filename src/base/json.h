/*
 * JSON documents over cJSON.
 *
 * cJSON keeps numbers as doubles and accepts text that JSON does not. A strict pass over
 * the text comes first: UTF-8, no duplicate members, NaN only where the caller allows it, limits on
 * depth, size and count of values. The pass hands numbers to cJSON as marked strings, so that their
 * literals survive. Writing removes the marks again.
 *
 * A string with U+0000 is kept and written back, but brc_json_text() does not return
 * it, because it returns C strings. In a member's name U+0000 is BRC_JSON_NUL.
 */
#ifndef BRC_BASE_JSON_H
#define BRC_BASE_JSON_H

#include "buf.h"

/* ---- json escape -------------------------------- */

/* Text escaped for JSON, as little as JSON allows, so that each text has one form. */

/* U+0000 in the name of a member, because names are C strings: two bytes that never occur in UTF-8. */
#define BRC_JSON_NUL "\xC0\x80"

/* Appends text, or a name, in the form that it has inside a JSON string. */
BRC_MUST_USE int brc_json_escape(brc_buf *out, const char *text, size_t len, brc_error *err);
/* Appends "/name" with ~ and / escaped as a JSON pointer's step. */
BRC_MUST_USE int brc_json_pointer_step(brc_buf *out, const char *name, brc_error *err);

/* ---- json lex -------------------------------- */

/*
* The strict pass over JSON text, its limits, and the marks of values that cJSON cannot
 * hold. Only json.c uses the pass and the marks.
 *
 * cJSON holds a string as a C string. Three kinds of strings begin with U+0001:
 *   01 'n' literal      a number: its literal
 *   01 't' text         a string whose text begins with U+0001
 *   01 'r' escaped      a string that contains U+0000: its text, escaped as
 *                       brc_json_quote() does, without the quotes
 * All other strings are their text. Names of members carry no marks: U+0000 in a name is the
 * two bytes C0 80, which never occur in UTF-8, so that different names are different C strings.
 */

#define BRC_JSON_MAX_BYTES ((size_t)64 << 20)
#define BRC_JSON_MAX_DEPTH 64
/* The levels above a copy of a document in consolidated metadata, which do not count. */
#define BRC_JSON_COPY_DEPTH 3
#define BRC_JSON_MAX_VALUES 1000000

#define BRC_JSON_MARK '\1'
enum { BRC_JSON_MARK_NUMBER = 'n', BRC_JSON_MARK_TEXT = 't', BRC_JSON_MARK_RAW = 'r' };

/* The places where NaN, Infinity and -Infinity are numbers: nowhere, within the attributes of a
 * node's document, or everywhere. */
enum { BRC_JSON_NAN_NOWHERE = 0, BRC_JSON_NAN_IN_ATTRIBUTES, BRC_JSON_NAN_ANYWHERE };

/* Checks `text` and appends the JSON for cJSON to read. */
BRC_MUST_USE int brc_json_lex(brc_buf *out, const char *text, size_t len, int nan, brc_error *err);

/* ---- json -------------------------------- */

/* Parses a node's document like brc_json_parse(), except that NaN, Infinity and -Infinity are numbers
 * in its attributes, also in the copies of documents in "consolidated_metadata". */
BRC_MUST_USE int brc_json_parse_document(brc_json **out, const char *text, size_t len, brc_error *err);
/* Returns 1 if the value is the number NaN, Infinity or -Infinity, else 0. */
int brc_json_is_nan(const brc_json *value);
BRC_MUST_USE int brc_json_clone(brc_json **out, const brc_json *value, brc_error *err);
/* Returns 1 if the text can be the name of a member: UTF-8, with U+0000 as BRC_JSON_NUL. */
int brc_json_name_is_valid(const char *name);
/* Returns the escaped text of a string that contains U+0000; "" for all other values. */
const char *brc_json_escaped(const brc_json *value);

/* Building. Each `value` that is passed in is consumed, even on failure (NULL:
 * BRC_ENOMEM), so that calls can be nested without clean-up. */
brc_json *brc_json_new_object(void);
brc_json *brc_json_new_array(void);
brc_json *brc_json_new_string(const char *text); /* valid UTF-8 */
brc_json *brc_json_new_uint(uint64_t value);
brc_json *brc_json_new_null(void);
/* Makes a number with this literal: a JSON number, or NaN, Infinity or -Infinity. */
brc_json *brc_json_new_number(const char *literal);
/* Replaces the member in its place, or adds it at the end. Searches all members. */
BRC_MUST_USE int brc_json_set(brc_json *object, const char *name, brc_json *value, brc_error *err);
/* Adds a member whose name the object does not have; this is not checked. For an object that gets its
 * members from a list that names each once, brc_json_set() would search all members each time. */
BRC_MUST_USE int brc_json_add(brc_json *object, const char *name, brc_json *value, brc_error *err);
BRC_MUST_USE int brc_json_push(brc_json *array, brc_json *value, brc_error *err);
void brc_json_remove(brc_json *object, const char *name);
/* Puts another value in the place of one within a document; its name stays. `value` is consumed. */
BRC_MUST_USE int brc_json_replace(brc_json *place, brc_json *value, brc_error *err);
/* Replaces every NaN, Infinity and -Infinity in the value by the string of that name. */
void brc_json_nan_to_text(brc_json *value);
/* Returns whether two values are equal: members in any order, numbers by their literals. */
int brc_json_equal(const brc_json *a, const brc_json *b);
/* An index of an object's members by name, for many look-ups: brc_json_member() searches all of
 * them each time. Valid while the object does not change. A value that is not an object has
 * no members. */
typedef struct brc_json_index {
    const brc_json **members;
    size_t n;
} brc_json_index;
BRC_MUST_USE int brc_json_index_make(brc_json_index *out, const brc_json *object, brc_error *err);
/* Returns NULL if the object does not have the member. */
const brc_json *brc_json_index_find(const brc_json_index *index, const char *name);
void brc_json_index_dispose(brc_json_index *index);

#endif
