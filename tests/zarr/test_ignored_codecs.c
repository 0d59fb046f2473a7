/* Codecs that are not known and say "must_understand": false: left out when chunks are
 * read, never when they would be written; the chunks stay what they were, byte for byte. */
#include <stdio.h>
#include <string.h>

#include "../../src/breccia_codec.h"
#include "../kit/exchange_kit.h"
#include "../kit/ios.h"
#include "../kit/plugin_kit.h"
#include "../kit/suite.h"

TEST_SUITE(ignored_codecs);

#define DOC(shape, type, grid, fill, codecs)                                                       \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":" shape ",\"data_type\":" type ","       \
    "\"chunk_grid\":" grid ",\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":"      \
    "{\"separator\":\"/\"}},\"fill_value\":" fill ",\"codecs\":[" codecs "]}"
#define REGULAR(chunk) "{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":" chunk "}}"
#define BYTES_DOC(codecs) DOC("[6]", "\"uint8\"", REGULAR("[4]"), "7", codecs)
#define BYTES "{\"name\":\"bytes\"}"
#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define NOTE(name)                                                                                 \
    "{\"name\":\"org.example." name "\",\"configuration\":{\"n\":1.50},\"must_understand\":false}"
#define SHARD(inner, index)                                                                        \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2],\"codecs\":[" inner     \
    "],\"index_codecs\":[" index "]}}"

static exchange_kit ig;

static void ig_setup(void)
{
    exchange_start(&ig);
}

static void ig_teardown(void)
{
    exchange_stop(&ig);
}

static void ig_must(int rc)
{
    ck_assert_msg(rc >= 0, "%s", ig.err.message);
}

static void ig_refused(int rc, int code, const char *says)
{
    ck_assert_msg(rc == code, "%d: %s", rc, rc < 0 ? ig.err.message : "done");
    ck_assert_msg(strstr(ig.err.message, says) != NULL, "\"%s\" is not in \"%s\"", says,
                  ig.err.message);
}

/* The folder `dir`, a group with the array /a. */
static void ig_document(const char *dir, const char *document)
{
    char name[80];

    snprintf(name, sizeof(name), "%s/zarr.json", dir);
    exchange_text(&ig, name, "{\"zarr_format\":3,\"node_type\":\"group\"}");
    snprintf(name, sizeof(name), "%s/a/zarr.json", dir);
    exchange_text(&ig, name, document);
}

static void ig_chunk(const char *dir, unsigned n, const void *bytes, size_t len)
{
    char name[80];

    snprintf(name, sizeof(name), "%s/a/c/%u", dir, n);
    exchange_file(&ig, name, bytes, len);
}

static void ig_import(const char *dir)
{
    ig_must(brc_import(ig.session, exchange_path(&ig, dir), "/", NULL, &ig.err));
}

static void ig_export_is(const char *as, const char *like)
{
    ig_must(brc_export(ig.session, "/", exchange_path(&ig, as), NULL, &ig.err));
    ck_assert_int_eq(exchange_same_tree(exchange_path(&ig, as), exchange_path(&ig, like)), 1);
}

/* Everything that would encode a chunk, or make the list say something else. */
static void ig_not_written(const char *path, const char *pointer)
{
    uint8_t data[6] = { 0 };
    brc_array *a = scenario_array_at(&ig, ig.session, path);
    const brc_array_info *info = brc_array_describe(a);

    ck_assert_int_eq((info->flags & BRC_ARRAY_READABLE) != 0, 1);
    ck_assert_int_eq((info->flags & BRC_ARRAY_WRITABLE) != 0, 0);
    ck_assert_msg(strstr(info->why, pointer) != NULL, "%s", info->why);
    ig_refused(brc_array_write(a, NULL, data, sizeof(data), &ig.err), BRC_EUNSUPPORTED, pointer);
    ig_refused(brc_array_fill(a, NULL, data, &ig.err), BRC_EUNSUPPORTED, pointer);
    ig_refused(brc_array_resize(a, (uint64_t[]){ 3 }, &ig.err), BRC_EUNSUPPORTED, pointer);
    ig_refused(brc_array_resize(a, (uint64_t[]){ 8 }, &ig.err), BRC_EUNSUPPORTED, pointer);
    ig_refused(brc_array_append(a, 0, 1, data, 1, &ig.err), BRC_EUNSUPPORTED, pointer);
    ig_refused(brc_array_set_codecs(a, "[" BYTES "]", 0, &ig.err), BRC_EUNSUPPORTED, pointer);
    ig_refused(brc_array_set_codecs(a, "[" BYTES "]", 1, &ig.err), BRC_EUNSUPPORTED, pointer);
    brc_array_free(a);
}

/* ---- reading, and only that --------------------------------------------------------- */

static const struct {
    const char *codecs, *pointer;
    uint8_t chunk[40];
    size_t len;
} places[] = {
    { BYTES "," NOTE("note"), "/codecs/1: the codec \"org.example.note\"", { 1, 2, 3, 4 }, 4 },
    { NOTE("turn") "," BYTES, "/codecs/0: the codec \"org.example.turn\"", { 1, 2, 3, 4 }, 4 },
    { BYTES "," NOTE("seal") ",{\"name\":\"crc32c\"}", "/codecs/1: the codec \"org.example.seal\"",
      { 1, 2, 3, 4, 0xf4, 0x8c, 0x30, 0x29 }, 8 },
    { NOTE("one") "," BYTES "," NOTE("two"), "/codecs/0: the codec \"org.example.one\"",
      { 1, 2, 3, 4 }, 4 },
    { SHARD(BYTES "," NOTE("deep"), LITTLE),
      "/codecs/0/configuration/codecs/1: the codec \"org.example.deep\"",
      { 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,
        2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0 }, 36 },
};

CASE("arrays", .setup = ig_setup, .teardown = ig_teardown);

EACH(it_is_left_out_when_chunks_are_read, places)
{
    static const uint8_t want[6] = { 1, 2, 3, 4, 7, 7 };
    char document[1024];

    snprintf(document, sizeof(document), BYTES_DOC("%s"), places[_i].codecs);
    ig_document("in", document);
    ig_chunk("in", 0, places[_i].chunk, places[_i].len);
    ig_import("in");
    exchange_has(&ig, "/a", want, sizeof(want));
    ig_not_written("/a", places[_i].pointer);
    exchange_has(&ig, "/a", want, sizeof(want));
    ig_export_is("out", "in");
    scenario_whole(&ig);
}

TEST(chunks_of_several_lengths_are_read)
{
    static const uint8_t want[7] = { 1, 2, 3, 4, 5, 6, 9 };

    ig_document("in", DOC("[7]", "\"uint8\"",
                          "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\","
                          "\"chunk_shapes\":[[1,4,1,3]]}}",
                          "9", BYTES "," NOTE("note")));
    ig_chunk("in", 0, "\1", 1);
    ig_chunk("in", 1, "\2\3\4\5", 4);
    ig_chunk("in", 2, "\6", 1);
    ig_import("in");
    exchange_has(&ig, "/a", want, sizeof(want));
    ig_export_is("out", "in");
}

TEST(elements_of_variable_length_are_read)
{
    /* u32 count, then for each its length and bytes: "ab", "", "c" */
    static const uint8_t chunk[] = "\3\0\0\0\2\0\0\0ab\0\0\0\0\1\0\0\0c";
    static const uint8_t want[] = "\2\0\0\0ab\0\0\0\0\1\0\0\0c\1\0\0\0?";
    brc_buf out = BRC_BUF_INIT;

    ig_document("in", DOC("[4]", "\"string\"", REGULAR("[3]"), "\"?\"",
                          "{\"name\":\"vlen-utf8\"}," NOTE("note")));
    ig_chunk("in", 0, chunk, sizeof(chunk) - 1);
    ig_import("in");
    brc_array *a = scenario_array_at(&ig, ig.session, "/a");
    ig_must(io_elements(a, NULL, &out, &ig.err));
    ck_assert_uint_eq(out.len, sizeof(want) - 1);
    ck_assert_mem_eq(out.data, want, sizeof(want) - 1);
    brc_array_free(a);
    brc_buf_dispose(&out);
    ig_export_is("out", "in");
}

/* The codec may have done more than a reader can leave out: that is an error, and never guessed. */
TEST(a_chunk_that_does_not_fit_without_it_is_an_error)
{
    uint8_t out[6];

    ig_document("in", BYTES_DOC(BYTES "," NOTE("note")));
    ig_chunk("in", 0, "\1\2\3\4\5", 5);
    ig_import("in");
    brc_array *a = scenario_array_at(&ig, ig.session, "/a");
    ig_refused(brc_array_read(a, NULL, out, 6, &ig.err), BRC_ECORRUPT,
               "/a chunk (0): decoded without the codecs that are not known here");
    brc_array_free(a);
    ig_export_is("out", "in");
}

/* ---- identity ----------------------------------------------------------------------- */

/* An array that is wholly known holds the same elements already, in another encoding: the
 * bytes that came with the unknown codec are still those that leave. */
TEST(equal_elements_elsewhere_do_not_replace_its_bytes)
{
    static const uint8_t elements[6] = { 1, 2, 3, 4, 7, 7 };
    static const uint64_t shape[1] = { 6 }, chunk[1] = { 4 };
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;

    spec.ndim = 1;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = "uint8";
    ig_must(brc_array_create(&a, ig.session, "/known", &spec, &ig.err));
    ig_must(brc_array_write(a, NULL, elements, sizeof(elements), &ig.err));
    brc_array_free(a);
    ig_document("in", BYTES_DOC(BYTES "," NOTE("note")));
    ig_chunk("in", 0, "\1\2\3\4", 4);
    ig_must(brc_import(ig.session, exchange_path(&ig, "in/a"), "/a", NULL, &ig.err));
    exchange_has(&ig, "/a", elements, sizeof(elements));
    exchange_has(&ig, "/known", elements, sizeof(elements));
    ig_must(brc_export(ig.session, "/a", exchange_path(&ig, "out"), NULL, &ig.err));
    ck_assert_int_eq(exchange_same_tree(exchange_path(&ig, "out"), exchange_path(&ig, "in/a")), 1);
    scenario_whole(&ig);
}

/* A chunk that reads as fill value is not an absent chunk to who knows the codec. */
TEST(a_chunk_that_reads_as_fill_value_is_kept)
{
    ig_document("in", BYTES_DOC(BYTES "," NOTE("note")));
    ig_chunk("in", 0, "\7\7\7\7", 4);
    ig_import("in");
    exchange_has(&ig, "/a", "\7\7\7\7\7\7", 6);
    ig_export_is("out", "in");
}

TEST(its_chunks_are_versioned_and_compared)
{
    brc_iter *it;
    const brc_change *change;
    brc_diff_opts opts = BRC_DIFF_OPTS_INIT;

    ig_document("in", BYTES_DOC(BYTES "," NOTE("note")));
    ig_chunk("in", 0, "\1\2\3\4", 4);
    ig_chunk("in", 1, "\5\6\7\7", 4);
    ig_must(brc_import(ig.session, exchange_path(&ig, "in/a"), "/a", NULL, &ig.err));
    scenario_commit(&ig, "first");
    ig_must(brc_ref_create(ig.repo, "side", NULL, NULL, 0, &ig.err));
    ig_must(brc_node_remove(ig.session, "/a", &ig.err));
    ig_document("then", BYTES_DOC(BYTES "," NOTE("note")));
    ig_chunk("then", 0, "\1\2\3\4", 4);
    ig_chunk("then", 1, "\5\6\7\10", 4);
    ig_must(brc_import(ig.session, exchange_path(&ig, "then/a"), "/a", NULL, &ig.err));
    opts.flags = BRC_DIFF_ELEMENTS;
    ig_must(brc_diff(&it, ig.repo, NULL, NULL, &opts, &ig.err));
    ck_assert_int_eq(brc_next(it, &change, &ig.err), 1);
    ck_assert_uint_eq(change->chunks_changed, 1);
    ck_assert_uint_eq(change->chunks_added + change->chunks_removed, 0);
    ck_assert_int_eq(brc_next(it, &change, &ig.err), 0);
    brc_iter_free(it);
    scenario_commit(&ig, "second");
    exchange_has(&ig, "/a", "\1\2\3\4\5\6", 6);
    ig_must(brc_node_restore(ig.session, "/a", "side", &ig.err));
    exchange_has(&ig, "/a", "\1\2\3\4\5\6", 6);
    brc_array *a = scenario_array_at(&ig, ig.session, "/a");
    ig_refused(brc_array_restore(a, NULL, "side", &ig.err), BRC_EUNSUPPORTED, "/codecs/1");
    brc_array_free(a);
}

/* ---- where leaving it out is not enough --------------------------------------------- */

static const struct {
    const char *codecs, *why;
} unreadable[] = {
    /* The ignored codec is the only one that turns arrays into bytes. */
    { NOTE("pack"), "\"org.example.pack\" is not known to this build" },
    /* Nothing says how long the index is. */
    { SHARD(BYTES, LITTLE "," NOTE("sum")), "\"org.example.sum\" is not known to this build" },
    { SHARD(NOTE("pack"), LITTLE), "\"org.example.pack\" is not known to this build" },
    /* Another one has to be understood. */
    { BYTES "," NOTE("note") ",{\"name\":\"org.example.need\"}", "\"org.example." },
};

EACH(it_is_not_read_where_the_rest_is_no_chain, unreadable)
{
    char document[1024];
    uint8_t out[6];

    snprintf(document, sizeof(document), BYTES_DOC("%s"), unreadable[_i].codecs);
    ig_document("in", document);
    ig_chunk("in", 0, "\1\2\3\4", 4);
    ig_import("in");
    brc_array *a = scenario_array_at(&ig, ig.session, "/a");
    ck_assert_int_eq((brc_array_describe(a)->flags & BRC_ARRAY_READABLE) != 0, 0);
    ck_assert_int_eq((brc_array_describe(a)->flags & BRC_ARRAY_WRITABLE) != 0, 0);
    ig_refused(brc_array_read(a, NULL, out, 6, &ig.err), BRC_EUNSUPPORTED, unreadable[_i].why);
    brc_array_free(a);
    ig_export_is("out", "in");
}

TEST(no_new_array_is_made_with_it)
{
    static const uint64_t shape[1] = { 6 };
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;

    spec.ndim = 1;
    spec.shape = spec.chunk = shape;
    spec.dtype = "uint8";
    spec.codecs_json = "[" BYTES "," NOTE("note") "]";
    ig_refused(brc_array_create(&a, ig.session, "/a", &spec, &ig.err), BRC_EUNSUPPORTED,
               "/codecs/1: the codec \"org.example.note\"");
}

/* A build that knows the codec does not leave it out, though other readers may. */
TEST(a_known_codec_is_never_left_out)
{
    static const uint8_t want[6] = { 1, 2, 3, 4, 7, 7 };
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_registry *reg = NULL;
    char path[600];

    ig_document("in",
                BYTES_DOC(BYTES ",{\"name\":\"org.example.invert\",\"must_understand\":false}"));
    ig_chunk("in", 0, "\376\375\374\373", 4);
    brc_session_free(ig.session);
    brc_free(ig.repo);
    ig_must(brc_registry_new(&reg, &ig.err));
    plugin_path(path, sizeof(path), "whole");
    ig_must(brc_registry_load(reg, path, &ig.err));
    opts.registry = reg;
    ig_must(brc_open(&ig.repo, exchange_path(&ig, "test.brc"), &opts, &ig.err));
    ig_must(brc_session_open(&ig.session, ig.repo, NULL, BRC_SESSION_WRITE, &ig.err));
    ig_import("in");
    exchange_has(&ig, "/a", want, sizeof(want));
    brc_array *a = scenario_array_at(&ig, ig.session, "/a");
    ck_assert_int_eq((brc_array_describe(a)->flags & BRC_ARRAY_WRITABLE) != 0, 1);
    ig_must(brc_array_write(a, NULL, want, sizeof(want), &ig.err));
    brc_array_free(a);
    brc_session_free(ig.session);
    brc_free(ig.repo);
    ig.session = NULL;
    ig.repo = NULL;
    brc_registry_free(reg);
}
