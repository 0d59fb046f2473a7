/*
 * What writers put into other backends that were killed, or whose transaction was undone, before a
 * row named it. Nothing in the file says that it is there: the backend lists what it has, and what
 * neither an object nor a row of table place names is dropped.
 *
 * Two rules make that safe. Only what the backend says to be of this file alone is looked at
 * (BRC_KEPT_OWN). And who puts ahead of his transaction puts again within it, if a collection ran
 * meanwhile (brc_gc_puts_stand()): so nothing is anybody's that has no name in the transaction in
 * which it is dropped.
 */
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "collect.h"

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

/* ---- whether it has a name -------------------------------- */

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

/* Rows of table place are packs', or of what was left and is dropped as such. */
static int stray_is_named(brc_store *store, int64_t backend, const char *name, int is_place,
                          int *named, brc_error *err)
{
    brc_stored at = {.size = sizeof(at)};
    *named = 0;
    if (!is_place && brc_stored_parse_name(&at, name))
        BRC_TRY(brc_object_has_stored(store, backend, &at, named, err));
    return *named ? BRC_OK : stray_has_row(store, backend, name, named, err);
}

/* ---- looking -------------------------------- */

typedef struct stray_search {
    brc_store *store;
    int64_t backend, before_us;
    brc_strays *out;
    brc_error *err; /* of the file's: the list ends */
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

/* What was put since the collection began most likely is somebody's who is about to name it. */
static int may_be_stray(const stray_search *s, const brc_kept *kept)
{
    brc_stored at;
    if (!(kept->flags & BRC_KEPT_OWN) || kept->time_us > s->before_us)
        return 0;
    return kept->flags & BRC_KEPT_PLACE ? brc_is_place_name(kept->name)
                                        : brc_stored_parse_name(&at, kept->name);
}

/* Nobody waits for the backend: the file is let go of before it goes on. */
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
