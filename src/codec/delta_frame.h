/*
 * Bytes as a difference from other bytes: a frame of zstd whose window begins with the other bytes. Whoever decodes it
 * needs exactly these; a checksum in the frame finds others.
 */
#ifndef BRC_CODEC_DELTA_FRAME_H
#define BRC_CODEC_DELTA_FRAME_H

#include "chain.h"

/* The most bytes of both together. */
#define BRC_DELTA_BYTES_MOST ((uint64_t)1 << 30)

/* Appends the frame to `out`. BRC_ELIMIT: base and content have more than BRC_DELTA_BYTES_MOST bytes. */
BRC_MUST_USE int brc_delta_encode(brc_scratch *scratch, brc_span base, brc_span content, brc_buf *out, brc_error *err);
/* Appends the content, which must have `len` bytes, to `into`. BRC_ECORRUPT: the frame is damaged, or is a difference
 * from other bytes. */
BRC_MUST_USE int brc_delta_decode(brc_scratch *scratch, brc_span base, brc_span frame, size_t len, brc_buf *into,
                                  brc_error *err);

/* The contexts that a scratch keeps from one call to the next. */
typedef struct brc_delta_contexts brc_delta_contexts;
void brc_delta_contexts_free(brc_delta_contexts *contexts);

#endif
