/* Documents that are changed again and again: what stays of them in the file. */
#include <stdio.h>

#include "../../src/base/buf.h"
#include "../kit/fsck_kit.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(draft_doc);

enum { ATTRIBUTES = 20000, SETS = 200 };

static void set_attribute(scenario *t, const char *path, const char *key, int value)
{
    char json[32];
    snprintf(json, sizeof(json), "%d", value);
    OK(t, brc_attrs_set(t->session, path, key, json, &t->err));
}

static void attribute_is(scenario *t, brc_session *s, const char *path, const char *key, int value)
{
    char json[32];
    brc_buf text = BRC_BUF_INIT;
    snprintf(json, sizeof(json), "%d", value);
    OK(t, brc_attrs_get(&text, s, path, key, &t->err));
    ck_assert_str_eq((const char *)text.data, json);
    brc_buf_dispose(&text);
}

/* A group with so many attributes, which do not compress to nothing. */
static size_t new_group(scenario *t, const char *path, int n)
{
    brc_buf json = BRC_BUF_INIT;
    uint64_t random = 5;
    OK(t, brc_buf_append(&json, "{", 1, &t->err));
    for (int i = 0; i < n; i++) {
        char one[64];
        const int len = snprintf(one, sizeof(one), "%s\"attribute%d\":%llu", i > 0 ? "," : "", i,
                                 (unsigned long long)scenario_random(&random) % 1000000);
        OK(t, brc_buf_append(&json, one, (size_t)len, &t->err));
    }
    OK(t, brc_buf_append(&json, "}", 2, &t->err));
    const size_t len = json.len;
    OK(t, brc_group_create(t->session, path, (const char *)json.data, &t->err));
    brc_buf_dispose(&json);
    return len;
}

static int64_t pages(scenario *t)
{
    return scenario_ask(t, "SELECT page_count FROM pragma_page_count");
}

static int64_t rows(scenario *t)
{
    return scenario_ask(t, "SELECT count(*) FROM draft_doc");
}

static int64_t documents(scenario *t)
{
    return scenario_ask(t, "SELECT count(*) FROM object WHERE kind=2");
}

CASE("documents", .timeout = 120);

TEST(setting_one_attribute_many_times_leaves_one_document)
{
    scenario t;
    scenario_start(&t);
    const int64_t len = (int64_t)new_group(&t, "/g", ATTRIBUTES);
    scenario_commit(&t, "all");
    const int64_t before = pages(&t), objects = documents(&t);
    for (int i = 0; i < SETS; i++)
        set_attribute(&t, "/g", "attribute777", i);
    ck_assert_int_eq(rows(&t), 1);
    ck_assert_int_eq(documents(&t), objects);
    /* one document in the draft, and what SQLite frees of the last while it writes the next */
    ck_assert_int_le((pages(&t) - before) * 16384, len);
    ck_assert_int_lt(scenario_ask(&t, "SELECT length(data) FROM draft_doc"), len / 2);
    attribute_is(&t, t.session, "/g", "attribute777", SETS - 1);
    scenario_whole(&t);
    scenario_reopen(&t); /* as after a process that was killed */
    attribute_is(&t, t.session, "/g", "attribute777", SETS - 1);
    scenario_commit(&t, "set");
    ck_assert_int_eq(rows(&t), 0);
    ck_assert_int_eq(documents(&t), objects + 1);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM object WHERE kind=2 AND size>1000000"
                                      " AND stored*2>size"), 0);
    ck_assert_int_le((pages(&t) - before) * 16384, 2 * len);
    scenario_reopen(&t);
    attribute_is(&t, t.session, "/g", "attribute777", SETS - 1);
    scenario_whole(&t);
    scenario_stop(&t);
}

/* Rows belong to nodes, whatever becomes of these. */
TEST(documents_follow_their_nodes)
{
    scenario t;
    scenario_start(&t);
    new_group(&t, "/g", 3);
    scenario_commit(&t, "one");
    set_attribute(&t, "/g", "a", 1);
    ck_assert_int_eq(rows(&t), 1);
    OK(&t, brc_node_move(t.session, "/g", "/h", BRC_NODE_COPY, &t.err));
    ck_assert_int_eq(rows(&t), 2);
    set_attribute(&t, "/g", "a", 2); /* the copy keeps its own */
    attribute_is(&t, t.session, "/h", "a", 1);
    attribute_is(&t, t.session, "/g", "a", 2);
    ck_assert_int_eq(rows(&t), 2);
    scenario_whole(&t);
    OK(&t, brc_node_move(t.session, "/h", "/moved", 0, &t.err));
    attribute_is(&t, t.session, "/moved", "a", 1);
    OK(&t, brc_node_remove(t.session, "/g", &t.err));
    ck_assert_int_eq(rows(&t), 1);
    OK(&t, brc_node_restore(t.session, "/g", NULL, &t.err));
    ck_assert_int_eq(rows(&t), 1);
    set_attribute(&t, "/g", "a", 3);
    OK(&t, brc_attrs_set(t.session, "/g", "a", NULL, &t.err)); /* as it was committed */
    ck_assert_int_eq(rows(&t), 1);
    set_attribute(&t, "/g", "a", 4);
    ck_assert_int_eq(rows(&t), 2);
    scenario_whole(&t);
    OK(&t, brc_session_discard(t.session, &t.err));
    ck_assert_int_eq(rows(&t), 0);
    scenario_whole(&t);
    scenario_stop(&t);
}

/* In a transaction that is undone nothing is left, and what was there is there again. */
TEST(an_undone_change_brings_the_last_document_back)
{
    scenario t;
    scenario_start(&t);
    new_group(&t, "/g", 500);
    scenario_commit(&t, "one");
    set_attribute(&t, "/g", "a", 1);
    OK(&t, brc_begin(t.repo, &t.err));
    set_attribute(&t, "/g", "a", 2);
    attribute_is(&t, t.session, "/g", "a", 2);
    OK(&t, brc_end(t.repo, 0, &t.err));
    attribute_is(&t, t.session, "/g", "a", 1);
    scenario_reopen(&t);
    attribute_is(&t, t.session, "/g", "a", 1);
    ck_assert_int_eq(rows(&t), 1);
    scenario_whole(&t);
    scenario_stop(&t);
}

/* The same text in two nodes, in two drafts; one is committed. */
TEST(drafts_do_not_share_documents)
{
    scenario t;
    scenario_start(&t);
    new_group(&t, "/g", 500);
    scenario_commit(&t, "one");
    brc_session *own = scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE);
    OK(&t, brc_attrs_set(own, "/g", "a", "1", &t.err));
    set_attribute(&t, "/g", "a", 1);
    ck_assert_int_eq(rows(&t), 2);
    scenario_commit(&t, "two");
    ck_assert_int_eq(rows(&t), 1);
    attribute_is(&t, own, "/g", "a", 1);
    OK(&t, brc_attrs_set(own, "/g", "a", "2", &t.err));
    attribute_is(&t, t.session, "/g", "a", 1);
    ck_assert_int_eq(rows(&t), 1);
    scenario_whole(&t);
    OK(&t, brc_session_discard(own, &t.err));
    brc_session_free(own);
    ck_assert_int_eq(rows(&t), 0);
    scenario_stop(&t);
}

/* Where two drafts become one, of what either changed the document is kept that counts. */
TEST(adopted_drafts_bring_their_documents)
{
    scenario t;
    scenario_start(&t);
    new_group(&t, "/g", 500);
    new_group(&t, "/h", 500);
    new_group(&t, "/k", 500);
    scenario_commit(&t, "one");
    brc_session *own = scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE);
    OK(&t, brc_attrs_set(own, "/g", "a", "1", &t.err));
    OK(&t, brc_attrs_set(own, "/k", "a", "3", &t.err));
    set_attribute(&t, "/h", "a", 2);
    set_attribute(&t, "/k", "a", 3); /* as the other did */
    ck_assert_int_eq(rows(&t), 4);
    OK(&t, brc_session_hand_over(own, t.session, &t.err));
    ck_assert_int_eq(rows(&t), 3);
    attribute_is(&t, t.session, "/g", "a", 1);
    attribute_is(&t, t.session, "/h", "a", 2);
    attribute_is(&t, t.session, "/k", "a", 3);
    scenario_whole(&t);
    scenario_commit(&t, "both");
    ck_assert_int_eq(rows(&t), 0);
    attribute_is(&t, t.session, "/g", "a", 1);
    attribute_is(&t, t.session, "/k", "a", 3);
    brc_session_free(own);
    scenario_whole(&t);
    scenario_stop(&t);
}

LOOP(damaged_documents_are_found, 0, 6)
{
    static const char *const damages[] = {
        "UPDATE draft_doc SET data=zeroblob(40)", "UPDATE draft_doc SET encoding=77",
        "UPDATE draft_doc SET encoding=0", "UPDATE draft_doc SET node=node+1",
        "DELETE FROM draft_doc",
        ("UPDATE draft_doc SET (data, encoding)=(SELECT data, encoding FROM draft_doc d"
        " WHERE d.node<>draft_doc.node) WHERE node=(SELECT node FROM draft_node WHERE path='/g')"),
    };
    scenario t;
    brc_buf text = BRC_BUF_INIT;
    scenario_start(&t);
    new_group(&t, "/g", 500);
    if (_i == 5)
        new_group(&t, "/h", 500);
    scenario_commit(&t, "one");
    set_attribute(&t, "/g", "a", 1);
    if (_i == 5)
        set_attribute(&t, "/h", "b", 2);
    scenario_close(&t);
    scenario_sql(&t, damages[_i]);
    scenario_open(&t, NULL, 0);
    uint64_t checked;
    int found = 0;
    OK(&t, brc_fsck(t.repo, 0, fsck_counts, NULL, &found, &checked, &t.err));
    ck_assert_int_gt(found, 0);
    if (_i != 3)
        ck_assert_int_eq(brc_attrs_get(&text, t.session, "/g", NULL, &t.err), BRC_ECORRUPT);
    brc_buf_dispose(&text);
    scenario_stop(&t);
}
