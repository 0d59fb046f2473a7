/* CRC-32C of bytes, computed in two ways. */
#ifndef BRC_CODECS_LIB_CRC32C_SUM_H
#define BRC_CODECS_LIB_CRC32C_SUM_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define BRC_CRC32C_HAVE_SSE42 1
/* Returns 1 if this processor has the CRC-32C instruction of SSE 4.2. */
int brc_crc32c_sse42_runs(void);
uint32_t brc_crc32c_sse42(uint32_t crc, const uint8_t *p, size_t len);
#endif

/* Continues from `crc`. The caller sets the start value and applies the final xor. */
uint32_t brc_crc32c_portable(uint32_t crc, const uint8_t *p, size_t len);

/* Computes the whole sum, start value and final xor included, in the fastest way that this
 * processor runs. */
uint32_t brc_crc32c(const uint8_t *data, size_t len);

#endif
