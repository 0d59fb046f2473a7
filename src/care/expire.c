/* Finds what must not expire besides the commits that the rules keep: see expire.h.
 *
 * An open merge is merged again when it is settled for theirs, and an open rebase has changes to
 * apply. If a merge base were gone, an older one or none would stand for it: there would be other
 * conflicts, and moves that are no longer followed. */
#include "expire.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/calendar.h"
#include "../history/ancestry.h"
#include "../history/moves.h"
#include "../store/change.h"
#include "../store/ref.h"

/* ==== expire named ================================ */

/* The number of commits of a draft whose merge bases are found one by one. The commits that a
 * rebase has still to apply come after them. These are one line of commits, which may be long, and
 * are handled together. */
enum { ONE_BY_ONE = 8 };

typedef struct base_sets {
    brc_store *store;
    brc_roots *out;
    void *sets; /* brc_commit_set[]: bases; the bases of those before `at` were searched */
    size_t n, at, cap;
} base_sets;

static brc_commit_set *bases_at(const base_sets *b, size_t i)
{
    return (brc_commit_set *)b->sets + i;
}

static void base_sets_dispose(base_sets *b)
{
    for (size_t i = 0; i < b->n; i++)
        brc_commit_set_dispose(bases_at(b, i));
    free(b->sets);
}

static int named_add(brc_roots *out, const brc_oid *id, brc_error *err)
{
    void *p = out->items;
    int rc = brc_grow_array(&p, &out->cap, out->n + 1, sizeof(brc_root), err);
    out->items = p;
    if (rc == BRC_OK)
        out->items[out->n++] = (brc_root){.what = BRC_ROOT_COMMIT, .id = *id};
    return rc;
}

static int set_is_met(const base_sets *b, const brc_commit_set *set)
{
    for (size_t i = 0; i < b->n; i++)
        if (bases_at(b, i)->n == set->n &&
            memcmp(bases_at(b, i)->ids, set->ids, set->n * sizeof(*set->ids)) == 0)
            return 1;
    return 0;
}

/* Adds the merge bases of some commits and another one. If there are several bases, they are merged
 * themselves, from their own bases. */
static int bases_add(base_sets *b, const brc_commit_set *some, const brc_oid *other,
                     brc_error *err)
{
    brc_commit_set bases;
    int rc;
    BRC_GO(brc_merge_bases(&bases, b->store, some, other, err));
    for (size_t i = 0; i < bases.n; i++)
        BRC_GO(named_add(b->out, &bases.ids[i], err));
    if (bases.n < 2 || set_is_met(b, &bases))
        goto done;
    BRC_GO(brc_grow_array(&b->sets, &b->cap, b->n + 1, sizeof(bases), err));
    *bases_at(b, b->n++) = bases;
    memset(&bases, 0, sizeof(bases));
done:
    brc_commit_set_dispose(&bases);
    return rc;
}

static int bases_below(base_sets *b, brc_error *err)
{
    brc_commit_set done = {0};
    int rc = BRC_OK;
    for (; b->at < b->n && rc == BRC_OK; b->at++) {
        for (size_t i = 0; i + 1 < bases_at(b, b->at)->n && rc == BRC_OK; i++) {
            const brc_oid next = bases_at(b, b->at)->ids[i + 1];
            rc = brc_commit_set_add(&done, &bases_at(b, b->at)->ids[i], err);
            if (rc == BRC_OK)
                rc = bases_add(b, &done, &next, err);
        }
        brc_commit_set_dispose(&done);
    }
    return rc;
}

/* Checks whether an id of a plan is a commit: it may be something else, or be gone. */
static int is_commit(brc_store *store, const brc_oid *id, int *is, brc_error *err)
{
    brc_object o = {.id = *id}, *one = &o;
    BRC_TRY(brc_objects_find(store, &one, 1, err));
    *is = o.found && o.kind == BRC_KIND_COMMIT;
    return BRC_OK;
}

/* Adds the parents of a commit, because its change is the difference from them. */
static int parents_add(base_sets *b, const brc_oid *id, brc_error *err)
{
    brc_commit *commit;
    BRC_TRY(brc_commit_get(&commit, b->store, id, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < commit->nparents && rc == BRC_OK; i++)
        rc = named_add(b->out, &commit->parents[i], err);
    brc_commit_free(commit);
    return rc;
}

/* Adds what one draft, with the roots [from, to), depends on. */
static int stood_on(base_sets *b, size_t from, size_t to, brc_error *err)
{
    brc_commit_set some = {0};
    const brc_oid ours = b->out->items[from].id;
    int rc = BRC_OK, is;
    for (size_t i = from + 1; i < to; i++) {
        const brc_oid id = b->out->items[i].id;
        BRC_GO(is_commit(b->store, &id, &is, err));
        if (!is || brc_oid_cmp(&id, &ours) == 0)
            continue;
        BRC_GO(parents_add(b, &id, err));
        BRC_GO(brc_commit_set_add(&some, &id, err));
        if (i - from > ONE_BY_ONE && i + 1 < to)
            continue;
        BRC_GO(bases_add(b, &some, &ours, err));
        brc_commit_set_dispose(&some);
    }
    if (some.n > 0)
        rc = bases_add(b, &some, &ours, err);
done:
    brc_commit_set_dispose(&some);
    return rc;
}

/* Lists the named commits, and those that open merges, rebases and the like depend on without
 * naming them: merge bases, and the parents of changes that are still to be applied. Must be called
 * within a read or a write. */
static int expire_named(brc_roots *out, brc_store *store, brc_error *err)
{
    base_sets b = {.store = store, .out = out};
    brc_log_range range = {INT64_MAX, 0, 0};
    BRC_TRY(brc_roots_named(store, &range, BRC_NOT_DEAD_UNUSED, out, err));
    const size_t n = out->n;
    int rc = BRC_OK;
    for (size_t i = 0, to; i < n && rc == BRC_OK; i = to) {
        for (to = i + 1; to < n && out->items[to].open == out->items[i].open; to++)
            ;
        if (out->items[i].open != 0)
            rc = stood_on(&b, i, to, err);
    }
    if (rc == BRC_OK)
        rc = bases_below(&b, err);
    base_sets_dispose(&b);
    return rc;
}

/* ==== expire plan ================================ */

/* Decides which commits expire, and what stands for them: see expire.h. */

static brc_expire_commit *plan_at(const brc_expire_plan *plan, size_t i)
{
    return (brc_expire_commit *)plan->commits + i;
}

const brc_expire_commit *brc_expire_commit_at(const brc_expire_plan *plan, size_t i)
{
    return plan_at(plan, i);
}

static size_t plan_parent(const brc_expire_plan *plan, size_t i, size_t k)
{
    return brc_graph_parent(&plan->graph, i, k);
}

static size_t plan_parents(const brc_expire_plan *plan, size_t i)
{
    return brc_graph_at(&plan->graph, i)->nparents;
}

static void plan_moves_free(brc_move_set *moves)
{
    if (moves != NULL)
        brc_move_set_dispose(moves);
    free(moves);
}

void brc_expire_plan_dispose(brc_expire_plan *plan)
{
    for (size_t i = 0; i < plan->n; i++)
        plan_moves_free(plan_at(plan, i)->moves);
    free(plan->commits);
    free(plan->stands);
    free(plan->order);
    brc_ref_rows_free(plan->refs, plan->nrefs);
    brc_graph_dispose(&plan->graph);
    brc_buf_dispose(&plan->lines);
    memset(plan, 0, sizeof(*plan));
}

/* ---- what refs reach -------------------------------- */

/* Makes room for commits that are new. */
static int plan_meet_new(brc_expire_plan *plan, brc_error *err)
{
    const brc_graph *g = &plan->graph;
    BRC_TRY(brc_grow_array(&plan->commits, &plan->cap, g->n, sizeof(brc_expire_commit), err));
    for (; plan->n < g->n; plan->n++)
        *plan_at(plan, plan->n) = (brc_expire_commit){.id = brc_graph_at(g, plan->n)->id};
    return BRC_OK;
}

static int keep_moves(brc_expire_commit *c, const brc_commit *commit, brc_error *err)
{
    static const brc_move_set none;
    void *p;
    const brc_move_set *own = brc_commit_moves(commit);
    if (own->n == 0)
        return BRC_OK;
    BRC_TRY(brc_new(&p, sizeof(brc_move_set), err));
    c->moves = p;
    return brc_move_set_join(c->moves, own, &none, err);
}

static int plan_read(brc_expire_plan *plan, size_t i, brc_error *err)
{
    BRC_TRY(brc_graph_read(&plan->graph, i, err));
    BRC_TRY(plan_meet_new(plan, err));
    brc_graph_commit *read = brc_graph_at(&plan->graph, i);
    brc_expire_commit *c = plan_at(plan, i);
    c->time_us = read->commit->time_us;
    c->root = read->commit->root;
    BRC_TRY(keep_moves(c, read->commit, err));
    brc_commit_free(read->commit);
    read->commit = NULL;
    return BRC_OK;
}

/* Reads all commits, in the order in which they are met. */
static int plan_load(brc_expire_plan *plan, brc_error *err)
{
    size_t at;
    BRC_TRY(brc_ref_list(plan->store, "", &plan->refs, &plan->nrefs, err));
    for (size_t i = 0; i < plan->nrefs; i++)
        if (plan->refs[i].has_target)
            BRC_TRY(brc_graph_add(&plan->graph, &plan->refs[i].target, &at, err));
    BRC_TRY(plan_meet_new(plan, err));
    for (size_t i = 0; i < plan->n; i++) {
        BRC_TRY(plan_read(plan, i, err));
        brc_store_breathe(plan->store);
    }
    return BRC_OK;
}

/* Orders the commits by the number of children that are not in the order yet. */
static size_t order_by(brc_expire_plan *plan, size_t *waiting)
{
    size_t n = 0;
    for (size_t i = 0; i < plan->n; i++)
        for (size_t k = 0; k < plan_parents(plan, i); k++)
            waiting[plan_parent(plan, i, k)]++;
    for (size_t i = 0; i < plan->n; i++)
        if (waiting[i] == 0)
            plan->order[n++] = i;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < plan_parents(plan, plan->order[i]); k++) {
            const size_t parent = plan_parent(plan, plan->order[i], k);
            if (--waiting[parent] == 0)
                plan->order[n++] = parent;
        }
    return n;
}

static int plan_order(brc_expire_plan *plan, brc_error *err)
{
    void *p, *waiting;
    BRC_TRY(brc_new_array(&p, plan->n + 1, sizeof(size_t), err));
    plan->order = p;
    BRC_TRY(brc_new_array(&waiting, plan->n + 1, sizeof(size_t), err));
    const size_t n = order_by(plan, waiting);
    free(waiting);
    return n == plan->n ? BRC_OK
                        : brc_fail(err, BRC_ECORRUPT,
                                   "a commit is its own ancestor; run 'breccia fsck'");
}

/* ---- rules -------------------------------- */

#define US_PER_DAY INT64_C(86400000000)

static int64_t expire_day(int64_t time_us)
{
    return time_us / US_PER_DAY - (time_us % US_PER_DAY < 0);
}

/* Returns the week, which begins on Monday: 1970-01-01 was a Thursday. */
static int64_t week_of(int64_t time_us)
{
    const int64_t day = expire_day(time_us) + 3;
    return day / 7 - (day % 7 < 0);
}

/* Returns the months since the year 0 in the Gregorian calendar. */
static int64_t month_of(int64_t time_us)
{
    int64_t year;
    int month, day;
    brc_date_from_days(expire_day(time_us), &year, &month, &day);
    return year * 12 + month;
}

typedef struct keep_rule {
    uint32_t left, reason;
    int64_t (*span)(int64_t time_us); /* NULL: each commit counts */
    void *met;                        /* int64_t[]: days, weeks or months that were met */
    size_t n, cap;
} keep_rule;

static int rule_keeps(keep_rule *rule, int64_t time_us, int is_oldest, int *keeps, brc_error *err)
{
    *keeps = 0;
    if (rule->left == 0)
        return BRC_OK;
    if (rule->span != NULL) {
        const int64_t span = rule->span(time_us);
        for (size_t i = 0; i < rule->n && !is_oldest; i++)
            if (((const int64_t *)rule->met)[i] == span)
                return BRC_OK;
        BRC_TRY(brc_grow_array(&rule->met, &rule->cap, rule->n + 1, sizeof(int64_t), err));
        ((int64_t *)rule->met)[rule->n++] = span;
    }
    *keeps = 1;
    rule->left--;
    return BRC_OK;
}

static int plan_branch(brc_expire_plan *plan, size_t tip, brc_error *err)
{
    keep_rule rules[] = {
        {plan->rules.last, BRC_KEPT_LAST, NULL, NULL, 0, 0},
        {plan->rules.daily, BRC_KEPT_DAILY, expire_day, NULL, 0, 0},
        {plan->rules.weekly, BRC_KEPT_WEEKLY, week_of, NULL, 0, 0},
        {plan->rules.monthly, BRC_KEPT_MONTHLY, month_of, NULL, 0, 0},
    };
    enum { RULES = sizeof(rules) / sizeof(rules[0]) };
    int rc = BRC_OK;
    for (size_t at = tip;; at = plan_parent(plan, at, 0)) {
        brc_expire_commit *c = plan_at(plan, at);
        for (size_t i = 0; i < RULES && rc == BRC_OK; i++) {
            int keeps;
            rc = rule_keeps(&rules[i], c->time_us, plan_parents(plan, at) == 0, &keeps, err);
            c->reasons |= rc == BRC_OK && keeps ? rules[i].reason : 0;
        }
        if (rc < 0 || plan_parents(plan, at) == 0)
            break;
    }
    for (size_t i = 0; i < RULES; i++)
        free(rules[i].met);
    return rc;
}

/* Keeps everything that drafts and pins name. That includes refs, which were marked before. */
static int plan_keep_named(brc_expire_plan *plan, brc_error *err)
{
    brc_roots roots = {0};
    int rc = expire_named(&roots, plan->store, err);
    for (size_t i = 0; i < roots.n && rc == BRC_OK; i++) {
        const size_t at = brc_graph_find(&plan->graph, &roots.items[i].id);
        if (at != SIZE_MAX && (plan_at(plan, at)->reasons & (BRC_KEPT_TIP | BRC_KEPT_TAG)) == 0)
            plan_at(plan, at)->reasons |= BRC_KEPT_IN_USE;
    }
    brc_roots_dispose(&roots);
    return rc;
}

/* Sets *same to 0 if a draft or pin names a commit that the plan lets expire. Must be called within
 * a transaction. */
static int expire_same_named(const brc_expire_plan *plan, int *same, brc_error *err)
{
    brc_roots roots = {0};
    int rc = expire_named(&roots, plan->store, err);
    *same = 1;
    for (size_t i = 0; i < roots.n && rc == BRC_OK; i++) {
        const size_t at = brc_graph_find(&plan->graph, &roots.items[i].id);
        *same &= at == SIZE_MAX || plan_at(plan, at)->reasons != 0;
    }
    brc_roots_dispose(&roots);
    return rc;
}

static int plan_choose(brc_expire_plan *plan, brc_error *err)
{
    for (size_t i = 0; i < plan->nrefs; i++) {
        const int is_branch = strncmp(plan->refs[i].name, "heads/", 6) == 0;
        if (!plan->refs[i].has_target)
            continue;
        const size_t at = brc_graph_find(&plan->graph, &plan->refs[i].target);
        plan_at(plan, at)->reasons |= is_branch ? BRC_KEPT_TIP : BRC_KEPT_TAG;
        if (is_branch)
            BRC_TRY(plan_branch(plan, at, err));
    }
    BRC_TRY(plan_keep_named(plan, err));
    for (size_t i = 0; i < plan->n; i++)
        *(plan_at(plan, i)->reasons != 0 ? &plan->kept : &plan->expired) += 1;
    return BRC_OK;
}

/* ---- what stands for parents -------------------------------- */

static int stand_add(brc_expire_plan *plan, size_t i, size_t nearest, brc_error *err)
{
    brc_expire_commit *c = plan_at(plan, i);
    for (size_t k = 0; k < c->nstand; k++)
        if (((const size_t *)plan->stands)[c->stand + k] == nearest)
            return BRC_OK;
    BRC_TRY(brc_grow_array(&plan->stands, &plan->stands_cap, plan->nstands + 1, sizeof(size_t),
                           err));
    ((size_t *)plan->stands)[plan->nstands++] = nearest;
    c->nstand++;
    return BRC_OK;
}

/* Puts the moves of an expired first parent in front of the commit's own, unless the first commit
 * that stands is not on the first parent's line. */
static int stand_moves(brc_expire_plan *plan, size_t i, brc_error *err)
{
    brc_expire_commit *c = plan_at(plan, i);
    const size_t first = plan_parent(plan, i, 0);
    const brc_expire_commit *before = plan_at(plan, first);
    brc_move_set joined = {0};
    static const brc_move_set none;
    void *p;
    if (before->reasons != 0)
        return BRC_OK;
    const int same_line = c->nstand > 0 && (before->is_cut ? before->nstand > 0
                                                           : plan_parents(plan, first) > 0);
    if (!same_line) {
        plan_moves_free(c->moves);
        c->moves = NULL;
        return BRC_OK;
    }
    if (before->moves == NULL)
        return BRC_OK;
    if (c->moves == NULL) {
        BRC_TRY(brc_new(&p, sizeof(brc_move_set), err));
        c->moves = p;
        return brc_move_set_join(c->moves, before->moves, &none, err);
    }
    int rc = brc_move_set_join(&joined, before->moves, c->moves, err);
    brc_move_set_dispose(rc < 0 ? &joined : c->moves);
    if (rc == BRC_OK)
        *c->moves = joined;
    return rc;
}

/* Finds what stands for a commit's parents: parents that stay stand for themselves, and expired
 * parents are replaced by what stands for their parents. */
static int plan_stand(brc_expire_plan *plan, size_t i, brc_error *err)
{
    const size_t n = plan_parents(plan, i);
    int is_cut = 0;
    for (size_t k = 0; k < n; k++)
        is_cut |= plan_at(plan, plan_parent(plan, i, k))->reasons == 0;
    plan_at(plan, i)->stand = plan->nstands;
    plan_at(plan, i)->is_cut = is_cut;
    for (size_t k = 0; is_cut && k < n; k++) {
        const size_t at = plan_parent(plan, i, k);
        const brc_expire_commit *parent = plan_at(plan, at);
        if (parent->reasons != 0)
            BRC_TRY(stand_add(plan, i, at, err));
        const size_t ends = parent->reasons != 0 ? 0
                            : parent->is_cut   ? parent->nstand
                                               : plan_parents(plan, at);
        for (size_t m = 0; m < ends; m++)
            BRC_TRY(stand_add(plan, i,
                              parent->is_cut ? ((const size_t *)plan->stands)[parent->stand + m]
                                             : plan_parent(plan, at, m),
                              err));
    }
    return is_cut ? stand_moves(plan, i, err) : BRC_OK;
}

int brc_expire_plan_make(brc_expire_plan *plan, brc_store *store, const brc_expire_rules *rules,
                         brc_error *err)
{
    static const brc_graph none = BRC_GRAPH_INIT;
    memset(plan, 0, sizeof(*plan));
    plan->store = store;
    plan->rules = *rules;
    plan->graph = none;
    plan->graph.store = store;
    plan->graph.keeps = 1;
    BRC_TRY(plan_load(plan, err));
    BRC_TRY(plan_order(plan, err));
    BRC_TRY(plan_choose(plan, err));
    for (size_t i = plan->n; i > 0; i--)
        BRC_TRY(plan_stand(plan, plan->order[i - 1], err));
    return BRC_OK;
}

/* ---- telling it -------------------------------- */

/* Writes the lines of moves between two snapshots that a reader needs. */
static int moves_text(brc_expire_plan *plan, const brc_expire_commit *c, brc_error *err)
{
    plan->lines.len = 0;
    if (c->moves != NULL && c->nstand > 0) {
        const size_t first = ((const size_t *)plan->stands)[c->stand];
        BRC_TRY(brc_move_set_reduce(c->moves, plan->store, &plan_at(plan, first)->root, &c->root,
                                    err));
        BRC_TRY(brc_move_lines_write(&plan->lines, c->moves, err));
    }
    return brc_buf_terminate(&plan->lines, err);
}

/* Records what stands for the parents of a commit of the plan, and its moves. */
static int expire_put(brc_expire_plan *plan, size_t i, brc_error *err)
{
    void *p;
    const brc_expire_commit *c = plan_at(plan, i);
    BRC_TRY(moves_text(plan, c, err));
    BRC_TRY(brc_new_array(&p, c->nstand + 1, sizeof(brc_oid), err));
    brc_oid *ids = p;
    for (size_t k = 0; k < c->nstand; k++)
        ids[k] = plan_at(plan, ((const size_t *)plan->stands)[c->stand + k])->id;
    int rc = brc_boundary_put(plan->store, &c->id, ids, c->nstand,
                              (const char *)plan->lines.data, err);
    free(p);
    return rc;
}

/* Does the same for a commit outside the plan, if one of its parents expires. Refs do not reach it:
 * its parents may be in the plan, but it is not a parent of commits in the plan. */
static int expire_put_other(brc_expire_plan *plan, const brc_oid *id, brc_error *err)
{
    size_t at;
    const size_t n = plan->n;
    BRC_TRY(brc_graph_add(&plan->graph, id, &at, err));
    if (brc_graph_at(&plan->graph, at)->is_read)
        return BRC_OK;
    BRC_TRY(plan_read(plan, at, err));
    for (size_t i = n; i < plan->n; i++) /* neither it nor its parents outside the plan expire */
        plan_at(plan, i)->reasons |= BRC_KEPT_IN_USE;
    BRC_TRY(plan_stand(plan, at, err));
    return plan_at(plan, at)->is_cut ? expire_put(plan, at, err) : BRC_OK;
}

/* ==== expire run ================================ */

/* Carries out a plan: see expire.h. */

/* Rows in one transaction. */
enum { ROWS = 500 };

/* ---- what refs reach -------------------------------- */

static int same_refs(const brc_expire_plan *plan, int *same, brc_error *err)
{
    brc_ref_row *rows;
    size_t n;
    BRC_TRY(brc_ref_list(plan->store, "", &rows, &n, err));
    *same = n == plan->nrefs;
    for (size_t i = 0; i < n && *same; i++)
        *same = strcmp(rows[i].name, plan->refs[i].name) == 0 &&
                rows[i].has_target == plan->refs[i].has_target &&
                (!rows[i].has_target ||
                 brc_oid_cmp(&rows[i].target, &plan->refs[i].target) == 0);
    brc_ref_rows_free(rows, n);
    return BRC_OK;
}

static int put_kept(brc_expire_plan *plan, brc_error *err)
{
    for (size_t i = 0; i < plan->n; i++) {
        const brc_expire_commit *c = brc_expire_commit_at(plan, i);
        if (c->reasons != 0 && c->is_cut)
            BRC_TRY(expire_put(plan, i, err));
    }
    return BRC_OK;
}

typedef struct expire_call {
    brc_expire_plan *plan;
    brc_store *store;
    const brc_expire_rules *rules;
    const brc_expire_step *step;
    int64_t seen; /* how much others had changed when the plan was made */
} expire_call;

/* Makes the plan. */
static int plan_expire(void *ctx, brc_error *err)
{
    expire_call *c = ctx;
    brc_expire_plan_dispose(c->plan);
    BRC_TRY(brc_store_begin_read(c->store, err));
    int rc = brc_store_others(c->store, &c->seen, err);
    if (rc == BRC_OK)
        rc = brc_expire_plan_make(c->plan, c->store, c->rules, err);
    brc_store_end_read(c->store);
    BRC_TRY(rc);
    return c->plan->expired == 0 ? BRC_CHANGE_NONE : c->step->fn(c->step->ctx, err);
}

/* Sets *is to 1 if nothing that the plan depends on has changed. */
static int is_plan_current(const expire_call *c, int *is, brc_error *err)
{
    int64_t others;
    BRC_TRY(brc_store_others(c->store, &others, err));
    *is = others == c->seen;
    if (*is)
        return BRC_OK;
    BRC_TRY(same_refs(c->plan, is, err));
    return *is ? expire_same_named(c->plan, is, err) : BRC_OK;
}

/* Thins history. If `insists` is 1, the plan is made while the lock is held. */
static int thin_history(void *ctx, int insists, brc_error *err)
{
    expire_call *c = ctx;
    int is;
    BRC_TRY(is_plan_current(c, &is, err));
    if (!is && !insists)
        return BRC_CHANGE_AGAIN;
    if (!is) {
        brc_expire_plan_dispose(c->plan);
        BRC_TRY(brc_expire_plan_make(c->plan, c->store, c->rules, err));
    }
    return put_kept(c->plan, err);
}

/* ---- what refs do not reach any more -------------------------------- */

static int is_there(brc_store *store, const brc_oid *id, int *there, brc_error *err)
{
    brc_object o = {.id = *id}, *one = &o;
    BRC_TRY(brc_objects_find(store, &one, 1, err));
    *there = o.found;
    return BRC_OK;
}

/* Records an expired commit. The log may name it, so that it is kept, but not all of its
 * ancestors. */
static int put_expired(brc_expire_plan *plan, size_t *at, brc_error *err)
{
    int there;
    for (size_t n = 0; *at < plan->n && n < ROWS; ++*at) {
        const brc_expire_commit *c = brc_expire_commit_at(plan, *at);
        if (c->reasons != 0 || !c->is_cut)
            continue;
        BRC_TRY(is_there(plan->store, &c->id, &there, err));
        if (there)
            BRC_TRY(expire_put(plan, *at, err));
        n++;
    }
    return BRC_OK;
}

typedef struct other_commits {
    const brc_expire_plan *plan;
    void *ids; /* brc_oid[]: commits outside the plan */
    size_t n, cap;
} other_commits;

static int note_other(void *ctx, const brc_oid *id, brc_error *err)
{
    other_commits *others = ctx;
    if (brc_graph_find(&others->plan->graph, id) != SIZE_MAX)
        return BRC_OK;
    BRC_TRY(brc_grow_array(&others->ids, &others->cap, others->n + 1, sizeof(brc_oid), err));
    ((brc_oid *)others->ids)[others->n++] = *id;
    return BRC_OK;
}

static int put_others(brc_expire_plan *plan, const brc_oid *ids, size_t n, size_t *at,
                      brc_error *err)
{
    int there;
    for (size_t i = 0; *at < n && i < ROWS; i++, ++*at) {
        BRC_TRY(is_there(plan->store, &ids[*at], &there, err));
        if (there)
            BRC_TRY(expire_put_other(plan, &ids[*at], err));
    }
    return BRC_OK;
}

static int settle_step(brc_expire_plan *plan, const other_commits *others, size_t *at,
                       size_t *other, brc_error *err)
{
    BRC_TRY(brc_store_check_interrupt(plan->store, err));
    BRC_TRY(brc_store_begin(plan->store, err));
    int rc = *at < plan->n ? put_expired(plan, at, err)
                           : put_others(plan, others->ids, others->n, other, err);
    int end = brc_store_end(plan->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

static int settle_rest(brc_expire_plan *plan, const brc_expire_step *step, brc_error *err)
{
    other_commits others = {.plan = plan};
    size_t at = 0, other = 0;
    BRC_TRY(brc_store_begin_read(plan->store, err));
    int rc = brc_store_each_id(plan->store, BRC_IDS_OF_COMMITS, note_other, &others, err);
    brc_store_end_read(plan->store);
    while (rc == BRC_OK && (at < plan->n || other < others.n)) {
        rc = settle_step(plan, &others, &at, &other, err);
        if (rc == BRC_OK)
            rc = step->fn(step->ctx, err);
    }
    free(others.ids);
    return rc;
}

static int drop_unused_drafts(brc_store *store, brc_error *err)
{
    BRC_TRY(brc_store_begin(store, err));
    int rc = brc_drafts_drop_unused(store, err);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

int brc_expire_run(brc_expire_plan *plan, brc_store *store, const brc_expire_rules *rules,
                   const brc_expire_step *step, brc_error *err)
{
    expire_call call = {.plan = plan, .store = store, .rules = rules, .step = step};
    const brc_file_change change = {.ctx = &call, .work = plan_expire, .commit = thin_history};
    memset(plan, 0, sizeof(*plan));
    BRC_TRY(drop_unused_drafts(store, err));
    BRC_TRY(brc_change_run(store, &change, err));
    return plan->expired > 0 ? settle_rest(plan, step, err) : BRC_OK;
}
