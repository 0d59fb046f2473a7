/*
 * "breccia.reversed_bytes": the elements in C order, packed, with the bytes of some of their
 * parts reversed. This codec describes structures whose fields differ in byte order, which
 * "bytes" cannot.
 *
 *   {"runs": [[OFFSET, SIZE, COUNT], ...]}   COUNT adjacent parts of SIZE bytes each, from
 *                                            OFFSET of an element on; runs are in order
 *
 * Documents of other formats are read as if they had this codec. No export writes the codec,
 * because an import encodes such arrays again.
 */
#include "builtin.h"
#include "lib/codec_help.h"

#include <stdlib.h>
#include <string.h>

#define RUNS_MOST 65536

struct reversed_run {
    size_t offset, size, count;
};

struct reversed_state {
    uint64_t len;
    const brc_dtype *type; /* belongs to the chain, which outlives this state */
    size_t n;
    struct reversed_run runs[];
};

/* ---- specification ------------------------------------------------------------------ */

/* Reads one run. *end is the end of the run before, and the end of this run afterwards. */
static int reversed_read_run(struct reversed_run *run, const brc_json *item, uint64_t *end,
                             uint64_t item_size, brc_error *err)
{
    uint64_t offset, size, count;

    if (brc_json_count(item) != 3 || !brc_json_uint(brc_json_item(item, 0), item_size, &offset) ||
        !brc_json_uint(brc_json_item(item, 1), item_size, &size) ||
        !brc_json_uint(brc_json_item(item, 2), item_size, &count) || size < 2 || count == 0 ||
        offset < *end || count > (item_size - offset) / size)
        return brc_fail(err, BRC_EINVAL,
                        "\"runs\" must be a list of [offset, size, count], in order and within an "
                        "element of %llu bytes",
                        (unsigned long long)item_size);
    *end = offset + size * count;
    *run = (struct reversed_run){ (size_t)offset, (size_t)size, (size_t)count };
    return BRC_OK;
}

static int reversed_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                         brc_proto *out, int *identity, brc_error *err)
{
    static const char *const members[] = { "runs" };
    const brc_json *runs = brc_json_member(config, "runs");
    const size_t n = brc_json_count(runs);
    uint64_t end = 0;
    (void)ctx;
    int rc = config != NULL ? brc_json_allow(config, members, 1, err) : BRC_OK;

    if (rc < 0)
        return rc;
    if (in->dtype->item_size == 0 || in->dtype->klass == BRC_CLASS_OPTIONAL)
        return brc_fail(err, BRC_EINVAL, "elements of %s have no fixed length, or may be missing",
                        in->dtype->name);
    if (brc_json_kind(runs) != BRC_JSON_ARRAY || n > RUNS_MOST)
        return brc_fail(err, BRC_EINVAL, "\"runs\" must be a list of at most %d runs", RUNS_MOST);
    struct reversed_state *state = malloc(sizeof(*state) + n * sizeof(state->runs[0]));
    if (state == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    state->len = in->len;
    state->type = in->dtype;
    state->n = 0;
    for (const brc_json *v = brc_json_first(runs); v != NULL && rc == BRC_OK; v = brc_json_next(v))
        rc = reversed_read_run(&state->runs[state->n++], v, &end, in->dtype->item_size, err);
    if (rc < 0) {
        free(state);
        return rc;
    }
    out->ndim = -1;
    *identity = n == 0 && !brc_dtype_normalize(in->dtype, NULL, 0);
    *out_state = state;
    return BRC_OK;
}

static int reversed_write_config(void *ctx, const void *opaque, brc_buf *out, brc_error *err)
{
    const struct reversed_state *state = opaque;
    (void)ctx;
    int rc = brc_buf_printf(out, err, "{\"runs\":[");

    for (size_t i = 0; i < state->n && rc == BRC_OK; i++)
        rc = brc_buf_printf(out, err, "%s[%zu,%zu,%zu]", i > 0 ? "," : "", state->runs[i].offset,
                            state->runs[i].size, state->runs[i].count);
    return rc < 0 ? rc : brc_buf_printf(out, err, "]}");
}

/* ---- implementation ----------------------------------------------------------------- */

static void reversed_part(uint8_t *part, size_t size)
{
    for (size_t low = 0, high = size - 1; low < high; low++, high--) {
        uint8_t byte = part[low];
        part[low] = part[high];
        part[high] = byte;
    }
}

/* Encodes or decodes: reversing the bytes is its own inverse. */
static int reversed_convert(const struct reversed_state *state, brc_span src, brc_buf *dst,
                            brc_error *err)
{
    const size_t item = state->type->item_size;
    int rc = brc_codec_expect_len(src, state->len, err);

    if (rc == BRC_OK)
        rc = brc_buf_append(dst, src.data, src.len, err);
    if (rc < 0 || src.len == 0)
        return rc;
    uint8_t *const end = dst->data + dst->len;
    for (uint8_t *element = end - src.len; element < end; element += item)
        for (size_t i = 0; i < state->n; i++)
            for (size_t k = 0; k < state->runs[i].count; k++)
                reversed_part(element + state->runs[i].offset + k * state->runs[i].size,
                              state->runs[i].size);
    return BRC_OK;
}

static int reversed_encode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                           brc_error *err)
{
    (void)ctx;
    (void)scratch;
    return reversed_convert(state, src, dst, err);
}

static int reversed_decode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                           brc_error *err)
{
    const struct reversed_state *state = opaque;
    (void)ctx;
    (void)scratch;
    int rc = reversed_convert(state, src, dst, err);

    if (rc == BRC_OK && src.len > 0 && brc_dtype_normalize(state->type, NULL, 0))
        brc_dtype_normalize(state->type, dst->data + dst->len - src.len,
                            src.len / state->type->item_size);
    return rc;
}

int brc_codec_reversed_bytes_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "breccia.reversed_bytes",
        .kind = BRC_ARRAY_TO_BYTES,
        .open = reversed_open,
        .close = brc_codec_state_free,
        .write_config = reversed_write_config,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "breccia.reversed_bytes",
        .name = "portable",
        .encode = reversed_encode,
        .decode = reversed_decode,
    };

    return brc_codec_add(reg, &spec, &impl, err);
}
