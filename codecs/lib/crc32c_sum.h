/* CRC-32C of bytes, in two ways; the codecs add what goes before and after. */
#ifndef BRC_CODECS_LIB_CRC32C_SUM_H
#define BRC_CODECS_LIB_CRC32C_SUM_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define BRC_CRC32C_HAVE_SSE42 1
/* Does this processor have the instruction? */
int brc_crc32c_sse42_runs(void);
uint32_t brc_crc32c_sse42(uint32_t crc, const uint8_t *p, size_t len);
#endif

/* Goes on from `crc`; the start and the final xor are the caller's. */
uint32_t brc_crc32c_portable(uint32_t crc, const uint8_t *p, size_t len);

/* The whole sum, start and final xor included, by the fastest way that runs here. */
uint32_t brc_crc32c(const uint8_t *data, size_t len);

#endif
