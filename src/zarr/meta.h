/*
 * zarr.json: the document of a group or an array, checked, and for an array what
 * it means. Members that are not known but may be ignored are kept.
 */
#ifndef BRC_ZARR_META_H
#define BRC_ZARR_META_H

#include "../base/json.h"
#include "../codec/chain.h"

typedef struct brc_meta {
    int ndim;
    uint64_t shape[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM], grid[BRC_MAX_NDIM];
    brc_dtype *type;
    brc_chain *chain;
    size_t chunk_bytes;  /* canonical                                             */
    brc_buf fill;        /* one canonical element                                 */
    int v2_keys;         /* chunk_key_encoding                                    */
    char separator;
    char *spec;          /* of the chunks' encoding: text of store.encoding       */
    char *dtype, *codecs_json; /* the members: a plain name or JSON text          */
} brc_meta;

/* Largest decoded chunk, in bytes. */
#define BRC_MAX_CHUNK_BYTES UINT64_C(0x7fffffff)

/* Checks a group's document. Errors name the member as a JSON pointer. */
BRC_MUST_USE int brc_meta_check_group(const brc_json *doc, brc_error *err);
/* Checks an array's document and works out what it means. BRC_EUNSUPPORTED where
 * its data type or a codec is not in this build. */
BRC_MUST_USE int brc_meta_open(brc_meta *out, const brc_registry *reg, const brc_json *doc, brc_error *err);
void brc_meta_dispose(brc_meta *meta);
/* BRC_GROUP or BRC_ARRAY by "node_type"; BRC_EINVAL for neither. */
BRC_MUST_USE int brc_meta_kind(const brc_json *doc, int *kind, brc_error *err);

/* A new array's document. Chunks, codecs and fill value are chosen where the
 * specification leaves them out, and written in full. */
BRC_MUST_USE int brc_meta_new_array(brc_json **out, const brc_registry *reg, const brc_array_spec *spec, brc_error *err);
BRC_MUST_USE int brc_meta_new_group(brc_json **out, const char *attrs_json, brc_error *err);
/* The document with another shape, or other codecs (in their full form). */
BRC_MUST_USE int brc_meta_set_shape(brc_json *doc, int ndim, const uint64_t *shape, brc_error *err);
BRC_MUST_USE int brc_meta_set_codecs(brc_json *doc, const brc_meta *meta, const brc_registry *reg, const char *codecs_json, brc_error *err);
/* A JSON array of numbers. */
brc_json *brc_json_new_shape(int ndim, const uint64_t *shape);

#endif
