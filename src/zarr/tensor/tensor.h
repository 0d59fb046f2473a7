/* Tensors: elements of a fixed size in memory of any kind, counted. */
#ifndef BRC_ZARR_TENSOR_H
#define BRC_ZARR_TENSOR_H

#include "../array/device.h"

/* A data type as DLPack names it. bits 0: DLPack has no name for it. */
typedef struct brc_dl_type {
    uint8_t code, bits;
} brc_dl_type;

#define BRC_TENSOR_DTYPE 128

struct brc_tensor {
    atomic_size_t refs;
    brc_tensor_info info;
    uint64_t shape[BRC_MAX_NDIM];
    int64_t strides[BRC_MAX_NDIM];
    char dtype[BRC_TENSOR_DTYPE];
    brc_dl_type type;
    brc_prototype *by; /* that allocated `block`; NULL: memory of others        */
    brc_block block;
    void *managed;     /* the DLPack tensor of others                           */
    void (*drop)(void *managed);
};

/* Makes a tensor without memory: its shape and type. */
BRC_MUST_USE int brc_tensor_new(brc_tensor **out, brc_prototype *by, int ndim, const uint64_t *shape, size_t item,
                                brc_error *err);
brc_tensor *brc_tensor_ref(brc_tensor *t);
/* Finds how far elements reach before and behind the first one, in bytes. BRC_EINVAL: beyond what 63 bits can count. */
BRC_MUST_USE int brc_tensor_reach(const brc_tensor *t, size_t *before, size_t *behind, brc_error *err);

#endif
