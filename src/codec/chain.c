/*
 * Running a chain on one chunk.
 *
 * The last step writes into the caller's memory; between steps two buffers of the
 * scratch take turns.
 */
#include "chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/sized.h"
#include "../nd/dtype.h"
#include "../nd/shape.h"
#include "chain_steps.h"
#include "delta_frame.h"

static int run_theirs(const brc_chain *chain, brc_scratch *scratch, int way, size_t n,
                      const brc_span *src, const brc_box *box, brc_buf *dst, size_t *failed,
                      brc_error *err);

/* ==== chain ================================ */

/* Checks the arguments that the caller hands to a chain. */
static int chain_check(const brc_chain *chain, int way, brc_span src, const brc_buf *dst,
                       brc_error *err)
{
    uint64_t len = brc_chain_describe(chain)->decoded_len;

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

/* Copies the bytes of a chain without active steps. */
static int copy_unchanged(const brc_chain *chain, int way, brc_span src, brc_buf *dst,
                          brc_error *err)
{
    uint64_t len = brc_chain_describe(chain)->decoded_len;
    brc_error cause = BRC_ERROR_INIT;

    if (way == BRC_DECODE && len != BRC_LEN_VARIES && src.len != len) {
        int rc = brc_fail(&cause, BRC_ECORRUPT, "the chunk decodes to %zu bytes, not %llu", src.len,
                          (unsigned long long)len);
        return brc_step_fail(chain->to_bytes, rc, &cause, err);
    }
    return brc_buf_append(dst, src.data, src.len, err);
}

/* Computes the box that step `until` decodes for `box` of the chunk. Steps that leave the bytes as
 * they are may still give the array another shape. */
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

/* Finds the bytes of the chunk from the box's first element to its last. */
static void chain_part_of(const brc_chain *chain, const brc_box *box, brc_wanted *out)
{
    uint64_t first = 0, last = 0, all = 1;

    for (int i = 0; i < chain->ndim; i++) {
        first = first * chain->shape[i] + box->start[i];
        last = last * chain->shape[i] + box->start[i] + box->count[i] - 1;
        all *= chain->shape[i];
    }
    const uint64_t item = brc_chain_describe(chain)->decoded_len / all;
    *out = (brc_wanted){ NULL, first * item, (last + 1) * item };
}

/* Finds the part that a step decodes for a box of the chunk. Returns 0 if the step decodes all. */
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

/* Runs the chain on one chunk. box: the elements to decode; NULL: all. */
static int chain_run(const brc_chain *chain, brc_scratch *scratch, int way, brc_span src,
                     const brc_box *box, brc_buf *dst, brc_error *err)
{
    int rc = BRC_OK;
    brc_box part;
    brc_wanted wanted;

    BRC_TRY(chain_check(chain, way, src, dst, err));
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

/* Returns whether the scratch's pipeline has a function of its own for this direction. */
int brc_chain_decode(const brc_chain *chain, brc_scratch *scratch, brc_span src,
                     const brc_box *box, brc_buf *dst, brc_error *err)
{
    size_t failed;
    if (box != NULL)
        BRC_TRY(brc_sized_check(box->size, sizeof(*box), "brc_box", err));
    if (brc_scratch_is_theirs(scratch, BRC_DECODE))
        return run_theirs(chain, scratch, BRC_DECODE, 1, &src, box, dst, &failed, err);
    return chain_run(chain, scratch, BRC_DECODE, src, box, dst, err);
}

int brc_chain_encode(const brc_chain *chain, brc_scratch *scratch, brc_span src, brc_buf *dst,
                     brc_error *err)
{
    size_t failed;
    if (brc_scratch_is_theirs(scratch, BRC_ENCODE))
        return run_theirs(chain, scratch, BRC_ENCODE, 1, &src, NULL, dst, &failed, err);
    return chain_run(chain, scratch, BRC_ENCODE, src, NULL, dst, err);
}

/* ==== chain facts ================================ */

/* The properties of an open chain: lengths, flags, its codecs as JSON. */

const brc_chain_info *brc_chain_describe(const brc_chain *chain)
{
    return &chain->info;
}

int brc_chain_takes_bytes(const brc_chain *chain)
{
    return chain->ndim < 0;
}

int brc_chain_is_lossy(const brc_chain *chain)
{
    return (chain->info.flags & BRC_CODEC_LOSSY) != 0;
}

int brc_chain_needs_fill(const brc_chain *chain)
{
    return (chain->info.flags & BRC_CODEC_NEEDS_FILL) != 0;
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

/* Writes a step as JSON, without an empty configuration, except for numcodecs: zarr-python does not
 * read these codecs without the member. */
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

/* ==== chain open ================================ */

/*
 * Opens a chain from a list of codecs.
 *
 * Invariant: step i was opened with the result of step i - 1, and the kinds are
 * array->array codecs, exactly one array->bytes codec, bytes->bytes codecs.
 */

/* ---- the order of kinds ------------------------------------------------------------- */

struct chain_order {
    int kind; /* of the previous item; 0: there is none                          */
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

/* Returns why a codec that others have is not here: text that follows the codec's name. */
static const char *chain_why_unknown(const char *name)
{
    static const char pcodec[] =
        ": no C library decodes pcodec; convert the array with a tool that has it";
    static const char zfp[] = ": it was built without libzfp";
    static const struct {
        const char *name, *why;
    } absent[] = {
        { "numcodecs.pcodec", pcodec },
        { "https://codec.zarrs.dev/array_to_bytes/pcodec", pcodec },
        { "zfp", zfp },
        { "zarrs.zfp", zfp },
        { "numcodecs.zfpy", zfp },
        { "numcodecs.pickle", ": a pickle is a program, which breccia does not run" },
    };

    for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
        if (strcmp(absent[i].name, name) == 0)
            return absent[i].why;
    return "";
}

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
                        "/codecs/%zu: the codec \"%.80s\" is not known to this build%s", at,
                        named.name, chain_why_unknown(named.name));
    if (entry->impl == NULL)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "/codecs/%zu: no implementation of \"%s\" can run on this machine", at,
                        entry->spec.name);
    *out = entry;
    *config = named.config;
    return BRC_OK;
}

/* Checks that the result that a specification derives fits its kind; otherwise the next step would
 * misread the result. */
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

/* Describes a chunk of elements of variable length. Only the stored bytes tell how long it is, so
 * the limit is a rule: see chain.h. */
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

/* Returns the decoded bytes that every chunk of such elements may have: a chunk of fill values,
 * say, compresses to next to nothing. */
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

    if (proto->ndim < 0) /* the chain starts from bytes */
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

/* Counts the steps that decode a box, from the array's side on, up to one that needs its whole
 * source for this. */
static size_t chain_count_boxed(const brc_chain *chain)
{
    size_t n = 0;

    if (brc_chain_describe(chain)->decoded_len == BRC_LEN_VARIES)
        return 0;
    for (const brc_step *step = chain->steps;; step++) {
        if (!step->identity && step->impl->decode_box == NULL)
            return n;
        n += !step->identity;
        if (step->entry->spec.kind == BRC_ARRAY_TO_BYTES || step->impl->source_box == NULL)
            return n;
    }
}

/* Returns the codec that gives the chunk's own bytes, if it can decode some of them alone: the
 * steps between this codec and the array leave the bytes as they are. */
static const brc_step *chain_find_parted(const brc_chain *chain)
{
    const brc_step *step = chain->nactive > 0 ? chain->active[0] : NULL;

    if (step == NULL || chain->info.decoded_len == BRC_LEN_VARIES || chain->ndim < 0 ||
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
        chain->info.flags |= step->flags & (BRC_CODEC_LOSSY | BRC_CODEC_NEEDS_FILL);
    }
    chain->info.size = sizeof(chain->info);
    chain->info.decoded_len = chain->steps[0].in_len;
    chain->info.encoded_len = chain->steps[chain->nsteps - 1].out_len;
    chain->info.encoded_max = chain->steps[chain->nsteps - 1].out_max;
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
    BRC_GO(brc_json_parse(&codecs, (const char *)text.data, text.len, 0, err));
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

/* ==== chain step ================================ */

/*
 * Running one step of a chain, on one chunk or many.
 *
 * Invariant: no step gets more room than the longest valid form of its result, so a chunk that
 * expands without end stops there.
 */

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
    brc_delta_contexts_free(scratch->delta);
    free(scratch->slots);
    free(scratch);
}

int brc_step_context(const brc_step *step, const brc_codec_impl *impl, brc_scratch *scratch,
                     void **out, brc_error *err)
{
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

/* Returns the most bytes that src_len stored bytes may decode to. */
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

/* Returns the limit of a step's result. A limit of 0 would mean none, so an empty result gets 1;
 * the length is checked afterwards. */
static size_t step_limit(const brc_step *step, size_t src_len)
{
    uint64_t len = step_most(step, src_len);

    if (len >= SIZE_MAX)
        return 0;
    return len > 0 ? (size_t)len : 1;
}

/* Sets the step's limit if it is tighter than the buffer's. Returns 1 if the step's applies. */
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

/* Checks the length of a result against the lengths in the codec's specification. */
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

int brc_step_judge(const brc_step *step, int way, int limited, int rc, size_t src_len,
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

    int rc = brc_step_context(step, impl, scratch, &ctx, &cause);
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
    rc = brc_step_judge(step, way, limited, rc, src.len, dst, &cause);
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

/* Finds the first item that failed, and its code. A failure without a failed item counts as the
 * first item's. */
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

/* Runs items 0 to n - 1 and returns the code of the first that failed, *failed its
 * index; those before it are done. `status` has room for n. */
static int step_run_batch(const brc_step *step, brc_scratch *scratch, int way, size_t n,
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
    int rc = brc_step_context(step, impl, scratch, &ctx, &cause);
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
    rc = brc_step_judge(step, way, limited, rc, src[worst].len, dst[worst], &cause);
    return brc_step_fail(step, rc < 0 ? rc : BRC_EINTERNAL, &cause, err);
}

/* ==== chain batch ================================ */

/*
 * Running a chain on many chunks.
 *
 * Invariant: a batch gives the same results as its items one by one, and the error is
 * that of the first item that fails, whichever step it fails in. So when item f fails
 * in one step, the next steps run with the items before f: a later failure is then of
 * a smaller index and takes its place.
 */

struct chain_batch {
    size_t n;      /* items that are not absent                                  */
    size_t *index; /* their places in the caller's list                          */
    brc_span *src;
    brc_buf *rooms;   /* memory of the buffers between two steps                 */
    brc_buf **between[2], **last; /* the buffers; `last`: the caller's, without absent items */
    size_t *limits;   /* of the caller's buffers: a step sets its own meanwhile  */
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

/* Empties the buffers of a step's results. A buffer between two steps still has the limit of the
 * step before last, which is removed. */
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
        int step_rc = step_run_batch(brc_chain_active(chain, way, i), scratch, way, n,
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
        int rc = chain_run(chain, scratch, way, src[i], NULL, &dst[i], err);
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

/* Returns how many items come before the first that the caller passed wrongly. */
static int batch_check(const brc_chain *chain, int way, size_t n, const brc_span *src,
                       const brc_buf *dst, size_t *failed, brc_error *err)
{
    for (size_t i = 0; i < n; i++) {
        int rc = src[i].data != NULL ? chain_check(chain, way, src[i], &dst[i], err) : BRC_OK;
        if (rc < 0) {
            *failed = i;
            return rc;
        }
    }
    return BRC_OK;
}

static int batch_run(const brc_chain *chain, brc_scratch *scratch, int way, size_t n,
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

static int chain_run_batch(const brc_chain *chain, brc_scratch *scratch, int way, size_t n,
                           const brc_span *src, brc_buf *dst, size_t *failed, brc_error *err)
{
    return brc_scratch_is_theirs(scratch, way)
               ? run_theirs(chain, scratch, way, n, src, NULL, dst, failed, err)
               : batch_run(chain, scratch, way, n, src, dst, failed, err);
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

int brc_chain_has_batches(const brc_chain *chain, const brc_scratch *scratch, int encodes)
{
    const int way = encodes ? BRC_ENCODE : BRC_DECODE;
    return brc_scratch_is_theirs(scratch, way) ? scratch->pipeline->most != 1
                                   : chain_has_batch_form(chain, way);
}

/* ==== pipelines ================================ */

void brc_scratch_use(brc_scratch *scratch, const brc_pipeline *pipeline, void *state)
{
    scratch->pipeline = pipeline;
    scratch->pipeline_state = state;
}

/* The end of the chain whose lengths the pipeline's results must have. */
static const brc_step *last_step(const brc_chain *chain, int way)
{
    return &chain->steps[way == BRC_DECODE ? 0 : chain->nsteps - 1];
}

/* Checks what the pipeline has made of one chunk, as a step's result is checked. */
static int judge_theirs(const brc_chain *chain, int way, int limited, int rc, size_t src_len,
                        const brc_buf *dst, brc_error *err)
{
    const brc_step *step = last_step(chain, way);
    if (rc > 0)
        return brc_fail(err, BRC_EINTERNAL, "the pipeline gave the result %d", rc);
    if (rc == BRC_ELIMIT && way == BRC_DECODE && limited)
        return step_too_long(step, src_len, err);
    return rc < 0 ? rc : step_check_len(step, way, src_len, dst->len, err);
}

/* Has the pipeline run one batch, of at most BRC_BATCH_MOST chunks. */
static int call_theirs(const brc_batch *batch, int way, size_t *failed, brc_error *err)
{
    const brc_pipeline *p = batch->scratch->pipeline;
    void *state = batch->scratch->pipeline_state;
    const brc_step *step = last_step(batch->chain, way);
    size_t limit[BRC_BATCH_MOST], n = batch->n;
    int limited[BRC_BATCH_MOST], rc;
    for (size_t i = 0; i < n; i++) {
        limit[i] = batch->dst[i].limit;
        limited[i] = step_put_limit(step, way, batch->src[i].len, &batch->dst[i]);
    }
    *failed = 0;
    rc = way == BRC_DECODE ? p->decode(p->ctx, state, batch, failed, err)
                           : p->encode(p->ctx, state, batch, failed, err);
    for (size_t i = 0; i < n; i++)
        batch->dst[i].limit = limit[i];
    if (rc != BRC_OK && *failed < n)
        return judge_theirs(batch->chain, way, limited[*failed], rc, batch->src[*failed].len,
                            &batch->dst[*failed], err);
    for (size_t i = 0; rc == BRC_OK && i < n; i++) {
        *failed = i;
        if (batch->src[i].data != NULL)
            rc = judge_theirs(batch->chain, way, limited[i], rc, batch->src[i].len, &batch->dst[i],
                              err);
    }
    return rc <= 0 ? rc : judge_theirs(batch->chain, way, 0, rc, 0, NULL, err);
}

/* Has the scratch's pipeline run the chain, on as many chunks at a time as it takes. */
static int run_theirs(const brc_chain *chain, brc_scratch *scratch, int way, size_t n,
                      const brc_span *src, const brc_box *box, brc_buf *dst, size_t *failed,
                      brc_error *err)
{
    size_t most = scratch->pipeline->most;
    if (most == 0 || most > BRC_BATCH_MOST)
        most = BRC_BATCH_MOST;
    int rc = batch_check(chain, way, n, src, dst, failed, err);
    for (size_t i = 0, some; rc == BRC_OK && i < n; i += some) {
        some = n - i > most ? most : n - i;
        const brc_batch batch = {sizeof(batch), chain, scratch, some, src + i, dst + i, box};
        rc = call_theirs(&batch, way, failed, err);
        *failed += i;
    }
    for (size_t i = 0; rc < 0 && i < n; i++)
        dst[i].len = 0;
    return rc;
}

static int batch_run_own(const brc_batch *batch, int way, size_t *failed, brc_error *err)
{
    size_t ignored;
    BRC_TRY(brc_sized_check(batch->size, sizeof(*batch), "brc_batch", err));
    if (failed == NULL)
        failed = &ignored;
    *failed = 0;
    if (batch->box == NULL)
        return batch_run(batch->chain, batch->scratch, way, batch->n, batch->src, batch->dst,
                         failed, err);
    if (batch->n != 1 || way != BRC_DECODE)
        return brc_fail(err, BRC_EMISUSE,
                        "a box of elements can be decoded of one chunk at a time");
    return chain_run(batch->chain, batch->scratch, way, *batch->src, batch->box, batch->dst, err);
}

int brc_batch_decode(const brc_batch *batch, size_t *failed, brc_error *err)
{
    return batch_run_own(batch, BRC_DECODE, failed, err);
}

int brc_batch_encode(const brc_batch *batch, size_t *failed, brc_error *err)
{
    return batch_run_own(batch, BRC_ENCODE, failed, err);
}
