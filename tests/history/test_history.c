/* Commits, the words for them, names, times, and the order of a walk. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/history/commit.h"
#include "../../src/history/snapshot.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(history);

STORE_KIT_FIXTURE(kit)

#define OK(call) KIT_OK(&kit, call)
#define FAILS(code, words, call) KIT_FAILS(&kit, code, words, call)
#define SAME_ID(a, b) ck_assert_int_eq(brc_oid_cmp((a), (b)), 0)

static void begin(void)
{
    OK(brc_store_begin(kit.store, &kit.err));
}

static void end(void)
{
    OK(brc_store_end(kit.store, 1, &kit.err));
}

CASE("history", .setup = kit_start, .teardown = kit_stop);

/* ---- commits ----------------------------------------------------------------- */

LOOP(a_commit_comes_back, 0, BRC_MAX_PARENTS + 1)
{
    brc_oid parents[BRC_MAX_PARENTS];
    brc_commit c = { .root = store_kit_id(0xfe), .author = "J\xc3\xb6rg  <j@x> ", .time_us = -5,
                     .message = "Line one\n\nparent x\ntime 5\n\n\n", .parents = parents,
                     .meta_json = "{\"a\":[1,\"\xc3\xa4\"]}" };
    brc_commit *got;
    brc_oid root;
    for (uint8_t i = 0; i < BRC_MAX_PARENTS; i++)
        parents[i] = store_kit_id((uint8_t)(BRC_MAX_PARENTS - i));
    c.nparents = (size_t)_i;
    begin();
    OK(brc_commit_put(kit.store, &c, NULL, &kit.err));
    end();
    store_kit_reopen(&kit);
    OK(brc_commit_get(&got, kit.store, &c.id, &kit.err));
    SAME_ID(&got->id, &c.id);
    SAME_ID(&got->root, &c.root);
    ck_assert_str_eq(got->author, c.author);
    ck_assert_str_eq(got->message, c.message);
    ck_assert_str_eq(got->meta_json, c.meta_json);
    ck_assert_int_eq(got->time_us, -5);
    ck_assert_uint_eq(got->nparents, c.nparents);
    ck_assert(c.nparents == 0 || memcmp(got->parents, parents, c.nparents * sizeof(brc_oid)) == 0);
    brc_commit_free(got);
    OK(brc_commit_root(kit.store, &c.id, &root, &kit.err));
    SAME_ID(&root, &c.root);
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM commit_info WHERE time_us=-5 AND"
                                         " author LIKE 'J%' AND message LIKE 'Line%'"), 1);
}

TEST(commits_that_cannot_be_are_refused)
{
    char *big = malloc((1 << 20) + 2);
    memset(big, 'm', (1 << 20) + 1);
    big[(1 << 20) + 1] = '\0';
    brc_oid parents[BRC_MAX_PARENTS + 1];
    brc_commit good = { .author = "a", .message = "", .time_us = 1 }, c;
    memset(parents, 0, sizeof(parents));
    begin();
    OK(brc_commit_put(kit.store, &good, NULL, &kit.err));
    c = good;
    c.author = "";
    FAILS(BRC_EINVAL, "author", brc_commit_put(kit.store, &c, NULL, &kit.err));
    c.author = "two\nlines";
    FAILS(BRC_EINVAL, "author", brc_commit_put(kit.store, &c, NULL, &kit.err));
    c.author = "x\rtime 7";
    FAILS(BRC_EINVAL, "author", brc_commit_put(kit.store, &c, NULL, &kit.err));
    c.author = "\xff";
    FAILS(BRC_EINVAL, "author", brc_commit_put(kit.store, &c, NULL, &kit.err));
    c.author = big + (1 << 20) - 1023; /* 1024 bytes are the limit */
    OK(brc_commit_put(kit.store, &c, NULL, &kit.err));
    c.author = big + (1 << 20) - 1024;
    FAILS(BRC_EINVAL, "1024", brc_commit_put(kit.store, &c, NULL, &kit.err));
    c = good;
    c.message = "\xc3";
    FAILS(BRC_EINVAL, "UTF-8", brc_commit_put(kit.store, &c, NULL, &kit.err));
    c.message = big + 1;
    OK(brc_commit_put(kit.store, &c, NULL, &kit.err));
    c.message = big;
    FAILS(BRC_EINVAL, "1 MiB", brc_commit_put(kit.store, &c, NULL, &kit.err));
    c = good;
    c.parents = parents;
    c.nparents = BRC_MAX_PARENTS + 1;
    FAILS(BRC_ELIMIT, "16 parents", brc_commit_put(kit.store, &c, NULL, &kit.err));
    end();
    free(big);
}

#define HEX "00112233445566778899aabbccddeeff"

TEST(text_that_is_no_commit_s_is_damage)
{
    static const struct {
        const char *text;
        int good;
    } texts[] = {
        { "root " HEX "\nparent " HEX "\nauthor a\ntime 5\nmeta {\"k\":1}\n\nm", 1 },
        { "author a\ntime 5\n\n", 1 },
        { "author a\ntime -9223372036854775808\n\nm", 1 },
        { "", 0 },
        { "\n", 0 },
        { "root " HEX "\n", 0 },
        { "author a\n\nm", 0 },                       /* no time */
        { "time 5\n\nm", 0 },                         /* no author */
        { "time 5\nauthor a\n\nm", 0 },               /* in another order */
        { "author a\nroot " HEX "\ntime 5\n\nm", 0 },
        { "author a\ntime 5\nm", 0 },                 /* no empty line */
        { "author a\ntime 5", 0 },
        { "author a\ntime 5\n", 0 },
        { "author a\ntime 5\nextra x\n\nm", 0 },
        { "author a\ntime 5\nmeta {}\nmeta {}\n\nm", 0 },
        { "author a\nauthor b\ntime 5\n\nm", 0 },
        { "author a\ntime\n\nm", 0 },
        { "author a\ntime \n\nm", 0 },
        { "author a\ntime 5 \n\nm", 0 },
        { "author a\ntime  5\n\nm", 0 },
        { "author a\ntime +5\n\nm", 0 },
        { "author a\ntime 05\n\nm", 0 },
        { "author a\ntime 5.0\n\nm", 0 },
        { "author a\ntime 9223372036854775808\n\nm", 0 },
        { "author a\ntime 0x5\n\nm", 0 },
        { "author \ntime 5\n\nm", 0 },
        { "author \xff\ntime 5\n\nm", 0 },
        { "author a\ntime 5\n\nm\xff", 0 },
        { "author a\ntime 5\nmeta {}}\n\nm", 0 },
        { "author a\ntime 5\nmeta [1]\n\nm", 0 },
        { "author a\ntime 5\nmeta \n\nm", 0 },
        { "root 0011\nauthor a\ntime 5\n\nm", 0 },
        { "root " HEX "00\nauthor a\ntime 5\n\nm", 0 },
        { "root 00112233445566778899AABBCCDDEEFF\nauthor a\ntime 5\n\nm", 0 },
        { "root " HEX "\nroot " HEX "\nauthor a\ntime 5\n\nm", 0 },
        { "parent 0011223344556677889\nauthor a\ntime 5\n\nm", 0 },
        { "parent " HEX "\nroot " HEX "\nauthor a\ntime 5\n\nm", 0 },
    };
    brc_oid id = store_kit_id(3);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        brc_commit *c = NULL;
        size_t len = strlen(texts[i].text);
        uint8_t *exact = malloc(len + 1);
        memcpy(exact, texts[i].text, len + 1);
        int rc = brc_commit_parse(&c, &id, (brc_span){ exact, len }, 16, &kit.err);
        ck_assert_msg(rc == (texts[i].good ? BRC_OK : BRC_ECORRUPT), "%d for: %s", rc,
                      texts[i].text);
        ck_assert_int_eq(c != NULL, texts[i].good);
        brc_commit_free(c);
        if (texts[i].good && len > 20) { /* a zero byte anywhere */
            for (size_t at = 0; at < len; at++) {
                uint8_t old = exact[at];
                exact[at] = 0;
                FAILS(BRC_ECORRUPT, "damaged",
                      brc_commit_parse(&c, &id, (brc_span){ exact, len }, 16, &kit.err));
                exact[at] = old;
            }
        }
        free(exact);
    }
}

TEST(too_many_parents_are_damage)
{
    brc_buf text = BRC_BUF_INIT;
    brc_oid id = store_kit_id(3);
    brc_commit *c;
    for (int i = 0; i <= BRC_MAX_PARENTS; i++)
        OK(brc_buf_text(&text, "parent " HEX "\n", &kit.err));
    OK(brc_buf_text(&text, "author a\ntime 1\n\n", &kit.err));
    FAILS(BRC_ECORRUPT, "damaged",
          brc_commit_parse(&c, &id, (brc_span){ text.data, text.len }, 16, &kit.err));
    OK(brc_commit_parse(&c, &id, (brc_span){ text.data + 40, text.len - 40 }, 16, &kit.err));
    ck_assert_uint_eq(c->nparents, BRC_MAX_PARENTS);
    brc_commit_free(c);
    brc_buf_dispose(&text);
}

/* ---- revisions --------------------------------------------------------------- */

/* main: c0 - c1 - merge(c1, s1, s2) - c3; side: c0 - s1; third: c0 - s2; tag v1 = c1. */
static brc_oid c0, c1, s1, s2, c2, c3;

static void put_six_commits(void)
{
    begin();
    c0 = store_kit_commit(&kit, 1000000, "c0", NULL, 0);
    c1 = store_kit_commit(&kit, 2000000, "c1", &c0, 1);
    s1 = store_kit_commit(&kit, 3000000, "s1", &c0, 1);
    s2 = store_kit_commit(&kit, 4000000, "s2", &c0, 1);
    brc_oid three[3] = { c1, s1, s2 };
    c2 = store_kit_commit(&kit, 5000000, "c2", three, 3);
    c3 = store_kit_commit(&kit, 6000000, "c3", &c2, 1);
    OK(brc_ref_put(kit.store, "heads/main", &c1, NULL, "commit", 0, NULL, 2000000, &kit.err));
    OK(brc_ref_put(kit.store, "heads/main", &c2, NULL, "commit", 0, NULL, 5000000, &kit.err));
    OK(brc_ref_put(kit.store, "heads/main", &c3, NULL, "commit", 0, NULL, 6000000, &kit.err));
    OK(brc_ref_put(kit.store, "heads/side/a", &s1, NULL, "branch", 0, NULL, 3000000, &kit.err));
    OK(brc_ref_put(kit.store, "heads/unborn", NULL, NULL, "branch", 0, NULL, 3000000, &kit.err));
    OK(brc_ref_put(kit.store, "tags/v1", &c1, NULL, "tag", 0, NULL, 3000000, &kit.err));
    OK(brc_ref_put(kit.store, "tags/main", &s2, NULL, "tag", 0, NULL, 3000000, &kit.err));
    end();
}

static void resolves(const char *rev, const brc_oid *want)
{
    brc_oid got;
    int rc = brc_rev_resolve(kit.store, rev, &got, &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s: %s", rev, kit.err.message);
    ck_assert_msg(brc_oid_cmp(&got, want) == 0, "%s is another commit", rev);
}

TEST(revisions_name_commits)
{
    char hex[65];
    put_six_commits();
    resolves("main", &c3); /* a branch goes before a tag of the same name */
    resolves("HEAD", &c3);
    resolves("@", &c3);
    resolves("side/a", &s1);
    resolves("v1", &c1);
    resolves("main~", &c2);
    resolves("main~0", &c3);
    resolves("main^0", &c3);
    resolves("main~1", &c2);
    resolves("main~2", &c1);
    resolves("HEAD~3", &c0);
    resolves("main~^2", &s1);
    resolves("main~1^3", &s2);
    resolves("main^^", &c1);
    resolves("main^^^", &c0);
    resolves("@~2", &c1);
    resolves("main~^3~", &c0);
    resolves("v1^", &c0);
    for (size_t len = 32; len >= 12; len--) {
        brc_oid_format(hex, &s1);
        hex[len] = '\0';
        resolves(hex, &s1);
    }
    brc_oid_format(hex, &c3);
    for (char *p = hex; *p != '\0'; p++)
        *p = (char)(*p >= 'a' ? *p - 32 : *p);
    resolves(hex, &c3);
    hex[10] = '~';
    hex[11] = '\0';
    resolves(hex, &c2);
    resolves("main@{@2}", &c1);
    resolves("main@{@4}", &c1);
    resolves("main@{1970-01-01T00:00:05Z}", &c2);
    resolves("main@{1970-01-01T01:00:05.9+01:00}~1", &c1);
    resolves("main@{2026-11-20}", &c3);
    resolves("HEAD@{@5}^2", &s1);
    resolves("@{@5}", &c2);
}

/* A caller who has looked up a name means that commit from then on. */
TEST(a_whole_id_is_that_commit_whatever_refs_are_called)
{
    char id[65], full[80], before[80];
    put_six_commits();
    brc_oid_format(id, &c1);
    id[32] = '\0';
    snprintf(full, sizeof(full), "heads/%s", id);
    begin();
    OK(brc_ref_put(kit.store, full, &c3, NULL, "branch", 0, NULL, 6000000, &kit.err));
    OK(brc_ref_put(kit.store, "heads/00112233445566778899aabbccddeeff", &s2, NULL, "branch", 0,
                   NULL, 6000000, &kit.err));
    end();
    resolves(id, &c1);
    snprintf(before, sizeof(before), "%s~", id);
    resolves(before, &c0);
    resolves("00112233445566778899aabbccddeeff", &s2); /* as long as an id, and none */
}

TEST(revisions_that_name_nothing_say_why)
{
    static const struct {
        const char *rev, *words;
        int code;
    } wrong[] = {
        { "", "no branch, tag or commit ''", BRC_ENOTFOUND },
        { "nope", "no branch, tag or commit 'nope'", BRC_ENOTFOUND },
        { "abc", "no branch, tag or commit 'abc'", BRC_ENOTFOUND }, /* too short a prefix */
        { "ffffffffffffffff", "no branch, tag or commit", BRC_ENOTFOUND },
        { "00112233445566778899aabbccddeeff00", "no branch, tag or commit", BRC_ENOTFOUND },
        { "unborn", "has no commit yet", BRC_ENOTFOUND },
        { "unborn~1", "has no commit yet", BRC_ENOTFOUND },
        { "main~4", "beyond the first commit", BRC_ENOTFOUND },
        { "main^2", "beyond the first commit", BRC_ENOTFOUND },
        { "main~1^4", "beyond the first commit", BRC_ENOTFOUND },
        { "main~99999999", "beyond the first commit", BRC_ENOTFOUND },
        { "main~99999999999999999999", "no branch, tag or commit", BRC_ENOTFOUND },
        { "main~1x", "no branch, tag or commit", BRC_ENOTFOUND },
        { "main~0 ", "no branch, tag or commit", BRC_ENOTFOUND },
        { "~1", "no branch, tag or commit", BRC_ENOTFOUND },
        { "heads/main", "no branch, tag or commit", BRC_ENOTFOUND },
        { "main@{@1}", "no commit at that time", BRC_ENOTFOUND },
        { "nope@{@5}", "no commit at that time", BRC_ENOTFOUND },
        { "main@{@5", "no branch, tag or commit", BRC_ENOTFOUND },
        { "main@{}", "is not a time", BRC_EINVAL },
        { "main@{soon}", "is not a time", BRC_EINVAL },
        { "main@{@5}x", "no branch, tag or commit", BRC_ENOTFOUND },
    };
    brc_oid got;
    put_six_commits();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        FAILS(wrong[i].code, wrong[i].words,
              brc_rev_resolve(kit.store, wrong[i].rev, &got, &kit.err));
}

/* Among some hundred commits, two begin with the same 4 digits; other objects that do
 * count for nothing. */
TEST(a_prefix_of_several_ids_is_ambiguous)
{
    enum { N = 2000 };
    brc_oid *ids = calloc(N, sizeof(*ids)), got;
    char hex[65], other[65];
    size_t a = 0, b = 0, lonely = N;
    begin();
    for (int i = 0; i < N; i++) {
        snprintf(hex, sizeof(hex), "%d", i);
        ids[i] = store_kit_commit(&kit, i, hex, NULL, 0);
        OK(brc_store_put(kit.store, BRC_KIND_CHUNK, hex, strlen(hex), &got, &kit.err));
    }
    end();
    for (size_t i = 0; i < N; i++) {
        size_t same = 0;
        for (size_t j = 0; j < N; j++) {
            if (j == i || memcmp(&ids[i], &ids[j], 2) != 0)
                continue;
            same = 1;
            a = i;
            b = j;
        }
        lonely = same ? lonely : i;
    }
    ck_assert_uint_ne(a, b);
    ck_assert_uint_lt(lonely, N);
    brc_oid_format(hex, &ids[a])[4] = '\0';
    FAILS(BRC_EAMBIGUOUS, "several commit ids: give more digits",
          brc_rev_resolve(kit.store, hex, &got, &kit.err));
    brc_oid_format(hex, &ids[a]);
    brc_oid_format(other, &ids[b]);
    size_t len = 0;
    while (hex[len] == other[len])
        len++;
    hex[len + 1] = '\0';
    resolves(hex, &ids[a]);
    brc_oid_format(hex, &ids[lonely])[4] = '\0';
    resolves(hex, &ids[lonely]);
    hex[3] = '\0';
    FAILS(BRC_ENOTFOUND, "no branch", brc_rev_resolve(kit.store, hex, &got, &kit.err));
    free(ids);
}

/* ---- times and names --------------------------------------------------------- */

TEST(times_are_read)
{
    static const struct {
        const char *text;
        int64_t us;
    } times[] = {
        { "1970-01-01", 0 },
        { "1970-01-01T00:00Z", 0 },
        { "1970-01-01 00:00", 0 },
        { "2026-11-20", INT64_C(1795132800000000) },
        { "2026-11-20T12:34:56Z", INT64_C(1795178096000000) },
        { "2026-11-20t12:34:56z", INT64_C(1795178096000000) },
        { "2026-11-20T12:34:56", INT64_C(1795178096000000) },
        { "2026-11-20T12:34:56.1", INT64_C(1795178096100000) },
        { "2026-11-20T12:34:56.123456Z", INT64_C(1795178096123456) },
        { "2026-11-20T12:34:56.1234569Z", INT64_C(1795178096123456) },
        { "2026-11-20T13:34:56+01:00", INT64_C(1795178096000000) },
        { "2026-11-20T13:34:56+0100", INT64_C(1795178096000000) },
        { "2026-11-20T13:34:56+01", INT64_C(1795178096000000) },
        { "2026-11-20T07:04:56-05:30", INT64_C(1795178096000000) },
        { "2000-02-29", INT64_C(951782400000000) },
        { "2024-02-29", INT64_C(1709164800000000) },
        { "1900-02-28", INT64_C(-2203977600000000) },
        { "1969-12-31T23:59:59.999999Z", -1 },
        { "0001-01-01", INT64_C(-62135596800000000) },
        { "9999-12-31T23:59:59Z", INT64_C(253402300799000000) },
        { "2016-12-31T23:59:60Z", INT64_C(1483228800000000) },
        { "@0", 0 },
        { "@1700000000", INT64_C(1700000000000000) },
        { "@-1", -1000000 },
    };
    static const char *const wrong[] = {
        "", "soon", "2026", "2026-11", "2026-11-2",
        "2026-13-01", "2026-00-01", "2026-11-00",
        "2026-11-31", "2026-04-31", "2025-02-29", "1900-02-29", "2100-02-29", "2024-02-30",
        "2026-11-20T", "2026-11-20T12", "2026-11-20T12:", "2026-11-20T12:3", "2026-11-20T24:00",
        "2026-11-20T12:60", "2026-11-20T12:00:61", "2026-11-20T12:00:0", "2026-11-20T12:00:00.",
        "2026-11-20T12:00.5", "2026-11-20T12:00:00Zx", "2026-11-20Z", "2026-11-20T12:00+1",
        "2026-11-20T12:00+24:00", "2026-11-20T12:00+01:60", "2026-11-20T12:00+01:",
        "2026-11-20T12:00+01:3", "2026-11-20T12:00 +01:00", "2026/11/20", " 2026-11-20",
        "2026-11-20 ",
        "-2026-11-20", "@", "@1.", "@.5", "@x", "@1x", "@ 1", "@+1", "@9999999999999",
        "@-9999999999999", "@99999999999999999999", "1700000000",
    };
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        int64_t got = 77;
        OK(brc_time_parse(&got, times[i].text, &kit.err));
        ck_assert_msg(got == times[i].us, "%s is %lld", times[i].text, (long long)got);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        int64_t got;
        int rc = brc_time_parse(&got, wrong[i], &kit.err);
        ck_assert_msg(rc == BRC_EINVAL, "'%s' is taken", wrong[i]);
        ck_assert_ptr_nonnull(strstr(kit.err.message, "is not a time"));
    }
}

TEST(names_of_branches_and_tags)
{
    static const char *const good[] = { "main", "a",    "feature/x-1", "v1.0",  "\xc3\xa4",
                                        "a@b",  "1a2b", "a{b}",        "HEADS", "x.y/z" };
    static const char *const wrong[] = {
        "",     "HEAD", "@",    "-a",   "/a",       ".a",   "a/",    "a.", "a..b",
        "a//b", "a@{b", "a b",  "a~",   "a^",       "a:b",  "a?",    "a*", "a[",
        "a\\b", "a\nb", "a\tb", "\x7f", "\x1b[31m", "\xff", "a\xc3",
    };
    char longest[257];
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        OK(brc_ref_name_check(good[i], &kit.err));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        int rc = brc_ref_name_check(wrong[i], &kit.err);
        ck_assert_msg(rc == BRC_EINVAL, "'%s' is taken", wrong[i]);
        ck_assert_ptr_nonnull(strstr(kit.err.message, "cannot be the name of a branch or tag"));
    }
    memset(longest, 'n', sizeof(longest));
    longest[256] = '\0';
    FAILS(BRC_EINVAL, "255", brc_ref_name_check(longest, &kit.err));
    OK(brc_ref_name_check(longest + 1, &kit.err));
}

/* ---- walks ------------------------------------------------------------------- */

/* The messages in the order of the walk. */
static void walk_is(const brc_oid *tip, const char *want)
{
    brc_walk *walk;
    const brc_commit *c;
    char text[200] = "";
    int rc;
    OK(brc_walk_new(&walk, kit.store, tip, &kit.err));
    while ((rc = brc_walk_next(walk, &c, &kit.err)) > 0) {
        size_t at = strlen(text);
        snprintf(text + at, sizeof(text) - at, "%s ", c->message);
    }
    OK(rc);
    ck_assert_int_eq(brc_walk_next(walk, &c, &kit.err), 0); /* still the end */
    brc_walk_free(walk);
    ck_assert_str_eq(text, want);
}

TEST(children_come_before_their_parents_whatever_the_clocks_said)
{
    brc_oid none;
    memset(&none, 0, sizeof(none));
    put_six_commits();
    walk_is(&none, "");
    walk_is(&c1, "c1 c0 ");
    walk_is(&c3, "c3 c2 s2 s1 c1 c0 "); /* the newest first */
    begin();
    /* a: a clock that is years ahead in an ancestor, and one that runs backwards */
    brc_oid r = store_kit_commit(&kit, 900, "r", NULL, 0);
    brc_oid x1 = store_kit_commit(&kit, 800, "x1", &r, 1);
    brc_oid x2 = store_kit_commit(&kit, 700, "x2", &x1, 1);
    brc_oid y1 = store_kit_commit(&kit, 5000, "y1", &r, 1);
    brc_oid y2 = store_kit_commit(&kit, 10, "y2", &y1, 1), both[2] = { x2, y2 };
    brc_oid m = store_kit_commit(&kit, 1, "m", both, 2);
    brc_oid top = store_kit_commit(&kit, 0, "top", &m, 1);
    end();
    walk_is(&top, "top m x2 x1 y2 y1 r ");
    /* The same parent twice, and a parent that is also a grandparent. */
    begin();
    brc_oid twice[2] = { r, r }, near[3] = { r, x1, x2 };
    brc_oid t = store_kit_commit(&kit, 50, "t", twice, 2);
    brc_oid n = store_kit_commit(&kit, 60, "n", near, 3);
    end();
    walk_is(&t, "t r ");
    walk_is(&n, "n x2 x1 r ");
}

LOOP(random_histories_are_walked_in_order, 0, 10)
{
    enum { N = 120 };
    uint64_t random = (uint64_t)_i + 40;
    brc_oid ids[N], parents[N][3];
    size_t nparents[N], from[N][3], place[N];
    char name[16], reach[N] = { 0 };
    begin();
    for (size_t i = 0; i < N; i++) {
        nparents[i] =
            i == 0 ? 0 : 1 + (store_kit_below(&random, 3) == 0 ? store_kit_below(&random, 3) : 0);
        for (size_t p = 0; p < nparents[i]; p++) {
            size_t back = 1 + store_kit_below(&random, i < 6 ? i : 6);
            from[i][p] = i - (back < i ? back : i);
            parents[i][p] = ids[from[i][p]];
        }
        snprintf(name, sizeof(name), "%zu", i);
        ids[i] = store_kit_commit(&kit, (int64_t)store_kit_below(&random, 1000), name, parents[i],
                                  nparents[i]);
    }
    end();
    reach[N - 1] = 1;
    for (size_t i = N; i-- > 0;)
        for (size_t p = 0; reach[i] && p < nparents[i]; p++)
            reach[from[i][p]] = 1;
    brc_walk *walk;
    const brc_commit *c;
    size_t n = 0;
    int rc;
    memset(place, 0xff, sizeof(place));
    OK(brc_walk_new(&walk, kit.store, &ids[N - 1], &kit.err));
    while ((rc = brc_walk_next(walk, &c, &kit.err)) > 0) {
        size_t i = (size_t)strtoul(c->message, NULL, 10);
        ck_assert_uint_eq(place[i], SIZE_MAX); /* each once */
        place[i] = n++;
    }
    OK(rc);
    brc_walk_free(walk);
    for (size_t i = 0; i < N; i++) {
        ck_assert_int_eq(place[i] != SIZE_MAX, reach[i]);
        for (size_t p = 0; reach[i] && p < nparents[i]; p++)
            ck_assert_uint_lt(place[i], place[from[i][p]]);
    }
}

/* A name is one part of a path, wherever it comes from: an archive's member, say. */
TEST(f22_names_that_no_node_can_have)
{
    static const struct {
        const char *name;
        int rc;
    } names[] = {
        { "", BRC_EINVAL }, { "/", BRC_EINVAL }, { "a/b", BRC_EINVAL }, { "a/", BRC_EINVAL },
        { "../a", BRC_EINVAL }, { ".", BRC_EINVAL }, { "..", BRC_EINVAL }, { "...", BRC_EINVAL },
        { "__a", BRC_EINVAL }, { "zarr.json", BRC_EINVAL }, { "\xff", BRC_EINVAL },
        { "..a", BRC_OK }, { "_a", BRC_OK }, { "zarr.jsonx", BRC_OK }, { "a", BRC_OK },
    };
    char longest[BRC_NAME_MAX + 2];
    brc_error err = BRC_ERROR_INIT;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ck_assert_msg(brc_name_check(names[i].name, strlen(names[i].name), &err) == names[i].rc,
                      "'%s'", names[i].name);
    memset(longest, 'x', sizeof(longest));
    ck_assert_int_eq(brc_name_check(longest, BRC_NAME_MAX, &err), BRC_OK);
    ck_assert_int_eq(brc_name_check(longest, BRC_NAME_MAX + 1, &err), BRC_ELIMIT);
}

/* An entry is as long as its parts: cut or followed by more, it is damaged. */
TEST(f22_a_node_s_entry_has_one_length)
{
    for (int parts = 0; parts < 4; parts++) {
        uint8_t bytes[BRC_ENTRY_MAX + 1] = { 0 };
        brc_error err = BRC_ERROR_INIT;
        brc_entry entry, got;
        memset(&entry, 0, sizeof(entry));
        entry.kind = BRC_ARRAY;
        entry.doc = store_kit_id(1);
        if (parts & 1)
            entry.map = store_kit_id(2);
        if (parts & 2)
            entry.storage = store_kit_id(3);
        size_t len = brc_entry_encode(bytes, &entry, 16);
        ck_assert_int_eq(brc_entry_decode(&got, (brc_span){ bytes, len }, 16, &err), BRC_OK);
        ck_assert_int_eq(brc_entry_equal(&got, &entry), 1);
        for (size_t n = 0; n <= len + 1; n++)
            ck_assert_int_eq(brc_entry_decode(&got, (brc_span){ bytes, n }, 16, &err),
                             n == len ? BRC_OK : BRC_ECORRUPT);
        bytes[0] = 3; /* neither group nor array */
        ck_assert_int_eq(brc_entry_decode(&got, (brc_span){ bytes, len }, 16, &err), BRC_ECORRUPT);
    }
}

TEST(a_walk_that_meets_a_missing_commit_says_which)
{
    brc_oid gone = store_kit_id(0x77);
    brc_walk *walk;
    const brc_commit *c;
    char hex[65];
    begin();
    brc_oid root = store_kit_commit(&kit, 1, "root", NULL, 0), pair[2] = { root, gone };
    brc_oid child = store_kit_commit(&kit, 2, "child", &gone, 1);
    brc_oid merge = store_kit_commit(&kit, 3, "merge", pair, 2);
    end();
    OK(brc_walk_new(&walk, kit.store, &child, &kit.err));
    ck_assert_int_eq(brc_walk_next(walk, &c, &kit.err), 1);
    FAILS(BRC_ECORRUPT, brc_oid_format(hex, &gone), brc_walk_next(walk, &c, &kit.err));
    brc_walk_free(walk);
    OK(brc_walk_new(&walk, kit.store, &merge, &kit.err));
    int rc = 1, n = 0;
    while (rc > 0 && n++ < 5)
        rc = brc_walk_next(walk, &c, &kit.err);
    ck_assert_int_eq(rc, BRC_ECORRUPT);
    ck_assert_ptr_nonnull(strstr(kit.err.message, hex));
    brc_walk_free(walk);
}
