/* Reading and writing NumPy's header, see npy_header.h. */
#include "npy_header.h"

#include <string.h>

#define NPY_NESTING_MAX 64

typedef struct npy_text {
    const char *start, *at, *end;
    brc_error *err;
} npy_text;

static int bad_literal(npy_text *t, const char *what)
{
    return brc_fail(t->err, BRC_EINVAL, "bad .npy header at its byte %zu: %s",
                    (size_t)(t->at - t->start), what);
}

static void skip_blanks(npy_text *t)
{
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\t' || *t->at == '\n' || *t->at == '\r'))
        t->at++;
}

/* 1 and past it where the next character is `c`. */
static int npy_take_char(npy_text *t, char c)
{
    skip_blanks(t);
    if (t->at == t->end || *t->at != c)
        return 0;
    t->at++;
    return 1;
}

static int npy_take_word(npy_text *t, const char *word)
{
    size_t n = strlen(word);
    skip_blanks(t);
    if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n) != 0)
        return 0;
    t->at += n;
    return 1;
}

/* A string in single or double quotes; NumPy never wrote an escape in a key or a simple
 * type. */
static int npy_take_string(npy_text *t, const char **out, size_t *len)
{
    skip_blanks(t);
    if (t->at == t->end || (*t->at != '\'' && *t->at != '"'))
        return bad_literal(t, "a string is expected");
    char quote = *t->at++;
    *out = t->at;
    while (t->at < t->end && *t->at != quote) {
        if (*t->at == '\\' || (unsigned char)*t->at < 0x20)
            return bad_literal(t, "a character that is not allowed in a string");
        t->at++;
    }
    if (t->at == t->end)
        return bad_literal(t, "a string has no end");
    *len = (size_t)(t->at - *out);
    t->at++;
    return BRC_OK;
}

/* Past a quoted string of any content, for the descr of a structured type. */
static int skip_quoted(npy_text *t)
{
    char quote = *t->at++;
    while (t->at < t->end && *t->at != quote)
        t->at += *t->at == '\\' && t->end - t->at > 1 ? 2 : 1;
    if (t->at == t->end)
        return bad_literal(t, "a string has no end");
    t->at++;
    return BRC_OK;
}

/* Past a list or tuple. */
static int skip_nested(npy_text *t)
{
    char closing[NPY_NESTING_MAX];
    int depth = 0;
    do {
        if (t->at == t->end)
            return bad_literal(t, "a list has no end");
        char c = *t->at;
        if (c == '\'' || c == '"') {
            BRC_TRY(skip_quoted(t));
            continue;
        }
        if ((c == '[' || c == '(') && depth == NPY_NESTING_MAX)
            return bad_literal(t, "lists are nested too deeply");
        if (c == '[' || c == '(')
            closing[depth++] = c == '[' ? ']' : ')';
        else if ((c == ']' || c == ')') && closing[--depth] != c)
            return bad_literal(t, "brackets do not match");
        t->at++;
    } while (depth > 0);
    return BRC_OK;
}

static int parse_descr(npy_text *t, brc_npy_header *out)
{
    skip_blanks(t);
    if (t->at < t->end && (*t->at == '[' || *t->at == '(')) {
        out->structured = 1;
        out->descr = t->at;
        BRC_TRY(skip_nested(t));
        out->descr_len = (size_t)(t->at - out->descr);
        return BRC_OK;
    }
    return npy_take_string(t, &out->descr, &out->descr_len);
}

static int parse_order(npy_text *t, brc_npy_header *out)
{
    if (npy_take_word(t, "True"))
        out->fortran = 1;
    else if (!npy_take_word(t, "False"))
        return bad_literal(t, "True or False is expected");
    return BRC_OK;
}

static int take_extent(npy_text *t, uint64_t *out)
{
    skip_blanks(t);
    const char *first = t->at;
    uint64_t value = 0;
    for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*t->at - '0'), &value))
            return brc_fail(t->err, BRC_ELIMIT,
                            "an extent in the .npy header does not fit 64 bits");
    if (t->at == first)
        return bad_literal(t, "a whole number is expected");
    if (*first == '0' && t->at - first > 1)
        return bad_literal(t, "a number begins with 0");
    if (t->at < t->end && *t->at == 'L') /* Python 2 wrote its long integers like this */
        t->at++;
    *out = value;
    return BRC_OK;
}

/* (), (3,), (3, 4), (3, 4, ); (3) is a number to Python, not a tuple. */
static int parse_shape(npy_text *t, brc_npy_header *out)
{
    int comma = 1;
    if (!npy_take_char(t, '('))
        return bad_literal(t, "a tuple is expected");
    while (!npy_take_char(t, ')')) {
        if (!comma)
            return bad_literal(t, "a comma is expected");
        if (out->ndim == BRC_MAX_NDIM)
            return brc_fail(t->err, BRC_ELIMIT, "the array has more than %d axes", BRC_MAX_NDIM);
        BRC_TRY(take_extent(t, &out->shape[out->ndim]));
        out->ndim++;
        comma = npy_take_char(t, ',');
    }
    if (out->ndim == 1 && !comma)
        return bad_literal(t, "a tuple of one needs a comma");
    return BRC_OK;
}

static int parse_member(npy_text *t, brc_npy_header *out, unsigned *seen)
{
    static const char *const keys[] = { "descr", "fortran_order", "shape" };
    static int (*const values[])(npy_text *, brc_npy_header *) = { parse_descr, parse_order,
                                                                   parse_shape };
    const char *key;
    size_t len;

    BRC_TRY(npy_take_string(t, &key, &len));
    for (unsigned i = 0; i < 3; i++) {
        if (strlen(keys[i]) != len || memcmp(keys[i], key, len) != 0)
            continue;
        if (*seen & 1U << i)
            return bad_literal(t, "a key is there twice");
        *seen |= 1U << i;
        if (!npy_take_char(t, ':'))
            return bad_literal(t, "a colon is expected");
        return values[i](t, out);
    }
    return bad_literal(t, "a key other than descr, fortran_order and shape");
}

int brc_npy_header_parse(brc_npy_header *out, const char *text, size_t len, brc_error *err)
{
    npy_text t = { text, text, text + len, err };
    unsigned seen = 0;
    int comma = 1;

    memset(out, 0, sizeof(*out));
    if (!npy_take_char(&t, '{'))
        return bad_literal(&t, "a dictionary is expected");
    while (!npy_take_char(&t, '}')) {
        if (!comma)
            return bad_literal(&t, "a comma is expected");
        BRC_TRY(parse_member(&t, out, &seen));
        comma = npy_take_char(&t, ',');
    }
    if (seen != 7)
        return bad_literal(&t, "descr, fortran_order or shape is missing");
    skip_blanks(&t);
    if (t.at != t.end)
        return bad_literal(&t, "there is text after the dictionary");
    return BRC_OK;
}

static int write_dictionary(brc_buf *out, const char *descr, int ndim, const uint64_t *shape,
                            brc_error *err)
{
    const char *quote = descr[0] == '[' ? "" : "'"; /* a list of fields stands as it is */
    BRC_TRY(brc_buf_text(out, "{'descr': ", err));
    BRC_TRY(brc_buf_text(out, quote, err));
    BRC_TRY(brc_buf_text(out, descr, err));
    BRC_TRY(brc_buf_text(out, quote, err));
    BRC_TRY(brc_buf_text(out, ", 'fortran_order': False, 'shape': (", err));
    for (int i = 0; i < ndim; i++)
        BRC_TRY(
            brc_buf_printf(out, err, "%s%llu", i > 0 ? ", " : "", (unsigned long long)shape[i]));
    return brc_buf_text(out, ndim == 1 ? ",), }" : "), }", err);
}

int brc_npy_header_write(brc_buf *out, const char *descr, int ndim, const uint64_t *shape,
                         brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    uint8_t prefix[BRC_NPY_MAGIC_LEN + 6] = BRC_NPY_MAGIC;
    size_t prefix_len = BRC_NPY_MAGIC_LEN + 4;
    int rc;

    BRC_GO(write_dictionary(&text, descr, ndim, shape, err));
    if (prefix_len + text.len + 64 > UINT16_MAX)
        prefix_len += 2;
    while ((prefix_len + text.len + 1) % 64 != 0)
        BRC_GO(brc_buf_byte(&text, ' ', err));
    BRC_GO(brc_buf_byte(&text, '\n', err));
    prefix[BRC_NPY_MAGIC_LEN] = prefix_len == BRC_NPY_MAGIC_LEN + 4 ? 1 : 2;
    uint8_t length[4];
    brc_put_u32le(length, (uint32_t)text.len);
    memcpy(prefix + BRC_NPY_MAGIC_LEN + 2, length, prefix_len - BRC_NPY_MAGIC_LEN - 2);
    BRC_GO(brc_buf_append(out, prefix, prefix_len, err));
    BRC_GO(brc_buf_append(out, text.data, text.len, err));
done:
    brc_buf_dispose(&text);
    return rc;
}
