/*
 * Object ids, guards and checksums.
 *
 * The id of an object is the file's hash over its canonical bytes, with a seed for
 * each kind. xxh128 is XXH3 with 128 bits, seeded with BRC_SEED(kind), written most
 * significant byte first (XXH128_canonicalFromHash); bytes 16 to 31 are zero.
 */
#ifndef BRC_BASE_HASH_H
#define BRC_BASE_HASH_H

#include "error.h"

/* ---- hash -------------------------------- */

enum { /* the kinds of objects: numbers of the file format */
    BRC_KIND_CHUNK = 1,
    BRC_KIND_DOCUMENT = 2, /* zarr.json, storage options: JSON text             */
    BRC_KIND_NODE = 3,     /* of a map                                          */
    BRC_KIND_COMMIT = 4,
    BRC_KIND_LOOSE = 5     /* bytes under a key that are not a node or chunk yet */
};
#define BRC_KIND_MAX 5

/* The seed of a kind: "brc" and the kind, as a number. */
#define BRC_SEED(kind) (UINT64_C(0x6272630000000000) | (uint64_t)(kind))

enum { BRC_HASH_XXH128 = 1 };

/* Finds a hash by its name. The message of BRC_EUNSUPPORTED lists the known names. */
BRC_MUST_USE int brc_hash_by_name(int *hash, const char *name, brc_error *err);
const char *brc_hash_name(int hash);
size_t brc_hash_len(int hash); /* bytes: 16 for xxh128 */

brc_oid brc_hash_object(int hash, int kind, const void *data, size_t len);

/* If two objects have the same id, their bytes are compared up to this size, whatever
 * their guards say: constructed collisions of XXH3-128 are known for inputs of 4,096
 * bytes. Above this size the guard decides. */
#define BRC_COMPARE_MAX 4096

#define BRC_SECRET_LEN 192
/* Returns XXH3-64 under the file's own secret, which tells two contents apart if a constructed collision
 * gives them one id. */
uint64_t brc_hash_guard(const uint8_t secret[BRC_SECRET_LEN], const void *data, size_t len);
/* Returns XXH3-64 of stored bytes, seeded with the first 8 bytes of the object's id, most
 * significant first, xor the digest of its encoding: the checksum detects another object's bytes in
 * its place, and these bytes under another encoding. */
uint64_t brc_hash_stored(const brc_oid *id, uint64_t encoding_digest, const void *data, size_t len);
/* Returns XXH3-64 without a seed. */
uint64_t brc_hash_bytes(const void *data, size_t len);
/* Returns XXH3-64 of an encoding's specification; the digest of encoding 0 is 0. */
uint64_t brc_hash_encoding(const char *spec);

static inline int brc_oid_is_zero(const brc_oid *id)
{
    for (size_t i = 0; i < sizeof(id->bytes); i++)
        if (id->bytes[i] != 0)
            return 0;
    return 1;
}
int brc_oid_cmp(const brc_oid *a, const brc_oid *b);
/* Reads an id that is written in full, in lower case. Returns 0 if the text is not an id. */
int brc_oid_parse(brc_oid *out, const char *hex);

/* Gets random bytes from the system, for the secret. */
BRC_MUST_USE int brc_random(void *out, size_t len, brc_error *err);

/* ---- id table -------------------------------- */

/* A table of ids, each with a value of fixed size. Open addressing, with a seed that
 * each process draws, so that the author of a hostile file, who chooses its ids, cannot make them
 * collide here. */

typedef struct brc_id_table {
    size_t value_size;
    size_t max;      /* the table is emptied when it has more ids; 0: no limit */
    size_t n, cap;
    void *slots;
    uint64_t seed[2];
} brc_id_table;
#define BRC_ID_TABLE_INIT(size_of_value) { (size_of_value), 0, 0, 0, 0, { 0, 0 } }

/* Returns the value of an id, valid until the next id is added, or NULL if the table does not have it.
 * The zero id is not allowed. */
void *brc_id_table_find(const brc_id_table *table, const brc_oid *id);
/* Finds the value of an id; adds a new id with a value of zeroes. */
BRC_MUST_USE int brc_id_table_add(brc_id_table *table, const brc_oid *id, void **value, brc_error *err);
void brc_id_table_dispose(brc_id_table *table);

#endif
