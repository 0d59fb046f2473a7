/*
 * HDF5's global heap: where elements of variable length lie. An element itself is a
 * reference,
 *
 *   u32 length   address of a collection   u32 index
 *
 * and the library, where it follows one, believes what it finds: one wrong bit and it
 * reads outside its memory. So it is made to hand out the references, and they are
 * followed here, with every step checked.
 *
 *   collection   "GCOL" 1 0 0 0   its size   objects, the last of them free space
 *   object       u16 index   u16 uses   u32 0   its size   its bytes, up to a multiple of 8
 *
 * Numbers are little-endian; addresses and sizes have the bytes that the superblock says.
 * (HDF5 File Format Specification 3.0, III.E.)
 */
#ifndef BRC_XFER_HDF5_HEAP_H
#define BRC_XFER_HDF5_HEAP_H

#include "hdf5_lib.h"

#define BRC_HDF5_COLLECTIONS 16

typedef struct brc_hdf5_collection {
    uint64_t address;
    uint8_t *data;    /* NULL: the slot is free                               */
    uint64_t size;
    uint64_t *starts; /* of objects by index, 0 where there is none           */
    size_t n;
} brc_hdf5_collection;

typedef struct brc_hdf5_heap {
    const brc_hdf5 *lib;
    const char *path;
    int fd;
    uint64_t base, file_size;
    size_t address_size, length_size;
    hid_t reference;  /* the type in memory, of reference_size bytes          */
    size_t reference_size;
    char conversion[32]; /* its name in the library, while it is there        */
    brc_hdf5_collection slots[BRC_HDF5_COLLECTIONS];
    size_t next;
} brc_hdf5_heap;

/* `file`: the open file at `path`, which stays its caller's. Closing takes a zeroed one too. */
BRC_MUST_USE int brc_hdf5_heap_open(brc_hdf5_heap *out, const brc_hdf5 *lib, hid_t file, const char *path, brc_error *err);
void brc_hdf5_heap_close(brc_hdf5_heap *heap);
/* What a reference stands for: as many items of `unit` bytes as it says. Valid until the next
 * call. */
BRC_MUST_USE int brc_hdf5_heap_get(brc_hdf5_heap *heap, const uint8_t *reference, size_t unit, brc_span *out,
                                   const char *label, brc_error *err);

#endif
