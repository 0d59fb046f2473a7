/* Importing a stream: what it makes, and what of a hostile one is refused. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../../src/breccia.h"
#include "../../src/xfer/stream/stream_in.h"
#include "../kit/exchange_kit.h"
#include "../kit/tar_kit.h"

Suite *stream_suite(void);

#define OK(expr) ck_assert_int_eq((expr), BRC_OK)
#define GROUP "{\"zarr_format\":3,\"node_type\":\"group\"}"
#define ARRAY_OF(shape, chunk, codecs)                                                             \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":" shape ",\"data_type\":\"uint8\","      \
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":" chunk "}},"         \
    "\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":{\"separator\":\"/\"}},"       \
    "\"fill_value\":0,\"codecs\":" codecs "}"
#define ARRAY ARRAY_OF("[4,5]", "[2,3]", "[{\"name\":\"bytes\"}]")

static exchange_kit kit;
static brc_buf tar;

static void begin(void)
{
    exchange_start(&kit);
    tar = (brc_buf)BRC_BUF_INIT;
}

static void end(void)
{
    brc_buf_dispose(&tar);
    exchange_stop(&kit);
}

/* The stream goes through a file's descriptor. */
static int import_tar(const char *path, const brc_xfer_opts *opts)
{
    const char *file = exchange_path(&kit, "stream.tar");
    remove(file);
    OK(brc_file_write(file, tar.data, tar.len, NULL));
    FILE *f = fopen(file, "r");
    int rc = brc_import_stream(kit.session, fileno(f), path, opts, &kit.err);
    fclose(f);
    tar.len = 0;
    return rc;
}

static void import_ok(const char *path, const brc_xfer_opts *opts)
{
    int rc = import_tar(path, opts);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
}

/* It fails with these words, and nothing is left of it. */
static void import_fails(const char *path, int code, const char *words)
{
    int clean = 0, rc = import_tar(path, NULL);
    ck_assert_msg(rc == code && strstr(kit.err.message, words), "%d: %s (not '%s')", rc,
                  rc < 0 ? kit.err.message : "imported", words);
    OK(brc_session_clean(&clean, kit.session, NULL));
    ck_assert_int_eq(clean, 1);
}

static void good_members(void)
{
    tar_kit_file(&tar, "zarr.json", GROUP);
    tar_kit_file(&tar, "a/zarr.json", ARRAY);
    tar_kit_file(&tar, "g/zarr.json", GROUP);
    tar_kit_file(&tar, "g/b/zarr.json", ARRAY);
    tar_kit_file(&tar, "a/c/0/0", "\1\2\3\6\7\10");
    tar_kit_file(&tar, "a/c/1/1", "xyzXYZ");
    tar_kit_file(&tar, "g/b/c/0/1", "qwerty");
}

static void has_elements(const char *path, const char *want)
{
    uint8_t *got = exchange_elements(kit.session, path, 20);
    ck_assert_msg(memcmp(got, want, 20) == 0, "%s: %.20s", path, (char *)got);
    free(got);
}

static int kind_at(const char *path)
{
    int kind = -1;
    OK(brc_node_kind(&kind, kit.session, path, &kit.err));
    return kind;
}

static const char a_elements[] = "\1\2\3\0\0\6\7\10\0\0\0\0\0xy\0\0\0XY";
static const char b_elements[] = "\0\0\0qw\0\0\0rt\0\0\0\0\0\0\0\0\0";

/* ---- good streams -------------------------------------------------------------------- */

START_TEST(nodes_and_chunks_come_in)
{
    good_members();
    tar_kit_end(&tar);
    import_ok(NULL, NULL);
    ck_assert_int_eq(kind_at("/g"), BRC_GROUP);
    has_elements("/a", a_elements);
    has_elements("/g/b", b_elements);
}
END_TEST

START_TEST(documents_may_come_in_any_order_before_chunks)
{
    tar_kit_file(&tar, "g/b/zarr.json", ARRAY);
    tar_kit_file(&tar, "a/zarr.json", ARRAY);
    tar_kit_file(&tar, "g/zarr.json", GROUP);
    tar_kit_file(&tar, "zarr.json", GROUP);
    tar_kit_file(&tar, "a/c/0/0", "\1\2\3\6\7\10");
    tar_kit_file(&tar, "g/b/c/0/1", "qwerty");
    tar_kit_file(&tar, "a/c/1/1", "xyzXYZ"); /* and arrays may take turns */
    tar_kit_file(&tar, "late/zarr.json", GROUP);
    tar_kit_file(&tar, "late/a/zarr.json", ARRAY);
    tar_kit_file(&tar, "late/a/c/0/1", "qwerty");
    tar_kit_end(&tar);
    import_ok("/deep/er", NULL);
    has_elements("/deep/er/a", a_elements);
    has_elements("/deep/er/g/b", b_elements);
    has_elements("/deep/er/late/a", b_elements);
}
END_TEST

START_TEST(an_array_may_be_the_root)
{
    tar_kit_file(&tar, "zarr.json", ARRAY);
    tar_kit_file(&tar, "c/0/1", "qwerty");
    tar_kit_end(&tar);
    brc_buf copy = BRC_BUF_INIT;
    OK(brc_buf_append(&copy, tar.data, tar.len, NULL));
    import_fails(NULL, BRC_EINVAL, "a stream has no name");
    OK(brc_buf_append(&tar, copy.data, copy.len, NULL));
    import_ok("/x", NULL);
    has_elements("/x", b_elements);
    brc_buf_dispose(&copy);
}
END_TEST

START_TEST(nodes_are_left_out)
{
    const char *const out[] = { "g", "/no" };
    uint8_t was[2] = { 0, 0 };
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    opts.exclude = out;
    opts.nexclude = 2;
    opts.excluded = was;
    good_members();
    tar_kit_end(&tar);
    import_ok(NULL, &opts);
    ck_assert_int_eq(kind_at("/g"), 0);
    has_elements("/a", a_elements);
    ck_assert_int_eq(was[0], 1);
    ck_assert_int_eq(was[1], 0);
}
END_TEST

START_TEST(chunks_are_encoded_anew)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    brc_array *a;
    opts.codecs_json = "[{\"name\":\"bytes\"},{\"name\":\"crc32c\"}]";
    good_members();
    tar_kit_end(&tar);
    import_ok(NULL, &opts);
    has_elements("/a", a_elements);
    has_elements("/g/b", b_elements);
    OK(brc_array_open(&a, kit.session, "/a", NULL));
    ck_assert_ptr_nonnull(strstr(brc_array_describe(a)->codecs_json, "crc32c"));
    brc_array_free(a);
}
END_TEST

static uint64_t last_total, last_done;
static unsigned calls;

static int note_progress(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    (void)ctx;
    ck_assert_str_eq(phase, "import");
    if (calls++ > 0) {
        ck_assert(total == last_total || last_total == 0); /* until the first chunk */
        ck_assert_uint_ge(done, last_done);
    }
    ck_assert(total > 0 || done == 0);
    last_total = total;
    last_done = done;
    return 0;
}

START_TEST(progress_has_the_total)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo;
    opts.flags = BRC_OPEN_CREATE;
    opts.progress = note_progress;
    good_members();
    tar_kit_end(&tar);
    OK(brc_open(&repo, exchange_path(&kit, "p.brc"), &opts, &kit.err));
    brc_session_free(kit.session);
    OK(brc_session_open(&kit.session, repo, NULL, BRC_SESSION_WRITE, &kit.err));
    calls = 0;
    import_ok(NULL, NULL);
    ck_assert_uint_gt(calls, 1);
    ck_assert_uint_eq(last_total, 40);
    ck_assert_uint_eq(last_done, 40);
    brc_free(repo);
}
END_TEST

/* ---- hostile streams ----------------------------------------------------------------- */

START_TEST(what_contradicts_itself_is_refused)
{
    tar_kit_file(&tar, "zarr.json", GROUP);
    tar_kit_file(&tar, "a/zarr.json", ARRAY);
    tar_kit_file(&tar, "a/zarr.json", ARRAY);
    tar_kit_end(&tar);
    import_fails(NULL, BRC_EINVAL, "two documents");

    good_members();
    tar_kit_file(&tar, "a/zarr.json", ARRAY);
    tar_kit_end(&tar);
    import_fails(NULL, BRC_EEXISTS, "a/zarr.json: it comes twice");

    good_members();
    tar_kit_file(&tar, "zarr.json", GROUP);
    tar_kit_end(&tar);
    import_fails(NULL, BRC_EEXISTS, "zarr.json: / is there already");

    good_members();
    tar_kit_file(&tar, "a/c/1/1", "xyzXYZ");
    tar_kit_end(&tar);
    import_fails(NULL, BRC_EINVAL, "'a/c/1/1' comes twice");

    good_members();
    tar_kit_file(&tar, "./a/c/0/0", "\1\2\3\6\7\10");
    tar_kit_end(&tar);
    import_fails(NULL, BRC_EINVAL, "'a/c/0/0' comes twice");

    tar_kit_file(&tar, "zarr.json", ARRAY);
    tar_kit_file(&tar, "x/zarr.json", GROUP);
    tar_kit_end(&tar);
    import_fails("/x", BRC_EINVAL, "/x is an array");
}
END_TEST

START_TEST(what_belongs_nowhere_is_refused)
{
    static const struct {
        const char *member, *words;
    } bad[] = {
        { "b/c/0/0", "'b/c/0/0' is neither a document nor a chunk" },
        { "g/c/0/0", "is neither a document nor a chunk" },
        { "g/nothing/c/0/0", "is neither a document nor a chunk" },
        { "README", "is neither a document nor a chunk" },
        { "a/c/2/0", "lies outside the grid" },
        { "a/c/0/18446744073709551615", "lies outside the grid" },
        { "a/c/0/18446744073709551616", "is no chunk key" },
        { "a/c/0", "is no chunk key" },
        { "a/c/00/1", "is no chunk key" },
        { "a/c/0/0/0", "is no chunk key" },
        { "a/0.0", "is no chunk key" },
        { "a/.DS_Store", "is no chunk key" },
        { "v2/.zarray", "Zarr v2" },
        { ".zgroup", "Zarr v2" },
        { "g/b/c/0/zarr.json", "is an array" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        good_members();
        tar_kit_file(&tar, bad[i].member, i + 1 < sizeof(bad) / sizeof(bad[0]) ? "qwerty" : GROUP);
        tar_kit_end(&tar);
        import_fails(NULL, BRC_EINVAL, bad[i].words);
    }
}
END_TEST

START_TEST(chunks_come_behind_their_documents)
{
    tar_kit_file(&tar, "zarr.json", GROUP);
    tar_kit_file(&tar, "a/c/0/0", "qwerty");
    tar_kit_file(&tar, "a/zarr.json", ARRAY);
    tar_kit_end(&tar);
    import_fails(NULL, BRC_EINVAL, "comes before its chunks");
}
END_TEST

START_TEST(bad_documents_and_chunks_are_refused)
{
    static const struct {
        const char *member, *text, *words;
    } bad[] = {
        { "b/zarr.json", "", "b/zarr.json" },
        { "b/zarr.json", "{", "b/zarr.json" },
        { "b/zarr.json", "[]", "b/zarr.json" },
        { "b/zarr.json", "{\"zarr_format\":2}", "b/zarr.json" },
        { "b/zarr.json", "{\"zarr_format\":3,\"node_type\":\"array\"}", "b/zarr.json" },
        { "__b/zarr.json", GROUP, "__b/zarr.json" },
        { "b/.../zarr.json", GROUP, "..." },
        { "a/c/0/1", "short", "chunk (0,1)" },
        { "a/c/0/1", "too long", "chunk (0,1)" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        good_members();
        tar_kit_file(&tar, bad[i].member, bad[i].text);
        tar_kit_end(&tar);
        int rc = import_tar(NULL, NULL), clean = 0;
        ck_assert_msg(rc < 0 && strstr(kit.err.message, bad[i].words), "%zu: %d %s", i, rc,
                      kit.err.message);
        ck_assert_ptr_nonnull(strstr(kit.err.message, "the stream: "));
        OK(brc_session_clean(&clean, kit.session, NULL));
        ck_assert_int_eq(clean, 1);
    }
}
END_TEST

START_TEST(documents_are_bounded)
{
    tar_kit_file(&tar, "zarr.json", GROUP);
    tar_kit_member(&tar, '0', "a/zarr.json", NULL, (uint64_t)1 << 30, "{", 1);
    tar_kit_end(&tar);
    import_fails(NULL, BRC_ELIMIT, "'a/zarr.json' is longer than");
}
END_TEST

START_TEST(a_stream_without_a_hierarchy_is_refused)
{
    tar_kit_end(&tar);
    import_fails(NULL, BRC_EINVAL, "no zarr.json");
    tar_kit_file(&tar, "a/zarr.json", ARRAY);
    tar_kit_end(&tar);
    import_fails(NULL, BRC_EINVAL, "no zarr.json");
    OK(brc_buf_text(&tar, "this is not a tar stream at all", NULL));
    import_fails(NULL, BRC_EINVAL, "truncated");
    good_members();
    import_fails(NULL, BRC_EINVAL, "truncated");
}
END_TEST

START_TEST(what_is_there_is_safe)
{
    good_members();
    tar_kit_end(&tar);
    import_ok("/old", NULL);
    brc_commit_opts commit = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    commit.message = "m";
    OK(brc_session_commit(&id, kit.session, &commit, &kit.err));

    good_members();
    tar_kit_end(&tar);
    import_fails("/old", BRC_EEXISTS, "/old is already there");
    good_members();
    tar_kit_end(&tar);
    import_fails("/", BRC_EEXISTS, "/ is there already");
    tar_kit_file(&tar, "old/a/c/0/1", "qwerty");
    tar_kit_end(&tar);
    import_fails("/", BRC_EINVAL, "no zarr.json");
    tar_kit_file(&tar, "zarr.json", GROUP);
    tar_kit_file(&tar, "old/a/c/0/1", "qwerty");
    tar_kit_end(&tar);
    import_fails("/", BRC_EEXISTS, "/ is there already");
    has_elements("/old/a", a_elements);
}
END_TEST

Suite *stream_suite(void)
{
    Suite *suite = suite_create("stream");
    TCase *good = tcase_create("good"), *hostile = tcase_create("hostile");
    tcase_add_checked_fixture(good, begin, end);
    tcase_add_checked_fixture(hostile, begin, end);
    tcase_add_test(good, nodes_and_chunks_come_in);
    tcase_add_test(good, documents_may_come_in_any_order_before_chunks);
    tcase_add_test(good, an_array_may_be_the_root);
    tcase_add_test(good, nodes_are_left_out);
    tcase_add_test(good, chunks_are_encoded_anew);
    tcase_add_test(good, progress_has_the_total);
    tcase_add_test(hostile, what_contradicts_itself_is_refused);
    tcase_add_test(hostile, what_belongs_nowhere_is_refused);
    tcase_add_test(hostile, chunks_come_behind_their_documents);
    tcase_add_test(hostile, bad_documents_and_chunks_are_refused);
    tcase_add_test(hostile, documents_are_bounded);
    tcase_add_test(hostile, a_stream_without_a_hierarchy_is_refused);
    tcase_add_test(hostile, what_is_there_is_safe);
    suite_add_tcase(suite, good);
    suite_add_tcase(suite, hostile);
    return suite;
}
