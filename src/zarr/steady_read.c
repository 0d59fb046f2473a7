#include "steady_read.h"

/* Reads that may be paused, before one is not. */
enum { TRIES = 3 };

typedef struct session_state {
    brc_draft_head draft;
    int has_tip;
    brc_oid tip;
} session_state;

static int state_of(brc_session *s, session_state *out, brc_error *err)
{
    brc_oid root;
    BRC_TRY(brc_session_follow(s, err));
    out->draft = s->draft;
    return brc_session_tip(s, &out->has_tip, &out->tip, &root, err);
}

static int same_state(const session_state *a, const session_state *b)
{
    return a->draft.id == b->draft.id && a->draft.changes == b->draft.changes &&
           brc_draft_same_version(&a->draft, &b->draft) && a->has_tip == b->has_tip &&
           (!a->has_tip || brc_oid_cmp(&a->tip, &b->tip) == 0);
}

static int read_once(brc_session *s, brc_steady_fn run, void *ctx, int *same, brc_error *err)
{
    session_state before, after;
    brc_error found = BRC_ERROR_INIT;
    BRC_TRY(state_of(s, &before, err));
    int rc = run(ctx, &found);
    BRC_TRY(state_of(s, &after, err));
    *same = same_state(&before, &after);
    if (rc < 0 && err != NULL)
        brc_error_copy(err, &found);
    return rc;
}

static int read_held(brc_session *s, brc_steady_fn run, void *ctx, int *same, brc_error *err)
{
    brc_store_hold_read(s->repo->store, 1);
    int rc = read_once(s, run, ctx, same, err);
    brc_store_hold_read(s->repo->store, 0);
    return rc;
}

int brc_session_read_steady(brc_session *s, brc_steady_fn run, void *ctx, brc_error *err)
{
    brc_store *store = s->repo->store;
    int rc = BRC_OK, same = 0;
    for (int i = 0; i <= TRIES && !same; i++) {
        same = 1; /* where it cannot be said, it is not tried again */
        BRC_TRY(brc_store_begin_read(store, err));
        rc = i < TRIES ? read_once(s, run, ctx, &same, err) : read_held(s, run, ctx, &same, err);
        brc_store_end_read(store);
    }
    return rc;
}
