/*
 * Power is lost at every moment: what was acknowledged is there, what was under way is
 * done or not done, and the file is whole. And where the disk lies about what it has
 * written, this test sees it.
 */
#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/store/row_sum.h"
#include "../kit/crash_sim.h"
#include "../kit/fault_vfs.h"
#include "../kit/file_digest.h"
#include "../kit/store_kit.h"

Suite *crash_suite(void);

static store_kit kit;
static fault_vfs disk;
static char imagined[128];

#define OK(call) KIT_OK(&kit, call)
#define MOST_STEPS 24

/* What the file said after each step; before the first there is none. */
static char *said[MOST_STEPS + 2];
static size_t nsaid;
static int in_wal_mode;

static void crash_setup(void)
{
    store_kit_folder(&kit);
    snprintf(imagined, sizeof(imagined), "%s/imagined.brc", kit.dir);
    fault_vfs_register(&disk);
    disk.logged = kit.file;
    nsaid = 0;
    in_wal_mode = 0;
    said[nsaid++] = strdup("");
}

static void crash_teardown(void)
{
    fault_vfs_unregister(&disk);
    while (nsaid > 0)
        free(said[--nsaid]);
    store_kit_stop(&kit);
}

/* A call has returned: from here on its work must be there. */
static void acknowledged(void)
{
    fault_vfs_mark(&disk);
    ck_assert_uint_lt(nsaid, MOST_STEPS);
    said[nsaid++] = file_digest(kit.file);
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

static void write_noise(brc_array *a, size_t len, uint64_t seed)
{
    uint8_t *data = malloc(len);
    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)store_kit_random(&seed);
    OK(brc_array_write(a, NULL, data, len, &kit.err));
    free(data);
    acknowledged();
}

static brc_array *new_array(brc_session *s, const char *path, uint64_t n, uint64_t chunk)
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
    brc_array *a = new_array(s, "/a", 4000, 1000);
    OK(brc_attrs_set(s, "/a", "k", "1", &kit.err));
    OK(brc_end(repo, BRC_END_KEEP, &kit.err));
    acknowledged();
    write_noise(a, 4000, 1);
    commit(s, "one");
    OK(brc_branch_create(repo, "side", NULL, &kit.err));
    acknowledged();
    write_noise(a, 4000, 2);
    commit(s, "two");
    OK(brc_tag_create(repo, "v1", NULL, NULL, &kit.err));
    acknowledged();
    OK(brc_attrs_set(s, "/a", "k", "2", &kit.err));
    acknowledged();
    OK(brc_switch(repo, "side", BRC_SWITCH_DISCARD, &kit.err));
    acknowledged();
    brc_array_free(a);
    brc_session_free(s);
    brc_free(repo);
    open_repo(&repo, &s, 0); /* on the other branch */
    OK(brc_node_move(s, "/a", "/g/b", &kit.err));
    acknowledged();
    commit(s, "three");
    OK(brc_reset(repo, "v1", BRC_RESET_HARD, NULL, &kit.err));
    acknowledged();
    brc_session_free(s);
    brc_free(repo);
}

/* ---- drafts ------------------------------------------------------------------ */

/* As if the processes that own private drafts were dead. */
static void orphan_drafts(void)
{
    static const char sql[] =
        "BEGIN IMMEDIATE; UPDATE draft SET owner='{\"pid\":1}' WHERE owner IS NOT NULL;"
        "UPDATE draft SET checksum=row_sum('draft', id, kind, state, branch, base, tip, other,"
        " plan, owner, parent, time_us, changes); COMMIT";
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
    write_noise(a, 4000, seed);
    brc_array_free(a);
}

/* A private session leaves this; the number of its draft. */
static int64_t leave_draft(breccia *repo, const char *path, uint64_t seed)
{
    brc_session *s;
    brc_iter *it;
    const brc_draft *draft;
    int64_t id = 0;
    OK(brc_session_open(&s, repo, NULL, BRC_SESSION_PRIVATE, &kit.err));
    write_in(s, path, seed);
    brc_session_free(s);
    orphan_drafts();
    OK(brc_drafts(&it, repo, &kit.err));
    while (brc_drafts_next(it, &draft, &kit.err) > 0)
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
    brc_array_free(new_array(s, "/a", 4000, 1000));
    brc_array_free(new_array(s, "/b", 4000, 1000));
    OK(brc_end(repo, BRC_END_KEEP, &kit.err));
    acknowledged();
    commit(s, "one");
    OK(brc_session_open(&mine, repo, NULL, BRC_SESSION_PRIVATE, &kit.err));
    write_in(mine, "/a", 1);
    OK(brc_node_move(mine, "/a", "/g/c", &kit.err));
    acknowledged();
    commit(mine, "two");
    write_in(mine, "/g/c", 2);
    write_in(s, "/b", 3);
    OK(brc_session_hand_over(mine, s, &kit.err)); /* over what is there */
    acknowledged();
    commit(s, "three");
    int64_t left = leave_draft(repo, "/g/c", 4);
    OK(brc_draft_adopt(repo, left, &kit.err));
    acknowledged();
    left = leave_draft(repo, "/b", 5);
    OK(brc_draft_adopt(repo, left, &kit.err)); /* over what is there */
    acknowledged();
    left = leave_draft(repo, "/b", 6);
    OK(brc_draft_drop(repo, left, &kit.err));
    acknowledged();
    commit(s, "four");
    brc_session_free(mine);
    brc_session_free(s);
    brc_free(repo);
}

/* More than SQLite's page cache holds, so that pages are written before the commit. */
static void big_story(void)
{
    breccia *repo;
    brc_session *s;
    open_repo(&repo, &s, BRC_OPEN_CREATE);
    OK(brc_begin(repo, &kit.err));
    brc_array *a = new_array(s, "/a", 6000000, 250000);
    OK(brc_end(repo, BRC_END_KEEP, &kit.err));
    acknowledged();
    write_noise(a, 6000000, 1);
    commit(s, "one");
    write_noise(a, 6000000, 2);
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

static void look_at_state(findings *f, size_t acks, int says)
{
    int rc = open_imagined(f->states % 2 == 0 ? BRC_OPEN_READONLY : 0);
    int is_no_repository = rc == BRC_ENOTFOUND || rc == BRC_EFORMAT;
    if (rc < 0 && !is_no_repository && says)
        fprintf(stderr, "%s\n", kit.err.message);
    char *now = file_digest(imagined);
    int is_known = 0, is_right;
    f->states++;
    for (size_t i = 0; i < nsaid; i++)
        is_known |= strcmp(now, said[i]) == 0;
    is_right =
        strcmp(now, said[acks]) == 0 || (acks + 1 < nsaid && strcmp(now, said[acks + 1]) == 0);
    int is_whole = *now == '\0' ? is_no_repository
                                : rc == BRC_OK && (!says || file_is_whole(imagined));
    if (!is_known || !is_whole)
        f->damaged++;
    else if (!is_right)
        f->lost++;
    if (says && !(is_known && is_whole && is_right))
        fprintf(stderr, "%zu acknowledged: %s\n", acks,
                !is_known || !is_whole ? "damaged" : "lost");
    free(now);
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
            brc_oid id = crash_disk_write(&d, variant, imagined);
            int is_old = 0;
            for (unsigned i = 0; i < variants && d.acks == last_acks; i++)
                is_old |= memcmp(&last[i], &id, sizeof(id)) == 0;
            last[variant] = id;
            if (!is_old)
                look_at_state(&f, d.acks, says);
        }
        last_acks = d.acks;
    } while (crash_disk_step(&d));
    crash_disk_free(&d);
    return f;
}

START_TEST(P1_acknowledged_work_survives_a_loss_of_power)
{
    small_story();
    ck_assert_uint_ge(nsaid, 14);
    for (size_t i = 1; i < nsaid; i++) /* each step does something, so that a loss is seen */
        ck_assert_str_ne(said[i - 1], said[i]);
    findings f = lose_power(1, 4, 1);
    ck_assert_uint_gt(f.states, 300);
    ck_assert_uint_eq(f.damaged, 0);
    ck_assert_uint_eq(f.lost, 0);
}
END_TEST

START_TEST(P1_and_of_drafts)
{
    draft_story();
    for (size_t i = 1; i < nsaid; i++)
        ck_assert_str_ne(said[i - 1], said[i]);
    findings f = lose_power(1, 4, 1);
    ck_assert_uint_gt(f.states, 300);
    ck_assert_uint_eq(f.damaged, 0);
    ck_assert_uint_eq(f.lost, 0);
}
END_TEST

/* Going into WAL mode, commits, and the log that is copied back when the handle closes. */
START_TEST(P1_in_wal_mode)
{
    in_wal_mode = 1;
    small_story();
    size_t logged = 0;
    for (size_t i = 0; i < disk.nlog; i++)
        logged += disk.log[i].file == LOG_WAL;
    ck_assert_uint_gt(logged, 50);
    findings f = lose_power(1, 4, 1);
    ck_assert_uint_gt(f.states, 300);
    ck_assert_uint_eq(f.damaged, 0);
    ck_assert_uint_eq(f.lost, 0);
}
END_TEST

START_TEST(P2_a_lying_disk_is_seen_in_wal_mode)
{
    in_wal_mode = 1;
    disk.ignores_sync = 1 << LOG_WAL;
    small_story();
    findings f = lose_power(3, 4, 0);
    ck_assert_uint_gt(f.lost, 0);
}
END_TEST

START_TEST(P1_and_in_the_middle_of_a_big_transaction)
{
    big_story();
    findings f = lose_power(disk.nlog / 25, 3, 1);
    ck_assert_uint_gt(f.states, 40);
    ck_assert_uint_eq(f.damaged, 0);
    ck_assert_uint_eq(f.lost, 0);
}
END_TEST

/* A disk that does not sync what it says it has: this test must notice. */
START_TEST(P2_a_lying_disk_is_seen)
{
    disk.ignores_sync = (unsigned)_i;
    small_story();
    findings f = lose_power(3, 4, 0);
    ck_assert_uint_gt(f.lost + f.damaged, 0);
    if (_i == 1 << LOG_MAIN)
        ck_assert_uint_gt(f.damaged, 0);
}
END_TEST

Suite *crash_suite(void)
{
    Suite *s = suite_create("crash");
    TCase *tc = tcase_create("crash");
    tcase_add_checked_fixture(tc, crash_setup, crash_teardown);
    tcase_add_test(tc, P1_acknowledged_work_survives_a_loss_of_power);
    tcase_add_test(tc, P1_in_wal_mode);
    tcase_add_test(tc, P2_a_lying_disk_is_seen_in_wal_mode);
    tcase_add_test(tc, P1_and_of_drafts);
    tcase_add_test(tc, P1_and_in_the_middle_of_a_big_transaction);
    tcase_add_loop_test(tc, P2_a_lying_disk_is_seen, 1, 4);
    suite_add_tcase(s, tc);
    return s;
}
