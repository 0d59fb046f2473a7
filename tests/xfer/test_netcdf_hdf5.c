/* NetCDF-4's conventions in HDF5: the converter of HDF5 reads such files. They are
 * made with
 * netCDF-C, and where they have what that library does not write, changed with libhdf5. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kit/hdf5_kit.h"
#include "../kit/netcdf_kit.h"
#include "../kit/suite.h"

TEST_SUITE(netcdf_hdf5);

static const int four[] = { 1, 2, 3, 4 };

static const char *new_file(exchange_kit *kit, int *nc)
{
    exchange_start(kit);
    const char *source = exchange_path(kit, "x.nc");
    NC(nc_create(source, NC_NETCDF4, nc));
    return source;
}

static void import_here(exchange_kit *kit, int nc)
{
    NC(nc_close(nc));
    netcdf_import_ok(kit, exchange_path(kit, "x.nc"), "/in");
}

static int new_var(int nc, const char *name, nc_type type, int ndims, const int *dims)
{
    int var;
    NC(nc_def_var(nc, name, type, ndims, dims, &var));
    return var;
}

CASE("conventions", .timeout = 60);

/* A coordinate; one of two axes; a variable with a dimension's name along another one, which
 * HDF5 has under a longer name; a dimension that is not a variable; one of a group around. */
TEST(i25_9_axes_are_dimensions)
{
    static const struct {
        const char *path, *names;
    } expected[] = { { "/in/x", "[\"x\"]" },
                     { "/in/y", "[\"y\",\"x\"]" },
                     { "/in/z", "[\"x\"]" },
                     { "/in/g/v", "[\"y\",\"x\",\"z\"]" },
                     { "/in/g/x", "[\"x\"]" } };
    exchange_kit kit;
    int nc, x, y, z, inner, g;
    (void)new_file(&kit, &nc);
    NC(nc_def_dim(nc, "x", 3, &x));
    NC(nc_def_dim(nc, "y", 2, &y));
    NC(nc_def_dim(nc, "z", 4, &z));
    NC(nc_def_grp(nc, "g", &g));
    NC(nc_def_dim(g, "x", 4, &inner));
    (void)new_var(nc, "x", NC_FLOAT, 1, &x);
    (void)new_var(nc, "y", NC_FLOAT, 2, (int[]){ y, x });
    (void)new_var(nc, "z", NC_FLOAT, 1, &x);
    (void)new_var(g, "v", NC_INT, 3, (int[]){ y, inner, z });
    (void)new_var(g, "x", NC_INT, 1, &inner);
    import_here(&kit, nc);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        ck_assert_str_eq(netcdf_member(&kit, expected[i].path, "dimension_names"),
                         expected[i].names);
    ck_assert_str_eq(netcdf_member(&kit, "/in/g/v", "shape"), "[2,4,4]");
    int kind;
    ck_assert_int_eq(brc_node_kind(&kind, kit.session, "/in/_nc4_non_coord_z", &kit.err), BRC_OK);
    ck_assert_int_eq(kind, 0);
    ck_assert_str_eq(netcdf_attribute(&kit, "/in", "_nc_note"),
                     "{\"dimensions\":{\"x\":{\"length\":3},\"y\":{\"length\":2},"
                     "\"z\":{\"length\":4}}}");
    exchange_stop(&kit);
}

/* The name of a dimension is its scale's, whatever the scale's attribute NAME says: renaming leaves
 * that as it was. */
TEST(i25_9_renamed_dimensions)
{
    exchange_kit kit;
    int nc, x, var;
    const char *source = new_file(&kit, &nc);
    NC(nc_def_dim(nc, "x", 4, &x));
    NC(nc_put_var_int(nc, new_var(nc, "x", NC_INT, 1, &x), four));
    NC(nc_put_var_int(nc, new_var(nc, "v", NC_INT, 1, &x), four));
    NC(nc_close(nc));
    NC(nc_open(source, NC_WRITE, &nc));
    NC(nc_redef(nc));
    NC(nc_inq_varid(nc, "x", &var));
    NC(nc_rename_var(nc, var, "values"));
    NC(nc_close(nc));
    NC(nc_open(source, NC_WRITE, &nc));
    NC(nc_redef(nc));
    NC(nc_rename_dim(nc, x, "new"));
    import_here(&kit, nc);
    ck_assert_str_eq(netcdf_member(&kit, "/in/v", "dimension_names"), "[\"new\"]");
    ck_assert_str_eq(netcdf_member(&kit, "/in/values", "dimension_names"), "[\"new\"]");
    netcdf_check_bytes(&kit, "/in/values", four, sizeof(four));
    exchange_stop(&kit);
}

/* A variable is as long as its unlimited dimension, which others have made longer: behind the
 * dataset's end is the fill value, of texts too. netCDF-C itself fails on such texts. */
TEST(i25_9_variables_that_are_shorter_than_their_dimension)
{
    static const int numbers[] = { 1, 2, NC_FILL_INT, NC_FILL_INT };
    static const int noughts[] = { 1, 2, NC_FILL_INT, NC_FILL_INT };
    static const int nines[] = { 1, 2, 9, 9 }, nine = 9;
    const char *texts[] = { "a", "bc" }, *none = "-";
    const size_t start[] = { 0 }, all[] = { 4 }, two[] = { 2 };
    exchange_kit kit;
    int nc, t, var;
    (void)new_file(&kit, &nc);
    NC(nc_def_dim(nc, "t", NC_UNLIMITED, &t));
    NC(nc_put_vara_int(nc, new_var(nc, "long", NC_INT, 1, &t), start, all, four));
    NC(nc_put_vara_int(nc, new_var(nc, "short", NC_INT, 1, &t), start, two, four));
    var = new_var(nc, "nofill", NC_INT, 1, &t);
    NC(nc_def_var_fill(nc, var, NC_NOFILL, NULL));
    NC(nc_put_vara_int(nc, var, start, two, four));
    var = new_var(nc, "nine", NC_INT, 1, &t);
    NC(nc_def_var_fill(nc, var, NC_FILL, &nine));
    NC(nc_put_vara_int(nc, var, start, two, four));
    NC(nc_put_vara_string(nc, new_var(nc, "text", NC_STRING, 1, &t), start, two, texts));
    var = new_var(nc, "filled", NC_STRING, 1, &t);
    NC(nc_put_att_string(nc, var, "_FillValue", 1, &none));
    NC(nc_put_vara_string(nc, var, start, two, texts));
    import_here(&kit, nc);
    netcdf_check_bytes(&kit, "/in/long", four, sizeof(four));
    netcdf_check_bytes(&kit, "/in/short", numbers, sizeof(numbers));
    netcdf_check_bytes(&kit, "/in/nofill", noughts, sizeof(noughts));
    netcdf_check_bytes(&kit, "/in/nine", nines, sizeof(nines));
    hdf5_check_values(&kit, "/in/text", "[\"a\",\"bc\",\"\",\"\"]");
    hdf5_check_values(&kit, "/in/filled", "[\"a\",\"bc\",\"-\",\"-\"]");
    ck_assert_str_eq(netcdf_attribute(&kit, "/in", "_nc_note"),
                     "{\"dimensions\":{\"t\":{\"unlimited\":true,\"length\":4}}}");
    exchange_stop(&kit);
}

/* The same of elements that are groups of arrays: lists. */
TEST(i25_9_lists_that_are_shorter_than_their_dimension)
{
    nc_vlen_t lists[] = { { 2, (void *)(uintptr_t)four }, { 1, (void *)(uintptr_t)(four + 3) } };
    const size_t start[] = { 0 }, all[] = { 4 }, two[] = { 2 };
    exchange_kit kit;
    int nc, t, type;
    (void)new_file(&kit, &nc);
    NC(nc_def_dim(nc, "t", NC_UNLIMITED, &t));
    NC(nc_put_vara_int(nc, new_var(nc, "long", NC_INT, 1, &t), start, all, four));
    NC(nc_def_vlen(nc, "row_t", NC_INT, &type));
    NC(nc_put_vara(nc, new_var(nc, "l", type, 1, &t), start, two, lists));
    import_here(&kit, nc);
    hdf5_check_values(&kit, "/in/l/offsets", "[0,2,3,3,3]");
    hdf5_check_values(&kit, "/in/l/values", "[1,2,4]");
    exchange_stop(&kit);
}

/* netCDF-C takes the oldest of several types that have one structure and different names. */
TEST(i25_9_types_that_are_equal)
{
    static const char *const names[] = { "m", "z", "a" };
    nc_vlen_t list = { 2, (void *)(uintptr_t)four };
    exchange_kit kit;
    int nc, type = 0, g;
    (void)new_file(&kit, &nc);
    for (int i = 0; i < 3; i++)
        NC(nc_def_vlen(nc, names[i], NC_INT, &type));
    NC(nc_put_var(nc, new_var(nc, "v", type, 0, NULL), &list));
    NC(nc_def_grp(nc, "g", &g));
    NC(nc_def_vlen(g, "b", NC_DOUBLE, &type));
    NC(nc_def_vlen(g, "c", NC_DOUBLE, &type));
    NC(nc_put_var(g, new_var(g, "v", type, 0, NULL), &(nc_vlen_t){ 0, NULL }));
    import_here(&kit, nc);
    ck_assert_ptr_nonnull(strstr(netcdf_attribute(&kit, "/in/v", "_nc_note"), "\"m\""));
    ck_assert_ptr_nonnull(strstr(netcdf_attribute(&kit, "/in/g/v", "_nc_note"), "\"b\""));
    exchange_stop(&kit);
}

/* Memory that was never written is nobody's: without a fill value elements read as zeros. */
TEST(i25_9_unwritten_elements_without_a_fill_value)
{
    static const uint8_t zeros[4000];
    exchange_kit kit;
    int nc, x, var;
    (void)new_file(&kit, &nc);
    NC(nc_def_dim(nc, "x", 1000, &x));
    var = new_var(nc, "v", NC_INT, 1, &x);
    NC(nc_def_var_fill(nc, var, NC_NOFILL, NULL));
    import_here(&kit, nc);
    netcdf_check_bytes(&kit, "/in/v", zeros, sizeof(zeros));
    exchange_stop(&kit);
}

/* Without a scale an axis has no name; and what netCDF-C would pass over in silence comes in. */
TEST(i25_9_datasets_that_netcdf_does_not_write)
{
    static const hsize_t shape[] = { 4 };
    static const int8_t truths[] = { 1, 0, 1, 1 };
    exchange_kit kit;
    int nc, x;
    const char *source = new_file(&kit, &nc);
    NC(nc_def_dim(nc, "x", 4, &x));
    NC(nc_put_var_int(nc, new_var(nc, "v", NC_INT, 1, &x), four));
    NC(nc_close(nc));
    hid_t file = H5(H5Fopen(source, H5F_ACC_RDWR, H5P_DEFAULT)), type;
    H5(H5Dclose(hdf5_new_dataset(file, "bare", H5T_STD_I32BE, 1, shape, H5P_DEFAULT,
                                 H5T_NATIVE_INT, four)));
    type = H5(H5Tenum_create(H5T_NATIVE_INT8)); /* as h5py has truths; no type of the file */
    H5(H5Tenum_insert(type, "FALSE", &(int8_t){ 0 }));
    H5(H5Tenum_insert(type, "TRUE", &(int8_t){ 1 }));
    H5(H5Dclose(hdf5_new_dataset(file, "enum", type, 1, shape, H5P_DEFAULT, type, truths)));
    H5(H5Tclose(type));
    H5(H5Lcreate_soft("/v", file, "soft", H5P_DEFAULT, H5P_DEFAULT));
    H5(H5Fclose(file));
    netcdf_import_ok(&kit, source, "/in");
    ck_assert_str_eq(netcdf_member(&kit, "/in/bare", "dimension_names"), "");
    netcdf_check_bytes(&kit, "/in/bare", four, sizeof(four));
    netcdf_check_bytes(&kit, "/in/enum", truths, sizeof(truths));
    ck_assert_str_eq(netcdf_member(&kit, "/in/enum", "data_type"), "\"int8\"");
    ck_assert_str_eq(netcdf_attribute(&kit, "/in/enum", "flag_meanings"), "\"FALSE TRUE\"");
    ck_assert_str_eq(netcdf_member(&kit, "/in/soft", "dimension_names"), "[\"x\"]");
    ck_assert_str_eq(netcdf_member(&kit, "/in/enum", "hdf5"), "");
    exchange_stop(&kit);
}

/* netCDF's own attributes are hidden; others keep their order, and their types are noted. */
TEST(i25_9_attributes_of_variables)
{
    static const hsize_t two[] = { 2, 2 };
    exchange_kit kit;
    int nc, x, var;
    short one = 1;
    const char *word = "w";
    const char *source = new_file(&kit, &nc);
    NC(nc_def_dim(nc, "x", 4, &x));
    var = new_var(nc, "x", NC_INT, 1, &x);
    NC(nc_put_att_short(nc, var, "zeta", NC_SHORT, 1, &one));
    NC(nc_put_att_string(nc, var, "alpha", 1, &word));
    NC(nc_put_att_text(nc, var, "empty", 0, ""));
    NC(nc_put_att_text(nc, NC_GLOBAL, "title", 4, "text"));
    NC(nc_close(nc));
    hid_t file = H5(H5Fopen(source, H5F_ACC_RDWR, H5P_DEFAULT)),
          set = H5(H5Dopen2(file, "x", H5P_DEFAULT));
    hdf5_put_attribute(set, "square", H5T_STD_I32LE, 2, two, H5T_NATIVE_INT, four);
    H5(H5Dclose(set));
    H5(H5Fclose(file));
    netcdf_import_ok(&kit, source, "/in");
    ck_assert_str_eq(netcdf_member(&kit, "/in/x", "attributes"),
                     "{\"zeta\":1,\"alpha\":\"w\",\"empty\":\"\",\"square\":[[1,2],[3,4]]}");
    ck_assert_str_eq(netcdf_member(&kit, "/in/x", "netcdf"),
                     "{\"attributes\":{\"zeta\":\"short\",\"alpha\":\"string\"},"
                     "\"must_understand\":false}");
    ck_assert_str_eq(netcdf_member(&kit, "/in", "attributes"), "{\"title\":\"text\"}");
    exchange_stop(&kit);
}

/* An attribute of a type that the file defines: a list of one is that one. */
TEST(i25_9_attributes_of_user_types)
{
    typedef struct pair {
        int a;
        double b;
    } pair;
    static const pair pairs[] = { { 1, 0.5 }, { 2, 1.5 } };
    exchange_kit kit;
    int nc, type;
    (void)new_file(&kit, &nc);
    NC(nc_def_compound(nc, sizeof(pair), "pair_t", &type));
    NC(nc_insert_compound(nc, type, "a", offsetof(pair, a), NC_INT));
    NC(nc_insert_compound(nc, type, "b", offsetof(pair, b), NC_DOUBLE));
    NC(nc_put_att(nc, NC_GLOBAL, "one", type, 1, pairs));
    NC(nc_put_att(nc, NC_GLOBAL, "two", type, 2, pairs));
    import_here(&kit, nc);
    ck_assert_str_eq(netcdf_attribute(&kit, "/in", "one"), "{\"a\":1,\"b\":0.5}");
    ck_assert_str_eq(netcdf_attribute(&kit, "/in", "two"),
                     "[{\"a\":1,\"b\":0.5},{\"a\":2,\"b\":1.5}]");
    exchange_stop(&kit);
}

/* xarray's booleans, of which the file stores some chunks, or none, or more than 0 and 1. */
TEST(i25_9_booleans)
{
    static const struct {
        const char *name, *type;
        int n;
        int8_t data[4];
    } cases[] = { { "all", "\"bool\"", 4, { 1, 0, 0, 1 } },
                  { "other", "\"int8\"", 4, { 1, 0, 0, 2 } },
                  { "unwritten", "\"int8\"", 0, { 0 } }, /* NetCDF's own fill value is neither */
                  { "gaps", "\"int8\"", 2, { 1, 0 } } };
    exchange_kit kit;
    char path[32];
    int nc, x;
    (void)new_file(&kit, &nc);
    NC(nc_def_dim(nc, "x", 4, &x));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const size_t chunk[] = { 2 }, start[] = { 0 }, count[] = { (size_t)cases[i].n };
        int var = new_var(nc, cases[i].name, NC_BYTE, 1, &x);
        NC(nc_def_var_chunking(nc, var, NC_CHUNKED, chunk));
        NC(nc_put_att_text(nc, var, "dtype", 4, "bool"));
        if (cases[i].n > 0)
            NC(nc_put_vara(nc, var, start, count, cases[i].data));
    }
    import_here(&kit, nc);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(path, sizeof(path), "/in/%s", cases[i].name);
        ck_assert_str_eq(netcdf_member(&kit, path, "data_type"), cases[i].type);
        ck_assert_str_eq(netcdf_attribute(&kit, path, "dtype"),
                         strcmp(cases[i].type, "\"bool\"") == 0 ? "" : "\"bool\"");
    }
    netcdf_check_bytes(&kit, "/in/all", cases[0].data, 4);
    exchange_stop(&kit);
}

/* Numbers of dimensions and scales that a stranger wrote: whatever they are, they name no axis. */
LOOP(i25_9_dimension_numbers_of_strangers, 0, 3)
{
    static const int numbers[][2] = { { 7, -1 }, { INT32_MAX, INT32_MIN }, { 0, 0 } };
    static const hsize_t two[] = { 2 };
    exchange_kit kit;
    int nc, dims[2];
    const char *source = new_file(&kit, &nc);
    NC(nc_def_dim(nc, "x", 2, &dims[0]));
    NC(nc_def_dim(nc, "y", 2, &dims[1]));
    NC(nc_put_var_int(nc, new_var(nc, "v", NC_INT, 2, dims), four));
    NC(nc_close(nc));
    hid_t file = H5(H5Fopen(source, H5F_ACC_RDWR, H5P_DEFAULT)),
          set = H5(H5Dopen2(file, "v", H5P_DEFAULT));
    if (H5Aexists(set, "_Netcdf4Coordinates") > 0)
        H5(H5Adelete(set, "_Netcdf4Coordinates"));
    H5(H5Adelete(set, "DIMENSION_LIST"));
    hdf5_put_attribute(set, "_Netcdf4Coordinates", H5T_STD_I32LE, 1, two, H5T_NATIVE_INT,
                       numbers[_i]);
    H5(H5Dclose(set));
    H5(H5Fclose(file));
    netcdf_import_ok(&kit, source, "/in");
    ck_assert_str_eq(netcdf_member(&kit, "/in/v", "dimension_names"),
                     _i < 2 ? "" : "[\"x\",\"x\"]");
    netcdf_check_bytes(&kit, "/in/v", four, sizeof(four));
    exchange_stop(&kit);
}
