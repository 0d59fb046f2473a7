/* The tags of values in the key view, to the digit: clients keep them from one version of the
 * library to the next. Only codecs whose bytes depend on no library. */
#include <stdio.h>
#include <string.h>

#include "../../src/breccia.h"
#include "../../src/zarr/array/array.h"
#include "../kit/exchange_kit.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(key_etags);

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BIG "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define CRC "{\"name\":\"crc32c\"}"
#define TURN "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}"
#define SHARD(chunk, codecs, where) \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" chunk \
    ",\"codecs\":[" codecs "],\"index_codecs\":[" LITTLE "," CRC \
    "],\"index_location\":\"" where "\"}}"
#define REGULAR "{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[8,8]}}"
#define UNEVEN "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\"," \
    "\"chunk_shapes\":[[8,2,10],[[5,4]]]}}"

/* Arrays of 20x20 uint16, the tag of the first chunk or shard, and of one that the end cuts. */
static const struct {
    const char *grid, *codecs, *first, *cut;
} numbers[] = {
    {REGULAR, LITTLE,
     "8077c727a6ee74923b22c93f28be514a", "1d8361226ef85b5346e65f441777a6f9"},
    {REGULAR, BIG,
     "8077c727a6ee74923b22c93f28be514a", "1d8361226ef85b5346e65f441777a6f9"},
    {REGULAR, LITTLE "," CRC,
     "48f8bb6012fd1ec1c38aca39d04fcc39", "da7cb73d6542c4e1e40e54ec14eb35d7"},
    {REGULAR, TURN "," LITTLE,
     "8077c727a6ee74923b22c93f28be514a", "1d8361226ef85b5346e65f441777a6f9"},
    {REGULAR, TURN "," BIG "," CRC,
     "48f8bb6012fd1ec1c38aca39d04fcc39", "da7cb73d6542c4e1e40e54ec14eb35d7"},
    {UNEVEN, BIG,
     "94aa4c045b435b13f2f8e4f9ac32371d", "35dca942e007903dc94c1e1ff888c56f"},
    {REGULAR, SHARD("[4,4]", LITTLE, "end"),
     "40e79ca200813fa0c8e00dcbdf05856a", "9f9a77bf0dd4db4b06d0a9a278242b93"},
    {REGULAR, SHARD("[4,2]", BIG "," CRC, "start"),
     "8ab1d98b4c1e1ce04d6cfd88b2d0e32e", "774e35ae917f643ae44e3580ebb775eb"},
    {REGULAR, SHARD("[4,4]", TURN "," LITTLE, "end"),
     "40e79ca200813fa0c8e00dcbdf05856a", "9f9a77bf0dd4db4b06d0a9a278242b93"},
    {REGULAR, SHARD("[4,4]", SHARD("[2,2]", BIG, "end"), "start"),
     "d9a8354242232540b03d475b71870463", "50b9aa3deacd45918c42b57aefe49c4d"},
    {REGULAR, SHARD("[4,4]", LITTLE, "end") "," CRC,
     "5e7b2689a061658aef145ab98e1791e6", "39cc31fc220216065f0565aed6ff2bc8"},
    {REGULAR, TURN "," SHARD("[4,4]", LITTLE, "end"),
     "818efd23eaf79eeda1a2f2d86ca622fa", "a3e5f3e81387812973d04f9d53360448"},
};
enum { NUMBERS = sizeof(numbers) / sizeof(numbers[0]), PLAIN = 5 };

static exchange_kit t;

static void etags_start(void)
{
    exchange_start(&t);
}

static void etags_stop(void)
{
    exchange_stop(&t);
}

static void tag_is(const char *key, const char *want)
{
    brc_key_info info = BRC_KEY_INFO_INIT, read = BRC_KEY_INFO_INIT;
    brc_buf bytes = BRC_BUF_INIT;
    OK(&t, brc_key_get(NULL, t.session, key, NULL, &info, &t.err));
    OK(&t, brc_key_get(&bytes, t.session, key, NULL, &read, &t.err));
    brc_buf_dispose(&bytes);
    ck_assert_str_eq(read.etag, info.etag);
    ck_assert_msg(strcmp(info.etag, want) == 0, "%s has the tag %s, not %s", key, info.etag, want);
}

static brc_array *documented(const char *grid, const char *codecs)
{
    char document[2048];
    brc_array *a;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    snprintf(document, sizeof(document),
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[20,20],"
             "\"data_type\":\"uint16\",\"chunk_grid\":%s,"
             "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,\"codecs\":[%s]}",
             grid, codecs);
    spec.metadata_json = document;
    OK(&t, brc_array_create(&a, t.session, "/a", &spec, &t.err));
    return a;
}

/* The second chunk of 4x4 is fill value; the rest counts. */
static void fill_numbers(brc_array *a)
{
    uint16_t data[400];
    for (int i = 0; i < 20; i++)
        for (int j = 0; j < 20; j++)
            data[20 * i + j] = i < 4 && j >= 4 && j < 8 ? 0 : (uint16_t)(331 * i + 7 * j + 1);
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
}

static void commit(void)
{
    brc_oid id;
    OK(&t, scenario_commit_of(&t, t.session, "tagged", &id));
}

CASE("key_etags", .setup = etags_start, .teardown = etags_stop);

LOOP(tags_of_arrays_of_numbers_stay, 0, NUMBERS)
{
    brc_array *a = documented(numbers[_i].grid, numbers[_i].codecs);
    fill_numbers(a);
    brc_array_free(a);
    tag_is("a/c/0/0", numbers[_i].first);
    tag_is("a/c/2/2", numbers[_i].cut);
    commit();
    tag_is("a/c/0/0", numbers[_i].first);
}

/* A client's bytes have the tag of the same elements that were written. */
LOOP(tags_of_bytes_that_a_client_sets_are_those_of_the_elements, 0, NUMBERS)
{
    brc_buf first = BRC_BUF_INIT, cut = BRC_BUF_INIT;
    brc_array *a = documented(numbers[_i].grid, numbers[_i].codecs);
    fill_numbers(a);
    OK(&t, brc_key_get(&first, t.session, "a/c/0/0", NULL, NULL, &t.err));
    OK(&t, brc_key_get(&cut, t.session, "a/c/2/2", NULL, NULL, &t.err));
    const uint16_t zero = 0;
    OK(&t, brc_array_fill(a, NULL, &zero, &t.err));
    brc_array_free(a);
    OK(&t, brc_key_set(t.session, "a/c/0/0", first.data, first.len, 0, &t.err));
    OK(&t, brc_key_set(t.session, "a/c/2/2", cut.data, cut.len, 0, &t.err));
    tag_is("a/c/0/0", numbers[_i].first);
    tag_is("a/c/2/2", numbers[_i].cut);
    brc_buf_dispose(&first);
    brc_buf_dispose(&cut);
}

/* Chunks that are stored in another encoding than the array's are encoded for the tag. */
LOOP(tags_follow_the_codecs_that_an_array_is_given, 0, PLAIN)
{
    brc_array *a = documented(REGULAR, LITTLE);
    char codecs[1024];
    fill_numbers(a);
    snprintf(codecs, sizeof(codecs), "[%s]", numbers[_i].codecs);
    OK(&t, brc_array_set_codecs(a, codecs, 0, &t.err));
    brc_array_free(a);
    tag_is("a/c/0/0", numbers[_i].first);
    tag_is("a/c/2/2", numbers[_i].cut);
}

#define TEXT_DOC(codecs)                                                                      \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[6],\"data_type\":\"string\","      \
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4]}},"          \
    "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":\"\",\"codecs\":[" codecs "]}"
#define TEXTS "{\"name\":\"vlen-utf8\"}"

static const struct {
    const char *codecs, *first, *cut;
} texts[] = {
    {TEXTS,
     "f65d20f522fc2c7aad6a4740946d7792", "66c6b2b935c7885f27b21903422b78fb"},
    {TEXTS "," CRC,
     "13914b37906d3d342364f69a747b1d5c", "22ac0a173fcc740eb67d3727ad8ea763"},
    {SHARD("[2]", TEXTS, "end"),
     "5b9f778f1c5eac08348d0c750966ebf0", "f967997b267ce0d454e9ff64b80fd295"},
};

LOOP(tags_of_arrays_of_text_stay, 0, 3)
{
    static const char words[] = "\1\0\0\0a" "\0\0\0\0" "\2\0\0\0bc" "\3\0\0\0d\303\251"
                                "\3\0\0\0eee" "\1\0\0\0f";
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    char document[1024];
    brc_array *a;
    snprintf(document, sizeof(document), TEXT_DOC("%s"), texts[_i].codecs);
    spec.metadata_json = document;
    OK(&t, brc_array_create(&a, t.session, "/s", &spec, &t.err));
    OK(&t, brc_array_write(a, NULL, words, sizeof(words) - 1, &t.err));
    brc_array_free(a);
    tag_is("s/c/0", texts[_i].first);
    tag_is("s/c/1", texts[_i].cut);
    commit();
    tag_is("s/c/1", texts[_i].cut);
}

static const struct {
    const char *zarray, *key, *tag;
} old_formats[] = {
    {"{\"zarr_format\":2,\"shape\":[2,3],\"chunks\":[2,2],\"dtype\":\"<u2\",\"fill_value\":0,"
     "\"order\":\"C\",\"filters\":null,\"compressor\":null}",
     "a/0.0", "493389b95fac87946f6051a9e8823946"},
    {"{\"zarr_format\":2,\"shape\":[2,3],\"chunks\":[2,2],\"dtype\":\">u2\",\"fill_value\":0,"
     "\"order\":\"F\",\"filters\":null,\"compressor\":null}",
     "a/0.0", "8e5289b91e291036d5b61e6b70a74045"},
};

LOOP(tags_of_arrays_from_format_2_stay, 0, 2)
{
    exchange_text(&t, "in/.zgroup", "{\"zarr_format\":2}");
    exchange_text(&t, "in/a/.zarray", old_formats[_i].zarray);
    exchange_file(&t, "in/a/0.0", "\1\2\3\4\5\6\7\10", 8);
    exchange_file(&t, "in/a/0.1", "\11\0\12\0\13\0\14\0", 8);
    exchange_import_ok(&t, exchange_path(&t, "in"), "/", NULL);
    tag_is(old_formats[_i].key, old_formats[_i].tag);
}

#define UNKNOWN_DOC                                                                          \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[6],\"data_type\":\"uint8\","      \
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4]}},"         \
    "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":7,"                        \
    "\"codecs\":[{\"name\":\"bytes\"},{\"name\":\"org.example.unknown\"}]}"

TEST(tags_of_what_cannot_be_decoded_stay)
{
    static const char by_import[] = "2b66b057198a83a5ea588a85a5077665";
    static const char by_client[] = "dad7dde3c9f342c02978a00250eac170";
    static const char loose[] = "fb39e8e7833d036c5a631a577a65b22a";
    static const char document[] = "c7ae0cff77c295775418139a511212cf";
    exchange_text(&t, "in/zarr.json", "{\"zarr_format\":3,\"node_type\":\"group\"}");
    exchange_text(&t, "in/a/zarr.json", UNKNOWN_DOC);
    exchange_file(&t, "in/a/c/0", "\376\375\374\373", 4);
    exchange_import_ok(&t, exchange_path(&t, "in"), "/", NULL);
    tag_is("a/c/0", by_import);
    OK(&t, brc_key_set(t.session, "a/c/1", "\1\2\3", 3, 0, &t.err));
    tag_is("a/c/1", by_client);
    tag_is("a/zarr.json", document);
    OK(&t, brc_key_set(t.session, "b/c/0", "loose", 5, 0, &t.err));
    tag_is("b/c/0", loose);
    OK(&t, brc_key_delete(t.session, "b/c/0", 0, &t.err));
}

/* Where a library makes the bytes, the tag is still that of id, length and checksum. */
TEST(a_tag_is_made_of_id_length_and_checksum)
{
    static const char zstd[] = LITTLE ",{\"name\":\"zstd\",\"configuration\":{\"level\":3}}";
    brc_array *a = documented(REGULAR, zstd);
    brc_buf bytes = BRC_BUF_INIT;
    const uint64_t index[2] = {0, 0}, chunk[2] = {8, 8};
    uint8_t made[48];
    char hex[65];
    brc_form *form;
    brc_oid id;
    fill_numbers(a);
    OK(&t, brc_key_get(&bytes, t.session, "a/c/0/0", NULL, NULL, &t.err));
    OK(&t, brc_array_begin_read(a, &t.err));
    OK(&t, brc_array_chunk_ids(a, 1, index, &id, &t.err));
    brc_array_end_read(a);
    OK(&t, brc_meta_form(&a->meta, chunk, &form, &t.err));
    memcpy(made, id.bytes, 32);
    brc_put_u64le(made + 32, bytes.len);
    brc_put_u64le(made + 40, brc_hash_stored(&id, brc_hash_encoding(form->spec), bytes.data,
                                             bytes.len));
    const brc_oid tag = brc_hash_object(BRC_HASH_XXH128, BRC_KIND_LOOSE, made, sizeof(made));
    brc_oid_format(hex, &tag);
    hex[32] = '\0';
    tag_is("a/c/0/0", hex);
    brc_buf_dispose(&bytes);
    brc_array_free(a);
}
