/* The codecs of this folder: each adds its specification and implementations. */
#ifndef BRC_CODECS_BUILTIN_H
#define BRC_CODECS_BUILTIN_H

#include "../src/breccia_codec.h"

BRC_MUST_USE int brc_codec_blosc_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_bytes_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_crc32c_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_gzip_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_transpose_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_zstd_register(brc_registry *reg, brc_error *err);

#endif
