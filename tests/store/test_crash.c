/*
 * Power is lost at every moment: what was acknowledged is there, what was under way is
 * done or not done, and the file is whole. And where the disk lies about what it has
 * written, this test sees it.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/base/hash.h"
#include "../../src/store/db.h"
#include "../../src/work/session.h"
#include "../kit/crash_sim.h"
#include "../kit/effort.h"
#include "../kit/fault_vfs.h"
#include "../kit/file_digest.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(crash);

static store_kit kit;
static fault_vfs disk;
static char imagined[128];

#define OK(call) KIT_OK(&kit, call)
#define MOST_STEPS 24

/* The content of the file after each transaction; before the first there is none. */
static char *said[MOST_STEPS + 2];
static size_t nsaid;
static size_t acked[MOST_STEPS + 2]; /* which of these each acknowledged call left */
static size_t nacked;
static int in_wal_mode;

/* The known outcomes of the file's bytes, once it was opened: most states come out as one of
 * few. */
typedef struct outcome {
    brc_oid bytes;
    int is_known[MOST_STEPS + 2]; /* it says what was said then */
    int is_whole;
} outcome;

static outcome outcomes[400];
static size_t noutcomes;

/* file_digest(), or file_digest_named() for a story with transactions that only store objects. */
static char *(*digest)(const char *path);

static void crash_setup(void)
{
    digest = file_digest;
    store_kit_folder(&kit);
    snprintf(imagined, sizeof(imagined), "%s/imagined.brc", kit.dir);
    fault_vfs_register(&disk);
    disk.logged = kit.file;
    nsaid = nacked = noutcomes = 0;
    in_wal_mode = 0;
    said[nsaid] = strdup("");
    acked[nacked++] = nsaid++;
}

static void crash_teardown(void)
{
    fault_vfs_unregister(&disk);
    while (nsaid > 0)
        free(said[--nsaid]);
    store_kit_stop(&kit);
}

/* A transaction has ended: what it left may be there from here on. */
static void may_be_there(void)
{
    if (disk.logged == NULL)
        return;
    ck_assert_uint_lt(nsaid, MOST_STEPS);
    said[nsaid++] = digest(kit.file);
}

/* A call has returned: from here on its work must be there. */
static void acknowledged(void)
{
    may_be_there();
    if (disk.logged == NULL)
        return;
    fault_vfs_mark(&disk);
    acked[nacked++] = nsaid - 1;
}

/* ---- what is done ------------------------------------------------------------ */

static void open_repo(breccia **repo, brc_session **s, uint32_t flags)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.flags = flags;
    opts.vfs = FAULT_VFS_NAME;
    OK(brc_open(repo, kit.file, &opts, &kit.err));
    if (flags & BRC_OPEN_CREATE)
        acknowledged();
    if ((flags & BRC_OPEN_CREATE) && in_wal_mode) {
        OK(brc_config_set(*repo, "journal", "wal", &kit.err));
        acknowledged();
    }
    OK(brc_session_open(s, *repo, NULL, BRC_SESSION_WRITE, &kit.err));
}

static void commit(brc_session *s, const char *message)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    opts.message = message;
    OK(brc_session_commit(&id, s, &opts, &kit.err));
    acknowledged();
}

static void write_noise(brc_array *a, uint64_t from, size_t len, uint64_t seed)
{
    brc_sel sel = BRC_SEL_INIT;
    uint8_t *data = malloc(len);
    sel.ndim = 1;
    sel.start[0] = from;
    sel.count[0] = len;
    sel.step[0] = 1;
    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)store_kit_random(&seed);
    OK(brc_array_write(a, &sel, data, len, &kit.err));
    free(data);
}

static brc_array *new_line_of_bytes(brc_session *s, const char *path, uint64_t n, uint64_t chunk)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    spec.ndim = 1;
    spec.shape = &n;
    spec.chunk = &chunk;
    spec.dtype = "uint8";
    OK(brc_array_create(&a, s, path, &spec, &kit.err));
    return a;
}

static void small_story(void)
{
    breccia *repo;
    brc_session *s;
    open_repo(&repo, &s, BRC_OPEN_CREATE);
    OK(brc_begin(repo, &kit.err)); /* several calls are one */
    brc_array *a = new_line_of_bytes(s, "/a", 4000, 1000);
    OK(brc_attrs_set(s, "/a", "k", "1", &kit.err));
    OK(brc_end(repo, BRC_END_KEEP, &kit.err));
    acknowledged();
    write_noise(a, 0, 4000, 1);
    acknowledged();
    commit(s, "one");
    OK(brc_ref_create(repo, "side", NULL, NULL, 0, &kit.err));
    acknowledged();
    write_noise(a, 0, 4000, 2);
    acknowledged();
    commit(s, "two");
    OK(brc_ref_create(repo, "v1", NULL, NULL, BRC_REF_TAG, &kit.err));
    acknowledged();
    OK(brc_attrs_set(s, "/a", "k", "2", &kit.err));
    acknowledged();
    OK(brc_switch(repo, "side", BRC_SWITCH_DISCARD, &kit.err));
    acknowledged();
    brc_array_free(a);
    brc_session_free(s);
    brc_free(repo);
    open_repo(&repo, &s, 0); /* on the other branch */
    OK(brc_node_move(s, "/a", "/g/b", 0, &kit.err));
    acknowledged();
    commit(s, "three");
    OK(brc_reset(repo, NULL, "v1", BRC_RESET_HARD, NULL, &kit.err));
    acknowledged();
    brc_session_free(s);
    brc_free(repo);
}

/* ---- drafts ------------------------------------------------------------------ */

/* Gives the private drafts to a process that is dead. No process has the file open. */
static void orphan_drafts(void)
{
    static const char sql[] =
        "BEGIN IMMEDIATE; UPDATE draft SET owner='{\"pid\":1}' WHERE owner IS NOT NULL;"
        "UPDATE draft SET checksum=row_sum('draft', id, kind, state, branch, base, tip, other,"
        " plan, owner, parent, time_us, changes, parts); COMMIT";
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open_v2(kit.file, &db, SQLITE_OPEN_READWRITE, FAULT_VFS_NAME),
                     SQLITE_OK);
    ck_assert_int_eq(brc_row_sum_register(db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void write_in(brc_session *s, const char *path, uint64_t seed)
{
    brc_array *a;
    OK(brc_array_open(&a, s, path, &kit.err));
    write_noise(a, 0, 4000, seed);
    brc_array_free(a);
    acknowledged();
}

/* A private session leaves this; the number of its draft. Opens everything anew. */
static int64_t leave_draft(breccia **repo, brc_session **s, const char *path, uint64_t seed)
{
    brc_session *mine;
    brc_iter *it;
    const brc_draft *draft;
    int64_t id = 0;
    OK(brc_session_open(&mine, *repo, NULL, BRC_SESSION_PRIVATE, &kit.err));
    write_in(mine, path, seed);
    brc_session_free(mine);
    brc_session_free(*s);
    brc_free(*repo);
    orphan_drafts();
    open_repo(repo, s, 0);
    OK(brc_drafts(&it, *repo, &kit.err));
    while (brc_next(it, &draft, &kit.err) > 0)
        if (draft->flags & BRC_DRAFT_OWNED)
            id = draft->id;
    brc_iter_free(it);
    ck_assert_int_ne(id, 0);
    return id;
}

/* Private ones that are written, committed and handed over; left ones that are adopted, also over
 * changes, and dropped; a move in each. */
static void draft_story(void)
{
    breccia *repo;
    brc_session *s, *mine;
    open_repo(&repo, &s, BRC_OPEN_CREATE);
    OK(brc_begin(repo, &kit.err));
    brc_array_free(new_line_of_bytes(s, "/a", 4000, 1000));
    brc_array_free(new_line_of_bytes(s, "/b", 4000, 1000));
    OK(brc_end(repo, BRC_END_KEEP, &kit.err));
    acknowledged();
    commit(s, "one");
    OK(brc_session_open(&mine, repo, NULL, BRC_SESSION_PRIVATE, &kit.err));
    write_in(mine, "/a", 1);
    OK(brc_node_move(mine, "/a", "/g/c", 0, &kit.err));
    acknowledged();
    commit(mine, "two");
    write_in(mine, "/g/c", 2);
    write_in(s, "/b", 3);
    OK(brc_session_hand_over(mine, s, &kit.err)); /* over what is there */
    acknowledged();
    commit(s, "three");
    brc_session_free(mine);
    int64_t left = leave_draft(&repo, &s, "/g/c", 4);
    OK(brc_draft_adopt(repo, left, &kit.err));
    acknowledged();
    left = leave_draft(&repo, &s, "/b", 5);
    OK(brc_draft_adopt(repo, left, &kit.err)); /* over what is there */
    acknowledged();
    left = leave_draft(&repo, &s, "/b", 6);
    OK(brc_draft_drop(repo, left, &kit.err));
    acknowledged();
    commit(s, "four");
    brc_session_free(s);
    brc_free(repo);
}

/* A bulk write through the calls of a program, each of which is a batch: over what is uncommitted,
 * chunks in part, a new array and attributes; then one that is given up. */
static void bulk_story(void)
{
    breccia *repo;
    brc_session *s;
    open_repo(&repo, &s, BRC_OPEN_CREATE);
    OK(brc_begin(repo, &kit.err));
    brc_array *a = new_line_of_bytes(s, "/a", 4000, 1000);
    brc_array *b = new_line_of_bytes(s, "/b", 4000, 1000);
    OK(brc_end(repo, BRC_END_KEEP, &kit.err));
    acknowledged();
    commit(s, "one");
    write_noise(b, 0, 4000, 1);
    acknowledged();
    OK(brc_bulk_begin(s, &kit.err));
    write_noise(a, 0, 4000, 2);
    may_be_there();
    write_noise(b, 500, 1000, 3); /* two chunks in part */
    may_be_there();
    brc_array *c = new_line_of_bytes(s, "/g/c", 3000, 1000);
    may_be_there();
    write_noise(c, 0, 3000, 4);
    may_be_there();
    OK(brc_attrs_set(s, "/b", "k", "1", &kit.err));
    may_be_there();
    OK(brc_bulk_end(s, BRC_END_KEEP, &kit.err));
    acknowledged();
    OK(brc_bulk_begin(s, &kit.err));
    write_noise(a, 0, 4000, 5);
    may_be_there();
    write_noise(c, 0, 1000, 6);
    may_be_there();
    OK(brc_bulk_end(s, 0, &kit.err));
    acknowledged();
    commit(s, "two");
    brc_array_free(a);
    brc_array_free(b);
    brc_array_free(c);
    brc_session_free(s);
    brc_free(repo);
}

static void hand_over_chunk(brc_session *mine, brc_session *s, uint64_t i)
{
    brc_array *a;
    OK(brc_array_open(&a, mine, "/a", &kit.err));
    write_noise(a, i * 10, 10, i);
    brc_array_free(a);
    acknowledged();
    OK(brc_session_hand_over(mine, s, &kit.err));
    acknowledged();
}

/* Each draft that is adopted lies over the one before, until they are too many: then they are
 * merged. Two come after that. */
static void stack_story(void)
{
    enum { ROWS = 32 }; /* in one stack */
    breccia *repo;
    brc_session *s, *mine;
    disk.logged = NULL;
    digest = file_digest_named;
    open_repo(&repo, &s, BRC_OPEN_CREATE);
    brc_array_free(new_line_of_bytes(s, "/a", (ROWS + 2) * 10, 10));
    commit(s, "one");
    for (uint64_t i = 0; i < ROWS + 2; i++) {
        if (i == ROWS - 1) { /* all before are alike */
            brc_session_free(s);
            brc_free(repo);
            disk.logged = kit.file;
            fault_vfs_log_file(&disk);
            acknowledged();
            open_repo(&repo, &s, 0);
        }
        OK(brc_session_open(&mine, repo, NULL, BRC_SESSION_PRIVATE, &kit.err));
        hand_over_chunk(mine, s, i);
        brc_session_free(mine);
    }
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM draft_node"
                                         " WHERE path='/' OR (path IS NULL AND draft<>0)"),
                     1); /* the merged root */
    commit(s, "two");
    brc_session_free(s);
    brc_free(repo);
}

/* The file's, and its log's. */
static off_t bytes_on_disk(void)
{
    char log[140];
    struct stat st;
    ck_assert_int_eq(stat(kit.file, &st), 0);
    off_t n = st.st_size;
    snprintf(log, sizeof(log), "%s-wal", kit.file);
    return stat(log, &st) == 0 ? n + st.st_size : n;
}

/* A transaction that is too large for memory: pages are written into the file before its end. That
 * takes 256 MiB; here SQLite is told to do it. */
static void spilled_story(void)
{
    breccia *repo;
    brc_session *s;
    open_repo(&repo, &s, BRC_OPEN_CREATE);
    brc_array *a = new_line_of_bytes(s, "/a", 600000, 200000);
    acknowledged();
    write_noise(a, 0, 600000, 1);
    acknowledged();
    commit(s, "one");
    OK(brc_begin(repo, &kit.err));
    off_t before = bytes_on_disk();
    write_noise(a, 0, 400000, 2);
    ck_assert_int_eq(sqlite3_db_cacheflush(repo->store->db), SQLITE_OK);
    ck_assert_int_gt(bytes_on_disk(), before);
    write_noise(a, 400000, 200000, 3);
    OK(brc_end(repo, BRC_END_KEEP, &kit.err));
    acknowledged();
    commit(s, "two");
    brc_array_free(a);
    brc_session_free(s);
    brc_free(repo);
}

/* ---- what is found ----------------------------------------------------------- */

typedef struct findings {
    size_t states, lost, damaged;
} findings;

/* The first to open it is breccia, to read or to write: it undoes what is half done. */
static int open_imagined(uint32_t flags)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo;
    opts.flags = flags;
    int rc = brc_open(&repo, imagined, &opts, &kit.err);
    brc_free(repo);
    return rc;
}

static outcome judge_bytes(int rc, int says)
{
    outcome o = { .is_whole = 0 };
    char *now = digest(imagined);
    for (size_t i = 0; i < nsaid; i++)
        o.is_known[i] = strcmp(now, said[i]) == 0;
    o.is_whole = *now == '\0' ? rc == BRC_ENOTFOUND || rc == BRC_EFORMAT
                              : rc == BRC_OK && (!says || file_is_whole(imagined));
    free(now);
    return o;
}

static outcome outcome_of_open(int rc, int says)
{
    if (rc != BRC_OK)
        return judge_bytes(rc, says);
    brc_buf all = store_kit_read(imagined);
    brc_oid bytes = brc_hash_object(BRC_HASH_XXH128, BRC_KIND_CHUNK, all.data, all.len);
    brc_buf_dispose(&all);
    for (size_t i = 0; i < noutcomes; i++)
        if (memcmp(&outcomes[i].bytes, &bytes, sizeof(bytes)) == 0)
            return outcomes[i];
    outcome o = judge_bytes(rc, says);
    o.bytes = bytes;
    if (noutcomes < sizeof(outcomes) / sizeof(outcomes[0]))
        outcomes[noutcomes++] = o;
    return o;
}

static void look_at_state(findings *f, size_t acks, int says)
{
    int rc = open_imagined(f->states % 2 == 0 ? BRC_OPEN_READONLY : 0);
    if (rc < 0 && rc != BRC_ENOTFOUND && rc != BRC_EFORMAT && says)
        fprintf(stderr, "%s\n", kit.err.message);
    outcome o = outcome_of_open(rc, says);
    int is_known = 0, is_right = 0;
    size_t last = acks + 1 < nacked ? acked[acks + 1] : nsaid - 1;
    f->states++;
    for (size_t i = 0; i < nsaid; i++) {
        is_known |= o.is_known[i];
        is_right |= o.is_known[i] && i >= acked[acks] && i <= last;
    }
    if (!is_known || !o.is_whole)
        f->damaged++;
    else if (!is_right)
        f->lost++;
    if (says && !(is_known && o.is_whole && is_right))
        fprintf(stderr, "%zu acknowledged: %s\n", acks,
                !is_known || !o.is_whole ? "damaged" : "lost");
}

/* Every state, or every step-th moment's. Equal states are looked at once. */
static findings lose_power(size_t step, unsigned variants, int says)
{
    findings f = { 0, 0, 0 };
    crash_disk d;
    brc_oid last[8];
    size_t last_acks = 0;
    memset(last, 0, sizeof(last));
    crash_disk_new(&d, &disk);
    do {
        if (d.at % step != 0 && d.at != disk.nlog)
            continue;
        for (unsigned variant = 0; variant < variants; variant++) {
            brc_oid id = crash_disk_imagine(&d, variant);
            int is_old = 0;
            for (unsigned i = 0; i < variants && d.acks == last_acks; i++)
                is_old |= memcmp(&last[i], &id, sizeof(id)) == 0;
            last[variant] = id;
            if (is_old)
                continue;
            crash_disk_put(&d, imagined);
            look_at_state(&f, d.acks, says);
        }
        last_acks = d.acks;
    } while (crash_disk_step(&d));
    crash_disk_free(&d);
    return f;
}

/* After a loss of power at any moment what was acknowledged is there. */
static void nothing_is_lost(size_t step, unsigned variants, size_t least_states)
{
    for (size_t i = 1; i < nsaid; i++) /* each step does something, so that a loss is seen */
        ck_assert_str_ne(said[i - 1], said[i]);
    findings f = lose_power(step, variants, 1);
    ck_assert_uint_gt(f.states, least_states);
    ck_assert_uint_eq(f.damaged, 0);
    ck_assert_uint_eq(f.lost, 0);
}

static size_t logged_of(int file)
{
    size_t n = 0;
    for (size_t i = 0; i < disk.nlog; i++)
        n += disk.log[i].file == file;
    return n;
}

static void (*const stories[])(void) = { small_story, draft_story, bulk_story, stack_story,
                                        spilled_story };
enum { STORIES = sizeof(stories) / sizeof(stories[0]) };

CASE("crash", .setup = crash_setup, .teardown = crash_teardown, .timeout = 60);

/* Each story in both journal modes; in WAL mode with going into it, and the log that is copied back
 * when the handle closes. */
LOOP(P1_acknowledged_work_survives_a_loss_of_power, 0, 2 * STORIES)
{
    in_wal_mode = _i / STORIES;
    stories[_i % STORIES]();
    ck_assert_uint_ge(nacked, 7);
    ck_assert_int_eq(logged_of(LOG_WAL) > 50, in_wal_mode);
    const size_t step = effort_step(3, 6);
    nothing_is_lost(step, 4, 100 / step);
}

/* A disk that does not sync what it says it has: this test must notice. */
LOOP(P2_a_lying_disk_is_seen, 1, 4)
{
    disk.ignores_sync = (unsigned)_i;
    small_story();
    findings f = lose_power(3 * effort_step(2, 4), 4, 0);
    ck_assert_uint_gt(f.lost + f.damaged, 0);
    if (_i == 1 << LOG_MAIN)
        ck_assert_uint_gt(f.damaged, 0);
}

TEST(P2_a_lying_disk_is_seen_in_wal_mode)
{
    in_wal_mode = 1;
    disk.ignores_sync = 1 << LOG_WAL;
    small_story();
    findings f = lose_power(3 * effort_step(2, 4), 4, 0);
    ck_assert_uint_gt(f.lost, 0);
}
