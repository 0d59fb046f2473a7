/* Object ids, guards and checksums over xxHash's XXH3. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "breccia is neither written nor tested for big-endian machines: its files would be wrong"
#endif

#include "hash.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

/* Compiled in, XXH3 would use only the instructions that every machine has; the
 * library looks at the machine that it runs on and is four times faster. */
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

_Static_assert(BRC_SECRET_LEN >= XXH3_SECRET_SIZE_MIN, "XXH3 needs a longer secret");

int brc_hash_by_name(int *hash, const char *name, brc_error *err)
{
    *hash = 0;
    if (strcmp(name, "xxh128") != 0)
        return brc_fail(err, BRC_EUNSUPPORTED, "hash \"%s\" is not known; this build has xxh128",
                        name);
    *hash = BRC_HASH_XXH128;
    return BRC_OK;
}

const char *brc_hash_name(int hash)
{
    return hash == BRC_HASH_XXH128 ? "xxh128" : "unknown";
}

size_t brc_hash_len(int hash)
{
    return hash == BRC_HASH_XXH128 ? sizeof(XXH128_canonical_t) : 0;
}

brc_oid brc_hash_object(int hash, int kind, const void *data, size_t len)
{
    brc_oid id;
    memset(&id, 0, sizeof(id));
    if (hash != BRC_HASH_XXH128)
        return id;
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_withSeed(data, len, BRC_SEED(kind)));
    memcpy(id.bytes, canonical.digest, sizeof(canonical.digest));
    return id;
}

uint64_t brc_hash_guard(const uint8_t secret[BRC_SECRET_LEN], const void *data, size_t len)
{
    return XXH3_64bits_withSecret(data, len, secret, BRC_SECRET_LEN);
}

uint64_t brc_hash_stored(const brc_oid *id, uint64_t encoding_digest, const void *data, size_t len)
{
    uint64_t seed = 0;
    for (size_t i = 0; i < 8; i++)
        seed = seed << 8 | id->bytes[i];
    return XXH3_64bits_withSeed(data, len, seed ^ encoding_digest);
}

uint64_t brc_hash_bytes(const void *data, size_t len)
{
    return XXH3_64bits(data, len);
}

uint64_t brc_hash_encoding(const char *spec)
{
    return brc_hash_bytes(spec, strlen(spec));
}

int brc_oid_cmp(const brc_oid *a, const brc_oid *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

int brc_oid_parse(brc_oid *out, const char *hex)
{
    const size_t len = strlen(hex);
    memset(out, 0, sizeof(*out));
    if ((len != 32 && len != 64) || strspn(hex, "0123456789abcdef") != len)
        return 0;
    for (size_t i = 0; i < len; i++) {
        const int digit = hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10;
        out->bytes[i / 2] = (uint8_t)(out->bytes[i / 2] << 4 | digit);
    }
    return 1;
}

char *brc_oid_format(char out[65], const brc_oid *id)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = 16;
    for (size_t i = 16; i < sizeof(id->bytes); i++)
        if (id->bytes[i] != 0)
            n = sizeof(id->bytes);
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[id->bytes[i] >> 4];
        out[2 * i + 1] = digits[id->bytes[i] & 15];
    }
    out[2 * n] = 0;
    return out;
}

int brc_random(void *out, size_t len, brc_error *err)
{
    uint8_t *p = out;
    while (len > 0) {
        ssize_t n = getrandom(p, len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return brc_fail_os(err, n < 0 ? errno : EIO, "cannot read", "random bytes");
        p += n;
        len -= (size_t)n;
    }
    return BRC_OK;
}
