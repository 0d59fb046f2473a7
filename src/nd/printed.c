/* Elements as they are printed for people, where JSON writes them otherwise: NumPy's words. */
#include <string.h>

#include "../base/alloc.h"
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
