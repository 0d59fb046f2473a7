/*
 * Data types between NetCDF and Zarr. What NetCDF-4 alone has is read as HDF5 (../hdf5/hdf5_type.h),
 * and becomes
 *
 *   byte ... uint64, float, double   int8 ... uint64, float32, float64
 *   char             null_terminated_bytes of one byte
 *   string           string
 *   enumeration      the integer type that it counts in
 *   opaque(n)        r<8n>
 *   compound         struct; of two equal floats called r and i (re, im; real, imag) a
 *                    complex number. A field of characters is null_terminated_bytes, one
 *                    that is another array a struct of the fields "0", "1", "2" ...
 *   vlen of bytes    bytes
 *
 * Variables of other vlens, and of compounds with texts or vlens in them, are groups of
 * arrays (netcdf_ragged.h). The other way:
 *
 *   bool                        byte, with the attribute dtype "bool" (as xarray has it)
 *   numpy.datetime64            int64 with CF's units and calendar
 *   numpy.timedelta64           int64 with units, and dtype as xarray has it
 *   fixed_length_utf32          string
 *   null_terminated_bytes n     char, along one more dimension, string<n>
 *   int2, int4, uint2, uint4    byte and ubyte, with the attribute dtype
 *   float16, bfloat16, float8 ... float, which has all their values, likewise
 *
 * NetCDF-4 alone has string, opaque, compound and vlen; CDF-5 and NetCDF-4 have ubyte,
 * the unsigned integers and int64.
 */
#ifndef BRC_CONVERT_NETCDF_NETCDF_TYPE_H
#define BRC_CONVERT_NETCDF_NETCDF_TYPE_H

#include "../../nd/dtype.h"
#include "netcdf_lib.h"

/* In memory, compounds lie as a compiler lays them out in a file's type, and packed in
 * an array. One move copies what is in one piece in both. */
typedef struct brc_netcdf_move {
    size_t file, here, len;
} brc_netcdf_move;

enum {
    BRC_NETCDF_PLAIN = 0, /* the same bytes, or moved                           */
    BRC_NETCDF_STRINGS,   /* char pointers; here of variable length             */
    BRC_NETCDF_LISTS,     /* nc_vlen_t of bytes; here of variable length        */
    BRC_NETCDF_UTF32,     /* char pointers; here UTF-32, padded                 */
    BRC_NETCDF_WIDER      /* numbers that NetCDF has in a larger type           */
};

typedef struct brc_netcdf_type {
    nc_type id;             /* in the file                                      */
    nc_type number;         /* what its values are; NC_NAT: neither numbers nor text */
    int how;                /* BRC_NETCDF_*                                     */
    int is_complex;
    size_t file_size, here_size; /* bytes of an element                         */
    size_t align;           /* what its place in memory is a multiple of */
    void *moves;            /* brc_netcdf_move[]; none: all in one piece        */
    size_t nmoves, moves_cap;
    size_t chars;           /* length of the dimension that it adds; 0: none */
    const brc_dtype *from;  /* the array's; NULL if it was a field's */
} brc_netcdf_type;

void brc_netcdf_type_free(brc_netcdf_type *type);

/* n elements from the array's layout to the file's. */
void brc_netcdf_move_out(const brc_netcdf_type *type, uint8_t *file, const uint8_t *here, size_t n);
/* One canonical element to the file's layout; `here` has room for one of the array's. */
void brc_netcdf_lay_out(const brc_netcdf_type *type, uint8_t *file, const uint8_t *element, uint8_t *here);

/* Types that an export has defined in its file, in the root group, each once. */
typedef struct brc_netcdf_types {
    const brc_registry *registry;
    int root;     /* the group; -1: nothing is defined, only looked at        */
    const void *ctx; /* taken(): whether a name is not free in the root group */
    int (*taken)(const void *ctx, const char *name);
    void *items;
    size_t n, cap;
} brc_netcdf_types;
void brc_netcdf_types_free(brc_netcdf_types *types);
/* How the array's elements are written; BRC_EUNSUPPORTED names the type. `from` must
 * outlive it. */
BRC_MUST_USE int brc_netcdf_type_out(brc_netcdf_type *out, brc_netcdf_types *types, const brc_dtype *from,
                                     int classic, brc_error *err);
/* A list of variable length, and a compound, which `key` stands for, under a name like this one. */
BRC_MUST_USE int brc_netcdf_define_list(nc_type *id, brc_netcdf_types *types, const char *key, const char *name, nc_type base,
                                        brc_error *err);
typedef struct brc_netcdf_field {
    const char *name;
    size_t offset;
    nc_type type;
    int ndims, sizes[BRC_MAX_NDIM];
} brc_netcdf_field;
BRC_MUST_USE int brc_netcdf_define_compound(nc_type *id, brc_netcdf_types *types, const char *key, const char *name, size_t size,
                                            const brc_netcdf_field *fields, size_t n, brc_error *err);
/* n packed elements as numbers of the wider type. */
void brc_netcdf_widen(const brc_netcdf_type *type, uint8_t *file, const uint8_t *here, size_t n);

#endif
