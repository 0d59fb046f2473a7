/* Merge, cherry-pick, revert and rebase, for history_world.h, also by children that are killed. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault_vfs.h"
#include "history_world.h"
#include "scenario.h"

enum { MERGE = 16, PICK, REVERT, REBASE };

/* The outcome that the oracle expects. */
typedef struct outcome {
    int result, target; /* target: a commit where the branch is then; -1: new ones */
    int n, second;      /* new ones, over `onto`; the second parent, or -1       */
    int onto;
    hm_snap snap[16];
} outcome;

static fault_vfs killer;

int hm_in_child(hm_world *w, hm_op op, int (*act)(hm_world *w, breccia *repo, hm_op op))
{
    int status;
    fault_vfs_register(&killer);
    const pid_t child = fork();
    HM_TRUE(w, child >= 0, "no process");
    if (child == 0) {
        brc_open_opts opts = BRC_OPEN_OPTS_INIT;
        breccia *repo;
        opts.vfs = FAULT_VFS_NAME;
        hm_world *mine = malloc(sizeof(*mine)); /* the other may be shared with the parent */
        if (mine == NULL || scenario_connect(&repo, w->file, &opts, NULL) < 0)
            _exit(2);
        memcpy(mine, w, sizeof(*mine));
        killer.kills = 1;
        fault_vfs_arm(&killer, FAULT_WRITE | FAULT_SYNC | FAULT_TRUNCATE | FAULT_DELETE, op.kill,
                      0);
        const int rc = act(mine, repo, op);
        if (rc != 0)
            fprintf(stderr, "in a child: %s\n", mine->why);
        brc_free(repo);
        free(mine);
        _exit(rc != 0);
    }
    HM_TRUE(w, waitpid(child, &status, 0) == child, "no child");
    fault_vfs_unregister(&killer);
    const int was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    HM_TRUE(w, was_killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0),
            "%s in a child ended with %d", hm_op_name(op), status);
    w->killed += (uint64_t)was_killed;
    return 0;
}

/* ---- what must become of it ----------------------------------------------------------------- */

static int merged(hm_snap *out, const hm_snap *base, const hm_snap *ours, const hm_snap *theirs)
{
    const int result = hm_merge(out, base, ours, theirs);
    return hm_any_moved(base, ours, theirs) ? HM_UNSURE : result;
}

static void of_merge(hm_world *w, int tip, int other, outcome *out)
{
    hm_snap base;
    out->onto = tip;
    if (hm_reaches(&w->g, tip, other) || hm_reaches(&w->g, other, tip)) {
        out->target = hm_reaches(&w->g, tip, other) ? tip : other;
        return;
    }
    out->second = other;
    out->n = 1;
    out->result = hm_base(&base, &w->g, tip, other, 0);
    if (out->result != HM_CLEAN)
        return;
    out->result = merged(&out->snap[0], &base, &w->g.commit[tip].snap, &w->g.commit[other].snap);
    if (hm_came_back(&w->g, tip, &base) || hm_came_back(&w->g, other, &base))
        out->result = HM_UNSURE;
}

/* commit's change on top of ours; *same: it is there already. */
static int pick_onto(hm_world *w, hm_snap *out, const hm_snap *ours, int commit, int backwards)
{
    const hm_commit *c = &w->g.commit[commit];
    const hm_snap *before = &w->g.commit[c->parent[0]].snap;
    return backwards ? merged(out, &c->snap, ours, before) : merged(out, before, ours, &c->snap);
}

static void of_pick(hm_world *w, int tip, int commit, int backwards, outcome *out)
{
    const hm_snap *ours = &w->g.commit[tip].snap;
    out->onto = tip;
    out->result = pick_onto(w, &out->snap[0], ours, commit, backwards);
    out->n = 1;
    const hm_commit *picked = &w->g.commit[commit];
    const hm_snap *base = backwards ? &picked->snap : &w->g.commit[picked->parent[0]].snap;
    if (hm_came_back(&w->g, tip, base) || hm_came_back(&w->g, commit, base))
        out->result = HM_UNSURE;
    if (out->result == HM_CLEAN && hm_same(&out->snap[0], ours))
        out->target = tip;
}

static void of_rebase(hm_world *w, int tip, int onto, outcome *out)
{
    int own[16], n = 0, c = tip;
    out->onto = onto;
    if (hm_reaches(&w->g, onto, tip)) {
        out->target = onto;
        return;
    }
    if (hm_reaches(&w->g, tip, onto))
        out->target = tip;
    for (; !hm_reaches(&w->g, onto, c) && n < 16; c = w->g.commit[c].parent[0]) {
        own[n++] = c;
        /* Lines with merges, or that end where commits have expired, are not modelled here. */
        if (w->g.commit[c].nparents != 1 || w->g.commit[c].is_cut) {
            out->result = HM_UNSURE;
            out->target = -1;
            return;
        }
    }
    if (n == 16)
        out->result = HM_UNSURE;
    if (n == 16 || out->target == tip)
        return;
    const hm_snap *top = &w->g.commit[onto].snap;
    while (n-- > 0 && out->result == HM_CLEAN) {
        const hm_commit *own_one = &w->g.commit[own[n]];
        const hm_snap *before = &w->g.commit[own_one->parent[0]].snap;
        out->result = pick_onto(w, &out->snap[out->n], top, own[n], 0);
        /* A commit that never changed anything is kept. */
        if (out->result == HM_CLEAN &&
            (!hm_same(&out->snap[out->n], top) || hm_same(&own_one->snap, before)))
            top = &out->snap[out->n++];
    }
    if (out->result == HM_CLEAN && out->n == 0)
        out->target = onto;
}

/* ---- the library ---------------------------------------------------------------------------- */

int hm_other(const hm_world *w, hm_op op)
{
    int commit = w->refs.tip[op.c % HM_BRANCHES];
    if (commit < 0)
        commit = w->refs.tip[0];
    for (int n = op.d % 3; n > 0 && w->g.commit[commit].nparents > 0; n--)
        commit = w->g.commit[commit].parent[(op.d >> 3) % w->g.commit[commit].nparents];
    return commit;
}

/* Makes the call, and sets *conflict to whether it reports a conflict. */
static int call(hm_world *w, breccia *repo, hm_op op, int *conflict)
{
    char hex[65];
    brc_merge_result m = BRC_MERGE_RESULT_INIT;
    brc_pick_result p = BRC_PICK_RESULT_INIT;
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_pick_opts back = BRC_PICK_OPTS_INIT;
    back.flags = BRC_PICK_REVERT;
    hm_hex(w, hm_other(w, op), hex);
    if (op.kind == MERGE)
        HM_OK(w, brc_merge(&m, NULL, repo, hex, &opts, &w->err));
    else if (op.kind == PICK)
        HM_OK(w, brc_pick(&p, NULL, repo, hex, NULL, &w->err));
    else if (op.kind == REVERT)
        HM_OK(w, brc_pick(&p, NULL, repo, hex, &back, &w->err));
    else
        HM_OK(w, brc_rebase(&p, NULL, repo, hex, NULL, &w->err));
    *conflict = m.result == BRC_MERGE_CONFLICT || p.result == BRC_PICK_CONFLICT;
    return 0;
}

static int call_in_child(hm_world *w, breccia *repo, hm_op op)
{
    int conflict;
    return call(w, repo, op, &conflict);
}

static int known_line(const hm_world *w, const brc_oid *id, const outcome *want)
{
    const int at = hm_find(w, id);
    return want->result == HM_CLEAN ? at == want->onto : at >= 0;
}

/* New commits, the oldest first. The same change on the same commit has an id that may be known. */
static int import_line(hm_world *w, const brc_oid *tip, const outcome *want, int other, int *commit)
{
    brc_oid line[64];
    int n = 0;
    line[0] = *tip;
    while (!known_line(w, &line[n], want) && n < 63) {
        brc_commit *c;
        HM_OK(w, brc_commit_read(&c, w->repo[0], &line[n], &w->err));
        const int has = c->nparents > 0;
        if (has)
            line[++n] = c->parents[0];
        brc_commit_free(c);
        HM_TRUE(w, has, "new commits are not where they must be");
    }
    const int sure = want->result == HM_CLEAN;
    HM_TRUE(w, !sure || n == want->n, "%d new commits, not %d", n, want->n);
    *commit = hm_find(w, &line[n]);
    for (int i = 0; i < n; i++) {
        *commit = hm_find(w, &line[n - 1 - i]);
        if (*commit < 0)
            HM_GO(hm_import(w, &line[n - 1 - i], sure ? &want->snap[i] : NULL, commit));
        const hm_commit *c = &w->g.commit[*commit];
        HM_TRUE(w, !sure || hm_same(&c->snap, &want->snap[i]), "other contents");
        HM_TRUE(w, !sure || c->nparents == 1 + (want->second >= 0), "%d parents", c->nparents);
        HM_TRUE(w, c->nparents < 2 || c->parent[1] == other, "the second parent");
    }
    return 0;
}

/* A rebase that makes a commit again, with the same id, has its parents in the file again too: the
 * library then drops what stood for them after an expire. */
static int heal(hm_world *w)
{
    for (int i = 0; i < w->g.n; i++) {
        hm_commit *now = &w->g.commit[i];
        brc_commit *c;
        brc_oid id;
        if (!now->is_cut)
            continue;
        memcpy(&id, now->id, sizeof(id));
        if (brc_commit_read(&c, w->repo[0], &id, NULL) != BRC_OK)
            continue; /* a collection has removed the commit */
        const int is_whole = (c->flags & BRC_PAST_EXPIRED) == 0 && c->nparents <= 2;
        int parent[2] = { -1, -1 };
        for (size_t k = 0; is_whole && k < c->nparents; k++)
            parent[k] = hm_find(w, &c->parents[k]);
        if (is_whole) {
            now->nparents = (int)c->nparents;
            now->is_cut = 0;
            memcpy(now->parent, parent, sizeof(parent));
        }
        brc_commit_free(c);
        for (int k = 0; is_whole && k < now->nparents; k++)
            HM_TRUE(w, parent[k] >= 0, "a commit has a parent that nobody made");
    }
    return 0;
}

static int settle(hm_world *w, const outcome *want, int other, int may_be_killed)
{
    const hm_refs before = w->refs;
    const int tip = w->refs.tip[w->refs.head];
    brc_oid id;
    HM_GO(hm_tip(w, hm_branch(w->refs.head), &id));
    int now = hm_find(w, &id);
    if (now == tip) {
        const int stays = want->result != HM_CLEAN || want->target == tip;
        HM_TRUE(w, stays || may_be_killed, "the branch has not moved");
        return 0;
    }
    HM_TRUE(w, want->result != HM_CONFLICT, "the branch has moved over a conflict");
    if (want->result == HM_CLEAN && want->target >= 0)
        HM_TRUE(w, now == want->target, "the branch is not where it must be");
    if (now < 0 || (want->result == HM_CLEAN && want->target < 0))
        HM_GO(import_line(w, &id, want, other, &now));
    w->refs.tip[w->refs.head] = now;
    hm_log(w, &before);
    w->made++;
    hm_follow(w);
    return heal(w);
}

int hm_settle_line(hm_world *w)
{
    outcome want;
    memset(&want, 0, sizeof(want));
    want.target = want.second = -1;
    want.result = HM_UNSURE;
    return settle(w, &want, -1, 1);
}

int hm_discard_head(hm_world *w)
{
    brc_session *s;
    if (!w->draft[w->refs.head].changed)
        return 0;
    HM_OK(w, brc_session_open(&s, w->repo[0], NULL, BRC_SESSION_WRITE, &w->err));
    HM_OK(w, brc_session_discard(s, &w->err));
    brc_session_free(s);
    w->draft[w->refs.head].changed = 0;
    hm_follow(w);
    return 0;
}

int hm_history_op(hm_world *w, hm_op op)
{
    static outcome want;
    const int head = w->refs.head, tip = w->refs.tip[head], other = hm_other(w, op);
    int conflict = 0;
    memset(&want, 0, sizeof(want));
    want.target = want.second = -1;
    HM_GO(hm_discard_head(w));
    if ((op.kind == PICK || op.kind == REVERT) &&
        (w->g.commit[other].nparents != 1 || w->g.commit[other].is_cut))
        return 0;
    if (op.kind == MERGE)
        of_merge(w, tip, other, &want);
    else if (op.kind == REBASE)
        of_rebase(w, tip, other, &want);
    else
        of_pick(w, tip, other, op.kind == REVERT, &want);
    w->unsure += want.result == HM_UNSURE;
    w->refused += want.result == HM_CONFLICT;
    if (op.kill != 0)
        HM_GO(hm_in_child(w, op, call_in_child));
    else
        HM_GO(call(w, w->repo[op.b >> 7], op, &conflict));
    if (op.kill == 0 && want.result != HM_UNSURE)
        HM_TRUE(w, conflict == (want.result == HM_CONFLICT), "%s: %s", hm_op_name(op),
                conflict ? "a conflict that is none" : "a conflict was not seen");
    return settle(w, &want, other, op.kill != 0);
}
