/*
 * Objects that become differences: chunks of older versions, each from the chunk that the next
 * newer version has under the same key.
 *
 * Pairs of chunks are what differs between a commit and its parents, the newest commits first, so
 * that an object is chosen before the one that builds on it. Objects of the last versions stay
 * whole, and so do those that newer versions than a limit use.
 */
#include "repack.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../history/tree_diff.h"
#include "../store/bases.h"

/* Pairs of one array that are listed together. */
enum { PAIRS_MOST = 1 << 14, PAIRS_PAGE = 512 };

typedef struct delta_pair {
    brc_oid older, newer;
} delta_pair;

/* The two states of a node that differ. */
typedef struct delta_place {
    brc_entry older, newer;
} delta_place;

typedef struct delta_commit {
    size_t i; /* in the graph */
    int64_t generation;
} delta_commit;

static delta_place *place_top(const brc_repack_deltas *d)
{
    return (delta_place *)d->places + d->nplaces - 1;
}

static int push_place(brc_repack_deltas *d, const brc_entry *older, const brc_entry *newer,
                      brc_error *err)
{
    if (older->kind == 0 || older->kind != newer->kind)
        return BRC_OK;
    BRC_TRY(brc_grow_array(&d->places, &d->places_cap, d->nplaces + 1, sizeof(delta_place), err));
    d->nplaces++;
    *place_top(d) = (delta_place){*older, *newer};
    return BRC_OK;
}

static int add_children(void *ctx, const char *name, const brc_entry *older, const brc_entry *newer,
                     brc_error *err)
{
    (void)name;
    return push_place(ctx, older, newer, err);
}

/* Adds a pair whose turn it is: of many, a part is listed at a time. */
static int add_versions(void *ctx, brc_span key, brc_span older, brc_span newer, brc_error *err)
{
    brc_repack_deltas *d = ctx;
    const size_t id_len = brc_store_id_len(d->walk->store);
    (void)key;
    if (older.len != id_len || newer.len != id_len || d->met++ < d->passed ||
        d->npairs == PAIRS_MOST)
        return BRC_OK;
    BRC_TRY(brc_grow_array(&d->pairs, &d->pairs_cap, d->npairs + 1, sizeof(delta_pair), err));
    delta_pair *pair = (delta_pair *)d->pairs + d->npairs++;
    memset(pair, 0, sizeof(*pair));
    memcpy(pair->older.bytes, older.data, id_len);
    memcpy(pair->newer.bytes, newer.data, id_len);
    return BRC_OK;
}

/* Lists the next pairs of the node at the top of the stack, or its children. */
static int compare_place(brc_repack_deltas *d, brc_error *err)
{
    const delta_place place = *place_top(d);
    d->npairs = d->pair = d->met = 0;
    if (place.older.kind == BRC_GROUP) {
        d->nplaces--;
        return brc_children_diff(d->walk->store, &place.older, &place.newer, add_children, d, err);
    }
    BRC_TRY(brc_map_diff(d->walk->store, &place.older.map, &place.newer.map, add_versions, d, err));
    d->passed += d->npairs;
    if (d->npairs < PAIRS_MOST) {
        d->passed = 0;
        d->nplaces--;
    }
    return BRC_OK;
}

static int commit_entry(const brc_repack_deltas *d, size_t i, brc_entry *out, brc_error *err)
{
    brc_commit *commit;
    brc_store *store = d->walk->store;
    const brc_oid id = brc_graph_at(&d->walk->graph, i)->id;
    BRC_TRY(brc_commit_get(&commit, store, &id, err));
    const brc_oid root = commit->root;
    brc_commit_free(commit);
    BRC_TRY(brc_snapshot_find(store, &root, d->walk->path, out, err));
    d->walk->found |= out->kind != 0;
    return BRC_OK;
}

static int youngest_commit_first(const void *a, const void *b)
{
    const delta_commit *x = a, *y = b;
    if (x->generation != y->generation)
        return x->generation > y->generation ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

/* Puts the commits into an order in which each comes before its parents. */
static int order_commits(brc_repack_deltas *d, brc_error *err)
{
    void *p;
    const brc_graph *g = &d->walk->graph;
    if (d->order != NULL)
        return BRC_OK;
    BRC_TRY(brc_new_array(&p, g->n + 1, sizeof(delta_commit), err));
    delta_commit *list = d->order = p;
    for (size_t i = 0; i < g->n; i++) {
        list[i].i = i;
        BRC_TRY(brc_commit_generation(d->walk->store, &brc_graph_at(g, i)->id, &list[i].generation,
                                      err));
    }
    qsort(list, g->n, sizeof(*list), youngest_commit_first);
    return BRC_OK;
}

/* Goes to the next commit and parent. Returns 0 at the end. */
static int next_edge(brc_repack_deltas *d, brc_error *err)
{
    brc_entry older, newer;
    const brc_graph *g = &d->walk->graph;
    BRC_TRY(order_commits(d, err));
    if (d->commit == g->n)
        return 0;
    const size_t i = ((const delta_commit *)d->order)[d->commit].i;
    BRC_TRY(commit_entry(d, i, &newer, err));
    if (d->parent == brc_graph_at(g, i)->nparents) {
        d->commit++;
        d->parent = 0;
        return 1;
    }
    BRC_TRY(commit_entry(d, brc_graph_parent(g, i, d->parent++), &older, err));
    BRC_TRY(push_place(d, &older, &newer, err));
    return 1;
}

/* Takes the next pair. Returns 0 at the end. */
static int next_pair(brc_repack_deltas *d, delta_pair *out, brc_error *err)
{
    while (d->pair == d->npairs) {
        if (d->nplaces > 0) {
            BRC_TRY(compare_place(d, err));
        } else {
            const int rc = next_edge(d, err);
            if (rc <= 0)
                return rc;
        }
        brc_store_breathe(d->walk->store);
        BRC_TRY(brc_store_check_interrupt(d->walk->store, err));
    }
    *out = ((delta_pair *)d->pairs)[d->pair++];
    return 1;
}

/* ---- listing -------------------------------- */

static int is_left_whole(const brc_repack_deltas *d, const brc_oid *id)
{
    return brc_id_table_find(&d->walk->newer, id) != NULL;
}

/* Stores whether the object may become a difference, in a dry run, which notes how deep it is
 * then. */
static int guess_depth(brc_repack_deltas *d, const delta_pair *pair, int *may, brc_error *err)
{
    void *value;
    uint64_t depth;
    const uint64_t *below = brc_id_table_find(&d->depths, &pair->newer);
    *may = brc_id_table_find(&d->depths, &pair->older) == NULL;
    if (!*may)
        return BRC_OK;
    BRC_TRY(brc_delta_depth(d->walk->store, &pair->newer, &depth, err));
    depth = below != NULL ? *below + 1 : depth + 1;
    *may = depth <= d->most;
    if (!*may)
        return BRC_OK;
    BRC_TRY(brc_id_table_add(&d->depths, &pair->older, &value, err));
    *(uint64_t *)value = depth;
    return BRC_OK;
}

int brc_repack_deltas_next(brc_repack_deltas *d, brc_again_item *out, brc_error *err)
{
    delta_pair pair;
    int rc;
    while ((rc = next_pair(d, &pair, err)) > 0) {
        int may = 1;
        if (is_left_whole(d, &pair.older))
            continue;
        if (d->is_dry)
            BRC_TRY(guess_depth(d, &pair, &may, err));
        if (!may)
            continue;
        *out = (brc_again_item){.id = pair.older, .kind = BRC_AGAIN_DIFFER};
        out->as.different.base = pair.newer;
        out->as.different.most_depth = d->most;
        return 1;
    }
    return rc;
}

/* ---- storing whole -------------------------------- */

/* Returns 1 if the object must not stay a difference. */
static int is_too_deep(const brc_repack_deltas *d, const brc_oid *id, brc_error *err)
{
    uint64_t depth;
    BRC_TRY(brc_delta_depth(d->walk->store, id, &depth, err));
    return depth > d->most || (depth > 0 && is_left_whole(d, id));
}

static int look_object_up(const brc_repack_deltas *d, const brc_oid *id, brc_object *out,
                          brc_error *err)
{
    *out = (brc_object){.id = *id};
    BRC_TRY(brc_store_begin_read(d->walk->store, err));
    const int rc = brc_objects_find(d->walk->store, &out, 1, err);
    brc_store_end_read(d->walk->store);
    return rc;
}

/* Finds the object that all builds on, for a dry run: this one will be about as long. Stores 1 in
 * *again if the object was counted before. */
static int guess_whole(brc_repack_deltas *d, const brc_oid *id, brc_object *out, int *again,
                       brc_error *err)
{
    brc_oid at = *id;
    int found = 1;
    *again = brc_id_table_find(&d->depths, id) != NULL;
    BRC_TRY(brc_id_table_add(&d->depths, id, NULL, err));
    BRC_TRY(brc_store_begin_read(d->walk->store, err));
    int rc = BRC_OK;
    for (int n = 0; found && n <= BRC_DELTA_DEPTH_MOST && rc == BRC_OK; n++)
        rc = brc_delta_base(d->walk->store, &at, &found, &at, err);
    brc_store_end_read(d->walk->store);
    return rc < 0 ? rc : look_object_up(d, &at, out, err);
}

/* An object that cannot be read stays as it is. */
static int store_whole(brc_repack_deltas *d, const brc_oid *id, brc_object *out, int *stays,
                       brc_error *err)
{
    char hex[65];
    brc_error why = BRC_ERROR_INIT;
    const int rc = brc_delta_make_whole(d->walk->store, id, &why);
    *stays = rc == BRC_ECORRUPT || rc == BRC_EUNSUPPORTED;
    if (*stays && d->left++ == 0) {
        brc_error_copy(&d->why, &why);
        brc_context(&d->why, "the chunk of object %s", brc_oid_format(hex, id));
    }
    if (rc < 0 && !*stays && err != NULL)
        brc_error_copy(err, &why);
    return rc < 0 && !*stays ? rc : look_object_up(d, id, out, err);
}

static int make_one_whole(brc_repack_deltas *d, const brc_oid *id, brc_error *err)
{
    brc_object before, after;
    int stays;
    BRC_TRY(look_object_up(d, id, &before, err));
    if (d->is_dry)
        BRC_TRY(guess_whole(d, id, &after, &stays, err));
    else
        BRC_TRY(store_whole(d, id, &after, &stays, err));
    if (stays || !before.found || !after.found)
        return BRC_OK;
    d->objects++;
    d->before += before.stored;
    d->after += after.stored;
    return d->step(d->ctx, after.size, err);
}

static int make_pair_whole(brc_repack_deltas *d, const delta_pair *pair, brc_error *err)
{
    for (int i = 0; i < 2; i++) {
        const brc_oid *id = i == 0 ? &pair->newer : &pair->older;
        BRC_TRY(brc_store_begin_read(d->walk->store, err));
        const int is = is_too_deep(d, id, err);
        brc_store_end_read(d->walk->store);
        BRC_TRY(is);
        if (is)
            BRC_TRY(make_one_whole(d, id, err));
    }
    return BRC_OK;
}

/* Stores those objects whole that newer versions use: a branch may begin at an old version. */
static int make_newer_whole(brc_repack_deltas *d, brc_error *err)
{
    brc_oid page[PAIRS_PAGE], after;
    size_t n = 1;
    memset(&after, 0, sizeof(after));
    while (n > 0 && strcmp(d->walk->path, "/") == 0) {
        BRC_TRY(brc_store_begin_read(d->walk->store, err));
        const int rc = brc_delta_page(d->walk->store, &after, page, PAIRS_PAGE, &n, err);
        brc_store_end_read(d->walk->store);
        BRC_TRY(rc);
        for (size_t i = 0; i < n; i++)
            if (is_left_whole(d, &page[i]))
                BRC_TRY(make_one_whole(d, &page[i], err));
        if (n > 0)
            after = page[n - 1];
        BRC_TRY(d->step(d->ctx, 0, err));
    }
    return BRC_OK;
}

int brc_repack_deltas_whole(brc_repack_deltas *d, brc_error *err)
{
    delta_pair pair;
    int rc = 1;
    BRC_TRY(make_newer_whole(d, err));
    while (rc > 0) {
        BRC_TRY(brc_store_begin_read(d->walk->store, err));
        rc = next_pair(d, &pair, err);
        brc_store_end_read(d->walk->store);
        if (rc > 0)
            BRC_TRY(make_pair_whole(d, &pair, err));
    }
    d->commit = d->parent = 0; /* from the beginning */
    return rc;
}

void brc_repack_deltas_dispose(brc_repack_deltas *d)
{
    free(d->order);
    free(d->places);
    free(d->pairs);
    brc_id_table_dispose(&d->depths);
}
