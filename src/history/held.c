#include "held.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

typedef struct held_object {
    uint64_t count, stored;
    int is_known; /* its stored bytes */
} held_object;

/* Ids that are looked up together. */
enum { LOOK_UP = 512 };

void brc_held_init(brc_held *held, brc_store *store)
{
    memset(held, 0, sizeof(*held));
    held->store = store;
    held->table = (brc_id_table)BRC_ID_TABLE_INIT(sizeof(held_object));
    held->children.id_len = brc_store_id_len(store);
}

void brc_held_dispose(brc_held *held)
{
    brc_id_table_dispose(&held->table);
    brc_children_dispose(&held->due);
    brc_children_dispose(&held->children);
    memset(held, 0, sizeof(*held));
}

static int read_children(brc_held *held, const brc_oid *id, brc_error *err)
{
    brc_span node;
    held->children.n = 0;
    BRC_TRY(brc_store_get(held->store, BRC_KIND_NODE, id, &node, err));
    return brc_children_read(&held->children, node, err);
}

/* ---- stored bytes -------------------------------- */

static int learn_some(brc_held *held, brc_object *found, size_t n, brc_error *err)
{
    brc_object *list[LOOK_UP] = {0};
    for (size_t i = 0; i < n; i++)
        list[i] = &found[i];
    BRC_TRY(brc_objects_find(held->store, list, n, err));
    for (size_t i = 0; i < n; i++) {
        held_object *o = brc_id_table_find(&held->table, &found[i].id);
        o->stored = found[i].found ? found[i].stored : 0;
    }
    return BRC_OK;
}

/* Of the children that are new. */
static int learn_children(brc_held *held, brc_error *err)
{
    void *p = NULL, *value;
    size_t n = 0;
    int rc = brc_new_array(&p, LOOK_UP, sizeof(brc_object), err);
    brc_object *found = p;
    for (size_t i = 0; i < held->children.n && rc == BRC_OK; i++) {
        const brc_child *child = brc_child_at(&held->children, i);
        rc = brc_id_table_add(&held->table, &child->id, &value, err);
        if (rc < 0 || ((held_object *)value)->is_known)
            continue;
        ((held_object *)value)->is_known = 1;
        memset(&found[n], 0, sizeof(found[n]));
        found[n++].id = child->id;
        if (n == LOOK_UP) {
            rc = learn_some(held, found, n, err);
            n = 0;
        }
    }
    if (rc == BRC_OK && n > 0)
        rc = learn_some(held, found, n, err);
    free(p);
    return rc;
}

static int due_children(brc_held *held, brc_error *err)
{
    for (size_t i = 0; i < held->children.n; i++) {
        const brc_child *child = brc_child_at(&held->children, i);
        BRC_TRY(brc_children_add(&held->due, &child->id, child->is_node, err));
    }
    return BRC_OK;
}

/* ---- counting -------------------------------- */

/* *goes_on 1: it is new or gone, and so is a reference from it to each of its children. */
static int held_count(brc_held *held, const brc_oid *id, int drops, int *goes_on, brc_error *err)
{
    held_object *o = brc_id_table_find(&held->table, id);
    *goes_on = 0;
    if (o == NULL || (drops && o->count == 0))
        return brc_fail(err, BRC_EINTERNAL, "an object is dropped that was not held");
    if (drops ? --o->count > 0 : o->count++ > 0)
        return BRC_OK;
    *goes_on = 1;
    held->bytes = drops ? held->bytes - o->stored : held->bytes + o->stored;
    held->objects = drops ? held->objects - 1 : held->objects + 1;
    return BRC_OK;
}

static int held_run(brc_held *held, const brc_oid *id, int is_node, int drops, brc_error *err)
{
    held->children.n = held->due.n = 0;
    BRC_TRY(brc_children_add(&held->children, id, is_node, err));
    BRC_TRY(learn_children(held, err));
    BRC_TRY(due_children(held, err));
    while (held->due.n > 0) {
        const brc_child now = *brc_child_at(&held->due, --held->due.n);
        int goes_on;
        BRC_TRY(held_count(held, &now.id, drops, &goes_on, err));
        if (!goes_on || !now.is_node)
            continue;
        BRC_TRY(brc_store_check_interrupt(held->store, err));
        BRC_TRY(read_children(held, &now.id, err));
        BRC_TRY(learn_children(held, err));
        BRC_TRY(due_children(held, err));
        brc_store_breathe(held->store);
    }
    return BRC_OK;
}

int brc_held_add(brc_held *held, const brc_oid *id, int is_node, brc_error *err)
{
    return held_run(held, id, is_node, 0, err);
}

int brc_held_drop(brc_held *held, const brc_oid *id, int is_node, brc_error *err)
{
    return held_run(held, id, is_node, 1, err);
}
