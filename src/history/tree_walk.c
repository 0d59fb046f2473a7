#include "tree_walk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../tree/map.h"

/* ==== budget ================================ */

brc_budget brc_budget_of(const brc_store *store)
{
    return (brc_budget){ .max = brc_store_max_nodes(store) };
}

int brc_budget_take(brc_budget *budget, brc_error *err)
{
    if (budget->used == budget->max)
        return brc_fail(err, BRC_ELIMIT,
                        "more than %" PRIu64 " nodes to visit, which is the limit: a larger "
                        "--max-nodes (brc_open_opts.max_nodes) raises it",
                        budget->max);
    budget->used++;
    return BRC_OK;
}

/* ==== tree walk ================================ */

/* A group whose children are being returned. */
typedef struct walk_level {
    brc_tree_node node;
    brc_map_cursor map;
    int map_due; /* the cursor is at the child that was returned last             */
    size_t path_len;
    size_t row_at, row_end; /* indexes in the walk's rows: the rows under the group that were not
                             * met yet */
} walk_level;

struct brc_tree_walk {
    brc_store *store;
    brc_budget budget;
    int flags;
    int begun;
    size_t base_depth;          /* number of names in the path of the first node */
    brc_buf path;
    brc_tree_node node;         /* the node that was returned last                */
    size_t node_row_at, node_row_end;
    int enter;                  /* its children come next                         */
    brc_draft_node *rows;       /* in the order of the walk                       */
    size_t nrows;
    walk_level *levels[BRC_DEPTH_MAX + 1];
    size_t depth;
};

/* ---- beginning and ending -------------------------------- */

static int walk_row_order(const void *a, const void *b)
{
    return brc_path_order(((const brc_draft_node *)a)->path, ((const brc_draft_node *)b)->path);
}

/* Merges two lists of rows, which are sorted; of two rows with the same path the upper one
 * counts. */
static int walk_lay_rows(brc_tree_walk *w, brc_draft_node *upper, size_t n, brc_error *err)
{
    void *p;
    size_t at = 0, kept = 0, i = 0;
    BRC_TRY(brc_new_array(&p, w->nrows + n, sizeof(*upper), err));
    brc_draft_node *all = p;
    while (at < w->nrows || i < n) {
        int order = at == w->nrows ? 1 : i == n ? -1 : walk_row_order(&w->rows[at], &upper[i]);
        if (order == 0) {
            free(w->rows[at].path);
            free(w->rows[at].entry);
        }
        all[kept++] = order < 0 ? w->rows[at] : upper[i];
        at += order <= 0;
        i += order >= 0;
    }
    free(w->rows);
    free(upper);
    w->rows = all;
    w->nrows = kept;
    return BRC_OK;
}

static int walk_read_rows(brc_tree_walk *w, int64_t draft, const char *path, brc_error *err)
{
    brc_draft_node *rows;
    size_t n;
    if (draft == 0)
        return BRC_OK;
    if (w->flags & BRC_WALK_RECURSE)
        BRC_TRY(brc_draft_node_list(w->store, draft, path, 0, &rows, &n, err));
    else
        BRC_TRY(brc_draft_child_list(w->store, draft, path, &rows, &n, err));
    if (n > 1)
        qsort(rows, n, sizeof(*rows), walk_row_order);
    if (w->nrows > 0 && n > 0) {
        int rc = walk_lay_rows(w, rows, n, err);
        if (rc < 0)
            brc_draft_nodes_free(rows, n);
        BRC_TRY(rc);
    } else if (n > 0) {
        w->rows = rows;
        w->nrows = n;
    }
    w->node_row_end = w->nrows;
    return BRC_OK;
}

int brc_tree_walk_new(brc_tree_walk **out, brc_store *store, const char *path,
                      const brc_entry *entry, int64_t row, const int64_t drafts[2], int flags,
                      brc_error *err)
{
    void *p;
    int rc;
    *out = NULL;
    BRC_TRY(brc_new(&p, sizeof(brc_tree_walk), err));
    brc_tree_walk *w = p;
    w->store = store;
    w->budget = brc_budget_of(store);
    w->flags = flags;
    w->node.entry = *entry;
    w->node.row = row;
    for (const char *at = path; *at != '\0'; at++)
        w->node.depth += *at == '/' && at[1] != '\0';
    w->base_depth = w->node.depth;
    BRC_GO(brc_buf_text(&w->path, path, err));
    BRC_GO(brc_buf_terminate(&w->path, err));
    for (int i = 0; i < 2 && entry->kind == BRC_GROUP; i++)
        BRC_GO(walk_read_rows(w, drafts[i], path, err));
    *out = w;
done:
    if (rc < 0)
        brc_tree_walk_free(w);
    return rc;
}

static void walk_pop(brc_tree_walk *w)
{
    walk_level *l = w->levels[--w->depth];
    brc_map_cursor_end(&l->map);
    free(l);
}

void brc_tree_walk_free(brc_tree_walk *w)
{
    if (w == NULL)
        return;
    while (w->depth > 0)
        walk_pop(w);
    brc_draft_nodes_free(w->rows, w->nrows);
    brc_buf_dispose(&w->path);
    free(w);
}

/* ---- paths -------------------------------- */

static void walk_set_path(brc_tree_walk *w)
{
    w->node.path = (const char *)w->path.data;
    const char *slash = strrchr(w->node.path, '/');
    w->node.name = slash != NULL ? slash + 1 : w->node.path;
}

/* Makes the path of a group's child; the name's `len` bytes may come from a stranger. */
static int walk_child_path(brc_tree_walk *w, const walk_level *l, const char *name, size_t len,
                           brc_error *err)
{
    w->path.len = l->path_len;
    if (l->path_len > 1)
        BRC_TRY(brc_buf_byte(&w->path, '/', err));
    BRC_TRY(brc_buf_append(&w->path, name, len, err));
    return brc_buf_terminate(&w->path, err);
}

/* ---- one group's children -------------------------------- */

/* Ends the map after a node that cannot be read, because the nodes behind it cannot be reached. */
static void walk_end_map(walk_level *l)
{
    brc_map_cursor_end(&l->map);
    l->map.at_end = 1;
}

static int walk_enter(brc_tree_walk *w, brc_error *err)
{
    void *p;
    w->enter = 0;
    BRC_TRY(brc_new(&p, sizeof(walk_level), err));
    walk_level *l = p;
    w->levels[w->depth++] = l;
    l->node = w->node;
    l->path_len = w->path.len;
    l->row_at = w->node_row_at;
    l->row_end = w->node_row_end;
    int rc = brc_map_cursor_start(&l->map, w->store, &w->node.entry.map, err);
    if (rc < 0)
        walk_end_map(l);
    return rc;
}

/* Finds the rows [row_at, *end) of the next child that has rows; the child's own row, if it has
 * one, is first. Returns 0 if there are no more. */
static int walk_next_rows(const brc_tree_walk *w, const walk_level *l, const char **name,
                          size_t *len, size_t *end)
{
    if (l->row_at == l->row_end)
        return 0;
    const char *path = w->rows[l->row_at].path;
    size_t at = l->path_len > 1 ? l->path_len + 1 : 1;
    *name = path + at;
    *len = strcspn(*name, "/");
    size_t low = l->row_at + 1, high = l->row_end; /* the rows of the child end in between */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *other = w->rows[middle].path;
        if (strncmp(other, path, at + *len) == 0 &&
            (other[at + *len] == '/' || other[at + *len] == '\0'))
            low = middle + 1;
        else
            high = middle;
    }
    *end = low;
    return 1;
}

/* Applies the draft's row for the child to w->node. Returns 1 if the child exists, else 0. */
static int walk_draft_says(brc_tree_walk *w, size_t own, size_t name_end, brc_error *err)
{
    const brc_draft_node *row = &w->rows[own];
    if (row->path[name_end] != '\0')
        return 0; /* only nodes under it have rows */
    w->node.row = row->node;
    memset(&w->node.entry, 0, sizeof(w->node.entry));
    if (row->entry != NULL)
        BRC_TRY(brc_entry_decode(&w->node.entry, (brc_span){ row->entry, row->entry_len },
                                 brc_store_id_len(w->store), err));
    return 1;
}

/* Finds the map's next child, or none; a node that cannot be read ends the map. */
static int walk_look_at_map(walk_level *l, brc_span *key, brc_error *err)
{
    int rc = l->map_due ? brc_map_cursor_step(&l->map, err) : BRC_OK;
    l->map_due = 0;
    if (rc == BRC_OK)
        rc = brc_map_cursor_descend(&l->map, err);
    if (rc < 0) {
        walk_end_map(l);
        return rc;
    }
    *key = l->map.at_end ? (brc_span){ NULL, 0 }
                         : (brc_span){ l->map.head.key, l->map.head.bits / 8 };
    return BRC_OK;
}

static int walk_take_from_map(brc_tree_walk *w, walk_level *l, brc_span key, brc_error *err)
{
    int rc = brc_child_decode(&w->node.entry, key, l->map.head.value, brc_store_id_len(w->store),
                              err);
    if (rc == BRC_OK)
        rc = walk_child_path(w, l, (const char *)key.data, key.len - 1, err);
    l->map_due = 1; /* the cursor moves on after the child has been returned */
    return rc;
}

static int walk_take_from_rows(brc_tree_walk *w, walk_level *l, const char *name, size_t len,
                               size_t end, brc_error *err)
{
    w->node_row_at = l->row_at;
    w->node_row_end = end;
    l->row_at = end;
    BRC_TRY(brc_name_is_stored(name, len, err));
    BRC_TRY(walk_child_path(w, l, name, len, err));
    int says = walk_draft_says(w, w->node_row_at, w->path.len, err);
    w->node_row_at += says > 0;
    return says < 0 ? says : BRC_OK;
}

/* Compares a row's name with a key, which is a name and a zero byte. */
static int walk_name_order(const char *name, size_t len, brc_span key)
{
    size_t key_len = key.len > 0 ? key.len - 1 : 0, min = len < key_len ? len : key_len;
    int order = min > 0 ? memcmp(name, key.data, min) : 0;
    return order != 0 ? order : (len > key_len) - (len < key_len);
}

/* Takes the next child from the map, from the rows, or from both into w->node, with kind 0 if it
 * does not exist. Returns 0 at the end. */
static int walk_take_child(brc_tree_walk *w, walk_level *l, brc_error *err)
{
    const char *name = NULL;
    size_t len = 0, end = 0;
    brc_span key;
    BRC_TRY(walk_look_at_map(l, &key, err));
    int has_rows = walk_next_rows(w, l, &name, &len, &end);
    if (!has_rows && key.data == NULL)
        return 0;
    memset(&w->node, 0, sizeof(w->node));
    w->node.depth = l->node.depth + 1;
    w->node_row_at = w->node_row_end = l->row_at;
    int order = !has_rows ? 1 : key.data == NULL ? -1 : walk_name_order(name, len, key);
    if (order >= 0)
        BRC_TRY(walk_take_from_map(w, l, key, err));
    if (order <= 0)
        BRC_TRY(walk_take_from_rows(w, l, name, len, end, err));
    return 1;
}

/* ---- stepping -------------------------------- */

static int walk_leave(brc_tree_walk *w, brc_tree_node *out, brc_error *err)
{
    walk_level *l = w->levels[w->depth - 1];
    w->path.len = l->path_len;
    w->node = l->node;
    walk_pop(w);
    BRC_TRY(brc_buf_terminate(&w->path, err));
    walk_set_path(w);
    w->node.leaving = 1;
    *out = w->node;
    return 1;
}

static int walk_give(brc_tree_walk *w, brc_tree_node *out, brc_error *err)
{
    BRC_TRY(brc_budget_take(&w->budget, err));
    BRC_TRY(brc_store_check_interrupt(w->store, err));
    walk_set_path(w);
    w->enter = w->node.entry.kind == BRC_GROUP &&
               (w->depth == 0 || (w->flags & BRC_WALK_RECURSE) != 0);
    *out = w->node;
    return 1;
}

int brc_tree_walk_next(brc_tree_walk *w, brc_tree_node *out, brc_error *err)
{
    if (!w->begun) {
        w->begun = 1;
        return walk_give(w, out, err);
    }
    if (w->enter) {
        int rc = walk_enter(w, err);
        if (rc < 0) {
            brc_context(err, "%.300s", (const char *)w->path.data);
            return rc;
        }
    }
    while (w->depth > 0) {
        walk_level *l = w->levels[w->depth - 1];
        int rc = walk_take_child(w, l, err);
        if (rc < 0) {
            w->path.len = l->path_len;
            w->path.data[l->path_len] = 0;
            brc_context(err, "%.300s", (const char *)w->path.data);
            return rc;
        }
        if (rc == 0 && (w->flags & BRC_WALK_LEAVE) != 0)
            return walk_leave(w, out, err);
        if (rc == 0)
            walk_pop(w);
        else if (w->node.entry.kind != 0) {
            BRC_TRY(brc_path_is_stored((const char *)w->path.data, w->path.len, w->node.depth,
                                       err));
            return walk_give(w, out, err);
        }
    }
    return 0;
}
