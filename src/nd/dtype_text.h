/*
 * Bytes in JSON: base64 (RFC 4648, with padding), an array of integers from 0 to 255,
 * or those of a string.
 */
#ifndef BRC_ND_DTYPE_TEXT_H
#define BRC_ND_DTYPE_TEXT_H

#include "../base/json.h"

/* Appends the bytes. Where the value has neither form: BRC_EINVAL, and no message,
 * because only the caller knows which type is asked for. */
BRC_MUST_USE int brc_bytes_read(brc_buf *out, const brc_json *json, brc_error *err);
/* The same of base64 alone. */
BRC_MUST_USE int brc_base64_read(brc_buf *out, const char *text, brc_error *err);
/* Appends base64 without quotes. */
BRC_MUST_USE int brc_base64_write(brc_buf *out, const uint8_t *data, size_t len, brc_error *err);

/* Bytes for people: printable ASCII as it is, but "\\" for a backslash, and "\x00"
 * for the rest. So is a quote or '[' at the beginning, where JSON begins with them. */
BRC_MUST_USE int brc_bytes_print(brc_buf *out, const uint8_t *data, size_t len, brc_error *err);
/* Reads that back: a backslash that does not begin an escape stands for itself, and so do
 * characters outside ASCII. */
BRC_MUST_USE int brc_bytes_scan(brc_buf *out, const char *text, brc_error *err);

/* Appends the bytes of a JSON string, U+0000 among them. */
BRC_MUST_USE int brc_string_read(brc_buf *out, const brc_json *json, brc_error *err);

#endif
