/*
 * json_scan.h - reads just enough JSON: is a text valid, and where is a member.
 */
#ifndef BRECCIA_CLI_JSON_SCAN_H
#define BRECCIA_CLI_JSON_SCAN_H

#include <stddef.h>

struct cli_json_text {
    const char *text;
    size_t len;
};

/* 1 where the text is exactly one JSON value (RFC 8259). */
int cli_json_valid(const char *text);
/* The value of a member of an object; 0 where there is none. */
int cli_json_find(struct cli_json_text *out, const char *text, size_t len, const char *key);
/* The next item of a list: start with cursor 0; 0 at the end. */
int cli_json_item(struct cli_json_text *out, const char *text, size_t len, size_t *cursor);
/* 1 where the value is this string, written without escapes. */
int cli_json_is_string(const struct cli_json_text *value, const char *text);

#endif
