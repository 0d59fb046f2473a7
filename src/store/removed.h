/*
* Removed bytes: table `removed` lists free bytes, in the file and in other backends, and a collection of garbage
 * sweeps the table.
 *
 * A row stands for a place: a row of table blob, a pack or the like (table place), or bytes under a canonical name.
 *
 *      FREE    objects have left `bytes` bytes of the place; other objects may be in it still
 *      DUE     no object is in the place; the backend drops it from `due_us` on, not before
 *      STRAY   no object was ever in the place: its writer was killed or undone. The backend drops it if nobody but
 *              this file has put anything there
 *
 * Rows are written in the transaction that removes the objects, so they survive a killed process and a backend that
 * fails. A row goes with its place, or when an object is in the place again. A row of blob that is all free goes at
 * once, in the transaction in which the last object leaves it.
 */
#ifndef BRC_STORE_REMOVED_H
#define BRC_STORE_REMOVED_H

#include "store.h"

enum { BRC_REMOVED_FREE = 1, BRC_REMOVED_DUE = 2, BRC_REMOVED_STRAY = 3 };

typedef struct brc_removed {
    int64_t backend, place; /* as in an object's row                                   */
    char name[BRC_STORED_NAME_SIZE]; /* the canonical name where place is 0; else ""   */
    int64_t bytes, total; /* free bytes, and all bytes of the place; 0: not known      */
    int state;
    int64_t since_us; /* the time at which the first object left                       */
    int64_t due_us;   /* the time before which the place is not dropped                */
    /* For the sweeper: the objects in the place, as the caller found them. */
    const brc_oid *ids; /* all of them, if live is not more than bytes                 */
    size_t nids;
    uint64_t live;      /* their stored bytes                                          */
} brc_removed;

/* ---- noting, within a transaction -------------------------------- */

/* backend.c: notes that an object's stored bytes have no object any more. Bytes in the file that share no row go at
 * once. */
BRC_MUST_USE int brc_removed_note(brc_store *store, const brc_object *o, brc_error *err);
/* Notes that an object has left `bytes` bytes of a row of blob. */
BRC_MUST_USE int brc_row_left(brc_store *store, int64_t seq, uint64_t bytes, brc_error *err);
/* Reads the row with the key of *row. If *found is 0, *row is unchanged. BRC_ECORRUPT: the row is damaged. */
BRC_MUST_USE int brc_removed_find(brc_store *store, brc_removed *row, int *found, brc_error *err);
/* Finds the row for a row of blob, and sets its total to the length of that row of blob (0: it does not exist). Sets
 * *found to 0 if none of its bytes is free. */
BRC_MUST_USE int brc_blob_find(brc_store *store, int64_t seq, brc_removed *row, int *found, brc_error *err);
BRC_MUST_USE int brc_removed_delete(brc_store *store, const brc_removed *row, brc_error *err);
/* Writes a row of the table; since_us 0: now. */
BRC_MUST_USE int brc_removed_put(brc_store *store, const brc_removed *row, brc_error *err);

/* ---- sweeping (removed_sweep.c) -------------------------------- */

/* The rows to list, and how far the list has got. */
typedef struct brc_removed_walk {
    int64_t strays_of; /* the strays of this backend; 0: all other rows               */
    int64_t now_us;
    int64_t last;      /* rows of blob with a larger number are left out: brc_removed_last() */
    brc_removed at;    /* the last row that was listed; all zero: none yet            */
} brc_removed_walk;
/* Finds the last row of blob that objects have left; 0: there is none. */
BRC_MUST_USE int brc_removed_last(brc_store *store, int64_t *last, brc_error *err);
/* Lists at most `cap` of the next rows that need work, by backend, place and name. Leaves out a place of which less than
 * half is free. */
BRC_MUST_USE int brc_removed_next(brc_store *store, brc_removed_walk *walk, brc_removed *out, size_t cap, size_t *n,
                                  brc_error *err);

/* Returns 1 if the backend keeps objects in packs, which its objects can leave for others. */
int brc_backend_moves(const brc_store_backend *b);

typedef struct brc_removed_sweep {
    int64_t run; /* the collection of garbage that runs                               */
    int64_t now_us;
    size_t failed; /* places that a backend could not drop: they stay in the table    */
    int64_t out_of_reach; /* the last backend that could not be asked: it is not asked again; 0: none */
    brc_error why; /* the backend's error for the first of these, or of a listing     */
} brc_removed_sweep;
#define BRC_REMOVED_AT_ONCE 64
/* Sweeps some rows of one backend, in short changes: drops places that have no object, moves the objects of a row of
 * blob to a new row, and puts the objects of a pack that is half free again. For backend 0 n is 1, else at most
 * BRC_REMOVED_AT_ONCE. The caller has set ids and nids to the objects that it found in each place after the collection had begun. */
BRC_MUST_USE int brc_removed_sweep_some(brc_store *store, brc_removed_sweep *sweep, brc_removed *rows, size_t n,
                                        brc_error *err);

/* Within a transaction: puts the stored bytes of a small object of the file into the row of stored bytes that the
 * transaction fills. `bytes` is memory to use. */
BRC_MUST_USE int brc_object_move(brc_store *store, const brc_object *o, brc_buf *bytes, brc_error *err);
/* A row of stored bytes. */
typedef struct brc_blob_row {
    int64_t seq;
    uint64_t live; /* bytes that objects have */
} brc_blob_row;
/* The length at which a row is full, and the next object goes into another row: with BRC_SMALL_MOST, a row wastes at
 * most 6 % of its size (docs/decisions/0014-format-2.md). */
#define BRC_ROW_FULL ((size_t)256 << 10)
/* Finds the number of the last row; 0: there is none. */
BRC_MUST_USE int brc_blob_last(brc_store *store, int64_t *last, brc_error *err);
/* Lists the next rows after the number `after`, at most `cap`. */
BRC_MUST_USE int brc_blobs_page(brc_store *store, int64_t after, brc_blob_row *out, size_t cap, size_t *n, brc_error *err);

/* Finds the next backend's number after `after`; 0: there is none. */
BRC_MUST_USE int brc_backend_after(brc_store *store, int64_t after, int64_t *id, brc_error *err);
/* Outside of a transaction: finds strays, which the backend lists and no row names, and writes rows for them, except
 * for bytes put after the collection began. Sets *more to 1 if there are more, for another call, and *first to a digest
 * of the first one's name, 0 if there are none. There are none if the backend cannot list its bytes, if this build lacks
 * the backend, or if the backend cannot be reached. */
BRC_MUST_USE int brc_strays_note(brc_store *store, brc_removed_sweep *sweep, int64_t backend, int *more, uint64_t *first,
                                 brc_error *err);

/* The checksum of a row, in SQL, and whether a row of another backend is damaged. */
#define BRC_REMOVED_SUM                                                                           \
    "row_sum('removed', backend, place, name, bytes, total, state, since_us, due_us)"
#define BRC_REMOVED_BAD                                                                           \
    "(typeof(backend)<>'integer' OR typeof(place)<>'integer' OR (place=0)=(name='')"              \
    " OR typeof(bytes)<>'integer' OR bytes<0 OR typeof(total)<>'integer' OR total<0"              \
    " OR state NOT IN (1,2,3) OR typeof(since_us)<>'integer' OR typeof(due_us)<>'integer'"        \
    " OR due_us<0 OR checksum IS NOT " BRC_REMOVED_SUM ")"

/* ---- all of the table, within a transaction -------------------------------- */

/* Makes the table anew from the objects and blobs, for a file whose rows are damaged. */
BRC_MUST_USE int brc_removed_rebuild(brc_store *store, brc_error *err);
/* Makes the table from table hole and the facts in table place, which files had instead before December 2026. */
BRC_MUST_USE int brc_removed_take_over(brc_store *store, brc_error *err);
/* Fails with BRC_EFORMAT if the file still has table hole, which only a handle that may write takes over. */
BRC_MUST_USE int brc_removed_there(brc_store *store, brc_error *err);

#endif
