/* The rules that hold for the file while nobody is at work: many_check() of many_model.h. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "many_model.h"
#include "scenario.h"

#define GOOD(m, err, call) MANY_TRUE((m), (call) == BRC_OK, "%s", (err)->message)

typedef struct judge {
    many_model *m;
    breccia *repo;
    brc_error err;
    uint64_t *random;
    int branch;
    brc_oid tip;
    const many_commit *chain[MANY_COMMITS]; /* of the branch, newest first */
    size_t nchain;
} judge;

static int same_view(const many_view *a, const many_view *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* ---- commits ---------------------------------------------------------------------------- */

static int calls_cut_off(const many_model *m)
{
    int n = 0;
    for (int w = 0; w < MANY_WORKERS; w++)
        n += m->commit_under_way[w] != 0;
    return n;
}

/* Every commit that was acknowledged is there with what it had, and no other: but for those whose
 * call was cut off. */
static void check_commits(judge *j)
{
    many_model *m = j->m;
    brc_iter *it;
    const brc_commit *commit;
    int rc, strangers = 0;
    uint32_t acked = 0;
    many_view view;
    j->nchain = 0;
    GOOD(m, &j->err, brc_log(&it, j->repo, many_branches[j->branch], NULL, &j->err));
    while ((rc = brc_next(it, &commit, &j->err)) > 0) {
        many_read_commit(m, j->repo, &commit->id, &view);
        const many_commit *known = many_find_commit(m, &commit->id);
        if (known == NULL) {
            MANY_TRUE(m, ++strangers <= calls_cut_off(m), "a commit that nobody made");
            many_note_commit(m, j->repo, j->branch, &commit->id, &view);
            known = many_find_commit(m, &commit->id);
        }
        MANY_TRUE(m, same_view(&known->view, &view), "a commit has changed");
        j->chain[j->nchain++] = known;
    }
    MANY_TRUE(m, rc == 0, "%s", j->err.message);
    brc_iter_free(it);
    for (uint32_t i = 0; i < m->ncommits; i++)
        acked += m->commits[i].known && (i == 0 || m->commits[i].branch == j->branch);
    MANY_TRUE(m, acked == j->nchain, "%u commits were acknowledged, and %zu are there", acked,
              j->nchain);
}

/* ---- the shared draft ------------------------------------------------------------------- */

/* The draft's id, or 0. */
static int64_t shared_draft(judge *j, int *stale)
{
    brc_iter *it;
    const brc_draft *draft;
    int64_t id = 0;
    int rc;
    *stale = 0;
    GOOD(j->m, &j->err, brc_drafts(&it, j->repo, &j->err));
    while ((rc = brc_next(it, &draft, &j->err)) > 0)
        if (!(draft->flags & BRC_DRAFT_OWNED) &&
            strcmp(draft->branch, many_branches[j->branch]) == 0) {
            id = draft->id;
            *stale = (draft->flags & BRC_DRAFT_STALE) != 0;
        }
    MANY_TRUE(j->m, rc == 0, "%s", j->err.message);
    brc_iter_free(it);
    return id;
}

static int surely_pending(const many_branch *b, const many_register *reg)
{
    return reg->when > b->last_reset && b->resets_begun == b->resets_done &&
           reg->acked == reg->begun;
}

/* Returns whether the workers' writes, laid over this commit, can have produced the view. */
static int is_union(const many_model *m, int branch, const many_view *view, const many_view *base,
                    int *worker, int *place)
{
    const many_branch *b = &m->branch[branch];
    for (int w = 0; w < MANY_WORKERS; w++)
        for (int r = 0; r < MANY_REGISTERS; r++) {
            const many_register *reg = &b->shared[w][r];
            uint32_t v = view->value[w][r];
            int is_written = v == reg->acked || v == reg->begun;
            *worker = w;
            *place = r;
            if (surely_pending(b, reg) && v != reg->acked)
                return 0;
            if (!is_written && v != base->value[w][r])
                return 0;
        }
    return 1;
}

static void see_shared(judge *j, many_view *out)
{
    brc_session *s;
    GOOD(j->m, &j->err,
         brc_session_open(&s, j->repo, many_branches[j->branch], BRC_SESSION_VIEW, &j->err));
    many_read(j->m, s, out);
    brc_session_free(s);
}

/* The shared draft has the changes that the workers made, over the tip, or, where it is stale,
 * over an older commit. From now on the model has the file's state. */
static void check_shared(judge *j)
{
    many_model *m = j->m;
    many_view view;
    int stale, worker = 0, place = 0, good;
    int64_t id = shared_draft(j, &stale);
    see_shared(j, &view);
    good = is_union(m, j->branch, &view, &j->chain[0]->view, &worker, &place);
    if (id == 0)
        good = same_view(&view, &j->chain[0]->view) && good;
    for (size_t i = 1; i < j->nchain && stale && !good; i++)
        good = is_union(m, j->branch, &view, &j->chain[i]->view, &worker, &place);
    MANY_TRUE(m, good, "branch %s: register %d of worker %d is %u, and was written as %u",
              many_branches[j->branch], place, worker, view.value[worker][place],
              m->branch[j->branch].shared[worker][place].acked);
    for (int w = 0; w < MANY_WORKERS; w++)
        for (int r = 0; r < MANY_REGISTERS; r++) {
            many_register *reg = &m->branch[j->branch].shared[w][r];
            reg->acked = reg->begun = view.value[w][r];
        }
}

/* ---- drafts of the dead -------------------------------------------------------------------- */

/* How many private drafts with changes there are; of the first, its id and branch. */
static int private_drafts(judge *j, int64_t *id, int *branch)
{
    brc_iter *it;
    const brc_draft *draft;
    int rc, n = 0;
    GOOD(j->m, &j->err, brc_drafts(&it, j->repo, &j->err));
    while ((rc = brc_next(it, &draft, &j->err)) > 0) {
        if (!(draft->flags & BRC_DRAFT_OWNED) || draft->nodes == 0)
            continue;
        MANY_TRUE(j->m, draft->owner == BRC_OWNER_DEAD, "a draft's owner is not dead");
        if (n++ == 0) {
            *id = draft->id;
            *branch = strcmp(draft->branch, many_branches[0]) != 0;
        }
    }
    MANY_TRUE(j->m, rc == 0, "%s", j->err.message);
    brc_iter_free(it);
    return n;
}

/* Groups that were made and removed again may be no change. */
static int is_sure(const many_private *left)
{
    int written = 0;
    for (int r = 0; r < MANY_GROUP; r++)
        written |= left->mine[r];
    return left->changed && written && !left->under_way;
}

/* The view is what a draft had: which one? Of one that was being changed, only its steps before
 * are known. */
static many_private *left_as(judge *j, const many_view *view)
{
    many_private *in_change = NULL;
    for (uint32_t i = 0; i < j->m->nleft; i++) {
        many_private *left = &j->m->left[i];
        if (left->branch != j->branch)
            continue;
        if (left->changed && same_view(&left->now, view))
            return left;
        if (left->under_way)
            in_change = left;
    }
    return in_change;
}

/* Both: what was uncommitted, and what a worker left. */
static int is_laid_over(const judge *j, const many_view *before, const many_view *after)
{
    for (uint32_t i = 0; i < j->m->nleft; i++) {
        const many_private *left = &j->m->left[i];
        many_view both = *before;
        if (left->branch != j->branch)
            continue;
        if (left->under_way)
            return 1;
        for (int w = 0; w < MANY_WORKERS; w++)
            for (int r = 0; r < MANY_REGISTERS; r++)
                if (left->now.value[w][r] != left->base.value[w][r])
                    both.value[w][r] = left->now.value[w][r];
        if (same_view(&both, after))
            return 1;
    }
    return 0;
}

/* Over what others have not committed: all of both, or a refusal that changes nothing. */
static void adopt_over(judge *j, int64_t id)
{
    many_view before, after;
    see_shared(j, &before);
    int rc = brc_draft_adopt(j->repo, id, &j->err);
    see_shared(j, &after);
    j->m->done[rc == BRC_OK ? ADOPTED_OVER : ADOPTION_REFUSED]++;
    if (rc == BRC_OK) {
        MANY_TRUE(j->m, is_laid_over(j, &before, &after), "an adoption is not both drafts");
        return;
    }
    MANY_TRUE(j->m, rc == BRC_ECONFLICT || rc == BRC_ESTALE, "%d: %s", rc, j->err.message);
    MANY_TRUE(j->m, same_view(&before, &after), "a refused adoption has changed something");
    GOOD(j->m, &j->err, brc_draft_drop(j->repo, id, &j->err));
}

/* A dead worker's draft becomes the shared one as it left it: in a transaction nothing merges. */
static void adopt_alone(judge *j, int64_t id)
{
    many_view view;
    GOOD(j->m, &j->err, brc_begin(j->repo, &j->err));
    GOOD(j->m, &j->err, brc_draft_adopt(j->repo, id, &j->err));
    GOOD(j->m, &j->err, brc_end(j->repo, BRC_END_KEEP, &j->err));
    see_shared(j, &view);
    many_private *left = left_as(j, &view);
    MANY_TRUE(j->m, left != NULL, "a draft that nobody left, or not as they left it");
    left->branch = -1;
    j->m->done[ADOPTED]++;
}

static void commit_or_discard(judge *j)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    many_view before, after;
    brc_session *s;
    brc_oid id;
    int stale;
    if (shared_draft(j, &stale) == 0)
        return;
    see_shared(j, &before);
    opts.message = "what was left";
    opts.flags = BRC_COMMIT_NO_MERGE;
    GOOD(j->m, &j->err,
         brc_session_open(&s, j->repo, many_branches[j->branch], BRC_SESSION_WRITE, &j->err));
    int rc = brc_session_commit(&id, s, &opts, &j->err);
    many_read(j->m, s, &after);
    MANY_TRUE(j->m, same_view(&before, &after), "a commit has changed what is seen");
    if (rc == BRC_OK)
        many_note_commit(j->m, j->repo, j->branch, &id, &after);
    else
        MANY_TRUE(j->m, rc == BRC_EMISUSE || (stale && rc == BRC_ESTALE), "%d: %s", rc,
                  j->err.message);
    MANY_TRUE(j->m, rc != BRC_OK || !stale, "a stale draft was committed");
    GOOD(j->m, &j->err, brc_session_discard(s, &j->err));
    brc_session_free(s);
}

/* Each is adopted or dropped, and each is one that a worker left. */
static void settle_drafts(judge *j)
{
    int64_t id = 0;
    int stale, surely = 0, perhaps = 0, n = private_drafts(j, &id, &j->branch);
    for (uint32_t i = 0; i < j->m->nleft; i++) {
        surely += is_sure(&j->m->left[i]);
        perhaps += !is_sure(&j->m->left[i]);
    }
    MANY_TRUE(j->m, n >= surely && n <= surely + perhaps, "%d private drafts, not %d", n, surely);
    while (private_drafts(j, &id, &j->branch) > 0) {
        uint64_t chance = scenario_below(j->random, 3);
        int has_changes = shared_draft(j, &stale) != 0;
        if (chance == 0) {
            GOOD(j->m, &j->err, brc_draft_drop(j->repo, id, &j->err));
            j->m->done[DROPPED]++;
        } else if (chance == 1 && has_changes) {
            adopt_over(j, id);
        } else {
            commit_or_discard(j);
            MANY_TRUE(j->m, shared_draft(j, &stale) == 0, "a draft is left after a discard");
            adopt_alone(j, id);
        }
    }
    j->m->nleft = 0;
}

/* ---- all of it ----------------------------------------------------------------------- */

static int never_damaged(void *ctx, const brc_damage *damage)
{
    many_fail(ctx, __FILE__, __LINE__, "fsck: %s: %s", damage->kind, damage->message);
}

/* From here on everything is known. */
static void begin_anew(judge *j)
{
    many_model *m = j->m;
    many_view view;
    see_shared(j, &view);
    many_branch *b = &m->branch[j->branch];
    b->resets_done = b->resets_begun;
    b->moves_done = b->moves_begun;
    b->hand_overs_done = b->hand_overs;
    b->commits_done = b->commits_begun;
    b->last_reset = atomic_fetch_add(&m->clock, 1);
    b->moves_known = b->moves_begun;
    for (int w = 0; w < MANY_WORKERS; w++) {
        memset(&m->private[w][j->branch], 0, sizeof(many_private));
        m->commit_under_way[w] = 0;
        b->published[w] = m->stamps;
        for (int r = 0; r < MANY_REGISTERS; r++)
            b->shared[w][r].acked = b->shared[w][r].begun = view.value[w][r];
    }
}

static void note_the_dead(many_model *m)
{
    for (int w = 0; w < MANY_WORKERS; w++)
        for (int b = 0; b < MANY_BRANCHES; b++)
            if (m->private[w][b].changed || m->private[w][b].under_way)
                many_note_left(m, &m->private[w][b], b);
}

void many_check(many_model *m, uint64_t *random)
{
    static judge j;
    uint64_t checked;
    memset(&j, 0, sizeof(j));
    j.m = m;
    j.random = random;
    GOOD(m, &j.err, brc_open(&j.repo, m->file, NULL, &j.err));
    for (j.branch = 0; j.branch < MANY_BRANCHES; j.branch++) {
        check_commits(&j);
        check_shared(&j);
    }
    note_the_dead(m);
    settle_drafts(&j);
    for (j.branch = 0; j.branch < MANY_BRANCHES; j.branch++) {
        commit_or_discard(&j);
        check_commits(&j);
        begin_anew(&j);
    }
    GOOD(m, &j.err, brc_fsck(j.repo, 0, never_damaged, NULL, m, &checked, &j.err));
    brc_free(j.repo);
}
