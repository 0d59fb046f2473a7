/*
 * breccia_pipeline.h - for authors of pipelines, which run the codecs of chunks.
 *
 * A repository hands encoded or canonical chunks to its pipeline, in batches of one encoding, and
 * gets the results back. Two pipelines are built in: "batched", the default, runs batches on all
 * threads of the pool; "serial", the reference, runs one chunk at a time on the caller's thread.
 * All pipelines give the same bytes.
 *
 * The table of functions here follows the rules of breccia_codec.h: `size` comes first and fields
 * are only appended; `ctx` is the first argument; destroy(ctx) is called once.
 */
#ifndef BRECCIA_PIPELINE_H
#define BRECCIA_PIPELINE_H

#include "breccia_codec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Chunks of one encoding. The structure and its arrays belong to the caller and live as long as the call. */
typedef struct brc_batch {
    size_t size;
    const brc_chain *chain; /* brc_chain_write() tells its codecs, brc_chain_describe() the rest */
    brc_scratch *scratch;   /* of the calling thread, for brc_batch_decode() and brc_batch_encode() there; another thread
                             * needs one of its own (brc_scratch_new) */
    size_t n;               /* number of chunks, 1 to 64                          */
    const brc_span *src;    /* decode: encoded chunks, which may be hostile; encode: canonical elements. `data` is NULL
                             * for an absent chunk, which gets no result */
    brc_buf *dst;           /* empty; each takes the result of its chunk. Call brc_buf_reserve() first: a buffer may be
                             * the caller's own memory or have a limit */
    const brc_box *box;     /* decode, only with n = 1: the elements that are needed; the others may have any value.
                             * NULL: all are needed */
} brc_batch;

/* Decode or encode a batch on the calling thread, as breccia's own pipelines do. The result is the code of the first
 * chunk that fails, and *failed its index; after a failure every dst is empty. */
BRC_API BRC_MUST_USE int brc_batch_decode(const brc_batch *batch, size_t *failed, brc_error *err);
BRC_API BRC_MUST_USE int brc_batch_encode(const brc_batch *batch, size_t *failed, brc_error *err);

enum { BRC_PIPELINE_CALLER = 1 }; /* everything runs on the caller's thread, one chunk at a time */

typedef struct brc_pipeline {
    size_t size;
    const char *name;     /* "batched"; a plug-in's begins with a reversed domain name */
    uint32_t flags;       /* BRC_PIPELINE_*                                       */
    uint32_t most;        /* the most chunks that one call takes; 0: 64           */
    void *ctx;
    /* Makes the state of one handle of a repository from the configuration (NULL: there is none). Fails with
     * BRC_EINVAL for an unknown option or an invalid value. NULL: there is no state, and no option. */
    int (*open)(void *ctx, void **state, const brc_json *config, brc_error *err);
    void (*close)(void *ctx, void *state); /* NULL: nothing to release              */
    /* Like brc_batch_decode() and brc_batch_encode(). Called on several threads at once, unless the flags say
     * BRC_PIPELINE_CALLER, and for the chunks inside a chunk too. Nothing may still run when they return. The library
     * checks what comes back as it checks its own results. NULL: the library's own functions. */
    int (*decode)(void *ctx, void *state, const brc_batch *batch, size_t *failed, brc_error *err);
    int (*encode)(void *ctx, void *state, const brc_batch *batch, size_t *failed, brc_error *err);
    void (*destroy)(void *ctx);
    const char *owner;    /* who registers it, for messages; NULL: "a plug-in"     */
} brc_pipeline;

/* Registers a pipeline, as brc_registry_add_codec() registers a codec. */
BRC_API BRC_MUST_USE int brc_registry_add_pipeline(brc_registry *reg, const brc_pipeline *pipeline, brc_error *err);

#ifdef __cplusplus
}
#endif

#endif
