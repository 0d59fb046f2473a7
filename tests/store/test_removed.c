/* The table of removed bytes: what a row says in each state, for how long a backend holds a place,
 * what fsck finds wrong with a row and what a repair makes of it, and files that have what came
 * before the table. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kit/dirs_kit.h"
#include "../kit/own_rows.h"
#include "../kit/plugin_kit.h"
#include "../kit/suite.h"

TEST_SUITE(removed);

static dirs d;

static void removed_setup(void)
{
    dirs_start(&d);
    OK(&d.t, brc_config_set(d.t.repo, "window", "0", &d.t.err));
    brc_array_free(dirs_new(&d, "/none", NULL));
    scenario_commit(&d.t, "first");
}

static void removed_teardown(void)
{
    scenario_whole(&d.t);
    dirs_stop(&d);
}

static void collect(void)
{
    OK(&d.t, brc_gc(d.t.repo, NULL, NULL, &d.t.err));
}

static int files(void)
{
    return dirs_files(&d, "a.chunks", NULL);
}

static int ask(const char *sql)
{
    return (int)scenario_ask(&d.t, sql);
}

static int rows_in_state(int state)
{
    char sql[100];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM removed WHERE backend<>0 AND state=%d", state);
    return ask(sql);
}

static void make_garbage_in(const char *backend, int32_t first)
{
    brc_array *a = dirs_new(&d, "/g", backend);
    dirs_put(&d, a, first);
    brc_array_free(a);
    OK(&d.t, brc_session_discard(d.t.session, &d.t.err));
}

/* A transaction that is undone has put the chunks of an array that is there. */
static void make_strays_in(const char *backend)
{
    brc_array *a = dirs_new(&d, "/a", backend);
    scenario_commit(&d.t, "an array");
    OK(&d.t, brc_begin(d.t.repo, &d.t.err));
    dirs_put(&d, a, 1000);
    OK(&d.t, brc_end(d.t.repo, 0, &d.t.err));
    brc_array_free(a);
}

static void time_passes(void)
{
    scenario_sql_shared(&d.t, "UPDATE removed SET due_us=min(due_us, 1);"
                              "UPDATE removed SET checksum=" REMOVED_SUM);
}

CASE("removed", .setup = removed_setup, .teardown = removed_teardown, .timeout = 60);

/* ---- held places -------------------------------- */

static const char *const holding[] = {IN("held", "a.chunks"), IN("heldpack", "a.chunks")};

LOOP(a_backend_that_holds_places_drops_them_in_a_later_collection, 0, 2)
{
    make_garbage_in(holding[_i], 1000);
    const int before = files();
    collect();
    ck_assert_int_eq(files(), before);
    ck_assert_int_eq(rows_in_state(2), before);
    ck_assert_int_eq(ask("SELECT count(*) FROM removed WHERE backend<>0 AND"
                         " due_us-since_us<3500000000"), 0);
    scenario_whole(&d.t);
    collect(); /* the hour is not over */
    ck_assert_int_eq(files(), before);
    time_passes();
    collect();
    ck_assert_int_eq(files(), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM removed WHERE backend<>0"), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM place"), 0);
}

LOOP(strays_are_held_too, 0, 2)
{
    make_strays_in(holding[_i]);
    const int before = files();
    collect();
    ck_assert_int_eq(files(), before);
    ck_assert_int_eq(rows_in_state(3), before);
    collect(); /* a stray that has a row is not found twice */
    ck_assert_int_eq(rows_in_state(3), before);
    time_passes();
    collect();
    ck_assert_int_eq(files(), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM removed WHERE backend<>0"), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM place"), 0);
}

/* Under their canonical names the same bytes are in the same place again. */
TEST(a_held_place_that_is_named_again_stays)
{
    for (int strays = 0; strays < 2; strays++) {
        if (strays)
            make_strays_in(holding[0]);
        else
            make_garbage_in(holding[0], 1000);
        collect();
        ck_assert_int_eq(files(), CHUNKS);
        brc_array *a = dirs_new(&d, strays ? "/c" : "/b", holding[0]);
        dirs_put(&d, a, 1000);
        scenario_commit(&d.t, "again");
        time_passes();
        collect();
        ck_assert_int_eq(files(), CHUNKS);
        ck_assert_int_eq(ask("SELECT count(*) FROM removed WHERE backend<>0"), 0);
        dirs_check(&d, a, 1000);
        brc_array_free(a);
        OK(&d.t, brc_reset(d.t.repo, NULL, strays ? "HEAD~2" : "HEAD~1", BRC_RESET_HARD, NULL,
                           &d.t.err));
        time_passes();
        collect();
        time_passes();
        collect();
        ck_assert_int_eq(files(), 0);
    }
}

/* ---- every way out of a place -------------------------------- */

/* A repair that drops objects leaves places as a collection does. */
TEST(what_a_repair_drops_leaves_its_pack)
{
    brc_repair_report report = BRC_REPAIR_REPORT_INIT;
    brc_array *a = dirs_new(&d, "/a", IN("packs", "a.chunks"));
    dirs_put(&d, a, 1000);
    brc_array_free(a);
    scenario_commit(&d.t, "packed");
    ck_assert_int_gt(files(), 0);
    scenario_sql_shared(&d.t, "UPDATE object SET checksum=checksum+1 WHERE backend<>0");
    OK(&d.t, brc_repair(&report, d.t.repo, NULL, BRC_REPAIR_DROP, &d.t.err));
    ck_assert_uint_eq(report.dropped, CHUNKS);
    ck_assert_int_eq(ask("SELECT total(bytes) FROM removed WHERE backend<>0 AND place<>0") > 0, 1);
    OK(&d.t, brc_reset(d.t.repo, NULL, "HEAD~1", BRC_RESET_HARD, NULL, &d.t.err));
    collect();
    ck_assert_int_eq(files(), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM place"), 0);
}

/* ---- packs that are half free -------------------------------- */

#define REPACKS IN("repacks", "a.chunks")

/* An array in one pack. */
static brc_array *make_pack(const char *backend)
{
    brc_array *a = dirs_new(&d, "/p", backend);
    dirs_put(&d, a, 3);
    ck_assert_int_eq(files(), 1);
    return a;
}

/* Only the last chunks are left, as they were. */
static void leave_chunks(brc_array *a, int left)
{
    static const int32_t zero[N];
    const uint64_t gone = (uint64_t)(CHUNKS - left) * CHUNK;
    brc_sel sel = BRC_SEL_INIT;
    sel.ndim = 1;
    sel.count[0] = gone;
    sel.step[0] = 1;
    OK(&d.t, brc_array_write(a, &sel, zero, gone * sizeof(int32_t), &d.t.err));
}

static void check_chunks(brc_array *a, int left)
{
    int32_t all[N];
    OK(&d.t, brc_array_read(a, NULL, all, sizeof(all), &d.t.err));
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(all[i], i < N - left * CHUNK ? 0 : i + 3);
}

static int64_t pack_bytes(void)
{
    char path[512];
    struct stat st;
    ck_assert_int_eq(dirs_files(&d, "a.chunks", path), 1);
    ck_assert_int_eq(stat(path, &st), 0);
    return st.st_size;
}

TEST(a_pack_that_is_half_free_is_written_anew)
{
    brc_array *a = make_pack(REPACKS);
    const int64_t before = pack_bytes();
    for (int left = 6; left >= 0; left -= 2) {
        leave_chunks(a, left);
        collect();
        check_chunks(a, left);
        scenario_whole(&d.t);
        if (left == 6) { /* most of the pack is used: its row says how much is free */
            ck_assert_int_eq(pack_bytes(), before);
            ck_assert_int_eq(ask("SELECT bytes*100/total FROM removed WHERE backend<>0"), 25);
        } else {
            ck_assert_int_eq(files(), left > 0);
            ck_assert_int_eq(rows_in_state(1), 0);
            ck_assert_int_eq(ask("SELECT count(*) FROM place"), left > 0);
        }
        if (left == 4)
            ck_assert_int_eq(pack_bytes(), before / 2);
    }
    brc_array_free(a);
}

/* Without the flag a place stays as long as an object is in it. */
TEST(a_place_that_is_not_a_pack_is_left_as_it_is)
{
    brc_array *a = make_pack(IN("packs", "a.chunks"));
    const int64_t before = pack_bytes();
    leave_chunks(a, 1);
    collect();
    ck_assert_int_eq(pack_bytes(), before);
    check_chunks(a, 1);
    brc_array_free(a);
}

TEST(a_pack_with_a_damaged_object_stays)
{
    char path[512];
    brc_array *a = make_pack(REPACKS);
    leave_chunks(a, 2);
    scenario_commit(&d.t, "two");
    ck_assert_int_eq(dirs_files(&d, "a.chunks", path), 1);
    FILE *f = fopen(path, "r+b");
    ck_assert_ptr_nonnull(f);
    fseek(f, -1, SEEK_END);
    fputc(0x55, f);
    fclose(f);
    FAILS(&d.t, BRC_ECORRUPT, brc_gc(d.t.repo, NULL, NULL, &d.t.err));
    dirs_say(&d, "could not remove 1 item");
    ck_assert_int_eq(files(), 1);
    ck_assert_int_eq(dirs_get_chunk(&d, a, CHUNKS - 2), 3 + (CHUNKS - 2) * CHUNK);
    brc_array_free(a);
    OK(&d.t, brc_reset(d.t.repo, NULL, "HEAD~1", BRC_RESET_HARD, NULL, &d.t.err));
    collect();
    ck_assert_int_eq(files(), 0);
}

/* ---- killed while a pack is written anew ---------- */

static void (**plugin_hook(void))(const char *)
{
    static void *plugin;
    char path[4096];
    plugin_path(path, sizeof(path), "dirs");
    if (plugin == NULL)
        plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_ptr_nonnull(plugin);
    return (void (**)(const char *))dlsym(plugin, "dirs_meet");
}

static const char *fatal;

static void die_there(const char *what)
{
    if (strcmp(what, fatal) == 0)
        raise(SIGKILL);
}

static const char *const deaths[] = {"flush", "flushed", "drop", "dropped"};

LOOP(a_collection_that_is_killed_over_a_pack_loses_nothing, 0, 4)
{
    int status;
    brc_array *a = make_pack(IN("repackmeets", "a.chunks"));
    leave_chunks(a, 3);
    scenario_commit(&d.t, "three");
    brc_array_free(a);
    dirs_close(&d);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dirs_open(&d, 0);
        fatal = deaths[_i];
        *plugin_hook() = die_there;
        _exit(brc_gc(d.t.repo, NULL, NULL, &d.t.err) != BRC_OK);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    dirs_open(&d, 0);
    scenario_whole(&d.t);
    a = dirs_array(&d, d.t.session, "/p");
    check_chunks(a, 3);
    collect();
    check_chunks(a, 3);
    ck_assert_int_eq(files(), 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM removed WHERE backend<>0"), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM place"), 1);
    brc_array_free(a);
}

/* ---- checked and made anew -------------------------------- */

/* Shared rows of the file, each with free bytes, and a pack. */
static void make_rows(void)
{
    scenario_numbers(&d.t, "/here", 64, 1, 5000);
    scenario_numbers(&d.t, "/there", 64, 1, 9000);
    brc_array *a = dirs_new(&d, "/packed", IN("packs", "a.chunks"));
    dirs_put(&d, a, 3);
    brc_array_free(a);
    scenario_commit(&d.t, "both");
    scenario_sql(&d.t, OWN_ROWS_HALVED);
    ck_assert_int_gt(ask("SELECT count(*) FROM removed"), 100);
    scenario_whole(&d.t);
}

#define SEALED "; UPDATE removed SET checksum=" REMOVED_SUM
#define A_ROW " WHERE place=(SELECT min(place) FROM removed)"
#define OUTSIDE(columns) \
    "INSERT INTO removed SELECT " columns ", 0 FROM place LIMIT 1" SEALED

static const struct {
    const char *sql, *says;
} faulty[] = {
    {"UPDATE removed SET bytes=bytes+1" A_ROW, "the row about removed bytes of"},
    {"UPDATE removed SET bytes=total" A_ROW SEALED, "count as removed, but objects lie in them"},
    {"UPDATE removed SET bytes=bytes+1" A_ROW SEALED, "count as removed, but objects lie in them"},
    {"UPDATE removed SET bytes=0" A_ROW SEALED, "the row about removed bytes of"},
    {"UPDATE removed SET total=total+1" A_ROW SEALED, "the row about removed bytes of"},
    {"UPDATE removed SET state=2" A_ROW SEALED, "the row about removed bytes of"},
    {"UPDATE removed SET due_us=5" A_ROW SEALED, "the row about removed bytes of"},
    {"UPDATE removed SET since_us='x'" A_ROW SEALED, "the row about removed bytes of"},
    {"UPDATE removed SET name='x'" A_ROW SEALED, "the row about removed bytes of"},
    {"UPDATE removed SET place=900000" A_ROW SEALED, "the row about removed bytes of"},
    {OUTSIDE("backend, seq, '', -1, 0, 1, 1, 0"), "the row about removed bytes of"},
    {OUTSIDE("backend, seq, '', 1, 'x', 1, 1, 0"), "the row about removed bytes of"},
    {OUTSIDE("backend, seq, '', 1, 0, 4, 1, 0"), "the row about removed bytes of"},
    {OUTSIDE("backend, seq, 'x', 1, 0, 1, 1, 0"), "the row about removed bytes of"},
    {OUTSIDE("backend, 0, '', 1, 0, 1, 1, 0"), "the row about removed bytes of"},
    {OUTSIDE("backend, seq+1000, '', 1, 0, 1, 1, 0"), "has no row there"},
    {OUTSIDE("backend+7, seq, '', 1, 0, 1, 1, 0"), "has no row there"},
};
enum { FAULTY = sizeof(faulty) / sizeof(faulty[0]) };

LOOP(fsck_finds_each_wrong_row_and_a_repair_makes_the_table_anew, 0, FAULTY)
{
    brc_repair_report report = BRC_REPAIR_REPORT_INIT;
    make_rows();
    const int free_bytes = ask("SELECT sum(bytes) FROM removed WHERE backend=0");
    scenario_sql_shared(&d.t, faulty[_i].sql);
    const finding f = dirs_fsck(&d);
    ck_assert_int_gt(f.n, 0);
    ck_assert_msg(strstr(f.text, faulty[_i].says) != NULL, "%s", f.text);
    OK(&d.t, brc_repair(&report, d.t.repo, NULL, 0, &d.t.err));
    ck_assert_int_eq(dirs_fsck(&d).n, 0);
    ck_assert_int_eq(ask("SELECT sum(bytes) FROM removed WHERE backend=0"), free_bytes);
    collect();
    ck_assert_int_eq(ask("SELECT count(*) FROM removed"), 0);
    ck_assert_int_eq(ask("SELECT sum(length(data)) FROM blob"),
                     ask("SELECT sum(stored) FROM object WHERE backend=0"));
    for (uint64_t i = 0; i < 64; i++)
        ck_assert_int_eq(scenario_number(&d.t, d.t.session, "/here", i), 5000 + (int32_t)i);
    brc_array *a = dirs_array(&d, d.t.session, "/packed");
    dirs_check(&d, a, 3);
    brc_array_free(a);
}

/* A repair of a sound file leaves the table as it is. */
TEST(a_repair_of_a_sound_file_leaves_the_table)
{
    brc_buf before = BRC_BUF_INIT, after = BRC_BUF_INIT;
    make_rows();
    scenario_rows(&d.t, "SELECT * FROM removed", &before);
    OK(&d.t, brc_repair(NULL, d.t.repo, NULL, 0, &d.t.err));
    scenario_rows(&d.t, "SELECT * FROM removed", &after);
    ck_assert_str_eq((const char *)before.data, (const char *)after.data);
    brc_buf_dispose(&before);
    brc_buf_dispose(&after);
}

/* ---- what came before the table -------------------------------- */

/* The file as an earlier build would have made it. */
static void make_old(void)
{
    scenario_sql_shared(
        &d.t,
        "INSERT INTO hole SELECT place, bytes, row_sum('hole', place, bytes) FROM removed"
        " WHERE backend=0;"
        "UPDATE place SET facts='{\"left\":true}' WHERE seq IN (SELECT place FROM removed WHERE"
        " backend<>0);"
        "INSERT INTO place SELECT 7000+row_number() OVER (), backend, name, NULL,"
        " '{\"left\":true,\"canonical\":true}', 0 FROM removed WHERE name<>'';"
        "UPDATE place SET checksum=row_sum('place', seq, backend, name, size, facts);"
        "DROP TABLE removed");
}

/* Free bytes in the file, a pack and names in backends that could not drop them. */
static void make_old_file(void)
{
    make_rows();
    make_garbage_in(IN("held", "b.chunks"), 1000);
    make_garbage_in(IN("heldpack", "b.chunks"), 3000);
    OK(&d.t, brc_gc(d.t.repo, NULL, NULL, &d.t.err));
    ck_assert_int_gt(ask("SELECT count(*) FROM removed WHERE backend<>0 AND place<>0"), 0);
    ck_assert_int_gt(ask("SELECT count(*) FROM removed WHERE name<>''"), 0);
    scenario_sql(&d.t, "CREATE TEMP TABLE kept AS SELECT * FROM removed WHERE backend<>0;"
                       OWN_ROWS_HALVED ";"
                       "INSERT INTO removed SELECT * FROM kept");
    dirs_close(&d);
    make_old();
}

static void check_old_is_new(int free_bytes)
{
    ck_assert_int_eq(ask("SELECT count(*) FROM sqlite_schema WHERE name='hole'"), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM place WHERE facts IS NOT NULL"), 0);
    ck_assert_int_eq(ask("SELECT sum(bytes) FROM removed WHERE backend=0"), free_bytes);
    ck_assert_int_eq(ask("SELECT count(*) FROM removed WHERE name<>''"), CHUNKS);
    ck_assert_int_gt(ask("SELECT count(*) FROM removed WHERE backend<>0 AND place<>0"), 0);
    scenario_whole(&d.t);
}

TEST(a_file_of_an_earlier_build_is_taken_over_when_it_is_opened)
{
    make_old_file();
    const int free_bytes = ask("SELECT sum(bytes) FROM hole");
    ck_assert_int_gt(free_bytes, 0);
    dirs_open(&d, 0);
    check_old_is_new(free_bytes);
    time_passes();
    collect();
    time_passes();
    collect();
    ck_assert_int_eq(dirs_files(&d, "b.chunks", NULL), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM removed"), 0);
    ck_assert_int_eq(ask("SELECT sum(length(data)) FROM blob"),
                     ask("SELECT sum(stored) FROM object WHERE backend=0"));
}

/* A file of an earlier build is read and never changed; fsck says how to bring it up to date. */
TEST(a_file_of_an_earlier_build_is_read_as_it_is)
{
    make_old_file();
    dirs_open(&d, BRC_OPEN_READONLY);
    brc_session *s = scenario_session(&d.t, d.t.repo, "main", BRC_SESSION_AT);
    ck_assert_int_eq(scenario_number(&d.t, s, "/here", 7), 5007);
    brc_session_free(s);
    FAILS(&d.t, BRC_EFORMAT, brc_fsck(d.t.repo, 0, NULL, NULL, NULL, NULL, &d.t.err));
    dirs_say(&d, "'breccia gc'");
    ck_assert_int_gt(ask("SELECT count(*) FROM hole"), 0);
    dirs_close(&d);
    dirs_open(&d, 0);
}

/* SQLite's count of transactions, in the header of the file. */
static uint32_t counter_of(const char *file)
{
    uint8_t bytes[28];
    FILE *f = fopen(file, "rb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fread(bytes, 1, sizeof(bytes), f), sizeof(bytes));
    fclose(f);
    return (uint32_t)bytes[24] << 24 | (uint32_t)bytes[25] << 16 | (uint32_t)bytes[26] << 8 |
           bytes[27];
}

/* A copy as an earlier build would have left it: it says how many transactions it has had. */
static void make_old_copy(const char *file)
{
    char sql[400];
    scenario copy = d.t;
    snprintf(copy.file, sizeof(copy.file), "%s", file);
    scenario_sql_shared(&copy, "BEGIN; INSERT INTO hole SELECT place, bytes, row_sum('hole', place,"
                               " bytes) FROM removed; DROP TABLE removed; COMMIT");
    snprintf(sql, sizeof(sql),
             "UPDATE meta SET value=n, checksum=row_sum('meta', key, n) FROM (SELECT"
             " '{\"counter\":%u' || substr(value, instr(value, ',')) AS n FROM meta WHERE"
             " key='backup') WHERE key='backup'",
             counter_of(file) + 1);
    scenario_sql_shared(&copy, sql);
}

TEST(a_backup_of_an_earlier_build_is_gone_on_with)
{
    brc_backup_report report = BRC_BACKUP_REPORT_INIT;
    char file[96];
    ck_assert_int_lt(snprintf(file, sizeof(file), "%s/copy.brc", d.t.dir), (int)sizeof(file));
    scenario_numbers(&d.t, "/here", 64, 1, 5000);
    scenario_commit(&d.t, "some");
    scenario_sql(&d.t, OWN_ROWS_HALVED);
    OK(&d.t, brc_backup(NULL, d.t.repo, file, &d.t.err));
    make_old_copy(file);
    scenario_numbers(&d.t, "/more", 8, 1, 1);
    scenario_commit(&d.t, "more");
    OK(&d.t, brc_backup(&report, d.t.repo, file, &d.t.err));
    ck_assert_uint_eq(report.flags, BRC_BACKUP_INCREMENTAL);
    scenario copy = d.t;
    snprintf(copy.file, sizeof(copy.file), "%s", file);
    ck_assert_int_eq((int)scenario_ask(&copy, "SELECT sum(bytes) FROM removed"),
                     ask("SELECT sum(bytes) FROM removed"));
    ck_assert_int_eq((int)scenario_ask(&copy, "SELECT count(*) FROM sqlite_schema WHERE"
                                              " name='hole'"), 0);
}
