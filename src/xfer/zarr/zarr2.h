/*
 * Translates Zarr v2 to Zarr v3 and back. Chunks are the same bytes in both, so only documents are
 * translated.
 *
 * Information of a .zarray that its v3 document lacks is kept in the document's member BRC_ZARR2_NOTE
 * (src/zarr/doc/meta.h):
 *
 *   {"must_understand": false,
 *    "fill_value": null,       the array has no fill value
 *    "zarray": {...}}          the whole .zarray: it has members that the format does
 *                              not know, "shuffle": -1 ...
 *
 * On the way back the .zarray counts as far as it still says what the v3 document says.
 */
#ifndef BRC_XFER_ZARR_ZARR2_H
#define BRC_XFER_ZARR_ZARR2_H

#include "../../base/json.h"
#include "../../zarr/doc/meta.h"

/* The parts of v2's name for a data type. */
typedef struct brc_zarr2_type {
    brc_buf json;  /* v3's name for the type; empty for objects, whose filter names it */
    char kind;     /* NumPy's: b i u f c M m S U V O; T: a structure; X: not a type of v3 */
    char order;    /* '<' or '>' for types wider than a byte; otherwise '|'           */
    uint64_t size; /* bytes per element; 0 for objects                                */
    int texts;     /* objects that a filter stores are taken for texts                */
} brc_zarr2_type;

/* Reads a type. Errors begin with "/dtype". Release with brc_buf_dispose(&out->json). */
BRC_MUST_USE int brc_zarr2_type_read(brc_zarr2_type *out, const brc_json *dtype, brc_error *err);
/* Reads the type in a filter's configuration, which may lack its byte order or be a name, "f4" or "float32": it is
 * little-endian then. A type given by such a name gets no json. */
BRC_MUST_USE int brc_zarr2_type_of_filter(brc_zarr2_type *out, const brc_json *dtype,
                                          brc_error *err);
/* Names a type for which v3 has no form, so that its array is kept as it is. */
BRC_MUST_USE int brc_zarr2_type_opaque(brc_zarr2_type *type, const brc_json *dtype, brc_error *err);
/* Appends v2's name for a data type of v3, with this byte order ('<' or '>') if one is needed. */
BRC_MUST_USE int brc_zarr2_type_write(brc_buf *out, const brc_json *data_type, char order,
                                      brc_error *err);

/* Appends v3's fill value. `type` must have its json. */
BRC_MUST_USE int brc_zarr2_fill_read(brc_buf *out, const brc_json *fill, const brc_zarr2_type *type,
                                     const brc_registry *reg, brc_error *err);
/* Appends v2's fill value for an array of v3: null if the array has none, unless its absent chunks (`gaps`) are not
 * zeros, because readers take null for zeros. */
BRC_MUST_USE int brc_zarr2_fill_write(brc_buf *out, const brc_json *doc, char order, int gaps,
                                      const brc_registry *reg, brc_error *err);

/* Makes a v3 document from a .zarray and its .zattrs (NULL: there are none). `separator` applies if the .zarray
 * names none. */
BRC_MUST_USE int brc_zarr2_array_read(brc_json **out, const brc_json *zarray,
                                      const brc_json *zattrs, char separator,
                                      const brc_registry *reg, brc_error *err);
/* Makes a v3 document for an import. Structures whose fields differ in byte order get little-endian fields: *source
 * is then a document that describes the chunks as they are, for brc_array_put_recoded(); otherwise NULL. An array
 * that cannot be decoded in this way is kept as it is. */
BRC_MUST_USE int brc_zarr2_array_import(brc_json **out, brc_json **source, const brc_json *zarray,
                                        const brc_json *zattrs, char separator,
                                        const brc_registry *reg, brc_error *err);
/* Makes a v3 document of texts, for an array of objects that "json2" or "msgpack2" stores: only its chunks can tell
 * whether all of them are texts. Otherwise *out is NULL. */
BRC_MUST_USE int brc_zarr2_texts_import(brc_json **out, const brc_json *zarray, const brc_json *zattrs,
                                        char separator, const brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_zarr2_group_read(brc_json **out, const brc_json *zgroup,
                                      const brc_json *zattrs, brc_error *err);
/* Makes the .zarray and .zattrs (NULL: none needed) for an array of v3; BRC_EUNSUPPORTED if v2 cannot express it.
 * `gaps`: some of its chunks are absent. */
BRC_MUST_USE int brc_zarr2_array_write(brc_json **zarray, brc_json **zattrs, const brc_json *doc,
                                       int gaps, const brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_zarr2_group_write(brc_json **zgroup, brc_json **zattrs, const brc_json *doc,
                                       brc_error *err);

#endif
