#include "graph.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

brc_graph_commit *brc_graph_at(const brc_graph *g, size_t i)
{
    return (brc_graph_commit *)g->commits + i;
}

void brc_graph_dispose(brc_graph *g)
{
    for (size_t i = 0; g->keeps && i < g->n; i++)
        brc_commit_free(brc_graph_at(g, i)->commit);
    free(g->commits);
    free(g->parents);
    brc_id_table_dispose(&g->index);
    g->commits = g->parents = NULL;
    g->n = 0;
}

size_t brc_graph_find(const brc_graph *g, const brc_oid *id)
{
    const size_t *number = brc_id_table_find(&g->index, id);
    return number != NULL ? *number - 1 : SIZE_MAX; /* 0: adding it has failed */
}

int brc_graph_add(brc_graph *g, const brc_oid *id, size_t *i, brc_error *err)
{
    void *value;
    BRC_TRY(brc_id_table_add(&g->index, id, &value, err));
    size_t *number = value;
    if (*number == 0) {
        BRC_TRY(brc_grow_array(&g->commits, &g->cap, g->n + 1, sizeof(brc_graph_commit), err));
        *brc_graph_at(g, g->n) = (brc_graph_commit){.id = *id};
        *number = ++g->n;
    }
    *i = *number - 1;
    return BRC_OK;
}

static int add_parent(brc_graph *g, const brc_oid *id, brc_error *err)
{
    size_t parent;
    const int asks = g->skips != NULL && brc_graph_find(g, id) == SIZE_MAX;
    const int skips = asks ? g->skips(g->ctx, id, err) : 0;
    if (skips != 0)
        return skips < 0 ? skips : BRC_OK;
    BRC_TRY(brc_grow_array(&g->parents, &g->parents_cap, g->nparents + 1, sizeof(size_t), err));
    BRC_TRY(brc_graph_add(g, id, &parent, err));
    ((size_t *)g->parents)[g->nparents++] = parent;
    return BRC_OK;
}

int brc_graph_read(brc_graph *g, size_t i, brc_error *err)
{
    brc_commit *commit;
    const size_t first = g->nparents;
    if (brc_graph_at(g, i)->is_read)
        return BRC_OK;
    BRC_TRY(brc_store_check_interrupt(g->store, err));
    BRC_TRY(brc_commit_get(&commit, g->store, &brc_graph_at(g, i)->id, err));
    int rc = BRC_OK;
    for (size_t k = 0; k < commit->nparents && rc == BRC_OK; k++)
        rc = add_parent(g, &commit->parents[k], err);
    brc_graph_commit *c = brc_graph_at(g, i);
    c->first = first;
    c->nparents = g->nparents - first;
    c->is_read = rc == BRC_OK;
    if (rc == BRC_OK && g->keeps)
        c->commit = commit;
    else
        brc_commit_free(commit);
    return rc;
}

size_t brc_graph_parent(const brc_graph *g, size_t i, size_t k)
{
    return ((const size_t *)g->parents)[brc_graph_at(g, i)->first + k];
}

/* ---- a heap -------------------------------- */

int brc_heap_push(brc_graph_heap *heap, size_t i, brc_error *err)
{
    BRC_TRY(brc_grow_array(&heap->items, &heap->cap, heap->n + 1, sizeof(size_t), err));
    size_t *items = heap->items, at = heap->n++;
    for (; at > 0 && heap->before(heap->ctx, i, items[(at - 1) / 2]); at = (at - 1) / 2)
        items[at] = items[(at - 1) / 2];
    items[at] = i;
    return BRC_OK;
}

size_t brc_heap_pop(brc_graph_heap *heap)
{
    size_t *items = heap->items, at = 0;
    const size_t top = items[0], last = items[--heap->n];
    for (size_t child; (child = 2 * at + 1) < heap->n; at = child) {
        child += child + 1 < heap->n && heap->before(heap->ctx, items[child + 1], items[child]);
        if (!heap->before(heap->ctx, items[child], last))
            break;
        items[at] = items[child];
    }
    items[at] = last;
    return top;
}
