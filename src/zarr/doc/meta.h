/*
 * zarr.json: the document of a group or an array, checked, and for an array what
 * it means. Members that are not known but may be ignored are kept.
 */
#ifndef BRC_ZARR_META_H
#define BRC_ZARR_META_H

#include "../../base/json.h"
#include "../../codec/chain.h"
#include "grid.h"

/* How chunks of one shape are encoded. An array with a regular grid has one form. */
typedef struct brc_form {
    struct brc_form *next;
    uint64_t shape[BRC_MAX_NDIM];
    uint64_t elements;
    size_t bytes;      /* canonical; 0 if elements have no fixed length            */
    brc_chain *chain;  /* NULL if the array is opaque                              */
    char *spec;        /* text of store.encoding                                   */
    uint64_t digest;   /* of its encoding: 0 if that is 0                          */
} brc_form;

/* sharding_indexed around what is stored: one level, or several nested. */
typedef struct brc_shard_level {
    uint64_t shape[BRC_MAX_NDIM]; /* of a shard of this level                      */
    uint64_t grid[BRC_MAX_NDIM];  /* what it holds along each axis                 */
    uint64_t entries;             /* in all                                        */
    brc_chain *index;             /* of its index                                  */
    int at_start;                 /* where the index is                            */
} brc_shard_level;

#define BRC_MAX_SHARD_LEVELS 4

typedef struct brc_meta {
    int ndim;
    uint64_t shape[BRC_MAX_NDIM];
    brc_grid grid;       /* of what is stored: chunks, or a shard's inner chunks  */
    brc_grid outer;      /* of what Zarr's keys name: chunks, or shards           */
    int nlevels;         /* of shards; 0: none                                    */
    brc_shard_level levels[BRC_MAX_SHARD_LEVELS]; /* the outermost first          */
    brc_dtype *index_type;
    brc_dtype *type;     /* NULL if it is not known                               */
    brc_buf fill;        /* one canonical element                                 */
    int keeps_fill;      /* chunks of nothing but that are stored: see brc_meta_lacks_fill() */
    brc_json *codecs;    /* the list for what is stored                           */
    brc_form *forms;     /* those that were needed so far                         */
    int opaque;          /* chunks are kept as they came, never encoded           */
    int readable;        /* though it is opaque: without codecs that may be ignored */
    brc_form *readers;   /* then: forms that decode, those that were needed so far  */
    brc_error why;       /* the reason why it is opaque                           */
    const brc_registry *registry;
    int v2_keys;         /* chunk_key_encoding                                    */
    char separator;
    char *dtype, *codecs_json; /* the members: a plain name or JSON text          */
} brc_meta;

/* A member of an array's document, {"must_understand": false, ...}: what Zarr v2 says of the
 * array and v3 cannot (src/xfer/zarr/zarr2.h). */
#define BRC_ZARR2_NOTE "zarr2_array"
/* 1 if the note has "fill_value": null: the array came without a fill value, and the
 * document has one only because v3 asks for it. Nobody said then what an absent chunk
 * holds, so each chunk that was written is stored, whatever is in it. */
int brc_meta_lacks_fill(const brc_json *doc);

/* Puts a member into the document's note; `value` is consumed. */
BRC_MUST_USE int brc_meta_zarr2_note(brc_json *doc, const char *name, brc_json *value, brc_error *err);

/* Largest decoded chunk, in bytes. */
#define BRC_MAX_CHUNK_BYTES UINT64_C(0x7fffffff)

/* Whether the array's map may have a chunk there: within its grid or, of an array with shards, within a
 * shard that meets the array. What lies beyond the grid is not part of the array. */
static inline int brc_meta_has_place(const brc_meta *meta, const uint64_t *index)
{
    for (int i = 0; i < meta->ndim && meta->nlevels > 0; i++)
        if (index[i] / (meta->outer.chunk[i] / meta->grid.chunk[i]) >= meta->outer.count[i])
            return 0;
    return meta->nlevels > 0 || brc_grid_has(&meta->grid, index);
}

/* Elements of variable length: canonical chunks are not arrays of equal items. */
static inline int brc_meta_is_variable(const brc_meta *meta)
{
    return meta->type != NULL && meta->type->item_size == 0;
}

/* The element that an absent chunk consists of; data NULL: no chunk that is written is
 * absent. */
static inline brc_span brc_meta_absent_chunk(const brc_meta *meta)
{
    brc_span fill = {meta->fill.data, meta->fill.len}, none = {NULL, 0};
    return meta->keeps_fill ? none : fill;
}

/* Checks a group's document. Errors name the member as a JSON pointer. */
BRC_MUST_USE int brc_meta_check_group(const brc_json *doc, brc_error *err);
/* Checks an array's document and works out what it means. Where its data type or a
 * codec is not in this build, the array is opaque; readable, where the codec may be ignored. */
BRC_MUST_USE int brc_meta_open(brc_meta *out, const brc_registry *reg, const brc_json *doc, brc_error *err);
void brc_meta_dispose(brc_meta *meta);
/* The form of chunks of this shape, borrowed; it is made where it is new. */
BRC_MUST_USE int brc_meta_form(brc_meta *meta, const uint64_t *shape, brc_form **out, brc_error *err);
/* BRC_EUNSUPPORTED and the reason where chunks cannot be read, or cannot be written. */
BRC_MUST_USE int brc_meta_must_decode(const brc_meta *meta, brc_error *err);
BRC_MUST_USE int brc_meta_must_encode(const brc_meta *meta, brc_error *err);
/* Of an opaque array that is readable: how its bytes, as they came, are decoded. */
BRC_MUST_USE int brc_meta_reader(brc_meta *meta, const uint64_t *shape, brc_form **out, brc_error *err);
/* Makes an array of it whose chunks cannot be decoded, for the reason given. */
BRC_MUST_USE int brc_meta_make_opaque(brc_meta *meta, const brc_error *why, brc_error *err);
/* "c/0/1", by the chunk key encoding; terminated. */
BRC_MUST_USE int brc_meta_key_format(const brc_meta *meta, const uint64_t *index, brc_buf *out, brc_error *err);
/* 1 and the index where `key` is a chunk key (right rank, no leading zeros), within the
 * grid or not (*inside); else 0. */
int brc_meta_key_parse(const brc_meta *meta, const char *key, uint64_t *index, int *inside);
/* BRC_GROUP or BRC_ARRAY by "node_type"; BRC_EINVAL for neither. */
BRC_MUST_USE int brc_meta_kind(const brc_json *doc, int *kind, brc_error *err);

/* A new array's document. Chunks, codecs and fill value are chosen where the
 * specification leaves them out, and written in full. */
BRC_MUST_USE int brc_meta_new_array(brc_json **out, const brc_registry *reg, const brc_array_spec *spec, brc_error *err);
/* Appends the codec list that makes bytes of elements of this type, little-endian, and does
 * nothing else. */
BRC_MUST_USE int brc_meta_plain_codecs(brc_buf *out, const brc_dtype *type, brc_error *err);
/* Appends the codec list, in short, that a new array of this type gets where none is asked
 * for. */
BRC_MUST_USE int brc_meta_default_codecs(brc_buf *out, const brc_dtype *type, brc_error *err);
BRC_MUST_USE int brc_meta_new_group(brc_json **out, const char *attrs_json, brc_error *err);
/* An array's document as its decoded chunks have it: the chunks that are stored, inner ones
 * of shards too, with the plain codecs. BRC_EUNSUPPORTED if they cannot be decoded. */
BRC_MUST_USE int brc_meta_plain_doc(brc_json **out, const brc_registry *reg, const brc_json *doc, brc_error *err);
/* The document with a regular grid of such chunks. */
BRC_MUST_USE int brc_meta_set_chunks(brc_json *doc, int ndim, const uint64_t *chunk, brc_error *err);
/* The document with another shape, or other codecs (in their full form). A change of
 * the stored chunks' shape is refused unless `rechunk`. */
BRC_MUST_USE int brc_meta_set_shape(brc_json *doc, int ndim, const uint64_t *shape, brc_error *err);
BRC_MUST_USE int brc_meta_set_codecs(brc_json *doc, const brc_meta *meta, const char *codecs_json, int rechunk, brc_error *err);

#endif
