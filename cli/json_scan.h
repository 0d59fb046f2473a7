/*
 * json_scan.h - just enough of a JSON reader: is a text valid, and where is a member?
 */
#ifndef BRECCIA_CLI_JSON_SCAN_H
#define BRECCIA_CLI_JSON_SCAN_H

#include <stddef.h>

struct cli_json_text {
    const char *text;
    size_t len;
};

/* Is the text exactly one JSON value (RFC 8259)? */
int cli_json_valid(const char *text);
/* The value of a member of an object; 0 if there is none. */
int cli_json_find(struct cli_json_text *out, const char *text, size_t len, const char *key);
/* The next item of a list, 0 at the end; the cursor begins as 0. */
int cli_json_item(struct cli_json_text *out, const char *text, size_t len, size_t *cursor);
/* Is the value this string, written without escapes? */
int cli_json_is_string(const struct cli_json_text *value, const char *text);

#endif
