/* See netcdf_kit.h. */
#include "ios.h"
#include "netcdf_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/json.h"

const netcdf_atomic netcdf_atomics[NETCDF_ATOMICS] = {
    { NC_BYTE, "byte", "\"int8\"", 1, { 0x80, 0x7f, 0 } },
    { NC_CHAR,
      "char",
      "{\"name\":\"null_terminated_bytes\",\"configuration\":{\"length_bytes\":1}}",
      1,
      { 'a', 0, 0xe6 } },
    { NC_SHORT, "short", "\"int16\"", 2, { 0, 0x80, 0xff, 0x7f, 1 } },
    { NC_INT, "int", "\"int32\"", 4, { 0, 0, 0, 0x80, 0xff, 0xff, 0xff, 0x7f, 1 } },
    { NC_FLOAT, "float", "\"float32\"", 4, { 1, 0, 0xa0, 0x7f, 0, 0, 0, 0x80, 3 } },
    { NC_DOUBLE,
      "double",
      "\"float64\"",
      8,
      { 2, 0, 0, 0, 0, 0, 0xf4, 0xff, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0xf0, 0x7f } },
    { NC_UBYTE, "ubyte", "\"uint8\"", 1, { 0, 255, 7 } },
    { NC_USHORT, "ushort", "\"uint16\"", 2, { 0xff, 0xff, 1, 0, 0, 0x80 } },
    { NC_UINT, "uint", "\"uint32\"", 4, { 0xff, 0xff, 0xff, 0xff, 1 } },
    { NC_INT64,
      "int64",
      "\"int64\"",
      8,
      { 0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1 } },
    { NC_UINT64,
      "uint64",
      "\"uint64\"",
      8,
      { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4, 5, 6, 7, 8, 0 } },
};

const netcdf_kind netcdf_kinds[NETCDF_KINDS] = {
    { "1.nc", 0, NETCDF_CLASSIC_TYPES, 2 },
    { "2.nc", NC_64BIT_OFFSET, NETCDF_CLASSIC_TYPES, 2 },
    { "5.nc", NC_64BIT_DATA, NETCDF_ATOMICS, 5 },
    { "4.nc", NC_NETCDF4, NETCDF_ATOMICS, 5 },
};

/* A scalar, a vector and a matrix of each type; the last has one attribute of it. */
void netcdf_write_atomics(const char *path, int mode, size_t ntypes)
{
    int nc, dims[2], var;
    char name[64];
    NC(nc_create(path, mode, &nc));
    NC(nc_def_dim(nc, "one", 1, &dims[0]));
    NC(nc_def_dim(nc, "three", 3, &dims[1]));
    for (size_t i = 0; i < ntypes; i++)
        for (int rank = 0; rank < 3; rank++) {
            snprintf(name, sizeof(name), "%s%d", netcdf_atomics[i].name, rank);
            NC(nc_def_var(nc, name, netcdf_atomics[i].type, rank, rank == 1 ? &dims[1] : dims,
                          &var));
            if (rank == 2)
                NC(nc_put_att(nc, var, "like", netcdf_atomics[i].type, 3, netcdf_atomics[i].bytes));
        }
    NC(nc_enddef(nc));
    for (size_t i = 0; i < ntypes; i++)
        for (int rank = 0; rank < 3; rank++) {
            snprintf(name, sizeof(name), "%s%d", netcdf_atomics[i].name, rank);
            NC(nc_inq_varid(nc, name, &var));
            NC(nc_put_var(nc, var, netcdf_atomics[i].bytes));
        }
    NC(nc_close(nc));
}

void netcdf_write_small(const char *path, int mode)
{
    int nc, dims[2], var;
    short data[6] = { 1, 2, 3, 4, 5, 6 };
    size_t start[2] = { 0, 0 }, count[2] = { 2, 3 };
    NC(nc_create(path, mode, &nc));
    NC(nc_def_dim(nc, "t", NC_UNLIMITED, &dims[0]));
    NC(nc_def_dim(nc, "x", 3, &dims[1]));
    NC(nc_def_var(nc, "v", NC_SHORT, 2, dims, &var));
    NC(nc_put_att_text(nc, var, "units", 1, "K"));
    NC(nc_put_att_short(nc, var, "_FillValue", NC_SHORT, 1, data));
    NC(nc_def_var(nc, "w", NC_DOUBLE, 1, &dims[1], &var));
    NC(nc_put_att_text(nc, NC_GLOBAL, "title", 5, "hello"));
    NC(nc_enddef(nc));
    NC(nc_put_vara_short(nc, 0, start, count, data));
    NC(nc_close(nc));
}

void netcdf_import_ok(exchange_kit *kit, const char *source, const char *path)
{
    int rc = brc_import(kit->session, source, path, NULL, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
}

const char *netcdf_export_ok(exchange_kit *kit, const char *path, const char *name,
                             const char *format)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    const char *dest = exchange_path(kit, name);
    opts.format = format;
    int rc = brc_export(kit->session, path, dest, &opts, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
    return dest;
}

void netcdf_import_says(exchange_kit *kit, const char *source, int code, const char *says)
{
    int rc = brc_import(kit->session, source, "/refused", NULL, &kit->err);
    ck_assert_msg(rc == code, "%d instead of %d: %s", rc, code, rc < 0 ? kit->err.message : "");
    ck_assert_msg(strstr(kit->err.message, says), "\"%s\" is not in \"%s\"", says,
                  kit->err.message);
}

void netcdf_export_says(exchange_kit *kit, const char *path, const char *format, const char *says)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    const char *dest = exchange_path(kit, "refused.nc");
    opts.format = format;
    int rc = brc_export(kit->session, path, dest, &opts, &kit->err);
    ck_assert_msg(rc == BRC_EUNSUPPORTED, "%d: %s", rc, rc < 0 ? kit->err.message : "exported");
    ck_assert_msg(strstr(kit->err.message, says), "\"%s\" is not in \"%s\"", says,
                  kit->err.message);
    ck_assert(!exchange_exists(dest));
}

/* A member of a node's zarr.json as JSON text, or "" where there is none. */
const char *netcdf_member(exchange_kit *kit, const char *path, const char *name)
{
    static char text[4096];
    brc_buf doc = BRC_BUF_INIT, out = BRC_BUF_INIT;
    brc_json *json;
    ck_assert_int_eq(brc_node_json(&doc, kit->session, path, &kit->err), BRC_OK);
    ck_assert_int_eq(brc_json_parse(&json, (const char *)doc.data, doc.len, BRC_JSON_NAN,
                                    &kit->err), BRC_OK);
    const brc_json *found = brc_json_member(json, name);
    if (found)
        ck_assert_int_eq(brc_json_write(&out, found, 0, &kit->err), BRC_OK);
    snprintf(text, sizeof(text), "%.*s", (int)out.len, out.len ? (const char *)out.data : "");
    brc_json_free(json);
    brc_buf_dispose(&doc);
    brc_buf_dispose(&out);
    return text;
}

const char *netcdf_attribute(exchange_kit *kit, const char *path, const char *name)
{
    static char text[1024];
    brc_buf out = BRC_BUF_INIT;
    int rc = brc_attrs_get(&out, kit->session, path, name, &kit->err);
    snprintf(text, sizeof(text), "%s", rc == BRC_OK ? (const char *)out.data : "");
    brc_buf_dispose(&out);
    return text;
}

void netcdf_check_bytes(exchange_kit *kit, const char *path, const void *expected, size_t len)
{
    void *got = exchange_elements(kit->session, path, len);
    ck_assert_mem_eq(got, expected, len);
    free(got);
}

/* The same of elements of variable length. */
void netcdf_check_elements(exchange_kit *kit, const char *path, const void *expected, size_t len)
{
    brc_buf got = BRC_BUF_INIT;
    brc_array *a;
    ck_assert_int_eq(brc_array_open(&a, kit->session, path, &kit->err), BRC_OK);
    int rc = io_elements(a, NULL, &got, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
    ck_assert_uint_eq(got.len, len);
    ck_assert_mem_eq(got.data, expected, len);
    brc_buf_dispose(&got);
    brc_array_free(a);
}

void netcdf_new_array(exchange_kit *kit, const char *path, const char *dtype, int ndim,
                      const uint64_t *shape, const char *const *names)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    spec.ndim = ndim;
    spec.shape = shape;
    spec.dtype = dtype;
    spec.dimension_names = names;
    int rc = brc_array_create(&a, kit->session, path, &spec, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
    brc_array_free(a);
}

void netcdf_write_array(exchange_kit *kit, const char *path, const void *data, size_t len)
{
    brc_array *a;
    ck_assert_int_eq(brc_array_open(&a, kit->session, path, &kit->err), BRC_OK);
    int rc = brc_array_write(a, NULL, data, len, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
    brc_array_free(a);
}

void netcdf_check_odd(int nc, int var, const char *name, nc_type type, size_t n, const void *bytes)
{
    uint8_t got[32] = { 0 };
    nc_type is;
    size_t len, size;
    NC(nc_inq_att(nc, var, name, &is, &len));
    ck_assert_msg(is == type && len == n, "%s has type %d and length %zu", name, is, len);
    NC(nc_get_att(nc, var, name, got));
    NC(nc_inq_type(nc, type, NULL, &size));
    if (n > 0)
        ck_assert_mem_eq(got, bytes, n * size);
}
