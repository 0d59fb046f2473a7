/* What this build contains. */
#include "../../codecs/builtin.h"
#include "registry.h"

static int (*const builtin_codecs[])(brc_registry *reg, brc_error *err) = {
    brc_codec_blosc_register, brc_codec_bytes_register,     brc_codec_crc32c_register,
    brc_codec_gzip_register,  brc_codec_transpose_register, brc_codec_zstd_register,
};

int brc_registry_add_builtins(brc_registry *reg, brc_error *err)
{
    size_t ntypes = 0;
    const brc_dtype_spec *types = brc_dtype_builtins(&ntypes);

    for (size_t i = 0; i < ntypes; i++)
        BRC_TRY(brc_registry_add_dtype(reg, &types[i], err));
    for (size_t i = 0; i < sizeof(builtin_codecs) / sizeof(builtin_codecs[0]); i++)
        BRC_TRY(builtin_codecs[i](reg, err));
    return BRC_OK;
}
