/* Arrays whose codecs or data type are not known: kept, compared, handed on as they
 * came, and never misread, also by a build that comes to know them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/breccia_codec.h"
#include "../../src/zarr/doc/meta.h"
#include "../../src/zarr/transfer.h"
#include "../kit/exchange_kit.h"
#include "../kit/plugin_kit.h"
#include "../kit/suite.h"

TEST_SUITE(opaque);

#define OPAQUE_DOC(type, codecs)                                                               \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[6],\"data_type\":" type ","         \
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4]}},"           \
    "\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":{\"separator\":\"/\"}},"   \
    "\"fill_value\":7,\"codecs\":" codecs "}"
#define INVERTED "[{\"name\":\"bytes\"},{\"name\":\"org.example.invert\"}]"

static exchange_kit op;

/* A group with the array /a: ~1 ~2 ~3 ~4, and nothing for the second chunk. */
static void opaque_input(const char *dir, const char *document)
{
    char name[80];

    snprintf(name, sizeof(name), "%s/zarr.json", dir);
    exchange_text(&op, name, "{\"zarr_format\":3,\"node_type\":\"group\"}");
    snprintf(name, sizeof(name), "%s/a/zarr.json", dir);
    exchange_text(&op, name, document);
    snprintf(name, sizeof(name), "%s/a/c/0", dir);
    exchange_file(&op, name, "\376\375\374\373", 4);
}

static void opaque_setup(void)
{
    exchange_start(&op);
    opaque_input("in", OPAQUE_DOC("\"uint8\"", INVERTED));
}

static void opaque_teardown(void)
{
    exchange_stop(&op);
}

static void must(int rc)
{
    ck_assert_msg(rc >= 0, "%s", op.err.message);
}

static void refused(int rc, const char *says)
{
    ck_assert_msg(rc == BRC_EUNSUPPORTED, "%d: %s", rc, rc < 0 ? op.err.message : "done");
    ck_assert_msg(strstr(op.err.message, says) != NULL, "\"%s\" is not in \"%s\"", says,
                  op.err.message);
}

/* The repository, anew, with the plug-in or without it. */
static brc_registry *opaque_reopen(int with_plugin)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_registry *reg = NULL;
    char path[600];

    scenario_close(&op);
    must(brc_registry_new(&reg, &op.err));
    plugin_path(path, sizeof(path), "whole");
    if (with_plugin)
        must(brc_registry_load(reg, path, &op.err));
    opts.registry = reg;
    scenario_open(&op, &opts, 0);
    return reg;
}

/* Closes what depends on the registry first. */
static void opaque_done(brc_registry *reg)
{
    scenario_close(&op);
    brc_registry_free(reg);
}

static void read_refused(const char *path, const char *says)
{
    uint8_t out[6];
    brc_array *a = scenario_array_at(&op, op.session, path);
    ck_assert_int_eq((brc_array_describe(a)->flags & BRC_ARRAY_READABLE) != 0, 0);
    refused(brc_array_read(a, NULL, out, sizeof(out), &op.err), says);
    refused(brc_array_write(a, NULL, out, sizeof(out), &op.err), says);
    brc_array_free(a);
}

static void export_is(const char *name, const char *like)
{
    char as[64];

    snprintf(as, sizeof(as), "%s", exchange_path(&op, name) + strlen(op.dir) + 1);
    must(brc_export(op.session, "/", exchange_path(&op, as), NULL, &op.err));
    ck_assert_int_eq(exchange_same_tree(exchange_path(&op, as), exchange_path(&op, like)), 1);
}

CASE("arrays", .setup = opaque_setup, .teardown = opaque_teardown);

TEST(an_unknown_codec_is_kept_and_refused_on_reading)
{
    brc_array *a;
    uint64_t chunks, bytes;

    must(brc_import(op.session, exchange_path(&op, "in"), "/", NULL, &op.err));
    read_refused("/a", "\"org.example.invert\" is not known to this build");
    must(brc_array_open(&a, op.session, "/a", &op.err));
    must(brc_array_stat(&chunks, &bytes, a, &op.err));
    ck_assert_uint_eq(chunks, 1);
    refused(brc_array_resize(a, (uint64_t[]){ 3 }, &op.err), "org.example.invert");
    refused(brc_array_set_codecs(a, "[{\"name\":\"bytes\"}]", 0, &op.err), "org.example.invert");
    brc_array_free(a);
    export_is("out", "in");
    scenario_whole(&op);
}

TEST(D8_an_unknown_data_type_is_kept_too)
{
    opaque_input("odd",
                 OPAQUE_DOC("{\"name\":\"org.example.odd\",\"configuration\":{\"n\":3}}",
                            "[{\"name\":\"bytes\"}]"));
    must(brc_import(op.session, exchange_path(&op, "odd"), "/", NULL, &op.err));
    read_refused("/a", "the data type \"org.example.odd\" is not known to this build");
    export_is("out", "odd");
}

TEST(D8_opaque_chunks_are_versioned)
{
    brc_iter *it;
    const brc_change *change;
    brc_diff_opts opts = BRC_DIFF_OPTS_INIT;
    const brc_node *node;
    int kind, n = 0;

    must(brc_import(op.session, exchange_path(&op, "in/a"), "/a", NULL, &op.err));
    scenario_commit(&op, "first");
    must(brc_ref_create(op.repo, "side", NULL, NULL, 0, &op.err));
    must(brc_node_remove(op.session, "/a", &op.err));
    exchange_file(&op, "in/a/c/1", "other", 5);
    must(brc_import(op.session, exchange_path(&op, "in/a"), "/a", NULL, &op.err));
    opts.flags = BRC_DIFF_ELEMENTS;
    must(brc_diff(&it, op.repo, NULL, NULL, &opts, &op.err));
    ck_assert_int_eq(brc_next(it, &change, &op.err), 1);
    ck_assert_str_eq(change->path, "/a");
    ck_assert_uint_eq(change->chunks_added, 1);
    ck_assert_uint_eq(change->chunks_changed, 0);
    ck_assert_int_eq((change->flags & BRC_CHANGE_ELEMENTS) != 0, 0);
    ck_assert_int_eq(brc_next(it, &change, &op.err), 0);
    brc_iter_free(it);
    scenario_commit(&op, "second");
    export_is("second", "in");

    must(brc_node_restore(op.session, "/a", "side", &op.err));
    opaque_input("first", OPAQUE_DOC("\"uint8\"", INVERTED));
    must(brc_list(&it, op.session, "/", BRC_LIST_RECURSE, &op.err));
    while (brc_next(it, &node, &op.err) == 1)
        n++;
    brc_iter_free(it);
    ck_assert_int_eq(n, 2);
    must(brc_node_kind(&kind, op.session, "/a", &op.err));
    ck_assert_int_eq(kind, BRC_ARRAY);
    export_is("again", "first");
}

/* The same bytes, once as a chunk that can be read and once as one that cannot. */
TEST(equal_bytes_of_a_readable_chunk_are_another_chunk)
{
    static const uint8_t bytes[4] = { 0xfe, 0xfd, 0xfc, 0xfb };
    static const uint64_t shape[1] = { 4 };
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    uint8_t out[4];

    must(brc_import(op.session, exchange_path(&op, "in/a"), "/a", NULL, &op.err));
    spec.ndim = 1;
    spec.shape = spec.chunk = shape;
    spec.dtype = "uint8";
    must(brc_array_create(&a, op.session, "/b", &spec, &op.err));
    must(brc_array_write(a, NULL, bytes, 4, &op.err));
    must(brc_array_read(a, NULL, out, 4, &op.err));
    ck_assert_mem_eq(out, bytes, 4);
    brc_array_free(a);
    read_refused("/a", "org.example.invert");
    scenario_whole(&op);
}

static const uint8_t known[6] = { 1, 2, 3, 4, 7, 7 };

static void known_at(const char *path)
{
    uint8_t *got = exchange_elements(op.session, path, 6);
    ck_assert_mem_eq(got, known, 6);
    free(got);
}

/* The elements can be read, in every version; only an import makes chunks that can be written. */
TEST(with_the_plugin_it_can_be_read_and_is_written_once_it_is_imported_again)
{
    brc_session *old;
    uint8_t *got;

    must(brc_import(op.session, exchange_path(&op, "in"), "/", NULL, &op.err));
    scenario_commit(&op, "opaque");
    must(brc_node_remove(op.session, "/a", &op.err));
    scenario_commit(&op, "gone");
    brc_registry *reg = opaque_reopen(1);
    must(brc_session_open(&old, op.repo, "HEAD~1", BRC_SESSION_AT, &op.err));
    got = exchange_elements(old, "/a", 6);
    ck_assert_mem_eq(got, known, 6);
    free(got);
    brc_session_free(old);
    must(brc_node_restore(op.session, "/a", "HEAD~1", &op.err));
    brc_array *a = scenario_array_at(&op, op.session, "/a");
    ck_assert_int_eq((brc_array_describe(a)->flags & BRC_ARRAY_READABLE) != 0, 1);
    ck_assert_int_eq((brc_array_describe(a)->flags & BRC_ARRAY_WRITABLE) != 0, 0);
    refused(brc_array_write(a, NULL, known, sizeof(known), &op.err), "import it again");
    refused(brc_array_resize(a, (uint64_t[]){ 3 }, &op.err), "import it again");
    brc_array_free(a);
    refused(brc_array_open_plain(&a, op.session, "/a", BRC_PLAIN_DECODED, &op.err),
            "cannot be converted");
    export_is("out", "in");
    must(brc_import(op.session, exchange_path(&op, "out/a"), "/b", NULL, &op.err));
    known_at("/b");
    scenario_write(&op, op.session, "/b", known, sizeof(known));
    scenario_whole(&op);
    opaque_done(reg);
    reg = opaque_reopen(0);
    read_refused("/a", "org.example.invert");
    opaque_done(reg);
}

static int stop_at_once(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    (void)ctx;
    return done + total > 0 && strcmp(phase, "repack") == 0;
}

/* Stores everything again, after a try that is stopped. The commit stays. */
static void repacked(const char *backend, const char *codecs, uint32_t flags, const brc_oid *head)
{
    brc_repack_opts opts = BRC_REPACK_OPTS_INIT;
    brc_oid now;

    opts.backend_json = backend;
    opts.codecs_json = codecs;
    opts.flags = flags;
    if (!(flags & BRC_REPACK_DRY_RUN)) {
        brc_progress_set(op.repo, stop_at_once, NULL);
        const int rc = brc_repack(op.repo, &opts, NULL, &op.err);
        ck_assert_msg(rc == BRC_OK || rc == BRC_EINTERRUPT, "%s", op.err.message);
        brc_progress_set(op.repo, NULL, NULL);
    }
    must(brc_repack(op.repo, &opts, NULL, &op.err));
    must(brc_gc(op.repo, NULL, NULL, &op.err));
    must(brc_resolve(&now, op.repo, "HEAD", &op.err));
    ck_assert_mem_eq(&now, head, sizeof(now));
    scenario_whole(&op);
}

TEST(repack_moves_it_and_it_stays_readable)
{
    brc_oid head;

    must(brc_import(op.session, exchange_path(&op, "in"), "/", NULL, &op.err));
    scenario_commit(&op, "opaque");
    must(brc_resolve(&head, op.repo, "HEAD", &op.err));
    for (int with = 0; with < 2; with++) {
        brc_registry *reg = opaque_reopen(with);
        const char *codecs = "[{\"name\":\"bytes\"},{\"name\":\"zstd\"}]";
        repacked("\"pack\"", NULL, BRC_REPACK_DRY_RUN, &head);
        repacked("\"pack\"", NULL, 0, &head);
        if (with) {
            repacked(NULL, codecs, BRC_REPACK_DRY_RUN, &head);
            repacked(NULL, codecs, 0, &head);
        }
        repacked(NULL, NULL, BRC_REPACK_DELTA, &head);
        repacked("\"inline\"", NULL, 0, &head);
        if (with)
            known_at("/a");
        else
            read_refused("/a", "org.example.invert");
        opaque_done(reg);
    }
    brc_registry *reg = opaque_reopen(1);
    export_is("out", "in");
    opaque_done(reg);
}

/* The grid of an opaque array with shards is that of the shards: no inner chunk of it
 * may be read as absent, and a shard is decoded as a whole. */
TEST(an_opaque_shard_is_not_taken_for_inner_chunks)
{
    static const uint8_t shard[4 + 32] = { 0xfe,        0xfd,         0xfc,        0xfb,
                                           [4 + 8] = 2, [4 + 16] = 2, [4 + 24] = 2 };
    opaque_input("shards",
                 OPAQUE_DOC("\"uint8\"",
                            "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":"
                             "[2],\"codecs\":" INVERTED ",\"index_codecs\":[{\"name\":\"bytes\","
                             "\"configuration\":{\"endian\":\"little\"}}]}}]"));
    ck_assert_int_eq(unlink(exchange_path(&op, "shards/a/c/0")), 0);
    exchange_file(&op, "shards/a/c/0", (const char *)shard, sizeof(shard));
    must(brc_import(op.session, exchange_path(&op, "shards"), "/", NULL, &op.err));
    scenario_commit(&op, "opaque shards");
    brc_registry *reg = opaque_reopen(1);
    known_at("/a");
    export_is("out", "shards");
    opaque_done(reg);
}

/* Chunks that were written with the plug-in, read without it. */
TEST(without_the_plugin_stored_bytes_are_passed_on)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    static const uint64_t shape[1] = { 4000 };
    static uint16_t words[4000];
    brc_array *a;
    brc_registry *reg = opaque_reopen(1);

    spec.ndim = 1;
    spec.shape = spec.chunk = shape;
    spec.dtype = "org.example.word";
    spec.fill = "\"ffff\"";
    spec.codecs_json = "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},"
                       "{\"name\":\"org.example.invert\"},{\"name\":\"zstd\"}]";
    for (size_t i = 0; i < 4000; i++)
        words[i] = (uint16_t)(i / 100);
    must(brc_array_create(&a, op.session, "/w", &spec, &op.err));
    must(brc_array_write(a, NULL, words, sizeof(words), &op.err));
    brc_array_free(a);
    scenario_commit(&op, "words");
    must(brc_export(op.session, "/", exchange_path(&op, "with"), NULL, &op.err));
    scenario_close(&op);
    brc_registry_free(reg);

    reg = opaque_reopen(0);
    read_refused("/w", "\"org.example.word\" is not known to this build");
    export_is("without", "with");
    scenario_whole(&op);
    opaque_done(reg);
    reg = opaque_reopen(1);
    uint16_t *got = exchange_elements(op.session, "/w", sizeof(words));
    ck_assert_mem_eq(got, words, sizeof(words));
    free(got);
    opaque_done(reg);
}

/* Chunks that did not shrink are stored as they are: nobody here can encode them. */
TEST(without_the_plugin_raw_chunks_are_not_passed_off_as_encoded)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    static const uint64_t shape[1] = { 200 };
    uint8_t bytes[200];
    brc_array *a;
    brc_buf out = BRC_BUF_INIT;
    brc_registry *reg = opaque_reopen(1);

    spec.ndim = 1;
    spec.shape = spec.chunk = shape;
    spec.dtype = "uint8";
    spec.codecs_json = INVERTED;
    must(brc_array_create(&a, op.session, "/w", &spec, &op.err));
    memset(bytes, 1, sizeof(bytes));
    must(brc_array_write(a, NULL, bytes, sizeof(bytes), &op.err));
    brc_array_free(a);
    must(brc_key_get(&out, op.session, "w/c/0", NULL, NULL, &op.err));
    memset(bytes, 254, sizeof(bytes));
    ck_assert_uint_eq(out.len, sizeof(bytes));
    ck_assert_mem_eq(out.data, bytes, sizeof(bytes));
    opaque_done(reg);
    reg = opaque_reopen(0);
    out.len = 0;
    refused(brc_key_get(&out, op.session, "w/c/0", NULL, NULL, &op.err), "org.example.invert");
    brc_buf_dispose(&out);
    opaque_done(reg);
}
