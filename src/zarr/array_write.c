/* Writing arrays: the public functions. */
#include <stdlib.h>

#include "../base/alloc.h"
#include "../nd/buffer.h"
#include "bulk_write.h"
#include "region_write.h"
#include "span_table.h"

static int describe_fixed(brc_region_write *rw, const brc_io *io, const brc_memory *m,
                          brc_error *err)
{
    const brc_array *a = rw->a;
    int rc = brc_memory_fits(io->buffer, a->meta.ndim, rw->r.sel.count, a->meta.type->item_size,
                             BRC_MEMORY_IN, err);
    if (rc < 0)
        brc_context(err, "%s", a->path);
    rw->src = m->origin;
    return rc;
}

/* Packed elements; with zero strides (a fill) there is one. */
static int describe_variable(brc_region_write *rw, const brc_memory *m, brc_error *err)
{
    const brc_array *a = rw->a;
    for (int i = 0; m->strides != NULL && i < a->meta.ndim; i++)
        if (m->strides[i] != 0)
            return brc_fail(err, BRC_EINVAL, "%s: elements of variable length have no strides",
                            a->path);
    rw->packed = (brc_span){m->origin, m->len};
    if (rw->r.nchunks > 0 || m->strides != NULL)
        return BRC_OK;
    int rc = brc_elements_find(NULL, 0, rw->packed, err);
    if (rc < 0)
        brc_context(err, "%s", a->path);
    return rc;
}

static int describe_write(brc_region_write *rw, const brc_io *io, brc_error *err)
{
    brc_array *a = rw->a = io->array;
    brc_memory m;
    BRC_TRY(brc_memory_of(&m, io->buffer, BRC_MEMORY_IN, err));
    BRC_TRY(brc_array_can_write(a, err));
    BRC_TRY(brc_region_init(&rw->r, a, io->sel, NULL, m.strides, err));
    return brc_meta_is_variable(&a->meta) ? describe_variable(rw, &m, err)
                                          : describe_fixed(rw, io, &m, err);
}

/* All arrays are begun before any is described: beginning one may bring another up to date. */
static int write_ios(brc_region_write *writes, const brc_io *io, size_t n, brc_error *err)
{
    size_t begun = 0;
    int rc = BRC_OK;
    while (begun < n && rc == BRC_OK) {
        rc = brc_array_begin(brc_io_at(io, begun)->array, err);
        begun += rc == BRC_OK;
    }
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        rc = describe_write(&writes[i], brc_io_at(io, i), err);
    if (rc == BRC_OK)
        rc = brc_regions_write(writes, n, err);
    while (begun > 0)
        rc = brc_array_end(brc_io_at(io, --begun)->array, rc, err);
    return rc;
}

/* Elements that are written in several transactions; a fill has one, and may still have many
 * chunks. */
#define BULK_BYTES ((uint64_t)16 << 20)

/* Of one session. What cannot be described is no bulk write: it fails soon. */
static int is_bulk(const brc_io *io, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        const brc_io *one = brc_io_at(io, i);
        const brc_array *a = one->array;
        uint64_t bytes;
        brc_sel all = BRC_SEL_INIT;
        if (a->session != io->array->session || a->meta.type == NULL)
            return 0;
        brc_sel_all(&all, a);
        const brc_sel *sel = one->sel != NULL ? one->sel : &all;
        if (sel->ndim != a->meta.ndim ||
            !brc_shape_bytes(sel->ndim, sel->count, brc_array_unit(a), &bytes) ||
            !brc_add_u64(sum, bytes, &sum))
            return 0;
    }
    return sum > BULK_BYTES;
}

static int write_many(const brc_io *io, size_t n, brc_error *err)
{
    void *p = NULL;
    brc_region_write one = {0};
    if (n > 1)
        BRC_TRY(brc_new_array(&p, n, sizeof(brc_region_write), err));
    int rc = write_ios(n > 1 ? p : &one, io, n, err);
    free(p);
    return rc;
}

int brc_write_batch(const brc_io *io, size_t n, brc_error *err)
{
    if (n == 0)
        return BRC_OK;
    BRC_TRY(brc_io_check(io, n, err));
    if (!is_bulk(io, n))
        return write_many(io, n, err);
    BRC_TRY(brc_bulk_start(io->array->session, err));
    return brc_array_bulk_end(io->array, write_many(io, n, err), err);
}

int brc_array_write(brc_array *a, const brc_sel *sel, const void *src, size_t len, brc_error *err)
{
    brc_buffer buffer = {.size = sizeof(buffer), .data = (void *)(uintptr_t)src, .len = len};
    brc_io io = {sizeof(io), a, sel, &buffer};
    return brc_write_batch(&io, 1, err);
}

int brc_array_fill(brc_array *a, const brc_sel *sel, const void *element, brc_error *err)
{
    static const int64_t still[BRC_MAX_NDIM];
    size_t len = a->info.item_size; /* 0: the element carries its own length */
    if (len == 0)
        len = 4 + (size_t)brc_get_u32le(element);
    brc_buffer buffer = {.size = sizeof(buffer), .data = (void *)(uintptr_t)element, .len = len,
                         .strides = still};
    brc_io io = {sizeof(io), a, sel, &buffer};
    return brc_write_batch(&io, 1, err);
}
