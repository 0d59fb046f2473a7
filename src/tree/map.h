/*
 * A map from keys to values, kept as a canonical tree of hashed nodes.
 *
 * Keys are byte strings, none of which is a prefix of another (a terminator or
 * self-delimiting parts ensure that). The tree is a binary trie over the keys' bits,
 * cut into nodes of at most BRC_NODE_MAX items by a rule that depends on the set of
 * keys alone, so equal contents have equal roots, however they were made, and a
 * changed value moves no boundary:
 *
 *   A trie vertex with one key is an open group of level 0 with one item. A vertex
 *   with two children joins their groups. The level is the higher of the two; a
 *   group of a lower level is closed first and then counts as one item. Where the
 *   items are at most BRC_NODE_MAX together, they are the vertex's open group.
 *   Where they are more, both are closed, and the vertex's group is one level up
 *   with these two nodes as its items. Closing writes the items as one node. The
 *   root is closed last.
 *
 * A zero id is the empty map.
 */
#ifndef BRC_TREE_MAP_H
#define BRC_TREE_MAP_H

#include "../store/store.h"

#define BRC_NODE_MAX 128
#define BRC_NODE_MAX_LEVEL 40
#define BRC_KEY_MAX 320

typedef struct brc_edit {
    const uint8_t *key;
    size_t key_len;
    const uint8_t *value; /* NULL: the key is removed                           */
    size_t value_len;
} brc_edit;

/* Applies n edits, sorted by key without duplicates, and writes the new nodes.
 * BRC_ECORRUPT if they are not in order. */
BRC_MUST_USE int brc_map_edit(brc_store *store, const brc_oid *root, const brc_edit *edits, size_t n, brc_oid *out, brc_error *err);

/* *found 0 or 1; the value is borrowed until the next call on the store. */
BRC_MUST_USE int brc_map_get(brc_store *store, const brc_oid *root, const void *key, size_t key_len,
                             int *found, brc_span *value, brc_error *err);

/* Called with the value of keys[i] if the map has it; the value is borrowed for the
 * call. */
typedef int (*brc_map_found_fn)(void *ctx, size_t i, brc_span value, brc_error *err);
/* n keys, sorted: nodes are read once each. */
BRC_MUST_USE int brc_map_get_many(brc_store *store, const brc_oid *root, const brc_span *keys,
                                  size_t n, brc_map_found_fn found, void *ctx, brc_error *err);

/* Every item, in the order of keys. */
typedef int (*brc_map_each_fn)(void *ctx, brc_span key, brc_span value, brc_error *err);
BRC_MUST_USE int brc_map_each(brc_store *store, const brc_oid *root, brc_map_each_fn each, void *ctx, brc_error *err);
BRC_MUST_USE int brc_map_count(brc_store *store, const brc_oid *root, uint64_t *count, brc_error *err);

/* Every key whose value differs, in order; a side without the key has data NULL. */
typedef int (*brc_map_diff_fn)(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err);
BRC_MUST_USE int brc_map_diff(brc_store *store, const brc_oid *a, const brc_oid *b, brc_map_diff_fn differs, void *ctx, brc_error *err);
/* Those of n sorted keys whose value differs, by their place. Nodes that lead to none of them are not read. */
typedef int (*brc_map_among_fn)(void *ctx, size_t i, brc_error *err);
BRC_MUST_USE int brc_map_diff_among(brc_store *store, const brc_oid *a, const brc_oid *b, const brc_span *keys, size_t n,
                                    brc_map_among_fn differs, void *ctx, brc_error *err);
/* The same for every key of either side, also where the values are equal. */
BRC_MUST_USE int brc_map_both(brc_store *store, const brc_oid *a, const brc_oid *b, brc_map_diff_fn each, void *ctx, brc_error *err);

/* Checks the node's form and order, and calls `child` for each node under it, with the
 * level and items that it must have, or `item` for each key. */
typedef int (*brc_map_child_fn)(void *ctx, const brc_oid *id, brc_error *err);
BRC_MUST_USE int brc_map_check_node(brc_span node, size_t id_len, brc_map_child_fn child, brc_map_each_fn item, void *ctx, brc_error *err);

#endif
