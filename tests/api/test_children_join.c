/* Children that are joined with their session: what both wrote, and what cannot be decided. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kit/children_kit.h"
#include "../kit/suite.h"

TEST_SUITE(children_join);

static scenario t;
static brc_session *s; /* the parent */

static void join_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 64, 16, 0);
    scenario_commit(&t, "first");
    s = kit_private(&t, NULL);
}

static void join_teardown(void)
{
    brc_session_free(s);
    scenario_whole(&t);
    scenario_stop(&t);
}

static void fill(brc_session *of, uint64_t from, uint64_t n, int32_t value)
{
    OK(&t, kit_fill(&t, of, "/a", from, n, value));
}

static void need(brc_session *of, uint64_t i, int32_t value)
{
    ck_assert_int_eq(scenario_number(&t, of, "/a", i), value);
}

/* Joins all of these children, in this order. */
static int join_of(brc_iter **conflicts, brc_session *const *children, size_t n)
{
    char *tokens[16] = {NULL};
    for (size_t i = 0; i < n; i++)
        tokens[i] = kit_token(&t, children[i]);
    int rc = brc_session_join(conflicts, s, (const char *const *)tokens, n, 0, &t.err);
    for (size_t i = 0; i < n; i++)
        free(tokens[i]);
    return rc;
}

static void free_all(brc_session *const *children, size_t n)
{
    for (size_t i = 0; i < n; i++)
        brc_session_free(children[i]);
}

/* "/a chunk c/0 of 2; ", by the place of its draft in the list, counted from 1. */
static const char *conflicts_are(brc_iter *it, brc_session *const *children, size_t n)
{
    static char text[600];
    const brc_conflict *c;
    int rc;
    text[0] = '\0';
    while ((rc = brc_next(it, &c, &t.err)) > 0) {
        const size_t at = strlen(text);
        size_t of = 0;
        for (size_t i = 0; i < n; i++) {
            const int64_t id = scenario_draft(&t, children[i]);
            of = id == c->draft ? i + 1 : of;
        }
        snprintf(text + at, sizeof(text) - at, "%s %s %s of %zu; ", c->path, c->kind,
                 c->key != NULL ? c->key : "-", of);
    }
    ck_assert_msg(rc == 0, "%s", t.err.message);
    brc_iter_free(it);
    return text;
}

CASE("children_join", .setup = join_setup, .teardown = join_teardown, .timeout = 120);

/* ---- what goes together -------------------------------- */

TEST(chunks_of_children_become_the_parent_s_rows)
{
    fill(s, 0, 4, -1);
    brc_session *c[] = {kit_fork(&t, s), kit_fork(&t, s)};
    fill(c[0], 16, 16, 1);
    fill(c[1], 32, 16, 2);
    OK(&t, brc_group_create(c[1], "/g", NULL, &t.err));
    const int64_t objects = scenario_ask(&t, "SELECT count(*) FROM object");
    OK(&t, join_of(NULL, c, 2));
    /* no snapshot was made of it, and no chunk */
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM object"), objects);
    ck_assert_str_eq(kit_drafts(&t, t.repo), "2/0 alive ours; ");
    need(s, 0, -1);
    need(s, 4, 4);
    need(s, 16, 1);
    need(s, 47, 2);
    need(s, 48, 48);
    FAILS(&t, BRC_ESTALE, kit_fill(&t, c[0], "/a", 0, 1, 7));
    free_all(c, 2);
}

TEST(elements_of_one_chunk_are_joined)
{
    brc_oid id;
    brc_session *c[] = {kit_fork(&t, s), kit_fork(&t, s), kit_fork(&t, s)};
    fill(c[0], 0, 3, 1);
    fill(c[1], 3, 3, 2);
    fill(c[2], 6, 30, 3);
    fill(s, 15, 1, 9); /* as a child has it, too: */
    fill(c[2], 15, 1, 9);
    OK(&t, join_of(NULL, c, 3));
    need(s, 2, 1);
    need(s, 3, 2);
    need(s, 6, 3);
    need(s, 15, 9);
    need(s, 35, 3);
    need(s, 36, 36);
    OK(&t, kit_commit(&t, s, &id));
    need(t.session, 5, 2);
    free_all(c, 3);
}

TEST(an_element_with_two_values_is_a_conflict)
{
    brc_iter *it;
    brc_session *c[] = {kit_fork(&t, s), kit_fork(&t, s), kit_fork(&t, s)};
    fill(s, 40, 1, 40000);
    fill(c[0], 0, 10, 1);
    fill(c[1], 9, 10, 2);
    fill(c[2], 40, 2, 3);
    OK(&t, brc_attrs_set(c[1], "/a", "unit", "\"m\"", &t.err));
    OK(&t, brc_attrs_set(c[2], "/a", "unit", "\"s\"", &t.err));
    FAILS(&t, BRC_ECONFLICT, join_of(&it, c, 3));
    ck_assert_str_eq(conflicts_are(it, c, 3),
                     "/a metadata /attributes/unit of 3; /a chunk c/0 of 2; /a chunk c/2 of 3; ");
    /* nothing has changed, and nothing is lost */
    FAILS(&t, BRC_ECONFLICT, join_of(NULL, c, 3));
    need(s, 0, 0);
    need(s, 40, 40000);
    need(c[0], 9, 1);
    need(c[1], 9, 2);
    need(c[2], 41, 3);
    OK(&t, join_of(NULL, c, 1));
    FAILS(&t, BRC_ECONFLICT, join_of(NULL, c + 1, 1));
    fill(s, 9, 1, 2); /* who writes what the other has settles it */
    OK(&t, join_of(NULL, c + 1, 1));
    need(s, 8, 1);
    need(s, 18, 2);
    OK(&t, brc_session_discard(c[2], &t.err));
    OK(&t, join_of(NULL, c + 2, 1));
    need(s, 40, 40000);
    ck_assert_str_eq(kit_drafts(&t, t.repo), "0/0 alive ours; ");
    free_all(c, 3);
}

TEST(members_and_nodes_are_joined_as_by_a_merge)
{
    char tree[200];
    OK(&t, brc_group_create(s, "/g", NULL, &t.err));
    brc_array *a;
    const uint64_t shape[] = {8};
    const int32_t one = 1;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    spec.dtype = "int32";
    spec.ndim = 1;
    spec.shape = shape;
    OK(&t, brc_array_create(&a, s, "/g/x", &spec, &t.err));
    OK(&t, brc_array_fill(a, NULL, &one, &t.err));
    brc_array_free(a);
    brc_session *c[] = {kit_fork(&t, s), kit_fork(&t, s), kit_fork(&t, s)};
    OK(&t, brc_node_move(c[0], "/g", "/h", 0, &t.err));
    OK(&t, kit_fill(&t, c[1], "/g/x", 0, 4, 5));
    OK(&t, brc_attrs_set(c[1], "/g/x", "one", "1", &t.err));
    OK(&t, brc_attrs_set(c[2], "/g/x", "two", "2", &t.err));
    OK(&t, brc_node_remove(c[2], "/a", &t.err));
    OK(&t, join_of(NULL, c, 3));
    ck_assert_str_eq(scenario_tree(&t, s, "/", 1, tree, sizeof(tree)), "/ /h /h/x* ");
    ck_assert_int_eq(scenario_number(&t, s, "/h/x", 3), 5);
    ck_assert_int_eq(scenario_number(&t, s, "/h/x", 4), 1);
    brc_buf json = BRC_BUF_INIT;
    OK(&t, brc_attrs_get(&json, s, "/h/x", NULL, &t.err));
    ck_assert_ptr_nonnull(strstr((const char *)json.data, "\"one\":1"));
    ck_assert_ptr_nonnull(strstr((const char *)json.data, "\"two\":2"));
    brc_buf_dispose(&json);
    free_all(c, 3);
}

/* A child that was joined before has moved what the next has written into, in a later call. Both
 * joins are merges: the parent has written into a chunk that is met. */
TEST(moves_are_followed_from_one_join_to_the_next)
{
    brc_oid id;
    fill(s, 50, 1, 5); /* so that children begin from a commit of their own */
    brc_session *c[] = {kit_fork(&t, s), kit_fork(&t, s)};
    fill(s, 31, 1, 6);
    fill(c[0], 30, 1, 6);
    OK(&t, brc_node_move(c[0], "/a", "/b", 0, &t.err));
    fill(c[1], 0, 1, 7);
    OK(&t, join_of(NULL, c, 1));
    scenario_set_number(&t, "/a", 20, 9); /* on the branch, under the name that it has there */
    scenario_commit(&t, "second");
    OK(&t, join_of(NULL, c + 1, 1));
    OK(&t, kit_commit(&t, s, &id));
    static const int32_t want[][2] = {{0, 7}, {20, 9}, {30, 6}, {31, 6}, {50, 5}};
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
        ck_assert_int_eq(scenario_number(&t, t.session, "/b", (uint64_t)want[i][0]), want[i][1]);
    free_all(c, 2);
}

/* The parent's move is in the commit that the second child began from. */
TEST(two_moves_of_one_node_are_a_conflict)
{
    char tree[100];
    brc_iter *it;
    brc_session *c[] = {kit_fork(&t, s), NULL};
    OK(&t, brc_node_move(s, "/a", "/c", 0, &t.err));
    c[1] = kit_fork(&t, s);
    OK(&t, brc_node_move(c[0], "/a", "/b", 0, &t.err));
    FAILS(&t, BRC_ECONFLICT, join_of(&it, c, 2));
    ck_assert_str_eq(conflicts_are(it, c, 2), "/c moved - of 1; ");
    ck_assert_str_eq(scenario_tree(&t, s, "/", 1, tree, sizeof(tree)), "/ /c* ");
    free_all(c, 2);
}

TEST(what_the_parent_wrote_in_between_counts)
{
    brc_oid id;
    brc_session *c[] = {kit_fork(&t, s), NULL, NULL};
    fill(s, 0, 2, 1);
    c[1] = kit_fork(&t, s);
    fill(s, 2, 2, 2);
    OK(&t, kit_commit(&t, s, &id)); /* its draft goes on */
    fill(s, 4, 2, 3);
    c[2] = kit_fork(&t, s);
    fill(c[0], 6, 1, 10);
    fill(c[1], 7, 1, 11);
    fill(c[2], 8, 1, 12);
    brc_session *turned[] = {c[2], c[0], c[1]};
    OK(&t, join_of(NULL, turned, 3));
    static const int32_t want[] = {1, 1, 2, 2, 3, 3, 10, 11, 12, 9};
    for (uint64_t i = 0; i < 10; i++)
        need(s, i, want[i]);
    free_all(c, 3);
}

TEST(a_child_joins_its_own_children_first)
{
    brc_session *c[] = {kit_fork(&t, s), kit_fork(&t, s)}, *mine = s;
    fill(c[0], 0, 2, 1);
    brc_session *grand[] = {kit_fork(&t, c[0]), kit_fork(&t, c[0])};
    fill(grand[0], 1, 1, 5);
    fill(grand[1], 2, 1, 6);
    OK(&t, brc_node_move(grand[1], "/a", "/b", 0, &t.err));
    FAILS(&t, BRC_EMISUSE, join_of(NULL, grand, 2)); /* not with the grandparent */
    s = c[0];
    OK(&t, join_of(NULL, grand, 2));
    s = mine;
    fill(c[1], 3, 1, 7);
    OK(&t, join_of(NULL, c, 2));
    static const int32_t want[] = {1, 5, 6, 7, 4};
    for (uint64_t i = 0; i < 5; i++)
        ck_assert_int_eq(scenario_number(&t, s, "/b", i), want[i]);
    free_all(grand, 2);
    free_all(c, 2);
}

TEST(a_new_repository_can_be_forked_before_its_first_commit)
{
    brc_oid id;
    char tree[100];
    scenario empty = {0};
    scenario_start(&empty);
    brc_session *parent = kit_private(&empty, NULL);
    brc_session *c[] = {kit_fork(&empty, parent), kit_fork(&empty, parent)};
    char *tokens[2];
    OK(&empty, brc_group_create(c[0], "/x", NULL, &empty.err));
    OK(&empty, brc_attrs_set(c[0], "/", "k", "1", &empty.err));
    OK(&empty, brc_group_create(c[1], "/y", NULL, &empty.err));
    OK(&empty, brc_attrs_set(c[1], "/", "l", "1", &empty.err));
    for (int i = 0; i < 2; i++)
        tokens[i] = kit_token(&empty, c[i]);
    OK(&empty, brc_session_join(NULL, parent, (const char *const *)tokens, 2, 0, &empty.err));
    OK(&empty, kit_commit(&empty, parent, &id));
    ck_assert_str_eq(scenario_tree(&empty, empty.session, "/", 1, tree, sizeof(tree)), "/ /x /y ");
    for (int i = 0; i < 2; i++)
        free(tokens[i]);
    free_all(c, 2);
    brc_session_free(parent);
    scenario_whole(&empty);
    scenario_stop(&empty);
}

/* ---- what cannot be joined -------------------------------- */

TEST(a_child_is_joined_once)
{
    brc_session *c[] = {kit_fork(&t, s), kit_fork(&t, s)};
    char *token = kit_token(&t, c[0]);
    const char *twice[] = {token, token};
    fill(c[0], 0, 1, 1);
    FAILS(&t, BRC_EINVAL, brc_session_join(NULL, s, twice, 2, 0, &t.err));
    OK(&t, brc_session_join(NULL, s, twice, 1, 0, &t.err));
    FAILS(&t, BRC_ESTALE, brc_session_join(NULL, s, twice, 1, 0, &t.err));
    ck_assert_ptr_nonnull(strstr(t.err.message, "joined"));
    /* one of two is gone: the other stays as well */
    fill(c[1], 1, 1, 2);
    char *other = kit_token(&t, c[1]);
    const char *both[] = {other, token};
    FAILS(&t, BRC_ESTALE, brc_session_join(NULL, s, both, 2, 0, &t.err));
    need(s, 1, 1);
    need(c[1], 1, 2);
    OK(&t, brc_session_join(NULL, s, NULL, 0, 0, &t.err));
    free(token);
    free(other);
    free_all(c, 2);
}

TEST(only_the_parent_joins_and_only_children)
{
    brc_session *other = kit_private(&t, NULL), *c[] = {kit_fork(&t, other)};
    FAILS(&t, BRC_EMISUSE, join_of(NULL, &other, 1));
    FAILS(&t, BRC_EMISUSE, join_of(NULL, c, 1));
    brc_session *shared = scenario_session(&t, t.repo, NULL, BRC_SESSION_WRITE);
    char *token = kit_token(&t, c[0]);
    const char *tokens[] = {token};
    FAILS(&t, BRC_EMISUSE, brc_session_join(NULL, shared, tokens, 1, 0, &t.err));
    FAILS(&t, BRC_EINVAL, brc_session_join(NULL, other, tokens, 1, 1, &t.err));
    OK(&t, brc_begin(t.repo, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_session_join(NULL, other, tokens, 1, 0, &t.err));
    OK(&t, brc_end(t.repo, 0, &t.err));
    OK(&t, brc_bulk_begin(other, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_session_join(NULL, other, tokens, 1, 0, &t.err));
    OK(&t, brc_bulk_end(other, 0, &t.err));
    OK(&t, brc_savepoint(other, BRC_SAVEPOINT_SET, "p", &t.err));
    FAILS(&t, BRC_EMISUSE, brc_session_join(NULL, other, tokens, 1, 0, &t.err));
    OK(&t, brc_savepoint(other, BRC_SAVEPOINT_RELEASE, "p", &t.err));
    FAILS(&t, BRC_EMISUSE, brc_session_hand_over(c[0], s, &t.err));
    OK(&t, brc_session_join(NULL, other, tokens, 1, 0, &t.err));
    free(token);
    brc_session_free(shared);
    free_all(c, 1);
    brc_session_free(other);
}

TEST(an_interrupted_join_changes_nothing)
{
    brc_session *c[] = {kit_fork(&t, s), kit_fork(&t, s)};
    fill(c[0], 0, 20, 1);
    fill(c[1], 20, 20, 2);
    brc_interrupt(t.repo, 1);
    char *tokens[2];
    brc_interrupt(t.repo, 0);
    for (int i = 0; i < 2; i++)
        tokens[i] = kit_token(&t, c[i]);
    brc_interrupt(t.repo, 1);
    FAILS(&t, BRC_EINTERRUPT,
          brc_session_join(NULL, s, (const char *const *)tokens, 2, 0, &t.err));
    brc_interrupt(t.repo, 0);
    need(s, 0, 0);
    need(c[1], 20, 2);
    OK(&t, brc_session_join(NULL, s, (const char *const *)tokens, 2, 0, &t.err));
    need(s, 39, 2);
    for (int i = 0; i < 2; i++)
        free(tokens[i]);
    free_all(c, 2);
}

/* ---- keys that are neither nodes nor chunks -------------------------------- */

static void set_key(brc_session *of, const char *key, const char *text)
{
    OK(&t, brc_key_set(of, key, text, strlen(text), 0, &t.err));
}

static int has_key(brc_session *of, const char *key)
{
    return scenario_has_key(&t, of, key);
}

TEST(keys_that_are_no_chunk_yet_are_joined)
{
    static const char doc[] =
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4],\"data_type\":\"uint8\","
        "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2]}},"
        "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,"
        "\"codecs\":[{\"name\":\"bytes\"}]}";
    uint8_t got[4];
    set_key(s, "z/c/0", "AB");
    set_key(s, "old", "1");
    set_key(s, "stays", "1");
    brc_session *c[] = {kit_fork(&t, s), kit_fork(&t, s), kit_fork(&t, s)};
    ck_assert_int_eq(has_key(c[0], "z/c/0"), 1);
    set_key(c[0], "z/zarr.json", doc); /* its chunk is one now, there */
    set_key(c[1], "z/c/1", "CD");      /* and this one not yet */
    OK(&t, brc_key_delete(c[2], "old", 0, &t.err));
    set_key(c[2], "new", "2");
    OK(&t, join_of(NULL, c, 3));
    ck_assert_int_eq(has_key(s, "old"), 0);
    ck_assert_int_eq(has_key(s, "new"), 1);
    ck_assert_int_eq(has_key(s, "stays"), 1);
    brc_array *a = scenario_array_at(&t, s, "/z");
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    ck_assert_mem_eq(got, "ABCD", 4);
    brc_array_free(a);
    free_all(c, 3);
    OK(&t, brc_key_delete(s, "new", 0, &t.err));
    OK(&t, brc_key_delete(s, "stays", 0, &t.err));
    brc_oid id;
    OK(&t, kit_commit(&t, s, &id));
}

TEST(a_key_with_two_values_is_a_conflict)
{
    brc_iter *it;
    set_key(s, "k", "0");
    brc_session *c[] = {kit_fork(&t, s), kit_fork(&t, s)};
    set_key(c[0], "k", "1");
    OK(&t, brc_key_delete(c[1], "k", 0, &t.err));
    FAILS(&t, BRC_ECONFLICT, join_of(&it, c, 2));
    ck_assert_str_eq(conflicts_are(it, c, 2), "/k deleted - of 2; ");
    OK(&t, brc_session_discard(c[1], &t.err));
    ck_assert_int_eq(has_key(c[1], "k"), 1);
    OK(&t, join_of(NULL, c, 2));
    ck_assert_int_eq(has_key(s, "k"), 1);
    free_all(c, 2);
}
