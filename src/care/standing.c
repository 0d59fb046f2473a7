/* Finds what each branch and tag has lost and what is intact: from the damaged ids up to the
 * commits and paths that lead to them. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../history/closure.h"
#include "../history/tree_walk.h"
#include "fsck.h"

enum { NODE_WHOLE = 1, NODE_LOST = 2 };

typedef struct standing_run {
    brc_store *store;
    const brc_faults *faults;
    brc_id_table nodes;   /* uint8_t: states of map nodes */
    void *due;            /* brc_oid[]: nodes to be visited */
    size_t ndue, due_cap;
    brc_children children; /* children of one node       */
    brc_standing now;
    void *paths;          /* char *[]: paths lost at the tip */
    size_t npaths, paths_cap;
} standing_run;

static int is_at_fault(const standing_run *s, const brc_oid *id)
{
    return brc_faults_find(s->faults, id) != NULL;
}

/* ---- nodes -------------------------------- */

/* Examines a node. Sets *state to 0 if the nodes under it must be visited first. A node that cannot
 * be read is lost. */
static int node_look(standing_run *s, const brc_oid *id, uint8_t *state, brc_error *err)
{
    brc_span node;
    brc_error why = BRC_ERROR_INIT;
    s->children.n = 0;
    *state = NODE_LOST;
    if (is_at_fault(s, id))
        return BRC_OK;
    int rc = brc_store_get(s->store, BRC_KIND_NODE, id, &node, &why);
    if (rc == BRC_OK)
        rc = brc_children_read(&s->children, node, &why);
    if (rc < 0 && rc != BRC_ECORRUPT) {
        if (err != NULL)
            brc_error_copy(err, &why);
        return rc;
    }
    if (rc < 0)
        return BRC_OK;
    *state = NODE_WHOLE;
    for (size_t i = 0; i < s->children.n && *state != NODE_LOST; i++) {
        const brc_child *child = brc_child_at(&s->children, i);
        const uint8_t *known = child->is_node ? brc_id_table_find(&s->nodes, &child->id) : NULL;
        if (is_at_fault(s, &child->id) || (known != NULL && *known == NODE_LOST))
            *state = NODE_LOST;
        else if (child->is_node && (known == NULL || *known == 0))
            *state = 0;
    }
    return BRC_OK;
}

static int due_nodes(standing_run *s, brc_error *err)
{
    for (size_t i = 0; i < s->children.n; i++) {
        const brc_child *child = brc_child_at(&s->children, i);
        if (!child->is_node || brc_id_table_find(&s->nodes, &child->id) != NULL)
            continue;
        BRC_TRY(brc_grow_array(&s->due, &s->due_cap, s->ndue + 1, sizeof(brc_oid), err));
        ((brc_oid *)s->due)[s->ndue++] = child->id;
    }
    return BRC_OK;
}

/* Says whether anything in a map is lost. A node waits for the nodes under it. */
static int map_is_lost(standing_run *s, const brc_oid *root, int *lost, brc_error *err)
{
    uint8_t state;
    void *value;
    *lost = 0;
    if (brc_oid_is_zero(root))
        return BRC_OK;
    s->children.n = 0;
    BRC_TRY(brc_children_add(&s->children, root, 1, err));
    BRC_TRY(due_nodes(s, err));
    while (s->ndue > 0) {
        const brc_oid id = ((const brc_oid *)s->due)[s->ndue - 1];
        const size_t before = s->ndue;
        BRC_TRY(brc_store_check_interrupt(s->store, err));
        BRC_TRY(node_look(s, &id, &state, err));
        BRC_TRY(brc_id_table_add(&s->nodes, &id, &value, err));
        if (state == 0)
            BRC_TRY(due_nodes(s, err));
        if (s->ndue > before)
            continue;
        BRC_TRY(brc_id_table_add(&s->nodes, &id, &value, err));
        *(uint8_t *)value = state == 0 ? NODE_WHOLE : state;
        s->ndue--;
    }
    const uint8_t *known = brc_id_table_find(&s->nodes, root);
    *lost = known != NULL && *known == NODE_LOST;
    return BRC_OK;
}

/* ---- the tip -------------------------------- */

static int path_lost(standing_run *s, const char *path, brc_error *err)
{
    char *copy;
    BRC_TRY(brc_grow_array(&s->paths, &s->paths_cap, s->npaths + 1, sizeof(char *), err));
    BRC_TRY(brc_dup(&copy, path, err));
    ((char **)s->paths)[s->npaths++] = copy;
    return BRC_OK;
}

static int look_at_tip_entry(standing_run *s, const char *path, const brc_entry *entry,
                             brc_error *err)
{
    int lost = is_at_fault(s, &entry->doc) || is_at_fault(s, &entry->storage);
    if (!lost && entry->kind == BRC_ARRAY)
        BRC_TRY(map_is_lost(s, &entry->map, &lost, err));
    else if (!lost)
        lost = is_at_fault(s, &entry->map);
    return lost ? path_lost(s, path, err) : BRC_OK;
}

static int look_at_tip(standing_run *s, const brc_oid *root, brc_error *err)
{
    brc_entry entry;
    brc_tree_node node;
    brc_tree_walk *walk;
    const int64_t none[2] = {0, 0};
    int rc;
    if (brc_snapshot_find(s->store, root, "/", &entry, NULL) < 0)
        return path_lost(s, "/", err);
    BRC_TRY(brc_tree_walk_new(&walk, s->store, "/", &entry, 0, none, BRC_WALK_RECURSE, err));
    while ((rc = brc_tree_walk_next(walk, &node, err)) > 0 || rc == BRC_ECORRUPT) {
        rc = rc > 0 ? look_at_tip_entry(s, node.path, &node.entry, err) : BRC_OK;
        if (rc < 0)
            break;
    }
    brc_tree_walk_free(walk);
    return rc;
}

/* ---- a ref -------------------------------- */

static int look_at_commit(standing_run *s, const brc_oid *id, int is_tip, int64_t *newest,
                          brc_closure *walk, brc_error *err)
{
    brc_commit *commit;
    int lost = is_at_fault(s, id);
    s->now.commits++;
    if (brc_commit_get(&commit, s->store, id, NULL) < 0)
        return BRC_OK; /* and its ancestors cannot be reached */
    int rc = lost ? BRC_OK : map_is_lost(s, &commit->root, &lost, err);
    if (rc == BRC_OK && !lost) {
        s->now.whole++;
        s->now.flags |= is_tip ? BRC_STANDS_TIP : 0;
        if (*newest == INT64_MIN || commit->time_us > *newest) {
            *newest = commit->time_us;
            s->now.newest = *id;
        }
    }
    if (rc == BRC_OK && lost && is_tip)
        rc = look_at_tip(s, &commit->root, err);
    for (size_t i = 0; i < commit->nparents && rc >= 0; i++)
        rc = brc_closure_commit(walk, &commit->parents[i], err);
    brc_commit_free(commit);
    return rc < 0 ? rc : BRC_OK;
}

static int look_at_ref(standing_run *s, const brc_ref_row *row, brc_error *err)
{
    brc_closure *walk;
    brc_closure_step at;
    int64_t newest = INT64_MIN;
    int rc, is_tip = 1;
    BRC_TRY(brc_closure_new(&walk, s->store, 0, err));
    BRC_GO(brc_closure_commit(walk, &row->target, err));
    while ((rc = brc_closure_next(walk, &at, err)) > 0) {
        const brc_oid id = at.id;
        brc_closure_skip(walk); /* its parents are added to the walk here */
        BRC_GO(look_at_commit(s, &id, is_tip, &newest, walk, err));
        is_tip = 0;
    }
done:
    brc_closure_free(walk);
    return rc < 0 ? rc : BRC_OK;
}

static void standing_clear(standing_run *s)
{
    while (s->npaths > 0)
        free(((char **)s->paths)[--s->npaths]);
}

int brc_standing_tell(brc_store *store, const brc_faults *faults,
                      int (*tell)(void *ctx, const brc_standing *one), void *ctx, brc_error *err)
{
    standing_run s = {.store = store, .faults = faults, .nodes = BRC_ID_TABLE_INIT(1)};
    s.children.id_len = brc_store_id_len(store);
    brc_ref_row *rows;
    size_t n;
    BRC_TRY(brc_ref_list(store, "", &rows, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++) {
        const char *slash = strchr(rows[i].name, '/');
        if (!rows[i].has_target)
            continue;
        standing_clear(&s);
        s.now = (brc_standing){.name = slash != NULL ? slash + 1 : rows[i].name};
        s.now.flags = strncmp(rows[i].name, "tags/", 5) == 0 ? BRC_STANDS_TAG : 0;
        rc = look_at_ref(&s, &rows[i], err);
        s.now.lost = (const char *const *)s.paths;
        s.now.nlost = s.npaths;
        if (rc == BRC_OK && tell(ctx, &s.now) != 0)
            rc = brc_fail(err, BRC_EINTERRUPT, "stopped on request");
    }
    standing_clear(&s);
    brc_ref_rows_free(rows, n);
    brc_id_table_dispose(&s.nodes);
    free(s.due);
    brc_children_dispose(&s.children);
    free(s.paths);
    return rc;
}
