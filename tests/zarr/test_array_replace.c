/* Cutting a large array, and giving chunks another shape, are made of many transactions: what
 * another does meanwhile is neither made to wait nor lost, nor mixed with what comes out. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kit/hook_codec.h"
#include "../kit/scenario.h"

Suite *array_replace_suite(void);

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}"
#define CODECS LITTLE "," HOOK_CODEC "," ZSTD
#define SHARDS                                                                                   \
    "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[32],"                   \
    "\"codecs\":[" CODECS "],\"index_codecs\":[" LITTLE ",{\"name\":\"crc32c\"}]}}]"

/* More chunks than one transaction goes through; the new end cuts one. */
enum { CHUNK = 64, INNER = 32, LENGTH = 9000 * CHUNK + 7 };
enum { SHORT = 5000 * CHUNK + 5, IN_EDGE = SHORT - 2 };

static scenario first, second;
static brc_registry *reg;
static brc_array *array;
static int32_t numbers[LENGTH];
static int tries, is_uncommitted;

/* Even tests: committed chunks. Odd ones: uncommitted, some laid over others. */
static void replace_start(void)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    const uint64_t shape = LENGTH, chunk = CHUNK;
    reg = hook_registry(&first.err);
    ck_assert_ptr_nonnull(reg);
    scenario_folder(&first);
    opts.registry = reg;
    scenario_open(&first, &opts, BRC_OPEN_CREATE);
    for (int i = 0; i < LENGTH; i++)
        numbers[i] = i;
    array = scenario_array(&first, "/a", "int32", 1, &shape, &chunk, "-1", "[" CODECS "]");
    scenario_commit(&first, "empty");
    OK(&first, brc_array_write(array, NULL, numbers, sizeof(numbers), &first.err));
    memcpy(second.file, first.file, sizeof(second.file));
    opts.wait_ms = -1; /* it does not wait */
    scenario_open(&second, &opts, 0);
    tries = is_uncommitted = 0;
}

static void begin_as(int uncommitted)
{
    is_uncommitted = uncommitted;
    if (!uncommitted)
        scenario_commit(&first, "first");
    else
        scenario_set_number(&first, "/a", 40, 40); /* its row lies over the others */
}

static void replace_stop(void)
{
    hook_decode(NULL, NULL, 0);
    hook_encode(NULL, NULL, 0);
    brc_array_free(array);
    scenario_close(&second);
    scenario_stop(&first);
    brc_registry_free(reg);
}

/* ---- what the other does -------------------------------- */

static void others_set(uint64_t i)
{
    scenario_set_number(&second, "/a", i, 7);
}

static void far_away(void)
{
    others_set(5);
}

static void in_the_edge(void)
{
    others_set(IN_EDGE);
}

static void in_the_lost_part(void)
{
    others_set(LENGTH - 1);
}

static void an_attribute(void)
{
    OK(&second, brc_attrs_set(second.session, "/a", "unit", "\"K\"", &second.err));
}

static void a_commit(void)
{
    in_the_edge();
    scenario_commit(&second, "theirs");
}

static void a_collection(void)
{
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    brc_gc_report report = BRC_GC_REPORT_INIT;
    in_the_edge();
    OK(&second, brc_gc(second.repo, &opts, &report, &second.err));
}

static void the_array_gone(void)
{
    OK(&second, brc_node_remove(second.session, "/a", &second.err));
}

static const struct {
    void (*act)(void);
    int32_t at; /* the element that is 7 then */
} others[] = {
    {far_away, 5},       {in_the_edge, IN_EDGE},  {in_the_lost_part, LENGTH - 1},
    {an_attribute, -1},  {a_commit, IN_EDGE},     {a_collection, IN_EDGE},
    {the_array_gone, -1},
};
enum { OTHERS = sizeof(others) / sizeof(*others) };

static void act_once(void *ctx)
{
    tries++;
    others[*(int *)ctx].act();
}

/* ---- what comes out -------------------------------- */

static void check_elements(scenario *t, uint64_t length, int32_t seven)
{
    brc_array *a;
    OK(t, brc_array_open(&a, t->session, "/a", &t->err));
    ck_assert_uint_eq(brc_array_describe(a)->shape[0], length);
    int32_t *got = malloc((size_t)length * sizeof(*got));
    ck_assert_ptr_nonnull(got);
    OK(t, brc_array_read(a, NULL, got, (size_t)length * sizeof(*got), &t->err));
    for (int32_t i = 0; i < (int32_t)length; i++) /* an assertion of each would take seconds */
        if (got[i] != (i == seven ? 7 : i))
            ck_abort_msg("element %d is %d", i, got[i]);
    free(got);
    brc_array_free(a);
}

static uint64_t chunk_length(void)
{
    brc_array *a;
    OK(&first, brc_array_open(&a, first.session, "/a", &first.err));
    const uint64_t length = brc_array_describe(a)->chunk[0];
    brc_array_free(a);
    return length;
}

/* What was cut off does not come back. */
static void check_grows_empty(void)
{
    const uint64_t shape = LENGTH;
    int32_t last;
    brc_sel sel = BRC_SEL_INIT;
    OK(&first, brc_array_resize(array, &shape, &first.err));
    for (uint64_t i = SHORT; i < LENGTH; i += 11) {
        brc_sel_all(&sel, array);
        sel.start[0] = i;
        sel.count[0] = 1;
        OK(&first, brc_array_read(array, &sel, &last, sizeof(last), &first.err));
        ck_assert_int_eq(last, -1);
    }
}

static void check_drafts(void)
{
    char tree[64];
    ck_assert_int_eq(scenario_ask(&first, "SELECT count(*) FROM draft WHERE state=1 AND kind=2"),
                     0);
    scenario_tree(&first, first.session, "/", 1, tree, sizeof(tree));
    ck_assert_str_eq(tree, "/ /a* ");
    scenario_whole(&first);
}

static int32_t seven_within(int which, uint64_t length)
{
    return others[which].at < (int32_t)length ? others[which].at : -1;
}

/* ---- cutting -------------------------------- */

START_TEST(a_cut_lets_others_in)
{
    const uint64_t shape = SHORT;
    int which = _i % OTHERS;
    begin_as(_i / OTHERS);
    hook_decode(act_once, &which, 1);
    int rc = brc_array_resize(array, &shape, &first.err);
    ck_assert_int_eq(tries, 1);
    if (others[which].act == the_array_gone) {
        ck_assert_int_eq(rc, BRC_ENOTFOUND);
    } else {
        ck_assert_msg(rc == BRC_OK, "%s", first.err.message);
        check_elements(&first, SHORT, seven_within(which, SHORT));
        check_elements(&second, SHORT, seven_within(which, SHORT));
        check_drafts();
        check_grows_empty();
    }
    scenario_whole(&first);
}
END_TEST

/* A small one is prepared without the lock, too. */
START_TEST(a_small_cut_lets_others_in)
{
    const uint64_t before = 100, shape = 40;
    int which = 0;
    begin_as(_i);
    OK(&first, brc_array_resize(array, &before, &first.err));
    if (_i == 0)
        scenario_commit(&first, "shorter");
    hook_decode(act_once, &which, 1);
    OK(&first, brc_array_resize(array, &shape, &first.err));
    ck_assert_int_eq(tries, 1);
    check_elements(&first, 40, 5);
    check_drafts();
}
END_TEST

/* ---- chunks of another shape -------------------------------- */

START_TEST(a_rewrite_to_shards_lets_others_in)
{
    int which = _i % OTHERS;
    begin_as(_i / OTHERS);
    hook_decode(act_once, &which, 1);
    int rc = brc_array_set_codecs(array, SHARDS, 1, &first.err);
    ck_assert_int_eq(tries, 1);
    if (others[which].act == the_array_gone) {
        ck_assert_int_eq(rc, BRC_ENOTFOUND);
    } else {
        ck_assert_msg(rc == BRC_OK, "%s", first.err.message);
        check_elements(&first, LENGTH, seven_within(which, LENGTH));
        check_elements(&second, LENGTH, seven_within(which, LENGTH));
        ck_assert_uint_eq(chunk_length(), INNER);
        check_drafts();
    }
    scenario_whole(&first);
}
END_TEST

/* ---- in the end -------------------------------- */

static void write_if_possible(void *ctx)
{
    const int32_t value = 7;
    brc_array *a;
    brc_sel sel = BRC_SEL_INIT;
    (void)ctx;
    tries++;
    OK(&second, brc_array_open(&a, second.session, "/a", &second.err));
    OK(&second, brc_sel_parse(&sel, a, "[5:6]", &second.err));
    int rc = brc_array_fill(a, &sel, &value, &second.err);
    ck_assert_msg(rc == BRC_OK || rc == BRC_EBUSY, "%s", second.err.message);
    brc_array_free(a);
}

/* Somebody who never stops is locked out at last. */
START_TEST(a_busy_neighbour_does_not_keep_it_from_its_end)
{
    const uint64_t shape = SHORT;
    begin_as(_i % 2);
    hook_decode(write_if_possible, NULL, 1 << 20);
    if (_i < 2)
        OK(&first, brc_array_resize(array, &shape, &first.err));
    else
        OK(&first, brc_array_set_codecs(array, SHARDS, 1, &first.err));
    ck_assert_int_ge(tries, 3);
    hook_decode(NULL, NULL, 0);
    check_elements(&first, _i < 2 ? SHORT : LENGTH, 5);
    check_drafts();
}
END_TEST

START_TEST(within_a_transaction_it_is_a_part_of_that)
{
    const uint64_t shape = SHORT;
    begin_as(_i / 2 % 2);
    OK(&first, brc_begin(first.repo, &first.err));
    if (_i < 4)
        OK(&first, brc_array_resize(array, &shape, &first.err));
    else
        OK(&first, brc_array_set_codecs(array, SHARDS, 1, &first.err));
    check_elements(&first, _i < 4 ? SHORT : LENGTH, -1);
    OK(&first, brc_end(first.repo, _i % 2 ? BRC_END_KEEP : 0, &first.err));
    check_elements(&first, _i < 4 && _i % 2 ? SHORT : LENGTH, -1);
    ck_assert_uint_eq(chunk_length(), _i >= 4 && _i % 2 ? INNER : CHUNK);
    check_drafts();
}
END_TEST

static int change(int cuts)
{
    const uint64_t shape = SHORT;
    return cuts ? brc_array_resize(array, &shape, &first.err)
                : brc_array_set_codecs(array, SHARDS, 1, &first.err);
}

/* What a savepoint knows stays, however the array was cut or rewritten since. */
START_TEST(a_savepoint_goes_back_behind_it)
{
    begin_as(_i % 2);
    OK(&first, brc_savepoint(first.session, "before", &first.err));
    if (_i / 2 % 2)
        scenario_set_number(&first, "/a", 5, 7);
    OK(&first, change(_i < 4));
    check_elements(&first, _i < 4 ? SHORT : LENGTH, _i / 2 % 2 ? 5 : -1);
    scenario_whole(&first);
    OK(&first, brc_savepoint_rollback(first.session, "before", &first.err));
    OK(&first, brc_savepoint_release(first.session, "before", &first.err));
    check_elements(&first, LENGTH, -1);
    ck_assert_uint_eq(chunk_length(), CHUNK);
    check_drafts();
}
END_TEST

static void interrupt_it(void *ctx)
{
    (void)ctx;
    brc_interrupt(first.repo);
}

static void end_process(void *ctx)
{
    (void)ctx;
    (void)kill(getpid(), SIGKILL);
}

START_TEST(an_interrupted_one_has_changed_nothing)
{
    begin_as(_i % 2);
    hook_decode(interrupt_it, NULL, 1);
    ck_assert_int_eq(change(_i < 2), BRC_EINTERRUPT);
    brc_interrupt_clear(first.repo);
    check_elements(&first, LENGTH, -1);
    check_drafts();
    OK(&first, change(_i < 2));
    check_elements(&first, _i < 2 ? SHORT : LENGTH, -1);
    check_drafts();
}
END_TEST

/* The 8,500th of 9,000 chunks: transactions before it are in the file. */
static void end_late(void *ctx)
{
    if (++*(int *)ctx == 8500)
        (void)kill(getpid(), SIGKILL);
}

/* With a handle of its own. */
static void change_and_die(int cuts)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    int calls = 0;
    scenario other = {.err = BRC_ERROR_INIT};
    opts.registry = reg;
    memcpy(other.file, first.file, sizeof(other.file));
    scenario_open(&other, &opts, 0);
    OK(&other, brc_array_open(&array, other.session, "/a", &other.err));
    hook_decode(cuts ? end_process : end_late, &calls, 1 << 20);
    (void)!change(cuts);
    _exit(1);
}

static void die_in_change(int cuts)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        change_and_die(cuts);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Its number; 0: there is none. */
static int64_t left_draft(void)
{
    return scenario_ask(&first, "SELECT coalesce(max(id), 0) FROM draft"
                                " WHERE state=1 AND kind=2");
}

START_TEST(a_killed_one_has_changed_nothing)
{
    begin_as(_i % 2);
    die_in_change(_i < 2);
    check_elements(&second, LENGTH, -1);
    scenario_whole(&second);
    OK(&first, change(_i < 2));
    check_elements(&first, _i < 2 ? SHORT : LENGTH, -1);
    const int64_t left = left_draft();
    if (left != 0)
        OK(&first, brc_draft_drop(first.repo, left, &first.err));
    check_drafts();
}
END_TEST

/* The only one there is. */
static void check_is_unfinished(int64_t draft)
{
    brc_iter *it;
    const brc_draft *item;
    int n = 0;
    OK(&second, brc_drafts(&it, second.repo, &second.err));
    while (brc_drafts_next(it, &item, &second.err) > 0) {
        if (item->id != draft) {
            ck_assert_uint_eq(item->flags & BRC_DRAFT_REWRITING, 0);
            ck_assert_ptr_null(item->array);
            continue;
        }
        ck_assert_uint_eq(item->flags & (BRC_DRAFT_REWRITING | BRC_DRAFT_OWNED),
                          BRC_DRAFT_REWRITING | BRC_DRAFT_OWNED);
        ck_assert_int_eq(item->owner, BRC_OWNER_DEAD);
        ck_assert_str_eq(item->array, "/a");
        n++;
    }
    brc_iter_free(it);
    ck_assert_int_eq(n, 1);
}

/* Its draft has a node of which nobody knows: it is not adopted, and nothing is lost with it. */
START_TEST(what_a_killed_one_left_is_dropped_and_not_adopted)
{
    begin_as(_i % 2);
    die_in_change(_i < 2);
    const int64_t left = left_draft();
    ck_assert_int_ne(left, 0);
    check_is_unfinished(left);
    for (int within = 0; within < 2; within++) {
        if (within)
            OK(&second, brc_begin(second.repo, &second.err));
        FAILS(&second, BRC_EINVAL, brc_draft_adopt(second.repo, left, &second.err));
        ck_assert_ptr_nonnull(strstr(second.err.message, "unfinished rewrite of /a"));
        ck_assert_ptr_nonnull(strstr(second.err.message, "drop the draft"));
        if (within)
            OK(&second, brc_end(second.repo, 0, &second.err));
    }
    check_is_unfinished(left);
    check_elements(&second, LENGTH, -1);
    scenario_whole(&second);
    OK(&second, brc_draft_drop(second.repo, left, &second.err));
    check_elements(&second, LENGTH, -1);
    check_drafts();
    OK(&first, change(_i < 2));
    check_elements(&first, _i < 2 ? SHORT : LENGTH, -1);
    check_drafts();
}
END_TEST

/* Whoever looks after the dead drops it, too. */
START_TEST(a_collection_drops_what_a_killed_one_left)
{
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    brc_gc_report report = BRC_GC_REPORT_INIT;
    begin_as(_i);
    die_in_change(_i);
    ck_assert_int_ne(left_draft(), 0);
    OK(&second, brc_gc(second.repo, &opts, &report, &second.err));
    check_drafts();
    check_elements(&first, LENGTH, -1);
}
END_TEST

Suite *array_replace_suite(void)
{
    Suite *suite = suite_create("array_replace");
    TCase *tc = tcase_create("replace");
    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, replace_start, replace_stop);
    tcase_add_loop_test(tc, a_cut_lets_others_in, 0, 2 * OTHERS);
    tcase_add_loop_test(tc, a_small_cut_lets_others_in, 0, 2);
    tcase_add_loop_test(tc, a_rewrite_to_shards_lets_others_in, 0, 2 * OTHERS);
    tcase_add_loop_test(tc, a_busy_neighbour_does_not_keep_it_from_its_end, 0, 4);
    tcase_add_loop_test(tc, within_a_transaction_it_is_a_part_of_that, 0, 8);
    tcase_add_loop_test(tc, a_savepoint_goes_back_behind_it, 0, 8);
    tcase_add_loop_test(tc, an_interrupted_one_has_changed_nothing, 0, 4);
    tcase_add_loop_test(tc, a_killed_one_has_changed_nothing, 0, 4);
    tcase_add_loop_test(tc, what_a_killed_one_left_is_dropped_and_not_adopted, 0, 4);
    tcase_add_loop_test(tc, a_collection_drops_what_a_killed_one_left, 0, 2);
    suite_add_tcase(suite, tc);
    return suite;
}
