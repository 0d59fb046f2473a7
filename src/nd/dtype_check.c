/* What data types check alike, and how they name a value in an error's sentence. */
#include "dtype_ops.h"

#include <string.h>

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
                        brc_json_name(config, 0));
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

/* Copies as much as fits on one line, whole UTF-8 characters only, with "..." where it is cut. */
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
            text = "\\u0000"; /* and more, which a C string cannot be */
        label_text(out + 1, BRC_VALUE_LABEL - 2, text);
        memcpy(out + strlen(out), "\"", 2);
        return out;
    case BRC_JSON_ARRAY: return "[...]";
    case BRC_JSON_OBJECT: return "{...}";
    default: return "that is absent";
    }
}
