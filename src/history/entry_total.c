/* What hangs under a node of the hierarchy: every object once, however many paths lead to it. */
#include <stdlib.h>

#include "../base/alloc.h"
#include "../base/id_table.h"
#include "closure.h"
#include "map_totals.h"

/* Arrays whose sums are remembered: many entries may have one map. */
#define ARRAYS_KNOWN ((size_t)1 << 16)

typedef struct part_total {
    brc_node_total total;
    int whole;
} part_total;

typedef struct entry_totals {
    brc_store *store;
    brc_closure *closure;
    brc_total_rows *kept;
    brc_id_table arrays; /* part_total: of the roots of their maps */
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
            BRC_TRY(brc_total_keep(e->store, e->kept, &at->node.id, &part.total, err));
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
