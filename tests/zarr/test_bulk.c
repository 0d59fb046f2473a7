/* Bulk writes: many transactions, all of it or nothing; what others do meanwhile; what a killed one
 * leaves. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/process.h"
#include "../../src/store/db.h"
#include "../../src/store/vfs.h"
#include "../../src/work/session.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(bulk);

#define MIB ((uint64_t)1 << 20)
enum { CHUNKS = 80 }; /* of 1 MiB: more than is read ahead */

static scenario t;
static breccia *other;
static brc_session *theirs;

static void bulk_arrays(void)
{
    uint64_t shape = CHUNKS * MIB, chunk = MIB;
    brc_array_free(scenario_array(&t, "/a", "uint8", 1, &shape, &chunk, NULL, "[\"bytes\"]"));
    scenario_numbers(&t, "/n", 8, 2, 0);
    scenario_commit(&t, "first");
    other = scenario_handle(&t, 0);
    OK(&t, brc_session_open(&theirs, other, NULL, BRC_SESSION_WRITE, &t.err));
}

static void bulk_setup(void)
{
    scenario_start(&t);
    bulk_arrays();
}

/* The pages of chunks that lie elsewhere never fill the page cache. */
static void inline_setup(void)
{
    scenario_start(&t);
    scenario_inline(&t);
    bulk_arrays();
}

static void bulk_teardown(void)
{
    brc_session_free(theirs);
    brc_free(other);
    scenario_whole(&t);
    scenario_stop(&t);
}

static uint8_t byte_at(uint64_t i)
{
    return (uint8_t)(i * 2654435761u >> 13 ^ i >> 20);
}

/* Bytes that do not repeat; `at` each MiB something happens. */
typedef struct giver {
    uint64_t at, end, seed;
    void (*each)(uint64_t mib);
    unsigned met; /* times that something of it was in the file */
} giver;

static int give(void *ctx, void *dst, size_t len, size_t *got)
{
    giver *g = ctx;
    size_t n = g->end - g->at < len ? (size_t)(g->end - g->at) : len;
    if (g->at / MIB != (g->at + n) / MIB && g->each != NULL)
        g->each(g->at / MIB);
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)dst)[i] = byte_at(g->at + i);
    g->at += n;
    *got = n;
    return 0;
}

static int load(giver *g)
{
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    g->end = CHUNKS * MIB;
    int rc = brc_array_load_stream(a, NULL, give, g, &t.err);
    brc_array_free(a);
    return rc;
}

static uint64_t chunks_of(brc_session *s)
{
    uint64_t chunks, bytes;
    brc_array *a = scenario_array_at(&t, s, "/a");
    OK(&t, brc_array_stat(&chunks, &bytes, a, &t.err));
    brc_array_free(a);
    return chunks;
}

static unsigned seen;

static void look(uint64_t mib)
{
    (void)mib;
    ck_assert_uint_eq(chunks_of(theirs), 0); /* nothing of it, and no waiting */
    seen += scenario_ask(&t, "SELECT count(*) FROM object WHERE kind=1") > 8;
}

CASE("bulk", .setup = bulk_setup, .teardown = bulk_teardown, .timeout = 120);

TEST(readers_get_in_and_see_nothing)
{
    giver g = {.each = look};
    seen = 0;
    OK(&t, load(&g));
    ck_assert_uint_gt(seen, 2); /* there were batches in the file meanwhile */
    ck_assert_uint_eq(chunks_of(theirs), CHUNKS);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft"), 1);
}

static void write_and_commit(uint64_t mib)
{
    scenario_put(&t, theirs, "/n", mib % 8, 1000 + (int32_t)mib);
    if (mib % 5 == 4)
        OK(&t, scenario_commit_of(&t, theirs, "theirs", NULL));
}

TEST(other_writers_get_in_and_nothing_is_lost)
{
    giver g = {.each = write_and_commit};
    OK(&t, load(&g));
    ck_assert_uint_eq(chunks_of(theirs), CHUNKS);
    for (uint64_t i = 0; i < 8; i++)
        ck_assert_int_ge(scenario_number(&t, t.session, "/n", i), 1000);
    scenario_commit(&t, "both");
    ck_assert_uint_eq(chunks_of(theirs), CHUNKS);
}

/* The chunk that was given last is not in the file yet: somebody else is the first to store it. */
static void store_the_same(uint64_t mib)
{
    static uint8_t bytes[MIB];
    brc_sel sel = BRC_SEL_INIT;
    if (mib == 0)
        return;
    for (uint64_t i = 0; i < MIB; i++)
        bytes[i] = byte_at((mib - 1) * MIB + i);
    brc_array *b = scenario_array_at(&t, theirs, "/b");
    sel_all(&sel, b);
    sel.start[0] = (mib - 1) * MIB;
    sel.count[0] = MIB;
    OK(&t, brc_array_write(b, &sel, bytes, MIB, &t.err));
    brc_array_free(b);
}

TEST(what_others_store_meanwhile_is_stored_once)
{
    giver g = {.each = store_the_same};
    uint64_t shape = CHUNKS * MIB, chunk = MIB;
    brc_array_free(scenario_array(&t, "/b", "uint8", 1, &shape, &chunk, NULL, "[\"bytes\"]"));
    int64_t before = scenario_ask(&t, "SELECT count(*) FROM object WHERE kind=1");
    OK(&t, load(&g));
    ck_assert_uint_eq(chunks_of(t.session), CHUNKS);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM object WHERE kind=1"),
                     before + CHUNKS);
}

static void change_array(uint64_t mib, int what)
{
    brc_array *a;
    if (mib != 20)
        return;
    if (what == 0) {
        OK(&t, brc_node_remove(theirs, "/a", &t.err));
    } else if (what == 1) {
        OK(&t, brc_array_open(&a, theirs, "/a", &t.err));
        OK(&t, brc_array_resize(a, (uint64_t[]){(CHUNKS - 1) * MIB}, &t.err));
        brc_array_free(a);
    } else {
        OK(&t, brc_attrs_set(theirs, "/a", "unit", "\"m\"", &t.err));
    }
}

static void remove_it(uint64_t mib)
{
    change_array(mib, 0);
}

static void cut_it(uint64_t mib)
{
    change_array(mib, 1);
}

static void describe_it(uint64_t mib)
{
    change_array(mib, 2);
}

LOOP(what_changed_its_form_meanwhile_is_a_conflict, 0, 2)
{
    giver g = {.each = _i == 0 ? remove_it : cut_it};
    ck_assert_int_eq(load(&g), BRC_ECONFLICT);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft WHERE kind=2 AND state=1"), 1);
    scenario_whole(&t);
}

TEST(an_attribute_is_no_conflict)
{
    giver g = {.each = describe_it};
    brc_buf text = BRC_BUF_INIT;
    OK(&t, load(&g));
    OK(&t, brc_attrs_get(&text, t.session, "/a", "unit", &t.err));
    ck_assert_str_eq((char *)text.data, "\"m\"");
    brc_buf_dispose(&text);
    ck_assert_uint_eq(chunks_of(theirs), CHUNKS);
}

static void stop_it(uint64_t mib)
{
    if (mib == 30)
        brc_interrupt(t.repo, 1);
}

TEST(an_interrupted_one_leaves_nothing_to_see)
{
    giver g = {.each = stop_it};
    ck_assert_int_eq(load(&g), BRC_EINTERRUPT);
    brc_interrupt(t.repo, 0);
    ck_assert_uint_eq(chunks_of(theirs), 0);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft WHERE state=1"), 0);
    OK(&t, load(&(giver){0}));
}

static uint64_t killed_at;

static void die(uint64_t mib)
{
    if (mib == killed_at)
        kill(getpid(), SIGKILL);
}

LOOP(a_killed_one_leaves_a_dead_draft, 0, 7)
{
    brc_iter *it;
    const brc_draft *draft;
    int status;
    killed_at = 3 + (uint64_t)_i * 11;
    scenario_close(&t);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        scenario_open(&t, NULL, 0);
        giver g = {.each = die};
        (void)!load(&g);
        _exit(1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    scenario_open(&t, NULL, 0);
    scenario_whole(&t);
    ck_assert_uint_eq(chunks_of(t.session), 0);
    ck_assert_int_eq(scenario_clean(&t), 1);
    OK(&t, brc_drafts(&it, t.repo, &t.err));
    while (brc_next(it, &draft, &t.err) > 0) {
        ck_assert_int_eq(draft->owner, BRC_OWNER_DEAD);
        OK(&t, brc_draft_drop(t.repo, draft->id, &t.err));
    }
    brc_iter_free(it);
    scenario_whole(&t);
    OK(&t, load(&(giver){0}));
    ck_assert_uint_eq(chunks_of(theirs), CHUNKS);
}

/* A program's own: it sees what it has written, others do not. */
TEST(a_pair_of_calls_is_one_change)
{
    int kind;
    char text[200];
    OK(&t, brc_group_create(t.session, "/u", NULL, &t.err)); /* uncommitted, below */
    OK(&t, brc_bulk_begin(t.session, &t.err));
    OK(&t, brc_group_create(t.session, "/u/g", NULL, &t.err));
    scenario_put(&t, t.session, "/n", 0, 70);
    /* another chunk; and between two calls the file is not locked */
    scenario_put(&t, theirs, "/n", 7, 71);
    OK(&t, load(&(giver){0}));
    scenario_tree(&t, t.session, "/", 1, text, sizeof(text));
    ck_assert_str_eq(text, "/ /a* /n* /u /u/g ");
    ck_assert_int_eq(scenario_number(&t, t.session, "/n", 0), 70);
    OK(&t, brc_node_kind(&kind, theirs, "/u/g", &t.err));
    ck_assert_int_eq(kind, 0);
    ck_assert_int_eq(scenario_number(&t, theirs, "/n", 0), 0);
    FAILS(&t, BRC_EMISUSE, brc_node_remove(t.session, "/u", &t.err));
    ck_assert_int_eq(brc_bulk_end(t.session, BRC_END_KEEP, &t.err), BRC_EMISUSE); /* one failed */
    ck_assert_uint_eq(chunks_of(theirs), 0);
    OK(&t, brc_bulk_begin(t.session, &t.err));
    scenario_put(&t, t.session, "/n", 0, 70);
    OK(&t, load(&(giver){0}));
    scenario_put(&t, theirs, "/n", 6, 72);
    OK(&t, brc_bulk_end(t.session, BRC_END_KEEP, &t.err));
    ck_assert_int_eq(scenario_number(&t, theirs, "/n", 0), 70);
    ck_assert_int_eq(scenario_number(&t, theirs, "/n", 1), 1);
    ck_assert_int_eq(scenario_number(&t, theirs, "/n", 6), 72);
    ck_assert_int_eq(scenario_number(&t, theirs, "/n", 7), 71);
    OK(&t, brc_bulk_begin(t.session, &t.err));
    scenario_put(&t, t.session, "/n", 0, 80);
    OK(&t, brc_bulk_end(t.session, 0, &t.err));
    ck_assert_int_eq(scenario_number(&t, t.session, "/n", 0), 70);
}

/* Each side has changed another part of the node, and both changes are there afterwards. */
TEST(an_attribute_and_restored_chunks_are_no_conflict)
{
    brc_buf text = BRC_BUF_INIT;
    scenario_set_number(&t, "/n", 0, 50);
    scenario_commit(&t, "second");
    OK(&t, brc_bulk_begin(t.session, &t.err));
    OK(&t, brc_attrs_set(t.session, "/n", "unit", "\"m\"", &t.err));
    OK(&t, brc_node_restore(theirs, "/n", "HEAD~1", &t.err));
    OK(&t, brc_bulk_end(t.session, BRC_END_KEEP, &t.err));
    OK(&t, brc_attrs_get(&text, theirs, "/n", "unit", &t.err));
    ck_assert_str_eq((char *)text.data, "\"m\"");
    brc_buf_dispose(&text);
    ck_assert_int_eq(scenario_number(&t, theirs, "/n", 0), 0);
}

/* A chunk that is changed in part must still be what it was. */
TEST(a_chunk_changed_in_part_by_both_is_a_conflict)
{
    OK(&t, brc_bulk_begin(t.session, &t.err));
    scenario_put(&t, t.session, "/n", 0, 70);
    OK(&t, load(&(giver){0}));
    scenario_put(&t, theirs, "/n", 1, 71); /* the same chunk */
    ck_assert_int_eq(brc_bulk_end(t.session, BRC_END_KEEP, &t.err), BRC_ECONFLICT);
    ck_assert_int_eq(scenario_number(&t, t.session, "/n", 1), 71);
    ck_assert_int_eq(scenario_number(&t, t.session, "/n", 0), 0);
}

/* Once something of it is in the file. */
static void drop_it(uint64_t mib)
{
    brc_iter *it;
    const brc_draft *draft;
    int64_t id = 0;
    (void)mib;
    OK(&t, brc_drafts(&it, other, &t.err));
    while (brc_next(it, &draft, &t.err) > 0)
        id = draft->nodes > 0 ? draft->id : id;
    brc_iter_free(it);
    if (id != 0)
        OK(&t, brc_draft_drop(other, id, &t.err));
}

/* By its own process: rows that came after would be nobody's. */
TEST(one_that_is_dropped_meanwhile_ends)
{
    giver g = {.each = drop_it};
    FAILS(&t, BRC_ESTALE, load(&g));
    ck_assert_uint_lt(g.at, g.end); /* at once, and not at its end */
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft_chunk"), 0);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft WHERE state<3"), 0);
    g = (giver){0};
    OK(&t, load(&g));
}

static int count_private(breccia *repo)
{
    brc_iter *it;
    const brc_draft *d;
    int n = 0, rc;
    OK(&t, brc_drafts(&it, repo, &t.err));
    while ((rc = brc_next(it, &d, &t.err)) > 0)
        n += (d->flags & BRC_DRAFT_OWNED) != 0;
    ck_assert_int_eq(rc, 0);
    brc_iter_free(it);
    return n;
}

/* The file is locked when it is to be dropped. */
TEST(one_that_cannot_be_dropped_goes_with_the_next_change)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.wait_ms = -1;
    scenario_close(&t);
    scenario_open(&t, &opts, 0);
    OK(&t, brc_bulk_begin(t.session, &t.err));
    scenario_put(&t, t.session, "/n", 0, 70);
    OK(&t, brc_begin(other, &t.err));
    scenario_put(&t, theirs, "/n", 7, 71);
    OK(&t, brc_bulk_end(t.session, 0, &t.err));
    OK(&t, brc_end(other, BRC_END_KEEP, &t.err));
    ck_assert_int_eq(count_private(other), 1);
    scenario_put(&t, t.session, "/n", 1, 72);
    ck_assert_int_eq(count_private(other), 0);
    ck_assert_int_eq(scenario_number(&t, t.session, "/n", 0), 0);
}

CASE("spills", .setup = inline_setup, .teardown = bulk_teardown, .timeout = 120);

static int spilled(void)
{
    int now, most;
    sqlite3 *db = t.repo->store->db;
    int rc = sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_SPILL, &now, &most, 0);
    ck_assert_int_eq(rc, SQLITE_OK);
    return now;
}

/* Changed pages go into the file before the transaction's end as long as nobody waits. */
TEST(pages_spill_while_nobody_waits)
{
    giver g = {0};
    OK(&t, load(&g));
    ck_assert_int_gt(spilled(), 0);
    ck_assert_uint_eq(chunks_of(theirs), CHUNKS);
}

LOOP(a_transaction_spills_if_nobody_waits_when_it_begins, 0, 2)
{
    brc_store *store = t.repo->store;
    if (_i)
        brc_vfs_announce(other->store->vfs);
    OK(&t, brc_store_bulk_begin(store, &t.err));
    brc_store_bulk_admit(store, 1);
    OK(&t, brc_store_begin(store, &t.err));
    ck_assert_int_eq(store->bulk.spills, !_i);
    OK(&t, brc_store_end(store, 0, &t.err));
    brc_store_bulk_cancel(store);
    brc_vfs_recall(other->store->vfs);
}

/* Readers get in: while somebody waits, no page goes into the file before the transaction's end. A
 * batch stays far below the bound of the page cache: a quarter of the usual bound is enough. */
TEST(no_batch_spills_while_somebody_waits)
{
    giver g = {0};
    brc_store *store = t.repo->store;
    const char *quarter = "PRAGMA cache_spill=4097";
    ck_assert_int_eq(sqlite3_exec(store->db, quarter, NULL, NULL, NULL), SQLITE_OK);
    brc_vfs_announce(other->store->vfs);
    OK(&t, load(&g));
    brc_vfs_recall(other->store->vfs);
    ck_assert_uint_gt(brc_store_bulk_batches(store), 1);
    ck_assert_int_eq(spilled(), 0);
    ck_assert_uint_eq(chunks_of(theirs), CHUNKS);
}

/* ---- chunks in packs -------------------------------- */

static void pack_setup(void)
{
    scenario_start(&t);
    OK(&t, brc_config_set(t.repo, "backend", "pack", &t.err));
    bulk_arrays();
}

CASE("packs", .setup = pack_setup, .teardown = bulk_teardown, .timeout = 120);

/* While nobody waits, a transaction goes on as bytes are put into packs, which lie on the same
 * disk: it lasts 0.8 s. The last one is beside it. */
TEST(a_transaction_goes_on_while_packs_are_written)
{
    uint8_t *bytes = malloc(CHUNKS * MIB);
    ck_assert_ptr_nonnull(bytes);
    for (uint64_t i = 0; i < CHUNKS * MIB; i++)
        bytes[i] = byte_at(i);
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    const int64_t since = brc_monotonic_ns();
    OK(&t, brc_array_write(a, NULL, bytes, CHUNKS * MIB, &t.err));
    const int64_t took = brc_monotonic_ns() - since;
    const uint64_t batches = brc_store_bulk_batches(t.repo->store);
    ck_assert_uint_le(batches, 2 + (uint64_t)took / 800000000);
    ck_assert_uint_eq(chunks_of(theirs), CHUNKS);
    brc_array_free(a);
    free(bytes);
}
