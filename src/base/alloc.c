/* Memory: every size is checked, and running out of it is an ordinary error. */
#include "alloc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)
#define BIG_MEMORY ((size_t)4 << 20)

int brc_new(void **out, size_t size, brc_error *err)
{
    return brc_new_array(out, 1, size, err);
}

int brc_new_array(void **out, size_t n, size_t size, brc_error *err)
{
    uint64_t bytes;
    *out = NULL;
    if (!brc_mul_u64(n, size, &bytes) || bytes > PTRDIFF_MAX)
        return brc_nomem(err);
    *out = calloc(1, bytes > 0 ? (size_t)bytes : 1);
    return *out ? BRC_OK : brc_nomem(err);
}

int brc_grow_array(void **array, size_t *cap, size_t need, size_t size, brc_error *err)
{
    if (need <= *cap)
        return BRC_OK;
    uint64_t wish = (uint64_t)*cap + *cap / 2;
    if (wish < 8)
        wish = 8;
    if (wish < need)
        wish = need;
    uint64_t bytes;
    if (!brc_mul_u64(wish, size, &bytes) || bytes > PTRDIFF_MAX)
        return brc_nomem(err);
    void *grown = realloc(*array, bytes > 0 ? (size_t)bytes : 1);
    if (!grown)
        return brc_nomem(err);
    *array = grown;
    *cap = (size_t)wish;
    return BRC_OK;
}

int brc_dup(char **out, const char *text, brc_error *err)
{
    return brc_dup_n(out, text, strlen(text), err);
}

int brc_dup_n(char **out, const char *text, size_t len, brc_error *err)
{
    *out = len < PTRDIFF_MAX ? malloc(len + 1) : NULL;
    if (!*out)
        return brc_nomem(err);
    if (len > 0)
        memcpy(*out, text, len);
    (*out)[len] = 0;
    return BRC_OK;
}

int brc_new_big(void **out, size_t len, brc_error *err)
{
    *out = NULL;
    if (len > PTRDIFF_MAX - HUGE_PAGE)
        return brc_nomem(err);
    if (len < BIG_MEMORY) {
        *out = malloc(len > 0 ? len : 1);
        return *out ? BRC_OK : brc_nomem(err);
    }
    size_t whole = (len + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    *out = aligned_alloc(HUGE_PAGE, whole);
    if (!*out)
        return brc_nomem(err);
#ifdef MADV_HUGEPAGE
    /* A hint: fresh small pages are filled at a quarter of the speed of huge ones. */
    (void)madvise(*out, whole, MADV_HUGEPAGE);
#endif
    return BRC_OK;
}
