/* Replies of the server, apart from HTTP: parts, versions, limits, lists, files that move. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/breccia_codec.h"
#include "../../src/serve/respond.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(serve_reply);

#define TOKEN "0123456789abcdef"

static scenario t;
static serve_files *files;
static serve_reply reply;
static serve_request request; /* what the next request has besides its path */

static void serve_file(const char *path, const char *root)
{
    const serve_files_opts opts = {
        .paths = &path, .n = path != NULL, .root = root, .wait_ms = 200
    };
    serve_files_free(files);
    OK(&t, serve_files_new(&files, &opts, &t.err));
}

static void start(void)
{
    scenario_start(&t);
    scenario_inline(&t);
    scenario_numbers(&t, "/g/a", 100, 10, 0);
    scenario_commit(&t, "first");
    scenario_set_number(&t, "/g/a", 5, 500);
    scenario_commit(&t, "second");
    memset(&request, 0, sizeof(request));
    request.may_wait = 1;
    request.token = TOKEN;
    request.limits = (serve_limits){ 1 << 20, 100, 10, NULL };
    serve_file(t.file, NULL);
}

static void stop(void)
{
    serve_reply_dispose(&reply);
    serve_files_free(files);
    files = NULL;
    scenario_stop(&t);
}

CASE("serve_reply", .setup = start, .teardown = stop);

/* Asks for a path below the token; returns the status, or 0 if a worker must be asked. */
static int ask(const char *path)
{
    char uri[SERVE_MOST_URI];
    serve_target target;
    (void)snprintf(uri, sizeof(uri), "/" TOKEN "/%s", path);
    OK(&t, serve_target_read(&target, uri, TOKEN, &t.err));
    request.target = &target;
    request.uri = uri;
    serve_reply_dispose(&reply);
    const int done = serve_respond(&reply, files, &request);
    serve_target_dispose(&target);
    return done ? reply.answer.status : 0;
}

static int says(const char *text)
{
    return reply.answer.body.len > 0 &&
           memmem(reply.answer.body.data, reply.answer.body.len, text, strlen(text)) != NULL;
}

/* Compares the body with a part of the key's value at a version. */
static void same_as_key(const char *rev, const char *key, size_t start_at, size_t len)
{
    brc_buf want = BRC_BUF_INIT;
    brc_session *s = scenario_session(&t, t.repo, rev, BRC_SESSION_AT);
    OK(&t, brc_key_get(&want, s, key, NULL, NULL, &t.err));
    len = len != 0 ? len : want.len;
    ck_assert_uint_eq(reply.answer.body.len, len);
    ck_assert_mem_eq(reply.answer.body.data, want.data + start_at, len);
    brc_buf_dispose(&want);
    brc_session_free(s);
}

static char *head_of(char out[65], const char *rev)
{
    brc_oid id;
    OK(&t, brc_resolve(&id, t.repo, rev, &t.err));
    return brc_oid_format(out, &id);
}

/* ---- versions -------------------------------- */

TEST(an_answer_is_of_one_commit)
{
    char hex[65], path[200], etag[72];
    ck_assert_int_eq(ask("main/test.zarr/g/a/c/0"), 200);
    same_as_key("main", "g/a/c/0", 0, 0);
    ck_assert(!reply.answer.immutable);
    ck_assert_str_eq(reply.answer.commit, head_of(hex, "main"));
    (void)snprintf(path, sizeof(path), "../../../../../%s/test.zarr/g/a/c/0", hex);
    ck_assert_uint_eq(reply.location.len, strlen(path));
    ck_assert_mem_eq(reply.location.data, path, strlen(path));
    memcpy(etag, reply.answer.etag, sizeof(etag));
    (void)snprintf(path, sizeof(path), "%s/test.zarr/g/a/c/0", head_of(hex, "main~1"));
    ck_assert_int_eq(ask(path), 200);
    same_as_key("main~1", "g/a/c/0", 0, 0);
    ck_assert(reply.answer.immutable);
    ck_assert_uint_eq(reply.location.len, 0);
    ck_assert(strcmp(etag, reply.answer.etag) != 0);
    ck_assert_int_eq(ask("main~1/test.zarr/g/a/c/1"), 200);
    memcpy(etag, reply.answer.etag, sizeof(etag));
    ck_assert_int_eq(ask("main/test.zarr/g/a/c/1"), 200);
    ck_assert_str_eq(etag, reply.answer.etag); /* both versions have this chunk */
}

TEST(a_branch_that_moves_shows_its_new_commit)
{
    ck_assert_int_eq(ask("main/test.zarr/g/a/c/2"), 200);
    scenario_set_number(&t, "/g/a", 25, -1);
    ck_assert_int_eq(ask("main/test.zarr/g/a/c/2"), 200); /* what is uncommitted is not served */
    same_as_key("main", "g/a/c/2", 0, 0);
    scenario_commit(&t, "third");
    ck_assert_int_eq(ask("main/test.zarr/g/a/c/2"), 200);
    same_as_key("main", "g/a/c/2", 0, 0);
}

TEST(a_client_that_has_the_bytes_gets_none)
{
    char etag[80];
    static const char *const keys[] = { "g/a/c/0", "zarr.json", "g/a/zarr.json" };
    for (size_t i = 0; i < 3; i++) {
        char path[100];
        (void)snprintf(path, sizeof(path), "main/test.zarr/%s", keys[i]);
        request.if_none_match = NULL;
        ck_assert_int_eq(ask(path), 200);
        (void)snprintf(etag, sizeof(etag), "\"%s\"", reply.answer.etag);
        request.if_none_match = etag;
        ck_assert_int_eq(ask(path), 304);
        ck_assert_uint_eq(reply.answer.body.len, 0);
        request.if_none_match = "\"other\"";
        ck_assert_int_eq(ask(path), 200);
        ck_assert_uint_gt(reply.answer.body.len, 0);
    }
}

/* ---- parts -------------------------------- */

typedef struct part_row {
    const char *range;
    int status;
    size_t start, len; /* len 0: the whole */
} part_row;

static const part_row part_rows[] = {
    { "bytes=0-3", 206, 0, 4 },   { "bytes=4-", 206, 4, 36 },    { "bytes=-4", 206, 36, 4 },
    { "bytes=-400", 206, 0, 40 }, { "bytes=39-99", 206, 39, 1 }, { "bytes=40-", 416, 0, 0 },
    { "bytes=-0", 416, 0, 0 },    { "bytes=99-100", 416, 0, 0 }, { "bytes=0-1,3-4", 200, 0, 0 },
    { "lines=0-1", 200, 0, 0 },   { "bytes=3-2", 200, 0, 0 },
};

EACH(a_part_is_what_was_asked_for, part_rows)
{
    const part_row *row = &part_rows[_i];
    scenario_recode(&t, t.session, "/g/a",
                    "[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}}]", 1);
    scenario_commit(&t, "plain");
    request.range = row->range;
    ck_assert_int_eq(ask("main/test.zarr/g/a/c/0"), row->status);
    if (row->status == 416) {
        ck_assert_uint_eq(reply.answer.body.len, 0);
        ck_assert_uint_eq(reply.whole, 40);
        return;
    }
    same_as_key("main", "g/a/c/0", row->start, row->len);
    if (row->status == 206) {
        ck_assert_uint_eq(reply.start, row->start);
        ck_assert_uint_eq(reply.whole, 40);
    }
    ck_assert(reply.has_ranges);
}

TEST(a_part_of_a_made_document_is_cut_from_it)
{
    brc_buf whole = BRC_BUF_INIT;
    ck_assert_int_eq(ask("main/test.zarr/zarr.json"), 200);
    OK(&t, brc_buf_append(&whole, reply.answer.body.data, reply.answer.body.len, &t.err));
    for (size_t i = 0; i < sizeof(part_rows) / sizeof(part_rows[0]); i++) {
        char range[40];
        request.range = range;
        (void)snprintf(range, sizeof(range), "bytes=%zu-%zu", i, i + 7);
        ck_assert_int_eq(ask("main/test.zarr/zarr.json"), 206);
        ck_assert_mem_eq(reply.answer.body.data, whole.data + i, 8);
    }
    request.range = "bytes=-5";
    ck_assert_int_eq(ask("main/test.zarr/zarr.json"), 206);
    ck_assert_mem_eq(reply.answer.body.data, whole.data + whole.len - 5, 5);
    ck_assert_uint_eq(reply.start, whole.len - 5);
    request.range = "bytes=-0";
    ck_assert_int_eq(ask("main/test.zarr/zarr.json"), 416);
    request.range = "bytes=9999999-";
    ck_assert_int_eq(ask("main/test.zarr/zarr.json"), 416);
    brc_buf_dispose(&whole);
}

TEST(a_part_is_only_sent_of_the_same_bytes)
{
    char etag[80];
    ck_assert_int_eq(ask("main/test.zarr/g/a/c/0"), 200);
    (void)snprintf(etag, sizeof(etag), "\"%s\"", reply.answer.etag);
    request.range = "bytes=0-3";
    request.if_range = etag;
    ck_assert_int_eq(ask("main/test.zarr/g/a/c/0"), 206);
    request.if_range = "\"other\"";
    ck_assert_int_eq(ask("main/test.zarr/g/a/c/0"), 200);
    same_as_key("main", "g/a/c/0", 0, 0);
}

TEST(a_head_has_the_length_alone)
{
    static const char *const paths[] = { "main/test.zarr/g/a/c/0", "main/test.zarr/zarr.json",
                                         "v2/main/test.zarr/g/a/.zarray" };
    for (size_t i = 0; i < 3; i++) {
        request.is_head = 0;
        request.range = NULL;
        ck_assert_int_eq(ask(paths[i]), 200);
        const size_t len = reply.answer.body.len;
        request.is_head = 1;
        request.range = "bytes=0-1";
        ck_assert_int_eq(ask(paths[i]), 200);
        ck_assert_uint_eq(reply.length, len);
        ck_assert_uint_eq(reply.answer.body.len, 0);
    }
}

/* ---- what is missing -------------------------------- */

TEST(what_is_missing_is_not_taken_for_a_chunk_of_fill_value)
{
    ck_assert_int_eq(ask("main/test.zarr/g/a/c/10"), 404);
    ck_assert_int_eq(ask("main/test.zarr/g/b/zarr.json"), 404);
    ck_assert_int_eq(ask("main/test.zarr/none/"), 404);
    ck_assert_int_eq(ask("gone/test.zarr/g/a/zarr.json"), 404);
    ck_assert_int_eq(ask("gone/test.zarr/g/a/c/0"), 410);
    ck_assert_int_eq(ask("main/other.zarr/zarr.json"), 404);
    ck_assert_int_eq(ask("main/other.zarr/g/a/c/0"), 410);
    ck_assert(!says(t.dir));
    ck_assert_int_eq(ask("main/test.zarr"), 301);
    ck_assert_uint_eq(reply.location.len, strlen("./test.zarr/"));
    ck_assert_mem_eq(reply.location.data, "./test.zarr/", reply.location.len);
}

TEST(a_file_that_goes_away_is_gone)
{
    char aside[200];
    ck_assert_int_eq(ask("main/test.zarr/g/a/c/0"), 200);
    (void)snprintf(aside, sizeof(aside), "%s.aside", t.file);
    ck_assert_int_eq(rename(t.file, aside), 0);
    ck_assert_int_eq(ask("main/test.zarr/g/a/c/0"), 410);
    ck_assert(!says(t.dir));
    ck_assert_int_eq(rename(aside, t.file), 0);
    ck_assert_int_eq(ask("main/test.zarr/g/a/c/0"), 200);
}

TEST(a_file_in_the_place_of_another_is_another)
{
    char other[200];
    breccia *repo;
    brc_session *s;
    char hex[65], path[200];
    const brc_open_opts opts = { .size = sizeof(opts), .flags = BRC_OPEN_CREATE };
    (void)snprintf(path, sizeof(path), "%s/test.zarr/g/a/c/0", head_of(hex, "main"));
    ck_assert_int_eq(ask(path), 200);
    (void)snprintf(other, sizeof(other), "%s.other", t.file);
    OK(&t, brc_open(&repo, other, &opts, &t.err));
    OK(&t, brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &t.err));
    OK(&t, brc_group_create(s, "/h", NULL, &t.err));
    const brc_commit_opts commit = { .size = sizeof(commit), .message = "other" };
    OK(&t, brc_session_commit(NULL, s, &commit, &t.err));
    brc_session_free(s);
    brc_free(repo);
    scenario_close(&t);
    ck_assert_int_eq(rename(other, t.file), 0);
    request.may_wait = 0;
    ck_assert_int_eq(ask("main/test.zarr/h/zarr.json"), 0); /* it must be opened first */
    request.may_wait = 1;
    ck_assert_int_eq(ask("main/test.zarr/h/zarr.json"), 200);
    ck_assert_int_eq(ask("main/test.zarr/g/a/zarr.json"), 404);
    ck_assert_int_eq(ask(path), 410);
}

TEST(a_root_is_not_left)
{
    char outside[200], link[200];
    (void)snprintf(outside, sizeof(outside), "%s/sub", t.dir);
    ck_assert_int_eq(mkdir(outside, 0700), 0);
    (void)snprintf(link, sizeof(link), "%s/sub/out.brc", t.dir);
    ck_assert_int_eq(symlink(t.file, link), 0);
    serve_file(NULL, outside);
    ck_assert_int_eq(ask("main/out.zarr/zarr.json"), 404);
    ck_assert_int_eq(ask("main/..%2Ftest.zarr/zarr.json"), 404);
    serve_file(NULL, t.dir);
    ck_assert_int_eq(ask("main/test.zarr/g/a/c/0"), 200);
    ck_assert_int_eq(ask("main/sub/out.zarr/zarr.json"), 404); /* an absolute link leaves it too */
    ck_assert_int_eq(unlink(link), 0);
    ck_assert_int_eq(symlink("../test.brc", link), 0);
    ck_assert_int_eq(ask("main/sub/out.zarr/zarr.json"), 200);
    ck_assert_int_eq(ask("main/"), 200);
    ck_assert(says("href=\"./test.zarr/\"") && says("href=\"./sub/\""));
    ck_assert_int_eq(ask("main/sub/"), 200);
    ck_assert(says("href=\"./out.zarr/\""));
    ck_assert_int_eq(ask("main/none/"), 404);
}

/* ---- work -------------------------------- */

TEST(what_must_be_decoded_is_for_workers_and_bounded)
{
    scenario_recode(&t, t.session, "/g/a",
                    "[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}}]", 1);
    scenario_commit(&t, "plain");
    scenario_recode(&t, t.session, "/g/a",
                    "[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"big\"}}]", 0);
    scenario_commit(&t, "other codecs");
    request.may_wait = 0;
    ck_assert_int_eq(ask("main/test.zarr/g/a/c/0"), 0); /* the file is opened by a worker */
    request.may_wait = 1;
    ck_assert_int_eq(ask("main/test.zarr/g/a/c/0"), 200);
    same_as_key("main", "g/a/c/0", 0, 0);
    request.may_wait = 0;
    ck_assert_int_eq(ask("main/test.zarr/g/a/c/0"), 0);
    ck_assert_int_eq(ask("main~1/test.zarr/g/a/c/0"), 200);
    request.may_wait = 1;
    request.limits.bytes = 39;
    ck_assert_int_eq(ask("main/test.zarr/g/a/c/0"), 413);
    ck_assert(says("would have to be decoded"));
    ck_assert_int_eq(ask("main~1/test.zarr/g/a/c/0"), 200);
}

TEST(a_document_is_made_by_a_worker_and_then_kept)
{
    ck_assert_int_eq(ask("main/test.zarr/g/a/c/0"), 200);
    request.may_wait = 0;
    ck_assert_int_eq(ask("main/test.zarr/zarr.json"), 0);
    ck_assert_int_eq(ask("main/test.zarr/g/a/zarr.json"), 200); /* the array's own */
    request.may_wait = 1;
    ck_assert_int_eq(ask("main/test.zarr/zarr.json"), 200);
    ck_assert(says("\"metadata\":{\"g\":{") && says("\"g/a\":{\"zarr_format\":3"));
    request.may_wait = 0;
    ck_assert_int_eq(ask("main/test.zarr/zarr.json"), 200);
    ck_assert(says("\"g/a\":{\"zarr_format\":3"));
}

TEST(a_group_of_too_many_nodes_has_its_own_document_alone)
{
    OK(&t, brc_begin(t.repo, &t.err));
    for (int i = 0; i <= 10000; i++) {
        char path[32];
        (void)snprintf(path, sizeof(path), "/many/%d", i);
        OK(&t, brc_group_create(t.session, path, NULL, &t.err));
    }
    OK(&t, brc_end(t.repo, BRC_END_KEEP, &t.err));
    scenario_commit(&t, "many");
    ck_assert_int_eq(ask("main/test.zarr/many/zarr.json"), 200);
    ck_assert(!says("consolidated_metadata") && says("\"node_type\":\"group\"}"));
    ck_assert_int_eq(ask("v2/main/test.zarr/many/.zmetadata"), 404);
    OK(&t, brc_node_remove(t.session, "/many/7", &t.err));
    scenario_commit(&t, "one fewer");
    ck_assert_int_eq(ask("main/test.zarr/many/zarr.json"), 200);
    ck_assert(says("consolidated_metadata") && says("\"9999\":{"));
}

/* ---- version 2 -------------------------------- */

TEST(keys_of_version_2_have_the_same_chunks)
{
    ck_assert_int_eq(ask("v2/main/test.zarr/.zgroup"), 200);
    ck_assert(says("{\"zarr_format\":2}"));
    ck_assert_int_eq(ask("v2/main/test.zarr/g/a/.zarray"), 200);
    ck_assert(says("\"chunks\":[10]"));
    ck_assert_int_eq(ask("v2/main/test.zarr/g/a/3"), 200);
    same_as_key("main", "g/a/c/3", 0, 0);
    ck_assert_int_eq(ask("v2/main/test.zarr/.zmetadata"), 200);
    ck_assert(says("\"g/a/.zarray\":{"));
    static const char *const none[] = {
        "zarr.json",  "g/a/c/3",   "g/a/03", "g/a/10",      "g/a/1/1",
        "g/a/x",      "g/.zarray", "g/3",    "g/a/.zgroup", "g/a/99999999999999999999",
        "g/a/.zattrs"
    };
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        char path[100];
        (void)snprintf(path, sizeof(path), "v2/main/test.zarr/%s", none[i]);
        ck_assert_msg(ask(path) == 404, "%s: %d", none[i], reply.answer.status);
    }
    brc_array_free(scenario_array(&t, "/0/1", "uint8", 2, (uint64_t[]){ 20, 30 },
                                  (uint64_t[]){ 10, 10 }, NULL, "[\"bytes\"]"));
    scenario_fill(&t, t.session, "/0/1", "[10:20, 20:30]", "\3");
    scenario_commit(&t, "two axes");
    ck_assert_int_eq(ask("v2/main/test.zarr/0/1/1/2"), 200);
    same_as_key("main", "0/1/c/1/2", 0, 0);
    ck_assert_int_eq(ask("v2/main/test.zarr/0/1/1.2"), 404); /* its separator is another */
    ck_assert_int_eq(ask("v2/main/test.zarr/0/1/1/"), 200);
    ck_assert(says("\"./2\"") && !says("\"./1\""));
    ck_assert_int_eq(ask("v2/main/test.zarr/g/a/"), 200);
    ck_assert(says("./.zarray") && says("\"./9\"") && !says("zarr.json"));
}

/* ---- lists -------------------------------- */

TEST(a_list_has_each_name_once)
{
    ck_assert_int_eq(ask("main/test.zarr/"), 200);
    ck_assert(says("href=\"./g/\"") && says("href=\"./zarr.json\""));
    ck_assert_int_eq(ask("main/test.zarr/g/a/c/"), 200);
    ck_assert(says("href=\"./0\"") && says("href=\"./9\""));
    ck_assert_int_eq(ask("main/"), 200);
    ck_assert(says("href=\"./test.zarr/\""));
}

TEST(a_list_of_s3_goes_on_where_the_last_one_ended)
{
    char path[300] = "main/test.zarr?list-type=2&prefix=g/&max-keys=4";
    static const char *const ends[] = { "g/a/c/3", "g/a/c/7", "g/a/zarr.json" };
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(ask(path), 200);
        ck_assert(says("<KeyCount>4</KeyCount>"));
        char token[100];
        (void)snprintf(token, sizeof(token), "<NextContinuationToken>%s<", ends[i]);
        ck_assert_int_eq(says(token), i < 2);
        ck_assert_int_eq(says("<IsTruncated>false<"), i == 2);
        (void)snprintf(path, sizeof(path),
                       "main/test.zarr?list-type=2&prefix=g/&max-keys=4&continuation-token=%s",
                       ends[i]);
    }
    ck_assert_int_eq(ask("main/test.zarr/g?list-type=2&delimiter=%2F&prefix=a/c/0"), 200);
    ck_assert(says("<Key>a/c/0</Key>") && says("<KeyCount>1</KeyCount>"));
    ck_assert_int_eq(ask("main/test.zarr?list-type=2&delimiter=%2F&prefix=g/"), 200);
    ck_assert(says("<CommonPrefixes><Prefix>g/a/</Prefix>") && says("<Key>g/zarr.json</Key>"));
    ck_assert_int_eq(ask("?list-type=2&prefix=main/test.zarr/g/a/z"), 200);
    ck_assert(says("<Key>main/test.zarr/g/a/zarr.json</Key>"));
    ck_assert_int_eq(ask("main/test.zarr?list-type=2&delimiter=x"), 400);
}
