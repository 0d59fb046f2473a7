/* Differences between versions: nodes, chunks, elements. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/breccia.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(diff);

static brc_iter *diff_of(scenario *t, const char *a, const char *b, const char *path,
                         uint32_t flags)
{
    brc_diff_opts opts = BRC_DIFF_OPTS_INIT;
    brc_iter *it;
    opts.path = path;
    opts.flags = flags;
    OK(t, brc_diff(&it, t->repo, a, b, &opts, &t->err));
    return it;
}

/* The changes as text: "+/a -/b /c</d ~/e[/shape](1,0,2) ". */
static void diff_is(scenario *t, const char *a, const char *b, const char *path,
                    const char *expected)
{
    static const char marks[] = "?+- ~";
    char out[1024] = "";
    size_t len = 0;
    const brc_change *c;
    brc_iter *it = diff_of(t, a, b, path, 0);
    int rc;
    while ((rc = brc_next(it, &c, &t->err)) > 0) {
        ck_assert_int_eq((c->flags & BRC_CHANGE_ELEMENTS) != 0, 0);
        if (c->what != BRC_MOVED)
            len += (size_t)snprintf(out + len, sizeof(out) - len, "%c", marks[c->what]);
        len += (size_t)snprintf(out + len, sizeof(out) - len, "%s%s", c->path,
                                c->kind == BRC_ARRAY ? "*" : "");
        if (c->what == BRC_MOVED)
            len += (size_t)snprintf(out + len, sizeof(out) - len, "<%s", c->from);
        for (size_t i = 0; i < c->nmetadata; i++)
            len += (size_t)snprintf(out + len, sizeof(out) - len, "[%s]", c->metadata[i]);
        if (c->chunks_added + c->chunks_removed + c->chunks_changed > 0)
            len += (size_t)snprintf(out + len, sizeof(out) - len, "(%d,%d,%d)",
                                    (int)c->chunks_added, (int)c->chunks_removed,
                                    (int)c->chunks_changed);
        len += (size_t)snprintf(out + len, sizeof(out) - len, "%s ",
                                c->flags & BRC_CHANGE_STORAGE ? "!" : "");
        ck_assert_uint_lt(len, sizeof(out));
    }
    ck_assert_int_eq(rc, 0);
    brc_iter_free(it);
    ck_assert_str_eq(out, expected);
}

/* The one change, with elements. */
static brc_change elements_of(scenario *t, const char *a, const char *b)
{
    const brc_change *given;
    brc_iter *it = diff_of(t, a, b, NULL, BRC_DIFF_ELEMENTS);
    ck_assert_int_eq(brc_next(it, &given, &t->err), 1);
    brc_change c = *given;
    ck_assert_int_eq(c.what, BRC_CHANGED);
    brc_iter_free(it);
    c.path = c.from = NULL;
    c.metadata = NULL;
    return c;
}

TEST(nodes_that_come_and_go)
{
    scenario t;
    scenario_start(&t);
    diff_is(&t, NULL, NULL, NULL, "");
    scenario_numbers(&t, "/a", 10, 4, 0);
    OK(&t, brc_group_create(t.session, "/g/h", NULL, &t.err));
    diff_is(&t, NULL, NULL, NULL, "+/a*(3,0,0) +/g +/g/h ");
    scenario_commit(&t, "one");
    diff_is(&t, NULL, NULL, NULL, "");
    diff_is(&t, NULL, "HEAD", NULL, "+/a*(3,0,0) +/g +/g/h "); /* what it came from: nothing */
    scenario_numbers(&t, "/g/h/b", 4, 4, 100);
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
    diff_is(&t, NULL, NULL, NULL, "-/a*(0,3,0) +/g/h/b*(1,0,0) ");
    scenario_commit(&t, "two");
    diff_is(&t, NULL, "HEAD", NULL, "-/a*(0,3,0) +/g/h/b*(1,0,0) ");
    diff_is(&t, "HEAD", "HEAD~1", NULL, "+/a*(3,0,0) -/g/h/b*(0,1,0) ");
    diff_is(&t, "HEAD", "main", NULL, "");
    OK(&t, brc_node_remove(t.session, "/g", &t.err));
    diff_is(&t, NULL, NULL, NULL, "-/g -/g/h -/g/h/b*(0,1,0) ");
    diff_is(&t, "HEAD~1", NULL, NULL, "-/a*(0,3,0) -/g -/g/h ");
    diff_is(&t, NULL, NULL, "/g/h", "-/g/h -/g/h/b*(0,1,0) ");
    scenario_numbers(&t, "/g", 4, 4, 7); /* another kind in its place */
    diff_is(&t, NULL, NULL, NULL, "-/g +/g*(1,0,0) -/g/h -/g/h/b*(0,1,0) ");
    brc_iter *it = (brc_iter *)&t;
    FAILS(&t, BRC_ENOTFOUND, brc_diff(&it, t.repo, "nothing", NULL, NULL, &t.err));
    ck_assert_ptr_null(it);
    FAILS(&t, BRC_ENOTFOUND, brc_diff(&it, t.repo, "HEAD", "nothing", NULL, &t.err));
    scenario_stop(&t);
}

TEST(chunks_are_counted)
{
    scenario t;
    scenario_start(&t);
    brc_array_free(scenario_array(&t, "/a", "int32", 1, (uint64_t[]){ 40 }, (uint64_t[]){ 4 }, NULL,
                                  NULL));
    scenario_set_number(&t, "/a", 0, 1);
    scenario_set_number(&t, "/a", 4, 2);
    scenario_set_number(&t, "/a", 8, 3);
    OK(&t, brc_attrs_set(t.session, "/a", "k", "1", &t.err));
    scenario_commit(&t, "one");
    scenario_set_number(&t, "/a", 1, 9);  /* changed */
    scenario_set_number(&t, "/a", 4, 0);  /* back to fill: removed */
    scenario_set_number(&t, "/a", 36, 9); /* added */
    scenario_set_number(&t, "/a", 32, 9);
    scenario_set_number(&t, "/a", 8, 4);  /* and back: no difference */
    scenario_set_number(&t, "/a", 8, 3);
    diff_is(&t, NULL, NULL, NULL, "~/a*(2,1,1) ");
    OK(&t, brc_attrs_set(t.session, "/a", "k", "2", &t.err));
    OK(&t, brc_attrs_set(t.session, "/a", "n/m", "1", &t.err));
    diff_is(&t, NULL, NULL, NULL, "~/a*[/attributes/k][/attributes/n~1m](2,1,1) ");
    scenario_commit(&t, "two");
    diff_is(&t, NULL, "main", NULL, "~/a*[/attributes/k][/attributes/n~1m](2,1,1) ");
    diff_is(&t, "main", "main~1", NULL, "~/a*[/attributes/k][/attributes/n~1m](1,2,1) ");
    scenario_stop(&t);
}

TEST(moves_are_found)
{
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/g/a", 10, 4, 0);
    scenario_numbers(&t, "/g/b", 10, 4, 50);
    scenario_numbers(&t, "/c", 10, 4, 100);
    scenario_commit(&t, "one");
    OK(&t, brc_node_move(t.session, "/g", "/new/g", 0, &t.err));
    OK(&t, brc_node_move(t.session, "/c", "/d", 0, &t.err));
    diff_is(&t, NULL, NULL, NULL, "/d*</c +/new /new/g</g ");
    scenario_commit(&t, "two");
    diff_is(&t, NULL, "HEAD", NULL, "/d*</c +/new /new/g</g ");
    scenario_set_number(&t, "/d", 0, -1);
    diff_is(&t, "HEAD~1", NULL, "/d", "+/d*(3,0,0) "); /* a node that was moved and changed */
    OK(&t, brc_node_move(t.session, "/new/g", "/g", BRC_NODE_COPY, &t.err));
    diff_is(&t, "HEAD", NULL, "/g", "+/g +/g/a*(3,0,0) +/g/b*(3,0,0) ");
    scenario_stop(&t);
}

/* With the flag, a node that was moved into `path` is compared with where it was. */
TEST(a_moved_node_is_followed)
{
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/g/a", 10, 4, 0);
    scenario_numbers(&t, "/g/b", 10, 4, 50);
    scenario_commit(&t, "one");
    OK(&t, brc_node_move(t.session, "/g/a", "/far", 0, &t.err));
    scenario_set_number(&t, "/far", 5, -1);
    scenario_commit(&t, "two");
    brc_iter *it = diff_of(&t, "HEAD~1", "HEAD", "/far", BRC_DIFF_ELEMENTS);
    const brc_change *c;
    ck_assert_int_eq(brc_next(it, &c, &t.err), 1);
    ck_assert_int_eq(c->what, BRC_ADDED);
    brc_iter_free(it);
    it = diff_of(&t, "HEAD~1", "HEAD", "/far", BRC_DIFF_ELEMENTS | BRC_DIFF_MOVED);
    ck_assert_int_eq(brc_next(it, &c, &t.err), 1);
    ck_assert_str_eq(c->from, "/g/a");
    ck_assert_uint_eq(c->elements_changed, 1);
    ck_assert_uint_eq(c->elements_added, 0);
    ck_assert_uint_eq(c->first[0], 5);
    ck_assert_int_eq(brc_next(it, &c, &t.err), 0);
    brc_iter_free(it);
    scenario_stop(&t);
}

static const char *number_text(char out[16], const void *element)
{
    int32_t number;
    if (element == NULL)
        return "-";
    memcpy(&number, element, sizeof(number));
    snprintf(out, 16, "%d", number);
    return out;
}

static void values_are(scenario *t, uint32_t flags, const char *expected)
{
    brc_diff_opts opts = BRC_DIFF_OPTS_INIT;
    const brc_change *c;
    brc_iter *it;
    char out[256] = "";
    size_t len = 0;
    opts.path = "/a";
    opts.values = 8;
    opts.flags = BRC_DIFF_ELEMENTS | flags;
    OK(t, brc_diff(&it, t->repo, NULL, NULL, &opts, &t->err));
    ck_assert_int_eq(brc_next(it, &c, &t->err), 1);
    for (size_t i = 0; i < c->nvalues; i++) {
        const brc_differing *v = &c->values[i];
        char before[16], now[16];
        len += (size_t)snprintf(out + len, sizeof(out) - len, "%d:%s>%s ", (int)v->index[0],
                                number_text(before, v->before), number_text(now, v->now));
    }
    brc_iter_free(it);
    ck_assert_str_eq(out, expected);
}

/* With the flag, elements of one version alone are listed, too. */
TEST(elements_of_one_version_are_listed)
{
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 4, 4, 10);
    scenario_commit(&t, "one");
    scenario_set_number(&t, "/a", 1, 7);
    scenario_resize(&t, t.session, "/a", 6);
    values_are(&t, 0, "1:11>7 ");
    values_are(&t, BRC_DIFF_ADDED, "1:11>7 4:->0 5:->0 ");
    scenario_resize(&t, t.session, "/a", 2);
    values_are(&t, 0, "1:11>7 ");
    values_are(&t, BRC_DIFF_ADDED, "1:11>7 2:12>- 3:13>- ");
    scenario_stop(&t);
}

TEST(a_path_narrows_the_view)
{
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    scenario_numbers(&t, "/ab", 10, 4, 50);
    scenario_numbers(&t, "/g/a", 10, 4, 100);
    scenario_commit(&t, "one");
    scenario_set_number(&t, "/a", 0, -1);
    scenario_set_number(&t, "/ab", 0, -1);
    scenario_set_number(&t, "/g/a", 0, -1);
    diff_is(&t, NULL, NULL, NULL, "~/a*(0,0,1) ~/ab*(0,0,1) ~/g/a*(0,0,1) ");
    diff_is(&t, NULL, NULL, "/", "~/a*(0,0,1) ~/ab*(0,0,1) ~/g/a*(0,0,1) ");
    diff_is(&t, NULL, NULL, "/a", "~/a*(0,0,1) ");
    diff_is(&t, NULL, NULL, "g/", "~/g/a*(0,0,1) ");
    brc_iter *it;
    brc_diff_opts opts = BRC_DIFF_OPTS_INIT;
    opts.path = "/none"; /* a name that is nothing is a mistake */
    FAILS(&t, BRC_ENOTFOUND, brc_diff(&it, t.repo, NULL, NULL, &opts, &t.err));
    opts.path = "/a//b";
    FAILS(&t, BRC_EINVAL, brc_diff(&it, t.repo, NULL, NULL, &opts, &t.err));
    scenario_stop(&t);
}

TEST(looking_changes_nothing)
{
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 1000, 4, 0);
    scenario_commit(&t, "one");
    scenario_set_number(&t, "/a", 500, -1);
    int64_t objects = scenario_ask(&t, "SELECT count(*) FROM object");
    int64_t version = scenario_ask(&t, "SELECT count(*) FROM oplog");
    diff_is(&t, NULL, NULL, NULL, "~/a*(0,0,1) ");
    elements_of(&t, NULL, NULL);
    ck_assert_int_eq(scenario_clean(&t), 0);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM object"), objects);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM oplog"), version);
    scenario_close(&t);
    scenario_open(&t, NULL, BRC_OPEN_READONLY);
    diff_is(&t, NULL, NULL, NULL, "~/a*(0,0,1) ");
    scenario_stop(&t);
}

TEST(elements_and_their_box)
{
    scenario t;
    uint64_t shape[3] = { 6, 7, 8 }, chunk[3] = { 4, 3, 5 };
    double data[6 * 7 * 8];
    brc_change c;
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "float64", 3, shape, chunk, NULL, NULL);
    for (int i = 0; i < 336; i++)
        data[i] = i;
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
    scenario_commit(&t, "one");
    data[(1 * 7 + 6) * 8 + 2] += 0.5;
    data[(4 * 7 + 2) * 8 + 7] -= 2.25;
    data[(3 * 7 + 3) * 8 + 3] += 1;
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
    for (int i = 0; i < 2; i++) {
        c = i == 0 ? elements_of(&t, NULL, NULL) : elements_of(&t, "main~1", "main");
        ck_assert_int_eq((c.flags & BRC_CHANGE_ELEMENTS) != 0, 1);
        ck_assert_uint_eq(c.elements_changed, 3);
        ck_assert(c.max_abs == 2.25);
        ck_assert_int_eq(c.ndim, 3);
        ck_assert_uint_eq(c.chunks_changed, 3);
        const uint64_t first[3] = { 1, 2, 2 }, last[3] = { 4, 6, 7 };
        ck_assert_mem_eq(c.first, first, sizeof(first));
        ck_assert_mem_eq(c.last, last, sizeof(last));
        if (i == 0)
            scenario_commit(&t, "two");
    }
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(elements_against_absent_chunks)
{
    scenario t;
    scenario_start(&t);
    brc_array *a =
        scenario_array(&t, "/a", "int32", 1, (uint64_t[]){ 10 }, (uint64_t[]){ 4 }, "5", NULL);
    scenario_commit(&t, "one");
    scenario_set_number(&t, "/a", 9, 8);
    brc_change c = elements_of(&t, NULL, NULL);
    ck_assert_uint_eq(c.chunks_added, 1);
    ck_assert_uint_eq(c.elements_changed, 1); /* not the padding, not what stays fill */
    ck_assert(c.max_abs == 3);
    ck_assert_uint_eq(c.first[0], 9);
    scenario_commit(&t, "two");
    int32_t five = 5;
    OK(&t, brc_array_fill(a, NULL, &five, &t.err));
    c = elements_of(&t, NULL, NULL);
    ck_assert_uint_eq(c.chunks_removed, 1);
    ck_assert_uint_eq(c.elements_changed, 1);
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(elements_after_a_resize)
{
    scenario t;
    int32_t more[4] = { 1, 2, 3, 4 };
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 1);
    scenario_commit(&t, "one");
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    OK(&t, brc_array_append(a, 0, 4, more, sizeof(more), &t.err));
    scenario_set_number(&t, "/a", 1, 100);
    brc_change c = elements_of(&t, NULL, NULL);
    ck_assert_uint_eq(c.elements_changed, 1); /* of what both versions hold */
    ck_assert_uint_eq(c.elements_added, 4);
    ck_assert_uint_eq(c.first[0], 1);
    ck_assert(c.max_abs == 98);
    diff_is(&t, NULL, NULL, NULL, "~/a*[/shape](1,0,2) ");
    OK(&t, brc_session_discard(t.session, &t.err));
    OK(&t, brc_array_resize(a, (uint64_t[]){ 3 }, &t.err));
    diff_is(&t, NULL, NULL, NULL, "~/a*[/shape](0,2,1) ");
    c = elements_of(&t, NULL, NULL);
    ck_assert_uint_eq(c.elements_changed, 0);
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(elements_of_what_cannot_be_compared)
{
    scenario t;
    brc_change c;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 1);
    scenario_commit(&t, "one");
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
    brc_array_free(scenario_array(&t, "/a", "int64", 1, (uint64_t[]){ 10 }, (uint64_t[]){ 4 }, NULL,
                                  NULL));
    c = elements_of(&t, NULL, NULL);
    ck_assert_int_eq((c.flags & BRC_CHANGE_ELEMENTS) != 0, 0);
    ck_assert_str_eq(c.elements_why, "the data type differs");
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
    scenario_numbers(&t, "/a", 10, 5, 1);
    c = elements_of(&t, NULL, NULL);
    ck_assert_int_eq((c.flags & BRC_CHANGE_ELEMENTS) != 0, 1); /* other chunks, the same elements */
    ck_assert_uint_eq(c.elements_changed, 0);
    ck_assert_uint_eq(c.chunks_removed, 3);
    ck_assert_uint_eq(c.chunks_added, 2);
    scenario_stop(&t);
}

static const struct {
    const char *type, *from, *to;
    double difference; /* NAN: not numbers */
} types[] = {
    { "bool", "false", "true", 1 },
    { "int8", "-128", "127", 255 },
    { "uint8", "0", "255", 255 },
    { "int16", "-1", "2", 3 },
    { "uint16", "65535", "0", 65535 },
    { "int32", "-2147483648", "2147483647", 4294967295.0 },
    { "uint32", "4294967295", "1", 4294967294.0 },
    { "int64", "9223372036854775807", "9223372036854775805", 2 },
    { "int64", "-9223372036854775808", "9223372036854775807", 18446744073709551615.0 },
    { "uint64", "18446744073709551615", "18446744073709551614", 1 },
    { "float16", "1.5", "-1.5", 3 },
    { "float32", "0.25", "1", 0.75 },
    { "float32", "0.0", "-0.0", 0 },
    { "float64", "1", "Infinity", INFINITY },
    { "complex64", "[1, 2]", "[1, 3]", NAN },
    { "complex128", "[1, 2]", "[1, 3]", NAN },
    { "r24", "[1, 2, 3]", "[1, 2, 4]", NAN },
};

EACH(elements_of_every_type, types)
{
    scenario t;
    brc_buf element = BRC_BUF_INIT;
    brc_sel sel = BRC_SEL_INIT;
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", types[_i].type, 2, (uint64_t[]){ 3, 3 },
                                  (uint64_t[]){ 2, 2 }, types[_i].from, NULL);
    scenario_commit(&t, "one");
    OK(&t, brc_element_parse(&element, a, types[_i].to, &t.err));
    OK(&t, brc_sel_parse(&sel, a, "[2, 1]", &t.err));
    OK(&t, brc_array_fill(a, &sel, element.data, &t.err));
    brc_change c = elements_of(&t, NULL, NULL);
    ck_assert_int_eq((c.flags & BRC_CHANGE_ELEMENTS) != 0, 1);
    ck_assert_uint_eq(c.elements_changed, 1);
    ck_assert_uint_eq(c.first[0], 2);
    ck_assert_uint_eq(c.last[1], 1);
    if (isnan(types[_i].difference))
        ck_assert(isnan(c.max_abs));
    else
        ck_assert_msg(c.max_abs == types[_i].difference, "%s: %.17g, not %.17g", types[_i].type,
                      c.max_abs, types[_i].difference);
    brc_buf_dispose(&element);
    brc_array_free(a);
    scenario_stop(&t);
}

/* Every difference that the model has, and none else. */
LOOP(random_changes_are_all_found, 0, 20)
{
    scenario t;
    model before, after;
    uint64_t random = (uint64_t)_i + 77, shape[2] = { 30, 25 }, chunk[2] = { 7, 6 };
    uint64_t changed = 0, first[2] = { 99, 99 }, last[2] = { 0, 0 };
    brc_sel sel = BRC_SEL_INIT;
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "int16", 2, shape, chunk, NULL, NULL);
    model_new(&before, 2, shape, 2, NULL);
    model_new(&after, 2, shape, 2, NULL);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++) {
            uint8_t data[30 * 25 * 2];
            model_selection(&after, &random, &sel);
            for (size_t j = 0; j < sizeof(data); j++)
                data[j] = (uint8_t)scenario_below(&random, 2);
            OK(&t, brc_array_write(a, &sel, data, (size_t)brc_sel_count(&sel) * 2, &t.err));
            model_write(&after, &sel, data, NULL);
        }
        if (round == 0) {
            memcpy(before.data, after.data, after.len);
            brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
            brc_oid id;
            opts.message = "one";
            opts.flags = BRC_COMMIT_ALLOW_EMPTY;
            OK(&t, brc_session_commit(&id, t.session, &opts, &t.err));
        }
    }
    for (uint64_t i = 0; i < 30 * 25; i++) {
        if (memcmp(before.data + 2 * i, after.data + 2 * i, 2) == 0)
            continue;
        const uint64_t at[2] = { i / 25, i % 25 };
        changed++;
        for (int k = 0; k < 2; k++) {
            first[k] = at[k] < first[k] ? at[k] : first[k];
            last[k] = at[k] > last[k] ? at[k] : last[k];
        }
    }
    if (changed > 0) {
        brc_change c = elements_of(&t, NULL, NULL);
        ck_assert_uint_eq(c.elements_changed, changed);
        ck_assert_mem_eq(c.first, first, sizeof(first));
        ck_assert_mem_eq(c.last, last, sizeof(last));
    } else {
        ck_assert_int_eq(scenario_clean(&t), 1);
    }
    model_free(&before);
    model_free(&after);
    brc_array_free(a);
    scenario_stop(&t);
}
