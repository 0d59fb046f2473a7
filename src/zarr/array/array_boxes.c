/*
 * The elements of a selection, box by box and in any order, on the threads that decode them.
 *
 * One read flow goes through all boxes, so no thread waits at the end of a box. A box gets its
 * memory when its chunks are listed. The thread that has placed the last of its chunks hands it
 * over, while the others decode those of the next boxes:
 *
 *      caller   | list 0 | list 1 | list 2 |
 *      workers           | decode 0 .. | decode 1 .. | decode 2 .. |
 *                                      | put 0 |     | put 1 |     | put 2 |
 *
 * Writes into one file wait for each other in the system, so one thread at a time hands over what
 * is complete. If boxes become complete faster, threads hand over their own: memory stays bounded.
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/pool.h"
#include "../../nd/shape.h"
#include "../transfer.h"
#include "chunk_cursor.h"
#include "region.h"

/* ==== array boxes ================================ */

enum {
    BOX_BYTES = 8 << 20,  /* of a box, if its rows are long enough then          */
    ONE_ROW = 32 << 20,   /* of a box that is one row: a long write costs an eighth less */
    ROW_BYTES = 32 << 10, /* the least that is worth a write of its own          */
    OF_MEMORY = 8,        /* a box takes this part of the handle's memory at most */
    MOST_WAITING = 2,     /* boxes that are complete and wait for the one that hands over */
    LOOK_UP = 256         /* chunks that are looked up at once                   */
};

typedef struct element_box {
    struct element_box *next; /* of those that are idle, or that wait             */
    struct element_box *made; /* the one that was made before                     */
    brc_region region;
    uint64_t at[BRC_MAX_NDIM]; /* in the selection                                */
    uint8_t *data;    /* NULL: a chunk is handed over as it is                    */
    uint64_t left;    /* chunks that have not been placed: atomic                 */
} element_box;

typedef struct box_reader {
    brc_array *a;
    const brc_box_sink *sink;
    brc_cut cut;
    size_t most;      /* bytes of the largest box                                 */
    int as_they_are;  /* each box is a chunk whose elements lie as in its box     */
    element_box *box; /* the one whose chunks are being listed, or NULL           */
    uint64_t listed;  /* of its chunks                                            */
    uint64_t *indexes; /* LOOK_UP chunks                                          */
    brc_oid *ids;
    brc_lock *lock;   /* of these:                                                */
    element_box *all, *idle, *waiting;
    unsigned nwaiting, putting;
} box_reader;

/* ---- boxes -------------------------------- */

static void box_free_all(element_box *box)
{
    while (box != NULL) {
        element_box *before = box->made;
        free(box->data);
        free(box);
        box = before;
    }
}

static int box_new(element_box **out, box_reader *r, brc_error *err)
{
    void *p;
    brc_lock_enter(r->lock);
    *out = r->idle;
    if (*out != NULL)
        r->idle = (*out)->next;
    brc_lock_leave(r->lock);
    if (*out != NULL)
        return BRC_OK;
    BRC_TRY(brc_new(&p, sizeof(element_box), err));
    *out = p;
    (*out)->made = r->all;
    r->all = *out;
    return BRC_OK;
}

/* Gives the box its memory, if it has none: chunks that are handed over as they are need none. */
static int box_memory(const box_reader *r, element_box *box, brc_error *err)
{
    return box->data == NULL ? brc_new_big((void **)&box->data, r->most, err) : BRC_OK;
}

static void box_give_back(box_reader *r, element_box *box)
{
    brc_lock_enter(r->lock);
    box->next = r->idle;
    r->idle = box;
    brc_lock_leave(r->lock);
}

static int box_put(box_reader *r, element_box *box, const uint8_t *data, brc_error *err)
{
    const int rc = r->sink->put(r->sink->ctx, box->at, box->region.sel.count, data, err);
    box_give_back(r, box);
    return rc;
}

/* Hands over a box whose chunks are all there, and then those that have become complete meanwhile;
 * or leaves it to the thread that is at it. */
static int box_complete(box_reader *r, element_box *box, brc_error *err)
{
    int rc = BRC_OK;
    brc_lock_enter(r->lock);
    if (r->putting > 0 && r->nwaiting < MOST_WAITING) {
        box->next = r->waiting;
        r->waiting = box;
        r->nwaiting++;
        box = NULL;
    } else {
        r->putting++;
    }
    brc_lock_leave(r->lock);
    while (box != NULL) {
        rc = box_put(r, box, box->data, err);
        brc_lock_enter(r->lock);
        box = rc < 0 ? NULL : r->waiting;
        if (box != NULL) {
            r->waiting = box->next;
            r->nwaiting--;
        } else {
            r->putting--;
        }
        brc_lock_leave(r->lock);
    }
    return rc;
}

/* Notes that chunks of the box are in their place, which the last thread to do so hands over. */
static int box_placed(box_reader *r, element_box *box, uint64_t chunks, brc_error *err)
{
    return chunks > 0 && __atomic_sub_fetch(&box->left, chunks, __ATOMIC_ACQ_REL) == 0
               ? box_complete(r, box, err)
               : BRC_OK;
}

/* ---- listing -------------------------------- */

/* Begins the next box. Returns 0 if there are no more. */
static int next_box(box_reader *r, brc_error *err)
{
    if (!brc_cut_next(&r->cut))
        return 0;
    BRC_TRY(box_new(&r->box, r, err));
    memcpy(r->box->at, r->cut.at, sizeof(r->box->at));
    BRC_TRY(brc_region_init(&r->box->region, r->a, &r->cut.sel, NULL, NULL, err));
    r->box->left = r->box->region.nchunks;
    r->listed = 0;
    if (!r->as_they_are)
        BRC_TRY(box_memory(r, r->box, err));
    return 1;
}

/* Sets an absent chunk's part to the fill value. */
static int fill_absent(const box_reader *r, element_box *box, uint64_t number, brc_error *err)
{
    brc_region_part part;
    BRC_TRY(box_memory(r, box, err));
    brc_region_part_of(&part, r->a, &box->region, number);
    brc_region_fill(r->a, &box->region, &part, box->data, r->a->meta.fill.data);
    return BRC_OK;
}

/* Lists the next chunks of the box, at most cap. *absent: how many have no element. */
static int list_box(box_reader *r, brc_read_item *items, size_t cap, size_t *n, uint64_t *absent,
                    brc_error *err)
{
    element_box *box = r->box;
    const size_t ndim = (size_t)r->a->meta.ndim;
    uint64_t left = box->region.nchunks - r->listed;
    size_t some = cap < LOOK_UP ? cap : LOOK_UP;
    some = left < some ? (size_t)left : some;
    for (size_t i = 0; i < some; i++)
        brc_region_chunk(&box->region, (int)ndim, r->listed + i, r->indexes + i * ndim);
    BRC_TRY(brc_array_chunk_ids(r->a, some, r->indexes, r->ids, err));
    for (size_t i = 0; i < some; i++) {
        if (brc_oid_is_zero(&r->ids[i])) {
            BRC_TRY(fill_absent(r, box, r->listed + i, err));
            ++*absent;
            continue;
        }
        items[*n].object.id = r->ids[i];
        items[*n].number = r->listed + i;
        items[(*n)++].owner = box;
    }
    r->listed += some;
    return BRC_OK;
}

/* A box without any chunk is handed over here. */
static int element_boxes_list(void *ctx, brc_read_item *items, size_t cap, size_t *n,
                              brc_error *err)
{
    box_reader *r = ctx;
    uint64_t absent = 0;
    if (r->a->is_frozen)
        BRC_TRY(brc_array_follow(r->a, err));
    if (r->box == NULL) {
        const int more = next_box(r, err);
        if (more <= 0)
            return more;
    }
    element_box *box = r->box;
    if (box->region.nchunks > 0)
        BRC_TRY(list_box(r, items, cap, n, &absent, err));
    if (r->listed == box->region.nchunks)
        r->box = NULL;
    if (*n == 0)
        brc_store_pause_read(brc_array_store(r->a));
    BRC_TRY(box_placed(r, box, absent, err));
    return BRC_READ_MORE;
}

/* ---- decoding -------------------------------- */

static int element_boxes_open(void *ctx, brc_read_item *item, brc_error *err)
{
    const box_reader *r = ctx;
    const element_box *box = item->owner;
    uint64_t index[BRC_MAX_NDIM];
    brc_region_chunk(&box->region, r->a->meta.ndim, item->number, index);
    BRC_TRY(brc_chunk_item(item, r->a, index, err));
    item->makes = item->len; /* its part of the box */
    return BRC_OK;
}

static int element_boxes_place(void *ctx, brc_read_item *item, const uint8_t *data,
                               brc_scratch *scratch, brc_error *err)
{
    box_reader *r = ctx;
    element_box *box = item->owner;
    brc_region_part part;
    int rc;
    (void)scratch;
    brc_region_part_of(&part, r->a, &box->region, item->number);
    if (r->as_they_are && part.full) {
        rc = box_put(r, box, data, err);
    } else {
        BRC_TRY(box_memory(r, box, err));
        brc_region_take(r->a, &box->region, &part, box->data, data);
        rc = box_placed(r, box, 1, err);
    }
    item->part = rc < 0;
    return rc;
}

/* Sets the smallest box around the selected elements. */
static int element_boxes_box(void *ctx, const brc_read_item *item, brc_box *out)
{
    const box_reader *r = ctx;
    const element_box *box = item->owner;
    const int ndim = r->a->meta.ndim;
    brc_region_part part;
    brc_region_part_of(&part, r->a, &box->region, item->number);
    if (part.full || brc_shape_count(ndim, part.overlap.count) == 0 ||
        !brc_chain_has_boxes(item->chain, ndim, part.chunk))
        return 0;
    for (int i = 0; i < ndim; i++) {
        out->start[i] = part.overlap.in_chunk[i];
        out->count[i] = (part.overlap.count[i] - 1) * box->region.sel.step[i] + 1;
    }
    return 1;
}

/* A message of the sink names what it could not write, which may be of another chunk. */
static void element_boxes_name(void *ctx, const brc_read_item *item, brc_error *err)
{
    const box_reader *r = ctx;
    const element_box *box = item->owner;
    uint64_t index[BRC_MAX_NDIM];
    if (item->part)
        return;
    if (r->a->meta.readable == BRC_READABLE_IN_PART)
        brc_context(err, "decoded without the codecs that are not known here");
    brc_region_chunk(&box->region, r->a->meta.ndim, item->number, index);
    brc_array_name_chunk(r->a, index, err);
}

/* By then the item's box may be another one. */
static int element_boxes_passed(void *ctx, const brc_read_item *item, brc_error *err)
{
    const box_reader *r = ctx;
    return brc_task_step(r->a->session->repo, item != NULL ? item->makes : 0, err);
}

/* ---- the whole -------------------------------- */

/* Returns the bytes of a box that lie one behind the other in the selection. */
static uint64_t row_bytes(const brc_cut *cut, size_t item)
{
    uint64_t bytes = item;
    for (int i = cut->within.ndim; i-- > 0;) {
        bytes = brc_mul_capped(bytes, cut->extent[i]);
        if (cut->extent[i] < cut->within.count[i])
            return bytes;
    }
    return UINT64_MAX; /* all of it is one box */
}

/* Cuts into boxes of this many bytes. Returns whether each has rows of `least` bytes or is one. */
static int cut_with(box_reader *r, const brc_sel *sel, uint64_t budget, uint64_t least)
{
    const size_t item = r->a->meta.type->item_size;
    brc_cut_chunks(&r->cut, sel, r->a->meta.grid.chunk, item, budget);
    const uint64_t row = row_bytes(&r->cut, item);
    return row >= least || row >= brc_mul_capped(r->cut.most, item);
}

/* Cuts the selection into boxes. Returns 0 if their rows would be short, or a box too large. */
static int cut_into_boxes(box_reader *r, const brc_sel *sel)
{
    const brc_meta *m = &r->a->meta;
    const size_t item = m->type->item_size, memory = r->a->session->repo->pipe.memory / OF_MEMORY;
    uint64_t bytes = 0, budget = BOX_BYTES;
    if (item == 0 || !m->grid.regular || brc_shape_count(sel->ndim, sel->count) == 0)
        return 0;
    while (!cut_with(r, sel, budget < memory ? budget : memory, UINT64_MAX) && budget < ONE_ROW)
        budget *= 2;
    if (!cut_with(r, sel, budget < memory ? budget : memory, UINT64_MAX))
        for (budget = BOX_BYTES; budget <= BRC_SLAB_BYTES; budget *= 2)
            if (cut_with(r, sel, budget < memory ? budget : memory, ROW_BYTES))
                break;
    return budget <= BRC_SLAB_BYTES && brc_cut_is_whole(&r->cut, m->grid.chunk) &&
           brc_mul_u64(r->cut.most, item, &bytes) && bytes <= memory &&
           brc_to_size(bytes, &r->most);
}

/* Takes chunks as they are if they are long, and lie in the selection as in their own memory. */
static void take_as_they_are(box_reader *r, const brc_sel *sel)
{
    const brc_meta *m = &r->a->meta;
    enum { LONG = 256 << 10 };
    uint64_t bytes = m->type->item_size;
    brc_cut one;
    brc_cut_chunks(&one, sel, m->grid.chunk, m->type->item_size, 1);
    for (int i = 0; i < m->ndim; i++) {
        bytes = brc_mul_capped(bytes, one.extent[i]);
        if (one.extent[i] != m->grid.chunk[i] || sel->step[i] != 1)
            return;
    }
    r->as_they_are = bytes >= LONG && row_bytes(&one, m->type->item_size) >= bytes;
    if (!r->as_they_are)
        return;
    r->cut = one;
    r->most = (size_t)bytes; /* a box is not smaller */
}

static int read_boxes(box_reader *r, brc_error *err)
{
    breccia *repo = r->a->session->repo;
    const brc_read_ops ops = {.ctx = r,
                              .list = element_boxes_list,
                              .open = element_boxes_open,
                              .place = element_boxes_place,
                              .box = element_boxes_box,
                              .passed = element_boxes_passed,
                              .name = element_boxes_name};
    const uint64_t bytes = brc_mul_capped(
        brc_shape_count(r->cut.within.ndim, r->cut.within.count), r->a->meta.type->item_size);
    brc_task task = brc_task_begin(repo, "read", bytes);
    const int rc = brc_flow_read(&repo->pipe, repo->store, &ops, err);
    brc_task_end(repo, &task, rc);
    return rc;
}

static int start_boxes(box_reader *r, const brc_sel *sel, brc_error *err)
{
    void *p;
    if (!cut_into_boxes(r, sel))
        return 0;
    take_as_they_are(r, sel);
    BRC_TRY(brc_lock_new(&r->lock, err));
    BRC_TRY(brc_new_array(&p, LOOK_UP, sizeof(brc_oid) + BRC_MAX_NDIM * sizeof(uint64_t), err));
    r->ids = p;
    r->indexes = (uint64_t *)(r->ids + LOOK_UP);
    BRC_TRY(read_boxes(r, err));
    return 1;
}

int brc_element_runs_boxes(brc_element_runs *runs, const brc_box_sink *sink, brc_error *err)
{
    box_reader r = {.a = runs->a, .sink = sink};
    BRC_TRY(brc_array_begin_read(r.a, err));
    const int rc = start_boxes(&r, &runs->cut.within, err);
    brc_array_end_read(r.a);
    box_free_all(r.all);
    free(r.ids);
    brc_lock_free(r.lock);
    return rc;
}
