#include "moves.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

/* A node that is gone and may have moved. */
typedef struct move_source {
    brc_node_change *change;
    size_t next; /* in the first of those with equal entries: which of them may be left */
} move_source;

typedef struct move_list {
    brc_node_change *changes;
    size_t n;
    move_source *sources; /* by entry, and equal ones by path */
    size_t nsources;
    brc_buf prefix;
} move_list;

static int move_entry_order(const brc_entry *a, const brc_entry *b)
{
    int order = (a->kind > b->kind) - (a->kind < b->kind);
    order = order != 0 ? order : brc_oid_cmp(&a->doc, &b->doc);
    order = order != 0 ? order : brc_oid_cmp(&a->map, &b->map);
    return order != 0 ? order : brc_oid_cmp(&a->storage, &b->storage);
}

static int move_source_order(const void *a, const void *b)
{
    const brc_node_change *x = ((const move_source *)a)->change;
    const brc_node_change *y = ((const move_source *)b)->change;
    int order = move_entry_order(&x->a, &y->a);
    return order != 0 ? order : (x > y) - (x < y);
}

static int move_sources_sort(move_list *m, brc_error *err)
{
    void *p;
    BRC_TRY(brc_new_array(&p, m->n, sizeof(move_source), err));
    m->sources = p;
    for (size_t i = 0; i < m->n; i++)
        if (m->changes[i].what == BRC_REMOVED)
            m->sources[m->nsources++] = (move_source){ &m->changes[i], 0 };
    if (m->nsources > 1)
        qsort(m->sources, m->nsources, sizeof(move_source), move_source_order);
    for (size_t i = 0; i < m->nsources; i++)
        m->sources[i].next = i;
    return BRC_OK;
}

/* The first node by path with this entry that is gone and was not reported yet; NULL: none.
 * Nodes passed once are never looked at again. */
static brc_node_change *move_source_of(move_list *m, const brc_entry *entry)
{
    size_t lo = 0, hi = m->nsources;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (move_entry_order(&m->sources[middle].change->a, entry) < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    if (lo == m->nsources)
        return NULL;
    size_t *at = &m->sources[lo].next;
    while (*at < m->nsources && brc_entry_equal(&m->sources[*at].change->a, entry)) {
        if (m->sources[*at].change->what == BRC_REMOVED)
            return m->sources[*at].change;
        ++*at;
    }
    return NULL;
}

/* Reports of the path cover the nodes under it that are `what`: in the order of paths they
 * are one run, from "path/" on. */
static int tell_under(move_list *m, const char *path, int what, brc_error *err)
{
    size_t lo = 0, hi = m->n;
    m->prefix.len = 0;
    BRC_TRY(brc_buf_printf(&m->prefix, err, "%s/", path));
    BRC_TRY(brc_buf_terminate(&m->prefix, err));
    const char *prefix = (const char *)m->prefix.data;
    size_t len = strlen(prefix);
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (strcmp(m->changes[middle].path, prefix) < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    for (; lo < m->n && strncmp(m->changes[lo].path, prefix, len) == 0; lo++)
        if (m->changes[lo].what == what)
            m->changes[lo].what = 0;
    return BRC_OK;
}

static int move_to(move_list *m, brc_node_change *to, brc_node_change *from, brc_error *err)
{
    BRC_TRY(brc_dup(&to->from, from->path, err));
    to->what = BRC_MOVED;
    to->a = from->a;
    to->chunks_added = 0;
    from->what = 0;
    BRC_TRY(tell_under(m, to->path, BRC_ADDED, err));
    return tell_under(m, from->path, BRC_REMOVED, err);
}

int brc_moves_find(brc_node_change *changes, size_t n, brc_error *err)
{
    move_list m = { .changes = changes, .n = n };
    int rc;
    BRC_GO(move_sources_sort(&m, err));
    for (size_t i = 0; i < n; i++) { /* the top of what moved is met first */
        brc_node_change *from =
            changes[i].what == BRC_ADDED ? move_source_of(&m, &changes[i].b) : NULL;
        if (from != NULL)
            BRC_GO(move_to(&m, &changes[i], from, err));
    }
done:
    free(m.sources);
    brc_buf_dispose(&m.prefix);
    return rc;
}
