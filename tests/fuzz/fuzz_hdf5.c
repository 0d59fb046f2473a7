/* Whole HDF5 files, through libhdf5. */
#include "fuzz.h"

#include <string.h>

void fuzz_hdf5(const uint8_t *data, size_t len)
{
    if (len >= 8 && memcmp(data, "\x89HDF\r\n\x1a\n", 8) == 0)
        fuzz_import(fuzz_file("in.h5", data, len));
}
