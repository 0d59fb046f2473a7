#include "element_span.h"

#include "../../base/buf.h"

/* ==== span table ================================ */

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

/* ==== element chunk ================================ */

static int lay_over_old(brc_span *table, uint64_t n, brc_span old, brc_error *err)
{
    brc_element_cursor cursor = {old, 0, 0};
    brc_span element;
    for (uint64_t i = 0; i < n; i++) {
        BRC_TRY(brc_element_next(&cursor, &element, err));
        if (table[i].data == NULL)
            table[i] = element;
    }
    return brc_elements_end(&cursor, err);
}

int brc_gather_elements(brc_write_item *item, brc_span *table, const brc_meta *m,
                        brc_scratch *scratch, brc_error *err)
{
    const uint64_t n = item->elements;
    const brc_span fill = {m->fill.data, m->fill.len};
    brc_buf old = BRC_BUF_INIT;
    int rc;
    if (item->old.found) {
        BRC_GO(brc_write_old(item, scratch, &old, err));
        if (lay_over_old(table, n, (brc_span){old.data, old.len}, err) < 0) {
            rc = brc_fail(err, BRC_ECORRUPT, "its elements are damaged");
            goto done;
        }
    }
    for (uint64_t i = 0; i < n; i++)
        if (table[i].data == NULL)
            table[i] = fill;
    item->own.limit = BRC_MAX_CHUNK_BYTES;
    rc = brc_elements_pack(&item->own, table, n, err);
    item->own.limit = 0;
    item->data = item->own.data;
    item->len = item->own.len;
done:
    brc_buf_dispose(&old);
    return rc;
}
