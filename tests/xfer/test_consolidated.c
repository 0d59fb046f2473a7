/* Import of what only consolidated metadata describes, and what it says where that is wrong. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/buf.h"
#include "../../src/base/file.h"
#include "../kit/exchange_kit.h"
#include "../kit/suite.h"
#include "../kit/tar_kit.h"

TEST_SUITE(consolidated);

#define DO(call) ck_assert_int_eq((call), BRC_OK)

/* Four bytes in chunks of two. */
#define ARRAY3(attributes)                                                                         \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4],\"data_type\":\"uint8\","            \
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2]}},"               \
    "\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":{\"separator\":\"/\"}},"       \
    "\"fill_value\":7,\"codecs\":[{\"name\":\"bytes\"}],\"attributes\":" attributes "}"
#define GROUP3(more) "{\"zarr_format\":3,\"node_type\":\"group\"" more "}"
#define COPIES3(copies)                                                                            \
    ",\"consolidated_metadata\":{\"kind\":\"inline\",\"must_understand\":false,\"metadata\":{"     \
    copies "}}"
#define ARRAY2                                                                                     \
    "{\"zarr_format\":2,\"shape\":[4],\"chunks\":[2],\"dtype\":\"|u1\",\"order\":\"C\","           \
    "\"fill_value\":7,\"compressor\":null,\"filters\":null}"
#define GROUP2 "{\"zarr_format\":2}"
#define COPIES2(copies) "{\"zarr_consolidated_format\":1,\"metadata\":{" copies "}}"

typedef struct source_file {
    const char *name, *text;
} source_file;

enum { DIRECTORY, ZIP, STREAM };

static exchange_kit kit;
static brc_buf warnings;

static void begin(void)
{
    exchange_start(&kit);
    warnings = (brc_buf)BRC_BUF_INIT;
}

static void end(void)
{
    brc_buf_dispose(&warnings);
    exchange_stop(&kit);
}

static int import_stream_of(const source_file *files, const brc_xfer_opts *opts)
{
    const char *file = exchange_path(&kit, "in.tar");
    brc_buf tar = BRC_BUF_INIT;
    for (; files->name; files++)
        tar_kit_file(&tar, files->name, files->text);
    tar_kit_end(&tar);
    remove(file);
    DO(brc_file_write(file, tar.data, tar.len, NULL));
    brc_buf_dispose(&tar);
    FILE *f = fopen(file, "r");
    int rc = exchange_stream_in(kit.session, fileno(f), "/x", opts, &kit.err);
    fclose(f);
    return rc;
}

static int import_zip_of(const source_file *files, const brc_xfer_opts *opts)
{
    exchange_zip zip = { 0 };
    for (; files->name; files++)
        exchange_zip_add(&zip, files->name, files->text, strlen(files->text), 0,
                         (uint32_t)strlen(files->text));
    exchange_zip_end(&zip);
    const char *file = exchange_file(&kit, "in.zip", zip.bytes.data, zip.bytes.len);
    brc_buf_dispose(&zip.bytes);
    return brc_import(kit.session, file, "/x", opts, &kit.err);
}

static int import_as(int way, const source_file *files, const brc_xfer_opts *given)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    char name[256];
    if (given)
        opts = *given;
    warnings.len = 0;
    opts.warnings = &warnings;
    if (way == STREAM)
        return import_stream_of(files, &opts);
    if (way == ZIP)
        return import_zip_of(files, &opts);
    for (; files->name; files++) {
        snprintf(name, sizeof(name), "in/%s", files->name);
        exchange_text(&kit, name, files->text);
    }
    return brc_import(kit.session, exchange_path(&kit, "in"), "/x", &opts, &kit.err);
}

static void comes_in(int way, const source_file *files, const brc_xfer_opts *opts)
{
    int rc = import_as(way, files, opts);
    ck_assert_msg(rc == BRC_OK, "way %d: %s", way, kit.err.message);
}

static void stays_out(int way, const source_file *files, const char *words)
{
    exchange_failed(&kit, import_as(way, files, NULL), BRC_EINVAL, words);
}

/* The lines of warnings, of which each has one of the words in order. */
static void warns(const char *const *words)
{
    const char *at = warnings.len > 0 ? (const char *)warnings.data : "";
    for (; *words; words++) {
        const char *line = strchr(at, '\n'), *found = strstr(at, *words);
        ck_assert_msg(line && found && found < line, "no \"%s\" in \"%s\"", *words, at);
        at = line + 1;
    }
    ck_assert_str_eq(at, "");
}

static const char *const nothing[] = { NULL };

static void has_attribute(const char *path, const char *key, const char *json)
{
    brc_buf text = BRC_BUF_INIT;
    DO(brc_attrs_get(&text, kit.session, path, key, &kit.err));
    ck_assert_str_eq((const char *)text.data, json);
    brc_buf_dispose(&text);
}

/* ---- documents that are not there -------------------------------- */

/* "e" has not even a folder, "h" is a group that no copy describes. */
static const source_file alone3[] = {
    { "zarr.json",
      GROUP3(COPIES3("\"g/a\":" ARRAY3("{\"n\":NaN}") ",\"e\":" ARRAY3("{}") ",\"g\":" GROUP3(
          ",\"attributes\":{\"t\":\"g\"}") ",\"h/i/a\":" ARRAY3("{}"))) },
    { "g/a/c/0", "ab" },
    { "g/a/c/1", "cd" },
    { "h/i/a/c/1", "ef" },
    { NULL, NULL },
};
static const source_file alone2[] = {
    { ".zmetadata",
      COPIES2("\".zgroup\":" GROUP2 ",\".zattrs\":{\"r\":1},\"g/.zgroup\":" GROUP2
              ",\"g/.zattrs\":{\"t\":\"g\"},\"g/a/.zarray\":" ARRAY2
              ",\"g/a/.zattrs\":{\"n\":NaN},\"e/.zarray\":" ARRAY2 ",\"h/i/a/.zarray\":" ARRAY2) },
    { "g/a/0", "ab" },
    { "g/a/1", "cd" },
    { "h/i/a/1", "ef" },
    { NULL, NULL },
};
static const struct {
    int way;
    const source_file *files;
} alone[] = {
    { DIRECTORY, alone3 }, { ZIP, alone3 },    { STREAM, alone3 },
    { DIRECTORY, alone2 }, { ZIP, alone2 },
};

LOOP(i24_1_copies_alone_come_in, 0, 5)
{
    begin();
    comes_in(alone[_i].way, alone[_i].files, NULL);
    warns(nothing);
    exchange_has(&kit, "/x/g/a", "abcd", 4);
    exchange_has(&kit, "/x/e", "\7\7\7\7", 4);
    exchange_has(&kit, "/x/h/i/a", "\7\7ef", 4);
    ck_assert_int_eq(exchange_node(&kit, "/x/h/i"), BRC_GROUP);
    has_attribute("/x/g", "t", "\"g\"");
    has_attribute("/x/g/a", "n", "NaN");
    if (alone[_i].files == alone2)
        has_attribute("/x", "r", "1");
    end();
}

LOOP(i24_1_copies_are_left_out_like_nodes, 0, 5)
{
    static const char *const out[] = { "/g/*", "/h" };
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    begin();
    opts.exclude = out;
    opts.nexclude = 2;
    comes_in(alone[_i].way, alone[_i].files, &opts);
    warns(nothing);
    exchange_has(&kit, "/x/e", "\7\7\7\7", 4);
    has_attribute("/x/g", "t", "\"g\"");
    ck_assert_int_eq(exchange_node(&kit, "/x/g/a"), 0);
    ck_assert_int_eq(exchange_node(&kit, "/x/h"), 0);
    end();
}

/* Chunks are encoded anew by what the copy says. */
LOOP(i24_1_copies_alone_are_encoded_anew, 0, 5)
{
    static const uint64_t chunk[] = { 3 };
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    begin();
    opts.chunk = chunk;
    opts.nchunk = 1;
    comes_in(alone[_i].way, alone[_i].files, &opts);
    exchange_has(&kit, "/x/g/a", "abcd", 4);
    exchange_has(&kit, "/x/h/i/a", "\7\7ef", 4);
    end();
}

/* A group within, imported by itself, has copies of its own. */
LOOP(i24_1_a_group_within_is_the_source, DIRECTORY, ZIP + 1)
{
    static const source_file files[] = {
        { "zarr.json", GROUP3("") },
        { "in/zarr.json", GROUP3(COPIES3("\"a\":" ARRAY3("{}"))) },
        { "in/a/c/0", "ab" },
        { "in/.zmetadata", "passed over beside zarr.json" },
        { NULL, NULL },
    };
    begin();
    comes_in(_i, files, NULL);
    exchange_has(&kit, "/x/in/a", "ab\7\7", 4);
    if (_i == DIRECTORY) {
        DO(brc_import(kit.session, exchange_path(&kit, "in/in"), "/y", NULL, &kit.err));
        exchange_has(&kit, "/y/a", "ab\7\7", 4);
    }
    end();
}

/* Attributes may be missing alone. */
LOOP(i24_1_attributes_alone, DIRECTORY, ZIP + 1)
{
    static const source_file files[] = {
        { ".zgroup", GROUP2 },
        { ".zmetadata", COPIES2("\"a/.zarray\":" ARRAY2 ",\"a/.zattrs\":{\"u\":\"m\"}") },
        { "a/.zarray", ARRAY2 },
        { "a/0", "ab" },
        { NULL, NULL },
    };
    begin();
    comes_in(_i, files, NULL);
    warns(nothing);
    exchange_has(&kit, "/x/a", "ab\7\7", 4);
    has_attribute("/x/a", "u", "\"m\"");
    end();
}

/* ---- both -------------------------------- */

static const source_file both3[] = {
    { "zarr.json",
      GROUP3(COPIES3("\"a\":" ARRAY3("{\"v\":1}") ",\"b\":" ARRAY3("{}")
                     ",\"g/c\":" ARRAY3("{\"v\":1}")
                     ",\"g\":" GROUP3(",\"attributes\":{\"v\":1}"))) },
    { "a/zarr.json", ARRAY3("{\"v\":2}") },
    { "b/zarr.json", ARRAY3("{}") },
    { "g/zarr.json", GROUP3(",\"attributes\":{\"v\":2}" COPIES3("\"c\":" ARRAY3("{\"v\":3}"))) },
    { "a/c/0", "ab" },
    { "b/c/0", "cd" },
    { "g/c/c/0", "ef" },
    { NULL, NULL },
};
static const source_file both2[] = {
    { ".zgroup", GROUP2 },
    { ".zmetadata",
      COPIES2("\"a/.zarray\":" ARRAY2 ",\"a/.zattrs\":{\"v\":1},\"b/.zarray\":" ARRAY2
              ",\"g/.zgroup\":" GROUP2 ",\"g/.zattrs\":{\"v\":1},\"g/c/.zarray\":" ARRAY2
              ",\"g/c/.zattrs\":{\"v\":1}") },
    { "a/.zarray", ARRAY2 },
    { "a/.zattrs", "{\"v\":2}" },
    { "b/.zarray", ARRAY2 },
    { "g/.zgroup", GROUP2 },
    { "g/.zattrs", "{\"v\":2}" },
    { "g/.zmetadata", COPIES2("\"c/.zarray\":" ARRAY2 ",\"c/.zattrs\":{\"v\":3}") },
    { "a/0", "ab" },
    { "b/0", "cd" },
    { "g/c/0", "ef" },
    { NULL, NULL },
};
static const struct {
    int way;
    const source_file *files;
} both[] = {
    { DIRECTORY, both3 }, { ZIP, both3 }, { STREAM, both3 }, { DIRECTORY, both2 }, { ZIP, both2 },
};

LOOP(i24_1_documents_win_over_copies, 0, 5)
{
    static const char *const line[] = { "imported in place of it (2 in all): a, g", NULL };
    begin();
    comes_in(both[_i].way, both[_i].files, NULL);
    warns(line);
    exchange_has(&kit, "/x/a", "ab\7\7", 4);
    exchange_has(&kit, "/x/b", "cd\7\7", 4);
    exchange_has(&kit, "/x/g/c", "ef\7\7", 4);
    has_attribute("/x/a", "v", "2");
    has_attribute("/x/g", "v", "2");
    has_attribute("/x/g/c", "v", "3"); /* the nearest group's */
    end();
}

/* ---- chunks and nothing else -------------------------------- */

LOOP(i24_1_chunks_of_no_array_are_one_warning, DIRECTORY, STREAM + 1)
{
    static const source_file files[] = {
        { "zarr.json", GROUP3("") }, { "a/zarr.json", ARRAY3("{}") }, { "a/c/0", "ab" },
        { "old/c/0", "ab" },         { "old/c/1", "ab" },             { "older/0.0", "ab" },
        { "point/c", "a" },          { "older/README", "no chunk" },  { NULL, NULL },
    };
    static const char *const line[] = {
        "chunks that belong to no array are left out (4 in all): old/c/0, old/c/1, older/0.0, "
        "point/c",
        NULL
    };
    source_file some[sizeof(files) / sizeof(files[0])];
    memcpy(some, files, sizeof(files));
    if (_i == STREAM) /* where a member that is not a chunk is an error */
        some[sizeof(files) / sizeof(files[0]) - 2].name = NULL;
    begin();
    comes_in(_i, some, NULL);
    exchange_has(&kit, "/x/a", "ab\7\7", 4);
    warns(line);
    end();
}

static const source_file only_chunks[] = {
    { "zarr.json", GROUP3("") }, { "a/c/0", "ab" }, { NULL, NULL }
};
static const source_file only_attributes[] = {
    { ".zmetadata", COPIES2("\".zattrs\":{\"a\":1}") }, { "a/0", "ab" }, { NULL, NULL }
};
static const source_file no_copies[] = {
    { ".zmetadata", COPIES2("") }, { "a/notes", "ab" }, { NULL, NULL }
};
static const source_file unread[] = { { ".zmetadata", "{" }, { "a/0", "ab" }, { NULL, NULL } };
static const struct {
    const source_file *files;
    const char *words;
} barren[] = {
    { only_chunks, "it has chunks (a/c/0), but no document of an array" },
    { only_attributes, "it has chunks (a/0), but no document of an array" },
    { no_copies, "it has no group and no array" },
    { unread, "it has chunks (a/0), but no document of an array" },
};

LOOP(i24_1_an_import_of_nothing_fails, 0, 4)
{
    begin();
    stays_out(DIRECTORY, barren[_i].files, barren[_i].words);
    stays_out(ZIP, barren[_i].files, barren[_i].words);
    if (barren[_i].files == only_chunks)
        stays_out(STREAM, barren[_i].files, barren[_i].words);
    end();
}

/* A group without anything in it is something. */
LOOP(an_empty_group_comes_in, DIRECTORY, STREAM + 1)
{
    static const source_file files[] = { { "zarr.json", GROUP3("") }, { NULL, NULL } };
    begin();
    comes_in(_i, files, NULL);
    ck_assert_int_eq(exchange_node(&kit, "/x"), BRC_GROUP);
    warns(nothing);
    end();
}

/* ---- hostile -------------------------------- */

#define HOSTILE(copy, end)                                                                         \
    "\"../out" end "\":" copy ",\"a/../../out" end "\":" copy ",\"/out" end "\":" copy             \
    ",\"./a" end "\":" copy ",\"b//c" end "\":" copy ",\"n\\u0000l" end "\":" copy                 \
    ",\"b/zarr.json" end "\":" copy

static const source_file hostile3[] = {
    { "zarr.json",
      GROUP3(COPIES3(HOSTILE(ARRAY3("{}"), "") ",\"\":" ARRAY3("{}") ",\"good\":" ARRAY3("{}")
                     ",\"good/within\":" ARRAY3("{}") ",\"odd\":{\"node_type\":\"array\"}")) },
    { "good/c/0", "ab" },
    { "../out/c/0", "ab" },
    { NULL, NULL },
};
static const source_file hostile2[] = {
    { ".zgroup", GROUP2 },
    { ".zmetadata",
      COPIES2(HOSTILE(ARRAY2, "/.zarray") ",\"\":" ARRAY2 ",\"n/.zarray\":5"
              ",\"good/.zarray\":" ARRAY2 ",\"good/within/.zarray\":" ARRAY2
              ",\"odd/zarray\":" ARRAY2) },
    { "good/0", "ab" },
    { "../out/0", "ab" },
    { NULL, NULL },
};

LOOP(i24_1_hostile_names_are_passed_over, 0, 2)
{
    static const char *const lines[][2] = {
        { "describe no possible node are left out (10 in all)", NULL },
        { "describe no possible node are left out (11 in all)", NULL },
    };
    begin();
    comes_in(DIRECTORY, _i ? hostile2 : hostile3, NULL);
    warns(lines[_i]);
    exchange_has(&kit, "/x/good", "ab\7\7", 4);
    brc_iter *it;
    const brc_node *node;
    DO(brc_list(&it, kit.session, "/x", 0, &kit.err));
    ck_assert_int_eq(brc_next(it, &node, &kit.err), 1);
    ck_assert_str_eq(node->path, "/x/good");
    ck_assert_int_eq(brc_next(it, &node, &kit.err), 0);
    brc_iter_free(it);
    ck_assert_int_eq(exchange_node(&kit, "/x/good/within"), 0);
    end();
}

LOOP(i24_1_copies_that_are_no_json, DIRECTORY, ZIP + 1)
{
    static const source_file files[] = {
        { ".zgroup", GROUP2 }, { ".zmetadata", "{\"metadata\":" }, { "a/.zarray", ARRAY2 },
        { "a/0", "ab" },       { NULL, NULL },
    };
    static const char *const line[] = { "that is not valid is left out (1 in all): /", NULL };
    begin();
    comes_in(_i, files, NULL);
    warns(line);
    exchange_has(&kit, "/x/a", "ab\7\7", 4);
    end();
}

#define WITH(copies) GROUP3(",\"consolidated_metadata\":" copies)

/* A group has no copies then, and comes in by its document. */
LOOP(i24_1_copies_that_are_none_are_a_warning, 0, 9)
{
    static const struct {
        const char *root, *words;
    } bad[] = {
        { WITH("5"), "consolidated metadata that is not valid is left out (1 in all): /" },
        { WITH("[]"), "that is not valid is left out (1 in all): /" },
        { WITH("{}"), "that is not valid is left out (1 in all): /" },
        { WITH("{\"metadata\":[1]}"), "that is not valid is left out (1 in all): /" },
        { WITH("{\"metadata\":{\"a\":5}}"), "no possible node are left out (1 in all): a" },
        { WITH("{\"metadata\":{\"a\":{}}}"), "no possible node are left out (1 in all): a" },
        { WITH("{\"metadata\":{\"a\":{\"node_type\":7}}}"), "left out (1 in all): a" },
        { WITH("null"), NULL },
        { WITH("{\"kind\":\"other\",\"metadata\":{}}"), NULL },
    };
    for (int way = DIRECTORY; way <= STREAM; way++) {
        const source_file files[] = {
            { "zarr.json", bad[_i].root }, { "a/zarr.json", ARRAY3("{}") }, { "a/c/0", "ab" },
            { NULL, NULL },
        };
        const char *const line[] = { bad[_i].words, NULL };
        begin();
        comes_in(way, files, NULL);
        warns(line);
        exchange_has(&kit, "/x/a", "ab\7\7", 4);
        end();
    }
}

/* A file, and a link, lie where the copy has an array. */
TEST(i24_1_a_copy_makes_nothing_of_a_link)
{
    static const source_file files[] = {
        { "zarr.json", GROUP3(COPIES3("\"link/a\":" ARRAY3("{}") ",\"file\":" ARRAY3("{}"))) },
        { "file", "ab" },
        { NULL, NULL },
    };
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    begin();
    opts.flags |= BRC_XFER_SKIP_UNSUPPORTED;
    exchange_text(&kit, "out/a/c/0", "ab");
    exchange_text(&kit, "in/README", "makes the folder");
    ck_assert_int_eq(symlink("../out", exchange_path(&kit, "in/link")), 0);
    comes_in(DIRECTORY, files, &opts);
    exchange_has(&kit, "/x/file", "\7\7\7\7", 4);
    ck_assert_int_eq(exchange_node(&kit, "/x/link"), 0);
    end();
}
