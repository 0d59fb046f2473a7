#include "node_children.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../tree/map.h"

void brc_children_dispose(brc_children *list)
{
    free(list->items);
    memset(list, 0, sizeof(*list));
}

const brc_child *brc_child_at(const brc_children *list, size_t i)
{
    return (const brc_child *)list->items + i;
}

int brc_children_add(brc_children *list, const brc_oid *id, int is_node, brc_error *err)
{
    if (brc_oid_is_zero(id))
        return BRC_OK;
    BRC_TRY(brc_grow_array(&list->items, &list->cap, list->n + 1, sizeof(brc_child), err));
    ((brc_child *)list->items)[list->n++] = (brc_child){*id, is_node};
    return BRC_OK;
}

static int child_of_node(void *ctx, const brc_oid *id, brc_error *err)
{
    return brc_children_add(ctx, id, 1, err);
}

/* An id is a chunk, and anything else an entry. */
static int children_of_item(void *ctx, brc_span key, brc_span value, brc_error *err)
{
    brc_children *list = ctx;
    brc_entry entry;
    brc_oid id;
    (void)key;
    if (value.len == list->id_len) {
        memset(&id, 0, sizeof(id));
        memcpy(id.bytes, value.data, list->id_len);
        return brc_children_add(list, &id, 0, err);
    }
    BRC_TRY(brc_entry_decode(&entry, value, list->id_len, err));
    BRC_TRY(brc_children_add(list, &entry.doc, 0, err));
    BRC_TRY(brc_children_add(list, &entry.storage, 0, err));
    return brc_children_add(list, &entry.map, 1, err);
}

int brc_children_read(brc_children *list, brc_span node, brc_error *err)
{
    return brc_map_check_node(node, list->id_len, child_of_node, children_of_item, list, err);
}
