/* A rewrite of an array's chunks in other codecs, in many transactions: others get in, what they
 * write is kept, and one that is interrupted or killed has changed nothing that anybody sees. */
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/store/db.h"
#include "../../src/store/vfs.h"
#include "../../src/work/session.h"
#include "../kit/hooked_kit.h"
#include "../kit/ios.h"
#include "../kit/suite.h"

TEST_SUITE(rewrite);

#define OLD "[" LITTLE "]"
#define NEW "[" HOOKED_CODECS "]"

enum { PER = 4096, CHUNKS = 2400, ELEMENTS = CHUNKS * PER }; /* 16 KiB each: 38 MiB */

static scenario mine, theirs;
static hooked_parts parts;
static int32_t data[ELEMENTS], got[ELEMENTS];
static atomic_int commits;

static void rewrite_setup(void)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    const uint64_t shape = ELEMENTS, chunk = PER;
    uint64_t state = 1;
    memset(&mine, 0, sizeof(mine));
    memset(&theirs, 0, sizeof(theirs));
    commits = 0;
    hooked_file_start(&mine, &parts, 0);
    opts.registry = parts.reg;
    brc_array *a = scenario_array(&mine, "/a", "int32", 1, &shape, &chunk, NULL, OLD);
    for (size_t i = 0; i < ELEMENTS; i++) /* of each chunk half is random */
        data[i] = i % PER < PER / 2 ? (int32_t)scenario_random(&state) : 0;
    OK(&mine, brc_array_write(a, NULL, data, sizeof(data), &mine.err));
    brc_array_free(a);
    scenario_commit(&mine, "first");
    memcpy(theirs.file, mine.file, sizeof(theirs.file));
    opts.wait_ms = 20000;
    scenario_open(&theirs, &opts, 0);
}

static void rewrite_teardown(void)
{
    hook_encode(NULL, NULL, 0);
    scenario_close(&theirs);
    scenario_whole(&mine);
    ck_assert_int_eq(scenario_unused(&mine), /* not a byte more than is noted */
                     scenario_ask(&mine, "SELECT coalesce(sum(bytes), 0) FROM removed"));
    hooked_file_stop(&mine, &parts);
}

static int rewrite(scenario *t)
{
    brc_array *a = scenario_array_at(t, t->session, "/a");
    int rc = brc_array_set_codecs(a, NEW, 1, &t->err);
    brc_array_free(a);
    return rc;
}

/* Chunks that are stored so, or as before. */
static int64_t rewritten(int is_new)
{
    return scenario_ask(&mine, is_new ? "SELECT count(*) FROM object WHERE kind=1 AND encoding<>0"
                                      : "SELECT count(*) FROM object WHERE kind=1 AND encoding=0");
}

/* For both, whatever they have opened before. */
static void check_array(const char *codec)
{
    brc_array *a;
    for (int i = 0; i < 2; i++) {
        scenario *t = i ? &theirs : &mine;
        OK(t, brc_array_open(&a, t->session, "/a", &t->err));
        ck_assert_ptr_nonnull(strstr(brc_array_describe(a)->codecs_json, codec));
        OK(t, brc_array_read(a, NULL, got, sizeof(got), &t->err));
        ck_assert_mem_eq(got, data, sizeof(got));
        brc_array_free(a);
    }
}

/* The attribute that they have set last. */
static void check_number(const char *path)
{
    brc_buf n = BRC_BUF_INIT;
    char want[16];
    snprintf(want, sizeof(want), "%d", commits);
    OK(&mine, brc_attrs_get(&n, mine.session, path, "n", &mine.err));
    ck_assert_uint_eq(n.len, strlen(want));
    ck_assert_mem_eq(n.data, want, n.len);
    brc_buf_dispose(&n);
}

/* ---- short transactions -------------------------------- */

/* The bytes that a chunk takes at least; and of the first transaction, those that were counted and
 * those that its chunks take at least. */
enum { LEAST_STORED = PER / 2 * sizeof(int32_t) };
static int64_t in_this, most_in_one, transactions;
static uint64_t counted, least;

/* The other handle waits from now on, so that a transaction ends soon. */
static void they_wait(void)
{
    brc_vfs_announce(theirs.repo->store->vfs);
}

static int note_statement(unsigned what, void *ctx, void *stmt, void *text)
{
    const brc_store *store = ctx;
    const char *sql = text;
    (void)what, (void)stmt;
    if (strncmp(sql, "UPDATE object", 13) == 0)
        in_this++;
    if (strncmp(sql, "COMMIT", 6) != 0 || in_this == 0)
        return 0;
    if (in_this > most_in_one)
        most_in_one = in_this;
    if (transactions++ == 0) {
        counted = store->inserted_bytes;
        least = (uint64_t)in_this * LEAST_STORED;
    }
    in_this = 0;
    return 0;
}

static void pass_by(void *ctx)
{
    (void)ctx;
}

CASE("rewrite", .setup = rewrite_setup, .teardown = rewrite_teardown, .timeout = 120);

/* No transaction has more than a batch of 16 MiB while somebody waits. Most end before that, as
 * they last long: so the bytes are looked at too. */
TEST(a_rewrite_goes_in_short_transactions)
{
    in_this = most_in_one = transactions = 0;
    they_wait();
    sqlite3_trace_v2(mine.repo->store->db, SQLITE_TRACE_STMT, note_statement, mine.repo->store);
    OK(&mine, rewrite(&mine));
    sqlite3_trace_v2(mine.repo->store->db, 0, NULL, NULL);
    ck_assert_int_ge(transactions, 2);
    ck_assert_int_le(most_in_one, (17 << 20) / LEAST_STORED);
    ck_assert_uint_ge(counted, least);
    ck_assert_int_eq(rewritten(1), CHUNKS);
    check_array("zstd");
}

/* Where nobody else writes, the chunks are gone through once and the document is set once. */
TEST(a_rewrite_alone_is_one_pass)
{
    OK(&mine, brc_attrs_set(mine.session, "/a", "unit", "1", &mine.err));
    const int64_t before = scenario_ask(&mine, "SELECT changes FROM draft WHERE kind=1");
    OK(&mine, rewrite(&mine));
    ck_assert_int_eq(scenario_ask(&mine, "SELECT changes FROM draft WHERE kind=1"), before + 1);
}

static void pass_slowly(void *ctx)
{
    (void)ctx;
    usleep(100);
}

/* Two neighbouring chunks are one object. Chunks are looked up in batches of an even number, and
 * the first chunk alone has no such neighbour: so the last object of a batch is still at work when
 * the next batch begins with it. */
TEST(chunks_that_are_equal_are_stored_anew_once)
{
    enum { SMALL = 64, MANY = 6000, KINDS = MANY / 2 + 1 };
    static int32_t equal[SMALL * MANY];
    const uint64_t shape = SMALL * MANY, chunk = SMALL;
    brc_array *a = scenario_array(&mine, "/e", "int32", 1, &shape, &chunk, NULL, OLD);
    for (int i = 0; i < SMALL * MANY; i++)
        equal[i] = 1 + (i / SMALL + 1) / 2;
    OK(&mine, brc_array_write(a, NULL, equal, sizeof(equal), &mine.err));
    scenario_commit(&mine, "equal");
    hook_encode(pass_slowly, NULL, 1 << 20);
    OK(&mine, brc_array_set_codecs(a, NEW, 1, &mine.err));
    ck_assert_int_eq(hook_calls(), KINDS);
    brc_array_free(a);
}

/* ---- others meanwhile -------------------------------- */

/* Another thread, with a handle of its own, does something again and again, from the first chunk
 * that is encoded to the end. */
static atomic_int begun, ended;
static void (*their_act)(void);

/* Slowly, for a while: on a busy machine the other thread could come too late for all of it. */
static void now_begun(void *ctx)
{
    (void)ctx;
    atomic_store(&begun, 1);
    usleep(1000);
}

static void *act_meanwhile(void *ctx)
{
    (void)ctx;
    while (!atomic_load(&begun))
        usleep(200);
    while (!atomic_load(&ended)) {
        their_act();
        commits++;
        usleep(1000);
    }
    return NULL;
}

static void rewrite_beside(void (*act)(void))
{
    pthread_t thread;
    their_act = act;
    atomic_store(&begun, 0);
    atomic_store(&ended, 0);
    hook_encode(now_begun, NULL, CHUNKS / 4);
    ck_assert_int_eq(pthread_create(&thread, NULL, act_meanwhile, NULL), 0);
    const int rc = rewrite(&mine);
    atomic_store(&ended, 1);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    OK(&mine, rc);
    ck_assert_int_gt(commits, 1);
    hook_encode(NULL, NULL, 0);
}

static void their_commit(void)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", commits + 1);
    OK(&theirs, brc_attrs_set(theirs.session, "/", "n", text, &theirs.err));
    scenario_commit(&theirs, "theirs");
}

TEST(others_commit_meanwhile)
{
    rewrite_beside(their_commit);
    ck_assert_int_eq(rewritten(1), CHUNKS);
    check_array("zstd");
    check_number("/");
}

/* Another session writes one of the chunks, which the number of commits chooses. */
static void their_write(void)
{
    brc_sel sel = BRC_SEL_INIT;
    const size_t at = (size_t)(commits * 117) % CHUNKS;
    brc_array *a = scenario_array_at(&theirs, theirs.session, "/a");
    sel_all(&sel, a);
    sel.start[0] = at * PER;
    sel.count[0] = PER;
    for (size_t i = 0; i < PER; i++)
        data[at * PER + i] = (int32_t)(i / 2 * (size_t)(commits + 3));
    OK(&theirs, brc_array_write(a, &sel, data + at * PER, PER * sizeof(*data), &theirs.err));
    brc_array_free(a);
    if (commits % 3 == 2)
        scenario_commit(&theirs, "theirs");
}

/* _i 1: the array has uncommitted chunks before. */
LOOP(what_others_write_is_kept, 0, 2)
{
    if (_i) {
        their_write();
        commits++;
    }
    rewrite_beside(their_write);
    check_array("zstd");
    ck_assert_int_ge(rewritten(1), CHUNKS); /* theirs too, but for those that came last */
}

/* One that is written while the others are gone through is gone through after them. */
static void their_one(void)
{
    if (commits == 0)
        their_write();
    else
        usleep(20000);
}

TEST(what_others_write_is_rewritten)
{
    rewrite_beside(their_one);
    check_array("zstd");
    ck_assert_int_eq(rewritten(0), 0);
}

static void their_attributes(void)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", commits + 1);
    OK(&theirs, brc_attrs_set(theirs.session, "/a", "n", text, &theirs.err));
}

TEST(the_document_of_others_is_kept)
{
    rewrite_beside(their_attributes);
    check_array("zstd");
    check_number("/a");
}

/* ---- one that comes to no end -------------------------------- */

static int encoded, stop_at;

/* Slowly: on any machine some transactions have ended before. */
static void stop_mine(void *ctx)
{
    (void)ctx;
    usleep(100);
    if (++encoded == stop_at)
        brc_interrupt(mine.repo, 1);
}

static void die(void *ctx)
{
    (void)ctx;
    usleep(100);
    if (++encoded == stop_at)
        kill(getpid(), SIGKILL);
}

TEST(an_interrupted_one_changes_nothing_to_see)
{
    encoded = 0;
    stop_at = 1500;
    they_wait();
    hook_encode(stop_mine, NULL, CHUNKS);
    FAILS(&mine, BRC_EINTERRUPT, rewrite(&mine));
    brc_interrupt(mine.repo, 0);
    hook_encode(NULL, NULL, 0);
    ck_assert_int_eq(scenario_clean(&mine), 1);
    ck_assert_int_gt(rewritten(1), 0);
    ck_assert_int_gt(rewritten(0), 0);
    check_array("little");
    scenario_whole(&mine);
}

/* Begun again it does what is left. */
LOOP(a_killed_one_changes_nothing_and_can_go_on, 0, 3)
{
    int status;
    encoded = 0;
    stop_at = 1500 + 300 * _i;
    scenario_close(&mine);
    scenario_close(&theirs);
    fflush(NULL);
    pid_t child = fork();
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.registry = parts.reg;
    if (child == 0) {
        scenario_open(&mine, &opts, 0);
        scenario_open(&theirs, &opts, 0);
        they_wait();
        hook_encode(die, NULL, CHUNKS);
        (void)!rewrite(&mine);
        _exit(1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    scenario_open(&mine, &opts, 0);
    scenario_open(&theirs, &opts, 0);
    scenario_whole(&mine);
    ck_assert_int_eq(scenario_clean(&mine), 1);
    check_array("little");
    const int64_t left = rewritten(0);
    ck_assert_int_lt(left, CHUNKS);
    hook_encode(pass_by, NULL, CHUNKS);
    OK(&mine, rewrite(&mine));
    ck_assert_int_eq(hook_calls(), left);
    hook_encode(NULL, NULL, 0);
    ck_assert_int_eq(rewritten(0), 0);
    ck_assert_int_eq(scenario_unused(&mine), 0);
    check_array("zstd");
}
