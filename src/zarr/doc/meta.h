/*
 * Parses and checks zarr.json, the document of a group or an array, and works out the meaning of an
 * array's document. Keeps unknown members that may be ignored.
 */
#ifndef BRC_ZARR_META_H
#define BRC_ZARR_META_H

#include "../../base/json.h"
#include "../../codec/chain.h"
#include "grid.h"

/* The encoding of chunks of one shape. An array with a regular grid has one form. */
typedef struct brc_form {
    struct brc_form *next;
    uint64_t shape[BRC_MAX_NDIM];
    uint64_t elements;
    size_t bytes;      /* canonical; 0 if elements have no fixed length            */
    brc_chain *chain;  /* NULL if the array is opaque                              */
    char *spec;        /* the text in store.encoding                               */
    uint64_t digest;   /* of the encoding, or 0 if chunks are stored as they are   */
} brc_form;

/* A level of sharding_indexed around what is stored; there may be several, nested. */
typedef struct brc_shard_level {
    uint64_t shape[BRC_MAX_NDIM]; /* of a shard of this level                      */
    uint64_t grid[BRC_MAX_NDIM];  /* inner chunks along each axis                  */
    uint64_t entries;             /* inner chunks in all                           */
    brc_chain *index;             /* encodes the index                             */
    int at_start;                 /* the index is at the start                     */
} brc_shard_level;

#define BRC_MAX_SHARD_LEVELS 4

/* How an opaque array is read. */
enum {
    BRC_READABLE_IN_PART = 1, /* without codecs that may be ignored               */
    BRC_READABLE_NOW = 2      /* by all of its codecs, which were not known when its chunks came */
};

typedef struct brc_meta {
    int ndim;
    uint64_t shape[BRC_MAX_NDIM];
    brc_grid grid;       /* the stored chunks: an array's chunks, or a shard's inner chunks */
    brc_grid outer;      /* what Zarr's keys name: chunks, or shards              */
    int nlevels;         /* levels of shards; 0: none                             */
    brc_shard_level levels[BRC_MAX_SHARD_LEVELS]; /* the outermost first          */
    brc_dtype *index_type;
    brc_dtype *type;     /* NULL if the type is not known                         */
    brc_buf fill;        /* one canonical element                                 */
    int keeps_fill;      /* chunks of nothing but fill value are stored: see brc_meta_lacks_fill() */
    brc_json *codecs;    /* the list for what is stored                           */
    brc_form *forms;     /* the forms that were needed so far                     */
    int opaque;          /* chunks are kept as they came and never encoded        */
    int readable;        /* though opaque: BRC_READABLE_*; 0: not             */
    brc_form *readers;   /* if readable: the decoding forms that were needed so far */
    brc_error why;       /* the reason for being opaque                           */
    const brc_registry *registry;
    int v2_keys;         /* chunk_key_encoding                                    */
    char separator;
    char *dtype, *codecs_json; /* the members: a plain name or JSON text          */
} brc_meta;

/* A member of an array's document, {"must_understand": false, ...}, for what Zarr v2 says of the array and v3
 * cannot express (src/xfer/zarr/zarr2.h). */
#define BRC_ZARR2_NOTE "zarr2_array"
/* Returns 1 if the note has "fill_value": null: the array came without a fill value, and the document has one only
 * because v3 requires it. The content of an absent chunk was then undefined, so each chunk that was written is
 * stored, whatever its content. */
int brc_meta_lacks_fill(const brc_json *doc);

/* Puts a member into the document's note; `value` is consumed. */
BRC_MUST_USE int brc_meta_zarr2_note(brc_json *doc, const char *name, brc_json *value, brc_error *err);

/* The size of the largest decoded chunk, in bytes. */
#define BRC_MAX_CHUNK_BYTES UINT64_C(0x7fffffff)

/* Tells whether the array's map may have a chunk at the index: within the grid or, for an array with shards, within
 * a shard that meets the array. Elements beyond the grid are not part of the array. */
static inline int brc_meta_has_place(const brc_meta *meta, const uint64_t *index)
{
    for (int i = 0; i < meta->ndim && meta->nlevels > 0; i++)
        if (index[i] / (meta->outer.chunk[i] / meta->grid.chunk[i]) >= meta->outer.count[i])
            return 0;
    return meta->nlevels > 0 || brc_grid_has(&meta->grid, index);
}

/* Tells whether elements have variable length: canonical chunks are not arrays of equal items then. */
static inline int brc_meta_is_variable(const brc_meta *meta)
{
    return meta->type != NULL && meta->type->item_size == 0;
}

/* Returns the element of which an absent chunk consists; data NULL: a written chunk is never absent. */
static inline brc_span brc_meta_absent_chunk(const brc_meta *meta)
{
    brc_span fill = {meta->fill.data, meta->fill.len}, none = {NULL, 0};
    return meta->keeps_fill ? none : fill;
}

/* Checks a group's document. Errors name the member as a JSON pointer. */
BRC_MUST_USE int brc_meta_check_group(const brc_json *doc, brc_error *err);
/* Checks an array's document and works out its meaning. If this build lacks the data type or a codec, the array is
 * opaque; it is readable if the codec may be ignored. */
BRC_MUST_USE int brc_meta_open(brc_meta *out, const brc_registry *reg, const brc_json *doc, brc_error *err);
void brc_meta_dispose(brc_meta *meta);
/* Returns the form of chunks of this shape, borrowed; makes it at the first call. */
BRC_MUST_USE int brc_meta_form(brc_meta *meta, const uint64_t *shape, brc_form **out, brc_error *err);
/* Fail with BRC_EUNSUPPORTED and the reason if chunks cannot be read, or cannot be written. */
BRC_MUST_USE int brc_meta_must_decode(const brc_meta *meta, brc_error *err);
BRC_MUST_USE int brc_meta_must_encode(const brc_meta *meta, brc_error *err);
/* Returns how the chunks of an opaque but readable array are decoded from their bytes. */
BRC_MUST_USE int brc_meta_reader(brc_meta *meta, const uint64_t *shape, brc_form **out, brc_error *err);
/* Makes the array opaque: its chunks cannot be decoded, for the reason given. */
BRC_MUST_USE int brc_meta_make_opaque(brc_meta *meta, const brc_error *why, brc_error *err);
/* Makes an opaque array readable by all codecs of its document, if this build can. */
BRC_MUST_USE int brc_meta_make_readable(brc_meta *meta, brc_error *err);
/* Appends a chunk key such as "c/0/1" by the chunk key encoding, terminated by a NUL. */
BRC_MUST_USE int brc_meta_key_format(const brc_meta *meta, const uint64_t *index, brc_buf *out, brc_error *err);
/* Returns 1 and the index if `key` is a chunk key (right rank, no leading zeros), within the grid or not (*inside);
 * otherwise 0. */
int brc_meta_key_parse(const brc_meta *meta, const char *key, uint64_t *index, int *inside);
/* Returns BRC_GROUP or BRC_ARRAY by "node_type"; BRC_EINVAL for neither. */
BRC_MUST_USE int brc_meta_kind(const brc_json *doc, int *kind, brc_error *err);

/* Makes a new array's document. Chooses chunks, codecs and fill value if the specification omits them, and writes
 * them in full. */
BRC_MUST_USE int brc_meta_new_array(brc_json **out, const brc_registry *reg, const brc_array_spec *spec, brc_error *err);
/* Appends the codec list that only turns elements of this type into bytes, little-endian. */
BRC_MUST_USE int brc_meta_plain_codecs(brc_buf *out, const brc_dtype *type, brc_error *err);
/* Appends the codec list, in short form, for a new array of this type whose specification names none. */
BRC_MUST_USE int brc_meta_default_codecs(brc_buf *out, const brc_dtype *type, brc_error *err);
BRC_MUST_USE int brc_meta_new_group(brc_json **out, const char *attrs_json, brc_error *err);
/* Returns whether a codec of the list, or one in its shards, compresses. Replaces *level by the codec's level if that
 * is one of deflate's. */
int brc_meta_compression(const brc_json *codecs, int64_t *level);
enum {
    BRC_PLAIN_DECODED = 1,
    BRC_PLAIN_DEFLATED /* numbers whose array is compressed are shuffled and deflated, as HDF5 does it */
};
/* Makes the document of an array's decoded chunks: the stored chunks, also inner ones of shards, with the plain
 * codecs. BRC_EUNSUPPORTED if they cannot be decoded. `how`: BRC_PLAIN_*. */
BRC_MUST_USE int brc_meta_plain_doc(brc_json **out, const brc_registry *reg, const brc_json *doc, int how, brc_error *err);
/* Sets a regular grid of such chunks in the document. */
BRC_MUST_USE int brc_meta_set_chunks(brc_json *doc, int ndim, const uint64_t *chunk, brc_error *err);
/* Set another shape, or other codecs (in full form), in the document. The second refuses a change of the stored
 * chunks' shape unless `rechunk`. */
BRC_MUST_USE int brc_meta_set_shape(brc_json *doc, int ndim, const uint64_t *shape, brc_error *err);
BRC_MUST_USE int brc_meta_set_codecs(brc_json *doc, const brc_meta *meta, const char *codecs_json, int rechunk, brc_error *err);

#endif
