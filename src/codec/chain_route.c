/*
 * chain_route.c - decoding for memory that the processor does not reach: which steps of a chain
 * run in the host's memory, and which on the device, by what they cost (docs/BUFFERS.md).
 *
 * Invariant: a route has a step on the device only if the lengths of all results have a bound
 * that is not far above that of the chunk, because memory there cannot grow.
 */
#include "chain_steps.h"

#include <string.h>

enum { BYTE_COST = 1000, COPY_COST = 100 }; /* picoseconds for a byte, where nobody says more */

static double cost_of(size_t len, uint32_t byte_cost, uint32_t otherwise, double call_cost)
{
    return (double)len * (byte_cost != 0 ? byte_cost : otherwise) / 1000 + call_cost;
}

/* Estimates what a chunk costs of which n are decoded in one call. */
static double impl_cost(const brc_codec_impl *impl, size_t len, size_t n)
{
    return cost_of(len, impl->cost, BYTE_COST, (double)impl->call_cost / (double)n);
}

/* Returns the most bytes that the step gives when it decodes. */
static uint64_t route_most(const brc_step *step)
{
    return step->in_len != BRC_LEN_VARIES ? step->in_len : step->in_max;
}

size_t brc_route_len(const brc_chain *chain, size_t i)
{
    return (size_t)route_most(brc_chain_active(chain, BRC_DECODE, i));
}

/* Returns whether memory for every result can be had beforehand. */
static int has_bounds(const brc_chain *chain)
{
    enum { SLACK = 1 << 16 };
    if (chain->nactive == 0 || chain->active[0]->in_len >= SIZE_MAX / 2 - SLACK)
        return 0;
    for (size_t i = 1; i < chain->nactive; i++)
        if (route_most(chain->active[i]) > 2 * chain->active[0]->in_len + SLACK)
            return 0;
    return 1;
}

/* Returns whether the step may run in the host's memory, or on the device, as far as its codec
 * has a pinned implementation. */
static int pin_allows(const brc_step *step, uint32_t device, int on_device)
{
    const brc_codec_impl *pinned = step->entry->pinned;
    if (pinned == NULL)
        return 1;
    return on_device ? pinned->memory != BRC_MEMORY_HOST : pinned->memory != (int)device;
}

/* Estimates how many bytes there are before the i-th step. What is still encoded counts as long
 * as what is stored: the bound of its length says too little. */
static size_t route_length(const brc_chain *chain, size_t i, size_t stored)
{
    const brc_step *step = i > 0 ? brc_chain_active(chain, BRC_DECODE, i - 1) : NULL;
    return step != NULL && step->in_len != BRC_LEN_VARIES ? (size_t)step->in_len : stored;
}

/* Computes what it costs if the first `host` steps run in the host's memory, without the copy.
 * Returns 0 if they cannot be split there. */
static int route_cost(double *out, const brc_route *all, const brc_chain *chain, uint32_t device,
                      size_t host, size_t n, size_t stored)
{
    *out = 0;
    for (size_t i = 0; i < all->n; i++) {
        const brc_step *step = brc_chain_active(chain, BRC_DECODE, i);
        const brc_codec_impl *impl = i < host ? step->impl : all->there[i];
        if (impl == NULL || !pin_allows(step, device, i >= host))
            return 0;
        if (i > host && impl->takes_there != NULL) /* it must see the bytes in the host's memory */
            return 0;
        *out += impl_cost(impl, route_length(chain, i + 1, stored), i < host ? 1 : n);
    }
    return 1;
}

int brc_route_find(brc_route *out, const brc_chain *chain, const brc_scratch *scratch,
                   uint32_t device, size_t n, size_t stored, uint32_t cost, uint32_t call_cost)
{
    const brc_registry *reg = chain->registry;
    double best = 0;
    int found = 0;
    memset(out, 0, sizeof(*out));
    if (reg == NULL || reg->nthere == 0 || !has_bounds(chain) ||
        brc_scratch_is_theirs(scratch, BRC_DECODE))
        return 0;
    out->n = out->host = chain->nactive;
    for (size_t i = 0; i < out->n; i++)
        out->there[i] = brc_registry_impl(reg, brc_chain_active(chain, BRC_DECODE, i)->entry,
                                          (int)device);
    for (size_t host = out->n + 1; host-- > 0;) {
        double now;
        if (!route_cost(&now, out, chain, device, host, n, stored))
            continue;
        now += cost_of(route_length(chain, host, stored), cost, COPY_COST, call_cost);
        if (!found || now < best) {
            found = 1;
            best = now;
            out->host = host;
        }
    }
    for (size_t i = 0; i < out->host; i++)
        out->there[i] = NULL;
    return out->host < out->n;
}

int brc_route_begin(const brc_route *route, const brc_chain *chain, brc_scratch *scratch,
                    brc_span src, brc_span *out, brc_error *err)
{
    *out = brc_step_source(src);
    for (size_t i = 0; i < route->host; i++) {
        brc_buf *into = &scratch->between[i % 2];
        into->len = 0;
        into->limit = 0;
        BRC_TRY(brc_step_run(brc_chain_active(chain, BRC_DECODE, i), scratch, BRC_DECODE, *out,
                             NULL, into, err));
        *out = brc_step_source((brc_span){into->data, into->len});
    }
    return BRC_OK;
}

int brc_route_takes(const brc_route *route, const brc_chain *chain, brc_span *src, brc_buf *dst)
{
    const brc_codec_impl *impl = route->there[route->host];
    const brc_step *step = brc_chain_active(chain, BRC_DECODE, route->host);
    return impl->takes_there == NULL || impl->takes_there(impl->ctx, step->state, src, dst) == 1;
}

/* Judges each chunk, and returns the code of the first that failed. What the call did not judge
 * shares its result. */
static int route_judge(const brc_step *step, int rc, size_t n, const brc_span *src,
                       const brc_buf *dst, int *status, brc_error *cause)
{
    enum { NOT_JUDGED = 1 };
    int first = BRC_OK;
    for (size_t k = 0; k < n; k++) {
        brc_error own = first < 0 ? (brc_error)BRC_ERROR_INIT : *cause;
        if (status[k] == NOT_JUDGED)
            status[k] = rc;
        status[k] = brc_step_judge(step, BRC_DECODE, 1, status[k], src[k].len, &dst[k], &own);
        if (status[k] >= 0 || first < 0)
            continue;
        first = status[k];
        *cause = own;
    }
    return first;
}

int brc_route_step(const brc_route *route, const brc_chain *chain, brc_scratch *scratch, size_t i,
                   const brc_there *there, size_t n, const brc_span *src, brc_buf *dst, int *status,
                   brc_error *err)
{
    const brc_step *step = brc_chain_active(chain, BRC_DECODE, i);
    const brc_codec_impl *impl = route->there[i];
    brc_buf *intos[BRC_ROUTE_MOST];
    brc_error cause = BRC_ERROR_INIT;
    void *ctx;
    for (size_t k = 0; k < n; k++) {
        intos[k] = &dst[k];
        status[k] = 1;
    }
    int rc = brc_step_context(step, impl, scratch, &ctx, &cause);
    if (rc == BRC_OK)
        rc = impl->decode_there(impl->ctx, step->state, ctx, there, n, src, intos, status, &cause);
    rc = route_judge(step, rc, n, src, dst, status, &cause);
    return rc < 0 && rc != BRC_EUNSUPPORTED ? brc_step_fail(step, rc, &cause, err) : rc;
}
