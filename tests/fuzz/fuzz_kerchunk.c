/* Kerchunk's references: sorted files, each of which has bytes or an address. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "../../src/xfer/tree_names.h"
#include "../../src/xfer/zarr/kerchunk.h"

static void check_ref(const brc_kerchunk *set, size_t i)
{
    const brc_kerchunk_ref *ref = &set->refs[i];
    brc_error err = BRC_ERROR_INIT;
    brc_buf data = BRC_BUF_INIT;
    FUZZ_TRUE(strlen(ref->key) == ref->key_len && ref->key_len > 0, NULL);
    FUZZ_TRUE((ref->data == NULL) != (ref->url == NULL), NULL);
    if (i > 0)
        FUZZ_TRUE(brc_tree_name_compare(ref[-1].key, ref[-1].key_len, ref->key, ref->key_len) < 0,
                  NULL);
    if (ref->data) {
        const int rc = brc_kerchunk_data(&data, ref, 1 << 20, &err);
        FUZZ_TRUE(rc == BRC_OK || rc == BRC_EINVAL || rc == BRC_ELIMIT, &err);
        brc_buf_dispose(&data);
    } else {
        FUZZ_TRUE(ref->whole || (ref->offset <= INT64_MAX && ref->len <= INT64_MAX), NULL);
    }
}

void fuzz_kerchunk(const uint8_t *data, size_t len)
{
    brc_error err = BRC_ERROR_INIT;
    brc_kerchunk set;
    uint8_t *bytes = fuzz_bytes(data, len);
    const int rc = brc_kerchunk_read(&set, (const char *)bytes, len, &err);
    FUZZ_TRUE(rc == BRC_OK || rc == BRC_EINVAL || rc == BRC_ELIMIT || rc == BRC_EUNSUPPORTED, &err);
    for (size_t i = 0; rc == BRC_OK && i < set.n; i++)
        check_ref(&set, i);
    brc_kerchunk_dispose(&set);
    free(bytes);
    fuzz_import(fuzz_file("in.json", data, len));
}
