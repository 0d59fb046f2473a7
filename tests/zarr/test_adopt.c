/* A draft laid over another: what both did where it is not the same thing, else nothing. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/store/db.h"
#include "../../src/work/adopt.h"
#include "../../src/work/session.h"
#include "../kit/drafts_kit.h"
#include "../kit/hooked_kit.h"
#include "../kit/ios.h"
#include "../kit/step_count.h"
#include "../kit/suite.h"

TEST_SUITE(adopt);

SCENARIO_FIXTURE(t)

/* /a has 8 numbers in chunks of 2, /g/b as many, /g has an attribute. */
static void adopt_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 2, 0);
    OK(&t, brc_group_create(t.session, "/g", "{\"unit\":\"m\"}", &t.err));
    scenario_numbers(&t, "/g/b", 8, 2, 100);
    scenario_commit(&t, "first");
}

/* "put /a 3 70; attr /a unit "m"; rm /g; mv /a /c; cp /a /c; group /h; new /n; size /a 4; " */
static void apply(brc_session *s, const char *steps)
{
    char one[32], two[32];
    unsigned i;
    int value, len;
    for (const char *at = steps; *at != '\0'; at += strcspn(at, ";") + 2) {
        if (sscanf(at, "put %31s %u %d", one, &i, &value) == 3)
            scenario_put(&t, s, one, i, value);
        else if (sscanf(at, "attr %31s %31[a-z] %n", one, two, &len) == 2) {
            char json[32];
            snprintf(json, sizeof(json), "%.*s", (int)strcspn(at + len, ";"), at + len);
            OK(&t, brc_attrs_set(s, one, two, json, &t.err));
        } else if (sscanf(at, "rm %31[^;]", one) == 1)
            OK(&t, brc_node_remove(s, one, &t.err));
        else if (sscanf(at, "mv %31s %31[^;]", one, two) == 2)
            OK(&t, brc_node_move(s, one, two, 0, &t.err));
        else if (sscanf(at, "cp %31s %31[^;]", one, two) == 2)
            OK(&t, brc_node_move(s, one, two, BRC_NODE_COPY, &t.err));
        else if (sscanf(at, "group %31[^;]", one) == 1)
            OK(&t, brc_group_create(s, one, NULL, &t.err));
        else if (sscanf(at, "old %31[^;]", one) == 1)
            OK(&t, brc_node_restore(s, one, "HEAD", &t.err));
        else if (sscanf(at, "size %31s %u", one, &i) == 2) {
            brc_array *a = scenario_array_at(&t, s, one);
            OK(&t, brc_array_resize(a, (uint64_t[]){i}, &t.err));
            brc_array_free(a);
        } else if (sscanf(at, "new %31s %u", one, &i) == 2) {
            brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
            brc_array *a;
            uint64_t shape = 8, chunk = i;
            spec.dtype = "int32";
            spec.ndim = 1;
            spec.shape = &shape;
            spec.chunk = &chunk;
            OK(&t, brc_array_create(&a, s, one, &spec, &t.err));
            brc_array_free(a);
        } else
            ck_abort_msg("what is %s?", at);
    }
}

/* Every node, with its attributes and its numbers. */
static void describe(brc_session *s, char *out, size_t size)
{
    brc_iter *it;
    const brc_node *node;
    int rc;
    out[0] = '\0';
    OK(&t, brc_list(&it, s, "/", BRC_LIST_RECURSE, &t.err));
    while ((rc = brc_next(it, &node, &t.err)) > 0) {
        brc_buf attrs = BRC_BUF_INIT;
        size_t at = strlen(out);
        OK(&t, brc_attrs_get(&attrs, s, node->path, NULL, &t.err));
        snprintf(out + at, size - at, "%s%s", node->path,
                 strcmp((char *)attrs.data, "{}") != 0 ? (char *)attrs.data : "");
        brc_buf_dispose(&attrs);
        if (node->kind == BRC_ARRAY) {
            int32_t v[8] = {0};
            brc_array *a = scenario_array_at(&t, s, node->path);
            uint64_t n = brc_array_describe(a)->shape[0];
            OK(&t, brc_array_read(a, NULL, v, 4 * n, &t.err));
            brc_array_free(a);
            for (uint64_t i = 0; i < n; i++) {
                at = strlen(out);
                snprintf(out + at, size - at, "%c%d", i == 0 ? '=' : ',', v[i]);
            }
        }
        snprintf(out + strlen(out), size - strlen(out), " ");
    }
    ck_assert_msg(rc == 0, "%s", t.err.message);
    brc_iter_free(it);
}

#define A0 "/a=0,1,2,3,4,5,6,7 "
#define G0 "/g{\"unit\":\"m\"} "
#define B0 "/g/b=100,101,102,103,104,105,106,107 "

static const struct adopt_case {
    /* both: NULL, a conflict; "*" first: they have changed the same, so they are merged, and their
     * rows do not become rows of one. */
    const char *shared, *mine, *both;
} adopt_cases[] = {
    /* chunks */
    {"put /a 0 50; ", "put /a 2 70; ", "/ /a=50,1,70,3,4,5,6,7 " G0 B0},
    {"put /a 0 50; put /g/b 7 57; ", "put /a 2 70; put /g/b 0 77; ",
     "/ /a=50,1,70,3,4,5,6,7 " G0 "/g/b=77,101,102,103,104,105,106,57 "},
    {"put /a 0 50; ", "put /a 1 70; ", "*/ /a=50,70,2,3,4,5,6,7 " G0 B0}, /* one chunk */
    {"put /a 0 50; ", "put /a 0 70; ", NULL},
    {"put /a 0 50; ", "put /a 0 50; ", "/ /a=50,1,2,3,4,5,6,7 " G0 B0},
    {"put /a 0 50; ", "put /a 0 0; put /a 1 0; ", "*/ /a=50,0,2,3,4,5,6,7 " G0 B0}, /* all fill */
    {"put /a 1 50; ", "put /a 0 0; put /a 1 0; ", NULL},
    {"put /a 7 50; ", "put /a 0 0; put /a 1 0; ", "/ /a=0,0,2,3,4,5,6,50 " G0 B0},
    /* documents */
    {"put /a 0 50; ", "attr /a unit \"s\"; ", "*/ /a{\"unit\":\"s\"}=50,1,2,3,4,5,6,7 " G0 B0},
    {"attr /a unit \"s\"; ", "put /a 0 50; ", "*/ /a{\"unit\":\"s\"}=50,1,2,3,4,5,6,7 " G0 B0},
    {"attr /a unit \"s\"; put /a 0 50; ", "put /a 2 70; ",
     "*/ /a{\"unit\":\"s\"}=50,1,70,3,4,5,6,7 " G0 B0},
    {"attr /a unit \"s\"; ", "attr /a unit \"m\"; ", NULL},
    {"attr /a unit \"s\"; ", "attr /a unit \"s\"; ", "/ /a{\"unit\":\"s\"}=0,1,2,3,4,5,6,7 " G0 B0},
    {"attr /g unit \"s\"; ", "put /g/b 0 70; new /g/n 2; ",
     "/ " A0 "/g{\"unit\":\"s\"} /g/b=70,101,102,103,104,105,106,107 /g/n=0,0,0,0,0,0,0,0 "},
    /* form against content */
    {"size /a 6; ", "put /a 0 50; ", "*/ /a=50,1,2,3,4,5 " G0 B0},
    {"put /a 0 50; ", "size /a 6; ", "*/ /a=50,1,2,3,4,5 " G0 B0},
    {"size /a 6; ", "put /a 7 50; ", NULL},
    {"put /a 7 50; ", "size /a 6; ", NULL},
    {"put /g/b 0 50; ", "size /a 6; ",
     "/ /a=0,1,2,3,4,5 " G0 "/g/b=50,101,102,103,104,105,106,107 "},
    {"size /a 6; ", "attr /a unit \"s\"; ", "*/ /a{\"unit\":\"s\"}=0,1,2,3,4,5 " G0 B0},
    {"size /a 6; size /a 8; ", "attr /a unit \"s\"; ",
     "*/ /a{\"unit\":\"s\"}=0,1,2,3,4,5,0,0 " G0 B0},
    {"attr /a unit \"s\"; ", "size /a 6; size /a 8; ",
     "*/ /a{\"unit\":\"s\"}=0,1,2,3,4,5,0,0 " G0 B0},
    {"size /a 6; size /a 8; ", "put /a 0 9; ", "*/ /a=9,1,2,3,4,5,0,0 " G0 B0},
    {"size /a 6; ", "size /a 6; ", "/ /a=0,1,2,3,4,5 " G0 B0},
    /* removed */
    {"rm /a; ", "put /g/b 0 70; ", "/ " G0 "/g/b=70,101,102,103,104,105,106,107 "},
    {"rm /a; ", "put /a 0 70; ", NULL},
    {"put /a 0 70; ", "rm /a; ", NULL},
    {"rm /a; ", "rm /a; ", "/ " G0 B0},
    {"rm /g; ", "put /g/b 0 70; ", NULL},
    {"rm /g; ", "group /g/h; ", NULL},
    {"put /g/b 0 70; ", "rm /g; ", NULL},
    {"attr /g unit \"s\"; ", "rm /g; ", NULL},
    {"put /a 0 70; ", "rm /g; ", "/ /a=70,1,2,3,4,5,6,7 "},
    {"rm /g; ", "rm /g/b; ", "/ " A0},
    {"group /h; ", "rm /a; group /a; ", "/ /a " G0 B0 "/h "},
    {"put /a 0 70; ", "rm /a; group /a; ", NULL},
    /* made */
    {"new /n 2; ", "new /m 2; put /m 0 1; ",
     "/ " A0 G0 B0 "/m=1,0,0,0,0,0,0,0 /n=0,0,0,0,0,0,0,0 "},
    {"new /n 2; put /n 0 1; ", "new /n 2; put /n 2 2; ", "/ " A0 G0 B0 "/n=1,0,2,0,0,0,0,0 "},
    {"new /n 2; ", "new /n 4; ", NULL},
    {"new /n 2; ", "group /n; ", NULL},
    {"group /h; ", "group /h; new /h/n 2; ", "/ " A0 G0 B0 "/h /h/n=0,0,0,0,0,0,0,0 "},
    {"new /n 2; put /n 0 1; ", "new /n 2; ", "/ " A0 G0 B0 "/n=1,0,0,0,0,0,0,0 "},
    /* made, with what is in it */
    {"group /h; ", "group /n; group /n/a; new /n/a/x 2; put /n/a/x 0 7; group /n-1; new /n/z 4; ",
     "/ " A0 G0 B0 "/h /n /n/a /n/a/x=7,0,0,0,0,0,0,0 /n/z=0,0,0,0,0,0,0,0 /n-1 "},
    {"group /n; ", "group /n; group /n/a; new /n/a/x 2; put /n/a/x 0 7; ",
     "/ " A0 G0 B0 "/n /n/a /n/a/x=7,0,0,0,0,0,0,0 "},
    {"group /n; group /n/a; new /n/a/x 2; put /n/a/x 2 8; ",
     "group /n; group /n/a; new /n/a/x 2; put /n/a/x 0 7; ",
     "/ " A0 G0 B0 "/n /n/a /n/a/x=7,0,8,0,0,0,0,0 "},
    {"group /n; group /n/a; new /n/a/x 4; ", "group /n; group /n/a; new /n/a/x 2; ", NULL},
    {"new /n 2; ", "group /n; group /n/a; ", NULL},
    {"group /n; group /n/a; rm /n; ", "group /n; group /n/a; group /n/b; rm /n/a; ",
     "/ " A0 G0 B0 "/n /n/b "},
    {"group /h; ", "group /n; mv /a /n/a; put /n/a 0 70; ",
     "/ " G0 B0 "/h /n /n/a=70,1,2,3,4,5,6,7 "},
    {"put /a 0 9; ", "group /n; mv /a /n/a; ", "*/ " G0 B0 "/n /n/a=9,1,2,3,4,5,6,7 "},
    {"mv /g /n; mv /n /h; ", "group /n; new /n/b 2; ",
     "/ " A0 "/h{\"unit\":\"m\"} /h/b=100,101,102,103,104,105,106,107 /n /n/b=0,0,0,0,0,0,0,0 "},
    /* moved */
    {"group /h; ", "mv /a /c; put /c 0 70; ", "/ /c=70,1,2,3,4,5,6,7 " G0 B0 "/h "},
    {"mv /a /c; put /c 0 70; ", "group /h; put /g/b 0 1; ",
     "/ /c=70,1,2,3,4,5,6,7 " G0 "/g/b=1,101,102,103,104,105,106,107 /h "},
    {"put /a 0 70; ", "mv /a /c; ", "*/ /c=70,1,2,3,4,5,6,7 " G0 B0},
    {"mv /a /c; ", "put /a 0 70; ", "*/ /c=70,1,2,3,4,5,6,7 " G0 B0},
    {"mv /a /c; ", "mv /a /d; ", NULL},
    {"mv /g /h; ", "put /g/b 0 70; ",
     "*/ " A0 "/h{\"unit\":\"m\"} /h/b=70,101,102,103,104,105,106,107 "},
    {"put /g/b 0 70; ", "mv /g /h; ",
     "*/ " A0 "/h{\"unit\":\"m\"} /h/b=70,101,102,103,104,105,106,107 "},
    {"mv /g/b /c; ", "attr /g unit \"s\"; ", "/ " A0 "/c=100,101,102,103,104,105,106,107 "
                                              "/g{\"unit\":\"s\"} "},
    {"cp /a /c; put /c 0 70; ", "cp /a /c; ", "/ " A0 "/c=70,1,2,3,4,5,6,7 " G0 B0},
};

static brc_session *private_session(void)
{
    return scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE);
}

/* A private draft against the branch's shared one, whichever was made first. */
static void adopt_case_of(const struct adopt_case *c, int mine_first)
{
    static char before[2000], after[2000];
    const int merges = c->both != NULL && *c->both == '*';
    const char *both = merges ? c->both + 1 : c->both;
    brc_session *mine = private_session();
    if (mine_first)
        apply(mine, c->mine);
    apply(t.session, c->shared);
    if (!mine_first)
        apply(mine, c->mine);
    static const char rows[] = "SELECT coalesce(sum(node*1000+1), 0) FROM draft_chunk";
    const int64_t chunks = scenario_ask(&t, rows);
    int rc;
    if (both == NULL) {
        describe(t.session, before, sizeof(before));
        rc = brc_session_hand_over(mine, t.session, &t.err);
        ck_assert_msg(rc == BRC_ECONFLICT, "%s| %s", c->shared, c->mine);
        describe(t.session, after, sizeof(after));
        ck_assert_str_eq(after, before);
        ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft"), 2);
        brc_session_free(mine);
        return;
    }
    rc = brc_session_hand_over(mine, t.session, &t.err);
    ck_assert_msg(rc == BRC_OK, "%s| %s: %s", c->shared, c->mine, t.err.message);
    describe(t.session, after, sizeof(after));
    ck_assert_str_eq(after, both);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft"), 1);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft_node WHERE path='/'"),
                     merges);
    if (!merges && strstr(c->mine, "rm") == NULL) /* no chunk has changed its row */
        ck_assert_int_eq(scenario_ask(&t, rows), chunks);
    /* it goes on from the branch */
    describe(mine, before, sizeof(before));
    ck_assert_str_eq(before, "/ " A0 G0 B0);
    brc_session_free(mine);
    scenario_whole(&t);
    scenario_commit(&t, "both");
    scenario_reopen(&t);
    describe(t.session, before, sizeof(before));
    ck_assert_str_eq(before, both);
}

CASE("drafts", .setup = adopt_setup, .teardown = t_stop, .timeout = 60);

LOOP(two_drafts_become_one, 0, 2 * (int)(sizeof(adopt_cases) / sizeof(adopt_cases[0])))
{
    adopt_case_of(&adopt_cases[_i / 2], _i % 2);
}

TEST(a_session_without_changes_takes_a_draft_over)
{
    static char text[2000];
    brc_session *mine = private_session(), *other = private_session();
    apply(mine, "put /a 0 70; group /h; ");
    const int64_t id = scenario_ask(&t, "SELECT id FROM draft");
    OK(&t, brc_session_hand_over(mine, other, &t.err));
    describe(other, text, sizeof(text));
    ck_assert_str_eq(text, "/ /a=70,1,2,3,4,5,6,7 " G0 B0 "/h ");
    describe(mine, text, sizeof(text));
    ck_assert_str_eq(text, "/ " A0 G0 B0);
    ck_assert_int_eq(scenario_ask(&t, "SELECT id FROM draft"), id);
    /* and both go on */
    apply(mine, "put /a 2 71; ");
    apply(other, "put /a 4 72; ");
    OK(&t, brc_session_hand_over(other, mine, &t.err));
    describe(mine, text, sizeof(text));
    ck_assert_str_eq(text, "/ /a=70,1,71,3,72,5,6,7 " G0 B0 "/h ");
    OK(&t, brc_session_hand_over(mine, t.session, &t.err));
    OK(&t, brc_session_hand_over(mine, t.session, &t.err)); /* nothing is left to hand over */
    describe(t.session, text, sizeof(text));
    ck_assert_str_eq(text, "/ /a=70,1,71,3,72,5,6,7 " G0 B0 "/h ");
    FAILS(&t, BRC_EINVAL, brc_session_hand_over(t.session, mine, &t.err));
    FAILS(&t, BRC_EINVAL, brc_session_hand_over(mine, mine, &t.err));
    brc_session_free(mine);
    brc_session_free(other);
}

/* Others open a private draft by its number: it stays, whatever the draft takes over. */
LOOP(a_number_that_others_know_stays, 0, 2)
{
    static char text[2000];
    brc_session *mine = private_session(), *more = private_session(), *other;
    const int64_t id = scenario_draft(&t, mine);
    if (_i == 0) {
        apply(more, "put /a 0 70; ");
        OK(&t, brc_session_hand_over(more, mine, &t.err));
    } else {
        OK(&t, brc_bulk_begin(mine, &t.err));
        apply(mine, "put /a 0 70; ");
        OK(&t, brc_bulk_end(mine, BRC_END_KEEP, &t.err));
    }
    ck_assert_int_eq(scenario_draft(&t, mine), id);
    OK(&t, scenario_draft_open(&other, t.repo, id, &t.err));
    describe(other, text, sizeof(text));
    ck_assert_str_eq(text, "/ /a=70,1,2,3,4,5,6,7 " G0 B0);
    brc_session_free(other);
    brc_session_free(more);
    brc_session_free(mine);
}

/* Over two commits nothing can be told apart before there is a merge. */
TEST(drafts_over_two_commits_are_kept)
{
    brc_session *mine = private_session();
    apply(mine, "put /a 0 70; ");
    apply(t.session, "put /a 2 71; ");
    scenario_commit(&t, "second");
    apply(t.session, "put /a 4 72; ");
    FAILS(&t, BRC_ESTALE, brc_session_hand_over(mine, t.session, &t.err));
    ck_assert_int_eq(scenario_number(&t, mine, "/a", 0), 70);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 0);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft"), 2);
    scenario_put(&t, mine, "/a", 1, 73); /* it is still its own */
    brc_session_free(mine);
}

/* Chunks of stacks as an array has them: one by one, together, counted, and committed. Those that
 * were dropped in an upper row stay dropped. */
TEST(stacks_are_read_whole)
{
    uint64_t random = 11, chunks, bytes;
    int32_t want[8] = {0, 1, 2, 3, 4, 5, 6, 7}, got[8];
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    for (int round = 0; round < 32; round++) {
        brc_session *mine = private_session();
        const uint64_t i = (uint64_t)(round % 4) * 2; /* each chunk once between two commits */
        const int32_t v = scenario_below(&random, 2) == 0 ? 0 : round + 10;
        scenario_put(&t, mine, "/a", i, v);
        scenario_put(&t, mine, "/a", i + 1, v);
        want[i] = want[i + 1] = v;
        OK(&t, brc_session_hand_over(mine, t.session, &t.err));
        brc_session_free(mine);
        if (round < 4) /* later ones have nothing to drop where the map is empty */
            ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft_node"
                                              " WHERE path IS NULL AND draft<>0"),
                             round);
        OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
        uint64_t there = 0;
        for (uint64_t k = 0; k < 8; k++) {
            ck_assert_int_eq(got[k], want[k]);
            ck_assert_int_eq(scenario_number(&t, t.session, "/a", k), want[k]);
            there += k % 2 == 0 && (want[k] != 0 || want[k + 1] != 0);
        }
        OK(&t, brc_array_stat(&chunks, &bytes, a, &t.err));
        ck_assert_uint_eq(chunks, there);
        scenario_whole(&t);
        if (round % 4 == 3)
            scenario_commit(&t, "round");
    }
    brc_array_free(a);
}

/* ---- keys that are not yet nodes or chunks -------------------------------- */

#define DOC "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4],\"data_type\":\"uint8\"," \
            "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4]}}," \
            "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0," \
            "\"codecs\":[{\"name\":\"bytes\"}]}"
#define GROUP_DOC "{\"zarr_format\":3,\"node_type\":\"group\"}"

typedef struct set_key {
    const char *key, *value;
} set_key;

static const struct key_case {
    set_key shared[3], mine[3];
    const char *conflict; /* the key that is named */
    set_key both[2];
    int commits;
} key_cases[] = {
    {{{0}}, {{"x", "1"}, {"x/y", "2"}}, NULL, {{"x", "1"}, {"x/y", "2"}}, 0},
    {{{"z", "3"}}, {{"x", "1"}}, NULL, {{"x", "1"}, {"z", "3"}}, 0},
    {{{"x", "1"}}, {{"x", "1"}}, NULL, {{"x", "1"}}, 0},
    {{{"w", "1"}, {"x", "1"}}, {{"w", "1"}, {"x", "2"}}, "'x'", {{0}}, 0},
    {{{"n/c/0", "abcd"}}, {{"n/zarr.json", DOC}}, NULL, {{"n/c/0", "abcd"}}, 1},
    {{{"n/zarr.json", DOC}}, {{"n/c/0", "abcd"}}, NULL, {{"n/c/0", "abcd"}}, 1},
    {{{"n/c/0", "abcd"}}, {{"n/zarr.json", DOC}, {"n/c/0", "efgh"}}, "'n/c/0'", {{0}}, 0},
    {{{"n/zarr.json", DOC}, {"n/c/0", "efgh"}}, {{"n/c/0", "abcd"}}, "'n/c/0'", {{0}}, 0},
    {{{"h/j/zarr.json", GROUP_DOC}},
     {{"h/i/zarr.json", GROUP_DOC}},
     NULL,
     {{"h/zarr.json", NULL}},
     1},
};

static void set_keys(brc_session *s, const set_key *keys)
{
    for (int i = 0; i < 3 && keys[i].key != NULL; i++)
        OK(&t, brc_key_set(s, keys[i].key, keys[i].value, strlen(keys[i].value), 0, &t.err));
}

static void keys_are(brc_session *s, const set_key *keys)
{
    for (int i = 0; i < 2 && keys[i].key != NULL; i++) {
        brc_buf out = BRC_BUF_INIT;
        int rc = brc_key_get(&out, s, keys[i].key, NULL, NULL, &t.err);
        ck_assert_int_eq(rc, keys[i].value != NULL ? BRC_OK : BRC_ENOTFOUND);
        if (rc == BRC_OK && strstr(keys[i].key, "zarr.json") == NULL) { /* bytes as they came */
            ck_assert_uint_eq(out.len, strlen(keys[i].value));
            ck_assert_mem_eq(out.data, keys[i].value, out.len);
        }
        brc_buf_dispose(&out);
    }
}

/* The same by handing over, and by adopting what another process has left. */
EACH(keys_are_adopted, key_cases)
{
    const struct key_case *c = &key_cases[_i];
    brc_session *mine = private_session();
    brc_oid id;
    set_keys(t.session, c->shared);
    set_keys(mine, c->mine);
    if (c->conflict != NULL) {
        FAILS(&t, BRC_ECONFLICT, brc_session_hand_over(mine, t.session, &t.err));
        ck_assert_msg(strstr(t.err.message, c->conflict) != NULL, "%s", t.err.message);
        for (int i = 0; i < 2; i++) { /* both have what they had */
            keys_are(mine, c->mine);
            keys_are(t.session, c->shared);
        }
    } else {
        OK(&t, brc_session_hand_over(mine, t.session, &t.err));
        keys_are(t.session, c->both);
        scenario_reopen(&t);
        keys_are(t.session, c->both);
        int rc = scenario_commit_of(&t, t.session, "both", &id);
        ck_assert_msg(rc == (c->commits ? BRC_OK : BRC_ECONFLICT), "%s", t.err.message);
    }
    brc_session_free(mine);
}

TEST(no_key_is_set_in_a_bulk_write)
{
    OK(&t, brc_key_set(t.session, "x", "1", 1, 0, &t.err));
    OK(&t, brc_bulk_begin(t.session, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_key_set(t.session, "y", "1", 1, 0, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_key_set(t.session, "y", "1", 1, BRC_KEY_NEW, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_key_delete(t.session, "x", 0, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_key_delete(t.session, "", BRC_KEY_PREFIX, &t.err));
    keys_are(t.session, (const set_key[2]){{"x", "1"}, {"y", NULL}});
    scenario_put(&t, t.session, "/a", 0, 9);
    OK(&t, brc_bulk_end(t.session, BRC_END_KEEP, &t.err));
    keys_are(t.session, (const set_key[2]){{"x", "1"}, {"y", NULL}});
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft_key WHERE draft=0"), 0);
}

/* ---- many nodes -------------------------------- */

/* n groups in one; *steps: what SQLite does for the longest transaction. */
static void many_groups(const char *above, int n, int64_t *steps)
{
    char path[80];
    step_count count = {0};
    OK(&t, brc_bulk_begin(t.session, &t.err));
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s/%d", above, i);
        OK(&t, brc_group_create(t.session, path, NULL, &t.err));
    }
    step_count_start(&count, t.repo->store->db);
    OK(&t, brc_bulk_end(t.session, BRC_END_KEEP, &t.err));
    step_count_stop(&count);
    *steps = count.transaction;
}

enum { MANY = 600, PAGE = 256 /* rows that are read at once before */ };

/* The adoption does not look up the paths of the nodes one by one. */
TEST(a_bulk_write_of_many_nodes_is_adopted_in_a_few_steps)
{
    int64_t few, many, over;
    many_groups("/n", 10, &few);
    OK(&t, brc_session_discard(t.session, &t.err));
    many_groups("/n", MANY, &many); /* the session has nothing: the draft becomes its own */
    ck_assert_int_lt(many, 20 * PAGE);
    ck_assert_int_lt(few, many);
    many_groups("/m", MANY, &over); /* laid over what it has */
    ck_assert_msg(over < 130 * MANY, "%d steps", (int)over);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft_node WHERE path IS NOT NULL"),
                     2 * MANY + 2);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft"), 1);
}

/* The most nodes that one transaction deletes, with five statements each. */
enum { DELETED = 512 };

/* A draft that is emptied, and a savepoint that is restored or released, take few steps as well.
 * Rows go to another draft all at once; only rows that are deleted go one by one. */
TEST(many_nodes_go_in_a_few_steps)
{
    step_count count = {0};
    int64_t ignored, at_end[3];
    int statements[3];
    many_groups("/n", MANY, &ignored);
    for (int way = 0; way < 3; way++) {
        OK(&t, brc_savepoint(t.session, BRC_SAVEPOINT_SET, "outer", &t.err));
        OK(&t, brc_savepoint(t.session, BRC_SAVEPOINT_SET, "inner", &t.err));
        for (int i = 0; i < MANY; i++) {
            char path[80];
            snprintf(path, sizeof(path), "/n/%d", i);
            OK(&t, brc_attrs_set(t.session, path, "way", way == 0 ? "0" : "1", &t.err));
        }
        step_count_start(&count, t.repo->store->db);
        if (way == 0)
            OK(&t, brc_savepoint(t.session, BRC_SAVEPOINT_ROLLBACK, "inner", &t.err));
        else if (way == 1)
            OK(&t, brc_savepoint(t.session, BRC_SAVEPOINT_RELEASE, "inner", &t.err));
        else
            OK(&t, brc_session_discard(t.session, &t.err));
        step_count_stop(&count);
        at_end[way] = count.transaction;
        statements[way] = count.statements;
        if (way < 2)
            OK(&t, brc_savepoint(t.session, BRC_SAVEPOINT_ROLLBACK, "outer", &t.err));
    }
    ck_assert_msg(statements[0] < 5 * DELETED + 100, "%d statements", statements[0]);
    ck_assert_msg(at_end[0] < 220 * MANY, "%d steps", (int)at_end[0]);
    ck_assert_msg(at_end[1] < 60 * MANY, "%d steps", (int)at_end[1]);
    ck_assert_msg(at_end[2] < 150 * MANY, "%d steps", (int)at_end[2]);
}

/* ---- many chunks -------------------------------- */

enum { LONG = 40000, STEP = 4096 /* chunks of a dropped draft that a transaction deletes */ };

static void put_many(brc_session *s, uint64_t first, uint64_t n)
{
    static int32_t numbers[LONG];
    brc_sel sel = BRC_SEL_INIT;
    for (uint64_t i = 0; i < n; i++)
        numbers[i] = (int32_t)(first + i) + 1;
    brc_array *a = scenario_array_at(&t, s, "/long");
    sel_all(&sel, a);
    sel.start[0] = first;
    sel.count[0] = n;
    OK(&t, brc_array_write(a, &sel, numbers, n * sizeof(*numbers), &t.err));
    brc_array_free(a);
}

static const struct {
    uint64_t first; /* of LONG / 2 numbers of the private session; the first are shared */
    int rc;
} long_cases[] = {
    {LONG / 2, BRC_OK},
    {LONG / 2 - 1, BRC_ECONFLICT}, /* the last of one is the first of the other */
};

static void two_long_drafts(brc_session *mine, uint64_t first)
{
    put_many(t.session, 0, LONG / 2);
    put_many(mine, first, LONG / 2);
    if (first < LONG / 2)
        scenario_put(&t, mine, "/long", first, -7);
}

/* No transaction and no statement takes long, whatever the drafts hold. */
EACH(large_drafts_are_merged_in_a_few_steps, long_cases)
{
    const uint64_t shape = LONG, chunk = 1;
    step_count count = {0};
    brc_array_free(scenario_array(&t, "/long", "int32", 1, &shape, &chunk, NULL, NULL));
    scenario_commit(&t, "empty");
    brc_session *mine = private_session();
    two_long_drafts(mine, long_cases[_i].first);
    step_count_start(&count, t.repo->store->db);
    int rc = brc_session_hand_over(mine, t.session, &t.err);
    step_count_stop(&count);
    ck_assert_msg(rc == long_cases[_i].rc, "%s", rc < 0 ? t.err.message : "it was handed over");
    ck_assert_msg(count.statement < 30 * STEP, "%d steps", (int)count.statement);
    ck_assert_msg(count.transaction < 70 * STEP, "%d steps", (int)count.transaction);
    ck_assert_int_eq(scenario_number(&t, t.session, "/long", 3), 4);
    if (rc == BRC_OK)
        ck_assert_int_eq(scenario_number(&t, t.session, "/long", LONG - 1), LONG);
    brc_session_free(mine);
}

/* ---- beside others -------------------------------- */

static void other_commits(void *ctx)
{
    scenario *other = ctx;
    scenario_commit(other, "other");
}

static void other_discards(void *ctx)
{
    scenario *other = ctx;
    OK(other, brc_session_discard(other->session, &other->err));
}

static const struct {
    hook_fn act;
    int32_t theirs; /* what is left of the changes that the rows met */
} met_cases[] = { { other_commits, 80 }, { other_discards, -1 } };

/* The changes that the rows met go while both are merged: nothing is met any more. */
EACH(what_a_draft_meets_goes_meanwhile, met_cases)
{
    hooked_kit k;
    hooked_start(&k, 2000, 1000);
    scenario_commit(&k.first, "first");
    brc_session *mine = scenario_session(&k.first, k.first.repo, NULL, BRC_SESSION_PRIVATE);
    scenario_put(&k.first, mine, "/a", 0, 70);
    scenario_put(&k.first, k.first.session, "/a", 1, 80); /* in the same chunk */
    hook_decode(met_cases[_i].act, &k.second, 1);
    OK(&k.first, brc_session_hand_over(mine, k.first.session, &k.first.err));
    ck_assert_int_gt(hook_calls(), 0);
    brc_session_free(mine);
    ck_assert_int_eq(scenario_number(&k.first, k.first.session, "/a", 0), 70);
    scenario_commit(&k.first, "mine");
    ck_assert_int_eq(scenario_number(&k.first, k.first.session, "/a", 0), 70);
    ck_assert_int_eq(scenario_number(&k.first, k.first.session, "/a", 1), met_cases[_i].theirs);
    scenario_whole(&k.first);
    hooked_stop(&k);
}

/* Writes the last number of /long until it is killed. */
static void write_without_a_pause(void)
{
    scenario mine = {.repo = NULL};
    memcpy(mine.file, t.file, sizeof(mine.file));
    scenario_open(&mine, NULL, 0);
    for (int32_t i = 1;; i = i % 1000 + 1)
        scenario_put(&mine, mine.session, "/long", LONG - 1, i);
}

/* Others write more often than two such drafts can be merged: nothing of theirs is lost, or in the
 * way. */
TEST(drafts_are_merged_beside_a_writer_that_never_rests)
{
    const uint64_t shape = LONG, chunk = 1;
    int status;
    brc_array_free(scenario_array(&t, "/long", "int32", 1, &shape, &chunk, NULL, NULL));
    scenario_commit(&t, "empty");
    const pid_t pid = fork();
    if (pid == 0)
        write_without_a_pause();
    scenario_reopen(&t); /* the handle is the parent's alone */
    while (scenario_number(&t, t.session, "/long", LONG - 1) == 0)
        ;
    brc_session *mine = private_session();
    put_many(t.session, 0, LONG / 2);
    put_many(mine, LONG / 2, LONG / 2 - 1);
    const int32_t was = scenario_number(&t, t.session, "/long", LONG - 1);
    OK(&t, brc_session_hand_over(mine, t.session, &t.err));
    for (uint64_t i = 0; i < LONG - 1; i += 999)
        ck_assert_int_eq(scenario_number(&t, t.session, "/long", i), (int32_t)i + 1);
    while (scenario_number(&t, t.session, "/long", LONG - 1) == was) /* it goes on */
        ;
    brc_session_free(mine);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
}
