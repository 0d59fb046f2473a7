/*
 * Merges the chunks of one array three ways: changes of theirs since the base are applied to ours.
 *
 * Maps are compared node by node, so the work grows with the difference. A chunk that one side
 * changed is taken by its id. A chunk that both sides changed is decoded (at most three versions),
 * merged element by element and encoded once, on the pool. No lock is held meanwhile, and the
 * repository's memory budget bounds the memory.
 *
 * An absent chunk holds the fill value of its own side. Outside the shape of the base, the base
 * holds fill value; outside the shape of ours or theirs, that side has no opinion. Elements beyond
 * the result's shape are not compared, and become fill value in a merged chunk. docs/decisions/0022
 * has the details.
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
    BRC_CHUNK_ELEMENTS = 1, /* both sides changed some of its elements to different values   */
    BRC_CHUNK_UNIT,         /* both sides changed it, and it cannot be merged by element     */
    BRC_CHUNK_FILL,         /* one side changed the chunk, the other the fill value          */
    BRC_CHUNK_LOST          /* one side changed elements that the other side's shape no longer has */
};

/* One conflict; a chunk has at most one. Everything is borrowed for the call. */
typedef struct brc_chunk_conflict {
    int kind;
    brc_span key;              /* the chunk's key in the chunk map                           */
    const brc_oid *base, *ours, *theirs; /* NULL: absent                                     */
    int side;                  /* of FILL and LOST: the side that changed the chunk, BRC_SIDE_OURS or
                                * _THEIRS */
    int ndim;
    uint64_t elements;         /* number of elements in conflict; of UNIT and FILL all that the result has
                                * of the chunk */
    const uint64_t *first, *last; /* the box around the elements, in the array               */
    brc_span mask;             /* which elements of the chunk (nd/box.h); empty: all of them, or too many
                                * to list */
} brc_chunk_conflict;

enum { BRC_BASE_KNOWN, BRC_BASE_UNKNOWN, BRC_BASE_MADE }; /* results of unknown() */

/* A chunk that was merged from several bases. */
typedef struct brc_made_chunk {
    uint8_t *data; /* canonical bytes; NULL: fill value                              */
    size_t len;
    int unknown;   /* some elements are unknown: those in the mask, or all if the mask is empty */
    brc_buf mask;  /* see nd/box.h                                             */
} brc_made_chunk;
#define BRC_MADE_CHUNK_INIT { NULL, 0, 0, BRC_BUF_INIT }
void brc_made_chunk_dispose(brc_made_chunk *made);

typedef struct brc_merge_chunks_ops {
    void *ctx;
    /* Called for each chunk of the result that differs from ours; id NULL: the chunk is absent. It
     * is called on the caller's thread, in no particular order. It must write nothing, because
     * there may be no transaction. Before the chunk is named later, the caller must check that no
     * garbage collection has begun meanwhile, which may have removed it. If a conflict is open, the
     * chunk has its merged elements, with the elements of ours where they conflict. NULL: a trial,
     * in which nothing is stored. */
    int (*chunk)(void *ctx, brc_span key, const brc_oid *id, brc_error *err);
    /* Called for each conflict, in the same way, but only if no side is favoured. NULL: conflicts
     * are not reported. A chunk may have a conflict of LOST in addition. */
    int (*conflict)(void *ctx, const brc_chunk_conflict *conflict, brc_error *err);
    /* Says whether the bases disagree on a chunk. BRC_BASE_UNKNOWN: they do, and *mask (borrowed
     * until the next call) says on which elements; empty: on all. The base is then unequal to both
     * sides, and elements that are the same in ours and theirs merge. BRC_BASE_MADE: make() returns
     * the base. NULL: the base is known. */
    int (*unknown)(void *ctx, brc_span key, brc_span *mask, brc_error *err);
    /* Returns the base's chunk if unknown() returned BRC_BASE_MADE and ids do not settle the chunk.
     * It is called on the caller's thread, within a read that may be paused. */
    int (*make)(void *ctx, brc_span key, brc_made_chunk *out, brc_error *err);
} brc_merge_chunks_ops;

/* The chunk map of the result. */
enum {
    BRC_CHUNKS_OURS = 1, /* the map of ours, unchanged                                       */
    BRC_CHUNKS_THEIRS,   /* the map of theirs, unchanged; chunk() was not called             */
    BRC_CHUNKS_MIXED,    /* the map of ours with the changes passed to chunk()               */
    BRC_CHUNKS_APART     /* no map: grids or types differ, and both sides changed chunks, or one side the
                          * shape. The node is in conflict, and no function was called */
};

typedef struct brc_chunk_merge {
    /* set by the caller */
    breccia *repo;
    const char *path;        /* for errors                                                   */
    brc_entry side[BRC_SIDES]; /* BRC_SIDE_BASE, _OURS, _THEIRS; the base's kind is 0 if there is no base:
                                * then it is unknown everywhere */
    const brc_json *merged;  /* the result's document                                        */
    brc_oid storage;         /* the result's storage options; zero: none                     */
    int favour;              /* BRC_SIDE_OURS or _THEIRS: conflicts are settled with the values of that
                              * side; 0: neither */
    const brc_merge_chunks_ops *ops;
    /* results */
    int map;                 /* BRC_CHUNKS_*                                                 */
    const char *why;         /* of BRC_CHUNKS_APART: a clause that says why                  */
    uint64_t conflicts;      /* number of chunks in conflict, settled or not, without those of LOST */
    uint64_t lost[BRC_SIDES]; /* number of elements that ours, or theirs, changed and that are outside the
                               * result's shape, also if a side is favoured; a larger shape would keep them */
    uint64_t changed;        /* number of calls of chunk(), or as many as a trial would make */
    uint64_t merged_chunks;  /* number of chunks that were decoded                           */
} brc_chunk_merge;

/* Merges the chunks. It is best called outside of any transaction: then it is a bulk write of its
 * own, in short transactions, and if it fails, nothing names what it has stored. Within a bulk
 * write it is part of that bulk write. Within a plain write it works too, but holds the lock all
 * the time. It must not be called within a read, unless it is a trial. */
BRC_MUST_USE int brc_merge_chunks(brc_chunk_merge *merge, brc_error *err);

/* ---- base chunks -------------------------------- */

/*
 * Chunks of a merged base. Bases are merged by the ids of their chunks alone, without decoding: a
 * chunk that both of two bases changed gets an id of its own here, which says what it is merged
 * from. Its elements are merged only if they are needed, which is rare. It may itself be merged
 * from such chunks. Elements on which the bases disagree are unknown.
 */

typedef struct brc_base_form brc_base_form;

typedef struct brc_base_chunks {
    brc_id_table ids; /* size_t: the number of a chunk, from 1 on         */
    void *items;      /* each chunk comes after the chunks that it is merged from */
    size_t n, cap;
    brc_arena keys;
    brc_base_form *forms;
} brc_base_chunks;
#define BRC_BASE_CHUNKS_INIT { .ids = BRC_ID_TABLE_INIT(sizeof(size_t)), .keys = BRC_ARENA_INIT }
void brc_base_chunks_dispose(brc_base_chunks *b);

/* Describes how the chunks of one array are merged in one merge of bases: its versions
 * BRC_SIDE_BASE (kind 0: there is no base, and everything is unknown) to BRC_SIDE_THEIRS, and the
 * merged document. *out lives as long as `b`; it is NULL if the array cannot be merged by element.
 * Must be called within a read. */
BRC_MUST_USE int brc_base_form_new(const brc_base_form **out, brc_base_chunks *b, breccia *repo, const char *path,
                                   const brc_entry side[BRC_SIDES], const brc_json *merged, brc_error *err);
/* Gives an id to a chunk that is merged from these chunks (zero: absent). If `form` is NULL, the
 * whole chunk is unknown. */
BRC_MUST_USE int brc_base_chunk_new(brc_base_chunks *b, const brc_base_form *form, brc_store *store, brc_span key,
                                    const brc_oid of[BRC_SIDES], brc_oid *id, brc_error *err);
int brc_base_chunk_is(const brc_base_chunks *b, const brc_oid *id);
/* Computes the elements of such a chunk. It keeps in memory only those chunks of one chain of bases
 * that are still needed. */
BRC_MUST_USE int brc_base_chunk_make(const brc_base_chunks *b, const brc_oid *id, brc_made_chunk *out, brc_error *err);

#endif
