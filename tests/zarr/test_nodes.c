/* The hierarchy: making, listing, moving, copying, removing and restoring nodes,
 * their names, and their attributes. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/breccia.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(nodes);

static void tree_is(scenario *t, const char *expected)
{
    char tree[1024];
    ck_assert_str_eq(scenario_tree(t, t->session, "/", 1, tree, sizeof(tree)), expected);
}

static void attrs_are(scenario *t, const char *path, const char *key, const char *expected)
{
    brc_buf text = BRC_BUF_INIT;
    OK(t, brc_attrs_get(&text, t->session, path, key, &t->err));
    ck_assert_str_eq((const char *)text.data, expected);
    brc_buf_dispose(&text);
}

/* ---- making and listing -------------------------------- */

TEST(missing_parents_are_made)
{
    scenario t;
    char tree[256];
    scenario_start(&t);
    tree_is(&t, "/ ");
    ck_assert_int_eq(scenario_kind(&t, "/"), BRC_GROUP);
    OK(&t, brc_group_create(t.session, "/x/y/z", NULL, &t.err));
    scenario_numbers(&t, "a/b", 4, 4, 0); /* the first slash may be left out */
    tree_is(&t, "/ /a /a/b* /x /x/y /x/y/z ");
    ck_assert_str_eq(scenario_tree(&t, t.session, "/", 0, tree, sizeof(tree)), "/a /x ");
    ck_assert_str_eq(scenario_tree(&t, t.session, "x/y/", 0, tree, sizeof(tree)), "/x/y/z ");
    ck_assert_str_eq(scenario_tree(&t, t.session, "/x/y", 1, tree, sizeof(tree)), "/x/y /x/y/z ");
    ck_assert_str_eq(scenario_tree(&t, t.session, "/a/b", 1, tree, sizeof(tree)), "/a/b* ");
    ck_assert_int_eq(scenario_kind(&t, "/a/b"), BRC_ARRAY);
    ck_assert_int_eq(scenario_kind(&t, "/a/b/c"), 0);
    ck_assert_int_eq(scenario_kind(&t, "/nothing/at/all"), 0);
    scenario_commit(&t, "one");
    tree_is(&t, "/ /a /a/b* /x /x/y /x/y/z ");
    scenario_stop(&t);
}

TEST(making_refuses_what_is_in_the_way)
{
    scenario t;
    brc_iter *it = (brc_iter *)&t;
    brc_array *a = (brc_array *)&t;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    uint64_t shape[1] = { 4 };
    scenario_start(&t);
    scenario_numbers(&t, "/a", 4, 4, 0);
    OK(&t, brc_group_create(t.session, "/g", NULL, &t.err));
    FAILS(&t, BRC_EEXISTS, brc_group_create(t.session, "/g", NULL, &t.err));
    FAILS(&t, BRC_EEXISTS, brc_group_create(t.session, "/a", NULL, &t.err));
    FAILS(&t, BRC_EINVAL, brc_group_create(t.session, "/a/b", NULL, &t.err));
    FAILS(&t, BRC_EEXISTS, brc_group_create(t.session, "/", NULL, &t.err));
    FAILS(&t, BRC_EINVAL, brc_group_create(t.session, "/h", "[1]", &t.err));
    FAILS(&t, BRC_EINVAL, brc_group_create(t.session, "/h", "{", &t.err));
    FAILS(&t, BRC_EINVAL, brc_list(&it, t.session, "/a", 0, &t.err));
    ck_assert_ptr_null(it);
    FAILS(&t, BRC_ENOTFOUND, brc_list(&it, t.session, "/none", BRC_LIST_RECURSE, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_array_open(&a, t.session, "/none", &t.err));
    ck_assert_ptr_null(a);
    FAILS(&t, BRC_EINVAL, brc_array_open(&a, t.session, "/g", &t.err));
    spec.ndim = 1;
    spec.shape = shape;
    FAILS(&t, BRC_EINVAL, brc_array_create(&a, t.session, "/n", &spec, &t.err)); /* no type */
    ck_assert_ptr_null(a);
    spec.dtype = "float33";
    ck_assert_int_lt(brc_array_create(&a, t.session, "/n", &spec, &t.err), 0);
    spec.dtype = "int8";
    spec.fill = "300";
    FAILS(&t, BRC_EINVAL, brc_array_create(&a, t.session, "/n", &spec, &t.err));
    spec.fill = "1.5";
    FAILS(&t, BRC_EINVAL, brc_array_create(&a, t.session, "/n", &spec, &t.err));
    spec.fill = NULL;
    spec.ndim = BRC_MAX_NDIM + 1;
    FAILS(&t, BRC_EINVAL, brc_array_create(&a, t.session, "/n", &spec, &t.err));
    spec.ndim = -1;
    FAILS(&t, BRC_EINVAL, brc_array_create(&a, t.session, "/n", &spec, &t.err));
    shape[0] = UINT64_C(1) << 63;
    spec.ndim = 1;
    ck_assert_int_lt(brc_array_create(&a, t.session, "/n", &spec, &t.err), 0);
    shape[0] = 4;
    const uint64_t none[1] = { 0 }, huge[1] = { UINT64_C(1) << 40 };
    spec.chunk = none;
    FAILS(&t, BRC_EINVAL, brc_array_create(&a, t.session, "/n", &spec, &t.err));
    spec.chunk = huge;
    FAILS(&t, BRC_ELIMIT, brc_array_create(&a, t.session, "/n", &spec, &t.err));
    tree_is(&t, "/ /a* /g ");
    scenario_stop(&t);
}

/* Elements of which JSON as people write it would lose a bit, or that it has no form for. */
static const struct {
    const char *dtype, *element;
    size_t len;
    const char *json; /* in zarr.json */
} elements[] = {
    { "float32", "\x45\x23\xc1\x7f", 4, "\"0x7fc12345\"" },
    { "float32", "\x01\0\x80\xff", 4, "\"0xff800001\"" },
    { "float64", "\0\0\0\0\0\0\0\x80", 8, "-0.0" },
    { "int64", "\0\0\0\0\0\0\0\x80", 8, "-9223372036854775808" },
    { "bool", "\1", 1, "true" },
    { "complex64", "\x01\0\xc0\x7f\0\0\x80\xff", 8, "[\"0x7fc00001\",\"-Infinity\"]" },
    { "r24", "\0\1\2", 3, "[0,1,2]" },
    { "string", "\4\0\0\0f\0\xc3\xa4", 8, "\"f\\u0000\xc3\xa4\"" },
    { "bytes", "\3\0\0\0\0\xff\1", 7, "\"AP8B\"" },
    { "bytes", "\0\0\0\0", 4, "\"\"" },
    { "{\"name\":\"numpy.datetime64\",\"configuration\":{\"unit\":\"s\",\"scale_factor\":1}}",
      "\0\0\0\0\0\0\0\x80", 8, "\"NaT\"" },
    { "{\"name\":\"struct\",\"configuration\":{\"fields\":[{\"name\":\"a\",\"data_type\":"
      "\"int16\"},{\"name\":\"b\",\"data_type\":\"float32\"}]}}",
      "\xfe\xff\1\0\xc0\xff", 6, "{\"a\":-2,\"b\":\"0xffc00001\"}" },
};

static void fill_in_document_is(scenario *t, const char *path, const char *json)
{
    brc_buf text = BRC_BUF_INIT;
    char expected[128];
    OK(t, brc_node_json(&text, t->session, path, &t->err));
    snprintf(expected, sizeof(expected), "\"fill_value\":%s,", json);
    ck_assert_msg(strstr((const char *)text.data, expected) != NULL, "%s in %s", expected,
                  (const char *)text.data);
    brc_buf_dispose(&text);
}

EACH(a_fill_value_is_taken_to_the_bit, elements)
{
    scenario t;
    brc_array *a;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_buf read = BRC_BUF_INIT;
    const uint64_t shape[1] = { 1 };
    scenario_start(&t);
    spec.ndim = 1;
    spec.shape = shape;
    spec.dtype = elements[_i].dtype;
    spec.fill_element = elements[_i].element;
    OK(&t, brc_array_create(&a, t.session, "/a", &spec, &t.err));
    ck_assert_mem_eq(brc_array_describe(a)->fill, elements[_i].element, elements[_i].len);
    OK(&t, io_elements(a, NULL, &read, &t.err));
    ck_assert_uint_eq(read.len, elements[_i].len);
    ck_assert_mem_eq(read.data, elements[_i].element, read.len);
    fill_in_document_is(&t, "/a", elements[_i].json);
    brc_buf_dispose(&read);
    brc_array_free(a);
    scenario_stop(&t);
}

/* The default fill values are those of zarr-python. */
static const struct {
    const char *dtype, *json;
} defaults[] = {
    { "bool", "false" },
    { "int8", "0" },
    { "float32", "0.0" },
    { "complex64", "[0.0,0.0]" },
    { "string", "\"\"" },
    { "{\"name\":\"numpy.datetime64\",\"configuration\":{\"unit\":\"s\",\"scale_factor\":1}}",
      "\"NaT\"" },
    { "{\"name\":\"numpy.timedelta64\",\"configuration\":{\"unit\":\"D\",\"scale_factor\":7}}",
      "\"NaT\"" },
};

EACH(without_a_fill_value_it_is_the_type_s, defaults)
{
    scenario t;
    brc_array *a;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    const uint64_t shape[1] = { 1 };
    scenario_start(&t);
    spec.ndim = 1;
    spec.shape = shape;
    spec.dtype = defaults[_i].dtype;
    OK(&t, brc_array_create(&a, t.session, "/n", &spec, &t.err));
    fill_in_document_is(&t, "/n", defaults[_i].json);
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(what_is_no_element_is_no_fill_value)
{
    scenario t;
    brc_array *a = (brc_array *)&t;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    const uint64_t shape[1] = { 1 };
    scenario_start(&t);
    spec.ndim = 1;
    spec.shape = shape;
    spec.dtype = "string";
    spec.fill_element = "\2\0\0\0\xc3\x28"; /* not UTF-8 */
    FAILS(&t, BRC_EINVAL, brc_array_create(&a, t.session, "/a", &spec, &t.err));
    ck_assert_ptr_null(a);
    spec.fill_element = "\1\0\0\0x";
    spec.fill = "\"x\""; /* twice */
    FAILS(&t, BRC_EINVAL, brc_array_create(&a, t.session, "/a", &spec, &t.err));
    spec.fill = NULL;
    spec.size = offsetof(brc_array_spec, fill_element); /* an older program has no such field */
    OK(&t, brc_array_create(&a, t.session, "/a", &spec, &t.err));
    ck_assert_mem_eq(brc_array_describe(a)->fill, "\0\0\0", 4);
    brc_array_free(a);
    spec.size = sizeof(spec);
    spec.dtype = "int4";
    spec.fill_element = "\x78"; /* -8 below bits that mean nothing */
    OK(&t, brc_array_create(&a, t.session, "/b", &spec, &t.err));
    ck_assert_mem_eq(brc_array_describe(a)->fill, "\xf8", 1);
    brc_array_free(a);
    tree_is(&t, "/ /a* /b* ");
    scenario_stop(&t);
}

TEST(an_array_may_be_the_root)
{
    scenario t;
    uint64_t shape[1] = { 3 };
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/", "uint8", 1, shape, NULL, NULL, NULL);
    OK(&t, brc_array_write(a, NULL, "abc", 3, &t.err));
    tree_is(&t, "/* ");
    FAILS(&t, BRC_EINVAL, brc_group_create(t.session, "/g", NULL, &t.err));
    scenario_commit(&t, "one");
    scenario_reopen(&t);
    tree_is(&t, "/* ");
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(the_root_takes_attributes_while_it_is_empty)
{
    scenario t;
    scenario_start(&t);
    OK(&t, brc_group_create(t.session, "/", "{\"title\":\"x\"}", &t.err));
    attrs_are(&t, "/", NULL, "{\"title\":\"x\"}");
    OK(&t, brc_attrs_set(t.session, "/", "n", "1", &t.err));
    attrs_are(&t, "/", NULL, "{\"title\":\"x\",\"n\":1}");
    scenario_stop(&t);
}

static const struct {
    const char *path;
    int code;
} names[] = {
    { "a", BRC_OK },
    { "/A-b_c.9", BRC_OK },
    { "/.a", BRC_OK },
    { "/a..b", BRC_OK },
    { "/_a", BRC_OK },
    { "/a__", BRC_OK },
    { "/c", BRC_OK },
    { "/0", BRC_OK },
    { "/two words", BRC_OK },
    { "/\xc3\xa9", BRC_OK },         /* e acute in one piece                */
    { "/e\xcc\x81", BRC_OK },        /* and in two: another node            */
    { "/zarr.json.bak", BRC_OK },
    { "/a/", BRC_OK },
    { "/a\nb", BRC_OK },             /* legal in Zarr; output escapes it    */
    { "/.", BRC_EINVAL },
    { "/..", BRC_EINVAL },
    { "/...", BRC_EINVAL },
    { "/a/../b", BRC_EINVAL },
    { "//a", BRC_EINVAL },
    { "/a//b", BRC_EINVAL },
    { "/__a", BRC_EINVAL },
    { "/__", BRC_EINVAL },
    { "/zarr.json", BRC_EINVAL },
    { "/a/zarr.json", BRC_EINVAL },
    { "/\xff", BRC_EINVAL },         /* no UTF-8                            */
    { "/\xc0\xaf", BRC_EINVAL },     /* an overlong slash                   */
    { "/\xed\xa0\x80", BRC_EINVAL }, /* half a surrogate pair               */
};

EACH(names_are_checked, names)
{
    scenario t;
    int kind, rc;
    scenario_start(&t);
    rc = brc_group_create(t.session, names[_i].path, NULL, &t.err);
    ck_assert_msg(rc == names[_i].code, "'%s' gives %d", names[_i].path, rc);
    if (rc == BRC_OK) {
        ck_assert_int_eq(scenario_kind(&t, names[_i].path), BRC_GROUP);
        FAILS(&t, BRC_EEXISTS, brc_group_create(t.session, names[_i].path, NULL, &t.err));
    } else {
        FAILS(&t, BRC_EINVAL, brc_node_kind(&kind, t.session, names[_i].path, &t.err));
        ck_assert_int_eq(scenario_clean(&t), 1);
    }
    scenario_stop(&t);
}

TEST(names_have_limits)
{
    scenario t;
    char name[5000], deep[256] = "";
    scenario_start(&t);
    memset(name, 'n', sizeof(name));
    name[256] = '\0';
    ck_assert_int_lt(brc_group_create(t.session, name, NULL, &t.err), 0);
    name[255] = '\0';
    OK(&t, brc_group_create(t.session, name, NULL, &t.err));
    for (size_t i = 0; i < 64; i++)
        memcpy(deep + 2 * i, "/d", 3);
    OK(&t, brc_group_create(t.session, deep, NULL, &t.err));
    memcpy(deep + 128, "/d", 3);
    FAILS(&t, BRC_ELIMIT, brc_group_create(t.session, deep, NULL, &t.err));
    scenario_commit(&t, "deep");
    scenario_whole(&t);
    scenario_stop(&t);
}

TEST(names_that_look_alike_are_different)
{
    scenario t;
    scenario_start(&t);
    OK(&t, brc_group_create(t.session, "/A", NULL, &t.err));
    OK(&t, brc_group_create(t.session, "/a", NULL, &t.err));
    OK(&t, brc_group_create(t.session, "/\xc3\xa9", NULL, &t.err));
    OK(&t, brc_group_create(t.session, "/e\xcc\x81", NULL, &t.err));
    OK(&t, brc_group_create(t.session, "/a.b/x", NULL, &t.err));
    OK(&t, brc_group_create(t.session, "/a0", NULL, &t.err));
    OK(&t, brc_group_create(t.session, "/a/x", NULL, &t.err));
    tree_is(&t, "/ /A /a /a/x /a.b /a.b/x /a0 /e\xcc\x81 /\xc3\xa9 ");
    OK(&t, brc_node_remove(t.session, "/a", &t.err)); /* and none of the others */
    tree_is(&t, "/ /A /a.b /a.b/x /a0 /e\xcc\x81 /\xc3\xa9 ");
    scenario_commit(&t, "one");
    tree_is(&t, "/ /A /a.b /a.b/x /a0 /e\xcc\x81 /\xc3\xa9 ");
    scenario_stop(&t);
}

/* ---- moving, copying, removing -------------------------------- */

TEST(M_moving_and_copying_add_no_chunk)
{
    scenario t;
    int64_t chunks, blobs;
    const char *const count = "SELECT count(*) FROM object WHERE kind=1";
    scenario_start(&t);
    scenario_numbers(&t, "/g/a", 1000, 10, 0);
    scenario_numbers(&t, "/g/b", 1000, 10, 5000);
    scenario_commit(&t, "one");
    chunks = scenario_ask(&t, count);
    blobs = scenario_ask(&t, "SELECT sum(stored) FROM object WHERE kind=1");
    scenario_set_number(&t, "/g/a", 500, -1); /* an uncommitted chunk goes along */
    OK(&t, brc_node_move(t.session, "/g", "/copy/of/g", BRC_NODE_COPY, &t.err));
    OK(&t, brc_node_move(t.session, "/g", "/moved", 0, &t.err));
    OK(&t, brc_node_move(t.session, "/moved/b", "/copy/b", 0, &t.err));
    tree_is(&t,
            "/ /copy /copy/b* /copy/of /copy/of/g /copy/of/g/a* /copy/of/g/b* /moved /moved/a* ");
    scenario_commit(&t, "two");
    tree_is(&t,
            "/ /copy /copy/b* /copy/of /copy/of/g /copy/of/g/a* /copy/of/g/b* /moved /moved/a* ");
    ck_assert_int_eq(scenario_ask(&t, count), chunks + 1);
    ck_assert_int_eq(scenario_ask(&t,
                                  "SELECT sum(stored) FROM object WHERE kind=1 AND id <>"
                                  " (SELECT id FROM object WHERE kind=1 ORDER BY place DESC,"
                                  " offset DESC LIMIT 1)"),
                     blobs);
    ck_assert_int_eq(scenario_number(&t, t.session, "/moved/a", 500), -1);
    ck_assert_int_eq(scenario_number(&t, t.session, "/moved/a", 501), 501);
    ck_assert_int_eq(scenario_number(&t, t.session, "/copy/of/g/a", 500), -1);
    ck_assert_int_eq(scenario_number(&t, t.session, "/copy/b", 3), 5003);
    /* the copy is a copy */
    scenario_set_number(&t, "/moved/a", 501, -2);
    ck_assert_int_eq(scenario_number(&t, t.session, "/copy/of/g/a", 501), 501);
    scenario_whole(&t);
    scenario_stop(&t);
}

TEST(moving_refuses_what_cannot_be)
{
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 4, 4, 0);
    OK(&t, brc_group_create(t.session, "/g/h", NULL, &t.err));
    scenario_commit(&t, "one");
    FAILS(&t, BRC_EEXISTS, brc_node_move(t.session, "/a", "/g", 0, &t.err));
    FAILS(&t, BRC_EINVAL, brc_node_move(t.session, "/a", "/a", 0, &t.err));
    FAILS(&t, BRC_EINVAL, brc_node_move(t.session, "/g", "/g/h/i", 0, &t.err));
    FAILS(&t, BRC_EINVAL, brc_node_move(t.session, "/g", "/g/h/i", BRC_NODE_COPY, &t.err));
    FAILS(&t, BRC_EINVAL, brc_node_move(t.session, "/g", "/a/g", 0, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_node_move(t.session, "/none", "/b", 0, &t.err));
    FAILS(&t, BRC_EINVAL, brc_node_move(t.session, "/", "/b", 0, &t.err));
    FAILS(&t, BRC_EINVAL, brc_node_move(t.session, "/", "/b", BRC_NODE_COPY, &t.err));
    FAILS(&t, BRC_EINVAL, brc_node_move(t.session, "/a", "/__b", 0, &t.err));
    FAILS(&t, BRC_EINVAL, brc_node_remove(t.session, "/", &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_node_remove(t.session, "/none", &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_node_remove(t.session, "/a/b", &t.err));
    OK(&t, brc_node_move(t.session, "/g", "/gg", 0, &t.err)); /* a longer name is not under it */
    tree_is(&t, "/ /a* /gg /gg/h ");
    scenario_stop(&t);
}

TEST(what_was_removed_does_not_come_back)
{
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/g/a", 40, 4, 100);
    scenario_numbers(&t, "/g/b", 4, 4, 200);
    scenario_commit(&t, "one");
    scenario_set_number(&t, "/g/a", 7, -7);
    OK(&t, brc_node_remove(t.session, "/g/a", &t.err));
    tree_is(&t, "/ /g /g/b* ");
    brc_array_free(scenario_array(&t, "/g/a", "int32", 1, (uint64_t[]){ 40 }, (uint64_t[]){ 4 },
                                  "-1", NULL));
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/a", 7), -1);
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/a", 39), -1);
    OK(&t, brc_node_remove(t.session, "/g", &t.err));
    tree_is(&t, "/ ");
    OK(&t, brc_group_create(t.session, "/g", NULL, &t.err));
    tree_is(&t, "/ /g ");
    scenario_commit(&t, "two");
    tree_is(&t, "/ /g ");
    OK(&t, brc_node_restore(t.session, "/g", "main~1", &t.err));
    tree_is(&t, "/ /g /g/a* /g/b* ");
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/a", 7), 107);
    scenario_whole(&t);
    scenario_stop(&t);
}

TEST(an_array_handle_follows_its_path)
{
    scenario t;
    brc_array *a;
    int32_t got[4];
    scenario_start(&t);
    scenario_numbers(&t, "/a", 4, 4, 10);
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    OK(&t, brc_node_move(t.session, "/a", "/b", 0, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_array_write(a, NULL, got, sizeof(got), &t.err));
    scenario_numbers(&t, "/a", 4, 2, 20);
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    ck_assert_int_eq(got[3], 23);
    ck_assert_uint_eq(brc_array_describe(a)->chunk[0], 2);
    brc_array_free(a);
    scenario_stop(&t);
}

/* ---- restoring -------------------------------- */

TEST(a_node_is_restored_with_all_under_it)
{
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/g/a", 40, 4, 0);
    OK(&t, brc_attrs_set(t.session, "/g", "k", "1", &t.err));
    scenario_commit(&t, "one");
    scenario_set_number(&t, "/g/a", 0, -1);
    OK(&t, brc_attrs_set(t.session, "/g", "k", "2", &t.err));
    scenario_numbers(&t, "/g/new", 4, 4, 0);
    scenario_commit(&t, "two");
    scenario_set_number(&t, "/g/a", 1, -2);
    OK(&t, brc_node_restore(t.session, "/g/a", NULL, &t.err)); /* the branch's tip */
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/a", 0), -1);
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/a", 1), 1);
    ck_assert_int_eq(scenario_clean(&t), 1);
    OK(&t, brc_node_restore(t.session, "/g", "HEAD~1", &t.err));
    tree_is(&t, "/ /g /g/a* ");
    attrs_are(&t, "/g", "k", "1");
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/a", 0), 0);
    OK(&t, brc_node_restore(t.session, "/", "main", &t.err));
    ck_assert_int_eq(scenario_clean(&t), 1);
    scenario_numbers(&t, "/extra", 4, 4, 0);
    OK(&t, brc_node_restore(t.session, "/extra", NULL, &t.err)); /* it was not there */
    tree_is(&t, "/ /g /g/a* /g/new* ");
    FAILS(&t, BRC_ENOTFOUND, brc_node_restore(t.session, "/none", NULL, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_node_restore(t.session, "/g", "main~7", &t.err));
    OK(&t, brc_node_remove(t.session, "/g", &t.err));
    OK(&t, brc_node_restore(t.session, "/g/a", NULL, &t.err)); /* with a parent */
    tree_is(&t, "/ /g /g/a* ");
    scenario_stop(&t);
}

TEST(a_region_is_restored)
{
    scenario t;
    brc_array *a;
    brc_sel sel = BRC_SEL_INIT;
    int32_t got[40];
    scenario_start(&t);
    scenario_numbers(&t, "/a", 40, 7, 0);
    brc_oid first = scenario_commit(&t, "one");
    char hex[65];
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    int32_t minus = -1;
    OK(&t, brc_array_fill(a, NULL, &minus, &t.err));
    scenario_commit(&t, "two");
    OK(&t, brc_sel_parse(&sel, a, "[3:30:4]", &t.err));
    OK(&t, brc_array_restore(a, &sel, brc_oid_format(hex, &first), &t.err));
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    for (int i = 0; i < 40; i++)
        ck_assert_int_eq(got[i], i >= 3 && i < 30 && (i - 3) % 4 == 0 ? i : -1);
    OK(&t, brc_array_restore(a, NULL, NULL, &t.err));
    ck_assert_int_eq(scenario_clean(&t), 1);
    OK(&t, brc_array_resize(a, (uint64_t[]){ 50 }, &t.err));
    ck_assert_int_lt(brc_array_restore(a, NULL, NULL, &t.err), 0); /* another shape then */
    OK(&t, brc_array_restore(a, &sel, "HEAD~1", &t.err));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 3), 3);
    FAILS(&t, BRC_ENOTFOUND, brc_array_restore(a, &sel, "HEAD~9", &t.err));
    brc_array_free(a);
    scenario_stop(&t);
}

/* ---- attributes -------------------------------- */

TEST(trap11_attributes_keep_their_text)
{
    scenario t;
    static const char all[] =
        "{\"big\":18446744073709551615,\"small\":-9223372036854775808,"
        "\"huge\":123456789012345678901234567890,\"pi\":3.14159265358979323846,"
        "\"e\":1E+2,\"one\":1.0,\"z\":-0,\"a\":{\"y\":1,\"x\":[2,null,true]},"
        "\"text\":\"\xc3\xa9\"}";
    scenario_start(&t);
    OK(&t, brc_group_create(t.session, "/g", all, &t.err));
    attrs_are(&t, "/g", NULL, all);
    attrs_are(&t, "/g", "big", "18446744073709551615");
    attrs_are(&t, "/g", "one", "1.0");
    attrs_are(&t, "/g", "a", "{\"y\":1,\"x\":[2,null,true]}");
    OK(&t, brc_attrs_set(t.session, "/g", "one", "2.50", &t.err)); /* stays in its place */
    OK(&t, brc_attrs_set(t.session, "/g", "new", " [ 9007199254740993 ] ", &t.err));
    OK(&t, brc_attrs_set(t.session, "/g", "small", NULL, &t.err));
    scenario_commit(&t, "one");
    scenario_reopen(&t);
    attrs_are(
        &t, "/g", NULL,
        "{\"big\":18446744073709551615,\"huge\":123456789012345678901234567890,"
        "\"pi\":3.14159265358979323846,\"e\":1E+2,\"one\":2.50,\"z\":-0,"
        "\"a\":{\"y\":1,\"x\":[2,null,true]},\"text\":\"\xc3\xa9\",\"new\":[9007199254740993]}");
    scenario_stop(&t);
}

TEST(attributes_are_checked)
{
    scenario t;
    brc_buf text = BRC_BUF_INIT;
    scenario_start(&t);
    OK(&t, brc_group_create(t.session, "/g", NULL, &t.err));
    attrs_are(&t, "/g", NULL, "{}");
    FAILS(&t, BRC_ENOTFOUND, brc_attrs_get(&text, t.session, "/g", "k", &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_attrs_set(t.session, "/g", "k", NULL, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_attrs_set(t.session, "/none", "k", "1", &t.err));
    FAILS(&t, BRC_EINVAL, brc_attrs_set(t.session, "/g", "k", "nan", &t.err));
    FAILS(&t, BRC_EINVAL, brc_attrs_set(t.session, "/g", "k", "{\"a\":1,\"a\":2}", &t.err));
    FAILS(&t, BRC_EINVAL, brc_attrs_set(t.session, "/g", "k", "1 2", &t.err));
    FAILS(&t, BRC_EINVAL, brc_attrs_set(t.session, "/g", "k", "", &t.err));
    FAILS(&t, BRC_EINVAL, brc_attrs_set(t.session, "/g", "\xff", "1", &t.err));
    attrs_are(&t, "/g", NULL, "{}");
    OK(&t, brc_attrs_set(t.session, "/g", "", "1", &t.err));
    OK(&t, brc_attrs_set(t.session, "/g", "a/b", "2", &t.err)); /* a key, no pointer */
    attrs_are(&t, "/g", NULL, "{\"\":1,\"a/b\":2}");
    brc_buf_dispose(&text);
    scenario_stop(&t);
}

TEST(unknown_members_are_kept)
{
    scenario t;
    brc_array *a;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_buf text = BRC_BUF_INIT;
    scenario_start(&t);
    spec.metadata_json =
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4],\"data_type\":\"int32\","
        "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4]}},"
        "\"chunk_key_encoding\":\"default\",\"fill_value\":0,\"codecs\":[{\"name\":\"bytes\","
        "\"configuration\":{\"endian\":\"little\"}}],"
        "\"x-ours\":{\"must_understand\":false,\"n\":12345678901234567890},"
        "\"dimension_names\":[null]}";
    OK(&t, brc_array_create(&a, t.session, "/a", &spec, &t.err));
    OK(&t, brc_attrs_set(t.session, "/a", "k", "1", &t.err));
    OK(&t, brc_array_resize(a, (uint64_t[]){ 9 }, &t.err));
    OK(&t, brc_array_set_codecs(a, "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]",
                                0, &t.err));
    OK(&t, brc_node_json(&text, t.session, "/a", &t.err));
    ck_assert_ptr_nonnull(
        strstr((const char *)text.data,
               "\"x-ours\":{\"must_understand\":false,\"n\":12345678901234567890}"));
    ck_assert_ptr_nonnull(strstr((const char *)text.data, "\"dimension_names\":[null]"));
    ck_assert_ptr_nonnull(strstr((const char *)text.data, "\"shape\":[9]"));
    brc_buf_dispose(&text);
    brc_array_free(a);
    spec.metadata_json = "{\"zarr_format\":3,\"node_type\":\"array\"}";
    FAILS(&t, BRC_EINVAL, brc_array_create(&a, t.session, "/b", &spec, &t.err));
    scenario_stop(&t);
}
