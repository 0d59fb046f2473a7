#include "usage.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/node_path.h"
#include "../history/closure.h"
#include "../history/graph.h"
#include "../history/tree_diff.h"
#include "../history/tree_walk.h"
#include "../store/collect.h"

/* ==== held ================================ */

typedef struct held_object {
    uint64_t count, stored;
    int is_known; /* its stored bytes are known */
} held_object;

/* The number of ids that are looked up together. */
enum { LOOK_UP = 512 };

static void held_init(brc_held *held, brc_store *store)
{
    memset(held, 0, sizeof(*held));
    held->store = store;
    held->table = (brc_id_table)BRC_ID_TABLE_INIT(sizeof(held_object));
    held->children.id_len = brc_store_id_len(store);
}

static void held_dispose(brc_held *held)
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

/* Looks up the stored bytes of children that are new. */
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

/* Counts a reference. Sets *goes_on to 1 if the object is new or gone, so that its references to
 * its children count too. */
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

/* Adds the root of a map or snapshot (is_node 1), or another object, which has no children. The
 * zero id is ignored. After a failure the sums are undefined. */
static int held_add(brc_held *held, const brc_oid *id, int is_node, brc_error *err)
{
    return held_run(held, id, is_node, 0, err);
}

/* Drops something that was added before, once for each time it was added. */
static int held_drop(brc_held *held, const brc_oid *id, int is_node, brc_error *err)
{
    return held_run(held, id, is_node, 1, err);
}

/* ==== usage versions ================================ */

/* Computes what versions hold: see usage.h. */

typedef struct usage_run {
    brc_store *store;
    const brc_expire_plan *plan;
    brc_usage *out;
    brc_held held;
    brc_graph others; /* commits outside the plan; those from `due` on are not held yet */
    size_t due;
    brc_roots roots;
} usage_run;

void brc_usage_dispose(brc_usage *usage)
{
    for (size_t i = 0; i < usage->n; i++)
        free(((brc_usage_item *)usage->items)[i].path);
    free(usage->items);
    memset(usage, 0, sizeof(*usage));
}

static int usage_add(brc_usage *out, const char *path, const brc_oid *id, uint64_t bytes,
                     uint64_t alone, brc_error *err)
{
    char *copy = NULL;
    BRC_TRY(brc_grow_array(&out->items, &out->cap, out->n + 1, sizeof(brc_usage_item), err));
    if (path != NULL)
        BRC_TRY(brc_dup(&copy, path, err));
    brc_usage_item *item = (brc_usage_item *)out->items + out->n++;
    memset(item, 0, sizeof(*item));
    item->path = copy;
    if (id != NULL)
        item->id = *id;
    item->bytes = bytes;
    item->alone = alone;
    return BRC_OK;
}

/* ---- versions -------------------------------- */

static int hold_version(usage_run *u, size_t i, int drops, brc_error *err)
{
    const brc_expire_commit *c = brc_expire_commit_at(u->plan, u->plan->order[i]);
    int (*const call)(brc_held *, const brc_oid *, int, brc_error *) = drops ? held_drop
                                                                             : held_add;
    BRC_TRY(call(&u->held, &c->id, 0, err));
    return call(&u->held, &c->root, 1, err);
}

static size_t version_count(const usage_run *u)
{
    return u->plan->kept + u->plan->expired;
}

/* Measures each version. From one version to the next only the differences are visited. */
static int measure_each(usage_run *u, size_t first, brc_error *err)
{
    const size_t n = version_count(u);
    for (size_t i = 0; i < n; i++) {
        BRC_TRY(hold_version(u, i, 0, err));
        if (i > 0)
            BRC_TRY(hold_version(u, i - 1, 1, err));
        ((brc_usage_item *)u->out->items)[first + i].bytes = u->held.bytes;
    }
    return n > 0 ? hold_version(u, n - 1, 1, err) : BRC_OK;
}

/* Measures for each version what is freed if it goes and all others stay. */
static int measure_alone(usage_run *u, size_t first, brc_error *err)
{
    for (size_t i = 0; i < version_count(u); i++) {
        const uint64_t before = u->held.bytes;
        BRC_TRY(hold_version(u, i, 1, err));
        ((brc_usage_item *)u->out->items)[first + i].alone = before - u->held.bytes;
        BRC_TRY(hold_version(u, i, 0, err));
    }
    return BRC_OK;
}

static int measure_expired(usage_run *u, brc_error *err)
{
    const uint64_t before = u->held.bytes;
    for (int drops = 1; drops >= 0; drops--) {
        for (size_t i = 0; i < version_count(u); i++)
            if (brc_expire_commit_at(u->plan, u->plan->order[i])->reasons == 0)
                BRC_TRY(hold_version(u, i, drops, err));
        if (drops)
            u->out->expired = before - u->held.bytes;
    }
    return BRC_OK;
}

/* ---- what else is needed -------------------------------- */

/* Leaves commits of the plan out of the walk over the others. */
static int is_planned(void *ctx, const brc_oid *id, brc_error *err)
{
    const usage_run *u = ctx;
    (void)err;
    return brc_graph_find(&u->plan->graph, id) != SIZE_MAX;
}

static int other_met(usage_run *u, const brc_oid *id, int must_be, brc_error *err)
{
    brc_object o = {.id = *id}, *one = &o;
    size_t number;
    if (brc_oid_is_zero(id) || is_planned(u, id, err))
        return BRC_OK;
    BRC_TRY(brc_objects_find(u->store, &one, 1, err));
    return o.found || must_be ? brc_graph_add(&u->others, id, &number, err) : BRC_OK;
}

/* Holds commits that refs do not reach, and all their ancestors. */
static int hold_others(usage_run *u, brc_error *err)
{
    for (; u->due < u->others.n; u->due++) {
        BRC_TRY(brc_graph_read(&u->others, u->due, err));
        brc_graph_commit *c = brc_graph_at(&u->others, u->due);
        const brc_oid root = c->commit->root;
        brc_commit_free(c->commit);
        c->commit = NULL;
        BRC_TRY(held_add(&u->held, &c->id, 0, err));
        BRC_TRY(held_add(&u->held, &root, 1, err));
    }
    return BRC_OK;
}

static int hold_entry(usage_run *u, const brc_root *root, brc_error *err)
{
    brc_entry entry;
    const brc_span bytes = {root->entry, root->entry_len};
    if (root->entry_len == 0)
        return BRC_OK;
    BRC_TRY(brc_entry_decode(&entry, bytes, brc_store_id_len(u->store), err));
    BRC_TRY(held_add(&u->held, &entry.doc, 0, err));
    BRC_TRY(held_add(&u->held, &entry.storage, 0, err));
    return held_add(&u->held, &entry.map, 1, err);
}

static int hold_chunk(void *ctx, const brc_oid *chunk, brc_error *err)
{
    usage_run *u = ctx;
    return held_add(&u->held, chunk, 0, err);
}

static int hold_draft_row(usage_run *u, int64_t node, brc_error *err)
{
    return brc_roots_of_row(u->store, node, hold_chunk, u, err);
}

static int hold_roots(usage_run *u, brc_error *err)
{
    for (size_t i = 0; i < u->roots.n; i++) {
        const brc_root *root = &u->roots.items[i];
        switch (root->what) {
        case BRC_ROOT_COMMIT:
        case BRC_ROOT_PAST:
            BRC_TRY(other_met(u, &root->id, root->what == BRC_ROOT_COMMIT, err));
            break;
        case BRC_ROOT_OBJECT:
            BRC_TRY(held_add(&u->held, &root->id, 0, err));
            break;
        case BRC_ROOT_ROW:
            BRC_TRY(hold_draft_row(u, root->node, err));
            BRC_TRY(hold_entry(u, root, err));
            break;
        default:
            BRC_TRY(hold_entry(u, root, err));
            break;
        }
    }
    u->roots.n = 0;
    return hold_others(u, err);
}

static int hold_drafts(usage_run *u, brc_error *err)
{
    brc_root_drafts drafts = {0};
    brc_log_range none = {INT64_MAX, 0, 0};
    BRC_TRY(brc_roots_named(u->store, &none, 1, &u->roots, err));
    int rc = hold_roots(u, err);
    if (rc == BRC_OK)
        rc = brc_root_drafts_list(u->store, 1, &drafts, err);
    for (size_t i = 0; i < drafts.n && rc == BRC_OK; i++) {
        if (drafts.items[i].is_dropped)
            continue;
        rc = brc_roots_of_draft(u->store, drafts.items[i].id, &u->roots, err);
        if (rc == BRC_OK)
            rc = hold_roots(u, err);
    }
    free(drafts.items);
    return rc;
}

static int hold_log(usage_run *u, const brc_log_window *window, brc_error *err)
{
    brc_log_range range = {window->since_us, window->least, 0};
    BRC_TRY(brc_roots_named(u->store, &range, 1, &u->roots, err));
    return hold_roots(u, err);
}

/* ---- the whole -------------------------------- */

static int list_versions(usage_run *u, brc_error *err)
{
    for (size_t i = 0; i < version_count(u); i++) {
        const brc_expire_commit *c = brc_expire_commit_at(u->plan, u->plan->order[i]);
        BRC_TRY(usage_add(u->out, NULL, &c->id, 0, 0, err));
    }
    return BRC_OK;
}

static int measure_all(usage_run *u, const brc_log_window *window, int only_expired,
                       brc_error *err)
{
    const size_t first = u->out->n;
    brc_stats stats = BRC_STATS_INIT;
    if (!only_expired) {
        BRC_TRY(list_versions(u, err));
        BRC_TRY(measure_each(u, first, err));
    }
    for (size_t i = 0; i < version_count(u); i++)
        BRC_TRY(hold_version(u, i, 0, err));
    u->out->versions = u->held.bytes;
    BRC_TRY(hold_drafts(u, err));
    u->out->uncommitted = u->held.bytes - u->out->versions;
    if (only_expired)
        return measure_expired(u, err);
    BRC_TRY(measure_alone(u, first, err));
    const uint64_t before = u->held.bytes;
    BRC_TRY(hold_log(u, window, err));
    u->out->log = u->held.bytes - before;
    BRC_TRY(brc_store_totals(u->store, &stats, err));
    u->out->stored = stats.stored_bytes;
    u->out->outside = stats.outside_bytes;
    return BRC_OK;
}

int brc_usage_measure(brc_usage *out, brc_store *store, const brc_expire_plan *plan,
                      const brc_log_window *window, int only_expired, brc_error *err)
{
    usage_run u = {.store = store, .plan = plan, .out = out, .others = BRC_GRAPH_INIT};
    u.others.store = store;
    u.others.keeps = 1;
    u.others.skips = is_planned;
    u.others.ctx = &u;
    held_init(&u.held, store);
    int rc = measure_all(&u, window, only_expired, err);
    held_dispose(&u.held);
    brc_graph_dispose(&u.others);
    brc_roots_dispose(&u.roots);
    return rc;
}

/* ==== usage arrays ================================ */

/* Computes what arrays hold, by path: see usage.h. */

/* A node of the hierarchy, over all versions. */
typedef struct usage_node {
    char *path;
    brc_oid map;  /* of a group: as it was met last            */
    void *roots;  /* of an array: held_root[], each root once  */
    size_t n, cap;
} usage_node;

typedef struct held_root {
    brc_oid id;
    int is_node;
} held_root;

/* A node that was not visited yet. */
typedef struct usage_due {
    char *path;
    size_t depth; /* number of names in the path */
    brc_entry entry;
} usage_due;

typedef struct arrays_run {
    brc_store *store;
    brc_usage *out;
    brc_held held;
    brc_id_table index; /* size_t: by a hash of the path, one more than its index in `nodes` */
    brc_id_table roots; /* the roots of every node: each root in the context of its path   */
    void *nodes;
    size_t n, cap;
    void *due;
    size_t ndue, due_cap;
    const usage_due *group; /* the group that is being visited */
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

static int usage_child_due(void *ctx, const char *name, const brc_entry *before,
                           const brc_entry *now, brc_error *err)
{
    arrays_run *a = ctx;
    usage_due due = {.depth = a->group->depth + 1, .entry = *now};
    (void)before;
    if (now->kind == 0)
        return BRC_OK;
    BRC_TRY(brc_grow_array(&a->due, &a->due_cap, a->ndue + 1, sizeof(usage_due), err));
    BRC_TRY(brc_node_join(&due.path, a->group->path, name, err));
    const int rc = brc_path_is_stored(due.path, strlen(due.path), due.depth, err);
    if (rc < 0)
        free(due.path);
    else
        ((usage_due *)a->due)[a->ndue++] = due;
    return rc;
}

/* Visits a node. A group's children are visited only if the group differs from the version
 * before. */
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
    const brc_entry before = {.kind = BRC_GROUP, .map = node->map};
    node->map = entry->map;
    a->group = due;
    return brc_children_diff(a->store, &before, entry, usage_child_due, a, err);
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
        BRC_TRY(drops ? held_drop(&a->held, &root->id, root->is_node, err)
                      : held_add(&a->held, &root->id, root->is_node, err));
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
        BRC_TRY(usage_add(a->out, node->path, NULL, a->held.bytes, 0, err));
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
    held_init(&a.held, store);
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
    held_dispose(&a.held);
    return rc;
}
