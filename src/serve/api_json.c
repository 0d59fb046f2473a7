#include "api_json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "../breccia_codec.h"

static void put_bytes(serve_json *json, const void *data, size_t len)
{
    if (json->rc >= 0)
        json->rc = brc_buf_append(json->out, data, len, json->err);
}

/* Writes the comma and the key in front of a value. */
static void put_json_key(serve_json *json, const char *key)
{
    if (json->begun)
        put_bytes(json, ",", 1);
    json->begun = 1;
    if (key && json->rc >= 0)
        json->rc = brc_json_quote(json->out, key, strlen(key), json->err);
    if (key)
        put_bytes(json, ":", 1);
}

void serve_json_open(serve_json *json, const char *key, char bracket)
{
    put_json_key(json, key);
    put_bytes(json, &bracket, 1);
    json->begun = 0;
}

void serve_json_close(serve_json *json, char bracket)
{
    put_bytes(json, &bracket, 1);
    json->begun = 1;
}

void serve_json_raw(serve_json *json, const char *key, const void *text, size_t len)
{
    put_json_key(json, key);
    put_bytes(json, len > 0 ? text : "null", len > 0 ? len : 4);
}

void serve_json_text(serve_json *json, const char *key, const char *text)
{
    if (!text) {
        serve_json_raw(json, key, NULL, 0);
        return;
    }
    put_json_key(json, key);
    if (json->rc >= 0)
        json->rc = brc_json_quote(json->out, text, strlen(text), json->err);
}

void serve_json_uint(serve_json *json, const char *key, uint64_t value)
{
    put_json_key(json, key);
    if (json->rc >= 0)
        json->rc = brc_buf_printf(json->out, json->err, "%" PRIu64, value);
}

void serve_json_int(serve_json *json, const char *key, int64_t value)
{
    put_json_key(json, key);
    if (json->rc >= 0)
        json->rc = brc_buf_printf(json->out, json->err, "%" PRId64, value);
}

void serve_json_bool(serve_json *json, const char *key, int value)
{
    serve_json_raw(json, key, value ? "true" : "false", value ? 4 : 5);
}

void serve_json_real(serve_json *json, const char *key, double value)
{
    if (!isfinite(value)) {
        serve_json_raw(json, key, NULL, 0);
        return;
    }
    put_json_key(json, key);
    if (json->rc >= 0)
        json->rc = brc_buf_printf(json->out, json->err, "%.17g", value);
}

void serve_json_id(serve_json *json, const char *key, const brc_oid *id)
{
    char text[65];

    serve_json_text(json, key, brc_oid_format(text, id));
}

void serve_json_dims(serve_json *json, const char *key, const uint64_t *dims, int n)
{
    serve_json_open(json, key, '[');
    for (int i = 0; i < n; i++)
        serve_json_uint(json, NULL, dims[i]);
    serve_json_close(json, ']');
}

/* NaN and infinities, which attributes may have and JSON lacks, are texts. */
static void put_number(serve_json *json, const char *key, const brc_json *value)
{
    const char *literal = brc_json_literal(value);
    double real;

    if (brc_json_double(value, &real) && !isfinite(real))
        serve_json_text(json, key, isnan(real) ? "NaN" : real > 0 ? "Infinity" : "-Infinity");
    else
        serve_json_raw(json, key, literal, strlen(literal));
}

/* The parser bounds how deep values are nested. */
void serve_json_value(serve_json *json, const char *key, const brc_json *value)
{
    const int kind = brc_json_kind(value);

    if (kind == BRC_JSON_NUMBER) {
        put_number(json, key, value);
    } else if (kind == BRC_JSON_OBJECT || kind == BRC_JSON_ARRAY) {
        const int is_object = kind == BRC_JSON_OBJECT;

        serve_json_open(json, key, is_object ? '{' : '[');
        for (const brc_json *item = brc_json_first(value); item; item = brc_json_next(item))
            serve_json_value(json, is_object ? brc_json_name(item) : NULL, item);
        serve_json_close(json, is_object ? '}' : ']');
    } else if (kind == BRC_JSON_ABSENT) {
        serve_json_raw(json, key, NULL, 0);
    } else {
        put_json_key(json, key);
        if (json->rc >= 0)
            json->rc = brc_json_write(json->out, value, 0, json->err);
    }
}
