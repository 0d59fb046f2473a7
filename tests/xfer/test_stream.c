/* Importing a stream: what it makes, and what of a hostile one is refused. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../../src/breccia.h"
#include "../../src/xfer/stream/stream_in.h"
#include "../../src/xfer/stream/stream_out.h"
#include "../kit/exchange_kit.h"
#include "../kit/suite.h"
#include "../kit/tar_kit.h"

TEST_SUITE(stream);

#define DO(expr) ck_assert_int_eq((expr), BRC_OK)
#define GROUP "{\"zarr_format\":3,\"node_type\":\"group\"}"
#define ARRAY_OF(shape, chunk, codecs)                                                             \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":" shape ",\"data_type\":\"uint8\","      \
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":" chunk "}},"         \
    "\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":{\"separator\":\"/\"}},"       \
    "\"fill_value\":0,\"codecs\":" codecs "}"
#define ARRAY ARRAY_OF("[4,5]", "[2,3]", "[{\"name\":\"bytes\"}]")

#define LITTLE "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"

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
    DO(brc_file_write(file, tar.data, tar.len, NULL));
    FILE *f = fopen(file, "r");
    int rc = exchange_stream_in(kit.session, fileno(f), path, opts, &kit.err);
    fclose(f);
    tar.len = 0;
    return rc;
}

static void import_ok(const char *path, const brc_xfer_opts *opts)
{
    int rc = import_tar(path, opts);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
}

/* The import fails with these words, and nothing is left of it. */
static void import_fails(const char *path, int code, const char *words)
{
    exchange_failed(&kit, import_tar(path, NULL), code, words);
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

static const char a_elements[] = "\1\2\3\0\0\6\7\10\0\0\0\0\0xy\0\0\0XY";
static const char b_elements[] = "\0\0\0qw\0\0\0rt\0\0\0\0\0\0\0\0\0";

CASE("good", .setup = begin, .teardown = end);

/* ---- good streams -------------------------------------------------------------------- */

TEST(nodes_and_chunks_come_in)
{
    good_members();
    tar_kit_end(&tar);
    import_ok(NULL, NULL);
    ck_assert_int_eq(exchange_node(&kit, "/g"), BRC_GROUP);
    exchange_has(&kit, "/a", a_elements, 20);
    exchange_has(&kit, "/g/b", b_elements, 20);
}

TEST(documents_may_come_in_any_order_before_chunks)
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
    exchange_has(&kit, "/deep/er/a", a_elements, 20);
    exchange_has(&kit, "/deep/er/g/b", b_elements, 20);
    exchange_has(&kit, "/deep/er/late/a", b_elements, 20);
}

TEST(an_array_may_be_the_root)
{
    tar_kit_file(&tar, "zarr.json", ARRAY);
    tar_kit_file(&tar, "c/0/1", "qwerty");
    tar_kit_end(&tar);
    brc_buf copy = BRC_BUF_INIT;
    DO(brc_buf_append(&copy, tar.data, tar.len, NULL));
    import_fails(NULL, BRC_EINVAL, "a stream has no name");
    DO(brc_buf_append(&tar, copy.data, copy.len, NULL));
    import_ok("/x", NULL);
    exchange_has(&kit, "/x", b_elements, 20);
    brc_buf_dispose(&copy);
}

TEST(nodes_are_left_out)
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
    ck_assert_int_eq(exchange_node(&kit, "/g"), 0);
    exchange_has(&kit, "/a", a_elements, 20);
    ck_assert_int_eq(was[0], 1);
    ck_assert_int_eq(was[1], 0);
}

TEST(chunks_are_encoded_anew)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    brc_array *a;
    opts.codecs_json = "[{\"name\":\"bytes\"},{\"name\":\"crc32c\"}]";
    good_members();
    tar_kit_end(&tar);
    import_ok(NULL, &opts);
    exchange_has(&kit, "/a", a_elements, 20);
    exchange_has(&kit, "/g/b", b_elements, 20);
    DO(brc_array_open(&a, kit.session, "/a", NULL));
    ck_assert_ptr_nonnull(strstr(brc_array_describe(a)->codecs_json, "crc32c"));
    brc_array_free(a);
}

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

TEST(progress_has_the_total)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo;
    opts.flags = BRC_OPEN_CREATE;
    opts.progress = note_progress;
    good_members();
    tar_kit_end(&tar);
    DO(brc_open(&repo, exchange_path(&kit, "p.brc"), &opts, &kit.err));
    brc_session_free(kit.session);
    DO(brc_session_open(&kit.session, repo, NULL, BRC_SESSION_WRITE, &kit.err));
    calls = 0;
    import_ok(NULL, NULL);
    ck_assert_uint_gt(calls, 1);
    ck_assert_uint_eq(last_total, 40);
    ck_assert_uint_eq(last_done, 40);
    brc_free(repo);
}

static void commit_to(brc_oid *root, brc_session *s, breccia *repo)
{
    const brc_commit *commit;
    brc_iter *log;
    int rc = scenario_commit_of(&kit, s, "m", NULL);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    DO(brc_log(&log, repo, NULL, NULL, &kit.err));
    ck_assert_int_eq(brc_next(log, &commit, &kit.err), 1);
    *root = commit->root;
    brc_iter_free(log);
}

static void new_array_with_gaps(const char *path, const char *dtype, const char *codecs,
                                const char *keys, int sharded)
{
    static const uint64_t shape[2] = { 30, 17 }, chunk[2] = { 4, 3 }, shard[2] = { 8, 9 };
    static const char *const texts[] = { "one", "", "grün" };
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    brc_sel part = BRC_SEL_INIT;
    uint8_t bytes[30 * 17 * 8];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 7 % 61);
    spec.ndim = 2;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.shard = sharded ? shard : NULL;
    spec.dtype = dtype;
    spec.codecs_json = codecs;
    spec.chunk_key_encoding = keys;
    spec.attrs_json = "{\"units\":\"K\"}";
    DO(brc_array_create(&a, kit.session, path, &spec, &kit.err));
    DO(brc_sel_parse(&part, a, "3:22,:11", &kit.err)); /* some chunks are absent */
    if (strcmp(dtype, "string") == 0) {
        brc_buf elements = BRC_BUF_INIT;
        for (size_t i = 0; i < 19 * 11; i++) {
            uint8_t len[4] = { (uint8_t)strlen(texts[i % 3]), 0, 0, 0 };
            DO(brc_buf_append(&elements, len, 4, NULL));
            DO(brc_buf_text(&elements, texts[i % 3], NULL));
        }
        DO(brc_array_write(a, &part, elements.data, elements.len, &kit.err));
        brc_buf_dispose(&elements);
    } else {
        DO(brc_array_write(a, &part, bytes, 19 * 11 * brc_array_describe(a)->item_size, &kit.err));
    }
    brc_array_free(a);
}

/* Through a pipe, from one repository into another: the same snapshot. */
static void round_trip(const char *path, brc_oid *root)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo;
    brc_session *s;
    char file[600];
    snprintf(file, sizeof(file), "%s", exchange_path(&kit, "out.tar"));
    FILE *f = fopen(file, "w+");
    DO(exchange_stream_out(kit.session, path, fileno(f), NULL, &kit.err));
    rewind(f);
    remove(exchange_path(&kit, "copy.brc"));
    opts.flags = BRC_OPEN_CREATE;
    DO(brc_open(&repo, exchange_path(&kit, "copy.brc"), &opts, &kit.err));
    DO(brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &kit.err));
    int rc = exchange_stream_in(s, fileno(f), path, NULL, &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    commit_to(root, s, repo);
    brc_session_free(s);
    brc_free(repo);
    fclose(f);
}

TEST(an_export_comes_in_as_the_same_snapshot)
{
    brc_oid root, copy;
    brc_array *a;
    new_array_with_gaps("/plain", "float32", NULL, "default", 0);
    new_array_with_gaps("/g/dots", "int16", NULL, "v2", 0);
    new_array_with_gaps("/g/shards", "int16", NULL, "default", 1);
    new_array_with_gaps("/grün/text", "string", NULL, "default", 0);
    new_array_with_gaps("/g/raw", "uint8", "[{\"name\":\"bytes\"}]", "default", 0);
    new_array_with_gaps("/mixed", "int32", LITTLE "]", "default", 0);
    DO(brc_group_create(kit.session, "/empty", "{\"a\":[1,2]}", &kit.err));
    DO(brc_array_open(&a, kit.session, "/mixed", &kit.err)); /* stored otherwise than it says */
    DO(brc_array_set_codecs(a, LITTLE ",{\"name\":\"zstd\"}]", 0, &kit.err));
    brc_array_free(a);
    commit_to(&root, kit.session, kit.repo);
    round_trip(NULL, &copy);
    ck_assert_mem_eq(root.bytes, copy.bytes, sizeof(root.bytes));
}

TEST(an_export_has_documents_first_and_no_rest)
{
    brc_tar_member member;
    brc_tar_in *in;
    int chunks = 0, docs = 0, rc;
    new_array_with_gaps("/b/x", "uint8", NULL, "default", 0);
    new_array_with_gaps("/a", "uint8", NULL, "default", 0);
    FILE *f = fopen(exchange_path(&kit, "out.tar"), "w+");
    DO(exchange_stream_out(kit.session, "/", fileno(f), NULL, &kit.err));
    rewind(f);
    DO(brc_tar_in_open_fd(&in, fileno(f), "it", &kit.err));
    while ((rc = brc_tar_next(in, &member, &kit.err)) > 0) {
        int is_doc = strstr(member.name, "zarr.json") != NULL;
        ck_assert(!is_doc || chunks == 0);
        docs += is_doc;
        chunks += !is_doc;
    }
    ck_assert_int_eq(rc, 0);
    ck_assert_int_eq(docs, 4);
    ck_assert_int_gt(chunks, 4);
    brc_tar_in_free(in);
    fclose(f);
}

TEST(a_reader_that_leaves_an_export_is_an_error)
{
    int fds[2];
    new_array_with_gaps("/a", "float64", LITTLE "]", "default", 0);
    ck_assert_int_eq(pipe(fds), 0);
    close(fds[0]);
    ck_assert_int_eq(exchange_stream_out(kit.session, NULL, fds[1], NULL, &kit.err), BRC_EIO);
    ck_assert_ptr_nonnull(strstr(kit.err.message, "the stream"));
    close(fds[1]);
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    opts.format = "npy";
    ck_assert_int_eq(exchange_stream_out(kit.session, NULL, 1, &opts, &kit.err), BRC_EINVAL);
    ck_assert_int_eq(exchange_stream_out(kit.session, "/none", 1, NULL, &kit.err), BRC_ENOTFOUND);
}

/* Decoded: chunks of shards one by one, whatever codecs the array has. */
TEST(transport_is_decoded)
{
    brc_buf stream = BRC_BUF_INIT, bytes = BRC_BUF_INIT;
    brc_tar_sink sink = tar_kit_sink(&stream);
    brc_tar_member member;
    brc_tar_out *out;
    brc_tar_in *in;
    int rc, chunks = 0;
    new_array_with_gaps("/s", "int16", NULL, "default", 1);
    DO(brc_tar_out_open(&out, &sink, "it", &kit.err));
    rc = brc_stream_export(kit.session, "/s", out, &(brc_stream_out_opts){ .transport = 1 },
                           &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    brc_tar_out_free(out);
    tar_kit_bytes rest = { stream.data, stream.len, 0 };
    brc_tar_source source = tar_kit_source(&rest);
    DO(brc_tar_in_open(&in, &source, "it", &kit.err));
    while ((rc = brc_tar_next(in, &member, &kit.err)) > 0) {
        bytes.len = 0;
        DO(brc_tar_read(in, 1 << 20, &bytes, &kit.err));
        if (strcmp(member.name, "zarr.json") == 0) {
            DO(brc_buf_terminate(&bytes, NULL));
            ck_assert_ptr_nonnull(strstr((char *)bytes.data, "breccia_export"));
            ck_assert_ptr_nonnull(strstr((char *)bytes.data, "sharding_indexed"));
        } else {
            ck_assert_uint_eq(bytes.len, 4 * 3 * 2);
            chunks++;
        }
    }
    ck_assert_int_eq(rc, 0);
    ck_assert_int_eq(chunks, 6 * 4);
    brc_tar_in_free(in);
    brc_buf_dispose(&bytes);
    brc_buf_dispose(&stream);
}

CASE("hostile", .setup = begin, .teardown = end);

/* ---- hostile streams ----------------------------------------------------------------- */

TEST(what_contradicts_itself_is_refused)
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
    import_fails(NULL, BRC_EEXISTS, "zarr.json: / already exists");

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

TEST(what_belongs_nowhere_is_refused)
{
    static const struct {
        const char *member, *words;
    } bad[] = {
        { "b/c/0/x", "'b/c/0/x' is neither a document nor a chunk" },
        { "g/c/0.x", "is neither a document nor a chunk" },
        { "g/nothing/c/0/-1", "is neither a document nor a chunk" },
        { "g/..", "'g/..'" },
        { "README", "is neither a document nor a chunk" },
        { "a/c/2/0", "lies outside the grid" },
        { "a/c/0/18446744073709551615", "lies outside the grid" },
        { "a/c/0/18446744073709551616", "is not a chunk key" },
        { "a/c/0", "is not a chunk key" },
        { "a/c/00/1", "is not a chunk key" },
        { "a/c/0/0/0", "is not a chunk key" },
        { "a/0.0", "is not a chunk key" },
        { "a/.DS_Store", "is not a chunk key" },
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

/* A hostile stream opens none of the reader's files. */
TEST(members_refer_to_nothing)
{
    tar_kit_file(&tar, "zarr.json", GROUP);
    tar_kit_file(&tar, "a/zarr.json", ARRAY);
    tar_kit_range(&tar, "a/c/0/0", "0 6");
    tar_kit_end(&tar);
    import_fails("/x", BRC_EINVAL,
                 "the member 'a/c/0/0' refers to another file, which only breccia's own");
    tar_kit_file(&tar, "zarr.json", GROUP);
    tar_kit_file(&tar, "a/zarr.json", ARRAY);
    tar_kit_range(&tar, "a/elements", "0 20");
    tar_kit_end(&tar);
    import_fails("/x", BRC_EINVAL, "the member 'a/elements' is not a chunk");
    tar_kit_range(&tar, "zarr.json", "0 6");
    tar_kit_end(&tar);
    import_fails("/x", BRC_EINVAL, "the member 'zarr.json' refers to another file");
}

TEST(chunks_come_behind_their_documents)
{
    tar_kit_file(&tar, "zarr.json", GROUP);
    tar_kit_file(&tar, "a/c/0/0", "qwerty");
    tar_kit_file(&tar, "a/zarr.json", ARRAY);
    tar_kit_end(&tar);
    import_fails(NULL, BRC_EINVAL, "must come before its chunks");
}

/* Wherever the array may be whose chunk a member is, its document comes too late then. */
TEST(chunks_that_were_left_out_are_of_no_later_array)
{
    static const struct {
        const char *chunk, *document;
        int rc;
    } late[] = {
        { "a/c/0/0", "a/zarr.json", BRC_EINVAL },   { "a/c", "a/zarr.json", BRC_EINVAL },
        { "a/0.0", "a/zarr.json", BRC_EINVAL },     { "a/0/c/0/0", "a/0/zarr.json", BRC_EINVAL },
        { "a/0/0/0", "a/0/zarr.json", BRC_EINVAL }, { "g/a/c.0.0", "g/a/zarr.json", BRC_EINVAL },
        { "a/b/c/0", "a/zarr.json", BRC_OK }, /* "b/c/0" is not a key */
        { "a/c/0/0", "ab/zarr.json", BRC_OK },
    };
    char path[20];
    for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++) {
        tar_kit_file(&tar, "zarr.json", GROUP);
        tar_kit_file(&tar, late[i].chunk, "qwerty");
        tar_kit_file(&tar, late[i].document, ARRAY);
        tar_kit_end(&tar);
        if (late[i].rc < 0) {
            import_fails("/x", late[i].rc, "it comes after chunks of its array");
            continue;
        }
        snprintf(path, sizeof(path), "/late%zu", i);
        import_ok(path, NULL);
    }
}

TEST(a_stream_that_is_cut_behind_such_chunks_is_damage)
{
    size_t whole;
    good_members();
    tar_kit_file(&tar, "old/c/0/0", "qwerty");
    whole = tar.len;
    for (size_t len = whole; len + 1024 > whole; len -= 128) {
        tar.len = 0;
        good_members();
        tar_kit_file(&tar, "old/c/0/0", "qwerty");
        tar.len = len;
        import_fails(NULL, BRC_EINVAL, "");
    }
}

TEST(bad_documents_and_chunks_are_refused)
{
    static const struct {
        const char *member, *text, *words;
    } bad[] = {
        { "b/zarr.json", "", "b/zarr.json" },
        { "b/zarr.json", "{", "b/zarr.json" },
        { "b/zarr.json", "[]", "b/zarr.json" },
        { "b/zarr.json", "{\"zarr_format\":2}", "b/zarr.json" },
        { "b/zarr.json", "{\"zarr_format\":3,\"node_type\":\"array\"}", "b/zarr.json" },
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
        DO(brc_session_clean(&clean, kit.session, NULL));
        ck_assert_int_eq(clean, 1);
    }
}

TEST(documents_are_bounded)
{
    tar_kit_file(&tar, "zarr.json", GROUP);
    tar_kit_member(&tar, '0', "a/zarr.json", NULL, (uint64_t)1 << 30, "{", 1);
    tar_kit_end(&tar);
    import_fails(NULL, BRC_ELIMIT, "'a/zarr.json' is longer than");
}

TEST(a_stream_without_a_hierarchy_is_refused)
{
    tar_kit_end(&tar);
    import_fails(NULL, BRC_EINVAL, "no zarr.json");
    tar_kit_file(&tar, "a/zarr.json", ARRAY);
    tar_kit_end(&tar);
    import_fails(NULL, BRC_EINVAL, "no zarr.json");
    DO(brc_buf_text(&tar, "this is not a tar stream at all", NULL));
    import_fails(NULL, BRC_EINVAL, "truncated");
    good_members();
    import_fails(NULL, BRC_EINVAL, "truncated");
}

TEST(what_is_there_is_safe)
{
    good_members();
    tar_kit_end(&tar);
    import_ok("/old", NULL);
    DO(scenario_commit_of(&kit, kit.session, "m", NULL));

    good_members();
    tar_kit_end(&tar);
    import_fails("/old", BRC_EEXISTS, "/old already exists");
    good_members();
    tar_kit_end(&tar);
    import_fails("/", BRC_EEXISTS, "/ already exists");
    tar_kit_file(&tar, "old/a/c/0/1", "qwerty");
    tar_kit_end(&tar);
    import_fails("/", BRC_EINVAL, "no zarr.json");
    tar_kit_file(&tar, "zarr.json", GROUP);
    tar_kit_file(&tar, "old/a/c/0/1", "qwerty");
    tar_kit_end(&tar);
    import_fails("/", BRC_EEXISTS, "/ already exists");
    exchange_has(&kit, "/old/a", a_elements, 20);
}
