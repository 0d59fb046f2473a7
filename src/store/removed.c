/*
 * Stored bytes that removed objects left in other backends, until they are dropped there: rows of
 * table place that have facts. A pack that objects have left, and that others may still lie in, has
 * its own row; bytes under their canonical name get a row. These rows are written in the
 * transaction that removes the objects, so they survive a killed process and a backend that fails.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/process.h"
#include "backend.h"
#include "collect.h"
#include "db.h"

/* ==== left places ================================ */

#define LEFT_PACK "{\"left\":true}"
#define LEFT_NAME "{\"left\":true,\"canonical\":true}"

/* ---- noting -------------------------------- */

static int note_pack(brc_store *store, const brc_object *o, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "UPDATE place SET facts=?3, checksum=row_sum('place', seq, backend, name,"
                     " size, ?3) WHERE seq=?1 AND backend=?2 AND facts IS NULL",
                     &st, err));
    sqlite3_bind_int64(st, 1, o->place);
    sqlite3_bind_int64(st, 2, o->backend);
    sqlite3_bind_text(st, 3, LEFT_PACK, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}

static int note_name(brc_store *store, const brc_object *o, brc_error *err)
{
    char name[BRC_STORED_NAME_SIZE];
    const brc_stored at = {.size = sizeof(at), .id = o->id, .sum = o->checksum};
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "INSERT INTO place(seq, backend, name, facts, checksum) SELECT n, ?1, ?2, ?3,"
                     " row_sum('place', n, ?1, ?2, NULL, ?3) FROM (SELECT 1+max("
                     "(SELECT coalesce(max(seq),0) FROM place),"
                     " (SELECT coalesce(max(seq),0) FROM sqlite_sequence WHERE name='place'"
                     " AND typeof(seq)='integer')) AS n) WHERE true ON CONFLICT DO NOTHING",
                     &st, err));
    sqlite3_bind_int64(st, 1, o->backend);
    sqlite3_bind_text(st, 2, brc_stored_name(name, &at), -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(st, 3, LEFT_NAME, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}

/* Within a transaction: notes that the object's stored bytes were left. */
static int left_note_object(brc_store *store, const brc_object *o, brc_error *err)
{
    BRC_TRY(brc_schema_need(store, "place", err));
    return o->place != 0 ? note_pack(store, o, err) : note_name(store, o, err);
}

/* ---- listing -------------------------------- */

int brc_left_page(brc_store *store, int64_t after, brc_left *out, size_t cap, size_t *n,
                  brc_error *err)
{
    int rc, there;
    sqlite3_stmt *st;
    *n = 0;
    BRC_TRY(brc_schema_has(store, "place", &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store,
                     "SELECT seq, backend, facts=?3 FROM place WHERE seq>?1 AND facts IS NOT NULL"
                     " AND checksum IS row_sum('place', seq, backend, name, size, facts)"
                     " ORDER BY seq LIMIT ?2",
                     &st, err));
    sqlite3_bind_int64(st, 1, after);
    sqlite3_bind_int64(st, 2, (int64_t)cap);
    sqlite3_bind_text(st, 3, LEFT_NAME, -1, SQLITE_STATIC);
    while ((rc = brc_step(store, st, err)) > 0)
        out[(*n)++] = (brc_left){.seq = sqlite3_column_int64(st, 0),
                                 .backend = sqlite3_column_int64(st, 1),
                                 .is_canonical = sqlite3_column_int(st, 2)};
    return rc;
}

/* ---- dropping -------------------------------- */

typedef struct left_batch {
    brc_store *store;
    int64_t run;
    brc_left *left[BRC_LEFT_AT_ONCE];
    brc_stored items[BRC_LEFT_AT_ONCE];
    char *names[BRC_LEFT_AT_ONCE];
    size_t n;
} left_batch;

static void left_batch_end(left_batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        free(b->names[i]);
    b->n = 0;
}

/* Stores whether an object lies in the pack: one that was found before, or one that a writer has
 * entered in gc_kept while the collection runs. */
static int pack_is_named(const left_batch *b, const brc_left *left, int *named, brc_error *err)
{
    sqlite3_stmt *st;
    *named = left->named;
    if (*named)
        return BRC_OK;
    BRC_TRY(brc_stmt(b->store,
                     "SELECT 1 FROM gc_kept k JOIN object o ON o.id=k.id WHERE k.run=?1 AND"
                     " o.backend=?2 AND o.place=?3",
                     &st, err));
    sqlite3_bind_int64(st, 1, b->run);
    sqlite3_bind_int64(st, 2, left->backend);
    sqlite3_bind_int64(st, 3, left->seq);
    return brc_ask_any(b->store, st, named, err);
}

/* Stores whether an object's row names these stored bytes, under their canonical name. A writer
 * that stores an object while a collection runs puts its bytes again, in the transaction that names
 * them (brc_gc_puts_stand()); so bytes without a name here belong to nobody. */
static int object_has_stored(brc_store *store, int64_t backend, const brc_stored *at,
                             int *named, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT 1 FROM object WHERE id=?1 AND backend=?2 AND place=0 AND checksum=?3",
                     &st, err));
    brc_bind_id(store, st, 1, &at->id);
    sqlite3_bind_int64(st, 2, backend);
    sqlite3_bind_int64(st, 3, (int64_t)at->sum);
    return brc_ask_any(store, st, named, err);
}

static int left_change(brc_store *store, const char *sql, int64_t seq, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_int64(st, 1, seq);
    return brc_run(store, st, err);
}

static int left_forget(brc_store *store, const brc_left *left, brc_error *err)
{
    return left_change(store, "DELETE FROM place WHERE seq=?1", left->seq, err);
}

static int left_again_used(brc_store *store, const brc_left *left, brc_error *err)
{
    return left->is_canonical
               ? left_forget(store, left, err)
               : left_change(store,
                             "UPDATE place SET facts=NULL, checksum=row_sum('place', seq, backend,"
                             " name, size, NULL) WHERE seq=?1",
                             left->seq, err);
}

/* Adds the left bytes to the batch to drop, unless an object names them. */
static int left_look(left_batch *b, brc_left *left, brc_error *err)
{
    brc_buf name = BRC_BUF_INIT;
    brc_stored at = {.size = sizeof(at)};
    int named = 0;
    int rc = brc_row_text(b->store,
                          "SELECT name, checksum IS row_sum('place', seq, backend, name, size,"
                          " facts) FROM place WHERE seq=?1",
                          left->seq, "place", &name, err);
    if (rc == BRC_OK && !(left->is_canonical
                              ? brc_stored_parse_name(&at, (const char *)name.data)
                              : brc_is_place_name((const char *)name.data)))
        rc = brc_fail(err, BRC_ECORRUPT, "%s is damaged: the name of place %lld cannot be one",
                      b->store->path, (long long)left->seq);
    if (rc == BRC_OK)
        rc = left->is_canonical
                 ? object_has_stored(b->store, left->backend, &at, &named, err)
                 : pack_is_named(b, left, &named, err);
    if (rc == BRC_OK && named)
        rc = left_again_used(b->store, left, err);
    if (rc < 0 || named) {
        brc_buf_dispose(&name);
        return rc;
    }
    at.place = left->is_canonical ? NULL : (const char *)name.data;
    b->left[b->n] = left;
    b->items[b->n] = at;
    b->names[b->n++] = (char *)name.data;
    return BRC_OK;
}

/* Counts `n` left rows that stay, and keeps the first error. */
static void left_stays(size_t n, size_t *failed, const brc_error *said, brc_error *why)
{
    if (*failed == 0)
        brc_error_copy(why, said);
    *failed += n;
}

static int left_drop_in(left_batch *b, brc_store_backend *backend, brc_left *left, size_t n,
                        size_t *failed, brc_error *why, brc_error *err)
{
    brc_stored *items[BRC_LEFT_AT_ONCE];
    brc_error said = BRC_ERROR_INIT;
    for (size_t i = 0; i < n; i++) {
        int rc = left_look(b, &left[i], &said);
        if (rc == BRC_ECORRUPT)
            left_stays(1, failed, &said, why);
        else if (rc < 0) {
            brc_error_copy(err, &said);
            return rc;
        }
    }
    for (size_t i = 0; i < b->n; i++)
        items[i] = &b->items[i];
    const int rc = b->n > 0 ? brc_backend_drop(backend, b->n, items, &said) : BRC_OK;
    for (size_t i = 0; i < b->n; i++)
        if (rc == BRC_OK || items[i]->status == BRC_OK)
            BRC_TRY(left_forget(b->store, b->left[i], err));
        else
            left_stays(1, failed, &said, why);
    brc_places_forget(backend);
    return BRC_OK;
}

int brc_left_drop(brc_store *store, int64_t run, brc_left *left, size_t n, size_t *failed,
                  brc_error *why, brc_error *err)
{
    left_batch b = {.store = store, .run = run};
    brc_store_backend *backend;
    brc_error said = BRC_ERROR_INIT;
    size_t stay = *failed;
    BRC_TRY(brc_store_begin(store, err));
    int rc = BRC_OK;
    const int used = brc_backend_use(store, left[0].backend, &backend, &said);
    if (used == BRC_OK)
        rc = left_drop_in(&b, backend, left, n, &stay, why, err);
    else if (used != BRC_EUNSUPPORTED) /* bytes that this build cannot remove stay */
        left_stays(n, &stay, &said, why);
    left_batch_end(&b);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    rc = rc < 0 ? rc : end;
    if (rc == BRC_OK)
        *failed = stay;
    return rc;
}

/* ==== strays ================================ */

/*
 * Strays: bytes in other backends whose writer was killed, or whose transaction was undone, before
 * a row named them. The file does not know of them: the backend lists its bytes, and bytes that
 * neither an object nor a row of table place names are dropped.
 *
 * Two rules make that safe. Only bytes that the backend holds for this file alone (BRC_KEPT_OWN)
 * are examined. And a writer that puts ahead of its transaction puts again within it if a
 * collection ran meanwhile (brc_gc_puts_stand()): so bytes that have no name in the transaction
 * that drops them belong to nobody.
 */

int brc_backend_after(brc_store *store, int64_t after, int64_t *id, brc_error *err)
{
    int there;
    sqlite3_stmt *st;
    *id = 0;
    BRC_TRY(brc_schema_has(store, "backend", &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT min(id) FROM backend WHERE id>?1", &st, err));
    sqlite3_bind_int64(st, 1, after);
    return brc_ask_number(store, st, id, err);
}

void brc_strays_dispose(brc_strays *strays)
{
    for (size_t i = 0; i < strays->n; i++)
        free(strays->items[i].name);
    free(strays->items);
    memset(strays, 0, sizeof(*strays));
}

/* ---- names -------------------------------- */

static int stray_has_row(brc_store *store, int64_t backend, const char *name, int *named,
                         brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_schema_has(store, "place", named, err));
    if (!*named)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM place WHERE backend=?1 AND name=?2", &st, err));
    sqlite3_bind_int64(st, 1, backend);
    sqlite3_bind_text(st, 2, name, -1, SQLITE_STATIC);
    return brc_ask_any(store, st, named, err);
}

/* Rows of table place belong to packs, or to left bytes, which are dropped as such. */
static int stray_is_named(brc_store *store, int64_t backend, const char *name, int is_place,
                          int *named, brc_error *err)
{
    brc_stored at = {.size = sizeof(at)};
    *named = 0;
    if (!is_place && brc_stored_parse_name(&at, name))
        BRC_TRY(object_has_stored(store, backend, &at, named, err));
    return *named ? BRC_OK : stray_has_row(store, backend, name, named, err);
}

/* ---- looking -------------------------------- */

typedef struct stray_search {
    brc_store *store;
    int64_t backend, before_us;
    brc_strays *out;
    brc_error *err; /* an error of the file, which ends the list */
    int rc;
} stray_search;

enum { ENOUGH = 1 };

static int stray_add(brc_strays *out, const brc_kept *kept, brc_error *err)
{
    void *p = out->items;
    out->has_more = out->n == BRC_STRAYS_MOST;
    if (out->has_more)
        return ENOUGH;
    int rc = brc_grow_array(&p, &out->cap, out->n + 1, sizeof(brc_stray), err);
    out->items = p;
    BRC_TRY(rc);
    brc_stray *stray = &out->items[out->n];
    BRC_TRY(brc_dup(&stray->name, kept->name, err));
    stray->is_place = (kept->flags & BRC_KEPT_PLACE) != 0;
    out->n++;
    return BRC_OK;
}

/* Returns 1 if bytes may be a stray. Bytes that were put after the collection began most likely
 * belong to a writer that is about to name them. */
static int may_be_stray(const stray_search *s, const brc_kept *kept)
{
    brc_stored at;
    if (!(kept->flags & BRC_KEPT_OWN) || kept->time_us > s->before_us)
        return 0;
    return kept->flags & BRC_KEPT_PLACE ? brc_is_place_name(kept->name)
                                        : brc_stored_parse_name(&at, kept->name);
}

/* Looks up one name, and releases the file before the backend goes on, so that nobody waits for the
 * backend. */
static int stray_look(const stray_search *s, const brc_kept *kept, brc_error *err)
{
    int named;
    BRC_TRY(brc_store_check_interrupt(s->store, err));
    BRC_TRY(brc_store_begin_read(s->store, err));
    int rc = stray_is_named(s->store, s->backend, kept->name, kept->flags & BRC_KEPT_PLACE, &named,
                            err);
    brc_store_end_read(s->store);
    return rc < 0 || named ? rc : stray_add(s->out, kept, err);
}

static int stray_each(void *to, const brc_kept *kept, brc_error *err)
{
    stray_search *s = to;
    (void)err;
    s->rc = may_be_stray(s, kept) ? stray_look(s, kept, s->err) : BRC_OK;
    return s->rc;
}

int brc_strays_find(brc_store *store, int64_t backend, int64_t before_us, brc_strays *out,
                    brc_error *why, brc_error *err)
{
    stray_search s = {store, backend, before_us, out, err, BRC_OK};
    brc_store_backend *b;
    brc_error said = BRC_ERROR_INIT;
    memset(out, 0, sizeof(*out));
    int rc = brc_backend_use(store, backend, &b, &said);
    if (rc == BRC_OK && b->impl->list != NULL && b->impl->drop != NULL)
        rc = brc_backend_list(b, stray_each, &s, &said);
    if (s.rc < 0)
        brc_strays_dispose(out);
    else if (rc < 0 && rc != BRC_EUNSUPPORTED && rc != BRC_ENOTFOUND)
        brc_error_copy(why, &said);
    return s.rc < 0 ? s.rc : BRC_OK;
}

/* ---- dropping -------------------------------- */

static int strays_drop_in(brc_store *store, brc_store_backend *b, const brc_stray *strays,
                          size_t n, size_t *failed, brc_error *why, brc_error *err)
{
    brc_stored at[BRC_LEFT_AT_ONCE], *items[BRC_LEFT_AT_ONCE];
    brc_error said = BRC_ERROR_INIT;
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        int named;
        BRC_TRY(stray_is_named(store, b->id, strays[i].name, strays[i].is_place, &named, err));
        if (named)
            continue;
        at[count] = (brc_stored){.size = sizeof(at[count]), .flags = BRC_STORED_OWN};
        if (strays[i].is_place)
            at[count].place = strays[i].name;
        else
            (void)!brc_stored_parse_name(&at[count], strays[i].name);
        items[count] = &at[count];
        count++;
    }
    const int rc = count > 0 ? brc_backend_drop(b, count, items, &said) : BRC_OK;
    for (size_t i = 0; rc < 0 && i < count; i++)
        if (items[i]->status != BRC_OK && (*failed)++ == 0)
            brc_error_copy(why, &said);
    return BRC_OK;
}

int brc_strays_drop(brc_store *store, int64_t backend, const brc_stray *strays, size_t n,
                    size_t *failed, brc_error *why, brc_error *err)
{
    brc_store_backend *b;
    size_t stay = *failed;
    BRC_TRY(brc_store_begin(store, err));
    int rc = brc_backend_use(store, backend, &b, err);
    if (rc == BRC_OK)
        rc = strays_drop_in(store, b, strays, n, &stay, why, err);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    rc = rc < 0 ? rc : end;
    if (rc == BRC_OK)
        *failed = stay;
    return rc;
}

/* ==== compact ================================ */

/* Removed objects leave holes in rows of stored bytes, free pages, and traces in the file. */

/* ---- rows with holes -------------------------------- */

int brc_holes_last(brc_store *store, int64_t *last, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT coalesce(max(seq), 0) FROM hole", &st, err));
    return brc_ask_number(store, st, last, err);
}

int brc_holes_page(brc_store *store, int64_t after, int64_t last, int64_t *out, size_t cap,
                   size_t *n, brc_error *err)
{
    int rc;
    sqlite3_stmt *st;
    *n = 0;
    BRC_TRY(brc_stmt(store,
                     "SELECT h.seq FROM hole h JOIN blob b ON b.seq=h.seq WHERE h.seq>?1"
                     " AND h.seq<=?3 AND 2*h.bytes>=length(b.data) ORDER BY h.seq LIMIT ?2",
                     &st, err));
    sqlite3_bind_int64(st, 1, after);
    sqlite3_bind_int64(st, 2, (int64_t)cap);
    sqlite3_bind_int64(st, 3, last);
    while ((rc = brc_step(store, st, err)) > 0)
        out[(*n)++] = sqlite3_column_int64(st, 0);
    return rc;
}

/* Stores whether the row's bytes that are not holes are just these objects' bytes. */
static int row_is_theirs(brc_store *store, int64_t seq, brc_object *objects, size_t n, int *theirs,
                         brc_error *err)
{
    sqlite3_stmt *st;
    int64_t left;
    uint64_t sum = 0;
    *theirs = 0;
    for (size_t i = 0; i < n; i++) {
        brc_object *one = &objects[i];
        BRC_TRY(brc_objects_find(store, &one, 1, err));
        if (!one->found || one->backend != 0 || one->place != seq)
            return BRC_OK;
        sum += one->stored;
    }
    BRC_TRY(brc_stmt(store,
                     "SELECT length(b.data)-h.bytes FROM blob b JOIN hole h ON h.seq=b.seq"
                     " WHERE b.seq=?1 AND h.checksum IS row_sum('hole', h.seq, h.bytes)",
                     &st, err));
    sqlite3_bind_int64(st, 1, seq);
    BRC_TRY(brc_ask_number(store, st, &left, err));
    *theirs = left > 0 && (uint64_t)left == sum;
    return BRC_OK;
}

static int move_object(brc_store *store, const brc_object *o, brc_buf *bytes, brc_error *err)
{
    brc_stored at, *put = &at;
    bytes->len = 0;
    BRC_TRY(brc_buf_reserve(bytes, (size_t)o->stored + 1, err));
    BRC_TRY(brc_object_fetch(store, o, bytes->data, err));
    brc_object_ask(o, &at);
    at.data = bytes->data;
    BRC_TRY(brc_inline_backend.put(NULL, store, 1, &put, err));
    return brc_object_replace(store, o, &at, err);
}

/* Drops a row that is one hole: a bulk write put its bytes ahead and has not written their objects.
 * If the bulk write goes on, it notices that and puts the bytes again. */
static int drop_bare_row(brc_store *store, int64_t seq, int *dropped, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT 1 FROM blob b JOIN hole h ON h.seq=b.seq WHERE b.seq=?1 AND"
                     " h.bytes=length(b.data) AND h.checksum IS row_sum('hole', h.seq, h.bytes)",
                     &st, err));
    sqlite3_bind_int64(st, 1, seq);
    BRC_TRY(brc_ask_any(store, st, dropped, err));
    if (!*dropped)
        return BRC_OK;
    BRC_TRY(brc_blob_drop(store, seq, err));
    BRC_TRY(brc_stmt(store, "DELETE FROM hole WHERE seq=?1", &st, err));
    sqlite3_bind_int64(st, 1, seq);
    return brc_run(store, st, err);
}

int brc_row_compact(brc_store *store, int64_t seq, const brc_oid *ids, size_t n, int *moved,
                    brc_error *err)
{
    void *p;
    brc_buf bytes = BRC_BUF_INIT;
    BRC_TRY(brc_new_array(&p, n + 1, sizeof(brc_object), err));
    brc_object *objects = p;
    for (size_t i = 0; i < n; i++)
        objects[i].id = ids[i];
    int rc = n > 0 ? row_is_theirs(store, seq, objects, n, moved, err)
                   : drop_bare_row(store, seq, moved, err);
    for (size_t i = 0; i < n && rc == BRC_OK && *moved; i++)
        rc = move_object(store, &objects[i], &bytes, err);
    brc_buf_dispose(&bytes);
    free(p);
    return rc;
}

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
    if (*left >= before) /* a file that lacks SQLite's pointer map */
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

int brc_store_file_bytes(brc_store *store, uint64_t *out, brc_error *err)
{
    sqlite3_stmt *st;
    int64_t n;
    BRC_TRY(brc_stmt(store, "PRAGMA page_count", &st, err));
    BRC_TRY(brc_ask_number(store, st, &n, err));
    *out = (uint64_t)n * BRC_PAGE_SIZE;
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
                                "%s: what was removed is still in its -wal, because another "
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
    if (o->kind == BRC_KIND_CHUNK)
        return sweep_reserved(store, "encoded", "DELETE FROM encoded WHERE id=?1", &o->id, err);
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
                           : left_note_object(store, &o, err));
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
    if (rc < 0 && rc != BRC_ECORRUPT && rc != BRC_ESTALE) { /* such a row has no stored bytes */
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
                      "%s: the types and codecs of arrays that were removed are still in the "
                      "file, because another process has written to it meanwhile: run "
                      "'gc --expunge' again when it is done",
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
