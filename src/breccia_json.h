/*
 * breccia_json.h - JSON as breccia reads and writes it, for programs and plug-ins.
 *
 * Reading is strict: RFC 8259 in UTF-8, without repeated members, and with limits on depth and
 * size. A number keeps the text that it was written with, so that nothing is rounded. Only
 * attributes may contain the numbers NaN, Infinity and -Infinity, for which JSON has no text:
 * BRC_JSON_NAN reads them. Names of members are C strings, in which the two bytes C0 80,
 * which never occur in UTF-8, stand for U+0000. A value belongs to the root that brc_json_parse()
 * or another call returned. It never changes, so any thread may read it.
 */
#ifndef BRECCIA_JSON_H
#define BRECCIA_JSON_H

#include "breccia.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct brc_json brc_json;
enum {
    BRC_JSON_ABSENT = 0, BRC_JSON_NULL, BRC_JSON_BOOL, BRC_JSON_NUMBER,
    BRC_JSON_STRING, BRC_JSON_ARRAY, BRC_JSON_OBJECT
};
/* Returns BRC_JSON_*; BRC_JSON_ABSENT if `value` is NULL. */
BRC_API int brc_json_kind(const brc_json *value);
/* Returns the member of an object, or NULL. */
BRC_API const brc_json *brc_json_member(const brc_json *object, const char *name);
/* Returns how many items an array, or members an object, has; 0 for other values. */
BRC_API size_t brc_json_count(const brc_json *value);
/* Returns the i-th item of an array, or the value of an object's i-th member. */
BRC_API const brc_json *brc_json_item(const brc_json *value, size_t i);
/* Returns a member's name in its object; NULL for a value that is not a member. */
BRC_API const char *brc_json_name(const brc_json *member);
/* Returns 1 and sets *text to a string's text, which lives as long as the value. Returns 0 if the
 * value is not a string, or is a string with U+0000, which a C string cannot hold; *text is then
 * "", never NULL. */
BRC_API BRC_MUST_USE int brc_json_text(const brc_json *value, const char **text);
/* Returns 1 if the value is this string, else 0. */
BRC_API int brc_json_is(const brc_json *value, const char *text);
/* Returns the index of the text that equals the string `value` among n texts, or -1. */
BRC_API int brc_json_choice(const brc_json *value, const char *const *texts, size_t n);
/* Returns a number's literal as it was written, or "" if the value is not a number. */
BRC_API const char *brc_json_literal(const brc_json *value);
/* Returns 1 and sets *out if the value is an integer literal within the bounds, else 0. */
BRC_API int brc_json_int(const brc_json *value, int64_t min, int64_t max, int64_t *out);
BRC_API int brc_json_uint(const brc_json *value, uint64_t max, uint64_t *out);
/* Returns 1 and sets *out to the nearest double, which is NaN or an infinity if the value is
 * written so. Returns 0 if the value is not a number, or is a literal too large for a double. */
BRC_API int brc_json_double(const brc_json *value, double *out);
/* Returns 1 and sets *out to 0 or 1 if the value is a boolean, else 0. */
BRC_API int brc_json_bool(const brc_json *value, int *out);
/* Fails with BRC_EINVAL, and names the member, if the object has a member that is not among the n
 * names. */
BRC_API BRC_MUST_USE int brc_json_allow(const brc_json *object, const char *const *names, size_t n, brc_error *err);

/* ---- texts ------------------------------------------------------------------- */

/* Parses the whole text. With BRC_JSON_NAN, for attributes or documents with attributes as this library
 * returns them, NaN, Infinity and -Infinity are numbers. Release the result with brc_json_free().
 * BRC_EINVAL says what is wrong and at which byte, counted from 0. BRC_ELIMIT means that the text is
 * nested too deeply or too long. */
enum { BRC_JSON_NAN = 1 };
BRC_API BRC_MUST_USE int brc_json_parse(brc_json **out, const char *text, size_t len, uint32_t flags, brc_error *err);
BRC_API void brc_json_free(brc_json *root);
/* Return an array's items or an object's members in order, in one pass; NULL after the last one,
 * and for other values. */
BRC_API const brc_json *brc_json_first(const brc_json *value);
BRC_API const brc_json *brc_json_next(const brc_json *item);
/* Appends the value as JSON text, without white space, or with BRC_JSON_PRETTY indented by two spaces.
 * NaN and infinities are written as BRC_JSON_NAN reads them. */
enum { BRC_JSON_PRETTY = 1 };
BRC_API BRC_MUST_USE int brc_json_write(brc_buf *out, const brc_json *value, uint32_t flags, brc_error *err);
/* Appends valid UTF-8 text, or a member's name, as a JSON string with its quotes. */
BRC_API BRC_MUST_USE int brc_json_quote(brc_buf *out, const char *text, size_t len, brc_error *err);

#ifdef __cplusplus
}
#endif
#endif /* BRECCIA_JSON_H */
