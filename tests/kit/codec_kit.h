/*
 * The rules that every codec must satisfy, as one function that can be called on a plug-in's
 * codec as well as on the built-in ones:
 *
 *  - what is encoded decodes to the same bytes, for every data type and many shapes,
 *    rank 0 and empty ones too, into memory of exactly the right length; of a lossy
 *    chain, what was decoded once decodes to the same bytes when it is encoded again
 *    (not with KIT_DRIFTS);
 *  - no encoding is longer than the chain says;
 *  - the chain's own full form opens again and reads the same bytes;
 *  - a box of a chunk decodes to the same elements as the whole chunk does;
 *  - cut, flipped and random input gives an error or the right length, and touches
 *    nothing outside of its memory (run it under a sanitizer or valgrind);
 *  - two threads may use one chain at once;
 *  - where memory runs out, at whatever allocation, that is the error, and nothing is
 *    lost (with fail_after);
 *  - another implementation reads what this one writes, and the reverse (with other).
 */
#ifndef CODEC_KIT_H
#define CODEC_KIT_H

#include "../../src/breccia_codec.h"

enum {
    KIT_TAME = 1,   /* only float32 and float64, numbers of moderate size, and string      */
    KIT_DRIFTS = 2, /* what was decoded and is encoded again may lose a little more        */
    KIT_HALF = 4    /* of uint32 and uint64, only the lower half                           */
};

typedef struct codec_kit {
    const brc_registry *reg; /* with the codec in it                              */
    const char *codecs;      /* a codec list, as zarr.json has it                 */
    int ndim;                /* of the shapes; -1: 0 to 4                         */
    int rounds;              /* shapes a data type; 0: 4                          */
    uint64_t seed;           /* every run with it is the same                     */
    /* Makes the n-th allocation of this thread from now fail (0: the next), or none
     * (-1). 1 if one has failed since the last call. NULL: not tested          */
    int (*fail_after)(long n);
    const brc_registry *other; /* with another implementation; NULL: none         */
    int tame; /* KIT_*                                                            */
} codec_kit;

/* 0 if all holds; 1 with a sentence in `why` that has the seed in it. A data type
 * that the chain refuses is skipped; at least one must be taken. */
int codec_kit_run(const codec_kit *kit, char *why, size_t why_size);

/* The i-th configuration of a data type that the kit knows, as zarr.json has it, or NULL:
 * types that need one that it does not know are not tried. */
const char *codec_kit_configured(const char *type, size_t i);

/* The generator that the kit uses, for tests that want more of the same. */
uint64_t codec_kit_random(uint64_t *state);

#endif
