/* Whole documents and stored chunks in bulk: what import and export are made of. */
#ifndef BRC_ZARR_TRANSFER_H
#define BRC_ZARR_TRANSFER_H

#include "../base/json.h"

/* Appends the codecs that new arrays of this type get by the repository's setting, with a NUL behind
 * them; nothing where there are none, or they do not fit the type. `dtype`: as in brc_array_spec. */
BRC_MUST_USE int brc_session_default_codecs(brc_buf *out, brc_session *s, const char *dtype, brc_error *err);
/* The session that the array was opened from. */
brc_session *brc_array_session(const brc_array *a);

/* A group with this whole zarr.json, which is checked. Missing parents are made;
 * BRC_EEXISTS if there is a node, except that the root group, while it has no
 * children, takes the document over. */
BRC_MUST_USE int brc_group_create_doc(brc_session *s, const char *path, const brc_json *doc, brc_error *err);
/* The same for an array (the root cannot become one while it has children). */
BRC_MUST_USE int brc_array_create_doc(brc_array **out, brc_session *s, const char *path, const brc_json *doc, brc_error *err);
/* The node's zarr.json, parsed. */
BRC_MUST_USE int brc_node_doc(brc_json **out, brc_session *s, const char *path, brc_error *err);

/* Gives one stored chunk after the other: 1 with `index` and `stored` (emptied
 * before each call) filled in, 0 at the end, or a negative code. Called on the
 * caller's thread only. */
typedef struct brc_chunk_source {
    void *ctx;
    int (*next)(void *ctx, uint64_t *index, brc_buf *stored, brc_error *err);
} brc_chunk_source;
/* Takes over chunks that are encoded as the array's codecs say. Each is decoded to
 * learn its identity; the bytes are kept as they are. A later chunk replaces an
 * earlier one of the same index. One transaction. */
BRC_MUST_USE int brc_array_put_stored(brc_array *a, const brc_chunk_source *source, brc_error *err);
/* Takes over chunks that are encoded as `doc` says: the zarr.json of an array with the
 * shape and the data type of `a`, whose grid, shards and codecs may be others. `index` and
 * `stored` are those of doc's keys, shards whole; what the source does not give is fill value.
 * Nothing of `doc` is kept.
 * Where the stored chunks are cut the same, inner chunks of shards taken as chunks, each is
 * decoded, looked up and encoded by itself, in any order; a later one replaces an earlier one.
 * Elements that lie outside the array become the fill value. One transaction. */
BRC_MUST_USE int brc_array_put_recoded(brc_array *a, const brc_json *doc, const brc_chunk_source *source, brc_error *err);

/* Takes one stored chunk after the other, in the grid's order, on the caller's
 * thread; a negative result stops. */
typedef struct brc_chunk_sink {
    void *ctx;
    int (*put)(void *ctx, const uint64_t *index, brc_span stored, brc_error *err);
} brc_chunk_sink;
/* Hands out every stored chunk, encoded as the array's codecs say: the stored
 * bytes themselves where they are that already, else transcoded. */
BRC_MUST_USE int brc_array_get_stored(brc_array *a, const brc_chunk_sink *sink, brc_error *err);

/* Elements one after the other, in C order or with the first axis fastest; those of variable
 * length with their counts of bytes in front. */
typedef struct brc_element_source {
    void *ctx;
    int fortran; /* the first axis runs fastest */
    int big;     /* big-endian                  */
    /* Caller's thread: the next `len` bytes of them. */
    int (*read)(void *ctx, uint8_t *dst, size_t len, brc_error *err);
} brc_element_source;
/* Writes all elements of the selection (NULL: the whole array) as they come, within the
 * handle's budget of memory, reading while others are encoded. One transaction. */
BRC_MUST_USE int brc_array_write_stream(brc_array *a, const brc_sel *sel, const brc_element_source *source, brc_error *err);

/* The array as brc_meta_plain_doc() says: what brc_array_get_stored() hands out of it are its
 * chunks decoded, those of shards singly. To be read alone. */
BRC_MUST_USE int brc_array_open_plain(brc_array **out, brc_session *s, const char *path, brc_error *err);

/* "c/0/1", by the array's chunk key encoding. */
BRC_MUST_USE int brc_chunk_key_format(const brc_array *a, const uint64_t *index, brc_buf *out, brc_error *err);
/* 1 and the index where `key` is a chunk key of this array (right rank, no leading
 * zeros), within the grid or not (*inside); else 0. */
int brc_chunk_key_parse(const brc_array *a, const char *key, uint64_t *index, int *inside);

#endif
