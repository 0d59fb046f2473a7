/* CRC-32C: polynomial 0x1EDC6F41, bits reflected (RFC 3720, B.4). */
#include "crc32c_sum.h"

#include <string.h>

#ifdef BRC_CRC32C_HAVE_SSE42
#include <nmmintrin.h>
#endif

/* ---- slicing by 8 -------------------------------------------------------------------
 *
 * Table k holds the CRC of each byte followed by k zero bytes. A CRC is linear, so an entry
 * is the xor of the entries of its single bits, and eight constants per table are enough.
 */
#define CRC_1(i, b0, b1, b2, b3, b4, b5, b6, b7)                                     \
    (((i)&1 ? b0 : 0u) ^ ((i)&2 ? b1 : 0u) ^ ((i)&4 ? b2 : 0u) ^ ((i)&8 ? b3 : 0u) ^ \
     ((i)&16 ? b4 : 0u) ^ ((i)&32 ? b5 : 0u) ^ ((i)&64 ? b6 : 0u) ^ ((i)&128 ? b7 : 0u))
#define CRC_4(i, ...)                                                                \
    CRC_1(i, __VA_ARGS__), CRC_1((i) + 1, __VA_ARGS__), CRC_1((i) + 2, __VA_ARGS__), \
        CRC_1((i) + 3, __VA_ARGS__)
#define CRC_16(i, ...)                                                               \
    CRC_4(i, __VA_ARGS__), CRC_4((i) + 4, __VA_ARGS__), CRC_4((i) + 8, __VA_ARGS__), \
        CRC_4((i) + 12, __VA_ARGS__)
#define CRC_64(i, ...)                                                                    \
    CRC_16(i, __VA_ARGS__), CRC_16((i) + 16, __VA_ARGS__), CRC_16((i) + 32, __VA_ARGS__), \
        CRC_16((i) + 48, __VA_ARGS__)
#define CRC_TABLE(...)                                                             \
    {                                                                              \
        CRC_64(0, __VA_ARGS__), CRC_64(64, __VA_ARGS__), CRC_64(128, __VA_ARGS__), \
            CRC_64(192, __VA_ARGS__)                                               \
    }

static const uint32_t crc32c_tables[8][256] = {
    CRC_TABLE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc,
              0x82f63b78),
    CRC_TABLE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604,
              0xfbc3faf9),
    CRC_TABLE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9,
              0x8b277743),
    CRC_TABLE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7,
              0x52a0c93f),
    CRC_TABLE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae,
              0x6ea2d55c),
    CRC_TABLE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb,
              0x1c08b7d6),
    CRC_TABLE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a,
              0xf56e0ef4),
    CRC_TABLE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32,
              0x34019664),
};

uint32_t brc_crc32c_portable(uint32_t crc, const uint8_t *p, size_t len)
{
    for (; len >= 8; len -= 8, p += 8) {
        uint32_t low = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                              (uint32_t)p[3] << 24);
        crc = crc32c_tables[7][low & 255] ^ crc32c_tables[6][low >> 8 & 255] ^
              crc32c_tables[5][low >> 16 & 255] ^ crc32c_tables[4][low >> 24] ^
              crc32c_tables[3][p[4]] ^ crc32c_tables[2][p[5]] ^ crc32c_tables[1][p[6]] ^
              crc32c_tables[0][p[7]];
    }
    for (; len > 0; len--, p++)
        crc = crc >> 8 ^ crc32c_tables[0][(crc ^ *p) & 255];
    return crc;
}

/* ---- SSE 4.2 ------------------------------------------------------------------------ */

#ifdef BRC_CRC32C_HAVE_SSE42
int brc_crc32c_sse42_runs(void)
{
    return __builtin_cpu_supports("sse4.2") != 0;
}

__attribute__((target("sse4.2"))) uint32_t brc_crc32c_sse42(uint32_t crc, const uint8_t *p,
                                                            size_t len)
{
    uint64_t wide = crc;

    for (; len >= 8; len -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof(word));
        wide = _mm_crc32_u64(wide, word);
    }
    crc = (uint32_t)wide;
    for (; len > 0; len--, p++)
        crc = _mm_crc32_u8(crc, *p);
    return crc;
}
#endif

uint32_t brc_crc32c(const uint8_t *data, size_t len)
{
#ifdef BRC_CRC32C_HAVE_SSE42
    if (brc_crc32c_sse42_runs())
        return ~brc_crc32c_sse42(UINT32_MAX, data, len);
#endif
    return ~brc_crc32c_portable(UINT32_MAX, data, len);
}
