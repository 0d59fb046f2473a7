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
 * `shared` bytes are the same as in the item before, and there are no more of these.
 * `width` is the length of every value if all are equal and not empty, else 0. A
 * child's prefix is the bits that all its keys begin with, most significant bit first,
 * padded with zero bits. Items are in order, and no prefix is a prefix of another.
 * `items` are the child's own, `keys` those in its whole subtree.
 */
#ifndef BRC_TREE_NODE_H
#define BRC_TREE_NODE_H

#include "map.h"

typedef struct brc_item {
    struct brc_item *next;
    const uint8_t *key; /* a child's prefix, padded                              */
    size_t bits;        /* 8 * length for keys                                   */
    brc_span value;     /* of a key                                              */
    int is_child;
    unsigned level, weight; /* of a child: its level and items                   */
    uint64_t keys;          /* in it                                             */
    brc_oid id;
} brc_item;

static inline size_t brc_bits_bytes(size_t bits)
{
    return (bits + 7) / 8;
}
/* How many leading bits both share. */
size_t brc_bits_common(const uint8_t *a, size_t a_bits, const uint8_t *b, size_t b_bits);
/* < 0, 0, > 0: before the prefix, beginning with it, after it. */
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
    size_t bits; /* of the item before */
    uint8_t key[BRC_KEY_MAX];
} brc_node_reader;
BRC_MUST_USE int brc_node_open(brc_node_reader *reader, brc_span node, size_t id_len, brc_error *err);
/* 1 with an item, 0 at the end. */
BRC_MUST_USE int brc_node_next(brc_node_reader *reader, brc_item *item, brc_error *err);

/* What the node above says of a node, taken from the node itself. */
typedef struct brc_node_facts {
    unsigned level, count;
    uint64_t keys;      /* in all, at most 2^64 - 1                              */
    size_t bits;        /* which every key begins with                           */
    uint8_t prefix[BRC_KEY_MAX];
} brc_node_facts;
/* Reads every item, with every check that the node alone allows. */
BRC_MUST_USE int brc_node_facts_read(brc_node_facts *out, brc_span node, size_t id_len, brc_error *err);
/* BRC_ECORRUPT if the item says anything else. */
BRC_MUST_USE int brc_node_facts_match(const brc_node_facts *facts, const brc_item *child, brc_error *err);

/* Reads a child's node and checks it against what its parent says of it. */
BRC_MUST_USE int brc_node_load(brc_store *store, const brc_oid *id, const brc_item *child, brc_node_reader *reader, brc_error *err);

/* Appends the node with these `count` items. */
BRC_MUST_USE int brc_node_write(brc_buf *out, unsigned level, unsigned count, const brc_item *first, size_t id_len, brc_error *err);

#endif
