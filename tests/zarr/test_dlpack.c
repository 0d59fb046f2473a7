/* Tensors as DLPack has them: line M8 of the founding documents. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/zarr/tensor/dlpack_abi.h"
#include "../kit/memory_kit.h"
#include "../kit/suite.h"

TEST_SUITE(dlpack);

enum { ROWS = 12, COLUMNS = 7 };
static const uint64_t shape[2] = {ROWS, COLUMNS}, chunk[2] = {5, 7};

static memory_kit k;
static brc_array *a;
static int32_t numbers[ROWS][COLUMNS];

static void start(void)
{
    memory_start(&k, 0, NULL);
    a = scenario_array(&k.t, "/a", "int32", 2, shape, chunk, NULL, NULL);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        numbers[i / COLUMNS][i % COLUMNS] = i;
    OK(&k.t, brc_array_write(a, NULL, numbers, sizeof(numbers), &k.t.err));
}

static void stop(void)
{
    brc_array_free(a);
    memory_stop(&k);
}

CASE("out", .setup = start, .teardown = stop);

LOOP(M8_tensors_go_out, 0, MEMORY_KINDS)
{
    const memory_kind *kind = &memory_kinds[_i];
    brc_tensor *t = memory_read(&k, a, "[1:9:2]", kind->name, NULL);
    void *given, *old;
    OK(&k.t, brc_tensor_to_dlpack(&given, t, 0, &k.t.err));
    OK(&k.t, brc_tensor_to_dlpack(&old, t, BRC_DLPACK_OLD, &k.t.err));
    struct brc_dl_managed *m = given;
    struct brc_dl_managed_old *o = old;
    ck_assert(m->version.major == 1 && m->version.minor == 0 && m->flags == 0);
    for (int i = 0; i < 2; i++) {
        const struct brc_dl_tensor *d = i == 0 ? &m->tensor : &o->tensor;
        ck_assert_ptr_eq(d->data, brc_tensor_describe(t)->data);
        ck_assert(d->byte_offset == 0 && d->ndim == 2);
        ck_assert(d->shape[0] == 4 && d->shape[1] == 7);
        ck_assert(d->strides[0] == 7 && d->strides[1] == 1);
        ck_assert(d->dtype.code == BRC_DL_INT && d->dtype.bits == 32 && d->dtype.lanes == 1);
        ck_assert_int_eq(d->device.type, kind->device == 0 ? 1 : (int)kind->device);
    }
    brc_tensor_free(t);
    o->deleter(o);
    /* the last reference is the other structure's, which comes back as a tensor */
    brc_tensor *again;
    OK(&k.t, brc_tensor_of_dlpack(&again, m, 0, &k.t.err));
    brc_array *b = scenario_array(&k.t, "/b", "int32", 2, (uint64_t[]){4, 7}, NULL, NULL, NULL);
    OK(&k.t, brc_tensor_write(b, again, NULL, &k.t.err));
    brc_tensor *written = memory_read(&k, b, NULL, "host", NULL);
    memory_same(&k, a, "[1:9:2]", written);
    brc_tensor_free(written);
    FAILS(&k.t, BRC_EINVAL, brc_tensor_to_dlpack(&given, again, 8, &k.t.err));
    brc_tensor_free(again);
    brc_array_free(b);
}

static const struct type_row {
    const char *dtype;
    uint8_t code, bits; /* bits 0: refused */
} types[] = {
    {"bool", BRC_DL_BOOL, 8},          {"int8", BRC_DL_INT, 8},      {"uint64", BRC_DL_UINT, 64},
    {"float16", BRC_DL_FLOAT, 16},     {"float64", BRC_DL_FLOAT, 64},
    {"complex64", BRC_DL_COMPLEX, 64},
    {"complex128", BRC_DL_COMPLEX, 128}, {"bfloat16", BRC_DL_BFLOAT, 16},
    {"float8_e5m2", BRC_DL_FLOAT8_E5M2, 8}, {"r24", 0, 0}, {"int4", 0, 0}, {"r16", 0, 0},
};

EACH(M8_types_have_their_names_or_are_refused, types)
{
    brc_array *b = scenario_array(&k.t, "/b", types[_i].dtype, 1, (uint64_t[]){3}, NULL, NULL,
                                  NULL);
    brc_tensor *t = memory_read(&k, b, NULL, "host", NULL);
    void *given;
    if (types[_i].bits == 0) {
        FAILS(&k.t, BRC_EUNSUPPORTED, brc_tensor_to_dlpack(&given, t, 0, &k.t.err));
        ck_assert_ptr_null(given);
    } else {
        OK(&k.t, brc_tensor_to_dlpack(&given, t, 0, &k.t.err));
        struct brc_dl_managed *m = given;
        ck_assert(m->tensor.dtype.code == types[_i].code && m->tensor.dtype.bits == types[_i].bits);
        m->deleter(m);
    }
    OK(&k.t, brc_tensor_write(b, t, NULL, &k.t.err));
    brc_tensor_free(t);
    brc_array_free(b);
}

/* ---- deleters -------------------------------- */

CASE("deleters");

static void *delete_there(void *given)
{
    struct brc_dl_managed *m = given;
    m->deleter(m);
    return NULL;
}

/* The handle, the registry and everything else are gone by then. */
LOOP(M8_a_deleter_runs_on_any_thread_after_all_was_freed, 0, MEMORY_KINDS)
{
    enum { MANY = 8 };
    void *given[MANY];
    pthread_t threads[MANY];
    start();
    for (int i = 0; i < MANY; i++) {
        brc_tensor *t = memory_read(&k, a, NULL, memory_kinds[_i].name, NULL);
        OK(&k.t, brc_tensor_to_dlpack(&given[i], t, 0, &k.t.err));
        brc_tensor_free(t);
    }
    brc_array_free(a);
    memory_close(&k);
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, delete_there, given[i]), 0);
    for (int i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(*memory_count(k.device, "device_live"), 0);
    ck_assert_uint_eq(*memory_count(k.cuda, "fake_live"), 0);
    ck_assert_uint_eq(*memory_count(k.cuda, "fake_locked"), 0);
    ck_assert_uint_eq(*memory_count(k.cuda, "fake_retained"), 0);
}

typedef struct worker_of_tensors {
    brc_tensor *shared;
    int rounds;
} worker_of_tensors;

static void *share_and_drop(void *ctx)
{
    const worker_of_tensors *w = ctx;
    for (int i = 0; i < w->rounds; i++) {
        void *given;
        if (brc_tensor_to_dlpack(&given, w->shared, 0, NULL) == BRC_OK)
            delete_there(given);
    }
    return NULL;
}

TEST(M8_references_are_counted_by_threads_at_once)
{
    pthread_t threads[4];
    start();
    worker_of_tensors w = {memory_read(&k, a, NULL, "pool", NULL), 500};
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, share_and_drop, &w), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    memory_same(&k, a, NULL, w.shared);
    brc_tensor_free(w.shared);
    stop();
}

/* ---- in -------------------------------- */

CASE("in", .setup = start, .teardown = stop);

static int deleted;

static void count_deletion(struct brc_dl_managed *self)
{
    (void)self;
    deleted++;
}

static void count_deletion_old(struct brc_dl_managed_old *self)
{
    (void)self;
    deleted++;
}

/* A tensor of another library: what a test changes then. */
typedef struct foreign {
    struct brc_dl_managed managed;
    int64_t shape[4], strides[4];
} foreign;

static foreign *foreign_of(foreign *f, void *data, int32_t device)
{
    *f = (foreign){.shape = {ROWS, COLUMNS}, .strides = {COLUMNS, 1}};
    f->managed.version.major = 1;
    f->managed.version.minor = 9;
    f->managed.deleter = count_deletion;
    f->managed.tensor.data = data;
    f->managed.tensor.device.type = device;
    f->managed.tensor.ndim = 2;
    f->managed.tensor.dtype.code = BRC_DL_INT;
    f->managed.tensor.dtype.bits = 32;
    f->managed.tensor.dtype.lanes = 1;
    f->managed.tensor.shape = f->shape;
    f->managed.tensor.strides = f->strides;
    deleted = 0;
    return f;
}

static void is_written_as(foreign *f, const int32_t *want)
{
    brc_tensor *t;
    int32_t got[ROWS][COLUMNS];
    brc_array *b = scenario_array(&k.t, "/b", "int32", 2, shape, chunk, NULL, NULL);
    OK(&k.t, brc_tensor_of_dlpack(&t, &f->managed, 0, &k.t.err));
    OK(&k.t, brc_tensor_write(b, t, NULL, &k.t.err));
    ck_assert_int_eq(deleted, 0);
    brc_tensor_free(t);
    ck_assert_int_eq(deleted, 1);
    OK(&k.t, brc_array_read(b, NULL, got, sizeof(got), &k.t.err));
    ck_assert_int_eq(memcmp(got, want, sizeof(got)), 0);
    brc_array_free(b);
    OK(&k.t, brc_node_remove(k.t.session, "/b", &k.t.err));
}

TEST(M8_tensors_of_others_come_in_with_strides_and_offsets)
{
    foreign f;
    int32_t other[COLUMNS][ROWS], upside[ROWS][COLUMNS], flipped[ROWS][COLUMNS];
    is_written_as(foreign_of(&f, numbers, 1), &numbers[0][0]);
    foreign_of(&f, numbers, 1)->managed.tensor.strides = NULL; /* packed */
    is_written_as(&f, &numbers[0][0]);
    int32_t later[10 + ROWS * COLUMNS];
    memcpy(later + 10, numbers, sizeof(numbers));
    foreign_of(&f, later, 1)->managed.tensor.byte_offset = 40;
    is_written_as(&f, &numbers[0][0]);
    foreign_of(&f, numbers, 1)->managed.flags = BRC_DL_READONLY; /* it is only read */
    is_written_as(&f, &numbers[0][0]);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            other[j][i] = numbers[i][j];
            upside[ROWS - 1 - i][j] = flipped[i][COLUMNS - 1 - j] = numbers[i][j];
        }
    foreign_of(&f, other, 1); /* transposed */
    f.strides[0] = 1;
    f.strides[1] = ROWS;
    is_written_as(&f, &numbers[0][0]);
    foreign_of(&f, upside[ROWS - 1], 1)->strides[0] = -COLUMNS;
    is_written_as(&f, &numbers[0][0]);
    foreign_of(&f, flipped, 1)->strides[1] = -1;
    f.managed.tensor.byte_offset = 4 * (COLUMNS - 1);
    is_written_as(&f, &numbers[0][0]);
    int32_t row[COLUMNS], rows[ROWS][COLUMNS]; /* one row, many times */
    for (int i = 0; i < ROWS * COLUMNS; i++)
        rows[i / COLUMNS][i % COLUMNS] = row[i % COLUMNS] = 5 + i % COLUMNS;
    foreign_of(&f, row, 1)->strides[0] = 0;
    is_written_as(&f, &rows[0][0]);
}

LOOP(M8_tensors_of_others_on_devices_come_in, 2, MEMORY_KINDS)
{
    foreign f;
    brc_tensor *there = memory_read(&k, a, NULL, memory_kinds[_i].name, NULL);
    const int32_t device = (int32_t)memory_kinds[_i].device;
    is_written_as(foreign_of(&f, brc_tensor_describe(there)->data, device), &numbers[0][0]);
    brc_tensor_free(there);
}

TEST(M8_old_tensors_come_in_and_know_their_flags)
{
    foreign f;
    brc_tensor *t;
    void *given;
    struct brc_dl_managed_old old = {.tensor = foreign_of(&f, numbers, 1)->managed.tensor,
                                     .deleter = count_deletion_old};
    OK(&k.t, brc_tensor_of_dlpack(&t, &old, BRC_DLPACK_OLD, &k.t.err));
    OK(&k.t, brc_tensor_write(a, t, NULL, &k.t.err));
    memory_same(&k, a, NULL, t);
    brc_tensor_free(t);
    ck_assert_int_eq(deleted, 1);
    foreign_of(&f, numbers, 1)->managed.flags = BRC_DL_READONLY;
    OK(&k.t, brc_tensor_of_dlpack(&t, &f.managed, 0, &k.t.err));
    ck_assert(brc_tensor_describe(t)->flags == (BRC_TENSOR_HOST | BRC_TENSOR_READONLY));
    ck_assert_ptr_eq(brc_tensor_describe(t)->prototype, brc_tensor_describe(t)->prototype);
    /* a read-only tensor cannot be told apart in the old form */
    FAILS(&k.t, BRC_EUNSUPPORTED, brc_tensor_to_dlpack(&given, t, BRC_DLPACK_OLD, &k.t.err));
    OK(&k.t, brc_tensor_to_dlpack(&given, t, 0, &k.t.err));
    struct brc_dl_managed *m = given;
    ck_assert_uint_eq(m->flags, BRC_DL_READONLY);
    brc_tensor_free(t);
    ck_assert_int_eq(deleted, 0);
    m->deleter(m);
    ck_assert_int_eq(deleted, 1);
    /* a deleter may be missing */
    foreign_of(&f, numbers, 1)->managed.deleter = NULL;
    OK(&k.t, brc_tensor_of_dlpack(&t, &f.managed, 0, &k.t.err));
    brc_tensor_free(t);
}

static void is_refused(foreign *f, int code)
{
    brc_tensor *t;
    FAILS(&k.t, code, brc_tensor_of_dlpack(&t, &f->managed, 0, &k.t.err));
    ck_assert_ptr_null(t);
    ck_assert_int_eq(deleted, 0); /* it still is the caller's */
}

TEST(M8_hostile_tensors_are_refused)
{
    foreign f;
    brc_tensor *t;
    foreign_of(&f, numbers, 1)->managed.version.major = 2;
    is_refused(&f, BRC_EUNSUPPORTED);
    foreign_of(&f, numbers, 1)->managed.tensor.ndim = -1;
    is_refused(&f, BRC_EINVAL);
    foreign_of(&f, numbers, 1)->managed.tensor.ndim = BRC_MAX_NDIM + 1;
    is_refused(&f, BRC_EINVAL);
    foreign_of(&f, numbers, 1)->managed.tensor.shape = NULL;
    is_refused(&f, BRC_EINVAL);
    foreign_of(&f, numbers, 1)->shape[1] = -3;
    is_refused(&f, BRC_EINVAL);
    foreign_of(&f, numbers, 1)->shape[1] = INT64_MAX;
    is_refused(&f, BRC_ELIMIT);
    foreign_of(&f, numbers, 1)->strides[0] = INT64_MAX;
    is_refused(&f, BRC_EINVAL);
    foreign_of(&f, numbers, 1)->strides[0] = INT64_MAX / 4;
    is_refused(&f, BRC_EINVAL);
    foreign_of(&f, numbers, 1)->strides[0] = INT64_MIN / 4;
    is_refused(&f, BRC_EINVAL);
    foreign_of(&f, (void *)16, 1)->strides[0] = -COLUMNS; /* below the start of memory */
    is_refused(&f, BRC_EINVAL);
    foreign_of(&f, NULL, 1);
    is_refused(&f, BRC_EINVAL);
    foreign_of(&f, numbers, 1)->managed.tensor.byte_offset = UINT64_MAX - 3;
    is_refused(&f, BRC_EINVAL);
    foreign_of(&f, numbers, 1)->managed.tensor.dtype.lanes = 4;
    is_refused(&f, BRC_EUNSUPPORTED);
    foreign_of(&f, numbers, 1)->managed.tensor.dtype.bits = 4;
    is_refused(&f, BRC_EUNSUPPORTED);
    foreign_of(&f, numbers, 1)->managed.tensor.dtype.bits = 0;
    is_refused(&f, BRC_EUNSUPPORTED);
    FAILS(&k.t, BRC_EINVAL, brc_tensor_of_dlpack(&t, NULL, 0, &k.t.err));
    FAILS(&k.t, BRC_EINVAL, brc_tensor_of_dlpack(&t, &f.managed, 2, &k.t.err));
    /* nothing needs no memory, whatever its strides say */
    foreign_of(&f, NULL, 1)->shape[0] = 0;
    f.strides[1] = INT64_MAX / 4;
    OK(&k.t, brc_tensor_of_dlpack(&t, &f.managed, 0, &k.t.err));
    brc_tensor_free(t);
    /* a device that nobody copies, and one whose memory is not copied to the host here */
    foreign_of(&f, numbers, 9);
    OK(&k.t, brc_tensor_of_dlpack(&t, &f.managed, 0, &k.t.err));
    FAILS(&k.t, BRC_EUNSUPPORTED, brc_tensor_write(a, t, NULL, &k.t.err));
    brc_tensor *host;
    FAILS(&k.t, BRC_EUNSUPPORTED, brc_tensor_to_host(&host, t, NULL, NULL, &k.t.err));
    brc_tensor_free(t);
    foreign_of(&f, numbers, 1)->managed.tensor.dtype.code = BRC_DL_FLOAT;
    OK(&k.t, brc_tensor_of_dlpack(&t, &f.managed, 0, &k.t.err));
    FAILS(&k.t, BRC_EINVAL, brc_tensor_write(a, t, NULL, &k.t.err));
    brc_tensor_free(t);
}
