/* Functions for import and export: whole documents, and stored chunks in bulk. */
#ifndef BRC_ZARR_TRANSFER_H
#define BRC_ZARR_TRANSFER_H

#include "../base/json.h"
#include "../nd/shape.h"

/* Appends the codecs that the repository's setting gives to new arrays of this type, terminated by a NUL; appends
 * nothing if there is no setting or the codecs do not fit the type. `dtype`: as in brc_array_spec. */
BRC_MUST_USE int brc_session_default_codecs(brc_buf *out, brc_session *s, const char *dtype, brc_error *err);
/* Returns the session that the array was opened from. */
brc_session *brc_array_session(const brc_array *a);

/* Creates a group with this whole zarr.json, which is checked. Makes missing parents. BRC_EEXISTS if the node
 * exists, except that the root group takes the document over while it has no children. */
BRC_MUST_USE int brc_group_create_doc(brc_session *s, const char *path, const brc_json *doc, brc_error *err);
/* Creates an array in the same way (the root cannot become an array while it has children). */
BRC_MUST_USE int brc_array_create_doc(brc_array **out, brc_session *s, const char *path, const brc_json *doc, brc_error *err);
/* Returns the node's zarr.json, parsed. */
BRC_MUST_USE int brc_node_doc(brc_json **out, brc_session *s, const char *path, brc_error *err);

/* Where a source's chunk lies: in this place of the backend "external" (backends/external.h). `place` is empty for a
 * chunk that lies in no place and is stored. */
typedef struct brc_chunk_place {
    brc_buf place;
    uint64_t offset;
} brc_chunk_place;

/* Supplies stored chunks one by one. next() returns 1 with `index` and `stored` (emptied before each call) filled
 * in, 0 at the end, or a negative code. It is called on the caller's thread only. */
typedef struct brc_chunk_source {
    void *ctx;
    int (*next)(void *ctx, uint64_t *index, brc_buf *stored, brc_error *err);
    /* NULL: chunks are stored. Otherwise they stay where they lie: next() sets it for each chunk (`place` is emptied
     * before). Chunks whose bytes do not say their whole content are stored all the same. */
    brc_chunk_place *at;
    /* NULL: next() reads every chunk. Otherwise next() may only name a chunk that brc_chunk_may_wait(), which it says in
     * *later, and leave in `stored` what load() needs to find the bytes. Then load() puts these there instead, on any
     * thread. */
    int (*load)(void *ctx, const uint64_t *index, brc_buf *stored, brc_error *err);
    int *later;
} brc_chunk_source;
/* Returns whether a chunk may be read when its turn comes: not if it is a shard, nor if its `bytes` are many more than
 * those that it decodes to, because memory is planned by these. `meta` describes the chunks that come. */
struct brc_meta;
int brc_chunk_may_wait(const struct brc_meta *meta, const uint64_t *index, uint64_t bytes);
/* Takes over chunks that are encoded with the array's codecs. Decodes each chunk to learn its identity and keeps
 * the bytes as they are. A later chunk replaces an earlier one of the same index. One transaction. */
BRC_MUST_USE int brc_array_put_stored(brc_array *a, const brc_chunk_source *source, brc_error *err);
/*
 * Takes over chunks that are encoded as `doc` says: the zarr.json of an array with the shape and the data type of
 * `a`, whose grid, shards and codecs may differ. `index` and `stored` are those of doc's keys, shards whole;
 * elements that the source does not supply are fill value. Nothing of `doc` is kept.
 *
 * If the stored chunks are cut the same, with inner chunks of shards taken as chunks, each chunk is decoded, looked
 * up and encoded by itself, in any order; a later one replaces an earlier one. Elements outside the array become
 * the fill value. One transaction.
 */
BRC_MUST_USE int brc_array_put_recoded(brc_array *a, const brc_json *doc, const brc_chunk_source *source, brc_error *err);

/* Receives stored chunks; a negative result stops. */
typedef struct brc_chunk_sink {
    void *ctx;
    int (*put)(void *ctx, const uint64_t *index, brc_span stored, brc_error *err);
    /* 0: put() gets one chunk after the other, in the grid's order, on the caller's thread. 1: it is called on any thread,
     * for several chunks at once and in any order. */
    int any_thread;
} brc_chunk_sink;
/* Passes every stored chunk to the sink, encoded with the array's codecs: the stored bytes themselves if they are
 * encoded in that way, otherwise transcoded. */
BRC_MUST_USE int brc_array_get_stored(brc_array *a, const brc_chunk_sink *sink, brc_error *err);

/* A stream of elements, in C order or with the first axis fastest; elements of variable length each follow their
 * length in bytes. */
typedef struct brc_element_source {
    void *ctx;
    int fortran; /* the first axis runs fastest */
    int big;     /* big-endian                  */
    /* Reads the next `len` bytes of the elements. Called on the caller's thread. */
    int (*read)(void *ctx, uint8_t *dst, size_t len, brc_error *err);
} brc_element_source;
/* Writes all elements of the selection (NULL: the whole array) as they arrive, within the handle's budget of
 * memory; reads some while others are encoded. One transaction. */
BRC_MUST_USE int brc_array_write_stream(brc_array *a, const brc_sel *sel, const brc_element_source *source, brc_error *err);

/* Opens the array as brc_meta_plain_doc() describes it: brc_array_get_stored() hands out its chunks in that form, those
 * of shards one by one. For reading only. */
BRC_MUST_USE int brc_array_open_plain(brc_array **out, brc_session *s, const char *path, int how, brc_error *err);

/* Appends a chunk's key, such as "c/0/1", by the array's chunk key encoding. */
BRC_MUST_USE int brc_chunk_key_format(const brc_array *a, const uint64_t *index, brc_buf *out, brc_error *err);
/* Returns 1 and the index if `key` is a chunk key of this array (right rank, no leading zeros), within the grid or
 * not (*inside); otherwise 0. */
int brc_chunk_key_parse(const brc_array *a, const char *key, uint64_t *index, int *inside);

/* ---- element runs -------------------------------- */

/* The elements of a selection in C order, as many at a time as fit into memory. */

typedef struct brc_element_runs {
    brc_array *a;
    brc_cut cut;
    size_t item;
    uint8_t *data;    /* the elements of a run           */
    brc_buf elements; /* the same, of variable length    */
} brc_element_runs;

/* Starts. A `sel` of NULL is the whole array. The elements are those of the array as it is now,
 * whatever others change meanwhile. brc_element_runs_end() must be called, even after a failure. */
BRC_MUST_USE int brc_element_runs_start(brc_element_runs *runs, brc_array *a, const brc_sel *sel, brc_error *err);
/* Returns 1 with the next elements, in native byte order and valid until the next call, or 0 at the
 * end. No lock is held between two calls. */
BRC_MUST_USE int brc_element_runs_next(brc_element_runs *runs, brc_span *out, brc_error *err);
void brc_element_runs_end(brc_element_runs *runs);

/* Receives elements of a selection, packed and little-endian: a box that begins at `at` in the selection. Called on any
 * thread, for several boxes at once and in any order. */
typedef struct brc_box_sink {
    void *ctx;
    int (*put)(void *ctx, const uint64_t *at, const uint64_t *count, const uint8_t *data, brc_error *err);
} brc_box_sink;
/* Passes all elements to the sink, in boxes of whole chunks. Returns 1; or 0, and nothing was passed: there are no boxes
 * whose rows are long enough to be written one by one. Before brc_element_runs_next(). */
BRC_MUST_USE int brc_element_runs_boxes(brc_element_runs *runs, const brc_box_sink *sink, brc_error *err);

#endif
