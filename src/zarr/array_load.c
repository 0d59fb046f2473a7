/* The elements of a selection from a program's own source, however many they are. What fits
 * into a slab is read before the file is locked; the rest comes while others are encoded. */
#include <string.h>

#include "../nd/cut.h"
#include "bulk_write.h"
#include "region.h"
#include "transfer.h"

typedef struct element_supply {
    brc_array *a;
    int (*get)(void *ctx, void *dst, size_t len, size_t *got);
    void *ctx;
    brc_buf ahead; /* read before the file was locked ...    */
    size_t at;     /* ... and so far it has been handed on   */
    uint64_t taken, want; /* bytes from the source; want 0: not known */
} element_supply;

static int take_some(element_supply *s, void *dst, size_t len, size_t *got, brc_error *err)
{
    *got = 0;
    BRC_TRY(brc_store_rest(brc_array_store(s->a), 1, err)); /* it may keep us waiting */
    if (s->get(s->ctx, dst, len, got) != 0)
        return brc_fail(err, BRC_EINTERRUPT, "stopped on request");
    if (*got > len)
        return brc_fail(err, BRC_EINVAL, "%s: the source gave more bytes than were asked for",
                        s->a->path);
    s->taken += *got;
    return BRC_OK;
}

static int take_all(void *ctx, uint8_t *dst, size_t len, brc_error *err)
{
    element_supply *s = ctx;
    size_t got;
    BRC_TRY(take_some(s, dst, len, &got, err));
    if (got == len)
        return BRC_OK;
    if (s->want == 0)
        return brc_fail(err, BRC_EINVAL, "%s: the source ends after %llu bytes, in the middle of "
                                         "the selection",
                        s->a->path, (unsigned long long)s->taken);
    return brc_fail(err, BRC_EINVAL, "%s: the source has %llu bytes, but the selection takes %llu",
                    s->a->path, (unsigned long long)s->taken, (unsigned long long)s->want);
}

/* Nothing may follow the last element. */
static int check_source_end(element_supply *s, brc_error *err)
{
    const uint64_t before = s->taken;
    uint8_t more;
    size_t got;
    BRC_TRY(take_some(s, &more, 1, &got, err));
    if (got == 0)
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL,
                    "%s: the source goes on behind the %llu bytes of the selection", s->a->path,
                    (unsigned long long)before);
}

/* What was read ahead comes first. */
static int supply_bytes(void *ctx, uint8_t *dst, size_t len, brc_error *err)
{
    element_supply *s = ctx;
    const size_t left = s->ahead.len - s->at, n = left < len ? left : len;
    if (n > 0)
        memcpy(dst, s->ahead.data + s->at, n);
    s->at += n;
    return n < len ? take_all(s, dst + n, len - n, err) : BRC_OK;
}

static int load_rest(element_supply *s, const brc_sel *sel, brc_error *err)
{
    brc_element_source source = {s, 0, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, supply_bytes};
    BRC_TRY(brc_bulk_start(s->a->session, err));
    int rc = brc_array_write_stream(s->a, sel, &source, err);
    if (rc == BRC_OK)
        rc = check_source_end(s, err);
    return brc_array_bulk_end(s->a, rc, err);
}

static int load_fixed(element_supply *s, const brc_sel *sel, brc_error *err)
{
    if (!brc_shape_bytes(sel->ndim, sel->count, s->a->meta.type->item_size, &s->want))
        return brc_fail(err, BRC_ELIMIT, "%s: the selection has more than 2^64 bytes", s->a->path);
    if (s->want > BRC_SLAB_BYTES)
        return load_rest(s, sel, err);
    const size_t len = (size_t)s->want;
    BRC_TRY(brc_buf_reserve(&s->ahead, len + 1, err));
    if (len > 0)
        BRC_TRY(take_all(s, s->ahead.data, len, err));
    BRC_TRY(check_source_end(s, err));
    return brc_array_write(s->a, sel, s->ahead.data, len, err);
}

static int load_variable(element_supply *s, const brc_sel *sel, brc_error *err)
{
    const brc_element_source source = {.ctx = s, .read = take_all};
    const uint64_t count = brc_sel_count(sel);
    uint64_t n = 0;
    for (; n < count && s->ahead.len < BRC_SLAB_BYTES; n++)
        BRC_TRY(brc_element_take(&s->ahead, &source, err));
    if (n < count)
        return load_rest(s, sel, err);
    BRC_TRY(check_source_end(s, err));
    return brc_array_write(s->a, sel, s->ahead.data, s->ahead.len, err);
}

int brc_array_load_stream(brc_array *a, const brc_sel *sel,
                          int (*get)(void *ctx, void *dst, size_t len, size_t *got), void *ctx,
                          brc_error *err)
{
    element_supply s = {.a = a, .get = get, .ctx = ctx};
    brc_region r;
    if (a == NULL || get == NULL)
        return brc_fail(err, BRC_EINVAL, "an array and a function are needed");
    BRC_TRY(brc_array_begin_read(a, err));
    int rc = brc_array_can_write(a, err);
    if (rc == BRC_OK)
        rc = brc_region_init(&r, a, sel, NULL, NULL, err);
    brc_array_end_read(a);
    if (rc == BRC_OK)
        rc = brc_meta_is_variable(&a->meta) ? load_variable(&s, &r.sel, err)
                                            : load_fixed(&s, &r.sel, err);
    brc_buf_dispose(&s.ahead);
    return rc;
}
