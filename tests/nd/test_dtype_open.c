/* From names to data types: as zarr.json has them, and NumPy. */
#include <string.h>

#include "../../src/nd/dtype.h"
#include "../kit/dtype_kit.h"
#include "../kit/suite.h"

TEST_SUITE(dtype_open);

static brc_error open_err;

static int acme_dtype_open(void *ctx, brc_dtype *out, const char *name, const brc_json *config,
                           brc_error *err)
{
    const brc_dtype *row = ctx;

    (void)name;
    (void)config;
    (void)err;
    *out = *row;
    out->json = NULL; /* it follows from name and configuration */
    return BRC_OK;
}

static brc_dtype_spec acme_dtype(const char *name, brc_dtype *row)
{
    return (brc_dtype_spec){ .size = sizeof(brc_dtype_spec),
                             .name = name,
                             .ctx = row,
                             .open = acme_dtype_open,
                             .owner = "acme" };
}

static int open_by_json(brc_dtype **out, const char *json)
{
    brc_json *value = NULL;

    ck_assert_int_eq(brc_json_parse(&value, json, strlen(json), 0, &open_err), BRC_OK);
    int rc = brc_dtype_open(out, dtype_kit_registry(), value, NULL, &open_err);
    brc_json_free(value);
    return rc;
}

static int open_by_npy(brc_dtype **out, int *big, const char *descr)
{
    return brc_dtype_open_npy(out, big, dtype_kit_registry(), descr, &open_err);
}

static void open_says(const char *text)
{
    ck_assert_msg(strstr(open_err.message, text) != NULL, "\"%s\" lacks \"%s\"", open_err.message,
                  text);
}

CASE("dtype_open", .setup = dtype_kit_setup, .teardown = dtype_kit_teardown);

TEST(seed_D3_data_types_have_three_name_forms)
{
    static const char *const same[] = {
        "\"uint16\"",
        "{\"name\":\"uint16\"}",
        "{\"name\":\"uint16\",\"configuration\":{}}",
        "{\"must_understand\":true,\"name\":\"uint16\"}",
    };
    static const struct {
        const char *json;
        int code;
        const char *says;
    } wrong[] = {
        { "7", BRC_EINVAL, "data type: a name is expected" },
        { "{\"name\":7}", BRC_EINVAL, "\"name\"" },
        { "{\"name\":\"uint16\",\"notconfiguration\":{}}", BRC_EINVAL, "notconfiguration" },
        { "{\"name\":\"uint16\",\"configuration\":[]}", BRC_EINVAL, "must be an object" },
        { "{\"name\":\"uint16\",\"configuration\":{\"endian\":\"big\"}}", BRC_EINVAL, "endian" },
        { "{\"name\":\"uint16\",\"must_understand\":false}", BRC_EINVAL,
          "cannot have \"must_understand\"" },
        { "{\"name\":\"uint16\",\"must_understand\":\"no\"}", BRC_EINVAL, "true or false" },
        { "\"char\"", BRC_EUNSUPPORTED, "\"char\" is not known" },
        { "\"Uint16\"", BRC_EUNSUPPORTED, "\"Uint16\" is not known" },
    };
    brc_dtype *type = NULL;

    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        ck_assert_int_eq(open_by_json(&type, same[i]), BRC_OK);
        ck_assert_str_eq(type->json, "\"uint16\"");
        ck_assert_str_eq(type->name, "uint16");
        ck_assert_uint_eq(type->item_size, 2);
        brc_dtype_free(type);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ck_assert_int_eq(open_by_json(&type, wrong[i].json), wrong[i].code);
        ck_assert_ptr_null(type);
        open_says(wrong[i].says);
    }
}

TEST(seed_D3_a_uri_with_configuration_is_kept)
{
    brc_dtype row = { .size = sizeof(row),
                      .name = "https://acme.example/half",
                      .klass = BRC_CLASS_FLOAT,
                      .item_size = 2,
                      .swap_unit = 2,
                      .bits = 16 };
    brc_dtype_spec spec = acme_dtype("https://acme.example/half", &row);
    brc_dtype *type = NULL, *f2 = NULL;

    ck_assert_int_eq(open_by_json(&f2, "\"float16\""), BRC_OK);
    row.ops = f2->ops;
    ck_assert_int_eq(brc_registry_add_dtype(dtype_kit_registry(), &spec, &open_err), BRC_OK);
    ck_assert_int_eq(
        open_by_json(
            &type, "{\"configuration\":{\"bias\":15},\"name\":\"https://acme.example/half\"}"),
        BRC_OK);
    ck_assert_str_eq(type->json,
                     "{\"name\":\"https://acme.example/half\",\"configuration\":{\"bias\":15}}");
    brc_dtype_free(type);
    row.ops = NULL; /* a description that nothing could use is refused */
    ck_assert_int_eq(open_by_json(&type, "\"https://acme.example/half\""), BRC_EINVAL);
    open_says("incomplete");
    brc_dtype_free(f2);
}

TEST(D4_types_are_found_by_numpys_name)
{
    static const struct {
        const char *descr, *name;
        int big;
    } known[] = {
        { "<f4", "float32", 0 }, { ">f4", "float32", 1 },     { "|b1", "bool", 0 },
        { "|u1", "uint8", 0 },   { "<u1", "uint8", 0 },       { ">i1", "int8", 0 },
        { "=f8", "float64", 0 }, { ">c16", "complex128", 1 }, { "<f2", "float16", 0 },
        { "|V3", "r24", 0 },     { ">i8", "int64", 1 },
        { "<c8", "complex64", 0 },
        { "|S3", "null_terminated_bytes", 0 },
        { ">U5", "fixed_length_utf32", 1 },
        { "<M8[10us]", "numpy.datetime64", 0 },
        { ">m8", "numpy.timedelta64", 1 },
    };
    static const char *const unknown[] = {
        "|U5", "|S0", "<U0", "|f4", "<f3", "|V", "|V0x", "|M8[ns]", "<M8[ns", "<M8[0s]", "<M4", "|O"
    };
    brc_dtype *type = NULL;
    int big = 7;

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        int rc = open_by_npy(&type, &big, known[i].descr);
        ck_assert_msg(rc == BRC_OK, "%s: %s", known[i].descr, open_err.message);
        ck_assert_str_eq(type->name, known[i].name);
        ck_assert_int_eq(big, known[i].big);
        brc_dtype_free(type);
    }
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        ck_assert_int_eq(open_by_npy(&type, &big, unknown[i]), BRC_EUNSUPPORTED);
        ck_assert_ptr_null(type);
    }
    ck_assert_int_eq(open_by_npy(&type, &big, ""), BRC_EINVAL);
    ck_assert_int_eq(open_by_npy(&type, &big, "f4"), BRC_EINVAL);
}

TEST(D4_ambiguity_lists_the_candidates)
{
    brc_dtype *type = NULL, *f4 = NULL;
    int big = 0;

    ck_assert_int_eq(open_by_json(&f4, "\"float32\""), BRC_OK);
    brc_dtype row = *f4;
    row.name = "acme.float";
    brc_dtype_spec spec = acme_dtype("acme.float", &row);
    ck_assert_int_eq(brc_registry_add_dtype(dtype_kit_registry(), &spec, &open_err), BRC_OK);
    ck_assert_int_eq(open_by_npy(&type, &big, "<f4"), BRC_EAMBIGUOUS);
    open_says("\"float32\"");
    open_says("\"acme.float\"");
    ck_assert_ptr_null(type);
    ck_assert_int_eq(open_by_npy(&type, &big, "<f8"), BRC_OK);
    brc_dtype_free(type);
    brc_dtype_free(f4);
}
