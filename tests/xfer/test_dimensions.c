/*
 * Names of dimensions in an export: an array of a data set that grew alone is refused with both
 * arrays, the lengths and the remedy; arrays that are not a data set are exported.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kit/netcdf_kit.h"
#include "../kit/suite.h"

TEST_SUITE(dimensions);

static const char *const checked_formats[] = { "zarr3", "zarr2", "zip", "netcdf", "netcdf3" };
enum { ZARRS = 3, FORMATS = 5 };
static const char *const month[2] = { "month", "month" };
static const uint64_t twelve[2] = { 12, 13 }, thirteen[1] = { 13 };

static int export_as(exchange_kit *kit, const char *path, const char *format, uint32_t flags)
{
    static unsigned next;
    char name[32];
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    snprintf(name, sizeof(name), "out%u", next++);
    opts.format = format;
    opts.flags = flags;
    int rc = brc_export(kit->session, path, exchange_path(kit, name), &opts, &kit->err);
    ck_assert_msg(exchange_exists(exchange_path(kit, name)) == (rc == BRC_OK), "%s: %d", name, rc);
    return rc;
}

/* Refused, with all of these words, and written if the caller insists. */
static void check_refused(exchange_kit *kit, const char *path, const char *format,
                          const char *const *words)
{
    int rc = export_as(kit, path, format, 0);
    ck_assert_msg(rc == BRC_EINVAL, "%s of %s: %d", format, path, rc);
    for (; *words; words++)
        ck_assert_msg(strstr(kit->err.message, *words), "%s: no \"%s\" in \"%s\"", format, *words,
                      kit->err.message);
    ck_assert(strstr(kit->err.message, "resize") && strstr(kit->err.message, "--unequal"));
    rc = export_as(kit, path, format, BRC_XFER_UNEQUAL_DIMENSIONS);
    ck_assert_msg(rc == BRC_OK, "%s of %s: %s", format, path, kit->err.message);
}

static void check_exported(exchange_kit *kit, const char *path, const char *format)
{
    int rc = export_as(kit, path, format, 0);
    ck_assert_msg(rc == BRC_OK, "%s of %s: %s", format, path, kit->err.message);
}

static void resize_to(exchange_kit *kit, const char *path, const uint64_t *shape)
{
    brc_array *a;
    ck_assert_int_eq(brc_array_open(&a, kit->session, path, &kit->err), BRC_OK);
    ck_assert_int_eq(brc_array_resize(a, shape, &kit->err), BRC_OK);
    brc_array_free(a);
}

static void set_attribute(exchange_kit *kit, const char *path, const char *name, const char *json)
{
    ck_assert_int_eq(brc_attrs_set(kit->session, path, name, json, &kit->err), BRC_OK);
}

CASE("rules", .timeout = 120);

LOOP(an_append_to_one_variable_is_refused, 0, FORMATS)
{
    static const char *const words[] = { "dimension month", "length 12 in /d/month",
                                         "length 13 in /d/t", NULL };
    const char *format = checked_formats[_i];
    exchange_kit kit;
    exchange_start(&kit);
    netcdf_new_array(&kit, "/d/a", "int16", 1, twelve, month);
    netcdf_new_array(&kit, "/d/month", "int16", 1, twelve, month);
    netcdf_new_array(&kit, "/d/t", "int16", 1, twelve, month);
    check_exported(&kit, "/d", format);
    resize_to(&kit, "/d/t", thirteen);
    check_refused(&kit, "/d", format, words);
    resize_to(&kit, "/d/a", thirteen);
    check_refused(&kit, "/d", format,
                  (const char *const[]){ "length 12 in /d/month", "length 13 in /d/a", NULL });
    resize_to(&kit, "/d/month", thirteen);
    check_exported(&kit, "/d", format);
    exchange_stop(&kit);
}

LOOP(names_in_an_attribute_count_and_one_array_twice, 0, FORMATS)
{
    const char *format = checked_formats[_i];
    exchange_kit kit;
    exchange_start(&kit);
    netcdf_new_array(&kit, "/old/a", "int16", 1, twelve, NULL);
    netcdf_new_array(&kit, "/old/b", "int16", 1, thirteen, NULL);
    check_exported(&kit, "/old", format);
    set_attribute(&kit, "/old/a", "_ARRAY_DIMENSIONS", "[\"x\"]");
    set_attribute(&kit, "/old/b", "_ARRAY_DIMENSIONS", "[\"y\"]");
    check_exported(&kit, "/old", format);
    set_attribute(&kit, "/old/b", "_ARRAY_DIMENSIONS", "[\"x\"]");
    check_refused(&kit, "/old", format,
                  (const char *const[]){ "dimension x", "/old/a", "/old/b", " 12 ", " 13 ", NULL });
    netcdf_new_array(&kit, "/square", "int16", 2, twelve, month);
    if (_i < ZARRS) /* names of an array's own axes need not differ in Zarr */
        check_exported(&kit, "/square", format);
    else
        check_refused(&kit, "/square", format,
                      (const char *const[]){ "/square has two dimensions called month",
                                             "12 and 13", NULL });
    exchange_stop(&kit);
}

/* Classic NetCDF has no groups. */
LOOP(a_group_below_has_the_dimension_of_the_coordinate_above, 0, FORMATS - 1)
{
    const char *format = checked_formats[_i];
    exchange_kit kit;
    exchange_start(&kit);
    netcdf_new_array(&kit, "/d/month", "int16", 1, twelve, month);
    netcdf_new_array(&kit, "/d/between/sub/t", "int16", 1, twelve, month);
    check_exported(&kit, "/d", format);
    resize_to(&kit, "/d/between/sub/t", thirteen);
    check_refused(&kit, "/d", format,
                  (const char *const[]){ "length 12 in /d/month", "length 13 in /d/between/sub/t",
                                         NULL });
    check_exported(&kit, "/d/between", format); /* by itself it has one length */
    netcdf_new_array(&kit, "/d/between/month", "int16", 1, thirteen, month);
    check_exported(&kit, "/d", format);
    exchange_stop(&kit);
}

static void check_dim_of(int nc, const char *group, const char *var, const char *dim, size_t length)
{
    char name[NC_MAX_NAME + 1];
    int g, id, dims[2];
    size_t n;
    NC(nc_inq_grp_full_ncid(nc, group, &g));
    NC(nc_inq_varid(g, var, &id));
    NC(nc_inq_vardimid(g, id, dims));
    NC(nc_inq_dim(g, dims[0], name, &n));
    ck_assert_msg(strcmp(name, dim) == 0 && n == length, "%s/%s has %s of %zu", group, var,
                  name, n);
}

/* Side by side, without a coordinate above, they have nothing to do with each other; NetCDF has
 * them under their own names. */
TEST(groups_have_dimensions_of_their_own)
{
    static const uint64_t two[1] = { 2 }, three[1] = { 3 };
    static const char *const x[1] = { "x" };
    exchange_kit kit;
    int nc;
    exchange_start(&kit);
    netcdf_new_array(&kit, "/v", "int16", 1, three, x);
    netcdf_new_array(&kit, "/p/a", "int16", 1, three, x);
    netcdf_new_array(&kit, "/p/sub/b", "int16", 1, two, x);
    netcdf_new_array(&kit, "/q/c", "int16", 1, two, x);
    netcdf_new_array(&kit, "/q/d", "int16", 1, two, x);
    for (int i = 0; i < FORMATS - 1; i++)
        check_exported(&kit, "/", checked_formats[i]);
    NC(nc_open(netcdf_export_ok(&kit, "/", "own.nc", NULL), NC_NOWRITE, &nc));
    check_dim_of(nc, "/", "v", "x", 3);
    check_dim_of(nc, "/p", "a", "x", 3);
    check_dim_of(nc, "/p/sub", "b", "x", 2);
    check_dim_of(nc, "/q", "c", "x", 2);
    check_dim_of(nc, "/q", "d", "x", 2);
    NC(nc_close(nc));
    netcdf_import_ok(&kit, exchange_path(&kit, "own.nc"), "/back");
    check_exported(&kit, "/back", "netcdf"); /* with what NetCDF notes of groups */
    exchange_stop(&kit);
}

/* NetCDF's groups are noted, so that a dimension which hides another comes back as its own. */
TEST(a_dimension_that_hides_another_comes_back)
{
    exchange_kit kit;
    int nc, g, dim, above, var;
    exchange_start(&kit);
    const char *source = exchange_path(&kit, "hides.nc");
    NC(nc_create(source, NC_NETCDF4, &nc));
    NC(nc_def_dim(nc, "month", 12, &above));
    NC(nc_def_var(nc, "month", NC_INT, 1, &above, &var));
    NC(nc_def_grp(nc, "g", &g));
    NC(nc_def_var(g, "same", NC_INT, 1, &above, &var));
    NC(nc_def_grp(nc, "h", &g));
    NC(nc_def_dim(g, "month", 13, &dim));
    NC(nc_def_var(g, "t", NC_INT, 1, &dim, &var));
    NC(nc_close(nc));
    netcdf_import_ok(&kit, source, "/");
    for (int i = 0; i < FORMATS - 1; i++)
        check_exported(&kit, "/", checked_formats[i]);
    NC(nc_open(netcdf_export_ok(&kit, "/", "out.nc", NULL), NC_NOWRITE, &nc));
    check_dim_of(nc, "/", "month", "month", 12);
    check_dim_of(nc, "/g", "same", "month", 12);
    check_dim_of(nc, "/h", "t", "month", 13);
    NC(nc_close(nc));
    resize_to(&kit, "/g/same", thirteen);
    for (int i = 0; i < FORMATS - 1; i++)
        check_refused(&kit, "/", checked_formats[i],
                      (const char *const[]){ "in /month", "in /g/same", NULL });
    exchange_stop(&kit);
}

/* OME-Zarr has all sizes of one picture in one group, and says what their axes are called. */
LOOP(pictures_in_several_sizes_are_zarr_and_not_netcdf, 0, 2)
{
    static const char *const at[] = { "{\"multiscales\":[]}", "[]" };
    exchange_kit kit;
    exchange_start(&kit);
    netcdf_new_array(&kit, "/p/s0", "int16", 1, thirteen, month);
    netcdf_new_array(&kit, "/p/s1", "int16", 1, twelve, month);
    netcdf_new_array(&kit, "/p/labels/s0", "int16", 1, thirteen, month);
    set_attribute(&kit, "/p", _i ? "multiscales" : "ome", at[_i]);
    for (int i = 0; i < ZARRS; i++)
        check_exported(&kit, "/p", checked_formats[i]);
    check_refused(&kit, "/p", "netcdf",
                  (const char *const[]){ "in /p/s0", "in /p/s1", NULL });
    /* its groups are compared as others are */
    netcdf_new_array(&kit, "/p/labels/s1", "int16", 1, twelve, month);
    check_refused(&kit, "/p", "zarr3",
                  (const char *const[]){ "in /p/labels/s0", "in /p/labels/s1", NULL });
    exchange_stop(&kit);
}

/* HDF5 and NumPy have no shared dimensions, and another repository reads what a stream has. */
TEST(formats_without_shared_dimensions_take_all)
{
    static const char *const formats[] = { "hdf5", "npz" };
    exchange_kit kit;
    exchange_start(&kit);
    netcdf_new_array(&kit, "/d/month", "int16", 1, twelve, month);
    netcdf_new_array(&kit, "/d/t", "int16", 1, thirteen, month);
    for (int i = 0; i < 2; i++)
        check_exported(&kit, "/d", formats[i]);
    FILE *stream = tmpfile();
    ck_assert_ptr_nonnull(stream);
    int rc = exchange_stream_out(kit.session, "/d", fileno(stream), NULL, &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    fclose(stream);
    exchange_stop(&kit);
}
