/* The documents that implementations of Zarr agree to refuse and to accept, row by row:
 * each refusal names the member as a JSON pointer and says why. What a document holds is
 * patched into a good one; "--" takes a member out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/codec/registry.h"
#include "../../src/zarr/doc/meta.h"
#include "../kit/exchange_kit.h"
#include "../kit/json_places.h"
#include "../kit/dtype_kit.h"
#include "../kit/suite.h"

TEST_SUITE(metadata_lists);

#define GOOD_ARRAY                                                                             \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4,6],\"data_type\":\"uint16\","     \
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2,3]}},"         \
    "\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":{\"separator\":\"/\"}},"   \
    "\"fill_value\":0,\"codecs\":[" LITTLE "]}"
#define GOOD_GROUP "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{}}"
#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define NAMED(name, config) "{\"name\":\"" name "\",\"configuration\":" config "}"
#define CODECS(list) "{\"codecs\":[" list "]}"
#define AFTER(codec) CODECS(LITTLE "," codec)
#define GRID(grid) "{\"chunk_grid\":" grid "}"
#define REGULAR(chunk) GRID(NAMED("regular", "{\"chunk_shape\":" chunk "}"))
#define EDGES(lists) GRID(NAMED("rectilinear", "{\"kind\":\"inline\",\"chunk_shapes\":" lists "}"))
#define KEYS(keys) "{\"chunk_key_encoding\":" keys "}"
#define TYPED(type, fill) "{\"data_type\":" type ",\"fill_value\":" fill "}"
#define BARE(type, fill) TYPED("\"" type "\"", fill)
#define SHARD(more)                                                                            \
    CODECS(NAMED("sharding_indexed", "{\"chunk_shape\":[1,3],\"codecs\":[" LITTLE              \
                                     "],\"index_codecs\":[" LITTLE "]" more "}"))
#define SHARD_OF(shape, codecs, index)                                                         \
    CODECS(NAMED("sharding_indexed", "{\"chunk_shape\":" shape ",\"codecs\":[" codecs          \
                                     "],\"index_codecs\":[" index "]}"))
#define STRUCT(fields) NAMED("struct", "{\"fields\":[" fields "]}")
#define FIELD(name, type) "{\"name\":\"" name "\",\"data_type\":\"" type "\"}"
#define TIME(unit, scale)                                                                      \
    TYPED(NAMED("numpy.datetime64", "{\"unit\":\"" unit "\",\"scale_factor\":" scale "}"), "0")
#define BLOSC(cname, clevel, shuffle, typesize)                                                \
    AFTER(NAMED("blosc", "{\"cname\":\"" cname "\",\"clevel\":" clevel ",\"shuffle\":" shuffle \
                         ",\"typesize\":" typesize ",\"blocksize\":0}"))
#define SCALE(config) CODECS(NAMED("scale_offset", config) "," LITTLE)
#define CAST(config) CODECS(NAMED("cast_value", config) "," LITTLE)

static brc_json *patched(const char *good, const char *patch)
{
    brc_error err = BRC_ERROR_INIT;
    brc_json *doc, *members;

    ck_assert_int_eq(brc_json_parse(&doc, good, strlen(good), 0, &err), BRC_OK);
    ck_assert_msg(brc_json_parse(&members, patch, strlen(patch), 0,
                                 &err) == BRC_OK, "%s: %s", patch,
                  err.message);
    for (const brc_json *v = brc_json_first(members); v != NULL; v = brc_json_next(v)) {
        brc_json *copy;
        if (brc_json_is(v, "--")) {
            brc_json_remove(doc, brc_json_name(v));
            continue;
        }
        ck_assert_int_eq(brc_json_clone(&copy, v, &err), BRC_OK);
        ck_assert_int_eq(brc_json_set(doc, brc_json_name(v), copy, &err), BRC_OK);
    }
    brc_json_free(members);
    return doc;
}

/* The code of opening it; of an array that is kept but cannot be read, BRC_EUNSUPPORTED
 * with the reason. */
static int open_patched(const char *patch, brc_error *err)
{
    brc_meta meta;
    brc_json *doc = patched(GOOD_ARRAY, patch);
    int rc = brc_meta_open(&meta, dtype_kit_registry(), doc, err);

    brc_json_free(doc);
    if (rc < 0)
        return rc;
    rc = brc_meta_must_decode(&meta, err);
    brc_meta_dispose(&meta);
    return rc;
}

/* "/codecs/0: bytes: ..." begins with "/codecs/0" and has more to say. */
static void check_message(const char *patch, const brc_error *err, const char *pointer,
                          const char *says)
{
    size_t len = strlen(pointer);

    ck_assert_msg(strncmp(err->message, pointer, len) == 0 && strchr(":/", err->message[len]),
                  "%s: \"%s\" does not begin with %s", patch, err->message, pointer);
    ck_assert_msg(strstr(err->message + len, says) != NULL, "%s: \"%s\" lacks \"%s\"", patch,
                  err->message, says);
}

/* ---- refused ------------------------------------------------------------------------ */

static const struct {
    const char *patch, *pointer, *says;
} refused[] = {
    /* a required member is absent */
    { "{\"zarr_format\":\"--\"}", "/zarr_format", "must be the integer 3" },
    { "{\"node_type\":\"--\"}", "/node_type", "\"array\" or \"group\"" },
    { "{\"shape\":\"--\"}", "/shape", "is missing" },
    { "{\"data_type\":\"--\"}", "/data_type", "is missing" },
    { "{\"chunk_grid\":\"--\"}", "/chunk_grid", "is missing" },
    { "{\"chunk_key_encoding\":\"--\"}", "/chunk_key_encoding", "is missing" },
    { "{\"fill_value\":\"--\"}", "/fill_value", "is missing" },
    { "{\"codecs\":\"--\"}", "/codecs", "is missing" },
    /* zarr_format, node_type */
    { "{\"zarr_format\":2}", "/zarr_format", "must be the integer 3" },
    { "{\"zarr_format\":4}", "/zarr_format", "must be the integer 3" },
    { "{\"zarr_format\":3.0}", "/zarr_format", "must be the integer 3" },
    { "{\"zarr_format\":\"3\"}", "/zarr_format", "must be the integer 3" },
    { "{\"zarr_format\":true}", "/zarr_format", "must be the integer 3" },
    { "{\"node_type\":\"foo\"}", "/node_type", "\"array\" or \"group\"" },
    { "{\"node_type\":\"group\"}", "/node_type", "\"array\"" },
    /* members that nobody knows */
    { "{\"extra\":1}", "/extra", "\"must_understand\": false" },
    { "{\"extra\":null}", "/extra", "\"must_understand\": false" },
    { "{\"extra\":[]}", "/extra", "\"must_understand\": false" },
    { "{\"extra\":{}}", "/extra", "\"must_understand\": false" },
    { "{\"extra\":{\"must_understand\":true}}", "/extra", "\"must_understand\": false" },
    { "{\"extra\":{\"must_understand\":0}}", "/extra", "\"must_understand\": false" },
    { "{\"a/b~c\":1}", "/a~1b~0c", "\"must_understand\": false" },
    { "{\"attributes\":[]}", "/attributes", "must be an object" },
    { "{\"consolidated_metadata\":{\"kind\":\"inline\",\"metadata\":{}}}",
      "/consolidated_metadata", "\"must_understand\": false" },
    /* storage transformers */
    { "{\"storage_transformers\":[{\"name\":\"x\"}]}", "/storage_transformers/0", "not known" },
    { "{\"storage_transformers\":[\"x\"]}", "/storage_transformers/0", "not known" },
    { "{\"storage_transformers\":[{\"name\":\"x\",\"must_understand\":true}]}",
      "/storage_transformers/0", "not known" },
    { "{\"storage_transformers\":[{\"name\":\"x\",\"must_understand\":false},5]}",
      "/storage_transformers/1", "a name is expected" },
    { "{\"storage_transformers\":{}}", "/storage_transformers", "must be a list" },
    /* must_understand, and members beside it */
    { TYPED("{\"name\":\"uint16\",\"must_understand\":false}", "0"), "/data_type", "cannot" },
    { GRID("{\"name\":\"regular\",\"must_understand\":false,\"configuration\":{\"chunk_shape\":"
           "[2,3]}}"),
      "/chunk_grid", "\"must_understand\": false is not allowed" },
    { KEYS("{\"name\":\"default\",\"must_understand\":false}"), "/chunk_key_encoding",
      "\"must_understand\": false is not allowed" },
    { TYPED("{\"name\":\"uint16\",\"must_understand\":0}", "0"), "/data_type", "true or false" },
    { GRID("{\"name\":\"regular\",\"must_understand\":\"no\"}"), "/chunk_grid", "true or false" },
    { KEYS("{\"name\":\"default\",\"must_understand\":null}"), "/chunk_key_encoding",
      "true or false" },
    { AFTER("{\"name\":\"crc32c\",\"must_understand\":1}"), "/codecs/1", "true or false" },
    { TYPED("{\"name\":\"uint16\",\"x\":1}", "0"), "/data_type", "\"x\"" },
    { GRID("{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2,3]},\"x\":1}"),
      "/chunk_grid", "\"x\"" },
    { KEYS("{\"name\":\"default\",\"x\":1}"), "/chunk_key_encoding", "\"x\"" },
    { AFTER("{\"name\":\"crc32c\",\"x\":1}"), "/codecs/1", "\"x\"" },
    { GRID(NAMED("regular", "{\"chunk_shape\":[2,3],\"x\":1}")), "/chunk_grid/configuration",
      "\"x\"" },
    { KEYS(NAMED("default", "{\"x\":1}")), "/chunk_key_encoding/configuration", "\"x\"" },
    { AFTER(NAMED("crc32c", "{\"x\":1}")), "/codecs/1", "\"x\"" },
    { TYPED(NAMED("uint16", "{\"x\":1}"), "0"), "/data_type", "\"x\"" },
    { TYPED(NAMED("uint16", "5"), "0"), "/data_type", "must be an object" },
    { TYPED("{\"configuration\":{}}", "0"), "/data_type", "\"name\"" },
    { TYPED("5", "0"), "/data_type", "a name is expected" },
    /* shape, and ranks that differ */
    { "{\"shape\":[-4,6]}", "/shape/0", "must be an integer" },
    { "{\"shape\":[4,6.5]}", "/shape/1", "must be an integer" },
    { "{\"shape\":[4.0,6]}", "/shape/0", "must be an integer" },
    { "{\"shape\":[true,6]}", "/shape/0", "must be an integer" },
    { "{\"shape\":[\"4\",6]}", "/shape/0", "must be an integer" },
    { "{\"shape\":[9223372036854775808,6]}", "/shape/0", "must be an integer" },
    { "{\"shape\":4}", "/shape", "must be a list" },
    { REGULAR("[2]"), "/chunk_grid/configuration/chunk_shape", "as many dimensions" },
    { REGULAR("[2,3,1]"), "/chunk_grid/configuration/chunk_shape", "as many dimensions" },
    { "{\"dimension_names\":[\"x\"]}", "/dimension_names", "one item per dimension" },
    { "{\"dimension_names\":[\"x\",5]}", "/dimension_names/1", "a string or null" },
    { "{\"dimension_names\":\"xy\"}", "/dimension_names", "must be a list" },
    { CODECS(NAMED("transpose", "{\"order\":[0]}") "," LITTLE), "/codecs/0", "order" },
    { SHARD_OF("[1]", LITTLE, LITTLE), "/codecs/0", "chunk_shape" },
    /* chunks of nothing */
    { REGULAR("[0,3]"), "/chunk_grid/configuration/chunk_shape/0", "must be an integer from 1" },
    { REGULAR("[2,-3]"), "/chunk_grid/configuration/chunk_shape/1", "must be an integer from 1" },
    { REGULAR("[2,3.0]"), "/chunk_grid/configuration/chunk_shape/1", "must be an integer from 1" },
    { REGULAR("5"), "/chunk_grid/configuration/chunk_shape", "must be a list" },
    { GRID("\"regular\""), "/chunk_grid/configuration/chunk_shape", "must be a list" },
    { GRID(NAMED("hexagonal", "{}")), "/chunk_grid", "\"hexagonal\" is not known" },
    /* the order of codecs */
    { CODECS(""), "/codecs", "array->bytes" },
    { CODECS(NAMED("transpose", "{\"order\":[1,0]}")), "/codecs", "array->bytes" },
    { CODECS(LITTLE "," LITTLE), "/codecs/1", "the second array->bytes codec" },
    { AFTER(NAMED("transpose", "{\"order\":[1,0]}")), "/codecs/1", "put it before" },
    { CODECS("{\"name\":\"crc32c\"}," LITTLE), "/codecs/0", "put an array->bytes codec" },
    { CODECS("5"), "/codecs/0", "a name is expected" },
    { "{\"codecs\":{}}", "/codecs", "must be a list" },
    { CODECS("{\"name\":5}"), "/codecs/0", "\"name\"" },
    /* bytes */
    { CODECS("{\"name\":\"bytes\"}"), "/codecs/0", "\"endian\" must be given" },
    { CODECS(NAMED("bytes", "{\"endian\":\"middle\"}")), "/codecs/0", "\"little\" or \"big\"" },
    { CODECS(NAMED("bytes", "{\"endian\":null}")), "/codecs/0", "\"little\" or \"big\"" },
    /* transpose */
    { CODECS(NAMED("transpose", "{\"order\":[1,1]}") "," LITTLE), "/codecs/0", "order" },
    { CODECS(NAMED("transpose", "{\"order\":[2,1,0]}") "," LITTLE), "/codecs/0", "order" },
    { CODECS(NAMED("transpose", "{\"order\":[1,2]}") "," LITTLE), "/codecs/0", "order" },
    { CODECS(NAMED("transpose", "{\"order\":[1,0],\"x\":1}") "," LITTLE), "/codecs/0", "\"x\"" },
    { CODECS("{\"name\":\"transpose\"}," LITTLE), "/codecs/0", "order" },
    /* levels and names of compressors */
    { AFTER(NAMED("gzip", "{\"level\":-1}")), "/codecs/1", "level" },
    { AFTER(NAMED("gzip", "{\"level\":10}")), "/codecs/1", "level" },
    { AFTER(NAMED("gzip", "{\"level\":5.0}")), "/codecs/1", "level" },
    { AFTER(NAMED("zstd", "{\"level\":23,\"checksum\":false}")), "/codecs/1", "level" },
    { AFTER(NAMED("zstd", "{\"level\":3,\"checksum\":1}")), "/codecs/1", "checksum" },
    { BLOSC("lz4", "10", "\"shuffle\"", "2"), "/codecs/1", "clevel" },
    { BLOSC("foo", "5", "\"shuffle\"", "2"), "/codecs/1", "cname" },
    { BLOSC("lz4", "5", "\"auto\"", "2"), "/codecs/1", "shuffle" },
    { BLOSC("lz4", "5", "\"shuffle\"", "0"), "/codecs/1", "typesize" },
    /* shards */
    { SHARD_OF("[2,2]", LITTLE, LITTLE), "/codecs/0", "must divide the shard" },
    { SHARD_OF("[0,3]", LITTLE, LITTLE), "/codecs/0", "chunk_shape" },
    { SHARD_OF("[1,3]", LITTLE, LITTLE "," NAMED("gzip", "{\"level\":1}")), "/codecs/0",
      "the same length" },
    { SHARD_OF("[1,3]", "{\"name\":\"crc32c\"}", LITTLE), "/codecs/0", "\"codecs\"" },
    { SHARD(",\"index_location\":\"middle\""), "/codecs/0", "\"start\" or \"end\"" },
    { SHARD(",\"x\":1"), "/codecs/0", "\"x\"" },
    { CODECS(NAMED("sharding_indexed", "{\"chunk_shape\":[1,3],\"codecs\":[" LITTLE "]}")),
      "/codecs/0", "index_codecs" },
    { CODECS(NAMED("sharding_indexed", "{\"chunk_shape\":[1,3],\"index_codecs\":[" LITTLE "]}")),
      "/codecs/0", "codecs" },
    { "{\"shape\":[1099511627776],\"chunk_grid\":" NAMED(
          "regular", "{\"chunk_shape\":[2147483648]}") ",\"codecs\":[" NAMED("sharding_indexed",
                                                                             "{\"chunk_shape\":"
                                                                             "[1],"
                                                                             "\"codecs\":[" LITTLE
                                                                             "],\"index_codecs\":"
                                                                             "[" LITTLE "]}") "]}",
      "/codecs/0", "2^30" },
    /* data types */
    { BARE("char", "0"), "/data_type", "\"char\" is not known" },
    { BARE("r5", "[0]"), "/data_type", "r5" },
    { BARE("r0", "[]"), "/data_type", "r0" },
    { BARE("ra", "[0]"), "/data_type", "ra" },
    { BARE("UINT16", "0"), "/data_type", "\"UINT16\" is not known" },
    { TYPED("{\"name\":\"uint16\",\"notconfiguration\":{}}", "0"), "/data_type",
      "notconfiguration" },
    { TYPED("\"fixed_length_utf32\"", "\"\""), "/data_type", "length_bytes" },
    { TYPED(NAMED("fixed_length_utf32", "{\"length_bytes\":6}"), "\"\""), "/data_type",
      "length_bytes" },
    /* fill values */
    { BARE("int8", "128"), "/fill_value", "128" },
    { BARE("int8", "\"0\""), "/fill_value", "\"0\"" },
    { BARE("int8", "false"), "/fill_value", "false" },
    { BARE("int8", "0.5"), "/fill_value", "0.5" },
    { BARE("uint8", "-1"), "/fill_value", "-1" },
    { BARE("uint64", "18446744073709551616"), "/fill_value", "18446744073709551616" },
    { BARE("bool", "0"), "/fill_value", "0" },
    { BARE("bool", "1"), "/fill_value", "1" },
    { BARE("bool", "\"true\""), "/fill_value", "\"true\"" },
    { BARE("float32", "\"0\""), "/fill_value", "\"0\"" },
    { BARE("float32", "false"), "/fill_value", "false" },
    { BARE("float32", "\"0x\""), "/fill_value", "\"0x\"" },
    /* TensorStore reads it; all others want all digits */
    { BARE("float32", "\"0x0\""), "/fill_value", "8 hex digits" },
    { BARE("float32", "\"0xg\""), "/fill_value", "\"0xg\"" },
    { BARE("float32", "\"0x123456789\""), "/fill_value", "\"0x123456789\"" },
    { BARE("float16", "\"0x7fc00000\""), "/fill_value", "\"0x7fc00000\"" },
    { BARE("float32", "\"nan\""), "/fill_value", "\"nan\"" },
    { BARE("float32", "\"inf\""), "/fill_value", "\"inf\"" },
    { BARE("float32", "1e39"), "/fill_value", "1e39" },
    { BARE("float64", "1e400"), "/fill_value", "1e400" },
    { BARE("complex64", "0"), "/fill_value", "0" },
    { BARE("complex64", "[0,0,0]"), "/fill_value", "3 parts, not 2" },
    { BARE("r16", "[1,2,3]"), "/fill_value", "r16" },
    { BARE("int4", "8"), "/fill_value", "8" },
    { BARE("uint2", "4"), "/fill_value", "4" },
    { BARE("string", "123"), "/fill_value", "123" },
    { BARE("uint16", "null"), "/fill_value", "null" },
    { BARE("float32", "null"), "/fill_value", "null" },
    { TYPED(NAMED("fixed_length_utf32", "{\"length_bytes\":4}"), "\"ab\""), "/fill_value",
      "too long" },
    /* records */
    { TYPED(STRUCT(""), "{}"), "/data_type", "one or more" },
    { TYPED(STRUCT(FIELD("a", "int8") "," FIELD("a", "int8")), "{\"a\":0}"), "/data_type",
      "two fields \"a\"" },
    { TYPED(STRUCT(FIELD("", "int8")), "{\"\":0}"), "/data_type", "not empty" },
    { TYPED(STRUCT(FIELD("a", "string")), "{\"a\":\"\"}"), "/data_type", "no fixed size" },
    { TYPED(STRUCT(FIELD("a", "int8") "," FIELD("b", "int8")), "{\"a\":0}"), "/fill_value",
      "lacks the field \"b\"" },
    { TYPED(STRUCT(FIELD("a", "int8")), "\"AA==\""), "/fill_value", "an object with each field" },
    { "{\"data_type\":" STRUCT(FIELD("a", "int16")) ",\"fill_value\":{\"a\":0},\"codecs\":[{"
      "\"name\":\"bytes\"}]}",
      "/codecs/0", "\"endian\" must be given" },
    /* dates */
    { TIME("weeks", "1"), "/data_type", "unit" },
    { TIME("s", "0"), "/data_type", "scale_factor" },
    { TIME("s", "2147483648"), "/data_type", "scale_factor" },
    { TIME("s", "1.5"), "/data_type", "scale_factor" },
    { TYPED(NAMED("numpy.datetime64", "{\"unit\":\"s\"}"), "0"), "/data_type", "scale_factor" },
    /* chunk keys */
    { KEYS(NAMED("default", "{\"separator\":\"-\"}")),
      "/chunk_key_encoding/configuration/separator", "\".\" or \"/\"" },
    { KEYS(NAMED("v2", "{\"separator\":null}")), "/chunk_key_encoding/configuration/separator",
      "\".\" or \"/\"" },
    { KEYS("\"v3\""), "/chunk_key_encoding", "\"v3\" is not known" },
    /* edges */
    { GRID(NAMED("rectilinear", "{\"chunk_shapes\":[2,3]}")), "/chunk_grid/configuration/kind",
      "\"inline\"" },
    { GRID(NAMED("rectilinear", "{\"kind\":\"external\",\"chunk_shapes\":[2,3]}")),
      "/chunk_grid/configuration/kind", "\"inline\"" },
    { EDGES("[[4,0],3]"), "/chunk_grid/configuration/chunk_shapes/0", "1 or more" },
    { EDGES("[0,3]"), "/chunk_grid/configuration/chunk_shapes/0", "1 or more" },
    { EDGES("[[3],3]"), "/chunk_grid/configuration/chunk_shapes/0", "less than the shape's 4" },
    { EDGES("[[],3]"), "/chunk_grid/configuration/chunk_shapes/0", "less than the shape's 4" },
    { EDGES("[4,[[1]]]"), "/chunk_grid/configuration/chunk_shapes/1", "[edge, times]" },
    { EDGES("[4,[[1,2,3]]]"), "/chunk_grid/configuration/chunk_shapes/1", "[edge, times]" },
    { EDGES("[4,[[6,0]]]"), "/chunk_grid/configuration/chunk_shapes/1", "[edge, times]" },
    { EDGES("[4,[\"6\"]]"), "/chunk_grid/configuration/chunk_shapes/1", "[edge, times]" },
    { EDGES("[[4]]"), "/chunk_grid/configuration/chunk_shapes", "one item per dimension" },
    { EDGES("5"), "/chunk_grid/configuration/chunk_shapes", "one item per dimension" },
    { EDGES("[4,[[1,1000000000]]]"), "/chunk_grid/configuration/chunk_shapes/1", "2^24" },
    /* scale_offset, cast_value */
    { SCALE("{\"scale\":0}"), "/codecs/0", "scale" },
    { SCALE("{\"scale\":0.0}"), "/codecs/0", "scale" },
    { SCALE("{\"scale\":\"0x0000\"}"), "/codecs/0", "scale" },
    { "{\"data_type\":\"float32\",\"codecs\":[" NAMED("scale_offset", "{\"scale\":-0.0}") "," LITTLE
      "]}",
      "/codecs/0", "scale" },
    { "{\"data_type\":\"float32\",\"codecs\":[" NAMED(
          "scale_offset", "{\"scale\":\"0x80000000\"}") "," LITTLE "]}",
      "/codecs/0", "scale" },
    { SCALE("{\"x\":1}"), "/codecs/0", "\"x\"" },
    { CAST("{\"data_type\":\"float32\",\"out_of_range\":\"wrap\"}"), "/codecs/0", "wrap" },
    { CAST("{\"data_type\":\"complex64\"}"), "/codecs/0", "complex64" },
    { CAST("{\"data_type\":\"int8\",\"rounding\":\"up\"}"), "/codecs/0", "rounding" },
    { CAST("{\"data_type\":\"int8\",\"x\":1}"), "/codecs/0", "\"x\"" },
    { "{\"fill_value\":300,\"codecs\":[" NAMED("cast_value", "{\"data_type\":\"uint8\"}") "," LITTLE
      "]}",
      "/codecs/0", "300" },
    /* codecs that are not known, the deepest too */
    { AFTER(NAMED("org.example.none", "{}")), "/codecs/1", "is not known to this build" },
    { SHARD_OF("[1,3]", LITTLE ",{\"name\":\"org.example.none\"}", LITTLE), "/codecs/0",
      "is not known to this build" },
};

CASE("documents", .setup = dtype_kit_setup, .teardown = dtype_kit_teardown);

EACH(the_reject_list, refused)
{
    brc_error err = BRC_ERROR_INIT;
    int rc = open_patched(refused[_i].patch, &err);

    ck_assert_msg(rc == BRC_EINVAL || rc == BRC_EUNSUPPORTED || rc == BRC_ELIMIT, "%s: %d",
                  refused[_i].patch, rc);
    check_message(refused[_i].patch, &err, refused[_i].pointer, refused[_i].says);
}

/* ---- groups ------------------------------------------------------------------------- */

#define CONSOLIDATED(members) "{\"consolidated_metadata\":{" members "}}"

static const struct {
    const char *patch, *pointer, *says;
} refused_groups[] = {
    { "{\"zarr_format\":2}", "/zarr_format", "must be the integer 3" },
    { "{\"node_type\":\"array\"}", "/node_type", "\"group\"" },
    { "{\"node_type\":\"--\"}", "/node_type", "\"array\" or \"group\"" },
    { "{\"attributes\":\"x\"}", "/attributes", "must be an object" },
    { "{\"extra\":1}", "/extra", "\"must_understand\": false" },
    { "{\"shape\":[1]}", "/shape", "\"must_understand\": false" },
    { CONSOLIDATED("\"kind\":\"inline\",\"must_understand\":true,\"metadata\":{}"),
      "/consolidated_metadata/must_understand", "must be false" },
    { CONSOLIDATED("\"kind\":\"inline\",\"metadata\":{}"),
      "/consolidated_metadata/must_understand", "must be false" },
    { CONSOLIDATED("\"kind\":\"outline\",\"must_understand\":false,\"metadata\":{}"),
      "/consolidated_metadata/kind", "\"inline\"" },
    { CONSOLIDATED("\"must_understand\":false,\"metadata\":{}"), "/consolidated_metadata/kind",
      "\"inline\"" },
    { CONSOLIDATED("\"kind\":\"inline\",\"must_understand\":false,\"metadata\":{\"a\":{}}"),
      "/consolidated_metadata/metadata/a/node_type", "string" },
    { CONSOLIDATED("\"kind\":\"inline\",\"must_understand\":false,\"metadata\":[]"),
      "/consolidated_metadata/metadata", "must be an object" },
    { "{\"consolidated_metadata\":5}", "/consolidated_metadata", "must be an object" },
};

EACH(the_reject_list_of_groups, refused_groups)
{
    brc_error err = BRC_ERROR_INIT;
    brc_json *doc = patched(GOOD_GROUP, refused_groups[_i].patch);
    int rc = brc_meta_check_group(doc, &err);

    brc_json_free(doc);
    ck_assert_msg(rc == BRC_EINVAL, "%s: %d", refused_groups[_i].patch, rc);
    check_message(refused_groups[_i].patch, &err, refused_groups[_i].pointer,
                  refused_groups[_i].says);
}

static const char *const accepted_groups[] = {
    "{}",
    "{\"attributes\":\"--\"}",
    "{\"attributes\":null}",
    "{\"extra\":{\"must_understand\":false,\"x\":[1]}}",
    "{\"consolidated_metadata\":null}",
    CONSOLIDATED("\"kind\":\"inline\",\"must_understand\":false,\"metadata\":{}"),
};

EACH(the_accept_list_of_groups, accepted_groups)
{
    brc_error err = BRC_ERROR_INIT;
    brc_json *doc = patched(GOOD_GROUP, accepted_groups[_i]);

    ck_assert_msg(brc_meta_check_group(doc, &err) == BRC_OK, "%s", err.message);
    brc_json_free(doc);
}

/* ---- accepted ----------------------------------------------------------------------- */

static const struct {
    const char *patch, *fill; /* the element's bytes in hex; NULL: any            */
} accepted[] = {
    { "{}", "0000" },
    { "{\"extra\":{\"must_understand\":false,\"x\":1}}", NULL },
    { "{\"storage_transformers\":[]}", NULL },
    { "{\"storage_transformers\":null}", NULL },
    { "{\"storage_transformers\":[{\"name\":\"x\",\"must_understand\":false}]}", NULL },
    { "{\"attributes\":{}}", NULL },
    { "{\"attributes\":null}", NULL },
    { "{\"dimension_names\":[null,\"\"]}", NULL },
    { "{\"dimension_names\":[\"x\",\"x\"]}", NULL },
    { "{\"dimension_names\":null}", NULL },
    { "{\"shape\":[],\"dimension_names\":[],\"chunk_grid\":{\"name\":\"regular\","
      "\"configuration\":{\"chunk_shape\":[]}}}",
      NULL },
    { "{\"shape\":[0,6],\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":"
      "[0,3]}}}",
      NULL },
    { "{\"shape\":[9223372036854775807,6]}", NULL },
    { REGULAR("[40,60]"), NULL },
    { "{\"data_type\":\"uint8\",\"codecs\":[\"bytes\"]}", NULL },
    { "{\"data_type\":\"uint8\",\"codecs\":[{\"name\":\"bytes\",\"configuration\":{}},"
      "\"crc32c\"]}",
      NULL },
    { "{\"data_type\":\"uint8\"}", NULL },
    { KEYS("\"default\""), NULL },
    { KEYS("\"v2\""), NULL },
    { KEYS("{\"name\":\"v2\",\"configuration\":{}}"), NULL },
    { KEYS("{\"name\":\"default\",\"must_understand\":true}"), NULL },
    { TYPED("{\"name\":\"uint16\"}", "5"), "0500" },
    { TYPED(NAMED("uint16", "{}"), "5"), "0500" },
    { AFTER("{\"name\":\"crc32c\",\"must_understand\":false}"), NULL },
    { AFTER("{\"name\":\"org.example.none\",\"must_understand\":false}"), NULL },
    { CODECS("{\"name\":\"org.example.none\",\"must_understand\":false}," LITTLE), NULL },
    { CODECS("{\"name\":\"endian\",\"configuration\":{\"endian\":\"little\"}}"), NULL },
    { CODECS(NAMED("transpose", "{\"order\":\"F\"}") "," LITTLE), NULL },
    { CODECS(NAMED("transpose", "{\"order\":\"C\"}") "," LITTLE), NULL },
    { AFTER("{\"name\":\"zstd\"}"), NULL },
    { AFTER("{\"name\":\"gzip\"}"), NULL },
    { AFTER(NAMED("zstd", "{\"level\":3}")), NULL },
    { AFTER(NAMED("blosc", "{\"cname\":\"lz4\",\"clevel\":5,\"shuffle\":\"noshuffle\"}")), NULL },
    /* numbers as they are written */
    { BARE("float32", "0"), "00000000" },
    { BARE("float32", "0.0"), "00000000" },
    { BARE("float32", "-0.0"), "00000080" },
    { BARE("float32", "1e38"), NULL },
    { BARE("float32", "\"NaN\""), "0000c07f" },
    { BARE("float32", "\"Infinity\""), "0000807f" },
    { BARE("float32", "\"+Infinity\""), "0000807f" },
    { BARE("float32", "\"-Infinity\""), "000080ff" },
    { BARE("float32", "\"0x7f800001\""), "0100807f" },
    { BARE("float64", "1e-400"), "0000000000000000" },
    { BARE("int32", "1.0"), "01000000" },
    { BARE("int32", "1e3"), "e8030000" },
    { BARE("int32", "-0"), "00000000" },
    { BARE("int64", "-9223372036854775808"), "0000000000000080" },
    { BARE("int64", "9007199254740993"), "0100000000002000" },
    { BARE("uint64", "18446744073709551615"), "ffffffffffffffff" },
    { TYPED(NAMED("numpy.datetime64", "{\"unit\":\"s\",\"scale_factor\":1}"),
            "-9223372036854775808"),
      "0000000000000080" },
    { TYPED(NAMED("numpy.datetime64", "{\"unit\":\"s\",\"scale_factor\":1}"), "\"NaT\""),
      "0000000000000080" },
    { BARE("r16", "[1,2]"), "0102" },
    { BARE("r16", "\"AQI=\""), "0102" },
    /* types that need codecs of their own come with them */
    { "{\"data_type\":\"variable_length_bytes\",\"fill_value\":[1],\"codecs\":[\"vlen-bytes\"]}",
      "0100000001" },
    { "{\"data_type\":{\"name\":\"structured\",\"configuration\":{\"fields\":[[\"a\","
      "\"int8\"],[\"b\",\"int8\"]]}},\"fill_value\":\"AQI=\",\"codecs\":[\"bytes\"]}",
      "0102" },
    { EDGES("[[4,9,9],[[1,2],[2,4]]]"), NULL },
    { EDGES("[5,[6]]"), NULL },
    { "{\"data_type\":{\"name\":\"zarrs.optional\",\"configuration\":{\"name\":\"int8\","
      "\"configuration\":{}}},\"fill_value\":null,\"codecs\":[" NAMED(
          "zarrs.optional", "{\"mask_codecs\":[\"packbits\"],\"data_codecs\":[\"bytes\"]}") "]}",
      "0000" },
    { SHARD(",\"index_location\":\"start\""), NULL },
    /* a transposed shard divides the transposed chunk */
    { CODECS(NAMED("transpose", "{\"order\":[1,0]}") "," NAMED(
          "sharding_indexed",
          "{\"chunk_shape\":[3,1],\"codecs\":[" LITTLE "],\"index_codecs\":[" LITTLE "]}")),
      NULL },
};

EACH(the_accept_list, accepted)
{
    brc_error err = BRC_ERROR_INIT;
    brc_meta meta;
    brc_json *doc = patched(GOOD_ARRAY, accepted[_i].patch);
    char hex[64] = "";

    ck_assert_msg(brc_meta_open(&meta, dtype_kit_registry(), doc, &err) == BRC_OK, "%s: %s",
                  accepted[_i].patch, err.message);
    brc_json_free(doc);
    ck_assert_msg(brc_meta_must_decode(&meta, &err) == BRC_OK, "%s: %s", accepted[_i].patch,
                  err.message);
    for (size_t i = 0; i < meta.fill.len && i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", meta.fill.data[i]);
    if (accepted[_i].fill != NULL)
        ck_assert_str_eq(hex, accepted[_i].fill);
    brc_meta_dispose(&meta);
}

/* ---- what nobody here understands, and numbers as they were written ------------------- */

#define NUMBERS                                                                                \
    "[9007199254740993,-0.0,-0,0.0,1,1.0,1.50,1e2,1E+2,1e400,-1e-400,18446744073709551616,"    \
    "0.1000000000000000055511151231257827,12345678901234567890.123456789]"
#define STRANGE                                                                                \
    ",\"attributes\":{\"z\":" NUMBERS ",\"a\":{\"\":null,\"u\":\"\\u0000\\ud83d\\ude00\"}},"       \
    "\"x-b\":{\"must_understand\":false,\"n\":" NUMBERS "},\"x-a\":{\"must_understand\":false}"

static const char *const strange[] = {
    /* all is known but members and numbers */
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4],\"data_type\":\"float64\","
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4]}},"
    "\"chunk_key_encoding\":\"default\",\"fill_value\":\"0x7ff8000000000001\",\"codecs\":[" LITTLE
    "],\"dimension_names\":[\"\"],\"storage_transformers\":[]" STRANGE "}",
    /* a codec and a transformer that may be ignored */
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4],\"data_type\":\"float64\","
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4]}},"
    "\"chunk_key_encoding\":\"default\",\"fill_value\":1,\"codecs\":[" LITTLE
    ",{\"name\":\"org.example.c\",\"must_understand\":false,\"configuration\":{\"n\":" NUMBERS
    "}}],\"storage_transformers\":[{\"name\":\"x\",\"must_understand\":false,"
    "\"configuration\":{\"n\":" NUMBERS "}}]" STRANGE "}",
    /* a type and a codec that this build does not have */
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4],\"data_type\":{\"name\":"
    "\"org.example.t\",\"configuration\":{\"n\":" NUMBERS "}},"
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4]}},"
    "\"chunk_key_encoding\":\"default\",\"fill_value\":" NUMBERS
    ",\"codecs\":[{\"name\":\"org.example.c\",\"configuration\":{\"n\":" NUMBERS "}}]" STRANGE "}",
    "{\"zarr_format\":3,\"node_type\":\"group\"" STRANGE "}",
};

/* Imported, given an attribute, committed, the attribute taken away again, exported. */
EACH(documents_survive, strange)
{
    exchange_kit kit;
    brc_json *want, *got;

    exchange_start(&kit);
    exchange_text(&kit, "in/zarr.json", strange[_i]);
    ck_assert_msg(brc_import(kit.session, exchange_path(&kit, "in"), "/n", NULL, &kit.err) ==
                      BRC_OK,
                  "%s", kit.err.message);
    ck_assert_int_eq(brc_attrs_set(kit.session, "/n", "mine", "1.0", &kit.err), BRC_OK);
    ck_assert_int_eq(scenario_commit_of(&kit, kit.session, "with mine", NULL), BRC_OK);
    ck_assert_int_eq(brc_attrs_set(kit.session, "/n", "mine", NULL, &kit.err), BRC_OK);
    ck_assert_int_eq(brc_export(kit.session, "/n", exchange_path(&kit, "out"), NULL, &kit.err),
                     BRC_OK);
    brc_buf text = exchange_read(exchange_path(&kit, "out/zarr.json"));
    ck_assert_int_eq(brc_json_parse(&got, (const char *)text.data, text.len, 0, &kit.err), BRC_OK);
    ck_assert_int_eq(brc_json_parse(&want, strange[_i], strlen(strange[_i]), 0, &kit.err), BRC_OK);
    ck_assert_msg(brc_json_equal(want, got), "%.*s", (int)text.len, (const char *)text.data);
    brc_json_free(want);
    brc_json_free(got);
    brc_buf_dispose(&text);
    exchange_stop(&kit);
}

/* Texts that are not JSON are refused before anyone asks what they mean. */
static const char *const no_json[] = {
    "{\"zarr_format\":3,\"zarr_format\":3}", "{\"a\":NaN}",    "{\"a\":Infinity}",
    "{\"a\":1}x",                            "\xEF\xBB\xBF{}", "{\"a\":01}",
    "{\"a\":'x'}",                           "{\"a\":1,}",     "{/**/}",
    "{\"a\":\"\xFF\"}",                      "",               "[1",
};

EACH(what_is_no_json_is_refused, no_json)
{
    brc_error err = BRC_ERROR_INIT;
    brc_json *doc;

    ck_assert_int_eq(brc_json_parse(&doc, no_json[_i], strlen(no_json[_i]), 0, &err), BRC_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "byte"));
}

#define COUNT(list) (int)(sizeof(list) / sizeof((list)[0]))

brc_json *metadata_document(size_t i)
{
    size_t groups = COUNT(accepted_groups);
    if (i < groups)
        return patched(GOOD_GROUP, accepted_groups[i]);
    i -= groups;
    return i < COUNT(accepted) ? patched(GOOD_ARRAY, accepted[i].patch) : NULL;
}
