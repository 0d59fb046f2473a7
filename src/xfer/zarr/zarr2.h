/*
 * Zarr v2 expressed in Zarr v3, and back. Chunks are the same bytes in both, so only
 * documents are translated.
 *
 * What of a .zarray is not in the v3 document that comes of it is kept in its member
 * BRC_ZARR2_NOTE (src/zarr/doc/meta.h):
 *
 *   {"must_understand": false,
 *    "fill_value": null,       the array has no fill value
 *    "zarray": {...}}          the whole .zarray: it has members that the format does
 *                              not know, "shuffle": -1 ...
 *
 * On the way back the .zarray counts where it still says what the v3 document says.
 */
#ifndef BRC_XFER_ZARR_ZARR2_H
#define BRC_XFER_ZARR_ZARR2_H

#include "../../base/json.h"
#include "../../zarr/doc/meta.h"

/* v2's name for a data type, taken apart. */
typedef struct brc_zarr2_type {
    brc_buf json;  /* v3's name for it; empty for objects: their filter says it       */
    char kind;     /* NumPy's: b i u f c M m S U V O; T: a structure; X: none of v3's */
    char order;    /* '<' or '>' of what is wider than a byte; '|' where nothing is   */
    uint64_t size; /* bytes per element; 0 for objects                                */
} brc_zarr2_type;

/* Errors begin with "/dtype". Release with brc_buf_dispose(&out->json). */
BRC_MUST_USE int brc_zarr2_type_read(brc_zarr2_type *out, const brc_json *dtype, brc_error *err);
/* The same for the type in a filter's configuration, which may lack its byte order or
 * be a name, "f4" or "float32": then it is little-endian. The latter has no json. */
BRC_MUST_USE int brc_zarr2_type_of_filter(brc_zarr2_type *out, const brc_json *dtype,
                                          brc_error *err);
/* Names a type that v3 has no form for, so that its array is kept as it is. */
BRC_MUST_USE int brc_zarr2_type_opaque(brc_zarr2_type *type, const brc_json *dtype, brc_error *err);
/* Appends v2's name for a data type of v3, with this byte order ('<' or '>') where
 * one is needed. */
BRC_MUST_USE int brc_zarr2_type_write(brc_buf *out, const brc_json *data_type, char order,
                                      brc_error *err);

/* Appends v3's fill value. `type` has its json. */
BRC_MUST_USE int brc_zarr2_fill_read(brc_buf *out, const brc_json *fill, const brc_zarr2_type *type,
                                     const brc_registry *reg, brc_error *err);
/* Appends v2's fill value for an array of v3: null where it has none, unless its absent
 * chunks (`gaps`) are other than zeros, which is what readers take null for. */
BRC_MUST_USE int brc_zarr2_fill_write(brc_buf *out, const brc_json *doc, char order, int gaps,
                                      const brc_registry *reg, brc_error *err);

/* A v3 document for a .zarray and its .zattrs (NULL: there are none). `separator`
 * is for where the .zarray has none. */
BRC_MUST_USE int brc_zarr2_array_read(brc_json **out, const brc_json *zarray,
                                      const brc_json *zattrs, char separator,
                                      const brc_registry *reg, brc_error *err);
/* The same for an import. Structures whose fields differ in byte order get them all little-endian:
 * *source is then a document that says what the chunks are now, for brc_array_put_recoded(); else
 * NULL. What cannot be decoded so is kept as it is. */
BRC_MUST_USE int brc_zarr2_array_import(brc_json **out, brc_json **source, const brc_json *zarray,
                                        const brc_json *zattrs, char separator,
                                        const brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_zarr2_group_read(brc_json **out, const brc_json *zgroup,
                                      const brc_json *zattrs, brc_error *err);
/* The .zarray and .zattrs (NULL: none are needed) for an array of v3;
 * BRC_EUNSUPPORTED if v2 cannot say it. `gaps`: some of its chunks are absent. */
BRC_MUST_USE int brc_zarr2_array_write(brc_json **zarray, brc_json **zattrs, const brc_json *doc,
                                       int gaps, const brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_zarr2_group_write(brc_json **zgroup, brc_json **zattrs, const brc_json *doc,
                                       brc_error *err);

#endif
