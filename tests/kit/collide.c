/* See collide.h. XXH3 multiplies halves of the input, each xor a piece of its secret: a
 * half that equals its piece makes the product zero, and the other half is then free, but
 * for a sum that goes in as well. For a seed the secret is known to everybody. */
#define XXH_STATIC_LINKING_ONLY
#include "collide.h"

#include <check.h>
#include <string.h>
#include <xxhash.h>

_Static_assert(BRC_SECRET_LEN == XXH3_SECRET_DEFAULT_SIZE, "a seed's secret has another length");

#define STRIPE 64

static uint64_t word_at(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static void put_word(uint8_t *p, uint64_t v)
{
    memcpy(p, &v, sizeof(v));
}

void collide_secret(int kind, uint8_t secret[BRC_SECRET_LEN])
{
    XXH3_generateSecret_fromSeed(secret, BRC_SEED(kind));
}

/* Up to 128 bytes: 16 of them are multiplied as two words, and their sum goes in. */
static void collide_short(const uint8_t *secret, uint8_t *a, uint8_t *b)
{
    uint64_t low = word_at(secret), high = word_at(secret + 8), other = word_at(a + 8);
    put_word(a, low);
    put_word(b, low + other - high);
    put_word(b + 8, high);
}

/* Above 240 bytes: of each word the two halves are multiplied, and the word is added to
 * another lane; the next stripe's word goes into the same lanes, with the secret's next
 * piece. Both lower halves are made zero, and what one word gains the other loses. */
static void collide_long(const uint8_t *secret, uint8_t *a, uint8_t *b)
{
    const uint64_t lower = 0xffffffff, gain = (uint64_t)7 << 32;
    uint64_t one = (word_at(a) & ~lower) | (word_at(secret) & lower);
    uint64_t two = (word_at(a + STRIPE) & ~lower) | (word_at(secret + 8) & lower);
    put_word(a, one);
    put_word(a + STRIPE, two);
    put_word(b, one + gain);
    put_word(b + STRIPE, two - gain);
}

void collide_pair(int kind, uint8_t *a, uint8_t *b, size_t len)
{
    uint8_t secret[BRC_SECRET_LEN];
    ck_assert(len == 32 || len > 240);
    collide_secret(kind, secret);
    for (size_t i = 0; i < len; i++)
        a[i] = b[i] = (uint8_t)(i / 32 + 1); /* runs: a compressor makes it smaller */
    if (len == 32)
        collide_short(secret, a, b);
    else
        collide_long(secret, a, b);
    brc_oid x = brc_hash_object(BRC_HASH_XXH128, kind, a, len);
    brc_oid y = brc_hash_object(BRC_HASH_XXH128, kind, b, len);
    ck_assert_int_eq(brc_oid_cmp(&x, &y), 0);
    ck_assert(memcmp(a, b, len) != 0);
}
