/*
 * page_html.c - HTML, piece by piece.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../breccia_codec.h"
#include "page.h"
#include "route.h"
#include "serve_alarm.h"

enum { SUBJECT_MOST = 200, ID_DIGITS = 8, TIME_TEXT = 48 };

void serve_put(serve_page_state *p, const char *html)
{
    if (p->rc >= 0)
        p->rc = brc_buf_append(p->out, html, strlen(html), p->err);
}

void serve_putf(serve_page_state *p, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    serve_put(p, text);
}

/* Returns what stands for a character in HTML, or NULL if that is the character. */
static const char *entity_of(unsigned char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return (c < 32 && c != '\n' && c != '\t') || c == 127 ? "\xef\xbf\xbd" : NULL;
    }
}

static void put_escaped(serve_page_state *p, const char *text, size_t len)
{
    size_t from = 0;

    for (size_t i = 0; i < len && p->rc >= 0; i++) {
        const char *entity = entity_of((unsigned char)text[i]);

        if (!entity)
            continue;
        p->rc = brc_buf_append(p->out, text + from, i - from, p->err);
        serve_put(p, entity);
        from = i + 1;
    }
    if (p->rc >= 0)
        p->rc = brc_buf_append(p->out, text + from, len - from, p->err);
}

void serve_put_text(serve_page_state *p, const char *text)
{
    put_escaped(p, text, strlen(text));
}

void serve_put_some(serve_page_state *p, const char *text, size_t most)
{
    size_t len = strlen(text);
    const int is_cut = len > most;

    if (is_cut)
        for (len = most; len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80;)
            len--;
    put_escaped(p, text, len);
    if (is_cut)
        serve_put(p, " …");
}

void serve_put_name(serve_page_state *p, const char *text)
{
    serve_put(p, "<bdi>");
    serve_put_some(p, text, 1000);
    serve_put(p, "</bdi>");
}

void serve_put_bytes(serve_page_state *p, uint64_t bytes)
{
    static const char *const units[] = { "kB", "MB", "GB", "TB", "PB", "EB" };
    double value = (double)bytes / 1000;
    size_t i = 0;

    if (bytes < 1000) {
        serve_putf(p, "%" PRIu64 " B", bytes);
        return;
    }
    for (; value >= 999.5 && i + 1 < sizeof(units) / sizeof(units[0]); i++)
        value /= 1000;
    serve_putf(p, "<span title=\"%" PRIu64 " bytes\">%.*f %s</span>", bytes, value < 9.95, value,
               units[i]);
}

void serve_put_count(serve_page_state *p, uint64_t n)
{
    char digits[24], text[32];
    int len = snprintf(digits, sizeof(digits), "%" PRIu64, n), at = 0;

    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
    serve_put(p, text);
}

void serve_put_dims(serve_page_state *p, const uint64_t *dims, int n)
{
    if (n == 0)
        serve_put(p, "one value");
    for (int i = 0; i < n; i++)
        serve_putf(p, "%s%" PRIu64, i ? " × " : "", dims[i]);
}

/* Writes a time in UTC: as RFC 3339, or with a blank for people. */
static const char *time_text(char out[TIME_TEXT], int64_t time_us, int blank)
{
    time_t seconds = (time_t)(time_us / 1000000 - (time_us % 1000000 < 0));
    struct tm parts;

    if (!gmtime_r(&seconds, &parts) || parts.tm_year < -1900 || parts.tm_year > 97999) {
        snprintf(out, TIME_TEXT, "@%" PRId64, (int64_t)seconds);
        return out;
    }
    strftime(out, TIME_TEXT, blank ? "%Y-%m-%d %H:%M" : "%Y-%m-%dT%H:%M:%SZ", &parts);
    return out;
}

void serve_put_time(serve_page_state *p, int64_t time_us)
{
    char text[TIME_TEXT];

    serve_putf(p, "<time datetime=\"%s\">", time_text(text, time_us, 0));
    serve_putf(p, "%s</time>", time_text(text, time_us, 1));
}

static void put_parameter(serve_page_state *p, const char *name, const char *value)
{
    if (!value)
        return;
    if (p->out->len > 0 && p->out->data[p->out->len - 1] != '?')
        serve_put(p, "&amp;");
    serve_put(p, name);
    serve_put(p, "=");
    if (p->rc >= 0)
        p->rc = serve_url_escape(p->out, value, 1, p->err);
}

static void begin_href(serve_page_state *p, const char *view, const char *rev, const char *path,
                       const char *a, const char *b)
{
    serve_put(p, "href=\"?");
    put_parameter(p, "file", p->file);
    put_parameter(p, "view", view);
    put_parameter(p, "rev", rev);
    put_parameter(p, "path", path);
    put_parameter(p, "a", a);
    put_parameter(p, "b", b);
}

void serve_put_href(serve_page_state *p, const char *view, const char *rev, const char *path,
                    const char *a, const char *b)
{
    begin_href(p, view, rev, path, a, b);
    serve_put(p, "\"");
}

void serve_put_older(serve_page_state *p, const char *from)
{
    begin_href(p, p->view, p->rev, p->path, p->a, p->b);
    put_parameter(p, "filter", serve_param(&p->call, "filter"));
    put_parameter(p, "from", from);
    serve_put(p, "#timeline\"");
}

void serve_put_commit(serve_page_state *p, const brc_oid *id)
{
    char text[65];

    brc_oid_format(text, id);
    serve_put(p, "<a class=\"id\" ");
    serve_put_href(p, "overview", text, NULL, NULL, NULL);
    serve_putf(p, ">%.*s</a>", ID_DIGITS, text);
}

void serve_put_subject(serve_page_state *p, const char *message)
{
    size_t len = strcspn(message, "\n");
    char line[SUBJECT_MOST + 4];

    if (len > SUBJECT_MOST) {
        serve_put_some(p, message, SUBJECT_MOST);
        return;
    }
    memcpy(line, message, len);
    line[len] = '\0';
    serve_put_text(p, line);
}

void serve_row_begin(serve_page_state *p, const char *name)
{
    serve_put(p, "<tr><th scope=\"row\">");
    serve_put_some(p, name, 200);
    serve_put(p, "</th><td>");
}

void serve_row_end(serve_page_state *p)
{
    serve_put(p, "</td></tr>\n");
}

/* Puts what went wrong in the place of a part. */
static void put_part_error(serve_page_state *p, int code, const char *message)
{
    serve_put(p, "<p class=\"error\">");
    if (code == BRC_EINTERRUPT)
        serve_put(p, "This takes longer than the page waits: the command shows it.");
    else
        serve_put_some(p, message[0] ? message : "this part failed", 400);
    serve_put(p, "</p>\n");
}

void serve_part(serve_page_state *p, int (*part)(serve_page_state *p))
{
    brc_error *const outside = p->err;
    brc_error own = BRC_ERROR_INIT;
    const size_t begun = p->out->len;
    serve_alarm alarm;
    int rc;

    if (p->rc < 0)
        return;
    p->rc = serve_alarm_begin(&alarm, p->call.repo, p->call.limits->seconds * 1000,
                               outside);
    if (p->rc < 0)
        return;
    p->err = p->call.err = &own;
    rc = part(p);
    serve_alarm_end(&alarm);
    serve_drop_iter(&p->call);
    p->err = p->call.err = outside;
    if (p->rc < 0) /* nothing can be written any more                              */
        brc_fail(outside, p->rc, "%s", own.message);
    if (p->rc < 0 || rc >= 0)
        return;
    p->out->len = begun;
    put_part_error(p, rc, own.message);
}
