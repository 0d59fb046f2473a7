/* "packbits": the stream of bits by its definition, and every type there and back. */
#include <stdio.h>
#include <string.h>

#include "../kit/chain_fixture.h"
#include "../kit/codec_kit.h"
#include "../kit/suite.h"

TEST_SUITE(packbits);

#define PACK(config_) "[{\"name\":\"packbits\",\"configuration\":" config_ "}]"

CASE("each", .setup = codecs_setup, .teardown = codecs_teardown, .timeout = UNTIMED);

LOOP(P16_packbits_holds_what_the_kit_asks, 0, 5)
{
    static const char *const lists[] = {
        "[\"packbits\"]",
        PACK("{\"padding_encoding\":\"first_byte\"}"),
        PACK("{\"padding_encoding\":\"last_byte\",\"first_bit\":null}"),
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},\"packbits\",\"crc32c\"]",
        PACK("{\"first_bit\":1,\"last_bit\":3}"),
    };
    char why[1024] = "no data type was taken";
    codec_kit kit = {
        .reg = codecs_reg, .codecs = lists[_i], .ndim = _i == 3 ? 2 : -1, .rounds = 6, .seed = 1234
    };

    ck_assert_msg(codec_kit_run(&kit, why, sizeof(why)) == 0, "%s", why);
}

TEST(packbits_begins_at_the_lowest_bit)
{
    static const uint8_t two[] = { 0, 1, 2, 3 }, two_stored[] = { 0xE4 };
    static const uint8_t bools[] = { 0, 1, 0, 1, 0, 1, 0, 1, 1, 0 }, bools_stored[] = { 0xAA, 1 };
    static const uint8_t nibbles[] = { 0xF8, 7, 0xFF }, nibbles_stored[] = { 0x78, 0x0F };
    static const uint8_t sixes[] = { 0x3F, 0, 0x21 }, sixes_stored[] = { 0x3F, 0x10, 0x02 };
    static const uint16_t words[] = { 0x1234, 0xFFFE };
    uint64_t n = 4, ten = 10, three = 3, pair = 2;

    codecs_open("[\"packbits\"]", "uint2", 1, &n);
    codecs_expect_stored(two, 4, two_stored, 1);
    codecs_open("[\"packbits\"]", "bool", 1, &ten);
    codecs_expect_stored(bools, 10, bools_stored, 2);
    /* int4 -8, 7, -1 come back with their signs */
    codecs_open("[\"packbits\"]", "int4", 1, &three);
    codecs_expect_stored(nibbles, 3, nibbles_stored, 2);
    codecs_open("[\"packbits\"]", "float6_e2m3fn", 1, &three);
    codecs_expect_stored(sixes, 3, sixes_stored, 3);
    codecs_open("[\"packbits\"]", "uint16", 1, &pair);
    ck_assert(brc_chain_is_identity(codecs_chain));
    codecs_expect_stored(words, 4, "\x34\x12\xFE\xFF", 4);
    codecs_open("[\"packbits\"]", "complex_float4_e2m1fn", 1, &pair);
    codecs_expect_stored("\1\2\3\4", 4, "\x21\x43", 2);
    codecs_open("[\"packbits\"]", "bool", 0, NULL);
    codecs_expect_stored("\1", 1, "\1", 1);
    n = 0;
    codecs_open("[\"packbits\"]", "bool", 1, &n);
    codecs_expect_stored("", 0, "", 0);
}

TEST(packbits_counts_its_padding)
{
    static const uint8_t bools[] = { 1, 0, 1 }, first[] = { 5, 5 }, last[] = { 5, 5 };
    static const uint8_t eight[8] = { 1 };
    uint64_t n = 3, whole = 8, none = 0;

    codecs_open(PACK("{\"padding_encoding\":\"first_byte\"}"), "bool", 1, &n);
    codecs_expect_stored(bools, 3, first, 2);
    codecs_expect_corrupt("\4\5", 2, "the stored number of padding bits is 4, not 5");
    codecs_expect_corrupt("\5", 1, "2 bytes are expected, not 1");
    codecs_open(PACK("{\"padding_encoding\":\"last_byte\"}"), "bool", 1, &n);
    codecs_expect_stored(bools, 3, last, 2);
    codecs_expect_corrupt("\5\4", 2, "the stored number of padding bits is 4, not 5");
    codecs_open(PACK("{\"padding_encoding\":\"last_byte\"}"), "bool", 1, &whole);
    codecs_expect_stored(eight, 8, "\1\0", 2);
    codecs_open(PACK("{\"padding_encoding\":\"first_byte\"}"), "bool", 1, &none);
    codecs_expect_stored("", 0, "\0", 1);

    /* whole bytes, as the text of the codec has them and as zarrs writes them */
    n = 2;
    codecs_open(PACK("{\"padding_encoding\":\"first_byte\"}"), "uint16", 1, &n);
    codecs_expect_stored("\1\2\3\4", 4, "\0\1\2\3\4", 5);
    codecs_expect("\1\2\3\4", 4, "\1\2\3\4", 4);
    codecs_expect_corrupt("\1\2\3\4\5", 5, "the stored number of padding bits is 1, not 0");
    codecs_open(PACK("{\"padding_encoding\":\"last_byte\"}"), "uint16", 1, &n);
    codecs_expect_stored("\1\2\3\4", 4, "\1\2\3\4\0", 5);
    codecs_expect("\1\2\3\4", 4, "\1\2\3\4", 4);
    codecs_expect_corrupt("\1\2\3", 3, "5 bytes are expected, not 3");
}

TEST(packbits_takes_some_of_the_bits)
{
    /* bits 4 to 11 of 0x1234 and 0xFFFF; the rest is lost, and signs come from bit 11 */
    static const uint16_t plain[] = { 0x1234, 0xFFFF }, back[] = { 0x0230, 0x0FF0 };
    static const int16_t is_signed[] = { 0x0230, -16 };
    brc_buf out = BRC_BUF_INIT;
    uint64_t n = 2;

    codecs_open(PACK("{\"first_bit\":4,\"last_bit\":11}"), "uint16", 1, &n);
    ck_assert(brc_chain_is_lossy(codecs_chain));
    codecs_encode(plain, 4, &out);
    ck_assert_uint_eq(out.len, 2);
    ck_assert_mem_eq(out.data, "\x23\xFF", 2);
    codecs_expect(out.data, 2, back, 4);
    codecs_open(PACK("{\"first_bit\":4,\"last_bit\":11}"), "int16", 1, &n);
    codecs_expect(out.data, 2, is_signed, 4);
    brc_buf_dispose(&out);
}

/* 64 bits at every offset: widths that do not divide a word. */
TEST(packbits_of_wide_components)
{
    uint64_t plain[9], want[9], random = 3, n = 9;
    char list[120];
    brc_buf out = BRC_BUF_INIT;

    for (unsigned last = 56; last < 64; last++) {
        for (size_t i = 0; i < 9; i++) {
            plain[i] = codec_kit_random(&random);
            want[i] = last == 63 ? plain[i] : plain[i] & ((UINT64_C(1) << (last + 1)) - 1);
        }
        snprintf(list, sizeof(list), PACK("{\"last_bit\":%u}"), last);
        codecs_open(list, "uint64", 1, &n);
        codecs_encode(plain, sizeof(plain), &out);
        ck_assert_uint_eq(out.len, (9 * (last + 1) + 7) / 8);
        codecs_expect(out.data, out.len, want, sizeof(want));
    }
    brc_buf_dispose(&out);
}

TEST(B07_wrong_options_of_packbits_are_refused)
{
    codecs_expect_refused(PACK("{\"padding_encoding\":\"middle\"}"), BRC_EINVAL, "\"first_byte\"");
    codecs_expect_refused(PACK("{\"first_bit\":32}"), BRC_EINVAL, "from 0 to 31");
    codecs_expect_refused(PACK("{\"first_bit\":5,\"last_bit\":4}"), BRC_EINVAL, "is greater");
    codecs_expect_refused(PACK("{\"start_bit\":5}"), BRC_EINVAL, "start_bit");
    uint64_t n = 1;
    ck_assert_int_eq(codecs_try_open("[\"packbits\"]", "string", 1, &n), BRC_EINVAL);
}
