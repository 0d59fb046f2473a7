/*
 * malloc(), calloc() and realloc() in front of the C library's own, in the manner that
 * its manual allows ("Replacing malloc"): the linker takes the program's first.
 */
#include "kit_alloc.h"

#include <errno.h>
#include <stdlib.h>

#include "sanitized.h"

static _Thread_local long kit_alloc_left = -1; /* -1: none fails                      */
static _Thread_local int kit_alloc_failed;

int kit_alloc_fail_after(long n)
{
    int failed = kit_alloc_failed;

    kit_alloc_left = n;
    kit_alloc_failed = 0;
    return failed;
}

#if defined(__GLIBC__) && !KIT_SANITIZED

int kit_alloc_works(void)
{
    return 1;
}

/* Returns 1 if this allocation is the one that has to fail. */
static int kit_alloc_is_due(void)
{
    if (kit_alloc_left < 0 || kit_alloc_left-- > 0)
        return 0;
    kit_alloc_failed = 1;
    errno = ENOMEM;
    return 1;
}

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *memory, size_t size);

void *malloc(size_t size)
{
    return kit_alloc_is_due() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return kit_alloc_is_due() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *memory, size_t size)
{
    return kit_alloc_is_due() ? NULL : __libc_realloc(memory, size);
}

#else

int kit_alloc_works(void)
{
    return 0;
}

#endif
