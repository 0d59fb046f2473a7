/* The conformance test of a data type; see type_kit.h. */
#include "type_kit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/json.h"
#include "../../src/nd/dtype.h"
#include "codec_kit.h"

enum { TYPE_KIT_ROUNDS = 4000, TYPE_KIT_TEXT = 24 };

struct type_case {
    const type_kit *kit;
    const brc_dtype *type;
    uint64_t random;
    unsigned long tried, refused;
    brc_buf text, again;
    char *why;
    size_t why_size;
};

static int type_fail(const struct type_case *c, brc_span element, const char *format, ...)
    BRC_PRINTF(3, 4);

static int type_fail(const struct type_case *c, brc_span element, const char *format, ...)
{
    char what[260], hex[65] = "";
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    for (size_t i = 0; i < element.len && i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", element.data[i]);
    snprintf(c->why, c->why_size, "%s, element %s, seed %llu: %s", c->kit->type, hex,
             (unsigned long long)c->kit->seed, what);
    return 1;
}

/* ---- one element -------------------------------------------------------------------- */

/* Parsed as JSON, and by the type where `out` is there. */
static int type_read(struct type_case *c, brc_buf *out, brc_error *err)
{
    brc_json *json = NULL;
    int rc = brc_json_parse(&json, (const char *)c->text.data, c->text.len, 0, err);

    if (rc == BRC_OK && out != NULL)
        rc = c->type->ops->parse(c->type, json, out, err);
    brc_json_free(json);
    return rc;
}

static int type_print(struct type_case *c, brc_span element, int how, brc_error *err)
{
    c->text.len = 0;
    return c->type->ops->print(c->type, element.data, element.len, how, &c->text, err);
}

/* The text of an element can be typed back, but for the bits of a NaN. */
static int type_check_text(struct type_case *c, brc_span element)
{
    brc_error err = BRC_ERROR_INIT;

    c->text.len = 0;
    if (type_print(c, element, BRC_PRINT_TEXT, &err) < 0)
        return type_fail(c, element, "it does not print as text: %s", err.message);
    c->text.len = 0;
    if (brc_dtype_print_quoted(c->type, element.data, element.len, &c->text, &err) < 0)
        return type_fail(c, element, "it does not print in quotes: %s", err.message);
    if (memchr(c->text.data, 0, c->text.len) != NULL)
        return type_fail(c, element, "a NUL is printed as it is");
    c->again.len = 0;
    if (brc_buf_terminate(&c->text, &err) < 0)
        return type_fail(c, element, "no memory for the test itself");
    const char *text = (const char *)c->text.data;
    if (brc_dtype_parse_text(c->type, text, &c->again, &err) < 0)
        return type_fail(c, element, "\"%s\" is printed, and cannot be typed: %s", text,
                         err.message);
    if (c->again.len == element.len && (memcmp(c->again.data, element.data, element.len) == 0 ||
                                        strstr(text, "nan") != NULL))
        return 0;
    return type_fail(c, element, "\"%s\" is printed, and is something else when it is typed", text);
}

static int type_check_element(struct type_case *c, brc_span element)
{
    brc_error err = BRC_ERROR_INIT;
    int rc = type_print(c, element, BRC_PRINT_FILL, &err);

    c->tried++;
    if (rc < 0) {
        c->refused++;
        return err.message[0] != '\0' ? 0 : type_fail(c, element, "print fails without a message");
    }
    c->again.len = 0;
    if (type_read(c, &c->again, &err) < 0)
        return type_fail(c, element, "%.*s is printed, and does not parse: %s", (int)c->text.len,
                         (const char *)c->text.data, err.message);
    if (c->again.len != element.len || memcmp(c->again.data, element.data, element.len) != 0)
        return type_fail(c, element, "%.*s is printed, and parses to something else",
                         (int)c->text.len, (const char *)c->text.data);
    if (type_print(c, element, BRC_PRINT_JSON, &err) < 0 || type_read(c, NULL, &err) < 0)
        return type_fail(c, element, "what is printed as JSON is none: %s", err.message);
    if (type_check_text(c, element))
        return 1;
    if (c->type->ops->number != NULL)
        c->type->ops->number(c->type, element.data);
    return 0;
}

static int type_check_fixed(struct type_case *c, uint8_t *element)
{
    size_t size = c->type->item_size;
    uint8_t *other = malloc(2 * size);
    int bad;

    if (other == NULL)
        return type_fail(c, (brc_span){ element, size }, "no memory for the test itself");
    brc_dtype_normalize(c->type, element, 1);
    brc_dtype_swap(c->type, other, element, 1);
    brc_dtype_swap(c->type, other + size, other, 1);
    bad = memcmp(other + size, element, size) != 0
              ? type_fail(c, (brc_span){ element, size }, "swapped twice, it is another")
              : type_check_element(c, (brc_span){ element, size });
    free(other);
    return bad;
}

/* ---- which elements ----------------------------------------------------------------- */

static int type_run_fixed(struct type_case *c)
{
    size_t size = c->type->item_size;
    unsigned long rounds = size == 1 ? 256 : size == 2 ? 65536 : TYPE_KIT_ROUNDS;
    uint8_t *element = malloc(size);
    int bad = element == NULL;

    for (unsigned long i = 0; i < rounds && !bad; i++) {
        for (size_t k = 0; k < size; k++) {
            uint64_t random = codec_kit_random(&c->random);
            if (size <= 2)
                element[k] = (uint8_t)(i >> 8 * k);
            else /* zeros and ones in rows: the numbers where formats have their edges */
                element[k] = (uint8_t)(i % 4 == 0 ? 0u - (random & 1) : random);
        }
        if (c->type->klass == BRC_CLASS_BOOL) /* other bytes are not truth values */
            element[0] &= 1;
        bad = type_check_fixed(c, element);
    }
    free(element);
    return bad;
}

/* Texts of ASCII where it is a string, else any bytes. */
static int type_run_variable(struct type_case *c)
{
    uint8_t element[4 + TYPE_KIT_TEXT] = { 0 };
    int bad = 0;

    for (unsigned long i = 0; i < TYPE_KIT_ROUNDS && !bad; i++) {
        size_t len = (size_t)(codec_kit_random(&c->random) % (TYPE_KIT_TEXT + 1));
        for (size_t k = 0; k < len; k++) {
            uint8_t byte = (uint8_t)codec_kit_random(&c->random);
            element[4 + k] = c->type->klass == BRC_CLASS_STRING ? byte & 0x7f : byte;
        }
        element[0] = (uint8_t)len;
        bad = type_check_element(c, (brc_span){ element, 4 + len });
    }
    return bad;
}

/* ---- what no type takes ------------------------------------------------------------- */

static int type_run_refusals(struct type_case *c)
{
    static const char *const texts[] = { "null", "{\"no\":\"such member\"}", "[[[[1]]]]",
                                         "1e999999999",
                                         "\"\\u0001 no value \\ud83d\\ude00 of anything\"" };
    brc_span none = { NULL, 0 };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        brc_error err = BRC_ERROR_INIT;
        c->text.len = c->again.len = 0;
        if (brc_buf_append(&c->text, texts[i], strlen(texts[i]), &err) < 0)
            return type_fail(c, none, "no memory for the test itself");
        int rc = type_read(c, &c->again, &err);
        if (rc < 0 && (c->again.len != 0 || err.message[0] == '\0' || err.code != rc))
            return type_fail(c, none, "%s is refused without a message, or leaves bytes", texts[i]);
        if (rc < 0 && rc != BRC_EINVAL)
            return type_fail(c, none, "%s is refused with %s, not as invalid", texts[i],
                             brc_strerror(rc));
        if (rc == BRC_OK && c->type->item_size > 0 && c->again.len != c->type->item_size)
            return type_fail(c, none, "%s parses to %zu bytes", texts[i], c->again.len);
    }
    return 0;
}

static int type_open(brc_dtype **out, const type_kit *kit, brc_error *err)
{
    brc_json *json = NULL;
    int rc;

    *out = NULL;
    if (kit->type[0] != '{' && kit->type[0] != '"')
        return brc_dtype_open(out, kit->reg, NULL, kit->type, err);
    rc = brc_json_parse(&json, kit->type, strlen(kit->type), 0, err);
    if (rc == BRC_OK)
        rc = brc_dtype_open(out, kit->reg, json, NULL, err);
    brc_json_free(json);
    return rc;
}

int type_kit_run(const type_kit *kit, char *why, size_t why_size)
{
    struct type_case c = { .kit = kit, .random = kit->seed, .why = why, .why_size = why_size };
    brc_error err = BRC_ERROR_INIT;
    brc_dtype *type;
    brc_span none = { NULL, 0 };

    if (type_open(&type, kit, &err) < 0)
        return type_fail(&c, none, "it does not open: %s", err.message);
    c.type = type;
    int bad = (type->item_size > 0 ? type_run_fixed(&c) : type_run_variable(&c)) ||
              type_run_refusals(&c);
    if (!bad && c.refused == c.tried)
        bad = type_fail(&c, none, "none of %lu elements can be printed", c.tried);
    brc_buf_dispose(&c.text);
    brc_buf_dispose(&c.again);
    brc_dtype_free(type);
    return bad;
}
