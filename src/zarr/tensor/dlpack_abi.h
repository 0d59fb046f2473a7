/* DLPack's structures, as its published ABI lays them out (versions 0 and 1). */
#ifndef BRC_ZARR_DLPACK_ABI_H
#define BRC_ZARR_DLPACK_ABI_H

#include <stdint.h>

struct brc_dl_tensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: packed */
    uint64_t byte_offset;
};

/* Before version 1. */
struct brc_dl_managed_old {
    struct brc_dl_tensor tensor;
    void *owner;
    void (*deleter)(struct brc_dl_managed_old *self);
};

struct brc_dl_managed {
    struct {
        uint32_t major, minor;
    } version;
    void *owner;
    void (*deleter)(struct brc_dl_managed *self);
    uint64_t flags;
    struct brc_dl_tensor tensor;
};

enum { BRC_DL_READONLY = 1, BRC_DL_COPIED = 2, BRC_DL_PADDED = 4 };
enum {
    BRC_DL_INT = 0, BRC_DL_UINT, BRC_DL_FLOAT, BRC_DL_HANDLE, BRC_DL_BFLOAT, BRC_DL_COMPLEX, BRC_DL_BOOL,
    BRC_DL_FLOAT8_E3M4, BRC_DL_FLOAT8_E4M3, BRC_DL_FLOAT8_E4M3B11FNUZ, BRC_DL_FLOAT8_E4M3FN, BRC_DL_FLOAT8_E4M3FNUZ,
    BRC_DL_FLOAT8_E5M2, BRC_DL_FLOAT8_E5M2FNUZ, BRC_DL_FLOAT8_E8M0FNU
};

#endif
