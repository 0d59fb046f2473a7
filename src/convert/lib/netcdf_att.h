/*
 * Attributes between NetCDF and JSON.
 *
 * A NetCDF attribute is a list of values of one type; a Zarr attribute is JSON. These rules convert a value
 * from one form to the other:
 *
 *   char               a text without its NUL bytes; text that is not valid UTF-8 is read as Latin-1
 *   string             a text, or a list of texts
 *   integers, floats   a number, or a list where there is not just one; NaN and the
 *                      infinities among them
 *   int                from integers, int64 or uint64 where they do not fit
 *   double             from other numbers
 *   char               from a text, and, as JSON, from what NetCDF does not have
 *   the variable's     from _FillValue, missing_value, valid_min ... where they fit it
 *
 * Zarr stores _FillValue of floats as base64 of a little-endian double: xarray writes this form, and reads no
 * other.
 *
 * Where these rules do not lead back to the same attribute (a float, say, is a double by
 * them), the import notes the type in the node's zarr.json, and where the type is not
 * enough the bytes:
 *
 *   "netcdf": { "must_understand": false,
 *               "attributes": { "scale_factor": "float",
 *                               "history": { "type": "char", "base64": "..." },
 *                               "_FillValue": { "type": "own" } } }
 *
 * An array has it as a member of its zarr.json. In groups zarr-python refuses members that
 * it does not know: there it is an attribute, "_nc_note", which xarray hides.
 *
 * A note holds as long as the attribute is what the import made of it. "own": the
 * variable has a _FillValue, which is Zarr's fill_value. An attribute that JSON or xarray
 * cannot have at all, such as NaN as the _FillValue of integers, is in the note alone.
 */
#ifndef BRC_CONVERT_LIB_NETCDF_ATT_H
#define BRC_CONVERT_LIB_NETCDF_ATT_H

#include <netcdf.h> /* for its numbers of types alone: HDF5's converter is not linked with netCDF-C */

#include "../../base/part.h"
#include "convert.h"
#include "convert_program.h"

/* ---- types ------------------------------------- */

/* Return the bytes of one value of a type that every NetCDF-4 file has, or 0 for another type; and Zarr's data type
 * as in a brc_array_spec, or NULL. */
size_t brc_netcdf_atomic_size(nc_type type);
const char *brc_netcdf_type_dtype(nc_type type);
/* Returns the integer type of `size` bytes, or NC_NAT if there is none. */
nc_type brc_netcdf_integer(size_t size, int is_unsigned);
/* Stores the value that marks elements that were never written, for a variable that names none. Returns its
 * size in bytes, or 0 for types without such a value. */
size_t brc_netcdf_default_fill(nc_type type, uint8_t out[8]);

/* The prefix of the names, such as "phony_dim_0", that netCDF-C invents for dimensions without one. */
#define BRC_NETCDF_NAMELESS "phony_dim_"

/* ---- values ------------------------------------ */

/* The context of an attribute: its variable's type, by which _FillValue, valid_range and their like are read. */
typedef struct brc_netcdf_of {
    nc_type type;   /* the variable's; of an enumeration, what it counts in. NC_NAT: it has
                       a type of its own, or the attribute is a group's              */
    int is_var;     /* 0: a group's                                                  */
    int is_complex; /* its _FillValue is a pair                                      */
    int is_classic; /* the file to write has no lists of texts: they are JSON text   */
} brc_netcdf_of;

/* A list of one type of every file, NC_STRING among them. */
typedef struct brc_netcdf_values {
    nc_type type;
    size_t n;
    void *data;   /* in native memory; of NC_STRING, pointers                         */
    char **texts; /* what they point to                                               */
} brc_netcdf_values;
void brc_netcdf_values_free(brc_netcdf_values *values);


/* ---- notes ------------------------------------- */

#define BRC_NETCDF_NOTE "netcdf"
/* The member of a group's note that makes the group a variable: one of a vlen type, or of compounds with texts or lists
 * in them (ragged.h). The group has the variable's attributes.
 *
 *   "variable": { "type": TREE, "shape": [n, ...], "chunk": [n, ...], "names": [text or null, ...] }
 *
 * names: of the dimensions. A TREE is as in ../hdf5/hdf5_tree.h; a list and a compound have the "name" of their type. */
#define BRC_NETCDF_RAGGED "variable"
/* Notes that a group has a dimension. */
BRC_MUST_USE int brc_netcdf_note_dim(brc_json **note, const char *name, uint64_t length, int unlimited, brc_error *err);
/* The note's part "attributes" or "dimensions" in a zarr.json, or NULL. */
const brc_json *brc_netcdf_note_part(const brc_json *doc, const char *part);

/* ---- all of a node ----------------------------- */

/* The attributes of a variable or group while they are read: attrs gets those that Zarr has, an
 * object, and the note what is noted. Both are the caller's. */
typedef struct brc_netcdf_atts_in {
    const char *label;
    brc_netcdf_of of;
    brc_json *attrs, *note;
} brc_netcdf_atts_in;
/* Takes one attribute of a type that every file has; an enumeration's values as integers. */
BRC_MUST_USE int brc_netcdf_take_att(brc_netcdf_atts_in *in, const char *name, const brc_netcdf_values *values,
                                     brc_error *err);
/* Takes the _FillValue of a complex number: two values of the type `of`, in native memory. */
BRC_MUST_USE int brc_netcdf_take_pair(brc_netcdf_atts_in *in, nc_type of, const uint8_t *pair, brc_error *err);
/* Notes that the variable has a _FillValue of its own type, which becomes Zarr's fill_value instead of an attribute. */
BRC_MUST_USE int brc_netcdf_take_own_fill(brc_netcdf_atts_in *in, brc_error *err);
/* Finds xarray's booleans: bytes that are all 0 or 1, with the attribute dtype "bool", which is removed. The array's
 * read() gives the bytes; nothing is read if the attribute has another value. */
BRC_MUST_USE int brc_netcdf_find_booleans(int *are, brc_netcdf_atts_in *in, const brc_array_in *array, brc_error *err);
/* Store the note: of a group, or of a variable that becomes a group, as an attribute; of an array as a member of
 * zarr.json, which readers may ignore. */
BRC_MUST_USE int brc_netcdf_note_group(brc_netcdf_atts_in *in, brc_error *err);
BRC_MUST_USE int brc_netcdf_note_array(brc_netcdf_atts_in *in, brc_array_in *array, brc_error *err);
/* Writes the attributes as JSON text, which the caller frees. */
BRC_MUST_USE int brc_netcdf_atts_text(char **out, const brc_netcdf_atts_in *in, brc_error *err);
/* Returns whether no value of the variable means "missing": it has no _FillValue, or one that no element can have and
 * that only the note keeps. */
int brc_netcdf_lacks_fill(const brc_netcdf_atts_in *in);

/* Calls put() with every attribute in a node's document except Zarr's own name for dimensions. Values of type NC_NAT
 * are the two doubles of a complex number. */
typedef struct brc_netcdf_atts_out {
    const char *label;
    brc_netcdf_of of;
    void *ctx;
    int (*put)(void *ctx, const char *name, const brc_netcdf_values *values, brc_error *err);
    int own_fill; /* set: the array's fill value is its _FillValue                   */
    int has_fill; /* set: there is an attribute _FillValue                           */
} brc_netcdf_atts_out;
BRC_MUST_USE int brc_netcdf_each_att(brc_netcdf_atts_out *out, const brc_json *doc, brc_error *err);

#endif
