/* The corpus's Zarr hierarchies, v2 and v3, made by hand: see corpus.h. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "corpus.h"

/* Files of a hierarchy, in a directory or, where the name ends in .zip, an archive. */
typedef struct zarr_file {
    const char *key;
    const void *data;
    size_t len; /* 0: of a text */
} zarr_file;

static size_t length_of(const zarr_file *f)
{
    return f->len > 0 ? f->len : strlen(f->data);
}

static void put_files(exchange_kit *kit, const char *name, const zarr_file *files, size_t n)
{
    char path[200];
    exchange_zip zip = {0};
    const int is_zip = strcmp(strrchr(name, '.'), ".zip") == 0;
    for (size_t i = 0; i < n; i++) {
        const size_t len = length_of(&files[i]);
        snprintf(path, sizeof(path), "%s/%s", name, files[i].key);
        if (is_zip)
            exchange_zip_add(&zip, files[i].key, files[i].data, len, i % 2 == 1, (uint32_t)len);
        else
            exchange_file(kit, path, files[i].data, len);
    }
    if (!is_zip)
        return;
    exchange_zip_end(&zip);
    exchange_file(kit, name, zip.bytes.data, zip.bytes.len);
    brc_buf_dispose(&zip.bytes);
}

#define PUT(kit, name, files) put_files(kit, name, files, sizeof(files) / sizeof((files)[0]))

#define GROUP3(attributes) \
    "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":" attributes "}"
#define ARRAY3(shape, chunk, dtype, fill, codecs)                                                  \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":" shape ",\"data_type\":" dtype          \
    ",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":" chunk "}},"        \
    "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":" fill ",\"codecs\":[" codecs    \
    "],\"attributes\":{}}"
#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BIG "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"

/* ---- v3 -------------------------------- */

static void put_v3(exchange_kit *kit, const char *name)
{
    static const zarr_file files[] = {
        {"zarr.json", GROUP3("{\"title\":\"h\xc3\xa9\"}"), 0},
        {"g/zarr.json", GROUP3("{\"n\":[1,2.5,null]}"), 0},
        {"g/a/zarr.json", ARRAY3("[3]", "[2]", "\"int16\"", "-1", LITTLE), 0},
        {"g/a/c/0", "\1\0\xfe\xff", 4},
    };
    PUT(kit, name, files);
}

static void put_v3_orders(exchange_kit *kit, const char *name)
{
    static const zarr_file files[] = {
        {"zarr.json", GROUP3("{}"), 0},
        {"big/zarr.json", ARRAY3("[2]", "[2]", "\"uint32\"", "0", BIG), 0},
        {"big/c/0", "\1\2\3\4\0\0\0\5", 8},
        {"turned/zarr.json",
         ARRAY3("[2,3]", "[2,3]", "\"uint8\"", "0",
                "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},"
                "{\"name\":\"bytes\"}"),
         0},
        {"turned/c/0/0", "\1\4\2\5\3\6", 6},
        {"scalar/zarr.json", ARRAY3("[]", "[]", "\"float64\"", "0.0", LITTLE), 0},
        {"scalar/c", "\0\0\0\0\0\0\xf8\x3f", 8},
    };
    PUT(kit, name, files);
}

static void put_v3_packed(exchange_kit *kit, const char *name)
{
    brc_buf packed = BRC_BUF_INIT;
    exchange_gzip(&packed, "\1\0\2\0\3\0\4\0", 8);
    const zarr_file files[] = {
        {"zarr.json", GROUP3("{}"), 0},
        {"gzip/zarr.json",
         ARRAY3("[4]", "[4]", "\"int16\"", "0",
                LITTLE ",{\"name\":\"gzip\",\"configuration\":{\"level\":6}}"), 0},
        {"gzip/c/0", packed.data, packed.len},
        {"crc/zarr.json",
         ARRAY3("[9]", "[9]", "\"uint8\"", "0", "{\"name\":\"bytes\"},{\"name\":\"crc32c\"}"), 0},
        {"crc/c/0", "123456789\x83\x92\x06\xe3", 13},
    };
    PUT(kit, name, files);
    brc_buf_dispose(&packed);
}

/* One shard of two chunks, the second of which is not there; its index has no codec but bytes. */
static void put_v3_shards(exchange_kit *kit, const char *name)
{
    static const uint8_t shard[2 + 32] = {
        1,   2,   0,   0,   0,   0,   0,   0,   0,   0,   2,   0,   0,   0,   0,   0,   0,
        0,   255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    static const zarr_file files[] = {
        {"zarr.json", GROUP3("{}"), 0},
        {"a/zarr.json",
         ARRAY3("[4]", "[4]", "\"uint8\"", "9",
                "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2],"
                "\"codecs\":[{\"name\":\"bytes\"}],\"index_codecs\":[" LITTLE "]}}"), 0},
        {"a/c/0", shard, sizeof(shard)},
    };
    PUT(kit, name, files);
}

static void put_v3_texts(exchange_kit *kit, const char *name)
{
    static const zarr_file files[] = {
        {"zarr.json", GROUP3("{}"), 0},
        {"words/zarr.json",
         ARRAY3("[2]", "[2]", "\"string\"", "\"\"", "{\"name\":\"vlen-utf8\"}"), 0},
        {"words/c/0", "\2\0\0\0\3\0\0\0h\xc3\xa9\0\0\0\0", 15},
        {"flags/zarr.json", ARRAY3("[3]", "[3]", "\"bool\"", "true", "{\"name\":\"bytes\"}"), 0},
        {"raw/zarr.json", ARRAY3("[2]", "[2]", "\"r16\"", "[1,2]", "{\"name\":\"bytes\"}"), 0},
        {"raw/c/0", "\3\4\5\6", 4},
    };
    PUT(kit, name, files);
}

static void put_v3_floats(exchange_kit *kit, const char *name)
{
    static const zarr_file files[] = {
        {"zarr.json", GROUP3("{}"), 0},
        {"f/zarr.json", ARRAY3("[2]", "[1]", "\"float32\"", "\"NaN\"", LITTLE), 0},
        {"f/c/1", "\0\0\x80\x7f", 4},
        {"z/zarr.json", ARRAY3("[1]", "[1]", "\"complex64\"", "[0.5,\"-Infinity\"]", LITTLE), 0},
        {"h/zarr.json", ARRAY3("[1]", "[1]", "\"float16\"", "\"0x7c00\"", LITTLE), 0},
    };
    PUT(kit, name, files);
}

/* Tokens that JSON lacks, as zarr-python writes them. */
static void put_v3_tokens(exchange_kit *kit, const char *name)
{
    static const zarr_file files[] = {
        {"zarr.json",
         GROUP3("{\"missing\":NaN,\"range\":[-Infinity,1.5],\"in\":{\"to\":Infinity}}"), 0},
        {"a/zarr.json", ARRAY3("[1]", "[1]", "\"uint8\"", "3", "{\"name\":\"bytes\"}"), 0},
    };
    PUT(kit, name, files);
}

/* The root's document has those of all others, and these are not there themselves. */
static void put_v3_consolidated(exchange_kit *kit, const char *name)
{
    static const zarr_file files[] = {
        {"zarr.json",
         "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{\"title\":\"all\"},"
         "\"consolidated_metadata\":{\"kind\":\"inline\",\"must_understand\":false,\"metadata\":{"
         "\"g\":" GROUP3("{\"n\":1}") ",\"g/a\":" ARRAY3("[2]", "[2]", "\"uint8\"", "0",
                                                         "{\"name\":\"bytes\"}") "}}}", 0},
        {"g/a/c/0", "\5\6", 2},
    };
    PUT(kit, name, files);
}

/* ---- v2 -------------------------------- */

#define ARRAY2(shape, chunks, dtype, fill, order, compressor)                                      \
    "{\"zarr_format\":2,\"shape\":" shape ",\"chunks\":" chunks ",\"dtype\":" dtype                \
    ",\"fill_value\":" fill ",\"order\":\"" order "\",\"filters\":null"                     \
    ",\"compressor\":" compressor "}"
#define GROUP2 "{\"zarr_format\":2}"

static void put_v2(exchange_kit *kit, const char *name)
{
    static const zarr_file files[] = {
        {".zgroup", GROUP2, 0},
        {".zattrs", "{\"title\":\"old\"}", 0},
        {"g/.zgroup", GROUP2, 0},
        {"g/a/.zarray", ARRAY2("[3]", "[2]", "\"<i2\"", "7", "C", "null"), 0},
        {"g/a/.zattrs", "{\"unit\":\"m\"}", 0},
        {"g/a/0", "\1\0\2\0", 4},
        {"big/.zarray", ARRAY2("[2]", "[2]", "\">i4\"", "0", "C", "null"), 0},
        {"big/0", "\0\0\0\1\xff\xff\xff\xfe", 8},
    };
    PUT(kit, name, files);
}

static void put_v2_orders(exchange_kit *kit, const char *name)
{
    static const zarr_file files[] = {
        {".zgroup", GROUP2, 0},
        {"f/.zarray", ARRAY2("[2,3]", "[2,3]", "\"|u1\"", "0", "F", "null"), 0},
        {"f/0.0", "\1\4\2\5\3\6", 6},
        {"slash/.zarray",
         "{\"zarr_format\":2,\"shape\":[2,2],\"chunks\":[1,2],\"dtype\":\"|u1\",\"fill_value\":5,"
         "\"order\":\"C\",\"filters\":null,\"compressor\":null,\"dimension_separator\":\"/\"}", 0},
        {"slash/1/0", "\1\2", 2},
        {"none/.zarray", ARRAY2("[2]", "[2]", "\"<f8\"", "null", "C", "null"), 0},
        {"scalar/.zarray", ARRAY2("[]", "[]", "\"<i4\"", "0", "C", "null"), 0},
        {"scalar/0", "\7\0\0\0", 4},
    };
    PUT(kit, name, files);
}

static void put_v2_packed(exchange_kit *kit, const char *name)
{
    brc_buf gzip = BRC_BUF_INIT;
    exchange_gzip(&gzip, "\1\0\2\0\3\0\4\0", 8);
    const zarr_file files[] = {
        {".zgroup", GROUP2, 0},
        {"gzip/.zarray",
         ARRAY2("[4]", "[4]", "\"<i2\"", "0", "C", "{\"id\":\"gzip\",\"level\":1}"), 0},
        {"gzip/0", gzip.data, gzip.len},
        {"zlib/.zarray",
         ARRAY2("[4]", "[4]", "\"|u1\"", "0", "C", "{\"id\":\"zlib\",\"level\":1}"), 0},
        {"zlib/0", "\x78\x01\x01\4\0\xfb\xff\1\2\3\4\0\x18\0\x0b", 15}, /* stored */
    };
    PUT(kit, name, files);
    brc_buf_dispose(&gzip);
}

static void put_v2_types(exchange_kit *kit, const char *name)
{
    static const zarr_file files[] = {
        {".zgroup", GROUP2, 0},
        {"s/.zarray", ARRAY2("[2]", "[2]", "\"|S3\"", "\"\"", "C", "null"), 0},
        {"s/0", "ab\0cde", 6},
        {"u/.zarray", ARRAY2("[2]", "[2]", "\"<U2\"", "\"\"", "C", "null"), 0},
        {"u/0", "h\0\0\0\xe9\0\0\0x\0\0\0\0\0\0\0", 16},
        {"when/.zarray", ARRAY2("[2]", "[2]", "\"<M8[D]\"", "\"NaT\"", "C", "null"), 0},
        {"when/0", "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x80", 16},
        {"span/.zarray", ARRAY2("[1]", "[1]", "\"<m8[ns]\"", "0", "C", "null"), 0},
        {"span/0", "\xff\xff\xff\xff\xff\xff\xff\xff", 8},
        {"flag/.zarray", ARRAY2("[2]", "[2]", "\"|b1\"", "true", "C", "null"), 0},
        {"void/.zarray", ARRAY2("[1]", "[1]", "\"|V3\"", "\"AQID\"", "C", "null"), 0},
        {"z/.zarray", ARRAY2("[1]", "[1]", "\"<c8\"", "[1.5,\"NaN\"]", "C", "null"), 0},
    };
    PUT(kit, name, files);
}

static void put_v2_records(exchange_kit *kit, const char *name)
{
    static const zarr_file files[] = {
        {".zgroup", GROUP2, 0},
        {"r/.zarray",
         ARRAY2("[2]", "[2]", "[[\"n\",\"<i2\"],[\"x\",\"<f4\"]]", "\"AQAAAIA/\"", "C", "null"), 0},
        {"r/0", "\1\0\0\0\0\x3f\xfe\xff\0\0\0\xbf", 12},
    };
    PUT(kit, name, files);
}

/* n little-endian, x big-endian; p is a record with an array in it; all fields big-endian. */
static void put_v2_mixed_records(exchange_kit *kit, const char *name)
{
    brc_buf packed = BRC_BUF_INIT;
    exchange_gzip(&packed,
                  "\1\1\0\0\1\1\1" "\2\2\0\0\2\1\2" "\3\3\0\0\3\1\3" "\4\4\0\0\4\1\4", 28);
    const zarr_file files[] = {
        {".zgroup", GROUP2, 0},
        {"r/.zarray",
         ARRAY2("[3]", "[2]", "[[\"n\",\"<i2\"],[\"x\",\">f4\"]]", "\"AQA/gAAA\"", "C", "null"), 0},
        {"r/0", "\1\0\x3f\0\0\0\xfe\xff\xbf\0\0\0", 12},
        {"f/.zarray",
         ARRAY2("[2,2]", "[2,2]",
                "[[\"b\",\"|u1\"],[\"p\",[[\"s\",\"<u2\"],[\"t\",\">u2\",[2]]]]]", "null", "F",
                "{\"id\":\"gzip\",\"level\":1}"), 0},
        {"f/0.0", packed.data, packed.len},
        {"z/.zarray",
         ARRAY2("[1]", "[1]", "[[\"c\",\">c8\"],[\"u\",\">U1\"],[\"m\",\"<M8[D]\"]]", "null", "C",
                "null"), 0},
        {"z/0", "\x3f\xc0\0\0\xc0\0\0\0\0\0\0\x41\3\0\0\0\0\0\0\0", 20},
        {"big/.zarray",
         ARRAY2("[2]", "[1]", "[[\"n\",\">i2\"],[\"x\",\">f4\"]]", "\"AAE/gAAA\"", "C", "null"), 0},
        {"big/0", "\0\2\x3f\0\0\0", 6},
    };
    PUT(kit, name, files);
    brc_buf_dispose(&packed);
}

static void put_v2_consolidated(exchange_kit *kit, const char *name)
{
    static const zarr_file files[] = {
        {".zmetadata",
         "{\"zarr_consolidated_format\":1,\"metadata\":{\".zgroup\":" GROUP2
         ",\".zattrs\":{\"title\":\"all\"},\"g/.zgroup\":" GROUP2 ",\"g/.zattrs\":{\"n\":1},"
         "\"g/a/.zarray\":" ARRAY2("[2]", "[2]", "\"|u1\"", "0", "C", "null") "}}", 0},
        {"g/a/0", "\5\6", 2},
    };
    PUT(kit, name, files);
}

static void put_v2_names(exchange_kit *kit, const char *name)
{
    static const zarr_file files[] = {
        {".zgroup", GROUP2, 0},
        {"__private/.zgroup", GROUP2, 0},
        {"__private/a b/.zarray", ARRAY2("[1]", "[1]", "\"|u1\"", "1", "C", "null"), 0},
        {"50%/.zarray", ARRAY2("[1]", "[1]", "\"|u1\"", "2", "C", "null"), 0},
    };
    PUT(kit, name, files);
}

#define V3_CHECKS                                                                                  \
    {"@title", "\"h\xc3\xa9\"", "/g@n", "[1,2.5,null]", "/g/a", "[1,-2,-1]"}
#define V2_CHECKS                                                                                  \
    {"@title", "\"old\"", "/g/a", "[1,2,7]", "/g/a@unit", "\"m\"", "/big", "[1,-2]"}

#define ALL_CHECKS {"/g/a", "[5,6]", "@title", "\"all\"", "/g@n", "1"}

#define RECORD_F(n, more) \
    "{\"b\":" n ",\"p\":{\"s\":" n ",\"t\":{\"0\":" n ",\"1\":" more "}}}"
#define MIXED_CHECKS \
    {"/r", "[{\"n\":1,\"x\":0.5},{\"n\":-2,\"x\":-0.5},{\"n\":1,\"x\":1.0}]", "/f", \
     "[" RECORD_F("1", "257") "," RECORD_F("3", "259") "," RECORD_F("2", "258") "," \
     RECORD_F("4", "260") "]", "/z", "[{\"c\":[1.5,-2.0],\"u\":\"A\",\"m\":3}]", "/big", \
     "[{\"n\":2,\"x\":0.5},{\"n\":1,\"x\":1.0}]"}

static const corpus_entry entries[] = {
    {.cause = "Zarr v3: groups, attributes, a chunk that is not there", .file = "x.zarr",
     .other = put_v3, .checks = V3_CHECKS},
    {.cause = "Zarr v3: the same as an archive", .file = "x.zip", .other = put_v3,
     .checks = V3_CHECKS},
    {.cause = "Zarr v3: byte orders, transposed, no axes", .file = "x.zarr", .other = put_v3_orders,
     .checks = {"/big", "[16909060,5]", "/turned", "[1,2,3,4,5,6]", "/scalar", "[1.5]"}},
    {.cause = "Zarr v3: gzip and crc32c", .file = "x.zarr", .other = put_v3_packed,
     .checks = {"/gzip", "[1,2,3,4]", "/crc", "[49,50,51,52,53,54,55,56,57]"}},
    {.cause = "Zarr v3: shards", .file = "x.zip", .other = put_v3_shards,
     .checks = {"/a", "[1,2,9,9]"}},
    {.cause = "Zarr v3: text, truth values, raw bytes", .file = "x.zarr", .other = put_v3_texts,
     .checks = {"/words", "[\"h\xc3\xa9\",\"\"]", "/flags", "[true,true,true]", "/raw",
                "[[3,4],[5,6]]"}},
    {.cause = "Zarr v3: fill values that are not finite", .file = "x.zarr", .other = put_v3_floats,
     .checks = {"/f", "[\"NaN\",\"Infinity\"]", "/z", "[[0.5,\"-Infinity\"]]", "/h",
                "[\"Infinity\"]"}},
    {.cause = "Zarr v3: attributes that are not finite", .file = "x.zarr", .other = put_v3_tokens,
     .checks = {"/a", "[3]", "@missing", "NaN", "@range", "[-Infinity,1.5]", "@in",
                "{\"to\":Infinity}"}},
    {.cause = "Zarr v3: documents in the root's alone", .file = "x.zarr",
     .other = put_v3_consolidated, .checks = ALL_CHECKS},
    {.cause = "Zarr v3: an archive with documents in the root's alone", .file = "x.zip",
     .other = put_v3_consolidated, .checks = ALL_CHECKS},
    {.cause = "Zarr v2: documents in .zmetadata alone", .file = "x.zarr", .format = "zarr2",
     .other = put_v2_consolidated, .checks = ALL_CHECKS},
    {.cause = "Zarr v2: an archive with documents in .zmetadata alone", .file = "x.zip",
     .other = put_v2_consolidated, .checks = ALL_CHECKS},
    {.cause = "Zarr v2: groups, attributes, byte orders", .file = "x.zarr", .format = "zarr2",
     .other = put_v2, .checks = V2_CHECKS},
    {.cause = "Zarr v2: the same as an archive", .file = "x.zip", .other = put_v2,
     .checks = V2_CHECKS},
    {.cause = "Zarr v2: orders, separators, fill values", .file = "x.zarr", .format = "zarr2",
     .other = put_v2_orders,
     .checks = {"/f", "[1,2,3,4,5,6]", "/slash", "[5,5,1,2]", "/none", "[0.0,0.0]", "/scalar",
                "[7]"}},
    {.cause = "Zarr v2: gzip and zlib", .file = "x.zarr", .format = "zarr2",
     .other = put_v2_packed,
     .checks = {"/gzip", "[1,2,3,4]", "/zlib", "[1,2,3,4]"}},
    {.cause = "Zarr v2: types of NumPy", .file = "x.zarr", .format = "zarr2", .other = put_v2_types,
     .checks = {"/s", "[\"YWIA\",\"Y2Rl\"]", "/u", "[\"h\xc3\xa9\",\"x\"]", "/when", "[1,\"NaT\"]",
                "/span", "[-1]", "/flag", "[true,true]", "/void", "[[1,2,3]]", "/z",
                "[[1.5,\"NaN\"]]"}},
    {.cause = "Zarr v2: records", .file = "x.zarr", .format = "zarr2", .other = put_v2_records,
     .checks = {"/r", "[{\"n\":1,\"x\":0.5},{\"n\":-2,\"x\":-0.5}]"}},
    {.cause = "Zarr v2: records of fields in different byte order", .file = "x.zarr",
     .format = "zarr2", .other = put_v2_mixed_records, .checks = MIXED_CHECKS},
    {.cause = "Zarr v2: an archive of such records", .file = "x.zip",
     .other = put_v2_mixed_records, .checks = MIXED_CHECKS},
    {.cause = "Zarr v2: names that v3 does not allow", .file = "x.zarr", .format = "zarr2",
     .other = put_v2_names, .checks = {"/%5F_private/a b", "[1]", "/50%", "[2]"}},
};

corpus_table corpus_zarr(void)
{
    return (corpus_table){entries, sizeof(entries) / sizeof(entries[0])};
}
