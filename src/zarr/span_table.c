#include "span_table.h"

#include "../base/buf.h"

int brc_element_next(brc_element_cursor *cursor, brc_span *out, brc_error *err)
{
    const uint8_t *data = cursor->packed.data;
    const size_t left = cursor->packed.len - cursor->at;
    if (left < 4)
        return brc_fail(err, BRC_EINVAL, "the bytes end before element %llu",
                        (unsigned long long)cursor->number);
    const size_t len = brc_get_u32le(data + cursor->at);
    if (len > left - 4)
        return brc_fail(err, BRC_EINVAL, "element %llu is longer than the bytes that are left",
                        (unsigned long long)cursor->number);
    *out = (brc_span){data + cursor->at, len + 4};
    cursor->at += len + 4;
    cursor->number++;
    return BRC_OK;
}

int brc_elements_end(const brc_element_cursor *cursor, brc_error *err)
{
    if (cursor->at == cursor->packed.len)
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL, "bytes follow the last of %llu elements",
                    (unsigned long long)cursor->number);
}

int brc_elements_find(brc_span *table, uint64_t n, brc_span packed, brc_error *err)
{
    brc_element_cursor cursor = {packed, 0, 0};
    for (uint64_t i = 0; i < n; i++)
        BRC_TRY(brc_element_next(&cursor, &table[i], err));
    return brc_elements_end(&cursor, err);
}

int brc_elements_pack(brc_buf *out, const brc_span *table, uint64_t n, brc_error *err)
{
    for (uint64_t i = 0; i < n; i++)
        BRC_TRY(brc_buf_append(out, table[i].data, table[i].len, err));
    return BRC_OK;
}
