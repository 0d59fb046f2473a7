/* Attributes on their way in and out: NaN and infinities are numbers inside, with the type and the
 * bits that a file had, and leave for strict readers of JSON as marked texts; and any attributes at
 * all come back as they were set, or are refused there. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/json.h"
#include "../../src/xfer/documents.h"
#include "../kit/hdf5_kit.h"
#include "../kit/netcdf_kit.h"
#include "../kit/suite.h"

TEST_SUITE(attributes);

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const uint64_t quiet64 = UINT64_C(0x7ff8000000000000), odd64 = UINT64_C(0xfff8dead0000beef);
static const uint32_t quiet32 = UINT32_C(0x7fc00000), odd32 = UINT32_C(0xffc0beef);
static const uint32_t list32[] = { UINT32_C(0x3fc00000), UINT32_C(0xff800000),
    UINT32_C(0x7fc00000) };

/* ---- in the types of files -------------------------------- */

typedef struct typed_attribute {
    const char *name, *json;
    nc_type type;
    size_t n;
    const void *bytes;
} typed_attribute;

static const typed_attribute typed[] = {
    { "d", "NaN", NC_DOUBLE, 1, &quiet64 },     { "dodd", "NaN", NC_DOUBLE, 1, &odd64 },
    { "f", "NaN", NC_FLOAT, 1, &quiet32 },      { "fodd", "NaN", NC_FLOAT, 1, &odd32 },
    { "list", "[1.5,-Infinity,NaN]", NC_FLOAT, 3, list32 },
    { "missing_value", "NaN", NC_FLOAT, 1, &quiet32 },
    { "text", "\"NaN\"", NC_CHAR, 3, "NaN" },   { "minus", "\"-Infinity\"", NC_CHAR, 9,
    "-Infinity" },
};

static void put_typed_netcdf(int nc, int var)
{
    for (size_t i = 0; i < COUNT(typed); i++)
        NC(nc_put_att(nc, var, typed[i].name, typed[i].type, typed[i].n, typed[i].bytes));
}

static void check_typed_netcdf(int nc, int var)
{
    for (size_t i = 0; i < COUNT(typed); i++)
        netcdf_check_odd(nc, var, typed[i].name, typed[i].type, typed[i].n, typed[i].bytes);
}

/* The attributes of a group and of its array in Zarr. */
static void check_typed_json(exchange_kit *kit)
{
    static const char *const nodes[] = { "/in", "/in/v" };
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < COUNT(typed); i++)
            ck_assert_str_eq(netcdf_attribute(kit, nodes[k], typed[i].name), typed[i].json);
}

CASE("attributes", .timeout = 60);

LOOP(i24_2_netcdf_keeps_types_and_bits, 0, 2)
{
    static const int modes[] = { NC_64BIT_OFFSET, NC_NETCDF4 };
    static const char *const formats[] = { "netcdf3", "netcdf" };
    static const char *const numbers[] = { "f", "d", "missing_value" };
    exchange_kit kit;
    int nc, dim, var;
    exchange_start(&kit);
    NC(nc_create(exchange_path(&kit, "x.nc"), modes[_i], &nc));
    NC(nc_def_dim(nc, "x", 2, &dim));
    NC(nc_def_var(nc, "v", NC_FLOAT, 1, &dim, &var));
    put_typed_netcdf(nc, var);
    put_typed_netcdf(nc, NC_GLOBAL);
    NC(nc_close(nc));
    netcdf_import_ok(&kit, exchange_path(&kit, "x.nc"), "/in");
    check_typed_json(&kit);
    NC(nc_open(netcdf_export_ok(&kit, "/in", "y.nc", formats[_i]), NC_NOWRITE, &nc));
    check_typed_netcdf(nc, 0);
    check_typed_netcdf(nc, NC_GLOBAL);
    NC(nc_close(nc));
    /* a text that a user sets is one, whatever was noted of the number that it replaces */
    for (size_t i = 0; i < COUNT(numbers); i++)
        OK(&kit, brc_attrs_set(kit.session, "/in/v", numbers[i], "\"NaN\"", &kit.err));
    NC(nc_open(netcdf_export_ok(&kit, "/in", "z.nc", formats[_i]), NC_NOWRITE, &nc));
    for (size_t i = 0; i < COUNT(numbers); i++)
        netcdf_check_odd(nc, 0, numbers[i], NC_CHAR, 3, "NaN");
    NC(nc_close(nc));
    exchange_stop(&kit);
}

/* Packed integers have NaN as missing_value; it is a number there too. */
TEST(i24_2_netcdf_integers_may_have_nan)
{
    exchange_kit kit;
    int nc, dim, var;
    double nan = NAN;
    exchange_start(&kit);
    NC(nc_create(exchange_path(&kit, "x.nc"), NC_NETCDF4, &nc));
    NC(nc_def_dim(nc, "x", 2, &dim));
    NC(nc_def_var(nc, "v", NC_SHORT, 1, &dim, &var));
    NC(nc_put_att(nc, var, "missing_value", NC_DOUBLE, 1, &nan));
    NC(nc_close(nc));
    netcdf_import_ok(&kit, exchange_path(&kit, "x.nc"), "/in");
    ck_assert_str_eq(netcdf_attribute(&kit, "/in/v", "missing_value"), "NaN");
    NC(nc_open(netcdf_export_ok(&kit, "/in", "y.nc", NULL), NC_NOWRITE, &nc));
    netcdf_check_odd(nc, 0, "missing_value", NC_DOUBLE, 1, &nan);
    NC(nc_close(nc));
    exchange_stop(&kit);
}

static hid_t complex_type(void)
{
    hid_t type = H5(H5Tcreate(H5T_COMPOUND, 8));
    H5(H5Tinsert(type, "r", 0, H5T_IEEE_F32LE));
    H5(H5Tinsert(type, "i", 4, H5T_IEEE_F32LE));
    return type;
}

static const uint32_t complex_list[] = { UINT32_C(0x3fc00000), UINT32_C(0x7fc00000),
                                         UINT32_C(0x7f800000), UINT32_C(0xffc0beef) };

static const uint32_t array_of[] = { UINT32_C(0x3fc00000), UINT32_C(0xffc0beef),
                                     UINT32_C(0x7f800000) };

static hid_t array_type(void)
{
    const hsize_t n = 3;
    return H5(H5Tarray_create2(H5T_IEEE_F32LE, 1, &n));
}

static void put_typed_hdf5(hid_t object, hid_t complex)
{
    hid_t array = array_type();
    const hsize_t n = 3, two = 2;
    hdf5_put_attribute(object, "d", H5T_IEEE_F64LE, 0, NULL, H5T_IEEE_F64LE, &quiet64);
    hdf5_put_attribute(object, "dodd", H5T_IEEE_F64LE, 0, NULL, H5T_IEEE_F64LE, &odd64);
    hdf5_put_attribute(object, "f", H5T_IEEE_F32LE, 0, NULL, H5T_IEEE_F32LE, &quiet32);
    hdf5_put_attribute(object, "fodd", H5T_IEEE_F32LE, 0, NULL, H5T_IEEE_F32LE, &odd32);
    hdf5_put_attribute(object, "list", H5T_IEEE_F32LE, 1, &n, H5T_IEEE_F32LE, list32);
    hdf5_put_attribute(object, "c", complex, 1, &two, complex, complex_list);
    hdf5_put_attribute(object, "array", array, 0, NULL, array, array_of);
    H5(H5Tclose(array));
}

static void check_hdf5(hid_t object, const char *name, hid_t type, const void *bytes, size_t len)
{
    uint8_t seen[32] = { 0 };
    hid_t attribute = H5(H5Aopen(object, name, H5P_DEFAULT)), is = H5(H5Aget_type(attribute));
    ck_assert_msg(H5Tequal(is, type) > 0, "%s has another type", name);
    H5(H5Aread(attribute, type, seen));
    ck_assert_msg(memcmp(seen, bytes, len) == 0, "%s has other bits", name);
    H5(H5Tclose(is));
    H5(H5Aclose(attribute));
}

static void check_typed_hdf5(hid_t object, hid_t complex)
{
    check_hdf5(object, "d", H5T_IEEE_F64LE, &quiet64, 8);
    check_hdf5(object, "dodd", H5T_IEEE_F64LE, &odd64, 8);
    check_hdf5(object, "f", H5T_IEEE_F32LE, &quiet32, 4);
    check_hdf5(object, "fodd", H5T_IEEE_F32LE, &odd32, 4);
    check_hdf5(object, "list", H5T_IEEE_F32LE, list32, sizeof(list32));
    check_hdf5(object, "c", complex, complex_list, sizeof(complex_list));
    hid_t array = array_type();
    check_hdf5(object, "array", array, array_of, sizeof(array_of));
    H5(H5Tclose(array));
}

/* An attribute that was a number is now a text, or a list of one text. */
static void check_text_hdf5(hid_t object, const char *name)
{
    hid_t attribute = H5(H5Aopen(object, name, H5P_DEFAULT)), is = H5(H5Aget_type(attribute));
    ck_assert_msg(H5Tget_class(is) == H5T_STRING, "%s became a number", name);
    H5(H5Tclose(is));
    H5(H5Aclose(attribute));
}

TEST(i24_2_hdf5_keeps_types_and_bits)
{
    static const char *const nodes[] = { "/g", "/g/v" };
    static const float data[2] = { 1, 2 };
    exchange_kit kit;
    exchange_start(&kit);
    hid_t complex = complex_type(), file = hdf5_new_file(&kit, "x.h5", 0), v;
    hdf5_put(file, "v", H5T_IEEE_F32LE, 2, H5T_NATIVE_FLOAT, data);
    v = H5(H5Dopen2(file, "v", H5P_DEFAULT));
    put_typed_hdf5(file, complex);
    put_typed_hdf5(v, complex);
    H5(H5Dclose(v));
    H5(H5Fclose(file));
    hdf5_import_ok(&kit, "x.h5", "/g");
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < 5; i++)
            hdf5_check_attribute(&kit, nodes[k], typed[i].name, typed[i].json);
        hdf5_check_attribute(&kit, nodes[k], "c", "[[1.5,NaN],[Infinity,NaN]]");
        hdf5_check_attribute(&kit, nodes[k], "array", "[1.5,NaN,Infinity]");
    }
    OK(&kit, brc_attrs_set(kit.session, "/g", "deep", "{\"a\":[NaN,\"NaN\"]}", &kit.err));
    OK(&kit, brc_attrs_set(kit.session, "/g", "plain", "[[-Infinity,1]]", &kit.err));
    hdf5_export_ok(&kit, "/g", "y.h5");
    file = H5(H5Fopen(exchange_path(&kit, "y.h5"), H5F_ACC_RDONLY, H5P_DEFAULT));
    v = H5(H5Dopen2(file, "v", H5P_DEFAULT));
    check_typed_hdf5(file, complex);
    check_typed_hdf5(v, complex);
    const double plain[] = { -INFINITY, 1 };
    check_hdf5(file, "plain", H5T_IEEE_F64LE, plain, sizeof(plain));
    H5(H5Dclose(v));
    H5(H5Fclose(file));
    hdf5_import_ok(&kit, "y.h5", "/again");
    hdf5_check_attribute(&kit, "/again", "deep", "{\"a\":[NaN,\"NaN\"]}");
    hdf5_check_attribute(&kit, "/again", "plain", "[[-Infinity,1.0]]");
    OK(&kit, brc_attrs_set(kit.session, "/g/v", "f", "\"NaN\"", &kit.err));
    OK(&kit, brc_attrs_set(kit.session, "/g/v", "list", "[1.5,\"-Infinity\",\"NaN\"]", &kit.err));
    OK(&kit, brc_attrs_set(kit.session, "/g/v", "c", "[[1.5,\"NaN\"],[0,1]]", &kit.err));
    OK(&kit, brc_attrs_set(kit.session, "/g/v", "array", "[1.5,\"NaN\",0]", &kit.err));
    hdf5_export_ok(&kit, "/g", "z.h5");
    file = H5(H5Fopen(exchange_path(&kit, "z.h5"), H5F_ACC_RDONLY, H5P_DEFAULT));
    v = H5(H5Dopen2(file, "v", H5P_DEFAULT));
    check_text_hdf5(v, "f");
    check_text_hdf5(v, "list");
    check_text_hdf5(v, "c");
    check_text_hdf5(v, "array");
    H5(H5Dclose(v));
    H5(H5Fclose(file));
    H5(H5Tclose(complex));
    exchange_stop(&kit);
}

/* ---- in documents of Zarr -------------------------------- */

#define NUMBERS                                                                                  \
    "{\"missing_value\":NaN,\"_FillValue\":NaN,\"valid_range\":[-Infinity,Infinity],"           \
    "\"deep\":{\"a/b~c\":[[1,NaN],\"NaN\"],\"k\\u0000\":Infinity},\"word\":\"NaN\",\"none\":null}"

static brc_json *attributes_of(exchange_kit *kit, const char *path)
{
    brc_buf text = BRC_BUF_INIT;
    brc_json *attrs;
    OK(kit, brc_attrs_get(&text, kit->session, path, NULL, &kit->err));
    OK(kit, brc_json_parse(&attrs, (const char *)text.data, text.len, BRC_JSON_NAN, &kit->err));
    brc_buf_dispose(&text);
    return attrs;
}

static void check_attributes(exchange_kit *kit, const char *path, const char *expected)
{
    brc_json *want, *got = attributes_of(kit, path);
    brc_buf text = BRC_BUF_INIT;
    OK(kit, brc_json_parse(&want, expected, strlen(expected), BRC_JSON_NAN, &kit->err));
    OK(kit, brc_json_write(&text, got, 0, &kit->err));
    ck_assert_msg(brc_json_equal(got, want), "%s: %.*s instead of %s", path, (int)text.len,
                  (char *)text.data, expected);
    brc_buf_dispose(&text);
    brc_json_free(want);
    brc_json_free(got);
}

static void make_nodes_with(exchange_kit *kit, const char *attrs)
{
    const uint64_t shape = 2;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    OK(kit, brc_group_create(kit->session, "/g", attrs, &kit->err));
    spec.ndim = 1;
    spec.shape = &shape;
    spec.dtype = "float32";
    spec.attrs_json = attrs;
    OK(kit, brc_array_create(&a, kit->session, "/g/v", &spec, &kit->err));
    brc_array_free(a);
}

/* The document is strict JSON, which brc_json_parse() takes. */
static brc_json *strict_document(const char *path)
{
    brc_buf text = exchange_read(path);
    brc_error err = BRC_ERROR_INIT;
    brc_json *doc;
    int rc = brc_json_parse(&doc, (const char *)text.data, text.len, 0, &err);
    ck_assert_msg(rc == BRC_OK, "%s: %s", path, err.message);
    brc_buf_dispose(&text);
    return doc;
}

static const struct {
    const char *format, *dest;
    uint32_t flags;
    const char *documents[4];
} exports[] = {
    { "zarr3", "out", 0, { "zarr.json", "v/zarr.json" } },
    { "zarr3", "out", BRC_XFER_CONSOLIDATED, { "zarr.json", "v/zarr.json" } },
    { "zarr2", "out", 0, { ".zattrs", "v/.zattrs" } },
    { "zarr2", "out", BRC_XFER_CONSOLIDATED, { ".zattrs", "v/.zattrs", ".zmetadata" } },
    { "zip", "out.zip", 0, { NULL } },
    { NULL, NULL, 0, { NULL } }, /* a stream */
};

static void export_and_import(exchange_kit *kit, size_t i, uint32_t flags, brc_buf *warnings)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    opts.format = exports[i].format;
    opts.flags = exports[i].flags | flags;
    opts.warnings = warnings;
    if (opts.format) {
        const char *dest = exchange_path(kit, exports[i].dest);
        OK(kit, brc_export(kit->session, "/g", dest, &opts, &kit->err));
        OK(kit, brc_import(kit->session, dest, "/back", NULL, &kit->err));
        return;
    }
    int fd = open(exchange_path(kit, "stream"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    OK(kit, exchange_stream_out(kit->session, "/g", fd, &opts, &kit->err));
    ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
    OK(kit, exchange_stream_in(kit->session, fd, "/back", NULL, &kit->err));
    close(fd);
}

EACH(i24_2_exports_are_strict_and_lead_back, exports)
{
    exchange_kit kit;
    brc_buf warnings = BRC_BUF_INIT;
    exchange_start(&kit);
    make_nodes_with(&kit, NUMBERS);
    OK(&kit, brc_group_create(kit.session, "/g/plain", "{\"a\":\"NaN\",\"b\":null}", &kit.err));
    export_and_import(&kit, (size_t)_i, 0, &warnings);
    check_attributes(&kit, "/back", NUMBERS);
    check_attributes(&kit, "/back/v", NUMBERS);
    check_attributes(&kit, "/back/plain", "{\"a\":\"NaN\",\"b\":null}");
    const char *text = (const char *)warnings.data;
    ck_assert_ptr_nonnull(text); /* one line, with both nodes and no other */
    ck_assert_msg(strncmp(text, "/g, /g/v: ", 10) == 0 && strstr(text, "--nan-tokens"), "%s", text);
    ck_assert_ptr_eq(strchr(text, '\n'), text + warnings.len - 1);
    for (size_t k = 0; exports[_i].documents[k]; k++) {
        char name[64];
        snprintf(name, sizeof(name), "out/%s", exports[_i].documents[k]);
        brc_json_free(strict_document(exchange_path(&kit, name)));
    }
    brc_buf_dispose(&warnings);
    exchange_stop(&kit);
}

EACH(i24_2_tokens_are_written_on_demand, exports)
{
    exchange_kit kit;
    brc_buf warnings = BRC_BUF_INIT;
    brc_json *doc;
    exchange_start(&kit);
    make_nodes_with(&kit, NUMBERS);
    export_and_import(&kit, (size_t)_i, BRC_XFER_NAN_TOKENS, &warnings);
    check_attributes(&kit, "/back", NUMBERS);
    check_attributes(&kit, "/back/v", NUMBERS);
    ck_assert_uint_eq(warnings.len, 0);
    for (size_t k = 0; exports[_i].documents[k]; k++) {
        char name[64];
        snprintf(name, sizeof(name), "out/%s", exports[_i].documents[k]);
        brc_buf text = exchange_read(exchange_path(&kit, name));
        ck_assert_int_eq(brc_json_parse(&doc, (const char *)text.data, text.len, 0,
                                        NULL), BRC_EINVAL);
        ck_assert_ptr_nonnull(memmem(text.data, text.len, "NaN,", 4));
        ck_assert_ptr_null(memmem(text.data, text.len, BRC_NUMBERS_MARK, strlen(BRC_NUMBERS_MARK)));
        brc_buf_dispose(&text);
    }
    exchange_stop(&kit);
}

/* The text that stands for a number where xarray would take the number's name for a value. */
LOOP(i24_2_what_xarray_reads, 0, 3)
{
    exchange_kit kit;
    exchange_start(&kit);
    make_nodes_with(&kit, NUMBERS);
    const int is_v2 = _i == 2;
    export_and_import(&kit, (size_t)_i, 0, NULL);
    const char *file = is_v2 ? "out/v/.zattrs" : "out/v/zarr.json";
    brc_json *doc = strict_document(exchange_path(&kit, file));
    const brc_json *attrs = is_v2 ? doc : brc_json_member(doc, "attributes");
    ck_assert_int_eq(brc_json_kind(brc_json_member(attrs, "missing_value")), BRC_JSON_NULL);
    const brc_json *fill = brc_json_member(attrs, "_FillValue");
    ck_assert(is_v2 ? brc_json_kind(fill) == BRC_JSON_NULL : brc_json_is(fill, "AAAAAAAA+H8="));
    ck_assert_int_eq(brc_json_kind(brc_json_member(attrs, BRC_NUMBERS_MARK)), BRC_JSON_STRING);
    brc_json_free(doc);
    doc = strict_document(exchange_path(&kit, is_v2 ? "out/.zattrs" : "out/zarr.json"));
    attrs = is_v2 ? doc : brc_json_member(doc, "attributes");
    /* a group's has no values */
    ck_assert(brc_json_is(brc_json_member(attrs, "missing_value"), "NaN"));
    brc_json_free(doc);
    exchange_stop(&kit);
}

/* Attributes that look like a mark, or like what stands for a number, come back as they were. */
EACH(i24_2_no_text_of_a_user_is_a_mark, exports)
{
    static const char *const given[] = {
        "{\"a\":\"NaN\",\"_breccia_numbers\":\"{\\\"numbers\\\":{\\\"/a\\\":\\\"NaN\\\"}}\"}",
        "{\"a\":NaN,\"_breccia_numbers\":\"{\\\"numbers\\\":{\\\"/a\\\":\\\"NaN\\\"}}\"}",
        "{\"a\":NaN,\"b\":\"NaN\",\"_breccia_numbers\":{\"numbers\":{\"/b\":\"NaN\"}}}",
        "{\"_breccia_numbers\":NaN}",
        "{\"_breccia_numbers\":\"NaN\"}",
        "{\"_breccia_numbers\":[NaN,\"x\"],\"missing_value\":null}",
        "{\"missing_value\":null,\"_FillValue\":\"AAAAAAAA+H8=\",\"a\":\"-Infinity\"}",
        "{\"_breccia_numbers\":\"{\\\"numbers\\\":{},\\\"own\\\":1}\"}",
    };
    for (size_t i = 0; i < COUNT(given); i++) {
        exchange_kit kit;
        exchange_start(&kit);
        make_nodes_with(&kit, given[i]);
        export_and_import(&kit, (size_t)_i, 0, NULL);
        check_attributes(&kit, "/back", given[i]);
        check_attributes(&kit, "/back/v", given[i]);
        exchange_stop(&kit);
    }
}

/* A mark that somebody changed since is theirs, and all else is an attribute. */
TEST(i24_2_marks_of_others)
{
    static const struct { const char *before, *after; } cases[] = {
        { "{\"a\":\"none\",\"b\":\"NaN\",\"_breccia_numbers\":\"{\\\"numbers\\\":{\\\"/a\\\":"
        "\\\"NaN\\\","
          "\\\"/b\\\":\\\"NaN\\\",\\\"/c\\\":\\\"NaN\\\"}}\"}", "{\"a\":\"none\",\"b\":NaN}" },
        { "{\"a\":\"NaN\",\"_breccia_numbers\":\"{\\\"numbers\\\":{\\\"/a\\\":"
        "\\\"Infinity\\\"}}\"}",
          "{\"a\":\"NaN\"}" },
        { "{\"a\":\"NaN\",\"_breccia_numbers\":\"{\\\"numbers\\\":{\\\"/a\\\":1}}\"}", NULL },
        { "{\"a\":\"NaN\",\"_breccia_numbers\":\"{\\\"numbers\\\":{},\\\"x\\\":1}\"}", NULL },
        { "{\"a\":\"NaN\",\"_breccia_numbers\":\"{\\\"numbers\\\":[]}\"}", NULL },
        { "{\"a\":\"NaN\",\"_breccia_numbers\":\"{\"}", NULL },
        { "{\"a\":null,\"_breccia_numbers\":\"{\\\"numbers\\\":{\\\"/a\\\":\\\"NaN\\\"}}\"}",
        "{\"a\":null}" },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        exchange_kit kit;
        char text[512];
        exchange_start(&kit);
        snprintf(text, sizeof(text),
                 "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":%s}",
                 cases[i].before);
        exchange_text(&kit, "in/zarr.json", text);
        OK(&kit, brc_import(kit.session, exchange_path(&kit, "in"), "/in", NULL, &kit.err));
        check_attributes(&kit, "/in", cases[i].after ? cases[i].after : cases[i].before);
        exchange_stop(&kit);
    }
}

/* A list of very many numbers: neither the mark nor the way back takes the square of it. */
TEST(i24_2_many_numbers)
{
    enum { MANY = 200000 };
    exchange_kit kit;
    brc_buf text = BRC_BUF_INIT;
    exchange_start(&kit);
    OK(&kit, brc_buf_text(&text, "{\"a\":[0", &kit.err));
    for (size_t i = 0; i < MANY; i++)
        OK(&kit, brc_buf_text(&text, i % 2 ? ",NaN" : ",-Infinity", &kit.err));
    OK(&kit, brc_buf_text(&text, "]}", &kit.err));
    OK(&kit, brc_buf_terminate(&text, &kit.err));
    make_nodes_with(&kit, (const char *)text.data);
    export_and_import(&kit, 0, 0, NULL);
    check_attributes(&kit, "/back/v", (const char *)text.data);
    brc_buf_dispose(&text);
    exchange_stop(&kit);
}
