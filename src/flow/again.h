/*
 * Stores objects again: in another backend, in another encoding, or both. Ids and contents stay.
 *
 * The caller lists objects in any order and as often as it likes; those that are as they should be are left out, so a
 * run that was stopped goes on where it was if it is begun anew. New bytes are durable before the object's row names
 * them, and the old bytes are free from then on (store/removed.h).
 */
#ifndef BRC_FLOW_AGAIN_H
#define BRC_FLOW_AGAIN_H

#include "write.h"

typedef enum brc_again_kind {
    BRC_AGAIN_ENCODE = 1, /* in an encoding, in a backend, or both: as.encoded    */
    BRC_AGAIN_LEAVE,      /* as it is, but not in a place in which it may lie: as.left */
    BRC_AGAIN_DIFFER      /* as a difference from another object, if that saves enough: as.different */
} brc_again_kind;

/* How an object should be stored. */
typedef struct brc_again_item {
    brc_oid id;
    brc_again_kind kind;
    union {
        struct {
            const brc_chain *chain; /* NULL: in its present encoding                       */
            const char *spec;       /* of the chain's encoding; NULL: the bytes as they are */
            uint64_t digest;        /* brc_hash_encoding() of the encoding                 */
            int64_t encoding;       /* its number; -1: it has none yet                     */
            int64_t backend;        /* -1: in its present backend                          */
            int moves;              /* 0: the object moves only if its encoding changes    */
        } encoded;
        struct {
            int64_t place;          /* the object goes to another one of its backend       */
        } left;
        struct {
            brc_oid base;           /* the other object                                    */
            uint64_t most_depth;    /* the most differences up to one that is stored whole */
        } different;
    } as;
} brc_again_item;

typedef struct brc_again {
    brc_pipe *pipe;
    brc_store *store;
    void *ctx;
    /* Caller's thread: sets the next item and returns 1, or returns 0 at the end. What the item points to stays until
     * the run ends. */
    int (*next)(void *ctx, brc_again_item *out, brc_error *err);
    /* Caller's thread: says how many bytes of content were handled since the last call. */
    int (*step)(void *ctx, uint64_t bytes, brc_error *err);
    /* Any thread: puts the object's name before an error. */
    void (*name)(void *ctx, const brc_oid *id, brc_error *err);
    int leaves; /* an object that cannot be read stays as it is, and the run goes on; a server that cannot be asked ends
                 * the run */
    /* The result. */
    uint64_t objects, before, after; /* objects that were stored again, and their stored bytes */
    uint64_t left;  /* objects that should have been, but cannot be read          */
    brc_error why;  /* the error of the first of these                            */
    uint64_t tried; /* of a count: objects that were encoded for the estimate     */
} brc_again;

/* Stores the objects again, within a write or a bulk write. */
BRC_MUST_USE int brc_again_run(brc_again *again, brc_error *err);
/* Calls run(), which calls brc_again_run(), in a bulk write of its own: in as many short transactions as needed. Leaves
 * the last one open, which the caller ends with brc_store_end(). After a failure the earlier transactions stay. */
BRC_MUST_USE int brc_again_in_steps(brc_store *store, int (*run)(void *ctx, brc_error *err), void *ctx, brc_error *err);
/* Counts, within a read, what brc_again_run() would do. Each object counts once. `after` is estimated from some objects
 * where the encoding changes. */
BRC_MUST_USE int brc_again_count(brc_again *again, brc_error *err);

#endif
