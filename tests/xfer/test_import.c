/* Importing Zarr v3 directories: what is taken over, what is passed over, and what
 * is refused without a trace. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/json.h"
#include "../../src/breccia.h"
#include "../../src/xfer/formats.h"
#include "../../src/xfer/xfer.h"
#include "../kit/exchange_kit.h"
#include "../kit/suite.h"

TEST_SUITE(import);

#define GROUP_DOC "{\"zarr_format\": 3, \"node_type\": \"group\"}"
#define ARRAY_DOC(keys, codecs)                                                                    \
    "{\"zarr_format\": 3, \"node_type\": \"array\", \"shape\": [4, 5], \"data_type\": \"uint8\", " \
    "\"chunk_grid\": {\"name\": \"regular\", \"configuration\": {\"chunk_shape\": [2, 3]}}, "      \
    "\"chunk_key_encoding\": " keys ", \"fill_value\": 9, \"codecs\": " codecs "}"
#define DEFAULT_KEYS "{\"name\": \"default\", \"configuration\": {\"separator\": \"/\"}}"
#define DOT_KEYS "{\"name\": \"v2\", \"configuration\": {\"separator\": \".\"}}"
#define BYTES "[{\"name\": \"bytes\"}]"

/* Rows 0 and 1 of the first two chunks along axis 1; the rest of 4 by 5 is fill. */
static void put_array_files(exchange_kit *kit, const char *dir, const char *keys, int dots)
{
    char name[200];
    snprintf(name, sizeof(name), "%s/zarr.json", dir);
    exchange_text(kit, name, keys);
    snprintf(name, sizeof(name), dots ? "%s/0.0" : "%s/c/0/0", dir);
    exchange_file(kit, name, "\1\2\3\6\7\10", 6);
    snprintf(name, sizeof(name), dots ? "%s/0.1" : "%s/c/0/1", dir);
    exchange_file(kit, name, "\4\5\0\11\12\0", 6);
}

static const uint8_t array_elements[20] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
                                            9, 9, 9, 9, 9, 9, 9, 9, 9, 9 };

static brc_json *document(exchange_kit *kit, const char *path)
{
    brc_buf text = BRC_BUF_INIT;
    brc_json *doc;
    ck_assert_int_eq(brc_node_json(&text, kit->session, path, &kit->err), BRC_OK);
    ck_assert_int_eq(brc_json_parse(&doc, (const char *)text.data, text.len, 0, &kit->err), BRC_OK);
    brc_buf_dispose(&text);
    return doc;
}

CASE("zarr");

TEST(hierarchy)
{
    exchange_kit kit;
    exchange_start(&kit);
    exchange_text(&kit, "in/zarr.json",
                  "{\"zarr_format\": 3, \"node_type\": \"group\", \"attributes\": {\"n\": "
                  "12345678901234567890},"
                  " \"note\": {\"must_understand\": false, \"x\": 1.50},"
                  " \"consolidated_metadata\": {\"kind\": \"inline\", \"must_understand\": false,"
                  " \"metadata\": {\"gone\": {\"node_type\": \"group\"}}}}");
    put_array_files(&kit, "in/a", ARRAY_DOC(DEFAULT_KEYS, BYTES), 0);
    put_array_files(&kit, "in/no/document/b", ARRAY_DOC(DOT_KEYS, BYTES), 1);
    exchange_text(&kit, "in/empty/place/file", "");
    exchange_text(&kit, "in/README", "not a node");
    exchange_import_ok(&kit, exchange_path(&kit, "in"), NULL, NULL);

    brc_json *doc = document(&kit, "/");
    ck_assert_str_eq(brc_json_literal(brc_json_member(brc_json_member(doc, "attributes"), "n")),
                     "12345678901234567890");
    ck_assert_str_eq(brc_json_literal(brc_json_member(brc_json_member(doc, "note"), "x")), "1.50");
    ck_assert_ptr_null(brc_json_member(doc, "consolidated_metadata"));
    brc_json_free(doc);
    exchange_has(&kit, "/a", array_elements, 20);
    exchange_has(&kit, "/no/document/b", array_elements, 20);
    ck_assert_int_eq(exchange_node(&kit, "/no/document"), BRC_GROUP);
    ck_assert_int_eq(exchange_node(&kit, "/empty"), 0);

    /* the root has children now: the next one gets a place of its own */
    exchange_import_ok(&kit, exchange_path(&kit, "in/"), NULL, NULL);
    exchange_has(&kit, "/in/a", array_elements, 20);
    /* and an array by itself is named after its directory */
    exchange_import_ok(&kit, exchange_path(&kit, "in/a"), "x/y/", NULL);
    exchange_has(&kit, "/x/y", array_elements, 20);
    ck_assert_int_eq(brc_import(kit.session, exchange_path(&kit, "in/a"), "/x/y", NULL, &kit.err),
                     BRC_EEXISTS);
    ck_assert_int_eq(brc_import(kit.session, exchange_path(&kit, "in/a"), NULL, NULL, &kit.err),
                     BRC_EEXISTS);
    exchange_stop(&kit);
}

TEST(stale_and_stray_files)
{
    static const char *const strays[] = {
        "c/0/01",
        "c/00/0",
        "c/0/2",
        "c/2/0",
        "c/0/0/0",
        "c/1",
        "c/-1/0",
        "c/ 0/0",
        "0/0",
        "0.0",
        "c.0.0",
        "c/0/0.tmp",
        "C/0/0",
        ".DS_Store",
        "notes/c/0/0",
        "c/0/+1",
        "c/99999999999999999999/0",
    };
    char name[100];
    exchange_kit kit;
    uint64_t chunks, bytes;
    brc_array *a;

    exchange_start(&kit);
    exchange_text(&kit, "in/zarr.json", ARRAY_DOC(DEFAULT_KEYS, BYTES));
    exchange_file(&kit, "in/c/1/1", "\1\1\1\1\1\1", 6);
    for (size_t i = 0; i < sizeof(strays) / sizeof(strays[0]); i++) {
        if (strcmp(strays[i], "c/0/0/0") == 0 || strcmp(strays[i], "c/1") == 0)
            continue; /* these would need a name twice: below */
        snprintf(name, sizeof(name), "in/%s", strays[i]);
        exchange_text(&kit, name, "not a chunk");
    }
    exchange_import_ok(&kit, exchange_path(&kit, "in"), "/a", NULL);
    ck_assert_int_eq(brc_array_open(&a, kit.session, "/a", NULL), BRC_OK);
    ck_assert_int_eq(brc_array_stat(&chunks, &bytes, a, &kit.err), BRC_OK);
    ck_assert_uint_eq(chunks, 1);
    brc_array_free(a);
    uint8_t *got = exchange_elements(kit.session, "/a", 20);
    ck_assert_uint_eq(got[0], 9);
    ck_assert_uint_eq(got[19], 1);
    free(got);

    exchange_text(&kit, "ranks/zarr.json", ARRAY_DOC(DEFAULT_KEYS, BYTES));
    exchange_text(&kit, "ranks/c/0", "a file where a directory is expected");
    exchange_text(&kit, "ranks/c/1/0x", "");
    exchange_import_ok(&kit, exchange_path(&kit, "ranks"), "/b", NULL);
    exchange_text(&kit, "folder/zarr.json", ARRAY_DOC(DEFAULT_KEYS, BYTES));
    exchange_text(&kit, "folder/c/0/0/0", "a directory where a chunk is expected");
    ck_assert_int_eq(brc_import(kit.session, exchange_path(&kit, "folder"), "/d", NULL, &kit.err),
                     BRC_EINVAL);
    ck_assert_msg(strstr(kit.err.message, "folder/c/0/0"), "%s", kit.err.message);
    exchange_stop(&kit);
}

TEST(links)
{
    exchange_kit kit;
    exchange_start(&kit);
    exchange_text(&kit, "outside/zarr.json", GROUP_DOC);
    exchange_text(&kit, "secret", "\1\2\3\4\5\6");

    exchange_text(&kit, "one/zarr.json", ARRAY_DOC(DEFAULT_KEYS, BYTES));
    exchange_text(&kit, "one/c/0/x", "");
    ck_assert_int_eq(symlink("../../../secret", exchange_path(&kit, "one/c/0/0")), 0);
    exchange_import_fails(&kit, exchange_path(&kit, "one"), NULL, BRC_EINVAL,
                          "one/c/0/0 is a symbolic link");

    exchange_text(&kit, "two/zarr.json", ARRAY_DOC(DEFAULT_KEYS, BYTES));
    ck_assert_int_eq(symlink("../one/c", exchange_path(&kit, "two/c")), 0);
    exchange_import_fails(&kit, exchange_path(&kit, "two"), NULL, BRC_EINVAL,
                          "two/c is a symbolic link");

    exchange_text(&kit, "three/zarr.json", GROUP_DOC);
    ck_assert_int_eq(symlink("../outside", exchange_path(&kit, "three/g")), 0);
    exchange_import_fails(&kit, exchange_path(&kit, "three"), NULL, BRC_EUNSUPPORTED,
                          "three/g is a symbolic link");

    exchange_text(&kit, "four/x", "");
    ck_assert_int_eq(symlink("../outside/zarr.json", exchange_path(&kit, "four/zarr.json")), 0);
    exchange_import_fails(&kit, exchange_path(&kit, "four"), NULL, BRC_EINVAL,
                          "four/zarr.json is a symbolic link");

    /* links that nothing depends on, and the source itself being one */
    exchange_text(&kit, "five/zarr.json", ARRAY_DOC(DEFAULT_KEYS, BYTES));
    ck_assert_int_eq(symlink("../secret", exchange_path(&kit, "five/notes")), 0);
    ck_assert_int_eq(symlink("nowhere", exchange_path(&kit, "five/c")), 0);
    ck_assert_int_eq(symlink("../outside", exchange_path(&kit, "five/0")), 0);
    ck_assert_int_eq(symlink("five", exchange_path(&kit, "six")), 0);
    exchange_import_ok(&kit, exchange_path(&kit, "six"), NULL, NULL);
    ck_assert_int_eq(exchange_node(&kit, "/six"), BRC_ARRAY);
    exchange_stop(&kit);
}

static const struct {
    const char *doc;
    int code;
} broken_documents[] = {
    { "", BRC_EINVAL },
    { "{", BRC_EINVAL },
    { "[]", BRC_EINVAL },
    { "{\"zarr_format\": 3}", BRC_EINVAL },
    { "{\"zarr_format\": 3, \"node_type\": \"file\"}", BRC_EINVAL },
    { "{\"zarr_format\": 2, \"node_type\": \"group\"}", BRC_EINVAL },
    { "{\"zarr_format\": 3, \"node_type\": \"group\", \"node_type\": \"group\"}", BRC_EINVAL },
    { "{\"zarr_format\": 3, \"node_type\": \"group\", \"other\": 1}", BRC_EUNSUPPORTED },
    { "{\"zarr_format\": 3, \"node_type\": \"array\"}", BRC_EINVAL },
    { ARRAY_DOC(DEFAULT_KEYS, "[]"), BRC_EINVAL },
};

EACH(broken_document, broken_documents)
{
    exchange_kit kit;
    exchange_start(&kit);
    exchange_text(&kit, "in/zarr.json", GROUP_DOC);
    put_array_files(&kit, "in/good", ARRAY_DOC(DEFAULT_KEYS, BYTES), 0);
    exchange_text(&kit, "in/z/broken/zarr.json", broken_documents[_i].doc);
    int rc = brc_import(kit.session, exchange_path(&kit, "in"), "/x", NULL, &kit.err);
    ck_assert_msg(rc == BRC_EINVAL || rc == BRC_EUNSUPPORTED, "%d: %s", rc, kit.err.message);
    exchange_import_fails(&kit, exchange_path(&kit, "in"), "/x", rc, "in/z/broken/zarr.json");
    ck_assert_int_eq(exchange_node(&kit, "/x"), 0);
    exchange_stop(&kit);
}

TEST(broken_chunk)
{
    exchange_kit kit;
    int kind;
    exchange_start(&kit);
    put_array_files(&kit, "in/a", ARRAY_DOC(DEFAULT_KEYS, BYTES), 0);
    exchange_text(&kit, "in/zarr.json", GROUP_DOC);
    exchange_file(&kit, "in/a/c/1/0", "\1\2\3", 3);
    ck_assert_int_lt(brc_import(kit.session, exchange_path(&kit, "in"), NULL, NULL, &kit.err), 0);
    ck_assert_msg(strstr(kit.err.message, "in/a"), "%s", kit.err.message);
    ck_assert_int_eq(brc_node_kind(&kind, kit.session, "/a", NULL), BRC_OK);
    ck_assert_int_eq(kind, 0);
    /* the session goes on */
    ck_assert_int_eq(unlink(exchange_path(&kit, "in/a/c/1/0")), 0);
    exchange_import_ok(&kit, exchange_path(&kit, "in"), NULL, NULL);
    exchange_has(&kit, "/a", array_elements, 20);
    exchange_stop(&kit);
}

TEST(huge_chunk_file)
{
    exchange_kit kit;
    exchange_start(&kit);
    put_array_files(&kit, "in", ARRAY_DOC(DEFAULT_KEYS, BYTES), 0);
    ck_assert_int_eq(truncate(exchange_path(&kit, "in/c/0/1"), (off_t)INT32_MAX + 1), 0);
    exchange_import_fails(&kit, exchange_path(&kit, "in"), NULL, BRC_ELIMIT, "in/c/0/1");
    exchange_stop(&kit);
}

/* Chunks that this build's encoder would not make so come back as they were. */
TEST(chunks_byte_for_byte)
{
    exchange_kit kit;
    brc_buf packed = BRC_BUF_INIT;
    exchange_start(&kit);
    exchange_gzip(&packed, "\21\22\23", 3); /* two members, another level than the document's */
    exchange_gzip(&packed, "\26\27\30", 3);
    exchange_text(&kit, "in/zarr.json", GROUP_DOC);
    exchange_text(&kit, "in/g/zarr.json",
                  ARRAY_DOC(DEFAULT_KEYS, "[{\"name\": \"bytes\"}, {\"name\": \"gzip\", "
                                          "\"configuration\": {\"level\": 1}}]"));
    exchange_file(&kit, "in/g/c/1/0", packed.data, packed.len);
    put_array_files(&kit, "in/d", ARRAY_DOC(DOT_KEYS, BYTES), 1);
    exchange_import_ok(&kit, exchange_path(&kit, "in"), NULL, NULL);
    int rc = brc_export(kit.session, "/", exchange_path(&kit, "out"), NULL, &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    ck_assert_int_eq(exchange_same_tree(exchange_path(&kit, "in"), exchange_path(&kit, "out")), 1);
    brc_buf_dispose(&packed);
    exchange_stop(&kit);
}

LOOP(recoded, 0, 5)
{
    static const uint64_t chunks[][2] = { { 1, 1 }, { 4, 5 }, { 3, 2 }, { 100, 100 }, { 2, 3 } };
    exchange_kit kit;
    brc_array *a;
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;

    exchange_start(&kit);
    put_array_files(&kit, "in", ARRAY_DOC(DEFAULT_KEYS, BYTES), 0);
    opts.nchunk = 2;
    opts.chunk = chunks[_i];
    opts.codecs_json = _i % 2 ? "[{\"name\": \"bytes\"}, {\"name\": \"zstd\", \"configuration\": "
                                "{\"level\": 3, \"checksum\": true}}]"
                              : NULL;
    exchange_import_ok(&kit, exchange_path(&kit, "in"), "/a", &opts);
    exchange_has(&kit, "/a", array_elements, 20);
    ck_assert_int_eq(brc_array_open(&a, kit.session, "/a", NULL), BRC_OK);
    const brc_array_info *info = brc_array_describe(a);
    ck_assert_uint_eq(info->chunk[0], chunks[_i][0]);
    ck_assert_uint_eq(info->chunk[1], chunks[_i][1]);
    ck_assert_int_eq(strstr(info->codecs_json, "zstd") != NULL, _i % 2);
    ck_assert_uint_eq(*(const uint8_t *)info->fill, 9);
    brc_array_free(a);
    exchange_stop(&kit);
}

TEST(recoded_wrongly)
{
    static const uint64_t chunk[] = { 2, 2, 2 };
    exchange_kit kit;
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    int clean;

    exchange_start(&kit);
    put_array_files(&kit, "in", ARRAY_DOC(DEFAULT_KEYS, BYTES), 0);
    opts.nchunk = 3;
    opts.chunk = chunk;
    ck_assert_int_eq(brc_import(kit.session, exchange_path(&kit, "in"), NULL, &opts, &kit.err),
                     BRC_EINVAL);
    opts.chunk = NULL;
    opts.codecs_json = "[{\"name\": \"no-such-codec\"}]";
    ck_assert_int_lt(brc_import(kit.session, exchange_path(&kit, "in"), NULL, &opts, &kit.err), 0);
    opts.codecs_json = "[";
    ck_assert_int_eq(brc_import(kit.session, exchange_path(&kit, "in"), NULL, &opts, &kit.err),
                     BRC_EINVAL);
    opts.codecs_json = NULL;
    opts.format = "zarr3";
    ck_assert_int_eq(brc_import(kit.session, exchange_path(&kit, "in"), NULL, &opts, &kit.err),
                     BRC_EINVAL);
    ck_assert_int_eq(brc_session_clean(&clean, kit.session, NULL), BRC_OK);
    ck_assert_int_eq(clean, 1);
    exchange_stop(&kit);
}

CASE("sources");

TEST(sources_refused)
{
    exchange_kit kit;
    exchange_start(&kit);
    exchange_import_fails(&kit, exchange_path(&kit, "nothing"), NULL, BRC_ENOTFOUND, "nothing");
    exchange_import_fails(&kit, exchange_text(&kit, "text", "hello"), NULL, BRC_EUNSUPPORTED,
                          "IDX, NetCDF, HDF5 and Kerchunk reference files");
    exchange_import_fails(&kit, exchange_text(&kit, "empty", ""), NULL, BRC_EUNSUPPORTED, "empty");
    exchange_text(&kit, "dir/file", "");
    exchange_import_fails(&kit, exchange_path(&kit, "dir"), NULL, BRC_EUNSUPPORTED, "no zarr.json");
    ck_assert_int_eq(brc_import(kit.session, NULL, NULL, NULL, NULL), BRC_EINVAL);
    exchange_stop(&kit);
}

static const struct {
    const char *source, *name;
} source_names[] = {
    { "data/mnist-t10k-images-idx3-ubyte.gz", "mnist-t10k-images" },
    { "train-labels.idx1-ubyte", "train-labels" },
    { "era-u-wind-f32.npy", "era-u-wind-f32" },
    { "/a/b/X.NPZ", "X" },
    { "x.npy.gz", "x" },
    { "x.idx", "x" },
    { "model-idx12-float", "model" },
    { "some-ubyte", "some-ubyte" },
    { "store.zarr/", "store" },
    { "a/store///", "store" },
    { ".npy", ".npy" },
    { "plain", "plain" },
    { "...npy", "--" },
    { "__private.npy", "--private" },
    { "new\nline\\.npy", "new-line-" },
    { "no\xff utf\xc3\xa4.npy", "no- utf--" },
    { "\xc3\xa4.npy", "\xc3\xa4" },
    { "zarr.json.npy", "-arr.json" },
    { "a/climate.nc.json", "climate.nc" },
};

EACH(names, source_names)
{
    char *name = NULL;
    ck_assert_int_eq(brc_source_name(&name, source_names[_i].source, NULL), BRC_OK);
    ck_assert_str_eq(name, source_names[_i].name);
    free(name);
}

TEST(names_refused)
{
    char *name;
    static const char *const bad[] = { "",  "/",  "a//b",   "/a",          "a/",
                                       ".", "..", "a/../b", "a/zarr.json", "\xff" };
    ck_assert_int_eq(brc_source_name(&name, "///", NULL), BRC_EINVAL);
    ck_assert_int_eq(brc_source_name(&name, "a/..", NULL), BRC_EINVAL);
    ck_assert_int_eq(brc_source_name(&name, ".", NULL), BRC_EINVAL);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!brc_path_is_safe(bad[i]), "\"%s\"", bad[i]);
    ck_assert(brc_path_is_safe("a/b.c/...x/ d"));
}

TEST(read_only_session)
{
    exchange_kit kit;
    brc_session *view;
    exchange_start(&kit);
    put_array_files(&kit, "in", ARRAY_DOC(DEFAULT_KEYS, BYTES), 0);
    ck_assert_int_eq(brc_session_open(&view, kit.repo, NULL, BRC_SESSION_VIEW, &kit.err), BRC_OK);
    ck_assert_int_eq(brc_import(view, exchange_path(&kit, "in"), NULL, NULL, &kit.err),
                     BRC_EREADONLY);
    brc_session_free(view);
    exchange_stop(&kit);
}
