/* What an open chain says of itself: lengths, flags, its codecs as JSON. */
#include <string.h>

#include "chain_steps.h"

uint64_t brc_chain_decoded_len(const brc_chain *chain)
{
    return chain->steps[0].in_len;
}

uint64_t brc_chain_encoded_len(const brc_chain *chain)
{
    return chain->steps[chain->nsteps - 1].out_len;
}

uint64_t brc_chain_encoded_max(const brc_chain *chain)
{
    return chain->steps[chain->nsteps - 1].out_max;
}

uint32_t brc_chain_flags(const brc_chain *chain)
{
    return (chain->lossy ? BRC_CODEC_LOSSY : 0u) | (chain->needs_fill ? BRC_CODEC_NEEDS_FILL : 0u);
}

int brc_chain_takes_bytes(const brc_chain *chain)
{
    return chain->ndim < 0;
}

int brc_chain_is_lossy(const brc_chain *chain)
{
    return chain->lossy;
}

int brc_chain_needs_fill(const brc_chain *chain)
{
    return chain->needs_fill;
}

int brc_chain_has_boxes(const brc_chain *chain, int ndim, const uint64_t *shape)
{
    return (chain->nboxed > 0 || chain->parted != NULL) && ndim == chain->ndim &&
           memcmp(shape, chain->shape, (size_t)ndim * sizeof(*shape)) == 0;
}

int brc_chain_is_identity(const brc_chain *chain)
{
    return chain->nactive == 0;
}

/* Without an empty configuration, except for numcodecs: zarr-python does not read those
 * without the member. */
static int chain_write_step(const brc_step *step, brc_buf *out, brc_error *err)
{
    static const char member[] = ",\"configuration\":";
    const brc_codec_spec *spec = &step->entry->spec;
    const size_t numcodecs = strlen("numcodecs.");

    BRC_TRY(brc_buf_text(out, "{\"name\":", err));
    BRC_TRY(brc_json_quote(out, spec->name, strlen(spec->name), err));
    size_t before = out->len;
    BRC_TRY(brc_buf_text(out, member, err));
    size_t start = out->len;
    if (spec->write_config != NULL)
        BRC_TRY(spec->write_config(spec->ctx, step->state, out, err));
    if (out->len == start)
        BRC_TRY(brc_buf_text(out, "{}", err));
    if (out->len == start + 2 && strncmp(spec->name, "numcodecs.", numcodecs) != 0)
        out->len = before;
    return brc_buf_byte(out, '}', err);
}

int brc_chain_write(const brc_chain *chain, brc_buf *out, brc_error *err)
{
    for (size_t i = 0; i < chain->nsteps; i++) {
        BRC_TRY(brc_buf_byte(out, i == 0 ? '[' : ',', err));
        BRC_TRY(chain_write_step(&chain->steps[i], out, err));
    }
    return brc_buf_byte(out, ']', err);
}
