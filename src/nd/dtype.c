/*
 * The operations that work alike for all data types.
 *
 * An element in canonical form is little-endian and packed; complex numbers are
 * real part, then imaginary part, each with its own byte order.
 */
#include "dtype.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/buf.h"
#include "dtype_ops.h"

static int printed_json(brc_json **out, int klass, const char *text, brc_error *err);
static int printed_unescape(brc_buf *out, int *is, int klass, const char *text, brc_error *err);
static int printed_unquote(char **out, const char *text, brc_error *err);

/* ==== dtype ================================ */

/* A plug-in that was built against an older header has a shorter table. */
#define OPS_HAVE(ops, member)                                                       \
    ((ops)->size >= offsetof(brc_dtype_ops, member) + sizeof((ops)->member) &&      \
     (ops)->member != NULL)

/* ---- values -------------------------------- */

/* Parses the text if it is JSON; otherwise *out is NULL, and BRC_EINVAL is not a failure. */
static int text_as_json(brc_json **out, const char *text, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    int rc = brc_json_parse(out, text, strlen(text), 0, &why);
    if (rc < 0 && rc != BRC_EINVAL && err != NULL)
        brc_error_copy(err, &why);
    return rc == BRC_EINVAL ? BRC_OK : rc;
}

/* Appends the element that the type reads from *value, or from the text as a JSON string. */
static int scan_text(const brc_dtype *type, brc_json **value, const char *text, brc_buf *out,
                     brc_error *err)
{
    int taken = OPS_HAVE(type->ops, scan) ? type->ops->scan(type, text, *value, out, err) : 0;
    if (taken != 0)
        return taken < 0 ? taken : BRC_OK;
    if (*value == NULL) {
        BRC_TRY(brc_text_is_utf8(type, text, err));
        *value = brc_json_new_string(text);
        if (*value == NULL)
            return brc_nomem(err);
    }
    return type->ops->parse(type, *value, out, err);
}

/* Reads a text in quotes. A string becomes a JSON string, which may contain U+0000. */
static int scan_quoted(const brc_dtype *type, const brc_buf *bare, brc_buf *out, brc_error *err)
{
    brc_json *value = NULL;
    brc_buf json = BRC_BUF_INIT;
    int rc;
    if (type->klass == BRC_CLASS_STRING) {
        BRC_GO(brc_json_quote(&json, (const char *)bare->data, bare->len, err));
        BRC_GO(brc_json_parse(&value, (const char *)json.data, json.len, 0, err));
    }
    rc = scan_text(type, &value, (const char *)bare->data, out, err);
done:
    brc_buf_dispose(&json);
    brc_json_free(value);
    return rc;
}

static int scan_bare(const brc_dtype *type, const char *text, brc_buf *out, brc_error *err)
{
    brc_json *value = NULL;
    char *bare = NULL;
    int rc;
    if (type->klass == BRC_CLASS_TIME)
        BRC_GO(printed_unquote(&bare, text, err));
    if (bare != NULL)
        text = bare;
    BRC_GO(text_as_json(&value, text, err));
    if (type->klass == BRC_CLASS_COMPLEX && brc_json_kind(value) == BRC_JSON_NUMBER) {
        brc_json_free(value); /* it has no imaginary part */
        value = NULL;
    }
    if (value == NULL)
        BRC_GO(printed_json(&value, type->klass, text, err));
    rc = scan_text(type, &value, text, out, err);
done:
    free(bare);
    brc_json_free(value);
    return rc;
}

/* Reads an element from text. JSON in double quotes is read as JSON, whose escapes are the same
 * except for \x and \U. */
int brc_dtype_parse_text(const brc_dtype *type, const char *text, brc_buf *out, brc_error *err)
{
    brc_buf bare = BRC_BUF_INIT;
    brc_json *json = NULL;
    int rc, is_quoted = 0;
    BRC_GO(text_as_json(&json, text, err));
    if (json == NULL)
        BRC_GO(printed_unescape(&bare, &is_quoted, type->klass, text, err));
    rc = is_quoted ? scan_quoted(type, &bare, out, err) : scan_bare(type, text, out, err);
done:
    brc_json_free(json);
    brc_buf_dispose(&bare);
    return rc;
}

int brc_dtype_default(const brc_dtype *type, brc_buf *out, brc_error *err)
{
    size_t len = type->item_size > 0 ? type->item_size : 4; /* no bytes: only their count */
    BRC_TRY(brc_buf_reserve(out, len, err));
    memset(out->data + out->len, 0, len);
    out->len += len;
    return BRC_OK;
}

/* ---- byte order and canonical form -------------------------------- */

/* One loop per width, so that the compiler can use vectors. */
#define SWAP_LOOP(type_, swap)                                 \
    do {                                                       \
        for (size_t at = 0; at < whole; at += sizeof(type_)) { \
            type_ v;                                           \
            memcpy(&v, src + at, sizeof(v));                   \
            v = swap(v);                                       \
            memcpy(dst + at, &v, sizeof(v));                   \
        }                                                      \
    } while (0)

void brc_swap_units(uint8_t *dst, const uint8_t *src, size_t len, size_t unit)
{
    if (len == 0)
        return;
    size_t whole = unit > 1 ? len - len % unit : 0;
    if (unit == 2) {
        SWAP_LOOP(uint16_t, __builtin_bswap16);
    } else if (unit == 4) {
        SWAP_LOOP(uint32_t, __builtin_bswap32);
    } else if (unit == 8) {
        SWAP_LOOP(uint64_t, __builtin_bswap64);
    } else {
        for (size_t at = 0; at < whole; at += unit) {
            for (size_t i = 0, j = unit - 1; i <= j; i++, j--) {
                uint8_t first = src[at + i], last = src[at + j];
                dst[at + i] = last;
                dst[at + j] = first;
            }
        }
    }
    if (dst != src && whole < len)
        memcpy(dst + whole, src + whole, len - whole);
}

void brc_dtype_swap(const brc_dtype *type, uint8_t *dst, const uint8_t *src, size_t n)
{
    if (OPS_HAVE(type->ops, swap))
        type->ops->swap(type, dst, src, n);
    else
        brc_swap_units(dst, src, n * type->item_size, type->swap_unit);
}

int brc_dtype_normalize(const brc_dtype *type, uint8_t *data, size_t n)
{
    const int can = OPS_HAVE(type->ops, normalize);
    if (can && n > 0)
        type->ops->normalize(type, data, n);
    return can;
}

void brc_dtype_native(const brc_dtype *type, uint8_t *data, size_t len)
{
    if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ && type->swap_unit > 1 && type->item_size > 0)
        brc_dtype_swap(type, data, data, len / type->item_size);
}

/* ==== named ================================ */

/* Reads the form that names an extension; see dtype.h. */

static int named_must_understand(brc_named *out, const brc_json *json, brc_error *err)
{
    const brc_json *member = brc_json_member(json, "must_understand");
    int value = 1;

    if (member != NULL && !brc_json_bool(member, &value))
        return brc_fail(err, BRC_EINVAL, "\"must_understand\" must be true or false");
    out->may_ignore = !value;
    return BRC_OK;
}

static int read_name(const char **out, const brc_json *json, brc_error *err)
{
    if (brc_json_text(json, out))
        return BRC_OK;
    if (brc_json_kind(json) == BRC_JSON_STRING)
        return brc_fail(err, BRC_EINVAL, "a name with U+0000 in it is not valid");
    return brc_fail(err, BRC_EINVAL, "the member \"name\" must be given as a string");
}

int brc_named_read(brc_named *out, const brc_json *json, brc_error *err)
{
    static const char *const members[] = { "name", "configuration", "must_understand" };

    *out = (brc_named){ "", NULL, 0 };
    if (brc_json_kind(json) == BRC_JSON_STRING)
        return read_name(&out->name, json, err);
    if (brc_json_kind(json) != BRC_JSON_OBJECT)
        return brc_fail(
            err, BRC_EINVAL,
            "a name is expected here, or an object with \"name\" and \"configuration\"");
    BRC_TRY(brc_json_allow(json, members, sizeof(members) / sizeof(members[0]), err));
    BRC_TRY(read_name(&out->name, brc_json_member(json, "name"), err));
    const brc_json *config = brc_json_member(json, "configuration");
    if (config != NULL && brc_json_kind(config) != BRC_JSON_OBJECT)
        return brc_fail(err, BRC_EINVAL, "the \"configuration\" of \"%s\" must be an object",
                        out->name);
    out->config = config;
    return named_must_understand(out, json, err);
}

/* ==== registrar ================================ */

int brc_registrar_admit(const brc_registrar *by, const char *what, const char *name, brc_error *err)
{
    if (name == NULL || name[0] == '\0' || !brc_utf8_valid(name, strlen(name)))
        return brc_fail(err, BRC_EINVAL, "a %s needs a name, in UTF-8", what);
    if (atomic_load(&by->frozen))
        return brc_fail(err, BRC_EMISUSE,
                        "the %s \"%s\" comes too late: the registry is in use; add to it before "
                        "the first brc_open()",
                        what, name);
    return BRC_OK;
}

/* Makes the origin; a plug-in that does not give a name is known by its path. */
int brc_origin_make(brc_origin *out, const brc_registrar *by, const char *owner, brc_error *err)
{
    *out = (brc_origin){ by->core, by->plugin, NULL };
    if (owner == NULL)
        owner = by->loading;
    return owner != NULL ? brc_dup(&out->owner, owner, err) : BRC_OK;
}

void brc_origin_dispose(brc_origin *origin)
{
    free(origin->owner);
    origin->owner = NULL;
}

static const char *origin_text(const brc_origin *origin, const char *own)
{
    if (origin->core)
        return own;
    return origin->owner != NULL ? origin->owner : "a plug-in";
}

const char *brc_origin_name(const brc_origin *origin)
{
    return origin_text(origin, "breccia");
}

const char *brc_origin_words(const brc_origin *origin)
{
    return origin_text(origin, "breccia itself");
}

void brc_table_copy(void *dst, size_t dst_size, const void *src, size_t src_size)
{
    memset(dst, 0, dst_size);
    memcpy(dst, src, src_size < dst_size ? src_size : dst_size);
}

/* ==== printed ================================ */

/* Elements printed for people in NumPy's words, where JSON differs. */

/* Returns JSON's word for a text that is not a finite number, in NumPy's words or JSON's; NULL for
 * all other texts. */
static const char *json_word(const char *text, size_t len)
{
    static const char *const words[][2] = {
        { "nan", "NaN" },           { "NaN", "NaN" },
        { "inf", "Infinity" },      { "-inf", "-Infinity" },
        { "Infinity", "Infinity" }, { "-Infinity", "-Infinity" }
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

/* Finds the sign between the real and the imaginary part; 0: there is no real part. */
static size_t sign_between(const char *text, size_t len)
{
    for (size_t i = len; i-- > 1;)
        if ((text[i] == '+' || text[i] == '-') && text[i - 1] != 'e' && text[i - 1] != 'E')
            return i;
    return 0;
}

/* Appends "(1+2j)", "2j" and "1" as [1,2], [0,2] and [1,0]. */
static int complex_as_json(brc_buf *out, const char *text, brc_error *err)
{
    size_t len = strlen(text);
    const int in_brackets = len > 2 && text[0] == '(' && text[len - 1] == ')';
    text += in_brackets;
    len -= 2 * (size_t)in_brackets;
    if (len == 0 || text[0] == '[' || text[0] == '"')
        return BRC_OK;
    if (len < 2 || text[len - 1] != 'j') {
        BRC_TRY(brc_buf_byte(out, '[', err));
        BRC_TRY(put_part(out, text, len, err));
        return brc_buf_text(out, ",0]", err);
    }
    size_t at = sign_between(text, --len);
    size_t imaginary = at + (text[at] == '+');
    BRC_TRY(brc_buf_byte(out, '[', err));
    BRC_TRY(at > 0 ? put_part(out, text, at, err) : brc_buf_byte(out, '0', err));
    BRC_TRY(brc_buf_byte(out, ',', err));
    BRC_TRY(put_part(out, text + imaginary, len - imaginary, err));
    return brc_buf_byte(out, ']', err);
}

/* Reads text that `read` prints in another form than JSON: *out is the JSON value of "True",
 * "nan", "-inf" or "(1+2j)" for a type of this class, and NULL for all other texts. */
static int printed_json(brc_json **out, int klass, const char *text, brc_error *err)
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
        rc = brc_json_parse(out, (const char *)json.data, json.len, 0, &why);
    if (rc == BRC_EINVAL) /* not a printed form: the type's own message is better */
        rc = BRC_OK;
    else if (rc < 0 && err != NULL)
        brc_error_copy(err, &why);
done:
    brc_buf_dispose(&json);
    return rc;
}

/* Sets *out to the text inside the quotes, single or double, around the whole text, or to NULL if
 * there are none. */
static int printed_unquote(char **out, const char *text, brc_error *err)
{
    size_t len = strlen(text);
    *out = NULL;
    if (len < 2 || (text[0] != '\'' && text[0] != '"') || text[len - 1] != text[0])
        return BRC_OK;
    return brc_dup_n(out, text + 1, len - 2, err);
}

/* ---- quotes -------------------------------- */

/* Returns whether a terminal obeys the character instead of showing it: controls, ends of lines,
 * and the marks that change the direction of writing. */
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

/* Returns the quote that Python uses: single, unless the text has single quotes and no double
 * ones. */
static char quote_for(const brc_buf *text)
{
    return text->len > 0 && memchr(text->data, '\'', text->len) != NULL &&
                   memchr(text->data, '"', text->len) == NULL
               ? '"'
               : '\'';
}

/* Appends a text in quotes. Bytes come with their escapes, so only their quotes need one. */
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

int brc_dtype_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                    int has_fields, brc_buf *out, brc_error *err)
{
    if (how == BRC_PRINT_DATED && type->klass == BRC_CLASS_TIME) {
        BRC_TRY(brc_buf_byte(out, '"', err));
        BRC_TRY(type->ops->print(type, element, len, BRC_PRINT_TEXT, out, err));
        return brc_buf_byte(out, '"', err);
    }
    if (how == BRC_PRINT_DATED && !has_fields)
        how = BRC_PRINT_JSON;
    return type->ops->print(type, element, len, how, out, err);
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

/* Returns the number of digits after \x, \u or \U; 0 for other escapes. */
static size_t digits_of(char c)
{
    return c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
}

/* Reads an escape. An unknown escape stands for itself, as in Python. */
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

/* Sets *is to 1 if the whole text is in quotes as brc_dtype_print_quoted() writes it for this
 * class. Then appends the text without quotes and escapes, except the escapes of bytes, and puts a
 * NUL after out->len. */
static int printed_unescape(brc_buf *out, int *is, int klass, const char *text, brc_error *err)
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
        else { /* the type reads the rest of a byte's escape */
            const int is_quote = at[1] == '\'' || at[1] == '"';
            BRC_TRY(brc_buf_append(out, at + is_quote, (size_t)(2 - is_quote), err));
            at += 2;
        }
    return *is ? brc_buf_terminate(out, err) : BRC_OK;
}

/* ==== dtype check ================================ */

/* Checks that data types share, and the names of values in error messages. */

int brc_dtype_no_config(const char *name, const brc_json *config, brc_error *err)
{
    int kind = brc_json_kind(config);
    if (kind == BRC_JSON_ABSENT)
        return BRC_OK;
    if (kind != BRC_JSON_OBJECT)
        return brc_fail(err, BRC_EINVAL, "the configuration of data type %s is not an object",
                        name);
    if (brc_json_count(config) > 0)
        return brc_fail(err, BRC_EINVAL,
                        "data type %s has no configuration, but \"%.80s\" is given", name,
                        brc_json_name(brc_json_item(config, 0)));
    return BRC_OK;
}

int brc_element_length_fits(const brc_dtype *type, size_t len, brc_error *err)
{
    if (len != type->item_size)
        return brc_fail(err, BRC_EINVAL, "an element of %s has %zu bytes, not %zu", type->name,
                        type->item_size, len);
    return BRC_OK;
}

int brc_text_is_utf8(const brc_dtype *type, const char *text, brc_error *err)
{
    if (!brc_utf8_valid(text, strlen(text)))
        return brc_fail(err, BRC_EINVAL, "the value for %s is not UTF-8 text", type->name);
    return BRC_OK;
}

/* Copies a text as far as it fits on one line, in whole UTF-8 characters, with "..." at a cut. */
static void label_text(char *out, size_t room, const char *text)
{
    size_t len = strlen(text);
    int cut = len >= room;
    if (cut) {
        len = room - 4;
        while (len > 0 && ((uint8_t)text[len] & 0xC0) == 0x80)
            len--;
    }
    for (size_t i = 0; i < len; i++)
        out[i] = (uint8_t)text[i] < 0x20 || text[i] == 0x7f ? ' ' : text[i];
    memcpy(out + len, cut ? "..." : "", cut ? 4 : 1);
}

const char *brc_value_label(char out[BRC_VALUE_LABEL], const brc_json *value)
{
    const char *text;
    int truth;
    switch (brc_json_kind(value)) {
    case BRC_JSON_NULL: return "null";
    case BRC_JSON_BOOL: return brc_json_bool(value, &truth) && truth ? "true" : "false";
    case BRC_JSON_NUMBER: label_text(out, BRC_VALUE_LABEL, brc_json_literal(value)); return out;
    case BRC_JSON_STRING:
        out[0] = '"';
        if (!brc_json_text(value, &text))
            text = "\\u0000"; /* stands for a text with U+0000, which is not a C string */
        label_text(out + 1, BRC_VALUE_LABEL - 2, text);
        memcpy(out + strlen(out), "\"", 2);
        return out;
    case BRC_JSON_ARRAY: return "[...]";
    case BRC_JSON_OBJECT: return "{...}";
    default: return "that is absent";
    }
}

/* ==== dtype registry ================================ */

/*
 * Data types by name, and the rules by which they are added.
 *
 * Invariant: a name means one specification for as long as the registry lives.
 * No entry is replaced, and every table is copied, so that a plug-in may change
 * its own copy later without any effect here.
 */

/* Finds the data type that the name means: first the type with this name, then families in
 * the order in which they were added. Returns NULL if there is none. */
static const brc_dtype_slot *dtype_registry_find(const brc_dtype_registry *types,
                                                 const char *name)
{
    for (size_t i = 0; i < types->n; i++)
        if (strcmp(types->slots[i]->spec.name, name) == 0)
            return types->slots[i];
    for (size_t i = 0; i < types->n; i++) {
        const brc_dtype_spec *spec = &types->slots[i]->spec;
        if (spec->match != NULL && spec->match(spec->ctx, name))
            return types->slots[i];
    }
    return NULL;
}

/* ---- adding ------------------------------------------------------------------------- */

static int dtype_slot_new(brc_dtype_slot **out, const brc_registrar *by, const brc_dtype_spec *spec,
                          brc_error *err)
{
    brc_dtype_slot *slot = NULL;
    char *name = NULL;
    int rc;

    BRC_GO(brc_new((void **)&slot, sizeof(*slot), err));
    BRC_GO(brc_dup(&name, spec->name, err));
    BRC_GO(brc_origin_make(&slot->origin, by, spec->owner, err));
    slot->spec = *spec;
    slot->spec.name = name;
    slot->spec.owner = slot->origin.owner;
    *out = slot;
    return BRC_OK;
done:
    free(name);
    free(slot);
    return rc;
}

static int dtype_put(brc_dtype_registry *types, const brc_registrar *by, const brc_dtype_spec *spec,
                     brc_error *err)
{
    BRC_TRY(brc_registrar_admit(by, "data type", spec->name, err));
    if (spec->size < offsetof(brc_dtype_spec, close) || spec->open == NULL)
        return brc_fail(err, BRC_EINVAL, "the data type \"%s\" lacks its open function",
                        spec->name);
    const brc_dtype_slot *taken = dtype_registry_find(types, spec->name);
    if (taken != NULL)
        return brc_fail(err, BRC_EEXISTS, "the data type \"%s\" is already registered: \"%s\" from "
                                          "%s",
                        spec->name, taken->spec.name, brc_origin_words(&taken->origin));
    BRC_TRY(brc_grow_array((void **)&types->slots, &types->cap, types->n + 1,
                           sizeof(*types->slots), err));
    BRC_TRY(dtype_slot_new(&types->slots[types->n], by, spec, err));
    types->n++;
    return BRC_OK;
}

int brc_dtype_registry_add(brc_dtype_registry *types, const brc_registrar *by,
                           const brc_dtype_spec *spec, brc_error *err)
{
    brc_dtype_spec copy;

    brc_table_copy(&copy, sizeof(copy), spec, spec->size);
    int rc = dtype_put(types, by, &copy, err);
    if (rc < 0 && copy.destroy != NULL)
        copy.destroy(copy.ctx);
    return rc;
}

/* ---- taking out --------------------------------------------------------------------- */

static void dtype_slot_free(brc_dtype_slot *slot)
{
    if (slot->spec.destroy != NULL)
        slot->spec.destroy(slot->spec.ctx);
    free((void *)(uintptr_t)slot->spec.name);
    brc_origin_dispose(&slot->origin);
    free(slot);
}

void brc_dtype_registry_take_back(brc_dtype_registry *types, size_t plugin)
{
    size_t kept = 0;

    for (size_t i = 0; i < types->n; i++) {
        if (types->slots[i]->origin.plugin == plugin)
            dtype_slot_free(types->slots[i]);
        else
            types->slots[kept++] = types->slots[i];
    }
    types->n = kept;
}

void brc_dtype_registry_dispose(brc_dtype_registry *types)
{
    for (size_t i = 0; i < types->n; i++)
        dtype_slot_free(types->slots[i]);
    free(types->slots);
    *types = (brc_dtype_registry){ NULL, 0, 0 };
}

/* ==== dtype open ================================ */

/*
 * Opening a data type by its name, and the list of all data types.
 *
 * Invariant: an open data type has one spelling: a bare string where it has no
 * configuration, else an object with its name and configuration.
 */

struct open_dtype {
    brc_dtype type; /* first: callers get a pointer to this member               */
    const brc_dtype_slot *slot;
    char *json;
};

static int dtype_write_json(brc_buf *out, const char *name, const brc_json *config, brc_error *err)
{
    if (brc_json_count(config) == 0)
        return brc_json_quote(out, name, strlen(name), err);
    BRC_TRY(brc_buf_text(out, "{\"name\":", err));
    BRC_TRY(brc_json_quote(out, name, strlen(name), err));
    BRC_TRY(brc_buf_text(out, ",\"configuration\":", err));
    BRC_TRY(brc_json_write(out, config, 0, err));
    return brc_buf_text(out, "}", err);
}

/* Appends the type's own form if the type has one, because a configuration may have several
 * spellings; otherwise the name and the configuration. */
static int dtype_own_json(brc_buf *out, const brc_dtype *type, const brc_json *config,
                          brc_error *err)
{
    if (type->json != NULL)
        return brc_buf_text(out, type->json, err);
    return dtype_write_json(out, type->name, config, err);
}

/* Checks a plug-in's description once, so that no later division is by zero. */
static int dtype_check(const brc_dtype *type, const char *name, brc_error *err)
{
    int whole_units =
        type->swap_unit >= 1 && (type->item_size == 0 || type->item_size % type->swap_unit == 0);

    if (type->name == NULL || type->ops == NULL || type->ops->parse == NULL ||
        type->ops->print == NULL || !whole_units)
        return brc_fail(err, BRC_EINVAL,
                        "the data type \"%s\" is registered with an incomplete description", name);
    return BRC_OK;
}

int brc_dtype_bind(brc_dtype **out, const brc_registry *reg, const brc_dtype_slot *slot,
                   const char *name, const brc_json *config, brc_error *err)
{
    struct open_dtype *open = NULL;
    brc_buf json = BRC_BUF_INIT;
    int opened = 0, rc;

    BRC_GO(brc_new((void **)&open, sizeof(*open), err));
    open->slot = slot;
    open->type.size = sizeof(open->type);
    open->type.registry = reg;
    BRC_GO(slot->spec.open(slot->spec.ctx, &open->type, name, config, err));
    opened = 1;
    open->type.registry = reg;
    BRC_GO(dtype_check(&open->type, name, err));
    BRC_GO(dtype_own_json(&json, &open->type, config, err));
    BRC_GO(brc_buf_take_text(&json, &open->json, err));
    open->type.json = open->json;
    *out = &open->type;
    return BRC_OK;
done:
    brc_buf_dispose(&json);
    if (opened)
        brc_dtype_free(&open->type);
    else
        free(open);
    return rc;
}

static int open_by_name(brc_dtype **out, const brc_registry *reg, const char *name, brc_error *err)
{
    const brc_dtype_slot *slot = dtype_registry_find(brc_dtypes_of(reg), name);

    *out = NULL;
    if (slot == NULL)
        return brc_fail(err, BRC_EUNSUPPORTED, "the data type \"%s\" is not known to this build",
                        name);
    return brc_dtype_bind(out, reg, slot, name, NULL, err);
}

int brc_dtype_open(brc_dtype **out, const brc_registry *reg, const brc_json *json, const char *name,
                   brc_error *err)
{
    brc_named named;

    *out = NULL;
    if (json == NULL && name != NULL)
        return open_by_name(out, reg, name, err);
    int rc = brc_named_read(&named, json, err);
    if (rc < 0) {
        brc_context(err, "data type");
        return rc;
    }
    if (named.may_ignore)
        return brc_fail(err, BRC_EINVAL,
                        "the data type \"%s\" cannot have \"must_understand\": false",
                        named.name);
    const brc_dtype_slot *slot = dtype_registry_find(brc_dtypes_of(reg), named.name);
    if (slot == NULL)
        return brc_fail(err, BRC_EUNSUPPORTED, "the data type \"%s\" is not known to this build",
                        named.name);
    return brc_dtype_bind(out, reg, slot, named.name, named.config, err);
}

void brc_dtype_free(brc_dtype *type)
{
    if (type == NULL)
        return;
    struct open_dtype *open = (struct open_dtype *)type;
    const brc_dtype_spec *spec = &open->slot->spec;
    if (spec->close != NULL)
        spec->close(spec->ctx, type);
    free(open->json);
    free(open);
}

/* ---- the list ------------------------------------------------------------------------ */

static const char *dtype_class_name(int klass)
{
    static const char *const names[] = { "",       "bool",  "int",  "uint",   "float", "complex",
                                         "raw",    "string", "bytes", "time", "struct",
                                         "optional" };

    return klass > 0 && (size_t)klass < sizeof(names) / sizeof(names[0]) ? names[klass] : "";
}

/* A type that needs a configuration does not open by its name alone. */
int brc_registry_each_dtype(const brc_registry *reg, size_t i, brc_dtype **open,
                            brc_dtype_info *out, brc_error *err)
{
    *open = NULL;
    if (i >= brc_dtypes_of(reg)->n)
        return 0;
    const brc_dtype_slot *slot = brc_dtypes_of(reg)->slots[i];
    *out = (brc_dtype_info){
        .name = slot->spec.name,
        .kind = "",
        .flags = BRC_DTYPE_CONFIGURED | (slot->spec.match != NULL ? BRC_DTYPE_FAMILY : 0),
        .owner = brc_origin_name(&slot->origin),
    };
    int rc = slot->spec.match != NULL
                 ? BRC_EINVAL
                 : brc_dtype_bind(open, reg, slot, slot->spec.name, NULL, err);
    if (rc == BRC_ENOMEM)
        return rc;
    if (rc < 0)
        return 1;
    out->kind = dtype_class_name((*open)->klass);
    out->item_size = (*open)->item_size;
    out->npy = (*open)->npy;
    out->flags &= ~(uint32_t)BRC_DTYPE_CONFIGURED;
    return 1;
}
