/*
 * Running one step of a chain, on one chunk or many.
 *
 * Invariant: no step is given more room than the longest valid form of what it
 * makes, so a chunk that expands without end stops there.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../base/alloc.h"
#include "chain_steps.h"

/* ---- scratch ------------------------------------------------------------------------ */

int brc_scratch_new(brc_scratch **out, brc_error *err)
{
    *out = NULL;
    return brc_new((void **)out, sizeof(**out), err);
}

void brc_scratch_free(brc_scratch *scratch)
{
    if (scratch == NULL)
        return;
    for (size_t i = 0; i < scratch->nslots; i++) {
        const brc_codec_impl *impl = scratch->slots[i].impl;
        if (impl->scratch_free != NULL)
            impl->scratch_free(impl->ctx, scratch->slots[i].ctx);
    }
    brc_buf_dispose(&scratch->between[0]);
    brc_buf_dispose(&scratch->between[1]);
    free(scratch->slots);
    free(scratch);
}

/* One context per implementation, for all chains of this worker. */
static int scratch_context(brc_scratch *scratch, const brc_step *step, void **out, brc_error *err)
{
    const brc_codec_impl *impl = step->impl;

    *out = NULL;
    if (impl->scratch_new == NULL)
        return BRC_OK;
    for (size_t i = 0; i < scratch->nslots; i++) {
        if (scratch->slots[i].impl == impl) {
            *out = scratch->slots[i].ctx;
            return BRC_OK;
        }
    }
    BRC_TRY(brc_grow_array((void **)&scratch->slots, &scratch->slots_cap, scratch->nslots + 1,
                           sizeof(*scratch->slots), err));
    BRC_TRY(impl->scratch_new(impl->ctx, out, step->state, err));
    scratch->slots[scratch->nslots++] = (struct brc_scratch_slot){ impl, *out };
    return BRC_OK;
}

/* ---- one step ----------------------------------------------------------------------- */

int brc_step_fail(const brc_step *step, int rc, const brc_error *cause, brc_error *err)
{
    const char *name = step->entry->spec.name;
    char source[sizeof(err->source)];

    if (err == NULL)
        return rc;
    if (cause->code == rc)
        brc_error_copy(err, cause);
    else
        brc_fail(err, rc, "%s", brc_strerror(rc));
    brc_context(err, "%s", name);
    snprintf(source, sizeof(source), "codec:%.9s", name);
    brc_error_source(err, source, cause->code == rc ? cause->detail : 0);
    return rc;
}

/* The most bytes that src_len stored ones may decode to. */
static uint64_t step_most(const brc_step *step, size_t src_len)
{
    uint64_t most = step->in_len != BRC_LEN_VARIES ? step->in_len : step->in_max;

    if (step->in_least == 0)
        return most;
    uint64_t ratio = src_len > UINT64_MAX / BRC_CHAIN_VARIABLE_RATIO
                         ? UINT64_MAX
                         : (uint64_t)src_len * BRC_CHAIN_VARIABLE_RATIO;
    if (ratio < step->in_least)
        ratio = step->in_least;
    return most < ratio ? most : ratio;
}

/* A limit of 0 is none, so an empty result gets 1: what it gives is checked after. */
static size_t step_limit(const brc_step *step, size_t src_len)
{
    uint64_t len = step_most(step, src_len);

    if (len >= SIZE_MAX)
        return 0;
    return len > 0 ? (size_t)len : 1;
}

/* Sets the step's limit where it is the tighter one; 1 if it is in force. */
static int step_put_limit(const brc_step *step, int way, size_t src_len, brc_buf *dst)
{
    size_t limit = way == BRC_DECODE ? step_limit(step, src_len) : 0;

    if (limit == 0 || (dst->limit > 0 && dst->limit < limit))
        return 0;
    dst->limit = limit;
    return 1;
}

static int step_too_long(const brc_step *step, size_t src_len, brc_error *err)
{
    return brc_fail(err, BRC_ECORRUPT, "the chunk decodes to more than %llu bytes",
                    (unsigned long long)step_most(step, src_len));
}

/* What a codec says of the lengths in its specification holds for each result. */
static int step_check_len(const brc_step *step, int way, size_t src_len, size_t len, brc_error *err)
{
    uint64_t exact = way == BRC_DECODE ? step->in_len : step->out_len;
    uint64_t most = way == BRC_DECODE ? step->in_max : step->out_max;

    if (exact != BRC_LEN_VARIES && len != exact && way == BRC_DECODE)
        return brc_fail(err, BRC_ECORRUPT, "the chunk decodes to %zu bytes, not %llu", len,
                        (unsigned long long)exact);
    if (way == BRC_DECODE && len > most)
        return step_too_long(step, src_len, err);
    if (way == BRC_ENCODE && ((exact != BRC_LEN_VARIES && len != exact) || len > most))
        return brc_fail(err, BRC_EINTERNAL,
                        "%zu encoded bytes contradict the codec's specification", len);
    return BRC_OK;
}

/* A codec's result code as one of ours. */
static int step_judge(const brc_step *step, int way, int limited, int rc, size_t src_len,
                      const brc_buf *dst, brc_error *cause)
{
    if (rc > 0)
        return brc_fail(cause, BRC_EINTERNAL, "the codec gave the result %d", rc);
    if (rc == BRC_ELIMIT && way == BRC_DECODE && limited)
        return step_too_long(step, src_len, cause);
    return rc < 0 ? rc : step_check_len(step, way, src_len, dst->len, cause);
}

int brc_step_run(const brc_step *step, brc_scratch *scratch, int way, brc_span src,
                 const brc_wanted *wanted, brc_buf *dst, brc_error *err)
{
    const brc_codec_impl *impl = step->impl;
    brc_error cause = BRC_ERROR_INIT;
    size_t limit = dst->limit;
    void *ctx = NULL;

    int rc = scratch_context(scratch, step, &ctx, &cause);
    if (rc < 0)
        return brc_step_fail(step, rc, &cause, err);
    src = brc_step_source(src);
    int limited = step_put_limit(step, way, src.len, dst);
    if (way == BRC_DECODE && wanted != NULL && wanted->box != NULL)
        rc = impl->decode_box(impl->ctx, step->state, ctx, src, wanted->box, dst, &cause);
    else if (way == BRC_DECODE && wanted != NULL)
        rc = impl->decode_part(impl->ctx, step->state, ctx, src, wanted->from, wanted->to, dst,
                               &cause);
    else if (way == BRC_DECODE)
        rc = impl->decode(impl->ctx, step->state, ctx, src, dst, &cause);
    else
        rc = impl->encode(impl->ctx, step->state, ctx, src, dst, &cause);
    dst->limit = limit;
    rc = step_judge(step, way, limited, rc, src.len, dst, &cause);
    return rc < 0 ? brc_step_fail(step, rc, &cause, err) : BRC_OK;
}

/* ---- one step, many items ----------------------------------------------------------- */

static int step_loop(const brc_step *step, brc_scratch *scratch, int way, size_t n,
                     const brc_span *src, brc_buf *const *dst, size_t *failed, brc_error *err)
{
    for (size_t i = 0; i < n; i++) {
        int rc = brc_step_run(step, scratch, way, src[i], NULL, dst[i], err);
        if (rc < 0) {
            *failed = i;
            return rc;
        }
    }
    return BRC_OK;
}

/* The first item that failed, and its code; a failure that names none is the first's. */
static int batch_first_failure(size_t n, const int *status, int rc, size_t *failed)
{
    for (size_t i = 0; i < n; i++) {
        if (status[i] != BRC_OK) {
            *failed = i;
            return status[i];
        }
    }
    *failed = rc != BRC_OK ? 0 : n;
    return rc;
}

int brc_step_run_batch(const brc_step *step, brc_scratch *scratch, int way, size_t n,
                       const brc_span *src, brc_buf *const *dst, int *status, size_t *failed,
                       brc_error *err)
{
    const brc_codec_impl *impl = step->impl;
    brc_error cause = BRC_ERROR_INIT;
    int limited = 1;
    void *ctx = NULL;

    *failed = n;
    if (n == 0 || (way == BRC_DECODE ? impl->decode_batch : impl->encode_batch) == NULL)
        return step_loop(step, scratch, way, n, src, dst, failed, err);
    int rc = scratch_context(scratch, step, &ctx, &cause);
    if (rc < 0) {
        *failed = 0;
        return brc_step_fail(step, rc, &cause, err);
    }
    for (size_t i = 0; i < n; i++) {
        limited &= step_put_limit(step, way, src[i].len, dst[i]);
        status[i] = BRC_OK;
    }
    if (way == BRC_DECODE)
        rc = impl->decode_batch(impl->ctx, step->state, ctx, n, src, dst, status, &cause);
    else
        rc = impl->encode_batch(impl->ctx, step->state, ctx, n, src, dst, status, &cause);
    size_t worst = n;
    rc = batch_first_failure(n, status, rc, &worst);
    /* An item before the failed one may still have the wrong length: it comes first. */
    for (size_t i = 0; i < worst; i++) {
        int len_rc = step_check_len(step, way, src[i].len, dst[i]->len, &cause);
        if (len_rc < 0) {
            *failed = i;
            return brc_step_fail(step, len_rc, &cause, err);
        }
    }
    *failed = worst;
    if (worst == n)
        return BRC_OK;
    rc = step_judge(step, way, limited, rc, src[worst].len, dst[worst], &cause);
    return brc_step_fail(step, rc < 0 ? rc : BRC_EINTERNAL, &cause, err);
}
