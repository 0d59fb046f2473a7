/* Encodings, refs with their log, and drafts: the rows beside the objects. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kit/seal.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(store_refs);

STORE_KIT_FIXTURE(kit)

#define OK(call) KIT_OK(&kit, call)
#define ONE(row) (&(brc_draft_stack){.n = 1, .node = {row}})
#define FAILS(code, words, call) KIT_FAILS(&kit, code, words, call)
#define SAME_ID(a, b) ck_assert_int_eq(brc_oid_cmp((a), (b)), 0)

static void begin(void)
{
    OK(brc_store_begin(kit.store, &kit.err));
}

static void end(void)
{
    OK(brc_store_end(kit.store, 1, &kit.err));
}

static int64_t ask(const char *sql)
{
    return store_kit_ask(&kit, sql);
}

/* ---- encodings --------------------------------------------------------------------- */

static int64_t intern(const char *spec)
{
    int64_t id = 0;
    begin();
    OK(brc_encoding_intern(kit.store, spec, &id, &kit.err));
    end();
    return id;
}

CASE("store_refs", .setup = kit_start, .teardown = kit_stop);

TEST(an_encoding_is_stored_once)
{
    static const char a[] =
        "{\"codecs\":[{\"name\":\"bytes\"}],\"data_type\":\"uint8\",\"shape\":[4]}";
    static const char b[] =
        "{\"codecs\":[{\"name\":\"bytes\"}],\"data_type\":\"uint8\",\"shape\":[5]}";
    const brc_chain *chain, *again;
    int64_t id;
    OK(brc_encoding_find(kit.store, a, &id, &kit.err));
    ck_assert_int_eq(id, -1);
    ck_assert_int_eq(intern(a), 1);
    ck_assert_int_eq(intern(b), 2);
    ck_assert_int_eq(intern(a), 1);
    store_kit_reopen(&kit);
    OK(brc_encoding_find(kit.store, b, &id, &kit.err));
    ck_assert_int_eq(id, 2);
    ck_assert_int_eq(intern(b), 2);
    ck_assert_int_eq(ask("SELECT count(*) FROM encoding"), 2);
    OK(brc_encoding_chain(kit.store, 0, &chain, &kit.err));
    ck_assert_ptr_null(chain);
    OK(brc_encoding_chain(kit.store, 2, &chain, &kit.err));
    ck_assert_uint_eq(brc_chain_describe(chain)->decoded_len, 5);
    OK(brc_encoding_chain(kit.store, 2, &again, &kit.err));
    ck_assert_ptr_eq(chain, again);
    FAILS(BRC_ECORRUPT, "encoding 3 is missing",
          brc_encoding_chain(kit.store, 3, &chain, &kit.err));
    FAILS(BRC_ECORRUPT, "missing", brc_encoding_chain(kit.store, INT64_MIN, &chain, &kit.err));
}

LOOP(a_strange_encoding_is_an_error_where_it_is_used, 0, 10)
{
    static const struct {
        const char *spec;
        int code;
    } strange[] = {
        { "", BRC_ECORRUPT },
        { "{", BRC_ECORRUPT },
        { "[]", BRC_ECORRUPT },
        { "{\"codecs\":[],\"data_type\":\"uint8\"}", BRC_ECORRUPT },
        { "{\"codecs\":[],\"data_type\":\"uint8\",\"shape\":[-1]}", BRC_ECORRUPT },
        { "{\"codecs\":[],\"data_type\":\"uint8\",\"shape\":[1e3]}", BRC_ECORRUPT },
        { "{\"codecs\":[{\"name\":\"bytes\"}],\"data_type\":\"uint8\","
          "\"shape\":[9223372036854775807,9223372036854775807]}", 0 },
        { "{\"codecs\":7,\"data_type\":\"uint8\",\"shape\":[1]}", BRC_ECORRUPT },
        { "{\"codecs\":[{\"name\":\"bytes\"},{\"name\":\"nosuch\"}],\"data_type\":\"uint8\","
          "\"shape\":[4]}", BRC_EUNSUPPORTED },
        { "{\"codecs\":[{\"name\":\"bytes\"}],\"data_type\":\"nosuch\",\"shape\":[4]}",
          BRC_EUNSUPPORTED },
    };
    const brc_chain *chain = NULL;
    char words[64];
    int64_t id = intern(strange[_i].spec);
    int rc = brc_encoding_chain(kit.store, id, &chain, &kit.err);
    ck_assert_int_lt(rc, 0);
    ck_assert_msg(strange[_i].code == 0 || strange[_i].code == rc, "%d: %s", rc, kit.err.message);
    ck_assert_int_eq(kit.err.code, rc);
    ck_assert_ptr_null(chain);
    snprintf(words, sizeof(words), "encoding %d", (int)id);
    ck_assert_msg(strstr(kit.err.message, words) != NULL, "%s", kit.err.message);
    rc = brc_encoding_chain(kit.store, id, &chain, &kit.err); /* again, from memory */
    ck_assert_int_lt(rc, 0);
    ck_assert_int_eq(
        intern("{\"codecs\":[{\"name\":\"bytes\"}],\"data_type\":\"uint8\",\"shape\":[4]}"), 2);
}

/* Specifications that mean the same are one row, however they were written down. */
TEST(B29_equal_specifications_are_one_encoding)
{
    static const char *const spellings[] = {
        "[\"bytes\",{\"name\":\"zstd\",\"configuration\":{\"level\":3,\"checksum\":false}}]",
        "[{\"name\":\"bytes\"},{\"configuration\":{\"checksum\":false,\"level\":3},\"name\":"
        "\"zstd\"}]",
        (" [ {\"name\" : \"bytes\", \"configuration\" : { } }, "
         "{\"name\":\"zstd\",\"configuration\":{\"level\":3,\"checksum\":false}} ] "),
    };
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    uint64_t shape = 4000;
    uint8_t data[4000];
    breccia *repo;
    brc_session *s;
    store_kit_close(&kit);
    OK(brc_open(&repo, kit.file, &opts, &kit.err));
    OK(brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &kit.err));
    for (int i = 0; i < 4; i++) {
        brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
        brc_array *a;
        char path[16];
        snprintf(path, sizeof(path), "/a%d", i);
        spec.ndim = 1;
        spec.shape = spec.chunk = &shape;
        spec.dtype = "uint8";
        spec.codecs_json = i < 3 ? spellings[i]
                                 : "[\"bytes\",{\"name\":\"zstd\",\"configuration\":{\"level\":4,"
                                   "\"checksum\":false}}]";
        OK(brc_array_create(&a, s, path, &spec, &kit.err));
        memset(data, i + 1, sizeof(data));
        OK(brc_array_write(a, NULL, data, sizeof(data), &kit.err));
        brc_array_free(a);
        brc_session_free(s); /* another process, as good as */
        brc_free(repo);
        OK(brc_open(&repo, kit.file, &opts, &kit.err));
        OK(brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &kit.err));
    }
    brc_session_free(s);
    brc_free(repo);
    ck_assert_int_eq(ask("SELECT count(*) FROM encoding"), 2);
    ck_assert_int_eq(ask("SELECT count(*) FROM object WHERE kind=1"), 4);
    ck_assert_int_eq(ask("SELECT max(n) FROM (SELECT count(*) AS n FROM object WHERE kind=1"
                         " GROUP BY encoding)"), 3);
}

/* ---- refs -------------------------------------------------------------------- */

TEST(a_ref_moves_only_from_where_it_is_expected)
{
    brc_oid a = store_kit_id(1), b = store_kit_id(2), got;
    int has = -1;
    begin();
    /* made where there must be none */
    OK(brc_ref_put(kit.store, "heads/x", &a, NULL, "branch", 1, NULL, 10, &kit.err));
    FAILS(BRC_ESTALE, "branch 'x' has moved",
          brc_ref_put(kit.store, "heads/x", &b, NULL, "commit", 1, NULL, 11, &kit.err));
    FAILS(BRC_ESTALE, "has moved",
          brc_ref_put(kit.store, "heads/x", &b, NULL, "commit", 1, &b, 12, &kit.err));
    FAILS(BRC_ESTALE, "has moved",
          brc_ref_put(kit.store, "heads/none", &b, NULL, "commit", 1, &a, 13, &kit.err));
    OK(brc_ref_get(kit.store, "heads/x", &has, &got, &kit.err));
    ck_assert_int_eq(has, 1);
    SAME_ID(&got, &a);
    OK(brc_ref_put(kit.store, "heads/x", &b, NULL, "commit", 1, &a, 14, &kit.err));
    OK(brc_ref_get(kit.store, "heads/x", &has, &got, &kit.err));
    SAME_ID(&got, &b);
    /* a branch without a commit: "none" is what is expected of it */
    FAILS(BRC_ESTALE, "",
          brc_ref_put(kit.store, "heads/main", &a, NULL, "commit", 1, &a, 15, &kit.err));
    OK(brc_ref_put(kit.store, "heads/main", &a, NULL, "commit", 1, NULL, 16, &kit.err));
    end();
    ck_assert_int_eq(ask("SELECT count(*) FROM oplog"), 4); /* failures write no row */
    ck_assert_int_eq(ask("SELECT count(*) FROM oplog WHERE name='heads/x' AND op='commit'"
                         " AND hex(old) LIKE '0101%' AND hex(new) LIKE '0202%' AND time_us=14"), 1);
    ck_assert_int_eq(ask("SELECT old IS NULL FROM oplog WHERE name='heads/main' AND op='commit'"),
                     1);
}

TEST(refs_are_listed_by_name_and_deleted)
{
    brc_oid a = store_kit_id(1), got;
    brc_ref_row *rows;
    size_t n;
    int has;
    begin();
    OK(brc_ref_put(kit.store, "tags/v1", &a, "the first", "tag", 0, NULL, 1, &kit.err));
    OK(brc_ref_put(kit.store, "heads/m", NULL, NULL, "branch", 0, NULL, 2, &kit.err));
    OK(brc_ref_put(kit.store, "heads/main/sub", &a, NULL, "branch", 0, NULL, 3, &kit.err));
    end();
    OK(brc_ref_list(kit.store, "", &rows, &n, &kit.err));
    ck_assert_uint_eq(n, 4);
    ck_assert_str_eq(rows[0].name, "heads/m");
    ck_assert_int_eq(rows[0].has_target, 0);
    ck_assert_str_eq(rows[0].message, "");
    ck_assert_str_eq(rows[1].name, "heads/main");
    ck_assert_str_eq(rows[2].name, "heads/main/sub");
    ck_assert_str_eq(rows[3].name, "tags/v1");
    ck_assert_str_eq(rows[3].message, "the first");
    SAME_ID(&rows[3].target, &a);
    brc_ref_rows_free(rows, n);
    OK(brc_ref_list(kit.store, "tags/", &rows, &n, &kit.err));
    ck_assert_uint_eq(n, 1);
    brc_ref_rows_free(rows, n);
    OK(brc_ref_list(kit.store, "tags/v1%", &rows, &n, &kit.err)); /* no pattern */
    ck_assert_uint_eq(n, 0);
    brc_ref_rows_free(rows, n);
    begin();
    OK(brc_ref_drop(kit.store, "tags/v1", 9, &kit.err));
    FAILS(BRC_ENOTFOUND, "there is no tag 'v1' in ",
          brc_ref_drop(kit.store, "tags/v1", 9, &kit.err));
    FAILS(BRC_ENOTFOUND, "there is no branch 'nope' in ",
          brc_ref_drop(kit.store, "heads/nope", 9, &kit.err));
    end();
    FAILS(BRC_ENOTFOUND, "there is no tag 'v1' in ",
          brc_ref_get(kit.store, "tags/v1", &has, &got, &kit.err));
    ck_assert_int_eq(ask("SELECT count(*) FROM oplog WHERE op='delete' AND name='tags/v1'"
                         " AND new IS NULL AND old IS NOT NULL"), 1);
}

TEST(a_ref_s_past_comes_from_the_log)
{
    brc_oid a = store_kit_id(1), b = store_kit_id(2), got;
    begin();
    OK(brc_ref_put(kit.store, "heads/x", NULL, NULL, "branch", 0, NULL, 100, &kit.err));
    OK(brc_ref_put(kit.store, "heads/x", &a, NULL, "commit", 0, NULL, 200, &kit.err));
    OK(brc_ref_put(kit.store, "heads/x", &b, NULL, "commit", 0, NULL, 300, &kit.err));
    OK(brc_ref_put(kit.store, "heads/x", &a, NULL, "reset", 0, NULL, 300, &kit.err)); /* at once */
    OK(brc_oplog_add(kit.store, "switch", "heads/x", NULL, NULL, 350, &kit.err));
    OK(brc_ref_drop(kit.store, "heads/x", 400, &kit.err));
    OK(brc_ref_put(kit.store, "heads/x", &b, NULL, "branch", 0, NULL, 500, &kit.err));
    end();
    FAILS(BRC_ENOTFOUND, "no commit at that time",
          brc_ref_at(kit.store, "heads/x", 99, &got, &kit.err));
    FAILS(BRC_ENOTFOUND, "no commit at that time",
          brc_ref_at(kit.store, "heads/x", 199, &got, &kit.err));
    FAILS(BRC_ENOTFOUND, "no commit at that time",
          brc_ref_at(kit.store, "heads/y", 500, &got, &kit.err));
    OK(brc_ref_at(kit.store, "heads/x", 200, &got, &kit.err));
    SAME_ID(&got, &a);
    OK(brc_ref_at(kit.store, "heads/x", 299, &got, &kit.err));
    SAME_ID(&got, &a);
    OK(brc_ref_at(kit.store, "heads/x", 399, &got, &kit.err)); /* the later of two at one time */
    SAME_ID(&got, &a);
    FAILS(BRC_ENOTFOUND, "no commit", brc_ref_at(kit.store, "heads/x", 450, &got, &kit.err));
    OK(brc_ref_at(kit.store, "heads/x", INT64_MAX, &got, &kit.err));
    SAME_ID(&got, &b);
}

TEST(a_ref_of_a_wrong_form_is_damage)
{
    brc_oid got;
    brc_ref_row *rows;
    size_t n;
    int has;
    store_kit_close(&kit);
    store_kit_sql(&kit, "UPDATE ref SET target=x'0102';" SEAL_REF);
    store_kit_open(&kit);
    FAILS(BRC_ECORRUPT, "malformed", brc_ref_get(kit.store, "heads/main", &has, &got, &kit.err));
    FAILS(BRC_ECORRUPT, "an id is malformed", brc_ref_list(kit.store, "", &rows, &n, &kit.err));
    ck_assert_ptr_null(rows);
}

TEST(the_current_branch_is_a_setting)
{
    const char *branch;
    begin();
    OK(brc_head_set(kit.store, "wh\xc3\xa4t/ever", &kit.err));
    end();
    OK(brc_head_get(kit.store, &branch, &kit.err));
    ck_assert_str_eq(branch, "wh\xc3\xa4t/ever");
    begin();
    OK(brc_head_set(kit.store, "main", &kit.err));
    OK(brc_head_get(kit.store, &branch, &kit.err));
    ck_assert_str_eq(branch, "main");
    OK(brc_store_end(kit.store, 0, &kit.err));
    OK(brc_head_get(kit.store, &branch, &kit.err));
    ck_assert_str_eq(branch, "wh\xc3\xa4t/ever");
}

/* ---- drafts ------------------------------------------------------------------ */

static int64_t draft, other; /* of the branches main and other */

static void start_draft(int64_t *id, const char *branch, const brc_oid *base)
{
    *id = store_kit_draft(&kit, branch, base);
}

/* A row with one chunk, whose id tells which it was. */
static int64_t draft_row(const char *path, uint8_t seed)
{
    int64_t node = 0;
    brc_oid id = store_kit_id(seed);
    OK(brc_draft_node_put(kit.store, draft, path, &seed, 1, &node, &kit.err));
    OK(brc_draft_chunk_put(kit.store, node, "k", 1, &id, &kit.err));
    return node;
}

/* The paths of all rows, and of each what it was: "/a=1 /a/b=2 ". */
static void draft_is(const char *want)
{
    brc_draft_node *rows;
    size_t n;
    char text[400] = "";
    OK(brc_draft_node_list(kit.store, draft, "/", 1, &rows, &n, &kit.err));
    for (size_t i = 0; i < n; i++) {
        int state = -1;
        brc_oid id;
        size_t at = strlen(text);
        ck_assert(rows[i].entry == NULL || rows[i].entry_len == 1);
        snprintf(text + at, sizeof(text) - at, "%s=%d ", rows[i].path,
                 rows[i].entry != NULL ? rows[i].entry[0] : 0);
        OK(brc_draft_chunk_get(kit.store, ONE(rows[i].node), "k", 1, &state, &id, &kit.err));
        ck_assert_int_eq(state, rows[i].entry != NULL);
        ck_assert(state == 0 || id.bytes[7] == rows[i].entry[0]);
    }
    brc_draft_nodes_free(rows, n);
    ck_assert_str_eq(text, want);
}

static void draft_start(void)
{
    begin();
    start_draft(&draft, "main", NULL);
    draft_row("/", 1);
    draft_row("/a", 2);
    draft_row("/a-b", 3); /* '-' and '0' are the characters beside '/' */
    draft_row("/a/b", 4);
    draft_row("/a/b/c", 5);
    draft_row("/a0", 6);
    draft_row("/ab", 7);
    draft_row("/z", 8);
}

TEST(a_draft_s_rows_are_kept_by_path)
{
    brc_draft_node row, *rows;
    size_t n;
    int found, any;
    brc_draft_head shared;
    draft_start();
    draft_is("/=1 /a=2 /a-b=3 /a/b=4 /a/b/c=5 /a0=6 /ab=7 /z=8 ");
    OK(brc_draft_node_list(kit.store, draft, "/a", 0, &rows, &n, &kit.err));
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(rows[0].path, "/a/b");
    ck_assert_str_eq(rows[1].path, "/a/b/c");
    brc_draft_nodes_free(rows, n);
    OK(brc_draft_node_list(kit.store, draft, "/", 0, &rows, &n, &kit.err));
    ck_assert_uint_eq(n, 7);
    brc_draft_nodes_free(rows, n);
    OK(brc_draft_node_list(kit.store, other, "/", 1, &rows, &n, &kit.err));
    ck_assert_uint_eq(n, 0);
    brc_draft_nodes_free(rows, n);
    OK(brc_draft_node_get(kit.store, draft, "/a/b", &found, &row, &kit.err));
    ck_assert_int_eq(found, 1);
    ck_assert_uint_eq(row.entry_len, 1);
    int64_t number = row.node, again = 0;
    free(row.entry);
    /* set again: the same row, and its chunks stay */
    OK(brc_draft_node_put(kit.store, draft, "/a/b", NULL, 0, &again, &kit.err));
    ck_assert_int_eq(again, number);
    OK(brc_draft_node_get(kit.store, draft, "/a/b", &found, &row, &kit.err));
    ck_assert_ptr_null(row.entry);
    OK(brc_draft_chunk_any(kit.store, ONE(number), &any, &kit.err));
    ck_assert_int_eq(any, 1);
    OK(brc_draft_node_get(kit.store, draft, "/nope", &found, &row, &kit.err));
    ck_assert_int_eq(found, 0);
    OK(brc_draft_shared(kit.store, "main", &shared, &kit.err));
    ck_assert_int_eq(shared.id, draft);
    ck_assert_int_eq(shared.has_base, 0);
    end();
}

TEST(moving_takes_what_is_under_it_and_its_chunks)
{
    draft_start();
    OK(brc_draft_node_move(kit.store, draft, "/a", "/z/new", NULL, &kit.err));
    draft_is("/=1 /a-b=3 /a0=6 /ab=7 /z=8 /z/new=2 /z/new/b=4 /z/new/b/c=5 ");
    OK(brc_draft_node_move(kit.store, draft, "/z/new/b", "/a", NULL, &kit.err));
    draft_is("/=1 /a=4 /a-b=3 /a/c=5 /a0=6 /ab=7 /z=8 /z/new=2 ");
    end();
    ck_assert_int_eq(ask("SELECT count(*) FROM draft_chunk"), 8); /* no row was rewritten */
}

TEST(copying_makes_new_rows_with_the_same_chunks)
{
    brc_oid id = store_kit_id(99);
    brc_draft_node row;
    int found, state;
    draft_start();
    OK(brc_draft_node_move(kit.store, draft, "/a", "/y", &(brc_draft_copying){0}, &kit.err));
    draft_is("/=1 /a=2 /a-b=3 /a/b=4 /a/b/c=5 /a0=6 /ab=7 /y=2 /y/b=4 /y/b/c=5 /z=8 ");
    OK(brc_draft_node_get(kit.store, draft, "/y/b", &found, &row, &kit.err));
    free(row.entry);
    OK(brc_draft_chunk_put(kit.store, row.node, "k", 1, &id, &kit.err)); /* the copy's alone */
    OK(brc_draft_node_get(kit.store, draft, "/a/b", &found, &row, &kit.err));
    free(row.entry);
    OK(brc_draft_chunk_get(kit.store, ONE(row.node), "k", 1, &state, &id, &kit.err));
    ck_assert_int_eq(id.bytes[7], 4);
    end();
    ck_assert_int_eq(ask("SELECT count(*) FROM draft_chunk"), 11);
}

TEST(clearing_and_dropping_leave_no_chunk_behind)
{
    brc_oid base = store_kit_id(7);
    brc_draft_head got;
    draft_start();
    OK(brc_draft_node_clear(kit.store, draft, "/a", &kit.err));
    draft_is("/=1 /a-b=3 /a0=6 /ab=7 /z=8 ");
    ck_assert_int_eq(ask("SELECT count(*) FROM draft_chunk"), 0); /* not committed yet */
    start_draft(&other, "other", &base);
    OK(brc_draft_node_put(kit.store, other, "/a", "x", 1, NULL, &kit.err));
    end();
    ck_assert_int_eq(ask("SELECT count(*) FROM draft_chunk"), 5);
    begin();
    OK(brc_draft_delete(kit.store, draft, &kit.err));
    end();
    ck_assert_int_eq(ask("SELECT count(*) FROM draft_chunk"), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM draft_node WHERE draft<>0"), 1);
    OK(brc_draft_shared(kit.store, "main", &got, &kit.err));
    ck_assert_int_eq(got.id, 0);
    begin();
    OK(brc_draft_rename(kit.store, "other", "main", &kit.err));
    end();
    OK(brc_draft_shared(kit.store, "main", &got, &kit.err));
    ck_assert_int_eq(got.id, other);
    ck_assert_int_eq(got.has_base, 1);
    SAME_ID(&got.base, &base);
}

/* ---- a draft's chunks -------------------------------------------------------- */

typedef struct chunk_list {
    char text[300];
} chunk_list;

static int list_chunk(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id,
                      brc_error *err)
{
    chunk_list *list = ctx;
    size_t at = strlen(list->text);
    (void)err;
    snprintf(list->text + at, sizeof(list->text) - at, "%.*s=%d ", (int)key_len,
             key_len > 0 ? (const char *)key : "", id != NULL ? id->bytes[0] : -1);
    return BRC_OK;
}

static int stop_at_chunk(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id,
                         brc_error *err)
{
    (void)ctx;
    (void)key;
    (void)key_len;
    (void)id;
    return brc_fail(err, BRC_EINTERRUPT, "enough");
}

TEST(chunk_rows_are_there_dropped_or_not_there)
{
    brc_oid one = store_kit_id(1), two = store_kit_id(2), got;
    chunk_list list = { "" };
    int64_t node = 0, second = 0;
    int state, any;
    begin();
    start_draft(&draft, "main", NULL);
    OK(brc_draft_node_put(kit.store, draft, "/a", "", 0, &node, &kit.err));
    OK(brc_draft_node_put(kit.store, draft, "/b", "", 0, &second, &kit.err));
    OK(brc_draft_chunk_any(kit.store, ONE(node), &any, &kit.err));
    ck_assert_int_eq(any, 0);
    OK(brc_draft_chunk_put(kit.store, node, "b", 1, &one, &kit.err));
    OK(brc_draft_chunk_put(kit.store, node, "a", 1, NULL, &kit.err));
    OK(brc_draft_chunk_put(kit.store, node, "", 0, &two, &kit.err)); /* of a 0-d array */
    OK(brc_draft_chunk_put(kit.store, node, "ab", 2, &one, &kit.err));
    OK(brc_draft_chunk_put(kit.store, node, "b", 1, &two, &kit.err)); /* again: the later one */
    OK(brc_draft_chunk_put(kit.store, second, "c", 1, &two, &kit.err));
    OK(brc_draft_chunk_each(kit.store, ONE(node), list_chunk, &list, &kit.err));
    ck_assert_str_eq(list.text, "=2 a=-1 ab=1 b=2 ");
    FAILS(BRC_EINTERRUPT, "enough",
          brc_draft_chunk_each(kit.store, ONE(node), stop_at_chunk, NULL, &kit.err));
    OK(brc_draft_chunk_get(kit.store, ONE(node), "", 0, &state, &got, &kit.err));
    ck_assert_int_eq(state, 1);
    SAME_ID(&got, &two);
    OK(brc_draft_chunk_get(kit.store, ONE(node), "a", 1, &state, &got, &kit.err));
    ck_assert_int_eq(state, 2);
    OK(brc_draft_chunk_get(kit.store, ONE(node), "c", 1, &state, &got, &kit.err));
    ck_assert_int_eq(state, 0);
    OK(brc_draft_chunk_clear(kit.store, node, "", 0, &kit.err)); /* one key, the empty one */
    list.text[0] = '\0';
    OK(brc_draft_chunk_each(kit.store, ONE(node), list_chunk, &list, &kit.err));
    ck_assert_str_eq(list.text, "a=-1 ab=1 b=2 ");
    OK(brc_draft_row_clear(kit.store, node, "/a", &kit.err));
    OK(brc_draft_chunk_any(kit.store, ONE(node), &any, &kit.err));
    ck_assert_int_eq(any, 0);
    OK(brc_draft_chunk_any(kit.store, ONE(second), &any, &kit.err));
    ck_assert_int_eq(any, 1);
    end();
}

TEST(a_draft_of_a_wrong_form_is_damage)
{
    brc_oid got;
    brc_draft_head shared;
    int state;
    chunk_list list = { "" };
    store_kit_close(&kit);
    store_kit_sql(&kit, "INSERT INTO draft(kind, state, branch, base, time_us, changes, parts,"
                        " checksum)"
                        " VALUES (1, 1, 'main', 'x', 0, 0, 0, 0);"
                        "INSERT INTO draft_chunk VALUES (1, x'01', x'0203', 0);" SEAL_ALL);
    store_kit_open(&kit);
    FAILS(BRC_ECORRUPT, "an id is malformed",
          brc_draft_shared(kit.store, "main", &shared, &kit.err));
    FAILS(BRC_ECORRUPT, "an id is malformed",
          brc_draft_chunk_get(kit.store, ONE(1), "\1", 1, &state, &got, &kit.err));
    FAILS(BRC_ECORRUPT, "an id is malformed",
          brc_draft_chunk_each(kit.store, ONE(1), list_chunk, &list, &kit.err));
}
