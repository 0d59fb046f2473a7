/*
 * Merging the chunks of one array three ways: what theirs changed since the base is laid over ours.
 *
 * Maps are compared by their nodes, so the work grows with the difference. A chunk that one side
 * changed is taken by its id. One that both changed is decoded, at most three times, merged element
 * by element and encoded once, on the pool; nothing is locked meanwhile, and memory is bounded by
 * the repository's budget.
 *
 * What an absent chunk holds is that side's own fill value. Outside of the base's shape the base is
 * fill value; outside of ours, or theirs, that side says nothing. What lies beyond the result's
 * shape is not compared, and becomes fill value in a chunk that is merged. docs/decisions/0022 has
 * the rest.
 */
#ifndef BRC_MERGE_MERGE_CHUNKS_H
#define BRC_MERGE_MERGE_CHUNKS_H

#include "../base/alloc.h"
#include "../base/hash.h"
#include "../history/snapshot.h"
#include "../nd/box.h"

/* ---- merge chunks -------------------------------- */

/* Kinds of conflicts. */
enum {
    BRC_CHUNK_ELEMENTS = 1, /* both changed elements of it, to different values              */
    BRC_CHUNK_UNIT,         /* both changed it, and it cannot be taken apart                 */
    BRC_CHUNK_FILL,         /* one side changed it, the other the fill value                 */
    BRC_CHUNK_LOST          /* one side changed what the other's shape no longer has         */
};

/* One a chunk. Everything is borrowed for the call. */
typedef struct brc_chunk_conflict {
    int kind;
    brc_span key;              /* as in the chunk map                                        */
    const brc_oid *base, *ours, *theirs; /* NULL: absent                                     */
    int side;                  /* of FILL and LOST: who changed the chunk, BRC_SIDE_OURS ... */
    int ndim;
    uint64_t elements;         /* how many; of UNIT and FILL all that the result has of it   */
    const uint64_t *first, *last; /* the box around them, in the array                       */
    brc_span mask;             /* which of the chunk's (nd/box.h); empty: all, or too many
                                  to list                                                    */
} brc_chunk_conflict;

enum { BRC_BASE_KNOWN, BRC_BASE_UNKNOWN, BRC_BASE_MADE }; /* what unknown() returns */

/* A chunk that bases were merged into. */
typedef struct brc_made_chunk {
    uint8_t *data; /* canonical bytes; NULL: fill value                              */
    size_t len;
    int unknown;   /* some elements are: those of the mask, or, where it is empty, all */
    brc_buf mask;  /* nd/box.h                                                 */
} brc_made_chunk;
#define BRC_MADE_CHUNK_INIT { NULL, 0, 0, BRC_BUF_INIT }
void brc_made_chunk_dispose(brc_made_chunk *made);

typedef struct brc_merge_chunks_ops {
    void *ctx;
    /* A chunk of the result that is not what ours has; id NULL: it is absent. On the caller's
     * thread, and in no order. Nothing is written here, as there may be no transaction: whoever
     * names the chunk later looks whether a collection of garbage has begun meanwhile, which may
     * have taken it. Where a conflict is open the chunk has its merged elements, with ours where
     * they conflict. NULL: a trial, in which nothing is stored. */
    int (*chunk)(void *ctx, brc_span key, const brc_oid *id, brc_error *err);
    /* Only where nothing is favoured; likewise. NULL: none are told. A chunk may have one of
     * LOST besides. */
    int (*conflict)(void *ctx, const brc_chunk_conflict *conflict, brc_error *err);
    /* Whether the bases do not agree on a chunk: BRC_BASE_UNKNOWN, and in *mask (borrowed until the
     * next call) which of its elements; empty: all. It is then unequal to both sides; where ours and
     * theirs are the same they merge. BRC_BASE_MADE: make() says. NULL: the base is known. */
    int (*unknown)(void *ctx, brc_span key, brc_span *mask, brc_error *err);
    /* The base's chunk, where unknown() gave BRC_BASE_MADE and ids do not settle it. On the caller's thread, within a
     * read that may be paused. */
    int (*make)(void *ctx, brc_span key, brc_made_chunk *out, brc_error *err);
} brc_merge_chunks_ops;

/* What the result's chunk map is. */
enum {
    BRC_CHUNKS_OURS = 1, /* that of ours, as it is                                           */
    BRC_CHUNKS_THEIRS,   /* that of theirs, as it is; chunk() was not called                 */
    BRC_CHUNKS_MIXED,    /* that of ours, with what chunk() was called with                  */
    BRC_CHUNKS_APART     /* none: grids or types differ, and both sides have changed chunks, or one
                            the shape: a conflict of the node. Nothing was called            */
};

typedef struct brc_chunk_merge {
    /* set by the caller */
    breccia *repo;
    const char *path;        /* for errors                                                   */
    brc_entry side[BRC_SIDES]; /* BRC_SIDE_BASE, _OURS, _THEIRS; the base's kind is 0 where there
                                  is none: then it is unknown everywhere                     */
    const brc_json *merged;  /* the result's document                                        */
    brc_oid storage;         /* ... and its storage options; zero: none                      */
    int favour;              /* 0; BRC_SIDE_OURS or _THEIRS: conflicts are settled with its values */
    const brc_merge_chunks_ops *ops;
    /* results */
    int map;                 /* BRC_CHUNKS_*                                                 */
    const char *why;         /* of _APART: a clause                                          */
    uint64_t conflicts;      /* chunks that have one, settled or not, those of LOST apart:   */
    uint64_t lost[BRC_SIDES]; /* elements that ours, or theirs, changed and that the result's shape
                                does not have, also where a side is favoured: with another shape
                                they are not lost                                            */
    uint64_t changed;        /* calls of chunk(), or as many as there would be               */
    uint64_t merged_chunks;  /* those that were decoded                                      */
} brc_chunk_merge;

/* Best called outside of any transaction: then it is a bulk write of its own, in short transactions,
 * and if it fails what it has stored is named by nobody. Within a bulk write it is a part of that.
 * Within a plain write it works too, and holds its lock all the time. Not within a read, unless it is
 * a trial. */
BRC_MUST_USE int brc_merge_chunks(brc_chunk_merge *merge, brc_error *err);

/* ---- base chunks -------------------------------- */

/*
 * Chunks of a merged base. Bases are merged by the ids of their chunks alone, and nothing is decoded
 * for it: a chunk that both of two bases changed gets an id of its own here, which says of what it is
 * merged. Its elements are merged where somebody asks for them, which few do; the chunks that it comes
 * from may be such chunks themselves. Elements on which bases do not agree are unknown.
 */

typedef struct brc_base_form brc_base_form;

typedef struct brc_base_chunks {
    brc_id_table ids; /* size_t: the number of a chunk, from 1 on         */
    void *items;      /* each after those that it is merged of            */
    size_t n, cap;
    brc_arena keys;
    brc_base_form *forms;
} brc_base_chunks;
#define BRC_BASE_CHUNKS_INIT { .ids = BRC_ID_TABLE_INIT(sizeof(size_t)), .keys = BRC_ARENA_INIT }
void brc_base_chunks_dispose(brc_base_chunks *b);

/* How one array's chunks are merged in one merge of bases: its versions, BRC_SIDE_BASE (kind 0: there is none, and all
 * is unknown) to _THEIRS, and the merged document. *out lasts as long as `b`; NULL: not by element. Within a read. */
BRC_MUST_USE int brc_base_form_new(const brc_base_form **out, brc_base_chunks *b, breccia *repo, const char *path,
                                   const brc_entry side[BRC_SIDES], const brc_json *merged, brc_error *err);
/* A chunk that is merged of these (zero: absent) gets an id; form NULL: it is unknown as a whole. */
BRC_MUST_USE int brc_base_chunk_new(brc_base_chunks *b, const brc_base_form *form, brc_store *store, brc_span key,
                                    const brc_oid of[BRC_SIDES], brc_oid *id, brc_error *err);
int brc_base_chunk_is(const brc_base_chunks *b, const brc_oid *id);
/* Its elements. At most the chunks of one chain of bases are in memory that are still needed. */
BRC_MUST_USE int brc_base_chunk_make(const brc_base_chunks *b, const brc_oid *id, brc_made_chunk *out, brc_error *err);

#endif
