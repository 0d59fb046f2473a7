/* See history_oracle.h. */
#include "history_oracle.h"

#include <stdlib.h>
#include <string.h>

int hm_by_uid(const hm_snap *s, int uid)
{
    for (int i = 0; i < s->n; i++)
        if (s->node[i].uid == uid)
            return i;
    return -1;
}

int hm_by_name(const hm_snap *s, int name)
{
    for (int i = 0; i < s->n; i++)
        if (s->node[i].name == name)
            return i;
    return -1;
}

void hm_drop(hm_snap *s, int at)
{
    s->node[at] = s->node[--s->n];
}

static int same_node(const hm_node *a, const hm_node *b)
{
    return a->name == b->name && a->len == b->len
           && memcmp(a->value, b->value, sizeof(a->value)) == 0
           && memcmp(a->attr, b->attr, sizeof(a->attr)) == 0;
}

int hm_same(const hm_snap *a, const hm_snap *b)
{
    if (a->n != b->n)
        return 0;
    for (int i = 0; i < a->n; i++) {
        const int j = hm_by_name(b, a->node[i].name);
        if (j < 0 || !same_node(&a->node[i], &b->node[j]))
            return 0;
    }
    return 1;
}

static const hm_node *find(const hm_snap *s, int uid)
{
    const int i = hm_by_uid(s, uid);
    return i < 0 ? NULL : &s->node[i];
}

static int names_differ(const hm_snap *a, const hm_snap *b)
{
    for (int i = 0; i < a->n; i++) {
        const hm_node *other = find(b, a->node[i].uid);
        const int place = hm_by_name(b, a->node[i].name);
        if (other != NULL && other->name != a->node[i].name)
            return 1;
        if (place >= 0 && b->node[place].uid != a->node[i].uid)
            return 1;
    }
    return 0;
}

/* A pick of the commit that made a node brings it again where it has moved since. */
static int has_twice(const hm_snap *s)
{
    for (int i = 0; i < s->n; i++)
        if (hm_by_uid(s, s->node[i].uid) != i)
            return 1;
    return 0;
}

int hm_any_moved(const hm_snap *base, const hm_snap *ours, const hm_snap *theirs)
{
    return has_twice(base) || has_twice(ours) || has_twice(theirs) || names_differ(base, ours)
           || names_differ(base, theirs) || names_differ(ours, theirs);
}

/* A merge with a version that has no common ancestor, or a rebase, may bring a node again that the
 * line had removed: whether it is another one then depends on what it holds. */
int hm_came_back(const hm_graph *g, int tip, const hm_snap *base)
{
    const hm_snap *now = &g->commit[tip].snap;
    uint8_t gone[HM_NODES] = { 0 };
    for (int c = tip; g->commit[c].nparents > 0; c = g->commit[c].parent[0]) {
        const hm_snap *was = &g->commit[g->commit[c].parent[0]].snap;
        for (int i = 0; i < base->n; i++) {
            const int uid = base->node[i].uid, is_there = hm_by_uid(was, uid) >= 0;
            if (gone[i] && is_there && hm_by_uid(now, uid) >= 0)
                return 1;
            gone[i] |= !is_there;
        }
    }
    return 0;
}

/* ---- merging ------------------------------------------------------------------------------- */

static int32_t pick_value(int32_t b, int32_t o, int32_t t, int *result)
{
    if (o == t || t == b)
        return o;
    if (o == b)
        return t;
    *result = HM_CONFLICT;
    return HM_UNKNOWN;
}

static int pick_elements(hm_node *out, const hm_node *b, const hm_node *o, const hm_node *t)
{
    int result = HM_CLEAN;
    for (int i = 0; i < HM_LEN; i++) {
        const int32_t was = b->value[i];
        if (i < out->len) {
            out->value[i] = pick_value(was, o->value[i], t->value[i], &result);
        } else {
            out->value[i] = 0;
            if ((i < o->len && o->value[i] != was) || (i < t->len && t->value[i] != was))
                result = HM_CONFLICT;
        }
    }
    return result;
}

static int merge_node(hm_node *out, const hm_node *b, const hm_node *o, const hm_node *t)
{
    int shape = HM_CLEAN, rest = HM_CLEAN;
    *out = *o;
    out->len = pick_value(b->len, o->len, t->len, &shape);
    out->name = pick_value(b->name, o->name, t->name, &shape);
    if (shape != HM_CLEAN)
        return HM_CONFLICT;
    for (int i = 0; i < HM_ATTRS; i++)
        out->attr[i] = pick_value(b->attr[i], o->attr[i], t->attr[i], &rest);
    const int elements = pick_elements(out, b, o, t);
    return elements != HM_CLEAN ? elements : rest;
}

/* Merges one node. Sets *there to 0 if the result does not have the node. */
static int merge_one(hm_node *out, int *there, const hm_node *b, const hm_node *o, const hm_node *t)
{
    *there = 0;
    if (o == NULL && t == NULL)
        return HM_CLEAN;
    if (b == NULL && o != NULL && t != NULL) {
        *out = *o;
        *there = 1;
        return same_node(o, t) ? HM_CLEAN : HM_UNSURE;
    }
    if (o == NULL || t == NULL) {
        const hm_node *left = o != NULL ? o : t;
        if (b != NULL)
            return same_node(b, left) ? HM_CLEAN : HM_CONFLICT;
        *out = *left;
        *there = 1;
        return HM_CLEAN;
    }
    *there = 1;
    return merge_node(out, b, o, t);
}

static int worse(int a, int b)
{
    return a > b ? a : b;
}

int hm_merge(hm_snap *out, const hm_snap *base, const hm_snap *ours, const hm_snap *theirs)
{
    const hm_snap *all[3] = {base, ours, theirs};
    hm_snap r;
    int result = HM_CLEAN, there;
    memset(&r, 0, sizeof(r));
    for (int s = 0; s < 3; s++)
        for (int i = 0; i < all[s]->n; i++) {
            const int uid = all[s]->node[i].uid;
            if ((s > 0 && find(base, uid) != NULL) || (s > 1 && find(ours, uid) != NULL))
                continue;
            hm_node node;
            const int one = merge_one(&node, &there, find(base, uid), find(ours, uid),
                                      find(theirs, uid));
            result = worse(result, one);
            if (!there)
                continue;
            if (r.n == HM_NODES || hm_by_name(&r, node.name) >= 0)
                result = worse(result, r.n == HM_NODES ? HM_UNSURE : HM_CONFLICT);
            if (r.n < HM_NODES)
                r.node[r.n++] = node;
        }
    *out = r;
    return result;
}

/* ---- the graph ------------------------------------------------------------------------------ */

static void mark(const hm_graph *g, int from, uint8_t *seen)
{
    if (seen[from])
        return;
    seen[from] = 1;
    for (int i = 0; i < g->commit[from].nparents; i++)
        mark(g, g->commit[from].parent[i], seen);
}

int hm_reaches(const hm_graph *g, int from, int to)
{
    uint8_t seen[HM_COMMITS] = {0};
    mark(g, from, seen);
    return seen[to];
}

int hm_base(hm_snap *out, const hm_graph *g, int a, int b, int depth)
{
    uint8_t of_a[HM_COMMITS] = {0}, of_b[HM_COMMITS] = {0};
    int base[HM_COMMITS], n = 0;
    mark(g, a, of_a);
    mark(g, b, of_b);
    for (int c = 0; c < g->n; c++) {
        int is_best = of_a[c] && of_b[c];
        for (int d = 0; d < g->n && is_best; d++)
            if (d != c && of_a[d] && of_b[d] && hm_reaches(g, d, c))
                is_best = 0;
        if (is_best)
            base[n++] = c;
    }
    if (n == 0 || n > 2 || depth > 8)
        return HM_UNSURE;
    *out = g->commit[base[0]].snap;
    if (n == 1)
        return HM_CLEAN;
    hm_snap *below = malloc(sizeof(*below));
    if (below == NULL)
        return HM_UNSURE;
    const hm_snap *x = &g->commit[base[0]].snap, *y = &g->commit[base[1]].snap;
    int result = hm_base(below, g, base[0], base[1], depth + 1);
    if (result == HM_CLEAN && hm_any_moved(below, x, y))
        result = HM_UNSURE;
    if (result == HM_CLEAN) {
        result = hm_merge(out, below, x, y);
        for (int i = 0; i < out->n && result != HM_CLEAN; i++) /* only elements may be unknown */
            if (out->node[i].len == HM_UNKNOWN || out->node[i].name == HM_UNKNOWN)
                result = HM_UNSURE;
        if (result == HM_CONFLICT)
            result = x->n == y->n && x->n == out->n ? HM_CLEAN : HM_UNSURE;
    }
    free(below);
    return result;
}
