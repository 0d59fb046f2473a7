/*
 * CUDA's memory: "cuda" on a device, "locked" in the host, page-locked so that devices copy it
 * faster, and "managed", which both reach. All of it through the driver, which is loaded at the
 * first use: this build needs nothing of CUDA, and a machine without it only has no such memory.
 *
 * A device is used through its primary context, which the program's own use of CUDA shares, so
 * memory and streams of either can be used by the other. The context is made current for the time
 * of each call.
 *
 * Memory that was allocated for a stream is freed in that stream; other memory is freed at once,
 * for which the driver waits until the device has done all it was asked to. The driver cannot be
 * used in a child of a process that has used it.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/pool.h"
#include "memory.h"
#include "recycler.h"

/* ---- the driver, as its published interface is -------------------------------- */

typedef uint64_t cuda_address;

typedef struct cuda_rows {
    size_t from_x, from_y;
    uint32_t from_kind;
    const void *from_host;
    cuda_address from_device;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    uint32_t to_kind;
    void *to_host;
    cuda_address to_device;
    void *to_array;
    size_t to_pitch;
    size_t width, rows;
} cuda_rows;

enum { KIND_HOST = 1, KIND_DEVICE = 2 };       /* cuda_rows.from_kind, to_kind */
enum { CUDA_FULL = 2 };                        /* the result where there is no room */
enum { FOR_ALL_CONTEXTS = 1, FOR_EVERYBODY = 1, WITHOUT_TIMES = 2 }; /* flags */
#define MOST_PITCH ((size_t)1 << 30)           /* of rows that are copied together */

/* In the order of cuda_names. */
typedef struct cuda_driver {
    int (*init)(unsigned flags);
    int (*error_text)(int result, const char **out);
    int (*device_get)(int *out, int number);
    int (*retain)(void **out, int device);
    int (*release)(int device);
    int (*push)(void *context);
    int (*pop)(void **out);
    int (*alloc)(cuda_address *out, size_t len);
    int (*free)(cuda_address memory);
    int (*alloc_in)(cuda_address *out, size_t len, void *stream);
    int (*free_in)(cuda_address memory, void *stream);
    int (*alloc_host)(void **out, size_t len, unsigned flags);
    int (*free_host)(void *memory);
    int (*alloc_managed)(cuda_address *out, size_t len, unsigned flags);
    int (*put)(cuda_address to, const void *from, size_t len, void *stream);
    int (*get)(void *to, cuda_address from, size_t len, void *stream);
    int (*copy_rows)(const cuda_rows *rows, void *stream);
    int (*fill_1)(cuda_address to, uint8_t value, size_t n, void *stream);
    int (*fill_2)(cuda_address to, uint16_t value, size_t n, void *stream);
    int (*fill_4)(cuda_address to, uint32_t value, size_t n, void *stream);
    int (*event_new)(void **out, unsigned flags);
    int (*event_record)(void *event, void *stream);
    int (*event_wait)(void *event);
    int (*event_free)(void *event);
} cuda_driver;

static const char *const cuda_files[] = {"libcuda.so.1", NULL};
static const char *const cuda_names[] = {
    "cuInit", "cuGetErrorString", "cuDeviceGet", "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuMemAlloc_v2",
    "cuMemFree_v2", "cuMemAllocAsync", "cuMemFreeAsync", "cuMemHostAlloc", "cuMemFreeHost",
    "cuMemAllocManaged", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpy2DAsync_v2",
    "cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async", "cuEventCreate", "cuEventRecord",
    "cuEventSynchronize", "cuEventDestroy_v2", NULL};
_Static_assert(sizeof(cuda_names) / sizeof(cuda_names[0]) ==
                   sizeof(cuda_driver) / sizeof(int (*)(unsigned)) + 1,
               "a name for each function");

/* ---- state -------------------------------- */

#define MOST_DEVICES 64

/* An event that was made, and the device that it belongs to. */
typedef struct cuda_event {
    void *event;
    uint32_t device;
    struct cuda_event *next; /* of those that nobody uses */
} cuda_event;

typedef struct cuda_state {
    cuda_driver driver;
    brc_lock *lock; /* of what follows */
    void *contexts[MOST_DEVICES]; /* NULL: not used yet */
    int devices[MOST_DEVICES];
    cuda_event *events;
    brc_recycler *recycler; /* of page-locked memory; NULL: not for that */
} cuda_state;

static int cuda_fail(const cuda_state *s, int result, const char *what, brc_error *err)
{
    const char *text = NULL;
    if (s->driver.error_text(result, &text) != 0 || text == NULL)
        text = "no reason is given";
    return brc_fail(err, result == CUDA_FULL ? BRC_ENOMEM : BRC_EIO, "CUDA %s: %s (%d)", what, text,
                    result);
}

static void cuda_close(void *ctx, void *state)
{
    cuda_state *s = state;
    void *was;
    (void)ctx;
    brc_recycler_free(s->recycler);
    for (cuda_event *at = s->events, *next; at != NULL; at = next) {
        next = at->next;
        if (s->driver.push(s->contexts[at->device]) == 0) {
            s->driver.event_free(at->event);
            s->driver.pop(&was);
        }
        free(at);
    }
    for (int i = 0; i < MOST_DEVICES; i++)
        if (s->contexts[i] != NULL)
            s->driver.release(s->devices[i]);
    brc_lock_free(s->lock);
    free(s);
}

static int cuda_open(void *ctx, void **state, brc_error *err)
{
    const brc_library library = {.size = sizeof(library),
                                 .name = "libcuda.so.1",
                                 .use = "with which memory of CUDA devices is used",
                                 .package = "libcuda1, with NVIDIA's driver",
                                 .files = cuda_files,
                                 .functions = cuda_names};
    void *p;
    (void)ctx;
    BRC_TRY(brc_new(&p, sizeof(cuda_state), err));
    cuda_state *s = p;
    int rc = brc_library_load(&library, &s->driver, err);
    if (rc == BRC_OK)
        rc = brc_lock_new(&s->lock, err);
    const int result = rc == BRC_OK ? s->driver.init(0) : 0;
    if (result != 0) {
        (void)cuda_fail(s, result, "cannot be used", err);
        brc_error_recode(err, BRC_EUNSUPPORTED);
        rc = BRC_EUNSUPPORTED;
        brc_lock_free(s->lock);
    }
    if (rc < 0)
        free(s);
    else
        *state = s;
    return rc;
}

/* ---- contexts -------------------------------- */

static int cuda_retain(cuda_state *s, uint32_t id, brc_error *err)
{
    int rc = BRC_OK;
    brc_lock_enter(s->lock);
    if (s->contexts[id] == NULL) {
        int result = s->driver.device_get(&s->devices[id], (int)id);
        if (result == 0)
            result = s->driver.retain(&s->contexts[id], s->devices[id]);
        if (result != 0) {
            s->contexts[id] = NULL;
            (void)cuda_fail(s, result, "has no such device", err);
            brc_error_recode(err, BRC_EUNSUPPORTED);
            rc = BRC_EUNSUPPORTED;
        }
    }
    brc_lock_leave(s->lock);
    return rc;
}

int brc_cuda_enter(void *state, uint32_t id, brc_error *err)
{
    cuda_state *s = state;
    if (id >= MOST_DEVICES)
        return brc_fail(err, BRC_EINVAL, "CUDA has no device %u", (unsigned)id);
    BRC_TRY(cuda_retain(s, id, err));
    const int result = s->driver.push(s->contexts[id]);
    return result == 0 ? BRC_OK : cuda_fail(s, result, "does not let the device be used", err);
}

void brc_cuda_leave(const void *state)
{
    const cuda_state *s = state;
    void *was;
    s->driver.pop(&was);
}

/* ---- memory -------------------------------- */

static int cuda_spill(const cuda_state *s, size_t len, brc_block *out, brc_error *err)
{
    const int result = s->driver.alloc_host(&out->data, len > 0 ? len : 1, FOR_ALL_CONTEXTS);
    if (result != 0)
        return cuda_fail(s, result, "has no room, and the host has none", err);
    out->device = BRC_MEMORY_LOCKED;
    out->flags = BRC_BLOCK_HOST | BRC_BLOCK_NEW | BRC_BLOCK_SPILLED;
    return BRC_OK;
}

static int cuda_alloc(void *ctx, void *state, size_t len, uint32_t flags, void *stream,
                      brc_block *out, brc_error *err)
{
    cuda_state *s = state;
    cuda_address memory = 0;
    int rc = BRC_OK;
    (void)ctx;
    BRC_TRY(brc_cuda_enter(s, out->device_id, err));
    const size_t some = len > 0 ? len : 1;
    const int result = stream != NULL ? s->driver.alloc_in(&memory, some, stream)
                                      : s->driver.alloc(&memory, some);
    out->len = len;
    out->data = (void *)(uintptr_t)memory;
    out->flags = BRC_BLOCK_NEW;
    out->own = stream;
    if (result == CUDA_FULL && (flags & BRC_ALLOC_SPILL))
        rc = cuda_spill(s, len, out, err);
    else if (result != 0)
        rc = cuda_fail(s, result, "has no room for the elements", err);
    brc_cuda_leave(s);
    return rc;
}

/* A stream that is gone cannot free memory any more. */
static void cuda_free(void *ctx, void *state, const brc_block *block)
{
    cuda_state *s = state;
    const cuda_address memory = (cuda_address)(uintptr_t)block->data;
    (void)ctx;
    if (brc_cuda_enter(s, block->device_id, NULL) < 0)
        return;
    if (block->flags & BRC_BLOCK_SPILLED)
        s->driver.free_host(block->data);
    else if (block->own == NULL || s->driver.free_in(memory, block->own) != 0)
        s->driver.free(memory);
    brc_cuda_leave(s);
}

/* ---- copies -------------------------------- */

static int cuda_copy_plain(const cuda_state *s, const brc_block *block, const brc_rows *r,
                           int to_device)
{
    int result = 0;
    for (size_t i = 0; i < r->rows && result == 0; i++) {
        const cuda_address there = (cuda_address)(uintptr_t)block->data + r->at + i * r->pitch;
        uint8_t *here = r->host + i * r->host_pitch;
        result = to_device ? s->driver.put(there, here, r->width, r->stream)
                           : s->driver.get(here, there, r->width, r->stream);
    }
    return result;
}

static int cuda_copy_rows(const cuda_state *s, const brc_block *block, const brc_rows *r,
                          int to_device)
{
    const cuda_address there = (cuda_address)(uintptr_t)block->data + r->at;
    cuda_rows rows = {.width = r->width, .rows = r->rows};
    if (r->rows == 1 || r->pitch > MOST_PITCH || r->host_pitch > MOST_PITCH)
        return cuda_copy_plain(s, block, r, to_device);
    rows.from_kind = to_device ? KIND_HOST : KIND_DEVICE;
    rows.from_pitch = to_device ? r->host_pitch : r->pitch;
    rows.to_kind = to_device ? KIND_DEVICE : KIND_HOST;
    rows.to_pitch = to_device ? r->pitch : r->host_pitch;
    if (to_device) {
        rows.from_host = r->host;
        rows.to_device = there;
    } else {
        rows.from_device = there;
        rows.to_host = r->host;
    }
    return s->driver.copy_rows(&rows, r->stream);
}

static int cuda_copy(cuda_state *s, const brc_block *block, const brc_rows *rows, int to_device,
                     brc_error *err)
{
    BRC_TRY(brc_cuda_enter(s, block->device_id, err));
    const int result = cuda_copy_rows(s, block, rows, to_device);
    brc_cuda_leave(s);
    return result == 0 ? BRC_OK : cuda_fail(s, result, "cannot copy elements", err);
}

static int cuda_from_host(void *ctx, void *state, const brc_block *to, const brc_rows *rows,
                          brc_error *err)
{
    (void)ctx;
    return cuda_copy(state, to, rows, 1, err);
}

static int cuda_to_host(void *ctx, void *state, const brc_block *from, const brc_rows *rows,
                        brc_error *err)
{
    (void)ctx;
    return cuda_copy(state, from, rows, 0, err);
}

static int are_alike(const uint8_t *bytes, size_t n)
{
    return memcmp(bytes, bytes + 1, n - 1) == 0;
}

static int cuda_fill(void *ctx, void *state, const brc_block *to, size_t at, size_t count,
                     const void *element, size_t item, void *stream, brc_error *err)
{
    cuda_state *s = state;
    const cuda_address there = (cuda_address)(uintptr_t)to->data + at;
    uint16_t two;
    uint32_t four;
    int result;
    (void)ctx;
    const int alike = are_alike(element, item);
    /* the driver wants units of several bytes aligned */
    if (!alike && ((item != 2 && item != 4) || there % item != 0))
        return BRC_FILL_OTHERWISE;
    BRC_TRY(brc_cuda_enter(s, to->device_id, err));
    if (alike) {
        result = s->driver.fill_1(there, *(const uint8_t *)element, count * item, stream);
    } else if (item == 2) {
        memcpy(&two, element, sizeof(two));
        result = s->driver.fill_2(there, two, count, stream);
    } else {
        memcpy(&four, element, sizeof(four));
        result = s->driver.fill_4(there, four, count, stream);
    }
    brc_cuda_leave(s);
    return result == 0 ? BRC_OK : cuda_fail(s, result, "cannot fill memory", err);
}

/* ---- events -------------------------------- */

static cuda_event *event_take(cuda_state *s, uint32_t device)
{
    brc_lock_enter(s->lock);
    cuda_event **at = &s->events, *found;
    while (*at != NULL && (*at)->device != device)
        at = &(*at)->next;
    found = *at;
    if (found != NULL)
        *at = found->next;
    brc_lock_leave(s->lock);
    return found;
}

static void event_give(cuda_state *s, cuda_event *e)
{
    brc_lock_enter(s->lock);
    e->next = s->events;
    s->events = e;
    brc_lock_leave(s->lock);
}

/* The device's context is current. */
static int event_new(const cuda_state *s, uint32_t device, cuda_event **out, brc_error *err)
{
    void *p;
    BRC_TRY(brc_new(&p, sizeof(cuda_event), err));
    *out = p;
    (*out)->device = device;
    const int result = s->driver.event_new(&(*out)->event, WITHOUT_TIMES);
    if (result == 0)
        return BRC_OK;
    free(p);
    return cuda_fail(s, result, "cannot make an event", err);
}

static int cuda_record(void *ctx, void *state, uint32_t device_id, void *stream, void **event,
                       brc_error *err)
{
    cuda_state *s = state;
    int rc = BRC_OK;
    (void)ctx;
    BRC_TRY(brc_cuda_enter(s, device_id, err));
    cuda_event *e = event_take(s, device_id);
    if (e == NULL)
        rc = event_new(s, device_id, &e, err);
    const int result = rc == BRC_OK ? s->driver.event_record(e->event, stream) : 0;
    if (result != 0) {
        event_give(s, e);
        rc = cuda_fail(s, result, "cannot record an event", err);
    }
    brc_cuda_leave(s);
    *event = e;
    return rc;
}

static int cuda_wait(void *ctx, void *state, void *event, brc_error *err)
{
    cuda_state *s = state;
    cuda_event *e = event;
    (void)ctx;
    int rc = brc_cuda_enter(s, e->device, err);
    if (rc == BRC_OK) {
        const int result = s->driver.event_wait(e->event);
        brc_cuda_leave(s);
        if (result != 0)
            rc = cuda_fail(s, result, "did not finish the copies", err);
    }
    event_give(s, e);
    return rc;
}

/* ---- page-locked memory of the host -------------------------------- */

static void *locked_take(void *ctx, size_t len)
{
    cuda_state *s = ctx;
    void *memory = NULL;
    if (brc_cuda_enter(s, 0, NULL) < 0)
        return NULL;
    if (s->driver.alloc_host(&memory, len, FOR_ALL_CONTEXTS) != 0)
        memory = NULL;
    brc_cuda_leave(s);
    return memory;
}

static void locked_give(void *ctx, void *memory)
{
    cuda_state *s = ctx;
    if (brc_cuda_enter(s, 0, NULL) < 0)
        return;
    s->driver.free_host(memory);
    brc_cuda_leave(s);
}

static int recycler_of(cuda_state *s, brc_error *err)
{
    return brc_recycler_new(&s->recycler, (brc_memory_source){s, locked_take, locked_give}, err);
}

static int locked_open(void *ctx, void **state, brc_error *err)
{
    BRC_TRY(cuda_open(ctx, state, err));
    cuda_state *s = *state;
    int rc = brc_cuda_enter(s, 0, err);
    if (rc == BRC_OK) {
        brc_cuda_leave(s);
        rc = recycler_of(s, err);
    }
    if (rc < 0)
        cuda_close(ctx, s);
    return rc;
}

static int locked_alloc(void *ctx, void *state, size_t len, uint32_t flags, void *stream,
                        brc_block *out, brc_error *err)
{
    cuda_state *s = state;
    (void)ctx;
    (void)flags;
    (void)stream;
    return brc_recycler_alloc(s->recycler, len, out, err);
}

static void locked_free(void *ctx, void *state, const brc_block *block)
{
    cuda_state *s = state;
    (void)ctx;
    brc_recycler_give(s->recycler, block);
}

/* ---- managed memory -------------------------------- */

static int managed_alloc(void *ctx, void *state, size_t len, uint32_t flags, void *stream,
                         brc_block *out, brc_error *err)
{
    cuda_state *s = state;
    cuda_address memory = 0;
    (void)ctx;
    (void)flags;
    (void)stream;
    BRC_TRY(brc_cuda_enter(s, out->device_id, err));
    const int result = s->driver.alloc_managed(&memory, len > 0 ? len : 1, FOR_EVERYBODY);
    brc_cuda_leave(s);
    if (result != 0)
        return cuda_fail(s, result, "has no room for the elements", err);
    out->len = len;
    out->data = (void *)(uintptr_t)memory;
    out->flags = BRC_BLOCK_HOST | BRC_BLOCK_NEW;
    return BRC_OK;
}

static const brc_buffer_prototype cuda_prototypes[] = {
    {.size = sizeof(brc_buffer_prototype),
     .name = "cuda",
     .device = BRC_MEMORY_CUDA,
     .open = cuda_open,
     .close = cuda_close,
     .alloc = cuda_alloc,
     .free = cuda_free,
     .from_host = cuda_from_host,
     .to_host = cuda_to_host,
     .fill = cuda_fill,
     .record = cuda_record,
     .wait = cuda_wait,
     .staging = "locked"},
    {.size = sizeof(brc_buffer_prototype),
     .name = "locked",
     .device = BRC_MEMORY_LOCKED,
     .flags = BRC_PROTOTYPE_HOST,
     .open = locked_open,
     .close = cuda_close,
     .alloc = locked_alloc,
     .free = locked_free},
    {.size = sizeof(brc_buffer_prototype),
     .name = "managed",
     .device = BRC_MEMORY_MANAGED,
     .flags = BRC_PROTOTYPE_HOST,
     .open = cuda_open,
     .close = cuda_close,
     .alloc = managed_alloc,
     .free = cuda_free},
};

const brc_buffer_prototype *brc_memory_cuda(size_t *n)
{
    *n = sizeof(cuda_prototypes) / sizeof(cuda_prototypes[0]);
    return cuda_prototypes;
}
