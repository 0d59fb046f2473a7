#include "gc_mark.h"

#include <stdlib.h>
#include <string.h>

int brc_gc_mark_new(brc_gc_mark *mark, brc_store *store, const brc_log_window *window,
                    size_t memory, brc_error *err)
{
    memset(mark, 0, sizeof(*mark));
    mark->store = store;
    mark->range = (brc_log_range){window->since_us, window->least, 0};
    mark->rows = (brc_id_table)BRC_ID_TABLE_INIT(0);
    brc_mark_set_init(&mark->set, brc_store_id_len(store), memory);
    return brc_closure_new(&mark->walk, store, 0, err);
}

void brc_gc_mark_dispose(brc_gc_mark *mark)
{
    brc_closure_free(mark->walk);
    brc_mark_set_dispose(&mark->set);
    brc_roots_dispose(&mark->roots);
    brc_id_table_dispose(&mark->rows);
    free(mark->drafts.items);
    memset(mark, 0, sizeof(*mark));
}

int brc_gc_mark_has_commit(const brc_gc_mark *mark, const brc_oid *id)
{
    return brc_closure_met(mark->walk, id);
}

/* ---- following -------------------------------- */

static int mark_id(brc_gc_mark *mark, const brc_oid *id, brc_error *err)
{
    return brc_oid_is_zero(id) ? BRC_OK : brc_mark_set_add(&mark->set, id, err);
}

static int mark_entry(brc_gc_mark *mark, const brc_entry *entry, brc_error *err)
{
    BRC_TRY(mark_id(mark, &entry->doc, err));
    return mark_id(mark, &entry->storage, err);
}

static int mark_step(brc_gc_mark *mark, const brc_closure_step *at, brc_error *err)
{
    switch (at->what) {
    case BRC_AT_COMMIT:
        return mark_id(mark, &at->id, err);
    case BRC_AT_NODE:
        return mark_id(mark, &at->node.id, err);
    case BRC_AT_ENTRY:
        return mark_entry(mark, &at->node.entry, err);
    case BRC_AT_CHUNK:
        return mark_id(mark, &at->node.chunk, err);
    default:
        return BRC_OK;
    }
}

/* Nobody waits for what the caller does meanwhile. */
static int mark_tell(const brc_gc_mark *mark, brc_error *err)
{
    if (mark->step == NULL || brc_store_in_write(mark->store))
        return BRC_OK;
    brc_store_pause_read(mark->store);
    return mark->step(mark->ctx, err);
}

static int mark_walk(brc_gc_mark *mark, brc_error *err)
{
    brc_closure_step at;
    int rc;
    for (unsigned n = 0; (rc = brc_closure_next(mark->walk, &at, err)) > 0; n++) {
        BRC_TRY(mark_step(mark, &at, err));
        if (n % 256 == 0)
            brc_store_breathe(mark->store);
        if (n % 4096 == 4095)
            BRC_TRY(mark_tell(mark, err));
    }
    if (rc == BRC_ECORRUPT)
        brc_context(err, "nothing was collected, because what is needed is not known");
    return rc;
}

/* A commit that only the log or a pin names may have been collected long ago. */
static int follow_commit(brc_gc_mark *mark, const brc_root *root, brc_error *err)
{
    brc_object o = {.id = root->id}, *one = &o;
    if (brc_oid_is_zero(&root->id) || brc_closure_met(mark->walk, &root->id))
        return BRC_OK;
    if (root->what == BRC_ROOT_PAST) {
        BRC_TRY(brc_objects_find(mark->store, &one, 1, err));
        if (!o.found || o.kind != BRC_KIND_COMMIT)
            return BRC_OK;
    }
    BRC_TRY(brc_closure_commit(mark->walk, &root->id, err));
    return mark_walk(mark, err);
}

static int mark_chunk(void *ctx, const brc_oid *chunk, brc_error *err)
{
    return mark_id(ctx, chunk, err);
}

/* The chunks of one row of a draft, once: what is put into it later is kept by whoever puts it. But
 * the row itself may go from one draft to another. */
static int follow_row(brc_gc_mark *mark, int64_t node, brc_error *err)
{
    brc_oid key;
    memset(&key, 0xff, sizeof(key));
    memcpy(key.bytes, &node, sizeof(node));
    if (brc_id_table_find(&mark->rows, &key) != NULL)
        return BRC_OK;
    BRC_TRY(brc_id_table_add(&mark->rows, &key, NULL, err));
    return brc_roots_of_row(mark->store, node, mark_chunk, mark, err);
}

static int follow_entry(brc_gc_mark *mark, const brc_root *root, brc_error *err)
{
    brc_entry entry;
    const brc_span bytes = {root->entry, root->entry_len};
    if (root->entry_len == 0) /* removed */
        return BRC_OK;
    BRC_TRY(brc_entry_decode(&entry, bytes, brc_store_id_len(mark->store), err));
    BRC_TRY(mark_entry(mark, &entry, err));
    if (entry.kind == 0 || brc_oid_is_zero(&entry.map))
        return BRC_OK;
    BRC_TRY(brc_closure_entry(mark->walk, "/", &entry, err));
    return mark_walk(mark, err);
}

int brc_gc_mark_follow(brc_gc_mark *mark, brc_error *err)
{
    for (size_t i = 0; i < mark->roots.n; i++) {
        const brc_root *root = &mark->roots.items[i];
        switch (root->what) {
        case BRC_ROOT_COMMIT:
        case BRC_ROOT_PAST:
            BRC_TRY(follow_commit(mark, root, err));
            break;
        case BRC_ROOT_OBJECT:
            BRC_TRY(mark_id(mark, &root->id, err));
            break;
        case BRC_ROOT_ROW:
            BRC_TRY(follow_row(mark, root->node, err));
            BRC_TRY(follow_entry(mark, root, err));
            break;
        case BRC_ROOT_ENTRY:
            BRC_TRY(follow_entry(mark, root, err));
            break;
        }
        brc_store_breathe(mark->store);
    }
    mark->roots.n = 0;
    return BRC_OK;
}

/* ---- the first time -------------------------------- */

static int mark_drafts(brc_gc_mark *mark, brc_error *err)
{
    BRC_TRY(brc_root_drafts_list(mark->store, mark->not_dead, &mark->drafts, err));
    for (size_t i = 0; i < mark->drafts.n; i++) {
        if (mark->drafts.items[i].is_dropped)
            continue;
        BRC_TRY(brc_roots_of_draft(mark->store, mark->drafts.items[i].id, &mark->roots, err));
        BRC_TRY(brc_gc_mark_follow(mark, err));
    }
    return BRC_OK;
}

static int mark_now(brc_gc_mark *mark, brc_error *err)
{
    mark->others = -1; /* roots may change from here on */
    mark->range.after = 0;
    BRC_TRY(brc_roots_named(mark->store, &mark->range, mark->not_dead, &mark->roots, err));
    BRC_TRY(brc_gc_mark_follow(mark, err));
    return mark_drafts(mark, err);
}

int brc_gc_mark_all(brc_gc_mark *mark, const brc_oid *above, brc_error *err)
{
    brc_closure_free(mark->walk);
    mark->walk = NULL;
    mark->roots.n = 0;
    brc_id_table_dispose(&mark->rows);
    brc_mark_set_begin(&mark->set, above);
    BRC_TRY(brc_closure_new(&mark->walk, mark->store, 0, err));
    BRC_TRY(brc_store_begin_read(mark->store, err));
    int rc = mark_now(mark, err);
    brc_store_end_read(mark->store);
    return rc;
}

/* ---- again -------------------------------- */

/* Whether nothing was changed in it since its rows were read. */
static int draft_is_known(const brc_root_drafts *before, const brc_root_draft *now)
{
    for (size_t i = 0; i < before->n; i++)
        if (before->items[i].id == now->id)
            return before->items[i].changes == now->changes;
    return 0;
}

static int look_at_drafts(brc_gc_mark *mark, brc_error *err)
{
    brc_root_drafts now = {0};
    int rc = brc_root_drafts_list(mark->store, mark->not_dead, &now, err);
    for (size_t i = 0; i < now.n && rc == BRC_OK; i++)
        if (!now.items[i].is_dropped && !draft_is_known(&mark->drafts, &now.items[i]))
            rc = brc_roots_of_draft(mark->store, now.items[i].id, &mark->roots, err);
    free(mark->drafts.items);
    mark->drafts = now;
    return rc;
}

/* Those that were followed leave the list. */
static void drop_known(brc_gc_mark *mark)
{
    size_t n = 0;
    for (size_t i = 0; i < mark->roots.n; i++) {
        const brc_root *root = &mark->roots.items[i];
        if ((root->what != BRC_ROOT_COMMIT && root->what != BRC_ROOT_PAST) ||
            !brc_closure_met(mark->walk, &root->id))
            mark->roots.items[n++] = *root;
    }
    mark->roots.n = n;
}

int brc_gc_mark_look(brc_gc_mark *mark, int *same, brc_error *err)
{
    int64_t others;
    uint64_t pins;
    BRC_TRY(brc_store_others(mark->store, &others, err));
    BRC_TRY(brc_pins_digest(mark->store, &pins, err));
    *same = others == mark->others && pins == mark->pins;
    if (*same)
        return BRC_OK;
    BRC_TRY(brc_roots_named(mark->store, &mark->range, mark->not_dead, &mark->roots, err));
    drop_known(mark);
    BRC_TRY(look_at_drafts(mark, err));
    mark->others = others;
    mark->pins = pins;
    *same = mark->roots.n == 0;
    return BRC_OK;
}
