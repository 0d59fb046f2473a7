/*
 * malloc and its relatives for the whole program, the shared libraries included: they
 * hand on to glibc's own, which it also has under other names. What a thread of the
 * pool allocates counts like everything else.
 */
#include "fail_alloc.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

EXPORT void *memalign(size_t alignment, size_t size);

static atomic_long alloc_left, alloc_failed, alloc_live;
static atomic_int alloc_armed, alloc_forever;
static _Atomic(const void *) alloc_asker;

void fail_alloc_start(long n, int forever)
{
    atomic_store(&alloc_left, n);
    atomic_store(&alloc_failed, 0);
    atomic_store(&alloc_forever, forever);
    atomic_store(&alloc_armed, 1);
}

long fail_alloc_stop(void)
{
    atomic_store(&alloc_armed, 0);
    return atomic_load(&alloc_failed);
}

const void *fail_alloc_asker(void)
{
    return atomic_load(&alloc_asker);
}

long fail_alloc_live(void)
{
    return atomic_load(&alloc_live);
}

static int alloc_fails(const void *asker)
{
    if (!atomic_load_explicit(&alloc_armed, memory_order_relaxed))
        return 0;
    long left = atomic_fetch_sub(&alloc_left, 1);
    if (left > 1 || (left < 1 && !atomic_load(&alloc_forever)))
        return 0;
    if (atomic_fetch_add(&alloc_failed, 1) == 0)
        atomic_store(&alloc_asker, asker);
    errno = ENOMEM;
    return 1;
}

static void *alloc_count(void *memory)
{
    if (memory != NULL)
        atomic_fetch_add(&alloc_live, 1);
    return memory;
}

EXPORT void *malloc(size_t size)
{
    return alloc_fails(__builtin_return_address(0)) ? NULL : alloc_count(__libc_malloc(size));
}

EXPORT void *calloc(size_t n, size_t size)
{
    return alloc_fails(__builtin_return_address(0)) ? NULL : alloc_count(__libc_calloc(n, size));
}

EXPORT void *realloc(void *old, size_t size)
{
    if (old == NULL)
        return malloc(size);
    if (size > 0 && alloc_fails(__builtin_return_address(0)))
        return NULL;
    void *memory = __libc_realloc(old, size);
    if (memory == NULL && size == 0)
        atomic_fetch_sub(&alloc_live, 1);
    return memory;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    if (alloc_fails(__builtin_return_address(0)))
        return NULL;
    return alloc_count(__libc_memalign(alignment, size));
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
    *out = memalign(alignment, size);
    return *out != NULL ? 0 : ENOMEM;
}

EXPORT void free(void *memory)
{
    if (memory != NULL)
        atomic_fetch_sub(&alloc_live, 1);
    __libc_free(memory);
}
