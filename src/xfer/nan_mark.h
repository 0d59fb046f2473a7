/*
 * Attributes that are NaN or infinite, in documents that any reader of JSON must be able to read.
 *
 * Such a number becomes a value that JSON has, and one attribute says where they are:
 *
 *   "_breccia_numbers": "{\"numbers\":{\"/valid_max\":\"Infinity\",\"/a/0\":\"NaN\"}}"
 *
 * a text, for xarray writes no other kind into NetCDF, with a JSON pointer below the attributes for
 * each number. What stands there is the number's name as a text, but
 *
 *   null        for NaN as the missing_value of an array: xarray passes over null, and cannot save
 *               a text that it takes for a value; likewise as _FillValue in Zarr v2
 *   base64      for the _FillValue of floats in Zarr v3: what xarray has there
 *
 * On the way back a place that holds anything else is left as it is: whoever wrote it meant it.
 * Where the attributes have an attribute of this name already, it is in the text as "own", so that
 * no text which a user set is ever taken for a mark.
 */
#ifndef BRC_XFER_NAN_MARK_H
#define BRC_XFER_NAN_MARK_H

#include "../base/json.h"
#include "first_names.h"

#define BRC_NUMBERS_MARK "_breccia_numbers"

/* Of one export. */
typedef struct brc_nan_out {
    int tokens;    /* 1: documents keep NaN, Infinity and -Infinity, as zarr-python writes them */
    int version;   /* of Zarr: 2 or 3                                          */
    brc_first_names nodes; /* whose attributes had such numbers                 */
} brc_nan_out;

/* Makes the attributes of a node's document (of Zarr v3, also where v2 is written) ready to leave. */
BRC_MUST_USE int brc_nan_mark(brc_nan_out *out, brc_json *doc, const char *path, brc_error *err);
/* Appends the one warning about all such nodes, a line, if there were any. `warnings` may be NULL. */
BRC_MUST_USE int brc_nan_warn(const brc_nan_out *out, brc_buf *warnings, brc_error *err);
void brc_nan_out_dispose(brc_nan_out *out);

/* Makes numbers of what a mark names in a document that came, and takes the mark away. */
BRC_MUST_USE int brc_nan_restore(brc_json *doc, brc_error *err);

#endif
