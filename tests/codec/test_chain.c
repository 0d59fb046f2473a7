/* Chains: their forms, what is threaded through them, batches, the full form. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/codec/chain.h"
#include "../kit/codec_kit.h"
#include "../kit/suite.h"

TEST_SUITE(chain);

static brc_registry *chain_reg;
static brc_scratch *chain_scratch;
static brc_dtype *chain_type;
static brc_chain *chain_now;
static brc_error chain_err;

static void chain_close(void)
{
    brc_chain_free(chain_now);
    brc_dtype_free(chain_type);
    chain_now = NULL;
    chain_type = NULL;
}

static int chain_try(const char *list, const char *dtype, int ndim, const uint64_t *shape)
{
    brc_json *json = NULL, *name = brc_json_new_string(dtype);

    chain_close();
    ck_assert_int_eq(brc_dtype_open(&chain_type, chain_reg, name, NULL, &chain_err), BRC_OK);
    ck_assert_int_eq(brc_json_parse(&json, list, strlen(list), 0, &chain_err), BRC_OK);
    int rc = brc_chain_open(&chain_now, chain_reg, json, ndim, shape, chain_type,
                            (brc_span){ NULL, 0 },
                            &chain_err);
    ck_assert((rc == BRC_OK) == (chain_now != NULL));
    brc_json_free(json);
    brc_json_free(name);
    return rc;
}

static void chain_open_ok(const char *list, const char *dtype, int ndim, const uint64_t *shape)
{
    int rc = chain_try(list, dtype, ndim, shape);

    ck_assert_msg(rc == BRC_OK, "%s: %s", list, chain_err.message);
}

/* ---- a codec with a batch form, and a fake that counts ------------------------------ */

struct count_calls {
    int one, batch, items;
    int fail_at_byte; /* an item that begins with it is refused; -1: none         */
    int refuse_all;
    const void *scratch; /* the last one                                          */
    int scratches;
};
static struct count_calls chain_calls;

static int count_open(void *ctx, void **state, const brc_json *config, const brc_proto *in,
                      brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx;
    (void)config;
    (void)identity;
    (void)err;
    *state = NULL;
    if (in->len != BRC_LEN_VARIES)
        out->len = in->len + 1;
    out->max_len = in->max_len + 1;
    return BRC_OK;
}

static int count_scratch_new(void *ctx, void **scratch, const void *state, brc_error *err)
{
    struct count_calls *calls = ctx;

    (void)state;
    (void)err;
    calls->scratches++;
    *scratch = malloc(1);
    return BRC_OK;
}

static void count_scratch_free(void *ctx, void *scratch)
{
    ((struct count_calls *)ctx)->scratches--;
    free(scratch);
}

/* Puts a '!' before the bytes. */
static int count_put(struct count_calls *calls, brc_span src, brc_buf *dst, brc_error *err)
{
    if (src.len > 0 && src.data[0] == calls->fail_at_byte)
        return brc_fail(err, BRC_EINVAL, "an item begins with %d", src.data[0]);
    int rc = brc_buf_append(dst, "!", 1, err);
    return rc < 0 ? rc : brc_buf_append(dst, src.data, src.len, err);
}

static int count_take(struct count_calls *calls, brc_span src, brc_buf *dst, brc_error *err)
{
    if (src.len < 1 || src.data[0] != '!')
        return brc_fail(err, BRC_ECORRUPT, "an item lacks its mark");
    if (src.len > 1 && src.data[1] == calls->fail_at_byte)
        return brc_fail(err, BRC_ECORRUPT, "an item holds %d", src.data[1]);
    return brc_buf_append(dst, src.data + 1, src.len - 1, err);
}

static int count_encode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                        brc_error *err)
{
    struct count_calls *calls = ctx;

    (void)state;
    calls->one++;
    calls->scratch = scratch;
    return count_put(calls, src, dst, err);
}

static int count_decode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                        brc_error *err)
{
    struct count_calls *calls = ctx;

    (void)state;
    calls->one++;
    calls->scratch = scratch;
    return count_take(calls, src, dst, err);
}

static int count_all(struct count_calls *calls,
                     int (*one)(struct count_calls *, brc_span, brc_buf *, brc_error *), size_t n,
                     const brc_span *src, brc_buf *const *dst, int *status, brc_error *err)
{
    int first = BRC_OK;

    calls->batch++;
    calls->items += (int)n;
    if (calls->refuse_all)
        return brc_fail(err, BRC_EIO, "the device went away");
    for (size_t i = 0; i < n; i++) {
        status[i] = one(calls, src[i], dst[i], first == BRC_OK ? err : NULL);
        if (first == BRC_OK)
            first = status[i];
    }
    return first;
}

static int count_encode_batch(void *ctx, const void *state, void *scratch, size_t n,
                              const brc_span *src, brc_buf *const *dst, int *status, brc_error *err)
{
    (void)state;
    (void)scratch;
    return count_all(ctx, count_put, n, src, dst, status, err);
}

static int count_decode_batch(void *ctx, const void *state, void *scratch, size_t n,
                              const brc_span *src, brc_buf *const *dst, int *status, brc_error *err)
{
    (void)state;
    (void)scratch;
    return count_all(ctx, count_take, n, src, dst, status, err);
}

static void chain_add_counting(const char *name, int with_batch)
{
    brc_codec_spec spec = {
        .size = sizeof(spec), .name = name, .kind = BRC_BYTES_TO_BYTES, .open = count_open
    };
    brc_codec_impl impl = { .size = sizeof(impl),
                            .spec = name,
                            .name = "counting",
                            .ctx = &chain_calls,
                            .scratch_new = count_scratch_new,
                            .scratch_free = count_scratch_free,
                            .encode = count_encode,
                            .decode = count_decode };

    if (with_batch) {
        impl.encode_batch = count_encode_batch;
        impl.decode_batch = count_decode_batch;
    }
    ck_assert_int_eq(brc_registry_add_codec(chain_reg, &spec, &chain_err), BRC_OK);
    ck_assert_int_eq(brc_registry_add_impl(chain_reg, &impl, &chain_err), BRC_OK);
}

static void chain_setup(void)
{
    memset(&chain_calls, 0, sizeof(chain_calls));
    chain_calls.fail_at_byte = -1;
    ck_assert_int_eq(brc_registry_new(&chain_reg, &chain_err), BRC_OK);
    ck_assert_int_eq(brc_scratch_new(&chain_scratch, &chain_err), BRC_OK);
    chain_add_counting("org.example.one", 0);
    chain_add_counting("org.example.batch", 1);
}

static void chain_teardown(void)
{
    chain_close();
    brc_scratch_free(chain_scratch);
    ck_assert_int_eq(chain_calls.scratches, 0);
    brc_registry_free(chain_reg);
}

/* ---- forms -------------------------------------------------------------------------- */

#define T_10 "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}"
#define B_LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"

CASE("forms", .setup = chain_setup, .teardown = chain_teardown, .timeout = UNTIMED);

TEST(seed_P1_each_wrong_form_has_its_own_sentence)
{
    static const struct {
        const char *list;
        int code;
        const char *says;
    } wrong[] = {
        { "{}", BRC_EINVAL, "/codecs: a list of codecs is expected" },
        { "[]", BRC_EINVAL, "/codecs: the list is empty" },
        { "[" T_10 "]", BRC_EINVAL, "/codecs: the list has no array->bytes codec" },
        { "[" B_LITTLE "," T_10 "]", BRC_EINVAL,
          "/codecs/1: \"transpose\" changes arrays, but \"bytes\" at /codecs/0 has turned them" },
        { "[" B_LITTLE ",\"crc32c\"," T_10 "]", BRC_EINVAL,
          "/codecs/2: \"transpose\" changes arrays, but comes after \"crc32c\" at /codecs/1" },
        { "[" T_10 "," B_LITTLE "," B_LITTLE "]", BRC_EINVAL,
          "/codecs/2: \"bytes\" is the second array->bytes codec, after \"bytes\" at /codecs/1" },
        { "[" B_LITTLE ",\"crc32c\"," B_LITTLE "]", BRC_EINVAL,
          "/codecs/2: \"bytes\" turns arrays into bytes, but \"crc32c\" at /codecs/1" },
        { "[\"zstd\"," B_LITTLE "]", BRC_EINVAL,
          "/codecs/0: \"zstd\" changes bytes, but nothing has turned the array into bytes" },
        { "[" T_10 ",\"zstd\"," B_LITTLE "]", BRC_EINVAL,
          "/codecs/1: \"zstd\" changes bytes, but \"transpose\" at /codecs/0 gives an array" },
        { "[" B_LITTLE ",\"zsdt\"]", BRC_EUNSUPPORTED,
          "/codecs/1: the codec \"zsdt\" is not known" },
        { "[" B_LITTLE ",{\"name\":\"zsdt\",\"must_understand\":false}]", BRC_EUNSUPPORTED,
          "readers may ignore it" },
        { "[" B_LITTLE ",\"crc32c\",{\"name\":\"zstd\",\"configuration\":{\"level\":99}}]",
          BRC_EINVAL, "/codecs/2: zstd: \"level\" must be" },
    };
    uint64_t shape[2] = { 3, 4 };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        int rc = chain_try(wrong[i].list, "int16", 2, shape);
        ck_assert_msg(rc == wrong[i].code, "%s: %d", wrong[i].list, rc);
        ck_assert_msg(strncmp(chain_err.message, wrong[i].says, strlen(wrong[i].says)) == 0 ||
                          strstr(chain_err.message, "readers may ignore it") != NULL,
                      "%s: \"%s\"", wrong[i].list, chain_err.message);
    }
}

TEST(seed_P1_a_chain_has_a_longest_form)
{
    char list[400];
    uint64_t n = 4;

    for (int more = 0; more < 2; more++) {
        int at = snprintf(list, sizeof(list), "[\"bytes\"");
        for (int i = 1; i < BRC_CHAIN_MAX + more; i++)
            at += snprintf(list + at, sizeof(list) - (size_t)at, ",\"crc32c\"");
        snprintf(list + at, sizeof(list) - (size_t)at, "]");
        ck_assert_int_eq(chain_try(list, "uint8", 1, &n), more ? BRC_ELIMIT : BRC_OK);
        if (!more)
            ck_assert_uint_eq(brc_chain_describe(chain_now)->encoded_max,
                              4 + 4 * (BRC_CHAIN_MAX - 1));
    }
}

TEST(seed_D3_codecs_have_three_name_forms)
{
    static const char *const lists[] = {
        "[\"bytes\",\"crc32c\"]",
        "[{\"name\":\"bytes\"},{\"name\":\"crc32c\",\"must_understand\":true}]",
        ("[{\"name\":\"bytes\",\"configuration\":{}},"
         "{\"configuration\":{},\"name\":\"crc32c\",\"must_understand\":false}]"),
        "[{\"name\":\"endian\",\"configuration\":{\"endian\":\"big\"}},\"crc32c\"]",
    };
    uint64_t n = 5;

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        brc_buf out = BRC_BUF_INIT;
        chain_open_ok(lists[i], "bool", 1, &n);
        ck_assert_int_eq(brc_chain_write(chain_now, &out, &chain_err), BRC_OK);
        ck_assert_int_eq(brc_buf_append(&out, "", 1, &chain_err), BRC_OK);
        ck_assert_str_eq((const char *)out.data, "[{\"name\":\"bytes\"},{\"name\":\"crc32c\"}]");
        brc_buf_dispose(&out);
    }
}

TEST(the_full_form_leaves_nothing_to_defaults)
{
    static const struct {
        const char *list, *full;
    } forms[] = {
        { "[{\"name\":\"transpose\",\"configuration\":{\"order\":\"F\"}}," B_LITTLE ",\"zstd\"]",
          "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," B_LITTLE
          ",{\"name\":\"zstd\",\"configuration\":{\"level\":3,\"checksum\":false}}]" },
        { "[{\"name\":\"transpose\",\"configuration\":{\"order\":\"C\"}},"
          "{\"name\":\"endian\",\"configuration\":{\"endian\":\"big\"}},"
          "{\"name\":\"zstd\",\"configuration\":{\"checksum\":true,\"level\":-7}}]",
          "[{\"name\":\"transpose\",\"configuration\":{\"order\":[0,1]}},"
          "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},"
          "{\"name\":\"zstd\",\"configuration\":{\"level\":-7,\"checksum\":true}}]" },
        { "[" B_LITTLE
          ",{\"name\":\"zstd\",\"configuration\":{\"level\":0,\"checksum\":false}},\"gzip\"]",
          "[" B_LITTLE
          ",{\"name\":\"zstd\",\"configuration\":{\"level\":0,\"checksum\":false}},"
          "{\"name\":\"gzip\",\"configuration\":{\"level\":6}}]" },
        { "[" B_LITTLE ",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"zstd\",\"clevel\":1,"
                       "\"shuffle\":\"shuffle\"}}]",
          "[" B_LITTLE ",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"zstd\",\"clevel\":1,"
          "\"shuffle\":\"shuffle\",\"typesize\":8,\"blocksize\":0}}]" },
    };
    uint64_t shape[2] = { 3, 4 };

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        brc_buf out = BRC_BUF_INIT;
        chain_open_ok(forms[i].list, "float64", 2, shape);
        ck_assert_int_eq(brc_chain_write(chain_now, &out, &chain_err), BRC_OK);
        ck_assert_int_eq(brc_buf_append(&out, "", 1, &chain_err), BRC_OK);
        ck_assert_str_eq((const char *)out.data, forms[i].full);
        brc_buf_dispose(&out);
    }
}

/* ---- threading ---------------------------------------------------------------------- */

TEST(seed_P2_each_codec_sees_what_the_one_before_gives)
{
    uint64_t shape[3] = { 2, 3, 4 };

    /* the second transpose gets the shape (4, 2, 3), rank 3 */
    chain_open_ok("[{\"name\":\"transpose\",\"configuration\":{\"order\":[2,0,1]}},"
                  "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,2,0]}}," B_LITTLE
                  ",\"crc32c\",\"crc32c\"]",
                  "int32", 3, shape);
    ck_assert_uint_eq(brc_chain_describe(chain_now)->decoded_len, 96);
    ck_assert_uint_eq(brc_chain_describe(chain_now)->encoded_max, 104);
    /* the two orders undo each other: the stored bytes begin with the canonical ones */
    int32_t values[24];
    brc_buf out = BRC_BUF_INIT;
    for (int32_t i = 0; i < 24; i++)
        values[i] = i * i;
    ck_assert_int_eq(brc_chain_encode(chain_now, chain_scratch,
                                      (brc_span){ (const uint8_t *)values, 96 }, &out, &chain_err),
                     BRC_OK);
    ck_assert_uint_eq(out.len, 104);
    ck_assert_mem_eq(out.data, values, 96);
    brc_buf_dispose(&out);
    /* a type of one byte needs no endian, one of more does, whatever comes before it */
    chain_open_ok("[{\"name\":\"transpose\",\"configuration\":{\"order\":[2,0,1]}},\"bytes\"]",
                  "uint8", 3, shape);
    ck_assert_int_eq(
        chain_try("[{\"name\":\"transpose\",\"configuration\":{\"order\":[2,0,1]}},\"bytes\"]",
                  "uint16", 3, shape),
        BRC_EINVAL);
    ck_assert_ptr_nonnull(strstr(chain_err.message, "/codecs/1: bytes: \"endian\""));
}

TEST(P17_encoded_length_is_known_or_bounded)
{
    uint64_t n = 1000;

    chain_open_ok("[\"bytes\"]", "uint8", 1, &n);
    ck_assert_uint_eq(brc_chain_describe(chain_now)->encoded_max, 1000);
    chain_open_ok("[\"bytes\",\"zstd\"]", "uint8", 1, &n);
    ck_assert_uint_eq(brc_chain_describe(chain_now)->encoded_max, 1000 + 125 + 65536);
}

TEST(P18_codecs_check_the_shape)
{
    uint64_t huge[2] = { UINT64_C(1) << 40, UINT64_C(1) << 40 };
    uint64_t shape[2] = { 3, 4 };

    ck_assert_int_eq(chain_try("[\"bytes\"]", "uint8", 2, huge), BRC_ELIMIT);
    ck_assert_int_eq(
        chain_try("[{\"name\":\"transpose\",\"configuration\":{\"order\":[0]}},\"bytes\"]", "uint8",
                  2, shape),
        BRC_EINVAL);
    ck_assert_int_eq(
        chain_try("[{\"name\":\"transpose\",\"configuration\":{\"order\":[]}},\"bytes\"]", "uint8",
                  0, NULL),
        BRC_OK);
    ck_assert_int_eq(chain_try("[\"bytes\"]", "uint8", BRC_MAX_NDIM + 1, NULL), BRC_EINVAL);
}

TEST(identity_is_seen_where_bytes_stay_as_they_are)
{
    static const struct {
        const char *list, *dtype;
        int identity;
    } cases[] = {
        { "[" B_LITTLE "]", "float32", 1 },
        { "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]", "float32", 0 },
        { "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]", "int8", 1 },
        { "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]", "r16", 1 },
        { "[{\"name\":\"transpose\",\"configuration\":{\"order\":[0,1,2]}}," B_LITTLE "]",
          "float32", 1 },
        { "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0,2]}}," B_LITTLE "]",
          "float32", 1 },
        { "[{\"name\":\"transpose\",\"configuration\":{\"order\":[0,2,1]}}," B_LITTLE "]",
          "float32", 0 },
        { "[" B_LITTLE ",\"crc32c\"]", "float32", 0 },
    };
    uint64_t shape[3] = { 1, 5, 6 };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        chain_open_ok(cases[i].list, cases[i].dtype, 3, shape);
        ck_assert_msg(brc_chain_is_identity(chain_now) == cases[i].identity, "%s", cases[i].list);
        ck_assert_int_eq(brc_chain_is_lossy(chain_now), 0);
    }
}

CASE("runs", .setup = chain_setup, .teardown = chain_teardown, .timeout = UNTIMED);

/* ---- running ------------------------------------------------------------------------ */

TEST(callers_mistakes_are_not_corruption)
{
    uint64_t n = 8;
    uint8_t plain[8] = { 0 }, small[7], used[8];
    brc_buf fixed = BRC_FIXED_BUF(small, sizeof(small)), full = fixed;
    full.data = used, full.len = 3, full.cap = sizeof(used);
    chain_open_ok("[\"bytes\",\"zstd\"]", "uint8", 1, &n);
    ck_assert_int_eq(
        brc_chain_encode(chain_now, chain_scratch, (brc_span){ plain, 7 }, &fixed, &chain_err),
        BRC_EINVAL);
    ck_assert_int_eq(
        brc_chain_decode(chain_now, chain_scratch, (brc_span){ plain, 8 }, NULL, &fixed,
                         &chain_err),
        BRC_EINVAL);
    ck_assert_int_eq(
        brc_chain_decode(chain_now, chain_scratch, (brc_span){ plain, 8 }, NULL, &full, &chain_err),
        BRC_EMISUSE);
    ck_assert_uint_eq(full.len, 3);
}

/* The codec sees no end of its own here: the chain's limit stops it. */
TEST(a_limit_holds_for_codecs_that_know_none)
{
    uint64_t lengths[2] = { 0, 3 };
    static const uint8_t stored[] = "!abcd";
    static const char *const says[2] = { "decodes to more than 0 bytes",
                                         "decodes to more than 3 bytes" };

    for (int i = 0; i < 2; i++) {
        brc_buf dst = BRC_BUF_INIT;
        brc_span src = { stored, 5 };
        size_t failed = 9;
        chain_open_ok("[\"bytes\",\"org.example.one\"]", "uint8", 1, &lengths[i]);
        ck_assert_int_eq(brc_chain_decode(chain_now, chain_scratch, src, NULL, &dst, &chain_err),
                         BRC_ECORRUPT);
        ck_assert_ptr_nonnull(strstr(chain_err.message, says[i]));
        chain_open_ok("[\"bytes\",\"org.example.batch\"]", "uint8", 1, &lengths[i]);
        ck_assert_int_eq(brc_chain_decode_batch(chain_now, chain_scratch, 1, &src, &dst, &failed,
                                                &chain_err),
                         BRC_ECORRUPT);
        ck_assert_ptr_nonnull(strstr(chain_err.message, says[i]));
        ck_assert_uint_eq(failed, 0);
        ck_assert_uint_eq(dst.limit, 0);
        brc_buf_dispose(&dst);
    }
}

/* Nor must it give less: the caller's memory would keep what was there before. */
TEST(f22_a_codec_that_gives_too_little_is_damage)
{
    static const uint8_t stored[] = "!ab";
    static const char *const lists[] = { "[\"bytes\",\"org.example.one\"]",
                                         "[\"bytes\",\"org.example.batch\"]" };
    uint64_t length = 3;
    for (int i = 0; i < 2; i++) {
        uint8_t memory[3];
        brc_buf dst = BRC_FIXED_BUF(memory, 3);
        brc_span src = { stored, 3 };
        size_t failed = dst.limit = 3;
        chain_open_ok(lists[i], "uint8", 1, &length);
        ck_assert_int_eq(brc_chain_decode(chain_now, chain_scratch, src, NULL, &dst, &chain_err),
                         BRC_ECORRUPT);
        ck_assert_ptr_nonnull(strstr(chain_err.message, "decodes to 2 bytes, not 3"));
        ck_assert_int_eq(brc_chain_decode_batch(chain_now, chain_scratch, 1, &src, &dst, &failed,
                                                &chain_err),
                         BRC_ECORRUPT);
        ck_assert_ptr_nonnull(strstr(chain_err.message, "decodes to 2 bytes, not 3"));
        ck_assert_uint_eq(failed, 0);
    }
}

TEST(one_scratch_serves_many_chains)
{
    uint64_t n = 100;
    uint8_t plain[100];
    const void *first = NULL;

    for (size_t i = 0; i < sizeof(plain); i++)
        plain[i] = (uint8_t)(i / 9);
    for (int i = 0; i < 4; i++) {
        brc_buf stored = BRC_BUF_INIT, back = BRC_BUF_INIT;
        chain_open_ok(i % 2 ? "[\"bytes\",\"org.example.one\",{\"name\":\"zstd\",\"configuration\":"
                              "{\"level\":-3}}]"
                            : "[\"bytes\",{\"name\":\"zstd\",\"configuration\":{\"level\":9,"
                              "\"checksum\":true}},"
                              "\"org.example.one\"]",
                      "uint8", 1, &n);
        ck_assert_int_eq(brc_chain_encode(chain_now, chain_scratch, (brc_span){ plain, 100 },
                                          &stored, &chain_err),
                         BRC_OK);
        ck_assert_int_eq(brc_chain_decode(chain_now, chain_scratch,
                                          (brc_span){ stored.data, stored.len }, NULL, &back,
                                          &chain_err),
                         BRC_OK);
        ck_assert_uint_eq(back.len, 100);
        ck_assert_mem_eq(back.data, plain, 100);
        ck_assert_int_eq(chain_calls.scratches, 1);
        first = i == 0 ? chain_calls.scratch : first;
        ck_assert_ptr_eq(chain_calls.scratch, first);
        brc_buf_dispose(&stored);
        brc_buf_dispose(&back);
    }
}

/* ---- batches ------------------------------------------------------------------------ */

enum { BATCH_MAX = 20, BATCH_ITEM = 50 };
static uint8_t batch_plain[BATCH_MAX][BATCH_ITEM];
static const char *const batch_lists[] = {
    "[\"bytes\"]",
    "[\"bytes\",\"zstd\"]",
    "[\"bytes\",\"org.example.batch\"]",
    "[\"bytes\",\"zstd\",\"org.example.batch\",\"gzip\"]",
    ("[\"bytes\",\"org.example.batch\",\"org.example.one\",\"org.example.batch\",\"zstd\","
     "\"org.example.batch\"]"),
};

static void batch_fill(void)
{
    for (size_t i = 0; i < BATCH_MAX; i++)
        for (size_t k = 0; k < BATCH_ITEM; k++)
            batch_plain[i][k] = (uint8_t)(i == 0 ? 0 : 10 * i + k / i);
}

EACH(P4_P5_batches_give_what_single_calls_give, batch_lists)
{
    uint64_t n = BATCH_ITEM;

    batch_fill();
    chain_open_ok(batch_lists[_i], "uint8", 1, &n);
    for (size_t count = 0; count <= BATCH_MAX; count += 4) {
        brc_span src[BATCH_MAX];
        brc_buf stored[BATCH_MAX] = { BRC_BUF_INIT }, back[BATCH_MAX] = { BRC_BUF_INIT };
        uint8_t place[BATCH_MAX][BATCH_ITEM];
        size_t failed = 99;
        for (size_t i = 0; i < count; i++)
            src[i] = (brc_span){ i % 3 == 1 ? NULL : batch_plain[i], i % 3 == 1 ? 0 : BATCH_ITEM };
        ck_assert_int_eq(brc_chain_encode_batch(chain_now, chain_scratch, count, src, stored,
                                                &failed, &chain_err),
                         BRC_OK);
        for (size_t i = 0; i < count; i++) {
            brc_buf one = BRC_BUF_INIT;
            if (i % 3 == 1) { /* absent items are seen by nobody and stay absent */
                ck_assert_uint_eq(stored[i].len, 0);
                src[i] = (brc_span){ NULL, 0 };
                continue;
            }
            ck_assert_int_eq(brc_chain_encode(chain_now, chain_scratch, src[i], &one, &chain_err),
                             BRC_OK);
            ck_assert_uint_eq(one.len, stored[i].len);
            ck_assert_mem_eq(one.data, stored[i].data, one.len);
            brc_buf_dispose(&one);
            src[i] = (brc_span){ stored[i].data, stored[i].len };
            if (i % 2 == 0) /* half of them into the caller's own memory */
                back[i] = (brc_buf)BRC_FIXED_BUF(place[i], BATCH_ITEM);
        }
        ck_assert_int_eq(
            brc_chain_decode_batch(chain_now, chain_scratch, count, src, back, &failed, &chain_err),
            BRC_OK);
        for (size_t i = 0; i < count; i++) {
            ck_assert_uint_eq(back[i].len, i % 3 == 1 ? 0 : BATCH_ITEM);
            ck_assert_uint_eq(back[i].limit, 0);
            if (back[i].len > 0)
                ck_assert_mem_eq(back[i].data, batch_plain[i], BATCH_ITEM);
            if (back[i].len > 0 && i % 2 == 0)
                ck_assert_ptr_eq(back[i].data, place[i]);
            brc_buf_dispose(&stored[i]);
            brc_buf_dispose(&back[i]);
        }
    }
}

TEST(P5_a_batch_form_gets_the_batch_whole)
{
    uint64_t n = BATCH_ITEM;
    brc_span src[BATCH_MAX];
    brc_buf dst[BATCH_MAX] = { BRC_BUF_INIT };
    size_t failed = 0;

    batch_fill();
    for (size_t i = 0; i < BATCH_MAX; i++)
        src[i] = (brc_span){ i == 5 ? NULL : batch_plain[i], BATCH_ITEM };
    chain_open_ok("[\"bytes\",\"org.example.one\",\"org.example.batch\"]", "uint8", 1, &n);
    ck_assert_int_eq(
        brc_chain_encode_batch(chain_now, chain_scratch, BATCH_MAX, src, dst, &failed, &chain_err),
        BRC_OK);
    ck_assert_int_eq(chain_calls.batch, 1);
    ck_assert_int_eq(chain_calls.items, BATCH_MAX - 1);
    ck_assert_int_eq(chain_calls.one, BATCH_MAX - 1);
    for (size_t i = 0; i < BATCH_MAX; i++)
        brc_buf_dispose(&dst[i]);
}

TEST(P4_the_first_item_that_fails_is_named)
{
    uint64_t n = BATCH_ITEM;
    brc_span src[BATCH_MAX];
    brc_buf stored[BATCH_MAX] = { BRC_BUF_INIT }, back[BATCH_MAX] = { BRC_BUF_INIT };
    size_t failed = 99;

    batch_fill();
    for (size_t i = 0; i < BATCH_MAX; i++)
        src[i] = (brc_span){ batch_plain[i], BATCH_ITEM };
    chain_open_ok("[\"bytes\",\"org.example.batch\",\"zstd\",\"org.example.one\"]", "uint8", 1, &n);
    ck_assert_int_eq(brc_chain_encode_batch(chain_now, chain_scratch, BATCH_MAX, src, stored,
                                            &failed, &chain_err),
                     BRC_OK);
    for (size_t i = 0; i < BATCH_MAX; i++)
        src[i] = (brc_span){ stored[i].data, stored[i].len };
    /* 9 fails in the first step of decoding, 7 in the second, 3 in the third */
    src[9].len = 0;
    stored[7].data[1] ^= 0xFF;
    chain_calls.fail_at_byte = batch_plain[3][0];
    ck_assert_int_eq(
        brc_chain_decode_batch(chain_now, chain_scratch, BATCH_MAX, src, back, &failed, &chain_err),
        BRC_ECORRUPT);
    ck_assert_msg(failed == 3, "%zu: %s", failed, chain_err.message);
    ck_assert_str_eq(chain_err.message, "org.example.batch: an item holds 30");
    ck_assert_str_eq(chain_err.source, "codec:org.examp");
    chain_calls.fail_at_byte = -1;
    ck_assert_int_eq(
        brc_chain_decode_batch(chain_now, chain_scratch, BATCH_MAX, src, back, &failed, &chain_err),
        BRC_ECORRUPT);
    ck_assert_uint_eq(failed, 7);
    ck_assert_int_eq(strncmp(chain_err.message, "zstd: ", 6), 0);
    stored[7].data[1] ^= 0xFF;
    ck_assert_int_eq(
        brc_chain_decode_batch(chain_now, chain_scratch, BATCH_MAX, src, back, &failed, NULL),
        BRC_ECORRUPT);
    ck_assert_uint_eq(failed, 9);
    for (size_t i = 0; i < BATCH_MAX; i++)
        ck_assert_uint_eq(back[i].len, 0);
    /* without a status of any item, the failure is the first one's */
    src[9].len = stored[9].len;
    chain_calls.refuse_all = 1;
    ck_assert_int_eq(
        brc_chain_decode_batch(chain_now, chain_scratch, BATCH_MAX, src, back, &failed, &chain_err),
        BRC_EIO);
    ck_assert_uint_eq(failed, 0);
    ck_assert_str_eq(chain_err.message, "org.example.batch: the device went away");
    for (size_t i = 0; i < BATCH_MAX; i++) {
        brc_buf_dispose(&stored[i]);
        brc_buf_dispose(&back[i]);
    }
}
