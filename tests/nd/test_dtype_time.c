/* Dates and durations. The dates as text are what NumPy 2.4 prints. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../kit/dtype_kit.h"
#include "../kit/suite.h"

TEST_SUITE(dtype_time);

#define DELTA(config) "{\"name\":\"numpy.timedelta64\",\"configuration\":{" config "}}"

static const char *time_json(const char *name, const char *unit, long long scale)
{
    static char text[160];
    snprintf(text, sizeof(text),
             "{\"name\":\"numpy.%s\",\"configuration\":{\"unit\":\"%s\",\"scale_factor\":%lld}}",
             name, unit, scale);
    return text;
}

static void store_count(uint8_t element[8], int64_t count)
{
    for (int i = 0; i < 8; i++)
        element[i] = (uint8_t)((uint64_t)count >> (8 * i));
}

static int64_t load_stored_count(const uint8_t *element)
{
    uint64_t bits = 0;
    for (int i = 8; i-- > 0;)
        bits = bits << 8 | element[i];
    return (int64_t)bits;
}

static const struct {
    const char *unit;
    int scale;
    int64_t count;
    const char *text;
} dates[] = {
        { "Y", 1, INT64_C(50), "2020" },
        { "Y", 1, INT64_C(-1971), "-001" },
        { "Y", 5, INT64_C(2), "1980" },
        { "M", 1, INT64_C(-1), "1969-12" },
        { "M", 1, INT64_C(600), "2020-01" },
        { "M", 7, INT64_C(3), "1971-10" },
        { "W", 1, INT64_C(-1), "1969-12-25" },
        { "W", 2, INT64_C(1000), "2008-05-01" },
        { "D", 1, INT64_C(0), "1970-01-01" },
        { "D", 1, INT64_C(-1), "1969-12-31" },
        { "D", 1, INT64_C(18321), "2020-02-29" },
        { "D", 1, INT64_C(11016), "2000-02-29" },
        { "D", 1, INT64_C(-25509), "1900-02-28" },
        { "D", 1, INT64_C(-719529), "-001-12-31" },
        { "D", 10, INT64_C(-100000000), "-2735938-12-29" },
        { "h", 1, INT64_C(-1), "1969-12-31T23" },
        { "h", 3, INT64_C(146000), "2019-12-20T00" },
        { "m", 1, INT64_C(-1), "1969-12-31T23:59" },
        { "m", 15, INT64_C(1000003), "1998-07-09T16:45" },
        { "s", 1, INT64_C(0), "1970-01-01T00:00:00" },
        { "s", 1, INT64_C(-1), "1969-12-31T23:59:59" },
        { "s", 1, INT64_C(1582934400), "2020-02-29T00:00:00" },
        { "s", 1, INT64_C(951782399), "2000-02-28T23:59:59" },
        { "s", 1, INT64_C(-62167219201), "-001-12-31T23:59:59" },
        { "ms", 1, INT64_C(-1), "1969-12-31T23:59:59.999" },
        { "ms", 10, INT64_C(158293440012), "2020-02-29T00:00:00.120" },
        { "us", 1, INT64_C(1582934400123456), "2020-02-29T00:00:00.123456" },
        { "us", 1, INT64_C(-1), "1969-12-31T23:59:59.999999" },
        { "ns", 1, INT64_C(1582934400123456789), "2020-02-29T00:00:00.123456789" },
        { "ns", 1, INT64_C(-9223372036854775807), "1677-09-21T00:12:43.145224193" },
        { "ns", 1, INT64_C(9223372036854775807), "2262-04-11T23:47:16.854775807" },
        { "ps", 1, INT64_C(-1), "1969-12-31T23:59:59.999999999999" },
        { "ps", 1, INT64_C(9223372036854775807), "1970-04-17T18:02:52.036854775807" },
        { "fs", 1, INT64_C(-1), "1969-12-31T23:59:59.999999999999999" },
        { "as", 1, INT64_C(-1), "1969-12-31T23:59:59.999999999999999999" },
        { "as", 1, INT64_C(9223372036854775807), "1970-01-01T00:00:09.223372036854775807" },
        { "as", 1, INT64_C(-9223372036854775807), "1969-12-31T23:59:50.776627963145224193" },
};
#define NDATES ((int)(sizeof(dates) / sizeof(dates[0])))

CASE("all", .setup = dtype_kit_setup, .teardown = dtype_kit_teardown, .timeout = UNTIMED);

LOOP(D7_dates_print_as_numpys, 0, NDATES)
{
    brc_dtype *type = kit_open(time_json("datetime64", dates[_i].unit, dates[_i].scale));
    uint8_t element[8];
    char json[32];
    store_count(element, dates[_i].count);
    char *text = kit_print(type, element, 8, BRC_PRINT_TEXT);
    ck_assert_str_eq(text, dates[_i].text);
    free(text);
    snprintf(json, sizeof(json), "%" PRId64, dates[_i].count);
    text = kit_print(type, element, 8, BRC_PRINT_JSON);
    ck_assert_str_eq(text, json);
    free(text);
    text = kit_print(type, element, 8, BRC_PRINT_FILL);
    ck_assert_str_eq(text, json);
    free(text);
    ck_assert(type->ops->number(type, element) == (double)dates[_i].count);
    brc_dtype_free(type);
}

/* A year alone is JSON: a count. */
LOOP(D7_dates_that_are_typed_are_read, 0, NDATES)
{
    brc_dtype *type = kit_open(time_json("datetime64", dates[_i].unit, dates[_i].scale));
    brc_buf out = BRC_BUF_INIT;
    brc_error err = BRC_ERROR_INIT;
    if (strcmp(dates[_i].unit, "Y") != 0) {
        ck_assert_msg(kit_scan(type, dates[_i].text, &out, &err) == BRC_OK, "%s", err.message);
        ck_assert_uint_eq(out.len, 8);
        ck_assert_int_eq(load_stored_count(out.data), dates[_i].count);
    }
    brc_buf_dispose(&out);
    brc_dtype_free(type);
}

/* Day by day through 800 years: each date is one day after the one before it. */
TEST(the_calendar_has_no_gaps)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    brc_dtype *type = kit_open(time_json("datetime64", "D", 1));
    uint8_t element[8];
    char want[32];
    int y = 1599, m = 12, d = 31;
    for (int64_t count = -135141; count < 157000; count++) {
        store_count(element, count);
        char *text = kit_print(type, element, 8, BRC_PRINT_TEXT);
        snprintf(want, sizeof(want), "%04d-%02d-%02d", y, m, d);
        ck_assert_str_eq(text, want);
        free(text);
        int leap = y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
        if (++d > days[m - 1] + (m == 2 && leap)) {
            d = 1;
            if (++m > 12) {
                m = 1;
                y++;
            }
        }
    }
    brc_dtype_free(type);
}

TEST(typed_dates_are_exact_or_refused)
{
    static const struct {
        const char *unit;
        int scale;
        const char *text;
        int64_t count; /* INT64_MIN: refused                                      */
    } rows[] = {
        { "s", 1, "2020-02-29", 1582934400 },
        { "s", 1, "2020-02-29 00:01", 1582934460 },
        { "s", 1, "2020-02-29T00:01:02Z", 1582934462 },
        { "s", 1, "\"1970-01-02\"", 86400 },
        { "s", 1, "17", 17 },
        { "ms", 1, "1970-01-01T00:00:00.5", 500 },
        { "ms", 1, "1970-01-01T00:00:00.5004", INT64_MIN },
        { "ms", 1, "1970-01-01T00:00:00.", INT64_MIN },
        { "D", 1, "1970-01", 0 },
        { "D", 1, "1970-01-02T00:00:00", 1 },
        { "D", 1, "1970-01-02T01", INT64_MIN },
        { "D", 7, "1970-01-08", 1 },
        { "D", 7, "1970-01-09", INT64_MIN },
        { "W", 1, "1970-01-08", 1 },
        { "W", 1, "1970-01-09", INT64_MIN },
        { "M", 1, "1971-01-01", 12 },
        { "M", 1, "1971-01-02", INT64_MIN },
        { "Y", 1, "1971-01", 1 },
        { "Y", 1, "1971-02", INT64_MIN },
        { "h", 1, "1970-01-01T05:00", 5 },
        { "h", 1, "1970-01-01T05:01", INT64_MIN },
        { "D", 1, "1970-13-01", INT64_MIN },
        { "D", 1, "1970-00-01", INT64_MIN },
        { "D", 1, "1970-02-29", INT64_MIN },
        { "D", 1, "1972-02-29", 789 },
        { "D", 1, "1970-01-00", INT64_MIN },
        { "D", 1, "1970-1-1", INT64_MIN },
        { "D", 1, "1970-01-01x", INT64_MIN },
        { "D", 1, "197-01-01", INT64_MIN },
        { "s", 1, "1970-01-01T24:00:00", INT64_MIN },
        { "s", 1, "1970-01-01T00:60", INT64_MIN },
        { "s", 1, "1970-01-01T00:00:60", INT64_MIN },
        { "s", 1, "1970-01-01Z", INT64_MIN },
        { "ns", 1, "2262-04-11T23:47:16.854775808", INT64_MIN },
        { "as", 1, "999999999999-12-31T23:59:59.999999999999999999", INT64_MIN },
        { "as", 1, "-999999999999-01-01", INT64_MIN },
        { "s", 1, "1000000000000-01-01", INT64_MIN },
        { "generic", 1, "1970-01-02", INT64_MIN },
        { "generic", 1, "5", 5 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        brc_dtype *type = kit_open(time_json("datetime64", rows[i].unit, rows[i].scale));
        brc_buf out = BRC_BUF_INIT;
        brc_error err = BRC_ERROR_INIT;
        int rc = kit_scan(type, rows[i].text, &out, &err);
        ck_assert_msg(rc == (rows[i].count == INT64_MIN ? BRC_EINVAL : BRC_OK), "%s: %d %s",
                      rows[i].text, rc, err.message);
        if (rc == BRC_OK)
            ck_assert_int_eq(load_stored_count(out.data), rows[i].count);
        else
            ck_assert_uint_eq(out.len, 0);
        brc_buf_dispose(&out);
        brc_dtype_free(type);
    }
    brc_dtype *type = kit_open(time_json("timedelta64", "D", 1));
    brc_buf out = BRC_BUF_INIT;
    brc_error err = BRC_ERROR_INIT;
    ck_assert_int_eq(kit_scan(type, "1970-01-02", &out, &err), BRC_EINVAL);
    ck_assert_int_eq(kit_scan(type, "NaT", &out, &err), BRC_OK);
    ck_assert_int_eq(load_stored_count(out.data), INT64_MIN);
    brc_buf_dispose(&out);
    brc_dtype_free(type);
}

/* The smallest and largest counts of every unit and scale print something. */
TEST(counts_far_out_print)
{
    static const char *const units[] = { "Y",  "M",  "W",  "D",  "h",  "m",  "s",
                                         "ms", "us", "ns", "ps", "fs", "as", "generic" };
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        brc_dtype *type = kit_open(time_json("datetime64", units[i], INT32_MAX));
        for (int side = 0; side < 2; side++) {
            uint8_t element[8];
            store_count(element, side ? INT64_MAX : -INT64_MAX);
            char *text = kit_print(type, element, 8, BRC_PRINT_TEXT);
            ck_assert_uint_ge(strlen(text), 10);
            free(text);
        }
        brc_dtype_free(type);
    }
    brc_dtype *type = kit_open(time_json("datetime64", "Y", INT32_MAX));
    uint8_t element[8];
    store_count(element, INT64_MAX);
    char *text = kit_print(type, element, 8, BRC_PRINT_TEXT);
    ck_assert_str_eq(text, "9223372036854775807");
    free(text);
    brc_dtype_free(type);
}

TEST(T10_not_a_time_and_wide_integers)
{
    const char *names[] = { "datetime64", "timedelta64" };
    for (int i = 0; i < 2; i++) {
        const char *json = time_json(names[i], "s", 1);
        kit_check(json, "\"NaT\"", "0000000000000080", NULL, NULL, "NaT");
        kit_check(json, "-9223372036854775808", "0000000000000080", "\"NaT\"", NULL, "NaT");
        kit_check(json, "9223372036854775807", "ffffffffffffff7f", NULL, NULL,
                  i == 0 ? "292277026596-12-04T15:30:07" : "9223372036854775807");
        kit_check(json, "9007199254740993", "0100000000002000", NULL, NULL,
                  i == 0 ? "285428751-11-12T07:36:33" : "9007199254740993");
        kit_check(json, "-5", "fbffffffffffffff", NULL, NULL,
                  i == 0 ? "1969-12-31T23:59:55" : "-5");
        static const char *const wrong[] = { "\"nat\"", "\"2020-01-01\"", "1.5",
                                             "null",    "true",           "9223372036854775808",
                                             "[1]",     "\"\"",           "-9223372036854775809" };
        for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++)
            kit_refuses(json, wrong[k], names[i]);
        brc_dtype *type = kit_open(json);
        uint8_t element[8];
        store_count(element, INT64_MIN);
        ck_assert(isnan(type->ops->number(type, element)));
        ck_assert_ptr_null(kit_print(type, element, 7, BRC_PRINT_TEXT));
        brc_dtype_free(type);
    }
    kit_check(time_json("timedelta64", "ms", 10), "250", "fa00000000000000", NULL, NULL, "250");
    kit_check(time_json("datetime64", "generic", 1), "250", "fa00000000000000", NULL, NULL, "250");
}

TEST(units_and_scales_are_checked)
{
    static const struct {
        const char *unit, *npy, *canonical;
        long long scale;
    } good[] = {
        { "ns", "<M8[ns]", "ns", 1 },       { "us", "<M8[10us]", "us", 10 },
        { "generic", "<M8", "generic", 1 }, { "generic", "<M8[3generic]", "generic", 3 },
        { "\xCE\xBCs", "<M8[us]", "us", 1 }, { "\xC2\xB5s", "<M8[us]", "us", 1 },
        { "D", "<M8[2147483647D]", "D", 2147483647 },
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        brc_dtype *type = kit_open(time_json("datetime64", good[i].unit, good[i].scale));
        ck_assert_str_eq(type->npy, good[i].npy);
        ck_assert_str_eq(type->json, time_json("datetime64", good[i].canonical, good[i].scale));
        ck_assert_str_eq(type->name, "numpy.datetime64");
        ck_assert_int_eq(type->klass, BRC_CLASS_TIME);
        ck_assert_uint_eq(type->item_size, 8);
        ck_assert_uint_eq(type->swap_unit, 8);
        brc_dtype_free(type);
    }
    brc_error err = BRC_ERROR_INIT;
    static const char *const units[] = { "fortnight", "", "S", "NS", "min", "n" };
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        ck_assert_int_eq(kit_open_code(time_json("datetime64", units[i], 1), &err), BRC_EINVAL);
    ck_assert_int_eq(kit_open_code(time_json("datetime64", "s", 0), &err), BRC_EINVAL);
    ck_assert_int_eq(kit_open_code(time_json("datetime64", "s", -1), &err), BRC_EINVAL);
    ck_assert_int_eq(kit_open_code(time_json("timedelta64", "s", 2147483648), &err), BRC_EINVAL);
    static const char *const wrong[] = {
        "numpy.datetime64",
        DELTA(""),
        DELTA("\"unit\":\"s\""),
        DELTA("\"scale_factor\":1"),
        DELTA("\"unit\":1,\"scale_factor\":1"),
        DELTA("\"unit\":\"s\",\"scale_factor\":1.0"),
        DELTA("\"unit\":\"s\",\"scale_factor\":\"1\""),
        DELTA("\"unit\":\"s\",\"scale_factor\":1,\"tz\":0"),
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(kit_open_code(wrong[i], &err) == BRC_EINVAL, "%s", wrong[i]);
}
