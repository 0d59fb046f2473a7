/* An IDX file, plain or gzipped. */
#include "fuzz.h"

#include "../../src/xfer/idx/idx.h"

#define IMPORT_MAX ((uint64_t)1 << 20)

void fuzz_idx(const uint8_t *data, size_t len)
{
    brc_error err = BRC_ERROR_INIT;
    brc_elements elements;
    brc_input *in;

    const char *file = fuzz_file("in-idx", data, len);
    if (brc_input_open(&in, file, &err) < 0)
        return;
    int rc = brc_idx_open(&elements, in, fuzz_registry(), &err);
    brc_input_free(in);
    if (rc < 0)
        return;
    uint64_t bytes = elements.bytes;
    brc_elements_free(&elements);
    if (bytes <= IMPORT_MAX)
        fuzz_import(file);
}
