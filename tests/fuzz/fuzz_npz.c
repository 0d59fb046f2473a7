/* Whole zip archives: .npz, and Zarr hierarchies of both versions. */
#include "fuzz.h"

#include <string.h>

void fuzz_npz(const uint8_t *data, size_t len)
{
    /* other files belong to another harness */
    if (len >= 4 && memcmp(data, "PK", 2) == 0)
        fuzz_import(fuzz_file("in.npz", data, len));
}
