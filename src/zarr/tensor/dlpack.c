/*
 * Tensors as DLPack has them, out and in.
 *
 * Invariant: what is given out keeps a reference to its tensor, and nothing else of ours, so its
 * deleter may run on any thread and at any time. What comes in is checked before anything of it is
 * used: its strides may not reach further than memory does. Its pointer has to be believed.
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/sized.h"
#include "dlpack_abi.h"
#include "tensor.h"

/* ---- out -------------------------------- */

/* One that was given out, with its numbers. */
typedef struct given_tensor {
    union {
        struct brc_dl_managed now;
        struct brc_dl_managed_old old;
    } managed;
    brc_tensor *tensor;
    int64_t shape[BRC_MAX_NDIM], strides[BRC_MAX_NDIM];
} given_tensor;

static void given_free(given_tensor *g)
{
    brc_tensor_free(g->tensor);
    free(g);
}

static void given_delete(struct brc_dl_managed *self)
{
    if (self != NULL)
        given_free(self->owner);
}

static void given_delete_old(struct brc_dl_managed_old *self)
{
    if (self != NULL)
        given_free(self->owner);
}

/* Fails if an old DLPack tensor cannot say what this one is. */
static int can_give(const brc_tensor *t, uint32_t flags, brc_error *err)
{
    if (t->type.bits == 0)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "DLPack has no name for the data type %s: read the elements as bytes",
                        t->dtype[0] != '\0' ? t->dtype : "of this tensor");
    if ((flags & BRC_DLPACK_OLD) && (t->info.flags & BRC_TENSOR_READONLY))
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "a DLPack tensor of before version 1 cannot say that it is read-only: ask "
                        "for a versioned one");
    return BRC_OK;
}

static void describe_given(struct brc_dl_tensor *out, given_tensor *g, const brc_tensor *t)
{
    const int64_t item = t->info.item_size;
    for (int i = 0; i < t->info.ndim; i++) {
        g->shape[i] = (int64_t)t->shape[i];
        g->strides[i] = t->strides[i] / item;
    }
    out->data = t->info.bytes > 0 ? t->info.data : NULL;
    out->device.type = t->info.device == BRC_MEMORY_HOST ? 1 : (int32_t)t->info.device;
    out->device.id = (int32_t)t->info.device_id;
    out->ndim = t->info.ndim;
    out->dtype.code = t->type.code;
    out->dtype.bits = t->type.bits;
    out->dtype.lanes = 1;
    out->shape = g->shape;
    out->strides = g->strides;
    out->byte_offset = 0;
}

int brc_tensor_to_dlpack(void **out, brc_tensor *t, uint32_t flags, brc_error *err)
{
    void *p;
    *out = NULL;
    BRC_TRY(brc_flags_check(flags, BRC_DLPACK_OLD, "brc_tensor_to_dlpack()", err));
    BRC_TRY(can_give(t, flags, err));
    BRC_TRY(brc_new(&p, sizeof(given_tensor), err));
    given_tensor *g = p;
    g->tensor = brc_tensor_ref(t);
    if (flags & BRC_DLPACK_OLD) {
        struct brc_dl_managed_old *m = &g->managed.old;
        describe_given(&m->tensor, g, t);
        m->owner = g;
        m->deleter = given_delete_old;
        *out = m;
    } else {
        struct brc_dl_managed *m = &g->managed.now;
        describe_given(&m->tensor, g, t);
        m->version.major = 1;
        m->owner = g;
        m->deleter = given_delete;
        m->flags = t->info.flags & BRC_TENSOR_READONLY ? BRC_DL_READONLY : 0;
        *out = m;
    }
    return BRC_OK;
}

/* ---- in -------------------------------- */

static void drop_taken(void *managed)
{
    struct brc_dl_managed *m = managed;
    if (m->deleter != NULL)
        m->deleter(m);
}

static void drop_taken_old(void *managed)
{
    struct brc_dl_managed_old *m = managed;
    if (m->deleter != NULL)
        m->deleter(m);
}

/* Checks the type: elements of whole bytes. */
static int taken_item(const struct brc_dl_tensor *d, size_t *item, brc_error *err)
{
    if (d->dtype.lanes != 1)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "the DLPack tensor has vectors of %u numbers as elements: give it another "
                        "axis instead",
                        (unsigned)d->dtype.lanes);
    if (d->dtype.bits == 0 || d->dtype.bits % 8 != 0)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "the DLPack tensor has elements of %u bits, which are not whole bytes",
                        (unsigned)d->dtype.bits);
    *item = d->dtype.bits / 8;
    return BRC_OK;
}

static int taken_shape(const struct brc_dl_tensor *d, uint64_t *shape, brc_error *err)
{
    if (d->ndim < 0 || d->ndim > BRC_MAX_NDIM)
        return brc_fail(err, BRC_EINVAL, "the DLPack tensor has %d axes; at most %d are possible",
                        (int)d->ndim, BRC_MAX_NDIM);
    if (d->ndim > 0 && d->shape == NULL)
        return brc_fail(err, BRC_EINVAL, "the DLPack tensor has no shape");
    for (int i = 0; i < d->ndim; i++) {
        if (d->shape[i] < 0)
            return brc_fail(err, BRC_EINVAL, "the DLPack tensor has %lld elements along axis %d",
                            (long long)d->shape[i], i);
        shape[i] = (uint64_t)d->shape[i];
    }
    return BRC_OK;
}

static int taken_strides(const struct brc_dl_tensor *d, brc_tensor *t, size_t item, brc_error *err)
{
    size_t before, behind;
    for (int i = 0; i < d->ndim && d->strides != NULL; i++)
        if (__builtin_mul_overflow(d->strides[i], (int64_t)item, &t->strides[i]))
            return brc_fail(err, BRC_EINVAL,
                            "the strides of the DLPack tensor are larger than memory");
    BRC_TRY(brc_tensor_reach(t, &before, &behind, err));
    if (before + behind == 0)
        return BRC_OK;
    const uint64_t at = (uint64_t)(uintptr_t)d->data;
    uint64_t first, end;
    if (d->data == NULL || !brc_add_u64(at, d->byte_offset, &first) || first < before ||
        !brc_add_u64(first, behind, &end))
        return brc_fail(err, BRC_EINVAL, "the DLPack tensor does not lie in memory");
    t->info.data = (uint8_t *)d->data + d->byte_offset;
    return BRC_OK;
}

static int take_tensor(brc_tensor **out, const struct brc_dl_tensor *d, uint64_t flags,
                       brc_error *err)
{
    uint64_t shape[BRC_MAX_NDIM] = {0};
    size_t item = 0;
    BRC_TRY(taken_item(d, &item, err));
    BRC_TRY(taken_shape(d, shape, err));
    BRC_TRY(brc_tensor_new(out, NULL, d->ndim, shape, item, err));
    brc_tensor *t = *out;
    t->type = (brc_dl_type){d->dtype.code, d->dtype.bits};
    t->info.device = d->device.type == 1 ? BRC_MEMORY_HOST : (uint32_t)d->device.type;
    t->info.device_id = (uint32_t)d->device.id;
    const uint32_t device = t->info.device;
    if (device == BRC_MEMORY_HOST || device == BRC_MEMORY_LOCKED || device == BRC_MEMORY_MANAGED)
        t->info.flags |= BRC_TENSOR_HOST;
    if (flags & BRC_DL_READONLY)
        t->info.flags |= BRC_TENSOR_READONLY;
    int rc = taken_strides(d, t, item, err);
    if (rc == BRC_OK)
        return BRC_OK;
    brc_tensor_free(t);
    *out = NULL;
    return rc;
}

/* A major version that is newer may have laid out everything but the first three fields
 * otherwise. */
int brc_tensor_of_dlpack(brc_tensor **out, void *managed, uint32_t flags, brc_error *err)
{
    *out = NULL;
    BRC_TRY(brc_flags_check(flags, BRC_DLPACK_OLD, "brc_tensor_of_dlpack()", err));
    if (managed == NULL)
        return brc_fail(err, BRC_EINVAL, "there is no DLPack tensor");
    if (flags & BRC_DLPACK_OLD) {
        const struct brc_dl_managed_old *m = managed;
        BRC_TRY(take_tensor(out, &m->tensor, 0, err));
        (*out)->drop = drop_taken_old;
    } else {
        const struct brc_dl_managed *m = managed;
        if (m->version.major != 1)
            return brc_fail(err, BRC_EUNSUPPORTED,
                            "the DLPack tensor is of version %u.%u, and this breccia reads "
                            "version 1",
                            (unsigned)m->version.major, (unsigned)m->version.minor);
        BRC_TRY(take_tensor(out, &m->tensor, m->flags, err));
        (*out)->drop = drop_taken;
    }
    (*out)->managed = managed;
    return BRC_OK;
}
