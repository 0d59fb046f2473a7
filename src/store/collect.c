/* Roots: the objects that rows of the file need. They are read from the tables only, so that the
 * code that fills these tables need not know of collections. */
#include "collect.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../base/hash.h"
#include "../base/process.h"
#include "db.h"
#include "file_lock.h"

static int pins_each(brc_store *store,
                     int (*each)(void *ctx, const brc_oid *commit, brc_error *err), void *ctx,
                     brc_error *err);

/* ==== gc roots ================================ */

/* The number of chunks of a row of draft_node that are read at a time. */
enum { ROW_PAGE = 2048 };

void brc_roots_dispose(brc_roots *roots)
{
    free(roots->items);
    memset(roots, 0, sizeof(*roots));
}

static int root_new(brc_roots *out, brc_root **root, brc_error *err)
{
    void *p = out->items;
    int rc = brc_grow_array(&p, &out->cap, out->n + 1, sizeof(brc_root), err);
    out->items = p;
    if (rc < 0)
        return rc;
    *root = &out->items[out->n++];
    memset(*root, 0, sizeof(**root));
    return BRC_OK;
}

static int root_add(brc_roots *out, int what, const brc_oid *id, brc_error *err)
{
    brc_root *root;
    BRC_TRY(root_new(out, &root, err));
    root->what = what;
    root->id = *id;
    return BRC_OK;
}

/* Adds the ids in the statement's first column; the second says whether the row's checksum is
 * right. */
static int add_ids(brc_store *store, sqlite3_stmt *st, int what, const char *row, brc_roots *out,
                   brc_error *err)
{
    int rc;
    while ((rc = brc_step(store, st, err)) > 0) {
        brc_oid id;
        rc = brc_row_check(store, st, 1, row, err);
        if (rc == BRC_OK && sqlite3_column_type(st, 0) != SQLITE_NULL) {
            rc = brc_column_id(store, st, 0, &id, err);
            if (rc == BRC_OK)
                rc = root_add(out, what, &id, err);
        }
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc;
}

/* ---- what has a name -------------------------------- */

static int named_refs(brc_store *store, brc_roots *out, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT target, checksum IS row_sum('ref', name, target, message) FROM ref",
                     &st, err));
    return add_ids(store, st, BRC_ROOT_COMMIT, "a ref", out, err);
}

/* Adds the targets in one row of the log if the row counts. */
static int log_row(brc_store *store, sqlite3_stmt *st, const brc_log_range *range, int64_t last,
                   brc_roots *out, brc_error *err)
{
    const int64_t seq = sqlite3_column_int64(st, 0);
    if (sqlite3_column_int64(st, 1) < range->since_us && seq <= last - range->least)
        return BRC_OK;
    BRC_TRY(brc_row_check(store, st, 4, "the operation log", err));
    for (int i = 2; i <= 3; i++) {
        brc_oid id;
        if (sqlite3_column_type(st, i) == SQLITE_NULL)
            continue;
        BRC_TRY(brc_column_id(store, st, i, &id, err));
        BRC_TRY(root_add(out, BRC_ROOT_PAST, &id, err));
    }
    return BRC_OK;
}

/* Reads one page of the log, which may be long. */
static int log_page(brc_store *store, brc_log_range *range, int64_t last, brc_roots *out, int *n,
                    brc_error *err)
{
    int rc;
    sqlite3_stmt *st;
    *n = 0;
    BRC_TRY(brc_stmt(store,
                     "SELECT seq, time_us, old, new, checksum IS row_sum('oplog', seq, time_us, op,"
                     " name, old, new, first, undoes, restores, draft) FROM oplog WHERE seq>?1"
                     " ORDER BY seq LIMIT 2048",
                     &st, err));
    sqlite3_bind_int64(st, 1, range->after);
    while ((rc = brc_step(store, st, err)) > 0) {
        ++*n;
        range->after = sqlite3_column_int64(st, 0);
        rc = log_row(store, st, range, last, out, err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc;
}

static int named_log(brc_store *store, brc_log_range *range, brc_roots *out, brc_error *err)
{
    sqlite3_stmt *st;
    int64_t last;
    int n = 1;
    BRC_TRY(brc_stmt(store, "SELECT max(seq) FROM oplog", &st, err));
    BRC_TRY(brc_ask_number(store, st, &last, err));
    while (n > 0)
        BRC_TRY(log_page(store, range, last, out, &n, err));
    return BRC_OK;
}

static int add_pinned(void *ctx, const brc_oid *commit, brc_error *err)
{
    return root_add(ctx, BRC_ROOT_PAST, commit, err);
}

static int named_pins(brc_store *store, brc_roots *out, brc_error *err)
{
    int there;
    sqlite3_stmt *st;
    BRC_TRY(pins_each(store, add_pinned, out, err));
    BRC_TRY(brc_schema_has(store, "pin", &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store,
                     "SELECT target, checksum IS row_sum('pin', id, target, owner, time_us)"
                     " FROM pin",
                     &st, err));
    return add_ids(store, st, BRC_ROOT_PAST, "a pin", out, err);
}

/* Adds commits that were stored or named since this collection began, even if nothing names them
 * any more: the objects that they reach must not be removed before them. */
static int named_kept(brc_store *store, brc_roots *out, brc_error *err)
{
    int64_t run;
    sqlite3_stmt *st;
    BRC_TRY(brc_gc_running(store, &run, err));
    if (run == 0)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT id, 1 FROM gc_kept WHERE run=?1", &st, err));
    sqlite3_bind_int64(st, 1, -run);
    return add_ids(store, st, BRC_ROOT_PAST, "a commit to keep", out, err);
}

/* ---- drafts -------------------------------- */

/* Adds the hexadecimal ids in a plan's text, if they are commits. */
static int plan_ids(brc_store *store, const char *plan, brc_roots *out, brc_error *err)
{
    const size_t digits = 2 * store->id_len;
    while (plan != NULL && *plan != '\0') {
        const size_t run = strspn(plan, "0123456789abcdef");
        if (run == digits) {
            brc_oid id;
            memset(&id, 0, sizeof(id));
            for (size_t i = 0; i < digits; i++) {
                const int digit = plan[i] <= '9' ? plan[i] - '0' : plan[i] - 'a' + 10;
                id.bytes[i / 2] = (uint8_t)(id.bytes[i / 2] << 4 | digit);
            }
            BRC_TRY(root_add(out, BRC_ROOT_PAST, &id, err));
        }
        plan += run > 0 ? run : 1;
    }
    return BRC_OK;
}

static int is_left_by_dead(sqlite3_stmt *st, int kind, int owner)
{
    const char *text = (const char *)sqlite3_column_text(st, owner);
    return sqlite3_column_int(st, kind) == BRC_DRAFT_PRIVATE && text != NULL &&
           brc_process_state(text) == BRC_PROCESS_DEAD;
}

#define DRAFT_WHOLE                                                                             \
    "checksum IS row_sum('draft', id, kind, state, branch, base, tip, other, plan, owner,"      \
    " parent, time_us, changes, parts)"

static int draft_ids(brc_store *store, sqlite3_stmt *st, brc_roots *out, brc_error *err)
{
    const int64_t open = sqlite3_column_int(st, 5) == BRC_DRAFT_MERGE ? sqlite3_column_int64(st, 7)
                                                                      : 0;
    size_t at = out->n;
    for (int i = 1; i <= 3; i++) {
        brc_oid id;
        if (sqlite3_column_type(st, i) == SQLITE_NULL)
            continue;
        BRC_TRY(brc_column_id(store, st, i, &id, err));
        BRC_TRY(root_add(out, BRC_ROOT_COMMIT, &id, err));
    }
    BRC_TRY(plan_ids(store, (const char *)sqlite3_column_text(st, 4), out, err));
    for (; at < out->n; at++)
        out->items[at].open = open;
    return BRC_OK;
}

/* Stores whether the draft that the statement has read counts. */
static int draft_counts(brc_store *store, sqlite3_stmt *st, int not_dead, int *counts,
                        brc_error *err)
{
    brc_draft_head head;
    int unused;
    *counts = !not_dead || !is_left_by_dead(st, 5, 6);
    if (*counts || not_dead != BRC_NOT_DEAD_UNUSED)
        return BRC_OK;
    BRC_TRY(brc_draft_get(store, sqlite3_column_int64(st, 7), &head, err));
    BRC_TRY(brc_draft_is_unused(store, &head, &unused, err));
    *counts = !unused;
    return BRC_OK;
}

static int named_drafts(brc_store *store, int not_dead, brc_roots *out, brc_error *err)
{
    int rc, counts = 0;
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT " DRAFT_WHOLE ", base, tip, other, plan, kind, owner, id FROM draft"
                     " WHERE state<>2",
                     &st, err));
    while ((rc = brc_step(store, st, err)) > 0) {
        rc = brc_row_check(store, st, 0, "a draft", err);
        if (rc == BRC_OK)
            rc = draft_counts(store, st, not_dead, &counts, err);
        if (rc == BRC_OK && counts)
            rc = draft_ids(store, st, out, err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc;
}

/* Adds the commits of a bisection, which is a setting with ids as in a plan. */
static int named_bisection(brc_store *store, brc_roots *out, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc = brc_setting_find(store, "bisect", &text, err);
    if (rc > 0)
        rc = plan_ids(store, (const char *)text.data, out, err);
    brc_buf_dispose(&text);
    return rc;
}

int brc_roots_named(brc_store *store, brc_log_range *range, int not_dead, brc_roots *out,
                    brc_error *err)
{
    BRC_TRY(named_refs(store, out, err));
    BRC_TRY(named_drafts(store, not_dead, out, err));
    BRC_TRY(named_log(store, range, out, err));
    BRC_TRY(named_bisection(store, out, err));
    BRC_TRY(named_kept(store, out, err));
    return named_pins(store, out, err);
}

int brc_root_drafts_list(brc_store *store, int not_dead, brc_root_drafts *out, brc_error *err)
{
    int rc;
    sqlite3_stmt *st;
    out->n = 0;
    BRC_TRY(brc_stmt(store,
                     "SELECT id, changes, kind, owner, state, " DRAFT_WHOLE
                     " FROM draft ORDER BY id",
                     &st, err));
    while ((rc = brc_step(store, st, err)) > 0) {
        void *p = out->items;
        rc = brc_row_check(store, st, 5, "a draft", err);
        if (rc == BRC_OK)
            rc = brc_grow_array(&p, &out->cap, out->n + 1, sizeof(brc_root_draft), err);
        out->items = p;
        if (rc < 0)
            break;
        out->items[out->n++] = (brc_root_draft){sqlite3_column_int64(st, 0),
                                                sqlite3_column_int64(st, 1),
                                                sqlite3_column_int(st, 4) == 2 ||
                                                    (not_dead && is_left_by_dead(st, 2, 3))};
    }
    sqlite3_reset(st);
    return rc;
}

/* ---- what a draft's rows name -------------------------------- */

/* Adds an entry. Fails for a row that cannot be an entry, because its objects are unknown: then
 * nothing is removed. */
static int add_entry(brc_roots *out, int what, int64_t node, const void *entry, size_t len,
                     brc_error *err)
{
    brc_root *root;
    BRC_TRY(root_new(out, &root, err));
    root->what = what;
    root->node = node;
    if (len > sizeof(root->entry))
        return brc_fail(err, BRC_ECORRUPT, "the entry of an uncommitted node is damaged");
    if (len > 0)
        memcpy(root->entry, entry, len);
    root->entry_len = len;
    return BRC_OK;
}

static int draft_entries(brc_store *store, int64_t draft, brc_roots *out, brc_error *err)
{
    int rc;
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT node, entry, checksum IS row_sum('draft_node', node, draft, path,"
                     " below, level, entry) FROM draft_node WHERE draft=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    while ((rc = brc_step(store, st, err)) > 0) {
        rc = brc_row_check(store, st, 2, "an uncommitted node", err);
        if (rc == BRC_OK)
            rc = add_entry(out, BRC_ROOT_ROW, sqlite3_column_int64(st, 0),
                           sqlite3_column_blob(st, 1), (size_t)sqlite3_column_bytes(st, 1), err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc;
}

static int conflict_side(brc_store *store, sqlite3_stmt *st, int column, brc_roots *out,
                         brc_error *err)
{
    brc_oid id;
    const char *member = (const char *)sqlite3_column_text(st, 0);
    if (member == NULL || sqlite3_column_type(st, column) != SQLITE_BLOB ||
        sqlite3_column_bytes(st, column) == 0) /* a row for something that is in no version */
        return BRC_OK;
    if (*member == '\0')
        return add_entry(out, BRC_ROOT_ENTRY, 0, sqlite3_column_blob(st, column),
                         (size_t)sqlite3_column_bytes(st, column), err);
    if (strcmp(member, "chunk") != 0 && strcmp(member, "/storage") != 0)
        return BRC_OK;
    BRC_TRY(brc_column_id(store, st, column, &id, err));
    return root_add(out, BRC_ROOT_OBJECT, &id, err);
}

static int draft_conflicts(brc_store *store, int64_t draft, brc_roots *out, brc_error *err)
{
    int rc, there;
    sqlite3_stmt *st;
    BRC_TRY(brc_schema_has(store, "conflict", &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT member, base, ours, theirs FROM conflict WHERE draft=?1", &st,
                     err));
    sqlite3_bind_int64(st, 1, draft);
    while ((rc = brc_step(store, st, err)) > 0) {
        for (int i = 1; i <= 3 && rc >= 0; i++)
            rc = conflict_side(store, st, i, out, err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc;
}

int brc_roots_of_draft(brc_store *store, int64_t draft, brc_roots *out, brc_error *err)
{
    int has_keys;
    sqlite3_stmt *st;
    BRC_TRY(draft_entries(store, draft, out, err));
    BRC_TRY(draft_conflicts(store, draft, out, err));
    BRC_TRY(brc_schema_has(store, "draft_key", &has_keys, err));
    if (!has_keys)
        return BRC_OK;
    BRC_TRY(brc_stmt(store,
                     "SELECT id, checksum IS row_sum('draft_key', draft, key, id) FROM draft_key"
                     " WHERE draft=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    return add_ids(store, st, BRC_ROOT_OBJECT, "an uncommitted key", out, err);
}

/* Reads the next page of a row's chunks after the key `after`, which is moved on. */
static int row_page(brc_store *store, int64_t node, int is_first, brc_buf *after, brc_roots *out,
                    size_t *n, brc_error *err)
{
    int rc;
    sqlite3_stmt *st;
    brc_oid id;
    *n = out->n = 0;
    BRC_TRY(brc_stmt(store,
                     "SELECT id, checksum IS row_sum('draft_chunk', node, key, id), key"
                     " FROM draft_chunk WHERE node=?1 AND key>=?2 AND (?4 OR key<>?2)"
                     " ORDER BY key LIMIT ?3",
                     &st, err));
    sqlite3_bind_int64(st, 1, node);
    BRC_TRY(brc_bind_copy(store, st, 2, 0, (brc_span){after->data, after->len}, err));
    sqlite3_bind_int64(st, 3, ROW_PAGE);
    sqlite3_bind_int(st, 4, is_first); /* a key may be empty */
    while ((rc = brc_step(store, st, err)) > 0) {
        ++*n;
        after->len = 0;
        rc = brc_row_check(store, st, 1, "an uncommitted chunk", err);
        if (rc == BRC_OK && sqlite3_column_bytes(st, 2) > 0)
            rc = brc_buf_append(after, sqlite3_column_blob(st, 2),
                                (size_t)sqlite3_column_bytes(st, 2), err);
        if (rc == BRC_OK && sqlite3_column_type(st, 0) != SQLITE_NULL) {
            rc = brc_column_id(store, st, 0, &id, err);
            if (rc == BRC_OK)
                rc = root_add(out, BRC_ROOT_OBJECT, &id, err);
        }
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc;
}

int brc_roots_of_row(brc_store *store, int64_t node,
                     int (*each)(void *ctx, const brc_oid *chunk, brc_error *err), void *ctx,
                     brc_error *err)
{
    brc_roots chunks = {0};
    brc_buf after = BRC_BUF_INIT;
    size_t n = ROW_PAGE;
    int rc = BRC_OK;
    for (int is_first = 1; n == ROW_PAGE && rc == BRC_OK; is_first = 0) {
        rc = row_page(store, node, is_first, &after, &chunks, &n, err);
        for (size_t i = 0; i < chunks.n && rc == BRC_OK; i++)
            rc = each(ctx, &chunks.items[i].id, err);
        brc_store_breathe(store);
    }
    brc_roots_dispose(&chunks);
    brc_buf_dispose(&after);
    return rc;
}

/* ---- drafts that are none any more -------------------------------- */

static int dead_draft(brc_store *store, int64_t *id, brc_error *err)
{
    brc_root_drafts drafts = {0};
    sqlite3_stmt *st;
    int live = 0;
    *id = 0;
    int rc = brc_root_drafts_list(store, 1, &drafts, err);
    for (size_t i = 0; i < drafts.n && rc == BRC_OK && !live; i++) {
        if (!drafts.items[i].is_dropped)
            continue;
        rc = brc_stmt(store, "SELECT 1 FROM draft WHERE id=?1 AND state<>2", &st, err);
        if (rc < 0)
            break;
        sqlite3_bind_int64(st, 1, drafts.items[i].id);
        rc = brc_ask_any(store, st, &live, err);
        *id = live ? drafts.items[i].id : 0;
    }
    free(drafts.items);
    return rc;
}

int brc_drafts_sweep_step(brc_store *store, int *more, brc_error *err)
{
    int64_t id = 0;
    sqlite3_stmt *st;
    *more = 0;
    BRC_TRY(brc_store_begin(store, err));
    int rc = dead_draft(store, &id, err);
    if (rc == BRC_OK && id != 0)
        rc = brc_draft_delete(store, id, err);
    if (rc == BRC_OK)
        rc = brc_stmt(store, "SELECT 1 FROM draft WHERE state=2", &st, err);
    if (rc == BRC_OK)
        rc = brc_ask_any(store, st, more, err);
    *more |= id != 0;
    /* The end of each transaction deletes some rows of dropped drafts. */
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

/* ==== gc rows ================================ */

/* Rows of a garbage collection: its state, the objects that it must keep, and pins. */

#define GC_SUM "row_sum('gc', run, owner, phase, position, time_us)"

/* ---- the row -------------------------------- */

static int make_tables(brc_store *store, const char *const *names, brc_error *err)
{
    for (; *names != NULL; names++)
        BRC_TRY(brc_schema_need(store, *names, err));
    return BRC_OK;
}

static int gc_change(brc_store *store, const char *sql, int64_t run, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_int64(st, 1, run);
    return brc_run(store, st, err);
}

static int gc_seal(brc_store *store, int64_t run, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "UPDATE gc SET checksum=" GC_SUM " WHERE run=?1", &st, err));
    sqlite3_bind_int64(st, 1, run);
    return brc_run(store, st, err);
}

/* Running collections of this process, by digests of their owners. If there are more than there is
 * room for, every owner counts as running. */
enum { AT_ONCE = 64 };
static _Atomic uint64_t collecting[AT_ONCE];

static int swap_owner(uint64_t from, uint64_t to)
{
    for (int i = 0; i < AT_ONCE; i++) {
        uint64_t was = from;
        if (atomic_compare_exchange_strong(&collecting[i], &was, to))
            return 1;
    }
    return 0;
}

static uint64_t owner_digest(const char *owner)
{
    return brc_hash_bytes(owner, strlen(owner)) | 1;
}

void brc_gc_enter(const char *owner)
{
    swap_owner(0, owner_digest(owner));
}

void brc_gc_exit(const char *owner)
{
    swap_owner(owner_digest(owner), 0);
}

static int goes_on(const char *owner)
{
    const uint64_t digest = owner_digest(owner);
    int n = 0;
    for (int i = 0; i < AT_ONCE; i++) {
        const uint64_t one = atomic_load(&collecting[i]);
        if (one == digest)
            return 1;
        n += one != 0;
    }
    return n == AT_ONCE;
}

/* Returns 1 if a collection may be taken over: it has no owner (''), its process has certainly
 * ended, or it is a stopped one of this process, which could not note that. */
static int may_take_over(brc_store *store, const char *owner, brc_error *err)
{
    if (owner == NULL || *owner == '\0' || brc_process_state(owner) == BRC_PROCESS_DEAD ||
        (brc_process_is_this(owner) && !goes_on(owner)))
        return BRC_OK;
    return brc_fail(err, BRC_EBUSY,
                    "%s: process %lld is collecting garbage already: wait until it is done, or "
                    "stop it and start again, which goes on where it was",
                    store->path, (long long)brc_process_id(owner));
}

static int gc_find(brc_store *store, brc_gc_row *out, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT run, phase, position, owner, checksum IS " GC_SUM
                     " FROM gc ORDER BY run DESC LIMIT 1",
                     &st, err));
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    rc = brc_row_check(store, st, 4, "a collection of garbage", err);
    out->run = sqlite3_column_int64(st, 0);
    out->phase = sqlite3_column_int(st, 1);
    out->was_begun = 1;
    if (rc == BRC_OK && sqlite3_column_type(st, 2) != SQLITE_NULL)
        rc = brc_column_id(store, st, 2, &out->position, err);
    if (rc == BRC_OK)
        rc = may_take_over(store, (const char *)sqlite3_column_text(st, 3), err);
    sqlite3_reset(st);
    return rc;
}

/* Begins a collection. A collection that is taken over gets a new number. It marks anew, so it need
 * not keep the objects that the last one had to; and a writer that put bytes ahead of the
 * transaction that names them sees that it must check them. */
static int gc_begin_in(brc_store *store, const char *owner, int64_t now_us, brc_gc_row *out,
                       brc_error *err)
{
    static const char *const tables[] = {"gc", "gc_kept", NULL};
    sqlite3_stmt *st;
    memset(out, 0, sizeof(*out));
    BRC_TRY(make_tables(store, tables, err));
    BRC_TRY(gc_find(store, out, err));
    if (out->run != 0)
        BRC_TRY(gc_change(store, "DELETE FROM gc WHERE run=?1", out->run, err));
    BRC_TRY(brc_stmt(store,
                     "INSERT INTO gc(owner, phase, position, time_us, checksum)"
                     " VALUES (?1, 1, ?3, ?2, 0)",
                     &st, err));
    sqlite3_bind_text(st, 1, owner, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 2, now_us);
    if (!brc_oid_is_zero(&out->position))
        brc_bind_id(store, st, 3, &out->position);
    BRC_TRY(brc_run(store, st, err));
    out->run = sqlite3_last_insert_rowid(store->db);
    out->phase = BRC_GC_MARKS;
    store->gc.is_read = 0;
    return gc_seal(store, out->run, err);
}

int brc_gc_begin(brc_store *store, const char *owner, int64_t now_us, brc_gc_row *out,
                 brc_error *err)
{
    BRC_TRY(brc_store_begin(store, err));
    int rc = gc_begin_in(store, owner, now_us, out, err);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

/* Checks that the collection still belongs to this owner. */
static int gc_is_own(brc_store *store, const char *owner, int64_t run, brc_error *err)
{
    int own;
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM gc WHERE run=?1 AND owner=?2", &st, err));
    sqlite3_bind_int64(st, 1, run);
    sqlite3_bind_text(st, 2, owner, -1, SQLITE_STATIC);
    BRC_TRY(brc_ask_any(store, st, &own, err));
    return own ? BRC_OK
               : brc_fail(err, BRC_ESTALE, "%s: another process has gone on with this collection",
                          store->path);
}

int brc_gc_note(brc_store *store, const char *owner, brc_gc_row *row, int phase,
                const brc_oid *position, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(gc_is_own(store, owner, row->run, err));
    if (phase == row->phase && position == NULL)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "UPDATE gc SET phase=?2, position=coalesce(?3, position) WHERE run=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, row->run);
    sqlite3_bind_int(st, 2, phase);
    brc_bind_id(store, st, 3, position);
    BRC_TRY(brc_run(store, st, err));
    row->phase = phase;
    return gc_seal(store, row->run, err);
}

int brc_gc_leave(brc_store *store, const char *owner, const brc_gc_row *row, brc_error *err)
{
    BRC_TRY(brc_store_begin(store, err));
    int rc = gc_is_own(store, owner, row->run, err);
    if (rc == BRC_OK)
        rc = gc_change(store, "UPDATE gc SET owner='' WHERE run=?1", row->run, err);
    if (rc == BRC_OK)
        rc = gc_seal(store, row->run, err);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

static int drop_some_kept(brc_store *store, int *more, brc_error *err)
{
    int64_t run, running;
    sqlite3_stmt *st;
    BRC_TRY(brc_gc_running(store, &running, err));
    BRC_TRY(brc_stmt(store, "SELECT max(run) FROM gc_kept WHERE run<?1", &st, err));
    sqlite3_bind_int64(st, 1, running != 0 ? running : INT64_MAX);
    BRC_TRY(brc_ask_number(store, st, &run, err));
    *more = run != 0 && run != -running;
    return *more ? gc_change(store,
                             "DELETE FROM gc_kept WHERE run=?1 AND id IN"
                             " (SELECT id FROM gc_kept WHERE run=?1 LIMIT 2048)",
                             run, err)
                 : BRC_OK;
}

/* Deletes some rows of gc_kept, which may be many, when no collection runs that adds to them. */
static int drop_kept(brc_store *store, int *more, brc_error *err)
{
    BRC_TRY(brc_store_begin(store, err));
    int rc = drop_some_kept(store, more, err);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

int brc_gc_end(brc_store *store, const brc_gc_row *row, brc_error *err)
{
    int more = 1;
    BRC_TRY(brc_store_begin(store, err));
    int rc = gc_change(store, "DELETE FROM gc WHERE run=?1", row->run, err);
    store->gc.is_read = 0;
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    rc = rc < 0 ? rc : end;
    while (rc == BRC_OK && more)
        rc = drop_kept(store, &more, err);
    return rc;
}

int brc_gc_is_kept(brc_store *store, int64_t run, const brc_oid *id, int *kept, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM gc_kept WHERE run=?1 AND id=?2", &st, err));
    sqlite3_bind_int64(st, 1, run);
    brc_bind_id(store, st, 2, id);
    return brc_ask_any(store, st, kept, err);
}

/* ---- pins -------------------------------- */

/* Finds the next pin of a process that has ended; 0: there is none. */
static int dead_pin(brc_store *store, int64_t after, int64_t *id, brc_error *err)
{
    int rc = BRC_OK;
    sqlite3_stmt *st;
    *id = 0;
    BRC_TRY(brc_stmt(store, "SELECT id, owner FROM pin WHERE id>?1 ORDER BY id", &st, err));
    sqlite3_bind_int64(st, 1, after);
    while (*id == 0 && (rc = brc_step(store, st, err)) > 0) {
        const char *owner = (const char *)sqlite3_column_text(st, 1);
        if (owner != NULL && brc_process_state(owner) == BRC_PROCESS_DEAD)
            *id = sqlite3_column_int64(st, 0);
    }
    sqlite3_reset(st);
    return *id != 0 || rc >= 0 ? BRC_OK : rc;
}

int brc_pins_sweep(brc_store *store, brc_error *err)
{
    int there;
    int64_t id = 0;
    BRC_TRY(brc_schema_has(store, "pin", &there, err));
    if (!there)
        return BRC_OK;
    do {
        BRC_TRY(dead_pin(store, id, &id, err));
        if (id != 0)
            BRC_TRY(gc_change(store, "DELETE FROM pin WHERE id=?1", id, err));
    } while (id != 0);
    return BRC_OK;
}

/* ==== pins ================================ */

/*
 * Versions that readers have open: locks on bytes far behind the file's end, one for each commit,
 * at a place that is the beginning of the commit's id. A lock needs no write, can be taken by a
 * process that may only read, and ends with its process. A garbage collection lists these locks in
 * each transaction.
 *
 * The collection cannot miss a lock. Its row is in the file before it lists locks for the first
 * time. A reader takes the lock, and then reads: if there is no row, every list is made after the
 * lock was taken. If there is a row, the reader waits with a transaction of its own for the one
 * that may have listed locks before, and checks that the commit still exists.
 */

/* 2^62, followed by 56 bits of an id: no file is so long. */
#define PINS_AT (INT64_C(1) << 62)
#define PINS_LEN (INT64_C(1) << 56)
enum { ID_BYTES = 7 };

static int64_t pin_byte(const brc_oid *id)
{
    int64_t n = 0;
    for (int i = 0; i < ID_BYTES; i++)
        n = n << 8 | id->bytes[i];
    return PINS_AT + n;
}

/* ---- readers -------------------------------- */

static brc_pin *pin_find(brc_store *store, int64_t at)
{
    brc_pin *pins = store->pins.items;
    for (size_t i = 0; i < store->pins.n; i++)
        if (pins[i].at == at)
            return &pins[i];
    return NULL;
}

int brc_beside_lock(brc_store *store)
{
    if (!store->beside.is_open) {
        store->beside.is_open = 1;
        brc_vfs_second_lock(store->vfs, &store->beside.lock);
    }
    return store->beside.lock.fd;
}

/* Takes a commit's lock. Returns 1, or 0 if such locks do not work here: then a version lasts only
 * as long as something else keeps it. */
static int pin_lock(brc_store *store, const brc_oid *id, brc_error *err)
{
    const int64_t at = pin_byte(id);
    brc_pin *pin = pin_find(store, at);
    void *items = store->pins.items;
    if (pin != NULL) {
        pin->n++;
        return 1;
    }
    if (brc_beside_lock(store) < 0)
        return 0;
    int rc = brc_grow_array(&items, &store->pins.cap, store->pins.n + 1, sizeof(brc_pin), err);
    store->pins.items = items;
    BRC_TRY(rc);
    if (brc_bytes_lock(store->beside.lock.fd, F_RDLCK, (off_t)at, 1, SQLITE_IOERR_LOCK) !=
        SQLITE_OK)
        return 0;
    store->pins.items[store->pins.n++] = (brc_pin){at, 1};
    return 1;
}

static int look_with_lock(brc_store *store, const brc_oid *id, int *busy, brc_error *err)
{
    int rc = brc_store_begin(store, err);
    *busy = rc == BRC_EBUSY;
    BRC_TRY(rc);
    rc = brc_gc_commit_is_there(store, id, err);
    int end = brc_store_end(store, 0, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

static int look_to_read(brc_store *store, const brc_oid *id, int64_t *run, brc_error *err)
{
    BRC_TRY(brc_store_begin_read(store, err));
    int rc = brc_gc_commit_is_there(store, id, err);
    if (rc == BRC_OK)
        rc = brc_gc_running(store, run, err);
    brc_store_end_read(store);
    return rc;
}

/* Checks that the pinned commit exists; while a collection runs, with the lock. If the lock is not
 * free within the time to wait, checks without it: a collection's steps are short, so a process
 * that has held the lock all that time is not a collection. */
static int look_behind_lock(brc_store *store, const brc_oid *id, brc_error *err)
{
    int64_t run = 0;
    int busy = 0;
    BRC_TRY(look_to_read(store, id, &run, err));
    if (run == 0 || store->readonly)
        return BRC_OK;
    int rc = look_with_lock(store, id, &busy, err);
    return busy ? look_to_read(store, id, &run, err) : rc;
}

int brc_pin_take(brc_store *store, const brc_oid *id, brc_error *err)
{
    int rc = pin_lock(store, id, err);
    if (rc <= 0 || store->write_depth > 0 || store->bulk.on) /* within a write nobody collects */
        return rc < 0 ? rc : BRC_OK;
    rc = look_behind_lock(store, id, err);
    if (rc < 0)
        brc_pin_let_go(store, id);
    return rc;
}

void brc_pin_let_go(brc_store *store, const brc_oid *id)
{
    brc_pin *pin = pin_find(store, pin_byte(id));
    if (pin == NULL || --pin->n > 0 || brc_store_is_forked(store))
        return;
    (void)!brc_bytes_lock(store->beside.lock.fd, F_UNLCK, (off_t)pin->at, 1, SQLITE_IOERR_UNLOCK);
    *pin = store->pins.items[--store->pins.n];
}

void brc_pins_close(brc_store *store)
{
    if (store->beside.is_open && brc_store_is_forked(store))
        brc_file_lock_leave(&store->beside.lock);
    else if (store->beside.is_open)
        brc_file_lock_close(&store->beside.lock);
    free(store->pins.items);
}

/* ---- a collection -------------------------------- */

typedef struct pin_range {
    int64_t at, len;
} pin_range;

/* Calls each() with the locks of others, one by one: the system reports any one lock in a range. */
static int each_pin(brc_store *store, int (*each)(void *ctx, int64_t at, brc_error *err), void *ctx,
                    brc_error *err)
{
    void *todo = NULL;
    size_t cap = 0, n = 1;
    int rc = brc_grow_array(&todo, &cap, 1, sizeof(pin_range), err);
    if (rc == BRC_OK)
        ((pin_range *)todo)[0] = (pin_range){PINS_AT, PINS_LEN};
    while (rc == BRC_OK && n > 0) {
        const pin_range range = ((pin_range *)todo)[--n];
        pin_range got;
        if (range.len <= 0 ||
            !brc_vfs_find_lock(store->vfs, range.at, range.len, &got.at, &got.len))
            continue;
        if (got.len > 16) { /* not a reader's lock: ids are never so close */
            rc = brc_fail(err, BRC_EBUSY,
                          "%s: another process has locked all of its versions: end it first",
                          store->path);
            break;
        }
        for (int64_t i = 0; i < got.len && rc == BRC_OK; i++)
            rc = each(ctx, got.at + i, err);
        if (rc == BRC_OK)
            rc = brc_grow_array(&todo, &cap, n + 2, sizeof(pin_range), err);
        if (rc < 0)
            break;
        const int64_t behind = got.at + got.len;
        ((pin_range *)todo)[n++] = (pin_range){range.at, got.at - range.at};
        ((pin_range *)todo)[n++] = (pin_range){behind, range.at + range.len - behind};
    }
    free(todo);
    return rc;
}

static int add_to_digest(void *ctx, int64_t at, brc_error *err)
{
    (void)err;
    *(uint64_t *)ctx += brc_hash_bytes(&at, sizeof(at));
    return BRC_OK;
}

int brc_pins_digest(brc_store *store, uint64_t *out, brc_error *err)
{
    *out = 0;
    return each_pin(store, add_to_digest, out, err);
}

typedef struct pin_reader {
    brc_store *store;
    int (*each)(void *ctx, const brc_oid *commit, brc_error *err);
    void *ctx;
} pin_reader;

/* Calls each() with all commits whose ids begin with these bytes: one, except by chance. */
static int pinned_commits(void *ctx, int64_t at, brc_error *err)
{
    const pin_reader *r = ctx;
    brc_oid low, high, id;
    sqlite3_stmt *st;
    int rc;
    memset(&low, 0, sizeof(low));
    memset(&high, 0xff, sizeof(high));
    for (int i = ID_BYTES - 1; i >= 0; i--, at >>= 8)
        low.bytes[i] = high.bytes[i] = (uint8_t)at;
    BRC_TRY(brc_stmt(r->store, "SELECT id FROM object WHERE id>=?1 AND id<=?2 AND kind=4", &st,
                     err));
    brc_bind_id(r->store, st, 1, &low);
    brc_bind_id(r->store, st, 2, &high);
    while ((rc = brc_step(r->store, st, err)) > 0) {
        rc = brc_column_id(r->store, st, 0, &id, err);
        if (rc == BRC_OK)
            rc = r->each(r->ctx, &id, err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc;
}

/* Calls each() with the commits that readers have open. */
static int pins_each(brc_store *store,
                     int (*each)(void *ctx, const brc_oid *commit, brc_error *err), void *ctx,
                     brc_error *err)
{
    pin_reader r = {store, each, ctx};
    return each_pin(store, pinned_commits, &r, err);
}
