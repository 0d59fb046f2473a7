/*
 * The cache of chunks on servers: what was read is not asked for again, and nothing that happens to
 * the cache's file makes a read fail or wrong.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kit/s3_server.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(chunk_cache);

enum { CHUNKS = 64, IN_CHUNK = 16384, NUMBERS = CHUNKS * IN_CHUNK }; /* 64 chunks of 64 KiB */
#define MIB ((uint64_t)1 << 20)

static scenario t;
static s3_server *server;
static char cache[128];
static uint64_t budget;
static uint32_t *data;

/* ---- a repository with its chunks in a bucket -------------------------------- */

static void open_with(const char *file, uint32_t flags)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.credentials = scenario_give;
    opts.cache = file;
    opts.cache_bytes = budget;
    scenario_open(&t, &opts, flags);
}

/* A new handle; what an earlier one has kept is in the cache's file. */
static void again(void)
{
    scenario_close(&t);
    open_with(cache, 0);
}

static void make_array(const char *path, const char *prefix)
{
    static const uint64_t shape = NUMBERS, chunk = IN_CHUNK;
    char backend[300];
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    snprintf(backend, sizeof(backend),
             "{\"name\":\"s3\",\"configuration\":{\"endpoint\":\"%s\",\"bucket\":\"box\","
             "\"prefix\":\"%s\"}}",
             s3_server_endpoint(server), prefix);
    spec.ndim = 1;
    spec.shape = &shape;
    spec.chunk = &chunk;
    spec.dtype = "uint32";
    spec.codecs_json = "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]";
    spec.backend_json = backend;
    OK(&t, brc_array_create(&a, t.session, path, &spec, &t.err));
    OK(&t, brc_array_write(a, NULL, data, NUMBERS * sizeof(*data), &t.err));
    brc_array_free(a);
}

static void start(void)
{
    uint64_t random = 1;
    memset(&t, 0, sizeof(t));
    budget = 0;
    server = s3_server_start();
    data = malloc(NUMBERS * sizeof(*data));
    for (size_t i = 0; i < NUMBERS; i++)
        data[i] = (uint32_t)scenario_random(&random);
    scenario_folder(&t);
    snprintf(cache, sizeof(cache), "%s/cache.brc", t.dir);
    open_with(NULL, BRC_OPEN_CREATE);
    make_array("/a", "one");
    scenario_commit(&t, "one");
    scenario_close(&t);
    open_with(cache, 0);
}

static void stop(void)
{
    scenario_stop(&t);
    s3_server_stop(server);
    free(data);
}

/* Reads the elements of an array's chunks from `from` on, which must be right. */
static void check_chunks(const char *path, int from, int n)
{
    uint32_t *got = malloc((size_t)n * IN_CHUNK * sizeof(*got));
    char slice[60];
    brc_sel sel = BRC_SEL_INIT;
    brc_array *a = scenario_array_at(&t, t.session, path);
    snprintf(slice, sizeof(slice), "[%d:%d]", from * IN_CHUNK, (from + n) * IN_CHUNK);
    OK(&t, brc_sel_parse(&sel, a, slice, &t.err));
    OK(&t, brc_array_read(a, &sel, got, (size_t)n * IN_CHUNK * sizeof(*got), &t.err));
    ck_assert_int_eq(memcmp(got, data + from * IN_CHUNK, (size_t)n * IN_CHUNK * sizeof(*got)), 0);
    brc_array_free(a);
    free(got);
}

/* Returns how many requests that took. */
static int read_chunks(const char *path, int from, int n)
{
    const int before = s3_server_requests(server);
    check_chunks(path, from, n);
    return s3_server_requests(server) - before;
}

static int read_all(void)
{
    return read_chunks("/a", 0, CHUNKS);
}

static uint64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* ---- what it is for -------------------------------- */

CASE("fine", .setup = start, .teardown = stop);

TEST(what_was_read_is_not_asked_for_again)
{
    struct stat st;
    ck_assert_int_gt(read_all(), 0);
    ck_assert_int_eq(read_all(), 0);
    again();
    ck_assert_int_eq(read_all(), 0);
    ck_assert_int_eq(stat(cache, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
}

/* A partial write reads one chunk by itself. */
TEST(a_chunk_that_is_read_alone_is_kept_too)
{
    const uint32_t value = 7;
    scenario_put(&t, t.session, "/a", 3, (int32_t)value);
    OK(&t, brc_session_discard(t.session, &t.err));
    again();
    ck_assert_int_eq(read_chunks("/a", 0, 1), 0);
}

TEST(the_server_need_not_be_there)
{
    read_all();
    again();
    s3_server_fail(server, 0, 1000, S3_CLOSED);
    ck_assert_int_eq(read_all(), 0);
}

/* The same bytes; but who may read one prefix need not be allowed to read another. */
TEST(chunks_of_another_prefix_are_asked_for)
{
    char other[128];
    read_all();
    snprintf(other, sizeof(other), "%s/other.brc", t.dir);
    scenario_close(&t);
    ck_assert_int_eq(rename(t.file, other), 0);
    open_with(NULL, BRC_OPEN_CREATE);
    make_array("/a", "two");
    again();
    ck_assert_int_gt(read_all(), 0);
    again();
    ck_assert_int_eq(read_all(), 0);
}

TEST(processes_share_it)
{
    enum { PROCESSES = 4 };
    pid_t pids[PROCESSES];
    scenario_close(&t);
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        ck_assert_int_ge(pids[i], 0);
        if (pids[i] == 0) {
            open_with(cache, 0);
            /* Without counting: a thread of the parent may have held the server's lock. */
            check_chunks("/a", i * 8, CHUNKS - i * 8);
            scenario_close(&t);
            _exit(0);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
    }
    open_with(cache, 0);
    read_all(); /* a writer that meets another one keeps nothing */
    again();
    ck_assert_int_eq(read_all(), 0);
}

/* ---- the budget -------------------------------- */

CASE("budget", .setup = start, .teardown = stop);

TEST(what_was_not_used_for_longest_goes_first)
{
    budget = 2 * MIB; /* half of the array */
    again();
    for (int i = 0; i < CHUNKS; i++) {
        read_chunks("/a", i, 1);
        if (i > 0)
            ck_assert_int_eq(read_chunks("/a", 0, 1), 0); /* in use all the time */
        ck_assert_uint_le(size_of(cache), budget + MIB / 2);
    }
    again();
    ck_assert_int_eq(read_chunks("/a", 0, 1), 0);
    ck_assert_int_eq(read_chunks("/a", CHUNKS - 8, 8), 0);
    ck_assert_int_gt(read_chunks("/a", 1, 8), 0);
}

/* ---- whatever happens to the file -------------------------------- */

CASE("faults", .setup = start, .teardown = stop);

/* Overwrites `len` bytes of the file from `at` on. */
static void damage(uint64_t at, uint64_t len)
{
    FILE *f = fopen(cache, "r+b");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, (long)at, SEEK_SET), 0);
    for (uint64_t i = 0; i < len; i++)
        fputc(0x5a, f);
    ck_assert_int_eq(fclose(f), 0);
}

LOOP(a_damaged_file_is_a_miss, 0, 12)
{
    read_all();
    scenario_close(&t);
    const uint64_t len = size_of(cache);
    ck_assert_uint_gt(len, 4 * MIB);
    damage(len * (uint64_t)_i / 12, _i == 0 ? 100 : 20000);
    open_with(cache, 0);
    read_all();
    again();
    read_all();
    scenario_whole(&t);
}

TEST(a_chunk_that_is_damaged_in_it_is_fetched_and_kept_again)
{
    read_all();
    scenario_close(&t);
    damage(size_of(cache) / 2, 20000);
    open_with(cache, 0);
    ck_assert_int_gt(read_all(), 0);
    again();
    ck_assert_int_eq(read_all(), 0);
}

TEST(a_file_that_is_no_cache_is_left_alone)
{
    char text[128], folder[128];
    const uint64_t before = size_of(t.file);
    snprintf(text, sizeof(text), "%s/notes.txt", t.dir);
    snprintf(folder, sizeof(folder), "%s/none/cache.brc", t.dir);
    FILE *f = fopen(text, "w");
    fputs("notes", f);
    fclose(f);
    const char *const files[] = { text, t.file, t.dir, folder };
    for (int i = 0; i < 4; i++) {
        scenario_close(&t);
        open_with(files[i], 0);
        ck_assert_int_gt(read_all(), 0);
    }
    ck_assert_uint_eq(size_of(text), 5);
    ck_assert_uint_eq(size_of(t.file), before);
    scenario_whole(&t);
}

TEST(a_cache_is_no_repository)
{
    breccia *repo;
    read_all();
    scenario_close(&t);
    FAILS(&t, BRC_EFORMAT, brc_open(&repo, cache, NULL, &t.err));
    ck_assert_ptr_nonnull(strstr(t.err.message, "cache of chunks"));
    open_with(cache, 0);
}

TEST(a_file_that_another_process_writes_is_a_miss)
{
    sqlite3 *db;
    read_chunks("/a", 0, 8);
    ck_assert_int_eq(sqlite3_open(cache, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_gt(read_all(), 0);
    ck_assert_int_gt(read_chunks("/a", 8, 8), 0); /* nothing was kept */
    ck_assert_int_eq(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    ck_assert_int_gt(read_all(), 0);
    ck_assert_int_eq(read_all(), 0);
}

TEST(wrong_bytes_are_not_kept)
{
    uint32_t got[IN_CHUNK];
    brc_sel sel = BRC_SEL_INIT;
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    OK(&t, brc_sel_parse(&sel, a, "[:16384]", &t.err));
    s3_server_fail(server, 0, 1000, S3_WRONG);
    FAILS(&t, BRC_ECORRUPT, brc_array_read(a, &sel, got, sizeof(got), &t.err));
    brc_array_free(a);
    s3_server_fail(server, 0, 0, S3_FINE);
    ck_assert_int_gt(read_all(), 0);
    again();
    ck_assert_int_eq(read_all(), 0);
}
