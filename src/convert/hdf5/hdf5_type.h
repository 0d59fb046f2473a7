/*
 * Types between HDF5 and Zarr.
 *
 *   integer          int8 ... uint64, the next that has the bits; of 2 or 4 bits in one
 *                    byte int2, int4, uint2, uint4
 *   float            float16, float32, float64, bfloat16, float8_e5m2, float8_e4m3,
 *                    float8_e3m4 by their layout
 *   enum             bool where it is FALSE = 0, TRUE = 1 in a byte, else its integer *
 *   bit field        uint8 ... uint64 *
 *   string, fixed    null_terminated_bytes *
 *   string           string
 *   opaque           by its tag "NUMPY:<M8[ns]" that type, else r<bits> *
 *   compound         complex64 ... of two equal floats {r, i}, {re, im} or {real, imag} *,
 *                    else struct *
 *   list of bytes    bytes
 *   reference        string: see hdf5_tree.h *
 *   array            its element's, with the array's axes behind the dataset's; inside a
 *                    compound, for each axis a struct of the fields "0", "1", ... *
 *
 * (*) has a note: a JSON object of what Zarr's type does not say. It is kept in
 * zarr.json and used again on export:
 *
 *   enum: {name: value, ...}    class: "bitfield"    charset: "UTF-8"     tag: text
 *   parts: [name, name]         fields: {name: note, ...}
 *   array: [n, ...], item: note    reference: "object" or "region"
 */
#ifndef BRC_CONVERT_HDF5_HDF5_TYPE_H
#define BRC_CONVERT_HDF5_HDF5_TYPE_H

#include "../../base/json.h"
#include "../../base/part.h"
#include "../../nd/dtype.h"
#include "../lib/convert_program.h"
#include "hdf5_lib.h"

/* The properties that only HDF5 has: a member of an array's zarr.json, with the type's note, and
 *   maxshape: [n or null, ...]   space: "null"   attributes: {name: data type, ...}
 *   committed: the path of its type   at: the path that the object had in its file, if its values
 *                                     or notes contain paths
 *   filters: [{"number": N, "name": "LZF"}, ...], the filters of its chunks that are not a part of HDF5
 * A type in "attributes" is a tree (hdf5_tree.h), or {"type": tree, "ndim": axes, "committed": path}.
 * A group's note also has types: {name: {"type": tree or null, "values": the type's own attributes,
 * "attributes", "at"}, ...}, the committed data types that lie in it.
 * zarr-python refuses unknown members in groups, so a group's note is an attribute,
 * under a name that xarray hides. */
#define BRC_HDF5_NOTE "hdf5"
/* The attribute of an object in a file with the properties that only Zarr has, as JSON text:
 *   data_type    where HDF5's would be read as another
 *   json         [names of attributes that are JSON text] */
#define BRC_HDF5_ZARR "_zarr"

/* An array inside a compound of more items than this makes the compound one of several arrays. */
#define BRC_HDF5_FIELD_ITEMS 4096

enum { BRC_HDF5_FIXED = 0, BRC_HDF5_STRING, BRC_HDF5_BYTES, BRC_HDF5_OBJECT, BRC_HDF5_REGION };

/* A byte that must be 0 or 1; or a signed integer with fewer bits than it has in memory, whose value -2^(bits-1) HDF5
 * 1.10 reads as 2^(bits-1). */
struct brc_hdf5_part {
    size_t at, size;
    unsigned bits; /* 0: the byte */
};

typedef struct brc_hdf5_type {
    char *dtype;     /* as in a brc_array_spec                                  */
    brc_json *note;  /* NULL: none                                              */
    hid_t memory;    /* the type in memory of elements that are read and written: packed, native */
    size_t size;     /* of one element in memory */
    size_t item;     /* of one item of an element; an array type has several */
    int kind;        /* BRC_HDF5_*: the form of elements of variable length */
    int swap;        /* elements have the other byte order, which the library does not know */
    int ndim;        /* of an array type                                        */
    uint64_t shape[BRC_MAX_NDIM];
    struct brc_hdf5_part *parts; /* parts of an item that the library does not check or convert */
    size_t nparts, parts_cap;
} brc_hdf5_type;

/* How a type is read.
 *   BRC_HDF5_WRITING   enums stay enums in memory, since the library reads them as integers and
 *                      does not write them so
 *   BRC_HDF5_NETCDF    of a NetCDF-4 file: an array of characters of one axis is a text of that length,
 *                      every list of bytes, signed ones and characters too, is `bytes`, and no enum is bool */
enum { BRC_HDF5_READING = 0, BRC_HDF5_WRITING, BRC_HDF5_NETCDF };
/* Reads a type of a file. `label` begins messages. */
BRC_MUST_USE int brc_hdf5_type_read(brc_hdf5_type *out, const brc_registry *reg, hid_t type,
                                    int how, const char *label, brc_error *err);
void brc_hdf5_type_close(brc_hdf5_type *type);

/* Makes the file's type for a Zarr data type. `note` may be NULL, and is used if it fits. `how` is BRC_HDF5_WRITING,
 * or BRC_HDF5_NETCDF for a type that netCDF reads as brc_netcdf_type_of() says: such a type has no notes, and several
 * characters are an array. BRC_EUNSUPPORTED if there is no such type. */
BRC_MUST_USE int brc_hdf5_type_make(hid_t *out, const brc_registry *reg, const brc_json *data_type,
                                    const brc_json *note, int how, const char *label, brc_error *err);

/* Replaces a type by one whose fields are where a C compiler puts them, in native order. */
BRC_MUST_USE int brc_hdf5_native_layout(hid_t *type, const char *label, brc_error *err);

/* Returns whether a list of variable length is `bytes`. */
int brc_hdf5_is_byte_list(hid_t type, int how);

/* See hdf5_in_attr.c. An import changes the values and types of an array's attributes (*types may be NULL before). An
 * export gets *value and *type, which replace the attribute and the note about it; the caller frees them. NULL:
 * nothing is replaced. */
BRC_MUST_USE int brc_hdf5_fill_attr_in(brc_json *values, brc_json **types, const brc_dtype *array, const brc_registry *reg,
                                       brc_error *err);
BRC_MUST_USE int brc_hdf5_fill_attr_out(brc_json **value, brc_json **type, const brc_json *given, const brc_json *note,
                                        const brc_dtype *array, brc_error *err);

/* The layout of a float. All have an implied leading bit, the sign at the top and the fraction at the bottom. */
typedef struct brc_hdf5_float {
    const char *dtype, *complex_dtype;
    size_t size, exponent_at, exponent_bits, bias;
    int common; /* NumPy has the type */
} brc_hdf5_float;
#define BRC_HDF5_FLOATS 7
extern const brc_hdf5_float brc_hdf5_floats[BRC_HDF5_FLOATS];

/* Returns the native integer type of 1, 2, 4 or 8 bytes. */
hid_t brc_hdf5_integer(size_t size, int is_signed);

#endif
