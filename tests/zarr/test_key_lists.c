/* Lists of keys: by how they begin, and by directory, against a plain filter of all of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../../src/breccia.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(key_lists);

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"

typedef struct name_list {
    char *names[4096];
    size_t n;
} name_list;

static int name_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void names_free(name_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->names[i]);
    list->n = 0;
}

/* Sorted; none comes twice. */
static void names_end(name_list *list)
{
    qsort(list->names, list->n, sizeof(*list->names), name_order);
    for (size_t i = 1; i < list->n; i++)
        ck_assert_str_ne(list->names[i - 1], list->names[i]);
}

static void names_are(const name_list *a, const name_list *b, const char *what)
{
    ck_assert_msg(a->n == b->n, "'%s': %zu names, not %zu", what, a->n, b->n);
    for (size_t i = 0; i < a->n; i++)
        ck_assert_msg(strcmp(a->names[i], b->names[i]) == 0, "'%s': '%s', not '%s'", what,
                      a->names[i], b->names[i]);
}

static void list_prefix(scenario *t, const char *prefix, name_list *out)
{
    brc_iter *it;
    const char *key;
    int rc;
    OK(t, brc_keys(&it, t->session, prefix, 0, &t->err));
    while ((rc = brc_next(it, &key, &t->err)) > 0)
        out->names[out->n++] = strdup(key);
    ck_assert_int_eq(rc, 0);
    brc_iter_free(it);
    names_end(out);
}

/* "d name" and "f name". */
static void list_dir(scenario *t, const char *dir, name_list *out)
{
    brc_iter *it;
    const char *name;
    int rc;
    char item[512];
    OK(t, brc_keys(&it, t->session, dir, BRC_KEYS_DIR, &t->err));
    while ((rc = brc_next(it, &name, &t->err)) > 0) {
        const size_t len = strcspn(name, "/");
        snprintf(item, sizeof(item), "%c %.*s", name[len] == '/' ? 'd' : 'f', (int)len, name);
        out->names[out->n++] = strdup(item);
    }
    ck_assert_int_eq(rc, 0);
    brc_iter_free(it);
    names_end(out);
}

static void add_once(name_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->names[i], name) == 0)
            return;
    list->names[list->n++] = strdup(name);
}

/* Compares the prefix's list with the lists of all keys. */
static void check_prefix(scenario *t, const name_list *all, const char *prefix)
{
    static name_list is, want;
    brc_key_info info = BRC_KEY_INFO_INIT;
    uint64_t bytes, sum = 0;
    for (size_t i = 0; i < all->n; i++) {
        if (strncmp(all->names[i], prefix, strlen(prefix)) != 0)
            continue;
        want.names[want.n++] = strdup(all->names[i]);
        OK(t, brc_key_get(NULL, t->session, all->names[i], NULL, &info, &t->err));
        sum += info.length;
    }
    list_prefix(t, prefix, &is);
    names_are(&is, &want, prefix);
    OK(t, brc_keys_size(&bytes, t->session, prefix, &t->err));
    ck_assert_uint_eq(bytes, sum);
    names_free(&is);
    names_free(&want);
}

static void check_dir(scenario *t, const name_list *all, const char *dir)
{
    static name_list is, want;
    char above[512], item[512];
    const size_t len = strlen(dir);
    snprintf(above, sizeof(above), "%s%s", dir, len > 0 && dir[len - 1] != '/' ? "/" : "");
    for (size_t i = 0; i < all->n; i++) {
        if (strncmp(all->names[i], above, strlen(above)) != 0)
            continue;
        const char *rest = all->names[i] + strlen(above);
        const size_t part = strcspn(rest, "/");
        snprintf(item, sizeof(item), "%c %.*s", rest[part] == '/' ? 'd' : 'f', (int)part, rest);
        add_once(&want, item);
    }
    names_end(&want);
    list_dir(t, dir, &is);
    names_are(&is, &want, dir);
    ck_assert_int_eq(scenario_has_keys(t, t->session, dir), is.n > 0);
    names_free(&is);
    names_free(&want);
}

/* Every beginning of every key, and every directory. */
static void check_all(scenario *t)
{
    static name_list all;
    char part[512];
    list_prefix(t, "", &all);
    ck_assert_uint_gt(all.n, 10);
    for (size_t i = 0; i < all.n; i += all.n / 37 + 1)
        for (size_t len = 0; len <= strlen(all.names[i]); len++) {
            snprintf(part, sizeof(part), "%.*s", (int)len, all.names[i]);
            check_prefix(t, &all, part);
            if (all.names[i][len] == '/' || len == 0)
                check_dir(t, &all, part);
            if (len > 0 && part[len - 1] == '/')
                check_dir(t, &all, part);
        }
    check_dir(t, &all, "none");
    check_dir(t, &all, "a/c/9999");
    check_dir(t, &all, "a/c/x");
    check_prefix(t, &all, "none");
    check_prefix(t, &all, "a/c/01");
    check_prefix(t, &all, "/");
    names_free(&all);
}

static void new_sparse_array(scenario *t, const char *path, const char *encoding,
                             const uint64_t *chunk, const uint64_t *shard)
{
    static const uint64_t shape[2] = { 24, 36 };
    brc_array *a;
    uint8_t data[24 * 36];
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    spec.ndim = 2;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.shard = shard;
    spec.dtype = "uint8";
    spec.codecs_json = "[" LITTLE "]";
    spec.chunk_key_encoding = encoding;
    if (encoding != NULL && encoding[0] == '{')
        spec.metadata_json = encoding;
    uint64_t seed = chunk[0];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = scenario_below(&seed, 3) == 0;
    OK(t, brc_array_create(&a, t->session, path, &spec, &t->err));
    OK(t, brc_array_write(a, NULL, data, sizeof(data), &t->err));
    brc_array_free(a);
}

static const char slashed[] =
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[24,36],\"data_type\":\"uint8\","
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[5,7]}},"
    "\"chunk_key_encoding\":{\"name\":\"v2\",\"configuration\":{\"separator\":\"/\"}},"
    "\"fill_value\":0,\"codecs\":[" LITTLE "]}";

static void make_hierarchy(scenario *t)
{
    const uint64_t one[2] = { 1, 1 }, some[2] = { 5, 7 }, two[2] = { 2, 2 }, six[2] = { 6, 4 };
    new_sparse_array(t, "/a", NULL, one, NULL);
    new_sparse_array(t, "/g/b", "v2", some, NULL);
    new_sparse_array(t, "/g/s", NULL, two, six);
    new_sparse_array(t, "/g/v", slashed, some, NULL);
    new_sparse_array(t, "/gb", NULL, some, NULL);
    OK(t, brc_group_create(t->session, "/g/empty", NULL, &t->err));
}

TEST(lists_by_prefix_and_by_directory)
{
    scenario t;
    scenario_start(&t);
    make_hierarchy(&t);
    check_all(&t);
    scenario_commit(&t, "one");
    check_all(&t);
    const uint8_t zero = 0, nine = 9;
    brc_sel sel = BRC_SEL_INIT;
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    OK(&t, brc_sel_parse(&sel, a, "[3:9, 2:30]", &t.err));
    OK(&t, brc_array_fill(a, &sel, &zero, &t.err)); /* rows over what the map has */
    OK(&t, brc_sel_parse(&sel, a, "[7, 4:20]", &t.err));
    OK(&t, brc_array_fill(a, &sel, &nine, &t.err));
    OK(&t, brc_node_remove(t.session, "/gb", &t.err));
    brc_array_free(a);
    check_all(&t);
    scenario_stop(&t);
}

TEST(a_file_without_anything_has_no_keys)
{
    scenario t;
    static name_list list;
    brc_buf out = BRC_BUF_INIT;
    scenario_start(&t);
    ck_assert_int_eq(scenario_has_keys(&t, t.session, ""), 0);
    list_dir(&t, "", &list);
    ck_assert_uint_eq(list.n, 0);
    ck_assert_int_eq(scenario_has_key(&t, t.session, "zarr.json"), 0);
    FAILS(&t, BRC_ENOTFOUND, brc_key_get(&out, t.session, "zarr.json", NULL, NULL, &t.err));
    OK(&t, brc_group_create(t.session, "/g", NULL, &t.err));
    ck_assert_int_eq(scenario_has_keys(&t, t.session, ""), 1);
    OK(&t, brc_key_get(&out, t.session, "zarr.json", NULL, NULL, &t.err));
    brc_buf_dispose(&out);
    scenario_stop(&t);
}

/* Where each step goes to another part of a large map. */
TEST(lists_in_a_large_array)
{
    scenario t;
    static name_list list;
    const uint64_t shape[2] = { 3, 60000 }, chunk[2] = { 1, 1 };
    uint8_t one = 1;
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "uint8", 2, shape, chunk, NULL, NULL);
    OK(&t, brc_array_fill(a, NULL, &one, &t.err));
    brc_array_free(a);
    scenario_commit(&t, "one");
    list_dir(&t, "a/c", &list);
    ck_assert_uint_eq(list.n, 3);
    names_free(&list);
    list_prefix(&t, "a/c/2/5999", &list); /* 5999 and 59990 to 59999 */
    ck_assert_uint_eq(list.n, 11);
    names_free(&list);
    scenario_stop(&t);
}

/* Two handles on one file: a key is what the file says now. */
TEST(what_another_handle_does_shows)
{
    scenario t;
    breccia *other;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_buf out = BRC_BUF_INIT;
    const uint64_t n[1] = { 4 };
    uint8_t data[4] = { 1, 2, 3, 4 };
    scenario_start(&t);
    OK(&t, scenario_connect(&other, t.file, &opts, &t.err));
    brc_session *theirs = scenario_session(&t, other, NULL, BRC_SESSION_WRITE);
    brc_array *a = scenario_array(&t, "/a", "uint8", 1, n, n, NULL, "[\"bytes\"]");
    OK(&t, brc_array_write(a, NULL, data, 4, &t.err));
    OK(&t, brc_key_get(&out, theirs, "a/c/0", NULL, NULL, &t.err));
    ck_assert_mem_eq(out.data, data, 4);
    data[2] = 9;
    OK(&t, brc_array_write(a, NULL, data, 4, &t.err));
    OK(&t, brc_key_get(&out, theirs, "a/c/0", NULL, NULL, &t.err));
    ck_assert_mem_eq(out.data, data, 4);
    OK(&t, brc_array_set_codecs(a, "[\"bytes\",{\"name\":\"crc32c\"}]", 0, &t.err));
    OK(&t, brc_key_get(&out, theirs, "a/c/0", NULL, NULL, &t.err));
    ck_assert_uint_eq(out.len, 8);
    brc_array_free(a);
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_key_get(&out, theirs, "a/c/0", NULL, NULL, &t.err));
    OK(&t, brc_group_create(t.session, "/a", NULL, &t.err));
    a = scenario_array(&t, "/a/c", "uint8", 1, n, n, NULL, "[\"bytes\"]");
    OK(&t, brc_array_write(a, NULL, data, 4, &t.err));
    OK(&t, brc_key_get(&out, theirs, "a/c/c/0", NULL, NULL, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_key_get(&out, theirs, "a/c/0", NULL, NULL, &t.err));
    brc_array_free(a);
    brc_buf_dispose(&out);
    brc_session_free(theirs);
    brc_free(other);
    scenario_stop(&t);
}

/* More arrays than a session keeps. */
TEST(keys_of_many_arrays)
{
    scenario t;
    char path[32], key[32];
    brc_buf out = BRC_BUF_INIT;
    scenario_start(&t);
    for (int i = 0; i < 80; i++) {
        snprintf(path, sizeof(path), "/a%d", i);
        scenario_numbers(&t, path, 4, 4, i);
    }
    uint64_t seed = 3;
    for (int i = 0; i < 800; i++) {
        const int k = (int)scenario_below(&seed, 80);
        snprintf(key, sizeof(key), "a%d/zarr.json", k);
        OK(&t, brc_key_get(&out, t.session, key, NULL, NULL, &t.err));
        snprintf(key, sizeof(key), "a%d/c/0", k);
        OK(&t, brc_key_get(&out, t.session, key, NULL, NULL, &t.err));
        snprintf(key, sizeof(key), "a%d/c/1", k);
        FAILS(&t, BRC_ENOTFOUND, brc_key_get(&out, t.session, key, NULL, NULL, &t.err));
    }
    brc_buf_dispose(&out);
    scenario_stop(&t);
}

/* The keys that a commit refuses, and no others; its message names some of them. */
TEST(keys_that_are_none_yet_are_listed)
{
    static const char *const keys[] = {"a/c/0", "b", "b/c", "bad/zarr.json", "e", "f", "zz"};
    enum { N = sizeof(keys) / sizeof(keys[0]) };
    scenario t;
    brc_iter *it;
    const char *key;
    scenario_start(&t);
    scenario_numbers(&t, "/n", 4, 2, 1);
    for (int i = N - 1; i >= 0; i--)
        OK(&t, brc_key_set(t.session, keys[i], "x", 1, 0, &t.err));
    OK(&t, brc_key_delete(t.session, "n/zarr.json", 0, &t.err)); /* is hidden, and no bytes */
    OK(&t, brc_keys(&it, t.session, "", BRC_KEYS_LOOSE, &t.err));
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(brc_next(it, &key, &t.err), 1);
        ck_assert_str_eq(key, keys[i]);
    }
    ck_assert_int_eq(brc_next(it, &key, &t.err), 0);
    brc_iter_free(it);
    FAILS(&t, BRC_ECONFLICT, scenario_commit_of(&t, t.session, "all", NULL));
    /* the document first, and what is wrong with it: that is why its chunks are none */
    ck_assert_ptr_nonnull(
        strstr(t.err.message, "'bad/zarr.json' (and 'a/c/0', 'b', 'b/c' and 3 others)"));
    ck_assert_msg(strstr(t.err.message, "JSON") != NULL, "%s", t.err.message);
    brc_session *other = scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE);
    OK(&t, brc_keys(&it, other, "", BRC_KEYS_LOOSE, &t.err));
    ck_assert_int_eq(brc_next(it, &key, &t.err), 0);
    brc_iter_free(it);
    brc_session_free(other);
    scenario_stop(&t);
}

/* A chunk has no array because of what is wrong with that one's document: this is what helps. */
TEST(a_chunk_is_refused_for_what_is_wrong_with_its_array)
{
    static const char *const said[] = {"begins with '__', which Zarr reserves",
                                       "no array has a chunk of this key"};
    scenario t;
    scenario_start(&t);
    OK(&t, brc_key_set(t.session, "g/__a/zarr.json", "{}", 2, 0, &t.err));
    OK(&t, brc_key_set(t.session, "g/__a/c/0", "1234", 4, 0, &t.err));
    for (int i = 0; i < 2; i++) {
        FAILS(&t, BRC_ECONFLICT, scenario_commit_of(&t, t.session, "refused", NULL));
        ck_assert_msg(strstr(t.err.message, "'g/__a/c/0'") != NULL &&
                          strstr(t.err.message, said[i]) != NULL, "%s", t.err.message);
        OK(&t, brc_key_delete(t.session, "g/__a/zarr.json", 0, &t.err));
    }
    scenario_stop(&t);
}
