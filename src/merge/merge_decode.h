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

enum { BRC_RESULT = BRC_SIDES }; /* the index of the result in `array`, after the sides */
#define BRC_MERGE_BATCH 256

/* How a chunk is handled that ids alone do not settle. */
enum {
    BRC_TASK_MERGE = 1,
    BRC_TASK_FILL, /* side `by` changed the chunk and the other side the fill value: has `by` changed
                    * values? */
    BRC_TASK_LOST  /* has side `by` changed elements that the result does not have?               */
};

typedef struct brc_merge_task {
    uint8_t key[BRC_CHUNK_KEY_MAX];
    size_t key_len;
    uint64_t index[BRC_MAX_NDIM];
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    uint64_t extent[BRC_SIDES + 1][BRC_MAX_NDIM]; /* how much of the chunk each side has, from the chunk's
                                                   * corner */
    brc_oid id[BRC_SIDES];          /* zero: absent, or outside that side                      */
    int was_there;                  /* ours has the chunk, inside its shape or not             */
    int how, by;                    /* BRC_TASK_*, 0: none; the side                           */
    int emits;                      /* chunk() is called with `result`:                        */
    brc_oid result;                 /* zero: absent                                            */
    int conflict;                   /* BRC_CHUNK_*, 0: none                                    */
    int unknown;
    int is_made;                    /* make() returns the base                                 */
    brc_buf mask;                   /* the unknown elements of the base                        */
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
    int new_fill[BRC_SIDES];        /* only this side has changed the fill value               */
    const uint8_t *fill[BRC_SIDES]; /* the content of an absent chunk of each side: one element, or, */
    brc_span spans[BRC_SIDES + 1];  /* for variable length, a span that points to it           */
    int losing;                     /* the side whose lost elements are counted; 0: the merge itself */
    brc_merge_task *tasks;
    size_t n;
    int wrote;
} brc_merge_plan;

static inline const brc_meta *brc_plan_meta(const brc_merge_plan *p, int side)
{
    return &p->array[side].meta;
}

/* Handles the tasks that need decoding, then reports their conflicts (merge_decode.c). */
BRC_MUST_USE int brc_merge_decode(brc_merge_plan *p, brc_error *err);
/* Handles one task: reads and decodes its stored chunks, and merges them into `own`, with the
 * conflicts in t->box. */
BRC_MUST_USE int brc_merge_task_read(brc_merge_plan *p, brc_merge_task *t, brc_error *err);
BRC_MUST_USE int brc_merge_task_run(const brc_merge_plan *p, brc_merge_task *t, brc_buf *own, brc_error *err);
/* Calls chunk() for the tasks that are settled, and conflict() for those in conflict. */
BRC_MUST_USE int brc_merge_tell(brc_merge_plan *p, size_t from, size_t to, brc_error *err);

#endif
