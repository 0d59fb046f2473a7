/* Children that write random boxes, some of them in processes that are killed, against arrays in
 * plain memory: what a join must show, element by element, and what it must report. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kit/children_kit.h"
#include "../kit/ios.h"
#include "../kit/suite.h"

TEST_SUITE(children_model);

enum { ROWS = 12, COLUMNS = 10, CELLS = ROWS * COLUMNS, CHUNK_ROWS = 5, CHUNK_COLUMNS = 4 };
enum { MOST = 6 }; /* children */
enum { CHUNKS_ACROSS = (COLUMNS + CHUNK_COLUMNS - 1) / CHUNK_COLUMNS,
       CHUNKS = CHUNKS_ACROSS * ((ROWS + CHUNK_ROWS - 1) / CHUNK_ROWS) };

SCENARIO_FIXTURE(t)

typedef struct grid {
    int32_t cell[CELLS];
} grid;

typedef struct child {
    brc_session *s;
    char *token;
    grid base, now;
    int in_conflict;
} child;

typedef struct family {
    brc_session *s;
    grid now;
    child c[MOST];
    int n;
    uint64_t random;
} family;

/* ---- boxes -------------------------------- */

typedef struct box {
    uint64_t start[2], count[2], step[2];
    int32_t value;
} box;

/* Few values, so that two sides write the same now and then; 0 is the fill value. */
static box random_box(uint64_t *random)
{
    static const uint64_t shape[] = {ROWS, COLUMNS};
    box b;
    for (int i = 0; i < 2; i++) {
        b.start[i] = scenario_below(random, shape[i]);
        b.step[i] = 1 + scenario_below(random, 2);
        const uint64_t most = (shape[i] - b.start[i] + b.step[i] - 1) / b.step[i];
        b.count[i] = 1 + scenario_below(random, most < 4 ? most : 4);
    }
    b.value = (int32_t)scenario_below(random, 4);
    return b;
}

static int write_box(scenario *w, brc_session *s, const box *b)
{
    brc_array *a;
    brc_sel sel = BRC_SEL_INIT;
    int rc = brc_array_open(&a, s, "/a", &w->err);
    if (rc < 0)
        return rc;
    sel_all(&sel, a);
    for (int i = 0; i < 2; i++) {
        sel.start[i] = b->start[i];
        sel.count[i] = b->count[i];
        sel.step[i] = b->step[i];
    }
    rc = brc_array_fill(a, &sel, &b->value, &w->err);
    brc_array_free(a);
    return rc;
}

static void write_cells(grid *g, const box *b)
{
    for (uint64_t i = 0; i < b->count[0]; i++)
        for (uint64_t k = 0; k < b->count[1]; k++)
            g->cell[(b->start[0] + i * b->step[0]) * COLUMNS + b->start[1] + k * b->step[1]] =
                b->value;
}

typedef struct boxes {
    uint64_t random;
    int n, is_killed;
} boxes;

static int write_boxes(scenario *w, brc_session *s, void *ctx)
{
    boxes how = *(boxes *)ctx;
    int rc = BRC_OK;
    for (int i = 0; i < how.n && rc == BRC_OK; i++) {
        const box b = random_box(&how.random);
        rc = write_box(w, s, &b);
    }
    if (how.is_killed && rc == BRC_OK)
        raise(SIGKILL);
    return rc;
}

static void boxes_in(grid *g, boxes how)
{
    for (int i = 0; i < how.n; i++) {
        const box b = random_box(&how.random);
        write_cells(g, &b);
    }
}

static grid grid_of(brc_session *s)
{
    grid g;
    scenario_read(&t, s, "/a", g.cell, sizeof(g.cell));
    return g;
}

static void need_grid(brc_session *s, const grid *want)
{
    const grid g = grid_of(s);
    ck_assert_mem_eq(g.cell, want->cell, sizeof(g.cell));
}

/* ---- what a family does -------------------------------- */

static void parent_writes(family *f)
{
    boxes how = {f->random, 1 + (int)scenario_below(&f->random, 2), 0};
    OK(&t, write_boxes(&t, f->s, &how));
    boxes_in(&f->now, how);
    scenario_random(&f->random);
}

static void fork_child(family *f)
{
    child *c = &f->c[f->n++];
    c->s = kit_fork(&t, f->s);
    c->token = kit_token(&t, c->s);
    c->base = c->now = f->now;
}

/* Here, or all at once in processes of their own. */
static void children_write(family *f)
{
    boxes how[MOST];
    pid_t pid[MOST] = {0};
    for (int i = 0; i < f->n; i++) {
        how[i] = (boxes){scenario_random(&f->random), (int)scenario_below(&f->random, 4), 0};
        how[i].is_killed = scenario_below(&f->random, 2) == 0;
        if (scenario_below(&f->random, 3) > 0)
            pid[i] = kit_worker(&t, f->c[i].token, write_boxes, &how[i]);
        boxes_in(&f->c[i].now, how[i]);
    }
    for (int i = 0; i < f->n; i++) {
        int status = 0;
        how[i].is_killed &= pid[i] != 0;
        if (pid[i] == 0)
            OK(&t, write_boxes(&t, f->c[i].s, &how[i]));
        else
            ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
        ck_assert(how[i].is_killed ? WIFSIGNALED(status) : WIFEXITED(status) && status == 0);
    }
}

/* ---- what a join must come to -------------------------------- */

static int chunk_at(int cell)
{
    return cell / COLUMNS / CHUNK_ROWS * CHUNKS_ACROSS + cell % COLUMNS / CHUNK_COLUMNS;
}

/* Sets *out to the parent afterwards. Returns whether some chunk is in conflict; `clash` says
 * which, for each child. */
static int expect(family *f, grid *out, char clash[MOST][CHUNKS])
{
    int any = 0;
    *out = f->now;
    memset(clash, 0, MOST * CHUNKS);
    for (int i = 0; i < f->n; i++) { /* in the order in which they began */
        child *c = &f->c[i];
        c->in_conflict = 0;
        for (int k = 0; k < CELLS; k++) {
            const int32_t was = c->base.cell[k], their = c->now.cell[k];
            if (their == was || out->cell[k] == their)
                continue;
            if (out->cell[k] == was) {
                out->cell[k] = their;
                continue;
            }
            clash[i][chunk_at(k)] = 1;
            c->in_conflict = any = 1;
        }
    }
    return any;
}

static void need_clashes(family *f, brc_iter *it, char clash[MOST][CHUNKS])
{
    const brc_conflict *found;
    char key[40];
    int rc, seen = 0, want = 0;
    while ((rc = brc_next(it, &found, &t.err)) > 0) {
        int known = 0;
        for (int i = 0; i < f->n; i++)
            for (int k = 0; k < CHUNKS; k++) {
                snprintf(key, sizeof(key), "c/%d/%d", k / CHUNKS_ACROSS, k % CHUNKS_ACROSS);
                const int64_t id = scenario_draft(&t, f->c[i].s);
                known |= clash[i][k] && id == found->draft && strcmp(key, found->key) == 0;
            }
        ck_assert_msg(known, "%s %s", found->path, found->key);
        seen++;
    }
    ck_assert_int_eq(rc, 0);
    brc_iter_free(it);
    for (int i = 0; i < f->n; i++)
        for (int k = 0; k < CHUNKS; k++)
            want += clash[i][k];
    ck_assert_int_eq(seen, want);
}

static int join_in_any_order(family *f, brc_iter **it)
{
    const char *tokens[MOST];
    for (int i = 0; i < f->n; i++)
        tokens[i] = f->c[i].token;
    for (int i = f->n - 1; i > 0; i--) {
        const int k = (int)scenario_below(&f->random, (uint64_t)i + 1);
        const char *swap = tokens[i];
        tokens[i] = tokens[k];
        tokens[k] = swap;
    }
    return brc_session_join(it, f->s, tokens, (size_t)f->n, 0, &t.err);
}

static void forget_child(family *f, int at)
{
    brc_session_free(f->c[at].s);
    free(f->c[at].token);
    memmove(&f->c[at], &f->c[at + 1], sizeof(child) * (size_t)(MOST - at - 1));
    f->n--;
}

/* Drops the children that are in conflict. */
static void drop_some(family *f)
{
    for (int i = f->n - 1; i >= 0; i--) {
        if (!f->c[i].in_conflict)
            continue;
        const int64_t id = scenario_draft(&t, f->c[i].s);
        OK(&t, brc_draft_drop(t.repo, id, &t.err));
        forget_child(f, i);
    }
}

static int join_all(family *f)
{
    grid want;
    char clash[MOST][CHUNKS];
    brc_iter *it;
    int conflicts = 0;
    while (expect(f, &want, clash)) {
        FAILS(&t, BRC_ECONFLICT, join_in_any_order(f, &it));
        need_clashes(f, it, clash);
        need_grid(f->s, &f->now); /* all is as it was */
        for (int i = 0; i < f->n; i++)
            need_grid(f->c[i].s, &f->c[i].now);
        drop_some(f);
        conflicts++;
    }
    OK(&t, join_in_any_order(f, &it));
    ck_assert_ptr_null(it);
    need_grid(f->s, &want);
    f->now = want;
    while (f->n > 0)
        forget_child(f, f->n - 1);
    return conflicts;
}

static void commit_empty_grid(void)
{
    static const uint64_t shape[] = {ROWS, COLUMNS}, chunk[] = {CHUNK_ROWS, CHUNK_COLUMNS};
    brc_array_free(scenario_array(&t, "/a", "int32", 2, shape, chunk, NULL, NULL));
    scenario_commit(&t, "first");
}

static int one_family(uint64_t seed)
{
    family f = {.random = seed};
    brc_oid id;
    int conflicts = 0;
    f.s = kit_private(&t, NULL);
    f.now = grid_of(f.s);
    for (int round = 0; round < 3; round++) {
        const int n = 2 + (int)scenario_below(&f.random, MOST - 1);
        while (f.n < n) {
            if (scenario_below(&f.random, 3) == 0)
                parent_writes(&f);
            fork_child(&f);
        }
        children_write(&f);
        if (scenario_below(&f.random, 3) == 0)
            parent_writes(&f);
        if (scenario_below(&f.random, 4) == 0)
            OK(&t, brc_gc(t.repo, NULL, NULL, &t.err));
        conflicts += join_all(&f);
        if (scenario_below(&f.random, 2) == 0 && kit_commit(&t, f.s, &id) != BRC_OK)
            ck_assert_ptr_nonnull(strstr(t.err.message, "nothing"));
        need_grid(f.s, &f.now);
    }
    brc_session_free(f.s);
    return conflicts;
}

CASE("children_model", .setup = t_start, .teardown = t_stop, .timeout = 600);

LOOP(joins_are_as_the_model_says, 0, 3)
{
    commit_empty_grid();
    int conflicts = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        conflicts += one_family((uint64_t)_i * 1000 + seed);
        OK(&t, brc_gc(t.repo, NULL, NULL, &t.err));
    }
    ck_assert_int_gt(conflicts, 5);
    ck_assert_int_lt(conflicts, 60);
}

/* ---- kills, and others that go on -------------------------------- */

enum { PARTS = 8 };

typedef struct joining {
    char *tokens[PARTS];
} joining;

static int join_parts(scenario *w, brc_session *s, void *ctx)
{
    joining *how = ctx;
    return brc_session_join(NULL, s, (const char *const *)how->tokens, PARTS, 0, &w->err);
}

/* Killed anywhere in a join, all children are joined, or none. */
TEST(a_killed_join_is_done_or_not)
{
    int done = 0;
    uint64_t random = 7;
    commit_empty_grid();
    for (int round = 0; round < 24; round++) {
        joining how;
        int status;
        brc_session *c[PARTS], *s = kit_private(&t, NULL);
        const grid before = grid_of(s);
        grid after = before;
        for (int i = 0; i < PARTS; i++) { /* in every second round chunks are met */
            const box b = {.start = {round % 2 ? (uint64_t)i : 0, (uint64_t)i},
                           .count = {1, 1}, .step = {1, 1}, .value = 100 + i};
            c[i] = kit_fork(&t, s);
            OK(&t, write_box(&t, c[i], &b));
            write_cells(&after, &b);
            how.tokens[i] = kit_token(&t, c[i]);
        }
        char *token = kit_token(&t, s);
        const pid_t pid = kit_worker(&t, token, join_parts, &how);
        usleep((useconds_t)scenario_below(&random, 40000));
        kill(pid, SIGKILL);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        const grid now = grid_of(s);
        const int is_done = memcmp(now.cell, after.cell, sizeof(now.cell)) == 0;
        ck_assert(is_done || memcmp(now.cell, before.cell, sizeof(now.cell)) == 0);
        if (is_done)
            FAILS(&t, BRC_ESTALE, join_parts(&t, s, &how));
        else
            OK(&t, join_parts(&t, s, &how));
        need_grid(s, &after);
        done += is_done;
        OK(&t, brc_session_discard(s, &t.err));
        for (int i = 0; i < PARTS; i++) {
            free(how.tokens[i]);
            brc_session_free(c[i]);
        }
        free(token);
        brc_session_free(s);
    }
    ck_assert_int_lt(done, 24); /* some were early enough */
}

static int write_till_joined(scenario *w, brc_session *s, void *ctx)
{
    const box *b = ctx;
    int rc = BRC_OK;
    for (int32_t i = 1; rc == BRC_OK; i++) {
        box next = *b;
        next.value = i;
        rc = write_box(w, s, &next);
        usleep(20000);
    }
    return rc == BRC_ESTALE ? BRC_OK : rc;
}

/* A process that still writes into a child when it is joined loses nothing that was durable by
 * then, and is told. */
TEST(a_child_is_joined_while_it_is_written)
{
    commit_empty_grid();
    brc_session *s = kit_private(&t, NULL), *c = kit_fork(&t, s);
    box b = {.start = {0, 0}, .count = {ROWS, 1}, .step = {1, 1}, .value = 0};
    char *token = kit_token(&t, c);
    const pid_t pid = kit_worker(&t, token, write_till_joined, &b);
    while (grid_of(c).cell[0] < 3)
        usleep(1000);
    const char *tokens[] = {token};
    OK(&t, brc_session_join(NULL, s, tokens, 1, 0, &t.err));
    const grid now = grid_of(s);
    ck_assert_int_ge(now.cell[0], 3);
    for (int i = 0; i < ROWS; i++)
        ck_assert_int_eq(now.cell[i * COLUMNS], now.cell[0]);
    kit_worker_ends(pid, BRC_OK);
    free(token);
    brc_session_free(c);
    brc_session_free(s);
}

/* More than rows may lie on each other. */
TEST(fifty_children_of_one_array)
{
    enum { N = 50 };
    commit_empty_grid();
    brc_session *s = kit_private(&t, NULL), *c[N];
    char *tokens[N];
    grid want = grid_of(s);
    for (int i = 0; i < N; i++) {
        const box b = {.start = {(uint64_t)i / 6, (uint64_t)i % 6}, .count = {1, 1}, .step = {1, 1},
                       .value = 1 + i};
        c[i] = kit_fork(&t, s);
        OK(&t, write_box(&t, c[i], &b));
        write_cells(&want, &b);
        tokens[i] = kit_token(&t, c[i]);
    }
    OK(&t, brc_session_join(NULL, s, (const char *const *)tokens, N, 0, &t.err));
    need_grid(s, &want);
    for (int i = 0; i < N; i++) {
        brc_session_free(c[i]);
        free(tokens[i]);
    }
    brc_session_free(s);
}
