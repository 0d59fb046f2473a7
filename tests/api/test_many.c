/*
 * Four processes with two threads each, in shared and private drafts of two branches of one file,
 * against a model (many_model.h). `make model STEPS=10000 SEED=1` takes more steps. A seed says
 * what each worker does, but not who is first.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../kit/effort.h"
#include "../kit/folder.h"
#include "../kit/many_model.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(many);

#define STEPS 1000 /* in `make test`; ten times as many in the long form */
#define ROUND 500 /* steps of all workers, then everybody ends and the file is looked at */

typedef struct worker {
    many_model *m;
    int number;
    uint64_t random;
    uint32_t steps, stamp;
    int ends_badly; /* kills its process after its steps */
    breccia *repo;
    brc_session *shared[MANY_BRANCHES], *private[MANY_BRANCHES];
    uint64_t since[MANY_BRANCHES]; /* commits that were done when its private draft began */
    brc_error err;
} worker;

#define TRUE_OF(w, what) MANY_TRUE((w)->m, what, "worker %d: %s", (w)->number, (w)->err.message)
#define GOOD(w, call) TRUE_OF(w, (call) == BRC_OK)

static uint32_t below(worker *w, uint32_t n)
{
    return (uint32_t)scenario_below(&w->random, n);
}

static void count(worker *w, int what)
{
    atomic_fetch_add(&w->m->done[what], 1);
}

/* ---- opening and closing -------------------------------------------------------------------- */

/* Until its first change a private session sees the branch as it is. */
static void open_private(worker *w, int branch)
{
    many_private *mine = &w->m->private[w->number][branch];
    w->since[branch] = w->m->branch[branch].commits_done;
    GOOD(w, brc_session_open(&w->private[branch], w->repo, many_branches[branch],
                             BRC_SESSION_PRIVATE, &w->err));
    memset(mine, 0, sizeof(*mine));
    many_read(w->m, w->private[branch], &mine->base);
    mine->now = mine->base;
}

static void open_file(worker *w)
{
    GOOD(w, brc_open(&w->repo, w->m->file, NULL, &w->err));
    for (int b = 0; b < MANY_BRANCHES; b++) {
        GOOD(w, brc_session_open(&w->shared[b], w->repo, many_branches[b], BRC_SESSION_WRITE,
                                 &w->err));
        open_private(w, b);
    }
}

/* Private changes that are not committed stay in the file. */
static void close_private(worker *w, int branch)
{
    many_private *mine = &w->m->private[w->number][branch];
    if (mine->changed)
        many_note_left(w->m, mine, branch);
    memset(mine, 0, sizeof(*mine));
    brc_session_free(w->private[branch]);
}

static void close_file(worker *w)
{
    for (int b = 0; b < MANY_BRANCHES; b++) {
        close_private(w, b);
        brc_session_free(w->shared[b]);
    }
    brc_free(w->repo);
}

/* ---- the shared draft ------------------------------------------------------------------------ */

/* A register that must be seen by whoever looks from here on, while nobody commits, discards or
 * hands over. */
typedef struct seen {
    uint32_t acked, begun, writes;
    int pending;
} seen;

typedef struct moment {
    seen reg[MANY_WORKERS][MANY_REGISTERS];
    uint64_t resets;
    int quiet;
} moment;

static void look(many_branch *b, moment *out)
{
    out->resets = b->resets_begun;
    out->quiet = b->resets_done == out->resets;
    uint64_t last = b->last_reset;
    for (int w = 0; w < MANY_WORKERS; w++)
        for (int r = 0; r < MANY_REGISTERS; r++) {
            many_register *reg = &b->shared[w][r];
            uint64_t when = reg->when;
            out->reg[w][r] = (seen){ reg->acked, reg->begun, reg->writes, when > last };
        }
}

static void write_shared(worker *w, int branch, int first, int n)
{
    many_branch *b = &w->m->branch[branch];
    uint32_t stamp = w->stamp += 2;
    uint64_t when = atomic_fetch_add(&w->m->clock, 1);
    uint32_t before = b->shared[w->number][first].acked;
    if (first == MANY_GROUP) {
        int kind;
        char name[16];
        snprintf(name, sizeof(name), "/n%d", w->number);
        GOOD(w, brc_node_kind(&kind, w->shared[branch], name, &w->err));
        if (kind != 0)
            stamp = 0;
    }
    for (int r = first; r < first + n; r++) {
        b->shared[w->number][r].begun = stamp;
        b->shared[w->number][r].writes++;
    }
    int rc = many_write(w->shared[branch], w->number, first, n, stamp, &w->err);
    if (first == MANY_GROUP && (rc == BRC_EEXISTS || rc == BRC_ENOTFOUND)) {
        b->shared[w->number][first].begun = before; /* a commit or discard came between */
        return;
    }
    TRUE_OF(w, rc == BRC_OK);
    for (int r = first; r < first + n; r++) {
        b->shared[w->number][r].acked = stamp;
        b->shared[w->number][r].when = when;
    }
    count(w, WROTE);
}

/* The changes that were acknowledged to this worker are there; those that others have not
 * published are not. */
static void check_shared_view(worker *w, int branch)
{
    many_branch *b = &w->m->branch[branch];
    many_view view;
    moment before;
    look(b, &before);
    many_read(w->m, w->shared[branch], &view);
    int quiet = before.quiet && b->resets_begun == before.resets;
    for (int r = 0; r < MANY_REGISTERS && quiet; r++) {
        seen *own = &before.reg[w->number][r];
        MANY_TRUE(w->m, !own->pending || own->acked == view.value[w->number][r],
                  "worker %d: wrote %u, sees %u in register %d", w->number, own->acked,
                  view.value[w->number][r], r);
    }
    for (int i = 0; i < MANY_WORKERS; i++)
        for (int r = 0; r < MANY_REGISTERS; r++) {
            uint32_t v = view.value[i][r];
            MANY_TRUE(w->m, v % 2 == 0 || v <= b->published[i],
                      "worker %d sees %u, which is private to worker %d", w->number, v, i);
        }
}

/* A commit of the shared draft holds what its parent has, and what was written: all that was
 * acknowledged before. */
static void check_shared_commit(worker *w, const moment *before, const moment *after,
                                const many_view *view, const many_view *parent)
{
    int quiet = before->quiet && after->resets == before->resets + 1;
    for (int i = 0; i < MANY_WORKERS; i++)
        for (int r = 0; r < MANY_REGISTERS; r++) {
            const seen *x = &before->reg[i][r], *y = &after->reg[i][r];
            uint32_t v = view->value[i][r];
            int is_new = v == x->acked || v == x->begun || v == y->acked || v == y->begun ||
                         y->writes - x->writes >= 2;
            MANY_TRUE(w->m, is_new || v == parent->value[i][r],
                      "worker %d committed %u as register %d of worker %d: nobody wrote that",
                      w->number, v, r, i);
            MANY_TRUE(w->m, is_new || !quiet || !x->pending,
                      "worker %d committed %u as register %d of worker %d, not %u", w->number, v, r,
                      i, x->acked);
        }
}

static void note_last_reset(many_model *m, many_branch *b)
{
    uint64_t now = atomic_fetch_add(&m->clock, 1), last = b->last_reset;
    while (last < now && !atomic_compare_exchange_weak(&b->last_reset, &last, now))
        ;
}

static void discard_shared(worker *w, int branch)
{
    many_branch *b = &w->m->branch[branch];
    b->resets_begun++;
    GOOD(w, brc_session_discard(w->shared[branch], &w->err));
    note_last_reset(w->m, b);
    b->resets_done++;
    count(w, DISCARDED);
}

static int any_pending(const moment *at)
{
    for (int i = 0; i < MANY_WORKERS; i++)
        for (int r = 0; r < MANY_GROUP; r++)
            if (at->reg[i][r].pending)
                return 1;
    return 0;
}

static void committed_shared(worker *w, int branch, const brc_oid *id, const moment *before,
                             uint64_t moves, uint64_t handed)
{
    many_branch *b = &w->m->branch[branch];
    many_view view, parent;
    moment after;
    brc_commit *commit;
    look(b, &after);
    GOOD(w, brc_commit_read(&commit, w->repo, id, &w->err));
    many_read_commit(w->m, w->repo, id, &view);
    many_read_commit(w->m, w->repo, &commit->parents[0], &parent);
    brc_commit_free(commit);
    check_shared_commit(w, before, &after, &view, &parent);
    many_note_commit(w->m, w->repo, branch, id, &view);
    b->moves_known = moves;
    if (b->hand_overs != handed) /* what it laid there may be older */
        b->moves_known = 0;
    count(w, COMMITTED);
}

static void commit_shared(worker *w, int branch)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    many_branch *b = &w->m->branch[branch];
    moment before;
    brc_oid id;
    opts.message = "shared";
    opts.flags = BRC_COMMIT_NO_MERGE; /* the model has no merges */
    look(b, &before);
    uint64_t moves = b->moves_done, handed = b->hand_overs_done, others;
    b->resets_begun++;
    b->commits_begun++;
    w->m->commit_under_way[w->number] = 1;
    int rc = brc_session_commit(&id, w->shared[branch], &opts, &w->err);
    others = b->resets_begun - before.resets - 1;
    if (rc == BRC_OK) {
        committed_shared(w, branch, &id, &before, moves, handed);
        note_last_reset(w->m, b);
    }
    w->m->commit_under_way[w->number] = 0;
    b->commits_done++;
    b->resets_done++;
    if (rc == BRC_EMISUSE)
        MANY_TRUE(w->m, !before.quiet || others || !any_pending(&before),
                  "worker %d: there is nothing to commit, and it was written", w->number);
    else if (rc != BRC_OK) {
        TRUE_OF(w, rc == BRC_ESTALE &&
                       (b->moves_begun > b->moves_known || b->hand_overs != handed));
        count(w, WAS_STALE);
        check_shared_view(w, branch);
        if (below(w, 2) == 0)
            discard_shared(w, branch);
    }
}

/* ---- a private draft ----------------------------------------------------------------- */

static void check_private(worker *w, int branch)
{
    many_private *mine = &w->m->private[w->number][branch];
    many_view view;
    many_read(w->m, w->private[branch], &view);
    if (!mine->changed) { /* others may have committed */
        mine->base = mine->now = view;
        return;
    }
    MANY_TRUE(w->m, memcmp(&view, &mine->now, sizeof(view)) == 0,
              "worker %d: its private draft is not what it wrote over what there was", w->number);
}

/* The first change begins where the branch is: what that is, nobody changes in this transaction. */
static void begin_private(worker *w, int branch)
{
    many_private *mine = &w->m->private[w->number][branch];
    GOOD(w, brc_begin(w->repo, &w->err));
    w->since[branch] = w->m->branch[branch].commits_done;
    many_read(w->m, w->private[branch], &mine->base);
    mine->now = mine->base;
}

static void write_private(worker *w, int branch, int first, int n)
{
    many_private *mine = &w->m->private[w->number][branch];
    const int is_first = !mine->changed;
    uint32_t stamp = (w->stamp += 2) + 1;
    if (!mine->changed && w->since[branch] < w->m->branch[branch].commits_done &&
        below(w, 2) == 0) { /* from the branch as it is now */
        close_private(w, branch);
        open_private(w, branch);
    }
    if (is_first)
        begin_private(w, branch);
    if (first == MANY_GROUP && mine->now.value[w->number][MANY_GROUP] != 0)
        stamp = 0;
    mine->under_way = 1;
    GOOD(w, many_write(w->private[branch], w->number, first, n, stamp, &w->err));
    if (is_first)
        GOOD(w, brc_end(w->repo, 1, &w->err));
    mine->changed = 1;
    for (int r = first; r < first + n; r++) {
        mine->now.value[w->number][r] = stamp;
        mine->mine[r] = 1;
    }
    mine->under_way = 0;
    check_private(w, branch);
    count(w, WROTE_PRIVATE);
}

static void draft_is_gone(many_private *mine, const many_view *now)
{
    mine->base = mine->now = *now;
    memset(mine->mine, 0, sizeof(mine->mine));
    mine->changed = mine->under_way = 0;
}

/* Nodes that differ from the parent: those that it wrote, and no others. */
static void check_diff(worker *w, int branch, const brc_oid *parent, const brc_oid *id)
{
    const many_private *mine = &w->m->private[w->number][branch];
    const brc_change *change;
    char a[65], b[65], group[16];
    int rc, expected = 0, found = 0;
    brc_iter *it;
    for (int r = 0; r < MANY_GROUP; r++)
        expected |= mine->mine[r];
    if (mine->base.value[w->number][MANY_GROUP] != mine->now.value[w->number][MANY_GROUP])
        expected |= 2;
    snprintf(group, sizeof(group), "/n%d", w->number);
    brc_oid_format(a, parent);
    GOOD(w, brc_diff(&it, w->repo, a, brc_oid_format(b, id), NULL, &w->err));
    while ((rc = brc_next(it, &change, &w->err)) > 0)
        found |= strcmp(change->path, "/a") == 0 ? 1 : strcmp(change->path, group) == 0 ? 2 : 4;
    TRUE_OF(w, rc == 0);
    brc_iter_free(it);
    MANY_TRUE(w->m, found == expected, "worker %d: the diff of its commit is %d, not %d", w->number,
              found, expected);
}

/* The commit has its parent's registers and those that were written, and no others. */
static void committed_private(worker *w, int branch, const brc_oid *id, uint64_t since)
{
    many_private *mine = &w->m->private[w->number][branch];
    many_view view, parent;
    brc_commit *commit;
    GOOD(w, brc_commit_read(&commit, w->repo, id, &w->err));
    many_read_commit(w->m, w->repo, id, &view);
    many_read_commit(w->m, w->repo, &commit->parents[0], &parent);
    MANY_TRUE(w->m, memcmp(&view, &mine->now, sizeof(view)) == 0,
              "worker %d: its commit is not its draft", w->number);
    MANY_TRUE(w->m, memcmp(&parent, &mine->base, sizeof(view)) == 0,
              "worker %d: its commit does not follow what it was laid over", w->number);
    check_diff(w, branch, &commit->parents[0], id);
    brc_commit_free(commit);
    many_note_commit(w->m, w->repo, branch, id, &view);
    draft_is_gone(mine, &view);
    w->since[branch] = since;
    count(w, COMMITTED_PRIVATE);
}

static void discard_private(worker *w, int branch)
{
    many_private *mine = &w->m->private[w->number][branch];
    mine->under_way = 1;
    GOOD(w, brc_session_discard(w->private[branch], &w->err));
    draft_is_gone(mine, &mine->base);
    check_private(w, branch);
    count(w, DISCARDED_PRIVATE);
}

static void commit_private(worker *w, int branch)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    many_private *mine = &w->m->private[w->number][branch];
    many_branch *b = &w->m->branch[branch];
    brc_oid id;
    if (!mine->changed)
        return;
    opts.message = "private";
    opts.flags = BRC_COMMIT_NO_MERGE; /* the model has no merges */
    b->published[w->number] = w->stamp + 1;
    b->moves_begun++;
    uint64_t done = b->commits_done;
    b->commits_begun++;
    mine->under_way = 1;
    w->m->commit_under_way[w->number] = 1;
    int rc = brc_session_commit(&id, w->private[branch], &opts, &w->err);
    if (rc == BRC_OK)
        committed_private(w, branch, &id, done);
    w->m->commit_under_way[w->number] = 0;
    mine->under_way = 0;
    b->commits_done++;
    b->moves_done++;
    if (rc == BRC_OK)
        return;
    int is_same = memcmp(&mine->base, &mine->now, sizeof(mine->now)) == 0;
    TRUE_OF(w, (rc == BRC_ESTALE && b->commits_begun - 1 > w->since[branch]) ||
                   (rc == BRC_EMISUSE && is_same));
    count(w, WAS_STALE_PRIVATE);
    check_private(w, branch); /* it is kept */
    if (below(w, 3) == 0)
        return;
    discard_private(w, branch);
    close_private(w, branch);
    open_private(w, branch);
}

/* The private draft becomes part of the shared one, whole or not at all. */
static void hand_over(worker *w, int branch)
{
    many_private *mine = &w->m->private[w->number][branch];
    many_branch *b = &w->m->branch[branch];
    many_register *own = b->shared[w->number];
    if (!mine->changed)
        return;
    uint64_t done = b->commits_done;
    b->published[w->number] = w->stamp + 1;
    b->hand_overs++;
    b->resets_begun++;
    for (int r = 0; r < MANY_REGISTERS; r++)
        if (mine->mine[r]) {
            own[r].begun = mine->now.value[w->number][r];
            own[r].writes++;
        }
    mine->under_way = 1;
    int rc = brc_session_hand_over(w->private[branch], w->shared[branch], &w->err);
    for (int r = 0; r < MANY_REGISTERS; r++)
        if (mine->mine[r] && rc == BRC_OK)
            own[r].acked = mine->now.value[w->number][r];
        else if (mine->mine[r])
            own[r].begun = own[r].acked;
    if (rc == BRC_OK) {
        many_read(w->m, w->private[branch], &mine->base); /* the branch as it is now */
        draft_is_gone(mine, &mine->base);
        w->since[branch] = done;
        b->moves_known = 0; /* it may lie over an older commit */
        count(w, HANDED_OVER);
    }
    b->hand_overs_done++;
    mine->under_way = 0;
    b->resets_done++;
    if (rc == BRC_OK)
        return;
    TRUE_OF(w, rc == BRC_ECONFLICT || rc == BRC_ESTALE);
    check_private(w, branch);
    count(w, WAS_NOT_HANDED_OVER);
}

/* ---- all steps ----------------------------------------------------------------------- */

static void read_commit(worker *w)
{
    const many_commit *known = &w->m->commits[below(w, w->m->ncommits)];
    many_view view;
    if (!known->known)
        return;
    many_read_commit(w->m, w->repo, &known->id, &view);
    MANY_TRUE(w->m, memcmp(&view, &known->view, sizeof(view)) == 0,
              "worker %d: a commit is not what was committed", w->number);
}

static void choose(worker *w, int *first, int *n)
{
    *n = 1;
    *first = (int)below(w, MANY_REGISTERS + 4);
    if (*first >= MANY_REGISTERS)
        *first = (int)below(w, MANY_CHUNKS);
    if (*first < MANY_CHUNKS)
        *n = 1 + (int)below(w, (uint32_t)(MANY_CHUNKS - *first < 3 ? MANY_CHUNKS - *first : 3));
}

static void step(worker *w)
{
    int branch = (int)below(w, MANY_BRANCHES), first, n;
    uint32_t what = below(w, 100);
    choose(w, &first, &n);
    if (what < 34)
        write_shared(w, branch, first, n);
    else if (what < 42)
        check_shared_view(w, branch);
    else if (what < 52)
        commit_shared(w, branch);
    else if (what < 53)
        discard_shared(w, branch);
    else if (what < 73)
        write_private(w, branch, first, n);
    else if (what < 77)
        check_private(w, branch);
    else if (what < 86)
        commit_private(w, branch);
    else if (what < 90)
        hand_over(w, branch);
    else if (what < 91 && w->m->private[w->number][branch].changed)
        discard_private(w, branch);
    else if (what < 98)
        read_commit(w);
    else {
        close_file(w);
        open_file(w);
        count(w, CLOSED);
    }
}

static void *work(void *arg)
{
    worker *w = arg;
    open_file(w);
    for (uint32_t i = 0; i < w->steps; i++)
        step(w);
    if (w->ends_badly)
        kill(getpid(), SIGKILL); /* the other thread is in the middle of something */
    close_file(w);
    return NULL;
}

/* A process of two workers, each with a handle of its own. */
static _Noreturn void work_in_child(many_model *m, int process, uint32_t round, uint32_t steps)
{
    static worker workers[MANY_THREADS];
    pthread_t threads[MANY_THREADS];
    for (int i = 0; i < MANY_THREADS; i++) {
        worker *w = &workers[i];
        w->m = m;
        w->number = process * MANY_THREADS + i;
        w->random = m->seed * 1000003 + round * 64 + (uint32_t)w->number;
        w->stamp = m->stamps;
        w->steps = steps;
        w->ends_badly = i == 0 && (round + (uint32_t)process) % 3 == 0;
        if (w->ends_badly)
            w->steps -= below(w, steps / 2 + 1);
        if (pthread_create(&threads[i], NULL, work, w) != 0)
            _exit(1);
    }
    for (int i = 0; i < MANY_THREADS; i++)
        pthread_join(threads[i], NULL);
    _exit(0);
}

static void run_round(many_model *m, uint32_t round, uint32_t steps)
{
    pid_t children[MANY_PROCESSES];
    fflush(NULL);
    for (int p = 0; p < MANY_PROCESSES; p++) {
        children[p] = fork();
        ck_assert_int_ge(children[p], 0);
        if (children[p] == 0)
            work_in_child(m, p, round, steps);
    }
    int failed = 0;
    for (int p = 0; p < MANY_PROCESSES; p++) {
        int status;
        ck_assert_int_eq(waitpid(children[p], &status, 0), children[p]);
        failed += WIFEXITED(status) ? WEXITSTATUS(status) != 0 : WTERMSIG(status) != SIGKILL;
        m->done[KILLED] += !WIFEXITED(status);
    }
    m->stamps += 2 * ROUND;
    ck_assert_int_eq(failed, 0);
}

/* Something that this many steps do not always bring; adoptions over changes are rarer still. */
static const char *never_done(const many_model *m)
{
    for (int i = 0; i < MANY_THINGS; i++)
        if (m->done[i] == 0 && i != ADOPTED_OVER)
            return many_things[i];
    return NULL;
}

CASE("many", .timeout = getenv("BRECCIA_STEPS") != NULL ? UNTIMED : 600);

/* The order of the workers decides what is done, so the test adds rounds until everything was
 * done. */
TEST(four_processes_with_two_threads_each)
{
    char dir[96], file[128];
    const uint64_t steps = effort_number("BRECCIA_STEPS", effort_is_long() ? 10 * STEPS : STEPS);
    const uint64_t seed = effort_number("BRECCIA_SEED", 1);
    uint64_t random = seed;
    folder_make(dir, sizeof(dir), FOLDER_FAST);
    snprintf(file, sizeof(file), "%s/many.brc", dir);
    many_model *m = many_new(file, seed);
    const int is_test = getenv("BRECCIA_STEPS") == NULL;
    for (uint32_t round = 0; round * ROUND < steps || (is_test && never_done(m)); round++) {
        ck_assert_msg(!is_test || round < 8 * steps / ROUND, "nothing was %s", never_done(m));
        run_round(m, round, ROUND / MANY_WORKERS);
        many_check(m, &random);
    }
    for (int i = 0; !is_test && i < MANY_THINGS; i++)
        fprintf(stderr, "%s%u %s", i > 0 ? ", " : "", m->done[i], many_things[i]);
    if (!is_test)
        fprintf(stderr, "\n");
    many_free(m);
    brc_tree_remove(dir);
}
