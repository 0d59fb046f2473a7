/* What a chain is made of, only for the files that open and run chains. */
#ifndef BRC_CODEC_CHAIN_STEPS_H
#define BRC_CODEC_CHAIN_STEPS_H

#include "chain.h"

/* One codec, bound. "in" is the side of the array, "out" that of the stored bytes. */
typedef struct brc_step {
    const brc_codec_entry *entry;
    const brc_codec_impl *impl; /* the one that was chosen when the chain was opened */
    void *state;
    int identity; /* both directions copy: the step is left out when running     */
    uint32_t flags; /* the specification's, and what the configuration adds        */
    uint64_t in_len, in_max, out_len, out_max;
    uint64_t in_least; /* decoded bytes of variable length that are always allowed  */
} brc_step;

struct brc_chain {
    size_t nsteps, nactive;
    brc_step *steps;                       /* in the list's order                 */
    const brc_step *active[BRC_CHAIN_MAX]; /* those that do something             */
    const brc_step *to_bytes;              /* the array->bytes codec              */
    int lossy, needs_fill;
    size_t nboxed; /* of active, from the array's side: run for a box of elements  */
    const brc_step *parted; /* runs for a part of the chunk's bytes; NULL: none    */
    int ndim;      /* of the array                                                */
    uint64_t shape[BRC_MAX_NDIM];
    brc_buf fill; /* the fill value that the first step was given                  */
    const brc_registry *registry; /* what it was opened with                      */
    const brc_dtype *type;
};

struct brc_scratch {
    struct brc_scratch_slot {
        const brc_codec_impl *impl;
        void *ctx;
    } * slots;
    size_t nslots, slots_cap;
    brc_buf between[2]; /* what lies between two steps, in turns                  */
};

enum { BRC_ENCODE = 0, BRC_DECODE = 1 };

/* The input of a codec: its data is not NULL, even if there are no bytes. */
static inline brc_span brc_step_source(brc_span src)
{
    return src.data != NULL ? src : (brc_span){ (const uint8_t *)"", 0 };
}

/* The step that runs i-th in this direction. */
static inline const brc_step *brc_chain_active(const brc_chain *chain, int way, size_t i)
{
    return chain->active[way == BRC_DECODE ? chain->nactive - 1 - i : i];
}

/* What is looked at when decoding: a box of elements, or bytes from `from` on. */
typedef struct brc_wanted {
    const brc_box *box; /* NULL: bytes                                          */
    uint64_t from, to;
} brc_wanted;

#endif
