/* Faults, planted with SQL, and what fsck says about each: which object, of what
 * kind, and who uses it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "../../src/breccia.h"
#include "../kit/sanitized.h"
#include "../kit/scenario.h"
#include "../kit/seal.h"
#include "../kit/suite.h"

TEST_SUITE(fsck);

/* Everything that was found, a line each: "kind id missing|damaged: user, user". */
typedef struct report {
    char text[8192];
    size_t len;
    int n;
} report;

static void note(report *r, const char *text)
{
    int n = snprintf(r->text + r->len, sizeof(r->text) - r->len, "%s", text);
    ck_assert(n >= 0 && (size_t)n < sizeof(r->text) - r->len);
    r->len += (size_t)n;
}

static int note_damage(void *ctx, const brc_damage *damage)
{
    report *r = ctx;
    char hex[65];
    ck_assert_ptr_nonnull(damage->message);
    ck_assert_int_ne(damage->message[0], '\0');
    note(r, damage->kind);
    note(r, " ");
    note(r, brc_oid_format(hex, &damage->id));
    note(r, (damage->flags & BRC_DAMAGE_MISSING) ? " missing:" : " damaged:");
    for (size_t i = 0; i < damage->nused_by; i++) {
        note(r, i > 0 ? ", " : " ");
        note(r, damage->used_by[i]);
    }
    note(r, "\n");
    r->n++;
    return 0;
}

static void check_file(scenario *t, uint32_t flags, report *r)
{
    uint64_t checked;
    memset(r, 0, sizeof(*r));
    scenario_reopen(t);
    OK(t, brc_fsck(t->repo, flags, note_damage, NULL, r, &checked, &t->err));
}

static void found(const report *r, const char *text)
{
    ck_assert_msg(strstr(r->text, text) != NULL, "'%s' is not in:\n%s", text, r->text);
}

/* The id that the query gives, in lower case. */
static const char *id_of(scenario *t, const char *sql, char out[65])
{
    brc_buf text = BRC_BUF_INIT;
    scenario_rows(t, sql, &text);
    ck_assert_uint_eq(text.len, 33);
    memcpy(out, text.data, 32);
    out[32] = '\0';
    brc_buf_dispose(&text);
    return out;
}

static void sql_on(scenario *t, const char *before, const char *id, const char *after)
{
    char sql[512];
    int n = snprintf(sql, sizeof(sql), "%sx'%s'%s", before, id, after);
    ck_assert(n > 0 && (size_t)n < sizeof(sql));
    scenario_sql(t, sql);
}

/* /a with chunks of 4 in two versions of which the newer changed the last chunk, and
 * a tag at the older; `id` is the object of /a's chunk (1), which both have. */
static void start_with_two_versions(scenario *t, char id[65])
{
    scenario_start(t);
    scenario_numbers(t, "/g/a", 12, 4, 1);
    scenario_commit(t, "one");
    OK(t, brc_ref_create(t->repo, "v1", NULL, NULL, BRC_REF_TAG, &t->err));
    scenario_set_number(t, "/g/a", 11, -1);
    scenario_commit(t, "two");
    id_of(t, "SELECT lower(hex(id)) FROM object WHERE kind=1 ORDER BY place, offset"
             " LIMIT 1 OFFSET 1", id);
}

static void short_tip(scenario *t, const char *rev, const char *name, char *out, size_t size)
{
    brc_oid id;
    char hex[65];
    OK(t, brc_resolve(&id, t->repo, rev, &t->err));
    snprintf(out, size, "%s (%.8s): ", name, brc_oid_format(hex, &id));
}

/* ---- objects -------------------------------- */

TEST(D3_nothing_is_wrong)
{
    scenario t;
    char id[65];
    report r;
    start_with_two_versions(&t, id);
    check_file(&t, 0, &r);
    ck_assert_str_eq(r.text, "");
    check_file(&t, BRC_FSCK_NO_DECODE, &r);
    ck_assert_str_eq(r.text, "");
    OK(&t, brc_fsck(t.repo, 0, NULL, NULL, NULL, NULL, &t.err));
    scenario_stop(&t);
}

/* Versions share nodes of maps with several levels: what each says of them is compared. */
TEST(f21_many_versions_of_a_deep_map_are_whole)
{
    scenario t;
    report r;
    brc_stats stats = BRC_STATS_INIT;
    scenario_start(&t);
    scenario_numbers(&t, "/g/a", 4000, 4, 1);
    for (int i = 0; i < 60; i++) {
        scenario_set_number(&t, "/g/a", (uint64_t)i * 7919 % 4000, -i);
        scenario_commit(&t, "next");
    }
    check_file(&t, 0, &r);
    ck_assert_str_eq(r.text, "");
    OK(&t, brc_stat(t.repo, &stats, &t.err));
    ck_assert_uint_eq(stats.commits, 60);
    ck_assert_uint_eq(stats.chunk_refs, 60 * 1000);
    scenario_stop(&t);
}

TEST(D3_an_orphan_is_no_fault)
{
    scenario t;
    char id[65];
    report r;
    start_with_two_versions(&t, id);
    scenario_set_number(&t, "/g/a", 0, 77);
    OK(&t, brc_session_discard(t.session, &t.err)); /* its chunk is used by nobody */
    check_file(&t, 0, &r);
    ck_assert_str_eq(r.text, "");
    scenario_stop(&t);
}

TEST(D3_a_missing_chunk)
{
    scenario t;
    char id[65], text[128], user[64];
    report r;
    start_with_two_versions(&t, id);
    sql_on(&t, "DELETE FROM object WHERE id=", id, "");
    check_file(&t, 0, &r);
    ck_assert_int_eq(r.n, 2); /* its bytes belong to no object now */
    snprintf(text, sizeof(text), "chunk %s missing:", id);
    found(&r, text);
    short_tip(&t, "main", "main", user, sizeof(user));
    snprintf(text, sizeof(text), "%s/g/a chunk (1)", user);
    found(&r, text);
    short_tip(&t, "main~1", "", user, sizeof(user)); /* by the branch or the tag */
    snprintf(text, sizeof(text), "%s/g/a chunk (1)", user);
    found(&r, text);
    scenario_stop(&t);
}

/* Versions that share the damaged map's nodes: each is named, up to so many. */
TEST(shared_damage_is_reported_with_its_users)
{
    scenario t;
    char id[65], text[128], user[64], rev[24];
    report r;
    start_with_two_versions(&t, id);
    for (int i = 0; i < 11; i++) {
        snprintf(text, sizeof(text), "/other%d", i);
        OK(&t, brc_group_create(t.session, text, NULL, &t.err));
        scenario_commit(&t, "the same array");
    }
    sql_on(&t, "DELETE FROM object WHERE id=", id, "");
    check_file(&t, 0, &r);
    for (int i = 0; i < 8; i++) {
        snprintf(rev, sizeof(rev), "main~%d", i);
        short_tip(&t, rev, "main", user, sizeof(user));
        snprintf(text, sizeof(text), "%s/g/a chunk (1)", user);
        found(&r, text);
    }
    short_tip(&t, "main~9", "main", user, sizeof(user));
    ck_assert_ptr_null(strstr(r.text, user));
    scenario_stop(&t);
}

TEST(D3_a_chunk_without_bytes)
{
    scenario t;
    char id[65], text[128];
    report r;
    start_with_two_versions(&t, id);
    sql_on(&t, "DELETE FROM blob WHERE seq=(SELECT place FROM object WHERE id=", id, ")");
    for (int i = 0; i < 2; i++) {
        check_file(&t, i == 0 ? 0 : BRC_FSCK_NO_DECODE, &r);
        ck_assert_int_eq(r.n, 1);
        snprintf(text, sizeof(text), "chunk %s damaged: ", id);
        found(&r, text);
        found(&r, "/g/a chunk (1)");
    }
    scenario_stop(&t);
}

LOOP(D3_a_chunk_with_other_bytes, 0, 20)
{
    static const char *const changes[] = {
        ("UPDATE blob SET data=zeroblob(length(data))"
         " WHERE seq=(SELECT place FROM object WHERE id=%s)"),
        "UPDATE blob SET data=x'00' || data WHERE seq=(SELECT place FROM object WHERE id=%s)",
        "UPDATE blob SET data=substr(data, 2) WHERE seq=(SELECT place FROM object WHERE id=%s)",
        "UPDATE blob SET data=x'' WHERE seq=(SELECT place FROM object WHERE id=%s)",
        "UPDATE object SET checksum=checksum+1 WHERE id=%s",
        "UPDATE object SET guard=guard+1 WHERE id=%s",
        "UPDATE object SET size=size+1 WHERE id=%s",
        "UPDATE object SET stored=stored-1 WHERE id=%s",
        "UPDATE object SET encoding=99 WHERE id=%s",
        "UPDATE object SET place=(SELECT max(seq) FROM blob) WHERE id=%s",
        "UPDATE object SET place=-1 WHERE id=%s",
        "UPDATE object SET offset=1 WHERE id=%s",
        "UPDATE object SET offset=-1 WHERE id=%s",
        "UPDATE object SET offset='far' WHERE id=%s",
        "UPDATE object SET offset=1<<40 WHERE id=%s",
        "UPDATE object SET kind=2 WHERE id=%s",
        "UPDATE object SET backend=1 WHERE id=%s",
        "UPDATE object SET backend='s3' WHERE id=%s",
        "UPDATE object SET size='long' WHERE id=%s",
        "UPDATE object SET stored=1<<40 WHERE id=%s",
    };
    scenario t;
    char id[65], text[128], sql[512], quoted[80];
    int32_t got[12];
    report r;
    start_with_two_versions(&t, id);
    snprintf(quoted, sizeof(quoted), "x'%s'", id);
    snprintf(sql, sizeof(sql), changes[_i], quoted);
    scenario_sql(&t, sql);
    check_file(&t, 0, &r);
    ck_assert_int_ge(r.n, 1);
    snprintf(text, sizeof(text), "%s damaged: ", id);
    found(&r, text);
    found(&r, "/g/a chunk (1)");
    brc_array *a = scenario_array_at(&t, t.session, "/g/a");
    if (strstr(sql, "guard") == NULL) /* which only a write asks for */
        FAILS(&t, BRC_ECORRUPT, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    brc_array_free(a);
    scenario_stop(&t);
}

/* A row that contradicts itself does not end the look at the rows behind it. */
TEST(D3_contradicting_rows_hide_nothing)
{
    scenario t;
    brc_buf ids = BRC_BUF_INIT;
    report r;
    start_with_two_versions(&t, (char[65]){ 0 });
    scenario_sql(&t, "UPDATE object SET checksum=checksum+1 WHERE kind=1");
    scenario_sql(&t, "UPDATE object SET stored=1<<40"
                     " WHERE id=(SELECT min(id) FROM object WHERE kind=1)");
    check_file(&t, 0, &r);
    scenario_rows(&t, "SELECT lower(hex(id)) FROM object WHERE kind=1", &ids);
    ck_assert_uint_ge(ids.len, 3 * 33);
    for (size_t at = 0; at < ids.len; at += 33) { /* a line each */
        ids.data[at + 32] = 0;
        found(&r, (const char *)ids.data + at);
    }
    brc_buf_dispose(&ids);
    scenario_stop(&t);
}

/* Numbers that no row can have, also such that are right in 32 bits. */
static const char *const numbers_out_of_range[] = {
    "kind=0", "kind=7", "kind=-1", "kind=99", "kind=4294967297", "kind=9223372036854775807",
    "kind=NULL", "kind='x'", "kind=1.5", "encoding=-1", "encoding=4294967296", "backend=1",
    "backend=4294967296", "place=-1", "place=4294967297", "place=9223372036854775807",
    "offset=-1", "offset=4294967296", "offset=9223372036854775807", "offset=1.5", "offset='x'",
    "size=-1",
    "size=9223372036854775807", "stored=-1", "stored=9223372036854775807", "stored='x'",
};

EACH(f03_numbers_out_of_range, numbers_out_of_range)
{
    scenario t;
    char id[65], sql[160];
    report r;
    brc_stats stats = BRC_STATS_INIT;
    start_with_two_versions(&t, id);
    scenario_sql(&t, "PRAGMA ignore_check_constraints=1");
    snprintf(sql, sizeof(sql), "UPDATE OR IGNORE object SET %s WHERE id=x'%s'",
             numbers_out_of_range[_i], id);
    scenario_sql(&t, sql);
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM object WHERE id=x'%s' AND %s", id,
             strcmp(numbers_out_of_range[_i], "kind=NULL") == 0 ? "kind IS NULL"
                                                                : numbers_out_of_range[_i]);
    if (scenario_ask(&t, sql) == 1) { /* NOT NULL may have refused it */
        check_file(&t, 0, &r);
        ck_assert_int_ge(r.n, 1);
        found(&r, id);
    }
    int rc = brc_stat(t.repo, &stats, &t.err);
    ck_assert(rc == BRC_OK || rc == BRC_ECORRUPT);
    scenario_stop(&t);
}

/* Their sum has no 64-bit integer: what adds sizes up goes on, and each row is told. */
LOOP(f05_two_sizes_near_2_to_63, 0, 2)
{
    static const char *const columns[] = { "size", "stored" };
    scenario t;
    char id[65], sql[160];
    brc_buf ids = BRC_BUF_INIT;
    report r;
    brc_stats before = BRC_STATS_INIT, stats = BRC_STATS_INIT;
    start_with_two_versions(&t, id);
    OK(&t, brc_stat(t.repo, &before, &t.err));
    snprintf(sql, sizeof(sql), "UPDATE object SET %s=9223372036854775800 WHERE id IN"
             " (SELECT id FROM object WHERE kind=1 ORDER BY place, offset LIMIT 2)", columns[_i]);
    scenario_sql(&t, sql);
    snprintf(sql, sizeof(sql), "SELECT lower(hex(id)) FROM object WHERE %s>1<<62", columns[_i]);
    scenario_rows(&t, sql, &ids);
    ck_assert_uint_eq(ids.len, 2 * 33);
    for (int i = 0; i < 2; i++) {
        check_file(&t, i == 0 ? 0 : BRC_FSCK_NO_DECODE, &r);
        for (size_t at = 0; at < ids.len; at += 33) { /* a line each */
            ids.data[at + 32] = 0;
            found(&r, (const char *)ids.data + at);
        }
    }
    OK(&t, brc_stat(t.repo, &stats, &t.err));
    ck_assert_uint_eq(_i == 0 ? stats.logical_bytes : stats.stored_bytes, INT64_MAX);
    ck_assert_uint_eq(stats.objects, before.objects);
    ck_assert_uint_eq(stats.chunk_refs, before.chunk_refs);
    brc_buf_dispose(&ids);
    scenario_stop(&t);
}

/* Nobody takes 2 GB because a row claims them. */
LOOP(f06_claimed_bytes_are_not_reserved, 0, 2)
{
#if !KIT_SANITIZED
    scenario t;
    char id[65], sql[160];
    int32_t got[12];
    report r;
    start_with_two_versions(&t, id);
    snprintf(sql, sizeof(sql), "UPDATE object SET stored=2147483600%s WHERE id=x'%s'",
             _i == 0 ? "" : ", size=2147483600, encoding=0", id);
    scenario_sql(&t, sql);
    struct rlimit limit = {(rlim_t)512 << 20, (rlim_t)512 << 20};
    ck_assert_int_eq(setrlimit(RLIMIT_DATA, &limit), 0);
    brc_array *a = scenario_array_at(&t, t.session, "/g/a");
    FAILS(&t, BRC_ECORRUPT, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    brc_array_free(a);
    check_file(&t, 0, &r);
    found(&r, id);
    scenario_stop(&t);
#endif
}

TEST(D3_a_missing_document)
{
    scenario t;
    char id[65];
    report r;
    start_with_two_versions(&t, id);
    /* the second document is /g/a's: the first is the group's */
    scenario_sql(&t, "DELETE FROM object WHERE kind=2");
    check_file(&t, 0, &r);
    ck_assert_int_ge(r.n, 2);
    found(&r, "document ");
    found(&r, " missing: ");
    found(&r, ": /g zarr.json");
    found(&r, ": /g/a zarr.json");
    int kind;
    brc_buf json = BRC_BUF_INIT;
    OK(&t, brc_node_kind(&kind, t.session, "/g/a", &t.err));
    FAILS(&t, BRC_ECORRUPT, brc_node_json(&json, t.session, "/g/a", &t.err));
    brc_buf_dispose(&json);
    scenario_stop(&t);
}

TEST(D3_missing_map_nodes)
{
    scenario t;
    char id[65];
    report r;
    start_with_two_versions(&t, id);
    scenario_sql(&t, "DELETE FROM object WHERE kind=3");
    check_file(&t, 0, &r);
    ck_assert_int_eq(r.n, 3); /* both snapshots; what is behind them is out of sight */
    found(&r, "node ");
    found(&r, ": / snapshot");
    int kind;
    FAILS(&t, BRC_ECORRUPT, brc_node_kind(&kind, t.session, "/g/a", &t.err));
    scenario_stop(&t);
}

TEST(D3_a_damaged_map_node)
{
    scenario t;
    char id[65];
    report r;
    start_with_two_versions(&t, id);
    scenario_sql(&t, "UPDATE blob SET data=substr(data, 1, length(data)-1) || x'ff' WHERE seq IN"
                     " (SELECT place FROM object WHERE kind=3)");
    check_file(&t, 0, &r);
    ck_assert_int_ge(r.n, 2);
    found(&r, "node ");
    found(&r, " damaged: ");
    found(&r, ": / snapshot");
    scenario_stop(&t);
}

/* ---- commits and refs -------------------------------- */

TEST(D3_a_bad_commit)
{
    scenario t;
    char id[65], tip[65], text[128];
    brc_oid oid;
    report r;
    start_with_two_versions(&t, id);
    OK(&t, brc_resolve(&oid, t.repo, "main~1", &t.err));
    brc_oid_format(tip, &oid);
    sql_on(&t, "UPDATE blob SET data=CAST(substr(data, 1, length(data)-1) || x'21' AS BLOB)"
               " WHERE seq=(SELECT place FROM object WHERE id=", tip, ")");
    check_file(&t, 0, &r);
    ck_assert_msg(r.n == 1, "%s", r.text);
    snprintf(text, sizeof(text), "commit %s damaged: ", tip);
    found(&r, text);
    found(&r, "main");
    found(&r, "v1");
    brc_commit *commit;
    FAILS(&t, BRC_ECORRUPT, brc_commit_read(&commit, t.repo, &oid, &t.err));
    scenario_stop(&t);
}

TEST(D3_a_ref_to_nothing)
{
    scenario t;
    char id[65];
    report r;
    brc_oid oid;
    start_with_two_versions(&t, id);
    scenario_sql(&t,
                 "UPDATE ref SET target=x'000102030405060708090a0b0c0d0e0f' WHERE name='tags/v1';"
                 SEAL_REF);
    check_file(&t, 0, &r);
    ck_assert_int_eq(r.n, 1);
    found(&r, "commit 000102030405060708090a0b0c0d0e0f missing: v1: commit "
              "000102030405060708090a0b0c0d0e0f");
    brc_session *s;
    ck_assert_int_lt(brc_session_open(&s, t.repo, "v1", BRC_SESSION_AT, &t.err), 0);
    OK(&t, brc_resolve(&oid, t.repo, "main", &t.err)); /* the rest goes on */
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/a", 5), 6);
    scenario_stop(&t);
}

TEST(D3_a_ref_to_something_else)
{
    scenario t;
    char id[65], text[128];
    report r;
    start_with_two_versions(&t, id);
    sql_on(&t, "UPDATE ref SET target=", id, " WHERE name='tags/v1';" SEAL_REF); /* a chunk */
    check_file(&t, 0, &r);
    ck_assert_int_eq(r.n, 1);
    snprintf(text, sizeof(text), "commit %s damaged: v1", id);
    found(&r, text);
    brc_session *s;
    FAILS(&t, BRC_ECORRUPT, brc_session_open(&s, t.repo, "v1", BRC_SESSION_AT, &t.err));
    scenario_stop(&t);
}

TEST(D3_refs_that_are_none)
{
    scenario t;
    char id[65];
    report r;
    start_with_two_versions(&t, id);
    scenario_sql(&t, "UPDATE ref SET name='Tags/v1' WHERE name='tags/v1';" SEAL_REF);
    scenario_sql(&t, "INSERT INTO ref(name, target, checksum) VALUES ('heads/odd', x'0102', 0);"
                     SEAL_REF);
    check_file(&t, 0, &r); /* the list of refs cannot be read: that is told, not an error */
    ck_assert_int_ge(r.n, 1);
    scenario_sql(&t, "DELETE FROM ref WHERE name='heads/odd'");
    check_file(&t, 0, &r);
    ck_assert_int_eq(r.n, 1);
    found(&r, "ref 00000000000000000000000000000000 damaged: Tags/v1");
    scenario_sql(&t, "UPDATE meta SET value='gone' WHERE key='head';" SEAL_META);
    scenario_close(&t);
    t.repo = scenario_handle(&t, 0);
    memset(&r, 0, sizeof(r));
    OK(&t, brc_fsck(t.repo, 0, note_damage, NULL, &r, NULL, &t.err));
    found(&r, "ref 00000000000000000000000000000000 damaged: gone");
    scenario_stop(&t);
}

/* ---- uncommitted changes -------------------------------- */

TEST(D3_a_draft_chunk_to_nothing)
{
    scenario t;
    char id[65];
    int32_t got[12];
    report r;
    start_with_two_versions(&t, id);
    scenario_set_number(&t, "/g/a", 5, -5);
    scenario_sql(&t, "UPDATE draft_chunk SET id=x'000102030405060708090a0b0c0d0e0f';"
                     SEAL_DRAFT_CHUNK);
    check_file(&t, 0, &r);
    ck_assert_int_eq(r.n, 1);
    found(&r, "chunk 000102030405060708090a0b0c0d0e0f missing: main (uncommitted): /g/a chunk (1)");
    brc_array *a = scenario_array_at(&t, t.session, "/g/a");
    FAILS(&t, BRC_ECORRUPT, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    brc_array_free(a);
    OK(&t, brc_session_discard(t.session, &t.err)); /* and can be dropped */
    check_file(&t, 0, &r);
    ck_assert_str_eq(r.text, "");
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/a", 5), 6);
    scenario_stop(&t);
}

LOOP(D3_damaged_drafts_are_told_with_the_rest, 0, 24)
{
    static const char *const changes[] = {
        "UPDATE draft_node SET entry=x'ff'",
        "UPDATE draft_node SET entry=x''",
        "UPDATE draft_chunk SET id=x'01'",
        "UPDATE draft_chunk SET key=x'ff'",
        "UPDATE draft SET base=x'000102030405060708090a0b0c0d0e0f'",
        "UPDATE draft SET base=x'00'",
        "UPDATE draft SET parts=8",
        "UPDATE draft SET parts='x'",
        "UPDATE draft SET state=3",
        "UPDATE draft SET state=2",
        "INSERT INTO draft_key SELECT id, 'k', x'00', 0 FROM draft",
        "INSERT INTO draft_move SELECT id, '/g/a', '/b', 0 FROM draft",
    };
    scenario t;
    char id[65], text[128];
    report r;
    start_with_two_versions(&t, id);
    scenario_set_number(&t, "/g/a", 5, -5);
    scenario_sql(&t, changes[_i / 2]);
    if (_i % 2 == 0) /* by an enemy, or by damage */
        scenario_sql(&t, SEAL_ALL);
    sql_on(&t, "DELETE FROM object WHERE id=", id, ""); /* a second fault */
    memset(&r, 0, sizeof(r));
    scenario_close(&t);
    t.repo = scenario_handle(&t, 0);
    OK(&t, brc_fsck(t.repo, 0, note_damage, NULL, &r, NULL, &t.err));
    snprintf(text, sizeof(text), "chunk %s missing:", id);
    found(&r, text);
    ck_assert_msg(r.n >= 2, "%s: %s", changes[_i / 2], r.text);
    scenario_stop(&t);
}

/* ---- the whole -------------------------------- */

static int stop_at_first(void *ctx, const brc_damage *damage)
{
    (void)damage;
    ++*(int *)ctx;
    return 1;
}

TEST(a_callback_stops_the_check)
{
    scenario t;
    char id[65];
    int n = 0;
    start_with_two_versions(&t, id);
    scenario_sql(&t, "DELETE FROM object WHERE kind=1");
    scenario_reopen(&t);
    FAILS(&t, BRC_EINTERRUPT, brc_fsck(t.repo, 0, stop_at_first, NULL, &n, NULL, &t.err));
    ck_assert_int_eq(n, 1);
    scenario_stop(&t);
}

TEST(many_faults_are_all_told)
{
    scenario t;
    report *r = calloc(1, sizeof(*r));
    ck_assert_ptr_nonnull(r);
    scenario_start(&t);
    scenario_numbers(&t, "/a", 3000, 1, 5); /* more objects than fsck takes at once */
    scenario_commit(&t, "one");
    scenario_sql(&t, "UPDATE object SET guard=guard+1 WHERE kind=1 AND place % 100 = 0");
    int64_t faults =
        scenario_ask(&t, "SELECT count(*) FROM object WHERE kind=1 AND place % 100 = 0");
    check_file(&t, 0, r);
    ck_assert_int_eq(r->n, faults);
    ck_assert_int_gt(r->n, 20);
    free(r);
    scenario_stop(&t);
}
