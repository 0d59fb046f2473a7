/* NetCDF files made and looked at with netCDF-C, for tests. Everything fails the test
 * that called it. */
#ifndef BRC_TESTS_NETCDF_KIT_H
#define BRC_TESTS_NETCDF_KIT_H

#include <check.h>
#include <netcdf.h>

#include "exchange_kit.h"

#define NC(call)                                                                   \
    do {                                                                           \
        int status_ = (call);                                                      \
        ck_assert_msg(status_ == NC_NOERR, "%s: %s", #call, nc_strerror(status_)); \
    } while (0)

/* Types of every file: three elements of each, little-endian. */
typedef struct netcdf_atomic {
    nc_type type;
    const char *name, *dtype;
    size_t size;
    uint8_t bytes[24];
} netcdf_atomic;
#define NETCDF_ATOMICS 11
#define NETCDF_CLASSIC_TYPES 6 /* the first ones */
extern const netcdf_atomic netcdf_atomics[NETCDF_ATOMICS];

typedef struct netcdf_kind {
    const char *name;
    int mode; /* for nc_create() */
    size_t ntypes;
    char version; /* the byte behind "CDF" of the least classic format that has all of them */
} netcdf_kind;
#define NETCDF_KINDS 4
extern const netcdf_kind netcdf_kinds[NETCDF_KINDS];

/* A scalar, a vector and a matrix of each type; the last has one attribute of it. */
void netcdf_write_atomics(const char *path, int mode, size_t ntypes);
/* Two variables, one of them along an unlimited dimension, and attributes: most of it is header. */
void netcdf_write_small(const char *path, int mode);

void netcdf_import_ok(exchange_kit *kit, const char *source, const char *path);
/* The path of what was written, valid as that of exchange_path() is. */
const char *netcdf_export_ok(exchange_kit *kit, const char *path, const char *name,
                             const char *format);
/* Imports the file, which must fail with this code and these words. */
void netcdf_import_says(exchange_kit *kit, const char *source, int code, const char *says);
/* Exports the node, which must fail with BRC_EUNSUPPORTED and leave no file. */
void netcdf_export_says(exchange_kit *kit, const char *path, const char *format, const char *says);

/* A member of a node's zarr.json, or an attribute, as JSON text; "" where there is none.
 * Valid until the next call. */
const char *netcdf_member(exchange_kit *kit, const char *path, const char *name);
const char *netcdf_attribute(exchange_kit *kit, const char *path, const char *name);
/* The elements of an array, and the same of variable length. */
void netcdf_check_bytes(exchange_kit *kit, const char *path, const void *expected, size_t len);
void netcdf_check_elements(exchange_kit *kit, const char *path, const void *expected, size_t len);
/* An attribute in a file: its type, length and bytes. */
void netcdf_check_odd(int nc, int var, const char *name, nc_type type, size_t n, const void *bytes);

void netcdf_new_array(exchange_kit *kit, const char *path, const char *dtype, int ndim,
                      const uint64_t *shape, const char *const *names);
void netcdf_write_array(exchange_kit *kit, const char *path, const void *data, size_t len);

#define TIME(name, unit) \
    "{\"name\":\"numpy." name "\",\"configuration\":{\"unit\":\"" unit "\",\"scale_factor\":1}}"
#define OF_LENGTH(name, n) \
    "{\"name\":\"" name "\",\"configuration\":{\"length_bytes\":" n "}}"

#endif
