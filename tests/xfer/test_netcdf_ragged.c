/* Variables of NetCDF's vlen types, and of compounds with texts and lists: as groups of arrays, and
 * back. Files are compared as the HDF5 files that they are. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../kit/hdf5_kit.h"
#include "../kit/hdf5_same.h"
#include "../kit/netcdf_kit.h"
#include "../kit/suite.h"

TEST_SUITE(netcdf_ragged);

static const int numbers[] = { 1, -2, 3, 4, 5, 6, 7, 8 };
#define NUMBERS(from, n)                         \
    {                                            \
        n, (void *)(uintptr_t)(numbers + (from)) \
    }
static const nc_vlen_t lists[] = { NUMBERS(0, 3), NUMBERS(0, 0), NUMBERS(4, 1), NUMBERS(5, 2) };

static void put_lists(int nc)
{
    static const size_t start[] = { 0, 0 }, count[] = { 2, 2 }, chunk[] = { 1, 2 };
    int list, dims[2], var, seven = 7;
    NC(nc_def_vlen(nc, "row_t", NC_INT, &list));
    NC(nc_def_dim(nc, "time", NC_UNLIMITED, &dims[0]));
    NC(nc_def_dim(nc, "x", 2, &dims[1]));
    NC(nc_def_var(nc, "fresh", list, 1, dims + 1, &var)); /* in the order of an export */
    NC(nc_def_var(nc, "l", list, 1, dims + 1, &var));
    NC(nc_put_var(nc, var, lists));
    NC(nc_def_var(nc, "m", list, 2, dims, &var));
    NC(nc_def_var_chunking(nc, var, NC_CHUNKED, chunk));
    NC(nc_put_att_int(nc, var, "units", NC_INT, 1, &seven));
    NC(nc_put_vara(nc, var, start, count, lists));
    NC(nc_def_var(nc, "s", list, 0, NULL, &var));
    NC(nc_put_var(nc, var, lists));
}

static void put_nested(int nc)
{
    static const nc_vlen_t rows[] = { { 2, (void *)(uintptr_t)lists },
                                      { 0, NULL },
                                      { 2, (void *)(uintptr_t)(lists + 2) } };
    int list, nested, group, dim, var;
    NC(nc_def_vlen(nc, "row_t", NC_INT, &list));
    NC(nc_def_vlen(nc, "rows_t", list, &nested));
    NC(nc_def_grp(nc, "g", &group));
    NC(nc_def_dim(group, "x", 3, &dim));
    NC(nc_def_var(group, "n", nested, 1, &dim, &var));
    NC(nc_put_var(group, var, rows));
}

typedef struct point {
    int n;
    double x;
} point;

/* So many variables that what is known of them moves. */
static void put_many(int nc)
{
    int list, dim, var;
    NC(nc_def_vlen(nc, "row_t", NC_INT, &list));
    NC(nc_def_dim(nc, "x", 4, &dim));
    for (int i = 0; i < 60; i++) {
        char name[16];
        snprintf(name, sizeof(name), "v%02d", i);
        NC(nc_def_var(nc, name, list, 1, &dim, &var));
        NC(nc_put_var(nc, var, lists));
    }
}

static void put_points(int nc)
{
    static const point points[] = { { 1, 0.5 }, { 2, 1.5 }, { 3, -2 } };
    static const nc_vlen_t rows[] = { { 2, (void *)(uintptr_t)points },
                                      { 1, (void *)(uintptr_t)(points + 2) } };
    int type, list, dim, var;
    NC(nc_def_compound(nc, sizeof(point), "struct", &type));
    NC(nc_insert_compound(nc, type, "n", offsetof(point, n), NC_INT));
    NC(nc_insert_compound(nc, type, "x", offsetof(point, x), NC_DOUBLE));
    NC(nc_def_vlen(nc, "points_t", type, &list));
    NC(nc_def_dim(nc, "i", 2, &dim));
    NC(nc_def_var(nc, "p", list, 1, &dim, &var));
    NC(nc_put_var(nc, var, rows));
}

typedef struct person {
    signed char flag;
    char *name;
    nc_vlen_t list;
    float x[2];
    char code[4];
} person;

static void put_people(int nc)
{
    static const person people[] = { { 1, (char *)"h\xc3\xa9", NUMBERS(0, 2), { 0.5, 1 }, "ab" },
                                     { 2, (char *)"", NUMBERS(0, 0), { 2, 3 }, "" },
                                     { 3, (char *)"xyz", NUMBERS(5, 3), { 4, 5 }, "wxyz" } };
    int type, list, dim, var, two = 2, four = 4;
    NC(nc_def_vlen(nc, "row_t", NC_INT, &list));
    NC(nc_def_compound(nc, sizeof(person), "person_t", &type));
    NC(nc_insert_compound(nc, type, "flag", offsetof(person, flag), NC_BYTE));
    NC(nc_insert_compound(nc, type, "name", offsetof(person, name), NC_STRING));
    NC(nc_insert_compound(nc, type, "list", offsetof(person, list), list));
    NC(nc_insert_array_compound(nc, type, "x", offsetof(person, x), NC_FLOAT, 1, &two));
    NC(nc_insert_array_compound(nc, type, "code", offsetof(person, code), NC_CHAR, 1, &four));
    NC(nc_def_dim(nc, "i", 3, &dim));
    NC(nc_def_var(nc, "p", type, 1, &dim, &var));
    NC(nc_put_var(nc, var, people));
}

static const struct {
    void (*put)(int nc);
    const char *checks[12];
} ragged[] = {
    { put_lists,
      { "/m/offsets", "[0,3,3,4,6]", "/m/values", "[1,-2,3,5,6,7]", "/l/offsets", "[0,3,3]",
        "/s/values", "[1,-2,3]", "/fresh/offsets", "[0,0,0]" } },
    { put_nested,
      { "/g/n/offsets", "[0,2,2,4]", "/g/n/values/offsets", "[0,3,3,4,6]", "/g/n/values/values",
        "[1,-2,3,5,6,7]" } },
    { put_points,
      { "/p/offsets", "[0,2,3]", "/p/values",
        "[{\"n\":1,\"x\":0.5},{\"n\":2,\"x\":1.5},{\"n\":3,\"x\":-2.0}]" } },
    { put_people,
      { "/p/flag", "[1,2,3]", "/p/name", "[\"h\xc3\xa9\",\"\",\"xyz\"]", "/p/list/offsets",
        "[0,2,2,5]", "/p/list/values", "[1,-2,6,7,8]", "/p/x", "[0.5,1.0,2.0,3.0,4.0,5.0]" } },
    { put_many, { "/v59/values", "[1,-2,3,5,6,7]" } },
};
#define N_RAGGED ((int)(sizeof(ragged) / sizeof(ragged[0])))

static void make_file(exchange_kit *kit, int i)
{
    int nc;
    exchange_start(kit);
    NC(nc_create(exchange_path(kit, "x.nc"), NC_NETCDF4, &nc));
    ragged[i].put(nc);
    NC(nc_close(nc));
    netcdf_import_ok(kit, exchange_path(kit, "x.nc"), "/in");
}

CASE("types", .timeout = 60);

LOOP(netcdf_ragged_in_and_out_again, 0, N_RAGGED)
{
    exchange_kit kit;
    make_file(&kit, _i);
    for (const char *const *check = ragged[_i].checks; check[0]; check += 2) {
        char path[64];
        snprintf(path, sizeof(path), "/in%s", check[0]);
        hdf5_check_values(&kit, path, check[1]);
    }
    (void)netcdf_export_ok(&kit, "/in", "y.nc", NULL);
    hdf5_same_files(exchange_path(&kit, "x.nc"), exchange_path(&kit, "y.nc"));
    exchange_stop(&kit);
}

/* One variable by itself has its own name; its arrays are those that were changed. */
TEST(netcdf_ragged_by_itself)
{
    exchange_kit kit;
    nc_vlen_t back[3];
    const int nine = 9;
    brc_sel sel = BRC_SEL_INIT;
    brc_array *a;
    int nc, var, dims[2], ndims, kind;
    nc_type type, base;
    char name[NC_MAX_NAME + 1];
    make_file(&kit, 1);
    ck_assert_int_eq(brc_array_open(&a, kit.session, "/in/g/n/values/values", &kit.err), BRC_OK);
    ck_assert_int_eq(brc_sel_parse(&sel, a, "[1:2]", &kit.err), BRC_OK);
    ck_assert_int_eq(brc_array_write(a, &sel, &nine, sizeof(nine), &kit.err), BRC_OK);
    brc_array_free(a);
    NC(nc_open(netcdf_export_ok(&kit, "/in/g/n", "y.nc", NULL), NC_NOWRITE, &nc));
    NC(nc_inq_varid(nc, "n", &var));
    NC(nc_inq_var(nc, var, NULL, &type, &ndims, dims, NULL));
    ck_assert_int_eq(ndims, 1);
    NC(nc_inq_user_type(nc, type, name, NULL, &base, NULL, &kind));
    ck_assert_int_eq(kind, NC_VLEN);
    ck_assert_str_eq(name, "rows_t");
    NC(nc_inq_dimname(nc, dims[0], name));
    ck_assert_str_eq(name, "x");
    NC(nc_get_var(nc, var, back));
    ck_assert_uint_eq(back[0].len, 2);
    const nc_vlen_t *row = back[0].p;
    ck_assert_uint_eq(row->len, 3);
    ck_assert_int_eq(((const int *)row->p)[1], 9);
    ck_assert_uint_eq(back[1].len, 0);
    for (int i = 0; i < 3; i++)
        NC(nc_free_vlens(back[i].len, back[i].p));
    NC(nc_free_vlens(3, back));
    NC(nc_close(nc));
    exchange_stop(&kit);
}

static void set_variable(exchange_kit *kit, const char *path, const char *variable)
{
    char note[512];
    snprintf(note, sizeof(note), "{\"variable\":%s}", variable);
    ck_assert_int_eq(brc_attrs_set(kit->session, path, "_nc_note", note, &kit->err), BRC_OK);
}

#define TYPE(tree) "{\"type\":" tree ",\"shape\":[3],\"names\":[\"i\"]}"
static const struct {
    const char *variable, *says;
} lies[] = {
    { "7", "\"shape\" of its attribute _nc_note was not made by an import" },
    { "{\"type\":{\"data_type\":\"int8\"},\"shape\":[1.5]}", "\"shape\" of its attribute" },
    { TYPE("{\"data_type\":\"int8\"}"), "\"type\" of its attribute" },
    { TYPE("{\"list\":{\"data_type\":\"int99\"}}"), "\"type\" of its attribute" },
    { TYPE("{\"list\":{\"array\":[2],\"of\":{\"data_type\":\"int8\"}}}"), "\"type\" of its" },
    { TYPE("{\"fields\":[]}"), "\"type\" of its attribute" },
    { TYPE("{\"fields\":[{\"name\":\"x\",\"type\":{\"array\":[2147483647,2147483647],"
           "\"of\":{\"data_type\":\"int8\"}}}]}"),
      "\"type\" of its attribute" },
    { TYPE("{\"list\":{\"data_type\":\"int32\"}}"), "it has no array p/offsets" },
    { TYPE("{\"fields\":[{\"name\":\"flag\",\"type\":{\"data_type\":\"int8\"}}]}"),
      "\"type\" of its attribute" },
    { TYPE("{\"fields\":[{\"name\":\"flag\",\"type\":{\"data_type\":\"int8\"}},"
           "{\"name\":\"name\",\"type\":{\"data_type\":\"string\"}}]}"),
      "/in/p/code has no place in the dataset" },
};
#define N_LIES ((int)(sizeof(lies) / sizeof(lies[0])))

/* A note that does not fit the arrays is refused by name, and nothing is written. */
LOOP(netcdf_notes_that_do_not_fit, 0, N_LIES)
{
    exchange_kit kit;
    make_file(&kit, 3);
    set_variable(&kit, "/in/p", lies[_i].variable);
    const char *to = exchange_path(&kit, "y.nc");
    ck_assert_int_eq(brc_export(kit.session, "/in", to, NULL, &kit.err), BRC_EUNSUPPORTED);
    ck_assert_msg(strstr(kit.err.message, lies[_i].says) && strstr(kit.err.message, "_nc_note"),
                  "\"%s\" is not in \"%s\"", lies[_i].says, kit.err.message);
    ck_assert(!exchange_exists(to));
    ck_assert_int_eq(brc_attrs_set(kit.session, "/in/p", "_nc_note", NULL, &kit.err), BRC_OK);
    (void)netcdf_export_ok(&kit, "/in", "z.nc", NULL); /* a group */
    exchange_stop(&kit);
}

TEST(netcdf_lists_and_the_classic_format)
{
    exchange_kit kit;
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    opts.format = "netcdf3";
    make_file(&kit, 2);
    ck_assert_int_eq(brc_export(kit.session, "/in", exchange_path(&kit, "y.nc"), &opts, &kit.err),
                     BRC_EUNSUPPORTED);
    ck_assert_msg(strstr(kit.err.message, "/in/p is a variable of lists"), "%s", kit.err.message);
    exchange_stop(&kit);
}

/* A fill value that is a list, here an empty one, is named; the rest comes in without it. */
TEST(netcdf_lists_with_a_fill_value)
{
    static const char *const leave[] = { "/l@_FillValue" };
    exchange_kit kit;
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    int nc, list, dim, var;
    exchange_start(&kit);
    const char *source = exchange_path(&kit, "x.nc");
    NC(nc_create(source, NC_NETCDF4, &nc));
    NC(nc_def_vlen(nc, "row_t", NC_INT, &list));
    NC(nc_def_dim(nc, "x", 2, &dim));
    NC(nc_def_var(nc, "l", list, 1, &dim, &var));
    NC(nc_put_att(nc, var, "_FillValue", list, 1, lists + 1)); /* the library leaks items */
    NC(nc_put_var(nc, var, lists + 2));
    NC(nc_close(nc));
    ck_assert_int_eq(brc_import(kit.session, source, "/in", NULL, &kit.err), BRC_EUNSUPPORTED);
    ck_assert_msg(strstr(kit.err.message, "/l has a _FillValue"), "%s", kit.err.message);
    opts.exclude = leave;
    opts.nexclude = 1;
    ck_assert_int_eq(brc_import(kit.session, source, "/in", &opts, &kit.err), BRC_OK);
    hdf5_check_values(&kit, "/in/l/values", "[5,6,7]");
    exchange_stop(&kit);
}
