/*
 * Removing objects: rows of the hash index and what is derived from them, and their stored bytes.
 *
 * Commits go before everything else, each before its parents. So as long as a commit is there,
 * everything that it reaches is: whoever finds one within a transaction may name it.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "backend.h"
#include "collect.h"
#include "db.h"

/* How long a step holds the lock, about. */
#define STEP_NS INT64_C(25000000)
/* Six pages: what removing an object changes at most, but for its share of others. */
#define EACH_BYTES ((size_t)96 << 10)

/* ---- commits -------------------------------- */

typedef struct aged_commit {
    brc_oid id;
    int64_t generation;
} aged_commit;

static int youngest_first(const void *a, const void *b)
{
    const aged_commit *x = a, *y = b;
    return (x->generation < y->generation) - (x->generation > y->generation);
}

static int commits_page(brc_store *store, const brc_oid *after, void **list, size_t *n, size_t *cap,
                        brc_error *err)
{
    enum { PAGE = 2048 };
    int rc;
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT id, generation FROM commit_info WHERE id>?1 ORDER BY id LIMIT ?2", &st,
                     err));
    brc_bind_id(store, st, 1, after);
    sqlite3_bind_int64(st, 2, PAGE);
    while ((rc = brc_step(store, st, err)) > 0) {
        rc = brc_grow_array(list, cap, *n + 1, sizeof(aged_commit), err);
        if (rc < 0)
            break;
        aged_commit *c = (aged_commit *)*list + *n;
        memset(c, 0, sizeof(*c));
        c->generation = sqlite3_column_int64(st, 1);
        rc = brc_column_id(store, st, 0, &c->id, err);
        if (rc < 0)
            break;
        ++*n;
    }
    sqlite3_reset(st);
    return rc;
}

int brc_sweep_commits(brc_store *store, brc_oid **out, size_t *n, brc_error *err)
{
    void *list = NULL, *ids = NULL;
    size_t cap = 0, before;
    brc_oid after;
    int rc;
    memset(&after, 0, sizeof(after));
    *out = NULL;
    *n = 0;
    do {
        before = *n;
        BRC_GO(commits_page(store, &after, &list, n, &cap, err));
        if (*n > before)
            after = ((aged_commit *)list)[*n - 1].id;
        brc_store_breathe(store);
    } while (*n > before);
    if (*n > 1)
        qsort(list, *n, sizeof(aged_commit), youngest_first);
    BRC_GO(brc_new_array(&ids, *n + 1, sizeof(brc_oid), err));
    for (size_t i = 0; i < *n; i++)
        ((brc_oid *)ids)[i] = ((aged_commit *)list)[i].id;
    *out = ids;
done:
    free(list);
    return rc;
}

/* ---- one object -------------------------------- */

static int sweep_run(brc_store *store, const char *sql, const brc_oid *id, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    brc_bind_id(store, st, 1, id);
    return brc_run(store, st, err);
}

/* Of a table that the file may lack. */
static int sweep_reserved(brc_store *store, const char *table, const char *sql, const brc_oid *id,
                          brc_error *err)
{
    int there;
    BRC_TRY(brc_schema_has(store, table, &there, err));
    return there ? sweep_run(store, sql, id, err) : BRC_OK;
}

static int drop_derived(brc_store *store, const brc_object *o, brc_error *err)
{
    if (o->kind == BRC_KIND_CHUNK)
        return sweep_reserved(store, "encoded", "DELETE FROM encoded WHERE id=?1", &o->id, err);
    if (o->kind == BRC_KIND_NODE)
        return sweep_run(store, "DELETE FROM node_total WHERE id=?1", &o->id, err);
    if (o->kind != BRC_KIND_COMMIT)
        return BRC_OK;
    BRC_TRY(sweep_run(store, "DELETE FROM commit_info WHERE id=?1", &o->id, err));
    return sweep_reserved(store, "boundary", "DELETE FROM boundary WHERE id=?1", &o->id, err);
}

/* The row alone is read: what it claims of its bytes need not be true. */
static int find_object_row(brc_store *store, brc_object *o, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT kind, backend, place, offset, stored, checksum FROM object"
                     " WHERE id=?1",
                     &st, err));
    brc_bind_id(store, st, 1, &o->id);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    o->kind = sqlite3_column_int(st, 0);
    o->backend = sqlite3_column_int64(st, 1);
    o->place = sqlite3_column_int64(st, 2);
    o->offset = (uint64_t)sqlite3_column_int64(st, 3);
    o->stored = (uint64_t)sqlite3_column_int64(st, 4);
    o->checksum = (uint64_t)sqlite3_column_int64(st, 5);
    o->found = 1;
    sqlite3_reset(st);
    return BRC_OK;
}

static int remove_object(brc_sweep *sweep, brc_store *store, const brc_oid *id, brc_error *err)
{
    int kept;
    brc_object o = {.id = *id};
    brc_stored at, *one = &at;
    BRC_TRY(brc_gc_is_kept(store, sweep->run, id, &kept, err));
    if (kept)
        return BRC_OK;
    BRC_TRY(find_object_row(store, &o, err));
    if (!o.found)
        return BRC_OK;
    BRC_TRY(sweep_run(store, "DELETE FROM object WHERE id=?1", id, err));
    BRC_TRY(drop_derived(store, &o, err));
    brc_object_ask(&o, &at);
    BRC_TRY(o.backend == 0 ? brc_inline_backend.drop(NULL, store, 1, &one, err)
                           : brc_left_note(store, &o, err));
    sweep->objects++;
    sweep->bytes += o.stored;
    return BRC_OK;
}

int brc_object_drop(brc_store *store, const brc_oid *id, brc_error *err)
{
    brc_object o = {.id = *id};
    brc_stored at, *one = &at;
    brc_error why = BRC_ERROR_INIT;
    int rc = BRC_OK;
    BRC_TRY(find_object_row(store, &o, err));
    if (!o.found)
        return BRC_OK;
    BRC_TRY(sweep_run(store, "DELETE FROM object WHERE id=?1", id, err));
    BRC_TRY(brc_node_totals_drop(store, err));
    brc_object_ask(&o, &at);
    if (o.backend == 0)
        rc = brc_inline_backend.drop(NULL, store, 1, &one, &why);
    if (rc < 0 && rc != BRC_ECORRUPT && rc != BRC_ESTALE) { /* such a row leads to nothing */
        if (err != NULL)
            brc_error_copy(err, &why);
        return rc;
    }
    return BRC_OK;
}

int brc_derived_drop(brc_store *store, brc_error *err)
{
    int there;
    BRC_TRY(brc_node_totals_drop(store, err));
    BRC_TRY(brc_exec(store, "DELETE FROM commit_info", err));
    BRC_TRY(brc_encoded_drop(store, err));
    BRC_TRY(brc_schema_has(store, "boundary", &there, err));
    return there ? brc_exec(store,
                            "DELETE FROM boundary WHERE NOT EXISTS (SELECT 1 FROM object o WHERE"
                            " o.id=boundary.id AND o.kind=4)",
                            err)
                 : BRC_OK;
}

/* In WAL mode nothing is written before the end. It is counted where there is little room. */
static int fills_log(const brc_sweep *sweep, const brc_store *store, size_t n)
{
    return sweep->most_bytes < BRC_SWEEP_BYTES && brc_vfs_in_wal(store->vfs) &&
           n * EACH_BYTES > sweep->most_bytes / 2;
}

int brc_sweep_some(brc_sweep *sweep, brc_store *store, const brc_oid *ids, size_t n, size_t *done,
                   brc_error *err)
{
    const int64_t began = brc_monotonic_ns();
    const uint64_t journalled = brc_vfs_journalled(store->vfs);
    for (*done = 0; *done < n;) {
        BRC_TRY(brc_store_check_interrupt(store, err));
        BRC_TRY(remove_object(sweep, store, &ids[*done], err));
        ++*done;
        if (brc_monotonic_ns() - began > STEP_NS || fills_log(sweep, store, *done) ||
            brc_vfs_journalled(store->vfs) - journalled > sweep->most_bytes / 2)
            break;
    }
    return BRC_OK;
}
