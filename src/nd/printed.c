/* Elements as they are printed for people, where JSON writes them otherwise: NumPy's words. */
#include <string.h>

#include "../base/alloc.h"
#include "../base/utf8.h"
#include "dtype.h"
#include "dtype_ops.h"

/* JSON's word for what is not finite; NULL: it is none. */
static const char *json_word(const char *text, size_t len)
{
    static const char *const words[][2] = {
        { "nan", "NaN" }, { "inf", "Infinity" }, { "-inf", "-Infinity" }
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i][0]) == len && memcmp(text, words[i][0], len) == 0)
            return words[i][1];
    return NULL;
}

static int put_part(brc_buf *out, const char *text, size_t len, brc_error *err)
{
    const char *word = json_word(text, len);
    if (word != NULL)
        return brc_buf_printf(out, err, "\"%s\"", word);
    return brc_buf_append(out, text, len, err);
}

/* The sign between the real and the imaginary part; 0: there is no real part. */
static size_t sign_between(const char *text, size_t len)
{
    for (size_t i = len; i-- > 1;)
        if ((text[i] == '+' || text[i] == '-') && text[i - 1] != 'e' && text[i - 1] != 'E')
            return i;
    return 0;
}

/* "(1+2j)" and "2j" as [1,2] and [0,2]. */
static int complex_as_json(brc_buf *out, const char *text, brc_error *err)
{
    size_t len = strlen(text);
    const int in_brackets = len > 2 && text[0] == '(' && text[len - 1] == ')';
    text += in_brackets;
    len -= 2 * (size_t)in_brackets;
    if (len < 2 || text[len - 1] != 'j')
        return BRC_OK;
    size_t at = sign_between(text, --len);
    size_t imaginary = at + (text[at] == '+');
    BRC_TRY(brc_buf_byte(out, '[', err));
    BRC_TRY(at > 0 ? put_part(out, text, at, err) : brc_buf_byte(out, '0', err));
    BRC_TRY(brc_buf_byte(out, ',', err));
    BRC_TRY(put_part(out, text + imaginary, len - imaginary, err));
    return brc_buf_byte(out, ']', err);
}

int brc_printed_json(brc_json **out, int klass, const char *text, brc_error *err)
{
    brc_buf json = BRC_BUF_INIT;
    brc_error why = BRC_ERROR_INIT;
    int rc = BRC_OK;

    *out = NULL;
    if (klass == BRC_CLASS_BOOL && (strcmp(text, "True") == 0 || strcmp(text, "False") == 0))
        BRC_GO(brc_buf_text(&json, text[0] == 'T' ? "true" : "false", err));
    else if (klass == BRC_CLASS_FLOAT && json_word(text, strlen(text)) != NULL)
        BRC_GO(put_part(&json, text, strlen(text), err));
    else if (klass == BRC_CLASS_COMPLEX)
        BRC_GO(complex_as_json(&json, text, err));
    if (json.len > 0)
        rc = brc_json_parse(out, (const char *)json.data, json.len, &why);
    if (rc == BRC_EINVAL) /* it is nothing that is printed: the type says what it needs */
        rc = BRC_OK;
    else if (rc < 0 && err != NULL)
        brc_error_copy(err, &why);
done:
    brc_buf_dispose(&json);
    return rc;
}

int brc_printed_unquote(char **out, const char *text, brc_error *err)
{
    size_t len = strlen(text);
    *out = NULL;
    if (len < 2 || (text[0] != '\'' && text[0] != '"') || text[len - 1] != text[0])
        return BRC_OK;
    return brc_dup_n(out, text + 1, len - 2, err);
}

/* ---- quotes -------------------------------- */

/* Characters that a terminal obeys instead of showing them: controls, ends of lines, and the marks
 * that change the direction of writing. */
static int steers_terminal(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
           code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

static int put_character(brc_buf *out, const uint8_t *at, size_t len, char quote, brc_error *err)
{
    const uint32_t code = brc_utf8_code(at, len);
    if (code == (uint8_t)quote || code == '\\')
        BRC_TRY(brc_buf_byte(out, '\\', err));
    else if (code == '\n' || code == '\r' || code == '\t')
        return brc_buf_printf(out, err, "\\%c", code == '\n' ? 'n' : code == '\r' ? 'r' : 't');
    else if (steers_terminal(code))
        return brc_buf_printf(out, err, code < 0x100 ? "\\x%02lx" : "\\u%04lx",
                              (unsigned long)code);
    return brc_buf_append(out, at, len, err);
}

/* Python prefers single quotes, unless the text has some and no double ones. */
static char quote_for(const brc_buf *text)
{
    return text->len > 0 && memchr(text->data, '\'', text->len) != NULL &&
                   memchr(text->data, '"', text->len) == NULL
               ? '"'
               : '\'';
}

/* Bytes come with their escapes, so that only quotes need another. */
static int put_quoted(brc_buf *out, const brc_buf *text, int is_bytes, brc_error *err)
{
    const char quote = quote_for(text);
    if (is_bytes)
        BRC_TRY(brc_buf_byte(out, 'b', err));
    BRC_TRY(brc_buf_byte(out, (uint8_t)quote, err));
    for (size_t at = 0, len; at < text->len; at += len) {
        len = brc_utf8_step(text->data + at, text->len - at);
        len += len == 0;
        if (!is_bytes)
            BRC_TRY(put_character(out, text->data + at, len, quote, err));
        else if (text->data[at] == (uint8_t)quote)
            BRC_TRY(brc_buf_printf(out, err, "\\%c", quote));
        else
            BRC_TRY(brc_buf_append(out, text->data + at, len, err));
    }
    return brc_buf_byte(out, (uint8_t)quote, err);
}

int brc_dtype_print_quoted(const brc_dtype *type, const uint8_t *element, size_t len, brc_buf *out,
                           brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    if (type->klass != BRC_CLASS_STRING && type->klass != BRC_CLASS_BYTES)
        return type->ops->print(type, element, len, BRC_PRINT_TEXT, out, err);
    int rc = type->ops->print(type, element, len, BRC_PRINT_TEXT, &text, err);
    if (rc == BRC_OK)
        rc = put_quoted(out, &text, type->klass == BRC_CLASS_BYTES, err);
    brc_buf_dispose(&text);
    return rc;
}

size_t brc_printed_quotes(const char *text)
{
    const size_t prefix = text[0] == 'b';
    const char quote = text[prefix];
    if (quote != '\'' && quote != '"')
        return 0;
    for (size_t at = prefix + 1; text[at] != '\0'; at++)
        if (text[at] == quote)
            return at + 1;
        else if (text[at] == '\\' && text[at + 1] != '\0')
            at++;
    return 0;
}

/* So many digits behind \x, \u or \U; 0: it is another escape. */
static size_t digits_of(char c)
{
    return c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
}

/* An escape that nobody knows stands for itself, as in Python. */
static int take_text_escape(brc_buf *out, const char **at, const char *end, brc_error *err)
{
    static const char from[] = "\\'\"nrt", to[] = "\\'\"\n\r\t";
    const char *p = *at + 1, *found = strchr(from, *p);
    const size_t digits = digits_of(*p);
    uint8_t utf8[4];
    unsigned long code = 0;
    size_t n = 0;
    if (found != NULL) {
        *at = p + 1;
        return brc_buf_byte(out, (uint8_t)to[found - from], err);
    }
    for (; n < digits && p + 1 + n < end && strchr("0123456789abcdefABCDEF", p[1 + n]); n++)
        code = code << 4 | (unsigned)((p[1 + n] & 15) + (p[1 + n] > '9' ? 9 : 0));
    if (digits == 0 || n < digits || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
        *at = p;
        return brc_buf_byte(out, '\\', err);
    }
    *at = p + 1 + digits;
    return brc_buf_append(out, utf8, brc_utf8_encode(utf8, (uint32_t)code), err);
}

int brc_printed_unescape(brc_buf *out, int *is, int klass, const char *text, brc_error *err)
{
    const size_t len = strlen(text), prefix = klass == BRC_CLASS_BYTES;
    *is = (klass == BRC_CLASS_STRING || klass == BRC_CLASS_BYTES) && len > 0 &&
          brc_printed_quotes(text) == len && (text[0] == 'b') == (int)prefix;
    const char *at = text + prefix + 1, *end = text + len - 1;
    while (*is && at < end)
        if (*at != '\\')
            BRC_TRY(brc_buf_byte(out, (uint8_t)*at++, err));
        else if (klass == BRC_CLASS_STRING)
            BRC_TRY(take_text_escape(out, &at, end, err));
        else { /* the type reads what is left of a byte's escape */
            const int is_quote = at[1] == '\'' || at[1] == '"';
            BRC_TRY(brc_buf_append(out, at + is_quote, (size_t)(2 - is_quote), err));
            at += 2;
        }
    return *is ? brc_buf_terminate(out, err) : BRC_OK;
}
