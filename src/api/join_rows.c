/*
 * Children whose rows become their parent's as they are: all began from the commit over which that
 * lies still, and what they wrote does not meet. It is one transaction, so they are small; chunks
 * are neither decoded nor copied.
 */
#include "../zarr/adopt.h"
#include "fork.h"
#include "join.h"

/* Rows of nodes and chunks of all of them. */
enum { JOIN_ROWS = 4096 };

static int child_is_apt(brc_join *j, brc_join_child *child, int *apt, brc_error *err)
{
    const brc_draft_child *known = &child->known;
    brc_draft_head now;
    int keys;
    BRC_TRY(brc_draft_get(j->store, child->s->draft.id, &now, err));
    *apt = now.id != 0 && now.is_child && brc_draft_same_version(&now, &j->s->draft) &&
           now.has_base == known->has_fork &&
           (!now.has_base || brc_oid_cmp(&now.base, &known->fork) == 0);
    if (!*apt)
        return BRC_OK;
    BRC_TRY(brc_draft_key_any(j->store, now.id, &keys, err));
    *apt = !keys;
    return keys ? BRC_OK : brc_draft_is_small(j->store, now.id, JOIN_ROWS / j->n, apt, err);
}

static int all_are_apt(brc_join *j, int *apt, brc_error *err)
{
    int keys;
    BRC_TRY(brc_draft_key_any(j->store, j->s->draft.id, &keys, err));
    *apt = !keys;
    for (size_t i = 0; i < j->n && *apt; i++)
        BRC_TRY(child_is_apt(j, &j->children[i], apt, err));
    return BRC_OK;
}

static int give_rows(brc_join *j, brc_join_child *child, brc_error *err)
{
    const int64_t id = child->s->draft.id;
    const brc_adoption adoption = {.draft = id, .base = child->fork_root};
    BRC_TRY(brc_draft_saves_end(j->store, id, err));
    BRC_TRY(brc_session_adopt_rows(j->s, &adoption, err));
    return brc_draft_delete(j->store, id, err);
}

static int rows_steps(brc_join *j, int *apt, brc_error *err)
{
    BRC_TRY(brc_fork_check_saves(j->s, err));
    BRC_TRY(all_are_apt(j, apt, err));
    for (size_t i = 0; i < j->n && *apt; i++)
        BRC_TRY(give_rows(j, &j->children[i], err));
    return BRC_OK;
}

/* Before anything is written for it. */
static int look_if_apt(brc_join *j, int *apt, brc_error *err)
{
    BRC_TRY(brc_session_begin_read(j->s, err));
    int rc = all_are_apt(j, apt, err);
    brc_session_end_read(j->s);
    return rc;
}

/* What cannot be told apart here may still be, element by element. */
int brc_join_rows(brc_join *j, int *apt, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    BRC_TRY(look_if_apt(j, apt, err));
    if (!*apt)
        return 0;
    BRC_TRY(brc_session_begin(j->s, err));
    int rc = rows_steps(j, apt, &why);
    j->s->is_read = 0;
    const int undone = rc == BRC_ECONFLICT;
    if (rc < 0 && !undone && err != NULL)
        brc_error_copy(err, &why);
    rc = brc_session_end(j->s, rc, err);
    if (undone)
        *apt = 0;
    return rc < 0 && !undone ? rc : *apt;
}
