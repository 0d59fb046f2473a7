/*
 * Running a chain on one chunk.
 *
 * The last step writes into the caller's memory; between steps two buffers of the
 * scratch take turns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/sized.h"
#include "../base/alloc.h"
#include "chain_steps.h"

int brc_chain_check(const brc_chain *chain, int way, brc_span src, const brc_buf *dst,
                    brc_error *err)
{
    uint64_t len = brc_chain_decoded_len(chain);

    if (dst->len != 0)
        return brc_fail(err, BRC_EMISUSE, "the buffer for a chunk must be empty");
    if (len == BRC_LEN_VARIES && way == BRC_ENCODE && src.len > chain->steps[0].in_max)
        return brc_fail(err, BRC_ELIMIT,
                        "the chunk has %zu bytes, more than %llu; choose smaller chunks", src.len,
                        (unsigned long long)chain->steps[0].in_max);
    if (len == BRC_LEN_VARIES)
        return BRC_OK;
    if (way == BRC_ENCODE && src.len != len)
        return brc_fail(err, BRC_EINVAL, "the chunk has %zu bytes, not %llu", src.len,
                        (unsigned long long)len);
    if (way == BRC_DECODE &&
        (((dst->flags & BRC_BUF_FIXED) && dst->cap < len) || (dst->limit > 0 && dst->limit < len)))
        return brc_fail(err, BRC_EINVAL, "the buffer for a chunk of %llu bytes is too small",
                        (unsigned long long)len);
    return BRC_OK;
}

/* What a chain without active steps does. */
static int copy_unchanged(const brc_chain *chain, int way, brc_span src, brc_buf *dst,
                          brc_error *err)
{
    uint64_t len = brc_chain_decoded_len(chain);
    brc_error cause = BRC_ERROR_INIT;

    if (way == BRC_DECODE && len != BRC_LEN_VARIES && src.len != len) {
        int rc = brc_fail(&cause, BRC_ECORRUPT, "the chunk decodes to %zu bytes, not %llu", src.len,
                          (unsigned long long)len);
        return brc_step_fail(chain->to_bytes, rc, &cause, err);
    }
    return brc_buf_append(dst, src.data, src.len, err);
}

/* What a step decodes for `box` of the chunk. Steps that leave the bytes as they are
 * may give the array another shape all the same. */
static void chain_box_of(const brc_chain *chain, const brc_step *until, const brc_box *box,
                         brc_box *out)
{
    brc_box from;

    *out = *box;
    for (const brc_step *step = chain->steps; step != until; step++) {
        from = *out;
        step->impl->source_box(step->impl->ctx, step->state, &from, out);
    }
}

/* The bytes of the chunk from the box's first element to its last. */
static void chain_part_of(const brc_chain *chain, const brc_box *box, brc_wanted *out)
{
    uint64_t first = 0, last = 0, all = 1;

    for (int i = 0; i < chain->ndim; i++) {
        first = first * chain->shape[i] + box->start[i];
        last = last * chain->shape[i] + box->start[i] + box->count[i] - 1;
        all *= chain->shape[i];
    }
    const uint64_t item = brc_chain_decoded_len(chain) / all;
    *out = (brc_wanted){ NULL, first * item, (last + 1) * item };
}

/* What a step decodes for a box of the chunk: 0 if it is all. */
static int chain_wanted(const brc_chain *chain, const brc_step *step, size_t left,
                        const brc_box *box, brc_box *part, brc_wanted *out)
{
    if (box == NULL)
        return 0;
    if (left < chain->nboxed) {
        chain_box_of(chain, step, box, part);
        *out = (brc_wanted){ part, 0, 0 };
        return 1;
    }
    if (step != chain->parted)
        return 0;
    chain_part_of(chain, box, out);
    return 1;
}

/* box: what is looked at when decoding; NULL: all. */
static int chain_run(const brc_chain *chain, brc_scratch *scratch, int way, brc_span src,
                     const brc_box *box, brc_buf *dst, brc_error *err)
{
    int rc = BRC_OK;
    brc_box part;
    brc_wanted wanted;

    BRC_TRY(brc_chain_check(chain, way, src, dst, err));
    if (chain->nactive == 0)
        return copy_unchanged(chain, way, src, dst, err);
    for (size_t i = 0; i < chain->nactive && rc == BRC_OK; i++) {
        brc_buf *out = i == chain->nactive - 1 ? dst : &scratch->between[i % 2];
        const brc_step *step = brc_chain_active(chain, way, i);
        int in_part = chain_wanted(chain, step, chain->nactive - 1 - i, box, &part, &wanted);
        out->len = 0;
        rc = brc_step_run(step, scratch, way, src, in_part ? &wanted : NULL, out, err);
        src = (brc_span){ out->data, out->len };
    }
    if (rc < 0)
        dst->len = 0;
    return rc;
}

int brc_chain_decode(const brc_chain *chain, brc_scratch *scratch, brc_span src, brc_buf *dst,
                     brc_error *err)
{
    return chain_run(chain, scratch, BRC_DECODE, src, NULL, dst, err);
}

int brc_chain_decode_box(const brc_chain *chain, brc_scratch *scratch, brc_span src,
                         const brc_box *box, brc_buf *dst, brc_error *err)
{
    BRC_TRY(brc_sized_check(box->size, sizeof(*box), "brc_box", err));
    return chain_run(chain, scratch, BRC_DECODE, src, box, dst, err);
}

int brc_chain_encode(const brc_chain *chain, brc_scratch *scratch, brc_span src, brc_buf *dst,
                     brc_error *err)
{
    return chain_run(chain, scratch, BRC_ENCODE, src, NULL, dst, err);
}
