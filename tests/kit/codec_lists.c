#include "codec_lists.h"

#include "codec_kit.h"

#include <string.h>

#define NAMED(name_, config_) "{\"name\":\"" name_ "\",\"configuration\":" config_ "}"
#define BARE(name_) "{\"name\":\"" name_ "\"}"
#define LITTLE NAMED("bytes", "{\"endian\":\"little\"}")
#define BIG NAMED("bytes", "{\"endian\":\"big\"}")
/* Lists about a codec that stands before "bytes", and behind it. */
#define BEFORE(codec_) "[" codec_ "," LITTLE "]"
#define BEHIND(codec_) "[" LITTLE "," codec_ "]"
#define SHARD(inner_, codecs_, index_, where_)                                                  \
    NAMED("sharding_indexed", "{\"chunk_shape\":" inner_ ",\"codecs\":[" codecs_                \
                              "],\"index_codecs\":[" index_ "],\"index_location\":\"" where_ "\"}")
#define OPTIONAL(mask_, data_)                                                                  \
    NAMED("zarrs.optional", "{\"mask_codecs\":[" mask_ "],\"data_codecs\":[" data_ "]}")
#define OFFSETS(index_, data_, type_, where_)                                                   \
    NAMED("zarrs.vlen", "{\"index_codecs\":[" index_ "],\"data_codecs\":[" data_ "],"           \
                        "\"index_data_type\":" type_ ",\"index_location\":" where_ "}")
#define N5(order_, codec_)                                                                      \
    NAMED("n5_default", "{\"codecs\":[" NAMED("transpose", "{\"order\":" order_ "}") "," BIG     \
                        "," codec_ "]}")
#define ROUND NAMED("bitround", "{\"keepbits\":3}")

/* Every text that the kit makes. */
#define TEXTS \
    "\"ab\",\"abab\",\"ababab\",\"abababab\",\"ababababab\",\"abababababab\"," \
    "\"ac\",\"acac\",\"acacac\",\"acacacac\",\"acacacacac\",\"acacacacacac\"," \
    "\"ad\",\"adad\",\"adadad\",\"adadadad\",\"adadadadad\",\"adadadadadad\"," \
    "\"ae\",\"aeae\",\"aeaeae\",\"aeaeaeae\",\"aeaeaeaeae\",\"aeaeaeaeaeae\"," \
    "\"af\",\"afaf\",\"afafaf\",\"afafafaf\",\"afafafafaf\",\"afafafafafaf\"," \
    "\"à\",\"àá\",\"àáâ\",\"àáâã\",\"àáâãä\",\"àáâãäå\""

static const codec_list lists[] = {
    { "bitround", BEFORE(ROUND), -1, 0 },
    { "bitround", BEFORE(NAMED("bitround", "{\"keepbits\":1}")), 2, 0 },
    { "blosc",
      BEHIND(NAMED("blosc", "{\"cname\":\"lz4\",\"clevel\":5,\"shuffle\":\"shuffle\","
                            "\"typesize\":4,\"blocksize\":0}")),
      -1, 0 },
    { "blosc",
      BEHIND(NAMED("blosc", "{\"cname\":\"zstd\",\"clevel\":1,\"shuffle\":\"bitshuffle\","
                            "\"typesize\":2,\"blocksize\":64}")),
      2, 0 },
    { "bytes", "[" LITTLE "]", -1, 0 },
    { "bytes", "[" BIG "]", -1, 0 },
    { "cast_value",
      BEFORE(NAMED("cast_value",
                   "{\"data_type\":\"int64\",\"out_of_range\":\"clamp\",\"scalar_map\":"
                   "{\"encode\":[[\"NaN\",0]]}}")),
      -1, 0 },
    { "cast_value",
      BEFORE(NAMED("cast_value", "{\"data_type\":\"float32\",\"out_of_range\":\"clamp\"}")), 2, 0 },
    { "cast_value",
      BEFORE(NAMED("cast_value", "{\"data_type\":\"float64\",\"out_of_range\":\"clamp\"}")), 2, 0 },
    { "crc32c", BEHIND(BARE("crc32c")), -1, 0 },
    { "gzip", BEHIND(NAMED("gzip", "{\"level\":6}")), -1, 0 },
    { "imagecodecs_lzf", BEHIND(BARE("imagecodecs_lzf")), -1, 0 },
    { "imagecodecs_lzf", BEHIND(NAMED("imagecodecs_lzf", "{\"header\":false}")), 2, 0 },
    { "numcodecs.adler32", BEHIND(NAMED("numcodecs.adler32", "{\"location\":\"end\"}")), -1, 0 },
    { "numcodecs.adler32", BEHIND(BARE("numcodecs.adler32")), 1, 0 },
    { "numcodecs.astype",
      BEFORE(NAMED("numcodecs.astype", "{\"decode_dtype\":\"<u2\",\"encode_dtype\":\"<f8\"}")), 2,
      0 },
    { "numcodecs.astype",
      BEFORE(NAMED("numcodecs.astype", "{\"decode_dtype\":\"<f8\",\"encode_dtype\":\"<i4\"}")), -1,
      1 },
    { "numcodecs.base64", BEHIND(BARE("numcodecs.base64")), -1, 0 },
    { "numcodecs.bitround", BEFORE(NAMED("numcodecs.bitround", "{\"keepbits\":5}")), -1, 0 },
    { "numcodecs.blosc", BEHIND(NAMED("numcodecs.blosc", "{\"shuffle\":-1,\"clevel\":1}")), 2, 0 },
    { "numcodecs.bz2", BEHIND(NAMED("numcodecs.bz2", "{\"level\":1}")), 2, 0 },
    { "numcodecs.categorize",
      "[" NAMED("numcodecs.categorize",
                "{\"labels\":[" TEXTS "],\"dtype\":\"|O\"}") "," BARE("bytes") "]",
      -1, 1 },
    { "numcodecs.crc32", BEHIND(BARE("numcodecs.crc32")), -1, 0 },
    { "numcodecs.crc32c", BEHIND(BARE("numcodecs.crc32c")), -1, 0 },
    { "numcodecs.delta", BEFORE(NAMED("numcodecs.delta", "{\"dtype\":\"<i4\"}")), -1, 0 },
    { "numcodecs.delta", BEFORE(NAMED("numcodecs.delta", "{\"dtype\":\"<i2\",\"astype\":\">i8\"}")),
      2, 0 },
    { "numcodecs.delta", BEFORE(NAMED("numcodecs.delta", "{\"dtype\":\"<f4\"}")), -1, 1 },
    { "numcodecs.delta", BEFORE(NAMED("numcodecs.delta", "{\"dtype\":\"<f8\"}")), -1, 0 },
    { "numcodecs.fixedscaleoffset",
      BEFORE(NAMED("numcodecs.fixedscaleoffset",
                   "{\"offset\":1.5,\"scale\":8,\"dtype\":\"<f8\",\"astype\":\"<i4\"}")),
      -1, 1 },
    { "numcodecs.fixedscaleoffset",
      BEFORE(NAMED("numcodecs.fixedscaleoffset",
                   "{\"offset\":1000,\"scale\":0.1,\"dtype\":\"<f4\",\"astype\":\"<i2\"}")),
      -1, 1 },
    { "numcodecs.fletcher32", BEHIND(BARE("numcodecs.fletcher32")), -1, 0 },
    { "numcodecs.gzip", BEHIND(NAMED("numcodecs.gzip", "{\"level\":1}")), -1, 0 },
    { "numcodecs.json2", "[" BARE("numcodecs.json2") "]", -1, 0 },
    { "numcodecs.jenkins_lookup3",
      BEHIND(NAMED("numcodecs.jenkins_lookup3", "{\"initval\":7,\"prefix\":[1,2,255]}")), -1, 0 },
    { "numcodecs.lz4", BEHIND(NAMED("numcodecs.lz4", "{\"acceleration\":10}")), -1, 0 },
    { "numcodecs.lzma", BEHIND(NAMED("numcodecs.lzma", "{\"preset\":0}")), 2, 0 },
    { "numcodecs.lzma",
      BEHIND(NAMED("numcodecs.lzma", "{\"format\":3,\"filters\":[{\"id\":3,\"dist\":4},"
                                     "{\"id\":33,\"preset\":1}]}")),
      1, 0 },
    { "numcodecs.msgpack2", "[" NAMED("numcodecs.msgpack2", "{\"raw\":false}") "]", 1, 0 },
    { "numcodecs.msgpack2", "[" BARE("numcodecs.msgpack2") "," BARE("crc32c") "]", 3, 0 },
    { "numcodecs.packbits", "[" BARE("numcodecs.packbits") "," BARE("bytes") "]", -1, 0 },
    { "numcodecs.quantize",
      BEFORE(NAMED("numcodecs.quantize", "{\"digits\":2,\"dtype\":\"<f8\",\"astype\":\"<f4\"}")),
      -1, 1 },
    { "numcodecs.quantize", BEFORE(NAMED("numcodecs.quantize", "{\"digits\":1,\"dtype\":\"<f4\"}")),
      2, 1 },
    { "numcodecs.shuffle", BEHIND(NAMED("numcodecs.shuffle", "{\"elementsize\":4}")), -1, 0 },
    { "numcodecs.zfpy", "[" NAMED("numcodecs.zfpy", "{\"mode\":5}") "]", -1, 0 },
    { "numcodecs.zfpy", "[" NAMED("numcodecs.zfpy", "{\"mode\":4,\"tolerance\":0.01}") "]", -1,
      KIT_TAME | KIT_DRIFTS },
    { "numcodecs.zfpy", "[" NAMED("numcodecs.zfpy", "{\"mode\":2,\"rate\":7.5}") "]", 2,
      KIT_TAME | KIT_DRIFTS },
    { "numcodecs.zlib", BEHIND(NAMED("numcodecs.zlib", "{\"level\":5}")), -1, 0 },
    { "numcodecs.zstd", BEHIND(NAMED("numcodecs.zstd", "{\"level\":1,\"checksum\":true}")), 2, 0 },
    { "n5_default", "[" N5("[0]", NAMED("gzip", "{\"level\":1}")) "]", 1, 0 },
    { "n5_default", "[" N5("[1,0]", NAMED("blosc", "{\"cname\":\"lz4\",\"clevel\":5,"
      "\"shuffle\":\"noshuffle\",\"blocksize\":0}")) "]", 2, 0 },
    { "packbits", "[" BARE("packbits") "]", -1, 0 },
    { "packbits",
      "[" NAMED("packbits", "{\"padding_encoding\":\"first_byte\",\"first_bit\":1}") "]", 2, 0 },
    { "packbits", "[" NAMED("packbits", "{\"padding_encoding\":\"last_byte\",\"last_bit\":2}") "]",
      2, 0 },
    { "breccia.reversed_bytes",
      "[" NAMED("breccia.reversed_bytes", "{\"runs\":[[0,2,1],[2,2,1]]}") "]", -1, 0 },
    { "breccia.reversed_bytes",
      "[" NAMED("breccia.reversed_bytes", "{\"runs\":[[0,3,1],[3,5,1]]}") "," BARE("crc32c") "]", 2,
      0 },
    { "reshape", BEFORE(NAMED("reshape", "{\"shape\":[[0],-1]}")), -1, 0 },
    { "reshape", "[" NAMED("reshape", "{\"shape\":[-1]}") "," BARE("vlen-utf8") "]", 2, 0 },
    { "scale_offset", BEFORE(NAMED("scale_offset", "{}")), -1, 0 },
    { "scale_offset", BEFORE(NAMED("scale_offset", "{\"offset\":3,\"scale\":0.25}")), -1, 1 },
    { "scale_offset", BEFORE(NAMED("scale_offset", "{\"offset\":0.1,\"scale\":3.7}")), 2, 1 },
    { "sharding_indexed", "[" SHARD("[1,1]", LITTLE, LITTLE "," BARE("crc32c"), "end") "]", 2, 0 },
    { "sharding_indexed",
      "[" SHARD("[1]", LITTLE "," NAMED("zstd", "{\"level\":1}"), BIG, "start") "]", 1, 0 },
    { "sharding_indexed",
      "[" SHARD("[1,1]", SHARD("[1,1]", ROUND "," LITTLE, LITTLE, "end"), LITTLE, "start") "]", 2,
      0 },
    { "sharding_indexed", "[" SHARD("[1,1]", BARE("vlen-utf8"), LITTLE, "end") "]", 2, 0 },
    { "transpose", BEFORE(NAMED("transpose", "{\"order\":[2,0,1]}")), 3, 0 },
    { "transpose", "[" NAMED("transpose", "{\"order\":[1,0]}") "," BARE("vlen-bytes") "]", 2, 0 },
    { "vlen-array", "[" BARE("vlen-array") "]", -1, 0 },
    { "vlen-bytes", "[" BARE("vlen-bytes") "]", -1, 0 },
    { "vlen-utf8", "[" BARE("vlen-utf8") "]", -1, 0 },
    { "zarrs.optional", "[" OPTIONAL(BARE("packbits"), LITTLE) "]", -1, 0 },
    { "zarrs.optional", "[" OPTIONAL(BARE("packbits"), ROUND "," LITTLE) "]", -1, 0 },
    { "zarrs.optional", "[" OPTIONAL(BARE("bytes"), BARE("vlen-utf8")) "]", -1, 0 },
    { "zarrs.squeeze", BEFORE(BARE("zarrs.squeeze")), -1, 0 },
    { "zarrs.vlen",
      "[" OFFSETS(LITTLE, BARE("bytes"), "\"uint32\"", "\"start\"") "]", -1, 0 },
    { "zarrs.vlen",
      "[" OFFSETS(BIG "," NAMED("zstd", "{\"level\":1}"),
                  BARE("bytes") "," NAMED("gzip", "{\"level\":1}"), "\"uint64\"", "\"end\"") "]",
      2, 0 },
    { "zarrs.vlen_v2", "[" BARE("zarrs.vlen_v2") "]", -1, 0 },
    { "zfp", "[" NAMED("zfp", "{\"mode\":\"reversible\"}") "]", -1, KIT_HALF },
    { "zfp", "[" NAMED("zfp", "{\"mode\":\"fixed_accuracy\",\"tolerance\":0.05}") "]", -1,
      KIT_TAME | KIT_DRIFTS },
    { "zfp", "[" NAMED("zfp", "{\"mode\":\"fixed_precision\",\"precision\":19}") "]", 3,
      KIT_TAME | KIT_DRIFTS },
    { "zfp", "[" NAMED("zfp", "{\"mode\":\"expert\",\"minbits\":1,\"maxbits\":113,"
                               "\"maxprec\":19,\"minexp\":-2}") "]", 2,
      KIT_TAME | KIT_DRIFTS },
    { "zstd", BEHIND(NAMED("zstd", "{\"level\":3,\"checksum\":true}")), -1, 0 },
    { "zstd", BEHIND(NAMED("zstd", "{\"level\":-5}")), 2, 0 },
};

const codec_list *codec_list_of(const char *name, size_t i)
{
    for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++)
        if (strcmp(lists[k].name, name) == 0 && i-- == 0)
            return &lists[k];
    return NULL;
}
