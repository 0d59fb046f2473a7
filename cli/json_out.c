/*
 * json_out.c - the JSON writer.
 */
#include "cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void json_newline(struct cli *cli)
{
    cli_puts(cli, "\n");
    for (int i = 0; i < cli->doc.depth; i++)
        cli_puts(cli, "  ");
}

/* Writes what separates a value or a key from the one before it. */
static void json_separate(struct cli *cli)
{
    struct cli_json *doc = &cli->doc;

    if (doc->after_key) {
        doc->after_key = 0;
        return;
    }
    if (doc->filled[doc->depth])
        cli_puts(cli, doc->pretty && doc->on_line[doc->depth] ? ", " : ",");
    doc->filled[doc->depth] = 1;
    if (doc->pretty && doc->depth > 0 && !doc->on_line[doc->depth])
        json_newline(cli);
}

static void json_enter(struct cli *cli, char bracket, int on_line)
{
    struct cli_json *doc = &cli->doc;

    json_separate(cli);
    cli_put(cli, &bracket, 1);
    on_line |= doc->on_line[doc->depth];
    if (doc->depth + 1 < CLI_JSON_DEPTH)
        doc->depth++;
    doc->filled[doc->depth] = 0;
    doc->on_line[doc->depth] = (unsigned char)on_line;
}

void cli_json_open(struct cli *cli, char bracket)
{
    json_enter(cli, bracket, 0);
}

void cli_json_open_line(struct cli *cli, char bracket)
{
    json_enter(cli, bracket, 1);
}

void cli_json_close(struct cli *cli, char bracket)
{
    struct cli_json *doc = &cli->doc;
    int broken = doc->pretty && doc->filled[doc->depth] && !doc->on_line[doc->depth];
    char closing = bracket == '{' ? '}' : bracket == '[' ? ']' : bracket;

    doc->depth--;
    if (broken)
        json_newline(cli);
    cli_put(cli, &closing, 1);
}

/* A character of a string as \u and four digits: the same text, but harmless. */
static void json_put_escape(struct cli *cli, const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned code = n == 1   ? p[0]
                    : n == 2 ? (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu)
                             : (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);

    cli_printf(cli, "\\u%04x", code);
}

/* JSON text: only its strings can contain what steers a terminal. */
static void json_put_text(struct cli *cli, const char *json, size_t len)
{
    const char *end = json + len;

    if (!cli_has_steering(json, len)) {
        cli_put(cli, json, len);
        return;
    }
    while (json < end) {
        size_t n = cli_utf8_length(json);

        if (n == 0 || n > (size_t)(end - json))
            n = 1;
        if (cli_steers_terminal(json, n))
            json_put_escape(cli, json, n);
        else
            cli_put(cli, json, n);
        json += n;
    }
}

static void json_put_string(struct cli *cli, const char *text)
{
    cli_puts(cli, "\"");
    while (*text) {
        size_t n = cli_utf8_length(text);
        unsigned char c = (unsigned char)*text;

        if (n == 0 && strncmp(text, "\xc0\x80", 2) == 0) {
            cli_puts(cli, "\\u0000"); /* in the name of an attribute, see breccia_json.h */
            n = 2;
        } else if (n == 0) {
            cli_puts(cli, "\xef\xbf\xbd"); /* U+FFFD for invalid UTF-8 */
            n = 1;
        } else if (c == '"' || c == '\\') {
            cli_printf(cli, "\\%c", c);
        } else if (c == '\n' || c == '\t' || c == '\r') {
            cli_puts(cli, c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r");
        } else if (cli_steers_terminal(text, n)) {
            json_put_escape(cli, text, n);
        } else {
            cli_put(cli, text, n);
        }
        text += n;
    }
    cli_puts(cli, "\"");
}

void cli_json_key(struct cli *cli, const char *key)
{
    json_separate(cli);
    json_put_string(cli, key);
    cli_puts(cli, cli->doc.pretty ? ": " : ":");
    cli->doc.after_key = 1;
}

void cli_json_string(struct cli *cli, const char *text)
{
    json_separate(cli);
    json_put_string(cli, text);
}

void cli_json_id(struct cli *cli, const brc_oid *id)
{
    char hex[65];

    json_separate(cli);
    if (id)
        cli_printf(cli, "\"%s\"", brc_oid_format(hex, id));
    else
        cli_puts(cli, "null");
}

void cli_json_double(struct cli *cli, double value)
{
    char text[CLI_DOUBLE_CAP];

    json_separate(cli);
    if (isnan(value))
        cli_puts(cli, "\"NaN\"");
    else if (isinf(value))
        cli_puts(cli, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    else
        cli_puts(cli, cli_format_double(text, value));
}

/* Copies the string that begins at `at`; returns where it ends. */
static size_t raw_string(struct cli *cli, const char *json, size_t len, size_t at)
{
    size_t end = at + 1;

    while (end < len && json[end] != '"')
        end += json[end] == '\\' ? 2 : 1;
    end = end < len ? end + 1 : len;
    json_put_text(cli, json + at, end - at);
    return end;
}

/* Is the list that opens at `at` short and flat, so that it is best read on one line? */
static int raw_is_flat(const char *json, size_t len, size_t at)
{
    for (size_t i = at + 1; i < len && i < at + 64; i++) {
        if (json[i] == ']')
            return 1;
        if (json[i] == '{' || json[i] == '[')
            return 0;
    }
    return 0;
}

static size_t raw_token(struct cli *cli, const char *json, size_t len, size_t at)
{
    size_t end = at;

    json_separate(cli);
    if (json[at] == '"')
        return raw_string(cli, json, len, at);
    while (end < len && !strchr(" \t\r\n,:]}[{\"", json[end]))
        end++;
    if (end == at)
        end++;
    cli_put(cli, json + at, end - at);
    return end;
}

void cli_json_raw(struct cli *cli, const char *json, size_t len)
{
    size_t at = 0;

    while (at < len) {
        char c = json[at];

        if (c == '{' || c == '[') {
            json_enter(cli, c, c == '[' && raw_is_flat(json, len, at));
            at++;
        } else if ((c == '}' || c == ']') && cli->doc.depth > 0) {
            cli_json_close(cli, c);
            at++;
        } else if (c == ':') {
            cli_puts(cli, cli->doc.pretty ? ": " : ":");
            cli->doc.after_key = 1;
            at++;
        } else if (strchr(" \t\r\n,", c)) {
            at++;
        } else {
            at = raw_token(cli, json, len, at);
        }
    }
}

void cli_json_token(struct cli *cli, const char *json, size_t len)
{
    json_separate(cli);
    json_put_text(cli, json, len);
}

void cli_json_document(struct cli *cli, const char *json, size_t len)
{
    cli->doc.pretty = cli->out.terminal;
    cli_json_raw(cli, json, len);
    if (!cli->json)
        cli_puts(cli, "\n");
}

void cli_json_dtype(struct cli *cli, const char *dtype)
{
    if (dtype[0] == '{')
        cli_json_raw(cli, dtype, strlen(dtype));
    else
        cli_json_string(cli, dtype);
}

static void json_put_uint(struct cli *cli, uint64_t value)
{
    json_separate(cli);
    cli_printf(cli, "%llu", (unsigned long long)value);
}

void cli_json_member(struct cli *cli, const char *key, const char *text)
{
    cli_json_key(cli, key);
    cli_json_string(cli, text);
}

void cli_json_member_uint(struct cli *cli, const char *key, uint64_t value)
{
    cli_json_key(cli, key);
    json_put_uint(cli, value);
}

void cli_json_member_int(struct cli *cli, const char *key, int64_t value)
{
    cli_json_key(cli, key);
    json_separate(cli);
    cli_printf(cli, "%lld", (long long)value);
}

void cli_json_member_bool(struct cli *cli, const char *key, int value)
{
    cli_json_key(cli, key);
    json_separate(cli);
    cli_puts(cli, value ? "true" : "false");
}

void cli_json_member_dims(struct cli *cli, const char *key, const uint64_t *dims, int ndim)
{
    cli_json_key(cli, key);
    cli_json_open_line(cli, '[');
    for (int i = 0; i < ndim; i++)
        json_put_uint(cli, dims[i]);
    cli_json_close(cli, '[');
}

void cli_json_answer(struct cli *cli, ...)
{
    va_list args;

    if (!cli->json)
        return;
    va_start(args, cli);
    cli_json_open(cli, '{');
    for (const char *key; (key = va_arg(args, const char *)) != NULL;)
        cli_json_member(cli, key, va_arg(args, const char *));
    cli_json_close(cli, '{');
    va_end(args);
}

const char *cli_json_quoted(struct cli *cli, const char *text)
{
    brc_buf quoted = BRC_BUF_INIT;
    const char *out = "\"\"";

    if (brc_json_quote(&quoted, text, strlen(text), &cli->err) == BRC_OK)
        out = cli_text(cli, "%.*s", (int)quoted.len, (const char *)quoted.data);
    brc_buf_dispose(&quoted);
    return out;
}
