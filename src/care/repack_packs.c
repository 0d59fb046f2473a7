/* Small packs in other backends. Each commit that stores something adds at least one pack, so that
 * many small commits leave many small packs, each of which costs its readers a request of its
 * own. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../store/removed.h"
#include "repack.h"

/* Packs with fewer bytes that objects have are put together. Most changes of a repack store more
 * at once, so the packs that come of it are left alone by the next one. */
#define PACK_WORTH_KEEPING ((uint64_t)1 << 20)
/* The most objects that are handled in one call; the next call goes on. */
enum { PACK_OBJECTS_MOST = 1 << 20, PACKS_PAGE = 512 };

typedef struct small_pack {
    int64_t seq, backend;
    uint64_t live; /* bytes that objects have */
    int is_small;
} small_pack;

typedef struct pack_object {
    int64_t place;
    uint64_t offset, stored;
    brc_oid id;
} pack_object;

static small_pack *pack_at(const brc_repack_packs *p, size_t i)
{
    return (small_pack *)p->packs + i;
}

static int pack_order(const void *a, const void *b)
{
    const small_pack *x = a, *y = b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static int pack_object_order(const void *a, const void *b)
{
    const pack_object *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* ---- finding -------------------------------- */

/* Adds the pack, if its backend is one whose packs objects can leave. */
static int add_pack(brc_repack_packs *p, int64_t seq, int64_t backend, brc_error *err)
{
    brc_store_backend *b;
    if (brc_backend_use(p->store, backend, &b, NULL) < 0 || !brc_backend_moves(b))
        return BRC_OK;
    BRC_TRY(brc_grow_array(&p->packs, &p->packs_cap, p->npacks + 1, sizeof(small_pack), err));
    *pack_at(p, p->npacks++) = (small_pack){.seq = seq, .backend = backend};
    return BRC_OK;
}

static int list_packs(brc_repack_packs *p, brc_error *err)
{
    brc_buf name = BRC_BUF_INIT;
    int64_t seq = 0, backend = 0;
    int rc = BRC_OK;
    do {
        name.len = 0;
        rc = brc_store_begin_read(p->store, err);
        if (rc < 0)
            break;
        rc = brc_place_after(p->store, seq, &seq, &backend, &name, err);
        if (rc == BRC_OK && seq != 0)
            rc = add_pack(p, seq, backend, err);
        brc_store_end_read(p->store);
    } while (rc == BRC_OK && seq != 0);
    brc_buf_dispose(&name);
    return rc;
}

static small_pack *pack_of(const brc_repack_packs *p, const brc_object *o)
{
    const small_pack key = {.seq = o->place};
    if (!o->found || brc_is_in_file(o->backend) || o->place == 0 || p->npacks == 0)
        return NULL;
    small_pack *pack = bsearch(&key, p->packs, p->npacks, sizeof(key), pack_order);
    return pack != NULL && pack->backend == o->backend ? pack : NULL;
}

static int count_in_pack(brc_repack_packs *p, const brc_object *o, brc_error *err)
{
    small_pack *pack = pack_of(p, o);
    (void)err;
    if (pack != NULL)
        pack->live += o->stored;
    return BRC_OK;
}

static int add_in_pack(brc_repack_packs *p, const brc_object *o, brc_error *err)
{
    const small_pack *pack = pack_of(p, o);
    if (pack == NULL || !pack->is_small || p->nobjects == PACK_OBJECTS_MOST)
        return BRC_OK;
    BRC_TRY(brc_grow_array(&p->objects, &p->objects_cap, p->nobjects + 1, sizeof(pack_object),
                           err));
    ((pack_object *)p->objects)[p->nobjects++] =
        (pack_object){o->place, o->offset, o->stored, o->id};
    p->bytes += o->stored;
    return BRC_OK;
}

/* Calls each() with all objects: they have no index by place. */
static int each_object(brc_repack_packs *p,
                       int (*each)(brc_repack_packs *p, const brc_object *o, brc_error *err),
                       brc_error *err)
{
    void *page;
    brc_oid at;
    size_t n = 1;
    memset(&at, 0, sizeof(at));
    BRC_TRY(brc_new_array(&page, PACKS_PAGE, sizeof(brc_object), err));
    int rc = BRC_OK;
    while (n > 0 && rc == BRC_OK) {
        rc = brc_store_begin_read(p->store, err);
        if (rc < 0)
            break;
        rc = brc_objects_page(p->store, &at, page, PACKS_PAGE, &n, err);
        brc_store_end_read(p->store);
        for (size_t i = 0; i < n && rc == BRC_OK; i++) {
            at = ((brc_object *)page)[i].id;
            rc = each(p, (brc_object *)page + i, err);
        }
        if (rc == BRC_OK)
            rc = p->step(p->ctx, 0, err);
    }
    free(page);
    return rc;
}

/* Marks the small packs. One that is alone in its backend is as good as it can be. */
static void mark_small(brc_repack_packs *p)
{
    for (size_t i = 0; i < p->npacks; i++) {
        small_pack *one = pack_at(p, i);
        size_t others = 0;
        if (one->live == 0 || one->live >= PACK_WORTH_KEEPING)
            continue;
        for (size_t k = 0; k < p->npacks && others == 0; k++) {
            const small_pack *other = pack_at(p, k);
            others += k != i && other->backend == one->backend && other->live > 0 &&
                      other->live < PACK_WORTH_KEEPING;
        }
        one->is_small = others > 0;
        if (one->is_small)
            p->count++;
    }
}

int brc_repack_packs_find(brc_repack_packs *p, brc_error *err)
{
    BRC_TRY(list_packs(p, err));
    if (p->npacks < 2)
        return BRC_OK;
    BRC_TRY(each_object(p, count_in_pack, err));
    mark_small(p);
    if (p->count > 0)
        BRC_TRY(each_object(p, add_in_pack, err));
    if (p->nobjects > 1)
        qsort(p->objects, p->nobjects, sizeof(pack_object), pack_object_order);
    return BRC_OK;
}

int brc_repack_packs_next(brc_repack_packs *p, brc_again_item *out)
{
    if (p->at == p->nobjects)
        return 0;
    const pack_object *one = (const pack_object *)p->objects + p->at++;
    *out = (brc_again_item){
        .id = one->id, .kind = BRC_AGAIN_LEAVE, .as.left.place = one->place};
    return 1;
}

void brc_repack_packs_dispose(brc_repack_packs *p)
{
    free(p->packs);
    free(p->objects);
}
