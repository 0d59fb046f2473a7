/* A .npy file, plain or gzipped: the header by itself, then the whole file. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "../../src/xfer/npy/npy.h"

#define IMPORT_MAX ((uint64_t)1 << 20)

/* A header that is read is written, and read as the same. */
static void check_header(const brc_npy_header *h)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf out = BRC_BUF_INIT;
    brc_npy_header again;
    char *descr = fuzz_text((const uint8_t *)h->descr, h->descr_len);
    FUZZ_TRUE(brc_npy_header_write(&out, descr, h->ndim, h->shape, &err) == BRC_OK, &err);
    size_t prefix = out.data[BRC_NPY_MAGIC_LEN] == 1 ? 10 : 12;
    int rc = brc_npy_header_parse(&again, (const char *)out.data + prefix, out.len - prefix, &err);
    /* a quote of the other kind ends it early */
    FUZZ_TRUE(rc == BRC_OK || strchr(descr, '\'') != NULL || descr[0] == '[', &err);
    if (rc == BRC_OK && !h->structured && descr[0] != '[') {
        FUZZ_TRUE(again.ndim == h->ndim && again.descr_len == h->descr_len, NULL);
        FUZZ_TRUE(memcmp(again.shape, h->shape, sizeof(h->shape)) == 0, NULL);
    }
    free(descr);
    brc_buf_dispose(&out);
}

void fuzz_npy(const uint8_t *data, size_t len)
{
    brc_error err = BRC_ERROR_INIT;
    brc_npy_header header;
    brc_elements elements;
    brc_input *in;

    if (len >= 10 && brc_npy_header_parse(&header, (const char *)data + 10, len - 10, &err) == 0)
        check_header(&header);
    const char *file = fuzz_file("in.npy", data, len);
    if (brc_input_open(&in, file, &err) < 0)
        return;
    int rc = brc_npy_open(&elements, in, fuzz_registry(), &err);
    brc_input_free(in);
    if (rc < 0)
        return;
    uint64_t bytes = elements.bytes;
    brc_elements_free(&elements);
    if (bytes <= IMPORT_MAX)
        fuzz_import(file);
}
