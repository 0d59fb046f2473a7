/*
 * Collecting garbage: removing objects, and giving free pages back.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "collect.h"
#include "db.h"
#include "bases.h"
#include "removed.h"

/* ==== compact ================================ */

/* Removed objects leave free pages and traces in the file. */

/* ---- free pages -------------------------------- */

static int free_pages(brc_store *store, int64_t *n, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "PRAGMA freelist_count", &st, err));
    return brc_ask_number(store, st, n, err);
}

/* Each step of the statement frees one page. */
static int vacuum_some(brc_store *store, int pages, brc_error *err)
{
    int rc = 1;
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "PRAGMA incremental_vacuum(128)", &st, err));
    _Static_assert(BRC_VACUUM_PAGES == 128, "as in the statement");
    for (int i = 0; i < pages && rc > 0; i++)
        rc = brc_step(store, st, err);
    sqlite3_reset(st);
    return rc < 0 ? rc : BRC_OK;
}

int brc_vacuum_step(brc_store *store, int pages, int64_t *left, brc_error *err)
{
    int64_t before;
    BRC_TRY(free_pages(store, &before, err));
    *left = 0;
    if (before == 0)
        return BRC_OK;
    BRC_TRY(brc_store_begin(store, err));
    int rc = vacuum_some(store, pages, err);
    if (rc == BRC_OK)
        rc = free_pages(store, left, err);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    rc = rc < 0 ? rc : end;
    if (*left >= before) /* the file lacks SQLite's pointer map */
        *left = 0;
    return rc;
}

/* SQLite cuts the file only in a transaction that has given back a page. */
static int cut_tail(brc_store *store, brc_error *err)
{
    BRC_TRY(brc_exec(store,
                     "INSERT INTO meta(key, value, checksum) VALUES ('', zeroblob(65536), 0);"
                     "DELETE FROM meta WHERE key=''",
                     err));
    return vacuum_some(store, BRC_VACUUM_PAGES, err);
}

int brc_tail_cut(brc_store *store, brc_error *err)
{
    BRC_TRY(brc_store_begin(store, err));
    const int has = brc_vfs_has_tail(store->vfs);
    int rc = has ? cut_tail(store, err) : BRC_OK;
    int end = brc_store_end(store, has && rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

static int ask_pages(brc_store *store, const char *pragma, uint64_t *bytes, brc_error *err)
{
    sqlite3_stmt *st;
    int64_t n;
    BRC_TRY(brc_stmt(store, pragma, &st, err));
    BRC_TRY(brc_ask_number(store, st, &n, err));
    *bytes = (uint64_t)n * BRC_PAGE_SIZE;
    return BRC_OK;
}

int brc_store_file_bytes(brc_store *store, uint64_t *out, brc_error *err)
{
    return ask_pages(store, "PRAGMA page_count", out, err);
}

int brc_collect_leaves(brc_store *store, uint64_t freed, uint64_t *out, brc_error *err)
{
    static const char *const tables[] = {"gc", "gc_kept"};
    uint64_t all, unused;
    BRC_TRY(brc_store_file_bytes(store, &all, err));
    BRC_TRY(ask_pages(store, "PRAGMA freelist_count", &unused, err));
    unused += freed / BRC_PAGE_SIZE * BRC_PAGE_SIZE;
    *out = unused < all ? all - unused : 0;
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        int there;
        BRC_TRY(brc_schema_has(store, tables[i], &there, err));
        *out += there ? 0 : BRC_PAGE_SIZE;
    }
    return BRC_OK;
}

/* ---- traces -------------------------------- */

void brc_log_fold_early(brc_store *store, int is_early)
{
    store->folds_early = is_early;
}

int brc_log_fold(brc_store *store, int64_t *busy, brc_error *err)
{
    sqlite3_stmt *st;
    *busy = 0;
    BRC_TRY(brc_store_check_process(store, err));
    if (!brc_vfs_in_wal(store->vfs))
        return BRC_OK;
    brc_reader_close(store);
    BRC_TRY(brc_stmt(store, "PRAGMA wal_checkpoint(TRUNCATE)", &st, err));
    return brc_ask_number(store, st, busy, err);
}

/* Deleted cells are overwritten at once (schema.c), and free pages were given back: only the log
 * still has the pages as they were. */
int brc_expunge(brc_store *store, brc_error *err)
{
    int64_t busy;
    BRC_TRY(brc_log_fold(store, &busy, err));
    return busy == 0 ? BRC_OK
                     : brc_fail(err, BRC_EBUSY,
                                "%s: removed data is still in its -wal file, because another "
                                "process is reading: run 'gc --expunge' again when it is done",
                                store->path);
}

/* ==== sweep ================================ */

/*
 * Removes objects: their rows in the hash index, derived rows, and their stored bytes.
 *
 * Commits are removed before all other objects, each before its parents. So as long as a commit
 * exists, everything that it reaches exists: a writer that finds a commit within a transaction may
 * name it.
 */

/* About how long a step holds the lock. */
#define STEP_NS INT64_C(25000000)
/* Six pages: the most that removing one object changes, apart from its share of common pages. */
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

/* Runs a statement on a table that the file may lack. */
static int sweep_reserved(brc_store *store, const char *table, const char *sql, const brc_oid *id,
                          brc_error *err)
{
    int there;
    BRC_TRY(brc_schema_has(store, table, &there, err));
    return there ? sweep_run(store, sql, id, err) : BRC_OK;
}

static int drop_derived(brc_store *store, const brc_object *o, brc_error *err)
{
    if (o->kind == BRC_KIND_CHUNK) {
        BRC_TRY(brc_delta_note(store, &o->id, NULL, err));
        BRC_TRY(sweep_reserved(store, "encoded", "DELETE FROM encoded WHERE id=?1", &o->id, err));
        return sweep_reserved(store, "chunk_stats", "DELETE FROM chunk_stats WHERE id=?1", &o->id,
                              err);
    }
    if (o->kind == BRC_KIND_NODE)
        return sweep_run(store, "DELETE FROM node_total WHERE id=?1", &o->id, err);
    if (o->kind != BRC_KIND_COMMIT)
        return BRC_OK;
    BRC_TRY(sweep_run(store, "DELETE FROM commit_info WHERE id=?1", &o->id, err));
    return sweep_reserved(store, "boundary", "DELETE FROM boundary WHERE id=?1", &o->id, err);
}

/* Reads only the row: its claims about its bytes need not be true. */
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

/* Stores whether the object must stay because others build on it. It is then noted, for the
 * collection to come back to when these are gone. */
static int sweep_base(brc_sweep *sweep, brc_store *store, const brc_oid *id, int *stays,
                      brc_error *err)
{
    brc_oid none, on;
    size_t n;
    memset(&none, 0, sizeof(none));
    BRC_TRY(brc_delta_dependants(store, id, &none, &on, 1, &n, err));
    *stays = n > 0;
    if (n == 0)
        return BRC_OK;
    BRC_TRY(brc_grow_array(&sweep->bases, &sweep->bases_cap, sweep->nbases + 1, sizeof(brc_oid),
                           err));
    ((brc_oid *)sweep->bases)[sweep->nbases++] = *id;
    return BRC_OK;
}

static int remove_object(brc_sweep *sweep, brc_store *store, const brc_oid *id, brc_error *err)
{
    int kept;
    brc_object o = {.id = *id};
    BRC_TRY(brc_gc_is_kept(store, sweep->run, id, &kept, err));
    if (kept)
        return BRC_OK;
    BRC_TRY(find_object_row(store, &o, err));
    if (!o.found)
        return BRC_OK;
    if (o.kind == BRC_KIND_CHUNK)
        BRC_TRY(sweep_base(sweep, store, id, &kept, err));
    if (kept)
        return BRC_OK;
    BRC_TRY(sweep_run(store, "DELETE FROM object WHERE id=?1", id, err));
    BRC_TRY(drop_derived(store, &o, err));
    BRC_TRY(brc_removed_note(store, &o, err));
    sweep->objects++;
    sweep->bytes += o.stored;
    return BRC_OK;
}

int brc_object_drop(brc_store *store, const brc_oid *id, brc_error *err)
{
    brc_object o = {.id = *id};
    brc_error why = BRC_ERROR_INIT;
    BRC_TRY(find_object_row(store, &o, err));
    if (!o.found)
        return BRC_OK;
    BRC_TRY(sweep_run(store, "DELETE FROM object WHERE id=?1", id, err));
    BRC_TRY(brc_delta_note(store, id, NULL, err));
    BRC_TRY(brc_node_totals_drop(store, err));
    const int rc = brc_removed_note(store, &o, &why);
    /* a damaged or stale row has no stored bytes */
    if (rc < 0 && rc != BRC_ECORRUPT && rc != BRC_ESTALE) {
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
    BRC_TRY(brc_chunk_stats_drop(store, err));
    BRC_TRY(brc_schema_has(store, "boundary", &there, err));
    return there ? brc_exec(store,
                            "DELETE FROM boundary WHERE NOT EXISTS (SELECT 1 FROM object o WHERE"
                            " o.id=boundary.id AND o.kind=4)",
                            err)
                 : BRC_OK;
}

/* Returns 1 if a step in WAL mode must end to keep the log small. Nothing is written before the
 * step's end, so the objects are counted, but only if room is short. */
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

/* ==== encoding expunge ================================ */

/* For gc --expunge: removes the specifications of encodings that no object has any more. */

#define ENCODINGS_MOST 65536 /* with larger numbers nothing is removed */
/* The specification that replaces the last one, whose number must not be used again: others may
 * have it in memory. */
#define NO_SPEC "{\"codecs\":[{\"name\":\"crc32c\"}],\"removed\":true}"

typedef struct used_encodings {
    int64_t last;     /* the largest number             */
    uint8_t *is_used; /* [0, last]: 1 if an object has it */
} used_encodings;

static int find_used(brc_store *store, used_encodings *used, brc_error *err)
{
    brc_oid after = {{0}};
    sqlite3_stmt *st;
    int rc = 1;
    while (rc > 0) {
        int n = 0;
        BRC_TRY(brc_store_check_interrupt(store, err));
        BRC_TRY(brc_stmt(store,
                         "SELECT id, encoding FROM object WHERE id>?1 ORDER BY id LIMIT 4096", &st,
                         err));
        brc_bind_id(store, st, 1, &after);
        while ((rc = brc_step(store, st, err)) > 0) {
            const int64_t encoding = sqlite3_column_int64(st, 1);
            n++;
            rc = brc_column_id(store, st, 0, &after, err);
            if (rc < 0)
                break;
            if (encoding >= 0 && encoding <= used->last)
                used->is_used[encoding] = 1;
        }
        sqlite3_reset(st);
        if (rc < 0)
            return rc;
        rc = n == 4096;
    }
    return BRC_OK;
}

static int remove_spec(brc_store *store, int64_t id, int is_last, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     is_last ? "UPDATE encoding SET spec='" NO_SPEC "' WHERE id=?1"
                             : "DELETE FROM encoding WHERE id=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, id);
    return brc_run(store, st, err);
}

static int remove_unused(brc_store *store, const used_encodings *used, brc_error *err)
{
    int64_t documents;
    BRC_TRY(brc_encoding_find(store, BRC_DOCUMENT_SPEC, &documents, err));
    for (int64_t id = 1; id <= used->last; id++)
        if (!used->is_used[id] && id != documents)
            BRC_TRY(remove_spec(store, id, id == used->last, err));
    brc_encoding_cache_forget(&store->encodings);
    return brc_encoded_drop(store, err);
}

/* Removes the specifications in one transaction, unless the file has changed since `used` was
 * found. */
static int remove_unchanged(brc_store *store, uint64_t version, const used_encodings *used,
                            brc_error *err)
{
    uint64_t now;
    BRC_TRY(brc_store_begin(store, err));
    int rc = brc_store_version(store, &now, err);
    if (rc == BRC_OK && now != version)
        rc = brc_fail(err, BRC_EBUSY,
                      "%s: the types and codecs of removed arrays are still in the file, because "
                      "another process has written to the file meanwhile: run 'gc --expunge' again "
                      "when that process is done",
                      store->path);
    if (rc == BRC_OK)
        rc = remove_unused(store, used, err);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

int brc_encodings_expunge(brc_store *store, brc_error *err)
{
    void *is_used;
    uint64_t version;
    sqlite3_stmt *st;
    used_encodings used = {0, NULL};
    BRC_TRY(brc_store_version(store, &version, err));
    BRC_TRY(brc_stmt(store, "SELECT coalesce(max(id), 0) FROM encoding", &st, err));
    BRC_TRY(brc_ask_number(store, st, &used.last, err));
    if (used.last < 1 || used.last >= ENCODINGS_MOST)
        return BRC_OK;
    BRC_TRY(brc_new(&is_used, (size_t)used.last + 1, err));
    used.is_used = is_used;
    int rc = find_used(store, &used, err);
    if (rc == BRC_OK)
        rc = remove_unchanged(store, version, &used, err);
    free(is_used);
    return rc;
}
