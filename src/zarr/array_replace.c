#include "array_replace.h"

#include <stdlib.h>

#include "bulk_write.h"

#include "../store/collect.h"

/* Times that it is made anew where others are in its way. */
enum { REPLACE_TRIES = 3 };

/* ---- the array as it was -------------------------------- */

/* Within a change of the array: from now on nobody writes into rows that have chunks. */
static int hold_own_rows(brc_array *a, brc_draft_stack *rows, brc_error *err)
{
    brc_store *store = brc_array_store(a);
    const brc_draft_stack top = {.n = 1, .node = {a->row}};
    int64_t pushed;
    int any;
    *rows = a->stack;
    BRC_TRY(brc_draft_chunk_any(store, &top, &any, err));
    if (any)
        BRC_TRY(brc_draft_stack_push(store, a->row, a->path, &pushed, err));
    return brc_stack_used(store, rows, err);
}

/* BRC_WRITE_ANEW: there is no room for another row, because of what savepoints know. */
static int hold_in_write(brc_replacing *r, brc_error *err)
{
    brc_draft_stack rows = {.n = 0};
    BRC_TRY(brc_array_begin(r->a, err));
    const int is_full = r->a->stack.n == BRC_DRAFT_STACK_MOST;
    int rc = is_full ? BRC_OK : hold_own_rows(r->a, &rows, err);
    if (rc == BRC_OK && !is_full) {
        r->still = rows.n > 0 ? rows.node[0] : 0;
        rc = brc_array_freeze_held(&r->from, r->a, &rows, err);
    }
    rc = brc_array_end(r->a, rc, err);
    return rc == BRC_OK && is_full ? BRC_WRITE_ANEW : rc;
}

/* In a transaction of its own, where it has uncommitted chunks. */
static int hold_still(brc_replacing *r, brc_error *err)
{
    const brc_draft_stack none = {.n = 0};
    brc_array *a = r->a;
    r->still = 0;
    r->from = NULL;
    BRC_TRY(brc_gc_last(brc_array_store(a), &r->collected, err));
    BRC_TRY(brc_array_begin_read(a, err));
    const int has_chunks = a->row_has_chunks;
    int rc = has_chunks ? BRC_OK : brc_array_freeze_held(&r->from, a, &none, err);
    brc_array_end_read(a);
    if (rc < 0 || !has_chunks)
        return rc;
    if (a->stack.n == BRC_DRAFT_STACK_MOST)
        BRC_TRY(brc_stack_make_shorter(brc_array_store(a), a->row, err));
    return hold_in_write(r, err);
}

/* Within the caller's transaction its rows stay as they are. */
static int hold_within(brc_replacing *r, brc_error *err)
{
    BRC_TRY(brc_array_begin_read(r->a, err));
    int rc = brc_array_freeze_held(&r->from, r->a, &r->a->stack, err);
    brc_array_end_read(r->a);
    return rc;
}

/* ---- the new node -------------------------------- */

static int find_free_name(brc_session *s, brc_buf *name, brc_error *err)
{
    brc_entry there = {.kind = BRC_ARRAY};
    int64_t ignored;
    for (int i = 1; there.kind != 0; i++) {
        name->len = 0;
        BRC_TRY(brc_buf_printf(name, err, "/rewritten %d", i));
        BRC_TRY(brc_session_find(s, (const char *)name->data, &there, &ignored, err));
    }
    return BRC_OK;
}

/* A map that was made ahead is named from here on; a collection between may have taken it. */
static int check_map(const brc_replacing *r, brc_error *err)
{
    int64_t last;
    brc_store *store = brc_array_store(r->a);
    BRC_TRY(brc_gc_last(store, &last, err));
    return last == r->collected ? BRC_OK
                                : brc_fail(err, BRC_ECONFLICT,
                                           "%s: garbage was collected meanwhile: try again",
                                           r->a->path);
}

static int fill_new(brc_replacing *r, const char *name, const brc_json *doc, const brc_oid *map,
                    brc_error *err)
{
    brc_array *to;
    brc_entry entry = r->from->entry;
    entry.map = *map;
    BRC_TRY(brc_session_put_doc(r->a->session, name, &entry, doc, NULL, err));
    BRC_TRY(brc_array_open(&to, r->a->session, name, err));
    int rc = brc_array_begin(to, err);
    if (rc == BRC_OK) {
        rc = brc_store_rest(brc_array_store(to), 1, err);
        if (rc == BRC_OK)
            rc = r->fill(r->ctx, to, r->from, err);
        rc = brc_array_end(to, rc, err);
    }
    brc_array_free(to);
    return rc;
}

static int make_new(brc_replacing *r, const brc_json *doc, const brc_oid *map, brc_buf *name,
                    brc_error *err)
{
    brc_session *s = r->a->session;
    BRC_TRY(brc_session_begin(s, err));
    int rc = check_map(r, err);
    if (rc == BRC_OK)
        rc = find_free_name(s, name, err);
    if (rc == BRC_OK && s->bulk != NULL)
        rc = brc_bulk_replaces(s, (const char *)name->data, r->a->path, &r->from->entry, r->still,
                               err);
    if (rc == BRC_OK)
        rc = fill_new(r, (const char *)name->data, doc, map, err);
    return brc_session_end(s, rc, err);
}

/* ---- in many transactions -------------------------------- */

/* Whether the array is no longer what the new node was made from. */
static int has_changed(const brc_replacing *r)
{
    int64_t still;
    brc_array *a = r->a;
    if (brc_array_begin_read(a, NULL) < 0)
        return 0;
    brc_draft_stack rows = a->stack;
    const int rc = brc_stack_used(brc_array_store(a), &rows, NULL);
    still = rows.n > 0 ? rows.node[0] : 0;
    brc_array_end_read(a);
    return rc == BRC_OK && (still != r->still || !brc_entry_equal(&a->entry, &r->from->entry));
}

static int replace_in_bulk(brc_replacing *r, const brc_json *doc, const brc_oid *map,
                           brc_error *err)
{
    brc_buf name = BRC_BUF_INIT;
    brc_session *s = r->a->session;
    BRC_TRY(brc_bulk_start(s, err));
    brc_bulk_drops(s);
    int rc = brc_array_bulk_end(r->a, make_new(r, doc, map, &name, err), err);
    brc_buf_dispose(&name);
    const int met = rc == BRC_ECONFLICT || rc == BRC_ESTALE ||
                    ((rc == BRC_ECORRUPT || rc == BRC_ENOTFOUND) && has_changed(r));
    return met ? BRC_WRITE_ANEW : rc;
}

static int replace_once(brc_replacing *r, brc_error *err)
{
    brc_json *doc = NULL;
    brc_oid map = {{0}};
    int rc = hold_still(r, err);
    if (rc != BRC_OK) {
        brc_array_free(r->from);
        return rc;
    }
    rc = r->begin(r->ctx, r->from, &doc, &map, err);
    if (rc > 0)
        rc = replace_in_bulk(r, doc, &map, err);
    else if (rc < 0 && has_changed(r))
        rc = BRC_WRITE_ANEW;
    brc_json_free(doc);
    brc_array_free(r->from);
    return rc;
}

/* ---- in one -------------------------------- */

/* The array's row goes, and the new node gets its path. */
static int take_place(brc_array *a, const char *name, brc_error *err)
{
    brc_store *store = brc_array_store(a);
    brc_session *s = a->session;
    BRC_TRY(brc_draft_row_drop(store, a->row, err));
    BRC_TRY(brc_draft_node_move(store, s->draft.id, name, a->path, NULL, err));
    s->repo->changes++;
    s->changes = s->repo->changes; /* base and draft are still right */
    return brc_array_sync(a, err);
}

static int replace_now(brc_replacing *r, brc_error *err)
{
    brc_json *doc = NULL;
    brc_oid map = {{0}};
    brc_buf name = BRC_BUF_INIT;
    BRC_TRY(hold_within(r, err));
    int rc = r->begin(r->ctx, r->from, &doc, &map, err);
    if (rc > 0) {
        rc = make_new(r, doc, &map, &name, err);
        if (rc == BRC_OK)
            rc = brc_array_sync(r->a, err);
        if (rc == BRC_OK)
            rc = take_place(r->a, (const char *)name.data, err);
    }
    brc_buf_dispose(&name);
    brc_json_free(doc);
    brc_array_free(r->from);
    return rc;
}

static int replace_within(brc_replacing *r, brc_error *err)
{
    BRC_TRY(brc_bulk_check_none(r->a->session, "no array can be rewritten", err));
    BRC_TRY(brc_gc_last(brc_array_store(r->a), &r->collected, err));
    BRC_TRY(brc_array_begin(r->a, err));
    return brc_array_end(r->a, replace_now(r, err), err);
}

int brc_array_replace(brc_replacing *r, brc_error *err)
{
    brc_store *store = brc_array_store(r->a);
    BRC_TRY(brc_session_can_change(r->a->session, err));
    if (brc_store_in_write(store) || brc_store_in_bulk(store))
        return replace_within(r, err);
    BRC_TRY(brc_store_writable(store, err));
    for (int tries = 1; tries <= REPLACE_TRIES; tries++) {
        int rc = replace_once(r, err);
        if (rc != BRC_WRITE_ANEW)
            return rc;
    }
    return replace_within(r, err);
}
