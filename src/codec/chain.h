/*
 * A chain: the codecs of one encoding, each bound to the result of the previous codec:
 * array->array codecs, exactly one array->bytes codec, bytes->bytes codecs.
 * A chain is immutable and shared by all threads; scratch belongs to one worker.
 * breccia_codec.h declares how to open, run and write a chain, for codecs that contain others.
 */
#ifndef BRC_CODEC_CHAIN_H
#define BRC_CODEC_CHAIN_H

#include "registry.h"

#define BRC_CHAIN_MAX 16 /* codecs in one chain */

/* Chunks of elements of variable length have no length by which a bomb could be recognized:
 * a step decodes them to at most this many bytes, and to at most RATIO times the bytes that it
 * reads. LEAST bytes, and the bytes of a chunk of fill values, are always allowed. */
#define BRC_CHAIN_VARIABLE_MAX ((uint64_t)1 << 30)
#define BRC_CHAIN_VARIABLE_RATIO 1000
#define BRC_CHAIN_VARIABLE_LEAST ((uint64_t)64 << 20)

/* Opens a list of bytes->bytes codecs, for bytes of any length. `type` is uint8, has no further
 * meaning, and must outlive the chain. */
BRC_MUST_USE int brc_chain_open_bytes(brc_chain **out, const brc_registry *reg, const brc_json *codecs,
                                      const brc_dtype *type, brc_error *err);
int brc_chain_takes_bytes(const brc_chain *chain); /* 1 if brc_chain_open_bytes() opened it */

int brc_chain_is_lossy(const brc_chain *chain);
int brc_chain_is_identity(const brc_chain *chain); /* stored bytes are the canonical bytes */
/* Returns whether decoding needs the fill value, which is then a part of the encoding. */
int brc_chain_needs_fill(const brc_chain *chain);

/* Returns 1 if decoding a box of a chunk of this shape saves work; 0 if the chain is for
 * another shape, or decodes the whole chunk anyway. */
int brc_chain_has_boxes(const brc_chain *chain, int ndim, const uint64_t *shape);

/* Decode or encode n chunks at once: a codec with a batch form gets all of them, other codecs one
 * by one. An item whose data is NULL is absent: codecs do not see it, and its dst stays empty. The
 * result is the code of the first item that failed, *failed its index; on failure every
 * dst is empty. */
BRC_MUST_USE int brc_chain_decode_batch(const brc_chain *chain, brc_scratch *scratch, size_t n, const brc_span *src,
                                        brc_buf *dst, size_t *failed, brc_error *err);
BRC_MUST_USE int brc_chain_encode_batch(const brc_chain *chain, brc_scratch *scratch, size_t n, const brc_span *src,
                                        brc_buf *dst, size_t *failed, brc_error *err);
/* Returns whether such a call is worth more than as many calls for one chunk: a codec has a batch form, or the
 * pipeline takes many chunks. */
int brc_chain_has_batches(const brc_chain *chain, const brc_scratch *scratch, int encodes);

/* ---- decoding for a device: chain_route.c -------------------------------- */

/* The most chunks that go to a device together. */
#define BRC_ROUTE_MOST 64
/* The way of a chunk from its stored bytes to a device. The first `host` of `n` steps run in the host's memory, then
 * the result is copied, and the others run there. */
typedef struct brc_route {
    size_t n, host;
    const brc_codec_impl *there[BRC_CHAIN_MAX]; /* of step i; NULL before `host` */
} brc_route;

/* Finds the way that costs least for `n` chunks together, of equal ones the one with most steps in the host's memory.
 * `stored` is the length of their stored bytes, on an average; `cost` and `call_cost` are those of a copy to the device, as in
 * brc_buffer_prototype. Returns 1 if steps run on the device, else 0. */
int brc_route_find(brc_route *out, const brc_chain *chain, const brc_scratch *scratch, uint32_t device, size_t n,
                   size_t stored, uint32_t cost, uint32_t call_cost);
/* Returns how many bytes the i-th step gives at most. */
size_t brc_route_len(const brc_chain *chain, size_t i);
/* Runs the steps of the host. *out are the bytes to copy: `src` itself if no step runs, else memory of the scratch. */
BRC_MUST_USE int brc_route_begin(const brc_route *route, const brc_chain *chain, brc_scratch *scratch, brc_span src,
                                 brc_span *out, brc_error *err);
/* Shows the first step on the device the bytes to copy: see brc_codec_impl.takes_there. Returns 0 if the chunk has to be
 * decoded in the host's memory. */
int brc_route_takes(const brc_route *route, const brc_chain *chain, brc_span *src, brc_buf *dst);
/* Runs the i-th step of n chunks on the device, from src[k] into dst[k], memory of dst[k].limit bytes there, and sets
 * the code of each. BRC_EUNSUPPORTED: the chunk has to be decoded in the host's memory. Returns the code of the first
 * chunk that failed, to which the error belongs. */
BRC_MUST_USE int brc_route_step(const brc_route *route, const brc_chain *chain, brc_scratch *scratch, size_t i,
                                const brc_there *there, size_t n, const brc_span *src, brc_buf *dst, int *status,
                                brc_error *err);

struct brc_pipeline; /* breccia_pipeline.h */
/* Lets the pipeline, with its state, run the chains of this scratch. Both must outlive the scratch. */
void brc_scratch_use(brc_scratch *scratch, const struct brc_pipeline *pipeline, void *state);

#endif
