/* Texts with "{{...}}" in Kerchunk's references: the simple part of what Jinja understands. */
#include <inttypes.h>
#include <string.h>

#include "kerchunk.h"

#define NESTED_MOST 32

/* An expression that is being evaluated. */
typedef struct ref_expression {
    const char *at, *end, *whole;
    const brc_kerchunk_names *names;
    int depth;
} ref_expression;

/* A value: a text, or (NULL) a number. */
typedef struct ref_value {
    const char *text;
    int64_t number;
} ref_value;

static int not_simple(const ref_expression *x, brc_error *err)
{
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "cannot evaluate {{%.*s}}: only names of templates and dimensions, integers, "
                    "+ - * // %% and parentheses are known here; let kerchunk write the references "
                    "without templates",
                    (int)(x->end - x->whole < 200 ? x->end - x->whole : 200), x->whole);
}

static char next_char(ref_expression *x)
{
    while (x->at < x->end && (*x->at == ' ' || *x->at == '\t' || *x->at == '\n'))
        x->at++;
    return x->at < x->end ? *x->at : 0;
}

static int is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int is_cipher(char c)
{
    return c >= '0' && c <= '9';
}

static int take_integer(ref_value *out, ref_expression *x, brc_error *err)
{
    *out = (ref_value){ NULL, 0 };
    for (; x->at < x->end && is_cipher(*x->at); x->at++)
        if (__builtin_mul_overflow(out->number, 10, &out->number) ||
            __builtin_add_overflow(out->number, *x->at - '0', &out->number))
            return not_simple(x, err);
    return BRC_OK;
}

static int evaluate_name(ref_value *out, ref_expression *x, brc_error *err)
{
    const char *name = x->at, *text;
    while (x->at < x->end && (is_letter(*x->at) || is_cipher(*x->at)))
        x->at++;
    const size_t len = (size_t)(x->at - name);
    for (size_t i = 0; i < x->names->naxes; i++) {
        const brc_kerchunk_axis *axis = &x->names->axes[i];
        if (strlen(axis->name) == len && memcmp(axis->name, name, len) == 0) {
            *out = (ref_value){ NULL, axis->value };
            return BRC_OK;
        }
    }
    for (const brc_json *t = brc_json_first(x->names->templates); t; t = brc_json_next(t)) {
        if (strlen(brc_json_name(t)) != len || memcmp(brc_json_name(t), name, len) != 0)
            continue;
        if (!brc_json_text(t, &text) || strstr(text, "{{") || strstr(text, "{%"))
            return not_simple(x, err); /* a template of a template takes arguments */
        *out = (ref_value){ text, 0 };
        return BRC_OK;
    }
    return brc_fail(err, BRC_EINVAL, "there is no template %.*s", (int)(len < 200 ? len : 200),
                    name);
}

static int take_sum(ref_value *out, ref_expression *x, brc_error *err);

static int take_operand(ref_value *out, ref_expression *x, brc_error *err)
{
    const char c = next_char(x);
    if (is_cipher(c))
        return take_integer(out, x, err);
    if (is_letter(c))
        return evaluate_name(out, x, err);
    if ((c != '-' && c != '(') || ++x->depth > NESTED_MOST)
        return not_simple(x, err);
    x->at++;
    if (c == '-') {
        BRC_TRY(take_operand(out, x, err));
        if (out->text || __builtin_sub_overflow(0, out->number, &out->number))
            return not_simple(x, err);
    } else {
        BRC_TRY(take_sum(out, x, err));
        if (next_char(x) != ')')
            return not_simple(x, err);
        x->at++;
    }
    x->depth--;
    return BRC_OK;
}

/* Divides as Python does: the quotient is rounded down. Returns 0 if there is none. */
static int divide_down(int64_t a, int64_t b, int64_t *quotient, int64_t *rest)
{
    if (b == 0 || (a == INT64_MIN && b == -1))
        return 0;
    *quotient = a / b;
    *rest = a % b;
    if (*rest != 0 && (*rest < 0) != (b < 0)) {
        --*quotient;
        *rest += b;
    }
    return 1;
}

/* Does one operation; returns 0 if its result does not exist. */
static int operate(ref_value *a, char op, ref_value b)
{
    int64_t quotient, rest;
    if (a->text || b.text)
        return 0;
    if (op == '+')
        return !__builtin_add_overflow(a->number, b.number, &a->number);
    if (op == '-')
        return !__builtin_sub_overflow(a->number, b.number, &a->number);
    if (op == '*')
        return !__builtin_mul_overflow(a->number, b.number, &a->number);
    if (!divide_down(a->number, b.number, &quotient, &rest))
        return 0;
    a->number = op == '/' ? quotient : rest;
    return 1;
}

static int take_product(ref_value *out, ref_expression *x, brc_error *err)
{
    ref_value right;
    BRC_TRY(take_operand(out, x, err));
    for (char op = next_char(x); op == '*' || op == '/' || op == '%'; op = next_char(x)) {
        x->at++;
        if (op == '/') {
            if (x->at == x->end || *x->at != '/')
                return not_simple(x, err); /* its result is not an integer */
            x->at++;
        }
        BRC_TRY(take_operand(&right, x, err));
        if (!operate(out, op, right))
            return not_simple(x, err);
    }
    return BRC_OK;
}

static int take_sum(ref_value *out, ref_expression *x, brc_error *err)
{
    ref_value right;
    BRC_TRY(take_product(out, x, err));
    for (char op = next_char(x); op == '+' || op == '-'; op = next_char(x)) {
        x->at++;
        BRC_TRY(take_product(&right, x, err));
        if (!operate(out, op, right))
            return not_simple(x, err);
    }
    return BRC_OK;
}

static int append_result(brc_buf *out, const char *from, const char *end,
                         const brc_kerchunk_names *names, brc_error *err)
{
    ref_expression x = { from, end, from, names, 0 };
    ref_value value;
    BRC_TRY(take_sum(&value, &x, err));
    if (next_char(&x) != 0 || x.at != x.end)
        return not_simple(&x, err);
    return value.text ? brc_buf_text(out, value.text, err)
                      : brc_buf_printf(out, err, "%" PRId64, value.number);
}

int brc_kerchunk_render(brc_buf *out, const char *text, const brc_kerchunk_names *names,
                        brc_error *err)
{
    if (strstr(text, "{%") || strstr(text, "{#"))
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%.200s has a statement of Jinja: let kerchunk write the references "
                        "without templates",
                        text);
    for (const char *open; (open = strstr(text, "{{")) != NULL;) {
        const char *close = strstr(open, "}}");
        if (!close)
            return brc_fail(err, BRC_EINVAL, "%.200s has no }} after its {{", open);
        BRC_TRY(brc_buf_append(out, text, (size_t)(open - text), err));
        BRC_TRY(append_result(out, open + 2, close, names, err));
        text = close + 2;
    }
    return brc_buf_text(out, text, err);
}
