/*
 * Attributes between NetCDF and JSON.
 *
 * NetCDF's are lists of one type, Zarr's are JSON. What a value becomes in one is decided
 * by what it is in the other, and by these rules:
 *
 *   char               a text; NUL bytes in it are left out, what is no UTF-8 is Latin-1
 *   string             a text, or a list of texts
 *   integers, floats   a number, or a list where there is not just one; NaN and the
 *                      infinities among them
 *   int                from integers, int64 or uint64 where they do not fit
 *   double             from other numbers
 *   char               from a text, and, as JSON, from what NetCDF does not have
 *   the variable's     from _FillValue, missing_value, valid_min ... where they fit it
 *
 * _FillValue of floats is, in Zarr, base64 of a little-endian double: that is what xarray
 * writes there, and all that it reads.
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
#ifndef BRC_CONVERT_NETCDF_NETCDF_ATT_H
#define BRC_CONVERT_NETCDF_NETCDF_ATT_H

#include "../../base/part.h"
#include "../lib/convert.h"
#include "netcdf_lib.h"

/* What attributes with a meaning for a variable's values go by. */
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

/* *out: NULL if Zarr's attributes cannot have it, as above. */
BRC_MUST_USE int brc_netcdf_att_json(brc_json **out, const brc_netcdf_of *of, const char *name,
                                     const brc_netcdf_values *values, brc_error *err);

/* ---- notes ------------------------------------- */

#define BRC_NETCDF_NOTE "netcdf"
/* Of a group: that it has a dimension. */
BRC_MUST_USE int brc_netcdf_note_dim(brc_json **note, const char *name, uint64_t length, int unlimited, brc_error *err);
/* The note's part "attributes" or "dimensions" in a zarr.json, or NULL. */
const brc_json *brc_netcdf_note_part(const brc_json *doc, const char *part);

/* ---- all of a node ----------------------------- */

#define BRC_NETCDF_NAME_MAX (4 * NC_MAX_NAME) /* for names that the library gives */

/* Every attribute of a variable or group (var NC_GLOBAL): attrs gets those that Zarr has,
 * an object, and the note what is noted. */
typedef struct brc_netcdf_atts_in {
    brc_convert *convert;
    int group, var;
    nc_type var_type; /* as the file has it */
    const char *label;
    brc_netcdf_of of;
    brc_json *attrs, *note;
} brc_netcdf_atts_in;
BRC_MUST_USE int brc_netcdf_read_atts(brc_netcdf_atts_in *in, brc_error *err);
/* One attribute of a type that every file has; an enumeration's as integers. n 0 if
 * there is none, or it is of another type. */
BRC_MUST_USE int brc_netcdf_read_att(brc_netcdf_values *out, int group,
                                     int var, const char *name, const char *label, brc_error *err);
/* Releases what the library allocated in such values. */
void brc_netcdf_drop(int group, nc_type type, size_t n, uint8_t *data);

/* Calls put() with every attribute that a node has by its document, but for Zarr's own
 * name for dimensions. Values of type NC_NAT are a complex number's two doubles. */
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
