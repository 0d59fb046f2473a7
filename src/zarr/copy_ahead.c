#include "copy_ahead.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "fold.h"

/* The row of the copy, which gets chunks in the transactions that follow. */
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

/* Of a stack only what lies over rows that were copied before; 0: none were. */
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

int brc_copy_ahead(brc_session *s, const char *from, const char *to, brc_copies *copies,
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

/* Also where the handle was interrupted. */
void brc_copies_drop(brc_session *s, brc_copies *copies)
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
