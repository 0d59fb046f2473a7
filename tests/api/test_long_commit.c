/* Commits of more rows than one transaction may have: each transaction is as long as another,
 * whatever others write in between is kept, and one that is killed has changed nothing. And looking
 * at that many rows: in short reads, which see one state. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/store/db.h"
#include "../../src/work/fold.h"
#include "../../src/work/session.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/step_count.h"
#include "../kit/suite.h"

TEST_SUITE(long_commit);

enum { ROWS = 3 * BRC_FOLD_ROWS, WRITTEN = 999 };

static scenario t, other;
static step_count count;

static void long_start(void)
{
    memset(&other, 0, sizeof(other));
    memset(&count, 0, sizeof(count));
    scenario_start(&t);
}

static void long_stop(void)
{
    scenario_close(&other);
    scenario_stop(&t);
}

/* Another handle of the file, which does not wait. */
static void open_other(void)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.wait_ms = -1;
    memcpy(other.file, t.file, sizeof(other.file));
    scenario_open(&other, &opts, 0);
}

/* An array of one element a chunk, all of them 7. */
static void big_array(const char *path, uint64_t n)
{
    const uint64_t chunk = 1;
    const int32_t seven = 7;
    brc_array *a = scenario_array(&t, path, "int32", 1, &n, &chunk, "-1", NULL);
    OK(&t, brc_array_fill(a, NULL, &seven, &t.err));
    brc_array_free(a);
}

static void commit_counted(void)
{
    step_count_start(&count, t.repo->store->db);
    int rc = scenario_commit_of(&t, t.session, "long", NULL);
    step_count_stop(&count);
    ck_assert_msg(rc == BRC_OK, "%s", t.err.message);
}

static brc_oid root_of_head(void)
{
    brc_commit *commit;
    brc_oid id, root;
    OK(&t, brc_resolve(&id, t.repo, "HEAD", &t.err));
    OK(&t, brc_commit_read(&commit, t.repo, &id, &t.err));
    root = commit->root;
    brc_commit_free(commit);
    return root;
}

/* ---- how long -------------------------------- */

CASE("commit", .setup = long_start, .teardown = long_stop, .timeout = 300);

/* Four times the rows: not one step more in a transaction, and as many more of them. In the first
 * commit no rows of a draft before it are left to be deleted. */
TEST(no_transaction_grows_with_the_rows)
{
    static const char *const paths[] = {"/a", "/b", "/c"};
    int64_t most[3];
    int writes[3];
    for (int i = 0; i < 3; i++) {
        const int n = i < 2 ? ROWS : 4 * ROWS;
        big_array(paths[i], (uint64_t)n);
        commit_counted();
        most[i] = count.transaction;
        writes[i] = count.writes;
        ck_assert_int_ge(count.writes, n / BRC_FOLD_ROWS);
        ck_assert_int_lt(count.statement, count.transaction);
    }
    ck_assert_int_ge(writes[2], writes[1] + 3 * ROWS / BRC_FOLD_ROWS);
    ck_assert_msg(most[2] < most[1] + most[1] / 10, "%lld and %lld steps", (long long)most[1],
                  (long long)most[2]);
    ck_assert_int_eq(scenario_clean(&t), 1);
    ck_assert_int_eq(scenario_number(&t, t.session, "/c", 4 * ROWS - 1), 7);
    scenario_whole(&t);
}

/* A commit of as many rows as one transaction may have is one. */
TEST(a_small_commit_is_one_transaction)
{
    big_array("/a", BRC_FOLD_ROWS - 64);
    commit_counted();
    ck_assert_int_eq(count.writes, 1);
    scenario_whole(&t);
}

/* In parts and in one transaction of the caller's: the same snapshot. */
TEST(both_ways_make_the_same_snapshot)
{
    brc_oid roots[2];
    for (int i = 0; i < 2; i++) {
        big_array("/g/a", ROWS);
        big_array("/g/b", 700);
        OK(&t, brc_attrs_set(t.session, "/g/b", "n", "1", &t.err));
        scenario_set_number(&t, "/g/a", 5, 6);
        if (i == 0)
            OK(&t, brc_begin(t.repo, &t.err));
        commit_counted();
        if (i == 0) {
            ck_assert_int_eq(count.writes, 0);
            OK(&t, brc_end(t.repo, 1, &t.err));
        } else {
            ck_assert_int_gt(count.writes, 2);
        }
        roots[i] = root_of_head();
        scenario_whole(&t);
        OK(&t, brc_node_remove(t.session, "/g", &t.err));
        scenario_commit(&t, "and none");
    }
    ck_assert_int_eq(memcmp(&roots[0], &roots[1], sizeof(roots[0])), 0);
}

/* ---- beside others -------------------------------- */

static int rounds, made_anew_at, is_made_anew;

/* In each gap another process writes into the arrays, and changes a node. */
static void write_beside(void *ctx)
{
    char text[16];
    int at = rounds;
    (void)ctx;
    if (other.session == NULL || rounds >= WRITTEN)
        return;
    snprintf(text, sizeof(text), "%d", rounds);
    const int rc = brc_attrs_set(other.session, "/", "n", text, &other.err);
    if (rc == BRC_EBUSY)
        return;
    ck_assert_msg(rc == BRC_OK, "%s", other.err.message);
    scenario_set_number(&other, "/a", (uint64_t)at, 1000 + at);
    scenario_set_number(&other, "/b", (uint64_t)(WRITTEN - at), 1000 + at);
    rounds++;
}

static void check_beside(void)
{
    for (int i = 0; i < rounds; i += 1 + rounds / 50) {
        ck_assert_int_eq(scenario_number(&t, t.session, "/a", (uint64_t)i), 1000 + i);
        ck_assert_int_eq(scenario_number(&t, t.session, "/b", (uint64_t)(WRITTEN - i)), 1000 + i);
    }
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", WRITTEN + 1), 7);
}

/* The rows that came meanwhile are in the commit, or uncommitted: then the next one has them. */
TEST(what_others_write_meanwhile_is_kept)
{
    rounds = 0;
    big_array("/a", ROWS);
    big_array("/b", ROWS);
    open_other();
    count.between = write_beside;
    commit_counted();
    const int busy = rounds;
    ck_assert_int_gt(busy, 5);
    ck_assert_int_lt(count.writes, 40); /* it does not begin again and again */
    scenario_close(&other);
    check_beside();
    scenario_whole(&t);
    if (!scenario_clean(&t))
        scenario_commit(&t, "the rest");
    ck_assert_int_eq(scenario_clean(&t), 1);
    check_beside();
    scenario_whole(&t);
}

/* The draft is dropped to its last row, and the array is made anew with other chunks: its rows must
 * not pass for those whose map was made before. */
static void make_anew(void *ctx)
{
    const uint64_t n = ROWS, chunk = 1;
    const int32_t five = 5;
    (void)ctx;
    if (++rounds <= made_anew_at || is_made_anew ||
        brc_session_discard(other.session, &other.err) == BRC_EBUSY)
        return;
    is_made_anew = 1;
    for (int i = 0; i < 12; i++) {
        OK(&other, brc_session_discard(other.session, &other.err));
        OK(&other, brc_attrs_set(other.session, "/", "n", "1", &other.err));
    }
    OK(&other, brc_session_discard(other.session, &other.err));
    brc_array *a = scenario_array(&other, "/a", "int32", 1, &n, &chunk, "-1", NULL);
    OK(&other, brc_array_fill(a, NULL, &five, &other.err));
    brc_array_free(a);
}

LOOP(rows_made_anew_have_other_numbers, 1, 9)
{
    rounds = 0;
    made_anew_at = _i;
    is_made_anew = 0;
    big_array("/a", ROWS);
    open_other();
    count.between = make_anew;
    commit_counted();
    ck_assert_int_eq(is_made_anew, 1);
    scenario_close(&other);
    for (uint64_t i = 0; i < ROWS; i += 1000)
        ck_assert_int_eq(scenario_number(&t, t.session, "/a", i), 5);
    scenario_whole(&t);
}

/* Very many nodes: what is made of them holds only as long as nobody changes anything. After some
 * tries the lock is kept. */
TEST(it_ends_beside_a_busy_writer)
{
    char path[16];
    rounds = 0;
    big_array("/a", WRITTEN + 2);
    big_array("/b", WRITTEN + 2);
    OK(&t, brc_begin(t.repo, &t.err));
    for (int i = 0; i < 1200; i++) {
        snprintf(path, sizeof(path), "/n%d", i);
        OK(&t, brc_group_create(t.session, path, NULL, &t.err));
        snprintf(path, sizeof(path), "/n%d/a", i);
        scenario_numbers(&t, path, 1, 1, i);
    }
    OK(&t, brc_end(t.repo, 1, &t.err));
    open_other();
    count.between = write_beside;
    commit_counted();
    ck_assert_int_gt(rounds, 3);
    scenario_close(&other);
    check_beside();
    scenario_whole(&t);
}

static brc_oid folded_root(brc_folded *folded, uint64_t *rows)
{
    brc_oid root;
    brc_fold how = {.way = BRC_FOLD_AT_ONCE, .folded = folded};
    OK(&t, brc_session_begin(t.session, &t.err));
    OK(&t, brc_session_fold(t.session, &how, &root, &t.err));
    OK(&t, brc_session_end(t.session, BRC_OK, &t.err));
    *rows = how.rows;
    return root;
}

/* A snapshot that was made ahead is of one state, and so are the maps of rows that lie below. */
TEST(what_was_made_ahead_is_of_one_state)
{
    brc_folded folded = {0};
    uint64_t rows;
    brc_oid now, then;
    big_array("/a", ROWS);
    big_array("/b", 100);
    open_other();
    OK(&t, brc_fold_ahead(t.session, 1, &folded, &t.err));
    then = folded_root(&folded, &rows);
    ck_assert_uint_eq(rows, 0);
    scenario_set_number(&other, "/a", 1, 5);
    scenario_set_number(&other, "/b", 2, 6);
    now = folded_root(&folded, &rows);
    ck_assert_int_ne(memcmp(&now, &then, sizeof(now)), 0);
    ck_assert_uint_gt(rows, 100);
    ck_assert_uint_lt(rows, 200);
    then = folded_root(NULL, &rows);
    ck_assert_uint_gt(rows, ROWS);
    ck_assert_int_eq(memcmp(&now, &then, sizeof(now)), 0);
    brc_folded_dispose(&folded);
}

/* ---- killed -------------------------------- */

static int gaps_left;

static void die_in_gap(void *ctx)
{
    (void)ctx;
    if (gaps_left-- == 0)
        _exit(77);
}

static void interrupt_in_gap(void *ctx)
{
    (void)ctx;
    if (gaps_left-- == 0)
        brc_interrupt(t.repo, 1);
}

/* Returns 1 if the child was killed in this gap, 0 if the commit has fewer gaps. */
static int commit_and_die(int gap)
{
    int status;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        memset(&t.err, 0, sizeof(t.err));
        scenario_open(&t, NULL, 0);
        gaps_left = gap;
        count.between = die_in_gap;
        step_count_start(&count, t.repo->store->db);
        int rc = scenario_commit_of(&t, t.session, "killed", NULL);
        step_count_stop(&count);
        _exit(rc == BRC_OK ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_msg(WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 0, "%d",
                  WEXITSTATUS(status));
    return WEXITSTATUS(status) == 77;
}

/* In every gap: nothing is committed, everything is still uncommitted, and the next try works. */
TEST(killed_between_two_transactions)
{
    int killed = 0, n;
    big_array("/a", 100);
    scenario_commit(&t, "first");
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
    big_array("/a", ROWS);
    const int64_t refs = scenario_ask(&t, "SELECT count(*) FROM oplog");
    for (int gap = 0; ; gap++) {
        scenario_close(&t);
        n = commit_and_die(gap);
        scenario_open(&t, NULL, 0);
        if (n == 0)
            break;
        killed++;
        if (scenario_ask(&t, "SELECT count(*) FROM oplog") > refs)
            break; /* the last gap: it was committed */
        ck_assert_int_eq(scenario_clean(&t), 0);
        ck_assert_int_eq(scenario_number(&t, t.session, "/a", ROWS - 1), 7);
        if (gap % 4 == 0)
            scenario_whole(&t);
    }
    ck_assert_int_gt(killed, ROWS / BRC_FOLD_ROWS);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM oplog"), refs + 1);
    ck_assert_int_eq(scenario_clean(&t), 1);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", ROWS - 1), 7);
    scenario_whole(&t);
}

/* ---- looking -------------------------------- */

/* Either /a or /c is changed, never both, never none. What is between them is large. */
static void flip(void *ctx)
{
    const char *now = rounds % 2 ? "/a" : "/c", *back = rounds % 2 ? "/c" : "/a";
    (void)ctx;
    if (other.session == NULL || brc_begin(other.repo, &other.err) != BRC_OK)
        return;
    scenario_set_number(&other, now, 0, 5);
    scenario_set_number(&other, back, 0, 7);
    rounds += brc_end(other.repo, 1, &other.err) == BRC_OK;
}

static int changed_nodes(void)
{
    brc_iter *it;
    const brc_change *change;
    int rc, n = 0;
    step_count_start(&count, t.repo->store->db);
    OK(&t, brc_diff(&it, t.repo, NULL, NULL, NULL, &t.err));
    step_count_stop(&count);
    while ((rc = brc_next(it, &change, &t.err)) > 0)
        n += strcmp(change->path, "/b") != 0;
    OK(&t, rc);
    brc_iter_free(it);
    return n;
}

CASE("look", .setup = long_start, .teardown = long_stop, .timeout = 300);

LOOP(status_sees_one_state, 0, 2)
{
    rounds = 0;
    big_array("/a", 100);
    big_array("/c", 100);
    scenario_commit(&t, "first");
    big_array("/b", ROWS + (uint64_t)_i * BRC_FOLD_ROWS); /* an odd or an even number of gaps */
    scenario_set_number(&t, "/a", 0, 5);
    open_other();
    count.between = flip;
    ck_assert_int_eq(changed_nodes(), 1);
    ck_assert_int_gt(rounds, 3); /* others had their turn */
    const int before = rounds;
    step_count_start(&count, t.repo->store->db);
    ck_assert_int_eq(scenario_clean(&t), 0);
    step_count_stop(&count);
    ck_assert_int_gt(rounds, before);
}

TEST(no_read_grows_with_the_rows)
{
    int64_t most[2];
    for (int i = 0; i < 2; i++) {
        big_array(i == 0 ? "/a" : "/b", i == 0 ? ROWS : 3 * ROWS);
        step_count_start(&count, t.repo->store->db);
        ck_assert_int_eq(scenario_clean(&t), 0);
        step_count_stop(&count);
        most[i] = count.transaction;
        scenario_commit(&t, "so many");
    }
    ck_assert_msg(most[1] < most[0] + most[0] / 10, "%lld and %lld steps", (long long)most[0],
                  (long long)most[1]);
}

/* ---- many writes over each other -------------------------------- */

enum { LAYER = 4500 }; /* chunks that no step moves at once */

static void bulk_write(int value, uint64_t from)
{
    brc_sel sel = BRC_SEL_INIT;
    int32_t v = value;
    OK(&t, brc_bulk_begin(t.session, &t.err));
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    sel_all(&sel, a);
    sel.start[0] = from;
    sel.count[0] = LAYER;
    OK(&t, brc_array_fill(a, &sel, &v, &t.err));
    brc_array_free(a);
    OK(&t, brc_bulk_end(t.session, 1, &t.err));
}

/* Each bulk write puts rows over those before. When there are too many they become fewer, and no
 * transaction is longer for it. */
TEST(bulk_writes_do_not_pile_up)
{
    int64_t before = 0;
    const uint64_t shape = LAYER + 100, chunk = 1;
    brc_array_free(scenario_array(&t, "/a", "int32", 1, &shape, &chunk, "-1", NULL));
    scenario_commit(&t, "an array");
    for (int i = 0; i <= BRC_DRAFT_STACK_MOST; i++) {
        if (i == BRC_DRAFT_STACK_MOST - 1 || i == BRC_DRAFT_STACK_MOST)
            step_count_start(&count, t.repo->store->db);
        bulk_write(i, (uint64_t)i);
        if (i == BRC_DRAFT_STACK_MOST - 1)
            before = count.transaction;
    }
    step_count_stop(&count);
    ck_assert_msg(count.transaction < 2 * before, "%lld and %lld steps", (long long)before,
                  (long long)count.transaction);
    ck_assert_int_gt(count.writes, 20);
    ck_assert_int_lt(scenario_ask(&t, "SELECT count(*) FROM draft_node"), 20);
    for (int i = 0; i < BRC_DRAFT_STACK_MOST; i++)
        ck_assert_int_eq(scenario_number(&t, t.session, "/a", (uint64_t)i), i);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", LAYER), BRC_DRAFT_STACK_MOST);
    scenario_whole(&t);
    scenario_commit(&t, "all of it");
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 1);
    scenario_whole(&t);
}

/* ---- copies -------------------------------- */

static void copy_counted(const char *from, const char *to)
{
    step_count_start(&count, t.repo->store->db);
    int rc = brc_node_move(t.session, from, to, BRC_NODE_COPY, &t.err);
    step_count_stop(&count);
    ck_assert_msg(rc == BRC_OK, "%s", t.err.message);
}

CASE("copy", .setup = long_start, .teardown = long_stop, .timeout = 300);

/* Chunk rows of a copy are written in transactions of their own, and nothing of these is left. */
TEST(a_copy_is_in_short_transactions)
{
    int64_t most[3];
    big_array("/a/x", ROWS);
    big_array("/b/x", ROWS);
    big_array("/c/x", 3 * ROWS);
    for (int i = 0; i < 3; i++) {
        const char from[] = {'/', (char)('a' + i), 0}, to[] = {'/', (char)('A' + i), 0};
        const char copy[] = {'/', (char)('A' + i), '/', 'x', 0};
        copy_counted(from, to);
        most[i] = count.transaction;
        ck_assert_int_gt(count.writes, 3);
        ck_assert_int_eq(scenario_number(&t, t.session, copy, ROWS - 1), 7);
        scenario_set_number(&t, copy, 1, i); /* of its own */
    }
    ck_assert_int_eq(scenario_number(&t, t.session, "/a/x", 1), 7);
    ck_assert_msg(most[2] < most[1] + most[1] / 10, "%lld and %lld steps", (long long)most[1],
                  (long long)most[2]);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft WHERE state=1"), 1);
    scenario_whole(&t);
    scenario_commit(&t, "copies");
    ck_assert_int_eq(scenario_number(&t, t.session, "/B/x", 1), 1);
    scenario_whole(&t);
}

/* The copy is of the array as it is at the end. */
TEST(a_copy_has_what_others_write_meanwhile)
{
    rounds = 0;
    big_array("/a", ROWS);
    big_array("/b", WRITTEN + 2);
    open_other();
    count.between = write_beside;
    copy_counted("/a", "/c");
    scenario_close(&other);
    ck_assert_int_gt(rounds, 5);
    int same = 0; /* what came after the last transaction began is in /a alone */
    while (same < rounds && scenario_number(&t, t.session, "/c", (uint64_t)same) == 1000 + same)
        same++;
    ck_assert_int_ge(same, rounds - 2);
    ck_assert_int_eq(scenario_number(&t, t.session, "/c", (uint64_t)rounds + 1), 7);
    check_beside();
    scenario_whole(&t);
}

/* One that fails leaves nothing that counts. */
TEST(a_copy_that_fails_drops_what_it_copied)
{
    big_array("/a", ROWS);
    scenario_numbers(&t, "/b", 3, 1, 0);
    FAILS(&t, BRC_EEXISTS, brc_node_move(t.session, "/a", "/b", BRC_NODE_COPY, &t.err));
    gaps_left = 12;
    count.between = interrupt_in_gap;
    step_count_start(&count, t.repo->store->db);
    FAILS(&t, BRC_EINTERRUPT, brc_node_move(t.session, "/a", "/c", BRC_NODE_COPY, &t.err));
    step_count_stop(&count);
    brc_interrupt(t.repo, 0);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft WHERE state=1"), 1);
    copy_counted("/a", "/c");
    ck_assert_int_eq(scenario_number(&t, t.session, "/c", ROWS - 1), 7);
    scenario_whole(&t);
}
