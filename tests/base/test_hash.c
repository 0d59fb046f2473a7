/* Ids, guards and checksums against values of the xxHash library and xxhsum. */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "../../src/base/hash.h"
#include "../kit/suite.h"

TEST_SUITE(hash);

static void fill_pattern(uint8_t *out, size_t len, unsigned factor, unsigned start)
{
    for (size_t i = 0; i < len; i++)
        out[i] = (uint8_t)(i * factor + start);
}

/* The value is the output of `printf abc | xxhsum -H2`: the installed library is the XXH3 that we
 * mean. */
TEST(the_library_is_xxh3)
{
    XXH128_canonical_t c;
    XXH128_canonicalFromHash(&c, XXH3_128bits("abc", 3));
    ck_assert_mem_eq(c.digest,
                     "\x06\xb0\x5a\xb6\x73\x3a\x61\x85\x78\xaf\x5f\x94\x89\x2f\x39\x50", 16);
}

/* Numbers of the file format: were one of these to change, no file would open. */
TEST(ids_never_change)
{
    static const struct {
        int kind;
        size_t len;
        const char *hex;
    } known[] = {
        { BRC_KIND_CHUNK, 0, "78a8595912da4391d975c2b42a7e35c4" },
        { BRC_KIND_CHUNK, 1024, "03b8b59a952923d94c08bfe3609e0adf" },
        { BRC_KIND_DOCUMENT, 0, "8e20f0389e49d84ef97cc4588b506901" },
        { BRC_KIND_DOCUMENT, 1024, "ed5c6d2ea093c187eba6b9b80ba3bf26" },
        { BRC_KIND_NODE, 0, "b26134f7278b6bebc12a67b3f2c34d8f" },
        { BRC_KIND_NODE, 1024, "6327cf736feecf1d15db1b6e2608d760" },
        { BRC_KIND_COMMIT, 0, "afae5e95ca5fbf48c541380e94854543" },
        { BRC_KIND_COMMIT, 1024, "a38a8e1934b9f28126b72c668f1b67ca" },
    };
    uint8_t data[1024];
    fill_pattern(data, sizeof(data), 31, 0);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        brc_oid id = brc_hash_object(BRC_HASH_XXH128, known[i].kind, data, known[i].len);
        char hex[65];
        ck_assert_ptr_eq(brc_oid_format(hex, &id), hex);
        ck_assert_str_eq(hex, known[i].hex);
        for (size_t j = 16; j < 32; j++)
            ck_assert_uint_eq(id.bytes[j], 0);
    }
    brc_oid id = brc_hash_object(BRC_HASH_XXH128, BRC_KIND_NODE, "abc", 3);
    char hex[65];
    ck_assert_str_eq(brc_oid_format(hex, &id), "094773e30883f330e58e2f9ad350b699");
}

TEST(kinds_are_separate)
{
    brc_oid ids[BRC_KIND_MAX];
    for (int kind = 1; kind <= BRC_KIND_MAX; kind++) {
        ids[kind - 1] = brc_hash_object(BRC_HASH_XXH128, kind, "same", 4);
        for (int other = 1; other < kind; other++)
            ck_assert_int_ne(brc_oid_cmp(&ids[kind - 1], &ids[other - 1]), 0);
    }
}

TEST(guards_depend_on_the_secret)
{
    uint8_t secret[BRC_SECRET_LEN], data[1024];
    fill_pattern(secret, sizeof(secret), 7, 1);
    fill_pattern(data, sizeof(data), 31, 0);
    ck_assert_uint_eq(brc_hash_guard(secret, "abc", 3), UINT64_C(0xac9cf8582bddd816));
    ck_assert_uint_eq(brc_hash_guard(secret, data, 1024), UINT64_C(0xb38e8ee153ad233c));
    secret[BRC_SECRET_LEN - 32] ^= 1;
    ck_assert_uint_ne(brc_hash_guard(secret, data, 1024), UINT64_C(0xb38e8ee153ad233c));
}

TEST(checksums_depend_on_the_id)
{
    brc_oid id, other;
    fill_pattern(id.bytes, sizeof(id.bytes), 1, 1); /* 01 02 03 ... */
    other = id;
    other.bytes[7] ^= 1;
    ck_assert_uint_eq(brc_hash_stored(&id, 0, "abc", 3), UINT64_C(0x37049b5738cb788a));
    ck_assert_uint_ne(brc_hash_stored(&other, 0, "abc", 3), UINT64_C(0x37049b5738cb788a));
    ck_assert_uint_ne(brc_hash_stored(&id, 0, "abd", 3), UINT64_C(0x37049b5738cb788a));
}

/* FORMAT.md says that the seed is the first 8 bytes of the id xor the encoding's digest. */
TEST(f22_checksums_depend_on_the_encoding)
{
    brc_oid id;
    fill_pattern(id.bytes, sizeof(id.bytes), 1, 1);
    const uint64_t seed = UINT64_C(0x0102030405060708), digest = UINT64_C(0x0f0f0f0f0f0f0f0f);
    ck_assert_uint_eq(brc_hash_stored(&id, digest, "abc", 3),
                      XXH3_64bits_withSeed("abc", 3, seed ^ digest));
    ck_assert_uint_eq(brc_hash_stored(&id, UINT64_MAX, "abc", 3),
                      XXH3_64bits_withSeed("abc", 3, ~seed));
    ck_assert_uint_eq(brc_hash_encoding("{}"), XXH3_64bits("{}", 2));
}

TEST(hashes_have_names)
{
    int hash = 7;
    brc_error err = BRC_ERROR_INIT;
    ck_assert_int_eq(brc_hash_by_name(&hash, "xxh128", &err), BRC_OK);
    ck_assert_int_eq(hash, BRC_HASH_XXH128);
    ck_assert_str_eq(brc_hash_name(hash), "xxh128");
    ck_assert_uint_eq(brc_hash_len(hash), 16);
    ck_assert_int_eq(brc_hash_by_name(&hash, "md5", &err), BRC_EUNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "md5"));
    ck_assert_ptr_nonnull(strstr(err.message, "xxh128"));
    ck_assert_uint_eq(brc_hash_len(99), 0);
}

TEST(ids_print_and_compare)
{
    brc_oid a = { { 0 } }, b = { { 0 } };
    char hex[65];
    ck_assert(brc_oid_is_zero(&a));
    ck_assert_str_eq(brc_oid_format(hex, &a), "00000000000000000000000000000000");
    b.bytes[31] = 0xAB;
    ck_assert(!brc_oid_is_zero(&b));
    brc_oid_format(hex, &b);
    ck_assert_uint_eq(strlen(hex), 64);
    ck_assert_str_eq(hex + 62, "ab");
    ck_assert_int_lt(brc_oid_cmp(&a, &b), 0);
    ck_assert_int_gt(brc_oid_cmp(&b, &a), 0);
    a.bytes[0] = 0xFF; /* bytes are unsigned */
    ck_assert_int_gt(brc_oid_cmp(&a, &b), 0);
    ck_assert_int_eq(brc_oid_cmp(&a, &a), 0);
}

TEST(random_bytes_differ)
{
    uint8_t a[BRC_SECRET_LEN] = { 0 }, b[BRC_SECRET_LEN] = { 0 };
    ck_assert_int_eq(brc_random(a, sizeof(a), NULL), BRC_OK);
    ck_assert_int_eq(brc_random(b, sizeof(b), NULL), BRC_OK);
    ck_assert_mem_ne(a, b, sizeof(a));
    ck_assert_mem_ne(a + 176, b + 176, 16);
}
