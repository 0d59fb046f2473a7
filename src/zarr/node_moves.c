#include "node_moves.h"

#include <stdlib.h>
#include <string.h>

/* ---- where a node is in the base -------------------------------- */

/* What the rows say of a path, or (above: 1) those above it: *has 0 where it is new. */
static int base_path(brc_session *s, const char *path, int above, brc_buf *out, int *has,
                     brc_error *err)
{
    char *source = NULL;
    size_t len = strlen(path);
    brc_buf at = BRC_BUF_INIT;
    int rc = BRC_OK;
    out->len = 0;
    for (size_t end = len; end > 0 && source == NULL; end--) {
        if (end < len ? path[end] != '/' : above)
            continue;
        at.len = 0;
        BRC_GO(brc_buf_append(&at, path, end, err));
        BRC_GO(brc_buf_terminate(&at, err));
        BRC_GO(brc_draft_move_get(s->repo->store, s->draft.id, (const char *)at.data, &source,
                                  err));
        if (source != NULL)
            path += end;
    }
    *has = source == NULL || *source != '\0';
    if (*has && source != NULL)
        BRC_GO(brc_buf_text(out, source, err));
    if (*has)
        BRC_GO(brc_buf_text(out, path, err));
    rc = brc_buf_terminate(out, err);
done:
    free(source);
    brc_buf_dispose(&at);
    return rc;
}

/* The same, "" where the base has no such node. */
static int base_node(brc_session *s, const char *path, int above, brc_buf *out, brc_error *err)
{
    int has;
    brc_entry entry;
    BRC_TRY(base_path(s, path, above, out, &has, err));
    if (!has)
        return BRC_OK;
    BRC_TRY(brc_snapshot_find(s->repo->store, &s->base, (const char *)out->data, &entry, err));
    if (entry.kind != 0)
        return BRC_OK;
    out->len = 0;
    return brc_buf_terminate(out, err);
}

/* The node at the path is `source` in the base; "": it is new. */
static int set_base_node(brc_session *s, const char *path, const char *source, brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_buf above = BRC_BUF_INIT;
    int rc = base_node(s, path, 1, &above, err);
    if (rc == BRC_OK && strcmp((const char *)above.data, source) == 0)
        rc = brc_draft_move_drop(store, s->draft.id, path, err);
    else if (rc == BRC_OK)
        rc = brc_draft_move_put(store, s->draft.id, path, source, err);
    brc_buf_dispose(&above);
    return rc;
}

/* ---- notes -------------------------------- */

int brc_note_new(brc_session *s, const char *path, brc_error *err)
{
    if (s->bulk != NULL) /* it is noted when that is adopted */
        return BRC_OK;
    return strcmp(path, "/") == 0 ? BRC_OK : set_base_node(s, path, "", err);
}

int brc_note_removed(brc_session *s, const char *path, brc_error *err)
{
    return brc_draft_move_clear(s->repo->store, s->draft.id, path, err);
}

int brc_note_moved(brc_session *s, const char *from, const char *to, brc_error *err)
{
    brc_buf source = BRC_BUF_INIT;
    int rc;
    BRC_GO(base_node(s, from, 0, &source, err));
    BRC_GO(brc_draft_move_clear(s->repo->store, s->draft.id, to, err));
    BRC_GO(brc_draft_move_rename(s->repo->store, s->draft.id, from, to, err));
    rc = set_base_node(s, to, (const char *)source.data, err);
done:
    brc_buf_dispose(&source);
    return rc;
}

static int is_at_or_under(const char *path, const char *top)
{
    size_t len = strlen(top);
    return strncmp(path, top, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

/* What came from there is a copy from now on: of one node of the base there is one at most. */
static int give_back(brc_session *s, const char *source, brc_error *err)
{
    brc_move *moves;
    size_t n;
    BRC_TRY(brc_draft_move_list(s->repo->store, s->draft.id, "/", &moves, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        if (is_at_or_under(moves[i].from, source))
            rc = set_base_node(s, moves[i].to, "", err);
    brc_moves_free(moves, n);
    return rc;
}

int brc_note_restored(brc_session *s, const char *path, brc_error *err)
{
    brc_buf source = BRC_BUF_INIT;
    BRC_TRY(brc_note_removed(s, path, err));
    if (strcmp(path, "/") == 0)
        return BRC_OK;
    int rc = base_node(s, path, 1, &source, err);
    if (rc == BRC_OK)
        rc = strcmp((const char *)source.data, path) == 0 ? give_back(s, path, err)
                                                          : set_base_node(s, path, "", err);
    brc_buf_dispose(&source);
    return rc;
}

/* ---- for diff and commit -------------------------------- */

/* The draft's rows, since its base. */
static int moves_since_base(brc_move_set *out, brc_session *s, brc_error *err)
{
    brc_move *moves;
    size_t n;
    if (s->draft.id == 0)
        return BRC_OK;
    BRC_TRY(brc_draft_move_list(s->repo->store, s->draft.id, "/", &moves, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        rc = *moves[i].from != '\0' ? brc_move_set_add(out, moves[i].from, moves[i].to, err)
                                    : brc_move_set_add_made(out, moves[i].to, err);
    brc_moves_free(moves, n);
    return rc < 0 ? rc : brc_move_set_seal(out, err);
}

/* Of those the base made since the commit; where it does not follow that, there are none. */
static int moves_to_base(brc_move_set *out, brc_session *s, int has, const brc_oid *commit,
                         brc_error *err)
{
    int known;
    memset(out, 0, sizeof(*out));
    return s->draft.has_base ? brc_move_set_between(out, &known, s->repo->store, has, commit,
                                                    &s->draft.base, err)
                             : BRC_OK;
}

/* `before`: those to the base. */
static int join_since_base(brc_move_set *out, brc_session *s, const brc_move_set *before,
                           const brc_oid *snapshot, const brc_oid *root, brc_error *err)
{
    brc_move_set since = {0};
    int rc;
    BRC_GO(moves_since_base(&since, s, err));
    BRC_GO(brc_move_set_join(out, before, &since, err));
    rc = brc_move_set_reduce(out, s->repo->store, snapshot, root, err);
done:
    brc_move_set_dispose(&since);
    if (rc < 0)
        brc_move_set_dispose(out);
    return rc;
}

int brc_session_moves(brc_move_set *out, brc_session *s, int has, const brc_oid *commit,
                      const brc_oid *snapshot, const brc_oid *root, brc_error *err)
{
    brc_move_set before;
    memset(out, 0, sizeof(*out));
    int rc = moves_to_base(&before, s, has, commit, err);
    if (rc == BRC_OK)
        rc = join_since_base(out, s, &before, snapshot, root, err);
    brc_move_set_dispose(&before);
    return rc;
}

int brc_session_moves_across(brc_move_set *out, brc_session *s, const brc_oid *commit,
                             const brc_oid *snapshot, const brc_oid *root, brc_error *err)
{
    brc_move_set before = {0};
    int known, rc = BRC_OK;
    memset(out, 0, sizeof(*out));
    if (s->draft.has_base)
        rc = brc_move_set_across(&before, &known, s->repo->store, commit, &s->draft.base, err);
    if (rc == BRC_OK)
        rc = join_since_base(out, s, &before, snapshot, root, err);
    brc_move_set_dispose(&before);
    return rc;
}
