#include "bulk_write.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/json.h"
#include "../base/sized.h"

/* The most bytes of notes about chunks that were changed in part. */
#define OLDS_MOST ((size_t)32 << 20)

static void bulk_free(struct brc_bulk_write *bulk)
{
    if (bulk == NULL)
        return;
    for (size_t i = 0; i < bulk->nknown; i++)
        free(((brc_known_node *)bulk->known)[i].path);
    free(bulk->known);
    free(bulk->made);
    free(bulk->replaced);
    brc_buf_dispose(&bulk->olds);
    free(bulk);
}

int brc_bulk_check_none(const brc_session *s, const char *what, brc_error *err)
{
    if (s->bulk == NULL)
        return BRC_OK;
    return brc_fail(err, BRC_EMISUSE, "%s while a bulk write of this session is in progress",
                    what);
}

/* ---- the draft and its nodes -------------------------------- */

static int start_bulk_draft(brc_session *s, brc_error *err)
{
    if (s->bulk->draft != 0)
        return BRC_OK;
    BRC_TRY(brc_session_begin_beside(s, &s->bulk->fork, &s->bulk->draft, err));
    brc_store_bulk_goes_into(s->repo->store, s->bulk->draft);
    return BRC_OK;
}

static int know(struct brc_bulk_write *bulk, const char *path, const brc_entry *entry,
                brc_error *err)
{
    BRC_TRY(brc_grow_array(&bulk->known, &bulk->cap, bulk->nknown + 1, sizeof(brc_known_node),
                           err));
    brc_known_node *node = &((brc_known_node *)bulk->known)[bulk->nknown];
    BRC_TRY(brc_dup(&node->path, path, err));
    node->entry = *entry;
    bulk->nknown++;
    return BRC_OK;
}

/* Gives a row also to a group that only the session's other changes have: the draft must be
 * readable without those changes. */
static int meet_group(brc_session *s, const char *path, brc_error *err)
{
    brc_store *store = s->repo->store;
    uint8_t bytes[BRC_ENTRY_MAX];
    brc_entry then, now;
    brc_draft_node own;
    int64_t row;
    int found;
    BRC_TRY(brc_snapshot_find(store, &s->bulk_base, path, &then, err));
    if (then.kind == BRC_GROUP)
        return BRC_OK;
    BRC_TRY(brc_draft_node_get(store, s->bulk->draft, path, &found, &own, err));
    free(own.entry);
    if (found)
        return BRC_OK;
    BRC_TRY(brc_session_find(s, path, &now, &row, err));
    if (now.kind != BRC_GROUP)
        return BRC_OK;
    BRC_TRY(know(s->bulk, path, &now, err));
    size_t len = brc_entry_encode(bytes, &now, brc_store_id_len(store));
    return brc_draft_node_put(store, s->bulk->draft, path, bytes, len, NULL, err);
}

static int meet_node(brc_session *s, const char *path, brc_error *err)
{
    brc_buf above = BRC_BUF_INIT;
    brc_draft_node own;
    brc_entry now;
    int64_t row;
    int found, rc;
    BRC_TRY(brc_draft_node_get(s->repo->store, s->bulk->draft, path, &found, &own, err));
    free(own.entry);
    if (found)
        return BRC_OK;
    for (const char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        above.len = 0;
        BRC_GO(brc_buf_append(&above, path, (size_t)(at - path), err));
        BRC_GO(brc_buf_terminate(&above, err));
        BRC_GO(meet_group(s, (const char *)above.data, err));
    }
    BRC_GO(brc_session_find(s, path, &now, &row, err));
    rc = now.kind != 0 ? know(s->bulk, path, &now, err) : BRC_OK;
done:
    brc_buf_dispose(&above);
    return rc;
}

/* ---- chunks that are changed in part -------------------------------- */

int brc_bulk_note_old(brc_session *s, const char *path, int64_t row, brc_span key,
                      const brc_oid *id, brc_error *err)
{
    struct brc_bulk_write *bulk = s->bulk;
    const brc_draft_stack own = {.n = 1, .node = {row}};
    int state;
    brc_oid written;
    if (bulk->too_many)
        return BRC_OK;
    if (bulk->made != NULL && strcmp(bulk->made, path) == 0) /* nobody else has the node */
        return BRC_OK;
    BRC_TRY(brc_draft_chunk_get(s->repo->store, &own, key.data, key.len, &state, &written, err));
    if (state != 0) /* a chunk of this bulk write */
        return BRC_OK;
    bulk->too_many = bulk->olds.len > OLDS_MOST;
    BRC_TRY(brc_buf_varint(&bulk->olds, strlen(path), err));
    BRC_TRY(brc_buf_text(&bulk->olds, path, err));
    BRC_TRY(brc_buf_varint(&bulk->olds, key.len, err));
    BRC_TRY(brc_buf_append(&bulk->olds, key.data, key.len, err));
    return brc_buf_append(&bulk->olds, id->bytes, sizeof(id->bytes), err);
}

static int old_conflict(const struct brc_bulk_write *bulk, const char *path, brc_error *err)
{
    return brc_fail(err, BRC_ECONFLICT,
                    "%.300s: others have written chunks meanwhile that were changed in part here; "
                    "draft %lld is kept: drop it, and write again",
                    path, (long long)bulk->draft);
}

/* Fails if the session no longer has the chunk that the note names. */
static int check_old(brc_session *s, const char *path, brc_span key, const brc_oid *was,
                     brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_draft_stack stack;
    brc_entry entry;
    brc_oid id = {{0}};
    brc_span value;
    int64_t row;
    int state, found;
    BRC_TRY(brc_session_find(s, path, &entry, &row, err));
    BRC_TRY(brc_draft_stack_get(store, row, &stack, err));
    BRC_TRY(brc_draft_chunk_get(store, &stack, key.data, key.len, &state, &id, err));
    if (state == 0 && entry.kind == BRC_ARRAY) {
        BRC_TRY(brc_map_get(store, &entry.map, key.data, key.len, &found, &value, err));
        if (found)
            BRC_TRY(brc_chunk_id_of(value, brc_store_id_len(store), &id, err));
    }
    return brc_oid_cmp(&id, was) == 0 ? BRC_OK : BRC_ECONFLICT;
}

static int check_olds(brc_session *s, const struct brc_bulk_write *bulk, brc_error *err)
{
    brc_reader r = brc_reader_of(bulk->olds.data, bulk->olds.len);
    if (bulk->too_many)
        return old_conflict(bulk, s->branch, err);
    while (brc_reader_left(&r) > 0) { /* written by this file, so complete */
        char path[BRC_PATH_MAX + 1];
        brc_oid was;
        brc_span key;
        const size_t len = (size_t)brc_read_varint(&r);
        memcpy(path, brc_read_bytes(&r, len), len);
        path[len] = '\0';
        key.len = (size_t)brc_read_varint(&r);
        key.data = brc_read_bytes(&r, key.len);
        memcpy(was.bytes, brc_read_bytes(&r, sizeof(was.bytes)), sizeof(was.bytes));
        int rc = check_old(s, path, key, &was, err);
        if (rc < 0)
            return rc == BRC_ECONFLICT ? old_conflict(bulk, path, err) : rc;
    }
    return BRC_OK;
}

/* Prepares for returning to the program, which may do something else for a long time. */
static int bulk_returns(brc_session *s, brc_error *err)
{
    return s->bulk->returns && s->bulk->depth == 1 ? brc_store_rest(s->repo->store, 1, err)
                                                   : BRC_OK;
}

static void drop_bulk(brc_session *s)
{
    s->bulk->depth = 1;
    (void)!brc_bulk_end_with(s, BRC_EMISUSE, NULL);
}

/* ---- begin and end -------------------------------- */

int brc_bulk_start(brc_session *s, brc_error *err)
{
    void *p;
    brc_store *store = s->repo->store;
    if (s->bulk != NULL) {
        s->bulk->depth++;
        return BRC_OK;
    }
    BRC_TRY(brc_session_can_change(s, err));
    if (s->bulk_plain > 0 || brc_store_in_write(store)) {
        BRC_TRY(brc_store_begin(store, err));
        s->bulk_plain++;
        return BRC_OK;
    }
    BRC_TRY(brc_session_begin_read(s, err));
    brc_session_end_read(s);
    BRC_TRY(brc_new(&p, sizeof(struct brc_bulk_write), err));
    int rc = brc_store_bulk_begin(store, err);
    if (rc < 0) {
        free(p);
        return rc;
    }
    s->bulk = p;
    s->bulk->start = start_bulk_draft;
    s->bulk->meet = meet_node;
    s->bulk->drop = drop_bulk;
    s->bulk->rest = bulk_returns;
    s->bulk->depth = 1;
    s->bulk->fork = s->draft;
    s->bulk_base = s->base;
    s->repo->changes++; /* makes arrays look up their rows again */
    return BRC_OK;
}

void brc_bulk_drops(brc_session *s)
{
    if (s->bulk != NULL && s->bulk->depth == 1)
        s->bulk->drops = 1;
}

/* ---- a node that replaces another -------------------------------- */

static int plan_of_rewrite(const char *path, brc_buf *out, brc_error *err)
{
    BRC_TRY(brc_buf_text(out, BRC_REWRITE_PLAN, err));
    BRC_TRY(brc_json_quote(out, path, strlen(path), err));
    BRC_TRY(brc_buf_text(out, "}", err));
    return brc_buf_terminate(out, err);
}

/* Marks the draft, so that a process that finds the draft after its owner has ended sees that it is
 * useless. */
static int mark_rewrite(brc_session *s, const char *path, brc_error *err)
{
    brc_buf plan = BRC_BUF_INIT;
    int rc = plan_of_rewrite(path, &plan, err);
    if (rc == BRC_OK)
        rc = brc_draft_set_plan(s->repo->store, s->bulk->draft, (const char *)plan.data, err);
    brc_buf_dispose(&plan);
    return rc;
}

int brc_bulk_rewrites(const brc_draft_row *row, char **path, brc_error *err)
{
    brc_json *plan = NULL;
    const char *text;
    *path = NULL;
    if (row->draft.kind != BRC_DRAFT_PRIVATE || *row->plan == '\0')
        return BRC_OK;
    int rc = brc_json_parse(&plan, row->plan, strlen(row->plan), 0, err);
    if (rc == BRC_OK && brc_json_text(brc_json_member(plan, "rewrite"), &text))
        rc = brc_dup(path, text, err);
    brc_json_free(plan);
    return rc;
}

int brc_bulk_replaces(brc_session *s, const char *made, const char *path, const brc_entry *entry,
                      int64_t still, brc_error *err)
{
    struct brc_bulk_write *bulk = s->bulk;
    BRC_TRY(mark_rewrite(s, path, err));
    BRC_TRY(brc_dup(&bulk->made, made, err));
    BRC_TRY(brc_dup(&bulk->replaced, path, err));
    bulk->still = still;
    for (size_t i = 0; i < bulk->nknown; i++) {
        brc_known_node *known = (brc_known_node *)bulk->known + i;
        if (strcmp(known->path, path) == 0) {
            known->entry = *entry;
            return BRC_OK;
        }
    }
    return know(bulk, path, entry, err);
}

static int known_order(const void *a, const void *b)
{
    return strcmp(((const brc_known_node *)a)->path, ((const brc_known_node *)b)->path);
}

/* Lays the written rows over the session's. */
static int lay_written(brc_session *s, const struct brc_bulk_write *bulk, brc_error *err)
{
    brc_adoption ad = {.draft = bulk->draft, .is_bulk = 1, .known = bulk->known,
                       .nknown = bulk->nknown, .replaced = bulk->replaced,
                       .still = bulk->still};
    if (bulk->nknown > 0)
        qsort(bulk->known, bulk->nknown, sizeof(brc_known_node), known_order);
    ad.is_quiet = brc_draft_unchanged(&s->draft, &bulk->fork);
    BRC_TRY(brc_session_begin(s, err));
    int rc = ad.is_quiet ? BRC_OK : check_olds(s, bulk, err);
    if (rc == BRC_OK && bulk->made != NULL)
        rc = brc_draft_node_move(s->repo->store, bulk->draft, bulk->made, bulk->replaced, NULL,
                                 err);
    if (rc == BRC_OK)
        rc = brc_session_adopt_rows(s, &ad, err);
    if (rc == BRC_OK)
        rc = brc_draft_delete(s->repo->store, bulk->draft, err);
    return brc_session_end(s, rc, err);
}

static int adopt_written(brc_session *s, const struct brc_bulk_write *bulk, brc_error *err)
{
    brc_store *store = s->repo->store;
    int taken = 0;
    BRC_TRY(brc_store_begin(store, err));
    int rc = brc_session_begin_read(s, err);
    if (rc == BRC_OK)
        brc_session_end_read(s);
    if (rc == BRC_OK)
        rc = brc_draft_check_there(store, bulk->draft, err);
    if (rc == BRC_OK && bulk->made == NULL && brc_draft_unchanged(&s->draft, &bulk->fork))
        rc = brc_session_take_written(s, bulk->draft, &taken, err);
    if (rc == BRC_OK && !taken)
        rc = lay_written(s, bulk, err);
    const int ended = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : ended;
}

/* Drops what was written, which is useless now; also after an interruption of the handle. If the
 * draft cannot be dropped now, because the disk is full or another process holds the lock, the
 * handle drops it with its next change. */
static void drop_written(brc_session *s, int64_t draft)
{
    brc_store *store = s->repo->store;
    const int stops = brc_store_check_interrupt(store, NULL) < 0;
    brc_store_interrupt_clear(store);
    int rc = brc_store_begin(store, NULL);
    if (rc == BRC_OK) {
        rc = brc_draft_delete(store, draft, NULL);
        const int ended = brc_store_end(store, rc == BRC_OK, NULL);
        rc = rc < 0 ? rc : ended;
    }
    if (rc < 0)
        brc_draft_drop_late(store, draft, BRC_DROP_ANY);
    if (stops)
        brc_store_interrupt(store);
}

static int end_plain(brc_session *s, int rc, brc_error *err)
{
    s->bulk_plain--;
    if (rc < 0)
        s->repo->changes++;
    int ended = brc_store_end(s->repo->store, rc >= 0, rc >= 0 ? err : NULL);
    return rc < 0 ? rc : ended;
}

/* Runs the last transaction; *whole: everything before it is in the file. */
static int make_visible(brc_session *s, struct brc_bulk_write *bulk, int *whole, brc_error *err)
{
    brc_store *store = s->repo->store;
    const int before = brc_store_bulk_admit(store, 1);
    int rc = brc_adopt_make_room(s, bulk->draft, err);
    (void)brc_store_bulk_admit(store, before);
    if (rc == BRC_OK)
        rc = brc_store_bulk_finish(store, err);
    s->bulk = NULL;
    if (rc < 0)
        return rc;
    *whole = brc_store_bulk_batches(store) > 0;
    rc = adopt_written(s, bulk, err);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

/* Tells whether to keep the complete draft after a conflict or a busy lock: it can be adopted
 * later. */
static int is_worth_keeping(const struct brc_bulk_write *bulk, int rc)
{
    if (rc == BRC_EBUSY)
        return bulk->made == NULL;
    return !bulk->drops && (rc == BRC_ECONFLICT || rc == BRC_ESTALE);
}

static int end_written(brc_session *s, struct brc_bulk_write *bulk, int rc, brc_error *err)
{
    brc_store *store = s->repo->store;
    int whole = 0;
    if (rc == BRC_OK && bulk->draft != 0)
        rc = make_visible(s, bulk, &whole, err);
    s->bulk = NULL;
    brc_store_bulk_cancel(store);
    if (rc == BRC_OK || bulk->draft == 0 || brc_store_bulk_batches(store) == 0)
        return rc;
    if (!whole || !is_worth_keeping(bulk, rc))
        drop_written(s, bulk->draft);
    else if (rc == BRC_EBUSY)
        rc = brc_fail(err, BRC_EBUSY,
                      "%s is in use by another process: all was written, and draft %lld has it; "
                      "adopt it with 'breccia drafts' when this process has ended, or drop it and "
                      "write again",
                      brc_store_path(store), (long long)bulk->draft);
    return rc;
}

int brc_bulk_end_with(brc_session *s, int rc, brc_error *err)
{
    struct brc_bulk_write *bulk = s->bulk;
    if (s->bulk_plain > 0)
        return end_plain(s, rc, err);
    if (bulk == NULL)
        return rc < 0 ? rc : brc_fail(err, BRC_EMISUSE, "there is no bulk write to end");
    bulk->failed |= rc < 0;
    if (--bulk->depth > 0)
        return rc == BRC_OK ? bulk_returns(s, err) : rc;
    if (rc == BRC_OK && bulk->failed)
        rc = brc_fail(err, BRC_EMISUSE, "an earlier step of this change failed, so everything was "
                                        "undone");
    rc = end_written(s, bulk, rc, err);
    s->repo->changes++;
    s->is_read = 0;
    bulk_free(bulk);
    return rc;
}

int brc_bulk_begin(brc_session *s, brc_error *err)
{
    BRC_TRY(brc_bulk_start(s, err));
    if (s->bulk != NULL && s->bulk->depth == 1)
        s->bulk->returns = 1;
    return BRC_OK;
}

int brc_bulk_end(brc_session *s, uint32_t flags, brc_error *err)
{
    BRC_TRY(brc_flags_check(flags, BRC_END_KEEP, "brc_bulk_end()", err));
    const int keep = (flags & BRC_END_KEEP) != 0;
    int rc = brc_bulk_end_with(s, keep ? BRC_OK : BRC_EINTERRUPT, err);
    return keep || rc != BRC_EINTERRUPT ? rc : BRC_OK;
}
