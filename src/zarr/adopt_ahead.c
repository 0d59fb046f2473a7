/*
 * What can be done before a draft is adopted, so that the transaction need not last as long as its
 * rows are many: room is made where rows lie on each other, and it is looked whether both sides
 * have written the same chunks. Others go on meanwhile. What was seen counts only if neither draft
 * has changed by then (brc_session_adopt()).
 */
#include <stdlib.h>
#include <string.h>

#include "adopt.h"

/* ---- room for it -------------------------------- */

int brc_stack_make_shorter(brc_store *store, int64_t node, brc_error *err)
{
    BRC_TRY(brc_store_rest(store, 1, err));
    for (int done = 0; !done;) {
        BRC_TRY(brc_store_begin(store, err));
        int rc = brc_draft_stack_shorten(store, node, BRC_DRAFT_STACK_SHORT, &done, err);
        const int ended = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
        BRC_TRY(rc < 0 ? rc : ended);
        BRC_TRY(brc_store_rest(store, 1, err));
    }
    return BRC_OK;
}

static int make_room_at(brc_session *onto, const brc_draft_node *row, brc_error *err)
{
    brc_store *store = onto->repo->store;
    brc_draft_stack upper, lower;
    brc_draft_node own;
    int found;
    if (onto->draft.id == 0)
        return BRC_OK;
    BRC_TRY(brc_draft_node_get(store, onto->draft.id, row->path, &found, &own, err));
    free(own.entry);
    BRC_TRY(brc_draft_stack_get(store, row->node, &upper, err));
    BRC_TRY(brc_draft_stack_get(store, found ? own.node : 0, &lower, err));
    if (upper.n + lower.n <= BRC_DRAFT_STACK_MOST)
        return BRC_OK;
    BRC_TRY(brc_stack_make_shorter(store, lower.node[0], err));
    return brc_stack_make_shorter(store, upper.node[0], err);
}

int brc_adopt_make_room(brc_session *onto, int64_t draft, brc_error *err)
{
    enum { PAGE = 256 };
    brc_draft_rows rows = {0};
    size_t before;
    int rc;
    BRC_TRY(brc_session_begin_read(onto, err));
    brc_session_end_read(onto);
    do {
        before = rows.n;
        BRC_GO(brc_draft_node_page(onto->repo->store, draft, &rows, PAGE, err));
        for (size_t i = before; i < rows.n; i++)
            BRC_GO(make_room_at(onto, (const brc_draft_node *)rows.nodes + i, err));
    } while (rows.n - before == PAGE);
    rc = BRC_OK;
done:
    brc_draft_nodes_free(rows.nodes, rows.n);
    return rc;
}

/* ---- whether they meet -------------------------------- */

static int meets_at(brc_session *onto, const brc_draft_node *row, int *meet, brc_error *err)
{
    brc_store *store = onto->repo->store;
    brc_draft_stack upper, lower;
    brc_draft_node own;
    int found;
    *meet = 0;
    BRC_TRY(brc_draft_node_get(store, onto->draft.id, row->path, &found, &own, err));
    free(own.entry);
    if (!found)
        return BRC_OK;
    BRC_TRY(brc_draft_stack_get(store, row->node, &upper, err));
    BRC_TRY(brc_draft_stack_get(store, own.node, &lower, err));
    return brc_draft_stacks_meet(store, &upper, &lower, meet, err);
}

int brc_adopt_look_ahead(brc_session *onto, int64_t draft, brc_adopt_look *out, brc_error *err)
{
    enum { PAGE = 256 };
    brc_draft_rows rows = {0};
    size_t before, i;
    int meet = 0, rc;
    memset(out, 0, sizeof(*out));
    BRC_TRY(brc_session_begin_read(onto, err));
    brc_session_end_read(onto);
    const brc_draft_head now = onto->draft;
    if (now.id == 0)
        return BRC_OK;
    BRC_TRY(brc_draft_get(onto->repo->store, draft, &out->draft, err));
    do {
        before = rows.n;
        BRC_GO(brc_draft_node_page(onto->repo->store, draft, &rows, PAGE, err));
        for (i = before; i < rows.n && !meet; i++)
            BRC_GO(meets_at(onto, (const brc_draft_node *)rows.nodes + i, &meet, err));
    } while (rows.n - before == PAGE && !meet);
    out->met = meet ? ((const brc_draft_node *)rows.nodes)[i - 1].node : 0;
    out->onto = now;
    rc = BRC_OK;
done:
    brc_draft_nodes_free(rows.nodes, rows.n);
    return rc;
}
