#include "tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/sized.h"
#include "dlpack_abi.h"

/* ---- types in DLPack -------------------------------- */

/* Types whose name says what their class and size do not. */
static const struct {
    const char *name;
    brc_dl_type type;
} named_types[] = {
    {"bfloat16", {BRC_DL_BFLOAT, 16}},
    {"float8_e3m4", {BRC_DL_FLOAT8_E3M4, 8}},
    {"float8_e4m3", {BRC_DL_FLOAT8_E4M3, 8}},
    {"float8_e4m3b11fnuz", {BRC_DL_FLOAT8_E4M3B11FNUZ, 8}},
    {"float8_e4m3fn", {BRC_DL_FLOAT8_E4M3FN, 8}},
    {"float8_e4m3fnuz", {BRC_DL_FLOAT8_E4M3FNUZ, 8}},
    {"float8_e5m2", {BRC_DL_FLOAT8_E5M2, 8}},
    {"float8_e5m2fnuz", {BRC_DL_FLOAT8_E5M2FNUZ, 8}},
    {"float8_e8m0fnu", {BRC_DL_FLOAT8_E8M0FNU, 8}},
};

/* Returns the type's name in DLPack, or bits 0. */
static brc_dl_type dl_type_of(const brc_dtype *type)
{
    const size_t bits = 8 * type->item_size;
    const brc_dl_type none = {0, 0};
    for (size_t i = 0; i < sizeof(named_types) / sizeof(named_types[0]); i++)
        if (strcmp(type->name, named_types[i].name) == 0)
            return named_types[i].type;
    if (type->item_size == 0 || bits > 128)
        return none;
    if (type->klass == BRC_CLASS_BOOL)
        return (brc_dl_type){BRC_DL_BOOL, 8};
    if (type->npy == NULL || type->bits != bits) /* floats and complex numbers of other formats */
        return none;
    switch (type->klass) {
    case BRC_CLASS_INT:
        return (brc_dl_type){BRC_DL_INT, (uint8_t)bits};
    case BRC_CLASS_UINT:
        return (brc_dl_type){BRC_DL_UINT, (uint8_t)bits};
    case BRC_CLASS_FLOAT:
        return (brc_dl_type){BRC_DL_FLOAT, (uint8_t)bits};
    case BRC_CLASS_COMPLEX:
        return (brc_dl_type){BRC_DL_COMPLEX, (uint8_t)bits};
    default:
        return none;
    }
}

/* ---- life -------------------------------- */

/* Returns the structure of an earlier tensor of this prototype, or NULL: repeated reads allocate
 * nothing. */
static void *spare_take(brc_prototype *by)
{
    void *found = NULL;
    if (by == NULL)
        return NULL;
    brc_lock_enter(by->lock);
    if (by->nspare > 0)
        found = by->spare[--by->nspare];
    brc_lock_leave(by->lock);
    return found;
}

static void spare_give(brc_prototype *by, brc_tensor *t)
{
    brc_lock_enter(by->lock);
    const int keeps = by->nspare < BRC_SPARE_MAX;
    if (keeps)
        by->spare[by->nspare++] = t;
    brc_lock_leave(by->lock);
    if (!keeps)
        free(t);
}

int brc_tensor_new(brc_tensor **out, brc_prototype *by, int ndim, const uint64_t *shape,
                   size_t item, brc_error *err)
{
    uint64_t bytes;
    size_t len;
    *out = NULL;
    if (!brc_shape_bytes(ndim, shape, item, &bytes) || !brc_to_size(bytes, &len) ||
        len > INT64_MAX || item > UINT32_MAX)
        return brc_fail(err, BRC_ELIMIT, "the selection is too large for memory");
    void *p = spare_take(by);
    if (p == NULL)
        BRC_TRY(brc_new(&p, sizeof(brc_tensor), err));
    brc_tensor *t = p;
    memset(t, 0, sizeof(*t));
    atomic_init(&t->refs, 1);
    t->by = by;
    if (by != NULL)
        atomic_fetch_add(&by->refs, 1);
    memcpy(t->shape, shape, (size_t)ndim * sizeof(*shape));
    brc_strides_packed(ndim, shape, item, t->strides);
    t->info = (brc_tensor_info){.size = sizeof(t->info),
                                .bytes = bytes,
                                .ndim = ndim,
                                .shape = t->shape,
                                .strides = t->strides,
                                .item_size = (uint32_t)item,
                                .dtype = t->dtype,
                                .prototype = by != NULL ? by->table.name : ""};
    *out = t;
    return BRC_OK;
}

brc_tensor *brc_tensor_ref(brc_tensor *t)
{
    atomic_fetch_add(&t->refs, 1);
    return t;
}

void brc_tensor_free(brc_tensor *t)
{
    if (t == NULL || atomic_fetch_sub(&t->refs, 1) != 1)
        return;
    brc_prototype *by = t->by;
    if (t->drop != NULL)
        t->drop(t->managed);
    if (by != NULL && t->block.size != 0)
        brc_prototype_free(by, &t->block);
    if (by == NULL) {
        free(t);
        return;
    }
    spare_give(by, t);
    brc_prototype_release(by);
}

const brc_tensor_info *brc_tensor_describe(const brc_tensor *t)
{
    return &t->info;
}

static void tensor_take_block(brc_tensor *t, const brc_block *block)
{
    t->block = *block;
    t->info.data = block->data;
    t->info.device = block->device;
    t->info.device_id = block->device_id;
    t->info.flags = (block->flags & BRC_BLOCK_HOST ? BRC_TENSOR_HOST : 0) |
                    (block->flags & BRC_BLOCK_SPILLED ? BRC_TENSOR_SPILLED : 0);
}

/* ---- the default of an array -------------------------------- */

int brc_array_set_prototype(brc_array *a, const char *name, brc_error *err)
{
    char *copy = NULL;
    if (name != NULL) {
        BRC_TRY(brc_prototype_check(a->session->repo->registry, name, err));
        BRC_TRY(brc_dup(&copy, name, err));
    }
    free(a->prototype);
    a->prototype = copy;
    return BRC_OK;
}

static const char *prototype_of_call(const brc_array *a, const brc_tensor_opts *opts)
{
    return opts->prototype != NULL ? opts->prototype
           : a->prototype != NULL  ? a->prototype
                                   : a->session->repo->prototype;
}

/* ---- what is selected -------------------------------- */

static int tensor_opts(brc_tensor_opts *out, const brc_tensor_opts *given, brc_error *err)
{
    BRC_TRY(brc_sized_in(out, sizeof(*out), sizeof(*out), given, "brc_tensor_opts", err));
    BRC_TRY(brc_flags_check(out->flags, BRC_READ_SPILL, "brc_tensor_opts", err));
    BRC_TRY(brc_stats_check(out->stats, err));
    return out->sel != NULL && out->at != NULL
               ? brc_fail(err, BRC_EINVAL, "brc_tensor_opts has a box or positions, not both")
               : BRC_OK;
}

/* The axes of a selection, and of the tensor: without those that it drops. */
typedef struct tensor_form {
    int axes, ndim;
    uint64_t counts[BRC_MAX_NDIM]; /* along each axis of the selection            */
    int axis[BRC_MAX_NDIM];        /* of the tensor's axes: those of the selection */
    uint64_t shape[BRC_MAX_NDIM];
} tensor_form;

static void form_of_sel(tensor_form *f, const brc_sel *sel)
{
    f->axes = sel->ndim;
    for (int i = 0; i < sel->ndim; i++) {
        f->counts[i] = sel->count[i];
        if ((sel->drop >> i & 1) != 0)
            continue;
        f->axis[f->ndim] = i;
        f->shape[f->ndim++] = sel->count[i];
    }
}

/* Computes the form; brc_read() and brc_write() check the selection itself. */
static int tensor_form_of(tensor_form *f, const brc_array *a, const brc_tensor_opts *opts,
                          brc_error *err)
{
    brc_sel sel;
    brc_at at;
    *f = (tensor_form){.axes = 0};
    if (opts->at == NULL) {
        if (opts->sel != NULL)
            BRC_TRY(brc_sized_in(&sel, sizeof(sel), sizeof(sel), opts->sel, "brc_sel", err));
        else
            brc_sel_of_shape(&sel, a->meta.ndim, a->meta.shape);
        BRC_TRY(brc_sel_check(&sel, a->meta.ndim, a->meta.shape, err));
        form_of_sel(f, &sel);
        return BRC_OK;
    }
    BRC_TRY(brc_sized_in(&at, sizeof(at), sizeof(at), opts->at, "brc_at", err));
    if (at.ndim != a->meta.ndim)
        return brc_fail(err, BRC_EINVAL, "%s has %d axes, and the positions have %d", a->path,
                        a->meta.ndim, at.ndim);
    brc_sel_of_shape(&sel, at.ndim, at.count);
    if (at.flags & BRC_AT_POINTS)
        sel.ndim = 1;
    form_of_sel(f, &sel);
    return BRC_OK;
}

static int tensor_can_hold(const brc_array *a, brc_error *err)
{
    return !brc_meta_is_variable(&a->meta)
               ? BRC_OK
               : brc_fail(err, BRC_EINVAL,
                          "%s has elements of variable length, which a tensor cannot hold: use "
                          "brc_arrow_read()",
                          a->path);
}

/* ---- reading -------------------------------- */

static int tensor_fill(brc_tensor *t, brc_array *a, const brc_tensor_opts *opts, brc_error *err)
{
    const brc_buffer buffer = {.size = sizeof(buffer),
                               .data = t->info.data,
                               .len = (size_t)t->info.bytes,
                               .device = t->info.flags & BRC_TENSOR_HOST ? BRC_MEMORY_HOST
                                                                         : t->info.device,
                               .device_id = t->info.device_id,
                               .prototype = t->info.prototype,
                               .stream = opts->stream};
    const brc_io io = {.size = sizeof(io), .array = a, .sel = opts->sel, .buffer = &buffer,
                       .at = opts->at, .stats = opts->stats};
    return brc_read(&io, 1, err);
}

static int tensor_read_with(brc_tensor **out, brc_array *a, const brc_tensor_opts *opts,
                            brc_prototype *by, uint32_t device_id, brc_error *err)
{
    tensor_form form;
    brc_tensor *t = NULL;
    brc_block block;
    const brc_dtype *type = a->meta.type;
    int rc;
    BRC_TRY(tensor_can_hold(a, err));
    BRC_TRY(tensor_form_of(&form, a, opts, err));
    BRC_TRY(brc_tensor_new(&t, by, form.ndim, form.shape, type->item_size, err));
    snprintf(t->dtype, sizeof(t->dtype), "%s", type->name);
    t->type = dl_type_of(type);
    BRC_GO(brc_prototype_alloc(by, &block, (size_t)t->info.bytes, device_id,
                               opts->flags & BRC_READ_SPILL ? BRC_ALLOC_SPILL : 0, opts->stream,
                               opts->stats, err));
    tensor_take_block(t, &block);
    BRC_GO(tensor_fill(t, a, opts, err));
    *out = t;
    return BRC_OK;
done:
    brc_tensor_free(t);
    return rc;
}

/* The shape stays as it is from the allocation on, because both are in one read. */
int brc_tensor_read(brc_tensor **out, brc_array *a, const brc_tensor_opts *given, brc_error *err)
{
    brc_tensor_opts opts;
    brc_prototype *by;
    uint32_t device_id;
    *out = NULL;
    BRC_TRY(tensor_opts(&opts, given, err));
    BRC_TRY(brc_prototype_use(&by, &device_id, a->session->repo->registry,
                              prototype_of_call(a, &opts), err));
    int rc = brc_array_begin_read(a, err);
    if (rc == BRC_OK) {
        rc = tensor_read_with(out, a, &opts, by, device_id, err);
        brc_array_end_read(a);
    }
    brc_prototype_release(by);
    return rc;
}

/* ---- writing -------------------------------- */

int brc_tensor_reach(const brc_tensor *t, size_t *before, size_t *behind, brc_error *err)
{
    uint64_t low = 0, high = t->info.item_size;
    int fits = 1;
    *before = *behind = 0;
    for (int i = 0; i < t->info.ndim; i++)
        if (t->shape[i] == 0)
            return BRC_OK;
    for (int i = 0; i < t->info.ndim && fits; i++) {
        const int64_t stride = t->strides[i];
        const uint64_t step = stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
        uint64_t span;
        uint64_t *end = stride < 0 ? &low : &high;
        fits = brc_mul_u64(t->shape[i] - 1, step, &span) && brc_add_u64(*end, span, end);
    }
    if (!fits || low > INT64_MAX || high > INT64_MAX || !brc_to_size(low, before) ||
        !brc_to_size(high, behind))
        return brc_fail(err, BRC_EINVAL, "the strides of the tensor are larger than memory");
    return BRC_OK;
}

static int tensor_has_type(const brc_tensor *t, const brc_array *a, brc_error *err)
{
    const brc_dtype *type = a->meta.type;
    const brc_dl_type mine = dl_type_of(type);
    BRC_TRY(tensor_can_hold(a, err));
    if (t->info.item_size == type->item_size &&
        (t->dtype[0] != '\0' ? strcmp(t->dtype, type->name) == 0
                             : mine.bits != 0 && mine.code == t->type.code))
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL,
                    "%s has elements of the type %s, and the tensor has others: convert it first",
                    a->path, type->name);
}

static int tensor_has_form(const brc_tensor *t, const tensor_form *f, const brc_array *a,
                           brc_error *err)
{
    int same = t->info.ndim == f->ndim;
    for (int i = 0; i < f->ndim && same; i++)
        same = t->shape[i] == f->shape[i];
    return same ? BRC_OK
                : brc_fail(err, BRC_EINVAL,
                           "%s: the tensor does not have the shape of the selection", a->path);
}

static int tensor_write_now(brc_array *a, const brc_tensor *t, const brc_tensor_opts *opts,
                            brc_error *err)
{
    tensor_form form;
    size_t before, behind;
    int64_t strides[BRC_MAX_NDIM] = {0};
    BRC_TRY(tensor_has_type(t, a, err));
    BRC_TRY(tensor_form_of(&form, a, opts, err));
    BRC_TRY(tensor_has_form(t, &form, a, err));
    BRC_TRY(brc_tensor_reach(t, &before, &behind, err));
    for (int i = 0; i < form.ndim; i++)
        strides[form.axis[i]] = t->strides[i];
    const brc_buffer buffer = {.size = sizeof(buffer),
                               .data = before + behind > 0 ? (uint8_t *)t->info.data - before
                                                           : NULL,
                               .len = before + behind,
                               .offset = before,
                               .strides = strides,
                               .device = t->info.flags & BRC_TENSOR_HOST ? BRC_MEMORY_HOST
                                                                         : t->info.device,
                               .device_id = t->info.device_id,
                               .prototype = t->by != NULL      ? t->info.prototype
                                            : opts->prototype != NULL ? opts->prototype
                                                                      : NULL,
                               .stream = opts->stream};
    const brc_io io = {.size = sizeof(io), .array = a, .sel = opts->sel, .buffer = &buffer,
                       .at = opts->at, .stats = opts->stats};
    return brc_write(&io, 1, err);
}

/* brc_write() describes the write anew if others have changed the array since the look here, and
 * then refuses elements that do not fit any more. */
int brc_tensor_write(brc_array *a, const brc_tensor *t, const brc_tensor_opts *given,
                     brc_error *err)
{
    brc_tensor_opts opts;
    BRC_TRY(tensor_opts(&opts, given, err));
    BRC_TRY(brc_array_begin_read(a, err));
    brc_array_end_read(a);
    return tensor_write_now(a, t, &opts, err);
}

/* ---- to the host -------------------------------- */

static int copy_there(brc_tensor *to, const brc_tensor *from, void *stream,
                      brc_buffer_stats *stats, brc_error *err)
{
    size_t before, behind;
    BRC_TRY(brc_tensor_reach(from, &before, &behind, err));
    if (before + behind == 0)
        return BRC_OK;
    const brc_device device = {.by = from->by,
                               .block = {.size = sizeof(brc_block),
                                         .data = (uint8_t *)from->info.data - before,
                                         .len = before + behind,
                                         .device = from->info.device,
                                         .device_id = from->info.device_id,
                                         .own = from->block.own},
                               .origin = before,
                               .stream = stream,
                               .stats = stats};
    return brc_device_get(&device, from->info.ndim, from->shape, from->info.item_size, 0,
                          from->strides, to->info.data, to->strides, err);
}

int brc_tensor_to_host(brc_tensor **out, brc_tensor *t, void *stream, brc_buffer_stats *stats,
                       brc_error *err)
{
    void *memory = NULL;
    brc_tensor *made = NULL;
    int rc;
    *out = NULL;
    if (t->info.flags & BRC_TENSOR_HOST) {
        *out = brc_tensor_ref(t);
        return BRC_OK;
    }
    if (t->by == NULL)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "memory of others on a device is not copied: whoever made it can do so");
    BRC_TRY(brc_stats_check(stats, err));
    BRC_TRY(brc_tensor_new(&made, NULL, t->info.ndim, t->shape, t->info.item_size, err));
    memcpy(made->dtype, t->dtype, sizeof(t->dtype));
    made->type = t->type;
    made->info.flags = BRC_TENSOR_HOST;
    BRC_GO(brc_new_big(&memory, (size_t)t->info.bytes, err));
    made->info.data = made->managed = memory;
    made->drop = free;
    BRC_GO(copy_there(made, t, stream, stats, err));
    *out = made;
    return BRC_OK;
done:
    brc_tensor_free(made);
    return rc;
}
