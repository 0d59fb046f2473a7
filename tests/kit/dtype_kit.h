/* Data types by their JSON, elements as hex: for the tests of data types. */
#ifndef BRC_TESTS_DTYPE_KIT_H
#define BRC_TESTS_DTYPE_KIT_H

#include "../../src/breccia_codec.h"
#include "../../src/codec/registry.h"

/* One registry a test: a checked fixture. */
void dtype_kit_setup(void);
void dtype_kit_teardown(void);
brc_registry *dtype_kit_registry(void);

/* json: "\"int4\"", or a bare name. The test fails if it does not open. */
brc_dtype *kit_open(const char *json);
/* The code of opening it, the message in *err. */
int kit_open_code(const char *json, brc_error *err);
/* The code of parsing a fill value; *out grows by the element. */
int kit_parse(const brc_dtype *type, const char *json, brc_buf *out, brc_error *err);
/* The code of parsing what people type. */
int kit_scan(const brc_dtype *type, const char *text, brc_buf *out, brc_error *err);
/* Prints; free() the result. NULL if printing fails. */
char *kit_print(const brc_dtype *type, const uint8_t *element, size_t len, int how);

/* The fill value parses to these bytes, in their order in memory ("0100ff"), and
 * they print as fill_value (NULL: as it was), as JSON (NULL: as fill) and as text. */
void kit_check(const char *type, const char *json, const char *hex, const char *fill,
               const char *plain, const char *text);
/* The fill value is refused with BRC_EINVAL and a message that has `says` in it. */
void kit_refuses(const char *type, const char *json, const char *says);

#endif
