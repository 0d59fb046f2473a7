/* Structures of different versions; every one begins with its size in bytes. */
#include "sized.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"

/* ==== sized ================================ */

/* The most bytes of a structure in any version: a larger size is uninitialized memory. */
#define SIZED_MAX ((size_t)1 << 16)

int brc_sized_check(size_t size, size_t least, const char *name, brc_error *err)
{
    if (size >= least && size <= SIZED_MAX && size % sizeof(size_t) == 0)
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL,
                    "a %s of %zu bytes is not one of this or an older breccia: initialize it with "
                    "its BRC_*_INIT",
                    name, size);
}

static size_t size_of_given(const void *given)
{
    size_t size;
    memcpy(&size, given, sizeof(size));
    return size;
}

int brc_sized_in(void *own, size_t known, size_t least, const void *given, const char *name,
                 brc_error *err)
{
    memset(own, 0, known);
    memcpy(own, &known, sizeof(known));
    if (given == NULL)
        return BRC_OK;
    const size_t size = size_of_given(given), head = sizeof(size);
    BRC_TRY(brc_sized_check(size, least, name, err));
    for (size_t i = known; i < size; i++)
        if (((const unsigned char *)given)[i] != 0)
            return brc_fail(err, BRC_EUNSUPPORTED,
                            "a field of the %s is set that breccia %d.%d.%d does not know: use "
                            "a newer breccia",
                            name, BRC_VERSION_MAJOR, BRC_VERSION_MINOR, BRC_VERSION_PATCH);
    memcpy((char *)own + head, (const char *)given + head, (size < known ? size : known) - head);
    return BRC_OK;
}

int brc_sized_out(void *given, const void *own, size_t known, size_t least, const char *name,
                  brc_error *err)
{
    const size_t size = size_of_given(given), head = sizeof(size);
    BRC_TRY(brc_sized_check(size, least, name, err));
    const size_t len = size < known ? size : known;
    memcpy((char *)given + head, (const char *)own + head, len - head);
    memset((char *)given + len, 0, size - len);
    return BRC_OK;
}

int brc_flags_check(uint32_t flags, uint32_t all, const char *name, brc_error *err)
{
    if ((flags & ~all) == 0)
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL, "%s has unknown flags: 0x%x", name,
                    (unsigned)(flags & ~all));
}

/* ==== iter ================================ */

struct brc_iter {
    brc_iter_next next;
    void (*dispose)(void *state);
    alignas(max_align_t) unsigned char state[];
};

int brc_iter_new(brc_iter **out, brc_iter_next next, size_t size, void (*dispose)(void *state),
                 brc_error *err)
{
    void *p;
    *out = NULL;
    BRC_TRY(brc_new(&p, sizeof(brc_iter) + size, err));
    *out = p;
    (*out)->next = next;
    (*out)->dispose = dispose;
    return BRC_OK;
}

void *brc_iter_state(brc_iter *it)
{
    return it->state;
}

int brc_next(brc_iter *it, void *item, brc_error *err)
{
    const void *found = NULL;
    int rc = it != NULL ? it->next(it->state, &found, err)
                        : brc_fail(err, BRC_EMISUSE, "there is no iterator: the call that makes "
                                                     "it has failed");
    if (rc <= 0)
        found = NULL;
    memcpy(item, &found, sizeof(found)); /* the caller's pointer is of another type */
    return rc;
}

void brc_iter_free(brc_iter *it)
{
    if (it == NULL)
        return;
    it->dispose(it->state);
    free(it);
}
