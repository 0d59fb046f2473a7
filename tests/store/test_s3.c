/*
 * Chunks in a bucket, on a server that fails in every way that a network and a server have:
 * nothing is lost, nothing is wrong, and the sentence names place and remedy.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/backends/s3_http.h"
#include "../../src/base/file.h"
#include "../../src/codec/registry.h"
#include "../../src/store/store.h"
#include "../kit/backend_kit.h"
#include "../kit/effort.h"
#include "../kit/ios.h"
#include "../kit/s3_server.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(s3);

enum { NUMBERS = 4096, IN_CHUNK = 256 };

static scenario t;
static s3_server *server;
static int asked; /* how often credentials were asked for */
static const char *answer;

/* ---- a repository with its chunks in the bucket -------------------------------- */

static int give(void *ctx, const brc_server *from, brc_credentials *out, brc_error *err)
{
    (void)ctx;
    asked++;
    ck_assert_str_eq(from->kind, "s3");
    ck_assert_str_eq(from->bucket, "box");
    if (strcmp(answer, "no") == 0) {
        err->code = BRC_ECONFLICT;
        snprintf(err->message, sizeof(err->message), "nobody has allowed this");
        return BRC_ECONFLICT;
    }
    snprintf(out->key, sizeof(out->key), "%s", answer);
    snprintf(out->secret, sizeof(out->secret), "secret");
    return BRC_OK;
}

static const char *spec(void)
{
    static char text[400];
    snprintf(text, sizeof(text),
             "{\"name\":\"s3\",\"configuration\":{\"endpoint\":\"%s\",\"bucket\":\"box\","
             "\"prefix\":\"some/where\"}}",
             s3_server_endpoint(server));
    return text;
}

static void open_file(uint32_t flags)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.credentials = give;
    scenario_open(&t, &opts, flags);
}

static void start(void)
{
    static const uint64_t shape = NUMBERS, chunk = IN_CHUNK;
    brc_array_spec array = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    memset(&t, 0, sizeof(t));
    asked = 0;
    answer = "key";
    server = s3_server_start();
    scenario_folder(&t);
    open_file(BRC_OPEN_CREATE);
    array.ndim = 1;
    array.shape = &shape;
    array.chunk = &chunk;
    array.dtype = "int32";
    array.backend_json = spec();
    OK(&t, brc_array_create(&a, t.session, "/a", &array, &t.err));
    brc_array_free(a);
}

static void stop(void)
{
    scenario_stop(&t);
    s3_server_stop(server);
}

static void values(int32_t out[NUMBERS], int32_t first)
{
    for (int i = 0; i < NUMBERS; i++)
        out[i] = first + i * 7;
}

static int put_values(int32_t first)
{
    int32_t data[NUMBERS];
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    values(data, first);
    const int rc = brc_array_write(a, NULL, data, sizeof(data), &t.err);
    brc_array_free(a);
    return rc;
}

static int get_values(int32_t got[NUMBERS])
{
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    memset(got, 0x77, NUMBERS * sizeof(int32_t));
    const int rc = brc_array_read(a, NULL, got, NUMBERS * sizeof(int32_t), &t.err);
    brc_array_free(a);
    return rc;
}

static void check_values(int32_t first)
{
    int32_t got[NUMBERS], want[NUMBERS];
    values(want, first);
    OK(&t, get_values(got));
    ck_assert_int_eq(memcmp(got, want, sizeof(got)), 0);
}

/* A new handle: nothing that an earlier one has in memory helps. */
static void again(void)
{
    scenario_close(&t);
    open_file(0);
}

static void says(const char *text)
{
    ck_assert_msg(strstr(t.err.message, text) != NULL, "not \"%s\": %s", text, t.err.message);
}

/* ---- what works -------------------------------- */

CASE("fine", .setup = start, .teardown = stop);

TEST(chunks_come_back_from_the_bucket)
{
    OK(&t, put_values(1));
    check_values(1);
    scenario_commit(&t, "one");
    again();
    check_values(1);
    ck_assert_int_ge(s3_server_objects(server, "/box/some/where/"), 1);
    ck_assert_int_eq(s3_server_objects(server, "/box/some/where/"), s3_server_objects(server, ""));
    scenario_whole(&t);
}

TEST(a_small_commit_takes_few_requests)
{
    OK(&t, put_values(1));
    scenario_commit(&t, "one");
    again();
    const int before = s3_server_requests(server);
    scenario_set_number(&t, "/a", 300, 5);
    scenario_commit(&t, "two");
    ck_assert_int_le(s3_server_requests(server) - before, 4);
}

TEST(near_chunks_are_read_together)
{
    OK(&t, put_values(1));
    scenario_commit(&t, "one");
    again();
    const int before = s3_server_requests(server);
    check_values(1);
    ck_assert_int_le(s3_server_requests(server) - before, 2); /* 16 chunks of 1 KiB */
}

/* The limits of what is read together are the handle's, and may change between two calls. */
TEST(P13_the_limits_of_ranges_are_chosen_by_handle)
{
    enum { CHUNKS = NUMBERS / IN_CHUNK, BYTES = IN_CHUNK * 4 };
    static const struct {
        uint64_t gap, range;
        int least, most; /* requests; a chunk takes at most BYTES             */
    } limits[] = { { 0, 0, 1, 4 }, { 1, 1, CHUNKS, CHUNKS + 4 }, { 0, 2 * BYTES, 2, CHUNKS - 2 } };
    brc_pipeline_opts opts = BRC_PIPELINE_OPTS_INIT;
    OK(&t, put_values(1));
    scenario_commit(&t, "one");
    again();
    check_values(1); /* finds out about the pack */
    for (size_t i = 0; i < 3; i++) {
        opts.gap = limits[i].gap;
        opts.range = limits[i].range;
        OK(&t, brc_pipeline_set(t.repo, &opts, &t.err));
        const int before = s3_server_requests(server);
        check_values(1);
        const int requests = s3_server_requests(server) - before;
        ck_assert_msg(requests >= limits[i].least && requests <= limits[i].most,
                      "%zu: %d requests", i, requests);
    }
}

/* Each chunk lies in a pack of its own. The requests of one call have a connection each. */
TEST(far_chunks_are_asked_for_at_once)
{
    enum { MANY = 8, LONG = 32768 };
    static const uint64_t shape = MANY * LONG, chunk = LONG;
    static int32_t got[MANY * LONG];
    brc_array_spec array = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    array.ndim = 1;
    array.shape = &shape;
    array.chunk = &chunk;
    array.dtype = "int32";
    array.backend_json = spec();
    OK(&t, brc_array_create(&a, t.session, "/b", &array, &t.err));
    brc_array_free(a);
    for (int i = 0; i < MANY; i++)
        scenario_set_number(&t, "/b", (uint64_t)i * LONG, i + 1);
    scenario_commit(&t, "apart");
    again();
    const int before = s3_server_connections(server);
    scenario_read(&t, t.session, "/b", got, sizeof(got));
    ck_assert_int_ge(s3_server_connections(server) - before, MANY);
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(got[i * LONG], i + 1);
}

/* Chunks that lie too far from each other to be read together: many requests wait for their answers
 * at once, and not more than a server may be asked. */
TEST(scattered_chunks_are_asked_for_as_many_as_may_be_at_once)
{
    enum { MANY = 160, LONG = 32768, MOST = 64 };
    static const uint64_t shape = MANY * LONG, chunk = LONG;
    brc_array_spec array = BRC_ARRAY_SPEC_INIT;
    brc_sel sel = BRC_SEL_INIT;
    brc_array *a;
    uint32_t got[MANY / 2], *data = malloc(sizeof(*data) * MANY * LONG);
    array.ndim = 1;
    array.shape = &shape;
    array.chunk = &chunk;
    array.dtype = "uint32";
    array.codecs_json = "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]";
    array.backend_json = spec();
    for (uint32_t i = 0; i < MANY * LONG; i++)
        data[i] = i;
    OK(&t, brc_array_create(&a, t.session, "/b", &array, &t.err));
    OK(&t, brc_array_write(a, NULL, data, sizeof(*data) * MANY * LONG, &t.err));
    brc_array_free(a);
    again();
    a = scenario_array_at(&t, t.session, "/b");
    OK(&t, brc_sel_parse(&sel, a, "[::65536]", &t.err));
    s3_server_delay(server, 40);
    const int before = s3_server_requests(server), connections = s3_server_connections(server);
    OK(&t, brc_array_read(a, &sel, got, sizeof(got), &t.err));
    ck_assert_int_eq(s3_server_requests(server) - before, MANY / 2);
    ck_assert_int_ge(s3_server_at_once(server), MOST / 2); /* on a machine that is slow, too */
    ck_assert_int_le(s3_server_at_once(server), MOST);
    ck_assert_int_le(s3_server_connections(server) - connections, MOST);
    for (uint32_t i = 0; i < MANY / 2; i++)
        ck_assert_uint_eq(got[i], i * 2 * LONG);
    brc_array_free(a);
    free(data);
}

enum { CALLS = 4, IN_A_CALL = 64, MOST_AT_ONCE = 128 };

static int give_any(void *ctx, const brc_server *from, brc_credentials *out, brc_error *err)
{
    (void)ctx;
    (void)from;
    (void)err;
    memcpy(out->key, "key", 4);
    memcpy(out->secret, "secret", 7);
    return BRC_OK;
}

static void *call_main(void *client)
{
    static brc_s3_request requests[CALLS][IN_A_CALL];
    static atomic_int calls;
    brc_s3_request *mine = requests[calls++];
    size_t done = 0;
    for (int i = 0; i < IN_A_CALL; i++)
        mine[i] = (brc_s3_request){ .method = "GET", .key = "small", .len = 5, .most = 5 };
    const int rc = brc_s3_run(client, IN_A_CALL, mine, NULL);
    for (int i = 0; i < IN_A_CALL; i++) {
        done += rc == BRC_OK && brc_s3_failed(client, &mine[i], NULL) == BRC_OK;
        brc_buf_dispose(&mine[i].answer);
    }
    return (void *)(uintptr_t)done;
}

static brc_s3_client *client_new(const char *endpoint, int idle_s)
{
    static const brc_backend_host host = { .size = sizeof(host), .credentials = give_any };
    brc_s3_config config;
    brc_s3_client *client;
    brc_json *json;
    char text[200];
    snprintf(text, sizeof(text), "{\"endpoint\":\"%s\",\"bucket\":\"box\"}", endpoint);
    OK(&t, brc_json_parse(&json, text, strlen(text), 0, &t.err));
    OK(&t, brc_s3_config_read(&config, json, &t.err));
    brc_json_free(json);
    ck_assert_int_gt(config.idle_s, idle_s);
    config.idle_s = idle_s;
    OK(&t, brc_s3_client_new(&client, &config, &host, &t.err));
    return client;
}

TEST(the_calls_of_a_repository_share_what_a_server_may_be_asked)
{
    pthread_t threads[CALLS];
    brc_s3_client *client = client_new(s3_server_endpoint(server), 10);
    s3_server_put(server, "/box/small", "hello", 5);
    s3_server_delay(server, 200);
    for (int i = 0; i < CALLS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call_main, client), 0);
    for (int i = 0; i < CALLS; i++) {
        void *done;
        ck_assert_int_eq(pthread_join(threads[i], &done), 0);
        ck_assert_uint_eq((uintptr_t)done, IN_A_CALL);
    }
    ck_assert_int_gt(s3_server_at_once(server), IN_A_CALL);
    ck_assert_int_le(s3_server_at_once(server), MOST_AT_ONCE + CALLS);
    brc_s3_client_free(client);
}

/* A host that takes connections and never says a word. */
static int listen_only(char *endpoint, size_t size)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(at);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    ck_assert_int_eq(listen(fd, 4 * IN_A_CALL), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    snprintf(endpoint, size, "http://127.0.0.1:%d", ntohs(at.sin_port));
    return fd;
}

/* A request that is given up, after two attempts at most, gives up all others: a third of them
 * began. */
TEST(a_host_that_swallows_requests_is_given_up_soon)
{
    enum { MANY = 3 * IN_A_CALL };
    static brc_s3_request many[MANY];
    char endpoint[40];
    const int fd = listen_only(endpoint, sizeof(endpoint));
    brc_s3_client *client = client_new(endpoint, 1);
    int tries = 0;
    for (int i = 0; i < MANY; i++)
        many[i] = (brc_s3_request){ .method = "GET", .key = "small", .len = 5, .most = 5 };
    OK(&t, brc_s3_run(client, MANY, many, &t.err));
    for (int i = 0; i < MANY; i++) {
        tries = many[i].tries > tries ? many[i].tries : tries;
        FAILS(&t, BRC_EIO, brc_s3_failed(client, &many[i], &t.err));
        ck_assert_msg(strstr(t.err.message, "did not answer in time, "), "%s", t.err.message);
        brc_buf_dispose(&many[i].answer);
    }
    ck_assert_int_le(tries, 2);
    brc_s3_client_free(client);
    close(fd);
}

TEST(the_kit_of_backends_finds_nothing)
{
    char why[500], config[400];
    brc_registry *reg;
    brc_backend with;
    OK(&t, brc_registry_new(&reg, &t.err));
    with = *brc_registry_backend(reg, "s3");
    snprintf(config, sizeof(config), "{\"endpoint\":\"%s\",\"bucket\":\"box\"}",
             s3_server_endpoint(server));
    backend_kit kit = { .backend = &with, .config = config, .folder = t.dir, .seed = 1,
                        .credentials = give };
    ck_assert_msg(backend_kit_run(&kit, why, sizeof(why)) == 0, "%s", why);
    brc_registry_free(reg);
}

/* ---- a server that fails -------------------------------- */

/* Faults that pass: one request goes wrong, and nobody notices. */
static const int passing[] = { S3_CLOSED, S3_LOST, S3_CUT, S3_LONG, S3_OTHER, S3_STATUS + 400,
                               S3_STATUS + 403 };

CASE("a fault that passes", .setup = start, .teardown = stop, .timeout = 120);

/* Writes, commits, changes a number, and reads all again; the n-th request from now on goes wrong.
 * */
static int life(int n, int how)
{
    const int before = s3_server_requests(server), first = 1 + before;
    s3_server_fail(server, n, 1, how);
    OK(&t, put_values(first));
    scenario_commit(&t, "one");
    again();
    scenario_set_number(&t, "/a", 300, 5);
    scenario_commit(&t, "two");
    again();
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 300), 5);
    scenario_set_number(&t, "/a", 300, first + 300 * 7);
    again();
    check_values(first);
    scenario_commit(&t, "three");
    scenario_whole(&t);
    return s3_server_requests(server) - before;
}

EACH(each_request_may_go_wrong_once, passing)
{
    const int requests = life(1000, S3_FINE);
    const int step = (int)effort_step(3, 5);
    ck_assert_int_gt(requests, 5);
    for (int n = _i % step; n < requests; n += step)
        ck_assert_int_ge(life(n, passing[_i]), requests);
}

TEST(a_server_without_conditional_writes_does)
{
    s3_server_fail(server, 0, 1000, S3_PLAIN);
    OK(&t, put_values(1));
    check_values(1);
}

TEST(a_server_that_only_says_that_a_pack_is_there_is_not_believed)
{
    s3_server_code(server, "PreconditionFailed", "");
    s3_server_fail(server, 0, 1000, S3_STATUS + 312);
    FAILS(&t, BRC_EIO, put_values(1));
    s3_server_fail(server, 0, 0, S3_FINE);
    OK(&t, put_values(1));
    again();
    check_values(1);
}

TEST(a_read_that_hangs_is_sent_twice)
{
    OK(&t, put_values(1));
    again();
    s3_server_fail(server, 0, 1, S3_SLOW);
    check_values(1);
}

TEST(bytes_that_changed_on_the_way_are_never_believed)
{
    int32_t got[NUMBERS];
    OK(&t, put_values(1));
    again();
    s3_server_fail(server, 0, 1000, S3_WRONG);
    FAILS(&t, BRC_ECORRUPT, get_values(got));
    s3_server_fail(server, 0, 0, S3_FINE);
    check_values(1);
}

/* ---- faults that stay -------------------------------- */

static const struct {
    int how;
    const char *code, *region;
    int rc;
    const char *say[3];
} staying[] = {
    { S3_CLOSED, "", "", BRC_EIO, { "s3://box/some/where/", "6 times", "try again" } },
    { S3_STATUS + 403, "SlowDown", "", BRC_EIO, { "503 (SlowDown)", "6 times",
                                                  "try again later" } },
    { S3_STATUS + 303, "AccessDenied", "", BRC_EIO, { "access key key", "AccessDenied",
                                                      "right to" } },
    { S3_STATUS + 303, "SignatureDoesNotMatch", "", BRC_EIO, { "key key with this secret",
                                                               "check both", "" } },
    { S3_STATUS + 303, "RequestTimeTooSkewed", "", BRC_EIO, { "set the clock", "", "" } },
    { S3_STATUS + 304, "NoSuchBucket", "", BRC_ENOTFOUND, { "no bucket \"box\"", "make it", "" } },
    { S3_STATUS + 201, "PermanentRedirect", "eu-north-1", BRC_EINVAL,
      { "us-east-1 but in eu-north-1", "\"region\"", "" } },
    { S3_STATUS + 300, "AuthorizationHeaderMalformed", "eu-north-1", BRC_EINVAL, { "eu-north-1",
                                                                                   "region", "" } },
    { S3_STATUS + 407, "", "", BRC_ENOSPACE, { "the bucket is full", "", "" } },
    { S3_STATUS + 318, "<&;", "", BRC_EIO, { "answered 418,", "", "" } },
};

CASE("a fault that stays", .setup = start, .teardown = stop, .timeout = 120);

EACH(writing_fails_and_loses_nothing, staying)
{
    OK(&t, put_values(1));
    scenario_commit(&t, "one");
    s3_server_code(server, staying[_i].code, staying[_i].region);
    s3_server_fail(server, 0, 1000, staying[_i].how);
    FAILS(&t, staying[_i].rc, put_values(9000));
    for (int i = 0; i < 3; i++)
        says(staying[_i].say[i]);
    says("s3://box");
    ck_assert(scenario_clean(&t));
    s3_server_fail(server, 0, 0, S3_FINE);
    check_values(1);
    OK(&t, put_values(9000)); /* and what waits to be sent is sent */
    again();
    check_values(9000);
    scenario_whole(&t);
}

static const struct {
    int how, rc;
    const char *say;
} unread[] = {
    { S3_CUT, BRC_EIO, "try again" },
    { S3_LONG, BRC_EIO, "more than was asked for" },
    { S3_WHOLE, BRC_EUNSUPPORTED, "range" },
    { S3_OTHER, BRC_EUNSUPPORTED, "range" },
    { S3_STATUS + 400, BRC_EIO, "500 (InternalError), 6 times" },
};

EACH(reading_fails_and_says_why, unread)
{
    int32_t got[NUMBERS];
    OK(&t, put_values(1));
    scenario_commit(&t, "one");
    again();
    s3_server_fail(server, 0, 1000, unread[_i].how);
    FAILS(&t, unread[_i].rc, get_values(got));
    says(unread[_i].say);
    says("/a chunk (");
    says("s3://box/some/where/");
    s3_server_fail(server, 0, 0, S3_FINE);
    check_values(1);
}

LOOP(a_pack_that_is_cut_off_or_missing_is_named, 0, 2)
{
    int32_t got[NUMBERS];
    char key[700];
    OK(&t, put_values(1));
    scenario_commit(&t, "one");
    again();
    snprintf(key, sizeof(key), "%s", s3_server_object(server, 0));
    s3_server_damage(server, key, _i == 0 ? 3000 : -1);
    FAILS(&t, BRC_ECORRUPT, get_values(got));
    says(_i == 0 ? "cut off" : "missing");
    says("put a whole copy of it back");
    says(key + 5);
}

TEST(without_credentials_nothing_is_sent)
{
    int32_t got[NUMBERS];
    OK(&t, put_values(1));
    again();
    const int before = s3_server_requests(server);
    answer = "no";
    FAILS(&t, BRC_ECONFLICT, get_values(got));
    says("nobody has allowed this");
    ck_assert_int_eq(s3_server_requests(server), before);
    answer = "key";
    check_values(1);
}

TEST(a_request_without_a_key_is_not_signed)
{
    answer = "";
    OK(&t, put_values(1));
    s3_server_code(server, "AccessDenied", "");
    s3_server_fail(server, 0, 1000, S3_STATUS + 303);
    FAILS(&t, BRC_EIO, put_values(2));
    says("wants credentials");
    says("AWS_ACCESS_KEY_ID");
}

TEST(credentials_that_expire_are_asked_for_again)
{
    OK(&t, put_values(1));
    ck_assert_int_eq(asked, 1);
    s3_server_code(server, "ExpiredToken", "");
    s3_server_fail(server, 0, 1, S3_STATUS + 300);
    OK(&t, put_values(2));
    ck_assert_int_eq(asked, 2);
    check_values(2);
}

TEST(a_server_that_is_gone_is_named)
{
    int32_t got[NUMBERS];
    char endpoint[100];
    OK(&t, put_values(1));
    again();
    snprintf(endpoint, sizeof(endpoint), "%s", s3_server_endpoint(server));
    s3_server_stop(server);
    FAILS(&t, BRC_EIO, get_values(got));
    says(endpoint);
    says("does not take connections");
    server = s3_server_start();
}

/* ---- servers of others -------------------------------- */

/* tests/s3/run.sh starts servers and names one, with a bucket "box". */
CASE("a real server", .timeout = 300);

static int give_real(void *ctx, const brc_server *from, brc_credentials *out, brc_error *err)
{
    (void)ctx;
    (void)from;
    (void)err;
    snprintf(out->key, sizeof(out->key), "%s", getenv("AWS_ACCESS_KEY_ID"));
    snprintf(out->secret, sizeof(out->secret), "%s", getenv("AWS_SECRET_ACCESS_KEY"));
    return BRC_OK;
}

TEST(the_kit_of_backends_finds_nothing_there)
{
    const char *endpoint = getenv("BRECCIA_TEST_S3");
    char why[500], config[400];
    brc_registry *reg;
    if (endpoint == NULL)
        return;
    memset(&t, 0, sizeof(t));
    scenario_folder(&t);
    OK(&t, brc_registry_new(&reg, &t.err));
    snprintf(config, sizeof(config), "{\"endpoint\":\"%s\",\"bucket\":\"box\",\"prefix\":\"kit\"}",
             endpoint);
    backend_kit kit = { .backend = brc_registry_backend(reg, "s3"), .config = config,
                        .folder = t.dir,
                        .seed = 1, .credentials = give_real };
    ck_assert_msg(backend_kit_run(&kit, why, sizeof(why)) == 0, "%s", why);
    brc_registry_free(reg);
    brc_tree_remove(t.dir);
}

/* ---- whose packs are removed -------------------------------- */

CASE("garbage", .setup = start, .teardown = stop);

/* A backend as a collection uses it. */
typedef struct opened {
    const brc_backend *b;
    brc_registry *reg;
    brc_json *config;
    brc_backend_host host;
    void *state;
    char path[300];
    int listed;
    char last[200];
} opened;

static int never(void *ctx)
{
    (void)ctx;
    return 0;
}

static void backend_open(opened *o, const char *file, const char *more)
{
    char config[400];
    memset(o, 0, sizeof(*o));
    snprintf(o->path, sizeof(o->path), "%s/%s", t.dir, file);
    snprintf(config, sizeof(config), "{\"endpoint\":\"%s\",\"bucket\":\"box\"%s}",
             s3_server_endpoint(server), more);
    OK(&t, brc_registry_new(&o->reg, &t.err));
    OK(&t, brc_json_parse(&o->config, config, strlen(config), 0, &t.err));
    o->b = brc_registry_backend(o->reg, "s3");
    o->host = (brc_backend_host){ .size = sizeof(o->host), .file = o->path, .stopped = never,
                                  .id = "00112233445566778899aabbccddeeff", .credentials = give };
    OK(&t, o->b->open(o->b->ctx, &o->state, o->config, &o->host, &t.err));
}

static void backend_close(opened *o)
{
    o->b->close(o->b->ctx, o->state);
    brc_json_free(o->config);
    brc_registry_free(o->reg);
}

static int count(void *to, const brc_kept *kept, brc_error *err)
{
    opened *o = to;
    (void)err;
    o->listed++;
    ck_assert_uint_eq(kept->flags, BRC_KEPT_PLACE | BRC_KEPT_OWN);
    ck_assert_int_eq(kept->time_us, INT64_C(1795953600) * 1000000);
    ck_assert_uint_gt(kept->len, 64);
    snprintf(o->last, sizeof(o->last), "%s", kept->name);
    return BRC_OK;
}

static int listed(opened *o)
{
    o->listed = 0;
    OK(&t, o->b->list(o->b->ctx, o->state, count, o, &t.err));
    return o->listed;
}

static void put_pack(opened *o)
{
    brc_stored item = { .size = sizeof(item), .len = 5,
                        .data = (const uint8_t *)"hello" }, *one = &item;
    OK(&t, o->b->put(o->b->ctx, o->state, 1, &one, &t.err));
    OK(&t, o->b->flush(o->b->ctx, o->state, &t.err));
    snprintf(o->last, sizeof(o->last), "%s", item.place);
    brc_stored_clear(&item);
}

static void drop_pack(opened *o, const char *place)
{
    brc_stored item = { .size = sizeof(item), .place = place, .flags = BRC_STORED_OWN,
                        .status = BRC_BACKEND_NOT_DONE }, *one = &item;
    OK(&t, o->b->drop(o->b->ctx, o->state, 1, &one, &t.err));
    ck_assert_int_eq(item.status, BRC_OK);
}

TEST(a_copy_neither_lists_nor_removes_what_the_original_put)
{
    char path[300];
    opened mine, copy, other;
    const char *const files[] = { "mine.brc", "copy.brc" };
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%s", t.dir, files[i]);
        fclose(fopen(path, "w"));
    }
    backend_open(&mine, "mine.brc", "");
    backend_open(&copy, "copy.brc", "");
    backend_open(&other, "mine.brc", ",\"pack_bytes\":1048576"); /* another backend of the file */
    for (int i = 0; i < 5; i++) /* more than a page of the list */
        put_pack(&mine);
    put_pack(&copy);
    put_pack(&other);
    ck_assert_int_eq(listed(&mine), 5);
    ck_assert_int_eq(listed(&copy), 1);
    ck_assert_int_eq(listed(&other), 1);
    drop_pack(&copy, mine.last);
    drop_pack(&mine, copy.last);
    drop_pack(&other, mine.last);
    ck_assert_int_eq(s3_server_objects(server, ""), 7);
    drop_pack(&mine, mine.last);
    drop_pack(&mine, mine.last); /* gone counts as removed */
    ck_assert_int_eq(s3_server_objects(server, ""), 6);
    backend_close(&other);
    backend_close(&copy);
    backend_close(&mine);
}

TEST(objects_of_others_below_the_prefix_are_left_alone)
{
    char path[300], key[300];
    opened mine;
    snprintf(path, sizeof(path), "%s/mine.brc", t.dir);
    fclose(fopen(path, "w"));
    backend_open(&mine, "mine.brc", "");
    put_pack(&mine);
    snprintf(key, sizeof(key), "/box/%.66sNOTES.txt", mine.last);
    s3_server_put(server, key, "mine", 4);
    ck_assert_int_eq(listed(&mine), 1);
    for (int i = 0; i < 4; i++) { /* a page without any pack leads nowhere */
        key[strlen(key) - 1]++;
        s3_server_put(server, key, "mine", 4);
    }
    FAILS(&t, BRC_EIO, mine.b->list(mine.b->ctx, mine.state, count, &mine, &t.err));
    says("does not go on");
    backend_close(&mine);
}

TEST(a_collection_removes_a_pack_that_is_held_long_enough)
{
    OK(&t, put_values(1));
    scenario_commit(&t, "one");
    again();
    const int before = s3_server_objects(server, "");
    OK(&t, put_values(2));
    OK(&t, brc_session_discard(t.session, &t.err));
    scenario_no_window(&t);
    ck_assert_int_gt(s3_server_objects(server, ""), before);
    scenario_collect(&t, 0); /* notes it, and holds it for an hour */
    ck_assert_int_gt(s3_server_objects(server, ""), before);
    scenario_collect_held(&t);
    ck_assert_int_eq(s3_server_objects(server, ""), before);
    check_values(1);
    scenario_whole(&t);
}

/* Commits that change one chunk each: a pack for each of them. */
static void many_small_commits(void)
{
    OK(&t, put_values(1));
    scenario_commit(&t, "all");
    for (int i = 0; i < 6; i++) {
        scenario_set_number(&t, "/a", (uint64_t)i * IN_CHUNK, 1000 + i);
        scenario_commit(&t, "one");
    }
}

static void check_small_commits(void)
{
    int32_t got[NUMBERS], want[NUMBERS];
    values(want, 1);
    for (int i = 0; i < 6; i++)
        want[i * IN_CHUNK] = 1000 + i;
    OK(&t, get_values(got));
    ck_assert_int_eq(memcmp(got, want, sizeof(got)), 0);
}

TEST(small_packs_are_put_together)
{
    brc_repack_report report = BRC_REPACK_REPORT_INIT;
    brc_repack_opts dry = BRC_REPACK_OPTS_INIT;
    many_small_commits();
    again();
    ck_assert_int_eq(s3_server_objects(server, ""), 7);
    dry.flags = BRC_REPACK_DRY_RUN;
    OK(&t, brc_repack(t.repo, &dry, &report, &t.err));
    ck_assert_uint_ge(report.objects, 16 + 6);
    ck_assert_int_eq(s3_server_objects(server, ""), 7);
    OK(&t, brc_repack(t.repo, NULL, &report, &t.err));
    ck_assert_uint_ge(report.objects, 16 + 6);
    ck_assert_uint_ge(report.rows, 7);
    ck_assert_int_eq(s3_server_objects(server, ""), 8); /* readers may use the old ones */
    check_small_commits();
    scenario_collect_held(&t);
    ck_assert_int_eq(s3_server_objects(server, ""), 1);
    again();
    check_small_commits();
    OK(&t, brc_repack(t.repo, NULL, &report, &t.err)); /* a pack alone stays as it is */
    ck_assert_int_eq(s3_server_objects(server, ""), 1);
    scenario_whole(&t);
}

#define RAW_CODECS "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]"

/* Nothing is won by a new pack with what one small pack has, if the others are large. */
TEST(a_small_pack_beside_a_large_one_stays)
{
    enum { LARGE = 1 << 19 };
    static int32_t data[LARGE];
    static const uint64_t shape = LARGE;
    uint64_t random = 5;
    for (size_t i = 0; i < LARGE; i++)
        data[i] = (int32_t)scenario_random(&random);
    OK(&t, put_values(1));
    scenario_commit(&t, "small");
    brc_array_free(scenario_array(&t, "/b", "int32", 1, &shape, &shape, NULL, RAW_CODECS));
    scenario_set_backend(&t, t.session, "/b", spec());
    scenario_write(&t, t.session, "/b", data, sizeof(data));
    scenario_commit(&t, "large");
    again();
    ck_assert_int_eq(s3_server_objects(server, ""), 2);
    OK(&t, brc_repack(t.repo, NULL, NULL, &t.err));
    ck_assert_int_eq(s3_server_objects(server, ""), 2);
    check_values(1);
}

/* Packs are of 16 to 64 MiB where there is so much to put. */
static void packs_are_full(int before, int more)
{
    ck_assert_int_eq(s3_server_objects(server, "") - before, more);
    for (int i = 0; i < before + more; i++) {
        ck_assert_uint_ge(s3_server_bytes(server, i), 16 << 20);
        ck_assert_uint_le(s3_server_bytes(server, i), 64 << 20);
    }
}

TEST(a_long_write_and_a_repack_fill_packs)
{
    static const uint64_t shape = 64 << 18, chunk = 1 << 18;
    uint64_t random = 5;
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    int32_t *data = malloc(shape * sizeof(*data));
    ck_assert_ptr_nonnull(data);
    for (uint64_t i = 0; i < shape; i++)
        data[i] = (int32_t)scenario_random(&random);
    brc_array_free(scenario_array(&t, "/b", "int32", 1, &shape, &chunk, NULL,
                                  RAW_CODECS));
    scenario_set_backend(&t, t.session, "/b", spec());
    scenario_write(&t, t.session, "/b", data, shape * sizeof(*data));
    scenario_commit(&t, "one");
    packs_are_full(0, 2);
    opts.backend_json = "\"inline\"";
    OK(&t, brc_repack(t.repo, &opts, NULL, &t.err));
    opts.backend_json = spec();
    OK(&t, brc_repack(t.repo, &opts, NULL, &t.err));
    packs_are_full(2, 2);
    brc_array *a = scenario_array_at(&t, t.session, "/b");
    int32_t *got = malloc(shape * sizeof(*got));
    ck_assert_ptr_nonnull(got);
    OK(&t, brc_array_read(a, NULL, got, shape * sizeof(*got), &t.err));
    ck_assert_int_eq(memcmp(got, data, shape * sizeof(*got)), 0);
    brc_array_free(a);
    free(got);
    free(data);
}

enum { ONES = 40, LONG_CHUNK = 16384 };

/* A pack for each of many chunks of 64 KiB. */
static void many_packs(void)
{
    static const uint64_t shape = ONES * LONG_CHUNK, chunk = LONG_CHUNK;
    static int32_t data[ONES * LONG_CHUNK];
    uint64_t random = 5;
    brc_sel sel = BRC_SEL_INIT;
    brc_array_free(scenario_array(&t, "/b", "int32", 1, &shape, &chunk, NULL,
                                  RAW_CODECS));
    scenario_set_backend(&t, t.session, "/b", spec());
    brc_array *a = scenario_array_at(&t, t.session, "/b");
    sel_all(&sel, a);
    sel.count[0] = LONG_CHUNK;
    for (int i = 0; i < ONES; i++, sel.start[0] += LONG_CHUNK) {
        for (int j = 0; j < LONG_CHUNK; j++)
            data[j] = (int32_t)scenario_random(&random);
        OK(&t, brc_array_write(a, &sel, data, sizeof(int32_t) * LONG_CHUNK, &t.err));
        scenario_commit(&t, "one");
    }
    brc_array_free(a);
    again();
}

TEST(chunks_that_are_stored_again_are_fetched_together_and_become_one_pack)
{
    enum { DELAY_MS = 100 };
    many_packs();
    const int before = s3_server_objects(server, "");
    ck_assert_int_ge(before, ONES);
    s3_server_delay(server, DELAY_MS);
    OK(&t, brc_repack(t.repo, NULL, NULL, &t.err));
    ck_assert_int_le(s3_server_rounds(server), 5);
    s3_server_delay(server, 0);
    ck_assert_int_le(s3_server_objects(server, "") - before, 2);
    scenario_whole(&t);
    s3_server_delay(server, DELAY_MS);
    brc_repack_opts home = BRC_REPACK_OPTS_INIT;
    home.backend_json = "\"inline\"";
    OK(&t, brc_repack(t.repo, &home, NULL, &t.err));
    ck_assert_int_le(s3_server_rounds(server), 3);
    s3_server_delay(server, 0);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM object WHERE backend>0"), 0);
    scenario_whole(&t);
}

TEST(an_export_fetches_chunks_together)
{
    enum { DELAY_MS = 100 };
    char folder[200];
    many_packs();
    snprintf(folder, sizeof(folder), "%s/out.zarr", t.dir);
    s3_server_delay(server, DELAY_MS);
    OK(&t, brc_export(t.session, "/b", folder, NULL, &t.err));
    ck_assert_int_gt(s3_server_rounds(server), 0);
    ck_assert_int_le(s3_server_rounds(server), 4);
    s3_server_delay(server, 0);
}

/* Contents as short as these are compared with those that the store has. */
TEST(short_chunks_that_are_met_again_are_fetched_together)
{
    enum { CHUNK = 512, DELAY_MS = 100 };
    static const uint64_t shape = 60 * CHUNK, chunk = CHUNK;
    static int32_t data[60 * CHUNK];
    uint64_t random = 6;
    for (size_t i = 0; i < shape; i++)
        data[i] = (int32_t)scenario_random(&random);
    brc_array_free(scenario_array(&t, "/b", "int32", 1, &shape, &chunk, NULL, NULL));
    scenario_set_backend(&t, t.session, "/b", spec());
    scenario_write(&t, t.session, "/b", data, sizeof(data));
    scenario_commit(&t, "short ones");
    again();
    const int before = s3_server_objects(server, "");
    s3_server_delay(server, DELAY_MS);
    scenario_write(&t, t.session, "/b", data, sizeof(data));
    ck_assert_int_gt(s3_server_rounds(server), 0);
    ck_assert_int_le(s3_server_rounds(server), 4);
    s3_server_delay(server, 0);
    ck_assert_int_eq(s3_server_objects(server, ""), before);
    scenario_whole(&t);
}

/* A copy puts the packs together for itself, and removes none that the original needs. */
/* Nine of sixteen chunks go: the others are fetched at once, and put into another pack. */
TEST(a_collection_fetches_together_what_is_left_of_a_pack)
{
    enum { GONE = 9, DELAY_MS = 100 };
    brc_expire_opts opts = BRC_EXPIRE_OPTS_INIT;
    int32_t got[NUMBERS], want[NUMBERS];
    OK(&t, put_values(1));
    scenario_commit(&t, "all");
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    OK(&t, brc_array_set_backend(a, "inline", &t.err));
    brc_array_free(a);
    values(want, 1);
    for (int i = 0; i < GONE; i++) {
        scenario_set_number(&t, "/a", (uint64_t)i * IN_CHUNK, 1000 + i);
        want[i * IN_CHUNK] = 1000 + i;
    }
    scenario_commit(&t, "less");
    again();
    scenario_no_window(&t);
    opts.keep_last = 1;
    OK(&t, brc_expire(NULL, NULL, t.repo, &opts, &t.err));
    s3_server_delay(server, DELAY_MS);
    scenario_collect_held(&t);
    ck_assert_int_le(s3_server_rounds(server), 6); /* lists, one fetch, one pack, drops */
    s3_server_delay(server, 0);
    ck_assert_int_eq(s3_server_objects(server, ""), 1);
    OK(&t, get_values(got));
    ck_assert_int_eq(memcmp(got, want, sizeof(got)), 0);
    scenario_whole(&t);
}

TEST(a_copy_puts_packs_of_the_original_together_and_leaves_them)
{
    char original[sizeof(t.file)], text[300];
    brc_repack_report report = BRC_REPACK_REPORT_INIT;
    many_small_commits();
    scenario_close(&t);
    memcpy(original, t.file, sizeof(original));
    snprintf(t.file, sizeof(t.file), "%s/copy.brc", t.dir);
    snprintf(text, sizeof(text), "cp '%s' '%s'", original, t.file);
    ck_assert_int_eq(system(text), 0);
    open_file(0);
    OK(&t, brc_repack(t.repo, NULL, &report, &t.err));
    ck_assert_uint_ge(report.rows, 7);
    scenario_collect_held(&t);
    scenario_collect_held(&t);
    ck_assert_int_eq(s3_server_objects(server, ""), 8);
    again();
    check_small_commits();
    scenario_close(&t);
    memcpy(t.file, original, sizeof(original));
    open_file(0);
    check_small_commits();
    scenario_whole(&t);
}

/* ---- what the server promises -------------------------------- */

typedef struct proof {
    int kept, broken;
    char seen[500];
} proof;

static int prove_each(void *to, const char *promise, int holds, const char *seen, brc_error *err)
{
    proof *p = to;
    (void)err;
    p->kept += holds;
    p->broken += !holds;
    if (!holds)
        snprintf(p->seen, sizeof(p->seen), "%s: %s", promise, seen);
    return BRC_OK;
}

static const struct {
    int n, how, broken;
    const char *say;
} promises[] = {
    { 0, S3_FINE, 0, "" },
    { 1, S3_WRONG, 1, "reads what was written: other bytes" },
    { 2, S3_WHOLE, 1, "reads ranges: " },
    { 3, S3_PLAIN, 1, "refuses to write an object twice: it answered 200" },
};

EACH(promises_are_proved, promises)
{
    opened o;
    proof p = { 0 };
    backend_open(&o, "mine.brc", "");
    s3_server_fail(server, promises[_i].n, 1, promises[_i].how);
    OK(&t, o.b->prove(o.b->ctx, o.state, prove_each, &p, &t.err));
    ck_assert_int_eq(p.broken, promises[_i].broken);
    ck_assert_int_eq(p.kept + p.broken, 7);
    ck_assert_msg(strstr(p.seen, promises[_i].say) != NULL, "%s", p.seen);
    ck_assert_int_eq(s3_server_objects(server, ""), 0);
    backend_close(&o);
}

/* The repository asks, before it has a chunk there. The file itself has nothing to promise. */
TEST(a_program_may_ask_what_a_backend_promises)
{
    proof p = { 0 };
    OK(&t, brc_prove_backend(t.repo, "inline", prove_each, &p, &t.err));
    ck_assert_int_eq(p.kept + p.broken, 0);
    OK(&t, brc_prove_backend(t.repo, spec(), prove_each, &p, &t.err));
    ck_assert_int_eq(p.kept, 7);
    ck_assert_int_eq(p.broken, 0);
    OK(&t, put_values(1));
    check_values(1);
    s3_server_fail(server, 2, 1, S3_WHOLE);
    OK(&t, brc_prove_backend(t.repo, spec(), prove_each, &p, &t.err));
    ck_assert_int_eq(p.broken, 1);
    FAILS(&t, BRC_EUNSUPPORTED, brc_prove_backend(t.repo, "none", prove_each, &p, &t.err));
}
