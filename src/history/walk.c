/* Follows moves along the first parents of a commit, and through a merge from another parent. */
#include "walk.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/hash.h"
#include "ancestry.h"
#include "graph.h"
#include "tree_diff.h"

/* ==== lineage ================================ */

/* The most commits to follow. A diff of versions that are further apart finds moves by equal
 * entries. */
#define LINEAGE_MOST 1000

static int is_reached(int has_older, const brc_oid *older, int has_at, const brc_oid *at)
{
    return has_older == has_at && (!has_older || brc_oid_cmp(older, at) == 0);
}

/* The limit of nested merges. A branch that is merged again and again leads back to its earlier
 * merges, each of which asks for the one before. */
#define ACROSS_MOST 100

typedef struct lineage {
    brc_store *store;
    int has_older;
    const brc_oid *older;
    int looks;          /* also find nodes that were made again */
    int depth;
    int has_at;
    brc_oid at;         /* the commit that it has reached */
    brc_move_set moves; /* the moves from that commit on */
    int known;
} lineage;

static int between(brc_move_set *out, int *known, const lineage *like, const brc_oid *older,
                   const brc_oid *newer, brc_error *err);

/* Puts the moves of `before` in front of the moves found so far. */
static int lay_under(lineage *l, const brc_move_set *before, brc_error *err)
{
    brc_move_set joined = {0};
    if (before->n == 0)
        return BRC_OK;
    int rc = brc_move_set_join(&joined, before, &l->moves, err);
    brc_move_set_dispose(rc < 0 ? &joined : &l->moves);
    if (rc == BRC_OK)
        l->moves = joined;
    return rc;
}

/* Finds the moves from a commit to one that follows it, without nodes that are not in both. */
static int between_roots(brc_move_set *out, int *known, const lineage *like, const brc_oid *older,
                         const brc_oid *newer, brc_error *err)
{
    brc_oid from, to;
    BRC_TRY(between(out, known, like, older, newer, err));
    if (!*known)
        return BRC_OK;
    BRC_TRY(brc_commit_root(like->store, older, &from, err));
    BRC_TRY(brc_commit_root(like->store, newer, &to, err));
    return brc_move_set_reduce(out, like->store, &from, &to, err);
}

/* Finds the moves from one parent of a merge to another: back to their base, and forward from
 * there. They are not known if the parents have several bases. */
static int across(brc_move_set *out, int *known, const lineage *like, const brc_oid *from,
                  const brc_oid *to, brc_error *err)
{
    brc_commit_set one = {0}, bases = {0};
    brc_move_set there = {0}, back = {0}, here = {0};
    int rc;
    *known = 0;
    if (like->depth == ACROSS_MOST)
        return BRC_OK;
    BRC_GO(brc_commit_set_add(&one, to, err));
    BRC_GO(brc_merge_bases(&bases, like->store, &one, from, err));
    if (bases.n != 1)
        goto done;
    BRC_GO(between_roots(&there, known, like, &bases.ids[0], from, err));
    if (*known)
        BRC_GO(between_roots(&here, known, like, &bases.ids[0], to, err));
    if (*known) {
        BRC_GO(brc_move_set_turn(&back, &there, err));
        rc = brc_move_set_join(out, &back, &here, err);
    }
done:
    brc_move_set_dispose(&there);
    brc_move_set_dispose(&back);
    brc_move_set_dispose(&here);
    brc_commit_set_dispose(&one);
    brc_commit_set_dispose(&bases);
    return rc;
}

/* Finds the moves from another parent of a merge to the merge. These moves are joined first, and
 * then with the later ones, because a node that is new to the first parent has no path in that
 * parent. */
static int through_merge(lineage *l, const brc_commit *merge, const brc_oid *parent,
                         brc_error *err)
{
    brc_move_set beside = {0}, whole = {0};
    int rc;
    BRC_GO(across(&beside, &l->known, l, parent, &merge->parents[0], err));
    if (l->known) {
        BRC_GO(brc_move_set_join(&whole, &beside, brc_commit_moves(merge), err));
        rc = lay_under(l, &whole, err);
    }
done:
    brc_move_set_dispose(&beside);
    brc_move_set_dispose(&whole);
    return rc;
}

/* Adds the moves of a commit, and the nodes that the commit made where `older` had a node that
 * another commit removed. */
static int lay_commit(lineage *l, const brc_commit *commit, brc_error *err)
{
    brc_move_set made = {0}, whole = {0};
    brc_oid older, before;
    int rc;
    if (!l->looks || commit->nparents == 0 || brc_oid_cmp(&commit->parents[0], l->older) == 0)
        return lay_under(l, brc_commit_moves(commit), err);
    BRC_GO(brc_commit_root(l->store, l->older, &older, err));
    BRC_GO(brc_commit_root(l->store, &commit->parents[0], &before, err));
    BRC_GO(brc_made_again(&made, l->store, &older, &before, &commit->root, brc_commit_moves(commit),
                          err));
    BRC_GO(brc_move_set_seal(&made, err));
    BRC_GO(brc_move_set_join(&whole, brc_commit_moves(commit), &made, err));
    rc = lay_under(l, &whole, err);
done:
    brc_move_set_dispose(&made);
    brc_move_set_dispose(&whole);
    return rc;
}

/* Puts the moves of `at` in front of the moves found so far and continues with its first parent, or
 * with another parent if that is `older`. */
static int lineage_step(lineage *l, brc_error *err)
{
    brc_commit *commit;
    int rc = BRC_OK;
    BRC_TRY(brc_commit_get(&commit, l->store, &l->at, err));
    for (size_t i = 1; l->has_older && i < commit->nparents && rc == BRC_OK && !l->known; i++)
        if (brc_oid_cmp(&commit->parents[i], l->older) == 0)
            rc = through_merge(l, commit, l->older, err);
    if (rc == BRC_OK && !l->known)
        rc = lay_commit(l, commit, err);
    l->has_at = commit->nparents > 0;
    if (l->has_at)
        l->at = commit->parents[0];
    brc_commit_free(commit);
    return rc;
}

static int walk_lineage(lineage *l, brc_error *err)
{
    int rc = BRC_OK;
    l->known = is_reached(l->has_older, l->older, l->has_at, &l->at);
    for (int i = 0; i < LINEAGE_MOST && l->has_at && !l->known && rc == BRC_OK; i++) {
        rc = lineage_step(l, err);
        l->known |= is_reached(l->has_older, l->older, l->has_at, &l->at);
    }
    if (rc < 0 || !l->known || !l->has_older)
        brc_move_set_dispose(&l->moves);
    return rc;
}

static int between(brc_move_set *out, int *known, const lineage *like, const brc_oid *older,
                   const brc_oid *newer, brc_error *err)
{
    lineage l = {.store = like->store, .has_older = 1, .older = older, .looks = like->looks,
                 .depth = like->depth + 1, .has_at = 1, .at = *newer};
    int rc = walk_lineage(&l, err);
    *out = l.moves;
    *known = l.known;
    return rc;
}

int brc_move_set_between(brc_move_set *out, int *known, brc_store *store, int has_older,
                         const brc_oid *older, const brc_oid *newer, brc_error *err)
{
    lineage l = {.store = store, .has_older = has_older, .older = older, .has_at = 1,
                 .at = *newer};
    int rc = walk_lineage(&l, err);
    *out = l.moves;
    *known = l.known;
    return rc;
}

int brc_move_set_across(brc_move_set *out, int *known, brc_store *store, const brc_oid *from,
                        const brc_oid *to, brc_error *err)
{
    const lineage like = {.store = store, .looks = 1, .depth = -1};
    BRC_TRY(brc_move_set_between(out, known, store, 1, from, to, err));
    return *known ? BRC_OK : across(out, known, &like, from, to, err);
}

int brc_move_set_along(brc_move_set *out, int *known, brc_store *store, const brc_oid *older,
                       const brc_oid *newer, brc_error *err)
{
    const lineage like = {.store = store, .looks = 1, .depth = -1};
    return between(out, known, &like, older, newer, err);
}

/* ==== path before ================================ */

static int set_path(brc_buf *out, const char *path, brc_error *err)
{
    out->len = 0;
    BRC_TRY(brc_buf_text(out, path, err));
    return brc_buf_terminate(out, err);
}

/* Finds the only merge base of two parents. *has is 0 if there is none, or several. */
static int single_base(brc_store *store, const brc_commit *commit, size_t i, brc_oid *base,
                       int *has, brc_error *err)
{
    brc_commit_set bases = { 0 }, first = { 0 };
    int rc = brc_commit_set_add(&first, &commit->parents[0], err);
    if (rc == BRC_OK)
        rc = brc_merge_bases(&bases, store, &first, &commit->parents[i], err);
    *has = rc == BRC_OK && bases.n == 1;
    if (*has)
        *base = bases.ids[0];
    brc_commit_set_dispose(&bases);
    brc_commit_set_dispose(&first);
    return rc;
}

/* Follows moves from the commit to its first parent, to the base, and from there to the other
 * parent. */
static int follow_moves(brc_buf *out, int *has, brc_store *store, const brc_commit *commit,
                        size_t i, const brc_oid *base, const char *path, brc_error *err)
{
    brc_move_set back = { 0 }, forth = { 0 };
    brc_buf first = BRC_BUF_INIT, then = BRC_BUF_INIT;
    int rc, known, known_too;
    BRC_GO(brc_move_origin(&first, has, brc_commit_moves(commit), path, err));
    if (!*has)
        goto done;
    BRC_GO(brc_move_set_between(&back, &known, store, 1, base, &commit->parents[0], err));
    BRC_GO(brc_move_set_between(&forth, &known_too, store, 1, base, &commit->parents[i], err));
    *has = known && known_too;
    if (*has)
        BRC_GO(brc_move_origin(&then, has, &back, (const char *)first.data, err));
    out->len = 0;
    if (*has)
        rc = brc_move_target(out, &forth, (const char *)then.data, 0, err);
done:
    brc_move_set_dispose(&back);
    brc_move_set_dispose(&forth);
    brc_buf_dispose(&first);
    brc_buf_dispose(&then);
    return rc;
}

int brc_path_before(brc_buf *out, int *has, brc_store *store, const brc_commit *commit, size_t i,
                    const char *path, brc_oid *root, brc_entry *entry, brc_error *err)
{
    const brc_move_set *moves = brc_commit_moves(commit);
    brc_oid base;
    *has = 1;
    out->len = 0;
    memset(entry, 0, sizeof(*entry));
    BRC_TRY(brc_commit_root(store, &commit->parents[i], root, err));
    if (i == 0 && moves->n > 0) {
        BRC_TRY(brc_move_origin(out, has, moves, path, err));
        return *has ? brc_snapshot_find(store, root, (const char *)out->data, entry, err) : BRC_OK;
    }
    BRC_TRY(set_path(out, path, err));
    BRC_TRY(brc_snapshot_find(store, root, path, entry, err));
    if (i == 0 || entry->kind != 0)
        return BRC_OK;
    BRC_TRY(single_base(store, commit, i, &base, has, err));
    if (*has)
        BRC_TRY(follow_moves(out, has, store, commit, i, &base, path, err));
    if (*has)
        return brc_snapshot_find(store, root, (const char *)out->data, entry, err);
    *has = 1; /* the base has no node at this path */
    return set_path(out, path, err);
}

/* ==== path log ================================ */

/* A node to look for in a commit that was not visited yet. */
typedef struct log_place {
    uint32_t next; /* one more than the next place of the same commit; 0: none */
    char *path;
    brc_oid root;
    brc_entry entry; /* kind 0: the commit has no node there */
} log_place;

struct brc_path_log {
    brc_store *store;
    int full, met;
    brc_id_table first; /* by a commit's id: one more than its first place */
    void *places;       /* log_place[] */
    size_t n, cap;
    uint32_t unused;    /* one more than the first free place */
    size_t open;        /* number of places of commits that were not visited */
    char *told;         /* the path that was returned last */
};

/* The node in one of the parents of a commit. */
typedef struct log_parent {
    const char *path; /* NULL: the parent has another node there, or the node is new */
    brc_oid root;
    brc_entry entry;
} log_parent;

static log_place *log_place_at(const brc_path_log *log, uint32_t i)
{
    return (log_place *)log->places + (i - 1);
}

void brc_path_log_free(brc_path_log *log)
{
    if (log == NULL)
        return;
    for (uint32_t i = 1; i <= log->n; i++)
        free(log_place_at(log, i)->path);
    free(log->places);
    free(log->told);
    brc_id_table_dispose(&log->first);
    free(log);
}

/* ---- places -------------------------------- */

static int new_place(brc_path_log *log, uint32_t *out, brc_error *err)
{
    if (log->unused != 0) {
        *out = log->unused;
        log->unused = log_place_at(log, *out)->next;
        return BRC_OK;
    }
    if (log->n >= UINT32_MAX - 1)
        return brc_fail(err, BRC_ELIMIT, "there are too many commits to look through");
    BRC_TRY(brc_grow_array(&log->places, &log->cap, log->n + 1, sizeof(log_place), err));
    *out = (uint32_t)++log->n;
    memset(log_place_at(log, *out), 0, sizeof(log_place));
    return BRC_OK;
}

/* Adds a place. Two children may lead to the same place. */
static int add_place(brc_path_log *log, const brc_oid *commit, const char *path,
                     const brc_oid *root, const brc_entry *entry, brc_error *err)
{
    void *p;
    char *copy;
    uint32_t i;
    BRC_TRY(brc_id_table_add(&log->first, commit, &p, err));
    uint32_t *first = p;
    for (i = *first; i != 0; i = log_place_at(log, i)->next)
        if (strcmp(log_place_at(log, i)->path, path) == 0)
            return BRC_OK;
    BRC_TRY(brc_dup(&copy, path, err));
    int rc = new_place(log, &i, err);
    if (rc < 0) {
        free(copy);
        return rc;
    }
    *log_place_at(log, i) = (log_place){ *first, copy, *root, *entry };
    *first = i;
    log->open++;
    return BRC_OK;
}

static void free_place(brc_path_log *log, uint32_t i)
{
    log_place *place = log_place_at(log, i);
    free(place->path);
    place->path = NULL;
    place->next = log->unused;
    log->unused = i;
    log->open--;
}

int brc_path_log_new(brc_path_log **out, brc_store *store, const brc_oid *tip, const char *path,
                     int full, brc_error *err)
{
    void *p;
    brc_oid root;
    brc_entry entry;
    *out = NULL;
    BRC_TRY(brc_new(&p, sizeof(brc_path_log), err));
    brc_path_log *log = p;
    log->store = store;
    log->full = full;
    log->first = (brc_id_table)BRC_ID_TABLE_INIT(sizeof(uint32_t));
    int rc = BRC_OK;
    if (!brc_oid_is_zero(tip)) {
        BRC_GO(brc_commit_root(store, tip, &root, err));
        BRC_GO(brc_snapshot_find(store, &root, path, &entry, err));
        BRC_GO(add_place(log, tip, path, &root, &entry, err));
    }
done:
    if (rc < 0)
        brc_path_log_free(log);
    else
        *out = log;
    return rc;
}

/* ---- a commit -------------------------------- */

/* Finds the node in a parent. A node that does not exist in the commit is searched under the same
 * path. */
static int parent_at(brc_path_log *log, const brc_commit *commit, size_t i, const log_place *now,
                     brc_buf *buf, log_parent *out, brc_error *err)
{
    int has;
    memset(out, 0, sizeof(*out));
    if (now->entry.kind == 0) {
        out->path = now->path;
        BRC_TRY(brc_commit_root(log->store, &commit->parents[i], &out->root, err));
        return brc_snapshot_find(log->store, &out->root, now->path, &out->entry, err);
    }
    BRC_TRY(brc_path_before(buf, &has, log->store, commit, i, now->path, &out->root, &out->entry,
                            err));
    out->path = has ? (const char *)buf->data : NULL;
    return BRC_OK;
}

/* Visits a place. Sets *changed if the node differs from that of every parent. */
static int visit_place(brc_path_log *log, const brc_commit *commit, const log_place *now,
                       int *changed, brc_error *err)
{
    brc_buf buf = BRC_BUF_INIT;
    log_parent before;
    int rc = BRC_OK;
    *changed = now->entry.kind != 0 || commit->nparents > 0;
    for (size_t i = 0; i < commit->nparents; i++) {
        BRC_GO(parent_at(log, commit, i, now, &buf, &before, err));
        if (before.path == NULL || strcmp(before.path, now->path) != 0 ||
            !brc_entry_equal(&now->entry, &before.entry))
            continue;
        *changed = 0;
        if (!log->full) {
            rc = add_place(log, &commit->parents[i], before.path, &before.root, &before.entry, err);
            goto done;
        }
    }
    for (size_t i = 0; i < commit->nparents; i++) {
        if (commit->nparents > 1) /* with one parent, this was checked above */
            BRC_GO(parent_at(log, commit, i, now, &buf, &before, err));
        if (before.path != NULL)
            BRC_GO(add_place(log, &commit->parents[i], before.path, &before.root, &before.entry,
                             err));
        log->met |= before.entry.kind != 0;
    }
done:
    brc_buf_dispose(&buf);
    return rc;
}

int brc_path_log_visit(brc_path_log *log, const brc_commit *commit, const char **path,
                       brc_error *err)
{
    uint32_t *first = brc_id_table_find(&log->first, &commit->id), next;
    int touched = 0, changed;
    if (first == NULL)
        return 0;
    uint32_t i = *first;
    *first = 0;
    for (; i != 0; i = next) {
        log_place now = *log_place_at(log, i); /* a copy, because places move when others are
                                                * added */
        next = now.next;
        log->met |= now.entry.kind != 0;
        BRC_TRY(visit_place(log, commit, &now, &changed, err));
        if (changed && !touched) {
            free(log->told);
            log->told = now.path;
            log_place_at(log, i)->path = NULL;
        }
        touched |= changed;
        free_place(log, i);
    }
    *path = log->told;
    return touched;
}

int brc_path_log_is_done(const brc_path_log *log)
{
    return log->open == 0;
}

int brc_path_log_met(const brc_path_log *log)
{
    return log->met;
}

/* ==== walk ================================ */

/*
 * Walks history. While history is a line, commits are read one by one. At the first merge the rest
 * is loaded at once, because only then it is known how many children each commit has, and a commit
 * must wait for all of them: wrong clocks change only the order of unrelated commits.
 *
 * Hidden commits are not even loaded: all ancestors of a hidden commit are hidden too.
 */

/* Detects a circular line: compares with one earlier commit, at first the first commit, then each
 * time a commit twice as far. */
typedef struct line_guard {
    brc_oid seen;
    uint64_t steps;
} line_guard;

struct brc_walk {
    brc_store *store;
    line_guard guard;
    brc_commit *given; /* the last commit of the line */
    brc_oid at;        /* the next commit of the line */
    int more;
    brc_graph rest;    /* the commits from the first merge on, which it keeps */
    size_t rest_given; /* the last one of these that was returned */
    void *waiting;     /* size_t[]: of each, the number of children that were not returned yet */
    brc_graph_heap ready; /* newest first */
    int has_end;
    brc_oid end;       /* where the line ends because the following commits are hidden */
    brc_reach *hidden; /* NULL: nothing is hidden, or `end` says what */
};

/* Returns 1 if the commit is hidden. */
static int walk_hides(void *ctx, const brc_oid *id, brc_error *err)
{
    const brc_walk *walk = ctx;
    if (walk->has_end && brc_oid_cmp(id, &walk->end) == 0)
        return 1;
    return walk->hidden != NULL ? brc_reach_find(walk->hidden, id, err) : 0;
}

static int walk_newer(const void *ctx, size_t a, size_t b)
{
    const brc_graph_commit *x = brc_graph_at(ctx, a), *y = brc_graph_at(ctx, b);
    if (x->commit->time_us != y->commit->time_us)
        return x->commit->time_us > y->commit->time_us;
    return brc_oid_cmp(&x->id, &y->id) < 0;
}

int brc_walk_new(brc_walk **out, brc_store *store, const brc_oid *tip, brc_error *err)
{
    static const brc_graph none = BRC_GRAPH_INIT;
    void *p;
    *out = NULL;
    BRC_TRY(brc_new(&p, sizeof(brc_walk), err));
    brc_walk *walk = *out = p;
    walk->store = store;
    walk->at = *tip;
    walk->more = !brc_oid_is_zero(tip);
    walk->rest = none;
    walk->rest.store = store;
    walk->rest.keeps = 1;
    walk->rest.skips = walk_hides;
    walk->rest.ctx = walk;
    walk->ready.before = walk_newer;
    walk->ready.ctx = &walk->rest;
    return BRC_OK;
}

void brc_walk_free(brc_walk *walk)
{
    if (walk == NULL)
        return;
    brc_graph_dispose(&walk->rest);
    brc_reach_free(walk->hidden);
    brc_commit_free(walk->given);
    free(walk->waiting);
    free(walk->ready.items);
    free(walk);
}

/* Fails if a line is circular. A damaged row of expired commits can claim what no commit can: that
 * a commit comes before itself. */
static int line_goes_on(line_guard *guard, const brc_oid *at, brc_error *err)
{
    if (guard->steps > 0 && brc_oid_cmp(&guard->seen, at) == 0)
        return brc_fail(err, BRC_ECORRUPT, "a commit is its own ancestor; run 'breccia fsck'");
    if ((guard->steps & (guard->steps - 1)) == 0)
        guard->seen = *at;
    guard->steps++;
    return BRC_OK;
}

/* Sets *meets to 1 if the line from the walk's tip reaches `id` before a merge. */
static int line_meets(const brc_walk *walk, const brc_oid *id, int *meets, brc_error *err)
{
    brc_oid at = walk->at;
    size_t parents = 1;
    line_guard guard = {0};
    *meets = 0;
    while (parents == 1 && !*meets) {
        brc_commit *c;
        BRC_TRY(line_goes_on(&guard, &at, err));
        *meets = brc_oid_cmp(&at, id) == 0;
        BRC_TRY(brc_store_check_interrupt(walk->store, err));
        BRC_TRY(brc_commit_get(&c, walk->store, &at, err));
        parents = c->nparents;
        if (parents > 0)
            at = c->parents[0];
        brc_commit_free(c);
    }
    return BRC_OK;
}

/* Usually `tip` is on the line itself, so its ancestors need not be read. */
int brc_walk_hide(brc_walk *walk, const brc_oid *tip, brc_error *err)
{
    if (!walk->more || brc_oid_is_zero(tip))
        return BRC_OK;
    BRC_TRY(line_meets(walk, tip, &walk->has_end, err));
    walk->end = *tip;
    if (walk->has_end)
        return BRC_OK;
    BRC_TRY(brc_reach_new(&walk->hidden, walk->store, err));
    return brc_reach_from(walk->hidden, tip, err);
}

/* Loads everything from `tip` on and counts the children. */
static int walk_load_rest(brc_walk *walk, const brc_oid *tip, brc_error *err)
{
    brc_graph *g = &walk->rest;
    size_t top;
    BRC_TRY(brc_graph_add(g, tip, &top, err));
    for (size_t i = 0; i < g->n; i++)
        BRC_TRY(brc_graph_read(g, i, err));
    BRC_TRY(brc_new_array(&walk->waiting, g->n, sizeof(size_t), err));
    for (size_t i = 0; i < g->n; i++)
        for (size_t k = 0; k < brc_graph_at(g, i)->nparents; k++)
            ((size_t *)walk->waiting)[brc_graph_parent(g, i, k)]++;
    return brc_heap_push(&walk->ready, top, err);
}

static int walk_next_of_rest(brc_walk *walk, const brc_commit **out, brc_error *err)
{
    const brc_graph *g = &walk->rest;
    if (walk->ready.n == 0)
        return 0;
    const size_t i = walk->rest_given = brc_heap_pop(&walk->ready);
    for (size_t k = 0; k < brc_graph_at(g, i)->nparents; k++) {
        const size_t parent = brc_graph_parent(g, i, k);
        if (--((size_t *)walk->waiting)[parent] == 0)
            BRC_TRY(brc_heap_push(&walk->ready, parent, err));
    }
    *out = brc_graph_at(g, i)->commit;
    return 1;
}

int brc_walk_next(brc_walk *walk, const brc_commit **out, brc_error *err)
{
    BRC_TRY(brc_store_check_interrupt(walk->store, err));
    if (walk->rest.n > 0)
        return walk_next_of_rest(walk, out, err);
    int hides = walk->more ? walk_hides(walk, &walk->at, err) : 1;
    if (hides != 0) {
        walk->more = 0;
        return hides < 0 ? hides : 0;
    }
    brc_commit_free(walk->given);
    walk->given = NULL;
    BRC_TRY(line_goes_on(&walk->guard, &walk->at, err));
    BRC_TRY(brc_commit_get(&walk->given, walk->store, &walk->at, err));
    if (walk->given->nparents > 1) {
        brc_oid at = walk->at;
        walk->more = 0;
        BRC_TRY(walk_load_rest(walk, &at, err));
        return walk_next_of_rest(walk, out, err);
    }
    walk->more = walk->given->nparents == 1;
    if (walk->more)
        walk->at = walk->given->parents[0];
    *out = walk->given;
    return 1;
}

brc_commit *brc_walk_take(brc_walk *walk)
{
    brc_commit **held = walk->rest.n > 0 ? &brc_graph_at(&walk->rest, walk->rest_given)->commit
                                         : &walk->given;
    brc_commit *commit = *held;
    *held = NULL;
    return commit;
}
