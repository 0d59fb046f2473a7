/* What is in a repository, counted: objects, commits, and the chunks of all versions. */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../history/commit.h"
#include "../zarr/repo.h"

/* ---- commits -------------------------------- */

static int id_order(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(brc_oid));
}

typedef struct commit_set {
    void *ids; /* brc_oid[] */
    size_t n, cap;
} commit_set;

static int collect_commits(commit_set *set, brc_store *store, const brc_oid *tip, brc_error *err)
{
    brc_walk *walk;
    const brc_commit *commit;
    int rc;
    BRC_TRY(brc_walk_new(&walk, store, tip, err));
    while ((rc = brc_walk_next(walk, &commit, err)) > 0) {
        rc = brc_grow_array(&set->ids, &set->cap, set->n + 1, sizeof(brc_oid), err);
        if (rc < 0)
            break;
        ((brc_oid *)set->ids)[set->n++] = commit->id;
    }
    brc_walk_free(walk);
    return rc;
}

/* Refs mostly share their history: what one walk has met, the next would meet again,
 * so ids are made distinct after each. */
static void distinct_commits(commit_set *set)
{
    brc_oid *ids = set->ids;
    size_t kept = 0;
    if (set->n > 1)
        qsort(ids, set->n, sizeof(*ids), id_order);
    for (size_t i = 0; i < set->n; i++)
        if (kept == 0 || id_order(&ids[kept - 1], &ids[i]) != 0)
            ids[kept++] = ids[i];
    set->n = kept;
}

/* Every commit that a ref reaches, once. */
static int all_commits(commit_set *set, brc_store *store, brc_error *err)
{
    brc_ref_row *rows;
    size_t n;
    BRC_TRY(brc_ref_list(store, "", &rows, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc >= 0; i++) {
        const void *there = NULL;
        if (!rows[i].has_target)
            continue;
        if (set->n > 0)
            there = bsearch(&rows[i].target, set->ids, set->n, sizeof(brc_oid), id_order);
        if (there == NULL)
            rc = collect_commits(set, store, &rows[i].target, err);
        distinct_commits(set);
    }
    brc_ref_rows_free(rows, n);
    return rc < 0 ? rc : BRC_OK;
}

/* ---- chunks of all versions -------------------------------- */

/* A group's children, by the root of their map, and how many chunks are under it:
 * versions share most groups, and each is counted through once. */
typedef struct group_count {
    brc_oid map;
    uint64_t chunks;
} group_count;

typedef struct chunk_counter {
    brc_store *store;
    void *groups; /* of tsearch(): group_count * */
    int depth;
    uint64_t chunks; /* of the group now */
} chunk_counter;

/* No path is deeper (brc_path_normal). */
#define MAX_DEPTH 65

static int group_order(const void *a, const void *b)
{
    return brc_oid_cmp(&((const group_count *)a)->map, &((const group_count *)b)->map);
}

static int count_children(chunk_counter *c, const brc_oid *map, brc_error *err);

static int count_entry(void *ctx, brc_span key, brc_span value, brc_error *err)
{
    chunk_counter *c = ctx;
    brc_entry entry;
    uint64_t chunks = 0;
    (void)key;
    BRC_TRY(brc_entry_decode(&entry, value, brc_store_id_len(c->store), err));
    if (brc_oid_is_zero(&entry.map))
        return BRC_OK;
    if (entry.kind != BRC_ARRAY)
        return count_children(c, &entry.map, err);
    BRC_TRY(brc_map_count(c->store, &entry.map, &chunks, err));
    c->chunks += chunks;
    return BRC_OK;
}

/* Adds the chunks under a group. */
static int count_children(chunk_counter *c, const brc_oid *map, brc_error *err)
{
    group_count *group;
    void *p;
    uint64_t before = c->chunks;

    group_count **known = tfind(&(group_count){ .map = *map }, &c->groups, group_order);
    if (known) {
        c->chunks += (*known)->chunks;
        return BRC_OK;
    }
    if (c->depth == MAX_DEPTH)
        return brc_fail(err, BRC_ECORRUPT, "a version has groups that lie too deep");
    c->depth++;
    c->chunks = 0;
    BRC_TRY(brc_map_each(c->store, map, count_entry, c, err));
    c->depth--;
    BRC_TRY(brc_new(&p, sizeof(*group), err));
    group = p;
    *group = (group_count){ *map, c->chunks };
    c->chunks += before;
    if (!tsearch(group, &c->groups, group_order)) {
        free(group);
        return brc_nomem(err);
    }
    return BRC_OK;
}

static int count_chunks(brc_store *store, const commit_set *set, uint64_t *chunks, brc_error *err)
{
    chunk_counter c = { .store = store };
    brc_commit *commit;
    int rc = BRC_OK;

    for (size_t i = 0; i < set->n && rc == BRC_OK; i++) {
        BRC_GO(brc_commit_get(&commit, store, &((brc_oid *)set->ids)[i], err));
        brc_oid root = commit->root;
        brc_commit_free(commit);
        if (!brc_oid_is_zero(&root))
            rc = count_children(&c, &root, err);
    }
done:
    *chunks = c.chunks;
    tdestroy(c.groups, free);
    return rc;
}

int brc_stat(breccia *repo, brc_stats *out, brc_error *err)
{
    commit_set set = { 0 };
    int rc;

    memset(out, 0, sizeof(*out));
    BRC_TRY(brc_store_begin_read(repo->store, err));
    BRC_GO(brc_store_totals(repo->store, out, err));
    BRC_GO(all_commits(&set, repo->store, err));
    out->commits = set.n;
    BRC_GO(count_chunks(repo->store, &set, &out->chunk_refs, err));
done:
    free(set.ids);
    brc_store_end_read(repo->store);
    return rc;
}
