/* Types of NetCDF that a file defines, types of Zarr that NetCDF has not, names, and storage. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/file.h"
#include "../../src/breccia.h"
#include "../kit/netcdf_kit.h"
#include "../kit/suite.h"

TEST_SUITE(netcdf_types);

/* ---- types that a file defines ----------------------------- */

typedef struct inner_record {
    float u;
    double v;
} inner_record;
typedef struct record {
    signed char flag;
    int id;
    inner_record wind;
    char name[5];
    short three[3];
    unsigned char raw[2];
} record;

static int define_record(int nc)
{
    int inner, outer, raw, five = 5, three = 3;
    NC(nc_def_opaque(nc, 2, "two bytes", &raw));
    NC(nc_def_compound(nc, sizeof(inner_record), "inner", &inner));
    NC(nc_insert_compound(nc, inner, "u", offsetof(inner_record, u), NC_FLOAT));
    NC(nc_insert_compound(nc, inner, "v", offsetof(inner_record, v), NC_DOUBLE));
    NC(nc_def_compound(nc, sizeof(record), "outer", &outer));
    NC(nc_insert_compound(nc, outer, "flag", offsetof(record, flag), NC_BYTE));
    NC(nc_insert_compound(nc, outer, "id", offsetof(record, id), NC_INT));
    NC(nc_insert_compound(nc, outer, "wind", offsetof(record, wind), inner));
    NC(nc_insert_array_compound(nc, outer, "name", offsetof(record, name), NC_CHAR, 1, &five));
    NC(nc_insert_array_compound(nc, outer, "three", offsetof(record, three), NC_SHORT, 1, &three));
    NC(nc_insert_compound(nc, outer, "raw", offsetof(record, raw), raw));
    return outer;
}

#define RECORD_BYTES (1 + 4 + 12 + 5 + 6 + 2)

CASE("rules", .timeout = 120);

TEST(compounds)
{
    static const record data[2] = { { 1, 2, { 3, 4 }, "five", { 6, 7, 8 }, { 9, 10 } },
                                    { -1, -2, { -3, NAN }, "fives", { -6, -7, -8 }, { 0, 255 } } };
    double complex_data[4] = { 1, -0.0, NAN, 2 };
    exchange_kit kit;
    int nc, dim, var, type, is_class;
    record back[2] = { 0 };
    uint8_t packed[2 * RECORD_BYTES];
    size_t size;

    exchange_start(&kit);
    const char *source = exchange_path(&kit, "compound.nc");
    NC(nc_create(source, NC_NETCDF4, &nc));
    NC(nc_def_dim(nc, "x", 2, &dim));
    NC(nc_def_var(nc, "r", define_record(nc), 1, &dim, &var));
    NC(nc_put_var(nc, var, data));
    NC(nc_def_compound(nc, 16, "number", &type));
    NC(nc_insert_compound(nc, type, "real", 0, NC_DOUBLE));
    NC(nc_insert_compound(nc, type, "imag", 8, NC_DOUBLE));
    NC(nc_def_var(nc, "z", type, 1, &dim, &var));
    NC(nc_put_att(nc, var, "_FillValue", type, 1, complex_data + 2));
    NC(nc_put_var(nc, var, complex_data));
    NC(nc_close(nc));

    netcdf_import_ok(&kit, source, "/in");
    for (int i = 0; i < 2; i++) {
        uint8_t *at = packed + i * RECORD_BYTES;
        memcpy(at, &data[i].flag, 1);
        memcpy(at + 1, &data[i].id, 4);
        memcpy(at + 5, &data[i].wind.u, 4);
        memcpy(at + 9, &data[i].wind.v, 8);
        memcpy(at + 17, data[i].name, 5);
        memcpy(at + 22, data[i].three, 6);
        memcpy(at + 28, data[i].raw, 2);
    }
    netcdf_check_bytes(&kit, "/in/r", packed, sizeof(packed));
    ck_assert_ptr_nonnull(strstr(netcdf_member(&kit, "/in/r", "data_type"),
                                 "\"three\",\"data_type\":{\"name\":\"struct\""));
    ck_assert_str_eq(netcdf_member(&kit, "/in/z", "data_type"), "\"complex128\"");
    ck_assert_str_eq(netcdf_attribute(&kit, "/in/z", "_FillValue"),
                     "[\"AAAAAAAA+H8=\",\"AAAAAAAAAEA=\"]");
    netcdf_check_bytes(&kit, "/in/z", complex_data, sizeof(complex_data));

    NC(nc_open(netcdf_export_ok(&kit, "/in", "out.nc", NULL), NC_NOWRITE, &nc));
    NC(nc_inq_varid(nc, "r", &var));
    NC(nc_inq_vartype(nc, var, &type));
    NC(nc_inq_user_type(nc, type, NULL, &size, NULL, NULL, &is_class));
    ck_assert(is_class == NC_COMPOUND && size == sizeof(record));
    NC(nc_get_var(nc, var, back));
    for (int i = 0; i < 2; i++) {
        ck_assert(back[i].flag == data[i].flag && back[i].id == data[i].id);
        ck_assert_mem_eq(&back[i].wind.v, &data[i].wind.v, 8);
        ck_assert_mem_eq(back[i].name, data[i].name, 5 + 1 + 6 + 2);
    }
    NC(nc_inq_varid(nc, "z", &var));
    double number[4] = { 0 };
    NC(nc_get_att(nc, var, "_FillValue", number));
    ck_assert_mem_eq(number, complex_data + 2, 16);
    NC(nc_get_var(nc, var, number));
    ck_assert_mem_eq(number, complex_data, sizeof(number));
    NC(nc_close(nc));
    exchange_stop(&kit);
}

TEST(strings_lists_and_enumerations)
{
    const char *texts[3] = { "\xc3\xa6", "", "none" }, *missing = "none";
    uint8_t bytes[] = { 1, 2, 3, 255 };
    nc_vlen_t lists[3] = { { 3, bytes }, { 0, NULL }, { 1, bytes + 3 } };
    static const uint8_t want_texts[] = "\2\0\0\0\xc3\xa6\0\0\0\0\4\0\0\0none";
    static const uint8_t want_lists[] = "\3\0\0\0\1\2\3\0\0\0\0\1\0\0\0\xff";
    signed char clouds[3] = { 0, 5, 0 };
    exchange_kit kit;
    int nc, dim, var, vlen, cloud;

    exchange_start(&kit);
    const char *source = exchange_path(&kit, "text.nc");
    NC(nc_create(source, NC_NETCDF4, &nc));
    NC(nc_def_dim(nc, "x", 3, &dim));
    NC(nc_def_var(nc, "s", NC_STRING, 1, &dim, &var));
    NC(nc_put_att_string(nc, var, "_FillValue", 1, &missing));
    NC(nc_put_att_string(nc, var, "list", 2, texts));
    NC(nc_put_var_string(nc, var, texts));
    NC(nc_def_vlen(nc, "blob", NC_BYTE, &vlen));
    NC(nc_def_var(nc, "b", vlen, 1, &dim, &var));
    NC(nc_put_var(nc, var, lists));
    NC(nc_def_enum(nc, NC_BYTE, "cloud", &cloud));
    NC(nc_insert_enum(nc, cloud, "Clear sky", &clouds[0]));
    NC(nc_insert_enum(nc, cloud, "Fog", &clouds[1]));
    NC(nc_def_var(nc, "e", cloud, 1, &dim, &var));
    NC(nc_put_var(nc, var, clouds));
    NC(nc_close(nc));

    netcdf_import_ok(&kit, source, "/in");
    netcdf_check_elements(&kit, "/in/s", want_texts, sizeof(want_texts) - 1);
    netcdf_check_elements(&kit, "/in/b", want_lists, sizeof(want_lists) - 1);
    netcdf_check_bytes(&kit, "/in/e", clouds, 3);
    ck_assert_str_eq(netcdf_member(&kit, "/in/s", "data_type"), "\"string\"");
    ck_assert_str_eq(netcdf_member(&kit, "/in/s", "fill_value"), "\"none\"");
    ck_assert_str_eq(netcdf_attribute(&kit, "/in/s", "list"), "[\"\xc3\xa6\",\"\"]");
    ck_assert_str_eq(netcdf_attribute(&kit, "/in/e", "flag_values"), "[0,5]");
    ck_assert_str_eq(netcdf_attribute(&kit, "/in/e", "flag_meanings"), "\"Clear_sky Fog\"");

    NC(nc_open(netcdf_export_ok(&kit, "/in", "out.nc", NULL), NC_NOWRITE, &nc));
    char *back[3];
    nc_vlen_t back_lists[3];
    NC(nc_inq_varid(nc, "s", &var));
    NC(nc_get_var_string(nc, var, back));
    for (int i = 0; i < 3; i++)
        ck_assert_str_eq(back[i], texts[i]);
    nc_free_string(3, back);
    NC(nc_inq_varid(nc, "b", &var));
    NC(nc_get_var(nc, var, back_lists));
    ck_assert(back_lists[0].len == 3 && back_lists[1].len == 0);
    ck_assert_mem_eq(back_lists[0].p, bytes, 3);
    nc_free_vlens(3, back_lists);
    NC(nc_close(nc));
    exchange_stop(&kit);
}

/* ---- types that NetCDF has not ------------------------------ */

static void check_text(int nc, const char *var, const char *name, const char *want)
{
    char text[128] = "";
    int id;
    NC(nc_inq_varid(nc, var, &id));
    NC(nc_get_att_text(nc, id, name, text));
    ck_assert_str_eq(text, want);
}

static void check_var(int nc, const char *var, nc_type want, const void *bytes, size_t len)
{
    uint8_t got[64];
    int id, type;
    ck_assert_uint_le(len, sizeof(got));
    NC(nc_inq_varid(nc, var, &id));
    NC(nc_inq_vartype(nc, id, &type));
    ck_assert_int_eq(type, want);
    NC(nc_get_var(nc, id, got));
    ck_assert_mem_eq(got, bytes, len);
}

TEST(other_types)
{
    static const uint64_t two[1] = { 2 };
    static const int64_t times[2] = { 7, INT64_MIN };
    static const uint16_t halves[2] = { 0x3e00, 0x7e01 }, brains[2] = { 0x3fc0, 0xff81 };
    static const uint32_t utf32[6] = { 0x1F600, 'a', 0, 0, 0, 0 };
    exchange_kit kit;
    int nc, var, dims[2];
    char *texts[2], name[NC_MAX_NAME + 1];

    exchange_start(&kit);
    netcdf_new_array(&kit, "/bool", "bool", 1, two, NULL);
    netcdf_write_array(&kit, "/bool", "\1\0", 2);
    netcdf_new_array(&kit, "/date", TIME("datetime64", "ms"), 1, two, NULL);
    netcdf_write_array(&kit, "/date", times, 16);
    netcdf_new_array(&kit, "/span", TIME("timedelta64", "D"), 1, two, NULL);
    netcdf_write_array(&kit, "/span", times, 16);
    netcdf_new_array(&kit, "/half", "float16", 1, two, NULL);
    netcdf_write_array(&kit, "/half", halves, 4);
    netcdf_new_array(&kit, "/brain", "bfloat16", 1, two, NULL);
    netcdf_write_array(&kit, "/brain", brains, 4);
    netcdf_new_array(&kit, "/nibble", "int4", 1, two, NULL);
    netcdf_write_array(&kit, "/nibble", "\xf8\7", 2);
    netcdf_new_array(&kit, "/chars", OF_LENGTH("null_terminated_bytes", "3"), 1, two, NULL);
    netcdf_write_array(&kit, "/chars", "abc\0\0d", 6);
    netcdf_new_array(&kit, "/wide", OF_LENGTH("fixed_length_utf32", "12"), 1, two, NULL);
    netcdf_write_array(&kit, "/wide", utf32, 24);

    NC(nc_open(netcdf_export_ok(&kit, "/", "out.nc", NULL), NC_NOWRITE, &nc));
    check_var(nc, "bool", NC_BYTE, "\1\0", 2);
    check_text(nc, "bool", "dtype", "bool");
    check_var(nc, "date", NC_INT64, times, 16);
    check_text(nc, "date", "units", "milliseconds since 1970-01-01");
    check_text(nc, "date", "calendar", "proleptic_gregorian");
    NC(nc_inq_varid(nc, "date", &var));
    netcdf_check_odd(nc, var, "_FillValue", NC_INT64, 1, &times[1]);
    check_var(nc, "span", NC_INT64, times, 16);
    check_text(nc, "span", "units", "days");
    check_text(nc, "span", "dtype", "timedelta64[s]");
    check_var(nc, "half", NC_FLOAT, "\0\0\xc0\x3f\0\x20\xc0\x7f", 8);
    check_text(nc, "half", "dtype", "float16");
    check_var(nc, "brain", NC_FLOAT, "\0\0\xc0\x3f\0\0\x81\xff", 8);
    check_var(nc, "nibble", NC_BYTE, "\xf8\7", 2);
    check_text(nc, "nibble", "dtype", "int4");
    check_var(nc, "chars", NC_CHAR, "abc\0\0d", 6);
    NC(nc_inq_varid(nc, "chars", &var));
    NC(nc_inq_vardimid(nc, var, dims));
    NC(nc_inq_dimname(nc, dims[1], name));
    ck_assert_str_eq(name, "string3");
    NC(nc_inq_varid(nc, "wide", &var));
    NC(nc_get_var_string(nc, var, texts));
    ck_assert_str_eq(texts[0], "\xf0\x9f\x98\x80"
                               "a");
    ck_assert_str_eq(texts[1], "");
    nc_free_string(2, texts);
    NC(nc_close(nc));
    /* booleans are such again, unless a byte is neither 0 nor 1 */
    netcdf_import_ok(&kit, exchange_path(&kit, "out.nc"), "/back");
    ck_assert_str_eq(netcdf_member(&kit, "/back/bool", "data_type"), "\"bool\"");
    ck_assert_str_eq(netcdf_attribute(&kit, "/back/bool", "dtype"), "");
    NC(nc_open(exchange_path(&kit, "out.nc"), NC_WRITE, &nc));
    NC(nc_inq_varid(nc, "bool", &var));
    NC(nc_put_var(nc, var, "\1\2"));
    NC(nc_close(nc));
    netcdf_import_ok(&kit, exchange_path(&kit, "out.nc"), "/two");
    ck_assert_str_eq(netcdf_member(&kit, "/two/bool", "data_type"), "\"int8\"");
    ck_assert_str_eq(netcdf_attribute(&kit, "/two/bool", "dtype"), "\"bool\"");
    netcdf_check_bytes(&kit, "/two/bool", "\1\2", 2);
    exchange_stop(&kit);
}

/* ---- names ---------------------------------------------------- */

/* libhdf5, which writes NetCDF-4, takes names that netCDF-C does not take, or does not find. */
static const struct {
    const char *attribute, *axis, *node, *says;
} bad_names[] = {
    { .attribute = "a/b", .says = "attribute a/b: its name has a slash" },
    { .attribute = "a\tb", .says = "control character" },
    { .attribute = "", .says = "its name does not begin with a letter" },
    { .attribute = "+x", .says = "its name does not begin with a letter" },
    { .attribute = "a ", .says = "its name ends with a blank" },
    { .attribute = "e\xcc\x81", .says = "combining characters" },
    { .attribute = "CLASS", .says = "the name is one of netCDF's own" },
    { .attribute = "_Netcdf4Dimid", .says = "the name is one of netCDF's own" },
    { .attribute = "_NCProperties", .says = "the name is one of netCDF's own" },
    { .axis = "lat/lon", .says = "dimension lat/lon: its name has a slash" },
    { .axis = "\xe3\x81\x8b\xe3\x82\x99", .says = "combining characters" },
    { .node = "/n/a ", .says = "variable /n/a : its name ends with a blank" },
    { .node = "/n/+/x", .says = "group /n/+: its name does not begin with a letter" },
};

LOOP(names_that_netcdf_lacks, 0, sizeof(bad_names) / sizeof(bad_names[0]))
{
    static const uint64_t two[1] = { 2 };
    const char *axis = bad_names[_i].axis, *attribute = bad_names[_i].attribute;
    const char *node = bad_names[_i].node ? bad_names[_i].node : "/n/x";
    exchange_kit kit;
    exchange_start(&kit);
    netcdf_new_array(&kit, node, "int8", 1, two, axis ? &axis : NULL);
    if (attribute) /* of an array and of a group */
        ck_assert_int_eq(brc_attrs_set(kit.session, node, attribute, "1", &kit.err), BRC_OK);
    netcdf_export_says(&kit, "/n", NULL, bad_names[_i].says);
    if (attribute) {
        ck_assert_int_eq(brc_attrs_set(kit.session, node, attribute, NULL, &kit.err), BRC_OK);
        ck_assert_int_eq(brc_attrs_set(kit.session, "/n", attribute, "1", &kit.err), BRC_OK);
        netcdf_export_says(&kit, "/n", NULL, bad_names[_i].says);
    }
    exchange_stop(&kit);
}

/* A name may have 256 bytes, and a variable the name of a dimension whose coordinate it is not. */
TEST(names_that_netcdf_has)
{
    static const uint64_t two[1] = { 2 }, pair[2] = { 3, 2 };
    static const char *const x[] = { "x" }, *const yx[] = { "y", "x" };
    char name[NC_MAX_NAME + 1];
    exchange_kit kit;
    int nc, var, dims[2], ndims;
    memset(name, 'a', NC_MAX_NAME);
    name[NC_MAX_NAME] = '\0';
    exchange_start(&kit);
    netcdf_new_array(&kit, "/n/v", "int8", 1, two, x);
    netcdf_new_array(&kit, "/n/x", "int8", 2, pair, yx);
    netcdf_new_array(&kit, "/n/y", "int8", 2, pair, yx);
    ck_assert_int_eq(brc_attrs_set(kit.session, "/n/v", name, "1", &kit.err), BRC_OK);
    NC(nc_open(netcdf_export_ok(&kit, "/n", "out.nc", NULL), NC_NOWRITE, &nc));
    NC(nc_inq_varid(nc, "v", &var));
    NC(nc_inq_att(nc, var, name, NULL, NULL));
    for (const char *const *at = yx; at < yx + 2; at++) { /* y is a coordinate, of two axes */
        NC(nc_inq_varid(nc, *at, &var));
        NC(nc_inq_var(nc, var, NULL, NULL, &ndims, dims, NULL));
        ck_assert_int_eq(ndims, 2);
        NC(nc_inq_dimname(nc, dims[0], name));
        ck_assert_str_eq(name, "y");
        NC(nc_inq_dimname(nc, dims[1], name));
        ck_assert_str_eq(name, "x");
    }
    NC(nc_close(nc));
    netcdf_import_ok(&kit, exchange_path(&kit, "out.nc"), "/back");
    ck_assert_str_eq(netcdf_member(&kit, "/back/x", "dimension_names"), "[\"y\",\"x\"]");
    exchange_stop(&kit);
}

/* ---- storage -------------------------------------------------- */

/* Chunks are compressed where the array's are, in shards too. Characters are not shuffled: each is
 * a byte. */
TEST(compression_of_netcdf4)
{
    static const uint64_t shape[1] = { 8 }, chunk[1] = { 2 }, shard[1] = { 4 };
    static const struct {
        const char *path, *dtype, *compressors;
        int sharded, deflate, level, shuffle;
    } sets[] = {
        { "/n/a", "int16", "[{\"name\":\"gzip\",\"configuration\":{\"level\":7}}]", 0, 1, 7, 1 },
        { "/n/b", "int16", "[{\"name\":\"gzip\",\"configuration\":{\"level\":7}}]", 1, 1, 7, 1 },
        { "/n/c", "int16", "[]", 0, 0, 0, 0 },
        { "/n/d", "int8", NULL, 0, 1, 1, 0 },
        { "/n/e", "{\"name\":\"null_terminated_bytes\",\"configuration\":{\"length_bytes\":9}}",
          NULL, 0, 1, 1, 0 },
        { "/n/f", "string", NULL, 0, 0, 0, 0 },
    };
    exchange_kit kit;
    int nc, var, shuffle, deflate, level, storage;
    size_t chunks[2];
    exchange_start(&kit);
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
        brc_array *a;
        spec.ndim = 1;
        spec.shape = shape;
        spec.chunk = chunk;
        spec.dtype = sets[i].dtype;
        spec.compressors_json = sets[i].compressors;
        spec.shard = sets[i].sharded ? shard : NULL;
        int rc = brc_array_create(&a, kit.session, sets[i].path, &spec, &kit.err);
        ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
        brc_array_free(a);
    }
    NC(nc_open(netcdf_export_ok(&kit, "/n", "out.nc", NULL), NC_NOWRITE, &nc));
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        NC(nc_inq_varid(nc, sets[i].path + 3, &var));
        NC(nc_inq_var_chunking(nc, var, &storage, chunks));
        ck_assert_int_eq(storage, NC_CHUNKED);
        ck_assert_uint_eq(chunks[0], 2);
        NC(nc_inq_var_deflate(nc, var, &shuffle, &deflate, &level));
        ck_assert_msg(
            deflate == sets[i].deflate && level == sets[i].level && shuffle == sets[i].shuffle,
            "%s: deflate %d, level %d, shuffle %d", sets[i].path, deflate, level, shuffle);
    }
    NC(nc_close(nc));
    exchange_stop(&kit);
}
