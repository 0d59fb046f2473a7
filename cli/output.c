/*
 * output.c - standard output as text and JSON.
 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

/* ==== text ================================ */

const char *cli_count(struct cli *cli, uint64_t n, const char *what)
{
    return cli_text(cli, "%llu %s%s", (unsigned long long)n, what, n == 1 ? "" : "s");
}

const char *cli_long_id(struct cli *cli, const brc_oid *id)
{
    char hex[65];

    return cli_text(cli, "%s", brc_oid_format(hex, id));
}

const char *cli_short_id(struct cli *cli, const brc_oid *id)
{
    char hex[65];

    return cli_text(cli, "%.8s", brc_oid_format(hex, id));
}

const char *cli_dims_text(struct cli *cli, const uint64_t *dims, int ndim)
{
    size_t cap = (size_t)ndim * 21 + 1, at = 0;
    char *out = cli_alloc(cli, cap, 1);

    for (int i = 0; i < ndim; i++)
        at += (size_t)snprintf(out + at, cap - at, "%s%llu", i ? "," : "",
                               (unsigned long long)dims[i]);
    return out;
}

const char *cli_format_size(char out[CLI_SIZE_CAP], uint64_t bytes)
{
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double value = (double)bytes / 1024;
    size_t unit = 0;

    if (bytes < 1024) {
        snprintf(out, CLI_SIZE_CAP, "%d B", (int)bytes);
        return out;
    }
    for (; value >= 1023.95 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
        value /= 1024;
    snprintf(out, CLI_SIZE_CAP, "%.1f %s", value, units[unit]);
    return out;
}

const char *cli_format_double(char out[CLI_DOUBLE_CAP], double value)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, CLI_DOUBLE_CAP, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            break;
    }
    return out;
}

/* ==== text that is safe on a terminal ==================== */

/* Returns the length of the valid UTF-8 character at `text` (1 to 4), or 0 if the character is
 * invalid. */
static size_t cli_utf8_length(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t n = p[0] < 0x80                    ? 1
               : p[0] >= 0xc2 && p[0] <= 0xdf ? 2
               : (p[0] & 0xf0) == 0xe0        ? 3
               : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
                                              : 0;

    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return n;
}

/* Returns whether a terminal obeys this character of `n` valid bytes instead of showing it. This is
 * true of C0, DEL, C1, ends of lines and the marks that change the direction of writing. */
static int cli_steers_terminal(const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;

    if (n == 1)
        return p[0] < 0x20 || p[0] == 0x7f;
    if (n == 2)
        return (p[0] == 0xc2 && p[1] < 0xa0) || (p[0] == 0xd8 && p[1] == 0x9c);
    if (n == 3 && p[0] == 0xe2)
        return (p[1] == 0x80 && ((p[2] >= 0xaa && p[2] <= 0xae) || p[2] == 0xa8 || p[2] == 0xa9 ||
                                 p[2] == 0x8e || p[2] == 0x8f)) ||
               (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9);
    return 0;
}

int cli_has_steering(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c < 0x20 || c >= 0x7f)
            return 1;
    }
    return 0;
}

/* Writes each byte of one character as an escape. Returns the length of the result. */
static size_t escape_bytes(char *out, const char *text, size_t n)
{
    static const char hex[] = "0123456789abcdef";
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];

        out[at++] = '\\';
        if (c == '\n' || c == '\t' || c == '\r') {
            out[at++] = c == '\n' ? 'n' : c == '\t' ? 't' : 'r';
        } else {
            out[at++] = 'x';
            out[at++] = hex[c >> 4];
            out[at++] = hex[c & 15];
        }
    }
    return at;
}

const char *cli_escaped_bytes(struct cli *cli, const char *text, size_t len)
{
    const char *end = text + len;
    char *out = cli_alloc(cli, 4 * len + 1, 1);
    size_t at = 0;

    while (text < end) {
        size_t n = cli_utf8_length(text);
        int whole = n > 0 && n <= (size_t)(end - text);

        if (whole && !cli_steers_terminal(text, n)) {
            memcpy(out + at, text, n);
            at += n;
        } else {
            n = whole ? n : 1;
            at += escape_bytes(out + at, text, n);
        }
        text += n;
    }
    out[at] = '\0';
    return out;
}

const char *cli_escaped(struct cli *cli, const char *text)
{
    return cli_escaped_bytes(cli, text, strlen(text));
}

const char *cli_subject(struct cli *cli, const char *message)
{
    return cli_escaped_bytes(cli, message, strcspn(message, "\n"));
}

size_t cli_text_width(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* ==== a file in place of standard output ================= */

/* Returns whether the file is a pipe, a device or a link, which is written to and not replaced. */
static int is_in_place(const char *name)
{
    struct stat status;

    return lstat(name, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

static int put_into_fd(struct cli *cli, int fd, const char *name,
                       int (*put)(struct cli *cli, const void *ctx), const void *ctx)
{
    struct cli_out saved = cli->out;
    struct cli_json doc = cli->doc;
    int rc;

    cli_out_begin(&cli->out, fd, name);
    cli->out.color = 0;
    memset(&cli->doc, 0, sizeof(cli->doc)); /* the file is a document of its own */
    rc = put(cli, ctx);
    if (rc >= 0)
        rc = cli_out_flush(cli);
    cli_out_dispose(&cli->out);
    cli->out = saved;
    cli->doc = doc;
    if (close(fd) != 0 && rc >= 0)
        rc = cli_fail_errno(cli, errno, name);
    return rc;
}

int cli_to_file(struct cli *cli, const char *name,
                int (*put)(struct cli *cli, const void *ctx), const void *ctx)
{
    const char *partial = cli_text(cli, "%s.%ld.partial", name, (long)getpid());
    int fd, rc;

    if (cli->file)
        CLI_TRY(brc_check_file(cli->file, name, &cli->err));
    if (is_in_place(name)) {
        fd = open(name, O_WRONLY | O_TRUNC | O_CLOEXEC);
        return fd < 0 ? cli_fail_errno(cli, errno, name)
                      : put_into_fd(cli, fd, name, put, ctx);
    }
    fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return cli_fail_errno(cli, errno, name);
    rc = put_into_fd(cli, fd, name, put, ctx);
    if (rc >= 0 && rename(partial, name) != 0)
        rc = cli_fail_errno(cli, errno, name);
    if (rc < 0)
        unlink(partial);
    return rc;
}

/* ==== the JSON writer ==================================== */

static void json_newline(struct cli *cli)
{
    cli_puts(cli, "\n");
    for (int i = 0; i < cli->doc.depth; i++)
        cli_puts(cli, "  ");
}

/* Writes the separator between a value or a key and the previous one. */
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

void cli_json_schema(struct cli *cli)
{
    cli_json_key(cli, "schema");
    cli_json_uint(cli, 1);
}

/* Writes a character of a string as \u and four digits: the same text, but harmless. */
static void json_put_escape(struct cli *cli, const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned code = n == 1   ? p[0]
                    : n == 2 ? (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu)
                             : (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);

    cli_printf(cli, "\\u%04x", code);
}

/* Writes JSON text. Only its strings can contain characters that steer a terminal. */
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

/* Copies the string that begins at `at`. Returns where the string ends. */
static size_t raw_string(struct cli *cli, const char *json, size_t len, size_t at)
{
    size_t end = at + 1;

    while (end < len && json[end] != '"')
        end += json[end] == '\\' ? 2 : 1;
    end = end < len ? end + 1 : len;
    json_put_text(cli, json + at, end - at);
    return end;
}

/* Returns whether the list that opens at `at` is short and flat, so that one line is best for
 * it. */
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

void cli_json_uint(struct cli *cli, uint64_t value)
{
    json_separate(cli);
    cli_printf(cli, "%llu", (unsigned long long)value);
}

void cli_json_int(struct cli *cli, int64_t value)
{
    json_separate(cli);
    cli_printf(cli, "%lld", (long long)value);
}

void cli_json_bool(struct cli *cli, int value)
{
    json_separate(cli);
    cli_puts(cli, value ? "true" : "false");
}

void cli_json_dims(struct cli *cli, const uint64_t *dims, int ndim)
{
    cli_json_open_line(cli, '[');
    for (int i = 0; i < ndim; i++)
        cli_json_uint(cli, dims[i]);
    cli_json_close(cli, '[');
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

/* ==== standard output ==================================== */

enum { SHOWN_AT = 1 << 16, HELD_IN_MEMORY = 1 << 24, WRITTEN_AT_ONCE = 1 << 18,
       USUAL_COLUMNS = 80 };

size_t cli_env_number(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    size_t digits = text ? strspn(text, "0123456789") : 0;
    unsigned long n = digits > 0 && digits < 7 && !text[digits] ? strtoul(text, NULL, 10) : 0;

    return n > 0 && n <= 100000 ? n : otherwise;
}

static size_t columns_of(int fd)
{
    struct winsize window;
    int known = ioctl(fd, TIOCGWINSZ, &window) == 0 && window.ws_col > 0;

    return cli_env_number("COLUMNS", known ? window.ws_col : USUAL_COLUMNS);
}

void cli_out_begin(struct cli_out *out, int fd, const char *name)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

    memset(out, 0, sizeof(*out));
    out->fd = fd;
    out->name = name;
    out->terminal = isatty(fd);
    out->columns = out->terminal ? columns_of(fd) : 0;
    out->color = out->terminal && !(no_color && no_color[0]) && term && strcmp(term, "dumb") != 0;
}

void cli_out_dispose(struct cli_out *out)
{
    if (out->spill)
        fclose(out->spill);
    free(out->data);
    memset(out, 0, sizeof(*out));
}

void cli_out_restart(struct cli *cli)
{
    struct cli_out *out = &cli->out;

    if (out->spill)
        fclose(out->spill);
    out->spill = NULL;
    out->len = 0;
    cli->doc = (struct cli_json){ .pretty = out->terminal };
}

static void write_bytes(struct cli_out *out, const char *bytes, size_t len)
{
    while (len > 0 && !out->failure) {
        ssize_t n = write(out->fd, bytes, len < WRITTEN_AT_ONCE ? len : WRITTEN_AT_ONCE);

        if (n < 0 && errno == EINTR && !cli_signal())
            continue;
        if (n < 0) {
            out->failure = errno;
            return;
        }
        bytes += n;
        len -= (size_t)n;
        if (len > 0 && cli_signal() && !out->answers)
            out->failure = EINTR;
    }
}

/* Moves held output that outgrows its buffer to a temporary file. */
static void spill_bytes(struct cli_out *out)
{
    errno = 0;
    if (!out->spill)
        out->spill = tmpfile();
    if (!out->spill || fwrite(out->data, 1, out->len, out->spill) != out->len)
        out->failure = errno ? errno : EIO;
    out->len = 0;
}

static void show_spilled(struct cli_out *out)
{
    size_t n;

    if (!out->spill || out->failure)
        return;
    spill_bytes(out);
    errno = 0;
    if (!out->failure && (fflush(out->spill) != 0 || fseek(out->spill, 0, SEEK_SET) != 0))
        out->failure = errno ? errno : EIO;
    while (!out->failure && (n = fread(out->data, 1, out->cap, out->spill)) > 0) {
        if (cli_signal() && !out->answers)
            out->failure = EINTR;
        write_bytes(out, out->data, n);
    }
    if (!out->failure && ferror(out->spill))
        out->failure = EIO;
    fclose(out->spill);
    out->spill = NULL;
}

int cli_out_check(struct cli *cli)
{
    if (cli->out.failure)
        return cli_fail_errno(cli, cli->out.failure, cli->out.name);
    if (cli_signal())
        return cli_fail(cli, BRC_EINTERRUPT, "interrupted");
    return BRC_OK;
}

int cli_out_flush(struct cli *cli)
{
    struct cli_out *out = &cli->out;

    if (out->pager.start && (out->len > 0 || out->spill))
        out->pager.start(cli);
    show_spilled(out);
    write_bytes(out, out->data, out->len);
    out->len = 0;
    return out->failure ? cli_fail_errno(cli, out->failure, out->name) : BRC_OK;
}

void cli_put(struct cli *cli, const char *bytes, size_t len)
{
    struct cli_out *out = &cli->out;
    size_t limit = out->hold ? HELD_IN_MEMORY : SHOWN_AT;

    if (out->failure || len == 0)
        return;
    if (!out->hold && !out->pager.start && len >= limit) {
        write_bytes(out, out->data, out->len);
        out->len = 0;
        write_bytes(out, bytes, len);
        return;
    }
    if (out->len + len > out->cap) {
        size_t cap = out->cap ? out->cap : 4096;

        while (cap < out->len + len)
            cap *= 2;
        out->data = cli_regrow(out->data, cap, 1);
        out->cap = cap;
    }
    memcpy(out->data + out->len, bytes, len);
    out->len += len;
    if (out->len < limit)
        return;
    if (out->hold) {
        spill_bytes(out);
    } else {
        if (out->pager.start)
            out->pager.start(cli);
        write_bytes(out, out->data, out->len);
        out->len = 0;
    }
}

void cli_puts(struct cli *cli, const char *text)
{
    cli_put(cli, text, strlen(text));
}

static void put_formatted(struct cli *cli, const char *format, va_list args)
{
    char small[512];
    char *large;
    va_list again;
    int len;

    va_copy(again, args);
    len = vsnprintf(small, sizeof(small), format, args);
    if (len >= 0 && (size_t)len < sizeof(small)) {
        cli_put(cli, small, (size_t)len);
    } else if (len >= 0) {
        large = cli_regrow(NULL, (size_t)len + 1, 1);
        vsnprintf(large, (size_t)len + 1, format, again);
        cli_put(cli, large, (size_t)len);
        free(large);
    }
    va_end(again);
}

void cli_printf(struct cli *cli, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    put_formatted(cli, format, args);
    va_end(args);
}

void cli_vsay(struct cli *cli, const char *format, va_list args)
{
    if (cli->quiet || cli->json)
        return;
    put_formatted(cli, format, args);
    cli_puts(cli, "\n");
}

void cli_say(struct cli *cli, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    cli_vsay(cli, format, args);
    va_end(args);
}

void cli_color(struct cli *cli, enum cli_color color)
{
    static const char *const codes[] = { "0", "1", "31", "32", "33", "36", "2" };

    if (cli->out.color)
        cli_printf(cli, "\033[%sm", codes[color]);
}

void cli_color_end(struct cli *cli)
{
    cli_color(cli, CLI_PLAIN);
}

void cli_put_padded(struct cli *cli, const char *text, size_t width)
{
    cli_puts(cli, text);
    for (size_t n = cli_text_width(text); n < width; n++)
        cli_put(cli, " ", 1);
}
