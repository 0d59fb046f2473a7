/* Opening: what is not a repository, or not quite ours, is refused with a sentence that
 * says so, and is left as it was. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../kit/seal.h"
#include "../kit/store_kit.h"
#include "reserved.sql.h"
#include "../kit/suite.h"

TEST_SUITE(store_open);

static store_kit kit;

static void folder_setup(void)
{
    store_kit_folder(&kit);
}

static void open_teardown(void)
{
    store_kit_stop(&kit);
}

/* A new repository, closed, with one document and a branch. */
static void made_setup(void)
{
    brc_oid id;
    store_kit_start(&kit);
    KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
    KIT_OK(&kit, brc_store_put(kit.store, BRC_KIND_DOCUMENT, "{}", 2, &id, &kit.err));
    KIT_OK(&kit, brc_ref_put(kit.store, "heads/side", NULL, NULL, "branch", 0, NULL, 5, &kit.err));
    KIT_OK(&kit, brc_store_end(kit.store, 1, &kit.err));
    store_kit_close(&kit);
}

/* Refused both to read and to write, with `words` and the file's name in it. */
static void refused(int code, const char *words)
{
    brc_buf before = BRC_BUF_INIT, after;
    int is_file = brc_file_kind(kit.file) == 2;
    if (is_file)
        before = store_kit_bytes(&kit);
    KIT_FAILS(&kit, code, words, store_kit_try(&kit, 0, -1));
    ck_assert_ptr_null(kit.store);
    ck_assert_ptr_nonnull(strstr(kit.err.message, kit.file));
    KIT_FAILS(&kit, code, words, store_kit_try(&kit, BRC_OPEN_READONLY, -1));
    ck_assert_ptr_null(kit.store);
    if (!is_file)
        return;
    after = store_kit_bytes(&kit);
    ck_assert_uint_eq(before.len, after.len);
    ck_assert(before.len == 0 || memcmp(before.data, after.data, before.len) == 0);
    brc_buf_dispose(&before);
    brc_buf_dispose(&after);
}

static void write_file(const char *text)
{
    KIT_OK(&kit, brc_file_write(kit.file, text, strlen(text), &kit.err));
}

/* ---- while it is made --------------------------------------------------------------- */

/* Makes it, or opens what another makes. 0: it made it; 1: it was there; else it failed. */
static int make_or_open(void)
{
    int rc = store_kit_try(&kit, BRC_OPEN_CREATE, 0);
    if (rc == BRC_EEXISTS && store_kit_try(&kit, 0, 0) == BRC_OK)
        return 1;
    if (rc != BRC_OK || kit.store == NULL)
        fprintf(stderr, "%s\n", kit.err.message);
    return rc == BRC_OK ? 0 : 2;
}

CASE("strange", .setup = folder_setup, .teardown = open_teardown);

TEST(of_those_that_make_it_at_once_one_does_and_all_have_it)
{
    enum { ROUNDS = 15, PROCESSES = 6 };
    for (int round = 0; round < ROUNDS; round++) {
        pid_t children[PROCESSES];
        int go[2], made = 0;
        char byte;
        ck_assert_int_eq(pipe(go), 0);
        for (int i = 0; i < PROCESSES; i++) {
            children[i] = fork();
            ck_assert_int_ge(children[i], 0);
            if (children[i] == 0) {
                close(go[1]);
                _exit(read(go[0], &byte, 1) == 0 ? make_or_open() : 3);
            }
        }
        close(go[0]);
        close(go[1]); /* all at once */
        for (int i = 0; i < PROCESSES; i++) {
            int status = -1;
            ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
            ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) < 2, "status %d", status);
            made += WEXITSTATUS(status) == 0;
        }
        ck_assert_int_eq(made, 1);
        ck_assert_int_eq(unlink(kit.file), 0);
    }
}

TEST(an_empty_file_that_is_locked_is_waited_for)
{
    char whole[sizeof(kit.file) + 8];
    sqlite3 *db;
    snprintf(whole, sizeof(whole), "%s.whole", kit.file);
    KIT_OK(&kit, store_kit_try(&kit, BRC_OPEN_CREATE, 0));
    store_kit_close(&kit);
    ck_assert_int_eq(rename(kit.file, whole), 0);
    write_file("");
    ck_assert_int_eq(sqlite3_open(kit.file, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(store_kit_try(&kit, 0, 0) == BRC_OK ? 0 : 1);
    usleep(300000); /* longer than for one that nobody has locked */
    ck_assert_int_eq(rename(whole, kit.file), 0);
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

/* ---- other things than repositories ------------------------------------------------ */

TEST(nothing_there_is_not_found)
{
    refused(BRC_ENOTFOUND, "does not exist: 'breccia init' makes a repository");
    ck_assert_int_eq(brc_file_kind(kit.file), 0); /* and none was made */
}

CASE("made", .setup = made_setup, .teardown = open_teardown);

TEST(too_many_open_files_are_named)
{
    struct rlimit was, none;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = was;
    none.rlim_cur = 3;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    const int rc = store_kit_try(&kit, 0, 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
    ck_assert_int_eq(rc, BRC_EIO);
    ck_assert_ptr_nonnull(strstr(kit.err.message, "Too many open files"));
}

CASE("strange");

TEST(a_text_file_is_no_repository)
{
    write_file("Dear reader, this is a letter and not a database.\n");
    refused(BRC_EFORMAT, "is not a breccia repository");
}

TEST(a_long_text_file_is_no_repository)
{
    brc_buf text = BRC_BUF_INIT;
    while (text.len < 100000)
        KIT_OK(&kit, brc_buf_text(&text, "SQLite format 4\n", &kit.err));
    KIT_OK(&kit, brc_file_write(kit.file, text.data, text.len, &kit.err));
    brc_buf_dispose(&text);
    refused(BRC_EFORMAT, "is not a breccia repository");
}

TEST(an_empty_file_is_no_repository)
{
    write_file("");
    refused(BRC_EFORMAT, "is not a breccia repository");
    KIT_FAILS(&kit, BRC_EEXISTS, "exists already", store_kit_try(&kit, BRC_OPEN_CREATE, 0));
    brc_buf bytes = store_kit_bytes(&kit);
    ck_assert_uint_eq(bytes.len, 0);
    brc_buf_dispose(&bytes);
}

TEST(another_program_s_database_is_no_repository)
{
    store_kit_sql(&kit, "CREATE TABLE t(a); INSERT INTO t VALUES (1)");
    refused(BRC_EFORMAT, "is not a breccia repository");
    store_kit_sql(&kit, "PRAGMA application_id=1196444487"); /* GeoPackage */
    refused(BRC_EFORMAT, "is not a breccia repository");
    store_kit_sql(&kit, "PRAGMA application_id=0x62726331; PRAGMA user_version=1");
    refused(BRC_EFORMAT, "has format 1, which was given up");
    store_kit_sql(&kit, "PRAGMA user_version=2");
    refused(BRC_EFORMAT, "schema differs");
}

TEST(a_directory_and_a_device_are_no_repository)
{
    KIT_OK(&kit, brc_dir_make(kit.file, &kit.err));
    refused(BRC_EFORMAT, "is not a regular file");
    KIT_FAILS(&kit, BRC_EEXISTS, "exists already", store_kit_try(&kit, BRC_OPEN_CREATE, 0));
    ck_assert_int_eq(rmdir(kit.file), 0);
    ck_assert_int_eq(symlink("/dev/zero", kit.file), 0);
    refused(BRC_EFORMAT, "is not a regular file");
    ck_assert_int_eq(unlink(kit.file), 0);
    ck_assert_int_eq(mkfifo(kit.file, 0600), 0); /* opening it would wait for ever */
    refused(BRC_EFORMAT, "is not a regular file");
}

TEST(a_folder_that_is_not_there_is_not_made)
{
    size_t len = strlen(kit.file);
    snprintf(kit.file + len, sizeof(kit.file) - len, "/no/x.brc");
    KIT_FAILS(&kit, BRC_ENOTFOUND, "no/x.brc", store_kit_try(&kit, BRC_OPEN_CREATE, 0));
}

TEST(an_unknown_hash_makes_no_file)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.flags = BRC_OPEN_CREATE;
    opts.hash = "md5";
    KIT_FAILS(&kit, BRC_EUNSUPPORTED, "xxh128",
              brc_store_open(&kit.store, kit.file, &opts, kit.reg, 1, &kit.err));
    ck_assert_ptr_null(kit.store);
    ck_assert_int_eq(brc_file_kind(kit.file), 0);
}

/* ---- a new file -------------------------------------------------------------- */

TEST(a_new_file_is_as_the_schema_says)
{
    const char *branch;
    KIT_OK(&kit, store_kit_try(&kit, BRC_OPEN_CREATE, 0));
    KIT_OK(&kit, brc_head_get(kit.store, &branch, &kit.err));
    ck_assert_str_eq(branch, "main");
    ck_assert_int_eq(brc_store_readonly(kit.store), 0);
    ck_assert_uint_eq(brc_store_id_len(kit.store), 16);
    store_kit_close(&kit);
    KIT_FAILS(&kit, BRC_EEXISTS, "exists already", store_kit_try(&kit, BRC_OPEN_CREATE, 0));
    ck_assert_int_eq(store_kit_ask(&kit, "PRAGMA application_id"), 0x62726331);
    ck_assert_int_eq(store_kit_ask(&kit, "PRAGMA user_version"), 2);
    ck_assert_int_eq(store_kit_ask(&kit, "PRAGMA page_size"), 16384);
    ck_assert_int_eq(store_kit_ask(&kit, "PRAGMA auto_vacuum"), 2);
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT length(value) FROM meta WHERE key='secret'"), 192);
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM ref WHERE target IS NULL"), 1);
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM object"), 0);
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM log"), 0);
}

TEST(two_files_have_two_secrets)
{
    uint8_t first[BRC_SECRET_LEN];
    KIT_OK(&kit, store_kit_try(&kit, BRC_OPEN_CREATE, 0));
    memcpy(first, brc_store_secret(kit.store), sizeof(first));
    store_kit_reopen(&kit);
    ck_assert_mem_eq(first, brc_store_secret(kit.store), sizeof(first));
    store_kit_close(&kit);
    ck_assert_int_eq(unlink(kit.file), 0);
    KIT_OK(&kit, store_kit_try(&kit, BRC_OPEN_CREATE, 0));
    ck_assert(memcmp(first, brc_store_secret(kit.store), sizeof(first)) != 0);
}

CASE("made");

/* `cp other.brc FILE` while FILE is open: what its secret is used for would be damage there. */
TEST(a_repository_that_was_copied_over_it_is_not_written)
{
    brc_buf other = store_kit_bytes(&kit);
    ck_assert_int_eq(unlink(kit.file), 0);
    KIT_OK(&kit, store_kit_try(&kit, BRC_OPEN_CREATE, 0));
    FILE *f = fopen(kit.file, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(other.data, 1, other.len, f), other.len);
    ck_assert_int_eq(fclose(f), 0);
    KIT_FAILS(&kit, BRC_ESTALE, "another repository", brc_store_begin(kit.store, &kit.err));
    KIT_OK(&kit, brc_store_begin_read(kit.store, &kit.err));
    brc_store_end_read(kit.store);
    ck_assert(store_kit_same(kit.file, &other));
    store_kit_reopen(&kit);
    KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
    KIT_OK(&kit, brc_store_end(kit.store, 1, &kit.err));
    brc_buf_dispose(&other);
}

TEST(what_sqlite_s_own_upkeep_does_is_no_change)
{
    store_kit_sql(&kit, "VACUUM; REINDEX; PRAGMA incremental_vacuum");
    store_kit_open(&kit);
    ck_assert_int_eq(brc_store_readonly(kit.store), 0);
}

static int note_line(void *ctx, const char *line)
{
    snprintf(ctx, 200, "%s", line);
    return 0;
}

/* A new file has none of them; one of a later version may have any, in any order. */
TEST(a_file_may_have_reserved_tables)
{
    char line[200] = "";
    ck_assert_int_eq(store_kit_ask(&kit,
                                   "SELECT count(*) FROM sqlite_schema WHERE name IN ('delta',"
                                   "'delta_base','backend','place','boundary','draft_key',"
                                   "'draft_move','conflict','pin','gc','gc_kept','encoded',"
                                   "'storage','uncommitted')"),
                     0);
    ck_assert_int_eq(store_kit_ask(&kit, "PRAGMA page_count"), 19);
    store_kit_sql(&kit, brc_sql_reserved);
    store_kit_sql(&kit, "DROP TABLE boundary; DROP TABLE gc; VACUUM");
    store_kit_open(&kit);
    KIT_OK(&kit, brc_store_check_rows(kit.store, note_line, line, &kit.err));
    ck_assert_str_eq(line, "");
    store_kit_close(&kit);
    store_kit_sql(&kit, "INSERT INTO delta(id, base) VALUES (x'00', x'01')");
    store_kit_open(&kit);
    KIT_OK(&kit, brc_store_check_rows(kit.store, note_line, line, &kit.err));
    ck_assert_str_eq(line, "object 00 is a difference from object 01, which is missing");
    store_kit_close(&kit);
    store_kit_sql(&kit, "DROP TABLE gc_kept; CREATE TABLE gc_kept(run INTEGER, id BLOB)");
    refused(BRC_EFORMAT, "differs from that of this format at 'gc_kept'");
}

/* ---- changed by a stranger --------------------------------------------------- */

LOOP(what_was_planted_is_refused, 0, 19)
{
    static const struct {
        const char *sql, *name;
    } plants[] = { /* the first row that is not as it should be is named */
        { "CREATE VIEW extra AS SELECT 1", "extra" },
        { "CREATE TABLE extra(a)", "extra" },
        { "CREATE TABLE extra(a, b AS (a + 1))", "extra" },
        { "CREATE INDEX extra ON oplog(time_us)", "extra" },
        { "CREATE UNIQUE INDEX extra ON oplog(lower(name))", "extra" },
        { "CREATE TRIGGER extra AFTER INSERT ON oplog BEGIN DELETE FROM ref; END", "extra" },
        { "CREATE VIRTUAL TABLE extra USING dbstat(main)", "extra" },
        { "DROP VIEW log; CREATE VIEW log AS SELECT 1 AS id", "log" },
        { "DROP VIEW refs", "its end" },
        { "DROP TABLE draft_chunk; CREATE VIEW draft_chunk AS SELECT 1 AS node, 2 AS key, 3 AS id",
          "draft_chunk" },
        { "DROP INDEX draft_shared", "its end" },
        { "DROP INDEX draft_shared; CREATE INDEX draft_shared ON draft(branch)", "draft_shared" },
        { "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql='CREATE TABLE"
          " sqlite_sequence(name,seq,more)' WHERE name='sqlite_sequence'", "sqlite_sequence" },
        { "ALTER TABLE draft ADD COLUMN more", "draft" },
        { "ALTER TABLE draft RENAME TO draught", "draught" },
        { "ANALYZE", "sqlite_stat1" },
        { "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql=replace(sql, 'one row a commit',"
          " 'one row a comment') WHERE name='commit_info'", "commit_info" },
        { "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql=sql||' ' WHERE name='refs'",
          "refs" },
        { "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql=NULL WHERE name='refs'", "" },
    };
    store_kit_sql(&kit, plants[_i].sql);
    if (plants[_i].name[0] == '\0') { /* SQLite itself does not take that */
        ck_assert_int_lt(store_kit_try(&kit, 0, -1), 0);
        ck_assert(kit.err.code == BRC_ECORRUPT || kit.err.code == BRC_EFORMAT);
        return;
    }
    refused(BRC_EFORMAT, "schema differs");
    char quoted[64];
    snprintf(quoted, sizeof(quoted), "'%s'", plants[_i].name);
    ck_assert_msg(strstr(kit.err.message, quoted) != NULL, "%s", kit.err.message);
}

TEST(a_newer_format_and_unknown_features_are_refused)
{
    store_kit_sql(&kit, "PRAGMA user_version=3");
    refused(BRC_EFORMAT, "format 3, and this breccia reads format 2: use a newer one");
    store_kit_sql(&kit, "PRAGMA user_version=2;"
                        "UPDATE meta SET value='time-travel' WHERE key='must-understand';"
                        SEAL_META);
    refused(BRC_EFORMAT, "features that this breccia lacks (time-travel)");
    store_kit_sql(&kit, "UPDATE meta SET value='' WHERE key='must-understand';"
                        "UPDATE meta SET value='time-travel' WHERE key='may-ignore';" SEAL_META);
    store_kit_open(&kit); /* these it may ignore */
}

LOOP(a_missing_or_wrong_setting_is_named, 0, 16)
{
    static const struct {
        const char *sql, *words;
        int code;
    } changes[] = {
        { "DELETE FROM meta WHERE key='hash'", "'hash' is missing", BRC_ECORRUPT },
        { "DELETE FROM meta WHERE key='secret'", "'secret' is missing", BRC_ECORRUPT },
        { "DELETE FROM meta WHERE key='must-understand'", "'must-understand'", BRC_ECORRUPT },
        { "UPDATE meta SET value='crc32' WHERE key='hash';" SEAL_META, "crc32", BRC_EUNSUPPORTED },
        { "UPDATE meta SET value=x'' WHERE key='hash';" SEAL_META, "xxh128", BRC_EUNSUPPORTED },
        { "UPDATE meta SET value=zeroblob(191) WHERE key='secret';" SEAL_META,
          "secret has the wrong length", BRC_ECORRUPT },
        { "UPDATE meta SET value=7 WHERE key='secret';" SEAL_META, "secret has the wrong length",
          BRC_ECORRUPT },
        /* damage, by whatever: the checksum tells of it before the value counts */
        { "UPDATE meta SET value='crc32' WHERE key='hash'", "its checksum", BRC_ECORRUPT },
        { "UPDATE meta SET value='time-travel' WHERE key='must-understand'", "its checksum",
          BRC_ECORRUPT },
        { "UPDATE meta SET value=CAST(x'00' || substr(value, 2) AS BLOB) WHERE key='secret' AND"
          " substr(value, 1, 1)<>x'00'", "its checksum", BRC_ECORRUPT },
        { "UPDATE meta SET value=CAST(value AS TEXT) WHERE key='secret'", "its checksum",
          BRC_ECORRUPT },
        { "UPDATE meta SET checksum=checksum+1 WHERE key='hash'", "its checksum", BRC_ECORRUPT },
        { "UPDATE meta SET checksum='x' WHERE key='secret'", "its checksum", BRC_ECORRUPT },
        { "UPDATE meta SET checksum=checksum+4294967296 WHERE key='secret'", "its checksum",
          BRC_ECORRUPT },
        { "UPDATE meta SET (value,checksum)=(SELECT value,checksum FROM meta WHERE"
          " key='may-ignore') WHERE key='must-understand'", "its checksum", BRC_ECORRUPT },
        { "UPDATE meta SET value='side' WHERE key='head'", "its checksum", BRC_ECORRUPT },
    };
    const char *branch;
    store_kit_sql(&kit, changes[_i].sql);
    int rc = store_kit_try(&kit, 0, -1);
    if (strstr(changes[_i].sql, "'head'") != NULL) { /* read when it is asked for */
        ck_assert_int_eq(rc, BRC_OK);
        rc = brc_head_get(kit.store, &branch, &kit.err);
        store_kit_close(&kit);
    }
    KIT_FAILS(&kit, changes[_i].code, changes[_i].words, rc);
    ck_assert_ptr_null(kit.store);
}

/* Told by its number alone: its schema is not compared, and says nothing better. */
LOOP(format_1_is_refused_with_the_way_out, 0, 2)
{
    static const char *const changes[] = {
        "PRAGMA user_version=1",
        "PRAGMA user_version=1; DROP TABLE draft_chunk; DROP VIEW log",
    };
    store_kit_sql(&kit, changes[_i]);
    refused(BRC_EFORMAT, "has format 1, which was given up before the first release: export it "
                         "with breccia as of its commit b088c62 and import it into a new one");
    store_kit_sql(&kit, "PRAGMA user_version=2");
    if (_i == 0)
        store_kit_open(&kit); /* nothing else was wrong with it */
    else
        refused(BRC_EFORMAT, "schema differs");
}

/* Numbers that no format has had, and the lowest that the header can hold. */
LOOP(a_number_of_no_format_is_refused, 0, 4)
{
    static const char *const formats[] = { "3", "0", "2147483647", "-2147483648" };
    char words[96], sql[64];
    snprintf(sql, sizeof(sql), "PRAGMA user_version=%s", formats[_i]);
    store_kit_sql(&kit, sql);
    snprintf(words, sizeof(words), "format %s, and this breccia reads format 2: use a newer one",
             formats[_i]);
    refused(BRC_EFORMAT, words);
}

/* Every 16 KiB page's first bytes, one by one: an error with words, never a crash. */
TEST(a_damaged_file_opens_or_says_what_is_wrong)
{
    brc_buf whole = store_kit_bytes(&kit);
    int opened = 0, failed = 0;
    for (size_t at = 0; at < whole.len; at += at < 112 ? 1 : at % 16384 < 24 ? 5 : 4093) {
        uint8_t old = whole.data[at];
        whole.data[at] = (uint8_t)(old ^ 0x5d);
        ck_assert_int_eq(unlink(kit.file), 0);
        KIT_OK(&kit, brc_file_write(kit.file, whole.data, whole.len, &kit.err));
        int rc = store_kit_try(&kit, BRC_OPEN_READONLY, -1);
        if (rc == BRC_OK)
            opened++;
        else
            failed++;
        KIT_TRUE(rc == BRC_OK || rc == BRC_ECORRUPT || rc == BRC_EFORMAT ||
                 rc == BRC_EUNSUPPORTED || rc == BRC_EIO || rc == BRC_EREADONLY);
        KIT_TRUE(rc == BRC_OK || (kit.err.code == rc && kit.err.message[0] != '\0'));
        store_kit_close(&kit);
        whole.data[at] = old;
    }
    ck_assert_int_gt(opened, 0);
    ck_assert_int_gt(failed, 20);
    brc_buf_dispose(&whole);
}

/* A page on which a cell lies where none can: looked at when the page is, and not only
 * when that cell is. SQLite's default would read what lies before it on the page. */
TEST(f22_cells_that_reach_over_their_page)
{
    brc_oid ids[3];
    brc_span out;
    store_kit_open(&kit);
    for (int i = 0; i < 3; i++) { /* a transaction each, for a row of stored bytes each */
        KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
        KIT_OK(&kit, brc_store_put(kit.store, BRC_KIND_DOCUMENT, &"[[[]]]"[i], (size_t)(6 - 2 * i),
                                   &ids[i], &kit.err));
        KIT_OK(&kit, brc_store_end(kit.store, 1, &kit.err));
    }
    store_kit_close(&kit);
    brc_buf file = store_kit_bytes(&kit);
    uint8_t *page = file.data +
        16384 * (store_kit_ask(&kit, "SELECT rootpage FROM sqlite_schema WHERE name='blob'") - 1);
    ck_assert_int_eq(page[0], 13); /* a leaf; its number of cells, and where each lies: */
    uint8_t *last = page + 8 + 2 * (page[4] - 1);
    ck_assert_int_ge(page[4], 3);
    last[0] = last[1] = 0xff;
    store_kit_put(kit.file, &file);
    store_kit_open(&kit);
    KIT_FAILS(&kit, BRC_ECORRUPT, "damaged",
              brc_store_get(kit.store, BRC_KIND_DOCUMENT, &ids[0], &out, &kit.err));
    brc_buf_dispose(&file);
}

static void evil_function(sqlite3_context *ctx, int n, sqlite3_value **values)
{
    (void)n;
    sqlite3_result_value(ctx, values[0]);
}

static int add_evil_function(sqlite3 *db, char **message, const struct sqlite3_api_routines *api)
{
    (void)message;
    (void)api;
    return sqlite3_create_function(db, "evil", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                                   evil_function, NULL, NULL);
}

/* The process has functions that SQLite knows nothing about. A schema that calls one is not
 * even parsed, so it is not for the comparison alone to keep it from being called. */
TEST(f22_functions_in_a_schema_are_not_trusted)
{
    ck_assert_int_eq(sqlite3_auto_extension((void (*)(void))add_evil_function), SQLITE_OK);
    store_kit_sql(&kit, "CREATE INDEX extra ON oplog(evil(name))");
    KIT_FAILS(&kit, BRC_ECORRUPT, "cannot be opened", store_kit_try(&kit, 0, -1));
    KIT_FAILS(&kit, BRC_ECORRUPT, "cannot be opened", store_kit_try(&kit, BRC_OPEN_READONLY, -1));
    sqlite3_reset_auto_extension();
}

/* ---- reading only ------------------------------------------------------------ */

TEST(a_file_opened_to_read_cannot_be_changed)
{
    brc_oid id;
    int has;
    brc_buf before = store_kit_bytes(&kit), after;
    KIT_OK(&kit, store_kit_try(&kit, BRC_OPEN_READONLY, -1));
    ck_assert_int_eq(brc_store_readonly(kit.store), 1);
    KIT_OK(&kit, brc_ref_get(kit.store, "heads/side", &has, &id, &kit.err));
    KIT_FAILS(&kit, BRC_EREADONLY, "reading only", brc_store_begin(kit.store, &kit.err));
    KIT_FAILS(&kit, BRC_EREADONLY, "",
              brc_store_put(kit.store, BRC_KIND_DOCUMENT, "[]", 2, &id, &kit.err));
    store_kit_close(&kit);
    after = store_kit_bytes(&kit);
    ck_assert_uint_eq(before.len, after.len);
    ck_assert_mem_eq(before.data, after.data, before.len);
    brc_buf_dispose(&before);
    brc_buf_dispose(&after);
}

LOOP(names_with_signs_of_a_uri_are_names, 0, 6)
{
    static const char *const names[] = { "a?b=c", "50%41", "x#y", "file:z", "sp ace", "-dash" };
    char old[sizeof(kit.file)];
    memcpy(old, kit.file, sizeof(old));
    snprintf(kit.file, sizeof(kit.file), "%s/%s", kit.dir, names[_i]);
    ck_assert_int_eq(rename(old, kit.file), 0);
    store_kit_open(&kit);
    store_kit_close(&kit);
    KIT_OK(&kit, store_kit_try(&kit, BRC_OPEN_READONLY, -1));
    ck_assert_int_eq(brc_file_kind(kit.file), 2);
}

TEST(a_file_that_was_moved_is_not_written)
{
    char moved[128];
    snprintf(moved, sizeof(moved), "%s.moved", kit.file);
    store_kit_open(&kit);
    ck_assert_int_eq(rename(kit.file, moved), 0);
    KIT_OK(&kit, brc_store_begin(kit.store, &kit.err));
    KIT_FAILS(&kit, BRC_EREADONLY, "was moved, or another file took its place",
              brc_ref_drop(kit.store, "heads/side", 0, &kit.err));
    KIT_OK(&kit, brc_store_end(kit.store, 0, &kit.err));
    ck_assert_int_eq(rename(moved, kit.file), 0);
}

/* A journal that a crash left behind: half of a transaction must not be read. */
LOOP(an_unfinished_transaction_is_never_read, 0, 2)
{
    sqlite3 *db = NULL;
    char journal[128];
    snprintf(journal, sizeof(journal), "%s-journal", kit.file);
    ck_assert_int_eq(sqlite3_open(kit.file, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "PRAGMA cache_size=5; BEGIN; DELETE FROM ref;"
                                      "INSERT INTO blob(data) SELECT randomblob(500000)"
                                      " FROM pragma_function_list LIMIT 3",
                                  NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_db_cacheflush(db), SQLITE_OK);
    /* The moment of the crash. */
    brc_buf half = store_kit_bytes(&kit), log = BRC_BUF_INIT;
    KIT_OK(&kit, brc_file_read(&log, journal, &kit.err));
    sqlite3_close(db);
    ck_assert_int_eq(unlink(kit.file), 0);
    KIT_OK(&kit, brc_file_write(kit.file, half.data, half.len, &kit.err));
    KIT_OK(&kit, brc_file_write(journal, log.data, log.len, &kit.err));
    brc_buf_dispose(&half);
    brc_buf_dispose(&log);

    int has;
    brc_oid id;
    KIT_OK(&kit, store_kit_try(&kit, _i == 0 ? BRC_OPEN_READONLY : 0, -1));
    KIT_OK(&kit, brc_ref_get(kit.store, "heads/side", &has, &id, &kit.err));
    ck_assert_int_eq(brc_file_kind(journal), 0);
    ck_assert_int_eq(brc_store_readonly(kit.store), _i == 0);
    store_kit_close(&kit);
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM blob"), 1);
}
