/* What arrays hold, by path: see usage.h. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/node_path.h"
#include "budget.h"
#include "closure.h"
#include "usage.h"

/* A node of the hierarchy as it was met in versions. */
typedef struct usage_node {
    char *path;
    brc_oid map;  /* of a group: as it was met last            */
    void *roots;  /* held_root[]: of an array, each once       */
    size_t n, cap;
} usage_node;

typedef struct held_root {
    brc_oid id;
    int is_node;
} held_root;

/* A node that has not been looked at. */
typedef struct usage_due {
    char *path;
    size_t depth; /* names in it */
    brc_entry entry;
} usage_due;

typedef struct arrays_run {
    brc_store *store;
    brc_usage *out;
    brc_held held;
    brc_id_table index; /* size_t: by a hash of the path, 1 more than its place in `nodes` */
    brc_id_table roots; /* those of every node: the root in the path's context             */
    void *nodes;
    size_t n, cap;
    void *due;
    size_t ndue, due_cap;
    const usage_due *group; /* that is being looked at */
    brc_budget budget;
} arrays_run;

static usage_node *usage_node_at(const arrays_run *a, size_t i)
{
    return (usage_node *)a->nodes + i;
}

static int usage_node_of(arrays_run *a, const char *path, brc_oid *name, size_t *out,
                         brc_error *err)
{
    void *value;
    *name = brc_hash_object(brc_store_hash(a->store), BRC_KIND_LOOSE, path, strlen(path));
    BRC_TRY(brc_id_table_add(&a->index, name, &value, err));
    size_t *place = value;
    if (*place == 0) {
        BRC_TRY(brc_grow_array(&a->nodes, &a->cap, a->n + 1, sizeof(usage_node), err));
        usage_node *node = usage_node_at(a, a->n);
        memset(node, 0, sizeof(*node));
        BRC_TRY(brc_dup(&node->path, path, err));
        *place = ++a->n;
    }
    *out = *place - 1;
    return BRC_OK;
}

static int array_root(arrays_run *a, usage_node *node, const brc_oid *name, const brc_oid *id,
                      int is_node, brc_error *err)
{
    const brc_oid key = brc_id_in_context(id, name);
    const size_t before = a->roots.n;
    if (brc_oid_is_zero(id))
        return BRC_OK;
    BRC_TRY(brc_id_table_add(&a->roots, &key, NULL, err));
    if (a->roots.n == before)
        return BRC_OK;
    BRC_TRY(brc_grow_array(&node->roots, &node->cap, node->n + 1, sizeof(held_root), err));
    ((held_root *)node->roots)[node->n++] = (held_root){*id, is_node};
    return BRC_OK;
}

/* ---- which arrays there are -------------------------------- */

static int usage_child_due(void *ctx, brc_span key, brc_span before, brc_span now, brc_error *err)
{
    arrays_run *a = ctx;
    brc_entry entry;
    brc_buf path = BRC_BUF_INIT;
    (void)before;
    if (now.data == NULL)
        return BRC_OK;
    BRC_TRY(brc_child_decode(&entry, key, now, brc_store_id_len(a->store), err));
    const size_t depth = a->group->depth + 1;
    int rc = brc_buf_printf(&path, err, "%s/%.*s", depth > 1 ? a->group->path : "",
                            (int)(key.len - 1), (const char *)key.data);
    if (rc == BRC_OK)
        rc = brc_path_is_stored((const char *)path.data, path.len, depth, err);
    usage_due *due = NULL;
    if (rc == BRC_OK)
        rc = brc_grow_array(&a->due, &a->due_cap, a->ndue + 1, sizeof(usage_due), err);
    if (rc == BRC_OK) {
        due = (usage_due *)a->due + a->ndue;
        due->entry = entry;
        due->depth = depth;
        rc = brc_buf_take_text(&path, &due->path, err);
    }
    if (rc == BRC_OK)
        a->ndue++;
    brc_buf_dispose(&path);
    return rc;
}

/* A group's children are looked at where they are not what they were in the version before. */
static int look_at_usage(arrays_run *a, const usage_due *due, brc_error *err)
{
    brc_oid name;
    size_t at;
    const brc_entry *entry = &due->entry;
    BRC_TRY(brc_store_check_interrupt(a->store, err));
    BRC_TRY(brc_budget_take(&a->budget, err));
    BRC_TRY(usage_node_of(a, due->path, &name, &at, err));
    usage_node *node = usage_node_at(a, at);
    if (entry->kind == BRC_ARRAY) {
        BRC_TRY(array_root(a, node, &name, &entry->doc, 0, err));
        BRC_TRY(array_root(a, node, &name, &entry->storage, 0, err));
        return array_root(a, node, &name, &entry->map, 1, err);
    }
    const brc_oid before = node->map;
    node->map = entry->map;
    a->group = due;
    return brc_map_diff(a->store, &before, &entry->map, usage_child_due, a, err);
}

static int look_at_version(arrays_run *a, const brc_oid *root, brc_error *err)
{
    char top_path[] = "/";
    usage_due top = {.path = top_path};
    if (brc_oid_is_zero(root))
        return BRC_OK;
    BRC_TRY(brc_snapshot_find(a->store, root, "/", &top.entry, err));
    int rc = look_at_usage(a, &top, err);
    while (a->ndue > 0 && rc == BRC_OK) {
        const usage_due due = ((const usage_due *)a->due)[--a->ndue];
        rc = look_at_usage(a, &due, err);
        free(due.path);
    }
    brc_store_breathe(a->store);
    return rc;
}

/* ---- what they hold -------------------------------- */

static int hold_array(arrays_run *a, const usage_node *node, int drops, brc_error *err)
{
    for (size_t i = 0; i < node->n; i++) {
        const held_root *root = (const held_root *)node->roots + i;
        BRC_TRY(drops ? brc_held_drop(&a->held, &root->id, root->is_node, err)
                      : brc_held_add(&a->held, &root->id, root->is_node, err));
    }
    return BRC_OK;
}

static int measure_arrays(arrays_run *a, brc_error *err)
{
    const size_t first = a->out->n;
    for (size_t i = 0; i < a->n; i++) {
        const usage_node *node = usage_node_at(a, i);
        if (node->n == 0) /* a group */
            continue;
        BRC_TRY(hold_array(a, node, 0, err));
        BRC_TRY(brc_usage_add(a->out, node->path, NULL, a->held.bytes, 0, err));
        BRC_TRY(hold_array(a, node, 1, err));
    }
    for (size_t i = 0; i < a->n; i++)
        BRC_TRY(hold_array(a, usage_node_at(a, i), 0, err));
    for (size_t i = 0, at = first; i < a->n; i++) {
        const uint64_t before = a->held.bytes;
        if (usage_node_at(a, i)->n == 0)
            continue;
        BRC_TRY(hold_array(a, usage_node_at(a, i), 1, err));
        ((brc_usage_item *)a->out->items)[at++].alone = before - a->held.bytes;
        BRC_TRY(hold_array(a, usage_node_at(a, i), 0, err));
    }
    return BRC_OK;
}

static int usage_path_order(const void *x, const void *y)
{
    return strcmp(((const brc_usage_item *)x)->path, ((const brc_usage_item *)y)->path);
}

int brc_usage_arrays(brc_usage *out, brc_store *store, const brc_expire_plan *plan, brc_error *err)
{
    arrays_run a = {.store = store, .out = out, .index = BRC_ID_TABLE_INIT(sizeof(size_t)),
                    .roots = BRC_ID_TABLE_INIT(0), .budget = brc_budget_of(store)};
    int rc = BRC_OK;
    brc_held_init(&a.held, store);
    for (size_t i = 0; i < plan->kept + plan->expired && rc == BRC_OK; i++)
        rc = look_at_version(&a, &brc_expire_commit_at(plan, plan->order[i])->root, err);
    if (rc == BRC_OK)
        rc = measure_arrays(&a, err);
    if (out->n > 1)
        qsort(out->items, out->n, sizeof(brc_usage_item), usage_path_order);
    for (size_t i = 0; i < a.n; i++) {
        free(usage_node_at(&a, i)->path);
        free(usage_node_at(&a, i)->roots);
    }
    while (a.ndue > 0)
        free(((usage_due *)a.due)[--a.ndue].path);
    free(a.nodes);
    free(a.due);
    brc_id_table_dispose(&a.index);
    brc_id_table_dispose(&a.roots);
    brc_held_dispose(&a.held);
    return rc;
}
