/*
 * A library with the entry points of CUDA's driver that breccia uses, over memory of the host:
 * pages that fault in every hand but its own, as the device's. Copies and fills are put off until
 * somebody waits for an event behind them, so memory that is used again too early has the wrong
 * content. A test loads it with RTLD_GLOBAL.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
#define DEVICES 2

enum { GOOD = 0, WRONG_VALUE = 1, FULL = 2, NO_DEVICE = 101, NO_CONTEXT = 201 };
enum { PUT, GET, FILL, RUN };

/* Counters that tests look at, and switches. */
API extern unsigned long fake_live, fake_locked, fake_queued, fake_done, fake_room, fake_retained,
    fake_in_streams, fake_fails, fake_events, fake_fails_after;
unsigned long fake_live, fake_locked;  /* blocks of the devices, and of the host                */
unsigned long fake_queued, fake_done;  /* copies and fills                                      */
unsigned long fake_room;               /* bytes that fit; 0: all                                */
unsigned long fake_retained;           /* contexts                                              */
unsigned long fake_in_streams;         /* blocks that were allocated or freed in a stream       */
unsigned long fake_fails;              /* 1: the next event that is waited for reports an error */
unsigned long fake_events;             /* that exist                                            */
unsigned long fake_fails_after;        /* calls until one fails of those that can; 0: none does  */

typedef struct task {
    int what;
    unsigned long number;
    uint8_t *there, *here;
    size_t pitch, here_pitch, width, rows;
    uint8_t element[4];
    void (*run)(void *arg);
    void *arg;
    struct task *next;
} task;

typedef struct block {
    uint8_t *at;
    size_t len;
    const void *context; /* of the device that has it */
    struct block *next;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static task *first, **last = &first;
static unsigned long numbers;
static block *blocks;
static unsigned long held;
/* Lies in the program itself: a sanitizer looks at what a closed library had for a thread. */
#define OF_THREAD static __thread __attribute__((tls_model("initial-exec")))
OF_THREAD void *current[4];
OF_THREAD int ncurrent;

/* Runs a function on the device, in which fake_open() opens memory of the device, or closes it.
 * fake_is_there() asks for memory of the device whose context is current. */
API int fake_launch(void (*run)(void *arg), void *arg, void *stream);
API int fake_is_there(uint64_t at, size_t len);
API int fake_open(uint64_t at, size_t len, int opens);

API int cuInit(unsigned flags);
API int cuGetErrorString(int result, const char **out);
API int cuDeviceGet(int *out, int number);
API int cuDevicePrimaryCtxRetain(void **out, int device);
API int cuDevicePrimaryCtxRelease_v2(int device);
API int cuCtxPushCurrent_v2(void *context);
API int cuCtxPopCurrent_v2(void **out);
API int cuMemAlloc_v2(uint64_t *out, size_t len);
API int cuMemFree_v2(uint64_t memory);
API int cuMemAllocAsync(uint64_t *out, size_t len, void *stream);
API int cuMemFreeAsync(uint64_t memory, void *stream);
API int cuMemHostAlloc(void **out, size_t len, unsigned flags);
API int cuMemFreeHost(void *memory);
API int cuMemAllocManaged(uint64_t *out, size_t len, unsigned flags);
API int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t len, void *stream);
API int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t len, void *stream);
API int cuMemcpy2DAsync_v2(const void *rows, void *stream);
API int cuMemsetD8Async(uint64_t to, uint8_t value, size_t n, void *stream);
API int cuMemsetD16Async(uint64_t to, uint16_t value, size_t n, void *stream);
API int cuMemsetD32Async(uint64_t to, uint32_t value, size_t n, void *stream);
API int cuEventCreate(void **out, unsigned flags);
API int cuEventRecord(void *event, void *stream);
API int cuEventSynchronize(void *event);
API int cuEventDestroy_v2(void *event);

int cuInit(unsigned flags)
{
    return flags == 0 ? GOOD : WRONG_VALUE;
}

int cuGetErrorString(int result, const char **out)
{
    *out = result == FULL        ? "out of memory"
           : result == NO_DEVICE ? "invalid device ordinal"
                                 : "something is wrong";
    return GOOD;
}

/* ---- contexts -------------------------------- */

int cuDeviceGet(int *out, int number)
{
    *out = 100 + number;
    return number >= 0 && number < DEVICES ? GOOD : NO_DEVICE;
}

int cuDevicePrimaryCtxRetain(void **out, int device)
{
    static char contexts[DEVICES];
    *out = &contexts[device - 100];
    __atomic_fetch_add(&fake_retained, 1, __ATOMIC_RELAXED);
    return GOOD;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    __atomic_fetch_sub(&fake_retained, 1, __ATOMIC_RELAXED);
    return device >= 100 ? GOOD : WRONG_VALUE;
}

int cuCtxPushCurrent_v2(void *context)
{
    if (context == NULL || ncurrent == 4)
        return WRONG_VALUE;
    current[ncurrent++] = context;
    return GOOD;
}

int cuCtxPopCurrent_v2(void **out)
{
    if (ncurrent == 0)
        return NO_CONTEXT;
    *out = current[--ncurrent];
    return GOOD;
}

/* ---- tasks; the lock is held -------------------------------- */

static int pages_around(const uint8_t *at, size_t len, int prot)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = (uintptr_t)at / page * page;
    const uintptr_t to = ((uintptr_t)at + len + page - 1) / page * page;
    return mprotect((void *)from, to - from, prot);
}

static void do_task(const task *t)
{
    const size_t span = (t->rows - 1) * t->pitch + t->width;
    if (t->what == RUN) {
        t->run(t->arg);
        fake_done++;
        return;
    }
    (void)pages_around(t->there, span, PROT_READ | PROT_WRITE);
    for (size_t i = 0; i < t->rows; i++) {
        uint8_t *there = t->there + i * t->pitch, *here = t->here + i * t->here_pitch;
        if (t->what == PUT)
            memcpy(there, here, t->width);
        else if (t->what == GET)
            memcpy(here, there, t->width);
        else
            memcpy(there, t->element, t->width);
    }
    (void)pages_around(t->there, span, PROT_NONE);
    fake_done++;
}

static void do_until(unsigned long number)
{
    while (first != NULL && first->number <= number) {
        task *t = first;
        first = t->next;
        if (first == NULL)
            last = &first;
        do_task(t);
        free(t);
    }
}

static int is_of_a_block(const uint8_t *at, size_t len)
{
    for (const block *b = blocks; b != NULL; b = b->next)
        if (at >= b->at && at + len <= b->at + b->len)
            return 1;
    return 0;
}

/* The lock is not held. */
static int fails_now(void)
{
    pthread_mutex_lock(&lock);
    const int fails = fake_fails_after > 0 && --fake_fails_after == 0;
    pthread_mutex_unlock(&lock);
    return fails;
}

static int put_off(task t)
{
    int rc = NO_CONTEXT;
    task *copy = malloc(sizeof(*copy));
    if (copy == NULL || ncurrent == 0 || fails_now()) {
        free(copy);
        return rc;
    }
    pthread_mutex_lock(&lock);
    rc = t.what == RUN || is_of_a_block(t.there, (t.rows - 1) * t.pitch + t.width) ? GOOD
                                                                                   : WRONG_VALUE;
    if (rc == GOOD) {
        *copy = t;
        copy->number = ++numbers;
        copy->next = NULL;
        *last = copy;
        last = &copy->next;
        fake_queued++;
        copy = NULL;
    }
    pthread_mutex_unlock(&lock);
    free(copy);
    return rc;
}

int fake_launch(void (*run)(void *arg), void *arg, void *stream)
{
    (void)stream;
    return put_off((task){.what = RUN, .run = run, .arg = arg, .rows = 1});
}

int fake_is_there(uint64_t at, size_t len)
{
    const uint8_t *p = (uint8_t *)(uintptr_t)at;
    int is_there = 0;
    pthread_mutex_lock(&lock);
    for (const block *b = blocks; b != NULL && ncurrent > 0; b = b->next)
        is_there |= b->context == current[ncurrent - 1] && p >= b->at &&
                    p + len <= b->at + b->len;
    pthread_mutex_unlock(&lock);
    return is_there;
}

int fake_open(uint64_t at, size_t len, int opens)
{
    uint8_t *p = (uint8_t *)(uintptr_t)at;
    return is_of_a_block(p, len) &&
           pages_around(p, len, opens ? PROT_READ | PROT_WRITE : PROT_NONE) == 0;
}

/* ---- memory -------------------------------- */

int cuMemAlloc_v2(uint64_t *out, size_t len)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (len + page - 1) / page * page;
    if (ncurrent == 0)
        return NO_CONTEXT;
    if (len == 0)
        return WRONG_VALUE;
    if (fails_now())
        return NO_CONTEXT;
    block *b = malloc(sizeof(*b));
    pthread_mutex_lock(&lock);
    void *p = MAP_FAILED;
    if (b != NULL && (fake_room == 0 || held + size <= fake_room))
        p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        pthread_mutex_unlock(&lock);
        free(b);
        return FULL;
    }
    *b = (block){p, size, current[ncurrent - 1], blocks};
    blocks = b;
    held += size;
    fake_live++;
    pthread_mutex_unlock(&lock);
    *out = (uint64_t)(uintptr_t)p;
    return GOOD;
}

int cuMemFree_v2(uint64_t memory)
{
    int rc = WRONG_VALUE;
    if (ncurrent == 0)
        return NO_CONTEXT;
    pthread_mutex_lock(&lock);
    do_until(numbers);
    for (block **at = &blocks; *at != NULL && rc != GOOD; at = &(*at)->next) {
        block *b = *at;
        if ((uint64_t)(uintptr_t)b->at != memory)
            continue;
        *at = b->next;
        munmap(b->at, b->len);
        held -= b->len;
        fake_live--;
        free(b);
        rc = GOOD;
        break;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

int cuMemAllocAsync(uint64_t *out, size_t len, void *stream)
{
    if (stream == NULL)
        return WRONG_VALUE;
    __atomic_fetch_add(&fake_in_streams, 1, __ATOMIC_RELAXED);
    return cuMemAlloc_v2(out, len);
}

int cuMemFreeAsync(uint64_t memory, void *stream)
{
    if (stream == NULL)
        return WRONG_VALUE;
    __atomic_fetch_add(&fake_in_streams, 1, __ATOMIC_RELAXED);
    return cuMemFree_v2(memory);
}

int cuMemHostAlloc(void **out, size_t len, unsigned flags)
{
    if (ncurrent == 0 || flags != 1)
        return NO_CONTEXT;
    *out = aligned_alloc(64, (len + 63) / 64 * 64);
    if (*out == NULL)
        return FULL;
    __atomic_fetch_add(&fake_locked, 1, __ATOMIC_RELAXED);
    return GOOD;
}

int cuMemFreeHost(void *memory)
{
    free(memory);
    __atomic_fetch_sub(&fake_locked, 1, __ATOMIC_RELAXED);
    return ncurrent > 0 ? GOOD : NO_CONTEXT;
}

int cuMemAllocManaged(uint64_t *out, size_t len, unsigned flags)
{
    int rc = flags == 1 ? cuMemAlloc_v2(out, len) : WRONG_VALUE;
    if (rc == GOOD && mprotect((void *)(uintptr_t)*out, len, PROT_READ | PROT_WRITE) != 0)
        rc = WRONG_VALUE;
    return rc;
}

/* ---- copies -------------------------------- */

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t len, void *stream)
{
    (void)stream;
    return put_off((task){.what = PUT, .there = (uint8_t *)(uintptr_t)to,
                          .here = (uint8_t *)(uintptr_t)from, .width = len, .rows = 1});
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t len, void *stream)
{
    (void)stream;
    return put_off((task){.what = GET, .there = (uint8_t *)(uintptr_t)from, .here = to,
                          .width = len, .rows = 1});
}

/* The structure is as the driver's interface lays it out. */
typedef struct copy_2d {
    size_t from_x, from_y;
    uint32_t from_kind;
    const void *from_host;
    uint64_t from_device;
    void *from_array;
    size_t from_pitch, to_x, to_y;
    uint32_t to_kind;
    void *to_host;
    uint64_t to_device;
    void *to_array;
    size_t to_pitch, width, rows;
} copy_2d;

int cuMemcpy2DAsync_v2(const void *given, void *stream)
{
    const copy_2d *c = given;
    const int put = c->from_kind == 1 && c->to_kind == 2;
    (void)stream;
    if (!put && !(c->from_kind == 2 && c->to_kind == 1))
        return WRONG_VALUE;
    if (c->width > c->from_pitch || c->width > c->to_pitch)
        return WRONG_VALUE;
    return put_off((task){.what = put ? PUT : GET,
                          .there = (uint8_t *)(uintptr_t)(put ? c->to_device : c->from_device),
                          .here = put ? (uint8_t *)(uintptr_t)c->from_host : c->to_host,
                          .pitch = put ? c->to_pitch : c->from_pitch,
                          .here_pitch = put ? c->from_pitch : c->to_pitch,
                          .width = c->width, .rows = c->rows});
}

static int put_off_fill(uint64_t to, const void *element, size_t item, size_t n)
{
    task t = {.what = FILL, .there = (uint8_t *)(uintptr_t)to, .pitch = item, .width = item,
              .rows = n};
    memcpy(t.element, element, item);
    return to % item == 0 ? put_off(t) : WRONG_VALUE;
}

int cuMemsetD8Async(uint64_t to, uint8_t value, size_t n, void *stream)
{
    (void)stream;
    return put_off_fill(to, &value, 1, n);
}

int cuMemsetD16Async(uint64_t to, uint16_t value, size_t n, void *stream)
{
    (void)stream;
    return put_off_fill(to, &value, 2, n);
}

int cuMemsetD32Async(uint64_t to, uint32_t value, size_t n, void *stream)
{
    (void)stream;
    return put_off_fill(to, &value, 4, n);
}

/* ---- events -------------------------------- */

int cuEventCreate(void **out, unsigned flags)
{
    if (ncurrent == 0 || flags != 2 || fails_now())
        return NO_CONTEXT;
    *out = calloc(1, sizeof(unsigned long));
    __atomic_fetch_add(&fake_events, 1, __ATOMIC_RELAXED);
    return *out != NULL ? GOOD : FULL;
}

int cuEventRecord(void *event, void *stream)
{
    (void)stream;
    if (ncurrent == 0 || fails_now())
        return NO_CONTEXT;
    pthread_mutex_lock(&lock);
    *(unsigned long *)event = numbers;
    pthread_mutex_unlock(&lock);
    return GOOD;
}

int cuEventSynchronize(void *event)
{
    int rc = GOOD;
    if (ncurrent == 0)
        return NO_CONTEXT;
    pthread_mutex_lock(&lock);
    do_until(*(unsigned long *)event);
    if (fake_fails > 0 || (fake_fails_after > 0 && --fake_fails_after == 0)) {
        fake_fails = 0;
        rc = 700;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

int cuEventDestroy_v2(void *event)
{
    free(event);
    __atomic_fetch_sub(&fake_events, 1, __ATOMIC_RELAXED);
    return ncurrent > 0 ? GOOD : NO_CONTEXT;
}
