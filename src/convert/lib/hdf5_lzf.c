/* LZF, see hdf5_lzf.h. */
#include "hdf5_lzf.h"

#ifdef __has_include
#if __has_include(<lzf.h>)
#define HAS_LZF 1
#endif
#endif

#ifndef HAS_LZF

int brc_hdf5_lzf_register(brc_error *err)
{
    (void)err;
    return BRC_OK;
}

#else

#include <lzf.h>
#include <string.h>

#define MOST_RATIO 88 /* three bytes stand for at most 264 */

/* 0: it is damaged, as the library wants it said. */
static size_t decode_lzf(unsigned flags, size_t n, const unsigned *values, size_t len, size_t *size,
                         void **data)
{
    size_t told = n > BRC_HDF5_LZF_BYTES ? values[BRC_HDF5_LZF_BYTES] : 0;
    size_t room = told ? told : BRC_HDF5_LZF_ROOM;
    if (!(flags & H5Z_FLAG_REVERSE) || len > UINT32_MAX || told / MOST_RATIO > len)
        return 0;
    uint8_t *decoded = H5allocate_memory(room, 0);
    size_t got = decoded ? lzf_decompress(*data, (unsigned)len, decoded, (unsigned)room) : 0;
    if (got == 0 || (told && got != told)) {
        (void)H5free_memory(decoded);
        return 0;
    }
    memset(decoded + got, 0xff, room - got);
    (void)H5free_memory(*data);
    *data = decoded;
    *size = room;
    return got;
}

int brc_hdf5_lzf_register(brc_error *err)
{
    static const H5Z_class2_t filter = { H5Z_CLASS_T_VERS, BRC_HDF5_LZF, 0,    1,
                                         "lzf",            NULL,         NULL, decode_lzf };
    if (H5Zregister(&filter) < 0)
        return brc_fail(err, BRC_EUNSUPPORTED, "the HDF5 library cannot be started");
    return BRC_OK;
}

#endif
