/*
 * A chain: the codecs of one encoding, each bound to what the one before it
 * gives. Array->array codecs, exactly one array->bytes, bytes->bytes codecs.
 * A chain is immutable and shared by all threads; scratch belongs to one worker.
 * Opening, running and writing one is in breccia_codec.h, for codecs that hold others.
 */
#ifndef BRC_CODEC_CHAIN_H
#define BRC_CODEC_CHAIN_H

#include "registry.h"

#define BRC_CHAIN_MAX 16 /* codecs in one chain */

/* Chunks of elements of variable length have no length by which a bomb could be recognized:
 * a step decodes them to at most this many bytes, and to at most RATIO times what it reads.
 * LEAST bytes, and what the fill value alone takes, are always allowed. */
#define BRC_CHAIN_VARIABLE_MAX ((uint64_t)1 << 30)
#define BRC_CHAIN_VARIABLE_RATIO 1000
#define BRC_CHAIN_VARIABLE_LEAST ((uint64_t)64 << 20)

/* A list of bytes->bytes codecs, for bytes of any length. `type` must outlive the chain and says
 * nothing: uint8. */
BRC_MUST_USE int brc_chain_open_bytes(brc_chain **out, const brc_registry *reg, const brc_json *codecs,
                                      const brc_dtype *type, brc_error *err);
int brc_chain_takes_bytes(const brc_chain *chain); /* 1 if it was opened so */

int brc_chain_is_lossy(const brc_chain *chain);
int brc_chain_is_identity(const brc_chain *chain); /* stored bytes are the canonical bytes */
/* Its decoding needs the fill value, which then belongs to the encoding. */
int brc_chain_needs_fill(const brc_chain *chain);

/* 1 if decoding a box saves work, in chunks of this shape; 0 if the chain is of
 * another shape, or decodes all anyway. */
int brc_chain_has_boxes(const brc_chain *chain, int ndim, const uint64_t *shape);

/* n at once: codecs with batch forms get them whole, for the others it loops. An
 * item whose data is NULL is absent: no codec sees it and its dst stays empty. The
 * result is the code of the first item that failed, *failed its index; every dst
 * is then empty. */
BRC_MUST_USE int brc_chain_decode_batch(const brc_chain *chain, brc_scratch *scratch, size_t n, const brc_span *src,
                                        brc_buf *dst, size_t *failed, brc_error *err);
BRC_MUST_USE int brc_chain_encode_batch(const brc_chain *chain, brc_scratch *scratch, size_t n, const brc_span *src,
                                        brc_buf *dst, size_t *failed, brc_error *err);

#endif
