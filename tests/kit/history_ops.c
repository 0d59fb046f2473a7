/* Operations on sessions and refs, for history_world.h. */
#include <stdio.h>
#include <string.h>

#include "history_world.h"
#include "scenario.h"

enum {
    WRITE, RESIZE, ATTR, MOVE, REMOVE, CREATE, COMMIT, DISCARD, RESET, UNDO, REDO, COLLECT, SWITCH,
    REOPEN, TAG, BRANCH, KINDS_HERE
};
static const char *const op_names[] = {
    "write", "resize", "attribute", "move", "remove", "create", "commit", "discard", "reset",
    "undo", "redo", "gc", "switch", "reopen", "tag", "branch", "merge", "pick", "revert", "rebase",
    "expire", "amend", "adopt", "open merge", "open rebase", "repack"
};
/* How often each is done. */
static const uint8_t op_weights[] = {20, 5, 6, 3, 3, 6, 22, 2, 3, 3, 2, 2, 6, 2, 2, 2, 14, 5, 4, 4,
                                     2, 4, 3, 8, 5, 8};
_Static_assert(sizeof(op_weights) == HM_KINDS, "each kind has one");

const char *hm_op_name(hm_op op)
{
    return op_names[op.kind];
}

hm_op hm_random_op(uint64_t *random)
{
    const int n = sizeof(op_weights);
    uint64_t all = 0, pick;
    hm_op op = {0};
    for (int i = 0; i < n; i++)
        all += op_weights[i];
    pick = scenario_below(random, all);
    while (pick >= op_weights[op.kind])
        pick -= op_weights[op.kind++];
    const uint64_t bits = scenario_random(random);
    op.a = (uint8_t)bits;
    op.b = (uint8_t)(bits >> 8);
    op.c = (uint8_t)(bits >> 16);
    op.d = (uint8_t)(bits >> 24);
    op.kill = (bits >> 32) % 12 == 0 ? (uint8_t)(1 + (bits >> 40) % 60) : 0;
    return op;
}

/* ---- changes in a session ------------------------------------------------------------------- */

static int session_of(hm_world *w, int i, int handle, brc_session **out)
{
    hm_draft *d = &w->draft[i];
    if (i < HM_BRANCHES)
        HM_OK(w, brc_session_open(out, w->repo[handle], hm_branch(i), BRC_SESSION_WRITE, &w->err));
    else if (d->session == NULL)
        HM_OK(w, brc_session_open(&d->session, w->repo[i - HM_BRANCHES], hm_branch(d->branch),
                                  BRC_SESSION_PRIVATE, &w->err));
    if (i >= HM_BRANCHES)
        *out = d->session;
    return 0;
}

int hm_write(hm_world *w, brc_session *s, hm_snap *snap, hm_op op)
{
    hm_node *n = &snap->node[op.b % snap->n];
    const int at = op.c % n->len, count = 1 + (op.d >> 4) % (n->len - at);
    brc_sel sel = BRC_SEL_INIT;
    brc_array *a;
    char path[24];
    for (int i = 0; i < count; i++)
        n->value[at + i] = 1 + (op.d + i) % 3;
    if (s == NULL)
        return 0;
    snprintf(path, sizeof(path), "/n%d", n->name);
    uint8_t rows[HM_LEN * HM_ROW];
    hm_rows(&n->value[at], count, rows);
    sel.ndim = 2;
    sel.start[0] = (uint64_t)at;
    sel.count[0] = (uint64_t)count;
    sel.count[1] = HM_ROW;
    sel.step[0] = sel.step[1] = 1;
    HM_OK(w, brc_array_open(&a, s, path, &w->err));
    const int rc = brc_array_write(a, &sel, rows, (size_t)count * HM_ROW, &w->err);
    brc_array_free(a);
    HM_TRUE(w, rc == BRC_OK, "a write of %s: %s", path, w->err.message);
    return 0;
}

static int resize_array(hm_world *w, brc_session *s, hm_node *n, hm_op op, const char *path)
{
    const uint64_t len = 1 + op.c % HM_LEN, shape[2] = {len, HM_ROW};
    brc_array *a;
    HM_OK(w, brc_array_open(&a, s, path, &w->err));
    const int rc = brc_array_resize(a, shape, &w->err);
    brc_array_free(a);
    HM_TRUE(w, rc == BRC_OK, "a resize of %s: %s", path, w->err.message);
    n->len = (int)len;
    memset(n->value + len, 0, (HM_LEN - len) * sizeof(n->value[0]));
    return 0;
}

static int edit_attr(hm_world *w, brc_session *s, hm_node *n, hm_op op, const char *path)
{
    char key[16], value[16];
    const int k = op.c % HM_ATTRS;
    if (n->attr[k] == 0 && op.d % 4 == 0)
        return 0;
    n->attr[k] = op.d % 4;
    snprintf(key, sizeof(key), "k%d", k);
    snprintf(value, sizeof(value), "%d", op.d % 4);
    HM_OK(w, brc_attrs_set(s, path, key, op.d % 4 == 0 ? NULL : value, &w->err));
    return 0;
}

void hm_storage(int number, const char **backend, const char **codecs)
{
    static const char *const backends[] = {
        NULL, "pack", "inline", "{\"name\":\"pack\",\"configuration\":{\"pack_bytes\":1048576}}"
    };
    static const char *const chains[] = {
        NULL,
        "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]",
        "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},"
        "{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]",
    };
    static char bucket[300];
    const int in_bucket = number % 4 == 3 && number / 12 % 2 == 1;
    *backend = in_bucket ? scenario_bucket(bucket, "soak") : backends[number % 4];
    *codecs = chains[number / 4 % 3];
}

static int create_array(hm_world *w, brc_session *s, hm_snap *snap, hm_op op)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    hm_node n = {.uid = w->next_uid++, .len = 1 + op.c % HM_LEN};
    const uint64_t shape[2] = {(uint64_t)n.len, HM_ROW}, chunk[2] = {3, HM_ROW};
    char path[24];
    n.name = w->next_uid++;
    if (snap->n >= 5 || w->next_uid >= HM_NAMES)
        return 0;
    w->uid_of[n.name] = n.uid;
    snprintf(path, sizeof(path), "/n%d", n.name);
    spec.ndim = 2;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = "uint8";
    hm_storage(op.d, &spec.backend_json, &spec.codecs_json);
    HM_OK(w, brc_array_create(&a, s, path, &spec, &w->err));
    brc_array_free(a);
    snap->node[snap->n++] = n;
    return 0;
}

static int edit_snap(hm_world *w, brc_session *s, hm_snap *snap, hm_op op)
{
    char path[24], to[24];
    if (op.kind == CREATE || snap->n == 0)
        return create_array(w, s, snap, op);
    const int at = op.b % snap->n;
    hm_node *n = &snap->node[at];
    snprintf(path, sizeof(path), "/n%d", n->name);
    if (op.kind == ATTR)
        return edit_attr(w, s, n, op, path);
    if (op.kind == REMOVE) {
        HM_OK(w, brc_node_remove(s, path, &w->err));
        hm_drop(snap, at);
        return 0;
    }
    if (op.kind == WRITE)
        return hm_write(w, s, snap, op);
    if (op.kind != MOVE)
        return resize_array(w, s, n, op, path);
    n->name = w->next_uid++;
    HM_TRUE(w, n->name < HM_NAMES, "too many names");
    w->uid_of[n->name] = n->uid;
    snprintf(to, sizeof(to), "/n%d", n->name);
    HM_OK(w, brc_node_move(s, path, to, 0, &w->err));
    return 0;
}

/* Ends what one session has changed. */
static int drop_changes(hm_world *w, int i)
{
    hm_draft *d = &w->draft[i];
    brc_session *s;
    if (!d->changed)
        return 0;
    HM_GO(session_of(w, i, 0, &s));
    HM_OK(w, brc_session_discard(s, &w->err));
    if (i < HM_BRANCHES)
        brc_session_free(s);
    d->changed = 0;
    hm_follow(w);
    return 0;
}

static int edit_here(hm_world *w, breccia *repo, hm_op op)
{
    brc_session *s;
    const int i = op.a % HM_BRANCHES;
    HM_OK(w, brc_session_open(&s, repo, hm_branch(i), BRC_SESSION_WRITE, &w->err));
    const int rc = edit_snap(w, s, &w->draft[i].snap, op);
    brc_session_free(s);
    return rc;
}

int hm_met(hm_world *w, int i, const hm_snap *after)
{
    hm_snap now;
    brc_session *s;
    hm_draft *d = &w->draft[i];
    HM_OK(w, brc_session_open(&s, w->repo[0], hm_branch(i), BRC_SESSION_VIEW, &w->err));
    const int rc = hm_read(w, s, &now);
    brc_session_free(s);
    HM_GO(rc);
    HM_TRUE(w, hm_same(&now, &d->snap) || hm_same(&now, after), "half of a change is there");
    if (hm_same(&now, after))
        d->snap = *after;
    return 0;
}

int hm_changed(hm_world *w, int i)
{
    hm_draft *d = &w->draft[i];
    brc_session *s;
    int clean;
    HM_GO(session_of(w, i, 0, &s));
    const int rc = brc_session_clean(&clean, s, &w->err);
    if (i < HM_BRANCHES)
        brc_session_free(s);
    HM_TRUE(w, rc == BRC_OK, "a session: %s", w->err.message);
    d->changed = 1;
    if (hm_same(&d->snap, &w->g.commit[d->base].snap))
        return drop_changes(w, i); /* whether it is a draft without changes or none */
    HM_TRUE(w, !clean, "changes of session %d are not told", i);
    return 0;
}

static int edit(hm_world *w, hm_op op)
{
    const int i = op.a % HM_SESSIONS;
    hm_draft *d = &w->draft[i];
    if (w->refs.tip[d->branch] < 0)
        return 0;
    if (op.kill != 0 && i < HM_BRANCHES && op.kind <= RESIZE && d->snap.n > 0) {
        hm_snap after = d->snap;
        op.a = (uint8_t)i;
        op.kind = WRITE;
        HM_GO(hm_write(w, NULL, &after, op));
        HM_GO(hm_in_child(w, op, edit_here));
        HM_GO(hm_met(w, i, &after));
    } else {
        brc_session *s;
        HM_GO(session_of(w, i, op.b >> 7, &s));
        const int rc = edit_snap(w, s, &d->snap, op);
        if (i < HM_BRANCHES)
            brc_session_free(s);
        HM_GO(rc);
    }
    return hm_changed(w, i);
}

/* ---- commits -------------------------------------------------------------------------------- */

static int committed(hm_world *w, hm_draft *d, const brc_oid *id, const hm_snap *want, int sure)
{
    const hm_refs before = w->refs;
    const int tip = w->refs.tip[d->branch], known = hm_find(w, id);
    int commit = known;
    if (known < 0)
        HM_GO(hm_import(w, id, sure ? want : NULL, &commit));
    else
        HM_TRUE(w, known == tip, "a commit is another one that was there");
    HM_TRUE(w, !sure || hm_same(want, &w->g.commit[commit].snap), "a commit has other contents");
    HM_TRUE(w, known >= 0 || (w->g.commit[commit].nparents == 1
                              && w->g.commit[commit].parent[0] == tip), "parents of a commit");
    w->refs.tip[d->branch] = commit;
    if (known < 0)
        hm_log(w, &before);
    d->changed = 0;
    w->made++;
    hm_follow(w);
    return 0;
}

static int commit(hm_world *w, hm_op op)
{
    const int i = op.a % HM_SESSIONS;
    hm_draft *d = &w->draft[i];
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_session *s;
    brc_oid id;
    hm_snap want = d->snap;
    int result = HM_CLEAN;
    char message[24];
    if (!d->changed || w->refs.tip[d->branch] < 0)
        return 0;
    const int tip = w->refs.tip[d->branch], moved = tip != d->base;
    if (moved) {
        const hm_snap *base = &w->g.commit[d->base].snap, *ours = &w->g.commit[tip].snap;
        result = hm_merge(&want, base, ours, &d->snap);
        if (hm_any_moved(base, ours, &d->snap) || hm_came_back(&w->g, tip, base))
            result = HM_UNSURE;
    }
    snprintf(message, sizeof(message), "step %d", w->step);
    opts.message = message;
    HM_GO(session_of(w, i, op.b >> 7, &s));
    const int rc = brc_session_commit(&id, s, &opts, &w->err);
    if (i < HM_BRANCHES)
        brc_session_free(s);
    if (rc == BRC_OK) {
        HM_TRUE(w, result != HM_CONFLICT, "a commit over a conflict");
        return committed(w, d, &id, &want, result == HM_CLEAN);
    } else {
        HM_TRUE(w, rc == BRC_ECONFLICT && result != HM_CLEAN, "commit: %s", w->err.message);
    }
    w->refused++;
    return drop_changes(w, i);
}

/* ---- refs ----------------------------------------------------------------------------------- */

static int no_changes_but_private(hm_world *w)
{
    for (int i = 0; i < HM_BRANCHES; i++)
        HM_GO(drop_changes(w, i));
    return 0;
}

static int leave_branch(hm_world *w, int branch)
{
    for (int i = HM_BRANCHES; i < HM_SESSIONS; i++)
        if (w->draft[i].branch == branch) {
            HM_GO(drop_changes(w, i));
            brc_session_free(w->draft[i].session);
            w->draft[i].session = NULL;
            w->draft[i].branch = 0;
        }
    return drop_changes(w, branch);
}

/* A commit that a branch reaches. */
static int some_commit(hm_world *w, hm_op op)
{
    int commit = w->refs.tip[op.c % 2];
    for (int n = op.d % 6; n > 0 && w->g.commit[commit].nparents > 0; n--)
        commit = w->g.commit[commit].parent[(op.d >> 3) % w->g.commit[commit].nparents];
    return commit;
}

static int reset(hm_world *w, hm_op op)
{
    const int to = some_commit(w, op), head = w->refs.head;
    const hm_refs before = w->refs;
    char hex[65];
    HM_GO(drop_changes(w, head));
    if (w->refs.tip[head] == to)
        return 0;
    HM_OK(w, brc_reset(w->repo[op.b >> 7], NULL, hm_hex(w, to, hex), BRC_RESET_HARD, NULL,
                       &w->err));
    w->refs.tip[head] = to;
    hm_log(w, &before);
    hm_follow(w);
    return 0;
}

static int switch_to(hm_world *w, hm_op op)
{
    const hm_refs before = w->refs;
    const int to = op.a % HM_BRANCHES;
    if (w->refs.tip[to] < 0 || to == w->refs.head)
        return 0;
    HM_GO(drop_changes(w, w->refs.head));
    HM_OK(w, brc_switch(w->repo[op.b >> 7], hm_branch(to), 0, &w->err));
    w->refs.head = to;
    hm_log(w, &before);
    return 0;
}

static int tag(hm_world *w, hm_op op)
{
    const hm_refs before = w->refs;
    const int i = op.a % HM_TAGS;
    char hex[65];
    breccia *repo = w->repo[op.b >> 7];
    if (w->refs.tag[i] >= 0) {
        HM_OK(w, brc_ref_delete(repo, hm_tag(i), BRC_REF_TAG | BRC_DELETE_FORCE, &w->err));
        w->refs.tag[i] = -1;
    } else {
        w->refs.tag[i] = some_commit(w, op);
        HM_OK(w, brc_ref_create(repo, hm_tag(i), hm_hex(w, w->refs.tag[i], hex), NULL, BRC_REF_TAG,
                                &w->err));
    }
    hm_log(w, &before);
    return 0;
}

static int branch(hm_world *w, hm_op op)
{
    const hm_refs before = w->refs;
    const int i = HM_BRANCHES - 1;
    char hex[65];
    breccia *repo = w->repo[op.b >> 7];
    if (w->refs.head == i)
        return 0;
    if (w->refs.tip[i] >= 0) {
        HM_GO(leave_branch(w, i));
        HM_OK(w, brc_ref_delete(repo, hm_branch(i), BRC_DELETE_FORCE, &w->err));
        w->refs.tip[i] = -1;
    } else {
        w->refs.tip[i] = some_commit(w, op);
        HM_OK(w, brc_ref_create(repo, hm_branch(i), hm_hex(w, w->refs.tip[i], hex), NULL, 0,
                                &w->err));
    }
    hm_log(w, &before);
    hm_follow(w);
    return 0;
}

static int undo(hm_world *w, hm_op op)
{
    const int forward = op.kind == REDO;
    const uint32_t flags = forward ? BRC_UNDO_REDO : 0;
    HM_GO(no_changes_but_private(w));
    HM_GO(leave_branch(w, HM_BRANCHES - 1));
    if (forward ? w->nlog == 0 : w->ndone == 0)
        return 0; /* a collection may have left the log longer than what is known of it */
    const int rc = brc_undo(NULL, w->repo[op.b >> 7], flags, 0, &w->err);
    if (forward && w->ndone == w->nlog) {
        HM_TRUE(w, rc == BRC_EMISUSE, "a redo of nothing: %d", rc);
        return 0;
    }
    HM_TRUE(w, rc == BRC_OK, "%s: %s", hm_op_name(op), w->err.message);
    w->ndone += forward ? 1 : -1;
    w->refs = w->log[w->ndone];
    hm_follow(w);
    return 0;
}

/* ---- the file ------------------------------------------------------------------------------- */

static int collect_here(hm_world *w, breccia *repo, hm_op op)
{
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    brc_gc_report report = BRC_GC_REPORT_INIT;
    opts.flags = op.c % 4 == 0 ? BRC_GC_EXPUNGE : 0;
    HM_OK(w, brc_config_set(repo, "window", op.d % 2 == 0 ? "0" : "30", &w->err));
    HM_OK(w, brc_gc(repo, &opts, &report, &w->err));
    w->collected += report.objects_removed;
    return 0;
}

static int collect(hm_world *w, hm_op op)
{
    if (op.kill != 0)
        HM_GO(hm_in_child(w, op, collect_here));
    else
        HM_GO(collect_here(w, w->repo[op.b >> 7], op));
    if (op.d % 2 == 0) /* what no ref reaches may be gone, and nothing leads back to it */
        hm_forget_log(w);
    return 0;
}

static int reopen(hm_world *w, hm_op op)
{
    const int h = op.a % HM_HANDLES;
    hm_draft *d = &w->draft[HM_BRANCHES + h];
    HM_GO(drop_changes(w, HM_BRANCHES + h));
    brc_session_free(d->session);
    d->session = NULL;
    brc_free(w->repo[h]);
    w->repo[h] = NULL;
    d->branch = op.c % 2;
    HM_GO(hm_open(w, h));
    hm_follow(w);
    return 0;
}

int hm_apply(hm_world *w, hm_op op)
{
    static int (*const acts[])(hm_world *, hm_op) = {
        [COMMIT] = commit, [RESET] = reset, [UNDO] = undo, [REDO] = undo, [COLLECT] = collect,
        [SWITCH] = switch_to, [REOPEN] = reopen, [TAG] = tag, [BRANCH] = branch
    };
    w->step++;
    if (w->over)
        return 0;
    if (op.kind >= HM_RARE)
        return hm_rare_op(w, op);
    if (op.kind >= KINDS_HERE)
        return hm_history_op(w, op);
    if (op.kind <= CREATE)
        return edit(w, op);
    if (op.kind == DISCARD)
        return drop_changes(w, op.a % HM_SESSIONS);
    return acts[op.kind](w, op);
}
