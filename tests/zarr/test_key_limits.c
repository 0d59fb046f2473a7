/* The costs that a read of a key may have: brc_key_limit(). */
#include <string.h>

#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(key_limits);

SCENARIO_FIXTURE(t)

CASE("key_limits", .setup = t_start, .teardown = t_stop);

#define LITTLE "{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}}"

enum { CHUNK = 64, BYTES = CHUNK * 4 };

static void limit(uint64_t decoded, uint64_t bytes, uint32_t flags)
{
    brc_key_limits limits = BRC_KEY_LIMITS_INIT;
    limits.decoded = decoded;
    limits.bytes = bytes;
    limits.flags = flags;
    OK(&t, brc_key_limit(t.session, &limits, &t.err));
}

/* Reads the key, or only its info; returns the result, and the length in *len. */
static int look(const char *key, const brc_key_range *range, int reads, size_t *len)
{
    brc_buf out = BRC_BUF_INIT;
    brc_key_info info = BRC_KEY_INFO_INIT;
    const int rc = brc_key_get(reads ? &out : NULL, t.session, key, range, &info, &t.err);
    if (len != NULL)
        *len = reads ? out.len : (size_t)info.length;
    brc_buf_dispose(&out);
    return rc;
}

/* Two chunks of numbers, of which the second is stored as the codecs are later. */
static void two_chunks(const char *codecs)
{
    brc_array *a;
    int32_t values[2 * CHUNK];
    brc_sel sel = BRC_SEL_INIT;
    for (int i = 0; i < 2 * CHUNK; i++)
        values[i] = i * 7;
    a = scenario_array(&t, "/a", "int32", 1, (uint64_t[]){ 2 * CHUNK }, (uint64_t[]){ CHUNK }, NULL,
                       "[" LITTLE "]");
    OK(&t, brc_array_write(a, NULL, values, sizeof(values), &t.err));
    OK(&t, brc_array_set_codecs(a, codecs, 0, &t.err));
    for (int i = 0; i < CHUNK; i++)
        values[i] = i * 5;
    OK(&t, brc_sel_parse(&sel, a, "[64:128]", &t.err));
    OK(&t, brc_array_write(a, &sel, values, BYTES, &t.err));
    brc_array_free(a);
}

TEST(a_chunk_in_another_encoding_costs_what_it_has_decoded)
{
    size_t len;
    scenario_inline(&t);
    two_chunks("[" LITTLE ", {\"name\": \"zstd\", \"configuration\": {\"level\": 3}}]");
    limit(0, 0, BRC_KEYS_STORED);
    FAILS(&t, BRC_ELIMIT, look("a/c/0", NULL, 1, NULL));
    ck_assert(strstr(t.err.message, "a/c/0") != NULL);
    FAILS(&t, BRC_ELIMIT, look("a/c/0", NULL, 0, NULL));
    OK(&t, look("a/c/1", NULL, 1, &len));
    OK(&t, look("a/zarr.json", NULL, 1, NULL));
    limit(BYTES - 1, 0, 0);
    FAILS(&t, BRC_ELIMIT, look("a/c/0", NULL, 1, NULL));
    OK(&t, look("a/c/1", NULL, 1, NULL));
    limit(BYTES, 0, 0);
    OK(&t, look("a/c/0", NULL, 1, NULL));
    limit(1, 0, 0);
    OK(&t, brc_key_limit(t.session, NULL, &t.err));
    OK(&t, look("a/c/0", NULL, 1, NULL));
}

TEST(a_value_may_be_too_long_at_once)
{
    const brc_key_range few = { sizeof(brc_key_range), BRC_RANGE_BETWEEN, 8, 12 };
    size_t len;
    two_chunks("[" LITTLE "]");
    limit(0, BYTES - 1, 0);
    FAILS(&t, BRC_ELIMIT, look("a/c/0", NULL, 1, NULL));
    OK(&t, look("a/c/0", NULL, 0, &len));
    ck_assert_uint_eq(len, BYTES);
    /* A part of a chunk is cut from the whole. */
    FAILS(&t, BRC_ELIMIT, look("a/c/0", &few, 1, NULL));
    limit(0, BYTES, 0);
    OK(&t, look("a/c/0", NULL, 1, NULL));
}

TEST(of_a_shard_what_is_asked_for_counts)
{
    static const char codecs[] =
        "[{\"name\": \"sharding_indexed\", \"configuration\": {\"chunk_shape\": [64], "
        "\"index_codecs\": [" LITTLE ", {\"name\": \"crc32c\"}], \"codecs\": [" LITTLE ", "
        "{\"name\": \"gzip\", \"configuration\": {\"level\": 1}}]}}]";
    const brc_key_range last = { sizeof(brc_key_range), BRC_RANGE_LAST, 8, 0 };
    int32_t values[4 * CHUNK] = { 0 };
    size_t whole;
    scenario_inline(&t);
    brc_array *a = scenario_array(&t, "/s", "int32", 1, (uint64_t[]){ 4 * CHUNK },
                                  (uint64_t[]){ 4 * CHUNK }, NULL, codecs);
    for (int i = 0; i < 4 * CHUNK; i++)
        values[i] = i;
    OK(&t, brc_array_write(a, NULL, values, sizeof(values), &t.err));
    limit(0, 0, BRC_KEYS_STORED);
    OK(&t, look("s/c/0", NULL, 1, &whole));
    limit(0, whole - 1, 0);
    FAILS(&t, BRC_ELIMIT, look("s/c/0", NULL, 1, NULL));
    OK(&t, look("s/c/0", &last, 1, NULL));
    /* Each of the four is in another encoding now, and the layout needs all of their lengths. */
    OK(&t, brc_array_set_codecs(a, "[{\"name\": \"zstd\", \"configuration\": {\"level\": 1}}]", 0,
                                &t.err));
    brc_array_free(a);
    limit(0, 0, BRC_KEYS_STORED);
    FAILS(&t, BRC_ELIMIT, look("s/c/0", &last, 1, NULL));
    limit(4 * BYTES - 1, 0, 0);
    FAILS(&t, BRC_ELIMIT, look("s/c/0", &last, 1, NULL));
    limit(4 * BYTES, 0, 0);
    OK(&t, look("s/c/0", &last, 1, NULL));
}

TEST(unknown_flags_are_refused)
{
    brc_key_limits limits = BRC_KEY_LIMITS_INIT;
    limits.flags = 2;
    FAILS(&t, BRC_EINVAL, brc_key_limit(t.session, &limits, &t.err));
}
