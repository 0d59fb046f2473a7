/*
 * A codec that lies: its encoder writes bytes that decode to something else. Whatever is
 * wrong with them, and whichever way the chunk comes in, the write fails before anything
 * is stored, as compressors have written bytes that they could not read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/error.h"
#include "../../src/base/file.h"
#include "../../src/breccia_codec.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(readback);

#define LIAR "{\"name\":\"https://breccia.example/liar\"}"
#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}"
#define CRC "{\"name\":\"crc32c\"}"
#define TURN "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}"
#define SHARD(shape, codecs)                                                                    \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" shape ",\"codecs\":["  \
    codecs "],\"index_codecs\":[" LITTLE "," CRC "]}}"

/* ---- the codec: runs of equal bytes, and a lie where a chunk has the element ------- */

enum { HONEST, FIRST_BYTE, LAST_BYTE, ORDER, TOO_SHORT, TOO_LONG, EMPTY, NOT_ITS_OWN, NLIES };

#define TRIGGER 0x77 /* the byte that makes it lie */
static int lie;      /* which one               */

static int liar_open(void *ctx, void **state, const brc_json *config, const brc_proto *in,
                     brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx, (void)state, (void)config, (void)identity, (void)err;
    out->len = BRC_LEN_VARIES;
    out->max_len = 2 * in->max_len + 2;
    return BRC_OK;
}

static void tell_lie(uint8_t *pairs, size_t *n)
{
    uint8_t *last = pairs + *n - 2;
    uint8_t value = last[1];
    switch (lie) {
    case FIRST_BYTE: pairs[1] ^= 1; break;
    case LAST_BYTE: /* the right length, and one byte wrong at the very end */
        if (--last[0] == 0)
            *n -= 2;
        last = pairs + *n;
        last[0] = 1;
        last[1] = (uint8_t)(value + 1);
        *n += 2;
        break;
    case ORDER: last[1] = pairs[1]; pairs[1] = value; break;
    case TOO_SHORT: last[0]--; break;
    case TOO_LONG: last[2] = 1; last[3] = value; *n += 2; break;
    case EMPTY: *n = 0; break;
    case NOT_ITS_OWN: *n -= 1; break; /* decode refuses an odd length */
    default: break;
    }
}

static int liar_encode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                       brc_error *err)
{
    (void)ctx, (void)state, (void)scratch;
    BRC_TRY(brc_buf_reserve(dst, 2 * src.len + 2, err));
    uint8_t *out = dst->data + dst->len;
    size_t n = 0;
    for (size_t i = 0; i < src.len; i++) {
        if (n == 0 || out[n - 1] != src.data[i] || out[n - 2] == 255) {
            out[n++] = 0;
            out[n++] = src.data[i];
        }
        out[n - 2]++;
    }
    if (src.len > 0 && memchr(src.data, TRIGGER, src.len) != NULL)
        tell_lie(out, &n);
    dst->len += n;
    return BRC_OK;
}

static int liar_decode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                       brc_error *err)
{
    (void)ctx, (void)state, (void)scratch;
    if (src.len % 2 != 0)
        return brc_fail(err, BRC_ECORRUPT, "these are not pairs");
    for (size_t i = 0; i < src.len; i += 2) {
        BRC_TRY(brc_buf_reserve(dst, src.data[i], err));
        memset(dst->data + dst->len, src.data[i + 1], src.data[i]);
        dst->len += src.data[i];
    }
    return BRC_OK;
}

static int liar_encode_batch(void *ctx, const void *state, void *scratch, size_t n,
                             const brc_span *src, brc_buf *const *dst, int *status, brc_error *err)
{
    for (size_t i = 0; i < n; i++) {
        status[i] = liar_encode(ctx, state, scratch, src[i], dst[i], err);
        if (status[i] < 0)
            return status[i];
    }
    return BRC_OK;
}

static brc_registry *liars_registry(scenario *t)
{
    const brc_codec_spec spec = { .size = sizeof(spec), .name = "https://breccia.example/liar",
                                  .kind = BRC_BYTES_TO_BYTES, .open = liar_open };
    const brc_codec_impl impl = { .size = sizeof(impl), .spec = spec.name, .name = "test",
                                  .encode = liar_encode, .decode = liar_decode,
                                  .encode_batch = liar_encode_batch };
    brc_registry *reg;
    OK(t, brc_registry_new(&reg, &t->err));
    OK(t, brc_registry_add_codec(reg, &spec, &t->err));
    OK(t, brc_registry_add_impl(reg, &impl, &t->err));
    return reg;
}

/* ---- arrays of it ------------------------------------------------------------------ */

/* 64 x 64 int32 in chunks (or shards) of 32 x 32. */
#define SIDE 64
#define BYTES (SIDE * SIDE * 4)
static const uint64_t shape[2] = { SIDE, SIDE }, chunk[2] = { 32, 32 };

static const char *const chains[] = {
    "[" LITTLE "," LIAR "]",
    "[" TURN "," LITTLE "," LIAR "," ZSTD "," CRC "]",
    "[" LITTLE "," LIAR "," LIAR "]",
    "[" SHARD("[16,16]", LITTLE "," LIAR) "]",            /* stored as inner chunks */
    "[" SHARD("[16,16]", TURN "," LITTLE "," LIAR "," CRC) "," ZSTD "]", /* whole   */
    "[" SHARD("[16,16]", LITTLE) "," LIAR "]",
    "[" SHARD("[16,16]", SHARD("[8,8]", LITTLE "," LIAR)) "]",
};
#define NCHAINS ((int)(sizeof(chains) / sizeof(chains[0])))

typedef struct liars {
    scenario t;
    brc_registry *reg;
    int readback;
} liars;

static void liars_open(liars *l, uint32_t flags)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.registry = l->reg;
    opts.readback = l->readback;
    scenario_open(&l->t, &opts, flags);
}

static void liars_start(liars *l, int readback)
{
    l->readback = readback;
    scenario_folder(&l->t);
    l->reg = liars_registry(&l->t);
    liars_open(l, BRC_OPEN_CREATE);
}

static void liars_stop(liars *l)
{
    scenario_stop(&l->t);
    brc_registry_free(l->reg);
}

/* Runs, which shrink, that end in another byte than they begin with in every chunk of
 * every chain; with the trigger in the last chunk alone. */
static void values_of(uint8_t *data, int triggers)
{
    for (size_t i = 0; i < BYTES / 4; i++)
        memset(data + 4 * i, (int)(1 + i / SIDE / 4 + i % SIDE / 4 * 2), 4);
    if (triggers)
        memset(data + BYTES - 4 * 30, TRIGGER, 4);
}

static void stored_rows(liars *l, brc_buf *out)
{
    scenario_rows(&l->t,
                  "SELECT hex(o.id), o.encoding, o.stored, o.checksum,"
                  " o.place, o.offset, hex(substr(b.data, o.offset+1, o.stored)) FROM object o"
                  " JOIN blob b ON b.seq=o.place WHERE o.kind=1 ORDER BY o.id", out);
}

static void same_rows(liars *l, const brc_buf *before)
{
    brc_buf now = BRC_BUF_INIT;
    stored_rows(l, &now);
    ck_assert_str_eq((const char *)now.data, (const char *)before->data);
    ck_assert_int_eq(scenario_unused(&l->t), 0);
    brc_buf_dispose(&now);
}

static void caught(liars *l, int rc)
{
    const brc_error *err = &l->t.err;
    ck_assert_msg(rc == BRC_EINTERNAL, "lie %d: %d, %s", lie, rc,
                  rc < 0 ? err->message : "it was stored");
    ck_assert_int_eq(err->code, BRC_EINTERNAL);
    ck_assert_msg(strstr(err->message, "the codecs do not give back what they encoded; nothing "
                                       "was stored") != NULL, "%s", err->message);
}

static void is_still(liars *l, brc_array *a, const uint8_t *data)
{
    uint8_t got[BYTES];
    OK(&l->t, brc_array_read(a, NULL, got, sizeof(got), &l->t.err));
    ck_assert(memcmp(got, data, sizeof(got)) == 0);
}

LOOP(f22_a_lying_codec_stores_nothing, 0, NCHAINS)
{
    liars l;
    uint8_t data[BYTES], zero[BYTES] = { 0 };
    brc_buf before = BRC_BUF_INIT;
    liars_start(&l, 0);
    brc_array *a = scenario_array(&l.t, "/a", "int32", 2, shape, chunk, "0", chains[_i]);
    stored_rows(&l, &before);
    values_of(data, 1);
    for (lie = HONEST + 1; lie < NLIES; lie++) {
        brc_io io = IO_OF(a, NULL, data, sizeof(data));
        caught(&l, brc_array_write(a, NULL, data, sizeof(data), &l.t.err));
        ck_assert_msg(strncmp(l.t.err.message, "/a", 2) == 0, "%s", l.t.err.message);
        same_rows(&l, &before);
        caught(&l, brc_write(&io, 1, &l.t.err));
        caught(&l, brc_array_append(a, 0, SIDE, data, sizeof(data), &l.t.err));
        ck_assert_uint_eq(brc_array_describe(a)->shape[0], SIDE);
        same_rows(&l, &before);
        is_still(&l, a, zero);
    }
    lie = HONEST;
    OK(&l.t, brc_array_write(a, NULL, data, sizeof(data), &l.t.err));
    is_still(&l, a, data);
    ck_assert_int_gt(scenario_ask(&l.t, "SELECT count(*) FROM object WHERE encoding>0"), 0);
    scenario_whole(&l.t);
    brc_array_free(a);
    brc_buf_dispose(&before);
    liars_stop(&l);
}

/* One bad chunk undoes the other chunks of its write too; the chunks that were stored before
 * stay. */
LOOP(f22_one_lie_undoes_the_write, 0, NCHAINS)
{
    liars l;
    uint8_t one[BYTES], two[BYTES];
    brc_buf before = BRC_BUF_INIT;
    liars_start(&l, 0);
    lie = LAST_BYTE;
    brc_array *a = scenario_array(&l.t, "/a", "int32", 2, shape, chunk, "0", chains[_i]);
    values_of(one, 0);
    OK(&l.t, brc_array_write(a, NULL, one, sizeof(one), &l.t.err));
    scenario_commit(&l.t, "one");
    stored_rows(&l, &before);
    values_of(two, 1);
    for (size_t i = 0; i < sizeof(two); i++)
        two[i] = two[i] == TRIGGER ? TRIGGER : (uint8_t)(two[i] + 100);
    int32_t element = TRIGGER * 0x01010101;
    brc_sel sel = BRC_SEL_INIT;
    caught(&l, brc_array_write(a, NULL, two, sizeof(two), &l.t.err));
    same_rows(&l, &before);
    OK(&l.t, brc_sel_parse(&sel, a, "[60, 60]", &l.t.err)); /* into what is there */
    caught(&l, brc_array_fill(a, &sel, &element, &l.t.err));
    same_rows(&l, &before);
    ck_assert_int_eq(scenario_clean(&l.t), 1);
    is_still(&l, a, one);
    scenario_whole(&l.t);
    brc_array_free(a);
    brc_buf_dispose(&before);
    liars_stop(&l);
}

/* `codecs --rewrite`, with chunks of the same shape and of another. */
LOOP(f22_rewriting_with_a_lying_codec_changes_nothing, 0, 3 * NCHAINS)
{
    static const char *const from[] = { "[" LITTLE "]", "[" LITTLE "," ZSTD "]",
                                        "[" SHARD("[8,8]", LITTLE "," ZSTD) "]" };
    liars l;
    uint8_t data[BYTES];
    brc_buf before = BRC_BUF_INIT;
    liars_start(&l, 0);
    brc_array *a = scenario_array(&l.t, "/a", "int32", 2, shape, chunk, "0", from[_i / NCHAINS]);
    char *codecs = strdup(brc_array_describe(a)->codecs_json);
    values_of(data, 1);
    lie = HONEST;
    OK(&l.t, brc_array_write(a, NULL, data, sizeof(data), &l.t.err));
    scenario_commit(&l.t, "one");
    stored_rows(&l, &before);
    for (lie = HONEST + 1; lie < NLIES; lie++) {
        caught(&l, brc_array_set_codecs(a, chains[_i % NCHAINS], 1, &l.t.err));
        same_rows(&l, &before);
        ck_assert_str_eq(brc_array_describe(a)->codecs_json, codecs);
        ck_assert_int_eq(scenario_clean(&l.t), 1);
        is_still(&l, a, data);
    }
    lie = HONEST;
    OK(&l.t, brc_array_set_codecs(a, chains[_i % NCHAINS], 1, &l.t.err));
    is_still(&l, a, data);
    scenario_whole(&l.t);
    free(codecs);
    brc_array_free(a);
    brc_buf_dispose(&before);
    liars_stop(&l);
}

LOOP(f22_importing_with_a_lying_codec_imports_nothing, 0, NCHAINS)
{
    static const char json[] =
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[64,64],\"data_type\":\"int32\","
        "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[64,64]}},"
        "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,\"codecs\":[" LITTLE "]}";
    brc_xfer_opts opts = { .size = sizeof(opts), .chunk = chunk, .nchunk = 2,
                           .codecs_json = chains[_i] };
    liars l;
    char path[128];
    uint8_t data[BYTES];
    liars_start(&l, 0);
    values_of(data, 1);
    snprintf(path, sizeof(path), "%s/in.zarr/c/0/0", l.t.dir);
    OK(&l.t, brc_dir_make_parents(path, strlen(l.t.dir), &l.t.err));
    OK(&l.t, brc_file_write(path, data, sizeof(data), &l.t.err));
    snprintf(path, sizeof(path), "%s/in.zarr/zarr.json", l.t.dir);
    OK(&l.t, brc_file_write(path, json, strlen(json), &l.t.err));
    snprintf(path, sizeof(path), "%s/in.zarr", l.t.dir);
    for (lie = HONEST + 1; lie < NLIES; lie++) {
        caught(&l, brc_import(l.t.session, path, "/a", &opts, &l.t.err));
        ck_assert_int_eq(scenario_ask(&l.t, "SELECT count(*) FROM object WHERE kind=1"), 0);
        ck_assert_int_eq(scenario_clean(&l.t), 1);
    }
    liars_stop(&l);
}

/* Only who says so goes without: then nothing but reading shows it. */
LOOP(f22_without_the_read_back_a_lie_is_stored, 0, NCHAINS)
{
    liars l;
    uint8_t data[BYTES], got[BYTES];
    brc_error err = BRC_ERROR_INIT;
    liars_start(&l, BRC_READBACK_NONE);
    brc_array *a = scenario_array(&l.t, "/a", "int32", 2, shape, chunk, "0", chains[_i]);
    values_of(data, 1);
    lie = LAST_BYTE;
    OK(&l.t, brc_array_write(a, NULL, data, sizeof(data), &l.t.err));
    int rc = brc_array_read(a, NULL, got, sizeof(got), &err);
    ck_assert(rc == BRC_ECORRUPT || memcmp(got, data, sizeof(got)) != 0);
    brc_array_free(a);
    liars_stop(&l);
}

/* Returns whether a chunk that the codec spoils is written, because nobody reads it back. Each
 * number makes another chunk. */
static int spoiled_is_written(liars *l, int number)
{
    uint8_t data[BYTES];
    brc_array *a = scenario_array_at(&l->t, l->t.session, "/a");
    lie = HONEST;
    values_of(data, 1);
    memset(data + BYTES - 4 * 20, number, 4); /* in the chunk that has the trigger */
    lie = LAST_BYTE;
    const int rc = brc_array_write(a, NULL, data, sizeof(data), &l->t.err);
    ck_assert(rc == BRC_OK || rc == BRC_EINTERNAL);
    brc_array_free(a);
    lie = HONEST;
    return rc == BRC_OK;
}

static void open_liars_with(liars *l, int readback)
{
    scenario_close(&l->t);
    l->readback = readback;
    liars_open(l, 0);
}

TEST(the_setting_counts_where_the_call_says_nothing)
{
    liars l;
    brc_buf text = BRC_BUF_INIT;
    liars_start(&l, 0);
    brc_array_free(scenario_array(&l.t, "/a", "int32", 2, shape, chunk, "0", chains[0]));
    scenario_commit(&l.t, "an array");
    ck_assert_int_eq(spoiled_is_written(&l, 1), 0);
    OK(&l.t, brc_config_set(l.t.repo, "readback", "none", &l.t.err));
    ck_assert_int_eq(spoiled_is_written(&l, 1), 1);
    open_liars_with(&l, BRC_READBACK_ALL);
    ck_assert_int_eq(spoiled_is_written(&l, 2), 0);
    open_liars_with(&l, 0);
    ck_assert_int_eq(spoiled_is_written(&l, 3), 1);
    FAILS(&l.t, BRC_EINVAL, brc_config_set(l.t.repo, "readback", "some", &l.t.err));
    OK(&l.t, brc_config_get(&text, l.t.repo, "readback", &l.t.err));
    ck_assert_str_eq((const char *)text.data, "none");
    brc_buf_dispose(&text);
    OK(&l.t, brc_config_set(l.t.repo, "readback", NULL, &l.t.err));
    ck_assert_int_eq(spoiled_is_written(&l, 4), 0);
    liars_stop(&l);
}

TEST(the_choice_of_a_pipeline_counts_before_the_handles_and_the_setting)
{
    liars l;
    brc_pipeline_opts opts = BRC_PIPELINE_OPTS_INIT;
    liars_start(&l, BRC_READBACK_ALL);
    brc_array_free(scenario_array(&l.t, "/a", "int32", 2, shape, chunk, "0", chains[0]));
    ck_assert_int_eq(spoiled_is_written(&l, 1), 0);
    opts.readback = BRC_READBACK_NONE;
    OK(&l.t, brc_pipeline_set(l.t.repo, &opts, &l.t.err));
    ck_assert_int_eq(spoiled_is_written(&l, 1), 1);
    OK(&l.t, brc_config_set(l.t.repo, "readback", "all", &l.t.err));
    ck_assert_int_eq(spoiled_is_written(&l, 2), 1);
    OK(&l.t, brc_pipeline_set(l.t.repo, NULL, &l.t.err));
    OK(&l.t, brc_config_set(l.t.repo, "readback", "none", &l.t.err));
    ck_assert_int_eq(spoiled_is_written(&l, 3), 0);
    liars_stop(&l);
}

/* One in 16 by the id: the same chunks each time. */
TEST(a_sample_is_read_back)
{
    enum { CHUNKS = 240 };
    liars l;
    int written = 0;
    liars_start(&l, BRC_READBACK_SAMPLED);
    brc_array_free(scenario_array(&l.t, "/a", "int32", 2, shape, chunk, "0", chains[0]));
    for (int i = 0; i < CHUNKS; i++)
        written += spoiled_is_written(&l, i);
    ck_assert_int_lt(written, CHUNKS - 2);
    ck_assert_int_gt(written, CHUNKS / 2);
    liars_stop(&l);
}

TEST(another_number_than_those_is_refused)
{
    liars l;
    breccia *repo;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    liars_start(&l, 0);
    opts.readback = BRC_READBACK_NONE + 1;
    FAILS(&l.t, BRC_EINVAL, brc_open(&repo, l.t.file, &opts, &l.t.err));
    liars_stop(&l);
}
