/* Cutting a large array, and giving chunks another shape, are made of many transactions: what
 * another does meanwhile is neither made to wait nor lost, nor mixed with what comes out. */
#include "../kit/ios.h"
#include "../kit/replace_kit.h"
#include "../kit/suite.h"

TEST_SUITE(array_replace);

enum { IN_EDGE = SHORT - 2 };

static hooked_kit k;
static int tries;

static void others_setup(void)
{
    replace_start(&k);
    tries = 0;
}

static void others_teardown(void)
{
    hooked_stop(&k);
}

/* ---- what the other does -------------------------------- */

static void others_set(uint64_t i)
{
    scenario_set_number(&k.second, "/a", i, 7);
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
    OK(&k.second, brc_attrs_set(k.second.session, "/a", "unit", "\"K\"", &k.second.err));
}

static void a_commit(void)
{
    in_the_edge();
    scenario_commit(&k.second, "theirs");
}

static void a_collection(void)
{
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    brc_gc_report report = BRC_GC_REPORT_INIT;
    in_the_edge();
    OK(&k.second, brc_gc(k.second.repo, &opts, &report, &k.second.err));
}

static void the_array_gone(void)
{
    OK(&k.second, brc_node_remove(k.second.session, "/a", &k.second.err));
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

/* The part that was cut off does not come back. */
static void check_grows_empty(void)
{
    const uint64_t shape = LENGTH;
    int32_t last;
    brc_sel sel = BRC_SEL_INIT;
    OK(&k.first, brc_array_resize(k.array, &shape, &k.first.err));
    for (uint64_t i = SHORT; i < LENGTH; i += 11) {
        sel_all(&sel, k.array);
        sel.start[0] = i;
        sel.count[0] = 1;
        OK(&k.first, brc_array_read(k.array, &sel, &last, sizeof(last), &k.first.err));
        ck_assert_int_eq(last, -1);
    }
}

static int32_t seven_within(int which, uint64_t length)
{
    return others[which].at < (int32_t)length ? others[which].at : -1;
}

CASE("replace", .setup = others_setup, .teardown = others_teardown,
     .setup_once = replace_make_base, .teardown_once = replace_drop_base,
     .timeout = 120);

/* ---- cutting -------------------------------- */

LOOP(a_cut_lets_others_in, 0, 2 * OTHERS)
{
    const uint64_t shape = SHORT;
    int which = _i % OTHERS;
    replace_begin_as(&k, _i / OTHERS);
    hook_decode(act_once, &which, 1);
    int rc = brc_array_resize(k.array, &shape, &k.first.err);
    ck_assert_int_eq(tries, 1);
    if (others[which].act == the_array_gone) {
        ck_assert_int_eq(rc, BRC_ENOTFOUND);
    } else {
        ck_assert_msg(rc == BRC_OK, "%s", k.first.err.message);
        replace_check_elements(&k.first, SHORT, seven_within(which, SHORT));
        replace_check_elements(&k.second, SHORT, seven_within(which, SHORT));
        replace_check_drafts(&k);
        check_grows_empty();
    }
    scenario_whole(&k.first);
}

/* A small one is prepared without the lock, too. */
LOOP(a_small_cut_lets_others_in, 0, 2)
{
    const uint64_t before = 100, shape = 40;
    int which = 0;
    replace_begin_as(&k, _i);
    OK(&k.first, brc_array_resize(k.array, &before, &k.first.err));
    if (_i == 0)
        scenario_commit(&k.first, "shorter");
    hook_decode(act_once, &which, 1);
    OK(&k.first, brc_array_resize(k.array, &shape, &k.first.err));
    ck_assert_int_eq(tries, 1);
    replace_check_elements(&k.first, 40, 5);
    replace_check_drafts(&k);
}

/* ---- chunks of another shape -------------------------------- */

LOOP(a_rewrite_to_shards_lets_others_in, 0, 2 * OTHERS)
{
    int which = _i % OTHERS;
    replace_begin_as(&k, _i / OTHERS);
    hook_decode(act_once, &which, 1);
    int rc = brc_array_set_codecs(k.array, SHARDS, 1, &k.first.err);
    ck_assert_int_eq(tries, 1);
    if (others[which].act == the_array_gone) {
        ck_assert_int_eq(rc, BRC_ENOTFOUND);
        scenario_whole(&k.first);
    } else {
        ck_assert_msg(rc == BRC_OK, "%s", k.first.err.message);
        replace_check_elements(&k.first, LENGTH, seven_within(which, LENGTH));
        replace_check_elements(&k.second, LENGTH, seven_within(which, LENGTH));
        ck_assert_uint_eq(replace_chunk_length(&k), INNER);
        replace_check_drafts(&k); /* and the file is whole */
    }
}

/* ---- other codecs, the same chunks -------------------------------- */

/* New to the file, so that they have no number yet. */
#define BETTER                                                                                   \
    "[" LITTLE "," HOOK_CODEC                                                                    \
    ",{\"name\":\"zstd\",\"configuration\":{\"level\":5,\"checksum\":false}}]"

/* Also while the first of them is decoded or encoded. */
LOOP(a_rewrite_in_other_codecs_lets_others_in, 0, 2 * OTHERS)
{
    int which = _i % OTHERS;
    replace_begin_as(&k, _i / OTHERS);
    (_i < OTHERS ? hook_decode : hook_encode)(act_once, &which, 1);
    int rc = brc_array_set_codecs(k.array, BETTER, 1, &k.first.err);
    ck_assert_int_eq(tries, 1);
    if (others[which].act == the_array_gone) {
        ck_assert_int_eq(rc, BRC_ENOTFOUND);
        scenario_whole(&k.first);
    } else {
        ck_assert_msg(rc == BRC_OK, "%s", k.first.err.message);
        replace_check_elements(&k.first, LENGTH, seven_within(which, LENGTH));
        replace_check_elements(&k.second, LENGTH, seven_within(which, LENGTH));
        replace_check_drafts(&k); /* and the file is whole */
    }
}

static void stop_after(void *ctx)
{
    act_once(ctx);
    brc_interrupt(k.first.repo, 1);
}

/* A small array is rewritten in one transaction; a rewrite that is stopped leaves nothing in the
 * file, neither an encoding's number nor an object. */
LOOP(a_small_one_lets_others_in_and_is_one_transaction, 0, 4)
{
    const uint64_t shape = 100;
    int which = 0;
    replace_begin_as(&k, _i % 2);
    OK(&k.first, brc_array_resize(k.array, &shape, &k.first.err));
    const int64_t objects = scenario_ask(&k.first, "SELECT count(*) FROM object"),
                  encodings = scenario_ask(&k.first, "SELECT count(*) FROM encoding");
    hook_encode(_i < 2 ? act_once : stop_after, &which, 1);
    int rc = brc_array_set_codecs(k.array, BETTER, 1, &k.first.err);
    ck_assert_int_eq(tries, 1);
    ck_assert_int_eq(rc, _i < 2 ? BRC_OK : BRC_EINTERRUPT);
    brc_interrupt(k.first.repo, 0);
    ck_assert_int_eq(scenario_ask(&k.first, "SELECT count(*) FROM encoding"),
                     encodings + (_i < 2));
    if (_i >= 2) /* theirs alone */
        ck_assert_int_le(scenario_ask(&k.first, "SELECT count(*) FROM object"), objects + 1);
    replace_check_elements(&k.first, shape, 5);
    replace_check_drafts(&k);
}

/* ---- in the end -------------------------------- */

/* Writes when the first of so many chunks is decoded: a rewrite decodes all of them each time. */
static void write_if_possible(void *ctx)
{
    const int32_t value = 7;
    brc_sel sel = BRC_SEL_INIT;
    if (tries++ % *(int *)ctx > 0)
        return;
    brc_array *a = scenario_array_at(&k.second, k.second.session, "/a");
    OK(&k.second, brc_sel_parse(&sel, a, "[5:6]", &k.second.err));
    int rc = brc_array_fill(a, &sel, &value, &k.second.err);
    ck_assert_msg(rc == BRC_OK || rc == BRC_EBUSY, "%s", k.second.err.message);
    brc_array_free(a);
}

/* Somebody who never stops is locked out at last. */
LOOP(a_busy_neighbour_does_not_keep_it_from_its_end, 0, 4)
{
    const uint64_t shape = SHORT;
    int each = _i < 2 ? 1 : 64;
    replace_begin_as(&k, _i % 2);
    hook_decode(write_if_possible, &each, 1 << 20);
    if (_i < 2)
        OK(&k.first, brc_array_resize(k.array, &shape, &k.first.err));
    else
        OK(&k.first, brc_array_set_codecs(k.array, SHARDS, 1, &k.first.err));
    ck_assert_int_ge(tries, 2 * each + 1); /* it wrote three times */
    hook_decode(NULL, NULL, 0);
    replace_check_elements(&k.first, _i < 2 ? SHORT : LENGTH, 5);
    replace_check_drafts(&k);
}

LOOP(within_a_transaction_it_is_a_part_of_that, 0, 8)
{
    const uint64_t shape = SHORT;
    replace_begin_as(&k, _i / 2 % 2);
    OK(&k.first, brc_begin(k.first.repo, &k.first.err));
    if (_i < 4)
        OK(&k.first, brc_array_resize(k.array, &shape, &k.first.err));
    else
        OK(&k.first, brc_array_set_codecs(k.array, SHARDS, 1, &k.first.err));
    replace_check_elements(&k.first, _i < 4 ? SHORT : LENGTH, -1);
    OK(&k.first, brc_end(k.first.repo, _i % 2 ? BRC_END_KEEP : 0, &k.first.err));
    replace_check_elements(&k.first, _i < 4 && _i % 2 ? SHORT : LENGTH, -1);
    ck_assert_uint_eq(replace_chunk_length(&k), _i >= 4 && _i % 2 ? INNER : CHUNK);
    replace_check_drafts(&k);
}

/* A savepoint's state stays, however the array was cut or rewritten since. */
LOOP(a_savepoint_goes_back_behind_it, 0, 8)
{
    replace_begin_as(&k, _i % 2);
    OK(&k.first, brc_savepoint(k.first.session, BRC_SAVEPOINT_SET, "before", &k.first.err));
    if (_i / 2 % 2)
        scenario_set_number(&k.first, "/a", 5, 7);
    OK(&k.first, replace_change(&k, _i < 4));
    replace_check_elements(&k.first, _i < 4 ? SHORT : LENGTH, _i / 2 % 2 ? 5 : -1);
    scenario_whole(&k.first);
    OK(&k.first, brc_savepoint(k.first.session, BRC_SAVEPOINT_ROLLBACK, "before", &k.first.err));
    OK(&k.first, brc_savepoint(k.first.session, BRC_SAVEPOINT_RELEASE, "before", &k.first.err));
    replace_check_elements(&k.first, LENGTH, -1);
    ck_assert_uint_eq(replace_chunk_length(&k), CHUNK);
    replace_check_drafts(&k);
}
