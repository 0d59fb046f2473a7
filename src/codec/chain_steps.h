/* The parts of a chain, only for the files that open and run chains. */
#ifndef BRC_CODEC_CHAIN_STEPS_H
#define BRC_CODEC_CHAIN_STEPS_H

#include "../breccia_pipeline.h"
#include "chain.h"

/* A codec, bound to its place. "in" is the side of the array, "out" the side of the stored bytes. */
typedef struct brc_step {
    const brc_codec_entry *entry;
    const brc_codec_impl *impl; /* the implementation, chosen when the chain was opened */
    void *state;
    int identity; /* both directions copy: the chain runs without the step       */
    uint32_t flags; /* of the specification, and those that the configuration adds */
    uint64_t in_len, in_max, out_len, out_max;
    uint64_t in_least; /* decoded bytes of variable length that are always allowed  */
} brc_step;

struct brc_chain {
    size_t nsteps, nactive;
    brc_step *steps;                       /* in the list's order                 */
    const brc_step *active[BRC_CHAIN_MAX]; /* the steps that are not an identity  */
    const brc_step *to_bytes;              /* the array->bytes codec              */
    brc_chain_info info;
    size_t nboxed; /* active steps, from the array's side on, that can decode a box */
    const brc_step *parted; /* can decode a part of the chunk's bytes; NULL: none  */
    int ndim;      /* of the array                                                */
    uint64_t shape[BRC_MAX_NDIM];
    brc_buf fill; /* the fill value that the first step was given                  */
    const brc_registry *registry; /* with which the chain was opened              */
    const brc_dtype *type;
};

struct brc_scratch {
    struct brc_scratch_slot {
        const brc_codec_impl *impl;
        void *ctx;
    } * slots;
    size_t nslots, slots_cap;
    brc_buf between[2]; /* the data between two steps, in turns                   */
    struct brc_delta_contexts *delta; /* delta_frame.c; NULL: not used yet               */
    const brc_pipeline *pipeline; /* that runs the chains; NULL: chain.c does            */
    void *pipeline_state;
};

enum { BRC_ENCODE = 0, BRC_DECODE = 1 };
enum { BRC_BATCH_MOST = 64 }; /* chunks that a pipeline gets in one call            */

/* Returns the input for a codec, whose data is not NULL even if there are no bytes. */
static inline brc_span brc_step_source(brc_span src)
{
    return src.data != NULL ? src : (brc_span){ (const uint8_t *)"", 0 };
}

/* Returns the step that runs i-th in this direction. */
static inline const brc_step *brc_chain_active(const brc_chain *chain, int way, size_t i)
{
    return chain->active[way == BRC_DECODE ? chain->nactive - 1 - i : i];
}

/* The part of a chunk to decode: a box of elements, or the bytes [from, to). */
typedef struct brc_wanted {
    const brc_box *box; /* NULL: bytes                                          */
    uint64_t from, to;
} brc_wanted;

/* Finds an implementation's context, which all chains of this worker share. */
BRC_MUST_USE int brc_step_context(const brc_step *step, const brc_codec_impl *impl, brc_scratch *scratch, void **out,
                                  brc_error *err);
/* Runs one step. wanted: the part to decode; NULL: all. */
BRC_MUST_USE int brc_step_run(const brc_step *step, brc_scratch *scratch, int way, brc_span src, const brc_wanted *wanted,
                              brc_buf *dst, brc_error *err);
/* Translates a codec's result code into one of the library's. `limited`: the step's own limit was that of dst. */
BRC_MUST_USE int brc_step_judge(const brc_step *step, int way, int limited, int rc, size_t src_len, const brc_buf *dst,
                                brc_error *cause);
/* Hands a codec's error on, with the codec's name before the message and as the source. */
BRC_MUST_USE int brc_step_fail(const brc_step *step, int rc, const brc_error *cause, brc_error *err);
/* Returns whether the scratch's pipeline runs the chains, and not chain.c. */
static inline int brc_scratch_is_theirs(const brc_scratch *scratch, int way)
{
    const brc_pipeline *p = scratch->pipeline;
    return p != NULL && (way == BRC_DECODE ? p->decode : p->encode) != NULL;
}

#endif
