/* The codec "blosc": its frames, their lies, and the options in them. */
#include <blosc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kit/chain_fixture.h"
#include "../kit/suite.h"

TEST_SUITE(blosc);

static void blosc_put_u32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static const char blosc_int32[] =
    "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},"
    "{\"name\":\"blosc\",\"configuration\":{\"cname\":\"lz4\",\"clevel\":5,"
    "\"shuffle\":\"shuffle\",\"typesize\":4,\"blocksize\":2048}}]";

CASE("all", .setup = codecs_setup, .teardown = codecs_teardown, .timeout = UNTIMED);

TEST(blosc_header_lies_are_found)
{
    uint64_t n = 25000; /* 100000 bytes: several blocks, the last one short          */
    static int32_t plain[25000];
    brc_buf out = BRC_BUF_INIT;
    static const struct {
        size_t at;
        uint32_t value;
        const char *says;
    } lies[] = {
        { 4, 0x7fffffff, "2147483647 bytes" },
        { 4, 99999, "decodes to 99999 bytes, not 100000" },
        { 4, 0, "not 100000" },
        { 8, 0, "block size 0" },
        { 8, 100001, "block size 100001" },
        { 8, 0xffffffff, "is impossible" },
        { 8, 1, "too short for its 100000 blocks" },
        { 12, 15, "15 bytes" },
        { 12, 1000000, "1000000 bytes" },
        { 16, 0, "block 0 begins inside" },
        { 20, 0x7ffffff0, "block 1 is outside" },
        { 20, 0xfffffff0, "block 1 is outside" },
    };

    for (int32_t i = 0; i < 25000; i++)
        plain[i] = i / 3;
    codecs_open(blosc_int32, "int32", 1, &n);
    codecs_encode(plain, sizeof(plain), &out);
    ck_assert_uint_lt(out.len, 90000);
    codecs_expect(out.data, out.len, plain, sizeof(plain));
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        uint8_t *copy = malloc(out.len);
        memcpy(copy, out.data, out.len);
        blosc_put_u32(copy + lies[i].at, lies[i].value);
        codecs_expect_corrupt(copy, out.len, lies[i].says);
        free(copy);
    }
    uint32_t start = out.data[16] | (uint32_t)out.data[17] << 8 | (uint32_t)out.data[18] << 16;
    blosc_put_u32(out.data + start, 0x7fffffff);
    codecs_expect_corrupt(out.data, out.len, "block 0 goes past the end");
    brc_buf_dispose(&out);
}

TEST(blosc_frames_at_the_edges)
{
    uint64_t n = 4;
    uint8_t frame[64] = { 2, 1, 0x33, 1, 16, 0, 0, 0, 16, 0, 0, 0, 32, 0, 0, 0 };
    static const uint8_t plain[16] = { 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0 };
    brc_buf out = BRC_BUF_INIT;

    memcpy(frame + 16, plain, 16);
    codecs_open(blosc_int32, "int32", 1, &n);
    codecs_expect(frame, 32, plain, 16);
    codecs_expect(frame, 48, plain, 16); /* bytes behind the frame */
    codecs_expect_corrupt(frame, 31, "32 bytes, of 31");
    codecs_expect_corrupt(frame, 10, "10 bytes cannot hold");
    frame[2] = 0x37; /* both shuffles: Blosc2's extended header */
    ck_assert_int_eq(codecs_decode(frame, 32, &out), BRC_EUNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(codecs_err.message, "Blosc2"));
    frame[2] = 0x40; /* snappy, compressed */
    if (blosc_compname_to_compcode("snappy") < 0) {
        ck_assert_int_eq(codecs_decode(frame, 32, &out), BRC_EUNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(codecs_err.message, "snappy"));
    }
    frame[2] = 0xE0;
    codecs_expect_corrupt(frame, 32, "unknown inner codec 7");
    brc_buf_dispose(&out);
}

TEST(B08_blosc_options_reach_the_frame)
{
    static const char *const shuffles[] = { "noshuffle", "shuffle", "bitshuffle" };
    static const uint8_t bits[] = { 0, BLOSC_DOSHUFFLE, BLOSC_DOBITSHUFFLE };
    static const char *const cnames[] = { "blosclz", "lz4", "lz4hc", "zlib", "zstd" };
    static const uint8_t formats[] = { 0, 1, 1, 3, 4 };
    static const int levels[] = { 1, 4, 8 };
    uint64_t n = 4096;
    static int32_t plain[4096];
    brc_buf out = BRC_BUF_INIT;

    for (int32_t i = 0; i < 4096; i++)
        plain[i] = i;
    for (size_t c = 0; c < 5; c++) {
        for (size_t s = 0; s < 9; s++) {
            char list[300];
            if (blosc_compname_to_compcode(cnames[c]) < 0)
                continue;
            snprintf(list, sizeof(list),
                     "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},"
                     "{\"name\":\"blosc\",\"configuration\":{\"cname\":\"%s\",\"clevel\":%d,"
                     "\"shuffle\":\"%s\","
                     "\"typesize\":4,\"blocksize\":0}}]",
                     cnames[c], levels[s / 3], shuffles[s % 3]);
            codecs_open(list, "int32", 1, &n);
            codecs_encode(plain, sizeof(plain), &out);
            ck_assert_uint_eq(out.data[2] >> 5, formats[c]);
            ck_assert_uint_eq(out.data[2] & 5, bits[s % 3]);
            ck_assert_uint_eq(out.data[3], 4);
            codecs_expect(out.data, out.len, plain, sizeof(plain));
        }
    }
    brc_buf_dispose(&out);
}

TEST(blosc_refuses_chunks_past_2_gib)
{
    uint64_t most = 2147483631, more = 2147483632;

    codecs_open_bytes("[\"bytes\",\"blosc\"]", most);
    ck_assert_int_eq(codecs_try_open("[\"bytes\",\"blosc\"]", "uint8", 1, &more), BRC_ELIMIT);
    ck_assert_ptr_nonnull(strstr(codecs_err.message, "/codecs/1"));
}
