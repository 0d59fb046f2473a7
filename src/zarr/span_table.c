#include "span_table.h"

#include "../base/buf.h"

int brc_elements_find(brc_span *table, uint64_t n, brc_span packed, brc_error *err)
{
    size_t at = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (packed.len - at < 4)
            return brc_fail(err, BRC_EINVAL, "the bytes end before element %llu",
                            (unsigned long long)i);
        size_t len = brc_get_u32le(packed.data + at);
        if (len > packed.len - at - 4)
            return brc_fail(err, BRC_EINVAL, "element %llu is longer than the bytes that are left",
                            (unsigned long long)i);
        table[i] = (brc_span){packed.data + at, len + 4};
        at += len + 4;
    }
    if (at != packed.len)
        return brc_fail(err, BRC_EINVAL, "bytes follow the last of %llu elements",
                        (unsigned long long)n);
    return BRC_OK;
}

int brc_elements_pack(brc_buf *out, const brc_span *table, uint64_t n, brc_error *err)
{
    for (uint64_t i = 0; i < n; i++)
        BRC_TRY(brc_buf_append(out, table[i].data, table[i].len, err));
    return BRC_OK;
}
