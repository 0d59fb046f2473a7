/*
 * Savepoints of a session. Their whole state is in the file (store/draft_save.c), so a transaction
 * that is undone also undoes them; the session keeps only the name under which it owns some.
 * Savepoints hold no lock: each call here is one short transaction.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/json.h"
#include "../base/process.h"
#include "../base/buf.h"
#include "bulk_write.h"

/* The most savepoints that a session may have open: each may add a row to the stack of a node's
 * rows, which must stay lower than BRC_DRAFT_STACK_MOST. */
enum { SAVEPOINTS_MOST = 16, NAME_MOST = 255 };

typedef struct save_list {
    brc_draft_row *items;
    size_t n;
} save_list;

static void save_list_dispose(save_list *list)
{
    brc_draft_rows_free(list->items, list->n);
}

static int list_saves(const brc_session *s, save_list *list, brc_error *err)
{
    return brc_draft_list(s->repo->store, BRC_DRAFTS_SAVES, s->draft.id, &list->items, &list->n,
                          err);
}

/* Writes the plan of a savepoint, which holds its name and identifies it. */
static int plan_of_name(const char *name, brc_buf *out, brc_error *err)
{
    const size_t len = name != NULL ? strlen(name) : 0;
    if (len == 0 || len > NAME_MOST || !brc_utf8_valid(name, len))
        return brc_fail(err, BRC_EINVAL, "a savepoint's name has 1 to %d bytes of UTF-8",
                        NAME_MOST);
    BRC_TRY(brc_buf_text(out, BRC_SAVE_PLAN, err));
    BRC_TRY(brc_json_quote(out, name, len, err));
    BRC_TRY(brc_buf_text(out, "}", err));
    return brc_buf_terminate(out, err);
}

/* ---- owners of savepoints -------------------------------- */

static void drop_own(brc_session *s)
{
    save_list list;
    if (list_saves(s, &list, NULL) < 0)
        return;
    for (size_t i = list.n; i-- > 0;)
        if (strcmp(list.items[i].owner, s->saver) == 0)
            brc_draft_drop_soon(s->repo->store, list.items[i].draft.id, BRC_DROP_SAVE);
    save_list_dispose(&list);
}

/* Drops the savepoints of a session that is freed; also after an interruption of the handle. */
static void end_own(brc_session *s)
{
    brc_store *store = s->repo->store;
    const int stops = brc_store_check_interrupt(store, NULL) < 0;
    brc_store_interrupt_clear(store);
    drop_own(s);
    if (stops)
        brc_store_interrupt(store);
}

static int take_owner(brc_session *s, brc_error *err)
{
    brc_buf owner = BRC_BUF_INIT;
    if (s->saver != NULL)
        return BRC_OK;
    int rc = brc_process_describe(&owner, err);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&owner, &s->saver, err);
    s->saves_end = end_own;
    brc_buf_dispose(&owner);
    return rc;
}

/* Drops the savepoints of processes that have ended. */
static int end_left(brc_session *s, const save_list *list, brc_error *err)
{
    for (size_t i = list->n; i-- > 0;)
        if (!brc_draft_row_is_point(&list->items[i]) &&
            brc_process_state(list->items[i].owner) == BRC_PROCESS_DEAD)
            BRC_TRY(brc_draft_delete(s->repo->store, list->items[i].draft.id, err));
    return BRC_OK;
}

static int check_open(const brc_session *s, const save_list *list, brc_error *err)
{
    size_t own = 0;
    for (size_t i = 0; i < list->n; i++) {
        const char *owner = list->items[i].owner;
        if (!brc_draft_row_is_point(&list->items[i]) && strcmp(owner, s->saver) != 0 &&
            brc_process_state(owner) != BRC_PROCESS_DEAD)
            return brc_fail(err, BRC_EBUSY,
                            "another session (process %lld) has a savepoint open in the "
                            "uncommitted changes of branch '%s': wait until it is released, or "
                            "work in a private session",
                            (long long)brc_process_id(owner), s->branch);
    }
    for (size_t i = 0; i < list->n; i++)
        own += brc_draft_row_is_point(&list->items[i]) == 0;
    if (own < SAVEPOINTS_MOST)
        return list->n < SAVEPOINTS_MOST
                   ? BRC_OK
                   : brc_draft_log_change(s->repo->store, &s->draft, s->saver, NULL, err);
    return brc_fail(err, BRC_ELIMIT, "%d savepoints are open in this session: release some",
                    SAVEPOINTS_MOST);
}

/* ---- making savepoints -------------------------------- */

/* Makes a savepoint, with the lock, in the draft that the session has now. */
static int make_savepoint(brc_session *s, const char *plan, brc_error *err)
{
    brc_draft_row row = {.draft = s->draft, .branch = s->branch, .owner = s->saver,
                         .plan = plan};
    save_list list;
    int64_t id;
    BRC_TRY(list_saves(s, &list, err));
    int rc = check_open(s, &list, err);
    if (rc == BRC_OK)
        rc = end_left(s, &list, err);
    save_list_dispose(&list);
    row.draft.kind = BRC_DRAFT_PRIVATE;
    row.draft.parent = s->draft.id;
    row.draft.time_us = brc_now_us();
    return rc < 0 ? rc : brc_draft_start(s->repo->store, &row, &id, err);
}

/* ---- releasing savepoints, and rolling back to them -------------------------------- */

static int is_own_save(const brc_session *s, const brc_draft_row *save)
{
    return s->saver != NULL && strcmp(save->owner, s->saver) == 0;
}

/* Lists the session's own savepoints, among the points of the log; *at: the innermost with this
 * name, or of all. */
static int find_savepoint(brc_session *s, const char *name, const char *plan, save_list *list,
                          size_t *at, brc_error *err)
{
    size_t n = 0;
    BRC_TRY(list_saves(s, list, err));
    for (size_t i = 0; i < list->n; i++)
        n += brc_draft_row_is_point(&list->items[i]) || is_own_save(s, &list->items[i]);
    if (n == list->n) /* the others belong to another session, or to one that is gone */
        for (*at = n; *at > 0; --*at)
            if (is_own_save(s, &list->items[*at - 1]) &&
                (plan == NULL || strcmp(list->items[*at - 1].plan, plan) == 0)) {
                --*at;
                return BRC_OK;
            }
    if (name == NULL)
        return brc_fail(err, BRC_ENOTFOUND, "this session has no savepoint: it was released, or "
                                            "ended with a commit or a reset");
    return brc_fail(err, BRC_ENOTFOUND,
                    "this session has no savepoint '%.80s': it was released, or ended with a "
                    "commit or a reset",
                    name);
}

/* Releases the savepoints that were made after it. */
static int release_inner(brc_session *s, save_list *list, size_t at, brc_error *err)
{
    for (size_t i = list->n; i-- > at + 1;)
        BRC_TRY(brc_draft_save_release(s->repo->store, &list->items[i], &list->items[i - 1], err));
    return BRC_OK;
}

/* Operations that were logged since the savepoint stay in the log. */
static int release_steps(brc_session *s, save_list *list, size_t at, brc_error *err)
{
    for (size_t i = at; i < list->n; i++)
        if (!brc_draft_row_is_point(&list->items[i]))
            list->items[i].draft.kind = 0;
    return brc_draft_saves_go(s->repo->store, list->items, list->n, err);
}

static int roll_back_steps(brc_session *s, save_list *list, size_t at, brc_error *err)
{
    if (list->items[at].draft.saves) /* others have changed it since */
        return brc_fail(err, BRC_ECONFLICT,
                        "others have changed the uncommitted state of branch '%s' since the "
                        "savepoint, so nothing was rolled back: use a private session for "
                        "changes that may be rolled back, and children of it for other writers",
                        s->branch);
    BRC_TRY(release_inner(s, list, at, err));
    return brc_draft_save_restore(s->repo->store, &list->items[at], err);
}

static int with_savepoint(brc_session *s, const char *name,
                          int (*steps)(brc_session *s, save_list *list, size_t at, brc_error *err),
                          brc_error *err)
{
    brc_buf plan = BRC_BUF_INIT;
    save_list list = {0};
    size_t at = 0;
    int rc;
    if (name != NULL)
        BRC_GO(plan_of_name(name, &plan, err));
    BRC_GO(brc_session_begin(s, err));
    rc = find_savepoint(s, name, name != NULL ? (const char *)plan.data : NULL, &list, &at, err);
    if (rc == BRC_OK)
        rc = steps(s, &list, at, err);
    s->logged = 0; /* points of the log may have gone with it */
    s->is_read = 0;
    rc = brc_session_end(s, rc, err);
done:
    save_list_dispose(&list);
    brc_buf_dispose(&plan);
    return rc;
}

static int set_savepoint(brc_session *s, const char *name, brc_error *err)
{
    brc_buf plan = BRC_BUF_INIT;
    int rc;
    BRC_GO(plan_of_name(name, &plan, err));
    BRC_GO(brc_session_can_change(s, err));
    BRC_GO(take_owner(s, err));
    BRC_GO(brc_session_begin(s, err));
    s->is_read = 0;
    rc = brc_session_end(s, make_savepoint(s, (const char *)plan.data, err), err);
done:
    brc_buf_dispose(&plan);
    return rc;
}

int brc_savepoint(brc_session *s, int what, const char *name, brc_error *err)
{
    switch (what) {
    case BRC_SAVEPOINT_SET:
        BRC_TRY(brc_bulk_check_none(s, "no savepoint can be made", err));
        return set_savepoint(s, name, err);
    case BRC_SAVEPOINT_ROLLBACK:
        BRC_TRY(brc_bulk_check_none(s, "nothing can be rolled back", err));
        return with_savepoint(s, name, roll_back_steps, err);
    case BRC_SAVEPOINT_RELEASE:
        BRC_TRY(brc_bulk_check_none(s, "no savepoint can be released", err));
        return with_savepoint(s, name, release_steps, err);
    default:
        return brc_fail(err, BRC_EINVAL, "%d is not a valid action on a savepoint", what);
    }
}
