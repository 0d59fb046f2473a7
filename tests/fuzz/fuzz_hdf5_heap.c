/*
 * HDF5's references to elements of variable length, followed through the collections of
 * a file. libhdf5 is not asked: what it would say of the file's layout is in the input.
 *
 *   bytes of an address   bytes of a length   bytes of an item   a reference of 16   the file
 */
#include "fuzz.h"

#include <stdlib.h>

#include "../../src/xfer/hdf5/hdf5_heap.h"
#include "../../src/xfer/input.h"

#define HEAD (3 + 16)

void fuzz_hdf5_heap(const uint8_t *data, size_t len)
{
    static const brc_hdf5 no_library;
    brc_hdf5_heap heap = { .lib = &no_library, .fd = -1, .reference = BRC_HDF5_NONE };
    brc_error err = BRC_ERROR_INIT;
    brc_span item;

    if (len < HEAD)
        return;
    heap.address_size = (size_t)1 + data[0] % 8;
    heap.length_size = (size_t)1 + data[1] % 8;
    heap.reference_size = 4 + heap.address_size + 4;
    heap.path = fuzz_file("in.h5", data + HEAD, len - HEAD);
    FUZZ_TRUE(brc_regular_open(&heap.fd, &heap.file_size, heap.path, 1, &err) == BRC_OK, &err);
    /* twice: the second time the collection is there already */
    for (int i = 0; i < 2; i++) {
        int rc = brc_hdf5_heap_get(&heap, data + 3, (size_t)1 + data[2] % 16, &item, "x", &err);
        FUZZ_TRUE(rc == BRC_OK || rc == BRC_EINVAL || rc == BRC_ELIMIT, &err);
        if (rc == BRC_OK)
            free(fuzz_bytes(item.data, item.len)); /* all of it is read */
    }
    brc_hdf5_heap_close(&heap);
}
