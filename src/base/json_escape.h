/* Text escaped for JSON, as little as JSON allows, so that each text has one form. */
#ifndef BRC_BASE_JSON_ESCAPE_H
#define BRC_BASE_JSON_ESCAPE_H

#include "buf.h"

/* U+0000 in the name of a member, for names are C strings: two bytes that no UTF-8 has. */
#define BRC_JSON_NUL "\xC0\x80"

/* Appends text, or a name, as it stands inside a JSON string. */
BRC_MUST_USE int brc_json_escape(brc_buf *out, const char *text, size_t len, brc_error *err);
/* Appends "/name" with ~ and / escaped as a JSON pointer's step. */
BRC_MUST_USE int brc_json_pointer_step(brc_buf *out, const char *name, brc_error *err);

#endif
