/* Chunks that both sides changed: what merge_chunks.c finds, and merge_decode.c decodes and merges. */
#ifndef BRC_MERGE_MERGE_DECODE_H
#define BRC_MERGE_MERGE_DECODE_H

#include "../zarr/array/array.h"
#include "merge_chunks.h"

/*
 * A merge of one array's chunks in progress, for the files that it is made of:
 *
 *      merge_chunks.c    what the sides are, which chunks differ, and what their ids settle
 *      merge_decode.c    the other chunks: decoded, merged, encoded, stored
 */

enum { BRC_RESULT = BRC_SIDES }; /* of `array`, behind the sides */
#define BRC_MERGE_BATCH 256

/* What is done with a chunk that ids alone do not settle. */
enum {
    BRC_TASK_MERGE = 1,
    BRC_TASK_FILL, /* `by` changed it and the other one the fill value: has `by` changed values? */
    BRC_TASK_LOST  /* has `by` changed what the result does not hold?                             */
};

typedef struct brc_merge_task {
    uint8_t key[BRC_CHUNK_KEY_MAX];
    size_t key_len;
    uint64_t index[BRC_MAX_NDIM];
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    uint64_t extent[BRC_SIDES + 1][BRC_MAX_NDIM]; /* what each holds of it, from its corner      */
    brc_oid id[BRC_SIDES];          /* zero: absent, or outside of that side                   */
    int was_there;                  /* ours has it, inside of its shape or not                 */
    int how, by;                    /* BRC_TASK_*, 0: none                                     */
    int emits;                      /* chunk() is to be called with this:                      */
    brc_oid result;                 /* zero: absent                                            */
    int conflict;                   /* BRC_CHUNK_*, 0: none                                    */
    int unknown;
    int is_made;                    /* the base is what make() gives                           */
    brc_buf mask;                   /* of the base                                             */
    brc_object object[BRC_SIDES];
    uint8_t *data[BRC_SIDES];       /* decoded; NULL: fill value                               */
    size_t len[BRC_SIDES];
    brc_box_merge box;
} brc_merge_task;

typedef struct brc_merge_plan {
    brc_chunk_merge *call;
    brc_store *store;
    brc_session view;
    brc_array array[BRC_SIDES + 1];
    int has_base, is_unit;
    int new_fill[BRC_SIDES];        /* this side alone has changed the fill value              */
    const uint8_t *fill[BRC_SIDES]; /* what an absent chunk of each holds: one element, or,    */
    brc_span spans[BRC_SIDES + 1];  /* of variable length, a span that points to it            */
    int losing;                     /* the side whose lost elements are counted; 0: the merge itself */
    brc_merge_task *tasks;
    size_t n;
    int wrote;
} brc_merge_plan;

static inline const brc_meta *brc_plan_meta(const brc_merge_plan *p, int side)
{
    return &p->array[side].meta;
}

/* merge_decode.c: the tasks that ask for it, and then their conflicts. */
BRC_MUST_USE int brc_merge_decode(brc_merge_plan *p, brc_error *err);
/* One task: its chunks that have ids are decoded; what its data are merged into goes to `own`, what conflicts to t->box. */
BRC_MUST_USE int brc_merge_task_read(brc_merge_plan *p, brc_merge_task *t, brc_error *err);
BRC_MUST_USE int brc_merge_task_run(const brc_merge_plan *p, brc_merge_task *t, brc_buf *own, brc_error *err);
/* Calls chunk() for those that need nothing else, and conflict() for those that have one. */
BRC_MUST_USE int brc_merge_tell(brc_merge_plan *p, size_t from, size_t to, brc_error *err);

#endif
