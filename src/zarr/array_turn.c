#include "array_turn.h"

#include <string.h>

#include "bulk_write.h"

/* Times that a change which is in others' way is made anew. */
#define TURN_TRIES 3

static int is_as_planned(const brc_array_turn *t)
{
    const brc_array *a = t->a;
    return brc_oid_cmp(&a->meta_doc, &t->doc) == 0 && brc_oid_cmp(&a->storage, &t->storage) == 0 &&
           (!a->has_keys || a->version == t->version);
}

static void stop_reading(brc_array_turn *t)
{
    if (t->reading)
        brc_array_end_read(t->a);
    t->reading = 0;
}

static int turn_begin(void *ctx, brc_error *err)
{
    brc_array_turn *t = ctx;
    brc_store *store = brc_array_store(t->a);
    stop_reading(t);
    BRC_TRY(brc_store_begin(store, err));
    int rc = brc_array_follow(t->a, err);
    if (rc == BRC_OK && !is_as_planned(t))
        rc = BRC_WRITE_ANEW;
    if (rc != BRC_OK)
        (void)!brc_store_end(store, 0, NULL);
    return rc;
}

static void turn_undo(void *ctx)
{
    const brc_array_turn *t = ctx;
    (void)!brc_store_end(brc_array_store(t->a), 0, NULL);
}

/* The array's change is in the turn's transaction, which ends with it. */
static int turn_enter(void *ctx, brc_error *err)
{
    brc_array_turn *t = ctx;
    int rc = brc_array_begin(t->a, err);
    if (rc < 0) {
        turn_undo(t);
        return rc;
    }
    t->begun = 1;
    BRC_TRY(brc_store_end(brc_array_store(t->a), 1, err));
    return t->before != NULL ? t->before(t->ctx, err) : BRC_OK;
}

/* A backend that has no number yet is given one within a transaction. */
static int is_prepared(brc_array *a, brc_error *err)
{
    int64_t backend;
    BRC_TRY(brc_array_find_backend(a, &backend, err));
    return backend >= 0;
}

static int plan_and_write(brc_array_turn *t, brc_task *task, brc_error *err)
{
    const brc_write_turn turn = {t, turn_begin, turn_undo, turn_enter};
    brc_array *a = t->a;
    BRC_TRY(brc_array_begin_read(a, err));
    t->reading = 1;
    int rc = t->plan(t->ctx, err);
    if (rc != 1)
        return rc;
    rc = is_prepared(a, err);
    if (rc <= 0)
        return rc < 0 ? rc : BRC_WRITE_MUCH;
    t->doc = a->meta_doc;
    t->storage = a->storage;
    t->version = a->version;
    if (t->task != NULL)
        *task = brc_task_begin(a->session->repo, t->task, t->bytes);
    t->is_task = t->task != NULL;
    rc = t->write(t->ctx, &turn, err);
    if (rc != BRC_OK || t->begun)
        return rc;
    rc = turn_begin(t, err); /* there was no chunk to write */
    return rc == BRC_OK ? turn_enter(t, err) : rc;
}

/* Whoever listens to progress may take long: not with the lock in hand. */
static int turn_small(brc_array_turn *t, brc_error *err)
{
    brc_task task = {0};
    t->reading = t->begun = t->is_task = 0;
    int rc = plan_and_write(t, &task, err);
    stop_reading(t);
    if (t->begun) {
        if (rc == BRC_OK)
            rc = t->behind(t->ctx, err);
        rc = brc_array_end(t->a, rc, err);
    }
    if (t->is_task)
        brc_task_end(t->a->session->repo, &task, rc > 0 ? BRC_ESTALE : rc);
    return rc;
}

static int turn_within(brc_array_turn *t, brc_error *err)
{
    BRC_TRY(brc_array_begin(t->a, err));
    return brc_array_end(t->a, t->within(t->ctx, err), err);
}

/* is_last: where it meets others' changes, that is an error, and its draft stays. */
static int turn_bulk(brc_array_turn *t, int is_last, brc_error *err)
{
    BRC_TRY(brc_bulk_start(t->a->session, err));
    if (!is_last)
        brc_bulk_drops(t->a->session);
    int rc = turn_within(t, err), ended = brc_array_bulk_end(t->a, rc, err);
    return rc == BRC_OK && !is_last && (ended == BRC_ECONFLICT || ended == BRC_ESTALE)
               ? BRC_WRITE_ANEW
               : ended;
}

int brc_array_take_turn(brc_array_turn *t, brc_error *err)
{
    brc_store *store = brc_array_store(t->a);
    BRC_TRY(brc_session_can_change(t->a->session, err));
    if (brc_store_in_write(store) || brc_store_in_bulk(store))
        return turn_within(t, err);
    BRC_TRY(brc_store_writable(store, err));
    for (int tries = 1;; tries++) {
        int rc = turn_small(t, err);
        if (rc == BRC_WRITE_MUCH)
            rc = turn_bulk(t, tries == TURN_TRIES && t->bytes > BRC_TURN_BYTES, err);
        if (rc != BRC_WRITE_ANEW)
            return rc;
        if (tries == TURN_TRIES)
            return turn_within(t, err);
    }
}
