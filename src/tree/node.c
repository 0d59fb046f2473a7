#include "node.h"

#include <string.h>

#include "../base/alloc.h"

size_t brc_bits_common(const uint8_t *a, size_t a_bits, const uint8_t *b, size_t b_bits)
{
    size_t max = a_bits < b_bits ? a_bits : b_bits;
    size_t i = 0;
    while (i + 8 <= max && a[i / 8] == b[i / 8])
        i += 8;
    while (i < max && brc_bit(a, i) == brc_bit(b, i))
        i++;
    return i;
}

int brc_bits_order(const uint8_t *key, size_t key_bits, const uint8_t *prefix, size_t prefix_bits)
{
    size_t common = brc_bits_common(key, key_bits, prefix, prefix_bits);
    if (common == prefix_bits)
        return 0;
    if (common == key_bits) /* the key is the shorter one, which is not valid here */
        return -1;
    return brc_bit(key, common) ? 1 : -1;
}

static int node_broken(brc_error *err, const char *what)
{
    return brc_fail(err, BRC_ECORRUPT, "a map node is damaged: %s", what);
}

int brc_node_open(brc_node_reader *reader, brc_span node, size_t id_len, brc_error *err)
{
    memset(reader, 0, offsetof(brc_node_reader, key));
    reader->r = brc_reader_of(node.data, node.len);
    reader->id_len = id_len;
    reader->level = brc_read_byte(&reader->r);
    uint64_t count = brc_read_varint(&reader->r);
    if (reader->level == 0)
        reader->width = brc_read_varint(&reader->r);
    if (reader->r.bad || count == 0 || count > BRC_NODE_MAX || reader->level > BRC_NODE_MAX_LEVEL ||
        (reader->level > 0 && count < 2))
        return node_broken(err, "its header is wrong");
    reader->count = (unsigned)count;
    return BRC_OK;
}

static int node_read_leaf_item(brc_node_reader *reader, brc_item *item)
{
    uint64_t len = reader->width != 0 ? reader->width : brc_read_varint(&reader->r);
    const uint8_t *value = brc_read_bytes(&reader->r, len);
    if (value == NULL)
        return 0;
    item->value = (brc_span){value, (size_t)len};
    return 1;
}

static int node_read_child(brc_node_reader *reader, brc_item *item)
{
    item->is_child = 1;
    item->level = brc_read_byte(&reader->r);
    uint64_t weight = brc_read_varint(&reader->r);
    item->keys = brc_read_varint(&reader->r);
    const uint8_t *id = brc_read_bytes(&reader->r, reader->id_len);
    if (id == NULL || item->level >= reader->level || weight == 0 || weight > BRC_NODE_MAX ||
        item->keys < weight)
        return 0;
    item->weight = (unsigned)weight;
    memcpy(item->id.bytes, id, reader->id_len);
    return 1;
}

int brc_node_next(brc_node_reader *reader, brc_item *item, brc_error *err)
{
    if (reader->at == reader->count)
        return brc_reader_left(&reader->r) == 0 ? 0
                                                : node_broken(err, "bytes follow its last item");
    memset(item, 0, sizeof(*item));
    uint64_t shared = brc_read_varint(&reader->r);
    uint64_t size = brc_read_varint(&reader->r);
    uint64_t bits = reader->level == 0 ? (shared + size) * 8 : size;
    size_t before = brc_bits_bytes(reader->bits);
    if (reader->r.bad || shared > before || size > 8 * BRC_KEY_MAX || bits > 8 * BRC_KEY_MAX ||
        brc_bits_bytes((size_t)bits) < shared)
        return node_broken(err, "a key is too long");
    size_t rest = brc_bits_bytes((size_t)bits) - (size_t)shared;
    const uint8_t *bytes = brc_read_bytes(&reader->r, rest);
    if (bytes == NULL)
        return node_broken(err, "it ends early");
    if (reader->at > 0) {
        /* in order, and neither begins with the other: there must be a first byte that
         * differs, and it must be larger */
        if (rest == 0 || shared >= before || bytes[0] <= reader->key[shared])
            return node_broken(err, "its keys are out of order");
        uint8_t old[1] = {reader->key[shared]};
        size_t old_bits = reader->bits - (size_t)shared * 8;
        size_t new_bits = (size_t)bits - (size_t)shared * 8;
        if (brc_bits_common(old, old_bits < 8 ? old_bits : 8, bytes, new_bits < 8 ? new_bits : 8) ==
            (old_bits < new_bits ? old_bits : new_bits))
            return node_broken(err, "a key is a prefix of another");
    }
    if (rest > 0)
        memcpy(reader->key + shared, bytes, rest);
    reader->bits = (size_t)bits;
    reader->at++;
    item->key = reader->key;
    item->bits = (size_t)bits;
    if (!(reader->level == 0 ? node_read_leaf_item(reader, item) : node_read_child(reader, item)))
        return node_broken(err, "an item is cut off or impossible");
    return 1;
}

int brc_node_facts_read(brc_node_facts *out, brc_span node, size_t id_len, brc_error *err)
{
    brc_node_reader reader;
    brc_item item;
    int rc;
    BRC_TRY(brc_node_open(&reader, node, id_len, err));
    *out = (brc_node_facts){ .level = reader.level, .count = reader.count };
    while ((rc = brc_node_next(&reader, &item, err)) > 0) {
        if (!brc_add_u64(out->keys, item.is_child ? item.keys : 1, &out->keys))
            out->keys = UINT64_MAX;
        if (reader.at == 1) {
            out->bits = item.bits;
            memcpy(out->prefix, item.key, brc_bits_bytes(item.bits));
        }
    }
    if (rc < 0)
        return rc;
    /* items are in order: what the first and the last share, all share */
    out->bits = brc_bits_common(out->prefix, out->bits, reader.key, reader.bits);
    return BRC_OK;
}

int brc_node_facts_match(const brc_node_facts *facts, const brc_item *child, brc_error *err)
{
    if (facts->level != child->level || facts->count != child->weight)
        return node_broken(err, "it does not match what its parent says");
    if (facts->keys != child->keys)
        return node_broken(err, "it does not have as many keys as its parent says");
    if (facts->bits != child->bits ||
        brc_bits_common(facts->prefix, facts->bits, child->key, child->bits) != child->bits)
        return node_broken(err, "it is not where its keys belong");
    return BRC_OK;
}

int brc_node_load(brc_store *store, const brc_oid *id, const brc_item *child,
                  brc_node_reader *reader, brc_error *err)
{
    brc_span bytes;
    BRC_TRY(brc_store_get(store, BRC_KIND_NODE, id, &bytes, err));
    BRC_TRY(brc_node_open(reader, bytes, brc_store_id_len(store), err));
    if (child != NULL && (reader->level != child->level || reader->count != child->weight))
        return node_broken(err, "it does not match what its parent says");
    return BRC_OK;
}

/* The length of every value if all are equal and not empty, else 0. */
static size_t node_width(const brc_item *first)
{
    size_t width = first->value.len;
    for (const brc_item *i = first->next; i != NULL; i = i->next)
        if (i->value.len != width)
            return 0;
    return width;
}

static int node_write_item(brc_buf *out, const brc_item *item, size_t width, size_t id_len,
                           brc_error *err)
{
    if (!item->is_child) {
        if (width == 0)
            BRC_TRY(brc_buf_varint(out, item->value.len, err));
        return brc_buf_append(out, item->value.data, item->value.len, err);
    }
    BRC_TRY(brc_buf_byte(out, (uint8_t)item->level, err));
    BRC_TRY(brc_buf_varint(out, item->weight, err));
    BRC_TRY(brc_buf_varint(out, item->keys, err));
    return brc_buf_append(out, item->id.bytes, id_len, err);
}

int brc_node_write(brc_buf *out, unsigned level, unsigned count, const brc_item *first,
                   size_t id_len, brc_error *err)
{
    size_t width = level == 0 ? node_width(first) : 0;
    const brc_item *before = NULL;
    BRC_TRY(brc_buf_byte(out, (uint8_t)level, err));
    BRC_TRY(brc_buf_varint(out, count, err));
    if (level == 0)
        BRC_TRY(brc_buf_varint(out, width, err));
    for (const brc_item *i = first; i != NULL; before = i, i = i->next) {
        size_t len = brc_bits_bytes(i->bits), shared = 0;
        size_t max = before != NULL ? brc_bits_bytes(before->bits) : 0;
        while (shared < max && shared < len && before->key[shared] == i->key[shared])
            shared++;
        BRC_TRY(brc_buf_varint(out, shared, err));
        BRC_TRY(brc_buf_varint(out, level == 0 ? len - shared : i->bits, err));
        BRC_TRY(brc_buf_append(out, i->key + shared, len - shared, err));
        BRC_TRY(node_write_item(out, i, width, id_len, err));
    }
    return BRC_OK;
}
