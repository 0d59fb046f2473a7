#include "map.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

/* ==== chunk key ================================ */

size_t brc_chunk_key_encode(uint8_t out[BRC_CHUNK_KEY_MAX], int ndim, const uint64_t *index)
{
    size_t at = 0;
    for (int i = 0; i < ndim; i++) {
        unsigned bytes = 0;
        for (uint64_t v = index[i]; v != 0; v >>= 8)
            bytes++;
        out[at++] = (uint8_t)bytes;
        while (bytes > 0)
            out[at++] = (uint8_t)(index[i] >> (8 * --bytes));
    }
    return at;
}

int brc_chunk_key_decode(const uint8_t *key, size_t len, uint64_t index[BRC_MAX_NDIM])
{
    int ndim = 0;
    for (size_t at = 0; at < len; ndim++) {
        size_t bytes = key[at++];
        if (ndim == BRC_MAX_NDIM || bytes > 8 || bytes > len - at || (bytes > 0 && key[at] == 0))
            return -1;
        index[ndim] = 0;
        while (bytes-- > 0)
            index[ndim] = index[ndim] << 8 | key[at++];
    }
    return ndim;
}

int brc_chunk_id_of(brc_span value, size_t id_len, brc_oid *out, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    if (value.len == id_len)
        memcpy(out->bytes, value.data, id_len);
    return brc_oid_is_zero(out)
               ? brc_fail(err, BRC_ECORRUPT, "a chunk's entry is damaged; run 'breccia fsck'")
               : BRC_OK;
}

/* ==== node ================================ */

size_t brc_bits_common(const uint8_t *a, size_t a_bits, const uint8_t *b, size_t b_bits)
{
    size_t max = a_bits < b_bits ? a_bits : b_bits;
    size_t i = 0;
    while (i + 8 <= max && a[i / 8] == b[i / 8])
        i += 8;
    if (i >= max || a[i / 8] == b[i / 8])
        return max;
    i += (size_t)__builtin_clz((unsigned)(a[i / 8] ^ b[i / 8])) - 24; /* of 32 bits, 8 count */
    return i < max ? i : max;
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
    /* items are in order: all share the bits that the first and the last share */
    out->bits = brc_bits_common(out->prefix, out->bits, reader.key, reader.bits);
    return BRC_OK;
}

int brc_node_facts_match(const brc_node_facts *facts, const brc_item *child, brc_error *err)
{
    if (facts->level != child->level || facts->count != child->weight)
        return node_broken(err, "it does not match its parent's item");
    if (facts->keys != child->keys)
        return node_broken(err, "its number of keys differs from its parent's item");
    if (facts->bits != child->bits ||
        brc_bits_common(facts->prefix, facts->bits, child->key, child->bits) != child->bits)
        return node_broken(err, "it is not where its keys belong");
    return BRC_OK;
}

/* Opens a child's node and checks it against its parent's item. */
static int node_open_as(brc_node_reader *reader, brc_span bytes, size_t id_len,
                        const brc_item *child, brc_error *err)
{
    BRC_TRY(brc_node_open(reader, bytes, id_len, err));
    if (child != NULL && (reader->level != child->level || reader->count != child->weight))
        return node_broken(err, "it does not match its parent's item");
    return BRC_OK;
}

static int node_load(brc_store *store, const brc_oid *id, const brc_item *child,
                     brc_node_reader *reader, brc_error *err)
{
    brc_span bytes;
    BRC_TRY(brc_store_get(store, BRC_KIND_NODE, id, &bytes, err));
    return node_open_as(reader, bytes, brc_store_id_len(store), child, err);
}

/* Returns the length of every value if all lengths are equal and not 0, else 0. */
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

/* ==== map cursor ================================ */

/* One node's items, read in order. The bytes are a copy, so that the store may be called while an
 * item is in use. */
typedef struct map_frame {
    struct map_frame *above;
    brc_node_reader reader;
    size_t len;
    uint8_t bytes[];
} map_frame;

static void cursor_pop(brc_map_cursor *c)
{
    map_frame *f = c->top;
    c->top = f->above;
    free(f);
}

void brc_map_cursor_end(brc_map_cursor *c)
{
    while (c->top != NULL)
        cursor_pop(c);
}

int brc_map_cursor_step(brc_map_cursor *c, brc_error *err)
{
    while (c->top != NULL) {
        int rc = brc_node_next(&c->top->reader, &c->head, err);
        if (rc != 0)
            return rc < 0 ? rc : BRC_OK;
        cursor_pop(c);
    }
    c->at_end = 1;
    return BRC_OK;
}

static int cursor_push(brc_map_cursor *c, const brc_oid *id, brc_error *err)
{
    brc_span bytes;
    void *p;
    size_t size;
    BRC_TRY(brc_store_get(c->store, BRC_KIND_NODE, id, &bytes, err));
    if (__builtin_add_overflow(sizeof(map_frame), bytes.len, &size))
        return brc_nomem(err);
    BRC_TRY(brc_new(&p, size, err));
    map_frame *f = p;
    f->above = c->top;
    f->len = bytes.len;
    memcpy(f->bytes, bytes.data, bytes.len);
    c->top = f;
    return brc_node_open(&f->reader, (brc_span){ f->bytes, f->len }, brc_store_id_len(c->store),
                         err);
}

/* Enters the child at the head. */
static int map_cursor_enter(brc_map_cursor *c, brc_error *err)
{
    brc_item child = c->head;
    brc_node_facts facts;
    BRC_TRY(cursor_push(c, &child.id, err)); /* the key stays with the node above */
    BRC_TRY(brc_node_facts_read(&facts, (brc_span){ c->top->bytes, c->top->len },
                                brc_store_id_len(c->store), err));
    BRC_TRY(brc_node_facts_match(&facts, &child, err));
    return brc_map_cursor_step(c, err);
}

int brc_map_cursor_descend(brc_map_cursor *c, brc_error *err)
{
    while (!c->at_end && c->head.is_child)
        BRC_TRY(map_cursor_enter(c, err));
    return BRC_OK;
}

int brc_map_cursor_start(brc_map_cursor *c, brc_store *store, const brc_oid *root, brc_error *err)
{
    memset(c, 0, sizeof(*c));
    c->store = store;
    if (!brc_oid_is_zero(root))
        BRC_TRY(cursor_push(c, root, err));
    return brc_map_cursor_step(c, err);
}

int brc_map_cursor_seek(brc_map_cursor *c, const uint8_t *key, size_t len, brc_error *err)
{
    while (!c->at_end) {
        const size_t head = c->head.bits / 8, min = head < len ? head : len;
        int order;
        if (c->head.is_child) {
            order = brc_bits_order(key, 8 * len, c->head.key, c->head.bits);
        } else {
            order = min > 0 ? memcmp(key, c->head.key, min) : 0;
            order = order != 0 ? order : (len > head) - (len < head);
        }
        if (order < 0 || (order == 0 && !c->head.is_child))
            return BRC_OK;
        BRC_TRY(order == 0 ? map_cursor_enter(c, err) : brc_map_cursor_step(c, err));
    }
    return BRC_OK;
}

/* ==== map read ================================ */

/* Looking keys up in a map. */

int brc_map_get(brc_store *store, const brc_oid *root, const void *key, size_t key_len, int *found,
                brc_span *value, brc_error *err)
{
    brc_node_reader reader;
    brc_item item, child;
    brc_oid at = *root;
    int have_child = 0;
    *found = 0;
    if (brc_oid_is_zero(root))
        return BRC_OK;
    for (;;) {
        int rc, order = -1;
        BRC_TRY(node_load(store, &at, have_child ? &child : NULL, &reader, err));
        while ((rc = brc_node_next(&reader, &item, err)) > 0) {
            order = brc_bits_order(key, key_len * 8, item.key, item.bits);
            if (order <= 0)
                break;
        }
        if (rc < 0)
            return rc;
        if (rc == 0 || order < 0)
            return BRC_OK;
        if (!item.is_child) {
            *found = key_len * 8 == item.bits;
            *value = item.value;
            return BRC_OK;
        }
        child = item;
        have_child = 1;
        at = item.id;
    }
}

/* A child, and the look-ups that lead to it. */
typedef struct lookup_visit {
    brc_item child;
    size_t lo, hi;
} lookup_visit;

typedef struct lookup_many {
    brc_store *store;
    const brc_span *keys;
    brc_map_found_fn found;
    void *ctx;
} lookup_many;

static int lookup_node(const lookup_many *m, const brc_oid *id, const brc_item *as, size_t lo,
                       size_t hi, brc_error *err);

static int lookup_children(const lookup_many *m, brc_node_reader *reader, size_t lo, size_t hi,
                           lookup_visit *visits, unsigned *nvisits, brc_error *err)
{
    brc_item item;
    int rc;
    while (lo < hi && (rc = brc_node_next(reader, &item, err)) != 0) {
        if (rc < 0)
            return rc;
        int order = 1;
        while (lo < hi && (order = brc_bits_order(m->keys[lo].data, m->keys[lo].len * 8, item.key,
                                                  item.bits)) < 0)
            lo++;
        size_t start = lo;
        while (lo < hi && (order = brc_bits_order(m->keys[lo].data, m->keys[lo].len * 8, item.key,
                                                  item.bits)) == 0)
            lo++;
        if (start < lo)
            visits[(*nvisits)++] = (lookup_visit){item, start, lo};
    }
    return BRC_OK;
}

static int lookup_leaf(const lookup_many *m, brc_node_reader *reader, size_t lo, size_t hi,
                       brc_error *err)
{
    brc_item item;
    int rc = 0;
    while (lo < hi && (rc = brc_node_next(reader, &item, err)) > 0) {
        int order = 1;
        while (lo < hi && (order = brc_bits_order(m->keys[lo].data, m->keys[lo].len * 8, item.key,
                                                  item.bits)) < 0)
            lo++;
        if (lo < hi && order == 0 && m->keys[lo].len * 8 == item.bits) {
            BRC_TRY(m->found(m->ctx, lo, item.value, err));
            lo++;
        }
    }
    return rc < 0 ? rc : BRC_OK;
}

static int lookup_node(const lookup_many *m, const brc_oid *id, const brc_item *as, size_t lo,
                       size_t hi, brc_error *err)
{
    brc_node_reader reader;
    unsigned n = 0;
    void *visits = NULL;
    int rc;
    BRC_TRY(node_load(m->store, id, as, &reader, err));
    if (reader.level == 0)
        return lookup_leaf(m, &reader, lo, hi, err);
    /* The node's bytes may leave the cache while its children are read. */
    BRC_TRY(brc_new_array(&visits, reader.count, sizeof(lookup_visit), err));
    rc = lookup_children(m, &reader, lo, hi, visits, &n, err);
    for (unsigned i = 0; i < n && rc == BRC_OK; i++) {
        const lookup_visit *v = (lookup_visit *)visits + i;
        rc = lookup_node(m, &v->child.id, &v->child, v->lo, v->hi, err);
    }
    free(visits);
    return rc;
}

int brc_map_get_many(brc_store *store, const brc_oid *root, const brc_span *keys, size_t n,
                     brc_map_found_fn found, void *ctx, brc_error *err)
{
    lookup_many m = {store, keys, found, ctx};
    if (n == 0 || brc_oid_is_zero(root))
        return BRC_OK;
    return lookup_node(&m, root, NULL, 0, n, err);
}

/* ---- everything ------------------------------------------------------------------ */

int brc_map_each(brc_store *store, const brc_oid *root, brc_map_each_fn each, void *ctx,
                 brc_error *err)
{
    brc_map_cursor c;
    int rc;
    BRC_GO(brc_map_cursor_start(&c, store, root, err));
    for (;;) {
        BRC_GO(brc_map_cursor_descend(&c, err));
        if (c.at_end)
            break;
        BRC_GO(each(ctx, (brc_span){ c.head.key, c.head.bits / 8 }, c.head.value, err));
        BRC_GO(brc_map_cursor_step(&c, err));
    }
done:
    brc_map_cursor_end(&c);
    return rc;
}

int brc_map_count(brc_store *store, const brc_oid *root, uint64_t *count, brc_error *err)
{
    brc_node_reader reader;
    brc_item item;
    int rc;
    *count = 0;
    if (brc_oid_is_zero(root))
        return BRC_OK;
    BRC_TRY(node_load(store, root, NULL, &reader, err));
    while ((rc = brc_node_next(&reader, &item, err)) > 0)
        if (!brc_add_u64(*count, item.is_child ? item.keys : 1, count))
            return brc_fail(err, BRC_ECORRUPT,
                            "a map node is damaged: it has more keys than can be counted");
    return rc;
}

int brc_map_check_node(brc_span node, size_t id_len, brc_map_child_fn child, brc_map_each_fn item,
                       void *ctx, brc_error *err)
{
    brc_node_reader reader;
    brc_item i;
    int rc;
    BRC_TRY(brc_node_open(&reader, node, id_len, err));
    while ((rc = brc_node_next(&reader, &i, err)) > 0) {
        if (i.is_child)
            rc = child(ctx, &i.id, err);
        else
            rc = item(ctx, (brc_span){i.key, i.bits / 8}, i.value, err);
        if (rc < 0)
            return rc;
    }
    return rc;
}

/* ==== map replace ================================ */

/*
 * Replacing values. Where each edit replaces a value by one of the same length, the keys stay and
 * so does the shape of the tree. Then the touched nodes are copied, and values and ids are replaced
 * in the copies.
 */

typedef struct replaced_node {
    uint8_t *bytes; /* the copy */
    size_t len;
    uint8_t *place; /* where the node above has the id; NULL: the root */
    brc_map_change change;
} replaced_node;

typedef struct map_replacer {
    brc_store *store;
    const brc_edit *edits;
    brc_map_changes *changes;
    brc_arena arena;
    void *nodes; /* replaced_node[]: each node before its children */
    size_t n, cap;
} map_replacer;

/* A child, its id in the copy of the node above, and the edits under it. */
typedef struct replace_visit {
    brc_item child;
    uint8_t *place;
    size_t from, to;
} replace_visit;

static int replace_copy(map_replacer *m, const brc_oid *id, const replace_visit *as, size_t from,
                        size_t to, uint8_t **copy, brc_node_reader *reader, brc_error *err)
{
    brc_span bytes;
    BRC_TRY(brc_store_get(m->store, BRC_KIND_NODE, id, &bytes, err));
    BRC_TRY(brc_arena_copy(&m->arena, bytes.data, bytes.len, copy, err));
    BRC_TRY(brc_grow_array(&m->nodes, &m->cap, m->n + 1, sizeof(replaced_node), err));
    ((replaced_node *)m->nodes)[m->n++] = (replaced_node){
        .bytes = *copy, .len = bytes.len, .place = as != NULL ? as->place : NULL,
        .change = { .was = *id, .from = from, .to = to },
    };
    return node_open_as(reader, (brc_span){ *copy, bytes.len }, brc_store_id_len(m->store),
                        as != NULL ? &as->child : NULL, err);
}

/* Replaces the values of a leaf. Returns 0 if an edit does more than that. */
static int replace_values(map_replacer *m, uint8_t *copy, brc_node_reader *reader, size_t from,
                          size_t to, brc_error *err)
{
    brc_map_changes *changes = m->changes;
    brc_item item;
    int rc;
    while (from < to && (rc = brc_node_next(reader, &item, err)) != 0) {
        const brc_edit *edit = &m->edits[from];
        if (rc < 0)
            return rc;
        const int order = brc_bits_order(edit->key, edit->key_len * 8, item.key, item.bits);
        if (order > 0)
            continue;
        if (order < 0 || edit->key_len * 8 != item.bits || edit->value == NULL ||
            edit->value_len != item.value.len)
            return 0;
        memcpy((uint8_t *)changes->values + from * changes->value_len, item.value.data,
               item.value.len);
        memcpy(copy + (item.value.data - copy), edit->value, edit->value_len);
        from++;
    }
    return from == to;
}

/* Finds the children of a node that edits lead to. Returns 0 if an edit leads to none. */
static int replace_find(const map_replacer *m, uint8_t *copy, brc_node_reader *reader, size_t from,
                        size_t to, replace_visit *visits, unsigned *nvisits, brc_error *err)
{
    brc_item item;
    int rc;
    while (from < to && (rc = brc_node_next(reader, &item, err)) != 0) {
        const size_t start = from;
        int order = 0;
        if (rc < 0)
            return rc;
        while (from < to && (order = brc_bits_order(m->edits[from].key, m->edits[from].key_len * 8,
                                                    item.key, item.bits)) == 0)
            from++;
        if (start < from)
            visits[(*nvisits)++] = (replace_visit){
                item, copy + (reader->r.at - reader->id_len - copy), start, from
            };
        if (order < 0)
            return 0;
    }
    return from == to;
}

static int replace_node(map_replacer *m, const brc_oid *id, const replace_visit *as, size_t from,
                        size_t to, brc_error *err)
{
    brc_node_reader reader;
    uint8_t *copy;
    unsigned n = 0;
    void *visits;
    BRC_TRY(replace_copy(m, id, as, from, to, &copy, &reader, err));
    if (reader.level == 0)
        return reader.width == m->changes->value_len
                   ? replace_values(m, copy, &reader, from, to, err)
                   : 0;
    BRC_TRY(brc_new_array(&visits, reader.count, sizeof(replace_visit), err));
    int rc = replace_find(m, copy, &reader, from, to, visits, &n, err);
    for (unsigned i = 0; i < n && rc > 0; i++) {
        const replace_visit *v = (replace_visit *)visits + i;
        rc = replace_node(m, &v->child.id, v, v->from, v->to, err);
    }
    free(visits);
    return rc;
}

/* Writes the copies, children first, because a node above has their ids. */
static int replace_write(map_replacer *m, brc_oid *out, brc_error *err)
{
    brc_map_changes *changes = m->changes;
    BRC_TRY(brc_grow_array(&changes->nodes, &changes->cap, m->n, sizeof(brc_map_change), err));
    for (size_t i = m->n; i-- > 0;) {
        replaced_node *node = (replaced_node *)m->nodes + i;
        BRC_TRY(brc_store_put(m->store, BRC_KIND_NODE, node->bytes, node->len, &node->change.now,
                              err));
        if (node->place != NULL)
            memcpy(node->place, node->change.now.bytes, brc_store_id_len(m->store));
        else
            *out = node->change.now;
        ((brc_map_change *)changes->nodes)[changes->n++] = node->change;
    }
    return 1;
}

/* Returns 1, or 0 without a change if an edit does more than replace a value. */
static int map_replace(brc_store *store, const brc_oid *root, const brc_edit *edits, size_t n,
                       brc_oid *out, brc_map_changes *changes, brc_error *err)
{
    map_replacer m = { .store = store, .edits = edits, .changes = changes,
                       .arena = BRC_ARENA_INIT };
    changes->value_len = edits[0].value_len;
    if (edits[0].value == NULL || edits[0].value_len == 0)
        return 0;
    BRC_TRY(brc_new_array(&changes->values, n, changes->value_len, err));
    int rc = replace_node(&m, root, NULL, 0, n, err);
    if (rc > 0)
        rc = replace_write(&m, out, err);
    brc_arena_dispose(&m.arena);
    free(m.nodes);
    return rc;
}

void brc_map_changes_dispose(brc_map_changes *changes)
{
    free(changes->nodes);
    free(changes->values);
    *changes = (brc_map_changes){ 0 };
}

/* ==== map edit ================================ */

/*
 * Applying a batch of edits to a map.
 *
 * First the items that the edits touch are gathered: nodes on the way are taken
 * apart, all others stay closed. Then the canonical rule of map.h is applied to this
 * list from the bottom up; a closed node is opened again only if the rule joins its
 * items with others. So the work is one path for each edit, and less if edits share
 * paths.
 */

typedef struct map_editor {
    brc_store *store;
    size_t id_len;
    brc_arena arena;
    void *items; /* brc_item *[]: the gathered list, in order */
    size_t nitems, items_cap;
    brc_buf node; /* the node that is being written */
} map_editor;

/* The open group of a trie vertex, or a closed node that did not have to be opened. */
typedef struct open_group {
    unsigned level, count;
    brc_item *first, *last; /* NULL until `closed` is opened */
    brc_item *closed;
} open_group;

/* ---- gathering ------------------------------------------------------------------ */

/* Keys of a damaged map, or of damaged draft rows, may be nested or out of order. */
static int keys_are_nested(brc_error *err)
{
    return brc_fail(err, BRC_ECORRUPT, "a map is damaged: a key is a prefix of another");
}

/* Appends an item to the gathered list. Checks that the items are in order and that no key is a
 * prefix of another, because the trie relies on both. */
static int gather_push(map_editor *e, brc_item *item, brc_error *err)
{
    const brc_item *last = e->nitems > 0 ? ((brc_item **)e->items)[e->nitems - 1] : NULL;
    if (last != NULL) {
        size_t common = brc_bits_common(last->key, last->bits, item->key, item->bits);
        if (common == last->bits || common == item->bits || !brc_bit(item->key, common))
            return keys_are_nested(err);
    }
    BRC_TRY(brc_grow_array(&e->items, &e->items_cap, e->nitems + 1, sizeof(brc_item *), err));
    ((brc_item **)e->items)[e->nitems++] = item;
    return BRC_OK;
}

static int item_copy(map_editor *e, const brc_item *from, brc_item **out, brc_error *err)
{
    uint8_t *bytes;
    brc_item *item = brc_arena_take(&e->arena, sizeof(*item));
    if (item == NULL)
        return brc_nomem(err);
    *item = *from;
    item->next = NULL;
    BRC_TRY(brc_arena_copy(&e->arena, from->key, brc_bits_bytes(from->bits), &bytes, err));
    item->key = bytes;
    if (!from->is_child) {
        BRC_TRY(brc_arena_copy(&e->arena, from->value.data, from->value.len, &bytes, err));
        item->value.data = bytes;
    }
    *out = item;
    return BRC_OK;
}

/* Reads a node as a list, copied into the arena. A child's items begin with its
 * prefix; otherwise the gathered list would not be in order. */
static int editor_load(map_editor *e, const brc_oid *id, const brc_item *as, brc_item **first,
                       brc_item **last, brc_error *err)
{
    brc_node_reader reader;
    brc_item item;
    int rc;
    *first = *last = NULL;
    BRC_TRY(node_load(e->store, id, as, &reader, err));
    while ((rc = brc_node_next(&reader, &item, err)) > 0) {
        brc_item *copy = NULL;
        BRC_TRY(item_copy(e, &item, &copy, err));
        if (*last != NULL)
            (*last)->next = copy;
        else
            *first = copy;
        *last = copy;
    }
    if (rc == BRC_OK && as != NULL &&
        (brc_bits_order((*first)->key, (*first)->bits, as->key, as->bits) != 0 ||
         brc_bits_order((*last)->key, (*last)->bits, as->key, as->bits) != 0))
        return brc_fail(err, BRC_ECORRUPT, "a map is damaged: a node is not where its keys belong");
    return rc;
}

/* Gathers edits whose keys are new; removing a key that the map does not have does nothing. */
static int gather_new(map_editor *e, const brc_edit *edits, size_t n, brc_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (edits[i].value == NULL)
            continue;
        brc_item *item = brc_arena_take(&e->arena, sizeof(*item));
        if (item == NULL)
            return brc_nomem(err);
        memset(item, 0, sizeof(*item));
        item->key = edits[i].key;
        item->bits = edits[i].key_len * 8;
        item->value = (brc_span){edits[i].value, edits[i].value_len};
        BRC_TRY(gather_push(e, item, err));
    }
    return BRC_OK;
}

/* Returns how many of the edits, from the first on, come before the item (order -1), or belong
 * to it (order 0). */
static size_t edits_while(const brc_edit *edits, size_t n, const brc_item *item, int order)
{
    size_t i = 0;
    while (i < n &&
           brc_bits_order(edits[i].key, edits[i].key_len * 8, item->key, item->bits) == order)
        i++;
    return i;
}

static int gather_node(map_editor *e, const brc_oid *id, const brc_item *as, const brc_edit *edits,
                       size_t n, brc_error *err)
{
    brc_item *item, *next, *last;
    BRC_TRY(editor_load(e, id, as, &item, &last, err));
    for (; item != NULL; item = next) {
        next = item->next;
        size_t before = edits_while(edits, n, item, -1);
        BRC_TRY(gather_new(e, edits, before, err));
        edits += before;
        n -= before;
        size_t here = edits_while(edits, n, item, 0);
        if (here == 0)
            BRC_TRY(gather_push(e, item, err));
        else if (item->is_child)
            BRC_TRY(gather_node(e, &item->id, item, edits, here, err));
        else if (here > 1 || edits->key_len * 8 != item->bits)
            return keys_are_nested(err);
        else
            BRC_TRY(gather_new(e, edits, here, err));
        edits += here;
        n -= here;
    }
    return gather_new(e, edits, n, err);
}

/* ---- the canonical rule ------------------------------------------------------------ */

static int group_open(map_editor *e, open_group *g, brc_error *err)
{
    if (g->first != NULL)
        return BRC_OK;
    return editor_load(e, &g->closed->id, g->closed, &g->first, &g->last, err);
}

static int group_close(map_editor *e, open_group *g, brc_item **out, brc_error *err)
{
    if (g->closed != NULL) {
        g->closed->next = NULL;
        *out = g->closed;
        return BRC_OK;
    }
    brc_item *node = brc_arena_take(&e->arena, sizeof(*node));
    if (node == NULL)
        return brc_nomem(err);
    memset(node, 0, sizeof(*node));
    node->is_child = 1;
    node->level = g->level;
    node->weight = g->count;
    node->bits = brc_bits_common(g->first->key, g->first->bits, g->last->key, g->last->bits);
    for (const brc_item *i = g->first; i != NULL; i = i->next)
        node->keys += i->is_child ? i->keys : 1;
    uint8_t *prefix;
    BRC_TRY(brc_arena_copy(&e->arena, g->first->key, brc_bits_bytes(node->bits), &prefix, err));
    if (node->bits % 8 != 0)
        prefix[node->bits / 8] &= (uint8_t)(0xff << (8 - node->bits % 8));
    node->key = prefix;
    e->node.len = 0;
    BRC_TRY(brc_node_write(&e->node, g->level, g->count, g->first, e->id_len, err));
    BRC_TRY(brc_store_put(e->store, BRC_KIND_NODE, e->node.data, e->node.len, &node->id, err));
    *out = node;
    return BRC_OK;
}

/* Closes a group and makes it one of a higher level, whose only item is the closed node. */
static int group_lift(map_editor *e, open_group *g, unsigned level, brc_error *err)
{
    brc_item *node;
    BRC_TRY(group_close(e, g, &node, err));
    *g = (open_group){level, 1, node, node, NULL};
    return BRC_OK;
}

static int group_join(map_editor *e, open_group *a, open_group *b, open_group *out, brc_error *err)
{
    unsigned level = a->level > b->level ? a->level : b->level;
    unsigned na = a->level == level ? a->count : 1, nb = b->level == level ? b->count : 1;
    if (na + nb > BRC_NODE_MAX) {
        level++;
        if (level > BRC_NODE_MAX_LEVEL)
            return brc_fail(err, BRC_ELIMIT, "a map would be more than %d levels high",
                            BRC_NODE_MAX_LEVEL);
    }
    BRC_TRY(a->level < level ? group_lift(e, a, level, err) : group_open(e, a, err));
    BRC_TRY(b->level < level ? group_lift(e, b, level, err) : group_open(e, b, err));
    a->last->next = b->first;
    *out = (open_group){level, a->count + b->count, a->first, b->last, NULL};
    return BRC_OK;
}

/* Makes the open group of the trie over items[lo..hi). */
static int group_build(map_editor *e, size_t lo, size_t hi, open_group *out, brc_error *err)
{
    brc_item **items = e->items;
    if (hi - lo == 1) {
        brc_item *item = items[lo];
        item->next = NULL;
        if (item->is_child)
            *out = (open_group){item->level, item->weight, NULL, NULL, item};
        else
            *out = (open_group){0, 1, item, item, NULL};
        return BRC_OK;
    }
    size_t bit = brc_bits_common(items[lo]->key, items[lo]->bits, items[hi - 1]->key,
                                 items[hi - 1]->bits);
    if (bit >= items[lo]->bits || bit >= items[hi - 1]->bits)
        return keys_are_nested(err);
    size_t left = lo, right = hi;
    while (left + 1 < right) { /* items[left] has a 0 there, items[right] a 1 */
        size_t middle = left + (right - left) / 2;
        if (brc_bit(items[middle]->key, bit))
            right = middle;
        else
            left = middle;
    }
    open_group a, b;
    BRC_TRY(group_build(e, lo, right, &a, err));
    BRC_TRY(group_build(e, right, hi, &b, err));
    return group_join(e, &a, &b, out, err);
}

/* Checks that the edits are sorted. Some come from the file (rows of drafts), and with unsorted
 * edits group_build() would never end. */
static int check_edits(const brc_edit *edits, size_t n, brc_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (edits[i].key_len > BRC_KEY_MAX)
            return brc_fail(err, BRC_ELIMIT, "a key of %zu bytes is longer than %d",
                            edits[i].key_len, BRC_KEY_MAX);
        if (i > 0 && brc_bits_order(edits[i - 1].key, 8 * edits[i - 1].key_len, edits[i].key,
                                    8 * edits[i].key_len) >= 0)
            return brc_fail(err, BRC_ECORRUPT, "a map is damaged: its keys are not in order");
    }
    return BRC_OK;
}

/* Makes the map anew where the edits lead. */
static int map_rebuild(brc_store *store, const brc_oid *root, const brc_edit *edits, size_t n,
                       brc_oid *out, brc_error *err)
{
    map_editor e = {.store = store, .id_len = brc_store_id_len(store)};
    brc_oid from = *root;
    int rc;
    memset(out, 0, sizeof(*out));
    if (brc_oid_is_zero(&from))
        BRC_GO(gather_new(&e, edits, n, err));
    else
        BRC_GO(gather_node(&e, &from, NULL, edits, n, err));
    if (e.nitems > 0) {
        open_group all;
        brc_item *top;
        BRC_GO(group_build(&e, 0, e.nitems, &all, err));
        BRC_GO(group_close(&e, &all, &top, err));
        *out = top->id;
    }
    rc = BRC_OK;
done:
    brc_arena_dispose(&e.arena);
    brc_buf_dispose(&e.node);
    free(e.items);
    return rc;
}

int brc_map_edit_noting(brc_store *store, const brc_oid *root, const brc_edit *edits, size_t n,
                        brc_oid *out, brc_map_changes *changes, brc_error *err)
{
    int rc = 0;
    *changes = (brc_map_changes){ 0 };
    BRC_TRY(check_edits(edits, n, err));
    if (n > 0 && !brc_oid_is_zero(root))
        rc = map_replace(store, root, edits, n, out, changes, err);
    if (rc <= 0)
        brc_map_changes_dispose(changes);
    return rc == 0 ? map_rebuild(store, root, edits, n, out, err) : rc < 0 ? rc : BRC_OK;
}

int brc_map_edit(brc_store *store, const brc_oid *root, const brc_edit *edits, size_t n,
                 brc_oid *out, brc_error *err)
{
    brc_map_changes changes;
    int rc = brc_map_edit_noting(store, root, edits, n, out, &changes, err);
    brc_map_changes_dispose(&changes);
    return rc;
}

/* ==== map diff ================================ */

/*
 * Finds the differences between two maps. Both are walked at once; a node that both have at the
 * same place is skipped whole, so the work grows with the difference. Prefixes are
 * nested or disjoint: of two heads, the walk enters the one with the shorter prefix,
 * until both are keys or the same node.
 */

typedef struct map_pair {
    brc_map_cursor a, b;
    int all; /* equal values are reported too */
    const brc_span *among; /* the wanted keys; NULL: all keys */
    size_t namong, from_a, from_b, from; /* places in `among`: of each side, and of the reports */
    brc_map_diff_fn each;
    void *ctx;
} map_pair;

/* Returns whether a wanted key begins with the prefix. Prefixes come in order, so *from, the first
 * key that does not come before the prefix, only moves forward: by 1, 2, 4 ..., and then by a
 * binary search. */
static int is_wanted(const map_pair *pair, size_t *from, const uint8_t *prefix, size_t bits)
{
    const brc_span *keys = pair->among;
    size_t step = 1, lo = *from, hi = *from;
    while (hi < pair->namong && brc_bits_order(keys[hi].data, keys[hi].len * 8, prefix, bits) < 0) {
        lo = hi + 1;
        hi = step < pair->namong - hi ? hi + step : pair->namong;
        step *= 2;
    }
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (brc_bits_order(keys[mid].data, keys[mid].len * 8, prefix, bits) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *from = lo;
    return lo < pair->namong && brc_bits_order(keys[lo].data, keys[lo].len * 8, prefix, bits) == 0;
}

/* Enters the child at the head, or moves past it if it leads to no wanted key. */
static int enter(map_pair *pair, brc_map_cursor *s, brc_error *err)
{
    size_t *from = s == &pair->a ? &pair->from_a : &pair->from_b;
    if (pair->among != NULL && !is_wanted(pair, from, s->head.key, s->head.bits))
        return brc_map_cursor_step(s, err);
    return map_cursor_enter(s, err);
}

/* Handles a head that only one side has: reports a key, enters a child. */
static int side_only(map_pair *pair, brc_map_cursor *s, brc_error *err)
{
    brc_span none = {NULL, 0};
    const int is_b = s == &pair->b;
    if (s->head.is_child)
        return enter(pair, s, err);
    brc_span key = {s->head.key, s->head.bits / 8};
    BRC_TRY(pair->each(pair->ctx, key, is_b ? none : s->head.value, is_b ? s->head.value : none,
                       err));
    return brc_map_cursor_step(s, err);
}

static int step_both(map_pair *pair, brc_error *err)
{
    BRC_TRY(brc_map_cursor_step(&pair->a, err));
    return brc_map_cursor_step(&pair->b, err);
}

static int pair_same_key(map_pair *pair, brc_error *err)
{
    const brc_item *x = &pair->a.head;
    brc_span va = x->value, vb = pair->b.head.value;
    if (pair->all || va.len != vb.len || (va.len > 0 && memcmp(va.data, vb.data, va.len) != 0))
        BRC_TRY(pair->each(pair->ctx, (brc_span){x->key, x->bits / 8}, va, vb, err));
    return step_both(pair, err);
}

static int pair_step(map_pair *pair, brc_error *err)
{
    brc_map_cursor *a = &pair->a, *b = &pair->b;
    if (a->at_end || b->at_end)
        return side_only(pair, a->at_end ? b : a, err);
    const brc_item *x = &a->head, *y = &b->head;
    size_t common = brc_bits_common(x->key, x->bits, y->key, y->bits);
    if (common < x->bits && common < y->bits) /* disjoint: the smaller comes first */
        return side_only(pair, brc_bit(x->key, common) ? b : a, err);
    if (!pair->all && x->is_child && y->is_child && brc_oid_cmp(&x->id, &y->id) == 0)
        return step_both(pair, err);
    if (!x->is_child && !y->is_child)
        return pair_same_key(pair, err);
    /* Nested: the shorter prefix contains the other; if they are equal, the higher node does. */
    if (x->is_child && (!y->is_child || x->bits < y->bits ||
                        (x->bits == y->bits && x->level >= y->level)))
        return enter(pair, a, err);
    return enter(pair, b, err);
}

static int walk_both(map_pair *pair, brc_store *store, const brc_oid *a, const brc_oid *b,
                     brc_error *err)
{
    int rc = brc_map_cursor_start(&pair->a, store, a, err);
    if (rc == BRC_OK)
        rc = brc_map_cursor_start(&pair->b, store, b, err);
    while (rc == BRC_OK && !(pair->a.at_end && pair->b.at_end)) {
        rc = pair_step(pair, err);
        brc_store_breathe(store);
        if (rc == BRC_OK)
            rc = brc_store_check_interrupt(store, err);
    }
    brc_map_cursor_end(&pair->a);
    brc_map_cursor_end(&pair->b);
    return rc;
}

int brc_map_diff(brc_store *store, const brc_oid *a, const brc_oid *b, brc_map_diff_fn differs,
                 void *ctx, brc_error *err)
{
    map_pair pair = {.each = differs, .ctx = ctx};
    return brc_oid_cmp(a, b) == 0 ? BRC_OK : walk_both(&pair, store, a, b, err);
}

int brc_map_both(brc_store *store, const brc_oid *a, const brc_oid *b, brc_map_diff_fn each,
                 void *ctx, brc_error *err)
{
    map_pair pair = {.all = 1, .each = each, .ctx = ctx};
    return walk_both(&pair, store, a, b, err);
}

typedef struct among {
    map_pair pair;
    brc_map_among_fn differs;
    void *ctx;
} among;

static int among_differs(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    among *w = ctx;
    map_pair *pair = &w->pair;
    (void)a;
    (void)b;
    /* compare the lengths too: the key may be a mere prefix of a wanted one */
    return is_wanted(pair, &pair->from, key.data, key.len * 8) &&
                   pair->among[pair->from].len == key.len
               ? w->differs(w->ctx, pair->from, err) : BRC_OK;
}

int brc_map_diff_among(brc_store *store, const brc_oid *a, const brc_oid *b, const brc_span *keys,
                       size_t n, brc_map_among_fn differs, void *ctx, brc_error *err)
{
    among w = {{.among = keys, .namong = n, .each = among_differs, .ctx = &w}, differs, ctx};
    return n == 0 || brc_oid_cmp(a, b) == 0 ? BRC_OK : walk_both(&w.pair, store, a, b, err);
}
