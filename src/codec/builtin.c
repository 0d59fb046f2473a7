/* A registry with what this build contains. */
#include "../../codecs/builtin.h"
#include "registry_slots.h"

static int (*const builtin_codecs[])(brc_registry *reg, brc_error *err) = {
    brc_codec_astype_register,
    brc_codec_base64_register,
    brc_codec_bitround_register,
    brc_codec_blosc_register,
    brc_codec_bytes_register,
    brc_codec_bz2_register,
    brc_codec_cast_value_register,
    brc_codec_categorize_register,
    brc_codec_checksums_register,
    brc_codec_crc32c_register,
    brc_codec_delta_register,
    brc_codec_fixed_scale_register,
    brc_codec_gzip_register,
    brc_codec_lz4_register,
    brc_codec_lzma_register,
    brc_codec_optional_register,
    brc_codec_packbits_register,
    brc_codec_packbools_register,
    brc_codec_reshape_register,
    brc_codec_reversed_bytes_register,
    brc_codec_scale_offset_register,
    brc_codec_sharding_register,
    brc_codec_shuffle_register,
    brc_codec_transpose_register,
    brc_codec_vlen_register,
    brc_codec_zstd_register,
};

static int add_builtins(brc_registry *reg, brc_error *err)
{
    size_t ntypes = 0;
    const brc_dtype_spec *types = brc_dtype_builtins(&ntypes);

    for (size_t i = 0; i < ntypes; i++)
        BRC_TRY(brc_registry_add_dtype(reg, &types[i], err));
    for (size_t i = 0; i < sizeof(builtin_codecs) / sizeof(builtin_codecs[0]); i++)
        BRC_TRY(builtin_codecs[i](reg, err));
    return BRC_OK;
}

int brc_registry_new(brc_registry **out, brc_error *err)
{
    brc_registry *reg;

    *out = NULL;
    BRC_TRY(brc_registry_new_empty(&reg, err));
    reg->by.core = 1;
    int rc = add_builtins(reg, err);
    reg->by.core = 0;
    if (rc < 0)
        brc_registry_free(reg);
    else
        *out = reg;
    return rc;
}
