/* The corpus's NetCDF files: see corpus.h. */
#include <math.h>

#include "corpus.h"
#include "netcdf_kit.h"

static const int counted[] = {1, -2, 3, 4, 5, 6};

static int dim_of(int nc, const char *name, size_t len)
{
    int dim;
    NC(nc_def_dim(nc, name, len, &dim));
    return dim;
}

static int var_of(int nc, const char *name, nc_type type, int ndims, const int *dims)
{
    int var;
    NC(nc_def_var(nc, name, type, ndims, dims, &var));
    return var;
}

/* ---- what the classic format has -------------------------------- */

static void put_classic(int nc)
{
    const int dims[] = {dim_of(nc, "y", 2), dim_of(nc, "x", 3)};
    static const nc_type types[] = {NC_BYTE, NC_SHORT, NC_INT, NC_FLOAT, NC_DOUBLE};
    static const char *const names[] = {"i1", "i2", "i4", "f4", "f8"};
    int vars[5], scalar = var_of(nc, "scalar", NC_INT, 0, NULL);
    for (int i = 0; i < 5; i++)
        vars[i] = var_of(nc, names[i], types[i], 2, dims);
    NC(nc_put_att_text(nc, NC_GLOBAL, "title", 5, "hello"));
    NC(nc_enddef(nc));
    for (int i = 0; i < 5; i++)
        NC(nc_put_var_int(nc, vars[i], counted));
    NC(nc_put_var_int(nc, scalar, counted + 2));
}

static void put_chars(int nc)
{
    const int dims[] = {dim_of(nc, "n", 2), dim_of(nc, "len", 4)};
    const int var = var_of(nc, "name", NC_CHAR, 2, dims), one = var_of(nc, "one", NC_CHAR, 0, NULL);
    NC(nc_enddef(nc));
    NC(nc_put_var_text(nc, var, "ab\0\0\xc3\xa9-z"));
    NC(nc_put_var_text(nc, one, "q"));
}

static void put_records(int nc)
{
    const int dims[] = {dim_of(nc, "time", NC_UNLIMITED), dim_of(nc, "x", 3)};
    const int time = var_of(nc, "time", NC_DOUBLE, 1, dims), v = var_of(nc, "v", NC_SHORT, 2, dims);
    const int b = var_of(nc, "b", NC_BYTE, 1, dims);
    static const size_t start[] = {0, 0}, count[] = {2, 3};
    static const double times[] = {0.5, 1.5};
    NC(nc_put_att_text(nc, time, "units", 21, "days since 2000-01-01"));
    NC(nc_enddef(nc));
    NC(nc_put_vara_double(nc, time, start, count, times));
    NC(nc_put_vara_int(nc, v, start, count, counted));
    NC(nc_put_vara_int(nc, b, start, count, counted + 2));
}

/* Nothing is written to one of them: it is all fill value. */
static void put_fill(int nc)
{
    const int dim = dim_of(nc, "x", 3), own = var_of(nc, "own", NC_SHORT, 1, &dim);
    const int given = var_of(nc, "given", NC_INT, 1, &dim);
    static const short fill = -99;
    static const size_t at = 1;
    NC(nc_put_att_short(nc, own, "_FillValue", NC_SHORT, 1, &fill));
    NC(nc_enddef(nc));
    NC(nc_put_var1_int(nc, own, &at, counted));
    NC(nc_put_var1_int(nc, given, &at, counted));
}

static void put_attributes(int nc)
{
    static const signed char bytes[] = {-1, 2};
    static const short shorts[] = {-300, 300};
    static const float floats[] = {0.5F};
    static const double doubles[] = {1e300, -2};
    const int v = var_of(nc, "v", NC_INT, 0, NULL);
    NC(nc_put_att_schar(nc, v, "bytes", NC_BYTE, 2, bytes));
    NC(nc_put_att_short(nc, v, "shorts", NC_SHORT, 2, shorts));
    NC(nc_put_att_int(nc, v, "ints", NC_INT, 3, counted));
    NC(nc_put_att_float(nc, v, "float", NC_FLOAT, 1, floats));
    NC(nc_put_att_double(nc, v, "doubles", NC_DOUBLE, 2, doubles));
    NC(nc_put_att_text(nc, v, "text", 4, "h\xc3\xa9!"));
    NC(nc_put_att_text(nc, v, "empty", 0, ""));
    NC(nc_enddef(nc));
    NC(nc_put_var_int(nc, v, counted));
}

static void put_odd_attributes(int nc)
{
    const double odd[] = {NAN, INFINITY};
    const float odd4[] = {NAN, INFINITY, -INFINITY};
    const int dim = dim_of(nc, "x", 2), v = var_of(nc, "v", NC_DOUBLE, 1, &dim);
    NC(nc_put_att_double(nc, v, "_FillValue", NC_DOUBLE, 1, odd));
    NC(nc_put_att_float(nc, v, "odd", NC_FLOAT, 3, odd4));
    NC(nc_enddef(nc));
    NC(nc_put_var_double(nc, v, odd));
}

/* ---- what later formats have -------------------------------- */

static void put_wide_types(int nc)
{
    const int dim = dim_of(nc, "n", 2);
    static const unsigned long long most[] = {0, UINT64_MAX};
    static const long long ends[] = {INT64_MIN, INT64_MAX};
    static const unsigned char bytes[] = {0, 255};
    const int u8 = var_of(nc, "u8", NC_UINT64, 1, &dim), i8 = var_of(nc, "i8", NC_INT64, 1, &dim);
    const int u1 = var_of(nc, "u1", NC_UBYTE, 1, &dim), u2 = var_of(nc, "u2", NC_USHORT, 1, &dim);
    const int u4 = var_of(nc, "u4", NC_UINT, 1, &dim);
    NC(nc_put_att_ulonglong(nc, NC_GLOBAL, "most", NC_UINT64, 1, most + 1));
    NC(nc_enddef(nc));
    NC(nc_put_var_ulonglong(nc, u8, most));
    NC(nc_put_var_longlong(nc, i8, ends));
    NC(nc_put_var_uchar(nc, u1, bytes));
    NC(nc_put_var_uchar(nc, u2, bytes));
    NC(nc_put_var_uchar(nc, u4, bytes));
}

static void put_groups(int nc)
{
    int inner, deeper;
    const int dim = dim_of(nc, "x", 2);
    NC(nc_def_grp(nc, "inner", &inner));
    NC(nc_def_grp(inner, "deeper", &deeper));
    const int outer_v = var_of(nc, "x", NC_INT, 1, &dim);
    const int own = dim_of(inner, "x", 3), v = var_of(inner, "v", NC_INT, 1, &own);
    const int w = var_of(deeper, "w", NC_INT, 1, &own);
    NC(nc_put_att_int(deeper, NC_GLOBAL, "level", NC_INT, 1, counted + 2));
    NC(nc_put_var_int(nc, outer_v, counted));
    NC(nc_put_var_int(inner, v, counted));
    NC(nc_put_var_int(deeper, w, counted + 3));
}

static void put_enums(int nc)
{
    int type;
    const int dim = dim_of(nc, "n", 3);
    static const signed char values[] = {0, 5, 0}, clear = 0, cloudy = 5;
    NC(nc_def_enum(nc, NC_BYTE, "sky", &type));
    NC(nc_insert_enum(nc, type, "clear", &clear));
    NC(nc_insert_enum(nc, type, "cloudy", &cloudy));
    const int var = var_of(nc, "sky_now", type, 1, &dim);
    NC(nc_put_var(nc, var, values));
}

static void put_strings(int nc)
{
    const int dim = dim_of(nc, "n", 3), var = var_of(nc, "words", NC_STRING, 1, &dim);
    const char *words[] = {"", "h\xc3\xa9llo", "x"};
    NC(nc_put_att_string(nc, var, "list", 3, words));
    NC(nc_put_var_string(nc, var, words));
}

static void put_unlimited(int nc)
{
    const int dims[] = {dim_of(nc, "t", NC_UNLIMITED), dim_of(nc, "u", NC_UNLIMITED)};
    const int var = var_of(nc, "v", NC_INT, 2, dims), fixed = dim_of(nc, "x", 2);
    static const size_t start[] = {0, 0}, count[] = {2, 3}, chunks[] = {1, 2}, all = 2;
    const int packed = var_of(nc, "packed", NC_INT, 1, &fixed);
    NC(nc_def_var_chunking(nc, var, NC_CHUNKED, chunks));
    NC(nc_def_var_chunking(nc, packed, NC_CHUNKED, &all));
    NC(nc_def_var_deflate(nc, packed, 1, 1, 5));
    NC(nc_put_vara_int(nc, var, start, count, counted));
    NC(nc_put_var_int(nc, packed, counted));
}

static void put_compound(int nc)
{
    typedef struct row {
        short n;
        double x;
    } row;
    static const row rows[] = {{1, 0.5}, {-2, -4}};
    const int dim = dim_of(nc, "n", 2);
    int type;
    NC(nc_def_compound(nc, sizeof(row), "row", &type));
    NC(nc_insert_compound(nc, type, "n", offsetof(row, n), NC_SHORT));
    NC(nc_insert_compound(nc, type, "x", offsetof(row, x), NC_DOUBLE));
    const int var = var_of(nc, "rows", type, 1, &dim);
    NC(nc_put_var(nc, var, rows));
}

#define SIX_INT "[1,-2,3,4,5,6]"
#define SIX_FLOAT "[1.0,-2.0,3.0,4.0,5.0,6.0]"
#define CLASSIC_CHECKS                                                                             \
    {"/i1", SIX_INT, "/i2", SIX_INT, "/i4", SIX_INT, "/f4", SIX_FLOAT, "/f8", SIX_FLOAT,           \
     "/scalar", "[3]", "@title", "\"hello\""}

static const corpus_entry entries[] = {
    {.cause = "NetCDF: the classic format", .file = "x.nc", .format = "netcdf3",
     .netcdf = put_classic, .checks = CLASSIC_CHECKS},
    {.cause = "NetCDF: offsets of 64 bits", .file = "x.nc", .format = "netcdf3",
     .netcdf = put_classic, .mode = NC_64BIT_OFFSET, .checks = CLASSIC_CHECKS},
    {.cause = "NetCDF: data of 64 bits", .file = "x.nc", .format = "netcdf3",
     .netcdf = put_classic, .mode = NC_64BIT_DATA, .checks = CLASSIC_CHECKS},
    {.cause = "NetCDF: the types of CDF-5", .file = "x.nc", .format = "netcdf3",
     .netcdf = put_wide_types, .mode = NC_64BIT_DATA,
     .checks = {"/u8", "[0,18446744073709551615]", "/i8",
                "[-9223372036854775808,9223372036854775807]", "/u1", "[0,255]", "/u2", "[0,255]",
                "/u4", "[0,255]", "@most", "18446744073709551615"}},
    {.cause = "NetCDF-4: the types of CDF-5", .file = "x.nc", .netcdf = put_wide_types,
     .mode = NC_NETCDF4,
     .checks = {"/u8", "[0,18446744073709551615]", "/i8",
                "[-9223372036854775808,9223372036854775807]", "/u1", "[0,255]", "@most",
                "18446744073709551615"}},
    {.cause = "NetCDF: characters", .file = "x.nc", .format = "netcdf3", .netcdf = put_chars,
     .checks = {"/name", "[\"YQ==\",\"Yg==\",\"AA==\",\"AA==\","
                         "\"ww==\",\"qQ==\",\"LQ==\",\"eg==\"]", "/one", "[\"cQ==\"]"}},
    {.cause = "NetCDF: records", .file = "x.nc", .format = "netcdf3", .netcdf = put_records,
     .note = " unlimited",
     .checks = {"/time", "[0.5,1.5]", "/v", SIX_INT, "/b", "[3,4]", "/time@units",
                "\"days since 2000-01-01\""}},
    {.cause = "NetCDF: fill values", .file = "x.nc", .format = "netcdf3", .netcdf = put_fill,
     .checks = {"/own", "[-99,1,-99]", "/given", "[-2147483647,1,-2147483647]", "/own@_FillValue",
                "-99"}},
    {.cause = "NetCDF: attributes of each type", .file = "x.nc", .format = "netcdf3",
     .netcdf = put_attributes,
     .checks = {"/v", "[1]", "/v@bytes", "[-1,2]", "/v@shorts", "[-300,300]", "/v@ints", "[1,-2,3]",
                "/v@float", "0.5", "/v@doubles", "[1e+300,-2.0]", "/v@text", "\"h\xc3\xa9!\"",
                "/v@empty", "\"\""}},
    {.cause = "NetCDF: attributes that are not finite", .file = "x.nc", .format = "netcdf3",
     .netcdf = put_odd_attributes,
     .checks = {"/v", "[\"NaN\",\"Infinity\"]", "/v@_FillValue", "\"AAAAAAAA+H8=\"", "/v@odd",
                "[NaN,Infinity,-Infinity]"}},
    {.cause = "NetCDF-4: attributes of each type", .file = "x.nc", .netcdf = put_attributes,
     .mode = NC_NETCDF4,
     .checks = {"/v", "[1]", "/v@bytes", "[-1,2]", "/v@shorts", "[-300,300]", "/v@ints", "[1,-2,3]",
                "/v@float", "0.5", "/v@doubles", "[1e+300,-2.0]", "/v@text", "\"h\xc3\xa9!\""}},
    {.cause = "NetCDF-4: groups, with axes of one name", .file = "x.nc", .netcdf = put_groups,
     .mode = NC_NETCDF4,
     .checks = {"/x", "[1,-2]", "/inner/v", "[1,-2,3]", "/inner/deeper/w", "[4,5,6]",
                "/inner/deeper@level", "3"}},
    {.cause = "NetCDF-4: enumerations", .file = "x.nc", .netcdf = put_enums, .mode = NC_NETCDF4,
     .note = "/sky_now cloudy", .checks = {"/sky_now", "[0,5,0]"}},
    {.cause = "NetCDF-4: text of variable length", .file = "x.nc", .netcdf = put_strings,
     .mode = NC_NETCDF4,
     .checks = {"/words", "[\"\",\"h\xc3\xa9llo\",\"x\"]", "/words@list",
                "[\"\",\"h\xc3\xa9llo\",\"x\"]"}},
    {.cause = "NetCDF-4: axes that grow, chunks, deflate", .file = "x.nc", .netcdf = put_unlimited,
     .mode = NC_NETCDF4, .note = " unlimited",
     .checks = {"/v", SIX_INT, "/packed", "[1,-2]"}},
    {.cause = "NetCDF-4: compounds", .file = "x.nc", .netcdf = put_compound, .mode = NC_NETCDF4,
     .checks = {"/rows", "[{\"n\":1,\"x\":0.5},{\"n\":-2,\"x\":-4.0}]"}},
};

corpus_table corpus_netcdf(void)
{
    return (corpus_table){entries, sizeof(entries) / sizeof(entries[0])};
}
