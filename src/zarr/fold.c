/*
 * Folding a draft into a snapshot: its rows become edits of the maps that they
 * lie over, from the leaves up. What no row touches is not read.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/arena.h"
#include "../history/map_totals.h"
#include "hidden_nodes.h"
#include "session.h"

#define CHUNK_BATCH 65536

/* ---- chunks -------------------------------- */

typedef struct fold_batch {
    brc_store *store;
    brc_oid map;
    brc_arena arena;
    void *edits; /* brc_edit[] */
    size_t n, cap;
} fold_batch;

static int fold_flush(fold_batch *b, brc_error *err)
{
    brc_oid out;
    if (b->n == 0)
        return BRC_OK;
    BRC_TRY(brc_map_edit(b->store, &b->map, b->edits, b->n, &out, err));
    BRC_TRY(brc_map_total_follow(b->store, &b->map, &out, b->edits, b->n, err));
    b->map = out;
    b->n = 0;
    brc_arena_dispose(&b->arena);
    return brc_store_check_interrupt(b->store, err);
}

static int fold_add(fold_batch *b, const void *key, size_t key_len, const void *value,
                    size_t value_len, brc_error *err)
{
    uint8_t *k, *v = NULL;
    BRC_TRY(brc_grow_array(&b->edits, &b->cap, b->n + 1, sizeof(brc_edit), err));
    BRC_TRY(brc_arena_copy(&b->arena, key, key_len, &k, err));
    if (value != NULL)
        BRC_TRY(brc_arena_copy(&b->arena, value, value_len, &v, err));
    ((brc_edit *)b->edits)[b->n++] = (brc_edit){k, key_len, v, value_len};
    return BRC_OK;
}

static int fold_chunk(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id,
                      brc_error *err)
{
    fold_batch *b = ctx;
    BRC_TRY(
        fold_add(b, key, key_len, id != NULL ? id->bytes : NULL, brc_store_id_len(b->store), err));
    return b->n < CHUNK_BATCH ? BRC_OK : fold_flush(b, err);
}

static void fold_dispose(fold_batch *b)
{
    brc_arena_dispose(&b->arena);
    free(b->edits);
}

int brc_fold_chunks(brc_store *store, const brc_entry *entry, const brc_draft_stack *rows,
                    brc_oid *map, brc_error *err)
{
    fold_batch b = {.store = store, .map = entry->map};
    int rc = BRC_OK;
    if (rows->n > 0)
        rc = brc_draft_chunk_each(store, rows, fold_chunk, &b, err);
    if (rc == BRC_OK)
        rc = fold_flush(&b, err);
    *map = b.map;
    fold_dispose(&b);
    return rc;
}

/* ---- nodes -------------------------------- */

/* A subtree is one run. */
static int fold_path_order(const void *a, const void *b)
{
    return brc_path_order(((const brc_draft_node *)a)->path, ((const brc_draft_node *)b)->path);
}

typedef struct fold_nodes {
    brc_session *s;
    const brc_draft_node *rows;
    const brc_hidden_nodes *hidden; /* gone where nothing is in them */
} fold_nodes;

static int fold_edit_order(const void *a, const void *b)
{
    const brc_edit *x = a, *y = b;
    size_t min = x->key_len < y->key_len ? x->key_len : y->key_len;
    int order = memcmp(x->key, y->key, min);
    return order != 0 ? order : (x->key_len > y->key_len) - (x->key_len < y->key_len);
}

static int fold_node(const fold_nodes *f, size_t depth, size_t lo, size_t hi, brc_entry *entry,
                     brc_error *err);

/* One child of a group: rows[lo..hi) are its own and those under it, and its name
 * is at rows[lo].path + depth. */
static int fold_child(const fold_nodes *f, const brc_entry *group, size_t depth, size_t lo,
                      size_t hi, fold_batch *b, brc_error *err)
{
    const char *name = f->rows[lo].path + depth;
    size_t len = strcspn(name, "/");
    uint8_t value[BRC_ENTRY_MAX];
    brc_entry entry;
    brc_buf key = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_child_key(&key, name, len, err)); /* ends with a zero: also a C string */
    BRC_GO(brc_entry_find(b->store, group, (const char *)key.data, &entry, err));
    BRC_GO(fold_node(f, depth + len, lo, hi, &entry, err));
    if (entry.kind == 0) {
        rc = fold_add(b, key.data, key.len, NULL, 0, err);
    } else {
        size_t n = brc_entry_encode(value, &entry, brc_store_id_len(b->store));
        rc = fold_add(b, key.data, key.len, value, n, err);
    }
done:
    brc_buf_dispose(&key);
    return rc;
}

static int fold_group(const fold_nodes *f, size_t depth, size_t lo, size_t hi, brc_entry *entry,
                      brc_error *err)
{
    fold_batch b = {.store = f->s->repo->store, .map = entry->map};
    int rc = BRC_OK;
    for (size_t at = lo; at < hi && rc == BRC_OK;) {
        const char *name = f->rows[at].path + depth + 1;
        size_t len = strcspn(name, "/"), end = at + 1;
        while (end < hi && strncmp(f->rows[end].path + depth + 1, name, len) == 0 &&
               (f->rows[end].path[depth + 1 + len] == '/' ||
                f->rows[end].path[depth + 1 + len] == '\0'))
            end++;
        rc = fold_child(f, entry, depth + 1, at, end, &b, err);
        at = end;
    }
    if (rc == BRC_OK && b.n > 1)
        qsort(b.edits, b.n, sizeof(brc_edit), fold_edit_order);
    if (rc == BRC_OK)
        rc = fold_flush(&b, err);
    entry->map = b.map;
    fold_dispose(&b);
    return rc;
}

/* rows[lo..hi) are those at and under a node whose path has `depth` bytes; `entry`
 * is what it was without them, and what it becomes. */
static int fold_node(const fold_nodes *f, size_t depth, size_t lo, size_t hi, brc_entry *entry,
                     brc_error *err)
{
    brc_draft_stack stack;
    int64_t row = 0;
    int hidden = 0;
    if (f->rows[lo].path[depth] == '\0') {
        const brc_draft_node *own = &f->rows[lo++];
        hidden = depth > 0 && brc_is_hidden_node(f->hidden, own->path);
        row = own->node;
        memset(entry, 0, sizeof(*entry));
        if (own->entry == NULL)
            return BRC_OK;
        BRC_TRY(brc_entry_decode(entry, (brc_span){own->entry, own->entry_len},
                                 brc_store_id_len(f->s->repo->store), err));
    }
    if (entry->kind == 0)
        return brc_fail(err, BRC_ECORRUPT, "the uncommitted changes are damaged: %s has no parent; "
                                           "'reset --hard HEAD' drops them",
                        f->rows[lo].path);
    BRC_TRY(brc_draft_stack_get(f->s->repo->store, row, &stack, err));
    BRC_TRY(entry->kind == BRC_ARRAY
                ? brc_fold_chunks(f->s->repo->store, entry, &stack, &entry->map, err)
                : fold_group(f, depth, lo, hi, entry, err));
    if (hidden && brc_oid_is_zero(&entry->map))
        memset(entry, 0, sizeof(*entry));
    return BRC_OK;
}

/* A row's path may be anything, and folding goes down its names. */
static int fold_check_paths(const brc_draft_node *rows, size_t n, brc_error *err)
{
    for (size_t i = 0; i < n; i++) {
        int rc = brc_path_is_normal(rows[i].path, err);
        if (rc < 0) {
            brc_context(err, "the uncommitted changes are damaged; 'reset --hard HEAD' drops them");
            return rc;
        }
    }
    return BRC_OK;
}

int brc_session_fold(brc_session *s, brc_oid *out, brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_draft_node *rows = NULL;
    brc_hidden_nodes hidden = {0};
    brc_entry root;
    size_t n = 0;
    int rc;
    BRC_GO(brc_snapshot_find(store, &s->base, "/", &root, err));
    if (s->draft.id != 0)
        BRC_GO(brc_draft_node_list(store, s->draft.id, "/", 1, &rows, &n, err));
    BRC_GO(fold_check_paths(rows, n, err));
    if (s->draft.id != 0)
        BRC_GO(brc_draft_docs_store(store, s->draft.id, err));
    if (n > 0)
        qsort(rows, n, sizeof(*rows), fold_path_order);
    if (n > 0)
        BRC_GO(brc_hidden_nodes_read(&hidden, store, s->draft.id, err));
    fold_nodes f = {s, rows, &hidden};
    if (n > 0 && strcmp(rows[0].path, "/") == 0) /* so that it begins every other */
        rows[0].path[0] = '\0';
    if (n > 0)
        BRC_GO(fold_node(&f, 0, 0, n, &root, err));
    if (root.kind == BRC_ARRAY && brc_oid_is_zero(&root.map) && brc_is_hidden_node(&hidden, "/"))
        root = (brc_entry){.kind = BRC_GROUP};
    if (root.kind == 0) {
        rc = brc_fail(err, BRC_ECORRUPT,
                      "the uncommitted changes are damaged: they remove the root node; "
                      "'reset --hard HEAD' drops them");
        goto done;
    }
    BRC_GO(brc_snapshot_put(store, &root, out, err));
    rc = brc_map_total_follow(store, &s->base, out, NULL, 0, err);
done:
    brc_hidden_nodes_dispose(&hidden);
    brc_draft_nodes_free(rows, n);
    return rc;
}
