/* Bulk writes of many small chunks, whose bytes are stored before the rows that name them: what
 * others see and do between two of these transactions. */
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../src/store/db.h"
#include "../../src/store/vfs.h"
#include "../../src/work/session.h"
#include "../kit/hooked_kit.h"
#include "../kit/ios.h"
#include "../kit/suite.h"

TEST_SUITE(write_ahead);

enum { CHUNK = 2048, CHUNKS = 16384, ANOTHER = 512 };

/* Every byte of every row has an object, or counts as left. */
static const char accounted[] =
    "SELECT count(*) FROM (SELECT b.seq, length(b.data) AS len,"
    " (SELECT total(stored) FROM object o WHERE o.place=b.seq AND o.backend=0) AS used,"
    " coalesce((SELECT bytes FROM removed r WHERE r.place=b.seq), 0) AS left FROM blob b)"
    " WHERE used+left<>len";
/* Little is stored again because of other writers: without this bound a write filled the disk. */
static void stores_little_anew(scenario *t)
{
    const int64_t data = (int64_t)CHUNKS * CHUNK;
    ck_assert_int_lt(scenario_ask(t, "SELECT sum(length(data)) FROM blob"), 2 * data);
    ck_assert_int_lt(scenario_ask(t, "SELECT max(seq) FROM blob"), CHUNKS / 16);
}

#define ALL_LEFT \
    "(SELECT b.seq FROM removed r JOIN blob b ON b.seq=r.place WHERE r.bytes=length(b.data))"

/* The statements that another connection runs, again and again. */
typedef struct meddler {
    pthread_t thread;
    sqlite3 *db;
    breccia *waits; /* announces that somebody waits, until the first change */
    const char *sql;    /* a change; NULL: none          */
    atomic_int is_over;
    atomic_long left, changed; /* how often it found rows all left, changed them */
    int64_t faults;
} meddler;

static int64_t ask(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *st;
    int64_t n = -1;
    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
        n = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return n;
}

static void *meddle(void *ctx)
{
    meddler *m = ctx;
    while (!atomic_load(&m->is_over)) {
        if (sqlite3_exec(m->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
            continue;
        brc_vfs_recall(m->waits->store->vfs);
        const int64_t left = ask(m->db, "SELECT count(*) FROM " ALL_LEFT);
        m->left += left > 0;
        m->faults += ask(m->db, accounted) != 0;
        if (m->sql != NULL) {
            const int before = sqlite3_total_changes(m->db);
            m->faults += sqlite3_exec(m->db, m->sql, NULL, NULL, NULL) != SQLITE_OK;
            m->changed += sqlite3_total_changes(m->db) > before;
        }
        m->faults += sqlite3_exec(m->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK;
        sqlite3_sleep(2);
    }
    return NULL;
}

/* Rows of bytes that no object names, but the last. */
static const char takes_bytes[] =
    "CREATE TEMP TABLE IF NOT EXISTS gone(seq INTEGER PRIMARY KEY);"
    "DELETE FROM gone;"
    "INSERT INTO gone SELECT seq FROM " ALL_LEFT " WHERE seq<(SELECT max(seq) FROM blob);"
    "DELETE FROM blob WHERE seq IN (SELECT seq FROM gone);"
    "DELETE FROM removed WHERE place IN (SELECT seq FROM gone)";

/* SQLite's own handler waits longer and longer: it would hardly ever get in. */
static int try_soon(void *ctx, int n)
{
    const struct timespec pause = {.tv_nsec = 100000};
    (void)ctx;
    nanosleep(&pause, NULL);
    return n < 300000;
}

static void meddle_start(meddler *m, scenario *t, const char *sql)
{
    memset(m, 0, sizeof(*m));
    m->sql = sql;
    ck_assert_int_eq(sqlite3_open(t->file, &m->db), SQLITE_OK);
    ck_assert_int_eq(brc_row_sum_register(m->db), SQLITE_OK);
    sqlite3_busy_handler(m->db, try_soon, NULL);
    m->waits = scenario_handle(t, 0);
    ck_assert_int_eq(pthread_create(&m->thread, NULL, meddle, m), 0);
}

static void meddle_stop(meddler *m)
{
    atomic_store(&m->is_over, 1);
    pthread_join(m->thread, NULL);
    ck_assert_int_eq(sqlite3_close(m->db), SQLITE_OK);
    brc_free(m->waits);
    ck_assert_int_eq(m->faults, 0);
}

static uint8_t *bytes_of(uint64_t seed, size_t chunks)
{
    uint64_t *data = malloc(chunks * CHUNK);
    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < chunks * CHUNK / sizeof(*data); i++)
        data[i] = scenario_random(&seed);
    return (uint8_t *)data;
}

static brc_array *new_bytes(scenario *t, const char *path, uint64_t chunks)
{
    const uint64_t shape = chunks * CHUNK, chunk = CHUNK;
    return scenario_array(t, path, "uint8", 1, &shape, &chunk, NULL, "[\"bytes\"]");
}

static void has(scenario *t, const char *path, const uint8_t *data, size_t len)
{
    uint8_t *got = malloc(len);
    ck_assert_ptr_nonnull(got);
    brc_array *a = scenario_array_at(t, t->session, path);
    OK(t, brc_array_read(a, NULL, got, len, &t->err));
    ck_assert_int_eq(memcmp(got, data, len), 0);
    brc_array_free(a);
    free(got);
}

static const char *const changes[] = {NULL, takes_bytes};

/* Did it meet bytes whose rows had not come, and change what it was to change? */
static int has_met(const meddler *m)
{
    return atomic_load(&m->left) > 0 && (m->sql == NULL || atomic_load(&m->changed) > 0);
}

CASE("write_ahead", .timeout = 300);

/* When the other gets in is the scheduler's choice: on a busy machine one write may be over
 * before it met anything. */
LOOP(whatever_others_do_in_between_all_is_there, 0, 2)
{
    enum { WRITES = 100 };
    scenario t;
    meddler m;
    uint8_t *data = NULL;
    scenario_start(&t);
    brc_array *a = new_bytes(&t, "/a", CHUNKS);
    scenario_commit(&t, "first");
    meddle_start(&m, &t, changes[_i]);
    for (int i = 0; i < WRITES && !has_met(&m); i++) {
        free(data);
        data = bytes_of(7 + (uint64_t)i, CHUNKS);
        brc_vfs_announce(m.waits->store->vfs);
        OK(&t, brc_array_write(a, NULL, data, (size_t)CHUNKS * CHUNK, &t.err));
    }
    meddle_stop(&m);
    ck_assert(has_met(&m));
    brc_array_free(a);
    has(&t, "/a", data, (size_t)CHUNKS * CHUNK);
    scenario_commit(&t, "second");
    scenario_whole(&t);
    scenario_stop(&t);
    free(data);
}

typedef struct rival {
    pthread_t thread;
    scenario *t;
    const uint8_t *data;
    brc_error err;
    int rc;
} rival;

/* The same chunks, from the last to the first, each in a write of its own. */
static void *write_the_same(void *ctx)
{
    rival *r = ctx;
    breccia *repo = NULL;
    brc_session *s = NULL;
    brc_array *b = NULL;
    r->rc = brc_open(&repo, r->t->file, NULL, &r->err);
    if (r->rc == BRC_OK)
        r->rc = brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &r->err);
    if (r->rc == BRC_OK)
        r->rc = brc_array_open(&b, s, "/b", &r->err);
    for (uint64_t i = 0; r->rc == BRC_OK && i < ANOTHER; i++) {
        brc_sel sel = BRC_SEL_INIT;
        sel_all(&sel, b);
        sel.start[0] = i * CHUNK;
        sel.count[0] = CHUNK;
        r->rc = brc_array_write(b, &sel, r->data + (CHUNKS - 1 - i * 31) * CHUNK, CHUNK, &r->err);
    }
    brc_array_free(b);
    brc_session_free(s);
    brc_free(repo);
    return NULL;
}

TEST(the_same_chunks_from_two_at_once_are_stored_once)
{
    scenario t;
    rival r = {.t = &t, .err = BRC_ERROR_INIT};
    uint8_t *data = bytes_of(9, CHUNKS);
    scenario_start(&t);
    brc_array *a = new_bytes(&t, "/a", CHUNKS);
    brc_array_free(new_bytes(&t, "/b", ANOTHER));
    scenario_commit(&t, "first");
    r.data = data;
    ck_assert_int_eq(pthread_create(&r.thread, NULL, write_the_same, &r), 0);
    OK(&t, brc_array_write(a, NULL, data, (size_t)CHUNKS * CHUNK, &t.err));
    pthread_join(r.thread, NULL);
    ck_assert_msg(r.rc == BRC_OK, "%s", r.err.message);
    brc_array_free(a);
    has(&t, "/a", data, (size_t)CHUNKS * CHUNK);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM object WHERE kind=1"), CHUNKS);
    ck_assert_int_eq(scenario_ask(&t, accounted), 0);
    stores_little_anew(&t);
    scenario_commit(&t, "second");
    scenario_whole(&t);
    scenario_stop(&t);
    free(data);
}

typedef struct collector {
    pthread_t thread;
    const char *file;
    atomic_int is_over;
    int rc, runs;
    uint64_t removed;
    brc_error err;
} collector;

static void *collect_again_and_again(void *ctx)
{
    collector *c = ctx;
    breccia *repo = NULL;
    c->rc = brc_open(&repo, c->file, NULL, &c->err);
    while (c->rc == BRC_OK && (c->runs < 2 || !atomic_load(&c->is_over))) {
        brc_gc_opts opts = BRC_GC_OPTS_INIT;
        brc_gc_report report = BRC_GC_REPORT_INIT;
        c->rc = brc_gc(repo, &opts, &report, &c->err);
        c->removed += report.objects_removed;
        c->runs++;
    }
    brc_free(repo);
    return NULL;
}

/* Every other chunk is there already, and nothing has it any more. */
TEST(collections_beside_it_take_nothing_of_it)
{
    scenario t;
    collector c = {.err = BRC_ERROR_INIT};
    uint8_t *data = bytes_of(13, CHUNKS), *half = malloc((size_t)CHUNKS / 2 * CHUNK);
    ck_assert_ptr_nonnull(half);
    for (size_t i = 0; i < CHUNKS / 2; i++)
        memcpy(half + i * CHUNK, data + 2 * i * CHUNK, CHUNK);
    scenario_start(&t);
    scenario_no_window(&t);
    brc_array *a = new_bytes(&t, "/a", CHUNKS), *g = new_bytes(&t, "/g", CHUNKS / 2);
    scenario_commit(&t, "first");
    OK(&t, brc_array_write(g, NULL, half, (size_t)CHUNKS / 2 * CHUNK, &t.err));
    brc_array_free(g);
    OK(&t, brc_session_discard(t.session, &t.err));
    c.file = t.file;
    ck_assert_int_eq(pthread_create(&c.thread, NULL, collect_again_and_again, &c), 0);
    OK(&t, brc_array_write(a, NULL, data, (size_t)CHUNKS * CHUNK, &t.err));
    atomic_store(&c.is_over, 1);
    pthread_join(c.thread, NULL);
    ck_assert_msg(c.rc == BRC_OK, "%s", c.err.message);
    brc_array_free(a);
    has(&t, "/a", data, (size_t)CHUNKS * CHUNK);
    ck_assert_int_eq(scenario_ask(&t, accounted), 0);
    stores_little_anew(&t);
    scenario_commit(&t, "second");
    scenario_whole(&t);
    scenario_stop(&t);
    free(half);
    free(data);
}

typedef struct passer_by {
    breccia *repo;
    brc_error err;
    int rc;
} passer_by;

static void pass_by(void *ctx)
{
    passer_by *p = ctx;
    p->rc = brc_ref_create(p->repo, "other", NULL, NULL, 0, &p->err);
}

/* Chunks that are large, so that it is a bulk write, and stored in so few bytes that all of them
 * are in one transaction. */
enum { SPARSE = 16384, SPARSE_CHUNKS = 1100 };

static uint8_t *sparse_bytes(void)
{
    uint8_t *data = calloc(SPARSE_CHUNKS, SPARSE);
    ck_assert_ptr_nonnull(data);
    for (uint32_t i = 0, n = 1; i < SPARSE_CHUNKS; i++, n++)
        memcpy(data + (size_t)i * SPARSE, &n, sizeof(n));
    return data;
}

/* The file is changed once, while the first chunk is encoded: so it is looked at again, and the
 * bytes that were put since are there, though their row is not written yet. */
TEST(what_was_just_put_is_not_put_again)
{
    static const uint64_t shape = (uint64_t)SPARSE_CHUNKS * SPARSE, chunk = SPARSE;
    scenario t = {.err = BRC_ERROR_INIT};
    hooked_parts parts;
    passer_by p = {.err = BRC_ERROR_INIT, .rc = 1};
    uint8_t *data = sparse_bytes();
    hooked_file_start(&t, &parts, 0);
    brc_array *a = scenario_array(&t, "/a", "uint8", 1, &shape, &chunk, NULL,
                                  "[" HOOKED_CODECS "]");
    scenario_commit(&t, "first");
    p.repo = scenario_handle(&t, 0);
    hook_encode(pass_by, &p, 1);
    OK(&t, brc_array_write(a, NULL, data, shape, &t.err));
    ck_assert_msg(p.rc == BRC_OK, "%s", p.err.message);
    brc_free(p.repo);
    brc_array_free(a);
    has(&t, "/a", data, shape);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM object WHERE kind=1"), SPARSE_CHUNKS);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM removed"), 0);
    ck_assert_int_eq(scenario_ask(&t, accounted), 0);
    scenario_whole(&t);
    hooked_file_stop(&t, &parts);
    free(data);
}

/* Neighbours lie together, whatever their ids are. */
TEST(bytes_lie_in_the_order_of_writing)
{
    scenario t;
    uint8_t *data = bytes_of(11, CHUNKS);
    scenario_start(&t);
    brc_array *a = new_bytes(&t, "/a", CHUNKS);
    OK(&t, brc_array_write(a, NULL, data, (size_t)CHUNKS * CHUNK, &t.err));
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM (SELECT o.place*1000000+o.offset -"
                                      " lag(o.place*1000000+o.offset) OVER (ORDER BY c.key) AS step"
                                      " FROM draft_chunk c JOIN object o ON o.id=c.id)"
                                      " WHERE step<=0"),
                     0);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM removed"), 0);
    brc_array_free(a);
    scenario_stop(&t);
    free(data);
}
