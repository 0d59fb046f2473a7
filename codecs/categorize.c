/*
 * "numcodecs.categorize": texts as numbers, the n-th label as n.
 *
 *     labels   ["red", "green"]: red is 1, green is 2, the empty text is 0
 *     dtype    NumPy's name of the type of texts, "|O" or "<U5": not used, the array's own
 *              type decides
 *     astype   the type of the numbers; uint8 if it is absent
 *
 * Encoding refuses a text that is not a label; numcodecs stores it as the empty text.
 */
#include "builtin.h"
#include "lib/codec_help.h"
#include "lib/numpy_type.h"

#include <stdlib.h>
#include <string.h>

#define CATEGORIZE_MAX_LABELS 4096 /* bounds the linear search for a label */

struct category {
    brc_span text; /* canonical element; points into `texts`                        */
    size_t code;
};

struct categorize_state {
    uint64_t n;
    size_t item_size;       /* bytes of a text; 0 if the length varies               */
    brc_dtype *astype;
    brc_buf texts, config;
    struct category *codes; /* by number, the empty text first                       */
    struct category *sorted;
    size_t ncodes;
    uint8_t fill[8];
};

static void categorize_close(void *ctx, void *opaque)
{
    (void)ctx;
    struct categorize_state *state = opaque;

    brc_dtype_free(state->astype);
    brc_buf_dispose(&state->texts);
    brc_buf_dispose(&state->config);
    free(state->codes);
    free(state->sorted);
    free(state);
}

/* ---- specification ------------------------------------------------------------------ */

static int category_compare(const void *a, const void *b)
{
    const struct category *x = a, *y = b;
    size_t n = x->text.len < y->text.len ? x->text.len : y->text.len;
    int order = n > 0 ? memcmp(x->text.data, y->text.data, n) : 0;

    return order != 0 ? order : (x->text.len > y->text.len) - (x->text.len < y->text.len);
}

/* Appends one text to `texts`. codes[].text.data is an offset until all texts are appended. */
static int categorize_add(struct categorize_state *state, const brc_dtype *type,
                          const brc_json *label, brc_error *err)
{
    struct category *category = &state->codes[state->ncodes];
    size_t start = state->texts.len;

    if (brc_json_kind(label) != BRC_JSON_STRING)
        return brc_fail(err, BRC_EINVAL, "\"labels\" must be a list of texts");
    int rc = type->ops->parse(type, label, &state->texts, err);
    if (rc < 0) {
        brc_context(err, "label %zu", state->ncodes);
        return rc;
    }
    category->text.len = state->texts.len - start;
    category->code = state->ncodes++;
    return BRC_OK;
}

static int categorize_read_labels(struct categorize_state *state, const brc_json *labels,
                                  const brc_dtype *type, brc_error *err)
{
    size_t n = brc_json_count(labels), at = 0;

    if (brc_json_kind(labels) != BRC_JSON_ARRAY)
        return brc_fail(err, BRC_EINVAL, "\"labels\" must be a list of texts");
    if (n > CATEGORIZE_MAX_LABELS)
        return brc_fail(err, BRC_EUNSUPPORTED, "%zu labels are more than the limit of %d", n,
                        CATEGORIZE_MAX_LABELS);
    state->codes = calloc(n + 1, sizeof(*state->codes));
    state->sorted = calloc(n + 1, sizeof(*state->sorted));
    if (state->codes == NULL || state->sorted == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    size_t empty = state->item_size > 0 ? state->item_size : 4; /* a length of 0 */
    int rc = brc_buf_reserve(&state->texts, empty, err);
    if (rc < 0)
        return rc;
    memset(state->texts.data, 0, empty);
    state->codes[0].text.len = state->texts.len = empty;
    state->ncodes = 1;
    for (size_t i = 0; i < n; i++) {
        rc = categorize_add(state, type, brc_json_item(labels, i), err);
        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; i < state->ncodes; at += state->codes[i++].text.len)
        state->codes[i].text.data = state->texts.data + at;
    memcpy(state->sorted, state->codes, state->ncodes * sizeof(*state->codes));
    qsort(state->sorted, state->ncodes, sizeof(*state->sorted), category_compare);
    return BRC_OK;
}

static int categorize_read_config(struct categorize_state *state, const brc_json *config,
                                  const brc_proto *in, brc_error *err)
{
    static const char *const members[] = { "labels", "dtype", "astype" };
    int rc = config != NULL ? brc_json_allow(config, members, 3, err) : BRC_OK;

    if (rc == BRC_OK && in->dtype->klass != BRC_CLASS_STRING)
        rc = brc_fail(err, BRC_EINVAL, "elements of %s are not text", in->dtype->name);
    if (rc == BRC_OK)
        rc = brc_codec_count(&state->n, in, err);
    if (rc == BRC_OK)
        rc = categorize_read_labels(state, brc_json_member(config, "labels"), in->dtype, err);
    if (rc == BRC_OK)
        rc = brc_numpy_type_open(&state->astype, in->registry, config, "astype", err);
    if (rc == BRC_OK && state->astype == NULL)
        rc = brc_dtype_open(&state->astype, in->registry, NULL, "uint8", err);
    if (rc < 0)
        return rc;
    if (state->astype->klass != BRC_CLASS_UINT && state->astype->klass != BRC_CLASS_INT)
        return brc_fail(err, BRC_EINVAL, "\"astype\" must be a type of integers");
    unsigned bits = state->astype->bits - (state->astype->klass == BRC_CLASS_INT);
    if (bits < 8 * sizeof(size_t) && (state->ncodes - 1) >> bits != 0)
        return brc_fail(err, BRC_EINVAL, "%zu labels are more than \"astype\" can count",
                        state->ncodes - 1);
    return brc_json_write(&state->config, config, 0, err);
}

/* ---- implementation ----------------------------------------------------------------- */

/* Finds the number of a text. Fails with BRC_EINVAL if the text is not a label. */
static int categorize_find(const struct categorize_state *state, brc_span text, size_t *code,
                           brc_error *err)
{
    struct category wanted = { text, 0 };
    const struct category *found = bsearch(&wanted, state->sorted, state->ncodes,
                                           sizeof(*state->sorted), category_compare);

    if (found == NULL)
        return brc_fail(err, BRC_EINVAL, "a text of %zu bytes is not one of the labels",
                        text.len - (state->item_size == 0 ? 4 : 0));
    *code = found->code;
    return BRC_OK;
}

static int categorize_open(void *ctx, void **out_state, const brc_json *config,
                           const brc_proto *in, brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx;
    (void)identity;
    struct categorize_state *state = calloc(1, sizeof(*state));
    size_t code = 0;

    if (state == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    state->item_size = in->dtype->item_size;
    int rc = categorize_read_config(state, config, in, err);
    if (rc == BRC_OK)
        rc = brc_codec_retype(out, state->n, state->astype, err);
    if (rc < 0) {
        categorize_close(NULL, state);
        return rc;
    }
    out->fill = (brc_span){ NULL, 0 };
    if (in->fill.data != NULL && categorize_find(state, in->fill, &code, NULL) == BRC_OK) {
        brc_codec_store(state->fill, state->astype->item_size, code);
        out->fill = (brc_span){ state->fill, state->astype->item_size };
    }
    *out_state = state;
    return BRC_OK;
}

static int categorize_write_config(void *ctx, const void *opaque, brc_buf *out, brc_error *err)
{
    (void)ctx;
    const struct categorize_state *state = opaque;

    return brc_buf_append(out, state->config.data, state->config.len, err);
}

static int categorize_encode(void *ctx, const void *opaque, void *scratch, brc_span src,
                             brc_buf *dst, brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct categorize_state *state = opaque;
    size_t size = state->astype->item_size, code = 0;
    uint32_t *offsets = NULL;
    int rc = state->item_size == 0 ? brc_codec_new_index(&offsets, state->n, src, err)
                                   : brc_codec_expect_len(src, state->n * state->item_size, err);

    if (rc == BRC_OK)
        rc = brc_buf_reserve(dst, (size_t)state->n * size, err);
    for (uint64_t i = 0; i < state->n && rc == BRC_OK; i++) {
        size_t at = offsets != NULL ? offsets[i] : (size_t)i * state->item_size;
        size_t end = offsets != NULL ? offsets[i + 1] : at + state->item_size;
        rc = categorize_find(state, (brc_span){ src.data + at, end - at }, &code, err);
        if (rc < 0) {
            brc_context(err, "element %llu", (unsigned long long)i);
            break;
        }
        brc_codec_store(dst->data + dst->len, size, code);
        dst->len += size;
    }
    free(offsets);
    return rc;
}

static int categorize_decode(void *ctx, const void *opaque, void *scratch, brc_span src,
                             brc_buf *dst, brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct categorize_state *state = opaque;
    size_t size = state->astype->item_size;
    int rc = brc_codec_expect_len(src, state->n * size, err);

    for (uint64_t i = 0; i < state->n && rc == BRC_OK; i++) {
        uint64_t code = brc_codec_load(src.data + i * size, size);
        if (code >= state->ncodes)
            return brc_fail(err, BRC_ECORRUPT, "element %llu is %llu, and there are %zu labels",
                            (unsigned long long)i, (unsigned long long)code, state->ncodes - 1);
        brc_span text = state->codes[code].text;
        rc = brc_buf_append(dst, text.data, text.len, err);
    }
    return rc;
}

int brc_codec_categorize_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "numcodecs.categorize",
        .kind = BRC_ARRAY_TO_ARRAY,
        .open = categorize_open,
        .close = categorize_close,
        .write_config = categorize_write_config,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "numcodecs.categorize",
        .name = "portable",
        .encode = categorize_encode,
        .decode = categorize_decode,
    };

    return brc_codec_add(reg, &spec, &impl, err);
}
