/*
 * breccia_json.h - JSON as breccia reads and writes it, for programs and for plug-ins.
 *
 * Reading is strict: RFC 8259 in UTF-8, no member twice, limits on depth and size. Numbers keep
 * the text that they were written with, so none is rounded. Attributes alone may have the numbers
 * NaN, Infinity and -Infinity, for which JSON has no text: brc_json_parse_nan() reads them. Names of
 * members are C strings: U+0000 in one is the two bytes C0 80, which no UTF-8 has. A value belongs to the root that
 * brc_json_parse() made or that a call handed out, and is never changed: any thread may read it.
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
BRC_API int brc_json_kind(const brc_json *value);
/* The member of an object, or NULL. */
BRC_API const brc_json *brc_json_member(const brc_json *object, const char *name);
/* How many items an array or members an object has; else 0. */
BRC_API size_t brc_json_count(const brc_json *value);
/* The i-th item of an array, or value of an object. */
BRC_API const brc_json *brc_json_item(const brc_json *value, size_t i);
/* The name of an object's i-th member. */
BRC_API const char *brc_json_name(const brc_json *object, size_t i);
/* 1, and a string's text, which lives as long as the value. 0 if the value is not a
 * string, or a string with U+0000, which no C string can hold: *text is "" then, never
 * NULL. */
BRC_API BRC_MUST_USE int brc_json_text(const brc_json *value, const char **text);
/* 1 if the value is this string. */
BRC_API int brc_json_is(const brc_json *value, const char *text);
/* The index of the one of n texts that the value is; -1: none. */
BRC_API int brc_json_choice(const brc_json *value, const char *const *texts, size_t n);
/* A number's literal as it was written; "" if the value is not a number. */
BRC_API const char *brc_json_literal(const brc_json *value);
/* 1 if the value is an integer literal between the bounds, else 0. */
BRC_API int brc_json_int(const brc_json *value, int64_t min, int64_t max, int64_t *out);
BRC_API int brc_json_uint(const brc_json *value, uint64_t max, uint64_t *out);
/* 1 and the nearest double, which may be NaN or an infinity if the value is written so. 0 if the value
 * is not a number, or a number in digits that is too large for a double. */
BRC_API int brc_json_double(const brc_json *value, double *out);
/* 1 if the value is the number NaN, Infinity or -Infinity. */
BRC_API int brc_json_is_nan(const brc_json *value);
BRC_API int brc_json_bool(const brc_json *value, int *out);
/* Fails with BRC_EINVAL and the member's name if the object has a member that is not
 * in the list of n names. */
BRC_API BRC_MUST_USE int brc_json_allow(const brc_json *object, const char *const *names, size_t n, brc_error *err);

/* ---- texts ------------------------------------------------------------------- */

/* Reads all of text. BRC_EINVAL says what is wrong and at which byte, counting from 0; BRC_ELIMIT:
 * it is nested too deeply, or too long. Release with brc_json_free(). */
BRC_API BRC_MUST_USE int brc_json_parse(brc_json **out, const char *text, size_t len, brc_error *err);
/* The same for attributes, or a document with attributes, as this library hands them out: NaN, Infinity
 * and -Infinity are numbers. */
BRC_API BRC_MUST_USE int brc_json_parse_nan(brc_json **out, const char *text, size_t len, brc_error *err);
BRC_API void brc_json_free(brc_json *root);
/* An array's items or an object's members in order, in one pass: NULL after the last one, and for
 * anything else. */
BRC_API const brc_json *brc_json_first(const brc_json *value);
BRC_API const brc_json *brc_json_next(const brc_json *item);
/* The name that a member has in its object. */
BRC_API const char *brc_json_own_name(const brc_json *member);
/* Appends the value as JSON text without white space, or indented by two spaces. Numbers that are NaN
 * or infinite are written as brc_json_parse_nan() reads them. */
BRC_API BRC_MUST_USE int brc_json_write(brc_buf *out, const brc_json *value, brc_error *err);
BRC_API BRC_MUST_USE int brc_json_write_pretty(brc_buf *out, const brc_json *value, brc_error *err);
/* Appends text, valid UTF-8, or the name of a member as a JSON string with its quotes. */
BRC_API BRC_MUST_USE int brc_json_quote(brc_buf *out, const char *text, size_t len, brc_error *err);

#ifdef __cplusplus
}
#endif
#endif /* BRECCIA_JSON_H */
