/* The codecs of this folder. Each function adds a codec's specifications and implementations
 * to the registry. Code that several codecs share is in lib/. */
#ifndef BRC_CODECS_BUILTIN_H
#define BRC_CODECS_BUILTIN_H

#include "../src/breccia_codec.h"

BRC_MUST_USE int brc_codec_astype_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_base64_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_bitround_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_blosc_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_bytes_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_bz2_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_categorize_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_cast_value_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_checksums_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_crc32c_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_delta_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_fixed_scale_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_gzip_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_lz4_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_lzf_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_lzma_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_n5_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_objects_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_optional_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_packbits_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_packbools_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_reshape_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_reversed_bytes_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_scale_offset_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_sharding_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_shuffle_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_transpose_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_vlen_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_vlen_offsets_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_zfp_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_zstd_register(brc_registry *reg, brc_error *err);

#endif
