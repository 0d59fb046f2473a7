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
 *   group of a lower level is closed first and then counts as one item. If the
 *   items are at most BRC_NODE_MAX together, they are the vertex's open group.
 *   If they are more, both groups are closed, and the vertex's group is one level up
 *   with these two nodes as its items. Closing writes the items as one node. The
 *   root is closed last.
 *
 * A zero id is the empty map.
 */
#ifndef BRC_TREE_MAP_H
#define BRC_TREE_MAP_H

#include "../base/hash.h"
#include "../breccia_codec.h"
#include "../store/store.h"

/* ---- chunk key -------------------------------- */

/*
 * A chunk as an item of an array's map: the key is its coordinates, the value its id.
 *
 * A coordinate is one byte with its length (0 to 8), then as many bytes, most
 * significant first, without leading zeros. So the order of keys is the row-major
 * order of chunks, and no key is a prefix of another.
 */

#define BRC_CHUNK_KEY_MAX (9 * BRC_MAX_NDIM)

size_t brc_chunk_key_encode(uint8_t out[BRC_CHUNK_KEY_MAX], int ndim, const uint64_t *index);
/* Returns the rank, or -1 if the bytes are not a chunk's key. */
int brc_chunk_key_decode(const uint8_t *key, size_t len, uint64_t index[BRC_MAX_NDIM]);
/* Reads the id from a chunk's value: `id_len` bytes, not all zero. BRC_ECORRUPT if the value is not an id. */
BRC_MUST_USE int brc_chunk_id_of(brc_span value, size_t id_len, brc_oid *out, brc_error *err);

/* ---- map -------------------------------- */

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

/* A node that became another because the edits [from, to) replace values under it. */
typedef struct brc_map_change {
    brc_oid was, now;
    size_t from, to;
} brc_map_change;
/* The nodes and values that edits changed, if each edit replaces a value by one of the same length; otherwise empty. */
typedef struct brc_map_changes {
    void *nodes; /* brc_map_change[]: each touched node, children before the node above */
    size_t n, cap;
    void *values; /* uint8_t[]: the value that each edit replaced, of `value_len` bytes each */
    size_t value_len;
} brc_map_changes;
/* Does the same as brc_map_edit(), and lists the changes, which the caller disposes of, also after a failure. */
BRC_MUST_USE int brc_map_edit_noting(brc_store *store, const brc_oid *root, const brc_edit *edits, size_t n, brc_oid *out,
                                     brc_map_changes *changes, brc_error *err);
void brc_map_changes_dispose(brc_map_changes *changes);

/* Looks a key up. Sets *found to 0 or 1; the value is borrowed until the next call on the store. */
BRC_MUST_USE int brc_map_get(brc_store *store, const brc_oid *root, const void *key, size_t key_len,
                             int *found, brc_span *value, brc_error *err);

/* Called with the value of keys[i] if the map has it; the value is borrowed for the
 * call. */
typedef int (*brc_map_found_fn)(void *ctx, size_t i, brc_span value, brc_error *err);
/* Looks up n sorted keys, reading each node once. */
BRC_MUST_USE int brc_map_get_many(brc_store *store, const brc_oid *root, const brc_span *keys,
                                  size_t n, brc_map_found_fn found, void *ctx, brc_error *err);

/* Calls `each` with every item, in the order of keys. */
typedef int (*brc_map_each_fn)(void *ctx, brc_span key, brc_span value, brc_error *err);
BRC_MUST_USE int brc_map_each(brc_store *store, const brc_oid *root, brc_map_each_fn each, void *ctx, brc_error *err);
BRC_MUST_USE int brc_map_count(brc_store *store, const brc_oid *root, uint64_t *count, brc_error *err);

/* Calls `differs` with every key whose values differ, in order; the value of a side without the key has data NULL. */
typedef int (*brc_map_diff_fn)(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err);
BRC_MUST_USE int brc_map_diff(brc_store *store, const brc_oid *a, const brc_oid *b, brc_map_diff_fn differs, void *ctx, brc_error *err);
/* Calls `differs` with the index of each of n sorted keys whose values differ. Nodes that lead to none of the keys
 * are not read. */
typedef int (*brc_map_among_fn)(void *ctx, size_t i, brc_error *err);
BRC_MUST_USE int brc_map_diff_among(brc_store *store, const brc_oid *a, const brc_oid *b, const brc_span *keys, size_t n,
                                    brc_map_among_fn differs, void *ctx, brc_error *err);
/* Calls `each` with every key of either side, even if the values are equal. */
BRC_MUST_USE int brc_map_both(brc_store *store, const brc_oid *a, const brc_oid *b, brc_map_diff_fn each, void *ctx, brc_error *err);

/* Checks the node's form and order, and calls `child` with the id of each child, or `item` with each
 * key of a leaf. */
typedef int (*brc_map_child_fn)(void *ctx, const brc_oid *id, brc_error *err);
BRC_MUST_USE int brc_map_check_node(brc_span node, size_t id_len, brc_map_child_fn child, brc_map_each_fn item, void *ctx, brc_error *err);

/* ---- node -------------------------------- */

/*
 * The bytes of a node.
 *
 *   leaf      u8 0, varint count, varint width, then for each item
 *               varint shared, varint rest, `rest` bytes of the key,
 *               [varint length, where width is 0,] the value
 *   interior  u8 level, varint count, then for each child
 *               varint shared, varint bits, the prefix's remaining bytes,
 *               u8 level, varint items, varint keys, the child's id
 *
* `shared` is the number of all leading bytes that equal those of the previous item.
 * `width` is the length of every value if all are equal and not empty, else 0. A
 * child's prefix is the bits that all its keys begin with, most significant bit first,
 * padded with zero bits. Items are in order, and no prefix is a prefix of another.
 * `items` counts the child's own items, `keys` the keys in its whole subtree.
 */

typedef struct brc_item {
    struct brc_item *next;
    const uint8_t *key; /* a child's prefix, padded                              */
    size_t bits;        /* 8 * length for keys                                   */
    brc_span value;     /* of a key                                              */
    int is_child;
    unsigned level, weight; /* of a child: its level and items                   */
    uint64_t keys;          /* of a child: keys in its whole subtree             */
    brc_oid id;
} brc_item;

static inline size_t brc_bits_bytes(size_t bits)
{
    return (bits + 7) / 8;
}
/* Returns how many leading bits both share. */
size_t brc_bits_common(const uint8_t *a, size_t a_bits, const uint8_t *b, size_t b_bits);
/* Returns < 0, 0 or > 0: the key comes before the prefix, begins with it, or comes after it. */
int brc_bits_order(const uint8_t *key, size_t key_bits, const uint8_t *prefix, size_t prefix_bits);
static inline int brc_bit(const uint8_t *key, size_t i)
{
    return key[i / 8] >> (7 - i % 8) & 1;
}

/* Reads items one by one; their keys lie in the reader's own memory until the
 * next one, values and ids in the node's bytes. */
typedef struct brc_node_reader {
    brc_reader r;
    size_t id_len;
    unsigned level, count, at;
    uint64_t width;
    size_t bits; /* of the previous item */
    uint8_t key[BRC_KEY_MAX];
} brc_node_reader;
BRC_MUST_USE int brc_node_open(brc_node_reader *reader, brc_span node, size_t id_len, brc_error *err);
/* Returns 1 with an item, 0 at the end. */
BRC_MUST_USE int brc_node_next(brc_node_reader *reader, brc_item *item, brc_error *err);

/* The facts that a parent records of its child, taken from the child itself. */
typedef struct brc_node_facts {
    unsigned level, count;
    uint64_t keys;      /* in the whole subtree, at most 2^64 - 1                */
    size_t bits;        /* length of the prefix that every key begins with       */
    uint8_t prefix[BRC_KEY_MAX];
} brc_node_facts;
/* Reads every item, with every check that the node alone allows. */
BRC_MUST_USE int brc_node_facts_read(brc_node_facts *out, brc_span node, size_t id_len, brc_error *err);
/* Returns BRC_ECORRUPT if the parent's item does not match the facts. */
BRC_MUST_USE int brc_node_facts_match(const brc_node_facts *facts, const brc_item *child, brc_error *err);

/* Appends the node with these `count` items. */
BRC_MUST_USE int brc_node_write(brc_buf *out, unsigned level, unsigned count, const brc_item *first, size_t id_len, brc_error *err);

/* ---- map cursor -------------------------------- */

/*
 * A place in a map: the nodes from the root down, and the current item.
 *
 * A child is entered only if its node matches what its parent records: level, items, keys
 * in the subtree, and a prefix that every key begins with. The prefixes of one
 * node are disjoint and in order. So keys come in order over the whole map, a node does not
 * occur in two places, and a walk through a stranger's nodes ends. Levels fall on the
 * way down, so a path has at most BRC_NODE_MAX_LEVEL + 1 nodes.
 */

typedef struct brc_map_cursor {
    brc_store *store;
    struct map_frame *top;
    brc_item head; /* a key, or a child; borrowed until the next step           */
    int at_end;
} brc_map_cursor;

/* Starts a cursor at the first item of the root's node, or at the end if the root is zero.
 * brc_map_cursor_end() releases the cursor, also after a failure. */
BRC_MUST_USE int brc_map_cursor_start(brc_map_cursor *c, brc_store *store, const brc_oid *root, brc_error *err);
void brc_map_cursor_end(brc_map_cursor *c);
/* Moves past the head, and past its whole subtree if the head is a child. */
BRC_MUST_USE int brc_map_cursor_step(brc_map_cursor *c, brc_error *err);
/* Moves to the first item that does not come before the key: the key itself, a later key, or a child
 * that has only later keys. */
BRC_MUST_USE int brc_map_cursor_seek(brc_map_cursor *c, const uint8_t *key, size_t len, brc_error *err);
/* Moves down to the next key, or to the end. */
BRC_MUST_USE int brc_map_cursor_descend(brc_map_cursor *c, brc_error *err);

#endif
