/*
 * Folds a draft with very many rows ahead of its commit. The nodes of the trees are objects, named
 * by their hash, so they can be written before anything refers to them: in transactions of
 * BRC_FOLD_ROWS rows, between which others read and write. A commit that ends before its last
 * transaction leaves only objects that nobody needs.
 *
 * What others write into the shared draft meanwhile is not lost, and does not invalidate the work:
 * an array's rows first get an empty row over them (brc_draft_stack_push()). All later writes go
 * into that row, and the rows below do not change until they are dropped. The map that is made of
 * the lower rows therefore stays valid, and the commit's last transaction only has to fold the rows
 * above.
 */
#include "fold.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../history/totals.h"
#include "../store/change.h"
#include "../store/collect.h"
#include "session_nodes.h"

static int folded_find(const brc_folded *folded, int64_t row, const brc_oid *base, brc_oid *map);

/* ==== fold ahead ================================ */

/* The number of an array's rows that are left to the last transaction, and of nodes that are read
 * at once. */
enum { AHEAD_FEW = 1024, AHEAD_NODES = 256 };

void brc_folded_dispose(brc_folded *folded)
{
    free(folded->maps);
    memset(folded, 0, sizeof(*folded));
}

static int folded_add(brc_folded *folded, int64_t row, const brc_oid *base, const brc_oid *map,
                      brc_error *err)
{
    BRC_TRY(brc_grow_array(&folded->maps, &folded->cap, folded->n + 1, sizeof(brc_folded_map),
                           err));
    ((brc_folded_map *)folded->maps)[folded->n++] = (brc_folded_map){row, *base, *map};
    return BRC_OK;
}

/* ---- a single array -------------------------------- */

/* Finds the first row of a stack that has many chunks; n: none has. */
static int first_large(brc_store *store, const brc_draft_stack *stack, size_t *at, brc_error *err)
{
    int many = 0;
    for (*at = 0; *at < stack->n; ++*at) {
        BRC_TRY(brc_draft_row_exceeds(store, stack->node[*at], AHEAD_FEW, &many, err));
        if (many)
            return BRC_OK;
    }
    return BRC_OK;
}

static void stack_from(brc_draft_stack *stack, size_t at)
{
    stack->n -= at;
    memmove(stack->node, stack->node + at, stack->n * sizeof(*stack->node));
}

/* Finds, within a change of the session, those rows of a path that nobody writes into from now on;
 * none if the array is small. In a stack of the greatest allowed height these are the rows below
 * the first. */
static int still_rows(brc_session *s, const char *path, brc_entry *entry, brc_draft_stack *rows,
                       brc_error *err)
{
    brc_store *store = s->repo->store;
    int64_t node, top;
    size_t at;
    rows->n = 0;
    BRC_TRY(brc_session_find(s, path, entry, &node, err));
    if (entry->kind != BRC_ARRAY || node == 0)
        return BRC_OK;
    BRC_TRY(brc_draft_stack_get(store, node, rows, err));
    BRC_TRY(first_large(store, rows, &at, err));
    if (at == 0 && rows->n == BRC_DRAFT_STACK_MOST)
        at = 1;
    if (at == 0 && rows->n > 0)
        BRC_TRY(brc_draft_stack_push(store, node, path, &top, err));
    stack_from(rows, at);
    return BRC_OK;
}

int brc_hold_still(brc_session *s, const char *path, brc_entry *entry, brc_draft_stack *rows,
                   brc_error *err)
{
    BRC_TRY(brc_session_begin(s, err));
    return brc_session_end(s, still_rows(s, path, entry, rows, err), err);
}

static int fold_large(brc_session *s, const char *path, brc_folded *out, brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_fold how = {.way = BRC_FOLD_SHORT_WRITES};
    brc_draft_stack rows, rest;
    brc_entry entry;
    brc_oid base, map;
    BRC_TRY(brc_hold_still(s, path, &entry, &rows, err));
    base = entry.map;
    rest = rows;
    for (size_t i = 0; i < rows.n; i++)
        if (folded_find(out, rows.node[i], &entry.map, &base)) {
            if (i == 0)
                return BRC_OK;
            rest.n = i;
            break;
        }
    if (rows.n == 0)
        return BRC_OK;
    int rc = brc_fold_stack(store, &how, &base, &rest, &map, err);
    BRC_TRY(brc_fold_end(store, &how, rc, err));
    return folded_add(out, rows.node[0], &entry.map, &map, err);
}

/* ---- all arrays of a draft -------------------------------- */

int brc_stack_is_large(brc_store *store, const brc_draft_stack *stack, int *large, brc_error *err)
{
    size_t at = 0;
    BRC_TRY(first_large(store, stack, &at, err));
    *large = at < stack->n;
    return BRC_OK;
}

int brc_has_many_chunks(brc_store *store, const brc_draft_node *node, int *large, brc_error *err)
{
    brc_draft_stack stack;
    *large = 0;
    if (node->entry == NULL)
        return BRC_OK;
    BRC_TRY(brc_draft_stack_get(store, node->node, &stack, err));
    return brc_stack_is_large(store, &stack, large, err);
}

static int fold_page_of_nodes(brc_session *s, brc_draft_rows *rows, size_t from, brc_folded *out,
                              brc_error *err)
{
    const brc_draft_node *nodes = rows->nodes;
    int large;
    for (size_t i = from; i < rows->n; i++) {
        BRC_TRY(brc_has_many_chunks(s->repo->store, &nodes[i], &large, err));
        if (large)
            BRC_TRY(fold_large(s, nodes[i].path, out, err));
        BRC_TRY(brc_store_check_interrupt(s->repo->store, err));
    }
    return BRC_OK;
}

/* Reads which draft the session has and its state, in a read of its own. */
static int look_at_draft(brc_session *s, brc_error *err)
{
    BRC_TRY(brc_session_begin_read(s, err));
    brc_session_end_read(s);
    return BRC_OK;
}

static int fold_arrays(brc_session *s, brc_folded *out, brc_error *err)
{
    brc_draft_rows rows = {0};
    size_t before;
    int rc;
    BRC_TRY(look_at_draft(s, err));
    const int64_t draft = s->draft.id;
    do {
        before = rows.n;
        rc = brc_draft_node_page(s->repo->store, draft, &rows, AHEAD_NODES, err);
        if (rc == BRC_OK)
            rc = fold_page_of_nodes(s, &rows, before, out, err);
    } while (rc == BRC_OK && rows.n - before == AHEAD_NODES);
    brc_draft_nodes_free(rows.nodes, rows.n);
    return rc;
}

/* Folds the whole draft. The result counts only if the counter has not moved. If the counter has
 * moved by the end, an error may come from the change, and the cause is not known. */
static int fold_all(brc_session *s, brc_folded *out, brc_error *err)
{
    brc_fold how = {.way = BRC_FOLD_SHORT_WRITES, .folded = out};
    brc_error found = BRC_ERROR_INIT;
    BRC_TRY(look_at_draft(s, err));
    const brc_draft_head before = s->draft;
    int rc = brc_session_fold(s, &how, &out->root, &found);
    BRC_TRY(look_at_draft(s, err));
    const int same = s->draft.id == before.id && s->draft.changes == before.changes;
    if (rc < 0 && (same || rc != BRC_ECORRUPT)) {
        if (err != NULL)
            brc_error_copy(err, &found);
        return rc;
    }
    out->has_root = rc == BRC_OK;
    out->draft = before.id;
    out->changes = before.changes;
    return BRC_OK;
}

int brc_fold_ahead(brc_session *s, int all, brc_folded *out, brc_error *err)
{
    int64_t last;
    BRC_TRY(brc_gc_last(s->repo->store, &last, err));
    if (last != out->collected)
        out->n = 0;
    out->collected = last;
    out->has_root = 0;
    const int changes = brc_session_can_change(s, NULL) == BRC_OK; /* otherwise it has no writer */
    brc_store_walk_begin(s->repo->store);
    int rc = changes ? fold_arrays(s, out, err) : BRC_OK;
    if (rc == BRC_OK && all)
        rc = fold_all(s, out, err);
    brc_store_walk_end(s->repo->store);
    return rc;
}

int brc_fold_whole(brc_session *s, brc_folded *out, brc_error *err)
{
    do
        BRC_TRY(brc_fold_ahead(s, 1, out, err));
    while (!out->has_root);
    return BRC_OK;
}

int brc_folding_work(brc_folding *f, brc_session *s, brc_error *err)
{
    return f->fold.is_too_much ? brc_fold_ahead(s, f->times++ > 0, &f->folded, err) : BRC_OK;
}

void brc_folding_begin(brc_folding *f, int insists)
{
    f->fold = (brc_fold){.way = BRC_FOLD_AT_ONCE,
                         .most = insists ? 0 : BRC_FOLD_ROWS,
                         .folded = &f->folded};
}

int brc_folding_end(const brc_folding *f, int rc)
{
    if (rc >= 0 || !f->fold.is_too_much)
        return rc;
    return f->times == 0 ? BRC_CHANGE_WORK : BRC_CHANGE_AGAIN;
}

void brc_folding_dispose(brc_folding *f)
{
    brc_folded_dispose(&f->folded);
}

/* ==== fold ================================ */

/* The number of chunks that are read and looked up in the order of the index before they are folded
 * batch by batch. */
#define FOLD_CHUNKS (8 * (size_t)BRC_FOLD_ROWS)

/* The number of node rows read at once and of documents stored at once; and the cost of a map or a
 * document, counted in rows. */
enum { FOLD_NODES = 2048, FOLD_DOCS = 256, FOLD_EACH = 16, FOLD_LOOK_UP = 1024 };

/* ---- batches -------------------------------- */

/* Counts n more rows of the draft as read. */
static int fold_count(brc_fold *how, size_t n, brc_error *err)
{
    how->rows += n;
    if (how->most == 0 || how->rows <= how->most)
        return BRC_OK;
    how->is_too_much = 1;
    return brc_fail(err, BRC_ELIMIT, "the uncommitted changes are too many for one transaction");
}

/* Lets others use the lock if n more rows are too many for one batch. */
static int fold_rest(brc_store *store, brc_fold *how, size_t n, brc_error *err)
{
    BRC_TRY(brc_store_check_interrupt(store, err));
    if (how->batch > 0 && how->batch + n > BRC_FOLD_ROWS) {
        how->batch = 0;
        if (how->way == BRC_FOLD_SHORT_READS)
            brc_store_pause_read(store);
        if (how->is_open) {
            how->is_open = 0;
            BRC_TRY(brc_store_end(store, 1, err));
        }
    }
    how->batch += n;
    return BRC_OK;
}

/* Prepares for storing nodes. */
static int fold_write(brc_store *store, brc_fold *how, size_t n, brc_error *err)
{
    BRC_TRY(fold_rest(store, how, n, err));
    if (how->way != BRC_FOLD_SHORT_WRITES || how->is_open)
        return BRC_OK;
    BRC_TRY(brc_store_begin(store, err));
    how->is_open = 1;
    return BRC_OK;
}

int brc_fold_end(brc_store *store, brc_fold *how, int rc, brc_error *err)
{
    if (!how->is_open)
        return rc;
    how->is_open = 0;
    int ended = brc_store_end(store, rc == BRC_OK, err);
    return rc < 0 ? rc : ended;
}

typedef struct fold_batch {
    brc_store *store;
    brc_fold *how;
    brc_oid map;
    brc_arena arena;
    void *edits; /* brc_edit[] */
    size_t n, cap;
} fold_batch;

static int fold_edit(fold_batch *b, const brc_edit *edits, size_t n, const brc_chunk_sizes *sizes,
                     brc_error *err)
{
    brc_oid out;
    BRC_TRY(fold_count(b->how, FOLD_EACH, err));
    BRC_TRY(fold_write(b->store, b->how, n + FOLD_EACH, err));
    BRC_TRY(brc_map_edit_total(b->store, &b->map, edits, n, sizes, &out, err));
    b->map = out;
    return BRC_OK;
}

static int fold_edits(fold_batch *b, const brc_chunk_sizes *sizes, brc_error *err)
{
    for (size_t at = 0; at < b->n; at += BRC_FOLD_ROWS)
        BRC_TRY(fold_edit(b, (const brc_edit *)b->edits + at,
                          b->n - at < BRC_FOLD_ROWS ? b->n - at : BRC_FOLD_ROWS, sizes, err));
    return BRC_OK;
}

/* Folds many chunks. Looks them up before a transaction begins, because they lie all over the
 * index. */
static int fold_many(fold_batch *b, brc_error *err)
{
    brc_chunk_sizes sizes = BRC_CHUNK_SIZES_INIT;
    int rc;
    BRC_GO(fold_rest(b->store, b->how, BRC_FOLD_ROWS, err));
    BRC_GO(brc_store_begin_read(b->store, err));
    rc = brc_chunk_sizes_read(&sizes, b->store, b->edits, b->n, err);
    brc_store_end_read(b->store);
    if (rc == BRC_OK)
        rc = fold_edits(b, &sizes, err);
done:
    brc_chunk_sizes_dispose(&sizes);
    return rc;
}

static int fold_flush(fold_batch *b, brc_error *err)
{
    const int many = b->how->way == BRC_FOLD_SHORT_WRITES
                         ? b->n > FOLD_LOOK_UP
                         : b->n > BRC_FOLD_ROWS && brc_store_keeps_totals(b->store);
    BRC_TRY(many ? fold_many(b, err) : fold_edits(b, NULL, err));
    b->n = 0;
    brc_arena_dispose(&b->arena);
    return BRC_OK;
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

static void fold_dispose(fold_batch *b)
{
    brc_arena_dispose(&b->arena);
    free(b->edits);
}

/* ---- chunks -------------------------------- */

static int fold_chunk(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id,
                      brc_error *err)
{
    fold_batch *b = ctx;
    return fold_add(b, key, key_len, id != NULL ? id->bytes : NULL, brc_store_id_len(b->store),
                    err);
}

/* Returns the number of keys of a stack that are read at once: each row contributes as many. */
static size_t fold_page(const brc_draft_stack *rows)
{
    enum { LEAST = 256 };
    const size_t n = BRC_FOLD_ROWS / rows->n;
    return n > LEAST ? n : LEAST;
}

/* Reads the next rows after *after, and sets *after to the last of them. Uses one read: between two
 * reads, others may move a chunk from one row of the stack to another. */
static int fold_read(fold_batch *b, const brc_draft_stack *rows, brc_buf *after, int is_first,
                     size_t *n, brc_error *err)
{
    const size_t before = b->n;
    const int is_alone = b->how->way == BRC_FOLD_SHORT_WRITES && !b->how->is_open;
    const brc_span from = {is_first ? NULL : after->data, after->len};
    if (is_alone)
        BRC_TRY(brc_store_begin_read(b->store, err));
    int rc = brc_draft_chunk_page(b->store, rows, from, fold_page(rows), fold_chunk, b, err);
    if (is_alone)
        brc_store_end_read(b->store);
    if (rc < 0)
        return rc;
    *n = b->n - before;
    if (*n == 0)
        return BRC_OK;
    const brc_edit *last = (const brc_edit *)b->edits + (b->n - 1);
    after->len = 0;
    BRC_TRY(brc_buf_append(after, last->key, last->key_len, err));
    return fold_count(b->how, *n, err);
}

int brc_fold_stack(brc_store *store, brc_fold *how, const brc_oid *base,
                   const brc_draft_stack *rows, brc_oid *map, brc_error *err)
{
    fold_batch b = {.store = store, .how = how, .map = *base};
    brc_buf after = BRC_BUF_INIT;
    size_t n = 0;
    int rc = BRC_OK, is_first = 1;
    do {
        n = 0;
        if (!is_first)
            BRC_GO(fold_rest(store, how, fold_page(rows), err));
        if (rows->n > 0)
            BRC_GO(fold_read(&b, rows, &after, is_first, &n, err));
        is_first = 0;
        if (b.n >= FOLD_CHUNKS)
            BRC_GO(fold_flush(&b, err));
    } while (rows->n > 0 && n >= fold_page(rows));
    rc = fold_flush(&b, err);
    *map = b.map;
done:
    brc_buf_dispose(&after);
    fold_dispose(&b);
    return rc;
}

int brc_fold_chunks(brc_store *store, const brc_entry *entry, const brc_draft_stack *rows,
                    brc_oid *map, brc_error *err)
{
    brc_fold how = {.way = BRC_FOLD_AT_ONCE};
    return brc_fold_stack(store, &how, &entry->map, rows, map, err);
}

/* ---- nodes -------------------------------- */

/* Orders paths so that a subtree is one run. */
static int fold_path_order(const void *a, const void *b)
{
    return brc_path_order(((const brc_draft_node *)a)->path, ((const brc_draft_node *)b)->path);
}

typedef struct fold_nodes {
    brc_store *store;
    brc_fold *how;
    brc_draft_node *rows;
    const brc_hidden_nodes *hidden; /* left out if they are empty */
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

/* Folds one child of a group: rows[lo..hi) are the child's row and the rows under it, and the
 * child's name is at rows[lo].path + depth. */
static int fold_child(const fold_nodes *f, const brc_entry *group, size_t depth, size_t lo,
                      size_t hi, fold_batch *b, brc_error *err)
{
    const char *name = f->rows[lo].path + depth;
    size_t len = strcspn(name, "/");
    uint8_t value[BRC_ENTRY_MAX];
    brc_entry entry;
    brc_buf key = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_child_key(&key, name, len, err)); /* ends with a zero: a C string too */
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
    fold_batch b = {.store = f->store, .how = f->how, .map = entry->map};
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

/* Finds a folded map of this row over this base. Returns 1 if there is one. */
static int folded_find(const brc_folded *folded, int64_t row, const brc_oid *base, brc_oid *map)
{
    const brc_folded_map *maps = folded->maps;
    for (size_t i = 0; i < folded->n; i++) {
        if (maps[i].row != row || brc_oid_cmp(&maps[i].base, base) != 0)
            continue;
        *map = maps[i].map;
        return 1;
    }
    return 0;
}

/* Folds an array's chunks, starting from the lowest rows that were folded before. */
static int fold_array(const fold_nodes *f, int64_t row, brc_entry *entry, brc_error *err)
{
    brc_draft_stack stack;
    brc_oid base = entry->map;
    BRC_TRY(brc_draft_stack_get(f->store, row, &stack, err));
    for (size_t i = 0; i < stack.n && f->how->folded != NULL; i++)
        if (folded_find(f->how->folded, stack.node[i], &entry->map, &base))
            stack.n = i;
    return brc_fold_stack(f->store, f->how, &base, &stack, &entry->map, err);
}

/* Folds rows[lo..hi), which are at and under a node whose path has `depth` bytes. `entry` is the
 * node without these rows on entry, and with them on return. */
static int fold_node(const fold_nodes *f, size_t depth, size_t lo, size_t hi, brc_entry *entry,
                     brc_error *err)
{
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
                                 brc_store_id_len(f->store), err));
    }
    if (entry->kind == 0)
        return brc_fail(err, BRC_ECORRUPT, "the uncommitted changes are damaged: %s has no parent; "
                                           "'reset --hard HEAD' drops them",
                        f->rows[lo].path);
    BRC_TRY(entry->kind == BRC_ARRAY ? fold_array(f, row, entry, err)
                                     : fold_group(f, depth, lo, hi, entry, err));
    if (hidden && brc_oid_is_zero(&entry->map))
        memset(entry, 0, sizeof(*entry));
    return BRC_OK;
}

/* Checks the paths of rows, which may be anything in a hostile file: folding recurses by their
 * names. */
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

/* Lists all rows of nodes by path, in pages. */
static int fold_list(brc_store *store, int64_t draft, brc_fold *how, brc_draft_rows *rows,
                     brc_error *err)
{
    size_t before;
    if (draft == 0)
        return BRC_OK;
    do {
        before = rows->n;
        BRC_TRY(fold_rest(store, how, FOLD_NODES, err));
        BRC_TRY(brc_draft_node_page(store, draft, rows, FOLD_NODES, err));
        BRC_TRY(fold_count(how, rows->n - before, err));
    } while (rows->n - before == FOLD_NODES);
    return fold_check_paths(rows->nodes, rows->n, err);
}

/* Stores the documents that only the draft has: as objects for a commit, otherwise in memory, so
 * that the result stays readable when the draft has changed. */
static int fold_docs(brc_session *s, brc_fold *how, brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_buf path = BRC_BUF_INIT;
    int more = 0, rc;
    if (s->draft.id == 0)
        return BRC_OK;
    BRC_TRY(brc_draft_docs_any(store, &more, err));
    if (more)
        BRC_TRY(brc_buf_text(&path, "!", err)); /* sorts before every path: '/' follows */
    for (rc = BRC_OK; more && rc == BRC_OK;) {
        rc = fold_write(store, how, FOLD_DOCS * FOLD_EACH, err);
        if (rc == BRC_OK)
            rc = brc_draft_docs_store(store, s->draft.id, &path, FOLD_DOCS, &more, err);
    }
    brc_buf_dispose(&path);
    return rc;
}

/* Folds every row into the root's entry. */
static int fold_root(const fold_nodes *f, size_t n, brc_entry *root, brc_error *err)
{
    if (n > 0 && strcmp(f->rows[0].path, "/") == 0) /* the root's row then precedes all others */
        f->rows[0].path[0] = '\0';
    if (n > 0)
        BRC_TRY(fold_node(f, 0, 0, n, root, err));
    if (root->kind == BRC_ARRAY && brc_oid_is_zero(&root->map) &&
        brc_is_hidden_node(f->hidden, "/"))
        *root = (brc_entry){.kind = BRC_GROUP};
    if (root->kind != 0)
        return BRC_OK;
    return brc_fail(err, BRC_ECORRUPT,
                    "the uncommitted changes are damaged: they remove the root node; "
                    "'reset --hard HEAD' drops them");
}

static int fold_rows(brc_session *s, brc_fold *how, brc_oid *out, brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_draft_rows rows = {0};
    brc_hidden_nodes hidden = {0};
    brc_entry root;
    int rc;
    BRC_GO(brc_snapshot_find(store, &s->base, "/", &root, err));
    BRC_GO(fold_list(store, s->draft.id, how, &rows, err));
    BRC_GO(fold_docs(s, how, err));
    if (rows.n > 0) {
        qsort(rows.nodes, rows.n, sizeof(brc_draft_node), fold_path_order);
        BRC_GO(brc_hidden_nodes_read(&hidden, store, s->draft.id, err));
    }
    const fold_nodes f = {store, how, rows.nodes, &hidden};
    BRC_GO(fold_root(&f, rows.n, &root, err));
    BRC_GO(fold_write(store, how, 1, err));
    BRC_GO(brc_snapshot_put(store, &root, out, err));
    rc = brc_map_total_follow(store, &s->base, out, err);
done:
    brc_hidden_nodes_dispose(&hidden);
    brc_draft_nodes_free(rows.nodes, rows.n);
    return rc;
}

/* Forgets the maps that were made ahead if a collection began after them: nothing names them, so
 * the collection may have removed them. */
static int forget_collected(brc_store *store, brc_folded *made, brc_error *err)
{
    int64_t last;
    BRC_TRY(brc_gc_last(store, &last, err));
    if (last != made->collected)
        made->n = (size_t)(made->has_root = 0);
    return BRC_OK;
}

int brc_session_fold(brc_session *s, brc_fold *how, brc_oid *out, brc_error *err)
{
    brc_fold at_once = {.way = BRC_FOLD_AT_ONCE};
    if (how == NULL)
        how = &at_once;
    if (how->folded != NULL && how->way == BRC_FOLD_AT_ONCE)
        BRC_TRY(forget_collected(s->repo->store, how->folded, err));
    const brc_folded *made = how->folded;
    if (made != NULL && made->has_root && made->draft == s->draft.id &&
        made->changes == s->draft.changes) {
        *out = made->root;
        return BRC_OK;
    }
    return brc_fold_end(s->repo->store, how, fold_rows(s, how, out, err), err);
}
