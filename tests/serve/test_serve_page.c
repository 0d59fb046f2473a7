/* The page as a browser without JavaScript gets it. */
#include <stdio.h>
#include <string.h>

#include "../../src/breccia_codec.h"
#include "../../src/serve/answer.h"
#include "../../src/serve/page.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(serve_page);

static scenario t;
static serve_answer answer;
static const serve_limits usual = { (uint64_t)64 << 20, 64, 30, "climate" };

static void page_start(void)
{
    scenario_start(&t);
    memset(&answer, 0, sizeof(answer));
    answer.body = (brc_buf)BRC_BUF_INIT;
}

static void page_stop(void)
{
    brc_buf_dispose(&answer.body);
    scenario_whole(&t);
    scenario_stop(&t);
}

/* The page of up to three pairs; its text is valid until the next call. */
static const char *page(const char *a, const char *av, const char *b, const char *bv, const char *c,
                        const char *cv)
{
    const char *names[] = { a, b, c }, *values[] = { av, bv, cv };
    const serve_query query = { a ? b ? c ? 3 : 2 : 1 : 0, names, values };

    brc_buf_dispose(&answer.body);
    memset(&answer, 0, sizeof(answer));
    answer.body = (brc_buf)BRC_BUF_INIT;
    OK(&t, serve_page(&answer, t.repo, &query, &usual, &t.err));
    OK(&t, brc_buf_append(&answer.body, "", 1, &t.err));
    return (const char *)answer.body.data;
}

static const char *view(const char *name, const char *path)
{
    return page("view", name, "path", path, NULL, NULL);
}

static int has(const char *html, const char *text)
{
    return strstr(html, text) != NULL;
}

static size_t times_in(const char *html, const char *text)
{
    size_t n = 0;

    for (; (html = strstr(html, text)) != NULL; html++)
        n++;
    return n;
}

CASE("page", .setup = page_start, .teardown = page_stop);

TEST(the_first_screen_has_timeline_tree_and_counts)
{
    scenario_numbers(&t, "/group/a", 64, 16, 0);
    OK(&t, brc_attrs_set(t.session, "/", "readme", "\"Read me first\"", &t.err));
    scenario_commit(&t, "the first commit");
    scenario_set_number(&t, "/group/a", 3, 7);
    scenario_commit(&t, "the second commit");
    OK(&t, brc_ref_create(t.repo, "v1", NULL, NULL, BRC_REF_TAG, &t.err));
    const char *html = page(NULL, NULL, NULL, NULL, NULL, NULL);

    ck_assert(strncmp(html, "<!doctype html>", 15) == 0);
    ck_assert(has(html, "<title>climate"));
    ck_assert(has(html, "Read me first"));
    ck_assert(has(html, "the second commit"));
    ck_assert(has(html, "the first commit"));
    ck_assert(has(html, "tag <bdi>v1</bdi>"));
    ck_assert(has(html, "branch <bdi>main</bdi> (current)"));
    ck_assert(has(html, "path=/group/a"));
    ck_assert(has(html, "<bdi>group</bdi>/"));
    ck_assert(has(html, "64 int32"));
    ck_assert(has(html, "<th scope=\"row\">Commits</th><td>2</td>"));
    ck_assert_uint_eq(times_in(html, "<li data-id="), 2);
    ck_assert(!has(html, "{{"));
    ck_assert_uint_eq(times_in(html, "<ul"), times_in(html, "</ul>"));
    ck_assert_uint_eq(times_in(html, "<li>") + times_in(html, "<li "), times_in(html, "</li>"));
    ck_assert(has(answer.headers, "default-src 'none'; script-src 'self'; style-src 'self'"));
}

TEST(a_node_has_its_facts_and_first_elements)
{
    scenario_numbers(&t, "/a", 64, 16, 1000);
    OK(&t, brc_attrs_set(t.session, "/a", "units", "\"m/s\"", &t.err));
    scenario_commit(&t, "first");
    const char *html = view("node", "/a");

    ck_assert(has(html, "<td><bdi>1015</bdi></td>"));
    ck_assert(!has(html, "<td><bdi>1016</bdi></td>"));
    ck_assert(has(html, "m/s"));
    ck_assert(has(html, "4 of 4 chunks"));
    ck_assert(has(view("node", "/"), "In this group"));
    ck_assert(has(view("node", "/nothing"), "no such node"));
    ck_assert(has(view("open", "/a"), "import breccia"));
}

TEST(two_versions_are_compared_in_a_table)
{
    scenario_numbers(&t, "/a", 64, 16, 0);
    scenario_numbers(&t, "/b", 64, 16, 0);
    scenario_commit(&t, "first");
    scenario_set_number(&t, "/a", 3, 7);
    scenario_commit(&t, "second");
    const char *html = page("view", "diff", "a", "HEAD~1", NULL, NULL);

    ck_assert(has(html, "<bdi>/a</bdi></a></th><td>changed</td><td>1 changed</td>"));
    ck_assert(!has(html, "<bdi>/b</bdi></a></th><td>"));
    ck_assert(has(page("view", "diff", "a", "nothing", NULL, NULL), "class=\"error\""));
    scenario_set_number(&t, "/b", 3, 7);
    html = page("view", "diff", "b", ":uncommitted", NULL, NULL);
    ck_assert(has(html, "<bdi>/b</bdi></a></th><td>changed</td>"));
    ck_assert(has(page(NULL, NULL, NULL, NULL, NULL, NULL), "uncommitted changes</a>"));
}

TEST(sizes_are_in_tables)
{
    scenario_numbers(&t, "/a", 64, 16, 0);
    scenario_commit(&t, "first");
    const char *html = view("sizes", "/");

    ck_assert(has(html, "What the bytes are for"));
    ck_assert(has(html, "By array, over all versions"));
    ck_assert(has(html, "<bdi>/a</bdi></a></th><td>"));
    ck_assert(has(html, "newest 1"));
}

TEST(older_commits_are_a_link_away)
{
    char message[32];

    scenario_numbers(&t, "/a", 64, 16, 0);
    for (int i = 0; i < 60; i++) {
        scenario_set_number(&t, "/a", 3, 100 + i);
        snprintf(message, sizeof(message), "commit <%d>", i);
        scenario_commit(&t, message);
    }
    const char *html = page(NULL, NULL, NULL, NULL, NULL, NULL);
    const char *from = strstr(html, "&amp;from=");
    char ids[200];

    ck_assert_uint_eq(times_in(html, "<li data-id="), 50);
    ck_assert(has(html, "commit &lt;10&gt;"));
    ck_assert(!has(html, "commit &lt;9&gt;"));
    ck_assert_ptr_nonnull(from);
    snprintf(ids, sizeof(ids), "%.*s", (int)strcspn(from + 10, "#\""), from + 10);
    html = page("from", ids, "part", "timeline", NULL, NULL);
    ck_assert_uint_eq(times_in(html, "<li data-id="), 10);
    ck_assert(has(html, "commit &lt;9&gt;"));
    ck_assert(!has(html, "<title>"));
    html = page("filter", "<33>", "part", "timeline", NULL, NULL);
    ck_assert_uint_eq(times_in(html, "<li data-id="), 1);
}

TEST(names_of_others_are_text)
{
    char message[10241];
    const brc_commit_opts opts = { .size = sizeof(opts), .message = message,
                                   .author = "<script>author</script>" };
    const char *const views[] = { "overview", "node", "diff", "sizes", "open" };

    snprintf(message, sizeof(message), "<script>message</script> %010000d", 0);
    scenario_numbers(&t, "/<script>path\"'<", 4, 4, 0);
    OK(&t, brc_attrs_set(t.session, "/<script>path\"'<", "<script>key", "\"<script>value\"",
                         &t.err));
    OK(&t, brc_session_commit(NULL, t.session, &opts, &t.err));
    OK(&t, brc_ref_create(t.repo, "<script>branch", NULL, NULL, 0, &t.err));
    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
        const char *html = page("view", views[i], "path", "/<script>path\"'<", "rev",
                                i == 3 ? "<script>branch" : "main");

        ck_assert_msg(!has(html, "<script>"), "%s: %.200s", views[i], strstr(html, "<script>"));
        ck_assert(has(html, "&lt;script&gt;path&quot;&#39;&lt;"));
        ck_assert_uint_lt(strlen(html), 40000);
    }
    ck_assert(!has(page("view", "<script>", "filter", "\"><script>", "file", "\"><script>"),
                   "<script>"));
}

TEST(before_the_first_commit_there_is_a_page)
{
    scenario_numbers(&t, "/a", 64, 16, 0);
    const char *html = page(NULL, NULL, NULL, NULL, NULL, NULL);

    ck_assert(has(html, "Nothing is committed yet"));
    ck_assert(has(html, "<bdi>/a</bdi>"));
    ck_assert(has(view("diff", "/"), "<form"));
    ck_assert(has(view("sizes", "/"), "What the bytes are for"));
    ck_assert(has(view("open", "/"), "only commits have an address"));
    scenario_commit(&t, "first");
    scenario_set_number(&t, "/a", 3, 7);
    ck_assert(has(view("open", "/a"), "node = view[&quot;a&quot;]"));
    ck_assert(has(page("view", "open", "rev", ":uncommitted", NULL, NULL), "commit below them"));
}

TEST(a_version_that_is_not_there_is_not_found)
{
    const char *names[] = { "rev" }, *values[] = { "nothing" };
    const serve_query query = { 1, names, values };

    FAILS(&t, BRC_ENOTFOUND, serve_page(&answer, t.repo, &query, &usual, &t.err));
}

TEST(the_files_of_the_page_are_small)
{
    const char *const names[] = { "app.js", "style.css" };
    size_t sum = strlen(view("node", "/nothing"));

    for (size_t i = 0; i < 2; i++) {
        brc_buf_dispose(&answer.body);
        memset(&answer, 0, sizeof(answer));
        answer.body = (brc_buf)BRC_BUF_INIT;
        ck_assert_int_eq(serve_asset(&answer, names[i], &t.err), 1);
        ck_assert_uint_gt(answer.body.len, 1000);
        ck_assert_uint_gt(strlen(answer.etag), 0);
        sum += answer.body.len;
    }
    ck_assert_uint_le(sum, 80000);
    ck_assert_int_eq(serve_asset(&answer, "app.css", &t.err), 0);
}
