/* Object ids, guards and checksums over xxHash's XXH3. */
#include "hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "alloc.h"

/* ==== hash ================================ */

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "breccia is neither written nor tested for big-endian machines: its files would be wrong"
#endif

/* Compiled in, XXH3 would use only the instructions that every machine has; the
 * library looks at the machine that it runs on and is four times faster. */
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

/* libxxhash's loops for wide registers (0.8.1, as Debian has it) end without clearing the upper
 * halves of the registers. SSE instructions of this thread then wait for these halves: loops over
 * doubles took 3.5 times as long on an AMD EPYC of 2022. */
#if defined(__x86_64__)
__attribute__((target("avx"))) static void clear_upper_halves(void)
{
    __builtin_ia32_vzeroupper();
}

static void leave_wide_registers(void)
{
    if (__builtin_cpu_supports("avx"))
        clear_upper_halves();
}
#else
static void leave_wide_registers(void)
{
}
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
    leave_wide_registers();
    memcpy(id.bytes, canonical.digest, sizeof(canonical.digest));
    return id;
}

uint64_t brc_hash_guard(const uint8_t secret[BRC_SECRET_LEN], const void *data, size_t len)
{
    const uint64_t sum = XXH3_64bits_withSecret(data, len, secret, BRC_SECRET_LEN);
    leave_wide_registers();
    return sum;
}

uint64_t brc_hash_stored(const brc_oid *id, uint64_t encoding_digest, const void *data, size_t len)
{
    uint64_t seed = 0;
    for (size_t i = 0; i < 8; i++)
        seed = seed << 8 | id->bytes[i];
    const uint64_t sum = XXH3_64bits_withSeed(data, len, seed ^ encoding_digest);
    leave_wide_registers();
    return sum;
}

uint64_t brc_hash_bytes(const void *data, size_t len)
{
    const uint64_t sum = XXH3_64bits(data, len);
    leave_wide_registers();
    return sum;
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

/* ==== id table ================================ */

/* Returns the bytes of a slot: an id and its value. A slot with a zero id is free. */
static size_t slot_size(const brc_id_table *t)
{
    return sizeof(brc_oid) + (t->value_size + 7) / 8 * 8;
}

__extension__ typedef unsigned __int128 wide;

static uint64_t id_mix(uint64_t a, uint64_t b)
{
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static size_t id_place(const brc_id_table *t, const brc_oid *id)
{
    uint64_t part[4];
    memcpy(part, id->bytes, sizeof(part));
    uint64_t h = id_mix(part[0] ^ t->seed[0], part[1] ^ t->seed[1]);
    h = id_mix(h ^ part[2] ^ t->seed[1], part[3] ^ t->seed[0]);
    return (size_t)h & (t->cap - 1);
}

/* Returns the slot of the id, or the free slot for it. */
static uint8_t *id_slot(const brc_id_table *t, const brc_oid *id)
{
    size_t size = slot_size(t), at = id_place(t, id);
    for (;;) {
        uint8_t *slot = (uint8_t *)t->slots + at * size;
        if (brc_oid_cmp((const brc_oid *)(void *)slot, id) == 0 ||
            brc_oid_is_zero((const brc_oid *)(void *)slot))
            return slot;
        at = (at + 1) & (t->cap - 1);
    }
}

void *brc_id_table_find(const brc_id_table *t, const brc_oid *id)
{
    if (t->n == 0)
        return NULL;
    uint8_t *slot = id_slot(t, id);
    return brc_oid_is_zero((const brc_oid *)(void *)slot) ? NULL : slot + sizeof(brc_oid);
}

static int id_table_grow(brc_id_table *t, brc_error *err)
{
    void *p;
    brc_id_table bigger = *t;
    size_t size = slot_size(t);
    bigger.cap = t->cap == 0 ? 64 : t->cap * 2;
    if (t->cap == 0) {
        BRC_TRY(brc_random(bigger.seed, sizeof(bigger.seed), err));
        bigger.seed[0] |= 1;
        bigger.seed[1] |= 1;
    }
    BRC_TRY(brc_new_array(&p, bigger.cap, size, err));
    bigger.slots = p;
    for (size_t i = 0; i < t->cap; i++) {
        const uint8_t *slot = (const uint8_t *)t->slots + i * size;
        if (!brc_oid_is_zero((const brc_oid *)(const void *)slot))
            memcpy(id_slot(&bigger, (const brc_oid *)(const void *)slot), slot, size);
    }
    free(t->slots);
    *t = bigger;
    return BRC_OK;
}

int brc_id_table_add(brc_id_table *t, const brc_oid *id, void **value, brc_error *err)
{
    if (t->max > 0 && t->n >= t->max) {
        memset(t->slots, 0, t->cap * slot_size(t));
        t->n = 0;
    }
    if ((t->n + 1) * 3 > t->cap * 2)
        BRC_TRY(id_table_grow(t, err));
    uint8_t *slot = id_slot(t, id);
    if (brc_oid_is_zero((const brc_oid *)(void *)slot)) {
        memcpy(slot, id, sizeof(*id));
        t->n++;
    }
    if (value != NULL)
        *value = slot + sizeof(brc_oid);
    return BRC_OK;
}

void brc_id_table_dispose(brc_id_table *t)
{
    free(t->slots);
    t->slots = NULL;
    t->n = t->cap = 0;
}
