/*
 * NetCDF in and out: values, attributes, dimensions, and what is refused. Files are made
 * and looked at with netCDF-C itself, so what is compared is what any other program sees.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/file.h"
#include "../../src/breccia.h"
#include "../kit/netcdf_kit.h"
#include "../kit/suite.h"

TEST_SUITE(netcdf);

/* ---- types of every file -------------------------------- */

static void check_atomics(const char *path, size_t ntypes)
{
    uint8_t data[24];
    int nc, var, rank, ids[2];
    nc_type type;
    char name[64];
    size_t n;
    NC(nc_open(path, NC_NOWRITE, &nc));
    for (size_t i = 0; i < ntypes; i++)
        for (int k = 0; k < 3; k++) {
            snprintf(name, sizeof(name), "%s%d", netcdf_atomics[i].name, k);
            NC(nc_inq_varid(nc, name, &var));
            NC(nc_inq_var(nc, var, NULL, &type, &rank, ids, NULL));
            ck_assert_int_eq(type, netcdf_atomics[i].type);
            ck_assert_int_eq(rank, k);
            NC(nc_get_var(nc, var, data));
            ck_assert_mem_eq(data, netcdf_atomics[i].bytes, netcdf_atomics[i].size * (k ? 3 : 1));
            if (k < 2)
                continue;
            NC(nc_inq_att(nc, var, "like", &type, &n));
            ck_assert_msg(type == netcdf_atomics[i].type && n == 3, "like of %s is %d, %zu", name,
                          type, n);
            NC(nc_get_att(nc, var, "like", data));
            ck_assert_mem_eq(data, netcdf_atomics[i].bytes, 3 * netcdf_atomics[i].size);
        }
    NC(nc_close(nc));
}

CASE("rules", .timeout = 120);

LOOP(types_of_every_file, 0, NETCDF_KINDS)
{
    exchange_kit kit;
    char path[64];
    exchange_start(&kit);
    const char *source = exchange_path(&kit, netcdf_kinds[_i].name);
    netcdf_write_atomics(source, netcdf_kinds[_i].mode, netcdf_kinds[_i].ntypes);
    netcdf_import_ok(&kit, source, "/in");
    for (size_t i = 0; i < netcdf_kinds[_i].ntypes; i++) {
        snprintf(path, sizeof(path), "/in/%s2", netcdf_atomics[i].name);
        ck_assert_str_eq(netcdf_member(&kit, path, "data_type"), netcdf_atomics[i].dtype);
        ck_assert_str_eq(netcdf_member(&kit, path, "shape"), "[1,3]");
        ck_assert_str_eq(netcdf_member(&kit, path, "dimension_names"), "[\"one\",\"three\"]");
        netcdf_check_bytes(&kit, path, netcdf_atomics[i].bytes, 3 * netcdf_atomics[i].size);
        snprintf(path, sizeof(path), "/in/%s0", netcdf_atomics[i].name);
        netcdf_check_bytes(&kit, path, netcdf_atomics[i].bytes, netcdf_atomics[i].size);
    }
    check_atomics(netcdf_export_ok(&kit, "/in", "out.nc", NULL), netcdf_kinds[_i].ntypes);
    const char *classic = netcdf_export_ok(&kit, "/in", "out3.nc", "netcdf3");
    check_atomics(classic, netcdf_kinds[_i].ntypes);
    brc_buf bytes = exchange_read(classic);
    ck_assert_int_eq(bytes.data[3], netcdf_kinds[_i].version);
    brc_buf_dispose(&bytes);
    exchange_stop(&kit);
}

/* ---- attributes and fill values -------------------------- */

static void put_odd_attributes(int nc, int var)
{
    double nan_double = NAN;
    float half = 0.1f;
    short two = 2;
    int none = 0;
    NC(nc_put_att(nc, var, "scale_factor", NC_FLOAT, 1, &half));
    NC(nc_put_att(nc, var, "short", NC_SHORT, 1, &two));
    NC(nc_put_att(nc, var, "nothing", NC_INT, 0, &none));
    NC(nc_put_att(nc, var, "latin", NC_CHAR, 4, "K\xf8\xe6\0"));
    NC(nc_put_att(nc, var, "nan", NC_DOUBLE, 1, &nan_double));
    NC(nc_put_att(nc, var, "text", NC_CHAR, 3, "NaN"));
}

static void check_odd_attributes(int nc, int var)
{
    double nan_double = NAN;
    float half = 0.1f;
    short two = 2;
    netcdf_check_odd(nc, var, "scale_factor", NC_FLOAT, 1, &half);
    netcdf_check_odd(nc, var, "short", NC_SHORT, 1, &two);
    netcdf_check_odd(nc, var, "nothing", NC_INT, 0, NULL);
    netcdf_check_odd(nc, var, "latin", NC_CHAR, 4, "K\xf8\xe6\0");
    netcdf_check_odd(nc, var, "nan", NC_DOUBLE, 1, &nan_double);
    netcdf_check_odd(nc, var, "text", NC_CHAR, 3, "NaN");
}

/* ERA-Interim's packed integers have NaN as _FillValue, of type double. */
LOOP(attributes_keep_their_types, 0, 2)
{
    static const int modes[] = { NC_64BIT_OFFSET, NC_NETCDF4 };
    static const char *const formats[] = { "netcdf3", "netcdf" };
    exchange_kit kit;
    int nc, dim, var;
    short data[2] = { 1, 2 };
    double nan_double = NAN;

    exchange_start(&kit);
    const char *source = exchange_path(&kit, "odd.nc");
    NC(nc_create(source, modes[_i], &nc));
    NC(nc_def_dim(nc, "x", 2, &dim));
    NC(nc_def_var(nc, "v", NC_SHORT, 1, &dim, &var));
    put_odd_attributes(nc, var);
    put_odd_attributes(nc, NC_GLOBAL);
    NC(nc_put_att(nc, var, "other", NC_DOUBLE, 1, &nan_double));
    NC(nc_rename_att(nc, var, "other", "_FillValue"));
    if (modes[_i] == NC_NETCDF4)
        NC(nc_def_var_fill(nc, var, NC_NOFILL, NULL));
    else
        NC(nc_set_fill(nc, NC_NOFILL, &dim));
    NC(nc_enddef(nc));
    NC(nc_put_var_short(nc, var, data));
    NC(nc_close(nc));

    netcdf_import_ok(&kit, source, "/in");
    ck_assert_str_eq(netcdf_attribute(&kit, "/in/v", "scale_factor"), "0.10000000149011612");
    ck_assert_str_eq(netcdf_attribute(&kit, "/in/v", "latin"), "\"K\xc3\xb8\xc3\xa6\"");
    ck_assert_str_eq(netcdf_attribute(&kit, "/in/v", "nan"), "NaN");
    ck_assert_str_eq(netcdf_attribute(&kit, "/in/v", "nothing"), "[]");
    ck_assert_str_eq(netcdf_attribute(&kit, "/in/v", "_FillValue"), "");
    NC(nc_open(netcdf_export_ok(&kit, "/in", "out.nc", formats[_i]), NC_NOWRITE, &nc));
    check_odd_attributes(nc, 0);
    check_odd_attributes(nc, NC_GLOBAL);
    netcdf_check_odd(nc, 0, "_FillValue", NC_DOUBLE, 1, &nan_double);
    memset(data, 0, sizeof(data));
    NC(nc_get_var_short(nc, 0, data));
    ck_assert_int_eq(data[1], 2);
    NC(nc_close(nc));

    /* a note ends with the attribute that it is of */
    ck_assert_int_eq(brc_attrs_set(kit.session, "/in/v", "latin", "\"new\"", &kit.err), BRC_OK);
    ck_assert_int_eq(brc_attrs_set(kit.session, "/in/v", "scale_factor", "2.00000001", &kit.err),
                     BRC_OK);
    ck_assert_int_eq(brc_attrs_set(kit.session, "/in/v", "text", NULL, &kit.err), BRC_OK);
    NC(nc_open(netcdf_export_ok(&kit, "/in", "changed.nc", formats[_i]), NC_NOWRITE, &nc));
    double scale = 2.00000001;
    netcdf_check_odd(nc, 0, "latin", NC_CHAR, 3, "new");
    netcdf_check_odd(nc, 0, "scale_factor", NC_DOUBLE, 1, &scale);
    ck_assert_int_eq(nc_inq_att(nc, 0, "text", NULL, NULL), NC_ENOTATT);
    NC(nc_close(nc));
    exchange_stop(&kit);
}

typedef struct fill_case {
    const char *name, *zarr, *att; /* the fill_value, and the attribute in Zarr */
    nc_type type;
    int no_fill, has_att;
    uint8_t bytes[8];
} fill_case;

static const fill_case fills[] = {
    { "standard", "9.96921e+36", "", NC_FLOAT, 0, 0, { 0 } },
    { "none", "0.0", "", NC_FLOAT, 1, 0, { 0 } },
    { "own", "-9.0", "\"AAAAAAAAIsA=\"", NC_FLOAT, 0, 1, { 0, 0, 0x10, 0xc1 } },
    { "nan", "\"NaN\"", "\"AAAAAAAA+H8=\"", NC_FLOAT, 0, 1, { 0, 0, 0xc0, 0x7f } },
    { "integer", "-1", "-1", NC_SHORT, 0, 1, { 0xff, 0xff } },
    { "character", "\"IA==\"", "", NC_CHAR, 0, 1, { ' ' } },
};
#define N_FILLS (sizeof(fills) / sizeof(fills[0]))

static void check_fill(int nc, const fill_case *f)
{
    uint8_t value[8];
    int var, no_fill;
    size_t n = 0;
    nc_type type;
    NC(nc_inq_varid(nc, f->name, &var));
    NC(nc_inq_var_fill(nc, var, &no_fill, value));
    ck_assert_msg(no_fill == f->no_fill, "%s: no_fill is %d", f->name, no_fill);
    ck_assert_int_eq(nc_inq_att(nc, var, "_FillValue", &type, &n) == NC_NOERR, f->has_att);
    if (f->has_att) {
        netcdf_check_odd(nc, var, "_FillValue", f->type, 1, f->bytes);
        ck_assert_mem_eq(value, f->bytes, f->type == NC_CHAR ? 1 : f->type == NC_SHORT ? 2 : 4);
    }
}

TEST(fill_values)
{
    exchange_kit kit;
    int nc, dim, var;
    char path[64];

    exchange_start(&kit);
    const char *source = exchange_path(&kit, "fill.nc");
    NC(nc_create(source, NC_NETCDF4, &nc));
    NC(nc_def_dim(nc, "x", 4, &dim));
    for (size_t i = 0; i < N_FILLS; i++) {
        NC(nc_def_var(nc, fills[i].name, fills[i].type, 1, &dim, &var));
        if (fills[i].no_fill)
            NC(nc_def_var_fill(nc, var, NC_NOFILL, NULL));
        if (fills[i].has_att)
            NC(nc_put_att(nc, var, "_FillValue", fills[i].type, 1, fills[i].bytes));
    }
    NC(nc_close(nc)); /* nothing is written */
    netcdf_import_ok(&kit, source, "/in");
    for (size_t i = 0; i < N_FILLS; i++) {
        snprintf(path, sizeof(path), "/in/%s", fills[i].name);
        ck_assert_str_eq(netcdf_member(&kit, path, "fill_value"), fills[i].zarr);
        ck_assert_str_eq(netcdf_attribute(&kit, path, "_FillValue"), fills[i].att);
    }
    float standard[4] = { NC_FILL_FLOAT, NC_FILL_FLOAT, NC_FILL_FLOAT, NC_FILL_FLOAT };
    netcdf_check_bytes(&kit, "/in/standard", standard, sizeof(standard));
    netcdf_check_bytes(&kit, "/in/none", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    netcdf_check_bytes(&kit, "/in/character", "    ", 4);
    NC(nc_open(netcdf_export_ok(&kit, "/in", "out.nc", NULL), NC_NOWRITE, &nc));
    for (size_t i = 0; i < N_FILLS; i++)
        check_fill(nc, &fills[i]);
    NC(nc_close(nc));
    exchange_stop(&kit);
}

/* ---- dimensions ------------------------------------------- */

static void check_dim(int nc, const char *name, size_t length, int unlimited)
{
    int id, n, ids[8], found = 0;
    size_t len;
    NC(nc_inq_dimid(nc, name, &id));
    NC(nc_inq_dimlen(nc, id, &len));
    ck_assert_msg(len == length, "%s has length %zu", name, len);
    NC(nc_inq_unlimdims(nc, &n, ids));
    for (int i = 0; i < n; i++)
        found |= ids[i] == id;
    ck_assert_msg(found == unlimited, "%s: unlimited is %d", name, found);
    NC(nc_inq_dimids(nc, &n, ids, 0)); /* of this very group */
    for (found = 0; n-- > 0;)
        found |= ids[n] == id;
    ck_assert_msg(found, "%s is another group's", name);
}

/* root: time (unlimited, 2), x 3, unused 7; g: x 4, y 2, an unused that is used;
 * g/h: nothing of its own. */
static void write_groups(const char *path)
{
    int nc, g, h, time, x, y, gx, var, ids[2], data[8] = { 0 };
    size_t start[2] = { 0, 0 }, count[2] = { 2, 3 };
    NC(nc_create(path, NC_NETCDF4, &nc));
    NC(nc_def_dim(nc, "time", NC_UNLIMITED, &time));
    NC(nc_def_dim(nc, "x", 3, &x));
    NC(nc_def_dim(nc, "unused", 7, &y));
    NC(nc_def_grp(nc, "g", &g));
    NC(nc_def_grp(g, "h", &h));
    NC(nc_def_dim(g, "x", 4, &gx));
    NC(nc_def_dim(g, "y", 2, &y));
    ids[0] = time, ids[1] = x;
    NC(nc_def_var(nc, "v", NC_INT, 2, ids, &var));
    NC(nc_put_vara_int(nc, var, start, count, data));
    ids[0] = y, ids[1] = gx;
    NC(nc_def_var(g, "v", NC_INT, 2, ids, &var));
    NC(nc_put_var_int(g, var, data));
    NC(nc_def_dim(g, "unused", 7, &y));
    NC(nc_def_var(g, "u", NC_BYTE, 1, &y, &var));
    ids[0] = time, ids[1] = gx;
    NC(nc_def_var(h, "v", NC_INT, 2, ids, &var));
    NC(nc_put_att_text(h, NC_GLOBAL, "title", 1, "h"));
    NC(nc_close(nc));
}

TEST(dimensions_stay_in_their_groups)
{
    exchange_kit kit;
    int nc, g, h, ids[2], n;
    brc_array *a;
    uint64_t longer[2] = { 5, 3 };

    exchange_start(&kit);
    const char *source = exchange_path(&kit, "groups.nc");
    write_groups(source);
    netcdf_import_ok(&kit, source, "/");
    ck_assert_str_eq(netcdf_member(&kit, "/g/h/v", "shape"), "[2,4]");
    ck_assert_str_eq(netcdf_attribute(&kit, "/g/h", "title"), "\"h\"");
    NC(nc_open(netcdf_export_ok(&kit, "/", "out.nc", NULL), NC_NOWRITE, &nc));
    NC(nc_inq_grp_full_ncid(nc, "/g", &g));
    NC(nc_inq_grp_full_ncid(nc, "/g/h", &h));
    check_dim(nc, "time", 2, 1);
    check_dim(nc, "x", 3, 0);
    check_dim(nc, "unused", 7, 0);
    check_dim(g, "x", 4, 0);
    check_dim(g, "y", 2, 0);
    check_dim(g, "unused", 7, 0);
    NC(nc_inq_dimids(h, &n, ids, 0));
    ck_assert_int_eq(n, 0);
    NC(nc_inq_natts(nc, &n)); /* the note is none */
    ck_assert_int_eq(n, 0);
    NC(nc_close(nc));
    /* the group by itself */
    NC(nc_open(netcdf_export_ok(&kit, "/g", "g.nc", NULL), NC_NOWRITE, &nc));
    check_dim(nc, "x", 4, 0);
    NC(nc_close(nc));
    /* what has grown is still unlimited */
    ck_assert_int_eq(brc_node_remove(kit.session, "/g", &kit.err), BRC_OK);
    ck_assert_int_eq(brc_array_open(&a, kit.session, "/v", &kit.err), BRC_OK);
    ck_assert_int_eq(brc_array_resize(a, longer, &kit.err), BRC_OK);
    brc_array_free(a);
    NC(nc_open(netcdf_export_ok(&kit, "/", "grown.nc", NULL), NC_NOWRITE, &nc));
    check_dim(nc, "time", 5, 1);
    check_dim(nc, "x", 3, 0);
    NC(nc_close(nc));
    exchange_stop(&kit);
}

static void check_group_dims(exchange_kit *kit, const char *path, const char *to)
{
    int nc, g;
    NC(nc_open(netcdf_export_ok(kit, path, to, NULL), NC_NOWRITE, &nc));
    NC(nc_inq_grp_full_ncid(nc, "/g", &g));
    check_dim(nc, "time", 2, 1);
    check_dim(nc, "unused", 7, 0);
    check_dim(g, "unused", 7, 0);
    NC(nc_close(nc));
}

/* A client of Zarr writes the documents of both groups anew, with attributes of its own alone. */
static void rewrite_groups(exchange_kit *kit, const char *attributes)
{
    static const char *const keys[] = { "zarr.json", "g/zarr.json" };
    char doc[256];
    snprintf(doc, sizeof(doc), "{\"zarr_format\":3,\"node_type\":\"group\"%s}", attributes);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(brc_key_set(kit->session, keys[i], doc, strlen(doc), 0,
                                     &kit->err), BRC_OK);
}

LOOP(i24_14_notes_outlive_new_attributes, 0, 4)
{
    static const char *const attributes[] = { "", ",\"attributes\":null", ",\"attributes\":{}",
                                              ",\"attributes\":{\"title\":\"new\"}" };
    exchange_kit kit;
    int nc;
    exchange_start(&kit);
    const char *source = exchange_path(&kit, "groups.nc");
    write_groups(source);
    netcdf_import_ok(&kit, source, "/");
    rewrite_groups(&kit, attributes[_i]); /* in the draft that has it */
    check_group_dims(&kit, "/", "draft.nc");
    ck_assert_int_eq(scenario_commit_of(&kit, kit.session, "changed", NULL), BRC_OK);
    rewrite_groups(&kit, ",\"attributes\":{\"title\":\"newer\"}"); /* in one on a commit */
    ck_assert_str_eq(netcdf_attribute(&kit, "/g", "title"), "\"newer\"");
    check_group_dims(&kit, "/", "commit.nc");
    /* by way of Zarr */
    const char *zarr = exchange_path(&kit, "z");
    ck_assert_int_eq(brc_export(kit.session, "/", zarr, NULL, &kit.err), BRC_OK);
    ck_assert_int_eq(brc_import(kit.session, zarr, "/z", NULL, &kit.err), BRC_OK);
    check_group_dims(&kit, "/z", "zarr.nc");
    /* by name, and with the group, they go */
    ck_assert_int_eq(brc_attrs_set(kit.session, "/z", "_nc_note", NULL, &kit.err), BRC_OK);
    NC(nc_open(netcdf_export_ok(&kit, "/z", "none.nc", NULL), NC_NOWRITE, &nc));
    ck_assert_int_ne(nc_inq_dimid(nc, "unused", &(int){ 0 }), NC_NOERR);
    NC(nc_close(nc));
    ck_assert_int_eq(brc_node_remove(kit.session, "/g", &kit.err), BRC_OK);
    rewrite_groups(&kit, "");
    ck_assert_str_eq(netcdf_attribute(&kit, "/g", "_nc_note"), "");
    exchange_stop(&kit);
}

static void check_dim_names(int nc, const char *var, const char *first, const char *second)
{
    char name[NC_MAX_NAME + 1];
    const char *const want[] = { first, second };
    int id, ids[2];
    NC(nc_inq_varid(nc, var, &id));
    NC(nc_inq_vardimid(nc, id, ids));
    for (int k = 0; k < 2; k++) {
        NC(nc_inq_dimname(nc, ids[k], name));
        ck_assert_msg(strcmp(name, want[k]) == 0, "axis %d of %s is %s", k, var, name);
    }
}

TEST(dimensions_of_arrays)
{
    static const uint64_t shape[2] = { 2, 3 }, other[2] = { 4, 3 }, square[2] = { 3, 3 };
    static const uint64_t empty[2] = { 0, 3 };
    static const char *const xy[2] = { "x", "y" }, *const gy[2] = { "group", "y" };
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    exchange_kit kit;
    int nc, sub;

    exchange_start(&kit);
    netcdf_new_array(&kit, "/a", "int16", 2, shape, xy);
    netcdf_new_array(&kit, "/b", "int16", 2, other, xy); /* another x */
    netcdf_new_array(&kit, "/c", "int16", 2, square, NULL);
    netcdf_new_array(&kit, "/d", "int16", 2, shape, gy); /* a dimension called as a group is */
    netcdf_new_array(&kit, "/e", "int16", 2, empty, NULL);
    netcdf_new_array(&kit, "/group/a", "int16", 2, shape, xy);
    netcdf_new_array(&kit, "/group/y", "int16", 1, &shape[0], &xy[1]);
    ck_assert_int_eq(brc_group_create(kit.session, "/v2", NULL, &kit.err), BRC_OK);
    netcdf_new_array(&kit, "/v2/a", "int16", 2, shape, NULL);
    ck_assert_int_eq(
        brc_attrs_set(kit.session, "/v2/a", "_ARRAY_DIMENSIONS", "[\"lat\",\"lon\"]", &kit.err),
        BRC_OK);
    opts.flags = BRC_XFER_UNEQUAL_DIMENSIONS;
    const char *out = exchange_path(&kit, "out.nc");
    int rc = brc_export(kit.session, "/", out, &opts, &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    NC(nc_open(out, NC_NOWRITE, &nc));
    check_dim_names(nc, "a", "x", "y");
    check_dim_names(nc, "b", "x_2", "y");
    check_dim_names(nc, "c", "phony_dim_0", "phony_dim_1");
    check_dim_names(nc, "d", "group_2", "y");
    check_dim_names(nc, "e", "phony_dim_2", "phony_dim_0");
    check_dim(nc, "phony_dim_2", 0, 1);
    NC(nc_inq_ncid(nc, "group", &sub));
    check_dim_names(sub, "a", "x", "y_2");
    check_dim(sub, "y", 2, 0); /* beside the coordinate, and not the root's of length 3 */
    NC(nc_inq_ncid(nc, "v2", &sub));
    check_dim_names(sub, "a", "lat", "lon");
    ck_assert_int_eq(nc_inq_att(sub, 0, "_ARRAY_DIMENSIONS", NULL, NULL), NC_ENOTATT);
    NC(nc_close(nc));
    /* and back: made-up names are none */
    netcdf_import_ok(&kit, exchange_path(&kit, "out.nc"), "/back");
    ck_assert_str_eq(netcdf_member(&kit, "/back/c", "dimension_names"), "");
    ck_assert_str_eq(netcdf_member(&kit, "/back/b", "dimension_names"), "[\"x_2\",\"y\"]");
    ck_assert_str_eq(netcdf_member(&kit, "/back/e", "shape"), "[0,3]");
    exchange_stop(&kit);
}

/* ---- what is refused ----------------------------------------- */

TEST(refused_on_export)
{
    static const uint64_t two[1] = { 2 }, empty[2] = { 2, 0 };
    exchange_kit kit;

    exchange_start(&kit);
    netcdf_new_array(&kit, "/g/week", TIME("datetime64", "W"), 1, two, NULL);
    netcdf_export_says(&kit, "/g", NULL, "/g/week");
    netcdf_new_array(&kit, "/g2/z", "complex_bfloat16", 1, two, NULL);
    netcdf_export_says(&kit, "/g2", NULL, "complex_bfloat16");
    netcdf_new_array(&kit, "/s", "string", 1, two, NULL);
    netcdf_write_array(&kit, "/s", "\3\0\0\0a\0b\0\0\0\0", 11);
    netcdf_export_says(&kit, "/s", NULL, "U+0000");
    netcdf_export_says(&kit, "/s", "netcdf3", "classic NetCDF has no type for string");
    netcdf_export_says(&kit, "/", "netcdf3", "/g is a group");
    netcdf_new_array(&kit, "/e", "int8", 2, empty, NULL);
    netcdf_export_says(&kit, "/e", "netcdf3", "length 0");
    netcdf_new_array(&kit, "/b", "bool", 1, two, NULL);
    ck_assert_int_eq(brc_attrs_set(kit.session, "/b", "dtype", "\"int8\"", &kit.err), BRC_OK);
    netcdf_export_says(&kit, "/b", NULL, "dtype");
    netcdf_new_array(&kit, "/n", "int8", 1, two, NULL);
    ck_assert_int_eq(brc_attrs_set(kit.session, "/n", "a/b", "1", &kit.err), BRC_OK);
    netcdf_export_says(&kit, "/n", NULL, "a/b");
    netcdf_new_array(&kit, "/.hidden", "int8", 1, two, NULL);
    netcdf_export_says(&kit, "/.hidden", NULL, "/.hidden");
    exchange_stop(&kit);
}

TEST(refused_on_import)
{
    const char *latin = "K\xf8", *const out[] = { "/g/", "large", "/latin" };
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    exchange_kit kit;
    int nc, g, dim, dims[33], var, large = NC_BYTE;

    exchange_start(&kit);
    const char *source = exchange_path(&kit, "no.nc");
    NC(nc_create(source, NC_NETCDF4, &nc));
    NC(nc_def_dim(nc, "x", 1, &dim));
    NC(nc_def_grp(nc, "g", &g));
    for (int i = 0, inner = NC_BYTE; i < 14;
         i++, inner = large) { /* a type that is nested too deep */
        char name[32];
        snprintf(name, sizeof(name), "nested%d", i);
        NC(nc_def_compound(nc, 1, name, &large));
        NC(nc_insert_compound(nc, large, "n", 0, inner));
    }
    NC(nc_def_var(g, "large", large, 1, &dim, &var));
    NC(nc_def_var(nc, "good", NC_INT, 1, &dim, &var));
    NC(nc_close(nc));
    netcdf_import_says(&kit, source, BRC_EUNSUPPORTED, "no.nc: /g/large");
    netcdf_import_says(&kit, source, BRC_EUNSUPPORTED, "--exclude");
    NC(nc_open(source, NC_WRITE, &nc));
    NC(nc_redef(nc));
    NC(nc_inq_typeid(nc, "nested13", &large));
    NC(nc_def_var(nc, "large", large, 1, &dim, &var));
    NC(nc_def_var(nc, "latin", NC_STRING, 1, &dim, &var));
    NC(nc_put_var_string(nc, var, &latin));
    NC(nc_close(nc));
    opts.exclude = out;
    for (opts.nexclude = 0; opts.nexclude < 3; opts.nexclude++) {
        ck_assert_int_eq(brc_import(kit.session, source, "/in", &opts, &kit.err), BRC_EUNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(kit.err.message, opts.nexclude == 2 ? "/latin" : "large"));
    }
    int rc = brc_import(kit.session, source, "/in", &opts, &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    ck_assert_str_eq(netcdf_member(&kit, "/in/good", "shape"), "[1]");
    ck_assert_int_eq(brc_node_kind(&nc, kit.session, "/in/g", &kit.err), BRC_OK);
    ck_assert_int_eq(nc, 0);
    /* classic files have more dimensions than arrays can */
    source = exchange_path(&kit, "many.nc");
    NC(nc_create(source, 0, &nc));
    NC(nc_def_dim(nc, "x", 1, &dim));
    for (int i = 0; i < 33; i++)
        dims[i] = dim;
    NC(nc_def_var(nc, "many", NC_BYTE, 33, dims, &var));
    NC(nc_close(nc));
    netcdf_import_says(&kit, source, BRC_EUNSUPPORTED, "/many has 33 dimensions");
    exchange_stop(&kit);
}
