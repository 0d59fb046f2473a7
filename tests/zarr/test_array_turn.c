/* Growing, appending and restoring a slice decode and encode without the lock: what another does
 * meanwhile is neither made to wait nor lost, nor mixed with what comes out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kit/hooked_kit.h"
#include "../kit/ios.h"
#include "../kit/suite.h"

TEST_SUITE(array_turn);

/* The end cuts the last chunk. What is large takes more than 16 MiB, decoded and encoded. */
enum { CHUNK = 4096, LENGTH = 10 * CHUNK + 1000, MORE = 300, LARGE = 1100 * CHUNK };

static hooked_kit k;
static int32_t numbers[LARGE];
static int tries;

static void turn_start(void)
{
    hooked_start(&k, LENGTH, CHUNK);
    for (int i = 0; i < LARGE; i++)
        numbers[i] = i;
    OK(&k.first, brc_array_write(k.array, NULL, numbers, LENGTH * sizeof(int32_t), &k.first.err));
    scenario_commit(&k.first, "first");
    tries = 0;
}

static void turn_stop(void)
{
    hooked_stop(&k);
}

/* ---- what the other does -------------------------------- */

static void others_fill(const char *text, int32_t value)
{
    scenario_fill(&k.second, k.second.session, "/a", text, &value);
}

static void far_away(void)
{
    others_fill("[5:6]", 7);
}

static void in_the_last_chunk(void)
{
    others_fill("[41900:41901]", 7);
}

static void an_attribute(void)
{
    OK(&k.second, brc_attrs_set(k.second.session, "/a", "unit", "\"K\"", &k.second.err));
}

static void an_append(void)
{
    const int32_t values[2] = {8, 9};
    brc_array *a = scenario_array_at(&k.second, k.second.session, "/a");
    OK(&k.second, brc_array_append(a, 0, 2, values, sizeof(values), &k.second.err));
    brc_array_free(a);
}

static void a_commit(void)
{
    in_the_last_chunk();
    scenario_commit(&k.second, "theirs");
}

static void the_array_gone(void)
{
    OK(&k.second, brc_node_remove(k.second.session, "/a", &k.second.err));
}

static const struct {
    void (*act)(void);
    uint64_t longer;   /* elements that it has appended                  */
    int32_t at;        /* element that is 7 then                         */
    int gone;
} others[] = {
    {far_away, 0, 5, 0},     {in_the_last_chunk, 0, 41900, 0}, {an_attribute, 0, -1, 0},
    {an_append, 2, -1, 0},   {a_commit, 0, 41900, 0},          {the_array_gone, 0, -1, 1},
};
enum { OTHERS = sizeof(others) / sizeof(*others) };

static void act_once(void *ctx)
{
    tries++;
    others[*(int *)ctx].act();
}

/* ---- what comes out -------------------------------- */

/* Check's own assertions take seconds where there are so many. */
static void element_is(const int32_t *got, int i, int want)
{
    if (got[i] != want)
        ck_abort_msg("element %d is %d", i, got[i]);
}

static void check_from_start(int which, const int32_t *got)
{
    for (int i = 0; i < LENGTH; i++)
        element_is(got, i, i == others[which].at ? 7 : i);
    if (others[which].longer > 0) {
        ck_assert_int_eq(got[LENGTH], 8);
        ck_assert_int_eq(got[LENGTH + 1], 9);
    }
}

static int32_t *read_all(uint64_t *n)
{
    brc_array *a = scenario_array_at(&k.first, k.first.session, "/a");
    *n = brc_array_describe(a)->shape[0];
    int32_t *got = malloc((size_t)*n * sizeof(*got));
    ck_assert_ptr_nonnull(got);
    OK(&k.first, brc_array_read(a, NULL, got, (size_t)*n * sizeof(*got), &k.first.err));
    brc_array_free(a);
    return got;
}

static int64_t drafts(void)
{
    return scenario_ask(&k.first, "SELECT count(*) FROM draft WHERE state=1 AND kind=2");
}

static void check_end(int rc, int which, int did)
{
    ck_assert_int_eq(did, 1);
    if (others[which].gone)
        ck_assert_msg(rc == BRC_ENOTFOUND || rc == BRC_ECONFLICT, "%d: %s", rc,
                      k.first.err.message);
    else
        ck_assert_msg(rc == BRC_OK, "%d: %s", rc, k.first.err.message);
}

/* ---- growing -------------------------------- */

static const uint64_t added[] = {MORE, LARGE - LENGTH};

CASE("turn", .setup = turn_start, .teardown = turn_stop, .timeout = 120);

/* Small, and so large that it is a bulk write; while the chunk that the end cuts is decoded, and
 * while new ones are encoded. */
LOOP(an_append_lets_others_in, 0, 4 * OTHERS)
{
    int which = _i % OTHERS, large = _i / OTHERS % 2, encodes = _i / OTHERS / 2;
    uint64_t n;
    (encodes ? hook_encode : hook_decode)(act_once, &which, 1);
    int rc = brc_array_append(k.array, 0, added[large], numbers, added[large] * sizeof(int32_t),
                              &k.first.err);
    check_end(rc, which, tries);
    if (rc == BRC_OK) {
        int32_t *got = read_all(&n);
        ck_assert_uint_eq(n, LENGTH + others[which].longer + added[large]);
        check_from_start(which, got);
        ck_assert_mem_eq(got + n - added[large], numbers, added[large] * sizeof(int32_t));
        free(got);
    }
    ck_assert_int_eq(drafts(), 0);
    scenario_whole(&k.first);
}

LOOP(growing_lets_others_in, 0, OTHERS)
{
    int which = _i;
    uint64_t n;
    const uint64_t shape = LENGTH + 10000;
    hook_decode(act_once, &which, 1);
    int rc = brc_array_resize(k.array, &shape, &k.first.err);
    check_end(rc, which, tries);
    if (rc == BRC_OK) {
        int32_t *got = read_all(&n);
        ck_assert_uint_eq(n, shape);
        check_from_start(which, got);
        for (uint64_t i = LENGTH + others[which].longer; i < n; i++)
            element_is(got, (int)i, -1);
        free(got);
    }
    scenario_whole(&k.first);
}

static void set_length_by_key(int length)
{
    char text[600];
    const int n = snprintf(text, sizeof(text),
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[%d],\"data_type\":\"int32\","
        "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4096]}},"
        "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":-1,\"codecs\":"
        "[" HOOKED_CODECS "]}", length);
    ck_assert(n > 0 && n < (int)sizeof(text));
    OK(&k.first, brc_key_set(k.first.session, "a/zarr.json", text, (size_t)n, 0, &k.first.err));
}

/* Elements past the end, where a document that was set by key left them, do not become data again,
 * however the array becomes longer. */
LOOP(an_append_clears_what_was_past_the_end, 0, 2)
{
    const uint64_t shape = LENGTH;
    uint64_t n;
    set_length_by_key(41000);
    OK(&k.first, brc_array_append(k.array, 0, 1, numbers, sizeof(int32_t), &k.first.err));
    if (_i == 0)
        OK(&k.first, brc_array_resize(k.array, &shape, &k.first.err));
    else
        set_length_by_key(LENGTH);
    int32_t *got = read_all(&n);
    ck_assert_uint_eq(n, LENGTH);
    for (int i = 0; i < LENGTH; i++)
        element_is(got, i, i < 41000 ? i : i == 41000 ? 0 : -1);
    free(got);
}

static void pass_on(void *ctx)
{
    (void)ctx;
}

enum { DEEP = 64 };

/* Each chunk of these columns has another number in it. */
static void fill_columns(brc_array *a, uint64_t row, uint64_t columns, int32_t number)
{
    for (uint64_t c = 0; c < columns; c++) {
        brc_sel sel = BRC_SEL_INIT;
        const int32_t value = number + (int32_t)c;
        sel_all(&sel, a);
        sel.start[0] = row;
        sel.start[1] = c;
        sel.count[0] = 2;
        sel.count[1] = 1;
        OK(&k.first, brc_array_fill(a, &sel, &value, &k.first.err));
    }
}

/* In an edge of very many places what is stored is found among all chunks; those that the new end
 * does not cut are not touched. */
TEST(of_a_wide_array_only_the_chunks_of_the_edge_are_decoded)
{
    enum { ABOVE = 40, IN_EDGE = 10 };
    const uint64_t shape[3] = {4, 70000, DEEP}, chunk[3] = {2, 1, DEEP}, less[3] = {3, 70000, DEEP};
    brc_array *a = scenario_array(&k.first, "/wide", "int32", 3, shape, chunk, "-1",
                                  "[" HOOKED_CODECS "]");
    fill_columns(a, 0, ABOVE, 100);
    fill_columns(a, 2, IN_EDGE, 1);
    hook_decode(pass_on, NULL, 1 << 20);
    OK(&k.first, brc_array_resize(a, less, &k.first.err));
    ck_assert_int_ge(hook_calls(), IN_EDGE);
    ck_assert_int_le(hook_calls(), 2 * IN_EDGE); /* what is stored instead is decoded, too */
    brc_array_free(a);
    scenario_whole(&k.first);
}

/* ---- as it was -------------------------------- */

/* The restored slice covers the chunks at its two ends only in part, so these keep their other
 * elements. */
LOOP(restoring_a_slice_lets_others_in, 0, OTHERS)
{
    brc_sel sel = BRC_SEL_INIT;
    int which = _i;
    uint64_t n;
    const int32_t three = 3;
    OK(&k.first, brc_array_fill(k.array, NULL, &three, &k.first.err));
    scenario_commit(&k.first, "threes");
    OK(&k.first, brc_sel_parse(&sel, k.array, "[100:41950]", &k.first.err));
    hook_decode(act_once, &which, 1);
    int rc = brc_array_restore(k.array, &sel, "main~1", &k.first.err);
    check_end(rc, which, tries);
    if (rc == BRC_OK) {
        int32_t *got = read_all(&n);
        for (int i = 0; i < LENGTH; i++)
            element_is(got, i, i >= 100 && i < 41950 ? i : i == others[which].at ? 7 : 3);
        ck_assert_uint_eq(n, LENGTH + others[which].longer);
        free(got);
    }
    scenario_whole(&k.first);
}

/* ---- documents that only the draft has -------------------------------- */

static void check_described(scenario *t, uint64_t length)
{
    brc_array *a = scenario_array_at(t, t->session, "/new");
    ck_assert_uint_eq(brc_array_describe(a)->shape[0], length);
    brc_array_free(a);
}

/* An array that was not committed grows in a bulk write, or gets an attribute: until that is
 * adopted, and where it is dropped, the array is what it was, for everybody. */
LOOP(a_bulk_write_leaves_the_document_alone, 0, 4)
{
    const uint64_t shape = 10, chunk = 4;
    const int32_t more[3] = {1, 2, 3};
    const uint32_t keeps = _i % 2 ? BRC_END_KEEP : 0;
    brc_array *a = scenario_array(&k.first, "/new", "int32", 1, &shape, &chunk, "-1", NULL);
    OK(&k.first, brc_bulk_begin(k.first.session, &k.first.err));
    if (_i < 2)
        OK(&k.first, brc_array_append(a, 0, 3, more, sizeof(more), &k.first.err));
    else
        OK(&k.first, brc_attrs_set(k.first.session, "/new", "unit", "1", &k.first.err));
    check_described(&k.second, 10);
    OK(&k.first, brc_bulk_end(k.first.session, keeps, &k.first.err));
    brc_array_free(a);
    check_described(&k.first, _i == 1 ? 13 : 10);
    check_described(&k.second, _i == 1 ? 13 : 10);
    scenario_whole(&k.first);
}

/* An append by itself would be made anew where they meet; a bulk write is not, and has both. */
TEST(others_write_into_an_array_that_a_bulk_write_grows)
{
    uint64_t n;
    OK(&k.first, brc_bulk_begin(k.first.session, &k.first.err));
    OK(&k.first, brc_array_append(k.array, 0, MORE, numbers, MORE * sizeof(int32_t),
                                  &k.first.err));
    far_away();
    OK(&k.first, brc_bulk_end(k.first.session, BRC_END_KEEP, &k.first.err));
    int32_t *got = read_all(&n);
    ck_assert_uint_eq(n, LENGTH + MORE);
    check_from_start(0, got);
    ck_assert_mem_eq(got + LENGTH, numbers, MORE * sizeof(int32_t));
    free(got);
    ck_assert_int_eq(drafts(), 0);
    scenario_whole(&k.first);
}

/* One that is kept because of others' changes can be opened, though the document that it began with
 * is gone from where it was. */
TEST(a_bulk_write_that_is_kept_can_be_opened)
{
    const uint64_t shape = 10, chunk = 4;
    const int32_t value = 5;
    brc_session *kept;
    brc_array *a = scenario_array(&k.first, "/new", "int32", 1, &shape, &chunk, "-1", NULL);
    OK(&k.first, brc_bulk_begin(k.first.session, &k.first.err));
    OK(&k.first, brc_array_fill(a, NULL, &value, &k.first.err));
    OK(&k.second, brc_session_discard(k.second.session, &k.second.err));
    FAILS(&k.first, BRC_ECONFLICT, brc_bulk_end(k.first.session, BRC_END_KEEP, &k.first.err));
    brc_array_free(a);
    const int64_t id = scenario_ask(&k.first, "SELECT id FROM draft WHERE state=1 AND kind=2");
    OK(&k.first, scenario_draft_open(&kept, k.first.repo, id, &k.first.err));
    ck_assert_int_eq(scenario_number(&k.first, kept, "/new", 9), 5);
    brc_session_free(kept);
    scenario_whole(&k.first);
}
