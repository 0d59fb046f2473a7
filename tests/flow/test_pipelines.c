/*
 * Pipelines: how they are chosen, that all of them read and store the same bytes, what comes of one
 * that fails, and that codecs and pipelines with batches get batches.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/breccia_pipeline.h"
#include "../../src/codec/registry.h"
#include "../kit/plugin_kit.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(pipelines);

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}"
#define TWICE "https://breccia.example/twice"

static scenario t;
static brc_registry *reg;
static brc_pool *pool;

/* ---- a codec with a batch form, and pipelines that fail -------------------------------- */

static atomic_uint batches, together; /* calls of the batch form, and those for several chunks */

static int twice_open(void *ctx, void **state, const brc_json *config, const brc_proto *in,
                      brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx;
    (void)config;
    (void)in;
    (void)identity;
    (void)err;
    *state = NULL;
    out->len = BRC_LEN_VARIES;
    out->max_len = UINT64_MAX;
    return BRC_OK;
}

/* Inverts each byte, and puts one behind them. */
static int twice_run(brc_span src, brc_buf *dst, int decodes, brc_error *err)
{
    if (decodes && src.len == 0)
        return brc_fail(err, BRC_ECORRUPT, "nothing is there");
    const size_t len = decodes ? src.len - 1 : src.len + 1;
    BRC_TRY(brc_buf_reserve(dst, len, err));
    for (size_t i = 0; i < len; i++)
        dst->data[i] = i < src.len ? (uint8_t)~src.data[i] : 7;
    dst->len = len;
    return BRC_OK;
}

static int twice_encode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                        brc_error *err)
{
    (void)ctx;
    (void)state;
    (void)scratch;
    return twice_run(src, dst, 0, err);
}

static int twice_decode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                        brc_error *err)
{
    (void)ctx;
    (void)state;
    (void)scratch;
    return twice_run(src, dst, 1, err);
}

static int twice_batch(size_t n, const brc_span *src, brc_buf *const *dst, int *status, int decodes,
                       brc_error *err)
{
    int rc = BRC_OK;
    batches++;
    together += n > 1;
    for (size_t i = 0; i < n; i++) {
        status[i] = src[i].data != NULL ? twice_run(src[i], dst[i], decodes, err) : BRC_OK;
        rc = rc < 0 ? rc : status[i];
    }
    return rc;
}

static int twice_encode_batch(void *ctx, const void *state, void *scratch, size_t n,
                              const brc_span *src, brc_buf *const *dst, int *status,
                              brc_error *err)
{
    (void)ctx;
    (void)state;
    (void)scratch;
    return twice_batch(n, src, dst, status, 0, err);
}

static int twice_decode_batch(void *ctx, const void *state, void *scratch, size_t n,
                              const brc_span *src, brc_buf *const *dst, int *status,
                              brc_error *err)
{
    (void)ctx;
    (void)state;
    (void)scratch;
    return twice_batch(n, src, dst, status, 1, err);
}

/* The faults of a bad pipeline, in the second chunk of a batch, or in the only one. */
enum { SHORT, LONG, FAILS_SO, STRANGE, FAILS_NOWHERE, NFAULTS };
static atomic_int fault_decode, fault_encode; /* the fault; NFAULTS: none */
static unsigned destroyed;

static int bad_run(const brc_batch *batch, int fault, int decodes, size_t *failed, brc_error *err)
{
    int rc = decodes ? brc_batch_decode(batch, failed, err) : brc_batch_encode(batch, failed, err);
    const size_t i = batch->n > 1;
    if (rc < 0 || fault == NFAULTS || batch->src[i].data == NULL)
        return rc;
    *failed = fault == FAILS_NOWHERE ? 1000 : i;
    switch (fault) {
    case SHORT: batch->dst[i].len--; return BRC_OK;
    case LONG: return brc_buf_append(&batch->dst[i], "more", 4, err);
    case STRANGE: return 77;
    default: return brc_fail(err, BRC_EIO, "the device is on fire");
    }
}

static int bad_decode(void *ctx, void *state, const brc_batch *batch, size_t *failed,
                      brc_error *err)
{
    (void)ctx;
    (void)state;
    return bad_run(batch, fault_decode, 1, failed, err);
}

static int bad_encode(void *ctx, void *state, const brc_batch *batch, size_t *failed,
                      brc_error *err)
{
    (void)ctx;
    (void)state;
    return bad_run(batch, fault_encode, 0, failed, err);
}

static void bad_destroy(void *ctx)
{
    (void)ctx;
    destroyed++;
}

/* ---- fixture -------------------------------- */

static void add_ours(void)
{
    const brc_codec_spec spec = {.size = sizeof(spec), .name = TWICE, .kind = BRC_BYTES_TO_BYTES,
                                 .open = twice_open};
    const brc_codec_impl impl = {.size = sizeof(impl), .spec = TWICE, .name = "ours", .rank = 1,
                                 .encode = twice_encode, .decode = twice_decode,
                                 .encode_batch = twice_encode_batch,
                                 .decode_batch = twice_decode_batch};
    brc_pipeline bad = {.size = sizeof(bad), .name = "org.example.bad", .decode = bad_decode,
                        .encode = bad_encode, .destroy = bad_destroy};
    char path[4096];
    destroyed = 0; /* where tests have no process of their own */
    OK(&t, brc_registry_new(&reg, &t.err));
    OK(&t, brc_registry_add_codec(reg, &spec, &t.err));
    OK(&t, brc_registry_add_impl(reg, &impl, &t.err));
    fault_decode = NFAULTS;
    fault_encode = NFAULTS;
    OK(&t, brc_registry_add_pipeline(reg, &bad, &t.err));
    ck_assert_int_eq(brc_registry_add_pipeline(reg, &bad, &t.err), BRC_EEXISTS);
    bad.name = "serial";
    ck_assert_int_eq(brc_registry_add_pipeline(reg, &bad, &t.err), BRC_EEXISTS);
    bad.name = "org.example.worse";
    bad.flags = 64;
    ck_assert_int_eq(brc_registry_add_pipeline(reg, &bad, &t.err), BRC_EINVAL);
    ck_assert_uint_eq(destroyed, 3); /* each refused one at once */
    plugin_path(path, sizeof(path), "reversed");
    OK(&t, brc_registry_load(reg, path, &t.err));
    OK(&t, brc_pool_new(&pool, 3, &t.err));
    batches = 0;
    together = 0;
    destroyed = 0;
}

/* The plug-in's own count. */
static unsigned reversed(const char *name)
{
    char path[4096];
    plugin_path(path, sizeof(path), "reversed");
    void *handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    ck_assert_ptr_nonnull(handle);
    const unsigned n = atomic_load((atomic_uint *)dlsym(handle, name));
    dlclose(handle);
    return n;
}

static void open_as(const brc_pipeline_opts *how, uint32_t flags)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.registry = reg;
    opts.pool = pool;
    opts.pipeline = how;
    scenario_open(&t, &opts, flags);
}

static void start(void)
{
    add_ours();
    scenario_folder(&t);
    open_as(NULL, BRC_OPEN_CREATE);
}

static void stop(void)
{
    scenario_whole(&t);
    scenario_stop(&t);
    ck_assert_uint_eq(reversed("reversed_open"), 0);
    brc_pool_free(pool);
    ck_assert_uint_eq(destroyed, 0);
    brc_registry_free(reg);
    ck_assert_uint_eq(destroyed, 1);
}

/* ---- choosing -------------------------------- */

CASE("choosing", .setup = start, .teardown = stop, .timeout = 60);

static int use(const char *text)
{
    brc_pipeline_opts opts = BRC_PIPELINE_OPTS_INIT;
    opts.pipeline = text;
    return brc_pipeline_set(t.repo, &opts, &t.err);
}

TEST(P19_an_unknown_pipeline_is_an_error_that_names_the_known_ones)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_pipeline_opts how = BRC_PIPELINE_OPTS_INIT;
    breccia *repo;
    how.pipeline = "cuda";
    opts.registry = reg;
    opts.pipeline = &how;
    ck_assert_int_eq(brc_open(&repo, t.file, &opts, &t.err), BRC_EUNSUPPORTED);
    ck_assert_str_eq(t.err.message,
                     "the pipeline \"cuda\" is not known (known: batched, serial, org.example.bad, "
                     "org.example.reversed); a plug-in may add it");
    FAILS(&t, BRC_EUNSUPPORTED, use("cuda"));
    ck_assert_ptr_nonnull(strstr(t.err.message, "known: batched, serial,"));
}

static const struct {
    const char *text;
    int rc;
    const char *says;
} choices[] = {
    { "serial", BRC_OK, "" },
    { "{\"name\":\"serial\"}", BRC_OK, "" },
    { "{\"name\":\"batched\",\"configuration\":{}}", BRC_OK, "" },
    { "{\"name\":\"serial\",\"configuration\":{\"threads\":2}}", BRC_EINVAL,
      "the pipeline \"serial\": member \"threads\" is not known here" },
    { "{\"name\":\"org.example.reversed\",\"configuration\":{\"depth\":9}}", BRC_OK, "" },
    { "{\"name\":\"org.example.reversed\",\"configuration\":{\"depth\":10}}", BRC_EINVAL,
      "the pipeline \"org.example.reversed\": \"depth\" must be a number from 0 to 9" },
    { "{\"configuration\":{}}", BRC_EINVAL, "a pipeline needs its \"name\"" },
    { "{\"name\":\"serial\",\"configuration\":7}", BRC_EINVAL, "must be an object" },
    { "{\"name\":", BRC_EINVAL, "" },
    { "[1]", BRC_EINVAL, "a pipeline is a name, or an object" },
};

EACH(a_pipeline_is_a_name_or_an_object, choices)
{
    const int rc = use(choices[_i].text);
    ck_assert_msg(rc == choices[_i].rc, "%d: %s", rc, rc < 0 ? t.err.message : "fine");
    if (rc < 0)
        ck_assert_msg(strstr(t.err.message, choices[_i].says), "%s", t.err.message);
}

TEST(the_list_has_the_default_first)
{
    brc_iter *it;
    const brc_pipeline_info *info;
    char names[400] = "";
    OK(&t, brc_registry_list(&it, reg, BRC_LIST_PIPELINES, &t.err));
    while (brc_next(it, &info, &t.err) == 1)
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s by %s\n", info->name,
                 strrchr(info->owner, '/') ? strrchr(info->owner, '/') + 1 : info->owner);
    brc_iter_free(it);
    ck_assert_str_eq(names, "batched by breccia\nserial by breccia\norg.example.bad by a plug-in\n"
                            "org.example.reversed by reversed.so\n");
}

TEST(another_handle_has_the_pipeline_of_the_open)
{
    brc_pipeline_opts how = BRC_PIPELINE_OPTS_INIT;
    breccia *other;
    how.pipeline = "org.example.reversed";
    scenario_close(&t);
    open_as(&how, 0);
    ck_assert_uint_eq(reversed("reversed_open"), 1);
    OK(&t, brc_reopen(&other, t.repo, &t.err));
    ck_assert_uint_eq(reversed("reversed_open"), 2);
    brc_free(other);
    OK(&t, use("serial"));
    ck_assert_uint_eq(reversed("reversed_open"), 0);
    OK(&t, brc_pipeline_set(t.repo, NULL, &t.err));
    ck_assert_uint_eq(reversed("reversed_open"), 1);
}

/* ---- all are equal -------------------------------- */

static const brc_pipeline_opts kinds[] = {
#define KIND(...) { .size = sizeof(brc_pipeline_opts), __VA_ARGS__ }
    KIND(.pipeline = "serial"),
    KIND(.pipeline = NULL),
    KIND(.pipeline = "batched", .batch = 1),
    KIND(.pipeline = "batched", .memory = 1 << 20, .threads = 2, .batch = 3),
    KIND(.pipeline = "batched", .threads = 1, .readback = BRC_READBACK_NONE),
    KIND(.pipeline = "org.example.reversed"),
    KIND(.pipeline = "org.example.reversed", .batch = 5, .readback = BRC_READBACK_SAMPLED),
    KIND(.pipeline = "org.example.bad"),
};
enum { KINDS = sizeof(kinds) / sizeof(*kinds), ARRAYS = 6, STEPS = 30 };

static const struct {
    const char *dtype, *codecs;
    size_t item;
} forms[ARRAYS] = {
    { "int32", NULL, 4 },
    { "int32", "[" LITTLE "]", 4 },
    { "int32", "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," LITTLE "," ZSTD "]",
      4 },
    { "uint8", "[{\"name\":\"bytes\"},{\"name\":\"" TWICE "\"}]", 1 },
    { "int32", "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[3,4],"
               "\"codecs\":[" LITTLE "," ZSTD "],\"index_codecs\":[" LITTLE ","
               "{\"name\":\"crc32c\"}],\"index_location\":\"end\"}}]", 4 },
    { "uint8", "[{\"name\":\"bytes\"},{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]", 1 },
};

/* Arrays in a repository of one pipeline, and the same in memory. */
typedef struct trial {
    brc_array *a[ARRAYS];
    model m[ARRAYS];
    brc_buf rows;
} trial;

static void name_of(char name[16], int i)
{
    snprintf(name, 16, "/a%d", i);
}

static void make_arrays(trial *x)
{
    static const uint64_t shape[2] = { 60, 64 }, chunk[2] = { 6, 8 };
    char name[16];
    for (int i = 0; i < ARRAYS; i++) {
        name_of(name, i);
        x->a[i] = scenario_array(&t, name, forms[i].dtype, 2, shape, chunk, NULL, forms[i].codecs);
        model_new(&x->m[i], 2, shape, forms[i].item, "\0\0\0\0");
    }
}

static void commit_changes(void)
{
    if (!scenario_is_clean(&t, t.session))
        scenario_commit(&t, "some");
}

/* The same random steps each time for the same seed. */
static void work_on(trial *x, uint64_t seed)
{
    uint8_t *bytes = malloc(60 * 64 * 4), *got = malloc(60 * 64 * 4);
    ck_assert(bytes != NULL && got != NULL);
    for (int step = 0; step < STEPS; step++) {
        brc_sel sel = BRC_SEL_INIT;
        const int i = (int)scenario_below(&seed, ARRAYS);
        model_selection(&x->m[i], &seed, &sel);
        const size_t len = (size_t)brc_sel_count(&sel) * forms[i].item;
        model_bytes(&seed, bytes, len);
        if (scenario_below(&seed, 4) == 0)
            memset(bytes, 0, len);
        if (scenario_below(&seed, 3) == 0) {
            OK(&t, brc_array_read(x->a[i], &sel, got, len, &t.err));
            model_read(&x->m[i], &sel, bytes, NULL);
            ck_assert_int_eq(memcmp(got, bytes, len), 0);
            continue;
        }
        OK(&t, brc_array_write(x->a[i], &sel, bytes, len, &t.err));
        model_write(&x->m[i], &sel, bytes, NULL);
        if (scenario_below(&seed, 6) == 0)
            commit_changes();
    }
    commit_changes();
    free(bytes);
    free(got);
}

static void check_all(trial *x)
{
    for (int i = 0; i < ARRAYS; i++)
        model_check(&x->m[i], &t, x->a[i]);
}

static void trial_end(trial *x)
{
    for (int i = 0; i < ARRAYS; i++) {
        brc_array_free(x->a[i]);
        model_free(&x->m[i]);
    }
    brc_buf_dispose(&x->rows);
}

CASE("equal", .setup = add_ours, .teardown = NULL, .timeout = 300);

/* One history by each pipeline: what is read is what was written, whichever reads it, and the rows
 * of all chunks, with the checksums of their stored bytes, are the same. */
LOOP(P19_P20_all_pipelines_store_and_read_the_same_bytes, 0, 6)
{
    brc_buf first = BRC_BUF_INIT;
    for (int k = 0; k < KINDS; k++) {
        trial x = {.rows = BRC_BUF_INIT};
        scenario_folder(&t);
        open_as(&kinds[k], BRC_OPEN_CREATE);
        make_arrays(&x);
        work_on(&x, 100 + (uint64_t)_i);
        for (int reader = 0; reader < KINDS; reader++) {
            OK(&t, brc_pipeline_set(t.repo, &kinds[reader], &t.err));
            check_all(&x);
        }
        scenario_rows(&t, "SELECT hex(id), encoding, size, stored, checksum FROM object"
                          " WHERE kind=1 ORDER BY id", &x.rows);
        ck_assert_uint_gt(x.rows.len, 4000);
        if (k == 0)
            OK(&t, brc_buf_append(&first, x.rows.data, x.rows.len + 1, &t.err));
        ck_assert_msg(strcmp((char *)first.data, (char *)x.rows.data) == 0, "pipeline %d", k);
        trial_end(&x);
        scenario_whole(&t);
        scenario_stop(&t);
    }
    brc_buf_dispose(&first);
    ck_assert_uint_gt(reversed("reversed_together"), 0);
    ck_assert_uint_gt(together, 0);
    brc_pool_free(pool);
    brc_registry_free(reg);
}

/* ---- batches -------------------------------- */

CASE("batches", .setup = start, .teardown = stop, .timeout = 60);

/* Writes and reads 200 small chunks with the codec that has a batch form. */
static void many_chunks(uint32_t batch)
{
    static const uint64_t shape = 2000, chunk = 10;
    static uint8_t bytes[2000], got[2000];
    static uint64_t seed = 9;
    brc_pipeline_opts opts = BRC_PIPELINE_OPTS_INIT;
    opts.batch = batch;
    OK(&t, brc_pipeline_set(t.repo, &opts, &t.err));
    brc_array *a = scenario_array(&t, batch == 1 ? "/one" : "/many", "uint8", 1, &shape, &chunk,
                                  NULL, forms[3].codecs);
    model_bytes(&seed, bytes, sizeof(bytes));
    batches = 0;
    together = 0;
    OK(&t, brc_array_write(a, NULL, bytes, sizeof(bytes), &t.err));
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    ck_assert_int_eq(memcmp(bytes, got, sizeof(got)), 0);
    brc_array_free(a);
}

TEST(P5_a_codec_with_a_batch_form_gets_batches_unless_they_are_of_one_chunk)
{
    many_chunks(0);
    ck_assert_uint_gt(together, 2);
    ck_assert_uint_lt(batches, 100);
    many_chunks(1);
    ck_assert_uint_eq(together, 0);
}

/* One damaged chunk among many that are decoded together is found, and named. */
TEST(a_damaged_chunk_of_a_batch_is_named)
{
    static uint8_t got[2000];
    many_chunks(0);
    brc_array *a = scenario_array_at(&t, t.session, "/many");
    OK(&t, use("org.example.reversed"));
    scenario_sql(&t, "UPDATE object SET checksum = checksum + 1 WHERE id ="
                     " (SELECT id FROM object WHERE kind=1 ORDER BY id LIMIT 1 OFFSET 57)");
    FAILS(&t, BRC_ECORRUPT, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    ck_assert_msg(strstr(t.err.message, "do not match their checksum"), "%s", t.err.message);
    ck_assert_msg(strstr(t.err.message, "chunk"), "%s", t.err.message);
    scenario_sql(&t, "UPDATE object SET checksum = checksum - 1 WHERE id ="
                     " (SELECT id FROM object WHERE kind=1 ORDER BY id LIMIT 1 OFFSET 57)");
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    brc_array_free(a);
}

/* Chunks of two encodings that lie side by side. */
TEST(chunks_of_two_chains_are_decoded_apart)
{
    static const uint64_t shape = 2000, chunk = 10;
    static uint8_t bytes[2000], got[2000];
    brc_array *a =
        scenario_array(&t, "/two", "uint8", 1, &shape, &chunk, NULL, forms[3].codecs);
    OK(&t, use("org.example.reversed"));
    for (int i = 0; i < 200; i++) {
        brc_sel sel = BRC_SEL_INIT;
        char text[40];
        memset(bytes + i * 10, i, 10);
        snprintf(text, sizeof(text), "[%d:%d]", i * 10, i * 10 + 10);
        OK(&t, brc_sel_parse(&sel, a, text, &t.err));
        OK(&t, brc_array_set_codecs(a, forms[i % 3 ? 3 : 5].codecs, 0, &t.err));
        OK(&t, brc_array_write(a, &sel, bytes + i * 10, 10, &t.err));
    }
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    ck_assert_int_eq(memcmp(bytes, got, sizeof(got)), 0);
    brc_array_free(a);
}

/* ---- pipelines that fail -------------------------------- */

static const struct {
    int fault, reads, writes; /* the codes */
    const char *says;
} faults[] = {
    { SHORT, BRC_ECORRUPT, BRC_EINTERNAL, "" },
    { LONG, BRC_ECORRUPT, BRC_EINTERNAL, "" },
    { FAILS_SO, BRC_EIO, BRC_EIO, "the device is on fire" },
    { STRANGE, BRC_EINTERNAL, BRC_EINTERNAL, "the pipeline gave the result 77" },
    { FAILS_NOWHERE, BRC_EIO, BRC_EIO, "the device is on fire" },
};

static void some_bytes(uint8_t *out, size_t n, uint8_t add)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(i / 3 % 11 + add);
}

/* A fault fails the call, with what the pipeline says, and nothing is lost or stored. */
EACH(a_pipeline_that_fails_loses_nothing, faults)
{
    static const uint64_t shape = 4000, chunk = 1000;
    static uint8_t bytes[4000], got[4000], other[4000];
    brc_array *a = scenario_array(&t, "/a", "uint8", 1, &shape, &chunk, NULL, forms[5].codecs);
    some_bytes(bytes, sizeof(bytes), 0);
    some_bytes(other, sizeof(other), 100);
    OK(&t, use("org.example.bad"));
    OK(&t, brc_array_write(a, NULL, bytes, sizeof(bytes), &t.err));
    fault_encode = faults[_i].fault;
    FAILS(&t, faults[_i].writes, brc_array_write(a, NULL, other, sizeof(other), &t.err));
    ck_assert_msg(strstr(t.err.message, faults[_i].says), "%s", t.err.message);
    fault_encode = NFAULTS;
    fault_decode = faults[_i].fault;
    FAILS(&t, faults[_i].reads, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    ck_assert_msg(strstr(t.err.message, faults[_i].says), "%s", t.err.message);
    fault_decode = NFAULTS;
    OK(&t, use("serial"));
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    ck_assert_int_eq(memcmp(bytes, got, sizeof(got)), 0);
    brc_array_free(a);
}
