#include "made_again.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/node_path.h"

/* A group of both snapshots whose children differ. */
typedef struct made_group {
    char *path;
    brc_entry a, b;
} made_group;

typedef struct made_look {
    brc_move_set *out;
    brc_store *store;
    const brc_oid *older;
    const brc_move_set *moves;
    const char *path; /* of the group whose children are compared */
    void *due;        /* made_group[] */
    size_t n, cap;
} made_look;

static int made_due(made_look *look, char *path, const brc_entry *a, const brc_entry *b,
                    brc_error *err)
{
    int rc = brc_grow_array(&look->due, &look->cap, look->n + 1, sizeof(made_group), err);
    if (rc < 0)
        free(path);
    else
        ((made_group *)look->due)[look->n++] = (made_group){path, *a, *b};
    return rc;
}

static int look_at_added(made_look *look, const char *path, const brc_entry *now, brc_error *err)
{
    brc_entry then;
    if (brc_move_of_to(look->moves, path) != NULL || brc_move_has_made(look->moves, path))
        return BRC_OK;
    BRC_TRY(brc_snapshot_find(look->store, look->older, path, &then, err));
    return then.kind == 0 || brc_entry_equal(&then, now)
               ? BRC_OK
               : brc_move_set_add_made(look->out, path, err);
}

static int made_child(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    made_look *look = ctx;
    const size_t id_len = brc_store_id_len(look->store);
    brc_entry before = {0}, after;
    char *path;
    if (b.data == NULL)
        return BRC_OK;
    BRC_TRY(brc_child_decode(&after, key, b, id_len, err));
    if (a.data != NULL)
        BRC_TRY(brc_child_decode(&before, key, a, id_len, err));
    if (a.data != NULL && (before.kind != BRC_GROUP || after.kind != BRC_GROUP))
        return BRC_OK;
    BRC_TRY(brc_node_join(&path, look->path, (const char *)key.data, err));
    if (a.data != NULL)
        return made_due(look, path, &before, &after, err);
    int rc = look_at_added(look, path, &after, err);
    free(path);
    return rc;
}

static int made_start(made_look *look, const brc_oid *before, const brc_oid *after, brc_error *err)
{
    brc_entry a, b;
    char *path;
    BRC_TRY(brc_snapshot_find(look->store, before, "/", &a, err));
    BRC_TRY(brc_snapshot_find(look->store, after, "/", &b, err));
    BRC_TRY(brc_dup(&path, "/", err));
    return made_due(look, path, &a, &b, err);
}

int brc_made_again(brc_move_set *out, brc_store *store, const brc_oid *older, const brc_oid *before,
                   const brc_oid *after, const brc_move_set *moves, brc_error *err)
{
    made_look look = {.out = out, .store = store, .older = older, .moves = moves};
    int rc = made_start(&look, before, after, err);
    while (rc == BRC_OK && look.n > 0) {
        const made_group at = ((made_group *)look.due)[--look.n];
        look.path = at.path;
        rc = brc_map_diff(store, &at.a.map, &at.b.map, made_child, &look, err);
        free(at.path);
    }
    while (look.n > 0)
        free(((made_group *)look.due)[--look.n].path);
    free(look.due);
    return rc;
}
