#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "json.h"
#include "buf.h"

/* ==== json escape ================================ */

static int escape_control(brc_buf *out, uint8_t c, brc_error *err)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *found = c > 0 ? strchr(from, c) : NULL;
    if (found)
        return brc_buf_printf(out, err, "\\%c", to[found - from]);
    return brc_buf_printf(out, err, "\\u%04x", (unsigned)c);
}

int brc_json_escape(brc_buf *out, const char *text, size_t len, brc_error *err)
{
    size_t start = 0;
    if (len == 0) /* text may be NULL then */
        return BRC_OK;
    for (size_t i = 0; i < len; i++) {
        uint8_t c = (uint8_t)text[i];
        int is_nul = i + 1 < len && memcmp(text + i, BRC_JSON_NUL, 2) == 0;
        if (c >= 0x20 && c != '"' && c != '\\' && !is_nul)
            continue;
        BRC_TRY(brc_buf_append(out, text + start, i - start, err));
        BRC_TRY(escape_control(out, is_nul ? 0 : c, err));
        i += (size_t)is_nul;
        start = i + 1;
    }
    return brc_buf_append(out, text + start, len - start, err);
}

int brc_json_quote(brc_buf *out, const char *text, size_t len, brc_error *err)
{
    BRC_TRY(brc_buf_byte(out, '"', err));
    BRC_TRY(brc_json_escape(out, text, len, err));
    return brc_buf_byte(out, '"', err);
}

int brc_json_pointer_step(brc_buf *out, const char *name, brc_error *err)
{
    size_t len = out->len;
    int rc = BRC_OK;
    BRC_GO(brc_buf_byte(out, '/', err));
    for (; *name; name++) {
        if (*name == '~' || *name == '/')
            BRC_GO(brc_buf_text(out, *name == '~' ? "~0" : "~1", err));
        else
            BRC_GO(brc_buf_byte(out, (uint8_t)*name, err));
    }
    return BRC_OK;
done:
    out->len = len;
    return rc;
}

/* ==== json lex ================================ */

/*
 * The strict pass: RFC 8259 to the letter, with limits, before cJSON sees a text.
 * It writes the same document again in a form that cJSON reads without loss; see
 * json.h for the marks.
 *
 * Invariant: strings are written with minimal escapes, so that two names are equal
 * exactly if their written bytes are.
 */

/* A member's name: where it is in the text written, and in the text read. */
typedef struct lexed_name {
    const uint8_t *bytes; /* set when they are sorted: before that the buffer moves */
    size_t start, len;
    size_t at;
} lexed_name;

typedef struct json_lexer {
    const uint8_t *text;
    size_t at, len;
    brc_buf *out;
    lexed_name *names; /* of the objects that are open, the innermost last */
    size_t nnames, cap;
    size_t values;
    int depth;
    int nan;           /* BRC_JSON_NAN_...                                          */
    int attributes;    /* the depth of the enclosing attributes; 0: none            */
    int consolidated;  /* within the copies of documents that a group's, or .zmetadata, has */
    brc_error *err;
} json_lexer;

static int lex_value(json_lexer *lx);

static int bad_json(const json_lexer *lx, size_t at, const char *what)
{
    return brc_fail(lx->err, BRC_EINVAL, "JSON: %s at byte %zu", what, at);
}

static void skip_json_space(json_lexer *lx)
{
    while (lx->at < lx->len) {
        uint8_t c = lx->text[lx->at];
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r')
            return;
        lx->at++;
    }
}

/* Returns the next byte, or -1 at the end. */
static int peek_json(const json_lexer *lx)
{
    return lx->at < lx->len ? lx->text[lx->at] : -1;
}

static int is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static int bad_json_byte(const json_lexer *lx, const char *wanted)
{
    int c = peek_json(lx);
    if (c < 0)
        return brc_fail(lx->err, BRC_EINVAL, "JSON: ends at byte %zu where %s is expected", lx->at,
                        wanted);
    if (c > 0x20 && c < 0x7F)
        return brc_fail(lx->err, BRC_EINVAL, "JSON: '%c' at byte %zu where %s is expected", c,
                        lx->at,
                        wanted);
    return brc_fail(lx->err, BRC_EINVAL, "JSON: byte 0x%02x at byte %zu where %s is expected",
                    (unsigned)c, lx->at, wanted);
}

static int emit_json(json_lexer *lx, const char *text)
{
    return brc_buf_text(lx->out, text, lx->err);
}

/* ---- strings -------------------------------------------------------------- */

static int lex_hex4(json_lexer *lx, uint32_t *out)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int c = peek_json(lx);
        uint32_t digit;
        if (is_digit(c))
            digit = (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (uint32_t)(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            digit = (uint32_t)(c - 'A' + 10);
        else
            return bad_json_byte(lx, "a hex digit");
        value = value << 4 | digit;
        lx->at++;
    }
    *out = value;
    return BRC_OK;
}

/* Reads the four digits after "\u". */
static int lex_unicode_escape(json_lexer *lx, uint32_t *out)
{
    size_t start = lx->at - 2;
    BRC_TRY(lex_hex4(lx, out));
    if (*out < 0xD800 || *out > 0xDFFF)
        return BRC_OK;
    uint32_t low = 0;
    if (*out < 0xDC00 && lx->len - lx->at >= 2 && lx->text[lx->at] == '\\' &&
        lx->text[lx->at + 1] == 'u') {
        lx->at += 2;
        BRC_TRY(lex_hex4(lx, &low));
    }
    if (low < 0xDC00 || low > 0xDFFF)
        return bad_json(lx, start, "half of a surrogate pair");
    *out = 0x10000 + ((*out - 0xD800) << 10 | (low - 0xDC00));
    return BRC_OK;
}

/* Reads the escape at the backslash. */
static int lex_escape(json_lexer *lx, uint32_t *cp)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    lx->at++;
    int c = peek_json(lx);
    const char *found = c > 0 ? strchr(from, c) : NULL;
    if (found) {
        *cp = (uint32_t)to[found - from];
        lx->at++;
    } else if (c == 'u') {
        lx->at++;
        BRC_TRY(lex_unicode_escape(lx, cp));
    } else {
        return bad_json_byte(lx, "one of \"\\/bfnrtu");
    }
    uint8_t bytes[4];
    size_t n = brc_utf8_encode(bytes, *cp);
    return brc_json_escape(lx->out, (const char *)bytes, n, lx->err);
}

/* Emits U+0000 in a member's name as BRC_JSON_NUL, because names are C strings. */
static int lex_nul_in_name(json_lexer *lx)
{
    lx->out->len -= strlen("\\u0000");
    return brc_buf_text(lx->out, BRC_JSON_NUL, lx->err);
}

/* Copies the bytes up to the next quote or backslash as they are. */
static int lex_plain_run(json_lexer *lx)
{
    size_t start = lx->at;
    while (lx->at < lx->len) {
        uint8_t c = lx->text[lx->at];
        if (c == '"' || c == '\\')
            break;
        if (c < 0x20)
            return bad_json(lx, lx->at, "a control character in a string, which must be escaped,");
        size_t step = c < 0x80 ? 1 : brc_utf8_step(lx->text + lx->at, lx->len - lx->at);
        if (step == 0)
            return bad_json(lx, lx->at, "invalid UTF-8");
        lx->at += step;
    }
    return brc_buf_append(lx->out, lx->text + start, lx->at - start, lx->err);
}

/* Puts a mark before the string whose escaped text begins at `start` of the
 * output. The text of a raw one is escaped a second time, for cJSON to undo. */
static int mark_string(json_lexer *lx, size_t start, char mark)
{
    brc_buf text = BRC_BUF_INIT;
    int rc = BRC_OK;
    BRC_GO(brc_buf_append(&text, lx->out->data + start, lx->out->len - start, lx->err));
    lx->out->len = start;
    BRC_GO(brc_buf_printf(lx->out, lx->err, "\\u0001%c", mark));
    if (mark == BRC_JSON_MARK_RAW)
        BRC_GO(brc_json_escape(lx->out, (const char *)text.data, text.len, lx->err));
    else
        BRC_GO(brc_buf_append(lx->out, text.data, text.len, lx->err));
done:
    brc_buf_dispose(&text);
    return rc;
}

/* Reads the string at the quote. `name` gets the name of a member; NULL: the string is a value. */
static int lex_string(json_lexer *lx, lexed_name *name)
{
    size_t at = lx->at++;
    BRC_TRY(emit_json(lx, "\""));
    size_t start = lx->out->len;
    int has_nul = 0, first = 1, starts_with_mark = 0;
    for (;;) {
        BRC_TRY(lex_plain_run(lx));
        if (peek_json(lx) != '\\')
            break;
        first = first && lx->out->len == start;
        uint32_t cp;
        BRC_TRY(lex_escape(lx, &cp));
        has_nul |= cp == 0;
        if (cp == 0 && name)
            BRC_TRY(lex_nul_in_name(lx));
        starts_with_mark |= first && cp == (uint32_t)BRC_JSON_MARK;
        first = 0;
    }
    if (peek_json(lx) != '"')
        return bad_json(lx, at, "a string without an end");
    lx->at++;
    if (name) {
        *name = (lexed_name){ NULL, start, lx->out->len - start, at };
    } else if (has_nul) {
        BRC_TRY(mark_string(lx, start, BRC_JSON_MARK_RAW));
    } else if (starts_with_mark) {
        BRC_TRY(mark_string(lx, start, BRC_JSON_MARK_TEXT));
    }
    return emit_json(lx, "\"");
}

/* ---- numbers and words ----------------------------------------------------- */

static int lex_digits(json_lexer *lx)
{
    if (!is_digit(peek_json(lx)))
        return bad_json_byte(lx, "a digit");
    while (is_digit(peek_json(lx)))
        lx->at++;
    return BRC_OK;
}

static int emit_number(json_lexer *lx, const uint8_t *literal, size_t len)
{
    BRC_TRY(emit_json(lx, "\"\\u0001n"));
    BRC_TRY(brc_buf_append(lx->out, literal, len, lx->err));
    return emit_json(lx, "\"");
}

/* Returns whether NaN and the infinities are numbers here. */
static int takes_nan(const json_lexer *lx)
{
    return lx->nan == BRC_JSON_NAN_ANYWHERE ||
           (lx->nan == BRC_JSON_NAN_IN_ATTRIBUTES && lx->attributes > 0);
}

/* Reads the word that begins at `start`. */
static int lex_word(json_lexer *lx, size_t start)
{
    static const char *const words[] = { "true", "false", "null" };
    static const char *const numbers[] = { "NaN", "Infinity", "-Infinity" };
    int is_number = 0;
    while ((peek_json(lx) >= 'a' && peek_json(lx) <= 'z') ||
           (peek_json(lx) >= 'A' && peek_json(lx) <= 'Z'))
        lx->at++;
    size_t len = lx->at - start;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (len == strlen(words[i]) && memcmp(lx->text + start, words[i], len) == 0)
            return emit_json(lx, words[i]);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        is_number |= len == strlen(numbers[i]) && memcmp(lx->text + start, numbers[i], len) == 0;
    if (is_number && takes_nan(lx))
        return emit_number(lx, lx->text + start, len);
    lx->at = start;
    if (is_number && lx->nan == BRC_JSON_NAN_IN_ATTRIBUTES)
        return brc_fail(lx->err, BRC_EINVAL,
                        "JSON: %.*s at byte %zu, which only attributes may have", (int)len,
                        (const char *)lx->text + start, start);
    if (len == 0)
        return bad_json_byte(lx, "a value");
    return brc_fail(lx->err, BRC_EINVAL, "JSON: \"%.*s\" at byte %zu is not a value",
                    len > 32 ? 32 : (int)len, (const char *)lx->text + start, start);
}

static int lex_number(json_lexer *lx)
{
    size_t start = lx->at;
    if (peek_json(lx) == '-')
        lx->at++;
    if (lx->nan != BRC_JSON_NAN_NOWHERE && peek_json(lx) == 'I')
        return lex_word(lx, start);
    size_t first = lx->at;
    BRC_TRY(lex_digits(lx));
    if (lx->text[first] == '0' && lx->at - first > 1)
        return bad_json(lx, first, "a number with a leading zero");
    if (peek_json(lx) == '.') {
        lx->at++;
        BRC_TRY(lex_digits(lx));
    }
    if (peek_json(lx) == 'e' || peek_json(lx) == 'E') {
        lx->at++;
        if (peek_json(lx) == '+' || peek_json(lx) == '-')
            lx->at++;
        BRC_TRY(lex_digits(lx));
    }
    return emit_number(lx, lx->text + start, lx->at - start);
}

/* ---- objects and arrays ------------------------------------------------------ */

/* Orders names by bytes, and equal names by position: the second of two is the duplicate. */
static int compare_names(const void *a, const void *b)
{
    const lexed_name *x = a, *y = b;
    if (x->len != y->len)
        return x->len < y->len ? -1 : 1;
    int order = memcmp(x->bytes, y->bytes, x->len);
    return order != 0 ? order : (x->at > y->at) - (x->at < y->at);
}

/* Checks the names from `first` on, which belong to the object that ends here. */
static int check_duplicates(json_lexer *lx, size_t first)
{
    size_t n = lx->nnames - first;
    lx->nnames = first;
    if (n < 2)
        return BRC_OK;
    lexed_name *names = lx->names + first;
    for (size_t i = 0; i < n; i++)
        names[i].bytes = lx->out->data + names[i].start;
    qsort(names, n, sizeof(*names), compare_names);
    for (size_t i = 1; i < n; i++)
        if (names[i].len == names[i - 1].len &&
            memcmp(names[i].bytes, names[i - 1].bytes, names[i].len) == 0)
            return brc_fail(lx->err, BRC_EINVAL, "JSON: duplicate member \"%.*s\" at byte %zu",
                            names[i].len > 200 ? 200 : (int)names[i].len,
                            (const char *)names[i].bytes, names[i].at);
    return BRC_OK;
}

static int is_named(const json_lexer *lx, const lexed_name *name, const char *text)
{
    return name->len == strlen(text) && memcmp(lx->out->data + name->start, text, name->len) == 0;
}

/* Reads the value of a member of the open object. In a document, or in a copy of one
 * (consolidated_metadata/metadata/PATH), the value may be the attributes. */
static int lex_member_value(json_lexer *lx, const lexed_name *name)
{
    const int is_own = lx->depth == 1, is_copy = lx->depth == 4 && lx->consolidated;
    const int begins =
        lx->attributes == 0 && (is_own || is_copy) && is_named(lx, name, "attributes");
    if (is_own && lx->nan != BRC_JSON_NAN_NOWHERE)
        lx->consolidated = is_named(lx, name, "consolidated_metadata") ||
                           (lx->nan == BRC_JSON_NAN_ANYWHERE && is_named(lx, name, "metadata"));
    if (begins)
        lx->attributes = lx->depth;
    BRC_TRY(lex_value(lx));
    if (begins)
        lx->attributes = 0;
    return BRC_OK;
}

static int lex_member(json_lexer *lx)
{
    if (peek_json(lx) != '"')
        return bad_json_byte(lx, "a member's name");
    void *grown = lx->names;
    BRC_TRY(brc_grow_array(&grown, &lx->cap, lx->nnames + 1, sizeof(*lx->names), lx->err));
    lx->names = grown;
    BRC_TRY(lex_string(lx, &lx->names[lx->nnames]));
    const lexed_name name = lx->names[lx->nnames++];
    skip_json_space(lx);
    if (peek_json(lx) != ':')
        return bad_json_byte(lx, "':'");
    lx->at++;
    BRC_TRY(emit_json(lx, ":"));
    skip_json_space(lx);
    return lex_member_value(lx, &name);
}

/* Reads the array or object at its opening bracket; `close` is the closing one. */
static int lex_container(json_lexer *lx, char close)
{
    size_t first = lx->nnames;
    const int most = BRC_JSON_MAX_DEPTH + (lx->consolidated ? BRC_JSON_COPY_DEPTH : 0);
    if (++lx->depth > most)
        return brc_fail(lx->err, BRC_ELIMIT, "JSON: more than %d levels deep at byte %zu", most,
                        lx->at);
    BRC_TRY(brc_buf_byte(lx->out, lx->text[lx->at++], lx->err));
    skip_json_space(lx);
    if (peek_json(lx) != close) {
        for (;;) {
            BRC_TRY(close == '}' ? lex_member(lx) : lex_value(lx));
            skip_json_space(lx);
            if (peek_json(lx) != ',')
                break;
            lx->at++;
            BRC_TRY(emit_json(lx, ","));
            skip_json_space(lx);
        }
        if (peek_json(lx) != close)
            return bad_json_byte(lx, close == '}' ? "',' or '}'" : "',' or ']'");
    }
    lx->at++;
    lx->depth--;
    BRC_TRY(brc_buf_byte(lx->out, (uint8_t)close, lx->err));
    return close == '}' ? check_duplicates(lx, first) : BRC_OK;
}

static int lex_value(json_lexer *lx)
{
    if (++lx->values > BRC_JSON_MAX_VALUES)
        return brc_fail(lx->err, BRC_ELIMIT, "JSON: more than %d values at byte %zu",
                        BRC_JSON_MAX_VALUES, lx->at);
    int c = peek_json(lx);
    if (c == '{')
        return lex_container(lx, '}');
    if (c == '[')
        return lex_container(lx, ']');
    if (c == '"')
        return lex_string(lx, NULL);
    if (c == '-' || is_digit(c))
        return lex_number(lx);
    return lex_word(lx, lx->at);
}

int brc_json_lex(brc_buf *out, const char *text, size_t len, int nan, brc_error *err)
{
    json_lexer lx = {
        .text = (const uint8_t *)text, .len = len, .out = out, .nan = nan, .err = err
    };
    int rc = BRC_OK;
    if (len > BRC_JSON_MAX_BYTES)
        return brc_fail(err, BRC_ELIMIT, "JSON: %zu bytes are more than the limit of %zu", len,
                        BRC_JSON_MAX_BYTES);
    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        return bad_json(&lx, 0, "a byte order mark");
    /* Numbers grow by their marks; the rest hardly ever does. */
    BRC_GO(brc_buf_reserve(out, len + len / 8 + 16, err));
    skip_json_space(&lx);
    BRC_GO(lex_value(&lx));
    skip_json_space(&lx);
    if (lx.at < len)
        rc = bad_json_byte(&lx, "the end");
done:
    free(lx.names);
    return rc;
}
