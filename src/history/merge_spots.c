#include "merge_spots.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

/* ---- texts -------------------------------- */

int brc_merge_text(brc_merge_tree *m, const char *text, size_t len, const char **out,
                   brc_error *err)
{
    char *p = brc_arena_take(&m->arena, len + 1);
    if (p == NULL)
        return brc_nomem(err);
    memcpy(p, text, len);
    p[len] = '\0';
    *out = p;
    return BRC_OK;
}

int brc_merge_join(brc_merge_tree *m, const char *path, const char *name, const char **out,
                   brc_error *err)
{
    const size_t len = path[1] != '\0' ? strlen(path) : 0, rest = strlen(name);
    if (len + 1 + rest > BRC_PATH_MAX)
        return brc_fail(err, BRC_ECORRUPT, "%.300s... is longer than a path can be: %d bytes", path,
                        BRC_PATH_MAX);
    char *p = brc_arena_take(&m->arena, len + rest + 2);
    if (p == NULL)
        return brc_nomem(err);
    memcpy(p, path, len);
    p[len] = '/';
    memcpy(p + len + 1, name, rest + 1);
    *out = p;
    return BRC_OK;
}

const char *brc_merge_name(const char *path)
{
    return strrchr(path, '/') + 1;
}

int brc_merge_above(brc_merge_tree *m, const char *path, const char **out, brc_error *err)
{
    const size_t len = (size_t)(strrchr(path, '/') - path);
    return brc_merge_text(m, path, len > 0 ? len : 1, out, err);
}

/* ---- spots -------------------------------- */

static int by_ours_order(const void *a, const void *b)
{
    return strcmp(((const brc_spot *)a)->ours, ((const brc_spot *)b)->ours);
}

static int by_theirs_order(const void *a, const void *b)
{
    return strcmp(((const brc_spot *)a)->theirs, ((const brc_spot *)b)->theirs);
}

static brc_spot *spot_find(void *const *tree, const brc_spot *key,
                           int (*order)(const void *, const void *))
{
    void *found = tfind(key, tree, order);
    return found != NULL ? *(brc_spot *const *)found : NULL;
}

static int spot_make(brc_merge_tree *m, brc_spot **out, brc_error *err)
{
    brc_spot *spot = brc_arena_take(&m->arena, sizeof(*spot));
    if (spot == NULL)
        return brc_nomem(err);
    memset(spot, 0, sizeof(*spot));
    spot->next = m->spots;
    m->spots = spot;
    m->nspots++;
    *out = spot;
    return BRC_OK;
}

/* A spot that ours has, under its parent's; path is the tree's. */
static int spot_add_ours(brc_merge_tree *m, brc_spot *parent, const char *path,
                         const brc_entry *entry, brc_spot **out, brc_error *err)
{
    BRC_TRY(spot_make(m, out, err));
    brc_spot *spot = *out;
    spot->ours = path;
    spot->was = spot->parent = parent;
    spot->was_name = spot->name = brc_merge_name(path);
    spot->before = spot->entry = *entry;
    return tsearch(spot, &m->by_ours, by_ours_order) != NULL ? BRC_OK : brc_nomem(err);
}

int brc_spots_start(brc_merge_tree *m, brc_error *err)
{
    brc_entry entry;
    const char *path = NULL;
    BRC_TRY(brc_snapshot_find(m->store, &m->in.ours, "/", &entry, err));
    BRC_TRY(brc_merge_text(m, "/", 1, &path, err));
    return spot_add_ours(m, NULL, path, &entry, &m->root, err);
}

static void merged_free(brc_merged_node *merged)
{
    if (merged == NULL)
        return;
    brc_buf_dispose(&merged->text);
    free(merged->edits);
    brc_arena_dispose(&merged->arena);
    free(merged);
}

void brc_spots_free(brc_merge_tree *m)
{
    for (brc_spot *spot = m->spots; spot != NULL; spot = spot->next) {
        if (spot->ours != NULL)
            tdelete(spot, &m->by_ours, by_ours_order);
        if (spot->theirs != NULL)
            tdelete(spot, &m->by_theirs, by_theirs_order);
        merged_free(spot->merged);
        free(spot->edits);
    }
    m->spots = NULL;
    brc_arena_dispose(&m->arena);
}

static int spot_child(brc_merge_tree *m, brc_spot *parent, const char *name, const char *path,
                      brc_spot **out, brc_error *err)
{
    brc_entry entry;
    const brc_spot key = {.ours = path};
    *out = spot_find(&m->by_ours, &key, by_ours_order);
    if (*out != NULL || parent->before.kind != BRC_GROUP)
        return BRC_OK;
    BRC_TRY(brc_entry_find(m->store, &parent->before, name, &entry, err));
    return entry.kind != 0 ? spot_add_ours(m, parent, path, &entry, out, err) : BRC_OK;
}

int brc_spot_of_ours(brc_merge_tree *m, const char *path, brc_spot **out, brc_error *err)
{
    const brc_spot key = {.ours = path};
    *out = spot_find(&m->by_ours, &key, by_ours_order);
    if (*out != NULL)
        return BRC_OK;
    *out = m->root;
    for (const char *at = path + 1; *at != '\0' && *out != NULL;) {
        const char *upto = NULL, *name;
        const size_t len = strcspn(at, "/");
        brc_spot *parent = *out;
        BRC_TRY(brc_merge_text(m, path, (size_t)(at - path) + len, &upto, err));
        name = brc_merge_name(upto);
        BRC_TRY(spot_child(m, parent, name, upto, out, err));
        at += len + (at[len] == '/');
    }
    return BRC_OK;
}

int brc_spot_show(brc_merge_tree *m, brc_spot *parent, const char *name, brc_error *err)
{
    const char *path = NULL;
    brc_spot *ignored;
    if (parent->ours == NULL)
        return BRC_OK;
    BRC_TRY(brc_merge_join(m, parent->ours, name, &path, err));
    return spot_child(m, parent, name, path, &ignored, err);
}

int brc_spot_is_theirs(brc_merge_tree *m, brc_spot *spot, const char *theirs, brc_error *err)
{
    if (spot->theirs != NULL)
        return BRC_OK;
    spot->theirs = theirs;
    if (tsearch(spot, &m->by_theirs, by_theirs_order) != NULL)
        return BRC_OK;
    spot->theirs = NULL;
    return brc_nomem(err);
}

int brc_spot_new(brc_merge_tree *m, const char *theirs, brc_spot **out, brc_error *err)
{
    BRC_TRY(spot_make(m, out, err));
    return brc_spot_is_theirs(m, *out, theirs, err);
}

brc_spot *brc_spot_of_theirs(const brc_merge_tree *m, const char *path)
{
    const brc_spot key = {.theirs = path};
    return spot_find(&m->by_theirs, &key, by_theirs_order);
}

int brc_spot_path(const brc_spot *spot, brc_buf *out, brc_error *err)
{
    const char *names[BRC_DEPTH_MAX + 1];
    size_t n = 0;
    out->len = 0;
    for (; spot->parent != NULL && n <= BRC_DEPTH_MAX; spot = spot->parent)
        names[n++] = spot->name;
    if (n == 0)
        BRC_TRY(brc_buf_text(out, "/", err));
    while (n > 0)
        BRC_TRY(brc_buf_printf(out, err, "/%s", names[--n]));
    return brc_buf_terminate(out, err);
}

int brc_merge_favours(const brc_merge_tree *m, const char *path)
{
    return m->ops->favour(m->ops->ctx, path);
}

int brc_spot_merged(brc_spot *spot, brc_error *err)
{
    static const brc_buf empty = BRC_BUF_INIT;
    void *p;
    BRC_TRY(brc_new(&p, sizeof(brc_merged_node), err));
    spot->merged = p;
    spot->merged->text = empty;
    spot->merged->doc = spot->entry.doc;
    spot->merged->storage = spot->entry.storage;
    spot->merged->map = spot->entry.map;
    return BRC_OK;
}
