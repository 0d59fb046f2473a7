/*
 * From a codec list to a chain.
 *
 * Invariant: step i was opened with what step i - 1 gives, and the kinds are
 * array->array codecs, exactly one array->bytes codec, bytes->bytes codecs.
 */
#include <stdlib.h>
#include <string.h>

#include "../nd/shape.h"
#include "chain_steps.h"
#include "../nd/named.h"

/* ---- the order of kinds ------------------------------------------------------------- */

struct chain_order {
    int kind; /* of the item before; 0: there is none                            */
    const char *last, *to_bytes;
    size_t last_at, to_bytes_at;
};

static int order_fail_array(const struct chain_order *order, size_t at, const char *name,
                            brc_error *err)
{
    if (order->kind == BRC_ARRAY_TO_BYTES)
        return brc_fail(
            err, BRC_EINVAL,
            "/codecs/%zu: \"%s\" changes arrays, but \"%s\" at /codecs/%zu has turned them into "
            "bytes: put it before that one",
            at, name, order->last, order->last_at);
    return brc_fail(err, BRC_EINVAL,
                    "/codecs/%zu: \"%s\" changes arrays, but comes after \"%s\" at /codecs/%zu, "
                    "which changes bytes: "
                    "put it before \"%s\"",
                    at, name, order->last, order->last_at, order->to_bytes);
}

static int order_fail_to_bytes(const struct chain_order *order, size_t at, const char *name,
                               brc_error *err)
{
    if (order->kind == BRC_ARRAY_TO_BYTES)
        return brc_fail(
            err, BRC_EINVAL,
            "/codecs/%zu: \"%s\" is the second array->bytes codec, after \"%s\" at /codecs/%zu: "
            "a chain has exactly one",
            at, name, order->to_bytes, order->to_bytes_at);
    return brc_fail(err, BRC_EINVAL,
                    "/codecs/%zu: \"%s\" turns arrays into bytes, but \"%s\" at /codecs/%zu before "
                    "it already changes bytes: "
                    "\"%s\" at /codecs/%zu is the one array->bytes codec",
                    at, name, order->last, order->last_at, order->to_bytes, order->to_bytes_at);
}

static int order_fail_bytes(const struct chain_order *order, size_t at, const char *name,
                            brc_error *err)
{
    if (order->kind == BRC_ARRAY_TO_ARRAY)
        return brc_fail(
            err, BRC_EINVAL,
            "/codecs/%zu: \"%s\" changes bytes, but \"%s\" at /codecs/%zu gives an array: "
            "put an array->bytes codec such as \"bytes\" between them",
            at, name, order->last, order->last_at);
    return brc_fail(err, BRC_EINVAL,
                    "/codecs/%zu: \"%s\" changes bytes, but nothing has turned the array into "
                    "bytes: put an array->bytes codec such as \"bytes\" before it",
                    at, name);
}

static int chain_order_add(struct chain_order *order, size_t at, const brc_codec_spec *spec,
                           brc_error *err)
{
    int has_bytes = order->to_bytes != NULL;

    if (spec->kind == BRC_ARRAY_TO_ARRAY && has_bytes)
        return order_fail_array(order, at, spec->name, err);
    if (spec->kind == BRC_ARRAY_TO_BYTES && has_bytes)
        return order_fail_to_bytes(order, at, spec->name, err);
    if (spec->kind == BRC_BYTES_TO_BYTES && !has_bytes)
        return order_fail_bytes(order, at, spec->name, err);
    if (spec->kind == BRC_ARRAY_TO_BYTES) {
        order->to_bytes = spec->name;
        order->to_bytes_at = at;
    }
    order->kind = spec->kind;
    order->last = spec->name;
    order->last_at = at;
    return BRC_OK;
}

/* ---- one item ----------------------------------------------------------------------- */

static int chain_find_codec(const brc_codec_entry **out, const brc_json **config,
                            const brc_registry *reg, const brc_json *item, size_t at,
                            brc_error *err)
{
    brc_named named;
    int rc = brc_named_read(&named, item, err);

    if (rc < 0) {
        brc_context(err, "/codecs/%zu", at);
        return rc;
    }
    const brc_codec_entry *entry = brc_registry_codec(reg, named.name);
    if (entry == NULL && named.may_ignore)
        return brc_fail(
            err, BRC_EUNSUPPORTED,
            "/codecs/%zu: the codec \"%.80s\" is not known to this build, and chunks cannot be "
            "written without it, though readers may ignore it",
            at, named.name);
    if (entry == NULL)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "/codecs/%zu: the codec \"%.80s\" is not known to this build", at,
                        named.name);
    if (entry->impl == NULL)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "/codecs/%zu: no implementation of \"%s\" can run on this machine", at,
                        entry->spec.name);
    *out = entry;
    *config = named.config;
    return BRC_OK;
}

/* What a specification derives has to fit its kind, or the next step would misread it. */
static int step_check_out(const brc_codec_spec *spec, const brc_proto *out, brc_error *err)
{
    int is_array = out->ndim >= 0 && out->ndim <= BRC_MAX_NDIM;
    int fits = spec->kind == BRC_ARRAY_TO_ARRAY ? is_array : out->ndim == -1;

    if (!fits || out->dtype == NULL || (out->len != BRC_LEN_VARIES && out->len > out->max_len))
        return brc_fail(err, BRC_EINTERNAL, "the specification derives an impossible result");
    return BRC_OK;
}

static int step_open(brc_step *step, const brc_codec_entry *entry, const brc_json *config,
                     brc_proto *proto, brc_error *err)
{
    const brc_codec_spec *spec = &entry->spec;
    brc_proto out = *proto;
    brc_error cause = BRC_ERROR_INIT;

    out.flags = 0;
    step->entry = entry;
    step->impl = entry->impl;
    int rc = spec->open(spec->ctx, &step->state, config, proto, &out, &step->identity, &cause);
    if (rc >= 0) {
        rc = step_check_out(spec, &out, &cause);
        if (rc < 0 && spec->close != NULL)
            spec->close(spec->ctx, step->state);
    }
    if (rc < 0)
        return brc_step_fail(step, rc, &cause, err);
    step->flags = spec->flags | out.flags;
    step->in_len = proto->len;
    step->in_max = proto->max_len;
    step->out_len = out.len;
    step->out_max = out.max_len;
    *proto = out;
    return BRC_OK;
}

/* ---- the list ----------------------------------------------------------------------- */

/* Nothing but the stored bytes says how long such a chunk is, so what is too long is a
 * rule: chain.h has it. */
static int chain_variable_proto(brc_proto *out, brc_error *err)
{
    if (!brc_shape_bytes(out->ndim, out->shape, 4, &out->max_len) ||
        out->max_len > BRC_CHAIN_VARIABLE_MAX)
        return brc_fail(err, BRC_ELIMIT,
                        "a chunk of this shape has too many elements of variable length: they "
                        "and their lengths may take %u bytes; choose smaller chunks",
                        (unsigned)BRC_CHAIN_VARIABLE_MAX);
    out->max_len = BRC_CHAIN_VARIABLE_MAX;
    return BRC_OK;
}

/* Decoded bytes that no chunk of such elements is refused for: all of them the fill
 * value, say, which compresses to next to nothing. */
static uint64_t chain_variable_least(const brc_proto *proto)
{
    uint64_t n = 1, each = 8 + (uint64_t)proto->fill.len;

    for (int i = 0; i < proto->ndim; i++) /* fits: it was checked with 4 bytes each  */
        n *= proto->shape[i];
    if (n > BRC_CHAIN_VARIABLE_MAX / each)
        return BRC_CHAIN_VARIABLE_MAX;
    return n * each + BRC_CHAIN_VARIABLE_LEAST;
}

static int chain_first_proto(brc_proto *out, int ndim, const uint64_t *shape, const brc_dtype *type,
                             brc_error *err)
{
    memset(out, 0, sizeof(*out));
    out->size = sizeof(*out);
    if (ndim < 0 || ndim > BRC_MAX_NDIM)
        return brc_fail(err, BRC_EINVAL, "a chunk has 0 to %d dimensions, not %d", BRC_MAX_NDIM,
                        ndim);
    out->ndim = ndim;
    out->dtype = type;
    for (int i = 0; i < ndim; i++)
        out->shape[i] = shape[i];
    out->len = out->max_len = BRC_LEN_VARIES;
    if (type->item_size == 0)
        return chain_variable_proto(out, err);
    if (!brc_shape_bytes(ndim, shape, type->item_size, &out->len) || out->len > PTRDIFF_MAX)
        return brc_fail(err, BRC_ELIMIT, "a chunk of this shape is larger than memory can be");
    out->max_len = out->len;
    return BRC_OK;
}

static int chain_bind_steps(brc_chain *chain, const brc_registry *reg, const brc_json *codecs,
                            brc_proto *proto, brc_error *err)
{
    const brc_codec_entry *entries[BRC_CHAIN_MAX];
    const brc_json *configs[BRC_CHAIN_MAX];
    struct chain_order order = { 0, NULL, NULL, 0, 0 };
    size_t n = brc_json_count(codecs);
    uint64_t least = proto->len == BRC_LEN_VARIES ? chain_variable_least(proto) : 0;

    if (proto->ndim < 0) /* they are bytes already */
        order.to_bytes = "bytes";
    for (size_t i = 0; i < n; i++) {
        BRC_TRY(chain_find_codec(&entries[i], &configs[i], reg, brc_json_item(codecs, i), i, err));
        BRC_TRY(chain_order_add(&order, i, &entries[i]->spec, err));
    }
    if (order.to_bytes == NULL)
        return brc_fail(err, BRC_EINVAL,
                        "/codecs: the list has no array->bytes codec, such as \"bytes\"");
    for (size_t i = 0; i < n; i++) {
        int rc = step_open(&chain->steps[i], entries[i], configs[i], proto, err);
        if (rc < 0) {
            brc_context(err, "/codecs/%zu", i);
            return rc;
        }
        chain->steps[i].in_least = least;
        chain->nsteps = i + 1;
    }
    return BRC_OK;
}

/* Steps that decode a box, from the array's side on, up to one that needs all of its
 * source for it. */
static size_t chain_count_boxed(const brc_chain *chain)
{
    size_t n = 0;

    if (brc_chain_decoded_len(chain) == BRC_LEN_VARIES)
        return 0;
    for (const brc_step *step = chain->steps;; step++) {
        if (!step->identity && step->impl->decode_box == NULL)
            return n;
        n += !step->identity;
        if (step->entry->spec.kind == BRC_ARRAY_TO_BYTES || step->impl->source_box == NULL)
            return n;
    }
}

/* The codec that makes the chunk's own bytes, where it can decode some of them: what is between it
 * and the array leaves them as they are. */
static const brc_step *chain_find_parted(const brc_chain *chain)
{
    const brc_step *step = chain->nactive > 0 ? chain->active[0] : NULL;

    if (step == NULL || brc_chain_decoded_len(chain) == BRC_LEN_VARIES || chain->ndim < 0 ||
        step->entry->spec.kind != BRC_BYTES_TO_BYTES || step->impl->decode_part == NULL)
        return NULL;
    for (int i = 0; i < chain->ndim; i++)
        if (chain->shape[i] == 0)
            return NULL;
    return step;
}

static void chain_finish(brc_chain *chain)
{
    for (size_t i = 0; i < chain->nsteps; i++) {
        const brc_step *step = &chain->steps[i];
        if (!step->identity)
            chain->active[chain->nactive++] = step;
        if (step->entry->spec.kind == BRC_ARRAY_TO_BYTES)
            chain->to_bytes = step;
        if (step->flags & BRC_CODEC_LOSSY)
            chain->lossy = 1;
        if (step->flags & BRC_CODEC_NEEDS_FILL)
            chain->needs_fill = 1;
    }
    chain->nboxed = chain_count_boxed(chain);
    chain->parted = chain_find_parted(chain);
}

static int chain_open_proto(brc_chain **out, const brc_registry *reg, const brc_json *codecs,
                            brc_proto *proto, brc_span fill, brc_error *err)
{
    brc_chain *chain = NULL;
    size_t n = brc_json_count(codecs);
    int rc;

    if (n > BRC_CHAIN_MAX)
        return brc_fail(err, BRC_ELIMIT, "/codecs: the list has %zu codecs, more than %d", n,
                        BRC_CHAIN_MAX);
    BRC_GO(brc_new((void **)&chain, sizeof(*chain), err));
    BRC_GO(brc_new_array((void **)&chain->steps, n, sizeof(*chain->steps), err));
    if (fill.data != NULL) {
        BRC_GO(brc_buf_reserve(&chain->fill, fill.len + 1, err));
        BRC_GO(brc_buf_append(&chain->fill, fill.data, fill.len, err));
        proto->fill = (brc_span){ chain->fill.data, chain->fill.len };
    }
    proto->registry = chain->registry = reg;
    chain->type = proto->dtype;
    chain->ndim = proto->ndim;
    memcpy(chain->shape, proto->shape, sizeof(chain->shape));
    BRC_GO(chain_bind_steps(chain, reg, codecs, proto, err));
    chain_finish(chain);
    *out = chain;
    return BRC_OK;
done:
    brc_chain_free(chain);
    return rc;
}

int brc_chain_open(brc_chain **out, const brc_registry *reg, const brc_json *codecs, int ndim,
                   const uint64_t *shape, const brc_dtype *type, brc_span fill, brc_error *err)
{
    brc_proto proto;

    *out = NULL;
    if (brc_json_kind(codecs) != BRC_JSON_ARRAY)
        return brc_fail(err, BRC_EINVAL, "/codecs: a list of codecs is expected");
    if (brc_json_count(codecs) == 0)
        return brc_fail(
            err, BRC_EINVAL,
            "/codecs: the list is empty; it needs an array->bytes codec, such as \"bytes\"");
    BRC_TRY(chain_first_proto(&proto, ndim, shape, type, err));
    return chain_open_proto(out, reg, codecs, &proto, fill, err);
}

int brc_chain_open_bytes(brc_chain **out, const brc_registry *reg, const brc_json *codecs,
                         const brc_dtype *type, brc_error *err)
{
    brc_proto proto = { .size = sizeof(proto), .ndim = -1, .dtype = type,
                        .len = BRC_LEN_VARIES, .max_len = BRC_CHAIN_VARIABLE_MAX };

    *out = NULL;
    if (brc_json_kind(codecs) != BRC_JSON_ARRAY || brc_json_count(codecs) == 0)
        return brc_fail(err, BRC_EINVAL, "/codecs: a list of codecs is expected");
    return chain_open_proto(out, reg, codecs, &proto, (brc_span){ NULL, 0 }, err);
}

int brc_chain_open_like(brc_chain **out, const brc_chain *chain, int ndim, const uint64_t *shape,
                        brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    brc_json *codecs = NULL;
    int rc;

    *out = NULL;
    BRC_GO(brc_chain_write(chain, &text, err));
    BRC_GO(brc_json_parse(&codecs, (const char *)text.data, text.len, err));
    rc = brc_chain_open(out, chain->registry, codecs, ndim, shape, chain->type,
                        (brc_span){ chain->fill.data, chain->fill.len }, err);
done:
    brc_json_free(codecs);
    brc_buf_dispose(&text);
    return rc;
}

void brc_chain_free(brc_chain *chain)
{
    if (chain == NULL)
        return;
    /* Backwards: a step may hold the data type that the next ones were bound to. */
    for (size_t i = chain->nsteps; i > 0; i--) {
        const brc_step *step = &chain->steps[i - 1];
        if (step->entry->spec.close != NULL)
            step->entry->spec.close(step->entry->spec.ctx, step->state);
    }
    free(chain->steps);
    brc_buf_dispose(&chain->fill);
    free(chain);
}
