/*
 * A chain: the codecs of one encoding, each bound to what the one before it
 * gives. Array->array codecs, exactly one array->bytes, bytes->bytes codecs.
 * A chain is immutable and shared by all threads; scratch belongs to one worker.
 */
#ifndef BRC_CODEC_CHAIN_H
#define BRC_CODEC_CHAIN_H

#include "registry.h"

#define BRC_CHAIN_MAX 16 /* codecs in one chain */

typedef struct brc_chain brc_chain;
typedef struct brc_scratch brc_scratch; /* contexts and buffers of one worker, for any chain */

/* Binds a Zarr v3 codec list to chunks of this shape and type. The error says
 * which item ("/codecs/1") and why: BRC_EUNSUPPORTED for a name that is not
 * known or cannot run here, BRC_EINVAL for the rest. `type` must outlive it. */
BRC_MUST_USE int brc_chain_open(brc_chain **out, const brc_registry *reg, const brc_json *codecs, int ndim,
                                const uint64_t *shape, const brc_dtype *type, brc_error *err);
void brc_chain_free(brc_chain *chain);

uint64_t brc_chain_decoded_len(const brc_chain *chain); /* BRC_LEN_VARIES: variable */
uint64_t brc_chain_encoded_max(const brc_chain *chain); /* no encoder gives more    */
int brc_chain_is_lossy(const brc_chain *chain);
int brc_chain_is_identity(const brc_chain *chain); /* stored bytes are the canonical bytes */
/* Appends the list in its full form: configurations complete, names expanded,
 * nothing that a default says left out. */
BRC_MUST_USE int brc_chain_write(const brc_chain *chain, brc_buf *out, brc_error *err);

BRC_MUST_USE int brc_scratch_new(brc_scratch **out, brc_error *err);
void brc_scratch_free(brc_scratch *scratch);

/* dst is empty. Decoding gives exactly decoded_len bytes or fails with
 * BRC_ECORRUPT; dst may be fixed memory of that length, and the last codec then
 * writes straight into it. Array elements are canonical: C order, little-endian. */
BRC_MUST_USE int brc_chain_decode(const brc_chain *chain, brc_scratch *scratch, brc_span src, brc_buf *dst, brc_error *err);
BRC_MUST_USE int brc_chain_encode(const brc_chain *chain, brc_scratch *scratch, brc_span src, brc_buf *dst, brc_error *err);
/* n at once: codecs with batch forms get them whole, for the others it loops. An
 * item whose data is NULL is absent: no codec sees it and its dst stays empty. The
 * result is the code of the first item that failed, *failed its index; every dst
 * is then empty. */
BRC_MUST_USE int brc_chain_decode_batch(const brc_chain *chain, brc_scratch *scratch, size_t n, const brc_span *src,
                                        brc_buf *dst, size_t *failed, brc_error *err);
BRC_MUST_USE int brc_chain_encode_batch(const brc_chain *chain, brc_scratch *scratch, size_t n, const brc_span *src,
                                        brc_buf *dst, size_t *failed, brc_error *err);

#endif
