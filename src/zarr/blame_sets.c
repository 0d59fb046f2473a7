#include "blame_sets.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/id_table.h"
#include "../history/commit.h"
#include "../history/path_before.h"

enum { NO_SET = UINT32_MAX };

/* Units that are where one commit has one path, or settled. */
typedef struct blame_set {
    uint32_t up;   /* itself, or the set that it was joined with */
    uint32_t next; /* of the same commit                         */
    uint64_t n;
    uint32_t settled; /* 1 more than the commit's place in the result; 0: not yet */
    char *path;
} blame_set;

typedef struct blame_run {
    brc_store *store;
    brc_blame_diff_fn diff;
    void *ctx;
    int documents;
    brc_blame_result *out;
    void *sets;
    size_t nsets, sets_cap, commits_cap;
    uint64_t open;       /* units that are not settled                    */
    brc_id_table places; /* of a commit's id: 1 more than its first set   */
} blame_run;

void brc_blame_result_dispose(brc_blame_result *r)
{
    for (size_t i = 0; i < r->ncommits; i++)
        free(r->commits[i].author);
    free(r->commits);
    free(r->by);
    memset(r, 0, sizeof(*r));
}

/* ---- sets -------------------------------- */

static blame_set *set_at(const blame_run *run, uint32_t i)
{
    return (blame_set *)run->sets + i;
}

static uint32_t set_find(const blame_run *run, uint32_t i)
{
    while (set_at(run, i)->up != i) {
        set_at(run, i)->up = set_at(run, set_at(run, i)->up)->up;
        i = set_at(run, i)->up;
    }
    return i;
}

static int blame_set_new(blame_run *run, const char *path, uint32_t *out, brc_error *err)
{
    char *copy;
    if (run->nsets >= NO_SET - 1)
        return brc_fail(err, BRC_ELIMIT, "there are too many commits to look through");
    int rc = brc_grow_array(&run->sets, &run->sets_cap, run->nsets + 1, sizeof(blame_set), err);
    if (rc < 0)
        return rc;
    BRC_TRY(brc_dup(&copy, path, err));
    *out = (uint32_t)run->nsets++;
    *set_at(run, *out) = (blame_set){.up = *out, .next = NO_SET, .path = copy};
    return BRC_OK;
}

static void set_leave_path(blame_set *set)
{
    free(set->path);
    set->path = NULL;
}

/* The set is where this commit has the path; one that is there already takes it in. */
static int set_pass(blame_run *run, uint32_t i, const brc_oid *commit, const char *path,
                    brc_error *err)
{
    void *p;
    char *copy;
    BRC_TRY(brc_id_table_add(&run->places, commit, &p, err));
    uint32_t *first = p;
    for (uint32_t at = *first; at != 0; at = set_at(run, at - 1)->next) {
        blame_set *there = set_at(run, at - 1);
        if (strcmp(there->path, path) == 0) {
            there->n += set_at(run, i)->n;
            set_at(run, i)->up = at - 1;
            set_leave_path(set_at(run, i));
            return BRC_OK;
        }
    }
    BRC_TRY(brc_dup(&copy, path, err));
    set_leave_path(set_at(run, i));
    set_at(run, i)->path = copy;
    set_at(run, i)->next = *first;
    *first = i + 1;
    return BRC_OK;
}

static int set_settle(blame_run *run, uint32_t i, const brc_commit *commit, int before,
                      brc_error *err)
{
    brc_blame_result *r = run->out;
    blame_set *set = set_at(run, i);
    if (set->n == 0)
        return BRC_OK;
    if (r->ncommits == 0 || brc_oid_cmp(&r->commits[r->ncommits - 1].commit, &commit->id) != 0) {
        void *p = r->commits;
        int rc = brc_grow_array(&p, &run->commits_cap, r->ncommits + 1, sizeof(brc_blamed_by),
                                err);
        r->commits = p;
        if (rc < 0)
            return rc;
        char *author;
        BRC_TRY(brc_dup(&author, before ? "" : commit->author, err));
        r->commits[r->ncommits++] = (brc_blamed_by){commit->id, commit->time_us, author, before};
    }
    set->settled = (uint32_t)r->ncommits;
    run->open -= set->n;
    set_leave_path(set);
    return BRC_OK;
}

/* ---- one commit -------------------------------- */

typedef struct set_split {
    blame_run *run;
    uint32_t from, to;
} set_split;

static int split_unit(void *ctx, size_t unit, brc_error *err)
{
    const set_split *split = ctx;
    blame_run *run = split->run;
    (void)err;
    if (unit >= run->out->n || set_find(run, run->out->by[unit]) != split->from)
        return BRC_OK;
    run->out->by[unit] = split->to;
    set_at(run, split->from)->n--;
    set_at(run, split->to)->n++;
    return BRC_OK;
}

static int is_same_place(const blame_run *run, const brc_entry *a, const brc_entry *b)
{
    return a->kind == b->kind && brc_oid_cmp(&a->map, &b->map) == 0 &&
           (!run->documents || brc_oid_cmp(&a->doc, &b->doc) == 0);
}

/* Where the array was in a parent. */
static int place_before(blame_run *run, const brc_commit *commit, size_t i, const char *path,
                        brc_buf *from, brc_blame_place *out, brc_error *err)
{
    int has;
    brc_oid root;
    out->commit = &commit->parents[i];
    BRC_TRY(brc_path_before(from, &has, run->store, commit, i, path, &root, &out->entry, err));
    out->path = (const char *)from->data;
    return BRC_OK;
}

/* The units of *set that the parent has in the same form go to it; *set are the others. */
static int ask_parent(blame_run *run, const brc_commit *commit, size_t i,
                      const brc_blame_place *now, uint32_t *set, brc_buf *from, brc_error *err)
{
    brc_blame_place before;
    uint32_t rest;
    BRC_TRY(place_before(run, commit, i, now->path, from, &before, err));
    if (before.entry.kind != BRC_ARRAY)
        return BRC_OK;
    BRC_TRY(blame_set_new(run, now->path, &rest, err));
    if (!is_same_place(run, &now->entry, &before.entry)) {
        set_split split = {run, *set, rest};
        BRC_TRY(run->diff(run->ctx, now, &before, split_unit, &split, err));
    }
    if (set_at(run, *set)->n > 0)
        BRC_TRY(set_pass(run, *set, before.commit, before.path, err));
    *set = rest;
    return BRC_OK;
}

/* A parent that has all of it as it is gets all, also if it is not the first. */
static int ask_same_parent(blame_run *run, const brc_commit *commit, const brc_blame_place *now,
                           uint32_t set, brc_buf *from, int *passed, brc_error *err)
{
    brc_blame_place before;
    for (size_t i = 0; i < commit->nparents && !*passed; i++) {
        BRC_TRY(place_before(run, commit, i, now->path, from, &before, err));
        if (!is_same_place(run, &now->entry, &before.entry))
            continue;
        *passed = 1;
        BRC_TRY(set_pass(run, set, before.commit, before.path, err));
    }
    return BRC_OK;
}

static int ask_parents(blame_run *run, const brc_commit *commit, uint32_t set, brc_error *err)
{
    brc_buf from = BRC_BUF_INIT;
    char *path = NULL;
    int passed = 0, rc;
    brc_blame_place now = {.commit = &commit->id};
    BRC_GO(brc_dup(&path, set_at(run, set)->path, err));
    now.path = path;
    BRC_GO(brc_snapshot_find(run->store, &commit->root, path, &now.entry, err));
    if (commit->nparents > 1)
        BRC_GO(ask_same_parent(run, commit, &now, set, &from, &passed, err));
    for (size_t i = 0; !passed && i < commit->nparents && set_at(run, set)->n > 0; i++)
        BRC_GO(ask_parent(run, commit, i, &now, &set, &from, err));
    if (!passed)
        rc = set_settle(run, set, commit, (commit->flags & BRC_PAST_EXPIRED) != 0, err);
done:
    free(path);
    brc_buf_dispose(&from);
    return rc;
}

static int blame_commit(blame_run *run, const brc_commit *commit, brc_error *err)
{
    const uint32_t *first = brc_id_table_find(&run->places, &commit->id);
    uint32_t at = first != NULL ? *first : 0;
    while (at != 0) {
        const uint32_t set = at - 1;
        at = set_at(run, set)->next;
        if (set_at(run, set)->n > 0)
            BRC_TRY(ask_parents(run, commit, set, err));
    }
    return BRC_OK;
}

/* ---- the walk -------------------------------- */

static int blame_walk(blame_run *run, const brc_oid *commit, brc_error *err)
{
    brc_walk *walk = NULL;
    const brc_commit *next;
    int rc;
    brc_store_walk_begin(run->store);
    BRC_GO(brc_walk_new(&walk, run->store, commit, err));
    while (run->open > 0) {
        BRC_GO(brc_walk_next(walk, &next, err));
        if (rc == 0) {
            rc = brc_fail(err, BRC_EINTERNAL, "blame has looked at all commits and is not done");
            goto done;
        }
        BRC_GO(blame_commit(run, next, err));
        brc_store_breathe(run->store);
    }
    rc = BRC_OK;
done:
    brc_walk_free(walk);
    brc_store_walk_end(run->store);
    return rc;
}

int brc_blame_run(brc_blame_result *out, brc_store *store, const brc_oid *commit, const char *path,
                  size_t n, int documents, brc_blame_diff_fn diff, void *ctx, brc_error *err)
{
    blame_run run = {.store = store, .diff = diff, .ctx = ctx, .documents = documents, .out = out,
                     .open = n, .places = BRC_ID_TABLE_INIT(sizeof(uint32_t))};
    void *p;
    uint32_t set;
    int rc;
    memset(out, 0, sizeof(*out));
    if (n == 0)
        return BRC_OK;
    BRC_GO(brc_new_array(&p, n, sizeof(uint32_t), err));
    out->by = p;
    out->n = n;
    BRC_GO(blame_set_new(&run, path, &set, err)); /* number 0: all units are in it */
    set_at(&run, set)->n = n;
    BRC_GO(set_pass(&run, set, commit, path, err));
    BRC_GO(blame_walk(&run, commit, err));
    for (size_t i = 0; i < n; i++)
        out->by[i] = set_at(&run, set_find(&run, out->by[i]))->settled - 1;
done:
    for (size_t i = 0; i < run.nsets; i++)
        free(set_at(&run, (uint32_t)i)->path);
    free(run.sets);
    brc_id_table_dispose(&run.places);
    if (rc < 0)
        brc_blame_result_dispose(out);
    return rc;
}
