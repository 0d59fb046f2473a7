/* Computes the totals of a node of the hierarchy: every object counts once, however many paths lead
 * to it. */
#include "totals.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/hash.h"
#include "../tree/map.h"
#include "closure.h"

static int total_keep(brc_store *store, brc_total_rows *kept, const brc_oid *id,
                      const brc_node_total *total, brc_error *err);

/* ==== entry total ================================ */

/* The most arrays whose totals are remembered, because many entries may have the same map. */
#define ARRAYS_KNOWN ((size_t)1 << 16)

typedef struct part_total {
    brc_node_total total;
    int whole;
} part_total;

typedef struct entry_totals {
    brc_store *store;
    brc_closure *closure;
    brc_total_rows *kept;
    brc_id_table arrays; /* part_total: by the roots of their maps */
    void *sums;          /* part_total[]: of each node from the root down, the entry's first */
    size_t cap;
} entry_totals;

static part_total *sum_at(const entry_totals *e, size_t level)
{
    return (part_total *)e->sums + level;
}

static int add_part_total(entry_totals *e, size_t level, const part_total *more, brc_error *err)
{
    part_total *sum = sum_at(e, level);
    sum->whole &= more->whole;
    if (!brc_node_total_add(&sum->total, &more->total))
        return brc_fail(err, BRC_ECORRUPT,
                        "a map is damaged: it has more than can be counted; run 'breccia fsck'");
    return BRC_OK;
}

static int array_part(entry_totals *e, const brc_oid *root, part_total *out, brc_error *err)
{
    void *value = brc_id_table_find(&e->arrays, root);
    if (value == NULL) {
        BRC_TRY(brc_map_total(e->store, root, e->kept, &out->total, &out->whole, err));
        BRC_TRY(brc_id_table_add(&e->arrays, root, &value, err));
        *(part_total *)value = *out;
    }
    *out = *(part_total *)value;
    return BRC_OK;
}

static int total_node_step(entry_totals *e, const brc_closure_step *step, brc_error *err)
{
    const brc_node_step *at = &step->node;
    part_total part = { .whole = 1 };
    int found = 0;
    BRC_TRY(brc_grow_array(&e->sums, &e->cap, at->level + 2, sizeof(part_total), err));
    if (at->kind == BRC_ARRAY) {
        BRC_TRY(array_part(e, &at->id, &part, err));
        brc_closure_skip(e->closure);
        return add_part_total(e, at->level, &part, err);
    }
    if (step->known != NULL)
        return add_part_total(e, at->level, step->known, err);
    BRC_TRY(brc_total_row(e->store, &at->id, at->claim, &found, &part.total, err));
    if (found) {
        brc_closure_skip(e->closure);
        return add_part_total(e, at->level, &part, err);
    }
    *sum_at(e, at->level + 1) = part;
    return BRC_OK;
}

static int total_step(entry_totals *e, const brc_closure_step *at, brc_error *err)
{
    part_total part = { .whole = 1 };
    switch (at->what) {
    case BRC_AT_NODE:
        return total_node_step(e, at, err);
    case BRC_AT_ENTRY:
        part.total.arrays = at->node.entry.kind == BRC_ARRAY;
        part.total.groups = at->node.entry.kind == BRC_GROUP;
        return add_part_total(e, at->node.level, &part, err);
    case BRC_AT_LEAVE:
        part = *sum_at(e, at->node.level + 1);
        *(part_total *)at->keep = part;
        if (part.whole)
            BRC_TRY(total_keep(e->store, e->kept, &at->node.id, &part.total, err));
        return add_part_total(e, at->node.level, &part, err);
    default:
        return BRC_OK;
    }
}

static int total_of_entry(entry_totals *e, const brc_entry *entry, brc_error *err)
{
    brc_closure_step at;
    int rc;
    BRC_TRY(brc_grow_array(&e->sums, &e->cap, 1, sizeof(part_total), err));
    *sum_at(e, 0) = (part_total){ .total = { .arrays = entry->kind == BRC_ARRAY,
                                             .groups = entry->kind == BRC_GROUP },
                                  .whole = 1 };
    BRC_TRY(brc_closure_new(&e->closure, e->store, sizeof(part_total), err));
    BRC_TRY(brc_closure_entry(e->closure, "/", entry, err));
    while ((rc = brc_closure_next(e->closure, &at, err)) > 0)
        BRC_TRY(total_step(e, &at, err));
    return rc;
}

int brc_entry_total(brc_store *store, const brc_entry *entry, brc_total_rows *kept,
                    brc_node_total *out, int *whole, brc_error *err)
{
    entry_totals e = { .store = store, .kept = kept, .arrays = { .value_size = sizeof(part_total),
                                                                 .max = ARRAYS_KNOWN } };
    int rc = total_of_entry(&e, entry, err);
    if (rc == BRC_OK) {
        *out = sum_at(&e, 0)->total;
        *whole = sum_at(&e, 0)->whole;
    }
    brc_closure_free(e.closure);
    brc_id_table_dispose(&e.arrays);
    free(e.sums);
    return rc;
}

/* ==== map totals ================================ */

/* The most rows that are kept in memory, with 72 bytes each. */
#define ROWS_MOST ((size_t)1 << 16)

/* The most nodes that may be opened after some edits: those on the edits' paths and next to
 * them. */
#define FOLLOW_LEAST 64
#define FOLLOW_EACH 8

/* The number of chunks that are looked up at once, and the number after which a read lets go of the
 * lock. */
#define LOOK_UP 256
#define PAUSE ((size_t)4096)

typedef struct kept_row {
    brc_oid id;
    brc_node_total total;
} kept_row;

typedef struct chunk_size {
    uint64_t size, stored;
} chunk_size;

typedef struct totals_run {
    brc_store *store;
    brc_total_rows *kept;
    uint64_t left;       /* number of nodes that may still be opened */
    const brc_chunk_sizes *sizes; /* sizes of chunks that were looked up before; or NULL */
} totals_run;

/* ---- rows -------------------------------- */

/* Puts a row, or adds it to `kept` (may be NULL) if no row can be put now. */
static int total_keep(brc_store *store, brc_total_rows *kept, const brc_oid *id,
                      const brc_node_total *total, brc_error *err)
{
    if (brc_store_keeps_totals(store))
        return brc_node_total_put(store, id, total, err);
    if (kept == NULL)
        return BRC_OK;
    if (kept->n == ROWS_MOST) /* the last row is that of the node above all others */
        kept->n--;
    BRC_TRY(brc_grow_array(&kept->rows, &kept->cap, kept->n + 1, sizeof(kept_row), err));
    ((kept_row *)kept->rows)[kept->n++] = (kept_row){ *id, *total };
    return BRC_OK;
}

static int put_rows(brc_store *store, const brc_total_rows *rows, uint64_t version)
{
    uint64_t now;
    if (brc_store_version(store, &now, NULL) < 0 || now != version)
        return 0;
    for (size_t i = 0; i < rows->n; i++) {
        const kept_row *row = (const kept_row *)rows->rows + i;
        if (brc_node_total_put(store, &row->id, &row->total, NULL) < 0)
            return 0;
    }
    return 1;
}

void brc_total_rows_put(brc_store *store, brc_total_rows *rows, uint64_t version)
{
    if (rows->n > 0 && brc_store_try_begin(store))
        (void)!brc_store_end(store, put_rows(store, rows, version), NULL);
}

void brc_total_rows_dispose(brc_total_rows *rows)
{
    free(rows->rows);
    *rows = (brc_total_rows){ 0 };
}

/* Says whether the row can be that of this node. `claim` is what the node above says about the
 * node. */
static int is_plausible(const brc_node_total *row, const brc_item *claim)
{
    uint64_t most;
    if (row->chunks == 0 && (row->size != 0 || row->stored != 0))
        return 0;
    if (brc_mul_u64(row->chunks, INT32_MAX, &most) && row->stored > most)
        return 0;
    if (claim == NULL)
        return 1;
    return row->arrays == 0 && row->groups == 0 ? row->chunks == claim->keys
                                                : row->arrays + row->groups >= claim->keys;
}

int brc_total_row(brc_store *store, const brc_oid *id, const brc_item *claim, int *found,
                  brc_node_total *out, brc_error *err)
{
    int state;
    BRC_TRY(brc_node_total_get(store, id, &state, out, err));
    *found = state == BRC_TOTAL_FOUND && is_plausible(out, claim);
    if (!*found)
        *out = (brc_node_total){ 0 };
    return BRC_OK;
}

static int add_total(brc_node_total *sum, const brc_node_total *more, brc_error *err)
{
    if (!brc_node_total_add(sum, more))
        return brc_fail(err, BRC_ECORRUPT,
                        "a map is damaged: it has more than can be counted; run 'breccia fsck'");
    return BRC_OK;
}

/* ---- a node's items -------------------------------- */

enum { ITEM_CHILD = 0x100, ITEM_CHUNK }; /* or BRC_GROUP, BRC_ARRAY, with the map's root as the
                                          * id */

typedef struct total_item {
    brc_item at;
    int what;
    int is_same;                    /* the other version of the node has the item too */
    const struct total_item *other; /* the other version's item in its place */
} total_item;

typedef struct total_node {
    brc_arena arena;
    unsigned level, n;
    total_item items[BRC_NODE_MAX];
} total_node;

static void total_node_free(total_node *node)
{
    if (node != NULL)
        brc_arena_dispose(&node->arena);
    free(node);
}

static int take_item(total_node *node, const brc_item *from, size_t id_len, brc_error *err)
{
    total_item *item = &node->items[node->n++];
    uint8_t *bytes;
    brc_entry entry;
    *item = (total_item){ .at = *from, .what = ITEM_CHILD };
    BRC_TRY(brc_arena_copy(&node->arena, from->key, brc_bits_bytes(from->bits), &bytes, err));
    item->at.key = bytes;
    item->at.value = (brc_span){ NULL, 0 };
    if (from->is_child)
        return BRC_OK;
    if (from->value.len == id_len) {
        item->what = ITEM_CHUNK;
        return brc_chunk_id_of(from->value, id_len, &item->at.id, err);
    }
    BRC_TRY(brc_entry_decode(&entry, from->value, id_len, err));
    item->what = entry.kind;
    item->at.id = entry.map;
    return BRC_OK;
}

/* Reads a node's items and checks everything that the node above says, so that no node occurs twice
 * in a map. */
static int read_items(total_node *node, brc_store *store, const brc_oid *id, const brc_item *claim,
                      brc_error *err)
{
    const size_t id_len = brc_store_id_len(store);
    brc_node_facts facts;
    brc_node_reader reader;
    brc_item item;
    brc_span bytes;
    int rc;
    BRC_TRY(brc_store_get(store, BRC_KIND_NODE, id, &bytes, err));
    if (claim != NULL) {
        BRC_TRY(brc_node_facts_read(&facts, bytes, id_len, err));
        BRC_TRY(brc_node_facts_match(&facts, claim, err));
    }
    BRC_TRY(brc_node_open(&reader, bytes, id_len, err));
    node->level = reader.level;
    while ((rc = brc_node_next(&reader, &item, err)) > 0)
        BRC_TRY(take_item(node, &item, id_len, err));
    return rc;
}

static int open_items(total_node **out, totals_run *run, const brc_oid *id, const brc_item *claim,
                      brc_error *err)
{
    void *p;
    *out = NULL;
    BRC_TRY(brc_store_check_interrupt(run->store, err));
    BRC_TRY(brc_new(&p, sizeof(total_node), err));
    total_node *node = p;
    node->arena = (brc_arena)BRC_ARENA_INIT;
    node->n = 0;
    int rc = read_items(node, run->store, id, claim, err);
    if (rc < 0)
        total_node_free(node);
    else
        *out = node;
    return rc;
}

static int total_item_order(const brc_item *a, const brc_item *b)
{
    size_t common = brc_bits_common(a->key, a->bits, b->key, b->bits);
    if (common == a->bits || common == b->bits)
        return (a->bits > b->bits) - (a->bits < b->bits);
    return brc_bit(a->key, common) ? 1 : -1;
}

/* Marks the items that both nodes have. Returns how many items only one of them has. */
static unsigned mark_same_items(total_node *a, total_node *b)
{
    unsigned i = 0, j = 0, same = 0;
    while (i < a->n && j < b->n) {
        total_item *x = &a->items[i], *y = &b->items[j];
        int order = total_item_order(&x->at, &y->at);
        if (order == 0) {
            x->is_same = y->is_same = x->what == y->what &&
                                      brc_oid_cmp(&x->at.id, &y->at.id) == 0;
            same += (unsigned)x->is_same;
            x->other = y;
        }
        i += order <= 0;
        j += order >= 0;
    }
    return a->n - same + (b->n - same);
}

/* ---- sums -------------------------------- */

static int total_of(totals_run *run, const brc_oid *id, const brc_item *claim,
                    const brc_oid *before, brc_node_total *out, int *whole, brc_error *err);

static int add_chunk_size(brc_node_total *sum, uint64_t size, uint64_t stored, brc_error *err)
{
    brc_node_total one = { .chunks = 1, .size = size, .stored = stored };
    return add_total(sum, &one, err);
}

/* Adds up the chunks among the items: all of them, or only those that the other version does not
 * have. */
static int sum_chunks(totals_run *run, const total_node *node, int all, brc_node_total *sum,
                      int *whole, brc_error *err)
{
    void *p = NULL;
    brc_object *ask[BRC_NODE_MAX];
    size_t n = 0;
    int rc;
    BRC_GO(brc_new_array(&p, node->n, sizeof(brc_object), err));
    for (unsigned i = 0; i < node->n; i++) {
        const total_item *item = &node->items[i];
        if (item->what != ITEM_CHUNK || (item->is_same && !all))
            continue;
        const chunk_size *known =
            run->sizes != NULL ? brc_id_table_find(&run->sizes->table, &item->at.id) : NULL;
        if (known != NULL) {
            BRC_GO(add_chunk_size(sum, known->size, known->stored, err));
            continue;
        }
        ask[n] = (brc_object *)p + n;
        *ask[n++] = (brc_object){ .id = item->at.id };
    }
    BRC_GO(brc_objects_find(run->store, ask, n, err));
    for (size_t i = 0; i < n; i++) {
        const brc_object *o = ask[i];
        const int there = o->found && o->kind == BRC_KIND_CHUNK;
        *whole &= there;
        BRC_GO(add_chunk_size(sum, there ? o->size : 0, there ? o->stored : 0, err));
    }
done:
    free(p);
    return rc;
}

/* Adds a child of a group. The total under the child comes only from its row, because the child's
 * map may be of any size. */
static int sum_entry(totals_run *run, const total_item *item, brc_node_total *sum, int *whole,
                     brc_error *err)
{
    brc_node_total one = { .arrays = item->what == BRC_ARRAY, .groups = item->what == BRC_GROUP };
    brc_node_total under = { 0 };
    int found = 1;
    if (!brc_oid_is_zero(&item->at.id))
        BRC_TRY(brc_total_row(run->store, &item->at.id, NULL, &found, &under, err));
    *whole &= found;
    BRC_TRY(add_total(sum, &one, err));
    return add_total(sum, &under, err);
}

/* Adds up all items, or only new ones. */
static int sum_items(totals_run *run, const total_node *node, int all, brc_node_total *sum,
                     int *whole, brc_error *err)
{
    BRC_TRY(sum_chunks(run, node, all, sum, whole, err));
    for (unsigned i = 0; i < node->n; i++) {
        const total_item *item = &node->items[i];
        const total_item *other = item->other;
        brc_node_total one;
        if (item->what == ITEM_CHUNK || (item->is_same && !all))
            continue;
        if (item->what != ITEM_CHILD) {
            BRC_TRY(sum_entry(run, item, sum, whole, err));
            continue;
        }
        const brc_oid *before = other != NULL && other->what == ITEM_CHILD ? &other->at.id : NULL;
        BRC_TRY(total_of(run, &item->at.id, &item->at, before, &one, whole, err));
        BRC_TRY(add_total(sum, &one, err));
    }
    return BRC_OK;
}

/* Adds up the items that only the old version has. Sets *known to 0 if rows are missing. */
static int sum_gone(totals_run *run, const total_node *old, brc_node_total *sum, int *known,
                    brc_error *err)
{
    BRC_TRY(sum_chunks(run, old, 0, sum, known, err));
    for (unsigned i = 0; i < old->n && *known; i++) {
        const total_item *item = &old->items[i];
        brc_node_total one;
        if (item->what == ITEM_CHUNK || item->is_same)
            continue;
        if (item->what != ITEM_CHILD) {
            BRC_TRY(sum_entry(run, item, sum, known, err));
            continue;
        }
        BRC_TRY(brc_total_row(run->store, &item->at.id, &item->at, known, &one, err));
        BRC_TRY(add_total(sum, &one, err));
    }
    return BRC_OK;
}

/* Subtracts from the old node's row the items that only the old node has. Sets *known to 0 if that
 * is not possible. */
static int sum_same(totals_run *run, const brc_oid *before, const total_node *old,
                    brc_node_total *sum, int *known, brc_error *err)
{
    brc_node_total gone = { 0 };
    BRC_TRY(brc_total_row(run->store, before, NULL, known, sum, err));
    if (*known)
        BRC_TRY(sum_gone(run, old, &gone, known, err));
    if (*known)
        *known = brc_node_total_subtract(sum, &gone);
    if (!*known)
        *sum = (brc_node_total){ 0 };
    return BRC_OK;
}

static int total_of_items(totals_run *run, total_node *node, const brc_oid *before,
                          brc_node_total *out, int *whole, brc_error *err)
{
    total_node *old = NULL;
    int known = 0, rc = BRC_OK;
    if (before != NULL)
        BRC_GO(open_items(&old, run, before, NULL, err));
    if (old != NULL && old->level == node->level && mark_same_items(node, old) < node->n)
        BRC_GO(sum_same(run, before, old, out, &known, err));
    rc = sum_items(run, node, !known, out, whole, err);
done:
    total_node_free(old);
    return rc;
}

/* Computes the total of a node. *whole stays as it is unless something is missing. The C stack is
 * bounded, because levels decrease. */
static int total_of(totals_run *run, const brc_oid *id, const brc_item *claim,
                    const brc_oid *before, brc_node_total *out, int *whole, brc_error *err)
{
    total_node *node;
    int found, all_there = 1;
    BRC_TRY(brc_total_row(run->store, id, claim, &found, out, err));
    if (found)
        return BRC_OK;
    if (run->left == 0) {
        *whole = 0;
        return BRC_OK;
    }
    run->left--;
    BRC_TRY(open_items(&node, run, id, claim, err));
    int rc = total_of_items(run, node, before, out, &all_there, err);
    total_node_free(node);
    if (rc == BRC_OK && all_there)
        rc = total_keep(run->store, run->kept, id, out, err);
    *whole &= all_there;
    return rc;
}

int brc_map_total(brc_store *store, const brc_oid *root, brc_total_rows *kept, brc_node_total *out,
                  int *whole, brc_error *err)
{
    totals_run run = { .store = store, .kept = kept, .left = UINT64_MAX };
    int found = 1;
    *out = (brc_node_total){ 0 };
    *whole = 1;
    if (!brc_oid_is_zero(root))
        BRC_TRY(brc_total_row(store, root, NULL, &found, out, err));
    if (found)
        return BRC_OK;
    brc_store_walk_begin(store);
    int rc = total_of(&run, root, NULL, NULL, out, whole, err);
    brc_store_walk_end(store);
    return rc;
}

/* ---- after edits -------------------------------- */

static int look_up_order(const void *a, const void *b)
{
    return brc_oid_cmp(a, b);
}

static int look_up(brc_chunk_sizes *sizes, brc_store *store, const brc_oid *ids, size_t n,
                   brc_error *err)
{
    brc_object objects[LOOK_UP], *ask[LOOK_UP];
    void *value;
    for (size_t i = 0; i < n; i++) {
        objects[i] = (brc_object){ .id = ids[i] };
        ask[i] = &objects[i];
    }
    BRC_TRY(brc_objects_find(store, ask, n, err));
    for (size_t i = 0; i < n; i++) {
        if (!objects[i].found || objects[i].kind != BRC_KIND_CHUNK)
            continue;
        BRC_TRY(brc_id_table_add(&sizes->table, &ids[i], &value, err));
        *(chunk_size *)value = (chunk_size){ objects[i].size, objects[i].stored };
    }
    return BRC_OK;
}

static int look_up_all(brc_chunk_sizes *sizes, brc_store *store, brc_oid *ids, size_t count,
                       brc_error *err)
{
    if (count > 0)
        qsort(ids, count, sizeof(*ids), look_up_order);
    for (size_t at = 0; at < count; at += LOOK_UP) {
        BRC_TRY(look_up(sizes, store, ids + at, count - at < LOOK_UP ? count - at : LOOK_UP, err));
        if (at % PAUSE == 0)
            brc_store_pause_read(store);
    }
    return BRC_OK;
}

int brc_chunk_sizes_read(brc_chunk_sizes *sizes, brc_store *store, const brc_edit *edits, size_t n,
                         brc_error *err)
{
    const size_t id_len = brc_store_id_len(store);
    size_t count = 0;
    void *p;
    BRC_TRY(brc_new_array(&p, n, sizeof(brc_oid), err));
    brc_oid *ids = p;
    for (size_t i = 0; i < n; i++)
        if (edits[i].value != NULL && edits[i].value_len == id_len)
            memcpy(ids[count++].bytes, edits[i].value, id_len);
    int rc = look_up_all(sizes, store, ids, count, err);
    free(p);
    return rc;
}

void brc_chunk_sizes_dispose(brc_chunk_sizes *sizes)
{
    brc_id_table_dispose(&sizes->table);
}

static int follow_edits(totals_run *run, const brc_oid *before, const brc_oid *root,
                        brc_error *err)
{
    brc_node_total total;
    int whole = 1;
    return total_of(run, root, NULL, brc_oid_is_zero(before) ? NULL : before, &total, &whole, err);
}

/* ---- after replaced chunks -------------------------------- */

/* Chunks that edits have replaced, and the sizes of both versions. */
typedef struct replaced_chunks {
    brc_store *store;
    const brc_edit *edits;
    size_t n;
    const brc_map_changes *changes;
    const brc_chunk_sizes *now;
    brc_chunk_sizes was;
} replaced_chunks;

static int read_replaced(replaced_chunks *r, brc_error *err)
{
    const size_t id_len = r->changes->value_len;
    void *p;
    BRC_TRY(brc_new_array(&p, r->n, sizeof(brc_oid), err));
    brc_oid *ids = p;
    for (size_t i = 0; i < r->n; i++)
        memcpy(ids[i].bytes, (const uint8_t *)r->changes->values + i * id_len, id_len);
    int rc = look_up_all(&r->was, r->store, ids, r->n, err);
    free(p);
    return rc;
}

/* Adds a chunk to a sum. Returns 0 if its size is not known. */
static int add_sized(const brc_chunk_sizes *sizes, const void *id, size_t id_len,
                     brc_node_total *sum)
{
    brc_oid key = { { 0 } };
    memcpy(key.bytes, id, id_len);
    const chunk_size *size = brc_id_table_find(&sizes->table, &key);
    const brc_node_total one = { .chunks = 1, .size = size != NULL ? size->size : 0,
                                 .stored = size != NULL ? size->stored : 0 };
    return size != NULL && brc_node_total_add(sum, &one);
}

/* Derives a node's row from that of the node that it was. Returns 0 if that is not possible. */
static int put_replaced(const replaced_chunks *r, const brc_map_change *node, brc_error *err)
{
    const size_t id_len = r->changes->value_len;
    brc_node_total sum, gone = { 0 };
    int found;
    BRC_TRY(brc_total_row(r->store, &node->was, NULL, &found, &sum, err));
    for (size_t i = node->from; i < node->to && found; i++)
        found = add_sized(r->now, r->edits[i].value, id_len, &sum) &&
                add_sized(&r->was, (const uint8_t *)r->changes->values + i * id_len, id_len,
                          &gone);
    if (!found || !brc_node_total_subtract(&sum, &gone))
        return 0;
    BRC_TRY(brc_node_total_put(r->store, &node->now, &sum, err));
    return 1;
}

/* Puts the rows of all nodes over replaced chunks. Returns 0 if that is not possible. */
static int follow_replaced(brc_store *store, const brc_edit *edits, size_t n,
                           const brc_map_changes *changes, const brc_chunk_sizes *sizes,
                           brc_error *err)
{
    replaced_chunks r = { store, edits, n, changes, sizes, BRC_CHUNK_SIZES_INIT };
    if (changes->n == 0 || changes->value_len != brc_store_id_len(store))
        return 0;
    int rc = read_replaced(&r, err);
    rc = rc < 0 ? rc : 1;
    for (size_t i = 0; i < changes->n && rc > 0; i++)
        rc = put_replaced(&r, (const brc_map_change *)changes->nodes + i, err);
    brc_chunk_sizes_dispose(&r.was);
    return rc;
}

/* Many sizes are looked up first, because from leaf to leaf of the map the ids are random. */
static int follow(brc_store *store, const brc_oid *before, const brc_oid *root,
                  const brc_edit *edits, size_t n, const brc_map_changes *changes,
                  const brc_chunk_sizes *sizes, brc_error *err)
{
    brc_chunk_sizes own = BRC_CHUNK_SIZES_INIT;
    totals_run run = { .store = store,
                       .left = FOLLOW_LEAST + (uint64_t)n * FOLLOW_EACH,
                       .sizes = sizes != NULL ? sizes : &own };
    int rc = sizes == NULL && n > 0 ? brc_chunk_sizes_read(&own, store, edits, n, err) : BRC_OK;
    if (rc == BRC_OK && changes != NULL)
        rc = follow_replaced(store, edits, n, changes, run.sizes, err);
    if (rc == 0)
        rc = follow_edits(&run, before, root, err);
    brc_chunk_sizes_dispose(&own);
    return rc < 0 ? rc : BRC_OK;
}

static int follow_if_kept(brc_store *store, const brc_oid *before, const brc_oid *root,
                          const brc_edit *edits, size_t n, const brc_map_changes *changes,
                          const brc_chunk_sizes *sizes, brc_error *err)
{
    brc_error found = BRC_ERROR_INIT;
    if (!brc_store_keeps_totals(store) || brc_oid_is_zero(root))
        return BRC_OK;
    int rc = follow(store, before, root, edits, n, changes, sizes, &found);
    if (rc == BRC_ECORRUPT)
        return BRC_OK;
    if (rc < 0 && err != NULL)
        brc_error_copy(err, &found);
    return rc;
}

int brc_map_edit_total(brc_store *store, const brc_oid *root, const brc_edit *edits, size_t n,
                       const brc_chunk_sizes *sizes, brc_oid *out, brc_error *err)
{
    brc_map_changes changes;
    int rc = brc_map_edit_noting(store, root, edits, n, out, &changes, err);
    if (rc == BRC_OK)
        rc = follow_if_kept(store, root, out, edits, n, &changes, sizes, err);
    brc_map_changes_dispose(&changes);
    return rc;
}

int brc_map_total_follow(brc_store *store, const brc_oid *before, const brc_oid *root,
                         brc_error *err)
{
    return follow_if_kept(store, before, root, NULL, 0, NULL, NULL, err);
}
