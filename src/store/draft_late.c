/* Drafts that are dropped when the lock is to be had: with the end of the next transaction. */
#include "../base/alloc.h"
#include "db.h"

static void note_late(brc_store *store, int64_t draft, int which)
{
    void *p = store->late_drafts.items;
    const size_t n = store->late_drafts.n;
    for (size_t i = 0; i < n; i++)
        if (store->late_drafts.items[i].id == draft && store->late_drafts.items[i].which == which)
            return;
    const int rc = brc_grow_array(&p, &store->late_drafts.cap, n + 1, sizeof(brc_late_draft), NULL);
    store->late_drafts.items = p;
    if (rc < 0) /* it can be dropped when its process has ended */
        return;
    store->late_drafts.items[store->late_drafts.n++] = (brc_late_draft){draft, which};
}

void brc_draft_drop_late(brc_store *store, int64_t draft)
{
    note_late(store, draft, BRC_LATE_ANY);
}

void brc_draft_drop_at_end(brc_store *store, int64_t draft)
{
    note_late(store, draft, BRC_LATE_EMPTY);
}

void brc_draft_drop_empty(brc_store *store, int64_t draft, int with_children)
{
    note_late(store, draft, with_children ? BRC_LATE_END : BRC_LATE_EMPTY);
    if (brc_store_try_begin(store))
        (void)!brc_store_end(store, 1, NULL);
}

void brc_draft_save_drop(brc_store *store, int64_t save)
{
    note_late(store, save, BRC_LATE_SAVE);
    if (brc_store_try_begin(store))
        (void)!brc_store_end(store, 1, NULL);
}
