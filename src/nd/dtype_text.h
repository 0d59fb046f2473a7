/*
 * Bytes in JSON: base64 (RFC 4648, with padding), an array of integers from 0 to 255,
 * or the bytes of a string.
 */
#ifndef BRC_ND_DTYPE_TEXT_H
#define BRC_ND_DTYPE_TEXT_H

#include "../base/json.h"

/* Appends the bytes of base64 or of an array. BRC_EINVAL, without a message, if the value has neither
 * form, because only the caller knows the type that the value is for. */
BRC_MUST_USE int brc_bytes_read(brc_buf *out, const brc_json *json, brc_error *err);
/* Appends the bytes of base64 alone; fails like brc_bytes_read(). */
BRC_MUST_USE int brc_base64_read(brc_buf *out, const char *text, brc_error *err);
/* Appends base64 without quotes. */
BRC_MUST_USE int brc_base64_write(brc_buf *out, const uint8_t *data, size_t len, brc_error *err);

/* Prints bytes for people: printable ASCII as it is, except "\\" for a backslash, and other bytes as
 * "\x00". A quote or '[' at the beginning is escaped too, because JSON begins with these. */
BRC_MUST_USE int brc_bytes_print(brc_buf *out, const uint8_t *data, size_t len, brc_error *err);
/* Reads the text of brc_bytes_print(). A backslash that does not begin an escape stands for itself, and
 * so do characters outside ASCII. */
BRC_MUST_USE int brc_bytes_scan(brc_buf *out, const char *text, brc_error *err);

/* Appends the bytes of a JSON string, U+0000 among them. */
BRC_MUST_USE int brc_string_read(brc_buf *out, const brc_json *json, brc_error *err);

#endif
