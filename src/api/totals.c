/* What is in a repository, counted: objects, commits, and the chunks of all versions. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/id_table.h"
#include "../history/commit.h"
#include "../history/node_walk.h"
#include "../zarr/repo.h"

/* ---- commits -------------------------------- */

/* Every commit that a ref reaches: those met are in `known`, those still to be read on a stack. */
typedef struct commit_totals {
    brc_store *store;
    brc_id_table known;
    void *stack; /* brc_oid[] */
    size_t n, cap;
} commit_totals;

static int meet_commit(commit_totals *c, const brc_oid *id, brc_error *err)
{
    size_t known = c->known.n;
    BRC_TRY(brc_id_table_add(&c->known, id, NULL, err));
    if (c->known.n == known)
        return BRC_OK;
    BRC_TRY(brc_grow_array(&c->stack, &c->cap, c->n + 1, sizeof(brc_oid), err));
    ((brc_oid *)c->stack)[c->n++] = *id;
    return BRC_OK;
}

static int meet_refs(commit_totals *c, brc_error *err)
{
    brc_ref_row *rows;
    size_t n;
    BRC_TRY(brc_ref_list(c->store, "", &rows, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        if (rows[i].has_target)
            rc = meet_commit(c, &rows[i].target, err);
    brc_ref_rows_free(rows, n);
    return rc;
}

/* ---- chunks of all versions -------------------------------- */

/* Versions share most map nodes; what is under each is counted once. */
typedef struct chunk_totals {
    brc_store *store;
    brc_node_walk *walk;
    brc_id_table counts; /* uint64_t: chunks under a node of a group's map */
    void *sums;          /* uint64_t[]: of each node from the root down     */
    size_t cap;
} chunk_totals;

static int add_chunks(chunk_totals *c, size_t level, uint64_t chunks, brc_error *err)
{
    uint64_t *sum = &((uint64_t *)c->sums)[level];
    if (!brc_add_u64(*sum, chunks, sum))
        return brc_fail(err, BRC_ELIMIT, "the versions have more chunks than can be counted");
    return BRC_OK;
}

static int count_node(chunk_totals *c, const brc_node_step *at, brc_error *err)
{
    uint64_t chunks = 0;
    void *p = c->sums;
    int rc = brc_grow_array(&p, &c->cap, at->level + 2, sizeof(uint64_t), err);
    c->sums = p;
    if (rc < 0)
        return rc;
    const uint64_t *known = at->kind == BRC_ARRAY ? NULL : brc_id_table_find(&c->counts, &at->id);
    if (at->kind == BRC_ARRAY) /* the root says how many there are */
        BRC_TRY(brc_map_count(c->store, &at->id, &chunks, err));
    if (known == NULL && at->kind != BRC_ARRAY) {
        ((uint64_t *)c->sums)[at->level + 1] = 0;
        return BRC_OK;
    }
    brc_node_walk_skip(c->walk);
    return add_chunks(c, at->level, known != NULL ? *known : chunks, err);
}

static int count_leave(chunk_totals *c, const brc_node_step *at, brc_error *err)
{
    void *value;
    uint64_t chunks = ((uint64_t *)c->sums)[at->level + 1];
    BRC_TRY(brc_id_table_add(&c->counts, &at->id, &value, err));
    *(uint64_t *)value = chunks;
    return add_chunks(c, at->level, chunks, err);
}

/* Adds the chunks of one version to the first sum. */
static int count_version(chunk_totals *c, const brc_oid *root, brc_error *err)
{
    brc_node_step at;
    int rc;
    BRC_TRY(brc_node_walk_snapshot(c->walk, root, err));
    while ((rc = brc_node_walk_next(c->walk, &at, err)) > 0) {
        if (at.what == BRC_AT_NODE)
            BRC_TRY(count_node(c, &at, err));
        else if (at.what == BRC_AT_LEAVE)
            BRC_TRY(count_leave(c, &at, err));
        BRC_TRY(brc_store_check_interrupt(c->store, err));
    }
    return rc;
}

static int count_history(commit_totals *commits, chunk_totals *chunks, brc_error *err)
{
    BRC_TRY(meet_refs(commits, err));
    while (commits->n > 0) {
        brc_commit *commit;
        brc_oid id = ((brc_oid *)commits->stack)[--commits->n];
        BRC_TRY(brc_commit_get(&commit, commits->store, &id, err));
        int rc = count_version(chunks, &commit->root, err);
        for (size_t i = 0; i < commit->nparents && rc == BRC_OK; i++)
            rc = meet_commit(commits, &commit->parents[i], err);
        brc_commit_free(commit);
        if (rc < 0)
            return rc;
    }
    return BRC_OK;
}

int brc_stat(breccia *repo, brc_stats *out, brc_error *err)
{
    commit_totals commits = { .store = repo->store, .known = BRC_ID_TABLE_INIT(0) };
    chunk_totals chunks = { .store = repo->store, .counts = BRC_ID_TABLE_INIT(sizeof(uint64_t)) };
    void *p = NULL;
    int rc;

    memset(out, 0, sizeof(*out));
    BRC_TRY(brc_store_begin_read(repo->store, err));
    brc_store_walk_begin(repo->store);
    BRC_GO(brc_store_totals(repo->store, out, err));
    BRC_GO(brc_node_walk_new(&chunks.walk, repo->store, err));
    BRC_GO(brc_grow_array(&p, &chunks.cap, 1, sizeof(uint64_t), err));
    chunks.sums = p;
    ((uint64_t *)chunks.sums)[0] = 0;
    BRC_GO(count_history(&commits, &chunks, err));
    out->commits = commits.known.n;
    out->chunk_refs = ((uint64_t *)chunks.sums)[0];
done:
    free(commits.stack);
    free(chunks.sums);
    brc_id_table_dispose(&commits.known);
    brc_id_table_dispose(&chunks.counts);
    brc_node_walk_free(chunks.walk);
    brc_store_walk_end(repo->store);
    brc_store_end_read(repo->store);
    return rc;
}
