#include "map_cursor.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

/* One node's items, read in order. The bytes are a copy: whoever looks at an item may
 * call the store. */
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

int brc_map_cursor_enter(brc_map_cursor *c, brc_error *err)
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
        BRC_TRY(brc_map_cursor_enter(c, err));
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
        BRC_TRY(order == 0 ? brc_map_cursor_enter(c, err) : brc_map_cursor_step(c, err));
    }
    return BRC_OK;
}
