/*
 * Moving and copying nodes.
 *
 * Copying nodes that have very many uncommitted chunks. A copy has chunk rows of its own, and
 * millions of them are more than one transaction may write. So those of large arrays are copied
 * ahead, some in each transaction, into a private draft that nobody else reads; the last
 * transaction takes these rows, and copies what others have written over the old ones meanwhile
 * (work/fold.c says why the rest is as it was). Where it fails the draft is dropped; a killed
 * process leaves it, with a dead owner.
 */

#include <stdlib.h>
#include <string.h>

#include "../base/sized.h"
#include "../merge/steps.h"
#include "../store/change.h"
#include "../work/bulk_write.h"
#include "../work/fold.h"
#include "../work/session_nodes.h"
#include "../zarr/doc/nodes.h"

typedef struct brc_copies {
    brc_draft_copying rows;
    int64_t draft; /* the draft that has the rows; 0: none was needed */
} brc_copies;

/* Makes the row of the copy, which gets its chunks in later transactions. */
static int start_copy(brc_session *s, const char *path, const brc_entry *entry, brc_copies *copies,
                      int64_t *node, brc_error *err)
{
    uint8_t bytes[BRC_ENTRY_MAX];
    brc_store *store = s->repo->store;
    const size_t len = brc_entry_encode(bytes, entry, brc_store_id_len(store));
    BRC_TRY(brc_store_begin(store, err));
    int rc = copies->draft != 0
                 ? BRC_OK : brc_session_begin_beside(s, &s->draft, &copies->draft, err);
    if (rc == BRC_OK)
        rc = brc_draft_node_put(store, copies->draft, path, bytes, len, node, err);
    int ended = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    if (rc < 0 || ended < 0)
        copies->draft = copies->rows.n > 0 ? copies->draft : 0;
    return rc < 0 ? rc : ended;
}

static int copy_in_steps(brc_store *store, const brc_draft_stack *rows, int64_t into,
                         brc_error *err)
{
    brc_buf after = BRC_BUF_INIT;
    size_t n = BRC_DRAFT_COPY_STEP;
    int rc = BRC_OK;
    while (n == BRC_DRAFT_COPY_STEP && rc == BRC_OK) {
        BRC_GO(brc_store_begin(store, err));
        rc = brc_draft_chunk_copy(store, rows, into, &after, &n, err);
        int ended = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
        rc = rc < 0 ? rc : ended;
    }
done:
    brc_buf_dispose(&after);
    return rc;
}

/* Returns the part of a stack above rows that were copied before; 0: none were. */
static int64_t copied_before(const brc_copies *copies, brc_draft_stack *rows)
{
    const brc_draft_copied *made = copies->rows.made;
    for (size_t i = 0; i < rows->n; i++)
        for (size_t k = 0; k < copies->rows.n; k++)
            if (made[k].row == rows->node[i]) {
                rows->n = i;
                return made[k].copy;
            }
    return 0;
}

static int copy_large(brc_session *s, const char *from, const char *to, brc_copies *copies,
                      brc_error *err)
{
    brc_entry entry;
    brc_draft_stack rows;
    void *p;
    BRC_TRY(brc_hold_still(s, from, &entry, &rows, err));
    if (rows.n == 0)
        return BRC_OK;
    const int64_t first = rows.node[0];
    int64_t node = copied_before(copies, &rows);
    if (rows.n == 0)
        return BRC_OK;
    if (node == 0)
        BRC_TRY(start_copy(s, to, &entry, copies, &node, err));
    BRC_TRY(copy_in_steps(s->repo->store, &rows, node, err));
    p = copies->rows.made;
    int rc = brc_grow_array(&p, &copies->rows.cap, copies->rows.n + 1, sizeof(brc_draft_copied),
                            err);
    copies->rows.made = p;
    if (rc == BRC_OK)
        ((brc_draft_copied *)p)[copies->rows.n++] = (brc_draft_copied){first, node};
    return rc;
}

/* Copies the rows at and under `from` ahead, for a copy at `to`. Must be called outside of a
 * transaction. */
static int copy_ahead(brc_session *s, const char *from, const char *to, brc_copies *copies,
                      brc_error *err)
{
    brc_draft_node *rows = NULL;
    brc_buf path = BRC_BUF_INIT;
    size_t n = 0;
    int rc, large;
    BRC_TRY(brc_session_begin_read(s, err));
    brc_session_end_read(s);
    BRC_GO(brc_draft_node_list(s->repo->store, s->draft.id, from, 1, &rows, &n, err));
    for (size_t i = 0; i < n; i++) {
        BRC_GO(brc_has_many_chunks(s->repo->store, &rows[i], &large, err));
        if (!large)
            continue;
        path.len = 0;
        BRC_GO(brc_buf_printf(&path, err, "%s%s", to, rows[i].path + strlen(from)));
        BRC_GO(copy_large(s, rows[i].path, (const char *)path.data, copies, err));
    }
    rc = BRC_OK;
done:
    brc_buf_dispose(&path);
    brc_draft_nodes_free(rows, n);
    return rc;
}

/* Drops the rows that were not taken, also if the handle was interrupted. */
static void copies_drop(brc_session *s, brc_copies *copies)
{
    brc_store *store = s->repo->store;
    const int stops = brc_store_check_interrupt(store, NULL) < 0;
    free(copies->rows.made);
    if (copies->draft != 0) {
        brc_store_interrupt_clear(store);
        if (brc_store_begin(store, NULL) == BRC_OK)
            (void)!brc_store_end(store, brc_draft_delete(store, copies->draft, NULL) == BRC_OK,
                                 NULL);
        if (stops)
            brc_store_interrupt(store);
    }
    memset(copies, 0, sizeof(*copies));
}

/* ---- moved or copied -------------------------------- */

typedef struct node_transfer {
    const char *to;
    brc_copies *copies; /* NULL: the node is moved */
} node_transfer;

/* Ends copying after the rows were taken. */
static int end_copies(brc_session *s, brc_copies *copies, brc_error *err)
{
    return copies == NULL || copies->draft == 0
               ? BRC_OK
               : brc_draft_delete(s->repo->store, copies->draft, err);
}

/* Fails if there are too many rows. Copies of copies double the rows each time, so they end at the
 * same limit as every walk. */
static int check_rows_under(brc_session *s, const char *path, brc_error *err)
{
    int more;
    brc_budget budget = brc_budget_of(s->repo->store);
    BRC_TRY(brc_draft_has_more_under(s->repo->store, s->draft.id, path, budget.max, &more, err));
    budget.used = more ? budget.max : 0;
    return brc_budget_take(&budget, err);
}

static int transfer_node(brc_session *s, const char *from, const void *arg, brc_error *err)
{
    const node_transfer *t = arg;
    const int copy = t->copies != NULL;
    brc_store *store = s->repo->store;
    brc_entry entry, there;
    int64_t row, ignored;
    size_t len = strlen(from);
    BRC_TRY(brc_bulk_check_none(s, "no node can be moved or copied", err));
    if (strcmp(from, "/") == 0)
        return brc_fail(err, BRC_EINVAL, "the root node cannot be moved or copied");
    BRC_TRY(brc_session_need(s, from, 0, &entry, &row, err));
    if (!copy)
        BRC_TRY(brc_open_merge_may_move(s, from, err));
    if (strncmp(t->to, from, len) == 0 && (t->to[len] == '/' || t->to[len] == '\0'))
        return brc_fail(err, BRC_EINVAL, "%s cannot go to %s, which is itself or under it", from,
                        t->to);
    BRC_TRY(brc_session_find(s, t->to, &there, &ignored, err));
    if (there.kind != 0)
        return brc_fail(err, BRC_EEXISTS, "there is a node %s already", t->to);
    BRC_TRY(check_rows_under(s, from, err));
    BRC_TRY(brc_session_parents(s, t->to, err));
    BRC_TRY(copy ? brc_note_new(s, t->to, err) : brc_note_moved(s, from, t->to, err));
    BRC_TRY(brc_node_forget_keys(s, t->to, err));
    BRC_TRY(brc_node_carry_keys(s, from, t->to, copy, err));
    /* a row that says that `to` was removed is deleted */
    BRC_TRY(brc_draft_node_clear(store, s->draft.id, t->to, err));
    BRC_TRY(brc_draft_node_move(store, s->draft.id, from, t->to,
                                copy ? &t->copies->rows : NULL, err));
    BRC_TRY(end_copies(s, t->copies, err));
    if (row == 0)
        BRC_TRY(brc_session_put(s, t->to, &entry, NULL, err));
    return copy ? BRC_OK : brc_session_put(s, from, NULL, NULL, err);
}

/* A copy whose chunks are too many for one transaction, and are copied ahead. */
typedef struct copy_call {
    brc_session *s;
    const char *from;
    brc_copies copies;
    node_transfer t;
    int times; /* how often chunks were copied ahead */
} copy_call;

static int copy_work(void *ctx, brc_error *err)
{
    copy_call *c = ctx;
    if (!c->copies.rows.is_too_much)
        return BRC_OK;
    c->times++;
    return copy_ahead(c->s, c->from, c->t.to, &c->copies, err);
}

static int copy_commit(void *ctx, int insists, brc_error *err)
{
    enum { MOST = 8192 };
    copy_call *c = ctx;
    brc_draft_copying *rows = &c->copies.rows;
    rows->most = insists ? 0 : MOST;
    rows->rows = 0;
    rows->is_too_much = 0;
    const int rc = brc_node_change(c->s, c->from, transfer_node, &c->t, err);
    return rc >= 0 || !rows->is_too_much ? rc : c->times == 0 ? BRC_CHANGE_WORK : BRC_CHANGE_AGAIN;
}

static int copy_run(brc_session *s, const char *from, const char *to, brc_error *err)
{
    copy_call call = {.s = s, .from = from};
    const brc_file_change change = {.ctx = &call, .work = copy_work,
                                    .commit = copy_commit};
    const int is_part = brc_store_in_write(s->repo->store);
    call.t = (node_transfer){to, &call.copies};
    const int rc = brc_change_run(s->repo->store, &change, err);
    if (rc == BRC_OK)
        call.copies.draft = 0;
    copies_drop(s, &call.copies);
    if (!is_part)
        brc_session_changed(s, rc);
    return rc;
}

static int copy_node(brc_session *s, const char *from, const char *to, brc_error *err)
{
    brc_buf at = BRC_BUF_INIT, normal = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_path_normal(&at, from, err));
    BRC_GO(brc_path_normal(&normal, to, err));
    rc = copy_run(s, (const char *)at.data, (const char *)normal.data, err);
done:
    brc_buf_dispose(&at);
    brc_buf_dispose(&normal);
    return rc;
}

static int move_node(brc_session *s, const char *from, const char *to, brc_error *err)
{
    brc_buf normal = BRC_BUF_INIT;
    int rc = brc_path_normal(&normal, to, err);
    if (rc == BRC_OK) {
        node_transfer t = {(const char *)normal.data, NULL};
        rc = brc_node_change(s, from, transfer_node, &t, err);
    }
    brc_buf_dispose(&normal);
    return rc;
}

int brc_node_move(brc_session *s, const char *from, const char *to, uint32_t flags, brc_error *err)
{
    BRC_TRY(brc_flags_check(flags, BRC_NODE_COPY, "brc_node_move()", err));
    return flags != 0 ? copy_node(s, from, to, err) : move_node(s, from, to, err);
}
