#include "iter.h"

#include <stdalign.h>
#include <stdlib.h>

#include "alloc.h"

struct brc_iter {
    int kind;
    void (*dispose)(void *state);
    alignas(max_align_t) unsigned char state[];
};

int brc_iter_new(brc_iter **out, int kind, size_t size, void (*dispose)(void *state),
                 brc_error *err)
{
    void *p;
    *out = NULL;
    BRC_TRY(brc_new(&p, sizeof(brc_iter) + size, err));
    *out = p;
    (*out)->kind = kind;
    (*out)->dispose = dispose;
    return BRC_OK;
}

void *brc_iter_state(brc_iter *it)
{
    return it->state;
}

int brc_iter_check(const brc_iter *it, int kind, brc_error *err)
{
    if (it != NULL && it->kind == kind)
        return BRC_OK;
    return brc_fail(err, BRC_EMISUSE,
                    "this is an iterator of another kind: another function made it");
}

void brc_iter_free(brc_iter *it)
{
    if (it == NULL)
        return;
    it->dispose(it->state);
    free(it);
}
