/* Maps as plain sorted arrays, and the rule of src/tree/map.h written again, in the most
 * direct way, with the bytes of src/tree/map.h. */
#ifndef BRC_TESTS_MAP_MODEL_H
#define BRC_TESTS_MAP_MODEL_H

#include "../../src/tree/map.h"
#include "store_kit.h"

enum {
    FAMILY_DENSE_1D,
    FAMILY_DENSE_3D,
    FAMILY_SPARSE,     /* three coordinates of any size                          */
    FAMILY_NAMES,      /* children's names, with a zero byte                     */
    FAMILY_BYTE_EDGES, /* chunks around 255, 65535, 2^24                         */
    FAMILY_STRINGS,    /* a length and so many bytes                             */
    FAMILY_STAIRS,     /* each key shares one more bit with the next             */
    FAMILIES,
    FAMILY_DEEPEST = FAMILIES /* the same with the longest keys */
};

#define MODEL_KEY_MAX BRC_KEY_MAX

typedef struct model_key {
    size_t len;
    uint8_t bytes[MODEL_KEY_MAX];
} model_key;

/* All keys that a test may use, sorted; `value` is 0 if the map has none. */
typedef struct map_model {
    model_key *keys;
    uint64_t *values;
    size_t n;
    int variable; /* values of several lengths, or of 16 bytes                   */
} map_model;

void map_model_new(map_model *m, int family, int variable);
void map_model_free(map_model *m);
int map_model_is(const map_model *m, uint64_t value, brc_span bytes);
size_t map_model_count(const map_model *m);

/* Sets the model's and the map's value of keys which[0..n), sorted: to values[i],
 * 0 removes. */
void map_model_edit(map_model *m, store_kit *k, brc_oid *root, const size_t *which,
                    const uint64_t *values, size_t n);
/* The id that the rule gives to the model's contents. */
brc_oid map_model_root(const map_model *m);
/* The map has exactly the model's items; asked one by one, together, and in order. */
void map_model_check(const map_model *m, store_kit *k, const brc_oid *root);
/* brc_map_diff() finds exactly what differs between two arrays of values. */
void map_model_check_diff(const map_model *m, store_kit *k, const brc_oid *a, const uint64_t *a_values,
                          const brc_oid *b, const uint64_t *b_values);

#endif
