/* Merging with BRC_MERGE_CONCAT: what both sides have appended comes one after the other. */
#include <stdlib.h>
#include <string.h>

#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(merge_concat);

SCENARIO_FIXTURE(t)

static void commit_base(void)
{
    scenario_commit(&t, "base");
    OK(&t, brc_ref_create(t.repo, "theirs", NULL, NULL, 0, &t.err));
}

static int merge_theirs(uint32_t flags, uint64_t *conflicts)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result result = BRC_MERGE_RESULT_INIT;
    scenario_be_on(&t, "main");
    opts.flags = flags;
    OK(&t, brc_merge(&result, NULL, t.repo, "theirs", &opts, &t.err));
    *conflicts = result.conflicts;
    return result.result;
}

static void must_merge(void)
{
    uint64_t conflicts;
    ck_assert_int_eq(merge_theirs(BRC_MERGE_CONCAT, &conflicts), BRC_MERGE_MERGED);
}

static int64_t drafts(void)
{
    return scenario_ask(&t, "SELECT count(*) FROM draft WHERE state<>3");
}

/* ---- one axis -------------------------------- */

/* Appends first, first + 1 ... until the array has `length` elements. */
static void append_to(const char *path, uint64_t length, int32_t first)
{
    brc_array *a = scenario_array_at(&t, t.session, path);
    const uint64_t was = brc_array_describe(a)->shape[0];
    OK(&t, brc_array_resize(a, &length, &t.err));
    brc_array_free(a);
    for (uint64_t i = was; i < length; i++)
        scenario_set_number(&t, path, i, first + (int32_t)(i - was));
}

static void check_numbers(const char *path, const int32_t *wanted, uint64_t n)
{
    brc_array *a = scenario_array_at(&t, t.session, path);
    ck_assert_uint_eq(brc_array_describe(a)->shape[0], n);
    brc_array_free(a);
    for (uint64_t i = 0; i < n; i++)
        ck_assert_int_eq(scenario_number(&t, t.session, path, i), wanted[i]);
}

/* base 1 2 3, ours 10 11, theirs 20 21 22, and one element of the base each */
static void append_on_both_sides(const char *ours_path, uint64_t chunk)
{
    scenario_numbers(&t, "/a", 3, chunk, 1);
    scenario_numbers(&t, "/b", 3, chunk, 1);
    commit_base();
    append_to("/a", 5, 10);
    scenario_set_number(&t, "/a", 0, 7);
    if (strcmp(ours_path, "/a") != 0)
        OK(&t, brc_node_move(t.session, "/a", ours_path, 0, &t.err));
    scenario_commit(&t, "ours");
    scenario_be_on(&t, "theirs");
    append_to("/a", 6, 20);
    scenario_set_number(&t, "/a", 2, 9);
    OK(&t, brc_attrs_set(t.session, "/a", "by", "\"them\"", &t.err));
    scenario_commit(&t, "theirs");
}

static const int32_t joined[] = {7, 2, 9, 10, 11, 20, 21, 22};

CASE("concat", .setup = t_start, .teardown = t_stop);

LOOP(c1_ours_comes_first, 1, 9)
{
    brc_buf by = BRC_BUF_INIT;
    append_on_both_sides("/a", (uint64_t)_i);
    must_merge();
    check_numbers("/a", joined, 8);
    OK(&t, brc_attrs_get(&by, t.session, "/a", "by", &t.err));
    ck_assert_uint_eq(by.len, 6);
    ck_assert_mem_eq(by.data, "\"them\"", by.len);
    brc_buf_dispose(&by);
    ck_assert_int_eq(drafts(), 0);
    ck_assert(scenario_clean(&t));
}

TEST(c2_it_is_asked_for)
{
    uint64_t conflicts;
    append_on_both_sides("/a", 2);
    ck_assert_int_eq(merge_theirs(0, &conflicts), BRC_MERGE_CONFLICT);
    ck_assert_uint_ge(conflicts, 1);
    ck_assert_int_eq(merge_theirs(BRC_MERGE_CONCAT | BRC_MERGE_DRY_RUN, &conflicts),
                     BRC_MERGE_MERGED);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 7);
    ck_assert_int_eq(drafts(), 0);
}

TEST(c3_an_array_that_ours_moved)
{
    append_on_both_sides("/elsewhere", 2);
    must_merge();
    check_numbers("/elsewhere", joined, 8);
}

TEST(c4_conflicts_elsewhere_stay)
{
    uint64_t conflicts;
    append_on_both_sides("/a", 2);
    scenario_set_number(&t, "/b", 0, 5);
    scenario_commit(&t, "theirs too");
    scenario_be_on(&t, "main");
    scenario_set_number(&t, "/b", 0, 6);
    brc_oid tip = scenario_commit(&t, "ours too"), now;
    ck_assert_int_eq(merge_theirs(BRC_MERGE_CONCAT, &conflicts), BRC_MERGE_CONFLICT);
    ck_assert_uint_eq(conflicts, 1);
    OK(&t, brc_resolve(&now, t.repo, "main", &t.err));
    ck_assert_mem_eq(&now, &tip, sizeof(now));
    ck_assert_int_eq(merge_theirs(BRC_MERGE_CONCAT | BRC_MERGE_OURS, &conflicts),
                     BRC_MERGE_MERGED);
    check_numbers("/a", joined, 8);
    ck_assert_int_eq(scenario_number(&t, t.session, "/b", 0), 6);
}

/* An element of the base that both changed is in conflict all the same. */
TEST(c5_the_base_is_merged_as_ever)
{
    uint64_t conflicts;
    append_on_both_sides("/a", 2);
    scenario_set_number(&t, "/a", 0, 8);
    scenario_commit(&t, "theirs too");
    ck_assert_int_eq(merge_theirs(BRC_MERGE_CONCAT, &conflicts), BRC_MERGE_CONFLICT);
    ck_assert_uint_eq(conflicts, 1);
}

TEST(c6_equal_growth_is_not_equal_data)
{
    static const int32_t wanted[] = {1, 2, 10, 11, 20, 21};
    scenario_numbers(&t, "/a", 2, 2, 1);
    commit_base();
    append_to("/a", 4, 10);
    scenario_commit(&t, "ours");
    scenario_be_on(&t, "theirs");
    append_to("/a", 4, 20);
    scenario_commit(&t, "theirs");
    must_merge();
    check_numbers("/a", wanted, 6);
}

TEST(c7_the_same_on_both_sides_is_there_once)
{
    static const int32_t wanted[] = {1, 2, 10, 11};
    scenario_numbers(&t, "/a", 2, 2, 1);
    commit_base();
    append_to("/a", 4, 10);
    scenario_commit(&t, "ours");
    scenario_be_on(&t, "theirs");
    append_to("/a", 4, 10);
    OK(&t, brc_attrs_set(t.session, "/a", "k", "1", &t.err));
    scenario_commit(&t, "theirs");
    must_merge();
    check_numbers("/a", wanted, 4);
}

/* Two axes that changed, or one that was cut, are not an append. */
LOOP(c8_other_shapes_conflict, 0, 2)
{
    const uint64_t shape[] = {2, 2}, ours[] = {3, 2}, theirs[2][2] = {{2, 3}, {3, 3}};
    uint64_t conflicts;
    brc_array *a = scenario_array(&t, "/a", "int32", 2, shape, shape, NULL, NULL);
    brc_array_free(a);
    commit_base();
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    OK(&t, brc_array_resize(a, ours, &t.err));
    brc_array_free(a);
    scenario_commit(&t, "ours");
    scenario_be_on(&t, "theirs");
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    OK(&t, brc_array_resize(a, theirs[_i], &t.err));
    brc_array_free(a);
    scenario_commit(&t, "theirs");
    /* each by its own axis; or the same, and one of them more */
    ck_assert_int_eq(merge_theirs(BRC_MERGE_CONCAT, &conflicts), BRC_MERGE_MERGED);
    scenario_be_on(&t, "main");
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    ck_assert_uint_eq(brc_array_describe(a)->shape[0], 3);
    ck_assert_uint_eq(brc_array_describe(a)->shape[1], 3);
    brc_array_free(a);
}

/* ---- elements of variable length -------------------------------- */

static void append_text(uint64_t length, const char *slice, const char *text)
{
    brc_sel sel = BRC_SEL_INIT;
    brc_buf one = BRC_BUF_INIT;
    brc_array *a = scenario_array_at(&t, t.session, "/s");
    OK(&t, brc_array_resize(a, &length, &t.err));
    OK(&t, brc_sel_parse(&sel, a, slice, &t.err));
    OK(&t, brc_element_parse(&one, a, text, &t.err));
    OK(&t, brc_array_write(a, &sel, one.data, one.len, &t.err));
    brc_buf_dispose(&one);
    brc_array_free(a);
}

TEST(c9_strings)
{
    const uint64_t shape = 3, chunk = 2;
    brc_buf all = BRC_BUF_INIT;
    brc_array *a = scenario_array(&t, "/s", "string", 1, &shape, &chunk, "\"-\"", NULL);
    brc_array_free(a);
    commit_base();
    append_text(4, "[3]", "ours");
    scenario_commit(&t, "ours");
    scenario_be_on(&t, "theirs");
    append_text(5, "[4]", "their last");
    scenario_commit(&t, "theirs");
    must_merge();
    OK(&t, brc_array_open(&a, t.session, "/s", &t.err));
    OK(&t, io_elements(a, NULL, &all, &t.err));
    static const char wanted[] = "\1\0\0\0-\1\0\0\0-\1\0\0\0-\4\0\0\0ours\1\0\0\0-"
                                 "\12\0\0\0their last";
    ck_assert_uint_eq(all.len, sizeof(wanted) - 1);
    ck_assert_mem_eq(all.data, wanted, all.len);
    brc_buf_dispose(&all);
    brc_array_free(a);
}

/* ---- any shape, against memory -------------------------------- */

typedef struct appended {
    int ndim, axis;
    uint64_t shape[3], chunk[3], ours, theirs;
    model base, our, their, wanted;
} appended;

static void box_along(brc_sel *out, const appended *p, uint64_t first, uint64_t count)
{
    *out = (brc_sel)BRC_SEL_INIT;
    out->ndim = p->ndim;
    for (int i = 0; i < p->ndim; i++) {
        out->start[i] = 0;
        out->count[i] = p->shape[i];
        out->step[i] = 1;
    }
    out->start[p->axis] = first;
    out->count[p->axis] = count;
}

/* A part of the side becomes other numbers, in the model and in the array. */
static void write_some(const appended *p, model *m, brc_array *a, uint64_t first, uint64_t count,
                       uint64_t *random)
{
    brc_sel sel;
    box_along(&sel, p, first, count);
    size_t n = 1;
    for (int i = 0; i < p->ndim; i++) {
        if (i != p->axis && sel.count[i] > 1) {
            sel.start[i] = scenario_below(random, sel.count[i]);
            sel.count[i] -= sel.start[i];
        }
        n *= sel.count[i];
    }
    int32_t *values = malloc(n * sizeof(*values) + 1);
    ck_assert_ptr_nonnull(values);
    for (size_t i = 0; i < n; i++)
        values[i] = (int32_t)scenario_below(random, 1000);
    model_write(m, &sel, values, NULL);
    OK(&t, brc_array_write(a, &sel, values, n * sizeof(*values), &t.err));
    free(values);
}

static void change_side(const appended *p, model *m, uint64_t by, uint64_t first, uint64_t count,
                        uint64_t *random)
{
    uint64_t shape[3];
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    memcpy(shape, p->shape, sizeof(shape));
    shape[p->axis] += by;
    OK(&t, brc_array_resize(a, shape, &t.err));
    model_resize(m, shape);
    write_some(p, m, a, p->shape[p->axis], by, random);
    if (count > 0)
        write_some(p, m, a, first, count, random);
    brc_array_free(a);
}

static void copy_model(model *out, const model *m, const int32_t *fill)
{
    model_new(out, m->ndim, m->shape, m->item, fill);
    memcpy(out->data, m->data, m->len);
}

/* Theirs of it goes into what is wanted, `by` further along the axis. */
static void take_box(appended *p, uint64_t first, uint64_t count, uint64_t by)
{
    brc_sel sel;
    int32_t values[4096];
    box_along(&sel, p, first, count);
    model_read(&p->their, &sel, values, NULL);
    sel.start[p->axis] += by;
    model_write(&p->wanted, &sel, values, NULL);
}

LOOP(c10_any_shape, 0, 90)
{
    static const int32_t fill = 3;
    uint64_t random = (uint64_t)_i * 1013 + 1, shape[3];
    appended p = {.ndim = 1 + _i % 3};
    brc_array *a;
    for (int i = 0; i < p.ndim; i++) {
        p.shape[i] = 1 + scenario_below(&random, 7);
        p.chunk[i] = 1 + scenario_below(&random, 4);
    }
    p.axis = (int)scenario_below(&random, (uint64_t)p.ndim);
    p.ours = 1 + scenario_below(&random, 6);
    p.theirs = 1 + scenario_below(&random, 6);
    a = scenario_array(&t, "/a", "int32", p.ndim, p.shape, p.chunk, "3", NULL);
    model_new(&p.base, p.ndim, p.shape, sizeof(int32_t), &fill);
    const uint64_t length = p.shape[p.axis], half = length / 2;
    write_some(&p, &p.base, a, 0, length, &random);
    brc_array_free(a);
    commit_base();
    copy_model(&p.our, &p.base, &fill);
    copy_model(&p.their, &p.base, &fill);
    change_side(&p, &p.our, p.ours, 0, half, &random);
    scenario_commit(&t, "ours");
    scenario_be_on(&t, "theirs");
    change_side(&p, &p.their, p.theirs, half, length - half, &random);
    scenario_commit(&t, "theirs");

    copy_model(&p.wanted, &p.our, &fill);
    memcpy(shape, p.shape, sizeof(shape));
    shape[p.axis] += p.ours + p.theirs;
    model_resize(&p.wanted, shape);
    take_box(&p, half, length - half, 0);
    take_box(&p, length, p.theirs, p.ours);
    must_merge();
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    model_check(&p.wanted, &t, a);
    brc_array_free(a);
    ck_assert_int_eq(drafts(), 0);
    model_free(&p.base);
    model_free(&p.our);
    model_free(&p.their);
    model_free(&p.wanted);
}
