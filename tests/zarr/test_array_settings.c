/* Settings of a repository that arrays follow: the codecs that new ones get, and what reading them
 * verifies. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/hash.h"
#include "../../src/work/session.h"
#include "../kit/hook_codec.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(array_settings);

static scenario t;

static void settings_start(void)
{
    scenario_start(&t);
}

static void settings_stop(void)
{
    scenario_stop(&t);
}

static void setting_is(const char *name, const char *value)
{
    brc_buf text = BRC_BUF_INIT;
    OK(&t, brc_config_get(&text, t.repo, name, &t.err));
    ck_assert_str_eq((const char *)text.data, value);
    brc_buf_dispose(&text);
}

/* ---- codecs -------------------------------- */

#define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ONE_BYTE "{\"name\":\"bytes\"}"
#define TRANSPOSE "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}"
#define GZIP "{\"name\":\"gzip\",\"configuration\":{\"level\":5}}"
#define INDEX                                                                             \
    "\"index_codecs\":[" BYTES ",{\"name\":\"crc32c\"}],\"index_location\":\"end\""

static const struct codecs_case {
    const char *setting, *dtype;
    int sharded;
    const char *codecs; /* NULL: those that are chosen */
} codecs_cases[] = {
    {"[" GZIP "]", "int32", 0, "[" BYTES "," GZIP "]"},
    {"[" GZIP "]", "uint8", 0, "[" ONE_BYTE "," GZIP "]"},
    {"[" GZIP "]", "string", 0, "[{\"name\":\"vlen-utf8\"}," GZIP "]"},
    {"[" BYTES "," GZIP "]", "float64", 0, "[" BYTES "," GZIP "]"},
    {"[" BYTES "," GZIP "]", "string", 0, NULL},
    {"[ " BYTES " ]", "int16", 0, "[" BYTES "]"},
    {"[" GZIP "]", "int32", 1,
     "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[4],\"codecs\":"
     "[" BYTES "," GZIP "]," INDEX "}}]"},
    {"[{\"name\":\"vlen-utf8\"}," GZIP "]", "string", 0, "[{\"name\":\"vlen-utf8\"}," GZIP "]"},
    {"[{\"name\":\"vlen-utf8\"}," GZIP "]", "int32", 0, NULL},
};

static void codecs_of_new_array(const char *path, const struct codecs_case *c, const char *codecs,
                                char *out, size_t size)
{
    const uint64_t shape = 16, chunk = 4, shard = 8;
    brc_array *a;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    spec.ndim = 1;
    spec.shape = &shape;
    spec.chunk = &chunk;
    spec.shard = c->sharded ? &shard : NULL;
    spec.dtype = c->dtype;
    spec.codecs_json = codecs;
    OK(&t, brc_array_create(&a, t.session, path, &spec, &t.err));
    snprintf(out, size, "%s", brc_array_describe(a)->codecs_json);
    brc_array_free(a);
}

CASE("settings", .setup = settings_start, .teardown = settings_stop);

EACH(new_arrays_get_the_codecs_of_the_setting, codecs_cases)
{
    const struct codecs_case *c = &codecs_cases[_i];
    static char chosen[800], found[800], given[800];
    codecs_of_new_array("/before", c, NULL, chosen, sizeof(chosen));
    setting_is("codecs", "chosen");
    OK(&t, brc_config_set(t.repo, "codecs", c->setting, &t.err));
    scenario_reopen(&t);
    codecs_of_new_array("/new", c, NULL, found, sizeof(found));
    ck_assert_str_eq(found, c->codecs != NULL ? c->codecs : chosen);
    if (c->codecs != NULL)
        ck_assert_str_ne(found, chosen);
    if (strcmp(c->dtype, "string") != 0 && !c->sharded) {
        codecs_of_new_array("/given", c, "[" BYTES "]", given, sizeof(given));
        ck_assert_msg(strstr(given, "gzip") == NULL, "%s", given);
    }
    OK(&t, brc_config_set(t.repo, "codecs", NULL, &t.err));
    setting_is("codecs", "chosen");
    codecs_of_new_array("/after", c, NULL, found, sizeof(found));
    ck_assert_str_eq(found, chosen);
    scenario_whole(&t);
}

/* An array may be given compressors in place of its codecs. */
LOOP(compressors_come_behind_what_makes_bytes, 0, 10)
{
    static const struct {
        const char *dtype, *compressors, *codecs; /* NULL: not allowed */
    } cases[] = {
        {"int32", "[" GZIP "]", "[" BYTES "," GZIP "]"},
        {"uint8", " [ " GZIP " ] ", "[" ONE_BYTE "," GZIP "]"},
        {"string", "[]", "[{\"name\":\"vlen-utf8\"}]"},
        {"float64", " [ ] ", "[" BYTES "]"},
        {"int32", "[" BYTES "]", NULL},
        {"int32", "{}", NULL},
        {"int32", "[", NULL},
        {"int32", "", NULL},
        {"nonsense", "[]", NULL},
        {NULL, "[]", NULL},
    };
    const uint64_t shape = 16;
    brc_array *a;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    spec.ndim = 1;
    spec.shape = &shape;
    spec.dtype = cases[_i].dtype;
    spec.compressors_json = cases[_i].compressors;
    int rc = brc_array_create(&a, t.session, "/a", &spec, &t.err);
    if (cases[_i].codecs != NULL) {
        ck_assert_int_eq(rc, BRC_OK);
        ck_assert_str_eq(brc_array_describe(a)->codecs_json, cases[_i].codecs);
    } else {
        ck_assert_msg(rc == BRC_EINVAL || rc == BRC_EUNSUPPORTED, "%d: %s", rc, t.err.message);
    }
    brc_array_free(a);
    spec.codecs_json = "[" BYTES "]";
    FAILS(&t, BRC_EINVAL, brc_array_create(&a, t.session, "/both", &spec, &t.err));
    scenario_whole(&t);
}

/* The setting names a plug-in's codec, and the plug-in is not there now. */
TEST(B10_a_codec_that_is_missing_is_not_chosen_but_named)
{
    static const struct codecs_case plain = {NULL, "int32", 0, NULL};
    static char chosen[800], found[800];
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    const uint64_t shape = 8;
    brc_registry *with = hook_registry(&t.err);
    brc_array *a;
    codecs_of_new_array("/before", &plain, NULL, chosen, sizeof(chosen));
    scenario_commit(&t, "before");
    scenario_close(&t);
    opts.registry = with;
    scenario_open(&t, &opts, 0);
    OK(&t, brc_config_set(t.repo, "codecs", "[" HOOK_CODEC "]", &t.err));
    codecs_of_new_array("/with", &plain, NULL, found, sizeof(found));
    ck_assert_ptr_nonnull(strstr(found, "hook"));
    scenario_close(&t);
    opts.registry = NULL;
    scenario_open(&t, &opts, 0);
    codecs_of_new_array("/without", &plain, NULL, found, sizeof(found));
    ck_assert_str_eq(found, chosen);
    spec.ndim = 1;
    spec.shape = spec.chunk = &shape;
    spec.dtype = "int32";
    spec.codecs_json = "[" BYTES "," HOOK_CODEC "]";
    FAILS(&t, BRC_EUNSUPPORTED, brc_array_create(&a, t.session, "/named", &spec, &t.err));
    ck_assert_ptr_nonnull(strstr(t.err.message, "hook"));
    brc_registry_free(with);
}

LOOP(codecs_that_fit_no_type_are_no_setting, 0, 6)
{
    static const struct {
        const char *value, *words;
        int code;
    } wrong[] = {
        {"[\"nope\"]", "nope", BRC_EUNSUPPORTED},
        {"{}", "", BRC_EINVAL},
        {"[", "", BRC_EINVAL},
        {"", "", BRC_EINVAL},
        {"[{\"name\":\"bytes\"}]", "endian", BRC_EINVAL},
        {"[" GZIP "," BYTES "]", "", BRC_EINVAL},
    };
    FAILS(&t, wrong[_i].code, brc_config_set(t.repo, "codecs", wrong[_i].value, &t.err));
    ck_assert_msg(strstr(t.err.message, wrong[_i].words) != NULL, "%s", t.err.message);
    setting_is("codecs", "chosen");
}

/* ---- verify -------------------------------- */

enum { N = 1024 };

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *st;
    const int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    ck_assert_msg(rc == SQLITE_OK, "%s", sqlite3_errmsg(db));
    return st;
}

/* The first chunk's stored bytes become those of the second, with the right checksum. */
static void swap_stored(void)
{
    sqlite3 *db;
    brc_oid id = {{0}};
    uint64_t digest = 0;
    scenario_sql(&t, "SELECT 1"); /* each object has a row of its own */
    ck_assert_int_eq(sqlite3_open(t.file, &db), SQLITE_OK);
    sqlite3_stmt *st = prepare(db, "SELECT o.id, o.encoding, o.place, b.place, b.stored, x.data"
                                   " FROM object o, object b JOIN blob x ON x.seq=b.place"
                                   " WHERE o.kind=1 AND b.kind=1 AND o.place<b.place");
    ck_assert_int_eq(sqlite3_step(st), SQLITE_ROW);
    memcpy(id.bytes, sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0));
    if (sqlite3_column_int64(st, 1) != 0)
        OK(&t, brc_encoding_digest(t.repo->store, sqlite3_column_int64(st, 1), &digest, &t.err));
    const size_t len = (size_t)sqlite3_column_bytes(st, 5);
    const uint64_t sum = brc_hash_stored(&id, digest, sqlite3_column_blob(st, 5), len);
    sqlite3_stmt *blob = prepare(db, "UPDATE blob SET data=?1 WHERE seq=?2");
    sqlite3_bind_blob(blob, 1, sqlite3_column_blob(st, 5), (int)len, SQLITE_TRANSIENT);
    sqlite3_bind_int64(blob, 2, sqlite3_column_int64(st, 2));
    sqlite3_finalize(st);
    ck_assert_int_eq(sqlite3_step(blob), SQLITE_DONE);
    sqlite3_finalize(blob);
    st = prepare(db, "UPDATE object SET checksum=?1, stored=?2 WHERE id=?3");
    sqlite3_bind_int64(st, 1, (int64_t)sum);
    sqlite3_bind_int64(st, 2, (int64_t)len);
    sqlite3_bind_blob(st, 3, id.bytes, (int)brc_store_id_len(t.repo->store), SQLITE_TRANSIENT);
    ck_assert_int_eq(sqlite3_step(st), SQLITE_DONE);
    ck_assert_int_eq(sqlite3_changes(db), 1);
    sqlite3_finalize(st);
    sqlite3_close(db);
}

/* All of it, or two of its elements. */
static int read_first(int all, int32_t *value)
{
    static int32_t values[N];
    brc_sel sel = BRC_SEL_INIT;
    brc_array *a = scenario_array_at(&t, t.session, "/x");
    sel_all(&sel, a);
    sel.count[0] = all ? N : 2;
    const int rc = brc_array_read(a, &sel, values, sel.count[0] * sizeof(values[0]), &t.err);
    brc_array_free(a);
    *value = values[0];
    return rc;
}

LOOP(verify_full_compares_what_is_decoded_with_its_id, 0, 4)
{
    static const char *const codecs[] = {"[" BYTES "]", "[" BYTES "," GZIP "]"};
    const uint64_t shape = N;
    const int all = _i / 2;
    int32_t values[N], value;
    scenario_inline(&t);
    for (int which = 0; which < 2; which++) {
        for (int i = 0; i < N; i++)
            values[i] = 10000 * which + i + 1;
        brc_array *a = scenario_array(&t, which == 0 ? "/x" : "/y", "int32", 1, &shape, &shape,
                                      NULL, codecs[_i % 2]);
        OK(&t, brc_array_write(a, NULL, values, sizeof(values), &t.err));
        brc_array_free(a);
    }
    setting_is("verify", "stored");
    swap_stored();
    scenario_reopen(&t);
    OK(&t, read_first(all, &value)); /* they are what was written there */
    ck_assert_int_eq(value, 10001);
    OK(&t, brc_config_set(t.repo, "verify", "full", &t.err));
    FAILS(&t, BRC_ECORRUPT, read_first(all, &value));
    ck_assert_msg(strstr(t.err.message, "its id") != NULL, "%s", t.err.message);
    scenario_reopen(&t); /* it is the file's */
    setting_is("verify", "full");
    FAILS(&t, BRC_ECORRUPT, read_first(all, &value));
    ck_assert_int_eq(scenario_number(&t, t.session, "/y", 1), 10002);
    FAILS(&t, BRC_EINVAL, brc_config_set(t.repo, "verify", "never", &t.err));
    OK(&t, brc_config_set(t.repo, "verify", NULL, &t.err));
    OK(&t, read_first(all, &value));
    setting_is("verify", "stored");
}

/* A part of a transposed chunk could be decoded alone, but only the whole chunk has an id to
 * verify. */
TEST(verify_full_reads_parts_of_whole_chunks)
{
    const uint64_t shape[2] = {32, 32};
    int32_t values[N], found[2];
    brc_sel sel = BRC_SEL_INIT;
    for (int i = 0; i < N; i++)
        values[i] = i;
    brc_array *a = scenario_array(&t, "/x", "int32", 2, shape, shape, NULL,
                                  "[" TRANSPOSE "," BYTES "," GZIP "]");
    OK(&t, brc_array_write(a, NULL, values, sizeof(values), &t.err));
    brc_array_free(a);
    OK(&t, brc_config_set(t.repo, "verify", "full", &t.err));
    scenario_reopen(&t); /* no memory has it decoded */
    OK(&t, brc_array_open(&a, t.session, "/x", &t.err));
    OK(&t, brc_sel_parse(&sel, a, "[3, 5:7]", &t.err));
    OK(&t, brc_array_read(a, &sel, found, sizeof(found), &t.err));
    ck_assert_int_eq(found[0], 3 * 32 + 5);
    ck_assert_int_eq(found[1], 3 * 32 + 6);
    brc_array_free(a);
}
