/* JSON text: what is read is written, and read again as the same. */
#include "fuzz.h"

#include <string.h>

#include "../../src/base/json.h"

static brc_buf written(const brc_json *value, int pretty)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf out = BRC_BUF_INIT;
    int rc = pretty ? brc_json_write(&out, value, BRC_JSON_PRETTY,
                                     &err) : brc_json_write(&out, value, 0, &err);
    FUZZ_TRUE(rc == BRC_OK, &err);
    return out;
}

/* `text` is what `value` was written as. */
static void check_again(const brc_json *value, const brc_buf *text)
{
    brc_error err = BRC_ERROR_INIT;
    brc_json *again;
    int rc = brc_json_parse(&again, (const char *)text->data, text->len, BRC_JSON_NAN, &err);
    FUZZ_TRUE(rc == BRC_OK, &err);
    FUZZ_TRUE(brc_json_equal(value, again), NULL);
    brc_json_free(again);
}

static void check_value(const brc_json *value)
{
    brc_error err = BRC_ERROR_INIT;
    brc_json *clone;
    brc_buf text = written(value, 0), pretty = written(value, 1);
    check_again(value, &text);
    check_again(value, &pretty);
    FUZZ_TRUE(brc_json_clone(&clone, value, &err) == BRC_OK, &err);
    brc_buf other = written(clone, 0);
    FUZZ_TRUE(other.len == text.len && memcmp(other.data, text.data, text.len) == 0, NULL);
    brc_json_free(clone);
    brc_buf_dispose(&other);
    brc_buf_dispose(&text);
    brc_buf_dispose(&pretty);
}

void fuzz_json(const uint8_t *data, size_t len)
{
    brc_error err = BRC_ERROR_INIT;
    brc_json *value;
    int strict = brc_json_parse(&value, (const char *)data, len, 0, &err);
    FUZZ_TRUE(strict == BRC_OK || strict == BRC_EINVAL || strict == BRC_ELIMIT, &err);
    if (strict == BRC_OK)
        check_value(value);
    brc_json_free(value);
    int document = brc_json_parse_document(&value, (const char *)data, len, &err);
    FUZZ_TRUE(document == BRC_OK || strict != BRC_OK, &err);
    if (document == BRC_OK)
        check_value(value);
    brc_json_free(value);
    int nan = brc_json_parse(&value, (const char *)data, len, BRC_JSON_NAN, &err);
    FUZZ_TRUE(nan == BRC_OK || document != BRC_OK, &err);
    if (nan == BRC_OK)
        check_value(value);
    brc_json_nan_to_text(value);
    if (nan == BRC_OK) {
        brc_buf text = written(value, 0);
        brc_json *again;
        FUZZ_TRUE(brc_json_parse(&again, (const char *)text.data, text.len, 0,
                                 &err) == BRC_OK, &err);
        FUZZ_TRUE(brc_json_equal(value, again), NULL);
        brc_json_free(again);
        brc_buf_dispose(&text);
    }
    brc_json_free(value);
}
