/* What versions hold: see usage.h. */
#include "usage.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../store/collect.h"

typedef struct usage_run {
    brc_store *store;
    const brc_expire_plan *plan;
    brc_usage *out;
    brc_held held;
    brc_id_table met; /* commits that are not of the plan   */
    void *due;        /* brc_oid[]: of these, to be read    */
    size_t ndue, due_cap;
    brc_roots roots;
} usage_run;

void brc_usage_dispose(brc_usage *usage)
{
    for (size_t i = 0; i < usage->n; i++)
        free(((brc_usage_item *)usage->items)[i].path);
    free(usage->items);
    memset(usage, 0, sizeof(*usage));
}

int brc_usage_add(brc_usage *out, const char *path, const brc_oid *id, uint64_t bytes,
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
    int (*const call)(brc_held *, const brc_oid *, int, brc_error *) = drops ? brc_held_drop
                                                                             : brc_held_add;
    BRC_TRY(call(&u->held, &c->id, 0, err));
    return call(&u->held, &c->root, 1, err);
}

static size_t version_count(const usage_run *u)
{
    return u->plan->kept + u->plan->expired;
}

/* Each by itself: from one to the next only what is different is looked at. */
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

/* What goes where one goes and all the others stay. */
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

static int other_met(usage_run *u, const brc_oid *id, int must_be, brc_error *err)
{
    brc_object o = {.id = *id}, *one = &o;
    const size_t before = u->met.n;
    if (brc_oid_is_zero(id) || brc_id_table_find(&u->plan->index, id) != NULL)
        return BRC_OK;
    BRC_TRY(brc_objects_find(u->store, &one, 1, err));
    if (!o.found && !must_be)
        return BRC_OK;
    BRC_TRY(brc_id_table_add(&u->met, id, NULL, err));
    if (u->met.n == before)
        return BRC_OK;
    BRC_TRY(brc_grow_array(&u->due, &u->due_cap, u->ndue + 1, sizeof(brc_oid), err));
    ((brc_oid *)u->due)[u->ndue++] = *id;
    return BRC_OK;
}

/* A commit that refs do not reach, and all before it. */
static int hold_others(usage_run *u, brc_error *err)
{
    while (u->ndue > 0) {
        const brc_oid id = ((const brc_oid *)u->due)[--u->ndue];
        brc_commit *commit;
        BRC_TRY(brc_store_check_interrupt(u->store, err));
        BRC_TRY(brc_commit_get(&commit, u->store, &id, err));
        int rc = brc_held_add(&u->held, &id, 0, err);
        if (rc == BRC_OK)
            rc = brc_held_add(&u->held, &commit->root, 1, err);
        for (size_t i = 0; i < commit->nparents && rc == BRC_OK; i++)
            rc = other_met(u, &commit->parents[i], 1, err);
        brc_commit_free(commit);
        BRC_TRY(rc);
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
    BRC_TRY(brc_held_add(&u->held, &entry.doc, 0, err));
    BRC_TRY(brc_held_add(&u->held, &entry.storage, 0, err));
    return brc_held_add(&u->held, &entry.map, 1, err);
}

static int hold_chunk(void *ctx, const brc_oid *chunk, brc_error *err)
{
    usage_run *u = ctx;
    return brc_held_add(&u->held, chunk, 0, err);
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
            BRC_TRY(brc_held_add(&u->held, &root->id, 0, err));
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
        BRC_TRY(brc_usage_add(u->out, NULL, &c->id, 0, 0, err));
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
    return BRC_OK;
}

int brc_usage_measure(brc_usage *out, brc_store *store, const brc_expire_plan *plan,
                      const brc_log_window *window, int only_expired, brc_error *err)
{
    usage_run u = {.store = store, .plan = plan, .out = out, .met = BRC_ID_TABLE_INIT(0)};
    brc_held_init(&u.held, store);
    int rc = measure_all(&u, window, only_expired, err);
    brc_held_dispose(&u.held);
    brc_id_table_dispose(&u.met);
    brc_roots_dispose(&u.roots);
    free(u.due);
    return rc;
}
