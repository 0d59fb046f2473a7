/* Expire, commit --amend, drafts of killed processes, merges and rebases that stay open, and
 * repack, for history_world.h. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "history_world.h"

enum { EXPIRE = HM_RARE, AMEND, ADOPT, OPEN, OPEN_REBASE, REPACK };

static int collect_now(hm_world *w, breccia *repo)
{
    brc_gc_opts gc = BRC_GC_OPTS_INIT;
    HM_OK(w, brc_config_set(repo, "window", "0", &w->err));
    HM_OK(w, brc_gc(repo, &gc, NULL, &w->err));
    hm_forget_log(w);
    return 0;
}

/* ---- expire --------------------------------------------------------------------------------- */

typedef struct thinned {
    uint8_t reached[HM_COMMITS], kept[HM_COMMITS];
} thinned;

static void reach_from(const hm_world *w, int commit, thinned *t)
{
    if (t->reached[commit])
        return;
    t->reached[commit] = 1;
    for (int i = 0; i < w->g.commit[commit].nparents; i++)
        reach_from(w, w->g.commit[commit].parent[i], t);
}

/* Marks the commits that must stay: those with a name, those beneath drafts, the newest of each
 * branch. */
static void must_stay(const hm_world *w, int keep_last, thinned *t)
{
    memset(t, 0, sizeof(*t));
    for (int i = 0; i < HM_TAGS; i++)
        if (w->refs.tag[i] >= 0) {
            reach_from(w, w->refs.tag[i], t);
            t->kept[w->refs.tag[i]] = 1;
        }
    for (int i = 0; i < HM_SESSIONS; i++)
        if (w->draft[i].changed)
            t->kept[w->draft[i].base] = 1;
    for (int i = 0; i < HM_BRANCHES; i++) {
        int commit = w->refs.tip[i];
        if (commit < 0)
            continue;
        reach_from(w, commit, t);
        for (int n = 0; n < keep_last; n++) {
            t->kept[commit] = 1;
            if (w->g.commit[commit].nparents == 0)
                break;
            commit = w->g.commit[commit].parent[0];
        }
    }
}

/* Checks the decision on one commit; more commits than must stay may be in use. */
static int check_decided(hm_world *w, const brc_expired *one, thinned *t)
{
    const int commit = hm_find(w, &one->id);
    HM_TRUE(w, commit >= 0 && t->reached[commit] == 1, "expire looks at an unknown commit");
    t->reached[commit] = 2;
    HM_TRUE(w, one->reasons != 0 || !t->kept[commit], "commit %d expires, which must stay", commit);
    HM_TRUE(w, one->reasons == 0 || t->kept[commit] || (one->reasons & BRC_KEPT_IN_USE) != 0,
            "commit %d stays without a reason", commit);
    t->kept[commit] = one->reasons != 0;
    return 0;
}

static int decided(hm_world *w, brc_iter *it, thinned *t)
{
    const brc_expired *one;
    int rc;
    while ((rc = brc_next(it, &one, &w->err)) > 0)
        HM_GO(check_decided(w, one, t));
    HM_TRUE(w, rc == 0, "expire: %s", w->err.message);
    for (int i = 0; i < w->g.n; i++)
        HM_TRUE(w, t->reached[i] != 1, "expire does not look at commit %d", i);
    return 0;
}

/* The nearest ancestors that stay; -1: more than two. */
static int nearest(const hm_world *w, int commit, const thinned *t, int *out, int n)
{
    if (!t->reached[commit] || t->kept[commit]) {
        for (int i = 0; i < n; i++)
            if (out[i] == commit)
                return n;
        if (n < 2)
            out[n] = commit;
        return n < 2 ? n + 1 : -1;
    }
    for (int i = 0; i < w->g.commit[commit].nparents && n >= 0; i++)
        n = nearest(w, w->g.commit[commit].parent[i], t, out, n);
    return n;
}

/* Histories without what has expired. Parents are made before children, so that those of one that
 * expires are as they were. */
static void cut_graph(hm_world *w, const thinned *t)
{
    static hm_commit was[HM_COMMITS];
    memcpy(was, w->g.commit, (size_t)w->g.n * sizeof(was[0]));
    for (int c = w->g.n - 1; c >= 0; c--) {
        int parent[2], n = 0;
        for (int i = 0; i < was[c].nparents && n >= 0; i++)
            n = nearest(w, was[c].parent[i], t, parent, n);
        hm_commit *now = &w->g.commit[c];
        if (t->reached[c] && !t->kept[c])
            continue;
        w->over |= n < 0; /* three parents: this round has no rule for that */
        now->is_cut |= n != was[c].nparents ||
                       memcmp(parent, was[c].parent, (size_t)n * sizeof(int)) != 0;
        now->nparents = n < 0 ? 0 : n;
        memcpy(now->parent, parent, sizeof(parent));
    }
}

static int expire(hm_world *w, hm_op op)
{
    static thinned t;
    brc_expire_opts opts = BRC_EXPIRE_OPTS_INIT;
    brc_expire_report report = BRC_EXPIRE_REPORT_INIT;
    brc_iter *it;
    breccia *repo = w->repo[op.b >> 7];
    opts.keep_last = 1 + op.c % 6;
    must_stay(w, (int)opts.keep_last, &t);
    HM_OK(w, brc_expire(&report, &it, repo, &opts, &w->err));
    const int rc = decided(w, it, &t);
    brc_iter_free(it);
    HM_GO(rc);
    w->expired += report.expired;
    cut_graph(w, &t);
    return collect_now(w, repo);
}

/* ---- amend ---------------------------------------------------------------------------------- */

static int amend(hm_world *w, hm_op op)
{
    const hm_refs before = w->refs;
    const int i = op.a % HM_BRANCHES, tip = w->refs.tip[i];
    hm_draft *d = &w->draft[i];
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_session *s;
    brc_oid id;
    int commit;
    char message[24];
    if (tip < 0 || d->base != tip || w->g.commit[tip].is_cut)
        return 0;
    snprintf(message, sizeof(message), "amended at %d", w->step);
    opts.message = message;
    opts.flags = BRC_COMMIT_AMEND;
    HM_OK(w, brc_session_open(&s, w->repo[op.b >> 7], hm_branch(i), BRC_SESSION_WRITE, &w->err));
    const int rc = brc_session_commit(&id, s, &opts, &w->err);
    brc_session_free(s);
    HM_TRUE(w, rc == BRC_OK, "amend: %s", w->err.message);
    HM_GO(hm_import(w, &id, &d->snap, &commit));
    const hm_commit *was = &w->g.commit[tip], *now = &w->g.commit[commit];
    HM_TRUE(w, now->nparents == was->nparents &&
               memcmp(now->parent, was->parent, (size_t)was->nparents * sizeof(int)) == 0,
            "an amended commit has other parents");
    w->refs.tip[i] = commit;
    hm_log(w, &before);
    d->changed = 0;
    w->made++;
    hm_follow(w);
    return 0;
}

/* ---- what a killed process leaves ----------------------------------------------------------- */

static int write_and_die(hm_world *w, breccia *repo, hm_op op)
{
    brc_session *s;
    HM_OK(w, brc_session_open(&s, repo, hm_branch(op.a), BRC_SESSION_PRIVATE, &w->err));
    hm_snap begun = w->g.commit[w->refs.tip[op.a]].snap;
    HM_GO(hm_write(w, s, &begun, op));
    raise(SIGKILL);
    return -1;
}

/* The number of a private draft that nobody has; 0: there is none. */
static int find_dead(hm_world *w, int64_t *id)
{
    brc_iter *it;
    const brc_draft *draft;
    int rc;
    *id = 0;
    HM_OK(w, brc_drafts(&it, w->repo[0], &w->err));
    while ((rc = brc_next(it, &draft, &w->err)) > 0)
        if ((draft->flags & BRC_DRAFT_OWNED) != 0 && draft->owner == BRC_OWNER_DEAD)
            *id = draft->id;
    brc_iter_free(it);
    HM_TRUE(w, rc == 0, "drafts: %s", w->err.message);
    return 0;
}

/* The draft is adopted where nothing is uncommitted, else dropped. */
static int adopt(hm_world *w, hm_op op)
{
    op.a %= 2;
    hm_draft *d = &w->draft[op.a];
    hm_snap after = w->g.commit[w->refs.tip[op.a]].snap;
    int64_t id;
    if (after.n == 0)
        return 0;
    op.kill = (uint8_t)(op.kill != 0 ? op.kill : 255); /* before, or at its end */
    HM_GO(hm_write(w, NULL, &after, op));
    HM_GO(hm_in_child(w, op, write_and_die));
    HM_GO(find_dead(w, &id));
    if (id == 0)
        return 0;
    if (d->changed || op.c % 4 == 0) {
        HM_OK(w, brc_draft_drop(w->repo[op.b >> 7], id, &w->err));
        return 0;
    }
    HM_OK(w, brc_draft_adopt(w->repo[op.b >> 7], id, &w->err));
    HM_GO(hm_met(w, op.a, &after));
    return hm_changed(w, op.a);
}

/* ---- merges that stay open ------------------------------------------------------------------ */

/* Settles the open merge. Sets *merged to 0 if a conflict stayed open, so that the merge was
 * aborted. */
static int settle_open(hm_world *w, breccia *repo, hm_op op, int *merged)
{
    const uint32_t side = op.d % 3 == 1 ? BRC_MERGE_OURS : BRC_MERGE_THEIRS;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    uint64_t n;
    *merged = 0;
    if (op.d % 3 != 0) {
        HM_OK(w, brc_merge_settle(&n, repo, side, NULL, 0, &w->err));
        HM_TRUE(w, n > 0, "nothing was settled");
        HM_OK(w, brc_continue(&r, NULL, repo, NULL, &w->err));
        *merged = r.result == BRC_PICK_COMMITTED;
        HM_TRUE(w, *merged || side == BRC_MERGE_THEIRS, "a merge for ours stays open");
    }
    if (!*merged)
        HM_OK(w, brc_abort(repo, &w->err));
    return 0;
}

/* Takes the merged contents as right; another test (merge_draft) checks the conflicts. */
static int open_merge(hm_world *w, hm_op op)
{
    const int head = w->refs.head, tip = w->refs.tip[head], other = hm_other(w, op);
    breccia *repo = w->repo[op.b >> 7];
    const hm_refs before = w->refs;
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    char hex[65];
    brc_oid id;
    int merged, commit;
    HM_GO(hm_discard_head(w));
    opts.flags = BRC_MERGE_DRY_RUN;
    HM_OK(w, brc_merge(&r, NULL, repo, hm_hex(w, other, hex), &opts, &w->err));
    if (r.result != BRC_MERGE_CONFLICT)
        return 0;
    opts.flags = BRC_MERGE_KEEP;
    HM_OK(w, brc_merge(&r, NULL, repo, hex, &opts, &w->err));
    HM_TRUE(w, r.result == BRC_MERGE_CONFLICT && r.draft != 0, "no merge stays open");
    HM_GO(hm_fsck(w));
    if (op.kill != 0)
        HM_GO(collect_now(w, w->repo[0]));
    HM_GO(settle_open(w, w->repo[op.c >> 7], op, &merged));
    if (!merged)
        return 0;
    w->settled++;
    HM_GO(hm_tip(w, hm_branch(head), &id));
    HM_GO(hm_import(w, &id, NULL, &commit));
    const hm_commit *c = &w->g.commit[commit];
    HM_TRUE(w, c->nparents == 2 && c->parent[0] == tip && c->parent[1] == other,
            "the parents of a merge that was settled");
    w->refs.tip[head] = commit;
    hm_log(w, &before);
    w->made++;
    hm_follow(w);
    return 0;
}

/* ---- rebases that stay open ----------------------------------------------------------------- */

/* Dropped, or one step further: settled for a side, or without the commit. */
static int rebase_step(hm_world *w, breccia *repo, hm_op op, int first, brc_pick_result *r)
{
    const int skips = first && op.d % 4 == 1;
    const int64_t before = r->draft;
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    uint64_t n;
    opts.flags = skips ? BRC_PICK_SKIP : 0;
    r->draft = 0;
    if (first && op.d % 4 == 0) {
        HM_OK(w, brc_abort(repo, &w->err));
        r->result = BRC_PICK_NOTHING;
        return 0;
    }
    if (!skips)
        HM_OK(w, brc_merge_settle(&n, repo, op.d % 4 == 2 ? BRC_MERGE_OURS : BRC_MERGE_THEIRS, NULL,
                                  0, &w->err));
    HM_OK(w, brc_continue(r, NULL, repo, &opts, &w->err));
    HM_TRUE(w, r->draft != before || r->result != BRC_PICK_CONFLICT, "it does not go on");
    return 0;
}

static int open_rebase(hm_world *w, hm_op op)
{
    char hex[65];
    const int head = w->refs.head, tip = w->refs.tip[head];
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    brc_oid id;
    HM_GO(hm_discard_head(w));
    opts.flags = BRC_PICK_KEEP;
    HM_OK(w, brc_rebase(&r, NULL, w->repo[op.b >> 7], hm_hex(w, hm_other(w, op), hex), &opts,
                        &w->err));
    for (int i = 0; r.result == BRC_PICK_CONFLICT; i++) {
        HM_GO(hm_tip(w, hm_branch(head), &id));
        HM_TRUE(w, hm_find(w, &id) == tip, "the branch moves before the end");
        HM_GO(hm_fsck(w));
        if (op.kill != 0)
            HM_GO(collect_now(w, w->repo[0]));
        HM_GO(rebase_step(w, w->repo[(op.c >> 7) ^ (i & 1)], op, i == 0, &r));
        w->settled++;
    }
    return hm_settle_line(w);
}

/* ---- repack --------------------------------------------------------------------------------- */

static int repack_here(hm_world *w, breccia *repo, hm_op op)
{
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    brc_repack_report report = BRC_REPACK_REPORT_INIT;
    if (op.a % 2 == 0)
        hm_storage(op.d, &opts.backend_json, &opts.codecs_json);
    else
        opts.flags = op.c % 4 == 1 ? BRC_REPACK_WHOLE : BRC_REPACK_DELTA;
    if (opts.backend_json != NULL && op.c % 4 == 0)
        opts.older_than_us = 1; /* all commits are newer: only what no commit uses moves */
    if (opts.flags == BRC_REPACK_DELTA)
        opts.delta_depth = op.c / 4 % 4;
    const int rc = brc_repack(repo, &opts, &report, &w->err);
    w->deltas += opts.flags == BRC_REPACK_DELTA ? report.objects : 0;
    /* without an array there is nothing that codecs could fit */
    HM_TRUE(w, rc == BRC_OK || (rc == BRC_EINVAL && opts.codecs_json != NULL), "repack: %s",
            w->err.message);
    return 0;
}

/* No version and no uncommitted change says anything else afterwards. */
static int repack(hm_world *w, hm_op op)
{
    return op.kill != 0 ? hm_in_child(w, op, repack_here)
                        : repack_here(w, w->repo[op.b >> 7], op);
}

int hm_rare_op(hm_world *w, hm_op op)
{
    static int (*const acts[])(hm_world *, hm_op) = {expire, amend, adopt, open_merge,
                                                       open_rebase, repack};
    return acts[op.kind - HM_RARE](w, op);
}
