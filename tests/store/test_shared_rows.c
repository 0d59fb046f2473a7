/* Small objects share rows of stored bytes: how rows are filled, and what damage to a part of one
 * does: the object whose bytes are hit is faulty, and its neighbours are whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/hash.h"
#include "../../src/store/db.h"
#include "../kit/scenario.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(shared_rows);

/* ---- how rows are filled -------------------------------- */

STORE_KIT_FIXTURE(kit)

#define OK_KIT(call) KIT_OK(&kit, call)

/* A chunk of so many bytes, which `seed` tells from others. */
static brc_oid put_bytes(size_t len, uint64_t seed)
{
    brc_oid id;
    uint8_t *data = malloc(len + 1);
    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)store_kit_random(&seed);
    OK_KIT(brc_store_put(kit.store, BRC_KIND_CHUNK, data, len, &id, &kit.err));
    free(data);
    return id;
}

/* The same in a transaction of its own. */
static brc_oid store_bytes(size_t len, uint64_t seed)
{
    OK_KIT(brc_store_begin(kit.store, &kit.err));
    brc_oid id = put_bytes(len, seed);
    OK_KIT(brc_store_end(kit.store, 1, &kit.err));
    return id;
}

static void fetched(const brc_oid *id, size_t len, uint64_t seed)
{
    brc_object o = { .id = *id }, *one = &o;
    uint8_t *data = malloc(len + 1);
    ck_assert_ptr_nonnull(data);
    OK_KIT(brc_objects_find(kit.store, &one, 1, &kit.err));
    ck_assert_int_eq(o.found, 1);
    ck_assert_uint_eq(o.stored, len);
    OK_KIT(brc_object_fetch(kit.store, &o, data, &kit.err));
    OK_KIT(brc_object_verify(&o, data, &kit.err));
    for (size_t i = 0; i < len; i++)
        KIT_TRUE(data[i] == (uint8_t)store_kit_random(&seed));
    free(data);
}

static int64_t ask(const char *sql)
{
    return store_kit_ask(&kit, sql);
}

CASE("fill", .setup = kit_start, .teardown = kit_stop);

TEST(rows_are_full_but_the_last)
{
    enum { N = 200, LEN = 5000 };
    OK_KIT(brc_store_begin(kit.store, &kit.err));
    for (uint64_t i = 0; i < N; i++)
        put_bytes(LEN, i);
    OK_KIT(brc_store_end(kit.store, 1, &kit.err));
    ck_assert_int_eq(ask("SELECT sum(length(data)) FROM blob"), (int64_t)N * LEN);
    ck_assert_int_eq(ask("SELECT count(*) FROM blob WHERE length(data)<262144"), 1);
    ck_assert_int_eq(ask("SELECT max(length(data))<262144+5000 FROM blob"), 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM blob WHERE seq NOT IN (SELECT place FROM object)"),
                     0);
    store_bytes(10, N); /* another transaction: rows do not change */
    ck_assert_int_eq(ask("SELECT length(data) FROM blob ORDER BY seq DESC LIMIT 1"), 10);
}

TEST(large_objects_have_rows_of_their_own)
{
    static const size_t lens[] = { 131073, 100, 131072, 140000, 200, 131073 };
    brc_oid ids[6];
    OK_KIT(brc_store_begin(kit.store, &kit.err));
    for (size_t i = 0; i < 6; i++)
        ids[i] = put_bytes(lens[i], i);
    OK_KIT(brc_store_end(kit.store, 1, &kit.err));
    ck_assert_int_eq(ask("SELECT count(*) FROM blob"), 4);
    ck_assert_int_eq(ask("SELECT count(DISTINCT place) FROM object WHERE stored<=131072"), 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM object JOIN blob ON seq=place WHERE stored>131072"
                         " AND (offset<>0 OR length(data)<>stored)"), 0);
    store_kit_reopen(&kit);
    for (size_t i = 0; i < 6; i++)
        fetched(&ids[i], lens[i], i);
}

static const size_t waste_sizes[] = {
    256,   512,   1024,  2048,   4096,   4224,   6000,   8192,   8400,   12288,  16384,
    20480, 24576, 65536, 90000, 131072, 131073, 139264, 150000, 262144, 1048576,
};

/* The index and the tree are apart: these are the pages of the stored bytes alone. */
LOOP(pages_lose_at_most_a_tenth, 0, sizeof(waste_sizes) / sizeof(*waste_sizes))
{
    const size_t len = waste_sizes[_i], n = 4194304 / len + 1;
    OK_KIT(brc_store_begin(kit.store, &kit.err));
    for (uint64_t i = 0; i < n; i++)
        put_bytes(len, i);
    OK_KIT(brc_store_end(kit.store, 1, &kit.err));
    const int64_t stored = ask("SELECT sum(stored) FROM object");
    const int64_t pages = ask("SELECT sum(pgsize) FROM dbstat WHERE name='blob'");
    ck_assert_int_eq(stored, (int64_t)(n * len));
    ck_assert_int_gt(pages, stored);
    ck_assert_int_le(10 * (pages - stored), stored);
}

/* Objects that are not written yet are read from memory, an object without bytes too. */
TEST(a_transaction_reads_what_it_has_put)
{
    static const size_t lens[] = { 0, 1, 4000, 140000, 60000, 131072, 131072, 131072, 65536, 3 };
    brc_oid ids[10];
    OK_KIT(brc_store_begin(kit.store, &kit.err));
    for (size_t i = 0; i < 10; i++) {
        ids[i] = put_bytes(lens[i], i);
        for (size_t k = 0; k <= i; k++)
            fetched(&ids[k], lens[k], k);
    }
    OK_KIT(brc_store_end(kit.store, 1, &kit.err));
    store_kit_reopen(&kit);
    for (size_t k = 0; k < 10; k++)
        fetched(&ids[k], lens[k], k);
}

TEST(an_undone_transaction_leaves_no_row)
{
    brc_oid id = store_bytes(100, 1), again;
    OK_KIT(brc_store_begin(kit.store, &kit.err));
    put_bytes(200, 2);
    put_bytes(140000, 3);
    OK_KIT(brc_store_end(kit.store, 0, &kit.err));
    ck_assert_int_eq(ask("SELECT count(*) FROM blob"), 1);
    again = store_bytes(300, 4);
    fetched(&id, 100, 1);
    fetched(&again, 300, 4);
    ck_assert_int_eq(ask("SELECT count(*) FROM blob"), 2);
}

static int count_line(void *ctx, const char *line)
{
    (void)line;
    ++*(int *)ctx;
    return 0;
}

static int faults_of_rows(void)
{
    int n = 0;
    OK_KIT(brc_store_check_rows(kit.store, count_line, &n, &kit.err));
    return n;
}

/* Numbers of rows that nobody can have given. */
LOOP(numbers_that_are_used_up_are_damage, 0, 8)
{
    static const struct {
        const char *sql;
        int puts; /* something can be stored all the same */
    } changes[] = {
        { "INSERT INTO sqlite_sequence VALUES('draft', 9223372036854775807)", 1 },
        { "INSERT INTO sqlite_sequence VALUES('draft', 9223372036854775806)", 1 },
        { "INSERT INTO sqlite_sequence VALUES('draft', -5)", 1 },
        { "INSERT INTO sqlite_sequence VALUES('draft', 'x')", 1 },
        { "INSERT INTO sqlite_sequence VALUES('draft', NULL)", 1 },
        { "INSERT INTO blob(seq, data) VALUES (9223372036854775807, x'')", 0 },
        { "INSERT INTO blob(seq, data) VALUES (9223372036854775806, x'')", 0 },
        { "UPDATE blob SET seq=9223372036854775807;"
          "UPDATE object SET place=9223372036854775807", 0 },
    };
    brc_oid id = store_bytes(10, 1), more;
    store_kit_close(&kit);
    store_kit_sql(&kit, changes[_i].sql);
    store_kit_open(&kit);
    ck_assert_int_gt(faults_of_rows(), 0);
    fetched(&id, 10, 1);
    OK_KIT(brc_store_begin(kit.store, &kit.err));
    int rc = brc_store_put(kit.store, BRC_KIND_CHUNK, "more", 4, &more, &kit.err);
    int ended = brc_store_end(kit.store, rc == BRC_OK, rc == BRC_OK ? &kit.err : NULL);
    rc = rc < 0 ? rc : ended;
    if (changes[_i].puts == 1)
        ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    else
        ck_assert_msg(rc == BRC_ECORRUPT, "%d", rc);
    fetched(&id, 10, 1);
}

/* The last row that no object has keeps its number, without bytes. */
TEST(a_number_is_not_given_again)
{
    store_bytes(10, 1);
    store_bytes(10, 2);
    store_kit_close(&kit);
    store_kit_sql(&kit, "DELETE FROM object WHERE place=2");
    store_kit_open(&kit);
    ck_assert_int_eq(faults_of_rows(), 1);
    OK_KIT(brc_store_begin(kit.store, &kit.err));
    OK_KIT(brc_blob_drop(kit.store, 2, &kit.err));
    OK_KIT(brc_store_end(kit.store, 1, &kit.err));
    ck_assert_int_eq(ask("SELECT length(data) FROM blob WHERE seq=2"), 0);
    ck_assert_int_eq(faults_of_rows(), 0);
    store_bytes(10, 3);
    ck_assert_int_eq(ask("SELECT max(seq) FROM blob"), 3);
    OK_KIT(brc_store_begin(kit.store, &kit.err));
    OK_KIT(brc_blob_drop(kit.store, 2, &kit.err)); /* not the last any more */
    OK_KIT(brc_store_end(kit.store, 1, &kit.err));
    ck_assert_int_eq(ask("SELECT count(*) FROM blob"), 2);
}

/* Equal bytes of two kinds: each is whole in the other's place, and yet they must not share it. */
TEST(two_objects_in_the_same_bytes_are_found)
{
    brc_oid a, b;
    brc_span got;
    OK_KIT(brc_store_begin(kit.store, &kit.err));
    OK_KIT(brc_store_put(kit.store, BRC_KIND_DOCUMENT, "{\"a\":1}", 7, &a, &kit.err));
    OK_KIT(brc_store_put(kit.store, BRC_KIND_COMMIT, "{\"a\":1}", 7, &b, &kit.err));
    put_bytes(20, 1);
    OK_KIT(brc_store_end(kit.store, 1, &kit.err));
    ck_assert_int_eq(faults_of_rows(), 0);
    store_kit_close(&kit);
    store_kit_sql_shared(&kit, "UPDATE object SET offset=(SELECT min(offset) FROM object)"
                               " WHERE stored=7");
    store_kit_open(&kit);
    OK_KIT(brc_store_get(kit.store, BRC_KIND_DOCUMENT, &a, &got, &kit.err));
    OK_KIT(brc_store_get(kit.store, BRC_KIND_COMMIT, &b, &got, &kit.err));
    ck_assert_int_eq(faults_of_rows(), 1);
}

/* A large object in a shared row would take the others with it when it is encoded again. */
TEST(a_large_object_in_a_shared_row_is_found)
{
    store_bytes(140000, 1);
    store_bytes(10, 2);
    store_kit_close(&kit);
    store_kit_sql_shared(&kit, "UPDATE blob SET data=CAST(data || (SELECT data FROM blob WHERE"
                               " seq=2) AS BLOB) WHERE seq=1;"
                               "UPDATE object SET place=1, offset=140000 WHERE stored=10;"
                               "DELETE FROM blob WHERE seq=2");
    store_kit_open(&kit);
    ck_assert_int_eq(faults_of_rows(), 1);
}

/* ---- damage to a part of a row -------------------------------- */

enum { CHUNKS = 9, PER = 10 }; /* 40 bytes each, as they are */

typedef struct report {
    char text[8192];
    int n;
} report;

static int note_damage(void *ctx, const brc_damage *damage)
{
    report *r = ctx;
    char hex[65];
    size_t len = strlen(r->text);
    snprintf(r->text + len, sizeof(r->text) - len, "%s %s %s\n", damage->kind,
             brc_oid_format(hex, &damage->id), damage->message);
    r->n++;
    return 0;
}

static void start_with_one_row(scenario *t)
{
    uint64_t n = CHUNKS * PER, per = PER;
    int32_t data[CHUNKS * PER];
    for (int i = 0; i < CHUNKS * PER; i++)
        data[i] = i * 7 + 1;
    scenario_start(t);
    brc_array *a = scenario_array(t, "/a", "int32", 1, &n, &per, NULL,
                                  "[{\"name\":\"bytes\",\"configuration\":"
                                  "{\"endian\":\"little\"}}]");
    OK(t, brc_array_write(a, NULL, data, sizeof(data), &t->err));
    brc_array_free(a);
    scenario_commit(t, "one");
    ck_assert_int_eq(scenario_ask(t, "SELECT count(DISTINCT place) FROM object WHERE kind=1"), 1);
    ck_assert_int_eq(scenario_ask(t, "SELECT count(*) FROM object WHERE kind=1"), CHUNKS);
}

/* Chunks in the order in which they lie in the row: bit i is set where the i-th cannot be read.
 * fsck names those, and no other chunk. */
static unsigned faulty(scenario *t, report *r)
{
    unsigned bad = 0;
    int32_t got[PER];
    brc_buf ids = BRC_BUF_INIT;
    memset(r, 0, sizeof(*r));
    scenario_reopen(t);
    OK(t, brc_fsck(t->repo, 0, note_damage, NULL, r, NULL, &t->err));
    brc_array *a = scenario_array_at(t, t->session, "/a");
    for (int i = 0; i < CHUNKS; i++) {
        char text[40];
        brc_sel sel = BRC_SEL_INIT;
        snprintf(text, sizeof(text), "[%d:%d]", i * PER, (i + 1) * PER);
        OK(t, brc_sel_parse(&sel, a, text, &t->err));
        int rc = brc_array_read(a, &sel, got, sizeof(got), &t->err);
        ck_assert(rc == BRC_OK || rc == BRC_ECORRUPT);
        for (int k = 0; k < PER && rc == BRC_OK; k++)
            ck_assert_int_eq(got[k], (i * PER + k) * 7 + 1);
        int32_t data[PER];
        char hex[65];
        for (int k = 0; k < PER; k++)
            data[k] = (i * PER + k) * 7 + 1;
        brc_oid id = brc_hash_object(BRC_HASH_XXH128, BRC_KIND_CHUNK, data, sizeof(data));
        int told = strstr(r->text, brc_oid_format(hex, &id)) != NULL;
        ck_assert_msg(told == (rc < 0), "chunk %d: %d\n%s", i, rc, r->text);
        bad |= (unsigned)(rc < 0) << i;
    }
    brc_array_free(a);
    brc_buf_dispose(&ids);
    return bad;
}

#define ROW_OF_CHUNKS "(SELECT place FROM object WHERE kind=1 LIMIT 1)"
#define FIRST "(SELECT min(offset) FROM object WHERE kind=1)"
/* The object of the chunk that lies third. */
#define THIRD "(SELECT id FROM object WHERE kind=1 ORDER BY offset LIMIT 1 OFFSET 2)"

CASE("damage");

LOOP(damage_is_told_of_the_objects_that_it_hits, 0, 21)
{
    static const struct {
        const char *sql;
        int bad; /* chunks; the first of them is the third where there is one */
    } damages[] = {
        /* a byte in the third, its first and its last */
        { "UPDATE blob SET data=CAST(substr(data,1," FIRST "+80)||x'ff'||substr(data," FIRST
          "+82) AS BLOB) WHERE seq=" ROW_OF_CHUNKS, 1 },
        { "UPDATE blob SET data=CAST(substr(data,1," FIRST "+119)||x'ff'||substr(data," FIRST
          "+121) AS BLOB) WHERE seq=" ROW_OF_CHUNKS, 1 },
        /* two bytes over the border of the third and the fourth */
        { "UPDATE blob SET data=CAST(substr(data,1," FIRST "+119)||x'ffff'||substr(data," FIRST
          "+122) AS BLOB) WHERE seq=" ROW_OF_CHUNKS, 2 },
        /* cut: in the third, and at its beginning */
        { "UPDATE blob SET data=substr(data,1," FIRST "+81) WHERE seq=" ROW_OF_CHUNKS, 7 },
        { "UPDATE blob SET data=substr(data,1," FIRST "+80) WHERE seq=" ROW_OF_CHUNKS, 7 },
        /* a byte is put in, or taken out: all behind it lie elsewhere */
        { "UPDATE blob SET data=CAST(substr(data,1," FIRST "+80)||x'ff'||substr(data," FIRST
          "+81) AS BLOB) WHERE seq=" ROW_OF_CHUNKS, 7 },
        { "UPDATE blob SET data=CAST(substr(data,1," FIRST "+80)||substr(data," FIRST
          "+82) AS BLOB) WHERE seq=" ROW_OF_CHUNKS, 7 },
        { "UPDATE object SET offset=offset+1 WHERE id=" THIRD, 1 },
        { "UPDATE object SET offset=offset-1 WHERE id=" THIRD, 1 },
        { "UPDATE object SET offset=-1 WHERE id=" THIRD, 1 },
        { "UPDATE object SET offset=-offset WHERE id=" THIRD " AND offset>0", 1 },
        { "UPDATE object SET offset=1<<20 WHERE id=" THIRD, 1 },
        { "UPDATE object SET offset=1<<31 WHERE id=" THIRD, 1 },
        { "UPDATE object SET offset=offset+(1<<32) WHERE id=" THIRD, 1 },
        { "UPDATE object SET offset=9223372036854775807 WHERE id=" THIRD, 1 },
        { "UPDATE object SET offset=(SELECT length(data) FROM blob WHERE seq=place)"
          " WHERE id=" THIRD, 1 },
        { "UPDATE object SET offset=(SELECT max(offset) FROM object WHERE kind=1) WHERE id=" THIRD,
          1 },
        { "UPDATE object SET place=place+1000 WHERE id=" THIRD, 1 },
        { "UPDATE object SET stored=stored+1, size=size+1 WHERE id=" THIRD, 1 },
        { "DELETE FROM blob WHERE seq=" ROW_OF_CHUNKS, 9 },
        { "UPDATE blob SET data=x'' WHERE seq=" ROW_OF_CHUNKS, 9 },
    };
    scenario t;
    report r;
    start_with_one_row(&t);
    ck_assert_uint_eq(faulty(&t, &r), 0);
    ck_assert_msg(r.n == 0, "%s", r.text);
    scenario_sql_shared(&t, damages[_i].sql);
    unsigned bad = faulty(&t, &r);
    ck_assert_msg(__builtin_popcount(bad) == damages[_i].bad, "%x\n%s", bad, r.text);
    if (damages[_i].bad < CHUNKS) /* the first of them */
        ck_assert_int_ge(r.n, 1);
    scenario_stop(&t);
}

/* Neighbours change places: all that is said of the bytes is right but where they are. */
TEST(objects_that_changed_places_are_found)
{
    scenario t;
    report r;
    start_with_one_row(&t);
    scenario_sql_shared(&t, "UPDATE object SET offset=(SELECT CASE object.offset WHEN f THEN f+40"
                            " ELSE f END FROM (SELECT " FIRST " AS f)) WHERE kind=1 AND offset IN ("
                            FIRST ", " FIRST "+40)");
    unsigned bad = faulty(&t, &r);
    ck_assert_msg(__builtin_popcount(bad) == 2, "%x\n%s", bad, r.text);
    scenario_stop(&t);
}

/* Bytes that no object has are not a fault: an object that is encoded again leaves such bytes. */
TEST(unused_bytes_in_a_row_are_no_fault)
{
    scenario t;
    report r;
    start_with_one_row(&t);
    scenario_sql_shared(&t, "UPDATE blob SET data=CAST(data||x'00010203' AS BLOB)"
                            " WHERE seq=" ROW_OF_CHUNKS);
    ck_assert_uint_eq(faulty(&t, &r), 0);
    ck_assert_msg(r.n == 0, "%s", r.text);
    ck_assert_int_eq(scenario_unused(&t), 4);
    scenario_stop(&t);
}

/* A rewrite: rows that it empties are gone, rows with other objects keep the old bytes. */
TEST(a_rewrite_leaves_no_row_without_an_object)
{
    static const char codecs[] = "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]";
    scenario t;
    report r;
    start_with_one_row(&t);
    int64_t rows = scenario_ask(&t, "SELECT count(*) FROM blob");
    int64_t old = scenario_ask(&t, "SELECT " ROW_OF_CHUNKS);
    int64_t alone = scenario_ask(&t, "SELECT count(*)=0 FROM object WHERE kind<>1 AND place="
                                     ROW_OF_CHUNKS);
    scenario_recode(&t, t.session, "/a", codecs, 1);
    ck_assert_uint_eq(faulty(&t, &r), 0);
    ck_assert_msg(r.n == 0, "%s", r.text);
    ck_assert_int_eq(alone, 1);
    char sql[80];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM blob WHERE seq=%lld", (long long)old);
    ck_assert_int_eq(scenario_ask(&t, sql), 0);
    ck_assert_int_ge(scenario_ask(&t, "SELECT count(*) FROM blob"), rows);
    ck_assert_int_eq(scenario_unused(&t), 0);
    scenario_stop(&t);
}

TEST(a_rewrite_keeps_a_row_that_others_are_in)
{
    static const char codecs[] = "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]";
    scenario t;
    report r;
    brc_array *a;
    start_with_one_row(&t);
    scenario_numbers(&t, "/b", 4, 4, 70);
    scenario_commit(&t, "two");
    /* /b's chunk, which is the last one, goes behind those of /a */
    scenario_sql_shared(&t, "UPDATE blob SET data=CAST(data || (SELECT substr(b.data, o.offset+1,"
                            " o.stored) FROM object o JOIN blob b ON b.seq=o.place WHERE o.kind=1"
                            " ORDER BY o.place DESC LIMIT 1) AS BLOB)"
                            " WHERE seq=(SELECT min(place) FROM object WHERE kind=1);"
                            "UPDATE object SET offset=360, place=(SELECT min(place) FROM object"
                            " WHERE kind=1) WHERE id=(SELECT id FROM object WHERE kind=1"
                            " ORDER BY place DESC LIMIT 1);"
                            "DELETE FROM blob WHERE seq NOT IN (SELECT place FROM object)");
    ck_assert_uint_eq(faulty(&t, &r), 0);
    ck_assert_msg(r.n == 0, "%s", r.text);
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    OK(&t, brc_array_set_codecs(a, codecs, 1, &t.err));
    brc_array_free(a);
    ck_assert_uint_eq(faulty(&t, &r), 0);
    ck_assert_msg(r.n == 0, "%s", r.text);
    ck_assert_int_eq(scenario_number(&t, t.session, "/b", 3), 73);
    ck_assert_int_eq(scenario_unused(&t), 360); /* what /a has left */
    scenario_stop(&t);
}
