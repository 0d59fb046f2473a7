#include "dtype_kit.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"

static brc_registry *kit_registry;

void dtype_kit_setup(void)
{
    brc_error err = BRC_ERROR_INIT;
    ck_assert_msg(brc_registry_new(&kit_registry, &err) == BRC_OK, "%s", err.message);
}

void dtype_kit_teardown(void)
{
    brc_registry_free(kit_registry);
    kit_registry = NULL;
}

brc_registry *dtype_kit_registry(void)
{
    return kit_registry;
}

static int open_by_json(brc_dtype **out, const char *json, brc_error *err)
{
    brc_json *value = NULL;
    if (json[0] == '"' || json[0] == '{')
        ck_assert_msg(brc_json_parse(&value, json, strlen(json), 0, err) == BRC_OK, "%s", json);
    else
        value = brc_json_new_string(json);
    int rc = brc_dtype_open(out, kit_registry, value, NULL, err);
    brc_json_free(value);
    return rc;
}

brc_dtype *kit_open(const char *json)
{
    brc_error err = BRC_ERROR_INIT;
    brc_dtype *type = NULL;
    ck_assert_msg(open_by_json(&type, json, &err) == BRC_OK, "%s: %s", json, err.message);
    return type;
}

int kit_open_code(const char *json, brc_error *err)
{
    brc_dtype *type = NULL;
    int rc = open_by_json(&type, json, err);
    ck_assert_int_eq(rc == BRC_OK, type != NULL);
    brc_dtype_free(type);
    return rc;
}

int kit_parse(const brc_dtype *type, const char *json, brc_buf *out, brc_error *err)
{
    brc_json *value = NULL;
    ck_assert_msg(brc_json_parse(&value, json, strlen(json), 0, err) == BRC_OK, "%s", json);
    int rc = type->ops->parse(type, value, out, err);
    brc_json_free(value);
    return rc;
}

int kit_scan(const brc_dtype *type, const char *text, brc_buf *out, brc_error *err)
{
    return brc_dtype_parse_text(type, text, out, err);
}

char *kit_print(const brc_dtype *type, const uint8_t *element, size_t len, int how)
{
    brc_buf out = BRC_BUF_INIT;
    char *text = NULL;
    if (type->ops->print(type, element, len, how, &out, NULL) == BRC_OK)
        ck_assert_int_eq(brc_buf_take_text(&out, &text, NULL), BRC_OK);
    brc_buf_dispose(&out);
    return text;
}

static void check_printed(const brc_dtype *type, const brc_buf *element, int how, const char *want)
{
    char *text = kit_print(type, element->data, element->len, how);
    ck_assert_ptr_nonnull(text);
    ck_assert_str_eq(text, want);
    free(text);
}

void kit_check(const char *type_json, const char *json, const char *hex, const char *fill,
               const char *plain, const char *text)
{
    brc_dtype *type = kit_open(type_json);
    brc_error err = BRC_ERROR_INIT;
    brc_buf element = BRC_BUF_INIT;
    char found[512] = "";
    fill = fill != NULL ? fill : json;
    ck_assert_msg(kit_parse(type, json, &element, &err) == BRC_OK, "%s %s: %s", type_json, json,
                  err.message);
    ck_assert_uint_lt(element.len, 250);
    for (size_t i = 0; i < element.len; i++)
        snprintf(found + 2 * i, 3, "%02x", element.data[i]);
    ck_assert_msg(strcmp(found, hex) == 0, "%s %s: %s, not %s", type_json, json, found, hex);
    check_printed(type, &element, BRC_PRINT_FILL, fill);
    check_printed(type, &element, BRC_PRINT_JSON, plain != NULL ? plain : fill);
    check_printed(type, &element, BRC_PRINT_TEXT, text);
    brc_buf_dispose(&element);
    brc_dtype_free(type);
}

void kit_refuses(const char *type_json, const char *json, const char *says)
{
    brc_dtype *type = kit_open(type_json);
    brc_error err = BRC_ERROR_INIT;
    brc_buf element = BRC_BUF_INIT;
    ck_assert_msg(kit_parse(type, json, &element, &err) == BRC_EINVAL, "%s takes %s", type_json,
                  json);
    ck_assert_msg(strstr(err.message, says) != NULL, "%s %s: %s", type_json, json, err.message);
    ck_assert_uint_eq(element.len, 0);
    brc_buf_dispose(&element);
    brc_dtype_free(type);
}
