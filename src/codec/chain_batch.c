/*
 * Running a chain on many chunks.
 *
 * Invariant: what a batch gives is what its items give one by one, and the error is
 * that of the first item that fails, whichever step it fails in. So when item f fails
 * in one step, the next steps run with the items before f: a later failure is then of
 * a smaller index and takes its place.
 */
#include <stdlib.h>

#include "../base/alloc.h"
#include "chain_steps.h"

struct chain_batch {
    size_t n;      /* items that are there                                       */
    size_t *index; /* their places in the caller's list                          */
    brc_span *src;
    brc_buf *rooms;   /* what lies between two steps ...                         */
    brc_buf **between[2], **last; /* ... and last the caller's, without the absent ones */
    size_t *limits;   /* the caller's: a step puts its own                       */
    int *status;
};

static int batch_prepare(struct chain_batch *batch, size_t n, const brc_span *src, brc_error *err)
{
    BRC_TRY(brc_new_array((void **)&batch->index, n, sizeof(*batch->index), err));
    BRC_TRY(brc_new_array((void **)&batch->src, n, sizeof(*batch->src), err));
    BRC_TRY(brc_new_array((void **)&batch->rooms, 2 * n, sizeof(*batch->rooms), err));
    BRC_TRY(brc_new_array((void **)&batch->between[0], n, sizeof(*batch->between[0]), err));
    BRC_TRY(brc_new_array((void **)&batch->between[1], n, sizeof(*batch->between[1]), err));
    BRC_TRY(brc_new_array((void **)&batch->last, n, sizeof(*batch->last), err));
    BRC_TRY(brc_new_array((void **)&batch->limits, n, sizeof(*batch->limits), err));
    BRC_TRY(brc_new_array((void **)&batch->status, n, sizeof(*batch->status), err));
    for (size_t i = 0; i < n; i++) {
        batch->between[0][i] = &batch->rooms[2 * i];
        batch->between[1][i] = &batch->rooms[2 * i + 1];
        if (src[i].data == NULL)
            continue;
        batch->index[batch->n] = i;
        batch->src[batch->n++] = src[i];
    }
    return BRC_OK;
}

static void batch_dispose(struct chain_batch *batch, size_t n)
{
    for (size_t i = 0; batch->rooms != NULL && i < 2 * n; i++)
        brc_buf_dispose(&batch->rooms[i]);
    free(batch->index);
    free(batch->src);
    free(batch->rooms);
    free(batch->between[0]);
    free(batch->between[1]);
    free(batch->last);
    free(batch->limits);
    free(batch->status);
}

/* What lies between two steps has the limit of the step before last still on it. */
static void batch_reset(brc_buf *const *out, size_t n, int is_last)
{
    for (size_t k = 0; k < n; k++) {
        out[k]->len = 0;
        if (!is_last)
            out[k]->limit = 0;
    }
}

/* Runs all steps; *failed is the place in the caller's list. */
static int batch_run_steps(struct chain_batch *batch, const brc_chain *chain, brc_scratch *scratch,
                           int way, brc_buf *dst, size_t *failed, brc_error *err)
{
    int rc = BRC_OK;
    size_t n = batch->n;

    for (size_t i = 0; i < n; i++) {
        batch->last[i] = &dst[batch->index[i]];
        batch->limits[i] = batch->last[i]->limit;
    }
    for (size_t i = 0; i < chain->nactive; i++) {
        brc_buf **out = i == chain->nactive - 1 ? batch->last : batch->between[i % 2];
        size_t at = n;
        batch_reset(out, n, out == batch->last);
        int step_rc = brc_step_run_batch(brc_chain_active(chain, way, i), scratch, way, n,
                                         batch->src, out, batch->status, &at, err);
        if (step_rc < 0) {
            rc = step_rc;
            *failed = batch->index[at];
            n = at;
        }
        for (size_t k = 0; k < n; k++)
            batch->src[k] = brc_step_source((brc_span){ out[k]->data, out[k]->len });
    }
    for (size_t i = 0; i < batch->n; i++)
        batch->last[i]->limit = batch->limits[i];
    return rc;
}

static int batch_run_staged(const brc_chain *chain, brc_scratch *scratch, int way, size_t n,
                            const brc_span *src, brc_buf *dst, size_t *failed, brc_error *err)
{
    struct chain_batch batch = { .n = 0 };

    *failed = 0;
    int rc = batch_prepare(&batch, n, src, err);
    if (rc == BRC_OK)
        rc = batch_run_steps(&batch, chain, scratch, way, dst, failed, err);
    batch_dispose(&batch, n);
    return rc;
}

static int batch_run_each(const brc_chain *chain, brc_scratch *scratch, int way, size_t n,
                          const brc_span *src, brc_buf *dst, size_t *failed, brc_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (src[i].data == NULL)
            continue;
        int rc = way == BRC_DECODE ? brc_chain_decode(chain, scratch, src[i], &dst[i], err)
                                   : brc_chain_encode(chain, scratch, src[i], &dst[i], err);
        if (rc < 0) {
            *failed = i;
            return rc;
        }
    }
    return BRC_OK;
}

static int chain_has_batch_form(const brc_chain *chain, int way)
{
    for (size_t i = 0; i < chain->nactive; i++) {
        const brc_codec_impl *impl = chain->active[i]->impl;
        if ((way == BRC_DECODE ? impl->decode_batch : impl->encode_batch) != NULL)
            return 1;
    }
    return 0;
}

/* Items before the first one that the caller handed over wrongly. */
static int batch_check(const brc_chain *chain, int way, size_t n, const brc_span *src,
                       const brc_buf *dst, size_t *failed, brc_error *err)
{
    for (size_t i = 0; i < n; i++) {
        int rc = src[i].data != NULL ? brc_chain_check(chain, way, src[i], &dst[i], err) : BRC_OK;
        if (rc < 0) {
            *failed = i;
            return rc;
        }
    }
    return BRC_OK;
}

static int chain_run_batch(const brc_chain *chain, brc_scratch *scratch, int way, size_t n,
                           const brc_span *src, brc_buf *dst, size_t *failed, brc_error *err)
{
    BRC_TRY(batch_check(chain, way, n, src, dst, failed, err));
    int rc = chain_has_batch_form(chain, way)
                 ? batch_run_staged(chain, scratch, way, n, src, dst, failed, err)
                 : batch_run_each(chain, scratch, way, n, src, dst, failed, err);
    for (size_t i = 0; rc < 0 && i < n; i++)
        dst[i].len = 0;
    return rc;
}

int brc_chain_decode_batch(const brc_chain *chain, brc_scratch *scratch, size_t n,
                           const brc_span *src, brc_buf *dst, size_t *failed, brc_error *err)
{
    return chain_run_batch(chain, scratch, BRC_DECODE, n, src, dst, failed, err);
}

int brc_chain_encode_batch(const brc_chain *chain, brc_scratch *scratch, size_t n,
                           const brc_span *src, brc_buf *dst, size_t *failed, brc_error *err)
{
    return chain_run_batch(chain, scratch, BRC_ENCODE, n, src, dst, failed, err);
}
