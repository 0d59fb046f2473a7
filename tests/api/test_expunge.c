/* Leaving no trace: whatever was deleted, and wherever in the file its text or data stood. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "../../src/store/db.h"
#include "../../src/work/session.h"
#include "../kit/scenario.h"
#include "../kit/store_kit.h"
#include "derived.sql.h"
#include "durable.sql.h"
#include "reserved.sql.h"
#include "../kit/suite.h"

TEST_SUITE(expunge);

SCENARIO_FIXTURE(t)
static const char marker[] = "NOBODY-IS-TO-FIND-THIS";
#define MARKED(before, after) before "NOBODY-IS-TO-FIND-THIS" after

static void expunge_setup(void)
{
    scenario_start(&t);
    scenario_no_window(&t);
    scenario_numbers(&t, "/a", 64, 4, 0);
    scenario_numbers(&t, "/b", 64, 4, 0);
    scenario_commit(&t, "one");
}

/* ---- where text and data can stand -------------------------------- */

static void attribute(brc_session *s)
{
    OK(&t, brc_attrs_set(s, "/a", "note", MARKED("\"", "\""), &t.err));
}

static void commit_with_marks(brc_session *s)
{
    brc_oid id;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    opts.message = MARKED("message ", "");
    opts.author = MARKED("", " <m@example.org>");
    opts.meta_json = MARKED("{\"k\":\"", "\"}");
    OK(&t, brc_session_commit(&id, s, &opts, &t.err));
}

/* A branch with everything that a commit can hold, which goes. */
static void in_commits(void)
{
    brc_array *a;
    const uint64_t shape = 64;
    uint8_t data[64] = {0};
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    memcpy(data, marker, sizeof(marker));
    spec.ndim = 1;
    spec.shape = &shape;
    spec.dtype = "uint8";
    OK(&t, brc_ref_create(t.repo, MARKED("b-", ""), NULL, NULL, 0, &t.err));
    brc_session *s = scenario_session(&t, t.repo, MARKED("b-", ""), BRC_SESSION_WRITE);
    attribute(s);
    OK(&t, brc_array_create(&a, s, MARKED("/n-", ""), &spec, &t.err));
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
    brc_array_free(a);
    OK(&t, brc_node_move(s, "/b", MARKED("/moved-", ""), 0, &t.err));
    commit_with_marks(s);
    brc_session_free(s);
    OK(&t, brc_ref_delete(t.repo, MARKED("b-", ""), BRC_DELETE_FORCE, &t.err));
}

/* A tag and its message, renamed before it goes. */
static void in_tags(void)
{
    OK(&t, brc_ref_create(t.repo, MARKED("t-", ""), NULL, MARKED("of a tag ", ""), BRC_REF_TAG,
                          &t.err));
    OK(&t, brc_ref_rename(t.repo, MARKED("t-", ""), MARKED("u-", ""), BRC_REF_TAG, &t.err));
    OK(&t, brc_ref_delete(t.repo, MARKED("u-", ""), BRC_REF_TAG | BRC_DELETE_FORCE, &t.err));
}

/* Uncommitted changes of every kind, which are dropped. */
static void in_drafts(void)
{
    brc_array *a;
    const uint64_t shape = 64;
    uint8_t data[64] = {0};
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    memcpy(data, marker, sizeof(marker));
    spec.ndim = 1;
    spec.shape = &shape;
    spec.dtype = "uint8";
    attribute(t.session);
    OK(&t, brc_array_create(&a, t.session, MARKED("/n-", ""), &spec, &t.err));
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
    brc_array_free(a);
    OK(&t, brc_node_move(t.session, "/b", MARKED("/moved-", ""), 0, &t.err));
    OK(&t, brc_key_set(t.session, MARKED("loose/", ""), marker, sizeof(marker), 0, &t.err));
    OK(&t, brc_session_discard(t.session, &t.err));
}

/* An open merge with conflicts of attributes, which is given up. */
static void in_conflicts(void)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result merged = BRC_MERGE_RESULT_INIT;
    opts.flags = BRC_MERGE_KEEP;
    opts.message = MARKED("message of a merge ", "");
    OK(&t, brc_ref_create(t.repo, MARKED("c-", ""), NULL, NULL, 0, &t.err));
    brc_session *s = scenario_session(&t, t.repo, MARKED("c-", ""), BRC_SESSION_WRITE);
    attribute(s);
    commit_with_marks(s);
    brc_session_free(s);
    OK(&t, brc_attrs_set(t.session, "/a", "note", "\"ours\"", &t.err));
    scenario_commit(&t, "ours");
    OK(&t, brc_merge(&merged, NULL, t.repo, MARKED("c-", ""), &opts, &t.err));
    ck_assert_int_eq(merged.result, BRC_MERGE_CONFLICT);
    OK(&t, brc_abort(t.repo, &t.err));
    OK(&t, brc_ref_delete(t.repo, MARKED("c-", ""), BRC_DELETE_FORCE, &t.err));
}

/* An array of records with this field, whose chunks compress: their encoding names the field. */
static brc_array *array_of_records(const char *path, const char *field)
{
    char dtype[256];
    uint32_t elements[1024];
    const uint64_t shape = 1024;
    snprintf(dtype, sizeof(dtype),
             "{\"name\":\"struct\",\"configuration\":{\"fields\":[{\"name\":\"%s\","
             "\"data_type\":\"uint32\"}]}}", field);
    brc_array *a = scenario_array(&t, path, dtype, 1, &shape, NULL, NULL, NULL);
    for (uint32_t i = 0; i < 1024; i++)
        elements[i] = i / 256 + (uint8_t)field[0];
    OK(&t, brc_array_write(a, NULL, elements, sizeof(elements), &t.err));
    return a;
}

static void in_types(void)
{
    brc_array_free(array_of_records("/n", marker));
    OK(&t, brc_session_discard(t.session, &t.err));
}

static void (*const places[])(void) = {in_commits, in_tags, in_drafts, in_conflicts, in_types};

CASE("expunge", .setup = expunge_setup, .teardown = t_stop, .timeout = 120);

LOOP(after_expunge_no_byte_of_what_was_deleted_is_there,
     0, 2 * (int)(sizeof(places) / sizeof(places[0])))
{
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    opts.flags = BRC_GC_EXPUNGE;
    opts.keep = "0";
    OK(&t, brc_config_set(t.repo, "journal", _i % 2 ? "wal" : "rollback", &t.err));
    places[_i / 2]();
    ck_assert(store_kit_holds(t.file, marker, strlen(marker)));
    OK(&t, brc_gc(t.repo, &opts, NULL, &t.err));
    scenario_close(&t);
    ck_assert(!store_kit_holds(t.file, marker, strlen(marker)));
    scenario_open(&t, NULL, 0);
    for (uint64_t i = 0; i < 64; i++)
        ck_assert_int_eq(scenario_number(&t, t.session, "/a", i), (int32_t)i);
}

/* ---- encodings ---- */

static void expunge(breccia *repo)
{
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    opts.flags = BRC_GC_EXPUNGE;
    opts.keep = "0";
    OK(&t, brc_gc(repo, &opts, NULL, &t.err));
}

static int64_t encodings_with(const char *text)
{
    char sql[128];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM encoding WHERE spec LIKE '%%%s%%'", text);
    return scenario_ask(&t, sql);
}

static void check_records(const char *path, const char *field)
{
    uint32_t seen[1024];
    brc_array *a = scenario_array_at(&t, t.session, path);
    OK(&t, brc_array_read(a, NULL, seen, sizeof(seen), &t.err));
    for (uint32_t i = 0; i < 1024; i++)
        ck_assert_uint_eq(seen[i], i / 256 + (uint8_t)field[0]);
    brc_array_free(a);
}

/* Once another handle has expunged an encoding, a handle that knew it neither writes chunks under
 * that number nor takes another encoding for it. */
LOOP(encodings_that_went_are_not_used_by_handles_that_knew_them, 0, 2)
{
    brc_array_free(array_of_records("/first", "f"));
    OK(&t, brc_session_discard(t.session, &t.err));
    breccia *other = scenario_handle(&t, 0);
    expunge(other);
    ck_assert_int_eq(encodings_with("\"f\""), 0);
    if (_i) { /* of another type, whose encoding is new */
        breccia *mine = t.repo;
        brc_session *session = t.session;
        t.repo = other;
        OK(&t, brc_session_open(&t.session, other, NULL, BRC_SESSION_WRITE, &t.err));
        brc_array_free(array_of_records("/second", "g"));
        scenario_commit(&t, "second");
        brc_session_free(t.session);
        t.repo = mine;
        t.session = session;
        check_records("/second", "g");
    }
    brc_array_free(array_of_records("/first", "f"));
    scenario_commit(&t, "first");
    check_records("/first", "f");
    brc_free(other);
    scenario_whole(&t);
    scenario_reopen(&t);
    check_records("/first", "f");
}

/* The number of the encoding that has this text, in memory; *spec is its whole text. */
static int64_t known_encoding(const brc_store *store, const char *text, const char **spec)
{
    for (size_t i = 0; i < store->encodings.n; i++)
        if (strstr(store->encodings.slots[i].spec, text)) {
            *spec = store->encodings.slots[i].spec;
            return store->encodings.slots[i].id;
        }
    ck_abort_msg("no encoding of %s", text);
}

/* While the caller's thread finds that a row has gone, or a transaction is rolled back, jobs
 * decode with the chains of other encodings, and with that of this one. */
TEST(chains_in_use_outlive_what_is_known_of_their_numbers)
{
    const char *kept, *gone;
    const brc_chain *chains[2], *again;
    int64_t id;
    brc_array_free(array_of_records("/kept", "kept"));
    scenario_commit(&t, "kept");
    brc_array_free(array_of_records("/gone", "gone"));
    brc_store *store = t.repo->store;
    const int64_t kept_id = known_encoding(store, "kept", &kept);
    const int64_t gone_id = known_encoding(store, "gone", &gone);
    OK(&t, brc_encoding_chain(store, kept_id, &chains[0], &t.err));
    OK(&t, brc_encoding_chain(store, gone_id, &chains[1], &t.err));
    OK(&t, brc_session_discard(t.session, &t.err));
    breccia *other = scenario_handle(&t, 0);
    expunge(other);
    brc_free(other);
    OK(&t, brc_store_begin(store, &t.err));
    OK(&t, brc_encoding_intern(store, gone, &id, &t.err));
    ck_assert_int_gt(id, gone_id);
    for (int i = 0; i < 2; i++) { /* before and after a roll-back */
        ck_assert_uint_eq(brc_chain_describe(chains[0])->decoded_len, 4096);
        ck_assert_uint_eq(brc_chain_describe(chains[1])->decoded_len, 4096);
        OK(&t, brc_encoding_chain(store, kept_id, &again, &t.err));
        ck_assert_ptr_eq(again, chains[0]);
        if (i == 0)
            OK(&t, brc_store_end(store, 0, &t.err));
    }
    ck_assert_int_eq(encodings_with("gone"), 0); /* the row went with the transaction ... */
    OK(&t, brc_store_begin(store, &t.err));
    OK(&t, brc_encoding_intern(store, gone, &id, &t.err)); /* ... and comes again */
    OK(&t, brc_encoding_chain(store, id, &again, &t.err));
    ck_assert_ptr_eq(again, chains[1]);
    OK(&t, brc_store_end(store, 1, &t.err));
    ck_assert_int_eq(encodings_with("gone"), 1);
    scenario_whole(&t);
}

/* The encodings of arrays that are there stay; the next number is new, though the largest one
 * went. */
TEST(numbers_of_encodings_are_not_given_again)
{
    brc_array_free(array_of_records("/kept", "kept"));
    scenario_commit(&t, "kept");
    brc_array_free(array_of_records("/gone", "gone"));
    OK(&t, brc_session_discard(t.session, &t.err));
    const int64_t last = scenario_ask(&t, "SELECT max(id) FROM encoding");
    for (int i = 0; i < 2; i++) {
        expunge(t.repo);
        ck_assert_int_eq(scenario_ask(&t, "SELECT max(id) FROM encoding"), last);
        ck_assert_int_eq(encodings_with("gone"), 0);
        ck_assert_int_eq(encodings_with("kept"), 1);
    }
    brc_array_free(array_of_records("/next", "next"));
    scenario_commit(&t, "next");
    ck_assert_int_eq(encodings_with("next"), 1);
    ck_assert_int_eq(scenario_ask(&t, "SELECT max(id) FROM encoding"), last + 1);
    expunge(t.repo);
    check_records("/kept", "kept");
    check_records("/next", "next");
}

/* ---- the log of operations -------------------------------- */

/* The entries that stay are unchanged, and can be undone. */
TEST(the_log_of_refs_that_are_there_stays)
{
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    brc_buf before = BRC_BUF_INIT, after = BRC_BUF_INIT;
    opts.flags = BRC_GC_EXPUNGE;
    in_tags();
    scenario_set_number(&t, "/a", 1, 7);
    scenario_commit(&t, "two");
    scenario_rows(&t, "SELECT * FROM oplog WHERE name='heads/main' ORDER BY seq", &before);
    OK(&t, brc_gc(t.repo, &opts, NULL, &t.err));
    scenario_rows(&t, "SELECT * FROM oplog ORDER BY seq", &after);
    ck_assert_str_eq((char *)before.data, (char *)after.data);
    brc_buf_dispose(&before);
    brc_buf_dispose(&after);
}

/* Within the window nothing goes: there undo brings back the tag with its message. */
TEST(what_undo_needs_stays)
{
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    int64_t undone;
    opts.flags = BRC_GC_EXPUNGE;
    opts.keep = "30d";
    in_tags();
    OK(&t, brc_gc(t.repo, &opts, NULL, &t.err));
    ck_assert(store_kit_holds(t.file, marker, strlen(marker)));
    OK(&t, brc_undo(&undone, t.repo, 0, 0, &t.err));
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM ref WHERE name LIKE 'tags/u-%'"
                                           " AND message LIKE 'of a tag %'"), 1);
}

/* ---- the schema -------------------------------- */

/* Every column that can hold text or bytes, and which of the places above puts something into it
 * that goes, or why nothing that was deleted can stand there. A new column belongs in this list. */
static const struct {
    const char *column, *why;
} columns[] = {
    {"meta.key", "in_tags: config.undo.message.N"},
    {"meta.value", "in_tags"},
    {"object.id", "a hash"},
    {"blob.data", "in_commits"},
    {"encoding.spec", "in_types"},
    {"ref.name", "in_tags"},
    {"ref.target", "a hash"},
    {"ref.message", "in_tags"},
    {"oplog.op", "one of our words"},
    {"oplog.name", "in_tags, in_commits"},
    {"oplog.old", "a hash"},
    {"oplog.new", "a hash"},
    {"draft.branch", "in_commits"},
    {"draft.base", "a hash"},
    {"draft.tip", "a hash"},
    {"draft.other", "a hash"},
    {"draft.plan", "in_conflicts"},
    {"draft.owner", "a process"},
    {"draft_node.path", "in_drafts"},
    {"draft_node.entry", "hashes"},
    {"draft_chunk.key", "coordinates"},
    {"draft_chunk.id", "a hash"},
    {"draft_doc.id", "a hash"},
    {"draft_doc.data", "in_drafts"},
    {"commit_info.id", "a hash"},
    {"commit_info.author", "in_commits"},
    {"commit_info.message", "in_commits"},
    {"commit_info.parents", "hashes"},
    {"node_total.id", "a hash"},
    {"delta.id", "a hash"},
    {"delta.base", "a hash"},
    {"backend.spec", "settings of backends, which stay"},
    {"place.name", "suite gc_backends"},
    {"place.facts", "suite gc_backends"},
    {"removed.name", "a hash"},
    {"boundary.id", "a hash"},
    {"boundary.parents", "hashes"},
    {"boundary.moves", "goes with its commit: suite expire"},
    {"draft_key.key", "in_drafts"},
    {"draft_key.id", "a hash"},
    {"draft_move.path", "in_drafts"},
    {"draft_move.source", "in_drafts"},
    {"conflict.path", "in_conflicts"},
    {"conflict.member", "in_conflicts"},
    {"conflict.key", "coordinates"},
    {"conflict.base", "in_conflicts"},
    {"conflict.ours", "in_conflicts"},
    {"conflict.theirs", "in_conflicts"},
    {"pin.target", "a hash"},
    {"pin.owner", "a process"},
    {"gc.owner", "a process"},
    {"gc.position", "a hash"},
    {"gc_kept.id", "a hash"},
    {"encoded.id", "a hash"},
    {"chunk_stats.id", "a hash"},
    {"chunk_stats.summary", "goes with its chunk: suite array_stats"},
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

TEST(every_column_of_the_schema_is_in_the_list)
{
    sqlite3 *db;
    sqlite3_stmt *st;
    size_t met = 0;
    ck_assert_int_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, brc_sql_durable, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, brc_sql_derived, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, brc_sql_reserved, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(
                         db, "SELECT m.name || '.' || c.name FROM sqlite_schema m,"
                             " pragma_table_info(m.name) c WHERE m.type='table'"
                             " AND m.name NOT LIKE 'sqlite_%' AND c.type<>'INTEGER'",
                         -1, &st, NULL), SQLITE_OK);
    while (sqlite3_step(st) == SQLITE_ROW) {
        const char *column = (const char *)sqlite3_column_text(st, 0);
        size_t i = 0;
        while (i < COLUMNS && strcmp(columns[i].column, column) != 0)
            i++;
        ck_assert_msg(i < COLUMNS, "%s is not in the list: what is left of it?", column);
        met++;
    }
    ck_assert_uint_eq(met, COLUMNS);
    sqlite3_finalize(st);
    sqlite3_close(db);
}
