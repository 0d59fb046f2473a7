/*
 * api_json.h - JSON written member by member. After a failure nothing is written any more, and `rc` says what it was.
 */
#ifndef BRC_SERVE_API_JSON_H
#define BRC_SERVE_API_JSON_H

#include "../breccia.h"
#include "../breccia_json.h"

typedef struct serve_json {
    brc_buf *out;
    brc_error *err;
    int rc;
    int begun; /* something comes before the next item                         */
} serve_json;

/* `key` is NULL for items of a list and for the outermost value. */
void serve_json_open(serve_json *json, const char *key, char bracket);
void serve_json_close(serve_json *json, char bracket);
/* NULL is null. */
void serve_json_text(serve_json *json, const char *key, const char *text);
void serve_json_uint(serve_json *json, const char *key, uint64_t value);
void serve_json_int(serve_json *json, const char *key, int64_t value);
void serve_json_bool(serve_json *json, const char *key, int value);
/* NaN and infinities are null. */
void serve_json_real(serve_json *json, const char *key, double value);
/* A value that is JSON already; len 0: null. */
void serve_json_raw(serve_json *json, const char *key, const void *text, size_t len);
void serve_json_id(serve_json *json, const char *key, const brc_oid *id);
void serve_json_dims(serve_json *json, const char *key, const uint64_t *dims, int n);
void serve_json_value(serve_json *json, const char *key, const brc_json *value);

#endif
