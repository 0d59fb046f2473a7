#include "route.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../breccia_codec.h"

/* ---- text -------------------------------- */

/* Returns the bytes of the UTF-8 character at `s`, or 0 if there is none: also for U+0000, for
 * surrogates and for longer forms than needed. */
static size_t character_length(const unsigned char *s)
{
    if (s[0] < 0x80)
        return s[0] != 0;
    const size_t n = s[0] >= 0xc2 && s[0] < 0xe0   ? 2
                     : (s[0] & 0xf0) == 0xe0       ? 3
                     : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                                   : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))
        return 0;
    return n;
}

static int is_valid_text(const char *text)
{
    while (*text != '\0') {
        const size_t n = character_length((const unsigned char *)text);
        if (n == 0)
            return 0;
        text += n;
    }
    return 1;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes from *from up to one of the characters `ends` or the end, to *to, which moves behind the
 * NUL. Returns the text, or NULL if it is not valid. */
static const char *percent_decode(const char **from, const char *ends, int plus, char **to)
{
    char *const begin = *to;
    const char *p = *from;
    while (*p != '\0' && strchr(ends, *p) == NULL) {
        int c = (unsigned char)*p++;
        if (c == '%') {
            const int high = digit_value(p[0]), low = high < 0 ? -1 : digit_value(p[1]);
            c = high * 16 + low;
            if (low < 0 || c == 0)
                return NULL;
            p += 2;
        } else if (plus && c == '+') {
            c = ' ';
        }
        *(*to)++ = (char)c;
    }
    *(*to)++ = '\0';
    *from = p;
    return is_valid_text(begin) ? begin : NULL;
}

static int ends_in(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

int serve_is_document(const char *key)
{
    static const char *const ends[] = { "zarr.json", ".zarray",    ".zgroup",
                                        ".zattrs",   ".zmetadata", "/" };
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (strcmp(key, ends[i]) == 0 || ends_in(key, ends[i]))
            return 1;
    return *key == '\0';
}

/* ---- the path -------------------------------- */

/* A path that is read segment by segment. */
typedef struct path_reader {
    const char *at; /* behind the "/" in front of the next segment */
    char *to;
    int is_bad;
    int is_over; /* there is no further segment, not even an empty one */
} path_reader;

/* Returns the next segment, decoded: "" at the end of a directory's path. NULL: there is none. */
static const char *next_segment(path_reader *r, int is_rev)
{
    if (r->is_over || r->is_bad)
        return NULL;
    const char *segment = percent_decode(&r->at, "/", 0, &r->to);
    if (segment == NULL || (!is_rev && strchr(segment, '/') != NULL) || strcmp(segment, ".") == 0 ||
        strcmp(segment, "..") == 0 || (*segment == '\0' && *r->at == '/')) {
        r->is_bad = 1;
        return NULL;
    }
    r->is_over = *r->at != '/';
    if (!r->is_over)
        r->at++;
    return segment;
}

/* Joins the remaining segments to one text with "/" between them. */
static const char *join_segments(path_reader *r)
{
    char *const begin = r->to;
    *r->to = '\0';
    while (next_segment(r, 0) != NULL)
        if (!r->is_over)
            r->to[-1] = '/';
    if (r->to == begin) /* what is read next must not lie in its place */
        *r->to++ = '\0';
    return begin;
}

/* Reads folders, NAME.zarr and the key. `segment` is the first segment. */
static void read_zarr_name(serve_target *out, path_reader *r, const char *segment)
{
    char *const begin = (char *)(uintptr_t)segment;
    out->name = segment;
    while (segment != NULL && *segment != '\0' && !ends_in(segment, ".zarr")) {
        if (r->is_over) {
            out->what = SERVE_IS_UNSLASHED;
            return;
        }
        r->to[-1] = '/';
        segment = next_segment(r, 0);
    }
    if (segment == NULL)
        return;
    if (*segment == '\0') { /* "fold/" */
        if (segment > begin)
            begin[segment - begin - 1] = '\0';
        out->what = SERVE_IS_NAMES;
        return;
    }
    r->to[-1 - (ptrdiff_t)strlen(".zarr")] = '\0';
    out->what = r->is_over ? SERVE_IS_UNSLASHED : SERVE_IS_KEY;
    out->key = join_segments(r);
}

/* Reads what is behind the token. */
static void read_path(serve_target *out, path_reader *r)
{
    const char *first = next_segment(r, 1), *next;
    if (first == NULL)
        return;
    if (*first == '\0') {
        out->what = SERVE_IS_PAGE;
        return;
    }
    const int is_v2 = strcmp(first, "v2") == 0, is_api = strcmp(first, "api") == 0;
    out->format = 3;
    out->rev = first;
    if (r->is_over) {
        out->what = SERVE_IS_UNSLASHED;
        return;
    }
    next = next_segment(r, is_v2);
    if (next == NULL)
        return;
    if (is_api && !ends_in(next, ".zarr")) {
        out->rev = NULL;
        out->api = next;
        out->what = *next != '\0' && r->is_over ? SERVE_IS_API : SERVE_NOTHING;
        return;
    }
    if (is_v2 && *next != '\0' && !ends_in(next, ".zarr")) {
        out->format = 2;
        out->rev = next;
        if (r->is_over) {
            out->what = SERVE_IS_UNSLASHED;
            return;
        }
        next = next_segment(r, 0);
        if (next == NULL)
            return;
    }
    if (strchr(next, '/') != NULL)
        return;
    read_zarr_name(out, r, next);
}

/* Takes as long for every path of this length. */
static int token_matches(const char *path, size_t len, const char *token)
{
    const size_t n = strlen(token);
    unsigned char differs = len != n;
    for (size_t i = 0; i < len; i++)
        differs |= (unsigned char)(path[i] ^ token[i < n ? i : 0]);
    return !differs && n > 0;
}

/* ---- the query -------------------------------- */

static int read_query(serve_target *out, const char *p, char *to, brc_error *err)
{
    size_t n = 0;
    while (*p != '\0') {
        if (*p == '&') {
            p++;
            continue;
        }
        if (n == SERVE_MOST_PAIRS)
            return brc_fail(err, BRC_ELIMIT, "the URL has more than %d parameters",
                            SERVE_MOST_PAIRS);
        out->names[n] = percent_decode(&p, "=&", 1, &to);
        if (out->names[n] != NULL && *p == '=')
            p++;
        out->values[n] = out->names[n] != NULL ? percent_decode(&p, "&", 1, &to) : NULL;
        if (out->values[n] == NULL)
            return brc_fail(err, BRC_EINVAL, "the URL's parameters are not percent-encoded UTF-8");
        n++;
    }
    out->query = (serve_query){ n, out->names, out->values };
    return BRC_OK;
}

const char *serve_query_get(const serve_query *query, const char *name)
{
    for (size_t i = 0; i < query->n; i++)
        if (strcmp(query->names[i], name) == 0)
            return query->values[i];
    return NULL;
}

/* ---- the target -------------------------------- */

int serve_target_read(serve_target *out, const char *uri, const char *token, brc_error *err)
{
    const size_t len = strlen(uri), path_len = strcspn(uri, "?");
    memset(out, 0, sizeof(*out));
    if (len > SERVE_MOST_URI)
        return brc_fail(err, BRC_ELIMIT, "the URL is longer than %d bytes", SERVE_MOST_URI);
    /* Nothing grows when it is decoded, but each text gets a NUL, and a path may be one text
     * twice. */
    out->text = malloc(2 * len + 2 * SERVE_MOST_PAIRS + 16);
    if (out->text == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    char *const path = out->text + len + 2 * SERVE_MOST_PAIRS + 8;
    memcpy(path, uri, path_len);
    path[path_len] = '\0';
    const size_t token_len = path[0] == '/' ? strcspn(path + 1, "/") : 0;
    if (!token_matches(path + 1, token_len, token))
        return BRC_OK;
    if (path[1 + token_len] == '\0') {
        out->what = SERVE_IS_UNSLASHED;
        return BRC_OK;
    }
    path_reader r = { path + 2 + token_len, out->text, 0, 0 };
    read_path(out, &r);
    if (r.is_bad || out->what == SERVE_NOTHING) { /* nothing that was read of it counts */
        out->what = SERVE_NOTHING;
        out->rev = out->name = out->key = out->api = NULL;
        return BRC_OK;
    }
    return uri[path_len] == '?' ? read_query(out, uri + path_len + 1, r.to, err) : BRC_OK;
}

void serve_target_dispose(serve_target *target)
{
    free(target->text);
    target->text = NULL;
}

/* ---- headers -------------------------------- */

/* Reads digits; a number that is too large becomes the largest. Returns 0 if there are none. */
static int read_byte_number(const char **p, uint64_t *out)
{
    const char *const begin = *p;
    *out = 0;
    for (; **p >= '0' && **p <= '9'; (*p)++) {
        const uint64_t digit = (uint64_t)(**p - '0');
        *out = *out > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *out * 10 + digit;
    }
    return *p > begin;
}

int serve_range_read(brc_key_range *out, const char *text)
{
    *out = (brc_key_range)BRC_KEY_RANGE_INIT;
    if (text == NULL || strncasecmp(text, "bytes", 5) != 0)
        return 0;
    const char *p = text + 5;
    p += strspn(p, " \t");
    if (*p++ != '=')
        return 0;
    p += strspn(p, " \t");
    uint64_t first, last;
    const int has_first = read_byte_number(&p, &first);
    if (*p++ != '-')
        return 0;
    const int has_last = read_byte_number(&p, &last);
    p += strspn(p, " \t");
    if (*p != '\0' || (!has_first && !has_last) || (has_first && has_last && last < first))
        return 0;
    out->kind = !has_first ? BRC_RANGE_LAST : has_last ? BRC_RANGE_BETWEEN : BRC_RANGE_FROM;
    out->start = has_first ? first : last;
    out->end = !has_first || !has_last ? 0 : last < UINT64_MAX ? last + 1 : last;
    return 1;
}

int serve_etag_matches(const char *text, const char *etag, int strong)
{
    const size_t len = strlen(etag);
    if (text == NULL || len == 0)
        return 0;
    for (const char *p = text; *p != '\0';) {
        p += strspn(p, " \t,");
        if (*p == '*')
            return !strong;
        const int is_weak = p[0] == 'W' && p[1] == '/';
        p += is_weak ? 2 : 0;
        if (*p != '"')
            return 0;
        const size_t n = strcspn(p + 1, "\"");
        if (p[1 + n] != '"')
            return 0;
        if (n == len && memcmp(p + 1, etag, n) == 0 && !(strong && is_weak))
            return 1;
        p += n + 2;
    }
    return 0;
}

static int is_same_host(const char *text, size_t len, const char *host)
{
    return strlen(host) == len && strncasecmp(text, host, len) == 0;
}

/* "127." and three numbers. */
static int is_loopback_number(const char *text, size_t len)
{
    size_t dots = 0;
    if (len < 9 || len > 15 || strncmp(text, "127.", 4) != 0)
        return 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '.' ? i + 1 == len || text[i + 1] == '.' : text[i] < '0' || text[i] > '9')
            return 0;
        dots += text[i] == '.';
    }
    return dots == 3;
}

int serve_host_is_known(const char *text, const char *const *hosts, size_t n)
{
    if (text == NULL)
        return 0;
    const char *end = text[0] == '[' ? strchr(text, ']') : NULL;
    size_t len = end != NULL ? (size_t)(end - text) + 1 : strcspn(text, ":");
    const char *port = text + len;
    if (*port == ':' && strspn(port + 1, "0123456789") != strlen(port + 1))
        return 0;
    if (*port != ':' && *port != '\0')
        return 0;
    if (len > 1 && text[len - 1] == '.')
        len--;
    if (is_same_host(text, len, "localhost") || is_same_host(text, len, "[::1]") ||
        is_loopback_number(text, len))
        return 1;
    for (size_t i = 0; i < n; i++)
        if (is_same_host(text, len, hosts[i]))
            return 1;
    return 0;
}

/* ---- text for others -------------------------------- */

int serve_url_escape(brc_buf *out, const char *text, int slashes, brc_error *err)
{
    static const char hex[] = "0123456789ABCDEF";
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        char escaped[3] = { '%', hex[c >> 4], hex[c & 15] };
        const int is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                             (c >= 'a' && c <= 'z') || strchr("-._~", c) != NULL ||
                             (slashes && c == '/');
        int rc =
            is_plain ? brc_buf_append(out, text, 1, err) : brc_buf_append(out, escaped, 3, err);
        if (rc < 0)
            return rc;
    }
    return BRC_OK;
}

int serve_html_escape(brc_buf *out, const char *text, brc_error *err)
{
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        const char *as = c == '&'             ? "&amp;"
                         : c == '<'           ? "&lt;"
                         : c == '>'           ? "&gt;"
                         : c == '"'           ? "&quot;"
                         : c == '\''          ? "&#39;"
                         : c < 32 || c == 127 ? "\xef\xbf\xbd"
                                              : NULL;
        int rc = as != NULL ? brc_buf_append(out, as, strlen(as), err)
                            : brc_buf_append(out, text, 1, err);
        if (rc < 0)
            return rc;
    }
    return BRC_OK;
}
