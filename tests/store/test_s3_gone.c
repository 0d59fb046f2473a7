/*
 * A server that is gone: each call tries it as often as the client tries one request, and ends with
 * a sentence that names place and remedy, however many objects lie there. An object that alone is
 * missing ends no repack.
 */
#include <stdio.h>
#include <string.h>

#include "../kit/s3_server.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(s3_gone);

/* TRIES: of one request, as docs/decisions/0050-chunks-in-a-bucket.md says. A chunk is larger than
 * what is read along between two. */
enum { PACKS = 6, EACH = 2, CHUNK = 20000, CHUNKS = PACKS * EACH, TRIES = 6 };

static scenario t;
static s3_server *server;
static int32_t data[CHUNKS * CHUNK];

static void open_far(uint32_t flags)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.credentials = scenario_give;
    scenario_open(&t, &opts, flags);
}

/* Writes the range of chunks, at most one pack's. */
static void write_chunks(int first, int n, uint64_t seed)
{
    brc_sel sel = BRC_SEL_INIT;
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    char text[60];
    for (int i = first * CHUNK; i < (first + n) * CHUNK; i++)
        data[i] = (int32_t)scenario_random(&seed);
    snprintf(text, sizeof(text), "[%d:%d]", first * CHUNK, (first + n) * CHUNK);
    OK(&t, brc_sel_parse(&sel, a, text, &t.err));
    OK(&t, brc_array_write(a, &sel, data + (size_t)first * CHUNK,
                           (size_t)n * CHUNK * sizeof(*data), &t.err));
    brc_array_free(a);
}

static void start(void)
{
    static const uint64_t shape = CHUNKS * CHUNK, chunk = CHUNK;
    char spec[300];
    server = s3_server_start();
    snprintf(spec, sizeof(spec),
             "{\"name\":\"s3\",\"configuration\":{\"endpoint\":\"%s\",\"bucket\":\"box\"}}",
             s3_server_endpoint(server));
    scenario_folder(&t);
    open_far(BRC_OPEN_CREATE);
    scenario_no_window(&t);
    brc_array_free(scenario_array(&t, "/a", "int32", 1, &shape, &chunk, NULL,
                                  "[{\"name\":\"bytes\",\"configuration\":"
                                  "{\"endian\":\"little\"}}]"));
    scenario_set_backend(&t, t.session, "/a", spec);
    for (int i = 0; i < PACKS; i++) {
        write_chunks(i * EACH, EACH, 7 + (uint64_t)i);
        scenario_commit(&t, "a pack");
    }
    ck_assert_int_eq(s3_server_objects(server, ""), PACKS);
    scenario_close(&t);
    open_far(0);
}

static void stop(void)
{
    scenario_stop(&t);
    s3_server_stop(server);
}

static int repack_to(const char *backend, uint32_t flags)
{
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    opts.backend_json = backend;
    opts.flags = flags;
    return brc_repack(t.repo, &opts, NULL, &t.err);
}

static int read_all(void)
{
    static int32_t got[CHUNKS * CHUNK];
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    const int rc = brc_array_read(a, NULL, got, sizeof(got), &t.err);
    brc_array_free(a);
    if (rc == BRC_OK)
        ck_assert_int_eq(memcmp(got, data, sizeof(got)), 0);
    return rc;
}

/* ---- calls -------------------------------- */

static int move_in(void)
{
    return repack_to("inline", 0);
}


static int encode_anew_dry(void)
{
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    opts.codecs_json = "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},"
                       "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}]";
    opts.flags = BRC_REPACK_DRY_RUN;
    return brc_repack(t.repo, &opts, NULL, &t.err);
}

static int join_packs(void)
{
    return brc_repack(t.repo, NULL, NULL, &t.err);
}

static int check(void)
{
    return brc_fsck(t.repo, 0, NULL, NULL, NULL, NULL, &t.err);
}

static int collect(void)
{
    return brc_gc(t.repo, NULL, NULL, &t.err);
}

/* Makes one chunk of each pack garbage. */
static void make_garbage(void)
{
    brc_expire_opts opts = BRC_EXPIRE_OPTS_INIT;
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    OK(&t, brc_array_set_backend(a, "inline", &t.err));
    brc_array_free(a);
    for (int i = 0; i < PACKS; i++)
        write_chunks(i * EACH, 1, 100 + (uint64_t)i);
    scenario_commit(&t, "less");
    opts.keep_last = 1;
    OK(&t, brc_expire(NULL, NULL, t.repo, &opts, &t.err));
}

/* `most`: requests of the call, each of which is tried TRIES times. */
static const struct {
    int (*act)(void);
    void (*prepare)(void);
    int most;
} calls[] = {
    { read_all, NULL, CHUNKS },
    { move_in, NULL, CHUNKS },
    { join_packs, NULL, CHUNKS },
    { encode_anew_dry, NULL, 1 },
    { check, NULL, CHUNKS },
    { collect, make_garbage, 1 },
};

CASE("gone", .setup = start, .teardown = stop, .timeout = 120);

EACH(a_call_tries_once_and_says_where_and_what_to_do, calls)
{
    if (calls[_i].prepare != NULL)
        calls[_i].prepare();
    const int before = s3_server_requests(server);
    s3_server_fail(server, 0, 1 << 30, S3_CLOSED);
    FAILS(&t, BRC_EIO, calls[_i].act());
    ck_assert_msg(strstr(t.err.message, "s3://box") && strstr(t.err.message, "try again"), "%s",
                  t.err.message);
    ck_assert_int_le(s3_server_requests(server) - before, calls[_i].most * TRIES);
    s3_server_fail(server, 0, 0, S3_FINE);
    OK(&t, calls[_i].act());
    OK(&t, read_all());
    scenario_whole(&t);
}

/* An object that alone is missing, or damaged, stays, and the others go. */
LOOP(a_repack_goes_on_where_one_object_alone_cannot_be_read, 0, 3)
{
    char key[700];
    snprintf(key, sizeof(key), "%s", s3_server_object(server, 2));
    s3_server_keep(server);
    s3_server_damage(server, key, _i == 0 ? -1 : _i == 1 ? 3000 : 0);
    FAILS(&t, BRC_ECORRUPT, move_in());
    ck_assert_msg(strstr(t.err.message, key + 5), "%s", t.err.message);
    ck_assert_int_le(scenario_ask(&t, "SELECT count(*) FROM object WHERE backend>0"), EACH);
    s3_server_restore(server);
    OK(&t, move_in());
    OK(&t, read_all());
}
