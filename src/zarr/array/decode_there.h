/*
 * Chunks that are decoded on a device, many in one call: the first steps of their codecs run in the host's memory, the
 * results go there in one copy, and the other steps run there (src/codec/chain_route.c).
 */
#ifndef BRC_ZARR_DECODE_THERE_H
#define BRC_ZARR_DECODE_THERE_H

#include "device.h"

typedef struct brc_there_memory {
    const brc_device *device;
    brc_staging *staging; /* of the host                                        */
    brc_staging *rooms;   /* of the device                                      */
} brc_there_memory;

typedef struct brc_there_chunk {
    brc_span stored; /* in the host's memory                                    */
    uint8_t *dst;    /* an address of the device                                */
    size_t len;      /* decoded                                                 */
    int rc;          /* set. BRC_EUNSUPPORTED: the chunk has to be decoded in the host's memory */
} brc_there_chunk;

/* Decodes n chunks of one chain, at most BRC_ROUTE_MOST, as far as that costs less than the host. Each has a code of its own;
 * if n is 1, a failure also fills in the error. */
void brc_there_decode(const brc_there_memory *memory, const brc_chain *chain, brc_scratch *scratch, size_t n,
                      brc_there_chunk *chunks, brc_error *err);

#endif
